//! `pgdyno bench` and `pgdyno data` on the command line.

use super::LoadFromArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use pgdyno_engine::{CLIENTS_MAX, Engine, Protocol, Rate, Spacing, Warmup, duration};
use pgdyno_workload::{Control, Dataset, Partitions, Workload};
use std::path::PathBuf;
use std::time::Duration;

/// How arrivals are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Spread {
    /// Evenly.
    Constant,
    /// Independent of one another.
    Poisson,
}

impl Spread {
    pub(crate) fn spacing(self) -> Spacing {
        match self {
            Spread::Constant => Spacing::Constant,
            Spread::Poisson => Spacing::Poisson,
        }
    }
}

/// Where load and server run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlacementName {
    /// Wherever the kernel puts them.
    Free,
    /// The server on the first half of the CPUs, the load on the rest.
    Split,
    /// Both on the first CPU.
    SameCore,
}

impl PlacementName {
    pub(crate) fn word(self) -> &'static str {
        match self {
            PlacementName::Free => "free",
            PlacementName::Split => "split",
            PlacementName::SameCore => "same-core",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// sandbox:NAME or a connection string; empty for PG* variables and libpq's defaults.
    pub(crate) target: String,
    /// Workload, which says what a transaction does (docs/reference/load.md).
    #[arg(long, short, value_parser = workload_parser(), default_value = "tpcb")]
    pub(crate) workload: Workload,
    /// pgbench script to run instead of a workload; several are chosen by weight [default weight:
    /// 1]. Repeatable.
    #[arg(long = "script", short = 'f', value_name = "FILE[@WEIGHT]", conflicts_with_all = ["workload", "transaction"])]
    pub(crate) scripts: Vec<String>,
    /// Set a variable of the scripts. Repeatable.
    #[arg(long = "define", short = 'D', value_name = "NAME=VALUE", value_parser = variable, requires = "scripts")]
    pub(crate) variables: Vec<(String, String)>,
    /// Allow scripts to run commands on this machine (\shell, \setshell).
    #[arg(long, requires = "scripts")]
    pub(crate) allow_shell: bool,
    /// Query protocol: simple, extended or prepared.
    #[arg(long, short = 'M', default_value = "prepared")]
    pub(crate) protocol: Protocol,
    /// Transaction control: none, explicit, or pipelined in one round trip [default: the workload's
    /// own].
    #[arg(long, value_name = "CONTROL")]
    pub(crate) transaction: Option<Control>,
    /// Open loop: arrivals per second, e.g. 5000, 1000/30s,2000/30s,4000 (steps) or 1000..20000/5m
    /// (a ramp).
    #[arg(long, short = 'R', value_name = "RATE", value_parser = rate, conflicts_with = "think")]
    pub(crate) rate: Option<Rate>,
    /// Distribution of the arrivals of an open loop.
    #[arg(long, value_enum, default_value_t = Spread::Poisson, requires = "rate")]
    pub(crate) spacing: Spread,
    /// Start all due transactions of an open loop together, at most once per interval, e.g. 1ms:
    /// less CPU, more schedule lag.
    #[arg(long, default_value = "0s", value_name = "TIME", value_parser = duration, requires = "rate")]
    pub(crate) batch: Duration,
    /// Think time of a client between two transactions of a closed loop, e.g. 10ms.
    #[arg(long, default_value = "0s", value_parser = duration)]
    pub(crate) think: Duration,
    /// Reconnect for each transaction; connecting is part of the response time. Uses a thread per
    /// client.
    #[arg(long, short = 'C', conflicts_with = "threads")]
    pub(crate) connect: bool,
    /// Use TPC-C's keying and think times, with one home warehouse per client.
    #[arg(long, conflicts_with_all = ["rate", "think"])]
    pub(crate) paced: bool,
    /// Count slower responses as late, e.g. 20ms; responses within the limit are the goodput.
    #[arg(long, short = 'L', value_name = "TIME", value_parser = duration)]
    pub(crate) latency_limit: Option<Duration>,
    /// I/O method of the clients: auto, io-uring, epoll or blocking (one client per thread).
    #[arg(long, default_value = "auto")]
    pub(crate) engine: Engine,
    #[command(flatten)]
    pub(crate) load_from: LoadFromArgs,
    /// Number of clients, each with its own connection. A list, e.g. 1,2,5,10, runs one load for
    /// each.
    #[arg(long, short, default_value = "8", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=i64::from(CLIENTS_MAX)))]
    pub(crate) clients: Vec<u32>,
    /// Threads of the load [default: half of the CPUs].
    #[arg(long, short = 'j')]
    pub(crate) threads: Option<u32>,
    /// Measured time, e.g. 30s or 5m.
    #[arg(long, short, default_value = "10s", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Transactions of each client, instead of a time.
    #[arg(long, short = 't', value_name = "N", conflicts_with = "duration")]
    pub(crate) transactions: Option<u64>,
    /// Attempts at most of a transaction that fails with a serialization failure or a deadlock.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) max_tries: u32,
    /// Maximum share of failed transactions, e.g. 0.5%; above it the exit code is 3.
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = share)]
    pub(crate) max_failed: f64,
    /// Full load before measuring: a time, or auto (until the throughput has settled, a minute at
    /// most). No warm-up with --transactions.
    #[arg(long, default_value = "2s", value_parser = warmup)]
    pub(crate) warmup: Warmup,
    /// Which CPUs a sandbox's server and the load run on.
    #[arg(long, value_enum, default_value_t = PlacementName::Free)]
    pub(crate) placement: PlacementName,
    /// Seed of the random keys.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Store the result, for `list`, `show`, `compare`, `export`, `capacity` and `serve`, in STORE
    /// (a file, or postgres://user@host/database) [default: $PGDYNO_STORE, else a local file].
    #[arg(long, value_name = "STORE", num_args = 0..=1, require_equals = true)]
    pub(crate) store: Option<Option<PathBuf>>,
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a JSON object per second while it runs.
    #[arg(long)]
    pub(crate) stream: bool,
    /// Print the latency of each statement.
    #[arg(long, short = 'r')]
    pub(crate) statements: bool,
    /// Write the response times of each second to FILE, in HdrHistogram's log format.
    #[arg(long, value_name = "FILE")]
    pub(crate) histogram: Option<PathBuf>,
    /// Do not print progress.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// The workloads by their names, which the help lists.
