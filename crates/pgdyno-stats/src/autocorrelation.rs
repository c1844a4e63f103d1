//! The correlation of equally spaced values with the next one.

use crate::matrix::count;

/// A larger correlation cannot be distinguished from a trend in a series of this length.
const LARGEST: f64 = 0.95;

/// The correlation of a value with the next one, between 0 and 0.95. It is estimated too low in
/// short series, and corrected (Kendall 1954, *Biometrika* 41, 403-404: the expectation of the
/// estimate is about r - (1 + 3 r) / n); 0 for values that are all the same, and for fewer than
/// four.
pub(crate) fn autocorrelation(values: &[f64]) -> f64 {
    let n = count(values.len());
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    if values.len() < 4 || squares <= 0.0 {
        return 0.0;
    }
    let lagged: f64 = values.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum();
    ((lagged / squares + 1.0 / n) / (1.0 - 3.0 / n)).clamp(0.0, LARGEST)
}

/// How many times as large such a correlation makes the variance of the mean: (1 + r) / (1 - r),
/// for a process whose values depend on the one before alone.
pub(crate) fn variance_factor(r: f64) -> f64 {
    (1.0 + r) / (1.0 - r)
}
