//! One experiment: its report, the details of a trial, what a throughput takes by it, and two things of the store held
//! against each other.

use super::App;
use super::answer::{Body, number, takes_gzip};
use super::problem::Problem;
use super::summary::Stamp;
use crate::commands::capacity::{self, USUAL_TPS};
use crate::commands::compare::document;
use crate::commands::report;
use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use pgdyno_lab::capacity::{Ladder, Question, answer};
use pgdyno_lab::compare::{Named, Reference, compare};
use pgdyno_record::StoredExperiment;
use pgdyno_stats::Price;
use pgdyno_store::{Filter, Store};
use std::sync::Arc;

/// More figures than that nobody compares.
const METRICS_MAX: usize = 50;

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

/// The report as it is sent: the one that was made already, if nothing of the experiment has changed.
pub(super) fn report_of(app: &App, store: &Store, id: i64, pack: bool) -> Result<Body, Problem> {
    let stamp = Stamp::from(&store.pulse(id)?);
    app.reports.of((id, pack), stamp, || {
        let stored = store.experiment(id)?;
        let mut report = report::of_stored(&app.context, store, &stored)?;
        app.summaries.told(&report, &stored.record, stamp);
        report.thin(report::PAGE_POINTS_MAX);
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
    let question = question(&query.unwrap_or_default())?;
    app.json(&headers, move |app, store| {
        let stored = store.experiment(id)?;
        let catalogue = &app.context.catalogue;
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

/// What a query asks for: the usual throughput where it names none.
fn question(query: &str) -> Result<Question, Problem> {
    let positive = |name: &str| -> Result<Option<f64>, Problem> {
        let Some(text) = value_of(query, name).filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let number = text.parse::<f64>().ok();
        let number = number.filter(|number| number.is_finite() && *number > 0.0);
        let wrong = || Problem::wrong(format!("{name}: expected a number above 0"));
        number.map(Some).ok_or_else(wrong)
    };
    let price = match (positive("price_per_cpu_hour")?, positive("price_per_host_hour")?) {
        (Some(_), Some(_)) => {
            return Err(Problem::wrong(
                "there are two prices: give that of a CPU or that of the host",
            ));
        }
        (Some(cpu), None) => Some(Price::PerCpuHour(cpu)),
        (None, host) => host.map(Price::PerHostHour),
    };
    Ok(Question {
        tps: positive("tps")?.unwrap_or(USUAL_TPS),
        p99_ms: positive("p99_ms")?,
        price,
    })
}

/// The first value of a name in a query.
fn value_of(query: &str, wanted: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let found = pairs.find(|(name, _)| name == wanted);
    found.map(|(_, value)| value.into_owned())
}

pub(super) async fn compared(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = query.unwrap_or_default();
    let value = |wanted: &str| value_of(&query, wanted);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_read_from_the_query() {
        let check = |query: &str, expected: Result<(f64, Option<f64>, Option<Price>), &str>| {
            let found = question(query)
                .map(|question| (question.tps, question.p99_ms, question.price))
                .map_err(|problem| problem.error);
            match expected {
                Ok(expected) => assert_eq!(found, Ok(expected), "{query}"),
                Err(word) => assert!(found.is_err_and(|error| error.contains(word)), "{query}"),
            }
        };
        check("", Ok((USUAL_TPS, None, None)));
        check("tps=1000&p99_ms=20", Ok((1000.0, Some(20.0), None)));
        check(
            "price_per_cpu_hour=0.04",
            Ok((USUAL_TPS, None, Some(Price::PerCpuHour(0.04)))),
        );
        check(
            "price_per_host_hour=2&p99_ms=",
            Ok((USUAL_TPS, None, Some(Price::PerHostHour(2.0)))),
        );
        check("tps=0", Err("tps"));
        check("tps=many", Err("tps"));
        check("p99_ms=inf", Err("p99_ms"));
        check("price_per_host_hour=2&price_per_cpu_hour=1", Err("two prices"));
    }
}
