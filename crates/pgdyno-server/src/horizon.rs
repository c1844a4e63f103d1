//! What holds back the horizon behind which dead rows are removed, and where they pile up.

use crate::error::ServerError;
use crate::server::{Row, Server};

/// So many of each are read.
const MOST: usize = 3;
/// Tables with fewer dead rows than this have none to speak of.
const DEAD_ROWS_MIN: u64 = 1_000;

/// Who keeps dead rows of the connected database from being removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// A description with the process, slot or name by which it is ended: "session 4711 (idle in
    /// transaction, psql)".
    pub who: String,
    /// Transactions that began in the cluster since those that it still sees, or has not ended
    /// itself.
    pub age: u64,
}

/// A table with more dead rows than live ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PiledUp {
    /// With its schema where it must be.
    pub table: String,
    /// Dead rows, by pg_stat_user_tables.n_dead_tup.
    pub dead_rows: u64,
    /// Live rows, by pg_stat_user_tables.n_live_tup.
    pub live_rows: u64,
    /// Bytes of its main fork.
    pub bytes: u64,
}

/// Prepared transactions, slots, standbys and sessions. What the role may not see is not among
/// them, nor is a VACUUM, which holds nothing back, nor a session of another database, which does
/// so for its own tables.
const HOLDERS: &str = "SELECT who, held FROM ( \
     SELECT CASE WHEN backend_type = 'walsender' THEN format('standby %s (pid %s)', application_name, pid) \
       ELSE format('session %s (%s)', pid, concat_ws(', ', coalesce(state, backend_type), nullif(application_name, ''))) END AS who, \
       greatest(age(backend_xmin), age(backend_xid)) AS held \
     FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND (datname = current_database() OR backend_type = 'walsender') \
       AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum) \
     UNION ALL SELECT format('prepared transaction %L', gid), age(transaction) FROM pg_prepared_xacts \
       WHERE database = current_database() \
     UNION ALL SELECT format('replication slot %s', slot_name), age(xmin) FROM pg_replication_slots) AS held \
     WHERE held > 0 ORDER BY held DESC LIMIT 3";

/// Sizes are asked of the few that are shown.
const DEAD: &str = "SELECT relid::pg_catalog.regclass, n_dead_tup, n_live_tup, pg_relation_size(relid) FROM ( \
     SELECT relid, n_dead_tup, n_live_tup FROM pg_stat_user_tables WHERE n_dead_tup > n_live_tup AND n_dead_tup >= {min} \
     ORDER BY n_dead_tup DESC LIMIT 3) AS most";

/// The number of the next transaction, of 64 bits.
pub fn next_transaction(server: &mut Server) -> Result<u64, ServerError> {
    let what = "asking for the next transaction";
    let text = server
        .value(what, "SELECT pg_snapshot_xmax(pg_current_snapshot())")?
        .unwrap_or_default();
    text.parse()
        .map_err(|_| odd(what, "a transaction's number", &text))
}

/// Who holds the horizon back, the oldest first.
pub fn holders(server: &mut Server) -> Result<Vec<Holder>, ServerError> {
    let what = "looking for what holds back the horizon";
    let rows = server.rows(what, HOLDERS)?;
    let holder = |row: &Row| {
        Ok(Holder {
            who: text(row, 0).to_owned(),
            age: number(what, row, 1)?,
        })
    };
    rows.iter().take(MOST).map(holder).collect()
}

/// Tables of the connected database with more dead rows than live ones, those with the most first.
pub fn piled_up(server: &mut Server) -> Result<Vec<PiledUp>, ServerError> {
    let what = "looking for dead rows";
    let rows = server.rows(what, &DEAD.replace("{min}", &DEAD_ROWS_MIN.to_string()))?;
    let table = |row: &Row| {
        Ok(PiledUp {
            table: text(row, 0).to_owned(),
            dead_rows: number(what, row, 1)?,
            live_rows: number(what, row, 2)?,
            // A table that was dropped meanwhile has none.
            bytes: number(what, row, 3).unwrap_or(0),
        })
    };
    rows.iter().take(MOST).map(table).collect()
}

fn text(row: &Row, column: usize) -> &str {
    row.get(column).and_then(Option::as_deref).unwrap_or_default()
}

fn number(what: &str, row: &Row, column: usize) -> Result<u64, ServerError> {
    let found = text(row, column);
    found.parse().map_err(|_| odd(what, "a count", found))
}

fn odd(what: &str, expected: &'static str, found: &str) -> ServerError {
    ServerError::Answer {
        what: what.to_owned(),
        expected,
        found: found.to_owned(),
    }
}
