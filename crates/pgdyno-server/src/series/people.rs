//! What people read now and then: sessions, vacuums, ages.

use super::ServerSeries;
use crate::error::ServerError;
use crate::wire::Row;
use serde::{Deserialize, Serialize};
use tokio_postgres::types::FromSql;

/// So much of a statement is shown.
const STATEMENT_CHARS: usize = 200;

/// A session, or a process of the server. What the role may not see is `None`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionRow {
    /// Process id of the backend or worker.
    pub pid: i32,
    /// Name of the role; `None` for processes without one.
    pub user: Option<String>,
    /// Name of the database; `None` for processes without one.
    pub database: Option<String>,
    /// Value of application_name.
    pub application: Option<String>,
    /// The client's address; `None` for a socket of the machine.
    pub client: Option<String>,
    /// "active", "idle", "idle in transaction" and the like.
    pub state: Option<String>,
    /// Kind and event of what it waits for.
    pub wait: Option<(String, String)>,
    /// The normalised statement (14 and later).
    pub query_id: Option<i64>,
    /// The beginning of its present or last statement, on one line; what follows the word
    /// "password" is omitted.
    pub statement: Option<String>,
    /// Seconds since the present or last statement began.
    pub query_age_s: Option<f64>,
    /// Seconds since the transaction began; `None` outside of one.
    pub xact_age_s: Option<f64>,
    /// Seconds since the state last changed.
    pub state_age_s: Option<f64>,
    /// Process ids of those who hold what it waits for.
    pub blocked_by: Vec<i32>,
    /// Class of the process: "client backend".
    pub backend_type: Option<String>,
}

/// A vacuum that runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VacuumRow {
    /// Process id of the backend or worker.
    pub pid: i32,
    /// Name of the database that it runs in.
    pub database: Option<String>,
    /// Table with its schema; its number where it is of another database.
    pub table: Option<String>,
    /// Phase by the server's name: "scanning heap".
    pub phase: Option<String>,
    /// Number of blocks of the table.
    pub heap_total: Option<i64>,
    /// Number of blocks scanned so far.
    pub heap_scanned: Option<i64>,
    /// Number of blocks vacuumed so far.
    pub heap_vacuumed: Option<i64>,
    /// Rounds over the indexes so far.
    pub index_passes: Option<i64>,
    /// Dead rows collected since the last round over the indexes.
    pub dead: Option<i64>,
    /// Seconds since its transaction began.
    pub age_s: Option<f64>,
    /// Whether an autovacuum worker runs it.
    pub is_auto: bool,
}

/// How old a database's oldest transaction ids are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgeRow {
    /// Name of the database.
    pub database: String,
    /// Transactions since its oldest transaction id that is not frozen.
    pub xid_age: u64,
    /// Multixacts since its oldest multixact id that is not frozen.
    pub multixact_age: u64,
    /// autovacuum_freeze_max_age: from here on autovacuum runs whatever else is set.
    pub freeze_max_age: u64,
    /// autovacuum_multixact_freeze_max_age: the same bound for multixacts.
    pub multixact_freeze_max_age: u64,
}

impl ServerSeries {
    /// All sessions and processes but our own.
    pub fn sessions(&mut self) -> Result<Vec<SessionRow>, ServerError> {
        let query_id = match self.link.version().major {
            ..=13 => "NULL::int8",
            _ => "query_id",
        };
        // Who blocks whom is asked for those alone who wait for a lock: it stops the lock table for
        // a moment.
        let sql = format!(
            "SELECT pid, usename::text, datname::text, application_name, host(client_addr), state, wait_event_type, \
             wait_event, {query_id}, left(query, 800), date_part('epoch', clock_timestamp() - query_start), \
             date_part('epoch', clock_timestamp() - xact_start), \
             date_part('epoch', clock_timestamp() - state_change), \
             CASE WHEN wait_event_type = 'Lock' THEN pg_blocking_pids(pid) ELSE '{{}}' END, backend_type \
             FROM pg_stat_activity WHERE pid <> pg_backend_pid() LIMIT 10000"
        );
        let rows = self.people("reading the sessions", &sql)?;
        Ok(rows.iter().map(session).collect())
    }

    /// Vacuums that run, of all databases.
    pub fn vacuums(&mut self) -> Result<Vec<VacuumRow>, ServerError> {
        let dead = match self.link.version().major {
            ..=16 => "num_dead_tuples",
            _ => "num_dead_item_ids",
        };
        let sql = format!(
            "SELECT p.pid, p.datname::text, \
             CASE WHEN p.datname = current_database() THEN p.relid::regclass::text ELSE p.relid::text END, \
             p.phase, p.heap_blks_total, p.heap_blks_scanned, p.heap_blks_vacuumed, p.index_vacuum_count, p.{dead}, \
             date_part('epoch', clock_timestamp() - a.xact_start), \
             coalesce(a.backend_type = 'autovacuum worker', false) \
             FROM pg_stat_progress_vacuum p LEFT JOIN pg_stat_get_activity(NULL) a USING (pid)"
        );
        let rows = self.people("reading the vacuums", &sql)?;
        Ok(rows.iter().map(vacuum).collect())
    }

