//! Whether a statement makes, changes or removes objects that stay: CREATE, DROP, ALTER, TRUNCATE
//! and the like, and SELECT INTO. What a function does that it calls cannot be seen in its text.

use std::collections::BTreeSet;

/// First words of statements that make, change or remove objects, or what is stored of them.
const MAKING: [&str; 9] = [
    "create", "drop", "alter", "truncate", "import", "reassign", "grant", "revoke", "comment",
];
/// Words between the first one and a name.
const BEFORE_NAME: [&str; 20] = [
    "or",
    "replace",
    "global",
    "local",
    "temp",
    "temporary",
    "unique",
    "recursive",
    "concurrently",
    "table",
    "sequence",
    "view",
    "index",
    "function",
    "procedure",
    "type",
    "if",
    "not",
    "exists",
    "only",
];
/// Kinds of object that may be temporary.
const KINDS: [&str; 4] = ["table", "sequence", "view", "index"];
/// Words of PL/pgSQL after which a statement begins.
const BEFORE_STATEMENT: [&str; 4] = ["begin", "then", "else", "loop"];
/// The schema of what is temporary.
const PG_TEMP: &str = "pg_temp";

/// A piece of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// A word, in small letters.
    Word(String),
    /// A name in double quotes.
    Name(String),
    /// The text between dollar quotes.
    Body(String),
    /// Any other character; of a string in single quotes the quote alone.
    Other(char),
}

impl Token {
    fn is_any(&self, words: &[&str]) -> bool {
        matches!(self, Token::Word(text) if words.contains(&text.as_str()))
    }

    fn name(&self) -> Option<&str> {
        match self {
            Token::Word(text) | Token::Name(text) => Some(text),
            _ => None,
        }
    }

    fn is_temporary(&self) -> bool {
        self.is_any(&["temp", "temporary"])
    }
}

/// Reads the statements of one script in their order: what it has made as temporary is its own.
#[derive(Debug, Default, Clone)]
pub(crate) struct Making {
    temporary: BTreeSet<String>,
}

impl Making {
    /// Whether a text, one statement or several, makes, changes or removes objects that stay.
    pub(crate) fn is_in(&mut self, sql: &str) -> bool {
        let tokens = tokens(sql);
        let mut found = false;
        for statement in tokens.split(|token| *token == Token::Other(';')) {
            // All of them, for each may make what is temporary.
            found |= self.is_in_one(statement);
        }
        found
    }

    fn is_in_one(&mut self, statement: &[Token]) -> bool {
        let Some((first, rest)) = statement.split_first() else {
            return false;
        };
        if first.is_any(&["explain"]) {
            let begins = |token: &Token| token.is_any(&["create", "select", "with"]);
            let at = rest.iter().position(begins).unwrap_or(rest.len());
            let is_executed = rest[..at].iter().any(|token| token.is_any(&["analyze"]));
            return is_executed && self.is_in_one(&rest[at..]);
        }
        if first.is_any(&["do"]) {
            // A body in single quotes is not looked into. What one makes under a condition may not
            // be there behind it.
            return rest.iter().any(|token| match token {
                Token::Body(text) => self.clone().is_in_body(text),
                token => *token == Token::Other('\''),
            });
        }
        // What was made since it began may be gone.
        if first.is_any(&["rollback", "abort", "discard"]) {
            self.temporary.clear();
        }
        match first.is_any(&MAKING) {
            true => !self.is_of_temporary(statement),
            false => self.is_into(statement),
        }
    }

    /// Whether a body of PL/pgSQL has such a statement, or one that is put together when it runs.
    fn is_in_body(&mut self, text: &str) -> bool {
        let tokens = tokens(text);
        let mut found = false;
        for statement in tokens.split(|token| *token == Token::Other(';')) {
            for at in 0..statement.len() {
                let begins = at == 0 || statement[at - 1].is_any(&BEFORE_STATEMENT);
                found |= begins && statement[at].is_any(&["execute"]);
                found |= begins && statement[at].is_any(&MAKING) && !self.is_of_temporary(&statement[at..]);
            }
        }
        found
    }

