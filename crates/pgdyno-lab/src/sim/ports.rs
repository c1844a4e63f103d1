//! The simulator's ports. Each does what the real one promises, in steps at which the process may be killed.

use super::World;
use super::load::{empty_second, measurement};
use super::world::{Journal, Owner, Tables};
use crate::file::Reset;
use crate::plan::{Plan, Stand, Treatment};
use crate::ports::{
    Caches, Changes, Clock, Data, Drive, Driven, Load, Present, Purpose, Results, Server, Servers, Site,
};
use crate::preflight::PreflightReport;
use crate::runner::LabError;
use pgdyno_knobs::{Applied, Catalogue, Outcome, PutBack, Restart, Setting};
use pgdyno_load::{DataPlan, DataProgress, Dataset, Second};
use pgdyno_store::{
    ExperimentRecord, ExperimentStatus, FactRecord, Place, PutBackRecord, SeriesRecord, StoreError,
    StoredExperiment, TrialRecord,
};
use std::cell::{RefCell, RefMut};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
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
    fn step(&self) -> RefMut<'_, World> {
        let mut world = self.world.borrow_mut();
        world.step();
        world
    }
}

fn failure(what: &str) -> LabError {
    LabError::Stand {
        what: what.to_owned(),
        source: "simulated".into(),
    }
}

impl Clock for Shared {
    fn now(&self) -> Duration {
        Duration::from_millis(self.world.borrow().ms)
    }

    fn unix_ms(&self) -> u64 {
        self.world.borrow().ms
    }

    fn minute_of_day(&self) -> u32 {
        u32::try_from(self.world.borrow().ms / 60_000 % 1440).unwrap_or_default()
    }

    /// The machine sleeps for a while: windows are waited for in few looks.
    fn pause(&self, length: Duration) {
        let ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        self.step().ms += ms.max(600_000);
    }
}

fn full() -> StoreError {
    StoreError::Directory {
        place: Place::File("simulated".into()),
        source: std::io::ErrorKind::StorageFull.into(),
    }
}

impl Results for Shared {
    fn begin(&mut self, record: &ExperimentRecord) -> Result<i64, StoreError> {
        let mut world = self.step();
        let id = i64::try_from(world.stored.len()).unwrap_or(i64::MAX);
        world.stored.push(StoredExperiment {
            id,
            record: record.clone(),
            status: ExperimentStatus::Running,
            started_unix_ms: 0,
            finished_unix_ms: None,
            put_back: Vec::new(),
            trials: Vec::new(),
        });
        world.step();
        Ok(id)
    }

    fn keep(&mut self) -> Result<(), StoreError> {
        self.step();
        Ok(())
    }

    fn add_trial(&mut self, id: i64, trial: &TrialRecord, _: &SeriesRecord) -> Result<i64, StoreError> {
        let mut world = self.step();
        let trials = &world.stored[index(id)].trials;
        let number = trials.len();
        let same = |(_, other): &(i64, TrialRecord)| {
            other.block == trial.block && other.treatment == trial.treatment
        };
        if trials.iter().any(same) {
            let twice = format!("block {} of {} was run twice", trial.block, trial.treatment);
            world.broken.push(twice);
        }
        if number >= world.room {
            return Err(full());
        }
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        world.stored[index(id)].trials.push((number, trial.clone()));
        world.step();
        Ok(number)
    }

    fn experiment(&self, id: i64) -> Result<StoredExperiment, StoreError> {
        Ok(self.step().stored[index(id)].clone())
    }

    fn set_status(&mut self, id: i64, status: ExperimentStatus) -> Result<(), StoreError> {
        self.step().stored[index(id)].status = status;
        Ok(())
    }

    fn set_put_back(&mut self, id: i64, lines: &[PutBackRecord]) -> Result<(), StoreError> {
        self.step().stored[index(id)].put_back = lines.to_vec();
        Ok(())
    }
}

