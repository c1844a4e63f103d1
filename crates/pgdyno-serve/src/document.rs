//! What the server answers beside reports and trials, as JSON.

use pgdyno_knobs::{Keep, StatusLine};
use pgdyno_record::FactRecord;
use pgdyno_stats::Verdict;
use pgdyno_store::{Life, Listed};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::path::PathBuf;

/// The list of experiments.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "List"))]
pub struct ListDocument {
    /// Experiments, the newest first.
    pub experiments: Vec<ListRow>,
    /// Whether all answers and plans that can be known are there; the others come with a later
    /// request.
    pub is_whole: bool,
}

/// An experiment of the list.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Listed"))]
pub struct ListRow {
    /// Number of the experiment in the store.
    pub id: i64,
    /// Name from the experiment file; not unique.
    pub name: String,
    /// The question; empty where its record cannot be read.
    pub question: String,
    /// State of the experiment: "running", "killed", "running or killed", "finished" or
    /// "interrupted".
    #[serde(serialize_with = "word")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub status: Life,
    /// Time of its begin, since 1970.
    pub started_unix_ms: u64,
    /// Time of its end, since 1970; `None` while it runs, and where it was killed.
    pub finished_unix_ms: Option<u64>,
    /// Name of the target; empty where its record cannot be read.
    pub target: String,
    /// Trials that finished and count.
    pub trials_finished: u64,
    /// Trials that failed or whose figures do not hold.
    pub trials_failed: u64,
    /// Trials of the plan, at most; `None` where it is not known yet.
    pub trials_planned: Option<u64>,
    /// Answer in one sentence; `None` where it is not known yet.
    pub answer: Option<String>,
    /// Tags in alphabetical order.
    pub tags: Vec<String>,
    /// Number of its notes.
    pub notes: u64,
}

impl ListRow {
    pub(super) fn new(listed: Listed, trials_planned: Option<u64>, answer: Option<String>) -> ListRow {
        ListRow {
            id: listed.id,
            name: listed.name,
            question: listed.question,
            status: listed.life,
            started_unix_ms: listed.started_unix_ms,
            finished_unix_ms: listed.finished_unix_ms,
            target: listed.target,
            trials_finished: listed.trials_finished,
            trials_failed: listed.trials_failed,
            trials_planned,
            answer,
            tags: listed.tags,
            notes: listed.notes,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn word<S: Serializer>(life: &Life, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(life.word())
}

/// Progress of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Progress {
    /// Trials that finished and count.
    pub trials_finished: u64,
    /// Trials that failed or whose figures do not hold.
    pub trials_failed: u64,
    /// Trials of the plan, at most; `None` where it is not known.
    pub trials_planned: Option<u64>,
    /// Seconds that its process has run it; `None` where none does.
    pub elapsed_s: Option<f64>,
    /// Seconds until its last trial ends; `None` where that is not known.
    pub left_s: Option<f64>,
    /// What its process does now, in a word; `None` where it does not report it.
    pub phase: Option<String>,
    /// The trial that runs now; `None` between two.
    pub current: Option<Current>,
    /// Treatments with a verdict other than "undecided".
    pub decided: Vec<Decided>,
}

/// A trial that runs now.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Current {
    /// Name of the treatment that it tries.
    pub treatment: String,
    /// Number of its block, from 1.
    pub block: u32,
    /// What is done of it now: "warm-up".
    pub phase: String,
}

/// The verdict on a treatment.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Decided {
    /// Name of the treatment that was decided.
    pub treatment: String,
    /// Verdict, never "undecided".
    pub verdict: Verdict,
}

/// The targets of the stored experiments.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Targets {
    /// Targets, those of the newest experiments first.
    pub targets: Vec<Target>,
    /// All that is changed by a pgdyno of the host that the server runs on; `None` where that is
    /// not known.
    pub changed_on_host: Option<Vec<ChangedBy>>,
    /// Why the changes on the host are not known; `None` where they are.
    pub why_not_known: Option<String>,
    /// Whether servers were asked for their own settings.
    pub servers_asked: bool,
}

/// A server with the host that it runs on.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Target {
    /// Name of the target, without secrets.
    pub name: String,
    /// Numbers of the experiments that ran on it.
    pub experiments: Vec<i64>,
    /// What is changed on it now; `None` where that is not known.
    pub changed: Option<Vec<ChangedBy>>,
    /// Why the changes are not known; `None` where they are.
    pub why_not_known: Option<String>,
    /// Facts of its newest experiment, as of before the first trial.
    #[cfg_attr(feature = "typescript", ts(as = "Option<Vec<FactRecord>>"))]
    pub facts: Vec<FactRecord>,
    /// The document of `pgdyno advise --json`; `None` where there is none.
    #[cfg_attr(feature = "typescript", ts(type = "unknown"))]
    pub advice: Option<Value>,
    /// Whether the advice is not made yet, and comes with a later request.
    pub is_advice_due: bool,
}

/// What one process has changed, as `pgdyno status --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Journal"))]
pub struct ChangedBy {
    /// Number that `pgdyno restore` and `pgdyno confirm` take.
    pub number: usize,
    /// Path of the journal's file.
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub journal: PathBuf,
    /// The other home that the journal belongs to; `None` for this home's.
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub home: Option<String>,
    /// Faults of the journal, a sentence each.
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub damage: Vec<String>,
    /// What the changes were made for: "run demo".
    pub purpose: String,
    /// Server that they are of; `None` where only the host's are.
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub server: Option<String>,
    /// User that made them; `None` in journals of earlier versions.
    pub by: Option<String>,
    /// Process that made them.
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub pid: u32,
    /// Time at which the journal was begun, since 1970.
    pub since_unix_ms: u64,
    /// Whether the process that made them still runs.
    pub alive: bool,
    /// How long the changes stay; `None` of what a killed process left.
    pub kept: Option<Keep>,
    /// Changes with what they are now.
    pub changes: Vec<StatusLine>,
}
