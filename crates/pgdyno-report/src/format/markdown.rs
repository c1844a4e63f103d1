//! The report as Markdown, to be read in a pull request.

mod costs;
mod escape;
mod found;

pub use escape::{markdown_code, markdown_text};

use crate::metric::figure;
use crate::model::{Report, Treatment};
use crate::text::{effect, number, verdict_word};
use escape::markdown_text as cell;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use pgdyno_record::{DistributionPoint, MetricWords};
use std::fmt::Write;

/// The whole report but for charts and series.
pub fn markdown(report: &Report) -> String {
    let mut text = String::new();
    head(&mut text, report);
    verdicts(&mut text, report);
    found::search(&mut text, report);
    found::claims(&mut text, report);
    found::events(&mut text, report);
    found::tables(&mut text, report);
    found::effects(&mut text, report);
    found::curves(&mut text, report);
    costs::capacity(&mut text, report);
    costs::efficiency(&mut text, report);
    settings(&mut text, report);
    excluded(&mut text, report);
    facts(&mut text, report);
    restored(&mut text, report);
    repeat(&mut text, report);
    text
}

/// A line to a string cannot fail.
macro_rules! line {
    ($text:expr $(, $($part:tt)+)?) => { let _ = writeln!($text $(, $($part)+)?); };
}

fn head(text: &mut String, report: &Report) {
    let e = &report.experiment;
    line!(text, "# {}\n", cell(&e.name));
    line!(text, "**{}**\n", cell(&e.question));
    line!(text, "{}\n", cell(&e.answer));
    let started = i64::try_from(e.started_unix_ms)
        .ok()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let when = started.map(|t| {
        t.to_zoned_datetime(TimeZone::UTC)
            .strftime("%Y-%m-%d %H:%M UTC")
            .to_string()
    });
    // What a search tries is in one block each.
    let done = match e.design.as_str() {
        "search" if report.trials.len() == 1 => "1 trial".to_owned(),
        "search" => format!("{} trials", report.trials.len()),
        _ => format!("{} of {} blocks", e.blocks_finished, e.blocks_planned),
    };
    line!(
        text,
        "{}; {} design, {done}; {}; {} at scale {}, {} clients, {} s warm-up and {} s measured; seed {}.\n",
        when.unwrap_or_default(),
        cell(&e.design),
        cell(e.status),
        cell(&e.workload.name),
        e.workload.scale,
        e.workload.clients,
        e.workload.warmup_s,
        e.workload.measure_s,
        e.seed
    );
}

