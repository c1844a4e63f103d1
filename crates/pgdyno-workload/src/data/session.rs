//! Connections for data, and the marks by which half-made data is known.

use super::DataError;
pub(super) use crate::session::Row;
use crate::session::{Session, SessionError};
use pgdyno_engine::Endpoint;
use std::str::FromStr;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The comment on a table while the data is being made; gone, or another one, when it is whole.
pub(super) const UNFINISHED: &str = "pgdyno: being made";

/// One creation at a time in a database ("pgdyno d" as a number).
const LOCK: i64 = 0x7067_6479_6e6f_2064;
const LOCK_EVERY: Duration = Duration::from_millis(100);

/// A server's refusal, with what was being done.
pub(super) fn step_error(step: impl Into<String>, source: SessionError) -> DataError {
    match source {
        SessionError::Stopped => DataError::Interrupted,
        source => DataError::Step {
            step: step.into(),
            source,
        },
    }
}

/// Begins each transaction: the limits of time that a connection string or a role may carry are
/// meant for other transactions. A pooler may give the session to somebody else afterwards, so
/// nothing is set for longer.
pub(super) const WITHOUT_LIMITS: &str = "SELECT pg_catalog.set_config(name, '0', true) FROM pg_catalog.pg_settings WHERE name IN \
     ('statement_timeout', 'lock_timeout', 'idle_session_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout');";
/// The name under which sessions for data are seen.
const NAME: &str = "pgdyno data";

/// A connection. What is asked for data goes by the simple protocol: a pooler may have another
/// session answer the next message, where nothing is prepared.
pub(super) fn open(endpoint: &Endpoint) -> Result<Session, DataError> {
    let opened = Session::open(endpoint, NAME);
    let mut session = opened.map_err(|source| match source {
        SessionError::Stopped => DataError::Interrupted,
        source => DataError::Connect { source },
    })?;
    if !endpoint.is_pooled {
        // VACUUM is in no transaction.
        let sql = WITHOUT_LIMITS.replace("true", "false");
        let prepared = session.rows(&sql).and_then(|_| session.find_itself());
        prepared.map_err(|source| step_error("preparing the session", source))?;
    }
    Ok(session)
}

/// The rows of the last statement of `sql`, all of which are one transaction without limits of
/// time; they read little.
pub(super) fn rows(session: &mut Session, step: &str, sql: &str) -> Result<Vec<Row>, DataError> {
    session
        .rows(&format!("{WITHOUT_LIMITS} {sql}"))
        .map_err(|source| step_error(step, source))
}

/// The same where whole tables are read.
pub(super) fn rows_of_work(session: &mut Session, step: &str, sql: &str) -> Result<Vec<Row>, DataError> {
    session
        .rows_of_work(&format!("{WITHOUT_LIMITS} {sql}"))
        .map_err(|source| step_error(step, source))
}

/// Statements that are one transaction without limits of time; `settings` hold in it alone.
pub(super) fn run(session: &mut Session, step: &str, settings: &str, sql: &str) -> Result<(), DataError> {
    session
        .work(&format!("{WITHOUT_LIMITS} {settings} {sql}"))
        .map_err(|source| step_error(step, source))
}

/// A value of a row as a number; what is none is `None`.
pub(super) fn number<T: FromStr>(row: &Row, column: usize) -> Option<T> {
    row.get(column)?.as_deref()?.parse().ok()
}

/// A text of a row, empty where there is none.
pub(super) fn text(row: &Row, column: usize) -> &str {
    row.get(column).and_then(Option::as_deref).unwrap_or_default()
}

/// An answer that is not what was asked for.
pub(super) fn odd(step: &str) -> DataError {
    DataError::Answer {
        step: step.to_owned(),
    }
}

/// What the sorts of one connection may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sorting {
    /// Where the server's own setting is not larger.
    pub(super) memory_kb: u32,
    /// Whether this is the only sort at a time, so that the server may help it with workers.
    pub(super) alone: bool,
}

