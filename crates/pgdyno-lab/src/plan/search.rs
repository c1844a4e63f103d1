//! The space of a search: the file's factors are its knobs, rows of their levels its points.

use super::{AS_IT_IS, Plan, ProfileSettings, REFERENCE, Treatment, combine, lay_over};
use crate::decide::Looks;
use crate::file::{Bound, MethodWord, StepPart};
use crate::optimizer::{FactorOpening, Levels, Opening};
use pgdyno_advice::Scale;
use pgdyno_knobs::Setting;
use pgdyno_knobs::gucvalue::quantity;
use pgdyno_record::{BrokenBound, ExperimentRecord, TreatmentRecord, TrialRecord, TrialStatus};
use pgdyno_stats::{Dimension, Point, Search, SearchLevel, SearchMethod, SearchTrial, Space, SpaceError};

/// A trial that breaks a bound counts for less, by this and by so many times the excess.
pub(crate) const BROKEN: f64 = 3.0;
const EXCESS_TIMES: f64 = 3.0;
/// A figure that is best as small as can be has a logarithm from here on: 0 is the best of all.
const LEAST: f64 = 1e-6;
/// Values that differ by less than a part of this are the same.
const SAME: f64 = 1e9;

/// All that a search goes by, worked out of its plan.
pub(crate) struct SearchPlan<'p> {
    plan: &'p Plan,
    space: Space,
    /// All levels of each factor.
    levels: Vec<Vec<StepPart>>,
    /// Numbers of the levels that can be tested, by factor; the space knows only these.
    kept: Vec<Vec<usize>>,
    starts: Vec<(String, Point)>,
    limits: Vec<(Vec<f64>, f64)>,
    bounds: Vec<Bound>,
    larger_is_better: bool,
    pub(crate) trials: u32,
    of_block: u32,
    method: SearchMethod,
}

impl Plan {
    /// Looks at the trials of an experiment of this plan.
    pub(crate) fn looks(&self, record: &ExperimentRecord) -> Looks {
        Looks::new(record).with_bounds(self.bounds())
    }

    /// What the best of a search must hold to.
    fn bounds(&self) -> impl Iterator<Item = Bound> {
        let texts = self.file.search.iter().flat_map(|part| &part.subject_to);
        texts.filter_map(|text| Bound::parse(text).ok())
    }

