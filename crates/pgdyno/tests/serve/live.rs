//! Experiments that are run while somebody looks on.

use super::{SECOND, experiment, open, stop, trial};
use crate::common::Home;
use crate::common::openmetrics::parsed;
use crate::common::web::Web;
use pgdyno_store::{ExperimentStatus, ProgressRecord, SeriesRecord};
use serde_json::{Value, json};

#[test]
fn an_experiment_streams_in_while_it_is_run() {
    let home = Home::new();
    let mut store = open(&home);
    let id = store.begin(&experiment("memory", "sandbox a")).expect("begun");
    let none = SeriesRecord::default();
    let first = store
        .add_trial(id, &trial(1, "reference", 1000.0), &none)
        .expect("stored");
    let mut progress = ProgressRecord::begun(8, 0, 14.0, 1);
    progress.begin(SECOND, 1, "measuring");
    let place = store.progress_place();
    place.write(id, &progress).expect("written");

    let web = Web::start(&home, &[]);
    let path = format!("/api/experiments/{id}/live");
    let mut events = web.events(&path, &[]);
    let (name, told) = events.next().expect("an event");
    assert_eq!(name, "progress");
    assert_eq!(
        (&told["trials_finished"], &told["trials_planned"]),
        (&json!(1), &json!(8))
    );
    let current = json!({"treatment": SECOND, "block": 1, "phase": "measuring"});
    assert_eq!((&told["current"], &told["decided"]), (&current, &json!([])));
    assert!(
        told["left_s"].is_number() && told["elapsed_s"].is_number(),
        "{told}"
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
    let told = events.until("progress");
    assert_eq!(told["trials_finished"], 4);
    assert_eq!(
        told["decided"],
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
