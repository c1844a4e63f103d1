//! The processes of a server by class: CPU, faults and memory at every tick, reads and writes less
//! often, their share of memory rarely.
//!
//! A process that has ended since the last read takes its last growth with it; but its parent,
//! which has waited for it, then holds all that it ever used. What that is more than was last read
//! of those that ended is reported as the class "ended".

mod class;
mod disk;
mod pss;

use super::files::{Buffer, Kept};
use super::step::{ReportedGaps, WENT_BACK, gap_of};
use super::{Gap, Key, Reading};
use crate::access::{HostAccess, HostError};
use crate::process::{ProcessStat, TICKS_PER_S, Used};
use class::Class;
use disk::DiskUse;
use pss::Shares;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// So many processes' files, two of each, stay open; those of further ones are opened at each read.
/// Most programs may have 1024 files open.
const KEPT_OPEN: usize = 200;

/// More processes than this are read at every other tick of a second: each costs the kernel 5 us.
const MANY: usize = 64;
const EVERY_OF_MANY: Duration = Duration::from_millis(1500);

/// A child of the server.
#[derive(Debug)]
struct Process {
    class: Class,
    stat: Kept,
    last: ProcessStat,
    io: Kept,
    /// What was last read: bytes read and written, of it and of what it has waited for.
    disk: Option<[u64; 2]>,
}

/// What a class did between two reads.
#[derive(Debug, Default, Clone, Copy)]
struct Sum {
    count: u32,
    used: Used,
    resident_pages: u64,
}

/// The server's processes by class. Part of [`super::HostSeries`].
#[derive(Debug)]
pub(super) struct ProcessClasses {
    postmaster: u32,
    stat: Kept,
    children: Kept,
    uptime: Kept,
    /// Whether there were rates since counting began.
    has_rates: bool,
    /// Of the postmaster when it was last read.
    last: Option<(Instant, ProcessStat)>,
    known: BTreeMap<u32, Process>,
    /// No process that was there at the last tick and not seen then started later than this (ticks
    /// since boot).
    seen_ticks: u64,
    /// What was last read of processes that have ended and that the postmaster had not yet waited
    /// for.
    owed: Used,
    /// Classes that were ever seen: their count is reported even when it is 0.
    classes: BTreeSet<Class>,
    reported: ReportedGaps,
    disk: DiskUse,
    shares: Shares,
}

impl ProcessClasses {
    pub(super) fn new(postmaster: u32) -> ProcessClasses {
        ProcessClasses {
            postmaster,
            stat: Kept::new(format!("/proc/{postmaster}/stat")),
            children: Kept::new(format!("/proc/{postmaster}/task/{postmaster}/children")),
            uptime: Kept::new("/proc/uptime"),
            has_rates: false,
            last: None,
            known: BTreeMap::new(),
            seen_ticks: 0,
            owed: Used::default(),
            classes: BTreeSet::new(),
            reported: ReportedGaps::default(),
            disk: DiskUse::new(postmaster),
            shares: Shares::default(),
        }
    }

    /// Adds a reading of the processes, and, when they are due, one of what they read and wrote and
    /// one of their shares of memory.
    pub(super) fn read(
        &mut self,
        host: &dyn HostAccess,
        buffer: &mut Buffer,
        at: Instant,
        readings: &mut Vec<Reading>,
    ) {
        if self.is_too_soon(at) {
            return;
        }
        // The parent is read before its children: whoever it has waited for until here cannot be
        // read below.
        let parent_disk = self.disk.read_parent(host, buffer, at);
        let mut reading = Reading::new(at, None);
        match self.read_all(host, buffer, at, &mut reading) {
            Ok(()) => {
                let disk = self.disk.read(host, buffer, at, parent_disk, &mut self.known);
                let shares = self.shares.read(host, buffer, at, &self.known);
                self.reported.filter(&mut reading);
                readings.push(reading);
                readings.extend(disk.into_iter().chain(shares));
            }
            Err(gap) => {
                self.forget();
                reading.gaps.push(gap);
                self.reported.filter(&mut reading);
                readings.push(reading);
            }
        }
    }

    /// Whether there are so many that this tick is skipped. The second one never is: it has the
    /// first rates.
    fn is_too_soon(&self, at: Instant) -> bool {
        let is_near = |since: Instant| at.saturating_duration_since(since) < EVERY_OF_MANY;
        let last = self.last.as_ref().map(|(since, _)| *since);
        self.has_rates && self.known.len() > MANY && last.is_some_and(is_near)
    }

