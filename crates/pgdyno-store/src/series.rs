//! Columns of a trial's series; how they are packed is in `blob.rs`.

mod blob;

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
