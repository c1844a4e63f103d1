//! Files that are read at every tick, cheaply: they stay open where the machine is local, and one
//! buffer serves all.

use crate::access::{HostAccess, HostError};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// No file of /proc or /sys that is read here is near this; what is beyond it is cut.
const LONGEST_BYTES: usize = 16 << 20;
/// A first size for the buffer: most files fit.
const FIRST_BYTES: usize = 16 << 10;

/// What a file held when it was last read.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    length: usize,
    text: String,
}

impl Buffer {
    /// Reads an open file from its start. Files of /proc give a part at each call and are whole
    /// only at an empty one; but those that are made in one piece are whole at once (`at_once`),
    /// which spares the second call.
    fn fill(&mut self, file: &File, at_once: bool) -> io::Result<()> {
        self.length = 0;
        if self.bytes.is_empty() {
            self.bytes.resize(FIRST_BYTES, 0);
        }
        loop {
            if self.length == self.bytes.len() {
                if self.length >= LONGEST_BYTES {
                    return Ok(());
                }
                self.bytes.resize(self.length * 2, 0);
            }
            match file.read_at(&mut self.bytes[self.length..], self.length as u64) {
                Ok(0) => return Ok(()),
                Ok(n) => {
                    self.length += n;
                    if at_once && self.length < self.bytes.len() {
                        return Ok(());
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    fn as_text(&mut self) -> &str {
        let bytes = &self.bytes[..self.length];
        match str::from_utf8(bytes) {
            Ok(_) => {}
            Err(_) => {
                self.text = String::from_utf8_lossy(bytes).into_owned();
                return &self.text;
            }
        }
        // Checked again because a borrow that is returned in one arm lasts for both; some ns per
        // kB.
        str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

/// A file that is read again and again.
#[derive(Debug)]
pub(super) struct Kept {
    path: String,
    file: Option<File>,
    /// Whether it may stay open between two reads.
    stays: bool,
    /// Whether one call gives all of it.
    at_once: bool,
}

impl Kept {
    pub(super) fn new(path: impl Into<String>) -> Kept {
        Kept {
            path: path.into(),
            file: None,
            stays: true,
            at_once: false,
        }
    }

    /// A short file of a process, made in one piece by the kernel; `stays` where it may stay open
    /// between two reads, as not all processes' files can.
    pub(super) fn of_process(pid: u32, name: &str, stays: bool) -> Kept {
        Kept {
            stays,
            at_once: true,
            ..Kept::new(format!("/proc/{pid}/{name}"))
        }
    }

    /// One that is closed after each read.
    pub(super) fn passing(path: impl Into<String>) -> Kept {
        Kept {
            stays: false,
            ..Kept::new(path)
        }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The present content.
    pub(super) fn read<'a>(
        &mut self,
        host: &dyn HostAccess,
        buffer: &'a mut Buffer,
    ) -> Result<&'a str, HostError> {
        let file = match self.file.take() {
            Some(file) => file,
            None => match host.open(&self.path) {
                Some(file) => file?,
                None => {
                    buffer.text = host.read(&self.path)?;
                    return Ok(&buffer.text);
                }
            },
        };
        // A file whose read failed is opened again the next time: its group or device may have been
        // replaced.
        buffer
            .fill(&file, self.at_once)
            .map_err(|e| HostError::new(&self.path, "read", e))?;
        if self.stays {
            self.file = Some(file);
        }
        Ok(buffer.as_text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LocalHost;
    use std::fs;

    #[test]
    fn a_kept_file_gives_what_a_fresh_read_gives() {
        let host = LocalHost::new();
        let mut buffer = Buffer::default();
        let mut kept = Kept::new("/proc/version");
        for _ in 0..2 {
            assert_eq!(
                kept.read(&host, &mut buffer).unwrap(),
                host.read("/proc/version").unwrap()
            );
            assert!(kept.file.is_some());
        }
        // Longer than one call gives: it must be whole, and end as it should.
        let symbols = Kept::passing("/proc/vmstat")
            .read(&host, &mut buffer)
            .unwrap()
            .len();
        assert!(symbols > 1000);
    }

    #[test]
    fn a_tree_of_files_is_read_afresh_and_nothing_stays_open() {
        let dir = tempfile::tempdir().unwrap();
        let host = LocalHost::at(dir.path());
        let mut buffer = Buffer::default();
        let mut kept = Kept::new("/a");
        assert!(matches!(kept.read(&host, &mut buffer), Err(HostError::Missing { path }) if path == "/a"));
        fs::write(dir.path().join("a"), b"caf\xe9").unwrap();
        assert_eq!(kept.read(&host, &mut buffer).unwrap(), "caf\u{fffd}");
        assert!(kept.file.is_none());
    }

    #[test]
    fn a_process_that_is_gone_is_missing() {
        let host = LocalHost::new();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let mut kept = Kept::new(format!("/proc/{}/stat", child.id()));
        let mut buffer = Buffer::default();
        assert!(kept.read(&host, &mut buffer).is_ok());
        child.wait().unwrap();
        assert!(matches!(
            kept.read(&host, &mut buffer),
            Err(HostError::Missing { .. })
        ));
    }
}
