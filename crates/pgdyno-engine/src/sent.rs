//! Seconds and results of a segment as they travel between hosts. What arrives is checked: it comes from a host that may send anything.

use crate::actor::{StatementName, commits_within};
use crate::books::{
    Books, ErrorTally, FirstError, Parts, Second, SqlState, Times, empty_books, empty_histogram,
};
use crate::engine::{LoadResult, ServerShare};
use crate::part::Counts;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde::{Deserialize, Serialize};

/// Most errors, kinds, statements and notes that a segment may report.
const LISTED_MAX: usize = 10_000;

/// No load is longer than a few weeks.
const LONGEST_LOAD_S: f64 = 1e7;
/// No load has more transactions.
const COUNT_MAX: u64 = 1 << 53;

/// [`Books`] as they are sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SentBooks {
    committed: u64,
    rolled_back: u64,
    kept: u64,
    skipped: u64,
    retries: u64,
    late: u64,
    after_end: u64,
    response: String,
    skipped_wait: Option<String>,
    lag_and_service: Option<(String, String)>,
    errors: Vec<ErrorTally>,
    /// Significant digits of the response times.
    digits: u8,
}

/// A histogram in HdrHistogram's V2, base64.
fn sent(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    // Into memory, and of bounds that the format has.
    let _ = V2Serializer::new().serialize(histogram, &mut bytes);
    STANDARD.encode(bytes)
}

/// The histogram again, in one of this program's own bounds. They are checked before memory is taken for what its head announces.
fn received(text: &str, digits: u8) -> Result<Histogram<u64>, String> {
    /// Format, length of the payload, offset and digits of four bytes each, least and largest value and ratio of eight.
    const HEAD: usize = 40;
    let bytes = STANDARD.decode(text).map_err(|error| error.to_string())?;
    let mut own = empty_histogram(digits);
    let number = |at: usize, length: usize| -> Option<u64> {
        let part = bytes.get(at..at + length)?.iter();
        Some(part.fold(0, |number, byte| number << 8 | u64::from(*byte)))
    };
    let payload = bytes.len().saturating_sub(HEAD) as u64;
    let head = [number(4, 4), number(12, 4), number(16, 8), number(24, 8)];
    if head != [payload, u64::from(own.sigfig()), own.low(), own.high()].map(Some) {
        return Err("a histogram of other bounds".to_owned());
    }
    let read: Histogram<u64> = Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| format!("a histogram: {error}"))?;
    own.add(&read).map_err(|error| error.to_string())?;
    Ok(own)
}

impl SentBooks {
    fn of(books: &Books) -> SentBooks {
        SentBooks {
            committed: books.committed,
            rolled_back: books.rolled_back,
            kept: books.kept,
            skipped: books.skipped,
            retries: books.retries,
            late: books.late,
            after_end: books.after_end,
            response: sent(&books.response_ns),
            skipped_wait: books.skipped_wait_ns.as_deref().map(sent),
            lag_and_service: books
                .parts
                .as_deref()
                .map(|parts| (sent(&parts.lag_ns), sent(&parts.service_ns))),
            errors: books.errors(),
            digits: books.response_ns.sigfig(),
        }
    }

    fn received(self, digits: u8) -> Result<Books, String> {
        if self.digits != digits || self.errors.len() > LISTED_MAX {
            return Err("books of another kind".to_owned());
        }
        let mut books = empty_books(digits);
        let mut counts = self.errors.iter().map(|error| error.count);
        // Sums of that many of them are within a u64.
        let is_one = |count: u64| count <= COUNT_MAX;
        if !(counts.all(is_one) && is_one(self.committed) && is_one(self.skipped)) {
            return Err("more transactions than a load has".to_owned());
        }
        let failed: u64 = self.errors.iter().map(|error| error.count).sum();
        books.committed = self.committed;
        books.rolled_back = self.rolled_back;
        books.kept = self.kept;
        books.failed = failed;
        books.skipped = self.skipped;
        books.all = failed + self.committed + self.skipped;
        books.retries = self.retries;
        books.late = self.late;
        books.after_end = self.after_end;
        books.response_ns = received(&self.response, digits)?;
        let usual = |text: &String| received(text, Books::new(false).response_ns.sigfig());
        books.skipped_wait_ns = self.skipped_wait.as_ref().map(usual).transpose()?.map(Box::new);
        books.parts = match &self.lag_and_service {
            Some((lag, service)) => Some(Box::new(Parts {
                lag_ns: usual(lag)?,
                service_ns: usual(service)?,
            })),
            None => None,
        };
        for error in &self.errors {
            books.add_errors(SqlState::from_bytes(error.sqlstate.as_bytes()), error.count);
        }
        let within = [books.rolled_back, books.kept, books.late, books.after_end];
        match books.add_up() && within.iter().all(|count| *count <= books.committed) {
            true => Ok(books),
            false => Err("books that do not add up".to_owned()),
        }
    }
}

/// [`Second`] as it is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentSecond {
    number: u32,
    length_s: f64,
    measured: bool,
    clients: u32,
    books: SentBooks,
}

impl SentSecond {
    /// The second to send.
    pub fn of(second: &Second) -> SentSecond {
        SentSecond {
            number: second.number,
            length_s: second.length_s,
            measured: second.measured,
            clients: second.clients,
            books: SentBooks::of(&second.books),
        }
    }

