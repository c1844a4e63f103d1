//! Whole trees below a directory: made, removed, emptied and measured without following a link.

use super::{Directory, EntryKind, refused};
use rustix::fs::AtFlags;
use std::ffi::OsStr;
use std::io;
use std::path::Path;

/// Directories below one another; a data directory has four. Each level on the way is an open
/// handle.
const DEPTH_MAX: usize = 64;

impl Directory {
    /// Removes an entry with all that is below it. Nothing there is fine. A mount point below
    /// stays, empty.
    ///
    /// # Errors
    ///
    /// What the system says, and more than 64 directories below one another.
    pub fn remove_tree(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        self.remove_below(name.as_ref(), 0)
    }

    fn remove_below(&self, name: &OsStr, depth: usize) -> io::Result<()> {
        match self.kind(name)? {
            None => Ok(()),
            Some(EntryKind::Directory) => {
                self.below(name)?.empty_below(&[], depth + 1)?;
                match self.remove_empty(name) {
                    Err(e) if e.kind() == io::ErrorKind::ResourceBusy => Ok(()),
                    other => other,
                }
            }
            Some(_) => self.remove(name),
        }
    }

    /// Removes all entries but these.
    ///
    /// # Errors
    ///
    /// As [`Directory::remove_tree`].
    pub fn empty(&self, but: &[&str]) -> io::Result<()> {
        self.empty_below(but, 0)
    }

    fn empty_below(&self, but: &[&str], depth: usize) -> io::Result<()> {
        if depth > DEPTH_MAX {
            return Err(refused(format!("more than {DEPTH_MAX} directories deep")));
        }
        for (name, _) in self.entries()? {
            if !but.iter().any(|kept| name == **kept) {
                self.remove_below(&name, depth)?;
            }
        }
        Ok(())
    }

    /// Bytes of the regular files below, without the entries `but` of its top. What goes away
    /// meanwhile does not count.
    ///
    /// # Errors
    ///
    /// As [`Directory::remove_tree`].
    pub fn bytes(&self, but: &[&str]) -> io::Result<u64> {
        self.bytes_below(but, 0)
    }

    fn bytes_below(&self, but: &[&str], depth: usize) -> io::Result<u64> {
        if depth > DEPTH_MAX {
            return Err(refused(format!("more than {DEPTH_MAX} directories deep")));
        }
        let mut bytes = 0_u64;
        for (name, kind) in self.entries()? {
            if but.iter().any(|excluded| name == **excluded) {
                continue;
            }
            let own = match kind {
                EntryKind::Directory => match self.below(&name) {
                    Ok(below) => below.bytes_below(&[], depth + 1)?,
                    Err(e) if e.kind() == io::ErrorKind::NotFound => 0,
                    Err(e) => return Err(e),
                },
                EntryKind::File => {
                    let found = rustix::fs::statat(&self.handle, &name, AtFlags::SYMLINK_NOFOLLOW);
                    found.map_or(0, |found| u64::try_from(found.st_size).unwrap_or(0))
                }
                EntryKind::Link | EntryKind::Other => 0,
            };
            bytes = bytes.saturating_add(own);
        }
        Ok(bytes)
    }
}

/// Bytes of the regular files below a path; 0 where it cannot be read.
pub fn tree_bytes(path: &Path) -> u64 {
    Directory::open(path)
        .and_then(|directory| directory.bytes(&[]))
        .unwrap_or(0)
}

/// The mode of a directory that others may enter and list: what the mask of this process leaves of
/// it.
pub const USUAL_MODE: u32 = 0o777;

/// Makes a directory with this mode, so that it is not gone after a power loss, or opens the one
/// that is there. Those above it that are missing have [`USUAL_MODE`]: what else is made below them
/// may be another user's.
///
/// # Errors
///
/// As [`Directory::open`].
pub fn make_directory(path: &Path, mode: u32) -> io::Result<Directory> {
    let is_missing = |e: &io::Error| e.kind() == io::ErrorKind::NotFound;
    match Directory::open(path) {
        Err(e) if is_missing(&e) => {}
        other => return other,
    }
    let path = std::path::absolute(path)?;
    let (above, name) = match Directory::above(&path) {
        Err(e) if is_missing(&e) => match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => (make_directory(parent, USUAL_MODE)?, name.to_owned()),
            _ => return Err(e),
        },
        other => other?,
    };
    let made = match above.make(&name, mode) {
        // Another process has made it meanwhile.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => above.directory(&name),
        other => other,
    }?;
    above.sync()?;
    Ok(made)
}
