//! A connection for questions and settings, apart from the load.

use crate::asker::{Asker, NoAnswer, NoConnection};
use crate::conninfo::Conninfo;
use crate::given::Given;
use postgres::error::SqlState;
use postgres::{NoTls, SimpleQueryMessage, SimpleQueryRow};
use rustls::ClientConfig;
use std::fmt;
use std::time::Duration;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Oldest version that can be read at all.
pub(crate) const VERSION_MIN: u32 = 13;
/// No statement of pgdyno's own runs longer than this on somebody's server.
const STATEMENT_TIMEOUT_MS: u32 = 60_000;
/// How much longer than its own limit on a statement a server may stay silent: it may be busy, and the way is long.
const GRACE: Duration = Duration::from_secs(5);
/// For a connection that names no limit, as a sandbox's.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of ours that nobody confirms for so long go to a host that is gone.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);
/// A host that is gone while its answer is waited for is noticed within half a minute too.
const KEEPALIVES_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVES_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVES_RETRIES: u32 = 3;
/// The driver's own, where none is given.
const DRIVERS_KEEPALIVES_IDLE: Duration = Duration::from_hours(2);

/// Why a server could not be reached or asked.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Not a connection string.
    #[error("{} is neither a sandbox nor a connection string", Given(word))]
    NotATarget {
        /// What was given.
        word: String,
    },
    /// A connection string that cannot be read. It is not quoted, for it may hold a password.
    #[error(
        "the connection string cannot be read; expected key=value pairs or postgresql://user@host:port/database"
    )]
    ConnectionString,
    /// A word of libpq's that asks for more than there is.
    #[error("the connection string holds \"{word}\" in a way that pgdyno does not do")]
    NotDone {
        /// libpq's word.
        word: &'static str,
    },
    /// Lists of hosts, addresses and ports that do not go together.
    #[error("the connection string cannot be used: {reason}")]
    Hosts {
        /// Which list, and what is wrong with it.
        reason: String,
    },
    /// A word with a meaning that nobody knows.
    #[error("{name} is {}; expected {}", Given(word), expected(name))]
    Word {
        /// libpq's word.
        name: &'static str,
        /// What was given for it.
        word: String,
    },
    /// All of several servers were asked, or one that is not what is wanted.
    #[error("no server for target_session_attrs={wanted}: {each}")]
    NoneFits {
        /// target_session_attrs.
        wanted: String,
        /// Each server with the reason.
        each: String,
    },
    /// A word that libpq does not know either.
    #[error(
        "sslmode {} is unknown; there are disable, allow, prefer, require, verify-ca and verify-full",
        Given(word)
    )]
    SslMode {
        /// As given.
        word: String,
    },
    /// A service without an entry.
    #[error("there is no service {} in {}", Given(name), Given(path))]
    Service {
        /// Its name.
        name: String,
        /// The service file.
        path: String,
    },
    /// Certificates or keys that cannot be used.
    #[error("TLS cannot be set up: {reason}")]
    Tls {
        /// Which file, and why.
        reason: String,
    },
    /// Nobody there.
    #[error("no server answers for {target}: {reason}")]
    Unreachable {
        /// Database, place, user.
        target: String,
        /// The system's words.
        reason: String,
    },
    /// Secrecy or proof of identity is wanted and cannot be had.
    #[error("no TLS with the server for {target}: {reason}")]
    NoTls {
        /// Database, place, user.
        target: String,
        /// What is wrong with the server's TLS.
        reason: String,
    },
    /// It answers, and takes no connection now.
    #[error("the server refused the connection for {target}: {reason} (SQLSTATE {sqlstate})")]
    Refused {
        /// Database, place, user.
        target: String,
        /// The server's words.
        reason: String,
        /// Error code.
        sqlstate: String,
    },
    /// Wrong user or password.
    #[error("the server refused the login for {target}: {reason}")]
    Login {
        /// Database, place, user.
        target: String,
        /// The server's words.
        reason: String,
    },
    /// No such database.
    #[error("there is no such database: {target}")]
    NoDatabase {
        /// Database, place, user.
        target: String,
    },
    /// Too old to be read.
    #[error("PostgreSQL {version} at {place} is too old; pgdyno reads {VERSION_MIN} and later")]
    TooOld {
        /// Host and port.
        place: String,
        /// Its version.
        version: u32,
    },
    /// A statement failed.
    #[error("{what}: {reason} (SQLSTATE {sqlstate})")]
    Statement {
        /// What was being done.
        what: String,
        /// The server's words.
        reason: String,
        /// Error code.
        sqlstate: String,
    },
    /// The connection broke.
    #[error("{what}: the connection to the server broke: {reason}")]
    Broken {
        /// What was being done.
        what: String,
        /// The system's words.
        reason: String,
    },
    /// It has the question and says nothing.
    #[error("{what}: the server said nothing for {waited_s} s, and the connection was given up")]
    Silent {
        /// What was being done.
        what: String,
        /// How long it was waited for.
        waited_s: u64,
    },
    /// An answer that does not look as documented.
    #[error("{what}: expected {expected}, the server said \"{found}\"")]
    Answer {
        /// What was being done.
        what: String,
        /// What should have come.
        expected: &'static str,
        /// What came.
        found: String,
    },
}

