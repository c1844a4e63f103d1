//! The progress of an experiment that is run, beside its lock.

use super::{experiment, trial};
use crate::store::beside::{lock_of, progress_of};
use crate::store::find::Life;
use crate::store::sqlite::running;
use crate::store::{Store, StoreError};
use pgdyno_record::SeriesRecord;
use pgdyno_record::{ExperimentStatus, ProgressRecord, TrialStatus};

#[test]
fn what_is_left_goes_by_the_trials_so_far() {
    let mut progress = ProgressRecord::begun(10, 2, 10.0, 1_000_000);
    progress.budget_s = Some(30.0);
    assert_eq!(progress.left_s(1_010_000), Some(20.0));
    progress.budget_s = None;
    let left = |progress: &ProgressRecord, now| progress.left_s(now).unwrap().round();
    assert_eq!(left(&progress, 1_000_000), 80.0);
    assert_eq!(left(&progress, 1_004_000), 76.0);
    progress.count(1_020_000);
    assert_eq!(left(&progress, 1_020_000), 140.0);
    assert_eq!(left(&progress, 1_030_000), 130.0);
    assert_eq!(left(&progress, 9_000_000), 0.0);
    // A clock that was set back.
    assert_eq!(left(&progress, 0), 140.0);
    progress.restored();
    assert_eq!(progress.left_s(1_030_000), None);
}

#[test]
fn progress_counts_while_its_process_lives() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let mut store = Store::open(&path).unwrap();
    let id = store.begin(&experiment()).unwrap();
    let mut progress = ProgressRecord::begun(8, 0, 6.0, 1);
    progress.begin("memory", 1, "warm-up");
    store.progress_place().unwrap().write(id, &progress).unwrap();
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
    assert!(progress_of(&path, id).exists());
    let mut store = Store::open(&path).unwrap();
    store.set_status(id, ExperimentStatus::Running).unwrap();
    // What the dead one said is not said by who goes on with it.
    let pulse = other.pulse(id).unwrap();
    assert_eq!((pulse.life, pulse.progress), (Life::Running, None));
    store.set_status(id, ExperimentStatus::Finished).unwrap();
    assert!(!progress_of(&path, id).exists());
    assert!(matches!(other.pulse(99), Err(StoreError::Unknown { id: 99, .. })));
}

/// Others who look on are no process that runs it, and who goes on with it waits for them.
#[test]
fn looks_are_in_nobodys_way() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let mut store = Store::open(&path).unwrap();
    let id = store.begin(&experiment()).unwrap();
    drop(store);
    let look = std::fs::File::open(lock_of(&path, id)).unwrap();
    look.lock_shared().unwrap();
    let mut store = Store::open(&path).unwrap();
    assert_eq!(store.pulse(id).unwrap().life, Life::Killed);
    let unlocked = std::thread::spawn(move || look.unlock().unwrap());
    store.set_status(id, ExperimentStatus::Running).unwrap();
    unlocked.join().unwrap();
    let other = Store::open(&path).unwrap();
    assert_eq!(other.pulse(id).unwrap().life, Life::Running);
    // The file of one that has ended is removed, and locked for nobody.
    store.set_status(id, ExperimentStatus::Interrupted).unwrap();
    assert_eq!(running::look(&path, id), Some(false));
    let mut other = other;
    other.set_status(id, ExperimentStatus::Running).unwrap();
    assert_eq!(store.pulse(id).unwrap().life, Life::Running);
}

/// Between the look at its row and at its lock an experiment may end.
#[test]
fn what_has_ended_is_not_shown_as_killed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let mut store = Store::open(&path).unwrap();
    let id = store.begin(&experiment()).unwrap();
    let other = Store::open(&path).unwrap();
    assert!(!other.has_ended(id).unwrap());
    store.set_status(id, ExperimentStatus::Finished).unwrap();
    assert!(other.has_ended(id).unwrap() && other.has_ended(99).unwrap());
    assert_eq!(other.pulse(id).unwrap().life, Life::Finished);
}

/// Names beside the store can be guessed: nothing is written through a link, and no pipe is waited
/// for.
#[test]
fn links_and_pipes_are_let_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let mut store = Store::open(&path).unwrap();
    let id = store.begin(&experiment()).unwrap();
    let aim = dir.path().join("aim");
    std::fs::write(&aim, "kept").unwrap();
    let mut new = progress_of(&path, id).into_os_string();
    new.push(".new");
    std::os::unix::fs::symlink(&aim, &new).unwrap();
    std::os::unix::fs::symlink(&aim, progress_of(&path, id)).unwrap();
    assert_eq!(store.pulse(id).unwrap().progress, None);
    let progress = ProgressRecord::begun(8, 0, 6.0, 1);
    store.progress_place().unwrap().write(id, &progress).unwrap();
    assert_eq!(std::fs::read(&aim).unwrap(), b"kept");
    assert_eq!(store.pulse(id).unwrap().progress, Some(progress));
    std::fs::remove_file(progress_of(&path, id)).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, progress_of(&path, id), fifo, 0o600.into(), 0).unwrap();
    assert_eq!(store.pulse(id).unwrap().progress, None);
    let aside = lock_of(&path, 2);
    std::os::unix::fs::symlink(&aim, &aside).unwrap();
    assert_eq!(running::look(&path, 2), None);
    assert!(matches!(store.begin(&experiment()), Err(StoreError::Lock { .. })));
}

#[test]
fn a_file_of_another_version_says_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let mut store = Store::open(&path).unwrap();
    let id = store.begin(&experiment()).unwrap();
    let mut progress = ProgressRecord::begun(8, 0, 6.0, 1);
    progress.format = "pgdyno-progress/9".to_owned();
    store.progress_place().unwrap().write(id, &progress).unwrap();
    assert_eq!(store.pulse(id).unwrap().progress, None);
    for text in ["", "{", "null", "[]", "{\"format\": 1}"] {
        std::fs::write(progress_of(&path, id), text).unwrap();
        assert_eq!(store.pulse(id).unwrap().progress, None, "{text}");
    }
}
