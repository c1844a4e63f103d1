//! Running an experiment: trial after trial, each stored when it ends, everything restored at the
//! end. Knows servers, hosts, stores and clocks by their ports alone.

mod data;
mod during;
mod event;
mod guard;
mod in_turns;
mod outside;
mod pace;
mod prepare;
mod searched;
mod steps;
mod switched;

use data::Untouched;
pub use event::Event;
use guard::Paces;
#[cfg(test)]
pub(crate) use outside::{Next, Outside};
#[cfg(test)]
pub(crate) use prepare::treatment_records;

use crate::decide::Looks;
use crate::error::LabError;
use crate::file::{ExperimentFile, Instances, SEED_MAX, Slices, turns_of_servers};
use crate::plan::{BESIDE_S, Consent, Plan, ProfileSettings, ServerVariant};
use crate::ports::{Clock, Optimizers, Purpose, Results, Servers, TrialTarget};
use crate::preflight::consents;
use pgdyno_knobs::{Catalogue, OfHost, Outcome, Restored};
use pgdyno_record::{ExperimentStatus, RestoredRecord, SeriesRecord, StoredExperiment, TrialRecord};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Outcome of a run.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Number of the experiment in the store.
    pub id: i64,
    /// `Finished`, or `Interrupted` where it can be resumed.
    pub status: ExperimentStatus,
    /// Knobs that were restored, with the outcome of each.
    pub restored: Vec<Restored>,
    /// Seconds that storing and deciding took.
    pub own_s: f64,
    /// Seconds from its first trial to its end, of this run.
    pub all_s: f64,
}

/// What an experiment is begun with.
pub struct Begin<'t> {
    /// The experiment file as it was read.
    pub file: ExperimentFile,
    /// Settings of the profiles that the file names.
    pub profiles: ProfileSettings,
    /// Text of the file, which is stored with the record.
    pub text: &'t str,
    /// Name of the target, without secrets.
    pub name_of_target: &'t str,
    /// The sandbox that it is, if it is one.
    pub sandbox: Option<&'t str>,
    /// Shell commands that repeat the experiment, in order.
    pub repeat: Vec<String>,
}

/// Runs experiments over ports.
pub(crate) struct Runner<'r, 's> {
    pub(crate) clock: &'r dyn Clock,
    pub(crate) results: &'r mut dyn Results,
    pub(crate) servers: &'r mut dyn Servers<'s>,
    pub(crate) optimizers: &'r dyn Optimizers,
    pub(crate) catalogue: &'r Catalogue,
    pub(crate) consent: &'r Consent,
    /// Set to end in order.
    pub(crate) stop: &'r AtomicBool,
    /// Receives what happens.
    pub(crate) on_event: &'r mut dyn FnMut(Event<'_>),
}

/// Begins the names of an experiment's files: its number, and when it began. Another store has the
/// same numbers.
fn files_of(stored: &StoredExperiment) -> String {
    format!("{}-{:x}", stored.id, stored.started_unix_ms)
}

/// Trials that are stored: block, and name of the treatment.
type Done = BTreeSet<(u32, String)>;

/// What these add to it.
fn names_of(trials: &[(TrialRecord, SeriesRecord)]) -> impl Iterator<Item = (u32, String)> {
    let records = trials.iter().map(|(record, _)| record);
    records.map(|record| (record.block, record.treatment.clone()))
}

/// A server whose settings are being changed.
struct At<'s> {
    variant: ServerVariant,
    target: Box<dyn TrialTarget + 's>,
}

/// An experiment that is being run.
struct Running<'x, 'r, 's> {
    runner: &'x mut Runner<'r, 's>,
    id: i64,
    /// Begins the names of its files, which are no other experiment's, nor one's of this number in
    /// another store.
    files: String,
    plan: &'x Plan,
    /// The treatment's server, and the additional ones; none before and between them.
    at: Vec<At<'s>>,
    restored: Vec<Restored>,
    looks: Looks,
    /// Treatments that a guard has ended, by number, and in which block.
    ended: BTreeMap<usize, u32>,
    /// Throughput of the references so far.
    paces: Paces,
    /// Treatments whose comparisons are all decided, as far as that was shown.
    settled: BTreeSet<usize>,
    /// Server variants and data that are known to be whole.
    whole: BTreeSet<(ServerVariant, String)>,
    /// Those that no load has used yet.
    untouched: Untouched,
    /// Whether trials of it were stored before this run.
    has_trials: bool,
    /// Time that counts for the budget: waiting for the window does not.
    spent: Duration,
    /// Time of storing and deciding.
    own: Duration,
}

