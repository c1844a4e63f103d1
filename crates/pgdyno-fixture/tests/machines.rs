//! Archives of `fixtures/hosts`, and the script that writes them.

use pgdyno_fixture::{Archive, Entry, Fault, Machine, archive, unpack};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

fn packed(root: &Path) -> Vec<u8> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/pack-host.sh");
    let output = Command::new(script).arg(root).output().expect("the script runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{errors}");
    output.stdout
}

#[test]
fn a_packed_directory_is_unpacked_as_it_was() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    let files: [(&str, &[u8]); 8] = [
        ("a b%20", b"two\nlines\n"),
        ("a", b" |leading and trailing \t\n"),
        ("empty", b""),
        ("line", b"\n"),
        ("lines", b"\n\n"),
        ("unended", b"one\ntwo"),
        ("binary", b"init\0--option\0\n"),
        ("\u{fc}\u{7f}", "gr\u{fc}n".as_bytes()),
    ];
    for below in ["", "z/y/"] {
        fs::create_dir_all(root.join(below)).expect("a directory");
        for (name, bytes) in files {
            fs::write(root.join(format!("{below}{name}")), bytes).expect("written");
        }
    }
    symlink("../no where/100%", root.join("z/link")).expect("a link");
    let text = packed(root);
    let archive =
        Archive::parse(&text).unwrap_or_else(|error| panic!("{error}\n{}", String::from_utf8_lossy(&text)));
    assert_eq!(archive.entries().count(), 2 * files.len() + 1);
    for (path, entry) in archive.entries() {
        match entry {
            Entry::File(bytes) => assert_eq!(fs::read(root.join(path)).expect("a file"), *bytes, "{path}"),
            Entry::Link(target) => {
                let expected = fs::read_link(root.join(path)).expect("a link");
                assert_eq!(expected.as_os_str().as_bytes(), target.as_bytes());
            }
        }
    }
    let again = tempfile::tempdir().expect("a directory");
    unpack(&archive, again.path()).expect("unpacked");
    assert_eq!(
        String::from_utf8_lossy(&packed(again.path())),
        String::from_utf8_lossy(&text)
    );
    let unpacked_twice = unpack(&archive, again.path()).expect_err("files are there");
    assert_eq!(unpacked_twice.kind(), std::io::ErrorKind::AlreadyExists);
}

#[test]
fn every_machine_is_unpacked_with_a_root_of_its_own() {
    let names = Machine::names();
    for name in &names {
        let machine = Machine::named(name);
        assert_eq!(
            machine.root().join("proc/meminfo").is_file(),
            name != "empty",
            "{name}"
        );
    }
    assert_eq!(Machine::captured().len(), names.len() - Fault::ALL.len());
}

/// The rules, each by a file that shows it.
#[test]
fn a_broken_machine_has_the_parsed_files_with_their_fault() {
    let whole = archive("x86_64-6.12-cgroup2");
    let of = |archive: &Archive, path: &str| match archive.entries().find(|(name, _)| *name == path) {
        Some((_, Entry::File(bytes))) => String::from_utf8_lossy(bytes).into_owned(),
        entry => panic!("{path}: {entry:?}"),
    };
    for (fault, online, boot_id_ends) in [
        (Fault::Empty, "", ""),
        (
            Fault::Garbage,
            "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\0\u{fffd}\u{fffd}\n\n\r\t::=,[]/-",
            "::=,[]/-",
        ),
        (
            Fault::Huge,
            "99999999999999999999999999-99999999999999999999999999\n",
            "9\n",
        ),
        (Fault::Negative, "-0--3\n", "--000000000000\n"),
        (Fault::Truncated, "0-", "0"),
        (Fault::Unended, "0-3", "0"),
    ] {
        let broken = fault.of(&whole);
        assert_eq!(of(&whole, "sys/devices/system/cpu/online"), "0-3\n");
        assert_eq!(of(&broken, "sys/devices/system/cpu/online"), online);
        let boot_id = of(&broken, "proc/sys/kernel/random/boot_id");
        assert!(boot_id.ends_with(boot_id_ends), "{boot_id}");
        let paths: Vec<&str> = broken.entries().map(|(path, _)| path).collect();
        assert_eq!(paths.len(), 259 + 6);
        for (path, expected) in [
            ("sys/block/vda", true),
            ("sys/devices/system/cpu/cpu0/online", false),
            ("sys/devices/system/cpu/cpu1/topology/core_id", false),
            ("sys/fs/cgroup/system.slice/memory.max", true),
            ("sys/fs/cgroup/system.slice/memory.current", false),
        ] {
            assert_eq!(paths.contains(&path), expected, "{path}");
        }
    }
}
