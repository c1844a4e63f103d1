//! A command that a script gives to the shell, within a transaction: what it prints is limited, and
//! so is its time.

use super::child::{Errand, Exit, ForeignError, follow};
use super::lines::LastLines;
use super::output::ForeignStream;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A transaction lasts as long as its command, and so does the end of the load.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);
/// What it has for its end after each signal.
const GRACE: Duration = Duration::from_secs(1);
/// A number is far shorter.
const OUT_BYTES_MAX: usize = 4096;

/// Runs a line by `sh -c` and gives the first of what it prints; or why it did not end well,
/// without the line itself, which may hold secrets.
pub(crate) fn shell(line: String, stop: &AtomicBool, limit: Duration) -> Result<String, String> {
    let errand = Errand {
        words: vec!["/bin/sh".to_owned(), "-c".to_owned(), line],
        variables: Vec::new(),
        directory: None,
        limit,
        grace: GRACE,
    };
    let mut out = Vec::new();
    let mut err = Vec::new();
    let ended = follow(&errand, stop, &mut |stream, bytes, _| {
        let kept = match stream {
            ForeignStream::Out => &mut out,
            ForeignStream::Err => &mut err,
        };
        let room = OUT_BYTES_MAX - kept.len();
        kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        true
    });
    let ended = ended.map_err(|error| match error {
        ForeignError::Start { source, .. } => format!("cannot be run: {source}"),
        error => error.to_string(),
    })?;
    let printed = LastLines::without(None).shown(String::from_utf8_lossy(&err).trim());
    let printed = match printed.as_str() {
        "" => printed,
        printed => format!("; it printed: {printed}"),
    };
    match ended.exit {
        _ if ended.too_long => Err(format!(
            "did not end within {} s, and was ended{printed}",
            limit.as_secs_f64()
        )),
        _ if ended.stopped => Err("was ended with the load".to_owned()),
        Exit::Code(0) => Ok(String::from_utf8_lossy(&out).into_owned()),
        exit => Err(format!("ended with {exit}{printed}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Result<String, String> {
        shell(line.to_owned(), &AtomicBool::new(false), LIMIT)
    }

    #[test]
    fn command_output_is_bounded_and_its_errors_are_returned() {
        assert_eq!(run("echo 7; echo 8 >&2").unwrap(), "7\n");
        let long = run("head -c 100000000 /dev/zero; head -c 100000000 /dev/zero >&2").unwrap();
        assert_eq!(long.len(), OUT_BYTES_MAX);
        let error = run("echo why >&2; exit 3").unwrap_err();
        assert_eq!(error, "ended with exit code 3; it printed: why");
    }

    #[test]
    fn command_without_an_end_is_ended_by_its_limit_and_by_a_stop() {
        let endless = "cat /dev/zero";
        let soon = Duration::from_millis(100);
        let error = shell(endless.to_owned(), &AtomicBool::new(false), soon).unwrap_err();
        assert_eq!(error, "did not end within 0.1 s, and was ended");
        let error = shell(endless.to_owned(), &AtomicBool::new(true), LIMIT).unwrap_err();
        assert_eq!(error, "was ended with the load");
    }
}
