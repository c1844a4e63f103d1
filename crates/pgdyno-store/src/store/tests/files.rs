//! Files: older ones, other programs', damaged ones.

use super::care::add;
use super::rig::Rig;
use super::{experiment, trial};
use crate::schema;
use crate::store::{Filter, ImportOutcome, Integrity, Life, PruneRule, Reader, Store, StoreError};
use pgdyno_record::SeriesRecord;
use pgdyno_record::{ExperimentStatus, TrialStatus};
use rusqlite::Connection;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn check_file(path: &Path, patience: Duration) -> Result<Integrity, StoreError> {
    Reader::of_file(path, patience)?.check()
}

fn other_store(path: &Path) -> Reader {
    Reader::of_file(path, Duration::ZERO).unwrap()
}

fn here() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("results.sqlite");
    (dir, path)
}

#[test]
fn its_directory_is_made() {
    let (dir, _) = here();
    Store::open(&dir.path().join("deep/er/x")).unwrap();
}

/// A store as an older schema's SQL makes it, with one experiment.
fn old(path: &Path, version: i64, status: ExperimentStatus) {
    let connection = Connection::open(path).unwrap();
    for step in schema::STEPS.iter().take(usize::try_from(version).unwrap()) {
        connection.execute_batch(step).unwrap();
    }
    connection.pragma_update(None, "user_version", version).unwrap();
    connection
        .pragma_update(None, "application_id", schema::APPLICATION_ID)
        .unwrap();
    let record = serde_json::to_string(&experiment()).unwrap();
    let status = serde_json::to_string(&status).unwrap();
    connection
        .execute(
            "INSERT INTO experiment (name, status, started_unix_ms, record) VALUES ('demo', ?1, 1, ?2)",
            [status, record],
        )
        .unwrap();
    let record = serde_json::to_string(&trial(1, "reference", TrialStatus::Finished)).unwrap();
    connection
        .execute(
            "INSERT INTO trial (experiment_id, block, treatment, status, record) \
             VALUES (1, 1, 'reference', '\"finished\"', ?1)",
            [record],
        )
        .unwrap();
    if version >= 2 {
        let points = pgdyno_record::pack_points(&[1000], &[0.1]);
        connection
            .execute("INSERT INTO series VALUES (1, 'load.tps', '', ?1)", [points])
            .unwrap();
    }
}

/// What an earlier version wrote is brought up to this one, and keeps what it holds.
#[test]
fn a_store_of_schema_1_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("old");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(schema::STEPS[0]).unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
    connection
        .pragma_update(None, "application_id", schema::APPLICATION_ID)
        .unwrap();
    // Values of facts were texts, and trials had no counters.
    let fact = r#"{"group":"host","name":"cpu.threads","value":"8","missing":null,"source":"/proc/cpuinfo"}"#;
    let record = serde_json::to_string(&experiment()).unwrap();
    let record = record.replace(r#""facts":[]"#, &format!(r#""facts":[{fact}]"#));
    connection
        .execute(
            "INSERT INTO experiment (name, status, started_unix_ms, record) VALUES ('demo', '\"finished\"', 1, ?1)",
            [record],
        )
        .unwrap();
    let expected = trial(1, "reference", TrialStatus::Finished);
    let mut record = serde_json::to_value(&expected).unwrap();
    assert!(
        record
            .as_object_mut()
            .unwrap()
            .remove("counters_per_tx")
            .is_some()
    );
    connection
        .execute(
            "INSERT INTO trial (experiment_id, block, treatment, status, record) \
             VALUES (1, 1, 'reference', '\"finished\"', ?1)",
            [record.to_string()],
        )
        .unwrap();
    drop(connection);
    let store = Store::open(&path).unwrap();
    let found = store.experiment(1).unwrap();
    assert_eq!(found.record.facts[0].shown(), "8");
    assert_eq!(found.trials, [(1, expected)]);
    assert_eq!(store.series(1).unwrap(), SeriesRecord::default());
}

