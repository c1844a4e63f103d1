//! One client: a simulated session with its own random stream. It moves no bytes itself: it is fed what arrived, and
//! tells what is to be sent.

use crate::books::SqlState;
use crate::message::{Program, ROLLBACK, TERMINATE};
use crate::random::Stream;
use crate::scanner::{Event, Malformed, Scanner};
use crate::tls::{OVERHEAD_BYTES, Tls};
use crate::workload::{Values, Variable};
use std::io;

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Committed,
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

/// What is to be done after bytes arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing: the reply is not whole yet.
    Wait,
    /// The next request of the transaction is to be sent.
    Send,
    /// The transaction has ended.
    Done(Outcome),
}

/// What the client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// Between two transactions.
    Idle,
    /// The reply to this round trip.
    Trip(usize),
    /// The reply to the rollback of a failed transaction.
    Rollback(SqlState),
}

pub(crate) struct Client {
    scanner: Scanner,
    stream: Stream,
    ranges: [(i32, i32); Variable::COUNT],
    values: Values,
    /// The request at hand, as it goes over the wire; it never grows, so that its memory stays where it is.
    out: Vec<u8>,
    tls: Option<Tls>,
    /// The request before it is sealed.
    plain: Vec<u8>,
    waiting: Waiting,
    /// First error of the round trip at hand.
    error: Option<SqlState>,
    /// How often the transaction at hand was tried.
    pub(crate) tries: u32,
    /// Transactions that it may still begin.
    left: u64,
    /// When the transaction at hand was due and begun, in nanoseconds of the load's clock.
    pub(crate) due_ns: u64,
    pub(crate) begun_ns: u64,
}

impl Client {
    pub(crate) fn new(
        program: &Program,
        stream: Stream,
        scale: u32,
        transactions: Option<u64>,
        tls: Option<Tls>,
    ) -> Client {
        Client {
            scanner: Scanner::default(),
            stream,
            ranges: Variable::ranges(scale),
            values: [0; Variable::COUNT],
            // The next connection may be sealed where this one is not.
            out: Vec::with_capacity(program.request_bytes_max() + OVERHEAD_BYTES),
            plain: Vec::with_capacity(program.request_bytes_max() + OVERHEAD_BYTES),
            tls,
            waiting: Waiting::Idle,
            error: None,
            tries: 0,
            left: transactions.unwrap_or(u64::MAX),
            due_ns: 0,
            begun_ns: 0,
        }
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
        self.error = None;
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.waiting == Waiting::Idle
    }

    /// The request at hand.
    pub(crate) fn out(&self) -> &[u8] {
        &self.out
    }

    /// Draws the values of a transaction; its first request is to be sent.
    pub(crate) fn begin(&mut self, program: &Program, due_ns: u64, now_ns: u64) {
        for (value, (low, high)) in self.values.iter_mut().zip(self.ranges) {
            *value = self.stream.between(low, high);
        }
        self.due_ns = due_ns;
        self.begun_ns = now_ns;
        self.left -= 1;
        self.tries = 0;
        self.retry(program);
    }

    /// Begins the transaction at hand once more, with the same values; its first request is to be sent.
    pub(crate) fn retry(&mut self, program: &Program) {
        self.tries += 1;
        self.go_to(program, 0);
    }

    fn go_to(&mut self, program: &Program, trip: usize) {
        self.waiting = Waiting::Trip(trip);
        program.encode(trip, &self.values, &mut self.plain);
        self.seal();
    }

