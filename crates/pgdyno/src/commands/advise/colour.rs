//! Colours of a page on a terminal. They only repeat what a word says.

use crate::context::variable;
use pgdyno_knobs::Severity;
use std::io::{IsTerminal, stdout};

/// Marks that begin and end a colour inside a text, and what they are on a terminal. They are noncharacters, which Unicode keeps for
/// use inside a program.
const MARKS: [(char, &str); 4] = [
    (END, "\u{1b}[0m"),
    ('\u{fdd1}', "\u{1b}[1;31m"),
    ('\u{fdd2}', "\u{1b}[1;36m"),
    ('\u{fdd3}', "\u{1b}[1;33m"),
];
const END: char = '\u{fdd0}';

/// A word in the colour of a severity.
pub(super) fn of(severity: Severity, word: &str) -> String {
    let mark = match severity {
        Severity::Severe => '\u{fdd1}',
        Severity::Advice => '\u{fdd3}',
        Severity::Hint => '\u{fdd2}',
    };
    format!("{mark}{word}{END}")
}

/// The text as it goes out: with colours, or without their marks.
pub(super) fn resolved(text: &str, has_colour: bool) -> String {
    MARKS.iter().fold(text.to_owned(), |text, (mark, sequence)| {
        text.replace(*mark, if has_colour { sequence } else { "" })
    })
}

/// Whether standard output is a terminal that shows colours, and nobody has switched them off.
pub(super) fn is_wanted() -> bool {
    stdout().is_terminal()
        && variable("NO_COLOR").is_none()
        && variable("TERM").is_some_and(|term| term != "dumb")
}
