//! Where a warm-up ends, whether the rest is stationary, and how many independent values it amounts
//! to.

use crate::autocorrelation::{autocorrelation, variance_factor};
use crate::matrix::count;
use crate::spread::student;
use crate::steady::steadiness;
use std::ops::Range;

/// What was found of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stationarity {
    /// Neither a trend, nor a step, nor another spread in the second half, that is both sure and
    /// large.
    pub stationary: bool,
    /// Mean after the likeliest step over that before it, less 1.
    pub step_ratio: f64,
    /// Standard error of it, by the effective sample size.
    pub step_standard_error: f64,
    /// Standard deviation of the second half over that of the first; `None` where one is constant.
    pub spread_ratio: Option<f64>,
}

/// Where the warm-up of a series ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUp {
    /// The series is stationary from this index on; 0 where there was no warm-up.
    EndsAt(usize),
    /// It is stationary nowhere: its mean is one of something that changed.
    Never,
    /// There are too few values, or no positive mean.
    Unknown,
}

/// Values in the first window; each further one is as long as all before it.
const WINDOW: usize = 5;
/// Fewer values have no second half to compare with.
const FEWEST_FOR_WARM_UP: usize = 24;
/// The level of all windows together. Short correlated series show too little of their spread, so
/// that of these something is cut off about twice as often: one of twenty stationary series.
const CUT_ERROR: f64 = 0.03;
/// Levels closer than this are of the order of the noise between trials: nothing is cut off for
/// them.
const WARM_UP_THAT_MATTERS: f64 = 0.01;
/// Each half needs values enough for a spread and its autocorrelation.
const FEWEST_VALUES: usize = 12;
/// Levels closer than this do not matter: as for [`has_settled`](crate::has_settled).
const STEP_THAT_MATTERS: f64 = 0.05;
/// Spreads closer than this factor do not matter: a second of another checkpoint is no other state.
const SPREAD_THAT_MATTERS: f64 = 2.0;
/// Standard errors away: two would cry wolf in one trial of twenty.
const SURE: f64 = 3.0;
/// The same for the best of many places, which chance alone takes further.
const SURE_OF_BEST: f64 = 4.0;

/// Where the warm-up of equally spaced values ends.
///
/// Windows that double from the beginning on are each compared with the second half of the series,
/// by Student's t with the second half's spread and autocorrelation: of stationary series something
/// is cut off in one case of twenty at most. The warm-up ends with the last window that differs, or
/// else with the first half, and what is left must pass [`stationarity`]. (Rules that minimise a
/// statistic over all ends, as MSER-5 of White, Cobb & Spratt 2000, have no error rate: they cut
/// something off a third to two thirds of stationary series.)
pub fn warm_up_end(values: &[f64]) -> WarmUp {
    let half = values.len() / 2;
    let level = values[half..].iter().sum::<f64>() / count(values.len() - half).max(1.0);
    let is_known = values.iter().all(|v| v.is_finite()) && level > 0.0;
    if values.len() < FEWEST_FOR_WARM_UP || !is_known {
        return WarmUp::Unknown;
    }
    let end = last_that_differs(&values[..half], &values[half..], level);
    // Of a warm-up that was seen, the rest may be too small to be sure of.
    let ends = [end, if end > 0 { half } else { end }];
    let is_stationary = |end: usize| stationarity(&values[end..]).map(|found| found.stationary);
    match ends.into_iter().find(|&end| is_stationary(end) != Some(false)) {
        None => WarmUp::Never,
        Some(end) if is_stationary(end).is_none() => WarmUp::Unknown,
        Some(end) => WarmUp::EndsAt(end),
    }
}

/// The end of the last window of `first` whose mean differs from `level`, that of `second`; 0 where
/// none does.
fn last_that_differs(first: &[f64], second: &[f64], level: f64) -> usize {
    let mut windows = Vec::new();
    let mut begin = 0;
    while begin + WINDOW <= first.len() {
        // What is left after the last whole one belongs to it.
        let long = begin.max(WINDOW);
        let is_last = begin + long + WINDOW > first.len();
        let end = if is_last { first.len() } else { begin + long };
        windows.push(begin..end);
        begin = end;
    }
    let factor = variance_factor(autocorrelation(second));
    let each = squares(second) / (count(second.len()) - 1.0) * factor;
    let freedom = (count(second.len()) / factor - 1.0).max(1.0);
    let critical = student(1.0 - CUT_ERROR / count(windows.len()), freedom).unwrap_or(f64::INFINITY);
    let differs = |window: &Range<usize>| {
        let part = &first[window.clone()];
        let distance = (part.iter().sum::<f64>() / count(part.len()) - level).abs();
        let error = (each / count(part.len()) + each / count(second.len())).sqrt();
        distance > critical * error && distance > WARM_UP_THAT_MATTERS * level
    };
    windows
        .iter()
        .rfind(|window| differs(window))
        .map_or(0, |window| window.end)
}

