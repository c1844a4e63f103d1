//! The start of a load: its threads begin at once when all have connected, or none does.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Where the threads wait until all have connected: then all begin at once, or none does.
#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    ready: u32,
    /// When the load begins, or `None` where it does not, once that is known.
    decided: Option<Option<Instant>>,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that a thread has connected, or cannot; waits for the decision: when the load began, if
    /// it did.
    pub(crate) fn arrive(&self, connected: bool) -> Option<Instant> {
        if !connected {
            self.decide(None);
        }
        let mut state = self.lock();
        state.ready += 1;
        self.changed.notify_all();
        loop {
            if let Some(begin) = state.decided {
                return begin;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Sets the decision; later ones have no effect.
    pub(crate) fn decide(&self, begin: Option<Instant>) {
        self.lock().decided.get_or_insert(begin);
        self.changed.notify_all();
    }

    /// Waits until all threads have connected, and lets them begin at the instant that `begin`
    /// gives then, if it gives one.
    pub(crate) fn open_when_ready(&self, threads: u32, begin: &mut dyn FnMut() -> Option<Instant>) {
        let mut state = self.lock();
        while state.ready < threads && state.decided.is_none() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let is_decided = state.decided.is_some();
        drop(state);
        if !is_decided {
            self.decide(begin());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn all_begin_or_none_does() {
        for connected in [[true, true, true], [true, false, true]] {
            let gate = Gate::default();
            let begun: Vec<Option<Instant>> = thread::scope(|scope| {
                let handles = connected.map(|ok| {
                    scope.spawn({
                        let gate = &gate;
                        move || gate.arrive(ok)
                    })
                });
                gate.open_when_ready(3, &mut || Some(Instant::now()));
                handles.into_iter().map(|h| h.join().unwrap()).collect()
            });
            assert_eq!(begun, [begun[0]; 3]);
            assert_eq!(begun[0].is_some(), !connected.contains(&false));
        }
    }

    #[test]
    fn a_thread_that_never_comes_keeps_nobody() {
        let gate = Gate::default();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.arrive(true));
            gate.decide(None);
            assert!(waiting.join().unwrap().is_none());
        });
    }
}
