//! A connection for questions and settings, apart from the load.

use crate::conninfo::{Conninfo, OWN_NAME};
use crate::error::ServerError;
use crate::own::marked;
use crate::version::{VERSION_MIN, Version};
use crate::wire::{LinkError, Refused, TextRow, Wire, brief};
use pgdyno_host::LocalHost;
use postgres::error::SqlState;
use std::borrow::Cow;
use std::io;
use std::time::{Duration, Instant};

/// No statement of pgdyno's own runs longer than this on somebody's server.
const STATEMENT_TIMEOUT_MS: u32 = 60_000;
/// How much longer than its own limit on a statement a server may stay silent: it may be busy, and
/// the way is long.
const GRACE: Duration = Duration::from_secs(5);
/// For a connection that names no limit, as a sandbox's.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The last cause of an error: the system's own message.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
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
    let reason = socket_reason(&error, limit).unwrap_or_else(|| error.to_string());
    ServerError::Unreachable { target, reason }
}

/// The reason where a connection came to a limit.
fn socket_reason(error: &io::Error, limit: Duration) -> Option<String> {
    let limit = match limit.subsec_millis() {
        0 => format!("{} s", limit.as_secs()),
        _ => format!("{} ms", limit.as_millis()),
    };
    (error.kind() == io::ErrorKind::TimedOut).then(|| {
        format!(
            "no session within {limit} (connect_timeout); what answers there may not be a PostgreSQL server"
        )
    })
}

/// Why the server, or the driver, gives no session.
pub(crate) fn refusal(target: String, error: &postgres::Error, limit: Duration) -> ServerError {
    let Some(db) = error.as_db_error() else {
        let system = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
        let reason = system
            .and_then(|system| socket_reason(system, limit))
            .unwrap_or_else(|| brief(&innermost(error)));
        // The driver distinguishes these kinds of errors by their messages alone.
        return if reason.contains("password missing") {
            ServerError::Login {
                target,
                reason: "a password is required and none was given".into(),
                is_peer: false,
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
        // The message is in the server's language. `peer` fails in the same routine as a password,
        // with another SQLSTATE; an address that no line of pg_hba.conf lets in fails in another
        // routine.
        code if code.code().starts_with("28") => ServerError::Login {
            target,
            reason,
            is_peer: code.code() == "28000" && db.routine() == Some("auth_failed"),
        },
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

    /// The same without a limit on the server, to find out first what is there.
    pub(crate) fn enter(conninfo: &Conninfo) -> Result<Server, ServerError> {
        let limit = connect_limit(conninfo);
        let connect = |conninfo: &Conninfo| {
            Wire::connect(conninfo, OWN_NAME, limit)
                .map_err(|refused| not_connected(conninfo, refused, limit))
        };
        let (wire, conninfo) = match connect(conninfo) {
            Err(refused @ ServerError::Login { .. }) => {
                let role = conninfo.as_role(&LocalHost::new()).ok_or(refused)?;
                (connect(&role)?, role)
            }
            connected => (connected?, conninfo.clone()),
        };
        let place = conninfo.place();
        let mut server = Server {
            wire: Ok(wire),
            conninfo,
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
                place,
                version: server.version.major,
            });
        }
        Ok(server)
    }

    /// Behind a pooler the session goes on to others, who never asked for a limit: there is none on
    /// the server then.
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

    /// Several statements sent at once, in one transaction, answered within `patience` all in all:
    /// the rows of each.
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
    /// A connection that works is ended in order when this returns: the server's own counts of
    /// sessions are waited for.
    fn drop(&mut self) {
        if let Ok(wire) = std::mem::replace(&mut self.wire, Err(String::new())) {
            wire.end();
        }
    }
}
