//! The coordinator's end of a run on another host: its files go there, and its results are kept and
//! shown here.

use super::keeper::{last_unfinished, options_of, store_of};
use super::load_hosts::{AllowedLoadHosts, LoadHostsOfRun};
use super::{ON, consent_of, end_of, named_at, repeat_command, show_report, text_of};
use crate::cli::{HostArgs, OnDisconnect, ResumeArgs, RunArgs, RunHostArgs, StoreArgs};
use crate::commands::profile;
use crate::context::Context;
use crate::exit;
use crate::failure::{Failure, InContext as _, Result};
use crate::shipped;
use pgdyno_knobs::Catalogue;
use pgdyno_lab::{Design, ExperimentFile, Plan, ProfileSettings, asks_for_target, given, sized};
use pgdyno_record::{ExperimentRecord, ProgressRecord, StoredExperiment, TREATMENTS_MAX};
use pgdyno_remote::{Answer, CarriedFile, Question, RunEnd, Takeover, Then};
use pgdyno_store::{Store, StoreError};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A host of any size, where only the names in a file are asked for.
const ANY_MEMORY: u64 = 8 << 30;
const ANY_CPUS: f64 = 4.0;

/// What a run on another host needs from here.
pub(crate) struct Sent {
    /// The experiment's file, and those of its profiles.
    pub(crate) files: Vec<CarriedFile>,
    /// What it names for loads.
    allowed: AllowedLoadHosts,
    most: Most,
}

/// What a host may have kept of the experiment that was sent to it.
#[derive(Debug, Clone, Copy, Default)]
struct Most {
    blocks: u32,
    /// Treatments when it begins.
    treatments: usize,
    /// Whether treatments are added while it runs.
    is_search: bool,
}

impl Most {
    fn of(file: &ExperimentFile) -> Most {
        // What is excluded may follow from the memory and CPUs there.
        let whole = ExperimentFile {
            exclude: Vec::new(),
            ..file.clone()
        };
        let plan = |file| Plan::unasked(file, &ProfileSettings::new(), 1);
        let plan = plan(whole).or_else(|_| plan(file.clone()));
        Most {
            blocks: file.blocks,
            treatments: plan.map_or(0, |plan| plan.treatments.len()),
            is_search: file.design == Design::Search,
        }
    }

    fn of_stored(record: &ExperimentRecord) -> Most {
        Most {
            blocks: record.blocks,
            treatments: record.treatments.len(),
            is_search: record.design == Design::Search.name(),
        }
    }

    /// Refuses an experiment that plans more.
    fn check(self, record: &ExperimentRecord) -> Result<(), String> {
        let more = match (record.blocks, record.treatments.len()) {
            (blocks, _) if blocks > self.blocks => "blocks",
            (_, treatments) if treatments > self.treatments => "treatments",
            _ => return Ok(()),
        };
        Err(format!("it plans more {more} than the experiment's file"))
    }
}

/// What a file is sent as that is written here.
pub(crate) const WRITTEN: &str = "experiment.toml";

impl Sent {
    /// A file that is written here, as [`WRITTEN`], with its text, for a target.
    pub(crate) fn written((file, text): (&ExperimentFile, &str), target: &str) -> Sent {
        Sent {
            files: vec![CarriedFile {
                full_name: WRITTEN.to_owned(),
                path: WRITTEN.to_owned(),
                content: Some(text.to_owned()),
            }],
            allowed: AllowedLoadHosts::of(file, Some(target)),
            most: Most::of(file),
        }
    }

    /// The load hosts of a dry run.
    pub(crate) fn load_hosts(&self, context: &Context, on: &HostArgs) -> LoadHostsOfRun {
        LoadHostsOfRun::new(context, on, self.allowed.clone())
    }

    /// What is wrong with the files is found before anything is done there.
    pub(crate) fn of(context: &Context, args: &RunArgs) -> Result<Sent> {
        let text = text_of(context, &args.file)?;
        let file = parsed(context, &text, args)?;
        let mut files = Vec::new();
        let name = args.file.to_string_lossy().into_owned();
        if args.file.exists() || shipped::experiment(&name).is_none() {
            files.push(CarriedFile {
                full_name: name.clone(),
                path: name,
                content: Some(text),
            });
        }
        for profile in file.profiles() {
            files.extend(profile::files_of(&profile)?);
        }
        Ok(Sent {
            files,
            allowed: AllowedLoadHosts::of(&file, args.target.as_deref()),
            most: Most::of(&file),
        })
    }
}