fn verdicts(text: &mut String, report: &Report) {
    let columns = columns(report);
    let head = columns.iter().map(|column| column.heading.clone());
    let rule = columns
        .iter()
        .map(|column| if column.right { "--:" } else { "---" });
    line!(text, "| {} |", head.collect::<Vec<_>>().join(" | "));
    line!(text, "|{}|", rule.collect::<Vec<_>>().join("|"));
    for t in &report.treatments {
        let cells = columns.iter().map(|column| match &t.why_not {
            Some(why) => (column.untested)(t, why),
            None => (column.cell)(t),
        });
        line!(text, "| {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    line!(text);
    decision(text, report);
}

fn decision(text: &mut String, report: &Report) {
    let d = &report.decision;
    if let Some(floor) = d.noise_floor {
        line!(
            text,
            "Noise floor: trials of the same treatment differ by {:.1} % (standard deviation, {} degrees of freedom). {}\n",
            floor * 100.0,
            d.degrees_of_freedom,
            cell(&d.method)
        );
    }
    if let Some(least) = d.minimum_detectable_effect {
        line!(
            text,
            "So many blocks find an effect of {:.1} % with a probability of {:.0} %.\n",
            least * 100.0,
            d.power * 100.0
        );
    }
    if let Some(length) = &d.trial_length {
        line!(text, "{}\n", length.sentence);
    }
    if d.stop != "after-blocks" {
        line!(text, "Stopping rule: {}.\n", cell(&d.stop_rule));
    }
}

/// A column of the table of treatments.
struct Column<'a> {
    heading: String,
    right: bool,
    cell: Box<dyn Fn(&Treatment) -> String + 'a>,
    /// What is there for a treatment that was not tested.
    untested: fn(&Treatment, &str) -> String,
}

impl<'a> Column<'a> {
    fn new(heading: impl Into<String>, right: bool, cell: impl Fn(&Treatment) -> String + 'a) -> Column<'a> {
        Column {
            heading: heading.into(),
            right,
            cell: Box::new(cell),
            untested: |_, _| String::new(),
        }
    }
}

fn columns(report: &Report) -> Vec<Column<'_>> {
    let d = &report.decision;
    let with_steps = report.experiment.factors.is_empty();
    let compared = report.treatments.iter().any(|t| t.against.is_some());
    let mut columns = vec![Column::new(
        if with_steps { "step" } else { "treatment" },
        false,
        title,
    )];
    let text_of = if d.metric == "tps" { number } else { figure };
    columns.push(Column::new(
        cell(&MetricWords::of(&d.metric).column),
        true,
        move |t| or_dash(t.mean(&d.metric).map(text_of)),
    ));
    if d.metric != "tps" && report.treatments.iter().any(|t| t.mean("tps").is_some()) {
        columns.push(Column::new("TPS", true, |t| or_dash(t.mean("tps").map(number))));
    }
    if compared {
        let heading = if with_steps {
            "effect of the step"
        } else {
            "effect"
        };
        columns.push(Column::new(heading, true, |t| {
            or_dash(t.step.as_ref().map(effect))
        }));
        columns.push(Column {
            untested: |_, why| format!("not tested: {}", cell(why)),
            ..Column::new("verdict", false, |t| {
                or_dash(t.step.map(|s| verdict_word(s.verdict, d.smallest_effect)))
            })
        });
        if with_steps {
            columns.push(Column::new("in all", true, |t| {
                or_dash(t.total.as_ref().map(effect))
            }));
        } else {
            columns.push(Column::new("against", false, |t| {
                or_dash(t.against.as_deref().map(|name| cell(title_of(report, name))))
            }));
        }
    }
    if report.treatments.iter().any(|t| t.percentiles.is_some()) {
        columns.push(Column::new("p95 ms", true, |t| {
            or_dash(
                t.percentiles
                    .and_then(|p| p.p95_ms)
                    .map(|ms| percentile(t, 95.0, ms)),
            )
        }));
        columns.push(Column::new("p99 ms", true, |t| {
            or_dash(
                t.percentiles
                    .and_then(|p| p.p99_ms)
                    .map(|ms| percentile(t, 99.0, ms)),
            )
        }));
    }
    columns.push(Column {
        untested: match compared {
            true => |_, _| "0".to_owned(),
            false => |_, why| format!("not tested: {}", cell(why)),
        },
        ..Column::new("trials", true, trials)
    });
    if let Some(first) = columns.first_mut() {
        first.untested = |t, _| title(t);
    }
    columns
}

/// A percentile with its interval, where it has one.
fn percentile(treatment: &Treatment, percentile: f64, ms: f64) -> String {
    let point = DistributionPoint::find(&treatment.distribution, percentile);
    match point.and_then(|point| point.low_ms.zip(point.high_ms)) {
        Some((low, high)) => format!("{} ({} \u{2026} {})", number(ms), number(low), number(high)),
        None => number(ms),
    }
}

fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "\u{2013}".to_owned())
}

fn title(t: &Treatment) -> String {
    let risky = t.settings.iter().any(|s| s.risk == "durability");
    format!(
        "{}{}",
        cell(&t.title),
        if risky { " (trades durability)" } else { "" }
    )
}

