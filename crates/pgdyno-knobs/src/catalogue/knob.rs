//! One knob as data: where it sits, how it is read and written, what its values look like, what
//! applying costs and risks.

use serde::{Deserialize, Serialize};

/// The part of server or host that a knob belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// Parameters of the server.
    Postgres,
    /// How a table is stored and vacuumed.
    Table,
    /// The kernel, where no other layer fits.
    Kernel,
    /// The kernel's memory management.
    Memory,
    /// Block devices and the file systems on them.
    Block,
    /// Processors: frequency, idle states, which of them the server runs on.
    Cpu,
    /// Network interfaces and the kernel's network stack.
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

    /// Name in files and reports: "postgres".
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
    /// Something that the kernel does when asked to, and that leaves no state to restore: known,
    /// never set.
    Action,
    /// A word of the boot line: advised with the lines to write, and checked afterwards; never set.
    BootParameter,
    /// An option of a mount: advised and checked likewise.
    MountOption,
    /// A flag of a device-mapper target: advised and checked likewise.
    VolumeFlag,
}

impl Kind {
    /// Whether it is a setting of the host, and not of one server.
    pub fn is_of_host(self) -> bool {
        !matches!(
            self,
            Kind::Guc | Kind::TableOption | Kind::ColumnCompression | Kind::Affinity | Kind::WalDirectory
        )
    }

    /// Whether pgdyno only advises it: it needs a reboot, a remount, or leaves nothing to restore.
    pub fn is_advised_only(self) -> bool {
        matches!(
            self,
            Kind::Action | Kind::BootParameter | Kind::MountOption | Kind::VolumeFlag
        )
    }
}

/// The thing that a knob is a knob of, where there may be several: named behind an @, as in
/// `block.read_ahead_kb@dm-0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Per {
    /// A block device by its name in /sys/block, or `data` or `wal` for the one that holds them, or
    /// `data-members` or `wal-members` for those that it is made of. Without one: `data`.
    Disk,
    /// A network interface by its name: `eth0`.
    Interface,
    /// A size of huge pages in kB (`2048`).
    PageSize,
    /// A size of huge pages and a NUMA node (`2048/1`).
    PageSizeOfNode,
    /// A table, `schema.table` or as search_path finds it.
    Table,
    /// An interrupt by its number.
    Interrupt,
    /// The absolute path of a file.
    Path,
}

/// The syntax of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// A whole number.
    #[default]
    Integer,
    /// Whole numbers, separated by spaces.
    Integers,
    /// A number, with decimals or without.
    Decimal,
    /// A word, one of `choices` where it has any.
    Word,
    /// Numbers and ranges of them (`0-3,8`).
    CpuList,
    /// Whatever the server accepts for the parameter.
    Server,
}

/// What a knob gives the server, where it can be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gives {
    /// CPUs: as many as its list names, or its number of them.
    Cpus,
    /// Sessions at a time: its value.
    Sessions,
    /// The size of the huge pages that its shared memory takes, in its own unit; 0 for the kernel's
    /// default.
    HugePageSize,
}

/// What has to happen before a new value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cost {
    /// Counts as soon as it is written.
    Live,
    /// Counts after the server read its files again.
    Reload,
    /// Counts after a restart of the server.
    Restart,
    /// Counts after the file system is mounted again, or the volume is opened again.
    Remount,
    /// Counts after the machine was booted again.
    Reboot,
}

impl Cost {
    /// Name in files and reports: "restart".
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

/// What is left of an old value when a new one counts: whether loads with the one and with the
/// other may follow one another at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CarryOver {
    /// Nothing: the next transaction goes by the new value.
    None,
    /// Plans that prepared statements have, which a new value does not change; else nothing.
    Plans,
    /// Queues, frequencies, where processes run: gone in a few seconds.
    Seconds,
    /// What is in caches, in tables or on disk: gone in minutes, or never.
    Caches,
    /// What was begun before and keeps the old value: sessions, their connections, the server's
    /// rings of io_uring.
    Sessions,
}

/// What a knob can cost the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// No data and no outage: a bad value costs only speed.
    None,
    /// A bad value can bring the server or the host down.
    Stability,
    /// Committed data can be lost in a crash.
    Durability,
}

