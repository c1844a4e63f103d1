//! The journal: what was there before each change, durable before the change is made.
//!
//! One JSON value per line: `open` once, then `intent` before and `done` after each write; `kept` when the changes are to
//! stay beyond their process, `confirmed` when they stay for good, `closed` when all is put back. A torn last line is a change that was never made, for the write comes after the line is on disk.

mod content;
mod turn;

pub(crate) use content::Entry;
pub use content::{Content, Keep, Purpose, parse};
pub use turn::{MachineLock, Patience};

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use turn::one_at_a_time;

/// A journal of changes never gets near this; reading stops there.
const SIZE_MAX_BYTES: u64 = 256 << 20;
const ENDING: &str = "journal";

/// Trouble with a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Files.
    #[error("the journal {path} could not be {action}: {source}")]
    Io {
        /// The file or its directory.
        path: PathBuf,
        /// "written", "read" and so on.
        action: &'static str,
        /// The system's words.
        source: io::Error,
    },
    /// A line that is not the last cannot be read.
    #[error("the journal {path}, line {line}, cannot be read: {reason}")]
    Line {
        /// The file.
        path: PathBuf,
        /// 1-based.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// Another process is turning knobs of this machine.
    #[error("{holder} is turning knobs on this machine; one at a time")]
    Busy {
        /// Process and purpose.
        holder: String,
    },
    /// Its process is alive.
    #[error("the changes in {path} belong to {}, which is still running", holder(purpose.as_deref()))]
    Held {
        /// The file.
        path: PathBuf,
        /// Who has made them and what for; `None` where its first line is not written yet.
        purpose: Option<Box<Purpose>>,
    },
}

/// An open journal, locked as long as it lives.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    /// Length of the whole lines.
    whole_bytes: u64,
    /// Held by the process that makes changes, so that there is one at a time on a machine.
    _machine: Option<File>,
}

impl Journal {
    /// Begins a journal in `directory` and makes its existence durable.
    ///
    /// Another process that turns knobs of this machine is waited for as long as `patience` says.
    pub fn begin(
        directory: &Path,
        mut purpose: Purpose,
        patience: &mut Patience<'_>,
    ) -> Result<Journal, JournalError> {
        // The server's file is kept in it whole, which can hold secrets of others.
        pgdyno_host::make_directory(directory, 0o700).map_err(io_error(directory, "made"))?;
        let machine = one_at_a_time(directory, &holder(Some(&purpose)), patience)?;
        // Names are the order in which changes were made, however long this has waited and whatever the clock does.
        let newest = stale_journals(directory)?
            .iter()
            .filter_map(|path| began(path))
            .max();
        purpose.started_unix_ms = now_unix_ms().max(newest.map_or(0, |newest| newest + 1));
        let path = directory.join(format!("{}-{}.{ENDING}", purpose.started_unix_ms, purpose.pid));
        // It gets its name when it is locked and its first line is whole: nobody sees one of nobody.
        let beginning = directory.join("beginning");
        let file = File::options()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&beginning)
            .map_err(io_error(&path, "made"))?;
        file.set_len(0).map_err(io_error(&path, "made"))?;
        file.try_lock().map_err(|e| io_error(&path, "locked")(e.into()))?;
        let mut journal = Journal {
            file,
            path,
            whole_bytes: 0,
            _machine: Some(machine),
        };
        journal.append(&Entry::Open(purpose))?;
        fs::rename(&beginning, &journal.path).map_err(io_error(&journal.path, "made"))?;
        sync_directory(directory)?;
        Ok(journal)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Says that the changes stay, and lets go of it.
    pub(crate) fn keep(mut self, keep: Keep) -> Result<PathBuf, JournalError> {
        self.append(&Entry::Kept(keep))?;
        Ok(self.path)
    }

    /// Says that the changes stay until somebody restores them.
    pub fn confirm(mut self) -> Result<(), JournalError> {
        self.append(&Entry::Confirmed)
    }

    /// Opens one that a dead process left, and cuts off a torn last line. One without a whole first line is removed
    /// and `None`: its process died before it could change anything.
    pub fn reopen(path: &Path) -> Result<Option<(Journal, Content)>, JournalError> {
        let mut file = match File::options().read(true).append(true).open(path) {
            Ok(file) => file,
            // Closed by somebody else meanwhile.
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(io_error(path, "opened")(e)),
        };
        // Somebody who only looks has it for an instant.
        let deadline = Instant::now() + LOOKED_AT;
        let held = loop {
            match file.try_lock() {
                Ok(()) => break false,
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    pgdyno_server::pause(LOOK_AGAIN)
                }
                Err(TryLockError::WouldBlock) => break true,
                Err(TryLockError::Error(e)) => return Err(io_error(path, "locked")(e)),
            }
        };
        if !held && !path.exists() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        (&mut file)
            .take(SIZE_MAX_BYTES)
            .read_to_end(&mut bytes)
            .map_err(io_error(path, "read"))?;
        let content = parse(&bytes, path)?;
        if held {
            return Err(JournalError::Held {
                path: path.to_owned(),
                purpose: content.map(|content| Box::new(content.purpose)),
            });
        }
        let Some(content) = content else {
            fs::remove_file(path).map_err(io_error(path, "removed"))?;
            return Ok(None);
        };
        file.set_len(content.whole_bytes)
            .map_err(io_error(path, "repaired"))?;
        file.seek(SeekFrom::End(0)).map_err(io_error(path, "repaired"))?;
        let journal = Journal {
            file,
            path: path.to_owned(),
            whole_bytes: content.whole_bytes,
            _machine: None,
        };
        Ok(Some((journal, content)))
    }

    /// What one holds, and whether its process lives; nothing is locked or changed. `None` where it is gone or empty.
    pub fn look(path: &Path) -> Result<Option<(Content, bool)>, JournalError> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(io_error(path, "read")(e)),
        };
        let lives = File::open(path)
            .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)));
        Ok(parse(&bytes, path)?.map(|content| (content, lives)))
    }

    /// What it holds so far.
    pub(crate) fn content(&self) -> Result<Content, JournalError> {
        let bytes = fs::read(&self.path).map_err(io_error(&self.path, "read"))?;
        parse(&bytes, &self.path)?.ok_or_else(|| JournalError::Line {
            path: self.path.clone(),
            line: 1,
            reason: "it is empty".into(),
        })
    }

    /// Writes a line and waits until it is on disk.
    pub(crate) fn append(&mut self, entry: &Entry) -> Result<(), JournalError> {
        let mut line = serde_json::to_vec(entry).map_err(|e| JournalError::Line {
            path: self.path.clone(),
            line: 0,
            reason: e.to_string(),
        })?;
        line.push(b'\n');
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        if let Err(source) = written {
            // A full disk may have taken a part of the line: the next one must not stand behind it.
            let _ = self
                .file
                .set_len(self.whole_bytes)
                .and_then(|()| self.file.sync_data());
            return Err(io_error(&self.path, "written")(source));
        }
        self.whole_bytes += line.len() as u64;
        Ok(())
    }

    /// Everything is as before: it has served its purpose.
    pub(crate) fn close(mut self) -> Result<(), JournalError> {
        // On a full disk the removal alone does.
        let _ = self.append(&Entry::Closed);
        fs::remove_file(&self.path).map_err(io_error(&self.path, "removed"))?;
        self.path.parent().map_or(Ok(()), sync_directory)
    }
}

