//! What can go wrong with a store, in words for people. No text of these holds a password.

use super::place::Place;
use crate::schema;
use pgdyno_record::ErrorClass;
use std::path::{Path, PathBuf};

fn saved_as(saved: Option<&Path>) -> String {
    match saved {
        Some(path) => format!("what can still be read of it is saved as {}", path.display()),
        None => "what it held could not be saved beside it".to_owned(),
    }
}

/// Trouble with a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite's own.
    #[error("the store {place} could not be {action}: {source}")]
    Sqlite {
        /// The file.
        place: Place,
        /// "opened", "written", "read".
        action: &'static str,
        /// SQLite's words.
        source: rusqlite::Error,
    },
    /// Files.
    #[error("the directory of the store {place} could not be made: {source}")]
    Directory {
        /// The file.
        place: Place,
        /// The system's words.
        source: std::io::Error,
    },
    /// Written by a later pgdyno.
    #[error(
        "the store {place} has schema {found}; this pgdyno reads {}. Use the newer pgdyno, or another store",
        schema::VERSION
    )]
    Newer {
        /// Where it is.
        place: Place,
        /// Its schema.
        found: i64,
    },
    /// Written by an earlier pgdyno, where it is to be left as it is.
    #[error(
        "the store {place} has schema {found} of an earlier pgdyno; `pgdyno list --store {place}` brings it to schema {}",
        schema::VERSION
    )]
    Older {
        /// Where it is.
        place: Place,
        /// Its schema.
        found: i64,
    },
    /// Something else than a file, by the name of the store or of a file that SQLite keeps beside it.
    #[error("the store {place} is not opened: {} is {what}; expected a regular file", file.display())]
    NoFile {
        /// The file.
        place: Place,
        /// What is none.
        file: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// A database of another program.
    #[error("{place} is a database of another program; name another store")]
    Foreign {
        /// Where it is.
        place: Place,
    },
    /// A record that cannot be read.
    #[error("{what} in the store {place} cannot be read: {reason}")]
    Record {
        /// Where it is.
        place: Place,
        /// "experiment 3".
        what: String,
        /// What is wrong.
        reason: String,
    },
    /// Another process has it, and does not let go.
    #[error("the store {place} is locked by another process; try again when that has ended")]
    Locked {
        /// Where it is.
        place: Place,
    },
    /// Cut short.
    #[error(
        "the store {place} is truncated: it has {found_bytes} bytes of at least {expected_bytes}; bring it back from a copy"
    )]
    Truncated {
        /// The file.
        place: Place,
        /// Its length.
        found_bytes: u64,
        /// What it should be.
        expected_bytes: u64,
    },
    /// The file beside it that tells who runs an experiment.
    #[error(
        "the file beside the store {place} that marks an experiment as running could not be locked: {source}"
    )]
    Lock {
        /// The file of the store.
        place: Place,
        /// The system's words.
        source: std::io::Error,
    },
    /// Nothing there.
    #[error("there is no store of results at {place}")]
    Missing {
        /// Where it should be.
        place: Place,
    },
    /// Its name is another file's, or nobody's, since it was opened.
    #[error(
        "the store {place} was removed or replaced while it was in use, and nothing more is stored in it; {}",
        saved_as(saved.as_deref())
    )]
    Removed {
        /// The file.
        place: Place,
        /// A copy of what could still be read.
        saved: Option<PathBuf>,
    },
    /// Read without a lock, and written by another process in that time.
    #[error("the store {place} was written while it was read; try again")]
    Meanwhile {
        /// The file.
        place: Place,
    },
    /// Being run by another process.
    #[error("experiment {id} in {place} is being run by another process")]
    Running {
        /// Where it is.
        place: Place,
        /// Its number.
        id: i64,
    },
    /// A tag or a note that cannot be kept.
    #[error("{0}")]
    Words(String),
    /// A text that PostgreSQL keeps nowhere.
    #[error(
        "the store {place} keeps no text with the character U+0000; take it out of the name, note or treatment that has it"
    )]
    Zero {
        /// Where it was to be kept.
        place: Place,
    },
    /// No such experiment.
    #[error("there is no experiment {id} in {place}; `pgdyno list` shows those there are")]
    Unknown {
        /// Where it is not.
        place: Place,
        /// Its number.
        id: i64,
    },
    /// A trial that is stored already.
    #[error(
        "experiment {experiment} in {place} has a trial of block {block} with \"{treatment}\" already, and it is never \
         replaced"
    )]
    Twice {
        /// Where it is.
        place: Place,
        /// Of which experiment.
        experiment: i64,
        /// 1-based.
        block: u32,
        /// By name.
        treatment: String,
    },
    /// The server's own.
    #[error("the store {place} could not be {action}: {reason}")]
    Postgres {
        /// Which.
        place: Place,
        /// "opened", "written", "read".
        action: &'static str,
        /// The server's words.
        reason: String,
        /// Its code of the error, if it is the server's.
        sqlstate: Option<String>,
    },
    /// Something else goes by the name of a table.
    #[error("the store {place} has a {name} that is no table: it is no store that pgdyno wrote")]
    NoTable {
        /// Which.
        place: Place,
        /// What should be a table.
        name: String,
    },
    /// A table has a generated column, which the stores of pgdyno do not have.
    #[error(
        "the store {place} has generated columns in the table {name}: pgdyno did not write it; name another file"
    )]
    Computed {
        /// Which.
        place: Place,
        /// The table.
        name: String,
    },
    /// What it reads has no end within any limit that a store keeps to.
    #[error(
        "the store {place} could not be {action}: {reason}. This is no store that pgdyno wrote, or its server is at fault"
    )]
    Endless {
        /// Which.
        place: Place,
        /// "opened", "written", "read".
        action: &'static str,
        /// How much came, or how long it took.
        reason: String,
    },
    /// There is no way to its server.
    #[error("the store {place} could not be opened: {source}")]
    Unreachable {
        /// Which.
        place: Place,
        /// The words of whoever knows the way.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Its server was there, and is no more.
    #[error(
        "the connection to the store {place} broke while it was being {action}, and another could not be had: {reason}{}",
        lost_by(action)
    )]
    Gone {
        /// Which.
        place: Place,
        /// "opened", "written", "read".
        action: &'static str,
        /// What happened.
        reason: String,
    },
    /// A server that takes no writes.
    #[error(
        "the store {place} is on a standby, or read-only: nothing can be written there. Name its primary, or several hosts with \
         target_session_attrs=read-write"
    )]
    ReadOnly {
        /// Which.
        place: Place,
    },
    /// What the role must not.
    #[error(
        "the store {place} refuses what is wanted: {reason}. Its owner can allow it (docs/reference/store.md, \"In PostgreSQL\")"
    )]
    Denied {
        /// Which.
        place: Place,
        /// The server's words.
        reason: String,
    },
    /// A database that cannot hold every text.
    #[error("the database of the store {place} has the encoding {encoding}; a store needs one with UTF8")]
    Encoding {
        /// Which.
        place: Place,
        /// The database's.
        encoding: String,
    },
}

impl StoreError {
    /// Words that cannot be kept are a mistake of the command line.
    pub fn class(&self) -> ErrorClass {
        match self {
            StoreError::Words(_) => ErrorClass::Usage,
            _ => ErrorClass::Failed,
        }
    }
}

/// A read loses nothing.
fn lost_by(action: &str) -> &'static str {
    match action {
        "written" => ". What was being written may be missing",
        _ => "",
    }
}
