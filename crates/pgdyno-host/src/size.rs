//! Sizes as people write them.

/// Bytes of "125M", "500MB", "512kB", "4096": powers of 1024, as everywhere in PostgreSQL and the
/// kernel; above zero.
pub fn size_bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("\"{text}\": expected a size, e.g. \"500MB\" or \"4G\"");
    let trimmed = text.trim();
    let digits = trimmed
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(trimmed.len());
    let shift = match trimmed[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" => 10,
        "m" | "mb" => 20,
        "g" | "gb" => 30,
        "t" | "tb" => 40,
        _ => return Err(wrong()),
    };
    trimmed[..digits]
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .filter(|&bytes| bytes > 0)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::size_bytes;

    #[test]
    fn sizes_are_read_with_their_units() {
        let check = |text: &str, expected: Option<u64>| assert_eq!(size_bytes(text).ok(), expected, "{text}");
        check("125M", Some(125 << 20));
        check(" 512kB ", Some(512 << 10));
        check("2 GB", Some(2 << 30));
        check("4096", Some(4096));
        check("0", None);
        check("1X", None);
        check("", None);
        check("\u{e9}", None);
        check("-1M", None);
        check("99999999999T", None);
    }
}
