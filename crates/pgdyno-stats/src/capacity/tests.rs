use super::*;
use proptest::prelude::*;

fn levels_of(all: &[(f64, f64, f64)]) -> Vec<CpuLevel> {
    all.iter()
        .map(|&(cpus, clients, tps)| CpuLevel {
            cpus,
            clients,
            tps: vec![tps],
        })
        .collect()
}

fn resources(levels: &[(f64, f64, f64)], tps: f64) -> (CapacityModel, Resources) {
    let capacity = Capacity::fit(&levels_of(levels)).unwrap();
    match capacity.need(tps, 0.95).unwrap() {
        Need::Reachable(found) => (capacity.model(), found),
        other => panic!("{other:?}"),
    }
}

fn holds(estimate: &Estimate, value: f64) -> bool {
    estimate.low <= value && estimate.high.is_none_or(|high| value <= high)
}

/// A published study of how many CPUs and connections 60,000 write transactions per second need: measured levels in,
/// and what it then found with machines of that size.
#[test]
fn a_published_study_is_met() {
    let check = |levels: &[(f64, f64, f64)], near: (f64, f64), found_cpus: f64, found_connections: f64| {
        let (model, found) = resources(levels, 60_000.0);
        assert_eq!(model, CapacityModel::Usl);
        assert!((near.0..near.1).contains(&found.cpus.value), "{found:?}");
        assert!(holds(&found.cpus, found_cpus), "{found:?}");
        assert!(holds(&found.connections, found_connections), "{found:?}");
        assert!(found.cpus.low > 1.0 && found.extrapolates < 1.2, "{found:?}");
    };
    let memory = [
        (2.0, 5.0, 10e3),
        (4.0, 10.0, 18e3),
        (8.0, 20.0, 37e3),
        (16.0, 50.0, 70e3),
    ];
    check(&memory, (13.0, 14.0), 13.0, 38.0);
    let disk = [
        (1.0, 20.0, 5e3),
        (2.0, 20.0, 6e3),
        (4.0, 50.0, 12e3),
        (8.0, 50.0, 37e3),
        (16.0, 200.0, 54e3),
    ];
    check(&disk, (14.0, 19.0), 18.0, 225.0);
}

/// One trial of each of four levels leaves one degree of freedom, and no upper bound; three of each leave nine.
#[test]
fn replicates_bound_the_answer() {
    let levels: Vec<CpuLevel> = [
        (2.0, 5.0, 9.4e3),
        (4.0, 10.0, 18.4e3),
        (8.0, 20.0, 36e3),
        (16.0, 50.0, 70e3),
    ]
    .into_iter()
    .map(|(cpus, clients, tps)| CpuLevel {
        cpus,
        clients,
        tps: vec![0.97 * tps, tps, 1.03 * tps],
    })
    .collect();
    let Need::Reachable(found) = Capacity::fit(&levels).unwrap().need(60e3, 0.95).unwrap() else {
        panic!("within what was measured");
    };
    assert!(
        holds(&found.cpus, 13.6) && found.cpus.low > 12.5 && found.cpus.high.unwrap() < 15.0,
        "{found:?}"
    );
}

/// Levels that no curve of the law meets leave wide intervals; that 8 CPUs are too few and 16 enough was seen all the same.
#[test]
fn what_was_measured_goes_before_the_curve() {
    let of = |all: &[(f64, f64)]| -> Capacity {
        let levels: Vec<CpuLevel> = all
            .iter()
            .map(|&(cpus, tps)| CpuLevel {
                cpus,
                clients: 3.0 * cpus,
                tps: vec![0.99 * tps, tps, 1.01 * tps],
            })
            .collect();
        Capacity::fit(&levels).unwrap()
    };
    let check = |all: &[(f64, f64)], tps: f64, low: f64, high: f64| {
        let Need::Reachable(found) = of(all).need(tps, 0.95).unwrap() else {
            panic!("within what was measured");
        };
        assert!(
            found.cpus.low >= low && found.cpus.high.unwrap() <= high,
            "{found:?}"
        );
        assert!(holds(&found.cpus, found.cpus.value), "{found:?}");
    };
    check(
        &[(2.0, 10e3), (4.0, 18e3), (8.0, 37e3), (16.0, 70e3)],
        60e3,
        8.0,
        16.0,
    );
    // A jump between 4 and 8 that the law smooths away.
    check(
        &[(1.0, 5e3), (2.0, 6e3), (4.0, 12e3), (8.0, 37e3), (16.0, 39e3)],
        36e3,
        4.0,
        8.0,
    );
    // Above the peak of the curve, and yet measured.
    check(
        &[(1.0, 10e3), (2.0, 10e3), (4.0, 18e3), (8.0, 9e3), (16.0, 8e3)],
        17e3,
        2.0,
        4.0,
    );
}

