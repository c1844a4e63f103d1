//! Tags, lists, retention, import and the check, on stores of this schema and of older ones.

use super::{check_file, experiment, trial};
use crate::schema;
use crate::series::{ColumnRecord, SeriesRecord};
use crate::store::{
    Filter, ImportOutcome, Life, NOTE_CHARS_MAX, PruneRule, Reader, Store, StoreError, TAG_CHARS_MAX,
};
use crate::{ExperimentStatus, TrialStatus};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn column() -> SeriesRecord {
    SeriesRecord {
        columns: vec![ColumnRecord {
            metric: "load.tps".into(),
            label: String::new(),
            at_ms: vec![1000, 2000],
            values: vec![1.0, 2.5],
        }],
        gaps: Vec::new(),
    }
}

/// A finished experiment with one trial.
fn add(store: &mut Store, name: &str) -> i64 {
    let mut record = experiment();
    record.name = name.into();
    let id = store.begin(&record).unwrap();
    let trial = trial(1, "reference", TrialStatus::Finished);
    store.add_trial(id, &trial, &column()).unwrap();
    store.set_status(id, ExperimentStatus::Finished).unwrap();
    id
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
        let points = crate::pack_points(&[1000], &[0.1]);
        connection
            .execute("INSERT INTO series VALUES (1, 'load.tps', '', ?1)", [points])
            .unwrap();
    }
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
fn tags_and_notes_are_kept_within_limits() {
    let (_dir, path) = here();
    let mut store = Store::open(&path).unwrap();
    let id = add(&mut store, "demo");
    assert!(store.tag(id, "nightly").unwrap());
    assert!(!store.tag(id, "nightly").unwrap());
    store.tag(id, &"x".repeat(TAG_CHARS_MAX)).unwrap();
    for bad in ["", "two words", "ü", "a'b", &"x".repeat(TAG_CHARS_MAX + 1)] {
        assert!(matches!(store.tag(id, bad), Err(StoreError::Words(_))), "{bad}");
    }
    assert_eq!(store.tags(id).unwrap()[0], "nightly");
    assert!(store.untag(id, "nightly").unwrap());
    assert!(!store.untag(id, "nightly").unwrap());
    store.note(id, &"ü".repeat(NOTE_CHARS_MAX)).unwrap();
    store.note(id, "it's \"fine\"; DROP TABLE note").unwrap();
    for bad in ["", " \n", &"x".repeat(NOTE_CHARS_MAX + 1)] {
        assert!(matches!(store.note(id, bad), Err(StoreError::Words(_))));
    }
    assert_eq!(store.notes(id).unwrap()[1].text, "it's \"fine\"; DROP TABLE note");
    assert!(matches!(
        store.tag(99, "x"),
        Err(StoreError::Unknown { id: 99, .. })
    ));
    assert!(matches!(
        store.note(99, "x"),
        Err(StoreError::Unknown { id: 99, .. })
    ));
}

#[test]
fn experiments_are_found_by_what_is_asked() {
    let (_dir, path) = here();
    let mut store = Store::open(&path).unwrap();
    for name in ["memory", "wal", "Wal-2"] {
        add(&mut store, name);
    }
    store.tag(2, "nightly").unwrap();
    store.tag(3, "nightly").unwrap();
    store.tag(3, "kept").unwrap();
    store.note(1, "The disk was 100 % busy_").unwrap();
    store.set_status(2, ExperimentStatus::Interrupted).unwrap();
    let check = |filter: Filter, expected: &[i64]| {
        let found: Vec<i64> = store.find(&filter).unwrap().iter().map(|e| e.id).collect();
        assert_eq!(found, expected, "{filter:?}");
    };
    let none = Filter::default;
    let text = |text: &str| Some(text.to_owned());
    check(none(), &[3, 2, 1]);
    check(
        Filter {
            tags: vec!["nightly".into()],
            ..none()
        },
        &[3, 2],
    );
    check(
        Filter {
            tags: vec!["nightly".into(), "kept".into()],
            ..none()
        },
        &[3],
    );
    check(
        Filter {
            name: text("WAL"),
            ..none()
        },
        &[3, 2],
    );
    check(
        Filter {
            search: text("disk was 100 % busy_"),
            ..none()
        },
        &[1],
    );
    check(
        Filter {
            search: text("sandbox demo"),
            ..none()
        },
        &[3, 2, 1],
    );
    check(
        Filter {
            search: text("%"),
            name: text("wal"),
            ..none()
        },
        &[],
    );
    check(
        Filter {
            life: Some(Life::Interrupted),
            ..none()
        },
        &[2],
    );
    check(
        Filter {
            since_unix_ms: Some(u64::MAX),
            ..none()
        },
        &[],
    );
    let found = &store.find(&none()).unwrap()[0];
    assert_eq!(
        (&found.tags[..], found.trials_finished),
        (&["kept".to_owned(), "nightly".to_owned()][..], 1)
    );
}

