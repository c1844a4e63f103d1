//! All that ends a danger: the steps of a rule, else how its setting is made to last.

use super::rule::Rule;
use crate::catalogue::{Cost, Kind, Knob, Setting};
use crate::known::Known;
use pgdyno_server::assigned;

/// The steps, in their order; none where only the recommendation itself can be named.
pub(super) fn of(rule: &Rule, known: &Known, knob: Option<&Knob>, setting: Option<&Setting>) -> Vec<String> {
    if !rule.procedure.is_empty() {
        return rule
            .procedure
            .iter()
            // A step whose facts are missing is still a step.
            .map(|step| step.render(known).unwrap_or_else(|_| step.text().to_owned()))
            .collect();
    }
    match (knob, setting) {
        (Some(knob), Some(setting)) => lasting(knob, setting),
        _ => Vec::new(),
    }
}

/// A setting that no `restore` takes back.
fn lasting(knob: &Knob, setting: &Setting) -> Vec<String> {
    let Setting { knob: id, value } = setting;
    match knob.kind {
        Kind::Guc => {
            let value = assigned(id, value).unwrap_or_default();
            let then = match knob.cost {
                Cost::Restart => "Restart the server.",
                _ => "SELECT pg_reload_conf();",
            };
            vec![format!("ALTER SYSTEM SET {id} = {value};"), then.to_owned()]
        }
        Kind::Sysctl => vec![
            format!("Write the line \"{id} = {value}\" to /etc/sysctl.d/90-postgresql.conf."),
            "sysctl --system".to_owned(),
        ],
        _ => Vec::new(),
    }
}
