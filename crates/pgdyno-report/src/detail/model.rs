//! What a trial's document holds: the JSON that ui/src/generated/model.ts is made to describe.

use crate::heat::Heat;
use crate::marks::Mark;
use crate::model::{Setting, Trial};
use pgdyno_record::{DistributionPoint, ErrorCount};
use serde::Serialize;

/// One metric over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TrialColumn {
    /// Name with the unit last; "tps" and "p95_ms" are the load's.
    pub metric: String,
    /// Which one of several: a disk, a CPU, a class of processes; `None` where there is one.
    pub label: Option<String>,
    /// Unit for axes; "ratio" goes from 0 to 1, empty for a number without a unit.
    pub unit: &'static str,
    /// Where the metric is from: "load", "host" or "server".
    #[cfg_attr(feature = "typescript", ts(type = "\"load\" | \"host\" | \"server\""))]
    pub layer: &'static str,
    /// Title of the chart, without the label.
    pub title: String,
    /// Milliseconds after the start of the load, in order.
    pub t_ms: Vec<u32>,
    /// One value for each of `t_ms`; `None` where there is no value.
    pub values: Vec<Option<f64>>,
}

/// Sessions that waited for one type of event, or for one event.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct WaitSessions {
    /// As the server names it, an event behind its type ("IO: WalSync"); `CPU` are those that ran,
    /// `other` the rest of many events.
    pub name: String,
    /// Mean number of sessions in each second.
    pub values: Vec<f64>,
}

/// Sessions of the server by what they waited for, second by second.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Waits {
    /// Ends of the seconds, after the start of the load.
    pub t_ms: Vec<u32>,
    /// Sessions by type of event, the busiest first.
    pub types: Vec<WaitSessions>,
    /// Sessions by event, the busiest first, and last what many smaller ones are together.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub events: Vec<WaitSessions>,
}

/// A statement as samples of the sessions saw it, and as the server counted it; what is not known
/// of one is `None`.
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
    /// Largest number of sessions that were at it in a second.
    pub max_sessions: Option<f64>,
    /// Share of all sessions that were at any statement, 0 to 1.
    pub share_ratio: Option<f64>,
    /// Executions in the measured time, as all that follows.
    pub calls: Option<u64>,
    /// Execution time of all calls together.
    pub total_ms: Option<f64>,
    /// Execution time of a call, mean over `calls`.
    pub mean_ms: Option<f64>,
    /// Rows returned or changed by all calls.
    pub rows: Option<u64>,
    /// Blocks of tables and indexes found in shared buffers.
    pub shared_hit: Option<u64>,
    /// Blocks that were not there.
    pub shared_read: Option<u64>,
    /// WAL written by all calls.
    pub wal_bytes: Option<u64>,
}

/// A trial as a report has it, and what is reported of it here alone. Its `series` is empty: the
/// columns hold it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TrialPart {
    /// The trial with the fields that it has in a report.
    #[serde(flatten)]
    pub trial: Trial,
    /// Title of its treatment; `None` where the plan does not have it.
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
    /// Always "pgdyno-trial/1".
    pub format: &'static str,
    /// Number of its experiment in the store.
    pub experiment_id: i64,
    /// The trial with title and settings of its treatment.
    pub trial: TrialPart,
    /// When its load began, as far as it is known: when the trial did.
    pub load_begun_unix_ms: u64,
    /// Length of the warm-up.
    pub warmup_s: f64,
    /// Length of the measured time.
    pub measured_s: f64,
    /// Metrics over time: those of the load first, then of the host, then of the server.
    pub series: Vec<TrialColumn>,
    /// What happened beside the load, in order of time.
    pub marks: Vec<Mark>,
    /// Sessions by what they waited for; `None` where sessions were not recorded.
    pub waits: Option<Waits>,
    /// Statements of the load, the busiest first.
    pub statements: Vec<Statement>,
    /// Errors of the measured time, by SQLSTATE.
    pub errors: Vec<ErrorCount>,
    /// Percentiles of the response time in the measured time.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub distribution: Vec<DistributionPoint>,
    /// Response times over time; `None` where they were not kept.
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
