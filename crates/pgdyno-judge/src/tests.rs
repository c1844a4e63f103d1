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

/// After so many blocks of an experiment that goes on.
fn after(ended: usize) -> Progress {
    Progress {
        ended,
        is_over: false,
    }
}

const OVER: Progress = Progress {
    ended: 0,
    is_over: true,
};

#[test]
fn the_first_look_is_after_seven_eighteenths_and_two_blocks_at_least() {
    let check = |blocks, expected| {
        let found = [first_look(blocks, false), first_look(blocks, true)];
        assert_eq!(found, expected, "{blocks}");
    };
    check(1, [2, 4]);
    check(5, [2, 4]);
    check(6, [3, 4]);
    check(18, [7, 4]);
    check(36, [14, 8]);
}

#[test]
fn a_look_takes_in_the_blocks_that_have_ended_and_no_other() {
    let judge = Judge::new(&two("when-decided", 18), "tps");
    let mut trials = doubled(7);
    let seven = observed(&judge, &trials);
    assert!(!judge.judge(&seven, after(6)).done, "before the first look");
    assert!(judge.judge(&seven, after(7)).done);
    // Half of the eighth block: not evaluated before it has ended.
    trials.push(trial(8, "more", 1.0));
    let with_half = judge.judge(&observed(&judge, &trials), after(7));
    assert_eq!(with_half.steps, judge.judge(&seven, after(7)).steps);
    assert_eq!(with_half.steps[1].map(|effect| effect.blocks), Some(7));
}

#[test]
fn treatments_without_an_open_comparison_are_needless() {
    let mut record = two("when-decided", 18);
    record.treatments.push(treatment("noisy", Some("reference")));
    let judge = Judge::new(&record, "tps");
    let mut trials = doubled(8);
    trials.extend((1..=8).map(|block| trial(block, "noisy", [80.0, 100.0, 125.0][block as usize % 3])));
    let seen = observed(&judge, &trials);
    let check = |blocks, ended: &[usize], expected: &[usize]| {
        let ended = ended.iter().copied().collect();
        let found = judge.needless(&seen, after(blocks), &ended);
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            expected,
            "{blocks} {ended:?}"
        );
    };
    check(6, &[], &[]);
    check(8, &[], &[1]);
    // With the noisy one ended by a guard, nothing is open any more.
    check(8, &[2], &[0, 1, 2]);
    // The effect of a factor is over all combinations.
    let mut factorial = record.clone();
    factorial.design = "full-factorial".into();
    let factorial = Judge::new(&factorial, "tps");
    assert!(factorial.needless(&seen, after(8), &BTreeSet::new()).is_empty());
    let fixed = Judge::new(&two("after-blocks", 18), "tps");
    assert!(fixed.needless(&seen, after(18), &BTreeSet::new()).is_empty());
}

#[test]
fn an_experiment_that_runs_all_its_blocks_is_never_done_before() {
    let judge = Judge::new(&two("after-blocks", 18), "tps");
    assert!(!judge.judge(&observed(&judge, &doubled(18)), after(18)).done);
}

#[test]
fn only_finished_trials_count_and_those_without_a_ratio_are_named_by_their_place() {
    let judge = Judge::new(&two("after-blocks", 9), "tps");
    let mut trials = doubled(8);
    let failed = TrialRecord {
        status: TrialStatus::Failed,
        ..trial(9, "reference", 1.0)
    };
    let invalid = TrialRecord {
        status: TrialStatus::Invalid,
        ..failed.clone()
    };
    trials.splice(0..0, [failed, invalid, trial(9, "of another plan", 1.0)]);
    let judged = judge.judge(&observed(&judge, &trials), OVER);
    assert!(judged.excluded.is_empty());
    let effect = judged.steps[1].expect("an effect");
    assert_eq!((effect.verdict, effect.blocks), (Verdict::Better, 8));
    let last = trials.len() - 1;
    trials[last].tps = Some(0.0);
    let judged = judge.judge(&observed(&judge, &trials), OVER);
    assert_eq!(judged.excluded, [last]);
    assert_eq!(judged.steps[1].map(|effect| effect.blocks), Some(7));
}

#[test]
fn a_far_trial_counts_whatever_disturbed_it() {
    let judge = Judge::new(&two("after-blocks", 9), "tps");
    let mut trials = doubled(9);
    let before = judge.judge(&observed(&judge, &trials), OVER);
    (trials[17].tps, trials[17].disturbed) = (Some(20.0), true);
    let after = judge.judge(&observed(&judge, &trials), OVER);
    assert!(after.excluded.is_empty());
    let ratio = |judged: &Judged| judged.steps[1].map_or(0.0, |effect| effect.ratio);
    assert!(ratio(&after) < ratio(&before) / 1.2);
}

#[test]
fn what_fails_more_often_is_not_called_better() {
    let judge = Judge::new(&two("after-blocks", 9), "tps");
    let mut trials = doubled(9);
    let verdict = |trials: &[TrialRecord]| {
        let judged = judge.judge(&observed(&judge, trials), OVER);
        judged.steps[1].map(|effect| effect.verdict)
    };
    assert_eq!(verdict(&trials), Some(Verdict::Better));
    trials[17].status = TrialStatus::Failed;
    assert_eq!(verdict(&trials), Some(Verdict::Undecided));
    trials[0].status = TrialStatus::Invalid;
    assert_eq!(verdict(&trials), Some(Verdict::Better));
    // So does what has ended without the figure.
    trials[1].tps = None;
    assert_eq!(verdict(&trials), Some(Verdict::Undecided));
}

