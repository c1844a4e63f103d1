//! Running an experiment: trial after trial, each stored when it ends, everything put back at the end.

mod data;
mod error;
mod event;
mod guard;
mod load;
mod pace;
mod prepare;
mod steps;

use data::Untouched;
pub(crate) use data::{data_of, database_of, listed as data_listed};
pub use error::{LabError, StandError};
pub use event::Event;
pub(crate) use load::{measure_s, plan_of_load, threads_of};
#[cfg(test)]
pub(crate) use prepare::treatment_records;
pub(crate) use prepare::{OWN_SESSIONS, cannot_stand, too_many_clients};

use crate::decide::Looks;
use crate::file::{ExperimentFile, SEED_MAX, StopRule};
use crate::plan::{Consent, Plan, ProfileSettings, Stand};
use crate::preflight::consents;
use crate::trial::now_unix_ms;
use pgdyno_host::HostAccess;
use pgdyno_knobs::{ApplyError, Catalogue, Changer, Journals, Outcome, Patience, PutBack, Restorer, Target};
use pgdyno_server::{Control, Lookup, Pooler, Server};
use pgdyno_store::{ExperimentStatus, PutBackRecord, SeriesRecord, Store, TrialRecord};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Who has the servers of an experiment: the target, and sandboxes like it that differ in version or place.
pub trait Stands {
    /// Makes the server if it is not there, starts it if it does not run, and says how to turn its knobs.
    fn target(&mut self, stand: &Stand) -> Result<Target, StandError>;

    /// The server is not needed for now; it may be stopped.
    fn leave(&mut self, stand: &Stand) -> Result<(), StandError>;

    /// The experiment is at its end: what was made for it is removed, the target is as it was.
    fn end(&mut self) -> Result<(), StandError>;
}

/// How it ended.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Number in the store.
    pub id: i64,
    /// Finished or interrupted.
    pub status: ExperimentStatus,
    /// What was put back.
    pub put_back: Vec<PutBack>,
    /// Seconds that storing and deciding took.
    pub own_s: f64,
    /// Seconds from its first trial to its end, of this run.
    pub all_s: f64,
}

/// Oldest version to experiment with.
const VERSION_MIN: u32 = 14;

/// What an experiment is begun with.
pub struct Begin<'t> {
    /// The file.
    pub file: ExperimentFile,
    /// Settings of its profiles.
    pub profiles: ProfileSettings,
    /// Its text, which is stored.
    pub text: &'t str,
    /// Name of the target, without secrets.
    pub name_of_target: &'t str,
    /// Commands that repeat it.
    pub repeat: Vec<String>,
}

/// Everything an experiment needs.
pub struct Lab<'a> {
    /// The machine: knobs are turned and facts read there.
    pub host: &'a Arc<dyn HostAccess>,
    /// The catalogue.
    pub catalogue: &'a Catalogue,
    /// Where journals are kept.
    pub journals: &'a Journals,
    /// Where files of an experiment are kept while it runs: copies of data, what poolers need.
    pub scratch: &'a Path,
    /// The store.
    pub store: &'a mut Store,
    /// For passwords.
    pub environment: Lookup<'a>,
    /// What the user has agreed to.
    pub consent: &'a Consent,
    /// The servers.
    pub stands: &'a mut dyn Stands,
    /// Minutes since midnight, local time.
    pub minute_of_day: &'a dyn Fn() -> u32,
    /// Set to end in order.
    pub stop: &'a AtomicBool,
    /// Is told what happens.
    pub on_event: &'a mut dyn FnMut(Event<'_>),
}

/// The server whose knobs are being turned.
struct At<'a> {
    stand: Stand,
    changer: Changer<'a>,
}

/// An experiment that is being run.
struct Running<'r, 'a> {
    lab: &'r mut Lab<'a>,
    id: i64,
    plan: &'r Plan,
    at: Option<At<'a>>,
    put_back: Vec<PutBack>,
    looks: Looks,
    /// Treatments that a guard has ended, by number.
    ended: BTreeMap<usize, String>,
    /// Stands and data that are known to be whole.
    whole: BTreeSet<(Stand, String)>,
    /// Those that no load has used yet.
    untouched: Untouched,
    /// Time that counts for the budget: waiting for the window does not.
    spent: Duration,
    /// Time of storing and deciding.
    own: Duration,
}

