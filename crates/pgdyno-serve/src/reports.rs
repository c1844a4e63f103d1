//! Reports of experiments as they were sent: what takes all trials to be read is made once, and
//! sent again as long as nothing of it has changed.

use super::answer::Body;
use super::problem::Problem;
use super::stamp::Stamp;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// All of them together: a report of 60,000 points is a megabyte, and packed a third of that.
const KEPT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// An experiment's number, and whether the report is packed.
pub(super) type Key = (i64, bool);

/// Those that were sent already, the last one in front.
#[derive(Default)]
pub(super) struct Reports {
    kept: Mutex<VecDeque<(Key, Stamp, Body)>>,
    /// Those that are being made now.
    making: Mutex<Vec<Key>>,
    made: Condvar,
}

impl Reports {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(Key, Stamp, Body)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one of an experiment; made, if it is not there or something has changed since. Who wants
    /// one that is being made waits for it. `stamp` is of the time before: what has changed
    /// meanwhile is seen.
    pub(super) fn of(
        &self,
        key: Key,
        stamp: Stamp,
        make: impl FnOnce() -> Result<Body, Problem>,
    ) -> Result<Body, Problem> {
        let making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let mut making = self
            .made
            .wait_while(making, |making| making.contains(&key))
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = self.known(key, stamp) {
            return Ok(known);
        }
        making.push(key);
        drop(making);
        let _done = Making { reports: self, key };
        let body = make()?;
        self.keep(key, stamp, &body);
        Ok(body)
    }

    /// The one of an experiment, if nothing has changed since it was kept.
    fn known(&self, key: Key, stamp: Stamp) -> Option<Body> {
        let mut kept = self.lock();
        let at = kept.iter().position(|(own, ..)| *own == key)?;
        let one = kept.remove(at).filter(|(_, of, _)| *of == stamp)?;
        let body = one.2.clone();
        kept.push_front(one);
        Some(body)
    }

    /// Whether the one of an experiment is there as it is now.
    pub(super) fn have(&self, key: Key, stamp: Stamp) -> bool {
        self.lock().iter().any(|(own, of, _)| *own == key && *of == stamp)
    }

    /// Whether there is room for one that nobody has asked for yet: half of it is for those that
    /// are asked for.
    pub(super) fn have_room(&self) -> bool {
        self.lock().iter().map(|(.., body)| body.len()).sum::<usize>() < KEPT_BYTES_MAX / 2
    }

    /// Keeps one in place of an earlier one.
    fn keep(&self, key: Key, stamp: Stamp, body: &Body) {
        let mut kept = self.lock();
        kept.retain(|(own, ..)| *own != key);
        kept.push_front((key, stamp, body.clone()));
        while kept.iter().map(|(.., body)| body.len()).sum::<usize>() > KEPT_BYTES_MAX {
            kept.pop_back();
        }
    }
}

/// One that is being made; in the end, whatever the outcome, it is not.
struct Making<'r> {
    reports: &'r Reports,
    key: Key,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        let making = self.reports.making.lock();
        making
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|key| *key != self.key);
        self.reports.made.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_store::{Life, Pulse};
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn stamp(trials_finished: u64) -> Stamp {
        Stamp::from(&Pulse {
            life: Life::Running,
            started_unix_ms: 1,
            finished_unix_ms: None,
            trials_finished,
            trials_failed: 0,
            progress: None,
        })
    }

    fn body(bytes: usize) -> Body {
        Body::new("application/json", vec![b' '; bytes], false)
    }

    #[test]
    fn a_report_is_kept_until_its_experiment_changes() {
        let reports = Reports::default();
        assert!(reports.known((1, true), stamp(1)).is_none());
        reports.keep((1, true), stamp(1), &body(10));
        assert_eq!(reports.known((1, true), stamp(1)).map(|b| b.len()), Some(10));
        assert!(reports.known((1, false), stamp(1)).is_none());
        assert!(reports.known((2, true), stamp(1)).is_none());
        assert!(reports.known((1, true), stamp(2)).is_none());
        // What is out of date is not held any longer.
        assert!(reports.lock().is_empty());
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let reports = Reports::default();
        let half = KEPT_BYTES_MAX / 2;
        assert!(reports.have_room());
        for id in [1, 2] {
            reports.keep((id, true), stamp(1), &body(half));
            assert!(!reports.have_room());
        }
        // The one that was asked for last stays.
        assert!(reports.known((1, true), stamp(1)).is_some());
        reports.keep((3, true), stamp(1), &body(1));
        let there = [1, 2, 3].map(|id| reports.known((id, true), stamp(1)).is_some());
        assert_eq!(there, [true, false, true]);
        reports.keep((4, true), stamp(1), &body(KEPT_BYTES_MAX + 1));
        assert!(reports.lock().is_empty());
    }

    #[test]
    fn one_that_is_being_made_is_waited_for_and_one_that_failed_is_made_again() {
        let reports = Reports::default();
        let (made, come) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let make = || {
            while come.load(Ordering::Relaxed) < 4 {
                std::thread::yield_now();
            }
            match made.fetch_add(1, Ordering::Relaxed) {
                0 => Err(Problem::failed("the store is gone")),
                _ => Ok(body(10)),
            }
        };
        let found: Vec<bool> = std::thread::scope(|threads| {
            let ask = || {
                come.fetch_add(1, Ordering::Relaxed);
                reports.of((1, true), stamp(1), make).is_ok()
            };
            let asked = [(); 4].map(|()| threads.spawn(ask));
            asked.map(|one| one.join().expect("an answer")).into()
        });
        assert_eq!(found.iter().filter(|is_there| **is_there).count(), 3);
        assert_eq!(made.load(Ordering::Relaxed), 2);
        let other = reports.of((1, true), stamp(2), || Ok(body(11)));
        assert_eq!(other.map(|body| body.len()).ok(), Some(11));
    }
}
