//! Errors of data.

use super::dataset::Dataset;
use crate::session::SessionError;
use pgdyno_record::ErrorClass;

/// Why data could not be created, read or dropped.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// A share of a page that the server does not take.
    #[error("fillfactor {given}: expected 10 to 100 percent")]
    Fillfactor {
        /// Value that was given.
        given: u32,
    },
    /// SQL of the user's that cannot be cut into statements, or holds a command of psql's.
    #[error("line {line} of the data's SQL: {message}")]
    Sql {
        /// Line in the text, from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// No connection could be made.
    #[error("no connection for data: {source}")]
    Connect {
        /// The error of the connection, with its place.
        source: SessionError,
    },
    /// The tables are not there, or not finished.
    #[error("database \"{database}\" at {place} holds no data of the set {dataset} ({why})")]
    Missing {
        /// Host and port, or socket.
        place: String,
        /// Name of the database.
        database: String,
        /// Data set that was looked for.
        dataset: Dataset,
        /// What is wrong with the tables, or that there are none.
        why: &'static str,
    },
    /// Tables of the same names that pgdyno did not make.
    #[error(
        "database \"{database}\" at {place} has tables of these names that pgdyno did not make, and leaves them alone: {tables}"
    )]
    Foreign {
        /// Host and port, or socket.
        place: String,
        /// Name of the database.
        database: String,
        /// Names of the tables, with commas.
        tables: String,
    },
    /// Tables of the same names, and leave to drop them is not given.
    #[error(
        "database \"{database}\" at {place} has tables of these names already, and they are left alone: {tables}"
    )]
    InTheWay {
        /// Host and port, or socket.
        place: String,
        /// Name of the database.
        database: String,
        /// Names of the tables, with commas.
        tables: String,
    },
    /// A number of the plan outside its bounds.
    #[error("the {what} must be 1 to {max}, not {given}")]
    Number {
        /// Name of the number within a sentence: "number of threads".
        what: &'static str,
        /// Greatest value that is allowed; the least is 1.
        max: u32,
        /// Value that was given.
        given: u32,
    },
    /// The server refused a step.
    #[error("{step} failed: {source}")]
    Step {
        /// Name of the step: "checking the data".
        step: String,
        /// The error of the server or of the connection.
        source: SessionError,
    },
    /// The server answered something else than was asked for.
    #[error("{step}: expected a row of known values, the server sent another one")]
    Answer {
        /// Name of the step.
        step: String,
    },
    /// The system refuses a thread.
    #[error("the system refused a thread: {0}")]
    Thread(std::io::Error),
    /// Another creation was waited for, and it has made data of this set.
    #[error("another creation has made data of this set meanwhile; it was left alone")]
    Meanwhile,
    /// The caller asked to stop; what had been made was dropped, and so was what it was to replace.
    #[error("stopped; the data was not created, and nothing of the set is left")]
    Stopped,
    /// The caller asked to stop; nothing was changed.
    #[error("stopped before the server had answered")]
    Interrupted,
}

impl DataError {
    /// Tables of others are left alone.
    pub fn class(&self) -> ErrorClass {
        match self {
            DataError::Foreign { .. } | DataError::InTheWay { .. } | DataError::Meanwhile => {
                ErrorClass::Refused
            }
            _ => ErrorClass::Failed,
        }
    }

    /// What mends it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            DataError::Missing { dataset, .. } => match dataset {
                Dataset::Pgbench => {
                    "`pgdyno data create TARGET --scale N` makes it (100,000 accounts and 15 MB per unit)"
                }
                Dataset::Oltp => {
                    "`pgdyno data create TARGET oltp --scale N` makes it (100,000 rows and 23 MB per unit and table)"
                }
                Dataset::Tpcc => {
                    "`pgdyno data create TARGET tpcc --scale N` makes it (a warehouse and 100 MB per unit)"
                }
            },
            DataError::Foreign { .. } => "a database of its own (CREATE DATABASE) has room for them",
            DataError::InTheWay { .. } => {
                "--replace drops them (`pgdyno data create`); or name another database"
            }
            _ => return None,
        })
    }
}
