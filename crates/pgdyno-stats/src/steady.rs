//! Is a throughput series steady? A trend test that allows for autocorrelation.

use crate::matrix::count;
use serde::{Deserialize, Serialize};

/// A line fitted to a series, and whether the series has a trend.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Steadiness {
    /// No trend that is both sure and large.
    pub settled: bool,
    /// Change from the first to the last value along the fitted line, relative to the mean: 0.10 = 10 % up.
    pub drift_ratio: f64,
    /// Standard error of it, widened for autocorrelation.
    pub drift_standard_error: f64,
}

/// A drift over the window below this does not unsettle a trial: it is of the order of the noise between trials.
const DRIFT_THAT_MATTERS: f64 = 0.10;
/// How many standard errors away from zero a drift must be. Two would cry wolf in one trial of twenty.
const SURE: f64 = 3.0;
/// Fewer values than this cannot be judged.
const FEWEST_VALUES: usize = 6;

/// Fits a line to equally spaced values. The standard error of the slope is widened by (1 + r) / (1 - r), r the
/// lag-1 autocorrelation of the residuals (source: the effective sample size of an AR(1) process).
/// `None` for fewer than six values or a mean that is not positive.
pub fn steadiness(values: &[f64]) -> Option<Steadiness> {
    let n = values.len();
    if n < FEWEST_VALUES {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "seconds of a trial")]
    let count = n as f64;
    let mean = values.iter().sum::<f64>() / count;
    if !(mean.is_finite() && mean > 0.0) {
        return None;
    }
    let middle = (count - 1.0) / 2.0;
    #[expect(clippy::cast_precision_loss, reason = "seconds of a trial")]
    let at = |i: usize| i as f64 - middle;
    let spread: f64 = (0..n).map(|i| at(i).powi(2)).sum();
    let slope = (0..n).map(|i| at(i) * (values[i] - mean)).sum::<f64>() / spread;
    let residuals: Vec<f64> = (0..n).map(|i| values[i] - mean - slope * at(i)).collect();
    let square_sum: f64 = residuals.iter().map(|r| r * r).sum();
    let lagged: f64 = residuals.windows(2).map(|w| w[0] * w[1]).sum();
    let r = if square_sum > 0.0 {
        (lagged / square_sum).clamp(0.0, 0.9)
    } else {
        0.0
    };
    let variance = square_sum / (count - 2.0) / spread * (1.0 + r) / (1.0 - r);
    let drift_ratio = slope * (count - 1.0) / mean;
    let drift_standard_error = variance.sqrt() * (count - 1.0) / mean;
    let trend = drift_ratio.abs() > DRIFT_THAT_MATTERS && drift_ratio.abs() > SURE * drift_standard_error;
    Some(Steadiness {
        settled: !trend,
        drift_ratio,
        drift_standard_error,
    })
}

/// Means of the two halves of the window further apart than this are a way up or down.
const STEP_THAT_MATTERS: f64 = 0.05;

/// Whether the later half of a growing series of values, a second each, shows that it has settled: at least six values, with
/// neither a trend ([`steadiness`]) nor a step between their halves of more than 5 %. The half grows with the series, so that
/// a slow climb is no level.
pub fn has_settled(values: &[f64]) -> bool {
    if values.len() < FEWEST_VALUES {
        return false;
    }
    let latest = &values[(values.len() / 2).min(values.len() - FEWEST_VALUES)..];
    let (before, after) = latest.split_at(latest.len() / 2);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / count(part.len());
    let step = mean(after) / mean(before) - 1.0;
    step.abs() <= STEP_THAT_MATTERS && steadiness(latest).is_some_and(|found| found.settled)
}

/// Standard deviation over mean: the stability of a curve as a number. `None` below two values or without a mean.
pub fn coefficient_of_variation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "a number of samples")]
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean > 0.0).then(|| variance.sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warm_up_ends_when_the_curve_has() {
        let climb: Vec<f64> = (0..20).map(|s| 1000.0 * (1.0 - 0.7_f64.powi(s))).collect();
        let settles = (1..=climb.len()).find(|&n| has_settled(&climb[..n]));
        assert!((8..20).contains(&settles.unwrap()), "{settles:?}");
        // A slow climb is at its level when it is said to be.
        let slow: Vec<f64> = (0..300)
            .map(|s| 1000.0 * (1.0 - (-f64::from(s) / 40.0).exp()))
            .collect();
        let settles = (1..=slow.len()).find(|&n| has_settled(&slow[..n])).unwrap();
        assert!(slow[settles - 1] > 970.0, "{settles} {}", slow[settles - 1]);
        assert!(!has_settled(&climb[..5]) && !has_settled(&[]) && !has_settled(&[0.0; 9]));
        assert!(has_settled(&[100.0, 101.0, 99.0, 100.0, 102.0, 98.0]));
        assert!(
            !has_settled(&[100.0, 100.0, 100.0, 110.0, 110.0, 110.0]),
            "a step"
        );
    }

    #[test]
    fn a_flat_shaky_curve_is_settled_and_a_ramp_is_not() {
        let flat: Vec<f64> = (0..12).map(|i| 1000.0 + 40.0 * f64::from(i % 3)).collect();
        assert!(steadiness(&flat).unwrap().settled);
        let ramp: Vec<f64> = (0..12).map(|i| 1000.0 + 60.0 * f64::from(i)).collect();
        let found = steadiness(&ramp).unwrap();
        assert!(!found.settled);
        assert!((found.drift_ratio - 660.0 / 1330.0).abs() < 1e-9);
    }

    #[test]
    fn a_small_sure_drift_does_not_matter() {
        let values: Vec<f64> = (0..12).map(|i| 1000.0 + 3.0 * f64::from(i)).collect();
        assert!(steadiness(&values).unwrap().settled);
    }

    #[test]
    fn too_few_or_empty_seconds_are_not_judged() {
        assert!(steadiness(&[1.0; 5]).is_none());
        assert!(steadiness(&[0.0; 10]).is_none());
    }

    #[test]
    fn variation_is_relative() {
        let found = coefficient_of_variation(&[9.0, 10.0, 11.0]).unwrap();
        assert!((found - 0.1).abs() < 1e-12);
        assert_eq!(coefficient_of_variation(&[1.0]), None);
        assert_eq!(coefficient_of_variation(&[0.0, 0.0]), None);
    }
}
