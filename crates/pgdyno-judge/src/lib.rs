//! From records to verdicts: which trials count, what is compared with what, and what may be said of it. The lab asks
//! after each block whether to go on, the report at the end; both get the same answer from here.

use pgdyno_record::{ExperimentRecord, TrialRecord, TrialStatus};
use pgdyno_stats::{
    BlockFit, Comparison, Effect, Excluded, Observation, OutlierRule, Rules, Sequential, StoppingRule,
    Trials, decide, excluded,
};
use std::collections::BTreeSet;

/// After how many blocks an experiment that may stop is first looked at: seven eighteenths of all, where a search for an effect
/// stops soonest at the same power (docs/explanation/statistics.md), and two at least, for one says nothing of the spread.
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
    /// Whether a treatment is compared both with the one before it and with the first.
    cumulative: bool,
    /// Levels of the looks, where the experiment may stop before its last block.
    sequential: Option<Sequential>,
}

/// The trials that a judgement is made from.
#[derive(Debug, Clone, Default)]
pub struct Observations {
    observations: Vec<Observation>,
    disturbed: Vec<bool>,
    /// Places of the trials among those given.
    places: Vec<usize>,
    seen: usize,
    blocks: BTreeSet<usize>,
}

/// Effects and verdicts on the trials so far.
#[derive(Debug, Clone)]
pub struct Judged {
    /// Against the treatment that each is compared with (the one before it, or the reference), by treatment.
    pub steps: Vec<Option<Effect>>,
    /// Against the first treatment, by treatment; for factors the same as `steps`.
    pub totals: Vec<Option<Effect>>,
    /// Trials that were left out, by their place among those given, with how many robust standard deviations they lie off.
    pub excluded: Vec<(usize, f64)>,
    /// Whether every comparison is decided, so that no further block is needed.
    pub done: bool,
    /// Spread between trials of one treatment, as a ratio.
    pub noise_floor: Option<f64>,
    /// Degrees of freedom of the noise floor.
    pub degrees_of_freedom: usize,
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

    /// Number of the treatment that each one is compared with.
    pub fn against(&self) -> &[Option<usize>] {
        &self.against
    }

    /// The order matters for nothing but the numbers in [`Judged::excluded`].
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
        let (effects, excluded, done) = match &self.sequential {
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
                let excluded = excluded(
                    &observed.observations,
                    &observed.disturbed,
                    OutlierRule::default(),
                );
                let effects = decide(&kept(observed, &excluded), &self.comparisons, self.rules);
                (effects, excluded, false)
            }
        };
        let fit = BlockFit::new(&kept(observed, &excluded));
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
            excluded: excluded
                .iter()
                .map(|left| (observed.places[left.index], deviations(left)))
                .collect(),
            done,
            noise_floor: fit.as_ref().and_then(BlockFit::noise_floor),
            degrees_of_freedom: fit.as_ref().map_or(0, BlockFit::degrees_of_freedom),
        }
    }
}

fn kept(observed: &Observations, excluded: &[Excluded]) -> Vec<Observation> {
    let observations = observed.observations.iter().enumerate();
    observations
        .filter(|(i, _)| !excluded.iter().any(|left| left.index == *i))
        .map(|(_, observation)| *observation)
        .collect()
}

fn deviations(left: &Excluded) -> f64 {
    match left.why {
        pgdyno_stats::WhyExcluded::DisturbedAndFar { deviations } => deviations,
        pgdyno_stats::WhyExcluded::NoRatio => f64::NAN,
    }
}

