//! Foreign text inside Markdown: names, titles, reasons and settings come from files, stores and
//! servers.

/// Characters that end a line for Markdown or for who shows it.
const BREAKS: [char; 7] = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];

/// A text that stays text wherever it is put in Markdown, in a cell of a table too: no link, image,
/// code, emphasis, tag or heading begins in it. Source: CommonMark 0.31 "Backslash escapes" and
/// "Entity references"; GitHub Flavored Markdown "Autolinks (extension)".
pub fn markdown_text(text: &str) -> String {
    let text = text.replace(BREAKS, " ");
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut before = ' ';
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let after = characters.peek().copied().unwrap_or(' ');
        let is_first = escaped.trim_start().is_empty();
        match c {
            '<' => escaped += "&lt;",
            '&' => escaped += "&amp;",
            '\\' | '`' | '*' | '[' | ']' | '|' | '~' => escaped.extend(['\\', c]),
            // Inside a word it is not emphasis: names of settings stay readable.
            '_' if !(before.is_alphanumeric() && after.is_alphanumeric()) => escaped.extend(['\\', c]),
            '#' | '>' | '=' if is_first => escaped.extend(['\\', c]),
            '-' | '+' if is_first && after == ' ' => escaped.extend(['\\', c]),
            // What would be a link without any brackets: scheme://, www. and name@host.
            ':' if after == '/' => escaped += "&#58;",
            '.' if ends_with_www(&escaped) => escaped += "&#46;",
            '@' if before.is_alphanumeric() => escaped += "&#64;",
            c => escaped.push(c),
        }
        before = c;
    }
    escaped
}

fn ends_with_www(text: &str) -> bool {
    text.len() >= 3 && text.as_bytes()[text.len() - 3..].eq_ignore_ascii_case(b"www")
}

/// A text as code, in a cell of a table too.
pub fn markdown_code(text: &str) -> String {
    let text = text.replace(BREAKS, " ").replace('`', "'").replace('|', "\\|");
    format!("`{text}`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn foreign_text_begins_nothing_in_markdown() {
        let check = |text: &str, expected: &str| assert_eq!(markdown_text(text), expected);
        check("a|b\n<img src=x>", "a\\|b &lt;img src=x>");
        check("a\u{2028}b\u{85}c\r\nd", "a b c  d");
        check("[click](javascript:alert(1))", "\\[click\\](javascript:alert(1))");
        check("![x](http://h/p.png)", "!\\[x\\](http&#58;//h/p.png)");
        check(
            "see https://h/ or www.h.org, ann@h.org",
            "see https&#58;//h/ or www&#46;h.org, ann&#64;h.org",
        );
        check(
            "**bold** _it_ `code` ~~x~~",
            "\\*\\*bold\\*\\* \\_it\\_ \\`code\\` \\~\\~x\\~\\~",
        );
        check("# title", "\\# title");
        check("- item", "\\- item");
        check("> quoted", "\\> quoted");
        check("&lt;b&gt; \\[x]", "&amp;lt;b&amp;gt; \\\\\\[x\\]");
        check(
            "shared_buffers = 4GB, -3.2 %, 10:30, a->b",
            "shared_buffers = 4GB, -3.2 %, 10:30, a->b",
        );
    }

    #[test]
    fn code_ends_where_it_should() {
        assert_eq!(markdown_code("a`b|c\nd"), "`a'b\\|c d`");
    }

    proptest! {
        #[test]
        fn what_markup_needs_is_escaped(text in any::<String>()) {
            let escaped = markdown_text(&text);
            prop_assert!(!escaped.contains(['<', '\n', '\r']) && !escaped.contains("://"));
            let mut open = false;
            for c in escaped.chars() {
                prop_assert!(open || !"`*[]|".contains(c), "{escaped:?}");
                open = c == '\\' && !open;
            }
        }
    }
}
