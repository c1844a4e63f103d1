//! What a gate makes of its experiments.

use super::file::{AGAIN, BASE, HEAD, SIDE};
use pgdyno_lab::TRANSACTIONS_OF_TURN;
use pgdyno_lab::compare::{Named, Which, compare};
use pgdyno_record::{StoredExperiment, TrialRecord, TrialStatus};
use pgdyno_report::effect;
use pgdyno_stats::{Effect, Rules, Verdict};
use serde_json::{Value, json};

/// HEAD may have so many more failed transactions, as a part of all: those that fail take no time.
const ERROR_RATIO_MORE: f64 = 0.001;

/// What an experiment has found of one side.
#[derive(Debug, Clone)]
pub(super) struct Side {
    pub(super) label: &'static str,
    /// Against BASE; `None` where there are too few trials, and of BASE.
    pub(super) effect: Option<Effect>,
    pub(super) finished: usize,
    /// Trials that failed or do not hold.
    pub(super) failed: usize,
    /// Failed transactions, as a part of all.
    error_ratio: f64,
    /// Mean response time of the slowest trial, in milliseconds.
    mean_ms: f64,
    /// Why a trial failed, or a transaction.
    reason: Option<String>,
}

/// What an experiment has found.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// Number of the experiment in the store.
    pub(super) id: i64,
    pub(super) metric: String,
    /// Largest loss that does not matter, as a share.
    pub(super) limit: f64,
    rules: Rules,
    base: Side,
    pub(super) head: Side,
    /// BASE against itself.
    pub(super) again: Option<Side>,
    /// Length of the turns that servers took, in milliseconds.
    slice_ms: Option<f64>,
}

/// The answer of a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    /// With the reason.
    Failed(String),
    Undecided(String),
}

impl Outcome {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Failed(_) => "FAILED",
            Outcome::Undecided(_) => "undecided",
        }
    }

    pub(super) fn why(&self) -> String {
        match self {
            Outcome::Passed => "HEAD is not slower than BASE, within the limit".to_owned(),
            Outcome::Failed(why) | Outcome::Undecided(why) => why.clone(),
        }
    }

    /// What was found once is not enough.
    pub(super) fn confirmed_by(self, second: &Found) -> Outcome {
        match second.outcome() {
            Outcome::Failed(_) if !second.has_no_head() => self,
            second => Outcome::Undecided(format!(
                "the first experiment found HEAD slower, and the second did not confirm it: {}",
                second.why()
            )),
        }
    }
}

impl Side {
    fn of(stored: &StoredExperiment, level: &str, label: &'static str) -> Result<Side, String> {
        let name = format!("{SIDE}={level}");
        let trials = stored.trials.iter().map(|(_, trial)| trial);
        let trials: Vec<&TrialRecord> = trials.filter(|trial| trial.treatment == name).collect();
        let finished = trials
            .iter()
            .filter(|trial| trial.status == TrialStatus::Finished);
        let finished = finished.count();
        let counts = || trials.iter().map(|trial| trial.transactions);
        let failed: u64 = counts().filter_map(|of| of.failed).sum();
        let all = failed + counts().map(|of| of.committed).sum::<u64>();
        let means = trials.iter().filter_map(|trial| trial.percentiles?.mean_ms);
        let of_trial = trials.iter().find_map(|trial| trial.reason.clone());
        let of_transaction = || {
            let mut errors = trials.iter().flat_map(|trial| &trial.errors);
            errors.find_map(|error| error.message.clone())
        };
        let mut treatments = stored.record.treatments.iter();
        let untested = treatments.find(|treatment| treatment.name == name);
        let untested = untested.and_then(|treatment| treatment.why_not.clone());
        Ok(Side {
            label,
            effect: match finished > 0 && level != BASE {
                true => effect_of(stored, name)?,
                false => None,
            },
            finished,
            failed: trials.len() - finished,
            #[expect(clippy::cast_precision_loss, reason = "counts of transactions")]
            error_ratio: failed as f64 / all.max(1) as f64,
            mean_ms: means.fold(0.0, f64::max),
            reason: untested.or(of_trial).or_else(of_transaction),
        })
    }

    fn reason(&self) -> &str {
        self.reason
            .as_deref()
            .unwrap_or("`pgdyno show last` has the reasons")
    }
}

/// The effect of a treatment against BASE.
fn effect_of(stored: &StoredExperiment, name: String) -> Result<Option<Effect>, String> {
    let (base, other) = (Which::Treatment(format!("{SIDE}={BASE}")), Which::Treatment(name));
    let side = |which| Named {
        stored,
        which,
        store: None,
    };
    let metrics = [stored.record.metric.clone()];
    let compared = compare(side(&base), side(&other), &metrics).map_err(|error| error.to_string())?;
    let row = compared.pairs.first().and_then(|pair| pair.rows.first());
    Ok(row.and_then(|row| row.effect))
}

