//! Starting and stopping a server: a sandbox, or a server whose owner gave a command for it.

use crate::sandbox::{Sandbox, SandboxError};
use crate::server::Server;
use crate::{Conninfo, counters::pause};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to answer after its owner's restart command.
const COMMAND_LIMIT: Duration = Duration::from_secs(300);

/// Why a server could not be stopped or started.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// It is not ours, and nobody allowed it.
    #[error(
        "a restart is needed, and pgdyno does not restart a server that it did not create without consent"
    )]
    NotAllowed,
    /// A sandbox's own trouble.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The owner's command failed.
    #[error("the restart command \"{command}\" failed: {reason}")]
    Command {
        /// As given.
        command: String,
        /// Exit status and output.
        reason: String,
    },
    /// It did not come up.
    #[error("the server did not answer within {limit_s} s after the restart command: {reason}")]
    NotUp {
        /// Seconds waited.
        limit_s: u64,
        /// The last answer.
        reason: String,
    },
}

/// What may be done with the life of a server.
pub enum Control {
    /// A sandbox: everything.
    Sandbox(Box<Sandbox>),
    /// Somebody's server with a command that restarts it, given with consent.
    Command {
        /// Run by `sh -c`.
        restart: String,
        /// To see whether it is up again.
        conninfo: Box<Conninfo>,
    },
    /// Somebody's server: nothing.
    None,
}

impl Control {
    /// Whether a restart is possible at all.
    pub fn can_restart(&self) -> bool {
        !matches!(self, Control::None)
    }

    /// Stops the server, where stopping and starting are apart. Tells whether it is stopped now.
    pub fn stop(&self) -> Result<bool, ControlError> {
        match self {
            Control::Sandbox(sandbox) => {
                sandbox.stop()?;
                Ok(true)
            }
            Control::Command { .. } => Ok(false),
            Control::None => Err(ControlError::NotAllowed),
        }
    }

    /// Starts it after [`Control::stop`], or restarts it where only that is possible.
    pub fn start(&self) -> Result<(), ControlError> {
        match self {
            Control::Sandbox(sandbox) => Ok(sandbox.start()?),
            Control::Command { restart, conninfo } => run_restart(restart, conninfo),
            Control::None => Err(ControlError::NotAllowed),
        }
    }
}

fn run_restart(command: &str, conninfo: &Conninfo) -> Result<(), ControlError> {
    let failed = |reason: String| ControlError::Command {
        command: command.to_owned(),
        reason,
    };
    // Its output is not read: a postmaster that it starts would keep the pipe open for ever. And a Ctrl-C is not for it.
    let status = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .status()
        .map_err(|e| failed(e.to_string()))?;
    if !status.success() {
        return Err(failed(format!("{status}; run it by hand to see its words")));
    }
    let deadline = Instant::now() + COMMAND_LIMIT;
    loop {
        match Server::connect(conninfo) {
            Ok(_) => return Ok(()),
            Err(e) if Instant::now() >= deadline => {
                return Err(ControlError::NotUp {
                    limit_s: COMMAND_LIMIT.as_secs(),
                    reason: e.to_string(),
                });
            }
            Err(_) => pause(Duration::from_millis(200)),
        }
    }
}
