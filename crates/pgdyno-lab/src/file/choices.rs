//! Words that have a fixed set in experiment files.

use pgdyno_record::WHEN_GAIN_DECIDED;
use pgdyno_sandbox::{PoolMode, PoolerKind};
use schemars::JsonSchema;
use serde::Deserialize;

/// How treatments are made of the steps or factors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// Each step is added to all before it.
    Cumulative,
    /// Each step, or each level of a factor, is compared with the reference alone.
    OneAtATime,
    /// One step against the reference.
    AB,
    /// The reference against itself: the noise floor, and a check on the method.
    AA,
    /// Every level of every factor with every level of the others.
    FullFactorial,
    /// A half, a quarter ... of all combinations of two-level factors, chosen so that main effects
    /// are separate from interactions of two.
    Fractional,
    /// Plackett-Burman: main effects of many two-level factors from few treatments.
    Screening,
    /// Each step, or each level of a factor, is compared with the reference, in turns of a few
    /// seconds within one load.
    Switchback,
    /// Levels of one or more factors along a curve; nothing is better or worse than another.
    Ladder,
    /// Combinations of the factors' levels, each chosen by the trials before it, to find the best.
    Search,
}

impl Design {
    /// Name in files and reports: "one-at-a-time".
    pub fn name(self) -> &'static str {
        match self {
            Design::Cumulative => "cumulative",
            Design::OneAtATime => "one-at-a-time",
            Design::AB => "a-b",
            Design::AA => "a-a",
            Design::FullFactorial => "full-factorial",
            Design::Fractional => "fractional",
            Design::Screening => "screening",
            Design::Switchback => "switchback",
            Design::Ladder => "ladder",
            Design::Search => "search",
        }
    }
}

/// The servers that a load goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadOn {
    /// The treatment's server.
    Server,
    /// Each of its standbys, which gets the whole load.
    Standbys,
}

impl LoadOn {
    /// Name in files and reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            LoadOn::Server => "server",
            LoadOn::Standbys => "standbys",
        }
    }
}

/// When an experiment ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StopRule {
    /// After all blocks.
    #[default]
    AfterBlocks,
    /// After the block in which every comparison is decided, with intervals that hold under such
    /// looking.
    WhenDecided,
    /// The same, where a comparison is decided, too, once a gain of `smallest_effect` is
    /// improbable.
    WhenGainDecided,
}

impl StopRule {
    /// Name in files and records, as "when-decided".
    pub fn name(self) -> &'static str {
        match self {
            StopRule::AfterBlocks => "after-blocks",
            StopRule::WhenDecided => "when-decided",
            StopRule::WhenGainDecided => WHEN_GAIN_DECIDED,
        }
    }
}

/// What follows where a treatment cannot be tested here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Untested {
    /// The others are tested without it.
    #[default]
    Skip,
    /// Nothing is run.
    Refuse,
}

/// When the server is restarted between trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RestartPolicy {
    /// Before every trial, so that all begin with the same caches.
    #[default]
    Always,
    /// Only when a setting asks for it.
    WhenNeeded,
}

/// Where settings are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SettingScope {
    /// On the server and its host.
    #[default]
    Server,
    /// In the load's own sessions: nothing changes for others, and what sessions cannot set is not
    /// tested.
    Session,
}

/// When the servers of an experiment's own are made, with their file systems and data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Instances {
    /// Once: what is found holds for these.
    #[default]
    Once,
    /// Again for each block, so that chance in how one of them was made is part of the spread.
    PerBlock,
}

impl Instances {
    /// Name in files and records: "per-block".
    pub fn name(self) -> &'static str {
        match self {
            Instances::Once => "once",
            Instances::PerBlock => "per-block",
        }
    }
}

/// How the data is brought to the same state before a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reset {
    /// It stays as the trial before has left it.
    #[default]
    None,
    /// The tables are created again.
    Recreate,
    /// The database is made again from a template database.
    Template,
    /// The files of the stopped server are copied back, as references where the file system has
    /// them.
    Copy,
    /// A VACUUM and a checkpoint on the tables as they are.
    Vacuum,
}

