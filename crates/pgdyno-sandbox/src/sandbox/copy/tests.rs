//! Copies of directories that look like a server's.

use super::super::record::Record;
use super::*;
use pgdyno_host::Limits;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

struct Place {
    root: tempfile::TempDir,
    sandbox: Sandbox,
}

impl Place {
    /// A stopped sandbox; its WAL in the data directory, or elsewhere and marked.
    fn new(wal_elsewhere: bool) -> Place {
        let root = tempfile::tempdir().unwrap();
        let here = fs::canonicalize(root.path()).unwrap();
        let directory = here.join("sandboxes/x");
        let data = directory.join("data");
        fs::create_dir_all(data.join("base/1")).unwrap();
        fs::create_dir_all(data.join("pg_tblspc")).unwrap();
        let wal = wal_elsewhere.then(|| here.join("w/wal"));
        match &wal {
            Some(wal) => {
                fs::create_dir_all(wal.join("archive_status")).unwrap();
                fs::write(create::mark_of(wal), "x").unwrap();
                symlink(wal, data.join(WAL)).unwrap();
            }
            None => fs::create_dir_all(data.join("pg_wal/archive_status")).unwrap(),
        }
        let write = |name: &str, text: &str| fs::write(data.join(name), text).unwrap();
        write("PG_VERSION", "18\n");
        write(KEPT, "old = 1\n");
        write("base/1/1259", &"page".repeat(5000));
        write("base/1/empty", "");
        write("pg_wal/000000010000000000000001", "segment 1");
        fs::set_permissions(data.join("base/1/1259"), fs::Permissions::from_mode(0o640)).unwrap();
        let record = Record {
            format: 1,
            name: "x".into(),
            ready: true,
            version: "18.1".into(),
            bin: "/nowhere".into(),
            data,
            wal,
            temp: None,
            port: 1,
            user: None,
            limits: Limits::default(),
            unlimited: Vec::new(),
            created_unix_ms: 7,
            file_systems: Vec::new(),
            network: None,
            standbys: None,
            standby_of: None,
            listen: None,
        };
        Place {
            root,
            sandbox: Sandbox { directory, record },
        }
    }

    fn to(&self) -> PathBuf {
        self.root.path().join("copy")
    }

    fn data(&self, name: &str) -> PathBuf {
        self.sandbox.record.data.join(name)
    }

    fn save(&self) -> Result<Copied, SandboxError> {
        self.sandbox.save_copy(&self.to(), &mut |_| ())
    }

