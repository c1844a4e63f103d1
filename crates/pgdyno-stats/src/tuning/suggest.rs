//! What to try next, and what is best so far.

use super::forest::Forest;
use super::model::{Belief, Scaled, Surrogate};
use super::process::Process;
use super::space::{Point, SearchTrial, Space, below, uniform, weighted};
use crate::matrix::count;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use statrs::distribution::{Continuous, ContinuousCDF, Normal};

/// How a search chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchMethod {
    /// By a Gaussian process whose knobs' effects add up, with priors: the usual one.
    Process,
    /// By a forest of trees, as SMAC does.
    Forest,
    /// By the densities of good and bad trials, as Optuna's TPE does (Bergstra et al. 2011).
    Densities,
    /// By chance, by the priors.
    Random,
    /// Each knob's levels in turn, from the best so far.
    OneAtATime,
}

impl SearchMethod {
    /// All of them, the usual one first.
    pub const ALL: [Self; 5] = [
        Self::Process,
        Self::Forest,
        Self::Densities,
        Self::Random,
        Self::OneAtATime,
    ];
}

/// Why a point is tried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reason {
    /// It is a starting point, by number.
    Start(usize),
    /// It may be better than the best so far.
    Improvement {
        /// By what factor it is expected to be better than the best so far, as a logarithm, where
        /// that is less than 0 not at all.
        expected: f64,
        /// Standard deviation of that.
        sd: f64,
    },
    /// It is the best so far, and was measured too rarely to say so.
    Again,
    /// Nothing new was found.
    Repeated,
    /// By chance, or because its turn has come.
    Turn,
}

/// A point to try.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggestion {
    /// Its levels.
    pub point: Point,
    /// Why it is tried.
    pub reason: Reason,
}

/// The best so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Incumbent {
    /// Its levels.
    pub point: Point,
    /// Logarithm of its value, by all trials together.
    pub mean: f64,
    /// Standard deviation of that.
    pub sd: f64,
}

/// A search: the same seed and the same trials give the same suggestion.
pub struct Search<'a> {
    /// What may be tried.
    pub space: &'a Space,
    /// Points that are tried first, in order.
    pub starts: &'a [Point],
    /// Whether a point may be tried at all.
    pub allowed: &'a dyn Fn(&[usize]) -> bool,
    /// How it chooses.
    pub method: SearchMethod,
    /// Seed of all chance in it.
    pub seed: u64,
}

/// Trials of the best so far before it is trusted.
const TRUSTED_AFTER: usize = 2;
/// Trials of a start that gave nothing before it is given up.
const START_TRIALS: usize = 2;
/// Points by chance that are compared, and how many of them are improved knob by knob.
const DRAWN: usize = 400;
const IMPROVED: usize = 4;
/// Weight of the prior against the expected improvement: as of ten trials.
const PRIOR_TRIALS: f64 = 10.0;
/// Attempts at a point by chance that is allowed.
const ATTEMPTS: usize = 1000;
/// A space with so many points is searched through where chance finds nothing new in it.
const SEARCHED_THROUGH: usize = 4096;
/// Part of the trials that count as good for densities.
const GOOD: f64 = 0.25;

