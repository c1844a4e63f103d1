//! Documents of made-up trials.

use super::*;
use crate::build::tests::stored;
use crate::marks::MarkKind;
use pgdyno_record::{ColumnRecord, GapRecord, SecondRecord, StatementRecord};

/// Numbers the trials and gives them seconds; in the third the hypervisor takes a tenth of the
/// CPUs.
fn with_seconds(mut stored: StoredExperiment, seconds: u32) -> StoredExperiment {
    for (id, (number, trial)) in (1..).zip(&mut stored.trials) {
        *number = id;
        let second = |s: u32| SecondRecord {
            t_s: f64::from(s),
            tps: 99.0 + f64::from(s),
            p95_ms: Some(2.0),
            cpu_busy: Some(0.5),
            cpu_steal: Some(if s == 3 { 0.1 } else { 0.0 }),
            ..SecondRecord::default()
        };
        trial.seconds = (1..=seconds).map(second).collect();
    }
    stored
}

fn column(metric: &str, label: &str, points: &[(u32, f64)]) -> ColumnRecord {
    ColumnRecord {
        metric: metric.to_owned(),
        label: label.to_owned(),
        at_ms: points.iter().map(|(at, _)| *at).collect(),
        values: points.iter().map(|(_, value)| *value).collect(),
    }
}

fn of(columns: Vec<ColumnRecord>) -> TrialDocument {
    let series = SeriesRecord {
        columns,
        gaps: vec![GapRecord {
            at_ms: 5,
            source: "pg_stat_wal".into(),
            reason: "refused".into(),
        }],
    };
    let stored = with_seconds(stored("one-at-a-time", 2), 4);
    trial(&stored, stored.trials[1].0, &series).unwrap()
}

#[test]
fn columns_have_layers_titles_and_units() {
    let document = of(vec![
        column("wal.bytes_per_s", "", &[(1000, 4096.0)]),
        column("cpu.user_ratio", "all", &[(1000, 0.5), (2000, f64::NAN)]),
        column("load.1m", "", &[(1000, 2.0)]),
    ]);
    let found: Vec<_> = document
        .series
        .iter()
        .map(|c| (c.layer, c.metric.as_str(), c.unit, c.title.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("load", "tps", "TPS", "throughput"),
            ("load", "p95_ms", "ms", "response time, p95"),
            ("host", "cpu.busy_ratio", "ratio", "CPU: busy"),
            ("host", "cpu.steal_ratio", "ratio", "CPU: steal"),
            ("host", "cpu.user_ratio", "ratio", "CPU: user"),
            ("host", "load.1m", "", "load average: 1m"),
            ("server", "wal.bytes_per_s", "bytes/s", "WAL: bytes"),
        ]
    );
    let user = &document.series[4];
    assert_eq!(
        (user.label.as_deref(), &user.values[..]),
        (Some("all"), &[Some(0.5), None][..])
    );
    assert!(document.trial.trial.series.t_s.is_empty());
    assert_eq!(document.trial.settings[0].effective.as_deref(), Some("off"));
}

#[test]
fn marks_are_read_off_series() {
    let check = |columns, kind, expected: &[(u32, Option<u32>)]| {
        let marks = of(columns).marks;
        let found: Vec<_> = marks
            .iter()
            .filter(|mark| mark.kind == kind)
            .map(|mark| (mark.at_ms, mark.until_ms))
            .collect();
        assert_eq!(found, expected, "{marks:?}");
    };
    let begins = column(
        "checkpoints.requested_per_s",
        "",
        &[(3000, 1.0), (4000, 0.0), (9000, 1.0)],
    );
    let ends = column(
        "checkpoints.write_ms_per_s",
        "",
        &[(2000, 7.0), (3000, 0.0), (5000, 12.0)],
    );
    check(
        vec![begins, ends],
        MarkKind::Checkpoint,
        &[(0, Some(2000)), (2000, Some(5000)), (8000, None)],
    );
    let workers = [(1000, 0.0), (2000, 1.0), (3000, 2.0), (4000, 0.0), (5000, 1.0)];
    check(
        vec![column("vacuum.autovacuum_workers", "", &workers)],
        MarkKind::Vacuum,
        &[(2000, Some(4000)), (5000, Some(5000))],
    );
    // The made-up third second has a steal of a tenth.
    check(vec![], MarkKind::Disturbance, &[(2000, Some(3000))]);
    check(vec![], MarkKind::Gap, &[(5, None)]);
}

