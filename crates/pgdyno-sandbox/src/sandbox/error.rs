//! Why something could not be done with a sandbox, and what to do about it.

use pgdyno_host::HostError;
use pgdyno_record::ErrorClass;
use pgdyno_server::Given;
use std::io;
use std::path::{Path, PathBuf};

/// Why something could not be done with a sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// Its processes could not be bound to CPUs.
    #[error("the server could not be bound to CPUs: {0}")]
    Cpus(io::Error),
    /// A name that is no file name.
    #[error("{} cannot be the name of a sandbox; use letters, digits, - and _, at most 40", Given(.0))]
    BadName(String),
    /// No such sandbox.
    #[error("there is no sandbox \"{0}\"")]
    Unknown(String),
    /// The name is taken.
    #[error("a sandbox \"{0}\" exists already")]
    Exists(String),
    /// Its record cannot be read.
    #[error("the record of the sandbox at {path} cannot be read: {reason}")]
    Record {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Its creation was interrupted.
    #[error("the sandbox \"{0}\" is half-made: its creation was interrupted")]
    HalfMade(String),
    /// Another command has it.
    #[error("the sandbox \"{name}\" is in use by {holder}")]
    Held {
        /// Which.
        name: String,
        /// Process and command.
        holder: String,
    },
    /// A directory is not empty, not reachable and so on.
    #[error("{path}: {reason}")]
    Place {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The port is taken.
    #[error("port {0} on 127.0.0.1 is taken by another program")]
    PortTaken(u16),
    /// The binaries are not to be had.
    #[error("PostgreSQL {version} could not be fetched: {reason}")]
    Binaries {
        /// Major version.
        version: u32,
        /// Why.
        reason: String,
    },
    /// A program of PostgreSQL failed.
    #[error("{program} failed: {reason}")]
    Program {
        /// initdb, pg_ctl or postgres.
        program: &'static str,
        /// Its last words.
        reason: String,
    },
    /// Files.
    #[error("{path} could not be {action}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// "read", "written" and so on.
        action: &'static str,
        /// The system's words.
        source: io::Error,
    },
    /// Limits or host files.
    #[error("the limits of the sandbox could not be set: {0}")]
    Limits(HostError),
    /// Its files cannot be copied, or were in part.
    #[error("the sandbox \"{name}\" cannot be used so: {reason}")]
    Unfit {
        /// Which.
        name: String,
        /// Why.
        reason: String,
    },
    /// A file system of its own.
    #[error("{what}: {reason}")]
    FileSystem {
        /// Path, or kind and size.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A program of the system is missing.
    #[error("{program} is not installed; the package {package} has it")]
    NoProgram {
        /// Which.
        program: &'static str,
        /// Debian's name of the package.
        package: &'static str,
    },
    /// Only root mounts.
    #[error("a file system of its own is mounted, which only root may do")]
    NeedsRoot,
    /// A network of its own.
    #[error("{what}: {reason}")]
    Network {
        /// A command, a name or addresses.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Only root makes namespaces and links.
    #[error("a network of its own is made, which only root may do")]
    NetworkNeedsRoot,
    /// What it lay on is gone.
    #[error("the data of the sandbox \"{name}\" is gone: {what}")]
    Lost {
        /// Which.
        name: String,
        /// What is gone.
        what: String,
    },
    /// Root without anybody to become.
    #[error("PostgreSQL refuses to run as root, and this machine has neither a user postgres nor nobody")]
    NoUser,
}

impl SandboxError {
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> SandboxError {
        let path = path.to_owned();
        move |source| SandboxError::Io { path, action, source }
    }

    /// A name that cannot be one is a mistake of the command line.
    pub fn class(&self) -> ErrorClass {
        match self {
            SandboxError::BadName(_) => ErrorClass::Usage,
            _ => ErrorClass::Failed,
        }
    }

    /// What mends it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            SandboxError::Unknown(_) => "`pgdyno sandbox list` shows them; `pgdyno sandbox create` makes one",
            SandboxError::Exists(_) => "choose another with --name, or `pgdyno sandbox destroy` it first",
            SandboxError::HalfMade(_) | SandboxError::Record { .. } => {
                "`pgdyno sandbox destroy NAME` removes what there is of it"
            }
            SandboxError::Held { .. } => "wait until that command has ended, or end it",
            SandboxError::PortTaken(_) => "name another with --port, or leave --port out to get a free one",
            SandboxError::Binaries { .. } => {
                "check the network and try again, or point --pg-bin at a directory with initdb, pg_ctl and postgres"
            }
            SandboxError::Limits(e) if e.is_refused() => {
                "limits need root (or a delegated cgroup); leave them out"
            }
            SandboxError::Lost { .. } => "`pgdyno sandbox destroy` it and create it again",
            SandboxError::NeedsRoot => "run it as root, or place data and WAL with --data and --wal",
            SandboxError::NetworkNeedsRoot => "run it as root, or leave --network out",
            SandboxError::Network { reason, .. } if reason.contains("not permitted") => {
                "namespaces and links need root with CAP_SYS_ADMIN and CAP_NET_ADMIN, which a container takes away"
            }
            SandboxError::Network { reason, .. } if reason.contains("not supported") => {
                "the kernel needs network namespaces and veth (CONFIG_NET_NS, CONFIG_VETH)"
            }
            SandboxError::NoUser => "create one: useradd --system postgres",
            _ => return None,
        })
    }
}
