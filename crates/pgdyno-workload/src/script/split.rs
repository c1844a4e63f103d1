//! Cuts the text of a script into its commands, as psql and pgbench cut it (PostgreSQL
//! documentation, "Lexical Structure" and pgbench, "Custom Scripts").

use crate::script::expression::Wrong;
use pgdyno_engine::expression::{is_name_byte, is_name_start};

/// One command of a script; `at` is the byte where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command<'a> {
    pub(crate) at: usize,
    pub(crate) kind: Kind<'a>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    /// A statement, without the semicolon that ended it.
    Sql(String),
    /// A meta command: its name, and the rest of its line with the byte where that begins.
    Meta {
        name: &'a str,
        rest: &'a str,
        rest_at: usize,
    },
}

pub(crate) fn split(text: &str) -> Result<Vec<Command<'_>>, Wrong> {
    let mut splitter = Splitter {
        text,
        bytes: text.as_bytes(),
        at: 0,
        commands: Vec::new(),
    };
    while splitter.at < text.len() {
        splitter.statement()?;
        if splitter.at < text.len() {
            splitter.meta()?;
        }
    }
    Ok(splitter.commands)
}

struct Splitter<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    commands: Vec<Command<'a>>,
}

/// Where a statement is: how many parentheses are open, and whether it makes a routine whose body
/// has statements of its own.
#[derive(Default)]
struct Place {
    parentheses: u32,
    words: Vec<String>,
    blocks: u32,
}

impl Place {
    fn word(&mut self, word: &str) {
        if self.words.len() < 4 {
            self.words.push(word.to_ascii_lowercase());
        }
        let makes_a_routine = {
            let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
            matches!(
                words.as_slice(),
                ["create", "function" | "procedure", ..]
                    | ["create", "or", "replace", "function" | "procedure", ..]
            )
        };
        if makes_a_routine && self.parentheses == 0 {
            match word.to_ascii_lowercase().as_str() {
                "begin" => self.blocks += 1,
                "case" if self.blocks > 0 => self.blocks += 1,
                "end" => self.blocks = self.blocks.saturating_sub(1),
                _ => {}
            }
        }
    }
}

impl<'a> Splitter<'a> {
    fn wrong(at: usize, message: &str) -> Wrong {
        Wrong {
            at,
            message: message.to_owned(),
        }
    }

    fn starts(&self, with: &str) -> bool {
        self.bytes[self.at..].starts_with(with.as_bytes())
    }

    /// Statements up to a meta command or the end.
    fn statement(&mut self) -> Result<(), Wrong> {
        let mut sql = String::new();
        let mut begin = None;
        let mut place = Place::default();
        // Text from here on is not yet in `sql`.
        let mut from = self.at;
        while let Some(&byte) = self.bytes.get(self.at) {
            let start = self.at;
            match byte {
                b'\\' => match self.bytes.get(self.at + 1) {
                    // A semicolon or colon of the statement itself.
                    Some(b';' | b':') => {
                        sql.push_str(&self.text[from..self.at]);
                        from = self.at + 1;
                        self.at += 2;
                    }
                    _ => break,
                },
                b';' if place.parentheses == 0 && place.blocks == 0 => {
                    sql.push_str(&self.text[from..self.at]);
                    self.take(&mut sql, begin.take());
                    place = Place::default();
                    self.at += 1;
                    from = self.at;
                    continue;
                }
                b'-' if self.starts("--") => {
                    self.at = self.find_from(self.at, "\n").unwrap_or(self.bytes.len());
                    continue;
                }
                b'/' if self.starts("/*") => {
                    self.comment()?;
                    continue;
                }
                b'(' => (place.parentheses, self.at) = (place.parentheses + 1, self.at + 1),
                b')' => {
                    place.parentheses = place.parentheses.saturating_sub(1);
                    self.at += 1;
                }
                b'\'' => self.quoted(start, false)?,
                b'"' => self.quoted(start, false)?,
                b'$' => self.dollar()?,
                byte if is_name_start(byte) => {
                    while self
                        .bytes
                        .get(self.at)
                        .is_some_and(|&b| is_name_byte(b) || b == b'$')
                    {
                        self.at += 1;
                    }
                    let word = &self.text[start..self.at];
                    if word.eq_ignore_ascii_case("e") && self.bytes.get(self.at) == Some(&b'\'') {
                        self.quoted(start, true)?;
                    } else {
                        place.word(word);
                    }
                }
                _ => self.at += 1,
            }
            if begin.is_none() && !byte.is_ascii_whitespace() {
                // What is before is not part of it: a comment may hold colons.
                begin = Some(start);
                sql.clear();
                if from < start {
                    from = start;
                }
            }
        }
        sql.push_str(&self.text[from..self.at]);
        self.take(&mut sql, begin);
        Ok(())
    }

    /// A statement is whole; one of blanks and comments only is none.
    fn take(&mut self, sql: &mut String, begin: Option<usize>) {
        let sql = std::mem::take(sql);
        if let Some(at) = begin {
            self.commands.push(Command {
                at,
                kind: Kind::Sql(sql.trim().to_owned()),
            });
        }
    }

    fn find_from(&self, from: usize, needle: &str) -> Option<usize> {
        self.text.get(from..)?.find(needle).map(|at| from + at)
    }

