//! Comparisons of experiments made by hand, references and gates.

use super::fixture::{experiment, trial};
use super::*;
use pgdyno_record::{FactRecord, StoredExperiment};
use pgdyno_stats::Verdict;
use proptest::prelude::*;

/// Four blocks with drift; each treatment's throughput is its factor times the block's.
fn measured(id: i64, treatments: &[(&str, f64)]) -> StoredExperiment {
    let names: Vec<&str> = treatments.iter().map(|(name, _)| *name).collect();
    let mut stored = experiment(id, &names);
    for block in 1..=4_u32 {
        let drift = 1000.0 + 100.0 * f64::from(block);
        for (i, (name, factor)) in treatments.iter().enumerate() {
            let wobble = 1.0 + 0.001 * f64::from((block + u32::try_from(i).unwrap()) % 3);
            let number = i64::try_from(stored.trials.len()).unwrap() + 1;
            stored
                .trials
                .push((number, trial(block, name, drift * factor * wobble)));
        }
    }
    stored
}

fn held(
    a: &StoredExperiment,
    of_a: &str,
    b: &StoredExperiment,
    of_b: &str,
    metrics: &[&str],
) -> Result<Comparison, CompareError> {
    let (of_a, of_b): (Reference, Reference) = (of_a.parse().unwrap(), of_b.parse().unwrap());
    let named = |stored, which| Named {
        stored,
        which,
        store: None,
    };
    let metrics: Vec<String> = metrics.iter().map(|metric| (*metric).to_owned()).collect();
    compare(named(a, &of_a.which), named(b, &of_b.which), &metrics)
}

fn row<'a>(comparison: &'a Comparison, metric: &str) -> &'a Row {
    comparison.pairs[0]
        .rows
        .iter()
        .find(|row| row.metric == metric)
        .unwrap()
}

#[test]
fn references_are_read_and_written() {
    let check = |text: &str, experiment, which| {
        let found: Reference = text.parse().unwrap();
        assert_eq!(found, Reference { experiment, which });
        assert_eq!(found.to_string().parse(), Ok(found));
    };
    check("3", Some(3), Which::All);
    check(" last ", None, Which::All);
    check("3:a b, c=d:e/4", Some(3), Which::Treatment("a b, c=d:e/4".into()));
    check("last:memory", None, Which::Treatment("memory".into()));
    check("3/12", Some(3), Which::Trial(12));
    for wrong in ["", "0", "-1", "x", "3:", "3/", "3/x", ":x", "/1", "first"] {
        let error = wrong.parse::<Reference>().unwrap_err();
        assert!(error.to_string().contains("3:memory"), "{error}");
    }
}

#[test]
fn treatments_of_one_experiment_are_held_within_blocks() {
    let stored = measured(3, &[("reference", 1.0), ("memory", 1.10), ("jit", 1.0)]);
    let found = held(&stored, "3:reference", &stored, "3:memory", &[]).unwrap();
    assert_eq!(found.basis, Basis::Blocks);
    let tps = row(&found, "tps");
    let effect = tps.effect.unwrap();
    assert_eq!((effect.verdict, effect.blocks), (Verdict::Better, 4));
    assert!((effect.ratio - 1.10).abs() < 0.005, "{effect:?}");
    assert_eq!(tps.a.unwrap().n, 4);
    assert_eq!(row(&found, "p99_ms").effect.unwrap().verdict, Verdict::Better);
    let same = held(&stored, "3:reference", &stored, "3:jit", &["tps"]).unwrap();
    assert_eq!(row(&same, "tps").effect.unwrap().verdict, Verdict::Same);
}

