//! Chance for tests, from a seed.

use rand_core::Rng;
pub(crate) use rand_core::SeedableRng;
pub(crate) use rand_xoshiro::Xoshiro256PlusPlus;

/// A normal value, near enough: a sum of twelve uniform ones.
pub(crate) fn normal(random: &mut Xoshiro256PlusPlus) -> f64 {
    (0..12)
        .map(|_| f64::from(random.next_u32()) / 2_f64.powi(32))
        .sum::<f64>()
        - 6.0
}