pub(super) fn workload_parser() -> impl TypedValueParser<Value = Workload> {
    PossibleValuesParser::new(Workload::ALL.map(Workload::name)).try_map(|name| name.parse::<Workload>())
}

#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// Create the tables of a data set and fill them by COPY.
    #[command(after_help = "Example: pgdyno data create sandbox:main tpcc --scale 10")]
    Create(CreateDataArgs),
    /// Check that a data set is consistent, whatever load has run on it. Exit code 3 if not.
    #[command(after_help = "Example: pgdyno data check sandbox:main tpcc")]
    Check {
        /// sandbox:NAME or a connection string.
        target: String,
        /// pgbench, oltp or tpcc.
        #[arg(default_value = "pgbench")]
        dataset: Dataset,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Drop the tables of a data set.
    #[command(after_help = "Example: pgdyno data drop sandbox:main tpcc")]
    Drop {
        /// sandbox:NAME or a connection string.
        target: String,
        /// pgbench, oltp or tpcc.
        #[arg(default_value = "pgbench")]
        dataset: Dataset,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CreateDataArgs {
    /// sandbox:NAME or a connection string.
    pub(crate) target: String,
    /// pgbench, oltp (sysbench's tables) or tpcc.
    #[arg(default_value = "pgbench")]
    pub(crate) dataset: Dataset,
    /// Scale factor: pgbench 100,000 accounts (15 MB) each, oltp 100,000 rows per table (23 MB),
    /// tpcc warehouses (100 MB).
    #[arg(long, short)]
    pub(crate) scale: u32,
    /// Number of tables, for oltp.
    #[arg(long, default_value_t = 1)]
    pub(crate) tables: u32,
    /// Partitions of the large tables, hash:N or range:N: pgbench_accounts by aid, sbtest by id,
    /// tpcc by warehouse.
    #[arg(long, value_name = "METHOD:N")]
    pub(crate) partitions: Option<Partitions>,
    /// Connections that send rows [default: the number of CPUs].
    #[arg(long, short = 'j')]
    pub(crate) threads: Option<u32>,
    /// Seed of the random values.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Replace existing tables.
    #[arg(long)]
    pub(crate) replace: bool,
}

/// An automatic warm-up gives up after this.
const WARMUP_MOST: Duration = Duration::from_secs(60);

fn warmup(text: &str) -> Result<Warmup, String> {
    match text {
        "auto" => Ok(Warmup::Settled(WARMUP_MOST)),
        text => duration(text).map(Warmup::For).map_err(|error| error.to_string()),
    }
}

fn rate(text: &str) -> Result<Rate, String> {
    text.parse()
}

/// What the transactions of a command's load are.
#[derive(Debug, Args)]
pub(crate) struct OfLoadArgs {
    /// Workload, which says what a transaction does (docs/reference/load.md).
    #[arg(long, short, value_parser = workload_parser(), default_value = "tpcb")]
    pub(crate) workload: Workload,
    /// pgbench script to run instead of a workload.
    #[arg(long, short = 'f', value_name = "FILE", conflicts_with = "workload")]
    pub(crate) script: Option<PathBuf>,
    /// Data set that a script is for [default: pgbench].
    #[arg(long, value_name = "SET", requires = "script")]
    pub(crate) dataset: Option<Dataset>,
}

/// A share of 1, given in percent.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let percent = text
        .strip_suffix('%')
        .and_then(|number| number.trim_end().parse().ok());
    percent
        .filter(|percent| (0.0..=100.0).contains(percent))
        .map(|percent: f64| percent / 100.0)
        .ok_or_else(|| "expected a share from 0% to 100%, e.g. 1% or 0.5%".to_owned())
}

/// A script's variable and its value, as it is.
fn variable(text: &str) -> Result<(String, String), String> {
    let named = |name: &str| {
        name.chars()
            .enumerate()
            .all(|(at, c)| c == '_' || c.is_alphabetic() || at > 0 && c.is_ascii_digit())
    };
    text.split_once('=')
        .filter(|(name, _)| !name.is_empty() && named(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .ok_or_else(|| "expected NAME=VALUE, e.g. scale=100".to_owned())
}
