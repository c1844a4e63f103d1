//! Private servers, for real: made, limited, crashed, half-made, fought over, destroyed.

mod common;

use common::{Home, kernel, pass, said, wait_for};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn kill_9(pid: u32) {
    let status = Command::new("kill")
        .args(["-9", &pid.to_string()])
        .status()
        .expect("kill runs");
    assert!(status.success());
    let deadline = Instant::now() + Duration::from_secs(10);
    while Path::new(&format!("/proc/{pid}/cwd")).exists() && fs::read_link(format!("/proc/{pid}/cwd")).is_ok()
    {
        assert!(Instant::now() < deadline, "{pid} does not die");
        std::thread::yield_now();
    }
}

#[test]
fn every_version_is_made_listed_and_destroyed() {
    let home = Home::new();
    for major in ["14", "15", "16", "17", "18"] {
        let name = format!("v{major}");
        let made = home.run(&["sandbox", "create", &name, "--version", major]).fine();
        assert!(made.out.contains(&format!("PostgreSQL {major}.")), "{}", made.out);
        let version = home.ask(&name, "SHOW server_version");
        assert!(version.starts_with(&format!("{major}.")), "{version}");
        assert_eq!(home.ask(&name, "SHOW listen_addresses"), "127.0.0.1");
        let facts = home
            .run(&["facts", &format!("sandbox:{name}"), "--json"])
            .fine()
            .json();
        let facts = facts["facts"].as_array().expect("facts");
        let fact = |name: &str| facts.iter().find(|f| f["name"] == name).expect("a fact");
        let told = fact("server.version");
        assert_eq!(told["value"].as_str(), Some(version.as_str()));
        assert!(fact("storage.data.disks")["value"].is_array());
        // "try" does not tell what came of it before 17.
        let status = fact("huge_pages.status");
        assert_eq!(status["value"].is_string(), major >= "17", "{status}");
        assert_eq!(status["missing"].is_string(), major < "17", "{status}");
    }
    let list = home.run(&["sandbox", "list", "--json"]).fine().json();
    assert_eq!(list.as_array().expect("a list").len(), 5);
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
    let bin = fs::read_dir("/usr/lib/postgresql")
        .expect("Debian's postgresql (make test installs it)")
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .find(|bin| bin.join("initdb").exists())
        .expect("initdb");
    let home = Home::new();
    let (data, wal) = (home.file("d/data"), home.file("w/wal"));
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let arguments = [
        "sandbox",
        "create",
        "x",
        "--pg-bin",
        &text(&bin),
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
    home.run(&["sandbox", "start", "x"]).fine();
    assert_eq!(state(), "running");
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
    home.run(&["sandbox", "create", "x"]).fine();
}

#[test]
fn mistakes_are_told_with_what_to_do() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    home.run(&["sandbox", "create", "x", "--port", &port])
        .fails(1, &["taken", "--port"]);
    home.run(&["sandbox", "create", "../x"])
        .fails(2, &["cannot be the name"]);
    home.run(&["sandbox", "create", "x", "--version", "13"])
        .fails(1, &["14 to 18"]);
    home.run(&["sandbox", "create", "x", "--pg-bin", "/nowhere"])
        .fails(1, &["/nowhere"]);
    home.run(&["sandbox", "create", "x", "--memory", "much"])
        .fails(2, &["number of bytes"]);
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
    let deadline = Instant::now() + Duration::from_secs(20);
    while !home.file("state/sandboxes/.locks/x").exists() {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    let second = home.run(&["sandbox", "create", "x"]);
    said(first.wait_with_output().expect("ends")).fine();
    second.fails(1, &["exists already"]);
}

/// The kernel has the limits that the sandbox was given, and its server lives inside them. Needs root.
#[test]
fn limits_hold_in_the_kernel() {
    let home = Home::new();
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

/// What was fetched once needs no network again; without either, the way out is told.
#[test]
fn without_a_network_the_cache_serves() {
    let home = Home::new();
    let without_network = |home: &Home, name: &str| {
        let script = "ip link set lo up && exec \"$0\" sandbox create \"$1\"";
        let output = Command::new("unshare")
            .args(["--net", "sh", "-c", script, env!("CARGO_BIN_EXE_pgdyno"), name])
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

/// What is mounted at or below a directory: (point, file system, source).
fn mounts_below(directory: &Path) -> Vec<(String, String, String)> {
    let text = kernel("/proc/self/mountinfo");
    let directory = format!("{}/", directory.display());
    let mounts = text.lines().filter_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let point = left.split(' ').nth(4)?.to_owned();
        let mut right = right.split(' ').map(str::to_owned);
        Some((point, right.next()?, right.next()?))
    });
    mounts
        .filter(|(point, ..)| format!("{point}/").starts_with(&directory))
        .collect()
}

/// Files that loop devices show, below a directory.
fn loops_below(directory: &Path) -> Vec<String> {
    let devices = fs::read_dir("/sys/block").expect("devices").flatten();
    let files = devices.filter_map(|device| fs::read_to_string(device.path().join("loop/backing_file")).ok());
    files
        .map(|file| file.trim().to_owned())
        .filter(|file| Path::new(file).starts_with(directory))
        .collect()
}

/// A kernel may free a loop device a moment after its mount is gone.
fn nothing_is_left(home: &Home) {
    wait_for("loop devices are left", || {
        loops_below(home.path.path()).is_empty()
    });
    assert_eq!(mounts_below(home.path.path()), []);
    assert!(!home.file("state/sandboxes/x").exists());
}

fn lies_on_its_own(kind: &str, size: &str) {
    let home = Home::new();
    let images = home.file("images");
    fs::create_dir(&images).expect("made");
    let plan = format!("{kind}:{size}");
    let mut arguments = vec!["sandbox", "create", "x", "--filesystem", &plan];
    let place = images.to_string_lossy();
    if kind != "tmpfs" {
        arguments.extend(["--image-directory", &place]);
    }
    home.run(&arguments).fine();
    let point = home.file("state/sandboxes/x/data.mount");
    assert_eq!(home.data("x"), point.join("data"));
    assert_eq!(
        home.ask("x", "SHOW data_directory"),
        home.data("x").to_string_lossy()
    );
    let mounts = mounts_below(home.path.path());
    assert_eq!(mounts.len(), 1, "{mounts:?}");
    assert_eq!(
        (mounts[0].0.as_str(), mounts[0].1.as_str()),
        (&*point.to_string_lossy(), kind)
    );
    assert_eq!(loops_below(&images).len(), usize::from(kind != "tmpfs"));
    if let Some(device) = mounts[0].2.strip_prefix("/dev/") {
        assert_eq!(kernel(&format!("/sys/block/{device}/loop/dio")), "1");
        assert_eq!(kernel(&format!("/sys/block/{device}/loop/autoclear")), "1");
    }
    // All of it, less what the file system needs for itself.
    let space = pgdyno_host::LocalHost::new();
    let space = pgdyno_host::HostAccess::space_of(&space, &point.to_string_lossy());
    let bytes = space.expect("a machine").expect("told").bytes;
    assert!(((200 << 20)..=(400 << 20)).contains(&bytes), "{bytes}");
    let facts = home.run(&["facts", "sandbox:x", "--json"]).fine().json();
    let facts = facts["facts"].as_array().expect("facts").clone();
    let told = facts
        .iter()
        .find(|fact| fact["name"] == "storage.data.file_system");
    assert_eq!(told.expect("a fact")["value"], kind);
    let list = home.run(&["sandbox", "list"]).fine();
    assert!(list.out.contains(&format!("{kind} ")), "{}", list.out);

    // A restart of the machine unmounts it; so does this.
    home.run(&["sandbox", "stop", "x"]).fine();
    let unmounted = Command::new("umount").arg(&point).status().expect("umount runs");
    assert!(unmounted.success());
    let state = || home.run(&["sandbox", "list", "--json"]).fine().json()[0]["state"].clone();
    assert_eq!(state(), "unmounted");
    if kind == "tmpfs" {
        home.run(&["sandbox", "start", "x"])
            .fails(1, &["is gone", "tmpfs", "hint:", "destroy"]);
    } else {
        home.run(&["sandbox", "start", "x"]).fine();
        assert_eq!(home.ask("x", "SELECT 1"), "1");
        // Perhaps by another loop device: which is free depends on who else has one.
        let again = mounts_below(home.path.path());
        let places = |all: &[(String, String, String)]| -> Vec<_> {
            all.iter()
                .map(|(point, kind, _)| (point.clone(), kind.clone()))
                .collect()
        };
        assert_eq!(places(&again), places(&mounts));
    }
    home.run(&["sandbox", "destroy", "x"]).fine();
    nothing_is_left(&home);
    assert_eq!(fs::read_dir(&images).expect("there").count(), 0);
}

#[test]
fn data_in_memory() {
    lies_on_its_own("tmpfs", "256M");
}

#[test]
fn data_on_an_ext4_of_its_own() {
    lies_on_its_own("ext4", "256M");
}

#[test]
fn data_on_an_xfs_of_its_own() {
    lies_on_its_own("xfs", "384M");
}

#[test]
fn data_and_wal_on_two_file_systems_under_limits() {
    let home = Home::new();
    let arguments = [
        "sandbox",
        "create",
        "x",
        "--filesystem",
        "tmpfs:256M",
        "--wal-filesystem",
        "ext4:256M",
        "--iops",
        "2000",
    ];
    home.run(&arguments).fine();
    let kinds: Vec<String> = mounts_below(home.path.path())
        .into_iter()
        .map(|(_, kind, _)| kind)
        .collect();
    assert_eq!(kinds, ["tmpfs", "ext4"]);
    let wal = home.file("state/sandboxes/x/wal.mount/wal");
    assert_eq!(fs::read_link(home.data("x").join("pg_wal")).expect("a link"), wal);
    assert!(fs::read_dir(&wal).expect("the WAL").count() > 0);
    // A second one has its own.
    home.run(&["sandbox", "create", "y", "--filesystem", "tmpfs:256M"])
        .fine();
    home.run(&["sandbox", "destroy", "x"]).fine();
    assert_eq!(home.ask("y", "SELECT 1"), "1");
    home.run(&["sandbox", "destroy", "y"]).fine();
    nothing_is_left(&home);
}

#[test]
fn file_systems_that_cannot_be_are_told_with_what_to_do() {
    let home = Home::new();
    let create = |more: &[&str]| {
        let mut arguments = vec!["sandbox", "create", "x"];
        arguments.extend(more);
        home.run(&arguments)
    };
    create(&["--filesystem", "zfs:1G"]).fails(2, &["tmpfs, ext4, xfs, btrfs"]);
    create(&["--filesystem", "ext4"]).fails(2, &["as ext4:4G"]);
    create(&["--filesystem", "ext4:much"]).fails(2, &["number of bytes"]);
    create(&["--filesystem", "ext4:1G", "--data", "/tmp/d"]).fails(2, &["--data"]);
    create(&["--image-directory", "/tmp"]).fails(2, &["--filesystem"]);
    create(&["--filesystem", "ext4:1G", "--image-directory", "/no/such"]).fails(1, &["/no/such"]);
    create(&["--filesystem", "xfs:64M"]).fails(1, &["at least"]);
    create(&["--filesystem", "ext4:900T"]).fails(1, &["are free there"]);
    create(&["--filesystem", "tmpfs:900T"]).fails(1, &["memory available"]);
    assert!(!home.file("state/sandboxes/x").exists());
}

/// Killed at instants all over its creation: whatever there is by then, `destroy` removes it.
#[test]
fn a_killed_creation_leaves_nothing_that_destroy_does_not_find() {
    for step in 0..8_u64 {
        let home = Home::new();
        let mut child = home.spawn(&[
            "sandbox",
            "create",
            "x",
            "--filesystem",
            "ext4:128M",
            "--wal-filesystem",
            "tmpfs:128M",
        ]);
        let record = home.file("state/sandboxes/x/sandbox.json");
        wait_for("no record", || record.exists());
        pass(Duration::from_millis(step * step * 25));
        child.kill().expect("killed");
        child.wait().expect("gone");
        home.run(&["sandbox", "destroy", "x"]).fine();
        nothing_is_left(&home);
    }
}

/// What `ip` tells, in JSON; an error is nothing.
fn ip(arguments: &[&str]) -> serde_json::Value {
    let output = Command::new("ip")
        .arg("-json")
        .args(arguments)
        .output()
        .expect("iproute2 (make test installs it)");
    serde_json::from_slice(&output.stdout).unwrap_or(serde_json::Value::Null)
}

/// The name of a sandbox's namespace and link, once it is recorded.
fn network_of(home: &Home, name: &str) -> String {
    let network = home.record(name)["network"]["name"].clone();
    network.as_str().expect("a name").to_owned()
}

#[track_caller]
fn no_network_is_left(network: &str) {
    assert_eq!(ip(&["link", "show", network]), serde_json::Value::Null);
    assert!(!Path::new("/var/run/netns").join(network).exists());
}

fn lives_behind_a_link(mtu: u64) {
    let home = Home::new();
    let plan = format!("mtu:{mtu}");
    home.run(&["sandbox", "create", "x", "--network", &plan]).fine();
    let (record, network) = (home.record("x"), network_of(&home, "x"));
    assert_eq!((&record["format"], network.len()), (&3.into(), 15));
    // Both ends have it, and the server is at one of them.
    let outside = ip(&["address", "show", "dev", &network]);
    let inside = ip(&["-n", &network, "address", "show", "dev", "eth0"]);
    for (end, side) in [(&outside, "host_address"), (&inside, "server_address")] {
        assert_eq!(end[0]["mtu"], mtu, "{end}");
        assert_eq!(end[0]["addr_info"][0]["local"], record["network"][side], "{end}");
    }
    let of = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/net")).expect("a namespace");
    let postmaster = home.postmaster("x").expect("running").to_string();
    assert_ne!(of(&postmaster), of("self"));
    // No route leads out of it.
    let routes = ip(&["-n", &network, "route", "show"]);
    assert_eq!(routes.as_array().map(Vec::len), Some(1), "{routes}");
    let address = record["network"]["server_address"].as_str().expect("an address");
    assert_eq!(home.ask("x", "SHOW listen_addresses"), address);
    let list = home.run(&["sandbox", "list"]).fine();
    assert!(list.out.contains(&plan.replace(':', " ")), "{}", list.out);

    // The load goes over it.
    let packets = || kernel(&format!("/sys/class/net/{network}/statistics/tx_packets"));
    let before: u64 = packets().trim().parse().expect("a number");
    let arguments = [
        "bench",
        "sandbox:x",
        "-w",
        "simple",
        "-c",
        "2",
        "-d",
        "1s",
        "--warmup",
        "0s",
        "--json",
    ];
    let result = home.run(&arguments).fine().json();
    assert_eq!(result["cross_check"]["agrees"], true, "{result}");
    assert!(
        result["server"]
            .as_str()
            .is_some_and(|place| place.starts_with(address)),
        "{result}"
    );
    let committed = result["committed"].as_u64().expect("a number");
    assert!(
        committed > 50 && result["server_cpu_us_per_tx"].is_number(),
        "{result}"
    );
    let after: u64 = packets().trim().parse().expect("a number");
    assert!(after - before >= committed, "{before} {after}");
    // Its processes and files are found all the same.
    let facts = home.run(&["facts", "sandbox:x", "--json"]).fine().json();
    let facts = facts["facts"].as_array().expect("facts").clone();
    let disks = facts.iter().find(|fact| fact["name"] == "storage.data.disks");
    assert!(disks.expect("a fact")["value"].is_array());

    home.run(&["sandbox", "destroy", "x"]).fine();
    no_network_is_left(&network);
    nothing_is_left(&home);
}

#[test]
fn behind_a_link_of_1500() {
    lives_behind_a_link(1500);
}

#[test]
fn behind_a_link_of_9000() {
    lives_behind_a_link(9000);
}

/// A restart of the machine takes namespace and link away; so does this. What is in order stays as it is.
#[test]
fn a_network_comes_back_with_the_server() {
    let home = Home::new();
    let arguments = [
        "--network",
        "mtu:4000",
        "--memory",
        "256M",
        "--filesystem",
        "tmpfs:256M",
    ];
    home.run(&[&["sandbox", "create", "x"], &arguments[..]].concat())
        .fine();
    let network = network_of(&home, "x");
    let number = || ip(&["link", "show", &network])[0]["ifindex"].clone();
    let first = number();
    home.run(&["sandbox", "restart", "x"]).fine();
    assert_eq!(number(), first);
    home.run(&["sandbox", "stop", "x"]).fine();
    for command in [
        ["link", "delete", network.as_str()],
        ["netns", "delete", network.as_str()],
    ] {
        assert!(
            Command::new("ip")
                .args(command)
                .status()
                .expect("ip runs")
                .success()
        );
        home.run(&["sandbox", "start", "x"]).fine();
        assert_eq!(ip(&["-n", &network, "link", "show", "eth0"])[0]["mtu"], 4000);
        assert_eq!(home.ask("x", "SELECT inet_client_addr() IS NOT NULL"), "f");
        home.run(&["bench", "sandbox:x", "-w", "simple", "-d", "1s", "--warmup", "0s"])
            .fine();
        home.run(&["sandbox", "stop", "x"]).fine();
    }
    // Its record is lost: the link knows whose it is.
    fs::write(home.file("state/sandboxes/x/sandbox.json"), "{ torn").expect("written");
    home.run(&["sandbox", "destroy", "x"]).fine();
    no_network_is_left(&network);
    nothing_is_left(&home);
}

#[test]
fn networks_that_cannot_be_are_told_with_what_to_do() {
    let home = Home::new();
    for wrong in ["9000", "mtu:100", "mtu:70000"] {
        home.run(&["sandbox", "create", "x", "--network", wrong])
            .fails(2, &["as mtu:9000"]);
    }
    let without = |home: &Home, options: &[&str]| {
        let output = Command::new("setpriv")
            .args(options)
            .arg(env!("CARGO_BIN_EXE_pgdyno"))
            .args(["sandbox", "create", "x", "--network", "mtu:9000"])
            .env("PGDYNO_HOME", home.path.path())
            .output();
        said(output.expect("setpriv runs"))
    };
    let capabilities = ["--bounding-set", "-sys_admin,-net_admin", "--inh-caps", "-all"];
    without(&home, &capabilities).fails(1, &["not permitted", "hint:", "CAP_NET_ADMIN"]);
    home.run(&["sandbox", "destroy", "x"]).fine();
    let home = Home::new();
    fs::set_permissions(home.file("state"), fs::Permissions::from_mode(0o777)).expect("open to all");
    let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    without(&home, &nobody).fails(1, &["only root", "hint:", "--network"]);
    assert!(!home.file("state/sandboxes/x").exists());
}

/// As for file systems: whatever there is of it by then, `destroy` removes it.
#[test]
fn a_creation_killed_with_a_network_leaves_nothing_that_destroy_does_not_find() {
    for step in 0..16_u64 {
        let home = Home::new();
        let mut child = home.spawn(&["sandbox", "create", "x", "--network", "mtu:9000"]);
        let record = home.file("state/sandboxes/x/sandbox.json");
        wait_for("no record", || record.exists());
        // Making the network takes some 30 ms; then come initdb and the start.
        pass(Duration::from_millis(step * step * 4));
        child.kill().expect("killed");
        child.wait().expect("gone");
        let network = network_of(&home, "x");
        home.run(&["sandbox", "destroy", "x"]).fine();
        no_network_is_left(&network);
        nothing_is_left(&home);
    }
}
