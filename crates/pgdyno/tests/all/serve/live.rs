//! Experiments that are run while somebody looks on.

use super::{SECOND, experiment, open, stop, store_of, trial};
use common::openmetrics::parsed;
use common::web::Web;
use common::{Home, until_is};
use pgdyno_record::{ExperimentRecord, ExperimentStatus, ProgressRecord, SeriesRecord};
use pgdyno_store::Store;
use serde_json::{Value, json};
use std::fs;
use std::io::Read;

#[test]
fn an_experiment_streams_in_while_it_is_run() {
    let home = Home::new();
    let mut store = open(&home);
    // Of a fixed number of blocks nothing would be decided before the last.
    let record = ExperimentRecord {
        stop: "when-decided".into(),
        ..experiment("memory", "sandbox a")
    };
    let id = store.begin(&record).expect("begun");
    let none = SeriesRecord::default();
    let first = store
        .add_trial(id, &trial(1, "reference", 1000.0), &none)
        .expect("stored");
    let mut progress = ProgressRecord::begun(8, 0, 14.0, 1);
    progress.begin(SECOND, 1, "measuring");
    let place = store.progress_place().expect("a file");
    place.write(id, &progress).expect("written");

    let web = Web::start(&home, &[]);
    let path = format!("/api/experiments/{id}/live");
    let mut events = web.events(&path, &[]);
    let (name, data) = events.next().expect("an event");
    assert_eq!(name, "progress");
    assert_eq!(
        (&data["trials_finished"], &data["trials_planned"]),
        (&json!(1), &json!(8))
    );
    let current = json!({"treatment": SECOND, "block": 1, "phase": "measuring"});
    assert_eq!((&data["current"], &data["decided"]), (&current, &json!([])));
    assert!(
        data["left_s"].is_number() && data["elapsed_s"].is_number(),
        "{data}"
    );
    let running = web.get("/metrics").text();
    let now = format!("treatment=\"{SECOND}\",block=\"1\",phase=\"measuring\"}} 1");
    assert!(
        running.contains(&now) && running.contains("pgdyno_running_trials_finished{"),
        "{running}"
    );
    parsed(&running);

    // Another reader that goes without a word, and one that comes back.
    drop(web.events(&path, &[]));
    let mut back = web.events(&path, &[("Last-Event-ID", "0")]);
    assert_eq!(back.next(), Some(("trial".to_owned(), json!({"id": first}))));

    let appended = std::thread::spawn(move || {
        let mut numbers = Vec::new();
        for (block, treatment, tps) in [(1, SECOND, 1500.0), (2, "reference", 1001.0), (2, SECOND, 1502.0)] {
            let number = store.add_trial(id, &trial(block, treatment, tps), &none);
            numbers.push(number.expect("stored"));
        }
        (store, numbers)
    });
    let (mut store, numbers) = appended.join().expect("appended");
    for number in numbers {
        assert_eq!(events.until("trial"), json!({"id": number}));
    }
    let data = events.until("progress");
    assert_eq!(data["trials_finished"], 4);
    assert_eq!(
        data["decided"],
        json!([{"treatment": SECOND, "verdict": "better"}])
    );
    assert_eq!(
        web.json("/api/experiments")["experiments"][0]["answer"],
        Value::Null
    );
    store.set_status(id, ExperimentStatus::Finished).expect("ended");
    assert_eq!(events.until("end"), json!({"status": "finished"}));
    assert_eq!(events.next(), None);
    assert_eq!(back.until("end"), json!({"status": "finished"}));
    web.get("/api/experiments/9/live")
        .is_problem(404, &["there is no experiment 9"]);
}

#[test]
fn a_killed_experiment_ends_its_stream() {
    let home = Home::new();
    let mut store = open(&home);
    let id = store.begin(&experiment("memory", "sandbox a")).expect("begun");
    store
        .progress_place()
        .expect("a file")
        .write(id, &ProgressRecord::begun(8, 0, 14.0, 1))
        .expect("written");
    let web = Web::start(&home, &[]);
    let mut events = web.events(&format!("/api/experiments/{id}/live"), &[]);
    assert_eq!(events.next().expect("an event").1["trials_planned"], 8);
    // The lock goes with its process.
    drop(store);
    assert_eq!(events.until("end"), json!({"status": "killed"}));
}

#[test]
fn it_ends_in_order_with_a_stream_open() {
    let home = Home::new();
    let mut store = open(&home);
    let id = store.begin(&experiment("memory", "sandbox a")).expect("begun");
    let web = Web::start(&home, &[]);
    let mut events = web.events(&format!("/api/experiments/{id}/live"), &[]);
    assert!(events.next().is_some());
    stop(&web);
    while events.next().is_some() {}
    let (status, said) = web.ended();
    assert_eq!(status.code(), Some(0), "{said}");
}

