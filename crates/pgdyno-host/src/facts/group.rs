//! The control groups that a process is in, version 1 or 2, and the limits that hold for it: the
//! strictest of its group and of all groups above it.

use super::sheet::{Sheet, bytes_of_size, object, scalar, text_of};
use crate::access::{HostAccess, HostError};
use crate::cgroup::name_in_v1;
use crate::mount::{self, Mount};
use serde_json::Value;
use std::collections::BTreeMap;

/// Version 1 writes "no limit" as the largest number of whole pages; no machine has this many
/// bytes.
const NO_LIMIT_BYTES: u64 = 1 << 62;
/// Groups above one another that are read.
const LEVELS_MAX: usize = 64;

/// Where a controller's files for a process are: its own group first, then those above.
struct Levels {
    version: u8,
    directories: Vec<String>,
    /// Whether the last one is the root of all groups, or only of what this container is shown.
    whole: bool,
}

/// Groups of a process, and where their files are.
struct Groups<'h> {
    host: &'h dyn HostAccess,
    /// Lines "4:memory:/path" of /proc/PID/cgroup, as (controllers, path).
    lines: Vec<(String, String)>,
    mounts: Vec<Mount>,
}

impl Groups<'_> {
    fn find(host: &dyn HostAccess, pid: u32) -> Result<Groups<'_>, String> {
        let text = host
            .read(&format!("/proc/{pid}/cgroup"))
            .map_err(super::sheet::why)?;
        let lines = text.lines().filter_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            Some((controllers.to_owned(), path.to_owned()))
        });
        let mounts = mount::mounts(host).map_err(super::sheet::why)?;
        Ok(Groups {
            host,
            lines: lines.collect(),
            mounts,
        })
    }

    /// Version 1 where the controller is mounted so, else version 2.
    fn levels(&self, controller: &str) -> Result<Levels, String> {
        let v1 = name_in_v1(controller);
        let has = |list: &str, name: &str| list.split(',').any(|other| other == name);
        let old = self
            .mounts
            .iter()
            .find(|mount| mount.kind == "cgroup" && has(&mount.super_options, v1));
        if let Some(mount) = old {
            let line = self.lines.iter().find(|(controllers, _)| has(controllers, v1));
            let (_, path) =
                line.ok_or_else(|| format!("the process is in no group of the controller {v1}"))?;
            return self.climb(1, mount, path);
        }
        let new = self.mounts.iter().find(|mount| mount.kind == "cgroup2");
        let mount = new.ok_or_else(|| "no control groups are mounted".to_owned())?;
        let offered = text_of(self.host, &format!("{}/cgroup.controllers", mount.point)).unwrap_or_default();
        if !offered.split_whitespace().any(|name| name == controller) {
            return Err(format!(
                "this kernel offers no cgroup controller \"{controller}\" here"
            ));
        }
        let line = self.lines.iter().find(|(controllers, _)| controllers.is_empty());
        let (_, path) = line.ok_or_else(|| "the process is in no group of version 2".to_owned())?;
        self.climb(2, mount, path)
    }

    fn climb(&self, version: u8, mount: &Mount, path: &str) -> Result<Levels, String> {
        if path.starts_with("/..") {
            return Err("the process is in a group outside of what this cgroup namespace shows".to_owned());
        }
        let inside = if mount.root == "/" {
            path
        } else if mount::is_below(path, &mount.root) {
            &path[mount.root.trim_end_matches('/').len()..]
        } else {
            return Err(format!(
                "its group {path} is not below {}, which is what is mounted here",
                mount.root
            ));
        };
        let mut directories = Vec::new();
        let mut rest = inside.trim_end_matches('/');
        while !rest.is_empty() && directories.len() < LEVELS_MAX {
            directories.push(format!("{}{rest}", mount.point));
            rest = &rest[..rest.rfind('/').unwrap_or(0)];
        }
        directories.push(mount.point.clone());
        // Only the root of all has release_agent (version 1), and only it has no cgroup.type
        // (version 2).
        let whole = match version {
            1 => self.host.read(&format!("{}/release_agent", mount.point)).is_ok(),
            _ => self.host.read(&format!("{}/cgroup.type", mount.point)).is_err(),
        };
        Ok(Levels {
            version,
            directories,
            whole,
        })
    }

    /// Each level's content of a file. A group without the file sets no such limit.
    fn each(&self, levels: &Levels, file: &str) -> Result<Vec<(String, String)>, String> {
        let mut found = Vec::new();
        for directory in &levels.directories {
            let path = format!("{directory}/{file}");
            match self.host.read_trimmed(&path) {
                Ok(text) => found.push((path, text)),
                Err(HostError::Missing { .. }) => {}
                Err(error) => return Err(super::sheet::why(error)),
            }
        }
        Ok(found)
    }
}

