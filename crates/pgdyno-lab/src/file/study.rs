//! Figures of an experiment's own, and the study that it repeats.

use super::choices::{ChartForm, Found, Take};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A figure of a trial that is taken from a series, or asked from the server after the load.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FigurePart {
    /// Name that ends with its unit: "wal_bytes".
    pub name: String,
    /// The series' metric, as in docs/reference/metrics.md and docs/reference/metrics-server.md.
    pub metric: Option<String>,
    /// A query that gives one number, asked in the load's database when the load has ended.
    pub sql: Option<String>,
    /// The series' label; all labels are added up where none is given, and those that begin with it
    /// where it ends with `*`.
    pub label: Option<String>,
    /// What is taken of its measured time.
    #[serde(default)]
    pub take: Take,
    /// Whether a larger value is the better one.
    #[serde(default)]
    pub larger_is_better: bool,
}

impl FigurePart {
    /// Whether a series with this label is a part of it.
    pub(crate) fn takes(&self, label: &str) -> bool {
        let Some(wanted) = self.label.as_deref() else {
            return true;
        };
        match wanted.strip_suffix('*') {
            Some(beginning) => label.starts_with(beginning),
            None => label == wanted,
        }
    }
}

/// A published study.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyPart {
    /// Tag of the publication, as "ibm-z".
    pub source: String,
    /// Title and year of the publication.
    pub title: String,
    /// Charts of results.
    #[serde(default)]
    pub chart: Vec<ChartPart>,
    /// Tables of results.
    #[serde(default)]
    pub table: Vec<TablePart>,
    /// Findings that the experiment checks.
    #[serde(default)]
    pub claim: Vec<ClaimPart>,
}

/// A chart of results: one figure along a factor.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChartPart {
    /// Heading above the chart, unique among charts.
    pub title: String,
    /// How it is drawn: "lines", "bars", "heat", "waterfall" or "timeline".
    pub form: ChartForm,
    /// Factor along its axis; the steps where none is given.
    pub x: Option<String>,
    /// Factor whose levels are lines, groups of bars, or columns of a heat table; of several
    /// factors, each combination of their levels.
    #[serde(default)]
    pub lines: Names,
    /// The figure; the experiment's own when not given.
    pub value: Option<String>,
    /// What the study's own chart shows, in a sentence without a full stop.
    pub published: Option<String>,
}

/// A factor's name, or several.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected the name of a factor, or a list of names")]
pub enum Names {
    /// One.
    One(String),
    /// As many as the list has.
    Several(Vec<String>),
}

impl Default for Names {
    fn default() -> Self {
        Names::Several(Vec::new())
    }
}

impl Names {
    /// All of them.
    pub fn list(&self) -> &[String] {
        match self {
            Names::One(name) => std::slice::from_ref(name),
            Names::Several(names) => names,
        }
    }
}

/// A table of results: one figure by one or two factors.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TablePart {
    /// Heading above the table.
    pub title: String,
    /// Factor of the rows; the steps where none is given.
    pub rows: Option<String>,
    /// Factor of the columns; without it each figure is a column.
    pub columns: Option<String>,
    /// Figures: one column each where there is no factor of columns.
    pub values: Vec<String>,
}

/// Something that a study found, and how it would show here.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimPart {
    /// A sentence without a full stop.
    pub text: String,
    /// The treatment: factor = level, or step = name. Levels that are not named are all those there
    /// are.
    #[serde(default)]
    pub of: BTreeMap<String, String>,
    /// Title of an event, where the finding is about what it changes: after it against before.
    pub event: Option<String>,
    /// What it is compared with; the reference when not given.
    #[serde(default)]
    pub against: BTreeMap<String, String>,
    /// The figure; the experiment's own when not given.
    pub metric: Option<String>,
    /// Direction that the study found.
    pub found: Found,
    /// Ratio that the study reports, where it does: 1.12 is 12 % more.
    pub ratio: Option<f64>,
    /// Title of the chart that shows it.
    pub chart: Option<String>,
}
