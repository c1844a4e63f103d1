//! What a report holds: the JSON that ui/src/generated/model.ts is made to describe. Format "pgdyno-report/1".

mod found;

pub use found::{
    Bounded, Curve, CurvePoint, FactorEffect, LevelOf, Study, StudyClaim, StudyTable, TableBlock, TableCell,
    TableColumn, TableRow, UslCurve, Zone,
};

use crate::detail::Mark;
use crate::heat::Heat;
use pgdyno_record::{
    CrossCheck, DistributionPoint, ErrorCount, FactRecord, Percentiles, PutBackRecord, TransactionCounts,
    TrialStatus,
};
use pgdyno_stats::Effect;
use serde::Serialize;
use std::collections::BTreeMap;

/// The format's name.
pub(crate) const FORMAT: &str = "pgdyno-report/1";

/// A mean with its interval.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Interval {
    /// Mean of the trials.
    pub mean: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// A setting of a treatment.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Setting {
    /// Id of the knob.
    pub knob: String,
    /// Asked for.
    pub value: String,
    /// What the target reported.
    pub effective: Option<String>,
    /// Layer by name.
    #[cfg_attr(
        feature = "typescript",
        ts(type = "\"postgres\" | \"table\" | \"kernel\" | \"memory\" | \"block\" | \"cpu\" | \"net\"")
    )]
    pub layer: String,
    /// Risk by name.
    #[cfg_attr(
        feature = "typescript",
        ts(type = "\"none\" | \"stability\" | \"durability\"")
    )]
    pub risk: String,
    /// Whether this treatment changes it.
    pub changed: bool,
}

/// A treatment with its results.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Treatment {
    /// Unique name.
    pub name: String,
    /// For people.
    pub title: String,
    /// Why it was tried.
    pub reason: Option<String>,
    /// "tested" or "not-tested".
    #[cfg_attr(feature = "typescript", ts(type = "\"tested\" | \"not-tested\""))]
    pub status: &'static str,
    /// Why it was not.
    pub why_not: Option<String>,
    /// Its settings.
    pub settings: Vec<Setting>,
    /// Trials that count.
    pub trials_finished: usize,
    /// Trials that failed or do not hold.
    pub trials_failed: usize,
    /// Finished trials that were left out all the same: in no mean and no effect.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub trials_left_out: usize,
    /// Factor and level; "step" and its name for steps.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub levels: Vec<LevelOf>,
    /// Name of the treatment that it is held against.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub against: Option<String>,
    /// Its load, where it is not the experiment's.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub workload: Option<Workload>,
    /// What else it has of its own, as ("server.pooler", "pgbouncer").
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub around: Vec<(String, String)>,
    /// Means over its trials, by the name of the metric, as the verdicts take them.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub figures: BTreeMap<String, f64>,
    /// The figure that decides.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub metric: Option<Interval>,
    /// Throughput.
    pub tps: Option<Interval>,
    /// Response times of all its trials together, where each has its histogram; else means over them.
    pub percentiles: Option<Percentiles>,
    /// Their distribution, likewise.
    pub distribution: Vec<DistributionPoint>,
    /// Response times over time, of all its trials that count.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub latency_heat: Option<Heat>,
    /// Stability.
    pub stability_cv: Option<f64>,
    /// Client CPU.
    pub client_cpu_us_per_tx: Option<f64>,
    /// Server CPU.
    pub server_cpu_us_per_tx: Option<f64>,
    /// WAL.
    pub wal_bytes_per_tx: Option<f64>,
    /// The figure that decides, against the treatment before it, or the reference.
    pub step: Option<Effect>,
    /// The figure that decides, against the reference.
    pub total: Option<Effect>,
    /// p95 against the same as `step`.
    pub step_p95: Option<Effect>,
}

/// Second by second.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Series {
    /// Seconds that a point stands for, where that is more than one: then `tps` is their mean and `p95_ms` the highest.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub bucket_s: Option<u32>,
    /// Ends of the seconds.
    pub t_s: Vec<f64>,
    /// Throughput.
    pub tps: Vec<f64>,
    /// p95.
    pub p95_ms: Vec<Option<f64>>,
}

impl Treatment {
    /// The mean of a figure over the trials that count, also where a single one of them has no interval.
    pub fn mean(&self, figure: &str) -> Option<f64> {
        self.figures.get(figure).copied()
    }
}

/// A trial.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Trial {
    /// Number in the store.
    pub id: i64,
    /// 1-based.
    pub block: u32,
    /// 1-based.
    pub position: u32,
    /// Name of the treatment.
    pub treatment: String,
    /// What became of it.
    pub status: TrialStatus,
    /// Why.
    pub reason: Option<String>,
    /// When it began.
    pub started_unix_ms: u64,
    /// Throughput.
    pub tps: Option<f64>,
    /// Transactions of the measured time.
    #[serde(flatten)]
    pub transactions: TransactionCounts,
    /// Responses that took longer are late.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub latency_limit_ms: Option<f64>,
    /// Errors.
    pub errors: Vec<ErrorCount>,
    /// Response times.
    pub percentiles: Option<Percentiles>,
    /// The external program that has reported throughput and response times, if one has.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub reported_by: Option<String>,
    /// Whether it was steady.
    pub settled: Option<bool>,
    /// Warm-up.
    pub warmup_s: f64,
    /// Measured time.
    pub measured_s: f64,
    /// The server's count.
    pub cross_check: Option<CrossCheck>,
    /// What disturbed it.
    pub disturbances: Vec<String>,
    /// Whether others took CPU time from it.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub disturbed: bool,
    /// Whether it is in no mean and no effect, though it finished.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub left_out: bool,
    /// The server that it ran on, where that is not the target itself.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub stand: Option<String>,
    /// Seconds of the measured time that were still part of the warm-up.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub unsettled_s: Option<f64>,
    /// All its figures by name.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub figures: BTreeMap<String, f64>,
    /// Checkpoints, vacuums and disturbances, where [`Report::mark`] has been told of them.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub marks: Vec<Mark>,
    /// Second by second.
    pub series: Series,
}