#[test]
fn what_runs_is_told_from_what_was_killed() {
    let (_dir, path) = here();
    let mut store = Store::open(&path).unwrap();
    let id = store.begin(&experiment()).unwrap();
    let mut other = Store::open(&path).unwrap();
    let life = |store: &Store| store.find(&Filter::default()).unwrap()[0].life;
    assert_eq!((life(&store), life(&other)), (Life::Running, Life::Running));
    assert!(matches!(
        other.set_status(id, ExperimentStatus::Running),
        Err(StoreError::Running { id: 1, .. })
    ));
    drop(store);
    assert_eq!(life(&other), Life::Killed);
    other.set_status(id, ExperimentStatus::Running).unwrap();
    assert_eq!(life(&other), Life::Running);
    other.set_status(id, ExperimentStatus::Finished).unwrap();
    assert_eq!(life(&other), Life::Finished);
    assert!(!path.with_file_name("results.sqlite-running-1").exists());
}

#[test]
fn a_rule_removes_what_it_means_and_nothing_that_is_tagged_or_runs() {
    let (_dir, path) = here();
    let mut store = Store::open(&path).unwrap();
    for _ in 0..4 {
        add(&mut store, "demo");
    }
    store.tag(2, "nightly").unwrap();
    let mut runner = Store::open(&path).unwrap();
    assert_eq!(runner.begin(&experiment()).unwrap(), 5);
    let check = |store: &Store, rule: PruneRule, removed: &[i64], tagged: usize, running: usize| {
        let plan = store.plan_prune(&rule).unwrap();
        let ids: Vec<i64> = plan.removed.iter().map(|r| r.experiment.id).collect();
        assert_eq!(
            (&ids[..], plan.kept_by_tag.len(), plan.kept_running.len()),
            (removed, tagged, running),
            "{rule:?}"
        );
    };
    let none = PruneRule::default;
    let tags = |tag: &str| vec![tag.to_owned()];
    check(&store, none(), &[], 0, 0);
    check(
        &store,
        PruneRule {
            keep: Some(0),
            ..none()
        },
        &[4, 3, 1],
        1,
        1,
    );
    check(
        &store,
        PruneRule {
            keep: Some(2),
            ..none()
        },
        &[3, 1],
        1,
        0,
    );
    check(
        &store,
        PruneRule {
            keep: Some(0),
            keeping_tags: tags("other"),
            ..none()
        },
        &[4, 3, 2, 1],
        0,
        1,
    );
    check(
        &store,
        PruneRule {
            keep: Some(0),
            keeping_tags: tags("nightly"),
            ..none()
        },
        &[4, 3, 1],
        1,
        1,
    );
    check(
        &store,
        PruneRule {
            before_unix_ms: Some(5),
            ..none()
        },
        &[],
        0,
        0,
    );
    check(
        &store,
        PruneRule {
            life: Some(Life::Finished),
            keep: Some(3),
            ..none()
        },
        &[1],
        0,
        0,
    );
    check(
        &store,
        PruneRule {
            life: Some(Life::Running),
            ..none()
        },
        &[],
        0,
        1,
    );
    drop(runner);
    check(
        &store,
        PruneRule {
            life: Some(Life::Killed),
            ..none()
        },
        &[5],
        0,
        0,
    );
    let plan = store
        .prune(&PruneRule {
            keep: Some(2),
            ..none()
        })
        .unwrap();
    assert!(plan.removed.iter().all(|r| r.trials == 1 && r.bytes > 0));
    let (before, after) = store.reclaim().unwrap().unwrap();
    assert!(after <= before);
    let left: Vec<i64> = store.list().unwrap().iter().map(|(e, _)| e.id).collect();
    assert_eq!(left, [5, 4, 2]);
    drop(store);
    assert_eq!(check_file(&path, Duration::ZERO).unwrap().columns, 2);
}

