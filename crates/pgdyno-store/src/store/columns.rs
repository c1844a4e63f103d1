//! The series beside trials, read whole or one column at a time.

use super::{Store, StoreError};
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
        let gaps = self.gaps(trial).map_err(|e| self.failed("read", e))?;
        Ok(SeriesRecord { columns, gaps })
    }

    /// Hands the columns beside a trial to `act`, by metric and label, one at a time: no more than one is held.
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
        let read = |e| E::from(self.failed("read", e));
        let mut statement = self
            .connection
            .prepare("SELECT metric, label, points FROM series WHERE trial_id = ?1 ORDER BY metric, label")
            .map_err(read)?;
        let mut rows = statement.query([trial]).map_err(read)?;
        while let Some(row) = rows.next().map_err(read)? {
            let metric: String = row.get(0).map_err(read)?;
            if !wants(&metric) {
                continue;
            }
            let label = row.get(1).map_err(read)?;
            let points: Vec<u8> = row.get(2).map_err(read)?;
            let (at_ms, values) = series::unpack_points(&points).map_err(|reason| StoreError::Record {
                path: self.path.clone(),
                what: format!("the series {metric} of trial {trial}"),
                reason,
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

    fn gaps(&self, trial: i64) -> rusqlite::Result<Vec<GapRecord>> {
        self.connection
            .prepare("SELECT at_ms, source, reason FROM gap WHERE trial_id = ?1 ORDER BY at_ms, rowid")?
            .query_map([trial], |row| {
                Ok(GapRecord {
                    at_ms: row.get(0)?,
                    source: row.get(1)?,
                    reason: row.get(2)?,
                })
            })?
            .collect()
    }
}
