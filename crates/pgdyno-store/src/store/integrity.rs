//! Whether a store is whole: SQLite's own check, what refers to what, and that every record and series can be read.

use super::open::Foreign;
use super::{StoreError, failed, labels};
use crate::record::{ExperimentRecord, ExperimentStatus, PutBackRecord, TrialRecord, TrialStatus};
use crate::series;
use rusqlite::Connection;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// So many faults are told; a file that has more has one cause.
const FAULTS_MAX: usize = 100;

/// What was looked at, and what does not hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Integrity {
    /// Version of the file's schema.
    pub schema: i64,
    /// Experiments looked at.
    pub experiments: u64,
    /// Trials looked at.
    pub trials: u64,
    /// Columns of series that were unpacked.
    pub columns: u64,
    /// Points in them.
    pub points: u64,
    /// What does not hold, a sentence each, at most a hundred.
    pub faults: Vec<String>,
}

/// Looks at every byte of the store at `path`, of this schema or an older one, waiting for another process as long as
/// `patience`. The file is not changed. An error is a file that is no such store or cannot be read at all.
pub fn check_file(path: &Path, patience: Duration) -> Result<Integrity, StoreError> {
    let file = Foreign::open(path, patience)?;
    let mut look = Look {
        connection: &file.connection,
        treatments: BTreeMap::new(),
        found: Integrity {
            schema: file.version,
            ..Integrity::default()
        },
    };
    look.all().map_err(|source| failed(path, "read", source))?;
    file.unchanged()?;
    Ok(look.found)
}

struct Look<'a> {
    connection: &'a Connection,
    /// Of each experiment: blocks that were planned, and the names of its treatments.
    treatments: BTreeMap<i64, (u32, BTreeSet<String>)>,
    found: Integrity,
}

impl Look<'_> {
    fn all(&mut self) -> rusqlite::Result<()> {
        self.sqlite()?;
        // What SQLite itself cannot follow is not worth more words.
        if !self.found.faults.is_empty() {
            return Ok(());
        }
        self.references()?;
        self.experiments()?;
        self.trials()?;
        if self.found.schema >= 2 {
            self.series()?;
        }
        if self.found.schema >= 3 {
            self.labels()?;
        }
        Ok(())
    }

    fn fault(&mut self, text: String) {
        if self.found.faults.len() < FAULTS_MAX {
            self.found.faults.push(text);
        }
    }

    fn sqlite(&mut self) -> rusqlite::Result<()> {
        let mut statement = self
            .connection
            .prepare(&format!("PRAGMA integrity_check({FAULTS_MAX})"))?;
        let lines = statement
            .query_map([], |row| row.get::<_, String>(0))
            .and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>);
        match lines {
            Ok(lines) => {
                for line in lines.iter().filter(|line| *line != "ok") {
                    self.fault(format!("SQLite: {line}"));
                }
                Ok(())
            }
            // A page that is damaged badly ends the check itself.
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt) => {
                self.fault(format!("SQLite: {error}"));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn references(&mut self) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare("PRAGMA foreign_key_check")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
            let number: Option<i64> = row.get(1)?;
            let which = number.map_or_else(String::new, |number| format!(" {number}"));
            self.fault(format!(
                "{table}{which} refers to a row of {parent} that is not there"
            ));
        }
        Ok(())
    }

    fn decoded<T: DeserializeOwned>(&mut self, what: &str, part: &str, text: &str) -> Option<T> {
        match serde_json::from_str(text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.fault(format!("{what}: its {part} cannot be read: {error}"));
                None
            }
        }
    }

    fn experiments(&mut self) -> rusqlite::Result<()> {
        let mut statement = self
            .connection
            .prepare("SELECT id, name, status, record, put_back FROM experiment ORDER BY id")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (id, name): (i64, String) = (row.get(0)?, row.get(1)?);
            let what = format!("experiment {id}");
            self.found.experiments += 1;
            self.decoded::<ExperimentStatus>(&what, "status", row.get_ref(2)?.as_str()?);
            self.decoded::<Vec<PutBackRecord>>(&what, "list of what was put back", row.get_ref(4)?.as_str()?);
            let record: Option<ExperimentRecord> = self.decoded(&what, "record", row.get_ref(3)?.as_str()?);
            let Some(record) = record else { continue };
            if record.name != name {
                self.fault(format!(
                    "{what}: it is called {name:?}, its record says {:?}",
                    record.name
                ));
            }
            let names = record.treatments.into_iter().map(|treatment| treatment.name);
            self.treatments.insert(id, (record.blocks, names.collect()));
        }
        Ok(())
    }

    fn trials(&mut self) -> rusqlite::Result<()> {
        let mut statement = self
            .connection
            .prepare("SELECT id, experiment_id, block, treatment, status, record FROM trial ORDER BY id")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (id, experiment, block): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let treatment: String = row.get(3)?;
            let what = format!("trial {id} of experiment {experiment}");
            self.found.trials += 1;
            let status: Option<TrialStatus> = self.decoded(&what, "status", row.get_ref(4)?.as_str()?);
            let record: Option<TrialRecord> = self.decoded(&what, "record", row.get_ref(5)?.as_str()?);
            if let (Some(status), Some(record)) = (status, record)
                && (i64::from(record.block), &record.treatment, record.status) != (block, &treatment, status)
            {
                self.fault(format!(
                    "{what}: its record is of another block, treatment or status"
                ));
            }
            let planned = self.treatments.get(&experiment);
            let fits = planned.is_none_or(|(blocks, names)| {
                (1..=i64::from(*blocks)).contains(&block) && names.contains(&treatment)
            });
            if !fits {
                self.fault(format!(
                    "{what}: block {block} with {treatment:?} is not in the experiment's plan"
                ));
            }
        }
        Ok(())
    }

    fn series(&mut self) -> rusqlite::Result<()> {
        let mut statement = self
            .connection
            .prepare("SELECT trial_id, metric, label, points FROM series")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            self.found.columns += 1;
            match series::unpack_points(row.get_ref(3)?.as_blob()?) {
                Ok((at_ms, _)) => self.found.points += at_ms.len() as u64,
                Err(reason) => {
                    let (trial, metric, label): (i64, String, String) =
                        (row.get(0)?, row.get(1)?, row.get(2)?);
                    self.fault(format!(
                        "the series {metric} {label:?} of trial {trial} cannot be read: {reason}"
                    ));
                }
            }
        }
        Ok(())
    }

    fn labels(&mut self) -> rusqlite::Result<()> {
        let tags: Vec<(i64, String)> = self.pairs("SELECT experiment_id, word FROM tag")?;
        for (id, word) in tags {
            if let Err(reason) = labels::tag_is_fine(&word) {
                self.fault(format!("experiment {id}: {reason}"));
            }
        }
        for (id, text) in self.pairs("SELECT experiment_id, text FROM note")? {
            if let Err(reason) = labels::note_is_fine(&text) {
                self.fault(format!("experiment {id}: {reason}"));
            }
        }
        Ok(())
    }

    fn pairs(&self, sql: &str) -> rusqlite::Result<Vec<(i64, String)>> {
        self.connection
            .prepare(sql)?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect()
    }
}
