//! Reports of experiments with factors: tables, findings, effects, curves.

use super::{stored, treatment, trial};
use crate::build;
use crate::markdown;
use crate::model::{ClaimOutcome, Report};
use pgdyno_record::{
    ChartRecord, ClaimRecord, EventRecord, FactorRecord, SecondRecord, StoredExperiment, StudyRecord,
    TableRecord, TrialRecord, TrialStatus, WorkloadRecord,
};
use pgdyno_stats::Verdict;
use std::collections::BTreeMap;

pub(super) type Levels<'a> = &'a [(&'a str, bool, &'a [&'a str])];

/// All combinations of the levels of factors (name, condition, levels), three blocks, with the
/// throughput that `tps` gives the numbers of the levels. A factor named "clients" sets them.
pub(super) fn factorial(
    design: &str,
    factors: Levels<'_>,
    tps: impl Fn(&[usize]) -> f64,
) -> StoredExperiment {
    let mut stored = stored("one-at-a-time", 3);
    stored.trials.clear();
    stored.record.treatments.clear();
    stored.record.design = design.into();
    stored.record.factors = factors
        .iter()
        .map(|(name, condition, levels)| FactorRecord {
            name: (*name).into(),
            title: format!("The {name}"),
            condition: *condition,
            levels: levels.iter().map(|level| (*level).into()).collect(),
        })
        .collect();
    let mut rows: Vec<Vec<usize>> = vec![Vec::new()];
    for (_, _, levels) in factors {
        let longer = rows.iter().flat_map(|row| {
            (0..levels.len()).map(|level| row.iter().copied().chain([level]).collect::<Vec<usize>>())
        });
        rows = longer.collect();
    }
    for (number, row) in rows.iter().enumerate() {
        let with = |row: &[usize]| -> Vec<(String, String)> {
            let named = factors.iter().zip(row);
            named
                .map(|((name, _, levels), level)| ((*name).into(), levels[*level].into()))
                .collect()
        };
        let name = |row: &[usize]| {
            let parts: Vec<String> = with(row).iter().map(|(f, l)| format!("{f}={l}")).collect();
            parts.join(", ")
        };
        let reference: Vec<usize> = factors
            .iter()
            .zip(row)
            .map(|((_, condition, _), l)| if *condition { *l } else { 0 })
            .collect();
        let compares = !matches!(design, "ladder" | "fractional" | "screening");
        let mut made = treatment(&name(row), None);
        made.levels = with(row);
        made.against = (compares && reference != *row).then(|| name(&reference));
        let clients = made.levels.iter().find(|(factor, _)| factor == "clients");
        made.workload = clients.map(|(_, level)| WorkloadRecord {
            clients: level.parse().unwrap(),
            ..stored.record.workload.clone()
        });
        for block in 1..=3 {
            let wobble = 1.0 + 0.002 * f64::from((block * 7 + u32::try_from(number).unwrap() * 5) % 3);
            let value = tps(row) * wobble * (1.0 + 0.1 * f64::from(block));
            let mut record = trial(block, &made.name, value, TrialStatus::Finished);
            record.figures.insert("job_s".into(), 1000.0 / value);
            stored
                .trials
                .push((i64::try_from(stored.trials.len()).unwrap(), record));
        }
        stored.record.treatments.push(made);
    }
    stored
}

/// The same blocks so many times, one after the other.
pub(super) fn repeat(stored: &mut StoredExperiment, times: u32) {
    let once: Vec<TrialRecord> = stored.trials.iter().map(|(_, trial)| trial.clone()).collect();
    for further in 1..times {
        for trial in &once {
            let mut trial = trial.clone();
            trial.block += further * stored.record.blocks;
            let id = i64::try_from(stored.trials.len()).unwrap();
            stored.trials.push((id, trial));
        }
    }
    stored.record.blocks *= times;
}

pub(super) fn claim(
    of: &[(&str, &str)],
    against: &[(&str, &str)],
    found: &str,
    ratio: Option<f64>,
) -> ClaimRecord {
    let levels = |of: &[(&str, &str)]| -> BTreeMap<String, String> {
        of.iter().map(|(f, l)| ((*f).into(), (*l).into())).collect()
    };
    ClaimRecord {
        text: "It helps".into(),
        of: levels(of),
        event: None,
        against: levels(against),
        metric: "tps".into(),
        found: found.into(),
        ratio,
        chart: None,
    }
}

pub(super) fn study(tables: Vec<TableRecord>, claims: Vec<ClaimRecord>) -> Option<StudyRecord> {
    Some(StudyRecord {
        source: "ibm-z".into(),
        title: "A study (2020)".into(),
        charts: Vec::new(),
        tables,
        claims,
    })
}

/// Pages double it, the scheduler does nothing, and both together add a half more.
pub(super) fn pages_and_scheduler() -> StoredExperiment {
    factorial(
        "full-factorial",
        &[
            ("pages", false, &["4k", "2M"]),
            ("scheduler", false, &["none", "bfq"]),
        ],
        |row| 1000.0 * [1.0, 2.0][row[0]] * if row == [1, 1] { 1.5 } else { 1.0 },
    )
}

/// The law with lambda 100, sigma 0.02, kappa 0.0005: its peak is at 44 clients.
pub(super) fn ladder() -> StoredExperiment {
    let clients: &[&str] = &["1", "4", "16", "32", "64", "128"];
    let mut stored = factorial("ladder", &[("clients", true, clients)], |row| {
        let n: f64 = clients[row[0]].parse().unwrap();
        100.0 * n / (1.0 + 0.02 * (n - 1.0) + 0.0005 * n * (n - 1.0))
    });
    let reached: Vec<(String, f64)> = stored
        .trials
        .iter()
        .map(|(_, t)| (t.treatment.clone(), t.tps.unwrap()))
        .collect();
    for ((_, trial), (name, tps)) in stored.trials.iter_mut().zip(reached) {
        let clients: f64 = name.trim_start_matches("clients=").parse().unwrap();
        // Little's law.
        trial.percentiles.as_mut().unwrap().p99_ms = Some(3000.0 * clients / tps);
    }
    stored
}

pub(super) fn report(stored: &StoredExperiment) -> Report {
    build(stored, "test", 0)
}

#[test]
fn a_factorial_has_a_table_and_effects_of_its_own() {
    let report = report(&pages_and_scheduler());
    let [table] = &report.tables[..] else {
        panic!("one table")
    };
    assert_eq!(table.title, "Throughput by The pages and The scheduler");
    assert_eq!(table.columns.len(), 2);
    let cell = table.blocks[0].rows[1].cells[1].as_ref().unwrap();
    assert_eq!((cell.n, (cell.mean / 3600.0).round()), (3, 1.0));
    assert!(cell.low.unwrap() < cell.mean);
    let names: Vec<&str> = report.effects.iter().map(|e| e.title.as_str()).collect();
    assert_eq!(
        names,
        [
            "The pages 2M",
            "The scheduler bfq",
            "The pages 2M with The scheduler bfq"
        ]
    );
    let pages = report.effects[0].effect.unwrap();
    assert!((pages.ratio - 2.0 * 1.5_f64.sqrt()).abs() < 0.05, "{pages:?}");
    assert_eq!(report.effects[2].effect.unwrap().verdict, Verdict::Better);
    let answer = &report.experiment.answer;
    assert!(
        answer.contains("with \u{201c}The pages=2M, scheduler=bfq\u{201d}"),
        "{answer}"
    );
    assert!(
        answer.contains("The strongest effects: The pages 2M +1"),
        "{answer}"
    );
    assert_eq!(
        report.treatments[3].against.as_deref(),
        Some("pages=4k, scheduler=none")
    );
    assert!(report.decision.minimum_detectable_effect.unwrap() > 0.0);
}

#[test]
fn conditions_are_no_effects_but_part_blocks() {
    let stored = factorial(
        "full-factorial",
        &[
            ("clients", true, &["1", "8"]),
            ("pages", false, &["4k", "2M"]),
            ("scheduler", false, &["none", "bfq"]),
        ],
        |row| [100.0, 700.0][row[0]] * [1.0, 1.1][row[1]],
    );
    let report = report(&stored);
    assert_eq!(report.effects.len(), 3);
    assert!((report.effects[0].effect.unwrap().ratio - 1.1).abs() < 0.01);
    assert_eq!(report.curves.len(), 4, "one for each combination of the others");
    assert_eq!(
        report.tables[0].blocks.len(),
        2,
        "one for each level of the third factor"
    );
    assert_eq!(
        report.tables[0].blocks[1].title.as_deref(),
        Some("The scheduler bfq")
    );
    assert!(report.decision.method.contains("under the same conditions"));
}

#[test]
fn a_study_names_its_tables() {
    let mut stored = pages_and_scheduler();
    let table = |rows: Option<&str>, columns: Option<&str>, values: &[&str]| TableRecord {
        title: "T".into(),
        rows: rows.map(str::to_owned),
        columns: columns.iter().map(|&factor| factor.to_owned()).collect(),
        values: values.iter().map(|v| (*v).into()).collect(),
    };
    stored.record.study = study(
        vec![
            table(Some("pages"), None, &["tps", "job_s"]),
            table(None, Some("pages"), &["tps"]),
        ],
        Vec::new(),
    );
    let report = report(&stored);
    let [figures, factors] = &report.tables[..] else {
        panic!("two tables")
    };
    let heads: Vec<&str> = figures.columns.iter().map(|c| c.title.as_str()).collect();
    assert_eq!(heads, ["TPS", "job, s"]);
    assert_eq!(figures.blocks.len(), 2);
    assert_eq!(
        (factors.rows.as_str(), factors.blocks.len()),
        ("The scheduler", 1)
    );
    assert!(report.study.unwrap().summary.is_none());
}

#[test]
fn jobs_take_time() {
    let mut stored = stored("one-at-a-time", 3);
    stored.record.metric = "job_s".into();
    for (_, trial) in &mut stored.trials {
        trial
            .figures
            .insert("job_s".into(), 20_000.0 / trial.tps.unwrap());
        trial.tps = None;
        trial.percentiles = None;
    }
    let report = report(&stored);
    let answer = &report.experiment.answer;
    assert!(answer.starts_with("The job took 1"), "{answer}");
    assert!(answer.contains(" s instead of 1"), "{answer}");
    assert!(!answer.contains("TPS"), "{answer}");
    assert_eq!(
        report.treatments[1].step.unwrap().verdict,
        Verdict::Better,
        "shorter is better"
    );
    assert!(markdown(&report).contains("| step | job, s | effect of the step |"));
    assert!(!report.decision.larger_is_better);
}

#[test]
fn screening_reports_main_effects() {
    let mut stored = factorial(
        "screening",
        &[("a", false, &["off", "on"]), ("b", false, &["off", "on"])],
        |row| 1000.0 * [1.0, 1.3][row[0]],
    );
    stored.record.study = study(Vec::new(), vec![claim(&[("a", "on")], &[], "better", Some(1.25))]);
    let report = report(&stored);
    assert_eq!(report.effects.len(), 2);
    assert_eq!(report.claims[0].outcome, ClaimOutcome::Agrees);
    assert!(
        report
            .experiment
            .answer
            .contains("the strongest effects on throughput: The a on +30")
    );
    assert!(report.decision.method.contains("least squares"));
}

#[test]
fn looks_after_each_block_are_reported() {
    let mut stored = pages_and_scheduler();
    stored.record.stop = "when-decided".into();
    stored.record.blocks = 20;
    let report = report(&stored);
    let decision = &report.decision;
    assert!(
        decision.stop_rule.contains("evaluated after each block"),
        "{}",
        decision.stop_rule
    );
    assert!(
        decision.method.contains("hold together at all looks"),
        "{}",
        decision.method
    );
    assert_eq!(decision.minimum_detectable_effect, None);
    assert_eq!(report.experiment.blocks_finished, 3);
}

#[test]
fn a_trial_without_a_ratio_is_in_no_mean_and_named_and_a_disturbed_one_counts() {
    let mut stored = factorial("full-factorial", &[("a", false, &["1", "2", "3", "4"])], |_| {
        1000.0
    });
    let (_, disturbed) = &mut stored.trials[4];
    disturbed.tps = disturbed.tps.map(|tps| tps * 0.5);
    disturbed.disturbed = true;
    disturbed.disturbances.push("CPU steal 12 %".into());
    let whole = report(&stored);
    assert!(whole.decision.excluded.is_empty() && !whole.trials[4].excluded);
    assert_eq!(whole.treatments[1].trials_finished, 3);
    stored.trials[4].1.tps = Some(0.0);
    let report = report(&stored);
    let [left] = &report.decision.excluded[..] else {
        panic!("one: {:?}", report.decision.excluded)
    };
    assert_eq!((left.trial, left.disturbances.len()), (4, 1));
    assert!(report.trials[4].excluded);
    let treatment = &report.treatments[1];
    assert_eq!((treatment.trials_finished, treatment.trials_excluded), (3, 1));
    assert!(treatment.tps.as_ref().unwrap().mean > 1100.0);
    let text = markdown(&report);
    assert!(
        text.contains("finished, excluded | excluded: its value has no ratio"),
        "{text}"
    );
}

#[test]
fn a_guard_that_ends_a_treatment_leaves_the_blocks_whole() {
    let mut stored = stored("one-at-a-time", 3);
    stored
        .trials
        .retain(|(_, trial)| trial.treatment != "c" || trial.block == 1);
    let last = stored.trials.iter_mut().find(|(_, trial)| trial.treatment == "c");
    let (_, last) = last.unwrap();
    (last.status, last.ended_by_guard) = (TrialStatus::Failed, true);
    assert_eq!(report(&stored).experiment.blocks_finished, 3);
}

/// A chart has a place for each level, a line for each of another factor, a panel for each of the
/// rest, and its findings.
#[test]
fn a_chart_has_lines_panels_and_the_findings_that_it_shows() {
    let mut stored = pages_and_scheduler();
    let titled = |chart: Option<&str>| ClaimRecord {
        chart: chart.map(str::to_owned),
        ..claim(&[("pages", "2M")], &[], "better", None)
    };
    let mut made = study(
        Vec::new(),
        vec![
            titled(None),
            titled(Some("By scheduler")),
            titled(Some("By pages")),
            titled(Some("Step upon step")),
        ],
    );
    let chart = |title: &str, rows: &str, columns: &[&str]| ChartRecord {
        form: "lines".into(),
        published: Some("It doubles".into()),
        table: TableRecord {
            title: title.into(),
            rows: Some(rows.into()),
            columns: columns.iter().map(|&factor| factor.to_owned()).collect(),
            values: vec!["tps".into()],
        },
    };
    let mut waterfall = chart("Step upon step", "step", &[]);
    waterfall.form = "waterfall".into();
    made.as_mut().unwrap().charts = vec![
        chart("By pages", "pages", &[]),
        chart("By scheduler", "scheduler", &["pages"]),
        chart("By step", "step", &["scheduler", "pages"]),
        waterfall,
    ];
    stored.record.study = made;
    let report = report(&stored);
    let [by_pages, by_scheduler, by_both] = &report.charts[..] else {
        panic!("{:?}", report.charts);
    };
    let panels: Vec<_> = by_pages
        .table
        .blocks
        .iter()
        .map(|block| block.title.clone().unwrap())
        .collect();
    assert_eq!(panels, ["The scheduler none", "The scheduler bfq"]);
    assert_eq!(
        (by_pages.table.columns.len(), &by_pages.claims[..]),
        (1, &[2][..])
    );
    let mean = |panel: usize, row: usize| {
        by_pages.table.blocks[panel].rows[row].cells[0]
            .as_ref()
            .unwrap()
            .mean
    };
    let means = [mean(0, 0), mean(0, 1), mean(1, 1)];
    assert!(
        means[1] > 1.5 * means[0] && means[2] > 1.2 * means[1],
        "{means:?}"
    );
    let lines: Vec<_> = by_scheduler
        .table
        .columns
        .iter()
        .map(|line| line.title.as_str())
        .collect();
    assert_eq!((lines, &by_scheduler.claims[..]), (vec!["4k", "2M"], &[1][..]));
    assert_eq!(by_scheduler.table.blocks.len(), 1);
    let combined: Vec<_> = by_both
        .table
        .columns
        .iter()
        .map(|line| line.title.as_str())
        .collect();
    assert_eq!(
        (combined, by_both.table.columns_title.as_str()),
        (
            vec!["none, 4k", "none, 2M", "bfq, 4k", "bfq, 2M"],
            "The scheduler, The pages"
        )
    );
    let [whole] = &report.whole_charts[..] else {
        panic!("{:?}", report.whole_charts);
    };
    assert_eq!(
        (whole.title.as_str(), &whole.claims[..]),
        ("Step upon step", &[3][..])
    );
    assert!(markdown(&report).contains("## By scheduler\n\n| The scheduler"));
}

/// Each trial is compared with itself: what differs from trial to trial is not part of an event's
/// interval.
#[test]
fn an_event_is_judged_by_each_trial_before_and_after_it() {
    let mut stored = pages_and_scheduler();
    let mut made = study(Vec::new(), vec![claim(&[], &[], "better", Some(1.72))]);
    let finding = &mut made.as_mut().unwrap().claims[0];
    finding.event = Some("jit off".into());
    stored.record.study = made;
    for (place, (_, trial)) in stored.trials.iter_mut().enumerate() {
        let level = [800.0, 870.0, 1000.0, 640.0][place % 4];
        let second = |t: u32| SecondRecord {
            t_s: f64::from(t),
            tps: level
                * if t <= 12 {
                    1.0
                } else {
                    1.7 + 0.01 * f64::from(t % 3)
                },
            ..SecondRecord::default()
        };
        trial.warmup_s = 2.0;
        trial.seconds = (1..=22).map(second).collect();
        trial.events = vec![EventRecord {
            title: "jit off".into(),
            t_s: 12.0,
            took_s: 0.4,
        }];
    }
    let made = report(&stored);
    assert_eq!(made.timelines.len(), stored.record.treatments.len());
    let shift = &made.timelines[0].shifts[0];
    let effect = shift.effect.unwrap();
    assert!(
        (1.70..1.72).contains(&effect.ratio) && effect.ratio_high - effect.ratio_low < 0.01,
        "{effect:?}"
    );
    assert_eq!(made.timelines[0].seconds.len(), 22);
    let claim = &made.claims[0];
    assert_eq!(claim.outcome, ClaimOutcome::Agrees, "{}", claim.sentence);
    let text = markdown(&made);
    assert!(text.contains("| jit off | 12.0 | 0.4 |"), "{text}");
    // A load that failed may have been ended by the event: nothing is better with it.
    let mut failing = stored.clone();
    failing.trials[0].1.status = TrialStatus::Failed;
    let verdict = report(&failing).timelines[0].shifts[0]
        .effect
        .map(|effect| effect.verdict);
    assert_eq!(verdict, Some(Verdict::Undecided));
    // What rises by a hundredth each second before it, would have risen by itself.
    let mut rising = stored.clone();
    for (_, trial) in &mut rising.trials {
        for second in &mut trial.seconds {
            second.tps *= 1.0 + 0.01 * second.t_s;
        }
    }
    let made = report(&rising);
    let shift = &made.timelines[0].shifts[0];
    assert!((0.08..0.16).contains(&shift.trend.unwrap()), "{shift:?}");
    assert_eq!(
        shift.effect.map(|effect| effect.verdict),
        Some(Verdict::Undecided)
    );
    assert_eq!(made.claims[0].outcome, ClaimOutcome::Undecided);
    let text = markdown(&made);
    assert!(text.contains("| a trend before it: +1"), "{text}");
    // One trial says nothing of chance.
    stored.trials.truncate(1);
    let made = report(&stored);
    assert_eq!(made.timelines.len(), 1);
    let shift = &made.timelines[0].shifts[0];
    assert!(shift.effect.is_none() && shift.after_tps.unwrap() > shift.before_tps.unwrap());
}

#[test]
fn markdown_and_csv_have_all_of_it() {
    let mut stored = pages_and_scheduler();
    stored.record.study = study(
        vec![TableRecord {
            title: "By pages".into(),
            rows: Some("pages".into()),
            columns: vec!["scheduler".into()],
            values: vec!["tps".into()],
        }],
        vec![claim(
            &[("pages", "2M"), ("scheduler", "none")],
            &[],
            "better",
            Some(1.12),
        )],
    );
    let made = report(&stored);
    let text = markdown(&made);
    for wanted in [
        "## Findings of [ibm-z]",
        "**Of 1 finding of \\[ibm-z\\], this host agrees with 1, disagrees with 0.**",
        "| It helps | +12.0 % | +1",
        "\u{2713} agrees | The pages=2M, scheduler=none against The pages=4k, scheduler=none |",
        "## By pages\n\n| The pages \\\\ The scheduler | none | bfq |\n|---|--:|--:|",
        "## Effect of each factor",
        "| The pages 2M with The scheduler bfq | each alone | +",
        "| treatment | TPS | effect | verdict | against | p95 ms |",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
    let text = markdown(&report(&ladder()));
    for wanted in [
        "## Throughput over clients",
        "- Happy zone: ",
        "- Universal Scalability Law: lambda 1",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
    let csv = crate::csv(&made);
    let lines: Vec<&str> = csv.split("\r\n").collect();
    assert_eq!(lines.len(), made.trials.len() + 2, "names, trials, and the end");
    assert!(
        lines[0].contains(",factor:pages,factor:scheduler,tps,p50_ms,"),
        "{}",
        lines[0]
    );
    assert!(
        lines[1].contains("\"pages=4k, scheduler=none\",finished,false,"),
        "{}",
        lines[1]
    );
    assert_eq!(
        lines[0].split(',').count(),
        lines[1].split(',').count() - 1,
        "one comma is in quotes"
    );
}

#[test]
fn the_json_of_factors_has_the_names_that_the_page_expects() {
    let mut stored = ladder();
    stored.record.study = study(
        Vec::new(),
        vec![claim(&[("clients", "4")], &[], "better", Some(3.0))],
    );
    let json = serde_json::to_value(report(&stored)).unwrap();
    for path in [
        "/experiment/headline",
        "/experiment/factors/0/condition",
        "/decision/metric_unit",
        "/decision/larger_is_better",
        "/decision/stop_rule",
        "/decision/excluded",
        "/decision/minimum_detectable_effect",
        "/treatments/0/levels/0/level",
        "/treatments/0/against",
        "/treatments/0/workload/clients",
        "/treatments/0/figures/job_s",
        "/treatments/0/metric/low",
        "/treatments/0/trials_excluded",
        "/trials/0/figures/p99_ms",
        "/trials/0/excluded",
        "/study/summary",
        "/claims/0/study_ratio",
        "/claims/0/effect/ratio_low",
        "/effects",
        "/tables",
        "/curves/0/points/0/tps/mean",
        "/curves/0/usl/peak_x/high",
        "/curves/0/zone/lower_edge",
        "/curves/0/why_no_usl",
    ] {
        assert!(json.pointer(path).is_some(), "{path}");
    }
    assert_eq!(
        json["claims"][0]["against"][0], "clients=1",
        "a condition alone is held against its first level"
    );
}
