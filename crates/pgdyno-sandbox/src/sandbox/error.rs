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
    /// A name that cannot be that of a directory.
    #[error("{} cannot be the name of a sandbox; use letters, digits, - and _, at most 40", Given(.0))]
    BadName(String),
    /// There is no sandbox of that name.
    #[error("there is no sandbox \"{0}\"")]
    Unknown(String),
    /// A sandbox of that name exists.
    #[error("a sandbox \"{0}\" exists already")]
    Exists(String),
    /// The record of the sandbox cannot be read.
    #[error("the record of the sandbox at {path} cannot be read: {reason}")]
    Record {
        /// Path of the record or its directory.
        path: PathBuf,
        /// Error message of the parser or the system.
        reason: String,
    },
    /// The creation of the sandbox was interrupted.
    #[error("the sandbox \"{0}\" is half-made: its creation was interrupted")]
    HalfMade(String),
    /// Another command holds the sandbox's lock.
    #[error("the sandbox \"{name}\" is in use by {holder}")]
    Held {
        /// Name of the sandbox.
        name: String,
        /// Process and command that use it.
        holder: String,
    },
    /// A directory is not empty, not reachable and so on.
    #[error("{path}: {reason}")]
    Place {
        /// Path of the directory.
        path: PathBuf,
        /// What is wrong with the directory, and what was expected.
        reason: String,
    },
    /// Another program listens on the port.
    #[error("port {0} on 127.0.0.1 is taken by another program")]
    PortTaken(u16),
    /// The programs of that version could not be fetched.
    #[error("PostgreSQL {version} could not be fetched: {reason}")]
    Binaries {
        /// Major version of PostgreSQL.
        version: u32,
        /// Error of the download, or why there is none.
        reason: String,
    },
    /// No archive has that version, and none is installed in a known place.
    #[error("no archive has PostgreSQL {version} yet, and none is installed here")]
    NowhereYet {
        /// Major version of PostgreSQL.
        version: u32,
    },
    /// A program of PostgreSQL failed.
    #[error("{program} failed: {reason}")]
    Program {
        /// Name of the program: "initdb", "pg_ctl" or "postgres".
        program: &'static str,
        /// Last lines of its output.
        reason: String,
    },
    /// A file or directory could not be read, written or made.
    #[error("{path} could not be {action}: {source}")]
    Io {
        /// Path of the file or directory.
        path: PathBuf,
        /// What was tried, as a participle: "read", "written".
        action: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
    /// Limits of CPU, memory or I/O could not be set.
    #[error("the limits of the sandbox could not be set: {0}")]
    Limits(HostError),
    /// The sandbox cannot be copied, or its copy was not finished.
    #[error("the sandbox \"{name}\" cannot be used so: {reason}")]
    Unfit {
        /// Name of the sandbox.
        name: String,
        /// Why it cannot be used.
        reason: String,
    },
    /// A file system of the sandbox cannot be made or mounted.
    #[error("{what}: {reason}")]
    FileSystem {
        /// Path, or kind and size, of the file system.
        what: String,
        /// What is wrong with the file system, and what was expected.
        reason: String,
    },
    /// A program of the system is missing.
    #[error("{program} is not installed; the package {package} has it")]
    NoProgram {
        /// Name of the program.
        program: &'static str,
        /// Name of the Debian package that has it.
        package: &'static str,
    },
    /// A file system is to be mounted, and pgdyno does not run as root.
    #[error("a file system of its own is mounted, which only root may do")]
    NeedsRoot,
    /// A tablespace is made at the same path on a standby, which is on the same machine.
    #[error("temporary files on a device of their own are of a sandbox without standbys")]
    TempWithStandbys,
    /// A network of the sandbox cannot be made.
    #[error("{what}: {reason}")]
    Network {
        /// The name or addresses at fault.
        what: String,
        /// What is wrong with the name or addresses.
        reason: String,
    },
    /// A command that makes, changes or lists a network failed.
    #[error("{command}: {reason}")]
    NetworkCommand {
        /// The command with its arguments.
        command: String,
        /// What it printed.
        reason: String,
    },
    /// A network is to be made, and pgdyno does not run as root.
    #[error("a network of its own is made, which only root may do")]
    NetworkNeedsRoot,
    /// The file system with the data of the sandbox no longer exists.
    #[error("the data of the sandbox \"{name}\" is gone: {what}")]
    Lost {
        /// Name of the sandbox.
        name: String,
        /// What is gone: a path, or a file system in memory.
        what: String,
    },
    /// There is no user that the server could run as.
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
            SandboxError::Exists(_) => "choose another name, or `pgdyno sandbox destroy` it first",
            SandboxError::HalfMade(_) | SandboxError::Record { .. } => {
                "`pgdyno sandbox destroy NAME` removes what there is of it"
            }
            SandboxError::Held { .. } => "wait until that command has ended, or end it",
            SandboxError::PortTaken(_) => "name another with --port, or leave --port out to get a free one",
            SandboxError::Binaries { .. } => {
                "check the network (behind a certificate authority of your own SSL_CERT_FILE names its file) and try again, or point \
                 --pg-bin at a directory with initdb, pg_ctl and postgres"
            }
            SandboxError::NowhereYet { .. } => {
                "install its packages, or point --pg-bin at the directory of its initdb, pg_ctl and postgres"
            }
            SandboxError::Limits(e) if e.is_refused() => {
                "limits need root (or a delegated cgroup); leave them out"
            }
            SandboxError::Lost { .. } => "`pgdyno sandbox destroy` it and create it again",
            SandboxError::NeedsRoot => {
                "run it as root, or place data, WAL and temporary files with --data, --wal and --temp"
            }
            SandboxError::TempWithStandbys => {
                "make it without --standbys, or without --temp and --temp-filesystem"
            }
            SandboxError::NetworkNeedsRoot => "run it as root, or leave --network out",
            SandboxError::NetworkCommand { .. } => {
                "namespaces and links need root with CAP_SYS_ADMIN and CAP_NET_ADMIN, which containers take away, and a kernel \
                 with CONFIG_NET_NS and CONFIG_VETH"
            }
            SandboxError::NoUser => "create one: useradd --system postgres",
            _ => return None,
        })
    }
}
