//! Records: versioned types of their own, for what is stored and what a report is made of. Format 1.
//!
//! A field that a later version adds gets `#[serde(default)]`, so that a newer pgdyno reads what an older one wrote.

use crate::heat::HeatRecord;
use crate::metric::{Better, Metric};
use crate::seconds::{self, SecondRecord};
use pgdyno_stats::Steadiness;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// How far an experiment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExperimentStatus {
    /// Being run, or its process died.
    Running,
    /// All its trials are done.
    Finished,
    /// Stopped in order before that.
    Interrupted,
}

/// The load of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadRecord {
    /// Name of the workload.
    pub name: String,
    /// Scale of its data.
    pub scale: u32,
    /// Clients.
    pub clients: u32,
    /// Threads of the load.
    pub threads: u32,
    /// Warm-up in seconds.
    pub warmup_s: f64,
    /// Measured time in seconds.
    pub measure_s: f64,
}

/// A setting of a treatment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingRecord {
    /// Id of the knob.
    pub knob: String,
    /// What is asked for.
    pub value: String,
    /// Layer by name.
    pub layer: String,
    /// Risk by name.
    pub risk: String,
    /// Whether this treatment adds or changes it against what it is compared with.
    pub changed: bool,
}

/// A treatment of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TreatmentRecord {
    /// Unique name.
    pub name: String,
    /// For people.
    pub title: String,
    /// Why it is tried.
    pub reason: Option<String>,
    /// Why it was not tested, if it was not.
    pub why_not: Option<String>,
    /// All its settings.
    pub settings: Vec<SettingRecord>,
    /// Factor and level, in the order of the file; "step" and its name for steps.
    #[serde(default)]
    pub levels: Vec<(String, String)>,
    /// Name of the treatment that it is held against; `None` also in records from before there were factors.
    #[serde(default)]
    pub against: Option<String>,
    /// Its load, where it is not the experiment's.
    #[serde(default)]
    pub workload: Option<WorkloadRecord>,
    /// What else it has of its own, as ("server.pooler", "pgbouncer").
    #[serde(default)]
    pub around: Vec<(String, String)>,
}

/// A factor of an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactorRecord {
    /// Unique name.
    pub name: String,
    /// For people.
    pub title: String,
    /// A condition: its levels are not held against one another.
    pub along: bool,
    /// Names of its levels, the reference first.
    pub levels: Vec<String>,
}

/// A figure of trials beyond those that every trial has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FigureRecord {
    /// Its name, the unit last.
    pub name: String,
    /// Whether a larger value is the better one.
    pub larger_is_better: bool,
}

/// A published study that an experiment repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyRecord {
    /// Its tag.
    pub source: String,
    /// Title and year.
    pub title: String,
    /// Tables of results.
    pub tables: Vec<TableRecord>,
    /// What it found.
    pub claims: Vec<ClaimRecord>,
}

/// A table: figures by one factor, or one figure by two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableRecord {
    /// Heading.
    pub title: String,
    /// Factor of the rows; steps where there is none.
    pub rows: Option<String>,
    /// Factor of the columns.
    pub columns: Option<String>,
    /// Figures by name.
    pub values: Vec<String>,
}

/// Something that a study found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimRecord {
    /// In words.
    pub text: String,
    /// Levels of the treatments that it is about.
    pub of: BTreeMap<String, String>,
    /// Levels of what they are held against.
    pub against: BTreeMap<String, String>,
    /// The figure.
    pub metric: String,
    /// "better", "worse" or "same".
    pub found: String,
    /// The ratio that was told.
    pub ratio: Option<f64>,
}

/// A fact, as pgdyno-host and pgdyno-server find them, with its group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactRecord {
    /// "host", "server", "load" or "sandbox".
    pub group: String,
    /// Name with the unit last.
    pub name: String,
    /// Value, if it is known: a text, number, truth value, or a list or an object of those.
    pub value: Option<Value>,
    /// Why not, if it is not.
    pub missing: Option<String>,
    /// Where it was read.
    pub source: String,
}

