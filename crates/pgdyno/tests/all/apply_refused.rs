//! What `apply` refuses, and what keeps a setting from its effect: said by name, and nothing is
//! changed. On a real server and this machine's own kernel. Needs root.

use common::machine::whole_machine;
use common::mounts::unmount;
use common::{Home, auto_conf, kernel, tool};
use std::fs;
use std::path::Path;

const SWAPPINESS: &str = "/proc/sys/vm/swappiness";

#[test]
fn what_cannot_be_is_refused_by_name_and_nothing_is_changed() {
    let _machine = whole_machine();
    let home = Home::new();
    home.run(&["sandbox", "create", "x"]).fine();
    let (swappiness, conf) = (kernel(SWAPPINESS), auto_conf(&home));
    let fails = |setting: &str, code: i32, texts: &[&str]| {
        // A good one before it, which must not be applied either.
        home.run(&["apply", "sandbox:x", "vm.swappiness=17", "work_mem=9MB", setting])
            .fails(code, texts);
        assert_eq!(kernel(SWAPPINESS), swappiness, "{setting}");
        assert_eq!(auto_conf(&home), conf, "{setting}");
        assert!(
            home.run(&["status"]).fine().err.contains("nothing is changed"),
            "{setting}"
        );
    };
    fails("shared_bufers=1GB", 2, &["did you mean \"shared_buffers\"?"]);
    fails("vm.page-cluster=4000", 2, &["vm.page-cluster", "expected"]);
    fails("work_mem", 2, &["KNOB=VALUE"]);
    fails("fsync=off", 4, &["--accept-durability-risk fsync"]);
    fails("server_version=19", 2, &["server_version"]);
    fails(
        "maintenance_work_mem=8 bananas",
        2,
        &[
            "maintenance_work_mem",
            "nothing was changed",
            "expected a number from 64 to",
        ],
    );
    fails(
        "shared_buffers=100TB",
        2,
        &["nothing was changed", "from 16 to 1073741823"],
    );
    fails(
        "table.fillfactor@nowhere=90",
        1,
        &["no table nowhere in the database postgres"],
    );
    fails("table.fillfactor=90", 2, &["a table behind an @"]);
    fails("block.scheduler=elevator", 2, &["on this host"]);
    fails(
        "block.read_ahead_kb@nosuchdisk=64",
        2,
        &["nosuchdisk", "does not exist on this host"],
    );
    fails("server.wal_directory=/proc", 2, &["not empty"]);
    fails("server.cpu_affinity=4000", 2, &["CPUs of 0-"]);
    fails("vm.min_free_kbytes=100000000", 2, &["5 % of the memory"]);
    fails("vm.drop_caches=3", 2, &["no state to restore"]);
    fails("mount.noatime=on", 2, &["not set by pgdyno"]);
    fails("cgroup.cpu_quota=1", 2, &["root group"]);
    fails("cgroup.cpus=0", 2, &["cgroup.cpus"]);
    // The servers that are fetched are built without liburing.
    fails("io_method=io_uring", 2, &["io_method", "one of sync, worker"]);
    // Several at once, and the gravest decides.
    home.run(&["apply", "sandbox:x", "fsync=off", "work_mem=1", "jit=perhaps"])
        .fails(
            4,
            &[
                "nothing was changed",
                "work_mem = \"1\": expected",
                "jit = \"perhaps\": expected",
                "hint: --accept-durability-risk fsync",
            ],
        );
    if !Path::new("/sys/devices/system/cpu/cpufreq/policy0").exists() {
        fails(
            "cpu.governor=performance",
            2,
            &["scaling_governor", "does not exist on this host"],
        );
    }
    // debugfs is refused or missing on most machines; where it is there, the knob is.
    if fs::read_dir("/sys/kernel/debug/sched").is_err() {
        let said = home.run(&["apply", "--host-only", "kernel.sched_migration_cost_ns=500000"]);
        assert_ne!(said.code, 0);
        assert!(said.err.contains("sched"), "{}", said.err);
    }
    // An interrupt that the kernel keeps to itself, or has not.
    let said = home.run(&["apply", "--host-only", "irq.affinity@0=0"]);
    assert_ne!(said.code, 0, "{}", said.out);
    assert!(said.err.contains("irq"), "{}", said.err);

    // A value that lets the server not start: the old ones are back, and it runs.
    home.run(&["apply", "sandbox:x", "shared_buffers=2TB", "huge_pages=off"])
        .fails(
            1,
            &[
                "does not start with these settings",
                "could not map anonymous shared memory",
            ],
        );
    assert_eq!(home.ask("x", "SHOW shared_buffers"), "128MB");
    assert_eq!(auto_conf(&home), conf);
}

#[test]
fn a_journal_that_cannot_be_written_stops_before_anything_is_changed() {
    let _machine = whole_machine();
    let home = Home::new();
    let before = kernel(SWAPPINESS);
    let full = home.file("full");
    fs::create_dir(&full).expect("a directory");
    tool(
        "mount",
        &["-t", "tmpfs", "-o", "size=64k", "none", &full.to_string_lossy()],
    );
    let filled = fs::write(full.join("ballast"), vec![0; 1 << 20]);
    assert!(filled.is_err(), "it is full");
    let said = common::said(
        home.command(&["apply", "--host-only", "vm.swappiness=17"])
            .env("PGDYNO_HOME", &full)
            .output()
            .expect("it runs"),
    );
    let after = kernel(SWAPPINESS);
    unmount(&full);
    said.fails(1, &["journal", "No space left"]);
    assert_eq!(after, before);
}

#[test]
fn what_is_hidden_by_a_role_is_said_and_the_background_above_its_limit_too() {
    let _machine = whole_machine();
    let home = Home::new();
    home.run(&["sandbox", "create", "x"]).fine();
    home.ask("x", "CREATE ROLE app; ALTER ROLE app SET work_mem = '1MB'");
    let said = home.run(&["apply", "sandbox:x", "work_mem=9MB"]).fine();
    assert!(
        said.out.contains("role app") && said.out.contains("took effect"),
        "{}",
        said.out
    );
    let said = home
        .run(&[
            "apply",
            "--host-only",
            "vm.dirty_bytes=67108864",
            "vm.dirty_background_bytes=67108864",
        ])
        .fine();
    assert!(said.out.contains("not below vm.dirty_bytes"), "{}", said.out);
    home.run(&["restore"]).fine();
}
