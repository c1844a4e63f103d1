use super::*;
use crate::pairs::Comparison;
use crate::verdict::{Verdict, decide};
use proptest::prelude::*;

const RULES: Rules = Rules {
    confidence: 0.95,
    smallest_effect: 0.02,
    larger_is_better: true,
};

/// All combinations, the last factor fastest.
fn grid(sizes: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for &size in sizes {
        all = all
            .iter()
            .flat_map(|of: &Vec<usize>| (0..size).map(move |level| [&of[..], &[level]].concat()))
            .collect();
    }
    all
}

/// A small wobble that is not a multiple of any factor's.
fn wobble(block: usize, treatment: usize) -> f64 {
    1.0 + 0.001 * count((block * 7 + treatment * 5) % 11)
}

fn observe(runs: usize, blocks: usize, value: impl Fn(usize) -> f64, noise: bool) -> Vec<Observation> {
    (0..blocks)
        .flat_map(|block| (0..runs).map(move |treatment| (block, treatment)))
        .map(|(block, treatment)| Observation {
            block,
            treatment,
            value: value(treatment)
                * (1.0 + count(block))
                * if noise { wobble(block, treatment) } else { 1.0 },
        })
        .collect()
}

#[test]
fn a_product_of_two_has_no_interaction_and_a_synergy_has() {
    let levels = grid(&[2, 3]);
    let check = |synergy: f64, expected: [f64; 5], verdict| {
        let value = |t: usize| {
            let (a, b) = (levels[t][0], levels[t][1]);
            let product = [100.0, 120.0][a] * [1.0, 0.9, 1.5][b];
            if (a, b) == (1, 2) {
                product * synergy
            } else {
                product
            }
        };
        let found = factorial_effects(&levels, &observe(6, 4, value, true), RULES).unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|e| {
                (
                    e.first.factor,
                    e.first.level,
                    e.second.map(|s| (s.factor, s.level)),
                )
            })
            .collect();
        assert_eq!(
            names,
            [
                (0, 1, None),
                (1, 1, None),
                (1, 2, None),
                (0, 1, Some((1, 1))),
                (0, 1, Some((1, 2)))
            ]
        );
        for (one, expected) in found.iter().zip(expected) {
            let effect = one.effect.unwrap();
            assert!((effect.ratio / expected - 1.0).abs() < 0.01, "{one:?} {expected}");
            assert_eq!(effect.blocks, 4);
        }
        assert_eq!(found[4].effect.unwrap().verdict, verdict);
    };
    check(1.0, [1.2, 0.9, 1.5, 1.0, 1.0], Verdict::Same);
    let third = 1.3_f64.powf(1.0 / 3.0);
    let half = 1.3_f64.sqrt();
    check(1.3, [1.2 * third, 0.9, 1.5 * half, 1.0, 1.3], Verdict::Better);
}

/// With one factor of two levels it is the comparison of the two.
#[test]
fn one_factor_is_decided_as_ever() {
    let levels = grid(&[2]);
    let all = observe(2, 4, |t| [100.0, 103.0][t], true);
    let comparison = Comparison {
        treatment: 1,
        reference: 0,
    };
    let one = factorial_effects(&levels, &all, RULES).unwrap()[0]
        .effect
        .unwrap();
    let other = decide(&all, &[comparison], RULES)[0].unwrap();
    assert!((one.ratio_low - other.ratio_low).abs() < 1e-9 && one.verdict == other.verdict);
}

#[test]
fn a_fraction_is_no_full_factorial() {
    let mut levels = grid(&[2, 2]);
    assert!(
        factorial_effects(&levels, &[], RULES)
            .unwrap()
            .iter()
            .all(|e| e.effect.is_none())
    );
    levels.pop();
    assert!(factorial_effects(&levels, &[], RULES).is_none());
    levels.push(vec![0, 0]);
    assert!(factorial_effects(&levels, &[], RULES).is_none());
    assert!(factorial_effects(&[vec![0], vec![0, 1]], &[], RULES).is_none());
    assert!(factorial_effects(&[vec![usize::MAX]], &[], RULES).is_none());
    assert!(factorial_effects(&[], &[], RULES).is_none());
}

/// Twelve runs of Plackett & Burman: cyclic shifts of their row, and a row of -1.
fn plackett_burman() -> Vec<Vec<i8>> {
    let row = [1, 1, -1, 1, 1, 1, -1, -1, -1, 1, -1];
    (0..11)
        .map(|factor| {
            (0..12)
                .map(|run| {
                    if run == 11 {
                        -1
                    } else {
                        row[(factor + 11 - run) % 11]
                    }
                })
                .collect()
        })
        .collect()
}

#[test]
fn screening_finds_the_factors_that_matter() {
    let columns = &plackett_burman()[..8];
    let value = |run: usize| {
        let at = |factor: usize| f64::from(columns[factor][run]);
        1000.0 * 1.10_f64.powf(at(2) / 2.0) * 0.9_f64.powf(at(5) / 2.0)
    };
    for blocks in [1, 3] {
        let found = screening_effects(columns, &observe(12, blocks, value, true), RULES);
        for (factor, effect) in found.iter().enumerate() {
            let (ratio, verdict) = match factor {
                2 => (1.1, Verdict::Better),
                5 => (0.9, Verdict::Worse),
                _ => (1.0, Verdict::Same),
            };
            let effect = effect.unwrap();
            assert!((effect.ratio / ratio - 1.0).abs() < 0.01, "{factor}: {effect:?}");
            assert_eq!((effect.verdict, effect.blocks), (verdict, blocks));
        }
    }
}

#[test]
fn what_cannot_be_screened_is_none() {
    let columns = plackett_burman();
    let all = observe(12, 1, |_| 100.0, true);
    let none = |columns: &[Vec<i8>], all: &[Observation]| {
        let found = screening_effects(columns, all, RULES);
        assert_eq!(found, vec![None; columns.len()]);
    };
    none(&columns, &all); // eleven effects and a mean of twelve runs: no degree of freedom
    none(&[columns[0].clone(), columns[0].clone()], &all);
    none(&[vec![1, -1], vec![1]], &all);
    none(&[vec![0, 1]], &all);
    none(&[], &all);
    none(&columns[..2], &[]);
}

proptest! {
    /// For two levels each, the main effects of a full factorial are those of its columns.
    #[test]
    fn both_ways_agree_on_ratios(values in prop::collection::vec(50.0_f64..200.0, 24)) {
        let levels = grid(&[2, 2, 2]);
        let columns: Vec<Vec<i8>> =
            (0..3).map(|f| levels.iter().map(|of| if of[f] == 1 { 1 } else { -1 }).collect()).collect();
        let all: Vec<Observation> = values
            .iter()
            .enumerate()
            .map(|(i, &value)| Observation { block: i / 8, treatment: i % 8, value })
            .collect();
        let one = factorial_effects(&levels, &all, RULES).unwrap();
        for (a, b) in one.iter().zip(screening_effects(&columns, &all, RULES)) {
            prop_assert!((a.effect.unwrap().ratio - b.unwrap().ratio).abs() < 1e-9);
        }
    }
}
