//! The meeting of the hosts of one load, on a common clock.

use super::SOON;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time between the answer to the last host that is ready and the beginning: on its way the answer may be late.
const LEAD: Duration = Duration::from_millis(200);

/// The hosts of one load: all begin, or none does.
pub(super) struct Meeting {
    state: Mutex<State>,
    changed: Condvar,
    /// The origin of the common clock.
    pub(super) clock: Instant,
    hosts: usize,
}

#[derive(Default)]
struct State {
    ready: usize,
    /// When all begin, once that is known.
    begins_ns: Option<u64>,
    /// The first host that cannot, or has been lost, and why.
    failed: Option<String>,
}

impl Meeting {
    pub(super) fn new(hosts: usize) -> Meeting {
        Meeting {
            state: Mutex::default(),
            changed: Condvar::new(),
            clock: Instant::now(),
            hosts,
        }
    }

    /// Why it has failed.
    pub(super) fn failure(&self) -> Option<String> {
        self.state().failed.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now_ns(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(super) fn fail(&self, why: String) {
        self.state().failed.get_or_insert(why);
        self.changed.notify_all();
    }

    pub(super) fn has_failed(&self) -> bool {
        self.state().failed.is_some()
    }

    /// One more is ready.
    pub(super) fn arrive(&self) {
        let mut state = self.state();
        state.ready += 1;
        if state.ready == self.hosts {
            let lead = u64::try_from(LEAD.as_nanos()).unwrap_or_default();
            state.begins_ns = Some(self.now_ns() + lead);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until all are ready, not for long: when they begin, which they do not if one of them fails or somebody asks to stop; the outer
    /// `None` where that is not known yet.
    pub(super) fn begin(&self, stop: &AtomicBool) -> Option<Option<u64>> {
        let state = self.state();
        let (state, _) = self
            .changed
            .wait_timeout_while(state, SOON, |state| {
                state.begins_ns.is_none() && state.failed.is_none() && !stop.load(Ordering::Relaxed)
            })
            .unwrap_or_else(PoisonError::into_inner);
        match (&state.failed, state.begins_ns) {
            (Some(_), _) => Some(None),
            _ if stop.load(Ordering::Relaxed) => Some(None),
            (None, Some(begins_ns)) => Some(Some(begins_ns)),
            (None, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_begin_at_one_instant_or_none_does() {
        let (goes_on, stopped) = (AtomicBool::new(false), AtomicBool::new(true));
        let meeting = Meeting::new(2);
        meeting.arrive();
        assert_eq!(meeting.begin(&stopped), Some(None));
        meeting.arrive();
        let begins = meeting.begin(&goes_on).expect("it is known").expect("it begins");
        assert!(begins > meeting.now_ns());
        assert_eq!(meeting.begin(&goes_on), Some(Some(begins)));
        meeting.fail("gen1: lost".to_owned());
        meeting.fail("gen2: lost too".to_owned());
        assert_eq!(meeting.begin(&goes_on), Some(None));
        assert_eq!(meeting.failure().as_deref(), Some("gen1: lost"));
    }

    #[test]
    fn who_waits_for_others_is_answered_soon_that_it_is_not_known_yet() {
        let meeting = Meeting::new(2);
        meeting.arrive();
        assert_eq!(meeting.begin(&AtomicBool::new(false)), None);
    }
}
