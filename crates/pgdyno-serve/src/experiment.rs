//! One experiment: its report, the details of a trial, what a throughput takes by it, and two
//! things of the store compared with each other.

use super::App;
use super::answer::{Body, number, takes_gzip};
use super::problem::Problem;
use super::stamp::Stamp;
use crate::asked;
use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use pgdyno_lab::capacity::{self, Ladder, USUAL_TPS, answer};
use pgdyno_lab::compare::{Named, Reference, compare, document};
use pgdyno_record::StoredExperiment;
use pgdyno_report::Report;
use pgdyno_store::{Filter, Store};
use std::sync::Arc;

pub(super) async fn report(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = number(&id, "experiment")?;
    let pack = takes_gzip(&headers);
    let body = app
        .with_store(move |app, store| report_of(app, store, id, pack))
        .await?;
    Ok(body.into_response())
}

/// The report as it is sent: the one that was made already, if nothing of the experiment has
/// changed.
pub(super) fn report_of(app: &App, store: &Store, id: i64, pack: bool) -> Result<Body, Problem> {
    let stamp = Stamp::from(&store.pulse(id)?);
    app.reports.of((id, pack), stamp, || {
        let stored = store.experiment(id)?;
        let mut report = app.source.report(store, &stored)?;
        app.summaries.keep_from(&report, &stored.record, stamp);
        report.thin(Report::PAGE_POINTS_MAX);
        Body::json(&report, pack)
    })
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

pub(super) async fn capacity(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = number(&id, "experiment")?;
    let question = asked::question(&query.unwrap_or_default(), USUAL_TPS).map_err(Problem::wrong)?;
    app.json(&headers, move |app, store| {
        let stored = store.experiment(id)?;
        let catalogue = app.source.catalogue();
        let unread = |error| {
            Problem::nothing(format!("experiment {id} has no answer: {error}"))
                .do_this("an earlier pgdyno took its file; run it again with this one")
        };
        if Ladder::of(&stored.record, catalogue).map_err(unread)?.is_empty() {
            return Err(Problem::nothing(capacity::varies_nothing(id))
                .do_this("`pgdyno run edb-cores` measures what there is an answer by"));
        }
        let answer = answer(&stored, catalogue, &question).map_err(unread)?;
        Ok(capacity::document(&answer, &question))
    })
    .await
}

pub(super) async fn compared(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (a, b, metrics) = asked::comparison(&query.unwrap_or_default()).map_err(Problem::wrong)?;
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
