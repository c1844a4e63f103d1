//! Where a server is, and how it is reached.

mod hosts;
pub(crate) mod keywords;
mod passfile;
mod resolve;

pub(crate) use hosts::Wanted;
pub(crate) use resolve::Hosts;

use crate::error::ServerError;
use crate::users::User;
use pgdyno_host::HostAccess;
use postgres::Config;
use postgres::config::{Host, SslMode};
use rustls::ClientConfig;
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// How the environment is asked: only the program may read it.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

const DEFAULT_PORT: u16 = 5432;
/// The name of pgdyno's sessions, unless they have one of their own.
pub(crate) const OWN_NAME: &str = "pgdyno";

/// A connection to one server. Displays as place, database and user; never as password.
#[derive(Clone)]
pub struct Conninfo {
    config: Config,
    tls: Option<Arc<ClientConfig>>,
    said_of_tls: Vec<TlsWord>,
    ways: Ways,
    is_proxied: bool,
    is_on_this_machine: bool,
    /// The user as whom root opens the socket, by number.
    socket_user: Option<u32>,
}

/// A word of the connection string that is about TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TlsWord {
    keyword: &'static str,
    /// The variable of libpq that says the same.
    variable: &'static str,
    value: String,
}

/// In which order TLS and plain text are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ways {
    One,
    TlsThenPlain,
    PlainThenTls,
}

impl Conninfo {
    /// How the one server is shown that a connection string names. Nobody is asked.
    ///
    /// # Errors
    ///
    /// The string cannot be read, or names several.
    pub fn shown(text: &str, environment: Lookup<'_>) -> Result<String, ServerError> {
        Ok(Conninfo::named(text, environment)?.to_string())
    }

    /// The one server that a connection string names. Nobody is asked, so whether something is
    /// between is not known: whoever goes there has it from [`crate::Found`].
    pub(crate) fn named(text: &str, environment: Lookup<'_>) -> Result<Conninfo, ServerError> {
        let mut each = Hosts::resolve(text, environment)?.each;
        match (each.pop(), each.len()) {
            (Some(one), 0) => Ok(one),
            (_, others) => Err(ServerError::Hosts {
                reason: format!("it names {} hosts, where one is meant", others + 1),
            }),
        }
    }

    /// What TLS is done with; `None` where it is not wanted.
    pub fn tls(&self) -> Option<&Arc<ClientConfig>> {
        self.tls.as_ref()
    }

    /// A connection that is known in full, as a sandbox's.
    pub fn from_config(config: Config) -> Conninfo {
        Conninfo {
            config,
            tls: None,
            said_of_tls: Vec::new(),
            ways: Ways::One,
            is_proxied: false,
            is_on_this_machine: false,
            socket_user: None,
        }
    }

    /// The user of this host, by number, as whom its socket is opened; `None`: the one of this
    /// process.
    pub fn socket_user(&self) -> Option<u32> {
        self.socket_user
    }

    /// The same over a socket as the user of this host who has the role's name, for a server that
    /// takes nobody else (`peer` in its pg_hba.conf). `None` where this process is not root, or
    /// there is no such user.
    pub(crate) fn as_role(&self, host: &dyn HostAccess) -> Option<Conninfo> {
        let is_socket = self.address().is_none() && matches!(self.host(), Host::Unix(_));
        if !is_socket || self.socket_user.is_some() || !User::is_root() {
            return None;
        }
        let user = User::named(host, self.config.get_user()?)?;
        Some(Conninfo {
            socket_user: Some(user.uid),
            ..self.clone()
        })
    }

    /// The same, of a server that runs on this machine behind a link to a namespace of its own.
    pub fn on_this_machine(self) -> Conninfo {
        Conninfo {
            is_on_this_machine: true,
            ..self
        }
    }

    /// The same server without TLS.
    pub(crate) fn without_tls(mut self) -> Conninfo {
        self.config.ssl_mode(SslMode::Disable);
        Conninfo {
            tls: None,
            said_of_tls: vec![TlsWord {
                keyword: "sslmode",
                variable: "PGSSLMODE",
                value: "disable".to_owned(),
            }],
            ways: Ways::One,
            ..self
        }
    }

    /// The same server at one of its name's addresses.
    pub(crate) fn at(&self, address: IpAddr) -> Conninfo {
        let mut there = self.clone();
        there.config.hostaddr(address);
        there
    }

    /// The ways that sslmode allows, in its order.
    pub(crate) fn ways(&self) -> Vec<Conninfo> {
        match self.ways {
            Ways::One => vec![self.clone()],
            Ways::TlsThenPlain => vec![self.clone(), self.clone().without_tls()],
            Ways::PlainThenTls => vec![self.clone().without_tls(), self.clone()],
        }
    }

