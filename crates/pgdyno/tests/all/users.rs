//! Changes that users of one host see of one another: root's are believed by all, a user's by root
//! for that user's own server. Needs root.

use super::experiment::Nobody;
use common::foreign::Foreign;
use common::machine::whole_machine;
use common::{Home, Said, kernel, said};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs the program as a user, with a home below `own`, and the registries of others that it sees.
fn as_user(user: &str, program: &Path, own: &Path, others: &str, arguments: &[&str]) -> Said {
    let output = Command::new("setpriv")
        .arg(format!("--reuid={user}"))
        .args(["--regid=nogroup", "--clear-groups"])
        .arg(program)
        .args(arguments)
        .env("PGDYNO_HOME", own)
        .env("PGDYNO_REGISTRY", own.join("state/registry"))
        .env("PGDYNO_OTHER_REGISTRIES", others)
        .current_dir("/")
        .output();
    said(output.expect("setpriv runs"))
}

fn own_directory(home: &Home, user: &str) -> std::path::PathBuf {
    let own = home.file(user);
    fs::create_dir_all(own.join("state")).expect("made");
    common::tool("chown", &["-R", user, &own.to_string_lossy()]);
    own
}

#[test]
fn change_of_one_user_is_refused_to_another_until_it_is_restored() {
    let home = Home::new();
    let foreign = Foreign::start();
    let target = foreign.target("postgres");
    let nobody = Nobody::new(&home);
    let of_root = format!("root={}", home.file("state/registry").display());
    let own = own_directory(&home, "postgres");
    let postgres = |arguments: &[&str]| as_user("postgres", &nobody.program, &own, &of_root, arguments);
    let of_postgres = format!("postgres={}", own.join("state/registry").display());
    let root = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env("PGDYNO_OTHER_REGISTRIES", &of_postgres);
        said(command.output().expect("pgdyno runs"))
    };
    let value = || foreign.ask("SELECT setting FROM pg_file_settings WHERE name = 'work_mem'");

    // Root's, seen by the server's user.
    root(&["apply", &target, "work_mem=9MB"]).fine();
    let status = postgres(&["status"]).fine();
    assert!(status.err.contains("changed by root's pgdyno"), "{}", status.err);
    assert!(status.err.contains("work_mem"), "{}", status.err);
    assert!(!status.err.contains("9MB"), "no value: {}", status.err);
    for arguments in [
        &["apply", &target, "work_mem=7MB"][..],
        &["apply", "--dry-run", &target, "work_mem=7MB"],
    ] {
        postgres(arguments).fails(1, &["work_mem is changed by root's pgdyno since", "restore"]);
    }
    assert_eq!(value(), "9MB");
    // Another knob is nobody's.
    postgres(&["apply", &target, "maintenance_work_mem=70MB"]).fine();
    postgres(&["restore"]).fine();
    root(&["restore"]).fine();
    assert_eq!(value(), "");

    // The server's user's, seen by root.
    postgres(&["apply", &target, "work_mem=7MB"]).fine();
    root(&["apply", &target, "work_mem=9MB"]).fails(1, &["work_mem is changed by postgres's pgdyno since"]);
    assert_eq!(value(), "7MB");
    postgres(&["restore"]).fine();
    assert_eq!(value(), "");
    let status = root(&["status"]).fine();
    assert!(status.err.contains("nothing is changed"), "{}", status.err);
    root(&["apply", &target, "work_mem=9MB"]).fine();
    root(&["restore"]).fine();
}

#[test]
fn users_word_keeps_root_from_nothing_but_that_users_server() {
    let _machine = whole_machine();
    let home = Home::new();
    let swappiness = kernel("/proc/sys/vm/swappiness");
    let own = own_directory(&home, "nobody");
    let notices = own.join("state/registry/notices");
    fs::create_dir_all(&notices).expect("made");
    let planted = r#"{"format":1,"since_unix_ms":951827696000,"pid":1,"host":["vm.swappiness"],"server":[],"servers":[]}"#;
    fs::write(notices.join("1-1-a.json"), planted).expect("written");
    fs::write(notices.join("1-2-a.json"), "{ torn").expect("written");
    common::tool("chown", &["-R", "nobody", &own.to_string_lossy()]);
    let root = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env(
            "PGDYNO_OTHER_REGISTRIES",
            format!("nobody={}", own.join("state/registry").display()),
        );
        said(command.output().expect("pgdyno runs"))
    };
    let status = root(&["status"]).fine();
    assert!(
        status.err.contains("changed by nobody's pgdyno"),
        "{}",
        status.err
    );
    assert!(status.err.contains("1-2-a.json"), "{}", status.err);
    let other = if swappiness == "17" { "18" } else { "17" };
    let foreign = Foreign::start();
    root(&[
        "apply",
        &foreign.target("postgres"),
        &format!("vm.swappiness={other}"),
    ])
    .fine();
    assert_eq!(kernel("/proc/sys/vm/swappiness"), other);
    root(&["restore"]).fine();
    assert_eq!(kernel("/proc/sys/vm/swappiness"), swappiness);
}
