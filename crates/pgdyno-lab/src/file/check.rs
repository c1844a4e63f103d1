//! What must hold of an experiment file beyond its types: contradictions are found before anything
//! is touched.

mod event;
mod figures;
mod hosts;
mod search;
mod session;
mod sql;
mod study;
mod switchback;

use super::choices::{Design, Instances, Reset, StopRule};
use super::expressions::check_conditions;
use super::lines::line_of;
use super::parts::{DataPart, ExperimentFile, GuardPart, LoadPart, ServerPart, StepPart, clock};
use super::place::{LOOPBACK, Place};
use super::{FileError, settings_of};
use crate::foreign::programs;
use crate::plan::{REFERENCE, STEP, measure_s};
pub use hosts::LOAD_HOSTS_MAX;
use pgdyno_engine::{BATCH_MAX, CLIENTS_MAX, Rate, duration};
use pgdyno_host::size_bytes;
use pgdyno_knobs::Catalogue;
use pgdyno_record::BLOCKS_MAX;
use pgdyno_sandbox::{COMMANDS_EXPECTED, Listen, MAJORS, Manager, NetworkPlan, STANDBYS_MAX};
use pgdyno_workload::Workload;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use toml::Table;

/// Limits on everything.
/// Beyond this a number is no longer exact in the page's JavaScript.
pub(crate) const SEED_MAX: u64 = (1 << 53) - 1;
const STEPS_MAX: usize = 100;
const FACTORS_MAX: usize = 40;
const LEVELS_MAX: usize = 100;
/// Looks beyond these are not worked out.
const LOOKS_MAX: u32 = 500;
const SECONDS_MAX: f64 = 86_400.0;
const CYCLES_MAX: u32 = 100;
/// More servers on one host are a mistake in the file.
const SERVERS_MAX: u32 = 64;
const NO_PASSWORD: &str = "a password must not be in a file that is stored with the results and shown in reports; put it into \
     ~/.pgpass, into PGPASSWORD of the environment (commands get it too), or into a file that a command reads";

/// The loads of a file's treatments.
fn loads<'f>(file: &'f ExperimentFile, parts: &'f [StepPart]) -> Vec<&'f LoadPart> {
    let all = [&file.load]
        .into_iter()
        .chain(parts.iter().map(|part| &part.load));
    all.filter(|load| load.workload.is_some() || load.script.is_some() || load.program.is_some())
        .collect()
}

/// The metric that decides where the file names none.
pub(super) fn usual_metric(file: &ExperimentFile) -> &'static str {
    let parts = file.parts();
    let loads = loads(file, &parts);
    let is_job = |load: &&LoadPart| load.program.as_deref() == Some("job");
    match !loads.is_empty() && loads.iter().all(is_job) {
        true => "job_s",
        false => "tps",
    }
}

/// A file that is being checked.
pub(super) struct Check<'a> {
    pub(super) file: &'a ExperimentFile,
    pub(super) text: &'a str,
    pub(super) path: &'a Path,
    pub(super) catalogue: &'a Catalogue,
}

type Checked = Result<(), FileError>;

