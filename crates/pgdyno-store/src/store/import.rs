//! Another store's experiments taken over, each once; the other file is read and never changed.

use super::open::Foreign;
use super::{Store, StoreError, failed, identity, labels, running};
use crate::record::{ExperimentRecord, ExperimentStatus, PutBackRecord, TrialRecord};
use crate::series;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use serde::de::DeserializeOwned;
use std::path::Path;
use std::time::Duration;

/// Another process may hold the other file this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// What became of one experiment of the other store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Its number there.
    pub theirs: i64,
    /// Its name.
    pub name: String,
    /// What was done.
    pub outcome: ImportOutcome,
}

/// What was done with an experiment of another store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportOutcome {
    /// It is here now.
    Added {
        /// Its number here.
        id: i64,
        /// Its trials.
        trials: u64,
    },
    /// It was here before; its new tags and notes were taken over.
    Here {
        /// Its number here.
        id: i64,
        /// Trials that only the other store has: it went on there.
        trials_missing: u64,
    },
    /// A process runs it there.
    Running,
}

struct Row {
    id: i64,
    name: String,
    status: String,
    started_unix_ms: i64,
    finished_unix_ms: Option<i64>,
    text: String,
    put_back: String,
    identity: Option<String>,
}

/// The other store, with what is needed to name its faults.
struct Other<'a> {
    file: Foreign,
    path: &'a Path,
}

impl Store {
    /// Takes over the experiments of the store at `path`, of this schema or an older one, under new numbers, with their
    /// trials, series, tags and notes. Each is taken over whole or not at all; what cannot be read ends it with an error
    /// and keeps those before it.
    pub fn import(&mut self, path: &Path) -> Result<Vec<Imported>, StoreError> {
        let other = Other {
            file: Foreign::open(path, PATIENCE)?,
            path,
        };
        let mut done = Vec::new();
        for row in other.experiments()? {
            let record: ExperimentRecord = other.decode(&format!("experiment {}", row.id), &row.text)?;
            let status: ExperimentStatus = other.decode("a status", &row.status)?;
            let own = identity::derived(&record, row.started_unix_ms.unsigned_abs());
            let identity = row.identity.clone().unwrap_or(own);
            let outcome = if status == ExperimentStatus::Running && running::is_run(path, row.id) {
                ImportOutcome::Running
            } else {
                self.take_over(&other, &row, &identity)?
            };
            done.push(Imported {
                theirs: row.id,
                name: row.name,
                outcome,
            });
        }
        Ok(done)
    }

