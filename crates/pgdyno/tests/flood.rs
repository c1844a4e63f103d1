//! Hostile servers and stores: a command that reads one ends, and its memory has a limit.

use pgdyno_record::{SeriesRecord, TrialRecord};
use pgdyno_store::Store;
use pgdyno_testing::Home;
use pgdyno_testing::hostile::{MODES, Mode, serve};
use std::process::{Command, Stdio};

/// What a command may allocate, in kB.
const DATA_KB: u32 = 256 << 10;

/// Runs a command that must end by itself, and within its memory: its exit code, and what it
/// printed on stderr. The limit is of what is allocated: how much of a program is resident is the
/// page cache's affair too.
fn ended(command: &Command) -> (i32, String) {
    let mut limited = Command::new("/bin/sh");
    limited
        .args(["-c", "ulimit -d \"$0\" && exec \"$@\"", &DATA_KB.to_string()])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    let output = limited.stdout(Stdio::null()).output().expect("sh runs");
    let errors = String::from_utf8(output.stderr).expect("text");
    (
        output
            .status
            .code()
            .unwrap_or_else(|| panic!("a signal: {errors}")),
        errors,
    )
}

/// Where a hostile server is.
fn target(port: u16) -> String {
    format!("host=127.0.0.1 port={port} user=x dbname=x sslmode=disable connect_timeout=1")
}

/// A store on that server.
fn store(port: u16) -> String {
    format!("postgres://x@127.0.0.1:{port}/x?sslmode=disable&connect_timeout=1")
}

/// An experiment on that server.
fn experiment(home: &Home, port: u16) -> String {
    let text = format!(
        "name = \"flood\"\nquestion = \"?\"\ndesign = \"a-a\"\nblocks = 2\n[target]\nconnection = \"{}\"\n[data]\nscale = 1\n\
         [load]\nworkload = \"simple\"\nclients = 1\nwarmup_s = 0\nmeasure_s = 1\n",
        target(port)
    );
    let file = home.write(&format!("{port}.toml"), &text);
    file.to_string_lossy().into_owned()
}

/// Each of what asks a server, with its arguments.
const COMMANDS: [fn(&Home, u16) -> Vec<String>; 9] = [
    |_, port| words(&["facts", &target(port)]),
    |_, port| words(&["check", &target(port), "--seconds", "0.1"]),
    |_, port| words(&["advise", &target(port)]),
    |_, port| words(&["bench", &target(port)]),
    |_, port| words(&["watch", &target(port), "--once"]),
    |_, port| words(&["data", "create", &target(port), "--scale", "1"]),
    |_, port| words(&["data", "check", &target(port)]),
    |home, port| words(&["run", &experiment(home, port)]),
    |_, port| words(&["list", "--store", &store(port)]),
];

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn is_ended(home: &Home, mode: Mode, answers: u32, command: fn(&Home, u16) -> Vec<String>) {
    let arguments = command(home, serve(mode, answers));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (code, errors) = ended(&home.command(&arguments));
    let case = format!("{mode:?} {answers} {arguments:?}: {code}, {errors}");
    // Behind the first answers a check, say, reports what it could not measure.
    assert!(answers > 0 || code > 0 && errors.contains("127.0.0.1"), "{case}");
    assert!(errors.len() < 4000, "{case}");
}

/// Each mode meets three commands, and each command some modes: another third of all pairs behind
/// the first answers.
#[test]
fn no_hostile_server_keeps_a_command_or_takes_its_memory() {
    let home = Home::new();
    std::thread::scope(|scope| {
        for (number, mode) in MODES.into_iter().enumerate() {
            let home = &home;
            scope.spawn(move || {
                for (at, command) in COMMANDS.into_iter().enumerate() {
                    if (at + number) % 3 == 0 {
                        is_ended(home, mode, 0, command);
                    }
                    // A check asks for longer than one that waits for ever, and so do those that
                    // wait for each answer.
                    let waits = at == 1 || matches!(mode, Mode::Silent | Mode::Trickle);
                    if (at + number) % 3 == 1 && !waits {
                        is_ended(home, mode, 2, command);
                    }
                }
            });
        }
    });
}

/// What a store holds may come from anybody.
#[test]
fn no_store_takes_the_memory_of_who_reads_it() {
    let home = Home::new();
    let path = home.file("results.sqlite");
    let mut store = Store::open(&path).expect("a store");
    let record = serde_json::json!({
        "name": "flood", "question": "?", "design": "a-a", "blocks": 9, "seed": 1, "confidence": 0.95,
        "smallest_effect": 0.03, "file": "", "repeat": [], "target": "x", "facts": [],
        "workload": {"name": "tpcb", "scale": 1, "clients": 1, "threads": 1, "warmup_s": 1.0, "measure_s": 1.0},
        "treatments": [{"name": "reference", "title": "reference", "settings": []}],
    });
    let record = serde_json::from_value(record).expect("a record");
    let id = store.begin(&record).expect("begun");
    for block in 1..=7 {
        let mut trial = TrialRecord::begun(block, 1, "reference");
        trial.reason = Some("x".repeat(20_000_000));
        let stored = store.add_trial(id, &trial, &SeriesRecord::default());
        stored.expect("stored");
    }
    drop(store);
    for arguments in [
        &["show", "1"][..],
        &["report", "1", "-f", "md"],
        &["compare", "1:reference", "1:reference"],
        &["capacity", "1", "--tps", "9"],
    ] {
        let mut command = home.command(arguments);
        command.env("PGDYNO_STORE", &path);
        let (code, errors) = ended(&command);
        let case = format!("{arguments:?}: {code}, {errors}");
        assert!(
            code > 0 && errors.contains("longer than 134217728 bytes"),
            "{case}"
        );
        assert!(errors.len() < 4000, "{case}");
    }
}
