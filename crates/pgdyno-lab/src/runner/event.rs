//! Events of a running experiment, for display.

use crate::plan::{ServerVariant, Treatment};
use pgdyno_engine::Second;
use pgdyno_record::{TreatmentEstimate, TrialRecord};
use pgdyno_workload::DataProgress;

/// Event of a running experiment, for display.
#[derive(Debug)]
pub enum Event<'a> {
    /// Data is being created.
    Data(DataProgress),
    /// A server is made or started that some treatments need.
    GoingTo(&'a ServerVariant),
    /// A treatment is excluded.
    NotTested {
        /// Treatment that is excluded.
        treatment: &'a Treatment,
        /// Reason in a sentence.
        reason: &'a str,
    },
    /// The experiment has its number.
    Begun {
        /// Number of the experiment in the store.
        id: i64,
        /// Trials in all, at most.
        trials: u32,
        /// Trials that are stored already.
        done: u32,
        /// Expected length of a trial in seconds: load, restart, checkpoint and cross-check.
        trial_s: f64,
        /// What is left of a budget of time, in seconds; `None` without one.
        budget_s: Option<f64>,
    },
    /// No trial begins outside of the hours of the file.
    Waiting {
        /// Minutes until the hours begin.
        minutes: u32,
    },
    /// A search has chosen what it tries next; the reason is the treatment's.
    Suggested {
        /// What is tried next.
        treatment: &'a Treatment,
        /// The best so far; `None` before the first trial that did not fail.
        best: Option<&'a TreatmentEstimate>,
    },
    /// A trial begins: settings are applied now.
    TrialBegins {
        /// Treatment that the trial tries.
        treatment: &'a Treatment,
        /// Block of the trial, from 1.
        block: u32,
    },
    /// Within the load of a switchback, the turn of another trial begins.
    Turn {
        /// Treatment whose turn it is.
        treatment: &'a Treatment,
        /// Block of its trial, from 1.
        block: u32,
    },
    /// A second of the load.
    Second(&'a Second),
    /// A trial was stored.
    TrialEnds(&'a TrialRecord),
    /// A trial's figures are to be taken with care; this is stored with it too.
    TrialWarns {
        /// Treatment of the trial.
        treatment: &'a Treatment,
        /// The warning in a sentence.
        warning: &'a str,
    },
    /// A treatment passed a bound and is not tried again.
    GuardActs {
        /// Treatment that passed the bound.
        treatment: &'a Treatment,
        /// The bound and the value that passed it, as text.
        reason: &'a str,
        /// Number of its trials that are not run any more.
        lost: u32,
    },
    /// All comparisons of a treatment are decided: it is not tried again.
    Settled {
        /// Treatment that needs no further trial.
        treatment: &'a Treatment,
        /// Number of its trials that are not run any more.
        lost: u32,
    },
    /// The experiment ends before all blocks are run.
    EndsEarly {
        /// "every comparison is decided", "the budget is spent".
        reason: &'a str,
        /// Blocks that were run.
        blocks: u32,
    },
    /// Everything is being restored.
    PuttingBack,
}
