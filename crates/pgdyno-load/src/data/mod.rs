//! The data of the workloads: created by COPY, recognised, checked, dropped. What a table holds is told in the rooms.

mod jobs;
mod pgbench;
mod rows;
mod session;

use crate::endpoint::Endpoint;
use crate::workload::{ACCOUNTS_PER_SCALE, SCALE_MAX, UnknownName, by_name};
use jobs::Job;
use postgres::Client;
use serde::{Deserialize, Serialize};
use session::words_of;
use std::fmt;
use std::num::NonZero;
use std::str::FromStr;
use std::thread::available_parallelism;

/// A set of tables that workloads run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dataset {
    /// The schema of `pgbench -i`.
    Pgbench,
    /// The tables of sysbench's oltp tests.
    Oltp,
    /// The nine tables of TPC-C.
    Tpcc,
}

/// Above this the number of customers no longer fits, nor does any disk.
const WAREHOUSES_MAX: u32 = 100_000;

impl Dataset {
    /// All of them.
    pub const ALL: [Dataset; 3] = [Dataset::Pgbench, Dataset::Oltp, Dataset::Tpcc];

    /// The name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Dataset::Pgbench => "pgbench",
            Dataset::Oltp => "oltp",
            Dataset::Tpcc => "tpcc",
        }
    }

    /// The largest scale whose keys fit four bytes.
    pub fn scale_max(self) -> u32 {
        match self {
            Dataset::Pgbench | Dataset::Oltp => SCALE_MAX,
            Dataset::Tpcc => WAREHOUSES_MAX,
        }
    }
}

impl fmt::Display for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Dataset {
    type Err = UnknownName;
    fn from_str(word: &str) -> Result<Self, Self::Err> {
        by_name("data set", word, &Dataset::ALL, Dataset::name)
    }
}

/// What to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataPlan {
    /// Which tables.
    pub dataset: Dataset,
    /// Units of 100,000 rows; warehouses for [`Dataset::Tpcc`].
    pub scale: u32,
    /// Tables of [`Dataset::Oltp`]; 1 for the others.
    pub tables: u32,
    /// Connections that rows are sent over.
    pub threads: u32,
    /// Seed of all random values.
    pub seed: u64,
}

impl DataPlan {
    /// One table, as many threads as there are CPUs, the usual seed.
    pub fn new(dataset: Dataset, scale: u32) -> DataPlan {
        let cpus = available_parallelism().map_or(1, NonZero::get);
        DataPlan {
            dataset,
            scale,
            tables: 1,
            threads: u32::try_from(cpus).unwrap_or(1).clamp(1, THREADS_MAX),
            seed: 1,
        }
    }

    fn check(&self) -> Result<(), DataError> {
        let within = |what, max, given| {
            if (1..=max).contains(&given) {
                Ok(())
            } else {
                Err(DataError::Number { what, max, given })
            }
        };
        let tables_max = if self.dataset == Dataset::Oltp {
            TABLES_MAX
        } else {
            1
        };
        within("scale", self.dataset.scale_max(), self.scale)?;
        within("number of tables", tables_max, self.tables)?;
        within("number of threads", THREADS_MAX, self.threads)
    }
}

/// More connections than this gain nothing and are likely to be refused.
const THREADS_MAX: u32 = 64;
const TABLES_MAX: u32 = 1_000;

/// What a database holds of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// As in [`DataPlan`].
    pub scale: u32,
    /// As in [`DataPlan`].
    pub tables: u32,
    /// Rows of the main table (of each of them): accounts, one sbtest table, customers.
    pub rows: u32,
}

/// Something that holds of undamaged data, whatever transactions ran on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// What it is about.
    pub name: String,
    /// Whether it holds.
    pub holds: bool,
    /// The figures that were compared.
    pub words: String,
}

/// Why data could not be created, read or dropped.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// No connection.
    #[error("no connection to {place}: {source}")]
    Connect {
        /// Host and port, or socket.
        place: String,
        /// Why.
        source: postgres::Error,
    },
    /// The tables are not there, or not finished.
    #[error("database \"{database}\" at {place} holds no data of the set {dataset} ({why})")]
    Missing {
        /// Host and port, or socket.
        place: String,
        /// Its name.
        database: String,
        /// What was looked for.
        dataset: Dataset,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A number of the plan outside its bounds.
    #[error("the {what} must be 1 to {max}, not {given}")]
    Number {
        /// Which.
        what: &'static str,
        /// Its upper bound.
        max: u32,
        /// What was asked for.
        given: u32,
    },
    /// The server refused a step.
    #[error("{step} failed: {}", server_words(source))]
    Step {
        /// What was being done.
        step: String,
        /// Why.
        source: postgres::Error,
    },
    /// Sending the rows failed.
    #[error("sending rows to {table} failed: {source}")]
    Copy {
        /// Name of the table.
        table: String,
        /// Why.
        source: std::io::Error,
    },
    /// No thread to be had.
    #[error("the system refused a thread: {0}")]
    Thread(std::io::Error),
    /// The caller asked to stop; what had been made was dropped.
    #[error("stopped; the data was not created")]
    Stopped,
}

fn server_words(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => format!("{} (SQLSTATE {})", db.message(), db.code().code()),
        None => error.to_string(),
    }
}

/// How far the creation is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DataProgress {
    /// What is being done.
    pub step: &'static str,
    /// Rows sent so far.
    pub rows: u64,
    /// Rows in all.
    pub rows_total: u64,
}

