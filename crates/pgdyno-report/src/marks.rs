//! What happened beside a trial, read off its series: checkpoints, vacuums, disturbances, gaps.

use pgdyno_record::{ColumnRecord, SeriesRecord, TrialRecord};
use serde::Serialize;

/// A reading follows the one before it after a second; the growth that it shows is between the two.
const READING_MS: u32 = 1000;
/// Seconds in which the hypervisor took more are reported. A CPU has 100 ticks a second; below five
/// of them single ticks decide.
const STEAL_RATIO: f64 = 0.05;
/// The longest stretch between two disturbed seconds that are reported as one.
const SAME_MS: u32 = 3000;

/// Counters that grow when a checkpoint begins, and what asked for it.
const BEGINS: &[(&str, &str)] = &[
    ("checkpoints.timed_per_s", "checkpoint: its time had come"),
    (
        "checkpoints.requested_per_s",
        "checkpoint: asked for, or WAL was full",
    ),
];
/// Counters that grow when one ends.
const ENDS: &[&str] = &[
    "checkpoints.done_per_s",
    "checkpoints.write_ms_per_s",
    "checkpoints.sync_ms_per_s",
];
const VACUUMS: &[(&str, &str)] = &[
    ("vacuum.autovacuum_workers", "autovacuum"),
    ("vacuum.running", "vacuum"),
];

/// Kinds of marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum MarkKind {
    /// The server wrote what was dirty.
    Checkpoint,
    /// Tables were vacuumed.
    Vacuum,
    /// Something else used the machine.
    Disturbance,
    /// Something was not read.
    Gap,
}

/// Something that happened, or that is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Mark {
    /// Its begin, after the start of the load.
    pub at_ms: u32,
    /// Its end, after the start of the load; `None` for an instant.
    pub until_ms: Option<u32>,
    /// What happened, as a kind.
    pub kind: MarkKind,
    /// What happened, as text.
    pub text: String,
}

/// Metrics that marks are read off: who wants nothing but marks reads these alone.
pub fn mark_metrics() -> Vec<&'static str> {
    let names = BEGINS.iter().chain(VACUUMS).map(|(name, _)| *name);
    names.chain(ENDS.iter().copied()).collect()
}

/// All marks of a trial in order of time. Disturbances whose time is not known are in its record
/// alone.
pub(crate) fn marks(trial: &TrialRecord, series: &SeriesRecord) -> Vec<Mark> {
    let mut marks = checkpoints(series);
    marks.extend(vacuums(series));
    marks.extend(steal(trial));
    marks.extend(series.gaps.iter().map(|gap| Mark {
        at_ms: gap.at_ms,
        until_ms: None,
        kind: MarkKind::Gap,
        text: format!("{}: {}", gap.source, gap.reason),
    }));
    marks.sort_by_key(|mark| (mark.at_ms, mark.kind));
    marks
}

fn of<'a>(series: &'a SeriesRecord, metric: &str) -> impl Iterator<Item = &'a ColumnRecord> {
    let metric = metric.to_owned();
    series
        .columns
        .iter()
        .filter(move |column| column.metric == metric)
}

/// When a column was above zero.
fn positive(column: &ColumnRecord) -> impl Iterator<Item = u32> {
    let points = column.at_ms.iter().zip(&column.values);
    points.filter(|(_, value)| **value > 0.0).map(|(at_ms, _)| *at_ms)
}

/// From the reading before the one that shows the begin to the first that shows an end.
fn checkpoints(series: &SeriesRecord) -> Vec<Mark> {
    let mut ends: Vec<u32> = ENDS
        .iter()
        .flat_map(|metric| of(series, metric))
        .flat_map(positive)
        .collect();
    ends.sort_unstable();
    let mut begins: Vec<(u32, &str)> = BEGINS
        .iter()
        .flat_map(|(metric, text)| of(series, metric).flat_map(positive).map(move |at| (at, *text)))
        .collect();
    begins.sort_unstable();
    begins.dedup_by_key(|(at_ms, _)| *at_ms);
    let mut marks: Vec<Mark> = Vec::new();
    let first = begins.first().map_or(u32::MAX, |(at_ms, _)| *at_ms);
    if let Some(end) = ends.iter().find(|end| **end < first) {
        marks.push(checkpoint(0, Some(*end), "checkpoint: begun before the load"));
    }
    for (number, (at_ms, text)) in begins.iter().enumerate() {
        let next = begins.get(number + 1).map_or(u32::MAX, |(at_ms, _)| *at_ms);
        let end = ends.iter().find(|end| (*at_ms..next).contains(end));
        marks.push(checkpoint(at_ms.saturating_sub(READING_MS), end.copied(), text));
    }
    marks
}

fn checkpoint(at_ms: u32, until_ms: Option<u32>, text: &str) -> Mark {
    Mark {
        at_ms,
        until_ms,
        kind: MarkKind::Checkpoint,
        text: text.to_owned(),
    }
}

/// Stretches in which any vacuum ran.
fn vacuums(series: &SeriesRecord) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (metric, name) in VACUUMS {
        for column in of(series, metric) {
            let mut most = 0.0_f64;
            let mut begun: Option<u32> = None;
            let mut last = 0;
            for (at_ms, value) in column.at_ms.iter().zip(&column.values) {
                match (*value > 0.0, begun) {
                    (true, _) => {
                        begun = begun.or(Some(*at_ms));
                        most = most.max(*value);
                    }
                    (false, Some(from)) => {
                        marks.push(vacuum(name, from, *at_ms, most));
                        (begun, most) = (None, 0.0);
                    }
                    (false, None) => {}
                }
                last = *at_ms;
            }
            if let Some(from) = begun {
                marks.push(vacuum(name, from, last, most));
            }
        }
    }
    marks
}

fn vacuum(name: &str, at_ms: u32, until_ms: u32, most: f64) -> Mark {
    Mark {
        at_ms,
        until_ms: Some(until_ms),
        kind: MarkKind::Vacuum,
        text: match most > 1.0 {
            true => format!("{name}: up to {most:.0} at once"),
            false => (*name).to_owned(),
        },
    }
}

/// Stretches in which the hypervisor took CPU time.
fn steal(trial: &TrialRecord) -> Vec<Mark> {
    let mut marks: Vec<(Mark, f64)> = Vec::new();
    for second in &trial.seconds {
        let Some(steal) = second.cpu_steal.filter(|steal| *steal > STEAL_RATIO) else {
            continue;
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "`as` saturates, and no trial takes 49 days"
        )]
        let until = (second.t_s * 1000.0) as u32;
        let from = until.saturating_sub(READING_MS);
        match marks.last_mut() {
            Some((mark, most)) if mark.until_ms.is_some_and(|end| from <= end + SAME_MS) => {
                mark.until_ms = Some(until);
                *most = most.max(steal);
            }
            _ => marks.push((
                Mark {
                    at_ms: from,
                    until_ms: Some(until),
                    kind: MarkKind::Disturbance,
                    text: String::new(),
                },
                steal,
            )),
        }
    }
    let named = marks.into_iter().map(|(mark, most)| Mark {
        text: format!("the hypervisor took up to {:.0} % of the CPUs", most * 100.0),
        ..mark
    });
    named.collect()
}
