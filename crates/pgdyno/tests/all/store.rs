//! The store's care and its ways out on the command line, on stores that are filled by hand: no
//! server, no knob.

use common::Home;
use pgdyno_engine::hdrhistogram::Histogram;
use pgdyno_engine::hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use pgdyno_engine::hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use pgdyno_record::{ColumnRecord, ExperimentRecord, ExperimentStatus, SeriesRecord, TrialRecord};
use pgdyno_store::Store;
use serde_json::json;
use std::fs;
use std::path::Path;

fn experiment(name: &str) -> ExperimentRecord {
    let treatment =
        |name: &str| json!({"name": name, "title": name, "reason": null, "why_not": null, "settings": []});
    serde_json::from_value(json!({
        "name": name, "question": "What is memory worth?", "design": "one-at-a-time", "blocks": 4, "seed": 1,
        "confidence": 0.95, "smallest_effect": 0.02,
        "workload": {"name": "write", "scale": 1, "clients": 8, "threads": 1, "warmup_s": 2.0, "measure_s": 12.0},
        "treatments": [treatment("reference"), treatment("work_mem, 16 MB")], "facts": [], "file": "", "repeat": [],
        "target": "sandbox a",
    }))
    .expect("a record")
}

/// HdrHistogram's text of one response of 5 ms.
fn histogram() -> String {
    let mut histogram = Histogram::<u64>::new(3).expect("a histogram");
    histogram.record(5_000_000).expect("recorded");
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(&histogram, &mut bytes)
        .expect("written");
    encode(&bytes)
}

/// Base64 (RFC 4648).
fn encode(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let at = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for i in 0..4_u32 {
            let letter = LETTERS[usize::try_from(bits >> (18 - 6 * i) & 63).expect("small")];
            let there = usize::try_from(i).expect("small") <= chunk.len();
            text.push(if there { char::from(letter) } else { '=' });
        }
    }
    text
}

fn trial(block: u32, treatment: &str, tps: f64, started_unix_ms: u64) -> TrialRecord {
    serde_json::from_value(json!({
        "block": block, "position": 1, "treatment": treatment, "status": "finished", "reason": null,
        "started_unix_ms": started_unix_ms, "effective": [], "tps": tps, "committed": 100, "failed": 0, "errors": [],
        "percentiles": {"p50_ms": 1.0, "p95_ms": 2.0, "p99_ms": 3.0, "max_ms": 4.0}, "histogram": histogram(),
        "distribution": [], "steadiness": null, "stability_cv": null, "warmup_s": 2.0, "measured_s": 12.0,
        "client_cpu_us_per_tx": null, "server_cpu_us_per_tx": null, "wal_bytes_per_tx": null, "cross_check": null,
        "disturbances": [], "seconds": [],
    }))
    .expect("a record")
}

/// An experiment with two blocks of two treatments, and series beside each trial.
fn fill(path: &Path, name: &str) -> i64 {
    let mut store = Store::open(path).expect("a store");
    let id = store.begin(&experiment(name)).expect("begun");
    let series = SeriesRecord {
        columns: vec![ColumnRecord {
            metric: "disk.busy_ratio".into(),
            label: "sda, \"fast\"".into(),
            at_ms: vec![1000, 2000],
            values: vec![0.25, f64::NAN],
        }],
        gaps: Vec::new(),
    };
    for block in 1..=2 {
        for (at, treatment) in ["reference", "work_mem, 16 MB"].into_iter().enumerate() {
            let at = u64::try_from(at).expect("small");
            let started = 1_700_000_000_000 + u64::from(block) * 60_000 + at * 20_000;
            let record = trial(block, treatment, 1000.0 + f64::from(block), started);
            store.add_trial(id, &record, &series).expect("stored");
        }
    }
    store.set_status(id, ExperimentStatus::Finished).expect("ended");
    id
}

fn filled(home: &Home, names: &[&str]) {
    for name in names {
        fill(&home.file("data/results.sqlite"), name);
    }
}

