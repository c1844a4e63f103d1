//! The catalogue: knobs as data. Code knows kinds of knob, never a knob's name.

mod files;

use files::{FILES, File};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where a knob sits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// The server's own settings.
    Postgres,
    /// How a table is stored and vacuumed.
    Table,
    /// The kernel at large.
    Kernel,
    /// Its memory management.
    Memory,
    /// Block devices and the file systems on them.
    Block,
    /// Processors: frequency, idle states, which of them the server runs on.
    Cpu,
    /// The network.
    Net,
}

impl Layer {
    /// All of them, from the server down.
    pub const ALL: [Layer; 7] = [
        Layer::Postgres,
        Layer::Table,
        Layer::Kernel,
        Layer::Memory,
        Layer::Block,
        Layer::Cpu,
        Layer::Net,
    ];

    /// The word in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Postgres => "postgres",
            Layer::Table => "table",
            Layer::Kernel => "kernel",
            Layer::Memory => "memory",
            Layer::Block => "block",
            Layer::Cpu => "cpu",
            Layer::Net => "net",
        }
    }
}

/// How a knob is read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A parameter of PostgreSQL, by ALTER SYSTEM.
    Guc,
    /// A storage parameter of a table and of each of its partitions, by ALTER TABLE ... SET.
    TableOption,
    /// How the long values of all columns of a table and of each of its partitions are compressed.
    ColumnCompression,
    /// A file below /proc/sys named by the id, or at an address where another kernel has it.
    Sysctl,
    /// A file that holds its value.
    Sysfs,
    /// A file that lists all choices with the present one in brackets.
    Bracket,
    /// A pool of huge pages.
    HugepagePool,
    /// How much CPU time a control group may use, as a number of CPUs.
    CpuQuota,
    /// The CPUs that the server's processes may run on.
    Affinity,
    /// Where the server's WAL is: `default`, or a directory that pg_wal becomes a symbolic link to.
    WalDirectory,
    /// A swap file: its size in bytes, or 0 for none.
    SwapFile,
    /// A file whose value holds as long as it is open.
    HeldFile,
    /// Something that the kernel does when asked to, and that leaves no state to put back: known, never set.
    Action,
    /// A word of the boot line: advised with the lines to write, and looked at afterwards; never set.
    BootParameter,
    /// An option of a mount: advised and looked at likewise.
    MountOption,
    /// A flag of a device-mapper target: advised and looked at likewise.
    VolumeFlag,
}

impl Kind {
    /// Whether pgdyno only advises it: it wants a reboot, a remount, or leaves nothing to put back.
    pub fn is_advised_only(self) -> bool {
        matches!(
            self,
            Kind::Action | Kind::BootParameter | Kind::MountOption | Kind::VolumeFlag
        )
    }
}

/// The thing that a knob is a knob of, where there may be several: named behind an @, as in `block.read_ahead_kb@dm-0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Per {
    /// A block device by its name in /sys/block, or `data` or `wal` for the one that holds them, or `data-members` or
    /// `wal-members` for those that it is made of. Without one: `data`.
    Disk,
    /// A network interface.
    Interface,
    /// A size of huge pages in kB (`2048`).
    PageSize,
    /// A size of huge pages and a NUMA node (`2048/1`).
    PageSizeOfNode,
    /// A table, `schema.table` or as search_path finds it.
    Table,
    /// An interrupt by its number.
    Interrupt,
    /// An absolute path.
    Path,
}

/// What a value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// A whole number.
    #[default]
    Integer,
    /// Whole numbers with spaces between.
    Integers,
    /// A number, with decimals or without.
    Decimal,
    /// A word.
    Word,
    /// Numbers and ranges of them (`0-3,8`).
    CpuList,
    /// What the server makes of it.
    Server,
}

/// What applying costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cost {
    /// Counts at once.
    Live,
    /// Counts after the server read its files again.
    Reload,
    /// Counts after a restart of the server.
    Restart,
    /// Counts after the file system is mounted anew, or the volume is opened anew.
    Remount,
    /// Counts after the machine was booted anew.
    Reboot,
}

