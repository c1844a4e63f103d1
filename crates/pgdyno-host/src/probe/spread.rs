//! Times of one thing done many times over.

use serde::Serialize;
use std::time::Duration;

/// At most so many times are kept, for memory's sake; a measurement ends with them.
pub(super) const TIMES_MAX: usize = 1_000_000;

/// How long one thing took, done many times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Number of times that it was done.
    pub count: u64,
    /// Arithmetic mean of the times.
    pub mean_us: f64,
    /// Median of the times.
    pub p50_us: f64,
    /// 99th percentile: one time in a hundred is longer.
    pub p99_us: f64,
    /// Longest of the times.
    pub max_us: f64,
}

impl Spread {
    /// Of times in nanoseconds, by nearest rank; `None` without any.
    #[expect(clippy::cast_precision_loss, reason = "times of a few seconds")]
    pub fn of(mut times_ns: Vec<u64>) -> Option<Spread> {
        times_ns.sort_unstable();
        let count = times_ns.len();
        let us = |ns: u64| ns as f64 / 1e3;
        // The smallest of them that at least this share does not exceed.
        let rank = |percent: usize| (count * percent).div_ceil(100).saturating_sub(1);
        let at = |percent: usize| times_ns.get(rank(percent)).copied().map(us);
        let sum: u64 = times_ns.iter().sum();
        Some(Spread {
            count: count as u64,
            mean_us: us(sum) / count as f64,
            p50_us: at(50)?,
            p99_us: at(99)?,
            max_us: at(100)?,
        })
    }

    /// How often it can be done in a second, one after the other.
    pub fn rate_per_s(&self) -> f64 {
        1e6 / self.mean_us.max(f64::MIN_POSITIVE)
    }
}

pub(super) fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn ranks_are_of_values_that_occurred() {
        let spread = Spread::of((1..=200).rev().map(|n| n * 1000).collect()).unwrap();
        assert_eq!((spread.count, spread.mean_us), (200, 100.5));
        assert_eq!(
            (spread.p50_us, spread.p99_us, spread.max_us),
            (100.0, 198.0, 200.0)
        );
        let one = Spread::of(vec![7_000]).unwrap();
        assert_eq!((one.p50_us, one.p99_us, one.max_us), (7.0, 7.0, 7.0));
        assert_eq!(Spread::of(Vec::new()), None);
    }
}
