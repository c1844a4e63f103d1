//! A connection for questions and settings, apart from the load.

use crate::conninfo::{Conninfo, OWN_NAME};
use crate::given::Given;
use crate::own::marked;
use crate::wire::{LinkError, Refused, TextRow, Wire, brief};
use pgdyno_record::ErrorClass;
use postgres::error::SqlState;
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::time::{Duration, Instant};

/// Oldest version that can be read at all.
pub const VERSION_MIN: u32 = 13;
/// No statement of pgdyno's own runs longer than this on somebody's server.
const STATEMENT_TIMEOUT_MS: u32 = 60_000;
/// How much longer than its own limit on a statement a server may stay silent: it may be busy, and the way is long.
const GRACE: Duration = Duration::from_secs(5);
/// For a connection that names no limit, as a sandbox's.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Why a server could not be reached or asked.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The target is neither a sandbox nor a connection string.
    #[error("{} is neither a sandbox nor a connection string", Given(word))]
    NotATarget {
        /// The target as it was given.
        word: String,
    },
    /// A connection string that cannot be read. It is not quoted, for it may hold a password.
    #[error(
        "the connection string cannot be read; expected key=value pairs or postgresql://user@host:port/database"
    )]
    ConnectionString,
    /// A parameter of libpq that pgdyno does not implement as far.
    #[error("the connection string holds \"{word}\" in a way that pgdyno does not do")]
    NotDone {
        /// Name of the parameter, as libpq has it.
        word: &'static str,
    },
    /// Lists of hosts, addresses and ports that do not go together.
    #[error("the connection string cannot be used: {reason}")]
    Hosts {
        /// Which list, and what is wrong with it.
        reason: String,
    },
    /// A parameter with a value that libpq does not have.
    #[error("{name} is {}; expected {}", Given(word), expected(name))]
    Word {
        /// Name of the parameter, as libpq has it.
        name: &'static str,
        /// Value that was given for it.
        word: String,
    },
    /// All of several servers were asked, or one that is not what is wanted.
    #[error("no server for target_session_attrs={wanted}: {each}")]
    NoneFits {
        /// Value of target_session_attrs.
        wanted: String,
        /// Each server that was tried, with the reason.
        each: String,
    },
    /// An sslmode that libpq does not have.
    #[error(
        "sslmode {} is unknown; there are disable, allow, prefer, require, verify-ca and verify-full",
        Given(word)
    )]
    SslMode {
        /// Value of sslmode as it was given.
        word: String,
    },
    /// A service without an entry.
    #[error("there is no service {} in {}", Given(name), Given(path))]
    Service {
        /// Name of the service.
        name: String,
        /// Path of the service file that was read.
        path: String,
    },
    /// Certificates or keys that cannot be used.
    #[error("TLS cannot be set up: {reason}")]
    Tls {
        /// File that cannot be used, and why.
        reason: String,
    },
    /// No connection could be made.
    #[error("no server answers for {target}: {reason}")]
    Unreachable {
        /// Database, place and user of the connection, without a password.
        target: String,
        /// Error of the system call, or of the resolver.
        reason: String,
    },
    /// Secrecy or proof of identity is wanted and cannot be had.
    #[error("no TLS with the server for {target}: {reason}")]
    NoTls {
        /// Database, place and user of the connection, without a password.
        target: String,
        /// What is wrong with the server's TLS.
        reason: String,
    },
    /// It answers, and takes no connection now.
    #[error("the server refused the connection for {target}: {reason} (SQLSTATE {sqlstate})")]
    Refused {
        /// Database, place and user of the connection, without a password.
        target: String,
        /// Message of the server.
        reason: String,
        /// SQLSTATE of the error: "53300".
        sqlstate: String,
    },
    /// The server does not accept user or password.
    #[error("the server refused the login for {target}: {reason}")]
    Login {
        /// Database, place and user of the connection, without a password.
        target: String,
        /// Message of the server.
        reason: String,
    },
    /// The server has no such database.
    #[error("there is no such database: {target}")]
    NoDatabase {
        /// Database, place and user of the connection, without a password.
        target: String,
    },
    /// The server's version is older than pgdyno reads.
    #[error("PostgreSQL {version} at {place} is too old; pgdyno reads {VERSION_MIN} and later")]
    TooOld {
        /// Host and port of the server.
        place: String,
        /// Major version of the server.
        version: u32,
    },
    /// The server ended a statement with an error.
    #[error("{what}: {reason} (SQLSTATE {sqlstate})")]
    Statement {
        /// What the statement was for: "reading pg_stat_statements".
        what: String,
        /// Message of the server.
        reason: String,
        /// SQLSTATE of the error: "42501".
        sqlstate: String,
    },
    /// A list that ALTER SYSTEM has no words for.
    #[error("ALTER SYSTEM cannot write {name} = '{value}'; a line of postgresql.auto.conf can")]
    NotWritable {
        /// Name of the parameter.
        name: String,
        /// Value that was to be written, a list.
        value: String,
    },
    /// The connection broke during a statement.
    #[error("{what}: the connection to the server broke: {reason}")]
    Broken {
        /// What the statement was for.
        what: String,
        /// Error of the system call.
        reason: String,
    },
    /// The server has the statement and sends nothing.
    #[error("{what}: the server said nothing for {waited_s} s, and the connection was given up")]
    Silent {
        /// What the statement was for.
        what: String,
        /// Seconds that were waited for an answer.
        waited_s: u64,
    },
    /// The server sends more than any answer has.
    #[error("{what}: {sent} came from the server and no end of its answer; the connection was given up")]
    Flood {
        /// What the statement was for.
        what: String,
        /// Bytes and messages that came, in words.
        sent: String,
    },
    /// The server sends what the protocol does not allow.
    #[error(
        "{what}: the server does not keep to PostgreSQL's protocol: {reason}; the connection was given up"
    )]
    Protocol {
        /// What the statement was for.
        what: String,
        /// Message that came, and why it is not allowed.
        reason: String,
    },
    /// An answer of another form than documented.
    #[error("{what}: expected {expected}, the server said \"{found}\"")]
    Answer {
        /// What the statement was for.
        what: String,
        /// Form that was expected: "a number".
        expected: &'static str,
        /// Answer that came.
        found: String,
    },
}

