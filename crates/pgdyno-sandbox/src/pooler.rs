//! A pooler in front of a server: configured, started, timed and stopped here. What is asked of a
//! server through one is elsewhere (`Conninfo::is_proxied`).
//!
//! It is pgbouncer or pgpool-II of this machine, in a directory of its own, on 127.0.0.1 alone. Its
//! clients need a password, for who may reach that address is anybody on the machine, and behind it
//! is a superuser. It has no limits of a sandbox: it represents another machine.

mod config;
mod left;

use crate::programs;
use crate::sandbox::{self, Sandbox, SandboxError, process};
use left::Left;
pub(crate) use left::fuzzed_announced;
use pgdyno_host::{Directory, HostError, LocalHost, Owner, cpu_us_of_tree};
use pgdyno_record::ErrorClass;
use pgdyno_server::pause;
use pgdyno_server::{Conninfo, Server, User};
use postgres::Config;
use postgres::config::SslMode;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

/// A pooler answers within this time, or is broken.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// How long one question whether it answers may take.
const ASKED_FOR: Duration = Duration::from_secs(5);
/// Starts with other ports where somebody else has taken one between its choice and the start.
const STARTS_MAX: usize = 3;
/// What the log of one has whose port was another's for a moment: of who drew the same one, or of a
/// process that was forked while it was held.
const IN_USE: &str = "Address already in use";
/// Clients of a pooler that is started here: pgpool has a process for each.
const CLIENTS_MAX: u32 = 10_000;

/// The program of a pooler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolerKind {
    /// pgbouncer: one process, one thread.
    PgBouncer,
    /// pgpool-II in raw mode: a process for each client, with a server's session of its own.
    Pgpool,
}

impl PoolerKind {
    /// Name of the program: "pgbouncer".
    pub fn program(self) -> &'static str {
        match self {
            PoolerKind::PgBouncer => "pgbouncer",
            PoolerKind::Pgpool => "pgpool",
        }
    }

    /// Name of the Debian package that has the program.
    pub fn package(self) -> &'static str {
        match self {
            PoolerKind::PgBouncer => "pgbouncer",
            PoolerKind::Pgpool => "pgpool2",
        }
    }
}

/// For how long a client keeps a server's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolMode {
    /// Until the client disconnects.
    Session,
    /// Until its transaction ends; pgbouncer only.
    Transaction,
    /// Until its statement ends; pgbouncer only.
    Statement,
}

impl PoolMode {
    /// Name in pgbouncer's pool_mode.
    pub fn name(self) -> &'static str {
        match self {
            PoolMode::Session => "session",
            PoolMode::Transaction => "transaction",
            PoolMode::Statement => "statement",
        }
    }
}

/// A pooler to start before a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolerPlan {
    /// Program of the pooler.
    pub kind: PoolerKind,
    /// When a session is given to the next client; pgpool has [`PoolMode::Session`] alone.
    pub mode: PoolMode,
    /// Sessions at the server; with pgpool at least `clients_max`, for each client has one.
    pub pool_size: u32,
    /// Clients at once; more wait (pgpool) or are refused (pgbouncer).
    pub clients_max: u32,
    /// Its files: a directory that is new, empty, or an earlier pooler's.
    pub directory: PathBuf,
    /// Further parameters, with the program's own names; what is pgdyno's own (addresses, users,
    /// places) is refused.
    pub extra: Vec<(String, String)>,
}

/// Why a pooler could not be started or ended.
#[derive(Debug, thiserror::Error)]
pub enum PoolerError {
    /// The program is not installed.
    #[error("{program} is not installed; the package {package} has it (apt-get install {package})")]
    NoProgram {
        /// Name of the program.
        program: &'static str,
        /// Name of the Debian package that has it.
        package: &'static str,
    },
    /// The plan is not possible, with the reason.
    #[error("a pooler cannot be like this: {0}")]
    Plan(String),
    /// Another one works there, or a process of pgdyno that lives uses it.
    #[error("{directory} is in use by {holder}")]
    InUse {
        /// Directory of the pooler's files.
        directory: PathBuf,
        /// Process that uses the directory.
        holder: String,
    },
    /// It did not start, or does not end.
    #[error("{program} {what}; its log {log} ends with: {last_lines}")]
    Failed {
        /// Name of the program.
        program: &'static str,
        /// "ended with exit status: 1", "does not answer within 30 s: ..."
        what: String,
        /// Path of its log file.
        log: PathBuf,
        /// Last lines of its log.
        last_lines: String,
    },
    /// A file or process of the pooler could not be used.
    #[error("{path} could not be {action}: {source}")]
    Io {
        /// Path of the file, or of the program.
        path: PathBuf,
        /// What was tried, as a participle: "read", "written".
        action: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
    /// The sandbox that it is for could not be used.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

impl PoolerError {
    /// That of what it holds.
    pub fn class(&self) -> ErrorClass {
        match self {
            PoolerError::Sandbox(error) => error.class(),
            _ => ErrorClass::Failed,
        }
    }

    /// What mends it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            PoolerError::Sandbox(error) => error.hint(),
            _ => None,
        }
    }
}

