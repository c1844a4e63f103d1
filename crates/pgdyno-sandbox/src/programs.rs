//! Programs of the system, of which many are where only root's path leads.

use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Time that an answer may take: this host may have no processor left for it.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);

/// Searched before the path, which at a user's has no sbin.
const DIRECTORIES: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// Where a program is; its bare name, for the path to find, where it is in none of these
/// directories.
pub fn find(name: &str) -> PathBuf {
    let places = DIRECTORIES
        .iter()
        .map(|directory| Path::new(directory).join(name));
    places
        .into_iter()
        .find(|place| place.is_file())
        .unwrap_or_else(|| PathBuf::from(name))
}

/// Whether there is a program at all, found by starting it with `argument`, which only makes it
/// describe itself.
pub(crate) fn is_there(name: &str, argument: &str) -> bool {
    let mut asked = Command::new(find(name));
    asked.arg(argument);
    !answer(asked).is_err_and(|e| e.kind() == io::ErrorKind::NotFound)
}

/// What a program prints that is only asked something. One that does not answer in time is ended,
/// with its process group.
///
/// # Errors
///
/// It cannot be started, or has not answered.
pub fn answer(command: Command) -> io::Result<Output> {
    answer_within(command, ANSWER_WITHIN)
}

fn answer_within(mut command: Command, limit: Duration) -> io::Result<Output> {
    let child = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let group = Pid::from_child(&child);
    let (ended, end) = mpsc::channel();
    thread::spawn(move || ended.send(child.wait_with_output()));
    end.recv_timeout(limit).unwrap_or_else(|_| {
        // It may be gone by now.
        let _ = kill_process_group(group, Signal::KILL);
        let reason = format!("it has not answered within {} s", limit.as_secs_f64());
        Err(io::Error::new(io::ErrorKind::TimedOut, reason))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_testing::{until, until_is};
    use std::fs;

    #[test]
    fn what_is_in_none_of_the_directories_is_left_to_the_path() {
        assert_eq!(find("no-such-program"), Path::new("no-such-program"));
        assert!(!is_there("no-such-program", "--version"));
        assert!(find("sh").is_absolute() && is_there("true", "--version"));
    }

    #[test]
    fn answers_are_waited_for_no_longer_than_their_limit() {
        let shell = |text: &str| {
            let mut shell = Command::new("sh");
            shell.args(["-c", text]);
            shell
        };
        let output = answer(shell("echo yes; echo no >&2; exit 3")).unwrap();
        assert_eq!((&*output.stdout, &*output.stderr), (&b"yes\n"[..], &b"no\n"[..]));
        assert_eq!(output.status.code(), Some(3));
        let dir = tempfile::tempdir().unwrap();
        let pid = dir.path().join("pid");
        let silent = format!("sleep 1000 & echo $! > {}; wait", pid.display());
        // This host may take longer than that to start it.
        let pid = until("a program that has started another", || {
            let error = answer_within(shell(&silent), Duration::from_secs(1)).unwrap_err();
            assert!(error.to_string().contains("not answered within 1 s"), "{error}");
            fs::read_to_string(&pid)
        });
        // What it has started is ended as well.
        until_is("whether what it has started is there", false, || {
            let state = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
            state.is_ok_and(|state| !state.contains(") Z"))
        });
    }
}
