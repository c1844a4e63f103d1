//! Experiments that an agent plans: from checked values alone, so that no file of an agent's is
//! ever run.

use pgdyno_knobs::{Catalogue, Kind, Risk, Setting};
use rmcp::schemars;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Table, Value};

const TREATMENTS_MAX: usize = 12;
const SETTINGS_MAX: usize = 30;
const CHARS_MAX: usize = 200;
const DISK_FREE_MIN: &str = "5GB";

/// Parameters whose values name code that the server runs, or places outside of it that it writes
/// to.
const REACH_OUT: [&str; 5] = [
    "log_destination",
    "stats_temp_directory",
    "jit_provider",
    "session_preload_libraries",
    "shared_preload_libraries",
];

/// An experiment on a sandbox: its reference, which is the server with `base` alone, against each
/// treatment.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct PlanArgs {
    /// A sandbox, as the tool `targets` names it.
    pub(super) target: String,
    /// What the experiment is to answer, as a sentence.
    question: String,
    /// Built-in workload: select-only, tpcb, simple-update, read-only, read-write, range-select,
    /// tpcc and others.
    workload: String,
    /// Amount of data: of pgbench's workloads units of 100,000 rows (15 MB), of TPC-C warehouses.
    #[serde(default = "one")]
    scale: u32,
    /// Number of connections that send transactions.
    clients: u32,
    /// Measured seconds of each trial.
    measure_s: u32,
    /// Seconds before them that are in no figure.
    #[serde(default = "one")]
    warmup_s: u32,
    /// Most blocks, in each of which every treatment has a trial; it ends earlier once all is
    /// decided.
    blocks: u32,
    /// Settings of all treatments and of the reference.
    #[serde(default)]
    base: BTreeMap<String, String>,
    /// What is tried.
    treatments: Vec<TreatmentArgs>,
}

/// A treatment.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
struct TreatmentArgs {
    /// Short name: letters, digits, - and _.
    name: String,
    /// Parameters of the server and their values, such as {"work_mem": "64MB"}.
    settings: BTreeMap<String, String>,
}

fn one() -> u32 {
    1
}

impl PlanArgs {
    /// The experiment as a file, or why it cannot be one.
    pub(super) fn file(&self, sandbox: &str, catalogue: &Catalogue) -> Result<String, String> {
        let within = |what: &str, value: u32, most: u32| match (1..=most).contains(&value) {
            true => Ok(Value::from(value)),
            false => Err(format!("{what} is {value}; expected 1 to {most}")),
        };
        if self.treatments.is_empty() || self.treatments.len() > TREATMENTS_MAX {
            return Err(format!("expected 1 to {TREATMENTS_MAX} treatments"));
        }
        let steps = self.treatments.iter().map(|treatment| {
            let mut step = Table::new();
            step.insert("name".into(), text("a treatment's name", &treatment.name)?);
            step.insert(
                "settings".into(),
                settings(&treatment.settings, catalogue)?.into(),
            );
            Ok(step.into())
        });
        let steps: Vec<Value> = steps.collect::<Result<_, String>>()?;
        let table = |entries: Vec<(&str, Value)>| -> Value {
            let entries = entries.into_iter().map(|(key, value)| (key.to_owned(), value));
            Value::Table(entries.collect())
        };
        let file = table(vec![
            ("name", "agent".into()),
            ("question", text("the question", &self.question)?),
            ("design", "one-at-a-time".into()),
            ("stop", "when-decided".into()),
            ("blocks", within("blocks", self.blocks, 200)?),
            ("target", table(vec![("sandbox", sandbox.into())])),
            (
                "data",
                table(vec![("scale", within("scale", self.scale, 10_000)?)]),
            ),
            (
                "load",
                table(vec![
                    ("workload", text("the workload", &self.workload)?),
                    ("clients", within("clients", self.clients, 1000)?),
                    ("warmup_s", within("warmup_s", self.warmup_s, 600)?),
                    ("measure_s", within("measure_s", self.measure_s, 3600)?),
                ]),
            ),
            // The disk is the host's.
            ("guard", table(vec![("disk_free_min", DISK_FREE_MIN.into())])),
            ("base", settings(&self.base, catalogue)?.into()),
            ("step", steps.into()),
        ]);
        toml::to_string(&file).map_err(|error| error.to_string())
    }
}

fn text(what: &str, value: &str) -> Result<Value, String> {
    let is_fine =
        !value.is_empty() && value.chars().count() <= CHARS_MAX && !value.chars().any(char::is_control);
    match is_fine {
        true => Ok(value.into()),
        false => Err(format!(
            "{what}: expected one line of 1 to {CHARS_MAX} characters"
        )),
    }
}

