//! One seed, a stream per client and purpose.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

/// What a stream is used for; each purpose has its own, so that a new one does not shift the
/// others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Keys and amounts of transactions.
    Transactions = 1,
    /// Instants at which transactions arrive.
    Arrivals = 2,
    /// Rows of the data set.
    Data = 3,
    /// The order in which servers take turns.
    Turns = 4,
}

/// The seed of one stream of a load: the load's seed, the client's number and the purpose, mixed by
/// SplitMix64.
pub fn stream_seed(seed: u64, client: u64, purpose: Purpose) -> u64 {
    let mut mixed = seed;
    for part in [client, purpose as u64] {
        mixed = SplitMix64::seed_from_u64(mixed ^ part.wrapping_mul(0x9E37_79B9_7F4A_7C15)).next_u64();
    }
    mixed
}

/// Uniform integers for one client.
#[derive(Debug, Clone)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The one of a client for a purpose.
    pub fn new(seed: u64, client: u64, purpose: Purpose) -> Stream {
        Stream(Xoshiro256PlusPlus::seed_from_u64(stream_seed(
            seed, client, purpose,
        )))
    }

    /// Uniform in (0, 1], in steps of 2^-53.
    pub fn open_unit(&mut self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit exactly")]
        let unit = ((self.0.next_u64() >> 11) + 1) as f64 * (0.5_f64).powi(53);
        unit
    }

    /// Uniform in `low..=high`, which are at most 2^63 - 1 apart, by widening multiplication with
    /// rejection (source: D. Lemire, "Fast random integer generation in an interval", 2019).
    pub fn between_i64(&mut self, low: i64, high: i64) -> i64 {
        let range = high.wrapping_sub(low).cast_unsigned() + 1;
        let mut product = u128::from(self.0.next_u64()) * u128::from(range);
        #[expect(clippy::cast_possible_truncation, reason = "the lower half is wanted")]
        if (product as u64) < range {
            let least = range.wrapping_neg() % range;
            while (product as u64) < least {
                product = u128::from(self.0.next_u64()) * u128::from(range);
            }
        }
        let offset = (product >> 64) as u64;
        low.wrapping_add(offset.cast_signed())
    }

    /// Appends groups of eleven random digits, with hyphens between them: the texts of sysbench's
    /// tables.
    pub fn push_digits(&mut self, text: &mut Vec<u8>, groups: u16) {
        const DIGITS: usize = 11;
        for group in 0..groups {
            if group > 0 {
                text.push(b'-');
            }
            let mut rest = self.0.next_u64();
            for _ in 0..DIGITS {
                text.push(b'0' + (rest % 10) as u8);
                rest /= 10;
            }
        }
    }

    /// The next 64 bits of the stream.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number of `0..end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.between_i64(0, end.cast_signed() - 1).cast_unsigned()
    }

    /// A uniform number of `low..=high`.
    pub fn between(&mut self, low: i32, high: i32) -> i32 {
        #[expect(clippy::cast_possible_truncation, reason = "between two of four bytes")]
        let value = self.between_i64(low.into(), high.into()) as i32;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fill_the_range_and_stay_inside() {
        let mut stream = Stream::new(1, 0, Purpose::Transactions);
        let mut seen = [0_u32; 11];
        for _ in 0..11_000 {
            let value = stream.between(-5, 5);
            seen[usize::try_from(value + 5).unwrap()] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
        assert_eq!(stream.between(7, 7), 7);
        stream.between(i32::MIN, i32::MAX);
    }

    #[test]
    fn clients_have_streams_of_their_own_and_seeds_repeat() {
        let draw = |seed, client| {
            let mut stream = Stream::new(seed, client, Purpose::Transactions);
            [stream.between(1, 1_000_000), stream.between(1, 1_000_000)]
        };
        assert_eq!(draw(3, 4), draw(3, 4));
        assert_ne!(draw(3, 4), draw(3, 5));
        assert_ne!(draw(3, 4), draw(4, 4));
    }
}
