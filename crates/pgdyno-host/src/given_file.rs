//! Files that a user names: the one way by which they are read and written.
//!
//! What is read is a regular file of limited size; a FIFO or a device is not waited for. What is
//! written is a new file in an open directory: nothing that another user has put there is followed,
//! written or waited for.

use crate::beneath::{Directory, EntryKind, Owner, give, not_regular, read_whole, refused};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat, stat};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Bytes of a file of text that a user names; nothing that somebody has written by hand is near
/// this.
const TEXT_BYTES_MAX: u64 = 4 << 20;

/// The content of a regular file of at most so many bytes; symbolic links are followed.
///
/// # Errors
///
/// What the system says; what it is where it is not a regular file; `FileTooLarge`.
pub fn given_bytes(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let is_regular = |mode: u32| FileType::from_raw_mode(mode) == FileType::RegularFile;
    // Opening a device may be all that it takes to do something by it.
    let found = stat(path)?;
    if !is_regular(found.st_mode) {
        return Err(not_regular(&found));
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, path, flags, Mode::empty())?);
    let opened = fstat(&file)?;
    if !is_regular(opened.st_mode) {
        return Err(not_regular(&opened));
    }
    read_whole(&file, bytes_max)
}

/// The same of a text.
///
/// # Errors
///
/// As [`given_bytes`]; `InvalidData` for what is not UTF-8.
pub fn given_text(path: &Path) -> io::Result<String> {
    let bytes = given_bytes(path, TEXT_BYTES_MAX)?;
    String::from_utf8(bytes).map_err(|error| {
        let reason = format!("it is not UTF-8: {}", error.utf8_error());
        io::Error::new(io::ErrorKind::InvalidData, reason)
    })
}

/// Where a name leads that is to be written.
enum Output {
    /// To a file, or to none yet.
    File(Directory, OsString),
    /// To a device, a pipe, or what this process has open.
    Special(File),
}

impl Output {
    fn named(path: &Path) -> io::Result<Output> {
        /// As many symbolic links as the kernel follows in one path.
        const LINKS_MAX: usize = 40;
        let special = |path: &Path| {
            let file = File::options().write(true).truncate(true).open(path);
            file.map(Output::Special)
        };
        let mut path = path.to_owned();
        for _ in 0..LINKS_MAX {
            let (above, name) = Directory::above(&path)?;
            // The links there are the kernel's, and name files that are open.
            if above.resolved()?.starts_with("/proc") {
                return special(&path);
            }
            let kind = above.kind(&name)?;
            let stranger = above.owner_of(&name)?.filter(|owner| !owner.is_mine());
            match (kind, stranger) {
                (None | Some(EntryKind::File), _) => return Ok(Output::File(above, name)),
                (Some(EntryKind::Directory), _) => return Err(rustix::io::Errno::ISDIR.into()),
                (Some(_), Some(stranger)) => {
                    return Err(refused(format!(
                        "it is not a file, and belongs to user {}; it is neither followed nor written",
                        stranger.uid
                    )));
                }
                (Some(EntryKind::Link), None) => path = above.path().join(above.read_link(&name)?),
                (Some(EntryKind::Other), None) => return special(&path),
            }
        }
        Err(rustix::io::Errno::LOOP.into())
    }
}

/// The mode of this user's file that is there, or another one for a new file.
fn mode_of(above: &Directory, name: &OsString, mode: u32) -> io::Result<Owner> {
    let there = above.owner_of(name)?.filter(|there| there.is_mine());
    Ok(Owner::own(there.map_or(mode, |there| there.mode)))
}

/// A file that cannot be replaced, in a directory that is not this user's or as the place of a
/// mount, is written over.
fn written_over(above: &Directory, name: &OsString, error: io::Error) -> io::Result<File> {
    let is_fixed = [io::ErrorKind::PermissionDenied, io::ErrorKind::ResourceBusy].contains(&error.kind());
    if !is_fixed || above.kind(name)? != Some(EntryKind::File) {
        return Err(error);
    }
    let file = above.update(name)?;
    file.set_len(0)?;
    Ok(file)
}

/// Opens an output file, empty: a new one has this mode, and one that is there keeps its own.
///
/// # Errors
///
/// What the system says; `PermissionDenied` with the reason for what another user has put there.
pub fn given_output(path: &Path, mode: u32) -> io::Result<File> {
    let (above, name) = match Output::named(path)? {
        Output::File(above, name) => (above, name),
        Output::Special(file) => return Ok(file),
    };
    let owner = mode_of(&above, &name, mode)?;
    if let Err(error) = above.remove(&name) {
        return written_over(&above, &name, error);
    }
    let file = above.create(&name, 0o600)?;
    give(&file, owner)?;
    Ok(file)
}

