//! What a running experiment lets other processes know: how far it is, written down beside the store's lock. The only place
//! that writes it.

use crate::context::now_unix_ms;
use pgdyno_lab::Event;
use pgdyno_store::{ProgressPlace, ProgressRecord};

/// The progress of an experiment, written where it changes: a handful of times a trial, and not second by second, for a file
/// that is written is a disturbance.
pub(crate) struct Noted {
    place: ProgressPlace,
    of: Option<(i64, ProgressRecord)>,
    /// A directory that cannot be written to is told once.
    told: bool,
}

impl Noted {
    pub(crate) fn new(place: ProgressPlace) -> Noted {
        Noted {
            place,
            of: None,
            told: false,
        }
    }

    /// Takes in what happened.
    pub(crate) fn event(&mut self, event: &Event<'_>) {
        if let Event::Begun {
            id,
            trials,
            done,
            trial_s,
        } = event
        {
            self.of = Some((
                *id,
                ProgressRecord::begun(*trials, *done, *trial_s, now_unix_ms()),
            ));
            return self.write();
        }
        let Some((_, progress)) = &mut self.of else {
            return;
        };
        let before = progress.clone();
        match event {
            Event::TrialBegins { treatment, block } => progress.begin(&treatment.name, *block, "preparing"),
            Event::Standing(_) => phase(progress, "going to its server"),
            Event::Data(_) => phase(progress, "creating data"),
            Event::Second(second) if second.measured => phase(progress, "measuring"),
            Event::Second(_) => phase(progress, "warm-up"),
            Event::TrialEnds(_) => {
                progress.count(now_unix_ms());
                phase(progress, "between trials");
            }
            Event::Waiting { .. } => phase(progress, "waiting for its hours"),
            Event::PuttingBack => {
                progress.current = None;
                phase(progress, "putting back");
            }
            Event::Begun { .. }
            | Event::NotTested { .. }
            | Event::GuardActs { .. }
            | Event::EndsEarly { .. } => {}
        }
        if *progress != before {
            self.write();
        }
    }

    fn write(&mut self) {
        let Some((id, progress)) = &self.of else { return };
        if let Err(error) = self.place.write(*id, progress)
            && !self.told
        {
            self.told = true;
            tell!("how far this is cannot be written down for `pgdyno serve`: {error}");
        }
    }
}

fn phase(progress: &mut ProgressRecord, phase: &str) {
    if progress.phase != phase {
        phase.clone_into(&mut progress.phase);
    }
}
