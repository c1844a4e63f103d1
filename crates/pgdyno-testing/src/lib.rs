//! What the tests share. For each a home of its own: sandboxes, journals and results below one
//! directory, gone afterwards.

pub mod certificates;
pub mod fake;
pub mod foreign;
pub mod guest;
pub mod hostile;
mod initdb;
mod lane;
pub mod machine;
pub mod mounts;
pub mod network;
pub mod openmetrics;
pub mod ssh;
pub mod systemd;
pub mod web;

pub use lane::Lane;
use pgdyno_host::{HostAccess, LocalHost};
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
use serde_json::Value;
use std::fmt::{Debug, Display};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};

/// What is awaited for longer does not come. Far above what anything takes on a machine with much
/// else to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// A ladder over CPUs and clients, as a file.
pub const CORES: &str = r#"
name = "cores"
question = "How many CPUs?"
design = "ladder"
blocks = 2
[data]
scale = 1
[load]
workload = "write"
threads = 1
warmup_s = 2
measure_s = 12
[[factor]]
name = "cores"
of = "cgroup.cpu_quota"
values = [1, 2, 4, 8]
[[factor]]
name = "clients"
of = "load.clients"
values = [4, 16]
"#;

/// What was fetched and unpacked once serves all tests.
pub(crate) fn shared() -> PathBuf {
    // The user's number, from the owner of this process's directory.
    let uid = fs::metadata("/proc/self").map_or(0, |meta| meta.uid());
    Path::new(DISK).join(format!("pgdyno-test-cache-{uid}"))
}

/// Has what a sandbox is made of among what all tests share: a host in a network of its own could
/// not fetch it.
pub(crate) fn fetched() {
    static ONCE: Once = Once::new();
    // With its lane first: who waits here has one too.
    let home = Home::new();
    ONCE.call_once(|| {
        home.run(&["sandbox", "create", "fetched"]).fine();
        home.run(&["sandbox", "destroy", "fetched"]).fine();
    });
}

/// Where files of tests are on a disk. It is not below the target folder, which may be in a home
/// that the server's user cannot enter.
const DISK: &str = "/tmp";
/// Free bytes of memory's own file system with which the servers of all tests have room in it.
const ROOM_BYTES: u64 = 6 << 30;

/// Where files of tests are that have nothing to do with disks: in memory, where nothing is
/// flushed, if there is room.
pub fn memory() -> &'static str {
    let place = "/dev/shm";
    let space = LocalHost::new().space_of(place);
    let has_room = space.is_some_and(|space| space.is_ok_and(|it| it.free_bytes >= ROOM_BYTES));
    if has_room { place } else { DISK }
}

/// A new directory below this place, which the server's user can enter, gone afterwards.
pub fn directory(place: &str, prefix: &str) -> tempfile::TempDir {
    let directory = tempfile::Builder::new().prefix(prefix).tempdir_in(place);
    let directory = directory.expect("a directory");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("open to all");
    directory
}

/// A port of 127.0.0.1 that nobody listens at and nobody else can have: connections to it are
/// refused as long as this lives.
pub struct DeafPort {
    /// Number of the port, which the system chose.
    pub number: u16,
    _bound: OwnedFd,
}

