//! Findings of studies, compared with the verdicts of an experiment.

use super::factors::{claim, pages_and_scheduler, repeat, report, study};
use super::stored;
use crate::model::ClaimOutcome;
use pgdyno_record::{StoredExperiment, TrialStatus};
use pgdyno_stats::Verdict;

#[test]
fn a_level_that_fails_more_often_is_neither_better_by_its_effect_nor_by_a_finding() {
    let mut stored = pages_and_scheduler();
    let none: &[(&str, &str)] = &[];
    let finding = claim(&[("pages", "2M")], none, "better", None);
    stored.record.study = study(Vec::new(), vec![finding]);
    repeat(&mut stored, 4);
    let verdicts = |stored: &StoredExperiment| {
        let report = report(stored);
        let effects = report.effects.iter().map(|one| one.effect.unwrap().verdict);
        (effects.collect::<Vec<_>>(), report.claims[0].outcome)
    };
    let fail = |stored: &mut StoredExperiment, name: &str| {
        let mut trials = stored.trials.iter_mut().map(|(_, trial)| trial);
        let one = trials.find(|trial| trial.treatment == name && trial.status == TrialStatus::Finished);
        one.unwrap().status = TrialStatus::Failed;
    };
    use Verdict::{Better, Undecided};
    assert_eq!(verdicts(&stored), (vec![Better; 3], ClaimOutcome::Agrees));
    fail(&mut stored, "pages=2M, scheduler=none");
    // Of the interaction both levels together count, of which none failed.
    let expected = vec![Undecided, Better, Better];
    assert_eq!(verdicts(&stored), (expected, ClaimOutcome::Undecided));
    fail(&mut stored, "pages=4k, scheduler=none");
    assert_eq!(verdicts(&stored), (vec![Better; 3], ClaimOutcome::Agrees));
    for _ in 0..3 {
        fail(&mut stored, "pages=2M, scheduler=bfq");
    }
    assert_eq!(verdicts(&stored).0, [Undecided; 3]);
}

#[test]
fn findings_are_held_against_the_verdicts_here() {
    let mut stored = pages_and_scheduler();
    let none: &[(&str, &str)] = &[];
    let claims = [
        (
            claim(
                &[("pages", "2M"), ("scheduler", "none")],
                none,
                "better",
                Some(1.12),
            ),
            ClaimOutcome::Agrees,
        ),
        (
            claim(&[("pages", "2M"), ("scheduler", "none")], none, "same", None),
            ClaimOutcome::Disagrees,
        ),
        (
            claim(&[("scheduler", "bfq"), ("pages", "4k")], none, "same", None),
            ClaimOutcome::Agrees,
        ),
        (
            claim(&[("scheduler", "bfq"), ("pages", "4k")], none, "not-worse", None),
            ClaimOutcome::Agrees,
        ),
        (
            claim(&[("pages", "2M"), ("scheduler", "none")], none, "not-worse", None),
            ClaimOutcome::Agrees,
        ),
        (
            claim(
                &[("pages", "4k"), ("scheduler", "none")],
                &[("pages", "2M")],
                "not-worse",
                None,
            ),
            ClaimOutcome::Disagrees,
        ),
        // Nothing with one kind of pages and a half more with the other: more on average.
        (
            claim(&[("scheduler", "bfq")], &[("scheduler", "none")], "worse", None),
            ClaimOutcome::Disagrees,
        ),
        (
            claim(&[("pages", "1G")], none, "better", None),
            ClaimOutcome::NotTested,
        ),
    ];
    stored.record.study = study(
        Vec::new(),
        claims.iter().map(|(claim, _)| claim.clone()).collect(),
    );
    repeat(&mut stored, 4);
    let report = report(&stored);
    for (claim, (_, outcome)) in report.claims.iter().zip(&claims) {
        assert_eq!(claim.outcome, *outcome, "{claim:?}");
    }
    let sentence = &report.claims[0].sentence;
    assert!(
        sentence.starts_with("[ibm-z] found +12.0 %; here +1"),
        "{sentence}"
    );
    assert!(sentence.ends_with("): agrees"), "{sentence}");
    assert_eq!(report.claims[6].treatments.len(), 2);
    let mean = report.claims[6].effect.unwrap();
    assert!(
        (mean.ratio - 1.5_f64.sqrt()).abs() < 0.01 && mean.ratio_high / mean.ratio_low < 1.05,
        "{mean:?}"
    );
    let summary = "Of 8 findings of [ibm-z], this host agrees with 4, disagrees with 3, 1 is not tested";
    assert_eq!(report.study.as_ref().unwrap().summary.as_deref(), Some(summary));
    assert!(report.experiment.answer.ends_with(&format!(" {summary}.")));
}