/// What each treatment is compared with: what its record says; records from before there were factors say nothing, and
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

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_record::{TreatmentRecord, WorkloadRecord};
    use pgdyno_stats::Verdict;

    fn treatment(name: &str, against: Option<&str>) -> TreatmentRecord {
        TreatmentRecord {
            levels: vec![("step".into(), name.into())],
            against: against.map(str::to_owned),
            ..TreatmentRecord::new(name)
        }
    }

    fn experiment(stop: &str, blocks: u32, treatments: Vec<TreatmentRecord>) -> ExperimentRecord {
        ExperimentRecord {
            question: "?".into(),
            blocks,
            treatments,
            target: "x".into(),
            stop: stop.into(),
            ..ExperimentRecord::new(
                "x",
                WorkloadRecord {
                    name: "tpcb".into(),
                    scale: 1,
                    clients: 1,
                    threads: 1,
                    warmup_s: 0.0,
                    measure_s: 1.0,
                },
            )
        }
    }

    fn two(stop: &str, blocks: u32) -> ExperimentRecord {
        let treatments = vec![treatment("reference", None), treatment("more", Some("reference"))];
        experiment(stop, blocks, treatments)
    }

    fn trial(block: u32, name: &str, tps: f64) -> TrialRecord {
        TrialRecord {
            status: TrialStatus::Finished,
            tps: Some(tps),
            ..TrialRecord::begun(block, 1, name)
        }
    }

    /// Blocks in which the second treatment has twice the throughput, with one percent of noise.
    fn doubled(blocks: u32) -> Vec<TrialRecord> {
        let noisy = |block: u32, tps: f64| tps * (1.0 + 0.01 * f64::from(block % 3));
        let of = |block| {
            [
                trial(block, "reference", noisy(block, 100.0)),
                trial(block, "more", noisy(block + 1, 200.0)),
            ]
        };
        (1..=blocks).flat_map(of).collect()
    }

    fn observed(judge: &Judge, trials: &[TrialRecord]) -> Observations {
        let mut observed = Observations::default();
        trials
            .iter()
            .for_each(|trial| judge.observe(&mut observed, trial));
        observed
    }

    #[test]
    fn the_first_look_is_after_seven_eighteenths_and_two_blocks_at_least() {
        let check = |blocks, expected| assert_eq!(first_look(blocks), expected, "{blocks}");
        check(1, 2);
        check(5, 2);
        check(6, 3);
        check(18, 7);
        check(36, 14);
    }

    #[test]
    fn a_look_takes_in_the_blocks_that_have_ended_and_no_other() {
        let judge = Judge::new(&two("when-decided", 18), "tps");
        let mut trials = doubled(7);
        let seven = observed(&judge, &trials);
        assert!(!judge.judge(&seven, 6).done, "before the first look");
        assert!(judge.judge(&seven, 7).done);
        // Half of the eighth block: not looked at before it has ended.
        trials.push(trial(8, "more", 1.0));
        let with_half = judge.judge(&observed(&judge, &trials), 7);
        assert_eq!(with_half.steps, judge.judge(&seven, 7).steps);
        assert_eq!(with_half.steps[1].map(|effect| effect.blocks), Some(7));
    }

    #[test]
    fn an_experiment_that_runs_all_its_blocks_is_never_done_before() {
        let judge = Judge::new(&two("after-blocks", 18), "tps");
        assert!(!judge.judge(&observed(&judge, &doubled(18)), 18).done);
    }

    #[test]
    fn only_finished_trials_count_and_those_left_out_are_named_by_their_place() {
        let judge = Judge::new(&two("after-blocks", 9), "tps");
        let mut trials = doubled(8);
        let failed = TrialRecord {
            status: TrialStatus::Failed,
            ..trial(9, "more", 1.0)
        };
        let invalid = TrialRecord {
            status: TrialStatus::Invalid,
            ..failed.clone()
        };
        trials.splice(0..0, [failed, invalid, trial(9, "of another plan", 1.0)]);
        let judged = judge.judge(&observed(&judge, &trials), 9);
        assert!(judged.excluded.is_empty());
        let effect = judged.steps[1].expect("an effect");
        assert_eq!((effect.verdict, effect.blocks), (Verdict::Better, 8));
        let far = trials.len() - 1;
        (trials[far].tps, trials[far].disturbed) = (Some(20.0), true);
        let judged = judge.judge(&observed(&judge, &trials), 9);
        let places: Vec<usize> = judged.excluded.iter().map(|(place, _)| *place).collect();
        assert_eq!(places, [far]);
        assert!(judged.excluded[0].1 < -3.5, "{:?}", judged.excluded);
    }

    #[test]
    fn a_far_trial_counts_where_nothing_disturbed_it_and_a_near_one_though_something_did() {
        let judge = Judge::new(&two("after-blocks", 9), "tps");
        const LAST: usize = 17;
        let is_excluded = |last_tps: Option<f64>, disturbed: &[usize]| {
            let mut trials = doubled(9);
            trials[LAST].tps = last_tps.or(trials[LAST].tps);
            for place in disturbed {
                trials[*place].disturbed = true;
            }
            let judged = judge.judge(&observed(&judge, &trials), 9);
            judged.excluded.iter().any(|(place, _)| *place == LAST)
        };
        assert!(!is_excluded(Some(20.0), &[0]));
        assert!(!is_excluded(None, &[0, LAST]));
        assert!(is_excluded(Some(20.0), &[0, LAST]));
    }

    #[test]
    fn each_treatment_is_held_against_what_its_record_names() {
        let check = |record: &ExperimentRecord, expected: &[Option<usize>]| {
            assert_eq!(Judge::new(record, "tps").against(), expected);
        };
        let mut record = experiment(
            "after-blocks",
            3,
            vec![
                treatment("reference", None),
                treatment("a", Some("reference")),
                treatment("b", Some("a")),
            ],
        );
        check(&record, &[None, Some(0), Some(1)]);
        record.treatments[1].why_not = Some("not permitted".into());
        check(&record, &[None, None, None]);
        // Records from before there were factors follow their design.
        for treatment in &mut record.treatments {
            (treatment.levels, treatment.against) = (Vec::new(), None);
        }
        check(&record, &[None, None, Some(0)]);
        record.treatments[1].why_not = None;
        check(&record, &[None, Some(0), Some(0)]);
        record.design = "cumulative".into();
        check(&record, &[None, Some(0), Some(1)]);
    }

    #[test]
    fn steps_that_add_up_have_an_effect_each_and_one_in_total() {
        let mut record = experiment(
            "after-blocks",
            3,
            vec![
                treatment("reference", None),
                treatment("a", Some("reference")),
                treatment("b", Some("a")),
            ],
        );
        record.design = "cumulative".into();
        let judge = Judge::new(&record, "tps");
        let of = |block| {
            let tps = 100.0 + f64::from(block);
            [
                trial(block, "reference", tps),
                trial(block, "a", 2.0 * tps),
                trial(block, "b", 2.0 * tps + f64::from(block % 2)),
            ]
        };
        let trials: Vec<TrialRecord> = (1..=3).flat_map(of).collect();
        let judged = judge.judge(&observed(&judge, &trials), 3);
        let ratio = |effect: Option<Effect>| effect.map(|effect| effect.ratio.round());
        assert_eq!(
            judged.steps.iter().map(|e| ratio(*e)).collect::<Vec<_>>(),
            [None, Some(2.0), Some(1.0)]
        );
        assert_eq!(
            judged.totals.iter().map(|e| ratio(*e)).collect::<Vec<_>>(),
            [None, Some(2.0), Some(2.0)]
        );
    }
}
