//! One simulated server with its settings, data and caches.

use super::World;
use super::ports::Shared;
use super::world::{FILES, Owner, Tables, failure};
use crate::error::LabError;
use crate::file::{Prewarm, Reset, RestartPolicy, ServerPart};
use crate::foreign::ProgramData;
use crate::plan::{Plan, ServerVariant, Treatment, data_of};
use crate::ports::{Apply, Caches, Changes, Data, Drive, Meanwhile, Present, Server};
use crate::preflight::{Finding, FindingKind, PreflightReport};
use crate::probe::ServerBeside;
use pgdyno_knobs::{Agreed, Applied, Knob, OneOf, Outcome, Restart, Restored, Setting};
use pgdyno_record::FactRecord;
use pgdyno_server::Conninfo;
use pgdyno_server::postgres::Config;
use pgdyno_workload::{DataPlan, DataProgress, Dataset, Shape};
use std::cell::RefMut;
use std::sync::atomic::Ordering;

/// The server of a target.
macro_rules! server {
    ($self:ident, $world:ident) => {
        $world.servers.entry($self.variant.clone()).or_default()
    };
}

mod drive;

pub(super) struct SimTarget {
    pub(super) shared: Shared,
    pub(super) variant: ServerVariant,
    pub(super) journal: usize,
}

impl SimTarget {
    fn owner(&self, knob: &str) -> Owner {
        let knob = self.shared.catalogue.get(knob);
        match knob.is_ok_and(Knob::is_of_each_server) {
            true => Owner::Server(self.variant.clone()),
            false => Owner::Host,
        }
    }

    /// A question that a server must run for; it may fail, and it does where somebody asks to stop.
    fn ask(&self, what: &str) -> Result<RefMut<'_, World>, LabError> {
        let mut world = self.shared.step();
        if !server!(self, world).runs {
            world.broken.push(format!("{what}: the server does not run"));
        }
        if world.stop.load(Ordering::Relaxed) {
            return Err(stopped(&mut world));
        }
        world.fault(|odds| odds.data, what)?;
        Ok(world)
    }

    /// Work on the files of the stopped server.
    fn while_stopped(&self, act: impl FnOnce(&Self, &mut World)) {
        let mut world = self.shared.step();
        server!(self, world).runs = false;
        world.step();
        act(self, &mut world);
        server!(self, world).runs = true;
        world.step();
    }
}

/// What fails because somebody asked to stop.
fn stopped(world: &mut World) -> LabError {
    if let Some(course) = &mut world.course {
        course.is_stopped = true;
    }
    world.fail("it was stopped")
}

fn key(database: Option<&str>) -> String {
    database.unwrap_or_default().to_owned()
}

impl Server for SimTarget {
    fn is_sandbox(&self) -> bool {
        self.shared.world.borrow().is_sandbox || !self.variant.is_target()
    }

    fn preflight(&mut self, plan: &mut Plan) -> Result<PreflightReport, LabError> {
        let mut world = self.shared.step();
        world.fault(|odds| odds.server, "the preflight")?;
        let odds = world.odds.not_tested;
        let reasons: Vec<(usize, String)> = (2..plan.treatments.len())
            .filter(|i| world.happens(odds, "not tested", &plan.treatments[*i].name))
            .map(|i| (i, "simulated".to_owned()))
            .collect();
        plan.exclude(&reasons);
        let lacks_consent = !world.is_sandbox && self.variant.is_target() && !world.may_make_data;
        drop(world);
        let mut report = PreflightReport::default();
        for data in plan.data(|_| true).iter().filter(|_| lacks_consent) {
            if self.present(None, data.dataset)? == Present::Missing {
                report.findings = vec![Finding::new(FindingKind::Consent, "consent to data", &[])];
            }
        }
        Ok(report)
    }

    fn ensure_running(&mut self) -> Result<(), LabError> {
        let mut world = self.shared.step();
        if !server!(self, world).runs {
            world.fault(|odds| odds.no_server, "starting the server again")?;
            world.ms += 3_000;
            server!(self, world).runs = true;
        }
        Ok(())
    }

