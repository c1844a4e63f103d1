//! From records to verdicts: which trials count, what is compared with what, and what may be said
//! of it. The lab asks after each block whether to go on, the report at the end; both get the same
//! answer from here.

use pgdyno_record::{
    ExperimentRecord, ExperimentStatus, METRICS, StoredExperiment, TrialRecord, TrialStatus,
};
use pgdyno_stats::{
    BlockFit, Comparison, Effect, Looked, Observation, Rules, Sequential, StoppingRule, Trials, decide,
};
use std::collections::{BTreeMap, BTreeSet};

/// Number of findings of all shipped studies, whose intervals hold together: they are read side by
/// side.
pub const FINDINGS_TOGETHER: usize = 86;
/// Fewer blocks than this contradict no finding.
pub const FINDING_BLOCKS_MIN: usize = 3;

/// After how many blocks an experiment that may stop is first evaluated: seven eighteenths of all,
/// where a search for an effect stops soonest at the same power (docs/explanation/statistics.md),
/// and two at least, for one says nothing of the spread. Where treatments may be futile a fifth,
/// and four at least: most have no gain, which is seen early.
pub fn first_look(blocks: usize, may_be_futile: bool) -> usize {
    match may_be_futile {
        true => blocks.div_ceil(5).max(4),
        false => (blocks * 7).div_ceil(18).max(2),
    }
}

/// The rules for a figure of an experiment. The figure that decides has the whole confidence; the
/// others share it, as many as are compared where none is named and the experiment's own, so that
/// all that a reader sees holds together.
pub fn rules(record: &ExperimentRecord, metric: &str) -> Rules {
    let others = METRICS
        .iter()
        .filter(|one| one.is_compared && one.id != record.metric)
        .count();
    let own = record.figures.iter().filter(|own| own.name != record.metric);
    let others = others + own.count();
    let share = match metric == record.metric {
        true => 1,
        false => others.max(1),
    };
    Rules {
        confidence: shared(record.confidence, share),
        smallest_effect: record.smallest_effect,
        larger_is_better: record.larger_is_better(metric),
    }
}

/// The confidence of each of so many intervals that hold together.
#[expect(clippy::cast_precision_loss, reason = "a number of figures or findings")]
pub fn shared(confidence: f64, together: usize) -> f64 {
    1.0 - (1.0 - confidence) / together.max(1) as f64
}

/// How the comparisons of an experiment are judged by one figure.
#[derive(Debug, Clone)]
pub struct Judge {
    metric: String,
    treatments: Vec<String>,
    /// Numbers of those that were tested.
    tested: Vec<usize>,
    against: Vec<Option<usize>>,
    comparisons: Vec<Comparison>,
    rules: Rules,
    /// Whether a treatment is compared both with the one before it and with the first.
    cumulative: bool,
    /// Whether treatments are combinations of factors, whose effects are averaged over all of them.
    is_factorial: bool,
    /// Whether this figure decides when the experiment stops.
    decides: bool,
    /// Blocks that are planned.
    blocks: usize,
    /// Whether the experiment may stop before its last block.
    may_stop: bool,
    /// Whether a comparison ends once a gain is improbable.
    may_be_futile: bool,
    /// Levels of the looks, where it may.
    sequential: Option<Sequential>,
}

/// How far an experiment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Blocks that have been run to their end.
    pub ended: usize,
    /// Whether no further block comes: not because of what was seen, but by the plan or a budget.
    pub is_over: bool,
}

/// The trials that a judgement is made from.
#[derive(Debug, Clone, Default)]
pub struct Observations {
    observations: Vec<Observation>,
    /// How many trials are in no ratio, by block and treatment; 0 where all are.
    unmeasured: BTreeMap<(usize, usize), Unmeasured>,
    /// Places of finished trials without a figure that has a ratio, among those given.
    without_ratio: Vec<usize>,
    seen: usize,
    blocks: BTreeSet<usize>,
}

/// Trials that are in no ratio, which limit the verdicts of those that are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unmeasured {
    /// Trials that failed, do not hold, lack the figure, or have none of what there should be more
    /// of.
    failed: usize,
    /// Trials that have none of what there should be less of.
    best: usize,
}