impl Check<'_> {
    pub(super) fn all(&self) -> Checked {
        self.numbers()?;
        self.target()?;
        self.load(&self.file.load, &["load"])?;
        self.server(&self.file.server, &["server"])?;
        self.settings(&self.file.base, &["base"])?;
        self.steps()?;
        self.factors()?;
        self.design()?;
        self.switchback()?;
        self.search()?;
        self.events()?;
        self.hosts()?;
        self.scope()?;
        self.instances()?;
        self.exclude()?;
        self.loads_whole()?;
        self.sql()?;
        self.bounds()?;
        self.figures()?;
        self.study()?;
        check_conditions(self.file, self.catalogue).map_err(|(keys, message)| {
            self.wrong(&keys.iter().map(String::as_str).collect::<Vec<_>>(), message)
        })
    }

    fn wrong(&self, keys: &[&str], message: String) -> FileError {
        FileError::Wrong {
            path: self.path.to_owned(),
            line: line_of(self.text, keys),
            message,
        }
    }

    fn must(&self, holds: bool, keys: &[&str], message: impl FnOnce() -> String) -> Checked {
        if holds {
            Ok(())
        } else {
            Err(self.wrong(keys, message()))
        }
    }

    fn numbers(&self) -> Checked {
        let file = self.file;
        let (blocks, confidence, smallest) = (file.blocks, file.confidence, file.smallest_effect);
        self.must((1..=BLOCKS_MAX).contains(&blocks), &["blocks"], || {
            format!("blocks = {blocks}: expected 1 to {BLOCKS_MAX}")
        })?;
        let seed = file.seed.unwrap_or(0);
        self.must(seed <= SEED_MAX, &["seed"], || {
            format!("seed: expected at most {SEED_MAX}")
        })?;
        self.must(confidence > 0.5 && confidence < 1.0, &["confidence"], || {
            format!("confidence = {confidence}: expected a number above 0.5 and below 1, e.g. 0.95")
        })?;
        self.must(smallest > 0.0 && smallest < 1.0, &["smallest_effect"], || {
            format!("smallest_effect = {smallest}: expected a number above 0 and below 1, e.g. 0.02")
        })?;
        let may_be_futile = file.stop == StopRule::WhenGainDecided;
        let first_of = |blocks: u32| {
            let first = pgdyno_judge::first_look(blocks as usize, may_be_futile);
            u32::try_from(first).unwrap_or(u32::MAX)
        };
        let first = first_of(blocks);
        self.must(
            file.stop == StopRule::AfterBlocks || blocks > first && blocks <= LOOKS_MAX,
            &["stop"],
            || {
                let stop = file.stop.name();
                let least = (1..LOOKS_MAX).find(|&blocks| first_of(blocks) < blocks).unwrap_or(LOOKS_MAX);
                format!(
                    "stop = \"{stop}\" needs blocks = {least} to {LOOKS_MAX} (the first evaluation is after block {first}), found {blocks}"
                )
            },
        )
    }

    fn target(&self) -> Checked {
        let target = &self.file.target;
        self.must(
            target.sandbox.is_none() || target.connection.is_none(),
            &["target", "connection"],
            || "a target is either a sandbox or a connection".into(),
        )?;
        self.must(
            target.create.is_none() || target.sandbox.is_some(),
            &["target", "create"],
            || "only a sandbox is made: name it with sandbox = \"...\"".into(),
        )?;
        if let Some(create) = &target.create {
            let keys = ["target", "create"];
            let count = create.standbys.unwrap_or(1);
            self.must((1..=STANDBYS_MAX).contains(&count), &keys, || {
                format!("standbys = {count}: expected 1 to {STANDBYS_MAX}")
            })?;
            if let Some(Err(why)) = create.listen.as_ref().map(|listen| listen.parse::<Listen>()) {
                return Err(self.wrong(&keys, format!("listen: {why}")));
            }
            self.must(create.standbys.is_some() || !create.sync, &keys, || {
                "sync = true needs standbys: give their number, e.g. standbys = 1".into()
            })?;
        }
        self.must(
            !target.connection.as_deref().is_some_and(holds_password),
            &["target", "connection"],
            || NO_PASSWORD.into(),
        )?;
        let commands = [
            ("restart_command", target.restart_command.as_deref()),
            ("stop_command", target.stop_command.as_deref()),
            ("start_command", target.start_command.as_deref()),
        ];
        let [restart, stop, start] = commands.map(|(_, command)| command);
        self.must(Manager::given(restart, stop, start).is_ok(), &["target"], || {
            format!("{COMMANDS_EXPECTED}: restart_command, or stop_command and start_command")
        })?;
        commands
            .iter()
            .try_for_each(|(name, command)| self.no_password(*command, &["target", name]))
    }

    fn instances(&self) -> Checked {
        let file = self.file;
        if file.target.instances == Instances::Once {
            return Ok(());
        }
        let (keys, parts) = (["target", "instances"], file.parts());
        let is_own = |server: &ServerPart| {
            let has_place = server.places().iter().any(|(_, place)| place.is_some());
            let is_other = server.version.is_some() || server.bin.is_some() || server.instance.is_some();
            is_other || server.network.is_some() || has_place
        };
        self.must(is_own(&file.server) || parts.iter().any(|part| is_own(&part.server)), &keys, || {
            "instances = \"per-block\" needs a treatment with its own server: set server.version, bin, instance, data_on, wal_on, temp_on or \
             network"
                .into()
        })?;
        let copies = |data: &DataPart| data.reset == Some(Reset::Copy);
        self.must(!copies(&file.data) && !parts.iter().any(|part| copies(&part.data)), &keys, || {
            "instances = \"per-block\" makes new files, and reset = \"copy\" restores those of an older instance: take one of the two".into()
        })
    }

    /// A command is stored and shown as it is.
    fn no_password(&self, text: Option<&str>, keys: &[&str]) -> Checked {
        let holds = text.is_some_and(pgdyno_server::command_may_hold_password);
        self.must(!holds, keys, || NO_PASSWORD.into())
    }

    fn settings(&self, table: &Table, keys: &[&str]) -> Checked {
        for setting in settings_of(table) {
            if let Err(error) = self.catalogue.check(&setting) {
                let mut keys = keys.to_vec();
                keys.extend(setting.knob.split('.'));
                return Err(self.wrong(&keys, error.to_string()));
            }
        }
        Ok(())
    }

    /// What holds of each key by itself, and that a key of open loops is not for nothing.
    fn load(&self, load: &LoadPart, keys: &[&str]) -> Checked {
        let at = |key: &'static str| [keys, &[key]].concat();
        for (key, value, least, most) in [
            ("warmup_s", load.warmup_s, 0.0, SECONDS_MAX),
            ("measure_s", load.measure_s, 1.0, SECONDS_MAX),
            ("batch_ms", load.batch_ms, 0.0, BATCH_MAX.as_secs_f64() * 1e3),
            ("think_ms", load.think_ms, 0.0, SECONDS_MAX * 1e3),
            ("latency_limit_ms", load.latency_limit_ms, 0.0, SECONDS_MAX * 1e3),
        ] {
            let value = value.unwrap_or(least);
            self.must((least..=most).contains(&value), &at(key), || {
                let unit = if key.ends_with("_ms") { "ms" } else { "seconds" };
                format!("{key} = {value}: expected {least} to {most} {unit}")
            })?;
        }
        for (key, is_given) in [
            ("spacing", load.spacing.is_some()),
            ("batch_ms", load.batch_ms.is_some()),
        ] {
            self.must(!is_given || self.has_rate(), &at(key), || {
                format!("{key} applies to open loops only: add a rate, e.g. rate = \"5000\"")
            })?;
        }
        let clients = load.clients.unwrap_or(1);
        self.must((1..=CLIENTS_MAX).contains(&clients), &at("clients"), || {
            format!("clients = {clients}: expected 1 to {CLIENTS_MAX}")
        })?;
        let cycles = load.checkpoint_cycles.unwrap_or(1);
        self.must(
            (1..=CYCLES_MAX).contains(&cycles),
            &at("checkpoint_cycles"),
            || format!("checkpoint_cycles = {cycles}: expected 1 to {CYCLES_MAX}"),
        )?;
        if let Some(Err(message)) = load.rate.as_ref().map(|rate| rate.parse::<Rate>()) {
            return Err(self.wrong(&at("rate"), message));
        }
        for (key, command) in [
            ("command", &load.command),
            ("prepare", &load.prepare),
            ("cleanup", &load.cleanup),
        ] {
            self.no_password(command.as_deref(), &at(key))?;
        }
        if let Some(program) = &load.program {
            let known = programs();
            self.must(known.contains(program), &at("program"), || {
                format!(
                    "no program \"{program}\" is known as a load; known are {}",
                    known.join(", ")
                )
            })?;
        }
        self.must(load.kinds() < 2, keys, || {
            "a load is a workload, a script or a program: only one of them".into()
        })
    }

    /// Whether any load of the file is an open loop.
    fn has_rate(&self) -> bool {
        let (steps, levels) = (&self.file.step, self.file.levels());
        let parts = steps.iter().chain(&levels).map(|step| &step.load);
        parts.chain([&self.file.load]).any(|load| load.rate.is_some())
    }

    fn server(&self, server: &ServerPart, keys: &[&str]) -> Checked {
        let at = |key: &'static str| [keys, &[key]].concat();
        let wrong = |key: &'static str, message: String| self.wrong(&at(key), format!("{key}: {message}"));
        for (key, place) in server.places() {
            if let Some(Err(message)) = place.map(Place::named) {
                return Err(wrong(key, message));
            }
        }
        let network = server.network.as_deref().filter(|network| *network != LOOPBACK);
        if let Some(Err(message)) = network.map(NetworkPlan::named) {
            return Err(wrong("network", format!("{message}, or \"{LOOPBACK}\"")));
        }
        self.no_password(server.neighbour.as_deref(), &at("neighbour"))?;
        if let Some(Err(message)) = server.neighbour_memory.as_deref().map(size_bytes) {
            return Err(wrong("neighbour_memory", message));
        }
        if let Some(version) = server.version.filter(|version| !MAJORS.contains(version)) {
            let (first, last) = (MAJORS.start(), MAJORS.end());
            return Err(wrong("version", format!("{version}: expected {first} to {last}")));
        }
        self.must(
            server.version.is_none() || server.bin.is_none(),
            &at("bin"),
            || "bin names programs instead of a version: take one of the two".into(),
        )?;
        let is_absolute = server
            .bin
            .as_deref()
            .is_none_or(|bin| Path::new(bin).is_absolute());
        self.must(is_absolute, &at("bin"), || "expected an absolute path".into())?;
        let count = server.count.unwrap_or(1);
        self.must((1..=SERVERS_MAX).contains(&count), &at("count"), || {
            format!("count = {count}: expected 1 to {SERVERS_MAX}")
        })?;
        let instance = server.instance.unwrap_or(1);
        self.must((1..=SERVERS_MAX).contains(&instance), &at("instance"), || {
            format!("instance = {instance}: expected 1 to {SERVERS_MAX}")
        })?;
        let size = server.pool_size.unwrap_or(1);
        self.must((1..=CLIENTS_MAX).contains(&size), &at("pool_size"), || {
            format!("pool_size = {size}: expected 1 to {CLIENTS_MAX}")
        })
    }

    fn steps(&self) -> Checked {
        let steps = &self.file.step;
        self.must(steps.len() <= STEPS_MAX, &["step"], || {
            format!("{} steps: expected at most {STEPS_MAX}", steps.len())
        })?;
        for (i, step) in steps.iter().enumerate() {
            let number = i.to_string();
            let taken = step.name == REFERENCE || steps[..i].iter().any(|other| other.name == step.name);
            self.must(!taken, &["step", &number, "name"], || {
                format!("the name \"{}\" is taken", step.name)
            })?;
            self.must(step.sets_something(), &["step", &number, "settings"], || {
                format!("the step \"{}\" sets nothing", step.name)
            })?;
            self.settings(&step.settings, &["step", &number, "settings"])?;
            self.load(&step.load, &["step", &number, "load"])?;
            self.server(&step.server, &["step", &number, "server"])?;
        }
        Ok(())
    }

    fn factors(&self) -> Checked {
        let factors = &self.file.factor;
        self.must(factors.len() <= FACTORS_MAX, &["factor"], || {
            format!("{} factors: expected at most {FACTORS_MAX}", factors.len())
        })?;
        let mut owners: BTreeMap<String, &str> = BTreeMap::new();
        for (i, factor) in factors.iter().enumerate() {
            let number = i.to_string();
            let taken = factor.name == STEP || factors[..i].iter().any(|other| other.name == factor.name);
            self.must(!taken, &["factor", &number, "name"], || {
                format!("the name \"{}\" is taken", factor.name)
            })?;
            let levels = factor
                .levels()
                .map_err(|error| self.wrong(&["factor", &number], error.to_string()))?;
            self.must(
                (2..=LEVELS_MAX).contains(&levels.len()),
                &["factor", &number],
                || {
                    format!(
                        "the factor \"{}\" has {} level(s): expected 2 to {LEVELS_MAX}; a single value belongs into [base] or [load]",
                        factor.name,
                        levels.len()
                    )
                },
            )?;
            let mut keys = BTreeSet::new();
            for (j, level) in levels.iter().enumerate() {
                let inner = j.to_string();
                let place: &[&str] = match factor.level.is_empty() {
                    true => &["factor", &number, "values"],
                    false => &["factor", &number, "level", &inner],
                };
                let taken = levels[..j].iter().any(|other| other.name == level.name);
                self.must(!taken, place, || {
                    format!("the level \"{}\" is there twice", level.name)
                })?;
                self.settings(&level.settings, &[place, &["settings"]].concat())?;
                self.load(&level.load, &[place, &["load"]].concat())?;
                self.server(&level.server, &[place, &["server"]].concat())?;
                keys.extend(level.keys());
            }
            for key in keys {
                if let Some(other) = owners.insert(key.clone(), &factor.name) {
                    let message = format!(
                        "\"{other}\" and \"{}\" both set {key}: one factor per knob or key",
                        factor.name
                    );
                    return Err(self.wrong(&["factor", &number], message));
                }
            }
        }
        Ok(())
    }

    fn design(&self) -> Checked {
        let file = self.file;
        let (steps, factors) = (file.step.len(), file.factor.len());
        let name = file.design.name();
        self.must(steps == 0 || factors == 0, &["factor"], || {
            "an experiment has steps or factors, not both".into()
        })?;
        let (holds, expected) = match file.design {
            Design::Cumulative => (steps > 0, "1 to 100 [[step]] parts"),
            // What events change is compared with what was before, in each trial.
            Design::OneAtATime if !file.event.is_empty() => (true, ""),
            Design::OneAtATime | Design::Switchback => (steps + factors > 0, "[[step]] or [[factor]] parts"),
            Design::AB => (steps == 1, "one [[step]] part"),
            Design::AA => (
                steps + factors == 0,
                "neither steps nor factors: it holds the reference against itself",
            ),
            Design::FullFactorial | Design::Ladder | Design::Search => (factors > 0, "[[factor]] parts"),
            Design::Fractional | Design::Screening => (factors > 1, "two or more [[factor]] parts"),
        };
        self.must(holds, &["design"], || {
            format!("design = \"{name}\" with {steps} steps and {factors} factors: expected {expected}")
        })?;
        if matches!(file.design, Design::Fractional | Design::Screening) {
            for (i, factor) in file.factor.iter().enumerate() {
                let levels = factor.levels().map_or(0, |levels| levels.len());
                self.must(
                    levels == 2 && !factor.condition,
                    &["factor", &i.to_string()],
                    || {
                        format!(
                            "design = \"{name}\" needs two levels of each factor; \"{}\" has {levels}",
                            factor.name
                        )
                    },
                )?;
            }
        }
        let judges = !matches!(
            file.design,
            Design::Ladder | Design::Fractional | Design::Screening | Design::Search
        );
        self.must(judges || file.stop == StopRule::AfterBlocks, &["stop"], || {
            format!("design = \"{name}\" decides nothing after a block; leave stop at \"after-blocks\"")
        })
    }

    fn exclude(&self) -> Checked {
        for (i, levels) in self.file.exclude.iter().enumerate() {
            let entry = ["exclude", &i.to_string()];
            self.must(!levels.is_empty(), &entry, || {
                "name levels that are not tried together, such as buffers = \"4GB\"".into()
            })?;
            self.must(!levels.contains_key(STEP), &entry, || {
                "it names a step, but only levels of factors are combined; remove the step".into()
            })?;
            for (factor, level) in levels {
                self.known_level(factor, level, &["exclude", &i.to_string(), factor])?;
            }
        }
        Ok(())
    }

    fn known_level(&self, factor: &str, level: &str, keys: &[&str]) -> Checked {
        let known: Vec<String> = if factor == STEP {
            let names = self.file.step.iter().map(|step| step.name.clone());
            names.chain([REFERENCE.to_owned()]).collect()
        } else {
            let found = self.file.factor.iter().find(|other| other.name == factor);
            let names = |factor: &super::FactorPart| factor.levels().unwrap_or_default();
            match found {
                Some(found) => names(found).into_iter().map(|level| level.name).collect(),
                None => {
                    let names: Vec<&str> = self.file.factor.iter().map(|f| f.name.as_str()).collect();
                    let message = format!("there is no factor \"{factor}\"; known are {}", names.join(", "));
                    return Err(self.wrong(keys, message));
                }
            }
        };
        self.must(known.iter().any(|name| name == level), keys, || {
            format!(
                "\"{factor}\" has no level \"{level}\"; it has {}",
                known.join(", ")
            )
        })
    }

    /// What a treatment's load is in the end: each must be whole.
    fn loads_whole(&self) -> Checked {
        let file = self.file;
        let whole = [("load".to_owned(), file.load.clone())];
        let parts = file.parts().into_iter().map(|part| {
            (
                format!("the load of \"{}\"", part.name),
                part.load.over(&file.load),
            )
        });
        // What a factor gives is given to all treatments.
        let levels = file.levels();
        let given = |is: fn(&LoadPart) -> bool| levels.iter().any(|level| is(&level.load));
        let any_scale =
            file.data.scale.is_some() || file.parts().iter().any(|part| part.data.scale.is_some());
        for (what, load) in whole.into_iter().chain(parts) {
            self.must(load.kinds() > 0 || given(|l| l.kinds() > 0), &["load"], || {
                format!("{what} names neither workload nor script nor program")
            })?;
            let is_job = load.program.as_deref() == Some("job");
            let clients = is_job || load.clients.is_some() || given(|l| l.clients.is_some());
            self.must(clients, &["load"], || format!("{what} has no clients"))?;
            let measure = is_job || load.measure_s.is_some() || given(|l| l.measure_s.is_some());
            self.must(measure, &["load"], || format!("{what} has no measure_s"))?;
            let command = load.command.is_some() || given(|l| l.command.is_some());
            self.must(!is_job || command, &["load"], || {
                format!("{what} is a job: command = \"...\" says what is run")
            })?;
            let reads = load.workload.and_then(Workload::dataset).is_some();
            self.must(any_scale || !reads, &["data"], || {
                format!("{what} reads data: [data] scale = ... says how much")
            })?;
            let has_set = any_scale && file.data.of_load(&load).is_some();
            self.must(has_set || !self.has_sql(), &["data"], || {
                format!("sql runs after a data set is created, and {what} has none: set a scale, and a load that reads pgdyno's data")
            })?;
        }
        Ok(())
    }

    fn bounds(&self) -> Checked {
        let (guard, budget) = (&self.file.guard, &self.file.budget);
        for (key, text) in [
            ("memory_available_min", &guard.memory_available_min),
            ("disk_free_min", &guard.disk_free_min),
        ] {
            if let Some(Err(message)) = text.as_deref().map(size_bytes) {
                return Err(self.wrong(&["guard", key], format!("{key}: {message}")));
            }
        }
        for (key, value) in [
            ("p99_ms_max", guard.p99_ms_max),
            ("error_ratio_max", guard.error_ratio_max),
        ] {
            let value = value.unwrap_or(1.0);
            self.must(value > 0.0 && value.is_finite(), &["guard", key], || {
                format!("{key} = {value}: expected more than 0")
            })?;
        }
        let (slowdown, least) = (guard.slowdown_max.unwrap_or(0.5), GuardPart::IN_A_ROW);
        self.must(
            slowdown > 0.0 && slowdown < 1.0,
            &["guard", "slowdown_max"],
            || format!("slowdown_max = {slowdown}: expected a share of the reference's throughput above 0 and below 1, e.g. 0.2"),
        )?;
        let parts = self.file.parts();
        if guard.slowdown_max.is_some() {
            let design = self.file.design;
            let has_none = matches!(design, Design::Fractional | Design::Screening | Design::Ladder);
            self.must(!has_none, &["guard", "slowdown_max"], || {
                format!(
                    "slowdown_max compares with a reference, and treatments of design = \"{}\" have none: such a guard would never act",
                    design.name()
                )
            })?;
            // What a factor gives is given to all treatments.
            let is_given = self
                .file
                .levels()
                .iter()
                .any(|level| level.load.measure_s.is_some());
            let of_all = (!is_given).then(|| measure_s(&self.file.load));
            let of_parts = parts.iter().filter_map(|part| part.load.measure_s);
            let measured_s = of_parts.chain(of_all).fold(f64::INFINITY, f64::min);
            self.must(measured_s >= f64::from(least), &["guard", "slowdown_max"], || {
                format!(
                    "slowdown_max acts after {least} measured seconds, and a trial measures {measured_s} s: set its measure_s to \
                     {least} or more"
                )
            })?;
        }
        let is_foreign =
            self.file.load.program.is_some() || parts.iter().any(|part| part.load.program.is_some());
        self.must(!is_foreign || !guard.is_by_second(), &["guard"], || {
            "another program's load has no figures by the second: such a guard would never act".into()
        })?;
        if let Some(Err(message)) = budget.time.as_deref().map(duration) {
            return Err(self.wrong(&["budget", "time"], message));
        }
        if let Some(window) = &self.file.window {
            for (key, text) in [("from", &window.from), ("to", &window.to)] {
                self.must(clock(text).is_some(), &["window", key], || {
                    format!("{key} = \"{text}\": expected a time of the day, e.g. \"22:00\"")
                })?;
            }
            let has_length = window.minutes().is_some_and(|(from, to)| from != to);
            self.must(has_length, &["window"], || "the window has no length".into())?;
        }
        Ok(())
    }
}

/// What cannot be read as a connection string may hold one too.
fn holds_password(connection: &str) -> bool {
    let config = connection.parse::<pgdyno_server::postgres::Config>().ok();
    config.is_some_and(|config| config.get_password().is_some())
        || pgdyno_server::may_hold_password(connection)
}
