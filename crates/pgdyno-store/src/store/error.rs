//! What can go wrong with a store, as messages for people. None of them holds a password.

use super::place::Place;
use crate::schema;
use pgdyno_record::ErrorClass;
use pgdyno_server::{ServerError, SessionError};
use std::path::{Path, PathBuf};

fn saved_as(saved: Option<&Path>) -> String {
    match saved {
        Some(path) => format!("what can still be read of it is saved as {}", path.display()),
        None => "what it held could not be saved beside it".to_owned(),
    }
}

/// Why a store could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// An error of SQLite.
    #[error("the store {place} could not be {action}: {source}")]
    Sqlite {
        /// Path of the SQLite file.
        place: Place,
        /// What was tried, as a participle: "opened", "written", "read".
        action: &'static str,
        /// The error as SQLite reports it.
        source: rusqlite::Error,
    },
    /// The directory of the store's file cannot be made.
    #[error("the directory of the store {place} could not be made: {source}")]
    Directory {
        /// Path of the SQLite file.
        place: Place,
        /// The error of the system call.
        source: std::io::Error,
    },
    /// Written by a later pgdyno.
    #[error(
        "the store {place} has schema {found}; this pgdyno reads {}. Use the newer pgdyno, or another store",
        schema::VERSION
    )]
    Newer {
        /// The store of the later pgdyno.
        place: Place,
        /// Version of its schema, above this pgdyno's.
        found: i64,
    },
    /// Written by an earlier pgdyno, where it is to be left as it is.
    #[error(
        "the store {place} has schema {found} of an earlier pgdyno; `pgdyno list --store {place}` brings it to schema {}",
        schema::VERSION
    )]
    Older {
        /// The store of the earlier pgdyno.
        place: Place,
        /// Version of its schema, below this pgdyno's.
        found: i64,
    },
    /// Something else than a file, by the name of the store or of one of SQLite's files for it.
    #[error("the store {place} is not opened: {} is {what}; expected a regular file", file.display())]
    NoFile {
        /// Path of the store's file.
        place: Place,
        /// The path that is not a regular file: that of the store, or of one of SQLite's files for
        /// it.
        file: PathBuf,
        /// Kind of what is there, with its article: "a directory".
        what: &'static str,
    },
    /// A database of another program.
    #[error("{place} is a database of another program; name another store")]
    Foreign {
        /// The database of the other program.
        place: Place,
    },
    /// A record that cannot be read.
    #[error("{what} in the store {place} cannot be read: {reason}")]
    Record {
        /// The store that has the record.
        place: Place,
        /// The record, as "experiment 3".
        what: String,
        /// Error of the parser, or the rule that the record breaks.
        reason: String,
    },
    /// Another process has it, and does not let go.
    #[error("the store {place} is locked by another process; try again when that has ended")]
    Locked {
        /// The store that the other process holds.
        place: Place,
    },
    /// The file is shorter than its header says.
    #[error(
        "the store {place} is truncated: it has {found_bytes} bytes of at least {expected_bytes}; bring it back from a copy"
    )]
    Truncated {
        /// Path of the SQLite file.
        place: Place,
        /// Length of the file.
        found_bytes: u64,
        /// Least length: that of a header, or by the size and number of pages in it.
        expected_bytes: u64,
    },
    /// The file beside it that shows who runs an experiment.
    #[error(
        "the file beside the store {place} that marks an experiment as running could not be locked: {source}"
    )]
    Lock {
        /// Path of the store's file; the lock file is in the same directory.
        place: Place,
        /// The error of the system call.
        source: std::io::Error,
    },
    /// There is no store at that path, or in that schema of the database.
    #[error("there is no store of results at {place}")]
    Missing {
        /// Path or database that was named.
        place: Place,
    },
    /// Its name is another file's, or nobody's, since it was opened.
    #[error(
        "the store {place} was removed or replaced while it was in use, and nothing more is stored in it; {}",
        saved_as(saved.as_deref())
    )]
    Removed {
        /// Path under which it was opened.
        place: Place,
        /// Path of a copy of what could still be read; `None` where none could be saved.
        saved: Option<PathBuf>,
    },
    /// Read without a lock, and written by another process in that time.
    #[error("the store {place} was written while it was read; try again")]
    Meanwhile {
        /// Path of the SQLite file.
        place: Place,
    },
    /// Being run by another process.
    #[error("experiment {id} in {place} is being run by another process")]
    Running {
        /// The store that has the experiment.
        place: Place,
        /// Number of the experiment.
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
        /// The store in PostgreSQL that was written to.
        place: Place,
    },
    /// The store has no experiment of that number.
    #[error("there is no experiment {id} in {place}; `pgdyno list` shows those there are")]
    Unknown {
        /// The store that was looked in.
        place: Place,
        /// Number that was asked for.
        id: i64,
    },
    /// A trial that is stored already.
    #[error(
        "experiment {experiment} in {place} has a trial of block {block} with \"{treatment}\" already, and it is never \
         replaced"
    )]
    Twice {
        /// The store that has the trial.
        place: Place,
        /// Number of the experiment.
        experiment: i64,
        /// Block of the trial, from 1.
        block: u32,
        /// Name of the treatment of the trial.
        treatment: String,
    },
    /// An error of the store's PostgreSQL server.
    #[error("the store {place} could not be {action}: {reason}")]
    Postgres {
        /// The store by its connection, without a password.
        place: Place,
        /// What was tried, as a participle: "opened", "written", "read".
        action: &'static str,
        /// Message of the server.
        reason: String,
        /// SQLSTATE of the error; `None` where it is not the server's.
        sqlstate: Option<String>,
    },
    /// Something else goes by the name of a table.
    #[error("the store {place} has a {name} that is not a table: it is not a store that pgdyno wrote")]
    NoTable {
        /// The store with that name in it.
        place: Place,
        /// Name of the view or other object in place of the table.
        name: String,
    },
    /// A table has a generated column, which the stores of pgdyno do not have.
    #[error(
        "the store {place} has generated columns in the table {name}: pgdyno did not write it; name another file"
    )]
    Computed {
        /// The store with the generated column.
        place: Place,
        /// Name of the table with the generated column.
        name: String,
    },
    /// What it reads has no end within any limit that a store keeps to.
    #[error(
        "the store {place} could not be {action}: {reason}. This is not a store that pgdyno wrote, or its server is at fault"
    )]
    Endless {
        /// The store that was read.
        place: Place,
        /// What was tried, as a participle: "opened", "written", "read".
        action: &'static str,
        /// How much came, or how long it took.
        reason: String,
    },
    /// There is no way to its server.
    #[error("the store {place} could not be opened: {source}")]
    Unreachable {
        /// The store whose server was not reached.
        place: Place,
        /// The error of the connection or of the tunnel to the server.
        source: Unreached,
    },
    /// Its server was there, and is no more.
    #[error(
        "the connection to the store {place} broke while it was being {action}, and another could not be had: {reason}{}",
        lost_by(action)
    )]
    Gone {
        /// The store whose connection broke.
        place: Place,
        /// What was tried, as a participle: "opened", "written", "read".
        action: &'static str,
        /// Error of the connection.
        reason: String,
    },
    /// A server that takes no writes.
    #[error(
        "the store {place} is on a standby, or read-only: nothing can be written there. Name its primary, or several hosts with \
         target_session_attrs=read-write"
    )]
    ReadOnly {
        /// The store on the standby.
        place: Place,
    },
    /// The role lacks a privilege.
    #[error(
        "the store {place} refuses what is wanted: {reason}. Its owner can allow it (docs/reference/store.md, \"In PostgreSQL\")"
    )]
    Denied {
        /// The store that the role has no privilege in.
        place: Place,
        /// Message of the server.
        reason: String,
    },
    /// A store that another host has, and reports of in its own words.
    #[error("the store on the coordinator's host: {0}")]
    Elsewhere(String),
    /// A database that cannot hold every text.
    #[error("the database of the store {place} has the encoding {encoding}; a store needs one with UTF8")]
    Encoding {
        /// The store in that database.
        place: Place,
        /// Encoding of the database as the server names it: "SQL_ASCII".
        encoding: String,
    },
}

