//! What services of continuous benchmarking and continuous integration read: Bencher's metric
//! format, the JSON of github-action-benchmark, and JUnit's XML.

use crate::model::{Interval, Report, Treatment};
use crate::text::{effect, verdict_word};
use pgdyno_stats::Verdict;
use quick_xml::Writer;
use quick_xml::events::BytesText;
use serde_json::{Map, Value, json};
use std::io;

/// Bencher's metric format (bencher.dev, as of 2026): for each treatment `EXPERIMENT/TREATMENT`,
/// and in it each figure by the name of its metric, a mean over trials; with `lower_value` and
/// `upper_value` where it has an interval.
pub fn bmf(report: &Report) -> String {
    let mut whole = Map::new();
    for treatment in &report.treatments {
        let mut measures: Map<String, Value> = (treatment.figures.iter())
            .filter(|(_, value)| value.is_finite())
            .map(|(figure, value)| (figure.clone(), json!({ "value": value })))
            .collect();
        let with_intervals = [
            (report.decision.metric.as_str(), &treatment.metric),
            ("tps", &treatment.tps),
        ];
        for (figure, interval) in with_intervals {
            if let Some(Interval { mean, low, high }) = interval
                && [mean, low, high].iter().all(|value| value.is_finite())
            {
                let measure = json!({ "value": mean, "lower_value": low, "upper_value": high });
                measures.insert(figure.to_owned(), measure);
            }
        }
        if !measures.is_empty() {
            whole.insert(named(report, &treatment.name), Value::Object(measures));
        }
    }
    format!("{:#}\n", Value::Object(whole))
}

/// The JSON of github-action-benchmark (as of 2026) for its tools `customBiggerIsBetter` and
/// `customSmallerIsBetter`: the figure that decides, for each treatment that has it. Which of the
/// two tools follows from that figure.
pub fn github_benchmark(report: &Report) -> String {
    let decision = &report.decision;
    let of_treatment = |treatment: &Treatment| {
        let interval = treatment.metric.as_ref();
        let mean = interval.map(|interval| interval.mean);
        let mean = mean.or_else(|| treatment.mean(&decision.metric))?;
        let range = interval.map(|interval| format!("{} to {}", interval.low, interval.high));
        Some(json!({
            "name": named(report, &treatment.name),
            "unit": if decision.metric_unit.is_empty() { &decision.metric } else { &decision.metric_unit },
            "value": mean,
            "range": range,
            "extra": treatment.step.as_ref().map(|step| said(report, step)),
        }))
    };
    let all: Vec<Value> = report.treatments.iter().filter_map(of_treatment).collect();
    format!("{:#}\n", Value::Array(all))
}

/// Level of a factor that is the reference once more: what differs is not a change that was tried.
pub const REFERENCE_AGAIN: &str = "base-again";

/// JUnit's XML: a test case for each treatment. One that is worse than what it is compared with is
/// a failure, one without a finished trial an error; what was not tested, and what is undecided, is
/// skipped, as is the reference where it differs from itself.
///
/// # Errors
///
/// None that a text in memory can have.
pub fn junit(report: &Report) -> io::Result<String> {
    let outcomes: Vec<(&Treatment, Outcome)> = report
        .treatments
        .iter()
        .map(|treatment| (treatment, Outcome::of(report, treatment)))
        .collect();
    let count = |kind: &str| {
        let outcomes = outcomes.iter().filter(|(_, outcome)| outcome.kind == Some(kind));
        outcomes.count().to_string()
    };
    let name = readable(&report.experiment.name);
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    writer
        .create_element("testsuite")
        .with_attributes([
            ("name", name.as_str()),
            ("tests", &outcomes.len().to_string()),
            ("failures", &count(FAILURE)),
            ("errors", &count(ERROR)),
            ("skipped", &count(SKIPPED)),
        ])
        .write_inner_content(|writer| {
            for (treatment, outcome) in &outcomes {
                let trials = report
                    .trials
                    .iter()
                    .filter(|trial| trial.treatment == treatment.name);
                let time_s: f64 = trials.map(|trial| trial.warmup_s + trial.measured_s).sum();
                writer
                    .create_element("testcase")
                    .with_attributes([
                        ("classname", name.as_str()),
                        ("name", &readable(&treatment.name)),
                        ("time", &format!("{time_s:.3}")),
                    ])
                    .write_inner_content(|writer| outcome.write(writer))?;
            }
            Ok(())
        })?;
    let bytes = writer.into_inner();
    Ok(format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n",
        String::from_utf8_lossy(&bytes)
    ))
}

const FAILURE: &str = "failure";
const ERROR: &str = "error";
const SKIPPED: &str = "skipped";

/// How a test case ended.
struct Outcome {
    /// The element in it; `None` where it passed.
    kind: Option<&'static str>,
    message: String,
}

