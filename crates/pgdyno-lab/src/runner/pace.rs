//! When trials may begin: hours of the day, and what the experiment may cost.

use super::switched::CHANGE_MAX_S;
use super::{Event, Running};
use crate::error::LabError;
use crate::file::Slices;
use crate::plan::BESIDE_S;
use pgdyno_engine::duration;
use std::time::Duration;

/// The clock is read again after this long: it may have been set, and the user may want to stop.
const LOOK: Duration = Duration::from_millis(500);
const SECONDS_OF_MINUTE: u32 = 60;
const MINUTES_OF_HOUR: u32 = 60;
const MINUTES_OF_DAY: u32 = 24 * MINUTES_OF_HOUR;

impl Running<'_, '_, '_> {
    /// Waits for the hours that the file allows, with time for a load of so many trials; false when
    /// somebody asked to stop. The wall clock is read again each time, so that one that jumps is
    /// followed and never waited on for longer than it says.
    pub(super) fn wait_for_window(&mut self, trials: u32) -> Result<bool, LabError> {
        let mut shown = None;
        loop {
            if self.is_stopped() {
                return Ok(false);
            }
            let Some((from, to)) = self.window() else {
                return Ok(true);
            };
            let now = self.runner.clock.minute_of_day();
            // A load that is longer than the window begins with it.
            let needed_s = self.load_s(trials).min(seconds_left(from, to, from));
            if minutes_until(from, to, now) == 0 && seconds_left(from, to, now) >= needed_s {
                return Ok(true);
            }
            let minutes = until(from, now);
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

    /// Blocks of so many trials that one load can have within the hours that the file allows, and
    /// one at least.
    pub(super) fn blocks_in_window(&self, trials_of_block: u32) -> u32 {
        let Some((from, to)) = self.window() else {
            return u32::MAX;
        };
        let left_s = seconds_left(from, to, self.runner.clock.minute_of_day());
        let (first_s, two_s) = (self.load_s(trials_of_block), self.load_s(2 * trials_of_block));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number of blocks, cut off where it is large, and 0 where it is below"
        )]
        let further = ((left_s - first_s) / (two_s - first_s)) as u32;
        further.saturating_add(1)
    }

    /// The ends of the window in minutes since midnight; `None` without one.
    fn window(&self) -> Option<(u32, u32)> {
        self.plan.file.window.as_ref()?.minutes()
    }

    /// Seconds of a trial, the mean of those so far, and its load's at least.
    fn trial_s(&self) -> f64 {
        let mean = self.spent / self.looks.trials().max(1);
        mean.as_secs_f64().max(self.plan.trial_s())
    }

    /// Seconds that one load of so many trials may take, with what is beside it.
    fn load_s(&self, trials: u32) -> f64 {
        let file = &self.plan.file;
        let (changes_s, warmup_s) = match Slices::of(file) {
            Some(slices) => (
                f64::from(slices.rounds) * CHANGE_MAX_S,
                file.load.warmup_s.unwrap_or(0.0),
            ),
            None => (0.0, 0.0),
        };
        f64::from(trials.max(1)) * (self.trial_s() + changes_s) + warmup_s + BESIDE_S
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
            let block_s = self.trial_s() * f64::from(trials_of_block.max(1));
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
        false => until(from, now),
    }
}

/// Minutes from now until this one of the day comes again.
fn until(minute: u32, now: u32) -> u32 {
    (minute + MINUTES_OF_DAY - now) % MINUTES_OF_DAY
}

/// Seconds that are left of the window, inside of it; the minute that has begun does not count.
fn seconds_left(from: u32, to: u32, now: u32) -> f64 {
    let minutes = match minutes_until(from, to, now) {
        0 => until(to, now).saturating_sub(1),
        _ => 0,
    };
    f64::from(minutes * SECONDS_OF_MINUTE)
}

#[cfg(test)]
mod tests {
    use super::{minutes_until, seconds_left};
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

    #[test]
    fn a_load_has_the_whole_minutes_that_are_left_of_a_window() {
        let check = |now: u32, expected: f64| {
            let left_s = seconds_left(60, 300, now);
            assert!((left_s - expected).abs() < 1e-9, "{now}: {left_s}");
        };
        check(299, 0.0);
        check(298, 60.0);
        check(60, 239.0 * 60.0);
        check(300, 0.0);
        check(59, 0.0);
        assert!((seconds_left(1_320, 360, 1_439) - 360.0 * 60.0).abs() < 1e-9);
    }
}
