//! A store of results, in one file of SQLite or in PostgreSQL: safe for many processes, every trial
//! durable when it ends.

use pgdyno_record::{
    ExperimentRecord, ExperimentStatus, GapRecord, RestoredRecord, SeriesRecord, StoredExperiment,
    TreatmentRecord, TrialRecord,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

mod beside;
mod columns;
mod database;
mod error;
mod find;
mod identity;
mod import;
mod integrity;
mod labels;
mod place;
mod postgres;
mod progress;
mod prune;
mod reader;
mod sqlite;
mod trials;

use database::{Database, Row, Value};
pub use error::{StoreError, Unreached};
pub use find::{Filter, Life, Listed};
pub use import::{ImportOutcome, Imported};
pub use integrity::Integrity;
pub use labels::{NOTE_CHARS_MAX, Note, TAG_CHARS_MAX};
pub use place::Place;
pub use postgres::{Link, MissingRight};
use postgres::{May, Postgres};
pub use progress::{ProgressPlace, Pulse};
pub use prune::{PrunePlan, PruneRule, Removable};
pub use reader::Reader;
use sqlite::Sqlite;

const INSERT_TRIAL: &str = "
INSERT INTO trial (experiment_id, block, treatment, status, record) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (experiment_id, block, treatment) DO NOTHING RETURNING id";

/// A trial as it is stored.
struct PreparedTrial<'t> {
    experiment: i64,
    trial: &'t TrialRecord,
    /// Of [`INSERT_TRIAL`].
    values: [Value; 5],
    /// Metric, label and points of each column.
    packed: Vec<(&'t str, String, Vec<u8>)>,
    gaps: &'t [GapRecord],
}

/// A store opened for reading and writing, in a file or in PostgreSQL.
pub struct Store {
    database: Box<dyn Database>,
}

impl Store {
    /// Opens the store in the file at `path`, making it if it is not there.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        let database = Box::new(Sqlite::open(path)?);
        Ok(Store { database })
    }

    /// Opens the store in PostgreSQL that the link leads to, making it if it is not there. One that
    /// was lost is connected to again, and what is known not to be stored is stored then.
    pub fn over(link: Link) -> Result<Store, StoreError> {
        let database = Box::new(Postgres::open(link, May::Make)?);
        Ok(Store { database })
    }

    /// The same with a store that is there: a mistyped name makes none.
    pub fn over_existing(link: Link) -> Result<Store, StoreError> {
        let database = Box::new(Postgres::open(link, May::Migrate)?);
        Ok(Store { database })
    }

    /// The same with a store that is there and of this schema: neither made nor brought up to it.
    pub fn over_as_it_is(link: Link) -> Result<Store, StoreError> {
        let database = Box::new(Postgres::open(link, May::Nothing)?);
        Ok(Store { database })
    }

    /// Rights that a run lacks in the store in PostgreSQL that the link leads to, whether it is
    /// there already or not. Nothing is made.
    ///
    /// # Errors
    ///
    /// A server that cannot be reached, is read-only, or gives no answer.
    pub fn missing_rights(link: Link) -> Result<Vec<MissingRight>, StoreError> {
        postgres::missing(link)
    }

    /// Opens the store in the file at `path` as it is, neither made nor brought up to this schema,
    /// waiting no longer than `patience` for another process that holds the file.
    pub fn open_as_it_is(path: &Path, patience: Duration) -> Result<Store, StoreError> {
        let database = Box::new(Sqlite::open_as_it_is(path, patience)?);
        Ok(Store { database })
    }

    /// Path or server of the store, for messages.
    pub fn place(&self) -> &Place {
        self.database.place()
    }

    fn database(&self) -> &dyn Database {
        &*self.database
    }

    /// Begins an experiment and returns its number.
    pub fn begin(&mut self, record: &ExperimentRecord) -> Result<i64, StoreError> {
        let database = self.database();
        let started_unix_ms = now_unix_ms();
        let identity = identity::new(record, started_unix_ms);
        let values = [
            Value::from(&record.name),
            self.encode("an experiment", &ExperimentStatus::Running)?.into(),
            started_unix_ms.into(),
            self.encode("an experiment", record)?.into(),
            identity.as_str().into(),
        ];
        let mut held = None;
        let begun = database.transaction(|_| {
            if let Some(id) = held.take() {
                database.let_go(id);
            }
            let inserted = database.insert(
                "INSERT INTO experiment (name, status, started_unix_ms, record, identity) VALUES ($1, $2, $3, $4, $5) \
                 ON CONFLICT (identity) DO NOTHING RETURNING id",
                &values,
            )?;
            // There already where only the answer to the first attempt was lost.
            let id = match inserted {
                Some(id) => id,
                None => database.number("SELECT id FROM experiment WHERE identity = $1", &values[4..])?,
            };
            // Nobody may see it as running without its lock.
            self.hold(id)?;
            held = Some(id);
            Ok(id)
        });
        match (&begun, held) {
            (Ok(id), _) => database.say_runs(*id, true),
            (Err(_), Some(id)) => database.let_go(id),
            (Err(_), None) => (),
        }
        begun
    }

    /// Makes a connection to the store that was lost again, so that what this process runs is seen
    /// to be run; without one that was lost, a statement is sent and no more.
    pub fn keep(&mut self) -> Result<(), StoreError> {
        self.database().keep()
    }

    /// Whether a store in PostgreSQL that was kept open is there still and of this schema; a
    /// connection that was lost is made again for that. Never of a file, which is as well opened
    /// again.
    pub fn is_current(&self) -> bool {
        self.database().is_current()
    }

    /// Stores a trial with its series: durable, and whole, when this returns. A trial of the same
    /// block and treatment is never replaced.
    pub fn add_trial(
        &mut self,
        experiment: i64,
        trial: &TrialRecord,
        series: &SeriesRecord,
    ) -> Result<i64, StoreError> {
        let prepared = self.prepared(experiment, trial, series)?;
        let database = self.database();
        database.transaction(|again| self.insert_trial(&prepared, again))
    }

    /// The same for trials that belong together: all of them, or none. Returns their numbers.
    pub fn add_trials(
        &mut self,
        experiment: i64,
        trials: &[(TrialRecord, SeriesRecord)],
    ) -> Result<Vec<i64>, StoreError> {
        let prepared = trials
            .iter()
            .map(|(trial, series)| self.prepared(experiment, trial, series));
        let prepared = prepared.collect::<Result<Vec<_>, _>>()?;
        let database = self.database();
        database.transaction(|again| {
            let all = prepared.iter();
            all.map(|one| self.insert_trial(one, again)).collect()
        })
    }

    /// What is stored of a trial, packed before a transaction begins.
    fn prepared<'t>(
        &self,
        experiment: i64,
        trial: &'t TrialRecord,
        series: &'t SeriesRecord,
    ) -> Result<PreparedTrial<'t>, StoreError> {
        Ok(PreparedTrial {
            experiment,
            trial,
            values: [
                Value::from(experiment),
                trial.block.into(),
                Value::from(&trial.treatment),
                self.encode("a trial", &trial.status)?.into(),
                self.encode("a trial", trial)?.into(),
            ],
            packed: columns::packed(series),
            gaps: &series.gaps,
        })
    }

    /// `again`: the transaction was sent before, and its answer was lost.
    fn insert_trial(&self, of: &PreparedTrial<'_>, again: bool) -> Result<i64, StoreError> {
        let database = self.database();
        let Some(id) = database.insert(INSERT_TRIAL, &of.values)? else {
            // What is the same to the byte is what was lost with its answer.
            let there = again.then(|| {
                let sql = "SELECT id FROM trial WHERE experiment_id = $1 AND block = $2 AND treatment = $3 \
                           AND status = $4 AND record = $5";
                database.first(sql, &of.values, |row| row.int(0))
            });
            return there.transpose()?.flatten().ok_or_else(|| StoreError::Twice {
                place: self.place().clone(),
                experiment: of.experiment,
                block: of.trial.block,
                treatment: of.trial.treatment.clone(),
            });
        };
        let rows = of.packed.iter().map(|(metric, label, points)| {
            vec![
                id.into(),
                Value::from(*metric),
                Value::from(label),
                points.clone().into(),
            ]
        });
        let rows: Vec<Vec<Value>> = rows.collect();
        database.insert_all("series (trial_id, metric, label, points)", &rows)?;
        let rows = of.gaps.iter().map(|gap| {
            vec![
                id.into(),
                gap.at_ms.into(),
                Value::from(&gap.source),
                Value::from(&gap.reason),
            ]
        });
        let rows: Vec<Vec<Value>> = rows.collect();
        database.insert_all("gap (trial_id, at_ms, source, reason)", &rows)?;
        Ok(id)
    }

    /// Says how far an experiment is now.
    pub fn set_status(&mut self, experiment: i64, status: ExperimentStatus) -> Result<(), StoreError> {
        let runs = status == ExperimentStatus::Running;
        // Before anything is written: the experiment may not be this process's any more.
        let stored = self.experiment_alone(experiment)?;
        if runs {
            self.hold(experiment)?;
            self.identify(&stored)?;
        }
        let text = self.encode("a status", &status)?;
        let finished = (!runs).then(now_unix_ms);
        let database = self.database();
        // Sent twice, the second would find what the first has written.
        database.say_runs(experiment, false);
        let changed = database.execute(
            "UPDATE experiment SET status = $2, finished_unix_ms = $3 WHERE id = $1",
            &[experiment.into(), text.into(), finished.into()],
        )?;
        if changed == 0 || !runs {
            database.let_go(experiment);
        }
        if changed == 0 {
            return Err(self.unknown(experiment));
        }
        database.say_runs(experiment, runs);
        Ok(())
    }

    fn unknown(&self, id: i64) -> StoreError {
        let place = self.place().clone();
        StoreError::Unknown { place, id }
    }

    /// Marks an experiment as run by this process.
    fn hold(&self, id: i64) -> Result<(), StoreError> {
        let place = || self.place().clone();
        match self.database().hold(id)? {
            true => Ok(()),
            false => Err(StoreError::Running { place: place(), id }),
        }
    }

    /// Gives an experiment of an earlier schema, which has none, the identity that follows from
    /// what it is.
    fn identify(&self, stored: &StoredExperiment) -> Result<(), StoreError> {
        let identity = identity::derived(&stored.record, stored.started_unix_ms);
        self.database().execute(
            "UPDATE experiment SET identity = $2 WHERE id = $1 AND identity IS NULL \
             AND NOT EXISTS (SELECT 1 FROM experiment other WHERE other.identity = $2)",
            &[stored.id.into(), identity.into()],
        )?;
        Ok(())
    }

    /// Adds a treatment to an experiment that is run; one of that name that is there already stays.
    pub fn add_treatment(&mut self, experiment: i64, treatment: &TreatmentRecord) -> Result<(), StoreError> {
        let database = self.database();
        database.transaction(|_| {
            let mut record = self.experiment_alone(experiment)?.record;
            if record.treatments.iter().any(|other| other.name == treatment.name) {
                return Ok(());
            }
            record.treatments.push(treatment.clone());
            let text = self.encode("an experiment", &record)?;
            database.execute(
                "UPDATE experiment SET record = $2 WHERE id = $1",
                &[experiment.into(), text.into()],
            )?;
            Ok(())
        })
    }

    /// Keeps what was restored at the end.
    pub fn set_restored(&mut self, experiment: i64, restored: &[RestoredRecord]) -> Result<(), StoreError> {
        let text = self.encode("what was restored", &restored)?;
        self.database().execute(
            "UPDATE experiment SET put_back = $2 WHERE id = $1",
            &[experiment.into(), text.into()],
        )?;
        Ok(())
    }

    /// (block, treatment) of all trials that are stored.
    pub fn done(&self, experiment: i64) -> Result<Vec<(u32, String)>, StoreError> {
        self.database().rows(
            "SELECT block, treatment FROM trial WHERE experiment_id = $1 ORDER BY id",
            &[experiment.into()],
            |row| Ok((row.small(0)?, row.text(1)?)),
        )
    }

    /// An experiment with all its trials.
    pub fn experiment(&self, id: i64) -> Result<StoredExperiment, StoreError> {
        let mut found = self.experiment_alone(id)?;
        found.trials = self.trials(id)?;
        Ok(found)
    }

    /// An experiment without its trials.
    pub fn experiment_alone(&self, id: i64) -> Result<StoredExperiment, StoreError> {
        self.database()
            .first(
                "SELECT id, record, status, started_unix_ms, finished_unix_ms, put_back FROM experiment WHERE id = $1",
                &[id.into()],
                |row| self.stored(row),
            )?
            .ok_or_else(|| self.unknown(id))
    }

    /// Numbers and status of all experiments, the newest first: no record is read.
    pub fn numbers(&self) -> Result<Vec<(i64, ExperimentStatus)>, StoreError> {
        let sql = "SELECT id, status FROM experiment ORDER BY id DESC";
        self.database().rows(sql, &[], |row| {
            let id = row.int(0)?;
            Ok((id, self.decode(&format!("experiment {id}"), &row.text(1)?)?))
        })
    }

    fn stored(&self, row: &mut Row<'_>) -> Result<StoredExperiment, StoreError> {
        let id = row.int(0)?;
        let what = format!("experiment {id}");
        Ok(StoredExperiment {
            id,
            record: self.decode(&what, &row.text(1)?)?,
            status: self.decode(&what, &row.text(2)?)?,
            started_unix_ms: row.count(3)?,
            finished_unix_ms: row.maybe_int(4)?.map(i64::unsigned_abs),
            restored: self.decode(&what, &row.text(5)?)?,
            trials: Vec::new(),
        })
    }

    fn encode(&self, what: &str, value: &impl Serialize) -> Result<String, StoreError> {
        serde_json::to_string(value).map_err(|e| broken(self.place(), what, e.to_string()))
    }

    fn decode<T: DeserializeOwned>(&self, what: &str, text: &str) -> Result<T, StoreError> {
        decode(self.place(), what, text)
    }
}

/// Values of a record, each of which may take thirty times as much in memory as its text. A trial
/// of two days has 1.6 million.
const VALUES_MAX: usize = 2_000_000;

fn decode<T: DeserializeOwned>(place: &Place, what: &str, text: &str) -> Result<T, StoreError> {
    // Each value of an array or object has one of these before it.
    let values = text
        .bytes()
        .filter(|byte| matches!(byte, b',' | b'[' | b'{'))
        .count();
    if values > VALUES_MAX {
        let reason = format!("it holds more than {VALUES_MAX} values");
        return Err(broken(place, what, reason));
    }
    serde_json::from_str(text).map_err(|e| broken(place, what, e.to_string()))
}

fn broken(place: &Place, what: &str, reason: String) -> StoreError {
    StoreError::Record {
        place: place.clone(),
        what: what.to_owned(),
        reason,
    }
}

fn now_unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
