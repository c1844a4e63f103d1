//! Records of trials, which two threads read where they are long.

use super::rig::{Rig, each};
use super::{experiment, trial};
use crate::record::{SecondRecord, TrialRecord, TrialStatus};
use crate::series::SeriesRecord;
use crate::store::StoreError;
use crate::store::trials::TRIALS;
use rusqlite::Connection;

/// Of some hours every third, of no time the others.
fn records() -> Vec<TrialRecord> {
    let record = |block: u32| {
        let mut record = trial(block, "reference", TrialStatus::Finished);
        let seconds = if block.is_multiple_of(3) { 2000 } else { 0 };
        record.seconds = (0..seconds)
            .map(|at| SecondRecord {
                t_s: f64::from(at),
                tps: f64::from(block) + 0.1,
                ..SecondRecord::default()
            })
            .collect();
        record
    };
    (1..=30).map(record).collect()
}

#[test]
fn long_and_short_records_are_read_in_their_order() {
    each(|rig: &Rig| {
        let mut store = rig.open();
        let id = store.begin(&experiment()).unwrap();
        let stored: Vec<(i64, TrialRecord)> = records()
            .into_iter()
            .map(|record| {
                let trial = store.add_trial(id, &record, &SeriesRecord::default());
                (trial.unwrap(), record)
            })
            .collect();
        assert!(store.experiment(id).unwrap().trials == stored);
        for (trial, _) in [&stored[1], &stored[29]] {
            rig.sql(&format!("UPDATE trial SET record = '{{' WHERE id = {trial}"));
            let error = store.experiment(id).unwrap_err();
            assert!(matches!(error, StoreError::Record { .. }), "{error}");
            rig.sql(&format!("DELETE FROM trial WHERE id = {trial}"));
        }
    });
}

/// Records that are sorted by SQLite pass through a temporary file, all of them.
#[test]
fn records_are_not_sorted() {
    let rig = Rig::file();
    drop(rig.open());
    let Rig::File { path, .. } = &rig else {
        unreachable!("a file was asked for");
    };
    let connection = Connection::open(path).unwrap();
    let mut plan = connection
        .prepare(&format!("EXPLAIN QUERY PLAN {TRIALS}"))
        .unwrap();
    let steps: Vec<String> = plan
        .query_map([1], |row| row.get(3))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let wrong = |step: &String| step.contains("ORDER BY") || step.starts_with("SCAN trial");
    assert!(!steps.iter().any(wrong), "{steps:?}");
}
