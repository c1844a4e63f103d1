//! Sandboxes with file systems of their own, for real: in memory, in images, killed while they are
//! made. Needs root.

use common::machine::kills;
use common::mounts::{loops_below, mounts_below, nothing_is_left, unmount};
use common::{Home, kernel, pass, until_is};
use std::fs;
use std::time::Duration;

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
    let bytes = space.expect("a machine").expect("space").bytes;
    assert!(((200 << 20)..=(400 << 20)).contains(&bytes), "{bytes}");
    let facts = home.run(&["facts", "sandbox:x", "--json"]).fine().json();
    let facts = facts["facts"].as_array().expect("facts").clone();
    let fact = facts
        .iter()
        .find(|fact| fact["name"] == "storage.data.file_system");
    assert_eq!(fact.expect("a fact")["value"], kind);
    let list = home.run(&["sandbox", "list"]).fine();
    assert!(list.out.contains(&format!("{kind} ")), "{}", list.out);
    if kind == "xfs" {
        // XFS shows the size of its log's buffers whether it was given or not.
        let option = format!("mount.logbsize@{}", point.display());
        for (value, code) in [("default", 0), ("32k", 0), ("256k", 3)] {
            let said = home.run(&["verify", "--host-only", &format!("{option}={value}")]);
            assert_eq!(said.code, code, "{value}: {}{}", said.out, said.err);
        }
    }

    // A restart of the machine unmounts it; so does this.
    home.run(&["sandbox", "stop", "x"]).fine();
    unmount(&point);
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

/// A restart of the machine empties what is in memory, and temporary files are the only ones that
/// may go with it.
#[test]
fn temporary_files_on_a_file_system_of_their_own() {
    let home = Home::new();
    let create = ["sandbox", "create", "x", "--temp-filesystem", "tmpfs:128M"];
    home.run(&create).fine();
    let spills = || {
        let figures = home.ask(
            "x",
            "DROP ROLE IF EXISTS plain; CREATE ROLE plain; SET work_mem = '64kB'; SET log_temp_files = 0; SET ROLE plain; SELECT count(*) FROM
             (SELECT i FROM generate_series(1, 300000) i ORDER BY -i OFFSET 0) s",
        );
        assert!(figures.ends_with("300000"), "{figures}");
        let log = fs::read_to_string(home.file("state/sandboxes/x/log")).expect("a log");
        let mut paths = log.lines().filter(|line| line.contains("temporary file: path"));
        paths.next_back().expect("it spills").to_owned()
    };
    assert!(spills().contains("pg_tblspc/"), "{}", spills());
    let point = home.file("state/sandboxes/x/temp.mount");
    home.run(&["sandbox", "stop", "x"]).fine();
    unmount(&point);
    home.run(&["sandbox", "start", "x"]).fine();
    assert_eq!(mounts_below(home.path.path()).len(), 1);
    assert!(spills().contains("pg_tblspc/"), "{}", spills());
    home.run(&[
        "sandbox",
        "create",
        "y",
        "--temp-filesystem",
        "tmpfs:128M",
        "--standbys",
        "1",
    ])
    .fails(1, &["without standbys"]);
    home.run(&["sandbox", "destroy", "x"]).fine();
    nothing_is_left(&home);
    // A directory elsewhere, which goes with the sandbox.
    let place = home.file("elsewhere/temp");
    fs::create_dir_all(&place).expect("made");
    home.run(&["sandbox", "create", "x", "--temp", &place.to_string_lossy()])
        .fine();
    assert!(spills().contains("pg_tblspc/"), "{}", spills());
    assert!(fs::read_dir(&place).expect("a tablespace").count() > 0);
    home.run(&["sandbox", "destroy", "x"]).fine();
    assert!(!place.exists());
}

#[test]
fn file_systems_that_cannot_be_are_refused_with_what_to_do() {
    let home = Home::new();
    let create = |more: &[&str]| {
        let mut arguments = vec!["sandbox", "create", "x"];
        arguments.extend(more);
        home.run(&arguments)
    };
    create(&["--filesystem", "zfs:1G"]).fails(2, &["tmpfs, ext4, xfs, btrfs"]);
    create(&["--filesystem", "ext4"]).fails(2, &["e.g. ext4:4G"]);
    create(&["--filesystem", "ext4:much"]).fails(2, &["expected a size"]);
    create(&["--filesystem", "ext4:1G", "--data", "/tmp/d"]).fails(2, &["--data"]);
    create(&["--image-directory", "/tmp"]).fails(2, &["--filesystem"]);
    create(&["--filesystem", "ext4:1G", "--image-directory", "/no/such"]).fails(1, &["/no/such"]);
    create(&["--filesystem", "xfs:64M"]).fails(2, &["at least"]);
    create(&["--filesystem", "ext4:900T"]).fails(1, &["are free there"]);
    create(&["--filesystem", "tmpfs:900T"]).fails(1, &["memory available"]);
    assert!(!home.file("state/sandboxes/x").exists());
}

/// Killed at instants all over its creation: whatever there is by then, `destroy` removes it.
#[test]
fn a_killed_creation_leaves_nothing_that_destroy_does_not_find() {
    for step in (0..8_u64).step_by(8 / kills(4).min(8) as usize) {
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
        until_is("there is a record", true, || record.exists());
        pass(Duration::from_millis(step * step * 25));
        child.kill().expect("killed");
        child.wait().expect("gone");
        home.run(&["sandbox", "destroy", "x"]).fine();
        nothing_is_left(&home);
    }
}

/// A restart of the machine unmounts an image, and what is to be restored is in it.
#[test]
fn what_is_in_an_unmounted_image_is_restored() {
    let home = Home::new();
    home.run(&["sandbox", "create", "x", "--filesystem", "ext4:256M"])
        .fine();
    let conf = || fs::read_to_string(home.data("x").join("postgresql.auto.conf")).expect("mounted");
    let before = conf();
    home.run(&["apply", "sandbox:x", "work_mem=9MB"]).fine();
    assert_ne!(conf(), before);
    home.run(&["sandbox", "stop", "x"]).fine();
    let point = home.file("state/sandboxes/x/data.mount");
    unmount(&point);
    home.run(&["restore"]).fine();
    assert_eq!(conf(), before);
}
