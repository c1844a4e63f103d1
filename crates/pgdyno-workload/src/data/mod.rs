//! The data of the workloads: created by COPY, recognised, checked, dropped. What a table holds is
//! defined in the submodules.

mod dataset;
mod error;
mod jobs;
mod objects;
mod oltp;
mod partitions;
mod pgbench;
pub(crate) mod rows;
mod session;
mod sql;
pub(crate) mod tpcc;
mod verify;

use crate::own_cpus::own_cpus;
use crate::scale::{ACCOUNTS_PER_SCALE, BIGINT_FROM};
use crate::session::Session;
pub use dataset::Dataset;
pub use error::DataError;
use jobs::Job;
pub use objects::DataObject;
pub use partitions::{PartitionMethod, Partitions};
use pgdyno_engine::Endpoint;
use serde::Serialize;
pub use session::DataSession;
use session::{Sorting, step_error};

/// Tables to create, with their scale and how they are filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataPlan {
    /// Data set whose tables are created.
    pub dataset: Dataset,
    /// Units of 100,000 rows; warehouses for [`Dataset::Tpcc`].
    pub scale: u32,
    /// Tables of [`Dataset::Oltp`]; 1 for the others.
    pub tables: u32,
    /// Number of connections that rows are sent over.
    pub threads: u32,
    /// Seed of all random values.
    pub seed: u64,
    /// How full the pages of its tables are made, in percent; as the server does it where it is not
    /// given.
    pub fillfactor: Option<u32>,
    /// Partitions of its large tables; `None` for none.
    pub partitions: Option<Partitions>,
    /// Whether the keys of pgbench's accounts are bigint below the scale, too, from which
    /// `pgbench -i` makes them so.
    pub bigint_keys: bool,
    /// Whether tables of these names that are there already may be dropped; else only those whose
    /// creation was not finished.
    pub replace: bool,
    /// What the comment on each table and function ends with. Then nothing that is there is dropped
    /// at all, and after an error or a stop the caller drops what carries the mark.
    pub mark: Option<String>,
    /// SQL of the user's, run when the rest is there. It may make anything, so that the data is in
    /// a database of its own.
    pub sql: Option<String>,
}

impl DataPlan {
    /// One table, as many threads as there are CPUs, the usual seed.
    pub fn new(dataset: Dataset, scale: u32) -> DataPlan {
        DataPlan {
            dataset,
            scale,
            tables: 1,
            threads: own_cpus().clamp(1, THREADS_MAX),
            seed: 1,
            fillfactor: None,
            partitions: None,
            bigint_keys: false,
            replace: true,
            mark: None,
            sql: None,
        }
    }

    /// Whether it makes bigint keys.
    fn has_bigint_keys(&self) -> bool {
        self.dataset == Dataset::Pgbench && (self.bigint_keys || self.scale >= BIGINT_FROM)
    }

    /// Checks that the numbers are within their bounds.
    pub fn check(&self) -> Result<(), DataError> {
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
        within(
            "number of tables (more than one only of oltp)",
            tables_max,
            self.tables,
        )?;
        within("number of threads", THREADS_MAX, self.threads)?;
        self.sql.as_deref().map(sql::statements).transpose()?;
        if let Some(Partitions { method, count }) = self.partitions {
            if self.dataset == Dataset::Tpcc && method == PartitionMethod::Range {
                within(
                    "number of ranges, each of one warehouse or more,",
                    self.scale,
                    count,
                )?;
            }
            let tables = match self.dataset {
                Dataset::Pgbench => 1,
                Dataset::Oltp => self.tables,
                Dataset::Tpcc => u32::try_from(tpcc::partitioned().count()).unwrap_or(u32::MAX),
            };
            let max = (partitions::COUNT_MAX / tables.max(1)).max(1);
            within("number of partitions of each of so many tables", max, count)?;
        }
        match self.fillfactor {
            Some(full) if !(FILLFACTOR_MIN..=100).contains(&full) => {
                Err(DataError::Fillfactor { given: full })
            }
            _ => Ok(()),
        }
    }
}

/// More connections than this gain nothing and are likely to be refused.
const THREADS_MAX: u32 = 64;
const TABLES_MAX: u32 = 1_000;
/// Least fillfactor that the server takes.
const FILLFACTOR_MIN: u32 = 10;