fn title_of<'a>(report: &'a Report, name: &'a str) -> &'a str {
    let found = report.treatments.iter().find(|t| t.name == name);
    found.map_or(name, |t| &t.title)
}

fn trials(t: &Treatment) -> String {
    let mut text = t.trials_finished.to_string();
    if t.trials_failed > 0 {
        text += &format!(" (+{} failed)", t.trials_failed);
    }
    if t.trials_excluded > 0 {
        text += &format!(" ({} excluded)", t.trials_excluded);
    }
    text
}

fn settings(text: &mut String, report: &Report) {
    line!(text, "## Settings\n");
    for t in &report.treatments {
        let changed: Vec<String> = t
            .settings
            .iter()
            .filter(|s| s.changed || t.name == report.experiment.reference)
            .map(|s| match &s.effective {
                Some(effective) if *effective != s.value => {
                    format!("{} = {} (took effect as {})", s.knob, s.value, effective)
                }
                _ => format!("{} = {}", s.knob, s.value),
            })
            .collect();
        let shown = if changed.is_empty() {
            "as it is".to_owned()
        } else {
            changed.join(", ")
        };
        line!(text, "- {}: {}", cell(&t.title), cell(&shown));
        if let Some(reason) = &t.reason {
            line!(text, "  {}", cell(reason));
        }
    }
    line!(text);
}

fn excluded(text: &mut String, report: &Report) {
    let listed: Vec<_> = report
        .trials
        .iter()
        .filter(|t| {
            t.reason.is_some() || !t.disturbances.is_empty() || t.settled == Some(false) || t.excluded
        })
        .collect();
    if listed.is_empty() {
        return;
    }
    line!(text, "## Disturbed and excluded trials\n");
    line!(text, "| block | treatment | status | what |");
    line!(text, "|--:|---|---|---|");
    for t in listed {
        let mut what: Vec<String> = t.reason.iter().cloned().collect();
        what.extend(
            t.excluded
                .then(|| "excluded: its value has no ratio to others".to_owned()),
        );
        what.extend(t.disturbances.iter().cloned());
        if t.settled == Some(false) {
            what.push("throughput never settled".to_owned());
        }
        let mut status = format!("{:?}", t.status).to_lowercase();
        if t.excluded {
            status += ", excluded";
        }
        line!(
            text,
            "| {} | {} | {status} | {} |",
            t.block,
            cell(&t.treatment),
            cell(&what.join("; "))
        );
    }
    line!(text);
}

fn facts(text: &mut String, report: &Report) {
    line!(text, "## Facts\n");
    line!(text, "| of | fact | value |");
    line!(text, "|---|---|---|");
    for f in &report.facts {
        line!(
            text,
            "| {} | {} | {} |",
            cell(&f.group),
            cell(&f.name),
            cell(&f.shown())
        );
    }
    line!(text);
}

fn restored(text: &mut String, report: &Report) {
    if report.restored.is_empty() {
        return;
    }
    line!(text, "## Restored\n");
    line!(text, "| knob | was | set to | outcome |");
    line!(text, "|---|---|---|---|");
    for p in &report.restored {
        let detail = p.detail.as_ref().map(|d| format!(": {d}")).unwrap_or_default();
        line!(
            text,
            "| {} | {} | {} | {}{} |",
            cell(&p.knob),
            cell(&p.was),
            cell(&p.set_to),
            cell(&p.outcome),
            cell(&detail)
        );
    }
    line!(text);
}

fn repeat(text: &mut String, report: &Report) {
    line!(text, "## Repeat it\n");
    for command in &report.experiment.repeat {
        line!(text, "    {}", command.replace(['\n', '\r'], " "));
    }
    line!(text, "\nThe experiment file:\n");
    for file_line in report.experiment.file.lines() {
        // A return alone would end the line, and with it the code.
        line!(text, "    {}", file_line.replace('\r', " "));
    }
    line!(text, "\n{}", report.generator);
}
