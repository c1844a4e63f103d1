//! Guards: bounds that end a trial and keep its treatment from being tried again.

use crate::file::GuardPart;
use pgdyno_host::{HostAccess, size_bytes};
use pgdyno_load::SecondFigures;
use pgdyno_store::TrialRecord;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A bound must be passed in so many seconds in a row: one bad second is a checkpoint.
const IN_A_ROW: u32 = 5;
/// How often it is looked whether a load must end, and whether there is room.
const LOOK: Duration = Duration::from_millis(100);
const LOOK_AT_ROOM: Duration = Duration::from_secs(1);
/// What the reason of such a trial begins with.
const MARK: &str = "guard: ";

/// What a trial's reason tells of a guard, if one has ended it.
pub(super) fn told_by(record: &TrialRecord) -> Option<&str> {
    record.reason.as_deref().filter(|reason| reason.starts_with(MARK))
}

/// The bounds on a load, and how often each was passed in a row.
pub(super) struct Guard<'a> {
    part: &'a GuardPart,
    slow: u32,
    failing: u32,
}

impl<'a> Guard<'a> {
    pub(super) fn new(part: &'a GuardPart) -> Guard<'a> {
        Guard {
            part,
            slow: 0,
            failing: 0,
        }
    }

    /// Why the trial must end, if it must.
    pub(super) fn second(&mut self, second: &SecondFigures) -> Option<String> {
        self.response_time(second)
            .or_else(|| self.errors(second))
            .map(|reason| format!("{MARK}{reason}"))
    }

    fn response_time(&mut self, second: &SecondFigures) -> Option<String> {
        let most = self.part.p99_ms_max?;
        // A second without a single response is the slowest of all.
        let is_slow = second.p99_ms.map_or(second.committed == 0, |p99| p99 > most);
        self.slow = if is_slow { self.slow + 1 } else { 0 };
        (self.slow >= IN_A_ROW).then(|| {
            let seen = second
                .p99_ms
                .map_or("no response".to_owned(), |p99| format!("{p99:.1} ms"));
            format!("p99 was beyond {most} ms for {IN_A_ROW} seconds ({seen})")
        })
    }

    fn errors(&mut self, second: &SecondFigures) -> Option<String> {
        let most = self.part.error_ratio_max?;
        #[expect(clippy::cast_precision_loss, reason = "counts of a second")]
        let (failed, all) = (second.failed as f64, (second.failed + second.committed) as f64);
        let ratio = if all > 0.0 { failed / all } else { 0.0 };
        self.failing = if ratio > most { self.failing + 1 } else { 0 };
        (self.failing >= IN_A_ROW).then(|| {
            format!(
                "more than {:.1} % failed for {IN_A_ROW} seconds ({:.1} %)",
                most * 100.0,
                ratio * 100.0
            )
        })
    }
}

/// The bounds on what is left of the host.
pub(super) struct Room<'a> {
    pub(super) part: &'a GuardPart,
    pub(super) host: &'a dyn HostAccess,
    /// A directory whose file system must keep room.
    pub(super) data: Option<&'a Path>,
}

impl Room<'_> {
    /// Why the trial must end, if it must.
    fn lacks(&self) -> Option<String> {
        self.memory()
            .or_else(|| self.disk())
            .map(|reason| format!("{MARK}{reason}"))
    }

    fn memory(&self) -> Option<String> {
        let least = size_bytes(self.part.memory_available_min.as_deref()?).ok()?;
        let text = self.host.read("/proc/meminfo").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        let available = line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? << 10;
        (available < least).then(|| {
            format!(
                "{} MB of memory are available, the bound is {} MB",
                available >> 20,
                least >> 20
            )
        })
    }

    fn disk(&self) -> Option<String> {
        let least = size_bytes(self.part.disk_free_min.as_deref()?).ok()?;
        let space = self.host.space_of(&self.data?.to_string_lossy())?.ok()?;
        let free = space.free_bytes;
        (free < least).then(|| {
            format!(
                "{} MB are free on the data's file system, the bound is {} MB",
                free >> 20,
                least >> 20
            )
        })
    }
}

