//! How many digits of a value are kept: those of the instrument, and no more.
//!
//! A rate is a counter's growth by the time between two reads. Each read takes tens of
//! microseconds, in which the counter is read at some instant that nobody knows, so of an interval
//! of a second no more than four to five digits are known; the rest is noise of the clock, in all
//! bits of the quotient, that nothing packs. A share is such a quotient of times that the kernel
//! counts in microseconds at best. Counters, sizes and times are kept as they were read.

use std::borrow::Cow;

/// What ends the name of a quotient (docs/reference/metrics.md: the unit is last).
const QUOTIENTS: [&str; 2] = ["_per_s", "_ratio"];
/// Significant digits that are kept: an error of at most half of the last one, 5e-5 of the value.
const DIGITS: i32 = 5;
/// No more decimals than these: a millionth of the time, or of an event in a second.
const DECIMALS_MAX: i32 = 6;

/// The values as they are stored.
pub(crate) fn kept<'v>(metric: &str, values: &'v [f64]) -> Cow<'v, [f64]> {
    match QUOTIENTS.iter().any(|end| metric.ends_with(end)) {
        true => Cow::Owned(values.iter().map(|value| rounded(*value)).collect()),
        false => Cow::Borrowed(values),
    }
}

/// A quotient with the digits that are kept.
pub(crate) fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // Between -323 and 308.
    #[expect(clippy::cast_possible_truncation, reason = "three digits at most")]
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (DIGITS - 1 - magnitude).min(DECIMALS_MAX);
    let ten = 10_f64.powi(decimals.abs());
    // Tens up to the 22nd power are exact, and so is a quotient or product of a whole number and
    // one of them to the last bit.
    let kept = match decimals >= 0 {
        true => (value * ten).round() / ten,
        false => (value / ten).round() * ten,
    };
    // The largest numbers would be rounded up to infinity.
    if !kept.is_finite() {
        return value;
    }
    // What is too small for the decimals is zero without a sign.
    if kept == 0.0 { 0.0 } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::{pack_points, unpack_points};
    use proptest::prelude::*;

    #[test]
    fn digits_of_quotients_are_those_of_the_instrument() {
        let check = |metric: &str, value: f64, expected: f64| {
            assert_eq!(
                kept(metric, &[value])[0].to_bits(),
                expected.to_bits(),
                "{metric} {value}"
            );
        };
        check("db.commits_per_s", 1_852.120_109_717_808_6, 1852.1);
        check("wal.bytes_per_s", 10_960_202.882_411_247, 10_960_000.0);
        check("db.blocks_hit_per_s", 39_732.576_651_775_66, 39_733.0);
        check("disk.reads_per_s", 0.099_998_731, 0.099_999);
        check("psi.io.full_ratio", 0.000_659_895_462_660, 0.000_66);
        check("psi.io.full_ratio", 0.783_778_325_140, 0.783_78);
        check("psi.io.full_ratio", -1e-9, 0.0);
        check("x_per_s", 99_999.9, 100_000.0);
        check("x_per_s", f64::INFINITY, f64::INFINITY);
        check("x_per_s", f64::MAX, f64::MAX);
        check("x_per_s", f64::MIN, f64::MIN);
        check("x_per_s", 5e-324, 0.0);
        // Whole and exact things stay to the bit.
        check("memory.free_bytes", 123_456_789_123.0, 123_456_789_123.0);
        check(
            "disk.write_await_ms",
            0.072_735_590_118_938_7,
            0.072_735_590_118_938_7,
        );
        check("db.size_bytes", 0.1 + 0.2, 0.1 + 0.2);
        assert!(kept("x_per_s", &[f64::NAN])[0].is_nan());
    }

    /// A column of rates of any size takes at most two and a half bytes per point and comes back as
    /// it was rounded.
    #[test]
    fn noise_of_the_clock_is_not_stored() {
        let (mut seed, mut values) = (1_u64, Vec::new());
        for _ in 0..3600 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            values.push(50_000.0 + (seed >> 40) as f64 / 5592.4);
        }
        let at_ms: Vec<u32> = (1..=3600).map(|second| second * 1000).collect();
        let rounded = kept("x_per_s", &values);
        let blob = pack_points(&at_ms, &rounded);
        assert!(blob.len() < 3600 * 5 / 2, "{} bytes", blob.len());
        assert_eq!(unpack_points(&blob).unwrap().1, *rounded);
        assert!(pack_points(&at_ms, &values).len() > 3600 * 5);
    }

    proptest! {
        #[test]
        fn the_error_is_bounded(value in prop::num::f64::NORMAL) {
            let error = (kept("x_per_s", &[value])[0] - value).abs();
            // Half of the last digit that is kept; and a little for the last bit.
            prop_assert!(error <= (value.abs() * 5.001e-5).max(5.001e-7), "{value} {error}");
            let again = kept("x_per_s", &kept("x_per_s", &[value]))[0];
            prop_assert_eq!(again.to_bits(), kept("x_per_s", &[value])[0].to_bits());
        }
    }
}
