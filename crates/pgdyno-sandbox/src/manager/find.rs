//! What runs a server, by its first process: its control group, its parent and its arguments.

use super::container::{Container, Engine};
use super::{Cluster, Manager, PgCtl, Unit};
use pgdyno_host::{HostAccess, children, parent};
use pgdyno_server::User;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Debian's program that starts and stops clusters.
pub(super) const PG_CTLCLUSTER: &str = "/usr/bin/pg_ctlcluster";
/// Where its clusters have their files: below it the version, and the name.
const CLUSTERS: &str = "/etc/postgresql/";
/// Where their servers write their process ids.
const PID_FILES: &str = "/run/postgresql/";
/// A file of Patroni's in the data directory of a server that it runs.
const OF_PATRONI: &str = "patroni.dynamic.json";
/// How the kernel names a program that was replaced since it was started, or a file that was
/// removed.
const DELETED: &str = " (deleted)";
/// Hexadecimal digits of a container's number.
const ID_DIGITS: usize = 64;
/// Parts of a control group's path that are a container's.
const CONTAINERS: [(&str, &str); 6] = [
    ("docker-", "docker"),
    ("docker", "docker"),
    ("libpod-", "podman"),
    ("crio-", "CRI-O"),
    ("cri-containerd-", "containerd"),
    ("kubepods", "Kubernetes"),
];
/// Variables that change how a server runs, by how their names begin; others may hold secrets.
const ENVIRONMENT: [&str; 14] = [
    "PGDATA=",
    "PGPORT=",
    "PGDATESTYLE=",
    "PGCLIENTENCODING=",
    "PATH=",
    "LANG=",
    "LC_",
    "TZ=",
    "LD_LIBRARY_PATH=",
    "LD_PRELOAD=",
    "MALLOC_",
    "GLIBC_TUNABLES=",
    "PG_OOM_ADJUST_",
    "KRB5",
];

impl Manager {
    /// What runs the server whose first process is `pid` and whose data directory is `data`.
    ///
    /// # Errors
    ///
    /// Why that is unknown, or why this process may not use it: the end of a sentence.
    pub fn find(host: &dyn HostAccess, pid: u32, data: &Path) -> Result<Manager, String> {
        let group = group_of(host, pid)?;
        let starter = parent(host, pid)?;
        if pid == 1 {
            return Err("it is the first process of a container".to_owned());
        }
        let held = host.directory(data).map_err(|error| error.to_string())?;
        if held.size(OF_PATRONI).is_ok() {
            return Err("Patroni runs it, and starts it again by itself".to_owned());
        }
        if let Some((engine, id)) = contained(&group) {
            return match (Engine::named(engine), id) {
                (Some(engine), Some(id)) => Container::find(host, engine, id, pid).map(Manager::Container),
                _ => Err(format!("it runs in a container ({engine})")),
            };
        }
        if let Some(unit) = Unit::of_group(&group) {
            return of_unit(host, unit, pid).map(Manager::Unit);
        }
        let name = |pid: u32| {
            host.read_trimmed(&format!("/proc/{pid}/comm"))
                .unwrap_or_default()
        };
        if starter != 1 && name(starter) != "systemd" {
            return Err(format!(
                "process {starter} ({}) has started it, and may start it again by itself",
                name(starter)
            ));
        }
        // A server that is started from here is in this process's group, and ends with a unit of
        // that.
        let own = group_of(host, std::process::id()).ok();
        if let Some(own) = own.as_deref().and_then(Unit::of_group) {
            return Err(format!(
                "it would be started within {}, which runs pgdyno",
                own.name
            ));
        }
        let owner = held.owner().uid;
        if !User::is_root() && !User::is_own(owner) {
            return Err(format!("only root and its owner, user {owner}, can start it"));
        }
        match cluster_of(host, pid) {
            Some(cluster) => Ok(Manager::Cluster(cluster)),
            None => pg_ctl_of(host, pid, data).map(Manager::PgCtl),
        }
    }
}