/// Runs a load while somebody else looks whether it must end, because the user says so or because room is short, which is told.
/// A load that has no seconds, a job, ends so too.
pub(super) fn watched<T>(
    room: &Room<'_>,
    stop: &AtomicBool,
    halt: &AtomicBool,
    load: impl FnOnce() -> T,
) -> (T, Option<String>) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut looked = Instant::now();
            while !is_over.load(Ordering::Relaxed) {
                thread::park_timeout(LOOK);
                if stop.load(Ordering::Relaxed) {
                    halt.store(true, Ordering::Relaxed);
                }
                if looked.elapsed() < LOOK_AT_ROOM {
                    continue;
                }
                looked = Instant::now();
                if let Some(reason) = room.lacks() {
                    halt.store(true, Ordering::Relaxed);
                    return Some(reason);
                }
            }
            None
        });
        // Should the load panic, the watcher ends all the same.
        let over = SetAtEnd(&is_over);
        let done = load();
        drop(over);
        watcher.thread().unpark();
        let lacked = watcher.join().unwrap_or_else(|panic| resume_unwind(panic));
        (done, lacked)
    })
}

struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_host::LocalHost;

    fn second(committed: u64, failed: u64, p99_ms: Option<f64>) -> SecondFigures {
        SecondFigures {
            number: 1,
            length_s: 1.0,
            measured: true,
            committed,
            failed,
            clients: 1,
            p50_ms: None,
            p95_ms: None,
            p99_ms,
        }
    }

    #[test]
    fn a_bound_acts_when_it_is_passed_in_a_row() {
        let part = GuardPart {
            p99_ms_max: Some(10.0),
            error_ratio_max: Some(0.1),
            ..GuardPart::default()
        };
        let mut guard = Guard::new(&part);
        for _ in 0..3 {
            for _ in 0..4 {
                assert_eq!(guard.second(&second(100, 0, Some(11.0))), None);
            }
            assert_eq!(guard.second(&second(100, 0, Some(9.0))), None, "one good second");
        }
        let reasons: Vec<Option<String>> = (0..5).map(|_| guard.second(&second(10, 5, Some(1.0)))).collect();
        assert!(reasons[..4].iter().all(Option::is_none));
        assert_eq!(
            reasons[4].as_deref(),
            Some("guard: more than 10.0 % failed for 5 seconds (33.3 %)")
        );
        let mut guard = Guard::new(&part);
        let stuck = (0..5).find_map(|_| guard.second(&second(0, 0, None)));
        assert!(stuck.unwrap().contains("no response"));
    }

    /// A load that ends only when it is told to.
    fn endless(part: &GuardPart, stop: bool) -> Option<String> {
        let room = Room {
            part,
            host: &LocalHost::new(),
            data: None,
        };
        let (stop, halt) = (AtomicBool::new(stop), AtomicBool::new(false));
        let load = || {
            while !halt.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        };
        watched(&room, &stop, &halt, load).1
    }

    #[test]
    fn a_load_without_seconds_is_ended_too() {
        assert_eq!(endless(&GuardPart::default(), true), None, "the user says so");
        let part = GuardPart {
            memory_available_min: Some("1000TB".to_owned()),
            ..GuardPart::default()
        };
        let reason = endless(&part, false).unwrap();
        assert!(reason.contains("MB of memory are available"), "{reason}");
    }

    #[test]
    fn a_load_that_panics_leaves_nobody_waiting() {
        let room = Room {
            part: &GuardPart::default(),
            host: &LocalHost::new(),
            data: None,
        };
        let (stop, halt) = (AtomicBool::new(false), AtomicBool::new(false));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            watched(&room, &stop, &halt, || panic!("a load"))
        }));
        assert!(outcome.is_err());
    }
}
