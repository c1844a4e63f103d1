//! What a client executes: transactions that were compiled before the load. The engine knows
//! neither what they are nor what they were written in; the caller of the engine supplies them.

use crate::random::Stream;
use serde::{Deserialize, Serialize};

/// The transactions of a load, compiled: shared by all clients.
pub trait Transactions: Sync {
    /// Kinds and statements of the transactions.
    fn outline(&self) -> &Outline;

    /// What executes them for one client: the one of that number, from 0, which draws from
    /// `stream`.
    fn actor(&self, stream: Stream, number: u32) -> Box<dyn Actor + '_>;
}

/// Kinds and statements of a load's transactions.
#[derive(Debug, Clone, Default)]
pub struct Outline {
    /// Names of the kinds of transactions; at least one.
    pub kinds: Vec<String>,
    /// All statements, in the order of their numbers.
    pub statements: Vec<StatementName>,
    /// What a new connection sends to be ready; ends with a Sync.
    pub prepare: Option<Vec<u8>>,
    /// Whether some client waits for an instant, in a transaction or between two.
    pub sleeps: bool,
    /// Whether some request may be so long that its reply must be read while it is sent.
    pub pipelines: bool,
    /// Whether a user wrote them: then what a load cannot do is not a fault of the server or the
    /// connection, and ends the load.
    pub by_user: bool,
    /// The most transactions of the server in one of the load, where each statement commits by
    /// itself.
    pub commits_max: u64,
}

/// A statement with its kind of transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementName {
    /// The kind of transaction that it belongs to.
    pub transaction: String,
    /// Text of the statement, on one line.
    pub sql: String,
}

/// Executes one client's transactions, from one round trip to the next. In steady state it
/// allocates nothing.
pub trait Actor {
    /// A new connection has nothing prepared but what all connections prepare.
    fn renew(&mut self) {}

    /// How long the client waits before its next transaction, in nanoseconds.
    fn pause_ns(&mut self) -> u64 {
        0
    }

    /// Chooses the next transaction, and draws its values.
    fn begin(&mut self);

    /// Begins the transaction at hand once more, with the same values.
    fn restart(&mut self);

    /// The kind of the transaction at hand.
    fn kind(&self) -> u32;

    /// The line that the transaction at hand has come to, where a user wrote it.
    fn line(&self) -> Option<u32> {
        None
    }

    /// Whether the transaction at hand is meant to end by a rollback.
    fn rolls_back(&self) -> bool {
        false
    }

    /// Goes on to the next thing to wait for; what is to be sent replaces what is in `out`.
    ///
    /// # Errors
    ///
    /// The transaction cannot go on, which ends the load.
    fn run(&mut self, out: &mut Vec<u8>) -> Result<Turn, Halt>;

    /// Takes the reply to the request at hand: its rows ([`crate::reply::Messages`]) if they were
    /// wanted.
    ///
    /// # Errors
    ///
    /// The transaction cannot go on, which ends the load.
    fn take_reply(&mut self, rows: &[u8]) -> Result<(), Halt>;

    /// The request at hand failed.
    fn fail(&mut self) {}

    /// Gives what the transactions noted for people.
    fn take_notes(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// The next action of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The request is to be sent, and its reply to be waited for.
    Send(Trip),
    /// The client waits for that many nanoseconds.
    Sleep(u64),
    /// The transaction has no further request.
    End,
}

/// A request and its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trip {
    /// Number of ReadyForQuery messages in the reply.
    pub syncs: u32,
    /// Whether the actor reads the rows of the reply.
    pub captures: bool,
    /// The statement in it, if it is only one.
    pub statement: Option<u32>,
}

/// Why a transaction cannot go on, for people: nothing that trying again would help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Halt(pub String);

/// Times of a statement take some 30 kB in each thread.
const TIMED_STATEMENTS_MAX: usize = 500;

impl Outline {
    /// Whether there are several statements, so that each has times of its own; of very many, none
    /// has.
    pub fn times_statements(&self) -> bool {
        (2..=TIMED_STATEMENTS_MAX).contains(&self.statements.len())
    }

    /// What a statement begins with that may commit more often than its client sees, if there is
    /// one.
    pub fn commits_within(&self) -> Option<&'static str> {
        self.statements.iter().find_map(|name| commits_within(&name.sql))
    }
}

/// Commands that commit for themselves before they end: for each table, each phase, or where a
/// procedure does.
const COMMITTING: [&str; 6] = ["VACUUM", "ANALYZE", "CLUSTER", "REINDEX", "CALL", "DO"];
/// Builds and drops in several transactions, in whatever command.
const CONCURRENTLY: &str = "CONCURRENTLY";

/// The word of a statement, or of several that go as a whole, by which it may commit more often
/// than its client sees.
pub(crate) fn commits_within(sql: &str) -> Option<&'static str> {
    let first = |statement: &str| {
        let word = statement
            .split(|c: char| !c.is_ascii_alphabetic())
            .find(|word| !word.is_empty());
        let is_first = |known: &&str| word.is_some_and(|word| word.eq_ignore_ascii_case(known));
        COMMITTING.into_iter().find(is_first)
    };
    let mut words = sql.split(|c: char| !c.is_ascii_alphabetic());
    sql.split(';').find_map(first).or_else(|| {
        let found = words.any(|word| word.eq_ignore_ascii_case(CONCURRENTLY));
        found.then_some(CONCURRENTLY)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_commit_within_are_known_by_their_words() {
        let check = |sql, expected| assert_eq!(commits_within(sql), expected, "{sql}");
        check("vacuum (parallel 2) wide", Some("VACUUM"));
        check("SELECT 1; CALL p()", Some("CALL"));
        check("create index Concurrently z ON t (a)", Some("CONCURRENTLY"));
        check("CREATE INDEX z ON t (a)", None);
        check("SELECT do FROM vacuum", None);
        check("", None);
    }
}