#[test]
fn tags_and_notes_find_experiments() {
    let home = Home::new();
    filled(&home, &["memory", "wal"]);
    home.run(&["tag", "2", "add", "nightly", "v1.2"]).fine();
    assert_eq!(home.run(&["tag", "2"]).fine().out, "nightly\nv1.2\n");
    home.run(&["tag", "2", "remove", "v1.2"]).fine();
    home.run(&["tag", "2", "add", "two words"])
        .fails(2, &["is not a tag", "40"]);
    home.run(&["tag", "9", "add", "x"])
        .fails(1, &["there is no experiment 9"]);
    home.run(&["note", "1", "the disk was slow\u{1b}[2J"]).fine();
    let note = home.run(&["note", "1"]).fine().out;
    assert!(note.contains("the disk was slow\\u{1b}[2J"), "{note}");
    home.run(&["note", "1", &"x".repeat(10_001)])
        .fails(2, &["10001", "10000"]);
    let check = |more: &[&str], expected: &[i64]| {
        let found = home.run(&[&["list", "--json"], more].concat()).fine().json();
        let ids: Vec<_> = found
            .as_array()
            .expect("rows")
            .iter()
            .filter_map(|row| row["id"].as_i64())
            .collect();
        assert_eq!(ids, expected, "{more:?}");
    };
    check(&[], &[2, 1]);
    check(&["--tag", "nightly"], &[2]);
    check(&["--name", "MEM"], &[1]);
    check(&["--search", "disk was"], &[1]);
    check(&["--status", "finished", "--since", "2020-01-01"], &[2, 1]);
    check(&["--status", "interrupted"], &[]);
    check(&["--since", "2199-01-01"], &[]);
    home.run(&["list", "--since", "soon"]).fails(2, &["2026-11-01"]);
    let table = home.run(&["list"]).fine().out;
    assert!(table.contains("tags") && table.contains("nightly"), "{table}");
    let shown = home.run(&["show", "2"]).fine().out;
    assert!(shown.contains("tags: nightly"), "{shown}");
}

#[test]
fn old_experiments_are_pruned() {
    let home = Home::new();
    filled(&home, &["a", "b", "c"]);
    home.run(&["prune"]).fails(2, &["--keep"]);
    home.run(&["tag", "1", "add", "kept"]).fine();
    let said = home.run(&["prune", "--keep", "1", "--dry-run"]).fine();
    assert!(
        said.err.contains("would be removed: experiments 1, trials 4"),
        "{}",
        said.err
    );
    assert!(said.err.contains("kept for their tags: 1"), "{}", said.err);
    let said = home.run(&["prune", "--keep", "1", "--json"]).fine().json();
    assert_eq!(
        (&said["removed"][0]["id"], &said["kept_by_tag"][0]),
        (&json!(2), &json!(1))
    );
    assert!(said["file_bytes_after"].as_u64() <= said["file_bytes_before"].as_u64());
    home.run(&["prune", "--older-than", "90d"]).fine();
    assert_eq!(
        home.run(&["list", "--json"]).json().as_array().map(Vec::len),
        Some(2)
    );
    home.run(&["prune", "--keep", "0", "--tag-kept", "other"]).fine();
    assert_eq!(home.run(&["list", "--json"]).json(), json!([]));
}

#[test]
fn another_store_is_imported_and_checked() {
    let home = Home::new();
    filled(&home, &["mine"]);
    let other = home.file("other.sqlite");
    fill(&other, "theirs");
    let before = fs::read(&other).expect("a file");
    let path = other.to_string_lossy().into_owned();
    let check = |outcome: &str| {
        let said = home.run(&["import", &path, "--json"]).fine().json();
        assert_eq!(
            (&said[0]["outcome"], &said[0]["id"]),
            (&json!(outcome), &json!(2))
        );
    };
    check("added");
    check("here");
    assert_eq!(fs::read(&other).expect("a file"), before);
    home.run(&["import", "/nowhere.sqlite"])
        .fails(1, &["there is no store of results at /nowhere.sqlite"]);
    let said = home.run(&["check-store"]).fine();
    assert!(
        said.err
            .contains("experiments 2, trials 8, series 8 with 16 points; all holds"),
        "{}",
        said.err
    );
    fs::write(&other, &before[..before.len() / 2]).expect("written");
    home.run(&["check-store", &path]).fails(1, &["is truncated"]);
    home.run(&["import", &path]).fails(1, &["is truncated"]);
    // A page of the middle is noise.
    let mut noise = before.clone();
    let middle = noise.len() / 2 / 4096 * 4096;
    noise[middle..middle + 4096].fill(0xa5);
    fs::write(&other, noise).expect("written");
    let said = home.run(&["check-store", &path, "--json"]);
    assert_eq!(
        (said.code, &said.json()["holds"]),
        (3, &json!(false)),
        "{}",
        said.err
    );
}

