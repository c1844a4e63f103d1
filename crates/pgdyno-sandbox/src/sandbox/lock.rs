//! One command at a time per sandbox: an advisory lock on a file that says who holds it.

use super::record::check_name;
use super::{SMALL_BYTES_MAX, SandboxError};
use pgdyno_host::{Directory, LockedFile, USUAL_MODE, make_directory};
use pgdyno_server::pause;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

const LOCKS: &str = ".locks";

/// A lock that is held until this is dropped, or the process is killed.
#[derive(Debug)]
pub struct Guard {
    _file: LockedFile,
}

/// Takes the lock of the sandbox `name` below `root`. If another command holds it, waits up to
/// `patience`; `on_wait` is called once with who that is.
pub fn lock(
    root: &Path,
    name: &str,
    command: &str,
    patience: Duration,
    on_wait: &mut dyn FnMut(&str),
) -> Result<Guard, SandboxError> {
    check_name(name)?;
    let directory = root.join(LOCKS);
    let path = directory.join(name);
    let held = directory_of_locks(root).map_err(SandboxError::io(&directory, "made"))?;
    let mut file = opened(&held, name).map_err(SandboxError::io(&path, "opened"))?;
    let deadline = Instant::now() + patience;
    let mut reported = false;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(e)) => return Err(SandboxError::io(&path, "locked")(e)),
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file
                    .seek(SeekFrom::Start(0))
                    .and_then(|_| (&file).take(SMALL_BYTES_MAX).read_to_string(&mut holder));
                let holder = if holder.is_empty() {
                    "another command".to_owned()
                } else {
                    holder
                };
                if !reported && !patience.is_zero() {
                    on_wait(&holder);
                    reported = true;
                }
                if Instant::now() >= deadline {
                    return Err(SandboxError::Held {
                        name: name.to_owned(),
                        holder,
                    });
                }
                pause(Duration::from_millis(100));
            }
        }
    }
    let holder = format!("process {} (pgdyno {command})", std::process::id());
    file.set_len(0)
        .and_then(|()| file.seek(SeekFrom::Start(0)))
        .and_then(|_| file.write_all(holder.as_bytes()))
        .map_err(SandboxError::io(&path, "written"))?;
    let _file = LockedFile::held(file);
    Ok(Guard { _file })
}

fn directory_of_locks(root: &Path) -> io::Result<Directory> {
    let root = make_directory(root, USUAL_MODE)?;
    match root.make(LOCKS, 0o755) {
        // Another command has just made it, or one long ago.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => root.directory(LOCKS),
        other => other,
    }
}

/// The file of that name, made where it is missing; no link leads elsewhere, for its content is
/// written over.
fn opened(locks: &Directory, name: &str) -> io::Result<File> {
    match locks.create(name, 0o600) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => locks.update(name),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn link_in_the_place_of_a_lock_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let victim = root.path().join("victim");
        fs::write(&victim, "content").unwrap();
        fs::create_dir(root.path().join(LOCKS)).unwrap();
        std::os::unix::fs::symlink(&victim, root.path().join(LOCKS).join("demo")).unwrap();
        let error = lock(root.path(), "demo", "stop", Duration::ZERO, &mut |_| ()).unwrap_err();
        assert!(error.to_string().contains("symbolic link"), "{error}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "content");
    }

    #[test]
    fn the_second_is_shown_who_holds_it_and_gets_it_afterwards() {
        let root = tempfile::tempdir().unwrap();
        let first = lock(root.path(), "demo", "run x", Duration::ZERO, &mut |_| ()).unwrap();
        let mut holders = Vec::new();
        let error = lock(
            root.path(),
            "demo",
            "stop",
            Duration::from_millis(250),
            &mut |holder| {
                holders.push(holder.to_owned());
            },
        )
        .unwrap_err();
        assert_eq!(holders.len(), 1);
        assert!(error.to_string().contains("pgdyno run x"), "{error}");
        drop(first);
        lock(root.path(), "demo", "stop", Duration::ZERO, &mut |_| ()).unwrap();
    }
}