    fn stop(&mut self) -> Result<(), LabError> {
        let mut world = self.shared.step();
        server!(self, world).runs = false;
        Ok(())
    }

    /// The name of its database says which one it is.
    fn beside(&mut self, _: Option<&str>) -> Result<ServerBeside, LabError> {
        let mut config = Config::new();
        config.dbname(&self.variant.label());
        Ok(ServerBeside {
            conninfo: Conninfo::from_config(config),
            postmaster: None,
        })
    }

    fn facts(&mut self) -> Result<Vec<FactRecord>, LabError> {
        let mut world = self.shared.step();
        world.fault(|odds| odds.server, "facts")?;
        Ok(Vec::new())
    }

    fn crash(&mut self) -> Result<f64, LabError> {
        const RECOVERY_S: f64 = 2.5;
        let mut world = self.shared.step();
        server!(self, world).runs = false;
        world.step();
        world.fault(|odds| odds.server, "a crash of the server")?;
        server!(self, world).runs = true;
        if let Some(course) = &mut world.course {
            course.recovery_s = Some(RECOVERY_S);
        }
        Ok(RECOVERY_S)
    }

    fn figure(&mut self, _: Option<&str>, _: &str) -> Result<f64, LabError> {
        let mut world = self.shared.step();
        let answers = server!(self, world).runs && !world.goes_wrong(world.odds.data, "a figure");
        if let Some(course) = &mut world.course {
            course.answers += usize::from(answers);
        }
        answers.then_some(1.0).ok_or_else(|| failure("a figure"))
    }
}

impl Meanwhile for SimTarget {
    fn kill(&mut self) -> Result<f64, LabError> {
        self.crash()
    }

    fn start_neighbour(&mut self, _: &ServerPart) -> Result<(), LabError> {
        drop(self.shared.step());
        Ok(())
    }
}

impl Apply for SimTarget {
    fn apply(&mut self, settings: &[Agreed<Setting>], restart: Restart) -> Result<Vec<Applied>, LabError> {
        let mut world = self.shared.step();
        if let Some(knob) = world.foreign_in(self.journal) {
            return Err(world.fail(&format!("{knob} was changed by someone else")));
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
            if owner == Owner::Host && !world.journals[self.journal].scope.1 {
                world.broken.push(format!("nobody announced {}", setting.knob));
            }
            world.change(self.journal, &owner, &setting.knob, Some(&setting.value));
        }
        if restart != Restart::WhenNeeded {
            server!(self, world).runs = false;
            world.step();
            world.ms += 5_000;
            server!(self, world).runs = true;
        }
        let shown = |setting: &Agreed<Setting>| format!("{}={}", setting.knob, setting.value);
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
                return Err(world.fail("the server does not start"));
            }
        }
        let applied = settings.iter().map(|setting| {
            let took = !world.happens(world.odds.ignored, "ignored", &shown(setting));
            Applied {
                setting: Setting::clone(setting),
                effective: match took {
                    true => setting.value.clone(),
                    false => "another".to_owned(),
                },
                took,
                remark: None,
            }
        });
        let applied: Vec<Applied> = applied.collect();
        if let Some(course) = &mut world.course {
            match self.variant.beside {
                0 => (course.applied, course.restart) = (applied.clone(), Some(restart)),
                _ => course.applied_beside.extend(applied.iter().cloned()),
            }
        }
        Ok(applied)
    }
}

impl Changes for SimTarget {
    fn restore(self: Box<Self>) -> Result<Vec<Restored>, LabError> {
        let mut world = self.shared.step();
        let lines = world.journals[self.journal].lines.clone();
        if let Err(error) = world.fault(|odds| odds.undoing, "restoring") {
            world.is_unrestored = true;
            world.journals[self.journal].is_open = false;
            return Err(error);
        }
        let (mut restored, mut kept) = (Vec::new(), Vec::new());
        for line in lines.into_iter().rev() {
            world.step();
            if world.goes_wrong(world.odds.not_restored, "not restored") {
                restored.push(line.restored_as(Outcome::Failed));
                kept.push(line);
            } else {
                restored.push(world.restore_line(&line));
            }
        }
        world.step();
        world.drop_marked(self.journal);
        kept.reverse();
        world.is_unrestored |= !kept.is_empty();
        let journal = &mut world.journals[self.journal];
        (journal.lines, journal.is_open) = (kept, false);
        world.restored.extend(restored.iter().cloned());
        Ok(restored)
    }
}

