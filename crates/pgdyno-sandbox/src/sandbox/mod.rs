//! The sandbox: a private server that pgdyno fetches, starts and throws away.
//!
//! It lives below one directory: its record, lock, log, password, socket, and, unless placed
//! elsewhere, data and WAL. These can be on file systems of its own (`file_system`), and its server
//! behind a link of its own (`network`).

mod binaries;
mod copy;
mod create;
mod error;
mod fetch;
mod file_system;
mod listen;
mod lock;
mod network;
mod place;
pub(crate) mod process;
mod record;
mod sources;
mod standby;
mod standbys;
mod temp;

pub use binaries::Binaries;
pub(crate) use copy::fuzzed_mark;
pub use copy::{Copied, CopyProgress, OnProgress, is_whole_copy, remove_copy};
pub use create::{Plan, create};
pub use error::SandboxError;
pub use file_system::{FileSystem, FileSystemKind, FileSystemPlan, Holds};
pub use listen::Listen;
pub use lock::{Guard, lock};
pub(crate) use network::fuzzed_ip_json;
pub use network::{NETWORK_PROGRAM, Network, NetworkPlan};
pub use record::{Record, list_names};
pub use sources::{BinarySources, DEFAULT_MAJOR, MAJORS};
pub use standbys::{STANDBYS_MAX, Standbys};

use pgdyno_host::{Cgroup, Directory, HostAccess, LocalHost, block, tree_bytes};
use pgdyno_server::Server;
use pgdyno_server::pause;
use pgdyno_server::{Conninfo, NoPostmaster, Postmaster};
use postgres::Config;
use process::Entrance;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Small files of a sandbox: its password, its server's number, notes.
pub(crate) const SMALL_BYTES_MAX: u64 = 64 << 10;
/// The process that adopts orphans reaps them within this time, or is broken.
const REAPED_WITHIN: Duration = Duration::from_secs(10);
/// A server that somebody else has begun to start is running after this time, or never.
const STARTS_WITHIN: Duration = Duration::from_secs(30);

/// The state of a sandbox and its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Its server runs with this process id.
    Running(u32),
    /// It was stopped in order.
    Stopped,
    /// Its server is gone without having stopped in order.
    Crashed,
    /// Its creation was interrupted: it can only be removed.
    HalfMade,
    /// It is stopped, and a file system of its own is not mounted; [`Sandbox::start`] mounts it, or
    /// says that its data is gone.
    Unmounted,
}

/// A sandbox whose record has been read.
#[derive(Debug, Clone)]
pub struct Sandbox {
    directory: PathBuf,
    record: Record,
}

impl Sandbox {
    /// Opens the sandbox `name` below `root`.
    pub fn open(root: &Path, name: &str) -> Result<Sandbox, SandboxError> {
        record::check_name(name)?;
        let directory = root.join(name);
        let record = Record::read(&directory)?.ok_or_else(|| SandboxError::Unknown(name.to_owned()))?;
        Ok(Sandbox { directory, record })
    }

    /// What is written down about it.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Directory of the sandbox, with its record and data.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Path of the server's log file.
    pub fn log_file(&self) -> PathBuf {
        self.directory.join("log")
    }

    /// State of the sandbox and its server now.
    pub fn state(&self) -> State {
        if !self.record.ready {
            return State::HalfMade;
        }
        let mut own = self.record.file_systems.iter();
        if own.any(|own| !own.is_mounted().unwrap_or(false)) {
            return State::Unmounted;
        }
        match self.postmaster() {
            Ok(postmaster) if !postmaster.is_single_user => State::Running(postmaster.pid),
            Err(NoPostmaster::NoFile(_) | NoPostmaster::Unknown { pid: None, .. }) => State::Stopped,
            _ => State::Crashed,
        }
    }

    /// The first process of its server, where that runs.
    pub fn pid(&self) -> Option<u32> {
        match self.state() {
            State::Running(pid) => Some(pid),
            _ => None,
        }
    }

    /// A process id can have been given to somebody else since, and the server's user can write any
    /// other.
    fn postmaster(&self) -> Result<Postmaster, NoPostmaster> {
        Postmaster::of_data(&LocalHost::new(), &self.record.data)
    }

    /// How to connect, as its superuser, to the database postgres: over its socket, or over the
    /// link of a network of its own.
    pub fn conninfo(&self) -> Conninfo {
        let Some(network) = &self.record.network else {
            return self.by_socket();
        };
        let mut config = self.config();
        config.host(&network.server_address.to_string());
        Conninfo::from_config(config).on_this_machine()
    }