impl FactRecord {
    /// For people: the value, or that it is unknown and why.
    pub fn shown(&self) -> String {
        match (&self.value, &self.missing) {
            (Some(value), _) => shown(value),
            (None, Some(why)) => format!("unknown: {why}"),
            (None, None) => "unknown".to_owned(),
        }
    }
}

/// A fact's value for people: texts without quotes, lists with commas, objects as `name value` pairs.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "unknown".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{name} {}", shown(value)))
                .collect();
            fields.join(" ")
        }
    }
}

/// A knob that was restored at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutBackRecord {
    /// Id of the knob.
    pub knob: String,
    /// Its file.
    #[serde(rename = "where")]
    pub place: String,
    /// Value before.
    pub was: String,
    /// Last value set.
    pub set_to: String,
    /// "restored", "already", "left" or "failed".
    pub outcome: String,
    /// More to say.
    pub detail: Option<String>,
}

/// An experiment as it is begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentRecord {
    /// Its name.
    pub name: String,
    /// The question.
    pub question: String,
    /// "cumulative" or "one-at-a-time".
    pub design: String,
    /// Blocks planned: at most [`BLOCKS_MAX`].
    #[serde(deserialize_with = "blocks")]
    pub blocks: u32,
    /// Seed of order and load.
    pub seed: u64,
    /// Confidence of all intervals together.
    pub confidence: f64,
    /// Smallest effect that matters.
    pub smallest_effect: f64,
    /// The load.
    pub workload: WorkloadRecord,
    /// Treatments in the order of the plan, the reference first: at most [`TREATMENTS_MAX`].
    #[serde(deserialize_with = "treatments")]
    pub treatments: Vec<TreatmentRecord>,
    /// Facts before the first trial.
    pub facts: Vec<FactRecord>,
    /// The experiment file, whole.
    pub file: String,
    /// Commands that repeat it.
    pub repeat: Vec<String>,
    /// Name of the target, without secrets.
    pub target: String,
    /// The figure that decides.
    #[serde(default = "tps")]
    pub metric: String,
    /// "after-blocks" or "when-decided".
    #[serde(default = "after_blocks")]
    pub stop: String,
    /// Factors, where it has them in place of steps.
    #[serde(default)]
    pub factors: Vec<FactorRecord>,
    /// Figures that are taken from series.
    #[serde(default)]
    pub figures: Vec<FigureRecord>,
    /// The study that it repeats.
    #[serde(default)]
    pub study: Option<StudyRecord>,
}

/// No experiment has more blocks; what is worked out of a record grows with them.
pub const BLOCKS_MAX: u32 = 1000;
/// No experiment has more treatments.
pub const TREATMENTS_MAX: usize = 1000;

fn blocks<'de, D: Deserializer<'de>>(text: D) -> Result<u32, D::Error> {
    let blocks = u32::deserialize(text)?;
    match blocks <= BLOCKS_MAX {
        true => Ok(blocks),
        false => Err(D::Error::custom(format!(
            "it has {blocks} blocks, expected at most {BLOCKS_MAX}"
        ))),
    }
}

fn treatments<'de, D: Deserializer<'de>>(text: D) -> Result<Vec<TreatmentRecord>, D::Error> {
    let treatments = Vec::deserialize(text)?;
    match treatments.len() <= TREATMENTS_MAX {
        true => Ok(treatments),
        false => Err(D::Error::custom(format!(
            "it has {} treatments, expected at most {TREATMENTS_MAX}",
            treatments.len()
        ))),
    }
}

fn tps() -> String {
    "tps".to_owned()
}

fn after_blocks() -> String {
    "after-blocks".to_owned()
}

/// What became of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialStatus {
    /// It counts.
    Finished,
    /// It could not be done or broke off.
    Failed,
    /// It was done, but its figures do not hold.
    Invalid,
}

