//! Which trials are left out: by a rule fixed beforehand, the same for all treatments.
//!
//! A far value alone is no reason: it may be what the treatment does. A recorded disturbance alone is none either: it
//! may have cost nothing. Both together are. The rule sees no treatment's name and no comparison, so it cannot favour
//! one; that it does not raise the share of false alarms is simulated (`tests/error_rate.rs`).

use crate::blocks::{BlockFit, Observation};
use crate::matrix::count;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};
use std::collections::BTreeMap;

/// When a disturbed trial is left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutlierRule {
    /// How many robust standard deviations from the model, either way, where many trials tell the spread. With few of
    /// them it is as many more as make a trial of normal noise just as rarely far: Student's t for the normal.
    pub deviations: f64,
}

impl Default for OutlierRule {
    /// 3.5, as Iglewicz & Hoaglin advise (*How to Detect and Handle Outliers*, 1993).
    fn default() -> OutlierRule {
        OutlierRule { deviations: 3.5 }
    }
}

/// Why an observation is left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WhyExcluded {
    /// Its value is not finite and positive, so that it has no ratio to others.
    NoRatio,
    /// It was disturbed, and lies so many robust standard deviations from the model (below: negative).
    DisturbedAndFar {
        /// Signed distance from the model, in robust standard deviations.
        deviations: f64,
    },
}

/// An observation that is left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Excluded {
    /// Index in the observations given.
    pub index: usize,
    /// Rule that leaves it out.
    pub why: WhyExcluded,
}

/// A standard deviation is so many median absolute deviations, for normal noise: 1 / Φ⁻¹(3/4).
const MAD_TO_SD: f64 = 1.482_602_218_505_602;
/// The median absolute deviation knows the spread of normal noise as well as a standard deviation of so many times
/// fewer values does.
const MAD_EFFICIENCY: f64 = 0.37;
/// Rounds of median polish: what a fourth would change is far below any spread.
const ROUNDS: usize = 3;
/// Logs of values that agree to the last digit differ by rounding alone.
const SMALLEST_SD: f64 = 1e-12;

/// The observations that `rule` leaves out, by index. `disturbed` belongs to `observations`, one by one; what it
/// is too short for was not disturbed. Residuals are those of the block model on logs:
/// treatments' effects taken off by least squares, so that the rule cannot see them, and then medians of blocks
/// and treatments, which a single far trial does not drag along (median polish; source: Tukey, *Exploratory Data
/// Analysis*, 1977). Their robust standard deviation is 1.4826 times the median of their sizes, widened by √(trials /
/// degrees of freedom) for what the model has taken off them. Nothing is far where there are no degrees of freedom,
/// or where most residuals are zero.
pub fn excluded(observations: &[Observation], disturbed: &[bool], rule: OutlierRule) -> Vec<Excluded> {
    // Most experiments have no disturbance, and then nothing is to be judged.
    let model = match disturbed.contains(&true) {
        true => deviations(observations),
        false => None,
    };
    let far = |index: usize| {
        let (left, student) = model.as_ref()?;
        let deviations = left[index];
        // Student's tails are the wider ones, so that this spares looking at most.
        let near = deviations.abs() <= rule.deviations;
        if near || !disturbed.get(index).copied().unwrap_or(false) {
            return None;
        }
        let rare = Normal::new(0.0, 1.0).ok()?.sf(rule.deviations);
        (student.sf(deviations.abs()) < rare).then_some(WhyExcluded::DisturbedAndFar { deviations })
    };
    (0..observations.len())
        .filter_map(|index| {
            let why = match observations[index].usable() {
                false => WhyExcluded::NoRatio,
                true => far(index)?,
            };
            Some(Excluded { index, why })
        })
        .collect()
}

