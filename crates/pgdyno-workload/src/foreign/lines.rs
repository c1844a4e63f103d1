//! Bytes of another program cut into lines, and the last lines kept for people. Both are limited.

use std::borrow::Cow;
use std::collections::VecDeque;

/// Bytes of a line that are read, where nothing else is said; the rest is dropped.
pub(super) const LINE_BYTES_MAX: usize = 4096;
/// So many lines are kept,
const LAST_LINES: usize = 20;
/// and so much of each.
const LAST_LINE_CHARS: usize = 400;

/// Cuts one stream into lines, at line feeds and carriage returns: progress is often printed over
/// and over in one line.
#[derive(Debug)]
pub(super) struct LineCutter {
    held: Vec<u8>,
    /// Bytes of a line that are read.
    most: usize,
}

impl Default for LineCutter {
    fn default() -> LineCutter {
        LineCutter::of(LINE_BYTES_MAX)
    }
}

impl LineCutter {
    /// For lines of so many bytes; the rest of a longer one is dropped.
    pub(super) fn of(most: usize) -> LineCutter {
        LineCutter {
            held: Vec::new(),
            most,
        }
    }

    /// Takes bytes as they come and gives the lines that end in them; empty ones are skipped.
    pub(super) fn push(&mut self, bytes: &[u8], on_line: &mut dyn FnMut(&str)) {
        for piece in bytes.split_inclusive(|&byte| is_end(byte)) {
            let (text, ends) = match piece.split_last() {
                Some((&last, text)) if is_end(last) => (text, true),
                _ => (piece, false),
            };
            let room = self.most - self.held.len();
            self.held.extend_from_slice(&text[..text.len().min(room)]);
            if ends {
                self.end(on_line);
            }
        }
    }

    /// Gives what was held of a line without an end.
    pub(super) fn end(&mut self, on_line: &mut dyn FnMut(&str)) {
        if !self.held.is_empty() {
            on_line(&String::from_utf8_lossy(&self.held));
            self.held.clear();
        }
    }
}

fn is_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// The last lines that a program said, without the password.
#[derive(Debug, Default)]
pub(super) struct LastLines {
    lines: VecDeque<String>,
    secret: Option<String>,
}

impl LastLines {
    /// `secret` is never kept.
    pub(super) fn without(secret: Option<String>) -> LastLines {
        LastLines {
            lines: VecDeque::with_capacity(LAST_LINES),
            secret: secret.filter(|secret| !secret.is_empty()),
        }
    }

    /// A line as people may see it.
    pub(super) fn shown(&self, line: &str) -> String {
        let clean = match &self.secret {
            Some(secret) => Cow::Owned(line.replace(secret, "***")),
            None => Cow::Borrowed(line),
        };
        let printable = clean.chars().map(|c| if c.is_control() { ' ' } else { c });
        printable.take(LAST_LINE_CHARS).collect()
    }

    pub(super) fn keep(&mut self, line: &str) {
        if self.lines.len() == LAST_LINES {
            self.lines.pop_front();
        }
        let line = self.shown(line);
        self.lines.push_back(line);
    }

    pub(super) fn into_vec(self) -> Vec<String> {
        self.lines.into()
    }
}
