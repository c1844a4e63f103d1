//! Directories of files copied as they are, with owner, mode and times; and emptied.

use super::{Copied, CopyProgress, OnProgress};
use crate::sandbox::SandboxError;
use pgdyno_host::{Directory, EntryKind, Owner, give};
use rustix::fs::{Timespec, Timestamps};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

/// Bytes between two reports of the progress.
const STEP_BYTES: usize = 32 << 20;
/// Directories below one another; a data directory has four.
const DEPTH_MAX: usize = 64;

/// Copies, counts and reports.
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
            is_root: pgdyno_server::User::is_root(),
            on_progress,
        }
    }

    pub(super) fn copied(&self, begun: Instant) -> Copied {
        Copied {
            bytes: self.bytes,
            files: self.files,
            seconds: begun.elapsed().as_secs_f64(),
            is_reflinked: self.unshared == 0,
        }
    }

    /// Copies a directory to a new one in `above`, without the entries `but` of its top.
    pub(super) fn directory(
        &mut self,
        from: &Directory,
        above: &Directory,
        name: &str,
        but: &[&str],
    ) -> Result<(), SandboxError> {
        // Another file system than the last one, perhaps.
        self.shares = true;
        self.new_directory(from, above, OsStr::new(name), but, 0)
    }

    /// Copies what is in a directory into one that is there and stays as it is.
    pub(super) fn back(
        &mut self,
        from: &Directory,
        to: &Directory,
        but: &[&str],
    ) -> Result<(), SandboxError> {
        self.shares = true;
        self.content(from, to, but, 0)
    }

    fn new_directory(
        &mut self,
        from: &Directory,
        above: &Directory,
        name: &OsStr,
        but: &[&str],
        depth: usize,
    ) -> Result<(), SandboxError> {
        let path = above.path().join(name);
        // Closed until it is handed over.
        let mut to = above.make(name, 0o700).map_err(SandboxError::io(&path, "made"))?;
        self.content(from, &to, but, depth)?;
        to.give(self.owner(from.owner()))
            .map_err(SandboxError::io(&path, "handed over"))
    }

    /// Only root gives away.
    fn owner(&self, original: Owner) -> Owner {
        match self.is_root {
            true => original,
            false => Owner::own(original.mode),
        }
    }

    fn content(
        &mut self,
        from: &Directory,
        to: &Directory,
        but: &[&str],
        depth: usize,
    ) -> Result<(), SandboxError> {
        if depth > DEPTH_MAX {
            return Err(super::place(
                from.path(),
                format!("more than {DEPTH_MAX} directories deep"),
            ));
        }
        let entries = from.entries().map_err(SandboxError::io(from.path(), "read"))?;
        for (name, kind) in entries {
            if but.iter().any(|excluded| name == **excluded) {
                continue;
            }
            let (source, target) = (from.path().join(&name), to.path().join(&name));
            match kind {
                EntryKind::Directory => {
                    let below = from.directory(&name).map_err(SandboxError::io(&source, "read"))?;
                    self.new_directory(&below, to, &name, &[], depth + 1)?;
                }
                EntryKind::Link => from
                    .read_link(&name)
                    .and_then(|leads| to.link(&leads, &name, self.owner(from.owner())))
                    .map_err(SandboxError::io(&target, "linked"))?,
                EntryKind::File => {
                    let file = from.file(&name).map_err(SandboxError::io(&source, "read"))?;
                    self.file(&file, to, &name)?;
                }
                EntryKind::Other => {
                    let reason = "it is not a file, directory or link, and cannot be copied";
                    return Err(super::place(&source, reason.to_owned()));
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, from: &File, to: &Directory, name: &OsStr) -> Result<(), SandboxError> {
        let target = to.path().join(name);
        // Of the file that is open, not of its name.
        let meta = from.metadata().map_err(SandboxError::io(&target, "read"))?;
        let to = to
            .create(name, 0o600)
            .map_err(SandboxError::io(&target, "made"))?;
        if meta.len() > 0 && !self.share(from, &to, meta.len()) {
            self.unshared += 1;
            self.bytes_of(from, &to)
                .map_err(SandboxError::io(&target, "written"))?;
        }
        self.files += 1;
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
        Owner::of(from)
            .and_then(|owner| give(&to, self.owner(owner)))
            .and_then(|()| Ok(rustix::fs::futimens(&to, &times)?))
            .map_err(SandboxError::io(&target, "given owner, mode and times"))?;
        self.report();
        Ok(())
    }

    fn report(&mut self) {
        (self.on_progress)(CopyProgress {
            bytes: self.bytes,
            bytes_all: self.bytes_all,
        });
    }

    /// The new file gets the blocks of the old one, if the file system can; it is asked until it
    /// refuses.
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
                    self.report();
                }
                Err(Errno::INTR) => {}
                // Two kinds of file system, or one that has no such call: from where both are.
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

/// Whether the files of a data directory can share their blocks with new ones in `directory`:
/// tried.
pub(super) fn can_share(data: &Directory, directory: &Directory) -> bool {
    const PROBE: &str = "pgdyno-copy-probe";
    let shared = data.file("PG_VERSION").is_ok_and(|from| {
        let made = directory
            .remove(PROBE)
            .and_then(|()| directory.create(PROBE, 0o600));
        made.is_ok_and(|to| rustix::fs::ioctl_ficlone(&to, &from).is_ok())
    });
    let _ = directory.remove(PROBE);
    shared
}

pub(super) fn below(above: &Directory, name: &str) -> Result<Directory, SandboxError> {
    above
        .directory(name)
        .map_err(SandboxError::io(&above.path().join(name), "opened"))
}

pub(super) fn open(directory: &Path) -> Result<Directory, SandboxError> {
    Directory::open(directory).map_err(SandboxError::io(directory, "opened"))
}

/// All that was written to a directory's file system is on its disk: one call, where a flush per
/// file would be thousands.
pub(super) fn sync(directory: &Directory) -> Result<(), SandboxError> {
    directory
        .sync_all()
        .map_err(SandboxError::io(directory.path(), "made durable"))
}
