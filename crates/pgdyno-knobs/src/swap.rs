//! A swap file: made and taken into use, or given up and removed.

use crate::cell::CellError;
use pgdyno_host::{HostAccess, HostError};
use std::fs;
use std::io::Read;
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
    // The kernel tells its path without links, with blanks and the like by their octal numbers.
    let full =
        fs::canonicalize(path).map_or_else(|_| path.to_owned(), |full| full.to_string_lossy().into_owned());
    let escaped: String = full
        .chars()
        .map(|c| match c {
            ' ' | '\t' | '\n' | '\\' => format!("\\{:03o}", u32::from(c)),
            other => other.to_string(),
        })
        .collect();
    let in_use = swaps
        .lines()
        .skip(1)
        .any(|line| line.split_whitespace().next() == Some(&escaped));
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
    if let Ok(meta) = fs::symlink_metadata(path) {
        if !meta.is_file() || (meta.len() > 0 && !is_swap(path)) {
            return Err(wrong(
                path,
                "what is there was not made as swap, and is left alone",
            ));
        }
        fs::remove_file(path).map_err(|e| wrong(path, e))?;
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

/// Whether a file has the signature of swap space at the end of its first page, or was cut short before it got one: holds
/// nothing but zeros there.
fn is_swap(path: &str) -> bool {
    const PAGE_MAX: usize = 1 << 16;
    let mut page = vec![0; PAGE_MAX];
    let Ok(read) = fs::File::open(path).and_then(|mut file| file.read(&mut page)) else {
        return false;
    };
    let page = &page[..read];
    let signed = [4096, 8192, 16384, 32768, 65536]
        .iter()
        .any(|&size| page.get(size - 10..size) == Some(b"SWAPSPACE2"));
    signed || page.iter().all(|&byte| byte == 0)
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

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_host::LocalHost;

    #[test]
    fn only_what_was_made_as_swap_is_taken_away() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let name = path.to_string_lossy().into_owned();
        let host = LocalHost::new();
        fs::write(&path, "letters of somebody").unwrap();
        assert_eq!(size(&host, &name).unwrap(), Some(0));
        let error = set(&host, &name, None).unwrap_err().to_string();
        assert!(error.contains("left alone") && path.exists(), "{error}");
        let mut page = vec![0; 4096];
        page[4086..].copy_from_slice(b"SWAPSPACE2");
        fs::write(&path, page).unwrap();
        set(&host, &name, None).unwrap();
        assert!(!path.exists());
    }
}
