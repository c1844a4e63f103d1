//! Ladders made by hand.

use super::*;
use crate::compare::fixture::{experiment, treatment, trial};
use pgdyno_record::{FactRecord, SettingRecord, WorkloadRecord};

const FILE: &str = r#"
name = "cores"
question = "How many CPUs?"
design = "ladder"
blocks = 2
[data]
scale = 1
[target]
sandbox = "x"
[load]
workload = "write"
clients = 1
threads = 1
warmup_s = 2
measure_s = 12
[[factor]]
name = "storage"
[[factor.level]]
name = "tmpfs"
[[factor.level]]
name = "disk"
[[factor]]
name = "cores"
[[factor.level]]
name = "one"
settings.cgroup.cpu_quota = 1
[[factor.level]]
name = "all"
settings.cgroup.cpu_quota = "none"
[[factor]]
name = "clients"
of = "load.clients"
values = [1, 2, 5]
"#;

fn catalogue() -> Catalogue {
    Catalogue::shipped().unwrap()
}

/// On each of `cpus` all clients, with `tps` of the CPUs alone; the best with two clients per CPU.
fn ladder(cpus: &[&str], tps: impl Fn(f64) -> f64) -> StoredExperiment {
    let mut stored = experiment(7, &[]);
    stored.record.file = FILE.to_owned();
    for (i, value) in cpus.iter().enumerate() {
        let n: f64 = value.parse().unwrap_or(16.0);
        for clients in [1, 2, 4, 8, 16, 32] {
            let name = format!("storage=tmpfs, cores={i}, clients={clients}");
            let mut own = treatment(&name);
            own.levels = [("storage", "tmpfs"), ("cores", *value), ("clients", "x")]
                .map(|(factor, level)| (factor.to_owned(), level.to_owned()))
                .to_vec();
            own.workload = Some(WorkloadRecord {
                clients,
                ..stored.record.workload.clone()
            });
            own.settings = vec![SettingRecord {
                knob: ["cgroup", "cpu_quota"].join("."),
                value: (*value).to_owned(),
                layer: "cpu".into(),
                risk: "none".into(),
                changed: true,
            }];
            stored.record.treatments.push(own);
            let share = if f64::from(clients) >= 2.0 * n { 1.0 } else { 0.5 };
            for block in 1..=2 {
                let wobble = 1.0 + 0.002 * f64::from((block + clients + u32::try_from(i).unwrap()) % 3);
                let late = 0.01 * f64::from(clients);
                let own = trial(block, &name, tps(n) * (share - late / 10.0) * wobble);
                let number = i64::try_from(stored.trials.len()).unwrap() + 1;
                stored.trials.push((number, own));
            }
        }
    }
    stored
}

fn question(tps: f64) -> Question {
    Question {
        tps,
        p99_ms: None,
        price: Some(Price::PerCpuHour(0.04)),
        cpus: None,
    }
}

#[test]
fn cpus_give_what_was_measured_or_what_the_curve_has() {
    let stored = ladder(&["1", "2", "4", "8"], |n| 5000.0 * n / (1.0 + 0.02 * (n - 1.0)));
    let of = |cpus: f64| {
        let asked = Question {
            cpus: Some(cpus),
            ..question(50_000.0)
        };
        answer(&stored, &catalogue(), &asked).unwrap().rows.remove(0)
    };
    for (cpus, tps) in [(0.5, 2500.0), (4.0, 18_868.0), (6.0, 27_273.0), (12.0, 49_180.0)] {
        let gives = of(cpus).gives.expect("an answer");
        let near = (gives.tps.value / tps - 1.0).abs();
        assert!(near < 0.03, "{cpus} CPUs: {gives:?}");
        assert!(
            gives.tps.low <= gives.tps.value && gives.tps.high.is_some_and(|high| gives.tps.value <= high)
        );
        assert!((gives.extrapolates - cpus / 8.0).abs() < 1e-9);
        let cost = gives.cost_per_million.expect("a cost");
        let expected = 0.04 * cpus / (gives.tps.value * 3600.0) * 1e6;
        assert!(
            (cost.value - expected).abs() < 1e-12 && cost.low <= cost.value,
            "{cost:?}"
        );
    }
    let beyond = of(17.0);
    assert_eq!(beyond.gives, None);
    assert!(
        beyond
            .notes
            .iter()
            .any(|note| note.contains("17 CPUs are beyond 2 times")),
        "{beyond:?}"
    );
}

