//! `pgdyno serve` on stores that are filled by hand: who is let in, what is answered, and what goes
//! wrong. No knob.

mod changes;
mod database;
mod door;
mod faults;
mod live;

use common::openmetrics::{Sample, parsed};
use common::web::Web;
use common::{CORES, Home};
use pgdyno_record::{ColumnRecord, ExperimentRecord, ExperimentStatus, SeriesRecord, TrialRecord};
use pgdyno_store::Store;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::path::PathBuf;

const TEXT: &str = "the disk was <b>slow</b>,\n\"very\"";
const SECOND: &str = "work_mem, 16 MB";

fn experiment(name: &str, target: &str) -> ExperimentRecord {
    let treatment =
        |name: &str| json!({"name": name, "title": name, "reason": null, "why_not": null, "settings": []});
    serde_json::from_value(json!({
        "name": name, "question": "What is memory worth?", "design": "one-at-a-time", "blocks": 4, "seed": 1,
        "confidence": 0.95, "smallest_effect": 0.02,
        "workload": {"name": "write", "scale": 1, "clients": 10_000, "threads": 1, "warmup_s": 2.0, "measure_s": 12.0},
        "treatments": [treatment("reference"), treatment(SECOND)],
        "facts": [{"group": "host", "name": "cpu.online_count", "value": 8, "missing": null, "source": "/sys"}],
        "file": "", "repeat": [], "target": target,
    }))
    .expect("a record")
}

fn trial(block: u32, treatment: &str, tps: f64) -> TrialRecord {
    serde_json::from_value(json!({
        "block": block, "position": 1, "treatment": treatment, "status": "finished", "reason": null,
        "started_unix_ms": 1_700_000_000_000_u64, "effective": [], "tps": tps, "committed": 100, "failed": 0, "errors": [],
        "percentiles": {"p50_ms": 1.0, "p95_ms": 2.0, "p99_ms": 3.0, "max_ms": 4.0}, "histogram": null,
        "distribution": [], "steadiness": null, "stability_cv": null, "warmup_s": 2.0, "measured_s": 12.0,
        "client_cpu_us_per_tx": null, "server_cpu_us_per_tx": null, "wal_bytes_per_tx": null, "cross_check": null,
        "disturbances": [], "seconds": [],
    }))
    .expect("a record")
}

fn store_of(home: &Home) -> PathBuf {
    home.file("data/results.sqlite")
}

fn open(home: &Home) -> Store {
    Store::open(&store_of(home)).expect("a store")
}

/// A finished experiment with two blocks of two treatments.
fn fill(home: &Home, name: &str, target: &str) -> i64 {
    let mut store = open(home);
    let id = store.begin(&experiment(name, target)).expect("begun");
    let series = SeriesRecord {
        columns: vec![ColumnRecord {
            metric: "cpu.idle_ratio".into(),
            label: "all".into(),
            at_ms: vec![1000, 2000],
            values: vec![0.25, f64::NAN],
        }],
        gaps: Vec::new(),
    };
    for block in 1..=2 {
        for (treatment, tps) in [("reference", 1000.0), (SECOND, 1200.0)] {
            let record = trial(block, treatment, tps + f64::from(block));
            store.add_trial(id, &record, &series).expect("stored");
        }
    }
    store.set_status(id, ExperimentStatus::Finished).expect("ended");
    id
}

/// A ladder over CPUs; its number.
fn fill_ladder(home: &Home) -> i64 {
    let mut store = open(home);
    let mut record = experiment("cores", "sandbox a");
    record.file = CORES.to_owned();
    record.treatments = ["1", "2", "4", "8"]
        .map(|cpus| {
            serde_json::from_value(json!({
                "name": cpus, "title": cpus, "reason": null, "why_not": null, "settings": [],
                "levels": [["cores", cpus], ["clients", "4"]],
            }))
            .expect("a record")
        })
        .to_vec();
    let id = store.begin(&record).expect("begun");
    for (cpus, tps) in [("1", 500.0), ("2", 980.0), ("4", 1890.0), ("8", 3510.0)] {
        store
            .add_trial(id, &trial(1, cpus, tps), &SeriesRecord::default())
            .expect("stored");
    }
    store.set_status(id, ExperimentStatus::Finished).expect("ended");
    id
}

fn stop(web: &Web) {
    let pid = Pid::from_raw(i32::try_from(web.pid()).expect("a pid")).expect("a pid");
    kill_process(pid, Signal::TERM).expect("sent");
}