fn index(id: i64) -> usize {
    usize::try_from(id).unwrap_or_default()
}

impl Servers<'static> for Shared {
    fn go_to(&mut self, stand: &Stand, _: &Purpose<'_>) -> Result<Box<dyn Site>, LabError> {
        let mut world = self.step();
        let occasion = format!("{}/{}/{}", stand.label(), world.process, world.steps);
        if world.happens(world.odds.no_server, "no server", &occasion) {
            return Err(failure("the server"));
        }
        for (other, server) in &world.servers {
            if other != stand && server.has_pooler {
                let left = format!("a pooler runs before {} still", other.label());
                world.broken.push(left);
                break;
            }
        }
        if world.journals.iter().any(|journal| journal.is_open) {
            world.broken.push("two servers are changed at once".to_owned());
        }
        world.servers.entry(stand.clone()).or_default().runs = true;
        world.journals.push(Journal {
            is_open: true,
            ..Journal::default()
        });
        let journal = world.journals.len() - 1;
        world.step();
        Ok(Box::new(SimSite {
            shared: self.clone(),
            stand: stand.clone(),
            journal,
        }))
    }

    fn leave(&mut self, stand: &Stand) -> Result<(), LabError> {
        let mut world = self.step();
        if let Some(server) = world.servers.get_mut(stand).filter(|_| !stand.is_target()) {
            server.runs = false;
        }
        Ok(())
    }

    fn end_left_behind(&mut self, _: i64) -> Result<(), LabError> {
        for server in self.step().servers.values_mut() {
            server.has_pooler = false;
        }
        Ok(())
    }

    fn end(&mut self, _: i64) -> Result<(), LabError> {
        let mut world = self.step();
        world.servers.retain(|stand, _| stand.is_target());
        for server in world.servers.values_mut() {
            server.copies.clear();
        }
        Ok(())
    }
}

struct SimSite {
    shared: Shared,
    stand: Stand,
    journal: usize,
}

impl SimSite {
    fn owner(&self, knob: &str) -> Owner {
        let is_of_host = self
            .shared
            .catalogue
            .get(knob)
            .is_ok_and(|knob| knob.kind.is_of_host());
        match is_of_host {
            true => Owner::Host,
            false => Owner::Server(self.stand.clone()),
        }
    }

    /// A question about data; it may fail.
    fn ask(&self, what: &str) -> Result<RefMut<'_, World>, LabError> {
        let world = self.shared.step();
        let occasion = format!("{what}/{}/{}", world.process, world.steps);
        match world.happens(world.odds.data, "data", &occasion) {
            true => Err(failure(what)),
            false => Ok(world),
        }
    }
}

fn key(database: Option<&str>) -> String {
    database.unwrap_or_default().to_owned()
}

macro_rules! server {
    ($self:ident, $world:ident) => {
        $world.servers.entry($self.stand.clone()).or_default()
    };
}

impl Server for SimSite {
    fn is_sandbox(&self) -> bool {
        self.shared.world.borrow().is_sandbox || !self.stand.is_target()
    }

    fn preflight(&mut self, plan: &mut Plan) -> Result<PreflightReport, LabError> {
        let world = self.shared.step();
        let odds = world.odds.not_tested;
        let reasons: Vec<(usize, String)> = (2..plan.treatments.len())
            .filter(|i| world.happens(odds, "not tested", &plan.treatments[*i].name))
            .map(|i| (i, "simulated".to_owned()))
            .collect();
        plan.leave_out(&reasons);
        Ok(PreflightReport::default())
    }

    fn facts(&mut self) -> Result<Vec<FactRecord>, LabError> {
        self.shared.step();
        Ok(Vec::new())
    }

    fn crash(&mut self) -> Result<f64, LabError> {
        let mut world = self.shared.step();
        server!(self, world).runs = false;
        world.step();
        server!(self, world).runs = true;
        Ok(2.5)
    }

