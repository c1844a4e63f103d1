//! What the trials of a search have found.

use crate::error::LabError;
use crate::file::{Design, ExperimentFile};
use crate::plan::{Plan, SearchPlan};
use pgdyno_knobs::Catalogue;
use pgdyno_record::{
    BrokenBound, Importance, SearchStep, Searched, StoredExperiment, TreatmentEstimate, TreatmentRecord,
    TrialRecord,
};
use pgdyno_stats::{Incumbent, Point, SearchTrial};
use std::path::Path;

/// Half the width of a 95 % interval, in standard deviations.
pub(crate) const HALF_WIDTH: f64 = 1.96;

/// What was tried so far.
pub(crate) struct Tried {
    /// Treatments that are stored, with their points.
    pub(crate) treatments: Vec<(Point, String)>,
    /// Trials of them, in order.
    pub(crate) trials: Vec<SearchTrial>,
    /// The figures of these, with the bounds that they break.
    pub(crate) figures: Vec<(Option<f64>, Vec<BrokenBound>)>,
    /// All trials.
    pub(crate) count: u32,
    /// The last block, and how many trials it has; 0 before the first.
    pub(crate) last: (u32, u32),
}

impl Tried {
    /// All that is stored of a search.
    pub(crate) fn of(search: &SearchPlan<'_>, stored: &StoredExperiment) -> Tried {
        let mut tried = Tried::before(search, stored);
        for (_, record) in &stored.trials {
            tried.take_in(search, record);
        }
        tried
    }

    /// Before its first trial.
    pub(crate) fn before(search: &SearchPlan<'_>, stored: &StoredExperiment) -> Tried {
        let of = |treatment: &TreatmentRecord| Some((search.point_of(treatment)?, treatment.name.clone()));
        let treatments = stored.record.treatments.iter();
        let tested = treatments.filter(|treatment| treatment.why_not.is_none());
        Tried {
            treatments: tested.filter_map(of).collect(),
            trials: Vec::new(),
            figures: Vec::new(),
            count: 0,
            last: (0, 0),
        }
    }

    pub(crate) fn take_in(&mut self, search: &SearchPlan<'_>, record: &TrialRecord) {
        self.count += 1;
        let before = if self.last.0 == record.block {
            self.last.1
        } else {
            0
        };
        self.last = (record.block, before + 1);
        let point = self.treatments.iter().find(|(_, name)| *name == record.treatment);
        if let Some((point, _)) = point {
            self.trials.push(search.trial(point, record));
            self.figures
                .push((search.figure_of(record), search.broken_by(record)));
        }
    }

    fn name_of(&self, point: &[usize]) -> Option<&str> {
        let mut treatments = self.treatments.iter();
        treatments
            .find(|(other, _)| other == point)
            .map(|(_, name)| name.as_str())
    }

    /// The best so far; `None` before the first trial that did not fail.
    pub(crate) fn best(&self, search: &SearchPlan<'_>) -> Option<TreatmentEstimate> {
        let best = search.with(|search| search.best(&self.trials))?;
        self.estimate(search, &best)
    }

    /// What is believed of a point. Where a bound is broken, a search counts that as less: the
    /// figure is then the mean of its own trials.
    fn estimate(&self, search: &SearchPlan<'_>, of: &Incumbent) -> Option<TreatmentEstimate> {
        let treatment = self.name_of(&of.point)?.to_owned();
        let figures: Vec<f64> = self.own(&of.point).filter_map(|(figure, _)| *figure).collect();
        if self.own(&of.point).any(|(_, broken)| !broken.is_empty()) {
            let trials = f64::from(u32::try_from(figures.len()).ok()?);
            return Some(TreatmentEstimate {
                treatment,
                figure: figures.iter().sum::<f64>() / trials,
                interval: None,
            });
        }
        let figure = |times: f64| search.figure(of.mean + times * HALF_WIDTH * of.sd);
        let (one, other) = (figure(-1.0), figure(1.0));
        Some(TreatmentEstimate {
            treatment,
            figure: search.figure(of.mean),
            interval: of.sd.is_finite().then(|| [one.min(other), one.max(other)]),
        })
    }

    /// The figures of a point's own trials.
    fn own(&self, point: &[usize]) -> impl Iterator<Item = &(Option<f64>, Vec<BrokenBound>)> {
        let all = self.trials.iter().zip(&self.figures);
        all.filter(move |(trial, _)| trial.point == point)
            .map(|(_, figures)| figures)
    }
}

