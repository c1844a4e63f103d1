//! Progress of a running experiment for other processes, beside the store's lock. Only this module
//! writes it.

use crate::context::now_unix_ms;
use pgdyno_lab::Event;
use pgdyno_record::ProgressRecord;
use pgdyno_remote::Coordinator;
use pgdyno_store::{ProgressPlace, Store};
use std::io;

/// The phase of a load in which treatments take turns.
const TURNS: &str = "taking turns";

/// Where progress is written down.
pub(crate) enum NotedIn {
    /// Beside the file of a store.
    File(ProgressPlace),
    /// On the host that keeps the results.
    Coordinator(Coordinator),
    /// The store is not a file: nobody looks for it then.
    Nowhere,
}

impl NotedIn {
    /// Beside the store that keeps the results.
    pub(crate) fn of(store: &Store) -> NotedIn {
        store.progress_place().map_or(NotedIn::Nowhere, NotedIn::File)
    }

    fn write(&self, id: i64, progress: &ProgressRecord) -> io::Result<()> {
        match self {
            NotedIn::File(place) => place.write(id, progress),
            NotedIn::Coordinator(coordinator) => {
                coordinator.mention(id, progress);
                Ok(())
            }
            NotedIn::Nowhere => Ok(()),
        }
    }
}

/// The progress of an experiment, written where it changes: a handful of times a trial, and not
/// second by second, for a file that is written is a disturbance.
pub(crate) struct Noted {
    place: NotedIn,
    of: Option<(i64, ProgressRecord)>,
    /// A directory that cannot be written to is reported once.
    is_reported: bool,
}

impl Noted {
    pub(crate) fn new(place: NotedIn) -> Noted {
        Noted {
            place,
            of: None,
            is_reported: false,
        }
    }

    /// Notes an event of the run.
    pub(crate) fn event(&mut self, event: &Event<'_>) {
        if let Event::Begun {
            id,
            trials,
            done,
            trial_s,
            budget_s,
        } = event
        {
            let progress = ProgressRecord {
                budget_s: *budget_s,
                ..ProgressRecord::begun(*trials, *done, *trial_s, now_unix_ms())
            };
            self.of = Some((*id, progress));
            return self.write();
        }
        let Some((_, progress)) = &mut self.of else {
            return;
        };
        let has_changed = match event {
            Event::TrialBegins { treatment, block } => {
                progress.begin(&treatment.name, *block, "preparing");
                true
            }
            Event::GoingTo(_) => phase(progress, "going to its server"),
            Event::Data(_) => phase(progress, "creating data"),
            Event::Second(_) if progress.phase == TURNS => false,
            Event::Second(second) if second.measured => phase(progress, "measuring"),
            Event::Second(_) => phase(progress, "warm-up"),
            Event::TrialEnds(_) => {
                progress.count(now_unix_ms());
                phase(progress, "between trials");
                true
            }
            Event::GuardActs { lost, .. } | Event::Settled { lost, .. } => {
                progress.trials = progress.trials.saturating_sub(*lost);
                *lost > 0
            }
            Event::EndsEarly { .. } => {
                progress.trials = progress.done;
                true
            }
            Event::Waiting { .. } => phase(progress, "waiting for its hours"),
            Event::PuttingBack => {
                progress.restored();
                true
            }
            // A file that is written every few seconds is a disturbance: which treatment's turn it
            // is changes too often.
            Event::Turn { .. } => {
                let was_one = progress.current.take().is_some();
                phase(progress, TURNS) || was_one
            }
            Event::Begun { .. }
            | Event::NotTested { .. }
            | Event::Suggested { .. }
            | Event::TrialWarns { .. } => false,
        };
        if has_changed {
            self.write();
        }
    }

    fn write(&mut self) {
        let Some((id, progress)) = &self.of else {
            return;
        };
        if let Err(error) = self.place.write(*id, progress)
            && !self.is_reported
        {
            self.is_reported = true;
            err!("how far this is cannot be written down for `pgdyno serve`: {error}");
        }
    }
}

/// Whether that is another phase.
fn phase(progress: &mut ProgressRecord, phase: &str) -> bool {
    let is_new = progress.phase != phase;
    if is_new {
        phase.clone_into(&mut progress.phase);
    }
    is_new
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_record::ExperimentRecord;
    use serde_json::json;

    #[test]
    fn what_is_left_is_what_still_comes() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("x")).unwrap();
        let record: ExperimentRecord = serde_json::from_value(json!({
            "name": "x", "question": "?", "design": "ab", "blocks": 4, "seed": 1, "confidence": 0.95,
            "smallest_effect": 0.02, "treatments": [], "facts": [], "file": "", "repeat": [], "target": "x",
            "workload": {"name": "x", "scale": 1, "clients": 1, "threads": 1, "warmup_s": 1.0, "measure_s": 1.0},
        }))
        .unwrap();
        let id = store.begin(&record).unwrap();
        let mut noted = Noted::new(NotedIn::of(&store));
        let mut check = |event: Event<'_>, trials: u32, phase: &str, is_left: bool| {
            noted.event(&event);
            let stored = store.pulse(id).unwrap().progress.unwrap();
            let left_s = stored.left_s(now_unix_ms());
            assert_eq!((stored.trials, stored.phase.as_str()), (trials, phase));
            assert_eq!(
                left_s.map(|left_s| left_s > 0.0),
                is_left.then_some(stored.trials > stored.done)
            );
        };
        let begun = Event::Begun {
            id,
            trials: 8,
            done: 2,
            trial_s: 1000.0,
            budget_s: None,
        };
        check(begun, 8, "", true);
        check(Event::Waiting { minutes: 1 }, 8, "waiting for its hours", true);
        let early = Event::EndsEarly {
            reason: "every comparison is decided",
            blocks: 1,
        };
        check(early, 2, "waiting for its hours", true);
        check(Event::PuttingBack, 2, "restoring", false);
    }
}