    /// Whether a statement of [`MAKING`] is about temporary objects alone. What it makes of them is
    /// kept.
    fn is_of_temporary(&mut self, statement: &[Token]) -> bool {
        let (first, rest) = (&statement[0], &statement[1..]);
        let creates = first.is_any(&["create"]);
        let has = |words: &[&str]| rest.iter().take(4).any(|token| token.is_any(words));
        let is_index = creates && has(&["index"]);
        // CREATE FUNCTION x and DROP ROLE x are not about a table x.
        let may_be = first.is_any(&["truncate"]) || has(&KINDS);
        let is_temporary = match rest.iter().position(|token| token.is_any(&["on"])) {
            _ if creates && is_made_temporary(rest) => true,
            Some(at) if is_index => self.are_temporary(&rest[at + 1..], false),
            _ if creates => is_in_pg_temp(name_in(rest)),
            _ => may_be && self.are_temporary(rest, !first.is_any(&["alter"])),
        };
        let ends = first.is_any(&["drop"]) || rest.iter().any(|token| token.is_any(&["rename", "set"]));
        match (creates, is_temporary) {
            // With ON COMMIT DROP it is gone at an end that nobody announces.
            (true, true) if !rest.iter().any(|token| token.is_any(&["drop"])) => self.keep(rest),
            (false, true) if ends => rest.iter().filter_map(Token::name).for_each(|name| {
                self.temporary.remove(name);
            }),
            _ => {}
        }
        is_temporary
    }

    /// Whether the names that come first, or the first one alone, are those of temporary objects.
    fn are_temporary(&self, tokens: &[Token], is_list: bool) -> bool {
        let mut rest = name_in(tokens);
        loop {
            let length = match is_in_pg_temp(rest) {
                true => 3,
                false => 1,
            };
            let name = rest.first().and_then(Token::name);
            let is_own = name.is_some_and(|name| self.temporary.contains(name));
            let next = rest.get(length);
            if length == 1 && (!is_own || next == Some(&Token::Other('.'))) {
                return false;
            }
            if !is_list || next != Some(&Token::Other(',')) {
                return true;
            }
            rest = &rest[length + 1..];
        }
    }

    /// SELECT ... INTO a table that is not temporary.
    fn is_into(&mut self, statement: &[Token]) -> bool {
        let into = |at: &usize| {
            let before = at.checked_sub(1).and_then(|before| statement.get(before));
            let is_other =
                |before: &Token| before.is_any(&["insert", "merge", "as"]) || *before == Token::Other('.');
            statement[*at].is_any(&["into"]) && !before.is_some_and(is_other)
        };
        let Some(at) = (0..statement.len()).find(into) else {
            return false;
        };
        let target = &statement[at + 1..];
        let is_temporary = is_named_temporary(target) || is_in_pg_temp(name_in(target));
        if is_temporary {
            self.keep(target);
        }
        !is_temporary
    }

    /// Keeps the name of a temporary object that is made.
    fn keep(&mut self, tokens: &[Token]) {
        let from = name_in(tokens);
        let at = if is_in_pg_temp(from) { 2 } else { 0 };
        let name = from.get(at).and_then(Token::name);
        self.temporary.extend(name.map(str::to_owned));
    }
}

/// CREATE [OR REPLACE] [GLOBAL | LOCAL] TEMP, of what comes behind CREATE: a column or a table may
/// be called temp.
fn is_made_temporary(rest: &[Token]) -> bool {
    let is_before = |token: &&Token| token.is_any(&["or", "replace", "global", "local"]);
    rest.iter()
        .find(|token| !is_before(token))
        .is_some_and(Token::is_temporary)
}

/// INTO [GLOBAL | LOCAL] TEMP [TABLE] name, of what comes behind INTO: the table itself may be
/// called temp.
fn is_named_temporary(target: &[Token]) -> bool {
    const AFTER_NAME: [&str; 9] = [
        "from", "where", "group", "having", "window", "union", "order", "limit", "for",
    ];
    let is_before = |token: &Token| token.is_any(&["global", "local"]);
    let from = target
        .iter()
        .position(|token| !is_before(token))
        .unwrap_or(target.len());
    let name = target.get(from + 1);
    target.get(from).is_some_and(Token::is_temporary)
        && name.is_some_and(|token| token.name().is_some() && !token.is_any(&AFTER_NAME))
}

/// What is left from the first name on.
fn name_in(tokens: &[Token]) -> &[Token] {
    let is_name = |token: &Token| !token.is_any(&BEFORE_NAME);
    &tokens[tokens.iter().position(is_name).unwrap_or(tokens.len())..]
}

