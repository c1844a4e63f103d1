//! Prints the book's page of the metrics of trials.
#![allow(clippy::print_stdout, reason = "an example prints")]

use pgdyno_record::{Better, Given, METRICS, Source};

fn main() {
    println!("# Metrics of trials\n");
    println!(
        "What `metric`, `compare --metric`, gates, reports and `/metrics` know by name. An experiment file can define others.\n"
    );
    println!("| name | what | unit | better | measured by | where |\n|---|---|---|---|---|---|");
    for metric in METRICS {
        let better = match metric.better {
            Better::Higher => "higher",
            Better::Lower => "lower",
        };
        let source = match metric.source {
            Source::Clients => "pgdyno's clients",
            Source::Processes => "/proc",
            Source::Clock => "pgdyno's clock",
            Source::Wal | Source::Disks | Source::Power | Source::Perf => metric.source.name(),
        };
        let given = match metric.given {
            Given::Always => "every trial",
            Given::WhereMeasured => "where the machine measures it",
            Given::OfJobs => "trials of a job",
            Given::OfCrashes => "trials that end with a crash",
            Given::OfTpcc => "trials of TPC-C",
            Given::OfLatencyLimits => "trials whose load has a latency limit",
        };
        println!(
            "| `{}` | {} | {} | {better} | {source} | {given} |",
            metric.id, metric.title, metric.unit
        );
    }
}
