//! The words of a connection string: those that pgdyno understands itself are taken out, the driver gets the rest.
//!
//! Source: PostgreSQL documentation, "Connection Strings" and "The Connection Service File".

use std::collections::BTreeMap;

/// What the driver does not know, or not in all of libpq's ways.
const OWN: [&str; 6] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "service",
    "passfile",
];

/// A connection string in two parts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) own: BTreeMap<String, String>,
    /// For the driver.
    pub(super) rest: String,
}

/// Splits "key=value ..." or "postgresql://...?key=value". `None` where it is neither.
pub(super) fn split(text: &str) -> Option<Words> {
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        return split_uri(text);
    }
    let mut words = Words::default();
    let pairs = pairs(text)?;
    for (at, (name, value)) in pairs.iter().enumerate() {
        // The last word counts.
        if pairs[at + 1..].iter().all(|(later, _)| later != name) {
            words.add(name, value);
        }
    }
    Some(words)
}

impl Words {
    fn add(&mut self, name: &str, value: &str) {
        if OWN.contains(&name) {
            self.own.insert(name.to_owned(), value.to_owned());
        } else {
            let quoted = value.replace('\\', "\\\\").replace('\'', "\\'");
            self.rest += &format!("{name}='{quoted}' ");
        }
    }
}

fn split_uri(text: &str) -> Option<Words> {
    let mut words = Words::default();
    let Some((base, query)) = text.split_once('?') else {
        words.rest = text.to_owned();
        return Some(words);
    };
    let mut kept = Vec::new();
    for part in query.split('&') {
        match part.split_once('=') {
            Some((name, value)) if OWN.contains(&name) => {
                words.own.insert(name.to_owned(), decoded(value)?);
            }
            _ => kept.push(part),
        }
    }
    words.rest = base.to_owned();
    if !kept.is_empty() {
        words.rest += "?";
        words.rest += &kept.join("&");
    }
    Some(words)
}

/// %41 is A.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let hex = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&hex).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
        let name = name.trim();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return None;
        }
        let (value, after) = value(after.trim_start())?;
        found.push((name.to_owned(), value));
        rest = after.trim_start();
    }
    Some(found)
}

/// A value, quoted or up to the next space, and what follows it.
fn value(text: &str) -> Option<(String, &str)> {
    let (quoted, text) = match text.strip_prefix('\'') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => value.push(characters.next()?.1),
            '\'' if quoted => return Some((value, &text[at + 1..])),
            c if !quoted && c.is_whitespace() => return Some((value, &text[at..])),
            c => value.push(c),
        }
    }
    (!quoted).then_some((value, ""))
}

/// The section of a service in a service file, as a connection string; `None` without one.
pub(super) fn service(file: &str, name: &str) -> Option<String> {
    let heading = format!("[{name}]");
    let mut lines = file.lines().map(str::trim);
    lines.find(|line| *line == heading)?;
    let mut text = String::new();
    for line in lines.take_while(|line| !line.starts_with('[')) {
        if let Some((name, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
            let quoted = value.trim().replace('\\', "\\\\").replace('\'', "\\'");
            text += &format!("{}='{quoted}' ", name.trim());
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn own(words: &Words) -> Vec<(&str, &str)> {
        words
            .own
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect()
    }

    #[test]
    fn pairs_are_libpqs() {
        let words = split(r"host = db sslmode=verify-full  password='it''s' sslrootcert='/a b/c\'d'")
            .unwrap_or_default();
        // Two quotes end one value and begin no other.
        assert_eq!(words, Words::default());
        let words = split(r"host = db sslmode=verify-full  password='a\'b c' sslrootcert=/a\ b").unwrap();
        assert_eq!(own(&words), [("sslmode", "verify-full"), ("sslrootcert", "/a b")]);
        assert_eq!(words.rest, r"host='db' password='a\'b c' ");
        assert_eq!(split("host=a port=1 host=b").unwrap().rest, "port='1' host='b' ");
        assert_eq!(split("no equals sign"), None);
        assert_eq!(split("a='open"), None);
        assert_eq!(split("").map(|words| words.rest), Some(String::new()));
    }

    #[test]
    fn a_uris_query_is_parted() {
        let words =
            split("postgresql://ann:p%3F@db/x?sslmode=require&connect_timeout=3&sslrootcert=%2Fa%20b")
                .unwrap();
        assert_eq!(own(&words), [("sslmode", "require"), ("sslrootcert", "/a b")]);
        assert_eq!(words.rest, "postgresql://ann:p%3F@db/x?connect_timeout=3");
        assert_eq!(split("postgres://db?sslmode=a%2"), None);
    }

    #[test]
    fn a_service_is_its_section() {
        let file = "# comment\n[one]\nhost=a\n\n[two]\nhost = b\n#port=1\npassword=x'y\n[three]\nhost=c\n";
        assert_eq!(
            service(file, "two").as_deref(),
            Some("host='b' password='x\\'y' ")
        );
        assert_eq!(service(file, "four"), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,80}", name in ".{0,8}") {
            let _ = (split(&text), service(&text, &name), split(&format!("postgres://{text}")));
        }
    }
}