    /// Over its socket, whatever network it has.
    pub(crate) fn by_socket(&self) -> Conninfo {
        let mut config = self.config();
        config.host_path(self.socket_directory());
        Conninfo::from_config(config)
    }

    /// With the password, which holds as long as the file can be read. The socket asks for none; a
    /// program that cannot use a socket does.
    fn config(&self) -> Config {
        let mut config = Config::new();
        config
            .port(self.record.port)
            .user("postgres")
            .dbname("postgres")
            .ssl_mode(postgres::config::SslMode::Disable);
        let directory = Directory::open(&self.directory);
        if let Ok(password) = directory.and_then(|it| it.text("password", SMALL_BYTES_MAX)) {
            config.password(password.trim_end());
        }
        config
    }

    /// The running server is reached over its own network, where it has one.
    fn check_network(&self) -> Result<(), SandboxError> {
        let Some(network) = &self.record.network else {
            return Ok(());
        };
        match Server::connect(&self.conninfo()) {
            Ok(_) => Ok(()),
            Err(error) => Err(SandboxError::Network {
                what: network.name.clone(),
                reason: format!("the server runs, but is not reached over this link: {error}"),
            }),
        }
    }

    /// Directory of the server's socket.
    pub fn socket_directory(&self) -> PathBuf {
        self.directory.join("socket")
    }

    /// Starts the server inside its limits and waits until it answers, and its standbys receive its
    /// WAL. Already running is fine.
    pub fn start(&self) -> Result<(), SandboxError> {
        self.start_alone()?;
        self.start_standbys()
    }

    /// The same without its standbys.
    pub fn start_alone(&self) -> Result<(), SandboxError> {
        self.start_with(&[])
    }

    /// Mounts what a restart of the machine has unmounted of its own file systems. Where one was in
    /// memory, its data is gone: [`SandboxError::Lost`]. Temporary files are made again.
    pub fn mount(&self) -> Result<(), SandboxError> {
        let mut own = self.record.file_systems.iter();
        own.try_for_each(|own| own.restore(&self.record.name))?;
        match &self.record.temp {
            Some(temp) if !temp.exists() => create::make_private(temp, self.record.owner(0o700)).map(drop),
            _ => Ok(()),
        }
    }

    /// Bytes of shared memory that the stopped server would have, found by starting it for a
    /// moment, without huge pages: servers before 15 do not compute it.
    /// [`Sandbox::computed_parameter`] is quicker where they do.
    pub fn shared_memory_by_dry_run(&self) -> Result<u64, SandboxError> {
        self.start_with(&["-c", "huge_pages=off"])?;
        let asked = Server::connect(&self.by_socket()).and_then(|mut server| {
            let sql = "SELECT sum(allocated_size) FROM pg_shmem_allocations";
            server.value("asking for the size of the shared memory", sql)
        });
        self.stop()?;
        let wrong = |reason: String| SandboxError::Program {
            program: "postgres",
            reason,
        };
        let bytes = asked.map_err(|e| wrong(e.to_string()))?;
        bytes
            .and_then(|bytes| bytes.parse().ok())
            .ok_or_else(|| wrong("it does not report the size of its shared memory".to_owned()))
    }

    fn start_with(&self, options: &[&str]) -> Result<(), SandboxError> {
        if !self.record.ready {
            return Err(SandboxError::HalfMade(self.record.name.clone()));
        }
        self.make_whole()?;
        self.mount()?;
        if let State::Running(_) = self.state() {
            // Perhaps still starting: pg_ctl's wait is satisfied at once by a server that is up.
            match process::wait_until_ready(self) {
                Ok(()) => return self.ensure_temp(),
                Err(error) if self.has_postmaster() => return Err(error),
                // It was about to end.
                Err(_) => {}
            }
        }
        self.wait_for_the_dead();
        let groups = match self.make_cgroup()? {
            Some(group) => group.open_entrances().map_err(SandboxError::Limits)?,
            None => Vec::new(),
        };
        let mut entrances: Vec<Entrance> = groups.into_iter().map(Entrance::Group).collect();
        match &self.record.network {
            Some(network) => {
                network.restore(&self.directory)?;
                entrances.push(Entrance::Network(network.open()?));
            }
            // In a namespace of its own the port is, too.
            None => process::check_port(self.record.port)?,
        }
        process::start(self, &entrances, options)?;
        self.ensure_temp()
    }

