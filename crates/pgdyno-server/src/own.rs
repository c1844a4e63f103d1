//! The mark that separates pgdyno's own statements from a load's in the server's statistics.

use std::borrow::Cow;

/// How a mark begins, whatever follows in it. What is before the first word of a statement,
/// pg_stat_statements drops.
const MARK: &str = "/* pgdyno";

/// A statement with the mark behind its first word; one that begins otherwise, or has a mark, is as
/// it was.
pub fn marked(sql: &str) -> Cow<'_, str> {
    let begin = sql.len() - sql.trim_start().len();
    let word = sql[begin..].find(|c: char| !c.is_ascii_alphabetic());
    let end = begin + word.unwrap_or(sql.len() - begin);
    if end == begin || is_own(sql) {
        return Cow::Borrowed(sql);
    }
    Cow::Owned(format!("{} {MARK} */{}", &sql[..end], &sql[end..]))
}

/// Whether a statement's text, or its beginning, has the mark.
pub(crate) fn is_own(text: &str) -> bool {
    text.contains(MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_follows_the_first_word_once() {
        for (sql, expected) in [
            ("SELECT 1", "SELECT /* pgdyno */ 1"),
            (" SELECT'a b'", " SELECT /* pgdyno */'a b'"),
            ("CHECKPOINT", "CHECKPOINT /* pgdyno */"),
            (
                "SELECT /* pgdyno facts: wal */ 1",
                "SELECT /* pgdyno facts: wal */ 1",
            ),
            ("(SELECT 1)", "(SELECT 1)"),
            ("", ""),
        ] {
            assert_eq!(marked(sql), expected);
            assert_eq!(marked(&marked(sql)), expected);
        }
        assert!(is_own(&marked("SELECT 1")));
        assert!(!is_own("SELECT pgdyno FROM t"));
    }
}
