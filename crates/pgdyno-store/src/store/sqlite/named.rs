//! The files of a store by their names: found and checked before SQLite opens them, and closed to
//! others once it is proven that they are a store's.

use crate::store::StoreError;
use crate::store::place::Place;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, lstat, openat, unlinkat};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// What SQLite keeps beside a store, by the ends of the names.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];
/// A store holds statements, settings and the names of servers: its file is its owner's alone.
pub(super) const MODE: u32 = 0o600;
/// Permission bits of users that are neither owner nor group.
const EVERYBODY: u32 = 0o007;
/// Others than its owner may make entries in such a directory.
const SHARED: u32 = 0o022;
/// Nobody exchanges another user's entries there.
const STICKY: u32 = 0o1000;

/// The files that a name means. Its symbolic link leads to them where it is root's or this user's,
/// because SQLite keeps the files beside a store beside what the link names. What SQLite would wait
/// for, or write for somebody else, is refused.
pub(super) fn found(path: &Path) -> Result<PathBuf, StoreError> {
    let refused = |file: &Path, what| StoreError::NoFile {
        place: Place::File(path.to_owned()),
        file: file.to_owned(),
        what,
    };
    let is_link = |found: &Stat| FileType::from_raw_mode(found.st_mode) == FileType::Symlink;
    let mut real = path.to_owned();
    if let Some(link) = lstat(path).ok().filter(is_link) {
        let followed = is_mine(link.st_uid).then(|| path.canonicalize().ok()).flatten();
        real = followed.ok_or_else(|| {
            refused(
                path,
                "a symbolic link of another user's, or one that leads nowhere",
            )
        })?;
    }
    if let Some(what) = lstat(&real).ok().and_then(|found| other_kind(&found)) {
        return Err(refused(&real, what));
    }
    for ending in BESIDE {
        let file = beside(&real, ending);
        let Ok(found) = lstat(&file) else { continue };
        if let Some(what) = other_kind(&found) {
            return Err(refused(&file, what));
        }
        if found.st_nlink > 1 {
            return Err(refused(&file, "a file with several names"));
        }
    }
    Ok(real)
}

/// What something is that is not a regular file.
fn other_kind(found: &Stat) -> Option<&'static str> {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => None,
        FileType::Directory => Some("a directory"),
        FileType::Symlink => Some("a symbolic link"),
        FileType::Fifo => Some("a FIFO"),
        FileType::Socket => Some("a socket"),
        _ => Some("a device"),
    }
}

fn is_mine(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

fn opened(path: &Path, how: OFlags) -> io::Result<OwnedFd> {
    let how = how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(openat(CWD, path, how, Mode::empty())?)
}

/// Opens a regular file to read it.
pub(super) fn read(path: &Path) -> io::Result<File> {
    let file = File::from(opened(path, OFlags::RDONLY)?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Removes a file that this process has made; one that stays is in nobody's way.
pub(super) fn remove(path: &Path) {
    let _ = unlinkat(CWD, path, AtFlags::empty());
}

/// Opens the directory of a file, to lock it.
pub(super) fn directory_of(path: &Path) -> Option<File> {
    // The directory of a plain name is the current one.
    let directory = path
        .parent()
        .filter(|directory| !directory.as_os_str().is_empty());
    opened(
        directory.unwrap_or(Path::new(".")),
        OFlags::RDONLY | OFlags::DIRECTORY,
    )
    .ok()
    .map(File::from)
}

/// Takes a store that everybody may read, and what SQLite keeps beside it, back for its owner, if
/// that is who has opened it. The file is known to be a store, and nobody else can have exchanged
/// it. A mode that names a group alone is left: somebody chose it.
pub(super) fn close_to_others(path: &Path) {
    let keeps_names = directory_of(path).and_then(|directory| fstat(directory).ok());
    if !keeps_names.is_some_and(|above| {
        is_mine(above.st_uid) && (above.st_mode & SHARED == 0 || above.st_mode & STICKY != 0)
    }) {
        return;
    }
    for ending in ["", "-wal", "-shm"] {
        // Through a handle that opens nothing: the end of any other would drop the locks that
        // SQLite has on the file in this process.
        let Ok(file) = opened(&beside(path, ending), OFlags::PATH) else {
            continue;
        };
        let is_open = fstat(&file).is_ok_and(|about| {
            other_kind(&about).is_none()
                && about.st_mode & EVERYBODY != 0
                && about.st_nlink == 1
                && about.st_uid == rustix::process::geteuid().as_raw()
        });
        if is_open {
            // A file system without modes keeps what it has.
            let handle = format!("/proc/self/fd/{}", file.as_raw_fd());
            let _ = rustix::fs::chmod(handle, Mode::from_raw_mode(MODE));
        }
    }
}
