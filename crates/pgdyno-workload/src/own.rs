//! The mark of pgdyno's own statements about data: it distinguishes them from the load's in the
//! server's statistics. pgdyno-server looks for it.

use crate::script::split::{Kind, split};
use std::borrow::Cow;

const MARK: &str = " /* pgdyno */";

/// Statements with the mark behind the first word of each: pg_stat_statements keeps each by itself,
/// without the comment before it.
pub fn marked(sql: &str) -> Cow<'_, str> {
    let Ok(commands) = split(sql) else {
        return Cow::Borrowed(sql);
    };
    let mut marked = String::with_capacity(sql.len() + commands.len() * MARK.len());
    let mut taken = 0;
    for command in commands {
        let Kind::Sql(text) = command.kind else {
            return Cow::Borrowed(sql);
        };
        let word = text
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(text.len());
        if word > 0 && !text.contains(MARK.trim_start()) {
            marked.push_str(&sql[taken..command.at + word]);
            marked.push_str(MARK);
            taken = command.at + word;
        }
    }
    marked.push_str(&sql[taken..]);
    Cow::Owned(marked)
}

#[cfg(test)]
mod tests {
    use super::marked;

    #[test]
    fn every_statement_has_the_mark_behind_its_first_word_once() {
        for (sql, expected) in [
            ("SELECT 1", "SELECT /* pgdyno */ 1"),
            (
                "BEGIN; SET LOCAL a = ';'; SELECT 1",
                "BEGIN /* pgdyno */; SET /* pgdyno */ LOCAL a = ';'; SELECT /* pgdyno */ 1",
            ),
            (
                "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1; SELECT 2 $$; COMMIT",
                "CREATE /* pgdyno */ FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1; SELECT 2 $$; COMMIT /* pgdyno */",
            ),
            (
                "-- a comment\n SELECT 1;",
                "-- a comment\n SELECT /* pgdyno */ 1;",
            ),
            ("(SELECT 1)", "(SELECT 1)"),
            ("SELECT 'unended", "SELECT 'unended"),
            ("", ""),
        ] {
            assert_eq!(marked(sql), expected);
            assert_eq!(marked(&marked(sql)), expected);
        }
    }
}
