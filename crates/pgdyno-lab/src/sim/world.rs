//! The simulated world: all that survives when the process that runs an experiment is killed.

use super::course::Course;
use crate::error::{LabError, ProviderError};
use crate::file::RestartPolicy;
use crate::plan::ServerVariant;
use pgdyno_knobs::{Outcome, Restored};
use pgdyno_record::{ErrorClass, StoredExperiment};
use pgdyno_workload::{Dataset, Partitions};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Begins the names of the experiment's files: it is number 0, begun at 0.
pub(super) const FILES: &str = "0-0";

/// The payload of a kill.
pub(super) struct Killed;
/// The payload of a panic.
pub(super) struct Panicked;

/// What somebody else sets.
pub(super) const SOMEBODYS: &str = "somebody's";

/// Settings by knob; those that are not in it have their default.
type Settings = BTreeMap<String, String>;

/// What is changed: the host, or one of the servers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    Host,
    Server(ServerVariant),
}

/// A line of a journal: a knob with the value from before, and each value that was set.
#[derive(Debug, Clone)]
pub(super) struct Line {
    owner: Owner,
    knob: String,
    before: Option<String>,
    ours: Vec<Option<String>>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Journal {
    pub(super) lines: Vec<Line>,
    pub(super) is_open: bool,
    /// The server whose changes it has, and whether those of the host too.
    pub(super) scope: (ServerVariant, bool),
}

/// Tables of one database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tables {
    pub(super) dataset: Dataset,
    pub(super) scale: u32,
    pub(super) partitions: Option<Partitions>,
    /// Whether making them came to its end.
    pub(super) is_whole: bool,
    /// The journal that drops them.
    pub(super) marked_by: Option<usize>,
    /// Loads that have run on them since they were made.
    pub(super) loads: u32,
}

#[derive(Debug, Clone, Default)]
pub(super) struct SimServer {
    pub(super) runs: bool,
    pub(super) settings: Settings,
    /// By database; the target's own is "".
    pub(super) tables: BTreeMap<String, Tables>,
    /// Those that were made, each with the journal that drops it, if one does.
    pub(super) databases: BTreeMap<String, Option<usize>>,
    pub(super) templates: BTreeMap<String, Tables>,
    /// Copies of files; an unfinished one is `None`.
    pub(super) copies: BTreeMap<String, Option<BTreeMap<String, Tables>>>,
    pub(super) has_pooler: bool,
}

/// How likely things go wrong, each per occasion.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Odds {
    /// A treatment's settings keep the server from starting.
    pub(super) bad_value: f64,
    /// A setting does not take effect.
    pub(super) ignored: f64,
    /// A server dies in a trial.
    pub(super) dies: f64,
    /// A server cannot be reached or made.
    pub(super) no_server: f64,
    /// A step takes minutes.
    pub(super) late: f64,
    /// Somebody else changes a setting that the trial has set.
    pub(super) foreign: f64,
    /// Somebody else changes a setting that no treatment has named so far.
    pub(super) unasked: f64,
    /// A treatment cannot be tested.
    pub(super) not_tested: f64,
    /// A question about data fails.
    pub(super) data: f64,
    /// The cross-check finds that the counts disagree.
    pub(super) disagrees: f64,
    /// A setting cannot be restored when the run ends.
    pub(super) not_restored: f64,
    /// A trial is far off, flagged or not.
    pub(super) outlier: f64,
    /// A treatment commits nothing: a guard of response times acts, if there is one.
    pub(super) slow: f64,
    /// Most transactions of a treatment fail: a guard of errors acts, if there is one.
    pub(super) failing: f64,
    /// The host runs short of something with a treatment.
    pub(super) shortage: f64,
    /// A load has measured enough before its time.
    pub(super) enough: f64,
    /// The store cannot be written or read.
    pub(super) store: f64,
    /// The store has the trial, and reports an error.
    pub(super) unsure: f64,
    /// Restoring, leaving or ending fails.
    pub(super) undoing: f64,
    /// Facts cannot be read, or a crashed server does not start again.
    pub(super) server: f64,
    /// The program itself fails in a load.
    pub(super) panics: f64,
}

impl Odds {
    /// Those of faults that another process does not meet again.
    pub(super) fn by_occasion(&mut self) -> [&mut f64; 11] {
        [
            &mut self.no_server,
            &mut self.late,
            &mut self.foreign,
            &mut self.unasked,
            &mut self.data,
            &mut self.not_restored,
            &mut self.store,
            &mut self.unsure,
            &mut self.undoing,
            &mut self.server,
            &mut self.panics,
        ]
    }
}

/// A trial that began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begun {
    pub(super) minute_of_day: u32,
    /// What the trials before it have taken, and how many they are.
    pub(super) spent_s: f64,
    pub(super) trials: usize,
}

