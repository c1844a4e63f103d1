//! A connection of the load: start-up, authentication and preparing, done blocking before the load
//! begins.

mod waiting;

use crate::books::SqlState;
use crate::endpoint::Endpoint;
use crate::message::TERMINATE;
use crate::tls::{Tls, end_point};
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres::config::{self, Config, Host, SslMode, SslNegotiation};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};
use postgres_protocol::message::backend::{ErrorResponseBody, Message};
use postgres_protocol::message::frontend;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use waiting::Waiting;

/// Longest wait for any step of the start-up, unless the connection string sets connect_timeout.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);

/// What a server may ask for before a session is open; one is usual.
const AUTHENTICATION_STEPS_MAX: u32 = 16;
/// What a server may send until it is ready again: far more than anything that is asked here.
const STEP_BYTES_MAX: usize = 16 << 20;

/// invalid_sql_statement_name: there is no such prepared statement.
const NO_STATEMENT: &str = "26000";
/// duplicate_prepared_statement: there is one already.
const SECOND_STATEMENT: &str = "42P05";

/// Why a client could not be connected and made ready.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No connection could be made.
    #[error("no server answers at {place}: {source}")]
    Unreachable {
        /// Host and port, or socket.
        place: String,
        /// Error of the system call.
        source: io::Error,
    },
    /// The server answers with an error.
    #[error("the server at {place} refused: {message} (SQLSTATE {sqlstate})")]
    Refused {
        /// Host and port, or socket.
        place: String,
        /// Code of the error, five characters: "53300".
        sqlstate: String,
        /// Message of the server.
        message: String,
    },
    /// The server asks for a method of authentication that the engine does not have.
    #[error("the server at {place} asks for {what}, which this load engine does not speak")]
    Unsupported {
        /// Host and port, or socket.
        place: String,
        /// Name of that method.
        what: String,
    },
    /// TLS is required, and cannot be had or verified.
    #[error("no TLS with the server at {place}: {reason}")]
    Tls {
        /// Host and port.
        place: String,
        /// Error message of TLS.
        reason: String,
    },
    /// A prepared statement is not there in the session's next transaction, or another session's
    /// is.
    #[error(
        "what answers at {place} keeps no prepared statements: it is a pooler (such as pgbouncer) in transaction mode"
    )]
    NotPrepared {
        /// Host and port, or socket.
        place: String,
    },
    /// What came is not PostgreSQL's protocol.
    #[error("what answers at {place} does not speak PostgreSQL's protocol: {detail}")]
    Protocol {
        /// Host and port, or socket.
        place: String,
        /// Message that came, and why it is not expected.
        detail: String,
    },
}

impl ConnectError {
    /// What mends it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ConnectError::NotPrepared { .. } => Some(
                "--protocol extended or simple (protocol in an experiment's [load]), or pgbouncer 1.21 or later with \
                 max_prepared_statements, or its session mode",
            ),
            // insufficient_resources: of connections, mostly.
            ConnectError::Refused { sqlstate, .. } if sqlstate.starts_with("53") => {
                Some("fewer --clients, or a larger max_connections")
            }
            _ => None,
        }
    }
}

/// A socket, Unix or TCP.
#[derive(Debug)]
pub(crate) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(s) => s.read(buffer),
            Socket::Tcp(s) => s.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(s) => s.write(bytes),
            Socket::Tcp(s) => s.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Socket {
    pub(crate) fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Unix(s) => s
                .set_read_timeout(timeout)
                .and_then(|()| s.set_write_timeout(timeout)),
            Socket::Tcp(s) => s
                .set_read_timeout(timeout)
                .and_then(|()| s.set_write_timeout(timeout)),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Unix(s) => s.as_fd(),
            Socket::Tcp(s) => s.as_fd(),
        }
    }
}

/// Sockets by the clients' numbers.
pub(crate) type Sockets = Vec<(u32, Socket)>;

/// A connection that is ready for requests; the socket is in blocking mode.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) socket: Socket,
    pub(crate) tls: Option<Tls>,
}

