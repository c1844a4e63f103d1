//! `pgdyno check` against real servers: what it prints, and that it leaves nothing behind, however
//! it ends. Needs root.

use common::machine::versions_in_turn;
use common::{Home, Said, said, signal, until, until_is};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// Long enough for each measurement to have something to count.
const SHORT: &str = "0.2";

fn check(home: &Home, arguments: &[&str]) -> Said {
    let mut all = vec!["check"];
    all.extend(arguments);
    let done = home.run(&all);
    // A slow disk or a busy machine is not a fault of the check's.
    assert!(matches!(done.code, 0 | 3), "{}\n{}", done.out, done.err);
    done
}

fn of<'a>(report: &'a Value, name: &str) -> &'a Value {
    let all = report["measurements"].as_array().expect("measurements");
    let found = all.iter().find(|measured| measured["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {report:#}"))
}

/// All paths below a sandbox that are not the server's own to come and go with.
fn files(home: &Home, name: &str) -> BTreeSet<PathBuf> {
    fn walk(directory: &Path, found: &mut BTreeSet<PathBuf>) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            // Segments of the WAL and of its status, statistics, and forks that the server makes as
            // it sees fit.
            if ["pg_wal", "pg_stat", "pg_stat_tmp", "pg_subtrans"].contains(&name.as_str())
                || name.ends_with("_fsm")
                || name.ends_with("_vm")
                || name == "pg_internal.init"
            {
                continue;
            }
            if path.is_dir() {
                walk(&path, found);
            }
            found.insert(path);
        }
    }
    let mut found = BTreeSet::new();
    walk(&home.file(&format!("state/sandboxes/{name}")), &mut found);
    found
}

