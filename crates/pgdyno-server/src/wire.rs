//! The bytes of a connection for questions: statements over a socket that blocks up to a limit. The
//! driver opens the session (TLS, passwords) and then leaves the stream to this. Every answer has a
//! limit in time and in bytes, which the driver does not have. What is asked ten times a second on
//! a busy machine finds all caches cold: a runtime, its timers and channels cost more there than
//! the answer.

mod error;
mod socket;
#[cfg(test)]
mod tests;

pub(crate) use error::{LinkError, brief};

use crate::conninfo::Conninfo;
use crate::own::marked;
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{
    DataRowBody, ErrorResponseBody, Header, Message, RowDescriptionBody,
};
use postgres_protocol::message::frontend;
pub(crate) use socket::Socket;
use std::borrow::Cow;
use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, NoTls, TlsConnect, TlsStream};
use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres_rustls::MakeRustlsConnect;

/// So much is read at once; most answers are smaller.
const READ_BYTES: usize = 16 << 10;
/// No answer to a question of ours is near this; a server that sends more is not a server.
const ANSWER_BYTES_MAX: usize = 32 << 20;
/// What opening a session may take; nothing in it is near this.
pub(crate) const STARTUP_BYTES_MAX: usize = 1 << 20;
/// What a row and a value cost beside their bytes: an answer of many small ones takes more memory
/// than its bytes.
const OVERHEAD_BYTES: usize = 64;
/// How long a session's end may take to be sent.
const END_LIMIT: Duration = Duration::from_millis(100);
/// Format of parameters and results.
const BINARY: i16 = 1;

/// A stream that the driver has while it opens the session, and that is ours all the time.
pub(crate) struct Shared<S>(Arc<Mutex<S>>);

impl<S> Shared<S> {
    pub(crate) fn new(stream: S) -> Shared<S> {
        Shared(Arc::new(Mutex::new(stream)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, S> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Clone for Shared<S> {
    fn clone(&self) -> Self {
        Shared(Arc::clone(&self.0))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Shared<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.lock()).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Shared<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.lock()).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.lock()).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.lock()).poll_shutdown(context)
    }
}

impl<S: TlsStream + Unpin> TlsStream for Shared<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.lock().channel_binding()
    }
}

/// What bytes are read from and written to.
trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

/// Where the encrypted stream is left, once there is one.
type Kept = Arc<Mutex<Option<Box<dyn Duplex>>>>;

/// Makes a stream encrypted, and keeps a hand on it.
struct Keeping<T> {
    inner: T,
    kept: Kept,
}

impl<S, T> TlsConnect<S> for Keeping<T>
where
    T: TlsConnect<S>,
    T::Stream: Send + 'static,
    T::Future: Send + 'static,
    T::Error: 'static,
{
    type Stream = Shared<T::Stream>;
    type Error = T::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Stream, T::Error>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        let (connecting, kept) = (self.inner.connect(stream), self.kept);
        Box::pin(async move {
            let shared = Shared::new(connecting.await?);
            *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(shared.clone()));
            Ok(shared)
        })
    }
}

/// A row of text values, NULL as `None`.
pub(crate) type TextRow = Vec<Option<String>>;

/// Why there is no session.
pub(crate) enum Refused {
    /// The socket could not be opened or used.
    Socket(io::Error),
    /// The server, or its certificate.
    Driver(tokio_postgres::Error),
}

/// A prepared statement: its name, and the types of its columns.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    name: String,
    types: Arc<[Type]>,
}

/// How a question is asked.
pub(crate) enum Way<'a> {
    /// By a statement that is there.
    Prepared(&'a Statement),
    /// By its text, with lists of numbers for all parameters.
    Text(&'a str),
}

/// A row of an answer.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    types: Arc<[Type]>,
    body: DataRowBody,
}

