//! The keywords of a connection string: those that pgdyno handles itself are taken out, the driver
//! gets the rest.
//!
//! Source: PostgreSQL documentation, "Connection Strings" and "The Connection Service File".

use super::quoted;
use crate::given::may_hold_password;
use crate::libpq::{ASKS_FOR_MORE, NOT_DONE, OWN, WITHOUT_EFFECT};
use std::collections::BTreeMap;

/// A connection string in two parts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    pub(super) own: BTreeMap<String, String>,
    /// Parameters that are handed to the driver.
    pub(super) pairs: Vec<(String, String)>,
}

/// Splits "key=value ..." or "postgresql://...?key=value". `None` where it is neither.
pub(crate) fn split(text: &str) -> Option<Words> {
    let mut words = Words::default();
    let all = match text
        .strip_prefix("postgres://")
        .or_else(|| text.strip_prefix("postgresql://"))
    {
        Some(rest) => of_uri(rest)?,
        None => pairs(text)?,
    };
    for (name, value) in all {
        if is_misplaced(&name, &value) {
            return None;
        }
        // Anything else might be more to the driver than a name.
        if name.is_empty()
            || !name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            return None;
        }
        words.set(name, value);
    }
    Some(words)
}

/// Whether a value is a piece of a connection string, or a whole one, that got into the wrong
/// place: what is shown as a host or a database would hold a password.
fn is_misplaced(name: &str, value: &str) -> bool {
    match name {
        // An abstract socket begins with the sign.
        "host" | "hostaddr" | "port" => value.trim_start_matches('@').contains('@') || value.contains("//"),
        "dbname" | "user" => value.contains("//") || may_hold_password(value),
        _ => false,
    }
}

impl Words {
    /// The last word counts.
    fn set(&mut self, name: String, value: String) {
        if WITHOUT_EFFECT.contains(&name.as_str()) && !ASKS_FOR_MORE.contains(&value.as_str()) {
            return;
        }
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

    /// The value of a word of either part.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.own.get(name).map(String::as_str).or_else(|| self.get(name))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let pair = self.pairs.iter().find(|(other, _)| other == name);
        pair.map(|(_, value)| value.as_str())
    }

    /// A keyword of libpq that pgdyno does not support, if there is one. Words that are not libpq's
    /// either are not reported: they may be a piece of a password.
    pub(super) fn not_done(&self) -> Option<&'static str> {
        NOT_DONE
            .iter()
            .chain(&WITHOUT_EFFECT)
            .find(|name| self.get(name).is_some())
            .copied()
    }

    /// Takes out a word that is not libpq's.
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        let at = self.pairs.iter().position(|(other, _)| other == name)?;
        Some(self.pairs.remove(at).1)
    }

    /// All of them as a connection string.
    pub(crate) fn written(&self) -> String {
        let pairs = self.pairs.iter().map(|(name, value)| (name, value));
        self.own
            .iter()
            .chain(pairs)
            .map(|(name, value)| format!("{name}={}", quoted(value)))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// What the driver is given; an empty value is none, as with libpq. It begins with a space, so
    /// that no name, of a service file perhaps, can make a URI of it.
    pub(super) fn for_driver(&self) -> String {
        self.pairs
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| format!(" {name}={}", quoted(value)))
            .collect()
    }
}

/// user:password@host:port,host:port/database?key=value&...
fn of_uri(rest: &str) -> Option<Vec<(String, String)>> {
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, hosts) = match authority.split_once('@') {
        Some((user, hosts)) => (Some(user), hosts),
        None => (None, authority),
    };
    // A second "@" is most likely one of a password; what follows it must not be taken for a host
    // and shown.
    if hosts.contains('@') {
        return None;
    }
    let mut found = Vec::new();
    let mut add = |name: &str, value: &str| -> Option<()> {
        found.push((name.to_owned(), decoded(value)?));
        Some(())
    };
    // So are these in the place of the database: of a password with a slash, or of a URI with one
    // slash too many.
    if database.contains(['@', ':']) {
        return None;
    }
    if let Some(user) = user {
        let (user, password) = match user.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (user, None),
        };
        add("user", user)?;
        if let Some(password) = password {
            add("password", password)?;
        }
    }
    if !database.is_empty() {
        add("dbname", database)?;
    }
    if !hosts.is_empty() {
        let (hosts, ports) = hosts_and_ports(hosts)?;
        if !hosts.is_empty() {
            add("host", &hosts)?;
        }
        if ports.chars().any(|c| c != ',') {
            add("port", &ports)?;
        }
    }
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=')?;
        match (name, value) {
            // libpq's word for those who come from JDBC.
            ("ssl", "true") => add("sslmode", "require")?,
            _ => add(&decoded(name)?, value)?,
        }
    }
    Some(found)
}

