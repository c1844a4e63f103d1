//! Comparisons without blocks: trials of two experiments, hosts or versions, and two single trials.
//!
//! Without blocks drift between the sides does not cancel: that they were measured alike is up to
//! the caller. Two samples of trials have Welch's interval on the log scale (source: Welch 1947,
//! *Biometrika* 34, 28-35; degrees of freedom by Satterthwaite 1946, *Biometrics Bulletin* 2,
//! 110-114). Two single trials have only their own seconds: these show how well the mean of this
//! very trial is known, nothing of how trials differ, and the result says so.

use crate::autocorrelation::{autocorrelation, variance_factor};
use crate::spread::{count, student};
use crate::steady::{Steadiness, steadiness};
use crate::summary::MeanInterval;
use crate::verdict::{Effect, Rules, verdict};

/// What an interval was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Several trials of each side: it holds for further trials.
    Trials,
    /// The seconds of one trial of each side: it holds for these two trials only. Trials of one and
    /// the same treatment usually differ by more.
    WithinOneTrial,
}

/// The ratio of two samples that no blocks pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compared {
    /// test / reference; `blocks` is 0.
    pub effect: Effect,
    /// Whether it holds for further trials, or for these two alone.
    pub basis: Basis,
}

/// How well the mean of one trial is known from its seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WithinTrial {
    /// The mean with its interval, in the unit of the values.
    pub mean: MeanInterval,
    /// Number of independent values whose mean has the same standard error.
    pub effective_size: f64,
    /// Estimated correlation of a value with the next one, at least 0.
    pub autocorrelation: f64,
    /// Whether the seconds have a trend; then their mean is one of something that changed.
    pub steadiness: Option<Steadiness>,
}

/// Fewer seconds than this show nothing of their correlation.
const FEWEST_SECONDS: usize = 10;

/// The ratio of the means of two samples of positive values, one value per trial, on the log scale
/// (so the ratio of geometric means). `comparisons`: how many such ratios are evaluated together;
/// the intervals hold together (Bonferroni). Values that are not finite and positive are skipped.
/// `None` with fewer than two trials of a side, no comparison, or a confidence outside of 0 to 1.
pub fn compare_samples(
    test: &[f64],
    reference: &[f64],
    comparisons: usize,
    rules: Rules,
) -> Option<Compared> {
    let (test, reference) = (Side::of_logs(test)?, Side::of_logs(reference)?);
    between(test, reference, comparisons, rules, Basis::Trials)
}

/// The mean of equally spaced values of one trial, seconds as a rule, with its interval.
///
/// Neighbouring seconds are alike, so n of them know less than n independent values: n (1 - r) /
/// (1 + r) for a process whose values depend on the one before with correlation r (the effective
/// sample size of an AR(1) process, as in [`steadiness`]), with r corrected for its bias. `None`
/// for fewer than ten values, values that are not finite, or a confidence outside of 0 to 1.
pub fn within_trial_interval(values: &[f64], confidence: f64) -> Option<WithinTrial> {
    let n = values.len();
    if n < FEWEST_SECONDS || !values.iter().all(|v| v.is_finite()) || !(confidence > 0.0 && confidence < 1.0)
    {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count(n);
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    let r = autocorrelation(values);
    let effective_size = (count(n) / variance_factor(r)).max(2.0);
    // The spread around their own mean is too small by what the mean itself moves.
    let variance = squares / count(n) / (1.0 - 1.0 / effective_size);
    let margin = student(confidence, effective_size - 1.0)? * (variance / effective_size).sqrt();
    Some(WithinTrial {
        mean: MeanInterval {
            mean,
            low: mean - margin,
            high: mean + margin,
        },
        effective_size,
        autocorrelation: r,
        steadiness: steadiness(values),
    })
}

/// The ratio of the means of two single trials, from their seconds: see [`within_trial_interval`],
/// and [`Basis::WithinOneTrial`] for what it does not show. `None` as there, and where a mean is
/// not positive.
pub fn compare_within(test: &[f64], reference: &[f64], rules: Rules) -> Option<Compared> {
    let side = |values: &[f64]| Side::of_seconds(values, rules.confidence);
    between(side(test)?, side(reference)?, 1, rules, Basis::WithinOneTrial)
}

/// One side of a ratio.
struct Side {
    /// Natural logarithm of the mean.
    log_mean: f64,
    /// Variance of `log_mean`.
    variance: f64,
    degrees_of_freedom: f64,
}

impl Side {
    fn of_logs(values: &[f64]) -> Option<Side> {
        let logs: Vec<f64> = values
            .iter()
            .filter(|v| v.is_finite() && **v > 0.0)
            .map(|v| v.ln())
            .collect();
        let degrees_of_freedom = count(logs.len().checked_sub(1).filter(|&df| df > 0)?);
        let log_mean = logs.iter().sum::<f64>() / count(logs.len());
        let squares: f64 = logs.iter().map(|v| (v - log_mean).powi(2)).sum();
        Some(Side {
            log_mean,
            variance: squares / degrees_of_freedom / count(logs.len()),
            degrees_of_freedom,
        })
    }

    /// The variance of the log of a mean is about that of the mean, relative to it.
    fn of_seconds(values: &[f64], confidence: f64) -> Option<Side> {
        let found = within_trial_interval(values, confidence)?;
        let degrees_of_freedom = found.effective_size - 1.0;
        let error = (found.mean.high - found.mean.mean) / student(confidence, degrees_of_freedom)?;
        (found.mean.mean > 0.0).then(|| Side {
            log_mean: found.mean.mean.ln(),
            variance: (error / found.mean.mean).powi(2),
            degrees_of_freedom,
        })
    }
}

fn between(test: Side, reference: Side, comparisons: usize, rules: Rules, basis: Basis) -> Option<Compared> {
    if comparisons == 0 || !(rules.confidence > 0.0 && rules.confidence < 1.0) {
        return None;
    }
    let variance = test.variance + reference.variance;
    let margin = if variance > 0.0 {
        let parts = test.variance.powi(2) / test.degrees_of_freedom
            + reference.variance.powi(2) / reference.degrees_of_freedom;
        let each = 1.0 - (1.0 - rules.confidence) / count(comparisons);
        student(each, variance.powi(2) / parts)? * variance.sqrt()
    } else {
        0.0
    };
    let log_ratio = test.log_mean - reference.log_mean;
    let (low, high) = ((log_ratio - margin).exp(), (log_ratio + margin).exp());
    Some(Compared {
        effect: Effect {
            ratio: log_ratio.exp(),
            ratio_low: low,
            ratio_high: high,
            verdict: verdict(low, high, rules),
            blocks: 0,
        },
        basis,
    })
}

#[cfg(test)]
mod tests;