impl Row {
    /// The value of a column, where it is of this type.
    pub(crate) fn try_get<'a, T: FromSql<'a>>(
        &'a self,
        at: usize,
    ) -> Result<T, Box<dyn Error + Sync + Send>> {
        let kind = self.types.get(at).ok_or("no such column")?;
        if !T::accepts(kind) {
            return Err(format!("a value of type {kind}").into());
        }
        let range = self.body.ranges().nth(at)?.ok_or("no such column")?;
        let bytes = range.and_then(|range| self.body.buffer().get(range));
        T::from_sql_nullable(kind, bytes)
    }

    /// All values, as they came.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.body.buffer()
    }
}

/// A session that is open.
pub(crate) struct Wire {
    socket: Shared<Socket>,
    stream: Box<dyn Duplex>,
    output: BytesMut,
    /// What a call reads.
    read: Box<[u8]>,
    /// What was read and is not a whole message yet.
    input: BytesMut,
    /// Names that were given.
    names: u64,
    /// Statements that are not needed any more.
    forgotten: Vec<Statement>,
    /// Messages since [`Wire::begin`], by their tags.
    received: Vec<(u8, u64)>,
    /// What the answers since then may still cost.
    bytes_left: usize,
}

impl Wire {
    /// Opens a session, which is seen by this application_name.
    pub(crate) fn connect(conninfo: &Conninfo, name: &str, limit: Duration) -> Result<Wire, Refused> {
        let deadline = Instant::now() + limit;
        let socket = Socket::connect(conninfo, deadline, STARTUP_BYTES_MAX);
        let socket = Shared::new(socket.map_err(Refused::Socket)?);
        let (config, name) = driver_config(conninfo, name);
        let kept = Kept::default();
        match conninfo.tls() {
            Some(tls) => {
                let mut maker = MakeRustlsConnect::new(rustls::ClientConfig::clone(tls));
                let Ok(made) = MakeTlsConnect::<Shared<Socket>>::make_tls_connect(&mut maker, &name);
                let keeping = Keeping {
                    inner: made,
                    kept: Arc::clone(&kept),
                };
                drop(finish(config.connect_raw(socket.clone(), keeping), &socket)?);
            }
            None => drop(finish(config.connect_raw(socket.clone(), NoTls), &socket)?),
        }
        let encrypted = kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        if encrypted.is_none() {
            socket.lock().block().map_err(Refused::Socket)?;
        }
        Ok(Wire {
            stream: encrypted.unwrap_or_else(|| Box::new(socket.clone())),
            socket,
            output: BytesMut::new(),
            read: vec![0; READ_BYTES].into_boxed_slice(),
            input: BytesMut::new(),
            names: 0,
            forgotten: Vec::new(),
            received: Vec::new(),
            bytes_left: ANSWER_BYTES_MAX,
        })
    }

    /// What is asked from here on is to be answered within this time.
    pub(crate) fn begin(&mut self, limit: Duration) {
        self.socket.lock().begin(Some(limit), ANSWER_BYTES_MAX);
        self.output.clear();
        self.received.clear();
        self.bytes_left = ANSWER_BYTES_MAX;
    }

    /// Ends the session in order, where it lives.
    pub(crate) fn end(mut self) {
        self.begin(END_LIMIT);
        frontend::terminate(&mut self.output);
        // A server that does not take it notices that the connection is closed.
        let _ = self.send();
    }

    /// Statements without parameters, all at once: the rows of each as text.
    pub(crate) fn texts(&mut self, sql: &str) -> Result<Result<Vec<Vec<TextRow>>, LinkError>, LinkError> {
        frontend::query(sql, &mut self.output).map_err(garbled)?;
        self.send()?;
        let (mut each, mut rows) = (Vec::new(), Vec::new());
        let mut refused = None;
        loop {
            let message = match self.message() {
                Ok(message) => message,
                // A server that ends the session gives its reason before.
                Err(LinkError::Down(_)) if refused.is_some() => break,
                Err(error) => return Err(error),
            };
            match message {
                Message::DataRow(body) if refused.is_none() => rows.push(self.text_row(&body)?),
                Message::CommandComplete(_) => {
                    self.charge(OVERHEAD_BYTES)?;
                    each.push(std::mem::take(&mut rows));
                }
                Message::ErrorResponse(body) => {
                    let (reason, sqlstate) = error_fields(&body).map_err(garbled)?;
                    refused = refused.or(Some(LinkError::Said { reason, sqlstate }));
                }
                Message::ReadyForQuery(_) => break,
                _ => {}
            }
        }
        Ok(match refused {
            Some(error) => Err(error),
            None => Ok(each),
        })
    }