#[test]
fn the_model_is_what_the_levels_can_carry() {
    let all = [
        (0.5, 2.0, 520.0),
        (1.0, 4.0, 1000.0),
        (2.0, 8.0, 1950.0),
        (4.0, 16.0, 3700.0),
    ];
    let check = |levels: usize, expected: CapacityModel| {
        let (model, found) = resources(&all[..levels], 3900.0);
        assert_eq!(model, expected);
        assert!(holds(&found.cpus, 4.2), "{found:?}");
        assert!(
            found.cpus.low > 0.0 && found.cpus.low < found.cpus.value,
            "{found:?}"
        );
        assert!((found.extrapolates - found.cpus.value / all[levels - 1].0).abs() < 1e-12);
        assert!((found.connections.value / found.cpus.value - 4.0).abs() < 1e-6);
        let capacity = Capacity::fit(&levels_of(&all[..levels])).unwrap();
        let there = capacity.tps_at(found.cpus.value, 0.95).unwrap();
        assert!((there.value / 3900.0 - 1.0).abs() < 1e-6, "{there:?}");
        assert!(holds(&there, 3900.0));
    };
    check(2, CapacityModel::TwoLevels);
    check(3, CapacityModel::PowerLaw);
    check(4, CapacityModel::Usl);
    // Two levels hold both what the power law and what proportional growth would say, and far more.
    let (_, two) = resources(&[(2.0, 5.0, 10e3), (4.0, 10.0, 18e3)], 60e3);
    assert!(holds(&two.cpus, 16.5) && holds(&two.cpus, 12.6), "{two:?}");
    assert!(two.cpus.low < 10.0 && two.cpus.high.unwrap() > 20.0, "{two:?}");
}

#[test]
fn fewer_than_one_cpu_is_in_the_range_of_the_law() {
    let all = [
        (0.25, 1.0, 100.0),
        (0.5, 2.0, 198.0),
        (1.0, 4.0, 390.0),
        (2.0, 8.0, 755.0),
        (4.0, 12.0, 1400.0),
    ];
    let (_, found) = resources(&all, 300.0);
    assert!((0.6..0.9).contains(&found.cpus.value), "{found:?}");
    let (_, found) = resources(&all, 50.0);
    assert!(
        (0.1..0.14).contains(&found.cpus.value) && found.cpus.low < found.cpus.value,
        "{found:?}"
    );
}

#[test]
fn a_flat_curve_has_no_wild_answers() {
    let flat = [(0.5, 4.0, 9700.0), (1.0, 4.0, 9704.0), (3.0, 4.0, 9708.0)];
    for levels in [2, 3] {
        let capacity = Capacity::fit(&levels_of(&flat[..levels])).unwrap();
        let Need::Reachable(found) = capacity.need(97.0, 0.95).unwrap() else {
            panic!("less than half a CPU gave");
        };
        assert!((found.cpus.value / 0.005 - 1.0).abs() < 0.01, "{found:?}");
        assert!(matches!(
            capacity.need(20_000.0, 0.95).unwrap(),
            Need::Unreachable { .. }
        ));
    }
}