impl Found {
    /// `slice_ms`: length of the turns that servers took.
    pub(super) fn of(stored: &StoredExperiment, limit: f64, slice_ms: Option<f64>) -> Result<Found, String> {
        let record = &stored.record;
        let base = Side::of(stored, BASE, "BASE")?;
        if base.finished == 0 {
            return Err(format!("no trial of BASE finished: {}", base.reason()));
        }
        let again = format!("{SIDE}={AGAIN}");
        let has_again = record.treatments.iter().any(|treatment| treatment.name == again);
        Ok(Found {
            id: stored.id,
            metric: record.metric.clone(),
            limit,
            rules: Rules {
                confidence: record.confidence,
                smallest_effect: record.smallest_effect,
                larger_is_better: record.larger_is_better(&record.metric),
            },
            base,
            head: Side::of(stored, HEAD, "HEAD")?,
            again: has_again.then(|| Side::of(stored, AGAIN, "BASE")).transpose()?,
            slice_ms,
        })
    }

    /// Whether HEAD does not work at all.
    pub(super) fn has_no_head(&self) -> bool {
        self.head.finished == 0
    }

    /// The rule of a gate: HEAD passes where a loss of more than the limit is ruled out, also where
    /// nothing more is decided, and fails where a loss is proven and one of more than the limit is
    /// not ruled out.
    pub(super) fn outcome(&self) -> Outcome {
        let (head, again) = (&self.head, self.again.as_ref());
        if self.has_no_head() {
            return Outcome::Failed(format!("no trial of HEAD finished: {}", head.reason()));
        }
        if let Some(again) = again.filter(|again| again.finished == 0) {
            return Outcome::Undecided(format!(
                "BASE was not compared with itself, for no trial of that finished: {}",
                again.reason()
            ));
        }
        let apart = again.and_then(|again| again.effect);
        if let Some(apart) = apart.filter(|apart| is_apart(apart.verdict)) {
            return Outcome::Undecided(format!(
                "BASE differs from itself by {}: other activity on this host is larger than the limit",
                effect(&apart)
            ));
        }
        let is_ruled_out = head
            .effect
            .is_some_and(|effect| effect.loses_less_than(self.rules));
        match head.effect.map(|effect| effect.verdict) {
            Some(Verdict::Worse) => Outcome::Failed("HEAD is slower than BASE".to_owned()),
            Some(Verdict::Better | Verdict::Same) => self.passed(),
            Some(Verdict::Undecided | Verdict::NoGain) | None if head.failed > 0 => Outcome::Undecided(
                format!("{} trials of HEAD failed: {}", head.failed, head.reason()),
            ),
            Some(Verdict::Undecided | Verdict::NoGain) | None if is_ruled_out => self.passed(),
            Some(Verdict::Undecided | Verdict::NoGain) | None => Outcome::Undecided(
                "no loss is proven, and one of more than the limit is not ruled out".to_owned(),
            ),
        }
    }

    /// Not slower, unless that is because transactions fail, or because turns were too short to
    /// show it.
    fn passed(&self) -> Outcome {
        let (base, head) = (&self.base, &self.head);
        if head.error_ratio > base.error_ratio + ERROR_RATIO_MORE {
            return Outcome::Undecided(format!(
                "{:.1} % of HEAD's transactions failed, and {:.1} % of BASE's: {}",
                head.error_ratio * 100.0,
                base.error_ratio * 100.0,
                head.reason()
            ));
        }
        let mean_ms = base.mean_ms.max(head.mean_ms);
        if let Some(slice_ms) = self
            .slice_ms
            .filter(|slice| mean_ms * TRANSACTIONS_OF_TURN > *slice)
        {
            return Outcome::Undecided(format!(
                "a transaction takes {mean_ms:.1} ms, and in turns of {slice_ms} ms differences come out too small: expected --slice {}ms or \
                 longer, or --separate",
                (mean_ms * TRANSACTIONS_OF_TURN).ceil()
            ));
        }
        Outcome::Passed
    }

    /// For machines.
    pub(super) fn document(&self) -> Value {
        let side =
            |side: &Side| json!({ "effect": side.effect, "trials": side.finished, "failed": side.failed });
        json!({
            "experiment": self.id, "metric": self.metric, "limit": self.limit,
            "head": side(&self.head), "base_again": self.again.as_ref().map(side),
        })
    }
}

fn is_apart(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Better | Verdict::Worse)
}

#[cfg(test)]
mod tests {
    use super::super::file::smallest_effect;
    use super::*;
    use pgdyno_stats::{Comparison, Observation, decide};

    fn rules(limit: f64, metric: &str) -> Rules {
        Rules {
            confidence: 0.95,
            smallest_effect: smallest_effect(limit, Some(metric)),
            larger_is_better: metric == "tps",
        }
    }

    fn side(verdict: Option<Verdict>, finished: usize, failed: usize) -> Side {
        let effect = |verdict| Effect {
            ratio: 0.95,
            ratio_low: 0.93,
            ratio_high: 0.97,
            verdict,
            blocks: finished,
        };
        Side {
            label: "HEAD",
            effect: verdict.map(effect),
            finished,
            failed,
            error_ratio: 0.0,
            mean_ms: 4.0,
            reason: Some("no function work".into()),
        }
    }

