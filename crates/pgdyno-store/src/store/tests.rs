//! What must hold of a store, in every database.

mod care;
mod files;
mod progress;
mod rig;
mod server;
mod shared;
mod trials;

use super::*;
use pgdyno_record::HeatRecord;
use pgdyno_record::{ColumnRecord, GapRecord};
use pgdyno_record::{StatementRecord, TreatmentRecord, TrialStatus, WorkloadRecord};
use rig::{Rig, each};

fn experiment() -> ExperimentRecord {
    ExperimentRecord {
        question: "what?".into(),
        design: "cumulative".into(),
        blocks: 3,
        seed: u64::MAX,
        treatments: vec![TreatmentRecord {
            title: "As it is".into(),
            levels: vec![("step".into(), "reference".into())],
            ..TreatmentRecord::new("reference")
        }],
        file: "name = 'demo'".into(),
        target: "sandbox demo".into(),
        ..ExperimentRecord::new(
            "demo",
            WorkloadRecord {
                name: "tpcb".into(),
                scale: 1,
                clients: 2,
                threads: 1,
                warmup_s: 1.0,
                measure_s: 2.0,
            },
        )
    }
}

fn trial(block: u32, treatment: &str, status: TrialStatus) -> TrialRecord {
    TrialRecord {
        status,
        started_unix_ms: 5,
        effective: vec![("jit".into(), "off".into())],
        tps: Some(10.5),

        warmup_s: 1.0,
        measured_s: 2.0,
        statements: vec![StatementRecord {
            query_id: i64::MIN,
            text: Some("SELECT $1".into()),
            calls: 3,
            total_ms: 0.25,
            rows: 3,
            blocks_hit: 1,
            blocks_read: 0,
            wal_bytes: 0,
        }],
        heat: HeatRecord::packed((1.0, 3.0), 1, vec![1000, 2000], &[vec![11], vec![10]]),
        ..TrialRecord::begun(block, 1, treatment)
    }
}

#[test]
fn what_is_stored_is_read_by_another_process() {
    each(stored_and_read);
}

fn stored_and_read(rig: &Rig) {
    let mut store = rig.open();
    let id = store.begin(&experiment()).unwrap();
    store
        .add_trial(
            id,
            &trial(1, "reference", TrialStatus::Finished),
            &SeriesRecord::default(),
        )
        .unwrap();
    store
        .add_trial(
            id,
            &trial(1, "other", TrialStatus::Failed),
            &SeriesRecord::default(),
        )
        .unwrap();
    let other = rig.open();
    let found = other.experiment(id).unwrap();
    assert_eq!(found.record, experiment());
    assert_eq!(found.status, ExperimentStatus::Running);
    assert_eq!(found.trials[0].1, trial(1, "reference", TrialStatus::Finished));
    assert_eq!(
        other.done(id).unwrap(),
        [(1, "reference".to_owned()), (1, "other".to_owned())]
    );
    store.set_status(id, ExperimentStatus::Finished).unwrap();
    let list = other.find(&Filter::default()).unwrap();
    assert_eq!(
        (list[0].status, list[0].trials_finished, list[0].trials_failed),
        (ExperimentStatus::Finished, 1, 1)
    );
    assert!(list[0].finished_unix_ms.is_some());
}

#[test]
fn series_are_stored_with_their_trial() {
    each(series_stored);
}

