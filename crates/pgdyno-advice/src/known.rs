//! What is known of a target, by name: facts, settings in plain numbers, and what follows from
//! them. Decides without I/O.

mod derived;
mod releases;
mod time;

pub(crate) use derived::UNKNOWN;
use pgdyno_host::Fact;
use pgdyno_knobs::nearest_name;
use pgdyno_server::Guc;
use serde_json::{Number, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// A value that follows from facts, or why it does not.
type Outcome = Result<Value, String>;

/// First words of names of the host's facts (docs/reference/facts.md).
const HOST: &str = "cgroup cpu host huge_pages kernel memory network numa process sched storage swap sysctl thp \
    virtualization";
/// First words of names that a server alone can give a value (docs/reference/facts-server.md), and
/// the sandbox's.
const SERVER: &str = "bgwriter cache checkpoints connections databases extensions indexes jit multixact replication role \
    round_trip_us sandbox sequences server service setting settings shared_memory statements statistics tables \
    temp_files transactions vacuum wal xid";
/// First word of what follows from facts.
const DERIVED: &str = "available";

/// Why a name has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Lacking {
    /// The fact is not known here.
    #[error("{name} is missing: {why}")]
    Missing {
        /// Name of the fact: "server.release".
        name: String,
        /// Why the fact is not known.
        why: String,
    },
    /// There is no such fact.
    #[error("there is no fact \"{name}\"{}", nearest.as_ref().map(|n| format!("; did you mean \"{n}\"?")).unwrap_or_default())]
    Unknown {
        /// Name that was given.
        name: String,
        /// Name that differs from it by a typing error; `None` without one.
        nearest: Option<String>,
    },
    /// It is the beginning of names.
    #[error("\"{name}\" is not a fact but the beginning of names, such as {example}")]
    Room {
        /// Name that was given.
        name: String,
        /// The first name that begins so.
        example: String,
    },
}

/// Facts, settings and what follows from them, by dotted names. Cloning is cheap.
///
/// Names are those of docs/reference/facts.md and docs/reference/facts-server.md. An object's
/// fields are names of their own (`server.build.lz4`). A setting is `setting.NAME`: bytes, seconds,
/// truth values, else numbers or text as they are; a negative number means what it means in the
/// server. docs/reference/expressions.md lists what is derived.
#[derive(Debug, Clone)]
pub struct Known(Arc<Index>);

/// Name to value, or to the reason why there is none.
#[derive(Debug, Clone, Default)]
struct Index {
    facts: BTreeMap<String, Result<Value, String>>,
    has_server: bool,
}

impl Known {
    /// From what was found out. Of facts with the same name the last one counts.
    pub fn new(facts: &[Fact], settings: &[Guc]) -> Known {
        let mut index = Index {
            facts: BTreeMap::new(),
            has_server: !settings.is_empty(),
        };
        for fact in facts {
            index.note(&fact.name, outcome(fact));
        }
        for (name, why) in hidden(facts) {
            index.note(&format!("setting.{name}"), Err(why));
        }
        for guc in settings {
            index.note(&format!("setting.{}", guc.name), Ok(plain(guc)));
        }
        let follows: Vec<_> = derived::ALL
            .iter()
            .map(|(name, rule)| (*name, rule(&index)))
            .collect();
        for (name, outcome) in follows {
            index.note(name, outcome);
        }
        Known(Arc::new(index))
    }

    /// The same with one value set by the user, who knows better: nothing that follows from it is
    /// worked out again.
    #[must_use]
    pub fn given(&self, name: &str, value: Value) -> Known {
        let mut index = Index::clone(&self.0);
        index.note(name, Ok(value));
        Known(Arc::new(index))
    }

    /// The same with a value as people write it: a size ("64GB"), a time ("5min"), a number, true
    /// or false, a word.
    #[must_use]
    pub fn given_text(&self, name: &str, text: &str) -> Known {
        let value = match (text, pgdyno_knobs::gucvalue::quantity(text)) {
            ("true", _) => Value::from(true),
            ("false", _) => Value::from(false),
            (_, Some((_, number))) => number_of(number),
            (text, None) => Value::from(text),
        };
        self.given(name, value)
    }

