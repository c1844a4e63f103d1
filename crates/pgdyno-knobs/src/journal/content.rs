//! What a journal holds: its lines, and how they are read from the journal and from its copy.

use super::line::{self, Line};
use super::scope::Scope;
use super::{JournalError, now_unix_ms};
use crate::undo::{SavedState, ServerRef, UndoUnit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Written by this version. Format 1 had kernel files and parameters of servers alone, and nothing
/// was kept; 2 had no undo units of several files that set others again, and of swap files their
/// size alone; 3 had lines without numbers and checksums; 4 did not count them; 5 did not say when
/// a server is stopped.
const FORMAT: u32 = 6;
const OLDEST_FORMAT: u32 = 1;
/// The first whose lines prove themselves.
const SEALED_FORMAT: u32 = 4;
/// The first whose second line counts the others.
const COUNTED_FORMAT: u32 = 5;
/// A journal of changes never gets near so many lines.
pub(super) const LINES_MAX: usize = 1 << 20;

/// Why changes are made, and on what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Purpose {
    /// Number of the journal's format, which fixes how lines are sealed and counted.
    pub format: u32,
    /// Process that made the changes.
    pub pid: u32,
    /// Time at which the journal was begun, since 1970.
    pub started_unix_ms: u64,
    /// Boot id of the machine then: another one means that the kernel has forgotten what was set.
    pub boot_id: String,
    /// What for, for people: "run demo".
    pub purpose: String,
    /// Server whose settings are changed; `None` where only the host's are.
    pub server: Option<ServerRef>,
    /// Whether the server ran before; what was stopped is stopped again.
    pub server_was_running: bool,
    /// User of this machine who made the changes; `None` in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Key that no other server of this host has; `None` without a server, and in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_key: Option<String>,
}

impl Purpose {
    /// A purpose of this process, now.
    pub fn now(
        boot_id: String,
        purpose: String,
        server: Option<ServerRef>,
        server_was_running: bool,
    ) -> Purpose {
        Purpose {
            format: FORMAT,
            pid: std::process::id(),
            started_unix_ms: now_unix_ms(),
            boot_id,
            purpose,
            server,
            server_was_running,
            by: None,
            server_key: None,
        }
    }

    /// What is left to say where the first line is lost.
    fn lost(path: &Path) -> Purpose {
        let id = id_of(path);
        let (started, pid) = id.split_once('-').unwrap_or_default();
        Purpose {
            format: FORMAT,
            pid: pid.parse().unwrap_or(0),
            started_unix_ms: started.parse().unwrap_or(0),
            boot_id: String::new(),
            purpose: "unknown: the first line of its journal is lost".to_owned(),
            server: None,
            server_was_running: true,
            by: None,
            server_key: None,
        }
    }

    pub(super) fn is_sealed(&self) -> bool {
        self.format >= SEALED_FORMAT
    }

    pub(super) fn is_counted(&self) -> bool {
        self.format >= COUNTED_FORMAT
    }
}

/// How long changes stay that their process does not restore itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Keep {
    /// Until `pgdyno restore`.
    UntilRestored,
    /// Until that instant, unless `pgdyno confirm` comes before.
    UnlessConfirmed {
        /// Milliseconds since 1970.
        until_unix_ms: u64,
    },
}

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Entry {
    /// First line: whose journal it is.
    Open(Purpose),
    /// A change is about to be made.
    Intent {
        /// Id of the knob.
        knob: String,
        /// Files or parameters that are saved and written back together.
        #[serde(rename = "cell")]
        unit: UndoUnit,
        /// State of the undo unit before the write.
        before: SavedState,
        /// What is about to be written: a path's new content, or a parameter's new value (`None`
        /// removes it).
        writing: Option<String>,
        /// Which of the undo unit's files that is.
        #[serde(default, skip_serializing_if = "is_first")]
        file: usize,
        /// Whether an earlier line of this journal has the same undo unit: then the state before is
        /// one of ours.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        again: bool,
    },
    /// The change of the last `Intent` was made.
    Done {
        /// State of the undo unit after the write.
        after: SavedState,
    },
    /// The server, which is not a sandbox, is about to be stopped.
    Stopping,
    /// The server was started again.
    Started,
    /// The changes stay when their process ends.
    Kept(Keep),
    /// The changes stay until `pgdyno restore`.
    Confirmed,
    /// Everything was restored: the journal is over.
    Closed,
    /// A line that cannot be read any more; never written.
    #[serde(skip)]
    Lost,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_first(file: &usize) -> bool {
    *file == 0
}

/// All readable lines of a journal, with the damage of the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// First line: whose journal it is.
    pub purpose: Purpose,
    /// Lines after the first one, in order.
    pub entries: Vec<Entry>,
    /// Length of the readable part in bytes.
    pub whole_bytes: u64,
    /// What is wrong with it, a sentence each; empty for a journal that is whole.
    pub damage: Vec<String>,
}

