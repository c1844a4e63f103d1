//! The series beside trials, read whole or one column at a time, and what their rows are.

use super::database::{Budget, unpacked_fit};
use super::{Store, StoreError, Value, broken};
use pgdyno_record::{ColumnRecord, GapRecord, Points, SeriesRecord, TimeLists, pack_series};
use std::collections::BTreeMap;

/// The metric of rows that hold a list of times; the label is the list's number. No series has it,
/// and it comes before all.
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
    /// The points of a column, as times and values; `None` for a list of times, which is kept for
    /// the trial's columns.
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
        let mut found = self.series_of_trials(&[trial], wants)?;
        Ok(found.pop().unwrap_or_default())
    }

    /// The same of several trials, each named once, in their order: three questions to the database
    /// for all of them, and all that is wanted held at once.
    pub fn series_of_trials(
        &self,
        trials: &[i64],
        wants: impl Fn(&str) -> bool,
    ) -> Result<Vec<SeriesRecord>, StoreError> {
        self.chosen_of_trials(trials, &Choice::Such(&wants))
    }

    /// The same of metrics by their names, which takes a tenth of the time where there are many
    /// others: nobody asks what there is.
    pub fn series_named(&self, trials: &[i64], metrics: &[&str]) -> Result<Vec<SeriesRecord>, StoreError> {
        self.chosen_of_trials(trials, &Choice::Named(metrics))
    }

    fn chosen_of_trials(&self, trials: &[i64], choice: &Choice<'_>) -> Result<Vec<SeriesRecord>, StoreError> {
        let mut found: BTreeMap<i64, SeriesRecord> = BTreeMap::new();
        let mut bytes = 0;
        self.unpack(trials, choice, |trial, packed_bytes, column| {
            bytes += (size_of::<u32>() + size_of::<f64>()) * column.values.len();
            unpacked_fit(self.place(), packed_bytes, bytes)?;
            found.entry(trial).or_default().columns.push(column);
            Ok::<_, StoreError>(())
        })?;
        let budget = Budget::new(self.place());
        for of_trials in trials.chunks(AT_ONCE) {
            let (values, places) = named(of_trials.iter().map(|trial| Value::from(*trial)), 1);
            let sql = format!(
                "SELECT trial_id, at_ms, source, reason FROM gap WHERE trial_id IN ({places}) ORDER BY trial_id, at_ms, rowid"
            );
            self.database().each("read", &sql, &values, &mut |row| {
                budget.take(row.bytes())?;
                let gaps = &mut found.entry(row.int(0)?).or_default().gaps;
                gaps.push(GapRecord {
                    at_ms: row.small(1)?,
                    source: row.text(2)?,
                    reason: row.text(3)?,
                });
                Ok(())
            })?;
        }
        let series = |trial| found.remove(trial).unwrap_or_default();
        Ok(trials.iter().map(series).collect())
    }

    /// Hands the columns beside a trial to `act`, by metric and label, one at a time: all are held
    /// as they are packed, no more than one unpacked.
    pub fn each_column<E: From<StoreError>>(
        &self,
        trial: i64,
        mut act: impl FnMut(ColumnRecord) -> Result<(), E>,
    ) -> Result<(), E> {
        self.unpack(&[trial], &Choice::Such(&|_| true), |_, _, column| act(column))
    }

    /// Hands the columns of the metrics that are wanted to `act`, by trial, metric and label, with
    /// the bytes that all rows read so far take as they are packed; of the others nothing is read
    /// or unpacked.
    fn unpack<E: From<StoreError>>(
        &self,
        trials: &[i64],
        choice: &Choice<'_>,
        mut act: impl FnMut(i64, usize, ColumnRecord) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut unpacking = Unpacking::default();
        let mut packed_bytes = 0;
        for of_trials in trials.chunks(AT_ONCE) {
            let rows = self.rows_of(of_trials, choice)?;
            packed_bytes += rows.iter().map(|(.., points)| points.len()).sum::<usize>();
            for (trial, metric, label, points) in rows {
                let taken = unpacking.take(trial, &metric, &label, &points);
                let taken = taken.map_err(|reason| {
                    let what = format!("the series {metric} of trial {trial}");
                    broken(self.place(), &what, reason)
                })?;
                if let Some((at_ms, values)) = taken {
                    let column = ColumnRecord {
                        metric,
                        label,
                        at_ms,
                        values,
                    };
                    act(trial, packed_bytes, column)?;
                }
            }
        }
        Ok(())
    }

    /// The rows of the metrics that are wanted, as they are packed, with the lists of times.
    fn rows_of(&self, trials: &[i64], choice: &Choice<'_>) -> Result<Vec<PackedRow>, StoreError> {
        let database = self.database();
        let (mut values, of_trials) = named(trials.iter().map(|trial| Value::from(*trial)), 1);
        let mut metrics: Vec<Value> = match choice {
            Choice::Named(names) => names.iter().map(|name| Value::from(*name)).collect(),
            Choice::Such(wants) => {
                let names = format!("SELECT DISTINCT metric FROM series WHERE trial_id IN ({of_trials})");
                let all = database.rows(&names, &values, |row| row.text(0))?;
                let is_wanted = |metric: &&String| *metric != TIMES && wants(metric);
                all.iter().filter(is_wanted).map(Value::from).collect()
            }
        };
        if metrics.is_empty() {
            return Ok(Vec::new());
        }
        metrics.push(TIMES.into());
        let (metrics, of_metrics) = named(metrics.into_iter(), values.len() + 1);
        values.extend(metrics);
        let sql = format!(
            "SELECT trial_id, metric, label, points FROM series \
             WHERE trial_id IN ({of_trials}) AND metric IN ({of_metrics}) ORDER BY trial_id, metric, label"
        );
        database.rows(&sql, &values, |row| {
            Ok((row.int(0)?, row.text(1)?, row.text(2)?, row.blob(3)?))
        })
    }
}

/// Selects columns by their metric.
enum Choice<'c> {
    Named(&'c [&'c str]),
    /// Columns whose metric the function accepts.
    Such(&'c dyn Fn(&str) -> bool),
}

/// Trial, metric, label and packed points of a column.
type PackedRow = (i64, String, String, Vec<u8>);

/// So many trials are asked for in one statement.
const AT_ONCE: usize = 500;

/// Values, and the parameters of a statement that represent them, from the number `first` on.
fn named(values: impl Iterator<Item = Value>, first: usize) -> (Vec<Value>, String) {
    let values: Vec<Value> = values.collect();
    let places = (first..first + values.len()).map(|at| format!("${at}"));
    let places: Vec<String> = places.collect();
    (values, places.join(", "))
}