    fn restore(&self) -> Result<Copied, SandboxError> {
        self.sandbox.restore_copy(&self.to(), &mut |_| ())
    }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(outcome: Result<T, SandboxError>, message: &str) {
    let error = outcome.unwrap_err().to_string();
    assert!(error.contains(message), "{error}");
}

fn there_and_back(wal_elsewhere: bool) {
    let place = Place::new(wal_elsewhere);
    let mut reported = Vec::new();
    let copied = place
        .sandbox
        .save_copy(&place.to(), &mut |at| reported.push(at))
        .unwrap();
    // PG_VERSION, postgresql.auto.conf, two relations, a segment.
    assert_eq!((copied.files, copied.bytes), (5, 3 + 8 + 20_000 + 9));
    assert_eq!(
        reported.last().map(|at| (at.bytes, at.bytes_all)),
        Some((20_020, 20_020))
    );
    assert!(reported.is_sorted_by_key(|at| at.bytes));
    let before = fs::metadata(place.data("base/1/1259")).unwrap();

    fs::write(place.data("base/1/1259"), "changed").unwrap();
    fs::write(place.data("base/1/more"), "new").unwrap();
    fs::write(place.data("pg_wal/000000010000000000000002"), "segment 2").unwrap();
    fs::write(place.data(KEPT), "work_mem = 1\n").unwrap();
    fs::remove_file(place.data("PG_VERSION")).unwrap();
    let restored = place.restore().unwrap();
    assert_eq!(restored.files, 4);

    assert_eq!(
        fs::read_to_string(place.data("base/1/1259")).unwrap(),
        "page".repeat(5000)
    );
    let after = fs::metadata(place.data("base/1/1259")).unwrap();
    assert_eq!(
        (after.mode(), after.uid(), after.mtime(), after.mtime_nsec()),
        (before.mode(), before.uid(), before.mtime(), before.mtime_nsec())
    );
    assert!(!place.data("base/1/more").exists());
    assert!(!place.data("pg_wal/000000010000000000000002").exists());
    assert!(place.data("pg_wal/archive_status").is_dir());
    assert_eq!(fs::read_to_string(place.data(KEPT)).unwrap(), "work_mem = 1\n");
    assert_eq!(
        fs::symlink_metadata(place.data(WAL)).unwrap().is_symlink(),
        wal_elsewhere
    );
    place.sandbox.make_whole().unwrap();

    refused(place.save(), "a copy already");
    remove_copy(&place.to()).unwrap();
    remove_copy(&place.to()).unwrap();
    assert!(!place.to().exists());
}

#[test]
fn what_was_copied_comes_back_but_for_what_a_treatment_has_set() {
    there_and_back(false);
}

#[test]
fn wal_elsewhere_comes_back_elsewhere() {
    there_and_back(true);
}

#[test]
fn a_copy_without_its_mark_is_none() {
    let place = Place::new(false);
    refused(place.restore(), "no whole copy");
    place.save().unwrap();
    fs::remove_file(mark_file(&place.to())).unwrap();
    refused(place.restore(), "no whole copy");
    assert_eq!(fs::read_to_string(place.data("PG_VERSION")).unwrap(), "18\n");
    // It is made again over what there is of it.
    place.save().unwrap();
    fs::write(mark_file(&place.to()), "{\"format\": 9}").unwrap();
    refused(place.restore(), "copy.json");
}

#[test]
fn a_server_does_not_start_on_a_part_of_a_copy() {
    let place = Place::new(false);
    place.save().unwrap();
    // A file that cannot be copied stops it on the way.
    let part = place.to().join("data/base/1/1259");
    fs::remove_file(&part).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &part,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    refused(place.restore(), "cannot be copied");
    refused(place.sandbox.start(), "cannot be copied");
    fs::remove_file(&part).unwrap();
    fs::write(&part, "whole again").unwrap();
    let mark = fs::read(mark_file(&place.to())).unwrap();
    fs::remove_file(mark_file(&place.to())).unwrap();
    refused(place.sandbox.start(), "only in part");
    // A whole copy is restored by the start itself.
    fs::write(mark_file(&place.to()), mark).unwrap();
    place.sandbox.make_whole().unwrap();
    assert_eq!(
        fs::read_to_string(place.data("base/1/1259")).unwrap(),
        "whole again"
    );
}

#[test]
fn what_is_not_the_sandboxs_is_neither_copied_nor_emptied() {
    let place = Place::new(true);
    place.save().unwrap();
    let wal = place.sandbox.record.wal.clone().unwrap();
    fs::write(create::mark_of(&wal), "another").unwrap();
    refused(place.restore(), "left alone");
    assert!(place.data("base/1/1259").exists());
    let mut other = place.sandbox.clone();
    other.record.created_unix_ms = 8;
    refused(other.restore_copy(&place.to(), &mut |_| ()), "another sandbox");

    let mine = place.root.path().join("mine");
    fs::create_dir(&mine).unwrap();
    fs::write(mine.join("precious"), "").unwrap();
    refused(place.sandbox.save_copy(&mine, &mut |_| ()), "not empty");
    refused(remove_copy(&mine), "left alone");
    let inside = place.data("base/copy");
    refused(
        place.sandbox.save_copy(&inside, &mut |_| ()),
        "of which it is to be a copy",
    );
    assert!(!inside.exists());
    symlink("/tmp", place.data("pg_tblspc/16384")).unwrap();
    remove_copy(&place.to()).unwrap();
    refused(place.save(), "tablespaces");
    fs::remove_file(place.data("pg_tblspc/16384")).unwrap();
    fs::write(place.data("postmaster.pid"), "4194304\n").unwrap();
    refused(place.save(), "has not stopped in order");
}

/// A user other than root.
const SERVER: u32 = 12_345;

fn give_all(path: &Path) {
    std::os::unix::fs::lchown(path, Some(SERVER), Some(SERVER)).unwrap();
    if fs::symlink_metadata(path).unwrap().is_dir() {
        for entry in fs::read_dir(path).unwrap().flatten() {
            give_all(&entry.path());
        }
    }
}

/// The server's user makes pg_wal lead to a directory of root's, and back before the copy is
/// restored.
#[test]
fn wal_that_leads_to_a_directory_of_another_user_is_not_copied() {
    let mut place = Place::new(false);
    place.sandbox.record.user = Some(pgdyno_server::User {
        name: "server".to_owned(),
        uid: SERVER,
        gid: SERVER,
    });
    let roots = place.root.path().join("roots");
    fs::create_dir(&roots).unwrap();
    fs::set_permissions(&roots, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(roots.join("secret"), "root only").unwrap();
    give_all(&place.data(""));
    fs::rename(place.data(WAL), place.data("kept")).unwrap();
    symlink(&roots, place.data(WAL)).unwrap();
    std::os::unix::fs::lchown(place.data(WAL), Some(SERVER), Some(SERVER)).unwrap();
    refused(place.save(), "belongs to user 0, expected user 12345");
    assert!(!place.to().join("wal").exists());
    // Root's own link does not lead there either.
    std::os::unix::fs::lchown(place.data(WAL), Some(0), Some(0)).unwrap();
    refused(place.save(), "belongs to user 0, expected user 12345");
    fs::remove_file(place.data(WAL)).unwrap();
    fs::rename(place.data("kept"), place.data(WAL)).unwrap();
    place.save().unwrap();
    place.restore().unwrap();
}

/// Who owns the directory above the data has put a directory of root's in its place, beside which
/// the mark still is.
#[test]
fn directory_of_another_user_in_the_place_of_the_data_is_neither_emptied_nor_removed() {
    let mut place = Place::new(false);
    place.save().unwrap();
    let elsewhere = place.root.path().join("theirs/data");
    fs::create_dir(elsewhere.parent().unwrap()).unwrap();
    fs::create_dir_all(elsewhere.join(WAL)).unwrap();
    fs::write(elsewhere.join("precious"), "").unwrap();
    fs::write(create::mark_of(&elsewhere), "x").unwrap();
    place.sandbox.record.data = elsewhere.clone();
    place.sandbox.record.user = Some(pgdyno_server::User {
        name: "server".to_owned(),
        uid: SERVER,
        gid: SERVER,
    });
    refused(place.restore(), "belongs to user 0, expected user 12345");
    let directory = place.sandbox.directory.clone();
    refused(
        place.sandbox.destroy(),
        "belongs to user 0, expected user 12345, whom the sandbox runs as; it is left alone",
    );
    assert!(elsewhere.join("precious").exists() && !directory.exists());
}
