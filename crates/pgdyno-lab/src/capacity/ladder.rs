//! The ladder of a stored experiment: which of its factors set CPUs and which set clients, by its
//! file and the catalogue.

use crate::file::{ExperimentFile, FileError, settings_of};
use pgdyno_knobs::{Catalogue, Gives, Kind};
use pgdyno_record::{DESIGN_OF_LOADS, ExperimentRecord, TreatmentRecord, TrialRecord, TrialStatus};
use pgdyno_stats::LoadPoint;
use std::collections::BTreeMap;
use std::path::Path;

/// The factors of an experiment that a capacity may be worked out by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ladder {
    /// Factors whose levels set CPUs.
    pub cpus: Vec<String>,
    /// Factors whose levels set clients; may be the same.
    pub clients: Vec<String>,
}

impl Ladder {
    /// Of a record, by the experiment file in it; an error where that cannot be read any more.
    pub fn of(record: &ExperimentRecord, catalogue: &Catalogue) -> Result<Ladder, FileError> {
        let mut ladder = Ladder::default();
        if record.design == DESIGN_OF_LOADS {
            ladder.clients = record.factors.iter().map(|factor| factor.name.clone()).collect();
            return Ok(ladder);
        }
        let file = ExperimentFile::parse(&record.file, Path::new("the stored experiment"), catalogue)?;
        for factor in &file.factor {
            let levels = factor.levels().unwrap_or_default();
            let gives_cpus = |knob: &str| {
                catalogue
                    .find(knob)
                    .is_some_and(|knob| knob.gives == Some(Gives::Cpus))
            };
            if levels
                .iter()
                .any(|level| settings_of(&level.settings).iter().any(|s| gives_cpus(&s.knob)))
            {
                ladder.cpus.push(factor.name.clone());
            }
            if levels.iter().any(|level| level.load.clients.is_some()) {
                ladder.clients.push(factor.name.clone());
            }
        }
        Ok(ladder)
    }

    /// Whether there is anything to climb.
    pub fn is_empty(&self) -> bool {
        self.cpus.is_empty() && self.clients.is_empty()
    }
}

/// Client counts with what they gave, and for a number of CPUs where these were varied.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    /// By CPUs in thousandths: parts of a CPU are levels too.
    pub(super) by_cpus: BTreeMap<u64, Vec<LoadPoint>>,
    /// Treatments whose CPUs are not known.
    pub(super) unknown: Vec<String>,
}

/// Factor and level of those factors that are neither CPUs nor clients.
pub(super) type Others = Vec<(String, String)>;

/// All finished trials, grouped by the levels of the other factors in the order of the file.
pub(super) fn groups<'t>(
    record: &ExperimentRecord,
    trials: impl Iterator<Item = &'t TrialRecord> + Clone,
    ladder: &Ladder,
    catalogue: &Catalogue,
) -> Vec<(Others, Group)> {
    let mut groups: Vec<(Others, Group)> = Vec::new();
    for treatment in &record.treatments {
        let others: Others = treatment
            .levels
            .iter()
            .filter(|(factor, _)| !ladder.cpus.contains(factor) && !ladder.clients.contains(factor))
            .cloned()
            .collect();
        let place = groups
            .iter()
            .position(|(known, _)| *known == others)
            .unwrap_or_else(|| {
                groups.push((others, Group::default()));
                groups.len() - 1
            });
        let Some((_, group)) = groups.get_mut(place) else {
            continue;
        };
        let clients = treatment.workload.as_ref().unwrap_or(&record.workload).clients;
        let own = trials
            .clone()
            .filter(|t| t.treatment == treatment.name && t.status == TrialStatus::Finished);
        for trial in own {
            let Some(tps) = trial.tps else { continue };
            let cpus = match ladder.cpus.is_empty() {
                true => Some(0),
                false => cpus(record, treatment, trial, catalogue).and_then(thousandths),
            };
            let Some(cpus) = cpus else {
                if !group.unknown.contains(&treatment.name) {
                    group.unknown.push(treatment.name.clone());
                }
                continue;
            };
            group.by_cpus.entry(cpus).or_default().push(LoadPoint {
                block: trial.block,
                clients,
                tps,
                p99_ms: trial.percentiles.and_then(|p| p.p99_ms),
            });
        }
    }
    groups.retain(|(_, group)| !group.by_cpus.is_empty() || !group.unknown.is_empty());
    groups
}

/// The least that any of the settings, or the quota of the server's own group, gives, as it took
/// effect; the machine's own where none sets a limit.
fn cpus(
    record: &ExperimentRecord,
    treatment: &TreatmentRecord,
    trial: &TrialRecord,
    catalogue: &Catalogue,
) -> Option<f64> {
    let fact = |name: &str| {
        let fact = record.facts.iter().find(|fact| fact.name == name)?;
        fact.value.as_ref()?.as_f64()
    };
    // Facts are the target's, before any trial: not those of an own server, or of a treatment that
    // sets the quota.
    let mut least = fact("cgroup.cpu_quota_cpus").filter(|_| trial.server_variant.is_none());
    let mut settings = treatment.settings.iter();
    if settings.any(|own| {
        catalogue
            .find(&own.knob)
            .is_some_and(|knob| knob.kind == Kind::CpuQuota)
    }) {
        least = None;
    }
    for setting in &treatment.settings {
        let Some(knob) = catalogue.find(&setting.knob) else {
            continue;
        };
        let effective = trial.effective.iter().find(|(id, _)| *id == setting.knob);
        let given = effective
            .and_then(|(_, value)| knob.cpus_of(value))
            .or_else(|| knob.cpus_of(&setting.value));
        if let Some(given) = given {
            least = Some(least.map_or(given, |least| least.min(given)));
        }
    }
    least.or_else(|| fact("cpu.online_count"))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of CPUs, checked to be small and positive"
)]
fn thousandths(cpus: f64) -> Option<u64> {
    (cpus > 0.0 && cpus < 1e6).then(|| (cpus * 1e3).round() as u64)
}
