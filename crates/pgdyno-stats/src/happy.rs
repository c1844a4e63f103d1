//! The happy zone: the client counts with at least 95 % of the peak throughput and a response time
//! not yet past the knee.
//!
//! The knee is where the curve of response time over clients bends upwards most. Both axes are
//! logarithmic, for ladders of clients are: with a fixed number of clients and no pauses Little's
//! law makes the response time clients / throughput, so the curve is flat while throughput grows
//! with the clients, and has slope 1 where clients only wait for one another. Measured values are
//! first made to never fall by the nearest such curve (pool adjacent violators; source: Barlow,
//! Bartholomew, Bremner & Brunk, *Statistical Inference under Order Restrictions*, 1972). Then both
//! axes are brought to 0..1, and the knee is the measured point furthest below the diagonal
//! (source: the idea of Kneedle: Satopaa, Albrecht, Irwin & Raghavan, "Finding a 'Kneedle' in a
//! Haystack", ICDCS workshops 2011; no smoothing spline, one knee).

use crate::best::{At, Best, LevelPoint, best_where};
use crate::spread::count;
use crate::summary::{MeanInterval, mean_interval};
use serde::Serialize;

/// A trial with a number of clients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadPoint {
    /// Block of trials that it is of.
    pub block: u32,
    /// Clients; 0 is skipped.
    pub clients: u32,
    /// Throughput, transactions per second; what is not finite and positive is skipped.
    pub tps: f64,
    /// 99th percentile of the response time, ms; `None` where it is not known.
    pub p99_ms: Option<f64>,
}

impl At for LoadPoint {
    fn at(&self) -> LevelPoint {
        LevelPoint {
            block: self.block,
            level: self.clients,
            value: self.tps,
        }
    }
}

/// What ends a zone of client counts on one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum Edge {
    /// The next measured client count has less than 95 % of the peak.
    Throughput,
    /// The next measured client count is past the knee of response time.
    Knee,
    /// No client count beyond was measured: the zone may go on.
    Unmeasured,
}

/// Why no knee is found in the response times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoKnee {
    /// A bend needs three points.
    #[error("a knee needs response times at three or more client counts")]
    TooFewPoints,
    /// The response time grows so little that a bend in it would be noise.
    #[error("the response time hardly grows over the measured client counts: measure more clients")]
    Flat,
    /// It grows evenly from the first point on.
    #[error(
        "the response time grows evenly with the clients from the first measured count on: measure fewer clients"
    )]
    Straight,
}

/// What was found. All client counts are measured ones.
#[derive(Debug, Clone, PartialEq)]
pub struct HappyZone {
    /// Lowest client count of the zone.
    pub lowest_clients: u32,
    /// Highest client count of the zone.
    pub highest_clients: u32,
    /// What ends the zone below; never `Knee`.
    pub lower_edge: Edge,
    /// What ends the zone above.
    pub upper_edge: Edge,
    /// The client count of the zone with the most throughput.
    pub best_clients: u32,
    /// The client count with the most throughput of all; past the knee it is no longer in the zone.
    pub peak_clients: u32,
    /// The throughput there, transactions per second, of blocks that had no say in its choice (see
    /// [`Best::by_block`]). A single block chooses for itself, and one value has no spread: its
    /// bounds are the value itself.
    pub peak_tps: MeanInterval,
    /// The highest client count not past the knee of response time.
    pub knee: Result<u32, NoKnee>,
    /// 95 % of the peak is reached only past the knee: who wants that throughput pays in response
    /// time. The zone is then the lowest client count that reaches it.
    pub past_knee: bool,
}

/// The share of the peak that belongs to the zone (the project's definition of a happy zone).
const NEAR_PEAK: f64 = 0.95;
/// A response time that grows by less than this factor in all has no knee: trials of one and the
/// same load differ by tens of percent in their 99th percentile.
const LEAST_GROWTH: f64 = 1.5;
/// A bend of less than a tenth of the way is not distinguished from none; a right angle in the
/// middle is 0.5.
const LEAST_BEND: f64 = 0.1;

