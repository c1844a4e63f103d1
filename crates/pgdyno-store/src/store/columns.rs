//! The series beside trials, read whole or one column at a time.

use super::{Store, StoreError, Value, broken};
use crate::series::{self, ColumnRecord, GapRecord, SeriesRecord};

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
        values.extend(all.iter().filter(|metric| wants(metric)).map(Value::from));
        if values.len() == 1 {
            return Ok(());
        }
        let wanted: Vec<String> = (2..=values.len()).map(|at| format!("${at}")).collect();
        let sql = format!(
            "SELECT metric, label, points FROM series WHERE trial_id = $1 AND metric IN ({}) ORDER BY metric, label",
            wanted.join(", ")
        );
        let packed = database.rows(&sql, &values, |row| {
            Ok((row.text(0)?, row.text(1)?, row.blob(2)?))
        })?;
        for (metric, label, points) in packed {
            let (at_ms, values) = series::unpack_points(&points).map_err(|reason| {
                let what = format!("the series {metric} of trial {trial}");
                broken(self.place(), &what, reason)
            })?;
            act(ColumnRecord {
                metric,
                label,
                at_ms,
                values,
            })?;
        }
        Ok(())
    }
}
