//! What a report holds: the JSON that ui/src/generated/model.ts is made to describe. Format
//! "pgdyno-report/1".

mod found;

pub use found::{
    Bounded, ClaimOutcome, Curve, CurvePoint, FactorEffect, Highest, LevelOf, Shift, Study, StudyChart,
    StudyClaim, StudyTable, TableBlock, TableCell, TableColumn, TableRow, Timeline, TimelinePoint, UslCurve,
    WholeChart, Zone,
};

use crate::heat::Heat;
use crate::marks::Mark;
use pgdyno_record::{
    CrossCheck, DistributionPoint, ErrorCount, FactRecord, Percentiles, RestoredRecord, Searched,
    TransactionCounts, TrialStatus, WarmUpEnd, WorkloadRecord,
};
use pgdyno_stats::Effect;
use serde::Serialize;
use std::collections::BTreeMap;

/// Value of `format` in every report.
pub const FORMAT: &str = "pgdyno-report/1";

/// A mean with its interval.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Interval {
    /// Mean over the trials, in the unit of the metric.
    pub mean: f64,
    /// Lower bound of the interval.
    pub low: f64,
    /// Upper bound of the interval.
    pub high: f64,
}

/// A setting of a treatment.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Setting {
    /// Id of the knob in the catalogue: "vm.swappiness".
    pub knob: String,
    /// Value as the experiment file has it: "8GB".
    pub value: String,
    /// Value that the target reported after it was set; `None` where no trial has it.
    pub effective: Option<String>,
    /// Layer that the knob belongs to.
    #[cfg_attr(
        feature = "typescript",
        ts(type = "\"postgres\" | \"table\" | \"kernel\" | \"memory\" | \"block\" | \"cpu\" | \"net\"")
    )]
    pub layer: String,
    /// What the value may cost: the machine's stability, or the durability of commits.
    #[cfg_attr(
        feature = "typescript",
        ts(type = "\"none\" | \"stability\" | \"durability\"")
    )]
    pub risk: String,
    /// Whether this treatment adds or changes it against what it is compared with.
    pub changed: bool,
}

/// A treatment with its results.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Treatment {
    /// Name, unique in the experiment.
    pub name: String,
    /// Title that is shown in place of the name.
    pub title: String,
    /// Why it was tried, from the experiment file; `None` without a reason there.
    pub reason: Option<String>,
    /// Whether it was tested: "tested" or "not-tested".
    #[cfg_attr(feature = "typescript", ts(type = "\"tested\" | \"not-tested\""))]
    pub status: &'static str,
    /// Why it was not tested; `None` where it was.
    pub why_not: Option<String>,
    /// All settings that it runs with, not only the changed ones.
    pub settings: Vec<Setting>,
    /// Trials that finished and count.
    pub trials_finished: usize,
    /// Trials that failed or whose figures do not hold.
    pub trials_failed: usize,
    /// Finished trials in no mean and no effect, because their figure is not above zero.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub trials_excluded: usize,
    /// Factor and level; "step" and its name for steps.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub levels: Vec<LevelOf>,
    /// Name of the treatment that it is compared with; `None` where it is compared with none.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub against: Option<String>,
    /// Its load, where it is not the experiment's.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub workload: Option<WorkloadRecord>,
    /// What else it has of its own, as ("server.pooler", "pgbouncer").
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub environment: Vec<(String, String)>,
    /// Means over its trials, by the name of the metric, as the verdicts take them.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub figures: BTreeMap<String, f64>,
    /// Mean of the figure that decides, over its trials.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub metric: Option<Interval>,
    /// Mean of committed transactions per second, over its trials.
    pub tps: Option<Interval>,
    /// Response times of all its trials together, where each has its histogram; else means over
    /// them.
    pub percentiles: Option<Percentiles>,
    /// Percentiles of the response time, made like `percentiles`.
    pub distribution: Vec<DistributionPoint>,
    /// Response times over time, of all its trials that count.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub latency_heat: Option<Heat>,
    /// Coefficient of variation of the throughput within a trial, mean over its trials.
    pub stability_cv: Option<f64>,
    /// Client CPU per committed transaction, mean over its trials.
    pub client_cpu_us_per_tx: Option<f64>,
    /// Server CPU per committed transaction, mean over its trials.
    pub server_cpu_us_per_tx: Option<f64>,
    /// WAL per committed transaction, mean over its trials.
    pub wal_bytes_per_tx: Option<f64>,
    /// Effect on the figure that decides, against the treatment before it or the reference.
    pub step: Option<Effect>,
    /// Effect on the figure that decides, against the reference.
    pub total: Option<Effect>,
    /// Effect on the 95th percentile of the response time, against the same treatment as `step`.
    pub step_p95: Option<Effect>,
}

/// Throughput and response time for each second of a trial.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Series {
    /// Seconds that a point represents, where that is more than one: then `tps` is their mean and
    /// `p95_ms` the highest.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub bucket_s: Option<u32>,
    /// Ends of the seconds, after the start of the load.
    pub t_s: Vec<f64>,
    /// Transactions committed in each second.
    pub tps: Vec<f64>,
    /// 95th percentile of the response time in each second; `None` where nothing was committed.
    pub p95_ms: Vec<Option<f64>>,
}