/// What a database holds of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Scale of the data, as of [`DataPlan::scale`].
    pub scale: u32,
    /// Number of tables, as of [`DataPlan::tables`].
    pub tables: u32,
    /// Rows of the main table (of each of them): accounts, one sbtest table, customers.
    pub rows: u64,
    /// Partitions of its large tables; `None` for none.
    pub partitions: Option<Partitions>,
    /// Whether the keys of pgbench's accounts are bigint.
    pub has_bigint_keys: bool,
}

impl Shape {
    /// Whether it is what the plan would make, as far as that can be seen: how full pages were made
    /// cannot.
    pub fn is_of(&self, plan: &DataPlan) -> bool {
        self.scale == plan.scale && self.partitions == plan.partitions
    }

    /// For people: "scale 5", "scale 5 in 16 partitions by hash".
    pub fn text(&self) -> String {
        scale_text(self.scale, self.partitions)
    }
}

fn scale_text(scale: u32, partitions: Option<Partitions>) -> String {
    match partitions {
        None => format!("scale {scale}"),
        Some(partitions) => format!("scale {scale} in {}", partitions.text()),
    }
}

/// Something that holds of undamaged data, whatever transactions ran on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// Name of the condition: what must agree with what.
    pub name: String,
    /// Whether the data fulfils it.
    pub holds: bool,
    /// Figures that were compared, as text.
    pub figures: String,
}

/// Progress of the creation of data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DataProgress {
    /// Name of the step, in a few words.
    pub step: &'static str,
    /// Number of rows that have been sent.
    pub rows: u64,
    /// Number of rows that the data set has.
    pub rows_total: u64,
}

fn database(endpoint: &Endpoint) -> String {
    let config = &endpoint.config;
    let name = config.get_dbname().or(config.get_user());
    name.unwrap_or("postgres").to_owned()
}

/// The tables of a data set that are there.
struct Tables {
    ours: Vec<String>,
    foreign: Vec<String>,
    unfinished: bool,
}

impl Tables {
    fn find(client: &mut Session, dataset: Dataset) -> Result<Tables, DataError> {
        let which = match dataset {
            Dataset::Pgbench => format!("relname = ANY ('{{{}}}')", pgbench::NAMES.join(",")),
            Dataset::Oltp => "relname ~ '^sbtest[1-9][0-9]*$'".to_owned(),
            Dataset::Tpcc => format!("relname = ANY ('{{{}}}')", tpcc::names().join(",")),
        };
        let sql = format!(
            "SELECT relname, coalesce(obj_description(oid, 'pg_class'), '') FROM pg_class
             WHERE {which} AND relkind IN ('r', 'p') AND pg_table_is_visible(oid) ORDER BY relname"
        );
        let rows: Vec<(String, String)> = session::rows(client, "looking for the tables", &sql)?
            .iter()
            .map(|row| (session::text(row, 0).to_owned(), session::text(row, 1).to_owned()))
            .collect();
        let unfinished = rows
            .iter()
            .any(|(_, comment)| comment.starts_with(session::UNFINISHED));
        let is_ours = |comment: &str| {
            dataset != Dataset::Tpcc
                || comment.starts_with(tpcc::OWNED)
                || comment.starts_with(session::UNFINISHED)
        };
        let (ours, foreign): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(_, comment)| is_ours(comment));
        let names = |list: Vec<(String, String)>| list.into_iter().map(|(name, _)| name).collect();
        Ok(Tables {
            ours: names(ours),
            foreign: names(foreign),
            unfinished,
        })
    }

    fn foreign(&self, endpoint: &Endpoint) -> Result<(), DataError> {
        if self.foreign.is_empty() {
            return Ok(());
        }
        Err(DataError::Foreign {
            place: endpoint.place(),
            database: database(endpoint),
            tables: self.foreign.join(", "),
        })
    }

    /// Whether what is there may go: all of it, what was not finished, or nothing.
    fn may_be_dropped(&self, endpoint: &Endpoint, plan: &DataPlan) -> Result<(), DataError> {
        let may_be = match plan.mark {
            Some(_) => false,
            None => plan.replace || self.unfinished,
        };
        if may_be || self.ours.is_empty() {
            return Ok(());
        }
        Err(DataError::InTheWay {
            place: endpoint.place(),
            database: database(endpoint),
            tables: self.ours.join(", "),
        })
    }

    /// Statements that drop what is ours.
    fn drop(&self, dataset: Dataset) -> String {
        let mut sql = String::new();
        if !self.ours.is_empty() {
            sql = format!("DROP TABLE IF EXISTS {};", self.ours.join(", "));
        }
        if dataset == Dataset::Tpcc {
            sql.push_str(&tpcc::drop_functions());
        }
        sql
    }
}