/// A trial that finished and is left out of every mean and effect.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct LeftOut {
    /// Number in the store.
    pub trial: i64,
    /// 1-based.
    pub block: u32,
    /// Name of the treatment.
    pub treatment: String,
    /// How many robust standard deviations it lies off; `None` where its figure has no ratio to others.
    pub deviations: Option<f64>,
    /// What disturbed it.
    pub disturbances: Vec<String>,
}

/// How it was decided.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Decision {
    /// Of all intervals together.
    pub confidence: f64,
    /// Smallest effect that matters.
    pub smallest_effect: f64,
    /// Spread between trials of one treatment.
    pub noise_floor: Option<f64>,
    /// Of that spread.
    pub degrees_of_freedom: usize,
    /// In plain words.
    pub method: String,
    /// Name of the figure that decides.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub metric: String,
    /// What it is, in words: "throughput".
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub metric_title: String,
    /// Its unit; empty for a number without one.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub metric_unit: String,
    /// Whether a larger value of it is the better one.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub larger_is_better: bool,
    /// "after-blocks" or "when-decided".
    #[cfg_attr(
        feature = "typescript",
        ts(optional, type = "\"after-blocks\" | \"when-decided\"")
    )]
    pub stop: String,
    /// The same in words.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub stop_rule: String,
    /// Finished trials that were left out.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub excluded: Vec<LeftOut>,
    /// The smallest effect, 0.03 = 3 %, that so many blocks find with probability `power`; `None` where it was looked at
    /// after each block, and where nothing is known of the spread.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub minimum_detectable_effect: Option<f64>,
    /// That probability.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub power: f64,
}

/// The load.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Workload {
    /// Name.
    pub name: String,
    /// Scale of the data.
    pub scale: u32,
    /// Clients.
    pub clients: u32,
    /// Threads.
    pub threads: u32,
    /// Warm-up.
    pub warmup_s: f64,
    /// Measured time.
    pub measure_s: f64,
}

/// A factor.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Factor {
    /// Unique name.
    pub name: String,
    /// For people.
    pub title: String,
    /// A condition: its levels are not held against one another.
    pub along: bool,
    /// Names of its levels, the reference first.
    pub levels: Vec<String>,
}

/// The experiment.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Experiment {
    /// Number in the store.
    pub id: i64,
    /// Name.
    pub name: String,
    /// Question.
    pub question: String,
    /// Answer in one sentence.
    pub answer: String,
    /// Design by name.
    #[cfg_attr(
        feature = "typescript",
        ts(
            type = "\"cumulative\" | \"one-at-a-time\" | \"a-b\" | \"a-a\" | \"full-factorial\" | \"fractional\" | \"screening\" | \"ladder\" | \"load\""
        )
    )]
    pub design: String,
    /// What became of it: "running", "finished" or "interrupted"; where [`Report::tell_life`] was told of its process also
    /// "killed" or "running or killed".
    #[cfg_attr(
        feature = "typescript",
        ts(type = "\"running\" | \"killed\" | \"running or killed\" | \"finished\" | \"interrupted\"")
    )]
    pub status: &'static str,
    /// When it began.
    pub started_unix_ms: u64,
    /// When it ended.
    pub finished_unix_ms: Option<u64>,
    /// Blocks planned.
    pub blocks_planned: u32,
    /// Blocks in which every tested treatment has been tried.
    pub blocks_finished: usize,
    /// Seed. The lab keeps it below 2^53, which is where the numbers of a browser end.
    pub seed: u64,
    /// Name of the reference.
    pub reference: String,
    /// Name of the treatment that the answer is about.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub headline: Option<String>,
    /// Factors by name with their titles, in the order of the file.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub factors: Vec<Factor>,
    /// The load.
    pub workload: Workload,
    /// The experiment file.
    pub file: String,
    /// Commands that repeat it.
    pub repeat: Vec<String>,
}

/// A report.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Report {
    /// Format.
    pub format: &'static str,
    /// What wrote it.
    pub generator: String,
    /// When.
    pub generated_unix_ms: u64,
    /// The experiment.
    pub experiment: Experiment,
    /// How it was decided.
    pub decision: Decision,
    /// Treatments, the reference first.
    pub treatments: Vec<Treatment>,
    /// Trials in the order they ran.
    pub trials: Vec<Trial>,
    /// Tables of results.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub tables: Vec<StudyTable>,
    /// The study that is repeated, and how its findings stand here.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub study: Option<Study>,
    /// What each finding came to.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub claims: Vec<StudyClaim>,
    /// What each level of a factor is worth over all levels of the others.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub effects: Vec<FactorEffect>,
    /// Throughput over clients or CPUs.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub curves: Vec<Curve>,
    /// What some throughputs take: documents of format "pgdyno-capacity/1" (docs/how-to/capacity.md), the usual one first. Whoever
    /// has the catalogue of knobs puts them in; empty until then.
    #[cfg_attr(feature = "typescript", ts(optional, type = "Array<CapacityDocument>"))]
    pub capacity: Vec<serde_json::Value>,
    /// Facts.
    pub facts: Vec<FactRecord>,
    /// What was restored.
    pub put_back: Vec<PutBackRecord>,
}
