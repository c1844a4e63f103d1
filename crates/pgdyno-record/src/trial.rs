//! A trial as it ended. Format 1: later fields have `#[serde(default)]`.

use crate::generator::GeneratorHost;
use crate::heat::HeatRecord;
use crate::seconds::{self, SecondRecord};
use pgdyno_stats::Steadiness;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The outcome of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum TrialStatus {
    /// Ended in order; its figures count.
    Finished,
    /// It could not be done or broke off.
    Failed,
    /// It was done, but its figures do not hold.
    Invalid,
}

/// Whether the throughput of a trial became steady.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum WarmUpEnd {
    /// It did, after the seconds that are cut off.
    Ended,
    /// It did not: figures are means of something that changed.
    Never,
    /// The seconds are too few to say.
    #[default]
    Unknown,
}

impl WarmUpEnd {
    /// As records have it: "ended".
    pub fn word(self) -> &'static str {
        match self {
            WarmUpEnd::Ended => "ended",
            WarmUpEnd::Never => "never",
            WarmUpEnd::Unknown => "unknown",
        }
    }
}

/// Response times in milliseconds: those that were measured, or that an external program has
/// reported. A percentile beyond which fewer than ten transactions lie is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Percentiles {
    /// Mean; missing too in records of earlier versions.
    #[serde(default)]
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub mean_ms: Option<f64>,
    /// 50th percentile, the median.
    pub p50_ms: Option<f64>,
    /// 95th percentile.
    pub p95_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// Longest response time of all.
    pub max_ms: Option<f64>,
}

impl Percentiles {
    /// `None` where not one is known.
    pub fn if_any(self) -> Option<Percentiles> {
        (self != Percentiles::default()).then_some(self)
    }
}

/// The transactions of a trial's measured time: due = committed + failed + skipped. `None` is
/// unknown: an external program did not report it, or an earlier version did not record it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TransactionCounts {
    /// Transactions that ended as intended, by a commit or an intended rollback.
    pub committed: u64,
    /// Transactions that ended with an error.
    pub failed: Option<u64>,
    /// Were due and not begun before the end, which only an open loop has, or not ended soon after
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<u64>,
    /// Those of the committed ones that took longer than `latency_limit_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<u64>,
    /// Tries after the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u64>,
    /// Those of the committed ones that were meant to end by a rollback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolled_back: Option<u64>,
}

/// A point of a response-time distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct DistributionPoint {
    /// Percentage of the transactions at or below `ms`, 0 to 100.
    pub percentile: f64,
    /// Response time in milliseconds.
    pub ms: f64,
    /// Lower bound of its interval of 95 %; `None` where it is not known, and in records of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub low_ms: Option<f64>,
    /// Upper bound; `None` likewise, or where the longest response time may be below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub high_ms: Option<f64>,
}

impl DistributionPoint {
    /// The confidence of its interval, by itself.
    pub const CONFIDENCE: f64 = 0.95;

    /// The point of that percentile among these.
    pub fn find(points: &[DistributionPoint], percentile: f64) -> Option<&DistributionPoint> {
        points
            .iter()
            .find(|point| point.percentile.total_cmp(&percentile).is_eq())
    }

    /// Without an interval.
    pub fn new(percentile: f64, ms: f64) -> DistributionPoint {
        DistributionPoint {
            percentile,
            ms,
            low_ms: None,
            high_ms: None,
        }
    }
}

/// The clients' count of commits compared with the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct CrossCheck {
    /// Transactions that the clients saw committed, warm-up included.
    pub client: u64,
    /// What the server counted in the same time, without what pgdyno itself asked and without the
    /// commits of parallel workers.
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
fn is_false(flag: &bool) -> bool {
    !*flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// An error code with its number of transactions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ErrorCount {
    /// Code of the error, five characters: "40001".
    pub sqlstate: String,
    /// How often the code came in the measured time.
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
    /// On one line and cut, without constants; of a utility statement two words at most. `None`
    /// where it may not be seen.
    pub text: Option<String>,
    /// Number of executions.
    pub calls: u64,
    /// Execution time of all calls together.
    pub total_ms: f64,
    /// Rows returned or changed by all calls.
    pub rows: u64,
    /// Blocks of tables and indexes found in shared buffers.
    pub blocks_hit: u64,
    /// Blocks that were not there.
    pub blocks_read: u64,
    /// WAL written by all calls.
    pub wal_bytes: u64,
}

/// What the response times of an open loop are made of, as histograms in nanoseconds (HdrHistogram
/// V2 deflate, base64). In a closed loop a transaction is due when it begins, and of these only the
/// last one may be there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenLoopHistograms {
    /// Service time of committed transactions: from begun to done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_histogram: Option<String>,
    /// Schedule lag of committed transactions: from due to begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_histogram: Option<String>,
    /// How long each skipped transaction had waited, a lower bound of its response time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped_histogram: Option<String>,
}

