//! Comparisons of what is stored: treatments of one experiment within its blocks, treatments of two
//! experiments, two trials. Records in, answers out.

mod differs;
#[cfg(test)]
pub(crate) mod fixture;
mod gate;
mod reference;
mod select;

pub use differs::Difference;
pub use gate::{Gate, GateError, Judged, Outcome, Way, WrongGate};
pub use reference::{Reference, Which, WrongReference};

use pgdyno_judge::{Judge, Observations, Unmeasured, is_in_last_block, progress, rules};
use pgdyno_record::{METRICS, StoredExperiment, TreatmentRecord, TrialRecord, TrialStatus};
use pgdyno_stats::{Effect, Rules, compare_samples, compare_within, mean_interval};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Names of the metrics that are compared where none is named.
pub fn compared_metrics() -> impl Iterator<Item = &'static str> {
    METRICS
        .iter()
        .filter(|metric| metric.is_compared)
        .map(|metric| metric.id)
}

/// What intervals are made from, and so what they hold for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Two treatments of one experiment, trial beside trial within its blocks: drift cancels.
    Blocks,
    /// Trials of two experiments: what drifted between them is part of the ratio.
    Trials,
    /// The seconds of two trials: these two alone.
    TwoTrials,
}

/// One side of a comparison as a reference names it.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// The experiment with all its trials.
    pub stored: &'a StoredExperiment,
    /// All of its treatments, one treatment, or one trial.
    pub which: &'a Which,
    /// Name of its store in messages; `None` where both sides are from one.
    pub store: Option<&'a str>,
}

/// A figure of one side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct SideFigure {
    /// Mean over trials, in the unit of the figure.
    pub mean: f64,
    /// Lower bound of the mean's own interval; `None` with one trial.
    pub low: Option<f64>,
    /// Upper bound of the mean's own interval; `None` with one trial.
    pub high: Option<f64>,
    /// Number of trials that the mean is of.
    pub n: usize,
}

/// One figure of both sides, and their ratio.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "CompareRow"))]
pub struct Row {
    /// Name of the figure, which ends with its unit.
    pub metric: String,
    /// Whether a larger value is the better one.
    pub larger_is_better: bool,
    /// Figure of the reference; `None` where it was not measured.
    pub a: Option<SideFigure>,
    /// Figure of what is compared with the reference; `None` where it was not measured.
    pub b: Option<SideFigure>,
    /// B / A by the means alone; `None` where a side was not measured.
    pub ratio: Option<f64>,
    /// B / A with its interval; `None` where there is no interval.
    pub effect: Option<Effect>,
    /// Reason as text; `None` where there is an interval.
    pub why_no_interval: Option<&'static str>,
    /// Trials that count as failed for A and for B: that failed, do not hold, lack the figure or
    /// have none of what there should be more of; and those of the other side that have none of
    /// what there should be less of.
    pub failed: (usize, usize),
    /// Trials of A and of B among which these were counted: of one experiment those in blocks in
    /// which both were tried.
    pub tried: (usize, usize),
}

impl Row {
    /// Whether a larger part of A's trials counts as failed, and whether of B's.
    pub fn fails_more(&self) -> (bool, bool) {
        let of_a = self.failed.0 * self.tried.1;
        let of_b = self.failed.1 * self.tried.0;
        (of_a > of_b, of_b > of_a)
    }
}

/// Two treatments or trials, figure by figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "ComparePair"))]
pub struct Pair {
    /// The reference as text: "experiment 3, memory".
    pub a: String,
    /// What is compared with the reference, as text.
    pub b: String,
    /// Figures in the order in which they were asked for.
    pub rows: Vec<Row>,
    /// Reason as text why no figure has a verdict; `None` where some may.
    pub why_no_verdict: Option<&'static str>,
    /// Settings and facts that are not the same on both sides.
    pub differs: Vec<Difference>,
}

/// The pairs of a comparison, and the rules that they were judged by.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Comparison {
    /// What its intervals are made from, and so what they hold for.
    pub basis: Basis,
    /// Confidence with which the intervals of one figure hold together.
    pub confidence: f64,
    /// Smallest effect that matters, 0.03 = 3 %.
    pub smallest_effect: f64,
    /// One pair, or one for each treatment that both experiments have.
    pub pairs: Vec<Pair>,
}

