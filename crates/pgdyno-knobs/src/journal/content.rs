//! What a journal holds: its lines, and how they are read.

use super::{JournalError, now_unix_ms};
use crate::cell::{Captured, Cell, ServerRef};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Written by this version. Format 1 had kernel files and parameters of servers alone, and nothing was kept; 2 had no cells of several
/// files that set others anew, and of swap files their size alone.
const FORMAT: u32 = 3;
const OLDEST_FORMAT: u32 = 1;

/// Why changes are made, and on what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Purpose {
    /// Format of the journal.
    pub format: u32,
    /// Process that made the changes.
    pub pid: u32,
    /// When it began.
    pub started_unix_ms: u64,
    /// Boot id of the machine then: another one means that the kernel has forgotten what was set.
    pub boot_id: String,
    /// What for, for people: "run demo".
    pub purpose: String,
    /// The server concerned.
    pub server: Option<ServerRef>,
    /// Whether it was running.
    pub server_was_running: bool,
    /// Who did it: a user of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
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
        }
    }
}

/// How long changes stay that their process does not put back itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Keep {
    /// Until somebody restores them.
    UntilRestored,
    /// Until this instant, unless somebody confirms them before.
    UnlessConfirmed {
        /// Milliseconds since 1970.
        until_unix_ms: u64,
    },
}

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Entry {
    /// The first line.
    Open(Purpose),
    /// A change is about to be made.
    Intent {
        /// Knob.
        knob: String,
        /// What is saved with it.
        cell: Cell,
        /// The state before.
        before: Captured,
        /// What is about to be written: a path's new content, or a parameter's new value (`None` removes it).
        writing: Option<String>,
        /// Which of the cell's files that is.
        #[serde(default, skip_serializing_if = "is_first")]
        file: usize,
    },
    /// The change was made.
    Done {
        /// The state after.
        after: Captured,
    },
    /// The changes stay when their process ends.
    Kept(Keep),
    /// They stay until somebody restores them.
    Confirmed,
    /// Everything was put back.
    Closed,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_first(file: &usize) -> bool {
    *file == 0
}

/// What a journal holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// The first line.
    pub purpose: Purpose,
    /// The lines after it.
    pub entries: Vec<Entry>,
    /// Length of the readable part in bytes.
    pub whole_bytes: u64,
}

impl Content {
    /// How long the changes stay; `None` where their process did not come to say so, and was killed.
    pub fn kept(&self) -> Option<Keep> {
        self.entries.iter().rev().find_map(|entry| match entry {
            Entry::Confirmed => Some(Keep::UntilRestored),
            Entry::Kept(keep) => Some(*keep),
            _ => None,
        })
    }

    /// Whether the changes are to stay beyond this instant.
    pub fn stays_at(&self, now_unix_ms: u64) -> bool {
        match self.kept() {
            Some(Keep::UntilRestored) => true,
            Some(Keep::UnlessConfirmed { until_unix_ms }) => now_unix_ms < until_unix_ms,
            None => false,
        }
    }
}

/// Reads the content of a journal; `path` is for messages. `None` where not even the first line is whole.
pub fn parse(bytes: &[u8], path: &Path) -> Result<Option<Content>, JournalError> {
    let mut content: Option<Content> = None;
    let mut at = 0;
    for (number, line) in bytes.split_inclusive(|&b| b == b'\n').enumerate() {
        if line.last() != Some(&b'\n') {
            break;
        }
        let is_last = at + line.len() == bytes.len();
        let entry: Entry = match serde_json::from_slice(line) {
            Ok(entry) => entry,
            // Blocks of zeros after a power loss end in a line that is none.
            Err(_) if is_last => break,
            Err(e) => {
                return Err(JournalError::Line {
                    path: path.to_owned(),
                    line: number + 1,
                    reason: e.to_string(),
                });
            }
        };
        at += line.len();
        let wrong = |reason: &str| JournalError::Line {
            path: path.to_owned(),
            line: number + 1,
            reason: reason.to_owned(),
        };
        match (&mut content, entry) {
            (None, Entry::Open(purpose)) if (OLDEST_FORMAT..=FORMAT).contains(&purpose.format) => {
                content = Some(Content {
                    purpose,
                    entries: Vec::new(),
                    whole_bytes: 0,
                });
            }
            (None, Entry::Open(purpose)) => {
                return Err(wrong(&format!(
                    "it has format {}, this pgdyno knows {OLDEST_FORMAT} to {FORMAT}",
                    purpose.format
                )));
            }
            (None, _) | (Some(_), Entry::Open(_)) => return Err(wrong("an entry out of its order")),
            (Some(content), entry) => content.entries.push(entry),
        }
        if let Some(content) = &mut content {
            content.whole_bytes = at as u64;
        }
    }
    Ok(content)
}
