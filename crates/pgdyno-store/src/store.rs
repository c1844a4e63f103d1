//! A store of results in SQLite: one file, safe for two processes, every trial durable when it ends.

use crate::record::{
    ExperimentRecord, ExperimentStatus, PutBackRecord, StoredExperiment, TrialRecord, TrialStatus,
};
use crate::schema;
use crate::series::{self, ColumnRecord, GapRecord, SeriesRecord};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Another process may hold the file this long.
const BUSY: Duration = Duration::from_secs(30);

/// Trouble with a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite's own.
    #[error("the store {path} could not be {action}: {source}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// "opened", "written", "read".
        action: &'static str,
        /// SQLite's words.
        source: rusqlite::Error,
    },
    /// Files.
    #[error("the directory of the store {path} could not be made: {source}")]
    Directory {
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// Written by a later pgdyno.
    #[error(
        "the store {path} has schema {found}; this pgdyno knows {}. Use the newer pgdyno, or another store",
        schema::VERSION
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
    },
    /// A database of another program.
    #[error("{path} is a database of another program; name another store")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A record that cannot be read.
    #[error("{what} in the store {path} cannot be read: {reason}")]
    Record {
        /// The file.
        path: PathBuf,
        /// "experiment 3".
        what: String,
        /// What is wrong.
        reason: String,
    },
    /// No such experiment.
    #[error("there is no experiment {id} in {path}; `pgdyno list` shows those there are")]
    Unknown {
        /// The file.
        path: PathBuf,
        /// Its number.
        id: i64,
    },
}

/// Version of the schema, number of the program, and number of tables, all of one instant: another process may be making the
/// store just now.
fn what_is_there(connection: &mut Connection) -> rusqlite::Result<(i64, i64, i64)> {
    let transaction = connection.transaction()?;
    let tables = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let number = |name: &str| transaction.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let found = (number("user_version")?, number("application_id")?, tables);
    transaction.commit()?;
    Ok(found)
}

/// An open store.
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

