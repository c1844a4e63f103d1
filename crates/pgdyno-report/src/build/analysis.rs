//! What all parts of a report share: which trials count, what is compared with what, and what may
//! be said of it. The deciding is the store's [`Judge`]; here it is asked.

use crate::model::{Decision, Excluded, Interval, TrialLength};
use crate::text::share;
use pgdyno_judge::{Judge, Judged, Observations, Progress, is_in_last_block, progress};
use pgdyno_record::MetricWords;
use pgdyno_record::{ExperimentRecord, ExperimentStatus, StoredExperiment, TrialRecord, TrialStatus};
use pgdyno_stats::{
    Comparison, Effect, FUTILITY_ERROR, FixedDesign, LevelPoint, NoiseParts, Observation, Rules, best_level,
    mean_interval,
};

/// The usual probability at which a smallest effect that can be found is reported (source: Cohen,
/// *Statistical Power Analysis for the Behavioral Sciences*, 1988).
const POWER: f64 = 0.8;
/// Another length of trials is named where it takes less than this share of the time.
const TIME_MOST: f64 = 0.9;
/// The factor that steps are levels of.
pub(super) const STEP: &str = "step";

/// A mean with its interval. What has never been below zero is not said to be perhaps below it.
pub(super) fn interval_of(values: &[f64], confidence: f64) -> Option<Interval> {
    let found = mean_interval(values, confidence)?;
    let is_positive = values.iter().all(|value| *value >= 0.0);
    Some(Interval {
        mean: found.mean,
        low: if is_positive {
            found.low.max(0.0)
        } else {
            found.low
        },
        high: found.high,
    })
}

/// The best of so many levels by a figure, by its number among them, and what it is there by blocks
/// that had no say in the choice; of a single block its bounds are the value itself. `None` where
/// nothing was measured.
pub(super) fn best_of<'t>(
    levels: impl Iterator<Item = Vec<&'t TrialRecord>>,
    metric: &str,
    larger_is_better: bool,
    confidence: f64,
) -> Option<(usize, Interval)> {
    let sign = if larger_is_better { 1.0 } else { -1.0 };
    let points: Vec<LevelPoint> = (0..)
        .zip(levels)
        .flat_map(|(level, trials)| {
            let values = trials.into_iter().filter_map(move |trial| {
                Some(LevelPoint {
                    block: trial.block,
                    level,
                    value: sign * trial.figure(metric)?,
                })
            });
            values.collect::<Vec<LevelPoint>>()
        })
        .collect();
    let best = best_level(&points)?;
    let values: Vec<f64> = best.by_block.iter().map(|(_, value)| sign * value).collect();
    Some((best.level as usize, interval_of(&values, confidence)?))
}

/// The upper one of two in the middle.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// An experiment with all its judgements.
pub(super) struct Analysis<'a> {
    pub(super) stored: &'a StoredExperiment,
    /// By the figure that decides.
    pub(super) judged: Judged,
    /// By the 95th percentile of response times.
    pub(super) p95: Judged,
    /// Number of the treatment that each one is compared with.
    pub(super) against: Vec<Option<usize>>,
    pub(super) progress: Progress,
    /// Comparisons whose intervals hold together.
    comparisons: usize,
}

impl<'a> Analysis<'a> {
    pub(super) fn new(stored: &'a StoredExperiment) -> Analysis<'a> {
        let progress = progress(stored);
        let judge = Judge::new(&stored.record, &stored.record.metric);
        let observed = observed(&judge, stored);
        Analysis {
            judged: judge.judge(&observed, progress),
            against: judge.against().to_vec(),
            comparisons: judge.comparisons().len(),
            p95: judged_by(stored, "p95_ms", progress, None),
            stored,
            progress,
        }
    }

    pub(super) fn record(&self) -> &'a ExperimentRecord {
        &self.stored.record
    }

    /// Whether a finished trial, by its place, is excluded from every mean and effect.
    pub(super) fn is_excluded(&self, place: usize) -> bool {
        self.judged.excluded.contains(&place)
    }

