//! The series beside trials, read whole or one column at a time, and what their rows are.

use super::{Store, StoreError, Value, broken};
use crate::series::{ColumnRecord, GapRecord, Points, SeriesRecord, TimeLists, pack_series};

/// The metric of rows that hold a list of times; the label is the list's number. No series has it, and it comes before all.
pub(super) const TIMES: &str = "";

/// The rows of a trial's series: metric, label, blob.
pub(super) fn packed(series: &SeriesRecord) -> Vec<(&str, String, Vec<u8>)> {
    let packed = pack_series(&series.columns);
    let lists = (0..).zip(packed.times);
    let lists = lists.map(|(number, blob): (u32, _)| (TIMES, number.to_string(), blob));
    let columns = series.columns.iter().zip(packed.columns);
    lists
        .chain(columns.map(|(column, blob)| (column.metric.as_str(), column.label.clone(), blob)))
        .collect()
}

/// Unpacks rows of series trial by trial, of each trial in the order of the metric.
#[derive(Default)]
pub(super) struct Unpacking {
    trial: i64,
    lists: TimeLists,
}

impl Unpacking {
    /// The points of a column, as times and values; `None` for a list of times, which is kept for the trial's columns.
    pub(super) fn take(
        &mut self,
        trial: i64,
        metric: &str,
        label: &str,
        blob: &[u8],
    ) -> Result<Option<Points>, String> {
        if trial != self.trial {
            (self.trial, self.lists) = (trial, TimeLists::default());
        }
        if metric != TIMES {
            return self.lists.unpack(blob).map(Some);
        }
        let number = label
            .parse()
            .map_err(|_| format!("list {label:?} of times has no number"))?;
        self.lists.add(number, blob.to_vec());
        Ok(None)
    }

    /// The same, and a list must be one even where no column asks for it.
    pub(super) fn take_whole(
        &mut self,
        trial: i64,
        metric: &str,
        label: &str,
        blob: &[u8],
    ) -> Result<Option<Points>, String> {
        let taken = self.take(trial, metric, label, blob)?;
        if taken.is_none() {
            self.lists.times(label.parse().unwrap_or(0))?;
        }
        Ok(taken)
    }
}

impl Store {
    /// The series beside a trial, by metric and label; empty where none was recorded.
    pub fn series(&self, trial: i64) -> Result<SeriesRecord, StoreError> {
        self.series_of(trial, |_| true)
    }

    /// The series beside a trial of the metrics that are wanted, with all gaps.
    pub fn series_of(&self, trial: i64, wants: impl Fn(&str) -> bool) -> Result<SeriesRecord, StoreError> {
        let mut columns = Vec::new();
        self.each_column_of(trial, wants, |column| {
            columns.push(column);
            Ok::<_, StoreError>(())
        })?;
        let gaps = self.database().rows(
            "SELECT at_ms, source, reason FROM gap WHERE trial_id = $1 ORDER BY at_ms, rowid",
            &[trial.into()],
            |row| {
                Ok(GapRecord {
                    at_ms: row.small(0)?,
                    source: row.text(1)?,
                    reason: row.text(2)?,
                })
            },
        )?;
        Ok(SeriesRecord { columns, gaps })
    }

    /// Hands the columns beside a trial to `act`, by metric and label, one at a time: all are held as they are packed, no more
    /// than one unpacked.
    pub fn each_column<E: From<StoreError>>(
        &self,
        trial: i64,
        act: impl FnMut(ColumnRecord) -> Result<(), E>,
    ) -> Result<(), E> {
        self.each_column_of(trial, |_| true, act)
    }

    /// The same of the metrics that are wanted; of the others nothing is read or unpacked.
    pub fn each_column_of<E: From<StoreError>>(
        &self,
        trial: i64,
        wants: impl Fn(&str) -> bool,
        mut act: impl FnMut(ColumnRecord) -> Result<(), E>,
    ) -> Result<(), E> {
        let database = self.database();
        let names = "SELECT DISTINCT metric FROM series WHERE trial_id = $1";
        let all = database.rows(names, &[trial.into()], |row| row.text(0))?;
        let mut values = vec![Value::from(trial)];
        let is_wanted = |metric: &&String| *metric != TIMES && wants(metric);
        values.extend(all.iter().filter(is_wanted).map(Value::from));
        if values.len() == 1 {
            return Ok(());
        }
        values.push(TIMES.into());
        let wanted: Vec<String> = (2..=values.len()).map(|at| format!("${at}")).collect();
        let sql = format!(
            "SELECT metric, label, points FROM series WHERE trial_id = $1 AND metric IN ({}) ORDER BY metric, label",
            wanted.join(", ")
        );
        let packed = database.rows(&sql, &values, |row| {
            Ok((row.text(0)?, row.text(1)?, row.blob(2)?))
        })?;
        let mut unpacking = Unpacking::default();
        for (metric, label, points) in packed {
            let taken = unpacking.take(trial, &metric, &label, &points);
            let taken = taken.map_err(|reason| {
                let what = format!("the series {metric} of trial {trial}");
                broken(self.place(), &what, reason)
            })?;
            if let Some((at_ms, values)) = taken {
                act(ColumnRecord {
                    metric,
                    label,
                    at_ms,
                    values,
                })?;
            }
        }
        Ok(())
    }
}
