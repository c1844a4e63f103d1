//! What only a server can do: be newer, be somebody else's, refuse, and go away in the middle.

use super::care::{add, column};
use super::rig::{self, Rig, config, connect, link};
use super::{experiment, trial};
use crate::schema::VERSION;
use crate::store::{Filter, ImportOutcome, Life, Link, Reader, Store, StoreError};
use pgdyno_record::{ExperimentStatus, TrialStatus};
use pgdyno_server::postgres::Config;
use pgdyno_testing::until_is;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Statements of the superuser, on the database that stores are in.
fn run(sql: &str) {
    connect().batch_execute(sql).unwrap();
}

/// Over a connection that is made by another configuration.
fn over(schema: &str, config: Config) -> Link {
    let connect = move || rig::session(config.clone()).map_err(Into::into);
    Link::new("postgres://test".to_owned(), schema.to_owned(), connect).with_patience(Duration::ZERO)
}

/// Name and columns of all relations of a schema: what a refusal must leave as it is.
fn contents(schema: &str) -> Vec<String> {
    let sql = "SELECT c.relname || ' ' || coalesce(string_agg(a.attname, ',' ORDER BY a.attnum), '') \
               FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_attribute a ON a.attrelid = c.oid \
               WHERE n.nspname = $1 GROUP BY c.relname ORDER BY 1";
    let rows = connect().query(sql, &[&schema]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[test]
fn newer_ones_and_other_programs_are_refused_and_left_as_they_are() {
    let check = |schema: &str, sql: &str, is_meant: fn(&StoreError) -> bool, message: &str| {
        run(sql);
        let before = contents(schema);
        for error in [
            Store::over(link(schema)).map(drop).unwrap_err(),
            Store::over_existing(link(schema)).map(drop).unwrap_err(),
            Reader::over(link(schema)).map(drop).unwrap_err(),
        ] {
            assert!(is_meant(&error), "{error:?}");
            assert!(error.to_string().contains(message), "{error}");
        }
        assert_eq!(contents(schema), before);
    };
    drop(Store::over(link("newer")).unwrap());
    check(
        "newer",
        "UPDATE newer.about SET schema_version = 99",
        |error| matches!(error, StoreError::Newer { found: 99, .. }),
        &format!("has schema 99; this pgdyno reads {VERSION}"),
    );
    let foreign = |error: &StoreError| matches!(error, StoreError::Foreign { .. });
    check(
        "theirs",
        "CREATE SCHEMA theirs CREATE TABLE mine (a int)",
        foreign,
        "another program",
    );
    check(
        "their_about",
        "CREATE SCHEMA their_about CREATE TABLE about (a int)",
        foreign,
        "another program",
    );
    check(
        "others",
        "CREATE SCHEMA others CREATE TABLE about (program text, schema_version int); \
         INSERT INTO others.about VALUES ('x', 1)",
        foreign,
        "another program",
    );
    let missing = Store::over_existing(link("none")).map(drop).unwrap_err();
    assert!(matches!(missing, StoreError::Missing { .. }), "{missing}");
    assert_eq!(contents("none"), Vec::<String>::new());
}

#[test]
fn what_a_role_may_not_is_said_and_what_it_may_is_done() {
    run("CREATE ROLE guest LOGIN PASSWORD 'secret'; CREATE SCHEMA given; GRANT ALL ON SCHEMA given TO guest");
    let guest = || {
        let mut config = config();
        config.user("guest").password("secret");
        config
    };
    let denied = Store::over(over("not_given", guest())).map(drop).unwrap_err();
    assert!(matches!(denied, StoreError::Denied { .. }), "{denied:?}");
    assert!(denied.to_string().contains("permission denied"), "{denied}");
    // An empty schema that somebody has made for it will do.
    add(&mut Store::over(over("given", guest())).unwrap(), "demo");
    // Who may only read, reads.
    add(&mut Store::over(link("closed")).unwrap(), "demo");
    let denied = Store::over(over("closed", guest())).map(drop).unwrap_err();
    assert!(matches!(denied, StoreError::Denied { .. }), "{denied:?}");
    run("GRANT USAGE ON SCHEMA closed TO guest; GRANT SELECT ON ALL TABLES IN SCHEMA closed TO guest");
    let mut store = Store::over(over("closed", guest())).unwrap();
    assert_eq!(store.find(&Filter::default()).unwrap().len(), 1);
    let denied = store.tag(1, "x").unwrap_err();
    assert!(matches!(denied, StoreError::Denied { .. }), "{denied:?}");
    run("GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA closed TO guest");
    assert_eq!(add(&mut store, "by a guest"), 2);
}

#[test]
fn what_takes_no_writes_or_not_every_text_is_refused() {
    drop(Store::over(link("read_only")).unwrap());
    let mut read_only = config();
    read_only.options("-c default_transaction_read_only=on");
    let error = Store::over(over("read_only", read_only.clone()))
        .map(drop)
        .unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
    let found = Reader::over(over("read_only", read_only))
        .unwrap()
        .check()
        .unwrap();
    assert_eq!((found.schema, found.faults.len()), (VERSION, 0));

    run("CREATE DATABASE latin ENCODING latin1 LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
    let mut latin = config();
    latin.dbname("latin");
    let error = Store::over(over("pgdyno", latin)).map(drop).unwrap_err();
    assert!(matches!(error, StoreError::Encoding { .. }), "{error:?}");
    let mut none = config();
    none.dbname("none");
    let error = Store::over(over("pgdyno", none)).map(drop).unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
}

/// Ends the sessions that go by this name, and waits until they hold nothing any more.
fn end_sessions(schema: &str) {
    let sql = "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE application_name = $1";
    connect().execute(sql, &[&schema]).unwrap();
}

/// Sessions that go by the schema's name, so that they can be ended and no others are.
fn named(schema: &str) -> Config {
    let mut config = config();
    config.application_name(schema);
    config
}

#[test]
fn a_lost_connection_is_made_again_with_what_it_held() {
    let schema = "lost";
    let mut store = Store::over(over(schema, named(schema))).unwrap();
    let id = store.begin(&experiment()).unwrap();
    let other = Store::over(link(schema)).unwrap();
    let life = || other.find(&Filter::default()).unwrap()[0].life;
    for block in 1..=3 {
        end_sessions(schema);
        let record = trial(block, "reference", TrialStatus::Finished);
        store.add_trial(id, &record, &column()).unwrap();
        assert_eq!(life(), Life::Running);
    }
    end_sessions(schema);
    assert_eq!(store.done(id).unwrap().len(), 3);
    end_sessions(schema);
    assert_eq!(life(), Life::Killed);
    store.set_status(id, ExperimentStatus::Finished).unwrap();
    assert_eq!(life(), Life::Finished);
    let again = store.add_trial(id, &trial(1, "reference", TrialStatus::Finished), &column());
    assert!(
        matches!(again, Err(StoreError::Twice { block: 1, .. })),
        "{again:?}"
    );
}

#[test]
fn a_lost_mark_is_taken_again_without_anything_written() {
    let schema = "kept";
    let mut store = Store::over(over(schema, named(schema))).unwrap();
    store.begin(&experiment()).unwrap();
    let other = Store::over(link(schema)).unwrap();
    let life = || other.find(&Filter::default()).unwrap()[0].life;
    end_sessions(schema);
    assert_eq!(life(), Life::Killed);
    store.keep().unwrap();
    assert_eq!(life(), Life::Running);
}

#[test]
fn what_ends_while_it_is_read_is_not_taken_over_as_killed() {
    let (from, into) = (Rig::server(), Rig::file());
    let mut runner = from.open();
    let id = runner.begin(&experiment()).unwrap();
    let reader = from.reader();
    runner.set_status(id, ExperimentStatus::Finished).unwrap();
    let done = into.open().import(&reader).unwrap();
    assert_eq!(done[0].outcome, ImportOutcome::Running);
    let done = into.open().import(&from.reader()).unwrap();
    assert!(matches!(done[0].outcome, ImportOutcome::Added { .. }), "{done:?}");
}

#[test]
fn an_older_one_is_left_as_it_is_where_that_is_asked_for() {
    drop(Store::over(link("older")).unwrap());
    drop(Store::over_as_it_is(link("older")).unwrap());
    run("UPDATE older.about SET schema_version = 2");
    let error = Store::over_as_it_is(link("older")).map(drop).unwrap_err();
    assert!(matches!(error, StoreError::Older { found: 2, .. }), "{error:?}");
    let missing = Store::over_as_it_is(link("none")).map(drop).unwrap_err();
    assert!(matches!(missing, StoreError::Missing { .. }), "{missing:?}");
}

#[test]
fn one_that_was_kept_open_reports_whether_it_is_current() {
    let schema = "kept_open";
    let store = Store::over(over(schema, named(schema))).unwrap();
    assert!(store.is_current());
    end_sessions(schema);
    assert!(store.is_current(), "the connection is made again");
    run("UPDATE kept_open.about SET schema_version = 99");
    assert!(!store.is_current());
    run("DROP SCHEMA kept_open CASCADE");
    assert!(!store.is_current());
    assert!(!Rig::file().open().is_current());
}

#[test]
fn locks_and_statements_are_waited_for_within_limits() {
    let schema = "limits";
    drop(Store::over(link(schema)).unwrap());
    let open = |lock_ms, statement_ms| {
        let ms = Duration::from_millis;
        Store::over_as_it_is(over(schema, named(schema)).with_limits(ms(lock_ms), ms(statement_ms))).unwrap()
    };
    // A statement that waits for no lock ends within the short limit too, however busy this machine
    // is.
    let (patient, hasty) = (open(60_000, 3_000), open(20, 60_000));
    let mut holder = connect();
    holder
        .batch_execute("BEGIN; LOCK TABLE limits.experiment IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    let error = hasty.numbers().unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error:?}");
    let error = patient.numbers().unwrap_err().to_string();
    assert!(error.contains("statement timeout"), "{error}");
    holder.batch_execute("ROLLBACK").unwrap();
    assert_eq!(hasty.numbers().unwrap(), []);
}

#[test]
fn what_another_process_runs_meanwhile_is_not_written_to() {
    let schema = "taken";
    let mut store = Store::over(over(schema, named(schema))).unwrap();
    let id = store.begin(&experiment()).unwrap();
    let mut other = Store::over(link(schema)).unwrap();
    end_sessions(schema);
    assert_eq!(other.find(&Filter::default()).unwrap()[0].life, Life::Killed);
    other.set_status(id, ExperimentStatus::Running).unwrap();
    let record = trial(1, "reference", TrialStatus::Finished);
    let error = store.add_trial(id, &record, &column()).unwrap_err();
    assert!(matches!(error, StoreError::Running { .. }), "{error:?}");
    assert_eq!(other.done(id).unwrap(), []);
}

#[test]
fn what_another_process_has_run_and_ended_meanwhile_is_not_written_to() {
    let check = |schema: &str, act: fn(&mut Store, i64) -> Result<(), StoreError>| {
        let mut store = Store::over(over(schema, named(schema))).unwrap();
        let id = store.begin(&experiment()).unwrap();
        let mut other = Store::over(link(schema)).unwrap();
        end_sessions(schema);
        assert_eq!(other.find(&Filter::default()).unwrap()[0].life, Life::Killed);
        other.set_status(id, ExperimentStatus::Running).unwrap();
        other.set_status(id, ExperimentStatus::Interrupted).unwrap();
        for _ in 0..2 {
            let error = act(&mut store, id).unwrap_err();
            assert!(matches!(error, StoreError::Running { .. }), "{schema}: {error:?}");
        }
        assert_eq!(other.done(id).unwrap(), []);
        let found = &other.find(&Filter::default()).unwrap()[0];
        assert_eq!(found.life, Life::Interrupted, "{schema}");
        other.set_status(id, ExperimentStatus::Running).unwrap();
    };
    check("ended_trial", |store, id| {
        let record = trial(1, "reference", TrialStatus::Finished);
        store.add_trial(id, &record, &column()).map(drop)
    });
    check("ended_status", |store, id| {
        store.set_status(id, ExperimentStatus::Finished)
    });
}

#[test]
fn stores_of_one_database_do_not_share_locks() {
    let (a, b) = (Rig::server(), Rig::server());
    let (mut of_a, mut of_b) = (a.open(), b.open());
    assert_eq!(of_a.begin(&experiment()).unwrap(), 1);
    assert_eq!(of_b.begin(&experiment()).unwrap(), 1);
    drop(of_a);
    let life = |rig: &Rig| rig.open().find(&Filter::default()).unwrap()[0].life;
    until_is("life of the experiment", Life::Killed, || life(&a));
    assert_eq!(life(&b), Life::Running);
}

/// A way to the server that can be cut: at once, or when the client's next COMMIT has been
/// answered, of which the client learns nothing.
struct Way {
    port: u16,
    is_cut: Arc<AtomicBool>,
    cuts_commit: Arc<AtomicBool>,
}

fn way() -> Way {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let way = Way {
        port: listener.local_addr().unwrap().port(),
        is_cut: Arc::default(),
        cuts_commit: Arc::default(),
    };
    let (is_cut, cuts_commit) = (Arc::clone(&way.is_cut), Arc::clone(&way.cuts_commit));
    let port = config().get_ports()[0];
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            if is_cut.load(Ordering::SeqCst) {
                continue;
            }
            let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            carry(client, server, Arc::clone(&cuts_commit));
        }
    });
    way
}