/// What the database holds of a data set; [`DataError::Missing`] where there is none or it is half
/// made.
pub fn shape_of(endpoint: &Endpoint, dataset: Dataset) -> Result<Shape, DataError> {
    shape(&mut session::open(endpoint)?, endpoint, dataset)
}

/// The tables that are there under the names of a data set, whoever made them.
pub fn tables_there(endpoint: &Endpoint, dataset: Dataset) -> Result<Vec<String>, DataError> {
    let tables = Tables::find(&mut session::open(endpoint)?, dataset)?;
    Ok(tables.ours.into_iter().chain(tables.foreign).collect())
}

/// The tables of all data sets that are there, without those of others under the same names.
pub fn tables_of_data_sets(endpoint: &Endpoint) -> Result<Vec<String>, DataError> {
    let mut client = session::open(endpoint)?;
    let mut tables = Vec::new();
    for dataset in Dataset::ALL {
        tables.extend(Tables::find(&mut client, dataset)?.ours);
    }
    Ok(tables)
}

fn shape(client: &mut Session, endpoint: &Endpoint, dataset: Dataset) -> Result<Shape, DataError> {
    let missing = |why| DataError::Missing {
        place: endpoint.place(),
        database: database(endpoint),
        dataset,
        why,
    };
    let tables = Tables::find(client, dataset)?;
    let has = |name: &str| tables.ours.iter().any(|ours| ours == name);
    // The first table, one that may be partitioned, a query that returns the size, and what is
    // wrong where it returns nothing.
    let (marked, large, size, why) = match dataset {
        Dataset::Pgbench => (
            pgbench::MARKED,
            pgbench::MARKED,
            "SELECT count(*) FROM pgbench_branches",
            "no filled pgbench_branches",
        ),
        Dataset::Oltp => (
            oltp::MARKED,
            oltp::MARKED,
            "SELECT coalesce(max(id), 0)::bigint FROM sbtest1",
            "no filled sbtest1",
        ),
        Dataset::Tpcc => (
            tpcc::MARKED,
            tpcc::LARGE,
            "SELECT count(*) FROM warehouse",
            "no filled warehouse that pgdyno made",
        ),
    };
    if !has(marked) || (dataset == Dataset::Pgbench && !has("pgbench_branches")) {
        return Err(missing(why));
    }
    if tables.unfinished {
        return Err(missing("its creation was not finished"));
    }
    let sql = format!(
        "SELECT ({size}), EXISTS (SELECT FROM pg_index WHERE indrelid = '{marked}'::regclass AND indisprimary),
         (SELECT partstrat FROM pg_partitioned_table WHERE partrelid = to_regclass('{large}')),
         (SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass('{large}')),
         EXISTS (SELECT FROM pg_attribute WHERE attrelid = '{marked}'::regclass AND attname = 'aid' AND atttypid = 'int8'::regtype)"
    );
    let step = "reading the scale of the data";
    let rows = session::rows_of_work(client, step, &sql)?;
    let row = rows.first().ok_or_else(|| session::odd(step))?;
    let size: i64 = session::number(row, 0).ok_or_else(|| session::odd(step))?;
    let keyed = session::text(row, 1) == "t";
    let has_bigint_keys = session::text(row, 4) == "t";
    let count: u32 = session::number(row, 3).ok_or_else(|| session::odd(step))?;
    let partitions = match session::text(row, 2) {
        "h" => Some(PartitionMethod::Hash),
        "r" => Some(PartitionMethod::Range),
        // By lists, as none of the programs that make this data does it.
        _ => None,
    }
    .map(|method| Partitions { method, count });
    if !keyed {
        return Err(missing("its creation was not finished: a primary key is missing"));
    }
    let size = u32::try_from(size).ok().filter(|&size| size > 0);
    let size = size.ok_or_else(|| missing(why))?;
    let within = |scale| {
        if scale > dataset.scale_max() {
            Err(missing("more than there can be"))
        } else {
            Ok(scale)
        }
    };
    Ok(match dataset {
        Dataset::Pgbench => Shape {
            scale: within(size)?,
            tables: 1,
            rows: u64::from(size) * u64::from(ACCOUNTS_PER_SCALE),
            partitions,
            has_bigint_keys,
        },
        Dataset::Oltp => Shape {
            scale: within(size / oltp::ROWS_PER_SCALE)?,
            tables: (1..)
                .take_while(|n| has(&format!("sbtest{n}")))
                .max()
                .unwrap_or(0),
            rows: size.into(),
            partitions,
            has_bigint_keys,
        },
        Dataset::Tpcc => Shape {
            scale: within(size)?,
            tables: 1,
            rows: u64::from(size) * u64::from(tpcc::CUSTOMERS_PER_WAREHOUSE),
            partitions,
            has_bigint_keys,
        },
    })
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
    /// Statements that are run when all rows are sent.
    finish: Vec<String>,
}

