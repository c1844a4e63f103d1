//! Starting and stopping a server: a sandbox, or a server whose owner gave a command for it.

use crate::log;
use crate::sandbox::{Sandbox, SandboxError};
use pgdyno_host::{Directory, LocalHost};
use pgdyno_record::ErrorClass;
use pgdyno_server::Server;
use pgdyno_server::{Conninfo, Postmaster, pause};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to answer after its owner's restart command.
const COMMAND_LIMIT: Duration = Duration::from_secs(300);

/// Why a server could not be stopped or started.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The server is no sandbox, and its restart was not agreed to.
    #[error(
        "a restart is needed, and pgdyno does not restart a server that it did not create without consent"
    )]
    NotAllowed,
    /// A sandbox could not be started or stopped.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The restart command that was given failed.
    #[error("the restart command \"{command}\" failed: {reason}")]
    Command {
        /// The command as it was given.
        command: String,
        /// Exit status and last output of the command.
        reason: String,
    },
    /// The server does not answer after the restart.
    #[error("the server did not answer within {limit_s} s after the restart command: {reason}{log}")]
    NotUp {
        /// Seconds that were waited.
        limit_s: u64,
        /// Error of the last attempt to connect.
        reason: String,
        /// End of the command's log; empty where it may not be read.
        log: String,
    },
}

impl ControlError {
    /// A restart without consent is refused.
    pub fn class(&self) -> ErrorClass {
        match self {
            ControlError::NotAllowed => ErrorClass::Refused,
            ControlError::Sandbox(error) => error.class(),
            ControlError::Command { .. } | ControlError::NotUp { .. } => ErrorClass::Failed,
        }
    }

    /// What mends it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ControlError::NotAllowed => {
                Some("--allow-restart with restart_command in the file's [target] permits it")
            }
            ControlError::Sandbox(error) => error.hint(),
            ControlError::Command { .. } | ControlError::NotUp { .. } => None,
        }
    }
}

/// How a server may be started and stopped.
pub enum Control {
    /// A sandbox, which pgdyno starts and stops.
    Sandbox(Box<Sandbox>),
    /// Somebody's server with a command that restarts it, given with consent.
    Command {
        /// Shell command that restarts the server.
        restart: String,
        /// Connection by which it is seen to be up again.
        conninfo: Box<Conninfo>,
    },
    /// A server that pgdyno neither starts nor stops.
    None,
}

impl Control {
    /// Whether a restart is possible at all.
    pub fn can_restart(&self) -> bool {
        !matches!(self, Control::None)
    }

    /// Stops the server, where stopping and starting are apart. Returns whether it is stopped now.
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
    let log = CurrentLog::of(conninfo);
    let log_end = || log.as_ref().and_then(CurrentLog::end).unwrap_or_default();
    let printed = Printed::new();
    let output = || printed.as_ref().map_or_else(Stdio::null, Printed::stdio);
    // A Ctrl-C is not for it.
    let status = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(output())
        .stderr(output())
        .process_group(0)
        .status()
        .map_err(|e| failed(e.to_string()))?;
    if !status.success() {
        let last = printed.as_ref().and_then(Printed::last);
        let last = last
            .map(|last| format!("; it printed: {last}"))
            .unwrap_or_default();
        return Err(failed(format!("{status}{last}{}", log_end())));
    }
    let deadline = Instant::now() + COMMAND_LIMIT;
    loop {
        match Server::connect(conninfo) {
            Ok(_) => return Ok(()),
            Err(e) if Instant::now() >= deadline => {
                return Err(ControlError::NotUp {
                    limit_s: COMMAND_LIMIT.as_secs(),
                    reason: e.to_string(),
                    log: log_end(),
                });
            }
            Err(_) => pause(Duration::from_millis(200)),
        }
    }
}

/// What a command prints, up to a size. Not a pipe: a postmaster that the command starts keeps its end open for as long as it
/// lives.
struct Printed(File);

impl Printed {
    /// What comes after so many bytes is not kept, and a writer gets an error.
    const BYTES: u64 = 64 * 1024;