#[test]
fn newer_foreign_and_broken_files_are_refused_and_left_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let newer = dir.path().join("newer");
    drop(Store::open(&newer).unwrap());
    let connection = Connection::open(&newer).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    assert!(matches!(
        Store::open(&newer),
        Err(StoreError::Newer { found: 99, .. })
    ));

    let foreign = dir.path().join("foreign");
    Connection::open(&foreign)
        .unwrap()
        .execute_batch("CREATE TABLE mine (a)")
        .unwrap();
    let before = std::fs::read(&foreign).unwrap();
    assert!(matches!(Store::open(&foreign), Err(StoreError::Foreign { .. })));
    assert_eq!(std::fs::read(&foreign).unwrap(), before);

    let broken = dir.path().join("broken");
    std::fs::write(
        &broken,
        "this is not a database, whatever its length may be....................",
    )
    .unwrap();
    assert!(matches!(Store::open(&broken), Err(StoreError::Sqlite { .. })));
}

#[test]
fn older_schemas_are_brought_up() {
    for version in [1, 2, 3] {
        let (_dir, path) = here();
        old(&path, version, ExperimentStatus::Running);
        let mut store = Store::open(&path).unwrap();
        store.tag(1, "old").unwrap();
        let found = &store.find(&Filter::default()).unwrap()[0];
        assert_eq!((found.life, found.trials_finished), (Life::RunningOrKilled, 1));
        assert_eq!(store.series(1).unwrap().columns.len(), usize::from(version >= 2));
        let rule = |life| PruneRule {
            keep: Some(0),
            life,
            ..PruneRule::default()
        };
        store.untag(1, "old").unwrap();
        assert_eq!(store.plan_prune(&rule(None)).unwrap().kept_running.len(), 1);
        assert_eq!(
            store.plan_prune(&rule(Some(Life::Killed))).unwrap().removed.len(),
            1
        );
        // Gone on with, it has an identity, and can be looked for.
        store.set_status(1, ExperimentStatus::Running).unwrap();
        drop(store);
        let store = Store::open(&path).unwrap();
        assert_eq!(store.find(&Filter::default()).unwrap()[0].life, Life::Killed);
    }
}

#[test]
fn older_schemas_are_imported_once_as_they_are_and_brought_up() {
    for (version, rig) in [
        (1, Rig::file()),
        (2, Rig::file()),
        (3, Rig::file()),
        (1, Rig::server()),
        (2, Rig::server()),
        (3, Rig::server()),
    ] {
        let (_dir, other) = here();
        old(&other, version, ExperimentStatus::Finished);
        let before = std::fs::read(&other).unwrap();
        let mut store = rig.open();
        let first = store.import(&other_store(&other)).unwrap();
        assert_eq!(first[0].outcome, ImportOutcome::Added { id: 1, trials: 1 });
        assert_eq!(std::fs::read(&other).unwrap(), before);
        drop(Store::open(&other).unwrap());
        let second = store.import(&other_store(&other)).unwrap();
        assert_eq!(
            second[0].outcome,
            ImportOutcome::Here {
                id: 1,
                trials_missing: 0
            }
        );
        // The other way round, into one that has it without an identity.
        let mut back = Store::open(&other).unwrap();
        let third = back.import(&rig.reader()).unwrap();
        assert_eq!(
            third[0].outcome,
            ImportOutcome::Here {
                id: 1,
                trials_missing: 0
            }
        );
    }
}

