//! Writes the report file of made-up trials and tells how long it took and how large it is, for docs/benchmarks.md.
//! Usage: hundred STORE REPORT [TRIALS] [SECONDS] [COLUMNS]. The store is filled where it is not there yet.
#![allow(clippy::print_stdout, reason = "an example prints")]

use pgdyno_report::{Scope, html_with, is_mark_metric, pack};
use pgdyno_store::{ColumnRecord, ExperimentRecord, SecondRecord, SeriesRecord, Store, TrialRecord};
use serde_json::json;
use std::error::Error;
use std::path::Path;
use std::time::Instant;

/// A small generator (Numerical Recipes' constants): the same numbers on every machine.
struct Random(u32);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(self.0 >> 8) / f64::from(1_u32 << 24)
    }
}

fn experiment(trials: u32) -> Result<ExperimentRecord, serde_json::Error> {
    let treatment =
        |name: &str| json!({"name": name, "title": name, "reason": null, "why_not": null, "settings": []});
    let treatments = ["reference", "a", "b", "c"].map(treatment);
    serde_json::from_value(json!({
        "name": "hundred", "question": "How large is a report?", "design": "one-at-a-time", "blocks": trials / 4, "seed": 1,
        "confidence": 0.95, "smallest_effect": 0.02,
        "workload": {"name": "tpcb", "scale": 100, "clients": 32, "threads": 4, "warmup_s": 60.0, "measure_s": 3540.0},
        "treatments": treatments, "facts": [], "file": "", "repeat": [], "target": "x",
    }))
}

fn trial(number: u32, seconds: u32, random: &mut Random) -> Result<TrialRecord, serde_json::Error> {
    let treatment = ["reference", "a", "b", "c"][(number % 4) as usize];
    let tps = 2000.0 + 100.0 * f64::from(number % 4);
    let mut record: TrialRecord = serde_json::from_value(json!({
        "block": number / 4 + 1, "position": number % 4 + 1, "treatment": treatment, "status": "finished", "reason": null,
        "started_unix_ms": 1_760_000_000_000_u64, "effective": [], "tps": tps + random.next() * 20.0, "committed": 7_000_000, "failed": 0,
        "errors": [], "percentiles": {"p50_ms": 9.0, "p95_ms": 30.0, "p99_ms": 55.0, "max_ms": 400.0}, "histogram": null,
        "distribution": [], "steadiness": null, "stability_cv": 0.05, "warmup_s": 60.0, "measured_s": 3540.0,
        "client_cpu_us_per_tx": 11.0, "server_cpu_us_per_tx": 300.0, "wal_bytes_per_tx": 5000.0, "cross_check": null,
        "disturbances": [], "seconds": [],
    }))?;
    record.seconds = (1..=seconds)
        .map(|second| SecondRecord {
            t_s: f64::from(second),
            tps: (tps * (0.95 + 0.1 * random.next())).round(),
            p95_ms: Some(25.0 + (random.next() * 10_000.0).round() / 1000.0),
            ..SecondRecord::default()
        })
        .collect();
    Ok(record)
}

const NAMED: [&str; 24] = [
    "checkpoints.requested_per_s",
    "checkpoints.timed_per_s",
    "checkpoints.write_ms_per_s",
    "checkpoints.blocks_written_per_s",
    "cpu.iowait_ratio",
    "cpu.run_queue",
    "cpu.steal_ratio",
    "cpu.system_ratio",
    "cpu.user_ratio",
    "db.blocks_hit_per_s",
    "db.blocks_read_per_s",
    "disk.read_bytes_per_s",
    "disk.write_bytes_per_s",
    "disk.write_await_ms",
    "memory.available_bytes",
    "memory.cached_bytes",
    "memory.dirty_bytes",
    "psi.cpu.some_ratio",
    "psi.io.some_ratio",
    "sessions.active",
    "vacuum.autovacuum_workers",
    "wal.bytes_per_s",
    "wal.full_page_images_per_s",
    "waits.sessions",
];

fn series(seconds: u32, columns: usize, random: &mut Random) -> SeriesRecord {
    let at_ms: Vec<u32> = (1..=seconds).map(|second| second * 1000 + 7).collect();
    let column = |place: usize, random: &mut Random| {
        let (metric, label) = match (NAMED.get(place).copied(), place) {
            (Some(name @ ("checkpoints.requested_per_s" | "checkpoints.timed_per_s")), _) => {
                (name.to_owned(), String::new())
            }
            (Some(name), _) => (name.to_owned(), "all".to_owned()),
            (None, place) => (format!("vm.other{place}_per_s"), String::new()),
        };
        let value = |second: u32, random: &mut Random| match metric.as_str() {
            name if name.starts_with("checkpoints.") => f64::from(u8::from(second % 300 == 10)),
            "vacuum.autovacuum_workers" => f64::from(u8::from(second % 600 < 30)),
            "sessions.active" | "cpu.run_queue" => (random.next() * 32.0).round(),
            name if name.ends_with("_ratio") => (random.next() * 100.0).round() / 100.0,
            name if name.starts_with("memory.") => (2e9 + random.next() * 1e9).round(),
            _ => 50_000.0 * (0.9 + 0.2 * random.next()),
        };
        let values = (1..=seconds).map(|second| value(second, random)).collect();
        ColumnRecord {
            metric: metric.clone(),
            label,
            at_ms: at_ms.clone(),
            values,
        }
    };
    SeriesRecord {
        columns: (0..columns).map(|place| column(place, random)).collect(),
        gaps: Vec::new(),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [path, report_path, rest @ ..] = &args[..] else {
        return Err("hundred STORE REPORT [TRIALS] [SECONDS] [COLUMNS]".into());
    };
    let number = |place: usize, default: u32| rest.get(place).map_or(Ok(default), |text| text.parse::<u32>());
    let (trials, seconds, columns) = (number(0, 100)?, number(1, 3600)?, number(2, 300)?);
    if !Path::new(path).exists() {
        let mut store = Store::open(Path::new(path))?;
        let mut random = Random(1);
        let id = store.begin(&experiment(trials)?)?;
        for at in 0..trials {
            store.add_trial(
                id,
                &trial(at, seconds, &mut random)?,
                &series(seconds, columns as usize, &mut random),
            )?;
        }
    }
    let store = Store::open(Path::new(path))?;
    let begun = Instant::now();
    let stored = store.experiment(1)?;
    let mut report = pgdyno_report::build(&stored, "hundred", 0);
    let ids: Vec<i64> = stored.trials.iter().map(|(id, _)| *id).collect();
    for (id, series) in ids.iter().zip(store.series_of_trials(&ids, is_mark_metric)?) {
        report.mark(&stored, *id, &series);
    }
    let mut read = |ids: &[i64], scope: Scope| store.series_of_trials(ids, |metric| scope.wants(metric));
    let (details, packed) = pack(&stored, &report, &|_| true, &mut read)?;
    report.thin(60_000);
    let text = html_with(&report, Some((&details, &packed)))?;
    std::fs::write(report_path, &text)?;
    let took = begun.elapsed().as_secs_f64();
    println!(
        "{trials} trials of {seconds} s with {columns} columns: {:.2} MB in {took:.2} s; {details:?}",
        text.len() as f64 / 1e6
    );
    Ok(())
}
