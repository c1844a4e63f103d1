//! What a load has done: put together from the parts of its threads, and from the segments of
//! several hosts.

use crate::actor::StatementName;
use crate::books::{Books, FirstError, SecondFigures, Times, take_first_errors};
use crate::part::{Counts, Part};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// More notes are counted and not kept.
const NOTES_MAX: usize = 100;

/// Counts and times of a load that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadResult {
    /// Counts and times of the measured time.
    pub measured: Books,
    /// Of those, the ones that are in no second: in an open loop what was done after the end, and
    /// what was done in less than a tenth of a second at the end.
    pub in_no_second: Books,
    /// From the first transaction to the last, warm-up and end included.
    pub whole: Counts,
    /// The kinds of transactions, where there are several: name and books of the measured time.
    pub kinds: Vec<(String, Books)>,
    /// The statements, where there are several: round trips of each one alone, in the measured
    /// time.
    pub statements: Vec<(StatementName, Times)>,
    /// Times to make a connection, where each transaction has its own.
    pub connections: Option<Times>,
    /// What the transactions noted, and the first reason why a transaction's own connection could
    /// not be made.
    pub notes: Vec<String>,
    /// Number of notes that are not kept.
    pub notes_skipped: u64,
    /// Transactions of the server in the making of each session: its start, and preparing.
    pub commits_per_session: u64,
    /// The most transactions of the server in one of the load, where statements commit by
    /// themselves.
    pub commits_per_transaction_max: u64,
    /// The word of a statement that may commit more often than its client sees: VACUUM, CALL and
    /// their like.
    pub commits_within: Option<String>,
    /// Length of the measured time.
    pub measured_s: f64,
    /// Length of the time before it.
    pub warmup_s: f64,
    /// Transactions whose end was not seen: the server may or may not have committed them.
    pub in_flight_at_end: u64,
    /// So long after the instant at which it was to begin the last of its threads did, in
    /// nanoseconds.
    pub began_late_ns: u64,
    /// Sessions that were opened on the servers.
    pub sessions: u32,
    /// The part that each server had in it, in the order of their endpoints.
    pub servers: Vec<ServerShare>,
    /// The same of servers that took turns; none of others.
    pub turns: Vec<TurnShare>,
    /// CPU time of the load's threads in the measured time.
    pub client_cpu_us: f64,
    /// Second by second, warm-up included.
    #[serde(skip)]
    pub seconds: Vec<SecondFigures>,
    /// The first reason why a connection was lost, and how many were.
    pub lost: Option<(String, u32)>,
    /// The first error of each SQLSTATE, warm-up included.
    pub first_errors: Vec<FirstError>,
    /// Whether it was stopped before its time.
    pub stopped_early: bool,
    /// How bytes were moved, and why not otherwise.
    pub engine: String,
}

/// What a server has done in its turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnShare {
    /// Counts and times of the measured time.
    pub measured: Books,
    /// Time of its clients in these transactions, of all together.
    pub busy_s: f64,
    /// The first error of each SQLSTATE, warm-up included.
    pub first_errors: Vec<FirstError>,
    /// The first reason why a connection was lost, and how many were.
    pub lost: Option<(String, u32)>,
}

/// The part that one server had in a load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerShare {
    /// Transactions that it committed in the measured time.
    pub committed: u64,
    /// Transactions of the server that it confirmed to have committed, from the first to the last
    /// ([`Counts::server_commits`]).
    pub server_commits: u64,
    /// Transactions whose end was not seen.
    pub in_flight_at_end: u64,
    /// Sessions that were opened on it.
    pub sessions: u32,
}

impl ServerShare {
    fn add(&mut self, part: &Part) {
        self.committed += part.measured.committed - part.measured.after_end;
        self.server_commits += part.whole.server_commits;
        self.in_flight_at_end += part.in_flight_at_end;
        self.sessions += part.sessions;
    }
}

impl LoadResult {
    /// Of a load that has done nothing.
    pub fn empty() -> LoadResult {
        LoadResult {
            measured: Books::new(false),
            in_no_second: Books::new(false),
            whole: Counts::default(),
            kinds: Vec::new(),
            statements: Vec::new(),
            connections: None,
            notes: Vec::new(),
            notes_skipped: 0,
            commits_per_session: 0,
            commits_per_transaction_max: 1,
            commits_within: None,
            measured_s: 0.0,
            warmup_s: 0.0,
            in_flight_at_end: 0,
            began_late_ns: 0,
            sessions: 0,
            servers: Vec::new(),
            turns: Vec::new(),
            client_cpu_us: 0.0,
            seconds: Vec::new(),
            lost: None,
            first_errors: Vec::new(),
            stopped_early: false,
            engine: String::new(),
        }
    }

