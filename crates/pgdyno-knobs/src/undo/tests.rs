//! Undo units of a machine made of files.

use super::*;
use pgdyno_host::LocalHost;
use std::fs;

fn saved(values: &[&str]) -> SavedState {
    SavedState::Files(values.iter().map(|v| Some((*v).to_owned())).collect())
}

fn pair() -> UndoUnit {
    unit_of(&machine(), "vm.dirty_bytes")
}

/// A machine with the files that these tests are about.
fn machine() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let queue = dir.path().join("sys/block/vda/queue");
    let vm = dir.path().join("proc/sys/vm");
    fs::create_dir_all(&queue).unwrap();
    fs::create_dir_all(&vm).unwrap();
    fs::write(queue.join("scheduler"), "none [mq-deadline] kyber bfq\n").unwrap();
    for file in ["nr_requests", "read_ahead_kb"] {
        fs::write(queue.join(file), "128\n").unwrap();
    }
    for file in ["dirty_bytes", "dirty_ratio"] {
        fs::write(vm.join(file), "0\n").unwrap();
    }
    let pages = dir.path().join("sys/kernel/mm/transparent_hugepage");
    for file in ["", "hugepages-64kB", "hugepages-2048kB"] {
        fs::create_dir_all(pages.join(file)).unwrap();
        fs::write(pages.join(file).join("enabled"), "always madvise [never]\n").unwrap();
    }
    fs::write(vm.join("min_free_kbytes"), "30000\n").unwrap();
    dir
}

fn unit_of(machine: &tempfile::TempDir, setting: &str) -> UndoUnit {
    let host = LocalHost::at(machine.path());
    let catalogue = Catalogue::shipped().unwrap();
    let context = HostContext {
        host: &host,
        data: None,
        postmaster: None,
    };
    let knob = catalogue.get(setting).unwrap();
    let resolved = context.resolved(knob, setting).unwrap();
    UndoUnit::of_kernel_knob(&context, &catalogue, knob, &resolved[0]).unwrap()
}

/// Traps 1 and 2: counterparts are undone through the one that was not zero.
#[test]
fn of_counterparts_the_one_that_was_not_zero_is_written_back() {
    let unit = pair();
    let ratio = ("/proc/sys/vm/dirty_ratio".to_owned(), "20".to_owned());
    assert_eq!(unit.writes_back(&saved(&["0", "20"])), [ratio]);
    let bytes = ("/proc/sys/vm/dirty_bytes".to_owned(), "4096".to_owned());
    assert_eq!(unit.writes_back(&saved(&["4096", "0"])), [bytes]);
    let both = unit.writes_back(&saved(&["0", "0"]));
    let ratio = |value: &str| ("/proc/sys/vm/dirty_ratio".to_owned(), value.to_owned());
    assert_eq!(both, [ratio("1"), ratio("0")]);
}

#[test]
fn what_a_scheduler_resets_has_the_schedulers_unit() {
    let machine = machine();
    let unit = |id: &str| unit_of(&machine, id);
    assert_eq!(unit("block.nr_requests@vda"), unit("block.scheduler@vda"));
    assert_ne!(unit("block.read_ahead_kb@vda"), unit("block.scheduler@vda"));
}

/// Whichever of them is written, the kernel keeps more memory free: that is restored after all of
/// them.
#[test]
fn what_sets_the_same_file_is_one_undo_unit() {
    let machine = machine();
    let unit = unit_of(&machine, "transparent_hugepage.enabled");
    assert_eq!(unit, unit_of(&machine, "transparent_hugepage.size_enabled@64"));
    assert_eq!(unit, unit_of(&machine, "vm.min_free_kbytes"));
    let writes = unit.writes_back(&saved(&["never", "never", "never", "30000"]));
    let (last, before) = writes.split_last().unwrap();
    assert_eq!(last.0, "/proc/sys/vm/min_free_kbytes");
    assert_eq!(before.len(), 3);
}

#[test]
fn either_counterpart_has_the_same_undo_unit() {
    assert_eq!(unit_of(&machine(), "vm.dirty_ratio"), pair());
}

/// Trap 17: the scheduler is written back first, then what it has set again.
#[test]
fn a_scheduler_brings_back_what_it_resets() {
    let unit = unit_of(&machine(), "block.scheduler@vda");
    let writes = unit.writes_back(&saved(&["mq-deadline", "256"]));
    let paths: Vec<&str> = writes.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "/sys/block/vda/queue/scheduler",
            "/sys/block/vda/queue/nr_requests"
        ]
    );
}

/// Trap 29: a device is found by what it is, whatever it is called today.
#[test]
fn a_disk_that_was_renamed_is_found_and_one_that_is_gone_is_missed() {
    let machine = machine();
    let (block, host) = (machine.path().join("sys/block"), LocalHost::at(machine.path()));
    fs::write(block.join("vda/wwid"), "naa.5000c500\n").unwrap();
    let unit = unit_of(&machine, "block.read_ahead_kb@vda");
    assert_eq!(unit.today(&host).unwrap(), unit);
    fs::rename(block.join("vda"), block.join("vdb")).unwrap();
    // Another disk has the name now.
    fs::create_dir_all(block.join("vda/queue")).unwrap();
    fs::write(block.join("vda/wwid"), "naa.other\n").unwrap();
    assert_eq!(
        unit.today(&host).unwrap().place(),
        "/sys/block/vdb/queue/read_ahead_kb"
    );
    fs::remove_dir_all(block.join("vdb")).unwrap();
    assert!(unit.today(&host).is_none());
}

/// Trap 8, and trap 7 for the missing companions.
#[test]
fn bracket_lists_are_read_and_missing_companions_are_none() {
    let machine = machine();
    let unit = unit_of(&machine, "block.scheduler@vda");
    fs::remove_file(machine.path().join("sys/block/vda/queue/nr_requests")).unwrap();
    let host = LocalHost::at(machine.path());
    let access = TargetAccess {
        host: &host,
        conninfo: None,
    };
    let expected = SavedState::Files(vec![Some("mq-deadline".into()), None]);
    assert_eq!(unit.capture(access).unwrap(), expected);
}
