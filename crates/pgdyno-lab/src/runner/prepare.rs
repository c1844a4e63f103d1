//! Before the first trial: what cannot be tested is excluded by name, what is contradictory or does
//! not fit is refused, data is made.

use super::data::Untouched;
use super::{Event, Runner};
use crate::decide::Looks;
use crate::error::LabError;
use crate::file::{Design, ExperimentFile, Instances, LoadOn, PoolerWord, Prewarm, Reset, StudyPart};
use crate::plan::{Plan, Treatment, threads_of, workload_record};
use crate::ports::TrialTarget;
use crate::preflight::Finding;
use pgdyno_knobs::{Catalogue, Knob, Setting};
use pgdyno_record::{
    ChartRecord, ClaimRecord, ExperimentRecord, FactRecord, FactorRecord, FigureRecord, SettingRecord,
    StudyRecord, TableRecord, TreatmentRecord, short_hash,
};
use pgdyno_sandbox::PoolMode;
use pgdyno_workload::Dataset;

/// What is stored with an experiment beside its plan.
pub(super) struct Stored<'t> {
    pub(super) text: &'t str,
    pub(super) name_of_target: &'t str,
    pub(super) sandbox: Option<&'t str>,
    pub(super) repeat: Vec<String>,
}

impl Runner<'_, '_> {
    /// Excludes treatments that cannot be tested, makes data, and begins the experiment in the
    /// store. Returns its number, the looks at its trials, and the data that was made.
    pub(super) fn prepare(
        &mut self,
        plan: &mut Plan,
        target: &mut dyn TrialTarget,
        stored: Stored<'_>,
    ) -> Result<(i64, Looks, Untouched), LabError> {
        self.preflight(plan, target)?;
        let made = self.ensure_data_here(plan, target, &plan.first_variant())?;
        let mut facts = target.facts()?;
        facts.push(FactRecord {
            group: "load".to_owned(),
            name: "pgdyno.version".to_owned(),
            value: Some(env!("CARGO_PKG_VERSION").into()),
            missing: None,
            source: "the program".to_owned(),
        });
        let record = self.record(plan, facts, stored);
        Ok((self.results.begin(&record)?, plan.looks(&record), made))
    }

