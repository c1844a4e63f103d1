//! Arguments of `pgdyno tune`.

use super::bench::OfLoadArgs;
use super::{ConsentArgs, LoadFromArgs, RunHostArgs, StoreArgs};
use clap::{Args, ValueEnum};
use pgdyno_engine::{CLIENTS_MAX, duration};
use pgdyno_lab::{Reset, SettingScope, WindowPart};
use std::path::PathBuf;
use std::time::Duration;

/// Beyond this a seed is no longer exact in the page.
const SEED_MAX: u64 = (1 << 53) - 1;

#[derive(Debug, Args)]
pub(crate) struct TuneArgs {
    /// Server to tune: sandbox:NAME, or a connection string.
    pub(crate) target: String,
    /// Metric to make as large as possible [default: tps].
    #[arg(long, value_name = "METRIC", conflicts_with = "minimize")]
    pub(crate) maximize: Option<String>,
    /// Metric to make as small as possible, e.g. p99_ms.
    #[arg(long, value_name = "METRIC")]
    pub(crate) minimize: Option<String>,
    /// Bound that the best settings must keep, e.g. 'p99_ms <= 20'. Repeatable.
    #[arg(long, value_name = "BOUND")]
    pub(crate) subject_to: Vec<String>,
    /// Trials of the search; the experiments that confirm its result come after them.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(6..=200))]
    pub(crate) trials: u32,
    /// Time after which the search begins no further trial, e.g. 2h [default: none].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) time: Option<Duration>,
    /// Vary only this knob. Repeatable [default: all knobs of the catalogue that matter for the
    /// load].
    #[arg(long, value_name = "KNOB")]
    pub(crate) only: Vec<String>,
    /// Do not vary this knob. Repeatable.
    #[arg(long, value_name = "KNOB")]
    pub(crate) without: Vec<String>,
    /// Vary this knob over these values and its present one, e.g. work_mem=4MB,16MB,64MB, instead
    /// of the catalogue's values. Repeatable.
    #[arg(long, value_name = "KNOB=VALUE,...", value_parser = super::assignment)]
    pub(crate) space: Vec<(String, String)>,
    /// Run all trials with this setting, e.g. shared_buffers=2GB. Repeatable.
    #[arg(long, value_name = "KNOB=VALUE", value_parser = super::assignment)]
    pub(crate) fix: Vec<(String, String)>,
    /// Also start the search from this profile, besides the present state, the profile for the kind
    /// of load, and pgtune's. Repeatable.
    #[arg(long, value_name = "PROFILE")]
    pub(crate) start: Vec<String>,
    /// Set a fact that cannot be read, or replace one, e.g. storage.data_medium=ssd. Repeatable.
    #[arg(long, value_name = "FACT=VALUE", value_parser = super::assignment)]
    pub(crate) given: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) of_load: OfLoadArgs,
    /// Another program that is the load in place of a workload: pgbench, sysbench, sysbench-tpcc,
    /// go-tpc, benchbase or hammerdb.
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["workload", "script", "dataset"])]
    pub(crate) program: Option<String>,
    /// Command line of that program, where it is not its usual one.
    #[arg(long, value_name = "COMMAND", requires = "program")]
    pub(crate) command: Option<String>,
    /// Kind of load, which says which knobs matter [default: the workload's; of a script or a
    /// program mixed].
    #[arg(long)]
    pub(crate) kind: Option<LoadKind>,
    /// Scale of the data set.
    #[arg(long, default_value_t = 10)]
    pub(crate) scale: u32,
    /// How the data is brought to the same state before each trial.
    #[arg(long, default_value = "none", value_parser = reset)]
    pub(crate) reset: Reset,
    /// Number of clients, each with its own connection.
    #[arg(long, short, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=i64::from(CLIENTS_MAX)))]
    pub(crate) clients: u32,
    /// Open loop: arrivals per second, as in `pgdyno bench --rate` [default: closed loop].
    #[arg(long, value_name = "TPS", conflicts_with = "program")]
    pub(crate) rate: Option<String>,
    /// Measured time of each trial, e.g. 10s.
    #[arg(long, short, default_value = "10s", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Full load of each trial before measuring.
    #[arg(long, default_value = "5s", value_parser = duration)]
    pub(crate) warmup: Duration,
    /// Smallest gain that matters: a setting that brings less is dropped.
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = super::gate::limit)]
    pub(crate) smallest_effect: f64,
    /// Blocks of each experiment that confirms, at most; it ends earlier once all is decided.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(5..=100))]
    pub(crate) blocks: u32,
    /// Also compare the kept settings with the present state with cold caches: they must not be
    /// worse.
    #[arg(long)]
    pub(crate) cold: bool,
    /// Set the varied settings only in the load's own sessions. Nothing changes for others; what a
    /// session cannot set is not varied.
    #[arg(long, conflicts_with_all = ["program", "cold"])]
    pub(crate) session_scope: bool,
    /// End a trial once its throughput is lower than the present state's by this share for five
    /// seconds, e.g. 20%, and do not try its settings again [default: never].
    #[arg(long, value_name = "SHARE", value_parser = super::gate::limit)]
    pub(crate) max_slowdown: Option<f64>,
    /// Run trials only between these times of day, e.g. 01:00-05:00. Outside them everything is
    /// restored, and the tune waits.
    #[arg(long, value_name = "FROM-TO", value_parser = WindowPart::parse)]
    pub(crate) between: Option<WindowPart>,
    /// Seed of the search [default: drawn].
    #[arg(long, value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub(crate) seed: Option<u64>,
    /// A program that chooses what is tried next, as exec:COMMAND; it is asked by lines of JSON
    /// (the book's "Optimizers").
    #[arg(long, value_name = "exec:COMMAND", value_parser = optimizer)]
    pub(crate) optimizer: Option<String>,
    /// Go on after the search with this number, with the options it was begun with; an experiment
    /// that has finished is not run again.
    #[arg(long, value_name = "EXPERIMENT")]
    pub(crate) after: Option<i64>,
    /// Write the settings that pay as a profile to FILE.
    #[arg(long, value_name = "FILE", default_value = "tuned.toml")]
    pub(crate) output: PathBuf,
    /// Print the search's experiment file and what it varies, and run nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Draft the search for the coordinator that has started this.
    #[arg(long, hide = true)]
    pub(crate) draft: bool,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) at: RunHostArgs,
    #[command(flatten)]
    pub(crate) load_from: LoadFromArgs,
}

