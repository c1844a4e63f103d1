//! Files in a directory that another user may write: the one way by which they are read and
//! written, for root above all.
//!
//! A [`Directory`] is held open. Every name is a single component that is opened from this handle,
//! never through a symbolic link; what was opened is checked by its own handle: a regular file that
//! the directory's owner may read itself, of limited size. Files are written the same way: made new
//! under another name, given owner and mode by their handle, made durable, and renamed. So the
//! owner of the directory gains nothing by exchanging a file for a link at any instant.

mod identity;
mod owner;
mod tree;
mod walk;

pub use identity::Identity;
pub use owner::{Owner, give};
use owner::{is_mine, owner_of};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Stat, Uid, fstat, mkdirat, openat, readlinkat, renameat,
    statat, symlinkat, unlinkat,
};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
pub use tree::{USUAL_MODE, make_directory, tree_bytes};
pub(crate) use walk::{Reached, walk};

/// Ends the name of a file that is about to take another one's place.
pub const COMING: &str = ".pgdyno-new";
/// Entries of one directory; more is nothing that a server makes.
const ENTRIES_MAX: usize = 1 << 20;

/// What an entry of a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A FIFO, a socket or a device.
    Other,
}

/// A directory that is held open.
#[derive(Debug)]
pub struct Directory {
    handle: OwnedFd,
    path: PathBuf,
    owner: Owner,
    /// Whether another user can exchange a directory above it.
    is_exposed: bool,
}

/// An error with a reason of our own, of a kind that distinguishes it from a missing file.
pub(crate) fn refused(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, reason.into())
}

fn kind_of(found: &Stat) -> EntryKind {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Directory,
        FileType::Symlink => EntryKind::Link,
        _ => EntryKind::Other,
    }
}

/// A single component.
fn checked(name: &OsStr) -> io::Result<&OsStr> {
    let bytes = name.as_encoded_bytes();
    if bytes.is_empty() || bytes == b"." || bytes == b".." || bytes.contains(&b'/') {
        let shown = name.to_string_lossy();
        return Err(refused(format!("expected the name of a file, found \"{shown}\"")));
    }
    Ok(name)
}

/// The content of an open file, of at most `bytes_max`.
pub(crate) fn read_whole(file: &File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, too_large_reason(bytes_max));
    if file.metadata()?.len() > bytes_max {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(too_large());
    }
    Ok(bytes)
}

fn too_large_reason(bytes_max: u64) -> String {
    format!("it is larger than {bytes_max} bytes, the most that is read of such a file")
}

/// Why something is not read as a file.
pub(crate) fn not_regular(found: &Stat) -> io::Error {
    refused(match FileType::from_raw_mode(found.st_mode) {
        FileType::Symlink => "it is a symbolic link, which is not followed here; expected a regular file",
        FileType::Directory => return rustix::io::Errno::ISDIR.into(),
        FileType::Fifo => "it is a FIFO; expected a regular file",
        FileType::Socket => "it is a socket; expected a regular file",
        _ => "it is a device; expected a regular file",
    })
}

