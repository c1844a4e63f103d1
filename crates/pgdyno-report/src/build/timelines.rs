//! Loads in which something was done to the server: their throughput over time, and what each event
//! has changed.

use super::analysis::{Analysis, place_of};
use super::treatment::mean;
use crate::model::{Shift, Timeline, TimelinePoint};
use pgdyno_judge::shared;
use pgdyno_record::{EventRecord, SecondRecord, TrialRecord, TrialStatus};
use pgdyno_stats::{Comparison, Effect, Observation, Rules, decide, mean_interval};
use std::collections::{BTreeMap, BTreeSet};

/// Seconds after an event that belong to neither side: transactions that began before it are still
/// under way, and clients that were thrown out connect again within two.
const SETTLES_S: f64 = 3.0;
/// Seconds that say something of a level, and of a trend.
const LEVEL_LEAST: usize = 5;
const TREND_LEAST: usize = 10;

/// Numbers of the sides, as treatments of one comparison.
const BEFORE: usize = 0;
const AFTER: usize = 1;

/// Throughput on both sides of an event.
#[derive(Debug, Clone, Copy)]
struct Sides {
    before: f64,
    after: f64,
    /// What the slope before it, straight on, makes of the middle of one side up to that of the
    /// other, as a share of the throughput before; `None` of too few seconds.
    trend: Option<f64>,
}

/// One for each treatment whose trials had events.
pub(super) fn timelines(analysis: &Analysis<'_>) -> Vec<Timeline> {
    let record = analysis.record();
    let of = |number: usize| trials(analysis, move |i| i == number).collect::<Vec<&TrialRecord>>();
    let numbers = (0..record.treatments.len()).map(|number| (number, of(number)));
    let with_events: Vec<(usize, Vec<&TrialRecord>)> =
        numbers.filter(|(_, trials)| !trials.is_empty()).collect();
    let together: usize = with_events.iter().map(|(_, trials)| trials[0].events.len()).sum();
    let confidence = shared(record.confidence, together);
    let timeline = |(number, trials): &(usize, Vec<&TrialRecord>)| Timeline {
        treatment: record.treatments[*number].name.clone(),
        trials: trials.len(),
        warmup_s: mean(trials.iter().map(|trial| trial.warmup_s)).unwrap_or(0.0),
        seconds: over_time(trials),
        shifts: trials[0]
            .events
            .iter()
            .map(|event| shift_of(analysis, trials, event, confidence))
            .collect(),
    };
    with_events.iter().map(timeline).collect()
}

fn shift_of(analysis: &Analysis<'_>, trials: &[&TrialRecord], event: &EventRecord, confidence: f64) -> Shift {
    let sides: Vec<Sides> = trials
        .iter()
        .filter_map(|trial| sides(trial, &event.title))
        .collect();
    let happened = || trials.iter().filter_map(|trial| find(trial, &event.title));
    let (effect, trend) = effect_over(analysis, trials.iter().copied(), &event.title, confidence);
    Shift {
        title: event.title.clone(),
        t_s: mean(happened().map(|event| event.t_s)).unwrap_or(event.t_s),
        took_s: mean(happened().map(|event| event.took_s)).unwrap_or(event.took_s),
        before_tps: mean(sides.iter().map(|side| side.before)),
        after_tps: mean(sides.iter().map(|side| side.after)),
        standstills: sides.iter().filter(|side| side.after <= 0.0).count(),
        effect,
        trend,
    }
}

/// Throughput after an event against before it, over the trials of these treatments; `Some(None)`
/// where they are too few for an interval, `None` where there are none.
pub(super) fn shift(
    analysis: &Analysis<'_>,
    event: &str,
    of: impl Fn(usize) -> bool,
    confidence: f64,
) -> Option<Option<Effect>> {
    let trials: Vec<&TrialRecord> = trials(analysis, of)
        .filter(|trial| find(trial, event).is_some())
        .collect();
    (!trials.is_empty()).then(|| effect_over(analysis, trials.into_iter(), event, confidence).0)
}