    /// The second again.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn received(self) -> Result<Second, String> {
        const LONGEST_S: f64 = 2.0;
        if !(0.0..=LONGEST_S).contains(&self.length_s) {
            return Err(format!("a second of {} s", self.length_s));
        }
        Ok(Second {
            number: self.number,
            length_s: self.length_s,
            measured: self.measured,
            clients: self.clients,
            books: self.books.received(Books::for_a_second().response_ns.sigfig())?,
        })
    }
}

/// [`LoadResult`] of a segment as it is sent; its seconds have been sent before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentResult {
    measured: SentBooks,
    in_no_second: SentBooks,
    whole: Counts,
    kinds: Vec<(String, SentBooks)>,
    /// Transaction, statement, times.
    statements: Vec<(String, String, String)>,
    connections: Option<String>,
    notes: Vec<String>,
    notes_skipped: u64,
    commits_per_session: u64,
    commits_per_transaction_max: u64,
    commits_within: Option<String>,
    measured_s: f64,
    warmup_s: f64,
    in_flight_at_end: u64,
    sessions: u32,
    servers: Vec<ServerShare>,
    client_cpu_us: f64,
    lost: Option<(String, u32)>,
    first_errors: Vec<FirstError>,
    stopped_early: bool,
    engine: String,
}

impl SentResult {
    /// The result to send.
    pub fn of(result: &LoadResult) -> SentResult {
        let books = |(name, books): &(String, Books)| (name.clone(), SentBooks::of(books));
        let times = |(name, times): &(StatementName, Times)| {
            (
                name.transaction.clone(),
                name.sql.clone(),
                sent(&times.service_ns),
            )
        };
        SentResult {
            measured: SentBooks::of(&result.measured),
            in_no_second: SentBooks::of(&result.in_no_second),
            whole: result.whole,
            kinds: result.kinds.iter().map(books).collect(),
            statements: result.statements.iter().map(times).collect(),
            connections: result.connections.as_ref().map(|times| sent(&times.service_ns)),
            notes: result.notes.clone(),
            notes_skipped: result.notes_skipped,
            commits_per_session: result.commits_per_session,
            commits_per_transaction_max: result.commits_per_transaction_max,
            commits_within: result.commits_within.map(str::to_owned),
            measured_s: result.measured_s,
            warmup_s: result.warmup_s,
            in_flight_at_end: result.in_flight_at_end,
            sessions: result.sessions,
            servers: result.servers.clone(),
            client_cpu_us: result.client_cpu_us,
            lost: result.lost.clone(),
            first_errors: result.first_errors.clone(),
            stopped_early: result.stopped_early,
            engine: result.engine.clone(),
        }
    }

    /// The result again, of a load on so many servers.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn received(self, servers: usize) -> Result<LoadResult, String> {
        if self.servers.len() != servers {
            return Err(format!(
                "a result of {} servers, not {servers}",
                self.servers.len()
            ));
        }
        let (whole, second) = (
            Books::new(false).response_ns.sigfig(),
            Books::for_a_second().response_ns.sigfig(),
        );
        let lists = [
            self.kinds.len(),
            self.statements.len(),
            self.notes.len(),
            self.first_errors.len(),
            self.servers.len(),
        ];
        if lists.iter().any(|length| *length > LISTED_MAX) {
            return Err("longer lists than a load has".to_owned());
        }
        let counts = [
            self.whole.all,
            self.whole.committed,
            self.whole.failed,
            self.whole.skipped,
        ];
        let is_one = counts.iter().all(|count| *count <= COUNT_MAX) && self.whole.add_up();
        let lengths = [self.measured_s, self.warmup_s];
        if !is_one
            || !lengths
                .iter()
                .all(|length| (0.0..=LONGEST_LOAD_S).contains(length))
        {
            return Err("counts that do not add up".to_owned());
        }
        let times = |text: &str| received(text, second).map(|service_ns| Times { service_ns });
        let mut result = LoadResult::empty();
        result.measured = self.measured.received(whole)?;
        result.in_no_second = self.in_no_second.received(second)?;
        result.whole = self.whole;
        for (name, books) in self.kinds {
            result.kinds.push((name, books.received(whole)?));
        }
        for (transaction, sql, text) in self.statements {
            result
                .statements
                .push((StatementName { transaction, sql }, times(&text)?));
        }
        result.connections = self.connections.as_deref().map(times).transpose()?;
        result.notes = self.notes;
        result.notes_skipped = self.notes_skipped;
        result.commits_per_session = self.commits_per_session;
        result.commits_per_transaction_max = self.commits_per_transaction_max;
        result.commits_within = self.commits_within.as_deref().and_then(commits_within);
        result.measured_s = self.measured_s;
        result.warmup_s = self.warmup_s;
        result.in_flight_at_end = self.in_flight_at_end;
        result.sessions = self.sessions;
        result.servers = self.servers;
        result.client_cpu_us = self.client_cpu_us;
        result.lost = self.lost;
        result.first_errors = self.first_errors;
        result.stopped_early = self.stopped_early;
        result.engine = self.engine;
        Ok(result)
    }
}