#[test]
fn factors_are_known_by_what_their_levels_set() {
    let stored = ladder(&["1"], |n| 1000.0 * n);
    let found = Ladder::of(&stored.record, &catalogue()).unwrap();
    assert_eq!(found.cpus, ["cores"]);
    assert_eq!(found.clients, ["clients"]);
    assert!(Ladder::of(&experiment(1, &["reference"]).record, &catalogue()).is_err());
}

#[test]
fn cpus_and_connections_follow_the_curve() {
    let stored = ladder(&["1", "2", "4", "8"], |n| 5000.0 * n / (1.0 + 0.02 * (n - 1.0)));
    let answer = answer(&stored, &catalogue(), &question(50_000.0)).unwrap();
    assert_eq!(answer.cpu_factors, ["cores"]);
    let [row] = &answer.rows[..] else {
        panic!("{answer:?}")
    };
    assert_eq!(row.of, [("storage".to_owned(), "tmpfs".to_owned())]);
    assert_eq!(row.model, Some("usl"));
    let clients: Vec<u32> = row.measured.iter().map(|measured| measured.clients).collect();
    assert_eq!(clients, [2, 4, 8, 16]);
    assert!(
        row.measured
            .iter()
            .all(|measured| measured.p99_ms.is_some_and(|ms| ms > 0.0)),
        "{row:?}"
    );
    let Found::Needs {
        cpus,
        connections,
        extrapolates,
        cost_per_million,
    } = &row.found
    else {
        panic!("{row:?}")
    };
    assert!((11.0..15.0).contains(&cpus.value), "{cpus:?}");
    assert!(
        cpus.low <= cpus.value && (20.0..34.0).contains(&connections.value),
        "{connections:?}"
    );
    assert!((*extrapolates - cpus.value / 8.0).abs() < 1e-9);
    let expected = 0.04 * cpus.value / (50_000.0 * 3600.0) * 1e6;
    assert!((cost_per_million.unwrap().value - expected).abs() < 1e-12);
}

#[test]
fn beyond_twice_the_ladder_there_are_bounds_alone_and_one_block_is_noted() {
    let mut stored = ladder(&["1", "2", "4", "8"], |n| 5000.0 * n.powf(0.9));
    let found = |stored: &StoredExperiment, tps: f64| {
        let mut answer = answer(stored, &catalogue(), &question(tps)).unwrap();
        answer.rows.remove(0)
    };
    let row = found(&stored, 5000.0 * 50.0_f64.powf(0.9));
    let Found::Beyond {
        cpus_low: Some(low), ..
    } = row.found
    else {
        panic!("{row:?}")
    };
    assert!((8.0..60.0).contains(&low) && row.notes.is_empty(), "{row:?}");
    stored.trials.retain(|(_, trial)| trial.block == 1);
    let row = found(&stored, 30_000.0);
    assert!(
        matches!(row.found, Found::Needs { .. }) && row.measured[0].blocks == 1,
        "{row:?}"
    );
    assert!(
        row.notes.iter().any(|note| note.contains("a single block")),
        "{row:?}"
    );
}

