//! The power law y = a x^b by least squares on the log scale: what few levels can carry.
//!
//! Fitting, intervals of the line and their inversion (which x gives a y) are those of a straight line (source: Draper
//! & Smith, *Applied Regression Analysis*, chapters 1 and 3, there "inverse regression").

use crate::spread::{Estimate, Sample, Spread, spread, student};

/// A power law fitted on the log scale, as a line through its centre.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PowerFit {
    /// Weighted mean of ln x.
    centre: f64,
    /// ln y at the centre.
    height: f64,
    /// The exponent b.
    pub exponent: f64,
    /// Sum of the weights of all samples.
    weight: f64,
    /// Weighted sum of squares of ln x around its mean; `None` where the exponent was given, not fitted.
    squares: Option<f64>,
    /// `None` without a degree of freedom.
    spread: Option<Spread>,
}

/// The x that gives a y.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Inverse {
    /// `None` for an exponent that is not positive.
    pub value: Option<f64>,
    /// Lower bound; 0 where the data set none.
    pub low: f64,
    /// Upper bound; `None` where the data set none.
    pub high: Option<f64>,
}

impl PowerFit {
    /// Fits a and, unless it is given, b. `None` without samples, or with a single level and no exponent.
    pub(crate) fn new(samples: &[Sample], exponent: Option<f64>) -> Option<PowerFit> {
        let weight: f64 = samples.iter().map(|s| s.weight).sum();
        let mean =
            |of: &dyn Fn(&Sample) -> f64| samples.iter().map(|s| s.weight * of(s)).sum::<f64>() / weight;
        let centre = mean(&|s| s.level.ln());
        let height = mean(&|s| s.log_value);
        let squares: f64 = weight * mean(&|s| (s.level.ln() - centre).powi(2));
        let products = weight * mean(&|s| (s.level.ln() - centre) * (s.log_value - height));
        if samples.is_empty() || (exponent.is_none() && squares <= 0.0) {
            return None;
        }
        let (slope, parameters) = exponent.map_or((products / squares, 2), |b| (b, 1));
        let residual_sum: f64 = samples
            .iter()
            .map(|s| s.weight * (s.log_value - height - slope * (s.level.ln() - centre)).powi(2))
            .sum();
        Some(PowerFit {
            centre,
            height,
            exponent: slope,
            weight,
            squares: exponent.is_none().then_some(squares),
            spread: spread(samples, residual_sum, parameters),
        })
    }

    /// Whether there is anything to make intervals from.
    pub(crate) fn has_spread(&self) -> bool {
        self.spread.is_some()
    }

    /// The y of the fitted law at `x`.
    pub(crate) fn at(&self, x: f64) -> f64 {
        (self.height + self.exponent * (x.ln() - self.centre)).exp()
    }

    /// y at `x` with the interval of the line there; without a spread from 0 to no bound.
    pub(crate) fn interval_at(&self, x: f64, confidence: f64) -> Estimate {
        let value = self.at(x);
        let Some(half) = self.half_widths(confidence) else {
            return Estimate {
                value,
                low: 0.0,
                high: None,
            };
        };
        let margin = (half.constant + half.slope * (x.ln() - self.centre).powi(2)).sqrt();
        Estimate {
            value,
            low: value * (-margin).exp(),
            high: Some(value * margin.exp()),
        }
    }

    /// The x at which the line is `y`, and where the bounds of its interval are.
    pub(crate) fn inverse(&self, y: f64, confidence: f64) -> Inverse {
        let aim = y.ln() - self.height;
        let back = |d: f64| (self.centre + d).exp();
        let value = (self.exponent > 0.0).then(|| back(aim / self.exponent));
        let Some(half) = self.half_widths(confidence) else {
            return Inverse {
                value,
                low: 0.0,
                high: None,
            };
        };
        // (aim - b d)^2 <= constant + slope d^2 holds for the d of the interval, between its two roots where the
        // exponent is known to be positive.
        let lead = self.exponent.powi(2) - half.slope;
        let rest = aim.powi(2) - half.constant;
        let discriminant = (self.exponent * aim).powi(2) - lead * rest;
        if discriminant < 0.0 || self.exponent <= 0.0 || lead.abs() < f64::MIN_POSITIVE {
            return Inverse {
                value,
                low: 0.0,
                high: None,
            };
        }
        let root = |side: f64| (self.exponent * aim + side * discriminant.sqrt()) / lead;
        if lead > 0.0 {
            Inverse {
                value,
                low: back(root(-1.0)),
                high: Some(back(root(1.0))),
            }
        } else {
            // The upper bound of the line reaches y, the lower never does beyond it.
            let low = if aim > 0.0 { back(root(-1.0)) } else { 0.0 };
            Inverse {
                value,
                low,
                high: None,
            }
        }
    }

