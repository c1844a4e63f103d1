//! Passwords do not belong into a file.

use super::*;

#[test]
fn a_password_in_a_file_is_refused_and_not_repeated() {
    for connection in [
        "host=a password=hunter2",
        "postgresql://me:hunter2@a/b",
        "password=hunter2 =",
    ] {
        let text = GOOD.replace(
            "[data]",
            &format!("[target]\nconnection = \"{connection}\"\n[data]"),
        );
        let error = parse(&text).unwrap_err().to_string();
        assert!(
            error.contains("line 7") && error.contains("PGPASSWORD"),
            "{error}"
        );
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn a_password_in_a_command_is_refused_and_not_repeated() {
    let target = |line: &str| GOOD.replace("[data]", &format!("[target]\n{line}\n[data]"));
    let load = |line: &str| GOOD.replace("[load]", &format!("[load]\n{line}"));
    let secret = "PGPASSWORD=hunter2 x";
    for text in [
        target(&format!(
            "connection = \"host=a\"\nrestart_command = \"{secret}\""
        )),
        target(&format!(
            "connection = \"host=a\"\nstop_command = \"x\"\nstart_command = \"{secret}\""
        )),
        load(&format!("command = \"{secret}\"")),
        load(&format!("prepare = \"{secret}\"")),
        load("cleanup = \"x --password hunter2\""),
        GOOD.replace("[load]", &format!("[server]\nneighbour = \"{secret}\"\n[load]")),
    ] {
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.contains("PGPASSWORD of the environment"), "{error}\n{text}");
        assert!(!error.contains("hunter2"), "{error}");
    }
    parse(&load("prepare = \"PGPASSWORD=$PW x\"")).unwrap();
}

#[test]
fn sql_of_the_data_has_a_data_set_and_no_password() {
    let with = |data: &str, load: &str| {
        format!(
            "name='x'\nquestion='?'\ndesign='a-b'\nblocks=3\n[data]\n{data}\n[load]\n{load}\nclients=2\nmeasure_s=5\n[[step]]\nname='a'\n\
             data.sql='CREATE INDEX ON t (a)'\n"
        )
    };
    let script = "script='SELECT 1;'";
    parse(&with("scale=1", script)).expect("a file");
    for (data, load, expected) in [
        ("", script, "set a scale"),
        (
            "scale=1",
            "workload='empty'",
            "set a scale, and a load that reads pgdyno's data",
        ),
        (
            "scale=1\nsql=\"CREATE ROLE a PASSWORD 'x'\"",
            script,
            "a password must not be in a file",
        ),
        (
            "scale=1\nsql=\"CREATE USER MAPPING FOR a SERVER s OPTIONS (password 'x')\"",
            script,
            "a password",
        ),
    ] {
        let error = parse(&with(data, load)).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("'x'"), "{error}");
    }
    parse(&with(
        "scale=1\nsql=\"CREATE TABLE a (password text DEFAULT 'x')\"",
        script,
    ))
    .expect("a column");
}
