//! How pg_stat_statements grew from one look to another: what a load asked for, statement by
//! statement, by the server's own counts.

use crate::error::ServerError;
use crate::facts::shown_statement;
use crate::own::is_own;
use crate::server::{Row, Server};
use pgdyno_record::StatementRecord;
use std::collections::HashMap;

/// So much of a statement is read; [`shown_statement`] cuts what is left of it.
const READ_CHARS: usize = 4000;
/// No more of our own statements than these are among those that take the most time.
const OWN_MAX: usize = 100;
/// The server's text for a statement that the role may not see.
const HIDDEN: &str = "<insufficient privilege>";
/// Object not in prerequisite state: the library is not in shared_preload_libraries.
const NOT_LOADED: &str = "55000";
/// What the statement is for, in errors.
const WHAT: &str = "reading pg_stat_statements";

/// What is counted of a statement, all users together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Counts {
    calls: u64,
    total_ms: f64,
    rows: u64,
    blocks_hit: u64,
    blocks_read: u64,
    wal_bytes: u64,
}

/// Where statements are read from.
#[derive(Debug, Clone)]
struct Source {
    /// The function, with its schema, quoted.
    function: String,
    /// Whether it marks what was executed within other statements, whose counts include it already
    /// (1.9 and later).
    has_level: bool,
}

impl Source {
    /// Statements that the load itself sent to the connected database, for FROM; texts are read
    /// from a file.
    fn rows(&self, with_texts: bool) -> String {
        let level = if self.has_level { " AND toplevel" } else { "" };
        format!(
            "{}({with_texts}) WHERE queryid IS NOT NULL \
             AND dbid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()){level}",
            self.function
        )
    }
}

/// A state of pg_stat_statements that later ones are compared with.
#[derive(Debug, Clone)]
pub struct StatementLook {
    source: Source,
    counts: HashMap<i64, Counts>,
}

