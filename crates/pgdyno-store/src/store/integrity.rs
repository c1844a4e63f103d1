//! Whether a store is whole: the database's own check, what refers to what, and that every record
//! and series can be read.

use super::columns::{TIMES, Unpacking};
use super::database::{Database, Row};
use super::{Reader, StoreError, labels};
use pgdyno_record::HeatRecord;
use pgdyno_record::{ExperimentRecord, ExperimentStatus, RestoredRecord, TrialRecord, TrialStatus};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};

/// So many faults are reported; a store that has more has one cause.
const FAULTS_MAX: usize = 100;

/// What was checked, and what does not hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Integrity {
    /// Version of the store's schema.
    pub schema: i64,
    /// Number of experiments that were read.
    pub experiments: u64,
    /// Number of trials that were read.
    pub trials: u64,
    /// Number of columns of series that were unpacked.
    pub columns: u64,
    /// Number of points in those columns.
    pub points: u64,
    /// What does not hold, a sentence each, at most a hundred.
    pub faults: Vec<String>,
}

impl Reader {
    /// Looks at every byte of the store. An error is a store that cannot be read at all.
    pub fn check(&self) -> Result<Integrity, StoreError> {
        let mut look = Look {
            database: self.database(),
            treatments: BTreeMap::new(),
            unpacking: Unpacking::default(),
            found: Integrity {
                schema: self.database().version(),
                ..Integrity::default()
            },
        };
        look.all()?;
        self.database().unchanged()?;
        Ok(look.found)
    }
}

struct Look<'a> {
    database: &'a dyn Database,
    /// Of each experiment: blocks that were planned, and the names of its treatments.
    treatments: BTreeMap<i64, (u32, BTreeSet<String>)>,
    unpacking: Unpacking,
    found: Integrity,
}

impl Look<'_> {
    fn all(&mut self) -> Result<(), StoreError> {
        for fault in self.database.own_faults(FAULTS_MAX)? {
            self.fault(fault);
        }
        // What the database itself cannot follow is not checked further.
        if !self.found.faults.is_empty() {
            return Ok(());
        }
        for fault in self.database.lost_references()? {
            self.fault(fault);
        }
        self.each(
            "SELECT id, name, status, record, put_back FROM experiment ORDER BY id",
            Self::experiment,
        )?;
        self.each(
            "SELECT id, experiment_id, block, treatment, status, record FROM trial ORDER BY id",
            Self::trial,
        )?;
        if self.found.schema >= 2 {
            self.each(
                "SELECT trial_id, metric, label, points FROM series ORDER BY trial_id, metric, label",
                Self::column,
            )?;
        }
        if self.found.schema >= 3 {
            self.each("SELECT experiment_id, word FROM tag", |look, row| {
                look.label(row, labels::tag_is_fine)
            })?;
            self.each("SELECT experiment_id, text FROM note", |look, row| {
                look.label(row, labels::note_is_fine)
            })?;
        }
        Ok(())
    }

    fn each(
        &mut self,
        sql: &str,
        mut act: impl FnMut(&mut Self, &mut Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let database = self.database;
        database.each("read", sql, &[], &mut |row| act(self, row))
    }

    fn fault(&mut self, text: String) {
        if self.found.faults.len() < FAULTS_MAX {
            self.found.faults.push(text);
        }
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

    fn experiment(&mut self, row: &mut Row<'_>) -> Result<(), StoreError> {
        let (id, name) = (row.int(0)?, row.text(1)?);
        let what = format!("experiment {id}");
        self.found.experiments += 1;
        self.decoded::<ExperimentStatus>(&what, "status", &row.text(2)?);
        self.decoded::<Vec<RestoredRecord>>(&what, "list of what was restored", &row.text(4)?);
        let record: Option<ExperimentRecord> = self.decoded(&what, "record", &row.text(3)?);
        let Some(record) = record else { return Ok(()) };
        if record.name != name {
            self.fault(format!(
                "{what}: it is called {name:?}, its record says {:?}",
                record.name
            ));
        }
        let names = record.treatments.into_iter().map(|treatment| treatment.name);
        self.treatments.insert(id, (record.blocks, names.collect()));
        Ok(())
    }

    fn trial(&mut self, row: &mut Row<'_>) -> Result<(), StoreError> {
        let (id, experiment, block) = (row.int(0)?, row.int(1)?, row.int(2)?);
        let treatment = row.text(3)?;
        let what = format!("trial {id} of experiment {experiment}");
        self.found.trials += 1;
        let status: Option<TrialStatus> = self.decoded(&what, "status", &row.text(4)?);
        let record: Option<TrialRecord> = self.decoded(&what, "record", &row.text(5)?);
        let heat = record.as_ref().and_then(|record| record.heat.as_ref());
        if let Some(Err(error)) = heat.map(HeatRecord::counts) {
            self.fault(format!("{what}: {error}"));
        }
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
        Ok(())
    }

    fn column(&mut self, row: &mut Row<'_>) -> Result<(), StoreError> {
        let (trial, metric, label) = (row.int(0)?, row.text(1)?, row.text(2)?);
        let taken = self.unpacking.take_whole(trial, &metric, &label, &row.blob(3)?);
        if metric == TIMES {
            if let Err(reason) = taken {
                self.fault(format!("the times of trial {trial} cannot be read: {reason}"));
            }
            return Ok(());
        }
        self.found.columns += 1;
        match taken {
            Ok(points) => self.found.points += points.map_or(0, |(at_ms, _)| at_ms.len() as u64),
            Err(reason) => self.fault(format!(
                "the series {metric} {label:?} of trial {trial} cannot be read: {reason}"
            )),
        }
        Ok(())
    }

    fn label(
        &mut self,
        row: &mut Row<'_>,
        is_fine: fn(&str) -> Result<(), String>,
    ) -> Result<(), StoreError> {
        let (id, text) = (row.int(0)?, row.text(1)?);
        if let Err(reason) = is_fine(&text) {
            self.fault(format!("experiment {id}: {reason}"));
        }
        Ok(())
    }
}
