//! Fewer points: buckets of equal time of which the lowest and the highest value stay, so that no
//! spike is lost.

use super::model::{TrialColumn, Waits};

/// Digits that stay of a thinned value: a chart of 1,000 pixels shows three.
const DIGITS: i32 = 4;

/// Thins a column to at most about `points_max` points. The two points of a bucket are at its
/// beginning and its middle, in the order in which they were met, so that all columns that were
/// read together keep one axis.
pub(super) fn column(column: &mut TrialColumn, points_max: usize) {
    if column.values.len() > points_max {
        let Some(grid) = Grid::new(&column.t_ms, points_max) else {
            return;
        };
        let (t_ms, values) = grid.extremes(&column.t_ms, &column.values);
        (column.t_ms, column.values) = (t_ms, values);
    }
    for value in column.values.iter_mut().flatten() {
        *value = rounded(*value);
    }
}

/// Means over buckets: a stack is read by its area.
pub(super) fn waits(waits: &mut Waits, points_max: usize) {
    if let (true, Some(grid)) = (waits.t_ms.len() > points_max, Grid::new(&waits.t_ms, points_max)) {
        let t_ms = std::mem::take(&mut waits.t_ms);
        for one in waits.types.iter_mut().chain(&mut waits.events) {
            let (times, values) = grid.means(&t_ms, &one.values);
            waits.t_ms = times;
            one.values = values;
        }
    }
    for value in waits
        .types
        .iter_mut()
        .chain(&mut waits.events)
        .flat_map(|one| &mut one.values)
    {
        *value = rounded(*value);
    }
}

/// A value with so many digits as stay.
pub(super) fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    #[expect(clippy::cast_possible_truncation, reason = "the exponent of a double")]
    let exponent = value.abs().log10().floor() as i32 + 1 - DIGITS;
    // A power of ten that is a whole number divides without an error of its own.
    match exponent >= 0 {
        true => (value / 10_f64.powi(exponent)).round() * 10_f64.powi(exponent),
        false => (value * 10_f64.powi(-exponent)).round() / 10_f64.powi(-exponent),
    }
}

struct Grid {
    from_ms: u32,
    width_ms: u32,
}

impl Grid {
    /// Buckets for half as many points, from the load's begin on.
    fn new(t_ms: &[u32], points_max: usize) -> Option<Grid> {
        let last = *t_ms.last()?;
        let buckets = u32::try_from((points_max / 2).max(1)).ok()?;
        // Even, so that its middle is a whole number.
        let width_ms = (last / buckets + 2) & !1;
        Some(Grid { from_ms: 0, width_ms })
    }

    fn bucket(&self, t_ms: u32) -> u32 {
        (t_ms - self.from_ms) / self.width_ms
    }

    fn extremes(&self, t_ms: &[u32], values: &[Option<f64>]) -> (Vec<u32>, Vec<Option<f64>>) {
        let (mut times, mut kept) = (Vec::new(), Vec::new());
        self.each(t_ms, |bucket, range| {
            let known = values[range].iter().flatten().copied().enumerate();
            let (mut low, mut high) = (None::<(usize, f64)>, None::<(usize, f64)>);
            for (place, value) in known {
                if low.is_none_or(|(_, least)| value < least) {
                    low = Some((place, value));
                }
                if high.is_none_or(|(_, most)| value > most) {
                    high = Some((place, value));
                }
            }
            let pair = match (low, high) {
                (Some(low), Some(high)) if low.0 <= high.0 => [Some(low.1), Some(high.1)],
                (Some(low), Some(high)) => [Some(high.1), Some(low.1)],
                _ => [None, None],
            };
            let begin = self.from_ms + bucket * self.width_ms;
            times.extend([begin, begin + self.width_ms / 2]);
            kept.extend(pair);
        });
        (times, kept)
    }

    fn means(&self, t_ms: &[u32], values: &[f64]) -> (Vec<u32>, Vec<f64>) {
        let (mut times, mut kept) = (Vec::new(), Vec::new());
        self.each(t_ms, |bucket, range| {
            let inside = &values[range];
            #[expect(clippy::cast_precision_loss, reason = "points of a bucket")]
            kept.push(inside.iter().sum::<f64>() / inside.len() as f64);
            times.push(self.from_ms + bucket * self.width_ms + self.width_ms / 2);
        });
        (times, kept)
    }

    /// Each bucket that has points, with their places.
    fn each(&self, t_ms: &[u32], mut act: impl FnMut(u32, std::ops::Range<usize>)) {
        let mut from = 0;
        while from < t_ms.len() {
            let bucket = self.bucket(t_ms[from]);
            let rest = &t_ms[from..];
            let length = rest.partition_point(|at| self.bucket(*at) == bucket);
            act(bucket, from..from + length.max(1));
            from += length.max(1);
        }
    }
}