#[test]
fn waits_are_summed_by_type_and_statements_by_share() {
    let document = of(vec![
        column(
            "waits.sessions",
            "client backend/IO/WalSync",
            &[(1000, 1.0), (2000, 2.0)],
        ),
        column(
            "waits.sessions",
            "walwriter/IO/WalWrite",
            &[(1000, 0.5), (2000, 0.0)],
        ),
        column(
            "waits.sessions",
            "client backend/CPU/CPU",
            &[(1000, 9.0), (2000, 9.0)],
        ),
        column("waits.statement_sessions", "-7", &[(1000, 1.0), (2000, 0.0)]),
        column("waits.statement_sessions", "8", &[(1000, 2.0), (2000, 1.0)]),
    ]);
    let waits = document.waits.unwrap();
    assert_eq!(waits.t_ms, [1000, 2000]);
    let types: Vec<_> = waits
        .types
        .iter()
        .map(|t| (t.name.as_str(), &t.values[..]))
        .collect();
    assert_eq!(types, [("CPU", &[9.0, 9.0][..]), ("IO", &[1.5, 2.0][..])]);
    let events: Vec<_> = waits
        .events
        .iter()
        .map(|e| (e.name.as_str(), &e.values[..]))
        .collect();
    assert_eq!(
        events,
        [
            ("CPU", &[9.0, 9.0][..]),
            ("IO: WalSync", &[1.0, 2.0][..]),
            ("IO: WalWrite", &[0.5, 0.0][..]),
        ]
    );
    let first = &document.statements[0];
    assert_eq!(
        (
            first.query_id.as_str(),
            first.mean_sessions,
            first.share_ratio,
            first.calls
        ),
        ("8", Some(1.5), Some(0.75), None)
    );
}

#[test]
fn of_many_events_the_smallest_are_one_and_none_is_lost() {
    let columns: Vec<ColumnRecord> = (1..=40)
        .map(|n| {
            column(
                "waits.sessions",
                &format!("client backend/LWLock/e{n:02}/x"),
                &[(1000, f64::from(n))],
            )
        })
        .collect();
    let events = of(columns).waits.unwrap().events;
    assert_eq!((events.len(), events[0].name.as_str()), (30, "LWLock: e40/x"));
    let last = &events[29];
    assert_eq!((last.name.as_str(), &last.values[..]), ("other", &[66.0][..]));
    assert!((events.iter().map(|event| event.values[0]).sum::<f64>() - 820.0).abs() < 1e-9);
}