impl Directory {
    /// Opens a directory by its path. Symbolic links on the way are followed where they belong to
    /// root, to this process's user or to the owner of the directory that they lead to: nobody else
    /// can choose which directory is opened.
    ///
    /// # Errors
    ///
    /// What the system says; `PermissionDenied` with the reason for a link of somebody else's.
    pub fn open(path: &Path) -> io::Result<Directory> {
        let path = std::path::absolute(path)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, "/", flags, Mode::empty())?;
        let reached = walk(root.as_fd(), &path, true)?;
        let directory = Directory::reached(&reached, path)?;
        let stranger = reached
            .links_of
            .iter()
            .find(|&&uid| !is_mine(uid) && uid != directory.owner.uid);
        match stranger {
            None => Ok(directory),
            Some(uid) => Err(refused(format!(
                "a symbolic link on the way belongs to user {uid}, and leads to a directory of user {}; it is not followed",
                directory.owner.uid
            ))),
        }
    }

    /// Opens a directory below `root`, which is "/" for all links on the way.
    pub(crate) fn open_in_root(root: &OwnedFd, path: &Path) -> io::Result<Directory> {
        Directory::reached(&walk(root.as_fd(), path, true)?, path.to_owned())
    }

    fn reached(reached: &Reached, path: PathBuf) -> io::Result<Directory> {
        let handle = reached.open(OFlags::RDONLY | OFlags::DIRECTORY)?;
        Directory::held(handle, path, reached.is_exposed)
    }

    fn held(handle: OwnedFd, path: PathBuf, is_exposed: bool) -> io::Result<Directory> {
        Ok(Directory {
            owner: owner_of(&fstat(&handle)?),
            handle,
            path,
            is_exposed,
        })
    }

    /// Opens the directory above a path, with the path's last name.
    ///
    /// # Errors
    ///
    /// As [`Directory::open`]; a path without a last name is refused.
    pub fn above(path: &Path) -> io::Result<(Directory, OsString)> {
        let path = std::path::absolute(path)?;
        match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => Ok((Directory::open(parent)?, name.to_owned())),
            _ => Err(refused("expected a path with a directory and a name")),
        }
    }

    /// Where the kernel has it now, without links: another user may lead its path elsewhere
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// What the system says; `NotFound` for one that has been removed.
    pub fn resolved(&self) -> io::Result<PathBuf> {
        let handle = format!("/proc/self/fd/{}", self.handle.as_raw_fd());
        let path = readlinkat(CWD, handle, Vec::new())?.into_bytes();
        match fstat(&self.handle)?.st_nlink {
            0 => Err(io::ErrorKind::NotFound.into()),
            _ => Ok(PathBuf::from(OsString::from_vec(path))),
        }
    }

    /// Path under which it was opened, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its owner, group and permission bits when it was opened.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// What identifies the directory among all of the machine.
    ///
    /// # Errors
    ///
    /// The error of the system call.
    pub fn identity(&self) -> io::Result<Identity> {
        Ok(Identity::of(&fstat(&self.handle)?))
    }

    /// Whether only root and this process's user can make, exchange or remove entries.
    pub fn is_private(&self) -> bool {
        is_mine(self.owner.uid) && !self.owner.is_shared()
    }

    /// Whether the path of an entry that we make leads to it, and to nothing else, as long as we do
    /// not remove it: what a program needs that is given a path.
    pub fn keeps_paths(&self) -> bool {
        !self.is_exposed && self.owner.keeps_entries()
    }

    /// Whoever can put an entry here may read it himself, so nothing is disclosed to him by our
    /// reading it for him.
    fn check(&self, found: &Stat) -> io::Result<()> {
        let (file, own) = (owner_of(found), self.owner);
        if self.is_private() || file.mode & 0o004 != 0 {
            return Ok(());
        }
        let by_owner = file.uid == own.uid || (file.gid == own.gid && file.mode & 0o040 != 0);
        // A second name of somebody's file, made by who may not read it.
        let is_linked_in = self.owner.is_shared() && found.st_nlink > 1 && kind_of(found) == EntryKind::File;
        if by_owner && !is_linked_in {
            return Ok(());
        }
        Err(self.belongs_to(file.uid))
    }

    /// Whoever can put an entry here may write it himself, so nothing of others is changed for him.
    fn check_for_writing(&self, found: &Stat) -> io::Result<()> {
        if self.is_private() {
            return Ok(());
        }
        if found.st_uid != self.owner.uid {
            return Err(self.belongs_to(found.st_uid));
        }
        match found.st_nlink {
            1 => Ok(()),
            _ => Err(refused("it has another name elsewhere, and is not written")),
        }
    }

    fn belongs_to(&self, uid: u32) -> io::Error {
        refused(format!(
            "it belongs to user {uid}, expected user {}, the owner of {}",
            self.owner.uid,
            self.path.display()
        ))
    }

    /// What a name is; `None` where there is no such entry.
    ///
    /// # Errors
    ///
    /// The error of the system call.
    pub fn kind(&self, name: impl AsRef<OsStr>) -> io::Result<Option<EntryKind>> {
        Ok(self.stat(name.as_ref())?.map(|found| kind_of(&found)))
    }

    fn stat(&self, name: &OsStr) -> io::Result<Option<Stat>> {
        match statat(&self.handle, checked(name)?, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(found)),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The owner of an entry, of a symbolic link its own; `None` where there is no such entry.
    ///
    /// # Errors
    ///
    /// The error of the system call.
    pub fn owner_of(&self, name: impl AsRef<OsStr>) -> io::Result<Option<Owner>> {
        Ok(self.stat(name.as_ref())?.map(|found| owner_of(&found)))
    }

    /// Opens a regular file to read it.
    ///
    /// # Errors
    ///
    /// What the system says; `PermissionDenied` with the reason for a symbolic link, a FIFO, a
    /// device, and a file that the directory's owner may not read.
    pub fn file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let file = self.regular(name.as_ref(), OFlags::RDONLY)?;
        self.check(&fstat(&file)?)?;
        Ok(file)
    }

    /// Opens a regular file of the user `uid` to read it, whoever owns the directory.
    ///
    /// # Errors
    ///
    /// As [`Directory::file`]; `PermissionDenied` for another user's file.
    pub fn file_of(&self, name: impl AsRef<OsStr>, uid: u32) -> io::Result<File> {
        let file = self.regular(name.as_ref(), OFlags::RDONLY)?;
        let found = fstat(&file)?.st_uid;
        match found == uid {
            true => Ok(file),
            false => Err(refused(format!(
                "it belongs to user {found}, expected user {uid}"
            ))),
        }
    }

    /// Opens a regular file to write at its end.
    ///
    /// # Errors
    ///
    /// As [`Directory::update`].
    pub fn append(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        self.written(name.as_ref(), OFlags::WRONLY | OFlags::APPEND)
    }

    /// Opens a regular file to read and write it.
    ///
    /// # Errors
    ///
    /// As [`Directory::file`]; where others can make entries, `PermissionDenied` for a file that
    /// the directory's owner does not own and for one with several names.
    pub fn update(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        self.written(name.as_ref(), OFlags::RDWR)
    }

    fn written(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        let file = self.regular(name, flags)?;
        self.check_for_writing(&fstat(&file)?)?;
        Ok(file)
    }

    /// Gives a regular file of this process's user another mode. It is not opened for that: the end
    /// of any handle of a file drops the record locks that this process has on it.
    ///
    /// # Errors
    ///
    /// As [`Directory::update`].
    pub fn set_mode(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = openat(&self.handle, checked(name.as_ref())?, flags, Mode::empty())?;
        let found = fstat(&handle)?;
        if kind_of(&found) != EntryKind::File {
            return Err(not_regular(&found));
        }
        self.check_for_writing(&found)?;
        let handle = format!("/proc/self/fd/{}", handle.as_raw_fd());
        Ok(rustix::fs::chmod(handle, Mode::from_raw_mode(mode))?)
    }

    fn regular(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        // A FIFO would wait for its other end, and a device can act when it is opened: the kind is
        // checked before, and again by the handle.
        let before = statat(&self.handle, checked(name)?, AtFlags::SYMLINK_NOFOLLOW)?;
        if kind_of(&before) != EntryKind::File {
            return Err(not_regular(&before));
        }
        let always = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let handle = match openat(&self.handle, name, flags | always, Mode::empty()) {
            Err(rustix::io::Errno::LOOP) => {
                return Err(refused("it is a symbolic link, which is not followed here"));
            }
            other => other?,
        };
        let found = fstat(&handle)?;
        if kind_of(&found) != EntryKind::File {
            return Err(not_regular(&found));
        }
        Ok(File::from(handle))
    }

    /// The content of a regular file of at most `bytes_max`.
    ///
    /// # Errors
    ///
    /// As [`Directory::file`]; `FileTooLarge` for a larger one.
    pub fn read(&self, name: impl AsRef<OsStr>, bytes_max: u64) -> io::Result<Vec<u8>> {
        read_whole(&self.file(name)?, bytes_max)
    }

    /// The content as text; bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    ///
    /// As [`Directory::read`].
    pub fn text(&self, name: impl AsRef<OsStr>, bytes_max: u64) -> io::Result<String> {
        let bytes = self.read(name, bytes_max)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The last bytes of a regular file from the offset `from` on, `bytes_max` of them at most.
    ///
    /// # Errors
    ///
    /// As [`Directory::file`].
    pub fn tail(&self, name: impl AsRef<OsStr>, from: u64, bytes_max: u64) -> io::Result<Vec<u8>> {
        let mut file = self.file(name)?;
        let from = from.max(file.metadata()?.len().saturating_sub(bytes_max));
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(bytes_max).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Bytes of a regular file.
    ///
    /// # Errors
    ///
    /// As [`Directory::file`].
    pub fn size(&self, name: impl AsRef<OsStr>) -> io::Result<u64> {
        Ok(self.file(name)?.metadata()?.len())
    }

    /// What a symbolic link points at.
    ///
    /// # Errors
    ///
    /// The error of the system call.
    pub fn read_link(&self, name: impl AsRef<OsStr>) -> io::Result<PathBuf> {
        let target = readlinkat(&self.handle, checked(name.as_ref())?, Vec::new())?;
        Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }

    /// Opens a directory in this one; its owner is as a file's.
    ///
    /// # Errors
    ///
    /// As [`Directory::file`].
    pub fn directory(&self, name: impl AsRef<OsStr>) -> io::Result<Directory> {
        let directory = self.below(name.as_ref())?;
        let (uid, expected) = (directory.owner.uid, self.owner.uid);
        if !self.is_private() && uid != expected && !is_mine(uid) {
            return Err(refused(format!(
                "it belongs to user {uid}, expected user {expected}"
            )));
        }
        Ok(directory)
    }

    fn below(&self, name: &OsStr) -> io::Result<Directory> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = openat(&self.handle, checked(name)?, flags, Mode::empty())?;
        let is_exposed = self.is_exposed || !self.owner.keeps_entries();
        Directory::held(handle, self.path.join(name), is_exposed)
    }

    /// Names and kinds of the entries, sorted.
    ///
    /// # Errors
    ///
    /// What the system says, and more than a million entries.
    pub fn entries(&self) -> io::Result<Vec<(OsString, EntryKind)>> {
        let mut found = Vec::new();
        for entry in Dir::read_from(&self.handle)? {
            let entry = entry?;
            let name = OsString::from_vec(entry.file_name().to_bytes().to_owned());
            if name == OsStr::new(".") || name == OsStr::new("..") {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::RegularFile => EntryKind::File,
                FileType::Directory => EntryKind::Directory,
                FileType::Symlink => EntryKind::Link,
                // Not every file system says it.
                FileType::Unknown => match self.kind(&name)? {
                    Some(kind) => kind,
                    None => continue,
                },
                _ => EntryKind::Other,
            };
            found.push((name, kind));
            if found.len() > ENTRIES_MAX {
                return Err(refused(format!("it has more than {ENTRIES_MAX} entries")));
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    /// Makes a file that was not there, to write it.
    ///
    /// # Errors
    ///
    /// What the system says; whatever has this name already is an error.
    pub fn create(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode);
        Ok(File::from(openat(
            &self.handle,
            checked(name.as_ref())?,
            flags,
            mode,
        )?))
    }

    /// Puts a file in place in one step, durably, with this owner and mode; whatever had the name
    /// is replaced, not followed.
    ///
    /// # Errors
    ///
    /// What the system says; and where somebody has exchanged the new file meanwhile.
    pub fn replace(&self, name: impl AsRef<OsStr>, bytes: &[u8], owner: Owner) -> io::Result<()> {
        let name = name.as_ref();
        let mut coming = name.to_owned();
        coming.push(COMING);
        self.remove(&coming)?;
        // For nobody else until it is whole.
        let mut file = self.create(&coming, 0o600)?;
        let written = file
            .write_all(bytes)
            .and_then(|()| give(&file, owner))
            .and_then(|()| file.sync_all())
            .and_then(|()| self.rename(&coming, name));
        if let Err(error) = written {
            let _ = self.remove(&coming);
            return Err(error);
        }
        let made = fstat(&file)?;
        let there = self.stat(name)?;
        if there.is_none_or(|there| (there.st_dev, there.st_ino) != (made.st_dev, made.st_ino)) {
            return Err(refused("somebody has replaced it while it was written"));
        }
        self.sync()
    }

    /// Makes a directory that was not there and opens it.
    ///
    /// # Errors
    ///
    /// What the system says; whatever has this name already is an error.
    pub fn make(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<Directory> {
        let name = checked(name.as_ref())?;
        mkdirat(&self.handle, name, Mode::from_raw_mode(mode))?;
        let made = self.below(name)?;
        // Another one that was put in its place meanwhile.
        if made.owner.uid != rustix::process::geteuid().as_raw() {
            return Err(refused("somebody has replaced it while it was made"));
        }
        Ok(made)
    }

    /// Gives the directory itself an owner and a mode.
    ///
    /// # Errors
    ///
    /// The error of the system call.
    pub fn give(&mut self, owner: Owner) -> io::Result<()> {
        give(&self.handle, owner)?;
        self.owner = owner;
        Ok(())
    }

    /// Makes a symbolic link with this owner.
    ///
    /// # Errors
    ///
    /// What the system says; whatever has this name already is an error.
    pub fn link(&self, target: &Path, name: impl AsRef<OsStr>, owner: Owner) -> io::Result<()> {
        let name = checked(name.as_ref())?;
        symlinkat(target, &self.handle, name)?;
        let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
        if rustix::process::geteuid().is_root() {
            rustix::fs::chownat(
                &self.handle,
                name,
                Some(uid),
                Some(gid),
                AtFlags::SYMLINK_NOFOLLOW,
            )?;
        }
        Ok(())
    }

    /// Renames an entry; whatever has the new name is replaced as rename(2) does.
    ///
    /// # Errors
    ///
    /// The error of the system call.
    pub fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        let (from, to) = (checked(from.as_ref())?, checked(to.as_ref())?);
        Ok(renameat(&self.handle, from, &self.handle, to)?)
    }

    /// Removes an entry that is not a directory. Nothing there is fine.
    ///
    /// # Errors
    ///
    /// The error of the system call.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        gone(unlinkat(&self.handle, checked(name.as_ref())?, AtFlags::empty()))
    }

    /// Removes an empty directory. Nothing there is fine.
    ///
    /// # Errors
    ///
    /// The error of the system call.
    pub fn remove_empty(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        gone(unlinkat(
            &self.handle,
            checked(name.as_ref())?,
            AtFlags::REMOVEDIR,
        ))
    }

    /// Makes the entries durable.
    ///
    /// # Errors
    ///
    /// The error of the system call.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.handle)?)
    }

    /// Makes all of its file system durable.
    ///
    /// # Errors
    ///
    /// The error of the system call.
    pub fn sync_all(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.handle)?)
    }
}

fn gone(removed: rustix::io::Result<()>) -> io::Result<()> {
    match removed {
        Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests;
