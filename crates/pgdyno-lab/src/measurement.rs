//! What was measured of a load, and the figures of it.

use pgdyno_engine::{Books, LoadResult, Rest};
use pgdyno_record::{
    CrossCheck, DistributionPoint, EventRecord, GeneratorHost, HeatRecord, Percentiles, SecondRecord,
    SeriesRecord, StatementRecord, WarmUpEnd,
};
use pgdyno_stats::{Steadiness, WarmUp};
use pgdyno_workload::nopm;
use std::collections::BTreeMap;
use std::time::Duration;

/// A load with everything that was seen of it.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// Counts and response times of the clients.
    pub load: LoadResult,
    /// Load and host for each second of the load.
    pub seconds: Vec<SecondRecord>,
    /// Metrics that were recorded beside the load, from its begin on.
    pub series: SeriesRecord,
    /// Clients' count of commits against the server's; `None` where the server's is not known in
    /// full.
    pub cross_check: Option<CrossCheck>,
    /// Why the count of the server is not known in full; `None` where it is.
    pub unchecked: Option<String>,
    /// Where the warm-up ends by the seconds of the measured time.
    pub warm_up: WarmUp,
    /// What is left of the measured time where its beginning was still part of the warm-up.
    pub settled: Option<Rest>,
    /// Whether throughput was steady, in the settled part.
    pub steadiness: Option<Steadiness>,
    /// Coefficient of variation of the throughput of each second; `None` where seconds are too few.
    pub stability_cv: Option<f64>,
    /// Server CPU per committed transaction, warm-up included; without that of the session that
    /// asks before, beside and after it.
    pub server_cpu_us_per_tx: Option<f64>,
    /// WAL per committed transaction, warm-up included.
    pub wal_bytes_per_tx: Option<f64>,
    /// What disturbed it, by rules fixed beforehand.
    pub disturbances: Vec<String>,
    /// What is to be known of its figures: too few transactions, dead rows that could not be
    /// removed.
    pub warnings: Vec<String>,
    /// Whether CPU time was taken from it by others, which is reason enough to exclude it if it is
    /// far off.
    pub is_disturbed: bool,
    /// The hosts that drove it, each with its name; empty where this process did.
    pub load_hosts: Vec<(String, GeneratorHost)>,
    /// What an external program has reported; the load's own response times are empty then.
    pub reported: Option<Reported>,
    /// Response time above which a transaction is late; `None` without such a limit.
    pub latency_limit: Option<Duration>,
    /// What the server counted of the most expensive statements in the measured time.
    pub statements: Vec<StatementRecord>,
    /// Points of the distribution of response times, as far as its transactions are enough; empty
    /// where no response time is known.
    pub distribution: Vec<DistributionPoint>,
    /// Response times over time, where they are known.
    pub heat: Option<HeatRecord>,
    /// What was done to the server while it ran.
    pub events: Vec<EventRecord>,
    /// Figures beyond those of every trial, by name: `job_s`, `recovery_s`.
    pub figures: BTreeMap<String, f64>,
    /// What was seen of each server, in their order; nothing where they could not be asked after
    /// the load.
    pub(crate) servers: Vec<OfServer>,
    /// Why it is not a measurement at all; `None` where it is one.
    pub broken: Option<String>,
}

/// What was seen of one server of a load.
#[derive(Debug, Clone)]
pub(crate) struct OfServer {
    pub(crate) cross_check: CrossCheck,
    /// Why its count is not known in full.
    pub(crate) unchecked: Option<String>,
    pub(crate) has_restarted: bool,
}

/// What an external program reports of its load. `None` is not reported.
#[derive(Debug, Clone)]
pub struct Reported {
    /// Name of the program: "sysbench".
    pub program: String,
    /// Response times by its own measurement.
    pub percentiles: Option<Percentiles>,
    /// Number of transactions that it counted as failed.
    pub failed: Option<u64>,
}

impl Measurement {
    /// The books that figures are of, those of the settled part, and how long that is in seconds.
    pub fn counted(&self) -> (&Books, f64) {
        match &self.settled {
            Some(settled) => (&settled.books, settled.measured_s),
            None => (&self.load.measured, self.load.measured_s),
        }
    }

    /// Seconds of the measured time that were still part of the warm-up, 0 where none was; `None`
    /// where it did not end, or nothing is known of it.
    pub fn unsettled_s(&self) -> Option<u32> {
        match (&self.settled, self.warm_up) {
            (Some(rest), _) => Some(rest.cut_s),
            (None, WarmUp::EndsAt(0)) => Some(0),
            _ => None,
        }
    }

    /// Whether the warm-up ended within the measured time.
    pub fn warm_up_end(&self) -> WarmUpEnd {
        match (self.unsettled_s(), self.warm_up) {
            (Some(_), _) => WarmUpEnd::Ended,
            (None, WarmUp::Never) => WarmUpEnd::Never,
            (None, _) => WarmUpEnd::Unknown,
        }
    }

    /// Committed transactions per second of the settled part.
    pub fn tps(&self) -> f64 {
        let (books, measured_s) = self.counted();
        #[expect(clippy::cast_precision_loss, reason = "a count of transactions")]
        let committed = (books.committed - books.after_end) as f64;
        if measured_s > 0.0 {
            committed / measured_s
        } else {
            0.0
        }
    }

    /// A rate of the whole measured time, at that of the settled part: what is not counted second
    /// by second has the same part in each.
    pub(crate) fn settled(&self, rate: f64) -> f64 {
        match self.load.tps() {
            tps if tps > 0.0 => rate * self.tps() / tps,
            _ => rate,
        }
    }

    /// New orders per minute of TPC-C, at the rate of the settled part; `None` for other loads.
    pub fn nopm(&self) -> Option<f64> {
        nopm(&self.load).map(|nopm| self.settled(nopm))
    }

    /// Committed within the latency limit per second of the settled part; `None` without a limit.
    pub fn goodput_tps(&self) -> Option<f64> {
        let (books, measured_s) = self.counted();
        let has_limit = self.latency_limit.is_some() && measured_s > 0.0;
        // What ended in the measured time, as in the rate of all.
        let good = books.good().min(books.committed - books.after_end);
        #[expect(clippy::cast_precision_loss, reason = "a count of transactions")]
        has_limit.then(|| good as f64 / measured_s)
    }

    /// Why the load achieved nothing, with the first error of the server; `None` where transactions
    /// were committed, or where its result is a figure of its own (the time of a job).
    pub fn why_nothing(&self) -> Option<String> {
        if self.load.measured.committed > 0 || !self.figures.is_empty() {
            return None;
        }
        let why = self
            .load
            .why_nothing()
            .map_or_else(String::new, |why| format!(": {why}"));
        Some(format!("not one transaction was committed{why}"))
    }
}
