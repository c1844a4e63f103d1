//! The distribution of a load's response times, each point with its interval.

use pgdyno_engine::hdrhistogram::Histogram;
use pgdyno_engine::{Books, Heat, percentile_ms};
use pgdyno_record::DistributionPoint;
use pgdyno_stats::{independent_share, percentile_interval};

/// Percentiles that a curve needs; those for which there are too few transactions are omitted.
const CURVE: [f64; 15] = [
    0.0, 10.0, 25.0, 50.0, 75.0, 80.0, 85.0, 90.0, 95.0, 97.5, 99.0, 99.5, 99.9, 99.95, 99.99,
];

/// Points of the distribution; `books` are those behind the first `cut_s` seconds of the heat's.
/// How much of the response times is independent is seen in how the share of the slower ones
/// changes from stretch to stretch of the measured time.
pub(crate) fn distribution(books: &Books, heat: &Heat, cut_s: u32) -> Vec<DistributionPoint> {
    let all = books.response_or_wait_ns();
    let points = CURVE.into_iter().filter_map(|percentile| {
        let ms = percentile_ms(&all, percentile)?;
        let (low_ms, high_ms) = interval_ms(&all, heat, cut_s, percentile);
        Some(DistributionPoint {
            low_ms,
            high_ms,
            ..DistributionPoint::new(percentile, ms)
        })
    });
    points.collect()
}

fn interval_ms(all: &Histogram<u64>, heat: &Heat, cut_s: u32, percentile: f64) -> (Option<f64>, Option<f64>) {
    let share = independent_share(&heat.beyond(all.value_at_percentile(percentile), cut_s));
    let Ok(n) = usize::try_from(all.len()) else {
        return (None, None);
    };
    #[expect(
        clippy::cast_precision_loss,
        reason = "ranks of transactions, nanoseconds within an hour"
    )]
    let at = |rank: usize| all.value_at_quantile((rank as f64 - 0.5) / n as f64) as f64 / 1e6;
    percentile_interval(
        n,
        percentile / 100.0,
        DistributionPoint::CONFIDENCE,
        share * n as f64,
    )
    .map_or((None, None), |ranks| {
        (ranks.low_rank.map(at), ranks.high_rank.map(at))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_engine::LoadResult;

    /// The tenth of a millisecond that each has, a thousand different ones.
    fn books() -> Books {
        let mut books = LoadResult::empty().measured;
        (1..=1000_u64).for_each(|tenth| books.response_ns.record(tenth * 100_000).unwrap());
        books
    }

    #[test]
    fn each_point_with_enough_transactions_has_its_interval() {
        let points = distribution(&books(), &Heat::default(), 0);
        let last = points.last().unwrap();
        assert!((last.percentile - 99.0).abs() < 1e-9, "{last:?}");
        let median = points.iter().find(|point| point.percentile == 50.0).unwrap();
        // Ranks 469 and 532 of a thousand, by the binomial distribution.
        let check = |found: Option<f64>, expected: f64| {
            let found = found.unwrap();
            assert!((found / expected - 1.0).abs() < 2e-3, "{found} {expected}");
        };
        check(median.low_ms, 46.9);
        check(median.high_ms, 53.2);
        check(last.low_ms, 98.3);
        check(last.high_ms, 99.6);
        let shortest = &points[0];
        assert_eq!((shortest.percentile, shortest.low_ms), (0.0, None));
    }

    #[test]
    fn a_load_without_transactions_has_no_points() {
        assert_eq!(
            distribution(&LoadResult::empty().measured, &Heat::default(), 0),
            []
        );
    }
}