#[test]
fn a_peak_below_what_is_wanted_is_told() {
    let law = |n: f64| 1000.0 * n / (1.0 + 0.1 * (n - 1.0) + 0.01 * n * (n - 1.0));
    let all: Vec<(f64, f64, f64)> = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
        .iter()
        .map(|&n| (n, 10.0 * n, law(n)))
        .collect();
    let capacity = Capacity::fit(&levels_of(&all)).unwrap();
    let top = law(90.0_f64.sqrt());
    match capacity.need(2.0 * top, 0.95).unwrap() {
        Need::Unreachable { peak_tps, cpus_low } => {
            assert!((peak_tps.unwrap() / top - 1.0).abs() < 1e-3);
            assert_eq!(cpus_low, None);
        }
        other => panic!("{other:?}"),
    }
    let falling = Capacity::fit(&levels_of(&[
        (1.0, 4.0, 100.0),
        (2.0, 4.0, 90.0),
        (4.0, 4.0, 80.0),
    ]))
    .unwrap();
    assert!(matches!(
        falling.need(200.0, 0.95).unwrap(),
        Need::Unreachable { peak_tps: None, .. }
    ));
}

#[test]
fn what_is_refused_says_why() {
    let check = |levels: &[CpuLevel], expected: &str| {
        let found = Capacity::fit(levels).unwrap_err().to_string();
        assert!(found.contains(expected), "{found}");
    };
    check(&[], "there is 0");
    check(&levels_of(&[(2.0, 5.0, 10.0), (2.0, 5.0, 11.0)]), "there is 1");
    check(
        &levels_of(&[(2.0, 5.0, 10.0), (0.0, 5.0, 11.0)]),
        "level 1 (from 0): the number of CPUs",
    );
    check(
        &levels_of(&[(2.0, 5.0, -1.0), (1.0, 5.0, 11.0)]),
        "a throughput is -1",
    );
    let mut empty = levels_of(&[(2.0, 5.0, 10.0), (4.0, 5.0, 11.0)]);
    empty[1].tps.clear();
    check(&empty, "level 1 (from 0) has no throughput");
    let capacity = Capacity::fit(&levels_of(&[(1.0, 4.0, 100.0), (2.0, 4.0, 190.0)])).unwrap();
    assert!(capacity.need(0.0, 0.95).is_none() && capacity.need(1.0, 1.0).is_none());
    assert!(capacity.tps_at(0.0, 0.95).is_none() && capacity.law().is_none());
}

#[test]
fn a_price_per_million() {
    let check = |price, expected: Option<f64>| {
        let found = cost_per_million(price, 16.0, 50_000.0);
        assert_eq!(found.is_some(), expected.is_some());
        assert!(
            (found.unwrap_or(0.0) - expected.unwrap_or(0.0)).abs() < 1e-12,
            "{found:?}"
        );
    };
    // 180 million transactions an hour.
    check(Price::PerCpuHour(0.045), Some(0.72 / 180.0));
    check(Price::PerHostHour(0.9), Some(0.005));
    check(Price::PerHostHour(0.0), None);
    check(Price::PerCpuHour(f64::NAN), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever was measured: an estimate lies in its interval, and no number is not a number.
    #[test]
    fn an_estimate_lies_in_its_interval(
        tps in prop::collection::vec(10.0_f64..1e5, 2..6),
        wanted in 1.0_f64..1e6,
    ) {
        let all: Vec<(f64, f64, f64)> = [0.5, 1.0, 3.0, 8.0, 20.0]
            .into_iter()
            .zip(&tps)
            .map(|(cpus, &tps)| (cpus, 4.0 * cpus, tps))
            .collect();
        if let Ok(capacity) = Capacity::fit(&levels_of(&all)) {
            match capacity.need(wanted, 0.95).unwrap() {
                Need::Reachable(found) => {
                    prop_assert!(holds(&found.cpus, found.cpus.value), "{found:?}");
                    prop_assert!(holds(&found.connections, found.connections.value), "{found:?}");
                    prop_assert!(found.cpus.low >= 0.0 && found.extrapolates > 0.0);
                }
                Need::Unreachable { peak_tps, .. } => {
                    prop_assert!(peak_tps.is_none_or(|peak| peak <= wanted * (1.0 + 1e-6)), "{peak_tps:?}");
                }
            }
        }
    }
}
