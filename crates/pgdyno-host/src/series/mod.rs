//! Series: what samplers of a host and of a server hand on. A value is never without the instant at
//! which it was read; a rate knows its interval; what could not be read is a gap with a reason,
//! never a zero.

mod cgroup;
mod cpu;
mod disks;
mod energy;
mod files;
#[cfg(test)]
mod fixture;
mod host;
mod kernel_threads;
mod memory;
mod network;
mod numa;
mod pressure;
mod processes;
mod step;
mod vmstat;

pub use host::{HostSeries, HostSeriesOptions};
pub use network::network_use;

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// Name of a metric with its unit last ("disk.read_bytes_per_s"), and which one of several ("vda";
/// empty where there is only one).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The metric; docs/reference/metrics.md lists them all.
    pub metric: Cow<'static, str>,
    /// Device, CPU, process class, database and the like.
    pub label: String,
}

impl Key {
    /// The key of a metric without a label.
    pub const fn one(metric: &'static str) -> Key {
        Key {
            metric: Cow::Borrowed(metric),
            label: String::new(),
        }
    }

    /// The key of a metric with a label.
    pub fn of(metric: &'static str, label: impl Into<String>) -> Key {
        Key {
            metric: Cow::Borrowed(metric),
            label: label.into(),
        }
    }
}

/// Why something is missing from a reading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The file, view or metric that has the gap: "/proc/diskstats".
    pub source: String,
    /// Why nothing was read: an error's text, or a sentence for the user.
    pub reason: String,
}

/// The values and gaps of one source at one instant.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// Instant at which it was read.
    pub at: Instant,
    /// From when on its rates count; `None` where it holds no rates (gauges, or a first reading).
    pub since: Option<Instant>,
    /// Values in the metric's own unit.
    pub values: Vec<(Key, f64)>,
    /// Values that are missing, with the reason.
    pub gaps: Vec<Gap>,
}

impl Reading {
    /// A reading without values or gaps.
    pub fn new(at: Instant, since: Option<Instant>) -> Reading {
        Reading {
            at,
            since,
            values: Vec::new(),
            gaps: Vec::new(),
        }
    }

    /// The interval of its rates.
    pub fn interval(&self) -> Option<Duration> {
        self.since.map(|since| self.at.duration_since(since))
    }

    /// Adds the value of one key.
    pub fn push(&mut self, key: Key, value: f64) {
        self.values.push((key, value));
    }

    /// Adds a gap of a source, with its reason.
    pub fn gap(&mut self, source: &str, reason: impl ToString) {
        self.gaps.push(Gap {
            source: source.to_owned(),
            reason: reason.to_string(),
        });
    }

    /// The value of a metric there is one of, or of the first label.
    pub fn value(&self, metric: &str) -> Option<f64> {
        self.values
            .iter()
            .find(|(key, _)| key.metric == metric)
            .map(|(_, value)| *value)
    }
}

/// The growth of a counter between two readings; `None` where it went backwards: it was reset, or
/// its owner was restarted.
#[expect(clippy::cast_precision_loss, reason = "differences of counters")]
pub fn growth(before: u64, now: u64) -> Option<f64> {
    now.checked_sub(before).map(|d| d as f64)
}
