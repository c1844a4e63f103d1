//! One client: a simulated session with its own random stream. It moves no bytes itself: it is fed
//! what arrived, and returns what is to be sent.

use crate::actor::{Actor, Halt, Outline, Transactions, Trip, Turn};
use crate::books::{FirstError, SqlState};
use crate::error_text;
use crate::message::{ROLLBACK, TERMINATE};
use crate::random::Stream;
use crate::scanner::{Event, Malformed, Scanner, Tag};
use crate::tls::{Tls, sealed_bytes_max};
use std::io;

/// ReadyForQuery's status outside of a transaction block.
const IDLE: u8 = b'I';
/// Requests are mostly far below this.
const REQUEST_BYTES: usize = 1024;

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Committed,
    /// Ended by a rollback, as intended.
    RolledBack,
    Failed(SqlState),
}

/// The connection is of no more use.
#[derive(Debug)]
pub(crate) struct Lost {
    pub(crate) code: SqlState,
    pub(crate) reason: String,
}

impl From<Malformed> for Lost {
    fn from(error: Malformed) -> Lost {
        Lost {
            code: SqlState::PROTOCOL_VIOLATION,
            reason: error.to_string(),
        }
    }
}

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Lost {
        let reason = match error.kind() {
            io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
            _ => format!("the connection broke: {error}"),
        };
        Lost {
            code: SqlState::CONNECTION_FAILURE,
            reason,
        }
    }
}

/// What is to be done after bytes arrived, or a transaction went on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing: the reply is not whole yet.
    Wait,
    /// The next request of the transaction is to be sent.
    Send,
    /// A connection is to be made for the transaction: see [`Client::connected`].
    Connect,
    /// The transaction goes on after so many nanoseconds: see [`Client::wake`].
    Sleep(u64),
    /// The transaction has ended.
    Done(Outcome),
    /// The load cannot go on.
    Halt(Halt),
    /// The server is within a transaction that has ended.
    Astray,
}

/// What the client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// It waits for its next transaction.
    Idle,
    /// A connection for a transaction.
    Connection,
    /// An instant within a transaction.
    Asleep,
    /// The reply to a round trip.
    Trip(Trip),
    /// The reply to the rollback of a failed transaction.
    Rollback(SqlState),
}

/// What the server said since the last request.
#[derive(Debug, Clone, Copy)]
struct Heard {
    /// Code of the first error since the last request.
    error: Option<SqlState>,
    /// Whether an error came since the last ReadyForQuery, and what the last statement since then
    /// did.
    broken: bool,
    last: Option<Tag>,
    /// ReadyForQuery, and the transaction status of the last one.
    syncs: u32,
    status: u8,
    /// Transactions that the server has committed since the client began.
    commits: u64,
}

impl Heard {
    const NOTHING: Heard = Heard {
        error: None,
        broken: false,
        last: None,
        syncs: 0,
        status: IDLE,
        commits: 0,
    };

    fn hear(&mut self, event: Event) {
        match event {
            Event::Ready(status) => {
                // Without a transaction block, what ran since the last one was a transaction of its
                // own.
                self.commits += u64::from(status == IDLE && !self.broken && self.last == Some(Tag::Other));
                (self.broken, self.last) = (false, None);
                self.syncs += 1;
                self.status = status;
            }
            Event::Error(code) => {
                self.error.get_or_insert(code);
                self.broken = true;
            }
            Event::Complete(tag) => {
                self.commits += u64::from(tag == Tag::Commit);
                self.last = Some(tag);
            }
            Event::Row => {}
        }
    }
}

pub(crate) struct Client<'a> {
    scanner: Scanner,
    outline: &'a Outline,
    pub(crate) actor: Box<dyn Actor + 'a>,
    /// The request at hand, as it goes over the wire. Its memory stays where it is as long as the
    /// client lives: one that is too small is kept beside, because a send may still be under way
    /// from it.
    out: Vec<u8>,
    outgrown: Vec<Vec<u8>>,
    tls: Option<Tls>,
    /// The request before it is sealed.
    plain: Vec<u8>,
    waiting: Waiting,
    /// Whether each transaction has a connection of its own.
    connects: bool,
    heard: Heard,
    /// The statement whose round trip has just ended.
    finished: Option<u32>,
    /// How often the transaction at hand was tried.
    pub(crate) tries: u32,
    /// Transactions that it may still begin.
    left: u64,
    /// When the transaction at hand was due and begun, and its last request made, in nanoseconds of
    /// the load's clock.
    pub(crate) due_ns: u64,
    pub(crate) begun_ns: u64,
    pub(crate) sent_ns: u64,
}

