//! Records of trials, which two threads read where they are long.

use super::rig::{Rig, each};
use super::{experiment, trial};
use crate::store::trials::TRIALS;
use crate::store::{Store, StoreError};
use pgdyno_record::{ColumnRecord, SeriesRecord};
use pgdyno_record::{SecondRecord, TreatmentRecord, TrialRecord, TrialStatus};
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

#[test]
fn trials_that_belong_together_are_stored_together_or_not_at_all() {
    each(|rig: &Rig| {
        let mut store = rig.open();
        let id = store.begin(&experiment()).unwrap();
        let of = |treatment: &str| {
            let record = trial(1, treatment, TrialStatus::Finished);
            (record, SeriesRecord::default())
        };
        store.add_trials(id, &[of("reference"), of("memory")]).unwrap();
        let count = |store: &Store| store.experiment(id).unwrap().trials.len();
        assert_eq!(count(&store), 2);
        let error = store.add_trials(id, &[of("another"), of("memory")]).unwrap_err();
        assert!(matches!(error, StoreError::Twice { .. }), "{error}");
        assert_eq!(count(&store), 2);
    });
}

#[test]
fn treatment_that_a_search_adds_is_kept_once_and_the_others_stay() {
    each(|rig: &Rig| {
        let mut store = rig.open();
        let id = store.begin(&experiment()).unwrap();
        let added = |title: &str| TreatmentRecord {
            title: title.into(),
            levels: vec![("work_mem".into(), "8MB".into())],
            ..TreatmentRecord::new("candidate 1")
        };
        store.add_treatment(id, &added("first")).unwrap();
        // The answer to the first attempt may be lost.
        store.add_treatment(id, &added("again")).unwrap();
        let expected = [experiment().treatments, vec![added("first")]].concat();
        assert_eq!(rig.open().experiment(id).unwrap().record.treatments, expected);
        let error = store.add_treatment(id + 1, &added("first")).unwrap_err();
        assert!(matches!(error, StoreError::Unknown { .. }), "{error}");
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

/// An experiment in the place with so many trials that are alike but for their blocks.
fn with_trials(rig: &Rig, trials: u32, record: &TrialRecord) -> i64 {
    let mut store = rig.open();
    let id = store.begin(&experiment()).unwrap();
    store.add_trial(id, record, &SeriesRecord::default()).unwrap();
    drop(store);
    for block in 2..=trials {
        rig.sql(&format!(
            "INSERT INTO trial (experiment_id, block, treatment, status, record) \
             SELECT experiment_id, {block}, treatment, status, record FROM trial WHERE block = 1"
        ));
    }
    id
}

#[test]
fn trials_that_are_too_long_together_are_refused() {
    each(|rig: &Rig| {
        let mut long = trial(1, "reference", TrialStatus::Finished);
        long.reason = Some("x".repeat(20_000_000));
        let id = with_trials(rig, 7, &long);
        let error = rig.open().experiment(id).unwrap_err();
        assert!(matches!(error, StoreError::Endless { .. }), "{error}");
        assert!(
            error.to_string().contains("longer than 134217728 bytes"),
            "{error}"
        );
        rig.sql("DELETE FROM trial WHERE block > 3");
        assert_eq!(rig.open().experiment(id).unwrap().trials.len(), 3);
    });
}

/// Seconds of one digit each take thirty times their text in memory.
#[test]
fn trials_of_many_short_seconds_are_refused_by_what_they_take_in_memory() {
    let rig = Rig::file();
    let of_seconds = |seconds: usize| {
        let mut record = trial(1, "reference", TrialStatus::Finished);
        record.seconds = vec![SecondRecord::default(); seconds];
        record
    };
    let id = with_trials(&rig, 8, &of_seconds(200_000));
    let error = rig.open().experiment(id).unwrap_err();
    assert!(matches!(error, StoreError::Endless { .. }), "{error}");
    rig.sql("DELETE FROM trial WHERE block > 4");
    assert_eq!(rig.open().experiment(id).unwrap().trials.len(), 4);
    let record = serde_json::to_string(&of_seconds(1_100_000)).unwrap();
    rig.sql(&format!("UPDATE trial SET record = '{record}'"));
    let error = rig.open().experiment(id).unwrap_err();
    assert!(error.to_string().contains("more than 2000000 values"), "{error}");
}

#[test]
fn series_that_unpack_to_too_much_are_refused() {
    each(|rig: &Rig| {
        let mut store = rig.open();
        let id = store.begin(&experiment()).unwrap();
        let at_ms: Vec<u32> = (0..500_000).collect();
        let column = |number: u32| ColumnRecord {
            metric: format!("m{number:02}"),
            label: String::new(),
            at_ms: at_ms.clone(),
            values: vec![1.0; at_ms.len()],
        };
        let add = |store: &mut Store, block: u32, columns: u32| {
            let series = SeriesRecord {
                columns: (0..columns).map(column).collect(),
                gaps: Vec::new(),
            };
            let record = trial(block, "reference", TrialStatus::Finished);
            store.add_trial(id, &record, &series).unwrap()
        };
        let fits = add(&mut store, 1, 4);
        let bomb = add(&mut store, 2, 12);
        assert_eq!(store.series(fits).unwrap().columns.len(), 4);
        let error = store.series(bomb).unwrap_err();
        assert!(matches!(error, StoreError::Endless { .. }), "{error}");
        // One after the other they are read.
        let mut columns = 0;
        let counted = store.each_column(bomb, |_| {
            columns += 1;
            Ok::<_, StoreError>(())
        });
        counted.unwrap();
        assert_eq!(columns, 12);
    });
}
