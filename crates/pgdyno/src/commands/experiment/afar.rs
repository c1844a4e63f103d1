//! The coordinator's end of a run on another host: its files go there, and its results are kept and shown here.

use super::keeper::{last_unfinished, options_of, store_of};
use super::{end_of, show_report, text_of};
use crate::cli::{OnDisconnect, ResumeArgs, RunArgs, RunHostArgs, StoreArgs};
use crate::commands::profile;
use crate::context::Context;
use crate::exit;
use crate::failure::{InContext as _, Result};
use crate::generators::AskedOfHosts;
use crate::shipped;
use pgdyno_lab::{ExperimentFile, asks_for_target, given, sized};
use pgdyno_record::ProgressRecord;
use pgdyno_remote::{Answer, CarriedFile, LoadHostWays, Question, RunEnd, SshHost, Takeover, Then};
use pgdyno_store::{Store, StoreError};
use pgdyno_workload::Work;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A host of any size, where only the names in a file are asked for.
const ANY_MEMORY: u64 = 8 << 30;
const ANY_CPUS: f64 = 4.0;

/// What a run on another host needs from here.
pub(crate) struct Sent {
    /// The experiment's file, and those of its profiles.
    pub(crate) files: Vec<CarriedFile>,
    /// Hosts that the file names for loads.
    load_hosts: BTreeSet<String>,
}

impl Sent {
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
            load_hosts: file.load_hosts(),
        })
    }
}

/// The experiment of a text; what follows from the target is as of any.
fn parsed(context: &Context, text: &str, args: &RunArgs) -> Result<ExperimentFile> {
    let whole = sized(text, &args.file, args.size.as_deref(), &args.set)?;
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
    ended: Option<RunEnd>,
    report: Option<PathBuf>,
    as_json: bool,
    options: String,
    context: Context,
    /// The host of the run.
    target: Option<SshHost>,
    /// Whether it has root's rights there.
    sudo: bool,
    /// Hosts that its file names for loads: a host that is not to be trusted has nothing done by others.
    load_hosts: BTreeSet<String>,
    /// What load hosts do for it.
    asked: Option<AskedOfHosts>,
}

impl Book {
    /// Of a run, with what it has sent.
    pub(crate) fn of_run(context: &Context, args: &RunArgs, sent: &Sent) -> Result<Book> {
        let mut book = Book::open(context, &args.store, args.report.as_deref(), &args.at)?;
        book.load_hosts.clone_from(&sent.load_hosts);
        Ok(book)
    }

    /// Of a run that is resumed; adds to the arguments which one, where they do not say it.
    pub(crate) fn of_resume(
        context: &Context,
        args: &ResumeArgs,
        arguments: &mut Vec<String>,
    ) -> Result<Book> {
        let mut book = Book::open(context, &args.store, args.report.as_deref(), &args.at)?;
        let id = match args.id {
            Some(id) => id,
            None => {
                let id = last_unfinished(&book.store)?;
                arguments.push(id.to_string());
                id
            }
        };
        book.id = Some(id);
        let stored = book.store.experiment_alone(id)?;
        let path = Path::new("the stored experiment");
        let file = ExperimentFile::parse(&stored.record.file, path, &context.catalogue)?;
        book.load_hosts = file.load_hosts();
        Ok(book)
    }

    fn open(context: &Context, store: &StoreArgs, report: Option<&Path>, at: &RunHostArgs) -> Result<Book> {
        Ok(Book {
            store: store_of(context, store, report)?,
            id: None,
            ended: None,
            report: report.map(Path::to_owned),
            as_json: store.json,
            options: options_of(&at.on),
            context: context.clone(),
            target: at.on.host.clone(),
            sudo: at.on.sudo,
            load_hosts: BTreeSet::new(),
            asked: None,
        })
    }

    /// Does what the run there asks for.
    pub(crate) fn answer(&mut self, question: Question) -> Answer {
        match self.answered(question) {
            Ok(answer) => answer,
            Err(error) => Answer::Failed(error.to_string()),
        }
    }