/// The directory of a process's own group for a controller, version 1 or 2.
pub fn group_directory(host: &dyn HostAccess, pid: u32, controller: &str) -> Result<String, String> {
    let levels = Groups::find(host, pid)?.levels(controller)?;
    match levels.directories.as_slice() {
        [own, _, ..] => Ok(own.clone()),
        _ => Err(format!(
            "the server is in the root group of {controller}, which has no limits of its own; a sandbox with limits, a \
             service of systemd or a container has a group"
        )),
    }
}

/// A limit, and the file that sets it.
type Limit = Result<(Value, String), String>;

/// Facts of the groups of a process.
pub(super) fn note(sheet: &mut Sheet<'_>, pid: u32) {
    let source = format!("/proc/{pid}/cgroup");
    let groups = match Groups::find(sheet.host, pid) {
        Ok(groups) => groups,
        Err(why) => return sheet.note::<Value>("cgroup.limits", &source, Err(why)),
    };
    let paths = groups
        .lines
        .iter()
        .filter(|(_, path)| path != "/")
        .map(|(controllers, path)| {
            let version = if controllers.is_empty() { "v2" } else { controllers };
            object([("controllers", version.into()), ("path", path.clone().into())])
        });
    let paths: Vec<Value> = paths.collect();
    sheet.note("cgroup.groups", &source, Ok(paths));
    let memory = groups.levels("memory");
    let version = memory.as_ref().map(|levels| levels.version).map_err(Clone::clone);
    sheet.note("cgroup.version", &source, version);
    let whole = memory.as_ref().map(|levels| levels.whole).map_err(Clone::clone);
    sheet.note("cgroup.sees_all_levels", "/proc/self/mountinfo", whole);
    let limits: [(&str, Limit); 8] = [
        ("cgroup.cpu_quota_cpus", cpu_quota(&groups)),
        ("cgroup.cpus", cpuset(&groups, "cpus")),
        ("cgroup.memory_nodes", cpuset(&groups, "mems")),
        (
            "cgroup.memory_limit_bytes",
            lowest(&groups, "memory", "memory.limit_in_bytes", "memory.max"),
        ),
        ("cgroup.memory_high_bytes", memory_high(&groups)),
        ("cgroup.swap_limit_bytes", swap(&groups)),
        (
            "cgroup.processes_max",
            lowest(&groups, "pids", "pids.max", "pids.max"),
        ),
        ("cgroup.huge_page_limits", huge_pages(&groups)),
    ];
    for (name, limit) in limits {
        note_limit(sheet, name, &source, limit);
    }
    note_limit(sheet, "cgroup.io_limits", &source, io(&groups));
}

fn note_limit(sheet: &mut Sheet<'_>, name: &str, source: &str, limit: Limit) {
    match limit {
        Ok((value, source)) => sheet.note(name, &source, Ok(value)),
        Err(why) => sheet.note::<Value>(name, source, Err(why)),
    }
}

