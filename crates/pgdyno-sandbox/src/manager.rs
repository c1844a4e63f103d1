//! What starts and stops a server that pgdyno did not create: found from its first process, or
//! given by its owner.

pub(crate) mod container;
mod find;
mod unit;

use crate::sandbox::process::{WAIT_S, command, command_with_groups};
use crate::{programs, started_with};
use container::Container;
use pgdyno_host::{Directory, LocalHost};
use pgdyno_server::User;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
pub(crate) use unit::Unit;

/// What starts and stops a server that pgdyno did not create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Manager {
    /// A shell command of its owner's that restarts it. It cannot be stopped by itself.
    Command(String),
    /// Shell commands of its owner's that stop and start it.
    Commands(Commands),
    /// A unit of systemd.
    Unit(Unit),
    /// A cluster of Debian's postgresql-common, started without systemd.
    Cluster(Cluster),
    /// PostgreSQL's own pg_ctl.
    PgCtl(PgCtl),
    /// A container of docker or podman.
    Container(Container),
}

/// Shell commands that stop and start a server, as "sv down postgresql" and "sv up postgresql".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commands {
    stop: String,
    start: String,
}

/// What an owner's commands are to be; one or two of another kind are missing.
pub const COMMANDS_EXPECTED: &str =
    "expected a command that restarts the server, or both one that stops and one that starts it";

/// A cluster of Debian's postgresql-common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// Major version, as "17".
    version: String,
    /// Name of the cluster, as "main".
    name: String,
}

/// A server that was started by pg_ctl.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PgCtl {
    /// Directory of pg_ctl.
    bin: PathBuf,
    /// The server's data directory.
    data: PathBuf,
    /// The file that it writes its messages to; `None` where its logging collector takes them.
    log: Option<PathBuf>,
    /// Numbers of the groups that it is in.
    groups: Vec<u32>,
    /// Variables of its environment that change how it runs.
    environment: BTreeMap<String, String>,
}

/// What a manager is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Stop,
    Start,
}

impl Act {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Act::Stop => "stop",
            Act::Start => "start",
        }
    }
}

impl Manager {
    /// Commands of its owner's: one that restarts the server, or one that stops and one that starts
    /// it; `None` without any.
    ///
    /// # Errors
    ///
    /// [`COMMANDS_EXPECTED`], where they are others.
    pub fn given(
        restart: Option<&str>,
        stop: Option<&str>,
        start: Option<&str>,
    ) -> Result<Option<Manager>, &'static str> {
        match (restart, stop, start) {
            (None, None, None) => Ok(None),
            (Some(restart), None, None) => Ok(Some(Manager::Command(restart.to_owned()))),
            (None, Some(stop), Some(start)) => Ok(Some(Manager::Commands(Commands {
                stop: stop.to_owned(),
                start: start.to_owned(),
            }))),
            _ => Err(COMMANDS_EXPECTED),
        }
    }

    /// Commands of its owner's; none where it was found.
    pub fn commands(&self) -> Vec<&str> {
        match self {
            Manager::Command(restart) => vec![restart],
            Manager::Commands(Commands { stop, start }) => vec![stop, start],
            Manager::Unit(_) | Manager::Cluster(_) | Manager::PgCtl(_) | Manager::Container(_) => Vec::new(),
        }
    }

    /// Whether the server can be stopped and started apart.
    pub fn can_stop(&self) -> bool {
        !matches!(self, Manager::Command(_))
    }

    /// What kind of thing it is.
    pub fn kind(&self) -> &'static str {
        match self {
            Manager::Command(_) => "command",
            Manager::Commands(_) => "commands",
            Manager::Unit(_) => "systemd unit",
            Manager::Cluster(_) => "Debian cluster",
            Manager::PgCtl(_) => "pg_ctl",
            Manager::Container(_) => "container",
        }
    }

    /// Whether both stop and start the same server in the same way.
    pub(crate) fn is_as(&self, other: &Manager) -> bool {
        match (self, other) {
            (Manager::PgCtl(one), Manager::PgCtl(two)) => (&one.bin, &one.data) == (&two.bin, &two.data),
            (Manager::Container(one), Manager::Container(two)) => one.is_as(two),
            _ => self == other,
        }
    }

    /// The command that a person would stop, start or restart the server with.
    pub(crate) fn line(&self, word: &str) -> String {
        match self {
            Manager::Command(restart) => restart.clone(),
            Manager::Commands(Commands { stop, start }) => match word {
                "stop" => stop.clone(),
                "start" => start.clone(),
                _ => format!("{stop}; {start}"),
            },
            Manager::Unit(unit) => unit.line(word),
            Manager::Cluster(Cluster { version, name }) => format!("pg_ctlcluster {version} {name} {word}"),
            Manager::PgCtl(pg_ctl) => {
                let program = pg_ctl.bin.join("pg_ctl");
                format!("{} -D {} {word}", program.display(), pg_ctl.data.display())
            }
            Manager::Container(container) => container.line(word),
        }
    }

    /// The command that stops or starts the server. A restart command does both when it is to
    /// start, and there is none that stops.
    ///
    /// # Errors
    ///
    /// The data directory cannot be read.
    pub(crate) fn command(&self, act: Act) -> io::Result<Command> {
        match self {
            Manager::Command(restart) => Ok(shell(restart)),
            Manager::Commands(Commands { stop, start }) => Ok(shell(match act {
                Act::Stop => stop,
                Act::Start => start,
            })),
            Manager::Unit(unit) => unit.systemctl(&[act.word()]),
            Manager::Cluster(cluster) => cluster.command(act),
            Manager::PgCtl(pg_ctl) => pg_ctl.command(act),
            Manager::Container(container) => container.command(act),
        }
    }

    /// Makes the next start one of its own: settings with which the server does not start, and many
    /// restarts, would use up those that systemd allows in a while.
    pub(crate) fn clear_failures(&self) {
        if let Manager::Unit(unit) = self
            && let Ok(command) = unit.systemctl(&["reset-failed"])
        {
            // It fails where there is nothing to clear.
            let _ = programs::answer(command);
        }
    }
}

