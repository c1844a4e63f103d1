//! The Universal Scalability Law X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)), fitted to
//! throughputs.
//!
//! lambda is the throughput of one client (or CPU), sigma the share of work that queues for
//! something common, kappa the cost of keeping each two of them coherent; the curve peaks at N* =
//! sqrt((1 - sigma) / kappa) (source: Gunther, *Guerrilla Capacity Planning*, Springer 2007,
//! chapters 4 to 6). The fit is least squares on ln X, for the spread between trials is a ratio;
//! lambda > 0, 0 <= sigma <= 1, kappa >= 0. Intervals are profile likelihoods: a value belongs to
//! the interval where the best curve that has it is not worse than the best of all by more than t^2
//! variances (source: Bates & Watts, *Nonlinear Regression Analysis and Its Applications*, Wiley
//! 1988, chapter 6). Unlike a bootstrap they need no seed, hold with one trial per N, and know the
//! bounds of the parameters.

use crate::heights::{Height, levelled};
use crate::reciprocal::{Minimum, Plane, minimise, minimise_through, value};
use crate::search::{best_on, edge, first_at_most};
use crate::spread::{Estimate, OpenEstimate, Sample, Spread, count, spread, student};

/// One measured throughput.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UslPoint {
    /// Block of trials that it is of.
    pub block: u32,
    /// Clients, CPUs: at least 1. Replicates are points with the same `n`.
    pub n: f64,
    /// Throughput in any unit; positive.
    pub value: f64,
}

/// Why the law is not fitted.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum UslError {
    /// Three parameters and a spread need four different N.
    #[error(
        "the scalability law needs at least {FEWEST_LEVELS} different N and there are {found}: measure more of them"
    )]
    TooFewLevels {
        /// How many different N there are among the points.
        found: usize,
    },
    /// A point that has no logarithm.
    #[error(
        "point {index} (from 0) of the scalability law: {what} is {value}, expected a finite number above 0"
    )]
    NotPositive {
        /// Place among the points given, from 0.
        index: usize,
        /// Name of the value within a sentence: "the value".
        what: &'static str,
        /// The value at fault: not finite, 0 or negative.
        value: f64,
    },
    /// An N below 1, where the law is not defined.
    #[error("point {index} (from 0) of the scalability law: N is {value}, expected at least 1")]
    BelowOne {
        /// Place among the points given, from 0.
        index: usize,
        /// The N at fault, below 1.
        value: f64,
    },
    /// No minimum was found, or one without a throughput at N = 1.
    #[error("the scalability law does not fit these points: the search for its parameters does not converge")]
    DoesNotConverge,
}

/// Fewest different N: one more than parameters.
const FEWEST_LEVELS: usize = 4;
/// How far above the largest measured N peaks and needs are looked for, as a ratio. Beyond it
/// nothing can be said.
const FURTHEST: f64 = 1000.0;

/// The three parameters with their intervals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UslParameters {
    /// Throughput at N = 1.
    pub lambda: Estimate,
    /// Contention: the serial share of the work, 0 to 1.
    pub sigma: Estimate,
    /// Coherency: the cost of agreement between each pair of N, from 0.
    pub kappa: Estimate,
}

/// The peak of the curve among N >= 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UslPeak {
    /// Where it is; 1 where throughput only falls.
    pub n: OpenEstimate,
    /// How high it is; with kappa = 0 the limit lambda / sigma that is never quite reached. Its
    /// lower bound is the highest point of the lower bounds of all X(N), a little lower than the
    /// profile's own: on the safe side.
    pub value: OpenEstimate,
}

/// The least N that gives a wanted throughput.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UslNeed {
    /// By the fitted curve; `None` where its peak is below what is wanted.
    pub n: Option<f64>,
    /// By the upper bounds of the curve; `None` where even these do not reach it.
    pub low: Option<f64>,
    /// By the lower bounds of the curve; `None` where these do not reach it.
    pub high: Option<f64>,
}

/// The law fitted to points, with what its intervals are made from.
#[derive(Debug, Clone, PartialEq)]
pub struct UslFit {
    samples: Vec<Sample>,
    best: Minimum,
    spread: Spread,
    /// How well the blocks determine the height; `None` for one block.
    height: Option<Height>,
    largest_n: f64,
}

/// How far from the best a curve of an interval may be.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Standard errors: the quantile of Student's t.
    t: f64,
    /// Standard errors, on the log scale, by which all of the curve may be higher or lower beyond
    /// that.
    height: f64,
}

