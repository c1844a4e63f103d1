//! Reports of made-up experiments.

use super::*;
use pgdyno_record::{
    BrokenBound, DistributionPoint, ExperimentRecord, ExperimentStatus, Importance, Percentiles, SearchStep,
    SecondRecord, SettingRecord, TreatmentRecord, TrialRecord, TrialStatus, WorkloadRecord,
};
use pgdyno_stats::Verdict;
use pgdyno_store::Life;

mod factors;
mod findings;
mod ladders;

fn treatment(name: &str, why_not: Option<&str>) -> TreatmentRecord {
    TreatmentRecord {
        name: name.into(),
        title: format!("The {name}"),
        reason: None,
        why_not: why_not.map(str::to_owned),
        settings: vec![SettingRecord {
            knob: "jit".into(),
            value: "off".into(),
            layer: "postgres".into(),
            risk: "none".into(),
            changed: true,
        }],
        levels: Vec::new(),
        against: None,
        workload: None,
        environment: Vec::new(),
    }
}

fn trial(block: u32, treatment: &str, tps: f64, status: TrialStatus) -> TrialRecord {
    TrialRecord {
        status,
        effective: vec![("jit".into(), "off".into())],
        tps: Some(tps),
        percentiles: Some(Percentiles {
            mean_ms: None,
            p50_ms: Some(1.0),
            p95_ms: Some(1000.0 / tps),
            p99_ms: Some(3.0),
            max_ms: Some(4.0),
        }),
        distribution: vec![DistributionPoint::new(50.0, 1.0)],
        stability_cv: Some(0.1),
        warmup_s: 1.0,
        measured_s: 5.0,
        client_cpu_us_per_tx: Some(10.0),
        ..TrialRecord::begun(block, 1, treatment)
    }
}

pub(crate) fn stored(design: &str, blocks: u32) -> StoredExperiment {
    let treatments = vec![
        treatment("reference", None),
        treatment("a", None),
        treatment("b", Some("not permitted")),
        treatment("c", None),
    ];
    let mut trials = Vec::new();
    for block in 1..=blocks {
        let drift = f64::from(block) * 50.0 + 1000.0;
        for (name, factor) in [("reference", 1.0), ("a", 1.2), ("c", 1.2)] {
            let wobble = 1.0 + 0.001 * f64::from((block + u32::from(name == "c")) % 3);
            trials.push((
                0,
                trial(block, name, drift * factor * wobble, TrialStatus::Finished),
            ));
        }
    }
    StoredExperiment {
        id: 3,
        record: ExperimentRecord {
            question: "?".into(),
            design: design.into(),
            blocks,
            treatments,
            target: "sandbox x".into(),
            ..ExperimentRecord::new(
                "x",
                WorkloadRecord {
                    name: "tpcb".into(),
                    scale: 1,
                    clients: 8,
                    threads: 1,
                    warmup_s: 1.0,
                    measure_s: 5.0,
                },
            )
        },
        status: ExperimentStatus::Finished,
        started_unix_ms: 0,
        finished_unix_ms: Some(1),
        restored: Vec::new(),
        trials,
    }
}

#[test]
fn cumulative_steps_are_held_against_the_last_tested_one() {
    let report = build(&stored("cumulative", 3), "test", 0);
    let [_, a, b, c] = &report.treatments[..] else {
        panic!("four treatments")
    };
    assert_eq!(a.step.unwrap().verdict, Verdict::Better);
    assert_eq!(a.step_p95.unwrap().verdict, Verdict::Better, "shorter is better");
    assert!(b.step.is_none() && b.total.is_none() && b.status == "not-tested");
    assert_eq!(
        c.step.unwrap().verdict,
        Verdict::Same,
        "c is compared with a, for b was not tested"
    );
    assert_eq!(c.total.unwrap().verdict, Verdict::Better);
    let answer = &report.experiment.answer;
    assert!(answer.contains("TPS with \u{201c}The a\u{201d} (+20"), "{answer}");
    assert!(
        answer.contains("The c made no difference that matters"),
        "{answer}"
    );
    assert_eq!(report.experiment.blocks_finished, 3);
}

#[test]
fn single_steps_are_held_against_the_reference() {
    let report = build(&stored("one-at-a-time", 3), "test", 0);
    assert_eq!(report.treatments[3].step.unwrap().verdict, Verdict::Better);
}

