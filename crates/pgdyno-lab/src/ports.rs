//! Ports: everything outside that the runner drives, as small traits. `real/` has the adapters for
//! a real server and host, `sim/` a seeded simulator for tests.

use crate::error::LabError;
use crate::file::{EventPart, GuardPart, ServerPart, SettingScope};
use crate::foreign::ProgramData;
use crate::measurement::Measurement;
use crate::plan::{Plan, ServerVariant, Treatment};
use crate::preflight::PreflightReport;
use crate::probe::ServerBeside;
use pgdyno_engine::Second;
use pgdyno_knobs::{Agreed, Applied, OfHost, Restart, Restored, Setting};
use pgdyno_record::{
    ExperimentRecord, ExperimentStatus, FactRecord, RestoredRecord, SeriesRecord, StoredExperiment,
    TreatmentRecord, TrialRecord,
};
use pgdyno_store::StoreError;
use pgdyno_workload::{DataPlan, DataProgress, Dataset, Shape};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The clock that a run goes by: the machine's, or a simulated one.
pub(crate) trait Clock {
    /// Time since some moment before the run; it never decreases.
    fn now(&self) -> Duration;
    /// Milliseconds since 1970, UTC.
    fn unix_ms(&self) -> u64;
    /// A number that no other run draws, to be a seed.
    fn seed(&self) -> u64;
    /// Minutes since midnight, local time.
    fn minute_of_day(&self) -> u32;
    /// Blocks for that time.
    fn pause(&self, length: Duration);
}

/// The store of results, of this host or of another one. Every method fails as the store does.
pub trait Results {
    /// Begins an experiment and returns its number.
    fn begin(&mut self, record: &ExperimentRecord) -> Result<i64, StoreError>;
    /// Adds a treatment to an experiment; one of that name that is there already stays. It is
    /// durable then.
    fn add_treatment(&mut self, id: i64, treatment: &TreatmentRecord) -> Result<(), StoreError>;
    /// Shows others that the experiment is still run by this process.
    fn keep(&mut self) -> Result<(), StoreError>;
    /// Keeps trials with their series, all or none; they are durable then.
    fn add_trials(&mut self, id: i64, trials: &[(TrialRecord, SeriesRecord)]) -> Result<(), StoreError>;
    /// An experiment with all its trials.
    fn experiment(&self, id: i64) -> Result<StoredExperiment, StoreError>;
    /// Says how far an experiment is now.
    fn set_status(&mut self, id: i64, status: ExperimentStatus) -> Result<(), StoreError>;
    /// Keeps what was restored at the end.
    fn set_restored(&mut self, id: i64, lines: &[RestoredRecord]) -> Result<(), StoreError>;
}

/// Why a server is gone to.
pub(crate) struct Purpose<'t> {
    /// Text of the file, which is stored in the journal.
    pub(crate) text: &'t str,
    /// Whether the host's settings are changed too.
    pub(crate) of_host: OfHost,
    /// Commands that may make anything on it, and statements that do.
    pub(crate) commands: &'t [String],
    /// Where settings are set.
    pub(crate) scope: SettingScope,
}

/// A program that chooses what a search tries next.
pub(crate) trait Optimizer {
    /// Says a line, to which no answer is expected. Returns whether it was said: somebody may ask
    /// to stop.
    fn tell(&mut self, line: &str) -> Result<bool, LabError>;
    /// The answer to a line; `None` where somebody asked to stop.
    fn ask(&mut self, line: &str) -> Result<Option<String>, LabError>;
}

/// Programs that can be started to choose.
pub(crate) trait Optimizers {
    /// Starts one by its command.
    fn begin(&self, command: &str) -> Result<Box<dyn Optimizer + '_>, LabError>;
}

/// The servers of an experiment: the target, and sandboxes like it that differ in version or place.
pub(crate) trait Servers<'s> {
    /// Makes the server if it does not exist, starts it if it does not run, and begins a journal
    /// for its changes.
    fn go_to(
        &mut self,
        variant: &ServerVariant,
        purpose: &Purpose<'_>,
    ) -> Result<Box<dyn TrialTarget + 's>, LabError>;
    /// The server is not needed for now; its changes are restored already.
    fn leave(&mut self, variant: &ServerVariant) -> Result<(), LabError>;
    /// Removes a server of the experiment's own, where it is there; who goes to it next makes a new
    /// one.
    fn remove(&mut self, variant: &ServerVariant) -> Result<(), LabError>;
    /// Ends what processes that were killed have left running for experiments.
    fn end_left_behind(&mut self) -> Result<(), LabError>;
    /// Removes what the experiment has made for itself, its files too, whose names begin with
    /// `files`; the target is as it was.
    fn end(&mut self, files: &str) -> Result<(), LabError>;
}

/// One server of an experiment, with all that a trial does to it.
pub(crate) trait TrialTarget: Server + Changes + Data + Caches + Load {}

impl<T: Server + Changes + Data + Caches + Load> TrialTarget for T {}

/// A server that trials run on.
pub(crate) trait Server {
    /// Whether it is a sandbox: data may be made and dropped on it, and it may be stopped.
    fn is_sandbox(&self) -> bool;
    /// Finds all that keeps the plan from running here, and excludes treatments that cannot be
    /// tested.
    fn preflight(&mut self, plan: &mut Plan) -> Result<PreflightReport, LabError>;
    /// Starts the server if it has gone away since, or waits for it where only its owner can start
    /// it.
    fn ensure_running(&mut self) -> Result<(), LabError>;
    /// Stops it: a pool of huge pages that is sized for several servers is sized while all are
    /// down. [`Server::ensure_running`] starts it again.
    fn stop(&mut self) -> Result<(), LabError>;
    /// As a server beside another one, whose load goes to it too.
    fn beside(&mut self, database: Option<&str>) -> Result<ServerBeside, LabError>;
    /// Facts of the server and its host.
    fn facts(&mut self) -> Result<Vec<FactRecord>, LabError>;
    /// Kills the server and starts it again; seconds until it answers.
    fn crash(&mut self) -> Result<f64, LabError>;
    /// A figure that a statement returns.
    fn figure(&mut self, database: Option<&str>, sql: &str) -> Result<f64, LabError>;
}