impl<'a> Client<'a> {
    pub(crate) fn new(
        transactions: &'a dyn Transactions,
        stream: Stream,
        number: u32,
        count: Option<u64>,
        tls: Option<Tls>,
    ) -> Client<'a> {
        Client {
            scanner: Scanner::default(),
            outline: transactions.outline(),
            actor: transactions.actor(stream, number),
            out: Vec::with_capacity(REQUEST_BYTES),
            outgrown: Vec::new(),
            plain: Vec::with_capacity(REQUEST_BYTES),
            tls,
            waiting: Waiting::Idle,
            connects: false,
            heard: Heard::NOTHING,
            finished: None,
            tries: 0,
            left: count.unwrap_or(u64::MAX),
            due_ns: 0,
            begun_ns: 0,
            sent_ns: 0,
        }
    }

    /// Lets each transaction have a connection of its own.
    pub(crate) fn connect_each(&mut self) {
        self.connects = true;
    }

    /// Whether it has no use for a connection at the moment.
    pub(crate) fn wants_no_connection(&self) -> bool {
        self.connects && matches!(self.waiting, Waiting::Idle | Waiting::Connection)
    }

    /// Whether it may begin no more transactions.
    pub(crate) fn has_ended(&self) -> bool {
        self.left == 0
    }

    /// A new connection in place of one that was lost.
    pub(crate) fn renew(&mut self, tls: Option<Tls>) {
        self.tls = tls;
        self.scanner = Scanner::default();
        self.waiting = Waiting::Idle;
        self.heard = Heard {
            commits: self.heard.commits,
            ..Heard::NOTHING
        };
        self.actor.renew();
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.waiting == Waiting::Idle
    }

    pub(crate) fn is_asleep(&self) -> bool {
        self.waiting == Waiting::Asleep
    }

    /// Transactions that the server has confirmed to have committed.
    pub(crate) fn server_commits(&self) -> u64 {
        self.heard.commits
    }

    /// Bytes of the request at hand.
    pub(crate) fn out(&self) -> &[u8] {
        &self.out
    }

    /// The statement whose round trip has just ended, if it was one alone.
    pub(crate) fn take_finished(&mut self) -> Option<u32> {
        self.finished.take()
    }

    /// Begins the next transaction.
    pub(crate) fn begin(&mut self, due_ns: u64, now_ns: u64) -> Progress {
        self.actor.begin();
        self.due_ns = due_ns;
        self.begun_ns = now_ns;
        self.sent_ns = now_ns;
        self.left -= 1;
        self.tries = 1;
        if self.connects {
            self.waiting = Waiting::Connection;
            return Progress::Connect;
        }
        self.go_on()
    }

    /// Begins the transaction at hand once more, with the same values.
    pub(crate) fn retry(&mut self) -> Progress {
        self.tries += 1;
        self.actor.restart();
        self.go_on()
    }

    /// Goes on with a transaction whose connection has been made.
    pub(crate) fn connected(&mut self, tls: Option<Tls>) -> Progress {
        self.renew(tls);
        self.go_on()
    }

    /// Goes on with a transaction that slept.
    pub(crate) fn wake(&mut self) -> Progress {
        self.go_on()
    }

    fn go_on(&mut self) -> Progress {
        match self.actor.run(&mut self.plain) {
            Ok(Turn::Send(trip)) => {
                self.scanner.keep_rows(trip.captures);
                self.scanner.forget_error();
                self.waiting = Waiting::Trip(trip);
                self.seal();
                Progress::Send
            }
            Ok(Turn::Sleep(ns)) => {
                self.waiting = Waiting::Asleep;
                Progress::Sleep(ns)
            }
            Ok(Turn::End) if self.heard.status == IDLE => self.done(match self.actor.rolls_back() {
                true => Outcome::RolledBack,
                false => Outcome::Committed,
            }),
            // A transaction of our own has ended: it is the server that has not ended it.
            Ok(Turn::End) if !self.outline.by_user => Progress::Astray,
            Ok(Turn::End) => {
                let kind = self.kind_name();
                Progress::Halt(Halt(format!("{kind}: the script ends within a transaction")))
            }
            Err(halt) => Progress::Halt(halt),
        }
    }

    fn kind_name(&self) -> &str {
        &self.outline.kinds[self.actor.kind() as usize]
    }

    fn seal(&mut self) {
        self.heard.syncs = 0;
        let wanted = sealed_bytes_max(self.plain.len());
        if self.out.capacity() < wanted {
            let larger = Vec::with_capacity(wanted.next_power_of_two());
            self.outgrown.push(std::mem::replace(&mut self.out, larger));
        }
        self.out.clear();
        match &mut self.tls {
            Some(tls) => tls.seal(&self.plain, &mut self.out),
            None => self.out.extend_from_slice(&self.plain),
        }
    }

    /// Says good-bye, so that the server's statistics are complete when the connection is gone.
    pub(crate) fn end(&mut self) -> &[u8] {
        self.say(TERMINATE);
        &self.out
    }

    fn say(&mut self, message: &[u8]) {
        self.plain.clear();
        self.plain.extend_from_slice(message);
        self.seal();
    }

    /// The code that the server gave before it closed the connection says more than that it did.
    pub(crate) fn last_error(&self) -> Option<SqlState> {
        self.heard.error
    }

    /// The error at hand for people; `reason` is for one that the server gave no message for.
    pub(crate) fn first_error(&self, code: SqlState, reason: Option<&str>) -> FirstError {
        let message = error_text::of_error(self.scanner.error(), code);
        FirstError {
            sqlstate: code.as_str().to_owned(),
            message: message
                .or_else(|| reason.map(str::to_owned))
                .unwrap_or_else(|| "the server gave no message".to_owned()),
            place: match self.actor.line() {
                Some(line) => format!("{}:{line}", self.kind_name()),
                None => self.kind_name().to_owned(),
            },
        }
    }

    /// Takes in bytes of the reply.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<Progress, Lost> {
        let (scanner, heard) = (&mut self.scanner, &mut self.heard);
        let before = heard.syncs;
        let mut unfit = None;
        let mut scan = |bytes: &[u8]| {
            let scanned = scanner.feed(bytes, |event| heard.hear(event));
            unfit = scanned
                .err()
                .filter(|error| matches!(error, Malformed::Copy | Malformed::Rows));
            scanned.map_err(Lost::from)
        };
        let scanned = match &mut self.tls {
            Some(tls) => tls.open(bytes, scan),
            None => scan(bytes),
        };
        // What a user's transaction needs and a load does not do is not a fault of the connection.
        if let (Some(error), true) = (unfit, self.outline.by_user) {
            let kind = self.kind_name();
            return Ok(Progress::Halt(Halt(format!("{kind}: {error}"))));
        }
        scanned?;
        if self.heard.syncs > before {
            self.advance()
        } else {
            Ok(Progress::Wait)
        }
    }

    /// The server waits again: the next round trip, a rollback, or the end of the transaction.
    fn advance(&mut self) -> Result<Progress, Lost> {
        let (syncs, status) = (self.heard.syncs, self.heard.status);
        match self.waiting {
            Waiting::Trip(trip) if syncs < trip.syncs => Ok(Progress::Wait),
            Waiting::Trip(trip) if syncs == trip.syncs => match self.heard.error.take() {
                None => {
                    self.finished = trip.statement;
                    let progress = match self.actor.take_reply(self.scanner.rows()) {
                        Ok(()) => self.go_on(),
                        Err(halt) => Progress::Halt(halt),
                    };
                    match progress {
                        Progress::Astray => Err(self.astray()),
                        progress => Ok(progress),
                    }
                }
                Some(code) => {
                    self.actor.fail();
                    if status == IDLE {
                        return Ok(self.failed(code));
                    }
                    self.waiting = Waiting::Rollback(code);
                    self.say(ROLLBACK);
                    Ok(Progress::Send)
                }
            },
            Waiting::Rollback(code) if syncs == 1 && status == IDLE => {
                self.heard.error = None;
                Ok(self.failed(code))
            }
            _ => Err(self.astray()),
        }
    }

    fn astray(&self) -> Lost {
        Lost {
            code: SqlState::PROTOCOL_VIOLATION,
            reason: format!(
                "unexpected ReadyForQuery '{}' while {:?}",
                char::from(self.heard.status),
                self.waiting
            ),
        }
    }

    fn failed(&mut self, code: SqlState) -> Progress {
        self.done(match code == SqlState::NO_DATA_FOUND && self.actor.rolls_back() {
            true => Outcome::RolledBack,
            false => Outcome::Failed(code),
        })
    }

    fn done(&mut self, outcome: Outcome) -> Progress {
        self.waiting = Waiting::Idle;
        Progress::Done(outcome)
    }
}

#[cfg(test)]
mod tests;
