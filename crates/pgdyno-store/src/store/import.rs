//! Another store's experiments taken over, each once; the other store is read and never changed.

use super::columns::Unpacking;
use super::database::hold_no_zero;
use super::labels::{INSERT_NOTE, INSERT_TAG};
use super::{INSERT_TRIAL, Reader, Store, StoreError, Value, broken, identity, labels};
use pgdyno_record::{ExperimentRecord, ExperimentStatus, RestoredRecord, TrialRecord};

/// The outcome of one experiment of the other store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Number of the experiment in the other store.
    pub theirs: i64,
    /// Name of the experiment, the same in both stores.
    pub name: String,
    /// Whether it was copied, or why not.
    pub outcome: ImportOutcome,
}

/// What was done with an experiment of another store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportOutcome {
    /// Copied to this store.
    Added {
        /// Number that it has got in this store.
        id: i64,
        /// Number of trials that were copied.
        trials: u64,
    },
    /// It was here before; its new tags and notes were taken over.
    Here {
        /// Number that it has in this store.
        id: i64,
        /// Trials that only the other store has: it went on there.
        trials_missing: u64,
    },
    /// A process runs it there.
    Running,
    /// One of its texts holds the character U+0000, which is not kept.
    Zero,
}

/// An experiment of the other store, as it is stored there.
struct Theirs {
    id: i64,
    name: String,
    status: String,
    started_unix_ms: i64,
    finished_unix_ms: Option<i64>,
    text: String,
    put_back: String,
    identity: Option<String>,
}

impl Store {
    /// Takes over the experiments of another store, of this schema or an older one, under new
    /// numbers, with their trials, series, tags and notes. Each is taken over whole or not at all;
    /// what cannot be read ends it with an error and keeps those before it; one with a text that is
    /// not kept is left.
    pub fn import(&mut self, other: &Reader) -> Result<Vec<Imported>, StoreError> {
        let mut done = Vec::new();
        for id in other.experiments()? {
            let theirs = other.theirs(id)?;
            let record: ExperimentRecord = other.decode(&format!("experiment {id}"), &theirs.text)?;
            let status: ExperimentStatus = other.decode("a status", &theirs.status)?;
            let derived = identity::derived(&record, theirs.started_unix_ms.unsigned_abs());
            let identity = theirs.identity.clone().unwrap_or(derived);
            let outcome = if status == ExperimentStatus::Running && other.database().is_run(id) {
                ImportOutcome::Running
            } else {
                match self.take_over(other, &theirs, &identity) {
                    Err(StoreError::Zero { .. }) => ImportOutcome::Zero,
                    outcome => outcome?,
                }
            };
            done.push(Imported {
                theirs: id,
                name: theirs.name,
                outcome,
            });
        }
        Ok(done)
    }

    fn take_over(
        &self,
        other: &Reader,
        theirs: &Theirs,
        identity: &str,
    ) -> Result<ImportOutcome, StoreError> {
        let database = self.database();
        database.transaction(|_| {
            let outcome = match self.known(identity)? {
                Some(id) => {
                    let sql = "SELECT count(*) FROM trial WHERE experiment_id = $1";
                    let there = other.database().number(sql, &[theirs.id.into()])?;
                    let here = database.number(sql, &[id.into()])?;
                    let trials_missing = (there - here).max(0).unsigned_abs();
                    ImportOutcome::Here { id, trials_missing }
                }
                None => {
                    let id = self.insert_theirs(other, theirs, identity)?;
                    let trials = self.copy_trials(other, theirs.id, id)?;
                    ImportOutcome::Added { id, trials }
                }
            };
            if let ImportOutcome::Added { id, .. } | ImportOutcome::Here { id, .. } = outcome {
                self.copy_labels(other, theirs.id, id)?;
            }
            other.database().unchanged()?;
            Ok(outcome)
        })
    }

    fn insert_theirs(&self, other: &Reader, theirs: &Theirs, identity: &str) -> Result<i64, StoreError> {
        let what = format!("experiment {}", theirs.id);
        other.decode::<Vec<RestoredRecord>>(&what, &theirs.put_back)?;
        let id = self.database().insert(
            "INSERT INTO experiment (name, status, started_unix_ms, finished_unix_ms, record, put_back, identity) \
             VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id",
            &[
                Value::from(&theirs.name),
                Value::from(&theirs.status),
                theirs.started_unix_ms.into(),
                theirs.finished_unix_ms.into(),
                Value::from(&theirs.text),
                Value::from(&theirs.put_back),
                identity.into(),
            ],
        )?;
        id.ok_or_else(|| broken(self.place(), &what, "it was not given a number".to_owned()))
    }