    fn figure(&mut self, _: Option<&str>, _: &str) -> Result<f64, LabError> {
        self.shared.step();
        Ok(1.0)
    }
}

impl Changes for SimSite {
    fn apply(&mut self, settings: &[Setting], restart: Restart) -> Result<Vec<Applied>, LabError> {
        let mut world = self.shared.step();
        if let Some(knob) = world.foreign_in(self.journal) {
            return Err(failure(&format!("{knob} was changed by someone else")));
        }
        world.ms += 1_000;
        server!(self, world).runs = true;
        for (owner, knob, before) in world.touched(self.journal) {
            if !settings.iter().any(|setting| setting.knob == knob) {
                world.change(self.journal, &owner, &knob, before.as_deref());
            }
        }
        for setting in settings {
            let owner = self.owner(&setting.knob);
            world.change(self.journal, &owner, &setting.knob, Some(&setting.value));
        }
        if restart != Restart::WhenNeeded {
            server!(self, world).runs = false;
            world.step();
            world.ms += 5_000;
            server!(self, world).runs = true;
        }
        let shown = |setting: &Setting| format!("{}={}", setting.knob, setting.value);
        for setting in settings {
            if world.happens(world.odds.bad_value, "bad value", &shown(setting)) {
                let owner = self.owner(&setting.knob);
                let touched = world.touched(self.journal);
                let line = touched
                    .into_iter()
                    .find(|(o, knob, _)| *o == owner && *knob == setting.knob);
                if let Some((_, _, before)) = line {
                    world.change(self.journal, &owner, &setting.knob, before.as_deref());
                }
                return Err(failure("the server does not start"));
            }
        }
        let applied = settings.iter().map(|setting| {
            let took = !world.happens(world.odds.ignored, "ignored", &shown(setting));
            Applied {
                setting: setting.clone(),
                effective: match took {
                    true => setting.value.clone(),
                    false => "another".to_owned(),
                },
                took,
                remark: None,
            }
        });
        Ok(applied.collect())
    }

    fn restore(self: Box<Self>) -> Result<Vec<PutBack>, LabError> {
        let mut world = self.shared.step();
        let lines = world.journals[self.journal].lines.clone();
        let (mut told, mut kept) = (Vec::new(), Vec::new());
        for line in lines.into_iter().rev() {
            world.step();
            let occasion = format!("{}/{}", line.knob(), world.steps);
            if world.happens(world.odds.not_restored, "not restored", &occasion) {
                told.push(line.told(Outcome::Failed));
                kept.push(line);
            } else {
                told.push(world.restore_line(&line));
            }
        }
        world.step();
        world.drop_marked(self.journal);
        kept.reverse();
        world.journals[self.journal] = Journal {
            lines: kept,
            is_open: false,
        };
        Ok(told)
    }
}

impl Data for SimSite {
    fn present(&mut self, database: Option<&str>, dataset: Dataset) -> Result<Present, LabError> {
        let mut world = self.ask("looking for data")?;
        let tables = server!(self, world).tables.get(&key(database)).copied();
        let whole = tables.filter(|tables| tables.is_whole && tables.dataset == dataset);
        Ok(whole.map_or(Present::Missing, |tables| Present::Scale(tables.scale)))
    }

    fn make_database(&mut self, name: &str) -> Result<(), LabError> {
        let mut world = self.ask("making a database")?;
        server!(self, world).databases.insert(name.to_owned());
        Ok(())
    }

