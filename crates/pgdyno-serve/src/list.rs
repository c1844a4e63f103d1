//! The list of experiments, and the texts that people give them: tags and notes, which are all that
//! is ever written.

use super::App;
use super::answer::{Body, number, takes_gzip};
use super::problem::Problem;
use super::stamp::Stamp;
use crate::asked;
use crate::document::{ListDocument, ListRow};
use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use pgdyno_store::{Filter, Life, Store};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A list waits so long for answers that are not known yet; those that are missing then come with a
/// later one.
const FOR_ANSWERS: Duration = Duration::from_millis(60);

pub(super) async fn list(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let filter = asked::filter(query.as_deref().unwrap_or_default()).map_err(Problem::wrong)?;
    let pack = takes_gzip(&headers);
    let make = move |app: &App, store: &mut Store| {
        let (rows, is_due) = rows(app, store, &filter)?;
        Ok((Body::json(&rows, pack)?, is_due))
    };
    let (body, is_due) = app.with_store(make).await?;
    if is_due {
        app.fill_summaries();
    }
    Ok(body.into_response())
}

/// The list, and whether something is to be made behind the scenes: what the list lacks, or the
/// report of what has ended since.
fn rows(app: &App, store: &Store, filter: &Filter) -> Result<(ListDocument, bool), Problem> {
    let (mut is_whole, mut has_ended) = (true, false);
    let found = store.find(filter)?;
    let begun = Instant::now();
    let mut rows = Vec::new();
    for listed in found {
        let (id, stamp) = (listed.id, Stamp::from(&listed));
        let summary = match app.summaries.known(id, stamp) {
            Some(known) => known,
            // What the store keeps back just now comes with a later list, as what there was no time
            // for.
            None if begun.elapsed() < FOR_ANSWERS => {
                let made = app
                    .summaries
                    .one_of_many((store, app.source.catalogue()), id, stamp);
                has_ended |= listed.life != Life::Running;
                is_whole &= made.is_ok();
                made.ok().flatten()
            }
            None => {
                is_whole = false;
                None
            }
        };
        let planned = summary.as_ref().and_then(|summary| summary.planned);
        let answer = summary.and_then(|summary| summary.answer.clone());
        rows.push(ListRow::new(listed, planned, answer));
    }
    let list = ListDocument {
        experiments: rows,
        is_whole,
    };
    Ok((list, !is_whole || has_ended))
}

pub(super) async fn notes(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = number(&id, "experiment")?;
    app.json(&headers, move |_, store| Ok(json!({"notes": store.notes(id)?})))
        .await
}

pub(super) async fn add_note(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let id = number(&id, "experiment")?;
    is_json(&headers)?;
    let text = asked::new_note(&body).map_err(Problem::wrong)?;
    let make = move |_: &App, store: &mut Store| {
        let number = store.note(id, &text)?;
        let note = store.notes(id)?.into_iter().find(|note| note.id == number);
        Ok(json!(note))
    };
    let mut response = app.json(&headers, make).await?;
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

/// A page of another site cannot send this kind without asking first, which is never granted.
fn is_json(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.map(|kind| kind.split(';').next().unwrap_or_default().trim());
    match kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) {
        true => Ok(()),
        false => Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body of this request is not marked as JSON",
        )
        .do_this("send the header `Content-Type: application/json`")),
    }
}

pub(super) async fn remove_note(
    State(app): State<Arc<App>>,
    Path((id, note)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let (id, note) = (number(&id, "experiment")?, number(&note, "note")?);
    app.with_store(move |_, store| match store.remove_note(id, note)? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::nothing(format!("experiment {id} has no note {note}"))),
    })
    .await
}

pub(super) async fn tags(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = number(&id, "experiment")?;
    app.json(&headers, move |_, store| Ok(json!({"tags": store.tags(id)?})))
        .await
}

/// That it is there already is as good.
pub(super) async fn tag(
    State(app): State<Arc<App>>,
    Path((id, word)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let id = number(&id, "experiment")?;
    app.with_store(move |_, store| Ok(store.tag(id, &word).map(|_| StatusCode::NO_CONTENT)?))
        .await
}

/// That it is gone already is as good.
pub(super) async fn untag(
    State(app): State<Arc<App>>,
    Path((id, word)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let id = number(&id, "experiment")?;
    app.with_store(move |_, store| Ok(store.untag(id, &word).map(|_| StatusCode::NO_CONTENT)?))
        .await
}
