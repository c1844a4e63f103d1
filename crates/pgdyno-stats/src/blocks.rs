//! The randomised block design: log(value) = block + treatment + error, fitted by least squares.
//!
//! The difference of two treatment terms is the log-ratio of the treatments within blocks, so that drift between
//! blocks cancels; the errors of all treatments together give one spread (source: Box, Hunter & Hunter,
//! *Statistics for Experimenters*, the chapter on randomised blocks). A missing cell (a failed trial) is allowed.

use crate::matrix::invert;

/// One finished trial: which block and treatment it belongs to, and a positive value in any unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// Number of the block, any numbering.
    pub block: usize,
    /// Number of the treatment, any numbering.
    pub treatment: usize,
    /// What was measured; values that are not finite and positive are left out, for a ratio needs both sides.
    pub value: f64,
}

/// An estimated log-ratio between two treatments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contrast {
    /// ln(treatment / reference).
    pub log_ratio: f64,
    /// Its standard error; `None` with no degrees of freedom left.
    pub standard_error: Option<f64>,
    /// Blocks in which both sides are present.
    pub blocks: usize,
}

/// The fitted model.
#[derive(Debug, Clone)]
pub struct BlockFit {
    treatments: Vec<usize>,
    coefficients: Vec<f64>,
    inverse: Vec<Vec<f64>>,
    cells: Vec<(usize, usize)>,
    residual_variance: Option<f64>,
    degrees_of_freedom: usize,
}

impl BlockFit {
    /// Fits the model. `None` with no usable observation or a design that falls into unconnected parts.
    pub fn new(observations: &[Observation]) -> Option<BlockFit> {
        let usable: Vec<&Observation> = observations
            .iter()
            .filter(|o| o.value.is_finite() && o.value > 0.0)
            .collect();
        let treatments = distinct(usable.iter().map(|o| o.treatment));
        let blocks = distinct(usable.iter().map(|o| o.block));
        if usable.is_empty() {
            return None;
        }
        // One column per treatment, and one per block but the first (which the treatments absorb).
        let columns = treatments.len() + blocks.len() - 1;
        let design: Vec<(usize, Option<usize>, f64)> = usable
            .iter()
            .map(|o| {
                let block = position(&blocks, o.block);
                let column = (block > 0).then(|| treatments.len() + block - 1);
                (position(&treatments, o.treatment), column, o.value.ln())
            })
            .collect();
        let mut normal = vec![vec![0.0; columns]; columns];
        let mut moments = vec![0.0; columns];
        for &(treatment, block, value) in &design {
            let set = [Some(treatment), block];
            for i in set.into_iter().flatten() {
                moments[i] += value;
                for j in set.into_iter().flatten() {
                    normal[i][j] += 1.0;
                }
            }
        }
        let inverse = invert(&normal)?;
        let coefficients: Vec<f64> = inverse
            .iter()
            .map(|row| row.iter().zip(&moments).map(|(a, b)| a * b).sum())
            .collect();
        let residual_sum: f64 = design
            .iter()
            .map(|&(t, b, value)| {
                let fitted = coefficients[t] + b.map_or(0.0, |b| coefficients[b]);
                (value - fitted).powi(2)
            })
            .sum();
        let degrees_of_freedom = usable.len().saturating_sub(columns);
        Some(BlockFit {
            treatments,
            coefficients,
            inverse,
            cells: usable.iter().map(|o| (o.block, o.treatment)).collect(),
            #[expect(clippy::cast_precision_loss, reason = "a count of trials")]
            residual_variance: (degrees_of_freedom > 0).then(|| residual_sum / degrees_of_freedom as f64),
            degrees_of_freedom,
        })
    }

    /// The log-ratio of `treatment` to `reference`. `None` where one of them has no observation.
    pub fn contrast(&self, treatment: usize, reference: usize) -> Option<Contrast> {
        let a = self.treatments.binary_search(&treatment).ok()?;
        let b = self.treatments.binary_search(&reference).ok()?;
        let v = &self.inverse;
        let factor = v[a][a] + v[b][b] - 2.0 * v[a][b];
        Some(Contrast {
            log_ratio: self.coefficients[a] - self.coefficients[b],
            standard_error: self
                .residual_variance
                .map(|variance| (variance * factor.max(0.0)).sqrt()),
            blocks: self
                .cells
                .iter()
                .filter(|&&(block, t)| t == treatment && self.cells.contains(&(block, reference)))
                .count(),
        })
    }

