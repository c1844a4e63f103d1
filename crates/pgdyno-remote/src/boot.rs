//! What starts an agent on a host where there may be none yet: a command for the user's shell
//! there, and what it prints.
//!
//! All goes over one connection, for a user who types a password types it once.

use std::io::{self, BufRead};

/// Begins the line in which the host says what it has.
const BOOT: &str = "pgdyno-boot ";
/// The line after which frames follow.
pub(crate) const AGENT: &str = "pgdyno-agent";
/// Bytes that a host may print before: scripts of its shell do.
const NOISE_MAX: usize = 64 << 10;
/// Where agents are kept, below the user's home.
const AGENTS: &str = ".cache/pgdyno/agents";

/// The command that starts the agent of this version. It prints the machine and the hash of the
/// program that is there, and reads a line: `run`, or `take BYTES SHA256` with the program behind
/// it. Every shell takes it: it has no quotation marks but those around it, no exclamation mark, no
/// backslash and one line.
pub(crate) fn command(version: &str, sudo: bool) -> String {
    let start = match sudo {
        true => "exec sudo -n -- \"$f\" agent --stdio",
        false => "exec \"$f\" agent --stdio",
    };
    let script = [
        &*format!("d=\"$HOME/{AGENTS}/{version}\""),
        "f=\"$d/pgdyno\"",
        "n=\"$f.new.$$\"",
        "h=none",
        "sum() { sha256sum <\"$1\" | cut -c1-64; }",
        "clean() { rm -f \"$n\"; }",
        "if [ -x \"$f\" ]; then h=$(sum \"$f\"); fi",
        // A script of the shell may have left a line without an end.
        "echo",
        &format!("echo \"{BOOT}$(uname -m) $h\""),
        "read -r what bytes hash || exit 0",
        // In a shell of its own: its mode of new files is not the agent's.
        "take() ( umask 077; trap clean EXIT; mkdir -p \"$d\" && head -c \"$bytes\" >\"$n\" || exit 1; \
         if [ \"$(sum \"$n\")\" = \"$hash\" ]; then chmod 700 \"$n\" && mv \"$n\" \"$f\"; \
         else echo \"the program did not arrive whole\" >&2; exit 1; fi )",
        "if [ \"$what\" = take ]; then take || exit 1; fi",
        start,
    ]
    .join("; ");
    format!("sh -c '{script}'")
}

/// Begins the line in which the host says what it has removed.
const REMOVED: &str = "pgdyno-removed ";

/// The command that removes all agents of the user, and prints where they were.
pub(crate) fn removal() -> String {
    format!(
        "sh -c 'd=\"$HOME/{AGENTS}\"; if [ -d \"$d\" ]; then rm -rf \"$d\" || exit 1; \
         else d=; fi; echo; echo \"{REMOVED}$d\"'"
    )
}

/// What a removal has removed; the outer `None` where the host does not say.
pub(crate) fn removed(printed: &str) -> Option<Option<String>> {
    let place = printed.lines().find_map(|line| line.strip_prefix(REMOVED))?;
    Some(Some(place.to_owned()).filter(|place| !place.is_empty()))
}

/// What a host has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its architecture, as `uname -m` prints it.
    pub(crate) machine: String,
    /// SHA-256 of the agent that is there.
    pub(crate) sha256: Option<String>,
}

/// Reads what the host prints until it has said what it has; `None` where it ends before.
pub(crate) fn found(from: &mut impl BufRead) -> io::Result<Option<Found>> {
    let mut left = NOISE_MAX;
    while let Some(line) = line(from, &mut left)? {
        let Some(rest) = line.strip_prefix(BOOT) else {
            continue;
        };
        let is_plain =
            |text: &str| text.len() <= 64 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        return match rest.split_once(' ') {
            Some((machine, hash)) if is_plain(machine) && is_plain(hash) => Ok(Some(Found {
                machine: machine.to_owned(),
                sha256: (hash.len() == 64).then(|| hash.to_owned()),
            })),
            _ => Err(io::Error::other("the host does not say what it is")),
        };
    }
    Ok(None)
}

/// Reads on to the line after which frames follow; whether it came.
pub(crate) fn agent_follows(from: &mut impl BufRead) -> io::Result<bool> {
    let mut left = NOISE_MAX;
    while let Some(line) = line(from, &mut left)? {
        if line == AGENT {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The next line without its end; of all lines together there are at most `left` bytes.
fn line(from: &mut impl BufRead, left: &mut usize) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    let read = io::Read::take(&mut *from, *left as u64 + 1).read_until(b'\n', &mut bytes)?;
    if read > *left {
        return Err(io::Error::other(format!(
            "the host prints more than {NOISE_MAX} bytes and starts no agent"
        )));
    }
    *left -= read;
    if bytes.pop() != Some(b'\n') {
        return Ok(None);
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_prints_before_is_passed_over() {
        let hash = "0123456789abcdef".repeat(4);
        let text = format!("Welcome!\r\n\npgdyno-boot x86_64 {hash}\nlecture\npgdyno-agent\nframes");
        let mut from = text.as_bytes();
        let expected = Found {
            machine: "x86_64".into(),
            sha256: Some(hash),
        };
        assert_eq!(found(&mut from).unwrap(), Some(expected));
        assert!(agent_follows(&mut from).unwrap());
        assert_eq!(from, b"frames");
        let none = found(&mut &b"pgdyno-boot s390x none\n"[..]).unwrap().unwrap();
        assert_eq!((&*none.machine, none.sha256), ("s390x", None));
    }

    #[test]
    fn host_that_says_anything_else_is_refused() {
        assert_eq!(found(&mut &b"sh: not found\n"[..]).unwrap(), None);
        assert_eq!(found(&mut &b"pgdyno-boot x86_64 no"[..]).unwrap(), None);
        assert!(found(&mut &b"pgdyno-boot ../../etc none\n"[..]).is_err());
        assert!(found(&mut &b"pgdyno-boot x86_64\n"[..]).is_err());
        let endless = "x\n".repeat(NOISE_MAX);
        assert!(found(&mut endless.as_bytes()).is_err());
        assert!(agent_follows(&mut endless.as_bytes()).is_err());
    }

    #[test]
    fn command_is_one_word_for_every_shell() {
        for sudo in [false, true] {
            let command = command("1.2.3", sudo);
            let inner = command
                .strip_prefix("sh -c '")
                .and_then(|it| it.strip_suffix('\''));
            let inner = inner.expect("a quoted script");
            assert!(!inner.contains(['\'', '!', '\\', '\n']), "{inner}");
        }
    }
}
