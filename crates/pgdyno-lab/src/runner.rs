//! Running an experiment: trial after trial, each stored when it ends, everything put back at the end.

use crate::collect::collect_facts;
use crate::file::{ExperimentFile, FileError, RestartPolicy, SEED_MAX};
use crate::measure::{Depth, Probe, endpoint, measure};
use crate::plan::{Consent, Plan, PlanError, Treatment};
use crate::trial::{empty_record, failed, filled, now_unix_ms, seed_of_trial};
use pgdyno_host::HostAccess;
use pgdyno_knobs::{
    Applied, ApplyError, Catalogue, Changer, JournalError, Outcome, Patience, PutBack, Restart, Restorer,
    Setting, Target,
};
use pgdyno_load::{DataError, DataPlan, DataProgress, LoadPlan, Second, Warmup, create_data, shape_of};
use pgdyno_server::{Control, Lookup, Server, ServerError};
use pgdyno_store::{
    ExperimentRecord, ExperimentStatus, PutBackRecord, SeriesRecord, SettingRecord, Store, StoreError,
    TreatmentRecord, TrialRecord, WorkloadRecord,
};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What happens while an experiment runs, for whoever shows it.
#[derive(Debug)]
pub enum Event<'a> {
    /// Data is being created.
    Data(DataProgress),
    /// A treatment is left out.
    NotTested {
        /// Which.
        treatment: &'a Treatment,
        /// Why.
        reason: &'a str,
    },
    /// The experiment has its number.
    Begun {
        /// Number in the store.
        id: i64,
        /// Trials in all.
        trials: u32,
        /// Of which are stored already.
        done: u32,
        /// Length of a trial's load.
        trial_s: f64,
    },
    /// A trial begins: settings are applied now.
    TrialBegins {
        /// Which.
        treatment: &'a Treatment,
        /// 1-based.
        block: u32,
    },
    /// A second of the load.
    Second(&'a Second),
    /// A trial was stored.
    TrialEnds(&'a TrialRecord),
    /// Everything is being put back.
    PuttingBack,
}

/// Why an experiment could not be run, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The experiment file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The server, before the first trial.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The data.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Turning knobs, before the first trial.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// Putting back.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The server can be read, but not experimented with.
    #[error("PostgreSQL {0} is too old for an experiment; 14 and later can be used")]
    TooOld(String),
    /// Trouble twice.
    #[error("{error}; and {knobs} could not be put back, so the journal is kept for `pgdyno restore`")]
    NotPutBack {
        /// Knobs that are still changed.
        knobs: String,
        /// The trouble that ended the experiment.
        error: String,
    },
    /// Another server than the one the stored trials ran on.
    #[error(
        "experiment {id} ran on {was}, and this is {is}; trials of two servers cannot be compared as one"
    )]
    OtherTarget {
        /// Number in the store.
        id: i64,
        /// The stored target.
        was: String,
        /// The one given now.
        is: String,
    },
    /// Somebody's tables are in the way.
    #[error(
        "the server holds pgbench's tables at scale {there}, and the experiment wants {wanted}; pgdyno does not drop tables that it may not have made"
    )]
    OtherData {
        /// Scale of what is there.
        there: u32,
        /// Scale of the file.
        wanted: u32,
    },
    /// Nothing is left to compare.
    #[error("no step can be tested here: {0}")]
    NothingToTest(String),
    /// It is finished already.
    #[error("experiment {0} is finished; there is nothing to resume")]
    NothingToResume(i64),
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
}

/// Oldest version to experiment with.
const VERSION_MIN: u32 = 14;

/// Everything an experiment needs.
pub struct Lab<'a> {
    /// The machine: knobs are turned and facts read there.
    pub host: &'a Arc<dyn HostAccess>,
    /// The catalogue.
    pub catalogue: &'a Catalogue,
    /// Where journals are kept.
    pub journals: &'a Path,
    /// The store.
    pub store: &'a mut Store,
    /// For passwords.
    pub environment: Lookup<'a>,
    /// What the user has agreed to.
    pub consent: &'a Consent,
    /// Set to end in order.
    pub stop: &'a AtomicBool,
    /// Is told what happens.
    pub on_event: &'a mut dyn FnMut(Event<'_>),
}

