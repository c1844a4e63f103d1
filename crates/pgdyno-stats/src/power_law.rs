//! The power law y = a x^b by least squares on the log scale: what few levels can carry.
//!
//! Fitting, intervals of the line and their inversion (which x gives a y) are those of a straight
//! line (source: Draper & Smith, *Applied Regression Analysis*, chapters 1 and 3, there "inverse
//! regression").

use crate::heights::{Height, levelled};
use crate::spread::{Estimate, Sample, Spread, count, spread, student};

/// A power law fitted on the log scale.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PowerFit {
    line: Line,
    /// Number of all samples.
    samples: f64,
    /// Sum of squared residuals.
    residual_sum: f64,
    /// `None` without a degree of freedom.
    spread: Option<Spread>,
    /// How well the blocks determine the height; `None` for one block.
    height: Option<Height>,
}

/// A line through its centre.
#[derive(Debug, Clone, PartialEq)]
struct Line {
    /// Mean of ln x.
    centre: f64,
    /// ln y at the centre.
    height: f64,
    /// The exponent b.
    exponent: f64,
    /// Sum of squares of ln x around its mean; `None` where the exponent was given, not fitted.
    squares: Option<f64>,
}

impl Line {
    fn new(samples: &[Sample], exponent: Option<f64>) -> Option<Line> {
        let n = count(samples.len());
        let mean = |of: &dyn Fn(&Sample) -> f64| samples.iter().map(of).sum::<f64>() / n;
        let centre = mean(&|s| s.level.ln());
        let height = mean(&|s| s.log_value);
        let squares = n * mean(&|s| (s.level.ln() - centre).powi(2));
        let products = n * mean(&|s| (s.level.ln() - centre) * (s.log_value - height));
        (!samples.is_empty() && (exponent.is_some() || squares > 0.0)).then(|| Line {
            centre,
            height,
            exponent: exponent.unwrap_or(products / squares),
            squares: exponent.is_none().then_some(squares),
        })
    }

    fn log_at(&self, x: f64) -> f64 {
        self.height + self.exponent * (x.ln() - self.centre)
    }
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
    /// Fits a and, unless it is given, b. `None` without samples, or with a single level and no
    /// exponent.
    pub(crate) fn new(samples: &[Sample], exponent: Option<f64>) -> Option<PowerFit> {
        let found = levelled(samples, |samples| Line::new(samples, exponent), Line::log_at)?;
        let left = |s: &Sample| (s.log_value - found.fit.log_at(s.level)).powi(2);
        let residual_sum: f64 = found.samples.iter().map(left).sum();
        let parameters = if exponent.is_none() { 2 } else { 1 };
        Some(PowerFit {
            samples: count(samples.len()),
            residual_sum,
            spread: spread(&found.samples, residual_sum, parameters),
            height: found.height,
            line: found.fit,
        })
    }

    /// The sum of squared residuals, and the variance of one of them; `None` without a degree of
    /// freedom.
    pub(crate) fn misfit(&self) -> Option<(f64, f64)> {
        Some((self.residual_sum, self.spread?.variance))
    }

    /// The y of the fitted law at `x`.
    pub(crate) fn at(&self, x: f64) -> f64 {
        self.line.log_at(x).exp()
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
        let margin = (half.constant + half.slope * (x.ln() - self.line.centre).powi(2)).sqrt();
        Estimate {
            value,
            low: value * (-margin).exp(),
            high: Some(value * margin.exp()),
        }
    }

    /// The x at which the line is `y`, and where the bounds of its interval are.
    pub(crate) fn inverse(&self, y: f64, confidence: f64) -> Inverse {
        let exponent = self.line.exponent;
        let aim = y.ln() - self.line.height;
        let back = |d: f64| (self.line.centre + d).exp();
        let value = (exponent > 0.0).then(|| back(aim / exponent));
        let Some(half) = self.half_widths(confidence) else {
            return Inverse {
                value,
                low: 0.0,
                high: None,
            };
        };
        // (aim - b d)^2 <= constant + slope d^2 holds for the d of the interval, between its two
        // roots where the exponent is known to be positive.
        let lead = exponent.powi(2) - half.slope;
        let rest = aim.powi(2) - half.constant;
        let discriminant = (exponent * aim).powi(2) - lead * rest;
        if discriminant < 0.0 || exponent <= 0.0 || lead.abs() < f64::MIN_POSITIVE {
            return Inverse {
                value,
                low: 0.0,
                high: None,
            };
        }
        let root = |side: f64| (exponent * aim + side * discriminant.sqrt()) / lead;
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

    /// The square of half the width of the interval at the centre, t^2 s^2 / samples or that of the
    /// blocks' heights where it is wider, and what a unit of ln x away from there adds, t^2 s^2 /
    /// squares.
    fn half_widths(&self, confidence: f64) -> Option<HalfWidths> {
        let spread = self.spread?;
        let square = student(confidence, spread.degrees_of_freedom)?.powi(2) * spread.variance;
        let height = self
            .height
            .and_then(|height| height.half_width_squared(confidence));
        Some(HalfWidths {
            constant: (square / self.samples).max(height.unwrap_or(0.0)),
            slope: self.line.squares.map_or(0.0, |squares| square / squares),
        })
    }
}

struct HalfWidths {
    constant: f64,
    slope: f64,
}

/// ln of each value at its level; `points` are (block, level, value).
pub(crate) fn samples(points: impl Iterator<Item = (u32, f64, f64)>) -> Vec<Sample> {
    points
        .map(|(block, level, value)| Sample {
            level,
            log_value: value.ln(),
            block,
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
                .map(|x: f64| (1, x, 3.0 * x.powf(0.8))),
        );
        let fit = PowerFit::new(&all, None).unwrap();
        assert!((fit.line.exponent - 0.8).abs() < 1e-12);
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
                    .map(|((x, y), w)| (1, x, y * w)),
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
        let two = samples([(1, 1.0, 10.0), (1, 2.0, 20.0)].into_iter());
        let found = PowerFit::new(&two, None).unwrap().inverse(40.0, 0.95);
        assert!((found.value.unwrap() - 4.0).abs() < 1e-9);
        assert_eq!((found.low, found.high), (0.0, None));
        let falling = samples([(1, 1.0, 10.0), (1, 2.0, 5.0)].into_iter());
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
