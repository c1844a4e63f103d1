//! Whether the process that runs an experiment lives: it keeps a file beside the store locked, and
//! the kernel unlocks it when the process ends, however it ends.

use crate::store::beside::{self, lock_of};
use rustix::fs::OFlags;
use std::fs::{File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// A process that only checks has the lock for an instant, one that runs an experiment for much
/// longer.
const CHECKED_WITHIN: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Kept by the process that runs an experiment.
pub(super) struct RunningLock {
    store: PathBuf,
    id: i64,
    /// Locked as long as this is there.
    file: File,
}

impl RunningLock {
    /// Locks the file of an experiment, and removes what a dead process has said of it; `None`
    /// where another process has it.
    pub(super) fn take(store: &Path, id: i64) -> io::Result<Option<RunningLock>> {
        let path = lock_of(store, id);
        let deadline = Instant::now() + CHECKED_WITHIN;
        loop {
            let file = beside::open(&path, OFlags::WRONLY | OFlags::CREATE)?;
            match file.try_lock() {
                Ok(()) if is_at(&file, &path)? => {
                    beside::clear_progress(store, id);
                    return Ok(Some(RunningLock {
                        store: store.to_owned(),
                        id,
                        file,
                    }));
                }
                // Removed by one that has ended since it was opened: its lock would be seen by
                // nobody.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    thread::park_timeout(LOOK_AGAIN)
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// The experiment has ended in order: its files go.
    pub(super) fn release(self) {
        clear(&self.store, self.id);
    }
}

impl Drop for RunningLock {
    fn drop(&mut self) {
        // A child that another thread forks has the file open, and with it the lock, until it
        // executes its program.
        let _ = self.file.unlock();
    }
}

/// Whether a process runs this experiment; `None` where its file cannot be read.
pub(in crate::store) fn look(store: &Path, id: i64) -> Option<bool> {
    let file = match beside::open(&lock_of(store, id), OFlags::RDONLY) {
        Ok(file) => file,
        Err(error) => return (error.kind() == io::ErrorKind::NotFound).then_some(false),
    };
    // Shared, so that others who look meanwhile see no lock.
    match file.try_lock_shared() {
        Ok(()) => {
            // Not until it is closed, for a child of another thread may have it open as well.
            let _ = file.unlock();
            Some(false)
        }
        Err(TryLockError::WouldBlock) => Some(true),
        Err(TryLockError::Error(_)) => None,
    }
}

/// Removes what the process that ran an experiment has left.
pub(super) fn clear(store: &Path, id: i64) {
    beside::clear_progress(store, id);
    // One that stays is unlocked, and means nothing.
    let _ = std::fs::remove_file(lock_of(store, id));
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let of = |about: Metadata| (about.dev(), about.ino());
    let there = std::fs::symlink_metadata(path).ok().map(of);
    Ok(there == Some(of(file.metadata()?)))
}
