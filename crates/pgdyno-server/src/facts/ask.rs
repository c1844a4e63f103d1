//! Asks the table's statements, many at a time, so that a distant server is not asked one by one;
//! what cannot be answered becomes a reason.

use super::statement::{Need, Statement};
use crate::error::ServerError;
use crate::server::Server;
use serde::Deserialize;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Statements of one question run for this long each at most (the limits in the question say so).
const STATEMENT_LIMIT: Duration = Duration::from_secs(2);
/// How much longer the answer may be under way.
const GRACE: Duration = Duration::from_secs(3);
/// Bytes of one value. None of ours is near it, and as JSON it takes some twenty times as much
/// memory.
const VALUE_BYTES_MAX: usize = 4 << 20;
/// After this no further statement is sent.
const BUDGET: Duration = Duration::from_secs(15);

/// pg_read_all_stats, and with it pg_monitor, may read pg_shmem_allocations from here on.
const SHARED_MEMORY_BY_STATS_SINCE: u32 = 15;

const QUERY_CANCELED: &str = "57014";
const LOCK_NOT_AVAILABLE: &str = "55P03";
const INSUFFICIENT_PRIVILEGE: &str = "42501";

/// What the role may, and what the server shows of who runs it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Signs {
    /// The role, quoted where SQL needs it.
    pub(super) role: String,
    pub(super) superuser: bool,
    /// Major version of the server.
    pub(super) major: u32,
    pub(super) stats: bool,
    pub(super) settings: bool,
    pub(super) wal_directory: bool,
    pub(super) config: bool,
    pub(super) files: bool,
    pub(super) shared_memory: bool,
    pub(super) statements: Option<Extension>,
    /// Answer to `SELECT version()`.
    pub(super) version: String,
    pub(super) roles: Vec<String>,
    pub(super) functions: Vec<String>,
    pub(super) databases: Vec<String>,
    pub(super) tablespaces: Vec<Tablespace>,
    pub(super) default_tablespace: String,
}

/// An extension that is there.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Extension {
    /// Quoted where SQL needs it.
    pub(super) schema: String,
    pub(super) version: String,
}

/// A tablespace of the user's.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Tablespace {
    pub(super) name: String,
    pub(super) directory: String,
}

impl Extension {
    /// 1.10 is 110. What does not look like it is none.
    fn number(&self) -> Option<u32> {
        let (major, minor) = self.version.split_once('.')?;
        let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
        (minor < 100).then(|| major.saturating_mul(100).saturating_add(minor))
    }
}

impl Signs {
    /// For a server that does not report them: everything is tried.
    pub(super) fn unknown(major: u32) -> Signs {
        Signs {
            role: "the role".into(),
            superuser: false,
            major,
            stats: true,
            settings: true,
            wal_directory: true,
            config: true,
            files: true,
            shared_memory: true,
            statements: None,
            version: String::new(),
            roles: Vec::new(),
            functions: Vec::new(),
            databases: Vec::new(),
            tablespaces: Vec::new(),
            default_tablespace: String::new(),
        }
    }

    /// The statement that gives the role what it lacks.
    pub(super) fn grant(&self, what: &str) -> String {
        format!("GRANT {what} TO {}", self.role)
    }

    /// Why a statement that needs this is not sent; `None` if it may be.
    pub(super) fn lacks(&self, needs: Need) -> Option<String> {
        let refused = |may: bool, what: &str| {
            (!may).then(|| {
                format!(
                    "the role {} may not read it; {} gives the right",
                    self.role,
                    self.grant(what)
                )
            })
        };
        match needs {
            Need::Nothing => None,
            Need::Stats => refused(self.stats, "pg_monitor"),
            Need::WalDirectory => refused(self.wal_directory, "pg_monitor"),
            Need::Config => refused(self.config, "EXECUTE ON FUNCTION pg_catalog.pg_config()"),
            Need::Files => (!self.files).then(|| {
                format!(
                    "the role {} may not read it; {}, {} and {} give the right",
                    self.role,
                    self.grant("SELECT ON pg_catalog.pg_file_settings"),
                    self.grant("EXECUTE ON FUNCTION pg_catalog.pg_show_all_file_settings()"),
                    self.grant("EXECUTE ON FUNCTION pg_catalog.pg_stat_file(text, boolean)")
                )
            }),
            Need::SharedMemory if self.major >= SHARED_MEMORY_BY_STATS_SINCE => {
                refused(self.shared_memory, "pg_monitor")
            }
            Need::SharedMemory => (!self.shared_memory).then(|| {
                format!(
                    "the role {} may not read it; {} and {} give the right",
                    self.role,
                    self.grant("SELECT ON pg_catalog.pg_shmem_allocations"),
                    self.grant("EXECUTE ON FUNCTION pg_catalog.pg_get_shmem_allocations()")
                )
            }),
            Need::Statements(least) => self
                .lacks_statements(least)
                .or_else(|| refused(self.stats, "pg_monitor")),
        }
    }