    fn answered(&mut self, question: Question) -> Result<Answer, StoreError> {
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
            | Question::AddTrial { id, .. }
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
            Question::Begin(record) => {
                let id = self.store.begin(&record)?;
                self.id = Some(id);
                Ok(Answer::Numbered(id))
            }
            Question::AddTreatment { id, treatment } => {
                self.store.add_treatment(id, &treatment).map(|()| Answer::Done)
            }
            Question::Keep => self.store.keep().map(|()| Answer::Done),
            Question::AddTrial { id, trial, series } => {
                let series = series.unpacked().map_err(StoreError::Elsewhere)?;
                self.store.add_trial(id, &trial, &series).map(Answer::Numbered)
            }
            Question::Experiment(id) => {
                let stored = self.store.experiment(id)?;
                Ok(Answer::Experiment(Box::new(stored)))
            }
            Question::SetStatus { id, status } => self.store.set_status(id, status).map(|()| Answer::Done),
            Question::SetRestored { id, lines } => self.store.set_restored(id, &lines).map(|()| Answer::Done),
            Question::Generator(_) => Err(StoreError::Elsewhere("a run drives no part of a load".to_owned())),
            Question::Seen(_) => Err(StoreError::Elsewhere("a run shows no target".to_owned())),
            Question::Drive(load) => {
                // No experiment has one.
                if matches!(&load.plan.work, Work::Scripts(scripts) if scripts.allow_shell) {
                    let why = "it asks for commands of the shell";
                    return Err(StoreError::Elsewhere(why.to_owned()));
                }
                let target = self.target_of_hosts(&load.hosts)?;
                self.keep_asked(AskedOfHosts::to_drive(&self.context, *load, target))
            }
            Question::AskLoadHosts(hosts) => {
                let target = self.target_of_hosts(&hosts)?;
                self.keep_asked(AskedOfHosts::whether_they_reach(&self.context, hosts, target))
            }
            Question::NextOfHosts { stop } => {
                let Some(asked) = &mut self.asked else {
                    return Err(StoreError::Elsewhere("no load host does anything".to_owned()));
                };
                let answer = asked.next(stop);
                if !matches!(answer, Answer::Second(_) | Answer::Done) {
                    self.asked = None;
                }
                Ok(answer)
            }
            Question::Ended(end) => {
                self.ended = Some(end);
                Ok(Answer::Done)
            }
        }
    }

    /// The host of the run, and whether it has root's rights there, where these load hosts may be asked for something.
    fn target_of_hosts(&self, hosts: &LoadHostWays) -> Result<(&SshHost, bool), StoreError> {
        let is_of_file = |(name, _): &(String, Vec<String>)| self.load_hosts.contains(name);
        match &self.target {
            Some(target) if !hosts.0.is_empty() && hosts.0.iter().all(is_of_file) && self.asked.is_none() => {
                Ok((target, self.sudo))
            }
            _ => Err(StoreError::Elsewhere(
                "it asks for load hosts that the experiment's file does not have".to_owned(),
            )),
        }
    }

    fn keep_asked(&mut self, asked: io::Result<AskedOfHosts>) -> Result<Answer, StoreError> {
        self.asked = Some(asked.map_err(|error| StoreError::Elsewhere(error.to_string()))?);
        Ok(Answer::Done)
    }

    /// Shows others how far the run is; it is not kept.
    pub(crate) fn note(&self, id: i64, progress: &ProgressRecord) {
        if let Some(place) = self.store.progress_place().filter(|_| self.id == Some(id)) {
            let _ = place.write(id, progress);
        }
    }

    /// Shows the result of a run that has come to its end, and returns the exit code: of the other host, where that is none of success.
    pub(crate) fn finish(self, context: &Context, code: Result<u8>) -> Result<u8> {
        let Some(RunEnd { id, status }) = self.ended else {
            let run = |id| {
                format!(
                    "experiment {id} (`pgdyno resume {id}{}` goes on with it)",
                    self.options
                )
            };
            return match (code, self.id) {
                (Err(error), Some(id)) => Err(error.context(run(id))),
                (code, _) => code,
            };
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
}

/// How long a run outlives its connection, and what then.
pub(crate) fn takeover(at: &RunHostArgs) -> Result<Takeover> {
    let then = match at.on_disconnect {
        OnDisconnect::Restore => Then::Restore,
        OnDisconnect::Keep => Then::Keep,
    };
    Takeover::draw(at.grace, then).context("drawing a name for the connection")
}