impl DeafPort {
    /// # Panics
    ///
    /// Where the system has no port.
    #[allow(clippy::new_without_default)]
    pub fn new() -> DeafPort {
        let bound = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        bind(&bound, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = SocketAddrV4::try_from(getsockname(&bound).expect("bound")).expect("of IPv4");
        DeafPort {
            number: address.port(),
            _bound: bound,
        }
    }
}

/// The program, which cargo builds beside the folder of the tests of its crate.
pub fn program() -> PathBuf {
    let tests = fs::read_link("/proc/self/exe").expect("the path of this test");
    let built = tests
        .parent()
        .and_then(Path::parent)
        .expect("the folder of what was built");
    let program = built.join("pgdyno");
    assert!(
        program.exists(),
        "no {}: expected a test of the program's crate",
        program.display()
    );
    program
}

/// A home of pgdyno (PGDYNO_HOME), whose sandboxes are destroyed with it.
pub struct Home {
    /// Directory that PGDYNO_HOME names.
    pub path: tempfile::TempDir,
    /// Dropped last, when the sandboxes are gone.
    _lane: Lane,
}

/// What a command printed.
pub struct Said {
    /// The exit code; -1 after a signal.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Said {
    /// Asserts that it ended with 0.
    #[track_caller]
    pub fn fine(self) -> Said {
        assert_eq!(self.code, 0, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// Asserts that it ended with this code, and these texts among its errors.
    #[track_caller]
    pub fn fails(self, code: i32, texts: &[&str]) -> Said {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        for text in texts {
            assert!(self.err.contains(text), "\"{text}\" is not in:\n{}", self.err);
        }
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}:\n{}\n{}", self.out, self.err))
    }
}

impl Home {
    /// A new home, once there is a lane for this test, with the PostgreSQL binaries and the cache
    /// that all tests share.
    #[expect(
        clippy::new_without_default,
        reason = "it is made on disk, and may have to wait"
    )]
    pub fn new() -> Home {
        Home::below(memory())
    }

    /// The same on a disk, for what is tested of disks: `new` may be in memory.
    pub fn on_disk() -> Home {
        Home::below(DISK)
    }

    fn below(place: &str) -> Home {
        let lane = Lane::enter();
        let path = directory(place, "pgdyno-test-");
        for part in ["cache", "installed"] {
            fs::create_dir_all(shared().join(part)).expect("a shared directory");
        }
        initdb::replace(&shared());
        fs::create_dir_all(path.path().join("state")).expect("a directory");
        symlink(shared().join("cache"), path.path().join("cache")).expect("a link");
        symlink(shared().join("installed"), path.path().join("state/postgresql")).expect("a link");
        Home { path, _lane: lane }
    }

