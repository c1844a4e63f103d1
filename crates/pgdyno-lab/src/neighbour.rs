//! A neighbour: a program that runs beside the load and takes memory, CPU or disk from it, with or
//! without a control group.

use crate::file::ServerPart;
use pgdyno_host::{Cgroup, Limits, LocalHost, size_bytes};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Why a neighbour could not be started.
#[derive(Debug, thiserror::Error)]
pub enum NeighbourError {
    /// Its command could not be started.
    #[error("the neighbour \"{command}\" could not be started: {source}")]
    Start {
        /// The command as the file has it.
        command: String,
        /// The error of the system call.
        source: io::Error,
    },
    /// The memory of the neighbour could not be limited.
    #[error("the neighbour's memory could not be limited to {limit}: {reason}")]
    Limit {
        /// The limit as the file has it: "512MB".
        limit: String,
        /// Error of the control group, as text.
        reason: String,
    },
}

/// A shell's script: waits for a line, then becomes the command that is its first argument.
const BEGIN_ON_LINE: &str = "read -r _ && exec sh -c \"$0\"";

/// A running neighbour; it ends, with all its children, when this is dropped.
pub(crate) struct Neighbour {
    child: Child,
    group: Option<String>,
}

impl Neighbour {
    /// Starts it by `sh -c`, in a process group of its own, with these variables set, or removed
    /// (`None`); `None` where there is none.
    pub(crate) fn start(
        part: &ServerPart,
        variables: &[(&str, Option<OsString>)],
    ) -> Result<Option<Neighbour>, NeighbourError> {
        let Some(command) = part.neighbour.as_deref().filter(|command| *command != "none") else {
            return Ok(None);
        };
        let limit = part.neighbour_memory.as_deref();
        let failed = |source| NeighbourError::Start {
            command: command.to_owned(),
            source,
        };
        let group = limit.map(|_| group_name());
        let entrances = limit
            .zip(group.as_deref())
            .map(|(limit, group)| limited(limit, group))
            .transpose()?;
        // Should this process be killed, the shell goes with it. It begins when it gets a line: in
        // its group.
        let mut shell = Command::new("setpriv");
        for (name, value) in variables {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        let mut child = shell
            .args(["--pdeathsig", "KILL", "sh", "-c", BEGIN_ON_LINE, command])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let begin = child.stdin.take();
        let neighbour = Neighbour { child, group };
        for mut entrance in entrances.into_iter().flatten() {
            let pid = neighbour.child.id();
            write!(entrance, "{pid}").map_err(|error| NeighbourError::Limit {
                limit: limit.unwrap_or_default().to_owned(),
                reason: error.to_string(),
            })?;
        }
        if let Some(mut begin) = begin {
            begin.write_all(b"\n").map_err(failed)?;
        }
        Ok(Some(neighbour))
    }

    /// How its command has ended by itself, as a warning; `None` while it runs.
    pub(crate) fn ended(&self) -> Option<String> {
        // Its number stays taken: its group is killed by it.
        self.state(WaitIdOptions::NOHANG)
    }

    fn state(&self, options: WaitIdOptions) -> Option<String> {
        let pid = Pid::from_raw(self.child.id().cast_signed())?;
        let options = options | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(pid), options).ok()??;
        let how = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => format!("with exit status {code}"),
            (None, Some(signal)) => format!("by signal {signal}"),
            (None, None) => "by itself".to_owned(),
        };
        Some(format!("a neighbour ended {how} before the load did"))
    }
}

/// A name of its own for each: several may run at once.
fn group_name() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("neighbour-{}-{number}", std::process::id())
}

/// Where processes enter a group of that memory.
fn limited(limit: &str, group: &str) -> Result<Vec<File>, NeighbourError> {
    let wrong = |reason: String| NeighbourError::Limit {
        limit: limit.to_owned(),
        reason,
    };
    let limits = Limits {
        memory_bytes: Some(size_bytes(limit).map_err(wrong)?),
        ..Limits::default()
    };
    Cgroup::create(&LocalHost::new(), group, &limits, None)
        .and_then(|group| group.open_entrances())
        .map_err(|error| wrong(error.to_string()))
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            // One that has ended by itself needs no signal.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.child.wait();
        if let Some(name) = self.group.take() {
            let _ = Cgroup::remove(&LocalHost::new(), &name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbour_that_ends_by_itself_is_a_warning() {
        let start = |command: &str| {
            let part = ServerPart {
                neighbour: Some(command.to_owned()),
                ..ServerPart::default()
            };
            Neighbour::start(&part, &[]).unwrap().unwrap()
        };
        assert_eq!(start("sleep 100").ended(), None);
        for (command, how) in [
            ("true", "with exit status 0"),
            ("= 'while'", "with exit status 127"),
            ("kill -KILL $$", "by signal 9"),
        ] {
            let neighbour = start(command);
            let waited = neighbour.state(WaitIdOptions::empty());
            assert_eq!(
                waited,
                Some(format!("a neighbour ended {how} before the load did"))
            );
            assert_eq!(neighbour.ended(), waited);
        }
    }
}
