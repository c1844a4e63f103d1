//! What changes are of: settings of the host, settings of a server, and the locks by which others
//! keep off them.

use super::line;
use std::fmt;

/// What is to be changed, and by nobody else meanwhile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// Settings of the host: kernel files, swap, files of pgdyno's own.
    pub host: bool,
    /// Settings of one server, by what identifies it on this host.
    pub server: Option<String>,
}

impl Scope {
    /// Whether both have something in common.
    pub(crate) fn meets(&self, other: &Scope) -> bool {
        self.host && other.host || self.server.is_some() && self.server == other.server
    }

    /// The parts that are locked, always in this order.
    pub(super) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let host = self.host.then_some(Part::Host);
        host.into_iter().chain(self.server.as_deref().map(Part::Server))
    }
}

/// A part of a scope that has a lock.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    Host,
    Server(&'a str),
    /// The list of journals, for an instant.
    List,
}

impl Part<'_> {
    pub(super) fn file_name(self) -> String {
        match self {
            Part::Host => "host.lock".to_owned(),
            Part::Server(key) => format!("server-{}.lock", line::short_hash(key.as_bytes())),
            Part::List => "list.lock".to_owned(),
        }
    }
}

impl fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Host | Part::List => f.write_str("this host"),
            Part::Server(key) => write!(f, "the server {key}"),
        }
    }
}