    /// A killed postmaster that nobody has reaped yet still keeps the next one from starting; and
    /// so does one that is about to end, which has no command line any more.
    fn wait_for_the_dead(&self) {
        let deadline = Instant::now() + REAPED_WITHIN;
        let is_going = |pid: u32| {
            let line = LocalHost::new().read(&format!("/proc/{pid}/cmdline"));
            line.is_ok_and(|line| line.is_empty() || !pgdyno_host::is_alive(&LocalHost::new(), pid))
        };
        while self.recorded_pid().is_some_and(is_going) && Instant::now() < deadline {
            pause(Duration::from_millis(20));
        }
    }

    /// Whether its server lives, whatever its record says.
    pub(crate) fn has_postmaster(&self) -> bool {
        self.postmaster()
            .is_ok_and(|postmaster| !postmaster.is_single_user)
    }

    fn recorded_pid(&self) -> Option<u32> {
        pid_in(&self.pid_file()?)
    }

    /// The file in which the server has the number of its first process.
    fn pid_file(&self) -> Option<String> {
        let data = Directory::open(&self.record.data).ok()?;
        data.text("postmaster.pid", SMALL_BYTES_MAX).ok()
    }

    /// Stops it with a checkpoint, ending its sessions. Not running is fine. A start that a killed
    /// process has left behind is waited for and undone: a server that came up afterwards would
    /// have what is being taken from under it.
    pub fn stop(&self) -> Result<(), SandboxError> {
        let deadline = Instant::now() + STARTS_WITHIN;
        loop {
            match self.state() {
                State::Running(_) => process::stop(self, "fast")?,
                _ if !self.is_being_started() || Instant::now() >= deadline => return Ok(()),
                _ => pause(Duration::from_millis(10)),
            }
        }
    }

    /// Stops it at once, as a crash would: no checkpoint, and the next start recovers from the WAL.
    /// Not running is fine.
    pub fn crash(&self) -> Result<(), SandboxError> {
        match self.state() {
            State::Running(_) => process::stop(self, "immediate"),
            _ => Ok(()),
        }
    }

    /// Whether a process lives that starts, or is about to be, a server of this directory: it names
    /// it in its arguments.
    fn is_being_started(&self) -> bool {
        let data = self.record.data.to_string_lossy();
        let host = LocalHost::new();
        let processes = host.list("/proc").unwrap_or_default();
        processes.into_iter().any(|process| {
            let line = host.read(&format!("/proc/{process}/cmdline")).unwrap_or_default();
            let mut arguments = line.split('\0');
            let program = arguments.next().and_then(|path| path.rsplit('/').next());
            program.is_some_and(|name| ["initdb", "pg_ctl", "postgres", "sh"].contains(&name))
                && arguments.any(|argument| names(argument, &data))
        })
    }

    /// What a parameter would be if the server were started now; for parameters that are computed
    /// at start only.
    pub fn computed_parameter(&self, name: &str) -> Result<String, SandboxError> {
        self.mount()?;
        process::computed_parameter(self, name)
    }

    /// Bytes of data, WAL and temporary files.
    pub fn size_bytes(&self) -> u64 {
        self.record.places().map(|place| tree_bytes(place)).sum()
    }

    /// Two homes can have a sandbox of one name. They cannot share a port, unless that is in a
    /// network namespace, whose name they cannot share.
    fn group_name(&self) -> String {
        let Record { name, port, .. } = &self.record;
        match &self.record.network {
            Some(network) => format!("{name}-{}", network.name),
            None => format!("{name}-{port}"),
        }
    }

    /// Limits as they are in the kernel, with what it does not enforce; `None` without limits.
    fn make_cgroup(&self) -> Result<Option<Cgroup>, SandboxError> {
        if self.record.limits.is_none() {
            return Ok(None);
        }
        let host = LocalHost::new();
        let disk = block::disk_of(&host, &self.record.data.to_string_lossy())
            .and_then(|disk| block::number_of(&host, &disk))
            .ok();
        Cgroup::create(&host, &self.group_name(), &self.record.limits, disk.as_deref())
            .map(Some)
            .map_err(SandboxError::Limits)
    }