/// Files of checks anywhere below the home, the WAL's directory included.
fn own_files(home: &Home) -> Vec<String> {
    let output = Command::new("find")
        .arg(home.path.path())
        .args(["-name", "pgdyno-check-*"])
        .output()
        .expect("find runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(str::to_owned).collect()
}

/// What users could see of a change: relations, settings, databases, roles.
fn catalogue(home: &Home, name: &str) -> Vec<String> {
    [
        "SELECT string_agg(relname || relpersistence::text || relnatts, ',' ORDER BY oid) FROM pg_class",
        "SELECT string_agg(name || coalesce(setting, ''), ',' ORDER BY name) FROM pg_settings WHERE source <> 'session'",
        "SELECT string_agg(datname, ',' ORDER BY oid) FROM pg_database",
        "SELECT string_agg(rolname, ',' ORDER BY oid) FROM pg_roles",
        "SELECT count(*) FROM pg_replication_slots",
    ]
    .into_iter()
    .map(|sql| home.ask(name, sql))
    .collect()
}

fn wait_for_own_file(home: &Home, child: &mut Child) {
    until("a file is made", || {
        assert!(child.try_wait().expect("a child").is_none(), "it ended too soon");
        let made = own_files(home);
        if made.is_empty() { Err(made) } else { Ok(()) }
    });
}

#[test]
fn everything_is_measured_and_nothing_is_left() {
    let home = Home::new();
    home.run(&["sandbox", "create", "x"]).fine();
    let before = (files(&home, "x"), catalogue(&home, "x"));
    let done = check(&home, &["sandbox:x", "--json", "--seconds", SHORT]);
    assert_eq!(before.0, files(&home, "x"));
    assert_eq!(before.1, catalogue(&home, "x"));
    assert_eq!(own_files(&home), [""; 0]);
    let report = done.json();
    assert_eq!(report["format"], "pgdyno-check/1");
    assert_eq!(report["server"]["way"], "Unix socket");
    let names = [
        "timer",
        "round_trip",
        "commit",
        "wal_sync",
        "random_read",
        "sequential_read",
        "noise",
        "clock",
        "steal",
    ];
    for name in names {
        let measured = of(&report, name);
        assert!(measured["figure"].is_number(), "{measured:#}");
        assert!(measured["unit"].as_str().is_some_and(|unit| !unit.is_empty()));
    }
    assert_eq!(report["measurements"].as_array().expect("all").len(), names.len());
    let commit = &of(&report, "commit")["detail"];
    let commits = commit["times"]["count"].as_u64().expect("a count");
    assert!(
        commits > 0 && commit["flushes"].as_u64() >= Some(commits),
        "{commit:#}"
    );
    assert!(commit["wal_bytes"].as_u64() >= Some(commits * 100), "{commit:#}");
    let ways = of(&report, "wal_sync")["detail"]["ways"]
        .as_array()
        .expect("ways");
    for method in ["open_datasync", "fdatasync", "fsync", "open_sync"] {
        for writes in [1, 2] {
            assert!(
                ways.iter()
                    .any(|way| way["method"] == method && way["writes"] == writes && way["direct"] == false),
                "{method} {writes}"
            );
        }
    }
    assert_eq!(of(&report, "wal_sync")["detail"]["method"], "fdatasync");
    assert_eq!(
        of(&report, "noise")["detail"]["tps"].as_array().map(Vec::len),
        Some(5)
    );
    let poor = report["measurements"]
        .as_array()
        .expect("all")
        .iter()
        .filter(|measured| measured["verdict"] == "poor");
    assert_eq!(done.code, if poor.count() > 0 { 3 } else { 0 });
}

#[test]
fn versions_confirm_that_commits_were_flushed() {
    let home = Home::new();
    for major in versions_in_turn() {
        let name = format!("v{major}");
        home.run(&["sandbox", "create", &name, "--version", &major])
            .fine();
        let target = format!("sandbox:{name}");
        let report = check(
            &home,
            &[
                &target,
                "--only",
                "commit,round_trip",
                "--json",
                "--seconds",
                SHORT,
            ],
        )
        .json();
        let commit = of(&report, "commit");
        let commits = commit["detail"]["times"]["count"].as_u64().expect("a count");
        assert!(
            commit["detail"]["flushes"].as_u64() >= Some(commits),
            "{commit:#}"
        );
        assert_ne!(commit["verdict"], "unknown", "{commit:#}");
        assert_eq!(report["measurements"].as_array().map(Vec::len), Some(2));
    }
}

#[test]
fn what_does_not_wait_is_not_called_good() {
    let home = Home::new();
    home.run(&["sandbox", "create", "x", "--set", "synchronous_commit=off"])
        .fine();
    let only = ["sandbox:x", "--only", "commit", "--json", "--seconds", SHORT];
    let unknown = |reason: &str| {
        let arguments = [&["check"], &only[..]].concat();
        let done = home.run(&arguments);
        let report = done.json();
        let commit = of(&report, "commit");
        // Without a single figure nothing was checked.
        let code = i32::from(commit["figure"].is_null());
        assert_eq!(done.code, code, "{}", done.err);
        assert_eq!(commit["verdict"], "unknown", "{commit:#}");
        assert!(
            commit["why"].as_str().expect("why").contains(reason),
            "{commit:#}"
        );
    };
    unknown("synchronous_commit is off");
    home.ask("x", "ALTER SYSTEM SET fsync = off");
    home.ask("x", "SELECT pg_reload_conf()");
    unknown("fsync is off");
    // A standby is a copy of it.
    home.run(&["sandbox", "stop", "x"]).fine();
    fs::write(home.data("x").join("standby.signal"), "").expect("written");
    home.run(&["sandbox", "start", "x"]).fine();
    unknown("in recovery");
}

/// A commit that waits for a standby which is not there ends with no timeout of the server's.
#[test]
fn a_commit_that_hangs_is_given_up() {
    let home = Home::new();
    home.run(&["sandbox", "create", "x"]).fine();
    home.ask("x", "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    // Reloaded, it would hold from some later commit on.
    home.run(&["sandbox", "restart", "x"]).fine();
    let report = check(
        &home,
        &["sandbox:x", "--only", "commit", "--json", "--seconds", SHORT],
    )
    .json();
    let commit = of(&report, "commit");
    assert_eq!(commit["verdict"], "poor", "{commit:#}");
    assert!(
        commit["why"].as_str().expect("why").contains("given up"),
        "{commit:#}"
    );
    assert_eq!(
        home.ask(
            "x",
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        ),
        "0"
    );
}

#[test]
fn a_user_without_rights_is_shown_what_is_missing() {
    let home = Home::new();
    home.run(&["sandbox", "create", "x"]).fine();
    home.ask("x", "CREATE ROLE \"plain-one\" LOGIN PASSWORD 'p'");
    home.ask("x", "REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC");
    let port = home.record("x")["port"].clone();
    let target = format!("host=127.0.0.1 port={port} user=plain-one password=p dbname=postgres");
    let report = check(
        &home,
        &[
            &target,
            "--only",
            "commit,wal_sync,read,clock",
            "--json",
            "--seconds",
            SHORT,
        ],
    )
    .json();
    let wal_sync = of(&report, "wal_sync");
    assert_eq!(wal_sync["verdict"], "unknown");
    let why = wal_sync["why"].as_str().expect("why");
    let grant = "GRANT pg_read_all_settings TO \"plain-one\"";
    assert!(why.contains(grant), "{why}");
    assert!(of(&report, "commit")["figure"].is_number());
    assert!(
        of(&report, "commit")["notes"]
            .to_string()
            .contains("without a temporary table")
    );
    assert!(of(&report, "clock")["detail"]["server_minus_this_ms"].is_number());
    // Whoever may know where it is finds it over TCP too.
    home.ask("x", grant);
    let report = check(
        &home,
        &[&target, "--only", "wal_sync", "--json", "--seconds", SHORT],
    )
    .json();
    assert!(of(&report, "wal_sync")["figure"].is_number(), "{report:#}");
    assert_eq!(own_files(&home), [""; 0]);
}

/// Data and WAL on two volumes: each is measured where it is, beside the server's directories.
#[test]
fn files_are_made_on_the_volumes_of_data_and_wal() {
    let home = Home::on_disk();
    let memory = tempfile::tempdir_in("/dev/shm").expect("a directory");
    fs::set_permissions(memory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("open");
    let wal = memory.path().join("wal");
    home.run(&["sandbox", "create", "x", "--wal", &wal.to_string_lossy()])
        .fine();
    let report = check(
        &home,
        &[
            "sandbox:x",
            "--only",
            "wal_sync,read",
            "--json",
            "--seconds",
            SHORT,
        ],
    )
    .json();
    let directory =
        |name: &str| PathBuf::from(of(&report, name)["detail"]["directory"].as_str().expect("a path"));
    assert_eq!(directory("wal_sync"), memory.path());
    assert_eq!(directory("random_read"), home.file("state/sandboxes/x"));
    let why = of(&report, "wal_sync")["why"].as_str().expect("why").to_owned();
    assert!(why.contains("nothing reaches a disk"), "{why}");
    let left = fs::read_dir(memory.path()).expect("readable").flatten();
    let names: BTreeSet<String> = left
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    // The second marks the first as a sandbox's.
    assert_eq!(names, ["wal", "wal.pgdyno-sandbox"].map(str::to_owned).into());
    home.run(&["sandbox", "destroy", "x"]).fine();
}

#[test]
fn a_signal_leaves_nothing_and_what_a_kill_leaves_goes_with_the_next() {
    let home = Home::new();
    home.run(&["sandbox", "create", "x"]).fine();
    let before = (files(&home, "x"), catalogue(&home, "x"));
    let begin = |only: &str| home.spawn(&["check", "sandbox:x", "--only", only, "--seconds", "30"]);
    for name in ["-INT", "-TERM", "-HUP"] {
        let mut child = begin("wal_sync");
        wait_for_own_file(&home, &mut child);
        signal(child.id(), name);
        said(child.wait_with_output().expect("ends")).fails(1, &["stopped before the end"]);
        assert_eq!(own_files(&home), [""; 0], "{name}");
    }
    let mut child = begin("read");
    wait_for_own_file(&home, &mut child);
    child.kill().expect("killed");
    child.wait().expect("dead");
    let left = own_files(&home);
    assert_eq!(left.len(), 1, "{left:?}");
    // One that is in use is left alone, by the check that clears up.
    let mut other = begin("wal_sync");
    let used = until("one other file is made", || {
        let used = own_files(&home);
        if used.len() == 1 && used != left {
            Ok(used)
        } else {
            Err(used)
        }
    });
    let third = check(&home, &["sandbox:x", "--only", "timer", "--seconds", SHORT]);
    assert!(!third.err.contains("removed"), "{}", third.err);
    assert_eq!(own_files(&home), used);
    other.kill().expect("killed");
    other.wait().expect("dead");
    let last = check(&home, &["sandbox:x", "--only", "timer", "--seconds", SHORT]);
    assert!(
        last.err.contains("removed") && last.err.contains(&used[0]),
        "{}",
        last.err
    );
    assert_eq!(own_files(&home), [""; 0]);
    // In the middle of commits, too.
    let mut child = begin("commit");
    let tables = || {
        home.ask(
            "x",
            "SELECT count(*) FROM pg_class WHERE relname = 'pgdyno_check'",
        )
    };
    until_is("a table is made", "1".to_owned(), || {
        assert!(child.try_wait().expect("a child").is_none(), "it ended too soon");
        tables()
    });
    child.kill().expect("killed");
    child.wait().expect("dead");
    until_is("the table is gone with its session", "0".to_owned(), tables);
    assert_eq!(before, (files(&home, "x"), catalogue(&home, "x")));
}

/// Processes and files of a server in another container are out of sight, and here a directory of
/// the same name looks as if a server with the same port ran in it.
#[test]
fn of_a_server_elsewhere_only_the_server_is_measured() {
    let home = Home::new();
    home.run(&["sandbox", "create", "x"]).fine();
    let password = fs::read_to_string(home.file("state/sandboxes/x/password")).expect("a password");
    let port = home.record("x")["port"].to_string();
    let target = format!("host=127.0.0.1 port={port} user=postgres dbname=postgres");
    let script = "mount -t tmpfs none \"$1\" && mkdir -p \"$3\" && printf '%s\\n%s\\n0\\n%s\\n' $$ \"$3\" \"$4\" \
                  >\"$3/postmaster.pid\" && exec \"$0\" check \"$2\" --seconds 1 --json";
    let output = Command::new("unshare")
        .args(["--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", script])
        .arg(common::program())
        .arg(home.path.path())
        .arg(&target)
        .arg(home.data("x"))
        .arg(&port)
        .env("PGDYNO_HOME", home.path.path())
        .env("PGPASSWORD", password.trim())
        .output()
        .expect("unshare runs");
    let report = said(output).json();
    assert_eq!(report["server"]["way"], "TCP");
    let why = report["host_not_measured"].as_str().expect("a reason");
    assert!(
        why.contains("another pid namespace") && why.contains("--host-only"),
        "{why}"
    );
    for name in ["timer", "wal_sync", "random_read", "sequential_read", "steal"] {
        let measured = of(&report, name);
        assert!(measured["figure"].is_null(), "{measured:#}");
        assert_eq!(measured["why"], format!("not measured: {why}"));
    }
    for name in ["round_trip", "commit", "noise"] {
        assert!(of(&report, name)["figure"].is_number(), "{report:#}");
    }
    assert!(of(&report, "clock")["detail"]["server_minus_this_ms"].is_number());
    assert_eq!(own_files(&home), [""; 0]);
}

#[test]
fn a_host_is_measured_without_a_server() {
    let home = Home::new();
    let directory = home.file("here");
    fs::create_dir(&directory).expect("made");
    let place = directory.to_string_lossy().into_owned();
    let report = check(
        &home,
        &["--host-only", "--dir", &place, "--json", "--seconds", SHORT],
    )
    .json();
    assert!(report["server"].is_null());
    assert_eq!(of(&report, "wal_sync")["detail"]["directory"], place.as_str());
    assert_eq!(fs::read_dir(&directory).expect("readable").count(), 0);
    let lines = check(&home, &["--host-only", "--only", "timer", "--seconds", SHORT]);
    assert!(
        lines.out.contains("good below 100 ns, poor from 1000"),
        "{}",
        lines.out
    );
}

#[test]
fn check_that_could_measure_nothing_fails() {
    let home = Home::new();
    let reads = ["check", "--host-only", "--only", "read", "--seconds", SHORT];
    let no_place = home.run(&reads);
    assert!(no_place.out.contains("--dir"), "{}", no_place.out);
    no_place.fails(1, &["nothing could be measured"]);
    let json = home.run(&[&reads[..], &["--json"]].concat());
    assert_eq!(
        (json.code, of(&json.json(), "random_read")["verdict"].as_str()),
        (1, Some("unknown"))
    );
    // One figure is a check.
    check(
        &home,
        &["--host-only", "--only", "read,timer", "--seconds", SHORT],
    );
}

#[test]
fn mistakes_are_reported_with_what_to_do() {
    let home = Home::new();
    let fails = |arguments: &[&str], texts: &[&str]| {
        let mut all = vec!["check"];
        all.extend(arguments);
        home.run(&all).fails(2, texts);
    };
    fails(&[], &["<TARGET>"]);
    fails(&["x", "--only", "nothing"], &["round_trip", "wal_sync"]);
    fails(&["x", "--seconds", "0"], &["0.1 to 600"]);
    fails(&["--host-only", "--only", "commit"], &["commit", "--host-only"]);
    fails(
        &["--host-only", "--dir", "/nowhere"],
        &["/nowhere", "not a directory"],
    );
}
