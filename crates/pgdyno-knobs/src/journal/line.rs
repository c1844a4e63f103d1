//! A line of a journal: its JSON, its number and a checksum, so that each line proves itself and
//! its place.

use sha2::{Digest, Sha256};

/// Of SHA-256: enough against damage; the owner and the mode of the file protect against forgery.
const SUM_BYTES: usize = 8;
/// JSON has no raw tab in it.
const SEPARATOR: char = '\t';

/// What is known of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// Whole, and of this journal.
    Proven {
        /// Number of the line, from 1.
        number: usize,
        json: &'a str,
    },
    /// Without a checksum: an older format's, or damaged.
    Bare(&'a str),
    /// A line that is not text, or whose checksum is wrong.
    Damaged,
}

/// A line with its end; `journal` identifies this journal.
pub(super) fn sealed(journal: &str, number: usize, json: &str) -> String {
    format!(
        "{json}{SEPARATOR}{number}{SEPARATOR}{}\n",
        sum(journal, number, json)
    )
}

/// Reads a line without its end.
pub(super) fn read<'a>(journal: &str, bytes: &'a [u8]) -> Line<'a> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Line::Damaged;
    };
    let mut fields = text.rsplitn(3, SEPARATOR);
    let (Some(found), Some(number), Some(json)) = (fields.next(), fields.next(), fields.next()) else {
        return Line::Bare(text);
    };
    match number.parse() {
        Ok(number) if number > 0 && found == sum(journal, number, json) => Line::Proven { number, json },
        _ => Line::Damaged,
    }
}

/// The JSON of a line, whether or not its checksum holds.
pub(super) fn json_of(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == b'\t').next().unwrap_or_default()
}

fn sum(journal: &str, number: usize, json: &str) -> String {
    let hash = Sha256::digest(format!("{journal}\n{number}\n{json}"));
    hex(&hash[..SUM_BYTES])
}

/// Begins the line that counts the others. JSON does not begin so.
const COUNT: char = '#';
/// Digits of a count; a journal has far fewer lines.
const COUNT_DIGITS: usize = 10;
const SLOTS: usize = 2;
const SLOT_BYTES: usize = COUNT_DIGITS + 1 + 2 * SUM_BYTES;

/// The line that counts the others, when there are so many. It has one length for ever and is
/// written over in place: two slots take turns, so that one of them is whole however a write ends.
pub(super) fn count_line(journal: &str, number: usize) -> String {
    let slot = slot(journal, number);
    format!("{COUNT}{slot}{SEPARATOR}{slot}\n")
}

/// What is written over a part of that line after line `number`, and where from its beginning.
pub(super) fn count_update(journal: &str, number: usize) -> (u64, String) {
    let at = COUNT.len_utf8() + number % SLOTS * (SLOT_BYTES + SEPARATOR.len_utf8());
    (at as u64, slot(journal, number))
}

fn slot(journal: &str, number: usize) -> String {
    format!(
        "{number:0COUNT_DIGITS$}-{}",
        sum(journal, number, &COUNT.to_string())
    )
}

/// Whether a line is the one that counts the others.
pub(super) fn is_count(bytes: &[u8]) -> bool {
    bytes.first() == Some(&(COUNT as u8))
}

/// So many lines were on disk at least, by that line without its end. `None` where it is damaged.
pub(super) fn counted(journal: &str, bytes: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(bytes).ok()?.strip_prefix(COUNT)?;
    let slots: Vec<&str> = text.split(SEPARATOR).collect();
    let proven = |text: &&str| {
        let number = text.split('-').next()?.parse().ok()?;
        (**text == slot(journal, number)).then_some(number)
    };
    let whole: Vec<usize> = slots.iter().filter_map(proven).collect();
    match (slots.len(), whole.as_slice()) {
        (SLOTS, [one, two]) => Some(*one.max(two)),
        // The other one was about to be the next number, whose line is on disk before it.
        (SLOTS, [one]) => Some(one + 1),
        _ => None,
    }
}

/// A short name for a text.
pub(super) fn short_hash(text: &[u8]) -> String {
    hex(&Sha256::digest(text)[..SUM_BYTES])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_is_known_at_any_byte_of_its_update() {
        let mut line = count_line("1-2", 1).into_bytes();
        for number in 2..6 {
            let (at, slot) = count_update("1-2", number);
            let at = usize::try_from(at).unwrap();
            for written in 0..=slot.len() {
                line[at..at + written].copy_from_slice(&slot.as_bytes()[..written]);
                let found = counted("1-2", &line[..line.len() - 1]).unwrap();
                assert!(
                    (number - 1..=number).contains(&found),
                    "{number}, {written}: {found}"
                );
            }
            assert_eq!(counted("1-2", &line[..line.len() - 1]), Some(number));
        }
        assert_eq!(counted("1-3", &line[..line.len() - 1]), None, "another journal's");
        assert_eq!(counted("1-2", b"#"), None);
    }

    #[test]
    fn line_with_any_byte_changed_is_not_proven() {
        let line = sealed("1-2", 3, "\"closed\"");
        let bytes = line.trim_end().as_bytes();
        let whole = Line::Proven {
            number: 3,
            json: "\"closed\"",
        };
        assert_eq!(read("1-2", bytes), whole);
        assert_eq!(read("1-3", bytes), Line::Damaged, "another journal's");
        for at in 0..bytes.len() {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 1;
            assert_ne!(read("1-2", &damaged), whole, "byte {at}");
            assert!(!matches!(read("1-2", &damaged), Line::Proven { .. }), "byte {at}");
        }
        assert_eq!(read("1-2", b"\"closed\""), Line::Bare("\"closed\""));
    }
}
