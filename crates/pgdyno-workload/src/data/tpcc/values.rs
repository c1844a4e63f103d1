//! The random values of TPC-C: rows of the data and parameters of transactions draw from here
//! (TPC-C 5.11, clauses 2.1.5, 2.1.6 and 4.3.2).

use pgdyno_engine::random::Stream;

/// Number of districts of a warehouse.
pub(crate) const DISTRICTS: i32 = 10;
/// Customers of a district, and orders in it at the beginning.
pub(crate) const CUSTOMERS: i32 = 3_000;
/// Items, and stock records of a warehouse.
pub(crate) const ITEMS: i32 = 100_000;

/// The constant C of NURand for last names when the data is made. Any in 0..=255.
pub(crate) const C_LAST_LOAD: i32 = 157;
/// The same for transactions: clause 2.1.6.1 needs 65 to 119 between the two, and neither 96
/// nor 112.
pub(crate) const C_LAST_RUN: i32 = 244;
/// The constant C for customers' numbers. Any in 0..=1023.
pub(crate) const C_ID: i32 = 517;
/// The constant C for items' numbers. Any in 0..=8191.
pub(crate) const C_ITEM: i32 = 4_271;
/// A of NURand for last names.
pub(crate) const A_LAST: i32 = 255;
/// A of NURand for customers' numbers.
pub(crate) const A_ID: i32 = 1_023;
/// A of NURand for items' numbers.
pub(crate) const A_ITEM: i32 = 8_191;

const _: () = {
    let delta = (C_LAST_RUN - C_LAST_LOAD).abs();
    assert!(delta >= 65 && delta <= 119 && delta != 96 && delta != 112);
};

/// Non-uniform in `x..=y` (clause 2.1.6): some values come far more often than others, and `c` says
/// which.
pub(crate) fn nurand(stream: &mut Stream, a: i32, x: i32, y: i32, c: i32) -> i32 {
    let mixed = stream.between(0, a) | stream.between(x, y);
    (mixed + c) % (y - x + 1) + x
}

/// Appends the last name of a number in 0..=999: a syllable per decimal place (clause 4.3.2.3).
pub(crate) fn last_name(number: i32, name: &mut Vec<u8>) {
    const SYLLABLES: [&str; 10] = [
        "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
    ];
    for place in [number / 100, number / 10, number] {
        let syllable = usize::try_from(place % 10).map_or("", |digit| SYLLABLES[digit]);
        name.extend_from_slice(syllable.as_bytes());
    }
}

/// Letters, digits and two more (clause 4.3.2.2 asks for letters and digits at least): six bits
/// draw one evenly.
const CHARACTERS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz .";

/// Appends so many random characters.
pub(crate) fn characters(stream: &mut Stream, length: usize, text: &mut Vec<u8>) {
    /// Characters per draw of 64 bits.
    const PER_DRAW: usize = 10;
    let start = text.len();
    text.resize(start + length, 0);
    for chunk in text[start..].chunks_mut(PER_DRAW) {
        let mut bits = stream.bits();
        for place in chunk {
            *place = CHARACTERS[(bits & 63) as usize];
            bits >>= 6;
        }
    }
}

/// Appends random characters, of a length that is random in `low..=high`.
pub(crate) fn string(stream: &mut Stream, low: i32, high: i32, text: &mut Vec<u8>) {
    let length = usize::try_from(stream.between(low, high)).unwrap_or(0);
    characters(stream, length, text);
}

