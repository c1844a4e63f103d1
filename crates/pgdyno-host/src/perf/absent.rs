//! Where that library does not have this architecture's: why there are none.

use crate::series::Reading;
use std::time::Instant;

/// Counters that there are none of.
#[derive(Debug)]
pub struct PerfCounters {
    is_reported: bool,
}

impl PerfCounters {
    /// Opens none.
    pub fn open(_postmaster: u32) -> PerfCounters {
        PerfCounters { is_reported: false }
    }

    /// No value; the reason, once.
    pub fn tick(&mut self) -> Reading {
        let mut reading = Reading::new(Instant::now(), None);
        if !std::mem::replace(&mut self.is_reported, true) {
            let why = format!("this program has no counters on {}", std::env::consts::ARCH);
            reading.gap("perf_event_open", why);
        }
        reading
    }
}