    fn comment(&mut self) -> Result<(), Wrong> {
        let start = self.at;
        let mut depth = 0_u32;
        loop {
            if self.starts("/*") {
                depth += 1;
                self.at += 2;
            } else if self.starts("*/") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    return Ok(());
                }
            } else if self.at < self.bytes.len() {
                self.at += 1;
            } else {
                return Err(Self::wrong(start, "the comment that begins here has no end (*/)"));
            }
        }
    }

    /// A quoted string or name; a quote within it is doubled, or escaped where escapes are.
    fn quoted(&mut self, start: usize, escapes: bool) -> Result<(), Wrong> {
        let quote = self.bytes[self.at];
        self.at += 1;
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += 1;
            if byte == b'\\' && escapes {
                self.at += 1;
            } else if byte == quote {
                if self.bytes.get(self.at) != Some(&quote) {
                    return Ok(());
                }
                // Doubled, it is part of the string.
                self.at += 1;
            }
        }
        Err(Self::wrong(start, "the quote that is opened here is not closed"))
    }

    /// A parameter, an operator's dollar, or a dollar-quoted string.
    fn dollar(&mut self) -> Result<(), Wrong> {
        let start = self.at;
        let mut end = start + 1;
        if self.bytes.get(end).is_some_and(|&byte| is_name_start(byte)) {
            while self.bytes.get(end).is_some_and(|&byte| is_name_byte(byte)) {
                end += 1;
            }
        }
        if self.bytes.get(end) != Some(&b'$') {
            self.at = end;
            return Ok(());
        }
        let tag = &self.text[start..=end];
        match self.find_from(end + 1, tag) {
            Some(close) => {
                self.at = close + tag.len();
                Ok(())
            }
            None => Err(Self::wrong(
                start,
                &format!("the string that begins here has no end ({tag})"),
            )),
        }
    }

    /// A meta command: from its backslash to the end of the line; a backslash there continues it.
    fn meta(&mut self) -> Result<(), Wrong> {
        let at = self.at;
        self.at += 1;
        let name_at = self.at;
        while self
            .bytes
            .get(self.at)
            .is_some_and(|byte| !byte.is_ascii_whitespace())
        {
            self.at += 1;
        }
        let name = &self.text[name_at..self.at];
        if name.is_empty() {
            return Err(Self::wrong(
                at,
                "expected the name of a meta command behind the backslash",
            ));
        }
        let rest_at = self.at;
        loop {
            let end = self.find_from(self.at, "\n").unwrap_or(self.bytes.len());
            self.at = (end + 1).min(self.bytes.len());
            let line = self.text[rest_at..end]
                .strip_suffix('\r')
                .unwrap_or(&self.text[rest_at..end]);
            if end == self.bytes.len() || !line.ends_with('\\') {
                self.commands.push(Command {
                    at,
                    kind: Kind::Meta {
                        name,
                        rest: line,
                        rest_at,
                    },
                });
                return Ok(());
            }
        }
    }
}

/// The words of a meta command's rest, with the byte where each begins.
pub(crate) fn words(rest: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut start = None;
    let bytes = rest.as_bytes();
    for at in 0..=bytes.len() {
        let continues = bytes.get(at) == Some(&b'\\') && matches!(bytes.get(at + 1), Some(b'\n' | b'\r'));
        let blank = bytes.get(at).is_none_or(u8::is_ascii_whitespace) || continues;
        match (blank, start) {
            (true, Some(begin)) => {
                words.push((begin, &rest[begin..at]));
                start = None;
            }
            (false, None) => start = Some(at),
            _ => {}
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let show = |command: Command<'_>| match command.kind {
            Kind::Sql(sql) => sql,
            Kind::Meta { name, rest, .. } => format!("\\{name}{rest}"),
        };
        split(text).unwrap().into_iter().map(show).collect()
    }

    #[test]
    fn statements_end_at_semicolons_that_are_their_own() {
        for (text, expected) in [
            ("select 1; select 2;", &["select 1", "select 2"][..]),
            ("select 1 -- ; no\n, 2;", &["select 1 -- ; no\n, 2"]),
            ("/* a ; /* b; */ ; */ ;", &[]),
            (
                "select ';', \"a;b\", E'\\';', 'it''s;';",
                &["select ';', \"a;b\", E'\\';', 'it''s;'"],
            ),
            (
                "select $$;$$, $a$ ; $$ $a$, $1;x",
                &["select $$;$$, $a$ ; $$ $a$, $1", "x"],
            ),
            (
                "create rule r as do (a; b); c",
                &["create rule r as do (a; b)", "c"],
            ),
            (
                "create function f() returns int begin atomic select 1; select case when true then 2 end; end; select 1",
                &[
                    "create function f() returns int begin atomic select 1; select case when true then 2 end; end",
                    "select 1",
                ],
            ),
            ("begin; end;", &["begin", "end"]),
            ("select 1\\; select 2;", &["select 1; select 2"]),
            (
                "\\set a 1\nselect :a \\gset p_\nend;",
                &["\\set a 1", "select :a", "\\gset p_", "end"],
            ),
            (
                "\\set a 1 \\\n + 2\n\\if true\n",
                &["\\set a 1 \\\n + 2", "\\if true"],
            ),
            ("  -- nothing\n", &[]),
            ("-- about :a\n/* :b */ select 1 -- :c\n;", &["select 1 -- :c"]),
            ("select E'it''s \\' ; x'; b", &["select E'it''s \\' ; x'", "b"]),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn what_has_no_end_is_reported_with_its_start() {
        for (text, at) in [("a 'b", 2), ("/* x", 0), ("a $x$ $y$", 2), ("select 1;\n\\ ", 10)] {
            assert_eq!(split(text).unwrap_err().at, at, "{text}");
        }
    }

    #[test]
    fn words_are_cut_at_blanks_and_continued_lines() {
        assert_eq!(words("  a b\\\n  c "), [(2, "a"), (4, "b"), (9, "c")]);
    }
}
