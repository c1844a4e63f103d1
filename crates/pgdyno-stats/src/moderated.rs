//! The variance of each comparison by itself, steadied by those of the others.
//!
//! A variance of few differences is hardly known, and one that is pooled over all treatments is
//! wrong for each of them where one treatment is noisier than another. In between is the prior of
//! Smyth (2004, *Statistical Applications in Genetics and Molecular Biology* 3, article 3):
//! variances of comparisons are drawn from a scaled inverse chi-square distribution with d degrees
//! of freedom, and each comparison's own variance is averaged with its centre. How alike they are,
//! d, is known badly from a handful of comparisons, so it is not estimated: each d of a grid counts
//! with its likelihood, and so does "all alike".
//!
//! What is borrowed is not free: the variance of a comparison that is noisier than the others comes
//! out too small. What that costs was simulated (docs/explanation/statistics.md), and [`BORROWED`]
//! pays for it.

use crate::matrix::count;
use statrs::function::gamma::{digamma, ln_gamma};

/// A variance and its degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Variance {
    /// On the log scale, of one difference.
    pub(crate) value: f64,
    /// Degrees of freedom, more than zero, and no whole number where it is an average.
    pub(crate) freedom: f64,
}

/// Degrees of freedom of the prior: from variances that have little in common to such as differ
/// little more than by chance.
const GRID: [f64; 4] = [0.5, 1.0, 2.0, 4.0];
/// Weight of "all alike" before anything was measured; the grid shares the rest.
const ALIKE: f64 = 0.1;
/// With fewer comparisons than this there is nothing to learn of how alike they are.
const FEWEST: usize = 3;
/// Degrees of freedom of its own from which on a comparison borrows: with fewer, a noisy comparison
/// cannot be distinguished from a quiet one.
const FREEDOM_MIN: f64 = 3.0;
/// The share of a level at which a comparison with a borrowed variance is judged, so that all hold
/// as promised.
pub(crate) const BORROWED: f64 = 0.7;
/// The correlation of the squares of two differences that have a treatment in common.
const IN_COMMON: f64 = 0.25;
/// Variances below it are rounding.
const SMALLEST: f64 = 1e-24;
/// Below this share of the mean of all a variance says how finely was measured: few transactions a
/// second are a whole number, and differences of such rates may all be the same. By chance it is
/// smaller in 7 of 1,000 comparisons of four blocks, and in none of ten.
const FINEST: f64 = 0.03;
/// Degrees of freedom from which on a quantile differs from the normal one by less than a
/// thousandth.
const FREEDOM_MAX: f64 = 1e4;

/// The variances with those of the others taken into account, in their order; `None` where nothing
/// is borrowed, because they are too few or of too few blocks.
pub(crate) fn moderated(own: &[Variance]) -> Option<Vec<Variance>> {
    if own.len() < FEWEST || own.iter().any(|one| one.freedom < FREEDOM_MIN) {
        return None;
    }
    let least = (FINEST * alike(own).value).max(SMALLEST);
    let floored = |one: &Variance| Variance {
        value: one.value.max(least),
        ..*one
    };
    let own: Vec<Variance> = own.iter().map(floored).collect();
    let alike = alike(&own);
    let mut logs = vec![own.iter().map(|one| chi_square(*one, alike.value)).sum::<f64>() + ALIKE.ln()];
    let mut centres = Vec::with_capacity(GRID.len());
    for d in GRID {
        let centre = centre(&own, d);
        let share = (1.0 - ALIKE) / count(GRID.len());
        logs.push(own.iter().map(|one| fisher(*one, centre, d)).sum::<f64>() + share.ln());
        centres.push(centre);
    }
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
    let total: f64 = weights.iter().sum();
    let posterior = |one: &Variance| {
        let of_grid = GRID.iter().zip(&centres).map(|(&d, centre)| Variance {
            value: (d * centre + one.freedom * one.value) / (d + one.freedom),
            freedom: d + one.freedom,
        });
        let parts = [alike].into_iter().chain(of_grid);
        let (mut mean, mut square, mut within) = (0.0, 0.0, 0.0);
        for (part, weight) in parts.zip(&weights) {
            let half = part.freedom / 2.0;
            let log = part.value.ln() + half.ln() - digamma(half);
            let share = weight / total;
            mean += share * log;
            square += share * log * log;
            within += share * trigamma(half);
        }
        // The scaled inverse chi-square distribution with this mean and variance of the logarithm.
        let half = inverse_trigamma(within + (square - mean * mean).max(0.0));
        Variance {
            value: (mean - half.ln() + digamma(half)).exp(),
            freedom: (2.0 * half).min(FREEDOM_MAX),
        }
    };
    Some(own.iter().map(posterior).collect())
}

/// The mean of the variances, with as many degrees of freedom as differences that have a treatment
/// in common have together.
fn alike(own: &[Variance]) -> Variance {
    let freedom: f64 = own.iter().map(|one| one.freedom).sum();
    Variance {
        value: own.iter().map(|one| one.freedom * one.value).sum::<f64>() / freedom,
        freedom: freedom / (1.0 + IN_COMMON * count(own.len() - 1)),
    }
}

