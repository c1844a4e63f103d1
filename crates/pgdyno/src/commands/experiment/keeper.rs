//! Who keeps the results of a run: a store of this host, or the coordinator of another one.

use super::{check_report, dry, finish, show_end};
use crate::cli::{HostArgs, StoreArgs};
use crate::context::Context;
use crate::exit;
use crate::failure::{Result, Usage};
use crate::noted::NotedIn;
use crate::repeated::shell_word;
use pgdyno_lab::{Results, Summary};
use pgdyno_record::{
    ExperimentRecord, ExperimentStatus, FactRecord, RestoredRecord, SeriesRecord, StoredExperiment,
    TreatmentRecord, TrialRecord,
};
use pgdyno_remote::{Answer, Coordinator, OtherClock, Question, RunEnd, SentSeries};
use pgdyno_store::{Store, StoreError};
use serde_json::json;
use std::path::Path;

/// Keeps the results of a run, and shows others how far it is.
pub(crate) trait Keeper: Results {
    /// Where the progress is written down.
    fn noted_in(&self) -> NotedIn;

    /// Options that the run is resumed with, from a space on; empty where none is needed.
    fn options(&self) -> String;
}

impl Keeper for Store {
    fn noted_in(&self) -> NotedIn {
        NotedIn::of(self)
    }

    fn options(&self) -> String {
        String::new()
    }
}

/// Who keeps the results of a run.
pub(super) enum Kept {
    Here(Box<Store>),
    Afar(Afar),
}

impl Kept {
    /// The store, if results and report can be written, before hours of trials; or the coordinator,
    /// which has seen to that.
    pub(super) fn open(
        context: &Context,
        store: &StoreArgs,
        report: Option<&Path>,
        on: &HostArgs,
    ) -> Result<Kept> {
        if let Some(coordinator) = context.coordinator() {
            return Ok(Kept::Afar(Afar {
                coordinator: coordinator.clone(),
                options: options_of(on),
                clock: None,
            }));
        }
        Ok(Kept::Here(Box::new(store_of(context, store, report)?)))
    }

    pub(super) fn keeper(&mut self) -> &mut dyn Keeper {
        match self {
            Kept::Here(store) => &mut **store,
            Kept::Afar(afar) => afar,
        }
    }

    /// The experiment to resume: the one that is named, or the last that is unfinished.
    pub(super) fn to_resume(&self, named: Option<i64>) -> Result<i64> {
        match (named, self) {
            (Some(id), _) => Ok(id),
            (None, Kept::Here(store)) => last_unfinished(store),
            (None, Kept::Afar(_)) => {
                Err(Usage("the coordinator names no experiment to resume".into()).into())
            }
        }
    }

    /// Shows the result where the results are, and what was restored here.
    pub(super) fn finish(
        &self,
        context: &Context,
        summary: &Summary,
        report: Option<&Path>,
        as_json: bool,
    ) -> Result<u8> {
        match self {
            Kept::Here(store) => finish(context, store, summary, report, as_json),
            Kept::Afar(afar) => {
                afar.done(Question::Ended(RunEnd {
                    id: summary.id,
                    status: summary.status,
                }))?;
                show_end(summary)?;
                Ok(exit::FINE)
            }
        }
    }
}

/// The options of a command for another host as a shell takes them, from a space on.
pub(crate) fn options_of(on: &HostArgs) -> String {
    let host = on.host.as_ref().map(ToString::to_string);
    let host = host.map(|host| format!(" --host {}", shell_word(&host)));
    let sudo = if on.sudo { " --sudo" } else { "" };
    host.unwrap_or_default() + sudo
}

/// The store of a run, if results and report can be written.
pub(super) fn store_of(context: &Context, store: &StoreArgs, report: Option<&Path>) -> Result<Store> {
    check_report(context, report)?;
    dry::kept::check_rights(context, store.store.place())?;
    context.store(store.store.place())
}

/// The experiment to resume where none is named.
pub(super) fn last_unfinished(store: &Store) -> Result<i64> {
    let numbers = store.numbers()?.into_iter();
    let mut unfinished = numbers.filter(|(_, status)| *status != ExperimentStatus::Finished);
    let last = unfinished.next().map(|(id, _)| id);
    last.ok_or_else(|| Usage("every experiment in the store is finished; name one to resume".into()).into())
}

