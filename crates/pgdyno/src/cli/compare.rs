//! `pgdyno compare`, `capacity` and `show` on the command line.

use super::StoreArg;
use clap::Args;
use pgdyno_engine::duration;
use pgdyno_lab::compare::{Gate, Reference};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Reference: 3 (an experiment), 3:memory (its treatment), 3/12 (its trial), last, last:memory.
    pub(crate) a: Reference,
    /// Experiment, treatment or trial that is compared with A.
    pub(crate) b: Reference,
    /// Metric to compare, e.g. tps, p99_ms, wal_bytes_per_tx. Repeatable.
    #[arg(long, value_name = "NAME")]
    pub(crate) metric: Vec<String>,
    /// Fail if a metric is worse than a limit, e.g. 'tps worse than 2%'; also "better than" and
    /// "differs by". Exit code 0 if the 95 % interval is within the limit, 3 if it is entirely
    /// outside, 5 if it includes the limit. Repeatable.
    #[arg(long, value_name = "GATE")]
    pub(crate) fail_if: Vec<Gate>,
    /// Exit code 3 instead of 5 if a gate is undecided.
    #[arg(long, requires = "fail_if", conflicts_with = "allow_undecided")]
    pub(crate) strict: bool,
    /// Exit code 0 instead of 5 if a gate is undecided.
    #[arg(long, requires = "fail_if")]
    pub(crate) allow_undecided: bool,
    #[command(flatten)]
    pub(crate) store: StoreArg,
    /// Store of B [default: the store of A].
    #[arg(long, value_name = "STORE")]
    pub(crate) store_b: Option<PathBuf>,
    /// Print JSON (docs/how-to/compare.md).
    #[arg(long, conflicts_with = "md")]
    pub(crate) json: bool,
    /// Print Markdown, e.g. for a pull request comment.
    #[arg(long)]
    pub(crate) md: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("asked").required(true).multiple(true).args(["tps", "cpus"]))]
pub(crate) struct CapacityArgs {
    /// Number of the experiment, or last [default: the newest that varies CPUs or clients].
    pub(crate) experiment: Option<Reference>,
    /// Throughput that is needed, transactions per second.
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) tps: Option<f64>,
    /// Show what so many CPUs give.
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) cpus: Option<f64>,
    /// Ignore numbers of clients whose p99 response time is longer, e.g. 20ms.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) p99: Option<Duration>,
    /// Price of one CPU for an hour, in any currency.
    #[arg(long, value_name = "PRICE", value_parser = positive, conflicts_with = "price_per_host_hour")]
    pub(crate) price_per_cpu_hour: Option<f64>,
    /// Price of the whole host for an hour.
    #[arg(long, value_name = "PRICE", value_parser = positive)]
    pub(crate) price_per_host_hour: Option<f64>,
    #[command(flatten)]
    pub(crate) store: StoreArg,
    /// Print JSON (docs/how-to/capacity.md).
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Number of the experiment, or last [default: the newest].
    pub(crate) experiment: Option<Reference>,
    #[command(flatten)]
    pub(crate) store: StoreArg,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok();
    number
        .filter(|number| number.is_finite() && *number > 0.0)
        .ok_or_else(|| "expected a number above 0".to_owned())
}