/// The logarithm of the density of a variance whose expectation is `centre`.
fn chi_square(one: Variance, centre: f64) -> f64 {
    let half = one.freedom / 2.0;
    let x = one.value / centre;
    half * half.ln() - ln_gamma(half) + (half - 1.0) * x.ln() - half * x - centre.ln()
}

/// The logarithm of the density of a variance whose expectation is drawn with `d` degrees of
/// freedom: Fisher's F.
fn fisher(one: Variance, centre: f64, d: f64) -> f64 {
    let (half, other) = (one.freedom / 2.0, d / 2.0);
    let x = one.value / centre;
    let beta = ln_gamma(half) + ln_gamma(other) - ln_gamma(half + other);
    let ratio = one.freedom / d;
    half * ratio.ln() + (half - 1.0) * x.ln() - (half + other) * (ratio * x).ln_1p() - beta - centre.ln()
}

/// The likeliest centre of the prior with `d` degrees of freedom: the score falls from the least
/// variance to the largest.
fn centre(own: &[Variance], d: f64) -> f64 {
    let logs = || own.iter().map(|one| one.value.ln());
    let mut low = logs().fold(f64::INFINITY, f64::min);
    let mut high = logs().fold(f64::NEG_INFINITY, f64::max);
    for _ in 0..20 {
        let middle = f64::midpoint(low, high);
        let score = |one: &Variance| {
            let u = one.freedom * one.value / (d * middle.exp());
            (one.freedom + d) * u / (1.0 + u) - one.freedom
        };
        if own.iter().map(score).sum::<f64>() > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high).exp()
}

/// The derivative of the digamma function, for positive numbers: its recurrence up to 6, then its
/// asymptotic series (Abramowitz & Stegun 6.4.12).
fn trigamma(x: f64) -> f64 {
    let (mut x, mut sum) = (x, 0.0);
    while x < 6.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    sum + 1.0 / x + r / 2.0 + r / x * (1.0 / 6.0 - r * (1.0 / 30.0 - r * (1.0 / 42.0 - r / 30.0)))
}

/// Newton's iteration on the reciprocal, which is convex (Smyth 2004, appendix).
fn inverse_trigamma(y: f64) -> f64 {
    let mut x = 0.5 + 1.0 / y;
    for _ in 0..20 {
        let value = trigamma(x);
        let slope = -(trigamma(x + 1e-4) - trigamma(x - 1e-4)) / 2e-4;
        let step = value * (1.0 - value / y) / -slope;
        x += step;
        if step.abs() < 1e-8 * x {
            break;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64], freedom: f64) -> Vec<Variance> {
        let variance = |&value: &f64| Variance { value, freedom };
        values.iter().map(variance).collect()
    }

    /// From a table: trigamma(1) = π²/6, trigamma(1/2) = π²/2.
    #[test]
    fn trigamma_is_the_tables_and_its_inverse_leads_back() {
        let pi = std::f64::consts::PI.powi(2);
        for (x, expected) in [(1.0, pi / 6.0), (0.5, pi / 2.0), (2.0, pi / 6.0 - 1.0)] {
            assert!((trigamma(x) - expected).abs() < 1e-9, "{x}");
        }
        for x in [0.2, 1.0, 7.5, 300.0] {
            let found = inverse_trigamma(trigamma(x));
            assert!((found / x - 1.0).abs() < 1e-6, "{x}: {found}");
        }
    }

    #[test]
    fn alike_variances_lend_one_another_freedom_and_unlike_ones_hardly_any() {
        let alike = moderated(&of(&[1.0, 1.1, 0.9, 1.05, 0.95], 9.0)).unwrap();
        assert!(
            alike
                .iter()
                .all(|one| one.freedom > 11.0 && (one.value - 1.0).abs() < 0.1),
            "{alike:?}"
        );
        let unlike = moderated(&of(&[1.0, 1.1, 0.9, 1.05, 100.0], 9.0)).unwrap();
        assert!(unlike[4].freedom < 10.5 && unlike[4].value > 80.0, "{unlike:?}");
        assert!(unlike[0].freedom < alike[0].freedom, "{unlike:?}");
    }

    #[test]
    fn few_comparisons_or_few_blocks_borrow_nothing() {
        assert_eq!(moderated(&of(&[1.0, 2.0], 9.0)), None);
        assert_eq!(moderated(&of(&[1.0, 2.0, 3.0], 2.0)), None);
        assert_eq!(moderated(&[]), None);
    }

    /// Differences that are all the same among others that are not: rates of few transactions.
    #[test]
    fn a_variance_of_zero_among_others_leaves_all_of_them_known() {
        let found = moderated(&of(&[1.0, 1.2, 0.0, 0.9, 1.1], 3.0)).unwrap();
        assert!(found.iter().all(|one| one.freedom > 3.0), "{found:?}");
        assert!((0.01..1.0).contains(&found[2].value), "{found:?}");
    }

    #[test]
    fn values_that_agree_to_the_last_digit_have_no_spread() {
        let found = moderated(&of(&[0.0, 0.0, 0.0], 4.0)).unwrap();
        assert!(
            found.iter().all(|one| one.value < 1e-20 && one.freedom > 4.0),
            "{found:?}"
        );
    }
}
