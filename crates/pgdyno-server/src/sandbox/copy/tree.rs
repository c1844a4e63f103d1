//! Directories of files copied as they are, with owner, mode and times; and emptied.

use super::{Copied, CopyProgress, OnProgress};
use crate::sandbox::SandboxError;
use rustix::fs::{Timespec, Timestamps};
use rustix::io::Errno;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown, fchown, symlink};
use std::path::Path;
use std::time::Instant;

/// Bytes between two words about the progress.
const STEP_BYTES: usize = 32 << 20;
/// Directories below one another; a data directory has four.
const DEPTH_MAX: usize = 64;

/// Copies, counts and tells.
pub(super) struct Copier<'a> {
    pub(super) bytes: u64,
    pub(super) files: u64,
    bytes_all: u64,
    /// Until the file system has refused once.
    shares: bool,
    /// Files with blocks that share none.
    unshared: u64,
    is_root: bool,
    on_progress: OnProgress<'a>,
}

impl<'a> Copier<'a> {
    pub(super) fn new(bytes_all: u64, on_progress: OnProgress<'a>) -> Copier<'a> {
        Copier {
            bytes: 0,
            files: 0,
            bytes_all,
            shares: true,
            unshared: 0,
            is_root: crate::User::is_root(),
            on_progress,
        }
    }

    pub(super) fn told(&self, begun: Instant) -> Copied {
        Copied {
            bytes: self.bytes,
            files: self.files,
            seconds: begun.elapsed().as_secs_f64(),
            is_reflinked: self.unshared == 0,
        }
    }

    /// Copies a directory to a new one, without the entries `but` of its top.
    pub(super) fn directory(&mut self, from: &Path, to: &Path, but: &[&str]) -> Result<(), SandboxError> {
        // Another file system than the last one, perhaps.
        self.shares = true;
        self.new_directory(from, to, but, 0)
    }

    /// Copies what is in a directory into one that is there and stays as it is.
    pub(super) fn back(&mut self, from: &Path, to: &Path, but: &[&str]) -> Result<(), SandboxError> {
        self.shares = true;
        self.content(from, to, but, 0)
    }

    fn new_directory(
        &mut self,
        from: &Path,
        to: &Path,
        but: &[&str],
        depth: usize,
    ) -> Result<(), SandboxError> {
        let meta = fs::metadata(from).map_err(SandboxError::io(from, "read"))?;
        // Closed until it is handed over.
        fs::create_dir(to)
            .and_then(|()| fs::set_permissions(to, fs::Permissions::from_mode(0o700)))
            .map_err(SandboxError::io(to, "made"))?;
        self.content(from, to, but, depth)?;
        let given = if self.is_root {
            chown(to, Some(meta.uid()), Some(meta.gid()))
        } else {
            Ok(())
        };
        given
            .and_then(|()| fs::set_permissions(to, meta.permissions()))
            .map_err(SandboxError::io(to, "handed over"))
    }

    fn content(&mut self, from: &Path, to: &Path, but: &[&str], depth: usize) -> Result<(), SandboxError> {
        if depth > DEPTH_MAX {
            return Err(super::place(
                from,
                format!("more than {DEPTH_MAX} directories deep"),
            ));
        }
        let entries = fs::read_dir(from).map_err(SandboxError::io(from, "read"))?;
        for entry in entries {
            let entry = entry.map_err(SandboxError::io(from, "read"))?;
            if but.iter().any(|name| entry.file_name() == *name) {
                continue;
            }
            let (source, target) = (entry.path(), to.join(entry.file_name()));
            let meta = entry.metadata().map_err(SandboxError::io(&source, "read"))?;
            if meta.is_dir() {
                self.new_directory(&source, &target, &[], depth + 1)?;
            } else if meta.is_symlink() {
                fs::read_link(&source)
                    .and_then(|leads| symlink(leads, &target))
                    .map_err(SandboxError::io(&target, "linked"))?;
            } else if meta.is_file() {
                self.file(&source, &target, &meta)?;
            } else {
                let reason = "it is no file, directory or link, and cannot be copied";
                return Err(super::place(&source, reason.to_owned()));
            }
        }
        Ok(())
    }

    fn file(&mut self, source: &Path, target: &Path, meta: &Metadata) -> Result<(), SandboxError> {
        let from = File::open(source).map_err(SandboxError::io(source, "read"))?;
        let to = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(target)
            .map_err(SandboxError::io(target, "made"))?;
        if meta.len() > 0 && !self.share(&from, &to, meta.len()) {
            self.unshared += 1;
            self.bytes_of(&from, &to)
                .map_err(SandboxError::io(target, "written"))?;
        }
        self.files += 1;
        if self.is_root {
            fchown(&to, Some(meta.uid()), Some(meta.gid()))
                .map_err(SandboxError::io(target, "handed over"))?;
        }
        let times = Timestamps {
            last_access: Timespec {
                tv_sec: meta.atime(),
                tv_nsec: meta.atime_nsec(),
            },
            last_modification: Timespec {
                tv_sec: meta.mtime(),
                tv_nsec: meta.mtime_nsec(),
            },
        };
        to.set_permissions(meta.permissions())
            .and_then(|()| Ok(rustix::fs::futimens(&to, &times)?))
            .map_err(SandboxError::io(target, "given mode and times"))?;
        self.tell();
        Ok(())
    }

    fn tell(&mut self) {
        (self.on_progress)(CopyProgress {
            bytes: self.bytes,
            bytes_all: self.bytes_all,
        });
    }

    /// The new file gets the blocks of the old one, if the file system can; it is asked until it refuses.
    fn share(&mut self, from: &File, to: &File, bytes: u64) -> bool {
        self.shares = self.shares && rustix::fs::ioctl_ficlone(to, from).is_ok();
        if self.shares {
            self.bytes += bytes;
        }
        self.shares
    }

    fn bytes_of(&mut self, from: &File, to: &File) -> io::Result<()> {
        loop {
            match rustix::fs::copy_file_range(from, None, to, None, STEP_BYTES) {
                Ok(0) => return Ok(()),
                Ok(bytes) => {
                    self.bytes += u64::try_from(bytes).unwrap_or(0);
                    self.tell();
                }
                Err(Errno::INTR) => {}
                // Two kinds of file system, or one that has no such call: from where both stand.
                Err(Errno::XDEV | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                    let (mut from, mut to) = (from, to);
                    self.bytes += io::copy(&mut from, &mut to)?;
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Whether a file can share its blocks with a new one in `directory`: tried.
pub(super) fn can_share(file: &Path, directory: &Path) -> bool {
    let probe = directory.join("pgdyno-copy-probe");
    let shared = File::open(file)
        .is_ok_and(|from| File::create(&probe).is_ok_and(|to| rustix::fs::ioctl_ficlone(&to, &from).is_ok()));
    let _ = fs::remove_file(&probe);
    shared
}

/// Bytes of the files below a directory, without the entries `but` of its top.
pub(super) fn size(directory: &Path, but: &[&str]) -> Result<u64, SandboxError> {
    let mut bytes = 0_u64;
    for entry in fs::read_dir(directory).map_err(SandboxError::io(directory, "read"))? {
        let entry = entry.map_err(SandboxError::io(directory, "read"))?;
        if but.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        let path = entry.path();
        let meta = entry.metadata().map_err(SandboxError::io(&path, "read"))?;
        bytes = bytes.saturating_add(match meta.is_dir() {
            true => size(&path, &[])?,
            false if meta.is_file() => meta.len(),
            false => 0,
        });
    }
    Ok(bytes)
}

/// Removes what is in a directory but these entries of its top. Links are removed, not followed.
pub(super) fn empty(directory: &Path, but: &[&str]) -> Result<(), SandboxError> {
    for entry in fs::read_dir(directory).map_err(SandboxError::io(directory, "read"))? {
        let entry = entry.map_err(SandboxError::io(directory, "read"))?;
        if but.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        let path = entry.path();
        let kind = entry.file_type().map_err(SandboxError::io(&path, "read"))?;
        let removed = if kind.is_dir() {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        removed.map_err(SandboxError::io(&path, "removed"))?;
    }
    Ok(())
}

/// All that was written to a directory's file system is on its disk: one call, where a flush per file would be thousands.
pub(super) fn sync(directory: &Path) -> Result<(), SandboxError> {
    let opened = File::open(directory).map_err(SandboxError::io(directory, "opened"))?;
    rustix::fs::syncfs(&opened).map_err(|e| SandboxError::io(directory, "made durable")(e.into()))
}
