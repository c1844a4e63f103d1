//! One look, without a terminal: the overview as text, or everything as JSON.

use super::keys::State;
use super::model::{Link, Model, Update};
use super::rules::warnings;
use super::source::Source;
use super::{names, view};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Rates need two readings of each source; with a few more, waits have something to show.
const TICKS: u32 = 2;
/// A server that reports nothing for so many intervals is shown as it is.
const PATIENCE_TICKS: u32 = 10;
/// Width of the text in columns.
const COLUMNS: usize = 110;
const ROWS: usize = 40;

/// Reads until there are rates, or patience is at its end.
pub fn look(source: &Source, model: &mut Model, interval: Duration, stop: &AtomicBool) {
    let begun = Instant::now();
    let patience = interval * PATIENCE_TICKS + Duration::from_secs(2);
    let least = interval * TICKS;
    while begun.elapsed() < patience && !stop.load(Ordering::Relaxed) {
        if let Some(update) = source.wait(Duration::from_millis(100)) {
            let is_last = matches!(update, Update::Reading(_) | Update::Link(Link::Down(..)));
            model.apply(update, Instant::now());
            let is_known = model.value(names::COMMITS, names::ALL).is_some() || model.away().is_some();
            if is_last && is_known && begun.elapsed() >= least {
                break;
            }
        }
    }
    // What came in together with the last reading.
    while let Some(update) = source.wait(Duration::from_millis(200)) {
        let waits = matches!(update, Update::Waits(_));
        model.apply(update, Instant::now());
        if waits {
            break;
        }
    }
}

/// The values as text, as `--once` prints them.
pub fn text(model: &Model, state: &State) -> String {
    view::text(model, state, COLUMNS, ROWS)
}

/// For programs; docs/how-to/watch.md describes it.
pub fn as_json(model: &Model, interval: Duration) -> Value {
    let values: Vec<Value> = model
        .all()
        .map(|(key, value)| json!({ "metric": key.metric, "label": key.label, "value": value }))
        .collect();
    let waits: Vec<Value> = model
        .waits
        .means(usize::try_from(interval.as_secs()).unwrap_or(1).max(1) * 2)
        .into_iter()
        .map(|((kind, event), mean)| json!({ "type": kind, "event": event, "sessions": mean }))
        .collect();
    let warned: Vec<Value> = warnings(model)
        .into_iter()
        .map(|w| json!({ "text": w.text, "advice": w.advice, "source": w.source }))
        .collect();
    let missing: Vec<Value> = model
        .missing
        .iter()
        .map(|gap| json!({ "source": gap.source, "reason": gap.reason }))
        .collect();
    let ages = model.ages.as_ref().map(|rows| {
        rows.iter()
            .map(|row| {
                json!({ "database": row.database, "xid_age": row.xid_age, "multixact_age": row.multixact_age,
                        "freeze_max_age": row.freeze_max_age })
            })
            .collect::<Vec<_>>()
    });
    json!({
        "format": "pgdyno-watch/1",
        "target": model.about.target,
        "version": model.about.version,
        "away": model.away(),
        "interval_s": interval.as_secs_f64(),
        "values": values,
        "waits": waits,
        "ages": ages.ok(),
        "warnings": warned,
        "missing": missing,
    })
}
