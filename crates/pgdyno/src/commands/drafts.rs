//! Texts of experiment files that pgdyno writes for a target.

use crate::cli::OfLoadArgs;
use crate::failure::{InContext as _, Result};
use pgdyno_advice::{Advice, Known};
use pgdyno_host::Fact;
use pgdyno_record::FactRecord;
use serde_json::Value;
use std::io;
use std::path::Path;

/// Clients for each CPU: enough that commits can share flushes, few enough that they do not merely
/// wait.
const CLIENTS_PER_CPU: f64 = 8.0;

/// The fact of a name, where it is a count.
pub(super) fn count(facts: &[FactRecord], name: &str) -> Option<u64> {
    let fact = facts.iter().find(|fact| fact.name == name)?;
    fact.value.as_ref().and_then(Value::as_u64)
}

/// The fact of a record.
pub(super) fn fact(record: &FactRecord) -> Fact {
    Fact {
        name: record.name.clone(),
        value: record.value.clone(),
        missing: record.missing.clone(),
        source: record.source.clone(),
    }
}

/// CPUs that the server may use: those of its host, or of a limit that it has.
pub(super) fn cpus(facts: &[FactRecord]) -> Option<f64> {
    let facts: Vec<Fact> = facts.iter().map(fact).collect();
    Known::new(&facts, &[]).get("available.cpus").ok()?.as_f64()
}

/// As many clients as suit the host and the server.
pub(super) fn clients(facts: &[FactRecord]) -> u64 {
    let wanted = cpus(facts).unwrap_or(2.0) * CLIENTS_PER_CPU;
    let most = count(facts, "connections.max").unwrap_or(100);
    let clients = (8..=256_u32).find(|clients| f64::from(*clients) >= wanted);
    u64::from(clients.unwrap_or(256)).min((most / 2).max(1))
}

/// The part of a target as it was named on the command line; `None` where that holds a password, or
/// is libpq's defaults.
pub(super) fn target_part(named: Option<&str>) -> String {
    match named.filter(|named| !named.is_empty()) {
        Some(named) => match named.strip_prefix("sandbox:") {
            Some(name) => format!("[target]\nsandbox = {}\n", quoted(name)),
            None => format!("[target]\nconnection = {}\n", quoted(named)),
        },
        None => "# Name the server with pgdyno run --target.\n".to_owned(),
    }
}

/// A step that tries a piece of advice; several of one rule are distinguished by `number`.
pub(super) fn step(advice: &Advice, title: &str, number: usize) -> Option<String> {
    let setting = advice.setting.as_ref()?;
    let consent = match advice.wants_consent {
        true => format!(
            "# Trades durability: pgdyno run needs --accept-durability-risk {}\n",
            setting.knob
        ),
        false => String::new(),
    };
    Some(format!(
        "\n[[step]]\nname = {}\ntitle = {}\nreason = {}\n[step.settings]\n{} = {}\n{consent}",
        quoted(&format!("{}-{number}", advice.rule)),
        quoted(title),
        quoted(&advice.why),
        quoted(&setting.knob),
        quoted(&setting.value),
    ))
}

/// A text within a comment.
pub(super) fn comment(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// A text as a quoted string of TOML.
pub(super) fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// A table of TOML.
pub(super) fn table(entries: Vec<(&str, toml::Value)>) -> toml::Value {
    let entries = entries.into_iter().map(|(key, value)| (key.to_owned(), value));
    toml::Value::Table(entries.collect())
}

/// The load of a command: the name of a workload, or the text of a script.
pub(super) struct NamedLoad {
    /// Key of the load: "workload", "script".
    pub(super) key: &'static str,
    pub(super) value: String,
}

impl NamedLoad {
    /// `read` reads the script.
    pub(super) fn of(args: &OfLoadArgs, read: &dyn Fn(&Path) -> io::Result<String>) -> Result<NamedLoad> {
        Ok(match &args.script {
            None => NamedLoad {
                key: "workload",
                value: args.workload.name().to_owned(),
            },
            Some(path) => NamedLoad {
                key: "script",
                value: read(path).with_context(|| format!("{} could not be read", path.display()))?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn clients_are_as_many_as_suit_the_cpus_of_the_control_group() {
        let of = |facts: &[(&str, Value)]| {
            let record = |(name, value): &(&str, Value)| FactRecord {
                group: "host".into(),
                name: (*name).to_owned(),
                value: Some(value.clone()),
                missing: None,
                source: "x".into(),
            };
            let facts: Vec<FactRecord> = facts.iter().map(record).collect();
            (cpus(&facts), clients(&facts))
        };
        let online = ("cpu.online_count", json!(64));
        let most = ("connections.max", json!(1000));
        let quota = |cpus: Value| ("cgroup.cpu_quota_cpus", cpus);
        assert_eq!(
            of(&[online.clone(), most.clone(), quota(json!("none"))]),
            (Some(64.0), 256)
        );
        assert_eq!(
            of(&[online.clone(), most.clone(), quota(json!(1.5))]),
            (Some(1.5), 12)
        );
        assert_eq!(of(&[online, most, quota(json!(0.5))]), (Some(0.5), 8));
        assert_eq!(of(&[]), (None, 16));
    }
}
