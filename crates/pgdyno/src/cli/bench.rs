//! `pgdyno bench` and `pgdyno data` on the command line.

use clap::{Args, Subcommand, ValueEnum};
use pgdyno_engine::{CLIENTS_MAX, Engine, Protocol, Rate, Spacing, Warmup, duration};
use pgdyno_workload::{Control, Dataset, Workload};
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
    /// What a transaction does: empty, simple; on pgbench's data read, write, commit, select-only, simple-update, tpcb; on
    /// oltp's point-select, range-select, update-index, update-non-index, read-only, read-write, insert, delete; tpcc and
    /// tpcc-functions.
    #[arg(long, short, default_value = "tpcb")]
    pub(crate) workload: Workload,
    /// A script of pgbench's to run in place of a workload; several are chosen by their weights (1 if none is given).
    #[arg(long = "script", short = 'f', value_name = "FILE[@WEIGHT]", conflicts_with_all = ["workload", "transaction"])]
    pub(crate) scripts: Vec<String>,
    /// A variable that scripts find set.
    #[arg(long = "define", short = 'D', value_name = "NAME=VALUE", value_parser = variable, requires = "scripts")]
    pub(crate) variables: Vec<(String, String)>,
    /// Let scripts run commands on this machine (\shell, \setshell).
    #[arg(long, requires = "scripts")]
    pub(crate) allow_shell: bool,
    /// How statements are put to the server: simple, extended or prepared.
    #[arg(long, short = 'M', default_value = "prepared")]
    pub(crate) protocol: Protocol,
    /// Transaction control: none, explicit, or pipelined in one round trip; the workload's usual one if not given.
    #[arg(long, value_name = "CONTROL")]
    pub(crate) transaction: Option<Control>,
    /// Open loop: arrivals per second, as 5000, 1000/30s,2000/30s,4000 (steps) or 1000..20000/5m (a ramp).
    #[arg(long, short = 'R', value_name = "RATE", value_parser = rate, conflicts_with = "think")]
    pub(crate) rate: Option<Rate>,
    /// How arrivals of an open loop are spread.
    #[arg(long, value_enum, default_value_t = Spread::Poisson, requires = "rate")]
    pub(crate) spacing: Spread,
    /// Begin what is due in an open loop together, at most once in this time, as 1ms: less CPU, and more schedule lag.
    #[arg(long, default_value = "0s", value_name = "TIME", value_parser = duration, requires = "rate")]
    pub(crate) batch: Duration,
    /// Pause of a client between two transactions of a closed loop.
    #[arg(long, default_value = "0s", value_parser = duration)]
    pub(crate) think: Duration,
    /// A new connection for each transaction, its making part of the response time; a thread per client.
    #[arg(long, short = 'C', conflicts_with = "threads")]
    pub(crate) connect: bool,
    /// Let tpcc's clients type and think, each at a warehouse of its own, as the specification has it.
    #[arg(long, conflicts_with_all = ["rate", "think"])]
    pub(crate) paced: bool,
    /// Count responses that take longer as late; what is within is the goodput.
    #[arg(long, short = 'L', value_name = "TIME", value_parser = duration)]
    pub(crate) latency_limit: Option<Duration>,
    /// How bytes are moved: auto, io-uring, epoll or blocking (one client per thread).
    #[arg(long, default_value = "auto")]
    pub(crate) engine: Engine,
    /// Simulated sessions, each with a connection of its own; several numbers, as 1,2,5,10, are a ladder.
    #[arg(long, short, default_value = "8", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=i64::from(CLIENTS_MAX)))]
    pub(crate) clients: Vec<u32>,
    /// Threads of the load; half of the CPUs if not given.
    #[arg(long, short = 'j')]
    pub(crate) threads: Option<u32>,
    /// Measured time, as 30s or 5m.
    #[arg(long, short, default_value = "10s", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Transactions of each client, instead of a time.
    #[arg(long, short = 't', value_name = "N", conflicts_with = "duration")]
    pub(crate) transactions: Option<u64>,
    /// Tries of a transaction that fails with a serialization failure or a deadlock.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) max_tries: u32,
    /// Largest share of failed transactions, as 1% or 0.5%; above it the exit code is 3.
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = share)]
    pub(crate) max_failed: f64,
    /// Full load before measuring: a time, or auto (until the throughput has settled, a minute at most); none before a
    /// number of transactions.
    #[arg(long, default_value = "2s", value_parser = warmup)]
    pub(crate) warmup: Warmup,
    /// Which CPUs a sandbox's server and the load run on.
    #[arg(long, value_enum, default_value_t = PlacementName::Free)]
    pub(crate) placement: PlacementName,
    /// Seed of the random keys.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Store the result as an experiment without treatments, for `list`, `show`, `compare`, `export`, `capacity` and `serve`: in STORE
    /// (a file, or postgres://user@host/database), or in the usual store.
    #[arg(long, value_name = "STORE", num_args = 0..=1, require_equals = true)]
    pub(crate) store: Option<Option<PathBuf>>,
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a JSON object per second while it runs.
    #[arg(long)]
    pub(crate) stream: bool,
    /// Print how long round trips of each statement took.
    #[arg(long, short = 'r')]
    pub(crate) statements: bool,
    /// Write the response times of each second to FILE, in HdrHistogram's log format.
    #[arg(long, value_name = "FILE")]
    pub(crate) histogram: Option<PathBuf>,
    /// No line per second, on a terminal either.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// Create the tables of a data set afresh and fill them by COPY.
    Create(CreateDataArgs),
    /// Whether the data of a set is whole: the conditions that hold whatever ran on it. Exit code 3 where one does not.
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
    /// Units of 100,000 accounts (15 MB) or of 100,000 rows per table (23 MB); warehouses (100 MB) for tpcc.
    #[arg(long, short)]
    pub(crate) scale: u32,
    /// Tables of oltp.
    #[arg(long, default_value_t = 1)]
    pub(crate) tables: u32,
    /// Connections that rows are sent over; as many as there are CPUs if not given.
    #[arg(long, short = 'j')]
    pub(crate) threads: Option<u32>,
    /// Seed of the random values.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Replace tables that are there.
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

/// A share of 1, given in percent.
fn share(text: &str) -> Result<f64, String> {
    let percent = text
        .strip_suffix('%')
        .and_then(|number| number.trim_end().parse().ok());
    percent
        .filter(|percent| (0.0..=100.0).contains(percent))
        .map(|percent: f64| percent / 100.0)
        .ok_or_else(|| "expected a share from 0% to 100%, as 1% or 0.5%".to_owned())
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
        .ok_or_else(|| "expected NAME=VALUE, as scale=100".to_owned())
}
