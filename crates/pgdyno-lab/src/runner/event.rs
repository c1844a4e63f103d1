//! What an experiment that runs tells whoever shows it.

use crate::plan::{Stand, Treatment};
use pgdyno_engine::Second;
use pgdyno_record::TrialRecord;
use pgdyno_workload::DataProgress;

/// What happens while an experiment runs, for whoever shows it.
#[derive(Debug)]
pub enum Event<'a> {
    /// Data is being created.
    Data(DataProgress),
    /// A server is made or started that some treatments need.
    Standing(&'a Stand),
    /// A treatment is left out.
    NotTested {
        /// Which.
        treatment: &'a Treatment,
        /// Why.
        reason: &'a str,
    },
    /// The experiment has its number.
    Begun {
        /// Number in the store.
        id: i64,
        /// Trials in all, at most.
        trials: u32,
        /// Of which are stored already.
        done: u32,
        /// Length of a trial's load.
        trial_s: f64,
    },
    /// It is outside of its hours.
    Waiting {
        /// Until then.
        minutes: u32,
    },
    /// A trial begins: settings are applied now.
    TrialBegins {
        /// Which.
        treatment: &'a Treatment,
        /// 1-based.
        block: u32,
    },
    /// A second of the load.
    Second(&'a Second),
    /// A trial was stored.
    TrialEnds(&'a TrialRecord),
    /// A trial's figures are to be taken with care; this is stored with it too.
    TrialWarns {
        /// Which.
        treatment: &'a Treatment,
        /// What is to be known.
        warning: &'a str,
    },
    /// A treatment passed a bound and is not tried again.
    GuardActs {
        /// Which.
        treatment: &'a Treatment,
        /// What happened.
        reason: &'a str,
        /// Its trials that do not come for that.
        lost: u32,
    },
    /// It ends before all blocks are run.
    EndsEarly {
        /// "every comparison is decided", "the budget is spent".
        reason: &'a str,
        /// Blocks that were run.
        blocks: u32,
    },
    /// Everything is being restored.
    PuttingBack,
}