/// Why two sides cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// The experiment has no treatment of that name.
    #[error("{of} has no treatment \"{name}\"; it has {}", there.join("; "))]
    NoTreatment {
        /// Label of the experiment: "experiment 3".
        of: String,
        /// Name that was asked for.
        name: String,
        /// Names of the treatments that it has.
        there: Vec<String>,
    },
    /// A treatment that the experiment did not test.
    #[error("\"{name}\" of {of} was not tested: {why}")]
    NotTested {
        /// Label of the experiment: "experiment 3".
        of: String,
        /// Name of the treatment.
        name: String,
        /// Reason as the record has it.
        why: String,
    },
    /// The experiment has no trial of that number.
    #[error("{of} has no trial {number}; `pgdyno show` lists those there are")]
    NoTrial {
        /// Label of the experiment: "experiment 3".
        of: String,
        /// Number that was asked for.
        number: i64,
    },
    /// A trial that failed or does not hold.
    #[error("trial {number} of {of} does not count: {why}")]
    BadTrial {
        /// Label of the experiment: "experiment 3".
        of: String,
        /// Number of the trial in the store.
        number: i64,
        /// Why it does not count.
        why: String,
    },
    /// A trial against a treatment.
    #[error(
        "a trial is compared with a trial, and a treatment with a treatment; name the same on both sides"
    )]
    Mixed,
    /// Both sides name the same treatment or trial.
    #[error("both sides are {what}; name two treatments, as 3:reference 3:memory")]
    Same {
        /// Label of both sides, as the message names them.
        what: String,
    },
    /// No treatment has the same name.
    #[error("{a} and {b} share no tested treatment; name one of each: {a} has {}; {b} has {}", of_a.join("; "), of_b.join("; "))]
    NothingShared {
        /// Label of the first experiment.
        a: String,
        /// Label of the second experiment.
        b: String,
        /// Names of the tested treatments of the first.
        of_a: Vec<String>,
        /// Names of the tested treatments of the second.
        of_b: Vec<String>,
    },
    /// No trial of either side finished.
    #[error("no trial of either side is finished, so there is nothing to compare; `pgdyno show` shows why")]
    NothingMeasured,
    /// A figure that neither side has.
    #[error("no trial of either side has the figure \"{metric}\"; there are {}", there.join(", "))]
    NoFigure {
        /// Name of the figure that was asked for.
        metric: String,
        /// Names of the figures that one side or both have.
        there: Vec<String>,
    },
}

/// One side of a pair.
#[derive(Debug, Clone, Copy)]
struct Side<'a> {
    stored: &'a StoredExperiment,
    store: Option<&'a str>,
    treatment: &'a TreatmentRecord,
    trial: Option<(i64, &'a TrialRecord)>,
}

impl<'a> Side<'a> {
    fn is_of_same_experiment(&self, other: &Side<'_>) -> bool {
        self.stored.id == other.stored.id && self.store == other.store
    }

    /// Label of the side: "experiment 3, memory".
    fn label(&self) -> String {
        let of = of(self.stored, self.store);
        match self.trial {
            Some((number, _)) => format!("{of}, trial {number} ({})", self.treatment.name),
            None => format!("{of}, {}", self.treatment.name),
        }
    }

    /// Whether it has all the trials that were planned for it, and no fewer for what they showed.
    fn is_as_planned(&self) -> bool {
        let record = &self.stored.record;
        let progress = progress(self.stored);
        let has_all = progress.ended >= record.blocks as usize;
        // A search repeats what it has seen to be good.
        let is_search = record.design == "search";
        let is_guarded = trials(self).any(|trial| trial.ended_by_guard);
        let is_whole = match record.may_stop() {
            true => has_all && is_in_last_block(self.stored, &self.treatment.name),
            false => has_all || progress.is_over,
        };
        is_whole && !is_search && !is_guarded
    }

    fn last_trial(&self) -> Option<&'a TrialRecord> {
        let of_treatment = |trial: &&TrialRecord| trial.treatment == self.treatment.name;
        let mut trials = self.stored.trials.iter().rev().map(|(_, trial)| trial);
        self.trial
            .map(|(_, trial)| trial)
            .or_else(|| trials.find(of_treatment))
    }
}

fn of(stored: &StoredExperiment, store: Option<&str>) -> String {
    match store {
        Some(store) => format!("experiment {} of {store}", stored.id),
        None => format!("experiment {}", stored.id),
    }
}

