//! Looking for the places where a function of one variable reaches a value: the ends of intervals.

/// Doublings of the first step after which an end is taken to be infinitely far.
const MOST_DOUBLINGS: usize = 60;
/// Parts of the last step between two looks; intervals need no more digits.
const PRECISION: f64 = 1e-6;
/// Looks between two sides of an end; a halving each gives the precision in twenty.
const MOST_LOOKS: usize = 40;

/// From `start`, where `f` is about 0, towards `limit`: the first place found where `f` has grown
/// to `target`. `None` where it has not at the limit (or at no distance, for an infinite one).
pub(crate) fn edge(
    f: impl Fn(f64) -> f64,
    start: f64,
    limit: f64,
    first_step: f64,
    target: f64,
) -> Option<f64> {
    let side = if limit < start { -1.0 } else { 1.0 };
    let (mut inside, mut inside_value) = (start, 0.0);
    let mut step = first_step;
    for _ in 0..MOST_DOUBLINGS {
        let next = start + side * step;
        let next = if side < 0.0 {
            next.max(limit)
        } else {
            next.min(limit)
        };
        let found = f(next);
        if found >= target {
            return Some(between(f, (inside, inside_value), (next, found), target));
        }
        if (next - limit).abs() <= 0.0 {
            return None;
        }
        (inside, inside_value) = (next, found);
        step *= 2.0;
    }
    None
}

/// The first place from `first` to `last` where `f` is at most `limit`. Places closer than a
/// hundredth of the way are not distinguished from one another.
pub(crate) fn first_at_most(f: impl Fn(f64) -> f64, limit: f64, first: f64, last: f64) -> Option<f64> {
    const STEPS: u32 = 120;
    let at = |i: u32| first + (last - first) * f64::from(i) / f64::from(STEPS);
    let mut before = (first, f(first));
    if before.1 <= limit {
        return Some(first);
    }
    for i in 1..=STEPS {
        let here = (at(i), f(at(i)));
        if here.1 <= limit {
            let negative = |x: f64| -f(x);
            return Some(between(
                negative,
                (before.0, -before.1),
                (here.0, -here.1),
                -limit,
            ));
        }
        before = here;
    }
    None
}

/// The largest value of `f` from `first` to `last`, for a function with one peak. `None` where it
/// has none at all.
pub(crate) fn best_on(f: impl Fn(f64) -> Option<f64>, first: f64, last: f64) -> Option<f64> {
    const STEPS: u32 = 16;
    let at = |i: u32| first + (last - first) * f64::from(i) / f64::from(STEPS);
    let (peak, mut best) = (0..=STEPS)
        .filter_map(|i| f(at(i)).map(|value| (i, value)))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    // The golden section between the neighbours.
    let ratio = (5.0_f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (at(peak.saturating_sub(1)), at((peak + 1).min(STEPS)));
    // Near a peak the value hardly depends on the place: a hundredth of it leaves a ten-thousandth
    // of the value.
    for _ in 0..8 {
        let (left, right) = (high - ratio * (high - low), low + ratio * (high - low));
        let (left_value, right_value) = (f(left)?, f(right)?);
        best = best.max(left_value).max(right_value);
        if left_value > right_value {
            high = right;
        } else {
            low = left;
        }
    }
    Some(best)
}

/// Where `f` is `target` between a place below and one at or above it: false position with halved
/// ends (the Illinois method; source: Dowell & Jarratt 1971, *BIT* 11, 168-174), halving where a
/// value is infinite.
fn between(f: impl Fn(f64) -> f64, below: (f64, f64), above: (f64, f64), target: f64) -> f64 {
    let (mut low, mut low_value) = (below.0, below.1 - target);
    let (mut high, mut high_value) = (above.0, above.1 - target);
    let smallest = PRECISION * (high - low).abs();
    let mut kept = 0_i32;
    for _ in 0..MOST_LOOKS {
        if (high - low).abs() <= smallest || high_value <= 0.0 {
            break;
        }
        let part = low_value / (low_value - high_value);
        let part = if part.is_finite() && high_value.is_finite() {
            part
        } else {
            0.5
        };
        let middle = low + part.clamp(0.0, 1.0) * (high - low);
        let found = f(middle) - target;
        if found.abs() <= PRECISION * target.abs() {
            return middle;
        }
        if found < 0.0 {
            (low, low_value) = (middle, found);
            kept = kept.max(0) + 1;
            if kept > 1 {
                high_value /= 2.0;
            }
        } else {
            (high, high_value) = (middle, found);
            kept = kept.min(0) - 1;
            if kept < -1 {
                low_value /= 2.0;
            }
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_found_on_both_sides() {
        let check = |limit: f64, expected: Option<f64>| {
            let found = edge(|x| (x - 3.0).abs(), 3.0, limit, 0.01, 2.0);
            assert_eq!(found.is_some(), expected.is_some(), "{limit}");
            if let (Some(found), Some(expected)) = (found, expected) {
                assert!((found - expected).abs() < 1e-4, "{found}");
            }
        };
        check(f64::INFINITY, Some(5.0));
        check(f64::NEG_INFINITY, Some(1.0));
        check(0.0, Some(1.0));
        check(2.0, None);
        assert_eq!(edge(|_| 1.0, 0.0, f64::INFINITY, 1.0, 2.0), None);
        let wall = edge(
            |x| if x < 1.5 { 0.0 } else { f64::INFINITY },
            1.0,
            f64::INFINITY,
            0.1,
            2.0,
        );
        assert!((wall.unwrap() - 1.5).abs() < 1e-4);
    }

    #[test]
    fn first_places_and_peaks() {
        let valley = |x: f64| (x - 4.0).powi(2);
        assert!((first_at_most(valley, 1.0, 0.0, 10.0).unwrap() - 3.0).abs() < 1e-4);
        assert_eq!(first_at_most(valley, -1.0, 0.0, 10.0), None);
        assert_eq!(first_at_most(valley, 20.0, 0.0, 10.0), Some(0.0));
        let found = best_on(|x| Some(7.0 - (x - 3.3).powi(2)), 0.0, 10.0).unwrap();
        assert!((found - 7.0).abs() < 1e-4);
        assert_eq!(best_on(|_| None, 0.0, 1.0), None);
    }
}
