//! Blocks in which the treatments' servers run side by side and take turns within one load.

use super::{At, Done, Event, Running, names_of};
use crate::error::LabError;
use crate::plan::{ServerVariant, Treatment, data_of};
use crate::ports::{Drive, Driven, InTurns};
use crate::trial::{empty_record, failed, seed_of_trial, take_in};
use crate::turns::of_server;
use pgdyno_record::{SeriesRecord, TrialRecord};
use std::time::Duration;

/// A trial whose server is ready.
struct Ready {
    number: usize,
    record: TrialRecord,
    /// Its server among those where we are.
    place: usize,
    database: Option<String>,
}

/// The trials of a block, as they are stored.
type Block = Vec<(TrialRecord, SeriesRecord)>;

impl<'s> Running<'_, '_, 's> {
    /// Runs the blocks that are not stored yet. Returns whether all is done, or somebody asked to
    /// stop.
    pub(super) fn in_turns(&mut self, slice: Duration, done: &mut Done) -> Result<bool, LabError> {
        let plan = self.plan;
        for block in 1..=plan.file.blocks {
            self.renew_instances(block, done)?;
            // Shown where it is so; what is missing is without them.
            self.needless(block);
            let missing = self.missing(block, done);
            if !missing.is_empty() {
                let many = u32::try_from(missing.len()).unwrap_or(u32::MAX);
                if !self.wait_for_window(many)? {
                    return Ok(false);
                }
                if let Err(reason) = self.blocks_in_budget(many) {
                    self.ends_early(reason, block - 1);
                    return Ok(true);
                }
                // A load is long, and a window may be: others would take the experiment for killed.
                self.runner.results.keep()?;
                let begun = self.runner.clock.now();
                let mut trials = self.block_in_turns(slice, block, &missing);
                self.spend(begun, trials.iter_mut().flatten().map(|(record, _)| record));
                // Half a load is none.
                let Some(trials) = trials.filter(|_| !self.is_stopped()) else {
                    return Ok(false);
                };
                self.store(&trials)?;
                done.extend(names_of(&trials));
            }
            if self.is_decided(block) {
                self.ends_early("every comparison is decided", block);
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// The trials of a block; `None` where somebody asked to stop.
    fn block_in_turns(&mut self, slice: Duration, block: u32, missing: &[usize]) -> Option<Block> {
        let plan = self.plan;
        let (mut ready, mut ended): (Vec<Ready>, Block) = (Vec::new(), Vec::new());
        let left = self.leave_others(missing);
        for &number in missing {
            let treatment = &plan.treatments[number];
            let position = plan.position_in_block(block, number);
            let mut record = empty_record(block, position, treatment, self.runner.clock.unix_ms());
            (self.runner.on_event)(Event::TrialBegins { treatment, block });
            let at = match &left {
                Ok(()) => self.ready_in_turn(treatment, &mut record),
                Err(error) => Err(LabError::Unready(error.to_string())),
            };
            match at {
                Ok((place, database)) => ready.push(Ready {
                    number,
                    record,
                    place,
                    database,
                }),
                Err(error) => ended.push((failed(record, error.to_string()), SeriesRecord::default())),
            }
            if self.is_stopped() {
                return None;
            }
        }
        let clients = plan.file.load.clients.unwrap_or(1);
        while !ready.is_empty() {
            let (measurement, shortage) = match self.drive_in_turns(slice, &ready) {
                Ok(driven) => (driven.measurement, driven.shortage),
                Err(error) => {
                    // The others have their load without the one that cannot be driven.
                    let its_own = error
                        .server()
                        .filter(|place| *place < ready.len() && ready.len() > 1);
                    let failing = match its_own {
                        Some(place) => vec![ready.remove(place)],
                        None => std::mem::take(&mut ready),
                    };
                    let reason = error.to_string();
                    let of = |one: Ready| (failed(one.record, reason.clone()), SeriesRecord::default());
                    ended.extend(failing.into_iter().map(of));
                    continue;
                }
            };
            if measurement.load.stopped_early && shortage.is_none() {
                return None;
            }
            for (i, Ready { number, record, .. }) in std::mem::take(&mut ready).into_iter().enumerate() {
                let measured = of_server(&measurement, i, (slice, clients));
                let record = self.record_of(number, record, &measured);
                // The host is short of something for all of them: none is ended for that.
                let record = match &shortage {
                    Some(reason) => failed(record, reason.clone()),
                    None => record,
                };
                ended.push((record, measured.series));
            }
        }
        Some(ended)
    }

    /// Restores what was changed on servers that these treatments do not have.
    fn leave_others(&mut self, missing: &[usize]) -> Result<(), LabError> {
        let wanted: Vec<ServerVariant> = missing
            .iter()
            .map(|&i| self.plan.treatments[i].variant())
            .collect();
        let mut left = Ok(());
        for place in (0..self.at.len()).rev() {
            if !wanted.contains(&self.at[place].variant) {
                let at = self.at.remove(place);
                left = left.and(self.leave_one(at));
            }
        }
        left
    }

    /// Everything up to the begin of the load on the server of one treatment: where it is among
    /// those where we are, and the database of its load, where that is not the target's.
    fn ready_in_turn(
        &mut self,
        treatment: &Treatment,
        record: &mut TrialRecord,
    ) -> Result<(usize, Option<String>), LabError> {
        let variant = treatment.variant();
        record.server_variant = (!variant.is_target()).then(|| variant.label());
        let place = match self.at.iter().position(|at| at.variant == variant) {
            Some(place) => place,
            None => {
                let target = self.runner.target(&variant, self.plan, Some(self.id))?;
                self.at.push(At { variant, target });
                self.at.len() - 1
            }
        };
        self.at[place].target.ensure_running()?;
        let data = data_of(treatment);
        if let Some(data) = &data {
            self.bring_data_to(place, treatment, data)?;
        }
        let (settings, restart) = (self.agreed(treatment, 0)?, self.restart_before(treatment));
        let database = data.and_then(|data| self.plan.database_of(&data));
        let target = &mut self.at[place].target;
        take_in(target.apply(&settings, restart)?, record)?;
        target.prewarm(treatment, database.as_deref())?;
        target.checkpoint(database.as_deref())?;
        Ok((place, database))
    }

    /// One load of these trials.
    fn drive_in_turns(&mut self, slice: Duration, ready: &[Ready]) -> Result<Driven, LabError> {
        let plan = self.plan;
        let [first, others @ ..] = ready else {
            return Err(LabError::NoServer);
        };
        let beside = others
            .iter()
            .map(|one| self.at[one.place].target.beside(one.database.as_deref()));
        let beside = beside.collect::<Result<_, _>>()?;
        let of = |one: &Ready| (&plan.treatments[one.number], one.database.clone());
        let drive = Drive {
            treatment: &plan.treatments[first.number],
            database: first.database.as_deref(),
            guard: &plan.file.guard,
            seed: seed_of_trial(plan.seed, first.record.block, first.record.position),
            files: &self.files,
            changes: 0,
            events: &[],
            beside,
            turns: Some(InTurns {
                slice,
                treatments: ready.iter().map(of).collect(),
            }),
        };
        let (stop, on_event) = (self.runner.stop, &mut *self.runner.on_event);
        self.at[first.place].target.drive(&drive, stop, &mut |second, _| {
            on_event(Event::Second(second));
            true
        })
    }
}
