//! SQL of the user's that is part of the data: tables, indexes and functions of their own.

use super::error::DataError;
use super::session::step_error;
use crate::script::split::{Kind, split};
use crate::session::Session;

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
    let statement = |command: crate::script::split::Command<'_>| match command.kind {
        Kind::Sql(sql) => Ok((line_at(command.at), sql)),
        Kind::Meta { name, .. } => Err(wrong(
            line_at(command.at),
            &format!("\\{name} is a command of psql, and only SQL is run here"),
        )),
    };
    commands.into_iter().map(statement).collect()
}

/// Runs them one after another, each a transaction of its own unless the text begins one. What they have made is vacuumed and analysed, so
/// that the server does not begin to do so by itself under the load.
pub(super) fn run(client: &mut Session, text: &str) -> Result<(), DataError> {
    for (line, sql) in statements(text)? {
        let step = || format!("line {line} of the data's SQL");
        client.work(&sql).map_err(|source| step_error(step(), source))?;
    }
    let step = "vacuuming what the data's SQL has made";
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
