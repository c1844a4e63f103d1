//! The control group of a process, version 1 or 2: what it uses, and the limits that bind it.
//!
//! A limit of a group above holds too; the least of all is the one that binds, and how near it is
//! and how often it was hit is reported of the group that has it.

use super::files::{Buffer, Kept};
use super::step::{Before, Last, WENT_BACK, gap_of};
use super::{Key, Reading, growth};
use crate::access::{HostAccess, HostError};
use std::time::{Duration, Instant};

/// How often limits, and whether the process has gone to another group, are checked again.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// Version 1 writes "no limit" as the largest number of whole pages; no machine has this much
/// memory.
const UNLIMITED_BYTES: u64 = 1 << 60;
/// A path of groups deeper than this is not followed.
const DEEPEST: usize = 32;

const NO_GROUP: &str = "the process is in no group of this controller that can be seen here";
const ROOT_GROUP: &str = "the process is in the root group, which is the whole machine";

/// Where a controller's files are.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    v2: bool,
    /// Whether the mount shows the hierarchy from its root.
    whole: bool,
    /// The group itself, then those above it up to the mount point.
    levels: Vec<String>,
}

/// A counter file of a control group, kept open.
#[derive(Debug)]
struct Source {
    file: Kept,
    v2: bool,
}

#[derive(Debug, Default)]
struct Files {
    /// v1: cpuacct.usage (ns); v2: cpu.stat.
    usage: Option<Source>,
    /// cpu.stat of the group whose quota binds.
    throttled: Option<Source>,
    memory: Option<Source>,
    /// Usage and hits of the group whose memory limit binds.
    limited_memory: Option<Source>,
    hits: Option<Source>,
    io: Option<Source>,
    cpu_limit: Option<f64>,
    memory_limit_bytes: Option<u64>,
    /// Why something has no file.
    gaps: Vec<(String, String)>,
}

/// Counters in the kernel's own units.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    usage_us: Option<f64>,
    periods: Option<u64>,
    throttled_periods: Option<u64>,
    throttled_us: Option<f64>,
    hits: Option<u64>,
    read_bytes: Option<u64>,
    write_bytes: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Group {
    process: u32,
    looked: Option<Instant>,
    places: Places,
    files: Files,
    last: Last<Counts>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Places {
    cpu: Option<Place>,
    cpuacct: Option<Place>,
    memory: Option<Place>,
    io: Option<Place>,
}

impl Group {
    pub(super) fn new(process: u32) -> Group {
        Group {
            process,
            looked: None,
            places: Places::default(),
            files: Files::default(),
            last: Last::default(),
        }
    }

    pub(super) fn read(&mut self, host: &dyn HostAccess, buffer: &mut Buffer, at: Instant) -> Reading {
        if self
            .looked
            .is_none_or(|looked| at.saturating_duration_since(looked) >= LOOK_AGAIN)
        {
            match Places::find(host, self.process) {
                Ok(places) => {
                    // Another group's counters are no continuation of the last one's.
                    if places != self.places {
                        self.last = Last::default();
                    }
                    self.files = Files::open(host, &places);
                    self.places = places;
                    self.looked = Some(at);
                }
                Err(error) => return self.last.lost(at, &error),
            }
        }
        let mut gauges = Reading::new(at, None);
        let counts = self.files.read(host, buffer, &mut gauges);
        let mut reading = self.last.step(at, counts, fill);
        reading.values.append(&mut gauges.values);
        reading.gaps.append(&mut gauges.gaps);
        reading
    }
}

impl Places {
    fn find(host: &dyn HostAccess, process: u32) -> Result<Places, HostError> {
        let groups = host.read(&format!("/proc/{process}/cgroup"))?;
        let mounts = host.read("/proc/self/mountinfo")?;
        let place = |controller: &str| place(&groups, &mounts, controller);
        Ok(Places {
            cpu: place("cpu"),
            cpuacct: place("cpuacct"),
            memory: place("memory"),
            io: place("blkio"),
        })
    }
}

/// A line of /proc/PID/cgroup is "number:controllers:path", with no controllers for version 2
/// (cgroups(7)). The path counts from the root of the hierarchy; a mount may show only a part of
/// it, which its fourth field names.
fn place(groups: &str, mounts: &str, controller: &str) -> Option<Place> {
    let mut v2_path = None;
    let mut v1_path = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        if controllers.is_empty() {
            v2_path = Some(path);
        } else if controllers.split(',').any(|one| one == controller) {
            v1_path = Some(path);
        }
    }
    let (v2, path) = match (v1_path, v2_path) {
        (Some(path), _) => (false, path),
        (None, Some(path)) => (true, path),
        (None, None) => return None,
    };
    let (root, mount) = mounts
        .lines()
        .find_map(|line| mount_of(line, (!v2).then_some(controller)))?;
    // A group outside of what the mount shows cannot be read.
    let below = path.strip_prefix(root.trim_end_matches('/'))?;
    if !(below.is_empty() || below.starts_with('/')) || below.split('/').any(|part| part == "..") {
        return None;
    }
    let mut levels = Vec::new();
    let mut below = below.trim_matches('/');
    while !below.is_empty() && levels.len() < DEEPEST {
        levels.push(format!("{mount}/{below}"));
        below = below.rsplit_once('/').map_or("", |(above, _)| above);
    }
    levels.push(mount.to_owned());
    let whole = root == "/";
    Some(Place { v2, whole, levels })
}

