//! The list of experiments, and the words that people give them: tags and notes, which are all that is ever written.

use super::App;
use super::answer::{Body, number, takes_gzip};
use super::problem::Problem;
use super::summary::{Stamp, Summary};
use crate::cli::{life, since};
use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use pgdyno_store::{Filter, Life, Listed, Store};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A list waits so long for answers that are not known yet; those that are missing then come with a later one.
const FOR_ANSWERS: Duration = Duration::from_millis(60);
/// Of an instant since 1973.
const MS_DIGITS_MIN: usize = 12;

pub(super) async fn list(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let filter = filter(query.as_deref().unwrap_or_default())?;
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

/// What is asked for; empty words ask for nothing.
fn filter(query: &str) -> Result<Filter, Problem> {
    let mut filter = Filter::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let value = value.trim().to_owned();
        if value.is_empty() {
            continue;
        }
        let wrong = |expected: String| Problem::wrong(format!("{name}: {expected}"));
        match &*name {
            "tag" => filter.tags.push(value),
            "name" => filter.name = Some(value),
            "search" => filter.search = Some(value),
            "status" if value == Life::RunningOrKilled.word() => filter.life = Some(Life::RunningOrKilled),
            "status" => filter.life = Some(life(&value).map_err(wrong)?),
            "since" => filter.since_unix_ms = Some(instant(&value).map_err(wrong)?),
            _ => {
                return Err(Problem::wrong(format!(
                    "there is no filter {name:?}: expected tag, name, status, since or search"
                )));
            }
        }
    }
    Ok(filter)
}

/// A day, an instant, or milliseconds since 1970; a year alone is none of them.
fn instant(text: &str) -> Result<u64, String> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return since(text);
    }
    let ms = text.parse().ok().filter(|_| text.len() >= MS_DIGITS_MIN);
    ms.ok_or_else(|| format!("milliseconds since 1970 have {MS_DIGITS_MIN} digits or some more"))
}

/// The list, and whether something is to be made behind the scenes: what the list lacks, or the report of what has ended since.
fn rows(app: &App, store: &Store, filter: &Filter) -> Result<(Value, bool), Problem> {
    let (mut is_whole, mut has_ended) = (true, false);
    let found = store.find(filter)?;
    let begun = Instant::now();
    let mut rows = Vec::new();
    for listed in found {
        let (id, stamp) = (listed.id, Stamp::from(&listed));
        let summary = match app.summaries.known(id, stamp) {
            Some(known) => known,
            // What the store keeps back just now comes with a later list, as what there was no time for.
            None if begun.elapsed() < FOR_ANSWERS => {
                let made = app.summaries.one_of_many(store, id, stamp);
                has_ended |= listed.life != Life::Running;
                is_whole &= made.is_ok();
                made.ok().flatten()
            }
            None => {
                is_whole = false;
                None
            }
        };
        rows.push(row(&listed, summary.as_deref()));
    }
    Ok((
        json!({"experiments": rows, "is_whole": is_whole}),
        !is_whole || has_ended,
    ))
}

fn row(listed: &Listed, summary: Option<&Summary>) -> Value {
    json!({
        "id": listed.id, "name": listed.name, "question": listed.question, "status": listed.life.word(),
        "started_unix_ms": listed.started_unix_ms, "finished_unix_ms": listed.finished_unix_ms,
        "target": listed.target, "trials_finished": listed.trials_finished, "trials_failed": listed.trials_failed,
        "trials_planned": summary.map(|s| s.planned), "answer": summary.and_then(|s| s.answer.as_deref()), "tags": listed.tags, "notes": listed.notes,
    })
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

/// What a note is sent as.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewNote {
    text: String,
}

pub(super) async fn add_note(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let id = number(&id, "experiment")?;
    is_json(&headers)?;
    let new: NewNote = serde_json::from_slice(&body)
        .map_err(|error| Problem::wrong(format!("expected {{\"text\": \"...\"}}: {error}")))?;
    let make = move |_: &App, store: &mut Store| {
        let number = store.note(id, &new.text)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_words_make_it_panic(query in "((tag|name|status|since|search|x)=?.{0,20}&?){0,4}") {
            let _ = filter(&query);
        }
    }

    #[test]
    fn filters_are_those_of_the_command_line() {
        let found =
            filter("tag=a&tag=b%20&name=&status=killed&since=1970-01-02T00:00:00Z&search=x+y").unwrap();
        assert_eq!(found.tags, ["a", "b"]);
        assert_eq!((found.name, found.search.as_deref()), (None, Some("x y")));
        assert_eq!(
            (found.life, found.since_unix_ms),
            (Some(Life::Killed), Some(86_400_000))
        );
        assert_eq!(
            filter("since=123456789012").unwrap().since_unix_ms,
            Some(123_456_789_012)
        );
        assert_eq!(
            filter("status=running+or+killed").unwrap().life,
            Some(Life::RunningOrKilled)
        );
        assert_eq!(filter("").unwrap(), Filter::default());
        for bad in [
            "status=x",
            "since=soon",
            "since=2026",
            "since=2026-11-01T08:00",
            "tga=x",
            "%ff=1",
        ] {
            assert_eq!(filter(bad).unwrap_err().status, StatusCode::BAD_REQUEST, "{bad}");
        }
    }
}
