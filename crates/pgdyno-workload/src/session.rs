//! A session for questions and for work on data, over a connection of the load's own: every answer
//! is bounded in bytes, every question in time, and whatever is waited for ends by the request to
//! stop. Work may last: as long as the server shows that it is at it.

use crate::own::marked;
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use pgdyno_engine::Endpoint;
use pgdyno_engine::{ConnectError, Startup};
use pgdyno_host::dial::Until;
use postgres_protocol::message::backend::{DataRowBody, Message};
use postgres_protocol::message::frontend;
use std::io;
use std::time::{Duration, Instant};

/// A row of text values, NULL as `None`.
pub(crate) type Row = Vec<Option<String>>;

/// A question reads little; a server that is busy and far away answers it within this.
const QUESTION_LIMIT: Duration = Duration::from_secs(60);
/// After such a silence of a server that works, another session asks whether it does.
const PROOF_EVERY: Duration = Duration::from_secs(30);
/// How long a server may take to give up what it was asked to.
const CANCEL_LIMIT: Duration = Duration::from_secs(10);
/// A request to give up that comes between two statements is lost, so it is made again.
const CANCEL_EVERY: Duration = Duration::from_millis(500);
/// Between two checks of what a server says to rows that it does not take.
const SEND_SLICE: Duration = Duration::from_secs(1);
/// Opening a connection for a request to give up, and the end of a session.
const END_LIMIT: Duration = Duration::from_millis(100);
/// What the rows of an answer may take in memory: those asked for here are few.
const ROWS_BYTES_MAX: usize = 32 << 20;
/// What a row and a value cost beside their bytes.
const OVERHEAD_BYTES: usize = 64;
/// Length of a CopyData message's tag and length.
pub(crate) const COPY_HEADER_BYTES: usize = 5;

/// Why a statement was not executed.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The server refuses the statement; the session can be used on.
    #[error("{message} (SQLSTATE {sqlstate})")]
    Refused {
        /// Message of the server.
        message: String,
        /// SQLSTATE of the error.
        sqlstate: String,
    },
    /// The connection is lost.
    #[error("{0}")]
    Lost(#[source] ConnectError),
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
}

/// How long an answer may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// At most that time.
    Question(Duration),
    /// As long as the server is at it.
    Work,
}

/// How long may pass until a server must show something.
#[derive(Debug, Clone, Copy)]
struct Limits {
    question: Duration,
    proof_every: Duration,
    /// For the answer of the other session that proves it.
    proof: Duration,
    cancel: Duration,
}

const LIMITS: Limits = Limits {
    question: QUESTION_LIMIT,
    proof_every: PROOF_EVERY,
    proof: PROOF_EVERY,
    cancel: CANCEL_LIMIT,
};

/// A connection on which statements are run one after the other.
pub(crate) struct Session {
    startup: Startup,
    endpoint: Endpoint,
    limits: Limits,
    /// The server's process, where it is known to be this session's.
    pid: Option<i32>,
    is_lost: bool,
}

impl Session {
    /// Opens one, seen under this name.
    pub(crate) fn open(endpoint: &Endpoint, name: &str) -> Result<Session, SessionError> {
        let endpoint = endpoint.named(name);
        let startup = Startup::begin(&endpoint).map_err(|error| lost(&endpoint, error))?;
        Ok(Session {
            startup,
            endpoint,
            limits: LIMITS,
            pid: None,
            is_lost: false,
        })
    }

    /// The same where there is no pooler: what works in this session can be found among the
    /// server's.
    pub(crate) fn find_itself(&mut self) -> Result<(), SessionError> {
        let rows = self.rows("SELECT pg_catalog.pg_backend_pid()")?;
        let found: Option<i32> = rows.first().and_then(|row| row.first()?.as_deref()?.parse().ok());
        self.pid = found.filter(|&pid| self.startup.key().is_some_and(|(own, _)| own == pid));
        Ok(())
    }

    /// The rows of the last of some statements, which read little.
    pub(crate) fn rows(&mut self, sql: &str) -> Result<Vec<Row>, SessionError> {
        self.ask(sql, Kind::Question(self.limits.question))
    }

