//! A treatment with its results, and a trial.

use super::analysis::Analysis;
use super::levels::levels_of;
use crate::distribution::together;
use crate::heat::{self, Heat};
use crate::model::{Curve, FactorEffect, Series, Setting, Study, StudyClaim, Timeline, Treatment, Trial};
use pgdyno_record::{DistributionPoint, METRICS, Percentiles, TreatmentRecord, TrialRecord, TrialStatus};
use pgdyno_stats::mean_interval;
use std::collections::{BTreeMap, BTreeSet};

/// Stretches of the heat maps of all treatments: about 100 bytes each in JSON, 200 kB in all.
const STRETCHES_ALL: usize = 2000;
/// Of one, at least: with fewer it is not a picture.
const STRETCHES_MIN: usize = 15;
/// Of one, at most: as many as a page shows.
const STRETCHES_MAX: usize = 120;

/// What the answer is made of.
pub(super) struct Drafts {
    pub(super) treatments: Vec<Treatment>,
    /// Number of the treatment that the answer is about.
    pub(super) headline: Option<usize>,
    pub(super) effects: Vec<FactorEffect>,
    pub(super) claims: Vec<StudyClaim>,
    pub(super) study: Option<Study>,
    pub(super) curves: Vec<Curve>,
    pub(super) timelines: Vec<Timeline>,
}

pub(super) fn treatment_of(analysis: &Analysis<'_>, number: usize, record: &TreatmentRecord) -> Treatment {
    let trials: Vec<&TrialRecord> = analysis
        .stored
        .trials
        .iter()
        .map(|(_, t)| t)
        .filter(|t| t.treatment == record.name)
        .collect();
    let finished = trials
        .iter()
        .filter(|t| t.status == TrialStatus::Finished)
        .count();
    let counted = analysis.counted(&record.name);
    let interval = |figure: &str| analysis.interval(&analysis.values(number, figure));
    let (percentiles, distribution) = response_times(&counted);
    let figures = figures_of(&counted);
    let figure = |name: &str| figures.get(name).copied();
    Treatment {
        name: record.name.clone(),
        title: record.title.clone(),
        reason: record.reason.clone(),
        status: match record.why_not {
            Some(_) => "not-tested",
            None => "tested",
        },
        why_not: record.why_not.clone(),
        settings: settings_of(record, &trials),
        trials_finished: finished,
        trials_failed: trials.len() - finished,
        trials_excluded: finished - counted.len(),
        levels: levels_of(record),
        against: match analysis.against[number] {
            Some(i) => Some(analysis.record().treatments[i].name.clone()),
            // What is not tested is judged against nothing, but it was to be.
            None => record.against.clone(),
        },
        workload: record.workload.clone(),
        environment: record.environment.clone(),
        tps: interval("tps"),
        metric: interval(&analysis.record().metric),
        percentiles,
        distribution,
        latency_heat: latency_heat(&counted, analysis.record().treatments.len()),
        stability_cv: figure("stability_cv"),
        client_cpu_us_per_tx: figure("client_cpu_us_per_tx"),
        server_cpu_us_per_tx: figure("server_cpu_us_per_tx"),
        wal_bytes_per_tx: figure("wal_bytes_per_tx"),
        figures,
        step: analysis.judged.steps[number],
        total: analysis.judged.totals[number],
        step_p95: analysis.p95.steps[number],
    }
}

fn settings_of(record: &TreatmentRecord, trials: &[&TrialRecord]) -> Vec<Setting> {
    let effective = |knob: &str| {
        let last = trials
            .iter()
            .rev()
            .find_map(|t| t.effective.iter().find(|(name, _)| name == knob));
        last.map(|(_, value)| value.clone())
    };
    let settings = record.settings.iter().map(|setting| Setting {
        knob: setting.knob.clone(),
        value: setting.value.clone(),
        effective: effective(&setting.knob),
        layer: setting.layer.clone(),
        risk: setting.risk.clone(),
        changed: setting.changed,
    });
    settings.collect()
}

/// All figures that a trial has, by name.
fn names_of(trial: &TrialRecord) -> BTreeSet<&str> {
    let own = trial.figures.keys().chain(trial.counters_per_tx.keys());
    let mut names: BTreeSet<&str> = own.map(String::as_str).collect();
    for name in METRICS
        .iter()
        .map(|metric| metric.id)
        .filter(|name| trial.figure(name).is_some())
    {
        names.insert(name);
    }
    names
}