/// Fits the law. Points may come in any order; see [`UslError`] for what is refused.
pub fn fit_usl(points: &[UslPoint]) -> Result<UslFit, UslError> {
    for (index, point) in points.iter().enumerate() {
        for (what, value) in [("N", point.n), ("the value", point.value)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(UslError::NotPositive { index, what, value });
            }
        }
        if point.n < 1.0 {
            return Err(UslError::BelowOne {
                index,
                value: point.n,
            });
        }
    }
    let mut levels: Vec<f64> = points.iter().map(|p| p.n).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    if levels.len() < FEWEST_LEVELS {
        return Err(UslError::TooFewLevels { found: levels.len() });
    }
    let samples: Vec<Sample> = points
        .iter()
        .map(|p| Sample {
            level: p.n,
            log_value: p.value.ln(),
            block: p.block,
        })
        .collect();
    let largest_n = levels[levels.len() - 1];
    let law = |samples: &[Sample]| from_anywhere(samples, largest_n);
    let log_at = |best: &Minimum, n: f64| value(&best.coefficients, n).ln();
    let found = levelled(&samples, law, log_at).ok_or(UslError::DoesNotConverge)?;
    let best = found.fit;
    let spread = spread(&found.samples, best.sum, 3).ok_or(UslError::DoesNotConverge)?;
    if value(&best.coefficients, 1.0).is_finite() {
        Ok(UslFit {
            samples: found.samples,
            best,
            spread,
            height: found.height,
            largest_n,
        })
    } else {
        Err(UslError::DoesNotConverge)
    }
}

/// The best minimum of three beginnings: nearly linear, saturated, falling.
fn from_anywhere(samples: &[Sample], largest_n: f64) -> Option<Minimum> {
    let most = |of: &dyn Fn(&Sample) -> f64| samples.iter().map(of).fold(0.0, f64::max);
    let steepest = most(&|s| s.log_value.exp() / s.level);
    let highest = most(&|s| s.log_value.exp());
    let (a, s, c) = (1.0 / steepest, 1.0 / highest, 1.0 / (highest * largest_n));
    [
        [a, 0.01 * s, 0.01 * c],
        [0.9 * a, 0.9 * s, 0.1 * c],
        [0.9 * a, 0.2 * s, 0.8 * c],
    ]
    .iter()
    .filter_map(|start| minimise(samples, &Plane::whole(), start))
    .min_by(|a, b| a.sum.total_cmp(&b.sum))
}

impl UslFit {
    /// Throughput at N = 1, in the unit of the points.
    pub fn lambda(&self) -> f64 {
        let [a, s, _] = self.best.coefficients;
        1.0 / (a + s)
    }

    /// Contention: the serial share of the work, 0 to 1.
    pub fn sigma(&self) -> f64 {
        let [a, s, _] = self.best.coefficients;
        s / (a + s)
    }

    /// Coherency: the cost of agreement between each pair of N, from 0.
    pub fn kappa(&self) -> f64 {
        let [a, s, c] = self.best.coefficients;
        c / (a + s)
    }

    /// X(n), the curve itself; `n` at least 1.
    pub fn at(&self, n: f64) -> f64 {
        value(&self.best.coefficients, n)
    }

    /// The spread of points around the curve as a ratio: 0.03 means 3 %.
    pub fn spread_ratio(&self) -> f64 {
        self.spread.variance.sqrt().exp_m1()
    }

    /// Degrees of freedom of the spread: of the points, or of the levels where the curve misses
    /// their means by more than their replicates explain.
    pub fn degrees_of_freedom(&self) -> f64 {
        self.spread.degrees_of_freedom
    }

    /// The parameters with intervals. `None` for a confidence outside of 0 to 1.
    pub fn parameters(&self, confidence: f64) -> Option<UslParameters> {
        let limits = self.limits(confidence)?;
        let [a, s, c] = self.best.coefficients;
        let sigma = |held: f64| {
            let plane = Plane::of(&[[1.0 - held, held, 0.0], [0.0, 0.0, 1.0]]);
            self.distance(minimise(&self.samples, &plane, &[a + s, c]))
        };
        let kappa = |held: f64| {
            let plane = Plane::of(&[[1.0, 0.0, held], [0.0, 1.0, held]]);
            self.distance(minimise(&self.samples, &plane, &[a, s]))
        };
        let least = 0.001 / self.largest_n.powi(2);
        Some(UslParameters {
            lambda: self.interval(1.0, limits),
            sigma: Estimate {
                value: self.sigma(),
                low: edge(sigma, self.sigma(), 0.0, 0.01, limits.t).unwrap_or(0.0),
                high: Some(edge(sigma, self.sigma(), 1.0, 0.01, limits.t).unwrap_or(1.0)),
            },
            kappa: Estimate {
                value: self.kappa(),
                low: edge(kappa, self.kappa(), 0.0, 0.1 * self.kappa() + least, limits.t).unwrap_or(0.0),
                high: edge(
                    kappa,
                    self.kappa(),
                    f64::INFINITY,
                    0.1 * self.kappa() + least,
                    limits.t,
                ),
            },
        })
    }

