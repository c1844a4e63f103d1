//! What a report holds: the JSON that ui/src/model.ts describes. Format "pgdyno-report/1".

use pgdyno_stats::Effect;
use pgdyno_store::{
    CrossCheck, DistributionPoint, ErrorCount, ExperimentStatus, FactRecord, Percentiles, PutBackRecord,
    TrialStatus,
};
use serde::Serialize;

/// The format's name.
pub(crate) const FORMAT: &str = "pgdyno-report/1";

/// A mean with its interval.
#[derive(Debug, Clone, Serialize)]
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
pub struct Setting {
    /// Id of the knob.
    pub knob: String,
    /// Asked for.
    pub value: String,
    /// What the target reported.
    pub effective: Option<String>,
    /// Layer by name.
    pub layer: String,
    /// Risk by name.
    pub risk: String,
    /// Whether this treatment changes it.
    pub changed: bool,
}

/// A treatment with its results.
#[derive(Debug, Clone, Serialize)]
pub struct Treatment {
    /// Unique name.
    pub name: String,
    /// For people.
    pub title: String,
    /// Why it was tried.
    pub reason: Option<String>,
    /// "tested" or "not-tested".
    pub status: &'static str,
    /// Why it was not.
    pub why_not: Option<String>,
    /// Its settings.
    pub settings: Vec<Setting>,
    /// Trials that count.
    pub trials_finished: usize,
    /// Trials that failed or do not hold.
    pub trials_failed: usize,
    /// Throughput.
    pub tps: Option<Interval>,
    /// Response times, mean over trials.
    pub percentiles: Option<Percentiles>,
    /// Distribution, mean over trials at each percentile.
    pub distribution: Vec<DistributionPoint>,
    /// Stability.
    pub stability_cv: Option<f64>,
    /// Client CPU.
    pub client_cpu_us_per_tx: Option<f64>,
    /// Server CPU.
    pub server_cpu_us_per_tx: Option<f64>,
    /// WAL.
    pub wal_bytes_per_tx: Option<f64>,
    /// Throughput against the treatment before it, or the reference.
    pub step: Option<Effect>,
    /// Throughput against the reference.
    pub total: Option<Effect>,
    /// p95 against the same as `step`.
    pub step_p95: Option<Effect>,
}

/// Second by second.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    /// Ends of the seconds.
    pub t_s: Vec<f64>,
    /// Throughput.
    pub tps: Vec<f64>,
    /// p95.
    pub p95_ms: Vec<Option<f64>>,
}

/// A trial.
#[derive(Debug, Clone, Serialize)]
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
    /// Committed in the measured time.
    pub committed: u64,
    /// Failed in it.
    pub failed: u64,
    /// Errors.
    pub errors: Vec<ErrorCount>,
    /// Response times.
    pub percentiles: Option<Percentiles>,
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
    /// Second by second.
    pub series: Series,
}

/// How it was decided.
#[derive(Debug, Clone, Serialize)]
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
}

/// The load.
#[derive(Debug, Clone, Serialize)]
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

/// The experiment.
#[derive(Debug, Clone, Serialize)]
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
    pub design: String,
    /// How far it is.
    pub status: ExperimentStatus,
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
    /// The load.
    pub workload: Workload,
    /// The experiment file.
    pub file: String,
    /// Commands that repeat it.
    pub repeat: Vec<String>,
}

/// A report.
#[derive(Debug, Clone, Serialize)]
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
    /// Facts.
    pub facts: Vec<FactRecord>,
    /// What was put back.
    pub put_back: Vec<PutBackRecord>,
}