impl ServerError {
    /// A target that is none is a mistake of the command line.
    pub fn class(&self) -> ErrorClass {
        match self {
            ServerError::NotATarget { .. } | ServerError::ConnectionString => ErrorClass::Usage,
            _ => ErrorClass::Failed,
        }
    }

    /// What mends it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            ServerError::NotATarget { .. } => {
                "name a sandbox as sandbox:NAME, or give a connection string such as \"host=db user=postgres\""
            }
            ServerError::Unreachable { .. } => {
                "is it running, and is this the right host and port? `pgdyno sandbox create` makes a private server"
            }
            ServerError::Login { .. } => {
                "set PGPASSWORD or a line in ~/.pgpass (readable by you alone), or name another user"
            }
            ServerError::NoDatabase { .. } => "name another with dbname=..., or create it",
            ServerError::Refused { sqlstate, .. } if sqlstate == "53300" => {
                "a larger max_connections on the server, or fewer other clients"
            }
            ServerError::NoneFits { .. } => {
                "another target_session_attrs, or the hosts that are meant; each was asked in its order"
            }
            ServerError::Silent { .. } => {
                "check whether the server or its host is stopped (a process in state T or D in ps), or the network \
                 drops packets"
            }
            ServerError::Flood { .. } | ServerError::Protocol { .. } => {
                "is this a PostgreSQL server? another program on this port, or a proxy before the server, may be at fault"
            }
            ServerError::TooOld { .. } => "upgrade the server; experiments need 14 or later",
            _ => return None,
        })
    }

    /// Whether nothing more can be asked over the connection.
    pub(crate) fn is_end(&self) -> bool {
        matches!(
            self,
            ServerError::Broken { .. }
                | ServerError::Silent { .. }
                | ServerError::Flood { .. }
                | ServerError::Protocol { .. }
        )
    }
}

/// What a word may be.
fn expected(name: &str) -> &'static str {
    match name {
        "target_session_attrs" => "any, read-write, read-only, primary, standby or prefer-standby",
        "load_balance_hosts" => "disable or random",
        "sslnegotiation" => "postgres or direct",
        _ => "a whole number of seconds",
    }
}

