//! Broken machines, made of a whole one: readers must give reasons for them, not numbers or panics.

use crate::{Archive, Entry};

/// Of files larger than this, garbage is made of the beginning.
const GARBAGE_BYTES_MAX: usize = 256;

/// What is wrong with each file that is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is in it.
    Empty,
    /// Bytes that are no text.
    Garbage,
    /// Every number has 26 digits.
    Huge,
    /// Every number has a minus before it.
    Negative,
    /// It is cut in the middle.
    Truncated,
    /// Its last line has no end.
    Unended,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Fault; 6] = [
        Fault::Empty,
        Fault::Garbage,
        Fault::Huge,
        Fault::Negative,
        Fault::Truncated,
        Fault::Unended,
    ];

    /// The name of the machine that has it.
    pub fn machine(self) -> String {
        format!("broken-{self:?}").to_lowercase()
    }

    /// A whole machine's parsed files with this fault, and the links that show which disk and
    /// interface are meant.
    pub fn of(self, whole: &Archive) -> Archive {
        whole.map(|path, entry| match entry {
            Entry::File(bytes) => is_parsed(path).then(|| Entry::File(self.in_file(bytes))),
            Entry::Link(_) => is_link_to_device(path).then(|| entry.clone()),
        })
    }

    fn in_file(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Empty => Vec::new(),
            Self::Garbage => {
                let cut = &bytes[..bytes.len().min(GARBAGE_BYTES_MAX)];
                let mut garbage: Vec<u8> = cut.iter().map(|byte| byte | 0x80).collect();
                garbage.extend(b"\0\xff\xfe\n\n\r\t::=,[]/-");
                garbage
            }
            Self::Huge => numbers(bytes, |_| [b'9'; 26].to_vec()),
            Self::Negative => numbers(bytes, |digits| [b"-", digits].concat()),
            Self::Truncated => bytes[..bytes.len() / 2].to_vec(),
            Self::Unended => bytes[..bytes.len().saturating_sub(1)].to_vec(),
        }
    }
}

/// The bytes with each run of digits replaced.
fn numbers(bytes: &[u8], replaced: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let runs = bytes.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit());
    let each = runs.map(|run| {
        if run[0].is_ascii_digit() {
            replaced(run)
        } else {
            run.to_vec()
        }
    });
    each.collect::<Vec<_>>().concat()
}

/// Files that are parsed, one of each kind: of what repeats for every CPU, disk or group, one will
/// do.
fn is_parsed(path: &str) -> bool {
    let below = |directory: &str| {
        path.strip_prefix(directory)
            .and_then(|rest| rest.strip_prefix('/'))
    };
    let directly = |directory| below(directory).filter(|name| !name.contains('/'));
    let name = path.rsplit('/').next().unwrap_or(path);
    let of_memory = [
        "sys/devices/system/node",
        "sys/kernel/mm/hugepages",
        "sys/kernel/mm/transparent_hugepage",
    ];
    let of_processors = [
        "sys/devices/system/clocksource",
        "sys/devices/system/cpu/cpu0",
        "sys/devices/system/cpu/smt",
    ];
    let whole = ["etc", "proc/net", "proc/pressure", "proc/self", "proc/4242"];
    whole
        .into_iter()
        .chain(of_processors)
        .any(|directory| below(directory).is_some())
        || directly("proc").is_some()
        || directly("sys/devices/system/cpu").is_some()
        || below("proc/sys/vm").is_some() && name.starts_with(['d', 'n', 'o'])
        || below("proc/sys/kernel").is_some() && name.contains("osrelease")
        || path == "proc/sys/kernel/random/boot_id"
        || of_memory.iter().any(|directory| below(directory).is_some()) && !is_of_a_further_size(path)
        || below("sys/devices")
            .is_some_and(|rest| rest.contains("/block/vda/") || rest.contains("/net/eth0/"))
        || below("sys/fs/cgroup/system.slice").is_some()
            && (name.ends_with(".max")
                || name.starts_with("cpu.")
                || name.starts_with("cpuset.")
                || name == "io.stat")
}

/// Of huge pages small sizes and one large one are enough: the one that ends in 8.
fn is_of_a_further_size(path: &str) -> bool {
    path.split('/').any(|part| {
        let size = part
            .strip_prefix("hugepages-")
            .and_then(|rest| rest.strip_suffix("kB"));
        size.is_some_and(|size| size.len() > 2 && !size.ends_with(['8', '9']))
    })
}

fn is_link_to_device(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let places = ["sys/block/", "sys/class/net/", "sys/class/block/", "sys/dev/"];
    places.iter().any(|place| path.starts_with(place))
        && (matches!(name, "vda" | "vda1" | "eth0") || name.starts_with("254:"))
}
