//! The books of a load: what was committed, what failed and why, and how long it took.

use hdrhistogram::Histogram;
use pgdyno_stats::knows_percentile;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// The five letters of an error class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SqlState([u8; 5]);

impl SqlState {
    /// An error that carried none.
    pub const UNKNOWN: SqlState = SqlState(*b"?????");
    /// connection_failure: the server went away.
    pub const CONNECTION_FAILURE: SqlState = SqlState(*b"08006");
    /// serialization_failure: trying again may help.
    pub const SERIALIZATION_FAILURE: SqlState = SqlState(*b"40001");
    /// deadlock_detected: trying again may help.
    pub const DEADLOCK_DETECTED: SqlState = SqlState(*b"40P01");
    /// no_data_found: a function asks for a rollback with it.
    pub const NO_DATA_FOUND: SqlState = SqlState(*b"P0002");
    /// protocol_violation: the server sent what no server sends.
    pub const PROTOCOL_VIOLATION: SqlState = SqlState(*b"08P01");

    /// Takes five letters or digits, else it is unknown.
    pub fn from_bytes(bytes: &[u8]) -> SqlState {
        match <[u8; 5]>::try_from(bytes) {
            Ok(code) if code.iter().all(u8::is_ascii_alphanumeric) => SqlState(code),
            _ => SqlState::UNKNOWN,
        }
    }

    /// The code as five characters: "40001".
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("?????")
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error code with its number of transactions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorTally {
    /// Code of the error, five characters: "40001".
    pub sqlstate: String,
    /// Transactions that failed with it.
    pub count: u64,
}

/// The first error of a SQLSTATE in a load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstError {
    /// Code of the error, five characters: "40001".
    pub sqlstate: String,
    /// The server's message, with its detail and hint; no statement.
    pub message: String,
    /// Where the transaction was: the kind of transaction, and the line where a user wrote it.
    pub place: String,
}

impl fmt::Display for FirstError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (SQLSTATE {}, {})", self.message, self.sqlstate, self.place)
    }
}

/// Errors of more kinds than this are counted as unknown: a limit on everything.
/// Takes in the errors of SQLSTATEs that are not there yet.
pub(crate) fn take_first_errors(into: &mut Vec<FirstError>, errors: &[FirstError]) {
    for error in errors {
        let is_known = into.iter().any(|known| known.sqlstate == error.sqlstate);
        if !is_known && into.len() < ERROR_KINDS_MAX {
            into.push(error.clone());
        }
    }
}

pub(crate) const ERROR_KINDS_MAX: usize = 64;

/// Response times are kept from a microsecond to an hour, in nanoseconds.
const LOWEST_NS: u64 = 1_000;
const HIGHEST_NS: u64 = 3_600_000_000_000;
/// Three digits: a percentile is known to 0.1 %.
const DIGITS: u8 = 3;
/// A second's own histogram serves a curve on a screen: 1 %.
const DIGITS_PER_SECOND: u8 = 2;

/// Counts and times of a stretch of time. all = committed + failed + skipped, always.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Books {
    /// Transactions of that stretch: committed, failed and skipped together.
    pub all: u64,
    /// Transactions that ended as they were meant to: the server confirmed them as committed, or
    /// rolled back.
    pub committed: u64,
    /// Those of them that were meant to end by a rollback.
    pub rolled_back: u64,
    /// Those of them that were committed on the server before the end of the measured time.
    pub kept: u64,
    /// Transactions that ended with an error.
    pub failed: u64,
    /// Transactions that were due and not begun before the end, which a closed loop has none of, or
    /// not ended soon after it.
    pub skipped: u64,
    /// Tries after the first one, of transactions that ended in whatever way.
    pub retries: u64,
    /// Committed ones whose response took longer than the latency limit.
    pub late: u64,
    /// Response times (done - due) of the committed ones, in nanoseconds.
    #[serde(with = "crate::received::text")]
    pub response_ns: Histogram<u64>,
    /// Of the committed ones, those that were done after the end of the measured time.
    pub after_end: u64,
    /// How long each skipped one had waited: its response would have taken longer. `None` without
    /// one.
    #[serde(with = "crate::received::text")]
    pub skipped_wait_ns: Option<Box<Histogram<u64>>>,
    /// What the response time of an open loop is made of; in a closed loop a transaction is due
    /// when it is begun.
    pub parts: Option<Box<Parts>>,
    errors: Vec<(SqlState, u64)>,
}

