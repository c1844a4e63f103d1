//! Loads that are stored: as trials of an experiment without treatments, which all that reads
//! experiments reads.

use common::{Home, Said};
use std::fs;

/// Drives a load over a connection string with a password and stores it; returns the object and its
/// trial in a report.
#[track_caller]
fn stored(home: &Home, target: &str, more: &[&str]) -> (serde_json::Value, serde_json::Value) {
    let arguments = ["bench", target, "-d", "1s", "--warmup", "0s", "--store", "--json"];
    let bench = home.run(&[&arguments[..], more].concat()).fine().json();
    let id = bench["experiment"].to_string();
    let report = home.run(&["show", &id, "--json"]).fine().json();
    (bench, report)
}

#[test]
fn stored_load_is_shown_compared_exported_and_not_resumed() {
    let home = Home::new();
    home.sandbox("x", &[]);
    home.run(&["data", "create", "sandbox:x", "--scale", "2", "--replace"])
        .fine();
    let load = ["-w", "select-only", "-c", "2"];
    let (bench, first) = stored(&home, "sandbox:x", &load);
    let (_, second) = stored(&home, "sandbox:x", &load);
    let report = home.run(&["export", "1", "--format", "json"]).fine().json();
    assert_eq!(report["experiment"]["workload"]["scale"], 2);
    let trial = &first["trials"][0];
    assert_eq!(trial["tps"], bench["tps"], "{first}");
    assert_eq!(trial["percentiles"]["p99_ms"], bench["response_ms"]["p99"]);
    assert_ne!(first["experiment"], second["experiment"]);

    let list = home.run(&["list"]).fine().out;
    assert!(list.contains("bench select-only"), "{list}");
    let compared = home.run(&["compare", "1", "2", "--metric", "tps"]).fine().out;
    assert!(compared.contains(" tps "), "{compared}");
    let csv = home.run(&["export", "1", "--format", "csv"]).fine().out;
    let (head, line) = csv.split_once("\r\n").expect("two lines");
    let at = head
        .split(',')
        .position(|name| name == "skipped")
        .expect("a column");
    assert_eq!(line.split(',').nth(at), Some("0"), "{csv}");
    home.run(&["resume", "1"])
        .fails(2, &["repeat it by: pgdyno bench sandbox:x -d 1s"]);
    let page = home.file("one.html").to_string_lossy().into_owned();
    home.run(&["report", "1", "-o", &page]).fine();
}

#[test]
fn stored_ladder_answers_a_capacity() {
    let home = Home::new();
    home.sandbox("x", &[]);
    let arguments = [
        "bench",
        "sandbox:x",
        "-w",
        "simple",
        "-c",
        "1,2",
        "-d",
        "1s",
        "--warmup",
        "0s",
        "--store",
    ];
    home.run(&arguments).fine();
    let answer = home
        .run(&["capacity", "1", "--tps", "10", "--json"])
        .fine()
        .json();
    assert_eq!(
        answer["answer"]["rows"].as_array().map(Vec::len),
        Some(1),
        "{answer}"
    );
    let report = home.run(&["report", "1", "-f", "md"]).fine().out;
    assert!(report.contains("| clients 2 |"), "{report}");
}

/// What an open loop with a limit keeps: every transaction that was due, and what its response
/// times are made of.
#[test]
fn books_of_a_stored_load_are_whole() {
    let home = Home::new();
    home.sandbox("x", &[]);
    let password = fs::read_to_string(home.file("state/sandboxes/x/password")).expect("a password");
    let port = &home.record("x")["port"];
    let target = format!(
        "host=127.0.0.1 port={port} user=postgres password={}",
        password.trim()
    );
    let script = home.write("some.sql", "SELECT pg_sleep(0.03);\n");
    let script = script.to_string_lossy();
    // Thirty a second is what one client does; as many again are late, and then skipped.
    let load = ["-f", &script, "-c", "1", "--rate", "60", "-L", "100ms"];
    let (bench, shown) = stored(&home, &target, &load);
    let id = bench["experiment"].to_string();
    let report = home.run(&["export", &id, "--format", "json"]).fine().json();
    let last = home.run(&["export", "last", "--format", "json"]).fine().json();
    assert_eq!(last["experiment"], report["experiment"]);
    let trial = &report["trials"][0];
    for count in ["committed", "failed", "skipped", "late", "retries", "rolled_back"] {
        assert_eq!(trial[count], bench[count], "{count}: {trial}");
    }
    assert!(trial["late"].as_u64() > Some(0), "{trial}");
    assert_eq!(trial["figures"]["goodput_tps"], bench["goodput_tps"], "{trial}");
    assert_eq!(trial["latency_limit_ms"], 100.0);
    // A treatment's percentiles count the skipped ones too.
    let treatment = &report["treatments"][0]["percentiles"];
    assert_eq!(treatment["p50_ms"], bench["response_ms"]["p50"], "{treatment}");
    let all = format!("{shown}{report}{}", home.run(&["list", "--json"]).fine().out);
    assert!(!all.contains(password.trim()), "a password is shown");
    let store = fs::read(home.file("data/results.sqlite")).expect("a store");
    let text = String::from_utf8_lossy(&store);
    assert!(!text.contains(password.trim()), "a password is stored");
}

/// A store that cannot be written is found before the load.
#[test]
fn store_that_cannot_be_is_refused_before_the_load() {
    let home = Home::new();
    home.sandbox("x", &[]);
    let said: Said = home.run(&["bench", "sandbox:x", "-w", "simple", "--store=/proc/no/store"]);
    said.fails(1, &["/proc/no/store"]);
}

/// A load that does not start has ended in order, and a number of clients is stored once.
#[test]
fn load_that_does_not_start_is_stored_as_interrupted() {
    let home = Home::new();
    home.sandbox("x", &[]);
    home.run(&["bench", "sandbox:x", "-w", "tpcc", "--store"])
        .fails(1, &["no data of the set tpcc"]);
    let list = home.run(&["list"]).fine().out;
    assert!(list.contains("interrupted"), "{list}");
    home.run(&["bench", "sandbox:x", "-w", "simple", "-c", "2,2", "--store"])
        .fails(2, &["--clients names 2 twice"]);
}
