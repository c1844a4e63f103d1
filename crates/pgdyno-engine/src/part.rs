//! What one thread of a load hands over at its end.

use crate::books::{Books, FirstError, Times};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One thread's share of the result.
pub(crate) struct Part {
    pub(crate) measured: Books,
    /// Of those, the ones that are in no second's books.
    pub(crate) in_no_second: Books,
    pub(crate) whole: Counts,
    pub(crate) measured_s: f64,
    pub(crate) warmup_s: f64,
    pub(crate) in_flight_at_end: u64,
    /// So long after the instant at which the load was to begin.
    pub(crate) began_late: Duration,
    pub(crate) sessions: u32,
    pub(crate) cpu_us: f64,
    /// Time of all clients in the transactions of the measured time.
    pub(crate) busy_ns: u64,
    pub(crate) lost: Option<(String, u32)>,
    /// The first error of each SQLSTATE.
    pub(crate) first_errors: Vec<FirstError>,
    pub(crate) stopped_early: bool,
    pub(crate) engine: String,
    /// Books of each kind of transaction, where there are several.
    pub(crate) kinds: Vec<Books>,
    /// Times of each statement, where there are several.
    pub(crate) statements: Vec<Times>,
    /// Times to make the connections of transactions that have their own.
    pub(crate) connections: Option<Times>,
    /// Why the load could not go on.
    pub(crate) halted: Option<String>,
    /// Notes of `debug` in expressions, and of connections.
    pub(crate) notes: Vec<String>,
}

/// Counts of transactions by how they ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// All that were begun, or due.
    pub all: u64,
    /// Transactions that the server confirmed.
    pub committed: u64,
    /// Transactions that ended with an error.
    pub failed: u64,
    /// Due and not begun before the end, or not finished soon after it.
    pub skipped: u64,
    /// Tries after the first one.
    pub retries: u64,
    /// Transactions of the server that it confirmed to have committed: more than one for each of
    /// the load's, where statements commit by themselves; none, where it ends by a rollback.
    pub server_commits: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: Counts) {
        self.all += other.all;
        self.committed += other.committed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.retries += other.retries;
        self.server_commits += other.server_commits;
    }

    /// The identity that must hold at any time.
    pub fn add_up(&self) -> bool {
        self.all == self.committed + self.failed + self.skipped
    }
}