impl<'a> Lab<'a> {
    /// Runs an experiment from its beginning.
    pub fn run(&mut self, begin: Begin<'_>) -> Result<Summary, LabError> {
        let drawn = || (now_unix_ms() ^ u64::from(std::process::id()).rotate_left(32)) & SEED_MAX;
        let seed = begin.file.seed.unwrap_or_else(drawn);
        let mut plan = Plan::unasked(begin.file, &begin.profiles, seed)?;
        let stand = prepare::first_stand(&plan);
        let lacking = consents(&plan, self.catalogue, self.consent);
        // A server of its own would be made first; with the target all else is found as well.
        if !stand.is_target() && !lacking.is_empty() {
            return Err(LabError::Findings(lacking));
        }
        let target = self.stand(&stand)?;
        let mut server = Server::connect(&target.conninfo)?;
        if server.version().major < VERSION_MIN {
            return Err(LabError::TooOld(server.version().to_string()));
        }
        load::check_prepared(&plan, &target.conninfo)?;
        let purpose = format!("run {}", plan.file.name);
        let mut changer = self.changer(target, &purpose, &plan)?;
        let stored = prepare::Stored {
            text: begin.text,
            name_of_target: begin.name_of_target,
            repeat: begin.repeat,
        };
        let prepared = self.prepare(&mut plan, &mut changer, &mut server, stored);
        drop(server);
        match prepared {
            Ok((id, made)) => self.go_on(id, &plan, Some(At { stand, changer }), made),
            Err(error) => {
                changer.put_back(&self.restorer())?;
                Err(error)
            }
        }
    }

    /// Goes on with an experiment that was interrupted or killed: what is stored is not run again.
    pub fn resume(&mut self, id: i64, name_of_target: &str) -> Result<Summary, LabError> {
        let stored = self.store.experiment(id)?;
        if stored.record.target != name_of_target {
            let (was, is) = (stored.record.target, name_of_target.to_owned());
            return Err(LabError::OtherTarget { id, was, is });
        }
        if stored.status == ExperimentStatus::Finished {
            return Err(LabError::NothingToResume(id));
        }
        let path = Path::new("the stored experiment");
        let file = ExperimentFile::parse(&stored.record.file, path, self.catalogue)?;
        let (seed, treatments) = (stored.record.seed, &stored.record.treatments);
        let plan = Plan::recalled(file, seed, treatments, self.catalogue, self.consent)?;
        // A process that was killed may have left one.
        Pooler::end_left_behind(&self.pooler_directory(id))?;
        let stand = prepare::first_stand(&plan);
        let target = self.stand(&stand)?;
        self.data_is_agreed(&plan, &target)?;
        let changer = self.changer(target, &format!("run {} ({id})", plan.file.name), &plan)?;
        if let Err(error) = self.store.set_status(id, ExperimentStatus::Running) {
            changer.put_back(&self.restorer())?;
            return Err(error.into());
        }
        self.go_on(id, &plan, Some(At { stand, changer }), Untouched::new())
    }

    fn stand(&mut self, stand: &Stand) -> Result<Target, LabError> {
        if !stand.is_target() {
            (self.on_event)(Event::Standing(stand));
        }
        self.stands.target(stand).map_err(|source| LabError::Stand {
            what: match stand.is_target() {
                true => "the target".to_owned(),
                false => format!("the server for \"{}\"", stand.label()),
            },
            source,
        })
    }

