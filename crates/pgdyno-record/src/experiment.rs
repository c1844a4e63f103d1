//! An experiment as it is begun and as it is stored, with its treatments and what was restored. Format 1.
//!
//! A field that a later version adds gets `#[serde(default)]`, so that a newer pgdyno reads what an older one wrote.

use crate::fact::FactRecord;
use crate::metric::{Better, Metric};
use crate::trial::TrialRecord;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// How far an experiment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExperimentStatus {
    /// Being run, or its process died.
    Running,
    /// All its trials are done.
    Finished,
    /// Stopped in order before that.
    Interrupted,
}

/// The load of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadRecord {
    /// Name of the workload.
    pub name: String,
    /// Scale of its data.
    pub scale: u32,
    /// Clients.
    pub clients: u32,
    /// Threads of the load.
    pub threads: u32,
    /// Warm-up in seconds.
    pub warmup_s: f64,
    /// Measured time in seconds.
    pub measure_s: f64,
}

/// A setting of a treatment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingRecord {
    /// Id of the knob.
    pub knob: String,
    /// What is asked for.
    pub value: String,
    /// Layer by name.
    pub layer: String,
    /// Risk by name.
    pub risk: String,
    /// Whether this treatment adds or changes it against what it is compared with.
    pub changed: bool,
}

/// A treatment of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TreatmentRecord {
    /// Unique name.
    pub name: String,
    /// For people.
    pub title: String,
    /// Why it is tried.
    pub reason: Option<String>,
    /// Why it was not tested, if it was not.
    pub why_not: Option<String>,
    /// All its settings.
    pub settings: Vec<SettingRecord>,
    /// Factor and level, in the order of the file; "step" and its name for steps.
    #[serde(default)]
    pub levels: Vec<(String, String)>,
    /// Name of the treatment that it is held against; `None` also in records from before there were factors.
    #[serde(default)]
    pub against: Option<String>,
    /// Its load, where it is not the experiment's.
    #[serde(default)]
    pub workload: Option<WorkloadRecord>,
    /// What else it has of its own, as ("server.pooler", "pgbouncer").
    #[serde(default)]
    pub around: Vec<(String, String)>,
}

impl TreatmentRecord {
    /// One that sets nothing.
    pub fn new(name: &str) -> TreatmentRecord {
        TreatmentRecord {
            name: name.to_owned(),
            title: name.to_owned(),
            reason: None,
            why_not: None,
            settings: Vec::new(),
            levels: Vec::new(),
            against: None,
            workload: None,
            around: Vec::new(),
        }
    }
}

/// A factor of an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactorRecord {
    /// Unique name.
    pub name: String,
    /// For people.
    pub title: String,
    /// A condition: its levels are not held against one another.
    pub along: bool,
    /// Names of its levels, the reference first.
    pub levels: Vec<String>,
}

/// A figure of trials beyond those that every trial has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FigureRecord {
    /// Its name, the unit last.
    pub name: String,
    /// Whether a larger value is the better one.
    pub larger_is_better: bool,
}

/// A published study that an experiment repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyRecord {
    /// Its tag.
    pub source: String,
    /// Title and year.
    pub title: String,
    /// Tables of results.
    pub tables: Vec<TableRecord>,
    /// What it found.
    pub claims: Vec<ClaimRecord>,
}

/// A table: figures by one factor, or one figure by two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableRecord {
    /// Heading.
    pub title: String,
    /// Factor of the rows; steps where there is none.
    pub rows: Option<String>,
    /// Factor of the columns.
    pub columns: Option<String>,
    /// Figures by name.
    pub values: Vec<String>,
}

/// Something that a study found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimRecord {
    /// In words.
    pub text: String,
    /// Levels of the treatments that it is about.
    pub of: BTreeMap<String, String>,
    /// Levels of what they are held against.
    pub against: BTreeMap<String, String>,
    /// The figure.
    pub metric: String,
    /// "better", "worse" or "same".
    pub found: String,
    /// The ratio that was told.
    pub ratio: Option<f64>,
}

/// A knob that was restored at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "PutBack"))]
pub struct PutBackRecord {
    /// Id of the knob.
    pub knob: String,
    /// Its file.
    #[serde(rename = "where")]
    pub place: String,
    /// Value before.
    pub was: String,
    /// Last value set.
    pub set_to: String,
    /// "restored", "already", "left" or "failed".
    #[cfg_attr(
        feature = "typescript",
        ts(type = "\"restored\" | \"already\" | \"left\" | \"failed\"")
    )]
    pub outcome: String,
    /// More to say.
    pub detail: Option<String>,
}