/// "a:1,[::1],c" is the hosts "a,::1,c" and the ports "1,,".
fn hosts_and_ports(text: &str) -> Option<(String, String)> {
    let (mut hosts, mut ports) = (Vec::new(), Vec::new());
    for part in text.split(',') {
        let (host, port) = match part.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']')?;
                match rest.strip_prefix(':') {
                    None if rest.is_empty() => (host, ""),
                    port => (host, port?),
                }
            }
            None => part.split_once(':').unwrap_or((part, "")),
        };
        hosts.push(host);
        ports.push(port);
    }
    Some((hosts.join(","), ports.join(",")))
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
    // No value of libpq's holds a zero.
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
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
        let expected = [
            ("host", "db"),
            ("sslmode", "verify-full"),
            ("sslrootcert", "/a b"),
        ];
        assert_eq!(own(&words), expected);
        assert_eq!(words.for_driver().trim(), r"password='a\'b c'");
        let words = split("user=a dbname=x user=b options=''").unwrap();
        assert_eq!(words.for_driver().trim(), "dbname='x' user='b'");
        assert_eq!(split("no equals sign"), None);
        assert_eq!(split("a='open"), None);
        // Together with what is put behind it, the driver would take this for a URI.
        assert_eq!(split(" postgresql://db/x?a=1"), None);
        assert_eq!(split(""), Some(Words::default()));
    }

    #[test]
    fn a_uri_is_its_parts() {
        let check = |text: &str, expected: &[(&str, &str)], driver: &str| {
            let words = split(text).unwrap_or_else(|| panic!("{text} cannot be read"));
            assert_eq!(own(&words), expected, "{text}");
            assert_eq!(words.for_driver().trim(), driver, "{text}");
        };
        check(
            "postgresql://ann:p%3F@db/x?sslmode=require&options=-c%20a%3Db&sslrootcert=%2Fa%20b",
            &[("host", "db"), ("sslmode", "require"), ("sslrootcert", "/a b")],
            "user='ann' password='p?' dbname='x' options='-c a=b'",
        );
        check(
            "postgres://a:1,[::1]:2,c/x?target_session_attrs=read-write",
            &[
                ("host", "a,::1,c"),
                ("port", "1,2,"),
                ("target_session_attrs", "read-write"),
            ],
            "dbname='x'",
        );
        check(
            "postgres://%2Ftmp:7/x",
            &[("host", "/tmp"), ("port", "7")],
            "dbname='x'",
        );
        check(
            "postgres:///x?host=/tmp&port=6",
            &[("host", "/tmp"), ("port", "6")],
            "dbname='x'",
        );
        check("postgres://:6000", &[("port", "6000")], "");
        check("postgres://a,b", &[("host", "a,b")], "");
        check(
            "postgres://db?host=other&ssl=true",
            &[("host", "other"), ("sslmode", "require")],
            "",
        );
        check("postgres://", &[], "");
        for bad in [
            "postgres://db?sslmode=a%2",
            "postgres://db?sslmode",
            "postgres://ann:pa@ss@db",
            "postgres://[::1",
            "postgres://[::1]x",
            "postgres://db?user=a%00b",
            "postgres://ann/pa@db/x",
            "postgres:///ann:pa@db/x",
            "host=ann:pa@db",
            "dbname=postgres://ann:pa@db/x",
            "user=ann:pa@db",
        ] {
            assert_eq!(split(bad), None, "{bad}");
        }
    }

    #[test]
    fn libpqs_other_words_are_known() {
        let of = |text: &str| split(text).unwrap().not_done();
        assert_eq!(of("host=a gssencmode=prefer client_encoding=UTF8 sslsni=1"), None);
        assert_eq!(of("host=a gssencmode=require"), Some("gssencmode"));
        assert_eq!(of("host=a sslcrl=/x"), Some("sslcrl"));
        assert_eq!(of("host=a hunter2=x"), None);
    }

    #[test]
    fn a_service_is_its_section() {
        let file = "# comment\n[one]\nhost=a\n\n[two]\nhost = b\n#port=1\npassword=x'y\n[three]\nhost=c\n";
        let mut words = split("host=here").unwrap();
        words.fill(service(file, "two").unwrap());
        assert_eq!(own(&words), [("host", "here")]);
        assert_eq!(words.for_driver().trim(), r"password='x\'y'");
        assert_eq!(service(file, "four"), None);
        // What a URI names goes before what its service says.
        let mut words = split("postgresql://ann@/x?service=two").unwrap();
        words.fill(service(file, "two").unwrap());
        assert_eq!(own(&words), [("host", "b"), ("service", "two")]);
        assert_eq!(
            words.for_driver().trim(),
            r"user='ann' dbname='x' password='x\'y'"
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,80}", name in ".{0,8}") {
            let _ = (split(&text), service(&text, &name), split(&format!("postgres://{text}")));
        }
    }
}