fn holder(purpose: Option<&Purpose>) -> String {
    purpose.map_or_else(
        || "a process that begins just now".to_owned(),
        |purpose| format!("process {} ({})", purpose.pid, purpose.purpose),
    )
}

const LOOK_AGAIN: Duration = Duration::from_millis(100);
const LOOKED_AT: Duration = Duration::from_secs(1);

fn now_unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// When a journal was begun, by its name.
fn began(path: &Path) -> Option<u64> {
    path.file_stem()?.to_str()?.split('-').next()?.parse().ok()
}

fn sync_directory(directory: &Path) -> Result<(), JournalError> {
    File::open(directory)
        .and_then(|d| d.sync_all())
        .map_err(io_error(directory, "made durable"))
}

fn io_error(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> JournalError {
    let path = path.to_owned();
    move |source| JournalError::Io { path, action, source }
}

/// Journals in a directory that are not closed, oldest first.
pub fn stale_journals(directory: &Path) -> Result<Vec<PathBuf>, JournalError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(io_error(directory, "read")(e)),
    };
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == ENDING))
        .collect();
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Captured, Cell};
    use proptest::prelude::*;

    fn intent(value: &str) -> Entry {
        Entry::Intent {
            knob: "jit".into(),
            cell: Cell::Parameter { name: "jit".into() },
            before: Captured::Parameter(None),
            writing: Some(value.into()),
            file: 0,
        }
    }

    fn begin(directory: &Path) -> Journal {
        let purpose = Purpose::now("boot".into(), "test".into(), None, true);
        Journal::begin(directory, purpose, &mut Patience::none()).unwrap()
    }

    #[test]
    fn what_is_written_is_read_and_a_torn_end_at_any_byte_loses_only_the_last_line() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = begin(dir.path());
        journal.append(&intent("on")).unwrap();
        journal.append(&intent("off")).unwrap();
        let path = journal.path.clone();
        let bytes = fs::read(&path).unwrap();
        let ends: Vec<usize> = bytes
            .iter()
            .enumerate()
            .filter(|(_, b)| **b == b'\n')
            .map(|(i, _)| i + 1)
            .collect();
        for cut in 0..=bytes.len() {
            let whole = ends.iter().filter(|&&end| end <= cut).count();
            let content = parse(&bytes[..cut], &path).unwrap();
            assert_eq!(
                content.map(|c| c.entries.len() + 1),
                (whole > 0).then_some(whole),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn a_living_process_keeps_its_journal_and_a_dead_ones_is_repaired() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = begin(dir.path());
        journal.append(&intent("on")).unwrap();
        let path = journal.path.clone();
        assert!(matches!(Journal::reopen(&path), Err(JournalError::Held { .. })));
        drop(journal);
        let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(&path).unwrap());
        assert_eq!(mode & 0o077, 0, "it may hold secrets");
        File::options()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"{\"intent\":{\"kn")
            .unwrap();
        let (journal, content) = Journal::reopen(&path).unwrap().unwrap();
        assert_eq!(content.entries, [intent("on")]);
        assert_eq!(stale_journals(dir.path()).unwrap(), std::slice::from_ref(&path));
        journal.close().unwrap();
        assert!(stale_journals(dir.path()).unwrap().is_empty());
        assert!(!path.exists());
    }

    #[test]
    fn one_at_a_time_turns_knobs() {
        let dir = tempfile::tempdir().unwrap();
        let first = begin(dir.path());
        let purpose = Purpose::now("boot".into(), "b".into(), None, true);
        let second = Journal::begin(dir.path(), purpose, &mut Patience::none());
        let error = second.unwrap_err().to_string();
        assert!(error.contains("(test)"), "{error}");
        first.close().unwrap();
        begin(dir.path());
    }

    #[test]
    fn a_broken_line_in_the_middle_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let journal = begin(dir.path());
        let mut bytes = fs::read(&journal.path).unwrap();
        bytes.extend_from_slice(b"nonsense\n\"closed\"\n");
        let error = parse(&bytes, &journal.path).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes, Path::new("x"));
        }
    }
}