/// The experiment of a text; what follows from the target is as of any.
fn parsed(context: &Context, text: &str, args: &RunArgs) -> Result<ExperimentFile> {
    let whole = sized(text, &args.file, args.size.as_deref(), &args.sets())?;
    let whole = match asks_for_target(&whole) {
        Some(_) => given(&whole, Some(ANY_MEMORY), Some(ANY_CPUS)),
        None => whole,
    };
    Ok(ExperimentFile::parse(&whole, &args.file, &context.catalogue)?)
}

/// Keeps the results of one run on another host.
pub(crate) struct Book {
    store: Store,
    /// The experiment; a host that is not to be trusted has no other.
    id: Option<i64>,
    /// Trials that it may have; each is kept once.
    planned: Planned,
    most: Most,
    ended: Option<RunEnd>,
    report: Option<PathBuf>,
    as_json: bool,
    options: String,
    context: Context,
    /// The end of the names of its targets, with the host of the run.
    named: String,
    load_hosts: LoadHostsOfRun,
    /// The commands that repeat it.
    repeat: Vec<String>,
}

/// The blocks and treatments of an experiment.
#[derive(Debug, Default, PartialEq, Eq)]
struct Planned {
    blocks: u32,
    treatments: Vec<String>,
}

impl Planned {
    fn of(record: &ExperimentRecord) -> Planned {
        Planned {
            blocks: record.blocks,
            treatments: record.treatments.iter().map(|one| one.name.clone()).collect(),
        }
    }

    /// Refuses a trial of another experiment: with those a host could fill this one's disk.
    fn check(&self, block: u32, treatment: &str) -> std::result::Result<(), StoreError> {
        let is_planned = self.treatments.iter().any(|planned| planned == treatment);
        match is_planned && (1..=self.blocks).contains(&block) {
            true => Ok(()),
            false => Err(StoreError::Elsewhere(
                "it has sent a trial that its experiment does not plan".to_owned(),
            )),
        }
    }
}

impl Book {
    /// Of a run, with what it has sent.
    pub(crate) fn of_run(context: &Context, args: &RunArgs, sent: &Sent) -> Result<Book> {
        let repeat = vec![repeat_command(args, &consent_of(&args.consent))];
        Book::open(
            context,
            &args.store,
            args.report.as_deref(),
            (&args.at.on, sent.allowed.clone(), sent.most),
            repeat,
        )
    }

    /// Of a run that is resumed; adds to the arguments which one, where they do not say it.
    pub(crate) fn of_resume(
        context: &Context,
        args: &ResumeArgs,
        arguments: &mut Vec<String>,
    ) -> Result<Book> {
        let none = AllowedLoadHosts::default();
        let mut book = Book::open(
            context,
            &args.store,
            args.report.as_deref(),
            (&args.at.on, none, Most::default()),
            Vec::new(),
        )?;
        let id = match args.id {
            Some(id) => id,
            None => {
                let id = last_unfinished(&book.store)?;
                arguments.push(id.to_string());
                id
            }
        };
        let stored = book.store.experiment_alone(id)?;
        book = book.resuming(&stored);
        book.most = Most::of_stored(&stored.record);
        let path = Path::new("the stored experiment");
        let file = ExperimentFile::parse(&stored.record.file, path, &context.catalogue)?;
        book.load_hosts.allowed = AllowedLoadHosts::of(&file, args.target.as_deref());
        Ok(book)
    }

    fn open(
        context: &Context,
        store: &StoreArgs,
        report: Option<&Path>,
        (on, allowed, most): (&HostArgs, AllowedLoadHosts, Most),
        repeat: Vec<String>,
    ) -> Result<Book> {
        Ok(Book {
            store: store_of(context, store, report)?,
            id: None,
            planned: Planned::default(),
            most,
            ended: None,
            report: report.map(Path::to_owned),
            as_json: store.json,
            options: options_of(on),
            context: context.clone(),
            named: named_at(String::new(), on),
            load_hosts: LoadHostsOfRun::new(context, on, allowed),
            repeat,
        })
    }

