//! A report of fewer points, for experiments of many long trials; and marks, which want series that
//! a report has not.

use crate::marks::{MarkKind, marks};
use crate::model::{Report, Series};
use pgdyno_record::{SeriesRecord, StoredExperiment};

impl Report {
    /// Points of all trials of a page together: what a browser draws at once without a pause, and 2
    /// MB of text.
    pub const PAGE_POINTS_MAX: usize = 60_000;

    /// Takes over what happened beside a trial from its series, of which those are enough that
    /// [`mark_metrics`](crate::mark_metrics) names. What is missing from them is left to the
    /// trial's document.
    pub fn mark(&mut self, stored: &StoredExperiment, trial: i64, series: &SeriesRecord) {
        let record = stored.trials.iter().find(|(id, _)| *id == trial);
        let trial = self.trials.iter_mut().find(|own| own.id == trial);
        if let (Some((_, record)), Some(trial)) = (record, trial) {
            trial.marks = marks(record, series);
            trial.marks.retain(|mark| mark.kind != MarkKind::Gap);
        }
    }

    /// Joins seconds of trials until all trials together have no more than about so many:
    /// throughput as its mean, response time as the highest. Each series says how many seconds a
    /// point of it is.
    pub fn thin(&mut self, points_max: usize) {
        let points = |report: &Report| report.trials.iter().map(|t| t.series.t_s.len()).sum::<usize>();
        let all = points(self);
        let Some(width) = WIDTHS_S.iter().find(|width| all / **width <= points_max.max(1)) else {
            return self.thin_by(WIDTHS_S[WIDTHS_S.len() - 1]);
        };
        if *width > 1 {
            self.thin_by(*width);
        }
    }

    fn thin_by(&mut self, width: usize) {
        for trial in &mut self.trials {
            if trial.series.t_s.len() > width {
                trial.series = joined(&trial.series, width);
            }
        }
    }
}

/// Stretches that people count in.
const WIDTHS_S: &[usize] = &[1, 2, 5, 10, 15, 30, 60, 120, 300];

fn joined(series: &Series, width: usize) -> Series {
    let places: Vec<usize> = (0..series.t_s.len()).collect();
    let mut thin = Series {
        bucket_s: u32::try_from(width).ok(),
        ..Series::default()
    };
    for stretch in places.chunks(width) {
        #[expect(clippy::cast_precision_loss, reason = "seconds of a stretch")]
        let seconds = stretch.len() as f64;
        let tps: f64 = stretch.iter().map(|&at| series.tps[at]).sum();
        let highest = stretch
            .iter()
            .filter_map(|&at| series.p95_ms[at])
            .reduce(f64::max);
        let rounded = |value: f64, by: f64| (value * by).round() / by;
        thin.t_s
            .extend(stretch.last().map(|&at| rounded(series.t_s[at], 10.0)));
        thin.tps.push(rounded(tps / seconds, 10.0));
        thin.p95_ms.push(highest.map(|ms| rounded(ms, 1000.0)));
    }
    thin
}
