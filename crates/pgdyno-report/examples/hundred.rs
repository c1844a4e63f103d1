//! Writes the report file of made-up trials and prints how long it took and how large it is, for
//! docs/explanation/benchmarks.md. Usage: hundred STORE REPORT [TRIALS] [SECONDS] [COLUMNS]. The
//! store is filled where it is not there yet; with - for REPORT that is all.
#![allow(
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "an example prints, and makes its numbers up"
)]

mod made;

use made::{Random, experiment, series, trial};
use pgdyno_record::ExperimentStatus;
use pgdyno_report::{Scope, html_with, mark_metrics, pack};
use pgdyno_store::Store;
use std::error::Error;
use std::path::Path;
use std::time::Instant;

fn fill(path: &Path, trials: u32, seconds: u32, columns: usize) -> Result<(), Box<dyn Error>> {
    let mut store = Store::open(path)?;
    let mut random = Random(1);
    let id = store.begin(&experiment(trials, seconds)?)?;
    for at in 0..trials {
        let record = trial(at, seconds, &mut random)?;
        store.add_trial(id, &record, &series(seconds, columns, &mut random))?;
    }
    Ok(store.set_status(id, ExperimentStatus::Finished)?)
}

/// Collects what each step takes.
struct Steps(Instant, Vec<String>);

impl Steps {
    fn done(&mut self, what: &str) {
        self.1
            .push(format!("{what} {:.2}", self.0.elapsed().as_secs_f64()));
        self.0 = Instant::now();
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [path, report_path, rest @ ..] = &args[..] else {
        return Err("hundred STORE REPORT [TRIALS] [SECONDS] [COLUMNS]".into());
    };
    let number = |place: usize, default: u32| rest.get(place).map_or(Ok(default), |text| text.parse::<u32>());
    let (trials, seconds, columns) = (number(0, 100)?, number(1, 3600)?, number(2, 300)?);
    let path = Path::new(path);
    if !path.exists() {
        fill(path, trials, seconds, columns as usize)?;
    }
    if report_path == "-" {
        return Ok(());
    }
    let store = Store::open(path)?;
    let begun = Instant::now();
    let mut steps = Steps(begun, Vec::new());
    let stored = store.experiment(1)?;
    steps.done("records");
    let mut report = pgdyno_report::build(&stored, "hundred", 0);
    steps.done("report");
    let ids: Vec<i64> = stored.trials.iter().map(|(id, _)| *id).collect();
    for (id, series) in ids.iter().zip(store.series_named(&ids, &mark_metrics())?) {
        report.mark(&stored, *id, &series);
    }
    steps.done("marks");
    let mut read = |ids: &[i64], scope: Scope| store.series_of_trials(ids, |metric| scope.wants(metric));
    let (details, packed) = pack(&stored, &report, &|_| true, &mut read)?;
    steps.done("details");
    report.thin(60_000);
    let text = html_with(&report, Some((&details, &packed)))?;
    std::fs::write(report_path, &text)?;
    steps.done("file");
    let took = begun.elapsed().as_secs_f64();
    println!(
        "{trials} trials of {seconds} s with {columns} columns: {:.2} MB in {took:.2} s; {details:?}",
        text.len() as f64 / 1e6
    );
    println!("seconds of each step: {}", steps.1.join(", "));
    Ok(())
}