/// Parameters of the server alone: the others, and those that reach out of it or can lose data, are
/// for people.
fn settings(asked: &BTreeMap<String, String>, catalogue: &Catalogue) -> Result<Table, String> {
    if asked.len() > SETTINGS_MAX {
        return Err(format!("expected at most {SETTINGS_MAX} settings"));
    }
    let setting = |(id, value): (&String, &String)| {
        let knob = catalogue.get(id).map_err(|error| error.to_string())?;
        if knob.kind != Kind::Guc {
            return Err(format!(
                "{id} is not a server parameter; only people change what is outside the sandbox (`pgdyno run`)"
            ));
        }
        if knob.id != *id {
            return Err(format!(
                "{id}: a parameter is of the whole server; expected {}",
                knob.id
            ));
        }
        if REACH_OUT.contains(&id.as_str()) {
            return Err(format!(
                "{id} names code that the server runs, or a place outside of it; people alone can agree to that (`pgdyno run`)"
            ));
        }
        let value = value.trim();
        // What an expression comes to is not known yet.
        let risk = match value.starts_with('=') {
            true => knob.risk,
            false => knob.risk_of(value),
        };
        if risk == Risk::Durability {
            return Err(format!(
                "{id} = {value} can lose committed data in a crash; people alone can agree to that (`pgdyno run`)"
            ));
        }
        let known = Setting {
            knob: id.clone(),
            value: value.to_owned(),
        };
        if !value.starts_with('=') {
            catalogue.check(&known).map_err(|error| error.to_string())?;
        }
        Ok((id.clone(), text(id, value)?))
    };
    asked.iter().map(setting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_lab::ExperimentFile;
    use serde_json::json;
    use std::path::Path;

    fn planned(change: serde_json::Value) -> Result<String, String> {
        let mut args = json!({
            "target": "sandbox:main", "question": "Does it pay?", "workload": "tpcb", "clients": 4, "measure_s": 5,
            "blocks": 6, "treatments": [{ "name": "more", "settings": { "work_mem": "64MB" } }],
        });
        for (key, value) in change.as_object().expect("an object") {
            args[key] = value.clone();
        }
        let args: PlanArgs = serde_json::from_value(args).map_err(|error| error.to_string())?;
        args.file("main", &Catalogue::shipped().expect("the catalogue"))
    }

    #[test]
    fn a_plan_is_a_file_of_checked_values() {
        let file = planned(json!({})).expect("a file");
        let table: Table = file.parse().expect("TOML");
        assert_eq!(table["load"]["workload"].as_str(), Some("tpcb"));
        assert_eq!(table["step"][0]["settings"]["work_mem"].as_str(), Some("64MB"));
        let catalogue = Catalogue::shipped().expect("the catalogue");
        let read = ExperimentFile::parse(&file, Path::new("agent.toml"), &catalogue);
        assert_eq!(read.expect("an experiment").blocks, 6);
    }

    #[test]
    fn what_takes_a_person_or_is_out_of_bounds_is_refused() {
        let set = |knob: &str, value: &str| json!({ "base": { knob: value } });
        for (change, expected) in [
            (set("fsync", "off"), "people alone"),
            (set("synchronous_commit", "= 'off'"), "people alone"),
            (set("vm.swappiness", "1"), "outside the sandbox"),
            (set("archive_command", "touch /tmp/x"), "archive_command"),
            (set("session_preload_libraries", "/tmp/x.so"), "names code"),
            (set("session_preload_libraries@x", "= 'y'"), "of the whole server"),
            (set("stats_temp_directory", "/tmp"), "outside of it"),
            (set("work_mem", "64MB\nfsync = off"), "one line"),
            (json!({ "blocks": 0 }), "blocks is 0"),
            (json!({ "measure_s": 86_400 }), "measure_s is 86400"),
            (json!({ "treatments": [] }), "1 to 12 treatments"),
            (json!({ "question": "x\u{1b}[2J" }), "one line"),
            (json!({ "restart_command": "reboot" }), "unknown field"),
        ] {
            let error = planned(change).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
        let names = |word: &str| {
            ["librar", "provider", "command", "program"]
                .iter()
                .any(|part| word.contains(part))
        };
        let catalogue = Catalogue::shipped().expect("the catalogue");
        let code = catalogue
            .iter()
            .filter(|knob| knob.kind == Kind::Guc && names(&knob.id));
        let code: Vec<&str> = code.map(|knob| knob.id.as_str()).collect();
        assert!(code.iter().all(|id| REACH_OUT.contains(id)), "{code:?}");
        // Whatever a text has in it, it is a text of the file.
        let file =
            planned(json!({ "question": "\" \n[target]\nrestart_command = \"x\"".replace('\n', " ") }))
                .expect("a file");
        let table: Table = file.parse().expect("TOML");
        assert!(table["target"].get("restart_command").is_none(), "{file}");
    }
}
