//! Outcome of settings, or why they could not be applied.

use crate::catalogue::{CatalogueError, Setting};
use crate::journal::JournalError;
use crate::undo::UndoUnitError;
use pgdyno_host::HostError;
use pgdyno_record::ErrorClass;
use pgdyno_sandbox::ControlError;
use pgdyno_server::ServerError;

/// A setting that was applied, with what the target reports of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// Knob and value as they were given.
    pub setting: Setting,
    /// Value that the target reports after it was set.
    pub effective: String,
    /// Whether `effective` is the value that was asked for.
    pub took: bool,
    /// What else matters of it: sessions that do not have it, a restart that it waits for.
    pub remark: Option<String>,
}

/// Why settings could not be applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Not in the catalogue, or out of range.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// A kernel file or the server's file.
    #[error(transparent)]
    UndoUnit(#[from] UndoUnitError),
    /// A setting of the host, in a change that was begun for a server alone.
    #[error("{knob} is a setting of the host, and only settings of the server were announced")]
    NotAnnounced {
        /// Id of the knob.
        knob: String,
    },
    /// Nothing is changed that is not in the journal first.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The server could not be reached, or refused a statement.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The server could not be started or stopped.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The server does not come up with these settings; the old ones are back and it runs.
    #[error("the server does not start with these settings: {0}")]
    DoesNotStart(String),
    /// This version has no such parameter.
    #[error("PostgreSQL {version} has no parameter {name}{hint}")]
    NoParameter {
        /// Name of the parameter.
        name: String,
        /// Version of the server: "14.9".
        version: String,
        /// Versions that have it, by the catalogue; empty where none is listed.
        hint: String,
    },
    /// pgdyno's own session has another value, so neither the value before nor the one that took
    /// effect can be seen.
    #[error(
        "the options of pgdyno's session (PGOPTIONS, or options= of the connection string) set {name}, which hides the \
         server's value"
    )]
    HiddenByOptions {
        /// Name of the parameter.
        name: String,
    },
    /// A parameter that reports how the server was built or made.
    #[error("{name} is read-only: it reports what the server is")]
    ReadOnly {
        /// Name of the parameter.
        name: String,
    },
    /// The database has no such table.
    #[error("there is no table {table} in the database {database}")]
    NoTable {
        /// Name of the table as it was given.
        table: String,
        /// Name of the database that was looked in.
        database: String,
    },
    /// A setting of more than a session.
    #[error("{knob} cannot be set in a session: {why}")]
    NotOfSession {
        /// Id of the knob.
        knob: String,
        /// What keeps it from that.
        why: &'static str,
    },
    /// A right that the connected role lacks.
    #[error("the role {role} may not {what}")]
    NoRight {
        /// Name of the role, quoted as in SQL.
        role: String,
        /// The action that the role has no right to, as a verb phrase.
        what: String,
    },
    /// A database that an experiment would make.
    #[error("the database {name} is there already, and pgdyno does not drop what others may have created")]
    DatabaseThere {
        /// Its name.
        name: String,
    },
    /// The server allows ALTER SYSTEM to no role.
    #[error("this server does not allow ALTER SYSTEM")]
    NoAlterSystem,
    /// Files that are moved while the server is down.
    #[error("the server has to be stopped meanwhile, and its restart command cannot leave it stopped")]
    NeedsStop,
    /// The server's host is another machine, or may be.
    #[error("the server's files are not within reach here, so its host is not known to be this machine")]
    HostElsewhere,
    /// A parameter that could keep the server from starting, and no file to take it back in.
    #[error(
        "it needs a restart, and if the server did not start with it, its file could not be mended from here"
    )]
    NoWayBack,
    /// Somebody else turns the same knobs: what is measured then is nobody's treatment.
    #[error("someone else has changed {place} since: it is {found}, and was left as {left}")]
    Foreign {
        /// Path of the kernel file.
        place: String,
        /// Content that it has now.
        found: String,
        /// Content that the last write of this process left.
        left: String,
    },
    /// What was not named was not restored.
    #[error("{place} did not go back to what it was before")]
    NotBack {
        /// Path of the kernel file.
        place: String,
    },
    /// A pool that would leave the machine too little to live on.
    #[error(
        "{path} = {pages}: {more_kb} kB more of huge pages do not fit into the {available_kb} kB of memory that are available, of \
         which {spare_kb} kB are to stay free; {fits} pages fit"
    )]
    NoRoom {
        /// The file of the pool.
        path: String,
        /// Pages that were asked for.
        pages: u64,
        /// Memory that they take beyond those that are there.
        more_kb: u64,
        /// Memory that the kernel can give.
        available_kb: u64,
        /// What is to be left of it.
        spare_kb: u64,
        /// Pages that the pool can have.
        fits: u64,
    },
    /// A pool sized by the server's need, where the need cannot be known.
    #[error("how many huge pages the server needs cannot be computed: {0}")]
    NoPoolSize(String),
}

impl From<HostError> for ApplyError {
    fn from(error: HostError) -> Self {
        ApplyError::UndoUnit(error.into())
    }
}

impl ApplyError {
    /// A pool that does not fit is refused; else that of what it holds.
    pub fn class(&self) -> ErrorClass {
        match self {
            ApplyError::NoRoom { .. } => ErrorClass::Refused,
            ApplyError::Catalogue(error) => error.class(),
            ApplyError::UndoUnit(error) => error.class(),
            ApplyError::Server(error) => error.class(),
            ApplyError::Control(error) => error.class(),
            _ => ErrorClass::Failed,
        }
    }

    /// What mends it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ApplyError::Catalogue(error) => error.hint(),
            ApplyError::UndoUnit(error) => error.hint(),
            ApplyError::Journal(error) => error.hint(),
            ApplyError::Server(error) => error.hint(),
            ApplyError::Control(error) => error.hint(),
            _ => None,
        }
    }
}
