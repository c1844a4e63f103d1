//! A file of our own for a measurement: made beside what is measured, never over something, gone at
//! the end.
//!
//! It has a name while it is used, though a nameless one could not be left behind: some file
//! systems (btrfs) flush a file without a name more cheaply, for nobody could ever find it again.
//! It is locked while it is used, which distinguishes it from one whose owner was killed.

use super::ProbeError;
use crate::beneath::{Directory, EntryKind};
use rustix::fs::{FlockOperation, flock, statfs, statvfs};
use rustix::process::{Resource, getrlimit};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Never less than this is left free on a volume.
pub(super) const FREE_LEAST_BYTES: u64 = 1 << 30;

const PREFIX: &str = "pgdyno-check-";
const SUFFIX: &str = ".tmp";
const NAMES_TRIED: u32 = 100;
/// Of a page: what O_DIRECT asks for on every device known.
pub(super) const ALIGNMENT_BYTES: usize = 4096;

/// The file; dropping it removes it.
#[derive(Debug)]
pub(super) struct OwnFile {
    directory: Directory,
    name: String,
    path: PathBuf,
    file: File,
}

impl OwnFile {
    pub(super) fn create(directory: &Path) -> Result<OwnFile, ProbeError> {
        for attempt in 0..NAMES_TRIED {
            let name = format!("{PREFIX}{}-{attempt}{SUFFIX}", std::process::id());
            let path = directory.join(&name);
            let made = Directory::open(directory).and_then(|held| Ok((held.create(&name, 0o600)?, held)));
            match made {
                Ok((file, directory)) => {
                    let own = OwnFile {
                        directory,
                        name,
                        path,
                        file,
                    };
                    // Between its making and its lock another process may take it for left over.
                    if own.is_locked_and_there() {
                        return Ok(own);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(ProbeError::io(&path, "made")(error)),
            }
        }
        Err(ProbeError::io(directory, "written to")(
            io::ErrorKind::AlreadyExists.into(),
        ))
    }

    fn is_locked_and_there(&self) -> bool {
        flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok()
            && self.file.metadata().is_ok_and(|found| found.nlink() > 0)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Another way into the same file, whatever its name means by now; `flags` as in open(2).
    pub(super) fn reopen(&self, flags: i32) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags)
            .open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        // What cannot be removed now is what the next check looks for.
        let _ = self.directory.remove(&self.name);
    }
}

/// A file that a killed check has left, and whether it was removed.
#[derive(Debug)]
pub struct LeftOver {
    /// Path at which it was found.
    pub path: PathBuf,
    /// Whether it could be removed.
    pub removed: io::Result<()>,
}

/// Removes what killed checks have left in a directory. Files in use are left alone, and so is
/// whatever is not a file.
pub fn left_overs(directory: &Path) -> Vec<LeftOver> {
    let Ok(held) = Directory::open(directory) else {
        return Vec::new();
    };
    let entries = held.entries().unwrap_or_default();
    let ours = entries
        .into_iter()
        .filter(|(name, kind)| is_ours(&name.to_string_lossy()) && *kind == EntryKind::File);
    ours.filter_map(|(name, _)| {
        let removed = match lock(&held, &name) {
            Ok(Some(_locked)) => held.remove(&name),
            Ok(None) => return None,
            Err(error) => Err(error),
        };
        let path = directory.join(name);
        Some(LeftOver { path, removed })
    })
    .collect()
}

fn is_ours(name: &str) -> bool {
    let middle = name
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_suffix(SUFFIX));
    let numbers = middle.and_then(|middle| middle.split_once('-'));
    numbers.is_some_and(|(pid, attempt)| pid.parse::<u32>().is_ok() && attempt.parse::<u32>().is_ok())
}

