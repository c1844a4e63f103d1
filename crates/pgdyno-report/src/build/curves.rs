//! Throughput over clients or CPUs: the points, the scalability law through them, and the happy
//! zone.

use super::analysis::{Analysis, best_of, interval_of};
use super::levels::{groups, level_of};
use crate::model::{Bounded, Curve, CurvePoint, Highest, Interval, UslCurve, Zone};
use pgdyno_record::{ExperimentRecord, FactorRecord, TrialRecord};
use pgdyno_stats::{
    Estimate, HappyZone, LoadPoint, NoKnee, OpenEstimate, UslFit, UslPoint, fit_usl, happy_zone,
};

/// What a factor's levels are numbers of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Axis {
    Clients,
    Cpus,
    Other,
}

/// A curve for each factor with numbers along it and each combination of the others.
pub(super) fn curves(analysis: &Analysis<'_>) -> Vec<Curve> {
    let record = analysis.record();
    let conditions = record.factors.iter().filter(|factor| factor.condition);
    conditions
        .filter_map(|factor| Some((factor, axis(record, factor)?)))
        .flat_map(|(factor, axis)| curves_of(analysis, factor, axis))
        .collect()
}

/// `None` where the levels are no numbers.
fn axis(record: &ExperimentRecord, factor: &FactorRecord) -> Option<Axis> {
    let numbers: Option<Vec<f64>> = factor.levels.iter().map(|level| number(level)).collect();
    numbers.filter(|numbers| numbers.len() > 1)?;
    let sets_clients = record.treatments.iter().all(|treatment| {
        let clients = treatment.workload.as_ref().unwrap_or(&record.workload).clients;
        let level = level_of(treatment, &factor.name).and_then(number);
        level.is_some_and(|level| level.total_cmp(&f64::from(clients)).is_eq())
    });
    let text = format!("{} {}", factor.name, factor.title).to_lowercase();
    let is_cpus = text
        .split(|letter: char| !letter.is_alphanumeric())
        .any(|word| matches!(word, "cpu" | "cpus" | "core" | "cores"));
    Some(match (sets_clients, is_cpus) {
        (true, _) => Axis::Clients,
        (false, true) => Axis::Cpus,
        (false, false) => Axis::Other,
    })
}

fn number(level: &str) -> Option<f64> {
    let number = level.trim().parse::<f64>().ok()?;
    (number.is_finite() && number > 0.0).then_some(number)
}

/// A measured level.
struct Step<'a> {
    x: f64,
    treatment: &'a str,
    /// Trials that count and have a throughput, with it.
    trials: Vec<(&'a TrialRecord, f64)>,
}

impl Step<'_> {
    fn tps(&self) -> Vec<f64> {
        self.trials.iter().map(|&(_, tps)| tps).collect()
    }

    /// Mean of the trials that have one.
    fn p99_ms(&self, confidence: f64) -> Option<Interval> {
        let known: Vec<f64> = self
            .trials
            .iter()
            .filter_map(|(trial, _)| trial.figure("p99_ms"))
            .collect();
        interval_of(&known, confidence)
    }
}

fn curves_of(analysis: &Analysis<'_>, factor: &FactorRecord, axis: Axis) -> Vec<Curve> {
    let record = analysis.record();
    let others: Vec<&FactorRecord> = record
        .factors
        .iter()
        .filter(|other| other.name != factor.name)
        .collect();
    let found = groups(record, &others)
        .into_iter()
        .filter_map(|(title, members)| {
            let mut steps: Vec<Step<'_>> = members
                .iter()
                .filter_map(|&i| step(analysis, i, factor))
                .collect();
            steps.sort_by(|a, b| a.x.total_cmp(&b.x));
            (!steps.is_empty()).then(|| curve(title, factor, axis, &steps, record.confidence))
        });
    found.collect()
}

