//! A Gaussian process over the levels of knobs whose effects add up, with interactions of those
//! that matter: the kernel is the sum of one of each knob and of the products of two (Duvenaud,
//! Nickisch, Rasmussen 2011, "Additive Gaussian Processes"), so thirty trials say something of
//! forty knobs. Blocks have a level of their own.

use super::model::{Belief, Scaled, Surrogate};
use super::space::{SearchTrial, Space};
use crate::matrix::{Lower, cholesky, count};

/// Variances, in units of the spread of the values.
#[derive(Debug, Clone)]
struct Variances {
    /// Of each knob's own effect.
    knobs: Vec<f64>,
    /// Of interactions of two, as a part of the product of theirs.
    pairs: f64,
    blocks: f64,
    noise: f64,
}

/// The overall level is unknown.
const LEVEL: f64 = 4.0;
/// Before any trial: what interactions, blocks and noise are taken to be.
const PAIRS: f64 = 0.3;
const BLOCKS: f64 = 0.02;
const NOISE: f64 = 0.05;
/// How far a variance may be from that: the standard deviation of its logarithm.
const DOUBT: f64 = 0.7;
/// Rounds over all variances, and factors that are tried in each.
const ROUNDS: usize = 3;
const FACTORS: [f64; 4] = [0.1, 1.0 / 3.0, 3.0, 10.0];
const SMALLEST_NOISE: f64 = 1e-4;

pub(super) struct Process<'a> {
    space: &'a Space,
    trials: Vec<&'a SearchTrial>,
    variances: Variances,
    factor: Lower,
    /// The inverse of the covariance times the values.
    weights: Vec<f64>,
}

impl Variances {
    fn before(space: &Space) -> Variances {
        let all: f64 = space.dimensions().iter().map(|knob| knob.relevance).sum();
        Variances {
            knobs: space
                .dimensions()
                .iter()
                .map(|knob| knob.relevance / all)
                .collect(),
            pairs: PAIRS,
            blocks: BLOCKS,
            noise: NOISE,
        }
    }

    fn len(&self) -> usize {
        self.knobs.len() + 3
    }

    fn get_mut(&mut self, i: usize) -> &mut f64 {
        let knobs = self.knobs.len();
        match i.checked_sub(knobs) {
            None => &mut self.knobs[i],
            Some(0) => &mut self.pairs,
            Some(1) => &mut self.blocks,
            Some(_) => &mut self.noise,
        }
    }

    /// Of two points by how alike their levels are, without block and noise.
    fn covariance(&self, likeness: impl Iterator<Item = f64>) -> f64 {
        let (mut sum, mut squares) = (0.0, 0.0);
        for (variance, alike) in self.knobs.iter().zip(likeness) {
            let own = variance * alike;
            sum += own;
            squares += own * own;
        }
        LEVEL + sum + self.pairs * (sum * sum - squares) / 2.0
    }
}

impl<'a> Process<'a> {
    /// The process that explains these trials best, of those that are likely beforehand.
    pub(super) fn fit(space: &'a Space, trials: &'a [SearchTrial], scaled: &Scaled) -> Option<Process<'a>> {
        let trials: Vec<&SearchTrial> = trials.iter().collect();
        let knobs = space.dimensions().len();
        let n = trials.len();
        // How alike the levels of each pair of trials are, knob by knob.
        let mut likeness = vec![0.0; n * n * knobs];
        for i in 0..n {
            for j in 0..=i {
                for (k, dimension) in space.dimensions().iter().enumerate() {
                    likeness[(i * n + j) * knobs + k] =
                        dimension.likeness(trials[i].point[k], trials[j].point[k]);
                }
            }
        }
        let covariance = |variances: &Variances| -> Option<Lower> {
            cholesky(n, |i, j| {
                let start = (i * n + j) * knobs;
                let own = variances.covariance(likeness[start..start + knobs].iter().copied());
                let block = f64::from(u8::from(trials[i].block == trials[j].block)) * variances.blocks;
                let noise = f64::from(u8::from(i == j)) * variances.noise.max(SMALLEST_NOISE);
                own + block + noise
            })
        };
        let before = Variances::before(space);
        let score = |variances: &mut Variances| -> Option<f64> {
            let factor = covariance(variances)?;
            let half = factor.solve(&scaled.values);
            let fit = -0.5 * half.iter().map(|v| v * v).sum::<f64>() - factor.log_of_diagonal();
            let mut usual = before.clone();
            let far: f64 = (0..variances.len())
                .map(|i| (*variances.get_mut(i) / *usual.get_mut(i)).ln() / DOUBT)
                .map(|far| far * far)
                .sum();
            Some(fit - 0.5 * far)
        };
        let mut best = before.clone();
        let mut reached = score(&mut best)?;
        for _ in 0..ROUNDS {
            let begun = reached;
            for i in 0..best.len() {
                let middle = best.clone();
                for factor in FACTORS {
                    let mut other = middle.clone();
                    *other.get_mut(i) *= factor;
                    if let Some(found) = score(&mut other).filter(|found| *found > reached) {
                        (best, reached) = (other, found);
                    }
                }
            }
            if reached - begun < 0.1 {
                break;
            }
        }
        let factor = covariance(&best)?;
        let weights = factor.solve_transposed(&factor.solve(&scaled.values));
        Some(Process {
            space,
            trials,
            variances: best,
            factor,
            weights,
        })
    }

    /// Each knob's part of what the knobs change: the variance of the mean over its levels, with
    /// the others as a trial had them, of all trials together. `None` where nothing changes
    /// anything.
    pub(super) fn importance(&self) -> Option<Vec<f64>> {
        let mut parts = vec![0.0; self.space.dimensions().len()];
        for trial in &self.trials {
            for (k, dimension) in self.space.dimensions().iter().enumerate() {
                let mut point = trial.point.clone();
                let means = (0..dimension.levels.len()).map(|level| {
                    point[k] = level;
                    self.mean(&self.likeness_to_trials(&point))
                });
                parts[k] += variance(&means.collect::<Vec<_>>());
            }
        }
        let all: f64 = parts.iter().sum();
        (all > 0.0).then(|| parts.iter().map(|own| own / all).collect())
    }

    fn likeness(&self, a: &[usize], b: &[usize]) -> f64 {
        let each = self.space.dimensions().iter().zip(a.iter().zip(b));
        let each = each.map(|(knob, (&a, &b))| knob.likeness(a, b));
        self.variances.covariance(each)
    }

    fn likeness_to_trials(&self, point: &[usize]) -> Vec<f64> {
        let trials = self.trials.iter();
        trials.map(|trial| self.likeness(point, &trial.point)).collect()
    }

    /// The mean at a point that is so alike to the trials.
    fn mean(&self, with: &[f64]) -> f64 {
        with.iter().zip(&self.weights).map(|(a, b)| a * b).sum()
    }
}

/// The mean square of the distances from the mean.
fn variance(values: &[f64]) -> f64 {
    let n = count(values.len());
    let mean = values.iter().sum::<f64>() / n;
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n
}

impl Surrogate for Process<'_> {
    fn believe(&self, point: &[usize]) -> Belief {
        let with = self.likeness_to_trials(point);
        let half = self.factor.solve(&with);
        let left = self.likeness(point, point) - half.iter().map(|v| v * v).sum::<f64>();
        Belief {
            mean: self.mean(&with),
            sd: left.max(0.0).sqrt(),
        }
    }
}
