//! Values of the last minutes, and what sessions waited for, second by second.

use pgdyno_server::series::WaitSample;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// As much as one looks back in a terminal.
pub(crate) const KEPT: Duration = Duration::from_secs(600);
/// A ring holds no more points than this, however short the interval: two minutes at ten a second.
const POINTS_MAX: usize = 1200;
/// Events of one second that are kept: a server has fewer.
const EVENTS_MAX: usize = 500;
/// Seconds of waits that are kept.
const SECONDS_MAX: usize = 600;

/// A value, when it was read, and from when on it counts if it is a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) at: Instant,
    pub(crate) since: Option<Instant>,
    pub(crate) value: f64,
}

/// The last points of one metric.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ring(VecDeque<Point>);

impl Ring {
    pub(crate) fn push(&mut self, point: Point) {
        self.0.push_back(point);
        while self.0.len() > POINTS_MAX
            || self
                .0
                .front()
                .is_some_and(|first| point.at.saturating_duration_since(first.at) > KEPT)
        {
            self.0.pop_front();
        }
    }

    pub(crate) fn last(&self) -> Option<Point> {
        self.0.back().copied()
    }

    /// Points that are at most `span` older than the newest one, oldest first.
    pub(crate) fn within(&self, span: Duration) -> impl DoubleEndedIterator<Item = Point> + '_ {
        let newest = self.last().map(|point| point.at);
        self.0
            .iter()
            .copied()
            .filter(move |point| newest.is_some_and(|at| at.saturating_duration_since(point.at) <= span))
    }

    /// What a rate amounts to over all that is kept: rate by interval, summed up.
    pub(crate) fn amount(&self) -> f64 {
        self.0
            .iter()
            .filter_map(|p| Some(p.value * p.at.saturating_duration_since(p.since?).as_secs_f64()))
            .sum()
    }

    /// The intervals of all rates that are kept, together.
    pub(crate) fn seconds(&self) -> f64 {
        self.0
            .iter()
            .filter_map(|p| Some(p.at.saturating_duration_since(p.since?).as_secs_f64()))
            .sum()
    }

    /// Least and largest value within a span.
    pub(crate) fn extremes(&self, span: Duration) -> Option<(f64, f64)> {
        self.within(span).map(|p| p.value).fold(None, |found, value| {
            Some(found.map_or((value, value), |(low, high): (f64, f64)| {
                (low.min(value), high.max(value))
            }))
        })
    }
}

/// What is waited for: type and event.
pub(crate) type Wait = (String, String);

/// The samples of one second.
#[derive(Debug, Clone, Default)]
struct Second {
    number: u64,
    samples: u32,
    counts: BTreeMap<Wait, u32>,
}

/// Sessions by what they waited for, second by second.
#[derive(Debug, Clone, Default)]
pub(crate) struct WaitHistory {
    start: Option<Instant>,
    seconds: VecDeque<Second>,
    checkpointer_at: Option<Instant>,
}