impl<'s> Runner<'_, 's> {
    /// Runs an experiment from its beginning.
    pub(crate) fn run(&mut self, begin: Begin<'_>) -> Result<Summary, LabError> {
        let seed = begin.file.seed.unwrap_or_else(|| self.clock.seed() & SEED_MAX);
        let mut plan = Plan::unasked(begin.file, &begin.profiles, seed)?;
        let variant = plan.first_variant();
        let lacking = consents(&plan, self.catalogue, self.consent);
        // A server of its own would be made first; with the target all else is found as well.
        if !variant.is_target() && !lacking.is_empty() {
            return Err(LabError::Findings(lacking));
        }
        self.remove_left_instances(&plan)?;
        let mut target = self.target(&variant, &plan, None)?;
        let stored = prepare::Stored {
            text: begin.text,
            name_of_target: begin.name_of_target,
            sandbox: begin.sandbox,
            repeat: begin.repeat,
        };
        match self.prepare(&mut plan, &mut *target, stored) {
            Ok((id, looks, made)) => {
                let left = self.servers.end_left_behind();
                match left.and_then(|()| Ok(self.results.experiment(id)?)) {
                    Ok(stored) => {
                        let files = files_of(&stored);
                        self.go_on((id, files), &plan, At { variant, target }, looks, made)
                    }
                    Err(error) => Err(self.not_begun(error, &variant, target)),
                }
            }
            Err(error) => Err(self.not_begun(error, &variant, target)),
        }
    }

    /// Restores what was changed before an experiment could begin. A server that was made for it
    /// does not go on running.
    fn not_begun(
        &mut self,
        error: LabError,
        variant: &ServerVariant,
        target: Box<dyn TrialTarget + 's>,
    ) -> LabError {
        let error = with_restoring(error, target.restore());
        error.with_left(self.servers.leave(variant))
    }

    /// Goes on with an experiment that was interrupted or killed: what is stored is not run again.
    pub(crate) fn resume(&mut self, id: i64, name_of_target: &str) -> Result<Summary, LabError> {
        let stored = self.results.experiment(id)?;
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
        let looks = plan.looks(&stored.record);
        self.servers.end_left_behind()?;
        let files = files_of(&stored);
        self.remove_left_instances(&plan)?;
        let variant = plan.first_variant();
        let mut target = self.target(&variant, &plan, Some(id))?;
        let begun = self.is_possible_still(&plan, &mut *target).and_then(|()| {
            let running = self.results.set_status(id, ExperimentStatus::Running);
            running.map_err(LabError::from)
        });
        match begun {
            Ok(()) => self.go_on(
                (id, files),
                &plan,
                At { variant, target },
                looks,
                Untouched::new(),
            ),
            Err(error) => Err(self.not_begun(error, &variant, target)),
        }
    }

    /// Where servers are new in each block, those that a killed process has left are of none.
    fn remove_left_instances(&mut self, plan: &Plan) -> Result<(), LabError> {
        let own = plan.own_servers().into_iter();
        let mut left = own.filter(|_| plan.file.target.instances == Instances::PerBlock);
        left.try_for_each(|variant| self.servers.remove(&variant))
    }

    fn target(
        &mut self,
        variant: &ServerVariant,
        plan: &Plan,
        id: Option<i64>,
    ) -> Result<Box<dyn TrialTarget + 's>, LabError> {
        if !variant.is_target() {
            (self.on_event)(Event::GoingTo(variant));
        }
        let text = match id {
            Some(id) => format!("run {} ({id})", plan.file.name),
            None => format!("run {}", plan.file.name),
        };
        let changes_host = plan.settings().any(|setting| {
            let knob = self.catalogue.get(&setting.knob);
            knob.is_ok_and(|knob| knob.kind.is_of_host())
        });
        let purpose = Purpose {
            text: &text,
            commands: &plan.commands(),
            scope: plan.file.target.scope,
            of_host: match (changes_host, variant.beside) {
                (false, _) => OfHost::No,
                (true, 0) => OfHost::Yes,
                (true, _) => OfHost::Beside,
            },
        };
        self.servers.go_to(variant, &purpose)
    }

    fn go_on(
        &mut self,
        (id, files): (i64, String),
        plan: &Plan,
        at: At<'s>,
        looks: Looks,
        untouched: Untouched,
    ) -> Result<Summary, LabError> {
        let clock = self.clock;
        let mut running = Running {
            looks,
            runner: self,
            id,
            files,
            plan,
            at: vec![at],
            restored: Vec::new(),
            ended: BTreeMap::new(),
            paces: Paces::default(),
            settled: BTreeSet::new(),
            whole: BTreeSet::new(),
            untouched,
            has_trials: false,
            spent: Duration::ZERO,
            own: Duration::ZERO,
        };
        let begun = clock.now();
        // Whatever happens in a trial, what it has changed is restored.
        let outcome = catch_unwind(AssertUnwindSafe(|| running.trials()));
        (running.runner.on_event)(Event::PuttingBack);
        let left = running.leave();
        let restored = std::mem::take(&mut running.restored);
        let files = std::mem::take(&mut running.files);
        let own_s = running.own.as_secs_f64();
        let records: Vec<RestoredRecord> = restored.iter().map(restored_record).collect();
        let mut kept = self.results.set_restored(id, &records).map_err(LabError::from);
        let mut status = ExperimentStatus::Interrupted;
        if matches!(outcome, Ok(Ok(true))) && left.is_ok() {
            status = ExperimentStatus::Finished;
            // What it has made for itself goes first: nobody comes back to an experiment that is
            // finished.
            kept = kept.and_then(|()| self.servers.end(&files));
        }
        let kept = kept.and_then(|()| Ok(self.results.set_status(id, status)?));
        match outcome {
            Err(panic) => resume_unwind(panic),
            Ok(Err(error)) => Err(with_restoring(error, left.map(|()| restored))),
            Ok(Ok(_)) => {
                let ended = left.and(kept);
                ended.map_err(|error| with_restoring(error, Ok(restored.clone())))?;
                Ok(Summary {
                    id,
                    status,
                    restored,
                    own_s,
                    all_s: clock.now().saturating_sub(begun).as_secs_f64(),
                })
            }
        }
    }
}

