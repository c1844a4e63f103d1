//! Why a server did not start, from the end of its log, of which a limited part is read.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// Bytes of the log that are read, from its end.
const READ_MAX: u64 = 64 * 1024;
/// Lines that are shown where none of them is FATAL or PANIC, and characters of each.
const LINES: usize = 5;
const LINE_CHARS: usize = 300;
/// Messages to a session whose server is stopped or started: no reason of the server's.
const SESSIONS: [&str; 4] = [
    "terminating connection",
    "the database system is shutting down",
    "the database system is starting up",
    "the database system is not yet accepting connections",
];
const MARKS: [&str; 4] = ["FATAL:", "PANIC:", "DETAIL:", "HINT:"];

/// Why the server did not start, from what it wrote behind the first `from` bytes: the last FATAL
/// or PANIC with its detail and hint, or the last lines. `None` where it wrote nothing.
pub(crate) fn reason(log: &File, from: u64) -> Option<String> {
    last_lines(&since(log, from)?)
}

/// What the log holds behind the first `from` bytes, of which the end is read.
pub(crate) fn since(mut log: &File, from: u64) -> Option<String> {
    let length = log.metadata().ok()?.len();
    // A log that became shorter was begun again.
    let from = if from > length { 0 } else { from };
    log.seek(SeekFrom::Start(from.max(length.saturating_sub(READ_MAX))))
        .ok()?;
    let mut text = Vec::new();
    log.take(READ_MAX).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Whether a text says why a server ended.
pub(crate) fn has_reason(text: &str) -> bool {
    text.lines().any(|line| is_end(&line))
}

fn is_end(line: &&str) -> bool {
    let is_of_session = SESSIONS.iter().any(|message| line.contains(message));
    line.contains("PANIC:") || line.contains("FATAL:") && !is_of_session
}

/// The same of a text.
pub(crate) fn last_lines(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let shown: Vec<String> = match lines.iter().rposition(is_end) {
        Some(at) => {
            let more = lines[at + 1..]
                .iter()
                .filter(|line| line.contains("DETAIL:") || line.contains("HINT:"));
            std::iter::once(&lines[at])
                .chain(more)
                .map(|line| plain(line))
                .collect()
        }
        None => {
            let last = &lines[lines.len().saturating_sub(LINES)..];
            last.iter().map(|line| brief(line.trim())).collect()
        }
    };
    (!shown.is_empty()).then(|| shown.join("; "))
}

/// A line without what is before its message.
fn plain(line: &str) -> String {
    let message = MARKS.iter().fold(line, |line, mark| {
        line.split_once(mark).map_or(line, |(_, rest)| rest.trim())
    });
    brief(message)
}

fn brief(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS) {
        Some((at, _)) => format!("{}...", &line[..at]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_reason_of_a_failed_start_is_the_last_fatal_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let old = "x FATAL:  an old one\n";
        let new = "t [1] LOG:  starting\nt [1] FATAL:  could not map memory\nt [1] DETAIL:  12 bytes\n\
                   t [1] HINT:  more huge pages\nt [1] LOG:  shut down\n";
        fs::write(&path, format!("{old}{new}")).unwrap();
        let log = File::open(&path).unwrap();
        let found = reason(&log, old.len() as u64).unwrap();
        assert_eq!(found, "could not map memory; 12 bytes; more huge pages");
        assert_eq!(reason(&log, (old.len() + new.len()) as u64), None);
    }

    #[test]
    fn sessions_that_a_stop_ends_are_no_reason() {
        let stop = "t [2] FATAL:  terminating connection due to administrator command\nt [1] LOG:  database system is shut down\n";
        let again = "t [3] FATAL:  the database system is shutting down\n";
        assert!(!has_reason(&format!("{stop}{again}")));
        let text = format!("t [1] FATAL:  could not load pg_hba.conf\n{stop}{again}");
        assert!(has_reason(&text));
        assert_eq!(last_lines(&text).unwrap(), "could not load pg_hba.conf");
    }

    #[test]
    fn without_a_fatal_line_the_last_lines_are_the_reason() {
        let long = format!("{}\nlast {}\n", "line\n".repeat(100_000), "x".repeat(1000));
        let found = last_lines(&long).unwrap();
        assert!(found.starts_with("line; line; line; line; last xxx"), "{found}");
        assert!(found.len() < 400, "{}", found.len());
        assert_eq!(last_lines(" \n"), None);
    }
}
