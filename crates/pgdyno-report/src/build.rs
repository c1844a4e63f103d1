//! From records to a report: effects, verdicts, and the answer in one sentence.

use crate::model::{
    Decision, Experiment, FORMAT, Interval, Report, Series, Setting, Treatment, Trial, Workload,
};
use crate::words::{listed, number, percent};
use pgdyno_stats::{BlockFit, Comparison, Effect, Observation, Rules, Verdict, decide, mean_interval};
use pgdyno_store::{
    DistributionPoint, ExperimentStatus, Percentiles, StoredExperiment, TreatmentRecord, TrialRecord,
    TrialStatus,
};

/// Makes the report of an experiment; `generated_unix_ms` is now, `generator` the program's name and version.
pub fn build(stored: &StoredExperiment, generator: &str, generated_unix_ms: u64) -> Report {
    let record = &stored.record;
    let analysis = Analysis::new(stored);
    let treatments: Vec<Treatment> = record
        .treatments
        .iter()
        .enumerate()
        .map(|(i, t)| analysis.treatment(i, t))
        .collect();
    let headline = headline(&treatments, &record.design);
    let workload = &record.workload;
    let answer = answer(stored, &treatments, headline);
    Report {
        format: FORMAT,
        generator: generator.to_owned(),
        generated_unix_ms,
        experiment: Experiment {
            id: stored.id,
            name: record.name.clone(),
            question: record.question.clone(),
            answer,
            design: record.design.clone(),
            status: stored.status,
            started_unix_ms: stored.started_unix_ms,
            finished_unix_ms: stored.finished_unix_ms,
            blocks_planned: record.blocks,
            blocks_finished: blocks_finished(stored),
            seed: record.seed,
            reference: record
                .treatments
                .first()
                .map(|t| t.name.clone())
                .unwrap_or_default(),
            workload: Workload {
                name: workload.name.clone(),
                scale: workload.scale,
                clients: workload.clients,
                threads: workload.threads,
                warmup_s: workload.warmup_s,
                measure_s: workload.measure_s,
            },
            file: record.file.clone(),
            repeat: record.repeat.clone(),
        },
        decision: analysis.decision(),
        treatments,
        trials: stored
            .trials
            .iter()
            .map(|(id, trial)| trial_of(*id, trial))
            .collect(),
        facts: record.facts.clone(),
        put_back: stored.put_back.clone(),
    }
}

/// What all treatments share.
struct Analysis<'a> {
    stored: &'a StoredExperiment,
    /// What each treatment's step is compared with.
    before: Vec<Option<usize>>,
    steps: Vec<Option<Effect>>,
    totals: Vec<Option<Effect>>,
    steps_p95: Vec<Option<Effect>>,
    fit: Option<BlockFit>,
}