    /// Of an experiment that another command runs, with the commands that repeat it.
    pub(crate) fn of_command(
        context: &Context,
        store: &StoreArgs,
        at: &RunHostArgs,
        (sent, repeat): (&Sent, Vec<String>),
    ) -> Result<Book> {
        let allowed = sent.allowed.clone();
        Book::open(context, store, None, (&at.on, allowed, sent.most), repeat)
    }

    /// The same of an experiment that was begun before.
    fn resuming(mut self, stored: &StoredExperiment) -> Book {
        self.id = Some(stored.id);
        self.planned = Planned::of(&stored.record);
        self
    }

    /// Of an experiment that another command has begun before, and goes on with.
    pub(crate) fn of_command_resumed(self, id: i64) -> Result<Book> {
        let stored = self.store.experiment_alone(id)?;
        Ok(self.resuming(&stored))
    }

    /// Does what the run there asks for.
    pub(crate) fn answer(&mut self, question: Question) -> Answer {
        match self.answered(question) {
            Ok(answer) => answer,
            Err(error) => Answer::Failed(error.to_string()),
        }
    }

    fn answered(&mut self, question: Question) -> Result<Answer, StoreError> {
        let question = match self.load_hosts.answer(question) {
            Ok(answer) => return Ok(answer),
            Err(other) => other,
        };
        let of = match &question {
            Question::TimeOfDay
            | Question::Begin(_)
            | Question::Keep
            | Question::Generator(_)
            | Question::AskLoadHosts(_)
            | Question::Drive(_)
            | Question::NextOfHosts { .. }
            | Question::Seen(_) => None,
            Question::AddTreatment { id, .. }
            | Question::AddTrials { id, .. }
            | Question::Experiment(id)
            | Question::SetStatus { id, .. }
            | Question::SetRestored { id, .. }
            | Question::Ended(RunEnd { id, .. }) => Some(*id),
        };
        if of.is_some_and(|id| self.id != Some(id)) {
            let why = "it was asked for another experiment than this run's".to_owned();
            return Err(StoreError::Elsewhere(why));
        }
        match question {
            Question::TimeOfDay => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                let ns = now.unwrap_or_default().as_nanos();
                Ok(Answer::Clock(u64::try_from(ns).unwrap_or(u64::MAX)))
            }
            Question::Begin(_) if self.id.is_some() => {
                Err(StoreError::Elsewhere("the run has begun already".to_owned()))
            }
            Question::Begin(mut record) => {
                let catalogue = &self.context.catalogue;
                check_begun(&record, &self.named, &self.load_hosts.allowed, catalogue)
                    .and_then(|()| self.most.check(&record))
                    .map_err(StoreError::Elsewhere)?;
                record.repeat.clone_from(&self.repeat);
                let id = self.store.begin(&record)?;
                self.id = Some(id);
                self.planned = Planned::of(&record);
                Ok(Answer::Numbered(id))
            }
            Question::AddTreatment { id, treatment } => {
                let is_new = !self.planned.treatments.contains(&treatment.name);
                if is_new && (!self.most.is_search || self.planned.treatments.len() >= TREATMENTS_MAX) {
                    let why = "it adds more treatments than the experiment has".to_owned();
                    return Err(StoreError::Elsewhere(why));
                }
                self.store.add_treatment(id, &treatment)?;
                self.planned.treatments.extend(is_new.then_some(treatment.name));
                Ok(Answer::Done)
            }
            Question::Keep => self.store.keep().map(|()| Answer::Done),
            Question::AddTrials { id, trials } => {
                let mut unpacked = Vec::with_capacity(trials.len());
                for (trial, series) in trials {
                    self.planned.check(trial.block, &trial.treatment)?;
                    let series = series.unpacked().map_err(StoreError::Elsewhere)?;
                    unpacked.push((trial, series));
                }
                self.store.add_trials(id, &unpacked).map(|_| Answer::Done)
            }
            Question::Experiment(id) => {
                let stored = self.store.experiment(id)?;
                Ok(Answer::Experiment(Box::new(stored)))
            }
            Question::SetStatus { id, status } => self.store.set_status(id, status).map(|()| Answer::Done),
            Question::SetRestored { id, lines } => self.store.set_restored(id, &lines).map(|()| Answer::Done),
            Question::Generator(_)
            | Question::Seen(_)
            | Question::AskLoadHosts(_)
            | Question::Drive(_)
            | Question::NextOfHosts { .. } => Err(StoreError::Elsewhere("no run asks for that".to_owned())),
            Question::Ended(end) => {
                self.ended = Some(end);
                Ok(Answer::Done)
            }
        }
    }

    /// Shows others how far the run is; it is not kept.
    pub(crate) fn note(&self, id: i64, progress: &ProgressRecord) {
        if let Some(place) = self.store.progress_place().filter(|_| self.id == Some(id)) {
            let _ = place.write(id, progress);
        }
    }

    /// Shows the result of a run that has come to its end, and returns the exit code: of the other
    /// host, where that is none of success.
    pub(crate) fn finish(self, context: &Context, code: Result<u8>) -> Result<u8> {
        let Some(RunEnd { id, status }) = self.ended else {
            return code.map_err(|error| self.unfinished(error));
        };
        let report = show_report(context, &self.store, id, self.report.as_deref(), self.as_json)?;
        let ended = end_of(context, &self.store, &report, status, &self.options)?;
        match code {
            Ok(exit::FINE) => Ok(ended),
            Ok(code) => Ok(code),
            // All is done and restored; only the last word was lost.
            Err(error) => {
                err!("{error}");
                Ok(ended)
            }
        }
    }

    /// How the run has ended, for the command that runs it; not where it failed, which is said
    /// already.
    pub(crate) fn into_end(self, code: Result<u8>) -> Result<RunEnd> {
        match (&self.ended, code) {
            (_, Ok(code)) if code != exit::FINE => {
                Err(exit::ended_on(self.named.trim_start_matches(ON), code))
            }
            (Some(ended), code) => {
                // All is done and restored; only the last word was lost.
                if let Err(error) = code {
                    err!("{error}");
                }
                Ok(ended.clone())
            }
            (None, Ok(_)) => fail!(
                "{}: the run there has ended without its result; run it again",
                self.named.trim_start_matches(ON)
            ),
            (None, Err(error)) => Err(self.unfinished(error)),
        }
    }

    /// An error that ended the run, with how it is gone on with.
    fn unfinished(&self, error: Failure) -> Failure {
        match self.id {
            Some(id) => error.context(format!(
                "experiment {id} (`pgdyno resume {id}{}` continues it)",
                self.options
            )),
            None => error,
        }
    }
}

