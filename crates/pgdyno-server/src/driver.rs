//! Sessions for whoever speaks to a server by the driver itself, as a store of results does; and
//! what such a connection string is called where people see it.

mod session;

pub use session::{Session, SessionError};

use crate::conninfo::{Conninfo, Hosts, Lookup, before_colon, keywords, quoted};
use crate::error::ServerError;
use crate::libpq::is_known;
use postgres::config::Host;
use std::net::IpAddr;

/// What a connection string names, as a URL with the user and without a password or anything else.
/// Nobody is asked.
pub fn shown(text: &str, environment: Lookup<'_>) -> Result<String, ServerError> {
    let hosts = Hosts::resolve(text, environment)?;
    let (user, database) = hosts
        .each
        .first()
        .map_or(("", ""), |first| (first.user(), first.database()));
    let (user, database) = (before_colon(user), before_colon(database));
    if let [one] = &hosts.each[..]
        && let Host::Unix(directory) = one.host()
    {
        let (directory, port) = (directory.display(), one.port());
        return Ok(format!(
            "postgres://{user}@/{database}?host={directory}&port={port}"
        ));
    }
    let places: Vec<String> = hosts.each.iter().map(Conninfo::place).collect();
    Ok(format!("postgres://{user}@{}/{database}", places.join(",")))
}

/// Takes a word that libpq does not know out of a connection string, and gives the rest as
/// key=value pairs, which may hold a password.
pub fn without_word(text: &str, word: &str) -> Result<(String, Option<String>), ServerError> {
    let mut words = keywords::split(text).ok_or(ServerError::ConnectionString)?;
    let found = words.take(word);
    Ok((words.written(), found))
}

/// A connection string with the password, for a host that reaches a server by `connection`: what it
/// does not name (port, user, database, password, TLS) is as this host has it. Without one, that
/// host goes the same way as this one.
///
/// # Errors
///
/// `connection` is not a connection string.
pub fn for_other_host(conninfo: &Conninfo, connection: Option<&str>) -> Result<String, ServerError> {
    let own = conninfo.without_password();
    let words = keywords::split(connection.unwrap_or(&own)).ok_or(ServerError::ConnectionString)?;
    let password = conninfo.config().get_password().map(String::from_utf8_lossy);
    let known = [
        ("port", conninfo.port().to_string()),
        ("user", conninfo.user().to_owned()),
        ("dbname", conninfo.database().to_owned()),
        ("password", password.unwrap_or_default().into_owned()),
    ];
    let known = known.iter().filter(|(_, value)| !value.is_empty());
    let known: String = known
        .map(|(word, value)| format!("{word}={} ", quoted(value)))
        .collect();
    // Of a word that is there twice the last one counts.
    Ok(format!(
        "{known}{} {}",
        conninfo.tls_words().trim_start(),
        words.written()
    ))
}

/// A connection string that another host has made by [`for_other_host`], on the way of one of
/// `ways`, which are connection strings that name hosts: of what was made, only port, user,
/// database, password and sslmode stay. `None` where it names the host of none of them.
pub fn on_a_way_of(text: &str, ways: &[String]) -> Option<String> {
    const KEPT: [&str; 5] = ["port", "user", "dbname", "password", "sslmode"];
    let made = keywords::split(text)?;
    let way = ways.iter().filter_map(|way| keywords::split(way)).find(|way| {
        let mut hosts = ["host", "hostaddr"]
            .iter()
            .filter_map(|word| Some((*word, way.value(word)?)))
            .peekable();
        hosts.peek().is_some() && hosts.all(|(word, value)| made.value(word) == Some(value))
    })?;
    let kept = KEPT.iter().filter_map(|word| Some((word, made.value(word)?)));
    let kept: String = kept
        .map(|(word, value)| format!("{word}={} ", quoted(value)))
        .collect();
    // Of a word that is there twice the last one counts.
    Some(kept + &way.written())
}

/// Whether a connection string names a host, and one by whose address others reach it too: no
/// socket, and not this host to itself.
pub fn names_other_host(text: &str) -> bool {
    let words = keywords::split(text);
    let host = words
        .as_ref()
        .and_then(|words| words.value("hostaddr").or_else(|| words.value("host")));
    host.is_some_and(|host| {
        let is_loopback = host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        !host.is_empty() && !host.starts_with(['/', '@']) && host != "localhost" && !is_loopback
    })
}

