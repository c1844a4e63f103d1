//! Responses fitted to trials of real servers, as `benches/surfaces.sh` writes them.
//!
//! The logarithm of the figure is a sum of effects of settings, of products of two, and of blocks,
//! each with a prior variance (ridge regression in its dual form: Saunders, Gammerman & Vovk 1998).
//! How large the variances are is chosen by the errors without one trial at a time. Its form is
//! that of the Gaussian process among the methods that are compared (a sum, and products of two),
//! which it may favour; the kernels of their effects differ. What does not start are the points
//! that did not, and the limits on sums are those of the recorded search.

use crate::response::{Chance, Response, number};
use pgdyno_stats::{Dimension, Point, SearchLevel, Space};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

#[derive(Deserialize)]
pub(crate) struct Recorded {
    pub(crate) factors: Vec<Factor>,
    #[serde(default)]
    limits: Vec<Limit>,
    /// Trials at the beginning that are starting points.
    starts: usize,
    trials: Vec<Trial>,
}

#[derive(Deserialize)]
pub(crate) struct Factor {
    pub(crate) name: String,
    pub(crate) levels: Vec<String>,
    weights: Vec<f64>,
    relevance: f64,
    coordinates: Vec<Option<f64>>,
    /// Levels as numbers, as limits count them.
    #[serde(default)]
    amounts: Vec<f64>,
}

/// A sum of levels that no trial goes beyond.
#[derive(Deserialize)]
struct Limit {
    /// How often each factor's level counts.
    sum: BTreeMap<String, f64>,
    at_most: f64,
}

#[derive(Deserialize)]
struct Trial {
    block: u32,
    /// The logarithm of its figure; `None` where it failed.
    value: Option<f64>,
    point: Point,
}

/// Variances of effects of settings, of products of two, and of blocks, in units of a trial's own.
type Variances = [f64; 3];

