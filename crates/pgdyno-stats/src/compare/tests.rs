use super::*;
use crate::chance::{SeedableRng, Xoshiro256PlusPlus, normal};
use crate::verdict::Verdict;
use proptest::prelude::*;

const RULES: Rules = Rules {
    confidence: 0.95,
    smallest_effect: 0.02,
    larger_is_better: true,
};

/// Seconds around 1000 with a spread of 50, each like the one before with correlation `r`.
fn seconds(random: &mut Xoshiro256PlusPlus, n: usize, r: f64) -> Vec<f64> {
    let mut state = normal(random);
    (0..n)
        .map(|_| {
            state = r * state + (1.0 - r * r).sqrt() * normal(random);
            1000.0 + 50.0 * state
        })
        .collect()
}

/// Logs 0, 0.02, 0.04 against 0.1, 0.11, 0.12, 0.13: Welch's figures worked out by hand.
#[test]
fn welch_by_hand() {
    let exp = |logs: &[f64]| logs.iter().map(|v: &f64| v.exp()).collect::<Vec<f64>>();
    let found = compare_samples(&exp(&[0.1, 0.11, 0.12, 0.13]), &exp(&[0.0, 0.02, 0.04]), 1, RULES).unwrap();
    let (a, b): (f64, f64) = (0.0005 / 3.0 / 4.0, 0.0004 / 3.0);
    let df = (a + b) * (a + b) / (a * a / 3.0 + b * b / 2.0);
    assert!((df - 3.234_7).abs() < 1e-3, "{df}");
    let margin = student(0.95, df).unwrap() * (a + b).sqrt();
    assert!((found.effect.ratio.ln() - 0.095).abs() < 1e-12);
    assert!((found.effect.ratio_low.ln() - (0.095 - margin)).abs() < 1e-12);
    assert_eq!(found.effect.verdict, Verdict::Better);
    assert_eq!((found.basis, found.effect.blocks), (Basis::Trials, 0));
}

#[test]
fn verdicts_follow_the_rules() {
    let check = |test: &[f64], reference: &[f64], rules: Rules, expected: Option<Verdict>| {
        let found = compare_samples(test, reference, 1, rules).map(|c| c.effect.verdict);
        assert_eq!(found, expected, "{test:?} {reference:?}");
    };
    let slow = Rules {
        larger_is_better: false,
        ..RULES
    };
    check(
        &[110.0, 111.0, 112.0],
        &[100.0, 101.0, 102.0],
        RULES,
        Some(Verdict::Better),
    );
    check(
        &[110.0, 111.0, 112.0],
        &[100.0, 101.0, 102.0],
        slow,
        Some(Verdict::Worse),
    );
    check(
        &[100.0, 100.1, 100.2],
        &[100.0, 100.1, 100.3],
        RULES,
        Some(Verdict::Same),
    );
    check(&[100.0, 130.0], &[100.0, 120.0], RULES, Some(Verdict::Undecided));
    check(&[100.0, 100.0], &[100.0, 100.0], RULES, Some(Verdict::Same));
    check(&[100.0, f64::NAN, 0.0], &[100.0, 100.0], RULES, None);
    check(
        &[100.0, 101.0],
        &[100.0, 101.0],
        Rules {
            confidence: 1.0,
            ..RULES
        },
        None,
    );
    assert!(compare_samples(&[1.0, 2.0], &[1.0, 2.0], 0, RULES).is_none());
    let (one, ten) = (
        compare_samples(&[1.0, 1.1], &[1.0, 1.2], 1, RULES).unwrap(),
        compare_samples(&[1.0, 1.1], &[1.0, 1.2], 10, RULES).unwrap(),
    );
    assert!(
        ten.effect.ratio_high > one.effect.ratio_high,
        "intervals that hold together are wider"
    );
}

/// Two samples of the same, spreads apart by a factor of three: the truth is in the interval as
/// often as promised.
#[test]
fn welch_covers_the_truth() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
    let rounds = 2000;
    let mut held = 0;
    for _ in 0..rounds {
        let mut sample = |n: usize, spread: f64| {
            (0..n)
                .map(|_| (spread * normal(&mut random)).exp())
                .collect::<Vec<f64>>()
        };
        let found = compare_samples(&sample(4, 0.03), &sample(6, 0.01), 1, RULES).unwrap();
        held += u32::from(found.effect.ratio_low <= 1.0 && 1.0 <= found.effect.ratio_high);
    }
    assert!((93..=98).contains(&(held * 100 / rounds)), "{held} of {rounds}");
}

/// With independent seconds and with seconds that are much alike.
#[test]
fn within_a_trial_the_interval_covers_its_mean() {
    let check = |n: usize, r: f64, least: u32| {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
        let rounds = 1000;
        let (mut held, mut ratio) = (0, 0);
        for _ in 0..rounds {
            let (a, b) = (seconds(&mut random, n, r), seconds(&mut random, n, r));
            let found = within_trial_interval(&a, 0.95).unwrap();
            held += u32::from(found.mean.low <= 1000.0 && 1000.0 <= found.mean.high);
            let found = compare_within(&a, &b, RULES).unwrap();
            assert_eq!(found.basis, Basis::WithinOneTrial);
            ratio += u32::from(found.effect.ratio_low <= 1.0 && 1.0 <= found.effect.ratio_high);
        }
        for held in [held, ratio] {
            assert!(
                (least..=99).contains(&(held * 100 / rounds)),
                "{n} {r}: {held} of {rounds}"
            );
        }
    };
    check(60, 0.0, 93);
    check(60, 0.5, 93);
    check(60, 0.8, 90);
    check(300, 0.8, 93);
    check(20, 0.3, 90);
}

#[test]
fn seconds_that_cannot_be_judged() {
    assert!(within_trial_interval(&[1.0; 9], 0.95).is_none());
    assert!(within_trial_interval(&[f64::NAN; 20], 0.95).is_none());
    assert!(within_trial_interval(&[1.0; 20], 1.0).is_none());
    assert!(compare_within(&[0.0; 20], &[1.0; 20], RULES).is_none());
    let still = within_trial_interval(&[7.0; 20], 0.95).unwrap();
    assert_eq!(
        (still.mean.low, still.mean.high, still.effective_size),
        (7.0, 7.0, 20.0)
    );
    let ramp: Vec<f64> = (0..30).map(|i| 100.0 + 10.0 * f64::from(i)).collect();
    let found = within_trial_interval(&ramp, 0.95).unwrap();
    assert!(!found.steadiness.unwrap().settled);
    assert!(found.effective_size < 3.0, "{found:?}");
}

proptest! {
    /// The other way round it is the reciprocal.
    #[test]
    fn sides_can_be_exchanged(
        a in prop::collection::vec(1.0_f64..1000.0, 2..8),
        b in prop::collection::vec(1.0_f64..1000.0, 2..8),
    ) {
        let (x, y) = (compare_samples(&a, &b, 1, RULES).unwrap(), compare_samples(&b, &a, 1, RULES).unwrap());
        prop_assert!((x.effect.ratio * y.effect.ratio - 1.0).abs() < 1e-9);
        prop_assert!((x.effect.ratio_low * y.effect.ratio_high - 1.0).abs() < 1e-6);
        prop_assert!(x.effect.ratio_low <= x.effect.ratio && x.effect.ratio <= x.effect.ratio_high);
    }
}