#[test]
fn the_page_is_a_shell_and_its_files() {
    let home = Home::new();
    fill(&home, "memory", "sandbox a");
    let web = Web::start(&home, &[]);
    let page = web.ask("GET", "/", &[("Accept", "text/html")], "");
    if page.status == 503 {
        // Built without Node.
        assert!(page.text().contains("make build"), "{}", page.text());
        web.get("/app.js")
            .is_problem(503, &["without its web page", "make build"]);
        return;
    }
    let text = page.text();
    assert!(
        text.contains("<meta name=\"pgdyno-mode\" content=\"serve\">"),
        "{text}"
    );
    assert!(
        !text.contains("<style") && !text.contains("<script>") && !text.contains("memory"),
        "{text}"
    );
    for (path, kind) in [
        ("/app.css", "text/css; charset=utf-8"),
        ("/app.js", "text/javascript; charset=utf-8"),
        ("/early.js", "text/javascript; charset=utf-8"),
    ] {
        let whole = web.get(path);
        assert_eq!((whole.status, whole.header("content-type")), (200, kind));
        let tag = whole.header("etag").to_owned();
        let known = web.ask("GET", path, &[("If-None-Match", &tag)], "");
        assert_eq!((known.status, known.body.len()), (304, 0));
        let other = web.ask(
            "GET",
            path,
            &[("If-None-Match", "W/\"other\""), ("Accept-Encoding", "br, gzip")],
            "",
        );
        assert_eq!((other.status, other.header("content-encoding")), (200, "gzip"));
        assert!(other.body.len() < whole.body.len());
    }
}

#[test]
fn experiments_are_listed_and_found() {
    let home = Home::new();
    fill(&home, "memory", "sandbox a");
    fill(&home, "wal", "sandbox b");
    open(&home).tag(2, "nightly").expect("tagged");
    let web = Web::start(&home, &[]);
    let check = |query: &str, expected: &[i64]| {
        let found = web.json(&format!("/api/experiments{query}"));
        let rows = found["experiments"].as_array().expect("rows");
        let ids: Vec<_> = rows.iter().filter_map(|row| row["id"].as_i64()).collect();
        assert_eq!(ids, expected, "{query}");
    };
    check("", &[2, 1]);
    check("?tag=nightly&name=", &[2]);
    check("?tag=nightly&tag=other", &[]);
    check("?name=MEM", &[1]);
    check("?search=sandbox+b", &[2]);
    check("?status=finished&since=2020-01-01", &[2, 1]);
    check("?status=running%20or%20killed", &[]);
    check("?since=99999999999999", &[]);
    web.get("/api/experiments?status=dead")
        .is_problem(400, &["status", "killed"]);
    web.get("/api/experiments?nmae=x").is_problem(400, &["nmae"]);
    web.get("/api/experiments?since=2026")
        .is_problem(400, &["since", "12 digits"]);
    web.get("/api/experiments?since=2026-11-01T08:00:00")
        .is_problem(400, &["since", "with its zone"]);
    let row = &web.json("/api/experiments")["experiments"][0];
    assert_eq!(row["status"], "finished");
    assert_eq!(
        (
            &row["trials_finished"],
            &row["trials_failed"],
            &row["trials_planned"]
        ),
        (&json!(4), &json!(0), &json!(8))
    );
    assert_eq!(
        (&row["tags"], &row["notes"], &row["target"]),
        (&json!(["nightly"]), &json!(0), &json!("sandbox b"))
    );
    assert!(
        row["answer"].as_str().is_some_and(|answer| !answer.is_empty()),
        "{row}"
    );
}

