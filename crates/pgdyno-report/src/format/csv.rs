//! Trials and series as CSV (RFC 4180), for spreadsheets and programs.

use crate::model::{Report, Trial};
use pgdyno_record::METRICS;
use pgdyno_record::{ColumnRecord, TrialStatus};
use std::collections::BTreeSet;

/// One line per trial in the order they ran, below a line of names: what it was, then its factors'
/// levels (`factor:` and the name), then all figures. What is not known is empty.
pub fn csv(report: &Report) -> String {
    let factors = factors(report);
    let figures = figures(report);
    let own = OWN.iter().map(|name| (*name).to_owned());
    let levels = factors.iter().map(|name| format!("factor:{name}"));
    let heads = own.chain(levels).chain(figures.iter().cloned());
    let mut lines = Lines::new();
    lines.add(heads);
    for trial in &report.trials {
        let treatment = report.treatments.iter().find(|t| t.name == trial.treatment);
        let level = |factor: &&String| {
            let levels = treatment.map(|t| &t.levels[..]).unwrap_or_default();
            let found = levels.iter().find(|level| level.factor == **factor);
            found.map(|level| level.level.clone()).unwrap_or_default()
        };
        let figure = |name: &String| number(trial.figures.get(name).copied());
        let fields = own_fields(report, trial).into_iter();
        let levels = factors.iter().map(|factor| level(&factor));
        lines.add(fields.chain(levels).chain(figures.iter().map(figure)));
    }
    lines.text()
}

/// Names of the columns of [`series_csv`].
pub const SERIES_HEAD: &str = "trial,metric,label,at_ms,value\r\n";

/// A line for each point of a column that was recorded beside a trial.
pub fn series_csv(trial: i64, column: &ColumnRecord) -> String {
    let mut lines = Lines::new();
    let trial = trial.to_string();
    for (at_ms, value) in column.at_ms.iter().zip(&column.values) {
        let (metric, label) = (column.metric.clone(), column.label.clone());
        lines.add(
            [
                trial.clone(),
                metric,
                label,
                at_ms.to_string(),
                number(Some(*value)),
            ]
            .into_iter(),
        );
    }
    lines.text()
}

/// The trials of one treatment over several experiments in the order of time, as Apache Otava (once
/// Hunter) reads them: a column `time`, attributes (`experiment`, `trial`, `block`, `treatment`),
/// and the figures that every one of these trials has, for Otava takes no empty fields. Without a
/// treatment's name it is the first of each report. Trials that do not count are not in it. `when`
/// writes an instant (milliseconds since 1970) with its zone.
pub fn otava(reports: &[Report], treatment: Option<&str>, when: impl Fn(u64) -> String) -> String {
    let of = |report: &'_ Report| {
        let first = report.treatments.first().map(|t| t.name.clone());
        treatment.map(str::to_owned).or(first).unwrap_or_default()
    };
    let mut trials: Vec<(i64, &Trial)> = Vec::new();
    for report in reports {
        let name = of(report);
        let counted = report.trials.iter().filter(|trial| {
            trial.treatment == name && trial.status == TrialStatus::Finished && !trial.excluded
        });
        trials.extend(counted.map(|trial| (report.experiment.id, trial)));
    }
    trials.sort_by_key(|(experiment, trial)| (trial.started_unix_ms, *experiment, trial.id));
    let everywhere = |name: &&String| {
        let known = |trial: &Trial| trial.figures.get(*name).is_some_and(|value| value.is_finite());
        trials.iter().all(|(_, trial)| known(trial))
    };
    let names: Vec<&String> = match trials.first() {
        Some((_, trial)) => trial.figures.keys().filter(everywhere).collect(),
        None => Vec::new(),
    };
    let own = ["time", "experiment", "trial", "block", "treatment"];
    let mut lines = Lines::new();
    lines.add(
        own.into_iter()
            .map(str::to_owned)
            .chain(names.iter().map(|name| (*name).clone())),
    );
    for (experiment, trial) in &trials {
        let fields = [
            when(trial.started_unix_ms),
            experiment.to_string(),
            trial.id.to_string(),
            trial.block.to_string(),
            trial.treatment.clone(),
        ];
        let figures = names.iter().map(|name| number(trial.figures.get(*name).copied()));
        lines.add(fields.into_iter().chain(figures));
    }
    lines.text()
}

