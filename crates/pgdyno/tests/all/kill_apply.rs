//! SIGKILL at random instants while thirty knobs of every kind are applied: a fresh process brings
//! all of them back, to the byte. Ten kills; PGDYNO_KILLS=1000 for the long run of `make soak`.
//! Needs root.
#![allow(clippy::print_stdout, reason = "the tally is what is looked at")]

use common::machine::{kills, quiet_machine};
use common::{Home, disk_of, kernel, pass};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const KILLS: u32 = 10;

const SETTINGS: [&str; 29] = [
    "shared_buffers=48MB",
    "huge_pages=on",
    "work_mem=9MB",
    "maintenance_work_mem=99MB",
    "effective_cache_size=777MB",
    "max_wal_size=2GB",
    "min_wal_size=160MB",
    "checkpoint_timeout=17min",
    "checkpoint_completion_target=0.7",
    "wal_buffers=8MB",
    "wal_compression=pglz",
    "random_page_cost=1.3",
    "jit=off",
    "autovacuum_naptime=50s",
    "vm.nr_hugepages=auto",
    "vm.dirty_bytes=536870912",
    "vm.dirty_background_bytes=67108864",
    "vm.swappiness=17",
    "vm.page-cluster=2",
    "vm.vfs_cache_pressure=90",
    "vm.dirty_expire_centisecs=2500",
    "transparent_hugepage.enabled=never",
    "transparent_hugepage.defrag=never",
    "net.core.somaxconn=5000",
    "block.read_ahead_kb=64",
    "block.scheduler=none",
    "table.fillfactor@t=90",
    "table.autovacuum_vacuum_scale_factor@t=0.01",
    "server.cpu_affinity=0",
];

const FILES: [&str; 12] = [
    "/proc/sys/vm/nr_hugepages",
    "/proc/sys/vm/dirty_bytes",
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/vm/dirty_background_bytes",
    "/proc/sys/vm/dirty_background_ratio",
    "/proc/sys/vm/swappiness",
    "/proc/sys/vm/page-cluster",
    "/proc/sys/vm/vfs_cache_pressure",
    "/proc/sys/vm/dirty_expire_centisecs",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/mm/transparent_hugepage/defrag",
    "/proc/sys/net/core/somaxconn",
];

/// Everything that is touched, as it is now.
fn state(home: &Home, disk: &str, wal: &Path) -> Vec<(String, String)> {
    let queue =
        ["read_ahead_kb", "scheduler", "nr_requests"].map(|file| format!("/sys/block/{disk}/queue/{file}"));
    let files = FILES.iter().map(|file| (*file).to_owned()).chain(queue);
    let mut all: Vec<(String, String)> = files.map(|path| (path.clone(), kernel(&path))).collect();
    all.push(("swap".into(), common::swap().join("; ")));
    let data = home.data("x");
    let conf = fs::read_to_string(data.join("postgresql.auto.conf")).expect("a file");
    all.push(("postgresql.auto.conf".into(), conf));
    let link = fs::read_link(data.join("pg_wal")).map(|to| to.display().to_string());
    all.push(("pg_wal".into(), link.unwrap_or_else(|_| "a directory".into())));
    let mut names: Vec<String> = fs::read_dir(&data)
        .expect("the data directory")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("pgdyno"))
        .collect();
    names.sort();
    all.push(("left in the data directory".into(), names.join(" ")));
    all.push(("the other WAL directory".into(), wal.exists().to_string()));
    let options = "SELECT string_agg(relname || coalesce(reloptions::text, '-'), ' ' ORDER BY relname) FROM pg_class \
                   WHERE relname LIKE 't_'";
    all.push(("reloptions".into(), home.ask("x", options)));
    all.push(("rows".into(), home.ask("x", "SELECT count(*) FROM t")));
    for name in ["shared_buffers", "huge_pages", "work_mem", "jit"] {
        all.push((name.into(), home.ask("x", &format!("SHOW {name}"))));
    }
    all
}

#[test]
fn kills_while_thirty_knobs_are_applied_lose_nothing() {
    let _machine = quiet_machine();
    let home = Home::on_disk();
    home.run(&["sandbox", "create", "x"]).fine();
    home.ask(
        "x",
        "CREATE TABLE t(id int) PARTITION BY RANGE (id); CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10); \
         CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (10) TO (20) WITH (fillfactor = 80); \
         INSERT INTO t SELECT generate_series(0, 19)",
    );
    let disk = disk_of(&home.data("x"));
    let wal = home.file("wal");
    let before = state(&home, &disk, &wal);
    let wal_setting = format!("server.wal_directory={}", wal.display());
    let mut words = vec!["apply", "sandbox:x"];
    words.extend(SETTINGS);
    words.push(&wal_setting);
    assert_eq!(words.len() - 2, 30);

    // How long it takes when nobody kills it; and that all of it takes effect.
    let begun = Instant::now();
    let said = home.run(&words).fine();
    let length = begun.elapsed();
    assert!(!said.out.contains("NOT"), "{}", said.out);
    let after = state(&home, &disk, &wal);
    let changed = before.iter().zip(&after).filter(|(a, b)| a != b).count();
    assert!(changed >= 18, "{changed} of {} differ: {after:?}", before.len());
    home.run(&["restore"]).fine();
    assert_eq!(state(&home, &disk, &wal), before);

    let mut random = Xoshiro256PlusPlus::seed_from_u64(20_261);
    let (mut killed, mut dirty, mut differed) = (0, 0, 0);
    let span_us = u64::try_from(length.as_micros()).expect("a short time");
    while killed < kills(KILLS) {
        let mut child = home.spawn(&words);
        pass(Duration::from_micros(random.next_u64() % span_us));
        child.kill().expect("killed, or ended by itself");
        child.wait().expect("dead");
        killed += 1;
        let journals = fs::read_dir(home.file("state/journal"))
            .into_iter()
            .flatten()
            .flatten();
        dirty += u32::from(
            journals
                .into_iter()
                .any(|entry| entry.path().extension().is_some_and(|ending| ending == "journal")),
        );
        differed += u32::from(FILES.iter().any(|file| {
            before
                .iter()
                .any(|(path, value)| path == file && *value != kernel(file))
        }));
        let restored = home.run(&["restore"]).fine();
        assert!(
            !restored.out.contains("FAILED") && !restored.out.contains("left alone"),
            "{}",
            restored.out
        );
        assert_eq!(
            state(&home, &disk, &wal),
            before,
            "after kill {killed}\n{}\n{}",
            restored.out,
            restored.err
        );
    }
    println!(
        "{killed} kills within {length:?}: {dirty} with a journal, {differed} with the kernel changed; {killed} restored"
    );
    let expected = if killed < 20 { 1 } else { killed / 2 };
    assert!(
        dirty >= expected,
        "{dirty} of {killed} kills fell where something is changed; expected {expected}"
    );
}
