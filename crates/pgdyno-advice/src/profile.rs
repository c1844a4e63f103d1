//! Profiles: named sets of settings with reasons, as data. Knows the shipped ones and those in
//! files that it is handed, resolves them for a target, writes them for other programs. Applies
//! nothing, and reads no file itself.

mod export;
mod resolve;
mod space;
mod value;

pub use export::{Carrier, Exported, export};
pub use resolve::{Now, Resolved, ResolvedSetting, SkippedSetting, Why};
pub use space::{Matters, MemoryOf, PriorError, Priors, Scale, SearchSpace, SpaceFor, SpaceKnob};
pub use value::knob_text;

use crate::expression::{Expression, ExpressionError};
use crate::known::Known;
use crate::sizing::{Sizing, Sources};
use pgdyno_knobs::{Catalogue, CatalogueError, nearest_name};
use pgdyno_record::ErrorClass;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::{Spanned, Value};

/// Bytes of a user's file.
const FILE_MAX: u64 = 1_000_000;
/// Most settings that one profile has.
const SETTINGS_MAX: usize = 1000;
/// Profiles that one inherits from, in all.
const ANCESTORS_MAX: usize = 100;

/// A profile as it was read; expressions are not worked out.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Name on the command line; in a user's file the `name` that it gives.
    pub name: String,
    /// Short title, for lists.
    pub title: String,
    /// Summary in a sentence or two, for `show`.
    pub summary: String,
    /// Profiles whose settings it takes over, in this order; names of shipped ones, or files beside
    /// it.
    pub inherits: Vec<String>,
    /// Hosts and loads that it was compared with the stock settings on.
    pub measured: Vec<ProfileMeasured>,
    /// Settings of this file, without the inherited ones.
    pub settings: Vec<ProfileSetting>,
    /// Path of the file, for messages.
    pub file: PathBuf,
}

/// What a profile brought where it was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileMeasured {
    /// The host in a few words: "1 CPU, 2 GB".
    pub machine: String,
    /// The load in a few words: "tpcc, 8 clients".
    pub load: String,
    /// Throughput against that of the stock settings: 1.10 is ten percent more.
    pub ratio: f64,
    /// Lower end of the ratio's interval.
    pub low: f64,
    /// Upper end of the ratio's interval.
    pub high: f64,
    /// Day of the measurement: "2026-11-27".
    pub date: String,
}

/// A setting of a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileSetting {
    /// Id of the knob, with an instance where it has one.
    pub knob: String,
    /// Value to set, or the order to drop an inherited one.
    pub value: ProfileValue,
    /// Meaning of a bare number; `None` for the knob's own unit.
    pub unit: Option<Unit>,
    /// Condition on facts; always set without one.
    pub when: Option<Expression>,
    /// Whether a present value may make it unnecessary; `None` where it is set in any case.
    pub only: Option<Only>,
    /// Why the value is a good one, in a sentence.
    pub reason: String,
    /// Study or manual that recommends it, by its tag.
    pub source: String,
    /// Line in the file, from 1.
    pub line: usize,
}

/// A value of a profile.
#[derive(Debug, Clone, PartialEq)]
pub enum ProfileValue {
    /// The value as the knob takes it.
    Text(String),
    /// A number, which `unit` gives a meaning.
    Number(f64),
    /// Worked out for the target.
    Expression(Expression),
    /// What is inherited is not taken over.
    Drop,
}

impl ProfileValue {
    /// The value as it is written in a file.
    pub fn shown(&self) -> String {
        match self {
            ProfileValue::Text(text) => text.clone(),
            ProfileValue::Number(number) => value::plain(*number),
            ProfileValue::Expression(expression) => format!("= {expression}"),
            ProfileValue::Drop => "(dropped)".to_owned(),
        }
    }
}

/// What a bare number of a profile means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Bytes: rounded down to what the knob takes.
    Bytes,
    /// Seconds, in the unit that the knob takes.
    Seconds,
}

/// Whether a setting may lower, or raise, what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Only {
    /// What is there is not lowered.
    Raise,
    /// What is there is not raised.
    Lower,
}

impl Only {
    /// Name in files: "raise".
    pub fn word(self) -> &'static str {
        match self {
            Only::Raise => "raise",
            Only::Lower => "lower",
        }
    }
}