    /// A path in this home.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.path().join(name)
    }

    /// Writes a file in this home.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name);
        fs::write(&path, text).expect("written");
        path
    }

    /// The program with this home, without what the user's environment says of servers.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments);
        self.in_home(command)
    }

    /// The program run by other ones, as the last of whose arguments it is named.
    pub fn wrapped(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(arguments[0]);
        command.args(&arguments[1..]).arg(program());
        self.in_home(command)
    }

    fn in_home(&self, mut command: Command) -> Command {
        command
            .env("PGDYNO_HOME", self.path.path())
            // Tests run beside one another, and each changes its own sandboxes.
            .env("PGDYNO_REGISTRY", self.file("state/registry"))
            .stdin(Stdio::null());
        for name in [
            "PGDYNO_STORE",
            "PGHOST",
            "PGPORT",
            "PGUSER",
            "PGPASSWORD",
            "PGDATABASE",
            "PGSERVICE",
            "PGHOSTADDR",
            "PGSSLMODE",
            "PGTARGETSESSIONATTRS",
        ] {
            command.env_remove(name);
        }
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, arguments: &[&str]) -> Said {
        said(self.command(arguments).output().expect("pgdyno runs"))
    }

    /// Starts the program, with pipes for what it prints.
    pub fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("pgdyno runs")
    }

    /// Starts the program, to wait for what it prints to standard error.
    pub fn start(&self, arguments: &[&str]) -> Started {
        Started::of(self.spawn(arguments))
    }

    /// A running sandbox with data of scale 1.
    pub fn sandbox(&self, name: &str, more: &[&str]) {
        let mut arguments = vec!["sandbox", "create", name];
        arguments.extend(more);
        self.run(&arguments).fine();
        self.run(&["data", "create", &format!("sandbox:{name}"), "--scale", "1"])
            .fine();
    }

    /// The record of a sandbox.
    pub fn record(&self, name: &str) -> Value {
        let text =
            fs::read_to_string(self.file(&format!("state/sandboxes/{name}/sandbox.json"))).expect("a record");
        serde_json::from_str(&text).expect("JSON")
    }

    /// The data directory of a sandbox.
    pub fn data(&self, name: &str) -> PathBuf {
        PathBuf::from(self.record(name)["data"].as_str().expect("a path"))
    }

    /// The process that runs a sandbox's server.
    pub fn postmaster(&self, name: &str) -> Option<u32> {
        let text = fs::read_to_string(self.data(name).join("postmaster.pid")).ok()?;
        text.lines().next()?.trim().parse().ok()
    }

    /// The way to the sandbox's server.
    pub fn config(&self, name: &str) -> String {
        let socket = self.file(&format!("state/sandboxes/{name}/socket"));
        let port = self.record(name)["port"].as_u64().expect("a port");
        format!("host={} port={port} user=postgres", socket.display())
    }

    /// One value from the sandbox's server.
    pub fn ask(&self, name: &str, sql: &str) -> String {
        let mut client =
            postgres::Client::connect(&self.config(name), postgres::NoTls).expect("the sandbox answers");
        for message in client.simple_query(sql).expect("an answer") {
            if let postgres::SimpleQueryMessage::Row(row) = message {
                return row.get(0).unwrap_or_default().to_owned();
            }
        }
        String::new()
    }

    /// Waits until a load is driven: until far more was committed than is committed to ask. Its
    /// sessions are listed before that, when it could not come back to a server that goes away: it
    /// begins once all of its clients are connected and have prepared.
    pub fn until_driven(&self, name: &str) {
        const COMMITS_OF_A_LOOK: u64 = 10;
        const COMMITS: u64 = 300;
        let sql = "SELECT sum(xact_commit) FROM pg_stat_database";
        let commits = || -> u64 { self.ask(name, sql).parse().expect("a number") };
        let mut goal = commits() + COMMITS;
        until("transactions of a load", || {
            goal += COMMITS_OF_A_LOOK;
            match commits() {
                seen if seen > goal => Ok(()),
                seen => Err((seen, goal)),
            }
        });
    }

    /// Block and treatment of each stored trial of an experiment.
    pub fn stored_trials(&self, id: i64) -> Vec<(u64, String)> {
        let report = self
            .run(&["report", &id.to_string(), "--format", "json"])
            .fine()
            .json();
        let trials = report["trials"].as_array().expect("trials").clone();
        trials
            .iter()
            .map(|t| {
                (
                    t["block"].as_u64().unwrap_or(0),
                    t["treatment"].as_str().unwrap_or_default().to_owned(),
                )
            })
            .collect()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let root = self.file("state/sandboxes");
        for entry in fs::read_dir(root).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') {
                let _ = self.run(&["sandbox", "destroy", &name]);
            }
        }
    }
}

/// Lets time pass that is a part of what is tested: a timer's, or the instant of a kill.
#[expect(clippy::disallowed_methods, reason = "there is nothing to wait for but time")]
pub fn pass(time: Duration) {
    std::thread::sleep(time);
}

/// Asks again until the answer is `Ok`, a minute at most; then the failure shows the last `Err`,
/// which is what was seen.
#[track_caller]
pub fn until<T, E: Debug>(what: &str, ask: impl FnMut() -> Result<T, E>) -> T {
    until_within(PATIENCE, what, ask)
}

/// Asks again until the answer is the expected one, a minute at most; then the failure shows the
/// last answer.
#[track_caller]
pub fn until_is<T: PartialEq + Debug>(what: &str, expected: T, mut ask: impl FnMut() -> T) {
    until(what, || {
        let seen = ask();
        if seen == expected { Ok(()) } else { Err(seen) }
    });
}

#[track_caller]
fn until_within<T, E: Debug>(limit: Duration, what: &str, mut ask: impl FnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        let asked = Instant::now();
        match ask() {
            Ok(seen) => return seen,
            Err(last) => assert!(
                Instant::now() < deadline,
                "{what}: not within {} s; last seen: {last:?}",
                limit.as_secs()
            ),
        }
        // Who waits leaves the processors to what is waited for.
        pass(asked.elapsed().max(Duration::from_millis(20)));
    }
}

/// A command that runs, and what it has printed to standard error so far.
pub struct Started {
    child: Child,
    errors: BufReader<ChildStderr>,
    printed: String,
}