/// What a stored experiment of `design = "search"` has found so far; `None` where it is none.
///
/// # Errors
///
/// Its file cannot be read any more, or it has nothing to vary.
pub fn searched(stored: &StoredExperiment, catalogue: &Catalogue) -> Result<Option<Searched>, LabError> {
    let record = &stored.record;
    if record.design != Design::Search.name() {
        return Ok(None);
    }
    let file = ExperimentFile::parse(&record.file, Path::new("the stored experiment"), catalogue)?;
    let plan = Plan::stored(file, record.seed, &record.treatments)?;
    let Some(search) = plan.search(record) else {
        return Ok(None);
    };
    let search = search.map_err(LabError::NothingToSearch)?;
    let mut tried = Tried::before(&search, stored);
    let mut path = Vec::new();
    for (id, trial) in &stored.trials {
        tried.take_in(&search, trial);
        path.push(SearchStep {
            trial: *id,
            treatment: trial.treatment.clone(),
            figure: search.figure_of(trial),
            broken: search.broken_by(trial),
            best: tried.best(&search),
        });
    }
    let best = tried.best(&search);
    let reference = tried.treatments.first();
    let reference =
        reference.and_then(|(point, _)| search.with(|search| search.estimate(&tried.trials, point)));
    let parts = search.with(|search| search.importance(&tried.trials));
    let factors = plan.file.factor.iter().map(|factor| factor.name.clone());
    let mut importance: Vec<Importance> = factors
        .zip(parts.unwrap_or_default())
        .map(|(factor, part)| Importance { factor, part })
        .collect();
    importance.sort_by(|a, b| b.part.total_cmp(&a.part));
    Ok(Some(Searched {
        reference: reference.and_then(|reference| tried.estimate(&search, &reference)),
        best,
        importance,
        path,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_record::{ExperimentRecord, ExperimentStatus, Percentiles, TrialStatus, WorkloadRecord};

    const SEARCH: &str = r#"
name = "x"
question = "?"
design = "search"
blocks = 2
[data]
scale = 1
[load]
workload = "tpcb"
clients = 1
measure_s = 5
[search]
trials = 8
subject_to = ["p99_ms <= 20"]
[[factor]]
name = "cost"
of = "random_page_cost"
values = ["4", "2", "1.1"]
"#;

    /// A search with these trials: level, throughput (none where it failed), and p99.
    fn stored(trials: &[(&str, Option<f64>, f64)]) -> StoredExperiment {
        let workload = WorkloadRecord {
            name: "tpcb".to_owned(),
            scale: 1,
            clients: 1,
            threads: 1,
            warmup_s: 0.0,
            measure_s: 5.0,
        };
        let mut record = ExperimentRecord::new("x", workload);
        record.design = "search".to_owned();
        record.file = SEARCH.to_owned();
        for (name, level) in [("reference", "4"), ("candidate 1", "2"), ("candidate 2", "1.1")] {
            let mut treatment = TreatmentRecord::new(name);
            treatment.levels = vec![("cost".to_owned(), level.to_owned())];
            record.treatments.push(treatment);
        }
        let of = |(number, (treatment, tps, p99)): (i64, &(&str, Option<f64>, f64))| {
            let mut trial = TrialRecord::begun(1, u32::try_from(number).unwrap(), treatment);
            trial.tps = *tps;
            trial.status = tps.map_or(TrialStatus::Failed, |_| TrialStatus::Finished);
            trial.percentiles = Some(Percentiles {
                p99_ms: Some(*p99),
                ..Percentiles::default()
            });
            (number, trial)
        };
        StoredExperiment {
            id: 1,
            record,
            status: ExperimentStatus::Finished,
            started_unix_ms: 0,
            finished_unix_ms: None,
            restored: Vec::new(),
            trials: (1..).zip(trials).map(of).collect(),
        }
    }

    fn found(trials: &[(&str, Option<f64>, f64)]) -> Searched {
        let catalogue = Catalogue::shipped().unwrap();
        searched(&stored(trials), &catalogue).unwrap().unwrap()
    }

    #[test]
    fn path_has_the_best_after_each_trial_and_failures_are_counted() {
        let search = found(&[
            ("reference", Some(100.0), 5.0),
            ("candidate 1", None, 5.0),
            ("candidate 2", Some(150.0), 5.0),
            ("candidate 2", Some(152.0), 5.0),
        ]);
        let best = |step: &SearchStep| step.best.as_ref().map(|best| best.treatment.clone());
        let best: Vec<Option<String>> = search.path.iter().map(best).collect();
        let [reference, winner] = ["reference", "candidate 2"].map(|name| Some(name.to_owned()));
        assert_eq!(best, [reference.clone(), reference, winner.clone(), winner]);
        assert_eq!((search.failed(), search.path[1].figure), (1, None));
        assert!(
            search.expected_ratio().unwrap() > 1.2,
            "{:?} {:?}",
            search.best,
            search.reference
        );
        let [low, high] = search.best.unwrap().interval.unwrap();
        assert!(low < 151.0 && high > 140.0, "{low} {high}");
        assert_eq!(search.importance[0].factor, "cost");
    }

    #[test]
    fn what_breaks_a_bound_is_not_the_best_and_where_all_do_its_figure_is_as_measured() {
        let search = found(&[
            ("reference", Some(100.0), 5.0),
            ("candidate 2", Some(150.0), 25.0),
        ]);
        assert!(search.broken().is_empty());
        assert_eq!(search.best.unwrap().treatment, "reference");
        assert_eq!(search.path[1].broken[0].figure, Some(25.0));
        let search = found(&[
            ("reference", Some(100.0), 60.0),
            ("candidate 2", Some(150.0), 25.0),
        ]);
        assert_eq!(search.broken()[0].bound, "p99_ms <= 20");
        let best = search.best.unwrap();
        assert_eq!(
            (best.treatment.as_str(), best.figure, best.interval),
            ("candidate 2", 150.0, None)
        );
    }

    #[test]
    fn search_without_a_finished_trial_has_no_best_and_other_designs_no_search() {
        let search = found(&[("reference", None, 5.0)]);
        assert_eq!(search.failed(), 1);
        assert_eq!((search.best, search.reference), (None, None));
        let catalogue = Catalogue::shipped().unwrap();
        let mut other = stored(&[]);
        other.record.design = "a-b".to_owned();
        assert_eq!(searched(&other, &catalogue).unwrap(), None);
    }
}