/// What was made once for all blocks is one of its kind, and the answer is about that one.
#[test]
fn an_answer_about_what_was_made_once_says_so() {
    let check = |key: &str, (other, word): (&str, &str), expected: bool| {
        let mut stored = stored("one-at-a-time", 3);
        for (i, treatment) in stored.record.treatments.iter_mut().enumerate() {
            let value = if i == 1 { "other" } else { "usual" };
            treatment.environment = [(key, value), (other, word)]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .to_vec();
        }
        let answer = build(&stored, "test", 0).experiment.answer;
        assert_eq!(answer.contains("these instances"), expected, "{answer}");
        assert!(
            !expected || answer.contains(&format!("in {key} was made once")),
            "{answer}"
        );
    };
    check("server.data_on", ("data.reset", "recreate"), true);
    check("server.data_on", ("server.instances", "per-block"), false);
    check("data.fillfactor", ("data.reset", "none"), true);
    check("data.fillfactor", ("data.reset", "recreate"), false);
    check("server.pooler", ("data.reset", "none"), false);
}

#[test]
fn failed_trials_do_not_count_but_are_reported() {
    let mut stored = stored("cumulative", 3);
    stored.trials[1].1.status = TrialStatus::Invalid;
    stored.trials[1].1.tps = Some(1e9);
    let report = build(&stored, "test", 0);
    let a = &report.treatments[1];
    assert_eq!((a.trials_finished, a.trials_failed), (2, 1));
    assert!(a.tps.as_ref().unwrap().mean < 2000.0);
}

#[test]
fn nothing_and_little_are_said_to_be_that() {
    let one = build(&stored("cumulative", 1), "test", 0);
    assert!(one.treatments[1].step.is_none() && one.treatments[1].tps.is_none());
    assert!(
        one.experiment.answer.contains("nothing is decided"),
        "{}",
        one.experiment.answer
    );
    let mut empty = stored("cumulative", 3);
    empty.trials.clear();
    empty.status = ExperimentStatus::Interrupted;
    let report = build(&empty, "test", 0);
    assert!(report.experiment.answer.contains("no answer yet"));
    assert!(report.experiment.answer.contains("not finished"));
}

#[test]
fn one_whose_process_died_is_not_said_to_run() {
    let check = |status: ExperimentStatus, life: Life, expected: &str, shown: &str| {
        let mut stored = stored("cumulative", 3);
        stored.status = status;
        let mut report = build(&stored, "test", 0);
        report.set_life(life);
        assert_eq!(report.experiment.status, expected);
        let text = crate::markdown(&report);
        assert_eq!(
            text.contains("3 of 3 blocks; killed;"),
            shown == "killed",
            "{text}"
        );
        assert_eq!(
            serde_json::to_value(&report).unwrap()["experiment"]["status"],
            expected
        );
    };
    check(ExperimentStatus::Running, Life::Killed, "killed", "killed");
    check(
        ExperimentStatus::Running,
        Life::RunningOrKilled,
        "running or killed",
        "",
    );
    check(ExperimentStatus::Running, Life::Running, "running", "");
    check(ExperimentStatus::Running, Life::Finished, "running", "");
    check(
        ExperimentStatus::Interrupted,
        Life::Interrupted,
        "interrupted",
        "",
    );
    check(ExperimentStatus::Finished, Life::Killed, "finished", "");
}

#[test]
fn the_json_has_the_names_that_the_page_expects() {
    let json = serde_json::to_value(build(&stored("cumulative", 3), "test", 0)).unwrap();
    for path in [
        "/format",
        "/experiment/blocks_planned",
        "/experiment/workload/measure_s",
        "/decision/noise_floor",
        "/treatments/1/step/ratio_low",
        "/treatments/1/step_p95/verdict",
        "/treatments/1/settings/0/changed",
        "/trials/0/cross_check",
        "/trials/0/series/t_s",
        "/restored",
    ] {
        assert!(json.pointer(path).is_some(), "{path}");
    }
    assert_eq!(json["treatments"][2]["status"], "not-tested");
    assert_eq!(json["trials"][0]["status"], "finished");
    assert_eq!(json["experiment"]["status"], "finished");
}