/// Whether a text begins as key=value pairs of libpq's do, with a word that libpq knows: what is no
/// such text is the name of something else. Whoever takes it for a name may show it, and a password
/// with it.
pub fn begins_with_word(text: &str) -> bool {
    let first = text.split_once('=').map(|(word, _)| word.trim());
    first.is_some_and(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_host_has_made_leads_nowhere_else() {
        let ways = ["host=10.0.0.5 sslmode=require", "postgres://ann@db.example/lab"].map(str::to_owned);
        let check = |text: &str, expected: &[(&str, Option<&str>)]| {
            let made = on_a_way_of(text, &ways).unwrap();
            let words = keywords::split(&made).unwrap();
            for (word, value) in expected {
                assert_eq!(words.value(word), *value, "{word} of {text}");
            }
        };
        check(
            "port=6432 user=bob password='a b' host=10.0.0.5 sslmode=disable service=x passfile=/etc/shadow options=-cx=y",
            &[
                ("host", Some("10.0.0.5")),
                ("port", Some("6432")),
                ("user", Some("bob")),
                ("password", Some("a b")),
                ("sslmode", Some("require")),
                ("service", None),
                ("passfile", None),
                ("options", None),
            ],
        );
        check(
            "host=db.example hostaddr=10.0.0.9 user=bob",
            &[
                ("host", Some("db.example")),
                ("hostaddr", None),
                ("user", Some("ann")),
                ("dbname", Some("lab")),
            ],
        );
        for other in [
            "host=10.0.0.6",
            "host=/run/postgresql",
            "user=bob",
            "service=x",
            "host=10.0.0.5,10.0.0.6",
            "no words",
        ] {
            assert_eq!(on_a_way_of(other, &ways), None, "{other}");
        }
        for (text, expected) in [
            ("host=10.0.0.5", true),
            ("host=/run/postgresql", false),
            ("host=localhost", false),
            ("host=db hostaddr=127.0.0.1", false),
            ("user=ann", false),
        ] {
            assert_eq!(names_other_host(text), expected, "{text}");
        }
    }

    #[test]
    fn other_host_gets_what_it_needs() {
        let found = Conninfo::named(
            "host=127.0.0.1 user=ann dbname='my lab' password='se cret'",
            &|_| None,
        );
        let conninfo = found.unwrap();
        let check = |connection: &str, expected: &str| {
            let text = for_other_host(&conninfo, Some(connection)).unwrap();
            let read = Conninfo::named(&text, &|_| None).unwrap();
            assert_eq!(read.without_password(), expected);
            assert_eq!(read.config().get_password(), Some(&b"se cret"[..]));
        };
        check(
            "host=10.0.0.5 user=bob",
            "host='10.0.0.5' port=5432 user='bob' dbname='my lab'",
        );
        check(
            "postgres://10.0.0.5:6432/lab",
            "host='10.0.0.5' port=6432 user='ann' dbname='lab'",
        );
        // Whoever sends the password to nobody but a proven server does so from there, too.
        let proven = Conninfo::named(
            "host=db.example hostaddr=127.0.0.1 user=ann password=x sslmode=require channel_binding=require",
            &|_| None,
        );
        let proven = proven.unwrap();
        for (connection, expected) in [
            (
                "host=10.0.0.5",
                ["sslmode='require'", "channel_binding='require'"],
            ),
            (
                "host=10.0.0.5 sslmode=disable",
                ["sslmode='disable'", "channel_binding='require'"],
            ),
        ] {
            let text = for_other_host(&proven, Some(connection)).unwrap();
            let words = keywords::split(&text).unwrap().written();
            assert!(expected.iter().all(|word| words.contains(word)), "{words}");
        }
        let same = for_other_host(&conninfo, None).unwrap();
        assert!(same.contains("127.0.0.1") && same.contains("se cret"), "{same}");
    }

    #[test]
    fn what_is_shown_holds_no_password() {
        let check = |text: &str, expected: &str| {
            assert_eq!(shown(text, &|_| None).unwrap(), expected, "{text}");
        };
        check(
            "postgres://ann:secret@db.example:6432/lab?sslmode=disable",
            "postgres://ann@db.example:6432/lab",
        );
        check(
            "host=a,b port=1,2 user=ann password=secret dbname=lab",
            "postgres://ann@a:1,b:2/lab",
        );
        check(
            "host=/run/pg user=ann password=secret dbname=lab",
            "postgres://ann@/lab?host=/run/pg&port=5432",
        );
    }

    #[test]
    fn a_word_is_taken_out_and_the_rest_says_the_same() {
        let check = |text: &str, rest: &str, word: Option<&str>| {
            let found = without_word(text, "schema").unwrap();
            assert_eq!(found, (rest.to_owned(), word.map(str::to_owned)), "{text}");
        };
        check(
            "postgres://ann:it's%20a%5C@db/lab?schema=a%20b&sslmode=disable",
            r"host='db' sslmode='disable' user='ann' password='it\'s a\\' dbname='lab'",
            Some("a b"),
        );
        check(
            "host=db password='a schema=b'",
            "host='db' password='a schema=b'",
            None,
        );
        assert!(without_word("host=", "schema").is_ok());
        assert!(without_word("x y", "schema").is_err());
    }
}
