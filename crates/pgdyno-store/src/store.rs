//! A store of results in SQLite: one file, safe for two processes, every trial durable when it ends.

use crate::record::{
    ExperimentRecord, ExperimentStatus, PutBackRecord, StoredExperiment, TrialRecord, TrialStatus,
};
use crate::schema;
use crate::series::{self, SeriesRecord};
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, Transaction, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

mod columns;
mod find;
mod identity;
mod import;
mod integrity;
mod labels;
mod open;
mod progress;
mod prune;
mod running;

pub use find::{Filter, Life, Listed};
pub use import::{ImportOutcome, Imported};
pub use integrity::{Integrity, check_file};
pub use labels::{NOTE_CHARS_MAX, Note, TAG_CHARS_MAX};
pub use progress::{ProgressPlace, Pulse};
pub use prune::{PrunePlan, PruneRule, Removable};
use running::RunningLock;

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
    /// Written by an earlier pgdyno, where it is to be left as it is.
    #[error(
        "the store {path} has schema {found} of an earlier pgdyno; `pgdyno list --store {path}` brings it to schema {}",
        schema::VERSION
    )]
    Older {
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
    /// Another process has it, and does not let go.
    #[error("the store {path} is locked by another process; try again when that has ended")]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// Cut short.
    #[error(
        "the store {path} is truncated: it has {found_bytes} bytes of at least {expected_bytes}; bring it back from a copy"
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Its length.
        found_bytes: u64,
        /// What it should be.
        expected_bytes: u64,
    },
    /// The file beside it that tells who runs an experiment.
    #[error(
        "the file beside the store {path} that marks an experiment as running could not be locked: {source}"
    )]
    Lock {
        /// The file of the store.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// Nothing there.
    #[error("there is no store of results at {path}")]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// Read without a lock, and written by another process in that time.
    #[error("the store {path} was written while it was read; try again")]
    Meanwhile {
        /// The file.
        path: PathBuf,
    },
    /// Being run by another process.
    #[error("experiment {id} in {path} is being run by another process")]
    Running {
        /// The file.
        path: PathBuf,
        /// Its number.
        id: i64,
    },
    /// A tag or a note that cannot be kept.
    #[error("{0}")]
    Words(String),
    /// No such experiment.
    #[error("there is no experiment {id} in {path}; `pgdyno list` shows those there are")]
    Unknown {
        /// The file.
        path: PathBuf,
        /// Its number.
        id: i64,
    },
}

/// An open store.
pub struct Store {
    connection: Connection,
    path: PathBuf,
    /// Kept while this process runs experiments, so that others see that they live.
    running: BTreeMap<i64, RunningLock>,
}

impl Store {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins an experiment and returns its number.
    pub fn begin(&mut self, record: &ExperimentRecord) -> Result<i64, StoreError> {
        let text = self.encode("an experiment", record)?;
        let status = self.encode("an experiment", &ExperimentStatus::Running)?;
        let started_unix_ms = now_unix_ms();
        let identity = identity::new(record, started_unix_ms);
        let insert = |connection: &mut Connection, path: &Path| {
            let transaction = connection.transaction()?;
            transaction.execute(
                "INSERT INTO experiment (name, status, started_unix_ms, record, identity) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![record.name, status, started_unix_ms, text, identity],
            )?;
            let id = transaction.last_insert_rowid();
            // Nobody may see it as running without its lock.
            let lock = RunningLock::take(path, id);
            if matches!(lock, Ok(Some(_))) {
                transaction.commit()?;
            }
            Ok((id, lock))
        };
        let (id, lock) = insert(&mut self.connection, &self.path).map_err(|e| self.failed("written", e))?;
        self.keep_lock(id, lock)?;
        Ok(id)
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

    /// Says how far an experiment is now.
    pub fn set_status(&mut self, experiment: i64, status: ExperimentStatus) -> Result<(), StoreError> {
        if status == ExperimentStatus::Running && !self.running.contains_key(&experiment) {
            let lock = RunningLock::take(&self.path, experiment);
            self.keep_lock(experiment, lock)?;
            self.identify(experiment)?;
        }
        let text = self.encode("a status", &status)?;
        let finished = (status != ExperimentStatus::Running).then(now_unix_ms);
        self.write(
            "UPDATE experiment SET status = ?2, finished_unix_ms = ?3 WHERE id = ?1",
            params![experiment, text, finished],
        )?;
        if status != ExperimentStatus::Running
            && let Some(lock) = self.running.remove(&experiment)
        {
            lock.release();
        }
        Ok(())
    }

    fn keep_lock(&mut self, id: i64, lock: std::io::Result<Option<RunningLock>>) -> Result<(), StoreError> {
        let path = self.path.clone();
        match lock {
            Ok(Some(lock)) => self.running.insert(id, lock),
            Ok(None) => return Err(StoreError::Running { path, id }),
            Err(source) => return Err(StoreError::Lock { path, source }),
        };
        Ok(())
    }

    /// Gives an experiment of an earlier schema, which has none, the identity that follows from what it is.
    fn identify(&mut self, id: i64) -> Result<(), StoreError> {
        let stored = self.experiment_alone(id)?;
        let identity = identity::derived(&stored.record, stored.started_unix_ms);
        self.write(
            "UPDATE OR IGNORE experiment SET identity = ?2 WHERE id = ?1 AND identity IS NULL",
            params![id, identity],
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
        let mut found = self.experiment_alone(id)?;
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

    /// An experiment without its trials.
    pub(crate) fn experiment_alone(&self, id: i64) -> Result<StoredExperiment, StoreError> {
        self.connection
            .query_row(
                "SELECT id, record, status, started_unix_ms, finished_unix_ms, put_back FROM experiment WHERE id = ?1",
                [id],
                raw_experiment,
            )
            .optional()
            .map_err(|e| self.failed("read", e))?
            .ok_or_else(|| StoreError::Unknown {
                path: self.path.clone(),
                id,
            })
            .and_then(|raw| self.decode_experiment(raw))
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
        failed(&self.path, action, source)
    }
}

/// SQLite's error, or that another process has the file.
fn failed(path: &Path, action: &'static str, source: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Locked { path },
        _ => StoreError::Sqlite { path, action, source },
    }
}

fn add_series(transaction: &Transaction<'_>, trial: i64, series: &SeriesRecord) -> rusqlite::Result<()> {
    let mut insert = transaction
        .prepare("INSERT INTO series (trial_id, metric, label, points) VALUES (?1, ?2, ?3, ?4)")?;
    for column in &series.columns {
        let points = series::pack_points(&column.at_ms, &column.values);
        insert.execute(params![trial, column.metric, column.label, points])?;
    }
    let mut insert =
        transaction.prepare("INSERT INTO gap (trial_id, at_ms, source, reason) VALUES (?1, ?2, ?3, ?4)")?;
    for gap in &series.gaps {
        insert.execute(params![trial, gap.at_ms, gap.source, gap.reason])?;
    }
    Ok(())
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
