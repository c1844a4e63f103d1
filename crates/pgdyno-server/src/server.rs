//! A connection for questions and settings, apart from the load.

use crate::conninfo::Conninfo;
use postgres::error::SqlState;
use postgres::{Client, NoTls, SimpleQueryMessage};
use rustls::ClientConfig;
use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Oldest version that can be read at all.
pub(crate) const VERSION_MIN: u32 = 13;
/// No statement of pgdyno's own runs longer than this on somebody's server.
const STATEMENT_TIMEOUT_MS: u32 = 60_000;

/// Why a server could not be reached or asked.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Not a connection string.
    #[error("\"{word}\" is neither a sandbox nor a connection string")]
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
    #[error("{name} is \"{word}\"; expected {}", expected(name))]
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
        "sslmode \"{word}\" is unknown; there are disable, allow, prefer, require, verify-ca and verify-full"
    )]
    SslMode {
        /// As given.
        word: String,
    },
    /// A service without an entry.
    #[error("there is no service \"{name}\" in {path}")]
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
            ServerError::TooOld { .. } => "upgrade the server; experiments need 14 or later",
            _ => return None,
        })
    }

    /// From the driver's; `what` says what was being done.
    pub fn from_postgres(what: &str, error: &postgres::Error) -> ServerError {
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
type Row = Vec<Option<String>>;

/// A connection that has passed authentication, within connect_timeout all in all.
fn log_in(conninfo: &Conninfo) -> Result<Client, ServerError> {
    let target = conninfo.to_string();
    let limit = conninfo.config().get_connect_timeout().copied();
    let (sender, receiver) = channel();
    let (mut config, tls) = (conninfo.config().clone(), conninfo.tls().cloned());
    config.application_name("pgdyno");
    // The driver's own limit ends with the TCP connection, and a server may take that and then say nothing. A thread
    // that waits for such a one has nothing and is left to itself.
    let attempt = move || {
        let connected = match tls {
            Some(tls) => config.connect(MakeRustlsConnect::new(ClientConfig::clone(&tls))),
            None => config.connect(NoTls),
        };
        let _ = sender.send(connected);
    };
    let unreachable = |reason: String| ServerError::Unreachable {
        target: target.clone(),
        reason,
    };
    thread::Builder::new()
        .name("connect".into())
        .spawn(attempt)
        .map_err(|e| unreachable(format!("the system refused a thread: {e}")))?;
    let connected = match limit {
        Some(limit) => receiver.recv_timeout(limit),
        None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
    };
    match connected {
        Ok(connected) => connected.map_err(|error| refusal(target, &error)),
        Err(RecvTimeoutError::Timeout) => Err(unreachable(format!(
            "nothing within {} s (connect_timeout)",
            limit.unwrap_or_default().as_secs()
        ))),
        Err(RecvTimeoutError::Disconnected) => Err(unreachable("the driver gave up".into())),
    }
}

/// Why there is no connection.
fn refusal(target: String, error: &postgres::Error) -> ServerError {
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

/// A connected server.
pub struct Server {
    client: Client,
    conninfo: Conninfo,
    version: Version,
    statements: u64,
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
        let client = log_in(conninfo)?;
        let mut server = Server {
            client,
            conninfo: conninfo.clone(),
            version: Version::from_number(0),
            statements: 0,
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

    /// The driver itself, for statements that are prepared and timed one by one. They are not counted.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
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
        self.statements += 1;
        let messages = self
            .client
            .simple_query(sql)
            .map_err(|e| ServerError::from_postgres(what, &e))?;
        Ok(messages
            .iter()
            .filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => {
                    Some((0..row.len()).map(|i| row.get(i).map(str::to_owned)).collect())
                }
                _ => None,
            })
            .collect())
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
