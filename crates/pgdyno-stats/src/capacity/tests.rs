use super::*;
use proptest::prelude::*;

fn levels_of(all: &[(f64, f64, f64)]) -> Vec<CpuLevel> {
    all.iter()
        .map(|&(cpus, clients, tps)| CpuLevel {
            cpus,
            clients,
            tps: vec![(1, tps)],
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

/// A published study of how many CPUs and connections 60,000 write transactions per second need:
/// measured levels in, and what it then found with machines of that size.
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

/// One trial of each of four levels leaves one degree of freedom, and no upper bound; three of each
/// leave nine.
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
        tps: vec![(1, 0.97 * tps), (1, tps), (1, 1.03 * tps)],
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

/// Levels that no curve of the law meets leave wide intervals; that 8 CPUs are too few and 16
/// enough was seen all the same.
#[test]
fn what_was_measured_goes_before_the_curve() {
    let of = |all: &[(f64, f64)]| -> Capacity {
        let levels: Vec<CpuLevel> = all
            .iter()
            .map(|&(cpus, tps)| CpuLevel {
                cpus,
                clients: 3.0 * cpus,
                tps: vec![(1, 0.99 * tps), (1, tps), (1, 1.01 * tps)],
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
    let check = |levels: usize, tps: f64, needed: f64, expected: CapacityModel| {
        let (model, found) = resources(&all[..levels], tps);
        assert_eq!(model, expected);
        assert!(holds(&found.cpus, needed), "{found:?}");
        assert!(
            found.cpus.low > 0.0 && found.cpus.low < found.cpus.value,
            "{found:?}"
        );
        assert!((found.extrapolates - found.cpus.value / all[levels - 1].0).abs() < 1e-12);
        assert!((found.connections.value / found.cpus.value - 4.0).abs() < 1e-6);
        let capacity = Capacity::fit(&levels_of(&all[..levels])).unwrap();
        let there = capacity.main.interval_at(found.cpus.value, 0.95).unwrap();
        assert!((there.value / tps - 1.0).abs() < 1e-6, "{there:?}");
        assert!(holds(&there, tps));
    };
    check(2, 1480.0, 1.5, CapacityModel::TwoLevels);
    check(3, 2880.0, 3.0, CapacityModel::PowerLaw);
    check(4, 3900.0, 4.2, CapacityModel::Usl);
    // Two levels hold both what the power law and what proportional growth would say, and far more.
    let two = Capacity::fit(&levels_of(&[(2.0, 5.0, 10e3), (4.0, 10.0, 18e3)])).unwrap();
    match two.need(60e3, 0.95).unwrap() {
        Need::Beyond {
            cpus_low: Some(low),
            cpus_high: Some(high),
            peak: None,
        } => assert!(low < 10.0 && high > 20.0, "{two:?}"),
        other => panic!("{other:?}"),
    }
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
            Need::Beyond { peak: None, .. }
        ));
    }
}

#[test]
fn a_peak_below_what_is_wanted_is_reported() {
    let law = |n: f64| 1000.0 * n / (1.0 + 0.1 * (n - 1.0) + 0.01 * n * (n - 1.0));
    let all: Vec<(f64, f64, f64)> = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
        .iter()
        .map(|&n| (n, 10.0 * n, law(n)))
        .collect();
    let capacity = Capacity::fit(&levels_of(&all)).unwrap();
    let top = law(90.0_f64.sqrt());
    match capacity.need(2.0 * top, 0.95).unwrap() {
        Need::Beyond {
            cpus_low,
            cpus_high,
            peak: Some(peak),
        } => {
            assert!((peak.tps / top - 1.0).abs() < 1e-3);
            assert!((peak.cpus.unwrap() / 90.0_f64.sqrt() - 1.0).abs() < 1e-2);
            assert_eq!((cpus_low, cpus_high), (None, None));
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
        Need::Beyond { peak: None, .. }
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

/// Two laws that four numbers of CPUs cannot distinguish: both set the bounds beyond, and none
/// gives a number beyond twice as many.
#[test]
fn beyond_the_ladder_both_laws_set_the_bounds() {
    let wobble = [1.01, 0.98, 1.02, 0.99, 0.97, 1.03, 1.0, 1.01];
    let levels: Vec<CpuLevel> = [1.0_f64, 2.0, 4.0, 8.0]
        .into_iter()
        .zip(wobble.chunks(2))
        .map(|(cpus, wobble)| CpuLevel {
            cpus,
            clients: 4.0 * cpus,
            tps: (1..)
                .zip(wobble.iter().map(|w| 1000.0 * cpus.powf(0.9) * w))
                .collect(),
        })
        .collect();
    let capacity = Capacity::fit(&levels).unwrap();
    let at = |cpus: f64| capacity.need(1000.0 * cpus.powf(0.9), 0.95).unwrap();
    let Need::Reachable(near) = at(12.0) else {
        panic!("{:?}", at(12.0));
    };
    let beside = capacity
        .beside
        .as_ref()
        .expect("a power law")
        .inverse(1000.0 * 12.0_f64.powf(0.9), 0.95);
    assert!(
        holds(&near.cpus, 12.0) && near.cpus.low <= beside.unwrap().low.max(8.0),
        "{near:?}"
    );
    match at(40.0) {
        Need::Beyond {
            cpus_low, cpus_high, ..
        } => {
            assert!((16.0..40.0).contains(&cpus_low.unwrap()) && cpus_high.is_none_or(|high| high > 40.0));
        }
        other => panic!("{other:?}"),
    }
}

/// The same shape in blocks of different heights: the spread is that of the heights, not that
/// within blocks.
#[test]
fn blocks_that_differ_widen_the_answer() {
    let width = |heights: [f64; 3]| {
        let levels: Vec<CpuLevel> = [1.0_f64, 2.0, 4.0, 8.0]
            .into_iter()
            .enumerate()
            .map(|(i, cpus)| CpuLevel {
                cpus,
                clients: 4.0 * cpus,
                tps: (1..)
                    .zip(heights)
                    .map(|(block, height)| {
                        let wobble = 1.0 + 0.002 * f64::from((block + u32::try_from(i).unwrap()) % 3);
                        (
                            block,
                            1000.0 * cpus / (1.0 + 0.05 * (cpus - 1.0)) * height * wobble,
                        )
                    })
                    .collect(),
            })
            .collect();
        match Capacity::fit(&levels).unwrap().need(4000.0, 0.95).unwrap() {
            Need::Reachable(found) => found.cpus.high.unwrap() / found.cpus.low,
            other => panic!("{other:?}"),
        }
    };
    let (alike, apart) = (width([1.0; 3]), width([0.95, 1.0, 1.05]));
    assert!(alike < 1.02 && (1.1..1.6).contains(&apart), "{alike} {apart}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever was measured: an estimate is in its interval, and no number is not a number.
    #[test]
    fn an_estimate_is_in_its_interval(
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
                Need::Beyond { cpus_low, cpus_high, peak } => {
                    prop_assert!(peak.is_none_or(|peak| peak.tps <= wanted), "{peak:?}");
                    prop_assert!(cpus_low.zip(cpus_high).is_none_or(|(low, high)| 0.0 < low && low <= high));
                }
            }
        }
    }
}