impl Data for SimTarget {
    fn present(&mut self, database: Option<&str>, dataset: Dataset) -> Result<Present, LabError> {
        let mut world = self.ask("looking for data")?;
        let tables = server!(self, world).tables.get(&key(database)).copied();
        let whole = tables.filter(|tables| tables.is_whole && tables.dataset == dataset);
        Ok(whole.map_or(Present::Missing, |tables| {
            Present::There(Shape {
                scale: tables.scale,
                tables: 1,
                rows: tables.scale.into(),
                partitions: tables.partitions,
                has_bigint_keys: false,
            })
        }))
    }

    /// Its loads are pgdyno's own.
    fn bring_of_program(&mut self, _: &ProgramData, _: &Treatment, _: &str) -> Result<(), LabError> {
        Ok(())
    }

    fn make_database(&mut self, name: &str) -> Result<(), LabError> {
        let mut world = self.ask("making a database")?;
        let is_of_others = !world.is_sandbox && self.variant.is_target();
        if is_of_others && !world.may_make_data {
            world.broken.push("a database is made without consent".to_owned());
        }
        let by = is_of_others.then_some(self.journal);
        let server = server!(self, world);
        server.databases.entry(name.to_owned()).or_insert(by);
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
        if !name.is_empty() && !server!(self, world).databases.contains_key(&name) {
            world
                .broken
                .push(format!("data is made in {name}, which does not exist"));
        }
        if !world.is_sandbox && self.variant.is_target() {
            if is_marked != name.is_empty() {
                world.broken.push(
                    "data is made unmarked on a server of others, or marked in a database of its own"
                        .to_owned(),
                );
            }
            if !world.may_make_data {
                world.broken.push("data is made without consent".to_owned());
            }
            if name.is_empty() && server!(self, world).tables.contains_key(&name) {
                world.broken.push("data of others is replaced".to_owned());
            }
        }
        let begun = Tables {
            dataset: plan.dataset,
            scale: plan.scale,
            partitions: plan.partitions,
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
            return Err(stopped(&mut world));
        }
        let whole = Tables {
            is_whole: true,
            ..begun
        };
        server!(self, world).tables.insert(name, whole);
        Ok(())
    }

    fn has_template(&mut self, name: &str) -> Result<bool, LabError> {
        let mut world = self.ask("looking for a template")?;
        Ok(server!(self, world).templates.contains_key(name))
    }

    fn keep_template(&mut self, name: &str) -> Result<(), LabError> {
        let mut world = self.ask("making a template")?;
        let server = server!(self, world);
        if !server.templates.contains_key(name)
            && let Some(tables) = server.tables.get(name).copied()
        {
            server.templates.insert(name.to_owned(), tables);
            if tables.loads > 0 {
                world
                    .broken
                    .push("what loads have used is kept as a template".to_owned());
            }
        }
        Ok(())
    }

    fn renew_from_template(&mut self, name: &str) -> Result<(), LabError> {
        let mut world = self.ask("making data from its template")?;
        server!(self, world).tables.remove(name);
        world.step();
        let server = server!(self, world);
        match server.templates.get(name).copied() {
            Some(tables) => _ = server.tables.insert(name.to_owned(), tables),
            None => world.broken.push("there is no template".to_owned()),
        }
        Ok(())
    }

    fn vacuum(&mut self, database: Option<&str>) -> Result<(), LabError> {
        let mut world = self.ask("a vacuum")?;
        if let Some(course) = &mut world.course {
            course.vacuumed = Some(database.map(str::to_owned));
        }
        Ok(())
    }

    fn has_files(&mut self, name: &str) -> Result<bool, LabError> {
        let mut world = self.ask("looking for files")?;
        Ok(server!(self, world).copies.get(name).is_some_and(Option::is_some))
    }

