//! Is a throughput series steady? A trend test that allows for autocorrelation.

use crate::matrix::count;
use crate::spread::student;
use serde::{Deserialize, Serialize};

/// A line fitted to a series, and whether the series has a trend.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Steadiness {
    /// No trend that is both sure and large.
    pub settled: bool,
    /// Change from the first to the last value along the fitted line, relative to the mean: 0.10 =
    /// 10 % up.
    pub drift_ratio: f64,
    /// Standard error of it, widened for autocorrelation.
    pub drift_standard_error: f64,
}

/// A drift over the window below this does not unsettle a trial: it is of the order of the noise
/// between trials.
const DRIFT_THAT_MATTERS: f64 = 0.10;
/// How many standard errors away from zero a drift must be. Two would cry wolf in one trial of
/// twenty.
const SURE: f64 = 3.0;
/// Fewer values than this cannot be judged.
const FEWEST_VALUES: usize = 6;

/// Fits a line to equally spaced values. The standard error of the slope is widened by (1 + r) /
/// (1 - r), r the lag-1 autocorrelation of the residuals (source: the effective sample size of an
/// AR(1) process). `None` for fewer than six values or a mean that is not positive.
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

/// A series is watched so long, in values, before anything is said of it: what climbs slowly looks
/// level for some seconds.
const WATCHED_LEAST: usize = 20;
/// Confidence that the trend is no larger than that, on either side.
const SETTLED_CONFIDENCE: f64 = 0.90;

/// Whether a growing series of values, a second each, has settled: whether it will change by less
/// than 10 % in as long again as it has been watched, twenty values at least. The trend of its
/// later half, with what is not known of it ([`steadiness`]: an interval of 90 %), is taken on for
/// that time. What changes more slowly than that, no watching so far can show.
pub fn has_settled(values: &[f64]) -> bool {
    if values.len() < WATCHED_LEAST {
        return false;
    }
    let latest = &values[values.len() / 2..];
    let degrees_of_freedom = count(latest.len()) - 2.0;
    let Some((found, quantile)) = steadiness(latest).zip(student(SETTLED_CONFIDENCE, degrees_of_freedom))
    else {
        return false;
    };
    let drift_at_most = found.drift_ratio.abs() + quantile * found.drift_standard_error;
    drift_at_most * count(values.len()) / count(latest.len()) <= DRIFT_THAT_MATTERS
}

/// Standard deviation over mean: the stability of a curve as a number. `None` below two values or
/// without a mean.
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
    use crate::chance::{SeedableRng, Xoshiro256PlusPlus, normal};

    #[test]
    fn a_warm_up_ends_when_the_curve_has() {
        let climb: Vec<f64> = (0..40).map(|s| 1000.0 * (1.0 - 0.7_f64.powi(s))).collect();
        let settles = (1..=climb.len()).find(|&n| has_settled(&climb[..n]));
        assert!((20..30).contains(&settles.unwrap()), "{settles:?}");
        assert!(!has_settled(&climb[..19]) && !has_settled(&[]) && !has_settled(&[0.0; 30]));
        let step: Vec<f64> = (0..40).map(|s| if s < 30 { 1000.0 } else { 1100.0 }).collect();
        assert!(!has_settled(&step), "a step");
    }

    /// Climbs from nothing and from half of their level, with noise that remembers: where one is
    /// said to be at its level, it is.
    #[test]
    fn slow_climbs_are_not_called_level_on_their_way() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(23);
        let mut settled_at = |from: f64, time_s: f64, noise: f64| {
            let (mut values, mut lasting) = (Vec::new(), 0.0);
            for s in 0..900_u32 {
                let level = 1.0 - (1.0 - from) * (-f64::from(s) / time_s).exp();
                lasting = 0.3 * lasting + 0.95 * noise * normal(&mut random);
                values.push(1000.0 * level * (1.0 + lasting));
                if has_settled(&values) {
                    return Some(level);
                }
            }
            None
        };
        for (from, time_s) in [(0.0, 40.0), (0.5, 30.0), (0.5, 100.0)] {
            for noise in [0.0, 0.01, 0.03] {
                let levels: Vec<f64> = (0..40).filter_map(|_| settled_at(from, time_s, noise)).collect();
                let short = levels.iter().filter(|level| **level < 0.95).count();
                assert!(
                    levels.len() >= 38 && short <= 2,
                    "{from} {time_s} {noise}: {short} of {}",
                    levels.len()
                );
            }
        }
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
