//! The report as Markdown, to be read in a pull request.

use crate::model::{Report, Treatment};
use crate::words::{effect, number, verdict_word};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::fmt::Write;

/// The whole report but for charts and series.
pub fn markdown(report: &Report) -> String {
    let mut text = String::new();
    head(&mut text, report);
    verdicts(&mut text, report);
    settings(&mut text, report);
    excluded(&mut text, report);
    facts(&mut text, report);
    put_back(&mut text, report);
    repeat(&mut text, report);
    text
}

/// Text that must not become a table's border, a tag or a heading.
fn cell(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace('<', "&lt;")
        .replace(['\n', '\r'], " ")
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
        t.to_zoned(TimeZone::UTC)
            .strftime("%Y-%m-%d %H:%M UTC")
            .to_string()
    });
    line!(
        text,
        "{}; {} design, {} of {} blocks; {} at scale {}, {} clients, {} s warm-up and {} s measured; seed {}.\n",
        when.unwrap_or_default(),
        e.design,
        e.blocks_finished,
        e.blocks_planned,
        cell(&e.workload.name),
        e.workload.scale,
        e.workload.clients,
        e.workload.warmup_s,
        e.workload.measure_s,
        e.seed
    );
}

fn verdicts(text: &mut String, report: &Report) {
    line!(
        text,
        "| step | TPS | effect of the step | verdict | in all | p95 ms | p99 ms | trials |"
    );
    line!(text, "|---|--:|--:|---|--:|--:|--:|--:|");
    for t in &report.treatments {
        line!(text, "{}", row(t, report.decision.smallest_effect));
    }
    line!(text);
    if let Some(floor) = report.decision.noise_floor {
        line!(
            text,
            "Noise floor: trials of the same treatment differ by {:.1} % (standard deviation, {} degrees of freedom). {}\n",
            floor * 100.0,
            report.decision.degrees_of_freedom,
            report.decision.method
        );
    }
}

fn row(t: &Treatment, smallest_effect: f64) -> String {
    if let Some(why) = &t.why_not {
        return format!("| {} | | | not tested: {} | | | | 0 |", cell(&t.title), cell(why));
    }
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "\u{2013}".to_owned());
    let risky = t.settings.iter().any(|s| s.risk == "durability");
    format!(
        "| {}{} | {} | {} | {} | {} | {} | {} | {}{} |",
        cell(&t.title),
        if risky { " (trades durability)" } else { "" },
        or_dash(t.tps.as_ref().map(|i| number(i.mean))),
        or_dash(t.step.as_ref().map(effect)),
        or_dash(t.step.map(|s| verdict_word(s.verdict, smallest_effect))),
        or_dash(t.total.as_ref().map(effect)),
        or_dash(t.percentiles.map(|p| number(p.p95_ms))),
        or_dash(t.percentiles.map(|p| number(p.p99_ms))),
        t.trials_finished,
        if t.trials_failed > 0 {
            format!(" (+{} failed)", t.trials_failed)
        } else {
            String::new()
        }
    )
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
    let told: Vec<_> = report
        .trials
        .iter()
        .filter(|t| t.reason.is_some() || !t.disturbances.is_empty() || t.settled == Some(false))
        .collect();
    if told.is_empty() {
        return;
    }
    line!(text, "## Disturbed and excluded trials\n");
    line!(text, "| block | treatment | status | what |");
    line!(text, "|--:|---|---|---|");
    for t in told {
        let mut what: Vec<String> = t.reason.iter().cloned().collect();
        what.extend(t.disturbances.iter().cloned());
        if t.settled == Some(false) {
            what.push("throughput never settled".to_owned());
        }
        let status = format!("{:?}", t.status).to_lowercase();
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
        line!(text, "| {} | {} | {} |", f.group, cell(&f.name), cell(&f.shown()));
    }
    line!(text);
}

fn put_back(text: &mut String, report: &Report) {
    if report.put_back.is_empty() {
        return;
    }
    line!(text, "## Put back\n");
    line!(text, "| knob | was | set to | outcome |");
    line!(text, "|---|---|---|---|");
    for p in &report.put_back {
        let detail = p.detail.as_ref().map(|d| format!(": {d}")).unwrap_or_default();
        line!(
            text,
            "| {} | {} | {} | {}{} |",
            cell(&p.knob),
            cell(&p.was),
            cell(&p.set_to),
            p.outcome,
            cell(&detail)
        );
    }
    line!(text);
}

fn repeat(text: &mut String, report: &Report) {
    line!(text, "## Repeat it\n");
    for command in &report.experiment.repeat {
        line!(text, "    {command}");
    }
    line!(text, "\nThe experiment file:\n");
    for file_line in report.experiment.file.lines() {
        line!(text, "    {file_line}");
    }
    line!(text, "\n{}", report.generator);
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn nothing_in_a_name_breaks_a_table_or_becomes_a_tag() {
        assert_eq!(cell("a|b\n<img src=x>"), "a\\|b &lt;img src=x>");
    }
}