/// Finds the zone. Points may come in any order, and several of one client count count as one (all
/// trials, the mean of the response times). `None` without a usable point or for a confidence
/// outside of 0 to 1; a single point is a zone whose ends were not measured.
pub fn happy_zone(points: &[LoadPoint], confidence: f64) -> Option<HappyZone> {
    let steps = merged(points);
    if !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let means: Vec<f64> = steps.iter().map(Step::mean).collect();
    let peak = largest(&means, 0, steps.len())?;
    let knee = knee(&steps);
    let near = |i: usize| means[i] >= NEAR_PEAK * means[peak];
    // Unbroken from the peak: a dip below 95 % ends the zone.
    let first = (0..=peak).rev().take_while(|&i| near(i)).last()?;
    let last = (peak..steps.len()).take_while(|&i| near(i)).last()?;
    let past = |i: usize| knee.is_ok_and(|knee| steps[i].clients > knee);
    let past_knee = past(first);
    let highest = (first..=last).take_while(|&i| i == first || !past(i)).last()?;
    let upper_edge = if highest < last {
        Edge::Knee
    } else if last + 1 < steps.len() {
        Edge::Throughput
    } else {
        Edge::Unmeasured
    };
    Some(HappyZone {
        lowest_clients: steps[first].clients,
        highest_clients: steps[highest].clients,
        lower_edge: if first > 0 {
            Edge::Throughput
        } else {
            Edge::Unmeasured
        },
        upper_edge,
        best_clients: steps[largest(&means, first, highest + 1)?].clients,
        peak_clients: steps[peak].clients,
        peak_tps: peak_tps(points, &steps[peak], confidence)?,
        knee,
        past_knee,
    })
}

/// The throughput at the peak, by blocks that had no say in where it is; of a single block by its
/// trials.
fn peak_tps(points: &[LoadPoint], peak: &Step, confidence: f64) -> Option<MeanInterval> {
    let best = best_clients(points, None).filter(|best| best.by_others);
    let values: Option<Vec<f64>> = best.map(|best| best.by_block.iter().map(|(_, tps)| *tps).collect());
    mean_interval(values.as_ref().unwrap_or(&peak.tps), confidence)
}

/// The client count with the most throughput among those whose mean response time keeps a limit;
/// with a limit, client counts of unknown response time are skipped. `None` where nothing is left.
pub fn best_clients(points: &[LoadPoint], p99_limit_ms: Option<f64>) -> Option<Best> {
    let usable: Vec<LoadPoint> = points.iter().filter(|point| is_usable(point)).copied().collect();
    best_where(&usable, |of_level: &[LoadPoint]| {
        p99_limit_ms.is_none_or(|limit| p99_ms(of_level).is_some_and(|p99| p99 <= limit))
    })
}

fn is_usable(point: &LoadPoint) -> bool {
    point.clients > 0 && point.tps.is_finite() && point.tps > 0.0
}

/// Mean of the response times that are known.
fn p99_ms(points: &[LoadPoint]) -> Option<f64> {
    let known = points.iter().filter_map(|point| point.p99_ms);
    let times: Vec<f64> = known.filter(|ms| ms.is_finite() && *ms > 0.0).collect();
    (!times.is_empty()).then(|| times.iter().sum::<f64>() / count(times.len()))
}

/// All that was measured with one client count.
struct Step {
    clients: u32,
    tps: Vec<f64>,
    p99_ms: Option<f64>,
}

impl Step {
    fn mean(&self) -> f64 {
        self.tps.iter().sum::<f64>() / count(self.tps.len())
    }
}

/// By client count, upwards; only those with a throughput.
fn merged(points: &[LoadPoint]) -> Vec<Step> {
    let mut sorted: Vec<LoadPoint> = points.iter().filter(|point| is_usable(point)).copied().collect();
    sorted.sort_by_key(|p| p.clients);
    let steps = sorted.chunk_by(|a, b| a.clients == b.clients).map(|group| Step {
        clients: group[0].clients,
        tps: group.iter().map(|point| point.tps).collect(),
        p99_ms: p99_ms(group),
    });
    steps.collect()
}

/// Where the largest of `values[from..to]` is; the first of equal ones.
fn largest(values: &[f64], from: usize, to: usize) -> Option<usize> {
    (from..to).reduce(|best, i| if values[i] > values[best] { i } else { best })
}

