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
    /// For the driver: a URI, or
    pub(super) uri: Option<String>,
    /// pairs.
    pub(super) pairs: Vec<(String, String)>,
}

/// Splits "key=value ..." or "postgresql://...?key=value". `None` where it is neither.
pub(super) fn split(text: &str) -> Option<Words> {
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        return split_uri(text);
    }
    let mut words = Words::default();
    for (name, value) in pairs(text)? {
        words.set(name, value);
    }
    Some(words)
}

impl Words {
    /// The last word counts.
    fn set(&mut self, name: String, value: String) {
        if OWN.contains(&name.as_str()) {
            self.own.insert(name, value);
        } else {
            self.pairs.retain(|(other, _)| *other != name);
            self.pairs.push((name, value));
        }
    }

    /// Takes from `other` what is missing here.
    pub(super) fn fill(&mut self, other: Words) {
        for (name, value) in other.own {
            self.own.entry(name).or_insert(value);
        }
        for (name, value) in other.pairs {
            if self.get(&name).is_none() {
                self.pairs.push((name, value));
            }
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let pair = self.pairs.iter().find(|(other, _)| other == name);
        pair.map(|(_, value)| value.as_str())
    }

    /// What the driver is given.
    pub(super) fn for_driver(&self) -> String {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('\'', "\\'");
        let pair = |(name, value): &(String, String)| format!("{name}='{}'", quoted(value));
        match &self.uri {
            Some(uri) => uri.clone(),
            None => self.pairs.iter().map(pair).collect::<Vec<_>>().join(" "),
        }
    }
}

fn split_uri(text: &str) -> Option<Words> {
    let mut words = Words::default();
    let (base, query) = text.split_once('?').unwrap_or((text, ""));
    let mut kept = Vec::new();
    for part in query.split('&').filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some((name, value)) if OWN.contains(&name) => {
                words.own.insert(name.to_owned(), decoded(value)?);
            }
            _ => kept.push(part),
        }
    }
    let question = if kept.is_empty() { "" } else { "?" };
    words.uri = Some(format!("{base}{question}{}", kept.join("&")));
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

/// The words of a service's section in a service file; `None` without one.
pub(super) fn service(file: &str, name: &str) -> Option<Words> {
    let heading = format!("[{name}]");
    let mut lines = file.lines().map(str::trim);
    lines.find(|line| *line == heading)?;
    let mut words = Words::default();
    for line in lines.take_while(|line| !line.starts_with('[')) {
        if let Some((name, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
            words.set(name.trim().to_owned(), value.trim().to_owned());
        }
    }
    Some(words)
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
        assert_eq!(words.for_driver(), r"host='db' password='a\'b c'");
        assert_eq!(
            split("host=a port=1 host=b").unwrap().for_driver(),
            "port='1' host='b'"
        );
        assert_eq!(split("no equals sign"), None);
        assert_eq!(split("a='open"), None);
        assert_eq!(split(""), Some(Words::default()));
    }

    #[test]
    fn a_uris_query_is_parted() {
        let words =
            split("postgresql://ann:p%3F@db/x?sslmode=require&connect_timeout=3&sslrootcert=%2Fa%20b")
                .unwrap();
        assert_eq!(own(&words), [("sslmode", "require"), ("sslrootcert", "/a b")]);
        assert_eq!(words.for_driver(), "postgresql://ann:p%3F@db/x?connect_timeout=3");
        assert_eq!(split("postgres://db?sslmode=a%2"), None);
    }

    #[test]
    fn a_service_is_its_section() {
        let file = "# comment\n[one]\nhost=a\n\n[two]\nhost = b\n#port=1\npassword=x'y\n[three]\nhost=c\n";
        let mut words = split("host=here").unwrap();
        words.fill(service(file, "two").unwrap());
        assert_eq!(words.for_driver(), r"host='here' password='x\'y'");
        assert_eq!(service(file, "four"), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,80}", name in ".{0,8}") {
            let _ = (split(&text), service(&text, &name), split(&format!("postgres://{text}")));
        }
    }
}
