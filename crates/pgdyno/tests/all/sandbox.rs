//! Private servers, for real: made, limited, crashed, half-made, fought over, destroyed.

use common::machine::versions;
use common::{Home, kernel, said, signal, until_is};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

fn kill_9(pid: u32) {
    signal(pid, "-KILL");
    let cwd = format!("/proc/{pid}/cwd");
    until_is("the process is gone", None, || fs::read_link(&cwd).ok());
}

#[test]
fn every_version_is_made_listed_and_destroyed() {
    let home = Home::on_disk();
    let versions = versions();
    for major in &versions {
        let name = format!("v{major}");
        let made = home.run(&["sandbox", "create", &name, "--version", major]).fine();
        assert!(made.out.contains(&format!("PostgreSQL {major}")), "{}", made.out);
        let version = home.ask(&name, "SHOW server_version");
        assert!(version.starts_with(major), "{version}");
        assert_eq!(home.ask(&name, "SHOW listen_addresses"), "127.0.0.1");
        let facts = home
            .run(&["facts", &format!("sandbox:{name}"), "--json"])
            .fine()
            .json();
        let facts = facts["facts"].as_array().expect("facts");
        let fact = |name: &str| facts.iter().find(|f| f["name"] == name).expect("a fact");
        let reported = fact("server.version");
        // Packages add who built it.
        assert_eq!(reported["value"].as_str(), version.split(' ').next());
        assert!(fact("storage.data.disks")["value"].is_array());
        // Before 17, "try" does not report its result.
        let status = fact("huge_pages.status");
        assert_eq!(status["value"].is_string(), major.as_str() >= "17", "{status}");
        assert_eq!(status["missing"].is_string(), major.as_str() < "17", "{status}");
    }
    let list = home.run(&["sandbox", "list", "--json"]).fine().json();
    assert_eq!(list.as_array().expect("a list").len(), versions.len());
    assert!(
        list.as_array()
            .expect("a list")
            .iter()
            .all(|s| s["state"] == "running" && s["size_bytes"].as_u64() > Some(1 << 20))
    );
    let postmaster = home.postmaster("v14").expect("running");
    home.run(&["sandbox", "destroy", "v14"]).fine();
    assert!(!Path::new(&format!("/proc/{postmaster}/exe")).exists());
    assert!(!home.file("state/sandboxes/v14").exists());
    home.run(&["sandbox", "destroy", "v14"])
        .fails(1, &["no sandbox \"v14\"", "hint:"]);
}

#[test]
fn the_systems_binaries_data_and_wal_elsewhere() {
    let initdb = common::system_program("initdb");
    let bin = initdb.parent().expect("a directory");
    let home = Home::new();
    let (data, wal) = (home.file("d/data"), home.file("w/wal"));
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let arguments = [
        "sandbox",
        "create",
        "x",
        "--pg-bin",
        &text(bin),
        "--data",
        &text(&data),
        "--wal",
        &text(&wal),
        "--set",
        "max_connections=33",
    ];
    home.run(&arguments).fine();
    assert_eq!(home.ask("x", "SHOW max_connections"), "33");
    assert!(fs::read_dir(&wal).expect("the WAL directory").count() > 0);
    assert_eq!(fs::read_link(data.join("pg_wal")).expect("a link"), wal);
    home.run(&["sandbox", "create", "y", "--data", &text(&data)])
        .fails(1, &["not empty"]);
    home.run(&["sandbox", "destroy", "x"]).fine();
    assert!(!data.exists() && !wal.exists());
}

#[test]
fn a_stopped_and_a_crashed_server_come_back() {
    let home = Home::new();
    home.run(&["sandbox", "create", "x"]).fine();
    let state = || home.run(&["sandbox", "list", "--json"]).fine().json()[0]["state"].clone();
    home.run(&["sandbox", "stop", "x"]).fine();
    assert_eq!(state(), "stopped");
    home.run(&["bench", "sandbox:x"])
        .fails(2, &["not running", "sandbox start x"]);
    let log = home.file("state/sandboxes/x/log");
    let mode = || fs::metadata(&log).expect("a log").permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    // As an earlier version made it.
    fs::set_permissions(&log, fs::Permissions::from_mode(0o644)).expect("opened");
    home.run(&["sandbox", "start", "x"]).fine();
    assert_eq!((state(), mode()), ("running".into(), 0o600));
    kill_9(home.postmaster("x").expect("running"));
    assert_eq!(state(), "crashed");
    let started = home.run(&["sandbox", "start", "x"]).fine();
    assert!(started.err.contains("crashed"), "{}", started.err);
    home.run(&["sandbox", "restart", "x"]).fine();
    assert_eq!(state(), "running");
}

