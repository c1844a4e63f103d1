//! What the shipped profiles give for some targets.

use pgdyno_advice::{Carrier, Known, Now, ProfileValue, Profiles, Resolved, Unit, export};
use pgdyno_fixture::Machine;
use pgdyno_host::{Fact, LocalHost, host_facts, process_facts};
use pgdyno_knobs::{Catalogue, Place};
use pgdyno_server::Guc;
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::shipped().unwrap());
static PROFILES: LazyLock<Profiles> = LazyLock::new(|| Profiles::shipped().unwrap());

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// pg_settings of a fresh server of a version.
fn settings(major: u32) -> Vec<Guc> {
    let text = fs::read_to_string(fixtures().join(format!("settings/{major}.tsv"))).unwrap();
    let mut rows = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let heads = rows.next().unwrap();
    let column = |name: &str| heads.iter().position(|head| *head == name).unwrap();
    let (name, setting, unit) = (column("name"), column("setting"), column("unit"));
    let (context, vartype, source) = (column("context"), column("vartype"), column("source"));
    rows.map(|row| {
        let unit = Some(row[unit].to_owned()).filter(|unit| unit != "\\N");
        Guc {
            name: row[name].to_owned(),
            shown: shown(row[setting], unit.as_deref()),
            setting: row[setting].to_owned(),
            unit,
            context: row[context].to_owned(),
            vartype: row[vartype].to_owned(),
            source: row[source].to_owned(),
            boot_value: None,
            pending_restart: false,
        }
    })
    .collect()
}

/// A number with its unit, as a server would show it.
fn shown(setting: &str, unit: Option<&str>) -> String {
    match (setting.parse::<i64>(), unit) {
        (Ok(number), Some("8kB")) if number > 0 => format!("{}kB", number * 8),
        (Ok(number), Some("16MB")) if number > 0 => format!("{}MB", number * 16),
        (Ok(number), Some(unit)) if number > 0 => format!("{number}{unit}"),
        _ => setting.to_owned(),
    }
}

struct Case {
    name: &'static str,
    facts: Vec<Fact>,
    settings: Vec<Guc>,
    major: Option<u32>,
}

/// Facts of a captured machine, and of a process of it.
fn captured(name: &str, process: Option<u32>) -> Vec<Fact> {
    let machine = Machine::named(name);
    let host = LocalHost::at(machine.root());
    let mut facts = host_facts(&host);
    facts.extend(
        process
            .into_iter()
            .flat_map(|process| process_facts(&host, process)),
    );
    facts
}

fn fact(name: &str, value: impl Into<Value>) -> Fact {
    Fact::known(name, "made for this test", value)
}

fn disk(kind: &str, rotational: bool) -> Value {
    json!([{"name": "disk", "depth": 0, "kind": kind, "below": [], "rotational": rotational, "bytes": 400_000_000_000_u64}])
}

fn cases() -> Vec<Case> {
    let with = |mut facts: Vec<Fact>, more: Vec<Fact>| {
        facts.extend(more);
        facts
    };
    let of_server = |kind: &str, rotational: bool| {
        vec![
            fact("storage.data.file_system", "ext4"),
            fact("storage.data.devices", disk(kind, rotational)),
            fact("storage.wal.file_system", "ext4"),
            fact("storage.wal.devices", disk(kind, rotational)),
            fact("server.build", json!({"lz4": true})),
            fact("replication.standbys", json!([])),
            fact("replication.slots", json!([])),
            fact("server.in_recovery", false),
            fact("databases.bytes", 50_000_000_000_u64),
        ]
    };
    vec![
        Case {
            name: "large-nvme-18",
            facts: with(
                vec![
                    fact("memory.total_bytes", 274_877_906_944_u64),
                    fact("cpu.online_count", 64),
                    fact("cpu.governor", "schedutil"),
                    fact("huge_pages.default_bytes", 2_097_152),
                    fact("virtualization.guest", false),
                    fact("sysctl.vm.swappiness", 60),
                    fact("sysctl.net.core.somaxconn", 4096),
                    fact("sysctl.net.core.busy_read", 0),
                ],
                of_server("nvme", false),
            ),
            settings: settings(18),
            major: Some(18),
        },
        Case {
            name: "limited-virtio-16",
            facts: with(
                captured("x86_64-6.12-cgroup2", Some(4242)),
                of_server("virtio", true),
            ),
            settings: settings(16),
            major: Some(16),
        },
        Case {
            name: "numa4-hdd-14",
            facts: with(captured("x86_64-6.1-numa4", Some(4242)), of_server("sata", true)),
            settings: settings(14),
            major: Some(14),
        },
        Case {
            name: "host-alone",
            facts: captured("x86_64-6.18-cgroup1", None),
            settings: Vec::new(),
            major: None,
        },
        Case {
            name: "s390x-host-alone",
            facts: captured("s390x-6.1", None),
            settings: Vec::new(),
            major: None,
        },
        Case {
            name: "nothing-known",
            facts: captured("empty", None),
            settings: Vec::new(),
            major: None,
        },
    ]
}