/// What the response times of an open loop are made of, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parts {
    /// How late it was begun: begun - due.
    #[serde(with = "crate::received::text")]
    pub lag_ns: Histogram<u64>,
    /// How long it took: done - begun.
    #[serde(with = "crate::received::text")]
    pub service_ns: Histogram<u64>,
}

/// The three instants of a transaction, on the load's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instants {
    /// Instant at which it was to begin; in a closed loop the same as `begun_ns`.
    pub due_ns: u64,
    /// Instant at which it began.
    pub begun_ns: u64,
    /// Instant at which its end was seen.
    pub done_ns: u64,
}

fn histogram(digits: u8) -> Histogram<u64> {
    Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, digits).expect("constant bounds are legal")
}

impl Books {
    /// Empty books for a whole run; `open`: of an open loop.
    pub fn new(open: bool) -> Books {
        Books {
            parts: open.then(|| {
                Box::new(Parts {
                    lag_ns: histogram(DIGITS),
                    service_ns: histogram(DIGITS),
                })
            }),
            ..Books::with_digits(DIGITS)
        }
    }

    /// Empty books for a second: smaller, with response times to 1 %.
    pub fn for_a_second() -> Books {
        Books::with_digits(DIGITS_PER_SECOND)
    }

    fn with_digits(digits: u8) -> Books {
        Books {
            all: 0,
            committed: 0,
            rolled_back: 0,
            kept: 0,
            failed: 0,
            skipped: 0,
            retries: 0,
            late: 0,
            response_ns: histogram(digits),
            after_end: 0,
            skipped_wait_ns: None,
            parts: None,
            errors: Vec::with_capacity(ERROR_KINDS_MAX),
        }
    }

    /// Enters one that ended as it was meant to: by a rollback, and after the end of the measured
    /// time, or not.
    pub(crate) fn commit(&mut self, at: Instants, latency_limit_ns: u64, rolled_back: bool, after_end: bool) {
        self.all += 1;
        self.committed += 1;
        self.rolled_back += u64::from(rolled_back);
        self.after_end += u64::from(after_end);
        self.kept += u64::from(!rolled_back && !after_end);
        let response_ns = at.done_ns - at.due_ns;
        self.late += u64::from(response_ns > latency_limit_ns);
        self.response_ns.saturating_record(response_ns);
        if let Some(parts) = &mut self.parts {
            parts.lag_ns.saturating_record(at.begun_ns - at.due_ns);
            parts.service_ns.saturating_record(at.done_ns - at.begun_ns);
        }
    }

    pub(crate) fn skip(&mut self, waited_ns: u64) {
        self.all += 1;
        self.skipped += 1;
        self.skipped_wait_ns
            .get_or_insert_with(|| Box::new(histogram(DIGITS)))
            .saturating_record(waited_ns);
    }

    /// Takes over what was skipped according to other books.
    pub(crate) fn take_skipped(&mut self, other: &Books) {
        self.all += other.skipped;
        self.skipped += other.skipped;
        self.add_waits(other);
    }

    fn add_waits(&mut self, other: &Books) {
        if let Some(waits) = &other.skipped_wait_ns {
            let own = self
                .skipped_wait_ns
                .get_or_insert_with(|| Box::new(histogram(DIGITS)));
            own.add(&**waits).expect("same bounds");
        }
    }

    pub(crate) fn fail(&mut self, code: SqlState) {
        self.all += 1;
        self.failed += 1;
        self.tally(code, 1);
    }

    fn tally(&mut self, code: SqlState, count: u64) {
        if let Some(entry) = self.errors.iter_mut().find(|(known, _)| *known == code) {
            entry.1 += count;
        } else if self.errors.len() < ERROR_KINDS_MAX - 1 || code == SqlState::UNKNOWN {
            self.errors.push((code, count));
        } else {
            self.tally(SqlState::UNKNOWN, count);
        }
    }

    /// Adds other books of the same kind.
    pub fn add(&mut self, other: &Books) {
        self.all += other.all;
        self.committed += other.committed;
        self.rolled_back += other.rolled_back;
        self.kept += other.kept;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.retries += other.retries;
        self.late += other.late;
        self.after_end += other.after_end;
        self.response_ns.add(&other.response_ns).expect("same bounds");
        if let (Some(parts), Some(others)) = (&mut self.parts, &other.parts) {
            parts.lag_ns.add(&others.lag_ns).expect("same bounds");
            parts.service_ns.add(&others.service_ns).expect("same bounds");
        }
        self.add_waits(other);
        for &(code, count) in &other.errors {
            self.tally(code, count);
        }
    }