    fn forget(&mut self) {
        self.has_rates = false;
        self.last = None;
        self.known.clear();
        self.owed = Used::default();
        self.disk.forget();
    }

    /// The processes' reading; an error where the parent or its children cannot be read at all.
    fn read_all(
        &mut self,
        host: &dyn HostAccess,
        buffer: &mut Buffer,
        at: Instant,
        reading: &mut Reading,
    ) -> Result<(), Gap> {
        let parent = self.read_parent(host, buffer)?;
        let before = self.last.replace((at, parent)).filter(|(since, _)| *since < at);
        reading.since = before.map(|(since, _)| since);
        self.has_rates = before.is_some();
        let now_ticks = self.uptime.read(host, buffer).ok().and_then(uptime_ticks);
        let listed = self.list(host, buffer)?;
        let mut sums = BTreeMap::new();
        let mut ended = self.read_known(host, buffer, &mut sums, reading);
        self.read_new(host, buffer, &listed, before.is_some(), &mut sums, reading);
        let newest = self
            .known
            .values()
            .map(|process| process.last.started_ticks)
            .max();
        self.seen_ticks = now_ticks.unwrap_or(0).max(newest.unwrap_or(0));
        if let Some((_, before)) = before {
            let own = parent.own.since(before.own).unwrap_or_default();
            sums.entry(Class::Postmaster).or_default().used = own;
            let waited = parent.reaped.since(before.reaped).unwrap_or_default();
            ended = ended.plus(self.owed);
            let excess = less(waited, ended);
            self.owed = less(ended, waited);
            sums.entry(Class::Ended).or_default().used = excess;
        }
        let main = sums.entry(Class::Postmaster).or_default();
        main.count = 1;
        main.resident_pages = parent.resident_pages;
        self.push(&sums, reading);
        Ok(())
    }

    fn read_parent(&mut self, host: &dyn HostAccess, buffer: &mut Buffer) -> Result<ProcessStat, Gap> {
        let source = format!("process {}", self.postmaster);
        let gap = |reason: String| Gap {
            source: source.clone(),
            reason,
        };
        let path = self.stat.path().to_owned();
        let stat = match self.stat.read(host, buffer) {
            Ok(text) => ProcessStat::parse_file(&path, text).map_err(|e| gap(e.to_string()))?,
            Err(HostError::Missing { .. }) => {
                return Err(gap(
                    "it is gone, or this /proc does not show it: the server stopped, was restarted, or \
                                runs in another process namespace"
                        .to_owned(),
                ));
            }
            Err(error) => return Err(gap(error.to_string())),
        };
        let before = self.last.as_ref().map(|(_, before)| before.started_ticks);
        if before.is_some_and(|before| before != stat.started_ticks) || stat.state == 'Z' {
            return Err(gap("it has ended; another process may have its number".to_owned()));
        }
        Ok(stat)
    }

    /// The children now. Without CONFIG_PROC_CHILDREN all processes are read.
    fn list(&mut self, host: &dyn HostAccess, buffer: &mut Buffer) -> Result<Vec<u32>, Gap> {
        match self.children.read(host, buffer) {
            Ok(text) => Ok(text
                .split_ascii_whitespace()
                .filter_map(|child| child.parse().ok())
                .collect()),
            Err(HostError::Missing { .. }) => {
                let names = host.list("/proc").map_err(|error| Gap {
                    source: "/proc".to_owned(),
                    reason: error.to_string(),
                })?;
                let pids = names.iter().filter_map(|name| name.parse().ok());
                // Whose child each is is checked when it is read.
                Ok(pids.filter(|pid| *pid != self.postmaster).collect())
            }
            Err(error) => Err(Gap {
                source: self.children.path().to_owned(),
                reason: error.to_string(),
            }),
        }
    }

