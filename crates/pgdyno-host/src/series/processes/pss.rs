//! Proportional set sizes by class, from /proc/PID/smaps_rollup: rarely and within a budget, for
//! the kernel walks the process's page tables for each read.

use super::Process;
use super::class::Class;
use crate::access::{HostAccess, HostError};
use crate::series::files::{Buffer, Kept};
use crate::series::step::ReportedGaps;
use crate::series::{Key, Reading};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Between two passes, at least.
const EVERY: Duration = Duration::from_secs(60);
/// After a pass follows so many times its CPU time without one: it takes less than 0.02 % of a
/// core.
const REST: u32 = 6000;
/// CPU time that a pass may take. Less, and a process that has touched 1 GB in small pages could
/// never be read.
const BUDGET: Duration = Duration::from_millis(30);
/// Assumed cost of a resident page before the first measurement; docs/reference/metrics.md has the
/// measurements.
const FIRST_NS_PER_PAGE: f64 = 100.0;

#[derive(Debug)]
pub(super) struct Shares {
    last: Option<Instant>,
    /// CPU time of the last pass.
    spent: Duration,
    ns_per_page: f64,
    /// The process up to which the last pass came, in each class: the next one goes on behind it.
    reached: BTreeMap<Class, u32>,
    reported: ReportedGaps,
    budget: Duration,
}

impl Default for Shares {
    fn default() -> Self {
        Shares {
            last: None,
            spent: Duration::ZERO,
            ns_per_page: FIRST_NS_PER_PAGE,
            reached: BTreeMap::new(),
            reported: ReportedGaps::default(),
            budget: BUDGET,
        }
    }
}

/// Bytes of a process's memory, or of several together.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Memory {
    /// Shared pages divided among those that have them.
    pss: u64,
    /// All that is resident (RES).
    resident: u64,
    /// What of it is files and shared memory, which others may have too (SHR).
    shared: u64,
}

/// What a pass found of a class.
#[derive(Debug, Default)]
struct Pass {
    memory: Memory,
    read: u32,
    left: u32,
}

impl Shares {
    #[cfg(test)]
    pub(super) fn with_budget(&mut self, budget: Duration) {
        self.budget = budget;
    }

    fn is_due(&self, at: Instant) -> bool {
        let pause = EVERY.max(self.spent * REST);
        self.last
            .is_none_or(|last| at.saturating_duration_since(last) >= pause)
    }

