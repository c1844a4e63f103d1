//! The server's own counters, the judge of what a client claims.

use crate::error::ServerError;
use crate::server::Server;
use std::thread;
use std::time::{Duration, Instant};

/// Counters of the database and the cluster at one instant.
#[derive(Debug, Clone, PartialEq)]
pub struct Counters {
    /// pg_stat_database.xact_commit of the connected database.
    pub committed: u64,
    /// Rolled-back transactions, by pg_stat_database.xact_rollback.
    pub rolled_back: u64,
    /// Position in the write-ahead log in bytes.
    pub wal_bytes: u64,
    /// Checkpoints begun, timed and requested.
    pub checkpoints: u64,
    /// Runs of autovacuum and autoanalyze over tables of this database.
    pub autovacuum_runs: u64,
    /// When the server started: another instant means that it restarted in between.
    pub started: String,
    /// Statements that this connection had sent before it asked.
    pub own_statements: u64,
    /// Counts that show the starts of parallel workers; `None` before version 14.
    pub starts: Option<Starts>,
}

/// Starts of server processes, by which the commits of parallel workers are known.
///
/// Each process that enters a database looks up its settings in pg_db_role_setting, four times by
/// one index: for the role in the database, the role, the database and all. Nothing else of a
/// server at work does. Processes that are not sessions of clients are parallel workers and
/// autovacuum's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Starts {
    /// Processes that entered a database of the cluster.
    pub processes: u64,
    /// Sessions of clients among them: pg_stat_database.sessions of all databases.
    pub sessions: u64,
    /// Commits in the cluster's other databases: each start there is one too.
    pub committed_elsewhere: u64,
}

/// Scans of the index by the start of one process (`process_settings` of PostgreSQL's postinit.c,
/// the same in 14 to 19).
const SCANS_PER_START: u64 = 4;
/// Transactions that a parallel worker commits for itself, and that pg_stat_database counts: when
/// it enters the database, and when it loads its leader's libraries and settings. The one in which
/// it works for its leader is not counted. Measured for 14 to 19.
pub const COMMITS_PER_WORKER: u64 = 2;

/// Parallel workers that ran between two looks: at least and at most so many. The two differ by
/// what may have started in other databases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Workers {
    /// Those that cannot have run in another database.
    pub least: u64,
    /// All processes that started and are no sessions of clients.
    pub most: u64,
}

impl Counters {
    /// Processes that started since an earlier look and are no sessions of clients.
    pub fn workers_since(&self, before: &Counters) -> Workers {
        let (Some(now), Some(then)) = (self.starts, before.starts) else {
            return Workers::default();
        };
        let grown = |now: u64, then: u64| now.saturating_sub(then);
        let most = grown(now.processes, then.processes).saturating_sub(grown(now.sessions, then.sessions));
        let elsewhere = grown(now.committed_elsewhere, then.committed_elsewhere) / COMMITS_PER_WORKER;
        Workers {
            least: most.saturating_sub(elsewhere),
            most,
        }
    }
}

/// Since this version pg_stat_database counts sessions.
const SESSIONS_SINCE: u32 = 14;
const STARTS: &str = "pg_catalog.pg_stat_get_numscans('pg_catalog.pg_db_role_setting_databaseid_rol_index'::regclass), \
     (SELECT coalesce(sum(sessions), 0) FROM pg_stat_database), \
     (SELECT coalesce(sum(xact_commit), 0) FROM pg_stat_database WHERE datname <> current_database())";

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
    let starts = match server.version().major {
        SESSIONS_SINCE.. => STARTS,
        _ => "NULL",
    };
    let sql = format!(
        "SELECT xact_commit, xact_rollback, {wal}, {checkpoints}, \
         (SELECT coalesce(sum(autovacuum_count + autoanalyze_count), 0) FROM pg_stat_all_tables), \
         pg_postmaster_start_time(), {starts} \
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
    let starts = match server.version().major {
        SESSIONS_SINCE.. => Some(Starts {
            processes: number(6)? / SCANS_PER_START,
            sessions: number(7)?,
            committed_elsewhere: number(8)?,
        }),
        _ => None,
    };
    Ok(Counters {
        starts,
        committed: number(0)?,
        rolled_back: number(1)?,
        wal_bytes: number(2)?,
        checkpoints: number(3)?,
        autovacuum_runs: number(4)?,
        started: row.get(5).cloned().flatten().unwrap_or_default(),
        own_statements,
    })
}

