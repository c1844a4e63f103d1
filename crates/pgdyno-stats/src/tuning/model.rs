//! What a model of trials says of a point, and the values that it is fitted to.

use super::space::SearchTrial;
use crate::matrix::count;

/// What is believed of a point's value, in units of [`Scaled`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Belief {
    pub(super) mean: f64,
    /// Standard deviation of the point's own value, without the noise of a trial.
    pub(super) sd: f64,
}

/// A model of trials.
pub(super) trait Surrogate {
    fn believe(&self, point: &[usize]) -> Belief;
}

/// Values of trials around 0, with a spread of about 1. What is far below the middle is drawn near,
/// as nobody asks how bad the bad ones are, and a trial that failed is a little worse than the
/// worst.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scaled {
    pub(super) values: Vec<f64>,
    /// Middle of the logarithms, and how much of them is 1.
    middle: f64,
    unit: f64,
}

/// Limits of the unit: settings change a throughput by a few percent to a few times.
const UNIT_MIN: f64 = 0.08;
const UNIT_MAX: f64 = 0.5;
/// Below this a value is drawn near.
const FAR: f64 = -1.5;
const FAILED_BELOW_WORST: f64 = 0.5;

impl Scaled {
    pub(super) fn of(trials: &[SearchTrial]) -> Scaled {
        let all = || trials.iter().filter(|trial| trial.value.is_some());
        // What breaks a bound is far from what is looked for, however many do.
        let keeping = || all().filter(|trial| trial.keeps_bounds);
        let values =
            |of: &mut dyn Iterator<Item = &SearchTrial>| of.filter_map(|trial| trial.value).collect();
        let mut known: Vec<f64> = match keeping().count() {
            0 | 1 => values(&mut all()),
            _ => values(&mut keeping()),
        };
        known.sort_by(f64::total_cmp);
        let middle = match known.len() {
            0 => 0.0,
            n => f64::midpoint(known[(n - 1) / 2], known[n / 2]),
        };
        let upper = known.iter().filter(|value| **value >= middle);
        let squares: f64 = upper.clone().map(|value| (value - middle).powi(2)).sum();
        let unit = (squares / count(upper.count().max(1)))
            .sqrt()
            .clamp(UNIT_MIN, UNIT_MAX);
        let near = |value: f64| {
            let value = (value - middle) / unit;
            match value < FAR {
                true => FAR - (1.0 + FAR - value).ln(),
                false => value,
            }
        };
        let worst = trials
            .iter()
            .filter_map(|trial| trial.value)
            .min_by(f64::total_cmp);
        let worst = worst.map_or(0.0, near);
        let failed = worst.min(0.0) - FAILED_BELOW_WORST;
        Scaled {
            values: trials
                .iter()
                .map(|trial| trial.value.map_or(failed, near))
                .collect(),
            middle,
            unit,
        }
    }

    /// The logarithm that a belief means, with its standard deviation.
    pub(super) fn logarithm(&self, belief: Belief) -> (f64, f64) {
        let near = belief.mean;
        // What was drawn near is as far as it was measured, and a step there as much longer.
        let (value, stretch) = match near < FAR {
            true => (1.0 + FAR - (FAR - near).exp(), (FAR - near).exp()),
            false => (near, 1.0),
        };
        (self.middle + value * self.unit, belief.sd * stretch * self.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_values_are_drawn_near_and_failures_are_below_the_worst() {
        let trial = |value| SearchTrial {
            point: vec![0],
            value,
            block: 1,
            keeps_bounds: true,
            holds: true,
            ended_by_guard: false,
        };
        let trials = [0.0, 0.2, 0.4, -9.0].map(Some).map(trial);
        let scaled = Scaled::of(&[trials.as_slice(), &[trial(None)]].concat());
        let order = [4, 3, 0, 1, 2].map(|i| scaled.values[i]);
        assert!(order.is_sorted(), "{order:?}");
        assert!(order[1] > -6.0 && order[0] > order[1] - 1.0, "{order:?}");
        for (i, expected) in [(2, 0.4), (3, -9.0)] {
            let (found, _) = scaled.logarithm(Belief {
                mean: scaled.values[i],
                sd: 1.0,
            });
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
        assert_eq!(Scaled::of(&[]).values, [0.0; 0]);
    }

    #[test]
    fn many_that_break_a_bound_leave_the_scale_to_those_that_keep_it() {
        let trial = |value, keeps_bounds| SearchTrial {
            point: vec![0],
            value: Some(value),
            block: 1,
            keeps_bounds,
            holds: true,
            ended_by_guard: false,
        };
        let keeping = [6.9, 6.95, 7.0, 7.05, 7.1].map(|value| trial(value, true));
        let breaking = [3.6, 3.65, 3.7, 3.75, 3.7, 3.7, 3.7].map(|value| trial(value, false));
        let alone = Scaled::of(&keeping);
        let together = Scaled::of(&[&keeping[..], &breaking].concat());
        assert_eq!(together.values[..5], alone.values[..]);
        assert!(
            together.values[5..]
                .iter()
                .all(|value| *value < alone.values[0] - 1.0)
        );
    }
}
