//! A function by the CPU time that it took.

use serde::{Deserialize, Serialize};

/// A function and the CPU time that a server's processes spent in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionRow {
    /// Its name among the symbols of the file; "unknown" without.
    pub function: String,
    /// Name of the program or library without its directory, or "kernel".
    pub file: String,
    /// CPUs that it kept busy: 1 is all of one.
    pub cpus: f64,
}
