//! Values of metrics with their units, with as many digits as are known.

use crate::text::number;
use pgdyno_record::MetricWords;

/// A value with its unit: "12,346 TPS", "12.3 s".
pub(crate) fn with_unit(metric: &MetricWords, value: f64) -> String {
    match metric.unit {
        "" => figure(value),
        unit => format!("{} {unit}", figure(value)),
    }
}

/// Whether it is a length of time, that something *takes*.
pub(crate) fn is_duration(metric: &MetricWords) -> bool {
    metric.unit == "s"
}

/// A value in three significant digits and all of those before the point.
pub(crate) fn figure(value: f64) -> String {
    number(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_three_digits_or_so() {
        assert_eq!(figure(12_345.6), "12,346");
        assert_eq!(figure(12.34), "12.3");
        assert_eq!(figure(2.346), "2.35");
        assert_eq!(figure(0.012_34), "0.0123");
        assert_eq!(figure(0.0), "0");
        assert_eq!(figure(-1.5), "\u{2212}1.50");
    }
}