impl Risk {
    /// Name in files and reports: "durability".
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
    /// Name in commands, files and reports: "vm.swappiness".
    pub id: String,
    /// The part of server or host that it belongs to.
    pub layer: Layer,
    /// How it is read and written.
    pub kind: Kind,
    /// Paths of its file, of which the first that this kernel has is meant. Placeholders: `{disk}`,
    /// `{interface}`, `{size}`, `{node}`, `{interrupt}` by the instance; `{default_size}` is the
    /// kernel's own size of huge pages in kB; `{cgroup:CONTROLLER}` is the directory of the
    /// server's own control group, `{disk_number}` "major:minor" of the disk of the data; a `*`
    /// means all that are there, which are set alike. Behind a `#` is the part of the file that is
    /// the value: the line that begins with a word, and where it has several values, the key of
    /// one.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// The thing that it is a knob of, where there may be several.
    pub per: Option<Per>,
    /// The knob that the kernel zeroes when this one is written.
    pub counterpart: Option<String>,
    /// Files that the kernel sets again when this one is written.
    #[serde(default)]
    pub resets: Vec<String>,
    /// Files of other knobs whose writing sets the same ones again.
    #[serde(default)]
    pub alike: Vec<String>,
    /// Syntax of its value.
    #[serde(default)]
    pub form: Form,
    /// Unit of a bare number ("bytes", "kB", "8kB", "pages", "ms", "us", "percent", "cpus" and the
    /// like), where it has one.
    pub unit: Option<String>,
    /// Least legal number, in `unit`.
    pub min: Option<i64>,
    /// Greatest legal number, in `unit`.
    pub max: Option<i64>,
    /// The greatest part of the host's memory that it may take, in percent: beyond that is not
    /// tuning, but an outage.
    pub memory_percent_max: Option<u32>,
    /// The knob that it has to stay below: the kernel takes another value, and a half of it,
    /// without a word.
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
    /// Name of the parameter that replaced it in later versions.
    pub renamed: Option<String>,
    /// What it gives the server, where that can be counted: what `pgdyno capacity` goes by.
    pub gives: Option<Gives>,
    /// What has to happen before a new value counts.
    pub cost: Cost,
    /// The last version of PostgreSQL in which it takes a restart all the same.
    pub restart_until: Option<u32>,
    /// What is left of an old value; `None` where that is not known, or a change takes more than a
    /// reload.
    pub carry_over: Option<CarryOver>,
    /// What a bad value can cost: nothing, an outage, or committed data.
    pub risk: Risk,
    /// Values that cost nothing, of a knob that otherwise is a risk.
    #[serde(default)]
    pub safe: Vec<String>,
    /// Knobs that make no sense beside it.
    #[serde(default)]
    pub excludes: Vec<String>,
    /// Of what is only advised: the word to look for on the boot line, among the options of the
    /// mount or the flags of the volume. Without `{value}` in it, it is there (`on`) or not
    /// (`off`); with it, `default` means that it is not there.
    pub word: Option<String>,
    /// Value that a mount has where the option was not given.
    pub unset: Option<String>,
    /// Of what is only advised: the lines to write. `{value}`, `{mount}` (where the file system is
    /// mounted) and `{volume}` (the name of the device-mapper volume) are to be filled in.
    #[serde(default)]
    pub lines: Vec<String>,
    /// The lines that take it away again: for `off`, or `default`.
    #[serde(default)]
    pub undo_lines: Vec<String>,
    /// What it does, in a sentence.
    pub summary: String,
    /// Documentation that the summary goes by: a manual with its section, or the tag of a source.
    pub source: String,
}

impl Knob {
    /// Whether PostgreSQL of this major version has it.
    pub fn is_in(&self, major: u32) -> bool {
        self.since.is_none_or(|since| major >= since) && self.until.is_none_or(|until| major <= until)
    }

    /// What this very value can cost the user.
    pub fn risk_of(&self, value: &str) -> Risk {
        let safe = self
            .safe
            .iter()
            .any(|safe| safe.eq_ignore_ascii_case(value.trim()));
        if safe { Risk::None } else { self.risk }
    }

    /// The memory node whose CPUs a value means: `node:1`, for a kernel file that lists the
    /// server's CPUs.
    pub fn node_of(&self, value: &str) -> Option<u32> {
        let lists_cpus =
            self.kind == Kind::Sysfs && self.form == Form::CpuList && self.gives == Some(Gives::Cpus);
        let digits = value.strip_prefix("node:").filter(|_| lists_cpus)?;
        let is_number = (1..=4).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().ok()).flatten()
    }

    /// What has to happen before a new value counts on a server of this major version.
    pub fn cost_in(&self, major: Option<u32>) -> Cost {
        let is_older = self
            .restart_until
            .zip(major)
            .is_some_and(|(until, major)| major <= until);
        if is_older { Cost::Restart } else { self.cost }
    }

    /// How many CPUs this value gives the server; `None` of a knob that gives none, and of a value
    /// that sets no limit.
    pub fn cpus_of(&self, value: &str) -> Option<f64> {
        let Some(Gives::Cpus) = self.gives else {
            return None;
        };
        match self.form {
            Form::CpuList => listed_cpus(value),
            _ => value
                .trim()
                .parse()
                .ok()
                .filter(|cpus: &f64| cpus.is_finite() && *cpus > 0.0),
        }
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
                "it is something that the kernel does once, and leaves no state to restore".to_owned()
            }
            (_, true) => format!("expected a {}", self.cost.name()),
            (_, false) => format!("expected a {}; write: {}", self.cost.name(), lines.join("; ")),
        }
    }

    /// Description of a legal value.
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
            Form::CpuList if self.node_of("node:0").is_some() => {
                "a list of CPUs, as 0-3,8, or those of a memory node, as node:0".to_owned()
            }
            Form::CpuList => "a list of numbers, as 0-3,8".to_owned(),
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

    /// Why what is behind the @ cannot be meant; `None` where it can.
    pub(super) fn wrong_instance(&self, instance: Option<&str>) -> Option<String> {
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let expected = match (self.per, instance) {
            (None, None) | (Some(Per::Disk | Per::Path), None) => return None,
            (None, Some(_)) => return Some("there is only one of it: write the name without @".into()),
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

/// The number of CPUs in a list as "0-3,8"; `None` of an empty one and of what is not a list.
fn listed_cpus(list: &str) -> Option<f64> {
    let count = u32::try_from(pgdyno_host::numbers_of_list(list)?.len()).ok()?;
    (count > 0).then(|| f64::from(count))
}

/// Below /proc/sys, the dots of a name are slashes (an interface's own dot is written as a slash:
/// sysctl(8)).
pub fn sysctl_path(id: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysctl_names_become_paths() {
        assert_eq!(sysctl_path("vm.dirty_bytes"), "/proc/sys/vm/dirty_bytes");
        assert_eq!(
            sysctl_path("net.ipv4.conf.eth0/100.rp_filter"),
            "/proc/sys/net/ipv4/conf/eth0.100/rp_filter"
        );
    }
}