/// Settings that are applied, also while a load runs.
pub(crate) trait Apply {
    /// Brings the server to exactly `settings`; what was changed before and is not named is
    /// restored.
    fn apply(&mut self, settings: &[Agreed<Setting>], restart: Restart) -> Result<Vec<Applied>, LabError>;
}

/// What can be done to a server while its load runs.
pub(crate) trait Meanwhile: Apply {
    /// Kills the server and starts it again; seconds until it answers.
    fn kill(&mut self) -> Result<f64, LabError>;
    /// Starts a neighbour that ends with the load.
    fn start_neighbour(&mut self, part: &ServerPart) -> Result<(), LabError>;
}

/// Changes of settings, with their journal.
pub(crate) trait Changes: Apply {
    /// Restores everything and closes the journal.
    fn restore(self: Box<Self>) -> Result<Vec<Restored>, LabError>;
}

/// What a server holds of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Present {
    /// It has none of the tables.
    Missing,
    /// It has all of them.
    There(Shape),
}

/// Data. `database` is the treatment's own, or `None` for the target's.
pub(crate) trait Data {
    fn present(&mut self, database: Option<&str>, dataset: Dataset) -> Result<Present, LabError>;
    /// Makes a database, if it does not exist.
    fn make_database(&mut self, name: &str) -> Result<(), LabError>;
    /// Makes the tables; `go_on` is asked all along and ends it. `is_marked`: in the journal, to be
    /// dropped at restore.
    fn create(
        &mut self,
        database: Option<&str>,
        plan: &DataPlan,
        is_marked: bool,
        go_on: &mut dyn FnMut(DataProgress) -> bool,
    ) -> Result<(), LabError>;
    /// Data that the program of a treatment makes: made where it is missing, and brought to the
    /// state that a trial begins with. `files` is the experiment's.
    fn bring_of_program(
        &mut self,
        data: &ProgramData,
        treatment: &Treatment,
        files: &str,
    ) -> Result<(), LabError>;
    /// Whether there is a copy of a database to make new ones from.
    fn has_template(&mut self, name: &str) -> Result<bool, LabError>;
    /// Keeps a copy of a database to make new ones from, if there is none.
    fn keep_template(&mut self, name: &str) -> Result<(), LabError>;
    /// Replaces a database by a copy of its template.
    fn renew_from_template(&mut self, name: &str) -> Result<(), LabError>;
    fn vacuum(&mut self, database: Option<&str>) -> Result<(), LabError>;
    /// Whether files were saved as `name`, to their end.
    fn has_files(&mut self, name: &str) -> Result<bool, LabError>;
    /// Saves the server's files as `name`.
    fn save_files(&mut self, name: &str) -> Result<(), LabError>;
    /// Copies the files that were saved under that name back to the server.
    fn restore_files(&mut self, name: &str) -> Result<(), LabError>;
}

/// What is in memory and on disk when a load begins.
pub(crate) trait Caches {
    /// Reads the data into caches, as the treatment says. Cold caches come with the restart.
    fn prewarm(&mut self, treatment: &Treatment, database: Option<&str>) -> Result<(), LabError>;
    fn checkpoint(&mut self, database: Option<&str>) -> Result<(), LabError>;
}

/// The load of a trial, with what it is driven against.
pub(crate) struct Drive<'t> {
    pub(crate) treatment: &'t Treatment,
    pub(crate) database: Option<&'t str>,
    pub(crate) guard: &'t GuardPart,
    pub(crate) seed: u64,
    /// Begins the names of the experiment's files.
    pub(crate) files: &'t str,
    /// Changes of settings while it runs, at most.
    pub(crate) changes: u32,
    /// What is done to the server while it runs, because the file says so.
    pub(crate) events: &'t [EventPart],
    /// Servers that get the whole load too, at the same time.
    pub(crate) beside: Vec<ServerBeside>,
    /// Where they take turns instead: the load is then so many times as long as a trial measures.
    pub(crate) turns: Option<InTurns<'t>>,
}

/// Servers that take turns within a load.
#[derive(Clone)]
pub(crate) struct InTurns<'t> {
    /// Length of a turn.
    pub(crate) slice: Duration,
    /// Whose servers they are, the first one's first, each with its database, where that is not the
    /// target's.
    pub(crate) treatments: Vec<(&'t Treatment, Option<String>)>,
}

/// A load that was driven.
pub(crate) struct Driven {
    pub(crate) measurement: Measurement,
    /// What the host ran short of, where that has ended it.
    pub(crate) shortage: Option<String>,
    /// Whether it ended before its time because it had measured what it was to measure.
    pub(crate) is_enough: bool,
}

/// What is asked after each second of a load.
pub(crate) type GoOn<'t> = dyn FnMut(&Second, &mut dyn Meanwhile) -> bool + 't;

/// The load, with the pooler and the neighbour that the treatment needs.
pub(crate) trait Load {
    /// Drives it until its end, until `stop` is set, or until `go_on` says no after a second, in
    /// which it may change settings.
    fn drive(
        &mut self,
        drive: &Drive<'_>,
        stop: &AtomicBool,
        go_on: &mut GoOn<'_>,
    ) -> Result<Driven, LabError>;
}
