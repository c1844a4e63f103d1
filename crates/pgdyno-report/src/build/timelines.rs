//! Loads in which something was done to the server: their throughput over time, and what each event has changed.

use super::analysis::Analysis;
use crate::model::{Shift, Timeline, TimelinePoint};
use pgdyno_record::{EventRecord, FINDING_EVENT_S, TreatmentRecord, TrialRecord};
use pgdyno_stats::{Comparison, Effect, Observation, Rules, decide};

/// Seconds after an event that belong to neither side: transactions that began before it are still under way.
const SETTLES_S: f64 = 1.0;

/// Numbers of the sides, as treatments of one comparison.
const BEFORE: usize = 0;
const AFTER: usize = 1;

/// One for each treatment whose trials had events.
pub(super) fn timelines(analysis: &Analysis<'_>) -> Vec<Timeline> {
    let record = analysis.record();
    let timeline = |(number, treatment): (usize, &TreatmentRecord)| {
        let trials: Vec<&TrialRecord> = trials(analysis, |i| i == number).collect();
        let events = &trials.first()?.events;
        let shifts = events.iter().map(|event| {
            let own = |i: usize| i == number;
            let sides: Vec<(f64, f64)> = trials
                .iter()
                .filter_map(|trial| sides(trial, &event.title))
                .collect();
            let happened: Vec<&EventRecord> = trials
                .iter()
                .filter_map(|trial| find(trial, &event.title))
                .collect();
            Shift {
                title: event.title.clone(),
                t_s: mean(happened.iter().map(|event| event.t_s)).unwrap_or(event.t_s),
                took_s: mean(happened.iter().map(|event| event.took_s)).unwrap_or(event.took_s),
                before_tps: mean(sides.iter().map(|side| side.0)),
                after_tps: mean(sides.iter().map(|side| side.1)),
                effect: shift(analysis, &event.title, own, record.confidence).flatten(),
            }
        });
        Some(Timeline {
            treatment: treatment.name.clone(),
            trials: trials.len(),
            warmup_s: mean(trials.iter().map(|trial| trial.warmup_s)).unwrap_or(0.0),
            seconds: over_time(&trials),
            shifts: shifts.collect(),
        })
    };
    record
        .treatments
        .iter()
        .enumerate()
        .filter_map(timeline)
        .collect()
}

/// Throughput after an event against before it, over the trials of these treatments; `Some(None)` where they are too few for an
/// interval, `None` where there are none.
pub(super) fn shift(
    analysis: &Analysis<'_>,
    event: &str,
    of: impl Fn(usize) -> bool,
    confidence: f64,
) -> Option<Option<Effect>> {
    let all: Vec<(f64, f64)> = trials(analysis, of)
        .filter_map(|trial| sides(trial, event))
        .collect();
    if all.is_empty() {
        return None;
    }
    // Each trial is a block in which both sides were measured.
    let observations: Vec<Observation> = all
        .iter()
        .enumerate()
        .flat_map(|(block, (before, after))| {
            [(BEFORE, *before), (AFTER, *after)].map(|(treatment, value)| Observation {
                treatment,
                block,
                value,
            })
        })
        .collect();
    let rules = Rules {
        confidence,
        ..analysis.rules("tps")
    };
    let comparison = Comparison {
        treatment: AFTER,
        reference: BEFORE,
    };
    Some(
        decide(&observations, &[comparison], rules)
            .into_iter()
            .next()
            .flatten(),
    )
}

/// Trials with events that count, of these treatments.
fn trials<'a>(
    analysis: &'a Analysis<'_>,
    of: impl Fn(usize) -> bool + 'a,
) -> impl Iterator<Item = &'a TrialRecord> + 'a {
    let treatments = analysis.record().treatments.iter().enumerate();
    let of_them = treatments.filter(move |(number, _)| of(*number));
    of_them
        .flat_map(|(_, treatment)| analysis.counted(&treatment.name))
        .filter(|trial| !trial.events.is_empty())
}

fn find<'t>(trial: &'t TrialRecord, title: &str) -> Option<&'t EventRecord> {
    trial.events.iter().find(|event| event.title == title)
}

/// Mean throughput before and after an event, between the events around it; `None` where a side is too short, or at a standstill.
fn sides(trial: &TrialRecord, title: &str) -> Option<(f64, f64)> {
    let place = trial.events.iter().position(|event| event.title == title)?;
    let end_of = |event: &EventRecord| event.t_s + event.took_s + SETTLES_S;
    let from_s = match place {
        0 => trial.warmup_s,
        _ => end_of(&trial.events[place - 1]),
    };
    let event = &trial.events[place];
    let to_s = trial.events.get(place + 1).map_or(f64::INFINITY, |next| next.t_s);
    let level = |from_s: f64, to_s: f64| {
        // A second is known by its end.
        let within = trial
            .seconds
            .iter()
            .filter(|second| second.t_s > from_s + 0.5 && second.t_s <= to_s + 0.05);
        let values: Vec<f64> = within.map(|second| second.tps).collect();
        #[expect(clippy::cast_precision_loss, reason = "seconds of a load")]
        let is_enough = values.len() as f64 >= FINDING_EVENT_S - 2.0;
        mean(values.into_iter()).filter(|level| is_enough && *level > 0.0)
    };
    Some((level(from_s, event.t_s)?, level(end_of(event), to_s)?))
}

/// Mean throughput of each second over the trials.
fn over_time(trials: &[&TrialRecord]) -> Vec<TimelinePoint> {
    let most = trials.iter().map(|trial| trial.seconds.len()).max().unwrap_or(0);
    let point = |at: usize| {
        let seconds: Vec<_> = trials.iter().filter_map(|trial| trial.seconds.get(at)).collect();
        Some(TimelinePoint {
            t_s: mean(seconds.iter().map(|second| second.t_s))?,
            tps: mean(seconds.iter().map(|second| second.tps))?,
        })
    };
    (0..most).filter_map(point).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    #[expect(clippy::cast_precision_loss, reason = "a number of trials or seconds")]
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