#[test]
fn files_that_are_no_whole_store_are_distinguished() {
    let (dir, path) = here();
    let mut store = Store::open(&path).unwrap();
    for _ in 0..40 {
        add(&mut store, "demo");
    }
    drop(store);
    let bytes = std::fs::read(&path).unwrap();
    let check = |name: &str, contents: Option<&[u8]>, message: &str| {
        let path = dir.path().join(name);
        if let Some(contents) = contents {
            std::fs::write(&path, contents).unwrap();
        }
        let error = check_file(&path, Duration::ZERO).unwrap_err().to_string();
        assert!(error.contains(message), "{name}: {error}");
        assert_eq!(std::fs::read(&path).ok().as_deref(), contents, "{name}");
    };
    check("none", None, "there is no store");
    check("half", Some(&bytes[..bytes.len() / 2]), "is truncated");
    check("short", Some(&bytes[..bytes.len() - 1]), "is truncated");
    check("head", Some(&bytes[..100]), "is truncated");
    check("stump", Some(&bytes[..50]), "is truncated");
    // Beside a log the missing part might be in that, until a page is missed.
    std::fs::write(dir.path().join("logged-wal"), []).unwrap();
    check("logged", Some(&bytes[..bytes.len() / 2]), "is truncated");
    check("empty", Some(b""), "is truncated: it has 0 bytes");
    check("text", Some(&[b'x'; 5000]), "file is not a database");
    let half = dir.path().join("half");
    assert!(matches!(Store::open(&half), Err(StoreError::Truncated { .. })));

    let newer = dir.path().join("newer");
    drop(Store::open(&newer).unwrap());
    Connection::open(&newer)
        .unwrap()
        .pragma_update(None, "user_version", schema::VERSION + 1)
        .unwrap();
    assert!(matches!(
        check_file(&newer, Duration::ZERO),
        Err(StoreError::Newer { .. })
    ));

    let foreign = dir.path().join("foreign");
    Connection::open(&foreign)
        .unwrap()
        .execute_batch("CREATE TABLE a (b)")
        .unwrap();
    assert!(matches!(
        check_file(&foreign, Duration::ZERO),
        Err(StoreError::Foreign { .. })
    ));

    // A page in the middle that is noise.
    let mut noise = bytes.clone();
    let middle = noise.len() / 2 / 4096 * 4096;
    noise[middle..middle + 4096].fill(0xa5);
    let path = dir.path().join("noise");
    std::fs::write(&path, noise).unwrap();
    assert!(!check_file(&path, Duration::ZERO).unwrap().faults.is_empty());
}

#[test]
fn a_locked_store_is_said_to_be_locked() {
    let (_dir, path) = here();
    drop(Store::open(&path).unwrap());
    let holder = Connection::open(&path).unwrap();
    holder
        .execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; CREATE TABLE held (a);")
        .unwrap();
    let error = check_file(&path, Duration::ZERO).unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    assert!(error.to_string().contains("locked by another process"));
}

