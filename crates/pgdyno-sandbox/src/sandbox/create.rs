//! Making a sandbox.

use super::binaries::Binaries;
use super::file_system::{self, FileSystem, FileSystemPlan, Holds};
use super::listen::Listen;
use super::network::{self, Network, NetworkPlan};
use super::process::socket_path_objection;
use super::record::{self, Record, check_private};
use super::standbys::Standbys;
use super::temp::TEMP_TABLESPACE;
use super::{Sandbox, SandboxError, owner_of, process};
use pgdyno_host::{Directory, EntryKind, Limits, LocalHost, Owner, USUAL_MODE, make_directory};
use std::ffi::OsString;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A sandbox to make.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Name of the sandbox: letters, digits, - and _.
    pub name: String,
    /// Programs of PostgreSQL that it runs.
    pub binaries: Binaries,
    /// Data directory, if not below the sandbox's own: absent or empty.
    pub data: Option<PathBuf>,
    /// WAL directory, if not in the data directory: absent or empty.
    pub wal: Option<PathBuf>,
    /// Directory of temporary files, if not in the data directory: absent or empty.
    pub temp: Option<PathBuf>,
    /// A file system of its own for the data; then `data` is `None`.
    pub data_file_system: Option<FileSystemPlan>,
    /// A file system of its own for the WAL; then `wal` is `None`.
    pub wal_file_system: Option<FileSystemPlan>,
    /// A file system of its own for temporary files; then `temp` is `None`.
    pub temp_file_system: Option<FileSystemPlan>,
    /// Where their images are, if not in the sandbox's directory: a directory that is there.
    pub image_directory: Option<PathBuf>,
    /// A network of its own for the server.
    pub network: Option<NetworkPlan>,
    /// Port; a free one if not given.
    pub port: Option<u16>,
    /// Limits of CPU, memory and I/O.
    pub limits: Limits,
    /// Lines for postgresql.conf, as ("max_connections", "300").
    pub settings: Vec<(String, String)>,
    /// Text of the postgresql.conf that the lines are added to; `None` for the one of initdb.
    pub configuration: Option<String>,
    /// Standbys with the same limits, each a sandbox.
    pub standbys: Option<Standbys>,
    /// Address at which other hosts reach it.
    pub listen: Option<Listen>,
}

impl Plan {
    /// One without limits, with all of its files in its own directory.
    pub fn plain(name: &str, binaries: Binaries) -> Plan {
        Plan {
            name: name.to_owned(),
            binaries,
            data: None,
            wal: None,
            temp: None,
            data_file_system: None,
            wal_file_system: None,
            temp_file_system: None,
            image_directory: None,
            network: None,
            port: None,
            limits: Limits::default(),
            settings: Vec::new(),
            configuration: None,
            standbys: None,
            listen: None,
        }
    }
}

/// The file beside a data or WAL directory that marks it as a sandbox's. Beside, because initdb
/// needs it empty.
pub(super) fn mark_of(place: &Path) -> PathBuf {
    place.with_file_name(mark_name(place))
}

fn mark_name(place: &Path) -> OsString {
    let mut name = place.file_name().unwrap_or_default().to_owned();
    name.push(".pgdyno-sandbox");
    name
}

/// Marks a directory as a sandbox's. The directory above may be anybody's.
fn mark(place: &Path, sandbox: &str) -> io::Result<()> {
    let (above, _) = Directory::above(place)?;
    above.replace(mark_name(place), sandbox.as_bytes(), Owner::own(0o644))
}

/// Whether an open directory bears the mark of the sandbox beside it.
pub(super) fn is_marked(held: &Directory, sandbox: &str) -> bool {
    let found = || -> io::Result<bool> {
        let place = held.resolved()?;
        let (above, name) = Directory::above(&place)?;
        Ok(above.directory(name)?.identity()? == held.identity()? && has_mark(&above, &place, sandbox)?)
    };
    found().unwrap_or(false)
}

