//! What a report holds of experiments with factors: tables, findings of a study, effects of factors, curves.

use super::Interval;
use pgdyno_stats::Effect;
use serde::Serialize;

/// A level of a factor, both by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct LevelOf {
    /// Name of the factor; "step" for steps.
    pub factor: String,
    /// Name of the level.
    pub level: String,
}

/// A table of results.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct StudyTable {
    /// Heading.
    pub title: String,
    /// Heading of the first column.
    pub rows: String,
    /// What the columns differ in; empty where each is a figure.
    pub columns_title: String,
    /// The columns but the first.
    pub columns: Vec<TableColumn>,
    /// One for each combination of the levels of factors that the table does not name; those without any trial are not there.
    pub blocks: Vec<TableBlock>,
}

/// A column.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TableColumn {
    /// Heading.
    pub title: String,
    /// Name of the figure.
    pub figure: String,
    /// Heading of that figure, with its unit.
    pub figure_title: String,
}

/// The part of a table for one combination of the other factors.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TableBlock {
    /// Their levels in words; `None` where the table names all factors.
    pub title: Option<String>,
    /// Rows.
    pub rows: Vec<TableRow>,
}

/// A row.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TableRow {
    /// First column.
    pub title: String,
    /// The others; `None` where no trial counts.
    pub cells: Vec<Option<TableCell>>,
}

/// A mean over trials.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TableCell {
    /// Mean.
    pub mean: f64,
    /// Lower bound of its interval; `None` for a single trial.
    pub low: Option<f64>,
    /// Upper bound.
    pub high: Option<f64>,
    /// Trials.
    pub n: usize,
}

/// A published study.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Study {
    /// Its tag.
    pub source: String,
    /// Title and year.
    pub title: String,
    /// How many findings this host agrees with, in a sentence without a full stop; `None` without findings.
    pub summary: Option<String>,
}

/// What became of a finding of the study.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct StudyClaim {
    /// In words.
    pub text: String,
    /// Names of the treatments that it was tested on.
    pub treatments: Vec<String>,
    /// Names of what they were held against, one for each.
    pub against: Vec<String>,
    /// The figure.
    pub metric: String,
    /// "better", "worse" or "same".
    #[cfg_attr(feature = "typescript", ts(type = "\"better\" | \"worse\" | \"same\""))]
    pub found: String,
    /// The ratio that the study told.
    pub study_ratio: Option<f64>,
    /// What was found here.
    pub effect: Option<Effect>,
    /// "agrees", "disagrees", "undecided" or "not-tested".
    #[cfg_attr(
        feature = "typescript",
        ts(type = "\"agrees\" | \"disagrees\" | \"undecided\" | \"not-tested\"")
    )]
    pub outcome: &'static str,
    /// Both in a sentence without a full stop.
    pub sentence: String,
}

/// What a level of a factor is worth, or two levels together.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct FactorEffect {
    /// For people.
    pub title: String,
    /// Name of the factor.
    pub factor: String,
    /// Name of the level.
    pub level: String,
    /// Name of the level that it is held against.
    pub against: String,
    /// The level of another factor, for an interaction.
    pub other: Option<LevelOf>,
    /// A main effect is the ratio to the first level; an interaction how much more the two are worth together than the
    /// product of each alone. `None` where trials are missing or there is nothing to judge the error by.
    pub effect: Option<Effect>,
}

/// An estimate that may be without a value or bounds.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Bounded {
    /// The estimate; `None` where it lies at infinity.
    pub value: Option<f64>,
    /// Lower bound.
    pub low: Option<f64>,
    /// Upper bound; `None` where the data set none.
    pub high: Option<f64>,
}

/// Throughput over the levels of a factor.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Curve {
    /// Levels of the other factors in words; `None` where there are none.
    pub title: Option<String>,
    /// Name of the factor.
    pub factor: String,
    /// What x is, for people: "clients", "CPUs", or the factor's title.
    pub x: String,
    /// By x, upwards.
    pub points: Vec<CurvePoint>,
    /// The Universal Scalability Law fitted to all trials.
    pub usl: Option<UslCurve>,
    /// Why there is none.
    pub why_no_usl: Option<String>,
    /// Client counts near the peak and not past the knee.
    pub zone: Option<Zone>,
    /// Why there is none.
    pub why_no_zone: Option<String>,
}

/// A point of a curve.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct CurvePoint {
    /// Clients or CPUs.
    pub x: f64,
    /// Name of the treatment.
    pub treatment: String,
    /// Throughput; with a single trial its bounds are the value itself.
    pub tps: Interval,
    /// Mean of the trials' 99th percentiles.
    pub p99_ms: Option<f64>,
    /// Trials.
    pub n: usize,
}

/// X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)).
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct UslCurve {
    /// Throughput at N = 1.
    pub lambda: Bounded,
    /// Contention.
    pub sigma: Bounded,
    /// Coherency.
    pub kappa: Bounded,
    /// Where the curve peaks.
    pub peak_x: Bounded,
    /// How high.
    pub peak_tps: Bounded,
    /// Spread of the points around the curve: 0.03 = 3 %.
    pub spread: f64,
}

/// The happy zone: the measured client counts with at least 95 % of the peak throughput, not past the knee of response time.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Zone {
    /// Lowest client count.
    pub lowest: u32,
    /// Highest client count.
    pub highest: u32,
    /// The client count of the zone with the most throughput.
    pub best: u32,
    /// The client count with the most throughput of all.
    pub peak: u32,
    /// The throughput there.
    pub peak_tps: Interval,
    /// Highest client count not past the knee of response time.
    pub knee: Option<u32>,
    /// Why there is no knee.
    pub why_no_knee: Option<String>,
    /// Why it begins there: "throughput" or "unmeasured".
    #[cfg_attr(feature = "typescript", ts(type = "\"throughput\" | \"unmeasured\""))]
    pub lower_edge: &'static str,
    /// Why it ends there: "throughput", "knee" or "unmeasured".
    #[cfg_attr(
        feature = "typescript",
        ts(type = "\"throughput\" | \"knee\" | \"unmeasured\"")
    )]
    pub upper_edge: &'static str,
    /// 95 % of the peak is reached only past the knee.
    pub past_knee: bool,
}