impl Content {
    /// How long the changes stay; `None` where their process did not come to say so, and was
    /// killed.
    pub fn kept(&self) -> Option<Keep> {
        self.entries.iter().rev().find_map(|entry| match entry {
            Entry::Confirmed => Some(Keep::UntilRestored),
            Entry::Kept(keep) => Some(*keep),
            _ => None,
        })
    }

    /// Whether the server was stopped, and not started again.
    pub(crate) fn has_stopped_server(&self) -> bool {
        let last = self.entries.iter().rev().find_map(|entry| match entry {
            Entry::Stopping => Some(true),
            Entry::Started => Some(false),
            _ => None,
        });
        last == Some(true)
    }

    /// Whether the changes are to stay beyond this instant.
    pub fn stays_at(&self, now_unix_ms: u64) -> bool {
        match self.kept() {
            Some(Keep::UntilRestored) => true,
            Some(Keep::UnlessConfirmed { until_unix_ms }) => now_unix_ms < until_unix_ms,
            None => false,
        }
    }

    /// Whether there is nothing in it to be restored any more: it is whole and closed.
    pub(super) fn is_over(&self) -> bool {
        self.damage.is_empty() && self.entries.last() == Some(&Entry::Closed)
    }

    /// What its changes are of.
    pub fn scope(&self) -> Scope {
        let units = self.entries.iter().filter_map(|entry| match entry {
            Entry::Intent { unit, .. } => Some(unit),
            _ => None,
        });
        let (of_host, of_server): (Vec<&UndoUnit>, Vec<&UndoUnit>) =
            units.partition(|unit| unit.is_of_host());
        let data = of_server
            .iter()
            .find_map(|unit| unit.data())
            .map(server_key_of_data);
        let named = self.purpose.server.as_ref().map(ServerRef::key);
        Scope {
            host: !of_host.is_empty(),
            server: self.purpose.server_key.clone().or(data).or(named),
        }
    }
}

/// What identifies a server whose files are on this host.
pub(crate) fn server_key_of_data(data: &Path) -> String {
    let real = data.canonicalize().unwrap_or_else(|_| data.to_owned());
    format!("in {}", real.display())
}

/// What identifies a journal, by the name of its file or of its copy.
pub(super) fn id_of(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut parts = stem.splitn(3, '-');
    match (parts.next(), parts.next()) {
        (Some(started), Some(pid)) => format!("{started}-{pid}"),
        _ => stem.into_owned(),
    }
}

/// Reads the content of a journal without its copy; the name of `path` is a part of what its
/// checksums are of.
///
/// # Errors
///
/// It is of a later pgdyno. What is damaged is not an error: [`Content::damage`] says it.
pub fn parse(bytes: &[u8], path: &Path) -> Result<Content, JournalError> {
    assemble(Some(bytes), None, path)
}

/// The content by a journal (`None`: gone) and by its copy.
pub(crate) fn assemble(
    journal: Option<&[u8]>,
    copy: Option<&[u8]>,
    path: &Path,
) -> Result<Content, JournalError> {
    let id = id_of(path);
    let first = journal
        .unwrap_or_default()
        .split_inclusive(|&byte| byte == b'\n')
        .next();
    let first = first.and_then(|line| line.strip_suffix(b"\n"));
    let format = first.and_then(|line| format_in(line::json_of(line)));
    match (format, copy) {
        (Some(found), None) if found > FORMAT => Err(JournalError::Line {
            path: path.to_owned(),
            line: 1,
            reason: format!("it has format {found}; this pgdyno reads {OLDEST_FORMAT} to {FORMAT}"),
        }),
        (Some(OLDEST_FORMAT..SEALED_FORMAT), None)
            if first.is_some_and(|line| matches!(line::read(&id, line), Line::Bare(_))) =>
        {
            Ok(of_bare_lines(journal.unwrap_or_default(), path))
        }
        _ => Ok(of_sealed_lines(&id, journal, copy, path)),
    }
}

fn format_in(json: &[u8]) -> Option<u32> {
    let value: serde_json::Value = serde_json::from_slice(json).ok()?;
    u32::try_from(value.get("open")?.get("format")?.as_u64()?).ok()
}