    fn save_files(&mut self, name: &str) -> Result<(), LabError> {
        drop(self.ask("saving files")?);
        self.while_stopped(|target, world| {
            let server = server!(target, world);
            let tables = server.tables.clone();
            server.copies.insert(name.to_owned(), None);
            world.step();
            server!(target, world)
                .copies
                .insert(name.to_owned(), Some(tables));
        });
        Ok(())
    }

    fn restore_files(&mut self, name: &str) -> Result<(), LabError> {
        let mut world = self.ask("restoring files")?;
        let Some(tables) = server!(self, world).copies.get(name).cloned().flatten() else {
            world
                .broken
                .push(format!("files of {name} are restored that were not saved"));
            return Ok(());
        };
        drop(world);
        self.while_stopped(|target, world| server!(target, world).tables = tables);
        Ok(())
    }
}

impl Caches for SimTarget {
    fn prewarm(&mut self, _: &Treatment, database: Option<&str>) -> Result<(), LabError> {
        let mut world = self.ask("reading data")?;
        if let Some(course) = &mut world.course {
            course.prewarmed = Some(database.map(str::to_owned));
        }
        Ok(())
    }

    fn checkpoint(&mut self, database: Option<&str>) -> Result<(), LabError> {
        let mut world = self.ask("a checkpoint")?;
        if let Some(course) = &mut world.course {
            course.checkpointed = Some(database.map(str::to_owned));
            course.servers_ready.insert(self.variant.beside);
        }
        Ok(())
    }
}

impl SimTarget {
    /// What must be so when a load begins.
    fn look(&self, world: &mut World, drive: &Drive<'_>) {
        let in_turns = drive.turns.as_ref().map(|turns| &turns.treatments);
        let mut broken = match in_turns {
            None => self.steps_missing(world, drive),
            Some(_) => Vec::new(),
        };
        let beside: Vec<&str> = drive
            .beside
            .iter()
            .map(|beside| beside.conninfo.database())
            .collect();
        let wanted = match in_turns {
            None => drive.treatment.variants(),
            Some(treatments) => treatments.iter().map(|(of, _)| of.variant()).collect(),
        };
        let wanted: Vec<String> = wanted.iter().skip(1).map(ServerVariant::label).collect();
        if beside != wanted {
            broken.push(format!("on {beside:?} beside the first, not {wanted:?}"));
        }
        for server in self.with_those_beside(world) {
            let own = match in_turns {
                None => Some((drive.treatment, drive.database)),
                Some(treatments) => {
                    let own = treatments.iter().find(|(of, _)| of.variant() == server.variant);
                    own.map(|(of, database)| (*of, database.as_deref()))
                }
            };
            // One that is not ready is without a turn.
            let Some((treatment, database)) = own else {
                continue;
            };
            broken.extend(server.other_settings(world, treatment));
            broken.extend(server.other_data(world, treatment, database));
            if !server!(server, world).runs {
                broken.push(format!("without the server \"{}\"", server.variant.label()));
            }
        }
        let name = &drive.treatment.name;
        world
            .broken
            .extend(broken.into_iter().map(|what| format!("{name} runs {what}")));
    }

    /// All servers whose settings are being changed, each with its journal.
    fn with_those_beside(&self, world: &World) -> Vec<SimTarget> {
        let open = world
            .journals
            .iter()
            .enumerate()
            .filter(|(_, journal)| journal.is_open);
        open.map(|(journal, of)| SimTarget {
            shared: self.shared.clone(),
            variant: of.scope.0.clone(),
            journal,
        })
        .collect()
    }