/// The path of a process's control group in the hierarchy that systemd keeps.
fn group_of(host: &dyn HostAccess, pid: u32) -> Result<String, String> {
    let text = host
        .read(&format!("/proc/{pid}/cgroup"))
        .map_err(|error| error.to_string())?;
    let path = |controllers: &str| {
        text.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (of, path) = rest.split_once(':')?;
            (of == controllers && path != "/").then(|| path.to_owned())
        })
    };
    // On a host with both versions, it is in the older one.
    Ok(path("name=systemd")
        .or_else(|| path(""))
        .unwrap_or_else(|| "/".to_owned()))
}

/// The engine of a container, where a control group is one's, and the container's number, where the
/// group has it.
fn contained(group: &str) -> Option<(&'static str, Option<&str>)> {
    let is = |part: &str, sign: &str| match sign.ends_with('-') {
        true => part.starts_with(sign),
        false => {
            part == sign || part.starts_with(&format!("{sign}.")) || part.starts_with(&format!("{sign}-"))
        }
    };
    let (_, engine) = CONTAINERS
        .iter()
        .find(|(sign, _)| group.split('/').any(|part| is(part, sign)))?;
    // docker-NUMBER.scope by systemd; without it /docker/NUMBER and libpod-NUMBER.
    let numbers = group.split('/').filter_map(|part| {
        let part = part.strip_suffix(".scope").unwrap_or(part);
        let number = part.rsplit('-').next()?;
        let is_number = number.len() == ID_DIGITS && number.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_number.then_some(number)
    });
    // A container within another is its engine's business.
    let mut numbers = numbers.fuse();
    let id = numbers.next().filter(|_| numbers.next().is_none());
    Some((engine, id))
}

/// A unit whose main process is the server's first one: a unit of another program has to be stopped
/// by that program.
fn of_unit(host: &dyn HostAccess, unit: Unit, pid: u32) -> Result<Unit, String> {
    let found = unit.properties()?;
    let name = &unit.name;
    if found.main_pid != pid {
        let main = found.main_pid;
        let comm = host
            .read_trimmed(&format!("/proc/{main}/comm"))
            .unwrap_or_default();
        return Err(match main {
            0 => format!("it runs in the systemd unit {name}, which has no main process"),
            _ => format!("it runs in the systemd unit {name}, whose main process is {main} ({comm})"),
        });
    }
    if let Some(why) = found.refusal {
        return Err(format!("it is the systemd unit {name}, and {why}"));
    }
    let may = unit
        .of_user
        .map_or_else(User::is_root, |uid| User::is_root() || User::is_own(uid));
    match may {
        true => Ok(unit),
        false => Err(format!(
            "it is the systemd unit {name}, which only root can restart"
        )),
    }
}

