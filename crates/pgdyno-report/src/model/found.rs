//! What a report holds of experiments with factors: tables, findings of a study, effects of
//! factors, curves.

use super::Interval;
use pgdyno_stats::{Edge, Effect};
use serde::Serialize;

/// A level of a factor, both by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct LevelOf {
    /// Name of the factor; "step" for steps.
    pub factor: String,
    /// Name of the level: "128kB".
    pub level: String,
}

/// A table of figures by one or two factors.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct StudyTable {
    /// Heading above the table.
    pub title: String,
    /// Heading of the first column, such as the title of the factor of the rows.
    pub rows: String,
    /// What the columns differ in; empty where each is a figure.
    pub columns_title: String,
    /// The columns but the first.
    pub columns: Vec<TableColumn>,
    /// One for each combination of the levels of factors that the table does not name; those
    /// without any trial are not there.
    pub blocks: Vec<TableBlock>,
}

/// A figure drawn along a factor, as a study draws it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct StudyChart {
    /// How it is drawn.
    #[cfg_attr(feature = "typescript", ts(type = "\"lines\" | \"bars\" | \"heat\""))]
    pub form: String,
    /// What the study's own chart shows, in a sentence without a full stop; `None` where nobody
    /// says.
    pub published: Option<String>,
    /// Its figures: a row for each place along the axis, a column for each line, a block for each
    /// panel.
    pub table: StudyTable,
    /// Places of the findings that it shows, in the list of all findings.
    pub claims: Vec<usize>,
}

/// What a study says of a chart that an experiment has anyway.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct WholeChart {
    /// Which one: its waterfall, or throughput over time with its events.
    #[cfg_attr(feature = "typescript", ts(type = "\"waterfall\" | \"timeline\""))]
    pub form: String,
    /// Heading above the chart.
    pub title: String,
    /// What the study's own chart shows, in a sentence without a full stop; `None` where nobody
    /// says.
    pub published: Option<String>,
    /// Places of the findings that it shows, in the list of all findings.
    pub claims: Vec<usize>,
}

/// Throughput over time of a treatment whose loads had events, and what each has changed.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Timeline {
    /// Name of the treatment.
    pub treatment: String,
    /// Number of trials that the means are of.
    pub trials: usize,
    /// Length of the warm-up, with which the seconds begin.
    pub warmup_s: f64,
    /// Means over the trials, second by second.
    pub seconds: Vec<TimelinePoint>,
    /// What each event has changed, in the order of time.
    pub shifts: Vec<Shift>,
}

/// A second of loads.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TimelinePoint {
    /// End of the second, from the start of the load.
    pub t_s: f64,
    /// Transactions committed in it, mean over the trials.
    pub tps: f64,
}

/// An event, and throughput before and after it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Shift {
    /// What it was: "jit off".
    pub title: String,
    /// When it began, from the start of the load, mean over the trials.
    pub t_s: f64,
    /// How long it took, mean over the trials.
    pub took_s: f64,
    /// Throughput from the event before, or from the begin of the measured time; `None` where too
    /// few seconds are known.
    pub before_tps: Option<f64>,
    /// Throughput up to the event after, or to the end.
    pub after_tps: Option<f64>,
    /// Trials in which nothing was committed any more after it.
    pub standstills: usize,
    /// After against before, each trial compared with itself; `None` with a single block, and of a
    /// load at a standstill.
    pub effect: Option<Effect>,
    /// What the trend before it would have changed by itself, from the middle of one side to that
    /// of the other, as a share of the throughput: 0.1 is a tenth more. `None` where no trend is
    /// known that matters; with one there is no verdict.
    pub trend: Option<f64>,
}

/// A column with a figure, for a level of a factor or alone.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TableColumn {
    /// Heading of the column.
    pub title: String,
    /// Name of the figure in its cells.
    pub figure: String,
    /// Heading of that figure, with its unit.
    pub figure_title: String,
}

/// The part of a table for one combination of the other factors.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TableBlock {
    /// Their levels as text; `None` where the table names all factors.
    pub title: Option<String>,
    /// Rows of this part, in the order of their levels.
    pub rows: Vec<TableRow>,
}

/// A row of cells.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TableRow {
    /// Text of the first column, such as the level.
    pub title: String,
    /// Cells in the order of the columns; `None` where no trial counts.
    pub cells: Vec<Option<TableCell>>,
}

/// A mean over trials.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TableCell {
    /// Mean over the trials, in the unit of the figure.
    pub mean: f64,
    /// Lower bound of its interval; `None` for a single trial.
    pub low: Option<f64>,
    /// Upper bound of its interval; `None` for a single trial.
    pub high: Option<f64>,
    /// Number of trials that the mean is of.
    pub n: usize,
}

/// The publication that an experiment repeats.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Study {
    /// Tag of the publication, as "ibm-z".
    pub source: String,
    /// Title and year of the publication.
    pub title: String,
    /// How many findings this host agrees with, in a sentence without a full stop; `None` without
    /// findings.
    pub summary: Option<String>,
}

