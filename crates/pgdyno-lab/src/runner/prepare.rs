//! Before the first trial: what cannot be tested is left out by name, what is contradictory or does not fit is refused, data
//! is made.

use super::{Event, Lab, LabError, is_sandbox};
use crate::collect::collect_facts;
use crate::file::{Design, ExperimentFile, Place, PoolerWord, Prewarm, Reset, StudyPart};
use crate::plan::{Plan, Stand, Treatment};
use crate::preflight::Preflight;
use crate::runner::data::{DataKey, Untouched, data_of};
use crate::runner::load::{threads_of, workload_record};
use pgdyno_knobs::{Catalogue, Changer, Gives, Knob, Setting, Target};
use pgdyno_load::Dataset;
use pgdyno_server::{Control, PoolMode, Server, SessionLimits};
use pgdyno_store::{
    ClaimRecord, ExperimentRecord, FactRecord, FactorRecord, FigureRecord, SettingRecord, StudyRecord,
    TableRecord, TreatmentRecord,
};
use std::collections::BTreeSet;

/// What is stored with an experiment beside its plan.
pub(super) struct Stored<'t> {
    pub(super) text: &'t str,
    pub(super) name_of_target: &'t str,
    pub(super) repeat: Vec<String>,
}

/// The stand that is looked at first: the target, or the first of those there are where no treatment runs on the target.
pub(super) fn first_stand(plan: &Plan) -> Stand {
    let stands: BTreeSet<Stand> = plan.treatments.iter().map(Treatment::stand).collect();
    stands.into_iter().next().unwrap_or_default()
}

impl<'a> Lab<'a> {
    /// Leaves out, checks, makes data, and begins the experiment in the store; its number, and the data that was made.
    pub(super) fn prepare(
        &mut self,
        plan: &mut Plan,
        changer: &mut Changer<'_>,
        server: &mut Server,
        stored: Stored<'_>,
    ) -> Result<(i64, Untouched), LabError> {
        let target = changer.target()?;
        self.preflight(plan, target, server)?;
        let first = first_stand(plan);
        let made = self.ensure_data_here(plan, changer, &first)?;
        let target = changer.target()?;
        let sandbox = match &target.control {
            Control::Sandbox(sandbox) => Some(&**sandbox),
            _ => None,
        };
        let host = target.data.is_some().then_some(&**self.host);
        let mut facts = collect_facts(host, server, sandbox)?.facts;
        facts.push(FactRecord {
            group: "load".to_owned(),
            name: "pgdyno.version".to_owned(),
            value: Some(env!("CARGO_PKG_VERSION").into()),
            missing: None,
            source: "the program".to_owned(),
        });
        let file = &plan.file;
        let record = ExperimentRecord {
            name: file.name.clone(),
            question: file.question.clone(),
            design: file.design.name().into(),
            blocks: file.blocks,
            seed: plan.seed,
            confidence: file.confidence,
            smallest_effect: file.smallest_effect,
            workload: workload_record(&file.load, &file.data),
            treatments: treatment_records(plan, self.catalogue),
            facts,
            file: stored.text.to_owned(),
            repeat: stored.repeat,
            target: stored.name_of_target.to_owned(),
            metric: file.metric.clone(),
            stop: file.stop.name().to_owned(),
            factors: factor_records(file),
            figures: file
                .figure
                .iter()
                .map(|figure| FigureRecord {
                    name: figure.name.clone(),
                    larger_is_better: figure.larger_is_better,
                })
                .collect(),
            study: file.study.as_ref().map(|study| study_record(study, &file.metric)),
        };
        Ok((self.store.begin(&record)?, made))
    }

    /// Finds all that keeps something from running; treatments that cannot be tested are left out by name.
    fn preflight(&mut self, plan: &mut Plan, target: &Target, server: &mut Server) -> Result<(), LabError> {
        let path = (self.environment)("PATH");
        let preflight = Preflight {
            host: &**self.host,
            catalogue: self.catalogue,
            target,
            consent: self.consent,
            path: path.as_deref(),
        };
        let found = preflight.check(plan, server)?;
        if found.is_fatal() {
            return Err(LabError::Findings(found.findings));
        }
        for treatment in &plan.treatments {
            if let Some(reason) = &treatment.why_not {
                (self.on_event)(Event::NotTested { treatment, reason });
            }
        }
        Ok(())
    }

