//! Whose turn it is: settings of a host are changed by one process at a time, and settings of a
//! server too; the next one waits.

use super::registry::Journals;
use super::scope::{Part, Scope};
use super::{JournalError, LOOK_AGAIN, io_error};
use pgdyno_host::{Directory, LockedFile};
use std::ffi::OsStr;
use std::fs::TryLockError;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long another process is waited for.
pub struct Patience<'a> {
    /// Longest wait for the other process.
    pub limit: Duration,
    /// Called once with who it is, before the first wait.
    pub on_wait: Option<&'a mut dyn FnMut(&str)>,
}

impl Patience<'_> {
    /// Patience that ends at once: another process is an error.
    pub fn none() -> Patience<'static> {
        Patience {
            limit: Duration::ZERO,
            on_wait: None,
        }
    }
}

/// Keeps other processes of this user from changing a scope while it lives.
#[derive(Debug)]
pub struct ScopeLock {
    _files: Vec<LockedFile>,
}

impl Journals {
    /// Takes the locks of a scope for `purpose`. They are the same for every home of this user.
    pub fn lock(
        &self,
        scope: &Scope,
        purpose: &str,
        patience: &mut Patience<'_>,
    ) -> Result<ScopeLock, JournalError> {
        let holder = format!("process {} ({purpose})", std::process::id());
        let parts = scope.parts();
        let files = parts
            .map(|part| self.lock_part(part, &holder, patience))
            .collect::<Result<_, _>>()?;
        Ok(ScopeLock { _files: files })
    }

    pub(super) fn lock_part(
        &self,
        part: Part<'_>,
        holder: &str,
        patience: &mut Patience<'_>,
    ) -> Result<LockedFile, JournalError> {
        self.make_registry()?;
        one_at_a_time(&self.registry.join(part.file_name()), part, holder, patience)
    }
}

fn one_at_a_time(
    path: &Path,
    part: Part<'_>,
    name: &str,
    patience: &mut Patience<'_>,
) -> Result<LockedFile, JournalError> {
    let (registry, file_name) = Directory::above(path).map_err(io_error(path, "opened"))?;
    let mut file = match registry.create(&file_name, 0o600) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => registry.update(&file_name),
        other => other,
    }
    .map_err(io_error(path, "opened"))?;
    let deadline = Instant::now() + patience.limit;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(e)) => return Err(io_error(path, "locked")(e)),
            Err(TryLockError::WouldBlock) => {}
        }
        let holder = holder_in(&registry, &file_name);
        if Instant::now() >= deadline {
            return Err(JournalError::Busy {
                holder,
                what: part.to_string(),
            });
        }
        if let Some(on_wait) = patience.on_wait.take() {
            on_wait(&format!("{holder}, which changes settings of {part}"));
        }
        pgdyno_server::pause(LOOK_AGAIN);
    }
    // Who it is helps the second one; on a full disk it has to do without.
    let _ = file
        .set_len(0)
        .and_then(|()| file.seek(SeekFrom::Start(0)))
        .and_then(|_| file.write_all(OsStr::new(name).as_bytes()));
    Ok(LockedFile::held(file))
}

fn holder_in(registry: &Directory, name: &OsStr) -> String {
    const TEXT_MAX_BYTES: u64 = 1 << 10;
    match registry.tail(name, 0, TEXT_MAX_BYTES) {
        Ok(bytes) if !bytes.is_empty() => String::from_utf8_lossy(&bytes).into_owned(),
        _ => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_that_is_a_fifo_or_a_link_is_refused_and_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let journals = Journals::in_test(dir.path());
        let scope = Scope {
            host: true,
            server: None,
        };
        let lock = || journals.lock(&scope, "test", &mut Patience::none());
        let path = journals.registry.join(Part::Host.file_name());
        let held = lock().unwrap();
        assert!(lock().unwrap_err().to_string().contains("(test)"));
        drop(held);
        std::fs::remove_file(&path).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        // Held by somebody, whose text would be waited for.
        let holder = std::fs::File::options()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        holder.lock().unwrap();
        let error = format!("{:?}", lock().unwrap_err());
        assert!(error.contains("a FIFO"), "{error}");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        let error = format!("{:?}", lock().unwrap_err());
        assert!(error.contains("symbolic link"), "{error}");
    }
}