    /// X(n) with the interval of the curve there (not of a single further trial). `None` for n
    /// below 1 or a confidence outside of 0 to 1.
    pub fn interval_at(&self, n: f64, confidence: f64) -> Option<Estimate> {
        let limits = self.limits(confidence)?;
        (n.is_finite() && n >= 1.0).then(|| self.interval(n, limits))
    }

    /// The peak with intervals. `None` for a confidence outside of 0 to 1.
    pub fn peak(&self, confidence: f64) -> Option<UslPeak> {
        let limits = self.limits(confidence)?;
        Some(UslPeak {
            n: self.peak_place(limits.t),
            value: self.peak_value(limits),
        })
    }

    fn peak_place(&self, t: f64) -> OpenEstimate {
        let [a, s, c] = self.best.coefficients;
        // N* = 1 / sqrt(z) where c = z a: the best curves with that peak.
        let profile = |z: f64| {
            let plane = Plane::of(&[[1.0, 0.0, z], [0.0, 1.0, 0.0]]);
            self.distance(minimise(&self.samples, &plane, &[a, s]))
        };
        let z = c / a;
        let place = |z: f64| z.sqrt().recip().max(1.0);
        if c > 0.0 && z.is_finite() {
            let first = 0.1 * z;
            OpenEstimate {
                value: Some(place(z)),
                low: Some(edge(profile, z, f64::INFINITY, first, t).map_or(1.0, place)),
                high: edge(profile, z, 0.0, first, t).map(place),
            }
        } else if c > 0.0 {
            OpenEstimate {
                value: Some(1.0),
                low: Some(1.0),
                high: self.last_peak(profile, t).map(place),
            }
        } else {
            let first = 0.001 / self.largest_n.powi(2);
            OpenEstimate {
                value: None,
                low: edge(profile, 0.0, f64::INFINITY, first, t).map(place),
                high: None,
            }
        }
    }

    /// Where a curve that only falls could still have its peak.
    fn last_peak(&self, profile: impl Fn(f64) -> f64, t: f64) -> Option<f64> {
        edge(|y| profile(1.0 / y), 0.0, f64::INFINITY, 0.01, t).map(f64::recip)
    }

    /// The fitted curve's peak: where it is, and how high. Without a place the height is a limit;
    /// without a height there is none.
    pub(crate) fn summit(&self) -> (Option<f64>, Option<f64>) {
        let [a, s, c] = self.best.coefficients;
        if c > 0.0 {
            let place = (a / c).sqrt().max(1.0);
            (Some(place), Some(self.at(place)))
        } else {
            (None, (s > 0.0).then(|| 1.0 / s))
        }
    }

    fn peak_value(&self, limits: Limits) -> OpenEstimate {
        let [a, s, _] = self.best.coefficients;
        // Proportional to N without end, or with an end?
        let linear = minimise(&self.samples, &Plane::of(&[[1.0, 0.0, 0.0]]), &[a + s]);
        let bounded = self.distance(linear) > limits.t;
        let (first, last) = (0.0, (FURTHEST * self.largest_n).ln());
        OpenEstimate {
            value: self.summit().1,
            low: best_on(|u: f64| self.bound(u.exp(), -1.0, limits), first, last),
            high: if bounded {
                best_on(|u: f64| self.bound(u.exp(), 1.0, limits), first, last)
            } else {
                None
            },
        }
    }

