//! A search whose trials a program from outside chooses.

use crate::error::LabError;
use crate::optimizer::{Chosen, Message};
use crate::plan::{Plan, SearchPlan};
use crate::ports::{Optimizer, Optimizers};
use crate::searched::Tried;
use pgdyno_stats::{Point, SearchTrial};
use serde::Serialize;

/// Choices that cannot be tried, one after the other, before it is given up.
const REFUSALS_MAX: u32 = 20;
/// So much of an answer is shown that is none.
const SHOWN_CHARS: usize = 200;

/// Why a choice is refused that its block has already: a trial is of one treatment and one block.
const REPEATED: &str = "this block has a trial of it already";

/// Why a choice is refused that was given up: it would do the same harm once more.
const GUARDED: &str = "a guard has ended a trial of it";

/// What a program chooses.
pub(crate) enum Next {
    /// A point to try, and why.
    Try(Point, String),
    /// Nothing that its block has not tried already.
    Nothing,
    /// Somebody asked to stop before it had chosen.
    Stopped,
}

/// The program, which knows of so many trials.
pub(crate) struct Outside<'o> {
    program: Box<dyn Optimizer + 'o>,
    known: usize,
}

impl<'o> Outside<'o> {
    /// Starts the file's program; `None` where it has none.
    pub(crate) fn begin(
        optimizers: &'o dyn Optimizers,
        plan: &Plan,
        search: &SearchPlan<'_>,
    ) -> Result<Option<Outside<'o>>, LabError> {
        let part = plan.file.search.as_ref();
        let Some(command) = part.and_then(|part| part.optimizer.as_ref()) else {
            return Ok(None);
        };
        let mut program = optimizers.begin(command)?;
        program.tell(&line(&search.opening())?)?;
        Ok(Some(Outside { program, known: 0 }))
    }

    /// What it chooses after these trials.
    ///
    /// # Errors
    ///
    /// It answers nothing that can be tried.
    pub(crate) fn next(
        &mut self,
        search: &SearchPlan<'_>,
        tried: &Tried,
        block: u32,
    ) -> Result<Next, LabError> {
        for (trial, (figure, _)) in tried.trials.iter().zip(&tried.figures).skip(self.known) {
            let tell = Message::Tell {
                levels: search.named(&trial.point),
                figure: *figure,
                value: trial.value,
                holds: trial.holds,
                ended_by_guard: trial.ended_by_guard,
                block: trial.block,
            };
            if !self.program.tell(&line(&tell)?)? {
                return Ok(Next::Stopped);
            }
            self.known += 1;
        }
        let (mut refused, mut known) = (String::new(), 0);
        for _ in 0..REFUSALS_MAX {
            let ask = Message::Ask {
                trial: tried.count + 1,
                block,
            };
            let Some(answer) = self.program.ask(&line(&ask)?)? else {
                return Ok(Next::Stopped);
            };
            let chosen = Chosen::parse(&answer).map_err(|error| {
                let answer: String = answer.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS).collect();
                LabError::Optimizer(format!(
                    "expected a line as {{\"levels\": {{\"factor\": \"level\"}}}}, and it is {answer}: {error}"
                ))
            })?;
            let possible = search.chosen(&chosen.levels).and_then(|point| {
                let before: Vec<&SearchTrial> =
                    tried.trials.iter().filter(|trial| trial.point == point).collect();
                if before.iter().any(|trial| trial.ended_by_guard) {
                    Err(GUARDED.to_owned())
                } else if before.iter().any(|trial| trial.block == block) {
                    Err(REPEATED.to_owned())
                } else {
                    Ok(point)
                }
            });
            match possible {
                Ok(point) => {
                    let why = chosen.why.unwrap_or_else(|| "chosen by the optimizer".to_owned());
                    return Ok(Next::Try(point, why));
                }
                Err(why) => {
                    let refuse = Message::Refuse {
                        levels: &chosen.levels,
                        why: &why,
                    };
                    if !self.program.tell(&line(&refuse)?)? {
                        return Ok(Next::Stopped);
                    }
                    known += u32::from(why == REPEATED || why == GUARDED);
                    refused = why;
                }
            }
        }
        // It has nothing new. Now and then one that is impossible may be among them.
        if known * 2 >= REFUSALS_MAX {
            return Ok(Next::Nothing);
        }
        Err(LabError::Optimizer(format!(
            "none of {REFUSALS_MAX} choices could be tried, the last because {refused}"
        )))
    }
}

fn line(message: &impl Serialize) -> Result<String, LabError> {
    serde_json::to_string(message).map_err(|error| LabError::Optimizer(error.to_string()))
}
