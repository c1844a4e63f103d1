//! How many values determine a percentile, and between which ranks it is.

use crate::changepoint::effective_sample_size;
use crate::matrix::count;
use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal};

/// Bounds of a percentile as ranks among all values in ascending order, the smallest being 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankInterval {
    /// Rank of the lower bound; `None` where the sample is too small to have one.
    pub low_rank: Option<usize>,
    /// Rank of the upper bound; `None` likewise: the percentile may be above the largest value.
    pub high_rank: Option<usize>,
}

/// Values that are beyond a percentile that is known. With fewer the estimate is biased inwards:
/// the 99th percentile of 100 response times is 17 % too short on average, of 1,000 it is 2 %.
const BEYOND_MIN: f64 = 10.0;

/// Whether so many values determine a percentile (0 to 100): ten of them are beyond it. The largest
/// one, 100, is always known.
#[expect(clippy::cast_precision_loss, reason = "a count of transactions")]
pub fn knows_percentile(values: u64, percentile: f64) -> bool {
    // 1,000 values are to be enough for the 99th percentile, whatever is lost in the last digit.
    const LAST_DIGIT: f64 = 1e-9;
    values > 0
        && (percentile >= 100.0
            || (1.0 - percentile / 100.0) * values as f64 >= BEYOND_MIN * (1.0 - LAST_DIGIT))
}

/// What part of so many values is independent, as far as the share beyond a threshold goes: of
/// stretches of time, in their order, how many values are beyond it, and how many there are. Values
/// of one stretch have much in common, and so have neighbouring stretches. By the variance of the
/// ratio of two sums (source: Cochran, *Sampling Techniques*, the chapter on ratio estimators) with
/// [`effective_sample_size`] of the stretches. Above 0 and at most 1; 1 for less than two
/// stretches, and where none or all are beyond.
#[expect(clippy::cast_precision_loss, reason = "counts of transactions")]
pub fn independent_share(stretches: &[(u64, u64)]) -> f64 {
    let beyond: u64 = stretches.iter().map(|(beyond, _)| beyond).sum();
    let all: u64 = stretches.iter().map(|(_, all)| all).sum();
    let (n, share) = (all as f64, beyond as f64 / all.max(1) as f64);
    let residuals: Vec<f64> = stretches
        .iter()
        .map(|&(beyond, all)| beyond as f64 - share * all as f64)
        .collect();
    let Some(independent) = effective_sample_size(&residuals) else {
        return 1.0;
    };
    let length = count(residuals.len());
    let squares: f64 = residuals.iter().map(|residual| residual.powi(2)).sum();
    // Their mean is 0, and one degree of freedom was spent on it.
    let variance = length / (length - 1.0) * squares * length / independent;
    match variance > 0.0 {
        true => (share * (1.0 - share) * n / variance).min(1.0),
        false => 1.0,
    }
}

/// From this variance on the binomial distribution is taken for a normal one; the ranks then differ
/// by one at most.
const NORMAL_FROM: f64 = 1000.0;

/// The interval of the quantile `p` (0.99 for the 99th percentile) of `n` values, whatever their
/// distribution: the number of values below it is binomial (source: Conover, *Practical
/// Nonparametric Statistics*, the chapter on quantiles). `effective` is the number of independent
/// values that they amount to ([`effective_sample_size`](crate::effective_sample_size)); response
/// times of one second have much in common. Confidence is `confidence` or more. `None` where n is
/// 0, or p or the confidence not between 0 and 1.
pub fn percentile_interval(n: usize, p: f64, confidence: f64, effective: f64) -> Option<RankInterval> {
    let inside = |x: f64| x > 0.0 && x < 1.0;
    if n == 0 || !inside(p) || !inside(confidence) || effective.is_nan() {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and n"
    )]
    let m = effective.clamp(1.0, count(n)).floor() as usize;
    let tail = (1.0 - confidence) / 2.0;
    let below = |rank: usize| at_most(m, p, rank);
    // The largest rank below which the quantile is with probability `tail` at most, and the
    // smallest above which it is.
    let low = first(m + 1, |rank| below(rank) > tail);
    let high = first(m + 1, |rank| below(rank) >= 1.0 - tail) + 1;
    let scale = (count(n) + 1.0) / (count(m) + 1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and n + 1"
    )]
    let rank = |place: f64| (place as usize).clamp(1, n);
    Some(RankInterval {
        low_rank: (low >= 1).then(|| rank((count(low) * scale).floor())),
        high_rank: (high <= m).then(|| rank((count(high) * scale).ceil())),
    })
}