impl Unmeasured {
    /// One more trial by a metric. Whether it is in a ratio.
    pub fn add(&mut self, trial: &TrialRecord, metric: &str, larger_is_better: bool) -> bool {
        let value = trial.figure(metric).filter(|value| value.is_finite());
        match value.filter(|_| trial.status == TrialStatus::Finished) {
            Some(value) if value > 0.0 => return true,
            Some(_) if !larger_is_better => self.best += 1,
            // A percentile, say, for which there were too few transactions: it is not missing by
            // chance.
            _ => self.failed += 1,
        }
        false
    }

    /// How many trials count as failed for this side and for another one: those that failed, and of
    /// the other side those that are better than any ratio shows.
    pub fn failed(self, other: Unmeasured) -> (usize, usize) {
        (self.failed + other.best, other.failed + self.best)
    }
}

impl Observations {
    /// Trials that count as failed for a treatment and for what it is compared with, in the blocks
    /// in which both were tried: where only one was, the other had no occasion to fail.
    pub fn failed(&self, comparison: Comparison) -> (usize, usize) {
        let of = |block, treatment| self.unmeasured.get(&(block, treatment)).copied();
        let both = self.blocks.iter().filter_map(|block| {
            let reference = of(*block, comparison.reference)?;
            Some(of(*block, comparison.treatment)?.failed(reference))
        });
        both.fold((0, 0), |all, block| (all.0 + block.0, all.1 + block.1))
    }

    /// Blocks that have ended, in their order.
    fn ended(&self, progress: Progress) -> Vec<usize> {
        let blocks = self.blocks.iter().copied();
        blocks.filter(|block| *block <= progress.ended).collect()
    }
}

/// Effects and verdicts on the trials so far.
#[derive(Debug, Clone)]
pub struct Judged {
    /// Against the treatment that each is compared with (the one before it, or the reference), by
    /// treatment.
    pub steps: Vec<Option<Effect>>,
    /// Against the first treatment, by treatment; for factors the same as `steps`.
    pub totals: Vec<Option<Effect>>,
    /// Finished trials in no effect, because their figure is not above zero, by their place among
    /// those given.
    pub excluded: Vec<usize>,
    /// Whether every comparison is decided, so that no further block is needed.
    pub done: bool,
    /// Spread between trials of one treatment, as a ratio, over all treatments.
    pub noise_floor: Option<f64>,
    /// Degrees of freedom of the noise floor.
    pub degrees_of_freedom: usize,
}

/// Whether a treatment was tried in the last of the planned blocks: not where it was spared for
/// what it had shown.
pub fn is_in_last_block(stored: &StoredExperiment, treatment: &str) -> bool {
    let mut trials = stored.trials.iter();
    trials.any(|(_, trial)| trial.block == stored.record.blocks && trial.treatment == treatment)
}

/// How far a stored experiment is. A block has ended when every tested treatment has a trial in it,
/// or needs none: because it is decided, or because a guard has ended it in an earlier one.
pub fn progress(stored: &StoredExperiment) -> Progress {
    let judge = Judge::new(&stored.record, &stored.record.metric);
    let trials = || stored.trials.iter().map(|(_, trial)| trial);
    let mut seen = Observations::default();
    trials().for_each(|trial| judge.observe(&mut seen, trial));
    let place = |trial: &TrialRecord| judge.treatments.iter().position(|name| *name == trial.treatment);
    let has_ended = |block: u32| {
        let guarded = trials().filter(|trial| trial.ended_by_guard && trial.block < block);
        let guarded: BTreeSet<usize> = guarded.filter_map(place).collect();
        let tried = trials().filter(|trial| trial.block == block);
        let tried: BTreeSet<usize> = tried.filter_map(place).collect();
        if tried.is_empty() {
            return false;
        }
        let lacks = |i: &&usize| !tried.contains(i) && !guarded.contains(i);
        let lacking: Vec<&usize> = judge.tested.iter().filter(lacks).collect();
        lacking.is_empty() || {
            let before = Progress {
                ended: block as usize - 1,
                is_over: false,
            };
            let needless = judge.needless(&seen, before, &guarded);
            lacking.iter().all(|i| needless.contains(i))
        }
    };
    Progress {
        ended: (1..=stored.record.blocks)
            .filter(|block| has_ended(*block))
            .count(),
        is_over: stored.status == ExperimentStatus::Finished,
    }
}