impl<'a> Lab<'a> {
    /// Runs an experiment from its beginning. `text` is the file as it stands, `repeat` the commands that repeat it.
    pub fn run(
        &mut self,
        file: ExperimentFile,
        text: &str,
        target: Target,
        name_of_target: &str,
        repeat: Vec<String>,
    ) -> Result<Summary, LabError> {
        let drawn = || (now_unix_ms() ^ u64::from(std::process::id()).rotate_left(32)) & SEED_MAX;
        let seed = file.seed.unwrap_or_else(drawn);
        let mut plan = Plan::new(file, seed, self.catalogue, self.consent)?;
        let mut server = Server::connect(&target.conninfo)?;
        if server.version().major < VERSION_MIN {
            return Err(LabError::TooOld(server.version().to_string()));
        }
        let purpose = format!("run {}", plan.file.name);
        let changer = self.changer(target, &purpose)?;
        let prepared = self.prepare(&mut plan, &changer, &mut server, text, name_of_target, repeat);
        drop(server);
        match prepared {
            Ok(id) => self.go_on(id, &plan, changer),
            Err(error) => {
                changer.put_back(&self.restorer())?;
                Err(error)
            }
        }
    }

    /// Goes on with an experiment that was interrupted or killed: what is stored is not run again.
    pub fn resume(&mut self, id: i64, target: Target, name_of_target: &str) -> Result<Summary, LabError> {
        let stored = self.store.experiment(id)?;
        if stored.record.target != name_of_target {
            let (was, is) = (stored.record.target, name_of_target.to_owned());
            return Err(LabError::OtherTarget { id, was, is });
        }
        let file = ExperimentFile::parse(
            &stored.record.file,
            Path::new("the stored experiment"),
            self.catalogue,
        )?;
        let mut plan = Plan::new(file, stored.record.seed, self.catalogue, self.consent)?;
        let left_out: Vec<(usize, String)> = stored
            .record
            .treatments
            .iter()
            .enumerate()
            .filter_map(|(i, treatment)| Some((i, treatment.why_not.clone()?)))
            .collect();
        plan.leave_out(&left_out);
        if stored.trials.len() >= plan.trials() as usize {
            if stored.status == ExperimentStatus::Finished {
                return Err(LabError::NothingToResume(id));
            }
            // Killed between its last trial and the end.
            self.store.set_status(id, ExperimentStatus::Finished)?;
            return Ok(Summary {
                id,
                status: ExperimentStatus::Finished,
                put_back: Vec::new(),
            });
        }
        self.ensure_data(&plan, &target)?;
        self.store.set_status(id, ExperimentStatus::Running)?;
        let purpose = format!("resume {id}");
        let changer = self.changer(target, &purpose)?;
        self.go_on(id, &plan, changer)
    }

