//! `pgdyno report`: what an experiment has shown.

use crate::cli::{Format, ReportArgs, TrialsWanted};
use crate::commands::capacity;
use crate::context::{Context, now_unix_ms};
use crate::exit;
use crate::failure::{InContext as _, Result, Usage};
use crate::output;
use crate::paths::absolute;
use pgdyno_lab::searched;
use pgdyno_record::{ExperimentStatus, StoredExperiment};
use pgdyno_report::{Report, Scope, html, html_with, mark_metrics, pack};
use pgdyno_store::{Store, StoreError};
use std::io::Write;
use std::path::{Path, PathBuf};

const GENERATOR: &str = concat!("pgdyno ", env!("CARGO_PKG_VERSION"));

/// The report of a stored experiment.
pub(crate) fn build(context: &Context, store: &Store, id: i64) -> Result<Report> {
    Ok(of_stored(context, store, &store.experiment(id)?)?)
}

/// The same of one that was read already, with what marks its trials and what its ladder answers.
pub(crate) fn of_stored(
    context: &Context,
    store: &Store,
    stored: &StoredExperiment,
) -> Result<Report, StoreError> {
    let mut report = pgdyno_report::build(stored, GENERATOR, now_unix_ms());
    if stored.status == ExperimentStatus::Running {
        report.set_life(store.pulse(stored.id)?.life);
    }
    let trials: Vec<i64> = stored.trials.iter().map(|(trial, _)| *trial).collect();
    for (trial, series) in trials.iter().zip(store.series_named(&trials, &mark_metrics())?) {
        report.mark(stored, *trial, &series);
    }
    report.capacity = capacity::documents(context, stored);
    // Of a file that cannot be read any more there is a report all the same.
    if let Ok(Some(found)) = searched(stored, &context.catalogue) {
        report.set_search(stored, found);
    }
    Ok(report)
}

/// Writes a report as one HTML file with the details of all trials.
pub(crate) fn write_html(store: &Store, report: &Report, path: &Path) -> Result<()> {
    let stored = store.experiment(report.experiment.id)?;
    let text = page(store, &stored, report.clone(), &TrialsWanted::All)?;
    written(path, &text)
}

/// Statements and settings of a server are in it: a new file is its owner's alone.
fn written(path: &Path, text: &str) -> Result<()> {
    output::private_file(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("{} could not be written", path.display()))
}

fn page(
    store: &Store,
    stored: &StoredExperiment,
    mut report: Report,
    trials: &TrialsWanted,
) -> Result<String> {
    let wanted = |id: i64| match trials {
        TrialsWanted::All => true,
        TrialsWanted::None => false,
        TrialsWanted::These(ids) => ids.contains(&id),
    };
    if let TrialsWanted::These(ids) = trials {
        let strange = ids.iter().find(|id| !report.trials.iter().any(|t| t.id == **id));
        if let Some(id) = strange {
            let experiment = report.experiment.id;
            return Err(Usage(format!("experiment {experiment} has no trial {id}")).into());
        }
    }
    if *trials == TrialsWanted::None {
        report.thin(Report::PAGE_POINTS_MAX);
        return Ok(html(&report)?);
    }
    let mut read = |ids: &[i64], scope: Scope| store.series_of_trials(ids, |metric| scope.wants(metric));
    let (details, packed) = pack(stored, &report, &wanted, &mut read)?;
    report.thin(Report::PAGE_POINTS_MAX);
    Ok(html_with(&report, Some((&details, &packed)))?)
}

pub(crate) fn run(context: &Context, args: &ReportArgs) -> Result<u8> {
    let store = context.store_there(args.store.place())?;
    let id = match args.id {
        Some(id) => id,
        None => store
            .numbers()?
            .first()
            .map(|(id, _)| *id)
            .ok_or_else(|| Usage(format!("there is no experiment in {}", store.place())))?,
    };
    let stored = store.experiment(id)?;
    let report = of_stored(context, &store, &stored)?;
    let text = match args.format {
        Format::Html => page(&store, &stored, report, &args.trials)?,
        Format::Text(format) => format.render(&report)?,
    };
    // A page and a table are data, byte by byte; the others may be read in a terminal, also from a
    // file.
    let is_data = match args.format {
        Format::Html => true,
        Format::Text(format) => format.is_data(),
    };
    let text = match is_data {
        true => text,
        false => output::clean(&text).into_owned(),
    };
    let default = (args.format == Format::Html).then(|| PathBuf::from(format!("pgdyno-report-{id}.html")));
    match args
        .output
        .clone()
        .or(default)
        .filter(|path| path != Path::new("-"))
    {
        Some(path) => {
            written(&path, &text)?;
            err!("report: {}", absolute(&path).display());
        }
        None if is_data => {
            // Nobody may read on: `| head` has what it wants.
            let _ = output::data().write_all(text.as_bytes());
        }
        None => put_page!("{}", text.trim_end()),
    }
    Ok(exit::FINE)
}
