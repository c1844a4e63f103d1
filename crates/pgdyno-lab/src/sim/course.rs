//! What happens to the trial that runs, and what its record must report of it.

use pgdyno_knobs::{Applied, Restart};
use pgdyno_record::{TrialRecord, TrialStatus};
use std::collections::BTreeSet;

/// How a load ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Whole,
    Nothing,
    Disagrees,
    Died,
    Guarded,
    Shortage,
    Stopped,
}

/// A load that was driven.
#[derive(Debug, Clone)]
pub(super) struct Drove {
    pub(super) block: u32,
    pub(super) treatment: String,
    pub(super) ending: Ending,
    pub(super) committed: u64,
    pub(super) measured_s: f64,
    pub(super) is_disturbed: bool,
}

/// By database.
type Done = Option<Option<String>>;

/// The trial that runs, as its ports have seen it.
#[derive(Debug, Clone, Default)]
pub(super) struct Course {
    pub(super) begun_ms: u64,
    /// What the first port that failed has reported.
    pub(super) error: Option<String>,
    /// Whether it failed because somebody asked to stop.
    pub(super) is_stopped: bool,
    pub(super) applied: Vec<Applied>,
    /// The same of servers beside the first one.
    pub(super) applied_beside: Vec<Applied>,
    pub(super) restart: Option<Restart>,
    pub(super) vacuumed: Done,
    pub(super) prewarmed: Done,
    pub(super) checkpointed: Done,
    /// Servers that were checkpointed, by their number beside the first one.
    pub(super) servers_ready: BTreeSet<u32>,
    pub(super) drove: Option<Drove>,
    pub(super) recovery_s: Option<f64>,
    /// Figures that the server was asked for, and gave.
    pub(super) answers: usize,
}

const RECOVERY: &str = "recovery_s";
/// What a job has taken.
pub(super) const JOB: &str = "job_s";

impl Course {
    pub(super) fn ignored(&self) -> Option<&Applied> {
        let mut all = self.applied.iter().chain(&self.applied_beside);
        all.find(|applied| !applied.took)
    }

    /// The status that its record must have, and a part of the reason.
    fn fate(&self) -> (TrialStatus, Option<String>) {
        if let Some(error) = &self.error {
            return (TrialStatus::Failed, Some(error.clone()));
        }
        if let Some(ignored) = self.ignored() {
            let knob = &ignored.setting.knob;
            return (
                TrialStatus::Failed,
                Some(format!("{knob} = {} did not take effect", ignored.setting.value)),
            );
        }
        let (status, reason) = match self.drove.as_ref().map(|drove| drove.ending) {
            Some(Ending::Whole) => return (TrialStatus::Finished, None),
            Some(Ending::Nothing) => (TrialStatus::Failed, "not one transaction was committed"),
            Some(Ending::Disagrees) => (TrialStatus::Invalid, "does not agree"),
            Some(Ending::Died) => (TrialStatus::Failed, "the server died"),
            Some(Ending::Guarded) => (TrialStatus::Failed, "guard: "),
            Some(Ending::Shortage) => (TrialStatus::Failed, "guard: the host is short of memory"),
            Some(Ending::Stopped) | None => (TrialStatus::Failed, "(a trial without a load is not stored)"),
        };
        (status, Some(reason.to_owned()))
    }

    /// What its record gets wrong.
    pub(super) fn broken_by(&self, record: &TrialRecord, variant: Option<String>) -> Vec<String> {
        let mut broken = Vec::new();
        let mut must = |holds: bool, what: &str| {
            if !holds {
                let of = format!("block {} of {}", record.block, record.treatment);
                broken.push(format!("{of}: {what} ({:?}, {:?})", record.status, record.reason));
            }
        };
        let (status, reason) = self.fate();
        must(
            record.status == status,
            &format!("it is stored otherwise than as {status:?}"),
        );
        let has_reason = match (&reason, &record.reason) {
            (Some(wanted), Some(reason)) => reason.contains(wanted),
            (wanted, reason) => wanted.is_none() && reason.is_none(),
        };
        must(has_reason, &format!("its reason is not {reason:?}"));
        must(!self.is_stopped, "it was stopped, and is stored");
        must(
            record.started_unix_ms == self.begun_ms,
            "it began at another time",
        );
        must(record.server_variant == variant, "it ran on another server");
        let effective = self.applied.iter();
        let effective = effective.map(|applied| (applied.setting.knob.clone(), applied.effective.clone()));
        must(
            record.effective == effective.collect::<Vec<_>>(),
            "other settings were effective",
        );
        must(
            record.figures.get(RECOVERY).copied() == self.recovery_s,
            "its recovery took another time",
        );
        let others = record
            .figures
            .keys()
            .filter(|name| ![RECOVERY, JOB].contains(&name.as_str()));
        must(
            others.count() == self.answers,
            "it has other figures than were asked for",
        );
        let Some(drove) = &self.drove else {
            must(record.tps.is_none(), "it has throughput, and no load");
            return broken;
        };
        must(
            (drove.block, &drove.treatment) == (record.block, &record.treatment),
            "another load was driven",
        );
        must(
            record.disturbed == drove.is_disturbed,
            "its disturbance is another",
        );
        must(
            (record.measured_s - drove.measured_s).abs() < 1e-9,
            "it was measured for another time",
        );
        #[expect(clippy::cast_precision_loss, reason = "a count of transactions")]
        let tps = drove.committed as f64 / drove.measured_s;
        let has_tps = match record.tps {
            Some(stored) => (stored - tps).abs() < 1e-6 && drove.ending != Ending::Died,
            None => drove.committed == 0 || drove.ending == Ending::Died,
        };
        must(has_tps, &format!("its throughput {:?} is not {tps}", record.tps));
        broken
    }
}