    /// A row's values. A database without an encoding (SQL_ASCII) may hold what is not text at all.
    fn text_row(&mut self, body: &DataRowBody) -> Result<TextRow, LinkError> {
        let mut row = Vec::new();
        let mut ranges = body.ranges();
        self.charge(OVERHEAD_BYTES)?;
        while let Some(range) = ranges.next().map_err(garbled)? {
            self.charge(OVERHEAD_BYTES + range.as_ref().map_or(0, ExactSizeIterator::len))?;
            let bytes = range.and_then(|range| body.buffer().get(range));
            let text = bytes.map(|bytes| std::str::from_utf8(bytes).map(str::to_owned));
            row.push(text.transpose().map_err(|_| LinkError::NoText)?);
        }
        Ok(row)
    }

    /// Counts what an answer costs in memory.
    fn charge(&mut self, bytes: usize) -> Result<(), LinkError> {
        match self.bytes_left.checked_sub(bytes) {
            Some(left) => {
                self.bytes_left = left;
                Ok(())
            }
            None => Err(self.flood()),
        }
    }

    /// What the server has sent since the question, instead of an answer with an end.
    fn flood(&self) -> LinkError {
        LinkError::Flood(error::sent(self.socket.lock().received_bytes(), &self.received))
    }

    /// Statements without answers.
    pub(crate) fn run(&mut self, sql: &str) -> Result<Result<(), LinkError>, LinkError> {
        let marked: Vec<Cow<'_, str>> = sql.split(';').map(marked).collect();
        frontend::query(&marked.join(";"), &mut self.output).map_err(garbled)?;
        self.send()?;
        Ok(self.answer(&Arc::from([]))?.map(|_| ()))
    }

    /// Prepares a statement.
    pub(crate) fn prepare(&mut self, sql: &str) -> Result<Result<Statement, LinkError>, LinkError> {
        self.names += 1;
        let name = format!("s{}", self.names);
        for statement in self.forgotten.drain(..) {
            frontend::close(b'S', &statement.name, &mut self.output).map_err(broken)?;
        }
        frontend::parse(&name, &marked(sql), [], &mut self.output).map_err(garbled)?;
        frontend::describe(b'S', &name, &mut self.output).map_err(broken)?;
        frontend::sync(&mut self.output);
        self.send()?;
        let answer = self.answer(&Arc::from([]))?;
        Ok(answer.map(|(_, types)| Statement { name, types }))
    }

    /// The server need not keep it; it is closed with what is prepared next.
    pub(crate) fn forget(&mut self, statement: Statement) {
        self.forgotten.push(statement);
    }

    /// Lays out a question; all are sent by [`Wire::send`], and then each has its [`Wire::rows`].
    pub(crate) fn ask(&mut self, way: &Way<'_>, parameters: &[&(dyn ToSql + Sync)]) -> Result<(), LinkError> {
        let output = &mut self.output;
        let name = match way {
            Way::Prepared(statement) => statement.name.as_str(),
            Way::Text(sql) => {
                let kinds = parameters.iter().map(|_| Type::INT8_ARRAY.oid());
                frontend::parse("", &marked(sql), kinds, output).map_err(garbled)?;
                ""
            }
        };
        let bound = frontend::bind(
            "",
            name,
            parameters.iter().map(|_| BINARY),
            parameters,
            |parameter, output| match parameter.to_sql_checked(&Type::INT8_ARRAY, output)? {
                tokio_postgres::types::IsNull::Yes => Ok(postgres_protocol::IsNull::Yes),
                tokio_postgres::types::IsNull::No => Ok(postgres_protocol::IsNull::No),
            },
            Some(BINARY),
            output,
        );
        bound.map_err(|error| match error {
            frontend::BindError::Conversion(error) => LinkError::Down(error.to_string()),
            frontend::BindError::Serialization(error) => broken(error),
        })?;
        if matches!(way, Way::Text(_)) {
            frontend::describe(b'P', "", output).map_err(broken)?;
        }
        frontend::execute("", 0, output).map_err(broken)?;
        frontend::sync(output);
        Ok(())
    }

