//! The mean of a few trials with its interval.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean and the bounds of its interval, all in the unit of the values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanInterval {
    /// Arithmetic mean, in the unit of the values.
    pub mean: f64,
    /// Lower bound of the interval of the mean.
    pub low: f64,
    /// Upper bound of the interval of the mean.
    pub high: f64,
}

/// Student's interval for the mean of independent values. With one value the bounds are the value
/// itself (nothing is known of the spread); `None` without any.
pub fn mean_interval(values: &[f64], confidence: f64) -> Option<MeanInterval> {
    if values.is_empty() {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "a number of trials")]
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() == 1 {
        return Some(MeanInterval {
            mean,
            low: mean,
            high: mean,
        });
    }
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let student = StudentsT::new(0.0, 1.0, n - 1.0).ok()?;
    let margin = student.inverse_cdf(0.5 + confidence / 2.0) * (variance / n).sqrt();
    Some(MeanInterval {
        mean,
        low: mean - margin,
        high: mean + margin,
    })
}

#[cfg(test)]
mod tests {
    use super::mean_interval;

    #[test]
    fn three_values_by_hand() {
        let found = mean_interval(&[9.0, 10.0, 11.0], 0.95).unwrap();
        // t(2, 0.975) = 4.3027, sd = 1.
        assert!((found.high - (10.0 + 4.302_65 / 3.0_f64.sqrt())).abs() < 1e-4);
        assert!((found.mean - 10.0).abs() < 1e-12);
    }

    #[test]
    fn one_value_has_no_spread_and_none_has_no_mean() {
        assert_eq!(mean_interval(&[5.0], 0.95).unwrap().low, 5.0);
        assert!(mean_interval(&[], 0.95).is_none());
    }
}
