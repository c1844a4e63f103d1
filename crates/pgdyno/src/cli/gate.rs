//! `pgdyno gate` on the command line.

use super::bench::{OfLoadArgs, share};
use super::{ConsentArgs, StoreArgs};
use clap::Args;
use pgdyno_engine::{CLIENTS_MAX, duration};
use pgdyno_host::size_bytes;
use pgdyno_record::BLOCKS_MAX;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct GateArgs {
    /// The reference: a directory of PostgreSQL's programs, a file of settings (*.conf), or a
    /// schema script (*.sql).
    pub(crate) base: PathBuf,
    /// What is compared with it, of the same kind.
    pub(crate) head: PathBuf,
    /// Largest loss that does not matter. HEAD passes where a larger one is ruled out, and fails
    /// where a loss is proven and a larger one is not ruled out.
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = largest_loss)]
    pub(crate) limit: f64,
    /// Metric that decides [default: tps].
    #[arg(long, value_name = "NAME")]
    pub(crate) metric: Option<String>,
    #[command(flatten)]
    pub(crate) of_load: OfLoadArgs,
    /// Scale of the data set.
    #[arg(long, default_value_t = 10)]
    pub(crate) scale: u32,
    /// Keep the data between trials, for read-only loads [default: create it again for each trial].
    #[arg(long, requires = "separate")]
    pub(crate) keep_data: bool,
    /// Number of clients, each with its own connection.
    #[arg(long, short, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=i64::from(CLIENTS_MAX)))]
    pub(crate) clients: u32,
    /// Measured time of each side in a block, e.g. 5s.
    #[arg(long, short, default_value = "5s", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Length of the turns that the servers of both sides take within one load.
    #[arg(long, default_value = "50ms", value_name = "TIME", value_parser = duration)]
    pub(crate) slice: Duration,
    /// Measure the sides in separate trials, one after the other: for effects of background work,
    /// e.g. checkpoints and vacuum.
    #[arg(long, conflicts_with = "slice")]
    pub(crate) separate: bool,
    /// Full load of each side before measuring.
    #[arg(long, default_value = "2s", value_parser = duration)]
    pub(crate) warmup: Duration,
    /// Blocks at most, each with new servers and data; it ends earlier once all is decided.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(3..=i64::from(BLOCKS_MAX)))]
    pub(crate) blocks: u32,
    /// Server to run on: sandbox:NAME, or for settings also a connection string [default: a private
    /// server, removed at the end].
    #[arg(long)]
    pub(crate) target: Option<String>,
    /// Major version of the private server, where no builds are compared [default: the newest that
    /// archives have].
    #[arg(long, short = 'V', conflicts_with_all = ["pg_bin", "target"])]
    pub(crate) version: Option<u32>,
    /// Directory of initdb, pg_ctl and postgres of the private server, where no builds are
    /// compared, instead of fetching them.
    #[arg(long, value_name = "DIR", conflicts_with = "target")]
    pub(crate) pg_bin: Option<PathBuf>,
    /// CPU limit of the private server, e.g. 1.5 [default: none].
    #[arg(long, value_parser = super::sandbox::cpus, conflicts_with = "target")]
    pub(crate) cpus: Option<f64>,
    /// Memory limit of the private server, page cache included, e.g. 1G [default: none].
    #[arg(long, value_parser = size_bytes, conflicts_with = "target")]
    pub(crate) memory: Option<u64>,
    /// Exit code 0 instead of 5 if it is undecided.
    #[arg(long)]
    pub(crate) allow_undecided: bool,
    /// Print Markdown, e.g. for the summary of a CI job.
    #[arg(long, conflicts_with = "json")]
    pub(crate) md: bool,
    /// Write the report of the first experiment to FILE.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

fn largest_loss(text: &str) -> Result<f64, String> {
    let wrong = || "expected more than 0% and less than 50%, e.g. 2%".to_owned();
    limit(text).ok().filter(|limit| *limit < 0.5).ok_or_else(wrong)
}

pub(super) fn limit(text: &str) -> Result<f64, String> {
    let wrong = || "expected more than 0% and less than 100%, e.g. 2%".to_owned();
    share(text)
        .ok()
        .filter(|limit| *limit > 0.0 && *limit < 1.0)
        .ok_or_else(wrong)
}
