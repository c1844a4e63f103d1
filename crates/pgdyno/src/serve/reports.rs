//! Reports of experiments as they were sent: what takes all trials to be read is made once, and sent again as long as nothing of it has
//! changed.

use super::answer::Body;
use super::summary::Stamp;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// All of them together: a report of 60,000 points is a megabyte, and packed a third of that.
const KEPT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// An experiment's number, and whether the report is packed.
pub(super) type Key = (i64, bool);

/// Those that were sent already, the last one in front.
#[derive(Default)]
pub(super) struct Reports {
    kept: Mutex<VecDeque<(Key, Stamp, Body)>>,
}

impl Reports {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(Key, Stamp, Body)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one of an experiment, if nothing has changed since it was kept.
    pub(super) fn known(&self, key: Key, stamp: Stamp) -> Option<Body> {
        let mut kept = self.lock();
        let at = kept.iter().position(|(own, ..)| *own == key)?;
        let one = kept.remove(at).filter(|(_, of, _)| *of == stamp)?;
        let body = one.2.clone();
        kept.push_front(one);
        Some(body)
    }

    /// Keeps one in place of an earlier one. `stamp` is of the time before it was made: what has changed meanwhile is seen.
    pub(super) fn keep(&self, key: Key, stamp: Stamp, body: &Body) {
        let mut kept = self.lock();
        kept.retain(|(own, ..)| *own != key);
        kept.push_front((key, stamp, body.clone()));
        while kept.iter().map(|(.., body)| body.len()).sum::<usize>() > KEPT_BYTES_MAX {
            kept.pop_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_store::{Life, Pulse};

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
        for id in [1, 2] {
            reports.keep((id, true), stamp(1), &body(half));
        }
        // The one that was asked for last stays.
        assert!(reports.known((1, true), stamp(1)).is_some());
        reports.keep((3, true), stamp(1), &body(1));
        let there = [1, 2, 3].map(|id| reports.known((id, true), stamp(1)).is_some());
        assert_eq!(there, [true, false, true]);
        reports.keep((4, true), stamp(1), &body(KEPT_BYTES_MAX + 1));
        assert!(reports.lock().is_empty());
    }
}