/// Whether the mark is there, which nobody but this process's user, or root, has written.
fn has_mark(above: &Directory, place: &Path, sandbox: &str) -> io::Result<bool> {
    let name = mark_name(place);
    let owner = above.owner_of(&name)?;
    let is_ours = owner.is_some_and(|owner| owner.uid == 0 || owner.uid == Owner::own(0).uid);
    Ok(is_ours && above.text(&name, super::SMALL_BYTES_MAX)? == sandbox)
}

/// Removes a directory that bears the sandbox's mark, with the mark. Who may write the directory
/// above can have exchanged it: what is not the server's user's stays, and is the error.
pub(super) fn remove_marked(place: &Path, record: &Record) -> Result<(), SandboxError> {
    let failed = |e: io::Error| SandboxError::io(place, "removed")(e);
    let (above, name) = match Directory::above(place) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(failed)?,
    };
    if !has_mark(&above, place, &record.name).unwrap_or(false) {
        return Ok(());
    }
    let left_alone = |reason: String| SandboxError::Place {
        path: place.to_owned(),
        reason: format!("{reason}; it is left alone"),
    };
    match above.kind(&name).map_err(failed)? {
        None => {}
        Some(EntryKind::Directory) => {
            let held = above.directory(&name).map_err(|e| left_alone(e.to_string()))?;
            let (uid, expected) = (held.owner().uid, record.owner(0).uid);
            if uid != expected {
                return Err(left_alone(format!(
                    "it belongs to user {uid}, expected user {expected}, whom the sandbox runs as"
                )));
            }
            held.empty(&[]).map_err(failed)?;
            match above.remove_empty(&name) {
                // A mount point.
                Err(e) if e.kind() == io::ErrorKind::ResourceBusy => {}
                other => other.map_err(failed)?,
            }
        }
        Some(_) => return Err(left_alone("it is not a directory any more".to_owned())),
    }
    above.remove(mark_name(place)).map_err(failed)
}

/// Makes the sandbox below `root`, with its standbys, and starts it. What is made before an error
/// stays, marked as half-made.
pub fn create(root: &Path, plan: &Plan) -> Result<Sandbox, SandboxError> {
    let names = plan
        .standbys
        .map(|standbys| standbys.names(&plan.name))
        .unwrap_or_default();
    for name in &names {
        record::check_name(name)?;
        if root.join(name).exists() {
            return Err(SandboxError::Exists(name.clone()));
        }
    }
    let primary = create_one(root, plan, None)?;
    for name in names {
        let standby = Plan {
            limits: plan.limits,
            ..Plan::plain(&name, plan.binaries.clone())
        };
        let standby = create_one(root, &standby, Some(&primary))?;
        standby.record.write(&standby.directory)?;
    }
    // Until all receive its WAL.
    primary.start()?;
    primary.record.write(&primary.directory)?;
    Ok(primary)
}