impl Search<'_> {
    /// What to try after these trials, in a block of this number; `None` where this block has all
    /// that is allowed.
    pub fn next(&self, trials: &[SearchTrial], block: u32) -> Option<Suggestion> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed ^ (trials.len() as u64) << 32);
        if let Some(start) = self.start(trials, block) {
            return Some(start);
        }
        let held = held(trials);
        let of = (trials, &held[..], block);
        let found = match self.method {
            SearchMethod::Random => self.by_turn(self.new_point((trials, block), &mut random)),
            SearchMethod::OneAtATime => {
                let point = self.one_at_a_time(of, &mut random);
                self.by_turn(point.or_else(|| self.new_point((trials, block), &mut random)))
            }
            SearchMethod::Densities => self.by_turn(self.by_densities(of, &mut random)),
            SearchMethod::Process | SearchMethod::Forest => self.by_model(of, &mut random),
        };
        let new = found.or_else(|| self.by_turn(self.left((trials, block))));
        new.or_else(|| self.repeated(trials, block))
    }

    /// The likeliest of all new points, of a small space.
    fn left(&self, trials: (&[SearchTrial], u32)) -> Option<Point> {
        let all = self.space.all(SEARCHED_THROUGH)?;
        let new = all.filter(|point| self.is_new(point, trials));
        new.max_by(|a, b| self.space.log_prior(a).total_cmp(&self.space.log_prior(b)))
    }

    /// Of the points with a value that this block has not and no guard has ended, the one with the
    /// fewest trials, the first of these.
    fn repeated(&self, trials: &[SearchTrial], block: u32) -> Option<Suggestion> {
        let is_of = |trial: &SearchTrial, point: &[usize]| trial.point == point;
        let with_value = trials.iter().filter(|trial| trial.value.is_some());
        let is_barred = |point: &[usize]| {
            let mut own = trials.iter().filter(|trial| is_of(trial, point));
            own.any(|trial| trial.block == block || trial.ended_by_guard)
        };
        let points = with_value.map(|trial| &trial.point);
        let left = points.filter(|point| (self.allowed)(point) && !is_barred(point));
        let count_of = |point: &&Point| trials.iter().filter(|trial| is_of(trial, point)).count();
        let point = left.min_by_key(count_of)?.clone();
        let reason = Reason::Repeated;
        Some(Suggestion { point, reason })
    }

    /// Whether a point is allowed and was not tried. A trial whose figures do not hold is none, but
    /// in its block.
    fn is_new(&self, point: &[usize], (trials, block): (&[SearchTrial], u32)) -> bool {
        let counts = |trial: &SearchTrial| trial.holds || trial.ended_by_guard || trial.block == block;
        let is_tried = |trial: &SearchTrial| trial.point == point && counts(trial);
        (self.allowed)(point) && !trials.iter().any(is_tried)
    }

    fn by_turn(&self, point: Option<Point>) -> Option<Suggestion> {
        let reason = Reason::Turn;
        point.map(|point| Suggestion { point, reason })
    }

    /// The first starting point without a trial that says something of it, in a block of this
    /// number. The first of all, which others are compared with, is tried once more where its trial
    /// failed.
    pub fn start(&self, trials: &[SearchTrial], block: u32) -> Option<Suggestion> {
        let mut starts = self.starts.iter().enumerate();
        let is_left = |(i, start): &(usize, &Point)| {
            let own: Vec<&SearchTrial> = trials.iter().filter(|trial| trial.point == **start).collect();
            let says_nothing = |trial: &&SearchTrial| {
                !trial.ended_by_guard && (!trial.holds || *i == 0 && trial.value.is_none())
            };
            (self.allowed)(start)
                && own.len() < START_TRIALS
                && own
                    .iter()
                    .all(|trial| says_nothing(trial) && trial.block != block)
        };
        let (i, start) = starts.find(is_left)?;
        Some(Suggestion {
            point: start.clone(),
            reason: Reason::Start(i),
        })
    }

    /// The best of the points that were tried; `None` before the first trial that did not fail.
    pub fn best(&self, trials: &[SearchTrial]) -> Option<Incumbent> {
        let trials = &held(trials);
        let scaled = Scaled::of(trials);
        let (point, belief) = match self.method {
            SearchMethod::Process => incumbent(&Process::fit(self.space, trials, &scaled)?, trials)?,
            _ => by_means(trials, &scaled)?,
        };
        let (mean, sd) = scaled.logarithm(belief);
        Some(Incumbent { point, mean, sd })
    }

    /// What is believed of a point that was tried, as of the best; `None` before its first trial
    /// that did not fail.
    pub fn estimate(&self, trials: &[SearchTrial], point: &[usize]) -> Option<Incumbent> {
        let trials = &held(trials);
        let scaled = Scaled::of(trials);
        let belief = match self.method {
            SearchMethod::Process => {
                let is_known = |trial: &&SearchTrial| trial.point == point && trial.value.is_some();
                trials.iter().find(is_known)?;
                Process::fit(self.space, trials, &scaled)?.believe(point)
            }
            _ => mean_of(trials, &scaled, point)?,
        };
        let (mean, sd) = scaled.logarithm(belief);
        let point = point.to_vec();
        Some(Incumbent { point, mean, sd })
    }

    /// How much of what the settings changed is each knob's doing, in parts of 1; `None` before
    /// there is anything to go by.
    pub fn importance(&self, trials: &[SearchTrial]) -> Option<Vec<f64>> {
        let trials = &held(trials);
        Process::fit(self.space, trials, &Scaled::of(trials))?.importance()
    }

    fn by_model(
        &self,
        (trials, held, block): (&[SearchTrial], &[SearchTrial], u32),
        random: &mut Xoshiro256PlusPlus,
    ) -> Option<Suggestion> {
        let scaled = Scaled::of(held);
        let model: Box<dyn Surrogate + '_> = match self.method {
            SearchMethod::Forest => Box::new(Forest::fit(self.space, held, &scaled, random)),
            _ => Box::new(Process::fit(self.space, held, &scaled)?),
        };
        let Some((best, belief)) = incumbent(&*model, held) else {
            return self.by_turn(self.new_point((trials, block), random));
        };
        let own = || trials.iter().filter(|trial| trial.point == best);
        let counted = own().filter(|trial| trial.holds || trial.ended_by_guard);
        if counted.count() < TRUSTED_AFTER && own().all(|trial| trial.block != block && !trial.ended_by_guard)
        {
            return Some(Suggestion {
                point: best,
                reason: Reason::Again,
            });
        }
        let weight = PRIOR_TRIALS / count(trials.len().max(1));
        let merit = |point: &[usize]| {
            let of = model.believe(point);
            log_improvement(of, belief.mean) + weight * self.space.log_prior(point)
        };
        let (point, of) = self.most(&merit, &*model, (trials, block), &best, random)?;
        let (mean, sd) = scaled.logarithm(of);
        let (to_beat, sd_to_beat) = scaled.logarithm(belief);
        Some(Suggestion {
            point,
            reason: Reason::Improvement {
                expected: mean - to_beat,
                sd: sd.hypot(sd_to_beat),
            },
        })
    }

    /// The new point of most merit: the best of many by chance, improved knob by knob.
    fn most(
        &self,
        merit: &dyn Fn(&[usize]) -> f64,
        model: &dyn Surrogate,
        trials: (&[SearchTrial], u32),
        best: &[usize],
        random: &mut Xoshiro256PlusPlus,
    ) -> Option<(Point, Belief)> {
        let is_new = |point: &[usize]| self.is_new(point, trials);
        let mut found: Vec<(f64, Point)> = Vec::new();
        let consider = |point: Point, found: &mut Vec<(f64, Point)>| {
            if is_new(&point) {
                found.push((merit(&point), point));
            }
        };
        for turn in 0..DRAWN {
            let mut point = self.space.draw(random);
            if turn % 2 == 0 {
                // Near the best: most of its levels.
                let kept = uniform(random);
                for (level, of_best) in point.iter_mut().zip(best) {
                    if uniform(random) < kept {
                        *level = *of_best;
                    }
                }
            }
            consider(point, &mut found);
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found.truncate(IMPROVED);
        for (reached, point) in &mut found {
            loop {
                let begun = *reached;
                for (knob, dimension) in self.space.dimensions().iter().enumerate() {
                    for level in 0..dimension.levels.len() {
                        let mut other = point.clone();
                        other[knob] = level;
                        if other != *point && is_new(&other) {
                            let of = merit(&other);
                            if of > *reached {
                                (*reached, *point) = (of, other);
                            }
                        }
                    }
                }
                if *reached <= begun {
                    break;
                }
            }
        }
        let (_, point) = found.into_iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        let of = model.believe(&point);
        Some((point, of))
    }

    fn new_point(&self, trials: (&[SearchTrial], u32), random: &mut Xoshiro256PlusPlus) -> Option<Point> {
        (0..ATTEMPTS)
            .map(|_| self.space.draw(random))
            .find(|point| self.is_new(point, trials))
    }

    /// The best so far with one level changed that it was not tried with.
    fn one_at_a_time(
        &self,
        (trials, held, block): (&[SearchTrial], &[SearchTrial], u32),
        random: &mut Xoshiro256PlusPlus,
    ) -> Option<Point> {
        let (best, _) = by_means(held, &Scaled::of(held))?;
        let turn = trials.len();
        let knobs = self.space.dimensions().len();
        for i in 0..knobs {
            let knob = (turn + i) % knobs;
            let levels = self.space.dimensions()[knob].levels.len();
            let first = below(levels, random);
            for level in (0..levels).map(|level| (first + level) % levels) {
                let mut point = best.clone();
                point[knob] = level;
                if self.is_new(&point, (trials, block)) {
                    return Some(point);
                }
            }
        }
        None
    }

    fn by_densities(
        &self,
        (trials, held, block): (&[SearchTrial], &[SearchTrial], u32),
        random: &mut Xoshiro256PlusPlus,
    ) -> Option<Point> {
        let scaled = Scaled::of(held);
        let mut order: Vec<usize> = (0..held.len()).collect();
        order.sort_by(|&a, &b| scaled.values[b].total_cmp(&scaled.values[a]));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of a count"
        )]
        let good = ((count(held.len()) * GOOD).ceil() as usize).max(1);
        let (good, bad) = order.split_at(good.min(order.len()));
        // Each knob apart: how often a level, or one like it, is among them, with the prior as one
        // trial.
        let density = |knob: usize, rows: &[usize]| -> Vec<f64> {
            let dimension = &self.space.dimensions()[knob];
            let all: f64 = dimension.levels.iter().map(|level| level.prior).sum();
            let levels = 0..dimension.levels.len();
            let near = |level: usize| -> f64 {
                let alike = rows
                    .iter()
                    .map(|&row| dimension.likeness(level, held[row].point[knob]).powi(4));
                alike.sum::<f64>() + dimension.levels[level].prior / all
            };
            let weights: Vec<f64> = levels.map(near).collect();
            let sum: f64 = weights.iter().sum();
            weights.iter().map(|weight| weight / sum).collect()
        };
        let knobs = 0..self.space.dimensions().len();
        let of: Vec<(Vec<f64>, Vec<f64>)> = knobs
            .map(|knob| (density(knob, good), density(knob, bad)))
            .collect();
        let mut best: Option<(f64, Point)> = None;
        for _ in 0..DRAWN {
            let point: Point = of.iter().map(|(good, _)| weighted(good, random)).collect();
            let each = of.iter().zip(&point);
            let merit: f64 = each
                .map(|((good, bad), &level)| (good[level] / bad[level]).ln())
                .sum();
            let is_new = self.is_new(&point, (trials, block));
            if is_new && best.as_ref().is_none_or(|(most, _)| merit > *most) {
                best = Some((merit, point));
            }
        }
        best.map(|(_, point)| point)
    }
}

