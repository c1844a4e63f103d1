//! What follows from facts: what the server may use of its machine, and what its files are kept on.

use super::time::utc_s;
use super::{Index, Outcome, number_of, releases};
use pgdyno_host::numbers_of_list;
use serde_json::{Value, json};

/// How it follows.
type Rule = fn(&Index) -> Outcome;

/// All of them, by name. docs/reference/expressions.md describes each.
pub(super) const ALL: [(&str, Rule); 14] = [
    ("available.memory_bytes", memory),
    ("available.cpus", cpus),
    ("storage.data_medium", |index| medium(index, "data")),
    ("storage.wal_medium", |index| medium(index, "wal")),
    ("storage.wal_apart", wal_apart),
    ("storage.wal_bytes", wal_bytes),
    ("server.major", major),
    ("server.release", releases::of),
    ("server.release.newest", releases::newest),
    ("server.release.behind", releases::behind),
    ("statistics.age_s", statistics_age),
    ("transactions.committed_per_s", committed_per_s),
    ("xid.holder", holder),
    ("xid.dead_rows_held", dead_rows_held),
];

/// A limit of the control group, or `None` where there is none: where no process was looked for,
/// none is known to hold.
fn limit<'i>(index: &'i Index, name: &str) -> Result<Option<&'i Value>, String> {
    let looked_for = index.first_below("cgroup").is_some() || index.facts.contains_key("process.pid");
    if !looked_for {
        return Ok(None);
    }
    index.get(name).map(Some)
}

/// A number above 0; `None` for what the kernel writes where there is no limit.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| *number > 0.0)
}

fn least(numbers: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    numbers.into_iter().flatten().min_by(f64::total_cmp)
}

fn memory(index: &Index) -> Outcome {
    let total = number(index.get("memory.total_bytes")?);
    let limit = limit(index, "cgroup.memory_limit_bytes")?.and_then(number);
    least([total, limit])
        .map(|bytes| number_of(bytes.floor()))
        .ok_or_else(|| "memory.total_bytes is not a number".to_owned())
}

fn cpus(index: &Index) -> Outcome {
    let online = number(index.get("cpu.online_count")?);
    let quota = limit(index, "cgroup.cpu_quota_cpus")?.and_then(number);
    let mut counts = vec![online, quota];
    // Either may be missing alone: control groups without CPU sets, an old kernel.
    for (of, list) in [("cgroup", "cpus"), ("process", "cpus_allowed")] {
        counts.push(index.get(&format!("{of}.{list}")).ok().and_then(count_of_list));
    }
    least(counts)
        .map(number_of)
        .ok_or_else(|| "cpu.online_count is not a number".to_owned())
}

/// How many numbers a list such as 0-3,8 names.
fn count_of_list(value: &Value) -> Option<f64> {
    let count = u32::try_from(numbers_of_list(value.as_str()?)?.len()).ok()?;
    (count > 0).then(|| f64::from(count))
}

fn major(index: &Index) -> Outcome {
    let number = index
        .get("setting.server_version_num")
        .or_else(|_| index.get("server.version_num"))?;
    number
        .as_u64()
        .map(|number| Value::from(number / 10_000))
        .ok_or_else(|| "the server's version is not a number".to_owned())
}

/// An instant of a fact in UTC, in seconds since 1970.
fn instant(index: &Index, name: &str) -> Result<f64, String> {
    let value = index.get(name)?;
    let seconds = value.as_str().and_then(utc_s);
    seconds.ok_or_else(|| format!("{name}: expected an instant in UTC, found {value}"))
}

fn uptime_s(index: &Index) -> Result<f64, String> {
    let uptime = index.get("server.uptime_s")?.as_f64();
    uptime.ok_or_else(|| "server.uptime_s is not a number".to_owned())
}

/// Counters that are reset when the server recovers from a crash, of which those of a database say
/// nothing of it.
const SHARED: [&str; 2] = ["wal.since", "checkpoints.since"];

