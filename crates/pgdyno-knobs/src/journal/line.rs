//! A line of a journal: its JSON, its number and a checksum, so that each line proves itself and its place.

use sha2::{Digest, Sha256};

/// Of SHA-256: enough against damage; against forgery stand the owner and the mode of the file.
const SUM_BYTES: usize = 8;
/// JSON has no raw tab in it.
const SEPARATOR: char = '\t';

/// What is known of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// Whole, and of this journal.
    Proven {
        /// From 1.
        number: usize,
        json: &'a str,
    },
    /// Without a checksum: an older format's, or damaged.
    Bare(&'a str),
    /// Not readable.
    Damaged,
}

/// A line with its end; `journal` tells this journal from all others.
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
