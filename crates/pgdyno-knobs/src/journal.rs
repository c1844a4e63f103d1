//! The journal: what was there before each change, durable before the change is made.
//!
//! A JSON value per line with its number and a checksum: `open` once, then `intent` before and
//! `done` after each write; `kept` when the changes are to stay beyond their process, `confirmed`
//! when they stay for good, `closed` when all is restored. A torn last line is a change that was
//! never made, for the write comes after the line is on disk and counted: the second line of the
//! file has the number of lines, so that one which has lost some shows it. Each line is in the
//! registry's copy too, before the write: what a damaged or removed journal has lost is read from
//! there.

mod content;
mod line;
mod notice;
mod registry;
mod scope;
mod trust;
mod turn;

pub(crate) use content::assemble;
pub use content::{Content, Keep, Purpose, parse};
pub(crate) use content::{Entry, server_key_of_data};
pub use notice::ChangedByOther;
pub(crate) use notice::fuzzed_notice;
pub(crate) use registry::fuzzed_header;
pub use registry::{Journals, Listed, OtherUser};
pub use scope::Scope;
pub use turn::{Patience, ScopeLock};

use crate::undo::{AUTO_CONF, SavedState, UndoUnit};
use notice::Notice;
use pgdyno_host::LockedFile;
use registry::{Found, damaged_name, is_copy};
use rustix::fs::OFlags;
use scope::Part;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Why a journal cannot be read, written or taken over.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A system call on the file or its directory failed.
    #[error("the journal {path} could not be {action}: {source}")]
    Io {
        /// The file or its directory.
        path: PathBuf,
        /// What was tried, as a participle: "written", "read".
        action: &'static str,
        /// The error of the system call.
        source: io::Error,
    },
    /// A line that is not the last cannot be read.
    #[error("the journal {path}, line {line}, cannot be read: {reason}")]
    Line {
        /// Path of the journal.
        path: PathBuf,
        /// Line of the fault, from 1.
        line: usize,
        /// The error of the parser, as text.
        reason: String,
    },
    /// Another process changes the same host or the same server.
    #[error("{holder} is changing settings of {what}; one process at a time may")]
    Busy {
        /// Process that makes the changes, and its purpose, as text.
        holder: String,
        /// This host, or which server.
        what: String,
    },
    /// A file that somebody else could have put there.
    #[error("{path} is not trusted as a journal: {reason}")]
    NotTrusted {
        /// The file or its directory.
        path: PathBuf,
        /// What was found and what was expected.
        reason: String,
    },
    /// Not whole, so that nothing is written behind what is left.
    #[error("the journal {path} is damaged: {}", damage.join("; "))]
    Damaged {
        /// Path of the journal.
        path: PathBuf,
        /// Faults that were found, a sentence each.
        damage: Vec<String>,
    },
    /// It has so many changes that one more could not be read.
    #[error("the journal {path} is full: one more change could not be read")]
    Full {
        /// Path of the journal.
        path: PathBuf,
    },
    /// Values that a killed process has left would be taken for those from before.
    #[error(
        "{} was killed, and what it has changed is not restored ({path})",
        holder(Some(purpose))
    )]
    LeftBehind {
        /// Path of the killed process's journal.
        path: PathBuf,
        /// Who has made the changes and what for.
        purpose: Box<Purpose>,
    },
    /// What another user has set would be taken for the original state.
    #[error("{knob} is changed by {user}'s pgdyno since {since}; restore that first")]
    ChangedByOther {
        /// Id of the knob that the other user has changed.
        knob: String,
        /// Login name of the other user.
        user: String,
        /// When that change began, in UTC.
        since: String,
    },
    /// The process that made the changes is still running.
    #[error("the changes in {path} belong to {}, which is still running", holder(purpose.as_deref()))]
    Held {
        /// Path of the journal.
        path: PathBuf,
        /// Process and purpose; `None` where its first line is not written yet.
        purpose: Option<Box<Purpose>>,
    },
}

impl JournalError {
    /// What mends it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            JournalError::Busy { .. } => {
                Some("`pgdyno status` shows what it changes; run this again when it has ended")
            }
            JournalError::Full { .. } => Some(
                "its changes are restored at the end; then run the rest (`pgdyno resume`), which has a new journal",
            ),
            JournalError::ChangedByOther { .. } => {
                Some("`pgdyno status` shows the change; `pgdyno restore` as that user restores it")
            }
            _ => None,
        }
    }
}

