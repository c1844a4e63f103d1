//! What must hold of events: a time within the load with room on both sides, and one thing that can
//! be done then.

use super::{Check, Checked, loads};
use crate::file::choices::{Design, LoadOn};
use crate::file::parts::{EventPart, LoadPart, ServerPart};
use crate::file::settings_of;
use pgdyno_engine::{Protocol, duration};
use pgdyno_host::size_bytes;
use pgdyno_knobs::{CarryOver, Cost};

const EVENTS_MAX: usize = 20;
/// Seconds at least on each side of an event: fewer say nothing of the level.
const SIDE_LEAST_S: f64 = 10.0;

impl Check<'_> {
    pub(super) fn events(&self) -> Checked {
        let (file, events) = (self.file, &self.file.event);
        if events.is_empty() {
            return Ok(());
        }
        self.must(events.len() <= EVENTS_MAX, &["event"], || {
            format!("{} events: expected at most {EVENTS_MAX}", events.len())
        })?;
        self.must(file.design != Design::Switchback, &["event"], || {
            "design = \"switchback\" cannot have [[event]]: it changes settings itself".into()
        })?;
        let parts = file.parts();
        let one = |server: &ServerPart| server.count.unwrap_or(1) == 1;
        self.must(
            one(&file.server) && parts.iter().all(|part| one(&part.server)),
            &["event"],
            || "[[event]] needs a single server: remove server.count".into(),
        )?;
        let on_server = |load: &LoadPart| load.on != Some(LoadOn::Standbys);
        self.must(
            on_server(&file.load) && parts.iter().all(|part| on_server(&part.load)),
            &["event"],
            || {
                "[[event]] acts on the server, and the load is on its standbys: remove load.on = \"standbys\""
                    .into()
            },
        )?;
        let is_own = |load: &&LoadPart| load.program.is_none() && load.checkpoint_cycles.is_none();
        self.must(loads(file, &parts).iter().all(is_own), &["event"], || {
            "[[event]] needs a load of pgdyno's own clients with a fixed length: remove program and checkpoint_cycles".into()
        })?;
        let lengths = parts
            .iter()
            .filter_map(|part| part.load.measure_s)
            .chain(file.load.measure_s);
        let shortest_s = lengths.fold(f64::INFINITY, f64::min);
        let mut before_s = 0.0;
        for (i, event) in events.iter().enumerate() {
            let number = i.to_string();
            let keys = |key: &'static str| ["event", number.as_str(), key];
            let at_s = duration(&event.at)
                .map_err(|message| self.wrong(&keys("at"), message))?
                .as_secs_f64();
            let has_room = at_s >= before_s + SIDE_LEAST_S && at_s + SIDE_LEAST_S <= shortest_s;
            self.must(has_room, &keys("at"), || {
                format!(
                    "at = \"{}\": expected at least {SIDE_LEAST_S} s after the start of the measured time or the event before, and at least \
                     {SIDE_LEAST_S} s before its end at {shortest_s} s",
                    event.at
                )
            })?;
            before_s = at_s;
            let title = event.titled();
            let taken = events[..i].iter().any(|other| other.titled() == title);
            self.must(!taken, &keys("title"), || {
                format!("the title \"{title}\" is taken")
            })?;
            self.event(event, &number)?;
        }
        Ok(())
    }

    fn event(&self, event: &EventPart, number: &str) -> Checked {
        let things = [!event.settings.is_empty(), event.kill, event.neighbour.is_some()];
        let count = things.into_iter().filter(|is| *is).count();
        self.must(count == 1, &["event", number], || {
            "an event needs exactly one of settings, kill = true and neighbour".into()
        })?;
        self.settings(&event.settings, &["event", number, "settings"])?;
        self.no_password(event.neighbour.as_deref(), &["event", number, "neighbour"])?;
        if let Some(Err(message)) = event.neighbour_memory.as_deref().map(size_bytes) {
            return Err(self.wrong(&["event", number, "neighbour_memory"], message));
        }
        let file = self.file;
        let parts = file.parts();
        // A load of its own, or one that every load has.
        let varied = parts.iter().any(|part| part.load.protocol.is_some());
        let base = (!varied || file.load.protocol.is_some())
            .then_some(file.load.protocol.unwrap_or(Protocol::Prepared));
        let protocols = parts.iter().filter_map(|part| part.load.protocol).chain(base);
        let is_prepared = protocols
            .into_iter()
            .any(|protocol| protocol == Protocol::Prepared);
        for setting in settings_of(&event.settings) {
            let Some(knob) = self.catalogue.find(&setting.knob) else {
                continue;
            };
            let objection = match (knob.cost, knob.carry_over) {
                (Cost::Restart | Cost::Remount | Cost::Reboot, _) => {
                    Some("it takes effect only after a restart")
                }
                (_, Some(CarryOver::Plans)) if is_prepared => Some(
                    "plans of prepared statements keep the old value; protocol = \"extended\" in [load] makes new ones",
                ),
                _ => None,
            };
            if let Some(objection) = objection {
                let message = format!("{} cannot change while a load runs: {objection}", setting.knob);
                return Err(self.wrong(&["event", number, "settings"], message));
            }
        }
        Ok(())
    }
}
