//! How long a trial should measure: where the noise of trials is, and what it costs to begin one.
//!
//! The mean of a trial differs from that of the next one for two reasons: its seconds differ, which
//! longer trials cure, and each start differs (layout of memory, plans, caches, the state of the
//! host), which only more trials do. What takes least time for a given error follows from both and
//! from the time that a start costs (Kalibera & Jones 2013, *Rigorous benchmarking in reasonable
//! time*, ISMM, the section on dimensions of experiments).

use crate::changepoint::effective_sample_size;
use crate::matrix::count;

/// The variance of a trial's mean, in its two parts, both of logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NoiseParts {
    /// Between starts: what stays however long a trial measures. Zero where seconds alone explain
    /// all.
    pub between: f64,
    /// Within a trial, of one second: divided by the seconds it is what they leave in the mean.
    pub within: f64,
}

/// How trials of the best length compare with those that were run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialLength {
    /// Seconds to measure that take least time for the same error.
    pub best_s: f64,
    /// The time of the whole experiment with them, as a share of that with the trials that were
    /// run: at most 1.
    pub time: f64,
}

impl NoiseParts {
    /// From the noise floor (0.02 = 2 %), and a value for each second of trials that measure
    /// `measured_s` seconds. `None` without a trial of four values or more whose mean is above
    /// zero, and where no second differs from another.
    pub fn new(noise_floor: f64, trials: &[Vec<f64>], measured_s: f64) -> Option<NoiseParts> {
        let of_trial = |values: &Vec<f64>| {
            let mean = values.iter().sum::<f64>() / count(values.len());
            if values.len() < 4 || mean.is_nan() || mean <= 0.0 {
                return None;
            }
            let squares: f64 = values.iter().map(|value| (value / mean - 1.0).powi(2)).sum();
            // Seconds that follow one another are alike: the variance of the mean goes by
            // independent ones.
            let independent = effective_sample_size(values)?;
            Some(squares / count(values.len() - 1) / independent * count(values.len()))
        };
        let known: Vec<f64> = trials.iter().filter_map(of_trial).collect();
        if known.is_empty() || !(measured_s > 0.0 && noise_floor > 0.0) {
            return None;
        }
        let within = known.iter().sum::<f64>() / count(known.len());
        (within > 0.0).then(|| NoiseParts {
            between: (noise_floor.ln_1p().powi(2) - within / measured_s).max(0.0),
            within,
        })
    }

    /// The best length of trials, where each costs `overhead_s` seconds, more than none, besides
    /// those that it measures. `None` where a longer one is always better: no start differs from
    /// another.
    pub fn best_length(&self, overhead_s: f64, measured_s: f64) -> Option<TrialLength> {
        let best_s = (overhead_s * self.within / self.between).sqrt();
        let time = |length_s: f64| (overhead_s + length_s) * (self.between + self.within / length_s);
        best_s.is_finite().then(|| TrialLength {
            best_s,
            time: time(best_s) / time(measured_s),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::{SeedableRng, Xoshiro256PlusPlus, normal};

    /// Trials of `seconds` seconds that differ by `between` from start to start and by `within`
    /// from second to second.
    fn trials(between: f64, within: f64, seconds: usize) -> (f64, Vec<Vec<f64>>) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        let trials: Vec<Vec<f64>> = (0..2000)
            .map(|_| {
                let level = 1000.0 * (between * normal(&mut random)).exp();
                let second = |_| level * (within * normal(&mut random)).exp();
                (0..seconds).map(second).collect()
            })
            .collect();
        let means = trials
            .iter()
            .map(|t| (t.iter().sum::<f64>() / count(seconds)).ln());
        let means: Vec<f64> = means.collect();
        let mean = means.iter().sum::<f64>() / count(means.len());
        let variance = means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / count(means.len() - 1);
        (variance.sqrt().exp_m1(), trials)
    }

    #[test]
    fn both_parts_are_found() {
        let (floor, trials) = trials(0.01, 0.05, 25);
        let parts = NoiseParts::new(floor, &trials, 25.0).unwrap();
        // A fifth is what the effective size of so short a series is known to.
        assert!((parts.within.sqrt() / 0.05 - 1.0).abs() < 0.2, "{parts:?}");
        assert!((parts.between.sqrt() / 0.01 - 1.0).abs() < 0.3, "{parts:?}");
    }

    /// 4 seconds for a start, 1 % between starts, 5 % between seconds: 10 seconds are best, by
    /// hand.
    #[test]
    fn the_best_length_takes_least_time() {
        let parts = NoiseParts {
            between: 1e-4,
            within: 25e-4,
        };
        let found = parts.best_length(4.0, 10.0).unwrap();
        assert!(
            (found.best_s - 10.0).abs() < 1e-9 && (found.time - 1.0).abs() < 1e-9,
            "{found:?}"
        );
        for measured_s in [2.0, 5.0, 30.0, 300.0] {
            let found = parts.best_length(4.0, measured_s).unwrap();
            assert!(
                (found.best_s - 10.0).abs() < 1e-9 && found.time < 1.0,
                "{measured_s} {found:?}"
            );
        }
        let alike = NoiseParts {
            between: 0.0,
            ..parts
        };
        assert_eq!(alike.best_length(4.0, 10.0), None);
    }

    #[test]
    fn too_little_says_nothing() {
        assert_eq!(NoiseParts::new(0.02, &[], 10.0), None);
        assert_eq!(NoiseParts::new(0.02, &[vec![1.0, 2.0, 3.0]], 3.0), None);
        assert_eq!(NoiseParts::new(0.0, &[vec![1.0, 2.0, 1.0, 2.0]], 4.0), None);
        assert_eq!(NoiseParts::new(0.02, &[vec![0.0; 9]], 9.0), None);
        assert_eq!(
            NoiseParts::new(0.02, &[vec![7.0; 9]], 9.0),
            None,
            "no second differs"
        );
    }
}
