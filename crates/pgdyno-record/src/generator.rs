//! A host that drives a part of a load.

use serde::{Deserialize, Serialize};

/// A host while it drove its part of a load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorHost {
    /// Share of its CPUs' time in which they were idle, 0 to 1; `None` where it is not known.
    pub idle: Option<f64>,
    /// Share of its CPUs' time that others on its machine had, 0 to 1.
    pub steal: Option<f64>,
    /// Largest share of its speed at which an interface received or sent, 0 to 1; `None` where no
    /// speed is known.
    pub network: Option<f64>,
    /// How long after the common instant it began, in nanoseconds.
    pub began_late_ns: u64,
    /// Threads that drove its part; `None` where that is not known.
    #[serde(default)]
    pub threads: Option<u32>,
    /// Share of their time in which these threads had a CPU, 0 to 1.
    #[serde(default)]
    pub threads_cpu: Option<f64>,
    /// 99th percentile of how late transactions began after they were due, in nanoseconds; `None`
    /// in a closed loop.
    #[serde(default)]
    pub lag_p99_ns: Option<u64>,
}