/// A trial as it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
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
    /// Whether a guard has ended it, and with it all further trials of its treatment.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ended_by_guard: bool,
    /// Time at which it began, with the setting of its knobs.
    pub started_unix_ms: u64,
    /// Knob and what the target reported after it was set.
    pub effective: Vec<(String, String)>,
    /// Transactions committed per second of the measured time; `None` where nothing was measured.
    pub tps: Option<f64>,
    /// Transactions of the measured time.
    #[serde(flatten)]
    pub transactions: TransactionCounts,
    /// Responses that took longer are late; `None` without such a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_limit_ms: Option<f64>,
    /// Errors in the measured time.
    pub errors: Vec<ErrorCount>,
    /// Response times of its committed transactions; `None` where none is known.
    pub percentiles: Option<Percentiles>,
    /// The external program that has reported throughput and response times; `None` where pgdyno
    /// has measured them.
    #[serde(default)]
    pub reported_by: Option<String>,
    /// Histogram of the response times of committed transactions (from due to done) in nanoseconds
    /// (HdrHistogram V2 deflate, base64).
    pub histogram: Option<String>,
    /// Histograms of an open loop.
    #[serde(flatten)]
    pub open_loop: OpenLoopHistograms,
    /// Percentiles of the response time, by rising percentile; empty without a histogram.
    pub distribution: Vec<DistributionPoint>,
    /// Result of the trend test on the throughput; `None` where the seconds are too few.
    pub steadiness: Option<Steadiness>,
    /// Stability of the per-second throughput.
    pub stability_cv: Option<f64>,
    /// Length of the warm-up, which is in no figure unless it says so.
    pub warmup_s: f64,
    /// Length of the measured time.
    pub measured_s: f64,
    /// What it took of a budget of time, its preparation included; of several trials of one load
    /// the first has all of it, and the others
    /// 0. `None` where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_s: Option<f64>,
    /// Client CPU per committed transaction.
    pub client_cpu_us_per_tx: Option<f64>,
    /// Server CPU per committed transaction, warm-up included.
    pub server_cpu_us_per_tx: Option<f64>,
    /// WAL per committed transaction, warm-up included.
    pub wal_bytes_per_tx: Option<f64>,
    /// Counters of the CPU on the server's processes (`page_faults`, `dtlb_load_misses`, ...) per
    /// committed transaction of the measured time; those that the machine counts.
    #[serde(default)]
    pub counters_per_tx: BTreeMap<String, f64>,
    /// Clients' count of commits against the server's; `None` where the server's is not known.
    pub cross_check: Option<CrossCheck>,
    /// What disturbed the trial, a sentence each.
    pub disturbances: Vec<String>,
    /// Whether others took CPU time from it.
    #[serde(default)]
    pub disturbed: bool,
    /// Throughput and host for each second of the load, the warm-up included.
    #[serde(with = "seconds")]
    pub seconds: Vec<SecondRecord>,
    /// What was done to the server while the load ran, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventRecord>,
    /// Figures beyond those that every trial has: `job_s`, `recovery_s`, what is taken from series.
    #[serde(default)]
    pub figures: BTreeMap<String, f64>,
    /// The server that it ran on, where that is not the target itself: "v17", "data-tmpfs-2G".
    #[serde(default, alias = "stand")]
    pub server_variant: Option<String>,
    /// Seconds of the measured time that were still part of the warm-up, by their throughput: they
    /// are in no rate of the trial and in no response time that was measured here. 0 where none
    /// was; `None` where `warm_up` does not end.
    #[serde(default)]
    pub unsettled_s: Option<f64>,
    /// Whether the warm-up ended within the measured time; unknown in records of earlier versions.
    #[serde(default)]
    pub warm_up: WarmUpEnd,
    /// Response times over time; `None` also in records from before they were kept.
    #[serde(default)]
    pub heat: Option<HeatRecord>,
    /// What pg_stat_statements counted in the measured time of the statements that took the most
    /// time, the most expensive first; none where the server has not got it, and in records from
    /// before they were kept.
    #[serde(default)]
    pub statements: Vec<StatementRecord>,
    /// The hosts that drove its load, each with its name; none where the experiment's own host did,
    /// and in records from before they were kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_hosts: Vec<(String, GeneratorHost)>,
    /// By how many milliseconds the time of day of its host was ahead of the coordinator's at its
    /// end, and the largest error of that; `None` where there was no other host, and in records
    /// from before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ahead_ms: Option<(f64, f64)>,
}

/// Something that was done to a server while a load ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "TrialEvent"))]
pub struct EventRecord {
    /// What it was: "jit off".
    pub title: String,
    /// When it began, from the start of the load, warm-up included.
    pub t_s: f64,
    /// How long it took: until settings were in force, or until a server that was killed answered
    /// again.
    pub took_s: f64,
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
            ended_by_guard: false,
            started_unix_ms: 0,
            effective: Vec::new(),
            tps: None,
            transactions: TransactionCounts::default(),
            latency_limit_ms: None,
            errors: Vec::new(),
            percentiles: None,
            reported_by: None,
            histogram: None,
            open_loop: OpenLoopHistograms::default(),
            distribution: Vec::new(),
            steadiness: None,
            stability_cv: None,
            warmup_s: 0.0,
            measured_s: 0.0,
            took_s: None,
            client_cpu_us_per_tx: None,
            server_cpu_us_per_tx: None,
            wal_bytes_per_tx: None,
            counters_per_tx: BTreeMap::new(),
            cross_check: None,
            disturbances: Vec::new(),
            disturbed: false,
            seconds: Vec::new(),
            events: Vec::new(),
            figures: BTreeMap::new(),
            server_variant: None,
            unsettled_s: None,
            warm_up: WarmUpEnd::Unknown,
            heat: None,
            statements: Vec::new(),
            load_hosts: Vec::new(),
            clock_ahead_ms: None,
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
            "cpus" => Some(self.server_cpu_us_per_tx? * self.tps? / 1e6),
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
