//! Texts and names as SQL writes them.

/// A text as a literal of SQL.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The `options` of a connection whose session begins with these parameters, each with its value. A
/// value must not hold the byte 0.
pub fn session_options<'s>(settings: impl IntoIterator<Item = (&'s str, &'s str)>) -> String {
    let escaped = |text: &str| -> String {
        let each = text.chars().flat_map(|c| {
            let before = (c == '\\' || c.is_ascii_whitespace() || c == '\u{b}').then_some('\\');
            before.into_iter().chain([c])
        });
        each.collect()
    };
    let words = settings
        .into_iter()
        .map(|(name, value)| format!("-c {}={}", escaped(name), escaped(value)));
    words.collect::<Vec<String>>().join(" ")
}

pub(crate) fn identifier(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_session_keep_blanks_and_backslashes_of_values() {
        assert_eq!(session_options([]), "");
        let settings = [("work_mem", "8MB"), ("search_path", "a b,\\c"), ("app.x", "")];
        assert_eq!(
            session_options(settings),
            "-c work_mem=8MB -c search_path=a\\ b,\\\\c -c app.x="
        );
    }
}
