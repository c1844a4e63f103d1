//! The data sets by their names.

use crate::scale::{OLTP_SCALE_MAX, PGBENCH_SCALE_MAX};
use pgdyno_engine::names;
use serde::{Deserialize, Serialize};

/// A set of tables that workloads run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
    /// Every data set, in the order of the help text.
    pub const ALL: [Dataset; 3] = [Dataset::Pgbench, Dataset::Oltp, Dataset::Tpcc];

    /// The name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Dataset::Pgbench => "pgbench",
            Dataset::Oltp => "oltp",
            Dataset::Tpcc => "tpcc",
        }
    }

    /// The largest scale that there can be.
    pub fn scale_max(self) -> u32 {
        match self {
            Dataset::Pgbench => PGBENCH_SCALE_MAX,
            Dataset::Oltp => OLTP_SCALE_MAX,
            Dataset::Tpcc => WAREHOUSES_MAX,
        }
    }
}

names!(Dataset, "data set");