    fn found(head: Side, again: Option<Verdict>) -> Found {
        Found {
            id: 1,
            metric: "tps".into(),
            limit: 0.02,
            rules: rules(0.02, "tps"),
            base: side(None, 9, 0),
            head,
            again: Some(side(again, 9, 0)),
            slice_ms: Some(50.0),
        }
    }

    #[test]
    fn a_side_that_is_slower_fails_and_one_that_is_not_passes() {
        for (verdict, expected) in [
            (Some(Verdict::Worse), "FAILED"),
            (Some(Verdict::Same), "passed"),
            (Some(Verdict::Better), "passed"),
            (Some(Verdict::Undecided), "undecided"),
            (None, "undecided"),
        ] {
            let outcome = found(side(verdict, 9, 0), Some(Verdict::Same)).outcome();
            assert_eq!(outcome.word(), expected, "{verdict:?}");
            let outcome = found(side(verdict, 9, 0), Some(Verdict::Undecided)).outcome();
            assert_eq!(outcome.word(), expected, "{verdict:?}");
        }
    }

    #[test]
    fn a_loss_passes_up_to_the_limit_and_fails_beyond_it() {
        for (metric, value, expected) in [
            ("tps", 81.0, "passed"),
            ("tps", 79.0, "FAILED"),
            ("p99_ms", 119.0, "passed"),
            ("p99_ms", 121.0, "FAILED"),
        ] {
            let of = |block| {
                [(0, 100.0), (1, value)].map(|(treatment, value)| Observation {
                    block,
                    treatment,
                    value,
                })
            };
            let observations: Vec<Observation> = (0..3).flat_map(of).collect();
            let comparison = Comparison {
                treatment: 1,
                reference: 0,
            };
            let mut head = side(None, 3, 0);
            head.effect = decide(&observations, &[comparison], rules(0.2, metric))[0];
            let outcome = found(head, None).outcome();
            assert_eq!(outcome.word(), expected, "{metric} {value}: {outcome:?}");
        }
    }

    #[test]
    fn a_loss_that_is_ruled_out_passes_though_a_gain_is_not_decided() {
        for (low, expected) in [(0.99, "passed"), (0.97, "undecided")] {
            let mut head = side(Some(Verdict::Undecided), 9, 0);
            head.effect = head.effect.map(|effect| Effect {
                ratio_low: low,
                ratio_high: 1.1,
                ..effect
            });
            assert_eq!(found(head, None).outcome().word(), expected, "{low}");
        }
    }

    #[test]
    fn nothing_is_decided_where_the_reference_differs_from_itself() {
        for again in [Verdict::Better, Verdict::Worse] {
            for head in [Verdict::Worse, Verdict::Same] {
                let outcome = found(side(Some(head), 9, 0), Some(again)).outcome();
                assert!(outcome.why().contains("differs from itself"), "{outcome:?}");
            }
        }
    }

    #[test]
    fn what_does_not_work_fails_and_what_fails_at_times_is_not_decided() {
        let broken = found(side(None, 0, 9), Some(Verdict::Same));
        let why = "no trial of HEAD finished: no function work";
        assert_eq!(broken.outcome(), Outcome::Failed(why.to_owned()));
        let at_times = found(side(Some(Verdict::Undecided), 7, 2), Some(Verdict::Same)).outcome();
        assert_eq!(at_times.why(), "2 trials of HEAD failed: no function work");
    }

    #[test]
    fn what_passes_has_neither_more_errors_nor_turns_that_are_too_short() {
        let same = || found(side(Some(Verdict::Same), 9, 0), Some(Verdict::Same));
        let mut errors = same();
        errors.head.error_ratio = 0.3;
        assert_eq!(
            errors.outcome().why(),
            "30.0 % of HEAD's transactions failed, and 0.0 % of BASE's: no function work"
        );
        let mut slow = same();
        slow.base.mean_ms = 20.5;
        assert!(
            slow.outcome().why().contains("--slice 205ms"),
            "{:?}",
            slow.outcome()
        );
        slow.slice_ms = None;
        assert_eq!(slow.outcome(), Outcome::Passed);
        let mut unseen = same();
        unseen.again = Some(side(None, 0, 9));
        assert_eq!(unseen.outcome().word(), "undecided");
    }

    #[test]
    fn a_failure_takes_two_experiments() {
        let of = |verdict| found(side(Some(verdict), 9, 0), None);
        let first = of(Verdict::Worse).outcome();
        assert_eq!(first.clone().confirmed_by(&of(Verdict::Worse)), first);
        for second in [Verdict::Undecided, Verdict::Same, Verdict::Better] {
            assert_eq!(first.clone().confirmed_by(&of(second)).word(), "undecided");
        }
        let broken = found(side(None, 0, 9), None);
        let why = first.confirmed_by(&broken).why();
        assert!(
            why.ends_with("no trial of HEAD finished: no function work"),
            "{why}"
        );
    }
}
