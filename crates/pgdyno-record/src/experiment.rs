//! An experiment as it is begun and as it is stored, with its treatments and what was restored.
//! Format 1.
//!
//! A field that a later version adds gets `#[serde(default)]`, so that a newer pgdyno reads what an
//! older one wrote.

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

/// Workload, data and clients of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Workload"))]
pub struct WorkloadRecord {
    /// Name of the workload: "tpcb".
    pub name: String,
    /// Scale of its data: units of 100,000 rows, or warehouses.
    pub scale: u32,
    /// Number of connections that send transactions.
    pub clients: u32,
    /// Number of threads that drive the clients.
    pub threads: u32,
    /// Time at the start of the load that is in no figure.
    pub warmup_s: f64,
    /// Time after the warm-up that all figures are of.
    pub measure_s: f64,
}

/// A setting of a treatment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingRecord {
    /// Id of the knob in the catalogue: "vm.swappiness".
    pub knob: String,
    /// Value as the experiment file has it: "8GB".
    pub value: String,
    /// Layer of the knob by its name in the catalogue; "postgres" for settings that are not in it.
    pub layer: String,
    /// Risk of this value by its name in the catalogue; "none" for settings that are not in it.
    pub risk: String,
    /// Whether this treatment adds or changes it against what it is compared with.
    pub changed: bool,
}

/// A treatment of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TreatmentRecord {
    /// Name, unique in the experiment.
    pub name: String,
    /// Title that reports show in place of the name.
    pub title: String,
    /// Why it is tried, from the experiment file; `None` without a reason there.
    pub reason: Option<String>,
    /// Why it was not tested; `None` where it was.
    pub why_not: Option<String>,
    /// All settings that it runs with; in a cumulative design those of the steps before it too.
    pub settings: Vec<SettingRecord>,
    /// Factor and level, in the order of the file; "step" and its name for steps.
    #[serde(default)]
    pub levels: Vec<(String, String)>,
    /// Name of the treatment that it is compared with; `None` also in records from before there
    /// were factors.
    #[serde(default)]
    pub against: Option<String>,
    /// Its load, where it is not the experiment's.
    #[serde(default)]
    pub workload: Option<WorkloadRecord>,
    /// What else it has of its own, as ("server.pooler", "pgbouncer").
    #[serde(default, alias = "around")]
    pub environment: Vec<(String, String)>,
}

impl TreatmentRecord {
    /// A treatment without settings, whose title is its name.
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
            environment: Vec::new(),
        }
    }
}

/// A factor of an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactorRecord {
    /// Name, unique in the experiment.
    pub name: String,
    /// Title that reports show in place of the name.
    pub title: String,
    /// Whether it is a condition, whose levels are not compared with one another.
    #[serde(alias = "along")]
    pub condition: bool,
    /// Names of its levels, the reference first.
    pub levels: Vec<String>,
}

/// A figure of trials beyond those that every trial has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FigureRecord {
    /// Name that ends with its unit: "wal_bytes".
    pub name: String,
    /// Whether a larger value is the better one.
    pub larger_is_better: bool,
}

/// A published study that an experiment repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyRecord {
    /// Tag of the publication, as "ibm-z".
    pub source: String,
    /// Title and year of the publication.
    pub title: String,
    /// Charts that its results are drawn as.
    #[serde(default)]
    pub charts: Vec<ChartRecord>,
    /// Tables that its results are shown in.
    pub tables: Vec<TableRecord>,
    /// Findings that the experiment checks.
    pub claims: Vec<ClaimRecord>,
}

/// A chart: one figure along a factor, a line or group of bars for each level of another, a panel
/// for each combination of the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChartRecord {
    /// "lines", "bars", "heat", "waterfall" or "timeline".
    pub form: String,
    /// What the study's own chart shows, in a sentence without a full stop; `None` where the file
    /// does not say.
    pub published: Option<String>,
    /// Its figures: the rows are the places along its axis, the columns its lines.
    pub table: TableRecord,
}

impl ChartRecord {
    /// Whether it shows the whole experiment, and has no figures of its own.
    pub fn is_whole(&self) -> bool {
        matches!(self.form.as_str(), "waterfall" | "timeline")
    }
}

/// A table: figures by one factor, or one figure by two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableRecord {
    /// Heading above the table.
    pub title: String,
    /// Factor of the rows; steps where there is none.
    pub rows: Option<String>,
    /// Factors of the columns, one for each combination of their levels; none where each figure is
    /// a column.
    #[serde(default, deserialize_with = "columns")]
    pub columns: Vec<String>,
    /// Names of the figures in its cells, one for each column or one alone.
    pub values: Vec<String>,
}

/// A list, or, from before there were several: a name or nothing.
fn columns<'de, D: Deserializer<'de>>(stored: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Columns {
        Several(Vec<String>),
        One(Option<String>),
    }
    Ok(match Columns::deserialize(stored)? {
        Columns::Several(names) => names,
        Columns::One(name) => name.into_iter().collect(),
    })
}

/// Something that a study found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimRecord {
    /// The finding in a sentence without a full stop.
    pub text: String,
    /// Levels of the treatments that it is about.
    pub of: BTreeMap<String, String>,
    /// Title of an event, where the finding is about what it changes.
    #[serde(default)]
    pub event: Option<String>,
    /// Levels of the treatments that these are compared with.
    pub against: BTreeMap<String, String>,
    /// Name of the figure that it is about.
    pub metric: String,
    /// Direction that the study found: "better", "worse", "same" or "not-worse".
    pub found: String,
    /// Ratio that the study reports, 1.12 = 12 % more; `None` where it reports none.
    pub ratio: Option<f64>,
    /// Title of the chart that shows it; `None` where none does.
    #[serde(default)]
    pub chart: Option<String>,
}