fn series_stored(rig: &Rig) {
    let mut store = rig.open();
    let id = store.begin(&experiment()).unwrap();
    let column = |label: &str| ColumnRecord {
        metric: "cpu.user_ratio".into(),
        label: label.into(),
        at_ms: vec![1000, 2001, 5000],
        values: vec![0.1, 0.2, 1e-6],
    };
    let series = SeriesRecord {
        columns: vec![column("all"), column("cpu0")],
        gaps: vec![GapRecord {
            at_ms: 3000,
            source: "/proc/stat".into(),
            reason: "the counters started again".into(),
        }],
    };
    let with = store
        .add_trial(id, &trial(1, "reference", TrialStatus::Finished), &series)
        .unwrap();
    let without = store
        .add_trial(
            id,
            &trial(1, "other", TrialStatus::Finished),
            &SeriesRecord::default(),
        )
        .unwrap();
    assert_eq!(store.series(with).unwrap(), series);
    assert_eq!(store.series(without).unwrap(), SeriesRecord::default());
    rig.sql(&format!("UPDATE series SET points = {}", rig.blob("07")));
    let error = store.series(with).unwrap_err().to_string();
    assert!(
        error.contains("cpu.user_ratio") && error.contains("format 7"),
        "{error}"
    );
}

#[test]
fn a_trial_is_stored_once() {
    each(stored_once);
}

fn stored_once(rig: &Rig) {
    let mut store = rig.open();
    let id = store.begin(&experiment()).unwrap();
    store
        .add_trial(
            id,
            &trial(1, "reference", TrialStatus::Finished),
            &SeriesRecord::default(),
        )
        .unwrap();
    assert!(
        store
            .add_trial(
                id,
                &trial(1, "reference", TrialStatus::Finished),
                &SeriesRecord::default()
            )
            .is_err()
    );
    assert!(
        store
            .add_trial(
                id + 1,
                &trial(1, "reference", TrialStatus::Finished),
                &SeriesRecord::default()
            )
            .is_err()
    );
    assert!(matches!(
        store.experiment(99),
        Err(StoreError::Unknown { id: 99, .. })
    ));
}

/// What an earlier version wrote must stay readable: a record of format 1, word for word.
#[test]
fn a_stored_record_of_format_1_is_read() {
    let text = r#"{"block":1,"position":2,"treatment":"memory","status":"finished","reason":null,
        "started_unix_ms":1,"effective":[["jit","off"]],"tps":1.5,"committed":3,"failed":0,
        "errors":[{"sqlstate":"40001","count":2}],
        "percentiles":{"p50_ms":1.0,"p95_ms":2.0,"p99_ms":3.0,"max_ms":4.0},"histogram":null,
        "distribution":[{"percentile":50.0,"ms":1.0}],
        "steadiness":{"settled":true,"drift_ratio":0.0,"drift_standard_error":0.1},"stability_cv":0.1,
        "warmup_s":1.0,"measured_s":2.0,"client_cpu_us_per_tx":1.0,"server_cpu_us_per_tx":2.0,
        "wal_bytes_per_tx":3.0,"cross_check":{"client":3,"server":3,"allowed_difference":1,"agrees":true},
        "disturbances":["x"],"seconds":[{"t_s":1.0,"tps":1.5,"p95_ms":2.0,"cpu_busy":0.5,"cpu_iowait":null,
        "cpu_steal":null,"disk_read_bytes_per_s":null,"disk_write_bytes_per_s":null,"dirty_bytes":null}]}"#;
    let found: TrialRecord = serde_json::from_str(text).unwrap();
    assert_eq!(found.treatment, "memory");
    assert_eq!(found.seconds[0].cpu_busy, Some(0.5));
}

/// Of the types, so that a server of pages may have its stores on threads of their own.
#[test]
fn a_store_may_go_to_another_thread() {
    fn goes<T: Send>() {}
    goes::<Store>();
    goes::<Reader>();
}

#[test]
fn many_may_make_it_at_once() {
    let at_once = |rig: &Rig| {
        std::thread::scope(|scope| {
            let opened: Vec<_> = (0..6)
                .map(|_| scope.spawn(|| rig.try_open().map(drop).map_err(|e| e.to_string())))
                .collect();
            for thread in opened {
                assert_eq!(thread.join().unwrap(), Ok(()));
            }
        });
    };
    for _ in 0..20 {
        each(at_once);
    }
}