    fn create(
        &mut self,
        database: Option<&str>,
        plan: &DataPlan,
        is_marked: bool,
        go_on: &mut dyn FnMut(DataProgress) -> bool,
    ) -> Result<(), LabError> {
        let mut world = self.ask("making data")?;
        let name = key(database);
        if !name.is_empty() && !server!(self, world).databases.contains(&name) {
            world
                .broken
                .push(format!("data is made in {name}, which does not exist"));
        }
        if !is_marked && !world.is_sandbox && self.stand.is_target() {
            world
                .broken
                .push("data is made unmarked on a server of others".to_owned());
        }
        let begun = Tables {
            dataset: plan.dataset,
            scale: plan.scale,
            is_whole: false,
            marked_by: is_marked.then_some(self.journal),
            loads: 0,
        };
        server!(self, world).tables.insert(name.clone(), begun);
        drop(world);
        let progress = DataProgress {
            step: "simulated",
            rows: 0,
            rows_total: 1,
        };
        let mut world = self.shared.step();
        world.ms += 2_000;
        if !go_on(progress) {
            return Err(failure("making data was stopped"));
        }
        let whole = Tables {
            is_whole: true,
            ..begun
        };
        server!(self, world).tables.insert(name, whole);
        Ok(())
    }

    fn keep_template(&mut self, name: &str) -> Result<(), LabError> {
        let mut world = self.ask("making a template")?;
        let server = server!(self, world);
        if !server.templates.contains_key(name)
            && let Some(tables) = server.tables.get(name).copied()
        {
            server.templates.insert(name.to_owned(), tables);
        }
        Ok(())
    }

    fn renew_from_template(&mut self, name: &str) -> Result<(), LabError> {
        let mut world = self.ask("making data from its template")?;
        server!(self, world).tables.remove(name);
        world.step();
        let server = server!(self, world);
        match server.templates.get(name).copied() {
            Some(tables) => server.tables.insert(name.to_owned(), tables),
            None => return Err(failure("there is no template")),
        };
        Ok(())
    }

    fn vacuum(&mut self, _: Option<&str>) -> Result<(), LabError> {
        self.ask("a vacuum").map(drop)
    }

    fn save_files(&mut self, name: &str) -> Result<bool, LabError> {
        let mut world = self.ask("saving files")?;
        let server = server!(self, world);
        if server.copies.get(name).is_some_and(Option::is_some) {
            return Ok(false);
        }
        let tables = server.tables.clone();
        server.copies.insert(name.to_owned(), None);
        world.step();
        server!(self, world).copies.insert(name.to_owned(), Some(tables));
        world.step();
        Ok(true)
    }

    fn restore_files(&mut self, name: &str) -> Result<(), LabError> {
        let mut world = self.ask("restoring files")?;
        let Some(tables) = server!(self, world).copies.get(name).cloned().flatten() else {
            world
                .broken
                .push(format!("files of {name} are restored that were not saved"));
            return Err(failure("there is no copy"));
        };
        server!(self, world).tables = tables;
        world.step();
        Ok(())
    }
}

impl Caches for SimSite {
    fn prewarm(&mut self, _: &Treatment, _: Option<&str>) -> Result<(), LabError> {
        self.ask("reading data").map(drop)
    }

    fn checkpoint(&mut self, _: Option<&str>) -> Result<(), LabError> {
        self.ask("a checkpoint").map(drop)
    }
}

