//! Decisions while an experiment runs: whether what is there decides all comparisons. The
//! mathematics is pgdyno-stats', the reading of records pgdyno-store's, shared with the report.

use crate::error::LabError;
use crate::file::Bound;
use pgdyno_judge::{Judge, Observations, Progress};
use pgdyno_record::{ExperimentRecord, TrialRecord, TrialStatus};
use std::collections::BTreeSet;

/// So many finished trials without the figure that decides are not so by chance.
const WITHOUT_FIGURE: u32 = 3;

/// What is known of the trials so far.
#[derive(Clone)]
pub(crate) struct Looks {
    judge: Judge,
    observed: Observations,
    trials: u32,
    finished: u32,
    /// The figure that decides and those that have bounds, each with the finished trials that have
    /// it.
    given: Vec<(String, u32)>,
}

impl Looks {
    pub(crate) fn new(record: &ExperimentRecord) -> Looks {
        Looks {
            judge: Judge::new(record, &record.metric),
            observed: Observations::default(),
            trials: 0,
            finished: 0,
            given: vec![(record.metric.clone(), 0)],
        }
    }

    /// The same for a search with these bounds, which decide too.
    pub(crate) fn with_bounds(mut self, bounds: impl Iterator<Item = Bound>) -> Looks {
        self.given.extend(bounds.map(|bound| (bound.figure, 0)));
        self
    }

    /// Takes in a trial.
    pub(crate) fn add(&mut self, record: &TrialRecord) {
        self.trials += 1;
        if record.status == TrialStatus::Finished {
            self.finished += 1;
            for (figure, given) in &mut self.given {
                *given += u32::from(record.figure(figure).is_some());
            }
        }
        self.judge.observe(&mut self.observed, record);
    }

    /// Trials that were taken in.
    pub(crate) fn trials(&self) -> u32 {
        self.trials
    }

    /// An error where a figure that decides is one that no trial has: further ones would be for
    /// nothing.
    pub(crate) fn has_figures(&self) -> Result<(), LabError> {
        let never = self.given.iter().find(|(_, given)| *given == 0);
        match never.filter(|_| self.finished >= WITHOUT_FIGURE) {
            Some((figure, _)) => Err(LabError::NoFigure {
                metric: figure.clone(),
                trials: self.finished,
            }),
            None => Ok(()),
        }
    }

    /// Treatments that are not tried any more after this block: all their comparisons are decided,
    /// or are with one of those that a guard has `ended`.
    pub(crate) fn needless(&self, block: u32, ended: &BTreeSet<usize>) -> BTreeSet<usize> {
        self.judge.needless(&self.observed, after(block), ended)
    }

    /// Whether every comparison is decided after this block, with intervals that hold under a look
    /// after each.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture::{experiment, trial};

    #[test]
    fn a_figure_that_no_trial_has_is_an_error_after_three() {
        let mut record = experiment(1, &["before", "after"]).record;
        record.metric = "server_cpu_us_per_tx".to_owned();
        let mut looks = Looks::new(&record);
        let failed = TrialRecord::begun(1, 1, "before");
        for trial in [&failed, &trial(1, "after", 10.0), &trial(2, "before", 10.0)] {
            looks.add(trial);
            assert!(looks.has_figures().is_ok());
        }
        looks.add(&trial(2, "after", 10.0));
        let error = looks.has_figures().unwrap_err().to_string();
        assert!(
            error.starts_with(
                "none of the 3 finished trials has server_cpu_us_per_tx, the metric that decides"
            ),
            "{error}"
        );
        record.metric = "tps".to_owned();
        let mut looks = Looks::new(&record);
        (1..=3).for_each(|block| looks.add(&trial(block, "after", 10.0)));
        assert!(looks.has_figures().is_ok());
        let bound = Bound::parse("energy_j_per_tx <= 1").unwrap();
        let mut looks = Looks::new(&record).with_bounds(std::iter::once(bound));
        (1..=3).for_each(|block| looks.add(&trial(block, "after", 10.0)));
        let error = looks.has_figures().unwrap_err().to_string();
        assert!(error.contains("has energy_j_per_tx"), "{error}");
    }
}