fn is_in_pg_temp(tokens: &[Token]) -> bool {
    matches!(tokens, [schema, Token::Other('.'), _, ..] if schema.name() == Some(PG_TEMP))
}

/// The tokens of a text, without comments.
fn tokens(sql: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            _ if first.is_whitespace() => (None, first.len_utf8()),
            _ if rest.starts_with("--") => (None, rest.find('\n').unwrap_or(rest.len())),
            _ if rest.starts_with("/*") => (None, comment(rest)),
            _ if rest.starts_with("::") => (Some(Token::Other(':')), 2),
            '\'' => {
                let escapes = tokens.last() == Some(&Token::Word("e".to_owned()));
                (Some(Token::Other('\'')), quoted(rest, escapes))
            }
            '"' => {
                let length = quoted(rest, false);
                let name = rest[1..length].strip_suffix('"').unwrap_or(&rest[1..length]);
                (Some(Token::Name(name.replace("\"\"", "\""))), length)
            }
            '$' => body(rest),
            _ => match word(rest) {
                0 => (Some(Token::Other(first)), first.len_utf8()),
                length => (Some(Token::Word(rest[..length].to_lowercase())), length),
            },
        };
        tokens.extend(token);
        rest = &rest[length..];
    }
    tokens
}

/// Bytes of the word that a text begins with, with the variables of the script that are pieces of
/// it (`t:client_id`).
fn word(text: &str) -> usize {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = text.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        let is_variable = c == ':' && rest.peek().is_some_and(|(_, next)| is_part(*next));
        if !is_part(c) && !is_variable && (c != '$' || at == 0) {
            return at;
        }
    }
    text.len()
}

/// Bytes of the comment that a text begins with; those in it are part of it.
fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        match text.as_bytes()[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => {
                (depth, at) = (depth - 1, at + 2);
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    text.len()
}

/// Bytes of the string or name in quotes that a text begins with.
fn quoted(text: &str, escapes: bool) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while let Some(&byte) = bytes.get(at) {
        at += match byte {
            b'\\' if escapes => 2,
            _ if byte == bytes[0] && bytes.get(at + 1) == Some(&byte) => 2,
            _ if byte == bytes[0] => return at + 1,
            _ => 1,
        };
    }
    text.len()
}

