//! The store as requests use it: a session with a store's server is kept for the next request, a
//! file is opened for each.

use super::source::Source;
use pgdyno_store::{Store, StoreError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a request waits for another process that holds the store.
const PATIENCE: Duration = Duration::from_secs(5);
/// So many sessions are kept: a page asks for a few things at once.
const KEPT_MAX: usize = 4;
/// One that nobody has asked for so long is ended: others want the server's connections too.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(60);

/// Stores that are open and not in use. None is dropped on a thread that moves bytes: a session is
/// ended by waiting for it.
pub(super) struct Stores {
    source: Arc<dyn Source>,
    kept: Mutex<Vec<(Instant, Store)>>,
}

impl Stores {
    pub(super) fn new(source: Arc<dyn Source>) -> Stores {
        let kept = Mutex::default();
        Stores { source, kept }
    }

    /// One that is kept, else one that is opened as it is: a mistyped name must not leave an empty
    /// one, and who only looks on migrates nothing.
    pub(super) fn take(&self) -> Result<Store, StoreError> {
        if let Some(store) = self.kept_one() {
            if store.is_current() {
                return Ok(store);
            }
            // What has ended this session has most likely ended the others: each would be waited
            // for.
            let others = std::mem::take(&mut *self.lock());
            drop(others);
        }
        self.source.store(PATIENCE)
    }

    /// Keeps one for the next request, if it is a session and there is room.
    pub(super) fn keep(&self, store: Store) {
        if store.place().file().is_some() {
            return;
        }
        let mut kept = self.lock();
        if kept.len() < KEPT_MAX {
            kept.push((Instant::now(), store));
            return;
        }
        // Others need not wait until it is closed.
        drop(kept);
        drop(store);
    }

    /// Ends the sessions that nobody has asked for.
    pub(super) fn end_idle(&self) {
        let is_idle = |(since, _): &mut (Instant, Store)| since.elapsed() >= IDLE_MAX;
        let idle: Vec<(Instant, Store)> = self.lock().extract_if(.., is_idle).collect();
        drop(idle);
    }

    fn kept_one(&self) -> Option<Store> {
        self.lock().pop().map(|(_, store)| store)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Instant, Store)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
