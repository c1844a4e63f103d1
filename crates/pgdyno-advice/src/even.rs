//! Sizes as people write them: 4 GB, not 3987 MB.

const KB: f64 = 1024.0;
const MB: f64 = 1024.0 * KB;
/// Sizes between a power of two and the next: 1, 1.25, 1.5, 1.75.
const STEPS: f64 = 4.0;

/// The distance between two such sizes near `bytes`: a quarter of the power of two below, whole MB
/// from 1 MB on, else whole kB.
fn step(bytes: f64) -> f64 {
    let least = if bytes >= MB { MB } else { KB };
    (power_below(bytes) / STEPS).max(least)
}

/// The largest power of two that is not above `bytes`; 1 where `bytes` is less.
fn power_below(bytes: f64) -> f64 {
    let mut power = 1.0;
    // At most 1024 rounds: beyond that a double is infinite.
    while power * 2.0 <= bytes && power < f64::MAX / 2.0 {
        power *= 2.0;
    }
    power
}

/// The nearest size that people write. It never falls as `bytes` rises, and is at most an eighth
/// away from 4 kB on.
pub(crate) fn even(bytes: f64) -> f64 {
    let step = step(bytes);
    (bytes / step).round() * step
}

/// The same, never above `bytes`.
pub(crate) fn even_down(bytes: f64) -> f64 {
    let step = step(bytes);
    (bytes / step).floor() * step
}

/// The smallest power of two that is not below `bytes`.
pub(crate) fn power_above(bytes: f64) -> f64 {
    let below = power_below(bytes);
    if below < bytes { below * 2.0 } else { below }
}

/// The largest power of two that is not above `bytes`; 0 below one byte.
pub(crate) fn power_down(bytes: f64) -> f64 {
    if bytes < 1.0 { 0.0 } else { power_below(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GB: f64 = 1024.0 * MB;

    #[test]
    fn a_size_is_rounded_to_what_people_write() {
        for (bytes, expected) in [
            (3987.0 * MB, 4.0 * GB),
            (6026.0 * MB, 6.0 * GB),
            (15.7 * GB, 16.0 * GB),
            (31.4 * GB, 32.0 * GB),
            (978.0 * MB, GB),
            (9.4 * MB, 10.0 * MB),
            (1.3 * MB, MB),
            (200.0 * KB, 192.0 * KB),
            (0.0, 0.0),
        ] {
            assert_eq!(even(bytes), expected, "{bytes}");
        }
        assert_eq!(even_down(3987.0 * MB), 3584.0 * MB);
        assert_eq!((power_above(17.0), power_above(16.0)), (32.0, 16.0));
        assert_eq!((power_down(17.0), power_down(0.5)), (16.0, 0.0));
    }

    proptest! {
        #[test]
        fn a_larger_size_is_never_rounded_to_a_smaller_one(low in 1.0..1e15_f64, more in 0.0..1e15_f64) {
            prop_assert!(even(low) <= even(low + more));
            prop_assert!(even_down(low) <= even_down(low + more));
            prop_assert!(even_down(low) <= low);
            prop_assert_eq!(even(even(low)), even(low));
            if low >= 4.0 * KB {
                // Between 1 and 4 MB whole MB are as fine as it gets.
                let most = if (MB..4.0 * MB).contains(&low) { 0.5 } else { 0.126 };
                prop_assert!((even(low) - low).abs() <= most * low);
            }
        }
    }
}
