//! Times that columns of a trial share: stored once, read in every way, and a fault where they are
//! damaged.

use super::rig::{Rig, each};
use super::{experiment, trial};
use crate::schema::VERSION;
use crate::store::{Store, StoreError};
use pgdyno_record::{ColumnRecord, GapRecord, SeriesRecord, pack_points};
use pgdyno_record::{ExperimentStatus, TrialStatus};

fn column(metric: &str, label: &str, at_ms: &[u32]) -> ColumnRecord {
    ColumnRecord {
        metric: metric.into(),
        label: label.into(),
        at_ms: at_ms.to_vec(),
        values: at_ms.iter().map(|at| f64::from(*at % 100) / 8.0).collect(),
    }
}

/// Two lists of times that are shared, and one that a column has alone.
fn series() -> SeriesRecord {
    let (cpu, disk) = ([1003, 2001, 3000], [1010, 2011, 3012]);
    SeriesRecord {
        columns: vec![
            column("cpu.user_ratio", "all", &cpu),
            column("cpu.user_ratio", "cpu0", &cpu),
            column("disk.reads_per_s", "sda", &disk),
            column("disk.reads_per_s", "sdb", &disk),
            column("load.tps", "", &[1000, 2000]),
        ],
        gaps: Vec::new(),
    }
}

/// A finished experiment with two trials, whose lists have the same numbers.
fn add(store: &mut Store) -> Vec<(i64, SeriesRecord)> {
    let id = store.begin(&experiment()).unwrap();
    let mut later = series();
    for column in &mut later.columns {
        column.at_ms.iter_mut().for_each(|at| *at += 7);
    }
    let trials = [(1, series()), (2, later)].map(|(block, series)| {
        let record = trial(block, "reference", TrialStatus::Finished);
        (store.add_trial(id, &record, &series).unwrap(), series)
    });
    store.set_status(id, ExperimentStatus::Finished).unwrap();
    trials.to_vec()
}

#[test]
fn shared_times_are_read_in_every_way() {
    each(|rig| {
        let mut store = rig.open();
        for (trial, series) in add(&mut store) {
            assert_eq!(store.series(trial).unwrap(), series);
            let some = store.series_of(trial, |metric| metric == "load.tps").unwrap();
            assert_eq!(some.columns, series.columns[4..]);
            let some = store
                .series_of(trial, |metric| metric.starts_with("disk"))
                .unwrap();
            assert_eq!(some.columns, series.columns[2..4]);
            let mut one_by_one = Vec::new();
            let done = store.each_column(trial, |column| {
                one_by_one.push(column);
                Ok::<_, StoreError>(())
            });
            assert_eq!((done.unwrap(), one_by_one), ((), series.columns));
            assert_eq!(
                store.series_of(trial, |_| false).unwrap(),
                SeriesRecord::default()
            );
        }
        let without = trial(3, "reference", TrialStatus::Finished);
        let without = store.add_trial(1, &without, &SeriesRecord::default()).unwrap();
        let mut gap = series();
        gap.columns.clear();
        gap.gaps.push(GapRecord {
            at_ms: 5,
            source: "/proc/stat".into(),
            reason: "x".into(),
        });
        let record = trial(3, "other", TrialStatus::Finished);
        let with_gap = store.add_trial(1, &record, &gap).unwrap();
        let all = [with_gap, 2, without, 1, 99];
        let found = store.series_of_trials(&all, |_| true).unwrap();
        assert_eq!(found.len(), all.len());
        assert_eq!(found[0], gap);
        for (at, trial) in [(1, 2), (3, 1)] {
            assert_eq!(found[at], store.series(trial).unwrap());
        }
        assert_eq!([&found[2], &found[4]], [&SeriesRecord::default(); 2]);
        let none = store.series_of_trials(&[], |_| true).unwrap();
        assert_eq!(none, Vec::new());
        let names: Vec<&str> = found[3].columns.iter().map(|one| one.metric.as_str()).collect();
        let some = &names[..1];
        let such = store
            .series_of_trials(&all, |metric| some.contains(&metric))
            .unwrap();
        assert!(such[3] != found[3] && !such[3].columns.is_empty());
        assert_eq!(store.series_named(&all, some).unwrap(), such);
        assert_eq!(
            store.series_named(&all[..1], &["nowhere"]).unwrap()[0].gaps,
            gap.gaps
        );
        let found = rig.check();
        assert_eq!((found.columns, found.points), (10, 28));
        assert_eq!(
            found.faults.len(),
            1,
            "the treatment is not planned: {:?}",
            found.faults
        );
    });
}

