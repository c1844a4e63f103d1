//! `pgdyno report` and `pgdyno list`: what is in the store.

use crate::cli::{Format, ReportArgs, StoreArgs};
use crate::commands::experiment::absolute;
use crate::context::{Context, now_unix_ms};
use crate::exit::{self, Usage};
use crate::show;
use anyhow::Context as _;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use pgdyno_report::{Report, csv, html, markdown};
use pgdyno_store::{ExperimentStatus, Store};
use serde_json::json;
use std::path::{Path, PathBuf};

const GENERATOR: &str = concat!("pgdyno ", env!("CARGO_PKG_VERSION"));

/// The report of a stored experiment.
pub(crate) fn build(store: &Store, id: i64) -> anyhow::Result<Report> {
    Ok(pgdyno_report::build(
        &store.experiment(id)?,
        GENERATOR,
        now_unix_ms(),
    ))
}

/// Writes a report as one HTML file.
pub(crate) fn write_html(report: &Report, path: &Path) -> anyhow::Result<()> {
    std::fs::write(path, html(report)?).with_context(|| format!("{} could not be written", path.display()))
}

pub(crate) fn run(context: &Context, args: &ReportArgs) -> anyhow::Result<u8> {
    let store = Store::open(&context.store_path(args.store.as_deref()))?;
    let id = match args.id {
        Some(id) => id,
        None => store
            .list()?
            .first()
            .map(|(stored, _)| stored.id)
            .ok_or_else(|| Usage(format!("there is no experiment in {}", store.path().display())))?,
    };
    let report = build(&store, id)?;
    let text = match args.format {
        Format::Html => html(&report)?,
        Format::Md => markdown(&report),
        Format::Json => serde_json::to_string_pretty(&report)? + "\n",
        Format::Csv => csv(&report),
    };
    let default = (args.format == Format::Html).then(|| PathBuf::from(format!("pgdyno-report-{id}.html")));
    match args
        .output
        .clone()
        .or(default)
        .filter(|path| path != Path::new("-"))
    {
        Some(path) => {
            std::fs::write(&path, text)
                .with_context(|| format!("{} could not be written", path.display()))?;
            tell!("report: {}", absolute(&path).display());
        }
        None => put!("{}", text.trim_end()),
    }
    Ok(exit::FINE)
}

pub(crate) fn list(context: &Context, args: &StoreArgs) -> anyhow::Result<u8> {
    let store = Store::open(&context.store_path(args.store.as_deref()))?;
    let all = store.list()?;
    let status = |status: ExperimentStatus| match status {
        ExperimentStatus::Running => "running or killed",
        ExperimentStatus::Finished => "finished",
        ExperimentStatus::Interrupted => "interrupted",
    };
    if args.json {
        let rows: Vec<_> = all
            .iter()
            .map(|(stored, trials)| {
                json!({
                    "id": stored.id, "name": stored.record.name, "question": stored.record.question,
                    "status": stored.status, "started_unix_ms": stored.started_unix_ms,
                    "finished_unix_ms": stored.finished_unix_ms, "trials_finished": trials,
                    "target": stored.record.target,
                })
            })
            .collect();
        put!("{}", serde_json::to_string_pretty(&rows)?);
        return Ok(exit::FINE);
    }
    if all.is_empty() {
        tell!(
            "no experiments in {}; `pgdyno demo` makes one",
            store.path().display()
        );
        return Ok(exit::FINE);
    }
    let when = |ms: u64| {
        let time = i64::try_from(ms)
            .ok()
            .and_then(|ms| Timestamp::from_millisecond(ms).ok());
        time.map(|t| {
            t.to_zoned(TimeZone::system())
                .strftime("%Y-%m-%d %H:%M")
                .to_string()
        })
        .unwrap_or_default()
    };
    let rows = all
        .iter()
        .map(|(stored, trials)| {
            vec![
                stored.id.to_string(),
                when(stored.started_unix_ms),
                stored.record.name.clone(),
                stored.record.target.clone(),
                status(stored.status).to_owned(),
                trials.to_string(),
            ]
        })
        .collect();
    put!(
        "{}",
        show::table(
            &["id", "started", "name", "target", "status", "trials"],
            &[0, 5],
            rows
        )
    );
    Ok(exit::FINE)
}
