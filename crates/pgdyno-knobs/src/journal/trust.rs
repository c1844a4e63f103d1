//! Whether a file or directory of journals is to be trusted: what is written by it is written as
//! its reader, who may be root.

use super::{JournalError, io_error};
use rustix::fs::{Mode, OFlags};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Of a journal that is read.
pub(super) const SIZE_MAX_BYTES: u64 = 256 << 20;
/// Who else may write: the group, and all others.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Opens a regular file that nobody but its owner can have written, who is this user or root. No
/// link is followed, and no pipe waited for. `None` where there is none.
pub(super) fn open(path: &Path, how: OFlags) -> Result<Option<File>, JournalError> {
    // The kind is checked first: opening some devices does something.
    match fs::symlink_metadata(path) {
        Ok(about) => trusted(path, &about, Kind::File)?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(io_error(path, "opened")(e)),
    }
    let how = how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = match rustix::fs::open(path, how, Mode::from_raw_mode(0o600)) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(e) => return Err(io_error(path, "opened")(e.into())),
    };
    let about = file.metadata().map_err(io_error(path, "opened"))?;
    trusted(path, &about, Kind::File)?;
    Ok(Some(file))
}

/// Whether only its owner can put files there; `false` where there is no such directory.
pub(super) fn directory(path: &Path) -> Result<bool, JournalError> {
    match fs::symlink_metadata(path) {
        Ok(about) => trusted(path, &about, Kind::Directory).map(|()| true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(io_error(path, "read")(e)),
    }
}

/// All of an open file, which is small.
pub(super) fn content(path: &Path, file: &File) -> Result<Vec<u8>, JournalError> {
    let mut bytes = Vec::new();
    let mut from_start = file;
    io::Seek::seek(&mut from_start, io::SeekFrom::Start(0)).map_err(io_error(path, "read"))?;
    file.take(SIZE_MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(io_error(path, "read"))?;
    if bytes.len() as u64 > SIZE_MAX_BYTES {
        let reason = format!("it is larger than {} MB", SIZE_MAX_BYTES >> 20);
        return Err(not_trusted(path, reason));
    }
    Ok(bytes)
}

/// The beginning of an open file.
pub(super) fn head(path: &Path, mut file: &File, bytes_max: u64) -> Result<Vec<u8>, JournalError> {
    let mut bytes = Vec::new();
    io::Seek::seek(&mut file, io::SeekFrom::Start(0)).map_err(io_error(path, "read"))?;
    file.take(bytes_max)
        .read_to_end(&mut bytes)
        .map_err(io_error(path, "read"))?;
    Ok(bytes)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
}

fn trusted(path: &Path, about: &Metadata, wanted: Kind) -> Result<(), JournalError> {
    let kind = about.file_type();
    let what = [
        (kind.is_symlink(), "a symbolic link"),
        (kind.is_fifo(), "a FIFO"),
        (kind.is_socket(), "a socket"),
        (kind.is_block_device() || kind.is_char_device(), "a device"),
        (kind.is_dir() && wanted == Kind::File, "a directory"),
        (kind.is_file() && wanted == Kind::Directory, "a file"),
    ]
    .into_iter()
    .find_map(|(is, what)| is.then_some(what));
    if let Some(what) = what {
        let expected = match wanted {
            Kind::File => "a regular file",
            Kind::Directory => "a directory",
        };
        return Err(not_trusted(path, format!("it is {what}; expected {expected}")));
    }
    let me = rustix::process::geteuid().as_raw();
    if about.uid() != me && about.uid() != 0 {
        let reason = format!(
            "it belongs to user {}; expected user {me}{}",
            about.uid(),
            if me == 0 { "" } else { " or root" }
        );
        return Err(not_trusted(path, reason));
    }
    if about.mode() & WRITABLE_BY_OTHERS != 0 {
        let reason = format!(
            "others than its owner may write it (mode {:o}); expected mode {:o} or less",
            about.mode() & 0o7777,
            about.mode() & 0o7755
        );
        return Err(not_trusted(path, reason));
    }
    Ok(())
}

fn not_trusted(path: &Path, reason: String) -> JournalError {
    JournalError::NotTrusted {
        path: path.to_owned(),
        reason,
    }
}
