//! One command at a time per sandbox: an advisory lock on a file that says who holds it.

use super::SandboxError;
use super::record::check_name;
use crate::counters::pause;
use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Held as long as this lives; a killed process lets go of it.
#[derive(Debug)]
pub struct Guard {
    _file: File,
}

/// Takes the lock of the sandbox `name` below `root`. If another command holds it, waits up to `patience`; `on_wait`
/// is told once who that is.
pub fn lock(
    root: &Path,
    name: &str,
    command: &str,
    patience: Duration,
    on_wait: &mut dyn FnMut(&str),
) -> Result<Guard, SandboxError> {
    check_name(name)?;
    let directory = root.join(".locks");
    fs::create_dir_all(&directory).map_err(SandboxError::io(&directory, "made"))?;
    let path = directory.join(name);
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(SandboxError::io(&path, "opened"))?;
    let deadline = Instant::now() + patience;
    let mut told = false;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(e)) => return Err(SandboxError::io(&path, "locked")(e)),
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file
                    .seek(SeekFrom::Start(0))
                    .and_then(|_| file.read_to_string(&mut holder));
                let holder = if holder.is_empty() {
                    "another command".to_owned()
                } else {
                    holder
                };
                if Instant::now() >= deadline {
                    return Err(SandboxError::Held {
                        name: name.to_owned(),
                        holder,
                    });
                }
                if !told {
                    on_wait(&holder);
                    told = true;
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
    Ok(Guard { _file: file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_holds_it_and_gets_it_afterwards() {
        let root = tempfile::tempdir().unwrap();
        let first = lock(root.path(), "demo", "run x", Duration::ZERO, &mut |_| ()).unwrap();
        let mut told = Vec::new();
        let error = lock(
            root.path(),
            "demo",
            "stop",
            Duration::from_millis(250),
            &mut |holder| {
                told.push(holder.to_owned());
            },
        )
        .unwrap_err();
        assert_eq!(told.len(), 1);
        assert!(error.to_string().contains("pgdyno run x"), "{error}");
        drop(first);
        lock(root.path(), "demo", "stop", Duration::ZERO, &mut |_| ()).unwrap();
    }
}
