//! What a target takes out of its bytes.

use std::borrow::Cow;

/// A first byte that chooses, and the rest; zero of none.
pub(super) fn choice(bytes: &[u8]) -> (u8, &[u8]) {
    bytes
        .split_first()
        .map_or((0, bytes), |(first, rest)| (*first, rest))
}

/// Two parts, around the first byte 0xff, which no text of UTF-8 has.
pub(super) fn halves(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|&byte| byte == 0xff) {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &[]),
    }
}

/// A text, with U+FFFD for what is none.
pub(super) fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