#[test]
fn what_is_stored_is_handed_on() {
    let home = Home::new();
    filled(&home, &["nightly", "nightly"]);
    let export = |more: &[&str]| home.run(&[&["export"], more].concat()).fine().out;
    assert!(export(&["1", "--format", "csv"]).starts_with("experiment,trial,"));
    let series = export(&["1", "--format", "csv", "--series"]);
    let lines: Vec<_> = series.split("\r\n").collect();
    assert_eq!(lines[0], "trial,metric,label,at_ms,value");
    assert_eq!(lines[1], "1,disk.busy_ratio,\"sda, \"\"fast\"\"\",1000,0.25");
    assert!(lines[2].ends_with(",2000,") && lines.len() == 10, "{series}");

    let value: serde_json::Value = serde_json::from_str(&export(&["1", "--format", "json"])).expect("JSON");
    assert_eq!(value["format"], "pgdyno-report/1");
    assert_eq!(value["series"][3]["columns"][0]["values"], json!([0.25, null]));

    let otava = export(&[
        "--name",
        "nightly",
        "--format",
        "otava",
        "--treatment",
        "work_mem, 16 MB",
    ]);
    let lines: Vec<_> = otava.trim_end().split("\r\n").collect();
    assert!(
        lines[0].starts_with("time,experiment,trial,block,treatment,") && lines[0].contains("tps"),
        "{otava}"
    );
    assert!(
        lines[1].starts_with("2023-11-14 22:14:40 +0000,1,2,1,\"work_mem, 16 MB\","),
        "{otava}"
    );
    assert_eq!(lines.len(), 5);
    assert!(!otava.contains(",,") && !otava.contains(",\r"), "{otava}");

    let bench: serde_json::Value = serde_json::from_str(&export(&[
        "1",
        "--format",
        "postgresbench",
        "--treatment",
        "work_mem, 16 MB",
    ]))
    .expect("JSON");
    assert_eq!(
        (&bench["date"], &bench["tuned"]),
        (&json!("2023-11-14"), &json!("no"))
    );
    // Nothing says how its statements were sent: it has no file.
    assert_eq!(bench["benchmark"]["query_mode"], json!(null));
    let runs = bench["results"].as_array().expect("runs");
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[1]["run"], 2);
    assert!(runs.iter().all(|run| run["tps"].as_f64() > Some(0.0)), "{bench}");

    let bmf: serde_json::Value = serde_json::from_str(&export(&["1", "--format", "bmf"])).expect("JSON");
    assert!(bmf["nightly/reference"]["tps"]["value"].is_number(), "{bmf}");
    let all: serde_json::Value =
        serde_json::from_str(&export(&["1", "--format", "gh-benchmark"])).expect("JSON");
    assert_eq!(all[1]["name"], "nightly/work_mem, 16 MB");
    let junit = export(&["1", "--format", "junit"]);
    assert!(
        junit.starts_with("<?xml ") && junit.contains("<testsuite name=\"nightly\" tests=\"2\""),
        "{junit}"
    );

    let file = home.file("times.hlog");
    let path = file.to_string_lossy();
    home.run(&["export", "1", "--format", "hdr", "-o", &path]).fine();
    let log = fs::read(&file).expect("a log");
    let intervals: Vec<_> = IntervalLogIterator::new(&log)
        .filter_map(|entry| match entry.expect("readable") {
            LogEntry::Interval(interval) => Some((
                interval.tag().map(|tag| tag.as_str().to_owned()),
                interval.start_timestamp().as_secs(),
                interval.duration().as_secs(),
                interval.max().round() == 5.0,
            )),
            _ => None,
        })
        .collect();
    let expected = |tag: &str, at: u64| (Some(tag.to_owned()), at, 12, true);
    assert_eq!(
        intervals,
        [
            expected("reference", 0),
            expected("work_mem__16_MB", 20),
            expected("reference", 60),
            expected("work_mem__16_MB", 80)
        ]
    );
    for more in [
        &["1", "2"][..],
        &["1", "--series"],
        &["--name", "nightly", "--series"],
    ] {
        let file = home.file("out.parquet");
        let path = file.to_string_lossy();
        home.run(&[&["export", "--format", "parquet", "-o", &path], more].concat())
            .fine();
        let bytes = fs::read(&file).expect("a file");
        // What is in it is read back by the report's own tests.
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{more:?}");
    }
    home.run(&["export", "1", "--format", "json", "--series"])
        .fails(2, &["csv and parquet"]);
    home.run(&["export", "1", "2", "--format", "csv"])
        .fails(2, &["otava"]);
    home.run(&["export", "9", "--format", "csv"])
        .fails(2, &["there is no experiment 9"]);
    home.run(&["export", "1", "--format", "otava", "--treatment", "x"])
        .fails(2, &["no experiment"]);
}