impl Store {
    /// Opens the store at `path`, making it if it is not there.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(|source| StoreError::Directory {
                path: path.to_owned(),
                source,
            })?;
        }
        let failed = |source| StoreError::Sqlite {
            path: path.to_owned(),
            action: "opened",
            source,
        };
        let mut connection = Connection::open(path).map_err(failed)?;
        connection.busy_timeout(BUSY).map_err(failed)?;
        let (version, application, tables) = what_is_there(&mut connection).map_err(failed)?;
        if tables > 0 && application != schema::APPLICATION_ID {
            return Err(StoreError::Foreign {
                path: path.to_owned(),
            });
        }
        if version > schema::VERSION {
            return Err(StoreError::Newer {
                path: path.to_owned(),
                found: version,
            });
        }
        connection
            .pragma_update(None, "synchronous", "FULL")
            .map_err(failed)?;
        connection
            .pragma_update(None, "foreign_keys", true)
            .map_err(failed)?;
        if version < schema::VERSION {
            // One at a time: of two that change the journal's mode at once, one would wait for the other in vain. Where a directory
            // cannot be locked, SQLite's own locks remain.
            let turn = path.parent().and_then(|directory| File::open(directory).ok());
            let _turn = turn.filter(|directory| directory.lock().is_ok());
            // Kept in the file from then on.
            connection
                .pragma_update(None, "journal_mode", "WAL")
                .map_err(failed)?;
            schema::migrate(&mut connection).map_err(failed)?;
        }
        Ok(Store {
            connection,
            path: path.to_owned(),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins an experiment and returns its number.
    pub fn begin(&mut self, record: &ExperimentRecord) -> Result<i64, StoreError> {
        let text = self.encode("an experiment", record)?;
        let status = self.encode("an experiment", &ExperimentStatus::Running)?;
        self.write(
            "INSERT INTO experiment (name, status, started_unix_ms, record) VALUES (?1, ?2, ?3, ?4)",
            params![record.name, status, now_unix_ms(), text],
        )?;
        Ok(self.connection.last_insert_rowid())
    }

    /// Stores a trial with its series: durable, and whole, when this returns. A trial of the same block and treatment is
    /// never replaced.
    pub fn add_trial(
        &mut self,
        experiment: i64,
        trial: &TrialRecord,
        series: &SeriesRecord,
    ) -> Result<i64, StoreError> {
        let text = self.encode("a trial", trial)?;
        let status = self.encode("a trial", &trial.status)?;
        let insert = |connection: &mut Connection| {
            let transaction = connection.transaction()?;
            transaction.execute(
                "INSERT INTO trial (experiment_id, block, treatment, status, record) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![experiment, trial.block, trial.treatment, status, text],
            )?;
            let id = transaction.last_insert_rowid();
            add_series(&transaction, id, series)?;
            transaction.commit()?;
            Ok(id)
        };
        insert(&mut self.connection).map_err(|e| self.failed("written", e))
    }

    /// The series beside a trial, by metric and label; empty where none was recorded.
    pub fn series(&self, trial: i64) -> Result<SeriesRecord, StoreError> {
        let (columns, gaps) = raw_series(&self.connection, trial).map_err(|e| self.failed("read", e))?;
        let columns = columns.into_iter().map(|(metric, label, points)| {
            let (at_ms, values) = series::unpack(&points).map_err(|reason| StoreError::Record {
                path: self.path.clone(),
                what: format!("the series {metric} of trial {trial}"),
                reason,
            })?;
            Ok(ColumnRecord {
                metric,
                label,
                at_ms,
                values,
            })
        });
        Ok(SeriesRecord {
            columns: columns.collect::<Result<_, _>>()?,
            gaps,
        })
    }

    /// Says how far an experiment is now.
    pub fn set_status(&mut self, experiment: i64, status: ExperimentStatus) -> Result<(), StoreError> {
        let text = self.encode("a status", &status)?;
        let finished = (status != ExperimentStatus::Running).then(now_unix_ms);
        self.write(
            "UPDATE experiment SET status = ?2, finished_unix_ms = ?3 WHERE id = ?1",
            params![experiment, text, finished],
        )
    }

    /// Keeps what was put back at the end.
    pub fn set_put_back(&mut self, experiment: i64, put_back: &[PutBackRecord]) -> Result<(), StoreError> {
        let text = self.encode("what was put back", &put_back)?;
        self.write(
            "UPDATE experiment SET put_back = ?2 WHERE id = ?1",
            params![experiment, text],
        )
    }

    /// (block, treatment) of all trials that are stored.
    pub fn done(&self, experiment: i64) -> Result<Vec<(u32, String)>, StoreError> {
        let mut statement = self
            .connection
            .prepare("SELECT block, treatment FROM trial WHERE experiment_id = ?1 ORDER BY id")
            .map_err(|e| self.failed("read", e))?;
        let rows = statement.query_map([experiment], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.and_then(Iterator::collect)
            .map_err(|e| self.failed("read", e))
    }

    /// An experiment with all its trials.
    pub fn experiment(&self, id: i64) -> Result<StoredExperiment, StoreError> {
        let mut found = self
            .connection
            .query_row(
                "SELECT id, record, status, started_unix_ms, finished_unix_ms, put_back FROM experiment WHERE id = ?1",
                [id],
                raw_experiment,
            )
            .optional()
            .map_err(|e| self.failed("read", e))?
            .ok_or_else(|| StoreError::Unknown { path: self.path.clone(), id })
            .and_then(|raw| self.decode_experiment(raw))?;
        let mut statement = self
            .connection
            .prepare("SELECT id, record FROM trial WHERE experiment_id = ?1 ORDER BY id")
            .map_err(|e| self.failed("read", e))?;
        let rows: Vec<(i64, String)> = statement
            .query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))
            .and_then(Iterator::collect)
            .map_err(|e| self.failed("read", e))?;
        for (trial, text) in rows {
            found
                .trials
                .push((trial, self.decode(&format!("trial {trial}"), &text)?));
        }
        Ok(found)
    }

    /// All experiments without their trials, the newest first, with their number of finished trials.
    pub fn list(&self) -> Result<Vec<(StoredExperiment, u64)>, StoreError> {
        let mut statement = self
            .connection
            .prepare(
                "SELECT id, record, status, started_unix_ms, finished_unix_ms, put_back, \
                 (SELECT count(*) FROM trial t WHERE t.experiment_id = experiment.id AND t.status = ?1) \
                 FROM experiment ORDER BY id DESC",
            )
            .map_err(|e| self.failed("read", e))?;
        let finished = self.encode("a status", &TrialStatus::Finished)?;
        let rows: Vec<(RawExperiment, i64)> = statement
            .query_map([finished], |row| Ok((raw_experiment(row)?, row.get(6)?)))
            .and_then(Iterator::collect)
            .map_err(|e| self.failed("read", e))?;
        rows.into_iter()
            .map(|(raw, trials)| Ok((self.decode_experiment(raw)?, trials.unsigned_abs())))
            .collect()
    }

    fn decode_experiment(&self, raw: RawExperiment) -> Result<StoredExperiment, StoreError> {
        let what = format!("experiment {}", raw.id);
        Ok(StoredExperiment {
            id: raw.id,
            record: self.decode(&what, &raw.record)?,
            status: self.decode(&what, &raw.status)?,
            started_unix_ms: raw.started_unix_ms.unsigned_abs(),
            finished_unix_ms: raw.finished_unix_ms.map(i64::unsigned_abs),
            put_back: self.decode(&what, &raw.put_back)?,
            trials: Vec::new(),
        })
    }

    fn encode(&self, what: &str, value: &impl Serialize) -> Result<String, StoreError> {
        serde_json::to_string(value).map_err(|e| self.broken(what, &e))
    }

    fn decode<T: DeserializeOwned>(&self, what: &str, text: &str) -> Result<T, StoreError> {
        serde_json::from_str(text).map_err(|e| self.broken(what, &e))
    }

    fn broken(&self, what: &str, error: &serde_json::Error) -> StoreError {
        StoreError::Record {
            path: self.path.clone(),
            what: what.to_owned(),
            reason: error.to_string(),
        }
    }

    fn write(&mut self, sql: &str, values: impl rusqlite::Params) -> Result<(), StoreError> {
        self.connection
            .execute(sql, values)
            .map(|_| ())
            .map_err(|e| self.failed("written", e))
    }

    fn failed(&self, action: &'static str, source: rusqlite::Error) -> StoreError {
        StoreError::Sqlite {
            path: self.path.clone(),
            action,
            source,
        }
    }
}