    fn new() -> Option<Printed> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create("restart", flags).ok()?);
        file.set_len(Printed::BYTES).ok()?;
        fcntl_add_seals(&file, SealFlags::GROW | SealFlags::SHRINK).ok()?;
        Some(Printed(file))
    }

    fn stdio(&self) -> Stdio {
        self.0.try_clone().map_or_else(|_| Stdio::null(), Stdio::from)
    }

    fn last(&self) -> Option<String> {
        let mut bytes = vec![0; usize::try_from(Printed::BYTES).unwrap_or(0)];
        self.0.read_exact_at(&mut bytes, 0).ok()?;
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        log::last_lines(&String::from_utf8_lossy(&bytes[..end]))
    }
}

/// The log that a server on this machine writes to, and what its directory held before the restart.
struct CurrentLog {
    path: PathBuf,
    /// Kept open: its name may be another file's by the time that it is read.
    log: File,
    before: u64,
    data: Directory,
    /// Bytes of the other files in its directory, by name: a start may go on in one of them. `None` where there are too many.
    beside: Option<BTreeMap<OsString, u64>>,
}

impl CurrentLog {
    /// In the data directory: the server's logging process writes there which files it writes.
    const NAMES: &str = "current_logfiles";
    /// Bytes of it: three lines with a path each.
    const NAMES_MAX: u64 = 16 * 1024;
    /// A directory with more files is not read: a year of hourly ones is below it.
    const BESIDE_MAX: usize = 10_000;
    /// How long the reason of a failed start is waited for: it is written within milliseconds, on a busy machine later.
    const PATIENCE: Duration = Duration::from_secs(3);
    const PAUSE: Duration = Duration::from_millis(50);

    /// Asks the server, while it can be asked. One that may not be read is none.
    fn of(conninfo: &Conninfo) -> Option<CurrentLog> {
        if !conninfo.is_here() {
            return None;
        }
        let sql = "SELECT pg_catalog.current_setting('data_directory'), pg_catalog.pg_current_logfile()";
        let rows = Server::connect(conninfo)
            .ok()?
            .rows("asking for the log", sql)
            .ok()?;
        let [Some(directory), Some(file)] = rows.first()?.as_slice() else {
            return None;
        };
        CurrentLog::found(Path::new(directory), file)
    }

    /// The server chooses both names, so the directory is proven to be a running server's, and the log is its owner's.
    fn found(directory: &Path, file: &str) -> Option<CurrentLog> {
        Postmaster::of_data(&LocalHost::new(), directory).ok()?;
        let data = Directory::open(directory).ok()?;
        let path = directory.join(file);
        let (above, name) = Directory::above(&path).ok()?;
        let log = above.file_of(name, data.owner().uid).ok()?;
        let before = log.metadata().ok()?.len();
        let entries = above.entries().ok();
        let entries = entries.filter(|entries| entries.len() <= CurrentLog::BESIDE_MAX);
        let size = |(name, _): (OsString, _)| Some((name.clone(), above.size(name).ok()?));
        let beside = entries.map(|entries| entries.into_iter().filter_map(size).collect());
        Some(CurrentLog {
            path,
            log,
            before,
            data,
            beside,
        })
    }

    /// What it says since, as the end of a sentence. The logging process outlives a server that did not start, and
    /// writes its last lines a moment after the restart command has failed.
    fn end(&self) -> Option<String> {
        let begun = Instant::now();
        loop {
            let (path, text) = self.since();
            let runs = || Postmaster::of_data(&LocalHost::new(), self.data.path()).is_ok();
            if log::has_reason(&text) || runs() || begun.elapsed() >= CurrentLog::PATIENCE {
                let text = log::last_lines(&text)?;
                return Some(format!("; the server's log {} ends with: {text}", path.display()));
            }
            pause(CurrentLog::PAUSE);
        }
    }

