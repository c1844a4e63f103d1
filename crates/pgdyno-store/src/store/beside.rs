//! Files beside a store: the lock of a running experiment, and how far it is.

use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Opens a file beside the store. Its name is not a secret: no link is followed, and no pipe waited
/// for.
pub(super) fn open(path: &Path, how: OFlags) -> io::Result<File> {
    let how = how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(
        path,
        how,
        Mode::from_raw_mode(0o666),
    )?))
}

/// Path of the file that a process locks while it runs the experiment.
pub(super) fn lock_of(store: &Path, id: i64) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(format!("-running-{id}"));
    PathBuf::from(name)
}

/// Removes what is written of an experiment.
pub(super) fn clear_progress(store: &Path, experiment: i64) {
    // One that stays means nothing without its lock.
    let _ = std::fs::remove_file(new_progress_of(store, experiment));
    let _ = std::fs::remove_file(progress_of(store, experiment));
}

/// Where that is written before it takes the other's place.
pub(super) fn new_progress_of(store: &Path, experiment: i64) -> PathBuf {
    let mut name = progress_of(store, experiment).into_os_string();
    name.push(".new");
    PathBuf::from(name)
}

/// Path of the file with the progress of a running experiment.
pub(super) fn progress_of(store: &Path, experiment: i64) -> PathBuf {
    let mut name = lock_of(store, experiment).into_os_string();
    name.push(".progress");
    PathBuf::from(name)
}