    /// The same of statements that read much.
    pub(crate) fn rows_of_work(&mut self, sql: &str) -> Result<Vec<Row>, SessionError> {
        self.ask(sql, Kind::Work)
    }

    /// Statements whose rows are dropped, for as long as they take.
    pub(crate) fn work(&mut self, sql: &str) -> Result<(), SessionError> {
        self.ask(sql, Kind::Work).map(drop)
    }

    fn ask(&mut self, sql: &str, kind: Kind) -> Result<Vec<Row>, SessionError> {
        self.request(|bytes| frontend::query(&marked(sql), bytes), kind)?;
        self.answer(kind)
    }

    /// Whether the server takes a statement, which is not kept.
    pub(crate) fn describe(&mut self, sql: &str) -> Result<(), SessionError> {
        let kind = Kind::Question(self.limits.question);
        let request = |bytes: &mut BytesMut| {
            frontend::parse("", sql, [], bytes)?;
            frontend::describe(b'S', "", bytes)?;
            frontend::sync(bytes);
            Ok(())
        };
        self.request(request, kind)?;
        self.answer(kind).map(drop)
    }

    /// Begins to send rows by COPY ... FROM STDIN.
    pub(crate) fn copy_in(&mut self, sql: &str) -> Result<CopyIn<'_>, SessionError> {
        self.request(|bytes| frontend::query(&marked(sql), bytes), Kind::Work)?;
        let mut refused = None;
        loop {
            match self.message_or(Kind::Work, &mut refused)? {
                Message::CopyInResponse(_) => return Ok(CopyIn { session: self }),
                Message::ErrorResponse(body) => {
                    refused = refused.or(Some(self.startup.refused(&body)));
                }
                Message::ReadyForQuery(_) => {
                    let missing = || self.startup.protocol("it does not take rows for a COPY");
                    let error = refused.unwrap_or_else(missing);
                    return Err(self.judged(error));
                }
                _ => {}
            }
        }
    }

    /// Sends a request.
    fn request(
        &mut self,
        write: impl FnOnce(&mut BytesMut) -> io::Result<()>,
        kind: Kind,
    ) -> Result<(), SessionError> {
        let mut bytes = BytesMut::new();
        write(&mut bytes).map_err(|error| self.lose(self.startup.protocol(&error.to_string())))?;
        self.startup.begin_step(self.wait_of(kind));
        self.send(&bytes)
    }

    fn wait_of(&self, kind: Kind) -> Duration {
        match kind {
            Kind::Question(limit) => limit,
            Kind::Work => self.limits.proof_every,
        }
    }

    /// Sends all of it, and listens to what the server says meanwhile.
    fn send(&mut self, mut bytes: &[u8]) -> Result<(), SessionError> {
        let mut since = Instant::now();
        loop {
            self.startup.set_timeout(SEND_SLICE);
            self.startup.wait_on();
            // What TLS has taken is not sent yet.
            let moved = match bytes {
                [] => self.startup.flush().map(|()| None),
                _ => self.startup.send_some(bytes).map(Some),
            };
            match moved {
                Ok(None) => return Ok(()),
                Ok(Some(sent)) => {
                    bytes = &bytes[sent..];
                    since = Instant::now();
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    self.object()?;
                    if since.elapsed() >= self.limits.proof_every {
                        self.prove()?;
                        since = Instant::now();
                    }
                }
                Err(error) if Until::is_stop(&error) => {
                    self.is_lost = true;
                    return Err(SessionError::Stopped);
                }
                Err(error) => return Err(self.lose(self.startup.unreachable(error))),
            }
        }
    }

    /// What the server says unasked: an error ends what is being sent.
    fn object(&mut self) -> Result<(), SessionError> {
        while self.startup.has_more() {
            let next = self.startup.next_message();
            match next {
                Ok(Message::ErrorResponse(body)) => {
                    let error = self.startup.refused(&body);
                    self.is_lost = true;
                    return Err(self.judged(error));
                }
                Ok(_) => {}
                Err(error) => return Err(self.lose(error)),
            }
        }
        Ok(())
    }

    /// The rows of the last statement.
    fn answer(&mut self, kind: Kind) -> Result<Vec<Row>, SessionError> {
        self.startup.begin_step(self.wait_of(kind));
        let (mut rows, mut last, mut refused) = (Vec::new(), Vec::new(), None);
        let mut bytes_left = ROWS_BYTES_MAX;
        loop {
            match self.message_or(kind, &mut refused)? {
                Message::DataRow(body) => match row_of(&body, &mut bytes_left) {
                    Ok(row) => rows.push(row),
                    Err(reason) => return Err(self.lose(self.startup.protocol(&reason))),
                },
                Message::CommandComplete(_) => last = std::mem::take(&mut rows),
                Message::ErrorResponse(body) => refused = refused.or(Some(self.startup.refused(&body))),
                // Nobody has asked to copy.
                Message::CopyInResponse(_) | Message::CopyOutResponse(_) => {
                    return Err(self.lose(self.startup.protocol("it copies, and was not asked to")));
                }
                Message::ReadyForQuery(_) => {
                    return match refused {
                        None => Ok(last),
                        Some(error) => Err(self.judged(error)),
                    };
                }
                _ => {}
            }
        }
    }

    /// The next message; where the connection ends, what the server has said before.
    fn message_or(
        &mut self,
        kind: Kind,
        refused: &mut Option<ConnectError>,
    ) -> Result<Message, SessionError> {
        let closed = |error: &io::Error| {
            matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
            )
        };
        match (self.message(kind), refused.take()) {
            (Err(SessionError::Lost(ConnectError::Unreachable { source, .. })), Some(said))
                if closed(&source) =>
            {
                Err(SessionError::Lost(said))
            }
            (answer, said) => {
                *refused = said;
                answer
            }
        }
    }

    /// The next message; while the server works, for as long as it does.
    fn message(&mut self, kind: Kind) -> Result<Message, SessionError> {
        loop {
            let next = self.startup.next_message();
            let is_silence = match &next {
                Err(ConnectError::Unreachable { source, .. }) if Until::is_stop(source) => {
                    return Err(self.give_up());
                }
                Err(ConnectError::Unreachable { source, .. }) => source.kind() == io::ErrorKind::TimedOut,
                _ => false,
            };
            match next {
                Err(_) if is_silence && kind == Kind::Work => {
                    self.prove()?;
                    self.startup.set_timeout(self.limits.proof_every);
                    self.startup.wait_on();
                }
                Err(error) => return Err(self.lose(error)),
                Ok(message) => return Ok(message),
            }
        }
    }

    /// Another session asks whether this one is at work. A refusal is an answer too: that of a
    /// server which lives.
    fn prove(&mut self) -> Result<(), SessionError> {
        let sql = match self.pid {
            Some(pid) => format!(
                "SELECT CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_stat_activity \
                 WHERE pid = {pid} AND state IS DISTINCT FROM 'idle') THEN 'at work' ELSE 'idle' END"
            ),
            None => "SELECT 'at work'".to_owned(),
        };
        let asked = Session::open(&self.endpoint, "pgdyno").and_then(|mut other| {
            other.limits = self.limits;
            other.limits.question = self.limits.proof;
            other.rows(&sql)
        });
        let reason = match asked {
            Err(SessionError::Stopped) => return Err(self.give_up()),
            Err(SessionError::Refused { .. } | SessionError::Lost(ConnectError::Refused { .. })) => {
                return Ok(());
            }
            Err(SessionError::Lost(error)) => format!("and to another session: {error}"),
            Ok(rows) => match rows.first().and_then(|row| row.first()?.as_deref()) {
                Some("at work") => return Ok(()),
                // Its answer may be on the way.
                Some("idle") if self.startup.has_more() => return Ok(()),
                Some("idle") => "and to another session that it does nothing here".to_owned(),
                _ => "and to another session what nobody asked for".to_owned(),
            },
        };
        let waited_s = self.limits.proof_every.as_secs();
        let message = format!("the server said nothing for {waited_s} s, {reason}");
        Err(self.lose(self.startup.unreachable(io::Error::other(message))))
    }

    /// Asks the server to give up what it does here, and waits until it has.
    fn give_up(&mut self) -> SessionError {
        self.is_lost = true;
        self.startup.finish_in_peace();
        let Some(key) = self.startup.key() else {
            return SessionError::Stopped;
        };
        let deadline = Instant::now() + self.limits.cancel;
        let mut endpoint = self.endpoint.unstopped();
        endpoint.config.connect_timeout(CANCEL_EVERY);
        self.startup.begin_step(CANCEL_EVERY);
        while Instant::now() < deadline {
            Startup::cancel(&endpoint, key);
            self.startup.wait_on();
            loop {
                match self.startup.next_message() {
                    Ok(Message::ReadyForQuery(_)) => {
                        self.is_lost = false;
                        return SessionError::Stopped;
                    }
                    Ok(_) => {}
                    Err(ConnectError::Unreachable { source, .. })
                        if source.kind() == io::ErrorKind::TimedOut =>
                    {
                        break;
                    }
                    Err(_) => return SessionError::Stopped,
                }
            }
        }
        SessionError::Stopped
    }

    /// A refusal by the server.
    fn judged(&self, error: ConnectError) -> SessionError {
        match error {
            _ if self.endpoint.is_stopped() => SessionError::Stopped,
            ConnectError::Refused {
                sqlstate, message, ..
            } => SessionError::Refused { message, sqlstate },
            other => SessionError::Lost(other),
        }
    }

    fn lose(&mut self, error: ConnectError) -> SessionError {
        self.is_lost = true;
        lost(&self.endpoint, error)
    }
}

