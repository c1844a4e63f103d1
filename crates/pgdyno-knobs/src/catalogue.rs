//! The catalogue: knobs as data. Code knows kinds of knob, never a knob's name.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where a knob sits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// The server's own settings.
    Postgres,
    /// The kernel at large.
    Kernel,
    /// Its memory management.
    Memory,
    /// Block devices.
    Block,
}

impl Layer {
    /// The word in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Postgres => "postgres",
            Layer::Kernel => "kernel",
            Layer::Memory => "memory",
            Layer::Block => "block",
        }
    }
}

/// How a knob is read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A parameter of PostgreSQL, by ALTER SYSTEM.
    Guc,
    /// A file below /proc/sys named by the id.
    Sysctl,
    /// A file that holds its value.
    Sysfs,
    /// A file that lists all choices with the present one in brackets.
    Bracket,
    /// The pool of huge pages of the default size.
    HugepagePool,
}

/// What applying costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cost {
    /// Counts at once.
    Live,
    /// Counts after the server read its files again.
    Reload,
    /// Counts after a restart of the server.
    Restart,
}

/// What a knob can cost the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// Nothing but time.
    None,
    /// A bad value can bring the server or the host down.
    Stability,
    /// Committed data can be lost in a crash.
    Durability,
}

impl Risk {
    /// The word in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Risk::None => "none",
            Risk::Stability => "stability",
            Risk::Durability => "durability",
        }
    }
}

/// One knob of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knob {
    /// Its name everywhere.
    pub id: String,
    /// Where it sits.
    pub layer: Layer,
    /// How it is read and written.
    pub kind: Kind,
    /// Path of the file, for kinds that need one; `{disk}` stands for the disk of the data directory.
    pub address: Option<String>,
    /// The knob that the kernel zeroes when this one is written.
    pub counterpart: Option<String>,
    /// Files that the kernel sets anew when this one is written.
    #[serde(default)]
    pub resets: Vec<String>,
    /// Least legal number.
    pub min: Option<i64>,
    /// Greatest legal number.
    pub max: Option<i64>,
    /// What applying costs.
    pub cost: Cost,
    /// What it can cost the user.
    pub risk: Risk,
    /// Values that cost nothing, of a knob that otherwise trades durability.
    #[serde(default)]
    pub safe: Vec<String>,
    /// What it does, for people.
    pub summary: String,
    /// Where that is written.
    pub source: String,
}

impl Knob {
    /// What this very value can cost the user.
    pub fn risk_of(&self, value: &str) -> Risk {
        let safe = self
            .safe
            .iter()
            .any(|safe| safe.eq_ignore_ascii_case(value.trim()));
        if safe { Risk::None } else { self.risk }
    }

    /// Path of its file on a target; `None` for parameters of the server. `Err` names the missing disk.
    pub(crate) fn path(&self, disk: Option<&str>) -> Result<Option<String>, CatalogueError> {
        match self.kind {
            Kind::Guc => Ok(None),
            Kind::Sysctl | Kind::HugepagePool => Ok(Some(sysctl_path(&self.id))),
            Kind::Sysfs | Kind::Bracket => {
                place_disk(self.address.as_deref().unwrap_or_default(), disk, &self.id).map(Some)
            }
        }
    }
}

/// Below /proc/sys, the dots of a name are slashes (an interface's own dot is written as a slash: sysctl(8)).
pub(crate) fn sysctl_path(id: &str) -> String {
    let swapped: String = id
        .chars()
        .map(|c| match c {
            '.' => '/',
            '/' => '.',
            other => other,
        })
        .collect();
    format!("/proc/sys/{swapped}")
}

pub(crate) fn place_disk(address: &str, disk: Option<&str>, id: &str) -> Result<String, CatalogueError> {
    match disk {
        Some(disk) => Ok(address.replace("{disk}", disk)),
        None if address.contains("{disk}") => Err(CatalogueError::NoDisk { id: id.to_owned() }),
        None => Ok(address.to_owned()),
    }
}

/// A knob with the value it is to have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Id of the knob.
    pub knob: String,
    /// Value as text, with a unit where the knob takes one.
    pub value: String,
}

/// What is wrong with the catalogue, or with a setting held against it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CatalogueError {
    /// Not in the catalogue.
    #[error("unknown knob \"{id}\"{}", nearest.as_ref().map(|n| format!("; did you mean \"{n}\"?")).unwrap_or_default())]
    Unknown {
        /// What was asked for.
        id: String,
        /// The nearest there is.
        nearest: Option<String>,
    },
    /// Out of range or no number.
    #[error("{id} = \"{value}\": expected {expected}")]
    Value {
        /// Which knob.
        id: String,
        /// What was given.
        value: String,
        /// What would be legal.
        expected: String,
    },
    /// The data is on no disk.
    #[error("{id} needs the disk of the data directory, and that could not be found")]
    NoDisk {
        /// Which knob.
        id: String,
    },
    /// A catalogue file cannot be read.
    #[error("catalogue file {file}: {reason}")]
    File {
        /// Its name.
        file: String,
        /// What is wrong.
        reason: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    knob: Vec<Knob>,
}