/// An open journal, locked as long as it lives.
#[derive(Debug)]
pub struct Journal {
    file: Written,
    copy: Option<Written>,
    /// What its checksums are of.
    id: String,
    /// Whether its lines have numbers and checksums: older formats have not.
    is_sealed: bool,
    lines: usize,
    /// Those that its lines have so far.
    units: Vec<UndoUnit>,
    damage: Vec<String>,
    journals: Journals,
    /// What other users are shown of it; `None` in one that is restored.
    notice: Option<Notice>,
    /// What identifies the server, and who owns its data.
    server: (Vec<String>, Option<u32>),
    /// Held by the process that makes changes.
    _scope: Option<ScopeLock>,
}

/// A file that is written line by line.
#[derive(Debug)]
struct Written {
    file: LockedFile,
    path: PathBuf,
    /// Length of the whole lines.
    whole_bytes: u64,
    /// Where the line is that counts the others, if it has one.
    count_at: Option<u64>,
}

impl Written {
    /// Writes a line and, where that is wanted, waits until it is on disk.
    fn append(&mut self, line: &str, durably: bool) -> Result<(), JournalError> {
        let written = self.file.write_all_at(line.as_bytes(), self.whole_bytes);
        let written = written.and_then(|()| match durably {
            true => self.file.sync_data(),
            false => Ok(()),
        });
        if let Err(source) = written {
            self.cut();
            return Err(io_error(&self.path, "written")(source));
        }
        self.whole_bytes += line.len() as u64;
        Ok(())
    }

    /// Counts the lines that are on disk, before what the last one announces is done. Not waited
    /// for after each: until a power loss, which the kernel's settings do not outlive, everybody
    /// reads what was written.
    fn count(&self, id: &str, lines: usize, durably: bool) -> Result<(), JournalError> {
        let Some(count_at) = self.count_at else {
            return Ok(());
        };
        let (at, slot) = line::count_update(id, lines);
        let written = self.file.write_all_at(slot.as_bytes(), count_at + at);
        written
            .and_then(|()| match durably {
                true => self.file.sync_data(),
                false => Ok(()),
            })
            .map_err(io_error(&self.path, "written"))
    }

    /// A full disk may have taken a part of a line: the next one must not be behind it.
    fn cut(&mut self) {
        let _ = self
            .file
            .set_len(self.whole_bytes)
            .and_then(|()| self.file.sync_data());
    }
}

