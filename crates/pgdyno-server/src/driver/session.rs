//! A session of the driver's on a socket of our own: each question has a limit in time, and each
//! row one in bytes.

use crate::conninfo::{Conninfo, OWN_NAME};
use crate::error::ServerError;
use crate::server::{connect_limit, not_connected};
use crate::wire::{Refused, STARTUP_BYTES_MAX, Shared, Socket, driver_config, finish};
use futures_core::Stream;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use tokio_postgres::tls::{MakeTlsConnect, NoTls};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Error, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Bytes between two rows: more than the largest thing that a store holds.
const ROW_BYTES_MAX: usize = 48 << 20;

/// What goes on between the driver and the server: messages that answer no question, until there
/// are none for now.
type Work = Box<dyn FnMut(&mut Context<'_>) -> Poll<Option<Result<AsyncMessage, Error>>> + Send>;

/// A session whose questions are waited for.
pub struct Session {
    client: Client,
    line: Line,
}

/// Whether the driver's client or connection has something to do for the other.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The connection below a session.
struct Line {
    work: Work,
    woken: Arc<Woken>,
    socket: Shared<Socket>,
    /// For a question; `None` for as long as it takes.
    limit: Option<Duration>,
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The server's refusal, or a connection that broke.
    #[error(transparent)]
    Driver(#[from] Error),
    /// A limit on time or bytes: the connection is of no use any more.
    #[error("{0}")]
    Limit(String),
}

impl Session {
    /// Opens a session, with TLS as it is wanted, within connect_timeout all in all.
    pub fn connect(conninfo: &Conninfo) -> Result<Session, ServerError> {
        Session::connect_as(conninfo, OWN_NAME)
    }

    /// The same, seen by another application_name.
    pub fn connect_as(conninfo: &Conninfo, name: &str) -> Result<Session, ServerError> {
        let limit = connect_limit(conninfo);
        open(conninfo, name, limit).map_err(|refused| not_connected(conninfo, refused, limit))
    }

    /// How long a question may take from here on; `None` for as long as it takes.
    pub fn set_limit(&mut self, limit: Option<Duration>) {
        self.line.limit = limit;
    }

    /// Statements without parameters, their rows dropped.
    pub fn batch_execute(&mut self, sql: &str) -> Result<(), SessionError> {
        self.line.begin();
        self.line.wait(self.client.batch_execute(sql))
    }

    /// A statement; the number of rows that it changed.
    pub fn execute(&mut self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<u64, SessionError> {
        self.line.begin();
        self.line.wait(self.client.execute(sql, values))
    }

    /// All rows of a short answer.
    pub fn query(&mut self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, SessionError> {
        self.line.begin();
        self.line.wait(self.client.query(sql, values))
    }

    /// The one row of an answer.
    pub fn query_one(&mut self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Row, SessionError> {
        self.line.begin();
        self.line.wait(self.client.query_one(sql, values))
    }

    /// The row of an answer, if there is one.
    pub fn query_opt(
        &mut self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, SessionError> {
        self.line.begin();
        self.line.wait(self.client.query_opt(sql, values))
    }

    /// Hands the rows of an answer over as they come, without preparing the statement. The number
    /// of rows that it changed.
    pub fn each<P, E>(
        &mut self,
        sql: &str,
        values: impl IntoIterator<Item = (P, Type)>,
        mut act: impl FnMut(&Row) -> Result<(), E>,
    ) -> Result<u64, E>
    where
        P: tokio_postgres::types::BorrowToSql,
        E: From<SessionError>,
    {
        self.line.begin();
        let rows = self.line.wait(self.client.query_typed_raw(sql, values))?;
        let mut rows = pin!(rows);
        loop {
            self.line.refill();
            match self.line.wait_for(|context| rows.as_mut().poll_next(context))? {
                Some(row) => act(&row.map_err(SessionError::from)?)?,
                None => return Ok(rows.rows_affected().unwrap_or(0)),
            }
        }
    }
}

impl Line {
    /// What is asked from here on has all its time and bytes.
    fn begin(&self) {
        self.socket.lock().begin(self.limit, ROW_BYTES_MAX);
    }

    /// What comes next may have as many bytes as what came before.
    fn refill(&self) {
        self.socket.lock().refill();
    }

    fn wait<T>(&mut self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, SessionError> {
        let mut answer = pin!(answer);
        Ok(self.wait_for(|context| answer.as_mut().poll(context))??)
    }

    /// Does the connection's work until the answer is there.
    fn wait_for<T>(
        &mut self,
        mut answer: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<T, SessionError> {
        let waker = Waker::from(Arc::clone(&self.woken));
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(answer) = answer(&mut context) {
                return Ok(answer);
            }
            if self.socket.lock().is_over() {
                return Err(self.over());
            }
            match (self.work)(&mut context) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(error))) => return Err(self.broken(error)),
                // The answer is an error now: the connection is closed.
                Poll::Ready(None) => {
                    return match answer(&mut context) {
                        Poll::Ready(answer) => Ok(answer),
                        Poll::Pending => Err(SessionError::Limit("the connection is closed".into())),
                    };
                }
                // An answer that has come, or a question that is new.
                Poll::Pending if self.woken.0.swap(false, Ordering::Relaxed) => {}
                Poll::Pending => {
                    let waited = self.socket.lock().wait_or_read();
                    match waited {
                        Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(self.over()),
                        Err(error) => return Err(SessionError::Limit(error.to_string())),
                        Ok(()) => {}
                    }
                }
            }
        }
    }

    fn over(&self) -> SessionError {
        let waited_s = self.limit.unwrap_or_default().as_secs();
        SessionError::Limit(match self.socket.lock().received_bytes() {
            0 => format!("the server said nothing for {waited_s} s"),
            bytes => format!("the server sent {bytes} bytes and no end of its answer within {waited_s} s"),
        })
    }

    fn broken(&self, error: Error) -> SessionError {
        let system = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<io::Error>());
        match system.map(io::Error::kind) {
            Some(io::ErrorKind::TimedOut) => self.over(),
            Some(io::ErrorKind::QuotaExceeded) => {
                SessionError::Limit(system.map_or_else(String::new, |system| {
                    format!("the server does not end its answer: {system}")
                }))
            }
            _ => SessionError::Driver(error),
        }
    }
}

fn open(conninfo: &Conninfo, name: &str, limit: Duration) -> Result<Session, Refused> {
    let deadline = Instant::now() + limit;
    let socket = Socket::connect(conninfo, deadline, STARTUP_BYTES_MAX).map_err(Refused::Socket)?;
    let socket = Shared::new(socket);
    let (config, host) = driver_config(conninfo, name);
    let (client, work): (Client, Work) = match conninfo.tls() {
        Some(tls) => {
            let mut maker = MakeRustlsConnect::new(rustls::ClientConfig::clone(tls));
            let Ok(made) = MakeTlsConnect::<Shared<Socket>>::make_tls_connect(&mut maker, &host);
            let (client, mut connection) = finish(config.connect_raw(socket.clone(), made), &socket)?;
            (client, Box::new(move |context| connection.poll_message(context)))
        }
        None => {
            let (client, mut connection) = finish(config.connect_raw(socket.clone(), NoTls), &socket)?;
            (client, Box::new(move |context| connection.poll_message(context)))
        }
    };
    let line = Line {
        work,
        woken: Arc::default(),
        socket,
        limit: None,
    };
    Ok(Session { client, line })
}