/// (root, mount point) of a line of mountinfo that is the hierarchy of this controller, or of
/// version 2 (`None`).
fn mount_of<'a>(line: &'a str, controller: Option<&str>) -> Option<(&'a str, &'a str)> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(3);
    let (root, mount) = (left.next()?, left.next()?);
    let mut right = right.split(' ');
    let (kind, _, options) = (right.next()?, right.next()?, right.next()?);
    let fits = match controller {
        None => kind == "cgroup2",
        Some(controller) => kind == "cgroup" && options.split(',').any(|option| option == controller),
    };
    fits.then_some((root, mount))
}

impl Place {
    /// The group of all processes. Within a namespace of control groups another one may look like
    /// it; only the true one of version 2 has no type.
    fn is_root(&self, host: &dyn HostAccess) -> bool {
        let [only] = self.levels.as_slice() else {
            return false;
        };
        self.whole && !(self.v2 && host.read(&format!("{only}/cgroup.type")).is_ok())
    }
}

impl Files {
    fn open(host: &dyn HostAccess, places: &Places) -> Files {
        let mut files = Files::default();
        let source = |place: &Place, level: &str, v2: &str, v1: &str| {
            Some(Source {
                file: Kept::new(format!("{level}/{}", if place.v2 { v2 } else { v1 })),
                v2: place.v2,
            })
        };
        let mut gaps = Vec::new();
        let mut gap = |what: &str, why: &str| gaps.push((what.to_owned(), why.to_owned()));
        // Of the root group nothing is reported: its numbers are the machine's, or zeros.
        let mut own = |place: &Option<Place>, metric: &str, v2: &str, v1: &str| match place {
            Some(place) if place.is_root(host) => {
                gap(metric, ROOT_GROUP);
                None
            }
            Some(place) => source(place, &place.levels[0], v2, v1),
            None => {
                gap(metric, NO_GROUP);
                None
            }
        };
        files.usage = own(&places.cpuacct, "cgroup.cpu_ratio", "cpu.stat", "cpuacct.usage");
        let v1 = "blkio.throttle.io_service_bytes_recursive";
        files.io = own(&places.io, "cgroup.read_bytes_per_s", "io.stat", v1);
        let v1 = "memory.usage_in_bytes";
        files.memory = own(&places.memory, "cgroup.memory_bytes", "memory.current", v1);
        files.gaps = gaps;
        if let Some(place) = &places.cpu
            && let Some((limit, level)) = least(place, |level| cpu_limit(host, place.v2, level))
        {
            files.cpu_limit = Some(limit);
            files.throttled = source(place, level, "cpu.stat", "cpu.stat");
        }
        if let Some(place) = &places.memory
            && let Some((limit, level)) = least(place, |level| memory_limit(host, place.v2, level))
        {
            files.memory_limit_bytes = Some(limit);
            files.limited_memory = source(place, level, "memory.current", "memory.usage_in_bytes");
            files.hits = source(place, level, "memory.events", "memory.failcnt");
        }
        files
    }

