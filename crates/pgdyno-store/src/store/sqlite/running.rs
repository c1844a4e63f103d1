//! Whether the process that runs an experiment lives: it keeps a file beside the store locked, and the kernel unlocks it
//! when the process ends, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Kept by the process that runs an experiment.
pub(super) struct RunningLock {
    path: PathBuf,
    /// Locked as long as it is open.
    _file: File,
}

impl RunningLock {
    /// Locks the file of an experiment; `None` where another process has it.
    pub(super) fn take(store: &Path, id: i64) -> io::Result<Option<RunningLock>> {
        let path = path_of(store, id);
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(RunningLock { path, _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// The experiment has ended in order: its file goes.
    pub(super) fn release(self) {
        // One that stays is unlocked, and tells nothing.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Whether a process runs this experiment. A file that cannot be looked at counts as one: nothing is removed for that.
pub(super) fn is_run(store: &Path, id: i64) -> bool {
    match File::open(path_of(store, id)) {
        Ok(file) => file.try_lock().is_err(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Removes what a killed process has left.
pub(super) fn clear(store: &Path, id: i64) {
    let _ = std::fs::remove_file(path_of(store, id));
}

fn path_of(store: &Path, id: i64) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(format!("-running-{id}"));
    PathBuf::from(name)
}
