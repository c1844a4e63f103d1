use super::*;
use crate::chance::{SeedableRng, Xoshiro256PlusPlus, normal};
use proptest::prelude::*;

const LADDER: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

fn law(lambda: f64, sigma: f64, kappa: f64, n: f64) -> f64 {
    lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))
}

fn point(n: f64, value: f64) -> UslPoint {
    UslPoint { block: 1, n, value }
}

fn noisy(
    random: &mut Xoshiro256PlusPlus,
    truth: (f64, f64, f64),
    levels: &[f64],
    replicates: usize,
    noise: f64,
) -> Vec<UslPoint> {
    let mut all = Vec::new();
    for &n in levels {
        for _ in 0..replicates {
            let value = law(truth.0, truth.1, truth.2, n) * (noise * normal(random)).exp();
            all.push(point(n, value));
        }
    }
    all
}

#[test]
fn known_parameters_come_back() {
    let check = |lambda, sigma, kappa| {
        let points: Vec<UslPoint> = LADDER
            .iter()
            .map(|&n| point(n, law(lambda, sigma, kappa, n)))
            .collect();
        let fit = fit_usl(&points).unwrap();
        let near = |found: f64, truth: f64, what: &str| {
            assert!(
                (found - truth).abs() <= 1e-5 * truth + 1e-9,
                "{what}: {found} {truth}"
            );
        };
        near(fit.lambda(), lambda, "lambda");
        near(fit.sigma(), sigma, "sigma");
        near(fit.kappa(), kappa, "kappa");
        let peak = fit.peak(0.95).unwrap();
        if kappa > 0.0 {
            let n = ((1.0_f64 - sigma) / kappa).sqrt();
            assert!((peak.n.value.unwrap() / n - 1.0).abs() < 1e-4);
            assert!((peak.value.value.unwrap() / law(lambda, sigma, kappa, n) - 1.0).abs() < 1e-5);
        }
        let found = fit.parameters(0.95).unwrap();
        assert!(found.lambda.low <= lambda && lambda <= found.lambda.high.unwrap());
    };
    check(1000.0, 0.05, 0.0005);
    check(1.0, 0.0, 0.001);
    check(5e6, 0.3, 1e-5);
    check(1000.0, 0.02, 0.0);
    check(1000.0, 0.0, 0.0);
}

/// The worked example of docs/explanation/scaling.md.
#[test]
fn the_worked_example() {
    let points: Vec<UslPoint> = LADDER
        .into_iter()
        .zip([950.0, 1840.0, 3390.0, 5900.0, 9010.0, 11_500.0, 11_100.0])
        .map(|(n, value)| point(n, value))
        .collect();
    let fit = fit_usl(&points).unwrap();
    let check = |what: &str, found: (f64, f64, f64), expected: (f64, f64, f64)| {
        for (found, expected) in [
            (found.0, expected.0),
            (found.1, expected.1),
            (found.2, expected.2),
        ] {
            assert!(
                (found / expected - 1.0).abs() < 0.005,
                "{what}: {found} {expected}"
            );
        }
    };
    let three = |e: Estimate| (e.value, e.low, e.high.unwrap());
    let open = |e: OpenEstimate| (e.value.unwrap(), e.low.unwrap(), e.high.unwrap());
    let parameters = fit.parameters(0.95).unwrap();
    check("lambda", three(parameters.lambda), (950.0, 939.0, 961.0));
    check("sigma", three(parameters.sigma), (0.0366, 0.0341, 0.0391));
    check(
        "kappa",
        three(parameters.kappa),
        (0.000_534, 0.000_490, 0.000_578),
    );
    let peak = fit.peak(0.95).unwrap();
    check("peak", open(peak.n), (42.5, 40.9, 44.3));
    check("its height", open(peak.value), (11_660.0, 11_535.0, 11_790.0));
    check(
        "128",
        three(fit.interval_at(128.0, 0.95).unwrap()),
        (8480.0, 8180.0, 8800.0),
    );
    let need = fit.need(8000.0, 0.95).unwrap();
    check(
        "8000",
        (need.n.unwrap(), need.low.unwrap(), need.high.unwrap()),
        (12.7, 12.5, 12.9),
    );
}

/// Throughput falls from the first client on, or never changes: ends of what the law can say.
#[test]
fn the_ends_of_the_law() {
    let flat: Vec<UslPoint> = LADDER.iter().map(|&n| point(n, 500.0)).collect();
    let fit = fit_usl(&flat).unwrap();
    assert!((fit.sigma() - 1.0).abs() < 1e-6 && (fit.lambda() - 500.0).abs() < 1e-3);
    let falls: Vec<UslPoint> = LADDER
        .iter()
        .map(|&n| point(n, law(500.0, 0.5, 3.0, n)))
        .collect();
    let peak = fit_usl(&falls).unwrap().peak(0.95).unwrap();
    assert_eq!(peak.n.value, Some(1.0));
    assert!((peak.value.value.unwrap() - 500.0).abs() < 0.1);
    let drops: Vec<UslPoint> = [96_124.8, 10.0, 10.0, 10.0]
        .iter()
        .zip(LADDER)
        .map(|(&v, n)| point(n, v))
        .collect();
    let need = fit_usl(&drops).unwrap().need(532_687.0, 0.95).unwrap();
    assert_eq!((need.n, need.high), (None, None));
    let linear: Vec<UslPoint> = LADDER.iter().map(|&n| point(n, 70.0 * n)).collect();
    let fit = fit_usl(&linear).unwrap();
    assert!((fit.need(7000.0, 0.95).unwrap().n.unwrap() - 100.0).abs() < 0.01);
    assert!((fit.need(35.0, 0.95).unwrap().n.unwrap() - 0.5).abs() < 0.001);
}

