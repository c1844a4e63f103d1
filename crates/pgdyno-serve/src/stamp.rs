//! What shows that an experiment has changed.

use pgdyno_store::{Life, Listed, Pulse};

/// By which a change is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) life: Life,
    pub(super) started_unix_ms: u64,
    pub(super) finished_unix_ms: Option<u64>,
    pub(super) trials_finished: u64,
    pub(super) trials_failed: u64,
}

impl From<&Listed> for Stamp {
    fn from(listed: &Listed) -> Stamp {
        Stamp {
            life: listed.life,
            started_unix_ms: listed.started_unix_ms,
            finished_unix_ms: listed.finished_unix_ms,
            trials_finished: listed.trials_finished,
            trials_failed: listed.trials_failed,
        }
    }
}

impl From<&Pulse> for Stamp {
    fn from(pulse: &Pulse) -> Stamp {
        Stamp {
            life: pulse.life,
            started_unix_ms: pulse.started_unix_ms,
            finished_unix_ms: pulse.finished_unix_ms,
            trials_finished: pulse.trials_finished,
            trials_failed: pulse.trials_failed,
        }
    }
}
