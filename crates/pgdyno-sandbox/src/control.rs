//! Starting and stopping a server: a sandbox, or one that pgdyno did not create, by what runs it.

use crate::current_log::CurrentLog;
use crate::manager::{Act, Manager, owner_of};
use crate::printed::Printed;
use crate::sandbox::process::{ask, command};
use crate::sandbox::{Sandbox, SandboxError};
use crate::started_with;
use pgdyno_host::LocalHost;
use pgdyno_record::ErrorClass;
use pgdyno_server::{Conninfo, NoPostmaster, Postmaster, Server, ServerError, pause};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// How long a server may take to answer after it was started.
const ANSWERS_WITHIN: Duration = Duration::from_secs(300);
/// How long its first process may be missing meanwhile: a manager may return before it is there.
const APPEARS_WITHIN: Duration = Duration::from_secs(10);
/// How long one that a command restarts may go on as before, once the command has ended.
const RESTARTS_WITHIN: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Why a server could not be stopped or started.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The server is not a sandbox, and its restart was not agreed to.
    #[error(
        "a restart is needed, and pgdyno does not restart a server that it did not create without consent"
    )]
    NotAllowed,
    /// A sandbox could not be started or stopped.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// A command that stops, starts or restarts the server failed.
    #[error("\"{command}\" failed: {reason}")]
    Command {
        /// The command as a person would write it.
        command: String,
        /// Exit status and last output of the command.
        reason: String,
    },
    /// The server is run by something else than when this was found.
    #[error("the server is restarted by \"{now}\" now, and was by \"{was}\"")]
    OtherManager {
        /// The command as it was found.
        was: String,
        /// The command as it is now.
        now: String,
    },
    /// What restarted the server when this was found does not any more, and nothing else is known
    /// that would.
    #[error("\"{was}\" does not restart the server any more: {why}; restart it yourself")]
    NoManager {
        /// The command as it was found.
        was: String,
        /// What is found now.
        why: String,
    },
    /// The server still runs after it was stopped.
    #[error("the server still runs after \"{command}\", as process {pid}")]
    StillRuns {
        /// The command that stopped it.
        command: String,
        /// Its first process.
        pid: u32,
    },
    /// The server does not answer after it was started.
    #[error("the server did not answer within {limit_s} s after \"{command}\": {reason}{log}")]
    NotUp {
        /// Seconds that were waited.
        limit_s: u64,
        /// The command that started it.
        command: String,
        /// Error of the last attempt to connect.
        reason: String,
        /// End of the server's log; empty where it may not be read.
        log: String,
    },
    /// A command that restarts the server ended, and has not restarted it.
    #[error(
        "\"{command}\" has not restarted the server within {limit_s} s: the one that answers was started at {since}"
    )]
    NotRestarted {
        /// The command as its owner wrote it.
        command: String,
        /// Seconds that were waited.
        limit_s: u64,
        /// When the server was started, as it says.
        since: String,
    },
    /// The options that a stopped server was started with are unknown.
    #[error("{path}: {reason}")]
    Options {
        /// The data directory.
        path: PathBuf,
        /// What is wrong there.
        reason: String,
    },
}

impl ControlError {
    /// A restart without consent is refused.
    pub fn class(&self) -> ErrorClass {
        match self {
            ControlError::NotAllowed => ErrorClass::Refused,
            ControlError::Sandbox(error) => error.class(),
            ControlError::Command { .. }
            | ControlError::OtherManager { .. }
            | ControlError::NoManager { .. }
            | ControlError::StillRuns { .. }
            | ControlError::NotRestarted { .. }
            | ControlError::NotUp { .. }
            | ControlError::Options { .. } => ErrorClass::Failed,
        }
    }

    /// What mends it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ControlError::NotAllowed => Some("--allow-restart permits it"),
            ControlError::Sandbox(error) => error.hint(),
            _ => None,
        }
    }
}

/// How a server may be started and stopped.
pub enum Control {
    /// A sandbox, which pgdyno starts and stops.
    Sandbox(Box<Sandbox>),
    /// Somebody's server, with consent.
    Managed(Box<Managed>),
    /// A server that pgdyno neither starts nor stops.
    None,
}

/// How a server that does not run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Down {
    /// It was stopped in order: its `postmaster.pid` is gone.
    Stopped,
    /// Its processes ended without that.
    Died,
}

/// Somebody's server, and what starts and stops it.
pub struct Managed {
    manager: Manager,
    /// Connection by which it is seen to be up again.
    conninfo: Conninfo,
    /// The data directory, where it is on this host.
    data: Option<PathBuf>,
    /// The log that it wrote to when it was stopped.
    log: Mutex<Option<CurrentLog>>,
}

impl Managed {
    /// A server by its connection and, where it is on this host, its data directory.
    pub fn new(manager: Manager, conninfo: Conninfo, data: Option<PathBuf>) -> Managed {
        Managed {
            manager,
            conninfo,
            data,
            log: Mutex::new(None),
        }
    }

    fn postmaster(&self) -> Option<Result<Postmaster, NoPostmaster>> {
        let data = self.data.as_deref()?;
        Some(Postmaster::of_data(&LocalHost::new(), data))
    }