/// The file with its lock, or `None` where somebody has it.
fn lock(directory: &Directory, name: &OsStr) -> io::Result<Option<File>> {
    let file = directory.update(name)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(error) if error == rustix::io::Errno::WOULDBLOCK => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// How large a file may become in a directory: a part of what is free, such that enough is left;
/// and no larger than this process may make one, for the kernel would end it.
pub(super) fn room_bytes(directory: &Path, part_of_free: u64) -> Result<u64, ProbeError> {
    let free = free_bytes(directory)?;
    let limit = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
    Ok((free / part_of_free.max(1))
        .min(free.saturating_sub(FREE_LEAST_BYTES))
        .min(limit))
}

pub(super) fn free_bytes(directory: &Path) -> Result<u64, ProbeError> {
    let found =
        statvfs(directory).map_err(|e| ProbeError::io(directory, "asked for its free space")(e.into()))?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Whether the file system is memory, so that nothing reaches a disk.
pub fn is_memory(directory: &Path) -> bool {
    /// TMPFS_MAGIC of linux/magic.h.
    const TMPFS: rustix::fs::FsWord = 0x0102_1994;
    statfs(directory).is_ok_and(|found| found.f_type == TMPFS)
}

/// Memory that O_DIRECT takes.
pub(super) struct Aligned {
    memory: Vec<u8>,
    from: usize,
    length: usize,
}

impl Aligned {
    pub(super) fn new(length: usize) -> Aligned {
        let memory = vec![0_u8; length + ALIGNMENT_BYTES];
        let from = memory.as_ptr().align_offset(ALIGNMENT_BYTES).min(ALIGNMENT_BYTES);
        Aligned { memory, from, length }
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..self.from + self.length]
    }
}

/// Numbers without a pattern that a disk could compress: SplitMix64 (Steele, Lea and Flood 2014).
pub(super) struct Noise(pub(super) u64);

impl Noise {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn fill(&mut self, bytes: &mut [u8]) {
        for eight in bytes.chunks_mut(8) {
            let word = self.next().to_le_bytes();
            eight.copy_from_slice(&word[..eight.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_is_there_while_it_is_used_and_gone_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let own = OwnFile::create(dir.path()).unwrap();
        let second = OwnFile::create(dir.path()).unwrap();
        assert_ne!(own.path(), second.path());
        assert!(own.path().exists() && is_ours(&own.path().file_name().unwrap().to_string_lossy()));
        drop((own, second));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_panic_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().to_owned();
        let worker = std::thread::spawn(move || {
            let _own = OwnFile::create(&place).unwrap();
            panic!("in the middle of it");
        });
        assert!(worker.join().is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn only_what_was_left_over_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let used = OwnFile::create(dir.path()).unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("pgdyno-check-4000000-0.tmp"), "left").unwrap();
        fs::write(at("pgdyno-check-notes.tmp"), "the user's").unwrap();
        fs::write(at("target"), "the user's").unwrap();
        std::os::unix::fs::symlink(at("target"), at("pgdyno-check-1-0.tmp")).unwrap();
        fs::create_dir(at("pgdyno-check-2-0.tmp")).unwrap();
        let found = left_overs(dir.path());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].removed.is_ok() && found[0].path == at("pgdyno-check-4000000-0.tmp"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 5);
        assert!(used.path().exists() && at("target").exists());
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let error = OwnFile::create(Path::new("/nowhere/at/all"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("/nowhere/at/all") && error.contains("made"),
            "{error}"
        );
        assert!(room_bytes(Path::new("/nowhere/at/all"), 10).is_err());
        assert!(left_overs(Path::new("/nowhere/at/all")).is_empty());
    }

    #[test]
    fn enough_is_left_free() {
        let dir = tempfile::tempdir().unwrap();
        let free = free_bytes(dir.path()).unwrap();
        let room = room_bytes(dir.path(), 1).unwrap();
        assert!(
            room <= free.saturating_sub(FREE_LEAST_BYTES / 2),
            "{room} of {free}"
        );
    }

    #[test]
    fn memory_for_direct_reads_begins_at_a_page() {
        for length in [512, 8192, 1 << 20] {
            let mut memory = Aligned::new(length);
            let bytes = memory.bytes();
            assert_eq!(
                (bytes.len(), bytes.as_ptr().align_offset(ALIGNMENT_BYTES)),
                (length, 0)
            );
        }
    }
}
