//! A short name for a text.

/// Eight hexadecimal digits that differ where texts do, but for one pair in four thousand million
/// (FNV-1a of 32 bits).
pub fn short_hash(text: &str) -> String {
    let hash = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    format!("{hash:08x}")
}

#[cfg(test)]
mod tests {
    use super::short_hash;

    #[test]
    fn hashes_are_as_published() {
        for (text, expected) in [("", "811c9dc5"), ("a", "e40c292c"), ("foobar", "bf9cf968")] {
            assert_eq!(short_hash(text), expected, "{text}");
        }
    }
}