/// Response times in milliseconds: those that were measured, or that an external program has reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Mean; missing too in records of earlier versions.
    #[serde(default)]
    pub mean_ms: Option<f64>,
    /// Median.
    pub p50_ms: Option<f64>,
    /// 95th percentile.
    pub p95_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// Longest.
    pub max_ms: Option<f64>,
}

impl Percentiles {
    /// `None` where not one is known.
    pub fn if_any(self) -> Option<Percentiles> {
        (self != Percentiles::default()).then_some(self)
    }
}

/// A point of a response-time distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DistributionPoint {
    /// 0 to 100.
    pub percentile: f64,
    /// Milliseconds.
    pub ms: f64,
}

/// The clients' count held against the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrossCheck {
    /// Transactions that the clients saw committed, warm-up included.
    pub client: u64,
    /// What the server counted in the same time, without what pgdyno itself asked and without the commits of parallel workers.
    pub server: u64,
    /// What parallel workers committed for themselves; trials of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub by_workers: u64,
    /// How far the two may be apart: in flight at the end, and background work.
    pub allowed_difference: u64,
    /// Whether they agree within that.
    pub agrees: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// How often an error came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCount {
    /// Five letters.
    pub sqlstate: String,
    /// How often.
    pub count: u64,
    /// The server's message of the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Where that was: script and line, or the kind of transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// A statement as the server counted it in the measured time of a trial, all users together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatementRecord {
    /// The server's number of the normalised statement.
    pub query_id: i64,
    /// On one line and cut, without constants; of a utility statement two words at most. `None` where it may not be seen.
    pub text: Option<String>,
    /// Executions.
    pub calls: u64,
    /// Their time together.
    pub total_ms: f64,
    /// Rows returned or changed.
    pub rows: u64,
    /// Blocks of tables and indexes found in shared buffers.
    pub blocks_hit: u64,
    /// Blocks that were not there.
    pub blocks_read: u64,
    /// WAL written.
    pub wal_bytes: u64,
}

/// A trial as it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// 1-based.
    pub block: u32,
    /// 1-based position in the block.
    pub position: u32,
    /// Name of the treatment.
    pub treatment: String,
    /// What became of it.
    pub status: TrialStatus,
    /// Why it failed or does not hold.
    pub reason: Option<String>,
    /// When it began.
    pub started_unix_ms: u64,
    /// Knob and what the target reported after it was set.
    pub effective: Vec<(String, String)>,
    /// Committed per second in the measured time.
    pub tps: Option<f64>,
    /// Committed in the measured time.
    pub committed: u64,
    /// Failed in it.
    pub failed: u64,
    /// Errors in it.
    pub errors: Vec<ErrorCount>,
    /// Response times.
    pub percentiles: Option<Percentiles>,
    /// The external program that has reported throughput and response times; `None` where pgdyno has measured them.
    #[serde(default)]
    pub reported_by: Option<String>,
    /// Histogram of response times in nanoseconds (HdrHistogram V2 deflate, base64).
    pub histogram: Option<String>,
    /// Points of the distribution.
    pub distribution: Vec<DistributionPoint>,
    /// Whether throughput was steady.
    pub steadiness: Option<Steadiness>,
    /// Stability of the per-second throughput.
    pub stability_cv: Option<f64>,
    /// Warm-up in seconds.
    pub warmup_s: f64,
    /// Measured seconds.
    pub measured_s: f64,
    /// Client CPU per committed transaction.
    pub client_cpu_us_per_tx: Option<f64>,
    /// Server CPU per committed transaction, warm-up included.
    pub server_cpu_us_per_tx: Option<f64>,
    /// WAL per committed transaction, warm-up included.
    pub wal_bytes_per_tx: Option<f64>,
    /// Counters of the CPU on the server's processes (`page_faults`, `dtlb_load_misses`, ...) per committed transaction of the
    /// measured time; those that the machine counts.
    #[serde(default)]
    pub counters_per_tx: BTreeMap<String, f64>,
    /// The server's count.
    pub cross_check: Option<CrossCheck>,
    /// What disturbed it.
    pub disturbances: Vec<String>,
    /// Whether others took CPU time from it.
    #[serde(default)]
    pub disturbed: bool,
    /// Second by second.
    #[serde(with = "seconds")]
    pub seconds: Vec<SecondRecord>,
    /// Figures beyond those that every trial has: `job_s`, `recovery_s`, what is taken from series.
    #[serde(default)]
    pub figures: BTreeMap<String, f64>,
    /// The server that it ran on, where that is not the target itself: "v17", "data-tmpfs-2G".
    #[serde(default)]
    pub stand: Option<String>,
    /// Seconds of the measured time that were still part of the warm-up, by a change-point in throughput.
    #[serde(default)]
    pub unsettled_s: Option<f64>,
    /// Response times over time; `None` also in records from before they were kept.
    #[serde(default)]
    pub heat: Option<HeatRecord>,
    /// What pg_stat_statements counted in the measured time of the statements that took the most time, the most expensive first; none
    /// where the server has not got it, and in records from before they were kept.
    #[serde(default)]
    pub statements: Vec<StatementRecord>,
}

