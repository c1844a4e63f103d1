//! One client: a simulated session with its own connection, requests and random stream.

use crate::books::SqlState;
use crate::connection::Socket;
use crate::message::{ROLLBACK, Requests, TERMINATE};
use crate::random::Stream;
use crate::scanner::{Event, Scanner};
use crate::workload::Variable;
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

/// What the client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// Between two transactions.
    Idle,
    /// The reply to this statement.
    Statement(usize),
    /// The reply to the rollback of a failed transaction.
    Rollback(SqlState),
}

pub(crate) struct Client {
    pub(crate) socket: Socket,
    scanner: Scanner,
    requests: Requests,
    stream: Stream,
    ranges: [(i32, i32); Variable::COUNT],
    waiting: Waiting,
    /// First error of the statement at hand.
    error: Option<SqlState>,
    /// Bytes of the request at hand that the socket has not taken yet, from its end.
    unsent: usize,
    /// When the transaction at hand began, in nanoseconds of the load's clock.
    pub(crate) begun_ns: u64,
}

impl Client {
    pub(crate) fn new(socket: Socket, requests: Requests, stream: Stream, scale: u32) -> Client {
        Client {
            socket,
            scanner: Scanner::default(),
            requests,
            stream,
            ranges: Variable::ranges(scale),
            waiting: Waiting::Idle,
            error: None,
            unsent: 0,
            begun_ns: 0,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.waiting == Waiting::Idle
    }

    /// Whether the socket did not take the whole request: it must be watched for room.
    pub(crate) fn is_blocked(&self) -> bool {
        self.unsent > 0
    }

    /// Draws the values of a transaction and sends its first statement.
    pub(crate) fn begin(&mut self, now_ns: u64) -> Result<(), Lost> {
        let mut values = [0; Variable::COUNT];
        for (value, (low, high)) in values.iter_mut().zip(self.ranges) {
            *value = self.stream.between(low, high);
        }
        self.requests.patch(&values);
        self.begun_ns = now_ns;
        self.waiting = Waiting::Statement(0);
        self.unsent = self.request().len();
        self.send()
    }

    fn request(&self) -> &[u8] {
        match self.waiting {
            Waiting::Idle => &[],
            Waiting::Statement(number) => self.requests.statement(number),
            Waiting::Rollback(_) => ROLLBACK,
        }
    }

    /// Sends what is unsent.
    pub(crate) fn send(&mut self) -> Result<(), Lost> {
        while self.unsent > 0 {
            let request = match self.waiting {
                Waiting::Idle => return Ok(()),
                Waiting::Statement(number) => self.requests.statement(number),
                Waiting::Rollback(_) => ROLLBACK,
            };
            match self.socket.write(&request[request.len() - self.unsent..]) {
                Ok(n) => self.unsent -= n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(lost(&e)),
            }
        }
        Ok(())
    }

    /// Reads what is there and goes on with the transaction; tells its outcome when it has ended.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<Outcome>, Lost> {
        let mut outcome = None;
        loop {
            let read = match self.socket.read(buffer) {
                // The server's own last words say more than that it is gone.
                Ok(0) => {
                    let lost = lost(&io::ErrorKind::UnexpectedEof.into());
                    return Err(Lost {
                        code: self.error.unwrap_or(lost.code),
                        ..lost
                    });
                }
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(outcome),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(lost(&e)),
            };
            let mut ready = None;
            let error = &mut self.error;
            self.scanner
                .feed(&buffer[..read], |event| match event {
                    Event::Ready(status) => ready = Some(status),
                    Event::Error(code) => {
                        error.get_or_insert(code);
                    }
                    Event::Complete | Event::Row => {}
                })
                .map_err(|e| Lost {
                    code: SqlState::PROTOCOL_VIOLATION,
                    reason: e.to_string(),
                })?;
            if let Some(status) = ready {
                outcome = self.advance(status)?;
            }
            // A short read has emptied the socket; epoll is level-triggered, so nothing can be missed.
            if read < buffer.len() {
                return Ok(outcome);
            }
        }
    }

    /// The server waits again: the next statement, a rollback, or the end of the transaction.
    fn advance(&mut self, status: u8) -> Result<Option<Outcome>, Lost> {
        let error = self.error.take();
        let (next, outcome) = match (self.waiting, error) {
            (Waiting::Statement(_), Some(code)) if status == b'I' => {
                (Waiting::Idle, Some(Outcome::Failed(code)))
            }
            (Waiting::Statement(_), Some(code)) => (Waiting::Rollback(code), None),
            (Waiting::Statement(number), None) if number + 1 < self.requests.len() => {
                (Waiting::Statement(number + 1), None)
            }
            (Waiting::Statement(_), None) if status == b'I' => (Waiting::Idle, Some(Outcome::Committed)),
            (Waiting::Rollback(code), _) if status == b'I' => (Waiting::Idle, Some(Outcome::Failed(code))),
            (waiting, _) => {
                let reason = format!(
                    "unexpected ReadyForQuery '{}' while {waiting:?}",
                    char::from(status)
                );
                return Err(Lost {
                    code: SqlState::PROTOCOL_VIOLATION,
                    reason,
                });
            }
        };
        self.waiting = next;
        self.unsent = self.request().len();
        self.send()?;
        Ok(outcome)
    }

    /// Says good-bye, so that the server's statistics are complete when the connection is gone.
    pub(crate) fn close(mut self) {
        if self.is_idle() {
            let _ = self.socket.write(TERMINATE);
        }
    }
}

fn lost(error: &io::Error) -> Lost {
    let reason = match error.kind() {
        io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
        _ => format!("the connection broke: {error}"),
    };
    Lost {
        code: SqlState::CONNECTION_FAILURE,
        reason,
    }
}
