//! Seconds and results as they travel between hosts: histograms are texts, and what arrives is
//! checked, for a host may send anything.

use crate::actor::commits_within;
use crate::books::{Books, SqlState};
use crate::part::Counts;
use crate::result::LoadResult;
use crate::{Second, Times};
use hdrhistogram::Histogram;
use pgdyno_record::{decoded_histogram, encoded_histogram};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Most errors, kinds, statements and notes that a segment may report.
const LISTED_MAX: usize = 10_000;
/// Bytes of the texts of errors, kinds and notes together.
const TEXTS_BYTES_MAX: usize = 1 << 20;
/// No load is longer than a few weeks.
const LONGEST_LOAD_S: f64 = 1e7;
/// A second of a load is up to a tenth longer than one.
const LONGEST_SECOND_S: f64 = 2.0;
/// No host has more connections at once.
const CONNECTIONS_MAX: u32 = 1 << 20;
/// No load has more transactions.
const COUNT_MAX: u64 = 1 << 53;

/// A histogram as a text; `None` and boxes as well.
pub(crate) mod text {
    use super::*;

    pub(crate) trait Text: Sized {
        fn histogram(&self) -> Option<&Histogram<u64>>;
        fn of(histogram: Option<Histogram<u64>>) -> Option<Self>;
    }

    impl Text for Histogram<u64> {
        fn histogram(&self) -> Option<&Histogram<u64>> {
            Some(self)
        }

        fn of(histogram: Option<Histogram<u64>>) -> Option<Self> {
            histogram
        }
    }

    impl Text for Option<Box<Histogram<u64>>> {
        fn histogram(&self) -> Option<&Histogram<u64>> {
            self.as_deref()
        }

        fn of(histogram: Option<Histogram<u64>>) -> Option<Self> {
            Some(histogram.map(Box::new))
        }
    }

    pub(crate) fn serialize<S: Serializer>(it: &impl Text, serializer: S) -> Result<S::Ok, S::Error> {
        it.histogram().map(encoded_histogram).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: Text>(deserializer: D) -> Result<T, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        let histogram = text.as_deref().map(decoded_histogram).transpose();
        let found = T::of(histogram.map_err(D::Error::custom)?);
        found.ok_or_else(|| D::Error::custom("a histogram is missing"))
    }
}

impl Serialize for SqlState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_str().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SqlState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SqlState, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(SqlState::from_bytes(text.as_bytes()))
    }
}

/// Whether two histograms can be added.
fn is_alike(one: &Histogram<u64>, other: &Histogram<u64>) -> bool {
    let bounds = |it: &Histogram<u64>| (it.low(), it.high(), it.sigfig());
    bounds(one) == bounds(other)
}

fn may_be(counts: &[u64]) -> Result<(), String> {
    match counts.iter().all(|count| *count <= COUNT_MAX) {
        true => Ok(()),
        false => Err("more transactions than a load has".to_owned()),
    }
}

impl Books {
    /// Whether these can be added to empty ones of the same kind.
    fn check(&self, empty: &Books) -> Result<(), String> {
        let counts = [self.all, self.committed, self.failed, self.skipped, self.retries];
        may_be(&counts)?;
        if self.errors().len() > LISTED_MAX {
            return Err("more kinds of errors than a load has".to_owned());
        }
        self.errors()
            .iter()
            .try_for_each(|error| may_be(&[error.count]))?;
        let usual = Books::new(false);
        let parts = self
            .parts
            .iter()
            .flat_map(|parts| [&parts.lag_ns, &parts.service_ns]);
        let mut whole = parts.chain(self.skipped_wait_ns.as_deref());
        if !is_alike(&self.response_ns, &empty.response_ns)
            || !whole.all(|histogram| is_alike(histogram, &usual.response_ns))
        {
            return Err("a histogram of other bounds".to_owned());
        }
        let within = [self.rolled_back, self.kept, self.late, self.after_end];
        let waits = self.skipped_wait_ns.as_deref().map_or(0, Histogram::len);
        let within = within.iter().all(|count| *count <= self.committed) && waits <= self.skipped;
        match self.add_up() && within {
            true => Ok(()),
            false => Err("books that do not add up".to_owned()),
        }
    }
}

impl Times {
    fn check(&self) -> Result<(), String> {
        match is_alike(&self.service_ns, &Times::new().service_ns) {
            true => Ok(()),
            false => Err("times of other bounds".to_owned()),
        }
    }
}

impl Counts {
    fn check(&self) -> Result<(), String> {
        may_be(&[self.all, self.committed, self.failed, self.skipped])?;
        may_be(&[self.retries, self.server_commits])?;
        match self.add_up() {
            true => Ok(()),
            false => Err("counts that do not add up".to_owned()),
        }
    }
}

impl Second {
    /// Whether a second that was received is one.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        if !(0.0..=LONGEST_SECOND_S).contains(&self.length_s) {
            return Err(format!("a second of {} s", self.length_s));
        }
        if self.clients > CONNECTIONS_MAX {
            return Err(format!("a second of {} clients", self.clients));
        }
        self.books.check(&Books::for_a_second())
    }
}

impl LoadResult {
    /// Whether a result that was received is one of a load on so many servers, none of which took
    /// turns. Its seconds have been received before.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn check(&self, servers: usize) -> Result<(), String> {
        if self.servers.len() != servers || !self.turns.is_empty() {
            return Err(format!(
                "a result of {} servers, not {servers}",
                self.servers.len()
            ));
        }
        let lists = [
            self.kinds.len(),
            self.statements.len(),
            self.notes.len(),
            self.first_errors.len(),
        ];
        if lists.iter().any(|length| *length > LISTED_MAX) {
            return Err("longer lists than a load has".to_owned());
        }
        let texts = self
            .notes
            .iter()
            .chain([&self.engine])
            .chain(self.kinds.iter().map(|(name, _)| name));
        let errors = self.first_errors.iter();
        let texts = texts.chain(errors.flat_map(|error| [&error.sqlstate, &error.message, &error.place]));
        let texts = texts.chain(self.lost.iter().map(|(why, _)| why));
        if texts.map(String::len).sum::<usize>() > TEXTS_BYTES_MAX {
            return Err("longer texts than a load has".to_owned());
        }
        let lengths = [self.measured_s, self.warmup_s];
        if self.client_cpu_us < 0.0 {
            return Err("a CPU time below zero".to_owned());
        }
        if !lengths
            .iter()
            .all(|length| (0.0..=LONGEST_LOAD_S).contains(length))
        {
            return Err("a load longer than any".to_owned());
        }
        may_be(&[self.in_flight_at_end, self.notes_skipped])?;
        may_be(&[self.commits_per_session, self.commits_per_transaction_max])?;
        for share in &self.servers {
            may_be(&[share.committed, share.server_commits, share.in_flight_at_end])?;
        }
        let word = self.commits_within.as_deref();
        if word.is_some_and(|word| commits_within(word) != Some(word)) {
            return Err("a word that no statement begins with".to_owned());
        }
        self.whole.check()?;
        self.measured.check(&Books::new(false))?;
        self.in_no_second.check(&Books::for_a_second())?;
        let kinds = self.kinds.iter();
        kinds
            .map(|(_, books)| books)
            .try_for_each(|books| books.check(&Books::new(false)))?;
        let statements = self.statements.iter().map(|(_, times)| times);
        statements.chain(&self.connections).try_for_each(Times::check)
    }
}
