//! The whole curve of a trial's response times, out of its stored histogram.

use hdrhistogram::Histogram;
use pgdyno_record::{DistributionPoint, Percentiles, TrialRecord, decoded_histogram};
use pgdyno_stats::{knows_percentile, mean_interval};

/// Points for each further nine of the percentile: from a half to 99.999 % they are 57.
const POINTS_PER_NINE: i32 = 12;
/// Where they begin: a half is 0.3 nines.
const FIRST: i32 = 4;
/// No load has so many transactions that more is known.
const NINES_MAX: i32 = 8;
/// Percentiles below the median.
const LOWER: &[f64] = &[0.0, 10.0, 20.0, 30.0, 40.0, 50.0];
/// Those that people ask for: the steps between would meet them but for the last digit.
const NAMED: &[f64] = &[75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999];
/// Points of a stored curve are of the same histogram: they differ by nothing but rounding.
const SAME_RATIO: f64 = 1e-3;

/// The curve with its last point, the longest response time; the stored points where there is no
/// histogram, or where it is not all that they are of: earlier versions did not store the waits of
/// transactions that were never begun.
pub(crate) fn curve(trial: &TrialRecord) -> Vec<DistributionPoint> {
    match whole(trial) {
        Some(histogram) => points(&histogram)
            .map(|point| with_interval(trial, point))
            .collect(),
        None => trial.distribution.clone(),
    }
}

/// With the interval that the trial has of that percentile.
fn with_interval(trial: &TrialRecord, point: DistributionPoint) -> DistributionPoint {
    let same = DistributionPoint::find(&trial.distribution, point.percentile);
    DistributionPoint {
        low_ms: same.and_then(|stored| stored.low_ms),
        high_ms: same.and_then(|stored| stored.high_ms),
        ..point
    }
}

/// The histogram of a trial with the waits of what was skipped, where it is there and holds all
/// that the trial's percentiles are of.
fn whole(trial: &TrialRecord) -> Option<Histogram<u64>> {
    let mut histogram = trial
        .histogram
        .as_deref()
        .and_then(|text| decoded_histogram(text).ok())?;
    if let Some(skipped) = trial
        .open_loop
        .skipped_histogram
        .as_deref()
        .and_then(|text| decoded_histogram(text).ok())
    {
        histogram.auto(true);
        histogram.add(skipped).ok()?;
    }
    let is_same = |point: &DistributionPoint| {
        (ms_at(&histogram, point.percentile) - point.ms).abs() <= point.ms * SAME_RATIO
    };
    let is_whole = !histogram.is_empty() && trial.distribution.iter().all(is_same);
    is_whole.then_some(histogram)
}

/// The response times of several trials together; `None` where one of them has no whole histogram.
pub(crate) fn together(trials: &[&TrialRecord]) -> Option<Together> {
    let each: Vec<Histogram<u64>> = trials.iter().map(|trial| whole(trial)).collect::<Option<_>>()?;
    let (first, others) = each.split_first()?;
    let mut all = first.clone();
    all.auto(true);
    for one in others {
        all.add(one).ok()?;
    }
    Some(Together { all, each })
}

/// Response times of several trials together.
pub(crate) struct Together {
    all: Histogram<u64>,
    /// Those of each trial.
    each: Vec<Histogram<u64>>,
}

impl Together {
    pub(crate) fn percentiles(&self) -> Percentiles {
        let at =
            |percentile| knows_percentile(self.all.len(), percentile).then(|| ms_at(&self.all, percentile));
        Percentiles {
            mean_ms: Some(self.all.mean() / 1e6),
            p50_ms: at(50.0),
            p95_ms: at(95.0),
            p99_ms: at(99.0),
            max_ms: at(100.0),
        }
    }