fn lost(endpoint: &Endpoint, error: ConnectError) -> SessionError {
    match error {
        ConnectError::Unreachable { source, .. } if Until::is_stop(&source) => SessionError::Stopped,
        _ if endpoint.is_stopped() => SessionError::Stopped,
        other => SessionError::Lost(other),
    }
}

fn row_of(body: &DataRowBody, bytes_left: &mut usize) -> Result<Row, String> {
    let mut charge = |bytes: usize| -> Result<(), String> {
        *bytes_left = bytes_left.checked_sub(bytes).ok_or_else(|| {
            format!("its rows take more than {ROWS_BYTES_MAX} bytes, and it does not end them")
        })?;
        Ok(())
    };
    charge(OVERHEAD_BYTES)?;
    let mut row = Vec::new();
    let mut ranges = body.ranges();
    while let Some(range) = ranges.next().map_err(|error| error.to_string())? {
        let bytes = range.and_then(|range| body.buffer().get(range));
        charge(OVERHEAD_BYTES + bytes.map_or(0, <[u8]>::len))?;
        row.push(bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()));
    }
    Ok(row)
}

impl Drop for Session {
    /// In order, where the server listens; the transaction of a session that is given up ends with
    /// the connection.
    fn drop(&mut self) {
        if !self.is_lost {
            self.startup.finish_in_peace();
            self.startup.set_timeout(END_LIMIT);
            self.startup.end();
        }
    }
}