/// Whether a series has one level and one spread: no trend ([`steadiness`](crate::steadiness)), no
/// step where one is likeliest, no other standard deviation in the second half. Each must be larger
/// than what matters (a step 5 %, a spread a factor of 2) and than three standard errors, four for
/// a step, whose place was chosen. Those are by the effective sample size (as in Geweke's test of
/// means, *Bayesian Statistics 4*, 1992). `None` below 12 values or without a positive mean.
pub fn stationarity(values: &[f64]) -> Option<Stationarity> {
    if values.len() < FEWEST_VALUES {
        return None;
    }
    let trend = !steadiness(values)?.settled;
    let mean = |part: &[f64]| part.iter().sum::<f64>() / count(part.len());
    let variance = |part: &[f64]| squares(part) / (count(part.len()) - 1.0);
    let (before, after) = values.split_at(likeliest_split(values));
    let m = (mean(before), mean(after));
    if m.0.is_nan() || m.0 <= 0.0 {
        return None;
    }
    // What both levels leave: its spread, and how much of it is independent.
    let levels = [(before, m.0), (after, m.1)];
    let left: Vec<f64> = levels
        .iter()
        .flat_map(|&(part, level)| part.iter().map(move |v| v - level))
        .collect();
    let independent = effective_sample_size(&left)? / count(left.len());
    let each = squares(&left) / (count(left.len()) - 2.0) / independent;
    let step_ratio = m.1 / m.0 - 1.0;
    let step_standard_error = (each / count(before.len()) + each / count(after.len())).sqrt() / m.0;
    let step = step_ratio.abs() > STEP_THAT_MATTERS.max(SURE_OF_BEST * step_standard_error);
    let (before, after) = values.split_at(values.len() / 2);
    let v = (variance(before), variance(after));
    let n = (effective_sample_size(before)?, effective_sample_size(after)?);
    let spread_ratio = (v.0 > 0.0 && v.1 > 0.0).then(|| (v.1 / v.0).sqrt());
    // The log of a standard deviation from n values has the variance 1 / (2 (n - 1)), about.
    let log_error = (0.5 / (n.0 - 1.0).max(1.0) + 0.5 / (n.1 - 1.0).max(1.0)).sqrt();
    let other_spread =
        spread_ratio.is_some_and(|ratio| ratio.ln().abs() > SPREAD_THAT_MATTERS.ln().max(SURE * log_error));
    Some(Stationarity {
        stationary: !(trend || step || other_spread),
        step_ratio,
        step_standard_error,
        spread_ratio,
    })
}

