//! When trials may begin: hours of the day, and what the experiment may cost.

use super::{Event, Running};
use crate::error::LabError;
use pgdyno_engine::duration;
use std::time::Duration;

/// The clock is read again after this long: it may have been set, and the user may want to stop.
const LOOK: Duration = Duration::from_millis(500);
const MINUTES_OF_HOUR: u32 = 60;
const MINUTES_OF_DAY: u32 = 24 * MINUTES_OF_HOUR;

impl Running<'_, '_, '_> {
    /// Waits for the hours that the file allows; false when somebody asked to stop. The wall clock
    /// is read again each time, so that one that jumps is followed and never waited on for longer
    /// than it says.
    pub(super) fn wait_for_window(&mut self) -> Result<bool, LabError> {
        let mut shown = None;
        loop {
            if self.is_stopped() {
                return Ok(false);
            }
            let Some(window) = &self.plan.file.window else {
                return Ok(true);
            };
            let Some((from, to)) = window.minutes() else {
                return Ok(true);
            };
            let minutes = minutes_until(from, to, self.runner.clock.minute_of_day());
            if minutes == 0 {
                return Ok(true);
            }
            if shown.is_none() {
                // What was changed is not left changed for hours.
                self.leave()?;
            }
            // Once, and then each hour.
            if shown.is_none_or(|shown| minutes.abs_diff(shown) >= MINUTES_OF_HOUR) {
                shown = Some(minutes);
                (self.runner.on_event)(Event::Waiting { minutes });
            }
            self.runner.clock.pause(LOOK);
        }
    }

    /// Why no further trial is begun, if so: the next one would go beyond the budget.
    pub(super) fn budget_is_spent(&self) -> Option<&'static str> {
        self.blocks_in_budget(1).err()
    }

    /// What is left of the budget of time; `None` without one.
    pub(super) fn time_left(&self) -> Option<Duration> {
        let limit = self.plan.file.budget.time.as_deref()?;
        Some(duration(limit).ok()?.saturating_sub(self.spent))
    }

    /// Blocks of so many trials that the budget has room for, or why it has room for none.
    pub(super) fn blocks_in_budget(&self, trials_of_block: u32) -> Result<u32, &'static str> {
        let budget = &self.plan.file.budget;
        let mut blocks = u32::MAX;
        if let Some(most) = budget.trials {
            blocks = most.saturating_sub(self.looks.trials()) / trials_of_block.max(1);
            if blocks == 0 {
                return Err("the budget of trials is spent");
            }
        }
        if let Some(left) = self.time_left() {
            let trials = self.looks.trials().max(1);
            let trial = (self.spent / trials).max(Duration::from_secs_f64(self.plan.trial_s()));
            let block_s = trial.as_secs_f64() * f64::from(trials_of_block.max(1));
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a number of blocks, cut off where it is large"
            )]
            let affordable = (left.as_secs_f64() / block_s) as u32;
            if affordable == 0 {
                return Err("the budget of time is spent");
            }
            blocks = blocks.min(affordable);
        }
        Ok(blocks)
    }
}

/// Minutes until the window opens; 0 inside of it.
fn minutes_until(from: u32, to: u32, now: u32) -> u32 {
    let inside = match from <= to {
        true => (from..to).contains(&now),
        false => now >= from || now < to,
    };
    match inside {
        true => 0,
        false => (from + MINUTES_OF_DAY - now) % MINUTES_OF_DAY,
    }
}

#[cfg(test)]
mod tests {
    use super::minutes_until;
    use crate::file::WindowPart;

    #[test]
    fn a_window_over_midnight_is_one_window() {
        let check = |from: &str, to: &str, now: &str, expected| {
            let minutes = |from: &str, to: &str| {
                let (from, to) = (from.to_owned(), to.to_owned());
                WindowPart { from, to }.minutes().unwrap()
            };
            let ((from, to), (now, _)) = (minutes(from, to), minutes(now, now));
            assert_eq!(minutes_until(from, to, now), expected, "{now}");
        };
        check("22:00", "06:00", "23:59", 0);
        check("22:00", "06:00", "00:00", 0);
        check("22:00", "06:00", "05:59", 0);
        check("22:00", "06:00", "06:00", 16 * 60);
        check("22:00", "06:00", "21:30", 30);
        check("08:00", "12:00", "12:00", 20 * 60);
        check("08:00", "12:00", "07:59", 1);
    }
}
