//! TPC-C's schema and its population, and its transactions as functions on the server (TPC-C 5.11).

mod rows;
mod tables;
pub(crate) mod values;
pub(super) mod verify;

use super::jobs::{Job, KEYS, ROWS, Work};
use super::rows::{Filling, Rows};
use super::session::Instant;
use super::{DataError, DataPlan, Recipe};
use rows::Source;
use std::ops::RangeInclusive;
use std::sync::Arc;
use tables::Table;
use values::{CUSTOMERS, DISTRICTS, ITEMS};

/// The comment on its tables. Their names are common words: what has no such comment is somebody
/// else's.
pub(super) const OWNED: &str = "pgdyno: tpcc";
/// The table that carries the mark of unfinished data.
pub(super) const MARKED: &str = "warehouse";
/// One of the tables that may be partitioned.
pub(super) const LARGE: &str = tables::STOCK.name;
/// Number of customers of a warehouse.
pub(super) const CUSTOMERS_PER_WAREHOUSE: u32 = (CUSTOMERS * DISTRICTS) as u32;

const FUNCTIONS: &str = include_str!("functions.sql");
pub(super) const FUNCTION_SIGNATURES: [&str; 6] = [
    "tpcc_new_order(int, int, int, int[], int[], int[])",
    "tpcc_payment(int, int, int, int, int, text, numeric)",
    "tpcc_order_status(int, int, int, text)",
    "tpcc_delivery(int, int)",
    "tpcc_stock_level(int, int, int)",
    "tpcc_customer(int, int, text)",
];

/// Bytes of each table with its indexes: of a warehouse, and beside all warehouses. Measured with
/// PostgreSQL 15.
const SIZES: [(&str, u64, u64); 9] = [
    ("warehouse", 200, 57_344),
    ("district", 1_500, 57_344),
    ("customer", 21_360_000, 0),
    ("history", 2_670_000, 0),
    ("new_order", 700_000, 0),
    ("orders", 3_900_000, 0),
    ("order_line", 38_100_000, 0),
    ("item", 0, 12_943_360),
    ("stock", 37_900_000, 0),
];

/// Up to so many connections each fills whole tables, which are frozen as they come; with more of
/// them the large tables are filled in parts by all.
const WHOLE_TABLES_THREADS_MAX: u32 = 3;

pub(super) fn names() -> Vec<String> {
    tables::ALL.iter().map(|table| table.name.to_owned()).collect()
}

pub(super) fn sizes() -> impl Iterator<Item = (String, u64, u64)> {
    SIZES
        .into_iter()
        .map(|(name, of_scale, fixed)| (name.to_owned(), of_scale, fixed))
}

/// Tables that may be partitioned.
pub(super) fn partitioned() -> impl Iterator<Item = &'static str> {
    tables::ALL
        .iter()
        .filter(|table| table.by.is_some())
        .map(|table| table.name)
}

pub(super) fn drop_functions() -> String {
    format!("DROP FUNCTION IF EXISTS {};", FUNCTION_SIGNATURES.join(", "))
}

/// `now` is the instant of creation.
pub(super) fn recipe(plan: &DataPlan, now: &Instant) -> Recipe {
    let warehouses = plan.scale.cast_signed();
    let source = Arc::new(Source {
        seed: plan.seed,
        now: now.clone(),
    });
    let partitions = plan.partitions;
    let parts = if plan.threads <= WHOLE_TABLES_THREADS_MAX {
        1
    } else {
        plan.threads.cast_signed().min(warehouses)
    };
    let mut list = List {
        jobs: Vec::new(),
        filled: Vec::new(),
        warehouses,
        is_partitioned: partitions.is_some(),
        source: Arc::clone(&source),
    };
    // Those that take long go first, so that the last ones to end are short.
    list.fill(&tables::STOCK, parts, Source::stock);
    list.fill(&tables::ORDER_LINE, parts, Source::order_lines);
    list.fill(&tables::CUSTOMER, parts, Source::customers);
    list.fill(&tables::HISTORY, parts, Source::history);
    list.fill(&tables::ORDERS, parts, Source::orders);
    list.fill(&tables::ITEM, 1, Source::items);
    list.fill(&tables::NEW_ORDER, 1, Source::new_orders);
    list.fill(&tables::DISTRICT, 1, Source::districts);
    list.fill(&tables::WAREHOUSE, 1, Source::warehouses);
    list.keys();
    let per_warehouse = ITEMS + DISTRICTS * (3 * CUSTOMERS + 900 + 1) + 1;
    Recipe {
        tables: tables::ALL
            .iter()
            .map(|table| table.create(OWNED, partitions, warehouses.into()))
            .collect(),
        rows_total: u64::from(plan.scale) * u64::from(per_warehouse.unsigned_abs())
            + u64::from(ITEMS.unsigned_abs())
            + source.count_of_order_lines(1..=warehouses),
        sorts: plan.threads,
        finish: vec![FUNCTIONS.to_owned()],
        jobs: list.jobs,
    }
}

struct List {
    jobs: Vec<Job>,
    /// Tables with the jobs that fill them.
    filled: Vec<(&'static Table, Vec<usize>)>,
    warehouses: i32,
    is_partitioned: bool,
    source: Arc<Source>,
}

impl List {
    fn fill(
        &mut self,
        table: &'static Table,
        parts: i32,
        put: fn(&Source, RangeInclusive<i32>, &mut Rows<'_>) -> Result<(), DataError>,
    ) {
        let mut places = Vec::new();
        for part in 0..parts {
            // Widened, so that the products fit.
            let bound = |part: i32| {
                let bound = i64::from(self.warehouses) * i64::from(part) / i64::from(parts);
                i32::try_from(bound).unwrap_or(self.warehouses)
            };
            let range = bound(part) + 1..=bound(part + 1);
            places.push(self.jobs.len());
            let source = Arc::clone(&self.source);
            self.jobs.push(Job {
                what: format!("filling {}", table.name),
                step: ROWS,
                after: Vec::new(),
                work: Work::Rows(Filling {
                    table: table.name.to_owned(),
                    whole: parts == 1 && !(self.is_partitioned && table.by.is_some()),
                    constants: table.constants(&source.now),
                    columns: table.sent,
                    send: Box::new(move |rows| put(&source, range, rows)),
                }),
            });
        }
        self.filled.push((table, places));
    }

    fn keys(&mut self) {
        for (table, places) in self.filled.drain(..) {
            self.jobs.push(Job {
                what: format!("making the keys of {}", table.name),
                step: KEYS,
                after: places,
                work: Work::Sql(table.finish()),
            });
        }
    }
}