    fn lacks_statements(&self, least: u32) -> Option<String> {
        let Some(extension) = &self.statements else {
            return Some(
                "pg_stat_statements is not installed: add it to shared_preload_libraries, restart, and run CREATE \
                 EXTENSION pg_stat_statements in this database"
                    .into(),
            );
        };
        let known = extension.number().is_some_and(|number| number >= least);
        (!known).then(|| {
            format!(
                "pg_stat_statements {} does not report it, {}.{} and later do; ALTER EXTENSION pg_stat_statements UPDATE",
                extension.version,
                least / 100,
                least % 100
            )
        })
    }
}

/// A question: what holds for it, and the statements.
pub(super) struct Question<'a> {
    pub(super) limits: &'a str,
    pub(super) what: &'a str,
    pub(super) begun: Instant,
}

/// Outcome of one statement: its value, or why there is none.
pub(super) type Outcome = Result<Value, String>;

impl Question<'_> {
    /// Sends all at once. If one fails, nothing of the others is known, and each is sent by itself.
    /// Only a lost connection is an error.
    pub(super) fn ask(
        &self,
        server: &mut Server,
        statements: &[String],
    ) -> Result<Vec<Outcome>, ServerError> {
        if statements.is_empty() {
            return Ok(Vec::new());
        }
        match self.send(server, statements) {
            Ok(values) => Ok(values),
            Err(error) if error.is_end() => Err(error),
            Err(error) if statements.len() == 1 => Ok(vec![Err(reason(&error))]),
            Err(_) => statements.iter().map(|sql| self.ask_alone(server, sql)).collect(),
        }
    }

    fn ask_alone(&self, server: &mut Server, sql: &str) -> Result<Outcome, ServerError> {
        if self.begun.elapsed() > BUDGET {
            let why = format!(
                "not asked: the server had taken {} s for the others",
                BUDGET.as_secs()
            );
            return Ok(Err(why));
        }
        let mut outcomes = self.ask(server, &[sql.to_owned()])?;
        Ok(outcomes.pop().unwrap_or_else(|| Err("no answer".into())))
    }

    fn send(&self, server: &mut Server, statements: &[String]) -> Result<Vec<Outcome>, ServerError> {
        let mut sent = vec![self.limits];
        sent.extend(statements.iter().map(String::as_str));
        let count = u32::try_from(statements.len()).unwrap_or(u32::MAX);
        let answers = server.batch(self.what, &sent, GRACE + STATEMENT_LIMIT.saturating_mul(count))?;
        let values = answers.into_iter().skip(1).map(|rows| value(&rows));
        let mut values: Vec<Outcome> = values.take(statements.len()).collect();
        values.resize_with(statements.len(), || Err("the server did not answer it".into()));
        Ok(values)
    }
}

/// The one value of a statement's answer.
fn value(rows: &[Vec<Option<String>>]) -> Outcome {
    let Some(row) = rows.first() else {
        return Err("the server's answer has no row".into());
    };
    match row.first() {
        Some(Some(text)) if text.len() > VALUE_BYTES_MAX => Err(format!(
            "the server's answer has {} bytes, and {VALUE_BYTES_MAX} are the most",
            text.len()
        )),
        Some(Some(text)) => {
            serde_json::from_str(text).map_err(|e| format!("the server's answer cannot be read: {e}"))
        }
        _ => Ok(Value::Null),
    }
}

/// Why there is no value, as text.
fn reason(error: &ServerError) -> String {
    match error {
        ServerError::Statement { reason, sqlstate, .. } => match sqlstate.as_str() {
            QUERY_CANCELED => {
                format!("the server did not answer in time, and the statement was cut: {reason}")
            }
            LOCK_NOT_AVAILABLE => format!("somebody holds a lock, which is not waited for: {reason}"),
            INSUFFICIENT_PRIVILEGE => format!("{reason}; membership in pg_monitor may give the right"),
            _ => format!("{reason} (SQLSTATE {sqlstate})"),
        },
        other => other.to_string(),
    }
}

/// The statements of the table for this version that the role may send, and the others with the
/// reason.
pub(super) fn sort<'a>(
    statements: impl Iterator<Item = &'a Statement>,
    signs: &Signs,
) -> (Vec<&'a Statement>, Vec<(&'a Statement, String)>) {
    let (mut may, mut lacking) = (Vec::new(), Vec::new());
    for statement in statements {
        match signs.lacks(statement.needs) {
            None => may.push(statement),
            Some(why) => lacking.push((statement, why)),
        }
    }
    (may, lacking)
}