/// How long the counters have surely counted: since the server's start or their reset, by hand or
/// after a crash, whichever came last. Where they were never reset there is no instant of it.
fn statistics_age(index: &Index) -> Outcome {
    let uptime_s = uptime_s(index)?;
    let resets = ["statistics.since"].into_iter().chain(SHARED);
    let resets: Vec<&str> = resets.filter(|name| index.get(name).is_ok()).collect();
    if resets.is_empty() {
        return Ok(number_of(uptime_s));
    }
    let started_s = instant(index, "server.started")?;
    let mut last_s = started_s;
    for name in resets {
        last_s = last_s.max(instant(index, name)?);
    }
    Ok(number_of((uptime_s - (last_s - started_s)).max(0.0)))
}

/// Commits of all databases per second, at least: they outlive a restart in order, and when each
/// database's began is not known. None began before the first of these, unless all were reset by
/// hand.
fn committed_per_s(index: &Index) -> Outcome {
    let committed = index.get("transactions.committed")?.as_f64();
    let committed = committed.ok_or("transactions.committed is not a number")?;
    let resets = ["statistics.since"].into_iter().chain(SHARED);
    let began_s = resets.flat_map(|name| instant(index, name)).reduce(f64::min);
    let began_s = began_s.ok_or("when the counters began is not known")?;
    let counted_s = instant(index, "server.started")? + uptime_s(index)? - began_s;
    match counted_s >= 1.0 {
        true => Ok(number_of(committed / counted_s)),
        false => Err("the counters have only just begun".to_owned()),
    }
}

/// A transaction that is open for less keeps nothing from being removed that matters.
const HOLDER_S_MIN: f64 = 60.0;
const HOLDER_XID_AGE_MIN: f64 = 10_000.0;

/// What has held rows of the connected database back for longest: while it does, no vacuum removes
/// them.
fn holder(index: &Index) -> Outcome {
    let holders = index.get("xid.held_back_by")?.as_array();
    let number = |holder: &Value, field: &str| holder.get(field).and_then(Value::as_f64).unwrap_or(0.0);
    // A slot that nobody reads holds until somebody does, however long it has been so, which is not
    // known before 17.
    let is_unread = |holder: &Value| {
        let is_slot = holder.get("kind").and_then(Value::as_str) == Some("replication slot");
        is_slot && holder.get("pid").is_none_or(Value::is_null)
    };
    let holds = |holder: &&Value| {
        let here = holder.get("here").and_then(Value::as_bool).unwrap_or(true);
        let is_long =
            number(holder, "held_s") >= HOLDER_S_MIN || number(holder, "xid_age") >= HOLDER_XID_AGE_MIN;
        here && (is_long || is_unread(holder))
    };
    let oldest = holders
        .into_iter()
        .flatten()
        .filter(holds)
        .max_by(|a, b| number(a, "xid_age").total_cmp(&number(b, "xid_age")));
    let none = || "nothing has held rows back for a minute or for 10000 transactions".to_owned();
    oldest.cloned().ok_or_else(none)
}

/// So many rows and such a part of a table are dead only where vacuum does not come or may not
/// remove them.
const DEAD_ROWS_MIN: f64 = 100_000.0;
const DEAD_RATIO_MIN: f64 = 0.3;

/// Dead rows of the tables that have very many, while something holds rows back; 0 where nothing
/// does.
fn dead_rows_held(index: &Index) -> Outcome {
    index.get("xid.held_back_by")?;
    if holder(index).is_err() {
        return Ok(json!(0));
    }
    let tables = index.get("tables.dead_rows")?.as_array();
    let number = |table: &Value, field: &str| table.get(field).and_then(Value::as_f64).unwrap_or(0.0);
    let many = tables.into_iter().flatten().filter(|table| {
        number(table, "dead") >= DEAD_ROWS_MIN && number(table, "dead_ratio") >= DEAD_RATIO_MIN
    });
    Ok(number_of(many.map(|table| number(table, "dead")).sum()))
}

fn wal_apart(index: &Index) -> Outcome {
    let same = index.get("storage.wal_on_device_of_data.same_disk")?;
    same.as_bool()
        .map(|same| Value::from(!same))
        .ok_or_else(|| "storage.wal_on_device_of_data.same_disk is neither true nor false".to_owned())
}

