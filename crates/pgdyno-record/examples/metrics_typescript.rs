//! Prints the page's copy of the table of metrics: `make types` writes it to
//! ui/src/generated/metrics.ts.

use pgdyno_record::{Better, METRICS, UNITS};
use std::fmt::Write;

/// The file's text.
pub(crate) fn text() -> String {
    let mut text = "// Generated from crates/pgdyno-record by `make types`: do not edit.\n\n\
         /** A metric of a trial. */\n\
         export interface Metric {\n\
         \x20 /** Its name in records, files and commands. */\n  id: string;\n\
         \x20 /** Within a sentence. */\n  title: string;\n\
         \x20 /** At the head of a column. */\n  column: string;\n\
         \x20 /** As a heading, without \"per transaction\". */\n  heading: string;\n\
         \x20 /** Empty for a number without one. */\n  unit: string;\n\
         \x20 larger_is_better: boolean;\n\
         \x20 /** Whose gap says why it is missing; empty where no gap does. */\n  source: string;\n\
         \x20 /** A cost of each transaction. */\n  is_cost: boolean;\n\
         \x20 /** Compared where no metric is named. */\n  is_compared: boolean;\n\
         }\n\nexport const METRICS: readonly Metric[] = [\n"
        .to_owned();
    let mut line = |line: String| {
        let _ = writeln!(text, "{line}");
    };
    for metric in METRICS {
        line(format!(
            "  {{ id: {:?}, title: {:?}, column: {:?}, heading: {:?}, unit: {:?}, larger_is_better: {}, source: {:?}, is_cost: {}, is_compared: {} }},",
            metric.id,
            metric.title,
            metric.column,
            metric.heading,
            metric.unit,
            metric.better == Better::Higher,
            metric.source.in_gaps(),
            metric.is_cost,
            metric.is_compared
        ));
    }
    line("];\n".to_owned());
    line(
        "/** How names of other metrics end, and in which unit they are then; the first that fits counts. */"
            .to_owned(),
    );
    line("export const UNITS: readonly (readonly [ending: string, unit: string])[] = [".to_owned());
    for (ending, unit) in UNITS {
        line(format!("  [{ending:?}, {unit:?}],"));
    }
    line("];".to_owned());
    text
}

#[allow(dead_code, clippy::print_stdout, reason = "a test uses the text alone")]
fn main() {
    print!("{}", text());
}