/// An experiment as it is begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentRecord {
    /// Its name.
    pub name: String,
    /// The question.
    pub question: String,
    /// "cumulative" or "one-at-a-time".
    pub design: String,
    /// Blocks planned: at most [`BLOCKS_MAX`].
    #[serde(deserialize_with = "blocks")]
    pub blocks: u32,
    /// Seed of order and load.
    pub seed: u64,
    /// Confidence of all intervals together.
    pub confidence: f64,
    /// Smallest effect that matters.
    pub smallest_effect: f64,
    /// The load.
    pub workload: WorkloadRecord,
    /// Treatments in the order of the plan, the reference first: at most [`TREATMENTS_MAX`].
    #[serde(deserialize_with = "treatments")]
    pub treatments: Vec<TreatmentRecord>,
    /// Facts before the first trial.
    pub facts: Vec<FactRecord>,
    /// The experiment file, whole.
    pub file: String,
    /// Commands that repeat it.
    pub repeat: Vec<String>,
    /// Name of the target, without secrets.
    pub target: String,
    /// Name of the sandbox that the target is, if it is one; `None` also in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// The figure that decides.
    #[serde(default = "tps")]
    pub metric: String,
    /// "after-blocks" or "when-decided".
    #[serde(default = "after_blocks")]
    pub stop: String,
    /// Factors, where it has them in place of steps.
    #[serde(default)]
    pub factors: Vec<FactorRecord>,
    /// Figures that are taken from series.
    #[serde(default)]
    pub figures: Vec<FigureRecord>,
    /// The study that it repeats.
    #[serde(default)]
    pub study: Option<StudyRecord>,
}

/// No experiment has more blocks; what is worked out of a record grows with them.
pub const BLOCKS_MAX: u32 = 1000;
/// No experiment has more treatments.
pub const TREATMENTS_MAX: usize = 1000;

fn blocks<'de, D: Deserializer<'de>>(text: D) -> Result<u32, D::Error> {
    let blocks = u32::deserialize(text)?;
    match blocks <= BLOCKS_MAX {
        true => Ok(blocks),
        false => Err(D::Error::custom(format!(
            "it has {blocks} blocks, expected at most {BLOCKS_MAX}"
        ))),
    }
}

fn treatments<'de, D: Deserializer<'de>>(text: D) -> Result<Vec<TreatmentRecord>, D::Error> {
    let treatments = Vec::deserialize(text)?;
    match treatments.len() <= TREATMENTS_MAX {
        true => Ok(treatments),
        false => Err(D::Error::custom(format!(
            "it has {} treatments, expected at most {TREATMENTS_MAX}",
            treatments.len()
        ))),
    }
}

fn tps() -> String {
    "tps".to_owned()
}

fn after_blocks() -> String {
    "after-blocks".to_owned()
}

/// The design of a single load, or of one with several numbers of clients, which `pgdyno bench` has driven: nothing is compared in it,
/// and there is no experiment file.
pub const DESIGN_OF_LOADS: &str = "load";

impl ExperimentRecord {
    /// One with a name and a load, and nothing else: a block, no treatment.
    pub fn new(name: &str, workload: WorkloadRecord) -> ExperimentRecord {
        ExperimentRecord {
            name: name.to_owned(),
            question: String::new(),
            design: "one-at-a-time".to_owned(),
            blocks: 1,
            seed: 1,
            confidence: 0.95,
            smallest_effect: 0.02,
            workload,
            treatments: Vec::new(),
            facts: Vec::new(),
            file: String::new(),
            repeat: Vec::new(),
            target: String::new(),
            sandbox: None,
            metric: tps(),
            stop: after_blocks(),
            factors: Vec::new(),
            figures: Vec::new(),
            study: None,
        }
    }

    /// Whether a larger value of a figure is the better one.
    pub fn larger_is_better(&self, figure: &str) -> bool {
        let own = self.figures.iter().find(|own| own.name == figure);
        let known = Metric::named(figure).is_some_and(|metric| metric.better == Better::Higher);
        own.map_or(known, |own| own.larger_is_better)
    }
}

/// An experiment as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredExperiment {
    /// Number in this store.
    pub id: i64,
    /// As it was begun.
    pub record: ExperimentRecord,
    /// How far it is.
    pub status: ExperimentStatus,
    /// When it began.
    pub started_unix_ms: u64,
    /// When it ended.
    pub finished_unix_ms: Option<u64>,
    /// What was restored at the end.
    pub put_back: Vec<PutBackRecord>,
    /// Trials in the order they ran, with their numbers.
    pub trials: Vec<(i64, TrialRecord)>,
}