#[test]
fn older_schemas_are_brought_up() {
    for version in [1, 2] {
        let (_dir, path) = here();
        old(&path, version, ExperimentStatus::Running);
        let mut store = Store::open(&path).unwrap();
        store.tag(1, "old").unwrap();
        let found = &store.find(&Filter::default()).unwrap()[0];
        assert_eq!((found.life, found.trials_finished), (Life::RunningOrKilled, 1));
        assert_eq!(store.series(1).unwrap().columns.len(), usize::from(version == 2));
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
fn an_experiment_is_imported_once() {
    let (dir, path) = here();
    let other_path = dir.path().join("o?t#h %er.sqlite");
    let mut other = Store::open(&other_path).unwrap();
    add(&mut other, "a");
    add(&mut other, "b");
    other.tag(2, "nightly").unwrap();
    other.note(2, "a note").unwrap();
    drop(other);
    let before = std::fs::read(&other_path).unwrap();
    let mut store = Store::open(&path).unwrap();
    add(&mut store, "mine");
    let outcomes = |store: &mut Store, path: &Path| -> Vec<ImportOutcome> {
        store
            .import(&other_store(path))
            .unwrap()
            .into_iter()
            .map(|i| i.outcome)
            .collect()
    };
    let added = |id| ImportOutcome::Added { id, trials: 1 };
    let known = |id, trials_missing| ImportOutcome::Here { id, trials_missing };
    assert_eq!(outcomes(&mut store, &other_path), [added(2), added(3)]);
    assert_eq!(outcomes(&mut store, &other_path), [known(2, 0), known(3, 0)]);
    assert_eq!(store.tags(3).unwrap(), ["nightly"]);
    assert_eq!(store.notes(3).unwrap().len(), 1);
    let found = store.experiment(3).unwrap();
    assert_eq!((found.record.name.as_str(), found.trials.len()), ("b", 1));
    assert_eq!(store.series(found.trials[0].0).unwrap(), column());
    assert_eq!(std::fs::read(&other_path).unwrap(), before);
    let mut names: Vec<_> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("o?"))
        .collect();
    names.sort();
    assert_eq!(names, ["o?t#h %er.sqlite"]);
    // What runs there is left there, and what went on is told.
    let mut other = Store::open(&other_path).unwrap();
    let id = other.begin(&experiment()).unwrap();
    assert_eq!(outcomes(&mut store, &other_path)[2], ImportOutcome::Running);
    let record = trial(1, "reference", TrialStatus::Finished);
    other.set_status(id, ExperimentStatus::Interrupted).unwrap();
    assert_eq!(
        outcomes(&mut store, &other_path)[2],
        ImportOutcome::Added { id: 4, trials: 0 }
    );
    other.add_trial(id, &record, &SeriesRecord::default()).unwrap();
    assert_eq!(outcomes(&mut store, &other_path)[2], known(4, 1));
    drop((store, other));
    assert!(check_file(&path, Duration::ZERO).unwrap().faults.is_empty());
}

#[test]
fn older_schemas_are_imported_once_as_they_are_and_brought_up() {
    for version in [1, 2] {
        let (dir, path) = here();
        let other = dir.path().join("old.sqlite");
        old(&other, version, ExperimentStatus::Finished);
        let before = std::fs::read(&other).unwrap();
        let mut store = Store::open(&path).unwrap();
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
        let third = back.import(&other_store(&path)).unwrap();
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
fn what_does_not_hold_is_named() {
    let check = |sql: &str, words: &str| {
        let (_dir, path) = here();
        add(&mut Store::open(&path).unwrap(), "demo");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
        connection.execute_batch(sql).unwrap();
        connection.close().unwrap();
        let before = std::fs::read(&path).unwrap();
        let found = check_file(&path, Duration::ZERO).unwrap();
        assert_eq!(
            (found.experiments, found.trials, found.columns),
            (1, 1, 1),
            "{sql}"
        );
        let faults = found.faults.join("\n");
        assert!(
            faults.contains(words) && faults.is_empty() == words.is_empty(),
            "{sql}: {faults}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), before);
    };
    check("", "");
    check(
        "UPDATE experiment SET record = '{}'",
        "experiment 1: its record cannot be read",
    );
    check("UPDATE experiment SET status = 'x'", "experiment 1: its status");
    check("UPDATE experiment SET name = 'x'", "it is called \"x\"");
    check("UPDATE experiment SET put_back = 'x'", "what was put back");
    check(
        "UPDATE trial SET record = 'x'",
        "trial 1 of experiment 1: its record",
    );
    check(
        "UPDATE trial SET status = '\"failed\"'",
        "another block, treatment or status",
    );
    check("UPDATE trial SET treatment = 'x'", "not in the experiment's plan");
    check("UPDATE trial SET block = 9", "not in the experiment's plan");
    check(
        "UPDATE trial SET experiment_id = 9",
        "trial 1 refers to a row of experiment",
    );
    check(
        "UPDATE series SET points = x'01'",
        "load.tps \"\" of trial 1 cannot be read",
    );
    check("INSERT INTO tag VALUES (1, 'two words')", "is no tag");
    check("INSERT INTO note VALUES (1, 1, 1, ' ')", "the note is empty");
}

#[test]
fn files_that_are_no_whole_store_are_told_apart() {
    let (dir, path) = here();
    let mut store = Store::open(&path).unwrap();
    for _ in 0..40 {
        add(&mut store, "demo");
    }
    drop(store);
    let bytes = std::fs::read(&path).unwrap();
    let check = |name: &str, contents: Option<&[u8]>, words: &str| {
        let path = dir.path().join(name);
        if let Some(contents) = contents {
            std::fs::write(&path, contents).unwrap();
        }
        let error = check_file(&path, Duration::ZERO).unwrap_err().to_string();
        assert!(error.contains(words), "{name}: {error}");
        assert_eq!(std::fs::read(&path).ok().as_deref(), contents, "{name}");
    };
    check("none", None, "there is no store");
    check("half", Some(&bytes[..bytes.len() / 2]), "is truncated");
    check("short", Some(&bytes[..bytes.len() - 1]), "is truncated");
    check("head", Some(&bytes[..100]), "is truncated");
    check("stump", Some(&bytes[..50]), "is truncated");
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