    /// Reads the processes that are known, whether they were listed or not: the list may miss some
    /// while others end (proc(5)). Gives what those that have ended had used when they were last
    /// read.
    fn read_known(
        &mut self,
        host: &dyn HostAccess,
        buffer: &mut Buffer,
        sums: &mut BTreeMap<Class, Sum>,
        reading: &mut Reading,
    ) -> Used {
        let mut ended = Used::default();
        let (postmaster, disk) = (self.postmaster, &mut self.disk);
        self.known.retain(|pid, process| {
            let before = process.last;
            let path = process.stat.path().to_owned();
            let stat = process
                .stat
                .read(host, buffer)
                .and_then(|text| ProcessStat::parse_file(&path, text));
            match stat {
                Ok(stat) if stat.started_ticks == before.started_ticks && stat.parent == postmaster => {
                    process.last = stat;
                    if !process.class.is_sure() {
                        process.class = class::of(host, *pid);
                    }
                    match stat.own.since(before.own) {
                        Some(used) => add(sums, process.class, &stat, used),
                        None => reading.gap(&path, WENT_BACK),
                    }
                    true
                }
                // Gone, or its number is another's now.
                Ok(_) | Err(HostError::Missing { .. }) => {
                    ended = ended.plus(before.own).plus(before.reaped);
                    disk.ended(process.disk);
                    false
                }
                Err(error) => {
                    gap_of(reading, &error);
                    false
                }
            }
        });
        ended
    }

    /// Takes in processes that were not known. One that has started since the last tick counts from
    /// its start; one that the list had missed only from now on.
    fn read_new(
        &mut self,
        host: &dyn HostAccess,
        buffer: &mut Buffer,
        listed: &[u32],
        compares: bool,
        sums: &mut BTreeMap<Class, Sum>,
        reading: &mut Reading,
    ) {
        for pid in listed {
            if self.known.contains_key(pid) {
                continue;
            }
            let stays = self.known.len() < KEPT_OPEN;
            let mut file = Kept::of_process(*pid, "stat", stays);
            let path = file.path().to_owned();
            let stat = file
                .read(host, buffer)
                .and_then(|text| ProcessStat::parse_file(&path, text));
            match stat {
                Ok(stat) if stat.parent == self.postmaster => {
                    let class = class::of(host, *pid);
                    let is_new = compares && stat.started_ticks >= self.seen_ticks;
                    let used = if is_new { stat.own } else { Used::default() };
                    add(sums, class, &stat, used);
                    let process = Process {
                        class,
                        stat: file,
                        last: stat,
                        io: Kept::of_process(*pid, "io", stays),
                        disk: None,
                    };
                    self.known.insert(*pid, process);
                }
                Ok(_) | Err(HostError::Missing { .. }) => {}
                Err(error) => gap_of(reading, &error),
            }
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "sums of counters")]
    fn push(&mut self, sums: &BTreeMap<Class, Sum>, reading: &mut Reading) {
        let page_bytes = rustix::param::page_size() as f64;
        let seconds = reading.interval().map(|interval| interval.as_secs_f64());
        self.classes.extend(sums.keys());
        for class in &self.classes {
            let sum = sums.get(class).copied().unwrap_or_default();
            let mut push = |metric, value| reading.push(Key::of(metric, class.name()), value);
            if *class != Class::Ended {
                push("process.count", f64::from(sum.count));
                push("process.rss_bytes", sum.resident_pages as f64 * page_bytes);
            }
            if let Some(seconds) = seconds {
                push(
                    "process.cpu_ratio",
                    sum.used.ticks as f64 / TICKS_PER_S as f64 / seconds,
                );
                push(
                    "process.minor_faults_per_s",
                    sum.used.minor_faults as f64 / seconds,
                );
                push(
                    "process.major_faults_per_s",
                    sum.used.major_faults as f64 / seconds,
                );
            }
        }
    }
}

fn add(sums: &mut BTreeMap<Class, Sum>, class: Class, stat: &ProcessStat, used: Used) {
    let sum = sums.entry(class).or_default();
    sum.used = sum.used.plus(used);
    // One that has ended and was not yet waited for is not a process to count.
    if stat.state != 'Z' {
        sum.count += 1;
        sum.resident_pages = sum.resident_pages.saturating_add(stat.resident_pages);
    }
}

/// What is more in `a`, each for itself.
fn less(a: Used, b: Used) -> Used {
    Used {
        ticks: a.ticks.saturating_sub(b.ticks),
        minor_faults: a.minor_faults.saturating_sub(b.minor_faults),
        major_faults: a.major_faults.saturating_sub(b.major_faults),
    }
}

/// Seconds with two decimals, which are the ticks.
fn uptime_ticks(text: &str) -> Option<u64> {
    let (seconds, rest) = text.split_once('.')?;
    let hundredths: u64 = rest.get(..2)?.parse().ok()?;
    seconds
        .parse::<u64>()
        .ok()?
        .checked_mul(TICKS_PER_S)?
        .checked_add(hundredths)
}

#[cfg(test)]
mod tests;