#[test]
fn what_fails_after_the_look_that_decided_is_not_called_better() {
    let judge = Judge::new(&two("when-decided", 18), "tps");
    let mut trials = doubled(9);
    let verdict = |trials: &[TrialRecord], ended| {
        let judged = judge.judge(&observed(&judge, trials), after(ended));
        judged.steps[1].map(|effect| effect.verdict)
    };
    assert_eq!(verdict(&trials, 7), Some(Verdict::Better));
    // A trial of the eighth block, after the look that decided.
    trials[15].status = TrialStatus::Failed;
    assert_eq!(verdict(&trials, 8), Some(Verdict::Undecided));
    // The reference of that block has not been tried: it had no occasion to fail.
    trials.remove(14);
    assert_eq!(verdict(&trials, 8), Some(Verdict::Better));
}

#[test]
fn a_block_has_ended_when_each_treatment_was_tried_or_was_ended_by_a_guard() {
    let check = |trials: Vec<TrialRecord>, expected: usize| {
        let stored = StoredExperiment {
            id: 1,
            record: two("after-blocks", 3),
            status: ExperimentStatus::Running,
            started_unix_ms: 0,
            finished_unix_ms: None,
            restored: Vec::new(),
            trials: (1..).zip(trials).collect(),
        };
        assert_eq!(progress(&stored).ended, expected);
    };
    let failed = |block, ended_by_guard| TrialRecord {
        status: TrialStatus::Failed,
        ended_by_guard,
        ..trial(block, "more", 1.0)
    };
    check(doubled(2), 2);
    check(vec![trial(1, "reference", 1.0)], 0);
    let first = trial(1, "reference", 1.0);
    let second = trial(2, "reference", 1.0);
    check(vec![first.clone(), failed(1, true), second.clone()], 2);
    // A failure ends no treatment: the second block was broken off before its turn.
    check(vec![first, failed(1, false), second], 1);
}

#[test]
fn a_fixed_number_of_blocks_has_no_effect_before_its_end() {
    let judge = Judge::new(&two("after-blocks", 9), "tps");
    let trials = doubled(6);
    let observed = observed(&judge, &trials);
    let verdict = |progress| judge.judge(&observed, progress).steps[1].map(|effect| effect.verdict);
    assert_eq!(verdict(after(6)), None);
    assert_eq!(verdict(after(9)), Some(Verdict::Better));
    // A budget of time ends it whatever was seen.
    assert_eq!(verdict(OVER), Some(Verdict::Better));
}

#[test]
fn other_figures_share_the_confidence_and_hold_at_the_looks() {
    let record = two("when-decided", 18);
    let decides = Judge::new(&record, "tps").rules().confidence;
    let other = Judge::new(&record, "p95_ms").rules().confidence;
    assert_eq!(decides, record.confidence);
    assert!(other > 0.99 && other < 1.0, "{other}");
    let judge = Judge::new(&record, "stability_cv");
    let trials = doubled(6);
    assert!(!judge.judge(&observed(&judge, &trials), OVER).done);
    let judge = Judge::new(&record, "tps");
    let early = judge.judge(&observed(&judge, &trials), after(6));
    assert_eq!(early.steps, [None, None], "before the first look");
}

#[test]
fn a_pair_is_one_of_the_comparisons_of_its_experiment() {
    let treatments = vec![
        treatment("reference", None),
        treatment("more", Some("reference")),
        treatment("other", Some("reference")),
    ];
    let judge = Judge::new(&experiment("after-blocks", 8, treatments), "tps");
    let mut trials = doubled(8);
    trials.extend((1..=8).map(|block| trial(block, "other", 150.0 + f64::from(block % 2))));
    let observed = observed(&judge, &trials);
    let judged = judge.judge(&observed, OVER);
    assert_eq!(judge.between(1, 0, &observed, OVER), judged.steps[1]);
    assert_eq!(
        judge.between(0, 1, &observed, OVER),
        judged.steps[1].map(Effect::inverse)
    );
    let further = judge.between(2, 1, &observed, OVER).expect("an effect");
    assert_eq!((further.ratio * 4.0).round(), 3.0);
    assert_eq!(further.verdict, Verdict::Worse);
}

/// Two steps after a reference, each against the one before.
fn steps() -> ExperimentRecord {
    experiment(
        "after-blocks",
        3,
        vec![
            treatment("reference", None),
            treatment("a", Some("reference")),
            treatment("b", Some("a")),
        ],
    )
}

#[test]
fn each_treatment_is_held_against_what_its_record_names() {
    let check = |record: &ExperimentRecord, expected: &[Option<usize>]| {
        assert_eq!(Judge::new(record, "tps").against(), expected);
    };
    let mut record = steps();
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
    let mut record = steps();
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
    let judged = judge.judge(&observed(&judge, &trials), after(3));
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