/// Writes the file of this name whole or not at all; a new one has this mode, and one that is there
/// keeps its own.
///
/// # Errors
///
/// As [`given_output`].
pub fn replace_given(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    match Output::named(path)? {
        Output::Special(mut file) => file.write_all(bytes),
        Output::File(above, name) => {
            let owner = mode_of(&above, &name, mode)?;
            match above.replace(&name, bytes, owner) {
                Err(error) => written_over(&above, &name, error)?.write_all(bytes),
                Ok(()) => Ok(()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::mkfifoat;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};

    #[test]
    fn what_is_no_file_of_limited_size_is_refused_and_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        mkfifoat(CWD, path("fifo"), Mode::from_raw_mode(0o600)).unwrap();
        symlink("/dev/zero", path("link")).unwrap();
        fs::write(path("text"), "text").unwrap();
        File::create(path("large"))
            .unwrap()
            .set_len(TEXT_BYTES_MAX + 1)
            .unwrap();
        fs::write(path("binary"), [0xff]).unwrap();
        let check = |name: &str, expected: &str| {
            let error = given_text(&path(name)).unwrap_err().to_string();
            assert!(error.contains(expected), "{name}: {error}");
        };
        check("fifo", "a FIFO");
        check("link", "a device");
        check("large", "larger than");
        check("binary", "not UTF-8");
        check("", "directory");
        check("missing", "No such file");
        assert_eq!(given_text(&path("text")).unwrap(), "text");
        // What the kernel makes up has no length and is read all the same.
        assert!(
            given_text(Path::new("/proc/self/status"))
                .unwrap()
                .contains("Pid:")
        );
    }

    /// Both ways by which a file is written.
    fn writes(path: &Path) -> [io::Result<()>; 2] {
        let opened = given_output(path, 0o600).and_then(|mut file| file.write_all(b"new"));
        [opened, replace_given(path, b"new", 0o600)]
    }

    #[test]
    fn what_another_user_has_put_in_the_place_of_an_output_is_not_written() {
        const STRANGER: u32 = 12_345;
        let directory = tempfile::tempdir().unwrap();
        let (theirs, secret) = (directory.path().join("theirs"), directory.path().join("secret"));
        fs::create_dir(&theirs).unwrap();
        fs::write(&secret, "content").unwrap();
        let path = theirs.join("out");
        for beside in ["out", "out.new", "out.pgdyno-new"] {
            symlink(&secret, theirs.join(beside)).unwrap();
            lchown(theirs.join(beside), Some(STRANGER), Some(STRANGER)).unwrap();
        }
        lchown(&theirs, Some(STRANGER), Some(STRANGER)).unwrap();
        for outcome in writes(&path) {
            let reason = outcome.unwrap_err().to_string();
            assert!(reason.contains("belongs to user 12345"), "{reason}");
        }
        fs::remove_file(&path).unwrap();
        mkfifoat(CWD, &path, Mode::from_raw_mode(0o600)).unwrap();
        lchown(&path, Some(STRANGER), Some(STRANGER)).unwrap();
        for outcome in writes(&path) {
            let reason = outcome.unwrap_err().to_string();
            assert!(reason.contains("belongs to user 12345"), "{reason}");
        }
        // A second name of root's file, and the stranger's own: another file takes its place.
        fs::remove_file(&path).unwrap();
        fs::hard_link(&secret, &path).unwrap();
        for outcome in writes(&path) {
            outcome.unwrap();
        }
        assert_eq!(fs::metadata(&path).unwrap().uid(), Owner::own(0).uid);
        let planted = theirs.join("planted");
        fs::write(&planted, "").unwrap();
        lchown(&planted, Some(STRANGER), Some(STRANGER)).unwrap();
        let open = File::open(&planted).unwrap();
        given_output(&planted, 0o600).unwrap().write_all(b"new").unwrap();
        assert_eq!(open.metadata().unwrap().len(), 0);
        assert_eq!(fs::metadata(&planted).unwrap().uid(), Owner::own(0).uid);
        assert_eq!(fs::read_to_string(&secret).unwrap(), "content");
    }

    #[test]
    fn output_is_new_or_keeps_its_mode_and_may_be_a_link_of_ones_own_or_a_device() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        given_output(&path, 0o600).unwrap().write_all(b"new").unwrap();
        assert_eq!(
            (fs::read_to_string(&path).unwrap().as_str(), mode(&path)),
            ("new", 0o600)
        );
        fs::remove_file(&path).unwrap();
        replace_given(&path, b"new", 0o640).unwrap();
        assert_eq!(
            (fs::read_to_string(&path).unwrap().as_str(), mode(&path)),
            ("new", 0o640)
        );
        fs::write(&path, "a longer one").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let link = directory.path().join("link");
        symlink("out", &link).unwrap();
        for outcome in writes(&link) {
            outcome.unwrap();
            let found = fs::read_to_string(&path).unwrap();
            assert_eq!((found.as_str(), mode(&path)), ("new", 0o644));
        }
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        for outcome in writes(Path::new("/dev/null")) {
            outcome.unwrap();
        }
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        for outcome in writes(directory.path()) {
            assert!(outcome.unwrap_err().to_string().contains("directory"));
        }
    }
}