impl TuneArgs {
    /// Whether settings of the server could be those of the load's own sessions instead.
    pub(crate) fn could_be_of_sessions(&self) -> bool {
        !self.session_scope && !self.cold && self.program.is_none()
    }

    /// Where settings are set.
    pub(crate) fn scope(&self) -> SettingScope {
        match self.session_scope {
            true => SettingScope::Session,
            false => SettingScope::Server,
        }
    }
}

/// Kinds of load, by what matters for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoadKind {
    /// Short reads by key.
    Reads,
    /// Short transactions that write.
    Writes,
    /// Long queries over many rows.
    Analytics,
    /// Some of each.
    Mixed,
}

fn optimizer(text: &str) -> Result<String, String> {
    match text.strip_prefix("exec:") {
        Some(command) if !command.trim().is_empty() => Ok(command.to_owned()),
        _ => Err("expected exec:COMMAND, e.g. \"exec:python3 my.py\"".to_owned()),
    }
}

fn reset(text: &str) -> Result<Reset, String> {
    let known = [
        Reset::None,
        Reset::Recreate,
        Reset::Template,
        Reset::Copy,
        Reset::Vacuum,
    ];
    known
        .into_iter()
        .find(|reset| reset.name() == text)
        .ok_or_else(|| format!("expected {}", known.map(Reset::name).join(", ")))
}
