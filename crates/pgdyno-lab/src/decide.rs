//! Decisions while an experiment runs: whether what is there decides all comparisons. The
//! mathematics is pgdyno-stats', the reading of records pgdyno-store's, shared with the report.

use pgdyno_judge::{Judge, Observations, Progress};
use pgdyno_record::{ExperimentRecord, TrialRecord};
use std::collections::BTreeSet;

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

    /// Treatments that are not tried any more after this block: all their comparisons are decided, or are with one of those that
    /// a guard has `ended`.
    pub(crate) fn needless(&self, block: u32, ended: &BTreeSet<usize>) -> BTreeSet<usize> {
        self.judge.needless(&self.observed, after(block), ended)
    }

    /// Whether every comparison is decided after this block, with intervals that hold under a look after each.
    pub(crate) fn are_decided(&self, block: u32) -> bool {
        self.judge.judge(&self.observed, after(block)).done
    }
}

fn after(block: u32) -> Progress {
    Progress {
        ended: block as usize,
        is_over: false,
    }
}