#[test]
fn a_curve_that_turns_down_gives_its_peak() {
    let stored = ladder(&["1", "2", "4", "8"], |n| {
        5000.0 * n / (1.0 + 0.1 * (n - 1.0) + 0.05 * n * (n - 1.0))
    });
    let answer = answer(&stored, &catalogue(), &question(60_000.0)).unwrap();
    let Found::Beyond {
        peak_tps: Some(peak),
        peak_extrapolates: Some(extrapolates),
        ..
    } = answer.rows[0].found
    else {
        panic!("{:?}", answer.rows)
    };
    assert!(
        (9_000.0..20_000.0).contains(&peak) && extrapolates < 1.0,
        "{peak}"
    );
    assert!(
        answer.rows[0]
            .remark
            .starts_with("never reached: the curve's peak is"),
        "{:?}",
        answer.rows[0].remark
    );
}

#[test]
fn a_level_without_a_limit_has_the_machines_cpus() {
    let mut stored = ladder(&["1", "none"], |n| 1000.0 * n);
    let check = |stored: &StoredExperiment, levels: usize, notes: usize| {
        let answer = answer(stored, &catalogue(), &question(5_000.0)).unwrap();
        let row = &answer.rows[0];
        assert_eq!((row.measured.len(), row.notes.len()), (levels, notes), "{row:?}");
    };
    check(&stored, 1, 6);
    stored.record.facts.push(FactRecord {
        group: "host".into(),
        name: "cpu.online_count".into(),
        value: Some(16.into()),
        missing: None,
        source: "/sys".into(),
    });
    // The most clients were best with 16 CPUs, and that is reported.
    check(&stored, 2, 1);
}

#[test]
fn of_a_list_of_cpus_and_the_servers_quota_the_least_counts() {
    let mut stored = ladder(&["1", "2", "4"], |n| 1000.0 * n);
    for treatment in &mut stored.record.treatments {
        for setting in &mut treatment.settings {
            setting.knob = ["cgroup", "cpus"].join(".");
            setting.value = format!("0-{}", setting.value.parse::<u32>().unwrap() - 1);
        }
    }
    let cpus = |stored: &StoredExperiment| {
        let answer = answer(stored, &catalogue(), &question(5_000.0)).unwrap();
        let cpus = answer.rows[0].measured.iter().map(|measured| measured.cpus);
        cpus.collect::<Vec<f64>>()
    };
    assert_eq!(cpus(&stored), [1.0, 2.0, 4.0]);
    stored.record.facts.push(FactRecord {
        group: "server".into(),
        name: "cgroup.cpu_quota_cpus".into(),
        value: Some(2.into()),
        missing: None,
        source: "cpu.max".into(),
    });
    assert_eq!(cpus(&stored), [1.0, 2.0]);
}

#[test]
fn a_ladder_of_clients_alone_gives_their_zone() {
    let mut stored = ladder(&["4"], |n| 1000.0 * n);
    let from = FILE.find("[[factor]]\nname = \"cores\"").unwrap();
    let to = FILE.find("[[factor]]\nname = \"clients\"").unwrap();
    stored.record.file = format!("{}{}", &FILE[..from], &FILE[to..]);
    for treatment in &mut stored.record.treatments {
        treatment.levels.retain(|(factor, _)| factor != "cores");
    }
    let answer = answer(&stored, &catalogue(), &question(60_000.0)).unwrap();
    assert!(answer.cpu_factors.is_empty());
    let Found::Zone {
        peak_clients,
        reaches,
        ..
    } = answer.rows[0].found
    else {
        panic!("{:?}", answer.rows)
    };
    assert_eq!((peak_clients, reaches), (8, Some(false)));
}

#[test]
fn a_limit_of_response_time_leaves_levels_out() {
    let stored = ladder(&["1", "2"], |n| 1000.0 * n);
    let strict = Question {
        p99_ms: Some(0.5),
        ..question(1000.0)
    };
    let answer = answer(&stored, &catalogue(), &strict).unwrap();
    assert!(matches!(answer.rows[0].found, Found::No { .. }));
    assert_eq!(answer.rows[0].notes.len(), 2);
}