/// Memory of all sorts for keys and indexes together, where the server's own setting is not larger.
const SORT_MEMORY_KB: u32 = 256 * 1024;

/// Creates the data; what there was of the set is dropped, as far as the plan allows that.
/// `on_progress` answers whether to go on. After an error or a stop nothing of the set is left, but
/// for what carries the mark of a plan.
pub fn create_data(
    endpoint: &Endpoint,
    plan: &DataPlan,
    on_progress: &mut dyn FnMut(DataProgress) -> bool,
) -> Result<(), DataError> {
    plan.check()?;
    let mut progress = DataProgress {
        step: "tables",
        rows: 0,
        rows_total: 0,
    };
    let (_turn, waited) = session::take_turn(endpoint, &mut || {
        on_progress(DataProgress {
            step: "waiting for another creation",
            ..progress
        })
    })?;
    let mut client = session::open(endpoint)?;
    // Whoever asked for this has not seen what was made meanwhile.
    if waited && shape(&mut client, endpoint, plan.dataset).is_ok() {
        return Err(DataError::Meanwhile);
    }
    let there = Tables::find(&mut client, plan.dataset)?;
    there.foreign(endpoint)?;
    there.may_be_dropped(endpoint, plan)?;
    let (mut recipe, marked, comment_at_end) = match plan.dataset {
        Dataset::Pgbench => (pgbench::recipe(plan), pgbench::MARKED, None),
        Dataset::Oltp => (oltp::recipe(plan), oltp::MARKED, None),
        Dataset::Tpcc => {
            let now = session::now(&mut client)?;
            (
                tpcc::recipe(plan, &now),
                tpcc::MARKED,
                Some(tpcc::OWNED.to_owned()),
            )
        }
    };
    let marks = plan.mark.as_deref().map(|mark| Marks::new(plan, mark));
    let comment_at_end = marks
        .as_ref()
        .map(|marks| marks.comment.clone())
        .or(comment_at_end);
    let comment_at_end = comment_at_end.map_or_else(|| "NULL".to_owned(), |comment| format!("'{comment}'"));
    if let (Some(marks), Some(last)) = (&marks, recipe.finish.last_mut()) {
        last.push_str(&marks.functions);
    }
    progress.rows_total = recipe.rows_total;
    // From here on tables and mark are seen by everyone or by nobody.
    let begin = format!(
        "{} {} {} COMMENT ON TABLE {marked} IS '{}'",
        if marks.is_some() {
            String::new()
        } else {
            there.drop(plan.dataset)
        },
        recipe.tables,
        marks.as_ref().map_or("", |marks| &marks.tables),
        marks
            .as_ref()
            .map_or(session::UNFINISHED, |marks| &marks.unfinished),
    );
    session::run(&mut client, "creating the tables", "", &begin)?;
    if let Some(full) = plan.fillfactor {
        let tables = plan.stored_tables();
        let each = tables
            .iter()
            .map(|table| format!("ALTER TABLE {table} SET (fillfactor = {full});"));
        let step = "setting how full pages are made";
        session::run(&mut client, step, "", &each.collect::<String>())?;
    }
    let threads = plan.threads.min(u32::try_from(recipe.jobs.len()).unwrap_or(1));
    let sorts = recipe.sorts.clamp(1, threads);
    let sorting = Sorting {
        memory_kb: SORT_MEMORY_KB / sorts,
        alone: sorts == 1,
    };
    let made = jobs::run(
        endpoint,
        recipe.jobs,
        threads,
        sorting,
        recipe.rows_total,
        on_progress,
    )
    .and_then(|()| {
        progress.rows = progress.rows_total;
        progress.step = "checkpoint";
        if on_progress(progress) {
            let mark = format!("COMMENT ON TABLE {marked} IS {comment_at_end}");
            let own = || {
                plan.sql
                    .as_deref()
                    .map_or(Ok(()), |text| sql::run(endpoint, text))
            };
            finish(&mut client, &recipe.finish, own, &mark)
        } else {
            Err(DataError::Stopped)
        }
    });
    if made.is_err() && marks.is_none() {
        // Better no data than half of it. Where even this fails, the mark shows that it is
        // unfinished.
        drop(client);
        let dropped = session::open(&endpoint.unstopped());
        let _ = dropped.and_then(|mut client| drop_with(&mut client, plan.dataset, SOON));
    }
    made.map_err(|error| match error {
        DataError::Interrupted => DataError::Stopped,
        error => error,
    })
}