    /// How it ended, where it is proven that it does not run.
    fn down(&self) -> Option<Down> {
        match self.postmaster()? {
            Err(NoPostmaster::NoFile(_)) => Some(Down::Stopped),
            Err(NoPostmaster::NotRunning(_)) => Some(Down::Died),
            _ => None,
        }
    }

    fn stop(&self) -> Result<bool, ControlError> {
        self.keep_log();
        if !self.manager.can_stop() {
            return Ok(false);
        }
        // One that is stopped already, some managers would not stop again.
        if self.down().is_some() {
            return Ok(true);
        }
        self.check_manager()?;
        self.run(Act::Stop)?;
        match self.postmaster() {
            Some(Ok(Postmaster { pid, .. })) => Err(ControlError::StillRuns {
                command: self.manager.to_string(),
                pid,
            }),
            _ => Ok(true),
        }
    }

    /// What was found may have been long ago, by the process that wrote a journal.
    fn check_manager(&self) -> Result<(), ControlError> {
        // Its owner says by what, whatever else is found.
        if !self.manager.commands().is_empty() {
            return Ok(());
        }
        let deadline = Instant::now() + APPEARS_WITHIN;
        loop {
            let (Some(data), Some(Ok(first))) = (&self.data, self.postmaster()) else {
                return Ok(());
            };
            match Manager::find(&LocalHost::new(), first.pid, data) {
                Ok(found) if found.is_as(&self.manager) => return Ok(()),
                Ok(found) => {
                    return Err(ControlError::OtherManager {
                        was: self.manager.to_string(),
                        now: found.to_string(),
                    });
                }
                Err(why) if Instant::now() >= deadline => {
                    return Err(ControlError::NoManager {
                        was: self.manager.to_string(),
                        why,
                    });
                }
                // Who starts it is its parent until it is up.
                Err(_) => pause(LOOK_AGAIN),
            }
        }
    }

    /// When a server that only a command restarts was started, where it answers: that the command
    /// has ended proves nothing.
    fn started_at(&self) -> Option<String> {
        let mut server = Server::connect(&self.conninfo)
            .ok()
            .filter(|_| !self.manager.can_stop())?;
        let sql = "SELECT pg_postmaster_start_time()";
        server.value("asking when it was started", sql).ok().flatten()
    }

    /// Its log is asked of it while it can be.
    fn keep_log(&self) {
        let data = self.data.as_deref();
        let log = data.and_then(|data| CurrentLog::of(&self.conninfo, data));
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = log;
    }

    fn start(&self) -> Result<(), ControlError> {
        let begun = SystemTime::now();
        let log = || {
            let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
            let printed = || match &self.manager {
                Manager::Container(container) => container.printed_since(begun),
                _ => None,
            };
            let end = log.as_ref().and_then(CurrentLog::end).or_else(printed);
            end.unwrap_or_default()
        };
        let before = self.started_at();
        let (mut since, mut is_started) = (Instant::now(), false);
        loop {
            let down = self.down();
            let is_there = self.manager.can_stop() && matches!(self.postmaster(), Some(Ok(_)));
            // Also one that was there, and was about to end.
            if !is_started && !is_there {
                self.manager.clear_failures();
                match self.run(Act::Start) {
                    // Another start was under way.
                    Err(_) if self.manager.can_stop() && matches!(self.postmaster(), Some(Ok(_))) => {}
                    // Until its parent has taken note of its end, a process that was killed is
                    // still there for a new server.
                    Err(_) if down == Some(Down::Died) && since.elapsed() < APPEARS_WITHIN => {
                        pause(LOOK_AGAIN);
                        continue;
                    }
                    Err(error) => return Err(with_log(error, &log())),
                    Ok(()) => {}
                }
                (since, is_started) = (Instant::now(), true);
            }
            let error = match Server::connect(&self.conninfo) {
                Ok(_) if before.is_some() && self.started_at() == before => None,
                // Who starts it need not have a password.
                Ok(_) | Err(ServerError::Login { .. }) => return Ok(()),
                Err(error) => Some(error),
            };
            let waited = since.elapsed();
            let Some(error) = error else {
                if waited >= RESTARTS_WITHIN {
                    return Err(ControlError::NotRestarted {
                        command: self.manager.to_string(),
                        limit_s: waited.as_secs(),
                        since: before.unwrap_or_default(),
                    });
                }
                pause(LOOK_AGAIN);
                continue;
            };
            if waited >= ANSWERS_WITHIN || down.is_some() && waited >= APPEARS_WITHIN {
                return Err(ControlError::NotUp {
                    limit_s: waited.as_secs(),
                    command: self.manager.to_string(),
                    reason: error.to_string(),
                    log: log(),
                });
            }
            pause(LOOK_AGAIN);
        }
    }

    fn run(&self, act: Act) -> Result<(), ControlError> {
        let shown = self.manager.line(act.word());
        let command = self.manager.command(act).map_err(|error| ControlError::Command {
            command: shown.clone(),
            reason: error.to_string(),
        })?;
        run_shown(command, &shown)
    }
}

