//! Decisions while an experiment runs: whether what is there decides all comparisons. The
//! mathematics is pgdyno-stats', the reading of records pgdyno-store's, shared with the report.

use pgdyno_judge::{Judge, Observations, Progress};
use pgdyno_record::{ExperimentRecord, TrialRecord};

/// What is known of the trials so far.
#[derive(Clone)]
pub(crate) struct Looks {
    judge: Judge,
    observed: Observations,
    trials: u32,
}

impl Looks {
    pub(crate) fn new(record: &ExperimentRecord) -> Looks {
        Looks {
            judge: Judge::new(record, &record.metric),
            observed: Observations::default(),
            trials: 0,
        }
    }

    /// Takes in a trial.
    pub(crate) fn add(&mut self, record: &TrialRecord) {
        self.trials += 1;
        self.judge.observe(&mut self.observed, record);
    }

    /// Trials that were taken in.
    pub(crate) fn trials(&self) -> u32 {
        self.trials
    }

    /// Whether every comparison is decided after this block, with intervals that hold under a look after each.
    pub(crate) fn are_decided(&self, block: u32) -> bool {
        let progress = Progress {
            ended: block as usize,
            is_over: false,
        };
        self.judge.judge(&self.observed, progress).done
    }
}
