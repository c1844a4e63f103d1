//! What is reported of changes that nobody has restored, whichever server they name.

use super::{experiment, fill, open};
use common::web::Web;
use common::{Home, kernel};
use serde_json::{Value, json};
use std::fs;

/// A file of the kernel that no test changes: it is as the journal says that it was set.
const QUIET: &str = "/proc/sys/vm/zone_reclaim_mode";

/// A journal that names a sandbox: a file of the machine's, and a parameter of the server.
fn leave_changes(home: &Home, sandbox: &str) {
    let (value, boot_id) = (kernel(QUIET), kernel("/proc/sys/kernel/random/boot_id"));
    let cell = json!({"files": {"files": [{"path": QUIET, "form": "plain"}], "counterparts": false}});
    let server = json!({"sandbox": {"root": home.file("sandboxes"), "name": sandbox}});
    let lines = [
        json!({"open": {"format": 2, "pid": 1, "started_unix_ms": 1_760_000_000_000_u64, "boot_id": boot_id, "purpose": "run memory", "server": server, "server_was_running": false, "by": "root"}}),
        json!({"intent": {"knob": "vm.zone_reclaim_mode", "cell": cell, "before": {"files": ["7"]}, "writing": value}}),
        json!({"done": {"after": {"files": [value]}}}),
        json!({"intent": {"knob": "work_mem", "cell": {"parameter": {"name": "work_mem"}}, "before": {"parameter": null}, "writing": "16MB"}}),
        json!({"done": {"after": {"parameter": "16MB"}}}),
        json!("confirmed"),
    ];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let journals = home.file("state/journal");
    fs::create_dir_all(&journals).expect("a directory");
    fs::write(journals.join("1760000000000-1.journal"), lines).expect("written");
}

/// The knobs of the journals in a list, and the state of each.
fn state(journals: &Value) -> Vec<(String, String)> {
    let journals = journals.as_array().expect("journals").iter();
    let lines = journals.flat_map(|journal| journal["changes"].as_array().expect("changes"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    lines
        .map(|line| (text(&line["knob"]), text(&line["state"])))
        .collect()
}

fn line(knob: &str, state: &str) -> (String, String) {
    (knob.to_owned(), state.to_owned())
}

#[test]
fn changes_of_the_machine_are_reported_whichever_server_they_are_for() {
    for sandbox in ["a", "nobody-knows"] {
        let home = Home::new();
        fill(&home, "memory", "sandbox a");
        leave_changes(&home, sandbox);
        let web = Web::start(&home, &[]);
        let answer = web.json("/api/targets");
        // That sandbox is not there, so nobody can be asked for its parameter.
        let all = [
            line("vm.zone_reclaim_mode", "in-force"),
            line("work_mem", "unknown"),
        ];
        assert_eq!(state(&answer["changed_on_host"]), all, "{answer}");
        assert_eq!(
            (&answer["servers_asked"], &answer["why_not_known"]),
            (&json!(true), &Value::Null)
        );
        let target = &answer["targets"][0];
        let expected: &[_] = if sandbox == "a" { &all } else { &[] };
        assert_eq!(state(&target["changed"]), expected, "{answer}");
        assert_eq!(
            (&target["why_not_known"], &target["is_advice_due"]),
            (&Value::Null, &json!(false))
        );
    }
}

#[test]
fn changes_of_the_machine_are_reported_while_an_experiment_runs() {
    let home = Home::new();
    let mut store = open(&home);
    store.begin(&experiment("memory", "sandbox a")).expect("begun");
    leave_changes(&home, "a");
    let web = Web::start(&home, &[]);
    let answer = web.json("/api/targets");
    let all = [
        line("vm.zone_reclaim_mode", "in-force"),
        line("work_mem", "unknown"),
    ];
    assert_eq!(state(&answer["changed_on_host"]), all, "{answer}");
    assert_eq!(answer["servers_asked"], false);
    let why = &answer["changed_on_host"][0]["changes"][1]["why"];
    assert!(
        why.as_str().is_some_and(|why| why.contains("not asked")),
        "{answer}"
    );
    let target = &answer["targets"][0];
    assert_eq!(target["changed"], Value::Null);
    let why = target["why_not_known"].as_str();
    assert!(
        why.is_some_and(|why| why.contains("servers are not asked")),
        "{answer}"
    );
}

/// What cannot be read is said to be that, and why.
#[test]
fn a_journal_that_cannot_be_read_is_reported() {
    let home = Home::new();
    fill(&home, "memory", "sandbox a");
    let journals = home.file("state/journal");
    fs::create_dir_all(&journals).expect("a directory");
    fs::write(journals.join("1760000000000-1.journal"), "no JSON\nat all\n").expect("written");
    let web = Web::start(&home, &[]);
    let answer = web.json("/api/targets");
    for place in [&answer["targets"][0], &answer] {
        let why = place["why_not_known"].as_str();
        assert!(
            why.is_some_and(|why| why.contains("1760000000000-1.journal")),
            "{answer}"
        );
    }
    assert_eq!(
        (&answer["changed_on_host"], &answer["targets"][0]["changed"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn a_killed_experiment_is_killed_in_its_report_too() {
    let home = Home::new();
    let mut store = open(&home);
    let id = store.begin(&experiment("memory", "sandbox a")).expect("begun");
    let web = Web::start(&home, &[]);
    let status = || web.json(&format!("/api/experiments/{id}/report"))["experiment"]["status"].clone();
    assert_eq!(status(), "running");
    // The lock goes with its process.
    drop(store);
    assert_eq!(status(), "killed");
    let printed = home.run(&["report", "1", "--format", "json"]).fine().json();
    assert_eq!(printed["experiment"]["status"], "killed");
    let list = web.json("/api/experiments");
    assert_eq!(
        (&list["is_whole"], &list["experiments"][0]["status"]),
        (&json!(true), &json!("killed"))
    );
}