impl Reset {
    /// Name in files: "recreate".
    pub fn name(self) -> &'static str {
        match self {
            Reset::None => "none",
            Reset::Recreate => "recreate",
            Reset::Template => "template",
            Reset::Copy => "copy",
            Reset::Vacuum => "vacuum",
        }
    }
}

/// What is in the caches when the load begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Prewarm {
    /// The caches stay as they are.
    #[default]
    None,
    /// Tables and indexes are read into shared buffers by pg_prewarm; by a read pass where that is
    /// not installed.
    PgPrewarm,
    /// Tables are read once.
    Read,
    /// Nothing: the server is restarted and the kernel's page cache dropped.
    Cold,
}

impl Prewarm {
    /// Name in files: "pg-prewarm".
    pub fn name(self) -> &'static str {
        match self {
            Prewarm::None => "none",
            Prewarm::PgPrewarm => "pg-prewarm",
            Prewarm::Read => "read",
            Prewarm::Cold => "cold",
        }
    }
}

/// The value of a series that is a trial's figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Take {
    /// Mean over the measured time.
    #[default]
    Mean,
    /// Largest value of the measured time.
    Max,
    /// Smallest value of the measured time.
    Min,
}

/// The direction of an effect that a study found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// The figure is better.
    Better,
    /// The figure is worse.
    Worse,
    /// No difference that matters.
    Same,
    /// No loss that matters; a gain is one too.
    NotWorse,
}

impl Found {
    /// Name in files and reports: "better".
    pub fn name(self) -> &'static str {
        match self {
            Found::Better => "better",
            Found::Worse => "worse",
            Found::Same => "same",
            Found::NotWorse => "not-worse",
        }
    }
}

/// How a chart is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChartForm {
    /// A line for each level, its points along the axis.
    Lines,
    /// Bars side by side at each place of the axis.
    Bars,
    /// A table whose cells are the darker the larger their figure is.
    Heat,
    /// Steps one upon the other, and all together.
    Waterfall,
    /// Throughput second by second, with the events in it.
    Timeline,
}

impl ChartForm {
    /// Whether it shows the whole experiment, with neither an axis nor lines to choose.
    pub fn is_whole(self) -> bool {
        matches!(self, ChartForm::Waterfall | ChartForm::Timeline)
    }

    /// Name in files and reports: "lines".
    pub fn name(self) -> &'static str {
        match self {
            ChartForm::Lines => "lines",
            ChartForm::Bars => "bars",
            ChartForm::Heat => "heat",
            ChartForm::Waterfall => "waterfall",
            ChartForm::Timeline => "timeline",
        }
    }
}

/// The pooler between clients and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PoolerWord {
    /// No pooler: clients connect to the server.
    None,
    /// The program pgbouncer.
    PgBouncer,
    /// The program pgpool.
    Pgpool,
}

impl PoolerWord {
    /// The kind of pooler; `None` where there is none.
    pub fn kind(self) -> Option<PoolerKind> {
        match self {
            PoolerWord::None => None,
            PoolerWord::PgBouncer => Some(PoolerKind::PgBouncer),
            PoolerWord::Pgpool => Some(PoolerKind::Pgpool),
        }
    }

    /// Name in files: "pgbouncer".
    pub fn name(self) -> &'static str {
        self.kind().map_or("none", PoolerKind::program)
    }
}

/// For how long a client keeps a session of the pooler's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PoolModeWord {
    /// Until the client disconnects.
    Session,
    /// Until its transaction ends.
    Transaction,
    /// Until its statement ends.
    Statement,
}

impl From<PoolModeWord> for PoolMode {
    fn from(word: PoolModeWord) -> PoolMode {
        match word {
            PoolModeWord::Session => PoolMode::Session,
            PoolModeWord::Transaction => PoolMode::Transaction,
            PoolModeWord::Statement => PoolMode::Statement,
        }
    }
}