#[test]
fn reports_trials_comparisons_and_targets_are_those_of_the_commands() {
    let home = Home::new();
    let id = fill(&home, "memory", "sandbox a");
    let web = Web::start(&home, &[]);
    let mut served = web.json(&format!("/api/experiments/{id}/report"));
    let mut printed = home.run(&["report", "1", "--format", "json"]).fine().json();
    for report in [&mut served, &mut printed] {
        report["generated_unix_ms"] = Value::Null;
    }
    assert_eq!(served, printed);
    let served = web.json("/api/compare?a=1:reference&b=1:work_mem,+16+MB&metric=tps");
    let printed = home
        .run(&[
            "compare",
            "1:reference",
            "1:work_mem, 16 MB",
            "--metric",
            "tps",
            "--json",
        ])
        .fine()
        .json();
    assert_eq!(served, printed);
    web.get("/api/compare?a=1").is_problem(400, &["b is missing"]);
    web.get("/api/compare?a=1&b=x")
        .is_problem(400, &["names no experiment"]);
    web.get("/api/compare?a=1&b=9")
        .is_problem(404, &["there is no experiment 9"]);
    web.get("/api/compare?a=1&b=1:none").is_problem(400, &["none"]);

    let document = web.json("/api/experiments/1/trials/2");
    assert_eq!(
        (&document["format"], &document["trial"]["id"]),
        (&json!("pgdyno-trial/1"), &json!(2))
    );
    web.get("/api/experiments/1/trials/9")
        .is_problem(404, &["no trial 9"]);
    web.get("/api/experiments/1/trials/x").is_problem(404, &["trial"]);
    web.get("/api/experiments/9/report")
        .is_problem(404, &["there is no experiment 9"]);
    let zipped = web.ask(
        "GET",
        "/api/experiments/1/report",
        &[("Accept-Encoding", "gzip")],
        "",
    );
    assert_eq!((zipped.status, zipped.header("content-encoding")), (200, "gzip"));

    let targets = web.json("/api/targets");
    let target = &targets["targets"][0];
    assert_eq!(
        (&target["name"], &target["experiments"]),
        (&json!("sandbox a"), &json!([1]))
    );
    assert_eq!(
        (&target["changed"], &target["facts"][0]["value"]),
        (&json!([]), &json!(8))
    );
    assert_eq!(target["advice"]["format"], "pgdyno-advice/1");
}

#[test]
fn tags_and_notes_are_written_and_nothing_else() {
    let home = Home::new();
    fill(&home, "memory", "sandbox a");
    let web = Web::start(&home, &[]);
    let kind = [("Content-Type", "application/json; charset=utf-8")];
    let notes = "/api/experiments/1/notes";
    let body = json!({"text": TEXT}).to_string();
    let added = web.ask("POST", notes, &kind, &body);
    assert_eq!(added.status, 201, "{}", added.text());
    assert_eq!(added.json()["text"], TEXT);
    assert_eq!(web.json(notes)["notes"][0], added.json());
    let printed = home.run(&["note", "1"]).fine().out;
    assert!(
        printed.starts_with("1  ") && printed.contains("<b>slow</b>"),
        "{printed}"
    );
    for (more, body, status, word) in [
        (&kind[..], "{\"text\": \" \"}", 400, "empty"),
        (&kind[..], "{\"txt\": \"x\"}", 400, "text"),
        (&kind[..], "{", 400, "expected"),
        (
            &[("Content-Type", "text/plain")][..],
            "{\"text\": \"x\"}",
            415,
            "application/json",
        ),
        (&[][..], "{\"text\": \"x\"}", 415, "application/json"),
    ] {
        web.ask("POST", notes, more, body).is_problem(status, &[word]);
    }
    let long = json!({"text": "ü".repeat(10_001)}).to_string();
    web.ask("POST", notes, &kind, &long)
        .is_problem(400, &["10001", "10000"]);
    let far = json!({"text": "x".repeat(300_000)}).to_string();
    web.ask("POST", notes, &kind, &far)
        .is_problem(413, &["262144 bytes"]);
    web.ask("POST", "/api/experiments/9/notes", &kind, &body)
        .is_problem(404, &["9"]);
    assert_eq!(web.ask("DELETE", &format!("{notes}/1"), &[], "").status, 204);
    web.ask("DELETE", &format!("{notes}/1"), &[], "")
        .is_problem(404, &["no note 1"]);
    assert_eq!(web.json(notes)["notes"], json!([]));

    let tag = |method: &str, word: &str| web.ask(method, &format!("/api/experiments/1/tags/{word}"), &[], "");
    assert_eq!(
        (tag("PUT", "nightly").status, tag("PUT", "nightly").status),
        (204, 204)
    );
    assert_eq!(home.run(&["tag", "1"]).fine().out, "nightly\n");
    assert_eq!(web.json("/api/experiments/1/tags"), json!({"tags": ["nightly"]}));
    web.ask("GET", "/api/experiments/9/tags", &[], "")
        .is_problem(404, &["9"]);
    tag("PUT", "two%20words").is_problem(400, &["is not a tag"]);
    tag("PUT", "%3Cb%3E").is_problem(400, &["is not a tag"]);
    assert_eq!(
        (tag("DELETE", "nightly").status, tag("DELETE", "nightly").status),
        (204, 204)
    );
    assert_eq!(home.run(&["tag", "1"]).fine().out, "");
    for (method, path) in [
        ("DELETE", "/api/experiments/1"),
        ("POST", "/api/experiments"),
        ("PUT", "/api/experiments/1/report"),
    ] {
        let status = web.ask(method, path, &[], "").status;
        assert!(status == 404 || status == 405, "{method} {path}: {status}");
    }
}

