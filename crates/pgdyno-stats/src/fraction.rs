//! Fractions of two-level designs: which columns they have, and which effects these cannot
//! distinguish.
//!
//! A column is the set of basic factors (a bit each) whose levels, added modulo 2, are its levels.
//! Effects whose sets differ by nothing are aliases (source: Box, Hunter & Hunter, *Statistics for
//! Experimenters*, the chapters on fractional factorial designs).

use std::collections::BTreeMap;

/// Most treatments of a fraction.
pub(crate) const LARGEST: usize = 64;

/// Generators with more than resolution IV, or with fewer aliases than the general rule gives:
/// (basic factors, sets of letters, one for each further factor). Source: Box, Hunter & Hunter, the
/// table of minimum aberration 2^(k-p) designs.
const BETTER: &[(u32, &[&str])] = &[
    (4, &["abcd"]),
    (5, &["abcde"]),
    (6, &["abcdef"]),
    (5, &["abcd", "abde"]),
    (5, &["abc", "abd", "bcde"]),
    (5, &["bcde", "acde", "abde", "abce"]),
    (5, &["abcd", "abce", "abde", "acde", "bcde"]),
    (6, &["abcd", "abef"]),
    (6, &["abcd", "acef", "cdef"]),
    (6, &["bcdf", "acdf", "abde", "abce"]),
];

/// The fewest treatments that keep main effects apart from interactions of two factors: twice the
/// factors, for in such a design each treatment has its mirror image.
pub(crate) fn fewest_treatments(factors: usize) -> usize {
    (2 * factors).next_power_of_two().max(4)
}

/// The columns of a fraction, basic factors first; `None` where there is none of resolution IV.
pub(crate) fn columns(factors: usize, treatments: usize) -> Option<Vec<u32>> {
    let basic = usize::try_from(treatments.trailing_zeros()).ok()?.min(factors);
    let further = factors - basic;
    let basic_bits = u32::try_from(basic).ok()?;
    let mut columns: Vec<u32> = (0..basic_bits).map(|bit| 1 << bit).collect();
    let known = BETTER
        .iter()
        .find(|(bits, words)| *bits == basic_bits && words.len() == further);
    if let Some((_, words)) = known {
        columns.extend(
            words
                .iter()
                .map(|word| word.bytes().map(|letter| 1 << (letter - b'a')).sum::<u32>()),
        );
        return Some(columns);
    }
    // An odd number of letters in each generator makes all words of the defining relation even: at
    // least four letters.
    let mut odd: Vec<u32> = (0..1_u32 << basic_bits)
        .filter(|word| word.count_ones() % 2 == 1 && word.count_ones() >= 3)
        .collect();
    odd.sort_by_key(|word| (word.count_ones(), *word));
    (odd.len() >= further).then(|| {
        columns.extend(&odd[..further]);
        columns
    })
}

/// The fewest columns whose sets cancel out; `None` for independent columns (all combinations).
pub(crate) fn resolution(columns: &[u32]) -> Option<usize> {
    /// Whether `left` columns from `from` on cancel `rest`.
    fn cancels(columns: &[u32], from: usize, left: usize, rest: u32) -> bool {
        if left == 0 {
            return rest == 0;
        }
        (from..columns.len()).any(|i| cancels(columns, i + 1, left - 1, rest ^ columns[i]))
    }
    let basic = columns.iter().filter(|column| column.count_ones() == 1).count();
    (basic < columns.len())
        .then(|| (3..=columns.len()).find(|&length| cancels(columns, 0, length, 0)))
        .flatten()
}

/// Sets of main effects and interactions of two factors that have the same column.
pub(crate) fn aliases(columns: &[u32]) -> Vec<Vec<Vec<usize>>> {
    let mut sets: BTreeMap<u32, Vec<Vec<usize>>> = BTreeMap::new();
    for (i, &column) in columns.iter().enumerate() {
        sets.entry(column).or_default().push(vec![i]);
    }
    for i in 0..columns.len() {
        for j in i + 1..columns.len() {
            sets.entry(columns[i] ^ columns[j]).or_default().push(vec![i, j]);
        }
    }
    let mut shared: Vec<Vec<Vec<usize>>> = sets.into_values().filter(|set| set.len() > 1).collect();
    shared.sort();
    shared
}