impl Outcome {
    fn of(report: &Report, treatment: &Treatment) -> Outcome {
        let with = |kind, message: String| Outcome { kind, message };
        if let Some(why_not) = &treatment.why_not {
            return with(Some(SKIPPED), format!("not tested: {why_not}"));
        }
        if treatment.trials_finished == 0 {
            let mut trials = report
                .trials
                .iter()
                .filter(|trial| trial.treatment == treatment.name);
            let reason = trials.find_map(|trial| trial.reason.clone());
            let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
            return with(Some(ERROR), format!("no trial finished{reason}"));
        }
        let Some(step) = &treatment.step else {
            return with(None, String::new());
        };
        let is_reference = treatment.levels.iter().any(|of| of.level == REFERENCE_AGAIN);
        let kind = match step.verdict {
            Verdict::Better | Verdict::Worse if is_reference => {
                let message = format!("the reference differs from itself: {}", said(report, step));
                return with(Some(SKIPPED), message);
            }
            Verdict::Worse => Some(FAILURE),
            Verdict::Undecided => Some(SKIPPED),
            Verdict::Better | Verdict::Same | Verdict::NoGain => None,
        };
        with(kind, said(report, step))
    }

    fn write(&self, writer: &mut Writer<Vec<u8>>) -> io::Result<()> {
        let message = readable(&self.message);
        match self.kind {
            Some(kind) => {
                let element = writer.create_element(kind);
                element
                    .with_attribute(("message", message.as_str()))
                    .write_empty()?;
            }
            None if message.is_empty() => {}
            None => {
                let element = writer.create_element("system-out");
                element.write_text_content(BytesText::new(&message))?;
            }
        }
        Ok(())
    }
}

/// The name of a treatment among those of other experiments.
fn named(report: &Report, treatment: &str) -> String {
    format!("{}/{treatment}", report.experiment.name)
}

/// An effect on the figure that decides, with its verdict.
fn said(report: &Report, step: &pgdyno_stats::Effect) -> String {
    let decision = &report.decision;
    let word = verdict_word(step.verdict, decision.smallest_effect);
    format!("{} {}: {word}", decision.metric_title, effect(step))
}

/// Without characters that XML 1.0 has not.
fn readable(text: &str) -> String {
    text.chars()
        .filter(|&c| c >= ' ' || c == '\n' || c == '\t')
        .filter(|c| !matches!(c, '\u{fffe}' | '\u{ffff}'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::build;
    use crate::build::tests::stored;
    use crate::model::LevelOf;

    fn report() -> Report {
        let mut stored = stored("one-at-a-time", 6);
        stored.record.name = "night & \u{1}day".into();
        stored.record.treatments[1].name = "<a>".into();
        for (_, trial) in &mut stored.trials {
            match trial.treatment.as_str() {
                "a" => trial.treatment = "<a>".into(),
                // Worse by far.
                "c" => trial.tps = trial.tps.map(|tps| tps / 2.0),
                _ => {}
            }
        }
        build(&stored, "pgdyno", 0)
    }

    #[test]
    fn bencher_has_each_figure_and_the_interval_of_the_one_that_decides() {
        let whole: Value = serde_json::from_str(&bmf(&report())).unwrap();
        let of = |treatment: &str| whole[format!("night & \u{1}day/{treatment}")].clone();
        let tps = &of("reference")["tps"];
        let number = |key: &str| tps[key].as_f64().unwrap();
        assert!(number("lower_value") < number("value") && number("value") < number("upper_value"));
        assert!(of("<a>")["p95_ms"]["value"].is_number());
        // It was not tested.
        assert!(of("b").is_null());
    }

    #[test]
    fn github_benchmark_has_the_figure_that_decides() {
        let all: Value = serde_json::from_str(&github_benchmark(&report())).unwrap();
        let names: Vec<&str> = all
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|one| one["name"].as_str())
            .collect();
        assert_eq!(
            names,
            [
                "night & \u{1}day/reference",
                "night & \u{1}day/<a>",
                "night & \u{1}day/c"
            ]
        );
        assert_eq!((&all[0]["unit"], &all[0]["extra"]), (&json!("TPS"), &Value::Null));
        assert!(all[2]["extra"].as_str().unwrap().ends_with(": worse"), "{all}");
    }

    #[test]
    fn junit_fails_what_is_worse_and_skips_what_is_not_tested() {
        let text = junit(&report()).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let is_there = |start: &str| lines.iter().any(|line| line.starts_with(start));
        for start in [
            "<testsuite name=\"night &amp; day\" tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"1\">",
            "<testcase classname=\"night &amp; day\" name=\"reference\" time=\"36.000\"",
            "<testcase classname=\"night &amp; day\" name=\"&lt;a&gt;\" time=\"36.000\">",
            "<system-out>throughput +20",
            "<skipped message=\"not tested: not permitted\"/>",
            "<failure message=\"throughput \u{2212}40",
        ] {
            assert!(is_there(start), "{start} in {text}");
        }
        let mut failed = report();
        failed.treatments[1].trials_finished = 0;
        failed.trials[0].treatment = "<a>".into();
        failed.trials[0].reason = Some("it did not start".into());
        let text = junit(&failed).unwrap();
        assert!(
            text.contains("<error message=\"no trial finished: it did not start\"/>"),
            "{text}"
        );
    }

    #[test]
    fn junit_does_not_fail_the_reference_for_differing_from_itself() {
        let mut again = report();
        again.treatments[3].levels = vec![LevelOf {
            factor: "side".into(),
            level: REFERENCE_AGAIN.into(),
        }];
        let text = junit(&again).unwrap();
        assert!(
            text.contains("<skipped message=\"the reference differs from itself: throughput \u{2212}40"),
            "{text}"
        );
        assert!(!text.contains("<failure"), "{text}");
    }
}