/// A finding of the study, and its test in this experiment.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct StudyClaim {
    /// The finding in a sentence without a full stop.
    pub text: String,
    /// Names of the treatments that it was tested on.
    pub treatments: Vec<String>,
    /// Names of the treatments that these are compared with, one for each.
    pub against: Vec<String>,
    /// Title of the event that it is about; `None` where it is about treatments alone.
    pub event: Option<String>,
    /// Name of the figure that it is about.
    pub metric: String,
    /// Direction that the study found: "better", "worse", "same" or "not-worse".
    #[cfg_attr(
        feature = "typescript",
        ts(type = "\"better\" | \"worse\" | \"same\" | \"not-worse\"")
    )]
    pub found: String,
    /// Ratio that the study reports; `None` where it reports none.
    pub study_ratio: Option<f64>,
    /// Effect in this experiment; `None` where it was not tested or there is no interval.
    pub effect: Option<Effect>,
    /// Whether the effect agrees with the finding.
    pub outcome: ClaimOutcome,
    /// Finding and effect in a sentence without a full stop.
    pub sentence: String,
}

/// Whether this host agrees with a study's finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum ClaimOutcome {
    /// The effect is decided as the study found it.
    Agrees,
    /// The effect is decided otherwise.
    Disagrees,
    /// The effect is not decided.
    Undecided,
    /// No trials compare what the finding is about.
    NotTested,
}

/// The effect of a level of a factor, or of two levels together.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct FactorEffect {
    /// Level, or both levels of an interaction, as they are shown.
    pub title: String,
    /// Name of the factor that the level is of.
    pub factor: String,
    /// Name of the level, never the first one.
    pub level: String,
    /// Name of the level that it is compared with.
    pub against: String,
    /// The level of another factor, for an interaction.
    pub other: Option<LevelOf>,
    /// A main effect is the ratio to the first level; an interaction how much more the two change
    /// together than the product of each alone. `None` where trials are missing or there is nothing
    /// to judge the error by.
    pub effect: Option<Effect>,
}

/// An estimate that may be without a value or bounds.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Bounded {
    /// The estimate; `None` where it is at infinity.
    pub value: Option<f64>,
    /// Lower bound; `None` where even that is at infinity.
    pub low: Option<f64>,
    /// Upper bound; `None` where the data set none.
    pub high: Option<f64>,
}

/// Throughput over the levels of a factor.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Curve {
    /// Levels of the other factors as text; `None` where there are none.
    pub title: Option<String>,
    /// Name of the factor that x is a level of.
    pub factor: String,
    /// What x is, for people: "clients", "CPUs", or the factor's title.
    pub x: String,
    /// Points with rising x, one for each treatment.
    pub points: Vec<CurvePoint>,
    /// Where throughput is highest; `None` where none was measured.
    pub highest: Option<Highest>,
    /// The Universal Scalability Law fitted to all trials; `None` where it does not fit.
    pub usl: Option<UslCurve>,
    /// Why there is no fitted law.
    pub why_no_usl: Option<String>,
    /// Client counts near the peak and not past the knee.
    pub zone: Option<Zone>,
    /// Why there is no zone.
    pub why_no_zone: Option<String>,
}

/// Where throughput is highest, and what it is there by blocks that had no say in where: the
/// largest of some means is larger than what it is the mean of. A single block has its say, and no
/// interval.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Highest {
    /// Number of clients or CPUs, or level.
    pub x: f64,
    /// Throughput; of a single block its bounds are the value itself.
    pub tps: Interval,
}

/// Throughput at one number of clients or CPUs.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct CurvePoint {
    /// Number of clients or CPUs.
    pub x: f64,
    /// Name of the treatment with that number.
    pub treatment: String,
    /// Throughput; with a single trial its bounds are the value itself.
    pub tps: Interval,
    /// Mean of the trials' 99th percentiles; with a single one its bounds are the value itself.
    pub p99_ms: Option<Interval>,
    /// Number of trials that the means are of.
    pub n: usize,
}

/// X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)).
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct UslCurve {
    /// Throughput at N = 1.
    pub lambda: Bounded,
    /// Contention: the serial share of the work, 0 to 1.
    pub sigma: Bounded,
    /// Coherency: the cost of agreement between each pair of N, from 0.
    pub kappa: Bounded,
    /// N at the peak of the curve.
    pub peak_x: Bounded,
    /// Throughput at the peak of the curve.
    pub peak_tps: Bounded,
    /// Spread of the points around the curve: 0.03 = 3 %.
    pub spread: f64,
}

/// The happy zone: the measured client counts with at least 95 % of the peak throughput, not past
/// the knee of response time.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Zone {
    /// Lowest client count of the zone.
    pub lowest: u32,
    /// Highest client count of the zone.
    pub highest: u32,
    /// The client count of the zone with the most throughput.
    pub best: u32,
    /// Highest client count not past the knee of response time.
    pub knee: Option<u32>,
    /// Why there is no knee.
    pub why_no_knee: Option<String>,
    /// What ends the zone below: never the knee.
    pub lower_edge: Edge,
    /// What ends the zone above.
    pub upper_edge: Edge,
    /// 95 % of the peak is reached only past the knee.
    pub past_knee: bool,
}
