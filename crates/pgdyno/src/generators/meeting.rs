//! The meeting of the hosts of one load, on a common clock.

use super::SOON;
use crate::output::cut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The longest that hosts may take to connect all clients.
const READY_WITHIN: Duration = Duration::from_secs(600);
/// How much longer than its load a host may take to end.
const ENDED_WITHIN: Duration = Duration::from_secs(120);
/// Time between the answer to the last host that is ready and the beginning, at least: on its way
/// the answer may be late.
const LEAD: Duration = Duration::from_millis(200);
/// The error of a clock is half of a round trip. A host may have asked twice before it hears the
/// answer: for the time of day, and whether all are ready.
const LEAD_ERRORS: u32 = 6;
/// The longest that is waited for a host, whatever it reports.
const LEAD_MAX: Duration = Duration::from_secs(10);

/// What a host says of its failure, as far as it is kept.
pub(super) const WHY_CHARACTERS_MAX: usize = 1000;

/// The hosts of one load: all begin, or none does.
pub(super) struct Meeting {
    state: Mutex<State>,
    changed: Condvar,
    /// The origin of the common clock.
    pub(super) clock: Instant,
    hosts: Vec<String>,
    /// Length of the load with its warm-up.
    load: Duration,
}

struct State {
    /// Hosts that are not ready yet; once all are, those that have not ended.
    awaited: Vec<String>,
    /// The largest error of a host's clock.
    clock_error: Duration,
    /// When all begin, once that is known.
    begins_ns: Option<u64>,
    /// The first host that cannot, or has been lost, and why.
    failed: Option<String>,
}

impl State {
    /// Awaits a host no longer; one may have several parts of a load.
    fn no_longer(&mut self, name: &str) {
        if let Some(place) = self.awaited.iter().position(|awaited| awaited == name) {
            self.awaited.swap_remove(place);
        }
    }
}