/// Makes one, or a standby of a primary. On disk it is half-made still.
fn create_one(root: &Path, plan: &Plan, primary: Option<&Sandbox>) -> Result<Sandbox, SandboxError> {
    record::check_name(&plan.name)?;
    let directory = root.join(&plan.name);
    if directory.exists() {
        return Err(match Record::read(&directory) {
            Ok(Some(record)) if record.ready => SandboxError::Exists(plan.name.clone()),
            _ => SandboxError::HalfMade(plan.name.clone()),
        });
    }
    check_before(plan, &directory)?;
    let user = owner_of(&LocalHost::new())?;
    // Held until its server takes it: others draw ports too, and a server takes a while to make.
    let (port, held_port) = match plan.port {
        Some(port) => {
            process::check_port(port)?;
            (port, None)
        }
        None => {
            let drawn = process::draw_port().map_err(SandboxError::io(&directory, "given a port"))?;
            (drawn.0, Some(drawn.1))
        }
    };
    let network = plan.network.map(Network::planned).transpose()?;
    make_directory(&directory, USUAL_MODE)
        .map_err(|e| e.to_string())
        .and_then(|held| check_private(&held))
        .map_err(|reason| SandboxError::Place {
            path: directory.clone(),
            reason,
        })?;
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let file_systems = plan.file_systems(&directory)?;
    let own = |holds| file_systems.iter().find(|own| own.holds == holds);
    let mut record = Record {
        format: 0,
        name: plan.name.clone(),
        ready: false,
        version: plan.binaries.version.clone(),
        bin: plan.binaries.directory.clone(),
        data: match (own(Holds::Data), &plan.data) {
            (Some(own), _) => own.place(),
            (None, Some(place)) => absolute(place),
            (None, None) => directory.join("data"),
        },
        wal: own(Holds::Wal)
            .map(FileSystem::place)
            .or(plan.wal.as_ref().map(absolute)),
        temp: own(Holds::Temp)
            .map(FileSystem::place)
            .or(plan.temp.as_ref().map(absolute)),
        port,
        user,
        limits: plan.limits,
        unlimited: Vec::new(),
        created_unix_ms: now_unix_ms(),
        file_systems,
        network,
        standbys: plan.standbys,
        standby_of: primary.map(|primary| primary.record().name.clone()),
        listen: plan.listen,
    };
    record.format = record.format_needed();
    record.write(&directory)?;
    record.file_systems.iter().try_for_each(FileSystem::make)?;
    if let Some(network) = &record.network {
        network.make(&directory)?;
    }
    let socket = directory.join("socket");
    let owner = record.owner(0o700);
    make_private(&socket, owner)?;
    // Where what was handed over is: the mark is beside the directory itself, not beside a link to
    // it, and the postmaster's working directory is its data directory.
    for place in [Some(&mut record.data), record.wal.as_mut(), record.temp.as_mut()]
        .into_iter()
        .flatten()
    {
        *place = make_private(place, owner)?;
    }
    record.write(&directory)?;
    for place in record.places() {
        let on_its_own = record
            .file_systems
            .iter()
            .any(|own| place.starts_with(&own.point));
        if !place.starts_with(&directory) && !on_its_own {
            mark(place, &record.name).map_err(SandboxError::io(&mark_of(place), "written"))?;
        }
    }
    let log = directory.join("log");
    Directory::open(&directory)
        .and_then(|it| it.replace("log", b"", record.owner(0o600)))
        .map_err(SandboxError::io(&log, "made"))?;

    let mut settings = plan.settings.clone();
    if record.temp.is_some() {
        settings.push(("temp_tablespaces".to_owned(), TEMP_TABLESPACE.to_owned()));
    }
    match primary {
        None => {
            initdb(&directory, &record)?;
            if let Some(text) = &plan.configuration {
                Directory::open(&record.data)
                    .and_then(|data| data.replace(CONF, text.as_bytes(), record.owner(0o600)))
                    .map_err(SandboxError::io(&record.data.join(CONF), "written"))?;
            }
            settings.extend(plan.standbys.and_then(|standbys| standbys.setting(&plan.name)));
        }
        Some(primary) => {
            copy_password(primary, &directory, &record)?;
            settings.extend(primary.replicate(&record)?);
        }
    }
    configure(&directory, &record, &settings)?;
    if let Some(primary) = primary {
        primary.start()?;
    }
    record.ready = true;
    let mut sandbox = Sandbox { directory, record };
    sandbox.record.unlimited = match sandbox.make_cgroup()? {
        Some(group) => group.unlimited,
        None => Vec::new(),
    };
    drop(held_port);
    sandbox.start()?;
    Ok(sandbox)
}

impl Plan {
    fn plans(&self) -> impl Iterator<Item = (Holds, FileSystemPlan)> {
        let data = self.data_file_system.map(|plan| (Holds::Data, plan));
        let wal = self.wal_file_system.map(|plan| (Holds::Wal, plan));
        let temp = self.temp_file_system.map(|plan| (Holds::Temp, plan));
        [data, wal, temp].into_iter().flatten()
    }