impl Treatment {
    /// The mean of a figure over the trials that count, also where a single one of them has no
    /// interval.
    pub fn mean(&self, figure: &str) -> Option<f64> {
        self.figures.get(figure).copied()
    }
}

/// A trial with its figures.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Trial {
    /// Number of the trial in the store.
    pub id: i64,
    /// Number of its block, from 1.
    pub block: u32,
    /// Position in the block, from 1.
    pub position: u32,
    /// Name of the treatment that it tried.
    pub treatment: String,
    /// Whether it ended in order and its figures count.
    pub status: TrialStatus,
    /// Why it failed or does not hold; `None` where it counts.
    pub reason: Option<String>,
    /// Time at which it began, since 1970.
    pub started_unix_ms: u64,
    /// Transactions committed per second of the measured time.
    pub tps: Option<f64>,
    /// Transactions of the measured time.
    #[serde(flatten)]
    pub transactions: TransactionCounts,
    /// Response time above which a transaction is late; `None` without such a limit.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub latency_limit_ms: Option<f64>,
    /// Errors of the measured time, by their code.
    pub errors: Vec<ErrorCount>,
    /// Response times of committed transactions; `None` where none is known.
    pub percentiles: Option<Percentiles>,
    /// External program that has reported throughput and response times; `None` where pgdyno has
    /// measured them.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub reported_by: Option<String>,
    /// Whether its throughput had no trend; `None` where there were too few seconds to see.
    pub settled: Option<bool>,
    /// Length of the warm-up.
    pub warmup_s: f64,
    /// Length of the measured time.
    pub measured_s: f64,
    /// Clients' count of commits against the server's; `None` where the server's is not known.
    pub cross_check: Option<CrossCheck>,
    /// What disturbed the trial, a sentence each.
    pub disturbances: Vec<String>,
    /// Whether others took CPU time from it.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub disturbed: bool,
    /// Whether it is in no mean and no effect, though it finished.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub excluded: bool,
    /// The server that it ran on, where that is not the target itself.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub server_variant: Option<String>,
    /// Seconds of the measured time that were still part of the warm-up: they are in no rate of the
    /// trial and in no response time that was measured here.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub unsettled_s: Option<f64>,
    /// Whether the warm-up ended within the measured time.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub warm_up: WarmUpEnd,
    /// Figures by the name of the metric, which ends with the unit.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub figures: BTreeMap<String, f64>,
    /// Checkpoints, vacuums and disturbances; empty before [`Report::mark`].
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub marks: Vec<Mark>,
    /// Throughput and response time for each second of the load.
    pub series: Series,
}

/// A trial that finished and is in no mean and no effect, because its figure is not above zero.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Excluded {
    /// Number of the trial in the store.
    pub trial: i64,
    /// Number of its block, from 1.
    pub block: u32,
    /// Name of the treatment that it tried.
    pub treatment: String,
    /// What disturbed the trial, a sentence each.
    pub disturbances: Vec<String>,
}

/// Rules and noise that the verdicts follow from.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Decision {
    /// Confidence of all intervals together: 0.95.
    pub confidence: f64,
    /// Smallest effect that matters, 0.03 = 3 %.
    pub smallest_effect: f64,
    /// Spread between trials of one treatment, 0.03 = 3 %; `None` where trials are too few to see
    /// it.
    pub noise_floor: Option<f64>,
    /// Degrees of freedom of the noise floor.
    pub degrees_of_freedom: usize,
    /// How the intervals are made, in sentences.
    pub method: String,
    /// Name of the figure that decides.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub metric: String,
    /// Name of that figure within a sentence: "throughput".
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub metric_title: String,
    /// Unit of that figure; empty for a number without one.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub metric_unit: String,
    /// Whether a larger value of that figure is the better one.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub larger_is_better: bool,
    /// Rule for the end: "after-blocks", "when-decided" or "when-gain-decided".
    #[cfg_attr(
        feature = "typescript",
        ts(
            optional,
            type = "\"after-blocks\" | \"when-decided\" | \"when-gain-decided\""
        )
    )]
    pub stop: String,
    /// The rule for the end as a sentence.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub stop_rule: String,
    /// Finished trials that are in no mean and no effect.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub excluded: Vec<Excluded>,
    /// The smallest effect, 0.03 = 3 %, that so many blocks find with probability `power`; `None`
    /// where it was evaluated after each block, and where nothing is known of the spread.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub minimum_detectable_effect: Option<f64>,
    /// How long trials should measure; `None` where too little is known of their seconds, and where
    /// treatments took turns.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub trial_length: Option<TrialLength>,
    /// Probability with which `minimum_detectable_effect` is found: 0.8.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub power: f64,
}