fn knee(steps: &[Step]) -> Result<u32, NoKnee> {
    let known: Vec<(u32, f64)> = steps
        .iter()
        .filter_map(|step| step.p99_ms.map(|ms| (step.clients, ms.ln())))
        .collect();
    if known.len() < 3 {
        return Err(NoKnee::TooFewPoints);
    }
    let heights = never_falling(&known.iter().map(|&(_, log_ms)| log_ms).collect::<Vec<f64>>());
    let at = |i: usize| f64::from(known[i].0).ln();
    let (end, lowest) = (known.len() - 1, heights[0]);
    let growth = heights[end] - lowest;
    if growth < LEAST_GROWTH.ln() {
        return Err(NoKnee::Flat);
    }
    let below: Vec<f64> = (0..=end)
        .map(|i| (at(i) - at(0)) / (at(end) - at(0)) - (heights[i] - lowest) / growth)
        .collect();
    let deepest = largest(&below, 0, below.len()).filter(|&i| below[i] >= LEAST_BEND);
    deepest.map(|i| known[i].0).ok_or(NoKnee::Straight)
}

/// The nearest sequence (least squares) that never falls: neighbours in the wrong order become
/// their mean.
fn never_falling(values: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for &value in values {
        let mut pool = (value, 1);
        while let Some(&(mean, n)) = pools.last().filter(|before| before.0 > pool.0) {
            pools.pop();
            let all = count(n) + count(pool.1);
            pool = ((mean * count(n) + pool.0 * count(pool.1)) / all, n + pool.1);
        }
        pools.push(pool);
    }
    pools
        .iter()
        .flat_map(|&(mean, n)| std::iter::repeat_n(mean, n))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn points(all: &[(u32, f64, f64)]) -> Vec<LoadPoint> {
        all.iter()
            .map(|&(clients, tps, p99_ms)| LoadPoint {
                block: 1,
                clients,
                tps,
                p99_ms: (p99_ms > 0.0).then_some(p99_ms),
            })
            .collect()
    }

    struct Expected {
        zone: (u32, u32),
        edges: (Edge, Edge),
        best: u32,
        knee: Result<u32, NoKnee>,
        past_knee: bool,
    }

    fn check(all: &[(u32, f64, f64)], expected: Expected) {
        let found = happy_zone(&points(all), 0.95).unwrap();
        assert_eq!(
            (found.lowest_clients, found.highest_clients),
            expected.zone,
            "{found:?}"
        );
        assert_eq!((found.lower_edge, found.upper_edge), expected.edges, "{found:?}");
        assert_eq!(found.best_clients, expected.best, "{found:?}");
        assert_eq!(found.knee, expected.knee, "{found:?}");
        assert_eq!(found.past_knee, expected.past_knee, "{found:?}");
    }

    #[test]
    fn a_plateau_ends_at_the_knee() {
        use Edge::{Knee, Throughput, Unmeasured};
        // A right angle at 20: throughput grows with the clients, then they wait for one another.
        check(
            &[
                (1, 500.0, 2.0),
                (2, 1000.0, 2.0),
                (5, 2500.0, 2.0),
                (10, 5000.0, 2.0),
                (20, 9900.0, 2.1),
                (50, 10_000.0, 5.0),
                (100, 9900.0, 10.0),
                (200, 9000.0, 22.0),
            ],
            Expected {
                zone: (20, 20),
                edges: (Throughput, Knee),
                best: 20,
                knee: Ok(20),
                past_knee: false,
            },
        );
        // A soft bend: 95 % of the peak only past the knee.
        check(
            &[
                (1, 900.0, 1.0),
                (4, 3000.0, 1.2),
                (16, 7000.0, 2.0),
                (64, 10_000.0, 7.0),
                (256, 10_500.0, 30.0),
                (512, 10_100.0, 60.0),
            ],
            Expected {
                zone: (64, 64),
                edges: (Throughput, Knee),
                best: 64,
                knee: Ok(16),
                past_knee: true,
            },
        );
        // It falls again before response time matters.
        check(
            &[
                (1, 100.0, 5.0),
                (2, 190.0, 5.1),
                (4, 300.0, 5.2),
                (8, 295.0, 5.3),
                (16, 200.0, 5.4),
            ],
            Expected {
                zone: (4, 8),
                edges: (Throughput, Throughput),
                best: 4,
                knee: Err(NoKnee::Flat),
                past_knee: false,
            },
        );
        // Saturated from the first point on.
        check(
            &[(10, 1000.0, 10.0), (20, 1000.0, 20.0), (40, 1010.0, 40.0)],
            Expected {
                zone: (10, 40),
                edges: (Unmeasured, Unmeasured),
                best: 40,
                knee: Err(NoKnee::Straight),
                past_knee: false,
            },
        );
    }

    #[test]
    fn few_points_are_a_zone_with_open_ends() {
        use Edge::{Throughput, Unmeasured};
        let of = |zone, edges, best| Expected {
            zone,
            edges,
            best,
            knee: Err(NoKnee::TooFewPoints),
            past_knee: false,
        };
        check(&[(8, 100.0, 1.0)], of((8, 8), (Unmeasured, Unmeasured), 8));
        check(
            &[(8, 100.0, 1.0), (4, 60.0, 1.0)],
            of((8, 8), (Throughput, Unmeasured), 8),
        );
        check(
            &[(1, 50.0, 0.0), (2, 100.0, 0.0), (4, 90.0, 0.0)],
            of((2, 2), (Throughput, Throughput), 2),
        );
        assert_eq!(happy_zone(&[], 0.95), None);
        assert_eq!(
            happy_zone(&points(&[(8, f64::NAN, 1.0), (0, 5.0, 1.0)]), 0.95),
            None
        );
        assert_eq!(happy_zone(&points(&[(8, 5.0, 1.0)]), 1.0), None);
    }

    #[test]
    fn trials_of_one_client_count_are_put_together() {
        let all = points(&[(8, 9.0, 1.0), (8, 10.0, 1.2), (8, 11.0, 1.4), (16, 5.0, 9.0)]);
        let found = happy_zone(&all, 0.95).unwrap();
        assert_eq!(found.peak_clients, 8);
        assert_eq!(found.peak_tps, mean_interval(&[9.0, 10.0, 11.0], 0.95).unwrap());
    }

    #[test]
    fn a_limit_of_response_time_leaves_points_out() {
        let all = points(&[
            (8, 90.0, 1.0),
            (16, 100.0, 5.0),
            (32, 120.0, 50.0),
            (64, 200.0, 0.0),
        ]);
        let check = |limit, expected| {
            let found = best_clients(&all, limit).map(|best| best.level);
            assert_eq!(found, expected, "{limit:?}");
        };
        check(None, Some(64));
        check(Some(50.0), Some(32));
        check(Some(5.0), Some(16));
        check(Some(0.5), None);
    }

    #[test]
    fn blocks_choose_for_one_another() {
        let of = |block, clients, tps| LoadPoint {
            block,
            clients,
            tps,
            p99_ms: None,
        };
        // Each block is best with the count that the other one would not choose.
        let two = [
            of(1, 8, 100.0),
            of(1, 16, 110.0),
            of(2, 8, 130.0),
            of(2, 16, 95.0),
        ];
        let found = best_clients(&two, None).unwrap();
        assert_eq!((found.level, found.by_others), (8, true));
        assert_eq!(found.by_block, [(1, 100.0), (2, 95.0)]);
        // Nor has the peak the luck of its choice: (130 + 100) / 2 are measured there, more than
        // what such choices give.
        let zone = happy_zone(&two, 0.95).unwrap();
        assert_eq!(
            (zone.peak_clients, zone.peak_tps),
            (8, mean_interval(&[100.0, 95.0], 0.95).unwrap())
        );
        // A block without the others' choice has nothing to say; a single block has its own.
        let found = best_clients(&two[..3], None).unwrap();
        assert_eq!(found.by_block, [(1, 100.0)]);
        let found = best_clients(&two[..2], None).unwrap();
        assert_eq!((found.level, found.by_others), (16, false));
        assert_eq!(found.by_block, [(1, 110.0)]);
    }

    proptest! {
        #[test]
        fn a_zone_is_always_in_order(
            values in prop::collection::vec((1_u32..2000, 1.0_f64..1e5, 0.1_f64..1e4), 1..12),
        ) {
            let found = happy_zone(&points(&values), 0.95).unwrap();
            prop_assert!(found.lowest_clients <= found.best_clients && found.best_clients <= found.highest_clients);
            if let (Ok(knee), false) = (found.knee, found.past_knee) {
                prop_assert!(found.highest_clients <= knee);
            }
        }

        #[test]
        fn the_nearest_sequence_never_falls_and_keeps_the_sum(values in prop::collection::vec(-5.0_f64..5.0, 0..20)) {
            let found = never_falling(&values);
            prop_assert!(found.windows(2).all(|w| w[0] <= w[1]));
            prop_assert!((found.iter().sum::<f64>() - values.iter().sum::<f64>()).abs() < 1e-9);
        }
    }
}