    fn file_systems(&self, directory: &Path) -> Result<Vec<FileSystem>, SandboxError> {
        let images = self.image_directory.as_deref();
        self.plans()
            .map(|(holds, plan)| FileSystem::planned(directory, images, holds, plan))
            .collect()
    }
}

fn check_before(plan: &Plan, directory: &Path) -> Result<(), SandboxError> {
    let has_temp = plan.temp.is_some() || plan.temp_file_system.is_some();
    if has_temp && plan.standbys.is_some() {
        return Err(SandboxError::TempWithStandbys);
    }
    for place in [&plan.data, &plan.wal, &plan.temp].into_iter().flatten() {
        let entries = Directory::open(place).and_then(|directory| directory.entries());
        let in_use = entries.is_ok_and(|entries| !entries.is_empty());
        if in_use {
            let reason = "it is not empty; a sandbox needs a new or an empty directory".to_owned();
            return Err(SandboxError::Place {
                path: place.clone(),
                reason,
            });
        }
    }
    if let Some(images) = plan.image_directory.as_ref().filter(|images| !images.is_dir()) {
        return Err(SandboxError::Place {
            path: images.clone(),
            reason: "expected a directory, for images of file systems".to_owned(),
        });
    }
    // mkfs and mount take the image's path.
    if let Some(images) = &plan.image_directory
        && !Directory::open(images).is_ok_and(|directory| directory.keeps_paths())
    {
        return Err(SandboxError::Place {
            path: images.clone(),
            reason: "other users than root can exchange files in it or above it; expected a directory that root alone \
                     can write"
                .to_owned(),
        });
    }
    let plans: Vec<FileSystemPlan> = plan.plans().map(|(_, plan)| plan).collect();
    file_system::check(&plans, plan.image_directory.as_deref().unwrap_or(directory))?;
    network::check(plan.network)?;
    let socket = directory.join("socket/.s.PGSQL.65535");
    match socket_path_objection(&socket) {
        Some(reason) => Err(SandboxError::Place { path: socket, reason }),
        None => Ok(()),
    }
}

impl Record {
    /// The server's user, or this process's, with a mode.
    pub(super) fn owner(&self, mode: u32) -> Owner {
        match &self.user {
            Some(user) => Owner {
                uid: user.uid,
                gid: user.gid,
                mode,
            },
            None => Owner::own(mode),
        }
    }
}

/// An empty directory for the server's user alone, made or taken over, and where it is. What is
/// given away, and found later, is the directory itself, whatever its name means by then.
pub(super) fn make_private(path: &Path, owner: Owner) -> Result<PathBuf, SandboxError> {
    let mut directory = make_directory(path, 0o700).map_err(SandboxError::io(path, "made"))?;
    let entries = directory.entries().map_err(SandboxError::io(path, "read"))?;
    if !entries.is_empty() {
        let reason = "it is no longer empty; a sandbox needs a new or an empty directory".to_owned();
        let path = path.to_owned();
        return Err(SandboxError::Place { path, reason });
    }
    directory
        .give(owner)
        .and_then(|()| directory.resolved())
        .map_err(SandboxError::io(path, "handed over"))
}

/// Whether the server's user may write to its directories, through all those above them.
fn check_entered(record: &Record) -> Result<(), SandboxError> {
    for path in record.places() {
        let test = Path::new("test");
        let mut command =
            process::command(test, record.user.as_ref(), &[]).map_err(SandboxError::io(test, "run"))?;
        let status = command.arg("-w").arg(path).status();
        if !status.map_err(SandboxError::io(test, "run"))?.success() {
            let user = record.user.as_ref();
            let user = user.map_or("running this", |user| user.name.as_str());
            return Err(SandboxError::Place {
                path: path.clone(),
                reason: format!("the user {user} may not enter it or a directory above it"),
            });
        }
    }
    Ok(())
}