    /// Makes the data of the tested treatments that stand here, and tells what was not there before; other servers get theirs when it is
    /// their turn.
    fn ensure_data_here(
        &mut self,
        plan: &Plan,
        changer: &mut Changer<'_>,
        here: &Stand,
    ) -> Result<Untouched, LabError> {
        let tested = plan.tested().into_iter().map(|i| &plan.treatments[i]);
        let wanted: BTreeSet<DataKey> = tested
            .filter(|treatment| treatment.stand() == *here)
            .filter_map(data_of)
            .collect();
        let mut made = Untouched::new();
        for data in wanted {
            if self.ensure_data(plan, changer, data)? {
                made.insert((here.clone(), data.name()));
            }
        }
        Ok(made)
    }
}

/// What a treatment asks for that only a sandbox can have, or only this machine.
pub(crate) fn cannot_stand(treatment: &Treatment, target: &Target) -> Vec<String> {
    let data = treatment.data;
    let load = &treatment.load;
    let wants = [
        (
            !treatment.stand().is_target(),
            "another version, place or network",
        ),
        (data.reset == Some(Reset::Recreate), "making tables anew"),
        (data.fillfactor.is_some(), "a fillfactor of the load's tables"),
        (data.reset == Some(Reset::Template), "a database made anew"),
        (data.reset == Some(Reset::Copy), "a copy of the files"),
        (data.prewarm == Some(Prewarm::Cold), "a cold start"),
        (load.crash == Some(true), "a crash"),
        (treatment.has_pooler(), "a pooler"),
    ];
    let unmet = wants.iter().filter(|(wanted, _)| *wanted && !is_sandbox(target));
    let mut reasons: Vec<String> = unmet
        .map(|(_, what)| format!("{what} is for sandboxes only"))
        .collect();
    reasons.extend(too_small(treatment));
    if let Some(cpus) = &load.cpus {
        let most = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let beyond = cpus.iter().filter(|cpu| **cpu as usize >= most);
        reasons.extend(beyond.map(|cpu| format!("this machine has no CPU {cpu}")));
    }
    reasons
}

/// Why the file system that is made for a treatment's data does not hold it, if so.
fn too_small(treatment: &Treatment) -> Option<String> {
    let place = treatment.server.data_on.as_deref()?;
    let Ok(Place::Made(plan)) = Place::named(place) else {
        return None;
    };
    let once = treatment.data_bytes()?;
    let needed = match treatment.data.reset {
        Some(Reset::Template) => once * 2,
        _ => once,
    };
    (needed > plan.size_bytes).then(|| {
        format!(
            "the data needs about {} MB, more than {place} holds",
            needed >> 20
        )
    })
}

/// Sessions that pgdyno itself has: one that asks, one that records, and one in reserve.
pub(crate) const OWN_SESSIONS: u32 = 3;

/// Why a treatment has more clients than its server has room for, if so, and for how many it has.
pub(crate) fn too_many_clients(
    treatment: &Treatment,
    limits: &SessionLimits,
    catalogue: &Catalogue,
) -> Option<(String, u32)> {
    let clients = treatment.load.clients?;
    if treatment.has_pooler() {
        return None;
    }
    let gives_sessions = |setting: &&Setting| {
        let knob = catalogue.get(&setting.knob);
        knob.is_ok_and(|knob| knob.gives == Some(Gives::Sessions))
    };
    let set = treatment.settings.iter().find(gives_sessions);
    let most = set
        .and_then(|setting| setting.value.parse().ok())
        .unwrap_or(limits.most);
    let room = most.saturating_sub(limits.kept + OWN_SESSIONS);
    let words = || {
        format!(
            "{clients} clients are more than the {room} for whom a limit of {most} sessions (max_connections) has room, beside what \
             is kept back"
        )
    };
    (clients > room).then(|| (words(), room))
}