/// The trials that say something of their points.
fn held(trials: &[SearchTrial]) -> Vec<SearchTrial> {
    trials.iter().filter(|trial| trial.holds).cloned().collect()
}

/// The tried point of which most is believed, of those with a trial that did not fail.
fn incumbent(model: &dyn Surrogate, trials: &[SearchTrial]) -> Option<(Point, Belief)> {
    let tried = trials.iter().filter(|trial| trial.value.is_some());
    tried
        .map(|trial| (trial.point.clone(), model.believe(&trial.point)))
        .max_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean))
}

/// The point with the largest mean of its own trials, for methods without a model of noise.
fn by_means(trials: &[SearchTrial], scaled: &Scaled) -> Option<(Point, Belief)> {
    let tried = trials.iter().filter(|trial| trial.value.is_some());
    tried
        .filter_map(|trial| Some((trial.point.clone(), mean_of(trials, scaled, &trial.point)?)))
        .max_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean))
}

/// The mean of a point's trials; `None` where none of them gave a value.
fn mean_of(trials: &[SearchTrial], scaled: &Scaled, point: &[usize]) -> Option<Belief> {
    let own = trials
        .iter()
        .zip(&scaled.values)
        .filter(|(trial, _)| trial.point == point);
    own.clone().find(|(trial, _)| trial.value.is_some())?;
    let own: Vec<f64> = own.map(|(_, value)| *value).collect();
    Some(Belief {
        mean: own.iter().sum::<f64>() / count(own.len()),
        sd: f64::NAN,
    })
}

/// Logarithm of the expected improvement over `to_beat`.
fn log_improvement(of: Belief, to_beat: f64) -> f64 {
    /// So far below, the density underflows: the first term of its series is taken.
    const HOPELESS: f64 = -8.0;
    const HALF_LN_TWO_PI: f64 = 0.918_938_533_204_672_8;
    let sd = of.sd.max(1e-9);
    let z = (of.mean - to_beat) / sd;
    if z < HOPELESS {
        return sd.ln() - z * z / 2.0 - 2.0 * (-z).ln() - HALF_LN_TWO_PI;
    }
    let normal = Normal::standard();
    (sd * (z * normal.cdf(z) + normal.pdf(z)))
        .max(f64::MIN_POSITIVE)
        .ln()
}