#[test]
fn a_note_is_removed_on_the_command_line_too() {
    let home = Home::new();
    fill(&home, "memory", "sandbox a");
    home.run(&["note", "1", "one"]).fine();
    home.run(&["note", "1", "two"]).fine();
    home.run(&["note", "1", "--remove", "1"]).fine();
    let left = home.run(&["note", "1"]).fine().out;
    assert!(left.starts_with("2  ") && left.ends_with("two\n"), "{left}");
    home.run(&["note", "1", "--remove", "1"])
        .fails(2, &["has no note 1"]);
    home.run(&["note", "1", "three", "--remove", "1"])
        .fails(2, &["--remove"]);
}

/// Each operation that is described answers, and answers as described.
#[test]
fn the_description_is_true() {
    let home = Home::new();
    fill(&home, "memory", "sandbox a");
    let ladder = fill_ladder(&home);
    home.run(&["note", "1", "x"]).fine();
    let web = Web::start(&home, &[]);
    let document = web.json("/api/openapi.json");
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().expect("paths");
    assert!(paths.len() > 10);
    for (path, operations) in paths {
        for (method, operation) in operations.as_object().expect("operations") {
            let mut address = path
                .replace(
                    "{id}",
                    &if path.ends_with("/capacity") { ladder } else { 1 }.to_string(),
                )
                .replace("{trial}", "2")
                .replace("{note}", "1")
                .replace("{word}", "nightly");
            if path == "/api/compare" {
                address += "?a=1:reference&b=1:work_mem,+16+MB";
            }
            let has_body = operation.get("requestBody").is_some();
            let kind = [("Content-Type", "application/json")];
            let (more, body) = match has_body {
                true => (&kind[..], "{\"text\": \"y\"}"),
                false => (&[][..], ""),
            };
            let reply = web.ask(&method.to_uppercase(), &address, more, body);
            if reply.status == 503 && !path.starts_with("/api") {
                // Built without Node.
                continue;
            }
            let response = &operation["responses"][reply.status.to_string()];
            assert!(
                response.is_object(),
                "{method} {path}: {} {}",
                reply.status,
                reply.text()
            );
            let kinds = response["content"].as_object();
            let kind = reply.header("content-type");
            match kinds.and_then(|kinds| kinds.keys().next()) {
                Some(expected) => assert!(kind.starts_with(expected.as_str()), "{method} {path}: {kind}"),
                None => assert!(reply.body.is_empty(), "{method} {path}: {}", reply.text()),
            }
        }
    }
}

#[test]
fn metrics_show_the_latest_results() {
    let home = Home::new();
    fill(&home, "memory", "sandbox a");
    fill(&home, "memory", "sandbox a");
    fill(&home, "memory", "sandbox b");
    let web = Web::start(&home, &[]);
    let reply = web.get("/metrics");
    assert_eq!(
        reply.header("content-type"),
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    let samples = parsed(&reply.text());
    let check = |name: &str, labels: &[(&str, &str)], expected: &[f64]| {
        let fits = |sample: &&(Sample, f64)| {
            let of = |wanted: &(&str, &str)| {
                sample
                    .0
                    .labels
                    .iter()
                    .any(|(l, v)| (l.as_str(), v.as_str()) == *wanted)
            };
            sample.0.name == name && labels.iter().all(of)
        };
        let found: Vec<f64> = samples.iter().filter(fits).map(|(_, value)| *value).collect();
        assert_eq!(found, expected, "{name} {labels:?}");
    };
    let of_a = ("target", "sandbox a");
    check("pgdyno_experiments", &[("status", "finished")], &[3.0]);
    check("pgdyno_experiment_info", &[of_a, ("id", "2")], &[1.0]);
    check("pgdyno_experiment_info", &[("id", "1")], &[]);
    check("pgdyno_tps", &[of_a, ("treatment", "reference")], &[1001.5]);
    check(
        "pgdyno_response_p99_seconds",
        &[of_a, ("treatment", SECOND)],
        &[0.003],
    );
    check(
        "pgdyno_trials",
        &[of_a, ("treatment", SECOND), ("outcome", "finished")],
        &[2.0],
    );
    check("pgdyno_verdict", &[of_a, ("pgdyno_verdict", "better")], &[1.0]);
    check("pgdyno_verdict", &[of_a, ("pgdyno_verdict", "same")], &[0.0]);
    let ratio = samples
        .iter()
        .find(|(sample, _)| sample.name == "pgdyno_effect_ratio")
        .expect("an effect");
    assert!((ratio.1 - 1.2).abs() < 0.01, "{}", ratio.1);
}
