//! Least squares on the log scale for curves 1 / X(N) = a / N + s + c (N - 1) with a, s, c >= 0.
//!
//! The Universal Scalability Law is such a curve: a = (1 - sigma) / lambda, s = sigma / lambda, c =
//! kappa / lambda. In this form the bounds of its parameters are three signs, and each quantity of
//! interest held at a value is a linear condition on (a, s, c): what a profile likelihood needs is
//! the same minimisation with fewer unknowns.

use crate::matrix::invert;
use crate::spread::Sample;

/// The coefficients (a, s, c).
pub(crate) type Coefficients = [f64; 3];

/// What the coefficients are multiplied with at `n`; `n` at least 1.
pub(crate) fn terms(n: f64) -> Coefficients {
    [1.0 / n, 1.0, n - 1.0]
}

/// X(n); infinite where all terms vanish.
pub(crate) fn value(coefficients: &Coefficients, n: f64) -> f64 {
    1.0 / dot(coefficients, &terms(n))
}

/// A part of the space of coefficients: offset + sum of p\[j\] columns\[j\] with all p\[j\] >= 0.
#[derive(Debug, Clone)]
pub(crate) struct Plane {
    pub columns: Vec<Coefficients>,
    pub offset: Coefficients,
}

impl Plane {
    /// The plane that holds every vector.
    pub(crate) fn whole() -> Plane {
        Plane::of(&[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    }

    /// The span of `columns`.
    pub(crate) fn of(columns: &[Coefficients]) -> Plane {
        Plane {
            columns: columns.to_vec(),
            offset: [0.0; 3],
        }
    }

    /// Where the curve goes through `value` at `n`, with coefficient number `dependent` following
    /// from the others.
    fn through(n: f64, value: f64, dependent: usize) -> Plane {
        let terms = terms(n);
        let mut offset = [0.0; 3];
        offset[dependent] = 1.0 / (value * terms[dependent]);
        let columns = (0..3)
            .filter(|&j| j != dependent)
            .map(|j| {
                let mut column = [0.0; 3];
                column[j] = 1.0;
                column[dependent] = -terms[j] / terms[dependent];
                column
            })
            .collect();
        Plane { columns, offset }
    }

    fn at(&self, p: &[f64]) -> Coefficients {
        let mut found = self.offset;
        for (column, p) in self.columns.iter().zip(p) {
            for (to, from) in found.iter_mut().zip(column) {
                *to += p * from;
            }
        }
        found
    }
}

/// The coefficients at a minimum and the sum of squared residuals there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Minimum {
    pub coefficients: Coefficients,
    pub sum: f64,
}

/// Iterations after which a search is given up; ten to thirty are usual.
const MOST_ITERATIONS: usize = 500;
/// A step that lessens the sum by a smaller part than this ends the search.
const SMALLEST_GAIN: f64 = 1e-13;
/// A sum of squares of logs below this is rounding error.
const EXACT: f64 = 1e-24;
/// Damping from which on no step is left that lessens the sum.
const LARGEST_DAMPING: f64 = 1e14;

/// The smallest sum of squares on `plane`, from `start` (as many values as `plane` has columns,
/// none negative), by Levenberg's and Marquardt's method with steps cut off at the bounds (source:
/// Marquardt 1963, *J. SIAM* 11, 431-441; the bounds as in Kanzow, Yamashita & Fukushima 2004, *J.
/// Comput. Appl. Math.* 172, 375-397). `None` where it does not converge.
pub(crate) fn minimise(samples: &[Sample], plane: &Plane, start: &[f64]) -> Option<Minimum> {
    let mut p = start.to_vec();
    let mut sum = residual_sum(samples, &plane.at(&p));
    let mut damping = 1e-3;
    for _ in 0..MOST_ITERATIONS {
        let here = plane.at(&p);
        if !sum.is_finite() {
            return None;
        }
        let (normal, gradient) = equations(samples, plane, &here);
        // A parameter at its bound that wants to go further stays there.
        let free: Vec<usize> = (0..p.len())
            .filter(|&j| p[j] > 0.0 || gradient[j] < 0.0)
            .collect();
        let mut next = None;
        while next.is_none() && sum > EXACT && damping < LARGEST_DAMPING {
            next = step(&normal, &gradient, &free, damping)
                .map(|step| moved(&p, &free, &step))
                .map(|p| (residual_sum(samples, &plane.at(&p)), p))
                .filter(|(there, _)| *there < sum);
            damping = if next.is_some() {
                (damping / 10.0).max(1e-9)
            } else {
                damping * 10.0
            };
        }
        let Some((there, to)) = next else {
            return Some(Minimum {
                coefficients: here,
                sum,
            });
        };
        let gain = (sum - there) / sum;
        (sum, p) = (there, to);
        if gain < SMALLEST_GAIN {
            break;
        }
    }
    sum.is_finite().then(|| Minimum {
        coefficients: plane.at(&p),
        sum,
    })
}

/// The smallest sum of squares among curves through `value` at `n`. `near`: coefficients to begin
/// at.
pub(crate) fn minimise_through(
    samples: &[Sample],
    n: f64,
    value: f64,
    near: &Coefficients,
) -> Option<Minimum> {
    let terms = terms(n);
    let scale = 1.0 / (value * dot(near, &terms));
    let mut best = Minimum {
        coefficients: near.map(|c| c * scale),
        sum: f64::INFINITY,
    };
    // The dependent coefficient must not become negative; where it comes near, another one takes
    // its part.
    for _ in 0..4 {
        let share = |j: usize| best.coefficients[j] * terms[j] * value;
        let dependent = (0..3).max_by(|&i, &j| share(i).total_cmp(&share(j)))?;
        let start: Vec<f64> = (0..3)
            .filter(|&j| j != dependent)
            .map(|j| best.coefficients[j])
            .collect();
        let found = minimise(samples, &Plane::through(n, value, dependent), &start)?;
        let left = found.coefficients[dependent] * terms[dependent] * value;
        best = found;
        if left > 0.05 {
            break;
        }
    }
    Some(best)
}

fn dot(a: &Coefficients, b: &Coefficients) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Infinite outside of the space.
fn residual_sum(samples: &[Sample], at: &Coefficients) -> f64 {
    if at.iter().any(|&c| c < 0.0) {
        return f64::INFINITY;
    }
    samples
        .iter()
        .map(|s| (s.log_value - value(at, s.level).ln()).powi(2))
        .sum()
}

/// J'J and J'r of the residuals r = log value + ln(1 / X), whose derivative is term / (1 / X).
fn equations(samples: &[Sample], plane: &Plane, at: &Coefficients) -> (Vec<Vec<f64>>, Vec<f64>) {
    let k = plane.columns.len();
    let (mut normal, mut gradient) = (vec![vec![0.0; k]; k], vec![0.0; k]);
    for sample in samples {
        let terms = terms(sample.level);
        let reciprocal = dot(at, &terms);
        let residual = sample.log_value + reciprocal.ln();
        let slopes: Vec<f64> = plane
            .columns
            .iter()
            .map(|column| dot(column, &terms) / reciprocal)
            .collect();
        for i in 0..k {
            gradient[i] += slopes[i] * residual;
            for j in 0..k {
                normal[i][j] += slopes[i] * slopes[j];
            }
        }
    }
    (normal, gradient)
}

/// The damped step of the free parameters, scaled by the diagonal so that units do not matter.
fn step(normal: &[Vec<f64>], gradient: &[f64], free: &[usize], damping: f64) -> Option<Vec<f64>> {
    let scale: Vec<f64> = free.iter().map(|&j| normal[j][j].sqrt()).collect();
    if scale.iter().any(|s| !s.is_normal()) {
        return None;
    }
    let scaled: Vec<Vec<f64>> = free
        .iter()
        .enumerate()
        .map(|(i, &row)| {
            free.iter()
                .enumerate()
                .map(|(j, &column)| {
                    normal[row][column] / scale[i] / scale[j] + if i == j { damping } else { 0.0 }
                })
                .collect()
        })
        .collect();
    let inverse = invert(&scaled)?;
    let step = inverse.iter().enumerate().map(|(i, row)| {
        let product: f64 = free
            .iter()
            .enumerate()
            .map(|(j, &column)| row[j] * gradient[column] / scale[j])
            .sum();
        -product / scale[i]
    });
    Some(step.collect())
}

fn moved(p: &[f64], free: &[usize], step: &[f64]) -> Vec<f64> {
    let mut to = p.to_vec();
    for (&j, step) in free.iter().zip(step) {
        to[j] = (to[j] + step).max(0.0);
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(coefficients: &Coefficients, levels: &[f64]) -> Vec<Sample> {
        levels
            .iter()
            .map(|&level| Sample {
                level,
                log_value: value(coefficients, level).ln(),
                block: 1,
            })
            .collect()
    }

    #[test]
    fn what_made_the_values_is_found_from_anywhere() {
        let levels = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0];
        for truth in [
            [1e-3, 2e-5, 3e-7],
            [1e-3, 0.0, 1e-6],
            [1e-3, 1e-4, 0.0],
            [0.0, 2.0, 1e-3],
        ] {
            for start in [[1.0, 1.0, 1.0], [1e-3, 1e-9, 1e-9], [1e-6, 1e-3, 0.0]] {
                let found = minimise(&samples(&truth, &levels), &Plane::whole(), &start).unwrap();
                assert!(found.sum < 1e-16, "{truth:?} from {start:?}: {found:?}");
                for (found, truth) in found.coefficients.iter().zip(truth) {
                    assert!((found - truth).abs() < 1e-5 * truth + 1e-9, "{found} {truth}");
                }
            }
        }
    }

    #[test]
    fn a_curve_goes_through_the_point_it_must() {
        let all = samples(&[1e-3, 2e-5, 3e-7], &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0]);
        for (n, factor) in [(1.0, 0.9), (30.0, 1.1), (30.0, 3.0), (200.0, 0.2)] {
            let aim = factor * value(&[1e-3, 2e-5, 3e-7], n);
            let found = minimise_through(&all, n, aim, &[1e-3, 2e-5, 3e-7]).unwrap();
            assert!((value(&found.coefficients, n) / aim - 1.0).abs() < 1e-9);
            assert!(found.coefficients.iter().all(|&c| c >= 0.0));
            assert!(found.sum > 1e-6);
            // No other curve through the point is better: a coarse look around.
            for i in 0..200_u32 {
                let w = f64::from(i % 20) / 20.0;
                let v = f64::from(i / 20) / 10.0;
                let shares = [(1.0 - w) / aim, w * (1.0 - v) / aim, w * v / aim];
                let terms = terms(n);
                if terms[2] > 0.0 {
                    let other = [shares[0] / terms[0], shares[1], shares[2] / terms[2]];
                    assert!(
                        residual_sum(&all, &other) >= found.sum * (1.0 - 1e-9),
                        "{n} {factor} {i}"
                    );
                }
            }
        }
    }
}