/// How long a run outlives its connection, and what then.
pub(crate) fn takeover(context: &Context, store: &StoreArgs, at: &RunHostArgs) -> Result<Takeover> {
    takeover_of(&context.store_place(store.store.place())?.identity(), at)
}

/// The same of a command of this kind, of which a run that is resumed ends none.
pub(crate) fn takeover_of(kind: &str, at: &RunHostArgs) -> Result<Takeover> {
    let then = match at.on_disconnect {
        OnDisconnect::Restore => Then::Restore,
        OnDisconnect::Keep => Then::Keep,
    };
    Takeover::draw(kind, at.grace, then).context("drawing a name for the connection")
}

/// Refuses an experiment that would be resumed on this host, or with other load hosts than were
/// named for it: its record is made by a host that is not to be trusted.
fn check_begun(
    record: &ExperimentRecord,
    named: &str,
    allowed: &AllowedLoadHosts,
    catalogue: &Catalogue,
) -> Result<(), String> {
    if named.is_empty() || !record.target.ends_with(named) {
        return Err("it names a target that is not its own".to_owned());
    }
    let file = ExperimentFile::parse(&record.file, Path::new("the experiment there"), catalogue);
    match allowed.covers(&AllowedLoadHosts::of(
        &file.map_err(|error| error.to_string())?,
        None,
    )) {
        true => Ok(()),
        false => Err("it names load hosts that the experiment's file does not have".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_record::{TreatmentRecord, WorkloadRecord};

    #[test]
    fn experiment_that_another_host_begins_is_its_own_and_has_no_other_load_hosts() {
        let catalogue = Catalogue::shipped().unwrap();
        let text = |load: &str| {
            format!(
                "name = 'x'\nquestion = '?'\ndesign = 'a-a'\nblocks = 2\n[target]\nsandbox = 'main'\n[data]\nscale = 1\n\
                 [load]\nworkload = 'tpcb'\nclients = 2\nwarmup_s = 0\nmeasure_s = 1\n{load}"
            )
        };
        let with_hosts = text("hosts = ['ssh:gen1']\nconnection = 'host=10.0.0.5'\n");
        let sent = ExperimentFile::parse(&with_hosts, Path::new("sent"), &catalogue).unwrap();
        let allowed = AllowedLoadHosts::of(&sent, None);
        let check = |target: &str, file: &str| {
            let workload = WorkloadRecord {
                name: "tpcb".into(),
                scale: 1,
                clients: 2,
                threads: 1,
                warmup_s: 0.0,
                measure_s: 1.0,
            };
            let record = ExperimentRecord {
                target: target.to_owned(),
                file: file.to_owned(),
                ..ExperimentRecord::new("x", workload)
            };
            check_begun(&record, " on ssh:db1", &allowed, &catalogue)
        };
        assert_eq!(check("sandbox main on ssh:db1", &with_hosts), Ok(()));
        assert_eq!(check("sandbox main on ssh:db1", &text("")), Ok(()));
        for target in ["sandbox main", "sandbox main on ssh:db2", ""] {
            assert!(
                check(target, &with_hosts).unwrap_err().contains("not its own"),
                "{target}"
            );
        }
        for load in [
            "hosts = ['ssh:other']\nconnection = 'host=10.0.0.5'\n",
            "hosts = ['ssh:gen1']\nconnection = 'host=10.0.0.6'\n",
        ] {
            let why = check("sandbox main on ssh:db1", &text(load)).unwrap_err();
            assert!(why.contains("load hosts"), "{why}");
        }
        assert!(check("sandbox main on ssh:db1", "no file").is_err());
    }

    #[test]
    fn experiment_that_another_host_begins_has_no_more_than_its_file_plans() {
        let catalogue = Catalogue::shipped().unwrap();
        let text = "name = 'x'\nquestion = '?'\ndesign = 'a-a'\nblocks = 2\n[target]\nsandbox = 'main'\n[data]\nscale = 1\n\
                    [load]\nworkload = 'tpcb'\nclients = 2\nwarmup_s = 0\nmeasure_s = 1\n";
        let most = Most::of(&ExperimentFile::parse(text, Path::new("sent"), &catalogue).unwrap());
        let check = |blocks: u32, treatments: usize| {
            let workload = WorkloadRecord {
                name: "tpcb".into(),
                scale: 1,
                clients: 2,
                threads: 1,
                warmup_s: 0.0,
                measure_s: 1.0,
            };
            most.check(&ExperimentRecord {
                blocks,
                treatments: vec![TreatmentRecord::new("again"); treatments],
                ..ExperimentRecord::new("x", workload)
            })
        };
        assert_eq!(check(2, 2), Ok(()));
        assert!(check(3, 2).unwrap_err().contains("more blocks"));
        assert!(check(2, 3).unwrap_err().contains("more treatments"));
    }

    #[test]
    fn trial_that_is_not_planned_is_not_kept() {
        let planned = Planned {
            blocks: 3,
            treatments: vec!["as it is".to_owned(), "more memory".to_owned()],
        };
        for (block, treatment, is_kept) in [
            (1, "as it is", true),
            (3, "more memory", true),
            (0, "as it is", false),
            (4, "as it is", false),
            (1, "other", false),
        ] {
            assert_eq!(
                planned.check(block, treatment).is_ok(),
                is_kept,
                "{block} {treatment}"
            );
        }
    }
}
