//! What may be shown: no passwords, no parameters of statements.

use std::iter::Peekable;
use std::str::CharIndices;

/// Longest text of a statement.
const TEXT_MAX: usize = 300;
/// What is written instead of something that is not shown.
pub(super) const HIDDEN: &str = "(set, not shown)";

/// Words in the names of settings under which people keep what nobody else should see.
const SECRET_WORDS: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "api_key",
    "credential",
    "private_key",
    "jwt",
];

/// Connection strings and commands, in which people put passwords; and settings of applications, by
/// their names.
pub(super) fn may_hold_a_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    let is_own = name == "password_encryption";
    !is_own
        && (name.ends_with("conninfo")
            || name.ends_with("_command")
            || SECRET_WORDS.iter().any(|word| name.contains(word)))
}

/// A statement's text on one line, without what is in quotes, numbers and comments. Of one that is
/// neither read nor write of rows only the first words are left: passwords are in those, and not in
/// quotes alone.
pub fn statement(text: &str) -> String {
    const SHOWN: [&str; 9] = [
        "select", "insert", "update", "delete", "with", "merge", "values", "table", "(",
    ];
    let plain = without_constants(text);
    let lower = plain.to_lowercase();
    let shown = match SHOWN.iter().any(|word| lower.starts_with(word)) {
        true => plain,
        false => {
            // SET a.token=x has no blank before what is secret.
            let head = plain.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ' '));
            let words = head.take(1).flat_map(str::split_whitespace).take(2);
            words.collect::<Vec<&str>>().join(" ")
        }
    };
    match shown.char_indices().nth(TEXT_MAX) {
        Some((end, _)) => format!("{}\u{2026}", &shown[..end]),
        None => shown,
    }
}

type Chars<'a> = Peekable<CharIndices<'a>>;

fn without_constants(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|&(_, c)| c);
        let in_word = out.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$');
        match c {
            '\'' => {
                // A backslash may hide a quote in E'...'; taking it so everywhere hides too much at
                // worst.
                skip_quoted(&mut chars, '\'', true);
                out.push('?');
            }
            '"' => {
                let begin = at;
                let end = skip_quoted(&mut chars, '"', false).unwrap_or(text.len());
                out.push_str(&text[begin..end]);
            }
            '-' if next == Some('-') => skip_until(&mut chars, '\n'),
            '/' if next == Some('*') => skip_comment(&mut chars),
            '$' if !in_word => match dollar_tag(&text[at..]) {
                Some(tag) => {
                    let rest = &text[at + tag.len()..];
                    let end = rest.find(tag).map_or(text.len(), |e| at + 2 * tag.len() + e);
                    while chars.peek().is_some_and(|&(i, _)| i < end) {
                        chars.next();
                    }
                    out.push('?');
                }
                None => out.push('$'),
            },
            c if c.is_ascii_digit() && !in_word => {
                while chars
                    .peek()
                    .is_some_and(|(_, c)| c.is_alphanumeric() || *c == '.' || *c == '_')
                {
                    chars.next();
                }
                out.push('?');
            }
            c if c.is_whitespace() => {
                if !out.ends_with(' ') && !out.is_empty() {
                    out.push(' ');
                }
            }
            c => out.push(c),
        }
    }
    out.trim_end().to_owned()
}

/// Past the end of a quoted text whose first quote is gone; where it ends.
fn skip_quoted(chars: &mut Chars<'_>, quote: char, backslash: bool) -> Option<usize> {
    while let Some((at, c)) = chars.next() {
        if backslash && c == '\\' {
            chars.next();
        } else if c == quote {
            if chars.peek().map(|&(_, c)| c) != Some(quote) {
                return Some(at + c.len_utf8());
            }
            chars.next();
        }
    }
    None
}

fn skip_until(chars: &mut Chars<'_>, end: char) {
    for (_, c) in chars.by_ref() {
        if c == end {
            return;
        }
    }
}

fn skip_comment(chars: &mut Chars<'_>) {
    chars.next();
    let mut last = ' ';
    for (_, c) in chars.by_ref() {
        if last == '*' && c == '/' {
            return;
        }
        last = c;
    }
}

/// `$tag$` at the beginning of a text.
fn dollar_tag(text: &str) -> Option<&str> {
    let end = text[1..].find('$')? + 2;
    let tag = &text[1..end - 1];
    let is_tag = !tag.starts_with(|c: char| c.is_ascii_digit())
        && tag.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_tag.then(|| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn constants_and_commands_are_not_shown() {
        for (text, shown) in [
            ("SELECT *\n  FROM t WHERE a = $1", "SELECT * FROM t WHERE a = $1"),
            (
                "select 'it''s' || E'a\\'b', x1, 42, 1.5e3",
                "select ? || E?, x1, ?, ?",
            ),
            (
                "SELECT $$secret$$, $a$x$b$y$a$ FROM \"T 1\"",
                "SELECT ?, ? FROM \"T 1\"",
            ),
            ("SELECT 1 -- password hunter2\n + /* no */ $2", "SELECT ? + $2"),
            ("ALTER ROLE joe PASSWORD 'hunter2'", "ALTER ROLE"),
            ("/* x */ CREATE USER joe PASSWORD 'hunter2'", "CREATE USER"),
            ("SET app.token=hunter2", "SET app"),
            ("vacuum (analyze) t", "vacuum"),
            ("SELECT 'not ended", "SELECT ?"),
            ("", ""),
        ] {
            assert_eq!(statement(text), shown, "{text}");
        }
        for word in ["SELECT", "VACUUM"] {
            let long = format!("{word} {}", "a".repeat(9999));
            assert_eq!(statement(&long).chars().count(), TEXT_MAX + 1);
        }
    }

    #[test]
    fn settings_that_may_hold_a_secret() {
        for (name, hidden) in [
            ("primary_conninfo", true),
            ("archive_command", true),
            ("ssl_passphrase_command", true),
            ("app.settings.JWT_Secret", true),
            ("app.api_key", true),
            ("password_encryption", false),
            ("work_mem", false),
        ] {
            assert_eq!(may_hold_a_secret(name), hidden, "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[ -~\u{e4}\u{20ac}\n]{0,60}|['$\"\\\\/*-]{0,20}|\\PC{0,40}") {
            statement(&text);
        }

        #[test]
        fn what_is_in_quotes_is_gone(text in "[a-z ]{0,20}") {
            let quoted = format!("SELECT 'hunter2{text}', $q$hunter2{text}$q$");
            prop_assert!(!statement(&quoted).contains("hunter2"));
        }
    }
}
