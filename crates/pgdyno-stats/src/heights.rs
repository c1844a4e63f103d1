//! Blocks of trials differ in the height of a curve, not in its shape: on the log scale each has a
//! term of its own.
//!
//! Terms and curve are estimated in turn until they agree, at once where all levels are in each
//! block (backfitting; source: Buja, Hastie & Tibshirani 1989, *Annals of Statistics* 17, 453-510).
//! What is left within blocks is the spread of the curve's shape; its height is known as well as
//! the mean of the blocks' own heights is.

use crate::spread::{Sample, blocks, count, student};

/// The mean height of a curve, of several blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Height {
    /// Variance of the mean, on the log scale.
    variance: f64,
    /// One less than there are blocks.
    degrees_of_freedom: f64,
}

impl Height {
    /// The square of half the width of the mean's interval, on the log scale.
    pub(crate) fn half_width_squared(&self, confidence: f64) -> Option<f64> {
        Some(student(confidence, self.degrees_of_freedom)?.powi(2) * self.variance)
    }
}

/// A curve fitted to what is not its blocks' own.
pub(crate) struct Levelled<F> {
    /// Samples without the terms of their blocks.
    pub samples: Vec<Sample>,
    /// The curve through these.
    pub fit: F,
    /// `None` for a single block, of which nobody knows how others would differ.
    pub height: Option<Height>,
}

/// Terms that change less than this from one turn to the next are known.
const SETTLED: f64 = 1e-9;
/// Turns after which terms that still change stay as they are; two or three are usual.
const MOST_TURNS: usize = 30;

/// Fits a curve (`log_at`: its logarithm at a level) and the terms of the blocks. `None` where no
/// curve fits.
pub(crate) fn levelled<F>(
    samples: &[Sample],
    fit: impl Fn(&[Sample]) -> Option<F>,
    log_at: impl Fn(&F, f64) -> f64,
) -> Option<Levelled<F>> {
    let blocks = blocks(samples);
    let place = |sample: &Sample| blocks.partition_point(|&block| block < sample.block);
    let mut terms = vec![0.0; blocks.len()];
    let mut turn = 0;
    loop {
        let without = |sample: &Sample| Sample {
            log_value: sample.log_value - terms[place(sample)],
            ..*sample
        };
        let levelled: Vec<Sample> = samples.iter().map(without).collect();
        let fit = fit(&levelled)?;
        let mut left = vec![(0.0, 0_usize); blocks.len()];
        for sample in samples {
            let (sum, n) = &mut left[place(sample)];
            *sum += sample.log_value - log_at(&fit, sample.level);
            *n += 1;
        }
        let middle = left.iter().map(|(sum, _)| sum).sum::<f64>() / count(samples.len());
        let next: Vec<f64> = left.iter().map(|(sum, n)| sum / count(*n) - middle).collect();
        let change = terms.iter().zip(&next).map(|(a, b)| (a - b).abs());
        let is_settled = change.fold(0.0, f64::max) < SETTLED;
        if is_settled || turn == MOST_TURNS {
            return Some(Levelled {
                samples: levelled,
                fit,
                height: height(&terms),
            });
        }
        terms = next;
        turn += 1;
    }
}

fn height(terms: &[f64]) -> Option<Height> {
    let n = count(terms.len());
    let mean = terms.iter().sum::<f64>() / n;
    let squares: f64 = terms.iter().map(|term| (term - mean).powi(2)).sum();
    (terms.len() > 1).then(|| Height {
        variance: squares / (n - 1.0) / n,
        degrees_of_freedom: n - 1.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean alone as the curve.
    fn flat(samples: &[(u32, f64)]) -> Levelled<f64> {
        let samples: Vec<Sample> = samples
            .iter()
            .map(|&(block, log_value)| Sample {
                level: 1.0,
                log_value,
                block,
            })
            .collect();
        let mean = |samples: &[Sample]| {
            Some(samples.iter().map(|s| s.log_value).sum::<f64>() / count(samples.len()))
        };
        levelled(&samples, mean, |mean, _| *mean).unwrap()
    }

    #[test]
    fn blocks_lose_what_they_have_in_common() {
        let found = flat(&[(1, 1.0), (1, 1.2), (4, 3.0), (4, 3.2)]);
        let left: Vec<f64> = found.samples.iter().map(|s| s.log_value).collect();
        for (left, expected) in left.iter().zip([2.0, 2.2, 2.0, 2.2]) {
            assert!((left - expected).abs() < 1e-9, "{left}");
        }
        assert!((found.fit - 2.1).abs() < 1e-9);
        // Heights 1.1 and 3.1: a variance of 2, of their mean 1; t of one degree of freedom is
        // 12.7.
        let half = found.height.unwrap().half_width_squared(0.95).unwrap().sqrt();
        assert!((half - 12.706).abs() < 0.001, "{half}");
    }

    #[test]
    fn a_single_block_has_no_spread_of_heights() {
        assert_eq!(flat(&[(1, 1.0), (1, 1.2)]).height, None);
    }
}