/// Why a profile cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// No shipped profile has that name.
    #[error("there is no profile \"{name}\"{}; a file is named by a path with a / or .toml in it", nearest.as_ref().map(|n| format!("; did you mean \"{n}\"?")).unwrap_or_default())]
    Unknown {
        /// Name that was given.
        name: String,
        /// Name that differs from it by a typing error; `None` without one.
        nearest: Option<String>,
    },
    /// A file cannot be read.
    #[error("{path} could not be read: {reason}")]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system, or why the file is refused.
        reason: String,
    },
    /// Something in a file is wrong.
    #[error("{path}, line {line}: {message}")]
    Wrong {
        /// Path of the file.
        path: PathBuf,
        /// Line of the mistake, from 1.
        line: usize,
        /// What is wrong in that line, and what was expected.
        message: String,
    },
    /// A profile inherits from itself.
    #[error("{path}: profiles inherit in a circle: {}", circle.join(" > "))]
    Circle {
        /// The file where it closes.
        path: PathBuf,
        /// The names, the first one again at the end.
        circle: Vec<String>,
    },
}

impl ProfileError {
    /// A profile that is none is a mistake of the command line or the file.
    pub fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Spanned<String>,
    title: String,
    summary: String,
    #[serde(default)]
    inherits: Vec<Spanned<String>>,
    #[serde(default)]
    measured: Vec<Spanned<ProfileMeasured>>,
    #[serde(default)]
    setting: Vec<Spanned<FileSetting>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSetting {
    knob: Spanned<String>,
    value: Option<Spanned<Value>>,
    #[serde(default)]
    drop: bool,
    unit: Option<Unit>,
    when: Option<Spanned<String>>,
    only: Option<Only>,
    reason: String,
    source: String,
}

/// Below `profiles/` of the shipped catalogue.
macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$((concat!("profiles/", $name, ".toml"), include_str!(concat!("../catalog/profiles/", $name, ".toml")))),*]
    };
}
const FILES: &[(&str, &str)] = shipped![
    "analytics",
    "bulk-load",
    "host",
    "mixed",
    "oltp",
    "oltp-latency",
    "pgtune",
    "pgtune-desktop",
    "pgtune-dw",
    "pgtune-mixed",
    "pgtune-oltp",
    "pgtune-web",
    "server",
    "small",
    "tuned-latency-performance",
    "tuned-network-latency",
    "tuned-postgresql",
    "tuned-throughput-performance",
    "tuned-virtual-host",
    "virtual-guest",
    "write-heavy-large",
];

fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

impl Profile {
    /// Reads the profile in a user's file.
    fn load(path: &Path, files: &dyn Files) -> Result<Profile, ProfileError> {
        let unreadable = |reason: String| ProfileError::Unreadable {
            path: path.to_owned(),
            reason,
        };
        let bytes = files.bytes(path, FILE_MAX).map_err(unreadable)?;
        let text = String::from_utf8(bytes)
            .map_err(|e| unreadable(format!("it is not UTF-8: {}", e.utf8_error())))?;
        Profile::parse(&text, path)
    }

    /// Reads a text; `path` is for messages.
    pub fn parse(text: &str, path: &Path) -> Result<Profile, ProfileError> {
        let wrong = |offset: usize, message: String| ProfileError::Wrong {
            path: path.to_owned(),
            line: line_at(text, offset),
            message,
        };
        let file: File = toml::from_str(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            wrong(offset, error.message().to_owned())
        })?;
        let name = file.name.get_ref();
        let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if name.is_empty() || name.len() > 60 || !name.bytes().all(legal) {
            let message = format!("name = \"{name}\": expected small letters, digits and -, 60 at most");
            return Err(wrong(file.name.span().start, message));
        }
        if file.setting.len() > SETTINGS_MAX {
            return Err(wrong(0, format!("expected {SETTINGS_MAX} settings at most")));
        }
        for measured in &file.measured {
            let ProfileMeasured { ratio, low, high, .. } = measured.get_ref();
            let is_ordered = 0.0 < *low && low <= ratio && ratio <= high && high.is_finite();
            if !is_ordered {
                let message =
                    format!("measured: expected 0 < low <= ratio <= high, found {low}, {ratio} and {high}");
                return Err(wrong(measured.span().start, message));
            }
        }
        let settings = file.setting.iter().map(|setting| {
            let line = line_at(text, setting.span().start);
            let of_line = |(offset, message): (Option<usize>, String)| {
                let offset = offset.unwrap_or(setting.span().start);
                wrong(offset, format!("{}: {message}", setting.get_ref().knob.get_ref()))
            };
            ProfileSetting::new(setting.get_ref(), line).map_err(of_line)
        });
        Ok(Profile {
            name: name.clone(),
            title: file.title,
            summary: file.summary,
            inherits: file.inherits.iter().map(|name| name.get_ref().clone()).collect(),
            measured: file.measured.iter().map(|own| own.get_ref().clone()).collect(),
            settings: settings.collect::<Result<_, _>>()?,
            file: path.to_owned(),
        })
    }
}

