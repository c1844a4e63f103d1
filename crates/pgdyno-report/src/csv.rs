//! The trials of a report as CSV (RFC 4180), a line each, for spreadsheets and programs.

use crate::metric::known_names;
use crate::model::{Report, Trial};
use std::collections::BTreeSet;

/// One line per trial in the order they ran, below a line of names: what it was, then its factors' levels (`factor:` and
/// the name), then all figures. What is not known is empty.
pub fn csv(report: &Report) -> String {
    let factors = factors(report);
    let figures = figures(report);
    let own = OWN.iter().map(|name| (*name).to_owned());
    let levels = factors.iter().map(|name| format!("factor:{name}"));
    let heads = own.chain(levels).chain(figures.iter().cloned());
    let mut text = line(heads);
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
        text += &line(fields.chain(levels).chain(figures.iter().map(figure)));
    }
    text
}

/// Columns that every report has.
const OWN: &[&str] = &[
    "experiment",
    "trial",
    "block",
    "position",
    "treatment",
    "status",
    "left_out",
    "reason",
    "disturbances",
    "stand",
    "started_unix_ms",
    "warmup_s",
    "measured_s",
    "unsettled_s",
    "committed",
    "failed",
];

fn own_fields(report: &Report, trial: &Trial) -> Vec<String> {
    vec![
        report.experiment.id.to_string(),
        trial.id.to_string(),
        trial.block.to_string(),
        trial.position.to_string(),
        trial.treatment.clone(),
        format!("{:?}", trial.status).to_lowercase(),
        trial.left_out.to_string(),
        trial.reason.clone().unwrap_or_default(),
        trial.disturbances.join("; "),
        trial.stand.clone().unwrap_or_default(),
        trial.started_unix_ms.to_string(),
        trial.warmup_s.to_string(),
        trial.measured_s.to_string(),
        number(trial.unsettled_s),
        trial.committed.to_string(),
        trial.failed.to_string(),
    ]
}

fn number(value: Option<f64>) -> String {
    let known = value.filter(|value| value.is_finite());
    known.map(|value| value.to_string()).unwrap_or_default()
}

/// Factors by name, in the order of the treatments' levels.
fn factors(report: &Report) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for level in report.treatments.iter().flat_map(|t| &t.levels) {
        if !names.contains(&level.factor) {
            names.push(level.factor.clone());
        }
    }
    names
}

/// Figures by name: those that every trial may have, then the others by the alphabet.
fn figures(report: &Report) -> Vec<String> {
    let there: BTreeSet<&String> = report.trials.iter().flat_map(|t| t.figures.keys()).collect();
    let known: Vec<&str> = known_names().collect();
    let first = known.iter().map(|name| (*name).to_owned());
    let others = there
        .iter()
        .filter(|name| !known.contains(&name.as_str()))
        .map(|name| (*name).clone());
    first.filter(|name| there.contains(name)).chain(others).collect()
}

fn line(fields: impl Iterator<Item = String>) -> String {
    let fields: Vec<String> = fields.map(|field| quoted(&field)).collect();
    fields.join(",") + "\r\n"
}

fn quoted(field: &str) -> String {
    match field.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}
