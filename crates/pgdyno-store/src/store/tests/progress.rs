//! The progress of an experiment that is run, beside its lock.

use super::{experiment, trial};
use crate::record::{ExperimentStatus, ProgressRecord, TrialStatus};
use crate::series::SeriesRecord;
use crate::store::find::Life;
use crate::store::progress::path_of;
use crate::store::{Store, StoreError};

#[test]
fn what_is_left_goes_by_the_trials_so_far() {
    let mut progress = ProgressRecord::begun(10, 2, 6.0, 1_000_000);
    let left = |progress: &ProgressRecord, now| progress.left_s(now).round();
    assert_eq!(left(&progress, 1_000_000), 80.0);
    assert_eq!(left(&progress, 1_004_000), 76.0);
    progress.count(1_020_000);
    assert_eq!(left(&progress, 1_020_000), 140.0);
    assert_eq!(left(&progress, 1_030_000), 130.0);
    assert_eq!(left(&progress, 9_000_000), 0.0);
    // A clock that was set back.
    assert_eq!(left(&progress, 0), 140.0);
}

#[test]
fn progress_counts_while_its_process_lives() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let mut store = Store::open(&path).unwrap();
    let id = store.begin(&experiment()).unwrap();
    let mut progress = ProgressRecord::begun(8, 0, 6.0, 1);
    progress.begin("memory", 1, "warm-up");
    store.progress_place().write(id, &progress).unwrap();
    let other = Store::open(&path).unwrap();
    let pulse = other.pulse(id).unwrap();
    assert_eq!(
        (pulse.life, pulse.progress.as_ref()),
        (Life::Running, Some(&progress))
    );

    let failed = trial(1, "reference", TrialStatus::Failed);
    let number = store.add_trial(id, &failed, &SeriesRecord::default()).unwrap();
    let pulse = other.pulse(id).unwrap();
    assert_eq!((pulse.trials_finished, pulse.trials_failed), (0, 1));
    assert_eq!(other.trials_after(id, 0).unwrap(), [number]);
    assert_eq!(other.trials_after(id, number).unwrap(), [0_i64; 0]);

    // A killed process leaves its file, but no lock.
    drop(store);
    let pulse = other.pulse(id).unwrap();
    assert_eq!((pulse.life, pulse.progress), (Life::Killed, None));
    assert!(path_of(&path, id).exists());
    let mut store = Store::open(&path).unwrap();
    store.set_status(id, ExperimentStatus::Running).unwrap();
    store.set_status(id, ExperimentStatus::Finished).unwrap();
    assert!(!path_of(&path, id).exists());
    assert!(matches!(other.pulse(99), Err(StoreError::Unknown { id: 99, .. })));
}

#[test]
fn a_file_of_another_version_says_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let mut store = Store::open(&path).unwrap();
    let id = store.begin(&experiment()).unwrap();
    let mut progress = ProgressRecord::begun(8, 0, 6.0, 1);
    progress.format = "pgdyno-progress/9".to_owned();
    store.progress_place().write(id, &progress).unwrap();
    assert_eq!(store.pulse(id).unwrap().progress, None);
    for text in ["", "{", "null", "[]", "{\"format\": 1}"] {
        std::fs::write(path_of(&path, id), text).unwrap();
        assert_eq!(store.pulse(id).unwrap().progress, None, "{text}");
    }
}