    fn changer(&self, target: Target, purpose: &str) -> Result<Changer<'a>, ApplyError> {
        let mut patience = Patience::none();
        Changer::begin(
            &**self.host,
            self.catalogue,
            Some(target),
            self.journals,
            purpose,
            None,
            &mut patience,
        )
    }

    fn restorer(&self) -> Restorer<'_> {
        Restorer {
            host: &**self.host,
            environment: self.environment,
            force: false,
            conninfo: None,
        }
    }

    fn prepare(
        &mut self,
        plan: &mut Plan,
        changer: &Changer<'_>,
        server: &mut Server,
        text: &str,
        name_of_target: &str,
        repeat: Vec<String>,
    ) -> Result<i64, LabError> {
        let mut left_out = Vec::new();
        for (i, treatment) in plan.treatments.iter().enumerate() {
            let settings = if i == 0 {
                &treatment.settings
            } else {
                &treatment.step
            };
            let reasons: Vec<String> = settings
                .iter()
                .filter_map(|setting| {
                    changer
                        .check(setting)
                        .err()
                        .map(|e| format!("{}: {e}", setting.knob))
                })
                .collect();
            if reasons.is_empty() {
                continue;
            }
            let reason = reasons.join("; ");
            if i == 0 {
                return Err(LabError::NothingToTest(reason));
            }
            (self.on_event)(Event::NotTested {
                treatment,
                reason: &reason,
            });
            left_out.push((i, reason));
        }
        plan.leave_out(&left_out);
        if plan.treatments.iter().filter(|t| t.why_not.is_none()).count() < 2 {
            let reasons: Vec<String> = left_out.into_iter().map(|(_, reason)| reason).collect();
            return Err(LabError::NothingToTest(reasons.join("; ")));
        }
        self.ensure_data(plan, changer.target()?)?;
        let sandbox = match &changer.target()?.control {
            Control::Sandbox(sandbox) => Some(&**sandbox),
            _ => None,
        };
        let host = changer.target()?.data.is_some().then_some(&**self.host);
        let facts = collect_facts(host, server, sandbox)?.facts;
        let record = ExperimentRecord {
            name: plan.file.name.clone(),
            question: plan.file.question.clone(),
            design: plan.file.design.name().into(),
            blocks: plan.file.blocks,
            seed: plan.seed,
            confidence: plan.file.confidence,
            smallest_effect: plan.file.smallest_effect,
            workload: WorkloadRecord {
                name: plan.file.load.workload.to_string(),
                scale: plan.file.data.scale,
                clients: plan.file.load.clients,
                threads: threads_of(plan),
                warmup_s: plan.file.load.warmup_s,
                measure_s: plan.file.load.measure_s,
            },
            treatments: self.treatment_records(plan),
            facts,
            file: text.to_owned(),
            repeat,
            target: name_of_target.to_owned(),
        };
        Ok(self.store.begin(&record)?)
    }

    fn ensure_data(&mut self, plan: &Plan, target: &Target) -> Result<(), LabError> {
        let Some(dataset) = plan.file.load.workload.dataset() else {
            return Ok(());
        };
        let (wanted, endpoint) = (plan.file.data.scale, endpoint(&target.conninfo));
        match shape_of(&endpoint, dataset).map(|shape| shape.scale) {
            Ok(scale) if scale == wanted => return Ok(()),
            Ok(there) if !matches!(target.control, Control::Sandbox(_)) => {
                return Err(LabError::OtherData { there, wanted });
            }
            Ok(_) | Err(DataError::Missing { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let (stop, on_event) = (self.stop, &mut *self.on_event);
        create_data(&endpoint, &DataPlan::new(dataset, wanted), &mut |progress| {
            on_event(Event::Data(progress));
            !stop.load(Ordering::Relaxed)
        })?;
        Ok(())
    }

    fn treatment_records(&self, plan: &Plan) -> Vec<TreatmentRecord> {
        let setting_record = |setting: &Setting, changed: bool| {
            let knob = self.catalogue.get(&setting.knob).ok();
            SettingRecord {
                knob: setting.knob.clone(),
                value: setting.value.clone(),
                layer: knob.map_or("postgres", |k| k.layer.name()).to_owned(),
                risk: knob
                    .map_or("none", |k| k.risk_of(&setting.value).name())
                    .to_owned(),
                changed,
            }
        };
        plan.treatments
            .iter()
            .map(|treatment| TreatmentRecord {
                name: treatment.name.clone(),
                title: treatment.title.clone(),
                reason: treatment.reason.clone(),
                why_not: treatment.why_not.clone(),
                settings: treatment
                    .settings
                    .iter()
                    .map(|setting| setting_record(setting, treatment.step.contains(setting)))
                    .collect(),
            })
            .collect()
    }

    fn go_on(&mut self, id: i64, plan: &Plan, mut changer: Changer<'_>) -> Result<Summary, LabError> {
        // Whatever happens in a trial, what it has changed is put back.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.trials(id, plan, &mut changer)));
        (self.on_event)(Event::PuttingBack);
        let put_back = changer.put_back(&self.restorer())?;
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
            Ok(Err(error)) => {
                let not_back: Vec<&str> = put_back
                    .iter()
                    .filter(|l| l.outcome == Outcome::Failed)
                    .map(|l| l.knob.as_str())
                    .collect();
                // The first trouble is the one to tell, but not alone if what was changed is still changed.
                if not_back.is_empty() {
                    return Err(error);
                }
                Err(LabError::NotPutBack {
                    knobs: not_back.join(", "),
                    error: error.to_string(),
                })
            }
            Ok(Ok(_)) => {
                kept?;
                Ok(Summary { id, status, put_back })
            }
        }
    }

    /// Runs what is not stored yet. Tells whether all is done, or somebody asked to stop.
    fn trials(&mut self, id: i64, plan: &Plan, changer: &mut Changer<'_>) -> Result<bool, LabError> {
        let done = self.store.done(id)?;
        (self.on_event)(Event::Begun {
            id,
            trials: plan.trials(),
            done: u32::try_from(done.len()).unwrap_or(u32::MAX),
            trial_s: plan.file.load.warmup_s + plan.file.load.measure_s,
        });
        for block in 1..=plan.file.blocks {
            for (i, number) in plan.order_of_block(block).into_iter().enumerate() {
                let treatment = &plan.treatments[number];
                if done
                    .iter()
                    .any(|(b, name)| *b == block && *name == treatment.name)
                {
                    continue;
                }
                if self.stop.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                (self.on_event)(Event::TrialBegins { treatment, block });
                let position = u32::try_from(i + 1).unwrap_or(u32::MAX);
                let Some((record, series)) = self.trial(plan, treatment, block, position, changer) else {
                    return Ok(false);
                };
                self.store.add_trial(id, &record, &series)?;
                (self.on_event)(Event::TrialEnds(&record));
            }
        }
        Ok(true)
    }

    /// One trial with what was recorded beside it; `None` when it was stopped, for half a trial is none.
    fn trial(
        &mut self,
        plan: &Plan,
        treatment: &Treatment,
        block: u32,
        position: u32,
        changer: &mut Changer<'_>,
    ) -> Option<(TrialRecord, SeriesRecord)> {
        let mut record = empty_record(block, position, &treatment.name, plan);
        let restart = match plan.file.target.restart {
            RestartPolicy::Always => Restart::Always,
            RestartPolicy::WhenNeeded => Restart::WhenNeeded,
        };
        let applied = match changer.apply(&treatment.settings, restart) {
            Ok(applied) => applied,
            Err(error) => return self.unless_stopped(failed(record, error.to_string())),
        };
        record.effective = applied
            .iter()
            .map(|a| (a.setting.knob.clone(), a.effective.clone()))
            .collect();
        let ignored = did_not_take(&applied);
        if !ignored.is_empty() {
            return self.unless_stopped(failed(record, ignored));
        }
        let target = match changer.target() {
            Ok(target) => target,
            Err(error) => return self.unless_stopped(failed(record, error.to_string())),
        };
        let probe = Probe {
            host: target.data.is_some().then(|| Arc::clone(self.host)),
            disk: target.disk.clone(),
            postmaster: target.postmaster(&**self.host),
            depth: Depth::Whole,
        };
        let file = &plan.file.load;
        let load = LoadPlan {
            warmup: Warmup::For(Duration::from_secs_f64(file.warmup_s)),
            measure: Duration::from_secs_f64(file.measure_s),
            seed: seed_of_trial(plan.seed, block, position),
            ..LoadPlan::closed(file.workload, file.clients, threads_of(plan))
        };
        let checkpointed = Server::connect(&target.conninfo).and_then(|mut server| {
            // On a limited disk it takes as long as it takes.
            server.without_limit()?;
            server.execute("a checkpoint before the load", "CHECKPOINT")
        });
        if let Err(error) = checkpointed {
            return self.unless_stopped(failed(record, error.to_string()));
        }
        let (stop, on_event) = (self.stop, &mut *self.on_event);
        let measured = measure(&target.conninfo, &load, &probe, stop, &mut |second| {
            on_event(Event::Second(second))
        });
        match measured {
            Ok(measurement) if measurement.load.stopped_early => None,
            Ok(measurement) => Some((filled(record, &measurement), measurement.series)),
            Err(error) => self.unless_stopped(failed(record, error.to_string())),
        }
    }

    /// What goes wrong because somebody asked to stop is no result.
    fn unless_stopped(&self, record: TrialRecord) -> Option<(TrialRecord, SeriesRecord)> {
        (!self.stop.load(Ordering::Relaxed)).then(|| (record, SeriesRecord::default()))
    }
}

fn threads_of(plan: &Plan) -> u32 {
    let half = std::thread::available_parallelism().map_or(1, |n| (n.get() / 2).max(1));
    let half = u32::try_from(half).unwrap_or(1);
    plan.file.load.threads.unwrap_or(half).min(plan.file.load.clients)
}

fn did_not_take(applied: &[Applied]) -> String {
    let ignored: Vec<String> = applied
        .iter()
        .filter(|a| !a.took)
        .map(|a| {
            format!(
                "{} = {} did not take effect, it is {}",
                a.setting.knob, a.setting.value, a.effective
            )
        })
        .collect();
    ignored.join("; ")
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