/// Why the server of a store is not reached, as described by who connects.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Unreached {
    /// One line.
    pub text: String,
    /// What mends it, where that is known.
    pub hint: Option<String>,
}

impl From<ServerError> for Unreached {
    fn from(error: ServerError) -> Unreached {
        Unreached {
            text: error.to_string(),
            hint: error.hint().map(str::to_owned),
        }
    }
}

impl From<SessionError> for Unreached {
    fn from(error: SessionError) -> Unreached {
        let text = error.to_string();
        Unreached { text, hint: None }
    }
}

impl From<&str> for Unreached {
    fn from(text: &str) -> Unreached {
        let text = text.to_owned();
        Unreached { text, hint: None }
    }
}

impl StoreError {
    /// A tag or a note that cannot be kept is a mistake of the command line.
    pub fn class(&self) -> ErrorClass {
        match self {
            StoreError::Words(_) => ErrorClass::Usage,
            _ => ErrorClass::Failed,
        }
    }

    /// What mends it, where that is known.
    pub fn hint(&self) -> Option<&str> {
        match self {
            StoreError::Unreachable { source, .. } => source.hint.as_deref(),
            _ => None,
        }
    }
}

/// Sentence on what may be lost; empty after a read, which loses nothing.
fn lost_by(action: &str) -> &'static str {
    match action {
        "written" => ". What was being written may be missing",
        _ => "",
    }
}