    /// What no treatment of the plan changes, other processes may: a host by one of them, servers beside one another.
    fn changer(&self, target: Target, purpose: &str, plan: &Plan) -> Result<Changer<'a>, ApplyError> {
        let mut settings = plan.treatments.iter().flat_map(|treatment| &treatment.settings);
        let host_too = settings.any(|setting| {
            self.catalogue
                .get(&setting.knob)
                .is_ok_and(|knob| knob.kind.is_of_host())
        });
        let mut patience = Patience::none();
        Changer::begin(
            &**self.host,
            self.catalogue,
            Some(target),
            self.journals,
            purpose,
            (None, host_too),
            &mut patience,
        )
    }

    fn restorer(&self) -> Restorer<'_> {
        Restorer {
            host: &**self.host,
            catalogue: self.catalogue,
            environment: self.environment,
            force: false,
            conninfo: None,
        }
    }

    fn go_on(
        &mut self,
        id: i64,
        plan: &Plan,
        at: Option<At<'a>>,
        untouched: Untouched,
    ) -> Result<Summary, LabError> {
        let looks = Looks::new(&self.store.experiment(id)?.record);
        let mut running = Running {
            looks,
            lab: self,
            id,
            plan,
            at,
            put_back: Vec::new(),
            ended: BTreeMap::new(),
            whole: BTreeSet::new(),
            untouched,
            spent: Duration::ZERO,
            own: Duration::ZERO,
        };
        let begun = Instant::now();
        // Whatever happens in a trial, what it has changed is put back.
        let outcome = catch_unwind(AssertUnwindSafe(|| running.trials()));
        (running.lab.on_event)(Event::PuttingBack);
        let left = running.leave();
        let put_back = std::mem::take(&mut running.put_back);
        let own_s = running.own.as_secs_f64();
        left?;
        let status = match outcome {
            Ok(Ok(true)) => ExperimentStatus::Finished,
            _ => ExperimentStatus::Interrupted,
        };
        let records: Vec<PutBackRecord> = put_back.iter().map(put_back_record).collect();
        let kept = self
            .store
            .set_put_back(id, &records)
            .and_then(|()| self.store.set_status(id, status));
        match outcome {
            Err(panic) => resume_unwind(panic),
            Ok(Err(error)) => Err(with_what_is_not_back(error, &put_back)),
            Ok(Ok(_)) => {
                kept?;
                if status == ExperimentStatus::Finished {
                    self.clear_scratch(id);
                    let what = "removing what the experiment had made".to_owned();
                    self.stands
                        .end()
                        .map_err(|source| LabError::Stand { what, source })?;
                }
                Ok(Summary {
                    id,
                    status,
                    put_back,
                    own_s,
                    all_s: begun.elapsed().as_secs_f64(),
                })
            }
        }
    }
}

impl Lab<'_> {
    /// Where a pooler of an experiment has its files.
    fn pooler_directory(&self, id: i64) -> PathBuf {
        self.scratch.join(format!("{id}-pooler"))
    }

    /// Removes what the experiment kept while it ran. What cannot be removed is in nobody's way.
    fn clear_scratch(&self, id: i64) {
        let own = |name: &str| name == id.to_string() || name.starts_with(&format!("{id}-"));
        for entry in std::fs::read_dir(self.scratch).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(own) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}

