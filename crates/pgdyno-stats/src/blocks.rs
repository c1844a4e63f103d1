//! The randomised block design: log(value) = block + treatment + error, fitted by least squares.
//!
//! The difference of two treatment terms is the log-ratio of the treatments within blocks, so that
//! drift between blocks cancels; the errors of all treatments together give one spread (source:
//! Box, Hunter & Hunter, *Statistics for Experimenters*, the chapter on randomised blocks). A
//! missing cell (a failed trial) is allowed.
//!
//! The block terms are eliminated first (source: John & Williams, *Cyclic and Computer Generated
//! Designs*, the reduced normal equations): what is left to solve is as small as the number of
//! treatments, and a further block is added to what is there.

use crate::matrix::{count, invert};
use std::collections::{BTreeMap, BTreeSet};

/// One finished trial: which block and treatment it belongs to, and a positive value in any unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// Number of the block, any numbering.
    pub block: usize,
    /// Number of the treatment, any numbering.
    pub treatment: usize,
    /// What was measured; values that are not finite and positive are skipped, for a ratio needs
    /// both sides.
    pub value: f64,
}

impl Observation {
    /// Whether it has a logarithm.
    pub(crate) fn usable(&self) -> bool {
        self.value.is_finite() && self.value > 0.0
    }
}

/// An estimated log-ratio between two treatments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contrast {
    /// Natural logarithm of treatment / reference.
    pub log_ratio: f64,
    /// Its standard error; `None` with no degrees of freedom left.
    pub standard_error: Option<f64>,
    /// Blocks in which both sides are present.
    pub blocks: usize,
}

/// A trial within its block: the place of its treatment, and its log less the mean log of the
/// block.
#[derive(Debug, Clone, Copy)]
struct Cell {
    treatment: usize,
    deviation: f64,
}

/// What the fit needs to know of the blocks so far; grows by a block at a time.
#[derive(Debug, Clone)]
pub(crate) struct BlockSums {
    /// Numbers of the treatments, rising; a place is an index of it.
    treatments: Vec<usize>,
    /// The reduced normal matrix and its right side, by place of the treatment.
    normal: Vec<Vec<f64>>,
    moments: Vec<f64>,
    /// Blocks in which both treatments are present, by places.
    together: Vec<Vec<usize>>,
    blocks: Vec<Vec<Cell>>,
}

impl BlockSums {
    /// For these treatments, sorted and without doubles.
    pub(crate) fn new(treatments: Vec<usize>) -> BlockSums {
        let n = treatments.len();
        BlockSums {
            treatments,
            normal: vec![vec![0.0; n]; n],
            moments: vec![0.0; n],
            together: vec![vec![0; n]; n],
            blocks: Vec::new(),
        }
    }

    /// Adds the trials of one block. Those that are not usable, or of a treatment not named before,
    /// are skipped.
    pub(crate) fn add<'a>(&mut self, block: impl Iterator<Item = &'a Observation>) {
        let mut cells: Vec<Cell> = block
            .filter(|o| o.usable())
            .filter_map(|o| {
                let treatment = self.treatments.binary_search(&o.treatment).ok()?;
                let deviation = o.value.ln();
                Some(Cell { treatment, deviation })
            })
            .collect();
        if cells.is_empty() {
            return;
        }
        let size = count(cells.len());
        let mean = cells.iter().map(|c| c.deviation).sum::<f64>() / size;
        for cell in &mut cells {
            cell.deviation -= mean;
            self.moments[cell.treatment] += cell.deviation;
            self.normal[cell.treatment][cell.treatment] += 1.0;
        }
        let mut present = vec![false; self.treatments.len()];
        for a in &cells {
            present[a.treatment] = true;
            for b in &cells {
                self.normal[a.treatment][b.treatment] -= 1.0 / size;
            }
        }
        for a in (0..present.len()).filter(|&a| present[a]) {
            for b in (0..present.len()).filter(|&b| present[b]) {
                self.together[a][b] += 1;
            }
        }
        self.blocks.push(cells);
    }

    /// Fits the treatments that have a trial. `None` without any, or where they fall into
    /// unconnected parts.
    pub(crate) fn fit(&self) -> Option<BlockFit> {
        let present: Vec<usize> = (0..self.treatments.len())
            .filter(|&t| self.together[t][t] > 0)
            .collect();
        // The first treatment's term is zero: only differences are known.
        let (_, others) = present.split_first()?;
        let normal: Vec<Vec<f64>> = others
            .iter()
            .map(|&a| others.iter().map(|&b| self.normal[a][b]).collect())
            .collect();
        let inverse = invert(&normal)?;
        let mut terms = vec![0.0; self.treatments.len()];
        for (&treatment, row) in others.iter().zip(&inverse) {
            terms[treatment] = row.iter().zip(others).map(|(v, &t)| v * self.moments[t]).sum();
        }
        let residual_sum: f64 = self.blocks.iter().map(|cells| residual_sum(cells, &terms)).sum();
        let trials: usize = self.blocks.iter().map(Vec::len).sum();
        let degrees_of_freedom = (trials + 1).saturating_sub(self.blocks.len() + present.len());
        let together = |&a: &usize| present.iter().map(|&b| self.together[a][b]).collect();
        Some(BlockFit {
            treatments: present.iter().map(|&t| self.treatments[t]).collect(),
            terms: present.iter().map(|&t| terms[t]).collect(),
            inverse,
            together: present.iter().map(together).collect(),
            residual_variance: (degrees_of_freedom > 0).then(|| residual_sum / count(degrees_of_freedom)),
            degrees_of_freedom,
        })
    }
}

