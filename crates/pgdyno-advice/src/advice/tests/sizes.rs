//! One sizing: advice and profiles name the same sizes on every host, as people write them, and a
//! minute later too.

use super::{advisor, golden};
use crate::advice::{Advised, Advisor, Question, Rule};
use crate::known::Known;
use crate::profile::{Now, Profiles, Resolved};
use pgdyno_host::Fact;
use pgdyno_knobs::Catalogue;
use pgdyno_knobs::gucvalue::{Quantity, quantity};
use pgdyno_server::Guc;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

const GB: f64 = 1_073_741_824.0;
/// Knobs that are sizes, by whatever rule or profile they are set.
const SIZED: [&str; 7] = [
    "shared_buffers",
    "effective_cache_size",
    "maintenance_work_mem",
    "work_mem",
    "max_wal_size",
    "vm.dirty_background_bytes",
    "vm.dirty_bytes",
];
/// What makes each rule about a size speak, where the host does: a stock server that is too small
/// for its databases.
const LOADED: [(&str, f64); 11] = [
    ("databases.bytes", 9e12),
    ("tables.bytes_estimated", 9e12),
    ("temp_files.count", 5000.0),
    ("temp_files.bytes", 5e9),
    ("checkpoints.requested", 500.0),
    ("checkpoints.requested_per_hour", 25.0),
    ("checkpoints.timed", 1.0),
    ("checkpoints.timed_per_hour", 1.0),
    ("wal.bytes", 9e12),
    ("wal.bytes_per_s", 500e3),
    ("storage.wal.bytes", 4e12),
];
/// What is missing with a reason is found at once; for what nobody has heard of, the nearest name
/// is looked for.
const UNKNOWN: [&str; 9] = [
    "shared_memory.bytes",
    "process.largest_mapping.bytes",
    "process.largest_mapping.page_bytes",
    "process.huge_pages.pool_shared_bytes",
    "process.memory_nodes_allowed",
    "huge_pages.needed",
    "huge_pages.status",
    "statistics.age_s",
    "storage.wal_on_device_of_data.same_device",
];
const HOSTS: [&str; 5] = [
    "x86_64-6.12-cgroup2",
    "x86_64-6.18-cgroup1",
    "x86_64-6.1-numa4",
    "x86_64-4.18-cgroup1",
    "s390x-6.1",
];

/// A host of the fixtures with so much memory, whose group limits it, and what changes by the
/// minute.
fn facts(host: usize, memory: f64, limit: Option<f64>, available: f64, sessions: u32) -> Vec<Fact> {
    let number = |value: f64| Value::from(value.round());
    let mut facts = HOST_FACTS[host].clone();
    let mut known = |name: &str, value: Value| facts.push(Fact::known(name, "test", value));
    for (name, value) in LOADED {
        known(name, number(value));
    }
    known("memory.total_bytes", number(memory));
    known("memory.available_bytes", number(available.min(memory)));
    known("process.pid", json!(7));
    known("server.build", json!({"lz4": true}));
    let disk = json!([{"name": "disk", "depth": 0, "kind": "sata", "below": [], "rotational": false, "bytes": 4_000_000_000_000_u64}]);
    for of in ["data", "wal"] {
        known(&format!("storage.{of}.file_system"), json!("ext4"));
        known(&format!("storage.{of}.devices"), disk.clone());
    }
    known("cgroup.cpu_quota_cpus", json!("none"));
    known("cgroup.memory_limit_bytes", limit.map_or(json!("none"), number));
    known("connections.used", json!(sessions));
    known("storage.wal.free_bytes", number(3e12 + available));
    facts.extend(UNKNOWN.map(|name| Fact::unknown(name, "test", "not asked for")));
    facts
}