/// How long trials measure, and how long they should.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TrialLength {
    /// Seconds that a trial measures, and those that it costs besides: median over the trials.
    pub measured_s: f64,
    /// Seconds from the end of the measured time to the beginning of the next trial's.
    pub overhead_s: f64,
    /// Spread between trials that stays however long they measure: 0.01 = 1 %.
    pub between: f64,
    /// Seconds that would take least time for the same error; `None` where longer ones are always
    /// better.
    pub best_s: Option<f64>,
    /// The time of the whole experiment with trials of that length, as a share of its own: at
    /// most 1.
    pub time: Option<f64>,
    /// All of it as a sentence.
    pub sentence: String,
}

/// Something that an experiment varies in levels.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Factor {
    /// Name, unique in the experiment.
    pub name: String,
    /// Title that is shown in place of the name.
    pub title: String,
    /// Whether it is a condition, whose levels are not compared with one another.
    pub condition: bool,
    /// Names of its levels, the reference first.
    pub levels: Vec<String>,
}

/// Question, answer, plan and progress of an experiment.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Experiment {
    /// Number of the experiment in the store.
    pub id: i64,
    /// Name from the experiment file; several experiments of a store may have the same.
    pub name: String,
    /// Question that the experiment answers, as its file has it.
    pub question: String,
    /// Answer to the question in one sentence.
    pub answer: String,
    /// Name of the design, which fixes what is compared with what.
    #[cfg_attr(
        feature = "typescript",
        ts(
            type = "\"cumulative\" | \"one-at-a-time\" | \"a-b\" | \"a-a\" | \"full-factorial\" | \"fractional\" | \"screening\" | \"switchback\" | \"ladder\" | \"search\" | \"load\""
        )
    )]
    pub design: String,
    /// Its state: "running", "finished" or "interrupted"; where [`Report::set_life`] was given the
    /// state of its process also "killed" or "running or killed".
    #[cfg_attr(
        feature = "typescript",
        ts(type = "\"running\" | \"killed\" | \"running or killed\" | \"finished\" | \"interrupted\"")
    )]
    pub status: &'static str,
    /// Time of its begin, since 1970.
    pub started_unix_ms: u64,
    /// Time of its end, since 1970; `None` while it runs, and where it was killed.
    pub finished_unix_ms: Option<u64>,
    /// Blocks planned; fewer are run where it may stop early.
    pub blocks_planned: u32,
    /// Blocks in which every tested treatment has been tried.
    pub blocks_finished: usize,
    /// Seed. The lab keeps it below 2^53, which is where the numbers of a browser end.
    pub seed: u64,
    /// Name of the treatment that the others are compared with.
    pub reference: String,
    /// Name of the treatment that the answer is about; `None` where it is about none.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub headline: Option<String>,
    /// Factors by name with their titles, in the order of the file.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub factors: Vec<Factor>,
    /// Load of every treatment that has none of its own.
    pub workload: WorkloadRecord,
    /// Text of the experiment file; empty where there is none.
    pub file: String,
    /// Shell commands that repeat the experiment, in order.
    pub repeat: Vec<String>,
}

/// An experiment with all that follows from its trials.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Report {
    /// Always "pgdyno-report/1".
    pub format: &'static str,
    /// Name and version of the program that made the report.
    pub generator: String,
    /// Time at which the report was made, since 1970.
    pub generated_unix_ms: u64,
    /// The experiment that the report is about.
    pub experiment: Experiment,
    /// Rules and noise that the verdicts follow from.
    pub decision: Decision,
    /// Treatments, the reference first.
    pub treatments: Vec<Treatment>,
    /// Trials in the order they ran.
    pub trials: Vec<Trial>,
    /// Throughput over time where something was done to the server while loads ran.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub timelines: Vec<Timeline>,
    /// Charts of the study.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub charts: Vec<StudyChart>,
    /// What the study says of the waterfall and of throughput over time.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub whole_charts: Vec<WholeChart>,
    /// Tables of the study, or else the figure that decides by the first two factors.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub tables: Vec<StudyTable>,
    /// The study that is repeated, and how its findings are here.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub study: Option<Study>,
    /// Outcome of each finding of the study, in the order of the file.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub claims: Vec<StudyClaim>,
    /// Main effects of the levels, then interactions of two.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub effects: Vec<FactorEffect>,
    /// Curves of throughput over clients or CPUs, one for each combination of the other factors.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub curves: Vec<Curve>,
    /// What some throughputs take: documents of format "pgdyno-capacity/1"
    /// (docs/how-to/capacity.md), the usual one first. Whoever has the catalogue of knobs puts them
    /// in; empty until then.
    #[cfg_attr(feature = "typescript", ts(optional, type = "Array<CapacityDocument>"))]
    pub capacity: Vec<serde_json::Value>,
    /// What a search has found, path and importance; whoever has the catalogue of knobs puts it in.
    /// `None` until then, and where the experiment is not a search.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub search: Option<Searched>,
    /// Facts of host, server and load, as of before the first trial.
    pub facts: Vec<FactRecord>,
    /// Knobs that were restored at the end.
    pub restored: Vec<RestoredRecord>,
}
