//! pgdyno in machines booted by emulation: what it finds on four nodes, knobs that other machines
//! refuse or lack, and what a hard reset leaves. The jobs, with what is done in which order, are
//! scripts/guest/jobs.

use common::guest::{Console, boot};
use common::machine::{all_guests, turn};
use serde_json::{Value, json};
use std::fs::File;
use std::process::Command;
use std::sync::LazyLock;

/// scripts/guest/machine.sh says what it is made of.
const FOUR_NODES: &str = "x86_64-6.1-numa4";
/// A newer kernel.
const NEWER: &str = "x86_64-6.12-cgroup2";

/// One boot serves many tests.
static KNOBS: LazyLock<Console> = LazyLock::new(|| boot(FOUR_NODES, "knobs", &[]));

/// The value of a fact that is known.
#[track_caller]
fn value<'a>(facts: &'a Value, name: &str) -> &'a Value {
    let facts = facts["facts"].as_array().expect("a list");
    let fact = facts.iter().find(|fact| fact["name"] == name);
    let fact = fact.unwrap_or_else(|| panic!("no fact {name} among {}", facts.len()));
    assert!(fact["missing"].is_null(), "{fact}");
    &fact["value"]
}

/// A field of each line of a journal's status, or of what was restored, by knob.
#[track_caller]
fn by_knob<'a>(lines: &'a Value, field: &str) -> Vec<(&'a str, &'a str)> {
    let lines = lines.as_array().expect("a list").iter();
    let text = |value: &'a Value| value.as_str().expect("a text");
    lines
        .map(|line| (text(&line["knob"]), text(&line[field])))
        .collect()
}

/// A field of one knob's line.
#[track_caller]
fn of<'a>(lines: &'a Value, knob: &str, field: &str) -> &'a str {
    let line = by_knob(lines, field).into_iter().find(|(name, _)| *name == knob);
    line.unwrap_or_else(|| panic!("no {knob} in {lines}")).1
}

/// A line of a knob, which must contain this text.
#[track_caller]
fn line_with(console: &Console, label: &str, knob: &str, expected: &str) {
    let text = console.step(label).out;
    let mut lines = text.lines().filter(|line| line.trim_start().starts_with(knob));
    assert!(
        lines.any(|line| line.contains(expected)),
        "no \"{expected}\" for {knob}:\n{text}"
    );
}