    /// At those of these percentiles that so many transactions determine, with intervals by how the
    /// trials differ: a jackknife that omits a trial at a time, on the log scale (source: Efron &
    /// Tibshirani, *An Introduction to the Bootstrap*, chapter 11), for transactions of one trial
    /// have too much in common to count each.
    pub(crate) fn distribution(&self, percentiles: impl Iterator<Item = f64>) -> Vec<DistributionPoint> {
        let known: Vec<f64> = percentiles
            .filter(|at| knows_percentile(self.all.len(), *at))
            .collect();
        let logs = |histogram: &Histogram<u64>| -> Vec<f64> {
            known
                .iter()
                .map(|&percentile| ms_at(histogram, percentile).ln())
                .collect()
        };
        let without = self
            .each
            .iter()
            .filter(|_| self.each.len() > 1)
            .filter_map(|one| {
                let mut rest = self.all.clone();
                rest.subtract(one).ok()?;
                (!rest.is_empty()).then(|| logs(&rest))
            });
        let without: Vec<Vec<f64>> = without.collect();
        let points = known.iter().zip(logs(&self.all)).enumerate();
        points
            .map(|(place, (&percentile, log_ms))| {
                let rests: Vec<f64> = without.iter().map(|logs| logs[place]).collect();
                let half = jackknife(log_ms, &rests);
                DistributionPoint {
                    low_ms: half.map(|half| (log_ms - half).exp()),
                    high_ms: half.map(|half| (log_ms + half).exp()),
                    ..DistributionPoint::new(percentile, log_ms.exp())
                }
            })
            .collect()
    }
}

/// Half the width of the interval of an estimate, by the estimates without a part each; `None` of
/// fewer than two.
fn jackknife(all: f64, without: &[f64]) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a number of trials")]
    let n = without.len() as f64;
    let pseudo: Vec<f64> = without.iter().map(|rest| n * all - (n - 1.0) * rest).collect();
    let found = mean_interval(&pseudo, DistributionPoint::CONFIDENCE).filter(|_| pseudo.len() > 1)?;
    Some((found.high - found.low) / 2.0).filter(|half| half.is_finite())
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds within an hour")]
fn ms_at(histogram: &Histogram<u64>, percentile: f64) -> f64 {
    histogram.value_at_percentile(percentile) as f64 / 1e6
}