fn missing(endpoint: &Endpoint, dataset: Dataset, why: &'static str) -> DataError {
    let config = &endpoint.config;
    DataError::Missing {
        place: endpoint.place(),
        database: config
            .get_dbname()
            .or(config.get_user())
            .unwrap_or("postgres")
            .to_owned(),
        dataset,
        why,
    }
}

/// What the database holds of a data set; [`DataError::Missing`] where there is none or it is half made.
pub fn shape_of(endpoint: &Endpoint, dataset: Dataset) -> Result<Shape, DataError> {
    if dataset != Dataset::Pgbench {
        return Err(missing(endpoint, dataset, "it cannot be made yet"));
    }
    let mut client = session::open(endpoint)?;
    let step = |source| words_of("reading the scale of the data", source);
    let there: bool = client
        .query_one("SELECT to_regclass('pgbench_branches') IS NOT NULL", &[])
        .and_then(|row| row.try_get(0))
        .map_err(step)?;
    let branches: i64 = if there {
        let sql = "SELECT count(*) FROM pgbench_branches";
        client
            .query_one(sql, &[])
            .and_then(|row| row.try_get(0))
            .map_err(step)?
    } else {
        0
    };
    match u32::try_from(branches) {
        Ok(scale @ 1..=SCALE_MAX) => Ok(Shape {
            scale,
            tables: 1,
            rows: scale * ACCOUNTS_PER_SCALE.unsigned_abs(),
        }),
        _ => Err(missing(endpoint, dataset, "no filled pgbench_branches")),
    }
}

/// How a data set is made.
struct Recipe {
    /// Statements that make the tables.
    tables: String,
    /// What fills them and makes their keys.
    jobs: Vec<Job>,
    rows_total: u64,
    /// Keys that are made at the same time, at most.
    sorts: u32,
    /// Statements at the end.
    finish: Vec<String>,
}

/// Memory of all sorts for keys and indexes together, where the server's own setting is not larger.
const SORT_MEMORY_KB: u32 = 256 * 1024;

/// Creates the data afresh; what there was of the set is dropped. `on_progress` answers whether to go on. After an
/// error or a stop nothing of the set is left.
pub fn create_data(
    endpoint: &Endpoint,
    plan: &DataPlan,
    on_progress: &mut dyn FnMut(DataProgress) -> bool,
) -> Result<(), DataError> {
    plan.check()?;
    if plan.dataset != Dataset::Pgbench {
        return Err(missing(endpoint, plan.dataset, "it cannot be made yet"));
    }
    let recipe = pgbench::recipe(plan);
    let mut progress = DataProgress {
        step: "tables",
        rows: 0,
        rows_total: recipe.rows_total,
    };
    let mut client = session::open(endpoint)?;
    session::take_turn(&mut client, &mut || {
        on_progress(DataProgress {
            step: "waiting for another creation",
            ..progress
        })
    })?;
    // From here on tables and mark are seen by everyone or by nobody.
    let begin = format!(
        "BEGIN; {}; {} COMMENT ON TABLE {} IS '{}'; COMMIT",
        pgbench::DROP,
        recipe.tables,
        pgbench::MARKED,
        session::UNFINISHED
    );
    client
        .batch_execute(&begin)
        .map_err(|source| words_of("creating the tables", source))?;
    let threads = plan.threads.min(u32::try_from(recipe.jobs.len()).unwrap_or(1));
    let sort_memory_kb = SORT_MEMORY_KB / recipe.sorts.clamp(1, threads);
    let made = jobs::run(
        endpoint,
        recipe.jobs,
        threads,
        sort_memory_kb,
        recipe.rows_total,
        on_progress,
    )
    .and_then(|()| {
        progress.rows = progress.rows_total;
        progress.step = "checkpoint";
        if on_progress(progress) {
            finish(&mut client, plan.dataset, &recipe.finish)
        } else {
            Err(DataError::Stopped)
        }
    });
    if made.is_err() {
        // Better none than half. Where even this fails the mark tells.
        let _ = client.batch_execute(pgbench::DROP);
    }
    made
}

fn finish(client: &mut Client, _dataset: Dataset, statements: &[String]) -> Result<(), DataError> {
    for sql in statements {
        client
            .batch_execute(sql)
            .map_err(|source| words_of("finishing", source))?;
    }
    client
        .batch_execute(&format!("COMMENT ON TABLE {} IS NULL", pgbench::MARKED))
        .map_err(|source| words_of("finishing", source))?;
    // So that a load does not begin with the writing of what was loaded. Not everyone may.
    match client.batch_execute("CHECKPOINT") {
        Err(source) if !session::is_refused(&source) => Err(words_of("checkpoint", source)),
        _ => Ok(()),
    }
}

/// Whether the data is whole: each condition that must hold, with the figures compared.
pub fn check_data(endpoint: &Endpoint, dataset: Dataset) -> Result<Vec<Condition>, DataError> {
    shape_of(endpoint, dataset)?;
    Ok(Vec::new())
}

/// Drops the tables and what belongs to them, if they are there.
pub fn drop_data(endpoint: &Endpoint, dataset: Dataset) -> Result<(), DataError> {
    if dataset != Dataset::Pgbench {
        return Ok(());
    }
    session::open(endpoint)?
        .batch_execute(pgbench::DROP)
        .map_err(|source| words_of("dropping the tables", source))
}
