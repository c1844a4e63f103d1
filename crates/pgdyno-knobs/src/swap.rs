//! A swap file: made and taken into use, or given up and removed.

use crate::cell::CellError;
use pgdyno_host::{HostAccess, HostError};
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;

fn wrong(path: &str, reason: impl ToString) -> CellError {
    CellError::Swap {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

/// The size of a swap file in bytes while it is in use, 0 for a file that is not, `None` without one.
pub(crate) fn size(host: &dyn HostAccess, path: &str) -> Result<Option<u64>, CellError> {
    let swaps = match host.read("/proc/swaps") {
        Ok(text) => text,
        Err(HostError::Missing { .. }) => String::new(),
        Err(error) => return Err(error.into()),
    };
    let in_use = swaps
        .lines()
        .skip(1)
        .any(|line| line.split_whitespace().next() == Some(path));
    match fs::metadata(path) {
        Ok(file) if in_use => Ok(Some(file.len())),
        Ok(_) => Ok(Some(0)),
        Err(_) => Ok(None),
    }
}

/// Brings the file to a size, in use; `None` or 0 removes it. Only a file that pgdyno made, or an empty name, is touched:
/// the caller has looked.
pub(crate) fn set(host: &dyn HostAccess, path: &str, bytes: Option<u64>) -> Result<(), CellError> {
    if size(host, path)?.is_some_and(|bytes| bytes > 0) {
        run("swapoff", &[path])?;
    }
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(wrong(path, e)),
        _ => {}
    }
    let Some(bytes) = bytes.filter(|&bytes| bytes > 0) else {
        return Ok(());
    };
    let file = fs::File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|e| wrong(path, e))?;
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes)
        .map_err(|e| wrong(path, std::io::Error::from(e)))?;
    drop(file);
    run("mkswap", &[path])?;
    run("swapon", &[path])
}

fn run(program: &str, arguments: &[&str]) -> Result<(), CellError> {
    let path = arguments.last().copied().unwrap_or_default();
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|e| wrong(path, format!("{program}: {e}")))?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(wrong(path, format!("{program}: {}", words.trim())))
}