/// The effect of an event, each block of trials as one observation of both sides: what its trials
/// share is not evidence twice. `None` with a single block, and of a load at a standstill on either
/// side, which no ratio describes. Beside it the trend before the event, where that is one that
/// matters: what it would have done by itself is no effect of the event, so there is no verdict
/// then.
fn effect_over<'t>(
    analysis: &Analysis<'_>,
    trials: impl Iterator<Item = &'t TrialRecord>,
    event: &str,
    confidence: f64,
) -> (Option<Effect>, Option<f64>) {
    let mut blocks: BTreeMap<u32, Vec<Sides>> = BTreeMap::new();
    let mut treatments = BTreeSet::new();
    for trial in trials {
        treatments.extend(place_of(analysis.record(), &trial.treatment));
        match sides(trial, event).filter(|sides| sides.before > 0.0 && sides.after > 0.0) {
            Some(sides) => blocks.entry(trial.block).or_default().push(sides),
            None => return (None, None),
        }
    }
    let geometric =
        |sides: &[Sides], of: fn(&Sides) -> f64| mean(sides.iter().map(|side| of(side).ln())).map(f64::exp);
    let observation = |block: u32, treatment: usize, value: Option<f64>| {
        value.map(|value| Observation {
            block: block as usize,
            treatment,
            value,
        })
    };
    let both = blocks.iter().flat_map(|(block, sides)| {
        [
            observation(*block, BEFORE, geometric(sides, |side| side.before)),
            observation(*block, AFTER, geometric(sides, |side| side.after)),
        ]
    });
    let observations: Vec<Observation> = both.flatten().collect();
    let rules = Rules {
        confidence,
        ..analysis.rules("tps")
    };
    let comparison = Comparison {
        treatment: AFTER,
        reference: BEFORE,
    };
    let effect = decide(&observations, &[comparison], rules)
        .into_iter()
        .next()
        .flatten();
    let treatments: Vec<usize> = treatments.into_iter().collect();
    let effect = analysis.once(effect, (failed(analysis, &treatments), 0), &treatments);
    let trends: Vec<f64> = blocks
        .values()
        .filter_map(|sides| mean(sides.iter().filter_map(|side| side.trend)))
        .collect();
    let trend = mean_interval(&trends, rules.confidence)
        .filter(|trend| trends.len() > 1 && (trend.low > 0.0 || trend.high < 0.0))
        .map(|trend| trend.mean)
        .filter(|trend| trend.abs() > rules.smallest_effect);
    match trend {
        Some(_) => (effect.map(Effect::without_verdict), trend),
        None => (effect, None),
    }
}

/// Loads of these treatments that failed: that the event has ended them is not excluded, and none
/// of them says otherwise.
fn failed(analysis: &Analysis<'_>, treatments: &[usize]) -> usize {
    let those = analysis.stored.trials.iter().filter(|(_, trial)| {
        let of = place_of(analysis.record(), &trial.treatment);
        trial.status == TrialStatus::Failed && of.is_some_and(|of| treatments.contains(&of))
    });
    those.count()
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

/// Mean throughput before and after an event, between the events around it; `None` where a side has
/// too few whole seconds.
fn sides(trial: &TrialRecord, title: &str) -> Option<Sides> {
    let place = trial.events.iter().position(|event| event.title == title)?;
    let end_of = |event: &EventRecord| event.t_s + event.took_s + SETTLES_S;
    let from_s = match place {
        0 => trial.warmup_s,
        _ => end_of(&trial.events[place - 1]),
    };
    let event = &trial.events[place];
    let to_s = trial.events.get(place + 1).map_or(f64::INFINITY, |next| next.t_s);
    let seconds = |from_s: f64, to_s: f64| {
        // A second is known by its end, and is nearly one.
        let within = |second: &&SecondRecord| second.t_s >= from_s + 0.95 && second.t_s <= to_s + 0.05;
        let all = trial.seconds.iter().filter(within);
        all.map(|second| (second.t_s, second.tps)).collect::<Vec<_>>()
    };
    let before = Side::of(&seconds(from_s, event.t_s))?;
    let after = Side::of(&seconds(end_of(event), to_s))?;
    Some(Sides {
        before: before.tps,
        after: after.tps,
        trend: before
            .slope
            .map(|slope| slope * (after.middle_s - before.middle_s) / before.tps)
            .filter(|trend| trend.is_finite()),
    })
}

/// Means of the seconds on one side, and the slope of a line through them by least squares, in TPS
/// per second.
struct Side {
    middle_s: f64,
    tps: f64,
    slope: Option<f64>,
}

impl Side {
    /// `None` of too few seconds: (end of it, TPS).
    fn of(seconds: &[(f64, f64)]) -> Option<Side> {
        let middle_s =
            mean(seconds.iter().map(|second| second.0)).filter(|_| seconds.len() >= LEVEL_LEAST)?;
        let tps = mean(seconds.iter().map(|second| second.1))?;
        let spread: f64 = seconds.iter().map(|(t_s, _)| (t_s - middle_s).powi(2)).sum();
        let together: f64 = seconds
            .iter()
            .map(|(t_s, of)| (t_s - middle_s) * (of - tps))
            .sum();
        Some(Side {
            middle_s,
            tps,
            slope: (seconds.len() >= TREND_LEAST).then_some(together / spread),
        })
    }
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