impl Recorded {
    pub(crate) fn read(path: &str) -> Recorded {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn space(&self) -> Space {
        let dimensions = self.factors.iter().map(|factor| Dimension {
            levels: factor
                .weights
                .iter()
                .zip(&factor.coordinates)
                .map(|(&prior, &coordinate)| SearchLevel { coordinate, prior })
                .collect(),
            relevance: factor.relevance,
        });
        Space::new(dimensions.collect()).expect("a space")
    }

    /// Whether a point is within all limits.
    fn allowed(&self) -> impl Fn(&[usize]) -> bool + use<> {
        let of_limit = |limit: &Limit| {
            let each = self.factors.iter().map(|factor| {
                let times = limit.sum.get(&factor.name).copied().unwrap_or(0.0);
                // Below 0 a number is a word.
                let amounts = factor.amounts.iter().map(|amount| times * amount.max(0.0));
                amounts.collect::<Vec<f64>>()
            });
            (each.collect::<Vec<Vec<f64>>>(), limit.at_most)
        };
        let limits: Vec<(Vec<Vec<f64>>, f64)> = self.limits.iter().map(of_limit).collect();
        move |point| {
            limits.iter().all(|(each, most)| {
                let amounts = each.iter().zip(point).filter_map(|(of, level)| of.get(*level));
                amounts.sum::<f64>() <= *most
            })
        }
    }

    /// How alike two points are in their settings, and in products of two of them.
    fn alike(&self, a: &[usize], b: &[usize]) -> [f64; 2] {
        let (mut alone, mut squares) = (0.0, 0.0);
        for (factor, (&a, &b)) in self.factors.iter().zip(a.iter().zip(b)) {
            let own = factor.alike(a, b);
            alone += own;
            squares += own * own;
        }
        [alone, (alone * alone - squares) / 2.0]
    }

    /// The response, with the noise that the present state has had.
    pub(crate) fn response(self, seed: u64) -> Response {
        let finished: Vec<(&Trial, f64)> = self
            .trials
            .iter()
            .filter_map(|trial| Some((trial, trial.value?)))
            .collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / number(values.len());
        let values: Vec<f64> = finished.iter().map(|(_, value)| *value).collect();
        let middle = mean(&values);
        let centred: Vec<f64> = values.iter().map(|value| value - middle).collect();
        let kernel = |[one, two, of_block]: Variances| -> Vec<Vec<f64>> {
            let row = |a: &Trial| {
                let cell = |(b, _): &(&Trial, f64)| {
                    let [alone, pairs] = self.alike(&a.point, &b.point);
                    one * alone + two * pairs + if a.block == b.block { of_block } else { 0.0 }
                };
                finished.iter().map(cell).collect()
            };
            finished.iter().map(|(a, _)| row(a)).collect()
        };
        let fit = |variances: Variances| {
            let mut with_noise = kernel(variances);
            for (i, row) in with_noise.iter_mut().enumerate() {
                row[i] += 1.0;
            }
            let inverse = inverted(with_noise);
            let weights: Vec<f64> = inverse
                .iter()
                .map(|row| row.iter().zip(&centred).map(|(a, b)| a * b).sum())
                .collect();
            let left_out = weights
                .iter()
                .enumerate()
                .map(|(i, weight)| (weight / inverse[i][i]).powi(2));
            (left_out.sum::<f64>(), weights)
        };
        let mut best: Option<(f64, Variances, Vec<f64>)> = None;
        for one in [0.3, 1.0, 3.0, 10.0, 30.0, 100.0] {
            for two in [0.0, 0.03, 0.1, 0.3, 1.0, 3.0] {
                for of_block in [0.0, 0.3, 1.0] {
                    let variances = [one, two, of_block];
                    let (error, weights) = fit(variances);
                    if best.as_ref().is_none_or(|(least, ..)| error < *least) {
                        best = Some((error, variances, weights));
                    }
                }
            }
        }
        let (error, [one, two, _], weights) = best.expect("trials");
        let present: Vec<f64> = finished
            .iter()
            .filter(|(trial, _)| trial.point.iter().all(|level| *level == 0))
            .map(|(_, value)| *value)
            .collect();
        let of_present = mean(&present);
        let squares = present
            .iter()
            .map(|value| (value - of_present).powi(2))
            .sum::<f64>();
        let noise = (squares / number(present.len() - 1)).sqrt();
        let spread = centred.iter().map(|value| value * value).sum::<f64>();
        println!(
            "{} trials, {} failed; the response explains {:.0} % of their variance when each is left out; noise {:.1} %",
            self.trials.len(),
            self.trials.len() - finished.len(),
            100.0 * (1.0 - error / spread),
            100.0 * noise
        );
        let failed: Vec<Point> = self
            .trials
            .iter()
            .filter(|trial| trial.value.is_none())
            .map(|trial| trial.point.clone())
            .collect();
        let points: Vec<Point> = finished.iter().map(|(trial, _)| trial.point.clone()).collect();
        let starts = self.trials[..self.starts].iter().map(|trial| trial.point.clone());
        let (space, starts, allowed) = (self.space(), starts.collect(), self.allowed());
        let truth = move |point: &[usize]| {
            if failed.iter().any(|failed| failed == point) {
                return None;
            }
            let alike = points.iter().zip(&weights).map(|(other, weight)| {
                let [alone, pairs] = self.alike(point, other);
                weight * (one * alone + two * pairs)
            });
            Some(middle + alike.sum::<f64>())
        };
        let mut chance = Chance(Xoshiro256PlusPlus::seed_from_u64(seed));
        Response::new(
            (space, starts),
            (noise, 0.0),
            (Box::new(truth), Box::new(allowed)),
            &mut chance,
        )
    }
}

impl Factor {
    /// As an optimizer receives it.
    pub(crate) fn for_others(&self) -> Value {
        let is_scale = self.coordinates.iter().any(Option::is_some);
        json!({
            "name": self.name, "levels": self.levels, "weights": self.weights, "relevance": self.relevance,
            "scale": if is_scale { "log" } else { "none" },
        })
    }

    /// How alike two levels are: by their places and the squares of these where they have such,
    /// else whether they are the same.
    fn alike(&self, a: usize, b: usize) -> f64 {
        match (self.coordinates[a], self.coordinates[b]) {
            (Some(a), Some(b)) => {
                let (a, b) = (2.0 * a - 1.0, 2.0 * b - 1.0);
                a * b + (a * a - 0.5) * (b * b - 0.5)
            }
            _ if a == b => 1.0,
            _ => 0.0,
        }
    }
}

/// By Gauss and Jordan, of a matrix that is positive definite.
fn inverted(mut matrix: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let n = matrix.len();
    let mut inverse: Vec<Vec<f64>> = (0..n)
        .map(|i| (0..n).map(|j| if i == j { 1.0 } else { 0.0 }).collect())
        .collect();
    for pivot in 0..n {
        let scale = matrix[pivot][pivot];
        for of in [&mut matrix, &mut inverse] {
            of[pivot].iter_mut().for_each(|cell| *cell /= scale);
        }
        let own = [matrix[pivot].clone(), inverse[pivot].clone()];
        for row in (0..n).filter(|row| *row != pivot) {
            let times = matrix[row][pivot];
            for (of, own) in [&mut matrix, &mut inverse].into_iter().zip(&own) {
                of[row]
                    .iter_mut()
                    .zip(own)
                    .for_each(|(cell, own)| *cell -= times * own);
            }
        }
    }
    inverse
}
