//! Connections for data, and the marks by which half-made data is known.

use super::DataError;
use super::rows::Instant;
use crate::endpoint::Endpoint;
use postgres::Client;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The comment on a table while the data is being made; gone, or another one, when it is whole.
pub(super) const UNFINISHED: &str = "pgdyno: being made";

/// One creation at a time in a database ("pgdyno d" as a number).
const LOCK: i64 = 0x7067_6479_6e6f_2064;
const LOCK_EVERY: Duration = Duration::from_millis(100);

/// A server's refusal, with what was being done.
pub(super) fn words_of(step: impl Into<String>, source: postgres::Error) -> DataError {
    DataError::Step {
        step: step.into(),
        source,
    }
}

/// A connection without the limits of time that a connection string may carry: those are meant for transactions.
pub(super) fn open(endpoint: &Endpoint) -> Result<Client, DataError> {
    let mut client = endpoint.connect().map_err(|source| DataError::Connect {
        place: endpoint.place(),
        source,
    })?;
    client
        .batch_execute(
            "SET application_name = 'pgdyno data';
             SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('statement_timeout', 'lock_timeout',
               'idle_session_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')",
        )
        .map_err(|source| words_of("preparing the session", source))?;
    Ok(client)
}

/// What the sorts of one connection may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sorting {
    /// Where the server's own setting is not larger.
    pub(super) memory_kb: u32,
    /// Whether this is the only sort at a time, so that the server may help it with workers.
    pub(super) alone: bool,
}

/// What pays while much is written at once. Commits need not wait one by one: nothing of the user's is at stake, and the
/// last one does wait, with which all WAL before it is on disk.
pub(super) fn for_loading(client: &mut Client, sorting: Sorting) -> Result<(), DataError> {
    let sort_memory_kb = sorting.memory_kb;
    let workers = if sorting.alone {
        ""
    } else {
        "SET max_parallel_maintenance_workers = 0;"
    };
    let sql = format!(
        "SET synchronous_commit = off; {workers}
         SELECT set_config(name, '{sort_memory_kb}kB', false) FROM pg_settings
           WHERE name = 'maintenance_work_mem' AND setting::bigint < {sort_memory_kb}"
    );
    client
        .batch_execute(&sql)
        .map_err(|source| words_of("preparing the session", source))
}

/// Waits until nobody else makes data in this database; whether it had to. `go_on` answers whether to keep waiting.
pub(super) fn take_turn(client: &mut Client, go_on: &mut dyn FnMut() -> bool) -> Result<bool, DataError> {
    let (_never, alarm) = channel::<()>();
    let mut waited = false;
    loop {
        let ours: bool = client
            .query_one("SELECT pg_try_advisory_lock($1)", &[&LOCK])
            .and_then(|row| row.try_get(0))
            .map_err(|source| words_of("waiting for another creation of data", source))?;
        if ours {
            return Ok(waited);
        }
        waited = true;
        if !go_on() || alarm.recv_timeout(LOCK_EVERY) == Err(RecvTimeoutError::Disconnected) {
            return Err(DataError::Stopped);
        }
    }
}

/// Whether a statement was refused for want of permission.
pub(super) fn is_refused(error: &postgres::Error) -> bool {
    error.code() == Some(&postgres::error::SqlState::INSUFFICIENT_PRIVILEGE)
}

/// The server's time.
pub(super) fn now(client: &mut Client) -> Result<Instant, DataError> {
    let sql = "SELECT (extract(epoch FROM now() - '2000-01-01 00:00:00+00') * 1000000)::bigint, now()::text";
    client
        .query_one(sql, &[])
        .and_then(|row| {
            Ok(Instant {
                us: row.try_get(0)?,
                sql: row.try_get(1)?,
            })
        })
        .map_err(|source| words_of("asking for the time", source))
}

/// For large aggregates: memory for their hashes.
pub(super) fn for_reading(client: &mut Client) -> Result<(), DataError> {
    client
        .batch_execute("SET work_mem = '128MB'; SET jit = off")
        .map_err(|source| words_of("preparing the session", source))
}
