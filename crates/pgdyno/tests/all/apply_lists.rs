//! Parameters that are lists of names, applied and restored: on a sandbox, on a server that pgdyno
//! did not create, and over SQL alone. A list that becomes one name keeps a server from starting,
//! or from letting anybody in.

use crate::experiment::Nobody;
use common::foreign::Foreign;
use common::machine::newest;
use common::{Home, auto_conf};
use std::fs;
use std::path::Path;

const TWO: &str = "auto_explain, pg_stat_statements";
const SHARED: &str = "shared_preload_libraries";
const SESSION: &str = "session_preload_libraries";

/// A setting for the command line.
fn set(name: &str, value: &str) -> String {
    format!("{name}={value}")
}

#[test]
fn list_of_two_libraries_is_loaded_and_restored_on_a_sandbox() {
    let home = Home::new();
    // In postgresql.conf, below what ALTER SYSTEM writes.
    home.run(&[
        "sandbox",
        "create",
        "x",
        "--set",
        "shared_preload_libraries=pg_stat_statements",
    ])
    .fine();
    let before = auto_conf(&home);
    let apply = |setting: &str| home.run(&["apply", "sandbox:x", setting]);
    let shown = |name: &str| home.ask("x", &format!("SHOW {name}"));
    apply(&set(SHARED, TWO)).fine();
    assert_eq!(shown(SHARED), TWO);
    // Each has done its part: one has its view, the other its parameters.
    home.ask(
        "x",
        "CREATE EXTENSION pg_stat_statements; SELECT count(*) FROM pg_stat_statements",
    );
    assert_eq!(shown("auto_explain.log_min_duration"), "-1");
    apply(&set(SESSION, TWO)).fine();
    assert_eq!(shown(SESSION), TWO);
    apply("temp_tablespaces=\"pg_default\" ,PG_DEFAULT").fine();
    assert_eq!(shown("temp_tablespaces"), "pg_default, pg_default");

    // It is so already, however it is spelled, and nobody else's.
    let again = home.run(&[
        "apply",
        "sandbox:x",
        &set(SESSION, "\"auto_explain\",pg_stat_statements"),
        "--dry-run",
        "--json",
    ]);
    assert_eq!(again.fine().json()[0]["cost"], "nothing");
    let status = home.run(&["status"]).fine().out;
    assert!(!status.contains("someone else"), "{status}");

    // An empty list is one, over the one in postgresql.conf too.
    apply(&set(SHARED, "")).fine();
    assert_eq!(shown(SHARED), "");
    let back = home.run(&["restore"]).fine().out;
    assert!(!back.contains("left alone"), "{back}");
    assert_eq!(auto_conf(&home), before);
    assert_eq!(
        (shown(SHARED).as_str(), shown(SESSION).as_str()),
        ("pg_stat_statements", "")
    );
}

#[test]
fn list_that_the_server_could_not_load_is_refused_before_anything_is_changed() {
    let home = Home::new();
    home.run(&["sandbox", "create", "x"]).fine();
    let before = auto_conf(&home);
    for (value, message) in [
        ("auto_explain, no_such", "no_such is not in /"),
        (
            "\"auto_explain, pg_stat_statements\"",
            "auto_explain, pg_stat_statements is not in /",
        ),
        ("$libdir/plugins/auto_explain", "plugins/auto_explain is not in /"),
        ("auto_explain,,pg_stat_statements", "names separated by commas"),
        ("\"\"", "names that are not empty"),
    ] {
        for setting in [SHARED, SESSION].map(|name| set(name, value)) {
            for dry in [&["--dry-run"][..], &[]] {
                let arguments = [&["apply", "sandbox:x", &setting], dry].concat();
                home.run(&arguments).fails(2, &["nothing was changed", message]);
            }
        }
        assert_eq!(auto_conf(&home), before, "{value}");
    }
}

#[test]
fn step_of_an_experiment_with_two_libraries_takes_effect() {
    let home = Home::new();
    home.run(&["sandbox", "create", "x"]).fine();
    let before = auto_conf(&home);
    let steps = format!(
        "[[step]]\nname = \"two\"\nsettings.{SHARED} = \"{TWO}\"\n[[step]]\nname = \"none\"\nsettings.{SHARED} = \"\"\n"
    );
    let path = crate::experiment::file(&home, 1, 1.0, &steps);
    home.run(&["run", &path]).fine();
    let report = home.run(&["report", "--format", "json"]).fine().json();
    assert_eq!(common::ended(&report, "finished"), 3, "{report}");
    assert_eq!(auto_conf(&home), before);
}