impl TrialRecord {
    /// One that has only begun, at no time yet: what breaks off so has failed.
    pub fn begun(block: u32, position: u32, treatment: &str) -> TrialRecord {
        TrialRecord {
            block,
            position,
            treatment: treatment.to_owned(),
            status: TrialStatus::Failed,
            reason: None,
            started_unix_ms: 0,
            effective: Vec::new(),
            tps: None,
            committed: 0,
            failed: 0,
            errors: Vec::new(),
            percentiles: None,
            reported_by: None,
            histogram: None,
            distribution: Vec::new(),
            steadiness: None,
            stability_cv: None,
            warmup_s: 0.0,
            measured_s: 0.0,
            client_cpu_us_per_tx: None,
            server_cpu_us_per_tx: None,
            wal_bytes_per_tx: None,
            counters_per_tx: BTreeMap::new(),
            cross_check: None,
            disturbances: Vec::new(),
            disturbed: false,
            seconds: Vec::new(),
            figures: BTreeMap::new(),
            stand: None,
            unsettled_s: None,
            heat: None,
            statements: Vec::new(),
        }
    }

    /// A figure by its name: those that every trial has, and its own. Units are in the names.
    pub fn figure(&self, name: &str) -> Option<f64> {
        let percentiles = self.percentiles.as_ref();
        match name {
            "mean_ms" => percentiles.and_then(|p| p.mean_ms),
            "tps" => self.tps,
            "p50_ms" => percentiles.and_then(|p| p.p50_ms),
            "p95_ms" => percentiles.and_then(|p| p.p95_ms),
            "p99_ms" => percentiles.and_then(|p| p.p99_ms),
            "max_ms" => percentiles.and_then(|p| p.max_ms),
            "stability_cv" => self.stability_cv,
            "server_cpu_us_per_tx" => self.server_cpu_us_per_tx,
            "client_cpu_us_per_tx" => self.client_cpu_us_per_tx,
            "wal_bytes_per_tx" => self.wal_bytes_per_tx,
            _ => self
                .figures
                .get(name)
                .or_else(|| self.counters_per_tx.get(name))
                .copied(),
        }
    }
}

impl ExperimentRecord {
    /// Whether a larger value of a figure is the better one.
    pub fn larger_is_better(&self, figure: &str) -> bool {
        let own = self.figures.iter().find(|own| own.name == figure);
        let known = Metric::named(figure).is_some_and(|metric| metric.better == Better::Higher);
        own.map_or(known, |own| own.larger_is_better)
    }
}

/// The phase after the last trial.
const PUTTING_BACK: &str = "restoring";
/// Restart, checkpoint and cross-check of a trial take about this long, until one has been measured.
const OVERHEAD_S: f64 = 4.0;
/// The format's name of [`ProgressRecord`].
pub const PROGRESS_FORMAT: &str = "pgdyno-progress/1";