#[test]
fn experiments_are_held_by_their_trials_with_what_differs() {
    let (a, mut b) = (
        measured(3, &[("reference", 1.0), ("memory", 1.1)]),
        measured(4, &[("reference", 2.0), ("memory", 2.2), ("jit", 1.0)]),
    );
    b.record.target = "sandbox y".into();
    b.record.workload.clients = 16;
    let fact = |value: &str| FactRecord {
        group: "server".into(),
        name: "server.version".into(),
        value: Some(value.into()),
        missing: None,
        source: "server_version_num".into(),
    };
    let mut a = a;
    a.record.facts.push(fact("17.1"));
    b.record.facts.push(fact("18.0"));
    let found = held(&a, "3", &b, "4", &["tps"]).unwrap();
    assert_eq!((found.basis, found.pairs.len()), (Basis::Trials, 2));
    let effect = row(&found, "tps").effect.unwrap();
    assert!(
        (effect.ratio - 2.0).abs() < 0.01 && effect.verdict == Verdict::Better,
        "{effect:?}"
    );
    let whats: Vec<&str> = found.pairs[0].differs.iter().map(|d| d.what.as_str()).collect();
    assert_eq!(whats, ["target", "PostgreSQL", "clients"]);
    let one = held(&a, "3:memory", &b, "4", &["tps"]).unwrap();
    assert_eq!(one.pairs[0].b, "experiment 4, memory");
    // Whichever is asked for, the intervals are those of all that may be.
    assert_eq!(row(&one, "tps").effect, found.pairs[1].rows[0].effect);
}

#[test]
fn single_treatments_are_held_against_each_other_whatever_their_names() {
    let (a, b) = (measured(1, &[("old", 1.0)]), measured(2, &[("new", 1.0)]));
    assert_eq!(
        held(&a, "1", &b, "2", &[]).unwrap().pairs[0].b,
        "experiment 2, new"
    );
    assert_eq!(
        held(&a, "1:old", &b, "2", &[]).unwrap().pairs[0].b,
        "experiment 2, new"
    );
}

#[test]
fn two_trials_have_an_interval_of_throughput_alone() {
    let stored = measured(3, &[("reference", 1.0), ("memory", 1.10)]);
    let found = held(&stored, "3/1", &stored, "3/2", &["tps", "p99_ms"]).unwrap();
    assert_eq!(found.basis, Basis::TwoTrials);
    let effect = row(&found, "tps").effect.unwrap();
    assert!(effect.ratio_low > 1.0 && effect.verdict == Verdict::Undecided);
    let p99 = row(&found, "p99_ms");
    assert!(p99.effect.is_none() && p99.ratio.is_some() && p99.why_no_interval.is_some());
}

#[test]
fn what_cannot_be_compared_is_reported() {
    let mut a = measured(3, &[("reference", 1.0), ("memory", 1.1), ("huge", 1.0)]);
    a.record.treatments[2].why_not = Some("no root".into());
    a.trials[0].1.status = TrialStatus::Invalid;
    let b = measured(4, &[("x", 1.0), ("y", 1.0)]);
    let check = |of_a: &str, b: &StoredExperiment, of_b: &str, metric: &[&str], text: &str| {
        let error = held(&a, of_a, b, of_b, metric).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    };
    check("3:menory", &b, "4:x", &[], "it has reference; memory");
    check("3:huge", &b, "4:x", &[], "was not tested: no root");
    check("3/99", &b, "4/1", &[], "no trial 99");
    check("3/1", &b, "4/1", &[], "does not count");
    check("3/2", &b, "4:x", &[], "a trial is compared with a trial");
    check("3", &a, "3", &[], "both sides are experiment 3");
    check("3:memory", &a, "3:memory", &[], "both sides are");
    check("3", &b, "4", &[], "share no tested treatment");
    check("3:memory", &b, "4:x", &["tsp"], "p99_ms");
}

#[test]
fn without_a_finished_trial_there_is_no_comparison() {
    let (mut a, mut b) = (measured(3, &[("x", 1.0)]), measured(4, &[("x", 1.0)]));
    for (_, trial) in a.trials.iter_mut().chain(&mut b.trials) {
        trial.status = TrialStatus::Failed;
    }
    assert_eq!(held(&a, "3", &b, "4", &[]), Err(CompareError::NothingMeasured));
}

