//! An experiment that is run, as a stream of events: how far it is, trials as they are stored, and
//! its end.

use super::App;
use super::answer::number;
use super::now_unix_ms;
use super::problem::Problem;
use super::stamp::Stamp;
use super::summary::Summary;
use crate::document::{Current, Decided, Progress};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use pgdyno_stats::Verdict;
use pgdyno_store::{Life, Pulse, Store};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{MissedTickBehavior, interval};

/// The store is read so often: what a trial does changes no faster for people.
const LOOK: Duration = Duration::from_secs(1);
/// Events that wait for a slow reader; then the looking waits too.
const WAITING_MAX: usize = 16;

/// A stream of events, as they come.
struct Feed(Receiver<Event>);

impl Stream for Feed {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|event| event.map(Ok))
    }
}

pub(super) async fn live(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = number(&id, "experiment")?;
    let many = |_| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many live views are open")
            .do_this("close some of them")
    };
    let place = Arc::clone(&app.streams).try_acquire_owned().map_err(many)?;
    // A browser that comes back says which trial it has seen last.
    let seen = headers
        .get("last-event-id")
        .and_then(|value| value.to_str().ok()?.parse().ok());
    let (watcher, first) = app.look(Watcher { id, seen }).await?;
    let (to, feed) = channel(WAITING_MAX);
    tokio::spawn(watch(Arc::clone(&app), watcher, first, to, place));
    Ok(Sse::new(Feed(feed)).into_response())
}

/// Sends what is seen until the experiment ends, the reader goes, or the program ends.
async fn watch(
    app: Arc<App>,
    mut watcher: Watcher,
    first: Seen,
    to: Sender<Event>,
    _place: OwnedSemaphorePermit,
) {
    let mut ending = app.ending.clone();
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    let mut seen: Result<Seen, Problem> = Ok(first);
    loop {
        let (events, is_over) = match seen {
            Ok(seen) => (seen.events, seen.is_over),
            Err(problem) if problem.status == StatusCode::NOT_FOUND => {
                (vec![event("end", &json!({"status": "removed"}))], true)
            }
            Err(problem) => (vec![event("trouble", &problem.as_json())], false),
        };
        for event in events {
            tokio::select! {
                sent = to.send(event) => if sent.is_err() { return },
                _ = ending.changed() => return,
            }
        }
        if is_over {
            return;
        }
        tokio::select! {
            _ = ticks.tick() => {}
            () = to.closed() => return,
            _ = ending.changed() => return,
        }
        seen = app.look(watcher).await.map(|(looked, seen)| {
            watcher = looked;
            seen
        });
    }
}

impl App {
    /// What is to be reported now, and the watcher that has reported it.
    async fn look(self: &Arc<App>, mut watcher: Watcher) -> Result<(Watcher, Seen), Problem> {
        self.with_store(move |app, store| {
            let seen = watcher.look(app, store)?;
            Ok((watcher, seen))
        })
        .await
    }
}

fn event(name: &str, data: &Value) -> Event {
    // JSON has no line breaks of its own.
    Event::default().event(name).data(data.to_string())
}

/// What one look has shown.
struct Seen {
    events: Vec<Event>,
    is_over: bool,
}

#[derive(Clone, Copy)]
struct Watcher {
    id: i64,
    /// Number of the last trial that was reported.
    seen: Option<i64>,
}

impl Watcher {
    fn look(&mut self, app: &App, store: &Store) -> Result<Seen, Problem> {
        let pulse = store.pulse(self.id)?;
        let new = store.trials_after(self.id, self.seen.unwrap_or(0))?;
        let mut events = Vec::new();
        // Who has seen none yet has what is stored by another way; new ones count from now on.
        for trial in new.iter().filter(|_| self.seen.is_some()) {
            events.push(event("trial", &json!({"id": trial})).id(trial.to_string()));
        }
        let seen = new.last().copied().or(self.seen).unwrap_or(0);
        self.seen = Some(seen);
        let summary = app
            .summaries
            .of((store, app.source.catalogue()), self.id, Stamp::from(&pulse))?;
        let summary = summary.ok_or_else(|| {
            Problem::failed(format!("the trials of experiment {} cannot be read", self.id))
                .do_this("`pgdyno check-store` shows what of the store is readable")
        })?;
        // With its number, so that who is cut off before the first trial misses none.
        events.push(event("progress", &json!(progress(&pulse, &summary))).id(seen.to_string()));
        let is_over = !matches!(pulse.life, Life::Running | Life::RunningOrKilled);
        if is_over {
            events.push(event("end", &json!({"status": pulse.life.word()})));
        }
        Ok(Seen { events, is_over })
    }
}

fn progress(pulse: &Pulse, summary: &Summary) -> Progress {
    let said = pulse.progress.as_ref();
    let current = said.and_then(|said| {
        let current = said.current.as_ref()?;
        Some(Current {
            treatment: current.treatment.clone(),
            block: current.block,
            phase: said.phase.clone(),
        })
    });
    let decided = summary.treatments.iter().filter_map(|t| {
        let verdict = t.effect?.verdict;
        let treatment = t.name.clone();
        (verdict != Verdict::Undecided).then_some(Decided { treatment, verdict })
    });
    Progress {
        trials_finished: pulse.trials_finished,
        trials_failed: pulse.trials_failed,
        trials_planned: planned(pulse, summary),
        elapsed_s: elapsed_s(pulse),
        left_s: said.and_then(|said| said.left_s(now_unix_ms())),
        phase: said.map(|said| said.phase.clone()),
        current,
        decided: decided.collect(),
    }
}

/// Trials at most: what its process says, for it knows which do not come any more, else by the
/// plan.
pub(super) fn planned(pulse: &Pulse, summary: &Summary) -> Option<u64> {
    let said = pulse.progress.as_ref();
    said.map_or(summary.planned, |said| Some(u64::from(said.trials)))
}

/// Seconds that the process that runs it is at it, from the beginning to the end of one that has
/// ended in order; `None` where that is unknown.
pub(super) fn elapsed_s(pulse: &Pulse) -> Option<f64> {
    let (from, to) = match pulse.life {
        Life::Running => (pulse.progress.as_ref()?.begun_unix_ms, now_unix_ms()),
        _ => (pulse.started_unix_ms, pulse.finished_unix_ms?),
    };
    Some(seconds(to.saturating_sub(from)))
}

pub(super) fn seconds(ms: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "times, far below 2^53 ms")]
    let ms = ms as f64;
    ms / 1e3
}
