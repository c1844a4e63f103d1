//! Text with styling of our own. Marks for it are put in by this type alone: in any other text they
//! are made visible, as what a terminal obeys is.

use std::fmt;
use std::ops::AddAssign;

/// Marks that begin and end our own styling inside a text. They are noncharacters, which Unicode
/// keeps for use inside a program; on the way out they become one of these sequences on a terminal,
/// and nothing elsewhere.
const MARKS: [(char, &str); 4] = [
    ('\u{fdd0}', "\u{1b}[0m"),
    ('\u{fdd1}', "\u{1b}[1;31m"),
    ('\u{fdd2}', "\u{1b}[1;36m"),
    ('\u{fdd3}', "\u{1b}[1;33m"),
];

/// Styles of the program's own texts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Style {
    Error = 1,
    Hint = 2,
    Warning = 3,
}

/// A text that is styled in part where it gets to a terminal with colours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Styled(String);

pub(super) fn is_mark(c: char) -> bool {
    MARKS.iter().any(|(mark, _)| *mark == c)
}

impl Styled {
    /// A styled word and what follows on it, without styles.
    pub(crate) fn beginning(style: Style, word: &str, rest: fmt::Arguments<'_>) -> Styled {
        let mut text = Styled::default();
        text.push_styled(style, word);
        text.push_str(&format!(" {rest}"));
        text
    }

    /// Appends a text without styles: marks in it are not ours.
    pub(crate) fn push_str(&mut self, text: &str) {
        for c in text.chars() {
            match is_mark(c) {
                true => self.0 += &format!("\\u{:04x}", u32::from(c)),
                false => self.0.push(c),
            }
        }
    }

    /// Appends a text in a style.
    pub(crate) fn push_styled(&mut self, style: Style, text: &str) {
        self.0.push(MARKS[style as usize].0);
        self.push_str(text);
        self.0.push(MARKS[0].0);
    }

    /// Without blanks and blank lines at its end.
    pub(crate) fn trimmed(mut self) -> Styled {
        self.0.truncate(self.0.trim_end().len());
        self
    }

    /// Another text in its place that has only marks of this one.
    pub(super) fn map(&self, change: impl FnOnce(&str) -> String) -> Styled {
        Styled(change(&self.0))
    }

    /// With sequences of the terminal in place of the marks, or without any.
    pub(crate) fn shown(&self, has_colours: bool) -> String {
        let mut shown = self.0.clone();
        for (mark, sequence) in MARKS {
            shown = shown.replace(mark, if has_colours { sequence } else { "" });
        }
        shown
    }
}

impl AddAssign<&str> for Styled {
    fn add_assign(&mut self, text: &str) {
        self.push_str(text);
    }
}

impl fmt::Write for Styled {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push_str(text);
        Ok(())
    }
}