/// How many independent values show as much of the mean as these equally spaced, correlated ones: n
/// / (1 + 2 Σ ρ), the sum of autocorrelations ending where two neighbours together are no longer
/// positive (the initial positive sequence; source: Geyer, *Practical Markov chain Monte Carlo*,
/// Statistical Science 7, 1992). Between 1 and n. `None` below two values, or where one is not
/// finite.
pub fn effective_sample_size(values: &[f64]) -> Option<f64> {
    let n = values.len();
    if n < 2 || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count(n);
    let covariance = |lag: usize| -> f64 {
        let pairs = values.iter().zip(values.iter().skip(lag));
        pairs.map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    let variance = covariance(0);
    if variance <= 0.0 {
        return Some(count(n));
    }
    let pairs = (0..n).step_by(2).map(|lag| covariance(lag) + covariance(lag + 1));
    let sum: f64 = pairs.take_while(|&pair| pair > 0.0).sum();
    let factor = (2.0 * sum / variance - 1.0).max(1.0);
    Some((count(n) / factor).max(1.0))
}

/// Where two levels instead of one explain most: the first split of binary segmentation (source:
/// Scott & Knott, *A cluster analysis method for grouping means*, Biometrics 30, 1974). Each side
/// keeps half of the fewest values.
fn likeliest_split(values: &[f64]) -> usize {
    let least = FEWEST_VALUES / 2;
    let left = |split: usize| squares(&values[..split]) + squares(&values[split..]);
    (least..=values.len() - least)
        .map(|split| (split, left(split)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map_or(least, |(split, _)| split)
}

/// Sum of the squares of the distances from the mean.
fn squares(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / count(values.len());
    values.iter().map(|v| (v - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::{SeedableRng, Xoshiro256PlusPlus, normal};

    /// AR(1) around 1, of standard deviation `sd`.
    fn noise(seed: u64, n: usize, rho: f64, sd: f64) -> Vec<f64> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut state = normal(&mut random);
        let mut next = || {
            let now = state;
            state = rho * state + (1.0 - rho * rho).sqrt() * normal(&mut random);
            1.0 + sd * now
        };
        (0..n).map(|_| next()).collect()
    }

    /// A curve that climbs for `seconds`, then is level.
    fn climb(seed: u64, n: usize, seconds: f64) -> Vec<f64> {
        let shape = |i: usize| 1.0 - 0.6 * (-4.0 * count(i) / seconds).exp();
        noise(seed, n, 0.3, 0.03)
            .iter()
            .enumerate()
            .map(|(i, v)| 1000.0 * v * shape(i))
            .collect()
    }

    #[test]
    fn a_warm_up_is_cut_off_about_where_it_ends() {
        for seed in 0..50 {
            let found = warm_up_end(&climb(seed, 120, 30.0));
            assert!(matches!(found, WarmUp::EndsAt(10..=60)), "{seed}: {found:?}");
        }
    }

    /// The share of stationary series of which something is cut off stays about one of twenty.
    #[test]
    fn hardly_anything_is_cut_off_stationary_series() {
        for (n, rho) in [(30, 0.0), (60, 0.4), (120, 0.5), (300, 0.7)] {
            let ends: Vec<WarmUp> = (0..1000)
                .map(|seed| warm_up_end(&noise(seed, n, rho, 0.05)))
                .collect();
            let cut = ends
                .iter()
                .filter(|end| matches!(end, WarmUp::EndsAt(1..)))
                .count();
            let kept = ends.iter().filter(|end| **end == WarmUp::EndsAt(0)).count();
            assert!(cut <= 60 && kept >= 900, "{n} {rho}: {cut} cut, {kept} kept");
        }
        assert_eq!(warm_up_end(&[7.0; 40]), WarmUp::EndsAt(0));
    }

    #[test]
    fn what_never_settles_is_distinguished_from_what_is_not_known() {
        let ramp: Vec<f64> = (0..60).map(|i| 1000.0 + 30.0 * f64::from(i)).collect();
        assert_eq!(warm_up_end(&ramp), WarmUp::Never);
        let late: Vec<f64> = (0..60).map(|i| if i < 40 { 500.0 } else { 1000.0 }).collect();
        assert_eq!(warm_up_end(&late), WarmUp::Never);
        for unknown in [vec![], vec![1000.0; 23], vec![f64::NAN; 40], vec![0.0; 40]] {
            assert_eq!(warm_up_end(&unknown), WarmUp::Unknown, "{unknown:?}");
        }
    }

    #[test]
    fn a_step_a_trend_and_another_spread_are_seen() {
        let check = |name, change: &dyn Fn(usize, f64) -> f64, expected| {
            let values: Vec<f64> = noise(4, 60, 0.0, 0.03)
                .iter()
                .enumerate()
                .map(|(i, &v)| change(i, v))
                .collect();
            assert_eq!(stationarity(&values).unwrap().stationary, expected, "{name}");
        };
        check("level", &|_, v| v, true);
        check("step", &|i, v| if i < 30 { v } else { v * 1.1 }, false);
        check("small step", &|i, v| if i < 30 { v } else { v * 1.02 }, true);
        check("trend", &|i, v| v * (1.0 + 0.005 * count(i)), false);
        check(
            "spread",
            &|i, v| if i < 30 { v } else { 1.0 + 5.0 * (v - 1.0) },
            false,
        );
        assert_eq!(stationarity(&[1.0; 11]), None);
    }

    #[test]
    fn the_effective_size_is_that_of_an_autoregression() {
        for rho in [0.0, 0.3, 0.6, 0.9] {
            let n = 20_000;
            let found = effective_sample_size(&noise(9, n, rho, 1.0)).unwrap() / count(n);
            let expected = (1.0 - rho) / (1.0 + rho);
            assert!((found / expected - 1.0).abs() < 0.15, "{rho}: {found} {expected}");
        }
        assert_eq!(effective_sample_size(&[5.0; 8]), Some(8.0));
        assert_eq!(effective_sample_size(&[5.0]), None);
        assert!(effective_sample_size(&[1.0, -1.0, 1.0, -1.0]).unwrap() <= 4.0);
    }
}
