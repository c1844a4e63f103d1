//! The experiment file: TOML in, typed and checked, or an error with file, line and what was expected.

use pgdyno_knobs::{Catalogue, Setting};
use pgdyno_load::Workload;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

/// How treatments are made of the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// Each step is added to all before it.
    Cumulative,
    /// Each step is held against the reference alone.
    OneAtATime,
}

impl Design {
    /// The word in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Design::Cumulative => "cumulative",
            Design::OneAtATime => "one-at-a-time",
        }
    }
}

/// When the server is restarted between trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestartPolicy {
    /// Before every trial, so that all begin with the same caches.
    #[default]
    Always,
    /// Only when a setting asks for it.
    WhenNeeded,
}

/// An experiment file. Every key is documented in docs/experiment-file.md.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentFile {
    /// Short name.
    pub name: String,
    /// What it is to answer.
    pub question: String,
    /// How treatments are made.
    pub design: Design,
    /// How often each treatment is tried.
    pub blocks: u32,
    /// Seed of order and load; drawn when not given.
    pub seed: Option<u64>,
    /// Confidence of all intervals together.
    #[serde(default = "default_confidence")]
    pub confidence: f64,
    /// Smallest effect that matters.
    #[serde(default = "default_smallest_effect")]
    pub smallest_effect: f64,
    /// The server.
    #[serde(default)]
    pub target: TargetPart,
    /// The data.
    pub data: DataPart,
    /// The load.
    pub load: LoadPart,
    /// Settings of the reference and of every treatment.
    #[serde(default)]
    pub base: Table,
    /// The steps.
    #[serde(default)]
    pub step: Vec<StepPart>,
}

/// The server.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetPart {
    /// Name of a sandbox.
    pub sandbox: Option<String>,
    /// Connection string.
    pub connection: Option<String>,
    /// When it is restarted.
    #[serde(default)]
    pub restart: RestartPolicy,
    /// Command that restarts a server which is no sandbox; used with consent only.
    pub restart_command: Option<String>,
}

/// The data.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataPart {
    /// Scale of pgbench's schema.
    pub scale: u32,
}

/// The load.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadPart {
    /// Which transactions.
    pub workload: Workload,
    /// Clients.
    pub clients: u32,
    /// Threads; half of the CPUs when not given.
    pub threads: Option<u32>,
    /// Full load before measuring.
    pub warmup_s: f64,
    /// Measured time.
    pub measure_s: f64,
}

/// A step.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepPart {
    /// Unique name.
    pub name: String,
    /// For people; the name when not given.
    pub title: Option<String>,
    /// Why it is tried.
    pub reason: Option<String>,
    /// What it sets.
    pub settings: Table,
}

fn default_confidence() -> f64 {
    0.95
}

fn default_smallest_effect() -> f64 {
    0.02
}

/// What is wrong with an experiment file, and where.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read at all.
    #[error("{path} could not be read: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// Something in it is wrong.
    #[error("{path}, line {line}: {message}")]
    Wrong {
        /// The file.
        path: PathBuf,
        /// 1-based.
        line: usize,
        /// What, and what was expected.
        message: String,
    },
}

/// Limits on everything.
const BLOCKS_MAX: u32 = 1000;
/// Beyond this a number is no longer exact in the page's JavaScript.
pub(crate) const SEED_MAX: u64 = (1 << 53) - 1;
const STEPS_MAX: usize = 100;
const SECONDS_MAX: f64 = 86_400.0;