impl<'a> Analysis<'a> {
    fn new(stored: &'a StoredExperiment) -> Analysis<'a> {
        let treatments = &stored.record.treatments;
        let cumulative = stored.record.design == "cumulative";
        let tested = |i: usize| treatments[i].why_not.is_none();
        let before: Vec<Option<usize>> = (0..treatments.len())
            .map(|i| match i {
                0 => None,
                _ if !tested(i) => None,
                _ if cumulative => (0..i).rev().find(|&j| tested(j)),
                _ => Some(0),
            })
            .collect();
        let steps: Vec<Comparison> = pairs(before.iter().copied());
        let totals: Vec<Comparison> = pairs(before.iter().map(|b| b.map(|_| 0)));
        let tps = observations(stored, |trial| trial.tps);
        let all: Vec<Comparison> = steps.iter().chain(&totals).copied().collect();
        let mut effects = decide(&tps, &all, rules(stored, true)).into_iter();
        let place = |comparisons: &[Comparison], effects: &mut dyn Iterator<Item = Option<Effect>>| {
            let mut placed = vec![None; treatments.len()];
            for (comparison, effect) in comparisons.iter().zip(effects) {
                placed[comparison.treatment] = effect;
            }
            placed
        };
        let placed_steps = place(&steps, &mut effects);
        let placed_totals = place(&totals, &mut effects);
        let p95 = observations(stored, |trial| trial.percentiles.map(|p| p.p95_ms));
        let mut p95_effects = decide(&p95, &steps, rules(stored, false)).into_iter();
        Analysis {
            stored,
            steps: placed_steps,
            totals: placed_totals,
            steps_p95: place(&steps, &mut p95_effects),
            before,
            fit: BlockFit::new(&tps),
        }
    }

    fn treatment(&self, number: usize, record: &TreatmentRecord) -> Treatment {
        let trials: Vec<&TrialRecord> = self
            .stored
            .trials
            .iter()
            .map(|(_, t)| t)
            .filter(|t| t.treatment == record.name)
            .collect();
        let finished: Vec<&TrialRecord> = trials
            .iter()
            .copied()
            .filter(|t| t.status == TrialStatus::Finished)
            .collect();
        let tps: Vec<f64> = finished.iter().filter_map(|t| t.tps).collect();
        let effective = |knob: &str| {
            let last = trials
                .iter()
                .rev()
                .find_map(|t| t.effective.iter().find(|(name, _)| name == knob));
            last.map(|(_, value)| value.clone())
        };
        Treatment {
            name: record.name.clone(),
            title: record.title.clone(),
            reason: record.reason.clone(),
            status: if record.why_not.is_some() {
                "not-tested"
            } else {
                "tested"
            },
            why_not: record.why_not.clone(),
            settings: record
                .settings
                .iter()
                .map(|setting| Setting {
                    knob: setting.knob.clone(),
                    value: setting.value.clone(),
                    effective: effective(&setting.knob),
                    layer: setting.layer.clone(),
                    risk: setting.risk.clone(),
                    changed: setting.changed,
                })
                .collect(),
            trials_finished: finished.len(),
            trials_failed: trials.len() - finished.len(),
            // With a single trial nothing is known of the spread, so there is no interval to show.
            tps: (tps.len() > 1)
                .then(|| mean_interval(&tps, self.stored.record.confidence))
                .flatten()
                .map(|i| Interval {
                    mean: i.mean,
                    low: i.low,
                    high: i.high,
                }),
            percentiles: mean_percentiles(&finished),
            distribution: mean_distribution(&finished),
            stability_cv: mean(finished.iter().filter_map(|t| t.stability_cv)),
            client_cpu_us_per_tx: mean(finished.iter().filter_map(|t| t.client_cpu_us_per_tx)),
            server_cpu_us_per_tx: mean(finished.iter().filter_map(|t| t.server_cpu_us_per_tx)),
            wal_bytes_per_tx: mean(finished.iter().filter_map(|t| t.wal_bytes_per_tx)),
            step: self.steps[number],
            total: self.totals[number],
            step_p95: self.steps_p95[number],
        }
    }

    fn decision(&self) -> Decision {
        let record = &self.stored.record;
        let against = if record.design == "cumulative" {
            "Each treatment is held against the one before it and against the reference"
        } else {
            "Each treatment is held against the reference"
        };
        let comparisons = self.before.iter().flatten().count();
        Decision {
            confidence: record.confidence,
            smallest_effect: record.smallest_effect,
            noise_floor: self.fit.as_ref().and_then(BlockFit::noise_floor),
            degrees_of_freedom: self.fit.as_ref().map_or(0, BlockFit::degrees_of_freedom),
            method: format!(
                "{against}, as a ratio of throughput within blocks, so that drift between blocks cancels. The spread is \
                 that between trials of the same treatment, pooled over all treatments; the intervals are Student's, \
                 widened (Bonferroni) so that all {comparisons} steps and their totals hold together. Those of the 95th percentile hold \
                 together among themselves. Percentiles of a treatment are means over its trials."
            ),
        }
    }
}

fn pairs(references: impl Iterator<Item = Option<usize>>) -> Vec<Comparison> {
    references
        .enumerate()
        .filter_map(|(treatment, reference)| {
            Some(Comparison {
                treatment,
                reference: reference?,
            })
        })
        .collect()
}

fn rules(stored: &StoredExperiment, larger_is_better: bool) -> Rules {
    Rules {
        confidence: stored.record.confidence,
        smallest_effect: stored.record.smallest_effect,
        larger_is_better,
    }
}

fn observations(stored: &StoredExperiment, value: impl Fn(&TrialRecord) -> Option<f64>) -> Vec<Observation> {
    stored
        .trials
        .iter()
        .filter(|(_, trial)| trial.status == TrialStatus::Finished)
        .filter_map(|(_, trial)| {
            let treatment = stored
                .record
                .treatments
                .iter()
                .position(|t| t.name == trial.treatment)?;
            Some(Observation {
                block: trial.block as usize,
                treatment,
                value: value(trial)?,
            })
        })
        .collect()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    #[expect(clippy::cast_precision_loss, reason = "a number of trials")]
    let n = values.len() as f64;
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / n)
}

fn mean_percentiles(trials: &[&TrialRecord]) -> Option<Percentiles> {
    let of = |value: fn(&Percentiles) -> f64| {
        mean(trials.iter().filter_map(|t| t.percentiles.as_ref()).map(value))
    };
    Some(Percentiles {
        p50_ms: of(|p| p.p50_ms)?,
        p95_ms: of(|p| p.p95_ms)?,
        p99_ms: of(|p| p.p99_ms)?,
        max_ms: trials
            .iter()
            .filter_map(|t| t.percentiles)
            .map(|p| p.max_ms)
            .fold(f64::NAN, f64::max),
    })
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
                let found = trial
                    .distribution
                    .iter()
                    .find(|p| p.percentile.total_cmp(&point.percentile).is_eq());
                found.map(|p| p.ms)
            };
            let values: Option<Vec<f64>> = trials.iter().map(at).collect();
            Some(DistributionPoint {
                percentile: point.percentile,
                ms: mean(values?.into_iter())?,
            })
        })
        .collect()
}

