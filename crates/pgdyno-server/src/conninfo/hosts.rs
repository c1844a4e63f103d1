//! The list of hosts of a connection string, and which of them is wanted. It asks nobody.
//!
//! Source: PostgreSQL documentation, "Specifying Multiple Hosts" and "Parameter Key Words".

use std::fmt;
use std::net::IpAddr;

/// More hosts than this are a mistake.
const HOSTS_MAX: usize = 100;
const DEFAULT_PORT: u16 = 5432;

/// A place to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Name, address, or directory of a socket; never empty.
    pub(super) host: String,
    /// Where the host is, if it need not be looked up.
    pub(super) address: Option<IpAddr>,
    pub(super) port: u16,
}

/// The places that three lists name. `default_host` is where none is named. The reason does not
/// quote them: a piece of a password may have got there.
pub(super) fn places(
    host: Option<&str>,
    hostaddr: Option<&str>,
    port: Option<&str>,
    default_host: &str,
) -> Result<Vec<Place>, String> {
    let list = |text: Option<&str>| -> Vec<String> {
        let text = text.unwrap_or_default();
        let named = text.split(',').map(|part| part.trim().to_owned());
        if text.is_empty() {
            Vec::new()
        } else {
            named.collect()
        }
    };
    let (hosts, addresses, ports) = (list(host), list(hostaddr), list(port));
    let count = hosts.len().max(addresses.len()).max(1);
    if count > HOSTS_MAX {
        return Err(format!("it names {count} hosts; at most {HOSTS_MAX} are tried"));
    }
    if !hosts.is_empty() && !addresses.is_empty() && hosts.len() != addresses.len() {
        return Err(format!(
            "its list of hosts is {} long, that of hostaddrs {}; as many are needed",
            hosts.len(),
            addresses.len()
        ));
    }
    if ports.len() > 1 && ports.len() != count {
        return Err(format!(
            "its list of hosts is {count} long, that of ports {}; one port, or as many as hosts, are needed",
            ports.len()
        ));
    }
    (0..count)
        .map(|at| {
            let address: Option<IpAddr> = match addresses.get(at).map(String::as_str) {
                None | Some("") => None,
                Some(text) => Some(
                    text.parse()
                        .map_err(|_| "hostaddr holds what is not an IP address".to_owned())?,
                ),
            };
            let named = hosts.get(at).filter(|host| !host.is_empty()).cloned();
            let port = match ports.get(at).or(ports.first().filter(|_| ports.len() == 1)) {
                None => DEFAULT_PORT,
                Some(text) if text.is_empty() => DEFAULT_PORT,
                Some(text) => match text.parse() {
                    Ok(port @ 1..) => port,
                    _ => return Err("a port is not a number from 1 to 65535".to_owned()),
                },
            };
            let host = match (named, address) {
                (Some(host), _) => host,
                (None, Some(address)) => address.to_string(),
                (None, None) => default_host.to_owned(),
            };
            Ok(Place { host, address, port })
        })
        .collect()
}

/// target_session_attrs: what a server must be to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Any,
    ReadWrite,
    ReadOnly,
    Primary,
    Standby,
    PreferStandby,
}

impl Wanted {
    const ALL: [Wanted; 6] = [
        Wanted::Any,
        Wanted::ReadWrite,
        Wanted::ReadOnly,
        Wanted::Primary,
        Wanted::Standby,
        Wanted::PreferStandby,
    ];

    pub(super) fn named(word: &str) -> Option<Wanted> {
        Wanted::ALL.into_iter().find(|wanted| wanted.to_string() == word)
    }