/// Each observation's distance from the model in robust standard deviations, zero for those without a logarithm; and
/// how such a distance is distributed.
fn deviations(observations: &[Observation]) -> Option<(Vec<f64>, StudentsT)> {
    let fit = BlockFit::new(observations)?;
    let usable: Vec<usize> = (0..observations.len())
        .filter(|&i| observations[i].usable())
        .collect();
    let mut left = vec![0.0; observations.len()];
    for &i in &usable {
        left[i] = observations[i].value.ln() - fit.term(observations[i].treatment)?;
    }
    let blocks = groups(&usable, |i| observations[i].block);
    let treatments = groups(&usable, |i| observations[i].treatment);
    let mut scratch = Vec::with_capacity(usable.len());
    for _ in 0..ROUNDS {
        for group in blocks.iter().chain(&treatments) {
            take_median(&mut left, group, &mut scratch);
        }
    }
    let mut sizes: Vec<f64> = usable.iter().map(|&i| left[i].abs()).collect();
    let freedom = count(fit.degrees_of_freedom());
    let sd = MAD_TO_SD * median(&mut sizes) * (count(usable.len()) / freedom).sqrt();
    if !sd.is_finite() || sd <= SMALLEST_SD {
        return None;
    }
    let student = StudentsT::new(0.0, 1.0, (MAD_EFFICIENCY * freedom).max(1.0)).ok()?;
    Some((left.iter().map(|left| left / sd).collect(), student))
}

/// Indices that have something in common.
fn groups(indices: &[usize], of: impl Fn(usize) -> usize) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &i in indices {
        groups.entry(of(i)).or_default().push(i);
    }
    groups.into_values().collect()
}

/// Takes the median of a group off it.
fn take_median(left: &mut [f64], group: &[usize], scratch: &mut Vec<f64>) {
    scratch.clear();
    scratch.extend(group.iter().map(|&i| left[i]));
    let middle = median(scratch);
    group.iter().for_each(|&i| left[i] -= middle);
}

/// Of values that are at least one.
fn median(values: &mut [f64]) -> f64 {
    let n = values.len();
    values.sort_unstable_by(f64::total_cmp);
    f64::midpoint(values[(n - 1) / 2], values[n / 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Three treatments in four blocks, a wobble of some per mille.
    fn calm() -> Vec<Observation> {
        (0..12_u8)
            .map(|i| Observation {
                block: usize::from(i / 3),
                treatment: usize::from(i % 3),
                value: 1000.0 * (1.0 + 0.004 * f64::from((i * 7) % 5)),
            })
            .collect()
    }

    #[test]
    fn far_and_disturbed_is_out_and_neither_alone_is() {
        let check = |factor: f64, disturbed: bool, expected: Option<bool>| {
            let mut all = calm();
            all[4].value *= factor;
            let mut flags = vec![false; 12];
            flags[4] = disturbed;
            let found = excluded(&all, &flags, OutlierRule::default());
            assert_eq!(
                found.len(),
                usize::from(expected.is_some()),
                "{factor} {disturbed} {found:?}"
            );
            if let (Some(below), Some(found)) = (expected, found.first()) {
                assert_eq!(found.index, 4);
                assert!(
                    matches!(found.why, WhyExcluded::DisturbedAndFar { deviations } if (deviations < 0.0) == below)
                );
            }
        };
        check(0.8, true, Some(true));
        check(1.3, true, Some(false));
        check(0.8, false, None);
        check(1.0, true, None);
    }

    #[test]
    fn what_has_no_logarithm_is_out_by_itself() {
        let mut all = calm();
        all[2].value = f64::NAN;
        let found = excluded(&all, &[], OutlierRule::default());
        assert_eq!(
            found,
            [Excluded {
                index: 2,
                why: WhyExcluded::NoRatio
            }]
        );
        assert!(excluded(&[], &[], OutlierRule::default()).is_empty());
    }

    proptest! {
        /// Names of treatments, the level of a block and a treatment's effect do not matter to the rule.
        #[test]
        fn the_rule_is_blind(
            values in prop::collection::vec(900.0_f64..1100.0, 12),
            flags in prop::collection::vec(any::<bool>(), 12),
            effect in 0.5_f64..2.0,
        ) {
            let plain: Vec<Observation> =
                calm().iter().zip(&values).map(|(o, &value)| Observation { value, ..*o }).collect();
            let other: Vec<Observation> = plain
                .iter()
                .map(|o| Observation {
                    block: o.block,
                    treatment: 7 - o.treatment,
                    value: o.value * if o.treatment == 1 { effect } else { 1.0 },
                })
                .collect();
            let rule = OutlierRule { deviations: 2.0 };
            let index = |all: Vec<Excluded>| all.iter().map(|e| e.index).collect::<Vec<_>>();
            prop_assert_eq!(index(excluded(&plain, &flags, rule)), index(excluded(&other, &flags, rule)));
        }
    }
}