fn carry(mut client: TcpStream, mut server: TcpStream, cuts_commit: Arc<AtomicBool>) {
    let (mut replies, mut back) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let is_cutting = Arc::new(AtomicBool::new(false));
    let cutting = Arc::clone(&is_cutting);
    std::thread::spawn(move || {
        let mut bytes = [0; 65_536];
        while let Ok(count @ 1..) = replies.read(&mut bytes) {
            if cutting.load(Ordering::SeqCst) || back.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = (back.shutdown(Shutdown::Both), replies.shutdown(Shutdown::Both));
    });
    std::thread::spawn(move || {
        let mut bytes = [0; 65_536];
        while let Ok(count @ 1..) = client.read(&mut bytes) {
            let is_commit = bytes[..count].windows(6).any(|six| six == b"COMMIT");
            if is_commit && cuts_commit.swap(false, Ordering::SeqCst) {
                is_cutting.store(true, Ordering::SeqCst);
            }
            if server.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = server.shutdown(Shutdown::Both);
    });
}

impl Way {
    fn config(&self, schema: &str) -> Config {
        let mut config = Config::new();
        config.host("127.0.0.1").port(self.port).user("far");
        config
            .password("not-to-be-shown")
            .dbname(rig::config().get_dbname().unwrap());
        config.application_name(schema);
        config
    }
}

#[test]
fn a_commit_whose_answer_is_lost_is_looked_for() {
    let way = way();
    let schema = "unanswered";
    let mut store = Store::over(over(schema, way.config(schema))).unwrap();
    way.cuts_commit.store(true, Ordering::SeqCst);
    let id = store.begin(&experiment()).unwrap();
    assert_eq!(store.numbers().unwrap().len(), 1);
    way.cuts_commit.store(true, Ordering::SeqCst);
    let record = trial(1, "reference", TrialStatus::Finished);
    let number = store.add_trial(id, &record, &column()).unwrap();
    assert!(!way.cuts_commit.load(Ordering::SeqCst), "it was cut");
    assert_eq!(store.done(id).unwrap().len(), 1);
    assert_eq!(store.series(number).unwrap(), column());
}

#[test]
fn a_server_that_stays_away_is_said_to_be_gone() {
    let way = way();
    let schema = "gone";
    let mut store = Store::over(over(schema, way.config(schema))).unwrap();
    let id = store.begin(&experiment()).unwrap();
    way.is_cut.store(true, Ordering::SeqCst);
    end_sessions(schema);
    let record = trial(1, "reference", TrialStatus::Finished);
    let error = store.add_trial(id, &record, &column()).unwrap_err();
    let message = error.to_string();
    assert!(
        matches!(error, StoreError::Gone { .. }) && message.contains("What was being written may be missing"),
        "{message}"
    );
    assert!(
        !format!("{error:?} {message}").contains("not-to-be-shown"),
        "{message}"
    );
    assert_eq!(
        message.matches("the connection to the store").count(),
        1,
        "{message}"
    );
    // It is back, and goes on as if nothing had been.
    way.is_cut.store(false, Ordering::SeqCst);
    store.add_trial(id, &record, &column()).unwrap();
    assert_eq!(connect().query("SELECT 1 FROM gone.trial", &[]).unwrap().len(), 1);
}