impl PoolerError {
    fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> PoolerError {
        let path = path.to_owned();
        move |source| PoolerError::Io { path, action, source }
    }
}

/// A pooler that runs. It ends with this, in order by [`Pooler::stop`].
pub struct Pooler {
    kind: PoolerKind,
    child: Child,
    directory: PathBuf,
    conninfo: Conninfo,
}

impl Pooler {
    /// Starts one before a sandbox, as the user its server runs as, and waits until it answers.
    pub fn start(sandbox: &Sandbox, plan: &PoolerPlan) -> Result<Pooler, PoolerError> {
        Pooler::start_before(&sandbox.conninfo(), sandbox.record().user.as_ref(), plan)
    }

    /// Starts one before the server at `server`, reached without TLS, as `user` (as the one of a
    /// sandbox where root names none). A password of the server's is the pooler's, too; where there
    /// is none, clients get one that is made up.
    pub fn start_before(
        server: &Conninfo,
        user: Option<&User>,
        plan: &PoolerPlan,
    ) -> Result<Pooler, PoolerError> {
        config::check(plan)?;
        if server.tls().is_some() {
            let reason = "its server is reached with TLS (sslmode=disable reaches it without)";
            return Err(PoolerError::Plan(reason.to_owned()));
        }
        let (program, package) = (plan.kind.program(), plan.kind.package());
        if !programs::is_there(program, "--version") {
            return Err(PoolerError::NoProgram { program, package });
        }
        let user = match user {
            Some(user) => Some(user.clone()).filter(|_| User::is_root()),
            None => sandbox::owner_of(&LocalHost::new())?,
        };
        let directory = own_directory(&plan.directory, user.as_ref())?;
        let password = match server.config().get_password() {
            Some(known) => String::from_utf8_lossy(known).into_owned(),
            None => random_password()?,
        };
        let start = Start {
            plan,
            server,
            user: user.as_ref(),
            directory: &directory,
            password: &password,
        };
        let mut attempts = 1;
        loop {
            let ports = start.ports()?;
            match start.run(&ports) {
                Err(PoolerError::Failed { last_lines, .. })
                    if attempts < STARTS_MAX && (last_lines.contains(IN_USE) || !ports.are_free()) =>
                {
                    attempts += 1;
                }
                Ok(pooler) => return Ok(pooler),
                Err(error) => {
                    // Its files hold a password.
                    let _ = left::forget(&directory);
                    return Err(error);
                }
            }
        }
    }

    /// How to connect to it: 127.0.0.1 and its port, with the user and database of its server, and
    /// a password.
    pub fn conninfo(&self) -> &Conninfo {
        &self.conninfo
    }

    /// Program of the pooler.
    pub fn kind(&self) -> PoolerKind {
        self.kind
    }

    /// Process id of the pooler's parent process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Path of its log file.
    pub fn log_file(&self) -> PathBuf {
        log_of(&self.directory)
    }

    /// Microseconds of CPU time that it and its children have used since it was started
    /// ([`cpu_us_of_tree`]).
    pub fn cpu_us(&self) -> Result<u64, HostError> {
        cpu_us_of_tree(&LocalHost::new(), self.child.id())
    }

    /// Ends it, its clients' connections with it. Its log stays, files with secrets do not.
    pub fn stop(mut self) -> Result<(), PoolerError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), PoolerError> {
        let left = Left::of(&self.directory, self.kind.program());
        let ended = left.end(&mut || {
            // Reaped, so that it is gone for those who look.
            let _ = self.child.try_wait();
        });
        if !ended {
            return Err(self.failed("does not end".to_owned()));
        }
        let _ = self.child.wait();
        left::forget(&self.directory)
    }

    fn failed(&self, what: String) -> PoolerError {
        let password = self.conninfo.config().get_password().unwrap_or_default();
        PoolerError::Failed {
            program: self.kind.program(),
            what,
            log: self.log_file(),
            last_lines: last_lines(&self.log_file(), &String::from_utf8_lossy(password)),
        }
    }

    /// Ends what an earlier process, killed before it could, has left running in `directory`;
    /// nothing there is fine. Returns whether there was one. A process is only taken for a pooler's
    /// by its name, its working directory and its start; a pooler of another process that lives is
    /// left alone ([`PoolerError::InUse`]).
    pub fn end_left_behind(directory: &Path) -> Result<bool, PoolerError> {
        left::end_left_behind(directory)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // After `stop` nothing is there any more.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.end();
        }
    }
}

/// One attempt.
struct Start<'a> {
    plan: &'a PoolerPlan,
    server: &'a Conninfo,
    user: Option<&'a User>,
    directory: &'a Path,
    password: &'a str,
}

