//! The server's own counters, the judge of what a client claims.

use crate::server::{Server, ServerError};
use std::thread;
use std::time::{Duration, Instant};

/// Counters of the database and the cluster at one instant.
#[derive(Debug, Clone, PartialEq)]
pub struct Counters {
    /// pg_stat_database.xact_commit of the connected database.
    pub committed: u64,
    /// pg_stat_database.xact_rollback.
    pub rolled_back: u64,
    /// Position in the write-ahead log in bytes.
    pub wal_bytes: u64,
    /// Checkpoints done, timed and requested.
    pub checkpoints: u64,
    /// Runs of autovacuum and autoanalyze over tables of this database.
    pub autovacuum_runs: u64,
    /// When the server started: another instant means that it restarted in between.
    pub started: String,
    /// Statements that this connection had sent before it asked.
    pub own_statements: u64,
}

/// Reads them in one statement.
pub fn counters(server: &mut Server) -> Result<Counters, ServerError> {
    let what = "reading the server's counters";
    // pg_stat_bgwriter's checkpoint columns moved to pg_stat_checkpointer in 17.
    let checkpoints = if server.version().major >= 17 {
        "(SELECT num_timed + num_requested FROM pg_stat_checkpointer)"
    } else {
        "(SELECT checkpoints_timed + checkpoints_req FROM pg_stat_bgwriter)"
    };
    let wal = "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END \
               - '0/0'::pg_lsn";
    let sql = format!(
        "SELECT xact_commit, xact_rollback, {wal}, {checkpoints}, \
         (SELECT coalesce(sum(autovacuum_count + autoanalyze_count), 0) FROM pg_stat_all_tables), \
         pg_postmaster_start_time() \
         FROM pg_stat_database WHERE datname = current_database()"
    );
    let own_statements = server.statements();
    let row = server.rows(what, &sql)?.into_iter().next().unwrap_or_default();
    let number = |column: usize| -> Result<u64, ServerError> {
        let text = row.get(column).cloned().flatten().unwrap_or_default();
        text.parse().map_err(|_| ServerError::Answer {
            what: what.into(),
            expected: "a counter",
            found: text.clone(),
        })
    };
    Ok(Counters {
        committed: number(0)?,
        rolled_back: number(1)?,
        wal_bytes: number(2)?,
        checkpoints: number(3)?,
        autovacuum_runs: number(4)?,
        started: row.get(5).cloned().flatten().unwrap_or_default(),
        own_statements,
    })
}

/// How many sessions of the connected database have this application name.
pub fn sessions_named(server: &mut Server, application_name: &str) -> Result<u64, ServerError> {
    let what = "looking for sessions by their name";
    let sql = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = '{}'",
        application_name.replace('\'', "''")
    );
    let text = server.value(what, &sql)?.unwrap_or_default();
    text.parse().map_err(|_| ServerError::Answer {
        what: what.into(),
        expected: "a count",
        found: text,
    })
}

/// Waits until no more than `others` sessions with this application name are left in the connected database (the counts
/// of all that have ended are then complete), or the limit is over. Tells whether they are gone.
pub fn wait_until_gone(
    server: &mut Server,
    application_name: &str,
    others: u64,
    limit: Duration,
) -> Result<bool, ServerError> {
    let deadline = Instant::now() + limit;
    loop {
        if sessions_named(server, application_name)? <= others {
            return Ok(true);
        }
        if Instant::now() >= deadline {
            return Ok(false);
        }
        pause(Duration::from_millis(50));
    }
}

/// How many sessions a server lets in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// All of them: max_connections.
    pub most: u32,
    /// Kept back for superusers.
    pub kept: u32,
}

/// Asks for both limits; one that is not told is 0.
pub fn session_limits(server: &mut Server) -> Result<SessionLimits, ServerError> {
    let mut number = |sql: &str| -> Result<u32, ServerError> {
        let value = server.value("asking how many sessions there may be", sql)?;
        Ok(value.and_then(|text| text.parse().ok()).unwrap_or(0))
    };
    Ok(SessionLimits {
        most: number("SHOW max_connections")?,
        kept: number("SHOW superuser_reserved_connections")?,
    })
}

/// A session tells its last counts while it ends, and is seen until it has. Waits until the other sessions of the
/// connected database have stopped becoming fewer, or the limit is over.
pub fn wait_for_leaving(server: &mut Server, limit: Duration) -> Result<(), ServerError> {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
               AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
    let deadline = Instant::now() + limit;
    let mut seen = None;
    loop {
        let now = server.value("looking for sessions that are ending", sql)?;
        if now.as_deref() == Some("0") || now == seen || Instant::now() >= deadline {
            return Ok(());
        }
        seen = now;
        pause(Duration::from_millis(50));
    }
}

/// Between two looks at something that changes by itself.
#[expect(
    clippy::disallowed_methods,
    reason = "polling with a limit; the server has no way to tell"
)]
pub fn pause(duration: Duration) {
    thread::sleep(duration);
}