/// The lowest number that a controller's file, of version 1 or 2, has at any level; "none" where no
/// level sets one.
fn lowest(groups: &Groups<'_>, controller: &str, v1: &str, v2: &str) -> Limit {
    let levels = groups.levels(controller)?;
    let file = if levels.version == 1 { v1 } else { v2 };
    let each = groups.each(&levels, file)?;
    let mut least: Option<(u64, String)> = None;
    for (path, text) in &each {
        if let Some(limit) = limit_of(path, text)?
            && least.as_ref().is_none_or(|(other, _)| limit < *other)
        {
            least = Some((limit, path.clone()));
        }
    }
    let own = || {
        format!(
            "{}/{file}, and above",
            levels.directories.first().map_or("", String::as_str)
        )
    };
    Ok(match least {
        Some((limit, path)) => (limit.into(), path),
        None => ("none".into(), own()),
    })
}

/// "max", or a number so large that it is none.
fn limit_of(path: &str, text: &str) -> Result<Option<u64>, String> {
    if text == "max" || text.starts_with('-') {
        return Ok(None);
    }
    let number: u64 = text.parse().map_err(|_| {
        format!(
            "{path}: expected a number or max, found \"{}\"",
            super::sheet::start_of(text)
        )
    })?;
    Ok((number < NO_LIMIT_BYTES).then_some(number))
}

fn memory_high(groups: &Groups<'_>) -> Limit {
    if groups.levels("memory")?.version == 1 {
        return Err("version 1 of control groups has no limit that slows down before it kills".to_owned());
    }
    lowest(groups, "memory", "", "memory.high")
}

/// Version 1 limits memory and swap together, version 2 swap alone.
fn swap(groups: &Groups<'_>) -> Limit {
    if groups.levels("memory")?.version == 2 {
        return lowest(groups, "memory", "", "memory.swap.max");
    }
    let together = lowest(groups, "memory", "memory.memsw.limit_in_bytes", "")?;
    Ok(match together {
        (Value::Number(bytes), path) => (object([("memory_and_swap_bytes", Value::Number(bytes))]), path),
        none => none,
    })
}

/// CPU time in CPUs: quota over period, the least of all levels.
fn cpu_quota(groups: &Groups<'_>) -> Limit {
    let levels = groups.levels("cpu")?;
    let mut least: Option<(f64, String)> = None;
    for directory in &levels.directories {
        let quota = if levels.version == 1 {
            let read = |file: &str| text_of(groups.host, &format!("{directory}/{file}")).ok();
            quota_of(
                read("cpu.cfs_quota_us").as_deref(),
                read("cpu.cfs_period_us").as_deref(),
            )
        } else {
            let text = text_of(groups.host, &format!("{directory}/cpu.max")).unwrap_or_default();
            let mut words = text.split_whitespace();
            quota_of(words.next(), words.next())
        };
        if let Some(quota) = quota
            && least.as_ref().is_none_or(|(other, _)| quota < *other)
        {
            least = Some((quota, directory.clone()));
        }
    }
    Ok(match least {
        Some((quota, directory)) => (quota.into(), directory),
        None => (
            "none".into(),
            levels.directories.first().cloned().unwrap_or_default(),
        ),
    })
}

/// -1 and "max" are no quota.
fn quota_of(quota: Option<&str>, period: Option<&str>) -> Option<f64> {
    let quota: u32 = quota?.parse().ok()?;
    let period: u32 = period?.parse().ok().filter(|&period| period > 0)?;
    Some(f64::from(quota) / f64::from(period))
}

/// What is in force already takes the levels above into account.
fn cpuset(groups: &Groups<'_>, what: &str) -> Limit {
    let levels = groups.levels("cpuset")?;
    let files = match levels.version {
        1 => [format!("cpuset.effective_{what}"), format!("cpuset.{what}")],
        _ => [format!("cpuset.{what}.effective"), format!("cpuset.{what}")],
    };
    for directory in &levels.directories {
        for file in &files {
            let path = format!("{directory}/{file}");
            if let Ok(text) = text_of(groups.host, &path) {
                return Ok((text.into(), path));
            }
        }
    }
    Err(format!("no group of the process has a file {}", files[0]))
}