    /// A reading when it is due. A class of which every process was read has its sum; one that the
    /// budget did not reach to the end of has the mean of those that were read, with their number.
    pub(super) fn read(
        &mut self,
        host: &dyn HostAccess,
        buffer: &mut Buffer,
        at: Instant,
        known: &BTreeMap<u32, Process>,
    ) -> Option<Reading> {
        if !self.is_due(at) {
            return None;
        }
        self.last = Some(at);
        let mut reading = Reading::new(at, None);
        let mut classes: BTreeMap<Class, Vec<(u32, u64)>> = BTreeMap::new();
        for (pid, process) in known {
            let of_class = classes.entry(process.class).or_default();
            of_class.push((*pid, process.last.resident_pages));
        }
        // The small classes first: a budget that ends within the clients has not been spent on them
        // alone.
        let mut classes: Vec<_> = classes.into_iter().collect();
        classes.sort_by_key(|(_, processes)| processes.len());
        let start = cpu_time();
        for (class, processes) in classes {
            match self.pass(host, buffer, class, processes, start) {
                Ok(pass) => self.report(class, &pass, &mut reading),
                Err(error) => {
                    reading.gap("/proc/PID/smaps_rollup", error);
                    break;
                }
            }
        }
        self.spent = cpu_time().saturating_sub(start);
        self.reported.filter(&mut reading);
        Some(reading)
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate of cost"
    )]
    fn pass(
        &mut self,
        host: &dyn HostAccess,
        buffer: &mut Buffer,
        class: Class,
        mut processes: Vec<(u32, u64)>,
        start: Duration,
    ) -> Result<Pass, HostError> {
        let reached = self.reached.get(&class).copied().unwrap_or_default();
        let behind = processes.partition_point(|(pid, _)| *pid <= reached);
        let length = processes.len().max(1);
        processes.rotate_left(behind % length);
        let mut pass = Pass::default();
        for (pid, pages) in processes {
            let spent = cpu_time().saturating_sub(start);
            let cost = Duration::from_nanos((pages as f64 * self.ns_per_page) as u64);
            if spent + cost > self.budget {
                pass.left += 1;
                continue;
            }
            let path = format!("/proc/{pid}/smaps_rollup");
            let text = Kept::passing(path.as_str()).read(host, buffer);
            let memory = match text.map(Memory::parse) {
                Ok(Some(memory)) => memory,
                // Gone, or without memory of its own any more.
                Ok(None) | Err(HostError::Missing { .. }) => continue,
                Err(error) => return Err(error),
            };
            let took = cpu_time().saturating_sub(start).saturating_sub(spent);
            // Small processes cost more by their mappings than by their pages, and do not show what
            // a page costs.
            if pages > 10_000 {
                self.ns_per_page = took.as_nanos() as f64 / pages as f64;
            }
            pass.memory = pass.memory.plus(memory);
            pass.read += 1;
            self.reached.insert(class, pid);
        }
        Ok(pass)
    }

    #[expect(clippy::cast_precision_loss, reason = "gauges")]
    fn report(&self, class: Class, pass: &Pass, reading: &mut Reading) {
        if pass.read > 0 {
            for (metric, bytes) in [
                ("process.pss_mean_bytes", pass.memory.pss),
                ("process.resident_mean_bytes", pass.memory.resident),
                ("process.shared_mean_bytes", pass.memory.shared),
            ] {
                let mean = bytes as f64 / f64::from(pass.read);
                reading.push(Key::of(metric, class.name()), mean);
            }
            reading.push(Key::of("process.pss_read", class.name()), f64::from(pass.read));
        }
        if pass.left == 0 {
            reading.push(Key::of("process.pss_bytes", class.name()), pass.memory.pss as f64);
        } else {
            let ms = self.budget.as_millis();
            let all = pass.read + pass.left;
            let why = format!("{ms} ms of CPU time were not enough to read all of the {all} processes");
            reading.gap(&format!("process.pss_bytes {}", class.name()), why);
        }
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.try_into().unwrap_or_default(),
        time.tv_nsec.try_into().unwrap_or_default(),
    )
}

impl Memory {
    /// Of a process's smaps_rollup (proc_pid_smaps(5)); `None` where it has no memory of its own
    /// any more.
    fn parse(text: &str) -> Option<Memory> {
        let bytes = |name: &str| -> Option<u64> {
            let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
            let kib: u64 = rest.split_ascii_whitespace().next()?.parse().ok()?;
            kib.checked_mul(1024)
        };
        let (resident, anonymous) = (bytes("Rss:")?, bytes("Anonymous:")?);
        Some(Memory {
            pss: bytes("Pss:")?,
            resident,
            shared: resident.saturating_sub(anonymous),
        })
    }

    fn plus(self, other: Memory) -> Memory {
        Memory {
            pss: self.pss.saturating_add(other.pss),
            resident: self.resident.saturating_add(other.resident),
            shared: self.shared.saturating_add(other.shared),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expensive_pass_is_followed_by_a_longer_pause() {
        let start = Instant::now();
        for (spent_ms, seconds) in [(0, 60), (5, 60), (10, 60), (20, 120), (30, 180)] {
            let shares = Shares {
                last: Some(start),
                spent: Duration::from_millis(spent_ms),
                ..Shares::default()
            };
            let due = |seconds: f64| shares.is_due(start + Duration::from_secs_f64(seconds));
            assert!(
                due(f64::from(seconds)) && !due(f64::from(seconds) - 0.1),
                "{spent_ms}"
            );
        }
        assert!(Shares::default().is_due(start));
    }
}