    /// Trials of a treatment that count.
    pub(super) fn counted(&self, treatment: &str) -> Vec<&'a TrialRecord> {
        let trials = self.stored.trials.iter().enumerate();
        trials
            .filter(|(place, (_, trial))| {
                trial.treatment == treatment
                    && trial.status == TrialStatus::Finished
                    && !self.is_excluded(*place)
            })
            .map(|(_, (_, trial))| trial)
            .collect()
    }

    /// A figure of the trials of a treatment that count.
    pub(super) fn values(&self, treatment: usize, figure: &str) -> Vec<f64> {
        let trials = self.counted(&self.record().treatments[treatment].name);
        trials.iter().filter_map(|trial| trial.figure(figure)).collect()
    }

    /// Means of a figure of two treatments, over the blocks in which both have one: of what was
    /// tried in fewer blocks, or in others, the mean of all differs by those blocks too.
    pub(super) fn means_together(&self, treatments: [usize; 2], figure: &str) -> Option<[f64; 2]> {
        let of = treatments.map(|treatment| {
            let trials = self.counted(&self.record().treatments[treatment].name);
            let figures = trials
                .iter()
                .filter_map(|trial| Some((trial.block, trial.figure(figure)?)));
            figures.collect::<Vec<(u32, f64)>>()
        });
        let mean = |own: &[(u32, f64)], other: &[(u32, f64)]| {
            let has_other = |block: u32| other.iter().any(|(of, _)| *of == block);
            let shared = own.iter().filter(|(block, _)| has_other(*block));
            let values: Vec<f64> = shared.map(|(_, value)| *value).collect();
            mean_interval(&values, self.record().confidence).map(|interval| interval.mean)
        };
        Some([mean(&of[0], &of[1])?, mean(&of[1], &of[0])?])
    }

    /// A mean with its interval; with a single trial nothing is known of the spread, so there is
    /// none.
    pub(super) fn interval(&self, values: &[f64]) -> Option<Interval> {
        (values.len() > 1)
            .then(|| interval_of(values, self.record().confidence))
            .flatten()
    }

    /// How a figure is judged.
    pub(super) fn rules(&self, figure: &str) -> Rules {
        pgdyno_judge::rules(self.record(), figure)
    }

    /// The judgement by any figure with intervals of a confidence.
    pub(super) fn by(&self, figure: &str, confidence: f64) -> Judged {
        judged_by(self.stored, figure, self.progress, Some(confidence))
    }

    /// An effect that is computed once, from all trials of these treatments, of which so many
    /// failed on either side: it is shown once they are whole.
    pub(super) fn once(
        &self,
        effect: Option<Effect>,
        failed: (usize, usize),
        treatments: &[usize],
    ) -> Option<Effect> {
        let whole = effect.filter(|_| self.is_whole(treatments));
        whole.map(|effect| effect.where_failed(failed.0, failed.1))
    }

    /// Whether no further block comes and none of these treatments was spared for what was seen.
    pub(super) fn is_whole(&self, treatments: &[usize]) -> bool {
        let is_in_last =
            |treatment: &usize| is_in_last_block(self.stored, &self.record().treatments[*treatment].name);
        let is_spared = self.is_sequential() && !treatments.iter().all(is_in_last);
        let is_whole = self.progress.ended >= self.record().blocks as usize && !is_spared;
        let is_over = self.stored.status == ExperimentStatus::Finished && !self.is_sequential();
        is_whole || is_over
    }

    /// How many trials count as failed for a treatment and for another, in blocks in which both
    /// were tried.
    pub(super) fn failed(&self, figure: &str, treatment: usize, reference: usize) -> (usize, usize) {
        let judge = Judge::new(self.record(), figure);
        observed(&judge, self.stored).failed(Comparison { treatment, reference })
    }

    /// The trials that a judgement by a figure goes by.
    pub(super) fn observations(&self, figure: &str) -> Vec<Observation> {
        let trials = self.stored.trials.iter().map(|(_, trial)| trial);
        trials
            .filter(|trial| trial.status == TrialStatus::Finished)
            .filter_map(|trial| {
                Some(Observation {
                    block: trial.block as usize,
                    treatment: place_of(self.record(), &trial.treatment)?,
                    value: trial.figure(figure)?,
                })
            })
            .collect()
    }

    pub(super) fn decision(&self) -> Decision {
        let record = self.record();
        let metric = MetricWords::of(&record.metric);
        let excluded = self.judged.excluded.iter().map(|place| {
            let (id, trial) = &self.stored.trials[*place];
            Excluded {
                trial: *id,
                block: trial.block,
                treatment: trial.treatment.clone(),
                disturbances: trial.disturbances.clone(),
            }
        });
        Decision {
            confidence: record.confidence,
            smallest_effect: record.smallest_effect,
            noise_floor: self.judged.noise_floor,
            degrees_of_freedom: self.judged.degrees_of_freedom,
            method: self.method(&metric),
            metric: record.metric.clone(),
            metric_title: metric.title.clone(),
            metric_unit: metric.unit.to_owned(),
            larger_is_better: record.larger_is_better(&record.metric),
            stop: record.stop.clone(),
            stop_rule: self.stop_rule(),
            excluded: excluded.collect(),
            minimum_detectable_effect: self.minimum_detectable_effect(),
            trial_length: self.trial_length(),
            power: POWER,
        }
    }

    /// From the seconds of finished trials, and from when each began. Of turns within a load
    /// nothing is known of starts.
    fn trial_length(&self) -> Option<TrialLength> {
        let record = self.record();
        if record.metric != "tps" || record.design == "switchback" {
            return None;
        }
        let trials = self.stored.trials.iter().map(|(_, trial)| trial);
        let finished: Vec<&TrialRecord> = trials
            .filter(|trial| trial.status == TrialStatus::Finished)
            .collect();
        let measured_s = median(finished.iter().map(|trial| trial.measured_s).collect())?;
        let apart_s = |pair: &[&TrialRecord]| {
            let apart_ms = pair[1].started_unix_ms.checked_sub(pair[0].started_unix_ms)?;
            #[expect(clippy::cast_precision_loss, reason = "milliseconds of a trial")]
            let apart_s = apart_ms as f64 / 1000.0;
            Some(apart_s - pair[0].measured_s)
        };
        let overhead_s = median(finished.windows(2).filter_map(apart_s).collect()).filter(|s| *s > 0.0)?;
        let seconds = |trial: &&TrialRecord| {
            let measured = trial.seconds.iter().filter(|second| second.t_s > trial.warmup_s);
            measured.map(|second| second.tps).collect()
        };
        let seconds: Vec<Vec<f64>> = finished.iter().map(seconds).collect();
        let parts = NoiseParts::new(self.judged.noise_floor?, &seconds, measured_s)?;
        let best = parts.best_length(overhead_s, measured_s);
        let between = parts.between.sqrt().exp_m1();
        let stays = format!(
            "Trials that measure {measured_s:.0} s and cost {overhead_s:.0} s besides differ by {:.1} % from one to the next, which \
             longer ones do not change",
            between * 100.0
        );
        let sentence = match best {
            Some(best) if best.time < TIME_MOST => format!(
                "{stays}. With {:.0} s each, more of them would find the same in {:.0} % of the time.",
                best.best_s.max(1.0),
                best.time * 100.0
            ),
            Some(_) => format!("{stays}. Their length is about right."),
            None => format!(
                "Trials differ by no more than their seconds do: longer ones than {measured_s:.0} s would find more."
            ),
        };
        Some(TrialLength {
            measured_s,
            overhead_s,
            between,
            best_s: best.map(|best| best.best_s),
            time: best.map(|best| best.time),
            sentence,
        })
    }

    fn is_sequential(&self) -> bool {
        self.record().may_stop() && self.against.iter().flatten().count() > 0
    }

    fn stop_rule(&self) -> String {
        let planned = self.record().blocks;
        match self.is_sequential() {
            true => format!(
                "evaluated after each block from block {} on, and ends when every comparison is decided{}, after {planned} blocks at \
                 the latest; intervals hold at all of these looks",
                pgdyno_judge::first_look(planned as usize, self.record().looks_for_gains()),
                match self.record().looks_for_gains() {
                    true => format!(
                        ", or has no gain of {} (a treatment that gains as much is called so with a probability of {:.0} % at most)",
                        share(self.record().smallest_effect),
                        FUTILITY_ERROR * 100.0
                    ),
                    false => String::new(),
                }
            ),
            false => format!("ends after {planned} blocks, whatever they show; no effect is shown before"),
        }
    }

    /// A fixed number of blocks has one; looks after each block have none that is as simple.
    fn minimum_detectable_effect(&self) -> Option<f64> {
        if self.is_sequential() {
            return None;
        }
        let design = FixedDesign {
            comparisons: self.comparisons,
            noise_floor: self.judged.noise_floor?,
            rules: self.rules(&self.record().metric),
        };
        let found = design.minimum_detectable_effect(self.progress.ended, POWER);
        found.filter(|effect| effect.is_finite())
    }

    fn method(&self, metric: &MetricWords) -> String {
        let record = self.record();
        let comparisons = self.against.iter().flatten().count();
        let is_closed =
            |trial: &TrialRecord| trial.histogram.is_some() && trial.open_loop.lag_histogram.is_none();
        let percentiles = format!(
            "Percentiles of a treatment are those of all its trials together; without whole histograms, means over its trials; \
             where fewer than ten transactions took longer, there are not enough of them, and none is shown.{}",
            match self.stored.trials.iter().any(|(_, trial)| is_closed(trial)) {
                true =>
                    " Clients wait for an answer before they send again: a stall counts once for each that waits, not for \
                     all that would have come meanwhile (coordinated omission).",
                false => "",
            }
        );
        if comparisons == 0 {
            let what = match record.design.as_str() {
                "fractional" | "screening" => {
                    "Treatments are not compared with one another: the effect of each level of a factor is estimated \
                     from all of them together, as a ratio within blocks, by least squares"
                }
                _ => "Treatments are not compared with one another",
            };
            return format!("{what}. {percentiles}");
        }
        let against = match record.design.as_str() {
            "cumulative" => "Each treatment is compared with the one before it and with the reference",
            _ if record.factors.iter().any(|factor| factor.condition) => {
                "Each treatment is compared with the reference under the same conditions"
            }
            _ => "Each treatment is compared with the reference",
        };
        let together = match record.design.as_str() {
            "cumulative" => format!("all {comparisons} steps and their totals"),
            _ => format!("all {comparisons} comparisons"),
        };
        let intervals = match self.is_sequential() {
            true => format!(
                "the experiment was evaluated after each block, and the intervals are repeated confidence intervals: wide \
                 enough that {together} hold together at all looks. Each comparison keeps the verdict of the look that \
                 decided it. Findings of a study and effects of factors are computed once from all trials"
            ),
            false => {
                format!("the intervals are Student's, widened (Bonferroni) so that {together} hold together")
            }
        };
        format!(
            "{against}, as a ratio of {} within blocks, so that drift between blocks cancels. Each comparison has its own spread, \
             that of its ratios between blocks, steadied by those of the others where they are alike; {intervals}. Other metrics \
             share the confidence among themselves. No trial is excluded for having been disturbed, and a treatment with more failed \
             trials than what it is compared with is called neither better nor the same. {percentiles}",
            metric.title
        )
    }
}

/// Number of a treatment.
pub(super) fn place_of(record: &ExperimentRecord, name: &str) -> Option<usize> {
    record.treatments.iter().position(|t| t.name == name)
}

fn observed(judge: &Judge, stored: &StoredExperiment) -> Observations {
    let mut observations = Observations::default();
    for (_, trial) in &stored.trials {
        judge.observe(&mut observations, trial);
    }
    observations
}

fn judged_by(stored: &StoredExperiment, figure: &str, progress: Progress, confidence: Option<f64>) -> Judged {
    let mut judge = Judge::new(&stored.record, figure);
    if let Some(confidence) = confidence {
        judge = judge.with_confidence(confidence);
    }
    judge.judge(&observed(&judge, stored), progress)
}