#[test]
fn gates_are_read() {
    let check = |text: &str, way, percent, shown: &str| {
        let gate: Gate = text.parse().unwrap();
        assert_eq!((gate.way, gate.percent), (way, percent));
        assert_eq!(gate.to_string(), shown);
        assert_eq!(shown.parse(), Ok(gate));
    };
    check("tps worse than 2%", Way::Worse, 2.0, "tps worse than 2%");
    check(
        " p99_ms  better than 0.5 % ",
        Way::Better,
        0.5,
        "p99_ms better than 0.5%",
    );
    check("tps differs by 3%", Way::Differs, 3.0, "tps differs by 3%");
    check(
        "tps differs by more than 3%",
        Way::Differs,
        3.0,
        "tps differs by 3%",
    );
    for wrong in [
        "",
        "tps",
        "tps worse",
        "tps worse 2%",
        "tps worse than 2",
        "tps worse than -2%",
        "tps worse than NaN%",
        "tps slower than 2%",
        "t\u{1}p worse than 2%",
        "tps worse than 1e9%",
        "tps worse than 1e-300%",
    ] {
        let error = wrong.parse::<Gate>().unwrap_err().to_string();
        assert!(error.contains("tps worse than 2%"), "{error}");
    }
}

#[test]
fn a_gate_fails_by_a_whole_interval() {
    let stored = measured(3, &[("reference", 1.0), ("slow", 0.9)]);
    let found = held(&stored, "3:reference", &stored, "3:slow", &[]).unwrap();
    let check = |gate: &str, expected| {
        let judged = gate.parse::<Gate>().unwrap().judge(&found).unwrap();
        assert_eq!(judged[0].outcome, expected, "{gate}: {judged:?}");
    };
    check("tps worse than 2%", Outcome::Fails);
    check("tps worse than 20%", Outcome::Holds);
    check("tps worse than 10%", Outcome::NotDecided);
    check("tps better than 2%", Outcome::Holds);
    check("tps differs by 2%", Outcome::Fails);
    check("tps differs by 20%", Outcome::Holds);
    // A longer response is worse.
    check("p99_ms worse than 5%", Outcome::Fails);
    check("p99_ms worse than 20%", Outcome::Holds);
    // A finding of either side is not a finding where the side that it flatters has failed more
    // often.
    let doubtful = |failed, gates: [&str; 2]| {
        let mut found = found.clone();
        for row in &mut found.pairs[0].rows {
            row.failed = failed;
        }
        for gate in gates {
            let judged = gate.parse::<Gate>().unwrap().judge(&found).unwrap();
            assert_eq!(judged[0].outcome, Outcome::NotDecided, "{gate}: {judged:?}");
            assert!(judged[0].why.contains("trials failed than of"), "{judged:?}");
        }
    };
    doubtful((1, 0), ["tps worse than 2%", "tps differs by 2%"]);
    doubtful((1, 0), ["tps better than 2%", "p99_ms worse than 5%"]);
    doubtful((0, 1), ["tps worse than 20%", "tps differs by 20%"]);
    let error = |gate: &str| {
        gate.parse::<Gate>()
            .unwrap()
            .judge(&found)
            .unwrap_err()
            .to_string()
    };
    assert!(error("tps worse than 100%").contains("could never fail"));
    assert!(error("wal_bytes_per_tx worse than 1%").contains("not measured"));
}

proptest! {
    #[test]
    fn no_text_makes_a_parser_panic(text in ".{0,60}", words in "[a-z0-9_ %.:/]{0,40}") {
        for text in [text, words] {
            let _ = text.parse::<Gate>();
            let _ = text.parse::<Reference>();
        }
    }

    #[test]
    fn what_is_written_of_a_gate_is_the_same_gate(
        metric in "[a-z_0-9.]{1,64}", way in "worse than|better by|differs by|differs by more than", percent in 0.000_001_f64..10_000.0,
    ) {
        let gate: Gate = format!("{metric} {way} {percent}%").parse().unwrap();
        prop_assert_eq!(gate.to_string().parse::<Gate>(), Ok(gate));
    }
}