    /// The next question's rows, or what the server says instead.
    pub(crate) fn rows(&mut self, way: &Way<'_>) -> Result<Result<Vec<Row>, LinkError>, LinkError> {
        let types = match way {
            Way::Prepared(statement) => Arc::clone(&statement.types),
            Way::Text(_) => Arc::from([]),
        };
        Ok(self.answer(&types)?.map(|(rows, _)| rows))
    }

    /// Sends what was laid out.
    pub(crate) fn send(&mut self) -> Result<(), LinkError> {
        let (stream, socket) = (&mut self.stream, &self.socket);
        let mut sent = 0;
        while sent < self.output.len() {
            let part = &self.output[sent..];
            sent += ready(socket, |context| Pin::new(&mut *stream).poll_write(context, part))?;
        }
        self.output.clear();
        ready(socket, |context| Pin::new(&mut *stream).poll_flush(context))
    }

    /// All up to the next ReadyForQuery: rows, and the types of the columns as of last.
    #[expect(clippy::type_complexity, reason = "a step of its callers")]
    fn answer(
        &mut self,
        types: &Arc<[Type]>,
    ) -> Result<Result<(Vec<Row>, Arc<[Type]>), LinkError>, LinkError> {
        let mut types = Arc::clone(types);
        let mut rows = Vec::new();
        let mut said = None;
        loop {
            match self.message()? {
                Message::RowDescription(body) => types = types_of(&body).map_err(garbled)?,
                Message::DataRow(body) => {
                    self.charge(OVERHEAD_BYTES + body.buffer().len())?;
                    rows.push(Row {
                        types: Arc::clone(&types),
                        body,
                    });
                }
                Message::ErrorResponse(body) => match error_of(&body).map_err(garbled)? {
                    error @ LinkError::Down(_) => return Err(error),
                    error => said = said.or(Some(error)),
                },
                Message::ReadyForQuery(_) => {
                    return Ok(match said {
                        Some(error) => Err(error),
                        None => Ok((rows, types)),
                    });
                }
                // Acknowledgements, notices, parameters: nothing that was asked for.
                _ => {}
            }
        }
    }

    /// The next message. What belongs to copying is refused at once: nothing here copies.
    fn message(&mut self) -> Result<Message, LinkError> {
        loop {
            if let Some(header) = Header::parse(&self.input).map_err(garbled)? {
                let tag = header.tag();
                if let b'G' | b'H' | b'W' | b'd' | b'c' = tag {
                    let name = error::message_name(tag);
                    return Err(LinkError::Protocol(format!(
                        "it sent {name}, and nothing is being copied"
                    )));
                }
                let length = usize::try_from(header.len()).unwrap_or(usize::MAX);
                if length > ANSWER_BYTES_MAX {
                    let name = error::message_name(tag);
                    return Err(LinkError::Protocol(format!(
                        "it announced a {name} message of {length} bytes"
                    )));
                }
                if self.input.len() > length {
                    match self.received.iter_mut().find(|(known, _)| *known == tag) {
                        Some((_, count)) => *count += 1,
                        None => self.received.push((tag, 1)),
                    }
                }
            }
            if let Some(message) = Message::parse(&mut self.input).map_err(garbled)? {
                return Ok(message);
            }
            self.read()?;
        }
    }