    /// Whether this is a way with TLS, where the server has it.
    pub(crate) fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// The configuration for a driver; it holds the password.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether it goes over a socket of this machine.
    pub fn is_local(&self) -> bool {
        self.address().is_none() && matches!(self.host(), Host::Unix(_))
    }

    /// Whether it goes over the server's own socket, so that the server runs on this machine:
    /// behind a pooler's socket it may be anywhere.
    pub fn is_by_socket(&self) -> bool {
        self.is_local() && !self.is_proxied
    }

    /// Whether the server is known to run on this machine: it is reached over its own socket, or
    /// over a sandbox's own network.
    pub fn is_here(&self) -> bool {
        self.is_on_this_machine || self.is_by_socket()
    }

    /// Whether something is between, a pooler perhaps: the server was asked, and saw the connection
    /// come in by another door than the one that was knocked at.
    pub fn is_proxied(&self) -> bool {
        self.is_proxied
    }

    /// The name under which a session is seen that is called `usual` at a server. A pooler gives
    /// all of them one session after the other, and sets the name again, in a transaction that the
    /// server counts, when it is another one: there it is always the same.
    pub fn session_name<'n>(&self, usual: &'n str) -> &'n str {
        match self.is_proxied {
            true => OWN_NAME,
            false => usual,
        }
    }

    /// The same, behind something or not.
    pub fn proxied(self, is_proxied: bool) -> Conninfo {
        Conninfo { is_proxied, ..self }
    }

    /// The name of the host, or the directory of its socket.
    pub fn host(&self) -> Host {
        let host = self.config.get_hosts().first().cloned();
        host.unwrap_or_else(|| Host::Tcp("localhost".to_owned()))
    }

    /// Where the host is, if that is known.
    pub fn address(&self) -> Option<IpAddr> {
        self.config.get_hostaddrs().first().copied()
    }

    /// The TCP port, or that of the socket's name.
    pub fn port(&self) -> u16 {
        self.config.get_ports().first().copied().unwrap_or(DEFAULT_PORT)
    }

    /// Host and port, or the socket's directory and port; and the address where it was chosen.
    pub fn place(&self) -> String {
        let (host, port) = (written(&self.host()), self.port());
        let place = match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        };
        match self.address().map(|address| address.to_string()) {
            Some(address) if address != host => format!("{place} ({address})"),
            _ => place,
        }
    }

    /// The same server and user, in another database.
    pub fn with_database(&self, name: &str) -> Conninfo {
        let mut other = self.clone();
        other.config.dbname(name);
        other
    }

    /// The same with more `options` of its session.
    pub fn with_options(&self, options: &str) -> Conninfo {
        let mut other = self.clone();
        let before = self.config.get_options().unwrap_or_default();
        other.config.options(format!("{before} {options}").trim_start());
        other
    }

    /// Name of the database; empty where none is named.
    pub fn database(&self) -> &str {
        self.config.get_dbname().unwrap_or_default()
    }

    /// Name of the role; empty where none is named.
    pub fn user(&self) -> &str {
        self.config.get_user().unwrap_or_default()
    }

    /// A connection string without the password: what may be stored.
    pub fn without_password(&self) -> String {
        let address = self.address();
        let address = address.map_or_else(String::new, |address| format!(" hostaddr={address}"));
        format!(
            "host={}{address} port={} user={} dbname={}{}",
            quoted(&written(&self.host())),
            self.port(),
            quoted(self.user()),
            quoted(self.database()),
            self.tls_words()
        )
    }

    /// What was asked for about TLS, as words of a connection string, with a blank before each.
    pub(crate) fn tls_words(&self) -> String {
        let words = self.said_of_tls.iter();
        words
            .map(|word| format!(" {}={}", word.keyword, quoted(&word.value)))
            .collect()
    }

    /// What was asked for about TLS as libpq's variables, for a program that goes to the same
    /// server.
    pub fn tls_variables(&self) -> Vec<(String, String)> {
        let words = self.said_of_tls.iter();
        words
            .map(|word| (word.variable.to_owned(), word.value.clone()))
            .collect()
    }
}

fn written(host: &Host) -> String {
    match host {
        Host::Tcp(host) => host.clone(),
        Host::Unix(directory) => directory.display().to_string(),
    }
}

/// A name as it is shown: what follows a colon may be a password that was given with the user.
pub(crate) fn before_colon(name: &str) -> Cow<'_, str> {
    match name.split_once(':') {
        Some((before, _)) => format!("{before}\u{2026}").into(),
        None => name.into(),
    }
}

pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

impl fmt::Display for Conninfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "database {} at {} as {}",
            before_colon(self.database()),
            self.place(),
            before_colon(self.user())
        )
    }
}

impl fmt::Debug for Conninfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests;
