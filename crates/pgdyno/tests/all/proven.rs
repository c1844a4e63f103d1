//! What is proven before a server is written or a journal is closed: that it has restarted, and
//! that the server at an address is still the same.

use crate::experiment::Nobody;
use common::Home;
use common::foreign::Foreign;
use std::fs;

#[test]
fn restart_command_that_restarts_nothing_is_an_error_and_everything_is_restored() {
    let (home, foreign) = (Home::new(), Foreign::start());
    let (target, started) = (foreign.target("postgres"), "SELECT pg_postmaster_start_time()");
    let before = (foreign.ask(started), foreign.auto_conf());
    let restart = ["--allow-restart", "--restart-command", "true"];
    home.run(&[&["apply", &target, "max_connections=50"], &restart[..]].concat())
        .fails(
            1,
            &["everything was restored", "\"true\" has not restarted the server"],
        );
    assert_eq!((foreign.ask(started), foreign.auto_conf()), before);
}

#[test]
fn another_server_at_the_address_is_not_written_and_the_journal_stays() {
    let home = Home::new();
    home.sandbox("x", &[]);
    let port = home.record("x")["port"].to_string();
    let target = format!("host=127.0.0.1 port={port} user=postgres dbname=postgres");
    let password = || fs::read_to_string(home.file("state/sandboxes/x/password")).expect("a password");
    // Whose files it cannot reach: it is known by its address and its identifier.
    let nobody = Nobody::new(&home);
    let run = |arguments: &[&str]| nobody.run(arguments, &[("PGPASSWORD", password().trim())]);
    run(&["apply", &target, "work_mem=9MB"]).fine();
    home.run(&["sandbox", "destroy", "x"]).fine();
    home.run(&["sandbox", "create", "x", "--port", &port]).fine();
    // The same value, by somebody else.
    home.ask("x", "ALTER SYSTEM SET work_mem = '9MB'");
    let conf = || fs::read_to_string(home.data("x").join("postgresql.auto.conf")).expect("a file");
    let before = conf();
    for _ in 0..2 {
        let refused = run(&["restore", "--json"]);
        assert_eq!((refused.code, conf()), (1, before.clone()), "{}", refused.out);
        let why = "not restored: the server that answers is one with the system identifier";
        assert!(refused.out.contains(why), "{}", refused.out);
    }
    run(&["restore", "--force"]).fine();
    assert_ne!(conf(), before);
}