impl ProfileSetting {
    /// The error comes with its place in the file, where it is not the setting's own.
    fn new(setting: &FileSetting, line: usize) -> Result<ProfileSetting, (Option<usize>, String)> {
        let parse = |spanned: &Spanned<String>, text: &str| {
            Expression::parse(text).map_err(|error| (Some(spanned.span().start), error.to_string()))
        };
        let value = match (&setting.value, setting.drop) {
            (None, true) => ProfileValue::Drop,
            (None, false) => return Err((None, "expected value = ..., or drop = true".into())),
            (Some(_), true) => return Err((None, "expected either value or drop = true, not both".into())),
            (Some(value), false) => {
                let at = value.span().start;
                ProfileValue::of_toml(value.get_ref()).map_err(|message| (Some(at), message))?
            }
        };
        Ok(ProfileSetting {
            knob: setting.knob.get_ref().clone(),
            value,
            unit: setting.unit,
            when: setting
                .when
                .as_ref()
                .map(|when| parse(when, when.get_ref()))
                .transpose()?,
            only: setting.only,
            reason: setting.reason.clone(),
            source: setting.source.clone(),
            line,
        })
    }
}

impl ProfileValue {
    fn of_toml(value: &Value) -> Result<ProfileValue, String> {
        match value {
            Value::Integer(number) => Ok(value::exact(*number)
                .map_or_else(|| ProfileValue::Text(number.to_string()), ProfileValue::Number)),
            Value::Float(number) if number.is_finite() => Ok(ProfileValue::Number(*number)),
            Value::Boolean(truth) => Ok(ProfileValue::Text(if *truth { "on" } else { "off" }.into())),
            Value::String(text) => match text.strip_prefix('=') {
                Some(expression) => Expression::parse(expression)
                    .map(ProfileValue::Expression)
                    .map_err(|error: ExpressionError| error.to_string()),
                None => Ok(ProfileValue::Text(text.clone())),
            },
            _ => Err("value: expected a number, a text, true, false, or an expression as \"= ...\"".into()),
        }
    }
}

/// Access to the user's files of profiles; this crate reads none itself.
pub trait Files {
    /// The one name of a file, by whichever of its names; `None` where there is none.
    fn full_name(&self, path: &Path) -> Option<PathBuf>;

    /// All that is in a file.
    ///
    /// # Errors
    ///
    /// Why it cannot be read, or that it is longer than so many bytes.
    fn bytes(&self, path: &Path, bytes_max: u64) -> Result<Vec<u8>, String>;
}

/// Profiles by name: the shipped ones, and files of the user's by their path.
#[derive(Debug, Clone)]
pub struct Profiles {
    profiles: BTreeMap<String, Profile>,
    /// Files that were opened: full names by those that were given.
    opened: BTreeMap<String, String>,
}

impl Profiles {
    /// The profiles that are built in.
    pub fn shipped() -> Result<Profiles, ProfileError> {
        let mut profiles = BTreeMap::new();
        for (file, text) in FILES {
            let profile = Profile::parse(text, Path::new(file))?;
            profiles.insert(profile.name.clone(), profile);
        }
        Ok(Profiles {
            profiles,
            opened: BTreeMap::new(),
        })
    }