/// The same commands with a store in PostgreSQL, which is asked for a password.
#[test]
fn a_store_in_postgresql_is_used_like_a_file() {
    let home = Home::new();
    let initdb = common::system_program("initdb");
    let bin = initdb.parent().expect("a directory").to_string_lossy();
    home.run(&["sandbox", "create", "lab", "--pg-bin", &bin]).fine();
    home.ask("lab", "CREATE ROLE ann LOGIN PASSWORD 'not-to-be-shown'");
    home.ask("lab", "CREATE DATABASE team OWNER ann");
    let port = home.record("lab")["port"].as_u64().expect("a port");
    let url = format!("postgres://ann:not-to-be-shown@127.0.0.1:{port}/team?sslmode=disable");
    let name = format!("postgres://ann@127.0.0.1:{port}/team");
    filled(&home, &["memory", "wal"]);
    let file = home.file("data/results.sqlite");
    let file = file.to_string_lossy();

    home.run(&["show", "--store", &url])
        .fails(2, &["there is no store of results", &name]);
    let said = home
        .run(&["import", &file, "--store", &url, "--json"])
        .fine()
        .json();
    assert_eq!(
        (&said[0]["outcome"], &said[1]["trials"]),
        (&json!("added"), &json!(4))
    );
    let both = |arguments: &[&str]| {
        let here = home.run(arguments).fine();
        let there = home.run(&[arguments, &["--store", &url]].concat()).fine();
        assert_eq!(here.out, there.out, "{arguments:?}");
        assert!(
            !there.err.contains("not-to-be-shown") && !there.out.contains("not-to-be-shown"),
            "{arguments:?}"
        );
    };
    home.run(&["tag", "2", "add", "nightly", "--store", &url]).fine();
    home.run(&["tag", "2", "add", "nightly"]).fine();
    both(&["list"]);
    both(&["list", "--tag", "nightly", "--json"]);
    both(&["export", "1", "--format", "csv"]);
    both(&["export", "2", "--format", "csv", "--series"]);
    both(&["compare", "1", "2"]);

    // By a variable, by key=value pairs, in another schema.
    let listed = |command: &mut std::process::Command| common::said(command.output().expect("it runs"));
    let said = listed(home.command(&["list"]).env("PGDYNO_STORE", &url)).fine();
    assert!(said.out.contains("nightly"), "{}", said.out);
    let pairs = format!("host=127.0.0.1 port={port} user=ann dbname=team sslmode=disable schema=other");
    let said = listed(
        home.command(&["list", "--store", &pairs])
            .env("PGPASSWORD", "not-to-be-shown"),
    );
    assert!(
        said.fine()
            .err
            .contains(&format!("no experiments in {name}?schema=other"))
    );

    let said = home.run(&["prune", "--keep", "0", "--store", &url]).fine();
    assert!(said.err.contains("autovacuum"), "{}", said.err);
    let said = home.run(&["check-store", &url]).fine();
    assert!(
        said.err.contains(&name)
            && said
                .err
                .contains("experiments 1, trials 4, series 4 with 8 points; all holds"),
        "{}",
        said.err
    );
    // And back.
    home.run(&["prune", "--keep", "0", "--tag-kept", "none"]).fine();
    home.run(&["import", &url]).fine();
    assert!(home.run(&["list"]).fine().out.contains("nightly"));

    // No error shows the password.
    let refused = |url: &str, code: i32, texts: &[&str]| {
        let said = home.run(&["list", "--store", url]).fails(code, texts);
        assert!(!said.err.contains("not-to-be-shown"), "{}", said.err);
    };
    refused(
        &url.replace("/team", "/none"),
        1,
        &["there is no such database", "hint:"],
    );
    refused(&url.replace("ann:", "bob:"), 1, &["refused the login", "hint:"]);
    refused(
        &url.replace("ann:not-to-be-shown@", "ann:x:not-to-be-shown@y@"),
        2,
        &["the connection string cannot be read"],
    );
    refused(
        &url.replace(&port.to_string(), "1"),
        1,
        &["could not be opened", "127.0.0.1:1"],
    );
    home.ask("lab", "ALTER ROLE ann SET default_transaction_read_only = on");
    refused(&url, 1, &["read-only", &name]);
    home.run(&["sandbox", "destroy", "lab"]).fine();
}
