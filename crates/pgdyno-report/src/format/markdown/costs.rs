//! What a transaction costs, and what throughputs take, as Markdown.

use super::{cell, or_dash, title};
use crate::metric::figure;
use crate::model::{Report, Treatment};
use crate::text::{number, percent};
use pgdyno_record::{METRICS, Metric};
use serde_json::Value;
use std::fmt::Write;

/// A line to a string cannot fail.
macro_rules! line {
    ($text:expr $(, $($part:tt)+)?) => { let _ = writeln!($text $(, $($part)+)?); };
}

fn cost(treatment: &Treatment, metric: &Metric) -> Option<f64> {
    treatment.figures.get(metric.id).copied()
}

/// What one committed transaction cost, where that was recorded.
pub(super) fn efficiency(text: &mut String, report: &Report) {
    let tested: Vec<_> = report.treatments.iter().filter(|t| t.why_not.is_none()).collect();
    let is_known =
        |metric: &&Metric| metric.is_cost && tested.iter().any(|t| t.figures.contains_key(metric.id));
    let known: Vec<&Metric> = METRICS.iter().filter(is_known).collect();
    if known.is_empty() {
        return;
    }
    line!(text, "## What a transaction cost\n");
    line!(
        text,
        "Means over the trials that count; less is better. Changes are relative to the treatment that each is compared with, without an interval.\n"
    );
    let heads = known.iter().map(|metric| cell(metric.column));
    line!(text, "| treatment | {} |", heads.collect::<Vec<_>>().join(" | "));
    line!(text, "|---|{}", "--:|".repeat(known.len()));
    for treatment in &tested {
        let against = treatment.against.as_ref();
        let against = against.and_then(|name| tested.iter().find(|t| t.name == *name));
        let cells = known.iter().map(|metric| {
            or_dash(cost(treatment, metric).map(|value| {
                let before = against
                    .and_then(|t| cost(t, metric))
                    .filter(|before| *before > 0.0);
                let change = before.map(|before| format!(" ({} %)", percent(value / before)));
                figure(value) + &change.unwrap_or_default()
            }))
        });
        line!(
            text,
            "| {} | {} |",
            title(treatment),
            cells.collect::<Vec<_>>().join(" | ")
        );
    }
    line!(text);
}

/// What throughputs take by the ladder: documents of format "pgdyno-capacity/1"
/// (docs/how-to/capacity.md).
pub(super) fn capacity(text: &mut String, report: &Report) {
    if report.capacity.is_empty() {
        return;
    }
    line!(text, "## What a throughput takes\n");
    line!(text, "| TPS | for | CPUs | connections | what |");
    line!(text, "|--:|---|--:|--:|---|");
    for document in &report.capacity {
        let tps = document["tps"].as_f64().map(number);
        let rows = document["answer"]["rows"].as_array();
        for row in rows.into_iter().flatten() {
            let (cpus, connections) = found(&row["found"]);
            let what = row["remark"].as_str().unwrap_or_default();
            line!(
                text,
                "| {} | {} | {cpus} | {connections} | {} |",
                or_dash(tps.clone()),
                cell(&name_of(row)),
                cell(what)
            );
        }
    }
    let confidence = report.capacity[0]["answer"]["confidence"].as_f64();
    if let Some(confidence) = confidence {
        line!(
            text,
            "\nIntervals are at {:.0} %, each by itself; `pgdyno capacity {}` answers for other throughputs.",
            confidence * 100.0,
            report.experiment.id
        );
    }
    line!(text);
}

/// Levels of the factors that are neither CPUs nor clients.
fn name_of(row: &Value) -> String {
    let levels = row["of"].as_array().into_iter().flatten();
    let names: Vec<&str> = levels.filter_map(|level| level[1].as_str()).collect();
    match names.as_slice() {
        [] => "all".to_owned(),
        names => names.join(", "),
    }
}

/// CPUs and connections.
fn found(found: &Value) -> (String, String) {
    let none = || or_dash(None);
    match found["kind"].as_str() {
        Some("needs") => (estimate(&found["cpus"]), estimate(&found["connections"])),
        Some("beyond") => {
            let end = |name: &str| found[name].as_f64().map_or_else(open, figure);
            (
                format!("{} \u{2026} {}", end("cpus_low"), end("cpus_high")),
                none(),
            )
        }
        Some("zone") => {
            let clients = |name: &str| {
                found[name]
                    .as_f64()
                    .map_or_else(none, |clients| clients.to_string())
            };
            let (low, high) = (clients("lowest_clients"), clients("highest_clients"));
            (none(), format!("{low} \u{2026} {high}"))
        }
        _ => (none(), none()),
    }
}

fn open() -> String {
    "\u{221e}".to_owned()
}

/// "12.3 (9.87 … 16.1)"; without an upper bound it is open.
fn estimate(estimate: &Value) -> String {
    let bound = |name: &str| estimate[name].as_f64().map(figure);
    format!(
        "{} ({} \u{2026} {})",
        or_dash(bound("value")),
        or_dash(bound("low")),
        bound("high").unwrap_or_else(open)
    )
}

#[cfg(test)]
mod tests {
    use crate::build::tests::stored;
    use crate::{build, markdown};
    use serde_json::json;

    #[test]
    fn costs_and_capacity_are_tables() {
        let mut report = build(&stored("cumulative", 3), "test", 0);
        for treatment in &mut report.treatments {
            treatment.figures.clear();
        }
        report.capacity.clear();
        let text = markdown(&report);
        assert!(!text.contains("## What a t"), "{text}");

        let (first, second) = (report.treatments[0].name.clone(), &mut report.treatments[1]);
        second.against = Some(first);
        second.figures.insert("wal_bytes_per_tx".to_owned(), 600.0);
        let figures = &mut report.treatments[0].figures;
        figures.insert("wal_bytes_per_tx".to_owned(), 500.0);
        let faults = &mut report.treatments[1].figures;
        faults.insert("page_faults".to_owned(), 0.5);
        let row = |of: serde_json::Value, found: serde_json::Value, remark: &str| json!({"of": of, "found": found, "remark": remark});
        let estimate = |value: f64, high: Option<f64>| json!({"value": value, "low": 10.0, "high": high});
        report.capacity = vec![json!({"tps": 60_000.0, "answer": {"confidence": 0.95, "rows": [
            row(json!([]), json!({"kind": "needs", "cpus": estimate(12.0, Some(15.0)), "connections": estimate(80.0, None)}), "within"),
            row(json!([["disk", "a|b"]]), json!({"kind": "beyond", "cpus_low": 31.0, "cpus_high": null}), "never reached"),
            row(json!([]), json!({"kind": "zone", "lowest_clients": 8, "highest_clients": 32}), "reached"),
            row(json!([]), json!({"kind": "no", "why": "one point alone"}), "one point alone"),
        ]}})];
        let text = markdown(&report);
        for wanted in [
            "| treatment | WAL per tx, bytes | page faults per tx |",
            "| 500 | \u{2013} |",
            "| 600 (+20.0 %) | 0.500 |",
            "| 60,000 | all | 12.0 (10.0 \u{2026} 15.0) | 80.0 (10.0 \u{2026} \u{221e}) | within |",
            "| 60,000 | a\\|b | 31.0 \u{2026} \u{221e} | \u{2013} | never reached |",
            "| \u{2013} | 8 \u{2026} 32 | reached |",
            "| one point alone |",
            "Intervals are at 95 %",
        ] {
            assert!(text.contains(wanted), "{wanted}\n{text}");
        }
    }
}
