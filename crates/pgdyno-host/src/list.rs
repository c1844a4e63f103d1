//! Lists of numbers as the kernel writes them, of CPUs and of memory nodes.

use std::collections::BTreeSet;

/// The kernel's own limit of CPUs (CONFIG_NR_CPUS); it has fewer memory nodes.
const NUMBERS_MAX: u32 = 8192;

/// The numbers of a list such as "0-3,8"; none of an empty one, `None` where it is no such list or
/// has a number that no kernel has.
pub fn numbers_of_list(text: &str) -> Option<BTreeSet<u32>> {
    let text = text.trim();
    let mut all = BTreeSet::new();
    if text.is_empty() {
        return Some(all);
    }
    let number = |text: &str| {
        let number = text.trim().parse::<u32>().ok();
        number.filter(|number| *number < NUMBERS_MAX)
    };
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_are_numbers() {
        let check = |text, expected: Option<&[u32]>| {
            let found = numbers_of_list(text).map(|found| found.into_iter().collect::<Vec<_>>());
            assert_eq!(found.as_deref(), expected, "{text:?}");
        };
        check("0-3,8", Some(&[0, 1, 2, 3, 8]));
        check("0-2, 1,\n", None);
        check(" 0-2, 1\n", Some(&[0, 1, 2]));
        check("", Some(&[]));
        check("3-0", None);
        check("0-4000000000", None);
        check("-1", None);
        check("none", None);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,40}", list in "[0-9,-]{0,40}") {
            let _ = (numbers_of_list(&text), numbers_of_list(&list));
        }
    }
}