/// A treatment that is decided has no trial in later blocks, and these have ended all the same.
#[test]
fn blocks_without_a_decided_treatment_have_ended() {
    let mut stored = stored("one-at-a-time", 18);
    stored.record.stop = "when-decided".into();
    stored.record.blocks = 18;
    stored.trials.clear();
    let spread = [0.7, 1.0, 1.4];
    for block in 1..=10_u32 {
        let noise = 1.0 + 0.01 * f64::from(block % 3);
        let mut trials = vec![
            trial(block, "reference", 100.0 * noise, TrialStatus::Finished),
            trial(
                block,
                "c",
                100.0 * spread[block as usize % 3],
                TrialStatus::Finished,
            ),
        ];
        if block <= 7 {
            trials.push(trial(block, "a", 200.0 * noise, TrialStatus::Finished));
        }
        let begin = stored.trials.len();
        let numbered = trials.into_iter().enumerate();
        stored
            .trials
            .extend(numbered.map(|(i, trial)| ((begin + i) as i64, trial)));
    }
    let report = build(&stored, "test", 0);
    assert_eq!(report.experiment.blocks_finished, 10);
}

/// Trials of five seconds that begin thirteen seconds apart, and whose seconds differ by more than
/// they do.
#[test]
fn how_long_trials_should_measure_follows_from_their_seconds_and_starts() {
    let mut stored = stored("one-at-a-time", 4);
    assert!(
        build(&stored, "test", 0).decision.trial_length.is_none(),
        "nothing is known of their seconds"
    );
    for (i, (_, trial)) in stored.trials.iter_mut().enumerate() {
        trial.started_unix_ms = 13_000 * i as u64;
        let tps = trial.tps.unwrap_or_default();
        let second = |second: u32| SecondRecord {
            t_s: f64::from(second),
            tps: tps * (1.0 + 0.0005 * (f64::from(second * 7 % 5) - 2.0)),
            ..SecondRecord::default()
        };
        trial.seconds = (1..=6).map(second).collect();
    }
    let length = build(&stored, "test", 0)
        .decision
        .trial_length
        .expect("seconds and starts are known");
    assert_eq!((length.measured_s, length.overhead_s), (5.0, 8.0));
    assert!(length.between > 0.0 && length.best_s.is_some(), "{length:?}");
    assert!(
        length
            .sentence
            .starts_with("Trials that measure 5 s and cost 8 s besides"),
        "{length:?}"
    );
    stored.record.design = "switchback".into();
    assert!(build(&stored, "test", 0).decision.trial_length.is_none());
}

#[test]
fn search_is_answered_by_what_it_has_found() {
    let estimate = |treatment: &str, figure: f64| {
        Some(TreatmentEstimate {
            treatment: treatment.into(),
            figure,
            interval: None,
        })
    };
    let found = |best: Option<TreatmentEstimate>, broken: &[BrokenBound]| Searched {
        best,
        reference: estimate("reference", 100.0),
        importance: vec![Importance {
            factor: "jit".into(),
            part: 1.0,
        }],
        path: vec![SearchStep {
            trial: 1,
            treatment: "a".into(),
            figure: Some(150.0),
            broken: broken.to_vec(),
            best: estimate("a", 150.0),
        }],
    };
    let stored = stored("search", 1);
    let check = |found: Searched, texts: &[&str]| {
        let mut report = build(&stored, "test", 0);
        report.set_search(&stored, found);
        let answer = &report.experiment.answer;
        for text in texts {
            assert!(answer.contains(text), "{text}: {answer}");
        }
        report
    };
    let report = check(
        found(estimate("a", 150.0), &[]),
        &["\u{201c}The a\u{201d} with 150 TPS, +50.0 %", "must confirm it."],
    );
    let text = crate::markdown(&report);
    assert!(text.contains("| 1 | The a | 150 | The a | 150 |"), "{text}");
    assert!(text.contains("| jit | 100.0 % |"), "{text}");
    check(
        found(estimate("reference", 100.0), &[]),
        &["nothing better was found."],
    );
    let broken = BrokenBound {
        bound: "p99_ms <= 2".into(),
        figure: Some(3.0),
    };
    check(
        found(estimate("a", 150.0), &[broken]),
        &["which breaks p99_ms <= 2 (3", "no trial holds to all bounds"],
    );
    check(
        Searched {
            best: None,
            ..found(None, &[])
        },
        &["combinations of settings were tried"],
    );
}
