//! Which known name was meant by one that is not known.

/// Letters in which a typing error differs at most, in a long name.
const LETTERS: usize = 4;

/// The known name that differs by a typing error from the given one: in a third of its letters at
/// most. Of several the nearest, and of those the first by alphabet.
pub fn nearest_name<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = given.chars().count();
    let limit = LETTERS.min(letters / 3);
    known
        .into_iter()
        // Each letter that one has more is a difference. This ends the search for most names; facts
        // are looked up by the thousand.
        .filter(|name| name.chars().count().abs_diff(letters) <= limit)
        .map(|name| (strsim::damerau_levenshtein(name, given), name))
        .min()
        .filter(|(distance, _)| *distance <= limit)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_seen_through_and_other_names_are_not_suggested() {
        let known = ["shared_buffers", "wal_buffers", "work_mem", "größe"];
        let nearest = |given| nearest_name(given, known);
        assert_eq!(nearest("shared_bufers"), Some("shared_buffers"));
        assert_eq!(
            nearest("wrok_mem"),
            Some("work_mem"),
            "two letters that changed places"
        );
        assert_eq!(
            nearest("grösse"),
            Some("größe"),
            "letters, not bytes, are counted"
        );
        assert_eq!(nearest("max_wal_size"), None);
        assert_eq!(nearest("mem"), None);
        assert_eq!(nearest(""), None);
        assert_eq!(
            nearest_name("ab1", ["ab3", "ab2"]),
            Some("ab2"),
            "the first by alphabet"
        );
    }
}