/// How throughput answers to treatments, and how it varies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Surface {
    /// Transactions per second of the reference.
    pub(super) tps: f64,
    /// Largest effect of a treatment, as a ratio.
    pub(super) effect: f64,
    /// Spread between trials, as a ratio.
    pub(super) noise: f64,
    /// What of a trial's noise the next one keeps.
    pub(super) memory: f64,
    /// Change over a hundred trials, as a ratio.
    pub(super) drift: f64,
}

pub(super) struct World {
    pub(super) seed: u64,
    pub(super) odds: Odds,
    pub(super) surface: Surface,
    /// Whether the target is a sandbox.
    pub(super) is_sandbox: bool,
    pub(super) ms: u64,
    pub(super) host: Settings,
    pub(super) servers: BTreeMap<ServerVariant, SimServer>,
    /// Servers that were removed before the experiment's end.
    pub(super) removed: usize,
    pub(super) journals: Vec<Journal>,
    pub(super) stored: Vec<StoredExperiment>,
    /// Trials that the store has room for.
    pub(super) room: usize,
    /// Where each seed of a trial belongs: block and position.
    pub(super) seeds: BTreeMap<u64, (u32, u32)>,
    /// Loads that were driven, in order: seed and treatment.
    pub(super) drives: Vec<(u64, String)>,
    /// Knobs that somebody else has changed.
    pub(super) foreign: BTreeSet<(Owner, String)>,
    /// Promises that were broken.
    pub(super) broken: Vec<String>,
    /// The hours of the file, in minutes of the day.
    pub(super) window: Option<(u32, u32)>,
    /// Whether treatments take turns within a load.
    pub(super) is_switched: bool,
    /// When the file needs restarts.
    pub(super) restarts: RestartPolicy,
    /// Whether the process may make data on a server of others.
    pub(super) may_make_data: bool,
    /// The trial that runs.
    pub(super) course: Option<Course>,
    /// All trials that began.
    pub(super) begun: Vec<Begun>,
    /// What the trials so far have taken, as far as a process knows.
    pub(super) spent_s: f64,
    /// What each stored trial has taken.
    pub(super) took_s: Vec<f64>,
    /// The server that the process has gone to.
    pub(super) at: Vec<ServerVariant>,
    /// The first that has failed outside of a trial, so that the process may end.
    pub(super) excuse: Option<String>,
    pub(super) has_panicked: bool,
    /// Whether something could not be restored.
    pub(super) is_unrestored: bool,
    /// The outcomes of restoring that the process was given.
    pub(super) restored: Vec<Restored>,
    /// Calls of ports so far, over all processes.
    pub(super) steps: u64,
    /// The process is killed at this step.
    pub(super) kill_at: Option<u64>,
    /// The processes after it are killed after so many steps of their own, the last first.
    pub(super) kills: Vec<u64>,
    /// Ctrl-C comes at this step.
    pub(super) interrupt_at: Option<u64>,
    pub(super) stop: Arc<AtomicBool>,
    /// Number of the process that runs: some faults go away by themselves.
    pub(super) process: u64,
    is_dead: bool,
    before: (Settings, BTreeMap<ServerVariant, Settings>),
}