/// Debian's name of the server, where postgresql-common has started it.
fn cluster_of(host: &dyn HostAccess, pid: u32) -> Option<Cluster> {
    let line = host.read(&format!("/proc/{pid}/cmdline")).ok()?;
    let mut arguments = line.split('\0');
    let file = arguments.find_map(|argument| argument.strip_prefix("config_file="))?;
    let mut parts = file.strip_prefix(CLUSTERS)?.split('/');
    let (version, name, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let is_word = |text: &str| {
        let is_of_word = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(is_of_word)
    };
    let is_cluster = is_word(version) && is_word(name) && rest == "postgresql.conf" && parts.next().is_none();
    let has_program = host.identity_of(PG_CTLCLUSTER).is_ok();
    // Anybody's arguments may name a cluster; its own server has written this.
    let is_of_cluster = || {
        let number = host.read_trimmed(&format!("{PID_FILES}{version}-{name}.pid"));
        number.is_ok_and(|number| number == pid.to_string())
    };
    (is_cluster && has_program && is_of_cluster()).then(|| Cluster {
        version: version.to_owned(),
        name: name.to_owned(),
    })
}

fn pg_ctl_of(host: &dyn HostAccess, pid: u32, data: &Path) -> Result<PgCtl, String> {
    let line = host
        .read(&format!("/proc/{pid}/cmdline"))
        .map_err(|error| error.to_string())?;
    let mut arguments = line.split('\0');
    // pg_ctl starts it with the same words in another directory.
    while let Some(argument) = arguments.next() {
        let path = match argument {
            "-D" | "-k" => arguments.next(),
            _ => argument.strip_prefix("config_file="),
        };
        if let Some(path) = path.filter(|path| !path.is_empty() && !path.starts_with('/')) {
            return Err(format!("it was started with a relative path, {path}"));
        }
    }
    let status = host
        .read(&format!("/proc/{pid}/status"))
        .map_err(|error| error.to_string())?;
    let groups = status.lines().find_map(|line| line.strip_prefix("Groups:"));
    let groups = groups.unwrap_or_default().split_whitespace();
    let program = host
        .read_link(&format!("/proc/{pid}/exe"))
        .map_err(|error| error.to_string())?;
    let program = PathBuf::from(program.strip_suffix(DELETED).unwrap_or(&program));
    let bin = program.parent().unwrap_or(Path::new("/")).to_owned();
    let pg_ctl = bin.join("pg_ctl");
    host.identity_of(&pg_ctl.to_string_lossy())
        .map_err(|error| error.to_string())?;
    let log = log_of(host, pid, data)?;
    let variables = host
        .read(&format!("/proc/{pid}/environ"))
        .map_err(|error| error.to_string())?;
    let kept = variables
        .split('\0')
        .filter(|variable| ENVIRONMENT.iter().any(|name| variable.starts_with(name)))
        .filter_map(|variable| variable.split_once('='));
    Ok(PgCtl {
        bin,
        data: data.to_owned(),
        log,
        groups: groups.filter_map(|group| group.parse().ok()).collect(),
        environment: kept
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect::<BTreeMap<_, _>>(),
    })
}

/// The file that a server's messages go to; `None` where its logging collector takes them.
fn log_of(host: &dyn HostAccess, pid: u32, data: &Path) -> Result<Option<PathBuf>, String> {
    let collects = children(host, pid).iter().any(|child| {
        let title = host.read(&format!("/proc/{child}/cmdline")).unwrap_or_default();
        title.trim_end_matches(['\0', ' ']).ends_with("logger")
    });
    if collects {
        return Ok(None);
    }
    let errors = host
        .read_link(&format!("/proc/{pid}/fd/2"))
        .map_err(|error| error.to_string())?;
    let lost = || format!("its messages go to {errors}, which a server that is started again would not have");
    if errors.ends_with(DELETED) || !errors.starts_with('/') || errors.starts_with("/dev/pts/") {
        return Err(lost());
    }
    let path = PathBuf::from(&errors);
    let owner = host
        .directory(data)
        .map_err(|error| error.to_string())?
        .owner()
        .uid;
    let is_null = path == Path::new("/dev/null");
    let is_owners = || {
        let above = host.directory(path.parent()?).ok()?;
        above.file_of(path.file_name()?, owner).ok()
    };
    match is_null || is_owners().is_some() {
        true => Ok(Some(path)),
        false => Err(lost()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_host::LocalHost;
    use std::fs;
    use std::os::unix::fs::symlink;

    const PID: u32 = 60;

    /// A host with a server's first process, whose starter is the process 1.
    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(group: &str, arguments: &str) -> Tree {
            let tree = Tree(tempfile::tempdir().unwrap());
            tree.write("proc/60/cgroup", &format!("1:name=systemd:{group}\n0::{group}\n"));
            tree.starter(1, "init");
            tree.write("proc/60/status", "Uid:\t26\t26\t26\t26\nGroups:\t26 105 \n");
            tree.write("proc/60/cmdline", &arguments.replace(' ', "\0"));
            tree.write(
                "proc/60/environ",
                "PGPASSWORD=secret\0LD_PRELOAD=/lib/jemalloc.so\0TZ=UTC\0HOME=/root\0",
            );
            tree.write("srv/bin/pg_ctl", "");
            tree.write("data/log", "");
            tree.link("proc/60/exe", "/srv/bin/postgres (deleted)");
            tree.errors("/data/log");
            tree
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn link(&self, path: &str, to: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let _ = fs::remove_file(&path);
            symlink(to, path).unwrap();
        }

        fn starter(&self, pid: u32, name: &str) {
            self.write("proc/60/stat", &format!("60 (postgres) S {pid} 60 60 0\n"));
            self.write(&format!("proc/{pid}/comm"), &format!("{name}\n"));
        }

        fn errors(&self, to: &str) {
            self.link("proc/60/fd/2", to);
        }

        fn find(&self) -> Result<Manager, String> {
            Manager::find(&LocalHost::at(self.0.path()), PID, Path::new("/data"))
        }
    }

    #[track_caller]
    fn fails(tree: &Tree, why: &str) {
        let error = tree.find().unwrap_err();
        assert!(error.contains(why), "{error}");
    }

    const SESSION: &str = "/user.slice/user-0.slice/session-3.scope";

    #[test]
    fn server_of_pg_ctl_keeps_its_log_and_no_secret_of_its_environment() {
        let tree = Tree::new(SESSION, "/srv/bin/postgres -D /data");
        let Ok(Manager::PgCtl(found)) = tree.find() else {
            panic!("{:?}", tree.find());
        };
        assert_eq!(found.bin, Path::new("/srv/bin"));
        assert_eq!(found.log.as_deref(), Some(Path::new("/data/log")));
        let names: Vec<&str> = found.environment.keys().map(String::as_str).collect();
        assert_eq!(names, ["LD_PRELOAD", "TZ"]);
        assert_eq!(found.groups, [26, 105]);
        let relative = Tree::new(SESSION, "/srv/bin/postgres -D data");
        fails(&relative, "a relative path, data");
        tree.errors("/dev/null");
        assert!(tree.find().is_ok());
        for lost in ["pipe:[812]", "/dev/pts/3", "/data/log (deleted)", "socket:[7]"] {
            tree.errors(lost);
            fails(&tree, "its messages go to");
        }
        // Those of a logging collector go through a pipe of the server's own.
        tree.write("proc/60/task/60/children", "61 62\n");
        tree.write("proc/62/cmdline", "postgres: logger \0");
        assert!(matches!(tree.find(), Ok(Manager::PgCtl(PgCtl { log: None, .. }))));
    }

    #[test]
    fn cluster_of_debian_is_named_by_its_configuration() {
        let config = "/usr/lib/postgresql/17/bin/postgres -D /data -c config_file=/etc/postgresql/17/main/postgresql.conf";
        let tree = Tree::new("/", config);
        assert!(
            matches!(tree.find(), Ok(Manager::PgCtl(_))),
            "without its program"
        );
        tree.write("usr/bin/pg_ctlcluster", "");
        tree.write("run/postgresql/17-main.pid", "61\n");
        assert!(matches!(tree.find(), Ok(Manager::PgCtl(_))), "another's");
        tree.write("run/postgresql/17-main.pid", "60\n");
        assert_eq!(tree.find().unwrap().to_string(), "pg_ctlcluster 17 main restart");
        let other = Tree::new("/", &config.replace("/main/", "/../-x/"));
        other.write("usr/bin/pg_ctlcluster", "");
        assert!(matches!(other.find(), Ok(Manager::PgCtl(_))));
    }

    #[test]
    fn container_of_a_control_group_is_known_by_its_number() {
        let id = "3fa1".repeat(16);
        for (group, engine) in [
            (format!("/system.slice/docker-{id}.scope"), "docker"),
            (format!("/docker/{id}"), "docker"),
            (format!("/machine.slice/libpod-{id}.scope/container"), "podman"),
            (format!("/libpod_parent/libpod-{id}"), "podman"),
        ] {
            assert_eq!(contained(&group), Some((engine, Some(id.as_str()))), "{group}");
        }
        let inner = format!("/docker/{id}/docker/{id}");
        assert_eq!(contained(&inner), Some(("docker", None)));
        assert_eq!(contained("/system.slice/postgresql.service"), None);
    }

    #[test]
    fn servers_of_other_containers_and_supervisors_are_refused() {
        for (group, engine) in [
            ("/docker/3fa1", "docker"),
            ("/machine.slice/libpod-3fa1.scope/container", "podman"),
            (
                "/kubepods.slice/kubepods-pod1.slice/cri-containerd-3f.scope",
                "containerd",
            ),
            ("/kubepods/besteffort/pod1/3f", "Kubernetes"),
        ] {
            fails(&Tree::new(group, ""), &format!("in a container ({engine})"));
        }
        let tree = Tree::new(SESSION, "/srv/bin/postgres");
        tree.starter(59, "patroni");
        fails(&tree, "process 59 (patroni) has started it");
        tree.starter(59, "systemd");
        assert!(tree.find().is_ok());
        tree.write("data/patroni.dynamic.json", "{}");
        fails(&tree, "Patroni runs it");
    }
}
