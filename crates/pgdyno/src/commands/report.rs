//! `pgdyno report`: what an experiment has shown.

use crate::cli::{Format, ReportArgs};
use crate::commands::experiment::absolute;
use crate::context::{Context, now_unix_ms};
use crate::exit::{self, Usage};
use anyhow::Context as _;
use pgdyno_report::{Report, csv, html, markdown};
use pgdyno_store::Store;
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
    let store = context.store(args.store.as_deref())?;
    let id = match args.id {
        Some(id) => id,
        None => store
            .list()?
            .first()
            .map(|(stored, _)| stored.id)
            .ok_or_else(|| Usage(format!("there is no experiment in {}", store.place())))?,
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
