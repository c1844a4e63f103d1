//! The catalogue: knobs as data. Code knows kinds of knob, never a knob's name.

mod files;
mod knob;

pub use knob::sysctl_path;
pub use knob::{CarryOver, Cost, Form, Gives, Kind, Knob, Layer, Per, Risk};

use crate::gucvalue::{Quantity, base_unit, quantity, unit_of};
use crate::near::nearest_name;
use files::{FILES, File};
use pgdyno_host::numbers_of_list;
use pgdyno_record::ErrorClass;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A knob with the value it is to have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Id of the knob, with its instance: "block.read_ahead_kb@dm-0".
    pub knob: String,
    /// Value as text, with a unit where the knob takes one.
    pub value: String,
}

/// What is wrong with the catalogue, or with a setting of one of its knobs.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CatalogueError {
    /// The catalogue has no knob of that id.
    #[error("unknown knob \"{id}\"{}", nearest.as_ref().map(|n| format!("; did you mean \"{n}\"?")).unwrap_or_default())]
    Unknown {
        /// Id that was given.
        id: String,
        /// The id that differs from it by a typing error; `None` without one.
        nearest: Option<String>,
    },
    /// A value out of range, or none of the legal words.
    #[error("{id} = \"{value}\": expected {expected}")]
    Value {
        /// Id of the knob.
        id: String,
        /// Value that was given.
        value: String,
        /// Description of the legal values: "a whole number from 0 to 200".
        expected: String,
    },
    /// The instance behind the @ of a setting is missing or wrong.
    #[error("{setting}: {reason}")]
    Instance {
        /// Id with the instance, as it was given.
        setting: String,
        /// What is wrong with the instance, and what was expected.
        reason: String,
    },
    /// The disk that is meant cannot be found.
    #[error("{id} needs the disk of the {which} directory, and that could not be found: {reason}")]
    NoDisk {
        /// Id of the knob.
        id: String,
        /// Directory whose disk is meant: "data" or "wal".
        which: String,
        /// Why the disk could not be found.
        reason: String,
    },
    /// This host has no such thing.
    #[error("{id}: {reason}")]
    NotHere {
        /// Id of the knob.
        id: String,
        /// What is missing where, and which kernels have it.
        reason: String,
    },
    /// A knob that pgdyno only advises, such as a word of the boot line.
    #[error("{id} is not set by pgdyno: {how}")]
    AdvisedOnly {
        /// Id of the knob.
        id: String,
        /// What it takes to set it, with the lines to write.
        how: String,
    },
    /// A catalogue file cannot be read.
    #[error("catalogue file {file}: {reason}")]
    File {
        /// Name of the file in the catalogue.
        file: String,
        /// Error of the parser, or the rule that the file breaks.
        reason: String,
    },
}

impl CatalogueError {
    /// A knob or value that is none is a mistake of the command line or the file.
    pub fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }

    /// What mends it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        matches!(self, CatalogueError::Unknown { .. }).then_some("`pgdyno knobs` lists them all")
    }
}

/// Every knob that pgdyno has, by its id.
#[derive(Debug, Clone)]
pub struct Catalogue {
    knobs: BTreeMap<String, Knob>,
    sections: Vec<Section>,
}

/// Knobs that people read about together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Heading of the section in the reference.
    pub title: String,
    /// Ids of its knobs, in their order.
    pub ids: Vec<String>,
}

impl Catalogue {
    /// The catalogue that pgdyno is shipped with.
    pub fn shipped() -> Result<Catalogue, CatalogueError> {
        let mut knobs = BTreeMap::new();
        let mut sections = Vec::new();
        for (file, text) in FILES {
            let wrong = |reason: String| CatalogueError::File {
                file: (*file).to_owned(),
                reason,
            };
            let parsed: File = toml::from_str(text).map_err(|e| wrong(e.to_string()))?;
            sections.push(Section {
                title: parsed.title,
                ids: parsed.knob.iter().map(|knob| knob.id.clone()).collect(),
            });
            for knob in parsed.knob {
                if let Some(flaw) = files::flaw(&knob) {
                    return Err(wrong(format!("{}: {flaw}", knob.id)));
                }
                if let Some(twice) = knobs.insert(knob.id.clone(), knob) {
                    return Err(wrong(format!("it contains {} twice", twice.id)));
                }
            }
        }
        match files::flaw_between(&knobs) {
            Some((id, reason)) => Err(CatalogueError::File {
                file: "knobs".into(),
                reason: format!("{id}: {reason}"),
            }),
            None => Ok(Catalogue { knobs, sections }),
        }
    }