impl ExperimentFile {
    /// Reads and checks a file; returns its text too, which is stored with the results.
    pub fn read(path: &Path, catalogue: &Catalogue) -> Result<(ExperimentFile, String), FileError> {
        let text = std::fs::read_to_string(path).map_err(|source| FileError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        ExperimentFile::parse(&text, path, catalogue).map(|file| (file, text))
    }

    /// Parses and checks a text; `path` is for messages.
    pub fn parse(text: &str, path: &Path, catalogue: &Catalogue) -> Result<ExperimentFile, FileError> {
        let wrong = |line: usize, message: String| FileError::Wrong {
            path: path.to_owned(),
            line,
            message,
        };
        let file: ExperimentFile = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_at(text, span.start));
            wrong(line, with_nearest(error.message()))
        })?;
        let at = |keys: &[&str], message: String| Err(wrong(line_of(text, keys), message));
        if !(1..=BLOCKS_MAX).contains(&file.blocks) {
            return at(
                &["blocks"],
                format!("blocks = {}: expected 1 to {BLOCKS_MAX}", file.blocks),
            );
        }
        if file.seed.is_some_and(|seed| seed > SEED_MAX) {
            return at(&["seed"], format!("seed: expected at most {SEED_MAX}"));
        }
        if !(file.confidence > 0.5 && file.confidence < 1.0) {
            return at(
                &["confidence"],
                format!("confidence = {}: expected 0.5 to 1, as 0.95", file.confidence),
            );
        }
        if !(file.smallest_effect > 0.0 && file.smallest_effect < 1.0) {
            let message = format!(
                "smallest_effect = {}: expected 0 to 1, as 0.02",
                file.smallest_effect
            );
            return at(&["smallest_effect"], message);
        }
        for (key, value, least) in [
            ("warmup_s", file.load.warmup_s, 0.0),
            ("measure_s", file.load.measure_s, 1.0),
        ] {
            if !(least..=SECONDS_MAX).contains(&value) {
                return at(
                    &["load", key],
                    format!("{key} = {value}: expected {least} to {SECONDS_MAX} seconds"),
                );
            }
        }
        if file.target.sandbox.is_some() && file.target.connection.is_some() {
            return at(
                &["target", "connection"],
                "a target is either a sandbox or a connection".into(),
            );
        }
        if let Some(connection) = &file.target.connection
            && holds_password(connection)
        {
            let message = "a password does not belong into a file that is stored with the results and shown in reports; \
                           put it into PGPASSWORD or ~/.pgpass";
            return at(&["target", "connection"], message.into());
        }
        if file.step.is_empty() || file.step.len() > STEPS_MAX {
            return at(
                &["step"],
                format!(
                    "{} steps: expected 1 to {STEPS_MAX} [[step]] parts",
                    file.step.len()
                ),
            );
        }
        let check = |table: &Table, keys: &[&str]| -> Result<(), FileError> {
            for setting in settings_of(table) {
                if let Err(error) = catalogue.check(&setting) {
                    let mut keys = keys.to_vec();
                    keys.extend(setting.knob.split('.'));
                    return Err(wrong(line_of(text, &keys), error.to_string()));
                }
            }
            Ok(())
        };
        check(&file.base, &["base"])?;
        for (i, step) in file.step.iter().enumerate() {
            let number = i.to_string();
            if step.name == "reference" || file.step[..i].iter().any(|other| other.name == step.name) {
                return at(
                    &["step", &number, "name"],
                    format!("the name \"{}\" is taken", step.name),
                );
            }
            if step.settings.is_empty() {
                return at(
                    &["step", &number, "settings"],
                    format!("the step \"{}\" sets nothing", step.name),
                );
            }
            check(&step.settings, &["step", &number, "settings"])?;
        }
        Ok(file)
    }
}

/// What cannot be read as a connection string is taken to hold one, if the word is in it.
fn holds_password(connection: &str) -> bool {
    match connection.parse::<pgdyno_server::postgres::Config>() {
        Ok(config) => config.get_password().is_some(),
        Err(_) => connection.to_ascii_lowercase().contains("password"),
    }
}

/// The settings of a table; `vm.swappiness = 1` makes nested tables in TOML, which are one knob's name here.
pub(crate) fn settings_of(table: &Table) -> Vec<Setting> {
    fn walk(table: &Table, prefix: &str, settings: &mut Vec<Setting>) {
        for (key, value) in table {
            let knob = if prefix.is_empty() {
                key.clone()
            } else {
                format!("{prefix}.{key}")
            };
            match value {
                Value::Table(inner) => walk(inner, &knob, settings),
                Value::String(text) => settings.push(Setting {
                    knob,
                    value: text.clone(),
                }),
                Value::Boolean(on) => {
                    settings.push(Setting {
                        knob,
                        value: if *on { "on" } else { "off" }.to_owned(),
                    });
                }
                other => settings.push(Setting {
                    knob,
                    value: other.to_string(),
                }),
            }
        }
    }
    let mut settings = Vec::new();
    walk(table, "", &mut settings);
    settings
}

fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|&b| b == b'\n').count() + 1
}

/// The line of the deepest of `keys` that is there; numbers are places in an array.
fn line_of(text: &str, keys: &[&str]) -> usize {
    let Ok(table) = DeTable::parse(text) else { return 1 };
    let mut offset = 0;
    let mut here: Option<&DeValue<'_>> = None;
    let mut keys = keys.iter().copied().peekable();
    while let Some(key) = keys.peek().copied() {
        let table = match here {
            None => table.get_ref(),
            Some(DeValue::Table(table)) => table,
            Some(DeValue::Array(items)) => {
                let Some(item) = key.parse::<usize>().ok().and_then(|i| items.get(i)) else {
                    break;
                };
                offset = item.span().start;
                here = Some(item.get_ref());
                keys.next();
                continue;
            }
            Some(_) => break,
        };
        // A quoted key holds its dots: "vm.swappiness" is one key then.
        let rest: Vec<&str> = keys.clone().collect();
        let found = (1..=rest.len()).find_map(|n| {
            let joined = rest[..n].join(".");
            table
                .iter()
                .find(|(name, _)| name.get_ref().as_ref() == joined)
                .map(|entry| (n, entry))
        });
        let Some((n, (name, value))) = found else { break };
        offset = name.span().start;
        here = Some(value.get_ref());
        for _ in 0..n {
            keys.next();
        }
    }
    line_at(text, offset)
}

