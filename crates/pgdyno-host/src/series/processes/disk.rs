//! What the server's processes read from and wrote to disks, from /proc/PID/io: seldom, for it is
//! one file more for each of them, and refused without the rights of a debugger.

use super::class::Class;
use super::{Process, TICKS_PER_S, uptime_ticks};
use crate::access::{HostAccess, HostError};
use crate::series::files::{Buffer, Kept};
use crate::series::step::{ReportedGaps, WENT_BACK, gap_of};
use crate::series::{Key, Reading};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Time between two reads of a process.
const EVERY: Duration = Duration::from_secs(10);

type Bytes = [u64; 2];

#[derive(Debug)]
pub(super) struct DiskUse {
    parent: Kept,
    /// When it was last read, what the parent had then, and how many ticks after boot that was.
    last: Option<(Instant, Bytes, u64)>,
    /// Last read of processes that have ended since, as far as the parent has not yet waited for
    /// them.
    ended: Bytes,
    reported: ReportedGaps,
    every: Duration,
}

impl DiskUse {
    pub(super) fn new(parent: u32) -> DiskUse {
        DiskUse {
            parent: Kept::new(format!("/proc/{parent}/io")),
            last: None,
            ended: [0; 2],
            reported: ReportedGaps::default(),
            every: EVERY,
        }
    }

    #[cfg(test)]
    pub(super) fn at_every_tick(&mut self) {
        self.every = Duration::ZERO;
    }

    pub(super) fn forget(&mut self) {
        self.last = None;
        self.ended = [0; 2];
    }

    /// A process has ended.
    pub(super) fn ended(&mut self, last: Option<Bytes>) {
        self.ended = plus(self.ended, last.unwrap_or_default());
    }

    /// The parent's, which holds what all of its ended children have read and written; `None`: not
    /// yet due.
    pub(super) fn read_parent(
        &mut self,
        host: &dyn HostAccess,
        buffer: &mut Buffer,
        at: Instant,
    ) -> Option<Result<Bytes, HostError>> {
        let is_due = |last: &(Instant, Bytes, u64)| at.saturating_duration_since(last.0) >= self.every;
        if !self.last.as_ref().is_none_or(is_due) {
            return None;
        }
        let path = self.parent.path().to_owned();
        let bytes = self.parent.read(host, buffer).and_then(|text| parse(&path, text));
        Some(bytes)
    }

    /// The children's. `parent` is what was read before the children were looked for.
    pub(super) fn read(
        &mut self,
        host: &dyn HostAccess,
        buffer: &mut Buffer,
        at: Instant,
        parent: Option<Result<Bytes, HostError>>,
        known: &mut BTreeMap<u32, Process>,
    ) -> Option<Reading> {
        let parent = parent?;
        let mut reading = Reading::new(at, self.last.map(|(since, _, _)| since));
        match parent {
            Ok(parent) => self.read_children(host, buffer, at, parent, known, &mut reading),
            Err(error) => {
                self.forget();
                reading.since = None;
                gap_of(&mut reading, &error);
            }
        }
        self.reported.filter(&mut reading);
        Some(reading)
    }

    fn read_children(
        &mut self,
        host: &dyn HostAccess,
        buffer: &mut Buffer,
        at: Instant,
        parent: Bytes,
        known: &mut BTreeMap<u32, Process>,
        reading: &mut Reading,
    ) {
        let now_ticks = Kept::passing("/proc/uptime")
            .read(host, buffer)
            .ok()
            .and_then(uptime_ticks);
        let before = self.last;
        let mut sums: BTreeMap<Class, Bytes> = BTreeMap::new();
        for process in known.values_mut() {
            let path = process.io.path().to_owned();
            let now = match process.io.read(host, buffer).and_then(|text| parse(&path, text)) {
                Ok(now) => now,
                // It is found to have ended at the next tick.
                Err(HostError::Missing { .. }) => continue,
                Err(error) => {
                    // The same for all of them, most probably.
                    reading.gap("/proc/PID/io", error);
                    break;
                }
            };
            let started = process.last.started_ticks;
            // One that has started since counts from its start, another that was not read yet from
            // now on.
            let from = process.disk.or_else(|| {
                let is_new = before.is_some_and(|(_, _, ticks)| started >= ticks);
                Some(if is_new { [0; 2] } else { now })
            });
            match from.and_then(|from| minus(now, from)) {
                Some(grown) => {
                    let sum = sums.entry(process.class).or_default();
                    *sum = plus(*sum, grown);
                }
                None => reading.gap(&path, WENT_BACK),
            }
            process.disk = Some(now);
        }
        if let Some((since, before, _)) = before
            && at > since
        {
            // The parent's own part is not distinct from that of the children it has waited for; it
            // is next to nothing.
            let waited = minus(parent, before).unwrap_or_default();
            sums.insert(
                Class::Ended,
                [0, 1].map(|i| waited[i].saturating_sub(self.ended[i])),
            );
            self.ended = [0, 1].map(|i| self.ended[i].saturating_sub(waited[i]));
            push(&sums, at.duration_since(since), reading);
        } else {
            self.ended = [0; 2];
        }
        // Without an uptime no process is taken for new.
        self.last = Some((at, parent, now_ticks.unwrap_or(u64::MAX / TICKS_PER_S)));
    }
}

#[expect(clippy::cast_precision_loss, reason = "sums of counters")]
fn push(sums: &BTreeMap<Class, Bytes>, interval: Duration, reading: &mut Reading) {
    let seconds = interval.as_secs_f64();
    for (class, [read, written]) in sums {
        let rates = [
            ("process.read_bytes_per_s", *read as f64 / seconds),
            ("process.write_bytes_per_s", *written as f64 / seconds),
        ];
        for (metric, rate) in rates {
            reading.push(Key::of(metric, class.name()), rate);
        }
    }
}

/// What reached a disk: read_bytes and write_bytes of proc(5).
fn parse(path: &str, text: &str) -> Result<Bytes, HostError> {
    let value = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
            .and_then(|value| value.trim().parse::<u64>().ok())
    };
    match (value("read_bytes"), value("write_bytes")) {
        (Some(read), Some(written)) => Ok([read, written]),
        _ => Err(HostError::Malformed {
            path: path.to_owned(),
            line: 1,
            expected: "lines read_bytes and write_bytes",
            found: text.chars().take(80).collect(),
        }),
    }
}

fn plus(a: Bytes, b: Bytes) -> Bytes {
    [0, 1].map(|i| a[i].saturating_add(b[i]))
}

fn minus(a: Bytes, b: Bytes) -> Option<Bytes> {
    Some([a[0].checked_sub(b[0])?, a[1].checked_sub(b[1])?])
}