    /// The number of the experiment with this identity; of those without one, it is worked out.
    fn known(&self, identity: &str) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT id FROM experiment WHERE identity = $1";
        let found = self.database().first(sql, &[identity.into()], |row| row.int(0))?;
        if found.is_some() {
            return Ok(found);
        }
        let sql = "SELECT id FROM experiment WHERE identity IS NULL ORDER BY id";
        for id in self.database().rows(sql, &[], |row| row.int(0))? {
            let stored = self.experiment_alone(id)?;
            if identity::derived(&stored.record, stored.started_unix_ms) == identity {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    fn copy_trials(&self, other: &Reader, theirs: i64, ours: i64) -> Result<u64, StoreError> {
        let sql = "SELECT id FROM trial WHERE experiment_id = $1 ORDER BY id";
        let trials = other.database().rows(sql, &[theirs.into()], |row| row.int(0))?;
        for &trial in &trials {
            let sql = "SELECT block, treatment, status, record FROM trial WHERE id = $1";
            let found = other.database().first(sql, &[trial.into()], |row| {
                Ok((row.int(0)?, row.text(1)?, row.text(2)?, row.text(3)?))
            })?;
            let what = format!("trial {trial}");
            let (block, treatment, status, record) =
                found.ok_or_else(|| broken(other.place(), &what, "it is gone".to_owned()))?;
            other.decode::<TrialRecord>(&what, &record)?;
            let values = [
                Value::from(ours),
                block.into(),
                treatment.into(),
                status.into(),
                record.into(),
            ];
            let id = self
                .database()
                .insert(INSERT_TRIAL, &values)?
                .ok_or_else(|| broken(other.place(), &what, "it is there twice".to_owned()))?;
            if other.database().version() >= 2 {
                self.copy_series(other, trial, id)?;
            }
        }
        Ok(trials.len() as u64)
    }

    /// Blobs go as they are, once they were seen to unpack.
    fn copy_series(&self, other: &Reader, theirs: i64, ours: i64) -> Result<(), StoreError> {
        let mut unpacking = Unpacking::default();
        let sql = "SELECT metric, label, points FROM series WHERE trial_id = $1 ORDER BY metric, label";
        let rows = other.database().rows(sql, &[theirs.into()], |row| {
            let (metric, label, points) = (row.text(0)?, row.text(1)?, row.blob(2)?);
            let taken = unpacking.take_whole(theirs, &metric, &label, &points);
            taken.map_err(|reason| {
                let what = format!("the series {metric} of trial {theirs}");
                broken(other.place(), &what, reason)
            })?;
            Ok(vec![ours.into(), metric.into(), label.into(), points.into()])
        })?;
        self.database()
            .insert_all("series (trial_id, metric, label, points)", &rows)?;
        let sql = "SELECT at_ms, source, reason FROM gap WHERE trial_id = $1 ORDER BY rowid";
        let rows = other.database().rows(sql, &[theirs.into()], |row| {
            Ok(vec![
                ours.into(),
                row.int(0)?.into(),
                row.text(1)?.into(),
                row.text(2)?.into(),
            ])
        })?;
        self.database()
            .insert_all("gap (trial_id, at_ms, source, reason)", &rows)
    }

    /// Tags and notes that are not here yet.
    fn copy_labels(&self, other: &Reader, theirs: i64, ours: i64) -> Result<(), StoreError> {
        if other.database().version() < 3 {
            return Ok(());
        }
        let sql = "SELECT word FROM tag WHERE experiment_id = $1 ORDER BY word";
        for word in other.database().rows(sql, &[theirs.into()], |row| row.text(0))? {
            labels::tag_is_fine(&word)
                .map_err(|reason| broken(other.place(), &format!("a tag of experiment {theirs}"), reason))?;
            self.database().execute(INSERT_TAG, &[ours.into(), word.into()])?;
        }
        let sql = "SELECT written_unix_ms, text FROM note WHERE experiment_id = $1 ORDER BY id";
        let notes = other
            .database()
            .rows(sql, &[theirs.into()], |row| Ok((row.int(0)?, row.text(1)?)))?;
        for (written_unix_ms, text) in notes {
            hold_no_zero(self.place(), &[Value::from(&text)])?;
            labels::note_is_fine(&text)
                .map_err(|reason| broken(other.place(), &format!("a note of experiment {theirs}"), reason))?;
            self.database()
                .execute(INSERT_NOTE, &[ours.into(), written_unix_ms.into(), text.into()])?;
        }
        Ok(())
    }
}

impl Reader {
    fn experiments(&self) -> Result<Vec<i64>, StoreError> {
        let sql = "SELECT id FROM experiment ORDER BY id";
        self.database().rows(sql, &[], |row| row.int(0))
    }

    fn theirs(&self, id: i64) -> Result<Theirs, StoreError> {
        let identity = if self.database().version() >= 3 {
            "identity"
        } else {
            "NULL"
        };
        let sql = format!(
            "SELECT id, name, status, started_unix_ms, finished_unix_ms, record, put_back, {identity} \
             FROM experiment WHERE id = $1"
        );
        let found = self.database().first(&sql, &[id.into()], |row| {
            Ok(Theirs {
                id: row.int(0)?,
                name: row.text(1)?,
                status: row.text(2)?,
                started_unix_ms: row.int(3)?,
                finished_unix_ms: row.maybe_int(4)?,
                text: row.text(5)?,
                put_back: row.text(6)?,
                identity: row.maybe_text(7)?,
            })
        })?;
        found.ok_or_else(|| StoreError::Unknown {
            place: self.place().clone(),
            id,
        })
    }
}