    /// The least N that gives `target`. Below N = 1 it is proportional to what one gives, which a
    /// curve of this kind cannot fall short of. `None` for a target that is not positive or a
    /// confidence outside of 0 to 1.
    pub fn need(&self, target: f64, confidence: f64) -> Option<UslNeed> {
        let limits = self.limits(confidence)?;
        if !(target.is_finite() && target > 0.0) {
            return None;
        }
        let off = |u: f64| self.off(u.exp(), target, limits);
        // How far the curve at N is below the target, in standard errors: it falls towards the
        // peak.
        let missing = |u: f64| {
            if self.at(u.exp()) >= target {
                -off(u)
            } else {
                off(u)
            }
        };
        let n = self.first_reaching(target);
        let last = (FURTHEST * self.largest_n).ln();
        let one = self.interval(1.0, limits);
        let low = match n {
            _ if one.high.is_none_or(|one| one >= target) => {
                one.high.map_or(Some(0.0), |one| Some(target / one))
            }
            Some(n) => Some(edge(off, n.ln(), 0.0, 0.02, limits.t).map_or(1.0, f64::exp)),
            None => first_at_most(missing, limits.t, 0.0, last).map(f64::exp),
        };
        let high = match n {
            _ if one.low >= target => Some(target / one.low),
            Some(n) => first_at_most(missing, -limits.t, n.max(1.0).ln(), last).map(f64::exp),
            None => None,
        };
        Some(UslNeed { n, low, high })
    }

    /// The smaller root of c N^2 - (1 / target - s + c) N + a = 0.
    fn first_reaching(&self, target: f64) -> Option<f64> {
        let [a, s, c] = self.best.coefficients;
        if self.at(1.0) >= target {
            return Some(target / self.at(1.0));
        }
        let b = 1.0 / target - s + c;
        let discriminant = b * b - 4.0 * a * c;
        // A curve that falls from the first on reaches more only where the law is not defined.
        (b > 0.0 && discriminant >= 0.0)
            .then(|| 2.0 * a / (b + discriminant.sqrt()))
            .filter(|&n| n >= 1.0)
    }

    fn interval(&self, n: f64, limits: Limits) -> Estimate {
        Estimate {
            value: self.at(n),
            low: self.bound(n, -1.0, limits).unwrap_or(0.0),
            high: self.bound(n, 1.0, limits),
        }
    }

    /// The lower (`side` -1) or upper (1) bound of X(n).
    fn bound(&self, n: f64, side: f64, limits: Limits) -> Option<f64> {
        let profile = |log: f64| self.off(n, log.exp(), limits);
        let limit = side * f64::INFINITY;
        let first = 0.5 * limits.t * self.spread.variance.sqrt() / count(self.samples.len()).sqrt();
        edge(profile, self.at(n).ln(), limit, first.max(1e-9), limits.t).map(f64::exp)
    }

    /// How far the best curve through `value` at `n` is from the best of all, in standard errors:
    /// those of its shape within blocks and of its height between them, which add up as variances
    /// do.
    fn off(&self, n: f64, value: f64, limits: Limits) -> f64 {
        let within = minimise_through(&self.samples, n, value, &self.best.coefficients);
        let within = self.distance(within);
        let way = (value / self.at(n)).ln().abs();
        if limits.height <= 0.0 || way <= 0.0 {
            return within;
        }
        // Where no curve of the law goes, a higher or lower one still does.
        let own = if within.is_finite() { way / within } else { 0.0 };
        way / own.hypot(limits.height)
    }

    /// How far a minimum is from the best, in standard errors; infinite where there is none.
    fn distance(&self, minimum: Option<Minimum>) -> f64 {
        let Some(minimum) = minimum else {
            return f64::INFINITY;
        };
        let more = (minimum.sum - self.best.sum).max(0.0);
        // Points that are on the curve to the last digit leave rounding errors, not a spread.
        (more / self.spread.variance.max(ROUNDING)).sqrt()
    }

    fn limits(&self, confidence: f64) -> Option<Limits> {
        if !(confidence > 0.0 && confidence < 1.0) {
            return None;
        }
        let t = student(confidence, self.spread.degrees_of_freedom)?;
        // A part of the height's variance is that within blocks, which the curve's own intervals
        // have already.
        let own = t.powi(2) * self.spread.variance / count(self.samples.len());
        let height = self
            .height
            .and_then(|height| height.half_width_squared(confidence));
        Some(Limits {
            t,
            height: (height.unwrap_or(0.0) - own).max(0.0).sqrt() / t,
        })
    }

    /// The sum of squared residuals, and the variance of one of them.
    pub(crate) fn misfit(&self) -> (f64, f64) {
        (self.best.sum, self.spread.variance)
    }
}

/// Variance of logs below which there is nothing but rounding.
const ROUNDING: f64 = 1e-18;

#[cfg(test)]
mod tests;