impl SimSite {
    /// What must be so when a load begins.
    fn look(&self, world: &mut World, drive: &Drive<'_>) {
        let treatment = drive.treatment;
        if treatment.stand() != self.stand {
            world
                .broken
                .push(format!("{} runs on another server", treatment.name));
        }
        let mut expected: Vec<(Owner, &str, Option<&str>)> = Vec::new();
        for setting in &treatment.settings {
            expected.push((self.owner(&setting.knob), &setting.knob, Some(&setting.value)));
        }
        let touched = world.touched(self.journal);
        for (owner, knob, before) in &touched {
            if !expected.iter().any(|(_, named, _)| named == knob) {
                expected.push((owner.clone(), knob, before.as_deref()));
            }
        }
        for (owner, knob, value) in expected {
            let is_foreign = world.foreign.contains(&(owner.clone(), knob.to_owned()));
            let now = world.settings(&owner).get(knob).cloned();
            if now.as_deref() != value && !is_foreign {
                let what = format!("{} runs with {knob} = {now:?}, not {value:?}", treatment.name);
                world.broken.push(what);
            }
        }
        let server = server!(self, world);
        let (runs, has_pooler) = (server.runs, server.has_pooler);
        if !runs {
            world
                .broken
                .push(format!("{} runs without a server", treatment.name));
        }
        if has_pooler {
            world
                .broken
                .push("a pooler of an earlier process runs still".to_owned());
        }
        let tables = server!(self, world).tables.get(&key(drive.database)).copied();
        let is_fresh = matches!(
            treatment.data.reset,
            Some(Reset::Recreate | Reset::Template | Reset::Copy)
        );
        match tables {
            Some(tables) if !tables.is_whole => world.broken.push("the data is not whole".to_owned()),
            Some(tables) if Some(tables.scale) != treatment.data.scale => {
                world.broken.push("the data has another scale".to_owned());
            }
            Some(tables) if is_fresh && tables.loads > 0 => {
                let what = format!("{} runs on data that a load has changed", treatment.name);
                world.broken.push(what);
            }
            None if treatment.data.scale.is_some() => world.broken.push("there is no data".to_owned()),
            _ => {}
        }
    }
}

impl Load for SimSite {
    fn drive(
        &mut self,
        drive: &Drive<'_>,
        stop: &AtomicBool,
        go_on: &mut dyn FnMut(&Second) -> bool,
    ) -> Result<Driven, LabError> {
        let mut world = self.shared.step();
        self.look(&mut world, drive);
        let treatment = drive.treatment;
        world.drives.push((drive.seed, treatment.name.clone()));
        let has_pooler = treatment.has_pooler();
        let server = server!(self, world);
        server.has_pooler = has_pooler;
        if let Some(tables) = server.tables.get_mut(&key(drive.database)) {
            tables.loads += 1;
        }
        let (warmup_s, measure_s) = (
            treatment.load.warmup_s.unwrap_or(0.0),
            crate::plan::measure_s(&treatment.load),
        );
        let tps = world.tps(treatment, drive.seed);
        let is_slow = world.happens(world.odds.slow, "slow", &treatment.name);
        let occasion = drive.seed.to_string();
        let dies = world.happens(world.odds.dies, "dies", &occasion);
        drop(world);
        let mut measured = measurement(tps, warmup_s, measure_s);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "seconds of a load"
        )]
        let seconds = (warmup_s + measure_s) as u32;
        for number in 1..=seconds {
            let mut world = self.shared.step();
            world.ms += 1_000;
            drop(world);
            let mut second = self.shared.second.borrow_mut();
            second.number = number;
            second.measured = f64::from(number) > warmup_s;
            // Without a single response a second is the slowest of all.
            second.books.committed = if is_slow { 0 } else { 100 };
            if !go_on(&second) || stop.load(Ordering::Relaxed) {
                measured.load.stopped_early = true;
                break;
            }
            if dies && number == 3 {
                measured.broken = Some("the server died".to_owned());
                break;
            }
        }
        let mut world = self.shared.step();
        server!(self, world).has_pooler = false;
        if dies {
            server!(self, world).runs = false;
        }
        if world.happens(world.odds.disagrees, "disagrees", &occasion)
            && let Some(check) = &mut measured.cross_check
        {
            check.agrees = false;
        }
        measured.is_disturbed = world.is_outlier(drive.seed);
        let set = treatment.settings.first().map(|setting| setting.knob.clone());
        if let Some(knob) = set.filter(|_| world.happens(world.odds.foreign, "foreign", &occasion)) {
            let owner = self.owner(&knob);
            world.change_by_someone_else(&owner, &knob);
        }
        Ok(Driven {
            measurement: measured,
            shortage: None,
            is_enough: false,
        })
    }
}
