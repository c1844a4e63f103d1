//! What a trial's document holds: the JSON that ui/src/generated/model.ts is made to describe.

use crate::heat::Heat;
use crate::model::{Setting, Trial};
use pgdyno_record::{DistributionPoint, ErrorCount};
use serde::Serialize;

/// One metric over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TrialColumn {
    /// Name with the unit last; "tps" and "p95_ms" are the load's.
    pub metric: String,
    /// Which one of several.
    pub label: Option<String>,
    /// For people; "ratio" goes from 0 to 1, empty for a number without a unit.
    pub unit: &'static str,
    /// "load", "host" or "server".
    #[cfg_attr(feature = "typescript", ts(type = "\"load\" | \"host\" | \"server\""))]
    pub layer: &'static str,
    /// For people.
    pub title: String,
    /// Milliseconds after the start of the load, in order.
    pub t_ms: Vec<u32>,
    /// As many; `None` where there is no value.
    pub values: Vec<Option<f64>>,
}

/// Kinds of marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum MarkKind {
    /// The server wrote what was dirty.
    Checkpoint,
    /// Tables were vacuumed.
    Vacuum,
    /// Something else used the machine.
    Disturbance,
    /// Something was not read.
    Gap,
}

/// Something that happened, or that is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Mark {
    /// After the start of the load.
    pub at_ms: u32,
    /// Its end, where it has one.
    pub until_ms: Option<u32>,
    /// Its kind.
    pub kind: MarkKind,
    /// In words.
    pub text: String,
}

/// Sessions that waited for one type of event, or for one event.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct WaitSessions {
    /// As the server names it, an event behind its type ("IO: WalSync"); `CPU` are those that ran, `other` the rest of many events.
    pub name: String,
    /// Mean number of sessions in each second.
    pub values: Vec<f64>,
}

/// What sessions waited for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Waits {
    /// After the start of the load: ends of the seconds.
    pub t_ms: Vec<u32>,
    /// By type, the busiest first.
    pub types: Vec<WaitSessions>,
    /// By event, the busiest first, and last what many smaller ones are together.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub events: Vec<WaitSessions>,
}

/// A statement as samples of the sessions saw it, and as the server counted it; what is not known of one is `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields = nullable))]
pub struct Statement {
    /// The server's number of the normalised statement.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub query_id: String,
    /// Its text without constants, cut, where it is known.
    pub query: Option<String>,
    /// Mean number of sessions that were at it, warm-up included.
    pub mean_sessions: Option<f64>,
    /// The most in a second.
    pub max_sessions: Option<f64>,
    /// Its part of all sessions that were at any statement.
    pub share_ratio: Option<f64>,
    /// Executions in the measured time, as all that follows.
    pub calls: Option<u64>,
    /// Their time together.
    pub total_ms: Option<f64>,
    /// Time of one.
    pub mean_ms: Option<f64>,
    /// Rows returned or changed.
    pub rows: Option<u64>,
    /// Blocks of tables and indexes found in shared buffers.
    pub shared_hit: Option<u64>,
    /// Blocks that were not there.
    pub shared_read: Option<u64>,
    /// WAL written.
    pub wal_bytes: Option<u64>,
}

/// A trial as a report has it, and what is told of it here alone. Its `series` is empty: the columns hold it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TrialPart {
    /// As in a report.
    #[serde(flatten)]
    pub trial: Trial,
    /// Title of its treatment.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub title: Option<String>,
    /// Settings of its treatment with what the target reported in this trial.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub settings: Vec<Setting>,
}

/// One trial with everything recorded beside it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TrialDocument {
    /// "pgdyno-trial/1".
    pub format: &'static str,
    /// Number of its experiment.
    pub experiment_id: i64,
    /// The trial.
    pub trial: TrialPart,
    /// When its load began, as far as it is known: when the trial did.
    pub load_begun_unix_ms: u64,
    /// Warm-up.
    pub warmup_s: f64,
    /// Measured time.
    pub measured_s: f64,
    /// Load first, then host, then server.
    pub series: Vec<TrialColumn>,
    /// In order of time.
    pub marks: Vec<Mark>,
    /// `None` where sessions were not looked at.
    pub waits: Option<Waits>,
    /// The busiest first.
    pub statements: Vec<Statement>,
    /// Errors by SQLSTATE.
    pub errors: Vec<ErrorCount>,
    /// Response times of its measured time.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub distribution: Vec<DistributionPoint>,
    /// `None` where response times were not kept for each second.
    pub latency_heat: Option<Heat>,
}

impl TrialDocument {
    /// Everything but the columns, of which there may be a million values.
    pub(super) fn without_series(&self) -> TrialDocument {
        TrialDocument {
            series: Vec::new(),
            format: self.format,
            experiment_id: self.experiment_id,
            trial: self.trial.clone(),
            load_begun_unix_ms: self.load_begun_unix_ms,
            warmup_s: self.warmup_s,
            measured_s: self.measured_s,
            marks: self.marks.clone(),
            waits: self.waits.clone(),
            statements: self.statements.clone(),
            errors: self.errors.clone(),
            distribution: self.distribution.clone(),
            latency_heat: self.latency_heat.clone(),
        }
    }
}