    pub(crate) fn clear(&mut self) {
        (self.all, self.committed, self.failed) = (0, 0, 0);
        (self.rolled_back, self.kept) = (0, 0);
        (self.skipped, self.retries, self.late, self.after_end) = (0, 0, 0, 0);
        self.response_ns.reset();
        self.skipped_wait_ns = None;
        self.errors.clear();
    }

    /// The identity that must hold at any time.
    pub fn add_up(&self) -> bool {
        self.all == self.committed + self.failed + self.skipped
            && self.response_ns.len() == self.committed
            && self.errors.iter().map(|(_, count)| count).sum::<u64>() == self.failed
    }

    /// Errors, the most frequent first.
    pub fn errors(&self) -> Vec<ErrorTally> {
        let mut errors = self.errors.clone();
        errors.sort_by_key(|&(code, count)| (std::cmp::Reverse(count), code));
        errors
            .into_iter()
            .map(|(code, count)| ErrorTally {
                sqlstate: code.as_str().to_owned(),
                count,
            })
            .collect()
    }

    /// Response times of all but the failed ones. A skipped one counts with the time that it had
    /// waited.
    pub fn response_or_wait_ns(&self) -> Cow<'_, Histogram<u64>> {
        match &self.skipped_wait_ns {
            Some(waits) => {
                let mut all = self.response_ns.clone();
                all.add(&**waits).expect("same bounds");
                Cow::Owned(all)
            }
            None => Cow::Borrowed(&self.response_ns),
        }
    }

    /// A percentile (0 to 100) of the response time of all transactions but the failed ones, in
    /// milliseconds; `None` where fewer than ten are beyond it. A skipped one counts with the time
    /// it had waited, which is a lower bound of what it would have taken: see
    /// [`Books::is_lower_bound`].
    pub fn percentile_ms(&self, percentile: f64) -> Option<f64> {
        percentile_ms(&self.response_or_wait_ns(), percentile)
    }

    /// Mean response time, of those that were skipped the time that they had waited.
    #[expect(clippy::cast_precision_loss, reason = "counts of transactions")]
    pub fn mean_ms(&self) -> Option<f64> {
        let all = [Some(&self.response_ns), self.skipped_wait_ns.as_deref()]
            .into_iter()
            .flatten();
        let (count, sum) =
            all.filter(|histogram| !histogram.is_empty())
                .fold((0, 0.0), |(count, sum), histogram| {
                    (
                        count + histogram.len(),
                        sum + histogram.mean() * histogram.len() as f64,
                    )
                });
        (count > 0).then(|| sum / count as f64 / 1e6)
    }

    /// Whether a percentile is only known to be at least what is reported: it would be larger if
    /// the skipped ones had taken longer than all others.
    #[expect(clippy::cast_precision_loss, reason = "counts of transactions")]
    pub fn is_lower_bound(&self, percentile: f64) -> bool {
        if self.skipped == 0 {
            return false;
        }
        let among_committed = percentile * (self.committed + self.skipped) as f64 / self.committed as f64;
        among_committed > 100.0
            || self.response_or_wait_ns().value_at_percentile(percentile)
                < self.response_ns.value_at_percentile(among_committed)
    }

    /// Committed within the latency limit.
    pub fn good(&self) -> u64 {
        self.committed - self.late
    }
}

/// How long round trips of one statement took, in nanoseconds, from its request to its reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// One per round trip that ended well in the measured time.
    #[serde(with = "crate::received::text")]
    pub service_ns: Histogram<u64>,
}

impl Times {
    pub(crate) fn new() -> Times {
        Times {
            service_ns: histogram(DIGITS_PER_SECOND),
        }
    }

    pub(crate) fn record(&mut self, ns: u64) {
        self.service_ns.saturating_record(ns);
    }

    pub(crate) fn add(&mut self, other: &Times) {
        self.service_ns.add(&other.service_ns).expect("same bounds");
    }
}

/// A percentile (0 to 100) of a histogram of nanoseconds, in milliseconds; `None` where fewer than
/// ten values are beyond it.
pub fn percentile_ms(histogram: &Histogram<u64>, percentile: f64) -> Option<f64> {
    knows_percentile(histogram.len(), percentile).then(|| ms_at(histogram, percentile))
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds within an hour")]
fn ms_at(histogram: &Histogram<u64>, percentile: f64) -> f64 {
    histogram.value_at_percentile(percentile) as f64 / 1e6
}

/// What happened in one second of a load, all threads together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Second {
    /// 1 for the first second after the start, warm-up included.
    pub number: u32,
    /// Length in seconds: shorter than one at the end. The first has what a warm-up has beyond
    /// whole seconds, so that the measured time begins with one: it is shorter too, or up to a
    /// tenth longer.
    pub length_s: f64,
    /// Whether it is after the warm-up.
    pub measured: bool,
    /// Counts and response times of this second.
    pub books: Books,
    /// Clients that are connected.
    pub clients: u32,
}

