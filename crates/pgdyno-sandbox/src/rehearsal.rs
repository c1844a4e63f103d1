//! A throw-away server of a server's own programs, to see whether that server would start with
//! other settings.

use crate::log;
use crate::sandbox::{SandboxError, process};
use pgdyno_host::{Directory, HostAccess, LocalHost, Owner, USUAL_MODE, is_alive, make_directory};
use pgdyno_server::literal;
use pgdyno_server::pause;
use pgdyno_server::{Postmaster, User};
use pgdyno_server::{Server, ServerError};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A new server with empty tables starts and stops within this time, or something is wrong with the
/// machine.
const STARTS_WITHIN: Duration = Duration::from_secs(60);
/// What each rehearsal's directory is named, with the number of its process.
const NAME: &str = "rehearsal-";
const LOG: &str = "log";
/// A start without a failure writes ten lines.
const LOG_READ_MAX: usize = 64 << 10;
/// The server's message for a start that has succeeded.
const READY: &[u8] = b"database system is ready to accept connections";
/// Parameters of which a throw-away server has its own value: where its files and sockets are, what
/// it writes, and pages that the running server has taken.
const OWN: [&str; 16] = [
    "archive_command",
    "archive_library",
    "config_file",
    "data_directory",
    "external_pid_file",
    "fsync",
    "hba_file",
    "huge_pages",
    "ident_file",
    "listen_addresses",
    "log_destination",
    "logging_collector",
    "port",
    "shared_memory_type",
    "unix_socket_directories",
    "unix_socket_group",
];
/// Parameters beside those of a start that decide whether a server starts.
const ALSO: [&str; 3] = ["dynamic_library_path", "extension_control_path", "summarize_wal"];

/// Whether a throw-away server can take a parameter as the server itself would.
pub fn is_rehearsed(name: &str) -> bool {
    !OWN.contains(&name)
}

/// Whether a parameter that takes no restart decides whether a server starts.
pub fn is_of_start(name: &str) -> bool {
    ALSO.contains(&name)
}

/// What of a server's start a throw-away server cannot have, as text; empty where it starts as the
/// server itself would. For a role that sees `data_directory`, and so all settings.
///
/// # Errors
///
/// A server that cannot be asked.
pub fn start_doubts(server: &mut Server) -> Result<Vec<&'static str>, ServerError> {
    let sql = "SELECT EXISTS (SELECT FROM pg_catalog.pg_settings WHERE pending_restart), \
        pg_catalog.pg_is_in_recovery()";
    let rows = server.rows("reading whether a start can be tried", sql)?;
    let is = |at: usize| rows.first().and_then(|row| row.get(at)?.as_deref()) == Some("t");
    let doubts = [
        (is(0), "settings in its files wait for a restart already"),
        (
            is(1),
            "it is a standby, which also compares settings with those of its primary",
        ),
    ];
    Ok(doubts
        .into_iter()
        .filter_map(|(holds, why)| holds.then_some(why))
        .collect())
}

