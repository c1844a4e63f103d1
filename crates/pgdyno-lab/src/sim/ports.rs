//! The simulator's clock, store and servers. Each does what the real one promises, in steps at
//! which the process may be killed.

use super::World;
use super::course::Course;
use super::load::empty_second;
use super::target::SimTarget;
use super::world::{Begun, Journal};
use crate::error::LabError;
use crate::plan::ServerVariant;
use crate::ports::{Clock, Purpose, Results, Servers, TrialTarget};
use pgdyno_engine::Second;
use pgdyno_knobs::{Catalogue, OfHost};
use pgdyno_record::{
    ExperimentRecord, ExperimentStatus, RestoredRecord, SeriesRecord, StoredExperiment, TreatmentRecord,
    TrialRecord,
};
use pgdyno_store::{Place, StoreError};
use std::cell::{RefCell, RefMut};
use std::rc::Rc;
use std::time::Duration;

/// The world as the ports of one process share it.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) world: Rc<RefCell<World>>,
    pub(super) catalogue: &'static Catalogue,
    pub(super) second: Rc<RefCell<Second>>,
}

impl Shared {
    pub(super) fn new(world: World, catalogue: &'static Catalogue) -> Shared {
        Shared {
            world: Rc::new(RefCell::new(world)),
            catalogue,
            second: Rc::new(RefCell::new(empty_second())),
        }
    }

    /// The world, one step later.
    pub(super) fn step(&self) -> RefMut<'_, World> {
        let mut world = self.world.borrow_mut();
        world.step();
        world
    }

    /// The same, where the store answers.
    fn store(&self) -> Result<RefMut<'_, World>, StoreError> {
        let mut world = self.step();
        if world.goes_wrong(world.odds.store, "store") {
            return Err(full(&mut world));
        }
        Ok(world)
    }
}

impl World {
    /// Keeps a trial of an experiment that has ended at this time.
    fn add(&mut self, id: i64, trial: &TrialRecord, ended_ms: u64) {
        let variant = self.at.first().cloned().filter(|variant| !variant.is_target());
        let is_switched = self.is_switched;
        let mut took_s = 0.0;
        match self.course.take() {
            Some(course) => {
                if !is_switched {
                    let variant = variant.map(|variant| variant.label());
                    self.broken.extend(course.broken_by(trial, variant));
                }
                #[expect(clippy::cast_precision_loss, reason = "milliseconds of a trial")]
                let since_s = (ended_ms - course.begun_ms) as f64 / 1e3;
                took_s = since_s;
                self.spent_s += since_s;
            }
            // The trials of one load are stored together.
            None if is_switched => {}
            None => self
                .broken
                .push("others take the experiment for killed".to_owned()),
        }
        let trials = &mut self.stored[index(id)].trials;
        let same = |(_, other): &(i64, TrialRecord)| {
            other.block == trial.block && other.treatment == trial.treatment
        };
        if trials.iter().any(same) {
            let twice = format!("block {} of {} was run twice", trial.block, trial.treatment);
            self.broken.push(twice);
        }
        let number = i64::try_from(trials.len()).unwrap_or(i64::MAX);
        trials.push((number, trial.clone()));
        self.took_s.push(took_s);
    }
}

impl Clock for Shared {
    fn now(&self) -> Duration {
        Duration::from_millis(self.world.borrow().ms)
    }

    fn unix_ms(&self) -> u64 {
        self.world.borrow().ms
    }

    fn seed(&self) -> u64 {
        self.world.borrow().seed
    }

    fn minute_of_day(&self) -> u32 {
        self.world.borrow().minute_of_day()
    }

    /// The machine sleeps for half of the time until the window opens: it is waited for in few
    /// looks.
    fn pause(&self, _: Duration) {
        const DAY: u32 = 24 * 60;
        let mut world = self.step();
        if world.journals.iter().any(|journal| journal.is_open) {
            world
                .broken
                .push("settings stay changed while it waits".to_owned());
        }
        let minutes = world
            .window
            .map_or(10, |(from, _)| (from + DAY - world.minute_of_day()) % DAY);
        world.ms += (u64::from(minutes) * 30_000).max(20_000);
    }
}

fn full(world: &mut World) -> StoreError {
    let error = StoreError::Directory {
        place: Place::File("simulated".into()),
        source: std::io::ErrorKind::StorageFull.into(),
    };
    world.excuse(&error);
    error
}

fn index(id: i64) -> usize {
    usize::try_from(id).unwrap_or_default()
}

impl Results for Shared {
    fn begin(&mut self, record: &ExperimentRecord) -> Result<i64, StoreError> {
        let mut world = self.store()?;
        let id = i64::try_from(world.stored.len()).unwrap_or(i64::MAX);
        world.stored.push(StoredExperiment {
            id,
            record: record.clone(),
            status: ExperimentStatus::Running,
            started_unix_ms: 0,
            finished_unix_ms: None,
            restored: Vec::new(),
            trials: Vec::new(),
        });
        world.step();
        Ok(id)
    }

    fn add_treatment(&mut self, id: i64, treatment: &TreatmentRecord) -> Result<(), StoreError> {
        let mut world = self.store()?;
        let treatments = &mut world.stored[index(id)].record.treatments;
        if treatments.iter().any(|other| other.name == treatment.name) {
            world.broken.push(format!("{} was added twice", treatment.name));
        } else {
            treatments.push(treatment.clone());
        }
        world.step();
        Ok(())
    }