fn initdb(directory: &Path, record: &Record) -> Result<(), SandboxError> {
    check_entered(record)?;
    let password = write_password(directory, record)?;
    let mut command = process::command(&record.bin.join("initdb"), record.user.as_ref(), &[])
        .map_err(SandboxError::io(&record.bin, "run"))?;
    command
        .arg("--pgdata")
        .arg(&record.data)
        .args([
            "--username=postgres",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ])
        // The socket's directory admits the server's user and root alone; TCP asks for the
        // password.
        .args(["--auth-local=trust", "--auth-host=scram-sha-256"])
        .arg("--pwfile")
        .arg(&password);
    if let Some(wal) = &record.wal {
        command.arg("--waldir").arg(wal);
    }
    process::run("initdb", command).map(drop)
}

/// A random password for connections over TCP, kept in a file for the server's user alone (and
/// root).
fn write_password(directory: &Path, record: &Record) -> Result<PathBuf, SandboxError> {
    let path = directory.join("password");
    let text = format!("{}\n", file_system::token_of(24)?);
    Directory::open(directory)
        .and_then(|it| it.replace("password", text.as_bytes(), record.owner(0o600)))
        .map_err(SandboxError::io(&path, "written"))?;
    Ok(path)
}

/// Users and their passwords are the primary's.
fn copy_password(primary: &Sandbox, directory: &Path, record: &Record) -> Result<(), SandboxError> {
    let path = directory.join("password");
    let copied = Directory::open(primary.directory())
        .and_then(|from| from.text("password", super::SMALL_BYTES_MAX))
        .and_then(|text| {
            let to = Directory::open(directory)?;
            to.replace("password", text.as_bytes(), record.owner(0o600))
        });
    copied.map_err(SandboxError::io(&path, "written"))
}

/// The server's configuration file, in its data directory.
const CONF: &str = "postgresql.conf";
/// Who is let in.
const HBA: &str = "pg_hba.conf";
/// Of initdb it has 31 kB.
const CONF_BYTES_MAX: u64 = 1 << 20;

impl Sandbox {
    /// Text of its postgresql.conf, for another sandbox to have the same parameters.
    pub fn configuration(&self) -> Result<String, SandboxError> {
        Directory::open(&self.record.data)
            .and_then(|data| data.text(CONF, CONF_BYTES_MAX))
            .map_err(SandboxError::io(&self.record.data.join(CONF), "read"))
    }
}

/// The few lines that make a stock server private: everything else stays as initdb left it.
fn configure(directory: &Path, record: &Record, settings: &[(String, String)]) -> Result<(), SandboxError> {
    let path = record.data.join(CONF);
    let address = match &record.network {
        Some(network) => {
            admit_host_alone(record, network)?;
            network.server_address
        }
        None => Ipv4Addr::LOCALHOST,
    };
    let mut addresses = address.to_string();
    if let Some(listen) = record.listen {
        addresses += &format!(",{}", listen.address);
        let admitted = Directory::open(&record.data).and_then(|data| data.append(HBA));
        let written = admitted.and_then(|mut file| writeln!(file, "{}", listen.line()));
        written.map_err(SandboxError::io(&record.data.join(HBA), "written"))?;
    }
    // A quoted value of the file has escapes.
    let quote = |value: &str| format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"));
    let mut lines = vec![
        "\n# A sandbox of pgdyno: private, on this machine only.".to_owned(),
        format!("listen_addresses = '{addresses}'"),
        format!("port = {}", record.port),
        format!(
            "unix_socket_directories = {}",
            quote(&directory.join("socket").to_string_lossy())
        ),
    ];
    lines.extend(
        settings
            .iter()
            .map(|(name, value)| format!("{name} = {}", quote(value))),
    );
    let mut file = Directory::open(&record.data)
        .and_then(|data| data.append(CONF))
        .map_err(SandboxError::io(&path, "opened"))?;
    writeln!(file, "{}", lines.join("\n")).map_err(SandboxError::io(&path, "written"))
}