    /// The search that the plan is, if it is one: levels that cannot be tested alone are not in its
    /// space.
    ///
    /// # Errors
    ///
    /// Nothing is left to vary.
    pub(crate) fn search(&self, record: &ExperimentRecord) -> Option<Result<SearchPlan<'_>, SpaceError>> {
        let part = self.file.search.as_ref()?;
        let levels: Vec<Vec<StepPart>> = self
            .file
            .factor
            .iter()
            .map(|factor| factor.levels().unwrap_or_default())
            .collect();
        let kept: Vec<Vec<usize>> = levels
            .iter()
            .zip(&self.file.factor)
            .map(|(levels, factor)| {
                let is_kept = |i: &usize| *i == 0 || self.is_tested_alone(&factor.name, &levels[*i].name);
                (0..levels.len()).filter(is_kept).collect()
            })
            .collect();
        let dimensions = levels.iter().zip(&kept).zip(&self.file.factor);
        let dimensions = dimensions.map(|((levels, kept), factor)| {
            let names: Vec<&str> = kept.iter().map(|&i| levels[i].name.as_str()).collect();
            let coordinates = coordinates(&names, factor.scale);
            let weight = |i: usize| factor.weights.get(i).copied().unwrap_or(1.0);
            let each = coordinates.into_iter().zip(kept);
            Dimension {
                levels: each
                    .map(|(coordinate, &i)| SearchLevel {
                        coordinate,
                        prior: weight(i),
                    })
                    .collect(),
                relevance: factor.relevance.unwrap_or(1.0),
            }
        });
        let space = match Space::new(dimensions.collect()) {
            Ok(space) => space,
            Err(error) => return Some(Err(error)),
        };
        let number = |text: &str| quantity(text).map_or(0.0, |(_, number)| number);
        let limits = part.limit.iter().map(|limit| {
            let times = self.file.factor.iter().map(|factor| limit.sum.get(&factor.name));
            let times = times.map(|times| times.copied().unwrap_or(0.0)).collect();
            (times, number(&limit.at_most))
        });
        let mut search = SearchPlan {
            plan: self,
            space,
            kept,
            starts: Vec::new(),
            limits: limits.collect(),
            bounds: self.bounds().collect(),
            larger_is_better: record.larger_is_better(&self.file.metric),
            trials: part.trials,
            of_block: part.trials.div_ceil(self.file.blocks.max(1)),
            method: match part.method {
                MethodWord::Process => SearchMethod::Process,
                MethodWord::Forest => SearchMethod::Forest,
                MethodWord::Densities => SearchMethod::Densities,
                MethodWord::Random => SearchMethod::Random,
                MethodWord::OneAtATime => SearchMethod::OneAtATime,
            },
            levels,
        };
        search
            .starts
            .push((REFERENCE.to_owned(), vec![0; search.levels.len()]));
        for start in &part.start {
            let factors = self.file.factor.iter();
            let named: Vec<(String, String)> = factors
                .filter_map(|factor| Some((factor.name.clone(), start.levels.get(&factor.name)?.clone())))
                .collect();
            // One with a level that cannot be tested goes without that level.
            search.starts.push((start.name.clone(), search.nearest(&named)));
        }
        Some(Ok(search))
    }

    /// Whether the treatment that has this level and the reference's of all other factors can be
    /// tested.
    fn is_tested_alone(&self, factor: &str, level: &str) -> bool {
        let reference = self.treatments.first();
        let is_it = |treatment: &&Treatment| {
            let differs = treatment
                .levels
                .iter()
                .filter(|own| reference.is_none_or(|reference| !reference.levels.contains(own)));
            let differs: Vec<&(String, String)> = differs.collect();
            matches!(differs[..], [(of, name)] if of == factor && name == level)
        };
        let alone = self.treatments.iter().find(is_it);
        // One that is excluded beside the reference's other levels may be possible beside others.
        alone.is_none_or(|treatment| treatment.why_not.is_none())
    }
}

/// Places of levels on their scale, from 0 to 1; `None` for those that are not on it.
fn coordinates(names: &[&str], scale: Option<Scale>) -> Vec<Option<f64>> {
    let numbers: Vec<Option<f64>> = names
        .iter()
        .map(|name| quantity(name).map(|(_, number)| number))
        .collect();
    let is_log = scale.unwrap_or_default() == Scale::Log;
    let placed: Vec<Option<f64>> = match scale {
        Some(Scale::None) => vec![None; names.len()],
        // What is 0 or below is a word to the server, or has no logarithm.
        _ => numbers
            .iter()
            .map(|number| match is_log {
                true => number.filter(|number| *number > 0.0).map(f64::ln),
                false => number.filter(|number| *number >= 0.0),
            })
            .collect(),
    };
    let (least, most) = placed
        .iter()
        .flatten()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| {
            (a.min(*x), b.max(*x))
        });
    let length = most - least;
    let place = |number: &Option<f64>| match length > 0.0 {
        true => number.map(|number| ((number - least) / length).clamp(0.0, 1.0)),
        false => None,
    };
    placed.iter().map(place).collect()
}