    /// What is looked for in one walk over the hosts after the other.
    pub(crate) fn walks(self) -> &'static [Wanted] {
        match self {
            Wanted::Any => &[Wanted::Any],
            Wanted::ReadWrite => &[Wanted::ReadWrite],
            Wanted::ReadOnly => &[Wanted::ReadOnly],
            Wanted::Primary => &[Wanted::Primary],
            Wanted::Standby => &[Wanted::Standby],
            Wanted::PreferStandby => &[Wanted::Standby, Wanted::Any],
        }
    }

    /// Why a server is not taken; `None` where it is. `read_only` is of its sessions, unless they
    /// say otherwise.
    pub(crate) fn objection(self, in_recovery: bool, read_only: bool) -> Option<&'static str> {
        match self {
            Wanted::Any | Wanted::PreferStandby => None,
            Wanted::Primary => in_recovery.then_some("it is a standby"),
            Wanted::Standby => (!in_recovery).then_some("it is not a standby"),
            Wanted::ReadWrite if in_recovery => Some("it is a standby"),
            Wanted::ReadWrite => read_only.then_some("its sessions are read-only"),
            Wanted::ReadOnly => (!read_only && !in_recovery).then_some("its sessions are read-write"),
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Wanted::Any => "any",
            Wanted::ReadWrite => "read-write",
            Wanted::ReadOnly => "read-only",
            Wanted::Primary => "primary",
            Wanted::Standby => "standby",
            Wanted::PreferStandby => "prefer-standby",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_are_libpqs() {
        let check = |lists: [Option<&str>; 3], expected: &[(&str, Option<&str>, u16)]| {
            let [host, hostaddr, port] = lists;
            let expected: Vec<_> = expected
                .iter()
                .map(|&(host, address, port)| Place {
                    host: host.into(),
                    address: address.map(|address| address.parse().unwrap()),
                    port,
                })
                .collect();
            assert_eq!(places(host, hostaddr, port, "/run"), Ok(expected), "{lists:?}");
        };
        check([None, None, None], &[("/run", None, 5432)]);
        check([Some("a"), None, Some("1")], &[("a", None, 1)]);
        check([Some("a,b"), None, Some("7")], &[("a", None, 7), ("b", None, 7)]);
        check(
            [Some("a,,b"), None, Some("1,2,")],
            &[("a", None, 1), ("/run", None, 2), ("b", None, 5432)],
        );
        check(
            [Some("a,b"), Some("10.0.0.5,::1"), None],
            &[("a", Some("10.0.0.5"), 5432), ("b", Some("::1"), 5432)],
        );
        check(
            [Some("a,b"), Some(",::1"), None],
            &[("a", None, 5432), ("b", Some("::1"), 5432)],
        );
        check(
            [None, Some("10.0.0.5"), None],
            &[("10.0.0.5", Some("10.0.0.5"), 5432)],
        );
    }

    #[test]
    fn lists_that_cannot_be_are_reported_and_not_quoted() {
        let check = |lists: [Option<&str>; 3], part: &str| {
            let [host, hostaddr, port] = lists;
            let reason = places(host, hostaddr, port, "/run").unwrap_err();
            assert!(reason.contains(part) && !reason.contains("hunter2"), "{reason}");
        };
        check([Some("a,b"), Some("::1"), None], "2 long, that of hostaddrs 1");
        check([Some("a,b"), None, Some("1,2,3")], "2 long, that of ports 3");
        check([Some("a"), None, Some("1,2")], "1 long, that of ports 2");
        check([Some("a"), Some("hunter2"), None], "not an IP address");
        check([Some("a"), None, Some("hunter2")], "not a number");
        check([Some("a"), None, Some("0")], "not a number");
        check([Some(&",".repeat(500)), None, None], "at most");
    }

    #[test]
    fn a_server_fits_or_the_reason_is_given() {
        // In recovery and read-only; which of the four servers fit.
        let servers = [(false, false), (false, true), (true, true), (true, false)];
        let check = |word: &str, expected: [bool; 4]| {
            let wanted = Wanted::named(word).unwrap();
            let fits = servers.map(|(recovery, read_only)| wanted.objection(recovery, read_only).is_none());
            assert_eq!(fits, expected, "{word}");
        };
        check("any", [true; 4]);
        check("read-write", [true, false, false, false]);
        check("read-only", [false, true, true, true]);
        check("primary", [true, true, false, false]);
        check("standby", [false, false, true, true]);
        check("prefer-standby", [true; 4]);
        assert_eq!(Wanted::PreferStandby.walks(), [Wanted::Standby, Wanted::Any]);
        assert_eq!(Wanted::named("sometimes"), None);
    }

    proptest! {
        #[test]
        fn no_lists_make_it_panic(host in "[a-z,/]{0,20}", address in "[0-9.:,]{0,20}", port in "[0-9,]{0,9}") {
            let _ = places(Some(&host), Some(&address), Some(&port), "/tmp");
        }
    }
}