    fn steps_missing(&self, world: &mut World, drive: &Drive<'_>) -> Vec<String> {
        let treatment = drive.treatment;
        let mut broken = Vec::new();
        let mut must = |holds: bool, what: &str| {
            if !holds {
                broken.push(what.to_owned());
            }
        };
        let server = server!(self, world);
        must(server.runs, "without a server");
        must(!server.has_pooler, "beside a pooler of an earlier process");
        must(treatment.variant() == self.variant, "on another server");
        must(world.seeds.contains_key(&drive.seed), "with a seed of no trial");
        must(drive.files == FILES, "for another experiment");
        let Some(course) = &world.course else {
            return vec!["outside of a trial".to_owned()];
        };
        let database = Some(drive.database.map(str::to_owned));
        let restart = match (treatment.data.prewarm, world.restarts) {
            (Some(Prewarm::Cold), _) => Restart::Cold,
            (_, RestartPolicy::Always) => Restart::Always,
            (_, RestartPolicy::WhenNeeded) => Restart::WhenNeeded,
        };
        let vacuumed = database
            .clone()
            .filter(|_| treatment.data.reset == Some(Reset::Vacuum));
        // Of a switchback, that of another trial.
        must(
            course.error.is_none() || world.is_switched,
            "though a step has failed",
        );
        must(
            course.ignored().is_none() || world.is_switched,
            "though a setting did not take effect",
        );
        must(course.restart == Some(restart), "after another restart");
        must(course.vacuumed == vacuumed, "with or without a vacuum");
        must(course.prewarmed == database, "without its caches");
        must(course.checkpointed == database, "without a checkpoint");
        let servers = 0..treatment.servers();
        must(
            course.servers_ready == servers.collect(),
            "on other servers than were made ready",
        );
        must(course.drove.is_none(), "twice");
        broken
    }

    fn other_settings(&self, world: &mut World, treatment: &Treatment) -> Vec<String> {
        let server = OneOf {
            number: self.variant.beside + 1,
            of: treatment.servers(),
        };
        let mut expected: Vec<(Owner, &str, Option<String>)> = Vec::new();
        for setting in &treatment.settings {
            let owner = self.owner(&setting.knob);
            let knob = self.shared.catalogue.get(&setting.knob);
            let value = knob.map(|knob| knob.value_for(&setting.value, server)).ok();
            expected.push((owner, &setting.knob, value));
        }
        let touched = world.touched(self.journal);
        for (owner, knob, before) in &touched {
            if !expected.iter().any(|(_, named, _)| named == knob) {
                expected.push((owner.clone(), knob, before.clone()));
            }
        }
        let mut broken = Vec::new();
        for (owner, knob, value) in expected {
            let now = world.settings(&owner).get(knob);
            if now != value.as_ref() {
                broken.push(format!("with {knob} = {now:?}, not {value:?}"));
            }
        }
        broken
    }

    fn other_data(&self, world: &mut World, treatment: &Treatment, database: Option<&str>) -> Option<String> {
        let data = &treatment.data;
        let is_fresh = matches!(data.reset, Some(Reset::Recreate | Reset::Template | Reset::Copy));
        match server!(self, world).tables.get(&key(database)) {
            Some(tables) if !tables.is_whole => Some("on data that is not whole".to_owned()),
            Some(tables) if Some(tables.scale) != data.scale => Some("at another scale".to_owned()),
            Some(tables) if tables.partitions != data.partitions => Some("in other partitions".to_owned()),
            Some(tables) if is_fresh && tables.loads > 0 => {
                Some("on data that a load has changed".to_owned())
            }
            None if data_of(treatment).is_some() => Some("without data".to_owned()),
            _ => None,
        }
    }

    /// Somebody else changes a setting: one that the trial has set, or one that nobody has touched.
    fn change_by_someone_else(&self, world: &mut World, treatment: &Treatment) {
        const OTHERS: [&str; 5] = ["autovacuum", "jit", "vm.swappiness", "shared_buffers", "work_mem"];
        let touched = world.touched(self.journal);
        let is_asked = |knob: &str| {
            let mut names = treatment.settings.iter().map(|setting| &setting.knob);
            names.any(|name| name == knob) || touched.iter().any(|(_, name, _)| name == knob)
        };
        let set = treatment.settings.first().map(|setting| setting.knob.clone());
        let set = set.filter(|_| world.goes_wrong(world.odds.foreign, "foreign"));
        let other = OTHERS.into_iter().find(|knob| !is_asked(knob));
        let other = other.filter(|_| world.goes_wrong(world.odds.unasked, "unasked"));
        for knob in set.into_iter().chain(other.map(str::to_owned)) {
            world.change_by_someone_else(&self.owner(&knob), &knob);
        }
    }
}