/// Appends so many random digits.
pub(crate) fn digits(stream: &mut Stream, length: usize, text: &mut Vec<u8>) {
    /// Digits per draw: 10^16 is far below 2^64, so all come alike.
    const PER_DRAW: usize = 16;
    let start = text.len();
    text.resize(start + length, 0);
    for chunk in text[start..].chunks_mut(PER_DRAW) {
        let mut number = stream.below(10_u64.pow(16));
        for place in chunk {
            *place = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }
}

/// Appends a string of 26 to 50 characters; one in ten contains the word ORIGINAL (clause 4.3.3.1).
pub(crate) fn original_or_not(stream: &mut Stream, text: &mut Vec<u8>) {
    const WORD: &[u8] = b"ORIGINAL";
    let start = text.len();
    string(stream, 26, 50, text);
    if stream.between(1, 10) == 1 {
        let last = i32::try_from(text.len() - start - WORD.len()).unwrap_or(0);
        let at = start + usize::try_from(stream.between(0, last)).unwrap_or(0);
        text[at..at + WORD.len()].copy_from_slice(WORD);
    }
}

/// Customers in random order: each once, for a district's orders.
pub(crate) fn permutation(stream: &mut Stream) -> Vec<i32> {
    let mut all: Vec<i32> = (1..=CUSTOMERS).collect();
    for last in (1..all.len()).rev() {
        let with = stream.between(0, i32::try_from(last).unwrap_or(0));
        all.swap(last, usize::try_from(with).unwrap_or(0));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_engine::random::Purpose;
    use proptest::prelude::*;

    fn stream() -> Stream {
        Stream::new(7, 0, Purpose::Data)
    }

    #[test]
    fn last_names_are_syllables_of_the_decimal_places() {
        let name = |number| {
            let mut name = Vec::new();
            last_name(number, &mut name);
            String::from_utf8(name).unwrap()
        };
        assert_eq!(name(0), "BARBARBAR");
        assert_eq!(name(371), "PRICALLYOUGHT");
        assert_eq!(name(999), "EINGEINGEING");
        let all: std::collections::BTreeSet<String> = (0..1000).map(name).collect();
        assert_eq!(all.len(), 1000);
        assert_eq!(all.iter().map(String::len).max(), Some(15));
    }

    proptest! {
        #[test]
        fn nurand_stays_within_its_bounds(seed: u64, x in 0..10, span in 0..200_000, c in 0..8192) {
            let mut stream = Stream::new(seed, 0, Purpose::Data);
            for a in [A_LAST, A_ID, A_ITEM] {
                let value = nurand(&mut stream, a, x, x + span, c);
                prop_assert!((x..=x + span).contains(&value));
            }
        }
    }

    #[test]
    fn nurand_is_uneven_and_spread() {
        let mut stream = stream();
        let mut seen = vec![0_u32; 1000];
        for _ in 0..200_000 {
            seen[usize::try_from(nurand(&mut stream, A_LAST, 0, 999, C_LAST_LOAD)).unwrap()] += 1;
        }
        let most = seen.iter().max().unwrap();
        let reached = seen.iter().filter(|&&n| n > 0).count();
        assert!(*most > 10 * 200 && reached > 800, "{most} {reached}");
    }

    #[test]
    fn strings_have_their_lengths_and_characters() {
        let mut stream = stream();
        let (mut originals, mut lengths) = (0, std::collections::BTreeSet::new());
        for _ in 0..10_000 {
            let mut text = Vec::new();
            original_or_not(&mut stream, &mut text);
            lengths.insert(text.len());
            originals += u32::from(text.windows(8).any(|part| part == b"ORIGINAL"));
            assert!(text.iter().all(|c| CHARACTERS.contains(c)));
        }
        assert!((800..1200).contains(&originals), "{originals}");
        assert_eq!((lengths.first(), lengths.last()), (Some(&26), Some(&50)));
        let mut number = Vec::new();
        digits(&mut stream, 37, &mut number);
        assert!(number.len() == 37 && number.iter().all(u8::is_ascii_digit));
    }

    #[test]
    fn a_permutation_has_each_customer_once() {
        let mut all = permutation(&mut stream());
        assert_ne!(all[..10], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        all.sort_unstable();
        assert_eq!(all, (1..=CUSTOMERS).collect::<Vec<_>>());
    }
}