    /// What was written since, and the file that it ends in.
    fn since(&self) -> (PathBuf, String) {
        let text = log::since(&self.log, self.before).unwrap_or_default();
        match self.next() {
            Some((path, later)) => (path, text + &later),
            None => (self.path.clone(), text),
        }
    }

    /// The file that the server went on with, if it is another one, and what it has written there. By default each start begins a
    /// file; and somebody may have moved the one that was open.
    fn next(&self) -> Option<(PathBuf, String)> {
        let names = self.data.text(CurrentLog::NAMES, CurrentLog::NAMES_MAX).ok()?;
        let (_, file) = names.lines().next()?.split_once(' ')?;
        let path = self.data.path().join(file);
        let (above, name) = Directory::above(&path).ok()?;
        let log = above.file_of(&name, self.data.owner().uid).ok()?;
        let (new, old) = (log.metadata().ok()?, self.log.metadata().ok()?);
        if (new.dev(), new.ino()) == (old.dev(), old.ino()) {
            return None;
        }
        let before = match path == self.path {
            true => 0,
            false => self.beside.as_ref()?.get(&name).copied().unwrap_or(0),
        };
        Some((path, log::since(&log, before)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use postgres::Config;
    use std::fs;
    use std::os::unix::fs::{chown, symlink};

    /// The server names its log: a file of root's is not shown, nor is one that a proven server is not behind.
    #[test]
    fn log_is_one_of_the_owner_of_a_running_servers_data() {
        const SERVER: u32 = 12_345;
        let dir = tempfile::tempdir().unwrap();
        let (data, secret) = (dir.path().join("data"), dir.path().join("secret"));
        fs::create_dir(&data).unwrap();
        fs::write(&secret, "FATAL:  root only\n").unwrap();
        fs::write(data.join("log"), "FATAL:  old\n").unwrap();
        assert!(CurrentLog::found(&data, "log").is_none(), "no server runs");
        let mut server = Command::new("cat")
            .current_dir(&data)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .uid(SERVER)
            .spawn()
            .unwrap();
        fs::write(data.join("postmaster.pid"), format!("{}\n", server.id())).unwrap();
        for path in [&data, &data.join("log"), &data.join("postmaster.pid")] {
            chown(path, Some(SERVER), Some(SERVER)).unwrap();
        }
        let log = CurrentLog::found(&data, "log").unwrap();
        assert_eq!(log.end(), None);
        symlink(dir.path(), data.join("way")).unwrap();
        for file in ["../secret", "way/secret", &secret.to_string_lossy()] {
            assert!(CurrentLog::found(&data, file).is_none(), "{file}");
        }
        // What has its name meanwhile is not shown.
        fs::write(data.join("log"), "FATAL:  old\nFATAL:  new\n").unwrap();
        fs::rename(data.join("log"), data.join("moved")).unwrap();
        symlink(&secret, data.join("log")).unwrap();
        let message = log.end().unwrap();
        assert!(message.ends_with("ends with: new"), "{message}");
        server.kill().unwrap();
        server.wait().unwrap();
    }

    /// The server has ended, and its logging process has not.
    #[test]
    fn last_lines_of_a_server_that_did_not_start_are_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(&path, "LOG:  shutting down\n").unwrap();
        let log = CurrentLog {
            log: File::open(&path).unwrap(),
            before: 0,
            data: Directory::open(dir.path()).unwrap(),
            beside: None,
            path: path.clone(),
        };
        let (begins, begun) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            begins.send(()).unwrap();
            log.end()
        });
        begun.recv().unwrap();
        fs::write(&path, "LOG:  shutting down\nFATAL:  could not load it\n").unwrap();
        let message = reader.join().unwrap().unwrap();
        assert!(message.ends_with("ends with: could not load it"), "{message}");
    }

    #[test]
    fn a_failed_restart_command_is_shown_with_its_last_lines() {
        let mut config = Config::new();
        config.host("127.0.0.1").port(1).user("nobody");
        let conninfo = Conninfo::from_config(config);
        let run = |command: &str| run_restart(command, &conninfo).unwrap_err().to_string();
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