/// Compares B with A by `metrics`; without any by [`compared_metrics`] that were measured.
/// Confidence and smallest effect are those of A's experiment. The figure that decides in it has
/// the whole confidence, the others share it; the intervals of one figure hold together over all
/// comparisons of the experiment, whichever of them is asked for, and of two experiments over all
/// pairs of treatments that they may be compared by. An experiment that is not over, or that
/// stopped for what it had seen, has no verdict against another: its trials are not as many by
/// plan.
pub fn compare(a: Named<'_>, b: Named<'_>, metrics: &[String]) -> Result<Comparison, CompareError> {
    let sides = select::pairs(a, b)?;
    let basis = match sides.first() {
        Some((a, _)) if a.trial.is_some() => Basis::TwoTrials,
        Some((a, b)) if a.is_of_same_experiment(b) => Basis::Blocks,
        _ => Basis::Trials,
    };
    let metrics = metrics_of(&sides, metrics)?;
    let record = &a.stored.record;
    let family = select::family(a, b, &sides);
    let pairs = sides.iter().map(|(a, b)| {
        let why_no_verdict = match basis {
            Basis::Blocks => None,
            Basis::TwoTrials => Some(ONE_TRIAL),
            Basis::Trials => (!a.is_as_planned() || !b.is_as_planned()).then_some(NOT_AS_PLANNED),
        };
        let mut rows: Vec<Row> = metrics
            .iter()
            .map(|metric| row(a, b, metric, basis, family))
            .collect();
        if why_no_verdict.is_some() {
            for row in &mut rows {
                row.effect = row.effect.map(Effect::without_verdict);
            }
        }
        Pair {
            a: a.label(),
            b: b.label(),
            rows,
            why_no_verdict,
            differs: differs::differences(a, b),
        }
    });
    Ok(Comparison {
        basis,
        confidence: record.confidence,
        smallest_effect: record.smallest_effect,
        pairs: pairs.collect(),
    })
}

/// The figures to compare: those asked for, of which each must be there on one side at least.
fn metrics_of(sides: &[(Side<'_>, Side<'_>)], asked: &[String]) -> Result<Vec<String>, CompareError> {
    let both = || sides.iter().flat_map(|(a, b)| [a, b]);
    let is_there = |metric: &str| both().any(|side| !values(side, metric).is_empty());
    if asked.is_empty() {
        let there = compared_metrics().filter(|metric| is_there(metric));
        let there: Vec<String> = there.map(str::to_owned).collect();
        return if there.is_empty() {
            Err(CompareError::NothingMeasured)
        } else {
            Ok(there)
        };
    }
    let mut metrics: Vec<String> = Vec::new();
    for metric in asked {
        if !is_there(metric) {
            let own = both().filter_map(Side::last_trial);
            let mut there: Vec<String> = own
                .flat_map(|trial| trial.figures.keys().chain(trial.counters_per_tx.keys()))
                .cloned()
                .chain(METRICS.iter().map(|metric| metric.id.to_owned()))
                .filter(|metric| is_there(metric))
                .collect();
            there.sort();
            there.dedup();
            return Err(CompareError::NoFigure {
                metric: metric.clone(),
                there,
            });
        }
        if !metrics.contains(metric) {
            metrics.push(metric.clone());
        }
    }
    Ok(metrics)
}

/// A figure of the trials of a side that count.
fn values(side: &Side<'_>, metric: &str) -> Vec<f64> {
    let finished = trials(side).filter(|trial| trial.status == TrialStatus::Finished);
    finished.filter_map(|trial| trial.figure(metric)).collect()
}

/// The trials of a side: the one that is named, else all of its treatment.
fn trials<'a>(side: &Side<'a>) -> impl Iterator<Item = &'a TrialRecord> {
    let (named, treatment) = (side.trial.map(|(number, _)| number), side.treatment);
    let all = side
        .stored
        .trials
        .iter()
        .filter(move |(number, trial)| match named {
            Some(named) => *number == named,
            None => trial.treatment == treatment.name,
        });
    all.map(|(_, trial)| trial)
}