/// What is said while it runs is not an answer of the killed one.
#[test]
fn a_killed_experiment_gets_its_answer() {
    let home = Home::new();
    let mut store = open(&home);
    let id = store.begin(&experiment("memory", "sandbox a")).expect("begun");
    let none = SeriesRecord::default();
    let add = |store: &mut Store, block: u32, treatment: &str, status: &str| {
        let mut record = serde_json::to_value(trial(block, treatment, 1000.0)).expect("JSON");
        record["status"] = json!(status);
        let record = serde_json::from_value(record).expect("a record");
        store.add_trial(id, &record, &none).expect("stored");
    };
    add(&mut store, 1, "reference", "finished");
    add(&mut store, 1, SECOND, "finished");
    let web = Web::start(&home, &[]);
    let row = || web.json("/api/experiments")["experiments"][0].clone();
    assert_eq!(
        (&row()["answer"], &row()["trials_failed"]),
        (&Value::Null, &json!(0))
    );
    add(&mut store, 2, SECOND, "failed");
    assert_eq!(row()["trials_failed"], 1);
    drop(store);
    let killed = row();
    assert_eq!(killed["status"], "killed");
    assert!(killed["answer"].is_string(), "{killed}");
    let metrics = web.get("/metrics").text();
    let failed = metrics
        .lines()
        .find(|line| line.starts_with("pgdyno_trials{") && line.contains("failed") && line.contains(SECOND));
    assert!(failed.is_some_and(|line| line.ends_with(" 1")), "{metrics}");
    let mut events = web.events(&format!("/api/experiments/{id}/live"), &[]);
    assert_eq!(events.until("progress")["elapsed_s"], Value::Null);
}

#[test]
fn who_is_cut_off_misses_no_trial() {
    let home = Home::new();
    let mut store = open(&home);
    let id = store.begin(&experiment("memory", "sandbox a")).expect("begun");
    let web = Web::start(&home, &[]);
    let path = format!("/api/experiments/{id}/live");
    let mut events = web.events(&path, &[]);
    assert_eq!(events.next().expect("an event").0, "progress");
    assert_eq!(events.id, "0");
    drop(events);
    let none = SeriesRecord::default();
    let mut add = |block| {
        let number = store.add_trial(id, &trial(block, "reference", 1000.0), &none);
        number.expect("stored")
    };
    let (first, second) = (add(1), add(2));
    let mut back = web.events(&path, &[("Last-Event-ID", "0")]);
    for number in [first, second] {
        assert_eq!(back.next(), Some(("trial".to_owned(), json!({"id": number}))));
    }
    // Nothing is said of how far it is; the plan is known all the same, in the stream as in the
    // metrics.
    let data = back.until("progress");
    assert_eq!(back.id, second.to_string());
    assert_eq!(
        (&data["trials_planned"], &data["left_s"]),
        (&json!(8), &Value::Null)
    );
    let metrics = web.get("/metrics").text();
    let planned = metrics
        .lines()
        .find(|line| line.starts_with("pgdyno_running_trials_planned{"));
    assert!(planned.is_some_and(|line| line.ends_with(" 8")), "{metrics}");
    // Servers are not asked meanwhile.
    let target = &web.json("/api/targets")["targets"][0];
    assert_eq!(
        (&target["name"], &target["changed"]),
        (&json!("sandbox a"), &Value::Null)
    );
}

#[test]
fn so_many_views_and_their_places_come_back() {
    let home = Home::new();
    let mut store = open(&home);
    let id = store.begin(&experiment("memory", "sandbox a")).expect("begun");
    let web = Web::start(&home, &[]);
    let path = format!("/api/experiments/{id}/live");
    let mut open: Vec<_> = (0..64).map(|_| web.events(&path, &[])).collect();
    web.get(&path).is_problem(503, &["live views"]);
    open.pop();
    let bearer = format!("Bearer {}", web.token);
    let headers = [("Host", web.address.as_str()), ("Authorization", &bearer)];
    until_is("a place", *b"HTTP/1.1 200", || {
        let mut start = [0; 12];
        let mut stream = web.send("GET", &path, &headers, "");
        stream.read_exact(&mut start).expect("an answer");
        start
    });
}

#[test]
fn a_store_that_goes_away_is_reported_to_the_reader() {
    let home = Home::new();
    let mut store = open(&home);
    let id = store.begin(&experiment("memory", "sandbox a")).expect("begun");
    let web = Web::start(&home, &[]);
    let mut events = web.events(&format!("/api/experiments/{id}/live"), &[]);
    assert_eq!(events.next().expect("an event").0, "progress");
    let away = home.file("away");
    fs::rename(store_of(&home), &away).expect("moved");
    let data = events.until("trouble");
    assert!(
        data["error"]
            .as_str()
            .is_some_and(|text| text.contains("there is no store")),
        "{data}"
    );
    fs::rename(&away, store_of(&home)).expect("moved back");
    events.until("progress");
}

/// One whose process cannot be looked for may still be run: no event says that it has ended.
#[test]
fn a_run_of_unknown_state_has_no_end() {
    let home = Home::new();
    let mut store = open(&home);
    let id = store.begin(&experiment("memory", "sandbox a")).expect("begun");
    drop(store);
    let mut lock = store_of(&home).into_os_string();
    lock.push(format!("-running-{id}"));
    fs::remove_file(&lock).expect("removed");
    std::os::unix::fs::symlink(home.file("nowhere"), &lock).expect("a link");
    let web = Web::start(&home, &[]);
    let row = &web.json("/api/experiments")["experiments"][0];
    assert_eq!(row["status"], "running or killed");
    let mut events = web.events(&format!("/api/experiments/{id}/live"), &[]);
    for _ in 0..3 {
        let (name, data) = events.next().expect("an event");
        assert_eq!((name.as_str(), &data["elapsed_s"]), ("progress", &Value::Null));
    }
    open(&home)
        .set_status(id, ExperimentStatus::Interrupted)
        .expect("ended");
    assert_eq!(events.until("end"), json!({"status": "interrupted"}));
}