impl Control {
    /// Whether a restart is possible at all.
    pub fn can_restart(&self) -> bool {
        !matches!(self, Control::None)
    }

    /// Whether the server can be stopped, and started later.
    pub fn can_stop(&self) -> bool {
        match self {
            Control::Sandbox(_) => true,
            Control::Managed(managed) => managed.manager.can_stop(),
            Control::None => false,
        }
    }

    /// How a server that is not a sandbox ended, where it is proven not to run, and can be started.
    pub fn down(&self) -> Option<Down> {
        match self {
            Control::Managed(managed) => managed.down(),
            Control::Sandbox(_) | Control::None => None,
        }
    }

    /// What restarts a server that is not a sandbox, where that is agreed to.
    pub fn manager(&self) -> Option<&Manager> {
        match self {
            Control::Managed(managed) => Some(&managed.manager),
            Control::Sandbox(_) | Control::None => None,
        }
    }

    /// Stops the server, where stopping and starting are apart. Returns whether it is stopped now.
    pub fn stop(&self) -> Result<bool, ControlError> {
        match self {
            Control::Sandbox(sandbox) => {
                sandbox.stop()?;
                Ok(true)
            }
            Control::Managed(managed) => managed.stop(),
            Control::None => Err(ControlError::NotAllowed),
        }
    }

    /// Starts it after [`Control::stop`], or restarts it where only that is possible.
    pub fn start(&self) -> Result<(), ControlError> {
        match self {
            Control::Sandbox(sandbox) => Ok(sandbox.start()?),
            Control::Managed(managed) => managed.start(),
            Control::None => Err(ControlError::NotAllowed),
        }
    }

    /// What a parameter would be if the stopped server were started now.
    ///
    /// # Errors
    ///
    /// The server cannot be stopped, or does not compute the parameter.
    pub fn computed_parameter(&self, name: &str) -> Result<String, ControlError> {
        match self {
            Control::Sandbox(sandbox) => Ok(sandbox.computed_parameter(name)?),
            Control::Managed(managed) => match (&managed.manager, &managed.data) {
                (Manager::Container(container), Some(data)) => container
                    .computed_parameter(data, name)
                    .map_err(|error| wrong_options(data, error.to_string())),
                (manager, Some(data)) if manager.can_stop() => computed_parameter(data, name),
                _ => Err(ControlError::NotAllowed),
            },
            Control::None => Err(ControlError::NotAllowed),
        }
    }
}

fn wrong_options(data: &Path, reason: String) -> ControlError {
    ControlError::Options {
        path: data.to_owned(),
        reason,
    }
}

/// `postgres -C NAME` with the options that the server was started with, as its owner.
fn computed_parameter(data: &Path, name: &str) -> Result<String, ControlError> {
    let wrong = |reason: String| wrong_options(data, reason);
    let text = started_with::read(data).map_err(|error| wrong(error.to_string()))?;
    let (program, arguments) = started_with::options_in(&text).map_err(|error| wrong(error.to_string()))?;
    let owner = owner_of(data).map_err(|error| wrong(error.to_string()))?;
    let mut command =
        command(Path::new(program), owner.as_ref(), &[]).map_err(|error| wrong(error.to_string()))?;
    command.env("PGDATA", data).args(arguments).args(["-C", name]);
    let output = ask("postgres -C", command)?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn with_log(error: ControlError, log: &str) -> ControlError {
    match error {
        ControlError::Command { command, reason } => ControlError::Command {
            command,
            reason: reason + log,
        },
        other => other,
    }
}

/// Runs a command to its end; a failure carries what it printed last.
fn run_shown(mut command: Command, shown: &str) -> Result<(), ControlError> {
    let failed = |reason: String| ControlError::Command {
        command: shown.to_owned(),
        reason,
    };
    let printed = Printed::new();
    let output = || printed.as_ref().map_or_else(Stdio::null, Printed::stdio);
    // A Ctrl-C is not for it.
    let status = command
        .stdin(Stdio::null())
        .stdout(output())
        .stderr(output())
        .process_group(0)
        .status()
        .map_err(|error| failed(error.to_string()))?;
    if status.success() {
        return Ok(());
    }
    let last = printed.as_ref().and_then(Printed::last);
    let last = last.map(|last| format!("; it printed: {last}"));
    Err(failed(format!("{status}{}", last.unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_restart_command_is_shown_with_its_last_lines() {
        let run = |command: &str| {
            let mut shell = Command::new("sh");
            shell.args(["-c", command]);
            run_shown(shell, command).unwrap_err().to_string()
        };
        let message = run("echo waiting; echo 'pg_ctl: could not start server' >&2; exit 3");
        assert!(
            message.contains("exit status: 3; it printed: waiting; pg_ctl: could not start server"),
            "{message}"
        );
        assert!(run("exit 4").ends_with("exit status: 4"), "{}", run("exit 4"));
        // More than is kept is no trouble for whoever prints it, but for an error.
        let message = run("head -c 1000000 /dev/zero | tr '\\0' x; exit 5");
        assert!(
            message.contains("exit status: 5; it printed: xxx") && message.len() < 1000,
            "{message}"
        );
    }
}