impl Judge {
    /// A judge of one figure of an experiment, before any trial.
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
        Judge {
            metric: metric.to_owned(),
            tested: (0..treatments.len())
                .filter(|i| record.treatments[*i].why_not.is_none())
                .collect(),
            treatments,
            against,
            comparisons: Vec::new(),
            rules: rules(record, metric),
            cumulative,
            is_factorial: record.design == "full-factorial",
            decides: metric == record.metric,
            blocks: record.blocks as usize,
            may_stop: record.may_stop(),
            may_be_futile: record.looks_for_gains(),
            sequential: None,
        }
        .with_comparisons(comparisons)
    }

    fn with_comparisons(self, comparisons: Vec<Comparison>) -> Judge {
        let rule = StoppingRule {
            rules: self.rules,
            blocks_min: first_look(self.blocks, self.may_be_futile),
            blocks_max: self.blocks,
            // What decides is what a treatment is tried for; of other figures all is said that can
            // be.
            may_be_futile: self.may_be_futile && self.decides,
        };
        // What is seen at the block at which another figure has stopped the experiment is seen at a
        // look, too.
        let sequential = self
            .may_stop
            .then(|| Sequential::new(rule, &comparisons))
            .flatten();
        Judge {
            comparisons,
            sequential,
            ..self
        }
    }

    /// The same judge with intervals of another confidence.
    #[must_use]
    pub fn with_confidence(mut self, confidence: f64) -> Judge {
        self.rules.confidence = confidence;
        let comparisons = std::mem::take(&mut self.comparisons);
        self.with_comparisons(comparisons)
    }

    /// The same judge with all pairs of treatments that were tested.
    fn with_all_pairs(&self) -> Judge {
        let mut comparisons = self.comparisons.clone();
        let is_there = |comparisons: &[Comparison], a, b| {
            let mut each = comparisons.iter();
            each.any(|one| [(a, b), (b, a)].contains(&(one.treatment, one.reference)))
        };
        for (place, treatment) in self.tested.iter().enumerate() {
            for reference in &self.tested[..place] {
                if !is_there(&comparisons, *treatment, *reference) {
                    comparisons.push(Comparison {
                        treatment: *treatment,
                        reference: *reference,
                    });
                }
            }
        }
        self.clone().with_comparisons(comparisons)
    }

    /// Number of the treatment that each one is compared with.
    pub fn against(&self) -> &[Option<usize>] {
        &self.against
    }

    /// Comparisons whose intervals hold together: steps, and for cumulative ones their totals.
    pub fn comparisons(&self) -> &[Comparison] {
        &self.comparisons
    }

    /// The rules that it judges by.
    pub fn rules(&self) -> Rules {
        self.rules
    }

    /// Takes in a trial. The order matters for nothing but the numbers in [`Judged::excluded`].
    pub fn observe(&self, into: &mut Observations, trial: &TrialRecord) {
        let place = into.seen;
        into.seen += 1;
        into.blocks.insert(trial.block as usize);
        let Some(treatment) = self.treatments.iter().position(|name| *name == trial.treatment) else {
            return;
        };
        let unmeasured = into
            .unmeasured
            .entry((trial.block as usize, treatment))
            .or_default();
        let is_in_ratio = unmeasured.add(trial, &self.metric, self.rules.larger_is_better);
        let figure = trial.figure(&self.metric);
        let Some(value) = figure.filter(|_| trial.status == TrialStatus::Finished) else {
            return;
        };
        if !is_in_ratio {
            into.without_ratio.push(place);
        }
        into.observations.push(Observation {
            block: trial.block as usize,
            treatment,
            value,
        });
    }

    /// Judges what there is.
    ///
    /// Where an experiment may stop after each block, what is returned holds at each look. Where it
    /// has a fixed number of blocks, there is no effect before the last one: intervals of a fixed
    /// size hold once.
    pub fn judge(&self, observed: &Observations, progress: Progress) -> Judged {
        let (effects, done) = self.effects(observed, progress);
        let fit = BlockFit::new(&observed.observations);
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
            excluded: observed.without_ratio.clone(),
            done,
            noise_floor: fit.as_ref().and_then(BlockFit::noise_floor),
            degrees_of_freedom: fit.as_ref().map_or(0, BlockFit::degrees_of_freedom),
        }
    }

    /// The effect of one treatment against another, by their numbers: the experiment's own
    /// comparison if it makes it, else with an interval that holds together with those of all pairs
    /// of its treatments, each of which may be asked for.
    pub fn between(
        &self,
        treatment: usize,
        reference: usize,
        observed: &Observations,
        progress: Progress,
    ) -> Option<Effect> {
        let place = |judge: &Judge, treatment, reference| {
            let wanted = Comparison { treatment, reference };
            judge.comparisons.iter().position(|one| *one == wanted)
        };
        if let Some(place) = place(self, treatment, reference) {
            return self.effects(observed, progress).0[place];
        }
        if let Some(place) = place(self, reference, treatment) {
            return self.effects(observed, progress).0[place].map(Effect::inverse);
        }
        // Of two that are no pair of the experiment's there is one here.
        let all = self.with_all_pairs();
        match place(&all, treatment, reference) {
            Some(place) => all.effects(observed, progress).0[place],
            None => {
                all.effects(observed, progress).0[place(&all, reference, treatment)?].map(Effect::inverse)
            }
        }
    }

    /// Treatments, by number, that no open comparison needs any more: each of theirs was decided at
    /// a look, or is with one that has `ended`. Empty where another figure decides, where the
    /// experiment runs all its blocks, and where effects of factors need all combinations.
    pub fn needless(
        &self,
        observed: &Observations,
        progress: Progress,
        ended: &BTreeSet<usize>,
    ) -> BTreeSet<usize> {
        let may_drop = self.decides && !self.is_factorial;
        let blocks = observed.ended(progress);
        let Some(looked) = self.looked(observed, &blocks).filter(|_| may_drop) else {
            return BTreeSet::new();
        };
        let sides = |comparison: &Comparison| [comparison.treatment, comparison.reference];
        let has_ended = |comparison: &Comparison| sides(comparison).iter().any(|side| ended.contains(side));
        let decided = self.comparisons.iter().zip(&looked.decided_after);
        let open = decided.filter(|(comparison, after)| after.is_none() && !has_ended(comparison));
        let needed: BTreeSet<usize> = open.flat_map(|(comparison, _)| sides(comparison)).collect();
        let all = self.comparisons.iter().flat_map(sides);
        all.filter(|treatment| !needed.contains(treatment)).collect()
    }

    /// The looks so far, where the experiment may stop before its last block.
    fn looked(&self, observed: &Observations, ended: &[usize]) -> Option<Looked> {
        let trials = Trials {
            observations: &observed.observations,
            ended,
        };
        self.sequential.as_ref().map(|sequential| sequential.look(trials))
    }

    /// Whether intervals hold now: from the first look on where the experiment may stop, else once
    /// no further block comes.
    pub fn is_due(&self, progress: Progress) -> bool {
        match self.sequential {
            Some(_) => progress.ended >= first_look(self.blocks, self.may_be_futile),
            None => progress.is_over || progress.ended >= self.blocks,
        }
    }

    /// The effects of all comparisons, and whether all are decided.
    fn effects(&self, observed: &Observations, progress: Progress) -> (Vec<Option<Effect>>, bool) {
        let ended = observed.ended(progress);
        let Some(looked) = self.looked(observed, &ended) else {
            let effects = decide(&observed.observations, &self.comparisons, self.rules);
            let due = effects
                .into_iter()
                .map(|effect| effect.filter(|_| self.is_due(progress)));
            return (self.where_failed(due, observed), false);
        };
        let (effects, done) = match self.decides {
            true => (looked.effects, looked.done),
            false => (looked.latest, false),
        };
        (self.where_failed(effects, observed), done)
    }

    /// The effects with the verdicts that failed trials leave them, also those that failed after
    /// the look that decided.
    fn where_failed(
        &self,
        effects: impl IntoIterator<Item = Option<Effect>>,
        observed: &Observations,
    ) -> Vec<Option<Effect>> {
        let judged = self.comparisons.iter().zip(effects).map(|(comparison, effect)| {
            let failed = observed.failed(*comparison);
            effect.map(|effect| effect.where_failed(failed.0, failed.1))
        });
        judged.collect()
    }
}

/// What each treatment is compared with: what its record says; records from before there were
/// factors say nothing, and follow their design.
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

#[cfg(test)]
mod tests;
