//! How a host over ssh is named.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

const PREFIX: &str = "ssh:";
/// Bytes of a name; a host's own has 253 at most.
const NAME_MAX: usize = 512;
/// What a shell obeys, which ssh does not take in a host's name either.
const OBEYED: &str = "'`\";&<>|(){}";

/// A host that is reached by the user's `ssh`: what follows `ssh:` is the destination that `ssh` is
/// given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshHost {
    destination: String,
}

impl SshHost {
    /// The destination as `ssh` takes it: `db1`, `postgres@db1`, or `ssh://postgres@db1:2222`.
    pub fn destination(&self) -> &str {
        &self.destination
    }
}

/// As it is named by the user.
impl Display for SshHost {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.destination.starts_with("ssh://") {
            true => f.write_str(&self.destination),
            false => write!(f, "{PREFIX}{}", self.destination),
        }
    }
}

impl FromStr for SshHost {
    type Err = String;

    fn from_str(text: &str) -> Result<SshHost, String> {
        let wrong = |why: &str| {
            Err(format!(
                "{why}: expected ssh:HOST, ssh:USER@HOST or ssh://USER@HOST:PORT"
            ))
        };
        let Some(rest) = text.strip_prefix(PREFIX) else {
            return wrong("it does not begin with ssh:");
        };
        // A URI goes to ssh as it is.
        let (destination, name) = match rest.strip_prefix("//") {
            Some(name) => (text, name),
            None => (rest, rest),
        };
        if name.is_empty() {
            return wrong("the host is missing");
        }
        if text.len() > NAME_MAX {
            return wrong("it is too long");
        }
        // An option, to ssh.
        if name.starts_with('-') {
            return wrong("a host does not begin with -");
        }
        if name.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return wrong("a host has no blanks");
        }
        if name.contains(|c: char| OBEYED.contains(c)) {
            return wrong("a host has no signs that a shell obeys");
        }
        // ssh refuses passwords in destinations, and this one would be seen in the list of
        // processes.
        if name.split_once('@').is_some_and(|(user, _)| user.contains(':')) {
            return wrong("ssh takes no password here");
        }
        Ok(SshHost {
            destination: destination.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_named_as_ssh_names_them() {
        for (text, destination) in [
            ("ssh:db1", "db1"),
            ("ssh:postgres@db1.example", "postgres@db1.example"),
            ("ssh://postgres@db1:2222", "ssh://postgres@db1:2222"),
            ("ssh:fe80::1%eth0", "fe80::1%eth0"),
        ] {
            let host: SshHost = text.parse().unwrap();
            assert_eq!(host.destination(), destination);
            assert_eq!(host.to_string(), text);
        }
    }

    #[test]
    fn what_ssh_would_take_for_something_else_is_refused() {
        let long = format!("ssh:{}", "x".repeat(NAME_MAX));
        for text in [
            "db1",
            "ssh:",
            "ssh://",
            "ssh:-oProxyCommand=sh",
            "ssh://-oProxyCommand=sh",
            "ssh:db1 sh",
            "ssh:db1\n",
            "ssh:db1;sh",
            "ssh:$(sh)",
            "ssh:user:secret@db1",
            &long,
        ] {
            let error = text.parse::<SshHost>().unwrap_err();
            assert!(error.contains("expected ssh:HOST"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
