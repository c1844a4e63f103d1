//! Whose turn it is: one process at a time turns knobs of a machine, and the next one waits.

use super::{JournalError, LOOK_AGAIN, io_error};
use std::fs::{self, File, TryLockError};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long another process is waited for.
pub struct Patience<'a> {
    /// No longer than this.
    pub limit: Duration,
    /// Called once with who it is, before the first wait.
    pub on_wait: Option<&'a mut dyn FnMut(&str)>,
}

impl Patience<'_> {
    /// Nobody is waited for.
    pub fn none() -> Patience<'static> {
        Patience {
            limit: Duration::ZERO,
            on_wait: None,
        }
    }
}

/// Keeps other processes from turning knobs of this machine while it lives.
#[derive(Debug)]
pub struct MachineLock {
    _file: File,
}

impl MachineLock {
    /// Takes the lock of a directory of journals for `purpose`.
    pub fn take(
        directory: &Path,
        purpose: &str,
        patience: &mut Patience<'_>,
    ) -> Result<MachineLock, JournalError> {
        let holder = format!("process {} ({purpose})", std::process::id());
        one_at_a_time(directory, &holder, patience).map(|file| MachineLock { _file: file })
    }
}

/// Two experiments at once would take each other's values for those from before, and disturb each other anyway.
pub(super) fn one_at_a_time(
    directory: &Path,
    name: &str,
    patience: &mut Patience<'_>,
) -> Result<File, JournalError> {
    let path = directory.join("lock");
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(io_error(&path, "opened"))?;
    let deadline = Instant::now() + patience.limit;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(e)) => return Err(io_error(&path, "locked")(e)),
            Err(TryLockError::WouldBlock) => {}
        }
        let holder = fs::read_to_string(&path).unwrap_or_default();
        if Instant::now() >= deadline {
            return Err(JournalError::Busy { holder });
        }
        if let Some(on_wait) = patience.on_wait.take() {
            on_wait(&holder);
        }
        pgdyno_server::pause(LOOK_AGAIN);
    }
    // Who it is helps the second one; on a full disk it has to do without.
    let _ = file
        .set_len(0)
        .and_then(|()| file.seek(SeekFrom::Start(0)))
        .and_then(|_| file.write_all(name.as_bytes()));
    Ok(file)
}
