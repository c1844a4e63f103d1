//! Files that a user names: the one way by which they are read. A regular file of limited size; a FIFO or a device is not waited for.

use crate::beneath::{not_regular, read_whole};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat, stat};
use std::fs::File;
use std::io;
use std::path::Path;

/// Bytes of a file of text that a user names; nothing that somebody has written by hand is near this.
const TEXT_BYTES_MAX: u64 = 4 << 20;

/// The content of a regular file of at most so many bytes; symbolic links are followed.
///
/// # Errors
///
/// What the system says; what it is where it is no regular file; `FileTooLarge`.
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
        let words = format!("it is no UTF-8: {}", error.utf8_error());
        io::Error::new(io::ErrorKind::InvalidData, words)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::mkfifoat;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_no_file_of_limited_size_is_refused_and_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        mkfifoat(CWD, path("fifo"), Mode::from_raw_mode(0o600)).unwrap();
        symlink("/dev/zero", path("link")).unwrap();
        std::fs::write(path("text"), "text").unwrap();
        File::create(path("large"))
            .unwrap()
            .set_len(TEXT_BYTES_MAX + 1)
            .unwrap();
        std::fs::write(path("binary"), [0xff]).unwrap();
        let check = |name: &str, expected: &str| {
            let error = given_text(&path(name)).unwrap_err().to_string();
            assert!(error.contains(expected), "{name}: {error}");
        };
        check("fifo", "a FIFO");
        check("link", "a device");
        check("large", "larger than");
        check("binary", "no UTF-8");
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
}
