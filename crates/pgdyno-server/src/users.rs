//! Users of this machine, from /etc/passwd.

use pgdyno_host::HostAccess;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A user of the operating system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// Login name of the user.
    pub name: String,
    /// User number of the user.
    pub uid: u32,
    /// Number of the primary group.
    pub gid: u32,
}

impl User {
    fn find(host: &dyn HostAccess, matches: impl Fn(&User) -> bool) -> Option<User> {
        let text = host.read("/etc/passwd").ok()?;
        text.lines().filter_map(User::parse).find(matches)
    }

    /// Parses a line of passwd(5).
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

    /// All users with a home directory of their own, each home once.
    pub fn homes(host: &dyn HostAccess) -> Vec<(User, PathBuf)> {
        let text = host.read("/etc/passwd").unwrap_or_default();
        let mut seen = BTreeSet::new();
        let home_of = |line: &str| {
            let home = PathBuf::from(line.split(':').nth(5)?);
            Some((User::parse(line)?, home))
        };
        let own = |home: &Path| home.is_absolute() && home != Path::new("/");
        let homes = text.lines().filter_map(home_of);
        homes
            .filter(|(user, home)| own(home) && seen.insert((user.uid, home.clone())))
            .collect()
    }

    /// The user this process runs as.
    pub fn current(host: &dyn HostAccess) -> Option<User> {
        User::numbered(host, rustix::process::getuid().as_raw())
    }

    /// The user with this number.
    pub fn numbered(host: &dyn HostAccess, uid: u32) -> Option<User> {
        User::find(host, |user| user.uid == uid)
    }

    /// Whether this process acts as the user with this number.
    pub fn is_own(uid: u32) -> bool {
        rustix::process::geteuid().as_raw() == uid
    }

    /// Whether this process may become another user.
    pub fn is_root() -> bool {
        rustix::process::geteuid().is_root()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_host::LocalHost;

    #[test]
    fn homes_are_absolute_and_named_once_for_a_user() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("etc")).unwrap();
        let text = "root:x:0:0:root:/root:/bin/sh\nnone:x:5:5::/:/bin/false\nrelative:x:6:6::home:/bin/sh\n\
                    a:x:7:7::/home/a:/bin/sh\nalso_a:x:7:7::/home/a:/bin/sh\ntorn:x\n";
        std::fs::write(dir.path().join("etc/passwd"), text).unwrap();
        let homes = User::homes(&LocalHost::at(dir.path()));
        let names: Vec<&str> = homes.iter().map(|(user, _)| user.name.as_str()).collect();
        assert_eq!(names, ["root", "a"]);
        assert_eq!(homes[1].1, Path::new("/home/a"));
    }
}
