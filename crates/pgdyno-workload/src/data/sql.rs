//! SQL of the user's that is part of the data: tables, indexes and functions of their own.

use super::error::DataError;
use super::session::{self, step_error};
use crate::script::split::{Command, Kind, split};
use pgdyno_engine::Endpoint;

/// Texts beyond this are dumps, which a program restores.
const LENGTH_MAX: usize = 16 << 20;

/// The statements of a text, each with its line from 1.
pub(super) fn statements(text: &str) -> Result<Vec<(usize, String)>, DataError> {
    let line_at = |at: usize| text[..at].matches('\n').count() + 1;
    let wrong = |line, message: &str| DataError::Sql {
        line,
        message: message.to_owned(),
    };
    if text.len() > LENGTH_MAX {
        return Err(wrong(1, "the text has more than 16 MB"));
    }
    let commands = split(text).map_err(|error| wrong(line_at(error.at), &error.message))?;
    let statement = |command: Command<'_>| match command.kind {
        Kind::Sql(sql) => Ok((line_at(command.at), sql)),
        Kind::Meta { name, .. } => Err(wrong(
            line_at(command.at),
            &format!("\\{name} is a command of psql, and only SQL is run here"),
        )),
    };
    commands.into_iter().map(statement).collect()
}

/// Runs them one after another in a session of their own, each a transaction of its own unless the
/// text begins one. What they have made is vacuumed and analysed, so that the server does not begin
/// to do so by itself under the load.
pub(super) fn run(endpoint: &Endpoint, text: &str) -> Result<(), DataError> {
    let mut client = session::open(endpoint)?;
    let mut last = 1;
    for (line, sql) in statements(text)? {
        let step = || format!("line {line} of the data's SQL");
        client.work(&sql).map_err(|source| step_error(step(), source))?;
        last = line;
    }
    // Within a transaction, now() is the time of its begin.
    let step = "asking whether the data's SQL has ended";
    let asked = client.rows("SELECT pg_catalog.now() = pg_catalog.statement_timestamp()");
    let rows = asked.map_err(|source| step_error(step, source))?;
    if rows.first().is_none_or(|row| session::text(row, 0) != "t") {
        return Err(DataError::Sql {
            line: last,
            message: "it ends within a transaction that it has begun; COMMIT is missing".to_owned(),
        });
    }
    let step = "vacuuming what the data's SQL has made";
    let mut client = session::open(endpoint)?;
    client
        .work("VACUUM (ANALYZE)")
        .map_err(|source| step_error(step, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_have_their_lines_and_commands_of_psql_are_refused() {
        let text = "-- a schema\nCREATE TABLE t (a int);\n\nCREATE FUNCTION f() RETURNS int AS $$ SELECT 1; $$ LANGUAGE sql;\n";
        let found = statements(text).expect("statements");
        let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [2, 4]);
        assert!(found[1].1.contains("$$ SELECT 1; $$"), "{found:?}");
        for (text, expected) in [
            (
                "CREATE TABLE t (a int);\n\\copy t from 'x'\n",
                "line 2 of the data's SQL: \\copy is a command of psql, and only SQL is run here",
            ),
            (
                "SELECT 1;\nSELECT 'a",
                "line 2 of the data's SQL: the quote that is opened here is not closed",
            ),
        ] {
            assert_eq!(statements(text).expect_err(text).to_string(), expected);
        }
        let long = " ".repeat(LENGTH_MAX + 1);
        assert!(statements(&long).is_err());
        assert!(statements("").expect("none").is_empty());
    }
}
