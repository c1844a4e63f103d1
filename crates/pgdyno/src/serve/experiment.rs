//! One experiment: its report, the details of a trial, and two things of the store held against each other.

use super::App;
use super::answer::number;
use super::problem::Problem;
use crate::commands::compare::document;
use crate::commands::report;
use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use pgdyno_lab::compare::{Named, Reference, compare};
use pgdyno_store::{Filter, Store, StoredExperiment};
use std::sync::Arc;

/// More figures than that nobody compares.
const METRICS_MAX: usize = 50;

pub(super) async fn report(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = number(&id, "experiment")?;
    app.json(&headers, move |_, store| {
        let stored = store.experiment(id)?;
        let mut report = report::of_stored(store, &stored)?;
        report.thin(report::PAGE_POINTS_MAX);
        Ok(report)
    })
    .await
}

pub(super) async fn trial(
    State(app): State<Arc<App>>,
    Path((id, trial)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (id, trial) = (number(&id, "experiment")?, number(&trial, "trial")?);
    app.json(&headers, move |_, store| {
        let stored = store.experiment(id)?;
        let none = || Problem::nothing(format!("experiment {id} has no trial {trial}"));
        // Series are long: only those of this experiment's own trials are unpacked.
        if !stored.trials.iter().any(|(number, _)| *number == trial) {
            return Err(none());
        }
        pgdyno_report::trial(&stored, trial, &store.series(trial)?).ok_or_else(none)
    })
    .await
}

pub(super) async fn compared(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = query.unwrap_or_default();
    let value = |wanted: &str| {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        let found = pairs.find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.into_owned())
    };
    let reference = |name: &str| -> Result<Reference, Problem> {
        let text =
            value(name).ok_or_else(|| Problem::wrong(format!("{name} is missing: what is compared?")))?;
        let wrong = |error| Problem::wrong(format!("{name}: {error}"));
        text.parse().map_err(wrong)
    };
    let (a, b) = (reference("a")?, reference("b")?);
    let metrics: Vec<String> = form_urlencoded::parse(query.as_bytes())
        .filter(|(name, _)| name == "metric")
        .map(|(_, value)| value.into_owned())
        .take(METRICS_MAX)
        .collect();
    app.json(&headers, move |_, store| {
        let (stored_a, stored_b) = (meant(store, &a)?, meant(store, &b)?);
        let side = |stored, which| Named {
            stored,
            which,
            store: None,
        };
        let comparison = compare(side(&stored_a, &a.which), side(&stored_b, &b.which), &metrics)?;
        Ok(document(&comparison, &[]))
    })
    .await
}

/// The experiment of a reference; the newest where it names none.
fn meant(store: &Store, reference: &Reference) -> Result<StoredExperiment, Problem> {
    let id = match reference.experiment {
        Some(id) => id,
        None => {
            let newest = store.find(&Filter::default())?;
            let newest = newest.first();
            newest
                .ok_or_else(|| Problem::nothing("there is no experiment in the store"))?
                .id
        }
    };
    Ok(store.experiment(id)?)
}