    fn preflight(&mut self, plan: &mut Plan, target: &mut dyn TrialTarget) -> Result<(), LabError> {
        let found = target.preflight(plan)?;
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

    /// Before an experiment is resumed: all that a run asks, and no treatment that it has tested
    /// may have become impossible.
    pub(super) fn is_possible_still(
        &self,
        plan: &Plan,
        target: &mut dyn TrialTarget,
    ) -> Result<(), LabError> {
        let mut asked = plan.clone();
        let found = target.preflight(&mut asked)?;
        let treatments = asked.treatments.iter().zip(&plan.treatments);
        let lost: Vec<&str> = treatments
            .filter(|(now, before)| now.why_not.is_some() && before.why_not.is_none())
            .map(|(now, _)| now.name.as_str())
            .collect();
        if lost.is_empty() && !found.is_fatal() {
            return Ok(());
        }
        // What was not tested before is not in the way now.
        let is_new = |finding: &Finding| {
            finding.is_fatal()
                || finding
                    .treatments
                    .iter()
                    .any(|name| lost.contains(&name.as_str()))
        };
        Err(LabError::Findings(
            found.findings.into_iter().filter(is_new).collect(),
        ))
    }

    fn record(&self, plan: &Plan, facts: Vec<FactRecord>, stored: Stored<'_>) -> ExperimentRecord {
        let file = &plan.file;
        let figures = file.figure.iter().map(|figure| FigureRecord {
            name: figure.name.clone(),
            larger_is_better: figure.larger_is_better,
        });
        ExperimentRecord {
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
            sandbox: stored.sandbox.map(str::to_owned),
            metric: file.metric.clone(),
            stop: file.stop.name().to_owned(),
            factors: factor_records(file),
            figures: figures.collect(),
            study: file.study.as_ref().map(|study| study_record(study, &file.metric)),
        }
    }
}

/// Treatments as they are stored. Of a search, those that are examined but cannot be tested, and
/// the reference: the others follow when they are tried.
pub(crate) fn treatment_records(plan: &Plan, catalogue: &Catalogue) -> Vec<TreatmentRecord> {
    let is_search = plan.file.search.is_some();
    let stored = plan.treatments.iter().enumerate();
    stored
        .filter(|(i, treatment)| !is_search || *i == 0 || treatment.why_not.is_some())
        .map(|(_, treatment)| treatment_record(treatment, plan, catalogue))
        .collect()
}

pub(super) fn treatment_record(treatment: &Treatment, plan: &Plan, catalogue: &Catalogue) -> TreatmentRecord {
    let setting_record = |setting: &Setting, changed: bool| {
        let knob = catalogue.find(&setting.knob);
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
    TreatmentRecord {
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
        environment: environment(treatment, plan.file.target.instances),
    }
}

fn environment(treatment: &Treatment, instances: Instances) -> Vec<(String, String)> {
    let (data, server) = (&treatment.data, &treatment.server);
    let is_new = instances == Instances::PerBlock && !treatment.variant().is_target();
    let text = |value: &Option<String>| value.clone();
    let word = |value: Option<&str>| value.map(str::to_owned);
    let number = |value: Option<u32>| value.map(|n| n.to_string());
    let named = [
        ("server.version", number(server.version)),
        ("server.bin", text(&server.bin)),
        ("server.data_on", text(&server.data_on)),
        ("server.wal_on", text(&server.wal_on)),
        ("server.temp_on", text(&server.temp_on)),
        ("server.pooler", word(server.pooler.map(PoolerWord::name))),
        (
            "server.pool_mode",
            word(server.pool_mode.map(|mode| PoolMode::from(mode).name())),
        ),
        ("server.pool_size", number(server.pool_size)),
        ("server.neighbour", text(&server.neighbour)),
        ("server.neighbour_memory", text(&server.neighbour_memory)),
        ("server.network", text(&server.network)),
        ("server.count", number(server.count)),
        ("server.instance", number(server.instance)),
        ("server.instances", is_new.then(|| instances.name().to_owned())),
        ("data.dataset", word(data.dataset.map(Dataset::name))),
        ("data.reset", word(data.reset.map(Reset::name))),
        ("data.prewarm", word(data.prewarm.map(Prewarm::name))),
        ("data.fillfactor", number(data.fillfactor)),
        ("data.partitions", data.partitions.map(|parts| parts.to_string())),
        ("data.sql", data.sql.as_ref().map(|sql| short_hash(sql))),
        ("load.on", word(treatment.load.on.map(LoadOn::name))),
        ("load.threads", Some(threads_of(&treatment.load).to_string())),
    ];
    named
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect()
}

fn factor_records(file: &ExperimentFile) -> Vec<FactorRecord> {
    let is_ladder = file.design == Design::Ladder;
    let factors = file.factor.iter().map(|factor| FactorRecord {
        name: factor.name.clone(),
        title: factor.title.clone().unwrap_or_else(|| factor.name.clone()),
        condition: factor.condition || is_ladder,
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
        charts: study
            .chart
            .iter()
            .map(|chart| ChartRecord {
                form: chart.form.name().to_owned(),
                published: chart.published.clone(),
                table: TableRecord {
                    title: chart.title.clone(),
                    rows: chart.x.clone(),
                    columns: chart.lines.list().to_vec(),
                    values: vec![chart.value.clone().unwrap_or_else(|| metric.to_owned())],
                },
            })
            .collect(),
        tables: study
            .table
            .iter()
            .map(|table| TableRecord {
                title: table.title.clone(),
                rows: table.rows.clone(),
                columns: table.columns.iter().cloned().collect(),
                values: table.values.clone(),
            })
            .collect(),
        claims: study
            .claim
            .iter()
            .map(|claim| ClaimRecord {
                text: claim.text.clone(),
                of: claim.of.clone(),
                event: claim.event.clone(),
                against: claim.against.clone(),
                metric: claim.metric.clone().unwrap_or_else(|| metric.to_owned()),
                found: claim.found.name().to_owned(),
                ratio: claim.ratio,
                chart: claim.chart.clone(),
            })
            .collect(),
    }
}