    fn read(&mut self, host: &dyn HostAccess, buffer: &mut Buffer, gauges: &mut Reading) -> Counts {
        let mut counts = Counts::default();
        let mut with =
            |source: &mut Option<Source>, gauges: &mut Reading, take: &mut dyn FnMut(bool, &str)| {
                if let Some(Source { file, v2 }) = source {
                    match file.read(host, buffer) {
                        Ok(text) => take(*v2, text),
                        Err(error) => gap_of(gauges, &error),
                    }
                }
            };
        with(&mut self.usage, gauges, &mut |v2, text| {
            counts.usage_us = usage_us(v2, text)
        });
        with(&mut self.throttled, gauges, &mut |v2, text| {
            counts.periods = number_of(text, "nr_periods");
            counts.throttled_periods = number_of(text, "nr_throttled");
            counts.throttled_us = throttled_us(v2, text);
        });
        with(&mut self.hits, gauges, &mut |v2, text| {
            counts.hits = hits(v2, text)
        });
        with(&mut self.io, gauges, &mut |v2, text| {
            let [read, written] = io_bytes(v2, text);
            (counts.read_bytes, counts.write_bytes) = (Some(read), Some(written));
        });
        let (mut memory, mut limited) = (None, None);
        with(&mut self.memory, gauges, &mut |_, text| {
            memory = text.trim().parse::<u64>().ok()
        });
        with(&mut self.limited_memory, gauges, &mut |_, text| {
            limited = text.trim().parse::<u64>().ok();
        });
        self.push_gauges(memory, limited, gauges);
        counts
    }

    #[expect(clippy::cast_precision_loss, reason = "gauges")]
    fn push_gauges(&self, memory: Option<u64>, limited: Option<u64>, gauges: &mut Reading) {
        let mut push = |metric, value: Option<f64>| {
            if let Some(value) = value {
                gauges.push(Key::one(metric), value);
            }
        };
        let limit = self.memory_limit_bytes;
        push("cgroup.cpu_limit", self.cpu_limit);
        push("cgroup.memory_bytes", memory.map(|bytes| bytes as f64));
        push("cgroup.memory_limit_bytes", limit.map(|bytes| bytes as f64));
        push(
            "cgroup.memory_limit_used_ratio",
            limited
                .zip(limit.filter(|limit| *limit > 0))
                .map(|(used, limit)| used as f64 / limit as f64),
        );
        for (source, reason) in &self.gaps {
            gauges.gap(source, reason);
        }
    }
}

/// The least limit of the group and those above it, and the group that has it.
fn least<T: PartialOrd>(place: &Place, limit: impl Fn(&str) -> Option<T>) -> Option<(T, &str)> {
    place
        .levels
        .iter()
        .filter_map(|level| limit(level).map(|limit| (limit, level.as_str())))
        .reduce(|least, other| if other.0 < least.0 { other } else { least })
}

