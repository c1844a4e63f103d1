//! The spread that intervals of a fitted curve are made from, and the quantiles that go with it.

use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};
use std::cell::RefCell;
use std::collections::HashMap;

/// Quantiles that are kept.
const KNOWN_MAX: usize = 4096;

/// An estimate with the bounds of its interval, in the unit of what is estimated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The most likely value, by the fitted curve.
    pub value: f64,
    /// Lower bound of the interval.
    pub low: f64,
    /// Upper bound of the interval; `None` where the data set no bound.
    pub high: Option<f64>,
}

/// An estimate of what need not exist: the place of a peak that may never come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OpenEstimate {
    /// The estimate; `None` where the fitted curve has no such place (it is at infinity).
    pub value: Option<f64>,
    /// Lower bound; `None` where even that is at infinity.
    pub low: Option<f64>,
    /// Upper bound; `None` where the data set no bound.
    pub high: Option<f64>,
}

/// One measured value at a level of what was varied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    /// Level (clients, CPUs); positive.
    pub level: f64,
    /// Natural logarithm of the measured value.
    pub log_value: f64,
    /// Block that it is of: trials that followed one another.
    pub block: u32,
}

/// A variance with its degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    /// Variance of a value, on the log scale.
    pub variance: f64,
    /// Degrees of freedom of the variance; at least 1.
    pub degrees_of_freedom: f64,
}

/// From this confidence on, values that agree better with one another than with the curve are not
/// taken for chance.
const MISFIT_CONFIDENCE: f64 = 0.95;

/// The spread around a curve with `parameters` parameters whose sum of squared residuals is
/// `residual_sum`, of samples without the terms of their blocks, of which one less than there are
/// blocks were estimated, too.
///
/// Usually residual sum / (samples - parameters - terms). Where replicates agree so much better
/// with one another than with the curve that it is no chance (the F test of lack of fit: Draper &
/// Smith, *Applied Regression Analysis*, chapter 2), the curve is not quite right, more replicates
/// would not make it better known, and the misfit of the levels alone is the spread. `None` without
/// a degree of freedom.
pub(crate) fn spread(samples: &[Sample], residual_sum: f64, parameters: usize) -> Option<Spread> {
    let terms = blocks(samples).len().saturating_sub(1);
    let mut sorted: Vec<&Sample> = samples.iter().collect();
    sorted.sort_by(|a, b| a.level.total_cmp(&b.level));
    let mut pure_sum = 0.0;
    let mut levels = 0_usize;
    for group in sorted.chunk_by(|a, b| a.level.total_cmp(&b.level).is_eq()) {
        let mean = group.iter().map(|s| s.log_value).sum::<f64>() / count(group.len());
        pure_sum += group.iter().map(|s| (s.log_value - mean).powi(2)).sum::<f64>();
        levels += 1;
    }
    let all = samples
        .len()
        .checked_sub(parameters + terms)
        .filter(|&df| df > 0)?;
    let misfit = levels.saturating_sub(parameters);
    let pure = samples.len().saturating_sub(levels + terms);
    if misfit > 0 && pure > 0 {
        let variance = (residual_sum - pure_sum).max(0.0) / count(misfit);
        if is_misfit(variance, pure_sum / count(pure), count(misfit), count(pure)) {
            return Some(Spread {
                variance,
                degrees_of_freedom: count(misfit),
            });
        }
    }
    Some(Spread {
        variance: residual_sum / count(all),
        degrees_of_freedom: count(all),
    })
}

fn is_misfit(misfit: f64, pure: f64, misfit_df: f64, pure_df: f64) -> bool {
    if pure <= 0.0 {
        return misfit > 0.0;
    }
    FisherSnedecor::new(misfit_df, pure_df).is_ok_and(|f| f.cdf(misfit / pure) > MISFIT_CONFIDENCE)
}

/// The two-sided quantile of Student's t at `confidence`; `None` for degrees of freedom that are
/// not positive. The same ones are asked for again and again, at each look at an experiment, and
/// one takes a search with ten incomplete beta functions.
pub(crate) fn student(confidence: f64, degrees_of_freedom: f64) -> Option<f64> {
    thread_local! {
        static KNOWN: RefCell<HashMap<(u64, u64), f64>> = RefCell::default();
    }
    let of = (confidence.to_bits(), degrees_of_freedom.to_bits());
    if let Some(known) = KNOWN.with_borrow(|known| known.get(&of).copied()) {
        return Some(known);
    }
    let student = StudentsT::new(0.0, 1.0, degrees_of_freedom).ok()?;
    let quantile = student.inverse_cdf(0.5 + confidence / 2.0);
    KNOWN.with_borrow_mut(|known| {
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(of, quantile);
    });
    Some(quantile)
}

/// The different blocks of samples, rising.
pub(crate) fn blocks(samples: &[Sample]) -> Vec<u32> {
    let mut blocks: Vec<u32> = samples.iter().map(|sample| sample.block).collect();
    blocks.sort_unstable();
    blocks.dedup();
    blocks
}

/// A count as a real number.
#[expect(clippy::cast_precision_loss, reason = "counts of trials, seconds and levels")]
pub(crate) fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[(f64, f64)]) -> Vec<Sample> {
        values
            .iter()
            .map(|&(level, log_value)| Sample {
                level,
                log_value,
                block: 1,
            })
            .collect()
    }

    #[test]
    fn replicates_that_only_agree_with_one_another_do_not_narrow_it() {
        // Three levels, a curve of one parameter (the mean, 2): residual sum 2, replicates within
        // 0.01.
        let apart = samples(&[
            (1.0, 1.0),
            (1.0, 1.01),
            (2.0, 2.0),
            (2.0, 2.01),
            (3.0, 3.0),
            (3.0, 3.01),
        ]);
        let mean = apart.iter().map(|s| s.log_value).sum::<f64>() / 6.0;
        let sum: f64 = apart.iter().map(|s| (s.log_value - mean).powi(2)).sum();
        let found = spread(&apart, sum, 1).unwrap();
        assert!((found.degrees_of_freedom - 2.0).abs() < 1e-12);
        assert!((found.variance - 2.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn else_all_residuals_count() {
        let near = samples(&[(1.0, 0.9), (1.0, 1.1), (2.0, 1.1), (2.0, 0.9)]);
        let found = spread(&near, 0.04, 1).unwrap();
        assert_eq!(found.degrees_of_freedom, 3.0);
        assert!((found.variance - 0.04 / 3.0).abs() < 1e-12);
        assert_eq!(spread(&near[..1], 0.0, 1), None);
        assert_eq!(spread(&near[..1], 0.0, 2), None);
    }
}