    fn seal(&mut self) {
        match &mut self.tls {
            Some(tls) => tls.seal(&self.plain, &mut self.out),
            None => std::mem::swap(&mut self.plain, &mut self.out),
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
        self.error
    }

    /// Takes in what arrived.
    pub(crate) fn feed(&mut self, program: &Program, bytes: &[u8]) -> Result<Progress, Lost> {
        let mut ready = None;
        let (scanner, error) = (&mut self.scanner, &mut self.error);
        let mut scan = |bytes: &[u8]| {
            scanner
                .feed(bytes, |event| match event {
                    Event::Ready(status) => ready = Some(status),
                    Event::Error(code) => {
                        error.get_or_insert(code);
                    }
                    Event::Complete | Event::Row => {}
                })
                .map_err(Lost::from)
        };
        match &mut self.tls {
            Some(tls) => tls.open(bytes, scan)?,
            None => scan(bytes)?,
        }
        match ready {
            Some(status) => self.advance(program, status),
            None => Ok(Progress::Wait),
        }
    }

    /// The server waits again: the next round trip, a rollback, or the end of the transaction.
    fn advance(&mut self, program: &Program, status: u8) -> Result<Progress, Lost> {
        let error = self.error.take();
        match (self.waiting, error) {
            (Waiting::Trip(trip), None) if trip + 1 < program.trips() => {
                self.go_to(program, trip + 1);
                Ok(Progress::Send)
            }
            (Waiting::Trip(_), None) if status == b'I' => Ok(self.done(Outcome::Committed)),
            (Waiting::Trip(_), Some(code)) | (Waiting::Rollback(code), _) if status == b'I' => {
                Ok(self.done(Outcome::Failed(code)))
            }
            (Waiting::Trip(_), Some(code)) => {
                self.waiting = Waiting::Rollback(code);
                self.say(ROLLBACK);
                Ok(Progress::Send)
            }
            (waiting, _) => Err(Lost {
                code: SqlState::PROTOCOL_VIOLATION,
                reason: format!(
                    "unexpected ReadyForQuery '{}' while {waiting:?}",
                    char::from(status)
                ),
            }),
        }
    }

    fn done(&mut self, outcome: Outcome) -> Progress {
        self.waiting = Waiting::Idle;
        Progress::Done(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;
    use crate::workload::{Control, Protocol, Workload};

    const READY: &[u8] = b"Z\0\0\0\x05I";
    const READY_INSIDE: &[u8] = b"Z\0\0\0\x05T";
    const READY_BROKEN: &[u8] = b"Z\0\0\0\x05E";
    const ERROR: &[u8] = b"E\0\0\0\x0cC40001\0\0";

    fn client(program: &Program) -> Client {
        Client::new(program, Stream::new(1, 1, Purpose::Transactions), 1, None, None)
    }

    #[test]
    fn a_transaction_goes_from_trip_to_trip_to_its_end() {
        let program = Program::new(Workload::SimpleUpdate, Protocol::Prepared, Control::Explicit);
        let mut client = client(&program);
        client.begin(&program, 5, 7);
        for _ in 0..4 {
            assert_eq!(client.feed(&program, &READY_INSIDE[..3]).unwrap(), Progress::Wait);
            assert_eq!(client.feed(&program, &READY_INSIDE[3..]).unwrap(), Progress::Send);
        }
        let done = client.feed(&program, READY).unwrap();
        assert_eq!(done, Progress::Done(Outcome::Committed));
        assert!(client.is_idle());
        let lost = client.feed(&program, READY).unwrap_err();
        assert!(lost.reason.contains("while Idle"), "{}", lost.reason);
    }

    #[test]
    fn a_failed_one_is_rolled_back_and_counted_with_its_code() {
        let program = Program::new(Workload::Tpcb, Protocol::Prepared, Control::Pipelined);
        let mut client = client(&program);
        client.begin(&program, 0, 0);
        let reply = [ERROR, READY_BROKEN].concat();
        assert_eq!(client.feed(&program, &reply).unwrap(), Progress::Send);
        assert_eq!(client.out(), ROLLBACK);
        let failed = Progress::Done(Outcome::Failed(SqlState::from_bytes(b"40001")));
        assert_eq!(client.feed(&program, READY).unwrap(), failed);
        // Without a transaction around it there is nothing to roll back.
        client.begin(&program, 0, 0);
        assert_eq!(client.feed(&program, &[ERROR, READY].concat()).unwrap(), failed);
    }
}