#[test]
fn what_is_refused_says_why() {
    let check = |points: &[UslPoint], expected: &str| {
        assert!(
            fit_usl(points).unwrap_err().to_string().contains(expected),
            "{expected}"
        );
    };
    let good = [
        point(1.0, 10.0),
        point(2.0, 19.0),
        point(4.0, 35.0),
        point(8.0, 60.0),
    ];
    assert!(fit_usl(&good).is_ok());
    check(&good[..3], "there are 3");
    check(&[good[0], good[0], good[1], good[2]], "there are 3");
    check(&[point(1.0, 0.0), good[1], good[2], good[3]], "point 0");
    check(&[good[0], point(2.0, f64::NAN), good[2], good[3]], "point 1");
    check(&[good[0], good[1], good[2], point(0.5, 5.0)], "at least 1");
    let fit = fit_usl(&good).unwrap();
    assert!(fit.parameters(1.0).is_none() && fit.peak(0.0).is_none());
    assert!(fit.interval_at(0.5, 0.95).is_none() && fit.need(-1.0, 0.95).is_none());
}

/// What a nominal interval of 95 % holds: 90 to 99 % of the time the truth (and seldom less often,
/// for bounded parameters more often). Two ladders, one trial per client count and three.
#[test]
fn intervals_cover_the_truth() {
    let check = |truth: (f64, f64, f64), levels: &[f64], replicates: usize, noise: f64, seed: u64| {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let rounds = 200;
        let far = 2.0 * levels[levels.len() - 1];
        let mut held = [0_u32; 5];
        for _ in 0..rounds {
            let fit = fit_usl(&noisy(&mut random, truth, levels, replicates, noise)).unwrap();
            let found = fit.parameters(0.95).unwrap();
            let at = fit.interval_at(far, 0.95).unwrap();
            let n = fit.peak_place(fit.limits(0.95).unwrap().t);
            let holds = |low: f64, value: f64, high: Option<f64>| {
                u32::from(low <= value && high.is_none_or(|high| value <= high))
            };
            held[0] += holds(found.lambda.low, truth.0, found.lambda.high);
            held[1] += holds(found.sigma.low, truth.1, found.sigma.high);
            held[2] += holds(found.kappa.low, truth.2, found.kappa.high);
            held[3] += holds(at.low, law(truth.0, truth.1, truth.2, far), at.high);
            let peak = ((1.0 - truth.1) / truth.2).sqrt();
            held[4] += holds(n.low.unwrap_or(f64::INFINITY), peak, n.high);
        }
        for (what, &held) in held.iter().enumerate() {
            assert!(
                (90..=99).contains(&(held * 100 / rounds)),
                "{what}: {held} of {rounds}"
            );
        }
    };
    check((1000.0, 0.05, 0.0005), &LADDER, 1, 0.03, 11);
    check(
        (1000.0, 0.05, 0.0005),
        &[1.0, 5.0, 20.0, 50.0, 100.0],
        3,
        0.05,
        12,
    );
}

/// The same for what is worked out from whole curves: the height of the peak (whose lower bound is
/// on the safe side) and the N that gives 80 % of it. Parameters at their bounds are among the
/// truths.
#[test]
fn peaks_and_needs_are_covered_too() {
    let check = |truth: (f64, f64, f64), most: u32| {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(13);
        let rounds = 60;
        let peak = law(truth.0, truth.1, truth.2, ((1.0 - truth.1) / truth.2).sqrt());
        let needed = (1..100_000_u32)
            .map(|i| f64::from(i) / 100.0)
            .find(|&n| law(truth.0, truth.1, truth.2, n) >= 0.8 * peak)
            .unwrap();
        let mut held = [0_u32; 2];
        for _ in 0..rounds {
            let fit = fit_usl(&noisy(&mut random, truth, &LADDER[..7], 2, 0.03)).unwrap();
            let holds = |low: Option<f64>, value: f64, high: Option<f64>| {
                u32::from(low.is_some_and(|low| low <= value) && high.is_none_or(|high| value <= high))
            };
            let found = fit.peak(0.95).unwrap().value;
            held[0] += holds(found.low, peak, found.high);
            let found = fit.need(0.8 * peak, 0.95).unwrap();
            held[1] += holds(found.low, needed, found.high);
        }
        for held in held {
            assert!(
                (90..=most).contains(&(held * 100 / rounds)),
                "{truth:?}: {held} of {rounds}"
            );
        }
    };
    check((1000.0, 0.05, 0.0005), 100);
    check((1000.0, 0.0, 0.0005), 100);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever the points, a fit is within its bounds, and the unit of throughput does not matter.
    #[test]
    fn units_do_not_matter(values in prop::collection::vec(10.0_f64..1000.0, 6), unit in 1e-6_f64..1e6) {
        let of = |unit: f64| -> Vec<UslPoint> {
            LADDER.iter().zip(&values).map(|(&n, v)| point(n, unit * v)).collect()
        };
        let (a, b) = (fit_usl(&of(1.0)), fit_usl(&of(unit)));
        if let (Ok(a), Ok(b)) = (a, b) {
            prop_assert!(a.lambda() > 0.0 && (0.0..=1.0).contains(&a.sigma()) && a.kappa() >= 0.0);
            prop_assert!((b.best.sum - a.best.sum).abs() <= 1e-6 * a.best.sum + 1e-12, "{} {}", a.best.sum, b.best.sum);
        }
    }
}