/// How far a running experiment is. Not kept: it counts as long as the process that wrote it runs the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgressRecord {
    /// "pgdyno-progress/1".
    pub format: String,
    /// Trials in all, at most.
    pub trials: u32,
    /// Of which are stored.
    pub done: u32,
    /// Of which were stored before this process went on with it.
    pub done_before: u32,
    /// Length of a trial's load.
    pub trial_s: f64,
    /// When this process began its first trial.
    pub begun_unix_ms: u64,
    /// When it stored its last one; the same where there is none yet.
    pub counted_unix_ms: u64,
    /// What is done now, for people: "warm-up".
    pub phase: String,
    /// The trial that is run now; `None` between two.
    pub current: Option<CurrentTrial>,
}

impl ProgressRecord {
    /// At the beginning of the first trial of a process that is to run `trials` less `done`, each with a load of `trial_s`
    /// seconds.
    pub fn begun(trials: u32, done: u32, trial_s: f64, now_unix_ms: u64) -> ProgressRecord {
        ProgressRecord {
            format: PROGRESS_FORMAT.to_owned(),
            trials,
            done,
            done_before: done,
            trial_s,
            begun_unix_ms: now_unix_ms,
            counted_unix_ms: now_unix_ms,
            phase: String::new(),
            current: None,
        }
    }

    /// A trial was stored.
    pub fn count(&mut self, now_unix_ms: u64) {
        self.done += 1;
        self.counted_unix_ms = now_unix_ms;
        self.current = None;
    }

    /// A trial begins.
    pub fn begin(&mut self, treatment: &str, block: u32, phase: &str) {
        self.current = Some(CurrentTrial {
            treatment: treatment.to_owned(),
            block,
        });
        phase.clone_into(&mut self.phase);
    }

    /// No further trial begins: what was changed is restored.
    pub fn put_back(&mut self) {
        self.current = None;
        PUTTING_BACK.clone_into(&mut self.phase);
    }

    /// Seconds until the last trial ends, by the mean length of those that this process has run; `None` once no further one
    /// begins, for nothing tells how long the rest takes.
    pub fn left_s(&self, now_unix_ms: u64) -> Option<f64> {
        if self.phase == PUTTING_BACK {
            return None;
        }
        let seconds = |from: u64, to: u64| {
            let ms = u32::try_from(to.saturating_sub(from)).unwrap_or(u32::MAX);
            f64::from(ms) / 1e3
        };
        let here = self.done.saturating_sub(self.done_before);
        let each_s = match here {
            0 => self.trial_s + OVERHEAD_S,
            here => seconds(self.begun_unix_ms, self.counted_unix_ms) / f64::from(here),
        };
        let left_s = each_s * f64::from(self.trials.saturating_sub(self.done));
        Some((left_s - seconds(self.counted_unix_ms, now_unix_ms)).max(0.0))
    }
}

/// A trial that is run now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentTrial {
    /// Name of its treatment.
    pub treatment: String,
    /// 1-based.
    pub block: u32,
}

/// An experiment as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredExperiment {
    /// Number in this store.
    pub id: i64,
    /// As it was begun.
    pub record: ExperimentRecord,
    /// How far it is.
    pub status: ExperimentStatus,
    /// When it began.
    pub started_unix_ms: u64,
    /// When it ended.
    pub finished_unix_ms: Option<u64>,
    /// What was restored at the end.
    pub put_back: Vec<PutBackRecord>,
    /// Trials in the order they ran, with their numbers.
    pub trials: Vec<(i64, TrialRecord)>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_shown_without_json_marks() {
        let value = json!([{"disk": "vda", "rotational": false}, {"disk": "md0", "rotational": null}]);
        assert_eq!(
            shown(&value),
            "disk vda rotational no, disk md0 rotational unknown"
        );
    }
}