#[test]
fn what_is_opened_as_it_is_stays_so() {
    let (_dir, path) = here();
    let open = || Store::open_as_it_is(&path, Duration::from_millis(100));
    assert!(matches!(open(), Err(StoreError::Missing { .. })));
    assert!(!path.exists());
    std::fs::write(&path, "").unwrap();
    assert!(matches!(open(), Err(StoreError::Missing { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"");
    std::fs::remove_file(&path).unwrap();
    old(&path, 2, ExperimentStatus::Finished);
    let before = std::fs::read(&path).unwrap();
    assert!(matches!(open(), Err(StoreError::Older { found: 2, .. })));
    assert_eq!(std::fs::read(&path).unwrap(), before);
    drop(Store::open(&path).unwrap());
    assert_eq!(open().unwrap().find(&Filter::default()).unwrap().len(), 1);
}

/// What was stored until a file was removed is in a copy that the error names; one that another
/// file has replaced is not written.
#[test]
fn store_that_is_removed_while_it_is_open_is_saved_and_named() {
    for is_replaced in [false, true] {
        let (dir, path) = here();
        let mut store = Store::open(&path).unwrap();
        let id = store.begin(&experiment()).unwrap();
        let record = trial(1, "reference", TrialStatus::Finished);
        store.add_trial(id, &record, &SeriesRecord::default()).unwrap();
        store.keep().unwrap();
        std::fs::remove_file(&path).unwrap();
        if is_replaced {
            // A log that stays is another store's from then on.
            for beside in ["results.sqlite-wal", "results.sqlite-shm"] {
                std::fs::remove_file(path.with_file_name(beside)).unwrap();
            }
            Store::open(&path).unwrap();
        }
        let saved = path.with_file_name("results.sqlite-saved-1");
        for _ in 0..2 {
            let next = trial(2, "reference", TrialStatus::Finished);
            let stored = store.add_trial(id, &next, &SeriesRecord::default());
            let message = stored.unwrap_err().to_string();
            let expected = format!("saved as {}", saved.display());
            assert!(message.contains(&expected), "{message}");
            assert!(matches!(store.keep(), Err(StoreError::Removed { .. })));
        }
        assert_eq!(mode(&saved), 0o600);
        let copy = Store::open(&saved).unwrap();
        assert_eq!(copy.done(id).unwrap(), [(1, "reference".to_owned())]);
        assert_eq!(path.exists(), is_replaced);
        drop(dir);
    }
}

#[test]
fn save_of_a_removed_store_that_fails_leaves_no_file() {
    let (dir, path) = here();
    let mut store = Store::open(&path).unwrap();
    store.begin(&experiment()).unwrap();
    store.keep().unwrap();
    // Another connection's change, so that pages are read again; and no page of them is one any
    // more.
    let other = Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE other (a)").unwrap();
    for name in ["results.sqlite", "results.sqlite-wal"] {
        let file = path.with_file_name(name);
        let length = usize::try_from(std::fs::metadata(&file).unwrap().len()).unwrap();
        let held = std::fs::File::options().write(true).open(&file).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&held, &vec![0xff; length], 0).unwrap();
    }
    for name in ["results.sqlite", "results.sqlite-wal", "results.sqlite-shm"] {
        std::fs::remove_file(path.with_file_name(name)).unwrap();
    }
    let message = store.keep().unwrap_err().to_string();
    assert!(message.contains("could not be saved"), "{message}");
    let names = std::fs::read_dir(dir.path()).unwrap().flatten();
    let mut names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    assert_eq!(names.find(|name| name.contains("saved")), None);
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// All ways in which a file is opened as a store.
fn open_in_all_ways(path: &Path) -> [Option<StoreError>; 3] {
    let patience = Duration::from_millis(100);
    [
        Store::open(path).err(),
        Store::open_as_it_is(path, patience).err(),
        Reader::of_file(path, patience).err(),
    ]
}

#[test]
fn mode_of_a_file_that_is_no_store_stays_as_it_is() {
    let (dir, path) = here();
    let text = dir.path().join("text");
    std::fs::write(&text, "of another program\n".repeat(100)).unwrap();
    let foreign = dir.path().join("foreign");
    let connection = Connection::open(&foreign).unwrap();
    connection.execute_batch("CREATE TABLE a (b)").unwrap();
    drop(connection);
    for file in [&text, &foreign] {
        set_mode(file, 0o644);
        for error in open_in_all_ways(file) {
            assert!(error.is_some(), "{}", file.display());
        }
        assert_eq!(mode(file), 0o644, "{}", file.display());
    }
    // A store is closed by who writes it, and not changed by who only reads it.
    drop(Store::open(&path).unwrap());
    set_mode(&path, 0o644);
    other_store(&path);
    assert_eq!(mode(&path), 0o644);
    drop(Store::open(&path).unwrap());
    assert_eq!(mode(&path), 0o600);
    // Another user can exchange it there.
    set_mode(dir.path(), 0o777);
    set_mode(&path, 0o644);
    drop(Store::open(&path).unwrap());
    assert_eq!(mode(&path), 0o644);
}

#[test]
fn what_is_no_regular_file_is_refused_by_name_and_not_waited_for() {
    let (dir, path) = here();
    drop(Store::open(&path).unwrap());
    let victim = dir.path().join("victim");
    std::fs::write(&victim, "content").unwrap();
    set_mode(&victim, 0o644);
    let fifo = |path: &Path| {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    };
    let refused = |path: &Path, file: &Path, what: &str| {
        for error in open_in_all_ways(path) {
            let message = error.unwrap().to_string();
            let expected = format!("{} is {what}", file.display());
            assert!(message.contains(&expected), "{message}");
        }
    };
    let alone = dir.path().join("fifo");
    fifo(&alone);
    refused(&alone, &alone, "a FIFO");
    for ending in ["-wal", "-shm", "-journal"] {
        let beside = path.with_file_name(format!("results.sqlite{ending}"));
        let _ = std::fs::remove_file(&beside);
        fifo(&beside);
        refused(&path, &beside, "a FIFO");
        std::fs::remove_file(&beside).unwrap();
        symlink(&victim, &beside).unwrap();
        refused(&path, &beside, "a symbolic link");
        std::fs::remove_file(&beside).unwrap();
        std::fs::hard_link(&victim, &beside).unwrap();
        refused(&path, &beside, "a file with several names");
        std::fs::remove_file(&beside).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "content");
    assert_eq!(mode(&victim), 0o644);
    // Its owner's link leads to the store, and another user's nowhere.
    let link = dir.path().join("link");
    symlink("results.sqlite", &link).unwrap();
    assert!(open_in_all_ways(&link).iter().all(Option::is_none));
    std::os::unix::fs::lchown(&link, Some(12_345), Some(12_345)).unwrap();
    refused(&link, &link, "a symbolic link of another user's");
}