/// The squares of what the treatments' terms leave of the deviations of a block.
fn residual_sum(cells: &[Cell], terms: &[f64]) -> f64 {
    let middle = cells.iter().map(|c| terms[c.treatment]).sum::<f64>() / count(cells.len());
    let left = |c: &Cell| c.deviation - (terms[c.treatment] - middle);
    cells.iter().map(|c| left(c).powi(2)).sum()
}

/// The block model fitted by least squares.
#[derive(Debug, Clone)]
pub struct BlockFit {
    treatments: Vec<usize>,
    /// One per treatment, relative to the first.
    terms: Vec<f64>,
    /// Covariance of the terms but the first, in units of the residual variance.
    inverse: Vec<Vec<f64>>,
    together: Vec<Vec<usize>>,
    residual_variance: Option<f64>,
    degrees_of_freedom: usize,
}

impl BlockFit {
    /// Fits the model. `None` with no usable observation or a design that falls into unconnected
    /// parts.
    pub fn new(observations: &[Observation]) -> Option<BlockFit> {
        let mut blocks: BTreeMap<usize, Vec<&Observation>> = BTreeMap::new();
        let mut treatments = BTreeSet::new();
        for observation in observations.iter().filter(|o| o.usable()) {
            blocks.entry(observation.block).or_default().push(observation);
            treatments.insert(observation.treatment);
        }
        let mut sums = BlockSums::new(treatments.into_iter().collect());
        for block in blocks.into_values() {
            sums.add(block.into_iter());
        }
        sums.fit()
    }

    /// The log-ratio of `treatment` to `reference`. `None` where one of them has no observation.
    pub fn contrast(&self, treatment: usize, reference: usize) -> Option<Contrast> {
        self.combination(&[(treatment, 1.0), (reference, -1.0)])
    }

    /// A weighted sum of treatment terms; the weights are to add up to zero, for only differences
    /// are known. `None` where a treatment has no observation. Its blocks are those in which each
    /// two of them are present, the fewest of all pairs.
    pub(crate) fn combination(&self, weights: &[(usize, f64)]) -> Option<Contrast> {
        let mut by_place = vec![0.0; self.treatments.len()];
        let mut places = Vec::with_capacity(weights.len());
        for &(treatment, weight) in weights {
            let place = self.treatments.binary_search(&treatment).ok()?;
            by_place[place] += weight;
            places.push(place);
        }
        let log_ratio = by_place.iter().zip(&self.terms).map(|(w, term)| w * term).sum();
        let mut factor = 0.0;
        for (row, a) in self.inverse.iter().zip(&by_place[1..]) {
            factor += a * row.iter().zip(&by_place[1..]).map(|(v, b)| v * b).sum::<f64>();
        }
        let pairs = places.iter().flat_map(|&a| places.iter().map(move |&b| (a, b)));
        Some(Contrast {
            log_ratio,
            standard_error: self
                .residual_variance
                .map(|variance| (variance * factor.max(0.0)).sqrt()),
            blocks: pairs.map(|(a, b)| self.together[a][b]).min().unwrap_or(0),
        })
    }

    /// The spread between trials of one and the same treatment, block differences removed, as a
    /// ratio: 0.015 means 1.5 %. This is the noise floor of the host as seen in the experiment
    /// itself.
    pub fn noise_floor(&self) -> Option<f64> {
        self.residual_variance.map(|variance| variance.sqrt().exp_m1())
    }

    /// Degrees of freedom of the spread.
    pub fn degrees_of_freedom(&self) -> usize {
        self.degrees_of_freedom
    }
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

    /// Two treatments in complete blocks: the same as the paired t test on the logs, computed by
    /// hand.
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
