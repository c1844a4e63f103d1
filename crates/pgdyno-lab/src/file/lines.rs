//! Where something is in a TOML text, and which known key is nearest to an unknown one.

use pgdyno_knobs::nearest_name;
use toml::de::{DeTable, DeValue};

pub(super) fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|&b| b == b'\n').count() + 1
}

/// The line of the deepest of `keys` that is there; numbers are places in an array.
pub(super) fn line_of(text: &str, keys: &[&str]) -> usize {
    let Ok(table) = DeTable::parse(text) else { return 1 };
    let mut offset = 0;
    let mut here: Option<&DeValue<'_>> = None;
    let mut keys = keys.iter().copied().peekable();
    while let Some(key) = keys.peek().copied() {
        let table = match here {
            None => table.get_ref(),
            Some(DeValue::Table(table)) => table,
            Some(DeValue::Array(items)) => {
                let Some(item) = key.parse::<usize>().ok().and_then(|i| items.get(i)) else {
                    break;
                };
                offset = item.span().start;
                here = Some(item.get_ref());
                keys.next();
                continue;
            }
            Some(_) => break,
        };
        // A quoted key holds its dots: "vm.swappiness" is one key then.
        let rest: Vec<&str> = keys.clone().collect();
        let found = (1..=rest.len()).find_map(|n| {
            let joined = rest[..n].join(".");
            table
                .iter()
                .find(|(name, _)| name.get_ref().as_ref() == joined)
                .map(|entry| (n, entry))
        });
        let Some((n, (name, value))) = found else { break };
        offset = name.span().start;
        here = Some(value.get_ref());
        for _ in 0..n {
            keys.next();
        }
    }
    line_at(text, offset)
}

/// "unknown field `clinets`, expected one of `clients`, ..." names the nearest key.
pub(super) fn with_nearest(message: &str) -> String {
    let Some(rest) = message.strip_prefix("unknown field `") else {
        return message.to_owned();
    };
    let mut parts = rest.split('`');
    let Some(unknown) = parts.next() else {
        return message.to_owned();
    };
    let known = parts.filter(|part| !part.trim().is_empty() && !part.contains(' '));
    match nearest_name(unknown, known) {
        Some(word) => format!("unknown key \"{unknown}\"; did you mean \"{word}\"?"),
        None => message.replace("unknown field", "unknown key"),
    }
}