/// Limits for each size of huge page.
fn huge_pages(groups: &Groups<'_>) -> Limit {
    let levels = groups.levels("hugetlb")?;
    let own = levels.directories.first().cloned().unwrap_or_default();
    let suffix = if levels.version == 1 {
        ".limit_in_bytes"
    } else {
        ".max"
    };
    let mut least: BTreeMap<u64, u64> = BTreeMap::new();
    for directory in &levels.directories {
        for file in groups.host.list(directory).map_err(super::sheet::why)? {
            let size = file
                .strip_prefix("hugetlb.")
                .and_then(|rest| rest.strip_suffix(suffix));
            let Some(size) = size.and_then(bytes_of_size) else {
                continue;
            };
            let path = format!("{directory}/{file}");
            if let Some(limit) = limit_of(&path, &text_of(groups.host, &path)?)? {
                let least = least.entry(size).or_insert(limit);
                *least = limit.min(*least);
            }
        }
    }
    let each = least
        .into_iter()
        .map(|(size, limit)| object([("page_bytes", size.into()), ("limit_bytes", limit.into())]));
    Ok((none_or(each.collect()), own))
}

fn none_or(list: Vec<Value>) -> Value {
    if list.is_empty() {
        "none".into()
    } else {
        list.into()
    }
}

/// What is limited, the file of version 1, the word of version 2.
const IO: [(&str, &str, &str); 4] = [
    ("read_bytes_per_s", "blkio.throttle.read_bps_device", "rbps"),
    ("write_bytes_per_s", "blkio.throttle.write_bps_device", "wbps"),
    ("read_requests_per_s", "blkio.throttle.read_iops_device", "riops"),
    (
        "write_requests_per_s",
        "blkio.throttle.write_iops_device",
        "wiops",
    ),
];

/// Limits of each device, the lowest of all levels.
fn io(groups: &Groups<'_>) -> Limit {
    let levels = groups.levels("io")?;
    let own = levels.directories.first().cloned().unwrap_or_default();
    let mut least: BTreeMap<(String, &str), u64> = BTreeMap::new();
    let mut take = |number: &str, what: &'static str, limit: &str| {
        if let Ok(limit) = limit.parse::<u64>() {
            let least = least.entry((number.to_owned(), what)).or_insert(limit);
            *least = limit.min(*least);
        }
    };
    if levels.version == 1 {
        for (what, file, _) in IO {
            for (_, text) in groups.each(&levels, file)? {
                for line in text.lines() {
                    let (number, limit) = line.split_once(' ').unwrap_or_default();
                    take(number, what, limit.trim());
                }
            }
        }
    } else {
        for (_, text) in groups.each(&levels, "io.max")? {
            for line in text.lines() {
                let (number, limits) = line.split_once(' ').unwrap_or_default();
                for (word, limit) in limits.split(' ').filter_map(|part| part.split_once('=')) {
                    if let Some((what, ..)) = IO.iter().find(|(.., name)| *name == word) {
                        take(number, what, limit);
                    }
                }
            }
        }
    }
    Ok((none_or(io_by_device(groups.host, least)), own))
}

fn io_by_device(host: &dyn HostAccess, limits: BTreeMap<(String, &str), u64>) -> Vec<Value> {
    let mut devices: BTreeMap<String, serde_json::Map<String, Value>> = BTreeMap::new();
    for ((number, what), limit) in limits {
        let device = devices.entry(number.clone()).or_insert_with(|| {
            let link = host.read_link(&format!("/sys/dev/block/{number}"));
            let name = link
                .ok()
                .and_then(|link| link.rsplit('/').next().map(str::to_owned));
            serde_json::Map::from_iter([("device".to_owned(), name.unwrap_or(number).into())])
        });
        device.insert(what.to_owned(), scalar(&limit.to_string()));
    }
    devices.into_values().map(Value::Object).collect()
}

#[cfg(test)]
mod tests;
