//! A swap file: made and taken into use, or given up and removed.

use super::UndoUnitError;
use pgdyno_host::{Directory, EntryKind, HostAccess, HostError};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::process::Command;

fn wrong(path: &str, reason: impl ToString) -> UndoUnitError {
    UndoUnitError::Swap {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

/// A file that may be swapped to. Journals of format 2 have its size alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SavedSwap")]
pub struct SwapFile {
    /// Its size while it is in use; 0 for a file that is not.
    pub bytes: u64,
    /// UUID by which /etc/fstab may name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Label by which /etc/fstab may name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The higher, the earlier it is used. `None` for the order in which it was taken into use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i16>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum SavedSwap {
    Size(u64),
    File {
        bytes: u64,
        uuid: Option<String>,
        label: Option<String>,
        priority: Option<i16>,
    },
}

impl From<SavedSwap> for SwapFile {
    fn from(saved: SavedSwap) -> SwapFile {
        match saved {
            SavedSwap::Size(bytes) => SwapFile::of_size(bytes),
            SavedSwap::File {
                bytes,
                uuid,
                label,
                priority,
            } => SwapFile {
                bytes,
                uuid,
                label,
                priority,
            },
        }
    }
}

impl SwapFile {
    pub(crate) fn of_size(bytes: u64) -> SwapFile {
        SwapFile {
            bytes,
            uuid: None,
            label: None,
            priority: None,
        }
    }

    /// Whether they are the same in what both say.
    pub(crate) fn is_like(&self, other: &SwapFile) -> bool {
        fn agree<T: PartialEq>(a: Option<&T>, b: Option<&T>) -> bool {
            a.zip(b).is_none_or(|(a, b)| a == b)
        }
        self.bytes == other.bytes
            && agree(self.uuid.as_ref(), other.uuid.as_ref())
            && agree(self.label.as_ref(), other.label.as_ref())
            && agree(self.priority.as_ref(), other.priority.as_ref())
    }
}

/// The directory of a swap file, and the file's name; `None` where there is no such directory. The
/// programs for swap files take paths, so nobody else may be able to exchange what is there.
fn place_of(path: &str) -> Result<Option<(Directory, OsString)>, UndoUnitError> {
    let (directory, name) = match Directory::above(Path::new(path)) {
        Ok(found) => found,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(wrong(path, e)),
    };
    if !directory.keeps_paths() {
        let reason = format!(
            "other users than root can exchange files in {} or above it; expected a directory that root alone can write",
            directory.path().display()
        );
        return Err(wrong(path, reason));
    }
    Ok(Some((directory, name)))
}

/// Why a swap file cannot be there; `None` where it can, or where there is no such directory.
pub(crate) fn objection(path: &str) -> Option<String> {
    place_of(path).err().map(|error| error.to_string())
}

/// What the file is now; `None` where there is none.
pub(crate) fn look(host: &dyn HostAccess, path: &str) -> Result<Option<SwapFile>, UndoUnitError> {
    let swaps = match host.read("/proc/swaps") {
        Ok(text) => text,
        Err(HostError::Missing { .. }) => String::new(),
        Err(error) => return Err(error.into()),
    };
    // The kernel prints its path without links, with blanks and the like by their octal numbers.
    let Some((directory, name)) = place_of(path)? else {
        return Ok(None);
    };
    let full = directory.resolved().map_err(|e| wrong(path, e))?.join(&name);
    let full = full.to_string_lossy();
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
        .find(|line| line.split_whitespace().next() == Some(&escaped));
    let bytes = match directory.kind(&name).map_err(|e| wrong(path, e))? {
        None => return Ok(None),
        Some(EntryKind::File) => directory.size(&name).map_err(|e| wrong(path, e))?,
        Some(_) => 0,
    };
    let header = start_of(&directory, &name);
    Ok(Some(SwapFile {
        bytes: if in_use.is_some() { bytes } else { 0 },
        uuid: uuid_in(&header),
        label: label_in(&header),
        priority: in_use
            .and_then(|line| line.split_whitespace().last()?.parse().ok())
            .filter(|&priority| priority >= 0),
    }))
}

/// Brings the file to a size, in use; `None` or 0 removes it. What `to` leaves open stays as it
/// was. Only a file that was made as swap, or a name without one, is touched.
pub(crate) fn set(host: &dyn HostAccess, path: &str, to: Option<&SwapFile>) -> Result<(), UndoUnitError> {
    let before = look(host, path)?;
    if before.as_ref().is_some_and(|file| file.bytes > 0) {
        run("swapoff", Vec::new(), path)?;
    }
    let there = place_of(path)?;
    if let Some((directory, name)) = &there
        && let Some(kind) = directory.kind(name).map_err(|e| wrong(path, e))?
    {
        let is_empty = || directory.size(name).is_ok_and(|bytes| bytes == 0);
        if kind != EntryKind::File || !(is_empty() || is_swap(directory, name)) {
            return Err(wrong(
                path,
                "what is there was not made as swap, and is left alone",
            ));
        }
        directory.remove(name).map_err(|e| wrong(path, e))?;
    }
    let Some(to) = to.filter(|to| to.bytes > 0) else {
        return Ok(());
    };
    let (directory, name) = there.ok_or_else(|| wrong(path, "there is no such directory"))?;
    let file = directory.create(&name, 0o600).map_err(|e| wrong(path, e))?;
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, to.bytes)
        .map_err(|e| wrong(path, io::Error::from(e)))?;
    drop(file);
    let kept = |of: fn(&SwapFile) -> Option<String>| of(to).or_else(|| before.as_ref().and_then(of));
    let mut make = Vec::new();
    for (option, value) in [
        ("--uuid", kept(|file| file.uuid.clone())),
        ("--label", kept(|file| file.label.clone())),
    ] {
        make.extend(
            value
                .map(|value| [option.to_owned(), value])
                .into_iter()
                .flatten(),
        );
    }
    run("mkswap", make, path)?;
    let priority = kept(|file| Some(file.priority?.to_string()));
    let priority = priority.map(|priority| vec!["--priority".to_owned(), priority]);
    run("swapon", priority.unwrap_or_default(), path)
}

/// Where the header, after a kilobyte left to loaders, has what a file is known by.
const UUID: Range<usize> = 1036..1052;
const LABEL: Range<usize> = 1052..1068;

fn uuid_in(header: &[u8]) -> Option<String> {
    let bytes = header.get(UUID).filter(|_| is_signed(header))?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    bytes.iter().any(|&byte| byte != 0).then(|| parts.join("-"))
}

/// `None` also for one that is not text, which no option of mkswap could give.
fn label_in(header: &[u8]) -> Option<String> {
    let bytes = header.get(LABEL).filter(|_| is_signed(header))?;
    let text = std::str::from_utf8(bytes.split(|&byte| byte == 0).next()?).ok()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// Whether a file is swap space, or was cut short before it got its signature: holds nothing but
/// zeros there.
fn is_swap(directory: &Directory, name: &OsStr) -> bool {
    let start = start_of(directory, name);
    !start.is_empty() && (is_signed(&start) || start.iter().all(|&byte| byte == 0))
}

/// The first page of a file, for the largest pages there are; nothing of one that cannot be read.
fn start_of(directory: &Directory, name: &OsStr) -> Vec<u8> {
    const PAGE_MAX: u64 = 1 << 16;
    let mut start = Vec::new();
    let read = directory
        .file(name)
        .and_then(|file| file.take(PAGE_MAX).read_to_end(&mut start));
    if read.is_err() {
        start.clear();
    }
    start
}

/// Whether it has the signature of swap space at the end of its first page, whatever the size of
/// pages.
fn is_signed(start: &[u8]) -> bool {
    [4096, 8192, 16384, 32768, 65536]
        .iter()
        .any(|&size| start.get(size - 10..size) == Some(b"SWAPSPACE2"))
}

fn run(program: &str, options: Vec<String>, path: &str) -> Result<(), UndoUnitError> {
    let output = Command::new(program)
        .args(options)
        .arg(path)
        .output()
        .map_err(|e| wrong(path, format!("{program}: {e}")))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(wrong(path, format!("{program}: {}", message.trim())))
}

/// What is read of a swap file's first page, for the fuzz targets.
pub(crate) fn fuzzed_header(bytes: &[u8]) {
    assert!(uuid_in(bytes).is_none_or(|uuid| uuid.len() == 36));
    assert!(label_in(bytes).is_none_or(|label| (1..=16).contains(&label.len())));
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_host::LocalHost;
    use std::fs;

    #[test]
    fn a_size_alone_is_a_file_of_which_no_more_is_known() {
        let file = SwapFile {
            label: Some("spare".to_owned()),
            ..SwapFile::of_size(8 << 20)
        };
        let text = serde_json::to_string(&file).unwrap();
        assert_eq!(serde_json::from_str::<SwapFile>(&text).unwrap(), file);
        let before: SwapFile = serde_json::from_str("8388608").unwrap();
        assert_eq!(before, SwapFile::of_size(8 << 20));
        assert!(before.is_like(&file));
    }

    #[test]
    fn only_what_was_made_as_swap_is_taken_away() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let name = path.to_string_lossy().into_owned();
        let host = LocalHost::new();
        fs::write(&path, "letters of somebody").unwrap();
        let other = look(&host, &name).unwrap().unwrap();
        assert_eq!(other, SwapFile::of_size(0));
        let error = set(&host, &name, None).unwrap_err().to_string();
        assert!(error.contains("left alone") && path.exists(), "{error}");
        let mut page = vec![0; 4096];
        page[4086..].copy_from_slice(b"SWAPSPACE2");
        fs::write(&path, page).unwrap();
        set(&host, &name, None).unwrap();
        assert!(!path.exists());
    }

    /// mkswap and swapon take a path, which the directory's owner could point at a disk.
    #[test]
    fn a_swap_file_in_another_users_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let theirs = dir.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        std::os::unix::fs::chown(&theirs, Some(12_345), Some(12_345)).unwrap();
        let path = theirs.join("file").to_string_lossy().into_owned();
        let wanted = SwapFile::of_size(8 << 20);
        let host = LocalHost::new();
        for refused in [look(&host, &path).map(drop), set(&host, &path, Some(&wanted))] {
            let error = refused.unwrap_err().to_string();
            assert!(
                error.contains("can exchange files in") && error.contains("theirs"),
                "{error}"
            );
        }
        assert_eq!(fs::read_dir(&theirs).unwrap().count(), 0);
        assert_eq!(look(&host, "/no/such/directory/file").unwrap(), None);
    }
}