impl Second {
    /// Its figures, without the histogram that they were read from.
    pub fn figures(&self) -> SecondFigures {
        let books = &self.books;
        // A point of a curve over time, not a figure: the seconds around it show how reliable it
        // is.
        let percentile_ms = |percentile| (books.committed > 0).then(|| ms_at(&books.response_ns, percentile));
        SecondFigures {
            number: self.number,
            length_s: self.length_s,
            measured: self.measured,
            committed: books.committed,
            failed: books.failed,
            clients: self.clients,
            p50_ms: percentile_ms(50.0),
            p95_ms: percentile_ms(95.0),
            p99_ms: percentile_ms(99.0),
        }
    }
}

/// The figures of a second: small enough to be kept for all seconds of a long load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SecondFigures {
    /// 1 for the first second after the start, warm-up included.
    pub number: u32,
    /// Length in seconds: shorter than one at the end. The first has what a warm-up has beyond
    /// whole seconds, so that the measured time begins with one: it is shorter too, or up to a
    /// tenth longer.
    pub length_s: f64,
    /// Whether it is after the warm-up.
    pub measured: bool,
    /// Transactions committed in it.
    pub committed: u64,
    /// Transactions that failed in it.
    pub failed: u64,
    /// Clients that are connected.
    pub clients: u32,
    /// Median of the response time; `None` without a committed transaction.
    pub p50_ms: Option<f64>,
    /// 95th percentile of the response time; `None` as for the median.
    pub p95_ms: Option<f64>,
    /// 99th percentile of the response time; `None` as for the median.
    pub p99_ms: Option<f64>,
}

impl SecondFigures {
    /// Committed transactions per second.
    #[expect(clippy::cast_precision_loss, reason = "a count of transactions")]
    pub fn tps(&self) -> f64 {
        self.committed as f64 / self.length_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_books_add_up_through_everything() {
        let took = |ns| Instants {
            due_ns: 5,
            begun_ns: 7,
            done_ns: 5 + ns,
        };
        let mut a = Books::new(true);
        a.commit(took(1_500_000), 1_000_000, false, true);
        a.skip(700);
        a.fail(SqlState::from_bytes(b"40001"));
        a.fail(SqlState::from_bytes(b"bad"));
        let mut b = Books::new(true);
        b.commit(took(u64::MAX - 5), u64::MAX, true, false);
        assert_eq!((a.after_end, a.kept, b.rolled_back, b.kept), (1, 0, 1, 0));
        b.fail(SqlState::from_bytes(b"40001"));
        a.add(&b);
        assert!(a.add_up());
        assert_eq!((a.all, a.committed, a.failed, a.skipped), (6, 2, 3, 1));
        assert_eq!((a.late, a.good()), (1, 1));
        assert_eq!(a.parts.as_ref().map(|parts| parts.lag_ns.len()), Some(2));
        assert!(a.is_lower_bound(99.0));
        // Of three, one was never begun, and had waited for less than the shortest of the others
        // took.
        assert!(a.is_lower_bound(60.0) && ms_at(&a.response_or_wait_ns(), 60.0) < 2.0);
        assert_eq!(a.percentile_ms(60.0), None, "too few are beyond it");
        assert_eq!(
            a.errors()[0],
            ErrorTally {
                sqlstate: "40001".into(),
                count: 2
            }
        );
        let mut second = Books::for_a_second();
        second.commit(took(1_500_000), 1_000_000, true, true);
        second.skip(700);
        second.fail(SqlState::from_bytes(b"40001"));
        second.retries = 3;
        second.clear();
        // As others read them: a histogram that was reset remembers its largest value.
        let text = |books: &Books| serde_json::to_string(books).unwrap();
        assert_eq!(text(&second), text(&Books::for_a_second()));
    }

    #[test]
    fn too_many_kinds_of_errors_are_counted_as_unknown() {
        let mut books = Books::new(false);
        for i in 0..1000_u32 {
            books.fail(SqlState::from_bytes(format!("{i:05}").as_bytes()));
        }
        assert!(books.add_up());
        assert_eq!(books.errors().len(), ERROR_KINDS_MAX);
        assert_eq!(books.errors()[0].sqlstate, "?????");
    }
}
