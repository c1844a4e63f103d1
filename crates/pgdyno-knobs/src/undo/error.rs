//! Why an undo unit could not be read or written.

use crate::catalogue::CatalogueError;
use pgdyno_host::HostError;
use pgdyno_record::ErrorClass;
use pgdyno_server::ServerError;
use std::path::PathBuf;

/// Why an undo unit could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum UndoUnitError {
    /// A kernel file could not be read or written.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The file postgresql.auto.conf could not be read or written.
    #[error("{path} could not be {action}: {source}")]
    AutoConf {
        /// Path of the file.
        path: PathBuf,
        /// What was tried, as a participle: "read" or "written".
        action: &'static str,
        /// The error of the system call.
        source: std::io::Error,
    },
    /// postgresql.auto.conf is not text, so that the journal could not hold it exactly.
    #[error("{path} is not UTF-8 text; it can be neither journaled nor restored exactly")]
    NotText {
        /// Path of the file.
        path: PathBuf,
    },
    /// The catalogue refuses the knob or its value.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The server was asked, and refused.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// There is no server to ask.
    #[error("no server is named, and this is a setting of one")]
    NoServer,
    /// The WAL directory could not be moved.
    #[error("{path} could not be {action}: {source}")]
    Wal {
        /// File or directory that was copied, linked or removed.
        path: PathBuf,
        /// "copied", "removed" and so on.
        action: &'static str,
        /// The error of the system call.
        source: std::io::Error,
    },
    /// A file that cannot be swapped to, or is in the way.
    #[error("the swap file {path}: {reason}")]
    Swap {
        /// Absolute path of the swap file.
        path: String,
        /// Why it cannot be swapped to.
        reason: String,
    },
    /// Commits would go into files that are being taken away.
    #[error("the WAL is not moved while the server runs, or may run")]
    Running,
    /// The journal holds a state that does not belong to its undo unit.
    #[error("the journal mixes up two kinds of state")]
    Mixed,
}

impl UndoUnitError {
    /// That of what it holds.
    pub fn class(&self) -> ErrorClass {
        match self {
            UndoUnitError::Catalogue(error) => error.class(),
            UndoUnitError::Server(error) => error.class(),
            _ => ErrorClass::Failed,
        }
    }

    /// What mends it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            UndoUnitError::Host(error) => hint_of_host(error),
            UndoUnitError::Catalogue(error) => error.hint(),
            UndoUnitError::Server(error) => error.hint(),
            _ => None,
        }
    }
}

/// What mends a refused write to the kernel.
fn hint_of_host(error: &HostError) -> Option<&'static str> {
    match error {
        HostError::Rejected { path, .. } if path.starts_with("/proc/irq/") => {
            Some("the kernel does not move some interrupts: a timer's, and those of queues that it manages")
        }
        HostError::Refused { path, .. } if path.starts_with("/sys/kernel/debug/") => Some(
            "root may be needed (over ssh: --sudo); a kernel that is locked down (Secure Boot, lockdown=) refuses debugfs to root too",
        ),
        error if error.is_refused() => {
            Some("root may be needed (over ssh: --sudo), or this is a container with a read-only /proc/sys")
        }
        _ => None,
    }
}