impl Started {
    /// A command whose standard error is a pipe.
    pub fn of(mut child: Child) -> Started {
        let errors = BufReader::new(child.stderr.take().expect("a pipe"));
        Started {
            child,
            errors,
            printed: String::new(),
        }
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line with this text; fails when the command ends without it.
    #[track_caller]
    pub fn until_it_prints(&mut self, text: &str) {
        while !self.printed.contains(text) {
            let read = self.errors.read_line(&mut self.printed).expect("a line");
            assert!(read > 0, "it ended without \"{text}\": {}", self.printed);
        }
    }

    /// As by Ctrl-C.
    pub fn interrupt(&self) {
        signal(self.child.id(), "-INT");
    }

    /// Waits for its end. What it prints to standard output must fit into a pipe.
    pub fn end(mut self) -> Said {
        let mut out = Vec::new();
        self.errors.read_to_string(&mut self.printed).expect("the rest");
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_end(&mut out).expect("the output");
        }
        Said {
            code: self.child.wait().expect("it ends").code().unwrap_or(-1),
            out: String::from_utf8_lossy(&out).into_owned(),
            err: std::mem::take(&mut self.printed),
        }
    }
}

/// A test that fails while a command runs shows what that has printed, and leaves no process.
impl Drop for Started {
    #[expect(clippy::print_stdout, reason = "the harness shows it with the failure")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.child.kill();
            let _ = self.errors.read_to_string(&mut self.printed);
            println!("the command that ran has printed:\n{}", self.printed);
        }
    }
}

/// What a command that has ended printed.
pub fn said(output: Output) -> Said {
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Trials of a report that ended like this.
pub fn ended(report: &Value, status: &str) -> usize {
    let trials = report["trials"].as_array().expect("trials");
    trials.iter().filter(|trial| trial["status"] == status).count()
}

/// The present value of a kernel file.
pub fn kernel(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_else(|e| panic!("{path}: {e}"))
        .trim()
        .to_owned()
}

/// What is swapped to: path, kind, size and priority. How much of it is in use changes by itself.
pub fn swap() -> Vec<String> {
    let fields = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        [0, 1, 2, 4].map(|at| fields[at]).join(" ")
    };
    kernel("/proc/swaps").lines().skip(1).map(fields).collect()
}

/// The settings that ALTER SYSTEM has written for the sandbox x.
pub fn auto_conf(home: &Home) -> String {
    fs::read_to_string(home.data("x").join("postgresql.auto.conf")).expect("a file")
}

/// What one of the system's own programs prints.
#[track_caller]
pub fn tool(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|e| panic!("{program}: {e}"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {error}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Sends a process a signal by its name: `-INT`.
pub fn signal(pid: impl Display, name: &str) {
    tool("kill", &[name, &pid.to_string()]);
}

/// The disk that holds a path, as a name in /sys/block.
pub fn disk_of(path: &Path) -> String {
    use pgdyno_host::{LocalHost, block};
    block::disk_of(&LocalHost::new(), &path.to_string_lossy()).expect("a disk")
}

/// Debian's pgbench.
pub fn pgbench() -> PathBuf {
    system_program("pgbench")
}

/// A program of Debian's PostgreSQL.
pub fn system_program(name: &str) -> PathBuf {
    fs::read_dir("/usr/lib/postgresql")
        .expect("Debian's postgresql (make test installs it)")
        .flatten()
        .map(|entry| entry.path().join("bin").join(name))
        .find(|path| path.exists())
        .expect(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_awaited_is_asked_again_until_it_is_so() {
        let mut asked = 0;
        let answer = until("the third answer", || {
            asked += 1;
            if asked == 3 { Ok("so") } else { Err(asked) }
        });
        assert_eq!((answer, asked), ("so", 3));
    }

    #[test]
    fn what_does_not_come_is_reported_with_what_was_last_seen() {
        let said = std::panic::catch_unwind(|| {
            until_within(Duration::ZERO, "a fifth session", || Err::<(), _>("4 sessions"))
        });
        let said = said.expect_err("it gives up");
        let said = said.downcast_ref::<String>().expect("a text");
        assert!(
            said.contains("a fifth session") && said.contains("last seen: \"4 sessions\""),
            "{said}"
        );
    }
}