    /// The knobs as people read about them.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Iterates over all knobs, sorted by id.
    pub fn iter(&self) -> impl Iterator<Item = &Knob> {
        self.knobs.values()
    }

    /// The knob with this id, if there is one; an instance behind it is passed over.
    pub fn find(&self, id: &str) -> Option<&Knob> {
        self.knobs.get(split(id).0)
    }

    /// The number of a setting, in bytes or seconds where it is a size or a time; one without a
    /// unit is in the knob's own. `None` of what is not a number.
    pub fn number_of(&self, id: &str, value: &str) -> Option<f64> {
        let (kind, number) = quantity(value)?;
        let own = self.find(id).and_then(|knob| base_unit(knob.unit.as_deref()?));
        Some(match (kind, own) {
            // 0 and what is below are words.
            (Quantity::Plain, Some(own)) if number > 0.0 => number * own,
            _ => number,
        })
    }

    /// The value of a parameter with its unit, where it is a number without one: 16384 buffers are
    /// "131072kB".
    pub fn with_unit(&self, id: &str, value: &str) -> String {
        let own = self.find(id).filter(|knob| knob.kind == Kind::Guc);
        let unit = own.and_then(|knob| unit_of(knob.unit.as_deref()?));
        // The server has no base unit of microseconds, and takes none there.
        let unit = unit.filter(|(_, unit)| *unit != "us");
        match (quantity(value), unit) {
            (Some((Quantity::Plain, number)), Some((multiple, unit))) if number > 0.0 => {
                format!("{}{unit}", number * multiple)
            }
            _ => value.to_owned(),
        }
    }

    /// The same, where none is an error, which names the one that may have been meant.
    pub fn get(&self, id: &str) -> Result<&Knob, CatalogueError> {
        let (id, _) = split(id);
        self.find(id).ok_or_else(|| CatalogueError::Unknown {
            id: id.to_owned(),
            nearest: self.nearest(id),
        })
    }

    /// What was meant, where an id is not known: one that is written nearly so, or that ends so.
    fn nearest(&self, id: &str) -> Option<String> {
        let known = || self.knobs.keys().map(String::as_str);
        let ends = |known: &&str| known.rsplit_once('.').is_some_and(|(_, last)| last == id);
        nearest_name(id, known())
            .or_else(|| known().find(ends))
            .map(str::to_owned)
    }

    /// Whether a setting is legal as for `check`, and one that pgdyno applies itself.
    pub fn check_settable(&self, setting: &Setting) -> Result<&Knob, CatalogueError> {
        let knob = self.check(setting)?;
        if knob.kind.is_advised_only() {
            return Err(CatalogueError::AdvisedOnly {
                id: knob.id.clone(),
                how: knob.how(&setting.value),
            });
        }
        Ok(knob)
    }

