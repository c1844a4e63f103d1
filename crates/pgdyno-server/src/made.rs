//! Tables and functions that carry a mark in their comment: found and dropped by that mark alone, whatever their names are. Objects
//! without a mark are listed, and never dropped.

use crate::counters::wait_until_gone;
use crate::server::{Server, ServerError};
use crate::settings::literal;
use std::time::Duration;

/// The application name of sessions that make data.
const MAKING: &str = "pgdyno data";
/// A session whose client was killed ends within this time, unless it builds a large index: its table's lock is waited for then.
const ENDING_LIMIT: Duration = Duration::from_secs(10);

/// Tables first: functions do not depend on one another, and tables on none of them.
fn sql(mark: &str) -> String {
    let is_marked = format!(
        "d.objsubid = 0 AND d.description LIKE 'pgdyno: %' AND right(d.description, {}) = {}",
        mark.len() + 1,
        literal(&format!(" {mark}"))
    );
    format!(
        "SELECT 'TABLE', format('%I.%I', n.nspname, c.relname) FROM pg_description d \
         JOIN pg_class c ON c.oid = d.objoid JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE d.classoid = 'pg_class'::regclass AND c.relkind IN ('r', 'p') AND {is_marked} \
         UNION ALL SELECT 'FUNCTION', format('%I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)) \
         FROM pg_description d JOIN pg_proc p ON p.oid = d.objoid JOIN pg_namespace n ON n.oid = p.pronamespace \
         WHERE d.classoid = 'pg_proc'::regclass AND {is_marked} ORDER BY 1 DESC, 2"
    )
}

fn marked(server: &mut Server, mark: &str) -> Result<Vec<(String, String)>, ServerError> {
    let rows = server.rows("looking for data that an experiment has made", &sql(mark))?;
    let pair = |row: Vec<Option<String>>| {
        let mut fields = row.into_iter().flatten();
        Some((fields.next()?, fields.next()?))
    };
    Ok(rows.into_iter().filter_map(pair).collect())
}

/// The tables and functions of the connected database whose comment begins with `pgdyno: ` and ends with the mark, by name with
/// their schema.
pub fn made_objects(server: &mut Server, mark: &str) -> Result<Vec<String>, ServerError> {
    Ok(marked(server, mark)?.into_iter().map(|(_, name)| name).collect())
}

/// Drops what [`made_objects`] lists, all or nothing; what others have built on it keeps it. For pgdyno-knobs alone.
pub fn drop_made(server: &mut Server, mark: &str) -> Result<(), ServerError> {
    // A killed process may have left a session that is about to commit a table.
    wait_until_gone(server, MAKING, 0, ENDING_LIMIT)?;
    let drops: Vec<String> = marked(server, mark)?
        .into_iter()
        .map(|(kind, name)| format!("DROP {kind} {name}"))
        .collect();
    if drops.is_empty() {
        return Ok(());
    }
    // Statements that are sent together are one transaction.
    server.execute(
        "dropping the data that the experiment has made",
        &drops.join("; "),
    )
}

/// Objects beyond this many are not compared: the journal holds their names.
pub const OBJECTS_MAX: usize = 10_000;

/// In an order in which all of them can be dropped. What is dropped with another object is no row of its own: parts of extensions,
/// indexes of constraints, sequences and row types of tables, partitions.
const OBJECTS: &str = "
WITH part AS (
  SELECT d.classid, d.objid FROM pg_depend d LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
  WHERE d.deptype IN ('e', 'i') OR d.deptype = 'a' AND c.relkind = 'S'),
own AS (SELECT oid, nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'),
object AS (
  SELECT 1 AS turn, CASE relkind WHEN 'v' THEN 'VIEW' ELSE 'MATERIALIZED VIEW' END AS kind, format('%I.%I', nspname, relname) AS name
  FROM pg_class c JOIN own ON own.oid = relnamespace
  WHERE relkind IN ('v', 'm') AND ('pg_class'::regclass, c.oid) NOT IN (SELECT classid, objid FROM part)
  UNION ALL
  SELECT 2, CASE relkind WHEN 'S' THEN 'SEQUENCE' WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'i' THEN 'INDEX' WHEN 'I' THEN 'INDEX' ELSE 'TABLE' END,
    format('%I.%I', nspname, relname)
  FROM pg_class c JOIN own ON own.oid = relnamespace
  WHERE relkind IN ('r', 'p', 'f', 'S', 'i', 'I') AND NOT relispartition
    AND ('pg_class'::regclass, c.oid) NOT IN (SELECT classid, objid FROM part)
  UNION ALL
  SELECT 3, CASE prokind WHEN 'p' THEN 'PROCEDURE' WHEN 'a' THEN 'AGGREGATE' ELSE 'FUNCTION' END,
    format('%I.%I(%s)', nspname, proname, pg_get_function_identity_arguments(p.oid))
  FROM pg_proc p JOIN own ON own.oid = pronamespace WHERE ('pg_proc'::regclass, p.oid) NOT IN (SELECT classid, objid FROM part)
  UNION ALL
  SELECT 4, CASE typtype WHEN 'd' THEN 'DOMAIN' ELSE 'TYPE' END, format('%I.%I', nspname, typname)
  FROM pg_type t JOIN own ON own.oid = typnamespace LEFT JOIN pg_class c ON c.oid = typrelid
  WHERE (typtype IN ('d', 'e', 'r') OR typtype = 'c' AND c.relkind = 'c')
    AND ('pg_type'::regclass, t.oid) NOT IN (SELECT classid, objid FROM part WHERE typtype <> 'c')
  UNION ALL SELECT 5, 'EXTENSION', quote_ident(extname) FROM pg_extension
  UNION ALL SELECT 6, 'SCHEMA', quote_ident(nspname) FROM own WHERE ('pg_namespace'::regclass, oid) NOT IN (SELECT classid, objid FROM part)
  UNION ALL SELECT 7, 'DATABASE', quote_ident(datname) FROM pg_database
  UNION ALL SELECT 8, 'ROLE', quote_ident(rolname) FROM pg_roles WHERE rolname !~ '^pg_')
SELECT kind || ' ' || name FROM object ORDER BY turn, kind, name LIMIT ";

/// What somebody could have made in the connected database and beside it, each as DROP names it, in an order in which they can be
/// dropped; at most one more than [`OBJECTS_MAX`].
///
/// # Errors
///
/// The server's.
pub fn objects(server: &mut Server) -> Result<Vec<String>, ServerError> {
    let sql = format!("{OBJECTS}{}", OBJECTS_MAX + 1);
    let rows = server.rows("listing the database's objects", &sql)?;
    Ok(rows
        .into_iter()
        .filter_map(|row| row.into_iter().next()?)
        .collect())
}