fn points(histogram: &Histogram<u64>) -> impl Iterator<Item = DistributionPoint> + '_ {
    let steps = (FIRST..=NINES_MAX * POINTS_PER_NINE)
        .filter(|step| step % POINTS_PER_NINE != 0)
        .map(|step| 100.0 * (1.0 - 10_f64.powf(-f64::from(step) / f64::from(POINTS_PER_NINE))));
    let mut percentiles: Vec<f64> = LOWER
        .iter()
        .chain(NAMED)
        .copied()
        .chain(steps)
        .filter(|p| knows_percentile(histogram.len(), *p))
        .collect();
    percentiles.sort_by(f64::total_cmp);
    percentiles.push(100.0);
    let points = percentiles.into_iter();
    points.map(|percentile| DistributionPoint::new(percentile, ms_at(histogram, percentile)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_record::encoded_histogram;

    /// Of 1 to `most` tenths of a millisecond each once.
    fn trial(most: u64, stored: &[(f64, f64)]) -> TrialRecord {
        let mut histogram = Histogram::<u64>::new_with_bounds(1000, 3_600_000_000_000, 3).unwrap();
        (1..=most).for_each(|tenth| histogram.record(tenth * 100_000).unwrap());
        let distribution = stored
            .iter()
            .map(|&(percentile, ms)| DistributionPoint::new(percentile, ms));
        TrialRecord {
            histogram: Some(encoded_histogram(&histogram)),
            distribution: distribution.collect(),
            ..TrialRecord::begun(1, 1, "a")
        }
    }

    #[test]
    fn percentiles_of_several_trials_are_those_of_all_their_transactions() {
        // 1000 transactions of at most 100 ms and 9000 of at most 900 ms: the mean of the two
        // medians is 250 ms.
        let trials = [trial(1000, &[]), trial(9000, &[])];
        let both = together(&[&trials[0], &trials[1]]).unwrap();
        let found = both.percentiles();
        let check = |found: Option<f64>, expected: f64| {
            let found = found.unwrap();
            assert!((found / expected - 1.0).abs() < 2e-3, "{found} {expected}");
        };
        check(found.p50_ms, 400.0);
        check(found.p99_ms, 890.0);
        check(found.max_ms, 900.0);
        check(found.mean_ms, (1000.0 * 50.05 + 9000.0 * 450.05) / 10_000.0);
        let points = both.distribution([50.0, 99.9, 99.99].into_iter());
        assert_eq!(points.len(), 2, "of 10,000 transactions ten are beyond 99.9 %");
        // Medians of 400 ms together and of 50 and 450 ms apart: two trials say next to nothing.
        let (low, high) = (points[0].low_ms.unwrap(), points[0].high_ms.unwrap());
        assert!(
            low < 50.0 && high > 450.0 && low < points[0].ms && points[0].ms < high,
            "{points:?}"
        );
        let alike = together(&[&trials[1], &trials[1], &trials[1]]).unwrap();
        let [median] = &alike.distribution([50.0].into_iter())[..] else {
            panic!("a median")
        };
        assert!(
            (median.high_ms.unwrap() / median.low_ms.unwrap() - 1.0).abs() < 1e-9,
            "{median:?}"
        );
        let alone = together(&[&trials[0]]).unwrap().distribution([50.0].into_iter());
        assert_eq!((alone[0].low_ms, alone[0].high_ms), (None, None));
        // A histogram that lacks what its trial's percentiles count, and none at all.
        let partial = trial(1000, &[(50.0, 700.0)]);
        assert!(together(&[&trials[0], &partial]).is_none());
        assert!(together(&[&trials[0], &TrialRecord::begun(1, 1, "a")]).is_none());
        assert!(together(&[]).is_none());
    }

    #[test]
    fn a_curve_goes_as_far_as_there_are_transactions() {
        let check = |most: u64, points: usize, last_known: f64| {
            let curve = curve(&trial(most, &[(50.0, most as f64 / 20.0)]));
            assert_eq!(curve.len(), points, "{most}");
            assert!(
                curve.is_sorted_by(|a, b| a.percentile < b.percentile && a.ms <= b.ms),
                "{curve:?}"
            );
            let [.., known, last] = &curve[..] else {
                panic!("{curve:?}")
            };
            assert!((known.percentile - last_known).abs() < 1e-9, "{known:?}");
            assert!(
                (last.percentile - 100.0).abs() < 1e-9 && (last.ms / (most as f64 / 10.0) - 1.0).abs() < 2e-3
            );
            for point in curve.iter().filter(|point| point.percentile > 1.0) {
                let expected = point.percentile / 100.0 * most as f64 / 10.0;
                assert!(
                    (point.ms / expected - 1.0).abs() < 0.01 || most < 1000,
                    "{point:?}"
                );
            }
        };
        check(1000, 30, 99.0);
        check(1_000_000, 66, 99.999);
    }

    #[test]
    fn what_the_histogram_does_not_hold_is_not_drawn_by_it() {
        let check = |mut trial: TrialRecord, histogram: Option<&str>| {
            if let Some(histogram) = histogram {
                trial.histogram = Some(histogram.to_owned()).filter(|text| !text.is_empty());
            }
            assert_eq!(curve(&trial), trial.distribution);
        };
        // Transactions that were never begun had waited for a second.
        check(trial(1000, &[(50.0, 50.0), (99.0, 1000.0)]), None);
        check(trial(1000, &[(50.0, 50.0)]), Some(""));
        check(trial(1000, &[(50.0, 50.0)]), Some("AAAA"));
        check(trial(0, &[]), None);
    }
}