impl ServerError {
    /// What to do about it.
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
                "does the server, or its host, stand still? a process in state T or D (ps) says so; so does a network \
                 that drops packets"
            }
            ServerError::TooOld { .. } => "upgrade the server; experiments need 14 or later",
            _ => return None,
        })
    }

    /// From the driver's; `what` says what was being done.
    pub(crate) fn from_postgres(what: &str, error: &postgres::Error) -> ServerError {
        let what = what.to_owned();
        match error.as_db_error() {
            Some(db) => ServerError::Statement {
                what,
                reason: db.message().to_owned(),
                sqlstate: db.code().code().to_owned(),
            },
            None => ServerError::Broken {
                what,
                reason: innermost(error),
            },
        }
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
    /// 18 of 18.6.
    pub major: u32,
    /// 6 of 18.6.
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
pub(crate) type Row = Vec<Option<String>>;

fn connect_limit(conninfo: &Conninfo) -> Duration {
    let limit = conninfo.config().get_connect_timeout();
    limit.copied().unwrap_or(CONNECT_TIMEOUT)
}

/// What connects, and how long it may take all in all.
pub(crate) fn connector(
    conninfo: &Conninfo,
) -> (
    impl FnOnce() -> Result<postgres::Client, postgres::Error> + Send + 'static,
    Duration,
) {
    let (mut config, tls) = (conninfo.config().clone(), conninfo.tls().cloned());
    config.application_name("pgdyno");
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(TCP_USER_TIMEOUT);
    }
    if config.get_keepalives_idle() == DRIVERS_KEEPALIVES_IDLE {
        config.keepalives_idle(KEEPALIVES_IDLE);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(KEEPALIVES_INTERVAL);
    }
    if config.get_keepalives_retries().is_none() {
        config.keepalives_retries(KEEPALIVES_RETRIES);
    }
    let connect = move || match tls {
        Some(tls) => config.connect(MakeRustlsConnect::new(ClientConfig::clone(&tls))),
        None => config.connect(NoTls),
    };
    (connect, connect_limit(conninfo))
}

/// A connection that has passed authentication, within connect_timeout all in all.
fn log_in(conninfo: &Conninfo) -> Result<Asker, ServerError> {
    let (connect, limit) = connector(conninfo);
    Asker::connect(connect, limit).map_err(|why| not_connected(conninfo, why))
}

pub(crate) fn not_connected(conninfo: &Conninfo, why: NoConnection) -> ServerError {
    let target = conninfo.to_string();
    let limit = connect_limit(conninfo);
    let reason = match why {
        NoConnection::Refused(error) => return refusal(target, &error),
        NoConnection::NoThread(error) => format!("the system refused a thread: {error}"),
        NoConnection::Silent => format!("nothing within {} s (connect_timeout)", limit.as_secs()),
        NoConnection::Gone => "the driver gave up".into(),
    };
    ServerError::Unreachable { target, reason }
}