    fn read(&mut self) -> Result<(), LinkError> {
        let mut buffer = ReadBuf::new(&mut self.read);
        let stream = &mut self.stream;
        let read = ready(&self.socket, |context| {
            Pin::new(&mut *stream).poll_read(context, &mut buffer)
        });
        match read {
            // A server that goes on sending is not silent.
            Err(LinkError::Silent) if self.socket.lock().received_bytes() > 0 => return Err(self.flood()),
            Err(LinkError::Flood(_)) => return Err(self.flood()),
            other => other?,
        }
        if buffer.filled().is_empty() {
            return Err(LinkError::Down("the server closed the connection".into()));
        }
        self.input.extend_from_slice(buffer.filled());
        Ok(())
    }
}

/// What the driver must know to open a session, and the name that TLS is for; the way there is
/// found without it.
pub(crate) fn driver_config(conninfo: &Conninfo, name: &str) -> (Config, String) {
    let known = conninfo.config();
    let mut config = Config::new();
    config
        .application_name(conninfo.session_name(name))
        .ssl_mode(known.get_ssl_mode())
        .ssl_negotiation(known.get_ssl_negotiation())
        .channel_binding(known.get_channel_binding());
    if let Some(user) = known.get_user() {
        config.user(user);
    }
    if let Some(password) = known.get_password() {
        config.password(password);
    }
    if let Some(database) = known.get_dbname() {
        config.dbname(database);
    }
    if let Some(options) = known.get_options() {
        config.options(options);
    }
    let host = match conninfo.host() {
        Host::Tcp(name) => name,
        // No TLS there, as with libpq.
        Host::Unix(_) => {
            if conninfo.address().is_none() {
                config.ssl_mode(SslMode::Disable);
            }
            String::new()
        }
    };
    (config, host)
}

/// Does all of the driver's work; its client and connection are let go, for the stream is ours too.
pub(crate) fn finish<T>(
    opening: impl Future<Output = Result<T, tokio_postgres::Error>>,
    socket: &Shared<Socket>,
) -> Result<T, Refused> {
    let mut opening = std::pin::pin!(opening);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match opening.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => return outcome.map_err(Refused::Driver),
            Poll::Pending => socket.lock().wait().map_err(Refused::Socket)?,
        }
    }
}

/// Does it, waiting where it cannot be done yet.
fn ready<T>(
    socket: &Shared<Socket>,
    mut act: impl FnMut(&mut Context<'_>) -> Poll<io::Result<T>>,
) -> Result<T, LinkError> {
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match act(&mut context) {
            Poll::Ready(outcome) => return outcome.map_err(broken),
            Poll::Pending => socket.lock().wait().map_err(broken)?,
        }
    }
}

fn broken(error: io::Error) -> LinkError {
    match error.kind() {
        io::ErrorKind::TimedOut => LinkError::Silent,
        io::ErrorKind::QuotaExceeded => LinkError::Flood(error.to_string()),
        _ => LinkError::Down(brief(&error.to_string())),
    }
}

/// What cannot be read as a message.
fn garbled(error: io::Error) -> LinkError {
    LinkError::Protocol(brief(&error.to_string()))
}

fn types_of(body: &RowDescriptionBody) -> io::Result<Arc<[Type]>> {
    let types = body
        .fields()
        .map(|field| Ok(Type::from_oid(field.type_oid()).unwrap_or(Type::UNKNOWN)));
    Ok(types.collect::<Vec<Type>>()?.into())
}

/// What the server says. 57P: it ends the session, or all of them.
fn error_of(body: &ErrorResponseBody) -> io::Result<LinkError> {
    let (reason, sqlstate) = error_fields(body)?;
    Ok(match sqlstate.starts_with("57P") {
        true => LinkError::Down(reason),
        false => LinkError::Said { reason, sqlstate },
    })
}

/// The server's message and its SQLSTATE, as long as they are read by people.
fn error_fields(body: &ErrorResponseBody) -> io::Result<(String, String)> {
    let (mut reason, mut sqlstate) = (String::new(), String::new());
    let mut fields = body.fields();
    while let Some(field) = fields.next()? {
        let value = || brief(&String::from_utf8_lossy(field.value_bytes()));
        match field.type_() {
            b'M' => reason = value(),
            b'C' => sqlstate = value(),
            _ => {}
        }
    }
    Ok((reason, sqlstate))
}
