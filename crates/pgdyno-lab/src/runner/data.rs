//! Data of treatments: made once, and brought to the same state before each trial.

use super::{Event, Runner, Running};
use crate::error::LabError;
use crate::file::Reset;
use crate::foreign::ProgramData;
use crate::plan::{DataKey, Plan, ServerVariant, Treatment, data_of, listed};
use crate::ports::{Present, TrialTarget};
use pgdyno_workload::DataPlan;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

/// Server variants and data that this run has made, and no load has used.
pub(super) type Untouched = BTreeSet<(ServerVariant, String)>;

impl Runner<'_, '_> {
    /// Makes the data if it is missing; whether it was.
    pub(super) fn ensure_data(
        &mut self,
        plan: &Plan,
        target: &mut dyn TrialTarget,
        data: &DataKey,
    ) -> Result<bool, LabError> {
        let database = plan.database_of(data);
        let is_sandbox = target.is_sandbox();
        if let Some(name) = &database {
            if !is_sandbox && !self.consent.data {
                return Err(LabError::DataNotAgreed {
                    objects: format!("the database {name}: {}", listed(&data.plan())),
                });
            }
            target.make_database(name)?;
        }
        let wanted = data.plan();
        // What is here without its template was made by an experiment that left it as its loads
        // did.
        let may_be_used = match &database {
            Some(name) if plan.uses_template() => !target.has_template(name)?,
            _ => false,
        };
        let is_made = match target.present(database.as_deref(), data.dataset)? {
            // How full its pages were made is unknown of data that exists.
            Present::There(shape)
                if shape.is_of(&wanted)
                    && !may_be_used
                    && (database.is_some() || data.fillfactor.is_none()) =>
            {
                false
            }
            Present::There(shape) if !is_sandbox && database.is_none() => {
                return Err(LabError::OtherData {
                    dataset: data.dataset.name(),
                    there: shape.text(),
                    wanted: wanted.scale_text(),
                });
            }
            Present::Missing if !is_sandbox && !self.consent.data => {
                return Err(LabError::DataNotAgreed {
                    objects: listed(&wanted),
                });
            }
            Present::Missing | Present::There(_) => {
                // A database of its own is dropped as a whole.
                let is_marked = !is_sandbox && database.is_none();
                self.create(target, database.as_deref(), &wanted, is_marked)?;
                true
            }
        };
        if let Some(name) = database.filter(|_| plan.uses_template()) {
            target.keep_template(&name)?;
        }
        Ok(is_made)
    }

    fn create(
        &mut self,
        target: &mut dyn TrialTarget,
        database: Option<&str>,
        plan: &DataPlan,
        is_marked: bool,
    ) -> Result<(), LabError> {
        let (stop, on_event) = (self.stop, &mut *self.on_event);
        target.create(database, plan, is_marked, &mut |progress| {
            on_event(Event::Data(progress));
            !stop.load(Ordering::Relaxed)
        })
    }

    /// Makes the data of the tested treatments that are here, and returns what was missing before;
    /// other servers get theirs when it is their turn.
    pub(super) fn ensure_data_here(
        &mut self,
        plan: &Plan,
        target: &mut dyn TrialTarget,
        here: &ServerVariant,
    ) -> Result<Untouched, LabError> {
        let mut made = Untouched::new();
        for data in plan.data(|treatment| treatment.variant() == *here) {
            let made_now = self.ensure_data(plan, target, &data);
            let named = |error| match plan.reader_of(&data) {
                Some(treatment) if data.sql.is_some() => LabError::DataOf {
                    treatment: treatment.name.clone(),
                    source: Box::new(error),
                },
                _ => error,
            };
            if made_now.map_err(named)? {
                made.insert((here.clone(), data.name()));
            }
        }
        Ok(made)
    }
}

impl Running<'_, '_, '_> {
    /// Makes data that is missing and brings it to the state that a trial of the treatment begins
    /// with, on each of its servers.
    pub(super) fn bring_data(&mut self, treatment: &Treatment) -> Result<(), LabError> {
        if let Some(data) = data_of(treatment) {
            return (0..self.at.len()).try_for_each(|number| self.bring_data_to(number, treatment, &data));
        }
        match (self.data_of_program(treatment), self.at.first_mut()) {
            (Some(data), Some(at)) => at.target.bring_of_program(&data, treatment, &self.files),
            _ => Ok(()),
        }
    }

    /// On a server that is not a sandbox, a program's data is the user's own matter.
    fn data_of_program(&self, treatment: &Treatment) -> Option<ProgramData> {
        let is_sandbox = self.at.first().is_some_and(|at| at.target.is_sandbox());
        ProgramData::of(treatment).filter(|_| is_sandbox)
    }

    /// The database of a treatment's load, where it is not the target's own.
    pub(super) fn database_of(&self, treatment: &Treatment) -> Option<String> {
        match data_of(treatment) {
            Some(data) => self.plan.database_of(&data),
            None => Some(self.data_of_program(treatment)?.database()),
        }
    }

    pub(super) fn bring_data_to(
        &mut self,
        number: usize,
        treatment: &Treatment,
        data: &DataKey,
    ) -> Result<(), LabError> {
        let at = &mut self.at[number];
        let key = (at.variant.clone(), data.name());
        let variant = match at.variant.is_target() {
            true => "target".to_owned(),
            false => at.variant.label(),
        };
        let files = format!("{}-{variant}-{}", self.files, data.name());
        let mut is_untouched = self.untouched.remove(&key);
        let mut is_saved_now = false;
        if !self.whole.contains(&key) {
            if !is_untouched {
                is_untouched = self.runner.ensure_data(self.plan, &mut *at.target, data)?;
            }
            // Before any load runs on it, whatever the treatments that come first want.
            if self.plan.copies_files(&at.variant, data) && !at.target.has_files(&files)? {
                // Where they were removed, because the experiment seemed to be over, its loads have
                // changed the data.
                if self.has_trials && !is_untouched {
                    let database = self.plan.database_of(data);
                    let plan = data.plan();
                    self.runner
                        .create(&mut *at.target, database.as_deref(), &plan, false)?;
                    is_untouched = true;
                }
                at.target.save_files(&files)?;
                is_saved_now = true;
            }
            // Only what was made to its end: the next trial tries again.
            self.whole.insert(key.clone());
        }
        let database = self.plan.database_of(data);
        let database = database.as_deref();
        match treatment.data.reset.unwrap_or_default() {
            Reset::None => Ok(()),
            Reset::Recreate if is_untouched => Ok(()),
            Reset::Recreate => self.runner.create(&mut *at.target, database, &data.plan(), false),
            Reset::Template => match database {
                Some(name) => at.target.renew_from_template(name),
                None => Ok(()),
            },
            Reset::Vacuum => at.target.vacuum(database),
            Reset::Copy if is_saved_now => Ok(()),
            Reset::Copy => {
                // Other data is as it was when these files were saved, or missing.
                self.whole.retain(|other| other.0 != key.0 || *other == key);
                self.untouched.retain(|other| other.0 != key.0);
                at.target.restore_files(&files)
            }
        }
    }
}
