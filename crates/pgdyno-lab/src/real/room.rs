//! What is left of the host while a load runs: a load without seconds, a job, is ended too where
//! room is short.

use crate::file::GuardPart;
use pgdyno_host::{HostAccess, memory_available_bytes, size_bytes};
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two looks whether a load must end, and whether there is room.
const LOOK: Duration = Duration::from_millis(100);
const LOOK_AT_ROOM: Duration = Duration::from_secs(1);

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
        self.memory().or_else(|| self.disk())
    }

    fn memory(&self) -> Option<String> {
        let least = size_bytes(self.part.memory_available_min.as_deref()?).ok()?;
        let available = memory_available_bytes(self.host)?;
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

/// Runs a load while a second thread watches whether it must end: because the user asks for it, or
/// because room is short, which is returned. A load that has no seconds, a job, ends so too.
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

    /// A load that ends only when it is stopped.
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