/// A knob that was restored at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Restored"))]
pub struct RestoredRecord {
    /// Id of the knob in the catalogue.
    pub knob: String,
    /// Where the value is: the path of a file, or a command such as "ALTER SYSTEM work_mem".
    #[serde(rename = "where")]
    pub place: String,
    /// Value before the experiment, which is restored.
    pub was: String,
    /// Last value that pgdyno set.
    pub set_to: String,
    /// "restored", "already", "left" or "failed".
    #[cfg_attr(
        feature = "typescript",
        ts(type = "\"restored\" | \"already\" | \"left\" | \"failed\"")
    )]
    pub outcome: String,
    /// Why it was left or failed; `None` where there is no more to it.
    pub detail: Option<String>,
}

/// An experiment as it is begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentRecord {
    /// Name from the experiment file; several experiments of a store may have the same.
    pub name: String,
    /// Question that the experiment answers, as its file has it.
    pub question: String,
    /// Name of the design, as "cumulative", "full-factorial" or [`DESIGN_OF_LOADS`].
    pub design: String,
    /// Blocks planned: at most [`BLOCKS_MAX`].
    #[serde(deserialize_with = "blocks")]
    pub blocks: u32,
    /// Seed of order and load.
    pub seed: u64,
    /// Confidence of all intervals together.
    pub confidence: f64,
    /// Smallest effect that matters, 0.02 = 2 %.
    pub smallest_effect: f64,
    /// Load of every treatment that has none of its own.
    pub workload: WorkloadRecord,
    /// Treatments in the order of the plan, the reference first: at most [`TREATMENTS_MAX`].
    #[serde(deserialize_with = "treatments")]
    pub treatments: Vec<TreatmentRecord>,
    /// Facts before the first trial.
    pub facts: Vec<FactRecord>,
    /// Text of the experiment file; empty where there is none.
    pub file: String,
    /// Shell commands that repeat the experiment, in order.
    pub repeat: Vec<String>,
    /// Name of the target, without secrets.
    pub target: String,
    /// Name of the sandbox that the target is, if it is one; `None` also in records of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// Name of the figure that verdicts go by.
    #[serde(default = "tps")]
    pub metric: String,
    /// Rule for the end: "after-blocks", "when-decided" or "when-gain-decided".
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

/// The design of a single load, or of one with several numbers of clients, which `pgdyno bench` has
/// driven: nothing is compared in it, and there is no experiment file.
pub const DESIGN_OF_LOADS: &str = "load";

/// Rule for the end of an experiment that looks for gains.
pub const WHEN_GAIN_DECIDED: &str = "when-gain-decided";

impl ExperimentRecord {
    /// Whether it may end before its last block.
    pub fn may_stop(&self) -> bool {
        self.stop != after_blocks()
    }

    /// Whether a treatment is not tried again, too, once a gain of the smallest effect is
    /// improbable.
    pub fn looks_for_gains(&self) -> bool {
        self.stop == WHEN_GAIN_DECIDED
    }

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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredExperiment {
    /// Number in this store.
    pub id: i64,
    /// Record as of its begin.
    pub record: ExperimentRecord,
    /// Status as stored: of one whose process was killed it is still `Running`.
    pub status: ExperimentStatus,
    /// Time of its begin, since 1970.
    pub started_unix_ms: u64,
    /// Time of its end, since 1970; `None` while it runs, and where it was killed.
    pub finished_unix_ms: Option<u64>,
    /// Knobs that were restored at the end, with the outcome of each.
    pub restored: Vec<RestoredRecord>,
    /// Trials in the order they ran, with their numbers.
    pub trials: Vec<(i64, TrialRecord)>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TrialRecord;
    use serde_json::{Map, Value};

    /// The same with a key as older stores have it.
    fn older(record: &impl Serialize, key: &str, was: &str) -> Value {
        let value = serde_json::to_value(record).unwrap();
        let mut fields: Map<String, Value> = value.as_object().unwrap().clone();
        let field = fields
            .remove(key)
            .unwrap_or_else(|| panic!("no {key} in {value}"));
        fields.insert(was.to_owned(), field);
        Value::Object(fields)
    }

    #[test]
    fn keys_of_older_stores_are_read() {
        let mut treatment = TreatmentRecord::new("pooled");
        treatment.environment = vec![("server.pooler".to_owned(), "pgbouncer".to_owned())];
        let read: TreatmentRecord =
            serde_json::from_value(older(&treatment, "environment", "around")).unwrap();
        assert_eq!(read, treatment);

        let factor = FactorRecord {
            name: "clients".to_owned(),
            title: "clients".to_owned(),
            condition: true,
            levels: vec!["1".to_owned(), "8".to_owned()],
        };
        let read: FactorRecord = serde_json::from_value(older(&factor, "condition", "along")).unwrap();
        assert_eq!(read, factor);

        let mut trial = TrialRecord::begun(1, 1, "pooled");
        trial.server_variant = Some("server 16".to_owned());
        let read: TrialRecord = serde_json::from_value(older(&trial, "server_variant", "stand")).unwrap();
        assert_eq!(read.server_variant, trial.server_variant);
    }

    /// Tables of stores from before a table's columns could be of several factors.
    #[test]
    fn columns_of_older_stores_are_read() {
        let table = |columns: &str| -> Vec<String> {
            let text = format!(r#"{{"title": "T", "rows": null, "columns": {columns}, "values": []}}"#);
            serde_json::from_str::<TableRecord>(&text).unwrap().columns
        };
        assert!(table("null").is_empty());
        assert_eq!(table("\"pages\""), ["pages"]);
        assert_eq!(table("[\"a\", \"b\"]"), ["a", "b"]);
    }
}