/// Where in the WAL the last checkpoint is that has ended, as the server writes positions: another
/// text after each one. A checkpoint counts in its views from its begin.
pub fn last_checkpoint(server: &mut Server) -> Result<String, ServerError> {
    let sql = "SELECT checkpoint_lsn FROM pg_control_checkpoint()";
    let found = server.value("reading the last checkpoint", sql)?;
    Ok(found.unwrap_or_default())
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

/// Waits until no more than `others` sessions with this application name are left in the connected
/// database (the counts of all that have ended are then complete), or the limit is over. Returns
/// whether they are gone.
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

/// Numbers of sessions that a server allows, and has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// Most sessions at a time: max_connections.
    pub most: u32,
    /// Sessions reserved for superusers, and from 16 on for roles with pg_use_reserved_connections.
    pub kept: u32,
    /// Sessions that others have now.
    pub held: u32,
}

/// Sessions of clients other than pgdyno; of those of other roles a plain role sees neither kind
/// nor name.
pub const OF_OTHERS: &str = "datid IS NOT NULL AND coalesce(backend_type, 'client backend') = 'client backend' \
                             AND coalesce(application_name, '') !~ '^pgdyno( |$)'";

/// Asks for them; what is not known is 0.
pub fn session_limits(server: &mut Server) -> Result<SessionLimits, ServerError> {
    let sql = format!(
        "SELECT current_setting('max_connections'), current_setting('superuser_reserved_connections')::int \
               + coalesce(current_setting('reserved_connections', true), '0')::int, \
               (SELECT count(*) FROM pg_stat_activity WHERE {OF_OTHERS})"
    );
    let rows = server.rows("asking how many sessions there may be", &sql)?;
    let row = rows.into_iter().next().unwrap_or_default();
    let number = |at: usize| row.get(at)?.as_deref()?.parse().ok();
    Ok(SessionLimits {
        most: number(0).unwrap_or(0),
        kept: number(1).unwrap_or(0),
        held: number(2).unwrap_or(0),
    })
}

/// A session reports its last counts while it ends, and is seen until it has. Waits until the other
/// sessions of the connected database have stopped becoming fewer, or the limit is over.
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

/// Pause between two checks of something that changes by itself.
#[expect(
    clippy::disallowed_methods,
    reason = "polling with a limit; the server does not report it"
)]
pub fn pause(duration: Duration) {
    thread::sleep(duration);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_are_no_sessions_are_workers_here_unless_others_commit_elsewhere() {
        let at = |starts: Option<(u64, u64, u64)>| Counters {
            committed: 0,
            rolled_back: 0,
            wal_bytes: 0,
            checkpoints: 0,
            autovacuum_runs: 0,
            started: String::new(),
            own_statements: 0,
            starts: starts.map(|(processes, sessions, committed_elsewhere)| Starts {
                processes,
                sessions,
                committed_elsewhere,
            }),
        };
        let before = at(Some((100, 60, 500)));
        let check = |now, least, most| {
            assert_eq!(at(now).workers_since(&before), Workers { least, most }, "{now:?}");
        };
        check(Some((140, 64, 500)), 36, 36);
        // A worker of another database commits there.
        check(Some((140, 64, 521)), 26, 36);
        check(Some((140, 64, 9000)), 0, 36);
        // A session whose own count comes before its process's.
        check(Some((101, 63, 500)), 0, 0);
        check(None, 0, 0);
    }
}