impl Meeting {
    /// Of hosts by their names, for a load that takes so long.
    pub(super) fn new(hosts: Vec<String>, load: Duration) -> Meeting {
        Meeting {
            state: Mutex::new(State {
                awaited: hosts.clone(),
                clock_error: Duration::ZERO,
                begins_ns: None,
                failed: None,
            }),
            changed: Condvar::new(),
            clock: Instant::now(),
            hosts,
            load,
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

    pub(super) fn fail(&self, why: &str) {
        let why = || cut(why, WHY_CHARACTERS_MAX).into_owned();
        self.state().failed.get_or_insert_with(why);
        self.changed.notify_all();
    }

    /// Whether it has failed: also where a host takes too long.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed_at(self.clock.elapsed())
    }

    fn has_failed_at(&self, elapsed: Duration) -> bool {
        let mut state = self.state();
        let (limit, what) = match state.begins_ns {
            None => (READY_WITHIN, "its clients are not connected"),
            Some(begins_ns) => (
                Duration::from_nanos(begins_ns)
                    .saturating_add(self.load)
                    .saturating_add(ENDED_WITHIN),
                "its load has not ended",
            ),
        };
        if elapsed > limit && state.failed.is_none() && !state.awaited.is_empty() {
            let names = state.awaited.join(", ");
            state.failed = Some(format!(
                "{names}: {what} {} s after it was asked",
                limit.as_secs()
            ));
            self.changed.notify_all();
        }
        state.failed.is_some()
    }

    /// This one is ready, with a clock of such an error.
    pub(super) fn arrive(&self, name: &str, clock_error: Duration) {
        let mut state = self.state();
        state.no_longer(name);
        state.clock_error = state.clock_error.max(clock_error);
        if state.awaited.is_empty() && state.begins_ns.is_none() {
            let lead = u64::try_from(lead(state.clock_error).as_nanos()).unwrap_or_default();
            state.begins_ns = Some(self.now_ns() + lead);
            state.awaited.clone_from(&self.hosts);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// This one has ended its load.
    pub(super) fn end(&self, name: &str) {
        self.state().no_longer(name);
    }

    /// Waits until all are ready, not for long: when they begin, which they do not if one of them
    /// fails or somebody asks to stop; the outer `None` where that is not known yet.
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

/// How long before the beginning hosts hear of it whose clocks have such an error at most.
fn lead(clock_error: Duration) -> Duration {
    clock_error.saturating_mul(LEAD_ERRORS).clamp(LEAD, LEAD_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Duration = Duration::from_secs(10);

    fn meeting() -> Meeting {
        Meeting::new(vec!["gen1".to_owned(), "gen2".to_owned()], LOAD)
    }

    #[test]
    fn all_begin_at_one_instant_or_none_does() {
        let (goes_on, stopped) = (AtomicBool::new(false), AtomicBool::new(true));
        let meeting = meeting();
        meeting.arrive("gen1", Duration::ZERO);
        assert_eq!(meeting.begin(&stopped), Some(None));
        meeting.arrive("gen2", Duration::ZERO);
        let begins = meeting.begin(&goes_on).expect("it is known").expect("it begins");
        assert!(begins > meeting.now_ns());
        assert_eq!(meeting.begin(&goes_on), Some(Some(begins)));
        meeting.fail("gen1: lost");
        meeting.fail("gen2: lost too");
        assert_eq!(meeting.begin(&goes_on), Some(None));
        assert_eq!(meeting.failure().as_deref(), Some("gen1: lost"));
    }

    #[test]
    fn hosts_hear_of_the_beginning_before_it_however_far_they_are() {
        assert_eq!(lead(Duration::from_millis(1)), LEAD);
        assert_eq!(lead(Duration::from_millis(90)), Duration::from_millis(540));
        assert_eq!(lead(Duration::MAX), LEAD_MAX);
        let meeting = meeting();
        meeting.arrive("gen1", Duration::from_secs(1));
        meeting.arrive("gen2", Duration::ZERO);
        let begins = meeting.begin(&AtomicBool::new(false)).flatten();
        assert!(begins.is_some_and(|ns| Duration::from_nanos(ns) >= lead(Duration::from_secs(1))));
    }

    #[test]
    fn no_more_is_kept_of_what_a_host_says_than_people_read() {
        let meeting = meeting();
        meeting.fail(&"[".repeat(1 << 20));
        let why = meeting.failure().expect("it has failed");
        assert!(
            why.len() < 1100 && why.ends_with("(1047576 more characters)"),
            "{}",
            why.len()
        );
        // However long it says that its load is.
        let endless = Meeting::new(vec!["gen1".to_owned()], Duration::MAX);
        endless.arrive("gen1", Duration::ZERO);
        assert!(!endless.has_failed_at(READY_WITHIN));
    }

    #[test]
    fn who_waits_for_others_is_answered_soon_that_it_is_not_known_yet() {
        let meeting = meeting();
        meeting.arrive("gen1", Duration::ZERO);
        assert_eq!(meeting.begin(&AtomicBool::new(false)), None);
    }

    #[test]
    fn host_that_takes_too_long_is_named() {
        let late = meeting();
        late.arrive("gen1", Duration::ZERO);
        assert!(!late.has_failed_at(READY_WITHIN));
        assert!(late.has_failed_at(READY_WITHIN + LEAD));
        let why = late.failure().expect("it has failed");
        assert!(why.starts_with("gen2: its clients are not connected"), "{why}");
        let stuck = meeting();
        stuck.arrive("gen1", Duration::ZERO);
        stuck.arrive("gen2", Duration::ZERO);
        stuck.end("gen2");
        assert!(!stuck.has_failed_at(LOAD));
        assert!(stuck.has_failed_at(LOAD + ENDED_WITHIN + READY_WITHIN));
        let why = stuck.failure().expect("it has failed");
        assert!(why.starts_with("gen1: its load has not ended"), "{why}");
    }
}
