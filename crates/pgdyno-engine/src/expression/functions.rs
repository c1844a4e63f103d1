//! Functions of pgbench's expressions that are more than arithmetic.

use crate::random::Stream;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoroshiro128StarStar;

/// FNV-1a over the eight bytes of `value`, the lowest first (source: Fowler, Noll, Vo; the seed is
/// mixed into the offset basis as pgbench does).
pub(crate) fn hash_fnv1a(value: i64, seed: i64) -> i64 {
    const PRIME: u64 = 0x100_0000_01b3;
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    let start = OFFSET_BASIS ^ seed.cast_unsigned();
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    value.to_le_bytes().into_iter().fold(start, mix).cast_signed()
}

/// MurmurHash2 for 64 bits over the eight bytes of `value` (source: A. Appleby, MurmurHash64A).
pub(crate) fn hash_murmur2(value: i64, seed: i64) -> i64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    const ROTATION: u32 = 47;
    const LENGTH_BYTES: u64 = 8;
    let mut key = value.cast_unsigned().wrapping_mul(MULTIPLIER);
    key ^= key >> ROTATION;
    key = key.wrapping_mul(MULTIPLIER);
    let mut hash = seed.cast_unsigned() ^ LENGTH_BYTES.wrapping_mul(MULTIPLIER);
    hash = (hash ^ key).wrapping_mul(MULTIPLIER);
    hash ^= hash >> ROTATION;
    hash = hash.wrapping_mul(MULTIPLIER);
    (hash ^ (hash >> ROTATION)).cast_signed()
}

/// Rounds of [`permute`].
const ROUNDS: u32 = 6;

/// Where `value` (modulo `size`) goes in a pseudorandom permutation of 0 to `size` - 1: the values
/// of pgbench's `permute` (since PostgreSQL 15). Each round mixes the lower and the upper half of
/// the range, as far as a power of two reaches, by an odd factor, an exclusive or and a rotation,
/// and shifts all.
pub(crate) fn permute(value: i64, size: i64, seed: i64) -> i64 {
    let size = size.cast_unsigned();
    if size < 2 {
        return 0;
    }
    let mut random = Xoroshiro128StarStar::seed_from_u64(seed.cast_unsigned());
    let bits = size.ilog2();
    let mask = (1_u64 << bits) - 1;
    // The remainder is taken without the sign.
    let mut at = value.cast_unsigned() % size;
    let mix = |half: u64, random: &mut Xoroshiro128StarStar| {
        let factor = (random.next_u64() & mask) | 1;
        let flips = random.next_u64() & mask;
        if half > mask {
            return half;
        }
        let mixed = (half.wrapping_mul(factor) ^ flips) & mask;
        ((mixed << 1) & mask) | (mixed >> (bits - 1))
    };
    for _ in 0..ROUNDS {
        at = mix(at, &mut random);
        at = size - 1 - mix(size - 1 - at, &mut random);
        // Both are below 2^63.
        at = (at + below(&mut random, size)) % size;
    }
    at.cast_signed()
}

/// Uniform below `size`: the highest bits that are needed, drawn until they fit.
fn below(random: &mut Xoroshiro128StarStar, size: u64) -> u64 {
    let highest = size - 1;
    let shift = 63 - highest.max(1).ilog2();
    loop {
        let drawn = random.next_u64() >> shift;
        if drawn <= highest {
            return drawn;
        }
    }
}

/// The share of a range of `count` numbers that is below a point of the unit interval.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a position in a range, as exact as a double is"
)]
fn position(low: i64, high: i64, unit: f64) -> i64 {
    let count = (high - low) as f64 + 1.0;
    low.saturating_add((count * unit) as i64).min(high)
}

/// A normal distribution cut at `parameter` standard deviations on both sides, laid over the range;
/// `parameter` is at least 2 (source: PostgreSQL documentation, pgbench, "random_gaussian").
pub(crate) fn random_gaussian(stream: &mut Stream, low: i64, high: i64, parameter: f64) -> i64 {
    loop {
        // Box and Muller's transform.
        let radius = (-2.0 * stream.open_unit().ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * stream.open_unit()).sin();
        if normal >= -parameter && normal < parameter {
            return position(low, high, (normal + parameter) / (2.0 * parameter));
        }
    }
}

/// An exponential distribution cut at `parameter`, laid over the range (source: as above,
/// "random_exponential").
pub(crate) fn random_exponential(stream: &mut Stream, low: i64, high: i64, parameter: f64) -> i64 {
    let cut = (-parameter).exp();
    let drawn = -(cut + (1.0 - cut) * stream.open_unit()).ln() / parameter;
    position(low, high, drawn)
}

/// A bounded Zipfian distribution with an exponent between 1.001 and 1000, by rejection (source: L.
/// Devroye, "Non-Uniform Random Variate Generation", 1986, page 550).
pub(crate) fn random_zipfian(stream: &mut Stream, low: i64, high: i64, exponent: f64) -> i64 {
    #[expect(clippy::cast_precision_loss, reason = "a count of numbers")]
    let count = (high - low) as f64 + 1.0;
    if count <= 1.0 {
        return low;
    }
    let b = (exponent - 1.0).exp2();
    loop {
        let x = stream.open_unit().powf(-1.0 / (exponent - 1.0)).floor();
        let t = (1.0 + 1.0 / x).powf(exponent - 1.0);
        if x <= count && stream.open_unit() * x * (t - 1.0) / (b - 1.0) <= t / b {
            #[expect(clippy::cast_possible_truncation, reason = "at most the count")]
            return low.saturating_add(x as i64 - 1).min(high);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    #[test]
    fn a_permutation_holds_each_number_once() {
        for size in [1_i64, 2, 3, 7, 64, 100, 1000] {
            let mut seen: Vec<i64> = (0..size).map(|i| permute(i, size, 42)).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..size).collect::<Vec<_>>());
        }
        let largest = permute(i64::MAX, i64::MAX, -1);
        assert!((0..i64::MAX).contains(&largest));
    }

    #[test]
    fn distributions_fill_their_range_and_lean_to_their_side() {
        let mut stream = Stream::new(1, 0, Purpose::Transactions);
        let mut mean = |draw: fn(&mut Stream) -> i64| {
            let drawn: Vec<i64> = (0..20_000).map(|_| draw(&mut stream)).collect();
            assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&1), Some(&100)));
            drawn.iter().sum::<i64>() / 20_000
        };
        assert!((49..=52).contains(&mean(|s| random_gaussian(s, 1, 100, 2.5))));
        assert!((18..=23).contains(&mean(|s| random_exponential(s, 1, 100, 5.0))));
        assert!((15..=25).contains(&mean(|s| random_zipfian(s, 1, 100, 1.05))));
        let mut stream = Stream::new(1, 0, Purpose::Transactions);
        assert_eq!(random_zipfian(&mut stream, 5, 5, 2.0), 5);
        random_exponential(&mut stream, i64::MIN / 2, i64::MAX / 2, 1.0);
    }
}