    /// The same with more facts; a name that has a value keeps it.
    #[must_use]
    pub(crate) fn with(&self, facts: &[Fact]) -> Known {
        let mut index = Index::clone(&self.0);
        for fact in facts {
            if !matches!(index.facts.get(&fact.name), Some(Ok(_))) {
                index.note(&fact.name, outcome(fact));
            }
        }
        Known(Arc::new(index))
    }

    /// The server's major version; `None` where it is not known.
    pub fn major(&self) -> Option<u32> {
        let major = self.get("server.major").ok()?.as_u64()?;
        u32::try_from(major).ok()
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Result<&Value, Lacking> {
        match self.0.facts.get(name) {
            Some(Ok(value)) => Ok(value),
            Some(Err(why)) => Err(Lacking::Missing {
                name: name.to_owned(),
                why: why.clone(),
            }),
            None => Err(self.0.lacking(name)),
        }
    }

    /// All names, those without a value among them, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.facts.keys().map(String::as_str)
    }

    /// Whether names begin with this one and a dot.
    pub(crate) fn is_room(&self, name: &str) -> bool {
        self.0.first_below(name).is_some()
    }

    /// The words that follow `room` in names; of an empty one, the first words.
    pub(crate) fn words_below(&self, room: &str) -> BTreeSet<String> {
        let names: Box<dyn Iterator<Item = &str>> = match room {
            "" => Box::new(self.names()),
            room => Box::new(self.0.below(room).map(|name| &name[room.len() + 1..])),
        };
        names
            .map(|rest| rest.split('.').next().unwrap_or(rest).to_owned())
            .collect()
    }

    /// Whether a name begins as some fact may, here or on another target.
    pub(crate) fn may_begin(&self, word: &str) -> bool {
        is_among(word, HOST)
            || is_among(word, SERVER)
            || word == DERIVED
            || self.0.facts.contains_key(word)
            || self.is_room(word)
    }

    /// What may have been meant by a word that begins no fact, among first words and `others`.
    pub(crate) fn nearest_beginning(&self, word: &str, others: &[&str]) -> Option<String> {
        let ours = self.words_below("");
        let all = ours.iter().map(String::as_str);
        let all = all
            .chain(HOST.split(' '))
            .chain(SERVER.split(' '))
            .chain(others.iter().copied());
        nearest_name(word, all).map(str::to_owned)
    }
}

/// Settings whose value the server facts have a reason for instead.
fn hidden(facts: &[Fact]) -> impl Iterator<Item = (&str, String)> {
    let of = facts.iter().filter(|fact| fact.name == "settings.unknown");
    let rows = of.filter_map(|fact| fact.value.as_ref()?.as_array()).flatten();
    rows.filter_map(|row| Some((row["name"].as_str()?, row["why"].as_str()?.to_owned())))
}

impl Index {
    /// An object's fields become names of their own.
    fn note(&mut self, name: &str, outcome: Result<Value, String>) {
        match outcome {
            Ok(Value::Object(fields)) => {
                for (field, value) in fields {
                    self.note(&format!("{name}.{field}"), Ok(value));
                }
            }
            Ok(Value::Null) => {
                let why = "it could not be read".to_owned();
                self.facts.insert(name.to_owned(), Err(why));
            }
            outcome => {
                self.facts.insert(name.to_owned(), outcome);
            }
        }
    }