/// The string in dollar quotes that a text begins with, or the dollar.
fn body(text: &str) -> (Option<Token>, usize) {
    let tag = text[1..]
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .map(|at| at + 1);
    let Some(tag) = tag
        .filter(|at| text[*at..].starts_with('$'))
        .map(|at| &text[..=at])
    else {
        return (Some(Token::Other('$')), 1);
    };
    let after = &text[tag.len()..];
    match after.find(tag) {
        Some(end) => (Some(Token::Body(after[..end].to_owned())), end + 2 * tag.len()),
        None => (Some(Token::Body(after.to_owned())), text.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn makes(script: &[&str]) -> bool {
        let mut making = Making::default();
        let found: Vec<bool> = script.iter().map(|sql| making.is_in(sql)).collect();
        found.into_iter().any(|found| found)
    }

    #[test]
    fn statement_that_makes_or_drops_what_stays_is_found() {
        for sql in [
            "CREATE TABLE t (a int)",
            "create unlogged table if not exists t as select 1",
            "/* a */ -- b\n DROP TABLE t",
            "ALTER TABLE t ADD b int",
            "TRUNCATE t",
            "truncate table only t, u",
            "SELECT 1 INTO t",
            "SELECT 1 AS a INTO UNLOGGED TABLE t",
            "WITH x AS (SELECT 1) SELECT * INTO public.t FROM x",
            "(SELECT 1 INTO t)",
            "SELECT 1; DROP TABLE t",
            "CREATE INDEX ON t (a)",
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "CREATE TABLE temp_t (a int)",
            "CREATE TABLE \"temp\" (a int)",
            "DROP FUNCTION f",
            "GRANT SELECT ON t TO PUBLIC",
            "COMMENT ON TABLE t IS 'x'",
            "EXPLAIN (ANALYZE) CREATE TABLE t AS SELECT 1",
            "DO $$ BEGIN CREATE TABLE t (a int); END $$",
            "DO $x$ BEGIN IF true THEN DROP TABLE t; END IF; END $x$",
            "DO $$ BEGIN EXECUTE 'x'; END $$",
            "DO 'BEGIN NULL; END'",
            "CREATE TABLE t:client_id (a int)",
            "DROP TABLE pg_temp.t, u",
            "CREATE TABLE readings (temp float)",
            "CREATE TABLE temp (a int)",
            "SELECT 1 INTO temp",
            "SELECT a INTO temp FROM t",
        ] {
            assert!(makes(&[sql]), "{sql}");
        }
        for script in [
            &["CREATE TEMP TABLE t (a int)", "DROP TABLE t, u"][..],
            &["CREATE TEMP TABLE t (a int)", "DROP TABLE t", "DROP TABLE t"],
            &["BEGIN", "CREATE TEMP TABLE t (a int)", "ROLLBACK", "TRUNCATE t"],
            &["CREATE TEMP TABLE t (a int)", "DISCARD TEMP", "DROP TABLE t"],
            &[
                "CREATE TEMP TABLE t (a int)",
                "ALTER TABLE t RENAME TO u",
                "DROP TABLE t",
            ],
            &[
                "CREATE TEMP TABLE t (a int) ON COMMIT DROP",
                "COMMIT",
                "DROP TABLE t",
            ],
            &[
                "DO $$ BEGIN IF false THEN CREATE TEMP TABLE t (a int); END IF; END $$",
                "DROP TABLE t",
            ],
            &["CREATE TEMP TABLE t (a int)", "DROP TABLE public.t"],
            &["CREATE TEMP TABLE t (a int)", "DROP FUNCTION t"],
            &["CREATE TEMP TABLE t (a int)", "CREATE INDEX ON u (a)"],
            &["CREATE TEMP TABLE t (a int)", "CREATE VIEW v AS SELECT * FROM t"],
        ] {
            assert!(makes(script), "{script:?}");
        }
    }

    #[test]
    fn statement_that_leaves_nothing_is_free() {
        for script in [
            &["SELECT 1 FROM t WHERE a = :a"][..],
            &[
                "INSERT INTO t SELECT 1",
                "MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE",
            ],
            &["WITH x AS (INSERT INTO t VALUES (1) RETURNING a) SELECT * FROM x"],
            &[
                "SELECT 'CREATE TABLE t', \"into\", x.into, 1 AS into FROM t",
                "VALUES ($$DROP TABLE t$$)",
            ],
            &[
                "BEGIN",
                "UPDATE t SET a = 1",
                "END",
                "VACUUM t",
                "SET work_mem = '8MB'",
                "CALL p()",
            ],
            &[
                "CREATE TEMP TABLE t (a int)",
                "CREATE INDEX i ON t (a)",
                "ALTER TABLE t ADD b int",
                "TRUNCATE t",
                "DROP TABLE t",
            ],
            &[
                "CREATE TEMPORARY TABLE IF NOT EXISTS t AS SELECT 1",
                "DROP TABLE IF EXISTS t CASCADE",
            ],
            &["CREATE LOCAL TEMP TABLE \"T t\" (a int)", "DROP TABLE \"T t\""],
            &["CREATE OR REPLACE TEMP VIEW v AS SELECT 1", "DROP VIEW v"],
            &["CREATE TABLE pg_temp.t (a int)", "DROP TABLE t, pg_temp.t"],
            &["CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql AS 'SELECT 1'"],
            &[
                "SELECT 1 INTO TEMP t",
                "SELECT 1 INTO pg_temp.u",
                "DROP TABLE t, u",
            ],
            &["CREATE TEMP TABLE t:client_id (a int)", "DROP TABLE t:client_id"],
            &[
                "EXPLAIN CREATE TABLE t AS SELECT 1",
                "EXPLAIN ANALYZE INSERT INTO t SELECT 1",
            ],
            &["DO $$ DECLARE v int; BEGIN SELECT comment INTO v FROM t; END $$"],
            &["DO $$ BEGIN CREATE TEMP TABLE t (a int); DROP TABLE t; END $$"],
            &[""],
        ] {
            assert!(!makes(script), "{script:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(
            text in "(create|temp|table|into|on|drop|pg_temp|do|explain|[-a-z0-9 ;:'\"$(){}*/\n.,EÄ\\\\]){0,60}"
        ) {
            makes(&[&text]);
        }
    }
}