/// The store of the coordinator.
pub(super) struct Afar {
    coordinator: Coordinator,
    options: String,
    /// The last reading of its clock.
    clock: Option<OtherClock>,
}

impl Afar {
    /// Its clock, which is asked for again where the last reading is old.
    fn clock(&mut self) -> Option<OtherClock> {
        self.clock = match self.clock {
            Some(clock) => clock.renewed(&self.coordinator, &Question::TimeOfDay),
            None => OtherClock::ask(&self.coordinator, &Question::TimeOfDay),
        };
        self.clock
    }

    fn ask(&self, question: Question) -> Result<Answer, StoreError> {
        match self.coordinator.ask(question) {
            Some(Answer::Failed(why)) => Err(StoreError::Elsewhere(why)),
            Some(answer) => Ok(answer),
            None => Err(StoreError::Elsewhere("the connection is lost".to_owned())),
        }
    }

    fn done(&self, question: Question) -> Result<(), StoreError> {
        match self.ask(question)? {
            Answer::Done => Ok(()),
            _ => Err(other()),
        }
    }

    fn numbered(&self, question: Question) -> Result<i64, StoreError> {
        match self.ask(question)? {
            Answer::Numbered(number) => Ok(number),
            _ => Err(other()),
        }
    }
}

/// Milliseconds to the microsecond.
fn rounded(ms: f64) -> f64 {
    (ms * 1e3).round() / 1e3
}

fn other() -> StoreError {
    StoreError::Elsewhere("it answers another question".to_owned())
}

impl Results for Afar {
    /// With how far the clock that stamps its series is from the coordinator's.
    fn begin(&mut self, record: &ExperimentRecord) -> Result<i64, StoreError> {
        let mut record = record.clone();
        let clock = self.clock();
        let fact = |name: &str, value_ms: Option<f64>| FactRecord {
            group: "host".to_owned(),
            name: name.to_owned(),
            value: value_ms.map(|ms| json!(rounded(ms))),
            missing: value_ms
                .is_none()
                .then(|| "the coordinator did not answer".to_owned()),
            source: "the coordinator, asked over the connection".to_owned(),
        };
        let error_ms = clock.map(|clock| clock.error.as_secs_f64() * 1e3);
        record.facts.extend([
            fact("host.clock_ahead_ms", clock.map(OtherClock::ahead_ms)),
            fact("host.clock_ahead_error_ms", error_ms),
        ]);
        self.numbered(Question::Begin(Box::new(record)))
    }

    fn add_treatment(&mut self, id: i64, treatment: &TreatmentRecord) -> Result<(), StoreError> {
        self.done(Question::AddTreatment {
            id,
            treatment: Box::new(treatment.clone()),
        })
    }

    fn keep(&mut self) -> Result<(), StoreError> {
        self.done(Question::Keep)
    }

    fn add_trials(&mut self, id: i64, trials: &[(TrialRecord, SeriesRecord)]) -> Result<(), StoreError> {
        let clock = self.clock();
        let error_ms = |clock: OtherClock| clock.error_now().as_secs_f64() * 1e3;
        let clock_ahead_ms = clock.map(|clock| (rounded(clock.ahead_ms()), rounded(error_ms(clock))));
        let sent = trials.iter().map(|(trial, series)| {
            let trial = TrialRecord {
                clock_ahead_ms,
                ..trial.clone()
            };
            (trial, SentSeries::of(series))
        });
        let trials = sent.collect();
        self.done(Question::AddTrials { id, trials })
    }

    fn experiment(&self, id: i64) -> Result<StoredExperiment, StoreError> {
        match self.ask(Question::Experiment(id))? {
            Answer::Experiment(stored) => Ok(*stored),
            _ => Err(other()),
        }
    }

    fn set_status(&mut self, id: i64, status: ExperimentStatus) -> Result<(), StoreError> {
        self.done(Question::SetStatus { id, status })
    }

    fn set_restored(&mut self, id: i64, lines: &[RestoredRecord]) -> Result<(), StoreError> {
        self.done(Question::SetRestored {
            id,
            lines: lines.to_vec(),
        })
    }
}

impl Keeper for Afar {
    fn noted_in(&self) -> NotedIn {
        NotedIn::Coordinator(self.coordinator.clone())
    }

    fn options(&self) -> String {
        self.options.clone()
    }
}