/// SplitMix64's finaliser: every bit of the result depends on every bit of `x`.
fn mixed(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Uniform in [0, 1), from a seed and a key: the same occasion has the same fate, however often it
/// is repeated.
pub(super) fn drawn(seed: u64, what: &str, key: &str) -> f64 {
    let mut state = mixed(seed);
    for byte in what.bytes().chain([0]).chain(key.bytes()) {
        state = mixed(state ^ u64::from(byte)).wrapping_add(0x9E37_79B9_7F4A_7C15);
    }
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    let unit = (mixed(state) >> 11) as f64;
    unit / (1u64 << 53) as f64
}

/// An error of a simulated port.
pub(super) fn failure(what: &str) -> LabError {
    LabError::ServerVariant {
        what: what.to_owned(),
        source: ProviderError {
            text: "simulated".into(),
            class: ErrorClass::Failed,
            hint: None,
        },
    }
}

impl World {
    pub(super) fn new(seed: u64, ms: u64, is_sandbox: bool, odds: Odds, surface: Surface) -> World {
        let host = Settings::from([("vm.swappiness".to_owned(), "60".to_owned())]);
        let target = SimServer {
            runs: true,
            settings: Settings::from([("work_mem".to_owned(), "5MB".to_owned())]),
            ..SimServer::default()
        };
        let before = (
            host.clone(),
            BTreeMap::from([(ServerVariant::default(), target.settings.clone())]),
        );
        World {
            seed,
            odds,
            surface,
            is_sandbox,
            ms,
            window: None,
            is_switched: false,
            restarts: RestartPolicy::Always,
            may_make_data: true,
            course: None,
            begun: Vec::new(),
            spent_s: 0.0,
            took_s: Vec::new(),
            at: Vec::new(),
            excuse: None,
            has_panicked: false,
            is_unrestored: false,
            restored: Vec::new(),
            kills: Vec::new(),
            host,
            servers: BTreeMap::from([(ServerVariant::default(), target)]),
            removed: 0,
            journals: Vec::new(),
            stored: Vec::new(),
            room: usize::MAX,
            seeds: BTreeMap::new(),
            drives: Vec::new(),
            foreign: BTreeSet::new(),
            broken: Vec::new(),
            steps: 0,
            kill_at: None,
            interrupt_at: None,
            stop: Arc::default(),
            process: 0,
            is_dead: false,
            before,
        }
    }

    /// Whether something happens that has these odds.
    pub(super) fn happens(&self, odds: f64, what: &str, key: &str) -> bool {
        odds > 0.0 && drawn(self.seed, what, key) < odds
    }

    /// A fault outside of the trials lets the process end; one in a trial is the trial's.
    pub(super) fn fail(&mut self, what: &str) -> LabError {
        let error = failure(what);
        match &mut self.course {
            Some(course) => _ = course.error.get_or_insert_with(|| error.to_string()),
            None => self.excuse(&error),
        }
        error
    }

    pub(super) fn excuse(&mut self, error: &dyn std::error::Error) {
        self.excuse.get_or_insert_with(|| error.to_string());
    }

    /// Whether something goes wrong on this occasion.
    pub(super) fn goes_wrong(&self, odds: f64, what: &str) -> bool {
        odds > 0.0 && self.happens(odds, what, &format!("{}/{}", self.process, self.steps))
    }

    /// An error on some occasions.
    pub(super) fn fault(&mut self, odds: fn(&Odds) -> f64, what: &str) -> Result<(), LabError> {
        match self.goes_wrong(odds(&self.odds), what) {
            true => Err(self.fail(what)),
            false => Ok(()),
        }
    }

    pub(super) fn minute_of_day(&self) -> u32 {
        u32::try_from(self.ms / 60_000 % 1440).unwrap_or_default()
    }

    /// One step of the process: time passes, and it may be killed here.
    pub(super) fn step(&mut self) {
        if self.is_dead {
            resume_unwind(Box::new(Killed));
        }
        self.steps += 1;
        self.ms += 7;
        if self.kill_at == Some(self.steps) {
            self.is_dead = true;
            resume_unwind(Box::new(Killed));
        }
        if self.interrupt_at == Some(self.steps) {
            self.stop.store(true, Ordering::Relaxed);
        }
        if self.goes_wrong(self.odds.late, "late") {
            self.ms += 180_000;
        }
    }

    /// A new process: what every command does first is to restore what a killed one has left.
    pub(super) fn reboot(&mut self) {
        self.is_dead = false;
        self.kill_at = self.kills.pop().map(|steps| self.steps + steps);
        self.room = usize::MAX;
        (self.course, self.at) = (None, Vec::new());
        (self.excuse, self.has_panicked, self.is_unrestored) = (None, false, false);
        self.restored.clear();
        self.spent_s = self.took_s.iter().sum();
        self.interrupt_at = None;
        self.stop.store(false, Ordering::Relaxed);
        self.process += 1;
        for journal in 0..self.journals.len() {
            self.restore(journal);
        }
    }

    pub(super) fn settings(&mut self, owner: &Owner) -> &mut Settings {
        match owner {
            Owner::Host => &mut self.host,
            Owner::Server(variant) => &mut self.servers.entry(variant.clone()).or_default().settings,
        }
    }

    fn write(&mut self, owner: &Owner, knob: &str, value: Option<String>) {
        let settings = self.settings(owner);
        match value {
            Some(value) => settings.insert(knob.to_owned(), value),
            None => settings.remove(knob),
        };
    }

    /// Changes a setting: the journal has the old value before the new one is written, and the
    /// process may be killed in between.
    pub(super) fn change(&mut self, journal: usize, owner: &Owner, knob: &str, value: Option<&str>) {
        let now = self.settings(owner).get(knob).cloned();
        let value = value.map(str::to_owned);
        if now == value {
            return;
        }
        self.step();
        let lines = &mut self.journals[journal].lines;
        match lines
            .iter_mut()
            .find(|line| line.owner == *owner && line.knob == knob)
        {
            Some(line) => line.ours.push(value.clone()),
            None => lines.push(Line {
                owner: owner.clone(),
                knob: knob.to_owned(),
                before: now,
                ours: vec![value.clone()],
            }),
        }
        self.step();
        self.write(owner, knob, value);
    }

    /// What a journal has changed: owner, knob and the value from before.
    pub(super) fn touched(&self, journal: usize) -> Vec<(Owner, String, Option<String>)> {
        let lines = self.journals[journal].lines.iter();
        lines
            .map(|line| (line.owner.clone(), line.knob.clone(), line.before.clone()))
            .collect()
    }

    /// A knob that has a value which this journal has not set, if there is one.
    pub(super) fn foreign_in(&mut self, journal: usize) -> Option<String> {
        let lines = self.journals[journal].lines.clone();
        let found = lines.into_iter().find(|line| {
            let now = self.settings(&line.owner).get(&line.knob).cloned();
            line.ours.last().is_some_and(|last| *last != now)
        });
        found.map(|line| line.knob)
    }

    /// Restores one line; a value that is not ours is left alone.
    pub(super) fn restore_line(&mut self, line: &Line) -> Restored {
        let now = self.settings(&line.owner).get(&line.knob).cloned();
        let outcome = if now == line.before {
            Outcome::Already
        } else if line.ours.contains(&now) {
            self.write(&line.owner, &line.knob, line.before.clone());
            Outcome::Restored
        } else {
            Outcome::Left
        };
        line.restored_as(outcome)
    }

    /// Restores a journal to its end, in a process that is not killed.
    fn restore(&mut self, journal: usize) {
        for line in self.journals[journal].lines.clone().into_iter().rev() {
            self.restore_line(&line);
        }
        self.drop_marked(journal);
        self.journals[journal] = Journal::default();
    }

    pub(super) fn drop_marked(&mut self, journal: usize) {
        for server in self.servers.values_mut() {
            server
                .tables
                .retain(|_, tables| tables.marked_by != Some(journal));
            let dropped: Vec<String> = server
                .databases
                .iter()
                .filter(|(_, by)| **by == Some(journal))
                .map(|(name, _)| name.clone())
                .collect();
            for name in dropped {
                server.databases.remove(&name);
                server.tables.remove(&name);
                server.templates.remove(&name);
            }
        }
    }

    /// Somebody else changes a setting.
    pub(super) fn change_by_someone_else(&mut self, owner: &Owner, knob: &str) {
        self.write(owner, knob, Some(SOMEBODYS.to_owned()));
        self.foreign.insert((owner.clone(), knob.to_owned()));
    }

    /// What somebody else has set, and another value was written over.
    pub(super) fn written_over(&self) -> Vec<String> {
        let of = |owner: &Owner| match owner {
            Owner::Host => Some(&self.host),
            Owner::Server(variant) => self.servers.get(variant).map(|server| &server.settings),
        };
        let foreign = self.foreign.iter();
        foreign
            .filter_map(|(owner, knob)| {
                let now = of(owner)?.get(knob);
                (now.map(String::as_str) != Some(SOMEBODYS))
                    .then(|| format!("{knob} was somebody's, and is {now:?}"))
            })
            .collect()
    }

    /// Settings that are not as they were at the beginning, but for those that somebody else has
    /// changed.
    pub(super) fn not_restored(&self) -> Vec<String> {
        let mut found = Vec::new();
        let (host, servers) = &self.before;
        let mut compare = |owner: Owner, before: &Settings, now: &Settings| {
            for knob in before.keys().chain(now.keys()) {
                let is_foreign = self.foreign.contains(&(owner.clone(), knob.clone()));
                if before.get(knob) != now.get(knob) && !is_foreign {
                    found.push(format!(
                        "{owner:?} {knob}: {:?} is {:?}",
                        before.get(knob),
                        now.get(knob)
                    ));
                }
            }
        };
        compare(Owner::Host, host, &self.host);
        for (variant, server) in &self.servers {
            let empty = Settings::new();
            let before = servers.get(variant).unwrap_or(&empty);
            compare(Owner::Server(variant.clone()), before, &server.settings);
        }
        found
    }
}

impl Line {
    /// Whether it is of a server that the experiment has made.
    pub(super) fn is_of_own_server(&self) -> bool {
        matches!(&self.owner, Owner::Server(variant) if !variant.is_target())
    }

    pub(super) fn restored_as(&self, outcome: Outcome) -> Restored {
        let text = |value: Option<&String>| value.cloned().unwrap_or_else(|| "(default)".to_owned());
        Restored {
            knob: self.knob.clone(),
            // As of real ones: the same file of two servers has one name.
            place: match self.owner {
                Owner::Host => "of the host",
                Owner::Server(_) => "of a server",
            }
            .to_owned(),
            was: text(self.before.as_ref()),
            set_to: text(self.ours.last().and_then(Option::as_ref)),
            outcome,
            detail: None,
        }
    }
}