impl Cost {
    /// The word in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Cost::Live => "live",
            Cost::Reload => "reload",
            Cost::Restart => "restart",
            Cost::Remount => "remount",
            Cost::Reboot => "reboot",
        }
    }
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knob {
    /// Its name everywhere.
    pub id: String,
    /// Where it sits.
    pub layer: Layer,
    /// How it is read and written.
    pub kind: Kind,
    /// Paths of its file, of which the first that this kernel has is meant. Placeholders: `{disk}`, `{interface}`, `{size}`,
    /// `{node}`, `{interrupt}` by the instance; `{default_size}` is the kernel's own size of huge pages in kB;
    /// `{cgroup:CONTROLLER}` is the directory of the server's own control group;
    /// a `*` stands for all that are there, which are set alike.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// The thing that it is a knob of, where there may be several.
    pub per: Option<Per>,
    /// The knob that the kernel zeroes when this one is written.
    pub counterpart: Option<String>,
    /// Files that the kernel sets anew when this one is written.
    #[serde(default)]
    pub resets: Vec<String>,
    /// What its value looks like.
    #[serde(default)]
    pub form: Form,
    /// Unit of a bare number ("bytes", "kB", "8kB", "pages", "ms", "us", "percent", "cpus" and the like), where it has one.
    pub unit: Option<String>,
    /// Least legal number.
    pub min: Option<i64>,
    /// Greatest legal number.
    pub max: Option<i64>,
    /// The greatest part of the host's memory that it may take, in percent: beyond that lies no tuning, but an outage.
    pub memory_percent_max: Option<u32>,
    /// The knob that it has to stay below: the kernel takes another value, and a half of it, without a word.
    pub below: Option<String>,
    /// Legal words, where they do not depend on the host or the server.
    #[serde(default)]
    pub choices: Vec<String>,
    /// The first version of PostgreSQL that has it, where that is later than 14.
    pub since: Option<u32>,
    /// The last version of PostgreSQL that has it.
    pub until: Option<u32>,
    /// The first kernel that has it, where that matters ("5.13").
    pub since_kernel: Option<String>,
    /// The last kernel that has it.
    pub until_kernel: Option<String>,
    /// What took its place.
    pub renamed: Option<String>,
    /// What applying costs.
    pub cost: Cost,
    /// What it can cost the user.
    pub risk: Risk,
    /// Values that cost nothing, of a knob that otherwise is a risk.
    #[serde(default)]
    pub safe: Vec<String>,
    /// Knobs that make no sense beside it.
    #[serde(default)]
    pub excludes: Vec<String>,
    /// Of what is only advised: the word to look for on the boot line, among the options of the mount or the flags of the
    /// volume. Without `{value}` in it, it is there (`on`) or not (`off`); with it, `default` means that it is not there.
    pub word: Option<String>,
    /// Of what is only advised: the lines to write. `{value}`, `{mount}` (where the file system is mounted) and `{volume}`
    /// (the name of the device-mapper volume) are to be filled in.
    #[serde(default)]
    pub lines: Vec<String>,
    /// The lines that take it away again: for `off`, or `default`.
    #[serde(default)]
    pub undo_lines: Vec<String>,
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

    /// How a person sets what pgdyno only advises.
    pub fn how(&self, value: &str) -> String {
        let lines: Vec<String> = self
            .lines
            .iter()
            .map(|line| line.replace("{value}", value))
            .collect();
        match (self.kind, lines.is_empty()) {
            (Kind::Action, _) => {
                "it is something that the kernel does once, and leaves no state to put back".to_owned()
            }
            (_, true) => format!("it wants a {}", self.cost.name()),
            (_, false) => format!("it wants a {}; write: {}", self.cost.name(), lines.join("; ")),
        }
    }

    /// What would be a legal value, in words.
    pub fn legal(&self) -> String {
        let range = match (self.min, self.max) {
            (Some(min), Some(max)) => format!(" from {min} to {max}"),
            (Some(min), None) => format!(" of at least {min}"),
            (None, Some(max)) => format!(" of at most {max}"),
            (None, None) => String::new(),
        };
        let unit = self
            .unit
            .as_ref()
            .map(|unit| format!(" ({unit})"))
            .unwrap_or_default();
        let form = match self.form {
            Form::Integer => format!("a whole number{range}{unit}"),
            Form::Decimal => format!("a number{range}{unit}"),
            Form::Integers => format!("whole numbers with spaces between{unit}"),
            Form::CpuList => "a list of CPUs, as 0-3,8".to_owned(),
            Form::Server => match &self.unit {
                Some(unit) => format!("what the server takes; a bare number counts {unit}"),
                None => "what the server takes".to_owned(),
            },
            Form::Word if self.choices.is_empty() => "a single word".to_owned(),
            Form::Word => return format!("one of {}", self.choices.join(", ")),
        };
        match self.choices.as_slice() {
            [] => form,
            choices => format!("{form}, or {}", choices.join(", ")),
        }
    }

    /// Why what stands behind the @ cannot be meant; `None` where it can.
    fn wrong_instance(&self, instance: Option<&str>) -> Option<String> {
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let expected = match (self.per, instance) {
            (None, None) | (Some(Per::Disk | Per::Path), None) => return None,
            (None, Some(_)) => return Some("there is one of it, so nothing stands behind an @".into()),
            (Some(Per::Disk | Per::Interface), Some(name)) => {
                let fine = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '*', '{']);
                if fine {
                    return None;
                }
                "the name of a device"
            }
            (Some(Per::PageSize), Some(size)) if number(size) => return None,
            (Some(Per::PageSizeOfNode), Some(both))
                if both
                    .split_once('/')
                    .is_some_and(|(size, node)| number(size) && number(node)) =>
            {
                return None;
            }
            (Some(Per::Interrupt), Some(name)) if number(name) => return None,
            (Some(Per::Table), Some(name)) if !name.is_empty() => return None,
            (Some(Per::Path), Some(path)) if path.starts_with('/') => return None,
            (Some(Per::Interface), None) => "an interface",
            (Some(Per::PageSize), _) => "a size of huge pages in kB, as 2048",
            (Some(Per::PageSizeOfNode), _) => "a size of huge pages in kB and a node, as 2048/0",
            (Some(Per::Interrupt), _) => "the number of an interrupt",
            (Some(Per::Table), _) => "a table",
            (Some(Per::Path), Some(_)) => "an absolute path",
        };
        Some(format!("expected {expected} behind an @"))
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
    /// What stands behind the @ of a setting.
    #[error("{setting}: {reason}")]
    Instance {
        /// As given.
        setting: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The disk that is meant cannot be found.
    #[error("{id} needs the disk of the {which} directory, and that could not be found: {reason}")]
    NoDisk {
        /// Which knob.
        id: String,
        /// "data" or "wal".
        which: String,
        /// Why not.
        reason: String,
    },
    /// This host has no such thing.
    #[error("{id}: {reason}")]
    NotHere {
        /// Which knob.
        id: String,
        /// What is missing where, and which kernels have it.
        reason: String,
    },
    /// pgdyno only advises it.
    #[error("{id} is not set by pgdyno: {how}")]
    AdvisedOnly {
        /// Which knob.
        id: String,
        /// What to do instead.
        how: String,
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

/// All knobs by id.
#[derive(Debug, Clone)]
pub struct Catalogue {
    knobs: BTreeMap<String, Knob>,
    sections: Vec<Section>,
}

/// Knobs that people read about together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Its heading.
    pub title: String,
    /// Ids of its knobs, in their order.
    pub ids: Vec<String>,
}

/// A word further away than this is no typing error.
const NEAR: usize = 4;

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
                    return Err(wrong(format!("{} stands in it twice", twice.id)));
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

    /// All knobs, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Knob> {
        self.knobs.values()
    }

    /// The knob with this id; an instance behind it is passed over.
    pub fn get(&self, id: &str) -> Result<&Knob, CatalogueError> {
        let (id, _) = split(id);
        self.knobs.get(id).ok_or_else(|| CatalogueError::Unknown {
            id: id.to_owned(),
            nearest: self.nearest(id),
        })
    }

    /// What was meant, where an id is not known: one that is written nearly so, or that ends so.
    fn nearest(&self, id: &str) -> Option<String> {
        let near = |distance: &usize| *distance <= NEAR && distance * 3 <= id.chars().count();
        let written = self
            .knobs
            .keys()
            .map(|known| (strsim::damerau_levenshtein(known, id), known))
            .min()
            .filter(|(distance, _)| near(distance))
            .map(|(_, known)| known);
        let ends = |known: &&String| known.rsplit_once('.').is_some_and(|(_, last)| last == id);
        written.or_else(|| self.knobs.keys().find(ends)).cloned()
    }

    /// Whether a setting is legal as for `check`, and one that pgdyno applies itself.
    pub(crate) fn check_settable(&self, setting: &Setting) -> Result<&Knob, CatalogueError> {
        let knob = self.check(setting)?;
        if knob.kind.is_advised_only() {
            return Err(CatalogueError::AdvisedOnly {
                id: knob.id.clone(),
                how: knob.how(&setting.value),
            });
        }
        Ok(knob)
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
        let value = setting.value.as_str();
        if let Some(reason) = knob.wrong_instance(split(&setting.knob).1) {
            return Err(CatalogueError::Instance {
                setting: setting.knob.clone(),
                reason,
            });
        }
        if knob.kind == Kind::HugepagePool && value == AUTO
            || knob.choices.iter().any(|choice| choice == value)
        {
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
            Form::CpuList => is_cpu_list(value),
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
                    let knob = self.get(&a.knob).ok();
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
    let number = |text: &str| {
        (!text.is_empty() && text.len() < 6)
            .then(|| text.parse::<u32>().ok())
            .flatten()
    };
    !text.is_empty()
        && text.split(',').all(|part| match part.split_once('-') {
            Some((first, last)) => matches!((number(first), number(last)), (Some(a), Some(b)) if a <= b),
            None => number(part).is_some(),
        })
}

/// Value of a huge-page pool: what the server needs.
pub(crate) const AUTO: &str = "auto";

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

    #[test]
    fn sysctl_names_become_paths() {
        assert_eq!(sysctl_path("vm.dirty_bytes"), "/proc/sys/vm/dirty_bytes");
        assert_eq!(
            sysctl_path("net.ipv4.conf.eth0/100.rp_filter"),
            "/proc/sys/net/ipv4/conf/eth0.100/rp_filter"
        );
    }
}
