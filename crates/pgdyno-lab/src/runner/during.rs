//! What is done to the server while a load runs.

use crate::error::LabError;
use crate::file::{EventPart, ServerPart, settings_of};
use crate::plan::{Treatment, lay_over};
use crate::ports::{Clock, Meanwhile};
use crate::trial::{empty_record, take_in};
use pgdyno_engine::Second;
use pgdyno_knobs::{Agreed, Catalogue, Restart, Setting};
use pgdyno_record::EventRecord;

/// The events of a load, as its seconds pass.
pub(super) struct Events<'x> {
    coming: std::slice::Iter<'x, EventPart>,
    next: Option<&'x EventPart>,
    catalogue: &'x Catalogue,
    /// Knobs whose trade of durability somebody has agreed to.
    accepted: &'x [String],
    clock: &'x dyn Clock,
    treatment: &'x Treatment,
    /// Settings of the treatment, and of the events so far over them.
    settings: Vec<Setting>,
    /// Seconds of the load, and of its measured time.
    elapsed_s: f64,
    measured_s: f64,
    pub(super) done: Vec<EventRecord>,
}

impl<'x> Events<'x> {
    pub(super) fn new(
        events: &'x [EventPart],
        treatment: &'x Treatment,
        (catalogue, accepted): (&'x Catalogue, &'x [String]),
        clock: &'x dyn Clock,
    ) -> Events<'x> {
        let mut coming = events.iter();
        Events {
            next: coming.next(),
            coming,
            catalogue,
            accepted,
            clock,
            treatment,
            settings: treatment.settings.clone(),
            elapsed_s: 0.0,
            measured_s: 0.0,
            done: Vec::new(),
        }
    }

    /// After a second of the load: does what is due.
    pub(super) fn after(&mut self, second: &Second, server: &mut dyn Meanwhile) -> Result<(), LabError> {
        self.elapsed_s += second.length_s;
        if second.measured {
            self.measured_s += second.length_s;
        }
        // Seconds are not of exactly that length.
        const NEARLY_S: f64 = 0.05;
        while let Some(event) = self
            .next
            .filter(|event| self.measured_s + NEARLY_S >= event.at_s())
        {
            let begun = self.clock.now();
            self.happen(event, server)?;
            self.done.push(EventRecord {
                title: event.titled(),
                t_s: self.elapsed_s,
                took_s: self.clock.now().saturating_sub(begun).as_secs_f64(),
            });
            self.next = self.coming.next();
        }
        Ok(())
    }

    fn happen(&mut self, event: &EventPart, server: &mut dyn Meanwhile) -> Result<(), LabError> {
        if event.kill {
            server.kill()?;
        }
        if event.neighbour.is_some() {
            server.start_neighbour(&ServerPart {
                neighbour: event.neighbour.clone(),
                neighbour_memory: event.neighbour_memory.clone(),
                ..ServerPart::default()
            })?;
        }
        if event.settings.is_empty() {
            return Ok(());
        }
        lay_over(&mut self.settings, &settings_of(&event.settings));
        let agreed = self
            .settings
            .iter()
            .map(|setting| self.catalogue.agree(setting, self.accepted));
        let agreed: Vec<Agreed<Setting>> = agreed.collect::<Result<_, _>>()?;
        let applied = server.apply(&agreed, Restart::WhenNeeded)?;
        // What took effect before the load is in the trial's record.
        take_in(applied, &mut empty_record(0, 0, self.treatment, 0))
    }
}
