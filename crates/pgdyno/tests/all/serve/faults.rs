//! What goes wrong, and values that nobody expects: reported, and survived.

use super::{SECOND, experiment, fill, open, store_of, trial};
use common::openmetrics::parsed;
use common::web::Web;
use common::{Home, until_is};
use pgdyno_record::{ExperimentStatus, SeriesRecord, TrialRecord};
use serde_json::{Value, json};
use std::fs;

/// What would be a script if a browser took it for one, and what a label of a metric must write
/// out.
const MARKUP: &str = "<script>alert('x')</script>\"\\\n";

/// Names, questions and targets are anybody's text.
#[test]
fn markup_in_names_stays_text() {
    let home = Home::new();
    let id = fill(&home, MARKUP, MARKUP);
    let web = Web::start(&home, &[]);
    let report = format!("/api/experiments/{id}/report");
    let paths = [
        "/",
        "/api/experiments",
        &report,
        "/api/targets",
        "/metrics",
        "/api/experiments?name=%3Cscript%3E",
    ];
    for path in paths.into_iter().chain([
        "/%3Cscript%3E",
        "/api/compare?a=%3Cscript%3E&b=1",
        "/api/experiments?status=%3Cb%3E",
    ]) {
        let reply = web.ask("GET", path, &[("Accept", "text/html")], "");
        let kind = reply.header("content-type");
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
        // Where a browser would read tags, there is none of the data's.
        if kind.starts_with("text/html") {
            assert!(
                !reply.text().contains("<script>alert"),
                "{path}: {}",
                reply.text()
            );
        } else {
            assert!(kind.starts_with("application/"), "{path}: {kind}");
        }
    }
    assert_eq!(web.json("/api/experiments")["experiments"][0]["name"], MARKUP);
    let metrics = web.get("/metrics").text();
    assert!(
        metrics.contains("experiment=\"<script>alert('x')</script>\\\"\\\\\\n\""),
        "{metrics}"
    );
    parsed(&metrics);
}

#[test]
fn a_store_that_cannot_be_read_is_reported() {
    let home = Home::on_disk();
    let web = Web::start(&home, &[]);
    let ask = || web.get("/api/experiments");
    ask().is_problem(503, &["there is no store of results", "pgdyno demo"]);
    assert!(!store_of(&home).exists());
    fill(&home, "memory", "sandbox a");
    assert_eq!(ask().status, 200);
    let whole = fs::read(store_of(&home)).expect("a file");
    let check = |bytes: &[u8], status: u16, texts: &[&str]| {
        fs::write(store_of(&home), bytes).expect("written");
        ask().is_problem(status, texts);
        web.get("/metrics").is_problem(status, texts);
        web.get("/api/experiments/1/live").is_problem(status, texts);
        assert_eq!(fs::read(store_of(&home)).expect("a file"), bytes);
    };
    check(&whole[..whole.len() / 2], 500, &["is truncated", "check-store"]);
    // SQLite's user_version and application_id.
    let with = |at: usize, number: u32| {
        let mut bytes = whole.clone();
        bytes[at..at + 4].copy_from_slice(&number.to_be_bytes());
        bytes
    };
    check(&with(60, 99), 500, &["schema 99", "newer pgdyno"]);
    check(&with(60, 1), 500, &["schema 1", "earlier pgdyno", "pgdyno list"]);
    check(b"", 503, &["there is no store of results"]);
    check(&with(68, 1), 500, &["another program", "--store"]);
    check(
        b"this is not a database, whatever its length may be, is it?",
        500,
        &["could not be"],
    );
    fs::write(store_of(&home), &whole).expect("written");
    assert_eq!(ask().status, 200);
    let file = fs::OpenOptions::new()
        .write(true)
        .open(store_of(&home))
        .expect("a file");
    rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::LockExclusive).expect("locked");
    ask().is_problem(503, &["is locked by another process"]);
    drop(file);
    assert_eq!(ask().status, 200);
}

#[test]
fn absurd_values_are_answered() {
    let home = Home::new();
    let mut store = open(&home);
    let none = SeriesRecord::default();
    let empty = store.begin(&experiment("empty", "sandbox a")).expect("begun");
    let single = store.begin(&experiment("single", "sandbox a")).expect("begun");
    store
        .add_trial(single, &trial(1, "reference", 1e308), &none)
        .expect("stored");
    let odd = store.begin(&experiment("odd", "sandbox a")).expect("begun");
    for (block, tps) in [(1, f64::NAN), (2, 0.0), (3, -1.0), (4, f64::MAX)] {
        store
            .add_trial(odd, &trial(block, "reference", 1.0).clone_with(tps), &none)
            .expect("stored");
        store
            .add_trial(
                odd,
                &trial(block, SECOND, 1.0).clone_with(f64::MIN_POSITIVE),
                &none,
            )
            .expect("stored");
    }
    // A length that is not a number cannot be read back.
    let broken = store.begin(&experiment("broken", "sandbox b")).expect("begun");
    let mut record = trial(1, "reference", 1.0);
    record.measured_s = f64::NAN;
    store.add_trial(broken, &record, &none).expect("stored");
    for id in [empty, single, odd, broken] {
        store
            .set_status(id, ExperimentStatus::Interrupted)
            .expect("ended");
    }
    let web = Web::start(&home, &[]);
    let rows = web.json("/api/experiments");
    assert_eq!(rows["experiments"].as_array().map(Vec::len), Some(4));
    assert_eq!(rows["experiments"][0]["answer"], Value::Null);
    for id in [empty, single, odd] {
        web.json(&format!("/api/experiments/{id}/report"));
        let mut events = web.events(&format!("/api/experiments/{id}/live"), &[]);
        assert_eq!(events.until("end"), json!({"status": "interrupted"}));
    }
    web.get(&format!("/api/experiments/{broken}/report"))
        .is_problem(500, &["cannot be read", "check-store"]);
    let metrics = web.get("/metrics");
    assert_eq!(metrics.status, 200);
    let samples = parsed(&metrics.text());
    assert!(samples.iter().all(|(_, value)| value.is_finite()));
    web.json("/api/targets");
    web.get("/api/experiments/99999999999999999999/report")
        .is_problem(404, &["number"]);
    web.get("/api/experiments/-1/report").is_problem(404, &["-1"]);
}

trait With {
    fn clone_with(self, tps: f64) -> TrialRecord;
}

impl With for TrialRecord {
    fn clone_with(mut self, tps: f64) -> TrialRecord {
        self.tps = Some(tps);
        self
    }
}

/// Requests that are no requests, and many that are cut.
#[test]
fn broken_requests_are_survived() {
    use std::io::Write;
    let home = Home::new();
    fill(&home, "memory", "sandbox a");
    let web = Web::start(&home, &[]);
    for bytes in [
        &b"GET"[..],
        b"\x00\xff\x16\x03\x01 HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost",
        b"POST /api/experiments/1/notes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nx",
    ] {
        let mut stream = std::net::TcpStream::connect(&web.address).expect("it listens");
        stream.write_all(bytes).expect("sent");
    }
    let long = format!("/api/experiments?name={}", "x".repeat(20_000));
    assert_eq!(web.get(&long).status, 200);
    let path = "/api/experiments/1/tags/%FF";
    web.ask("PUT", path, &[], "")
        .is_problem(400, &["cannot be understood"]);
    until_is("an answer", 200, || web.get("/api/experiments").status);
}
