//! Tables and functions that carry a mark in their comment: found and dropped by that mark alone, whatever their names are.

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