/// Rows on their way.
pub(crate) struct CopyIn<'a> {
    session: &'a mut Session,
}

impl CopyIn<'_> {
    /// Sends a piece, whose first [`COPY_HEADER_BYTES`] are laid out here.
    pub(crate) fn send(&mut self, piece: &mut [u8]) -> Result<(), SessionError> {
        let length = u32::try_from(piece.len() - 1).unwrap_or(u32::MAX);
        piece[0] = b'd';
        piece[1..COPY_HEADER_BYTES].copy_from_slice(&length.to_be_bytes());
        self.session.object()?;
        self.session.send(piece)
    }

    /// Ends the rows, and waits until the server has taken them.
    pub(crate) fn finish(self) -> Result<(), SessionError> {
        let done = |bytes: &mut BytesMut| {
            frontend::copy_done(bytes);
            Ok(())
        };
        self.session.request(done, Kind::Work)?;
        self.session.answer(Kind::Work).map(drop)
    }

    /// Gives the rows up; the server takes back those that it has.
    pub(crate) fn fail(self) {
        let failed = self
            .session
            .request(|bytes| frontend::copy_fail("stopped", bytes), Kind::Work);
        let _ = failed.and_then(|()| self.session.answer(Kind::Work));
    }
}

#[cfg(test)]
mod tests;
