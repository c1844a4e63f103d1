//! Decisions while an experiment runs: whether what is there decides all comparisons, and where a warm-up really ended. The
//! mathematics is pgdyno-stats', the reading of records pgdyno-store's, shared with the report.

use crate::measure::Measurement;
use pgdyno_engine::SecondFigures;
use pgdyno_judge::{Judge, Observations, Progress};
use pgdyno_record::{ExperimentRecord, TrialRecord};
use pgdyno_stats::{WarmUp, warm_up_end};

/// What is known of the trials so far.
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

/// Seconds of the measured time that were still part of the warm-up; `None` where there were none, or it never ended, or too
/// little is known.
pub(crate) fn unsettled_s(measurement: &Measurement) -> Option<f64> {
    let measured: Vec<f64> = measurement
        .load
        .seconds
        .iter()
        .filter(|s| s.measured && s.length_s > 0.99)
        .map(SecondFigures::tps)
        .collect();
    match warm_up_end(&measured) {
        WarmUp::EndsAt(0) | WarmUp::Never | WarmUp::Unknown => None,
        #[expect(clippy::cast_precision_loss, reason = "seconds of a load")]
        WarmUp::EndsAt(seconds) => Some(seconds as f64),
    }
}
