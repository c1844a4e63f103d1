//! The experiment file: TOML in, typed and checked, or an error with file, line and what was
//! expected.

mod check;
mod choices;
mod event;
mod expressions;
mod levels;
mod lines;
mod parts;
mod place;
mod search;
mod size;
mod study;
mod switch;

pub use check::LOAD_HOSTS_MAX;
pub(crate) use check::SEED_MAX;
pub use choices::{
    ChartForm, Design, Found, Instances, LoadOn, PoolModeWord, PoolerWord, Prewarm, Reset, RestartPolicy,
    SettingScope, StopRule, Take, Untested,
};
pub use expressions::{asks_for_target, given};
pub use levels::LevelsError;
pub use parts::{
    BudgetPart, CreatePart, DataPart, EventPart, ExperimentFile, FactorPart, GuardPart, LoadPart, ServerPart,
    StepPart, SwitchPart, TargetPart, WindowPart,
};
pub(crate) use place::LOOPBACK;
pub use place::Place;
pub use search::{Bound, LimitPart, MethodWord, SearchPart, StartPart};
pub use size::sized;
pub use study::{ChartPart, ClaimPart, FigurePart, StudyPart, TablePart};
pub use switch::why_not_in_turns;
pub(crate) use switch::{Slices, turns_of_servers};

use lines::{line_at, with_nearest};
use pgdyno_knobs::{Catalogue, Setting};
use pgdyno_record::ErrorClass;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// What is wrong with an experiment file, and where.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read at all.
    #[error("{path} could not be read: {source}")]
    Unreadable {
        /// Path as it was given.
        path: PathBuf,
        /// The error of the system call.
        source: std::io::Error,
    },
    /// Something in it is wrong.
    #[error("{path}, line {line}: {message}")]
    Wrong {
        /// Path as it was given.
        path: PathBuf,
        /// Line of the mistake, from 1.
        line: usize,
        /// What is wrong in that line, and what was expected.
        message: String,
    },
}

impl FileError {
    /// A file that cannot be read as an experiment is a wrong argument.
    pub fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }
}

impl ExperimentFile {
    /// Reads and checks a file; returns its text too, which is stored with the results.
    pub fn read(path: &Path, catalogue: &Catalogue) -> Result<(ExperimentFile, String), FileError> {
        let text = pgdyno_host::given_text(path).map_err(|source| FileError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        ExperimentFile::parse(&text, path, catalogue).map(|file| (file, text))
    }

    /// Parses and checks a text; `path` is for messages.
    pub fn parse(text: &str, path: &Path, catalogue: &Catalogue) -> Result<ExperimentFile, FileError> {
        let text = &*expressions::worked_out(text, path, catalogue)?;
        let mut file: ExperimentFile = toml::from_str(text).map_err(|error| FileError::Wrong {
            path: path.to_owned(),
            line: error.span().map_or(1, |span| line_at(text, span.start)),
            message: with_nearest(error.message()),
        })?;
        if file.metric.is_empty() {
            file.metric = check::usual_metric(&file).to_owned();
        }
        check::Check {
            file: &file,
            text,
            path,
            catalogue,
        }
        .all()?;
        if Slices::of(&file).is_some() {
            let wash_out_s = switch::wash_out_s(&file, catalogue);
            file.switch.wash_out_s.get_or_insert(wash_out_s);
        }
        Ok(file)
    }

    /// The JSON schema of experiment files, for editors.
    pub fn schema() -> serde_json::Value {
        let mut schema = schemars::schema_for!(ExperimentFile);
        schema.insert("title".into(), "pgdyno experiment".into());
        let mut schema = schema.to_value();
        for part in ["DataPart", "LoadPart", "ServerPart"] {
            let properties = schema["$defs"][part]["properties"].as_object_mut();
            properties
                .into_iter()
                .flatten()
                .for_each(|(_, key)| expressions::allow(key));
        }
        schema
    }
}

/// The settings of a table; `vm.swappiness = 1` makes nested tables in TOML, which are one knob's
/// name here.
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
                value => settings.push(Setting {
                    knob,
                    value: text_of(value),
                }),
            }
        }
    }
    let mut settings = Vec::new();
    walk(table, "", &mut settings);
    settings
}

/// A value as PostgreSQL and the kernel write it.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Boolean(true) => "on".to_owned(),
        Value::Boolean(false) => "off".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