    /// When the server last read its configuration files, in its own words.
    pub fn configured_at(&mut self) -> Result<String, ServerError> {
        let rows = self.people(
            "asking when the configuration was read",
            "SELECT pg_conf_load_time()::text",
        )?;
        Ok(rows.first().and_then(|row| get(row, 0)).unwrap_or_default())
    }

    /// Ages of transaction ids, of all databases.
    pub fn ages(&mut self) -> Result<Vec<AgeRow>, ServerError> {
        let sql = "SELECT datname::text, age(datfrozenxid)::int8, mxid_age(datminmxid)::int8, \
                   current_setting('autovacuum_freeze_max_age')::int8, \
                   current_setting('autovacuum_multixact_freeze_max_age')::int8 FROM pg_database ORDER BY 2 DESC";
        let rows = self.people("reading the ages of transaction ids", sql)?;
        let number = |row: &Row, at| -> u64 { get::<i64>(row, at).unwrap_or(0).try_into().unwrap_or(0) };
        Ok(rows
            .iter()
            .map(|row| AgeRow {
                database: get(row, 0).unwrap_or_default(),
                xid_age: number(row, 1),
                multixact_age: number(row, 2),
                freeze_max_age: number(row, 3),
                multixact_freeze_max_age: number(row, 4),
            })
            .collect())
    }

    fn people(&mut self, what: &str, sql: &str) -> Result<Vec<Row>, ServerError> {
        self.link
            .ask(sql, &[])
            .map_err(|error| error.into_server_error(what))
    }
}

fn get<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Option<T> {
    row.try_get::<Option<T>>(at).ok().flatten()
}

fn session(row: &Row) -> SessionRow {
    SessionRow {
        pid: get(row, 0).unwrap_or_default(),
        user: get(row, 1),
        database: get(row, 2),
        application: get(row, 3),
        client: get(row, 4),
        state: get(row, 5),
        wait: get(row, 6).zip(get(row, 7)),
        query_id: get(row, 8),
        statement: get::<String>(row, 9)
            .filter(|text| text != HIDDEN && !text.is_empty())
            .map(|text| one_line(&text, STATEMENT_CHARS)),
        query_age_s: get(row, 10),
        xact_age_s: get(row, 11),
        state_age_s: get(row, 12),
        blocked_by: get(row, 13).unwrap_or_default(),
        backend_type: get(row, 14),
    }
}

fn vacuum(row: &Row) -> VacuumRow {
    VacuumRow {
        pid: get(row, 0).unwrap_or_default(),
        database: get(row, 1),
        table: get(row, 2),
        phase: get(row, 3),
        heap_total: get(row, 4),
        heap_scanned: get(row, 5),
        heap_vacuumed: get(row, 6),
        index_passes: get(row, 7),
        dead: get(row, 8),
        age_s: get(row, 9),
        is_auto: get(row, 10).unwrap_or_default(),
    }
}

/// The server's text for a statement that the role may not see.
pub(super) const HIDDEN: &str = "<insufficient privilege>";
/// What follows this word in a statement is a secret.
const SECRET: &str = "password";

/// A statement for people: white space as single blanks, control characters as blanks, cut, and
/// without a password.
pub(super) fn one_line(text: &str, chars: usize) -> String {
    let mut line = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        // What is behind it, in the same word or the next, is not shown.
        if let Some(at) = word.to_ascii_lowercase().find(SECRET) {
            line.push_str(&word[..at + SECRET.len()]);
            line.push_str(" …");
            break;
        }
        line.push_str(word);
    }
    match line.char_indices().nth(chars) {
        Some((end, _)) => line[..end].to_owned(),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_one_line_without_its_password() {
        let check = |text: &str, expected: &str| assert_eq!(one_line(text, 30), expected);
        check("SELECT 1\n\t FROM  x", "SELECT 1 FROM x");
        check("ALTER ROLE a PASSWORD 'x y'", "ALTER ROLE a PASSWORD …");
        check("CONNECTION 'password=hunter2'", "CONNECTION 'password …");
        check(&"ä".repeat(40), &"ä".repeat(30));
        check("a\u{1b}[2Jb", "a [2Jb");
        check("", "");
    }
}