/// The size of the uppermost device, of several the smallest.
fn wal_bytes(index: &Index) -> Outcome {
    let devices = index.get("storage.wal.devices")?;
    let tops = devices.as_array().into_iter().flatten().filter(|device| {
        let depth = device.get("depth").and_then(Value::as_u64);
        depth == Some(0)
    });
    least(tops.map(|device| device.get("bytes").and_then(Value::as_f64)))
        .map(number_of)
        .ok_or_else(|| "the device of the WAL reports no size".to_owned())
}

/// A fact of this value could not be found out.
pub(crate) const UNKNOWN: &str = "unknown";

/// What files can be kept on, from quick to slow: of several disks the slowest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Medium {
    Memory,
    Nvme,
    Ssd,
    Unknown,
    Network,
    Hdd,
}

impl Medium {
    fn word(self) -> &'static str {
        match self {
            Medium::Memory => "memory",
            Medium::Nvme => "nvme",
            Medium::Ssd => "ssd",
            Medium::Unknown => UNKNOWN,
            Medium::Network => "network",
            Medium::Hdd => "hdd",
        }
    }
}

fn medium(index: &Index, role: &str) -> Outcome {
    let file_system = index.get(&format!("storage.{role}.file_system"))?;
    if let Some(medium) = of_file_system(file_system.as_str().unwrap_or_default()) {
        return Ok(medium.word().into());
    }
    let devices = index.get(&format!("storage.{role}.devices"))?;
    let disks = devices.as_array().into_iter().flatten().filter(|device| {
        let below = device.get("below").and_then(Value::as_array);
        below.is_none_or(Vec::is_empty)
    });
    let slowest = disks.map(of_disk).max().unwrap_or(Medium::Unknown);
    Ok(slowest.word().into())
}

/// Of file systems that have no block device here.
fn of_file_system(kind: &str) -> Option<Medium> {
    /// By the beginning of their names.
    const NETWORK: [&str; 9] = [
        "nfs", "cifs", "smb3", "ceph", "9p", "afs", "lustre", "gpfs", "beegfs",
    ];
    match kind {
        "tmpfs" | "ramfs" | "devtmpfs" => Some(Medium::Memory),
        "zfs" | "virtiofs" => Some(Medium::Unknown),
        kind if kind.starts_with("fuse") => Some(Medium::Unknown),
        kind if NETWORK.iter().any(|name| kind.starts_with(name)) => Some(Medium::Network),
        _ => None,
    }
}

/// Volumes over a network that a cloud's machine sees as an NVMe disk, by a part of the model's
/// name.
const REMOTE_MODELS: [&str; 3] = ["Elastic Block Store", "nvme_card-pd", "MSFT NVMe Accelerator"];

fn of_disk(disk: &Value) -> Medium {
    let text = |field: &str| disk.get(field).and_then(Value::as_str).unwrap_or_default();
    let rotational = disk.get("rotational").and_then(Value::as_bool);
    if disk.get("below_unknown").is_some() {
        return Medium::Unknown;
    }
    match text("kind") {
        "nvme" if REMOTE_MODELS.iter().any(|model| text("model").contains(model)) => Medium::Network,
        "nvme" => match text("transport") {
            "" | "pcie" => Medium::Nvme,
            _ => Medium::Network,
        },
        "pmem" | "scm" => Medium::Ssd,
        "zram" | "ram" => Medium::Memory,
        "iscsi" | "fibre channel" | "nbd" | "ceph" => Medium::Network,
        // What a hypervisor gives is called rotational unless it says otherwise, whatever is behind
        // it.
        "virtio" | "virtio scsi" | "xen" | "hyper-v" => match rotational {
            Some(false) => Medium::Ssd,
            _ => Medium::Unknown,
        },
        "sata" | "sas" | "scsi" | "usb" | "mmc" | "dasd" => match rotational {
            Some(true) => Medium::Hdd,
            Some(false) => Medium::Ssd,
            None => Medium::Unknown,
        },
        _ => Medium::Unknown,
    }
}