impl<'a> Running<'_, 'a> {
    /// Runs what is not stored yet. Tells whether all is done, or somebody asked to stop.
    fn trials(&mut self) -> Result<bool, LabError> {
        let plan = self.plan;
        let done = self.lab.store.done(self.id)?;
        self.recall()?;
        let is_done = |block: u32, name: &str| done.iter().any(|(b, other)| *b == block && other == name);
        let lost = self.ended.keys().flat_map(|number| {
            let name = &plan.treatments[*number].name;
            (1..=plan.file.blocks).filter(move |block| !is_done(*block, name))
        });
        let lost = u32::try_from(lost.count()).unwrap_or(u32::MAX);
        (self.lab.on_event)(Event::Begun {
            id: self.id,
            trials: plan.trials().saturating_sub(lost),
            done: u32::try_from(done.len()).unwrap_or(u32::MAX),
            trial_s: plan.trial_s(),
        });
        for block in 1..=plan.file.blocks {
            for (i, number) in plan.order_of_block(block).into_iter().enumerate() {
                let treatment = &plan.treatments[number];
                if self.ended.contains_key(&number) || is_done(block, &treatment.name) {
                    continue;
                }
                if !self.wait_for_window()? {
                    return Ok(false);
                }
                if let Some(reason) = self.budget_is_spent() {
                    self.ends_early(reason, block - 1);
                    return Ok(true);
                }
                // A trial is long, and a window may be: others would take the experiment for killed.
                self.lab.store.keep()?;
                let begun = Instant::now();
                (self.lab.on_event)(Event::TrialBegins { treatment, block });
                let position = u32::try_from(i + 1).unwrap_or(u32::MAX);
                let Some((record, series)) = self.trial(number, block, position) else {
                    return Ok(false);
                };
                self.spent += begun.elapsed();
                self.store(&record, &series)?;
                (self.lab.on_event)(Event::TrialEnds(&record));
            }
            if self.is_decided(block) {
                self.ends_early("every comparison is decided", block);
                return Ok(true);
            }
        }
        Ok(true)
    }

    fn store(&mut self, record: &TrialRecord, series: &SeriesRecord) -> Result<(), LabError> {
        let begun = Instant::now();
        let stored = self.lab.store.add_trial(self.id, record, series);
        stored.map_err(|source| LabError::NotStored {
            id: self.id,
            block: record.block,
            treatment: record.treatment.clone(),
            source: Box::new(source),
        })?;
        self.looks.add(record);
        self.own += begun.elapsed();
        Ok(())
    }

    /// Whether the experiment may end after this block.
    fn is_decided(&mut self, block: u32) -> bool {
        let file = &self.plan.file;
        let begun = Instant::now();
        let decided =
            file.stop == StopRule::WhenDecided && block < file.blocks && self.looks.are_decided(block);
        self.own += begun.elapsed();
        decided
    }

    fn ends_early(&mut self, reason: &str, blocks: u32) {
        (self.lab.on_event)(Event::EndsEarly { reason, blocks });
    }

    /// What stored trials tell: their figures, and which treatments a guard has ended.
    fn recall(&mut self) -> Result<(), LabError> {
        let plan = self.plan;
        for (_, record) in self.lab.store.experiment(self.id)?.trials {
            let Some(number) = plan.treatments.iter().position(|t| t.name == record.treatment) else {
                continue;
            };
            if let Some(reason) = guard::told_by(&record) {
                self.ended.insert(number, reason.to_owned());
            }
            self.looks.add(&record);
            self.spent += Duration::from_secs_f64((record.warmup_s + record.measured_s).max(0.0));
        }
        Ok(())
    }

    /// Goes to the server of a treatment; what was changed on the one before is put back first.
    fn go_to(&mut self, stand: &Stand) -> Result<(), LabError> {
        if self.at.as_ref().is_some_and(|at| at.stand == *stand) {
            return Ok(());
        }
        self.leave()?;
        let target = self.lab.stand(stand)?;
        let purpose = format!("run {} ({})", self.plan.file.name, self.id);
        let changer = self.lab.changer(target, &purpose, self.plan)?;
        self.at = Some(At {
            stand: stand.clone(),
            changer,
        });
        Ok(())
    }

    /// Puts back what was changed where we are.
    fn leave(&mut self) -> Result<(), LabError> {
        let Some(At { stand, changer }) = self.at.take() else {
            return Ok(());
        };
        // Data that was made on somebody's server goes with what was changed.
        if !changer.target().is_ok_and(is_sandbox) {
            self.whole.retain(|(of, _)| *of != stand);
            self.untouched.retain(|(of, _)| *of != stand);
        }
        let lines = changer.put_back(&self.lab.restorer())?;
        for line in lines {
            // The last word on a knob counts, but a failure is not forgotten.
            let place = |other: &PutBack| other.knob == line.knob && other.place == line.place;
            self.put_back
                .retain(|other| !place(other) || other.outcome == Outcome::Failed);
            self.put_back.push(line);
        }
        self.lab.stands.leave(&stand).map_err(|source| LabError::Stand {
            what: "leaving a server".to_owned(),
            source,
        })
    }

    fn is_stopped(&self) -> bool {
        self.lab.stop.load(Ordering::Relaxed)
    }

    fn target(&self) -> Result<&Target, ApplyError> {
        match &self.at {
            Some(at) => at.changer.target(),
            None => Err(ApplyError::HostElsewhere),
        }
    }
}

fn is_sandbox(target: &Target) -> bool {
    matches!(target.control, Control::Sandbox(_))
}

/// The first trouble is the one to tell, but not alone if what was changed is still changed.
fn with_what_is_not_back(error: LabError, put_back: &[PutBack]) -> LabError {
    let not_back: Vec<&str> = put_back
        .iter()
        .filter(|line| line.outcome == Outcome::Failed)
        .map(|line| line.knob.as_str())
        .collect();
    match not_back.is_empty() {
        true => error,
        false => LabError::NotPutBack {
            knobs: not_back.join(", "),
            error: error.to_string(),
        },
    }
}

fn put_back_record(line: &PutBack) -> PutBackRecord {
    let outcome = match line.outcome {
        Outcome::Restored => "restored",
        Outcome::Already => "already",
        Outcome::Left => "left",
        Outcome::Failed => "failed",
    };
    PutBackRecord {
        knob: line.knob.clone(),
        place: line.place.clone(),
        was: line.was.clone(),
        set_to: line.set_to.clone(),
        outcome: outcome.to_owned(),
        detail: line.detail.clone(),
    }
}
