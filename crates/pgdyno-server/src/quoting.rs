//! Texts and names as SQL writes them.

/// A text as a literal of SQL.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

pub(crate) fn identifier(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