impl WaitHistory {
    /// Takes in a sample. One that has nothing but its gap leaves its second empty.
    pub(crate) fn push(&mut self, sample: &WaitSample) {
        if sample.gap.is_some() && sample.counts.is_empty() {
            return;
        }
        let start = *self.start.get_or_insert(sample.at);
        let number = sample.at.saturating_duration_since(start).as_secs();
        if self.seconds.back().is_none_or(|second| second.number < number) {
            self.seconds.push_back(Second {
                number,
                ..Second::default()
            });
        }
        while self.seconds.len() > SECONDS_MAX {
            self.seconds.pop_front();
        }
        let Some(second) = self.seconds.back_mut() else {
            return;
        };
        second.samples += 1;
        for (key, count) in &sample.counts {
            // Processes that wait for something to do are no load.
            if key.kind == "Activity" {
                continue;
            }
            if key.class == "checkpointer" {
                self.checkpointer_at = Some(sample.at);
            }
            let wait = (key.kind.clone(), key.event.clone());
            if second.counts.len() < EVENTS_MAX || second.counts.contains_key(&wait) {
                let sum = second.counts.entry(wait).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
    }

    /// Mean sessions per event in each of the last `columns` seconds, oldest first; `None` where
    /// there was no sample.
    pub(crate) fn table(&self, columns: usize) -> BTreeMap<Wait, Vec<Option<f64>>> {
        let Some(newest) = self.seconds.back().map(|second| second.number) else {
            return BTreeMap::new();
        };
        let shown = |second: &&Second| ((newest - second.number) as usize) < columns;
        let mut rows: BTreeMap<Wait, Vec<Option<f64>>> = BTreeMap::new();
        for second in self.seconds.iter().filter(shown) {
            for wait in second.counts.keys() {
                rows.entry(wait.clone()).or_insert_with(|| vec![None; columns]);
            }
        }
        for second in self.seconds.iter().filter(shown) {
            let column = columns - 1 - (newest - second.number) as usize;
            for (wait, cells) in &mut rows {
                let count = second.counts.get(wait).copied().unwrap_or(0);
                cells[column] = Some(f64::from(count) / f64::from(second.samples.max(1)));
            }
        }
        rows
    }

    /// Mean sessions per event over the last `seconds`, most first.
    pub(crate) fn means(&self, seconds: usize) -> Vec<(Wait, f64)> {
        let mut means: Vec<(Wait, f64)> = self
            .table(seconds)
            .into_iter()
            .map(|(wait, cells)| (wait, mean(&cells)))
            .collect();
        means.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        means
    }

    /// When the checkpointer was last seen at work.
    pub(crate) fn checkpointer_at(&self) -> Option<Instant> {
        self.checkpointer_at
    }
}

/// Mean of the cells that there are.
#[expect(clippy::cast_precision_loss, reason = "a number of seconds")]
pub(crate) fn mean(cells: &[Option<f64>]) -> f64 {
    let known: Vec<f64> = cells.iter().copied().flatten().collect();
    known.iter().sum::<f64>() / (known.len().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_host::series::Gap;
    use pgdyno_server::series::WaitKey;

    fn sample(at: Instant, event: &str, count: u32) -> WaitSample {
        let key = WaitKey {
            class: "client backend".into(),
            kind: "LWLock".into(),
            event: event.into(),
            query_id: None,
        };
        WaitSample {
            at,
            counts: vec![(key, count)],
            gap: None,
        }
    }

    #[test]
    fn old_points_go_and_amounts_are_rates_by_intervals() {
        let start = Instant::now();
        let at = |s| start + Duration::from_secs(s);
        let mut ring = Ring::default();
        for s in 1..=700 {
            ring.push(Point {
                at: at(s),
                since: Some(at(s - 1)),
                value: 2.0,
            });
        }
        assert_eq!(ring.within(KEPT).count(), 601);
        assert!((ring.amount() - 1202.0).abs() < 1e-9);
        assert_eq!(ring.extremes(KEPT), Some((2.0, 2.0)));
        assert_eq!(Ring::default().extremes(KEPT), None);
    }

    #[test]
    fn a_second_is_the_mean_of_its_samples_and_a_gap_stays_empty() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut waits = WaitHistory::default();
        waits.push(&sample(at(0), "A", 4));
        waits.push(&sample(at(500), "A", 2));
        let mut lost = sample(at(1100), "A", 9);
        lost.counts.clear();
        lost.gap = Some(Gap {
            source: "waits".into(),
            reason: "statement timeout".into(),
        });
        waits.push(&lost);
        waits.push(&sample(at(2100), "B", 1));
        let table = waits.table(3);
        let row = |event: &str| table[&("LWLock".to_owned(), event.to_owned())].clone();
        assert_eq!(row("A"), [Some(3.0), None, Some(0.0)]);
        assert_eq!(row("B"), [Some(0.0), None, Some(1.0)]);
        assert_eq!(waits.means(3)[0].1, 1.5);
    }
}
