//! What is shown of a server's log when its owner's restart command fails: what was written since,
//! wherever the server wrote it, and nothing older.

use common::Home;
use common::foreign::Foreign;
use std::fs;

/// In the log before the restart.
const OLDER: &str = "an_older_one";
/// What the server says to a pg_hba.conf that it cannot use.
const NEWER: &str = "could not load";

/// A server that writes its own log, into a file of this name.
fn logging(file: &str) -> Foreign {
    let foreign = Foreign::start();
    foreign.configure("logging_collector = on");
    foreign.configure(&format!("log_filename = '{file}'"));
    let status = sh(&foreign.restart_command());
    assert!(status, "it restarts");
    let refused = postgres::Client::connect(&foreign.target(OLDER), postgres::NoTls);
    assert!(refused.is_err(), "there is no such role");
    let log = foreign.data(&foreign.ask("SELECT pg_current_logfile()"));
    common::until("the refusal is in the log", || {
        let text = fs::read_to_string(&log).expect("a log");
        if text.contains(OLDER) { Ok(()) } else { Err(text) }
    });
    foreign
}

fn sh(command: &str) -> bool {
    let mut shell = std::process::Command::new("sh");
    let shell = shell.args(["-c", command]).stdout(std::process::Stdio::null());
    shell.status().expect("sh runs").success()
}

/// A restart command that fails the first time: with these commands before it, and a pg_hba.conf
/// that the server cannot use, which is good again afterwards.
fn broken_once(home: &Home, foreign: &Foreign, before: &str) -> String {
    let (hba, first) = (foreign.data("pg_hba.conf"), home.write("first", ""));
    let (hba, first) = (hba.display(), first.display());
    format!(
        "cp -p {hba} {hba}.good; if rm {first} 2>/dev/null; then {before} echo nonsense >> {hba}; fi; {}; code=$?; \
         mv {hba}.good {hba}; exit $code",
        foreign.restart_command()
    )
}

#[track_caller]
fn apply(home: &Home, foreign: &Foreign, restart: &str) -> String {
    let target = foreign.target("postgres");
    let arguments = [
        "apply",
        &target,
        "max_connections=50",
        "--allow-restart",
        "--restart-command",
        restart,
    ];
    let said = home.run(&arguments).fails(1, &["\" failed: "]);
    assert!(!said.err.contains(OLDER), "{}", said.err);
    said.err
}

#[track_caller]
fn is_shown(errors: &str, file: &str) {
    let at = errors
        .find("the server's log ")
        .unwrap_or_else(|| panic!("no log in:\n{errors}"));
    let (path, reason) = errors[at..].split_once(" ends with: ").expect("a reason");
    assert!(path.contains(file) && reason.contains(NEWER), "{errors}");
}

#[test]
fn log_since_a_failed_restart_is_in_the_error() {
    let (home, foreign) = (Home::new(), logging("server.log"));
    let restart = broken_once(&home, &foreign, "");
    is_shown(&apply(&home, &foreign, &restart), "log/server.log");
}

/// As by default, where a start begins a file.
#[test]
fn log_that_the_failed_restart_began_is_in_the_error() {
    let (home, foreign) = (Home::new(), logging("first.log"));
    // Text of another day is in the file that the start appends to.
    fs::write(foreign.data("log/second.log"), format!("FATAL:  {OLDER}\n")).expect("written");
    assert!(sh(&format!(
        "chown postgres {}",
        foreign.data("log/second.log").display()
    )));
    let file = foreign.data("postgresql.conf");
    let before = format!("echo \"log_filename = 'second.log'\" >> {};", file.display());
    let restart = broken_once(&home, &foreign, &before);
    is_shown(&apply(&home, &foreign, &restart), "log/second.log");
}

#[test]
fn log_that_was_rotated_during_a_failed_restart_is_in_the_error() {
    let (home, foreign) = (Home::new(), logging("server.log"));
    let log = foreign.data("log/server.log");
    let before = format!("mv {0} {0}.1;", log.display());
    let restart = broken_once(&home, &foreign, &before);
    is_shown(&apply(&home, &foreign, &restart), "log/server.log");
}

#[test]
fn log_without_text_since_a_failed_restart_is_not_in_the_error() {
    let (home, foreign) = (Home::new(), logging("server.log"));
    let errors = apply(&home, &foreign, "exit 3");
    assert!(!errors.contains("the server's log"), "{errors}");
}
