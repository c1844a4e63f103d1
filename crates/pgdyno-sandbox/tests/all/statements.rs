//! pg_stat_statements between two looks, for real.

use crate::common::Home;
use pgdyno_server::{Server, StatementLook};

#[test]
fn a_statement_grows_between_two_looks() {
    let home = Home::new(None);
    let connect = || Server::connect(&home.sandbox().conninfo()).unwrap();
    assert!(StatementLook::new(&mut connect()).unwrap().is_none());
    home.ask("CREATE EXTENSION pg_stat_statements");
    // Created, but its library is not loaded.
    assert!(StatementLook::new(&mut connect()).unwrap().is_none());
    home.ask("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'");
    home.sandbox().stop().unwrap();
    home.sandbox().start().unwrap();
    home.ask("CREATE TABLE t (n int)");
    home.ask("INSERT INTO t SELECT generate_series(1, 10)");
    let mut server = connect();
    let mut look = StatementLook::new(&mut server).unwrap().unwrap();
    home.ask("INSERT INTO t SELECT generate_series(1, 7)");
    look.renew(&mut server).unwrap();
    for rows in [3, 4] {
        home.ask(&format!("INSERT INTO t SELECT generate_series(1, {rows})"));
    }
    home.ask("CREATE ROLE joe PASSWORD 'hunter2'");
    let grown = look.grown(&mut server, 100).unwrap();
    let inserted = grown
        .iter()
        .find(|statement| {
            statement
                .text
                .as_deref()
                .is_some_and(|text| text.starts_with("INSERT"))
        })
        .unwrap();
    assert_eq!((inserted.calls, inserted.rows), (2, 7));
    assert!(inserted.total_ms > 0.0 && inserted.blocks_hit > 0 && inserted.wal_bytes > 0);
    assert_eq!(
        inserted.text.as_deref(),
        Some("INSERT INTO t SELECT generate_series($1, $2)")
    );
    assert!(
        grown
            .iter()
            .any(|statement| statement.text.as_deref() == Some("CREATE ROLE"))
    );
    assert!(!format!("{grown:?}").contains("hunter2"));
    assert!(grown.is_sorted_by(|a, b| a.total_ms >= b.total_ms));
    assert_eq!(look.grown(&mut server, 2).unwrap().len(), 2);
    only_what_was_sent_to_this_database_counts(&home, &mut server);
}

/// One number identifies a statement of any database, and one that a function executes.
fn only_what_was_sent_to_this_database_counts(home: &Home, server: &mut Server) {
    home.ask("CREATE DATABASE other");
    home.ask("ALTER SYSTEM SET pg_stat_statements.track = 'all'");
    home.ask(
        "CREATE FUNCTION inner_one(n int) RETURNS int LANGUAGE plpgsql AS \
         'BEGIN INSERT INTO t SELECT generate_series(1, n); RETURN n; END'",
    );
    home.ask("SELECT pg_reload_conf()");
    let other = home.sandbox().conninfo().with_database("other");
    let mut other = Server::connect(&other).unwrap();
    for _ in 0..3 {
        other
            .value("asking", "select PG_POSTMASTER_START_TIME()")
            .unwrap();
    }
    let look = StatementLook::new(server).unwrap().unwrap();
    home.ask("SELECT pg_postmaster_start_time()");
    home.ask("SELECT inner_one(5)");
    home.ask("INSERT INTO t SELECT generate_series(1, 2)");
    let grown = look.grown(server, 100).unwrap();
    for (text, expected) in [
        ("SELECT pg_postmaster_start_time()", Some((1, 1))),
        ("select PG_POSTMASTER_START_TIME()", None),
        ("SELECT inner_one($1)", Some((1, 1))),
        ("INSERT INTO t SELECT generate_series($1, $2)", Some((1, 2))),
        ("INSERT INTO t SELECT generate_series($1, n)", None),
    ] {
        let found = grown
            .iter()
            .find(|statement| statement.text.as_deref() == Some(text));
        let found = found.map(|statement| (statement.calls, statement.rows));
        assert_eq!(found, expected, "{text}: {grown:#?}");
    }
}