    fn take_over(
        &mut self,
        other: &Other<'_>,
        row: &Row,
        identity: &str,
    ) -> Result<ImportOutcome, StoreError> {
        let written = |path: &Path| {
            let path = path.to_owned();
            move |e| failed(&path, "written", e)
        };
        let here = self.known(identity)?;
        let here_path = self.path.clone();
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(written(&here_path))?;
        let outcome = match here {
            Some(id) => ImportOutcome::Here {
                id,
                trials_missing: other.missing(row.id, id, &transaction)?,
            },
            None => {
                other.decode::<Vec<PutBackRecord>>(&format!("experiment {}", row.id), &row.put_back)?;
                transaction
                    .execute(
                        "INSERT INTO experiment (name, status, started_unix_ms, finished_unix_ms, record, put_back, \
                         identity) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                        params![
                            row.name,
                            row.status,
                            row.started_unix_ms,
                            row.finished_unix_ms,
                            row.text,
                            row.put_back,
                            identity
                        ],
                    )
                    .map_err(written(&here_path))?;
                let id = transaction.last_insert_rowid();
                let trials = other.copy_trials(row.id, id, &transaction, &here_path)?;
                ImportOutcome::Added { id, trials }
            }
        };
        if let ImportOutcome::Added { id, .. } | ImportOutcome::Here { id, .. } = outcome {
            other.copy_labels(row.id, id, &transaction, &here_path)?;
        }
        other.file.unchanged()?;
        transaction.commit().map_err(written(&here_path))?;
        Ok(outcome)
    }

    /// The number of the experiment with this identity; of those without one, it is worked out.
    fn known(&self, identity: &str) -> Result<Option<i64>, StoreError> {
        let read = |e| self.failed("read", e);
        let found = self
            .connection
            .query_row(
                "SELECT id FROM experiment WHERE identity = ?1",
                [identity],
                |row| row.get(0),
            )
            .optional()
            .map_err(read)?;
        if found.is_some() {
            return Ok(found);
        }
        let without: Vec<i64> = self
            .connection
            .prepare("SELECT id FROM experiment WHERE identity IS NULL")
            .and_then(|mut statement| statement.query_map([], |row| row.get(0))?.collect())
            .map_err(read)?;
        for id in without {
            let stored = self.experiment_alone(id)?;
            if identity::derived(&stored.record, stored.started_unix_ms) == identity {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }
}

impl Other<'_> {
    fn connection(&self) -> &Connection {
        &self.file.connection
    }

    fn read(&self, source: rusqlite::Error) -> StoreError {
        failed(self.path, "read", source)
    }

    fn broken(&self, what: &str, reason: String) -> StoreError {
        StoreError::Record {
            path: self.path.to_owned(),
            what: what.to_owned(),
            reason,
        }
    }

    fn decode<T: DeserializeOwned>(&self, what: &str, text: &str) -> Result<T, StoreError> {
        serde_json::from_str(text).map_err(|e| self.broken(what, e.to_string()))
    }

    fn experiments(&self) -> Result<Vec<Row>, StoreError> {
        let identity = if self.file.version >= 3 {
            "identity"
        } else {
            "NULL"
        };
        let sql = format!(
            "SELECT id, name, status, started_unix_ms, finished_unix_ms, record, put_back, {identity} \
             FROM experiment ORDER BY id"
        );
        let rows = || -> rusqlite::Result<Vec<Row>> {
            self.connection()
                .prepare(&sql)?
                .query_map([], |row| {
                    Ok(Row {
                        id: row.get(0)?,
                        name: row.get(1)?,
                        status: row.get(2)?,
                        started_unix_ms: row.get(3)?,
                        finished_unix_ms: row.get(4)?,
                        text: row.get(5)?,
                        put_back: row.get(6)?,
                        identity: row.get(7)?,
                    })
                })?
                .collect()
        };
        rows().map_err(|e| self.read(e))
    }

    /// Trials of an experiment that is here already, which are not.
    fn missing(&self, theirs: i64, ours: i64, here: &Transaction<'_>) -> Result<u64, StoreError> {
        let sql = "SELECT count(*) FROM trial WHERE experiment_id = ?1";
        let count = |connection: &Connection, id| connection.query_row(sql, [id], |row| row.get::<_, i64>(0));
        let (there, here) = (count(self.connection(), theirs), count(here, ours));
        let there = there.map_err(|e| self.read(e))?;
        Ok((there - here.map_err(|e| self.read(e))?).max(0).unsigned_abs())
    }

    fn copy_trials(
        &self,
        theirs: i64,
        ours: i64,
        here: &Transaction<'_>,
        path: &Path,
    ) -> Result<u64, StoreError> {
        let written = |e| failed(path, "written", e);
        let mut trials = self
            .connection()
            .prepare(
                "SELECT id, block, treatment, status, record FROM trial WHERE experiment_id = ?1 ORDER BY id",
            )
            .map_err(|e| self.read(e))?;
        let mut rows = trials.query([theirs]).map_err(|e| self.read(e))?;
        let mut count = 0;
        while let Some(row) = rows.next().map_err(|e| self.read(e))? {
            let get = || -> rusqlite::Result<(i64, u32, String, String, String)> {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
            };
            let (trial, block, treatment, status, record) = get().map_err(|e| self.read(e))?;
            self.decode::<TrialRecord>(&format!("trial {trial}"), &record)?;
            here.execute(
                "INSERT INTO trial (experiment_id, block, treatment, status, record) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![ours, block, treatment, status, record],
            )
            .map_err(written)?;
            count += 1;
            if self.file.version >= 2 {
                self.copy_series(trial, here.last_insert_rowid(), here, path)?;
            }
        }
        Ok(count)
    }

    /// Blobs go as they are, once they were seen to unpack.
    fn copy_series(
        &self,
        theirs: i64,
        ours: i64,
        here: &Transaction<'_>,
        path: &Path,
    ) -> Result<(), StoreError> {
        let written = |e| failed(path, "written", e);
        let mut insert = here
            .prepare("INSERT INTO series (trial_id, metric, label, points) VALUES (?1, ?2, ?3, ?4)")
            .map_err(written)?;
        let mut series = self
            .connection()
            .prepare("SELECT metric, label, points FROM series WHERE trial_id = ?1")
            .map_err(|e| self.read(e))?;
        let mut rows = series.query([theirs]).map_err(|e| self.read(e))?;
        while let Some(row) = rows.next().map_err(|e| self.read(e))? {
            let get = || -> rusqlite::Result<(String, String, Vec<u8>)> {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            };
            let (metric, label, points) = get().map_err(|e| self.read(e))?;
            series::unpack_points(&points)
                .map_err(|reason| self.broken(&format!("the series {metric} of trial {theirs}"), reason))?;
            insert
                .execute(params![ours, metric, label, points])
                .map_err(written)?;
        }
        let mut gaps = self
            .connection()
            .prepare("SELECT at_ms, source, reason FROM gap WHERE trial_id = ?1 ORDER BY rowid")
            .map_err(|e| self.read(e))?;
        let mut rows = gaps.query([theirs]).map_err(|e| self.read(e))?;
        while let Some(row) = rows.next().map_err(|e| self.read(e))? {
            let get =
                || -> rusqlite::Result<(i64, String, String)> { Ok((row.get(0)?, row.get(1)?, row.get(2)?)) };
            let (at_ms, source, reason) = get().map_err(|e| self.read(e))?;
            here.execute(
                "INSERT INTO gap (trial_id, at_ms, source, reason) VALUES (?1, ?2, ?3, ?4)",
                params![ours, at_ms, source, reason],
            )
            .map_err(written)?;
        }
        Ok(())
    }

    /// Tags and notes that are not here yet.
    fn copy_labels(
        &self,
        theirs: i64,
        ours: i64,
        here: &Transaction<'_>,
        path: &Path,
    ) -> Result<(), StoreError> {
        if self.file.version < 3 {
            return Ok(());
        }
        let written = |e| failed(path, "written", e);
        let tags: Vec<String> = self
            .connection()
            .prepare("SELECT word FROM tag WHERE experiment_id = ?1")
            .and_then(|mut statement| statement.query_map([theirs], |row| row.get(0))?.collect())
            .map_err(|e| self.read(e))?;
        for word in tags {
            labels::tag_is_fine(&word)
                .map_err(|reason| self.broken(&format!("a tag of experiment {theirs}"), reason))?;
            here.execute(
                "INSERT OR IGNORE INTO tag (experiment_id, word) VALUES (?1, ?2)",
                params![ours, word],
            )
            .map_err(written)?;
        }
        let notes: Vec<(i64, String)> = self
            .connection()
            .prepare("SELECT written_unix_ms, text FROM note WHERE experiment_id = ?1 ORDER BY id")
            .and_then(|mut statement| {
                statement
                    .query_map([theirs], |row| Ok((row.get(0)?, row.get(1)?)))?
                    .collect()
            })
            .map_err(|e| self.read(e))?;
        for (written_unix_ms, text) in notes {
            labels::note_is_fine(&text)
                .map_err(|reason| self.broken(&format!("a note of experiment {theirs}"), reason))?;
            here.execute(
                "INSERT INTO note (experiment_id, written_unix_ms, text) SELECT ?1, ?2, ?3 WHERE NOT EXISTS \
                 (SELECT 1 FROM note WHERE experiment_id = ?1 AND written_unix_ms = ?2 AND text = ?3)",
                params![ours, written_unix_ms, text],
            )
            .map_err(written)?;
        }
        Ok(())
    }
}
