//! How far a running experiment is: a small file beside its lock, written by the process that runs
//! it and read by other processes. It means nothing without the lock, so one that a killed process
//! has left does no harm.

use super::beside;
use super::{Store, StoreError};
use crate::store::find::Life;
use pgdyno_record::{ExperimentStatus, PROGRESS_FORMAT, ProgressRecord, TrialStatus};
use rustix::fs::OFlags;
use std::fs::{OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// A longer file is none of ours.
const BYTES_MAX: u64 = 100_000;

/// Where the progress of the experiments of a store is written down; for the one process that runs
/// them.
#[derive(Debug, Clone)]
pub struct ProgressPlace {
    store: PathBuf,
}

/// What can be said of an experiment at a glance.
#[derive(Debug, Clone, PartialEq)]
pub struct Pulse {
    /// Status together with whether a process still runs it.
    pub life: Life,
    /// Time of its begin, since 1970.
    pub started_unix_ms: u64,
    /// Time of its end, since 1970; `None` while it runs, and where it was killed.
    pub finished_unix_ms: Option<u64>,
    /// Trials that finished and count.
    pub trials_finished: u64,
    /// Trials that failed or whose figures do not hold.
    pub trials_failed: u64,
    /// Progress that its process has written; `None` where none runs it or none is written.
    pub progress: Option<ProgressRecord>,
}

impl ProgressPlace {
    /// Writes down how far an experiment is: whole or not at all, and not flushed, for it is not
    /// kept.
    pub fn write(&self, experiment: i64, progress: &ProgressRecord) -> io::Result<()> {
        let text = serde_json::to_vec(progress).map_err(io::Error::other)?;
        let new = beside::new_progress_of(&self.store, experiment);
        // Whatever is there, a link perhaps, is not written to.
        let _ = std::fs::remove_file(&new);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)?;
        file.write_all(&text)?;
        // Who reads the store by its group reads this too.
        let store = std::fs::metadata(&self.store)?;
        let of_group = store.mode() & 0o060;
        if of_group != 0 && fchown(&file, None, Some(store.gid())).is_ok() {
            file.set_permissions(Permissions::from_mode(0o600 | of_group))?;
        }
        std::fs::rename(&new, beside::progress_of(&self.store, experiment))
    }
}

impl Store {
    /// Where the progress of its experiments is written; `None` where it is not a file.
    pub fn progress_place(&self) -> Option<ProgressPlace> {
        let store = self.place().file()?.to_owned();
        Some(ProgressPlace { store })
    }

    /// What can be said of an experiment at a glance: no record is read.
    pub fn pulse(&self, experiment: i64) -> Result<Pulse, StoreError> {
        let finished = self.encode("a status", &TrialStatus::Finished)?;
        let what = format!("experiment {experiment}");
        let found = self.database().first(
            "SELECT status, started_unix_ms, finished_unix_ms, identity IS NOT NULL, \
             (SELECT count(*) FROM trial t WHERE t.experiment_id = e.id AND t.status = $2), \
             (SELECT count(*) FROM trial t WHERE t.experiment_id = e.id) \
             FROM experiment e WHERE id = $1",
            &[experiment.into(), finished.into()],
            |row| {
                let status: ExperimentStatus = self.decode(&what, &row.text(0)?)?;
                let (trials_finished, trials) = (row.count(4)?, row.count(5)?);
                let pulse = Pulse {
                    life: Life::RunningOrKilled,
                    started_unix_ms: row.count(1)?,
                    finished_unix_ms: row.maybe_int(2)?.map(i64::unsigned_abs),
                    trials_finished,
                    trials_failed: trials.saturating_sub(trials_finished),
                    progress: None,
                };
                Ok((pulse, status, row.flag(3)?))
            },
        )?;
        let (mut pulse, status, identified) = found.ok_or_else(|| StoreError::Unknown {
            place: self.place().clone(),
            id: experiment,
        })?;
        pulse.life = self.life(experiment, status, identified);
        if pulse.life == Life::Killed && self.has_ended(experiment)? {
            return self.pulse(experiment);
        }
        if pulse.life == Life::Running {
            pulse.progress = self.place().file().and_then(|file| read_of(file, experiment));
        }
        Ok(pulse)
    }

    /// Numbers of the trials of an experiment that were stored after the trial of this number; 0
    /// for all of them.
    pub fn trials_after(&self, experiment: i64, trial: i64) -> Result<Vec<i64>, StoreError> {
        self.database().rows(
            "SELECT id FROM trial WHERE experiment_id = $1 AND id > $2 ORDER BY id",
            &[experiment.into(), trial.into()],
            |row| row.int(0),
        )
    }
}

/// What the process that runs an experiment says of it; another version's file says nothing.
fn read_of(store: &Path, experiment: i64) -> Option<ProgressRecord> {
    let file = beside::open(&beside::progress_of(store, experiment), OFlags::RDONLY).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut text).ok()?;
    let progress: ProgressRecord = serde_json::from_slice(&text).ok()?;
    (progress.format == PROGRESS_FORMAT).then_some(progress)
}