#[test]
fn shared_times_are_imported() {
    for (from, into) in [
        (Rig::file(), Rig::server()),
        (Rig::server(), Rig::file()),
        (Rig::server(), Rig::server()),
    ] {
        let added = add(&mut from.open());
        let mut store = into.open();
        // Other numbers than there.
        add(&mut store);
        store.import(&from.reader()).unwrap();
        let found = store.experiment(2).unwrap();
        for ((trial, _), (_, series)) in found.trials.iter().zip(added) {
            assert_eq!(store.series(*trial).unwrap(), series);
        }
        assert_eq!(into.check().faults, Vec::<String>::new());
    }
}

#[test]
fn lists_of_times_that_are_damaged_are_named() {
    let check = |rig: &Rig, sql: &str, series_message: &str, check_message: &str| {
        let mut store = rig.open();
        let (number, series) = add(&mut store).remove(0);
        rig.sql(sql);
        let error = store.series(number).unwrap_err().to_string();
        assert!(error.contains(series_message), "{sql}: {error}");
        // What has no part in it is read as before.
        let rest = store.series_of(number, |metric| metric == "load.tps").unwrap();
        assert_eq!(rest.columns, series.columns[4..]);
        let faults = rig.check().faults.join("\n");
        assert!(faults.contains(check_message), "{sql}: {faults}");
        let imported = Rig::file().open().import(&rig.reader());
        assert!(matches!(imported, Err(StoreError::Record { .. })), "{imported:?}");
    };
    for make in [Rig::file, Rig::server] {
        let rig = make();
        let broken = format!(
            "UPDATE series SET points = {} WHERE metric = '' AND label = '0'",
            rig.blob("05")
        );
        check(
            &rig,
            &broken,
            "cpu.user_ratio of trial 1",
            "the times of trial 1 cannot be read",
        );
        check(
            &make(),
            "DELETE FROM series WHERE metric = ''",
            "list 0, which is not there",
            "\"cpu0\" of trial 1 cannot be read",
        );
        // A list that no column refers to any more is checked too.
        let rig = make();
        add(&mut rig.open());
        rig.sql(&format!("{broken}; DELETE FROM series WHERE metric LIKE 'cpu%'"));
        let faults = rig.check().faults;
        assert_eq!(faults.len(), 2, "{faults:?}");
    }
}

/// A store of schema 3, which had the same tables and blobs with times in each.
#[test]
fn a_store_of_schema_3_is_brought_up_and_read() {
    each(|rig| {
        let mut store = rig.open();
        let id = add(&mut store).remove(0).0;
        let columns = series().columns;
        rig.sql("DELETE FROM series");
        for column in &columns {
            let blob = pack_points(&column.at_ms, &column.values);
            let digits: String = blob.iter().map(|byte| format!("{byte:02x}")).collect();
            rig.sql(&format!(
                "INSERT INTO series (trial_id, metric, label, points) VALUES ({id}, '{}', '{}', {})",
                column.metric,
                column.label,
                rig.blob(&digits)
            ));
        }
        drop(store);
        rig.sql(match rig {
            Rig::File { .. } => "PRAGMA user_version = 3",
            Rig::Server { .. } => "UPDATE about SET schema_version = 3",
        });
        let older = rig.reader();
        assert_eq!(older.check().unwrap().schema, 3);
        let into = Rig::file();
        into.open().import(&older).unwrap();
        drop(older);
        let mut store = rig.open();
        assert_eq!(
            (store.series(id).unwrap(), rig.check().schema),
            (series(), VERSION)
        );
        assert_eq!(into.open().series(1).unwrap(), series());
        let (next, series) = add(&mut store).remove(1);
        assert_eq!(store.series(next).unwrap(), series);
    });
}