/// A journal of an older format, up to its first line that cannot be read. One that is the last is
/// a change that was never made, for the write comes after the line is on disk.
fn of_bare_lines(bytes: &[u8], path: &Path) -> Content {
    let mut content = Content {
        purpose: Purpose::lost(path),
        entries: Vec::new(),
        whole_bytes: 0,
        damage: Vec::new(),
    };
    let mut at = 0;
    for (index, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let is_last = at + line.len() == bytes.len();
        let whole = line.strip_suffix(b"\n");
        match (index, whole.and_then(|json| serde_json::from_slice(json).ok())) {
            (0, Some(Entry::Open(purpose))) => content.purpose = purpose,
            (1.., Some(entry)) if !matches!(entry, Entry::Open(_)) => content.entries.push(entry),
            (1.., None) if is_last => break,
            _ => {
                content.damage.push(format!(
                    "line {} cannot be read, and what it and the lines after it say is not known",
                    index + 1
                ));
                break;
            }
        }
        at += line.len();
        content.whole_bytes = at as u64;
    }
    content
}

/// A journal whose lines prove themselves; what is missing is looked for in the copy.
fn of_sealed_lines(id: &str, journal: Option<&[u8]>, copy: Option<&[u8]>, path: &Path) -> Content {
    let mut damage = Vec::new();
    let mut found: BTreeMap<usize, &str> = BTreeMap::new();
    let mut whole_bytes = 0;
    let bytes = journal.unwrap_or_default();
    let mut at = 0;
    let mut count = None;
    for (index, piece) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
        at += piece.len();
        // Behind the first line; anywhere else it is damage.
        if let (1, Some(line)) = (index, piece.strip_suffix(b"\n"))
            && line::is_count(line)
        {
            count = line::counted(id, line).filter(|&count| count <= LINES_MAX);
            if damage.is_empty() {
                whole_bytes = at as u64;
            }
            continue;
        }
        let line = piece
            .strip_suffix(b"\n")
            .map_or(Line::Damaged, |line| line::read(id, line));
        match line {
            Line::Proven { number, json } if number == found.len() + 1 => {
                found.insert(number, json);
            }
            Line::Proven { number, json } => {
                damage.push(format!("line {} has the number {number}", index + 1));
                found.entry(number).or_insert(json);
            }
            // Torn when the machine or the process went down, or blocks of zeros after it.
            Line::Bare(_) | Line::Damaged if at == bytes.len() => break,
            Line::Bare(_) | Line::Damaged => damage.push(format!("line {} is damaged", index + 1)),
        }
        if damage.is_empty() {
            whole_bytes = at as u64;
        }
    }
    let in_journal = found.len();
    for piece in copy.unwrap_or_default().split_inclusive(|&byte| byte == b'\n') {
        if let Some(line) = piece.strip_suffix(b"\n")
            && let Line::Proven { number, json } = line::read(id, line)
        {
            found.entry(number).or_insert(json);
        }
    }
    let from_copy = found.len() - in_journal;
    // Lines are counted once they are on disk, and what they announce is done after that: fewer
    // than were counted are cut off.
    let in_files = found.last_key_value().map_or(0, |(number, _)| *number);
    let last = in_files.max(count.unwrap_or(0));
    let mut entries = Vec::new();
    let mut purpose = None;
    for number in 1..=last {
        let entry = found
            .get(&number)
            .and_then(|json| serde_json::from_str(json).ok());
        match (number, entry) {
            (1, Some(Entry::Open(opened))) => purpose = Some(opened),
            (1, _) => damage.push(
                "its first line is lost: what for it was, and on which server, is not known".to_owned(),
            ),
            (_, Some(entry)) if !matches!(entry, Entry::Open(_)) => entries.push(entry),
            _ => {
                damage.push(format!("entry {number} is lost: what it changed is not known"));
                entries.push(Entry::Lost);
            }
        }
    }
    let is_counted = purpose.as_ref().is_some_and(Purpose::is_counted);
    if is_counted && journal.is_some() && count.is_none() {
        damage.push("the count of its lines is lost: it may have had more than are left".to_owned());
    }
    let is_emptied = journal.is_some_and(<[u8]>::is_empty);
    match (journal, from_copy) {
        // Its process died before it could change anything.
        (None, _) if entries.iter().all(|entry| matches!(entry, Entry::Closed)) => damage.clear(),
        (None, _) => {
            damage.push("the file is gone, or is not a journal: its copy in the registry is used".to_owned())
        }
        (Some(_), 1..) => {
            let what = if is_emptied {
                "it is empty"
            } else {
                "it is cut off or damaged"
            };
            damage.push(format!(
                "{what}: {from_copy} of its {last} lines are taken from its copy in the registry"
            ));
        }
        // It gets its name only when its first line is whole.
        (Some(_), 0) if last == 0 => {
            let what = if is_emptied {
                "it is empty"
            } else {
                "no line of it can be read"
            };
            damage.push(format!("{what}: what it changed is not known"));
        }
        (Some(_), 0) => {}
    }
    Content {
        purpose: purpose.unwrap_or_else(|| Purpose::lost(path)),
        entries,
        whole_bytes,
        damage,
    }
}