#[test]
fn what_the_server_counted_of_a_statement_stands_with_its_samples() {
    let counted = |query_id, calls, total_ms| StatementRecord {
        query_id,
        text: Some(format!("SELECT {query_id}")),
        calls,
        total_ms,
        rows: 5,
        blocks_hit: 6,
        blocks_read: 7,
        wal_bytes: 8,
    };
    let mut stored = with_seconds(stored("one-at-a-time", 2), 4);
    stored.trials[1].1.statements = vec![counted(-7, 10, 25.0), counted(9, 1, 30.0)];
    let series = SeriesRecord {
        columns: vec![
            column("waits.statement_sessions", "-7", &[(1000, 1.0)]),
            column("waits.statement_sessions", "8", &[(1000, 3.0)]),
        ],
        gaps: Vec::new(),
    };
    let statements = trial(&stored, stored.trials[1].0, &series).unwrap().statements;
    let found: Vec<_> = statements
        .iter()
        .map(|s| {
            (
                s.query_id.as_str(),
                s.query.as_deref(),
                s.mean_sessions,
                s.mean_ms,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("9", Some("SELECT 9"), None, Some(30.0)),
            ("-7", Some("SELECT -7"), Some(1.0), Some(2.5)),
            ("8", None, Some(3.0), None),
        ]
    );
    assert_eq!(
        (
            statements[0].shared_hit,
            statements[0].shared_read,
            statements[0].wal_bytes
        ),
        (Some(6), Some(7), Some(8))
    );
}

#[test]
fn thinning_keeps_the_lowest_and_the_highest_in_their_order() {
    let mut one = of(vec![]).series.remove(0);
    one.t_ms = (1..=1000).map(|s| s * 1000).collect();
    one.values = (1..=1000).map(|s| Some(f64::from(s % 10) + 100.0)).collect();
    one.values[444] = Some(9999.87);
    one.values[445] = Some(-5.0);
    thin::column(&mut one, 100);
    assert!(one.values.len() <= 104, "{}", one.values.len());
    assert!(one.t_ms.is_sorted());
    let highest = one
        .values
        .iter()
        .position(|value| *value == Some(10_000.0))
        .unwrap();
    assert_eq!(one.values[highest + 1], Some(-5.0));
    for (value, rounded) in [
        (1234.567, 1235.0),
        (0.001_234_56, 0.001_235),
        (98_765.4, 98_770.0),
        (0.0, 0.0),
    ] {
        assert_eq!(thin::rounded(value).to_bits(), f64::to_bits(rounded));
    }
}

#[test]
fn trials_are_packed_and_thinned_where_they_are_too_many() {
    let check = |seconds: u32, columns: usize, expected: (Option<usize>, Scope)| {
        let stored = with_seconds(stored("one-at-a-time", 2), 4);
        let report = crate::build(&stored, "test", 0);
        let mut state = 1_u32;
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state)
        };
        let mut of_one = |scope: Scope| {
            let names = (0..columns).map(|n| format!("cpu.x{n}_ratio"));
            let series = names.filter(|name| scope.wants(name)).map(|name| {
                let points: Vec<_> = (1..=seconds).map(|s| (s * 1000, noise())).collect();
                column(&name, "", &points)
            });
            SeriesRecord {
                columns: series.collect(),
                gaps: Vec::new(),
            }
        };
        let mut read = |ids: &[i64], scope: Scope| -> Result<Vec<SeriesRecord>, std::io::Error> {
            Ok(ids.iter().map(|_| of_one(scope)).collect())
        };
        let (details, packed) = pack(&stored, &report, &|_| true, &mut read).unwrap();
        assert_eq!(
            (details.points_max, details.scope, details.skipped),
            (expected.0, expected.1, 0)
        );
        let of_stored = stored.trials.iter().map(|(id, _)| *id);
        assert!(packed.iter().map(|p| p.trial).eq(of_stored));
        assert!(packed.iter().map(|p| p.text.len()).sum::<usize>() <= 4_000_000);
    };
    check(60, 10, (None, Scope::All));
    check(3600, 100, (Some(1200), Scope::All));
}

#[test]
fn a_report_of_fewer_points_says_so_and_keeps_the_mean() {
    let stored = with_seconds(stored("one-at-a-time", 2), 100);
    let mut report = crate::build(&stored, "test", 0);
    let trials = report.trials.len();
    report.thin(trials * 20);
    let series = &report.trials[0].series;
    assert_eq!((series.bucket_s, series.t_s.len()), (Some(5), 20));
    assert!((series.t_s[0] - 5.0).abs() < 1e-9);
    assert!(
        (series.tps.iter().sum::<f64>() / 20.0 - 149.5).abs() < 0.1,
        "{:?}",
        series.tps
    );
    assert_eq!(series.p95_ms[0], Some(2.0));
}