/// CPU time in CPUs, from the quota and its period.
fn cpu_limit(host: &dyn HostAccess, v2: bool, level: &str) -> Option<f64> {
    let (quota, period) = if v2 {
        let text = host.read(&format!("{level}/cpu.max")).ok()?;
        let mut fields = text
            .split_ascii_whitespace()
            .map(|field| field.parse::<u32>().ok());
        (fields.next()??, fields.next()??)
    } else {
        let number = |file| {
            host.read_trimmed(&format!("{level}/{file}"))
                .ok()?
                .parse::<u32>()
                .ok()
        };
        (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
    };
    (period > 0).then(|| f64::from(quota) / f64::from(period))
}

fn memory_limit(host: &dyn HostAccess, v2: bool, level: &str) -> Option<u64> {
    let file = if v2 { "memory.max" } else { "memory.limit_in_bytes" };
    let bytes = host.read_trimmed(&format!("{level}/{file}")).ok()?.parse().ok()?;
    (bytes < UNLIMITED_BYTES).then_some(bytes)
}

fn number_of(text: &str, name: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        .and_then(|value| value.trim().parse().ok())
}

#[expect(clippy::cast_precision_loss, reason = "differences of counters")]
fn usage_us(v2: bool, text: &str) -> Option<f64> {
    if v2 {
        number_of(text, "usage_usec").map(|us| us as f64)
    } else {
        text.trim().parse::<u64>().ok().map(|ns| ns as f64 / 1e3)
    }
}

#[expect(clippy::cast_precision_loss, reason = "differences of counters")]
fn throttled_us(v2: bool, text: &str) -> Option<f64> {
    if v2 {
        number_of(text, "throttled_usec").map(|us| us as f64)
    } else {
        number_of(text, "throttled_time").map(|ns| ns as f64 / 1e3)
    }
}

/// How often an allocation met the limit: "max" of memory.events, failcnt in version 1.
fn hits(v2: bool, text: &str) -> Option<u64> {
    if v2 {
        number_of(text, "max")
    } else {
        text.trim().parse().ok()
    }
}

/// Bytes read and written of all devices. A group that has done no I/O has no line.
fn io_bytes(v2: bool, text: &str) -> [u64; 2] {
    let mut sums = [0_u64; 2];
    let mut add = |place: usize, value: Option<u64>| {
        sums[place] = sums[place].saturating_add(value.unwrap_or_default());
    };
    for line in text.lines() {
        if v2 {
            for field in line.split_ascii_whitespace().skip(1) {
                match field.split_once('=') {
                    Some(("rbytes", value)) => add(0, value.parse().ok()),
                    Some(("wbytes", value)) => add(1, value.parse().ok()),
                    _ => {}
                }
            }
        } else {
            let mut fields = line.split_ascii_whitespace().skip(1);
            match fields.next() {
                Some("Read") => add(0, fields.next().and_then(|value| value.parse().ok())),
                Some("Write") => add(1, fields.next().and_then(|value| value.parse().ok())),
                _ => {}
            }
        }
    }
    sums
}

fn fill(before: Option<Before<'_, Counts>>, now: &Counts, reading: &mut Reading) {
    let Some(Before { state, seconds }) = before else {
        return;
    };
    let mut push = |metric, grown: Option<Option<f64>>, by: f64| match grown {
        Some(Some(grown)) => reading.push(Key::one(metric), grown / by),
        Some(None) => reading.gap(metric, WENT_BACK),
        None => {}
    };
    let time = |before: Option<f64>, now: Option<f64>| {
        before
            .zip(now)
            .map(|(before, now)| (now >= before).then_some(now - before))
    };
    let count =
        |before: Option<u64>, now: Option<u64>| before.zip(now).map(|(before, now)| growth(before, now));
    let us = seconds * 1e6;
    push("cgroup.cpu_ratio", time(state.usage_us, now.usage_us), us);
    let throttled = time(state.throttled_us, now.throttled_us);
    push("cgroup.cpu_throttled_ratio", throttled, us);
    push(
        "cgroup.memory_limit_hits_per_s",
        count(state.hits, now.hits),
        seconds,
    );
    let (read, written) = (
        count(state.read_bytes, now.read_bytes),
        count(state.write_bytes, now.write_bytes),
    );
    push("cgroup.read_bytes_per_s", read, seconds);
    push("cgroup.write_bytes_per_s", written, seconds);
    // Without a period that ended there is no share of them.
    if let Some(Some(periods)) = count(state.periods, now.periods).filter(|p| *p != Some(0.0)) {
        let throttled = count(state.throttled_periods, now.throttled_periods);
        push("cgroup.cpu_throttled_periods_ratio", throttled, periods);
    }
}

#[cfg(test)]
mod tests;
