use super::*;
use proptest::prelude::*;
use std::sync::LazyLock;

const RULE: StoppingRule = StoppingRule {
    rules: Rules {
        confidence: 0.95,
        smallest_effect: 0.02,
        larger_is_better: true,
    },
    blocks_min: 3,
    blocks_max: 8,
    may_be_futile: false,
};

fn against_first(treatments: usize) -> Vec<Comparison> {
    (1..treatments)
        .map(|treatment| Comparison {
            treatment,
            reference: 0,
        })
        .collect()
}

fn plan(rule: StoppingRule, treatments: usize) -> Sequential {
    Sequential::new(rule, &against_first(treatments)).unwrap()
}

/// Block by block; `factors` by treatment, with a wobble of some per mille.
fn observe(blocks: usize, factors: &[f64]) -> Vec<Observation> {
    let cells = (0..blocks).flat_map(|block| (0..factors.len()).map(move |treatment| (block, treatment)));
    cells
        .map(|(block, treatment)| Observation {
            block,
            treatment,
            value: 1000.0 * factors[treatment] * (1.0 + 0.002 * count((block * 3 + treatment * 5) % 7)),
        })
        .collect()
}

fn look(plan: &Sequential, observations: &[Observation], blocks: usize) -> Looked {
    let ended: Vec<usize> = (0..blocks).collect();
    plan.look(Trials {
        observations,
        ended: &ended,
    })
}

#[test]
fn nothing_is_said_before_the_first_look_and_a_verdict_stays() {
    let plan = plan(RULE, 3);
    let mut all = observe(8, &[1.0, 1.3, 1.015]);
    let early = look(&plan, &all, 2);
    assert!(!early.done && early.effects.iter().all(Option::is_none));
    let first = look(&plan, &all, 3);
    assert_eq!(first.effects[0].unwrap().verdict, Verdict::Better);
    assert_eq!(first.decided_after[0], Some(3));
    // From now on the better one is the worse one: the verdict was given, and the latest effect
    // says otherwise.
    for o in all.iter_mut().filter(|o| o.treatment == 1 && o.block > 2) {
        o.value /= 3.0;
    }
    let last = look(&plan, &all, 8);
    assert_eq!(last.effects[0], first.effects[0]);
    assert!(last.latest[0].unwrap().ratio < 1.0);
    assert!(last.done);
}

#[test]
fn the_same_stops_too() {
    let looked = look(&plan(RULE, 2), &observe(8, &[1.0, 1.0]), 8);
    assert_eq!(looked.effects[0].unwrap().verdict, Verdict::Same);
    assert!(looked.done && looked.decided_after[0].unwrap() < 8, "{looked:?}");
}

#[test]
fn the_last_look_ends_it_undecided() {
    let mut all = observe(9, &[1.0, 1.0]);
    for o in all.iter_mut().filter(|o| o.block % 2 == 0 && o.treatment == 1) {
        o.value *= 1.5;
    }
    assert!(!look(&plan(RULE, 2), &all, 7).done);
    let last = look(&plan(RULE, 2), &all, 8);
    assert!(last.done && last.decided_after[0].is_none());
    assert_eq!(last.effects[0].unwrap().verdict, Verdict::Undecided);
    assert_eq!(look(&plan(RULE, 2), &all, 9), last, "blocks past the last look");
}

#[test]
fn a_treatment_that_never_finished_is_not_waited_for() {
    let mut all = observe(8, &[1.0, 1.3, 1.0]);
    all.iter_mut()
        .filter(|o| o.treatment == 2)
        .for_each(|o| o.value = f64::NAN);
    let looked = look(&plan(RULE, 3), &all, 4);
    assert!(looked.done && looked.effects[1].is_none());
    assert_eq!(looked.effects[0].unwrap().verdict, Verdict::Better);
}

#[test]
fn a_rule_that_cannot_be_is_none() {
    let check = |rule: StoppingRule, comparisons: usize| {
        let none = Sequential::new(rule, &against_first(comparisons + 1)).is_none();
        assert!(none, "{rule:?}");
    };
    check(
        StoppingRule {
            blocks_min: 1,
            ..RULE
        },
        1,
    );
    check(
        StoppingRule {
            blocks_min: 9,
            ..RULE
        },
        1,
    );
    check(
        StoppingRule {
            blocks_max: 501,
            ..RULE
        },
        1,
    );
    check(RULE, 0);
    let rules = Rules {
        confidence: 1.0,
        ..RULE.rules
    };
    check(StoppingRule { rules, ..RULE }, 1);
}

/// A fixed number of blocks is the case of a single look.
#[test]
fn one_look_is_decided_as_ever() {
    let rule = StoppingRule {
        blocks_min: 5,
        blocks_max: 5,
        ..RULE
    };
    let all = observe(5, &[1.0, 1.02, 1.05]);
    let (one, other) = (
        look(&plan(rule, 3), &all, 5).effects,
        crate::decide(&all, &against_first(3), RULE.rules),
    );
    for (one, other) in one.iter().zip(other) {
        let (one, other) = (one.unwrap(), other.unwrap());
        assert!(
            (one.ratio_low / other.ratio_low - 1.0).abs() < 1e-4,
            "{one:?} {other:?}"
        );
    }
}

static OF_THREE: LazyLock<Sequential> = LazyLock::new(|| plan(RULE, 3));

proptest! {
    /// Whatever the order of trials, the numbers of blocks and the looks before, the answer is one.
    #[test]
    fn a_resumed_experiment_says_the_same(
        values in prop::collection::vec(900.0_f64..1100.0, 24),
        effect in 0.9_f64..1.1,
        turn in 0_usize..24,
    ) {
        let mut all: Vec<Observation> = values
            .iter()
            .enumerate()
            .map(|(i, &value)| Observation {
                block: i / 3,
                treatment: i % 3,
                value: if i % 3 == 1 { value * effect } else { value },
            })
            .collect();
        let plan = &*OF_THREE;
        let whole = look(plan, &all, 8);
        let mut stopped = None;
        for blocks in 1..=8 {
            let now = look(plan, &all, blocks);
            for (i, after) in now.decided_after.iter().enumerate().filter(|(_, after)| after.is_some()) {
                prop_assert_eq!(whole.decided_after[i], *after);
                prop_assert_eq!(whole.effects[i], now.effects[i]);
            }
            if now.done && stopped.is_none() {
                stopped = Some(now.effects);
            }
        }
        prop_assert_eq!(stopped, Some(whole.effects.clone()));
        all.rotate_left(turn);
        all.iter_mut().for_each(|o| o.block = 100 - o.block);
        let ended: Vec<usize> = (93..=100).rev().collect();
        prop_assert_eq!(plan.look(Trials { observations: &all, ended: &ended }), whole);
    }
}
