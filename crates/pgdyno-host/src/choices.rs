//! Files of the kernel that list all choices, with the present one in brackets.

/// The words of such a file, without brackets.
pub fn choices(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
        .map(|word| in_brackets(word).unwrap_or(word))
}

/// The word in brackets, which are round in the scheduler's files and square elsewhere: "none
/// [mq-deadline] kyber".
pub fn chosen(text: &str) -> Option<&str> {
    text.split_whitespace().find_map(in_brackets)
}

fn in_brackets(word: &str) -> Option<&str> {
    let within = |open, close| word.strip_prefix(open)?.strip_suffix(close);
    within('[', ']').or_else(|| within('(', ')'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_in_brackets_of_either_kind_is_chosen() {
        for (text, expected) in [
            ("none [mq-deadline] kyber\n", Some("mq-deadline")),
            ("none (voluntary) full \n", Some("voluntary")),
            ("none\n", None),
            ("[a (b)", Some("b")),
            ("", None),
        ] {
            assert_eq!(chosen(text), expected, "{text}");
        }
        let words: Vec<&str> = choices("none (lazy) full").collect();
        assert_eq!(words, ["none", "lazy", "full"]);
    }
}