    /// All that can be named without a path, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Profile> {
        self.profiles.values().filter(|profile| is_shipped(profile))
    }

    /// A profile by its name, or one in a file: what has a `/` or `.toml` in it is a path, and is
    /// known from then on.
    pub fn open(&mut self, name_or_file: &str, files: &dyn Files) -> Result<&Profile, ProfileError> {
        if is_profile_path(name_or_file) {
            let key = key(Path::new(name_or_file), files);
            self.add_file(&key, Path::new(name_or_file), files, &mut Vec::new())?;
            self.opened.insert(name_or_file.to_owned(), key);
        }
        self.get(self.key(name_or_file))
    }

    /// How a profile is found again: a file by its full name.
    fn key<'a>(&'a self, name_or_file: &'a str) -> &'a str {
        self.opened.get(name_or_file).map_or(name_or_file, String::as_str)
    }

    fn get(&self, name: &str) -> Result<&Profile, ProfileError> {
        self.profiles.get(name).ok_or_else(|| ProfileError::Unknown {
            name: name.to_owned(),
            nearest: nearest_name(name, self.profiles.keys().map(String::as_str)).map(str::to_owned),
        })
    }

    /// Reads a file and those that it inherits from. In memory a file inherits by full paths.
    fn add_file(
        &mut self,
        name: &str,
        path: &Path,
        files: &dyn Files,
        opened: &mut Vec<String>,
    ) -> Result<(), ProfileError> {
        // A circle is found, and named, when the profile is put together.
        if opened.iter().any(|other| other == name) {
            return Ok(());
        }
        opened.push(name.to_owned());
        if opened.len() > ANCESTORS_MAX {
            return Err(ProfileError::Unreadable {
                path: path.to_owned(),
                reason: format!("more than {ANCESTORS_MAX} files inherit from one another"),
            });
        }
        let mut profile = Profile::load(path, files)?;
        for inherited in &mut profile.inherits {
            if is_profile_path(inherited) {
                let beside = path.parent().unwrap_or(Path::new("")).join(&*inherited);
                *inherited = key(&beside, files);
                self.add_file(inherited, &beside, files, opened)?;
            }
        }
        self.profiles.insert(name.to_owned(), profile);
        Ok(())
    }

    /// Settings of a profile and of all that it inherits from, the inherited ones first, each with
    /// its profile.
    pub fn flattened(&self, name_or_file: &str) -> Result<Vec<(&Profile, &ProfileSetting)>, ProfileError> {
        let mut found = Vec::new();
        self.walk(
            self.key(name_or_file),
            &mut Vec::new(),
            &mut Vec::new(),
            &mut found,
        )?;
        Ok(found)
    }

    fn walk<'p>(
        &'p self,
        name: &str,
        path: &mut Vec<String>,
        done: &mut Vec<String>,
        found: &mut Vec<(&'p Profile, &'p ProfileSetting)>,
    ) -> Result<(), ProfileError> {
        let profile = self.get(name)?;
        path.push(name.to_owned());
        for inherited in &profile.inherits {
            if let Some(at) = path.iter().position(|above| above == inherited) {
                let mut circle = path[at..].to_vec();
                circle.push(inherited.clone());
                return Err(ProfileError::Circle {
                    path: profile.file.clone(),
                    circle,
                });
            }
            if done.contains(inherited) {
                continue;
            }
            self.walk(inherited, path, done, found)
                .map_err(|error| match error {
                    ProfileError::Unknown { name, nearest } if name == *inherited => ProfileError::Wrong {
                        path: profile.file.clone(),
                        line: 1,
                        message: format!("inherits: {}", ProfileError::Unknown { name, nearest }),
                    },
                    other => other,
                })?;
        }
        path.pop();
        done.push(name.to_owned());
        found.extend(profile.settings.iter().map(|setting| (profile, setting)));
        Ok(())
    }

    /// A profile for a target: what is to be set there, and what is not and why.
    ///
    /// `name_or_file` is a shipped one, or was given to [`Profiles::open`]. `server_major` is the
    /// server's version (14 to 18), `None` without a server; `current` returns what a knob is now,
    /// as a setting would be written.
    pub fn resolve(
        &self,
        name_or_file: &str,
        known: &Known,
        catalogue: &Catalogue,
        server_major: Option<u32>,
        current: &dyn Fn(&str) -> Now,
    ) -> Result<Resolved, ProfileError> {
        let profile = self.get(self.key(name_or_file))?;
        let flattened = self.flattened(name_or_file)?;
        let sources = Sources::shipped().map_err(|message| ProfileError::Wrong {
            path: PathBuf::from("advice/sizing.toml"),
            line: 1,
            message,
        })?;
        let known = known.with(&Sizing::of(&sources, known).facts);
        resolve::resolve(profile, &flattened, &known, catalogue, server_major, current)
    }
}

/// Whether a profile is named by its file: what has a `/` or `.toml` in it is a path.
pub fn is_profile_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

fn key(path: &Path, files: &dyn Files) -> String {
    let full = files.full_name(path);
    full.as_deref().unwrap_or(path).to_string_lossy().into_owned()
}

fn is_shipped(profile: &Profile) -> bool {
    FILES.iter().any(|(file, _)| Path::new(file) == profile.file)
}

/// A knob that a profile names and nobody knows, with its place.
fn wrong_knob(profile: &Profile, setting: &ProfileSetting, error: &CatalogueError) -> ProfileError {
    ProfileError::Wrong {
        path: profile.file.clone(),
        line: setting.line,
        message: error.to_string(),
    }
}

#[cfg(test)]
mod tests;