    /// t^2 s^2 / weight, and t^2 s^2 / squares.
    fn half_widths(&self, confidence: f64) -> Option<HalfWidths> {
        let spread = self.spread?;
        let square = student(confidence, spread.degrees_of_freedom)?.powi(2) * spread.variance;
        Some(HalfWidths {
            constant: square / self.weight,
            slope: self.squares.map_or(0.0, |squares| square / squares),
        })
    }
}

struct HalfWidths {
    constant: f64,
    slope: f64,
}

/// ln of each value at its level, all of the same weight.
pub(crate) fn samples(points: impl Iterator<Item = (f64, f64)>) -> Vec<Sample> {
    points
        .map(|(level, value)| Sample {
            level,
            log_value: value.ln(),
            weight: 1.0,
        })
        .collect()
}

/// The different levels among samples, rising.
pub(crate) fn levels(samples: &[Sample]) -> Vec<f64> {
    let mut levels: Vec<f64> = samples.iter().map(|s| s.level).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_law_comes_back_and_its_inverse_is_its_inverse() {
        let all = samples(
            [1.0, 2.0, 4.0, 8.0]
                .into_iter()
                .map(|x: f64| (x, 3.0 * x.powf(0.8))),
        );
        let fit = PowerFit::new(&all, None).unwrap();
        assert!((fit.exponent - 0.8).abs() < 1e-12);
        assert!((fit.at(16.0) - 3.0 * 16.0_f64.powf(0.8)).abs() < 1e-9);
        assert!((fit.inverse(fit.at(16.0), 0.95).value.unwrap() - 16.0).abs() < 1e-9);
    }

    /// The bounds of the inverse are where the bounds of the line reach the value.
    #[test]
    fn bounds_of_the_inverse_lie_on_the_bounds_of_the_line() {
        let check = |y: f64, wobble: f64, bounded: bool| {
            let all = samples(
                [(1.0, 1.0), (2.0, 2.0), (4.0, 4.0), (8.0, 8.0)]
                    .into_iter()
                    .zip([1.0 + wobble, 1.0 - wobble, 1.0 - wobble, 1.0 + wobble])
                    .map(|((x, y), w)| (x, y * w)),
            );
            let fit = PowerFit::new(&all, None).unwrap();
            let found = fit.inverse(y, 0.95);
            assert_eq!(found.high.is_some(), bounded, "{found:?}");
            if found.low > 0.0 {
                assert!((fit.interval_at(found.low, 0.95).high.unwrap() / y - 1.0).abs() < 1e-9);
            }
            if let Some(high) = found.high {
                assert!((fit.interval_at(high, 0.95).low / y - 1.0).abs() < 1e-9);
            }
        };
        check(16.0, 0.01, true);
        check(16.0, 0.1, true);
        check(16.0, 0.6, false);
        check(0.2, 0.1, true);
    }

    #[test]
    fn without_a_spread_there_is_no_bound() {
        let two = samples([(1.0, 10.0), (2.0, 20.0)].into_iter());
        let found = PowerFit::new(&two, None).unwrap().inverse(40.0, 0.95);
        assert!((found.value.unwrap() - 4.0).abs() < 1e-9);
        assert_eq!((found.low, found.high), (0.0, None));
        let falling = samples([(1.0, 10.0), (2.0, 5.0)].into_iter());
        assert_eq!(
            PowerFit::new(&falling, None).unwrap().inverse(40.0, 0.95).value,
            None
        );
        assert!(PowerFit::new(&two[..1], None).is_none() && PowerFit::new(&[], Some(1.0)).is_none());
        let given = PowerFit::new(&two[..1], Some(1.0)).unwrap();
        assert!((given.at(3.0) - 30.0).abs() < 1e-9);
        assert_eq!(levels(&two), [1.0, 2.0]);
    }
}