impl StatementLook {
    /// Looks; `None` where the extension is not in the connected database, or its library is not
    /// loaded. An error is that of a right that is missing, or of a broken connection.
    pub fn new(server: &mut Server) -> Result<Option<StatementLook>, ServerError> {
        let sql = "SELECT quote_ident(n.nspname), EXISTS (SELECT FROM pg_catalog.pg_proc p WHERE p.pronamespace = n.oid \
                   AND p.proname = 'pg_stat_statements' AND 'toplevel' = ANY (p.proargnames)) \
                   FROM pg_catalog.pg_extension e \
                   JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_stat_statements'";
        let rows = server.rows("looking for pg_stat_statements", sql)?;
        let Some([Some(schema), has_level]) = rows.first().map(Vec::as_slice) else {
            return Ok(None);
        };
        let source = Source {
            function: format!("{schema}.pg_stat_statements"),
            has_level: has_level.as_deref() == Some("t"),
        };
        match counts(server, &source) {
            Ok(counts) => Ok(Some(StatementLook { source, counts })),
            Err(ServerError::Statement { sqlstate, .. }) if sqlstate == NOT_LOADED => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Looks again: what is grown counts from here on.
    pub fn renew(&mut self, server: &mut Server) -> Result<(), ServerError> {
        self.counts = counts(server, &self.source)?;
        Ok(())
    }

    /// Those that took the most time since this look, but for our own, the most expensive first,
    /// with their texts; no more than `most`.
    pub fn grown(&self, server: &mut Server, most: usize) -> Result<Vec<StatementRecord>, ServerError> {
        let now = counts(server, &self.source)?;
        let mut grown = growth(&self.counts, &now);
        grown.sort_by(|a, b| {
            b.total_ms
                .total_cmp(&a.total_ms)
                .then(a.query_id.cmp(&b.query_id))
        });
        grown.truncate(most + OWN_MAX);
        let mut texts = texts(server, &self.source, &grown)?;
        grown.retain_mut(|statement| {
            let text = texts.remove(&statement.query_id);
            let is_load = text.as_deref().is_none_or(|text| !is_own(text));
            statement.text = text.map(|text| shown_statement(&text));
            is_load
        });
        grown.truncate(most);
        Ok(grown)
    }
}

/// Of those that were called since; one whose counts have become less was thrown out or reset, and
/// is skipped.
fn growth(before: &HashMap<i64, Counts>, now: &HashMap<i64, Counts>) -> Vec<StatementRecord> {
    let grown = now.iter().filter_map(|(query_id, now)| {
        let before = before.get(query_id).copied().unwrap_or_default();
        let total_ms = now.total_ms - before.total_ms;
        let calls = now.calls.checked_sub(before.calls)?;
        (calls > 0 && total_ms >= 0.0).then_some(StatementRecord {
            query_id: *query_id,
            text: None,
            calls,
            total_ms,
            rows: now.rows.checked_sub(before.rows)?,
            blocks_hit: now.blocks_hit.checked_sub(before.blocks_hit)?,
            blocks_read: now.blocks_read.checked_sub(before.blocks_read)?,
            wal_bytes: now.wal_bytes.checked_sub(before.wal_bytes)?,
        })
    });
    grown.collect()
}

/// Without the texts. Statements of others are without a number where the role may not see them.
fn counts(server: &mut Server, source: &Source) -> Result<HashMap<i64, Counts>, ServerError> {
    let sql = format!(
        "SELECT queryid, sum(calls), sum(total_exec_time), sum(rows), sum(shared_blks_hit), sum(shared_blks_read), \
         sum(wal_bytes) FROM {} GROUP BY queryid",
        source.rows(false)
    );
    let rows = server.rows(WHAT, &sql)?;
    rows.iter().map(counted).collect()
}

fn counted(row: &Row) -> Result<(i64, Counts), ServerError> {
    let text = |column: usize| row.get(column).and_then(Option::as_deref).unwrap_or_default();
    let wrong = |column: usize| ServerError::Answer {
        what: WHAT.to_owned(),
        expected: "a count",
        found: text(column).to_owned(),
    };
    let number = |column: usize| text(column).parse::<u64>().map_err(|_| wrong(column));
    let counts = Counts {
        calls: number(1)?,
        total_ms: text(2).parse().map_err(|_| wrong(2))?,
        rows: number(3)?,
        blocks_hit: number(4)?,
        blocks_read: number(5)?,
        wal_bytes: number(6)?,
    };
    Ok((text(0).parse().map_err(|_| wrong(0))?, counts))
}

/// Texts as they were sent. Users may have written the same in another way: the text is that of the
/// first of them.
fn texts(
    server: &mut Server,
    source: &Source,
    statements: &[StatementRecord],
) -> Result<HashMap<i64, String>, ServerError> {
    if statements.is_empty() {
        return Ok(HashMap::new());
    }
    let ids: Vec<String> = statements
        .iter()
        .map(|statement| statement.query_id.to_string())
        .collect();
    let sql = format!(
        "SELECT DISTINCT ON (queryid) queryid, left(query, {READ_CHARS}) FROM {} \
         AND queryid = ANY ('{{{}}}'::int8[]) AND query <> '{HIDDEN}' ORDER BY queryid, userid",
        source.rows(true),
        ids.join(",")
    );
    let rows = server.rows(WHAT, &sql)?;
    let texts = rows.into_iter().filter_map(|row| {
        let mut columns = row.into_iter();
        let query_id = columns.next()??.parse().ok()?;
        Some((query_id, columns.next()??))
    });
    Ok(texts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grew_is_reported_and_what_was_reset_is_not() {
        let counts = |calls: u64, total_ms: f64| Counts {
            calls,
            total_ms,
            rows: calls,
            ..Counts::default()
        };
        let before = HashMap::from([(1, counts(10, 5.0)), (2, counts(10, 5.0)), (3, counts(10, 5.0))]);
        let now = HashMap::from([
            (1, counts(15, 7.5)),
            (2, counts(10, 5.0)),
            (3, counts(2, 9.0)),
            (-4, counts(1, 1.0)),
        ]);
        let mut grown = growth(&before, &now);
        grown.sort_by_key(|statement| statement.query_id);
        let reported: Vec<_> = grown
            .iter()
            .map(|s| (s.query_id, s.calls, s.rows, s.total_ms))
            .collect();
        assert_eq!(reported, [(-4, 1, 1, 1.0), (1, 5, 5, 2.5)]);
    }

    #[test]
    fn a_row_is_counts_or_an_error() {
        let check = |row: &[&str], is_fine: bool| {
            let row: Row = row.iter().map(|text| Some((*text).to_owned())).collect();
            assert_eq!(counted(&row).is_ok(), is_fine, "{row:?}");
        };
        check(&["-5", "1", "0.25", "3", "4", "5", "6"], true);
        check(&["-5", "1", "0.25", "3", "4", "5"], false);
        check(&["x", "1", "0.25", "3", "4", "5", "6"], false);
        check(&["5", "-1", "0.25", "3", "4", "5", "6"], false);
        check(&[], false);
    }
}