/// Connects, authenticates, and sends what prepares the statements.
pub(crate) fn connect(endpoint: &Endpoint, prepare: Option<&[u8]>) -> Result<Connection, ConnectError> {
    let mut startup = Startup::begin(endpoint)?;
    if let Some(prepare) = prepare {
        startup.send(prepare)?;
        startup
            .until_ready()
            .map_err(|error| startup.of_prepared(error))?;
    }
    let Startup {
        socket, tls, place, ..
    } = startup;
    let socket = socket.blocking();
    Ok(Connection {
        socket: socket.map_err(|source| ConnectError::Unreachable { place, source })?,
        tls: tls.map(Tls::new),
    })
}

/// A connection that is being made, with blocking calls within a time limit; and a session on it,
/// for questions.
pub struct Startup {
    socket: Waiting,
    tls: Option<ClientConnection>,
    binding: config::ChannelBinding,
    /// Whether SCRAM was bound to the TLS channel.
    is_bound: bool,
    place: String,
    received: BytesMut,
    /// For each step: what the server may take and send until it is ready.
    limit: Duration,
    bytes_left: usize,
    /// By which the server cancels what the session does: its process and a secret.
    key: Option<(i32, i32)>,
}

impl Startup {
    /// Connects, and begins to authenticate.
    pub fn begin(endpoint: &Endpoint) -> Result<Startup, ConnectError> {
        let mut startup = Startup::reach(endpoint)?;
        startup.authenticate(&endpoint.config)?;
        Ok(startup)
    }

    /// Connects, with TLS where it is wanted.
    fn reach(endpoint: &Endpoint) -> Result<Startup, ConnectError> {
        let config = &endpoint.config;
        let place = endpoint.place();
        let limit = config.get_connect_timeout().copied().unwrap_or(STARTUP_TIMEOUT);
        let socket = Waiting::connect(endpoint, limit);
        let mut startup = Startup {
            socket: socket.map_err(|source| ConnectError::Unreachable {
                place: place.clone(),
                source,
            })?,
            tls: None,
            binding: config.get_channel_binding(),
            is_bound: false,
            place,
            received: BytesMut::with_capacity(8192),
            limit,
            bytes_left: STEP_BYTES_MAX,
            key: None,
        };
        match (&endpoint.tls, config.get_hosts().first()) {
            (Some(tls), Some(Host::Tcp(host))) => startup.secure(config, Arc::clone(tls), host)?,
            _ if config.get_ssl_mode() == SslMode::Require => {
                return Err(startup.no_tls("it is asked for, and not set up"));
            }
            _ => {}
        }
        Ok(startup)
    }

