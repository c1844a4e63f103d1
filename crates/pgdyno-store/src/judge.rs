//! From records to verdicts: which trials count, what is held against what, and what may be said of it. The lab asks
//! after each block whether to go on, the report at the end; both get the same answer from here.

use crate::record::{ExperimentRecord, TrialRecord, TrialStatus};
use pgdyno_stats::{
    BlockFit, Comparison, Effect, Excluded, Observation, OutlierRule, Rules, Sequential, StoppingRule,
    Trials, decide, excluded,
};
use std::collections::BTreeSet;

/// After how many blocks an experiment that may stop is first looked at: seven eighteenths of all, where a search for an effect
/// stops soonest at the same power (docs/statistics.md), and two at least, for one says nothing of the spread.
pub fn first_look(blocks: usize) -> usize {
    (blocks * 7).div_ceil(18).max(2)
}

/// How the comparisons of an experiment are judged by one figure.
pub struct Judge {
    metric: String,
    treatments: Vec<String>,
    against: Vec<Option<usize>>,
    comparisons: Vec<Comparison>,
    rules: Rules,
    /// Whether a treatment is held against the one before it and against the first.
    cumulative: bool,
    /// Levels of the looks, where the experiment may stop before its last block.
    sequential: Option<Sequential>,
}

/// The trials that a judgement goes by.
#[derive(Debug, Clone, Default)]
pub struct Observations {
    observations: Vec<Observation>,
    disturbed: Vec<bool>,
    /// Places of the trials among those given.
    places: Vec<usize>,
    seen: usize,
    blocks: BTreeSet<usize>,
}

/// What may be said.
#[derive(Debug, Clone)]
pub struct Judged {
    /// Against the treatment that each is held against (the one before it, or the reference), by treatment.
    pub steps: Vec<Option<Effect>>,
    /// Against the first treatment, by treatment; for factors the same as `steps`.
    pub totals: Vec<Option<Effect>>,
    /// Trials that were left out, by their place among those given, with how many robust standard deviations they lie off.
    pub left_out: Vec<(usize, f64)>,
    /// Whether no further block is needed.
    pub done: bool,
    /// Spread between trials of one treatment, as a ratio.
    pub noise_floor: Option<f64>,
    /// Of that spread.
    pub degrees_of_freedom: usize,
}

impl Judge {
    /// For the figure of that name.
    pub fn new(record: &ExperimentRecord, metric: &str) -> Judge {
        let treatments: Vec<String> = record.treatments.iter().map(|t| t.name.clone()).collect();
        let against = against(record);
        let cumulative = record.design == "cumulative";
        let mut comparisons = Vec::new();
        for (treatment, reference) in against.iter().enumerate() {
            let Some(reference) = *reference else { continue };
            comparisons.push(Comparison { treatment, reference });
            if cumulative && reference != 0 {
                comparisons.push(Comparison {
                    treatment,
                    reference: 0,
                });
            }
        }
        let rules = Rules {
            confidence: record.confidence,
            smallest_effect: record.smallest_effect,
            larger_is_better: record.larger_is_better(metric),
        };
        let tested: Vec<usize> = (0..treatments.len())
            .filter(|&i| record.treatments[i].why_not.is_none())
            .collect();
        // Looks are at the figure that decides; the others are judged with what there is at the end.
        let looks = record.stop == "when-decided" && metric == record.metric;
        let rule = StoppingRule {
            rules,
            blocks_min: first_look(record.blocks as usize),
            blocks_max: record.blocks as usize,
            outliers: Some(OutlierRule::default()),
        };
        let sequential = looks
            .then(|| Sequential::new(rule, &tested, &comparisons))
            .flatten();
        Judge {
            metric: metric.to_owned(),
            treatments,
            against,
            comparisons,
            rules,
            cumulative,
            sequential,
        }
    }

    /// What each treatment is held against, by number.
    pub fn against(&self) -> &[Option<usize>] {
        &self.against
    }

    /// The order matters for nothing but the numbers in [`Judged::left_out`].
    pub fn observe(&self, into: &mut Observations, trial: &TrialRecord) {
        let place = into.seen;
        into.seen += 1;
        into.blocks.insert(trial.block as usize);
        let treatment = self.treatments.iter().position(|name| *name == trial.treatment);
        let value = trial
            .figure(&self.metric)
            .filter(|_| trial.status == TrialStatus::Finished);
        if let (Some(treatment), Some(value)) = (treatment, value) {
            into.observations.push(Observation {
                block: trial.block as usize,
                treatment,
                value,
            });
            into.disturbed.push(trial.disturbed);
            into.places.push(place);
        }
    }

    /// Judges what there is; `ended` is how many blocks have been run to their end.
    pub fn judge(&self, observed: &Observations, ended: usize) -> Judged {
        let (effects, left_out, done) = match &self.sequential {
            Some(sequential) => {
                let blocks: Vec<usize> = observed
                    .blocks
                    .iter()
                    .copied()
                    .filter(|block| *block <= ended)
                    .collect();
                let looked = sequential.look(Trials {
                    observations: &observed.observations,
                    disturbed: &observed.disturbed,
                    ended: &blocks,
                });
                (looked.effects, looked.excluded, looked.done)
            }
            None => {
                let left_out = excluded(
                    &observed.observations,
                    &observed.disturbed,
                    OutlierRule::default(),
                );
                let effects = decide(&kept(observed, &left_out), &self.comparisons, self.rules);
                (effects, left_out, false)
            }
        };
        let fit = BlockFit::new(&kept(observed, &left_out));
        let mut steps = vec![None; self.treatments.len()];
        let mut totals = vec![None; self.treatments.len()];
        for (comparison, effect) in self.comparisons.iter().zip(effects) {
            if self.against[comparison.treatment] == Some(comparison.reference) {
                steps[comparison.treatment] = effect;
            }
            if comparison.reference == 0 || !self.cumulative {
                totals[comparison.treatment] = effect;
            }
        }
        Judged {
            steps,
            totals,
            left_out: left_out
                .iter()
                .map(|left| (observed.places[left.index], deviations(left)))
                .collect(),
            done,
            noise_floor: fit.as_ref().and_then(BlockFit::noise_floor),
            degrees_of_freedom: fit.as_ref().map_or(0, BlockFit::degrees_of_freedom),
        }
    }
}

fn kept(observed: &Observations, left_out: &[Excluded]) -> Vec<Observation> {
    let observations = observed.observations.iter().enumerate();
    observations
        .filter(|(i, _)| !left_out.iter().any(|left| left.index == *i))
        .map(|(_, observation)| *observation)
        .collect()
}

fn deviations(left: &Excluded) -> f64 {
    match left.why {
        pgdyno_stats::WhyExcluded::DisturbedAndFar { deviations } => deviations,
        pgdyno_stats::WhyExcluded::NoRatio => f64::NAN,
    }
}

/// What each treatment is held against: what its record says; records from before there were factors say nothing, and
/// follow their design.
fn against(record: &ExperimentRecord) -> Vec<Option<usize>> {
    let treatments = &record.treatments;
    let tested = |i: usize| treatments[i].why_not.is_none();
    let named = treatments.iter().any(|t| !t.levels.is_empty());
    let against = |i: usize| match &treatments[i].against {
        _ if !tested(i) => None,
        Some(name) => treatments
            .iter()
            .position(|t| t.name == *name)
            .filter(|&j| tested(j)),
        None if named || i == 0 => None,
        None if record.design == "cumulative" => (0..i).rev().find(|&j| tested(j)),
        None => Some(0),
    };
    (0..treatments.len()).map(against).collect()
}
