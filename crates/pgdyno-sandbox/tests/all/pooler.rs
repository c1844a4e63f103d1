//! Poolers before a sandbox, for real: started, asked, left behind, ended.

use crate::common::Home;
use pgdyno_host::{LocalHost, is_alive};
use pgdyno_sandbox::{PoolMode, Pooler, PoolerError, PoolerKind, PoolerPlan, Sandbox};
use pgdyno_server::{Conninfo, Server, postgres};
use pgdyno_testing::until;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

fn plan(home: &Home, kind: PoolerKind) -> PoolerPlan {
    PoolerPlan {
        kind,
        mode: PoolMode::Session,
        pool_size: 6,
        clients_max: 6,
        directory: home.file("pooler"),
        extra: Vec::new(),
    }
}

/// What a pooler's directory holds: its log, and the mark that it was one's.
fn only_its_log_is_left(directory: &Path) {
    let mut names: Vec<String> = fs::read_dir(directory)
        .expect("a directory")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["log", "pooler.ended"]);
}

fn nobody_gets_in_without_the_password(conninfo: &Conninfo) {
    let mut config = conninfo.config().clone();
    config.password("wrong");
    assert!(config.connect(postgres::NoTls).is_err());
}

fn lives_and_ends(home: &Home, sandbox: &Sandbox, kind: PoolerKind) {
    let plan = plan(home, kind);
    let pooler = Pooler::start(sandbox, &plan).unwrap();
    let conninfo = pooler.conninfo().clone();
    assert!(conninfo.is_proxied());
    let mut server = Server::connect(&conninfo).unwrap();
    assert_eq!(
        server.value("asking", "SELECT 41 + 1").unwrap().as_deref(),
        Some("42")
    );
    drop(server);
    nobody_gets_in_without_the_password(&conninfo);
    let user = sandbox.record().user.as_ref().map(|user| user.uid);
    let runs_as = fs::metadata(format!("/proc/{}", pooler.pid())).unwrap().uid();
    assert_eq!(user.unwrap_or(runs_as), runs_as);
    pooler.cpu_us().unwrap();
    // Two cannot be in one place.
    let error = Pooler::start(sandbox, &plan).err().expect("refused");
    assert!(matches!(error, PoolerError::InUse { .. }), "{error}");
    let pid = pooler.pid();
    pooler.stop().unwrap();
    assert!(!is_alive(&LocalHost::new(), pid));
    assert!(Server::connect(&conninfo).is_err());
    only_its_log_is_left(&plan.directory);

    // Left behind by a process that had no time to end it, its first process killed with it:
    // pgpool's others stay.
    let left = Pooler::start(sandbox, &plan).unwrap();
    let pid = left.pid();
    // pgpool answers before it has made all of them.
    let least = if kind == PoolerKind::Pgpool { 6 } else { 0 };
    let children = until("children", || {
        let children = pgdyno_host::children(&LocalHost::new(), pid);
        if children.len() >= least {
            Ok(children)
        } else {
            Err(children)
        }
    });
    std::mem::forget(left);
    if kind == PoolerKind::Pgpool {
        let number = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
        rustix::process::kill_process(number, rustix::process::Signal::KILL).unwrap();
    }
    assert!(Pooler::end_left_behind(&plan.directory).unwrap());
    assert!(!Pooler::end_left_behind(&plan.directory).unwrap());
    // Those that ended by themselves with their first one may be about to be gone.
    for pid in children.iter().chain([&pid]) {
        until("its end", || match is_alive(&LocalHost::new(), *pid) {
            true => Err(*pid),
            false => Ok(()),
        });
    }
    only_its_log_is_left(&plan.directory);

    // One that does not start says why, and leaves nothing.
    let broken = PoolerPlan {
        extra: vec![match kind {
            PoolerKind::PgBouncer => ("server_check_delay".to_owned(), "rarely".to_owned()),
            PoolerKind::Pgpool => ("child_life_time".to_owned(), "rarely".to_owned()),
        }],
        ..plan.clone()
    };
    let error = Pooler::start(sandbox, &broken)
        .err()
        .expect("refused")
        .to_string();
    assert!(error.contains("its log") && error.contains("rarely"), "{error}");
    only_its_log_is_left(&plan.directory);
}

#[test]
fn pgbouncer_lives_and_ends() {
    let home = Home::new(None);
    lives_and_ends(&home, home.sandbox(), PoolerKind::PgBouncer);
}

#[test]
fn pgpool_lives_and_ends() {
    let home = Home::new(None);
    lives_and_ends(&home, home.sandbox(), PoolerKind::Pgpool);
}