/// A shell for an owner's command, in a session without a terminal: who would ask there for a
/// password fails, and says so.
fn shell(text: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "setsid sh -c \"$0\"; exit $?", text]);
    shell
}

/// The command that a person would restart the server with.
impl Display for Manager {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line("restart"))
    }
}

impl Cluster {
    fn command(&self, act: Act) -> io::Result<Command> {
        let mut command = command(Path::new(find::PG_CTLCLUSTER), None, &[])?;
        command.args(["--skip-systemctl-redirect", &self.version, &self.name, act.word()]);
        if act == Act::Stop {
            command.args(["--mode", "fast"]);
        }
        Ok(command)
    }
}

impl PgCtl {
    fn command(&self, act: Act) -> io::Result<Command> {
        let owner = owner_of(&self.data)?;
        let mut command = command_with_groups(&self.bin.join("pg_ctl"), owner.as_ref(), &self.groups, &[])?;
        command
            .env_remove("LC_ALL")
            .envs(&self.environment)
            // The options have it already; named here it would be added to them at each start.
            .env("PGDATA", &self.data)
            .args(["--wait", "--timeout", &WAIT_S.to_string()]);
        match act {
            Act::Stop => command.args(["--mode", "fast", "stop"]),
            // No restart, which would use these options too: by a postmaster.pid that a killed
            // server has left, it sends a signal to whatever process has that number now.
            Act::Start => {
                let text = started_with::read(&self.data)?;
                let (_, arguments) = started_with::options_in(&text)?;
                command.arg("--options").arg(started_with::quoted(&arguments));
                if let Some(log) = &self.log {
                    command.arg("--log").arg(log);
                }
                command.arg("start")
            }
        };
        Ok(command)
    }
}

/// The owner of a data directory, as whom its server's programs run; `None` where that is this
/// process's user.
pub(crate) fn owner_of(data: &Path) -> io::Result<Option<User>> {
    let uid = Directory::open(data)?.owner().uid;
    // PostgreSQL does not run as root, and neither does what its owner may have put in the place of
    // its programs.
    if uid == 0 {
        return Err(io::Error::other(format!("{} belongs to root", data.display())));
    }
    if User::is_own(uid) {
        return Ok(None);
    }
    let user = User::numbered(&LocalHost::new(), uid);
    let none = || {
        io::Error::other(format!(
            "/etc/passwd has no user {uid}, who owns {}",
            data.display()
        ))
    };
    user.map(Some).ok_or_else(none)
}