/// Why there is no connection.
pub(crate) fn refusal(target: String, error: &postgres::Error) -> ServerError {
    let Some(db) = error.as_db_error() else {
        let reason = innermost(error);
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
    let reason = db.message().to_owned();
    match db.code() {
        code if *code == SqlState::INVALID_CATALOG_NAME => ServerError::NoDatabase { target },
        code if code.code().starts_with("28") => ServerError::Login { target, reason },
        code => ServerError::Refused {
            target,
            reason,
            sqlstate: code.code().to_owned(),
        },
    }
}

/// A row's values. A database without an encoding (SQL_ASCII) may hold what is no text at all.
fn texts(what: &str, row: &SimpleQueryRow) -> Result<Row, ServerError> {
    (0..row.len())
        .map(|column| {
            let text = row.try_get(column).map_err(|_| ServerError::Answer {
                what: what.to_owned(),
                expected: "text in UTF-8",
                found: "something else".into(),
            })?;
            Ok(text.map(str::to_owned))
        })
        .collect()
}

/// A connected server.
pub struct Server {
    asker: Asker,
    conninfo: Conninfo,
    version: Version,
    statements: u64,
    /// How long an answer is waited for; `None` for as long as it takes.
    patience: Option<Duration>,
}

impl Server {
    /// Connects and finds out the version.
    pub fn connect(conninfo: &Conninfo) -> Result<Server, ServerError> {
        let mut server = Server::enter(conninfo)?;
        server.limit_statements(STATEMENT_TIMEOUT_MS)?;
        Ok(server)
    }

    /// The same without a limit, for a first look at what is there.
    pub(crate) fn enter(conninfo: &Conninfo) -> Result<Server, ServerError> {
        let asker = log_in(conninfo)?;
        let mut server = Server {
            asker,
            conninfo: conninfo.clone(),
            version: Version::from_number(0),
            statements: 0,
            patience: Some(connect_limit(conninfo)),
        };
        let what = "asking for the version";
        let number = server.value(what, "SHOW server_version_num")?.unwrap_or_default();
        let number: u32 = number.parse().map_err(|_| ServerError::Answer {
            what: what.into(),
            expected: "a number",
            found: number.clone(),
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

    /// Behind a pooler the session goes on to others, who never asked for a limit: there is none then.
    fn limit_statements(&mut self, limit_ms: u32) -> Result<(), ServerError> {
        self.patience = (limit_ms > 0).then(|| Duration::from_millis(limit_ms.into()) + GRACE);
        if self.conninfo.is_proxied() {
            return Ok(());
        }
        self.execute(
            "limiting the statement time",
            &format!("SET statement_timeout = {limit_ms}"),
        )
    }

    /// What follows takes as long as it takes.
    pub fn without_limit(&mut self) -> Result<(), ServerError> {
        self.limit_statements(0)
    }

    /// The server's version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// How it was reached.
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
        Ok(self.ask(what, &statements.join(";\n"), Some(patience))?.0)
    }

    /// The rows of each statement of `sql`, and how long all of it took.
    fn ask(
        &mut self,
        what: &str,
        sql: &str,
        patience: Option<Duration>,
    ) -> Result<(Vec<Vec<Row>>, Duration), ServerError> {
        self.statements += 1;
        let answer = self.asker.ask(sql, patience).map_err(|why| match why {
            NoAnswer::Silent => ServerError::Silent {
                what: what.to_owned(),
                waited_s: patience.unwrap_or_default().as_secs(),
            },
            NoAnswer::Gone => ServerError::Broken {
                what: what.to_owned(),
                reason: "it was given up before".into(),
            },
        })?;
        let messages = answer.outcome.map_err(|e| ServerError::from_postgres(what, &e))?;
        let mut each = Vec::new();
        let mut rows = Vec::new();
        for message in &messages {
            match message {
                SimpleQueryMessage::Row(row) => rows.push(texts(what, row)?),
                SimpleQueryMessage::CommandComplete(_) => each.push(std::mem::take(&mut rows)),
                _ => {}
            }
        }
        Ok((each, answer.took))
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