    fn below<'i>(&'i self, room: &str) -> impl Iterator<Item = &'i str> + use<'i> {
        let start = format!("{room}.");
        let from = (Bound::Included(start.clone()), Bound::Unbounded);
        self.facts
            .range::<String, _>(from)
            .map(|(name, _)| name.as_str())
            .take_while(move |name| name.starts_with(&start))
    }

    fn first_below(&self, room: &str) -> Option<&str> {
        self.below(room).next()
    }

    fn reason(&self, name: &str) -> Option<&String> {
        self.facts.get(name)?.as_ref().err()
    }

    /// Why a name that is not there has no value: what would hold it may be missing as a whole.
    fn lacking(&self, name: &str) -> Lacking {
        if let Some(example) = self.first_below(name) {
            return Lacking::Room {
                name: name.to_owned(),
                example: example.to_owned(),
            };
        }
        match self.reason_of_absence(name) {
            Some(why) => Lacking::Missing {
                name: name.to_owned(),
                why,
            },
            None => Lacking::Unknown {
                name: name.to_owned(),
                nearest: nearest_name(name, self.facts.keys().map(String::as_str)).map(str::to_owned),
            },
        }
    }

    fn reason_of_absence(&self, name: &str) -> Option<String> {
        let word = name.split('.').next().unwrap_or(name);
        // Fields of an object that is missing as a whole.
        let holders = name.match_indices('.').map(|(at, _)| &name[..at]);
        if let Some(why) = holders.filter_map(|holder| self.reason(holder)).next_back() {
            return Some(why.clone());
        }
        if let Some(guc) = name.strip_prefix("setting.").filter(|_| self.has_server) {
            let names = self
                .below("setting")
                .filter_map(|name| name.strip_prefix("setting."));
            let meant = nearest_name(guc, names).map(|near| format!("; did you mean \"{near}\"?"));
            return Some(format!(
                "this server has no setting of that name{}",
                meant.unwrap_or_default()
            ));
        }
        if let Some(why) = self.reason("host.facts").filter(|_| is_among(word, HOST)) {
            return Some(why.clone());
        }
        let first = match word {
            "storage" => {
                let role = name.split('.').nth(1).unwrap_or_default();
                self.reason(&format!("storage.{role}.path"))
                    .or_else(|| self.reason("storage.data.path"))
            }
            "process" | "cgroup" => self.reason("process.pid"),
            _ => None,
        };
        if let Some(why) = first {
            return Some(why.clone());
        }
        let is_derived = |name: &str| derived::ALL.iter().any(|(derived, _)| *derived == name);
        let has_any = self.facts.contains_key(word) || self.below(word).any(|name| !is_derived(name));
        let of_server = is_among(word, SERVER);
        if word == "sandbox" && !has_any {
            return Some("the server is not a sandbox".to_owned());
        }
        let wants_server = of_server || matches!(word, "storage" | "process" | "cgroup");
        (wants_server && !self.has_server && !has_any).then(|| "no server was asked".to_owned())
    }

    fn get(&self, name: &str) -> Result<&Value, String> {
        match self.facts.get(name) {
            Some(Ok(value)) => Ok(value),
            Some(Err(why)) => Err(format!("{name} is missing: {why}")),
            None => Err(match self.lacking(name) {
                Lacking::Missing { why, .. } => why,
                other => other.to_string(),
            }),
        }
    }
}

fn is_among(word: &str, list: &str) -> bool {
    list.split(' ').any(|one| one == word)
}

fn outcome(fact: &Fact) -> Result<Value, String> {
    match (&fact.value, &fact.missing) {
        (Some(value), _) => Ok(value.clone()),
        (None, Some(why)) => Err(why.clone()),
        (None, None) => Err("nobody said why".to_owned()),
    }
}

/// A setting as a plain number where it is one: bytes, seconds, or a bare number.
fn plain(guc: &Guc) -> Value {
    let text = || Value::from(guc.setting.as_str());
    match guc.vartype.as_str() {
        "bool" => Value::from(guc.setting == "on"),
        "integer" | "real" => {
            let Ok(number) = guc.setting.parse::<f64>() else {
                return text();
            };
            let unit = guc.unit.as_deref().and_then(pgdyno_knobs::gucvalue::base_unit);
            match unit {
                // What is below zero (or zero) means itself: "as another setting", "by the server",
                // "never".
                Some(factor) if number > 0.0 => number_of(number * factor),
                _ => match guc.setting.parse::<i64>() {
                    Ok(whole) => Value::from(whole),
                    Err(_) => number_of(number),
                },
            }
        }
        _ => text(),
    }
}

/// A number as JSON has it: whole where it is whole.
pub fn number_of(number: f64) -> Value {
    /// Up to here every whole number is a floating-point number.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
        return Value::from(number as i64);
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests;