#[test]
fn four_nodes_are_found() {
    let version = concat!("pgdyno ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(KNOBS.printed("version"), version);
    let facts = KNOBS.json("facts");
    for (name, expected) in [
        ("cpu.threads", json!(8)),
        ("cpu.cores", json!(8)),
        ("cpu.sockets", json!(4)),
        ("numa.online", json!("0-3")),
        ("numa.online_count", json!(4)),
        ("thp.enabled", json!("madvise")),
    ] {
        assert_eq!(*value(&facts, name), expected, "{name}");
    }
    let of_nodes = |key: &str| -> Vec<Value> {
        let nodes = value(&facts, "numa.nodes").as_array().expect("a list");
        nodes.iter().map(|node| node[key].clone()).collect()
    };
    assert_eq!(of_nodes("cpus"), ["0-1", "2-3", "4-5", "6-7"]);
    let far = [
        json!([10, 16, 32, 32]),
        json!([16, 10, 32, 32]),
        json!([32, 32, 10, 16]),
        json!([32, 32, 16, 10]),
    ];
    assert_eq!(of_nodes("distances"), far);
    // Two more on each node than on the one before: the job asked for them, and the kernel had
    // them.
    let pools = value(&facts, "huge_pages.pools").as_array().expect("a list");
    let reserved: Vec<(&Value, &Value)> = pools
        .iter()
        .filter(|pool| pool["page_bytes"] == 2 << 20)
        .map(|pool| (&pool["node"], &pool["total"]))
        .collect();
    let expected = [(0, 2), (1, 4), (2, 6), (3, 8)].map(|(node, pages)| (json!(node), json!(pages)));
    assert_eq!(reserved, expected.each_ref().map(|(node, pages)| (node, pages)));
}

/// Traps 5 to 7: not mounted, not on this kernel, and kept by a kernel that is locked down are
/// three cases.
#[test]
fn what_a_kernel_has_not_shows_not_or_keeps_to_itself_is_distinguished() {
    KNOBS.step("debugfs is not mounted").fails(
        2,
        &[
            "nothing was changed",
            "/sys/kernel/debug/sched/migration_cost_ns",
            "debugfs is not mounted (mount -t debugfs none /sys/kernel/debug)",
        ],
    );
    for (label, since) in [("not on this kernel yet", "6.6"), ("nor sizes", "6.8")] {
        let said = KNOBS.step(label).fails(2, &["(kernel 6.1."]);
        let expected = format!("kernels since {since} have it\n");
        assert!(said.err.ends_with(&expected), "{}", said.err);
    }
    KNOBS.step("locked down").fails(
        1,
        &[
            "nothing was changed",
            "kernel.sched_nr_migrate",
            "may not be read: Operation not permitted",
            "hint: root may be needed (over ssh: --sudo); a kernel that is locked down",
        ],
    );
}

/// Traps 1, 4, 5, 8: what has companions and counterparts is restored with them.
#[test]
fn knobs_of_scheduler_and_memory_go_back_to_the_byte() {
    KNOBS.step("memory").fine();
    KNOBS.step("memory holds").fine();
    let status = KNOBS.json("memory is known");
    let changes = &status[0]["changes"];
    let states = by_knob(changes, "state");
    assert_eq!(states.len(), 15, "{changes}");
    assert!(states.iter().all(|(_, state)| *state == "in-force"), "{changes}");
    // Set again by another knob's file, and still a knob of its own.
    let knob = "kernel.sched_min_granularity_ns";
    assert_eq!(
        ["was", "now", "place"].map(|field| of(changes, knob, field)),
        ["3000000", "5000000", "/sys/kernel/debug/sched/min_granularity_ns"]
    );
    let back = KNOBS.json("memory goes back");
    let outcomes = by_knob(&back, "outcome");
    assert_eq!(outcomes.len(), 15, "{back}");
    assert!(
        outcomes.iter().all(|(_, outcome)| *outcome == "restored"),
        "{back}"
    );
    assert_eq!(of(&back, knob, "was"), "3000000");
    assert_eq!(of(&back, "vm.dirty_ratio", "was"), "100000000 / 0");
    assert_eq!(of(&back, "vm.overcommit_ratio", "was"), "400000 / 0");
    assert_eq!(KNOBS.printed("memory is as before"), "");
}

/// Traps 12, 14 and 15.
#[test]
fn a_pool_of_huge_pages_goes_back_node_by_node() {
    assert_eq!(KNOBS.words("pool is spread")[0], "40");
    line_with(&KNOBS, "pool goes back", "vm.nr_hugepages", "20 / 2 / 4 / 6 / 8");
    KNOBS.step("part of the pool").fine();
    assert_eq!(KNOBS.words("part is there"), ["20", "2", "9", "1", "8"]);
    let status = KNOBS.json("part of the pool is known");
    let expected = [
        ("hugepages.node_pool@2048/1", "4"),
        ("hugepages.node_pool@2048/2", "6"),
    ];
    assert_eq!(by_knob(&status[0]["changes"], "was"), expected);
    KNOBS.step("part of the pool goes back").fine();
    // A node of 256 MB has no 200 pages of 2 MB.
    let found = KNOBS.step("too much of a node").fails(3, &[]).out;
    let knob = "hugepages.node_pool@2048/3";
    line_with(&KNOBS, "too much of a node", knob, "DID NOT TAKE EFFECT");
    let effective = found.split_whitespace().skip_while(|word| *word != "200").nth(1);
    let pages: u64 = effective.and_then(|word| word.parse().ok()).expect("a number");
    assert!((9..128).contains(&pages), "{found}");
    line_with(&KNOBS, "too much of a node goes back", knob, "restored");
    // The kernel would take what there is, and kill the process that is to restore it.
    KNOBS.step("too much of all").fails(
        4,
        &[
            "nothing was changed: vm.nr_hugepages = 2000: /proc/sys/vm/nr_hugepages = 2000: ",
            " pages fit",
        ],
    );
    assert_eq!(KNOBS.printed("pools are as before"), "");
}

/// Trap 4: another process restores what keeps others from starting.
#[test]
fn memory_that_may_hardly_be_promised_is_restored_by_another_process() {
    KNOBS.step("tight").fine();
    KNOBS.step("nothing large fits").fails(1, &["out of memory"]);
    line_with(&KNOBS, "tight goes back", "vm.overcommit_memory", "restored");
    line_with(
        &KNOBS,
        "tight goes back",
        "vm.overcommit_kbytes",
        "400000 / 0   restored",
    );
    assert_eq!(KNOBS.printed("promises are as before"), "");
}

/// Traps 18 and 29.
#[test]
fn read_ahead_is_each_devices_own_and_goes_back_under_its_new_name() {
    assert_eq!(KNOBS.words("read-ahead of each"), ["4096", "2048", "512"]);
    KNOBS.step("read-ahead goes back").fine();
    // dm-0 and dm-1 have changed places meanwhile: 1024 was the first one's, 256 the other's.
    assert_eq!(KNOBS.words("read-ahead by identity"), ["256", "1024", "128"]);
    // Two loop devices of one file.
    KNOBS.step("alike go back").fine();
    assert_eq!(KNOBS.words("each its own"), ["128", "64"]);
}

/// What is only advised is checked afterwards.
#[test]
fn an_encrypted_volume_shows_its_flags() {
    KNOBS.step("flags").fine();
    let found = KNOBS.step("a flag that is not there").fails(3, &[]).out;
    assert!(found.contains(" off "), "{found}");
    KNOBS
        .step("not encrypted")
        .fails(2, &["no encrypted volume is among vda"]);
}

#[test]
fn a_device_that_is_gone_keeps_nothing_else_from_going_back() {
    line_with(
        &KNOBS,
        "the volume is gone",
        "block.read_ahead_kb@dm-1",
        "the device is gone",
    );
    KNOBS.step("the rest goes back").fine();
    line_with(
        &KNOBS,
        "the rest goes back",
        "block.read_ahead_kb@dm-1",
        "as before already: the device is gone",
    );
    assert_eq!(KNOBS.words("read-ahead of the rest"), ["128", "60"]);
}

/// Traps 17 and 23.
#[test]
fn a_scheduler_and_an_interrupt_are_restored_and_one_that_is_refused_is_reported() {
    KNOBS.step("scheduler").fine();
    let back = KNOBS.json("scheduler goes back");
    let expected = [
        ("block.nr_requests@vdb", "64"),
        ("block.scheduler@vdb", "mq-deadline"),
    ];
    assert_eq!(by_knob(&back, "was"), expected);
    KNOBS.step("interrupt").fine();
    assert_eq!(KNOBS.words("interrupt is moved"), ["4-6"]);
    for label in ["the timer's interrupt", "a managed interrupt"] {
        KNOBS.step(label).fails(
            1,
            &[
                "everything was restored: /proc/irq/",
                "does not take the value \"1\"",
                "hint: the kernel does not move some interrupts",
            ],
        );
    }
    KNOBS.step("no change is left").fails(0, &["nothing is changed"]);
    assert_eq!(KNOBS.printed("disks and interrupts are as before"), "");
}

#[test]
fn a_change_below_another_one_is_not_restored_alone() {
    KNOBS.step("the lower one alone").fails(
        1,
        &[
            "not restored: ",
            "has set vm.swappiness since; restore the later one first",
        ],
    );
    KNOBS.step("both").fine();
    assert_eq!(KNOBS.words("both are back"), ["60", "0"]);
}

/// Trap 31, and a journal that stays until everything is back.
#[test]
fn where_nothing_may_be_written_nothing_is_changed_and_the_journal_stays() {
    KNOBS.step("read-only").fails(
        1,
        &[
            "nothing was changed: vm.zone_reclaim_mode = 1: /proc/sys/vm/zone_reclaim_mode may not be written: Read-only",
            "hint: ",
        ],
    );
    assert_eq!(KNOBS.words("read-only keeps what was"), ["32", "0"]);
    KNOBS
        .step("read-only restore")
        .fails(1, &["vm.swappiness could not be restored; the journal is kept"]);
    line_with(
        &KNOBS,
        "writable again",
        "kernel.sched_migration_cost_ns",
        "as before already",
    );
    line_with(&KNOBS, "writable again", "vm.swappiness", "restored");
    KNOBS.step("writable again").fine();
}

#[test]
fn a_kernel_that_is_locked_down_keeps_one_knob_and_the_others_go_back() {
    KNOBS.step("before the lock").fine();
    let knob = "kernel.sched_migration_cost_ns";
    line_with(&KNOBS, "locked down, looked at", knob, "not known");
    line_with(&KNOBS, "locked down, looked at", "vm.swappiness", "in force");
    KNOBS.step("locked down restore").fails(
        1,
        &["kernel.sched_migration_cost_ns could not be restored; the journal is kept"],
    );
    assert_eq!(KNOBS.words("what is left"), ["0", "60"]);
}

/// Trap 10, and a time of the scheduler under its new name.
fn a_newer_kernel_has_sizes_and_other_names() {
    let console = boot(NEWER, "sizes", &["-m", "6144"]);
    let said = console.step("gone from this kernel").fails(2, &["(kernel 6.12."]);
    assert!(said.err.ends_with("kernels up to 6.5 have it\n"), "{}", said.err);
    console.step("sizes").fine();
    let expected = "[always] inherit madvise never\nalways inherit madvise [never]\n\
                    always [inherit] within_size advise never\n5000000\n";
    assert_eq!(console.printed("sizes are set"), expected);
    console.step("sizes go back").fine();
    console.step("pages of 1 GB").fine();
    line_with(
        &console,
        "pages of 1 GB go back",
        "hugepages.pool@1048576",
        "0 / 0    restored",
    );
    assert_eq!(console.printed("sizes are as before"), "");
}

/// Trap 28. Nothing is written back but what pgdyno itself has made durable.
fn a_hard_reset_leaves_what_a_restore_needs() {
    let work = tempfile::tempdir().expect("a directory");
    let disk = work.path().join("disk");
    let file = File::create(&disk).expect("a file");
    file.set_len(64 << 20).expect("a size");
    let made = Command::new("sh")
        .args(["-c", "PATH=$PATH:/usr/sbin:/sbin mkfs.ext4 -q \"$0\""])
        .arg(&disk)
        .status();
    assert!(made.is_ok_and(|status| status.success()), "mkfs.ext4");

    let options = ["-d", disk.to_str().expect("a path")];
    let first = boot(FOUR_NODES, "reboot", &options);
    first.step("ten settings").fine();
    let before = first.json("before the reset");
    let states = by_knob(&before[0]["changes"], "state");
    assert_eq!(states.len(), 12, "{before}");
    assert!(states.iter().all(|(_, state)| *state == "in-force"), "{before}");
    // By files of pgdyno's own they stay beyond a reboot.
    assert_eq!(before[0]["changes"][0]["until_reboot"], false);
    let said = first.step("killed").fine();
    assert!(
        said.out
            .contains("its process was killed: `pgdyno restore` restores it"),
        "{}",
        said.out
    );

    let second = boot(FOUR_NODES, "reboot", &options);
    let after = second.json("after the reset");
    let own = ["/etc/sysctl.d/90-pgdyno.conf", "/etc/tmpfiles.d/90-pgdyno.conf"];
    for (journal, count) in [(&after[0], 12), (&after[1], 2)] {
        let states = by_knob(&journal["changes"], "state");
        assert_eq!(states.len(), count, "{after}");
        for (knob, state) in states {
            let expected = if own.contains(&knob) {
                "in-force"
            } else {
                "rebooted"
            };
            assert_eq!(state, expected, "{knob}");
        }
    }
    assert_eq!(
        after[1]["kept"],
        Value::Null,
        "its process did not come to say so"
    );
    let lines = second.printed("files");
    for line in [
        "vm.nr_hugepages = 10",
        "kernel.numa_balancing = 0",
        "w /sys/kernel/mm/transparent_hugepage/enabled - - - - always",
    ] {
        assert!(lines.lines().any(|other| other == line), "{lines}");
    }
    // The disk has a serial number, and may have another name after a boot.
    assert!(!lines.contains("/sys/block/"), "{lines}");

    // What the files have set again is in force, and is restored; the others went with the reset,
    // and what somebody has set beside it since stays.
    let again = second.json("set again at boot");
    let back = second.json("restore");
    assert_eq!(second.printed("reserve").trim(), "50000");
    let set_again = ["vm.", "kernel.numa", "transparent_hugepage."];
    for (knob, state) in by_knob(&again[0]["changes"], "state") {
        let (expected, outcome) =
            if own.contains(&knob) || set_again.iter().any(|start| knob.starts_with(start)) {
                ("in-force", "restored")
            } else {
                ("rebooted", "already")
            };
        assert_eq!(state, expected, "{knob}");
        assert_eq!(of(&back, knob, "outcome"), outcome, "{knob}");
    }
    for knob in ["vm.vfs_cache_pressure", "ksm.pages_to_scan"] {
        assert_eq!(of(&back, knob, "outcome"), "already");
    }
    assert!(!second.printed("files are gone").contains("90-pgdyno"));
    assert_eq!(second.printed("as before"), "");
    second.step("restore again").fails(0, &["nothing to restore"]);
}

/// One of the other two, which another commit changes; PGDYNO_GUESTS=all for both, as `make soak`
/// does.
#[test]
fn a_newer_kernel_and_a_hard_reset_have_their_turn() {
    if all_guests() || turn().is_multiple_of(2) {
        a_newer_kernel_has_sizes_and_other_names();
    }
    if all_guests() || !turn().is_multiple_of(2) {
        a_hard_reset_leaves_what_a_restore_needs();
    }
}