/// The last cause of an error: the system's own words.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Major and minor version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Major version: 18 of 18.6.
    pub major: u32,
    /// Minor version: 6 of 18.6.
    pub minor: u32,
}

impl Version {
    /// From server_version_num: 180006 is 18.6.
    pub fn from_number(number: u32) -> Version {
        Version {
            major: number / 10_000,
            minor: number % 10_000,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A row of text values, NULL as `None`.
pub(crate) type Row = TextRow;

/// How long a connection may take all in all.
pub(crate) fn connect_limit(conninfo: &Conninfo) -> Duration {
    let limit = conninfo.config().get_connect_timeout();
    limit.copied().unwrap_or(CONNECT_TIMEOUT)
}

/// Why there is no connection.
pub(crate) fn not_connected(conninfo: &Conninfo, refused: Refused, limit: Duration) -> ServerError {
    let target = conninfo.to_string();
    let error = match refused {
        Refused::Driver(error) => return refusal(target, &error, limit),
        Refused::Socket(error) => error,
    };
    let reason = socket_words(&error, limit).unwrap_or_else(|| error.to_string());
    ServerError::Unreachable { target, reason }
}

/// The words for a limit that a connection came to.
fn socket_words(error: &io::Error, limit: Duration) -> Option<String> {
    let limit = match limit.subsec_millis() {
        0 => format!("{} s", limit.as_secs()),
        _ => format!("{} ms", limit.as_millis()),
    };
    (error.kind() == io::ErrorKind::TimedOut).then(|| {
        format!("no session within {limit} (connect_timeout); what answers there may be no PostgreSQL server")
    })
}

/// Why the server, or the driver, gives no session.
pub(crate) fn refusal(target: String, error: &postgres::Error, limit: Duration) -> ServerError {
    let Some(db) = error.as_db_error() else {
        let system = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
        let reason = system
            .and_then(|system| socket_words(system, limit))
            .unwrap_or_else(|| brief(&innermost(error)));
        // The driver tells these kinds of errors by their words alone.
        return if reason.contains("password missing") {
            ServerError::Login {
                target,
                reason: "a password is required and none was given".into(),
            }
        } else if error.to_string().contains("TLS handshake") {
            ServerError::NoTls { target, reason }
        } else {
            ServerError::Unreachable { target, reason }
        };
    };
    let reason = brief(db.message());
    match db.code() {
        code if *code == SqlState::INVALID_CATALOG_NAME => ServerError::NoDatabase { target },
        code if code.code().starts_with("28") => ServerError::Login { target, reason },
        code => ServerError::Refused {
            target,
            reason,
            sqlstate: brief(code.code()),
        },
    }
}

/// Statements as one text, each with the mark of ours.
fn joined(statements: &[&str]) -> String {
    let marked: Vec<Cow<'_, str>> = statements.iter().map(|sql| marked(sql)).collect();
    marked.join(";\n")
}

/// An open connection to a server.
pub struct Server {
    /// The reason, once the connection is given up.
    wire: Result<Wire, String>,
    conninfo: Conninfo,
    version: Version,
    statements: u64,
    /// How long an answer is waited for.
    patience: Duration,
}

impl Server {
    /// Connects and finds out the version.
    pub fn connect(conninfo: &Conninfo) -> Result<Server, ServerError> {
        let mut server = Server::enter(conninfo)?;
        server.limit_statements()?;
        Ok(server)
    }

    /// The same without a limit on the server, for a first look at what is there.
    pub(crate) fn enter(conninfo: &Conninfo) -> Result<Server, ServerError> {
        let limit = connect_limit(conninfo);
        let wire = Wire::connect(conninfo, OWN_NAME, limit)
            .map_err(|refused| not_connected(conninfo, refused, limit))?;
        let mut server = Server {
            wire: Ok(wire),
            conninfo: conninfo.clone(),
            version: Version::from_number(0),
            statements: 0,
            patience: limit,
        };
        let what = "asking for the version";
        let number = server.value(what, "SHOW server_version_num")?.unwrap_or_default();
        let number: u32 = number.parse().map_err(|_| ServerError::Answer {
            what: what.into(),
            expected: "a number",
            found: brief(&number),
        })?;
        server.version = Version::from_number(number);
        if server.version.major < VERSION_MIN {
            return Err(ServerError::TooOld {
                place: conninfo.place(),
                version: server.version.major,
            });
        }
        Ok(server)
    }

    /// Behind a pooler the session goes on to others, who never asked for a limit: there is none on the server then.
    fn limit_statements(&mut self) -> Result<(), ServerError> {
        self.patience = Duration::from_millis(STATEMENT_TIMEOUT_MS.into()) + GRACE;
        if self.conninfo.is_proxied() {
            return Ok(());
        }
        self.execute(
            "limiting the statement time",
            &format!("SET statement_timeout = {STATEMENT_TIMEOUT_MS}"),
        )
    }

    /// Version of the server, as of the begin of the connection.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Parameters of the connection, with the one host that was reached.
    pub fn conninfo(&self) -> &Conninfo {
        &self.conninfo
    }

    /// Statements sent so far: each is a transaction that the server counts.
    pub fn statements(&self) -> u64 {
        self.statements
    }

    /// All rows of one statement, as text. `what` says what is being done, for an error.
    pub fn rows(&mut self, what: &str, sql: &str) -> Result<Vec<Row>, ServerError> {
        Ok(self.ask(what, sql, self.patience)?.0.concat())
    }

    /// The same of the last of several statements, which are one transaction.
    pub(crate) fn last_rows(&mut self, what: &str, statements: &[&str]) -> Result<Vec<Row>, ServerError> {
        let mut each = self.ask(what, &joined(statements), self.patience)?.0;
        Ok(each.pop().unwrap_or_default())
    }

    /// How long one statement takes from sending it to its last message, its rows dropped.
    pub fn round_trip(&mut self, what: &str, sql: &str) -> Result<Duration, ServerError> {
        Ok(self.ask(what, sql, self.patience)?.1)
    }

    /// Several statements sent at once, in one transaction, answered within `patience` all in all: the rows of each.
    pub(crate) fn batch(
        &mut self,
        what: &str,
        statements: &[&str],
        patience: Duration,
    ) -> Result<Vec<Vec<Row>>, ServerError> {
        Ok(self.ask(what, &joined(statements), patience)?.0)
    }

    /// The rows of each statement of `sql`, and how long all of it took.
    fn ask(
        &mut self,
        what: &str,
        sql: &str,
        patience: Duration,
    ) -> Result<(Vec<Vec<Row>>, Duration), ServerError> {
        self.statements += 1;
        let wire = self.wire.as_mut().map_err(|why| ServerError::Broken {
            what: what.to_owned(),
            reason: format!("it was given up before, when {why}"),
        })?;
        let begun = Instant::now();
        wire.begin(patience);
        match wire.texts(&marked(sql)) {
            Ok(Ok(each)) => Ok((each, begun.elapsed())),
            Ok(Err(refused)) => Err(refused.into_server_error(what)),
            Err(error) => {
                let what = &format!("{what} ({})", self.conninfo.place());
                // An answer that comes late must not be taken for the next question's.
                let error = match error {
                    LinkError::Silent => ServerError::Silent {
                        what: what.clone(),
                        waited_s: patience.as_secs(),
                    },
                    other => other.into_server_error(what),
                };
                self.wire = Err(error.to_string());
                Err(error)
            }
        }
    }

    /// The first value of the first row.
    pub fn value(&mut self, what: &str, sql: &str) -> Result<Option<String>, ServerError> {
        Ok(self
            .rows(what, sql)?
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().next().flatten()))
    }

    /// A statement without a result.
    pub fn execute(&mut self, what: &str, sql: &str) -> Result<(), ServerError> {
        self.rows(what, sql).map(|_| ())
    }
}

impl Drop for Server {
    /// A connection that works is ended in order when this returns: the server's own counts of sessions are waited for.
    fn drop(&mut self) {
        if let Ok(wire) = std::mem::replace(&mut self.wire, Err(String::new())) {
            wire.end();
        }
    }
}
