//! Before the first trial: what a number of blocks can find, and how many blocks an effect needs.
//!
//! For an experiment of a fixed number of complete blocks judged by [`decide`](crate::decide). With
//! noise σ per trial the estimate of a log-ratio has the standard error s = σ·√(2 / blocks), and t
//! has a noncentral distribution with noncentrality ln(1 + effect) / s and blocks - 1 degrees of
//! freedom, those of a comparison's own spread (source: Johnson, Kotz & Balakrishnan, *Continuous
//! Univariate Distributions* 2, chapter 31; for blocks Montgomery, *Design and Analysis of
//! Experiments*, chapter 4). The estimate is normal and its spread independent of it, so the
//! probability is an integral over the spread alone, and "the same" before "better" is part of it.

use crate::matrix::count;
use crate::sequential::MOST_BLOCKS;
use crate::verdict::{Rules, critical_value};
use statrs::distribution::{ContinuousCDF, Normal};

/// An experiment with a fixed number of complete blocks, yet to be chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FixedDesign {
    /// Comparisons whose intervals hold together.
    pub comparisons: usize,
    /// Spread between trials of one treatment as a ratio, as
    /// [`BlockFit::noise_floor`](crate::BlockFit::noise_floor) has it: 0.02 = 2 %.
    pub noise_floor: f64,
    /// Rules by which the comparison will be judged.
    pub rules: Rules,
}

/// Steps of the integral over the spread: more do not move the sixth digit.
const STEPS: usize = 400;
/// How many standard deviations of the spread it covers.
const REACH: f64 = 8.0;
/// Effects beyond it are not looked for: ten thousand times.
const LARGEST_LOG: f64 = 9.2;

impl FixedDesign {
    /// The probability that one comparison is found to differ the right way (better, for a good
    /// effect) if its ratio is 1 + `effect`; an effect below zero is as probable as its inverse
    /// above. It is a lower bound where comparisons borrow from one another's spread. `None` with
    /// nothing to reckon with: fewer than two blocks, no comparison, no noise.
    pub fn power(&self, blocks: usize, effect: f64) -> Option<f64> {
        self.power_of_log(blocks, effect.ln_1p().abs())
    }

    /// The smallest effect, 0.03 = 3 % more, that so many blocks find with probability `power`.
    /// `None` as above, or where there is none.
    pub fn minimum_detectable_effect(&self, blocks: usize, power: f64) -> Option<f64> {
        let (mut low, mut high) = (0.0, LARGEST_LOG);
        if self.power_of_log(blocks, high)? < power {
            return None;
        }
        // Halves until neighbours cannot be distinguished.
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            match self.power_of_log(blocks, middle)? < power {
                true => low = middle,
                false => high = middle,
            }
        }
        Some(high.exp_m1())
    }

    /// The fewest blocks that find an effect, 0.03 = 3 % more, with probability `power`. `None`
    /// where [`MOST_BLOCKS`] do not.
    pub fn blocks_needed(&self, effect: f64, power: f64) -> Option<usize> {
        (2..=MOST_BLOCKS).find(|&blocks| self.power(blocks, effect).is_some_and(|found| found >= power))
    }

    fn power_of_log(&self, blocks: usize, log_ratio: f64) -> Option<f64> {
        if blocks < 2 || !(self.noise_floor > 0.0 && log_ratio.is_finite()) {
            return None;
        }
        let freedom = blocks - 1;
        let critical = critical_value(self.rules.confidence, self.comparisons, freedom)?;
        let error = self.noise_floor.ln_1p() * (2.0 / count(blocks)).sqrt();
        let band = self.rules.smallest_effect.ln_1p();
        let normal = Normal::new(0.0, 1.0).ok()?;
        Some(over_spread(count(freedom), |spread| {
            let margin = critical * error * spread;
            // The lower bound above 1, and the upper one above the band.
            normal.cdf((log_ratio - margin.max(band - margin)) / error)
        }))
    }
}

/// When to look for an effect that a fixed design would find in so many blocks, as (first look,
/// last look): after seven twelfths of them, and after one and a half times as many. Found by
/// simulation (docs/explanation/statistics.md).
pub fn looks_for(blocks_fixed: usize) -> (usize, usize) {
    let first = (blocks_fixed * 7).div_ceil(12).max(2);
    (
        first,
        (blocks_fixed * 3)
            .div_ceil(2)
            .clamp(first, MOST_BLOCKS.max(first)),
    )
}

/// The mean of `value` over the ratio of the estimated spread to the true one, whose square is
/// chi-squared by its degrees of freedom.
fn over_spread(freedom: f64, value: impl Fn(f64) -> f64) -> f64 {
    let width = REACH / (2.0 * freedom).sqrt();
    let (from, to) = ((1.0 - width).max(0.0), 1.0 + width);
    let (mut sum, mut total) = (0.0, 0.0);
    for i in 0..STEPS {
        let x = from + (to - from) * (count(i) + 0.5) / count(STEPS);
        let weight = ((freedom - 1.0) * x.ln() - freedom * (x * x - 1.0) / 2.0).exp();
        total += weight;
        sum += weight * value(x);
    }
    sum / total
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DESIGN: FixedDesign = FixedDesign {
        comparisons: 1,
        noise_floor: 0.02,
        rules: Rules {
            confidence: 0.95,
            smallest_effect: 0.0,
            larger_is_better: true,
        },
    };

    /// Power of the paired t test from the usual tables: n = 10, standardised effect 1 gives 0.803
    /// two-sided, of which next to nothing on the wrong side.
    #[test]
    fn power_is_the_tables() {
        let noise_floor = 0.1_f64;
        let effect = (noise_floor.ln_1p() * 2.0_f64.sqrt()).exp_m1();
        let found = FixedDesign {
            noise_floor,
            ..DESIGN
        }
        .power(10, effect)
        .unwrap();
        assert!((found - 0.803).abs() < 1e-3, "{found}");
        // Nothing there: half of the error is on the good side.
        assert!((DESIGN.power(10, 0.0).unwrap() - 0.025).abs() < 1e-6);
    }

    #[test]
    fn what_cannot_be_reckoned_is_none() {
        assert_eq!(DESIGN.power(1, 0.1), None);
        assert_eq!(
            FixedDesign {
                noise_floor: 0.0,
                ..DESIGN
            }
            .power(5, 0.1),
            None
        );
        assert_eq!(DESIGN.power(5, -1.0), None);
        assert_eq!(DESIGN.blocks_needed(1e-6, 0.9), None);
    }

    #[test]
    fn looks_are_around_the_fixed_size() {
        assert_eq!(looks_for(12), (7, 18));
        assert_eq!(looks_for(0), (2, 2));
        assert!(looks_for(1000).1 <= MOST_BLOCKS.max(looks_for(1000).0));
    }

    proptest! {
        /// The smallest effect found by some blocks needs just those blocks.
        #[test]
        fn effect_and_blocks_are_inverse(blocks in 3_usize..40, comparisons in 1_usize..8, power in 0.5_f64..0.95) {
            let design = FixedDesign { comparisons, ..DESIGN };
            let effect = design.minimum_detectable_effect(blocks, power).unwrap();
            prop_assert_eq!(design.blocks_needed(effect * 1.000_001, power), Some(blocks));
            prop_assert!(design.minimum_detectable_effect(blocks + 1, power).unwrap() < effect);
        }
    }
}
