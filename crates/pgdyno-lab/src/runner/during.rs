//! What is done to the server while a load runs.

use crate::error::LabError;
use crate::file::{EventPart, ServerPart, settings_of};
use crate::plan::{Treatment, lay_over};
use crate::ports::{Clock, Meanwhile};
use crate::trial::not_taken;
use pgdyno_engine::Second;
use pgdyno_knobs::{Agreed, Catalogue, Restart, Setting};
use pgdyno_record::EventRecord;
use std::time::Duration;

/// The events of a load, as its seconds pass.
pub(super) struct Events<'x> {
    coming: std::slice::Iter<'x, EventPart>,
    next: Option<&'x EventPart>,
    catalogue: &'x Catalogue,
    /// Knobs whose trade of durability somebody has agreed to.
    accepted: &'x [String],
    clock: &'x dyn Clock,
    /// Settings of the treatment, and of the events so far over them.
    settings: Vec<Setting>,
    /// When the load began; `None` before its first second is over.
    begun: Option<Duration>,
    /// Seconds of its measured time.
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
            settings: treatment.settings.clone(),
            begun: None,
            measured_s: 0.0,
            done: Vec::new(),
        }
    }

    /// After a second of the load: does what is due.
    pub(super) fn after(&mut self, second: &Second, server: &mut dyn Meanwhile) -> Result<(), LabError> {
        let length = Duration::from_secs_f64(second.length_s);
        let load_began = *self
            .begun
            .get_or_insert_with(|| self.clock.now().saturating_sub(length));
        if second.measured {
            self.measured_s += second.length_s;
        }
        // Seconds are not of exactly that length.
        const NEARLY_S: f64 = 0.05;
        while let Some(event) = self
            .next
            .filter(|event| self.measured_s + NEARLY_S >= event.at_s())
        {
            // What fails is not tried again.
            self.next = self.coming.next();
            let begun = self.clock.now();
            self.happen(event, server)?;
            self.done.push(EventRecord {
                title: event.titled(),
                t_s: begun.saturating_sub(load_began).as_secs_f64(),
                took_s: self.clock.now().saturating_sub(begun).as_secs_f64(),
            });
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
        // A server that was started again has lost what holds for its processes.
        if event.settings.is_empty() && !event.kill {
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
        not_taken(applied)
    }
}