    /// Each trial begins with it.
    fn keep(&mut self) -> Result<(), StoreError> {
        let minute_of_day = self.minute_of_day();
        let mut world = self.store()?;
        let begun = Begun {
            minute_of_day,
            spent_s: world.spent_s,
            trials: world.stored.first().map_or(0, |stored| stored.trials.len()),
        };
        world.begun.push(begun);
        world.course = Some(Course {
            begun_ms: world.ms,
            ..Course::default()
        });
        Ok(())
    }

    fn add_trials(&mut self, id: i64, trials: &[(TrialRecord, SeriesRecord)]) -> Result<(), StoreError> {
        let ended_ms = self.world.borrow().ms;
        let mut world = self.step();
        if world.stored[index(id)].trials.len() + trials.len() > world.room {
            return Err(full(&mut world));
        }
        trials
            .iter()
            .for_each(|(trial, _)| world.add(id, trial, ended_ms));
        if world.goes_wrong(world.odds.unsure, "unsure") {
            return Err(full(&mut world));
        }
        world.step();
        Ok(())
    }

    fn experiment(&self, id: i64) -> Result<StoredExperiment, StoreError> {
        Ok(self.store()?.stored[index(id)].clone())
    }

    fn set_status(&mut self, id: i64, status: ExperimentStatus) -> Result<(), StoreError> {
        self.store()?.stored[index(id)].status = status;
        Ok(())
    }

    fn set_restored(&mut self, id: i64, lines: &[RestoredRecord]) -> Result<(), StoreError> {
        self.store()?.stored[index(id)].restored = lines.to_vec();
        Ok(())
    }
}

impl Servers<'static> for Shared {
    fn go_to(
        &mut self,
        variant: &ServerVariant,
        purpose: &Purpose<'_>,
    ) -> Result<Box<dyn TrialTarget>, LabError> {
        let mut world = self.step();
        // Those beside the first come in their order.
        let first = ServerVariant {
            beside: 0,
            ..variant.clone()
        };
        let is_next = usize::try_from(variant.beside) == Ok(world.at.len());
        let is_in_place = match world.is_switched {
            // They take turns: each is there once.
            true => !world.at.contains(variant),
            false => is_next && world.at.first().is_none_or(|at| *at == first),
        };
        if !is_in_place {
            let what = format!("\"{}\" is gone to from {:?}", variant.label(), world.at);
            world.broken.push(what);
        }
        world.fault(|odds| odds.no_server, "the server")?;
        if world
            .servers
            .iter()
            .any(|(other, server)| other != variant && server.has_pooler)
        {
            world
                .broken
                .push("a pooler runs before another server still".to_owned());
        }
        let open = world.journals.iter().filter(|journal| journal.is_open).count();
        if open != world.at.len() {
            let what = format!("{open} journals are open, of {} servers", world.at.len());
            world.broken.push(what);
        }
        let meets = |journal: &Journal| {
            let (of, has_host) = &journal.scope;
            !journal.lines.is_empty() && (*of == *variant || *has_host && purpose.of_host == OfHost::Yes)
        };
        if world.journals.iter().any(meets) {
            return Err(world.fail("changes are left from before"));
        }
        world.servers.entry(variant.clone()).or_default().runs = true;
        world.journals.push(Journal {
            is_open: true,
            scope: (variant.clone(), purpose.of_host == OfHost::Yes),
            lines: Vec::new(),
        });
        let journal = world.journals.len() - 1;
        world.step();
        world.at.push(variant.clone());
        Ok(Box::new(SimTarget {
            shared: self.clone(),
            variant: variant.clone(),
            journal,
        }))
    }

    /// Where the experiment has other servers, the target is stopped too.
    fn leave(&mut self, variant: &ServerVariant) -> Result<(), LabError> {
        let mut world = self.step();
        let place = world.at.iter().rposition(|at| at == variant);
        let is_last = place.is_some_and(|place| place + 1 == world.at.len());
        if let Some(place) = place {
            world.at.remove(place);
        }
        if place.is_none() || !is_last && !world.is_switched {
            world
                .broken
                .push(format!("\"{}\" is left from elsewhere", variant.label()));
        }
        world.fault(|odds| odds.undoing, "leaving a server")?;
        let has_others = world.servers.len() > 1;
        if let Some(server) = world.servers.get_mut(variant).filter(|_| has_others) {
            server.runs = false;
        }
        Ok(())
    }

    fn remove(&mut self, variant: &ServerVariant) -> Result<(), LabError> {
        let mut world = self.step();
        if !world.at.is_empty() || variant.is_target() {
            world
                .broken
                .push(format!("\"{}\" is removed while it is needed", variant.label()));
        }
        world.fault(|odds| odds.undoing, "removing a server")?;
        if world.servers.remove(variant).is_some() {
            world.removed += 1;
        }
        Ok(())
    }

    fn end_left_behind(&mut self) -> Result<(), LabError> {
        let mut world = self.step();
        world.fault(|odds| odds.undoing, "ending what was left")?;
        for server in world.servers.values_mut() {
            server.has_pooler = false;
        }
        Ok(())
    }

    fn end(&mut self, files: &str) -> Result<(), LabError> {
        let mut world = self.step();
        world.fault(|odds| odds.undoing, "removing what was made")?;
        world.servers.retain(|variant, _| variant.is_target());
        // What was changed on a server goes with it.
        for journal in &mut world.journals {
            journal.lines.retain(|line| !line.is_of_own_server());
        }
        for server in world.servers.values_mut() {
            server.copies.retain(|name, _| !name.starts_with(files));
            server.runs = true;
        }
        world.step();
        Ok(())
    }
}
