//! Figures in digits that count.

/// Below this nothing that is measured is: it is zero with the dust of arithmetic.
const DUST: f64 = 1e-9;
/// Significant digits of a number that is shown.
const DIGITS: i32 = 3;

/// Three significant digits, and all of those before the point: 12346, 99.5, 1.34, 0.310, 0.00523.
/// What is not a number is "NaN" or "inf".
pub fn three_digits(value: f64) -> String {
    if value.abs() < DUST {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return value.to_string();
    }
    // Rounding may carry into one more digit before the point: 9.996 is 10.0.
    let rounded: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    #[expect(clippy::cast_possible_truncation, reason = "the logarithm of a finite number")]
    let whole = rounded.abs().log10().floor() as i32 + 1;
    let after = usize::try_from(DIGITS - whole).unwrap_or(0);
    format!("{value:.after$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_and_fast_figures_keep_three_digits() {
        for (value, expected) in [
            (12_345.6, "12346"),
            (999.6, "1000"),
            (99.96, "100"),
            (99.54, "99.5"),
            (9.996, "10.0"),
            (1.344, "1.34"),
            (0.31, "0.310"),
            (0.005_234, "0.00523"),
            (-0.05, "-0.0500"),
            (0.0, "0"),
            (1e-12, "0"),
            (1000.0, "1000"),
            (0.001, "0.00100"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(three_digits(value), expected, "{value}");
        }
    }
}