#[test]
fn a_half_made_one_is_said_to_be_that_and_can_be_destroyed() {
    let home = Home::new();
    home.run(&["sandbox", "create", "x"]).fine();
    home.run(&["sandbox", "stop", "x"]).fine();
    let record = home.file("state/sandboxes/x/sandbox.json");
    let text = fs::read_to_string(&record).expect("a record");
    fs::write(&record, text.replace("\"ready\": true", "\"ready\": false")).expect("written");
    assert_eq!(
        home.run(&["sandbox", "list", "--json"]).fine().json()[0]["state"],
        "half-made"
    );
    home.run(&["sandbox", "start", "x"])
        .fails(1, &["half-made", "destroy"]);
    home.run(&["sandbox", "create", "x"]).fails(1, &["half-made"]);
    fs::write(&record, "{ torn").expect("written");
    assert_eq!(
        home.run(&["sandbox", "list", "--json"]).fine().json()[0]["state"],
        "half-made"
    );
    home.run(&["sandbox", "destroy", "x"]).fine();
    // Nothing is removed from below a server that works.
    home.run(&[
        "sandbox",
        "create",
        "x",
        "--data",
        &home.file("elsewhere").to_string_lossy(),
    ])
    .fine();
    let pid = home.postmaster("x").expect("it runs");
    fs::write(&record, "{ torn").expect("written");
    let stop = format!("`kill -INT {pid}` stops it");
    home.run(&["sandbox", "destroy", "x"])
        .fails(1, &["a server works there", "record cannot be read", &stop]);
    signal(pid, "-INT");
    let cwd = format!("/proc/{pid}/cwd");
    until_is("the server is gone", None, || fs::read_link(&cwd).ok());
    home.run(&["sandbox", "destroy", "x"]).fine();
    home.run(&["sandbox", "create", "x"]).fine();
}

#[test]
fn mistakes_are_reported_with_what_to_do() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    home.run(&["sandbox", "create", "x", "--port", &port])
        .fails(1, &["taken", "--port"]);
    home.run(&["sandbox", "create", "../x"])
        .fails(2, &["cannot be the name"]);
    home.run(&["sandbox", "create", "x", "--version", "13"])
        .fails(1, &["14 to 19"]);
    home.run(&["sandbox", "create", "x", "--pg-bin", "/nowhere"])
        .fails(1, &["/nowhere"]);
    home.run(&["sandbox", "create", "x", "--memory", "much"])
        .fails(2, &["expected a size"]);
    home.run(&["sandbox", "destroy"]).fails(2, &["<NAME>"]);
    home.run(&["sandbox", "create", "x"]).fine();
    home.run(&["sandbox", "create", "x"])
        .fails(1, &["exists already", "hint:"]);
}

#[test]
fn the_second_of_two_commands_waits_for_the_first() {
    let home = Home::new();
    let first = home.spawn(&["sandbox", "create", "x"]);
    // The lock is taken before anything else is made.
    let lock = home.file("state/sandboxes/.locks/x");
    until_is("the lock is taken", true, || lock.exists());
    let second = home.run(&["sandbox", "create", "x"]);
    said(first.wait_with_output().expect("ends")).fine();
    second.fails(1, &["exists already"]);
}

/// The kernel has the limits that the sandbox was given, and its server lives inside them. Needs
/// root.
#[test]
fn limits_hold_in_the_kernel() {
    let home = Home::on_disk();
    let arguments = [
        "sandbox",
        "create",
        "limited",
        "--cpus",
        "0.5",
        "--memory",
        "256M",
        "--iops",
        "500",
        "--bandwidth",
        "50M",
    ];
    home.run(&arguments).fine();
    let postmaster = home.postmaster("limited").expect("running");
    let group = format!("pgdyno/limited-{}", home.record("limited")["port"]);
    let groups = kernel(&format!("/proc/{postmaster}/cgroup"));
    let group_of = |controller: &str| {
        let line = groups.lines().find(|line| {
            line.split(':')
                .nth(1)
                .is_some_and(|c| c.split(',').any(|c| c == controller))
        });
        line.or(groups.lines().find(|line| line.starts_with("0::")))
            .expect("a group")
            .to_owned()
    };
    for controller in ["cpu", "memory", "blkio"] {
        assert!(group_of(controller).ends_with(&format!("/{group}")), "{groups}");
    }
    let v1 = format!("/sys/fs/cgroup/memory/{group}");
    let v2 = format!("/sys/fs/cgroup/{group}");
    if Path::new(&v1).exists() {
        assert_eq!(
            kernel(&format!("{v1}/memory.limit_in_bytes")),
            (256 << 20).to_string()
        );
        assert_eq!(
            kernel(&format!("/sys/fs/cgroup/cpu/{group}/cpu.cfs_quota_us")),
            "50000"
        );
        let throttle = kernel(&format!(
            "/sys/fs/cgroup/blkio/{group}/blkio.throttle.write_iops_device"
        ));
        assert!(throttle.ends_with(" 500"), "{throttle}");
        assert!(
            !home.record("limited")["unlimited"]
                .as_array()
                .expect("gaps")
                .is_empty(),
            "what is not limited is said"
        );
    } else {
        assert_eq!(kernel(&format!("{v2}/memory.max")), (256 << 20).to_string());
    }
    home.run(&["sandbox", "destroy", "limited"]).fine();
    assert!(!Path::new(&v1).exists() && !Path::new(&v2).exists());
}