    /// Whether a setting names a known knob and, for kernel knobs, a legal number. The server
    /// judges its own.
    pub fn check(&self, setting: &Setting) -> Result<&Knob, CatalogueError> {
        let knob = self.get(&setting.knob)?;
        let wrong = |expected: String| {
            Err(CatalogueError::Value {
                id: knob.id.clone(),
                value: setting.value.clone(),
                expected,
            })
        };
        let value = setting.value.as_str();
        if let Some(reason) = knob.wrong_instance(split(&setting.knob).1) {
            return Err(CatalogueError::Instance {
                setting: setting.knob.clone(),
                reason,
            });
        }
        if knob.servers_of_pool(value).is_some() || knob.choices.iter().any(|choice| choice == value) {
            return Ok(knob);
        }
        let in_range = |number: f64| {
            #[expect(
                clippy::cast_precision_loss,
                reason = "legal numbers are far below 2^53, or no bound at all"
            )]
            let (min, max) = (
                knob.min.unwrap_or(i64::MIN) as f64,
                knob.max.unwrap_or(i64::MAX) as f64,
            );
            (min..=max).contains(&number)
        };
        let fine = match knob.form {
            Form::Server => true,
            Form::Integer => value.parse::<i64>().is_ok_and(|number| {
                (knob.min.unwrap_or(i64::MIN)..=knob.max.unwrap_or(i64::MAX)).contains(&number)
            }),
            Form::Decimal => value.parse::<f64>().is_ok_and(in_range),
            Form::Integers => {
                let mut numbers = value.split_whitespace().peekable();
                numbers.peek().is_some() && numbers.all(|number| number.parse::<i64>().is_ok())
            }
            Form::Word => {
                let legal = |b: u8| b.is_ascii_alphanumeric() || b"_-+./".contains(&b);
                knob.choices.is_empty() && !value.is_empty() && value.bytes().all(legal)
            }
            Form::CpuList => {
                is_cpu_list(value) || knob.node_of(value).is_some() || knob.part_of(value).is_some()
            }
        };
        if fine { Ok(knob) } else { wrong(knob.legal()) }
    }
}

impl Catalogue {
    /// Two of the settings that make no sense beside each other.
    pub fn conflict<'s>(&self, settings: &'s [Setting]) -> Option<(&'s Setting, &'s Setting)> {
        settings.iter().enumerate().find_map(|(at, one)| {
            let other = settings[at + 1..].iter().find(|other| {
                let excludes = |a: &Setting, b: &Setting| {
                    let knob = self.find(&a.knob);
                    knob.is_some_and(|knob| knob.excludes.iter().any(|id| id == split(&b.knob).0))
                };
                excludes(one, other) || excludes(other, one)
            })?;
            Some((one, other))
        })
    }
}

/// The id of a knob and the instance behind it.
pub fn split(knob: &str) -> (&str, Option<&str>) {
    match knob.split_once('@') {
        Some((id, instance)) => (id, Some(instance)),
        None => (knob, None),
    }
}

/// Numbers and ranges with commas between, as the kernel takes them.
fn is_cpu_list(text: &str) -> bool {
    let has_space = text.contains(char::is_whitespace);
    !has_space && numbers_of_list(text).is_some_and(|numbers| !numbers.is_empty())
}

/// Value of a huge-page pool: what the server needs; with a number behind it, what so many servers
/// like it need.
pub const AUTO: &str = "auto";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_held_against_it() {
        let catalogue = Catalogue::shipped().unwrap();
        let check = |knob: &str, value: &str| {
            catalogue
                .check(&Setting {
                    knob: knob.into(),
                    value: value.into(),
                })
                .map(|k| k.id.clone())
        };
        assert_eq!(check("vm.swappiness", "1").unwrap(), "vm.swappiness");
        assert_eq!(check("vm.nr_hugepages", "auto").unwrap(), "vm.nr_hugepages");
        let error = check("shared_bufers", "1GB").unwrap_err().to_string();
        assert!(error.contains("did you mean \"shared_buffers\"?"), "{error}");
        let error = check("vm.swappiness", "201").unwrap_err().to_string();
        assert!(error.contains("0 to 200"), "{error}");
        assert!(check("vm.dirty_bytes", "0").is_err(), "the kernel refuses it too");
        assert!(check("cgroup.cpus", "node:12").is_ok() && check("cgroup.cpus", "0-3,8").is_ok());
        let error = check("cgroup.cpus", "node:x").unwrap_err().to_string();
        assert!(error.contains("as node:0"), "{error}");
        assert!(
            check("cgroup.memory_nodes", "node:0").is_err()
                && check("server.cpu_affinity", "node:0").is_err()
        );
        assert!(check("block.scheduler", "none; rm").is_err());
        let error = check("read_ahead_kb", "0").unwrap_err().to_string();
        assert!(error.contains("\"block.read_ahead_kb\"?"), "{error}");
        let error = check("xyz", "0").unwrap_err().to_string();
        assert!(
            error.ends_with("\"xyz\""),
            "no word of three letters is near it: {error}"
        );
        assert!(
            check("nothing_like_it_at_all", "1")
                .unwrap_err()
                .to_string()
                .ends_with('"')
        );
    }
}
