//! The commands that look and change nothing.

use super::{HostArgs, HostsArgs, StoreArg};
use clap::{Args, ValueEnum};
use pgdyno_engine::duration;
use pgdyno_knobs::Layer;
use pgdyno_lab::check::Step;
use pgdyno_watch::{INTERVAL_MAX, INTERVAL_MIN};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct FactsArgs {
    /// sandbox:NAME or a connection string [default: PG* variables and libpq's defaults; the host
    /// only, if no server answers].
    pub(crate) target: Option<String>,
    /// Host only; do not connect to a server.
    #[arg(long, conflicts_with = "target")]
    pub(crate) host_only: bool,
    /// Read host facts from another root directory: a container's root, or a copy of /proc, /sys
    /// and /etc.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["target", "host", "inventory"])]
    pub(crate) root: Option<PathBuf>,
    /// Print JSON (docs/reference/facts.md).
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) on: HostsArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// sandbox:NAME or a connection string; empty for PG* variables and libpq's defaults.
    #[arg(required_unless_present = "host_only")]
    pub(crate) target: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Run only these measurements, separated by commas: timer, round_trip, commit, wal_sync, read,
    /// noise, clock, steal.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = step)]
    pub(crate) only: Vec<Step>,
    /// Seconds to measure commits, 0.1 to 600; the other measurements scale with it.
    #[arg(long, value_name = "N", default_value_t = 3.0, value_parser = check_seconds)]
    pub(crate) seconds: f64,
    /// Measure the host only. If a TARGET is given, use its directories and its wal_sync_method.
    #[arg(long)]
    pub(crate) host_only: bool,
    /// Directory for the temporary files of wal_sync and read [default: beside the server's WAL and
    /// data].
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) on: HostsArgs,
}

/// Formats of advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AdviseFormat {
    /// A page for the terminal.
    Text,
    /// Markdown.
    Md,
}

/// The least severity that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AdviseSeverity {
    /// Dangers only.
    Severe,
    /// Dangers and recommendations.
    Advice,
    /// Everything, including hints.
    Hint,
}

impl From<AdviseSeverity> for pgdyno_advice::Severity {
    fn from(severity: AdviseSeverity) -> pgdyno_advice::Severity {
        match severity {
            AdviseSeverity::Severe => pgdyno_advice::Severity::Severe,
            AdviseSeverity::Advice => pgdyno_advice::Severity::Advice,
            AdviseSeverity::Hint => pgdyno_advice::Severity::Hint,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct AdviseArgs {
    /// sandbox:NAME or a connection string [default: PG* variables and libpq's defaults; the host
    /// only, if no server answers].
    pub(crate) target: Option<String>,
    /// Host only; do not connect to a server.
    #[arg(long, conflicts_with = "target")]
    pub(crate) host_only: bool,
    /// Read host facts from another root directory.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["target", "check", "host", "inventory"])]
    pub(crate) root: Option<PathBuf>,
    /// Print JSON (docs/reference/advice.md).
    #[arg(long)]
    pub(crate) json: bool,
    /// Format of the page.
    #[arg(long, value_enum, default_value_t = AdviseFormat::Text, conflicts_with_all = ["json", "inventory"])]
    pub(crate) format: AdviseFormat,
    /// Also give opt-in advice: durability (may lose commits), mitigations (security of the CPU).
    /// Repeatable.
    #[arg(long, value_name = "WORD")]
    pub(crate) allow: Vec<String>,
    /// Show advice of this severity and above; JSON always has everything.
    #[arg(long, value_enum, default_value_t = AdviseSeverity::Hint, value_name = "SEVERITY")]
    pub(crate) severity: AdviseSeverity,
    /// Also show settings with an expected gain of at most 2 %.
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Show everything about one rule or setting: reason, risk, source, steps. Repeatable; `all`
    /// for each.
    #[arg(long, short, value_name = "WHAT", conflicts_with_all = ["json", "inventory"])]
    pub(crate) detail: Vec<String>,
    /// Also list how sizes are computed, skipped advice with the reason, and rules that lack facts.
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Do not use colours (as with NO_COLOR set).
    #[arg(long)]
    pub(crate) no_color: bool,
    /// First measure what rules need: commit, WAL flush, round trip, clock, steal. Takes seconds
    /// and writes temporary files.
    #[arg(long)]
    pub(crate) check: bool,
    /// Evaluate only this rule. Repeatable.
    #[arg(long, value_name = "RULE")]
    pub(crate) only: Vec<String>,
    /// Write an experiment file that tests each advised setting separately on this target; those
    /// that can take turns within one load go to a second file, with -turns in its name.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["host", "inventory"])]
    pub(crate) experiment: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArg,
    #[command(flatten)]
    pub(crate) on: HostsArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// sandbox:NAME or a connection string; empty for PG* variables and libpq's defaults.
    pub(crate) target: String,
    /// Time between two readings, 100ms to 60s.
    #[arg(long, short, default_value = "1s", value_parser = interval)]
    pub(crate) interval: Duration,
    /// Do not use colours (as with NO_COLOR set).
    #[arg(long)]
    pub(crate) no_color: bool,
    /// Print the overview once and exit.
    #[arg(long)]
    pub(crate) once: bool,
    /// Print JSON.
    #[arg(long, requires = "once")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) on: HostArgs,
}

/// An interval that the samplers can keep.
fn interval(text: &str) -> Result<Duration, String> {
    let interval = duration(text)?;
    if (INTERVAL_MIN..=INTERVAL_MAX).contains(&interval) {
        return Ok(interval);
    }
    Err("expected 100ms to 60s".into())
}

/// Formats of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KnobsFormat {
    Text,
    Md,
}

#[derive(Debug, Args)]
pub(crate) struct KnobsArgs {
    /// Id of the knob to explain.
    pub(crate) id: Option<String>,
    /// Only the knobs of one layer: postgres, table, kernel, memory, block, cpu or net.
    #[arg(long, value_parser = layer, conflicts_with = "id")]
    pub(crate) layer: Option<Layer>,
    /// Text for the terminal, or a page in Markdown.
    #[arg(long, short, value_enum, default_value_t = KnobsFormat::Text)]
    pub(crate) format: KnobsFormat,
    /// Print JSON.
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
}

fn step(text: &str) -> Result<Step, String> {
    Step::named(text).ok_or_else(|| {
        let names: Vec<&str> = Step::ALL.into_iter().map(Step::name).collect();
        format!("expected one or more of {}", names.join(", "))
    })
}

fn layer(text: &str) -> Result<Layer, String> {
    let all = Layer::ALL.into_iter();
    all.clone().find(|layer| layer.name() == text).ok_or_else(|| {
        let names: Vec<&str> = all.map(Layer::name).collect();
        format!("expected one of {}", names.join(", "))
    })
}

fn check_seconds(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|n| (0.1..=600.0).contains(n))
        .ok_or_else(|| "expected a number of seconds from 0.1 to 600".to_owned())
}