impl SearchPlan<'_> {
    /// The point with these levels, and the reference's where none is named, or it is not in the
    /// space.
    fn nearest(&self, named: &[(String, String)]) -> Point {
        let factors = self.plan.file.factor.iter().zip(&self.levels).zip(&self.kept);
        factors
            .map(|((factor, levels), kept)| {
                let level = named
                    .iter()
                    .find(|(name, _)| *name == factor.name)
                    .map(|(_, level)| level);
                let is_it = |i: &usize| level.is_some_and(|level| levels[*i].name == *level);
                kept.iter().position(is_it).unwrap_or(0)
            })
            .collect()
    }

    /// The point of a treatment, by its levels; `None` where the space has no such point.
    pub(crate) fn point_of(&self, treatment: &TreatmentRecord) -> Option<Point> {
        let point = self.nearest(&treatment.levels);
        (self.levels_of(&point) == treatment.levels).then_some(point)
    }

    fn levels_of(&self, point: &[usize]) -> Vec<(String, String)> {
        let factors = self
            .plan
            .file
            .factor
            .iter()
            .zip(self.row(point))
            .zip(&self.levels);
        factors
            .map(|((factor, level), levels)| (factor.name.clone(), levels[level].name.clone()))
            .collect()
    }

    /// The levels of a point by factor.
    pub(crate) fn named(&self, point: &[usize]) -> Levels {
        self.levels_of(point).into_iter().collect()
    }

    /// What is said to a program that chooses.
    pub(crate) fn opening(&self) -> Opening<'_> {
        let file = &self.plan.file;
        let levels = self.levels.iter().zip(&self.kept).zip(self.space.dimensions());
        let factors = file.factor.iter().zip(levels);
        let factors = factors.map(|(factor, ((levels, kept), dimension))| FactorOpening {
            name: &factor.name,
            levels: kept.iter().map(|&i| levels[i].name.as_str()).collect(),
            weights: dimension.levels.iter().map(|level| level.prior).collect(),
            relevance: dimension.relevance,
            scale: factor.scale.unwrap_or_default(),
        });
        let bounds = file.search.as_ref().map_or(&[][..], |search| &search.subject_to);
        let metric = (file.metric.as_str(), self.larger_is_better);
        Opening::of((self.plan.seed, self.trials), metric, bounds, factors.collect())
    }

    /// The point of a choice.
    ///
    /// # Errors
    ///
    /// Why it cannot be tried.
    pub(crate) fn chosen(&self, levels: &Levels) -> Result<Point, String> {
        let factors = &self.plan.file.factor;
        if let Some(name) = levels
            .keys()
            .find(|name| factors.iter().all(|factor| factor.name != **name))
        {
            return Err(format!("there is no factor \"{name}\""));
        }
        let named: Vec<(String, String)> = levels.clone().into_iter().collect();
        let point = self.nearest(&named);
        let own = self.named(&point);
        if let Some((name, level)) = levels.iter().find(|(name, level)| own.get(*name) != Some(*level)) {
            return Err(format!(
                "\"{name}\" has no level \"{level}\" that can be tried here"
            ));
        }
        match self.is_allowed(&point) {
            true => Ok(point),
            false => Err("these levels are excluded together, or beyond a limit".to_owned()),
        }
    }

    /// Numbers of all levels.
    fn row(&self, point: &[usize]) -> Vec<usize> {
        let each = self.kept.iter().zip(point);
        each.map(|(kept, &level)| kept[level]).collect()
    }

    fn is_allowed(&self, point: &[usize]) -> bool {
        let row = self.row(point);
        let of = |factor: usize| {
            quantity(&self.levels[factor][row[factor]].name).map_or(0.0, |(_, number)| number)
        };
        let is_within = |(times, most): &(Vec<f64>, f64)| {
            let each = times.iter().enumerate().filter(|(_, times)| **times > 0.0);
            // Below 0 a number is a word.
            each.map(|(factor, times)| times * of(factor).max(0.0))
                .sum::<f64>()
                <= *most
        };
        !combine::is_excluded(&self.plan.file, &self.levels, &row) && self.limits.iter().all(is_within)
    }

    /// The value of a trial as a search takes it: larger is better, `None` where it failed.
    fn value(&self, trial: &TrialRecord) -> Option<f64> {
        let figure = self.figure_of(trial)?;
        let value = match self.larger_is_better {
            true => figure.ln(),
            false => -figure.max(LEAST).ln(),
        };
        let excess: f64 = self
            .bounds
            .iter()
            .map(|bound| {
                trial
                    .figure(&bound.figure)
                    .map_or(1.0, |figure| bound.excess(figure))
            })
            .sum();
        let value = match excess > 0.0 {
            true => value - BROKEN - EXCESS_TIMES * excess,
            false => value,
        };
        // What is read from the store again may differ in its last digit.
        Some((value * SAME).round() / SAME)
    }

    /// The figure that decides, of a trial that finished.
    pub(crate) fn figure_of(&self, trial: &TrialRecord) -> Option<f64> {
        let is_finished = trial.status == TrialStatus::Finished;
        let figure = trial.figure(&self.plan.file.metric).filter(|_| is_finished);
        // Where nothing was committed nothing was measured.
        figure.filter(|figure| *figure > 0.0 || *figure >= 0.0 && !self.larger_is_better)
    }

    /// The bounds that a trial that finished breaks.
    pub(crate) fn broken_by(&self, trial: &TrialRecord) -> Vec<BrokenBound> {
        let bounds = self.bounds.iter();
        match self.figure_of(trial) {
            Some(_) => bounds
                .filter_map(|bound| bound.broken_by(trial.figure(&bound.figure)))
                .collect(),
            None => Vec::new(),
        }
    }

    pub(crate) fn is_larger_better(&self) -> bool {
        self.larger_is_better
    }

    pub(crate) fn has_bounds(&self) -> bool {
        !self.bounds.is_empty()
    }

    /// The figure that a search's value is of.
    pub(crate) fn figure(&self, value: f64) -> f64 {
        match self.larger_is_better {
            true => value.exp(),
            false => (-value).exp(),
        }
    }

    /// A trial as a search takes it. One whose figures do not hold says nothing of what was tried.
    pub(crate) fn trial(&self, point: &[usize], trial: &TrialRecord) -> SearchTrial {
        SearchTrial {
            point: point.to_vec(),
            value: self.value(trial),
            keeps_bounds: self.broken_by(trial).is_empty(),
            block: trial.block,
            holds: trial.status != TrialStatus::Invalid,
            ended_by_guard: trial.ended_by_guard,
        }
    }

    /// Block and position of the trial after the one of this block that was its so many'th.
    pub(crate) fn place_after(&self, (block, trials): (u32, u32)) -> (u32, u32) {
        match (1..self.of_block).contains(&trials) {
            true => (block, trials + 1),
            false => (block + 1, 1),
        }
    }

    /// Calls `act` with the search.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&Search<'_>) -> T) -> T {
        let starts: Vec<Point> = self.starts.iter().map(|(_, point)| point.clone()).collect();
        act(&Search {
            space: &self.space,
            starts: &starts,
            allowed: &|point| self.is_allowed(point),
            method: self.method,
            seed: self.plan.seed,
        })
    }

    /// A treatment with these levels. `number` is what it is called by where it is not a starting
    /// point.
    pub(crate) fn treatment(&self, point: &[usize], number: usize, reason: Option<String>) -> Treatment {
        let row = self.row(point);
        let plan = self.plan;
        let mut treatment = combine::of_row(
            &plan.file,
            &plan.base,
            &ProfileSettings::new(),
            &self.levels,
            &row,
        );
        // Those of the base may be of a profile, which a search that goes on has only in what is
        // stored of the reference.
        if let Some(reference) = plan.treatments.first() {
            let is_own = |setting: &Setting| reference.step.iter().any(|own| own.knob == setting.knob);
            let mut settings = reference.settings.clone();
            settings.retain(|setting| !is_own(setting));
            lay_over(&mut settings, &treatment.step);
            treatment.settings = settings;
        }
        let start = self.starts.iter().find(|(_, start)| *start == point);
        treatment.name = start.map_or_else(|| format!("candidate {number}"), |(name, _)| name.clone());
        treatment.title = match start {
            Some((name, _)) if name == REFERENCE => AS_IT_IS.to_owned(),
            _ => treatment.name.clone(),
        };
        treatment.reason = reason.or(treatment.reason);
        treatment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_that_are_numbers_have_places_and_words_have_none() {
        let check = |names: &[&str], scale, expected: &[Option<f64>]| {
            let found = coordinates(names, scale);
            let is_same = |(a, b): (&Option<f64>, &Option<f64>)| match (a, b) {
                (Some(a), Some(b)) => (a - b).abs() < 1e-9,
                (a, b) => a == b,
            };
            assert!(found.iter().zip(expected).all(is_same), "{names:?}: {found:?}");
        };
        let (first, middle, last) = (Some(0.0), Some(0.5), Some(1.0));
        check(&["4MB", "64MB", "16MB"], None, &[first, last, middle]);
        check(&["0", "10", "1000", "100"], None, &[None, first, last, middle]);
        check(&["-1", "16MB"], None, &[None, None]);
        check(&["0", "50", "100"], Some(Scale::Linear), &[first, middle, last]);
        check(&["off", "pglz", "lz4"], None, &[None; 3]);
        check(&["16", "128"], Some(Scale::None), &[None, None]);
    }
}
