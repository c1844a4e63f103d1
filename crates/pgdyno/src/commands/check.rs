//! `pgdyno check`: small measurements of a target, a line for each as it is done.

use crate::cli::CheckArgs;
use crate::context::{Context, stop_flag};
use crate::exit;
use crate::failure::{Result, Usage};
use crate::output;
use crate::target;
use indicatif::{ProgressBar, ProgressStyle};
use pgdyno_host::HostAccess;
use pgdyno_lab::check::{Asked, Better, CheckReport, Event, Grade, Limits, Measured, Step, check, shown};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

const FORMAT: &str = "pgdyno-check/1";

pub(crate) fn run(context: &Context, args: &CheckArgs) -> Result<u8> {
    let steps = steps(args)?;
    let directory = args.dir.as_deref().map(std::path::absolute).transpose()?;
    if let Some(directory) = directory.as_ref().filter(|directory| !directory.is_dir()) {
        return Err(Usage(format!("--dir: {} is not a directory", directory.display())).into());
    }
    let found = args.target.as_deref().map(|text| target::conninfo(context, text));
    let conninfo = found.transpose()?.map(|(conninfo, _)| conninfo);
    let host: Arc<dyn HostAccess> = Arc::new(context.host.clone());
    let asked = Asked {
        conninfo: conninfo.as_ref(),
        host: &host,
        steps,
        length: Duration::from_secs_f64(args.seconds),
        host_only: args.host_only,
        directory,
    };
    let stop = stop_flag()?;
    let bar = spinner();
    let report = check(&asked, &stop, &mut |event| match event {
        Event::Remark(text) => bar.suspend(|| err!("{text}")),
        Event::Now(text) => output::show_beside(&bar, text),
        Event::Done(measured) if !args.json => bar.suspend(|| print(measured)),
        Event::Done(_) => {}
    });
    bar.finish_and_clear();
    let report = report?;
    match args.json {
        true => put_page!("{:#}", as_json(&report)?),
        false => summary(&report),
    }
    if report.is_stopped {
        fail!("stopped before the end; the files that were made are gone");
    }
    if !report.has_figures() {
        fail!("nothing could be measured, for the reasons above");
    }
    Ok(match report.poor().next() {
        Some(_) => exit::NOT_HELD,
        None => exit::FINE,
    })
}

/// What is to be measured, in its usual order.
fn steps(args: &CheckArgs) -> Result<Vec<Step>> {
    let of_server = args.only.iter().find(|step| step.asks_the_server());
    if let Some(step) = of_server.filter(|_| args.host_only) {
        return Err(Usage(format!(
            "{} asks the server, which --host-only forbids",
            step.name()
        ))
        .into());
    }
    Ok(Step::ALL
        .into_iter()
        .filter(|step| match args.only.is_empty() {
            true => !(args.host_only && step.asks_the_server()),
            false => args.only.contains(step),
        })
        .collect())
}

/// Shown on a terminal only.
fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} measuring {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn print(measured: &Measured) {
    let figure = measured.figure.map_or_else(
        || "-".to_owned(),
        |figure| format!("{} {}", shown(figure), measured.unit),
    );
    let mut line = format!(
        "{:<16}{figure:>11}  {:<8} {}",
        measured.name,
        measured.verdict.word(),
        measured.spread
    );
    if let Some(limits) = measured.limits {
        line += &format!(" ({})", compared(limits));
    }
    if let Some(why) = &measured.why {
        line = format!(
            "{}{}{why}",
            line.trim_end(),
            if measured.spread.is_empty() { "  " } else { ": " }
        );
    }
    put!("{}", line.trim_end());
    for note in &measured.notes {
        put!("{:27}  {note}", "");
    }
}

/// What a figure is compared with.
fn compared(limits: Limits) -> String {
    let (good, poor, unit) = (number(limits.good), number(limits.poor), limits.unit);
    match limits.better {
        Better::Less => format!("good below {good} {unit}, poor from {poor}"),
        Better::More => format!("good above {good} {unit}, poor up to {poor}"),
    }
}

/// A limit as it is written in the table.
fn number(limit: f64) -> String {
    limit.to_string()
}

fn summary(report: &CheckReport) {
    let of = |grade| report.measurements.iter().filter(|m| m.verdict == grade).count();
    put!("");
    put!(
        "{} good, {} fair, {} poor, {} unknown, in {:.0} s",
        of(Grade::Good),
        of(Grade::Fair),
        of(Grade::Poor),
        of(Grade::Unknown),
        report.elapsed_s
    );
    for measured in report.poor() {
        if let Some(advice) = &measured.advice {
            put!("{}: {advice}", measured.name);
        }
    }
}

fn as_json(report: &CheckReport) -> Result<serde_json::Value> {
    let mut document = json!({ "format": FORMAT });
    if let (Some(document), serde_json::Value::Object(fields)) =
        (document.as_object_mut(), serde_json::to_value(report)?)
    {
        document.extend(fields);
    }
    Ok(document)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_say_which_way_is_better() {
        let mut limits = Limits {
            unit: "ms",
            good: 0.5,
            poor: 2.0,
            better: Better::Less,
        };
        assert_eq!(compared(limits), "good below 0.5 ms, poor from 2");
        limits.better = Better::More;
        assert_eq!(compared(limits), "good above 0.5 ms, poor up to 2");
    }
}