/// "unknown field `clinets`, expected one of `clients`, ..." names the nearest key.
fn with_nearest(message: &str) -> String {
    const NEAR: usize = 3;
    let Some(rest) = message.strip_prefix("unknown field `") else {
        return message.to_owned();
    };
    let mut words = rest.split('`');
    let Some(unknown) = words.next() else {
        return message.to_owned();
    };
    let nearest = words
        .filter(|word| !word.trim().is_empty() && !word.contains(' '))
        .map(|word| (strsim::damerau_levenshtein(word, unknown), word))
        .min()
        .filter(|(distance, _)| *distance <= NEAR);
    match nearest {
        Some((_, word)) => format!("unknown key \"{unknown}\"; did you mean \"{word}\"?"),
        None => message.replace("unknown field", "unknown key"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &str = r#"
name = "x"
question = "?"
design = "cumulative"
blocks = 2
[data]
scale = 1
[load]
workload = "tpcb"
clients = 4
warmup_s = 1
measure_s = 5
[base]
max_connections = 50
[[step]]
name = "a"
[step.settings]
vm.swappiness = 1
jit = false
"block.read_ahead_kb" = 16
"#;

    fn parse(text: &str) -> Result<ExperimentFile, FileError> {
        ExperimentFile::parse(text, Path::new("x.toml"), &Catalogue::shipped().unwrap())
    }

    #[test]
    fn settings_are_flattened_to_knobs() {
        let file = parse(GOOD).unwrap();
        let found: Vec<String> = settings_of(&file.step[0].settings)
            .iter()
            .map(|s| format!("{}={}", s.knob, s.value))
            .collect();
        assert_eq!(found, ["block.read_ahead_kb=16", "jit=off", "vm.swappiness=1"]);
    }

    #[test]
    fn every_mistake_is_named_with_its_line() {
        let check = |from: &str, to: &str, line: usize, expected: &str| {
            let error = parse(&GOOD.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("x.toml, line {line}: ")),
                "{to}: {error}"
            );
            assert!(error.contains(expected), "{to}: {error}");
        };
        check("clients = 4", "clinets = 4", 10, "did you mean \"clients\"?");
        check("clients = 4", "clients = \"many\"", 10, "expected u32");
        check("workload = \"tpcb\"", "workload = \"tpcx\"", 9, "unknown variant");
        check(
            "vm.swappiness = 1",
            "vm.swappines = 1",
            18,
            "did you mean \"vm.swappiness\"?",
        );
        check("vm.swappiness = 1", "vm.swappiness = 900", 18, "0 to 200");
        check(
            "\"block.read_ahead_kb\" = 16",
            "\"block.read_ahead\" = 16",
            20,
            "block.read_ahead_kb",
        );
        check(
            "max_connections = 50",
            "max_conections = 50",
            14,
            "max_connections",
        );
        check("blocks = 2", "blocks = 0", 5, "1 to 1000");
        check("measure_s = 5", "measure_s = 0.1", 12, "1 to 86400");
        check("name = \"a\"", "name = \"reference\"", 16, "taken");
        check("question = \"?\"", "", 1, "question");
        check("[data]", "[data", 6, "");
    }

    #[test]
    fn a_password_in_a_file_is_refused_and_not_repeated() {
        for connection in [
            "host=a password=hunter2",
            "postgresql://me:hunter2@a/b",
            "password=hunter2 =",
        ] {
            let text = GOOD.replace(
                "[data]",
                &format!("[target]\nconnection = \"{connection}\"\n[data]"),
            );
            let error = parse(&text).unwrap_err().to_string();
            assert!(
                error.contains("line 7") && error.contains("PGPASSWORD"),
                "{error}"
            );
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn a_step_that_sets_nothing_is_refused() {
        let text = GOOD.split("vm.swappiness").next().unwrap();
        assert!(parse(text).unwrap_err().to_string().contains("sets nothing"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,200}", at in 0_usize..400) {
            let _ = parse(&text);
            let mut changed = GOOD.to_owned();
            let at = at.min(changed.len());
            changed.insert_str(at, &text.chars().take(5).collect::<String>());
            let _ = parse(&changed);
        }
    }
}