fn step<'a>(analysis: &Analysis<'a>, treatment: usize, factor: &FactorRecord) -> Option<Step<'a>> {
    let record = &analysis.record().treatments[treatment];
    let counted = analysis.counted(&record.name).into_iter();
    let trials: Vec<(&TrialRecord, f64)> = counted
        .filter_map(|trial| Some((trial, trial.figure("tps")?)))
        .collect();
    Some(Step {
        x: level_of(record, &factor.name).and_then(number)?,
        treatment: &record.name,
        trials: Some(trials).filter(|trials| !trials.is_empty())?,
    })
}

fn curve(
    title: Option<String>,
    factor: &FactorRecord,
    axis: Axis,
    steps: &[Step<'_>],
    confidence: f64,
) -> Curve {
    let usl = match axis {
        Axis::Other => Err("the scalability law is one of clients or CPUs".to_owned()),
        _ => law(steps, confidence),
    };
    let zone = match axis {
        Axis::Clients => zone(steps, confidence).ok_or_else(|| "no throughput was measured".to_owned()),
        _ => Err("a happy zone is a range of client counts".to_owned()),
    };
    let points = steps.iter().filter_map(|step| {
        Some(CurvePoint {
            x: step.x,
            treatment: step.treatment.to_owned(),
            tps: interval_of(&step.tps(), confidence)?,
            p99_ms: step.p99_ms(confidence),
            n: step.trials.len(),
        })
    });
    let trials = steps
        .iter()
        .map(|step| step.trials.iter().map(|(trial, _)| *trial).collect());
    let highest = best_of(trials, "tps", true, confidence);
    Curve {
        title,
        highest: highest.map(|(place, tps)| Highest {
            x: steps[place].x,
            tps,
        }),
        factor: factor.name.clone(),
        x: match axis {
            Axis::Clients => "clients".to_owned(),
            Axis::Cpus => "CPUs".to_owned(),
            Axis::Other => factor.title.clone(),
        },
        points: points.collect(),
        why_no_usl: usl.as_ref().err().cloned(),
        usl: usl.ok(),
        why_no_zone: zone.as_ref().err().cloned(),
        zone: zone.ok(),
    }
}

fn law(steps: &[Step<'_>], confidence: f64) -> Result<UslCurve, String> {
    let points: Vec<UslPoint> = steps
        .iter()
        .flat_map(|step| {
            step.trials.iter().map(|&(trial, value)| UslPoint {
                block: trial.block,
                n: step.x,
                value,
            })
        })
        .collect();
    let fit: UslFit = fit_usl(&points).map_err(|error| error.to_string())?;
    let no_intervals = || format!("there is no interval of confidence {confidence}");
    let parameters = fit.parameters(confidence).ok_or_else(no_intervals)?;
    let peak = fit.peak(confidence).ok_or_else(no_intervals)?;
    let closed = |estimate: Estimate| Bounded {
        value: Some(estimate.value),
        low: Some(estimate.low),
        high: estimate.high,
    };
    let open = |estimate: OpenEstimate| Bounded {
        value: estimate.value,
        low: estimate.low,
        high: estimate.high,
    };
    Ok(UslCurve {
        lambda: closed(parameters.lambda),
        sigma: closed(parameters.sigma),
        kappa: closed(parameters.kappa),
        peak_x: open(peak.n),
        peak_tps: open(peak.value),
        spread: fit.spread_ratio(),
    })
}

fn zone(steps: &[Step<'_>], confidence: f64) -> Option<Zone> {
    let points: Vec<LoadPoint> = steps
        .iter()
        .flat_map(|step| {
            step.trials.iter().map(|&(trial, tps)| LoadPoint {
                block: trial.block,
                clients: clients(step.x),
                tps,
                p99_ms: trial.figure("p99_ms"),
            })
        })
        .collect();
    let found: HappyZone = happy_zone(&points, confidence)?;
    Some(Zone {
        lowest: found.lowest_clients,
        highest: found.highest_clients,
        best: found.best_clients,
        knee: found.knee.ok(),
        why_no_knee: found.knee.err().as_ref().map(NoKnee::to_string),
        lower_edge: found.lower_edge,
        upper_edge: found.upper_edge,
        past_knee: found.past_knee,
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "compared with a whole number of clients before"
)]
fn clients(x: f64) -> u32 {
    x as u32
}
