//! Advice for whole targets: a host of fixtures/hosts, settings of fixtures/settings, and what else
//! is known of them.

use super::{advisor, in_bytes};
use crate::advice::{Advised, Question};
use pgdyno_fixture::Machine;
use pgdyno_host::{Fact, LocalHost};
use pgdyno_server::Guc;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// fixtures/advice/NAME.toml.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    /// Name in fixtures/hosts.
    host: String,
    /// Name in fixtures/settings.
    settings: String,
    /// What else is known.
    facts: BTreeMap<String, Value>,
    /// Settings that differ from a fresh server's, in the base unit, as pg_settings holds them.
    changed: BTreeMap<String, String>,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

pub(super) fn host_facts(name: &str) -> Vec<Fact> {
    pgdyno_host::host_facts(&LocalHost::at(Machine::named(name).root()))
}

pub(super) fn settings(name: &str, changed: &BTreeMap<String, String>) -> Vec<Guc> {
    let text = fs::read_to_string(fixtures().join(format!("settings/{name}.tsv"))).unwrap();
    let mut lines = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let at = |column: &str| head.iter().position(|name| *name == column).unwrap();
    let optional = |text: &str| (text != "\\N").then(|| text.to_owned());
    lines
        .map(|row| {
            let field = |column: &str| row[at(column)];
            let setting = changed
                .get(field("name"))
                .map_or(field("setting"), String::as_str);
            let unit = optional(field("unit"));
            Guc {
                name: field("name").to_owned(),
                // The server would take its largest unit; the number is the same.
                shown: match &unit {
                    Some(unit) => format!("{setting} x {unit}"),
                    None => setting.to_owned(),
                },
                setting: setting.to_owned(),
                unit,
                context: field("context").to_owned(),
                vartype: field("vartype").to_owned(),
                source: field("source").to_owned(),
                boot_value: optional(field("boot_val")),
                pending_restart: false,
            }
        })
        .collect()
}

/// What is compared: the advice with its reasons, what is skipped, and the names of what cannot be
/// judged.
fn text_of(advised: &Advised) -> String {
    let mut text = String::new();
    for advice in &advised.advice {
        let what = match &advice.setting {
            Some(setting) => format!("{} = {}", setting.knob, setting.value),
            None => advice.recommended.clone(),
        };
        let now = advice.now.as_deref().unwrap_or("-");
        let _ = writeln!(
            text,
            "{}: {}\n    {what} (now {now})",
            advice.severity.name(),
            advice.rule
        );
        let _ = writeln!(text, "    {}\n    {}", advice.why, advice.effect.summary());
    }
    for aside in &advised.skipped {
        let _ = writeln!(
            text,
            "set aside: {}: {}\n    {}",
            aside.rule, aside.recommended, aside.because
        );
    }
    for line in &advised.sizing {
        let note = line.note.as_deref().unwrap_or_default();
        let _ = writeln!(text, "sizing: {}: {} {note}", line.title, line.total);
        for term in &line.terms {
            let _ = writeln!(text, "    {}: {}", term.text, term.value);
        }
    }
    for rule in &advised.not_judged {
        let _ = writeln!(text, "not judged: {}: {}", rule.rule, rule.because);
    }
    let _ = writeln!(text, "nothing to say: {}", advised.silent);
    text
}

fn check(name: &str) {
    let text = fs::read_to_string(fixtures().join(format!("advice/{name}.toml"))).unwrap();
    let target: Target = toml::from_str(&text).unwrap();
    let mut facts = host_facts(&target.host);
    facts.extend(
        target
            .facts
            .iter()
            .map(|(name, value)| Fact::known(name, "fixture", in_bytes(value))),
    );
    let advised = advisor().advise(&Question {
        facts: &facts,
        settings: &settings(&target.settings, &target.changed),
        evidence: &[],
        allowed: &[],
        only: &[],
    });
    // What fails though its facts are there is a mistake in a rule.
    for rule in &advised.not_judged {
        assert!(!rule.because.starts_with('`'), "{}: {}", rule.rule, rule.because);
    }
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text_of(&advised));
    });
}

#[test]
fn four_nodes_with_a_slow_clock_and_18() {
    check("numa4-18");
}

#[test]
fn a_small_control_group_without_safety_and_17() {
    check("cgroup2-17");
}

#[test]
fn an_old_kernel_on_rotating_disks_and_14() {
    check("old-14");
}

#[test]
fn a_guest_under_load_and_16() {
    check("guest-16");
}

#[test]
fn a_mainframe_and_15() {
    check("mainframe-15");
}

#[test]
fn a_managed_service_and_17() {
    check("service-17");
}