impl Journal {
    /// Begins a journal for changes of a scope and makes its existence durable.
    ///
    /// Another process that changes the same host or server is waited for as long as `patience`
    /// says.
    ///
    /// # Errors
    ///
    /// [`JournalError::LeftBehind`] where a killed process has left changes of this scope, by any
    /// home of this user.
    pub fn begin(
        journals: &Journals,
        mut purpose: Purpose,
        scope: &Scope,
        patience: &mut Patience<'_>,
    ) -> Result<Journal, JournalError> {
        let directory = journals.directory.as_path();
        // The server's file is kept in it whole, which can hold secrets of others.
        pgdyno_host::make_directory(directory, 0o700).map_err(io_error(directory, "made"))?;
        trust::directory(directory)?;
        let lock = journals.lock(scope, &purpose.purpose, patience)?;
        let mut instant = Patience {
            limit: LISTED_WITHIN,
            on_wait: None,
        };
        let _list = journals.lock_part(Part::List, &holder(Some(&purpose)), &mut instant)?;
        journals.remove_stale_notices()?;
        let listed = journals.listed()?;
        for other in &listed {
            if let Ok(Some((content, false))) = journals.look(&other.path)
                && !content.stays_at(now_unix_ms())
                && content.scope().meets(scope)
                && content
                    .entries
                    .iter()
                    .any(|entry| matches!(entry, Entry::Intent { .. }))
            {
                return Err(JournalError::LeftBehind {
                    path: other.path.clone(),
                    purpose: Box::new(content.purpose),
                });
            }
        }
        // Names are the order in which changes were made, however long this has waited and whatever
        // the clock does.
        let newest = listed.iter().filter_map(|other| began(&other.path)).max();
        purpose.started_unix_ms = now_unix_ms().max(newest.map_or(0, |newest| newest + 1));
        let id = format!("{}-{}", purpose.started_unix_ms, purpose.pid);
        let path = directory.join(format!("{id}.{}", registry::ENDING));
        // It gets its name when it is locked and its first line is whole: nobody sees one of
        // nobody.
        let beginning = directory.join("beginning");
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0))
            .open(&beginning)
            .map_err(io_error(&path, "made"))?;
        file.set_len(0).map_err(io_error(&path, "made"))?;
        file.try_lock().map_err(|e| io_error(&path, "locked")(e.into()))?;
        let (copy_path, copy, head) = journals.begin_copy(&path)?;
        copy.try_lock()
            .map_err(|e| io_error(&copy_path, "locked")(e.into()))?;
        let written = |file: File, path: PathBuf| Written {
            file: LockedFile::held(file),
            path,
            whole_bytes: 0,
            count_at: None,
        };
        let mut journal = Journal {
            file: written(file, path),
            copy: Some(written(copy, copy_path)),
            id,
            is_sealed: true,
            lines: 0,
            units: Vec::new(),
            damage: Vec::new(),
            journals: journals.clone(),
            notice: Some(Notice::new(purpose.started_unix_ms, purpose.pid)),
            server: (Vec::new(), None),
            _scope: Some(lock),
        };
        let begun = journal.begin_files(&head, Entry::Open(purpose), &beginning);
        if begun.is_err()
            && let Some(copy) = &journal.copy
        {
            let _ = fs::remove_file(&copy.path);
        }
        begun?;
        sync_directory(directory)?;
        journals.sync_registry()?;
        Ok(journal)
    }

    fn begin_files(&mut self, head: &str, open: Entry, beginning: &Path) -> Result<(), JournalError> {
        if let Some(copy) = &mut self.copy {
            copy.append(head, false)?;
        }
        self.append(&open)?;
        let count_at = self.file.whole_bytes;
        self.file.append(&line::count_line(&self.id, self.lines), true)?;
        self.file.count_at = Some(count_at);
        fs::rename(beginning, &self.file.path).map_err(io_error(&self.file.path, "made"))
    }

    /// Path of the journal's file.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Says that the changes stay, and lets go of it.
    pub(crate) fn keep(mut self, keep: Keep) -> Result<PathBuf, JournalError> {
        self.append(&Entry::Kept(keep))?;
        Ok(self.file.path)
    }

    /// Says that the changes stay until somebody restores them.
    pub fn confirm(mut self) -> Result<(), JournalError> {
        self.append(&Entry::Confirmed)
    }

    /// Opens one that a dead process left, and cuts off a torn last line; a damaged one is left as
    /// it is. `None` where it is closed by now.
    pub fn reopen(journals: &Journals, path: &Path) -> Result<Option<(Journal, Content)>, JournalError> {
        let Some(found) = journals.found(path, OFlags::RDWR)? else {
            return Ok(None);
        };
        let Found { file, copy } = &found;
        let files = [Some(file), copy.as_ref().map(|(_, file)| file)];
        // Somebody who only looks has it for an instant.
        let deadline = Instant::now() + LOOKED_AT;
        let mut is_held = false;
        for file in files.into_iter().flatten() {
            is_held |= loop {
                match file.try_lock() {
                    Ok(()) => break false,
                    Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                        pgdyno_server::pause(LOOK_AGAIN)
                    }
                    Err(TryLockError::WouldBlock) => break true,
                    Err(TryLockError::Error(e)) => return Err(io_error(path, "locked")(e)),
                }
            };
        }
        if !is_held && !path.exists() {
            return Ok(None);
        }
        let content = found.content(path)?;
        if is_held {
            return Err(JournalError::Held {
                path: path.to_owned(),
                purpose: Some(Box::new(content.purpose)),
            });
        }
        let mut journal = Journal::reopened(journals, path, found, &content)?;
        if content.is_over() || is_copy(path) && content.damage.is_empty() {
            journal.remove()?;
            return Ok(None);
        }
        if content.damage.is_empty() {
            journal
                .file
                .file
                .set_len(content.whole_bytes)
                .map_err(io_error(path, "repaired"))?;
        }
        Ok(Some((journal, content)))
    }

    fn reopened(
        journals: &Journals,
        path: &Path,
        found: Found,
        content: &Content,
    ) -> Result<Journal, JournalError> {
        let mut copy = None;
        if let Some((path, file)) = found.copy {
            let bytes = trust::content(&path, &file)?;
            // What is behind its last whole line was torn.
            let whole = bytes
                .iter()
                .rposition(|&byte| byte == b'\n')
                .map_or(0, |at| at + 1);
            file.set_len(whole as u64).map_err(io_error(&path, "repaired"))?;
            copy = Some(Written {
                file: LockedFile::held(file),
                path,
                whole_bytes: whole as u64,
                count_at: None,
            });
        }
        let count_at = match content.purpose.is_counted() && !is_copy(path) {
            true => {
                let bytes = trust::content(path, &found.file)?;
                bytes
                    .iter()
                    .position(|&byte| byte == b'\n')
                    .map(|at| at as u64 + 1)
            }
            false => None,
        };
        Ok(Journal {
            file: Written {
                file: LockedFile::held(found.file),
                path: path.to_owned(),
                whole_bytes: content.whole_bytes,
                count_at,
            },
            copy,
            id: content::id_of(path),
            is_sealed: content.purpose.is_sealed(),
            lines: content.entries.len() + 1,
            units: Vec::new(),
            damage: content.damage.clone(),
            journals: journals.clone(),
            notice: None,
            server: (Vec::new(), None),
            _scope: None,
        })
    }

    /// All lines that it has so far.
    pub(crate) fn content(&self) -> Result<Content, JournalError> {
        let gone = || io_error(&self.file.path, "read")(io::ErrorKind::NotFound.into());
        let path = match &self.copy {
            Some(copy) if fs::symlink_metadata(&self.file.path).is_err() => &copy.path,
            _ => &self.file.path,
        };
        let found = self.journals.found(path, OFlags::RDONLY)?.ok_or_else(gone)?;
        found.content(path)
    }

    /// The entry that announces a change of an undo unit.
    pub(crate) fn intent(
        &self,
        knob: &str,
        (unit, file): (&UndoUnit, usize),
        before: SavedState,
        writing: Option<&str>,
    ) -> Entry {
        let again = self.units.contains(unit);
        Entry::Intent {
            knob: knob.to_owned(),
            unit: unit.clone(),
            before: if again { before.in_later_line() } else { before },
            writing: writing.map(str::to_owned),
            file,
            again,
        }
    }

    /// By what other users identify the server, and the owner of its data.
    pub(crate) fn of_server(&mut self, keys: Vec<String>, data_of: Option<u32>) {
        if let Some(notice) = &mut self.notice {
            notice.of_server(&keys);
        }
        self.server = (keys, data_of);
    }

    /// Shows other users that a knob is about to be changed, then looks whether one of them has
    /// changed it: of two that begin at once, one sees the other at least.
    fn announce(&mut self, knob: &str, unit: &UndoUnit) -> Result<(), JournalError> {
        // Data is not a setting, and the file as a whole is only written back.
        let is_setting = !matches!(
            unit,
            UndoUnit::Made { .. } | UndoUnit::Database { .. } | UndoUnit::Objects { .. }
        ) && knob != AUTO_CONF;
        let Some(notice) = self.notice.as_mut().filter(|_| is_setting) else {
            return Ok(());
        };
        if !notice.add(knob, unit) {
            return Ok(());
        }
        let path = &self.file.path;
        let server = || self.server.clone();
        let written = self.journals.write_notice(path, notice);
        let conflict = self.journals.conflict(knob, unit.is_of_host(), &server);
        let refused = written.and_then(|()| conflict.map_or(Ok(()), Err));
        if refused.is_err() {
            notice.remove(knob, unit);
            let _ = self.journals.write_notice(path, notice);
        }
        refused
    }

    /// Writes a line and waits until it is on disk, here and in the copy.
    pub(crate) fn append(&mut self, entry: &Entry) -> Result<(), JournalError> {
        if !self.damage.is_empty() {
            return Err(JournalError::Damaged {
                path: self.file.path.clone(),
                damage: self.damage.clone(),
            });
        }
        if let Entry::Intent { knob, unit, .. } = entry {
            self.announce(knob, unit)?;
        }
        let json = serde_json::to_string(entry).map_err(|e| JournalError::Line {
            path: self.file.path.clone(),
            line: self.lines + 1,
            reason: e.to_string(),
        })?;
        let line = match self.is_sealed {
            true => line::sealed(&self.id, self.lines + 1, &json),
            false => json + "\n",
        };
        // What is announced must be readable, and so must what comes after it. The file as a whole
        // is written back for a server that does not start.
        let is_full = self.lines + KEPT_FREE_LINES > content::LINES_MAX
            || self.file.whole_bytes + line.len() as u64 + KEPT_FREE_BYTES > trust::SIZE_MAX_BYTES;
        if is_full && matches!(entry, Entry::Intent { knob, .. } if knob != AUTO_CONF) {
            return Err(JournalError::Full {
                path: self.file.path.clone(),
            });
        }
        self.file.append(&line, true)?;
        if let Some(copy) = &mut self.copy {
            // Of a change that is lost in the copy alone, the journal knows.
            let durably = !matches!(entry, Entry::Done { .. });
            if let Err(error) = copy.append(&line, durably) {
                self.file.whole_bytes -= line.len() as u64;
                self.file.cut();
                return Err(error);
            }
        }
        self.lines += 1;
        let durably = !matches!(entry, Entry::Intent { .. } | Entry::Done { .. });
        self.file.count(&self.id, self.lines, durably)?;
        if let Entry::Intent { unit, .. } = entry
            && !self.units.contains(unit)
        {
            self.units.push(unit.clone());
        }
        Ok(())
    }

    /// Everything is as before: it has served its purpose. A damaged one is kept under another
    /// name, which is returned.
    pub(crate) fn close(mut self, content: &Content) -> Result<Option<PathBuf>, JournalError> {
        if content.damage.is_empty() {
            // On a full disk the removal alone does.
            let _ = self.append(&Entry::Closed);
            self.remove()?;
            return Ok(None);
        }
        self.journals.remove_notice(&self.file.path)?;
        let aside = damaged_name(&self.file.path);
        let path = &self.file.path;
        match fs::rename(path, &aside) {
            Ok(()) => self.remove_copy()?,
            // Gone: its copy is all that there is.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let Some(copy) = &self.copy else {
                    return Ok(None);
                };
                let aside = damaged_name(&copy.path);
                fs::rename(&copy.path, &aside).map_err(io_error(&copy.path, "kept"))?;
                return Ok(Some(aside));
            }
            Err(e) => return Err(io_error(path, "kept")(e)),
        }
        path.parent().map_or(Ok(()), sync_directory)?;
        Ok(Some(aside))
    }

    /// The notice first: what it names is restored. Then the copy: one without its journal would be
    /// taken for a journal that somebody has removed.
    fn remove(&mut self) -> Result<(), JournalError> {
        self.journals.remove_notice(&self.file.path)?;
        self.remove_copy()?;
        let path = &self.file.path;
        match fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(io_error(path, "removed")(e)),
            _ => {}
        }
        path.parent().map_or(Ok(()), sync_directory)
    }

    fn remove_copy(&self) -> Result<(), JournalError> {
        let Some(Written { path, .. }) = &self.copy else {
            return Ok(());
        };
        match fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(io_error(path, "removed")(e)),
            _ => path.parent().map_or(Ok(()), sync_directory),
        }
    }
}

fn holder(purpose: Option<&Purpose>) -> String {
    purpose.map_or_else(
        || "a process that begins just now".to_owned(),
        |purpose| format!("process {} ({})", purpose.pid, purpose.purpose),
    )
}

/// Room in a journal for what is written after its last change.
const KEPT_FREE_BYTES: u64 = 16 << 20;
/// Lines likewise.
const KEPT_FREE_LINES: usize = 1000;
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Another process that begins a journal has the list for an instant.
const LISTED_WITHIN: Duration = Duration::from_secs(30);
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

#[cfg(test)]
mod tests;