/// Over the link its other end is let in with the password, and nobody else.
fn admit_host_alone(record: &Record, network: &Network) -> Result<(), SandboxError> {
    admit(record, network.host_address)
}

/// A standby is on this machine, whatever network its primary has.
pub(super) fn admit_this_machine(record: &Record) -> Result<(), SandboxError> {
    admit(record, Ipv4Addr::LOCALHOST)
}

fn admit(record: &Record, host: Ipv4Addr) -> Result<(), SandboxError> {
    let path = record.data.join(HBA);
    let text = format!(
        "# A sandbox of pgdyno: the socket, and one address.\n\
         local all         all trust\n\
         local replication all trust\n\
         host  all         all {host}/32 scram-sha-256\n\
         host  replication all {host}/32 scram-sha-256\n{}",
        record
            .listen
            .map(|listen| format!("{}\n", listen.line()))
            .unwrap_or_default()
    );
    Directory::open(&record.data)
        .and_then(|data| data.replace(HBA, text.as_bytes(), record.owner(0o600)))
        .map_err(SandboxError::io(&path, "written"))
}

fn now_unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, chown, lchown, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};

    /// The owner of the directory above exchanges what was handed over for a link to a directory of
    /// root's, and makes the way to the WAL a long one, which takes time to walk.
    #[test]
    fn directory_that_is_exchanged_once_it_is_handed_over_does_not_become_the_sandboxes() {
        let dir = tempfile::tempdir().unwrap();
        let (theirs, victim) = (dir.path().join("theirs"), dir.path().join("roots/victim"));
        fs::create_dir_all(theirs.join("x")).unwrap();
        fs::create_dir_all(&victim).unwrap();
        fs::write(victim.join("precious"), "").unwrap();
        let user = owner_of(&LocalHost::new())
            .unwrap()
            .expect("the tests run as root");
        chown(&theirs, Some(user.uid), None).unwrap();
        let linked = |leads: &Path, link: &Path| {
            symlink(leads, link).unwrap();
            lchown(link, Some(user.uid), None).unwrap();
        };
        const LINKS: usize = 38;
        fs::create_dir(theirs.join(format!("w{LINKS}"))).unwrap();
        for number in 0..LINKS {
            let leads = format!("{}w{}", "x/../".repeat(45), number + 1);
            linked(Path::new(&leads), &theirs.join(format!("w{number}")));
        }
        let binaries = Binaries {
            directory: "/nowhere".into(),
            version: "18.1".to_owned(),
        };
        let plan = Plan {
            data: Some(theirs.join("pg")),
            wal: Some(theirs.join("w0/../wal")),
            ..Plan::plain("x", binaries)
        };
        let root = dir.path().join("sandboxes");
        let is_over = AtomicBool::new(false);
        let was_exchanged = std::thread::scope(|scope| {
            let exchange = scope.spawn(|| {
                let place = theirs.join("pg");
                while !is_over.load(Ordering::Relaxed) {
                    if fs::symlink_metadata(&place).is_ok_and(|found| found.uid() == user.uid) {
                        fs::rename(&place, theirs.join("gone")).unwrap();
                        linked(&victim, &place);
                        return true;
                    }
                }
                false
            });
            assert!(create(&root, &plan).is_err(), "there is no initdb");
            is_over.store(true, Ordering::Relaxed);
            exchange.join().unwrap()
        });
        assert!(was_exchanged || theirs.join("pg").exists());
        let record = Record::read(&root.join("x")).unwrap().unwrap();
        assert!(
            record.data.starts_with(theirs.canonicalize().unwrap()),
            "{:?}",
            record.data
        );
        // Whether it is refused or not, root's directory stays.
        let _ = Sandbox::open(&root, "x").unwrap().destroy();
        assert!(victim.join("precious").exists());
        assert!(!mark_of(&victim).exists());
    }
}