/// All knobs by id.
#[derive(Debug, Clone)]
pub struct Catalogue {
    knobs: BTreeMap<String, Knob>,
}

/// A word further away than this is no typing error.
const NEAR: usize = 4;

impl Catalogue {
    /// The catalogue that pgdyno is shipped with.
    pub fn shipped() -> Result<Catalogue, CatalogueError> {
        let mut knobs = BTreeMap::new();
        for (file, text) in [
            (
                "knobs/postgres.toml",
                include_str!("../../../catalog/knobs/postgres.toml"),
            ),
            (
                "knobs/kernel.toml",
                include_str!("../../../catalog/knobs/kernel.toml"),
            ),
            (
                "knobs/block.toml",
                include_str!("../../../catalog/knobs/block.toml"),
            ),
        ] {
            let wrong = |reason: String| CatalogueError::File {
                file: file.to_owned(),
                reason,
            };
            let parsed: File = toml::from_str(text).map_err(|e| wrong(e.to_string()))?;
            for knob in parsed.knob {
                let needs_address = matches!(knob.kind, Kind::Sysfs | Kind::Bracket);
                if needs_address != knob.address.is_some() {
                    return Err(wrong(format!(
                        "{}: an address belongs to sysfs and bracket knobs",
                        knob.id
                    )));
                }
                if let Some(twice) = knobs.insert(knob.id.clone(), knob) {
                    return Err(wrong(format!("{} stands in it twice", twice.id)));
                }
            }
        }
        Ok(Catalogue { knobs })
    }

    /// All knobs, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Knob> {
        self.knobs.values()
    }

    /// The knob with this id.
    pub fn get(&self, id: &str) -> Result<&Knob, CatalogueError> {
        self.knobs.get(id).ok_or_else(|| CatalogueError::Unknown {
            id: id.to_owned(),
            nearest: self
                .knobs
                .keys()
                .map(|known| (strsim::damerau_levenshtein(known, id), known))
                .min()
                .filter(|(distance, _)| *distance <= NEAR)
                .map(|(_, known)| known.clone()),
        })
    }

    /// Whether a setting names a known knob and, for kernel knobs, a legal number. The server judges its own.
    pub fn check(&self, setting: &Setting) -> Result<&Knob, CatalogueError> {
        let knob = self.get(&setting.knob)?;
        let wrong = |expected: String| {
            Err(CatalogueError::Value {
                id: knob.id.clone(),
                value: setting.value.clone(),
                expected,
            })
        };
        match knob.kind {
            Kind::Guc => Ok(knob),
            Kind::HugepagePool if setting.value == AUTO => Ok(knob),
            Kind::Bracket => {
                let fine = !setting.value.is_empty()
                    && setting
                        .value
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || b"_-+".contains(&b));
                if fine {
                    Ok(knob)
                } else {
                    wrong("one of the file's own words".into())
                }
            }
            Kind::Sysctl | Kind::Sysfs | Kind::HugepagePool => {
                let (min, max) = (knob.min.unwrap_or(i64::MIN), knob.max.unwrap_or(i64::MAX));
                match setting.value.parse::<i64>() {
                    Ok(number) if (min..=max).contains(&number) => Ok(knob),
                    _ if max == i64::MAX => wrong(format!("a whole number of at least {min}")),
                    _ => wrong(format!("a whole number from {min} to {max}")),
                }
            }
        }
    }
}

/// Value of a huge-page pool: what the server needs.
pub(crate) const AUTO: &str = "auto";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_catalogue_is_whole() {
        let catalogue = Catalogue::shipped().unwrap();
        for knob in catalogue.iter() {
            assert!(!knob.summary.is_empty() && !knob.source.is_empty(), "{}", knob.id);
            if let Some(other) = &knob.counterpart {
                assert_eq!(catalogue.get(other).unwrap().counterpart.as_ref(), Some(&knob.id));
            }
        }
    }

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
        assert!(check("block.scheduler", "none; rm").is_err());
        assert!(
            check("nothing_like_it_at_all", "1")
                .unwrap_err()
                .to_string()
                .ends_with('"')
        );
    }

    #[test]
    fn sysctl_names_become_paths() {
        assert_eq!(sysctl_path("vm.dirty_bytes"), "/proc/sys/vm/dirty_bytes");
        assert_eq!(
            sysctl_path("net.ipv4.conf.eth0/100.rp_filter"),
            "/proc/sys/net/ipv4/conf/eth0.100/rp_filter"
        );
    }
}
