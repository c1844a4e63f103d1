//! Why a host over ssh did not do what was asked.

use crate::binary::BinaryError;
use crate::message::Then;
use crate::ssh_host::SshHost;
use pgdyno_record::ErrorClass;
use std::io;

/// Why a host over ssh did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// There is no ssh, or it cannot be started.
    #[error("{program} could not be started")]
    NoSsh {
        /// Its name.
        program: String,
        /// Error of the system call.
        #[source]
        source: io::Error,
    },
    /// ssh has no connection to the host.
    #[error("{host} could not be reached: {said}")]
    Unreachable {
        /// The host as it was named.
        host: SshHost,
        /// Last lines of ssh.
        said: String,
    },
    /// The agent could not be started there.
    #[error("no agent could be started on {host}: {said}")]
    NoAgent {
        /// The host as it was named.
        host: SshHost,
        /// Last lines of the host's shell.
        said: String,
    },
    /// There is no program for a host of this kind.
    #[error("no agent could be started on {host}")]
    Binary {
        /// The host as it was named.
        host: SshHost,
        /// What is missing.
        #[source]
        source: BinaryError,
    },
    /// The connection ended before the command did.
    #[error("the connection to {host} was lost: {why}; the command there is ended as by Ctrl-C")]
    Lost {
        /// The host as it was named.
        host: SshHost,
        /// How that was found.
        why: String,
    },
    /// The agent does not do what it was sent for.
    #[error("the agent on {host} does not run the command: {why}")]
    Refused {
        /// The host as it was named.
        host: SshHost,
        /// Its own words.
        why: String,
    },
    /// The connection was lost, and there was no other in time.
    #[error("the connection to {host} was lost and could not be had again: {why}; {}", match then {
        Then::Restore => "the agent there ends the command and restores everything",
        Then::Keep => "the agent there ends, and what it has changed stays as it is",
    })]
    Abandoned {
        /// The host as it was named.
        host: SshHost,
        /// Error of the last attempt.
        why: String,
        /// What the agent was asked to do.
        then: Then,
    },
    /// The connection was lost, and over another one there is no command that waits.
    #[error("the connection to {host} was lost, and the command there cannot be had again: {why}")]
    Gone {
        /// The host as it was named.
        host: SshHost,
        /// What the host says of it.
        why: String,
    },
    /// What the host sends is nothing that an agent sends.
    #[error("{host} does not answer as an agent of this version: {why}")]
    Misbehaves {
        /// The host as it was named.
        host: SshHost,
        /// What it does instead.
        why: String,
    },
    /// The command line and its files are more than a frame holds.
    #[error("the command cannot be sent to {host}: {why}")]
    Request {
        /// The host as it was named.
        host: SshHost,
        /// What is wrong with it.
        why: String,
    },
    /// The agents that were to be removed are still there.
    #[error("the agents on {host} could not be removed: {said}")]
    NotRemoved {
        /// The host as it was named.
        host: SshHost,
        /// Last lines of the host's shell.
        said: String,
    },
    /// The user asked to stop, and the command there has no end in order, or had not begun.
    #[error("stopped on {host}")]
    Stopped {
        /// The host as it was named.
        host: SshHost,
    },
}

impl RemoteError {
    /// What failed there is no fault of the command line.
    pub fn class(&self) -> ErrorClass {
        ErrorClass::Failed
    }

    /// What mends it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            RemoteError::Unreachable { .. } => {
                Some("`ssh HOST true` must work first: pgdyno takes the same way")
            }
            RemoteError::Binary { .. } => {
                Some("copy a pgdyno that was built for that machine there (`make dist` builds them)")
            }
            RemoteError::Lost { .. } | RemoteError::Abandoned { .. } | RemoteError::Gone { .. } => {
                Some("`pgdyno status` shows what is still changed there, and `pgdyno restore` restores it")
            }
            _ => None,
        }
    }
}
