//! Columns of a trial's series; how they are packed is in `blob.rs`, which digits are kept in `digits.rs`.

mod blob;
mod digits;

pub use blob::{pack_points, unpack_points};

use serde::{Deserialize, Serialize};

/// One metric of a trial over time. What was not read has no point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnRecord {
    /// docs/metrics.md lists them, the unit stands last.
    pub metric: String,
    /// Which one of several (a disk, a CPU, a class of processes); else empty.
    pub label: String,
    /// When each value was read, from the start of the load; in order.
    pub at_ms: Vec<u32>,
    /// As many values.
    pub values: Vec<f64>,
}

impl ColumnRecord {
    /// The blob of this column as it is stored: of rates and shares five digits are kept (docs/store.md).
    pub fn packed(&self) -> Vec<u8> {
        pack_points(&self.at_ms, &digits::kept(&self.metric, &self.values))
    }
}

/// Why something is missing from a series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapRecord {
    /// From the start of the load.
    pub at_ms: u32,
    /// File, view or metric.
    pub source: String,
    /// In words.
    pub reason: String,
}

/// The series of host and server beside a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesRecord {
    /// Columns by metric and label.
    pub columns: Vec<ColumnRecord>,
    /// What is missing, and why.
    pub gaps: Vec<GapRecord>,
}