fn row(a: &Side<'_>, b: &Side<'_>, metric: &str, basis: Basis, comparisons: usize) -> Row {
    let rules = Rules {
        larger_is_better: a.stored.record.larger_is_better(metric)
            || b.stored.record.larger_is_better(metric),
        ..rules(&a.stored.record, metric)
    };
    let (of_a, of_b) = (values(a, metric), values(b, metric));
    let unmeasured = |side: &Side<'_>| {
        let mut found = Unmeasured::default();
        trials(side).for_each(|trial| {
            found.add(trial, metric, rules.larger_is_better);
        });
        found
    };
    let (mut failed, mut tried) = (
        unmeasured(a).failed(unmeasured(b)),
        (trials(a).count(), trials(b).count()),
    );
    let figure = |values: &[f64]| {
        let interval = mean_interval(values, rules.confidence)?;
        let has_spread = values.len() > 1;
        Some(SideFigure {
            mean: interval.mean,
            low: has_spread.then_some(interval.low),
            high: has_spread.then_some(interval.high),
            n: values.len(),
        })
    };
    let (figure_a, figure_b) = (figure(&of_a), figure(&of_b));
    let effect = match basis {
        Basis::Blocks => within_blocks(a, b, metric).and_then(|found| {
            (failed, tried) = (found.failed, (found.blocks, found.blocks));
            found.effect
        }),
        Basis::Trials => compare_samples(&of_b, &of_a, comparisons, rules).map(|compared| {
            // Their trials need not be as many: parts of them are compared.
            let against = (failed.1 * tried.0, failed.0 * tried.1);
            compared.effect.where_failed(against.0, against.1)
        }),
        Basis::TwoTrials if metric == "tps" => {
            let seconds = |side: &Side<'_>| side.trial.map(|(_, trial)| measured(trial)).unwrap_or_default();
            compare_within(&seconds(b), &seconds(a), rules).map(|compared| compared.effect)
        }
        Basis::TwoTrials => None,
    };
    let ratio = figure_a.zip(figure_b).map(|(a, b)| b.mean / a.mean);
    Row {
        metric: metric.to_owned(),
        larger_is_better: rules.larger_is_better,
        ratio: ratio.filter(|ratio| ratio.is_finite()),
        why_no_interval: effect.is_none().then(|| match basis {
            Basis::Blocks if !Judge::new(&a.stored.record, metric).is_due(progress(a.stored)) => EARLY,
            _ => why_none(&of_a, &of_b, basis),
        }),
        a: figure_a,
        b: figure_b,
        effect,
        failed,
        tried,
    }
}

const ONE_TRIAL: &str = "the interval is of these two trials alone, and trials of one treatment differ by more; compare treatments or experiments";
const NOT_AS_PLANNED: &str = "one of the two experiments is not over, is a search, or spared a treatment or ended a trial for what it had seen; compare ones that ran \
     all their blocks";
const EARLY: &str =
    "the experiment has not run so many blocks that its intervals hold; `pgdyno resume` continues it";

fn why_none(a: &[f64], b: &[f64], basis: Basis) -> &'static str {
    if a.is_empty() || b.is_empty() {
        return "it was not measured on both sides";
    }
    match basis {
        Basis::Blocks => {
            "there is nothing to judge the spread by: two blocks or more are needed, and values above 0"
        }
        Basis::Trials => "each side needs two trials or more, with values above 0",
        Basis::TwoTrials => {
            "one trial of each side has no spread; of throughput ten seconds or more would have one"
        }
    }
}

/// What two treatments of one experiment are to each other within its blocks.
struct WithinBlocks {
    effect: Option<Effect>,
    failed: (usize, usize),
    /// In so many blocks both were tried.
    blocks: usize,
}

/// By the judge that decides in the lab and the report: where the experiment evaluated its results
/// and stopped, the interval is one that holds under that.
fn within_blocks(a: &Side<'_>, b: &Side<'_>, metric: &str) -> Option<WithinBlocks> {
    let judge = Judge::new(&a.stored.record, metric);
    let mut observed = Observations::default();
    for (_, trial) in &a.stored.trials {
        judge.observe(&mut observed, trial);
    }
    let place = |side: &Side<'_>| {
        let mut treatments = a.stored.record.treatments.iter();
        treatments.position(|treatment| treatment.name == side.treatment.name)
    };
    let (treatment, reference) = (place(b)?, place(a)?);
    let progress = progress(a.stored);
    let (of_b, of_a) = observed.failed(pgdyno_stats::Comparison { treatment, reference });
    let blocks = |side: &Side<'_>| trials(side).map(|trial| trial.block).collect::<BTreeSet<u32>>();
    Some(WithinBlocks {
        effect: judge.between(treatment, reference, &observed, progress),
        failed: (of_a, of_b),
        blocks: blocks(a).intersection(&blocks(b)).count(),
    })
}

/// Throughput of the whole seconds of the measured time.
fn measured(trial: &TrialRecord) -> Vec<f64> {
    /// A whole second's length, at least, as clocks measure it.
    const NEARLY_S: f64 = 0.99;
    let mut before_s = 0.0;
    let mut values = Vec::new();
    for second in &trial.seconds {
        let is_whole = second.t_s - before_s > NEARLY_S;
        let is_measured = second.t_s > trial.warmup_s + NEARLY_S
            && second.t_s < trial.warmup_s + trial.measured_s + 1.0 - NEARLY_S;
        if is_whole && is_measured {
            values.push(second.tps);
        }
        before_s = second.t_s;
    }
    values
}

/// A comparison as other programs get it; docs/how-to/compare.md describes it.
pub fn document(comparison: &Comparison, judged: &[Judged]) -> Value {
    json!({"format": "pgdyno-compare/1", "comparison": comparison, "gates": judged})
}

#[cfg(test)]
mod tests;