/// Treatments as they are stored.
pub(crate) fn treatment_records(plan: &Plan, catalogue: &Catalogue) -> Vec<TreatmentRecord> {
    let setting_record = |setting: &Setting, changed: bool| {
        let knob = catalogue.get(&setting.knob).ok();
        SettingRecord {
            knob: setting.knob.clone(),
            value: setting.value.clone(),
            layer: knob.map_or("postgres", |k| k.layer.name()).to_owned(),
            risk: knob
                .map_or("none", |k: &Knob| k.risk_of(&setting.value).name())
                .to_owned(),
            changed,
        }
    };
    let treatments = plan.treatments.iter().map(|treatment| TreatmentRecord {
        name: treatment.name.clone(),
        title: treatment.title.clone(),
        reason: treatment.reason.clone(),
        why_not: treatment.why_not.clone(),
        settings: treatment
            .settings
            .iter()
            .map(|setting| setting_record(setting, treatment.step.contains(setting)))
            .collect(),
        levels: treatment.levels.clone(),
        against: treatment.against.map(|i| plan.treatments[i].name.clone()),
        workload: (treatment.load != plan.file.load || treatment.data != plan.file.data)
            .then(|| workload_record(&treatment.load, &treatment.data)),
        around: around(treatment),
    });
    treatments.collect()
}

fn around(treatment: &Treatment) -> Vec<(String, String)> {
    let (data, server) = (&treatment.data, &treatment.server);
    let text = |value: &Option<String>| value.clone();
    let word = |value: Option<&str>| value.map(str::to_owned);
    let number = |value: Option<u32>| value.map(|n| n.to_string());
    let named = [
        ("server.version", number(server.version)),
        ("server.data_on", text(&server.data_on)),
        ("server.wal_on", text(&server.wal_on)),
        ("server.pooler", word(server.pooler.map(PoolerWord::name))),
        (
            "server.pool_mode",
            word(server.pool_mode.map(|mode| PoolMode::from(mode).name())),
        ),
        ("server.pool_size", number(server.pool_size)),
        ("server.neighbour", text(&server.neighbour)),
        ("server.neighbour_memory", text(&server.neighbour_memory)),
        ("server.network", text(&server.network)),
        ("data.dataset", word(data.dataset.map(Dataset::name))),
        ("data.reset", word(data.reset.map(Reset::name))),
        ("data.prewarm", word(data.prewarm.map(Prewarm::name))),
        ("data.fillfactor", number(data.fillfactor)),
        ("load.threads", Some(threads_of(&treatment.load).to_string())),
    ];
    named
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect()
}

fn factor_records(file: &ExperimentFile) -> Vec<FactorRecord> {
    let along = file.design == Design::Ladder;
    let factors = file.factor.iter().map(|factor| FactorRecord {
        name: factor.name.clone(),
        title: factor.title.clone().unwrap_or_else(|| factor.name.clone()),
        along: factor.along || along,
        levels: factor
            .levels()
            .unwrap_or_default()
            .into_iter()
            .map(|level| level.name)
            .collect(),
    });
    factors.collect()
}

/// `metric`: what a claim is about that names none.
fn study_record(study: &StudyPart, metric: &str) -> StudyRecord {
    StudyRecord {
        source: study.source.clone(),
        title: study.title.clone(),
        tables: study
            .table
            .iter()
            .map(|table| TableRecord {
                title: table.title.clone(),
                rows: table.rows.clone(),
                columns: table.columns.clone(),
                values: table.values.clone(),
            })
            .collect(),
        claims: study
            .claim
            .iter()
            .map(|claim| ClaimRecord {
                text: claim.text.clone(),
                of: claim.of.clone(),
                against: claim.against.clone(),
                metric: claim.metric.clone().unwrap_or_else(|| metric.to_owned()),
                found: claim.found.name().to_owned(),
                ratio: claim.ratio,
            })
            .collect(),
    }
}
