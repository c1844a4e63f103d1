//! How far a running experiment is.

use serde::{Deserialize, Serialize};

/// The phase after the last trial.
const RESTORING: &str = "restoring";
/// The format's name of [`ProgressRecord`].
pub const PROGRESS_FORMAT: &str = "pgdyno-progress/1";

/// How far a running experiment is. Not kept: it counts as long as the process that wrote it runs
/// the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgressRecord {
    /// Always [`PROGRESS_FORMAT`], "pgdyno-progress/1".
    pub format: String,
    /// Trials in all, at most.
    pub trials: u32,
    /// Trials that are stored, those of earlier processes included.
    pub done: u32,
    /// Trials that were stored before this process resumed the experiment.
    pub done_before: u32,
    /// Expected length of a trial in seconds: load, restart, checkpoint and cross-check.
    pub trial_s: f64,
    /// What a budget of time left for this process when it began; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_s: Option<f64>,
    /// When this process began its first trial.
    pub begun_unix_ms: u64,
    /// When it stored its last one; the same where there is none yet.
    pub counted_unix_ms: u64,
    /// What is done now, for people: "warm-up".
    pub phase: String,
    /// The trial that is run now; `None` between two.
    pub current: Option<CurrentTrial>,
}

impl ProgressRecord {
    /// At the beginning of the first trial of a process that is to run `trials` less `done`, each
    /// of `trial_s` seconds.
    pub fn begun(trials: u32, done: u32, trial_s: f64, now_unix_ms: u64) -> ProgressRecord {
        ProgressRecord {
            format: PROGRESS_FORMAT.to_owned(),
            trials,
            done,
            done_before: done,
            trial_s,
            budget_s: None,
            begun_unix_ms: now_unix_ms,
            counted_unix_ms: now_unix_ms,
            phase: String::new(),
            current: None,
        }
    }

    /// Counts a trial that has just been stored.
    pub fn count(&mut self, now_unix_ms: u64) {
        self.done += 1;
        self.counted_unix_ms = now_unix_ms;
        self.current = None;
    }

    /// Sets the trial that runs now, and its phase.
    pub fn begin(&mut self, treatment: &str, block: u32, phase: &str) {
        self.current = Some(CurrentTrial {
            treatment: treatment.to_owned(),
            block,
        });
        phase.clone_into(&mut self.phase);
    }

    /// No further trial begins: what was changed is restored.
    pub fn restored(&mut self) {
        self.current = None;
        RESTORING.clone_into(&mut self.phase);
    }

    /// Seconds until the last trial ends, by the mean length of those that this process has run and
    /// by the budget; `None` once no further one begins, for how long the rest takes is unknown.
    pub fn left_s(&self, now_unix_ms: u64) -> Option<f64> {
        if self.phase == RESTORING {
            return None;
        }
        let seconds = |from: u64, to: u64| {
            let ms = u32::try_from(to.saturating_sub(from)).unwrap_or(u32::MAX);
            f64::from(ms) / 1e3
        };
        let here = self.done.saturating_sub(self.done_before);
        let each_s = match here {
            0 => self.trial_s,
            here => seconds(self.begun_unix_ms, self.counted_unix_ms) / f64::from(here),
        };
        let left_s = each_s * f64::from(self.trials.saturating_sub(self.done));
        let left_s = left_s - seconds(self.counted_unix_ms, now_unix_ms);
        let budget_s = self.budget_s.unwrap_or(f64::INFINITY) - seconds(self.begun_unix_ms, now_unix_ms);
        Some(left_s.min(budget_s).max(0.0))
    }
}

/// A trial that is run now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentTrial {
    /// Name of the treatment that it tries.
    pub treatment: String,
    /// Number of its block, from 1.
    pub block: u32,
}