/// Settings that a server has been started with and that decide whether it starts, as names and
/// values with units. What the role may not see is missing.
///
/// # Errors
///
/// A server that cannot be asked.
pub fn start_settings(server: &mut Server) -> Result<Vec<(String, String)>, ServerError> {
    let listed = |names: &[&str]| {
        names
            .iter()
            .map(|name| literal(name))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let sql = format!(
        "SELECT name, current_setting(name) FROM pg_catalog.pg_settings \
         WHERE source NOT IN ('default', 'override', 'session', 'client') AND name NOT IN ({}) \
           AND (context = 'postmaster' OR name IN ({}))",
        listed(&OWN),
        listed(&ALSO)
    );
    let rows = server.rows("reading what the server was started with", &sql)?;
    let pair = |row: Vec<Option<String>>| {
        let mut fields = row.into_iter();
        Some((fields.next()??, fields.next()??))
    };
    Ok(rows.into_iter().filter_map(pair).collect())
}

/// A data directory of its own for the programs of a running server. Dropped, it is removed.
#[derive(Debug)]
pub struct Rehearsal {
    own: PathBuf,
    programs: PathBuf,
    user: Option<User>,
    base: Vec<(String, String)>,
}

impl Rehearsal {
    /// Makes one below `scratch`, for the running server with this data directory, which has been
    /// started with the settings `base`, and starts it with them alone.
    ///
    /// # Errors
    ///
    /// A server of another user, and everything that keeps a new one from starting.
    pub fn new(
        host: &dyn HostAccess,
        data: &Path,
        scratch: &Path,
        base: Vec<(String, String)>,
    ) -> Result<Rehearsal, SandboxError> {
        let not_here = |reason: String| SandboxError::Place {
            path: data.to_owned(),
            reason,
        };
        let postmaster = Postmaster::of_data(host, data).map_err(|e| not_here(e.to_string()))?;
        let program = host
            .read_link(&format!("/proc/{}/exe", postmaster.pid))
            .map_err(|e| not_here(e.to_string()))?;
        let programs = Path::new(&program).parent().unwrap_or(Path::new("/")).to_owned();
        // The path may lead elsewhere by now, or be one of a container.
        let is_its_own = host
            .identity_of(&format!("/proc/{}/exe", postmaster.pid))
            .and_then(|its| Ok(its == host.identity_of(&program)?))
            .map_err(|e| not_here(e.to_string()))?;
        let keeps = Directory::open(&programs).is_ok_and(|held| held.keeps_paths());
        if !is_its_own || !keeps {
            return Err(not_here(format!(
                "{program} is not the server's own program in a directory that only its owner and root can change"
            )));
        }
        // The server's own user runs them already; nobody else does what they say.
        let owner = host.directory(data).map_err(|e| not_here(e.to_string()))?.owner();
        let user = match User::is_root() {
            true => Some(User {
                name: format!("user {}", owner.uid),
                uid: owner.uid,
                gid: owner.gid,
            }),
            false if owner.is_mine() => None,
            false => return Err(not_here("its server runs as another user".to_owned())),
        };
        remove_abandoned(scratch);
        let name = format!("{NAME}{}", std::process::id());
        let own = scratch.join(&name);
        let mut held = make_directory(scratch, USUAL_MODE)
            .and_then(|scratch| scratch.make(&name, 0o700))
            .map_err(SandboxError::io(&own, "made"))?;
        let rehearsal = Rehearsal {
            own,
            programs,
            user,
            base,
        };
        held.give(Owner { mode: 0o700, ..owner })
            .map_err(SandboxError::io(&rehearsal.own, "handed over"))?;
        let mut initdb = rehearsal.command("initdb")?;
        initdb
            .arg("--pgdata")
            .arg(rehearsal.data())
            .args([
                "--username=postgres",
                "--encoding=UTF8",
                "--locale=C",
                "--auth=trust",
            ])
            .args(["--no-sync", "--wal-segsize=1"]);
        process::run("initdb", initdb)?;
        match rehearsal.refusal(&[])? {
            None => Ok(rehearsal),
            Some(reason) => Err(SandboxError::Program {
                program: "postgres",
                reason,
            }),
        }
    }

    fn data(&self) -> PathBuf {
        self.own.join("data")
    }

    fn command(&self, program: &str) -> Result<Command, SandboxError> {
        let path = self.programs.join(program);
        let mut command =
            process::command(&path, self.user.as_ref(), &[]).map_err(SandboxError::io(&path, "run"))?;
        // Behind the change of user, which would clear it.
        let with_parent = || Ok(set_parent_process_death_signal(Some(Signal::QUIT))?);
        // SAFETY: prctl(2) as a raw system call, which allocates nothing, between fork and exec.
        unsafe { command.pre_exec(with_parent) };
        Ok(command)
    }

    /// Starts the server with these settings beside its base, and stops it: the reason where it
    /// does not start.
    ///
    /// # Errors
    ///
    /// Anything else than the server's refusal.
    pub fn refusal(&self, settings: &[(String, String)]) -> Result<Option<String>, SandboxError> {
        let data = self.data();
        self.write(settings)?;
        let log = Directory::open(&self.own)
            .and_then(|own| {
                let _ = own.remove(LOG);
                own.create(LOG, 0o600)
            })
            .map_err(SandboxError::io(&self.own.join(LOG), "written"))?;
        let written = log.try_clone().map_err(SandboxError::io(&self.own, "used"))?;
        let mut command = self.command("postgres")?;
        command.arg("-D").arg(&data).stdout(Stdio::null()).stderr(written);
        let mut server = command.spawn().map_err(SandboxError::io(&self.programs, "run"))?;
        let ended = watch(&mut server, &log);
        end(&mut server);
        match ended? {
            true => Ok(None),
            false => {
                Ok(Some(log::reason(&log, 0).unwrap_or_else(|| {
                    "it has ended, and its log is empty".to_owned()
                })))
            }
        }
    }

    /// Its whole configuration: the last of a name counts.
    fn write(&self, settings: &[(String, String)]) -> Result<(), SandboxError> {
        let quoted = |value: &str| format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"));
        let own = [
            ("listen_addresses", String::new()),
            ("unix_socket_directories", self.own.to_string_lossy().into_owned()),
            ("logging_collector", "off".to_owned()),
            ("log_destination", "stderr".to_owned()),
            ("huge_pages", "off".to_owned()),
            ("fsync", "off".to_owned()),
        ];
        let base = self.base.iter().map(|(name, value)| (name.as_str(), value));
        let asked = settings.iter().map(|(name, value)| (name.as_str(), value));
        let own = own.iter().map(|(name, value)| (*name, value));
        let text: String = base
            .chain(asked)
            .chain(own)
            .map(|(name, value)| format!("{name} = {}\n", quoted(value)))
            .collect();
        let data = self.data();
        Directory::open(&data)
            .and_then(|held| {
                let owner = Owner {
                    mode: 0o600,
                    ..held.owner()
                };
                held.replace("postgresql.conf", text.as_bytes(), owner)
            })
            .map_err(SandboxError::io(&data, "configured"))
    }
}

impl Drop for Rehearsal {
    fn drop(&mut self) {
        // What is left is removed by the next one.
        let _ = Directory::above(&self.own).and_then(|(above, name)| above.remove_tree(name));
    }
}

/// Whether the server came up, by its log; `false` where it ended instead.
fn watch(server: &mut Child, log: &File) -> Result<bool, SandboxError> {
    let deadline = Instant::now() + STARTS_WITHIN;
    let failed = |reason: String| SandboxError::Program {
        program: "postgres",
        reason,
    };
    let mut bytes = vec![0; LOG_READ_MAX];
    loop {
        let is_over = server.try_wait().map_err(|e| failed(e.to_string()))?.is_some();
        let read = log.read_at(&mut bytes, 0).map_err(|e| failed(e.to_string()))?;
        if bytes[..read].windows(READY.len()).any(|part| part == READY) {
            return Ok(true);
        }
        if is_over {
            return Ok(false);
        }
        if Instant::now() >= deadline {
            let seconds = STARTS_WITHIN.as_secs();
            return Err(failed(format!("it was not ready within {seconds} s")));
        }
        pause(Duration::from_millis(20));
    }
}

/// Ends a server whose data nobody needs.
fn end(server: &mut Child) {
    let pid = i32::try_from(server.id()).ok().and_then(Pid::from_raw);
    for signal in [Signal::QUIT, Signal::KILL] {
        // Reaped it is not yet, so the number is its own.
        if let (Ok(None), Some(pid)) = (server.try_wait(), pid) {
            let _ = kill_process(pid, signal);
        }
        let deadline = Instant::now() + STARTS_WITHIN;
        while matches!(server.try_wait(), Ok(None)) && Instant::now() < deadline {
            pause(Duration::from_millis(10));
        }
    }
}

/// Removes what killed processes have left.
fn remove_abandoned(scratch: &Path) {
    let Ok(held) = Directory::open(scratch) else {
        return;
    };
    let host = LocalHost::new();
    for (name, _) in held.entries().unwrap_or_default() {
        let number = name.to_str().and_then(|name| name.strip_prefix(NAME));
        let pid: Option<u32> = number.and_then(|number| number.parse().ok());
        if pid.is_some_and(|pid| pid == std::process::id() || !is_alive(&host, pid)) {
            let _ = held.remove_tree(&name);
        }
    }
}