/// The probability of at most `k` of `m` values below the quantile.
fn at_most(m: usize, p: f64, k: usize) -> f64 {
    let variance = count(m) * p * (1.0 - p);
    if variance >= NORMAL_FROM {
        let place = (count(k) + 0.5 - count(m) * p) / variance.sqrt();
        return Normal::new(0.0, 1.0).map_or(0.0, |normal| normal.cdf(place));
    }
    let (Ok(m), Ok(k)) = (u64::try_from(m), u64::try_from(k)) else {
        return 1.0;
    };
    Binomial::new(p, m).map_or(0.0, |binomial| binomial.cdf(k))
}

/// The smallest number below `end` for which it holds; it holds for all after the first. `end`
/// where for none.
fn first(end: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut from, mut to) = (0, end);
    while from < to {
        let middle = usize::midpoint(from, to);
        match holds(middle) {
            true => to = middle,
            false => from = middle + 1,
        }
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The first four from the usual tables of order statistics for the median.
    #[test]
    fn ranks_are_the_tables() {
        let check = |n: usize, p, effective: f64, low_rank, high_rank| {
            let found = percentile_interval(n, p, 0.95, effective).unwrap();
            assert_eq!(found, RankInterval { low_rank, high_rank }, "{n} {p} {effective}");
        };
        check(10, 0.5, 10.0, Some(2), Some(9));
        check(20, 0.5, 20.0, Some(6), Some(15));
        check(50, 0.5, 50.0, Some(18), Some(33));
        check(100, 0.5, 100.0, Some(40), Some(61));
        check(5, 0.5, 5.0, None, None);
        check(100, 0.99, 100.0, Some(97), None);
        check(1000, 0.5, 100.0, Some(396), Some(605));
        check(1000, 0.5, 5.0, None, None);
        check(1, 0.5, 1e9, None, None);
    }

    #[test]
    fn ten_values_lie_beyond_a_percentile_that_is_known() {
        let check = |values: u64, percentile: f64, expected: bool| {
            assert_eq!(
                knows_percentile(values, percentile),
                expected,
                "{values} {percentile}"
            );
        };
        check(1000, 99.0, true);
        check(999, 99.0, false);
        check(10_000, 99.9, true);
        check(9999, 99.9, false);
        check(20, 50.0, true);
        check(19, 50.0, false);
        check(1, 100.0, true);
        check(0, 100.0, false);
    }

    #[test]
    fn stretches_that_differ_know_less_than_their_values() {
        let check = |stretches: &[(u64, u64)], low: f64, high: f64| {
            let found = independent_share(stretches);
            assert!((low..=high).contains(&found), "{found}");
        };
        // One of a hundred each second is more even than chance; all of the slow ones in one second
        // of sixty, or in ten neighbouring ones, count as much as a hundred or two of the six
        // thousand.
        check(&[(1, 100); 60], 1.0, 1.0);
        let mut burst = vec![(0, 100); 60];
        burst[30] = (60, 100);
        check(&burst, 0.01, 0.03);
        let slow: Vec<(u64, u64)> = (0..60)
            .map(|second| (if second / 10 == 3 { 6 } else { 0 }, 100))
            .collect();
        check(&slow, 0.01, 0.03);
        check(&[(5, 100)], 1.0, 1.0);
        check(&[(0, 100), (0, 100)], 1.0, 1.0);
        check(&[], 1.0, 1.0);
    }

    #[test]
    fn nonsense_is_none() {
        for (n, p, confidence, effective) in [
            (0, 0.5, 0.95, 1.0),
            (9, 1.0, 0.95, 9.0),
            (9, 0.5, 1.0, 9.0),
            (9, 0.5, 0.95, f64::NAN),
        ] {
            assert_eq!(percentile_interval(n, p, confidence, effective), None);
        }
    }

    proptest! {
        #[test]
        fn bounds_enclose_the_quantile_and_widen_with_fewer_values(
            n in 1_usize..2_000_000, p in 0.01_f64..0.999, share in 0.01_f64..1.0,
        ) {
            let all = percentile_interval(n, p, 0.95, count(n)).unwrap();
            let fewer = percentile_interval(n, p, 0.95, count(n) * share).unwrap();
            let place = count(n) * p;
            prop_assert!(all.low_rank.is_none_or(|rank| count(rank) <= place + 1.0));
            prop_assert!(all.high_rank.is_none_or(|rank| count(rank) >= place));
            prop_assert!(fewer.low_rank.is_none_or(|rank| count(rank) <= place + 1.0));
            prop_assert!(fewer.high_rank.is_none_or(|rank| count(rank) >= place));
        }
    }
}
