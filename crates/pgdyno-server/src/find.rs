//! Finds the server that is meant: walks over the hosts of a connection string as libpq does, and
//! pins the one taken.
//!
//! Source: PostgreSQL documentation, "Specifying Multiple Hosts", target_session_attrs,
//! load_balance_hosts, sslmode.

use crate::conninfo::{Conninfo, Hosts, Lookup, Wanted};
use crate::error::ServerError;
use crate::server::{Server, connect_limit};
use pgdyno_host::dial::{self, Until};
use postgres::config::Host;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::{IpAddr, SocketAddr};

/// cannot_connect_now: it starts, or stops, or is a standby that takes no sessions.
const CANNOT_CONNECT_NOW: &str = "57P03";

/// A server that was found, by a connection to it.
#[derive(Debug, Clone)]
pub struct Found {
    /// The way to this one server, and to no other: questions and load go there.
    pub conninfo: Conninfo,
    /// What a user should know of the way there: which hosts were passed over, and why; that TLS is
    /// not used.
    pub remarks: Vec<String>,
}

/// Outcome of trying a host, or one of its addresses.
enum Tried {
    /// With what is to be said of the way.
    Taken(Box<Conninfo>, Option<String>),
    /// The next address may do.
    NotThere(String),
    /// The next host may do.
    NotWanted(&'static str),
}

impl Found {
    /// Takes the first server of the string that answers and is what target_session_attrs needs.
    /// Where several are named, or a name has several addresses, it is pinned: everything later
    /// goes to that server.
    pub fn find(text: &str, environment: Lookup<'_>) -> Result<Found, ServerError> {
        let mut hosts = Hosts::resolve(text, environment)?;
        if hosts.shuffled {
            shuffle(&mut hosts.each);
        }
        let mut passed_over = Vec::new();
        for &wanted in hosts.wanted.walks() {
            passed_over.clear();
            for host in &hosts.each {
                if let Some((conninfo, remark)) = look(host, wanted, &hosts, &mut passed_over)? {
                    let choice = (hosts.each.len() > 1).then(|| taken(&conninfo, &hosts, &passed_over));
                    return Ok(Found {
                        conninfo,
                        remarks: choice.into_iter().chain(remark).collect(),
                    });
                }
            }
        }
        Err(ServerError::NoneFits {
            wanted: hosts.wanted.to_string(),
            each: passed_over.join("; "),
        })
    }
}

impl Found {
    /// The way to a server that may be down. Where nobody answers, it is the one that the string
    /// names, and something may be between: nothing is taken for granted that a pooler would not
    /// do.
    ///
    /// # Errors
    ///
    /// As [`Found::find`], but for a server that does not answer.
    pub fn find_or_await(text: &str, environment: Lookup<'_>) -> Result<Conninfo, ServerError> {
        match Found::find(text, environment) {
            Ok(found) => Ok(found.conninfo),
            Err(
                ServerError::Unreachable { .. } | ServerError::Refused { .. } | ServerError::NoneFits { .. },
            ) => Ok(Conninfo::named(text, environment)?.proxied(true)),
            Err(error) => Err(error),
        }
    }
}

fn taken(conninfo: &Conninfo, hosts: &Hosts, passed_over: &[String]) -> String {
    let mut text = format!("of {} hosts, {} is taken", hosts.each.len(), conninfo.place());
    if !passed_over.is_empty() {
        text += &format!("; not {}", passed_over.join("; not "));
    }
    text
}

/// Tries all addresses of a host. An error ends the search, as a refused password does with libpq.
fn look(
    host: &Conninfo,
    wanted: Wanted,
    hosts: &Hosts,
    passed_over: &mut Vec<String>,
) -> Result<Option<(Conninfo, Option<String>)>, ServerError> {
    let alone = hosts.each.len() == 1;
    let mut addresses = match addresses(host) {
        Ok(addresses) => addresses,
        Err(reason) if alone => {
            return Err(ServerError::Unreachable {
                target: host.to_string(),
                reason,
            });
        }
        Err(reason) => {
            passed_over.push(format!("{}: {reason}", host.place()));
            return Ok(None);
        }
    };
    if hosts.shuffled {
        shuffle(&mut addresses);
    }
    let last = addresses.len() - 1;
    for (at, there) in addresses.iter().enumerate() {
        match try_ways(there, wanted) {
            Ok(Tried::Taken(conninfo, remark)) => return Ok(Some((*conninfo, remark))),
            Ok(Tried::NotWanted(reason)) => {
                passed_over.push(format!("{}: {reason}", there.place()));
                return Ok(None);
            }
            Ok(Tried::NotThere(reason)) => passed_over.push(format!("{}: {reason}", there.place())),
            Err(error) if alone && at == last => return Err(error),
            Err(error) => match not_there(&error) {
                Some(reason) => passed_over.push(format!("{}: {reason}", there.place())),
                None => return Err(error),
            },
        }
    }
    Ok(None)
}

/// Why the next one is to be tried; `None` where the search ends.
fn not_there(error: &ServerError) -> Option<String> {
    match error {
        ServerError::Unreachable { reason, .. } => Some(reason.clone()),
        ServerError::Refused { reason, sqlstate, .. } if sqlstate == CANNOT_CONNECT_NOW => {
            Some(reason.clone())
        }
        _ => None,
    }
}

/// The host at each of its addresses. A name with one address stays a name: there is nothing to
/// choose.
fn addresses(host: &Conninfo) -> Result<Vec<Conninfo>, String> {
    let name = match (host.host(), host.address()) {
        (Host::Tcp(name), None) => name,
        _ => return Ok(vec![host.clone()]),
    };
    let found: Vec<IpAddr> = dial::addresses(name.as_str(), host.port(), Until::after(connect_limit(host)))
        .map_err(|e| e.to_string())?
        .iter()
        .map(SocketAddr::ip)
        .collect();
    match found.as_slice() {
        [] => Err("the name has no address".into()),
        [_] => Ok(vec![host.clone()]),
        several => Ok(several.iter().map(|&address| host.at(address)).collect()),
    }
}

/// Tries TLS and plain text in the order of sslmode. What was taken holds the one way that was.
fn try_ways(host: &Conninfo, wanted: Wanted) -> Result<Tried, ServerError> {
    let ways = host.ways();
    let [first, second] = ways.as_slice() else {
        return ask(host, wanted, None);
    };
    let refused = match Server::enter(first) {
        Ok(server) => return judge(server, wanted, None),
        Err(error) => error,
    };
    let reason = match &refused {
        ServerError::NoTls { reason, .. } if first.has_tls() => reason.clone(),
        ServerError::Login { reason, .. } => reason.clone(),
        _ => return Err(refused),
    };
    let remark = match second.has_tls() {
        true => None,
        false => Some(format!(
            "{} is reached without TLS, for with it: {reason}",
            host.place()
        )),
    };
    ask(second, wanted, remark).map_err(|error| both(first, &reason, error))
}

/// The reasons of both refusals, where they differ.
fn both(first: &Conninfo, first_reason: &str, mut second: ServerError) -> ServerError {
    if let ServerError::Login { reason, .. } | ServerError::NoTls { reason, .. } = &mut second
        && reason != first_reason
    {
        let (with, without) = if first.has_tls() {
            (first_reason, reason.as_str())
        } else {
            (reason.as_str(), first_reason)
        };
        *reason = format!("with TLS: {with}; without: {without}");
    }
    second
}

fn ask(host: &Conninfo, wanted: Wanted, remark: Option<String>) -> Result<Tried, ServerError> {
    judge(Server::enter(host)?, wanted, remark)
}

/// Whether the server is what is wanted, and whether it is the one that answers.
fn judge(mut server: Server, wanted: Wanted, remark: Option<String>) -> Result<Tried, ServerError> {
    let sql = "SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only'), \
               pg_catalog.inet_server_addr(), pg_catalog.current_setting('port')";
    let rows = match server.rows("asking what kind of server it is", sql) {
        Ok(rows) => rows,
        Err(error) => return Ok(Tried::NotThere(error.to_string())),
    };
    let value = |column: usize| rows.first().and_then(|row| row.get(column)?.as_deref());
    if let Some(reason) = wanted.objection(value(0) == Some("t"), value(1) == Some("on")) {
        return Ok(Tried::NotWanted(reason));
    }
    let conninfo = server.conninfo().clone();
    let is_proxied = is_proxied(&conninfo, value(2), value(3));
    Ok(Tried::Taken(Box::new(conninfo.proxied(is_proxied)), remark))
}

/// Whether the server saw the connection come in by another door: an address (none over a socket)
/// and a port.
fn is_proxied(conninfo: &Conninfo, address: Option<&str>, port: Option<&str>) -> bool {
    if port != Some(&conninfo.port().to_string()) {
        return true;
    }
    // An address may be written with the length of its network.
    let seen: Option<IpAddr> = address.and_then(|text| text.split('/').next()?.parse().ok());
    let Some(seen) = seen else {
        return !conninfo.is_local();
    };
    match (conninfo.host(), conninfo.address()) {
        (_, Some(address)) => address != seen,
        (Host::Unix(_), None) => true,
        (Host::Tcp(name), None) => {
            let until = Until::after(connect_limit(conninfo));
            dial::addresses(name.as_str(), conninfo.port(), until)
                .is_ok_and(|known| known.iter().all(|known| known.ip() != seen))
        }
    }
}

/// Whether a session of a way keeps its server process from one transaction to the next, as a
/// forwarded port and a pooler in session mode let it. In transaction mode the next session gets
/// the process that the last one has left.
///
/// # Errors
///
/// [`ServerError`], where no session is to be had.
pub fn keeps_sessions(conninfo: &Conninfo) -> Result<bool, ServerError> {
    /// Other clients of the pooler may take a process meanwhile.
    const LOOKS: u32 = 3;
    let process = |server: &mut Server| {
        server.value(
            "asking for the process of a session",
            "SELECT pg_catalog.pg_backend_pid()",
        )
    };
    let mut one = Server::enter(conninfo)?;
    // The pool has room for one session, which keeps its process then.
    let Ok(mut other) = Server::enter(conninfo) else {
        return Ok(true);
    };
    for _ in 0..LOOKS {
        let first = process(&mut one)?;
        if process(&mut other)? == first || process(&mut one)? != first {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Any order is as likely as any other; who is served is not a secret and nothing is repeated by
/// it.
fn shuffle<T>(items: &mut [T]) {
    let random = RandomState::new();
    for at in (1..items.len()).rev() {
        let mut hasher = random.build_hasher();
        hasher.write_usize(at);
        let drawn = hasher.finish() % (at as u64 + 1);
        items.swap(at, usize::try_from(drawn).unwrap_or(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_testing::DeafPort;

    #[test]
    fn shuffling_loses_nothing_and_draws_each_first() {
        let mut firsts = [false; 4];
        for _ in 0..1000 {
            let mut items = [0, 1, 2, 3];
            shuffle(&mut items);
            firsts[items[0]] = true;
            items.sort_unstable();
            assert_eq!(items, [0, 1, 2, 3]);
        }
        assert_eq!(firsts, [true; 4]);
    }

    #[test]
    fn another_door_is_seen() {
        let check = |text: &str, address: Option<&str>, port: &str, expected: bool| {
            let conninfo = Conninfo::named(text, &|_| None).unwrap();
            assert_eq!(is_proxied(&conninfo, address, Some(port)), expected, "{text}");
            let is_by_socket = text.starts_with("host=/") && !expected;
            assert_eq!(conninfo.proxied(expected).is_by_socket(), is_by_socket, "{text}");
        };
        check("host=/tmp port=1", None, "1", false);
        check("host=/tmp port=1", None, "2", true);
        check("host=/tmp port=1", Some("127.0.0.1/32"), "1", true);
        check("host=127.0.0.1 port=1", Some("127.0.0.1"), "1", false);
        check("host=127.0.0.1 port=1", Some("127.0.0.1/32"), "6432", true);
        check("host=127.0.0.1 port=1", None, "1", true);
        check("host=a hostaddr=10.0.0.5 port=1", Some("10.0.0.5"), "1", false);
        check("host=a hostaddr=10.0.0.5 port=1", Some("10.0.0.6"), "1", true);
    }

    #[test]
    fn server_that_is_down_is_awaited_as_if_behind_a_pooler() {
        let deaf = DeafPort::new();
        let text = format!("host=127.0.0.1 port={} user=ann", deaf.number);
        assert!(Found::find(&text, &|_| None).is_err());
        let way = Found::find_or_await(&text, &|_| None).unwrap();
        assert!(way.is_proxied() && !way.is_here());
    }

    #[test]
    fn each_host_is_named_with_its_reason() {
        let deaf = DeafPort::new();
        let port = deaf.number;
        let text = format!("host=127.0.0.1,/nowhere,127.0.0.1 port={port} password=hunter2 user=ann");
        let error = Found::find(&text, &|_| None).unwrap_err().to_string();
        let expected = format!("127.0.0.1:{port}: Connection refused");
        assert_eq!(error.matches(&expected).count(), 2, "{error}");
        assert!(error.contains(&format!("/nowhere:{port}: ")), "{error}");
        assert!(!error.contains("hunter2") && !error.contains('\n'), "{error}");
    }

    #[test]
    fn a_server_that_says_nothing_is_given_up() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let silent = listener.local_addr().unwrap().port();
        let deaf = DeafPort::new();
        let text = format!(
            "host=127.0.0.1,127.0.0.1 port={silent},{} connect_timeout=5",
            deaf.number
        );
        let error = Found::find(&text, &|_| None).unwrap_err().to_string();
        assert!(
            error.contains("no session within 5 s") && error.contains("refused"),
            "{error}"
        );
    }
}