fn figures_of(trials: &[&TrialRecord]) -> BTreeMap<String, f64> {
    let names: BTreeSet<&str> = trials.iter().flat_map(|trial| names_of(trial)).collect();
    let figures = names.into_iter().filter_map(|name| {
        let mean = mean(trials.iter().filter_map(|trial| trial.figure(name)))?;
        Some((name.to_owned(), mean))
    });
    figures.collect()
}

pub(super) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    #[expect(clippy::cast_precision_loss, reason = "a number of trials")]
    let n = values.len() as f64;
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / n)
}

/// The response times of all trials together, and points of their distribution. Where the histogram
/// of a trial is missing, or lacks what an open loop never began, they are means over the trials.
fn response_times(trials: &[&TrialRecord]) -> (Option<Percentiles>, Vec<DistributionPoint>) {
    let Some(together) = together(trials) else {
        return (mean_percentiles(trials), mean_distribution(trials));
    };
    let longest = trials.iter().max_by_key(|trial| trial.distribution.len());
    let percentiles = longest.into_iter().flat_map(|trial| &trial.distribution);
    let points = together.distribution(percentiles.map(|point| point.percentile));
    (Some(together.percentiles()), points)
}

fn mean_percentiles(trials: &[&TrialRecord]) -> Option<Percentiles> {
    let each = |value: fn(&Percentiles) -> Option<f64>| {
        let known = trials.iter().filter_map(|t| t.percentiles.as_ref());
        known.filter_map(value)
    };
    Percentiles {
        mean_ms: mean(each(|p| p.mean_ms)),
        p50_ms: mean(each(|p| p.p50_ms)),
        p95_ms: mean(each(|p| p.p95_ms)),
        p99_ms: mean(each(|p| p.p99_ms)),
        max_ms: each(|p| p.max_ms).reduce(f64::max),
    }
    .if_any()
}

/// Mean over trials at each percentile that all of them know.
fn mean_distribution(trials: &[&TrialRecord]) -> Vec<DistributionPoint> {
    let Some(first) = trials.first() else {
        return Vec::new();
    };
    first
        .distribution
        .iter()
        .filter_map(|point| {
            let at = |trial: &&TrialRecord| {
                DistributionPoint::find(&trial.distribution, point.percentile).map(|point| point.ms)
            };
            let values = trials.iter().map(at).collect::<Option<Vec<f64>>>()?;
            let found = mean_interval(&values, DistributionPoint::CONFIDENCE)?;
            let bound = |ms| (values.len() > 1).then_some(ms);
            Some(DistributionPoint {
                low_ms: bound(found.low.max(0.0)),
                high_ms: bound(found.high),
                ..DistributionPoint::new(point.percentile, found.mean)
            })
        })
        .collect()
}

/// In so many stretches that the heat maps of all treatments together stay small.
fn latency_heat(trials: &[&TrialRecord], treatments: usize) -> Option<Heat> {
    let mut heat = heat::of_trials(trials.iter().copied())?;
    heat.thin((STRETCHES_ALL / treatments.max(1)).clamp(STRETCHES_MIN, STRETCHES_MAX));
    Some(heat)
}

pub(super) fn trial_of(id: i64, trial: &TrialRecord, excluded: bool) -> Trial {
    Trial {
        id,
        block: trial.block,
        position: trial.position,
        treatment: trial.treatment.clone(),
        status: trial.status,
        reason: trial.reason.clone(),
        started_unix_ms: trial.started_unix_ms,
        tps: trial.tps,
        transactions: trial.transactions,
        latency_limit_ms: trial.latency_limit_ms,
        errors: trial.errors.clone(),
        percentiles: trial.percentiles,
        reported_by: trial.reported_by.clone(),
        settled: trial.steadiness.map(|s| s.settled),
        warmup_s: trial.warmup_s,
        measured_s: trial.measured_s,
        cross_check: trial.cross_check,
        disturbances: trial.disturbances.clone(),
        disturbed: trial.disturbed,
        excluded,
        server_variant: trial.server_variant.clone(),
        unsettled_s: trial.unsettled_s,
        warm_up: trial.warm_up,
        figures: figures_of(&[trial]),
        marks: Vec::new(),
        series: Series {
            bucket_s: None,
            t_s: trial.seconds.iter().map(|s| s.t_s).collect(),
            tps: trial.seconds.iter().map(|s| s.tps).collect(),
            p95_ms: trial.seconds.iter().map(|s| s.p95_ms).collect(),
        },
    }
}
