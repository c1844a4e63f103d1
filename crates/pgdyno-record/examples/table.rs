//! Prints the book's page of the metrics of trials.
#![allow(clippy::print_stdout, reason = "an example prints")]

use pgdyno_record::{Better, METRICS};

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
        println!(
            "| `{}` | {} | {} | {better} | {} | {} |",
            metric.id,
            metric.title,
            metric.unit,
            metric.source.name(),
            metric.given.name()
        );
    }
}
