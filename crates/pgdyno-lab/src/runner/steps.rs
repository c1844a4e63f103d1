//! A trial in its steps: data, settings, caches, load, cross-check, crash.

use super::during::Events;
use super::guard::Guard;
use super::{Event, Running};
use crate::error::LabError;
use crate::file::{Prewarm, RestartPolicy};
use crate::measurement::Measurement;
use crate::plan::{ServerVariant, Treatment};
use crate::ports::{Drive, Meanwhile};
use crate::trial::{empty_record, failed, figures, filled, not_taken, seed_of_trial, take_in};
use pgdyno_engine::Second;
use pgdyno_knobs::{Agreed, ConsentError, Kind, OneOf, Restart, Setting};
use pgdyno_record::{SeriesRecord, TrialRecord};

/// A trial as it is stored.
type Done = (TrialRecord, SeriesRecord);
/// A treatment, with its number where the plan has it.
type Numbered<'t> = (Option<usize>, &'t Treatment);
/// What a load has measured, and why a guard has ended it, if one has; `None` where somebody asked
/// to stop.
type Driven = Option<(Measurement, Option<String>)>;

impl Running<'_, '_, '_> {
    /// One trial with what was recorded beside it; `None` when it was stopped, for half a trial is
    /// none.
    pub(super) fn trial(
        &mut self,
        (number, treatment): Numbered<'_>,
        block: u32,
        position: u32,
    ) -> Option<Done> {
        let mut record = empty_record(block, position, treatment, self.runner.clock.unix_ms());
        let done = match self.steps(treatment, &mut record) {
            Ok(Some((measurement, guard))) => {
                Some(self.close((number, treatment), record, measurement, guard))
            }
            Ok(None) => None,
            Err(error) => Some((failed(record, error.to_string()), SeriesRecord::default())),
        };
        // What goes wrong because somebody asked to stop is not a result.
        done.filter(|_| !self.is_stopped())
    }

    /// Everything up to the end of the load; an error is the reason why the trial failed.
    fn steps(&mut self, treatment: &Treatment, record: &mut TrialRecord) -> Result<Driven, LabError> {
        let database = self.ready(treatment, record)?;
        let seed = seed_of_trial(self.plan.seed, record.block, record.position);
        self.drive(treatment, database.as_deref(), seed)
    }

    /// Everything up to the begin of a treatment's load; the database that the load is for, where
    /// that is not the target's.
    pub(super) fn ready(
        &mut self,
        treatment: &Treatment,
        record: &mut TrialRecord,
    ) -> Result<Option<String>, LabError> {
        let variants = treatment.variants();
        let gone = self.go_to(&variants);
        // Of several servers the first may be reached and another one not.
        let first = self.at.first().map(|at| &at.variant);
        let own = first.filter(|variant| !variant.is_target());
        record.server_variant = own.map(ServerVariant::label);
        gone?;
        // One may have died in the trial before, and data is brought by asking it.
        self.at.iter_mut().try_for_each(|at| at.target.ensure_running())?;
        self.bring_data(treatment)?;
        self.apply(treatment, record)?;
        let database = self.database_of(treatment);
        for at in &mut self.at {
            at.target.prewarm(treatment, database.as_deref())?;
            if self.plan.file.target.checkpoints() {
                at.target.checkpoint(database.as_deref())?;
            }
        }
        Ok(database)
    }

    fn apply(&mut self, treatment: &Treatment, record: &mut TrialRecord) -> Result<(), LabError> {
        let restart = self.restart_before(treatment);
        // A pool of huge pages is sized with the first server, while the others hold nothing of it.
        if restart != Restart::WhenNeeded || self.has_pool() {
            self.at.iter_mut().skip(1).try_for_each(|at| at.target.stop())?;
        }
        for number in 0..self.at.len() {
            let agreed = self.agreed(treatment, number)?;
            let at = &mut self.at[number];
            at.target.ensure_running()?;
            let applied = at.target.apply(&agreed, restart)?;
            match number {
                0 => take_in(applied, record)?,
                _ => not_taken(applied)?,
            }
        }
        Ok(())
    }

    /// Whether its server is restarted before a trial.
    pub(super) fn restart_before(&self, treatment: &Treatment) -> Restart {
        match (treatment.data.prewarm, self.plan.file.target.restarts()) {
            (Some(Prewarm::Cold), _) => Restart::Cold,
            (_, RestartPolicy::Always) => Restart::Always,
            (_, RestartPolicy::WhenNeeded) => Restart::WhenNeeded,
        }
    }

    /// Whether a pool of huge pages is sized by what servers need.
    fn has_pool(&self) -> bool {
        let is_pool = |setting: &Setting| {
            let knob = self.runner.catalogue.find(&setting.knob);
            knob.is_some_and(|knob| knob.kind == Kind::HugepagePool)
        };
        self.plan.settings().any(|setting| is_pool(&setting))
    }

    /// The settings of a treatment for one of its servers, as far as the user has agreed to them;
    /// those of the host are with the first.
    pub(super) fn agreed(
        &self,
        treatment: &Treatment,
        number: usize,
    ) -> Result<Vec<Agreed<Setting>>, LabError> {
        let (catalogue, accepted) = (self.runner.catalogue, &self.runner.consent.durability);
        let server = OneOf {
            number: u32::try_from(number).unwrap_or(u32::MAX).saturating_add(1),
            of: treatment.servers(),
        };
        let mut all = Vec::new();
        for setting in &treatment.settings {
            let knob = catalogue.get(&setting.knob).map_err(ConsentError::from)?;
            if number == 0 || knob.is_of_each_server() {
                let value = knob.value_for(&setting.value, server);
                let knob = setting.knob.clone();
                all.push(catalogue.agree(&Setting { knob, value }, accepted)?);
            }
        }
        Ok(all)
    }

    fn drive(
        &mut self,
        treatment: &Treatment,
        database: Option<&str>,
        seed: u64,
    ) -> Result<Driven, LabError> {
        let plan = self.plan;
        let beside = self.at.iter_mut().skip(1).map(|at| at.target.beside(database));
        let drive = Drive {
            beside: beside.collect::<Result<_, _>>()?,
            treatment,
            database,
            guard: &plan.file.guard,
            seed,
            files: &self.files,
            #[expect(clippy::cast_possible_truncation, reason = "a few events")]
            changes: plan.file.event.len() as u32,
            events: &plan.file.event,
            turns: None,
        };
        let agreed = (self.runner.catalogue, &self.runner.consent.durability[..]);
        let mut events = Events::new(&plan.file.event, treatment, agreed, self.runner.clock);
        let mut trouble = None;
        let (mut guard, mut guarded) = (Guard::new(&plan.file.guard), None);
        let pace_tps = self.paces.tps(plan, treatment);
        let Some(at) = self.at.first_mut() else {
            return Err(LabError::NoServer);
        };
        let (stop, on_event) = (self.runner.stop, &mut *self.runner.on_event);
        let driven = at.target.drive(
            &drive,
            stop,
            &mut |second: &Second, server: &mut dyn Meanwhile| {
                on_event(Event::Second(second));
                if trouble.is_none() {
                    trouble = events.after(second, server).err();
                }
                guarded = guarded
                    .take()
                    .or_else(|| guard.second(&second.figures(), pace_tps));
                guarded.is_none() && trouble.is_none()
            },
        )?;
        if let Some(error) = trouble {
            return Err(error);
        }
        let guarded = guarded.or(driven.shortage);
        let mut measurement = driven.measurement;
        measurement.events = events.done;
        let stopped = measurement.load.stopped_early && guarded.is_none() && !driven.is_enough;
        Ok((!stopped).then_some((measurement, guarded)))
    }

    /// The record of a load that was driven, and the recovery time of a crash after it.
    fn close(
        &mut self,
        (number, treatment): Numbered<'_>,
        record: TrialRecord,
        measurement: Measurement,
        guard: Option<String>,
    ) -> Done {
        let mut record = filled(record, &measurement);
        record
            .figures
            .extend(figures(&self.plan.file.figure, &measurement));
        for (name, asked) in self.asked(treatment) {
            match asked {
                Ok(value) => {
                    record.figures.insert(name, value);
                }
                Err(error) => record.disturbances.push(format!("no figure {name}: {error}")),
            }
        }
        for warning in &measurement.warnings {
            (self.runner.on_event)(Event::TrialWarns { treatment, warning });
        }
        if let Some(reason) = guard {
            return (
                self.guarded((number, treatment), record, &reason),
                measurement.series,
            );
        }
        if treatment.load.crash == Some(true) && record.reason.is_none() {
            match self.target().and_then(|target| target.crash()) {
                Ok(recovery_s) => {
                    record.figures.insert("recovery_s".to_owned(), recovery_s);
                }
                Err(error) => return (failed(record, error.to_string()), measurement.series),
            }
        }
        (record, measurement.series)
    }

    /// The record of a trial that a guard has ended, and with it its treatment.
    pub(super) fn guarded(
        &mut self,
        (number, treatment): Numbered<'_>,
        record: TrialRecord,
        reason: &str,
    ) -> TrialRecord {
        let reason = format!("guard: {reason}");
        (self.runner.on_event)(Event::GuardActs {
            treatment,
            reason: &reason,
            lost: number.map_or(0, |_| self.plan.file.blocks.saturating_sub(record.block)),
        });
        if let Some(number) = number {
            self.ended.insert(number, record.block);
        }
        TrialRecord {
            ended_by_guard: true,
            ..failed(record, reason)
        }
    }

    /// Figures that are asked from the server, or why there is none.
    fn asked(&mut self, treatment: &Treatment) -> Vec<(String, Result<f64, LabError>)> {
        let plan = self.plan;
        let database = self.database_of(treatment);
        let figures = plan.file.figure.iter();
        figures
            .filter_map(|figure| {
                let sql = figure.sql.as_ref()?;
                let asked = self
                    .target()
                    .and_then(|target| target.figure(database.as_deref(), sql));
                Some((figure.name.clone(), asked))
            })
            .collect()
    }
}