fn resolve(case: &Case, known: &Known, profile: &str) -> Resolved {
    let current = |knob: &str| {
        let guc = case.settings.iter().find(|guc| guc.name == knob);
        let sysctl = || known.get(&format!("sysctl.{knob}")).ok().map(Value::to_string);
        guc.map(|guc| guc.shown.clone())
            .or_else(sysctl)
            .map_or(Now::Unknown, Now::Is)
    };
    PROFILES
        .clone()
        .resolve(profile, known, &CATALOGUE, case.major, &current)
        .unwrap_or_else(|error| panic!("{} for {}: {error}", profile, case.name))
}

fn written(case: &Case) -> String {
    let known = Known::new(&case.facts, &case.settings);
    let mut text = String::new();
    for profile in PROFILES.iter() {
        let resolved = resolve(case, &known, &profile.name);
        let _ = writeln!(text, "{}", profile.name);
        for setting in &resolved.settings {
            let now = setting.now.as_deref().unwrap_or("?");
            let _ = writeln!(text, "  {} = {} (now {now})", setting.knob, setting.value);
        }
        for left in &resolved.skipped {
            let _ = writeln!(text, "  not {}: {}", left.knob, left.because);
        }
    }
    text
}

#[test]
fn shipped_profiles_give_what_they_gave() {
    for case in cases() {
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(case.name, written(&case));
        });
    }
}

/// A number without a unit would mean something else to the server than to who wrote it.
#[test]
fn sizes_and_times_in_shipped_profiles_have_their_units() {
    let settings = settings(18);
    for profile in PROFILES.iter() {
        for setting in &profile.settings {
            let Some(guc) = settings.iter().find(|guc| guc.name == setting.knob) else {
                continue;
            };
            let expected = match guc.unit.as_deref() {
                None => None,
                Some(unit) if unit.ends_with('B') => Some(Unit::Bytes),
                Some(_) => Some(Unit::Seconds),
            };
            let place = format!(
                "{}, line {}: {}",
                profile.file.display(),
                setting.line,
                setting.knob
            );
            match &setting.value {
                ProfileValue::Number(number) if *number == 0.0 => {}
                ProfileValue::Number(_) | ProfileValue::Expression(_) => {
                    let names =
                        matches!(&setting.value, ProfileValue::Expression(e) if e.text().starts_with('\''));
                    assert!(
                        names || setting.unit == expected,
                        "{place}: the unit is {:?}",
                        guc.unit
                    );
                }
                ProfileValue::Text(_) | ProfileValue::Drop => {}
            }
        }
    }
}

#[test]
fn nothing_is_lost_in_an_export() {
    for case in cases() {
        let known = Known::new(&case.facts, &case.settings);
        for profile in PROFILES.iter() {
            let resolved = resolve(&case, &known, &profile.name);
            for carrier in Carrier::ALL {
                let exported = export(&resolved, &CATALOGUE, carrier, "a test", &|_| Place::Unknown);
                for setting in &resolved.settings {
                    let (id, _) = pgdyno_knobs::split(&setting.knob);
                    let last = id.rsplit('.').next().unwrap();
                    let is_there = exported.text.contains(last) || exported.text.contains("governor");
                    assert!(is_there, "{} {}: {id}", carrier.name(), profile.name);
                }
            }
        }
    }
}