/// Columns that every report has.
const OWN: &[&str] = &[
    "experiment",
    "trial",
    "block",
    "position",
    "treatment",
    "status",
    "excluded",
    "reason",
    "disturbances",
    "server_variant",
    "started_unix_ms",
    "warmup_s",
    "measured_s",
    "unsettled_s",
    "warm_up",
    "committed",
    "failed",
    "skipped",
    "late",
    "retries",
    "rolled_back",
];

fn own_fields(report: &Report, trial: &Trial) -> Vec<String> {
    vec![
        report.experiment.id.to_string(),
        trial.id.to_string(),
        trial.block.to_string(),
        trial.position.to_string(),
        trial.treatment.clone(),
        format!("{:?}", trial.status).to_lowercase(),
        trial.excluded.to_string(),
        trial.reason.clone().unwrap_or_default(),
        trial.disturbances.join("; "),
        trial.server_variant.clone().unwrap_or_default(),
        trial.started_unix_ms.to_string(),
        trial.warmup_s.to_string(),
        trial.measured_s.to_string(),
        number(trial.unsettled_s),
        trial.warm_up.word().to_owned(),
        trial.transactions.committed.to_string(),
        count(trial.transactions.failed),
        count(trial.transactions.skipped),
        count(trial.transactions.late),
        count(trial.transactions.retries),
        count(trial.transactions.rolled_back),
    ]
}

fn count(count: Option<u64>) -> String {
    count.map(|count| count.to_string()).unwrap_or_default()
}

fn number(value: Option<f64>) -> String {
    let known = value.filter(|value| value.is_finite());
    known.map(|value| value.to_string()).unwrap_or_default()
}

/// Factors by name, in the order of the treatments' levels.
pub(crate) fn factors(report: &Report) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for level in report.treatments.iter().flat_map(|t| &t.levels) {
        if !names.contains(&level.factor) {
            names.push(level.factor.clone());
        }
    }
    names
}

/// Figures by name: those that every trial may have, then the others by the alphabet.
pub(crate) fn figures(report: &Report) -> Vec<String> {
    let there: BTreeSet<&String> = report.trials.iter().flat_map(|t| t.figures.keys()).collect();
    let known: Vec<&str> = METRICS.iter().map(|metric| metric.id).collect();
    let first = known.iter().map(|name| (*name).to_owned());
    let others = there
        .iter()
        .filter(|name| !known.contains(&name.as_str()))
        .map(|name| (*name).clone());
    first.filter(|name| there.contains(name)).chain(others).collect()
}

/// Lines as RFC 4180 has them.
struct Lines(csv::Writer<Vec<u8>>);

impl Lines {
    fn new() -> Lines {
        let mut builder = csv::WriterBuilder::new();
        Lines(builder.terminator(csv::Terminator::CRLF).from_writer(Vec::new()))
    }

    /// A text that a spreadsheet would take for a formula gets an apostrophe before it; a number
    /// stays one.
    fn add(&mut self, fields: impl Iterator<Item = String>) {
        let fields = fields.map(|field| match is_formula(&field) {
            true => format!("'{field}"),
            false => field,
        });
        self.0
            .write_record(fields)
            .expect("memory takes it, and all lines are as long");
    }

    fn text(self) -> String {
        let bytes = self.0.into_inner().expect("memory takes it");
        String::from_utf8(bytes).expect("texts were written")
    }
}

/// Source: OWASP, "CSV Injection"; the wide forms are the same signs to spreadsheets of East Asia.
fn is_formula(field: &str) -> bool {
    let begins = field.starts_with([
        '=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
    ]);
    let is_number =
        field.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b)) && field.parse::<f64>().is_ok();
    begins && !is_number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_no_formula_and_a_number_is_a_number() {
        let check = |field: &str, expected: &str| {
            let mut lines = Lines::new();
            lines.add([field.to_owned(), "x".to_owned()].into_iter());
            assert_eq!(lines.text(), format!("{expected},x\r\n"));
        };
        check(
            "=HYPERLINK(\"http://h\",\"x\")",
            "\"'=HYPERLINK(\"\"http://h\"\",\"\"x\"\")\"",
        );
        check("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0");
        check("-2+3", "'-2+3");
        check("@SUM(A1)", "'@SUM(A1)");
        check("\t=1", "'\t=1");
        check("\r=1", "\"'\r=1\"");
        check("\u{ff1d}1", "'\u{ff1d}1");
        for number in ["-3.2", "+1", "-1e-7", "0", "12"] {
            check(number, number);
        }
        check("a,=b", "\"a,=b\"");
        check("reference", "reference");
    }
}
