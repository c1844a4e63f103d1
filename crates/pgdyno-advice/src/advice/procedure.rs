//! All that ends a danger: the steps of a rule, else how its setting is made to last; and the
//! statements among them.

use super::Statement;
use super::rule::{Rule, RuleKind};
use crate::known::Known;
use pgdyno_knobs::{Cost, Kind, Knob, Setting};
use pgdyno_server::assigned;

/// The steps, in their order; none where only the recommendation itself can be named.
pub(super) fn of(rule: &Rule, known: &Known, knob: Option<&Knob>, setting: Option<&Setting>) -> Vec<String> {
    if !rule.procedure.is_empty() {
        let all = rule.procedure.iter().flat_map(|step| step.steps(known));
        return all.filter(|step| !step.is_empty()).collect();
    }
    match (knob, setting) {
        (Some(knob), Some(setting)) if rule.kind == RuleKind::Safety => lasting(knob, setting, known.major()),
        _ => Vec::new(),
    }
}

/// The steps that are statements: they end with a semicolon. A step of text that ends with a colon
/// says where, or when, those after it are run.
pub(super) fn statements(steps: &[String]) -> Vec<Statement> {
    let mut at = None;
    let mut found = Vec::new();
    for step in steps {
        match step.ends_with(';') {
            true => found.push(Statement {
                sql: step.clone(),
                at: at.clone(),
            }),
            false => at = step.strip_suffix(':').map(str::to_owned),
        }
    }
    found
}

/// A setting that no `restore` takes back.
fn lasting(knob: &Knob, setting: &Setting, major: Option<u32>) -> Vec<String> {
    let Setting { knob: id, value } = setting;
    match knob.kind {
        Kind::Guc => {
            let set = match assigned(id, value) {
                Some(value) => format!("ALTER SYSTEM SET {id} = {value};"),
                // ALTER SYSTEM SET cannot write a list without names.
                None => format!("ALTER SYSTEM RESET {id};"),
            };
            let then = match knob.cost_in(major) {
                Cost::Restart => "Restart the server.",
                _ => "SELECT pg_reload_conf();",
            };
            vec![set, then.to_owned()]
        }
        Kind::Sysctl => vec![
            format!("Write the line \"{id} = {value}\" to /etc/sysctl.d/90-postgresql.conf."),
            "sysctl --system".to_owned(),
        ],
        _ => Vec::new(),
    }
}