/// Comments that say whose the objects of a plan are.
struct Marks {
    /// Of each table, at the end.
    comment: String,
    /// Of the first table, until the data is whole.
    unfinished: String,
    /// Statements that put them on the tables.
    tables: String,
    /// And on the functions.
    functions: String,
}

impl Marks {
    fn new(plan: &DataPlan, mark: &str) -> Marks {
        let comment = format!("pgdyno: {} {mark}", plan.dataset.name()).replace('\'', "''");
        let on = |what: &str| format!("COMMENT ON {what} IS '{comment}'; ");
        let functions: &[&str] = match plan.dataset {
            Dataset::Tpcc => &tpcc::FUNCTION_SIGNATURES,
            Dataset::Pgbench | Dataset::Oltp => &[],
        };
        Marks {
            unfinished: format!("{} {mark}", session::UNFINISHED).replace('\'', "''"),
            tables: plan
                .table_names()
                .iter()
                .map(|name| on(&format!("TABLE {name}")))
                .collect(),
            functions: functions
                .iter()
                .map(|name| format!("; {}", on(&format!("FUNCTION {name}"))))
                .collect(),
            comment,
        }
    }
}

/// The last commit is the mark's, and it waits for the disk as the user's settings want it. `own`
/// is what comes before it.
fn finish(
    client: &mut Session,
    statements: &[String],
    own: impl FnOnce() -> Result<(), DataError>,
    mark: &str,
) -> Result<(), DataError> {
    let mut each = statements.iter();
    each.try_for_each(|sql| jobs::do_statement(client, "finishing", "", sql))?;
    own()?;
    jobs::do_statement(client, "finishing", "", mark)?;
    // So that a load does not begin with the writing of what was loaded. Not everyone may.
    match client.work("CHECKPOINT") {
        Err(source) if !session::is_refused(&source) => Err(step_error("checkpoint", source)),
        _ => Ok(()),
    }
}

/// Whether the data is whole: each condition that must hold whatever ran on it, with the figures
/// compared.
pub fn check_data(endpoint: &Endpoint, dataset: Dataset) -> Result<Vec<Condition>, DataError> {
    let mut client = session::open(endpoint)?;
    let shape = shape(&mut client, endpoint, dataset)?;
    let failed = |source| step_error("checking the data", source);
    client.rows(session::FOR_READING).map_err(failed)?;
    let conditions = match dataset {
        Dataset::Pgbench => pgbench::check(&mut client, shape.scale),
        Dataset::Oltp => oltp::check(&mut client, shape),
        Dataset::Tpcc => tpcc::verify::check(&mut client, shape.scale),
    }?;
    client.rows("COMMIT").map_err(failed)?;
    Ok(conditions)
}

/// Drops the tables and what belongs to them, if they are there.
pub fn drop_data(endpoint: &Endpoint, dataset: Dataset) -> Result<(), DataError> {
    drop_with(&mut session::open(endpoint)?, dataset, "")?.foreign(endpoint)
}

/// What cleans up waits no longer for the locks of others: nobody can stop it.
const SOON: &str = "SET LOCAL lock_timeout = '10s';";

fn drop_with(client: &mut Session, dataset: Dataset, settings: &str) -> Result<Tables, DataError> {
    let tables = Tables::find(client, dataset)?;
    session::run(client, "dropping the tables", settings, &tables.drop(dataset))?;
    Ok(tables)
}