    /// Longest wait for the steps that follow.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.limit = timeout;
    }

    /// Does not check the request to stop any more.
    pub fn finish_in_peace(&mut self) {
        self.socket.stop = None;
    }

    /// Asks the server to give up what another session does, which has this key. Whether it does so
    /// in time is not to be known.
    pub fn cancel(endpoint: &Endpoint, key: (i32, i32)) {
        let mut request = BytesMut::new();
        frontend::cancel_request(key.0, key.1, &mut request);
        if let Ok(mut startup) = Startup::reach(endpoint) {
            let _ = startup.send(&request);
        }
    }

    /// By which the server cancels what the session does.
    pub fn key(&self) -> Option<(i32, i32)> {
        self.key
    }

    /// Sends requests that end with one Sync, or one simple query, and reads the replies.
    pub(crate) fn do_all(&mut self, requests: &[u8]) -> Result<(), ConnectError> {
        self.send(requests)?;
        self.until_ready()
    }

    /// Sends Terminate, and waits for nothing.
    pub fn end(&mut self) {
        let _ = self.send(TERMINATE);
    }

    /// What an error about a prepared statement is, where this session has just prepared it.
    pub(crate) fn of_prepared(&self, error: ConnectError) -> ConnectError {
        match error {
            ConnectError::Refused { sqlstate, .. }
                if [NO_STATEMENT, SECOND_STATEMENT].contains(&&*sqlstate) =>
            {
                ConnectError::NotPrepared {
                    place: self.place.clone(),
                }
            }
            other => other,
        }
    }

    /// Asks for TLS and shakes hands; a server without it is left in plain text where that is
    /// allowed.
    fn secure(&mut self, config: &Config, tls: Arc<ClientConfig>, host: &str) -> Result<(), ConnectError> {
        if config.get_ssl_mode() == SslMode::Disable {
            return Ok(());
        }
        if config.get_ssl_negotiation() == SslNegotiation::Postgres && !self.may_have_tls(config)? {
            return Ok(());
        }
        let name = ServerName::try_from(host.to_owned()).map_err(|e| self.no_tls(&e.to_string()))?;
        let mut connection = ClientConnection::new(tls, name).map_err(|e| self.no_tls(&e.to_string()))?;
        while connection.is_handshaking() {
            connection
                .complete_io(&mut self.socket)
                .map_err(|e| self.no_tls(&e.to_string()))?;
        }
        self.tls = Some(connection);
        Ok(())
    }

    /// Asks whether the server has TLS; where it has none, returns whether that will do.
    fn may_have_tls(&mut self, config: &Config) -> Result<bool, ConnectError> {
        let mut request = BytesMut::new();
        frontend::ssl_request(&mut request);
        self.send(&request)?;
        let mut answer = [0];
        self.socket
            .read_exact(&mut answer)
            .map_err(|e| self.unreachable(e))?;
        match answer[0] {
            b'S' => Ok(true),
            b'N' if config.get_ssl_mode() == SslMode::Prefer => Ok(false),
            b'N' => Err(self.no_tls("it is asked for (sslmode), and the server has none")),
            _ => Err(self.protocol("an unexpected answer to the request for TLS")),
        }
    }

    /// From here on the limits of a step hold again.
    pub fn begin_step(&mut self, limit: Duration) {
        self.limit = limit;
        self.wait_on();
        self.bytes_left = STEP_BYTES_MAX;
    }

    /// The step may last as long again.
    pub fn wait_on(&mut self) {
        self.socket.deadline = Instant::now() + self.limit;
    }

    /// Sends a part of these bytes, at least one: how many.
    pub fn send_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => rustls::Stream::new(tls, &mut self.socket).write(bytes),
            None => self.socket.write(bytes),
        }
    }

    /// Sends what the TLS below still holds.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => rustls::Stream::new(tls, &mut self.socket).flush(),
            None => Ok(()),
        }
    }

    /// Whether something has come that was not read yet.
    pub fn has_more(&self) -> bool {
        !self.received.is_empty() || self.socket.is_readable()
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), ConnectError> {
        self.begin_step(self.limit);
        let sent = match &mut self.tls {
            Some(tls) => {
                let mut stream = rustls::Stream::new(tls, &mut self.socket);
                stream.write_all(bytes).and_then(|()| stream.flush())
            }
            None => self.socket.write_all(bytes),
        };
        sent.map_err(|e| self.unreachable(e))
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => rustls::Stream::new(tls, &mut self.socket).read(buffer),
            None => self.socket.read(buffer),
        }
    }

    /// The next message of the server's.
    pub fn next_message(&mut self) -> Result<Message, ConnectError> {
        loop {
            if let Some(length) = self.announced_length()?
                && self.received.len() > length
            {
                let parsed = Message::parse(&mut self.received).map_err(|e| self.protocol(&e.to_string()))?;
                if let Some(message) = parsed {
                    return Ok(message);
                }
            }
            let mut chunk = [0_u8; 4096];
            if self.bytes_left == 0 {
                return Err(self.protocol(&format!("it sent {STEP_BYTES_MAX} bytes and is not ready")));
            }
            let limit = self.limit;
            let is_late = self.socket.deadline <= Instant::now();
            if is_late && self.bytes_left < STEP_BYTES_MAX {
                let sent = STEP_BYTES_MAX - self.bytes_left;
                let message = format!("it sent {sent} bytes in {} s and is not ready", limit.as_secs());
                return Err(ConnectError::Unreachable {
                    place: self.place.clone(),
                    source: io::Error::new(io::ErrorKind::TimedOut, message),
                });
            }
            match self.receive(&mut chunk) {
                Ok(0) => return Err(self.unreachable(io::ErrorKind::UnexpectedEof.into())),
                Ok(n) => {
                    self.bytes_left = self.bytes_left.saturating_sub(n);
                    self.received.extend_from_slice(&chunk[..n]);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.unreachable(e)),
            }
        }
    }

    /// Length field of the message at hand, with a limit: nothing in a start-up is near a megabyte.
    fn announced_length(&self) -> Result<Option<usize>, ConnectError> {
        const STARTUP_MESSAGE_MAX: u32 = 1 << 20;
        let Some(field) = self.received.get(1..5) else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([field[0], field[1], field[2], field[3]]);
        if !(4..=STARTUP_MESSAGE_MAX).contains(&length) {
            return Err(self.protocol(&format!("it announces a message of {length} bytes")));
        }
        Ok(Some(length as usize))
    }

    fn authenticate(&mut self, config: &Config) -> Result<(), ConnectError> {
        let user = config.get_user().unwrap_or("postgres").to_owned();
        let mut parameters = vec![("user", user.as_str()), ("client_encoding", "UTF8")];
        if let Some(name) = config.get_dbname() {
            parameters.push(("database", name));
        }
        parameters.push((
            "application_name",
            config.get_application_name().unwrap_or("pgdyno load"),
        ));
        if let Some(options) = config.get_options() {
            parameters.push(("options", options));
        }
        let mut bytes = BytesMut::new();
        frontend::startup_message(parameters, &mut bytes).map_err(|e| self.protocol(&e.to_string()))?;
        self.send(&bytes)?;
        for _ in 0..AUTHENTICATION_STEPS_MAX {
            match self.next_message()? {
                Message::AuthenticationOk if self.may_go_unbound() => return self.until_ready(),
                Message::AuthenticationCleartextPassword if self.may_go_unbound() => {
                    self.password(self.required_password(config)?)?;
                }
                Message::AuthenticationMd5Password(body) if self.may_go_unbound() => {
                    let hash = md5_hash(user.as_bytes(), self.required_password(config)?, body.salt());
                    self.password(hash.as_bytes())?;
                }
                Message::AuthenticationSasl(body) => {
                    let offered: Vec<String> = body
                        .mechanisms()
                        .map(|m| Ok(m.to_owned()))
                        .collect()
                        .map_err(|e| self.protocol(&e.to_string()))?;
                    self.scram(&offered, self.required_password(config)?)?;
                }
                Message::ErrorResponse(body) => return Err(self.refused(&body)),
                Message::AuthenticationOk
                | Message::AuthenticationCleartextPassword
                | Message::AuthenticationMd5Password(_) => return Err(self.unbound()),
                _ => return Err(self.unsupported("another way of authentication")),
            }
        }
        Err(self.protocol("it asks for a password again and again"))
    }

    fn required_password<'c>(&self, config: &'c Config) -> Result<&'c [u8], ConnectError> {
        config.get_password().ok_or_else(|| ConnectError::Refused {
            place: self.place.clone(),
            sqlstate: "28P01".into(),
            message: "a password is required and none was given".into(),
        })
    }

    fn password(&mut self, password: &[u8]) -> Result<(), ConnectError> {
        let mut bytes = BytesMut::new();
        frontend::password_message(password, &mut bytes).map_err(|e| self.protocol(&e.to_string()))?;
        self.send(&bytes)
    }

    fn scram(&mut self, offered: &[String], password: &[u8]) -> Result<(), ConnectError> {
        let has = |name: &str| offered.iter().any(|mechanism| mechanism == name);
        let end_point = self
            .tls
            .as_ref()
            .and_then(|tls| end_point(tls.peer_certificates()?.first()?));
        let wanted = self.binding;
        let (mechanism, binding) = match end_point {
            Some(hash) if has(SCRAM_SHA_256_PLUS) && wanted != config::ChannelBinding::Disable => {
                (SCRAM_SHA_256_PLUS, ChannelBinding::tls_server_end_point(hash))
            }
            _ if wanted == config::ChannelBinding::Require => return Err(self.unbound()),
            // A server that could have bound itself and did not say so is found out this way.
            Some(_) if wanted != config::ChannelBinding::Disable => {
                (SCRAM_SHA_256, ChannelBinding::unrequested())
            }
            _ => (SCRAM_SHA_256, ChannelBinding::unsupported()),
        };
        if !has(mechanism) {
            return Err(self.unsupported(&offered.join(", ")));
        }
        self.is_bound = mechanism == SCRAM_SHA_256_PLUS;
        let mut scram = ScramSha256::new(password, binding);
        let mut bytes = BytesMut::new();
        frontend::sasl_initial_response(mechanism, scram.message(), &mut bytes)
            .map_err(|e| self.protocol(&e.to_string()))?;
        self.send(&bytes)?;
        loop {
            match self.next_message()? {
                Message::AuthenticationSaslContinue(body) => {
                    scram
                        .update(body.data())
                        .map_err(|e| self.protocol(&e.to_string()))?;
                    let mut bytes = BytesMut::new();
                    frontend::sasl_response(scram.message(), &mut bytes)
                        .map_err(|e| self.protocol(&e.to_string()))?;
                    self.send(&bytes)?;
                }
                Message::AuthenticationSaslFinal(body) => {
                    return scram
                        .finish(body.data())
                        .map_err(|e| self.protocol(&e.to_string()));
                }
                Message::ErrorResponse(body) => return Err(self.refused(&body)),
                _ => return Err(self.protocol("an unexpected answer during authentication")),
            }
        }
    }

    /// Reads on until the server waits for a request; the first error on the way is the result.
    fn until_ready(&mut self) -> Result<(), ConnectError> {
        let mut first_error = None;
        loop {
            let message = match self.next_message() {
                Ok(message) => message,
                // A server that refuses says why, and closes.
                Err(lost) => return Err(first_error.unwrap_or(lost)),
            };
            match message {
                Message::ReadyForQuery(_) => return first_error.map_or(Ok(()), Err),
                Message::BackendKeyData(body) => self.key = Some((body.process_id(), body.secret_key())),
                Message::ErrorResponse(body) => {
                    let error = self.refused(&body);
                    // Before the first ReadyForQuery an error is the server's last message.
                    if matches!(&error, ConnectError::Refused { sqlstate, .. } if is_fatal(sqlstate)) {
                        return Err(error);
                    }
                    first_error.get_or_insert(error);
                }
                _ => {}
            }
        }
    }

    /// The server's refusal as an error.
    pub fn refused(&self, body: &ErrorResponseBody) -> ConnectError {
        let (mut sqlstate, mut message) = (SqlState::UNKNOWN.as_str().to_owned(), String::new());
        let mut fields = body.fields();
        while let Ok(Some(field)) = fields.next() {
            let value = crate::error_text::brief(field.value_bytes());
            match field.type_() {
                b'C' => sqlstate = value,
                b'M' => message = value,
                _ => {}
            }
        }
        ConnectError::Refused {
            place: self.place.clone(),
            sqlstate,
            message,
        }
    }

    /// What the system said of the connection, as an error.
    pub fn unreachable(&self, source: io::Error) -> ConnectError {
        // A blocking socket's limit comes as WouldBlock.
        let source = match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => io::Error::new(
                io::ErrorKind::TimedOut,
                format!("the server said nothing for {} s", self.limit.as_secs()),
            ),
            _ => source,
        };
        ConnectError::Unreachable {
            place: self.place.clone(),
            source,
        }
    }

    /// A password must not go to who cannot be bound to it, where that is asked for.
    fn may_go_unbound(&self) -> bool {
        self.is_bound || self.binding != config::ChannelBinding::Require
    }

    fn unbound(&self) -> ConnectError {
        self.no_tls(
            "channel_binding=require, and the server or its certificate does not offer channel binding",
        )
    }

    fn no_tls(&self, reason: &str) -> ConnectError {
        ConnectError::Tls {
            place: self.place.clone(),
            reason: reason.to_owned(),
        }
    }

    fn unsupported(&self, what: &str) -> ConnectError {
        ConnectError::Unsupported {
            place: self.place.clone(),
            what: what.to_owned(),
        }
    }

    /// What does not belong to the protocol, as an error.
    pub fn protocol(&self, detail: &str) -> ConnectError {
        ConnectError::Protocol {
            place: self.place.clone(),
            detail: detail.to_owned(),
        }
    }
}

/// Classes after which the server closes: authorisation, unknown database, too many clients,
/// shutting down.
fn is_fatal(sqlstate: &str) -> bool {
    ["28", "3D", "53", "57", "08", "0A"]
        .iter()
        .any(|class| sqlstate.starts_with(class))
}