/// What was fetched once needs no network again; without either, the error says what to do.
#[test]
fn without_a_network_the_cache_serves() {
    let home = Home::new();
    let without_network = |home: &Home, name: &str| {
        let script = "ip link set lo up && exec \"$0\" sandbox create \"$1\"";
        let output = Command::new("unshare")
            .args([
                "--net",
                "sh",
                "-c",
                script,
                &common::program().to_string_lossy(),
                name,
            ])
            .env("PGDYNO_HOME", home.path.path())
            .output()
            .expect("unshare runs");
        said(output)
    };
    // Fetched now, if no other test has done so before.
    home.run(&["sandbox", "create", "first"]).fine();
    // Not unpacked any more, but in the cache.
    fs::remove_file(home.file("state/postgresql")).expect("a link");
    without_network(&home, "second").fine();
    let empty = Home::new();
    fs::remove_file(empty.file("state/postgresql")).expect("a link");
    fs::remove_file(empty.file("cache")).expect("a link");
    without_network(&empty, "third").fails(1, &["PostgreSQL 18 could not be fetched", "--pg-bin"]);
    assert!(
        empty
            .run(&["sandbox", "list", "--json"])
            .fine()
            .json()
            .as_array()
            .is_some_and(Vec::is_empty)
    );
}

/// Refused before anything is made of it.
#[test]
fn binaries_that_are_too_old_are_refused_by_name() {
    let home = Home::new();
    let directory = home.file("old");
    fs::create_dir_all(&directory).expect("made");
    for program in ["initdb", "pg_ctl", "postgres"] {
        let path = directory.join(program);
        fs::write(&path, "#!/bin/sh\necho 'postgres (PostgreSQL) 12.20'\n").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("changed");
    }
    home.run(&["sandbox", "create", "x", "--pg-bin", &directory.to_string_lossy()])
        .fails(1, &["/old: it holds PostgreSQL 12.20", "13 or later"]);
    assert_eq!(
        home.run(&["sandbox", "list", "--json"]).fine().json(),
        serde_json::json!([])
    );
}

#[test]
fn a_place_that_the_servers_user_may_not_enter_is_named() {
    let home = Home::new();
    let closed = home.file("closed");
    fs::create_dir(&closed).expect("made");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).expect("closed");
    let data = closed.join("data");
    home.run(&["sandbox", "create", "x", "--data", &data.to_string_lossy()])
        .fails(
            1,
            &[
                "closed/data",
                "the user ",
                " may not enter it or a directory above it",
            ],
        );
    home.run(&["sandbox", "destroy", "x"]).fine();
    assert!(!data.exists(), "what was made is gone");
}

/// Every superuser of a server reads the environment of its processes.
#[test]
fn server_has_nothing_of_the_environment_of_root() {
    let home = Home::new();
    let mut create = home.command(&["sandbox", "create", "x"]);
    create
        .env("PGDYNO_STORE", home.file("results.sqlite"))
        .env("PGPASSWORD", "q7Q7")
        .env("AWS_SECRET_ACCESS_KEY", "q7Q7");
    said(create.output().expect("pgdyno runs")).fine();
    let pid = home.postmaster("x").expect("running");
    let environment = fs::read(format!("/proc/{pid}/environ")).expect("its environment");
    let environment = String::from_utf8_lossy(&environment);
    let names: Vec<&str> = environment
        .split('\0')
        .filter_map(|variable| variable.split('=').next())
        .filter(|name| !name.is_empty())
        .collect();
    assert!(names.contains(&"PATH"), "{names:?}");
    // pg_ctl, its shell and the server add some of their own.
    let added = [
        "PATH",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
        "PG_GRANDPARENT_PID",
        "PGDATA",
        "PGSYSCONFDIR",
        "PGLOCALEDIR",
    ];
    let is_own = |name: &&str| added.contains(name) || name.starts_with("LC_");
    assert!(
        names.iter().all(is_own) && !environment.contains("q7Q7"),
        "{environment}"
    );
}

/// An abort must not leave an image of a memory with passwords, whatever the limit of the shell.
#[test]
fn program_that_aborts_leaves_no_core() {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    let home = Home::new();
    // It accepts nothing: the command waits for an answer.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let target = format!("host=127.0.0.1 port={port} user=x sslmode=disable connect_timeout=60");
    let mut command = home.command(&["facts", &target]);
    command.current_dir(home.path.path());
    // SAFETY: between fork and exec it makes one system call.
    unsafe {
        command.pre_exec(|| {
            let unlimited = libc::rlimit {
                rlim_cur: libc::RLIM_INFINITY,
                rlim_max: libc::RLIM_INFINITY,
            };
            match libc::setrlimit(libc::RLIMIT_CORE, &unlimited) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let mut child = command.spawn().expect("pgdyno runs");
    let _connection = listener.accept().expect("it connects");
    signal(child.id(), "-ABRT");
    let status = child.wait().expect("it ends");
    assert_eq!(status.signal(), Some(libc::SIGABRT));
    assert!(!status.core_dumped());
}
