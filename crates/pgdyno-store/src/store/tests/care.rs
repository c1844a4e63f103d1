//! Tags, lists, retention, import and the check.

use super::rig::{Rig, each};
use super::{experiment, trial};
use crate::store::{
    Filter, ImportOutcome, Life, NOTE_CHARS_MAX, PruneRule, Store, StoreError, TAG_CHARS_MAX,
};
use pgdyno_record::{ColumnRecord, GapRecord, SeriesRecord};
use pgdyno_record::{ExperimentStatus, TrialRecord, TrialStatus};
use pgdyno_testing::until_is;

pub(super) fn column() -> SeriesRecord {
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
pub(super) fn add(store: &mut Store, name: &str) -> i64 {
    let mut record = experiment();
    record.name = name.into();
    let id = store.begin(&record).unwrap();
    let trial = trial(1, "reference", TrialStatus::Finished);
    store.add_trial(id, &trial, &column()).unwrap();
    store.set_status(id, ExperimentStatus::Finished).unwrap();
    id
}

#[test]
fn tags_and_notes_are_kept_within_limits() {
    each(tags_and_notes);
}

fn tags_and_notes(rig: &Rig) {
    let mut store = rig.open();
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
    let other = add(&mut store, "other");
    let number = store.note(id, "removed").unwrap();
    assert_eq!(store.notes(id).unwrap()[2].id, number);
    assert!(!store.remove_note(other, number).unwrap());
    assert!(store.remove_note(id, number).unwrap());
    assert!(!store.remove_note(id, number).unwrap());
    assert_eq!(store.notes(id).unwrap().len(), 2);
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
    each(found_by_what_is_asked);
}

fn found_by_what_is_asked(rig: &Rig) {
    let mut store = rig.open();
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
fn what_runs_is_distinguished_from_what_was_killed() {
    each(distinguished_from_killed);
}

fn distinguished_from_killed(rig: &Rig) {
    let mut store = rig.open();
    let id = store.begin(&experiment()).unwrap();
    let mut other = rig.open();
    let life = |store: &Store| store.find(&Filter::default()).unwrap()[0].life;
    assert_eq!((life(&store), life(&other)), (Life::Running, Life::Running));
    assert!(matches!(
        other.set_status(id, ExperimentStatus::Running),
        Err(StoreError::Running { id: 1, .. })
    ));
    drop(store);
    // A server ends a session, and with it the lock, some time after its client has gone.
    until_is("life of the experiment", Life::Killed, || life(&other));
    other.set_status(id, ExperimentStatus::Running).unwrap();
    assert_eq!(life(&other), Life::Running);
    other.set_status(id, ExperimentStatus::Finished).unwrap();
    assert_eq!(life(&other), Life::Finished);
    if let Rig::File { path, .. } = rig {
        assert!(!path.with_file_name("o?t#h %er.sqlite-running-1").exists());
    }
}

#[test]
fn a_rule_removes_what_it_means_and_nothing_that_is_tagged_or_runs() {
    each(removed_by_rule);
}

fn removed_by_rule(rig: &Rig) {
    let mut store = rig.open();
    for _ in 0..4 {
        add(&mut store, "demo");
    }
    store.tag(2, "nightly").unwrap();
    let mut runner = rig.open();
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
    let life = || store.find(&Filter::default()).unwrap()[0].life;
    until_is("life of the experiment", Life::Killed, life);
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
    match (rig, store.reclaim().unwrap()) {
        (Rig::File { .. }, Some((before, after))) => assert!(after <= before),
        (Rig::Server { .. }, None) => (),
        (_, other) => panic!("{other:?}"),
    }
    let left: Vec<i64> = store.numbers().unwrap().iter().map(|(id, _)| *id).collect();
    assert_eq!(left, [5, 4, 2]);
    let (running, finished) = (ExperimentStatus::Running, ExperimentStatus::Finished);
    assert_eq!(
        store.numbers().unwrap(),
        [(5, running), (4, finished), (2, finished)]
    );
    drop(store);
    assert_eq!(rig.check().columns, 2);
}

#[test]
fn a_text_with_a_zero_is_not_kept_and_stops_no_import() {
    let (from, into) = (Rig::file(), Rig::server());
    let mut store = from.open();
    let (bad, noted, good) = (
        add(&mut store, "bad"),
        add(&mut store, "noted"),
        add(&mut store, "good"),
    );
    assert!(matches!(store.note(good, "a\0b"), Err(StoreError::Words(_))));
    let mut record = experiment();
    record.name = "a\0b".into();
    for rig in [&from, &into] {
        let begun = rig.open().begin(&record);
        assert!(matches!(begun, Err(StoreError::Zero { .. })), "{begun:?}");
    }
    drop(store);
    from.sql(&format!(
        "UPDATE experiment SET name = 'a' || char(0) WHERE id = {bad}; \
         INSERT INTO note (experiment_id, written_unix_ms, text) VALUES ({noted}, 1, 'a' || char(0))"
    ));
    for rig in [&into, &Rig::file()] {
        let done = rig.open().import(&from.reader()).unwrap();
        let outcomes: Vec<ImportOutcome> = done.iter().map(|imported| imported.outcome).collect();
        assert_eq!(outcomes[..2], [ImportOutcome::Zero; 2]);
        assert!(
            matches!(outcomes[2], ImportOutcome::Added { trials: 1, .. }),
            "{outcomes:?}"
        );
        assert_eq!(rig.open().numbers().unwrap().len(), 1);
    }
}

/// In every kind of place alike, and nothing is kept of what holds one.
#[test]
fn a_text_with_a_zero_is_refused() {
    each(|rig| {
        let mut store = rig.open();
        let id = add(&mut store, "demo");
        let number = |block| trial(block, "reference", TrialStatus::Finished);
        let mut refused = |trial: TrialRecord, series: SeriesRecord| {
            let error = store.add_trial(id, &trial, &series).unwrap_err();
            assert!(matches!(error, StoreError::Zero { .. }), "{error:?}");
        };
        let mut label = column();
        label.columns[0].label = "a\0b".into();
        refused(number(2), label);
        let mut metric = column();
        metric.columns[0].metric = "a\0b".into();
        refused(number(2), metric);
        let mut gap = column();
        gap.gaps.push(GapRecord {
            at_ms: 1,
            source: "/proc/stat".into(),
            reason: "a\0b".into(),
        });
        refused(number(2), gap);
        let mut treatment = number(2);
        treatment.treatment = "a\0b".into();
        refused(treatment, column());
        assert_eq!(store.done(id).unwrap().len(), 1);
        // Within a record it is escaped, and kept.
        let mut record = number(2);
        record.reason = Some("a\0b".into());
        store.add_trial(id, &record, &column()).unwrap();
        assert_eq!(store.experiment(id).unwrap().trials[1].1, record);
    });
}

#[test]
fn what_is_taken_after_it_was_checked_is_not_removed() {
    each(taken_after_the_look);
}

fn taken_after_the_look(rig: &Rig) {
    let (mut store, other) = (rig.open(), rig.open());
    let (kept, removed) = (add(&mut store, "kept"), add(&mut store, "removed"));
    // As a process that resumes it does before it says so.
    assert!(other.database().hold(kept).unwrap());
    let rule = PruneRule {
        keep: Some(0),
        ..PruneRule::default()
    };
    let done = store.prune(&rule).unwrap();
    let removed_ids: Vec<i64> = done.removed.iter().map(|r| r.experiment.id).collect();
    let kept_ids: Vec<i64> = done.kept_running.iter().map(|listed| listed.id).collect();
    assert_eq!((removed_ids, kept_ids), (vec![removed], vec![kept]));
    assert_eq!(store.numbers().unwrap().len(), 1);
    for status in [ExperimentStatus::Running, ExperimentStatus::Finished] {
        let error = store.set_status(removed, status).unwrap_err();
        assert!(matches!(error, StoreError::Unknown { .. }), "{error:?}");
    }
}

/// From every kind of place into every kind.
#[test]
fn an_experiment_is_imported_once() {
    for (from, into) in [
        (Rig::file(), Rig::file()),
        (Rig::file(), Rig::server()),
        (Rig::server(), Rig::file()),
        (Rig::server(), Rig::server()),
    ] {
        imported_once(&from, &into);
    }
}

fn imported_once(from: &Rig, into: &Rig) {
    let mut other = from.open();
    add(&mut other, "a");
    add(&mut other, "b");
    other.tag(2, "nightly").unwrap();
    other.note(2, "a note").unwrap();
    drop(other);
    let before = from.bytes();
    let mut store = into.open();
    add(&mut store, "mine");
    let outcomes = |store: &mut Store| -> Vec<ImportOutcome> {
        let done = store.import(&from.reader()).unwrap();
        done.into_iter().map(|imported| imported.outcome).collect()
    };
    let added = |id| ImportOutcome::Added { id, trials: 1 };
    let known = |id, trials_missing| ImportOutcome::Here { id, trials_missing };
    assert_eq!(outcomes(&mut store), [added(2), added(3)]);
    assert_eq!(outcomes(&mut store), [known(2, 0), known(3, 0)]);
    assert_eq!(store.tags(3).unwrap(), ["nightly"]);
    assert_eq!(store.notes(3).unwrap().len(), 1);
    let found = store.experiment(3).unwrap();
    assert_eq!((found.record.name.as_str(), found.trials.len()), ("b", 1));
    assert_eq!(store.series(found.trials[0].0).unwrap(), column());
    assert_eq!(from.bytes(), before);
    if let Rig::File { path, .. } = from {
        let names = std::fs::read_dir(path.parent().unwrap()).unwrap();
        assert_eq!(names.count(), 1, "nothing is left beside it");
    }
    // What runs there is left there, and what went on is reported.
    let mut other = from.open();
    let id = other.begin(&experiment()).unwrap();
    assert_eq!(outcomes(&mut store)[2], ImportOutcome::Running);
    let record = trial(1, "reference", TrialStatus::Finished);
    other.set_status(id, ExperimentStatus::Interrupted).unwrap();
    assert_eq!(outcomes(&mut store)[2], ImportOutcome::Added { id: 4, trials: 0 });
    other.add_trial(id, &record, &SeriesRecord::default()).unwrap();
    assert_eq!(outcomes(&mut store)[2], known(4, 1));
    assert_eq!(into.check().faults, Vec::<String>::new());
}

#[test]
fn what_does_not_hold_is_named() {
    each(named_by_check);
}

fn named_by_check(rig: &Rig) {
    let mut store = rig.open();
    add(&mut store, "demo");
    drop(store);
    let check = |sql: &str, back: &str, message: &str| {
        rig.sql(sql);
        let before = rig.bytes();
        let found = rig.check();
        assert_eq!(
            (found.experiments, found.trials, found.columns),
            (1, 1, 1),
            "{sql}"
        );
        let faults = found.faults.join("\n");
        assert!(
            faults.contains(message) && faults.is_empty() == message.is_empty(),
            "{sql}: {faults}"
        );
        assert_eq!(rig.bytes(), before);
        rig.sql(back);
    };
    let points = rig.open().series(1).unwrap().columns.remove(0);
    let points = pgdyno_record::pack_points(&points.at_ms, &points.values);
    let digits: String = points.iter().map(|byte| format!("{byte:02x}")).collect();
    let quoted = |text: String| text.replace('\'', "''");
    let whole = quoted(serde_json::to_string(&rig.open().experiment(1).unwrap().record).unwrap());
    let of_trial = quoted(serde_json::to_string(&rig.open().experiment(1).unwrap().trials[0].1).unwrap());
    check("SELECT 1", "SELECT 1", "");
    check(
        "UPDATE experiment SET record = '{}'",
        &format!("UPDATE experiment SET record = '{whole}'"),
        "experiment 1: its record cannot be read",
    );
    let finished = "'\"finished\"'";
    check(
        "UPDATE experiment SET status = 'x'",
        &format!("UPDATE experiment SET status = {finished}"),
        "experiment 1: its status",
    );
    check(
        "UPDATE experiment SET name = 'x'",
        "UPDATE experiment SET name = 'demo'",
        "it is called \"x\"",
    );
    check(
        "UPDATE experiment SET put_back = 'x'",
        "UPDATE experiment SET put_back = '[]'",
        "what was restored",
    );
    check(
        "UPDATE trial SET record = 'x'",
        &format!("UPDATE trial SET record = '{of_trial}'"),
        "trial 1 of experiment 1: its record",
    );
    check(
        "UPDATE trial SET status = '\"failed\"'",
        &format!("UPDATE trial SET status = {finished}"),
        "another block, treatment or status",
    );
    check(
        "UPDATE trial SET treatment = 'x'",
        "UPDATE trial SET treatment = 'reference'",
        "not in the experiment's plan",
    );
    check(
        "UPDATE trial SET block = 9",
        "UPDATE trial SET block = 1",
        "not in the experiment's plan",
    );
    check(
        "UPDATE trial SET experiment_id = 9",
        "UPDATE trial SET experiment_id = 1",
        "trial 1 refers to a row of experiment",
    );
    check(
        &format!("UPDATE series SET points = {}", rig.blob("01")),
        &format!("UPDATE series SET points = {}", rig.blob(&digits)),
        "load.tps \"\" of trial 1 cannot be read",
    );
    check(
        "INSERT INTO tag VALUES (1, 'two words')",
        "DELETE FROM tag",
        "is not a tag",
    );
    check(
        "INSERT INTO note VALUES (1, 1, 1, ' ')",
        "DELETE FROM note",
        "the note is empty",
    );
    check("SELECT 1", "SELECT 1", "");
}

#[test]
fn a_broken_record_is_listed_without_its_texts() {
    each(|rig| {
        let mut store = rig.open();
        add(&mut store, "whole");
        let id = add(&mut store, "broken");
        rig.sql(&format!("UPDATE experiment SET record = '{{' WHERE id = {id}"));
        let found = store.find(&Filter::default()).unwrap();
        let listed = found.iter().map(|e| {
            let texts = (e.name.as_str(), e.question.as_str(), e.target.as_str());
            (texts, e.trials_finished)
        });
        let expected = [(("broken", "", ""), 1), (("whole", "what?", "sandbox demo"), 1)];
        assert!(listed.eq(expected), "{found:?}");
    });
}

#[test]
fn a_view_in_place_of_a_table_is_refused() {
    each(|rig| {
        drop(rig.open());
        rig.sql(
            "DROP TABLE note; CREATE VIEW note AS WITH RECURSIVE r(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM r) \
             SELECT id, 1 AS experiment_id, 1 AS written_unix_ms, 'x' AS text FROM r",
        );
        let error = rig.try_open().map(drop).unwrap_err();
        assert!(
            matches!(&error, StoreError::NoTable { name, .. } if name == "note"),
            "{error:?}"
        );
        let error = rig.try_reader().map(drop).unwrap_err();
        assert!(matches!(error, StoreError::NoTable { .. }), "{error:?}");
    });
}

#[test]
fn a_record_of_too_many_blocks_is_refused_before_anything_is_worked_out_of_it() {
    each(|rig| {
        let id = rig.open().begin(&experiment()).unwrap();
        rig.sql("UPDATE experiment SET record = replace(record, '\"blocks\":', '\"blocks\":42949')");
        let error = rig.open().experiment(id).unwrap_err().to_string();
        assert!(error.contains("blocks, expected at most 1000"), "{error}");
        let faults = rig.check().faults.join("\n");
        assert!(faults.contains("blocks, expected at most 1000"), "{faults}");
    });
}

#[test]
fn a_value_beyond_all_sizes_is_refused() {
    let rig = Rig::file();
    let mut store = rig.open();
    let id = store.begin(&experiment()).unwrap();
    store.note(id, "short").unwrap();
    drop(store);
    rig.sql("UPDATE note SET text = printf('%.*c', 22000000, 'x')");
    let error = rig.open().notes(id).unwrap_err();
    assert!(matches!(error, StoreError::Endless { .. }), "{error:?}");
    assert!(
        error.to_string().contains("longer than 20971520 bytes"),
        "{error}"
    );
    rig.sql("UPDATE note SET text = printf('%.*c', 20000000, 'x')");
    for number in 2..=7 {
        rig.sql(&format!(
            "INSERT INTO note SELECT {number}, 1, {number}, text FROM note WHERE id = 1"
        ));
    }
    let error = rig.open().notes(id).unwrap_err();
    assert!(
        error.to_string().contains("longer than 134217728 bytes"),
        "{error}"
    );
}

#[test]
fn computed_columns_of_a_file_are_refused() {
    let rig = Rig::file();
    drop(rig.open());
    for (kind, version) in [("VIRTUAL", 5), ("STORED", 3)] {
        let computed = format!(
            "DROP TABLE trial; CREATE TABLE trial (id INTEGER PRIMARY KEY, experiment_id INTEGER, block INTEGER, treatment TEXT, \
             status TEXT, record TEXT GENERATED ALWAYS AS (printf('%.*c', 1000000, 'x')) {kind}); PRAGMA user_version = {version}"
        );
        rig.sql(&computed);
        for error in [rig.try_open().map(drop), rig.try_reader().map(drop)] {
            let error = error.unwrap_err();
            assert!(
                matches!(&error, StoreError::Computed { name, .. } if name == "trial"),
                "{error:?}"
            );
        }
    }
}
