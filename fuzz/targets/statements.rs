//! Statements of any text can be shown: they are short, and what stood in quotes is gone.
#![no_main]
use libfuzzer_sys::fuzz_target;
use pgdyno_server::shown_statement;

/// Letters that stand in no word of SQL.
const SECRET: &str = "hunter2qzx";
/// What is shown of a text, with the sign that it goes on.
const CHARS_MAX: usize = 301;

fuzz_target!(|input: (&str, &str)| {
    let (text, secret) = input;
    assert!(shown_statement(text).chars().count() <= CHARS_MAX, "{text}");
    // Quotes within are doubled, and a backslash would take away the end.
    let quoted = format!("{SECRET}{}{SECRET}", secret.replace('\\', "").replace('\'', "''"));
    let shown = shown_statement(&format!("SELECT '{quoted}', E'{quoted}', 1"));
    assert_eq!(shown, "SELECT ?, E?, ?", "{secret}");
});