fn blocks_finished(stored: &StoredExperiment) -> usize {
    let tested = stored
        .record
        .treatments
        .iter()
        .filter(|t| t.why_not.is_none())
        .count();
    (1..=stored.record.blocks)
        .filter(|block| stored.trials.iter().filter(|(_, t)| t.block == *block).count() >= tested)
        .count()
}

fn trial_of(id: i64, trial: &TrialRecord) -> Trial {
    Trial {
        id,
        block: trial.block,
        position: trial.position,
        treatment: trial.treatment.clone(),
        status: trial.status,
        reason: trial.reason.clone(),
        started_unix_ms: trial.started_unix_ms,
        tps: trial.tps,
        committed: trial.committed,
        failed: trial.failed,
        errors: trial.errors.clone(),
        percentiles: trial.percentiles,
        settled: trial.steadiness.map(|s| s.settled),
        warmup_s: trial.warmup_s,
        measured_s: trial.measured_s,
        cross_check: trial.cross_check,
        disturbances: trial.disturbances.clone(),
        series: Series {
            t_s: trial.seconds.iter().map(|s| s.t_s).collect(),
            tps: trial.seconds.iter().map(|s| s.tps).collect(),
            p95_ms: trial.seconds.iter().map(|s| s.p95_ms).collect(),
        },
    }
}

/// The treatment that the answer is about. The page follows the same rule: of cumulative steps the last that paid,
/// so that a control at the end is not the "after"; of single ones the one with most throughput among those that paid.
fn headline(treatments: &[Treatment], design: &str) -> Option<usize> {
    let mean = |i: usize| treatments[i].tps.as_ref().map_or(f64::MIN, |tps| tps.mean);
    let measured: Vec<usize> = (1..treatments.len())
        .filter(|&i| treatments[i].trials_finished > 0)
        .collect();
    let paid: Vec<usize> = measured
        .iter()
        .copied()
        .filter(|&i| {
            treatments[i]
                .step
                .is_some_and(|step| step.verdict == Verdict::Better)
        })
        .collect();
    if design == "cumulative" {
        return paid.last().or(measured.last()).copied();
    }
    let candidates = if paid.is_empty() { measured } else { paid };
    candidates
        .into_iter()
        .max_by(|&a, &b| mean(a).total_cmp(&mean(b)))
}

fn answer(stored: &StoredExperiment, treatments: &[Treatment], headline: Option<usize>) -> String {
    let record = &stored.record;
    let load = format!(
        "{} with {} clients",
        record.workload.name, record.workload.clients
    );
    let not_whole = match stored.status {
        ExperimentStatus::Finished => "",
        _ => " The experiment is not finished, so this is preliminary.",
    };
    let (Some(number_of_best), Some(reference)) = (headline, treatments.first()) else {
        return format!("There is no answer yet: no treatment of {load} has been measured.{not_whole}");
    };
    let best = &treatments[number_of_best];
    let titled = |verdict: Verdict| -> Vec<&str> {
        treatments
            .iter()
            .filter(|t| t.step.is_some_and(|step| step.verdict == verdict))
            .map(|t| t.title.as_str())
            .collect()
    };
    let groups = [
        (titled(Verdict::Better), "paid"),
        (titled(Verdict::Worse), "did harm"),
        (titled(Verdict::Same), "made no difference that matters"),
        (titled(Verdict::Undecided), "could not be decided"),
    ];
    let compared = treatments.iter().filter(|t| t.step.is_some()).count();
    let steps: Vec<String> = groups
        .iter()
        .filter(|(titles, _)| !titles.is_empty())
        .map(|(titles, what)| match titles.len() {
            n if n == compared && n > 1 => format!("taken one by one, all {n} steps {what}"),
            n if n > NAMES_IN_ANSWER => format!("{n} of {compared} steps {what}"),
            _ => format!("{} {what}", listed(titles)),
        })
        .collect();
    let steps = if steps.is_empty() {
        "there are too few finished trials for an interval, so nothing is decided".to_owned()
    } else {
        steps.join("; ")
    };
    let with = match record.design.as_str() {
        "cumulative" if number_of_best + 1 == treatments.len() => {
            let all = treatments.iter().all(|t| t.why_not.is_none());
            if all {
                "all steps together"
            } else {
                "all tested steps together"
            }
            .to_owned()
        }
        "cumulative" if number_of_best > 1 => format!("the steps up to \u{201c}{}\u{201d}", best.title),
        _ => format!("\u{201c}{}\u{201d}", best.title),
    };
    match (&reference.tps, &best.tps, &best.total) {
        (Some(before), Some(after), Some(total)) => format!(
            "{load} went from {} to {} TPS with {with} ({} %, between {} and {} %): {steps}.{not_whole}",
            number(before.mean),
            number(after.mean),
            percent(total.ratio),
            percent(total.ratio_low),
            percent(total.ratio_high),
        ),
        _ => format!("{load}: {steps}.{not_whole}"),
    }
}

/// More names than this are a list, not a sentence.
const NAMES_IN_ANSWER: usize = 3;

#[cfg(test)]
mod tests;
