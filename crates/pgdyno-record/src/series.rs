//! Columns of a trial's series; how one is packed is in `blob.rs`, how those of a trial share their
//! times in `shared.rs`, which digits are kept in `digits.rs`.

mod blob;
mod digits;
mod shared;

pub use blob::{Points, pack_points, unpack_points};
pub(crate) use digits::rounded;
pub use shared::{PackedSeries, TimeLists, pack_series};

use serde::{Deserialize, Serialize};

/// One metric of a trial over time. What was not read has no point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnRecord {
    /// docs/reference/metrics.md lists them, the unit is last; never empty.
    pub metric: String,
    /// Which one of several (a disk, a CPU, a class of processes); else empty.
    pub label: String,
    /// When each value was read, from the start of the load; in order.
    pub at_ms: Vec<u32>,
    /// One value for each of `at_ms`, in the unit that ends the metric's name.
    pub values: Vec<f64>,
}

/// Why something is missing from a series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapRecord {
    /// Time of the gap, from the start of the load.
    pub at_ms: u32,
    /// The file, view or metric that has the gap: "pg_stat_wal".
    pub source: String,
    /// Why nothing was read: an error's text, or a sentence for the user.
    pub reason: String,
}

/// The series of host and server beside a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesRecord {
    /// Columns, one for each metric and label.
    pub columns: Vec<ColumnRecord>,
    /// What is missing, and why.
    pub gaps: Vec<GapRecord>,
}
