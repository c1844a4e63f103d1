//! Users of this machine, from /etc/passwd.

use pgdyno_host::HostAccess;
use serde::{Deserialize, Serialize};

/// A user of the operating system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// Login name.
    pub name: String,
    /// User number.
    pub uid: u32,
    /// Number of the primary group.
    pub gid: u32,
}

impl User {
    fn find(host: &dyn HostAccess, matches: impl Fn(&User) -> bool) -> Option<User> {
        let text = host.read("/etc/passwd").ok()?;
        text.lines().filter_map(User::parse).find(matches)
    }

    /// A line of passwd(5).
    fn parse(line: &str) -> Option<User> {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, gid, ..] = fields[..] else {
            return None;
        };
        Some(User {
            name: name.to_owned(),
            uid: uid.parse().ok()?,
            gid: gid.parse().ok()?,
        })
    }

    /// The user with this name.
    pub fn named(host: &dyn HostAccess, name: &str) -> Option<User> {
        User::find(host, |user| user.name == name)
    }

    /// The user this process runs as.
    pub fn current(host: &dyn HostAccess) -> Option<User> {
        let uid = rustix::process::getuid().as_raw();
        User::find(host, |user| user.uid == uid)
    }

    /// Whether this process may become another user.
    pub fn is_root() -> bool {
        rustix::process::geteuid().is_root()
    }
}