static ADVISOR: LazyLock<Advisor> = LazyLock::new(advisor);
static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::shipped().unwrap());
static PROFILES: LazyLock<Profiles> = LazyLock::new(|| Profiles::shipped().unwrap());
static STOCK: LazyLock<Vec<Guc>> = LazyLock::new(|| golden::settings("17", &BTreeMap::new()));

static HOST_FACTS: LazyLock<Vec<Vec<Fact>>> =
    LazyLock::new(|| HOSTS.iter().map(|host| golden::host_facts(host)).collect());
/// The rules about sizes.
static RULES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let is_sized = |rule: &&Rule| rule.knob().is_some_and(|knob| SIZED.contains(&knob));
    let found = ADVISOR.rules().iter().filter(is_sized);
    found.map(|rule| rule.id.clone()).collect()
});

fn advised(facts: &[Fact], settings: &[Guc]) -> Advised {
    ADVISOR.advise(&Question {
        facts,
        settings,
        evidence: &[],
        allowed: &[],
        only: &RULES,
    })
}

fn resolved(profile: &str, facts: &[Fact], settings: &[Guc]) -> Resolved {
    let known = Known::new(facts, settings);
    let current = |knob: &str| {
        let guc = settings.iter().find(|guc| guc.name == knob);
        guc.map_or(Now::Unknown, |guc| match (&guc.unit, quantity(&guc.setting)) {
            // As the server shows it, in a unit.
            (Some(unit), Some((_, number))) => {
                let bytes = number * pgdyno_knobs::gucvalue::base_unit(unit).unwrap_or(1.0);
                Now::Is(format!("{bytes:.0}B"))
            }
            _ => Now::Is(guc.setting.clone()),
        })
    };
    PROFILES
        .clone()
        .resolve(profile, &known, &CATALOGUE, Some(17), &current)
        .unwrap()
}

fn bytes(text: &str) -> f64 {
    match quantity(text) {
        Some((Quantity::Bytes | Quantity::Plain, number)) => number,
        other => panic!("{text} is not a size: {other:?}"),
    }
}

/// The sizes of the advice, and those of a profile.
fn sizes_of_advice(advised: &Advised) -> BTreeMap<String, f64> {
    advised
        .advice
        .iter()
        .filter_map(|advice| advice.setting.as_ref())
        .filter(|setting| SIZED.contains(&setting.knob.as_str()))
        .map(|setting| (setting.knob.clone(), bytes(&setting.value)))
        .collect()
}

fn sizes_of_profile(resolved: &Resolved) -> BTreeMap<String, f64> {
    resolved
        .settings
        .iter()
        .filter(|setting| SIZED.contains(&setting.knob.as_str()))
        .map(|setting| (setting.knob.clone(), bytes(&setting.value)))
        .collect()
}

#[test]
fn advice_and_profiles_name_the_same_sizes_on_every_host() {
    let mut seen = BTreeSet::new();
    // A sandbox is a server whose group has a limit.
    for (host, memory, limit) in [
        (0, 15.57, None),
        (0, 15.57, Some(1.5 * GB)),
        (1, 3.8, None),
        (2, 251.5, None),
        (3, 23.54, Some(12.0 * GB)),
        (4, 62.7, None),
    ] {
        let facts = facts(host, memory * GB, limit, 0.5 * memory * GB, 20);
        let advice = sizes_of_advice(&advised(&facts, &STOCK));
        let profile = if memory < 4.0 { "small" } else { "oltp" };
        let profile = sizes_of_profile(&resolved(profile, &facts, &STOCK));
        for (knob, size) in &advice {
            let Some(other) = profile.get(knob) else { continue };
            assert_eq!(other, size, "{knob} on {}, {memory} GB, {limit:?}", HOSTS[host]);
            seen.insert(knob.clone());
        }
    }
    assert_eq!(seen.len(), SIZED.len(), "some size is never advised: {seen:?}");
}