fn add_series(transaction: &Transaction<'_>, trial: i64, series: &SeriesRecord) -> rusqlite::Result<()> {
    let mut insert = transaction
        .prepare("INSERT INTO series (trial_id, metric, label, points) VALUES (?1, ?2, ?3, ?4)")?;
    for column in &series.columns {
        let points = series::pack(&column.at_ms, &column.values);
        insert.execute(params![trial, column.metric, column.label, points])?;
    }
    let mut insert =
        transaction.prepare("INSERT INTO gap (trial_id, at_ms, source, reason) VALUES (?1, ?2, ?3, ?4)")?;
    for gap in &series.gaps {
        insert.execute(params![trial, gap.at_ms, gap.source, gap.reason])?;
    }
    Ok(())
}

type RawColumn = (String, String, Vec<u8>);

fn raw_series(connection: &Connection, trial: i64) -> rusqlite::Result<(Vec<RawColumn>, Vec<GapRecord>)> {
    let columns = connection
        .prepare("SELECT metric, label, points FROM series WHERE trial_id = ?1 ORDER BY metric, label")?
        .query_map([trial], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<_, _>>()?;
    let gaps = connection
        .prepare("SELECT at_ms, source, reason FROM gap WHERE trial_id = ?1 ORDER BY at_ms, rowid")?
        .query_map([trial], |row| {
            Ok(GapRecord {
                at_ms: row.get(0)?,
                source: row.get(1)?,
                reason: row.get(2)?,
            })
        })?
        .collect::<Result<_, _>>()?;
    Ok((columns, gaps))
}

struct RawExperiment {
    id: i64,
    record: String,
    status: String,
    started_unix_ms: i64,
    finished_unix_ms: Option<i64>,
    put_back: String,
}

fn raw_experiment(row: &Row<'_>) -> rusqlite::Result<RawExperiment> {
    Ok(RawExperiment {
        id: row.get(0)?,
        record: row.get(1)?,
        status: row.get(2)?,
        started_unix_ms: row.get(3)?,
        finished_unix_ms: row.get(4)?,
        put_back: row.get(5)?,
    })
}

fn now_unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