    /// The spread between trials of one and the same treatment, block differences removed, as a ratio:
    /// 0.015 means 1.5 %. This is the noise floor of the host as seen in the experiment itself.
    pub fn noise_floor(&self) -> Option<f64> {
        self.residual_variance.map(|variance| variance.sqrt().exp_m1())
    }

    /// Degrees of freedom of the spread.
    pub fn degrees_of_freedom(&self) -> usize {
        self.degrees_of_freedom
    }
}

fn distinct(values: impl Iterator<Item = usize>) -> Vec<usize> {
    values
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect()
}

fn position(sorted: &[usize], value: usize) -> usize {
    sorted.partition_point(|&other| other < value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn grid(values: &[&[f64]]) -> Vec<Observation> {
        let mut all = Vec::new();
        for (block, row) in values.iter().enumerate() {
            for (treatment, &value) in row.iter().enumerate() {
                all.push(Observation {
                    block,
                    treatment,
                    value,
                });
            }
        }
        all
    }

    #[test]
    fn a_pure_ratio_is_found_exactly_and_block_drift_cancels() {
        let fit = BlockFit::new(&grid(&[&[100.0, 110.0], &[200.0, 220.0], &[50.0, 55.0]])).unwrap();
        let contrast = fit.contrast(1, 0).unwrap();
        assert!((contrast.log_ratio - 1.1_f64.ln()).abs() < 1e-12);
        assert!(contrast.standard_error.unwrap() < 1e-9);
        assert_eq!(contrast.blocks, 3);
        assert_eq!(fit.degrees_of_freedom(), 2);
    }

    /// Two treatments in complete blocks: the same as the paired t test on the logs, computed by hand.
    #[test]
    fn two_treatments_equal_the_paired_test() {
        let fit = BlockFit::new(&grid(&[&[100.0, 104.0], &[101.0, 103.0], &[99.0, 105.0]])).unwrap();
        let d: Vec<f64> = [(100.0_f64, 104.0_f64), (101.0, 103.0), (99.0, 105.0)]
            .iter()
            .map(|(a, b)| (b / a).ln())
            .collect();
        let mean = d.iter().sum::<f64>() / 3.0;
        let sd = (d.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
        let contrast = fit.contrast(1, 0).unwrap();
        assert!((contrast.log_ratio - mean).abs() < 1e-12);
        assert!((contrast.standard_error.unwrap() - sd / 3.0_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_failed_trial_leaves_the_rest_usable() {
        let mut all = grid(&[&[100.0, 110.0, 120.0], &[200.0, 220.0, 240.0]]);
        all[4].value = f64::NAN;
        let fit = BlockFit::new(&all).unwrap();
        let contrast = fit.contrast(1, 0).unwrap();
        assert!((contrast.log_ratio - 1.1_f64.ln()).abs() < 1e-9);
        assert_eq!(contrast.blocks, 1);
    }

    #[test]
    fn one_block_gives_an_effect_without_an_error() {
        let fit = BlockFit::new(&grid(&[&[100.0, 110.0]])).unwrap();
        assert_eq!(fit.contrast(1, 0).unwrap().standard_error, None);
        assert_eq!(fit.noise_floor(), None);
    }

    #[test]
    fn nothing_or_unconnected_parts_are_none() {
        assert!(BlockFit::new(&[]).is_none());
        let apart = [
            Observation {
                block: 0,
                treatment: 0,
                value: 1.0,
            },
            Observation {
                block: 1,
                treatment: 1,
                value: 1.0,
            },
        ];
        assert!(BlockFit::new(&apart).is_none());
    }

    proptest! {
        /// Whatever the blocks do in common, the effects stay.
        #[test]
        fn block_factors_do_not_move_an_effect(
            values in prop::collection::vec(10.0_f64..1000.0, 9),
            factors in prop::collection::vec(0.1_f64..10.0, 3),
        ) {
            let plain = grid(&[&values[0..3], &values[3..6], &values[6..9]]);
            let drifted: Vec<Observation> = plain
                .iter()
                .map(|o| Observation { value: o.value * factors[o.block], ..*o })
                .collect();
            let (a, b) = (BlockFit::new(&plain).unwrap(), BlockFit::new(&drifted).unwrap());
            let (x, y) = (a.contrast(2, 0).unwrap(), b.contrast(2, 0).unwrap());
            prop_assert!((x.log_ratio - y.log_ratio).abs() < 1e-9);
            prop_assert!((x.standard_error.unwrap() - y.standard_error.unwrap()).abs() < 1e-7);
        }
    }
}