    /// Stops it and removes everything it consists of, its standbys too.
    pub fn destroy(self) -> Result<(), SandboxError> {
        self.destroy_standbys()?;
        self.end_all()?;
        if !self.record.limits.is_none() {
            Cgroup::remove(&LocalHost::new(), &self.group_name()).map_err(SandboxError::Limits)?;
        }
        let mut outcome = Ok(());
        for place in self.record.places() {
            // What is on a file system of its own, or in the sandbox's directory, goes with that.
            // Elsewhere only what bears the sandbox's own mark is removed: a record can be wrong.
            let removed = match place.starts_with(&self.directory) {
                true => Ok(()),
                false => create::remove_marked(place, &self.record),
            };
            outcome = outcome.and(removed);
        }
        for own in &self.record.file_systems {
            own.remove(&self.directory)?;
        }
        if let Some(network) = &self.record.network {
            network.remove()?;
        }
        remove_tree(&self.directory)?;
        outcome
    }

    /// Ends its server, whatever its record says: an interrupted creation can have started it, or
    /// be about to. What a killed process has left at work is waited for.
    fn end_all(&self) -> Result<(), SandboxError> {
        let deadline = Instant::now() + STARTS_WITHIN;
        let mut places = vec![self.record.data.as_path()];
        for own in &self.record.file_systems {
            places.push(&own.point);
            places.extend(own.image.as_deref());
        }
        places.extend(self.record.network.iter().map(|network| Path::new(&network.name)));
        loop {
            if self.has_postmaster() {
                process::stop(self, "immediate")?;
            }
            let works = self.is_being_started() || file_system::is_being_made(&places);
            if !works || Instant::now() >= deadline {
                return Ok(());
            }
            pause(Duration::from_millis(10));
        }
    }
}

/// Removes what an interrupted creation left, whose record may be missing or broken. A server that
/// works there keeps it: where its data are is not known then, but it says so itself beside its
/// socket.
pub fn remove_remains(root: &Path, name: &str) -> Result<(), SandboxError> {
    record::check_name(name)?;
    let directory = root.join(name);
    match Directory::open(&directory) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        held => held
            .map_err(|e| e.to_string())
            .and_then(|held| record::check_private(&held)),
    }
    .map_err(|reason| SandboxError::Place {
        path: directory.clone(),
        reason: format!("{reason}; it is left alone"),
    })?;
    if let Some((pid, data)) = working_in(&directory) {
        return Err(SandboxError::Place {
            path: directory,
            reason: format!(
                "a server works there (process {pid}, data {}), and the sandbox's record cannot be read; \
                 `kill -INT {pid}` stops it",
                data.display()
            ),
        });
    }
    file_system::unmount_below(&directory)?;
    network::remove_of(&directory)?;
    remove_tree(&directory)
}

/// First process and data directory of a server whose socket is in a sandbox's directory, by the
/// socket's lock file, or whose data are where they usually are.
fn working_in(directory: &Path) -> Option<(u32, PathBuf)> {
    let mut places = vec![directory.join("data")];
    if let Ok(sockets) = Directory::open(&directory.join("socket")) {
        for (name, _) in sockets.entries().unwrap_or_default() {
            let is_lock = name.to_str().is_some_and(|name| name.ends_with(".lock"));
            let text = is_lock
                .then(|| sockets.text(&name, SMALL_BYTES_MAX).ok())
                .flatten();
            places.extend(
                text.iter()
                    .filter_map(|text| text.lines().nth(1))
                    .map(PathBuf::from),
            );
        }
    }
    places.into_iter().find_map(|data| {
        let postmaster = Postmaster::of_data(&LocalHost::new(), &data).ok()?;
        Some((postmaster.pid, data))
    })
}

/// Removes a directory with all that is below it, without following a link. Nothing there is fine;
/// a mount point stays, empty.
fn remove_tree(path: &Path) -> Result<(), SandboxError> {
    match Directory::above(path).and_then(|(above, name)| above.remove_tree(name)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(SandboxError::io(path, "removed")),
    }
}

/// Whether an argument names a path, and not only the beginning of another one.
fn names(argument: &str, path: &str) -> bool {
    let mut places = argument.match_indices(path);
    places.any(|(at, _)| {
        let next = argument[at + path.len()..].chars().next();
        next.is_none_or(|next| next.is_whitespace() || matches!(next, '"' | '\''))
    })
}

fn pid_in(text: &str) -> Option<u32> {
    text.lines().next()?.trim().parse().ok()
}

/// The kernel's number of the user a sandbox runs as, for reading what only it may read.
pub(crate) fn owner_of(host: &dyn HostAccess) -> Result<Option<pgdyno_server::User>, SandboxError> {
    if !pgdyno_server::User::is_root() {
        return Ok(None);
    }
    ["postgres", "nobody"]
        .into_iter()
        .find_map(|name| pgdyno_server::User::named(host, name))
        .map(Some)
        .ok_or(SandboxError::NoUser)
}