    /// Takes in what another segment of the same load has done.
    pub(crate) fn join(&mut self, other: LoadResult) {
        self.measured.add(&other.measured);
        self.in_no_second.add(&other.in_no_second);
        self.whole.add(other.whole);
        self.measured_s = self.measured_s.max(other.measured_s);
        self.warmup_s = self.warmup_s.max(other.warmup_s);
        self.in_flight_at_end += other.in_flight_at_end;
        self.began_late_ns = self.began_late_ns.max(other.began_late_ns);
        self.sessions = self.sessions.saturating_add(other.sessions);
        self.client_cpu_us += other.client_cpu_us;
        self.stopped_early |= other.stopped_early;
        for ((_, books), (_, others)) in self.kinds.iter_mut().zip(&other.kinds) {
            books.add(others);
        }
        for ((_, times), (_, others)) in self.statements.iter_mut().zip(&other.statements) {
            times.add(others);
        }
        if let (Some(times), Some(others)) = (&mut self.connections, &other.connections) {
            times.add(others);
        }
        for (share, others) in self.servers.iter_mut().zip(&other.servers) {
            share.committed += others.committed;
            share.server_commits += others.server_commits;
            share.in_flight_at_end += others.in_flight_at_end;
            share.sessions = share.sessions.saturating_add(others.sessions);
        }
        let room = NOTES_MAX.saturating_sub(self.notes.len());
        self.notes_skipped += other.notes_skipped + other.notes.len().saturating_sub(room) as u64;
        self.notes.extend(other.notes.into_iter().take(room));
        take_first_errors(&mut self.first_errors, &other.first_errors);
        if let Some((reason, count)) = other.lost {
            let lost = self.lost.get_or_insert((reason, 0));
            lost.1 = lost.1.saturating_add(count);
        }
        if !self.engine.split(", ").any(|known| known == other.engine) {
            self.engine = format!("{}, {}", self.engine, other.engine);
        }
    }

    /// Committed transactions per second of the measured time.
    #[expect(clippy::cast_precision_loss, reason = "a count of transactions")]
    pub fn tps(&self) -> f64 {
        if self.measured_s > 0.0 {
            (self.measured.committed - self.measured.after_end) as f64 / self.measured_s
        } else {
            0.0
        }
    }

    /// Client CPU per committed transaction; `None` without one.
    #[expect(clippy::cast_precision_loss, reason = "a count of transactions")]
    pub fn client_cpu_us_per_tx(&self) -> Option<f64> {
        (self.measured.committed > 0).then(|| self.client_cpu_us / self.measured.committed as f64)
    }

    /// The part that one server had in it, by the server's number; where there is but one, the
    /// whole load.
    pub fn share(&self, server: usize) -> ServerShare {
        match self.servers.as_slice() {
            [_, _, ..] => self.servers[server],
            _ => ServerShare {
                committed: self.measured.committed - self.measured.after_end,
                server_commits: self.whole.server_commits,
                in_flight_at_end: self.in_flight_at_end,
                sessions: self.sessions,
            },
        }
    }

    /// The first error of a SQLSTATE.
    pub fn first_error(&self, sqlstate: &str) -> Option<&FirstError> {
        self.first_errors.iter().find(|error| error.sqlstate == sqlstate)
    }

    /// Why nothing was committed, as far as the server or the connection gave a reason.
    pub fn why_nothing(&self) -> Option<String> {
        let most = self.measured.errors().into_iter().next();
        let first = most.and_then(|error| self.first_error(&error.sqlstate));
        match (first.or(self.first_errors.first()), &self.lost) {
            (Some(error), _) => Some(error.to_string()),
            (None, Some((reason, _))) => Some(reason.clone()),
            (None, None) => self.notes.first().filter(|_| self.connections.is_some()).cloned(),
        }
    }

    /// Takes in what a thread has done on the server of that number.
    pub(crate) fn add(&mut self, server: usize, part: Part) {
        self.servers[server].add(&part);
        if let Some(turns) = self.turns.get_mut(server) {
            turns.measured.add(&part.measured);
            turns.busy_s += Duration::from_nanos(part.busy_ns).as_secs_f64();
            if let Some((reason, count)) = &part.lost {
                turns.lost.get_or_insert((reason.clone(), 0)).1 += count;
            }
            take_first_errors(&mut turns.first_errors, &part.first_errors);
        }
        self.measured.add(&part.measured);
        self.in_no_second.add(&part.in_no_second);
        self.whole.add(part.whole);
        self.measured_s = self.measured_s.max(part.measured_s);
        self.warmup_s = self.warmup_s.max(part.warmup_s);
        self.in_flight_at_end += part.in_flight_at_end;
        let late_ns = u64::try_from(part.began_late.as_nanos()).unwrap_or(u64::MAX);
        self.began_late_ns = self.began_late_ns.max(late_ns);
        self.sessions += part.sessions;
        self.client_cpu_us += part.cpu_us;
        self.stopped_early |= part.stopped_early;
        self.engine = part.engine;
        for ((_, books), part) in self.kinds.iter_mut().zip(&part.kinds) {
            books.add(part);
        }
        for ((_, times), part) in self.statements.iter_mut().zip(&part.statements) {
            times.add(part);
        }
        if let (Some(times), Some(part)) = (&mut self.connections, &part.connections) {
            times.add(part);
        }
        let room = NOTES_MAX.saturating_sub(self.notes.len());
        self.notes_skipped += part.notes.len().saturating_sub(room) as u64;
        self.notes.extend(part.notes.into_iter().take(room));
        take_first_errors(&mut self.first_errors, &part.first_errors);
        if let Some((reason, count)) = part.lost {
            let lost = self.lost.get_or_insert((reason, 0));
            lost.1 += count;
        }
    }
}
