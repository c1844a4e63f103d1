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
    /// The newest first.
    pub experiments: Vec<ListRow>,
    /// Whether all answers and plans that can be known are there; the others come with a later request.
    pub is_whole: bool,
}

/// An experiment of the list.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Listed"))]
pub struct ListRow {
    /// Number in the store.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// The question; empty where its record cannot be read.
    pub question: String,
    /// Whether it runs or has ended, and how.
    #[serde(serialize_with = "word")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub status: Life,
    /// When it began.
    pub started_unix_ms: u64,
    /// When it ended.
    pub finished_unix_ms: Option<u64>,
    /// Name of the target; empty where its record cannot be read.
    pub target: String,
    /// Its finished trials.
    pub trials_finished: u64,
    /// Those that failed or do not hold.
    pub trials_failed: u64,
    /// Trials at most.
    pub trials_planned: Option<u64>,
    /// The answer in one sentence.
    pub answer: Option<String>,
    /// By the alphabet.
    pub tags: Vec<String>,
    /// How many notes there are.
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

/// How far an experiment is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Progress {
    /// Its finished trials.
    pub trials_finished: u64,
    /// Those that failed or do not hold.
    pub trials_failed: u64,
    /// Trials at most.
    pub trials_planned: Option<u64>,
    /// Seconds that its process has run it.
    pub elapsed_s: Option<f64>,
    /// Seconds until its last trial ends.
    pub left_s: Option<f64>,
    /// What its process does now, where it reports it.
    pub phase: Option<String>,
    /// The trial that runs now.
    pub current: Option<Current>,
    /// Treatments that are decided.
    pub decided: Vec<Decided>,
}

/// A trial that runs now.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Current {
    /// Name of its treatment.
    pub treatment: String,
    /// 1-based.
    pub block: u32,
    /// What is done of it now.
    pub phase: String,
}

/// The verdict on a treatment.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Decided {
    /// Name of the treatment.
    pub treatment: String,
    /// Never "undecided".
    pub verdict: Verdict,
}

/// The targets of the stored experiments.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Targets {
    /// Those of the newest experiments first.
    pub targets: Vec<Target>,
    /// All that is changed by a pgdyno of the host that the server runs on; `None` where that is not known.
    pub changed_on_host: Option<Vec<ChangedBy>>,
    /// Why it is not known.
    pub why_not_known: Option<String>,
    /// Whether servers were asked for their own settings.
    pub servers_asked: bool,
}

/// A target.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Target {
    /// Its name.
    pub name: String,
    /// Numbers of its experiments.
    pub experiments: Vec<i64>,
    /// What is changed on it now; `None` where that is not known.
    pub changed: Option<Vec<ChangedBy>>,
    /// Why it is not known.
    pub why_not_known: Option<String>,
    /// Facts of its newest experiment.
    #[cfg_attr(feature = "typescript", ts(as = "Option<Vec<FactRecord>>"))]
    pub facts: Vec<FactRecord>,
    /// The document of `pgdyno advise --json`.
    #[cfg_attr(feature = "typescript", ts(type = "unknown"))]
    pub advice: Option<Value>,
    /// It is not made yet, and comes with a later request.
    pub is_advice_due: bool,
}

/// What one process has changed, as `pgdyno status --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Journal"))]
pub struct ChangedBy {
    /// Number that `pgdyno restore` and `pgdyno confirm` take.
    pub number: usize,
    /// File of the journal.
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub journal: PathBuf,
    /// Another home, where it is of one.
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub home: Option<String>,
    /// What cannot be read of it.
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub damage: Vec<String>,
    /// What was done.
    pub purpose: String,
    /// Who did it.
    pub by: Option<String>,
    /// That process.
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub pid: u32,
    /// Since when.
    pub since_unix_ms: u64,
    /// Whether that process still runs.
    pub alive: bool,
    /// How long the changes stay; `None` of what a killed process left.
    pub kept: Option<Keep>,
    /// What was changed.
    pub changes: Vec<StatusLine>,
}