/// What pays while much is written at once, for the transactions in which it is. Commits need not
/// wait one by one: nothing of the user's is at stake, and the last one does wait, with which all
/// WAL before it is on disk.
pub(super) fn for_loading(sorting: Sorting) -> String {
    let sort_memory_kb = sorting.memory_kb;
    let workers = if sorting.alone {
        ""
    } else {
        "SET LOCAL max_parallel_maintenance_workers = 0;"
    };
    format!(
        "SET LOCAL synchronous_commit = off; {workers}
         SELECT pg_catalog.set_config(name, '{sort_memory_kb}kB', true) FROM pg_catalog.pg_settings
           WHERE name = 'maintenance_work_mem' AND setting::bigint < {sort_memory_kb};"
    )
}

/// Waits until nobody else makes data in this database; whether it had to. The turn is a
/// transaction that lasts as long as its connection, and takes no snapshot: behind a pooler a lock
/// of the session would stay with the pooler. `go_on` answers whether to keep waiting.
pub(super) fn take_turn(
    endpoint: &Endpoint,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<(Session, bool), DataError> {
    let step = "waiting for another creation of data";
    let (_never, alarm) = channel::<()>();
    let mut client = open(endpoint)?;
    let mut waited = false;
    loop {
        let sql = format!("SELECT pg_catalog.pg_try_advisory_xact_lock({LOCK})");
        let begun = client.rows("BEGIN");
        begun.map_err(|source| step_error(step, source))?;
        let rows = rows(&mut client, step, &sql)?;
        if rows.first().is_some_and(|row| text(row, 0) == "t") {
            return Ok((client, waited));
        }
        let ended = client.rows("ROLLBACK");
        ended.map_err(|source| step_error(step, source))?;
        waited = true;
        if !go_on() || alarm.recv_timeout(LOCK_EVERY) == Err(RecvTimeoutError::Disconnected) {
            return Err(DataError::Stopped);
        }
    }
}

/// Whether a statement was refused for want of permission.
pub(super) fn is_refused(error: &SessionError) -> bool {
    matches!(error, SessionError::Refused { sqlstate, .. } if sqlstate == "42501")
}

/// Present time by the server's clock.
pub(super) fn now(client: &mut Session) -> Result<Instant, DataError> {
    let step = "asking for the time";
    let sql = "SELECT (extract(epoch FROM now() - '2000-01-01 00:00:00+00') * 1000000)::bigint, now()::text";
    let rows = rows(client, step, sql)?;
    let row = rows.first().ok_or_else(|| odd(step))?;
    Ok(Instant {
        us: number(row, 0).ok_or_else(|| odd(step))?,
        sql: text(row, 1).to_owned(),
    })
}

/// A session for long work beside the making of data: vacuums, checkpoints, copies of databases,
/// reading into caches. It lasts as long as the server is at it, and ends when the endpoint's
/// request to stop comes.
pub struct DataSession(Session);

impl DataSession {
    /// Opens one.
    ///
    /// # Errors
    ///
    /// No connection, or a request to stop.
    pub fn open(endpoint: &Endpoint) -> Result<DataSession, DataError> {
        open(endpoint).map(DataSession)
    }

    /// One statement, its rows dropped; `step` says what is being done, for an error.
    ///
    /// # Errors
    ///
    /// The server's refusal, a server that is not at it any more, or a request to stop.
    pub fn work(&mut self, step: &str, sql: &str) -> Result<(), DataError> {
        self.0.work(sql).map_err(|source| step_error(step, source))
    }
}

/// Begins a check: all of it sees one snapshot, with memory for the hashes of large aggregates.
pub(super) const FOR_READING: &str =
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL work_mem = '128MB'; SET LOCAL jit = off";

/// A point in time: microseconds since 2000, and as SQL reads it.
#[derive(Debug, Clone)]
pub(super) struct Instant {
    pub(super) us: i64,
    pub(super) sql: String,
}
