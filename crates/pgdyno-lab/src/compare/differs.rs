//! What differs between two sides of a comparison, by their records: target, facts, load, settings.

use super::Side;
use pgdyno_record::{StoredExperiment, TreatmentRecord, TrialRecord, WorkloadRecord};
use serde::Serialize;
use std::collections::BTreeMap;

/// Something that is not the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Difference {
    /// Name of the setting or fact: "PostgreSQL", or a knob's id.
    pub what: String,
    /// Value on the side of A.
    pub a: String,
    /// Value on the side of B.
    pub b: String,
}

/// Facts that change what a server can do, and what they are called.
const FACTS: [(&str, &str); 11] = [
    ("pgdyno", "pgdyno.version"),
    ("PostgreSQL", "server.version"),
    ("kernel", "kernel.release"),
    ("hypervisor", "virtualization.hypervisor"),
    ("processor", "cpu.model"),
    ("CPUs", "cpu.online_count"),
    ("CPU quota", "cgroup.cpu_quota_cpus"),
    ("memory (bytes)", "memory.total_bytes"),
    ("memory limit (bytes)", "cgroup.memory_limit_bytes"),
    ("data checksums", "server.data_checksums"),
    ("boot line", "kernel.boot_line"),
];

/// All differences that records show; of one experiment only what its treatments have of their own.
pub(super) fn differences(a: &Side<'_>, b: &Side<'_>) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut note = |what: &str, a: String, b: String| {
        if a != b {
            let what = what.to_owned();
            found.push(Difference { what, a, b });
        }
    };
    if !a.is_of_same_experiment(b) {
        note(
            "target",
            a.stored.record.target.clone(),
            b.stored.record.target.clone(),
        );
        for (what, name) in FACTS {
            if let (Some(a), Some(b)) = (fact(a.stored, name), fact(b.stored, name)) {
                note(what, a, b);
            }
        }
    }
    for ((what, of_a), (_, of_b)) in load(a).into_iter().zip(load(b)) {
        note(what, of_a, of_b);
    }
    let variant = |side: &Side<'_>| {
        side.last_trial()
            .and_then(|trial| trial.server_variant.clone())
            .unwrap_or_else(|| "the target".into())
    };
    note("server", variant(a), variant(b));
    for (environment_or_settings, absent) in [
        (environment as fn(&Side<'_>) -> _, "not set"),
        (settings, "as it is"),
    ] {
        let (of_a, of_b): (BTreeMap<String, String>, BTreeMap<String, String>) =
            (environment_or_settings(a), environment_or_settings(b));
        let mut names: Vec<&String> = of_a.keys().chain(of_b.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            let value =
                |of: &BTreeMap<String, String>| of.get(name).cloned().unwrap_or_else(|| absent.to_owned());
            note(name, value(&of_a), value(&of_b));
        }
    }
    found
}

/// `None` where it was not looked for; unknown with its reason is shown as such.
fn fact(stored: &StoredExperiment, name: &str) -> Option<String> {
    let mut facts = stored.record.facts.iter();
    facts.find(|fact| fact.name == name).map(|fact| fact.shown())
}

fn workload<'a>(stored: &'a StoredExperiment, treatment: &'a TreatmentRecord) -> &'a WorkloadRecord {
    treatment.workload.as_ref().unwrap_or(&stored.record.workload)
}

fn load(side: &Side<'_>) -> [(&'static str, String); 6] {
    let load = workload(side.stored, side.treatment);
    [
        ("workload", load.name.clone()),
        ("scale", load.scale.to_string()),
        ("clients", load.clients.to_string()),
        ("threads", load.threads.to_string()),
        ("warm-up (s)", load.warmup_s.to_string()),
        ("measured time (s)", load.measure_s.to_string()),
    ]
}

fn environment(side: &Side<'_>) -> BTreeMap<String, String> {
    side.treatment.environment.iter().cloned().collect()
}

/// What took effect, else what was asked for.
fn settings(side: &Side<'_>) -> BTreeMap<String, String> {
    let asked = side.treatment.settings.iter();
    let mut settings: BTreeMap<String, String> = asked
        .map(|setting| (setting.knob.clone(), setting.value.clone()))
        .collect();
    let effective = side
        .last_trial()
        .map(|trial: &TrialRecord| trial.effective.clone());
    settings.extend(effective.into_iter().flatten());
    settings
}