#[test]
fn a_finding_about_a_cumulative_step_is_about_the_step() {
    let mut stored = stored("cumulative", 3);
    stored.record.study = study(
        Vec::new(),
        vec![
            claim(&[("step", "c")], &[], "same", None),
            claim(&[("step", "c")], &[("step", "reference")], "better", None),
            claim(&[("step", "b")], &[], "better", None),
        ],
    );
    repeat(&mut stored, 4);
    let report = report(&stored);
    let found: Vec<(&str, ClaimOutcome)> = report
        .claims
        .iter()
        .map(|c| (c.against[0].as_str(), c.outcome))
        .collect();
    assert_eq!(
        found,
        [
            ("a", ClaimOutcome::Agrees),
            ("reference", ClaimOutcome::Agrees),
            ("reference", ClaimOutcome::NotTested)
        ]
    );
    assert!(
        report.claims[2].sentence.contains("not permitted"),
        "{:?}",
        report.claims[2]
    );
}

#[test]
fn one_block_decides_no_finding() {
    let mut stored = pages_and_scheduler();
    stored.trials.retain(|(_, trial)| trial.block == 1);
    stored.record.study = study(Vec::new(), vec![claim(&[("pages", "2M")], &[], "better", None)]);
    assert_eq!(report(&stored).claims[0].outcome, ClaimOutcome::Undecided);
}

/// A loss that matters is excluded, and whether anything is gained is not known: "not worse" is
/// what can be said.
#[test]
fn what_loses_less_than_matters_is_not_worse_though_undecided() {
    let outcomes = |wobble: f64, failed: bool| {
        let mut stored = pages_and_scheduler();
        repeat(&mut stored, 4);
        for (number, (_, trial)) in stored.trials.iter_mut().enumerate() {
            let sign = if number % 8 < 4 { 1.0 } else { -1.0 };
            let pages = if trial.treatment.starts_with("pages=2M") {
                0.52
            } else {
                1.0
            };
            trial.tps = trial
                .tps
                .map(|tps| tps * pages * (1.0 + sign * wobble * (1.0 - pages)));
        }
        if failed {
            let mut trials = stored.trials.iter_mut().map(|(_, trial)| trial);
            let one = trials.find(|trial| trial.treatment == "pages=2M, scheduler=none");
            one.expect("a trial").status = TrialStatus::Failed;
        }
        let of = [("pages", "2M"), ("scheduler", "none")];
        let claims = ["better", "not-worse", "same", "worse"].map(|found| claim(&of, &[], found, None));
        stored.record.study = study(Vec::new(), claims.to_vec());
        let report = report(&stored);
        (
            report.claims[0].effect.expect("an effect"),
            report
                .claims
                .iter()
                .map(|claim| claim.outcome)
                .collect::<Vec<_>>(),
        )
    };
    use ClaimOutcome::{Agrees, Undecided};
    let (effect, found) = outcomes(0.06, false);
    assert_eq!(found, [Undecided, Agrees, Undecided, Undecided], "{effect:?}");
    // What fails more often may have lost something.
    assert_eq!(outcomes(0.06, true).1, [Undecided; 4]);
    let (wider, found) = outcomes(0.3, false);
    assert_eq!(found, [Undecided; 4], "{wider:?}");
}

/// Findings of all shipped studies are judged as one family, whichever of them is run.
#[test]
fn findings_of_shipped_studies_are_as_many_as_are_judged_together() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../catalog/experiments");
    let files = std::fs::read_dir(directory).expect("experiments").flatten();
    let findings = files.map(|file| {
        let text = std::fs::read_to_string(file.path()).expect("a file");
        text.matches("[[study.claim]]").count()
    });
    assert_eq!(findings.sum::<usize>(), pgdyno_judge::FINDINGS_TOGETHER);
}
