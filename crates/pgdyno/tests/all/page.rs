//! The page over `pgdyno serve`: a store is filled by hand, served by the program, and checked in
//! Chromium by the tests of ui/test/served. They need npm, ui/node_modules, ui/dist and Chromium;
//! where one is missing this fails.

use common::Home;
use common::web::Web;
use pgdyno_record::{
    ColumnRecord, ExperimentRecord, ExperimentStatus, ProgressRecord, SecondRecord, SeriesRecord, TrialRecord,
};
use pgdyno_store::Store;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

const WARMUP_S: u32 = 4;
const MEASURED_S: u32 = 20;
/// Each of them would say that it was taken for markup.
const IMAGE: &str = "<img src=x onerror=\"window.pgdynoHit=1\">";
const SCRIPT: &str = "</script><script>window.pgdynoHit=2</script>";
const DRAWING: &str = "\"><svg onload=\"window.pgdynoHit=3\">";

fn now_unix_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a clock after 1970");
    u64::try_from(since.as_millis()).expect("a near year")
}

fn experiment(name: &str, question: &str, target: &str, title: &str) -> ExperimentRecord {
    let treatment = |name: &str, title: &str, settings: Value| json!({"name": name, "title": title, "reason": null, "why_not": null, "settings": settings});
    let larger = json!([{"knob": "work_mem", "value": "16MB", "layer": "postgresql", "risk": "safe", "changed": true}]);
    let fact = |name: &str, value: Value, source: &str| json!({"group": "host", "name": name, "value": value, "missing": null, "source": source});
    serde_json::from_value(json!({
        "name": name, "question": question, "design": "one-at-a-time", "blocks": 3, "seed": 1,
        "confidence": 0.95, "smallest_effect": 0.02,
        "workload": {"name": "write", "scale": 10, "clients": 16, "threads": 2, "warmup_s": WARMUP_S, "measure_s": MEASURED_S},
        "treatments": [treatment("reference", "as it was", json!([])), treatment("larger", title, larger)],
        "facts": [
            fact("cpu.online_count", json!(8), "/sys/devices/system/cpu/online"),
            fact("vm.overcommit_memory", json!(1), "/proc/sys/vm/overcommit_memory"),
            fact("vm.swappiness", json!(60), "/proc/sys/vm/swappiness"),
            fact("memory.total_bytes", json!(16_u64 << 30), "/proc/meminfo"),
            fact("cpu.model", json!(IMAGE), "/proc/cpuinfo"),
            fact("kernel.clock_source", json!("hpet"), "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            fact("thp.enabled", json!("always"), "/sys/kernel/mm/transparent_hugepage/enabled"),
        ],
        "file": "name = \"memory\"\n", "repeat": ["pgdyno run memory.toml --seed 1"], "target": target,
    }))
    .expect("a record")
}

/// Something between -1 and 1 that is the same each time.
fn wave(second: u32, more: u32) -> f64 {
    (f64::from(second) * 1.7 + f64::from(more)).sin()
}

fn trial(block: u32, position: u32, treatment: &str, tps: f64) -> TrialRecord {
    let at_ms = 1_760_000_000_000 + u64::from(block * 10 + position) * 60_000;
    let points = [50.0, 90.0, 95.0, 99.0, 99.9, 100.0];
    let distribution: Vec<Value> = points
        .iter()
        .zip([8.0, 14.0, 18.0, 31.0, 55.0, 80.0])
        .map(|(percentile, ms)| json!({"percentile": percentile, "ms": ms * 1000.0 / tps}))
        .collect();
    let mut record: TrialRecord = serde_json::from_value(json!({
        "block": block, "position": position, "treatment": treatment, "status": "finished", "reason": null,
        "started_unix_ms": at_ms, "effective": [["work_mem", "16MB"]], "tps": tps, "committed": 20_000, "failed": 2,
        "errors": [{"sqlstate": "40001", "count": 2}],
        "percentiles": {"p50_ms": 8000.0 / tps, "p95_ms": 18_000.0 / tps, "p99_ms": 31_000.0 / tps, "max_ms": 80_000.0 / tps},
        "histogram": null, "distribution": distribution,
        "steadiness": {"settled": true, "drift_ratio": 0.01, "drift_standard_error": 0.01}, "stability_cv": 0.02,
        "warmup_s": WARMUP_S, "measured_s": MEASURED_S, "client_cpu_us_per_tx": 41.0, "server_cpu_us_per_tx": 410.0,
        "wal_bytes_per_tx": 5200.0, "cross_check": null, "disturbances": [], "seconds": [],
    }))
    .expect("a record");
    record.seconds = (1..=WARMUP_S + MEASURED_S)
        .map(|second| SecondRecord {
            t_s: f64::from(second),
            tps: tps * (1.0 + 0.03 * wave(second, block)),
            p95_ms: Some(18_000.0 / tps * (1.0 + 0.1 * wave(second, position))),
            cpu_busy: Some(0.7 + 0.1 * wave(second, block)),
            ..SecondRecord::default()
        })
        .collect();
    record
}

fn series() -> SeriesRecord {
    let column = |metric: &str, label: &str, mean: f64| {
        let seconds = 1..=WARMUP_S + MEASURED_S;
        ColumnRecord {
            metric: metric.to_owned(),
            label: label.to_owned(),
            at_ms: seconds.clone().map(|second| second * 1000).collect(),
            values: seconds
                .map(|second| mean * (1.0 + 0.2 * wave(second, 3)))
                .collect(),
        }
    };
    SeriesRecord {
        columns: vec![
            column("cpu.user_ratio", "all", 0.5),
            column("cpu.system_ratio", "all", 0.2),
            column("cpu.iowait_ratio", "all", 0.05),
            column("memory.dirty_bytes", "", 3e7),
            column("disk.written_bytes_per_s", "sda", 2e7),
            column("waits.sessions", "backend/CPU/CPU", 6.0),
            column("waits.sessions", "backend/LWLock/WALWrite", 3.0),
            column("waits.sessions", "backend/IO/WalSync", 1.0),
            column("waits.statement_sessions", "4711", 5.0),
            column("waits.statement_sessions", "4712", 2.0),
        ],
        gaps: Vec::new(),
    }
}

fn add_block(store: &mut Store, id: i64, block: u32) {
    let place = f64::from(block);
    for (position, treatment, tps) in [
        (1, "reference", 1000.0 + place),
        (2, "larger", 1210.0 + 2.0 * place),
    ] {
        store
            .add_trial(id, &trial(block, position, treatment, tps), &series())
            .expect("stored");
    }
}

/// Four experiments: a finished one, one whose texts are markup, one without a trial, and one that
/// runs as long as what is returned is kept.
fn fill(path: &Path) -> Store {
    let mut store = Store::open(path).expect("a store");
    let memory = experiment("memory", "What is memory worth?", "sandbox a", "16 MB for sorts");
    let id = store.begin(&memory).expect("begun");
    (1..=3).for_each(|block| add_block(&mut store, id, block));
    store.tag(id, "nightly").expect("tagged");
    store.set_status(id, ExperimentStatus::Finished).expect("ended");

    let markup = experiment(IMAGE, SCRIPT, DRAWING, &format!("{DRAWING} {IMAGE}"));
    let id = store.begin(&markup).expect("begun");
    (1..=2).for_each(|block| add_block(&mut store, id, block));
    store.tag(id, "markup").expect("tagged");
    store.note(id, &format!("{SCRIPT}\n{IMAGE}")).expect("noted");
    store.set_status(id, ExperimentStatus::Finished).expect("ended");

    let empty = experiment("nothing-yet", "Did it begin?", "sandbox b", "16 MB for sorts");
    let id = store.begin(&empty).expect("begun");
    store
        .set_status(id, ExperimentStatus::Interrupted)
        .expect("ended");

    let running = experiment("weekly", "Is it still so?", "sandbox a", "16 MB for sorts");
    let id = store.begin(&running).expect("begun");
    add_block(&mut store, id, 1);
    let mut progress = ProgressRecord::begun(6, 2, 24.0, now_unix_ms());
    progress.begin("larger", 2, "measuring");
    let place = store.progress_place().expect("a file");
    place.write(id, &progress).expect("written");
    store
}

/// A change of this machine that nobody has restored, of a file that no test changes.
fn leave_a_change(home: &Home) {
    let path = "/proc/sys/vm/zone_reclaim_mode";
    let boot_id = common::kernel("/proc/sys/kernel/random/boot_id");
    let cell = json!({"files": {"files": [{"path": path, "form": "plain"}], "counterparts": false}});
    let lines = [
        json!({"open": {"format": 2, "pid": 1, "started_unix_ms": 1_760_000_000_000_u64, "boot_id": boot_id, "purpose": format!("apply {IMAGE}"), "server": null, "server_was_running": false, "by": "root"}}),
        json!({"intent": {"knob": "vm.zone_reclaim_mode", "cell": cell, "before": {"files": [IMAGE]}, "writing": IMAGE}}),
        json!({"done": {"after": {"files": [common::kernel(path)]}}}),
        json!("confirmed"),
    ];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let journals = home.file("state/journal");
    fs::create_dir_all(&journals).expect("a directory");
    fs::write(journals.join("1760000000000-1.journal"), lines).expect("written");
}

#[test]
fn the_page_works_over_the_server() {
    common::network::leave();
    let home = Home::new();
    let data = home.file("data");
    fs::create_dir_all(&data).expect("a directory");
    let running = fill(&data.join("results.sqlite"));
    leave_a_change(&home);
    let web = Web::start(&home, &[]);
    let page = web.get("/");
    assert_eq!(page.status, 200, "`make build` makes the page: {}", page.text());

    let ui = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui");
    let output = Command::new("npm")
        .args(["--prefix"])
        .arg(&ui)
        .args(["run", "test:served"])
        .current_dir(&ui)
        .env(
            "PGDYNO_LINK",
            format!("http://{}/?token={}", web.address, web.token),
        )
        .output()
        .expect("npm starts: `make test` says what is missing");
    let said = common::said(output);
    assert_eq!(said.code, 0, "{}\n{}", said.out, said.err);
    drop(running);
}