impl Running<'_, '_, '_> {
    /// Runs what is not stored yet. Returns whether all is done, or somebody asked to stop.
    fn trials(&mut self) -> Result<bool, LabError> {
        let plan = self.plan;
        let mut done = self.recall()?;
        let is_done = |done: &Done, block: u32, name: &str| done.contains(&(block, name.to_owned()));
        let lost = self.ended.keys().flat_map(|number| {
            let name = &plan.treatments[*number].name;
            (1..=plan.file.blocks).filter(|block| !is_done(&done, *block, name))
        });
        let lost = u32::try_from(lost.count()).unwrap_or(u32::MAX);
        let budget_s = self.time_left().map(|left| left.as_secs_f64());
        (self.runner.on_event)(Event::Begun {
            id: self.id,
            trials: plan.trials().saturating_sub(lost),
            done: u32::try_from(done.len()).unwrap_or(u32::MAX),
            trial_s: plan.trial_s()
                + if plan.blocks_of_load().is_some() {
                    0.0
                } else {
                    BESIDE_S
                },
            budget_s,
        });
        if let Some(slices) = Slices::of(&plan.file) {
            return self.switched(slices, &mut done);
        }
        if plan.file.search.is_some() {
            return self.searched();
        }
        if let Some(slice) = turns_of_servers(&plan.file) {
            return self.in_turns(slice, &mut done);
        }
        for block in 1..=plan.file.blocks {
            self.renew_instances(block, &done)?;
            let needless = self.needless(block);
            for (i, number) in plan.order_of_block(block).into_iter().enumerate() {
                let treatment = &plan.treatments[number];
                if self.ended.contains_key(&number)
                    || needless.contains(&number)
                    || is_done(&done, block, &treatment.name)
                {
                    continue;
                }
                if !self.wait_for_window(1)? {
                    return Ok(false);
                }
                if let Some(reason) = self.budget_is_spent() {
                    self.ends_early(reason, block - 1);
                    return Ok(true);
                }
                // A trial is long, and a window may be: others would take the experiment for
                // killed.
                self.runner.results.keep()?;
                let begun = self.runner.clock.now();
                (self.runner.on_event)(Event::TrialBegins { treatment, block });
                let position = u32::try_from(i + 1).unwrap_or(u32::MAX);
                let Some((mut record, series)) = self.trial((Some(number), treatment), block, position)
                else {
                    return Ok(false);
                };
                self.spend(begun, std::iter::once(&mut record));
                self.store(&[(record, series)])?;
            }
            if self.is_decided(block) {
                self.ends_early("every comparison is decided", block);
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// Counts what was spent since `begun` for these trials, of one load.
    fn spend<'t>(&mut self, begun: Duration, trials: impl Iterator<Item = &'t mut TrialRecord>) {
        let mut took = self.runner.clock.now().saturating_sub(begun);
        self.spent += took;
        for record in trials {
            record.took_s = Some(std::mem::take(&mut took).as_secs_f64());
        }
    }

    /// Stores trials of one load and block, all or none: one that was missing would be measured in
    /// another load than those it is compared with.
    fn store(&mut self, trials: &[(TrialRecord, SeriesRecord)]) -> Result<(), LabError> {
        let begun = self.runner.clock.now();
        let stored = self.runner.results.add_trials(self.id, trials);
        stored.map_err(|source| LabError::NotStored {
            id: self.id,
            block: trials.first().map_or(0, |(record, _)| record.block),
            treatment: trials
                .iter()
                .map(|(record, _)| record.treatment.as_str())
                .collect::<Vec<_>>()
                .join(", "),
            source: Box::new(source),
        })?;
        trials.iter().for_each(|(record, _)| self.take_in(record));
        self.own += self.runner.clock.now().saturating_sub(begun);
        for (record, _) in trials {
            (self.runner.on_event)(Event::TrialEnds(record));
        }
        self.looks.has_figures()
    }

    /// Takes in a stored trial.
    fn take_in(&mut self, record: &TrialRecord) {
        self.looks.add(record);
        self.paces.trial(self.plan, record);
    }

    /// Whether the experiment may end after this block.
    fn is_decided(&mut self, block: u32) -> bool {
        let begun = self.runner.clock.now();
        let decided = block < self.plan.file.blocks && self.looks.are_decided(block);
        self.own += self.runner.clock.now().saturating_sub(begun);
        decided
    }

    /// Treatments that need no trial in this block: what was found in those before decides all
    /// their comparisons.
    fn needless(&mut self, block: u32) -> BTreeSet<usize> {
        let begun = self.runner.clock.now();
        let needless = self.looks.needless(block - 1, &self.ended_before(block));
        self.own += self.runner.clock.now().saturating_sub(begun);
        for number in needless.iter().filter(|number| !self.ended.contains_key(number)) {
            if self.settled.insert(*number) {
                (self.runner.on_event)(Event::Settled {
                    treatment: &self.plan.treatments[*number],
                    lost: self.plan.file.blocks - (block - 1),
                });
            }
        }
        needless
    }

    /// Treatments that a guard has ended in an earlier block.
    fn ended_before(&self, block: u32) -> BTreeSet<usize> {
        let before = self.ended.iter().filter(|(_, of)| **of < block);
        before.map(|(number, _)| *number).collect()
    }

    fn ends_early(&mut self, reason: &str, blocks: u32) {
        (self.runner.on_event)(Event::EndsEarly { reason, blocks });
    }

    /// Takes in the stored trials, and which treatments a guard has ended; returns block and
    /// treatment of each.
    fn recall(&mut self) -> Result<Done, LabError> {
        let plan = self.plan;
        let mut done = Done::new();
        for (_, record) in self.runner.results.experiment(self.id)?.trials {
            let number = plan.treatments.iter().position(|t| t.name == record.treatment);
            match number {
                // Its treatments are made while it runs, and tried again where that says more.
                _ if plan.file.search.is_some() => {}
                None => continue,
                Some(number) if record.ended_by_guard => {
                    self.ended.insert(number, record.block);
                }
                Some(_) => {}
            }
            self.take_in(&record);
            let took_s = record.took_s.unwrap_or(record.warmup_s + record.measured_s);
            self.spent += Duration::try_from_secs_f64(took_s).unwrap_or_default();
            done.insert((record.block, record.treatment));
        }
        self.has_trials = !done.is_empty();
        Ok(done)
    }

    /// Where servers are new in each block, removes those of the block before: the next trial on
    /// each makes a new one.
    fn renew_instances(&mut self, block: u32, done: &Done) -> Result<(), LabError> {
        let is_new = block > 1 && !done.iter().any(|(of, _)| *of == block);
        if !is_new || self.plan.file.target.instances == Instances::Once {
            return Ok(());
        }
        self.leave()?;
        for variant in self.plan.own_servers() {
            self.runner.servers.remove(&variant)?;
            self.whole.retain(|(of, _)| *of != variant);
            self.untouched.retain(|(of, _)| *of != variant);
        }
        Ok(())
    }

    /// Goes to the servers of a treatment, of which the first is its own; what was changed on
    /// others is restored first.
    fn go_to(&mut self, variants: &[ServerVariant]) -> Result<(), LabError> {
        let (here, wanted) = (self.at.first().map(|at| &at.variant), variants.first());
        let kept = if here == wanted { variants.len() } else { 0 };
        self.leave_beyond(kept)?;
        for variant in &variants[self.at.len()..] {
            let target = self.runner.target(variant, self.plan, Some(self.id))?;
            self.at.push(At {
                variant: variant.clone(),
                target,
            });
        }
        Ok(())
    }

    /// Restores what was changed where we are.
    fn leave(&mut self) -> Result<(), LabError> {
        self.leave_beyond(0)
    }

    /// The same for all servers but the first `kept`: what belongs to the host is changed with the
    /// first, and restored last.
    fn leave_beyond(&mut self, kept: usize) -> Result<(), LabError> {
        let mut left = Ok(());
        while self.at.len() > kept
            && let Some(at) = self.at.pop()
        {
            left = left.and(self.leave_one(at));
        }
        left
    }

    fn leave_one(&mut self, At { variant, target }: At<'_>) -> Result<(), LabError> {
        // Data that was made on a server of others goes with what was changed.
        if !target.is_sandbox() {
            self.whole.retain(|(of, _)| *of != variant);
            self.untouched.retain(|(of, _)| *of != variant);
        }
        let restored = target.restore();
        // Whatever could not be restored, no other server runs beside it.
        let left = self.runner.servers.leave(&variant);
        add_restored(&mut self.restored, restored?);
        left
    }

    fn is_stopped(&self) -> bool {
        self.runner.stop.load(Ordering::Relaxed)
    }

    fn target(&mut self) -> Result<&mut (dyn TrialTarget + '_), LabError> {
        match self.at.first_mut() {
            Some(at) => Ok(&mut *at.target),
            None => Err(LabError::NoServer),
        }
    }
}

/// The last outcome of a setting counts, but what is not as before stays in the list.
fn add_restored(all: &mut Vec<Restored>, lines: Vec<Restored>) {
    for line in lines {
        let place = |other: &Restored| other.knob == line.knob && other.place == line.place;
        let is_kept =
            |other: &Restored| matches!(other.outcome, Outcome::Failed | Outcome::Left) && *other != line;
        all.retain(|other| !place(other) || is_kept(other));
        all.push(line);
    }
}

/// The first trouble is the one to report, but not alone if what was changed is still changed, or
/// may be.
fn with_restoring(error: LabError, restored: Result<Vec<Restored>, LabError>) -> LabError {
    let error = Box::new(error);
    let lines = match restored {
        Ok(lines) => lines,
        Err(source) => {
            let source = Box::new(source);
            return LabError::NotRestored { error, source };
        }
    };
    let not_back = lines.iter().filter(|line| line.outcome == Outcome::Failed);
    let not_back: Vec<&str> = not_back.map(|line| line.knob.as_str()).collect();
    match not_back.is_empty() {
        true => *error,
        false => LabError::NotPutBack {
            knobs: not_back.join(", "),
            error: error.to_string(),
        },
    }
}

fn restored_record(line: &Restored) -> RestoredRecord {
    let outcome = match line.outcome {
        Outcome::Restored => "restored",
        Outcome::Already => "already",
        Outcome::Left => "left",
        Outcome::Failed => "failed",
    };
    RestoredRecord {
        knob: line.knob.clone(),
        place: line.place.clone(),
        was: line.was.clone(),
        set_to: line.set_to.clone(),
        outcome: outcome.to_owned(),
        detail: line.detail.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_outcome_of_a_setting_counts_and_every_failure() {
        let line = |knob: &str, outcome| Restored {
            knob: knob.to_owned(),
            place: "a file".to_owned(),
            was: "1".to_owned(),
            set_to: "2".to_owned(),
            outcome,
            detail: None,
        };
        let mut all = vec![line("a", Outcome::Restored), line("b", Outcome::Failed)];
        add_restored(
            &mut all,
            vec![line("a", Outcome::Left), line("b", Outcome::Restored)],
        );
        let found: Vec<(&str, Outcome)> = all.iter().map(|line| (&*line.knob, line.outcome)).collect();
        let expected = [
            ("b", Outcome::Failed),
            ("a", Outcome::Left),
            ("b", Outcome::Restored),
        ];
        assert_eq!(found, expected);
    }
}