impl Start<'_> {
    fn ports(&self) -> Result<config::Ports, PoolerError> {
        let draw = || process::draw_port().map_err(PoolerError::io(self.directory, "given a port"));
        // Both are held until both are drawn: they are two.
        let ((clients, _held), (control, _held_too)) = (draw()?, draw()?);
        Ok(config::Ports { clients, control })
    }

    fn run(&self, ports: &config::Ports) -> Result<Pooler, PoolerError> {
        let files = config::files(self.plan, self.server, self.directory, ports, self.password)?;
        for (name, text) in files {
            write_private(self.directory, name, &text, self.user)?;
        }
        let mut config = Config::new();
        config
            .host("127.0.0.1")
            .port(ports.clients)
            .user(self.server.user())
            .dbname(self.server.database())
            .password(self.password)
            .ssl_mode(SslMode::Disable);
        // Announced before: a process that is killed right after the start has left a pooler whose
        // number nobody wrote down.
        left::announce(self.directory, self.plan.kind.program(), None)?;
        let child = self.spawn()?;
        let mut pooler = Pooler {
            kind: self.plan.kind,
            directory: self.directory.to_owned(),
            conninfo: Conninfo::from_config(config).proxied(true),
            child,
        };
        left::announce(self.directory, self.plan.kind.program(), Some(pooler.pid()))?;
        pooler.wait_until_it_answers()?;
        Ok(pooler)
    }

    fn spawn(&self) -> Result<Child, PoolerError> {
        let path = log_of(self.directory);
        write_private(self.directory, LOG, "", self.user)?;
        let log = || {
            let log = Directory::open(self.directory).and_then(|directory| directory.append(LOG));
            log.map_err(PoolerError::io(&path, "opened"))
        };
        let program = programs::find(self.plan.kind.program());
        let mut command =
            process::command(&program, self.user, &[]).map_err(PoolerError::io(&program, "run"))?;
        command
            .args(config::arguments(self.plan.kind))
            // By which it is known again.
            .current_dir(self.directory)
            .stdout(log()?)
            .stderr(log()?);
        command.spawn().map_err(PoolerError::io(&program, "run"))
    }
}

impl Pooler {
    fn wait_until_it_answers(&mut self) -> Result<(), PoolerError> {
        let deadline = Instant::now() + ANSWERS_WITHIN;
        let mut config = self.conninfo.config().clone();
        config.connect_timeout(ASKED_FOR);
        let asked = Conninfo::from_config(config).proxied(true);
        loop {
            // Somebody else may listen there, once it has ended.
            if let Ok(Some(status)) = self.child.try_wait() {
                let error = self.failed(format!("ended with {status}"));
                let _ = left::forget(&self.directory);
                return Err(error);
            }
            match Server::connect(&asked) {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() >= deadline => {
                    let limit_s = ANSWERS_WITHIN.as_secs();
                    return Err(self.failed(format!("does not answer within {limit_s} s: {error}")));
                }
                Err(_) => pause(Duration::from_millis(20)),
            }
        }
    }
}

const LOG: &str = "log";
/// Small files of a pooler; and of its log the end.
const SMALL_BYTES_MAX: u64 = 64 << 10;

fn log_of(directory: &Path) -> PathBuf {
    directory.join(LOG)
}

/// The directory, made or taken over, for the pooler's user alone, as the kernel calls it.
fn own_directory(path: &Path, user: Option<&User>) -> Result<PathBuf, PoolerError> {
    let is_empty = || Directory::open(path).is_ok_and(|it| it.entries().is_ok_and(|all| all.is_empty()));
    if path.exists() && !left::is_poolers(path) && !is_empty() {
        let reason = format!("{} is neither empty nor an earlier pooler's", path.display());
        return Err(PoolerError::Plan(reason));
    }
    if let Some(pid) = left::living(path) {
        return Err(PoolerError::InUse {
            directory: path.to_owned(),
            holder: format!("process {pid}"),
        });
    }
    let made = pgdyno_host::make_directory(path, 0o700);
    let mut directory = made.map_err(PoolerError::io(path, "made"))?;
    directory
        .give(owner_of(user, 0o700))
        .and_then(|()| directory.resolved())
        .map_err(PoolerError::io(path, "handed over"))
}

fn owner_of(user: Option<&User>, mode: u32) -> Owner {
    match user {
        Some(user) => Owner {
            uid: user.uid,
            gid: user.gid,
            mode,
        },
        None => Owner::own(mode),
    }
}

/// A new file that none but the pooler's user (and root) reads, from its first byte on. Whatever
/// had the name is replaced: the directory is that user's, and it may be a link to elsewhere.
fn write_private(directory: &Path, name: &str, text: &str, user: Option<&User>) -> Result<(), PoolerError> {
    Directory::open(directory)
        .and_then(|directory| directory.replace(name, text.as_bytes(), owner_of(user, 0o600)))
        .map_err(PoolerError::io(&directory.join(name), "written"))
}

fn random_password() -> Result<String, PoolerError> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0_u8; 24];
    fs::File::open(source)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(PoolerError::io(source, "read"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The last lines of a log, without the password, should it ever be there.
fn last_lines(log: &Path, password: &str) -> String {
    const LINES: usize = 6;
    let text = Directory::above(log)
        .and_then(|(above, name)| above.tail(name, 0, SMALL_BYTES_MAX))
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    if lines.is_empty() {
        return "nothing".to_owned();
    }
    let last = lines[lines.len().saturating_sub(LINES)..].join("; ");
    if password.is_empty() {
        return last;
    }
    last.replace(password, "***")
}

#[cfg(test)]
mod tests;