#[test]
fn sizes_are_written_as_people_write_them() {
    let facts = facts(1, 15.57 * GB, None, 4.0 * GB, 20);
    let of = |profile: &str| {
        let resolved = resolved(profile, &facts, &STOCK);
        let found = resolved.settings.into_iter();
        found
            .filter(|setting| SIZED.contains(&setting.knob.as_str()))
            .map(|setting| format!("{}={}", setting.knob, setting.value))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of("oltp"),
        [
            "shared_buffers=4GB",
            "effective_cache_size=12GB",
            "maintenance_work_mem=1GB",
            "vm.dirty_background_bytes=67108864",
            "vm.dirty_bytes=536870912",
            "work_mem=12MB",
            "max_wal_size=8GB",
        ]
    );
}

/// Applying the sizes does not make the next look ask for others.
#[test]
fn a_server_with_the_sizes_of_a_profile_is_not_advised_others() {
    for memory in [3.8, 23.54] {
        let facts = facts(1, memory * GB, None, 0.4 * memory * GB, 20);
        // Checkpoints come by time since.
        let mut facts = facts;
        facts.push(Fact::known("checkpoints.requested", "test", 0));
        facts.push(Fact::known("temp_files.count", "test", 0));
        let changed: BTreeMap<String, String> = sizes_of_profile(&resolved("oltp", &facts, &STOCK))
            .into_iter()
            .filter_map(|(knob, size)| {
                let guc = STOCK.iter().find(|guc| guc.name == knob)?;
                let unit = pgdyno_knobs::gucvalue::base_unit(guc.unit.as_deref()?)?;
                Some((knob, format!("{:.0}", size / unit)))
            })
            .collect();
        let settings = golden::settings("17", &changed);
        let mut again = sizes_of_advice(&advised(&facts, &settings));
        again.retain(|knob, _| !knob.starts_with("vm."));
        assert_eq!(again, BTreeMap::new(), "{memory} GB");
        let now = sizes_of_profile(&resolved("oltp", &facts, &settings));
        let before = sizes_of_profile(&resolved("oltp", &facts, &STOCK));
        for (knob, size) in now {
            assert_eq!(before.get(&knob), Some(&size), "{knob}, {memory} GB");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn sizes_do_not_follow_what_changes_by_the_minute(
        memory in 1.0..2000.0_f64,
        host in 0..HOSTS.len(),
        available in (0.15..0.95_f64, 0.15..0.95_f64),
        sessions in (1..80_u32, 1..80_u32),
    ) {
        let at = |available: f64, sessions: u32| {
            facts(host, memory * GB, None, available * memory * GB, sessions)
        };
        let (first, second) = (at(available.0, sessions.0), at(available.1, sessions.1));
        prop_assert_eq!(
            sizes_of_advice(&advised(&first, &STOCK)),
            sizes_of_advice(&advised(&second, &STOCK))
        );
        prop_assert_eq!(
            sizes_of_profile(&resolved("oltp", &first, &STOCK)),
            sizes_of_profile(&resolved("oltp", &second, &STOCK))
        );
    }

    #[test]
    fn more_memory_never_means_a_smaller_size(low in 0.5..1000.0_f64, more in 0.0..1000.0_f64, host in 0..HOSTS.len()) {
        let of = |memory: f64| {
            sizes_of_profile(&resolved("oltp", &facts(host, memory * GB, None, 0.2 * GB, 20), &STOCK))
        };
        let (small, large) = (of(low), of(low + more));
        for (knob, size) in small.iter().filter(|(knob, _)| *knob != "work_mem") {
            if let Some(other) = large.get(knob) {
                prop_assert!(other >= size, "{} of {} GB: {}, of {} GB: {}", knob, low, size, low + more, other);
            }
        }
        for (knob, size) in &large {
            // The cache is three times the buffers.
            let part = if knob == "effective_cache_size" { 3.0 } else { 1.0 };
            prop_assert_eq!(crate::even::even(size / part) * part, *size, "{}", knob);
        }
    }
}
