//! Where that library does not have this architecture's: why there are none.

use super::row::FunctionRow;
use crate::access::LocalHost;
use crate::series::Reading;
use std::time::Instant;

/// Samples that there are none of.
#[derive(Debug)]
pub enum FunctionProfile {}

impl FunctionProfile {
    /// The reason.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn open(_host: &LocalHost) -> Result<FunctionProfile, String> {
        Err(format!(
            "no functions: this program takes no samples on {}",
            std::env::consts::ARCH
        ))
    }

    /// Of no profile.
    pub fn take(&mut self, _host: &LocalHost, _postmaster: u32) -> Vec<FunctionRow> {
        match *self {}
    }
}

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