/// A server whose files are within reach, and that nobody but its owner's command restarts.
#[test]
fn list_is_restored_on_a_server_of_others_that_lets_nobody_in() {
    let (home, foreign) = (Home::new(), Foreign::start());
    let target = foreign.target("postgres");
    let before = foreign.auto_conf();
    let restart = foreign.restart_command();
    let restarting = ["--allow-restart", "--restart-command", &restart];
    home.run(&[&["apply", &target, &set(SHARED, TWO)], &restarting[..]].concat())
        .fine();
    assert_eq!(foreign.ask(&format!("SHOW {SHARED}")), TWO);
    home.run(&["restore"]).fine();
    assert_eq!(foreign.ask(&format!("SHOW {SHARED}")), "");

    // A library that is there and cannot be loaded is found by the first session, which there is
    // none of then.
    let good = foreign.library("auto_explain");
    let own = home.file("own.so");
    fs::write(&own, "no library").expect("written");
    let setting = set(SESSION, &own.to_string_lossy());
    home.run(&["apply", &target, &setting])
        .fails(1, &["everything was restored", "own.so"]);
    assert_eq!(foreign.auto_conf(), before);
    assert_eq!(foreign.ask("SELECT 1"), "1");

    // One that is broken later: the server is reached by its process alone.
    fs::copy(&good, &own).expect("a copy");
    home.run(&["apply", &target, &setting, "work_mem=9MB"]).fine();
    break_library(&own);
    let locked = postgres::Client::connect(&target, postgres::NoTls);
    assert!(locked.is_err(), "the server lets nobody in");
    home.run(&["restore"]).fine();
    assert_eq!(foreign.auto_conf(), before);
    assert_eq!(foreign.ask("SHOW work_mem"), "4MB");
}

/// By another file: the server has mapped the one that was there.
fn break_library(path: &Path) {
    fs::remove_file(path).expect("removed");
    fs::write(path, "no library").expect("written");
}

#[test]
fn list_is_applied_and_restored_over_sql_alone() {
    let (home, foreign) = (Home::new(), Foreign::start());
    let nobody = Nobody::new(&home);
    let target = foreign.target("postgres");
    let shown = || foreign.ask(&format!("SHOW {SESSION}"));
    let apply = |value: &str| nobody.run(&["apply", &target, &set(SESSION, value)], &[]);
    apply("no_such").fails(2, &["no_such is not in /"]);
    apply(TWO).fine();
    assert_eq!(shown(), TWO);
    nobody.run(&["restore"], &[]).fine();
    assert_eq!(shown(), "");

    // What was there before is a list of two as well.
    foreign.ask(&format!(
        "ALTER SYSTEM SET {SESSION} = auto_explain, pg_stat_statements"
    ));
    foreign.ask("SELECT pg_reload_conf()");
    let before = foreign.auto_conf();
    apply("auto_explain").fine();
    let status = nobody.run(&["status"], &[]).fine().out;
    assert!(!status.contains("someone else"), "{status}");
    nobody.run(&["restore"], &[]).fine();
    assert_eq!(foreign.auto_conf(), before);
    // No list at all is the setting removed, where no other file has one.
    apply("").fine();
    assert_eq!(shown(), "");
    nobody.run(&["restore"], &[]).fine();
    assert_eq!((foreign.auto_conf(), shown()), (before, TWO.to_owned()));
    foreign.configure(&format!("{SESSION} = 'auto_explain'"));
    apply("").fails(2, &["cannot write an empty list", "postgresql.conf, line"]);
}

/// A name with a blank gets quotes in a list of names, and stays as it is in another list; a single
/// text takes no second one.
fn lists_are_the_servers(version: &str) {
    let home = Home::new();
    home.run(&["sandbox", "create", "x", "--version", version]).fine();
    let mut client = postgres::Client::connect(&home.config("x"), postgres::NoTls).expect("it answers");
    let sql = "SELECT name FROM pg_settings WHERE vartype = 'string' AND context <> 'internal'";
    let names: Vec<String> = client
        .query(sql, &[])
        .expect("names")
        .iter()
        .map(|row| row.get(0))
        .collect();
    let mut lists = 0;
    for name in names {
        let said = match client.batch_execute(&format!("ALTER SYSTEM SET {name} = 'A b', 'c'")) {
            Ok(()) => {
                let file = auto_conf(&home);
                client
                    .batch_execute(&format!("ALTER SYSTEM RESET {name}"))
                    .expect("reset");
                file
            }
            // The value as the server has read it.
            Err(error) => error
                .as_db_error()
                .expect("the server's words")
                .message()
                .to_owned(),
        };
        let is_list = said.contains("\"A b\", c");
        let here = pgdyno_server::assigned(&name, "\"A b\", c");
        assert_eq!(here.as_deref() == Some("'A b', 'c'"), is_list, "{name}: {said}");
        lists += u32::from(is_list);
    }
    assert!(lists >= 5, "{lists}");
}

#[test]
fn every_list_of_the_oldest_version_is_written_name_by_name() {
    lists_are_the_servers("14");
}

#[test]
fn every_list_of_the_newest_version_is_written_name_by_name() {
    lists_are_the_servers(&newest());
}
