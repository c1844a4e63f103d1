//! Programs that choose what a search tries next.

use crate::error::LabError;
use crate::ports::{Optimizer, Optimizers};
use pgdyno_workload::{Dialogue, ForeignError, command_words};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What an answer may take: a model of some hundred trials, in a slow language.
const ANSWER: Duration = Duration::from_mins(2);

/// Starts them as processes of this one.
pub(crate) struct RealOptimizers<'a> {
    /// Set to end in order.
    pub(crate) stop: &'a AtomicBool,
}

impl Optimizers for RealOptimizers<'_> {
    fn begin(&self, command: &str) -> Result<Box<dyn Optimizer + '_>, LabError> {
        let words = command_words(command).map_err(|error| LabError::Optimizer(error.to_string()))?;
        let dialogue = Dialogue::begin(words, ANSWER).map_err(failed)?;
        Ok(Box::new(Process {
            dialogue,
            stop: self.stop,
        }))
    }
}

struct Process<'a> {
    dialogue: Dialogue,
    stop: &'a AtomicBool,
}

impl Optimizer for Process<'_> {
    fn tell(&mut self, line: &str) -> Result<bool, LabError> {
        self.dialogue.tell(line, self.stop).map_err(failed)
    }

    fn ask(&mut self, line: &str) -> Result<Option<String>, LabError> {
        self.dialogue.ask(line, self.stop).map_err(failed)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: ForeignError) -> LabError {
    LabError::Optimizer(error.to_string())
}
