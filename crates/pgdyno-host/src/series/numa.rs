//! NUMA nodes: allocations by where they fell, and free memory, from /sys/devices/system/node.

use super::files::{Buffer, Kept};
use super::step::{Before, Last, WENT_BACK};
use super::{Key, Reading, growth};
use crate::access::{HostAccess, HostError};
use std::time::Instant;

const ROOT: &str = "/sys/devices/system/node";
/// Lines of numastat (Documentation/admin-guide/numastat.rst), in pages.
const COUNTERS: [(&str, &str); 5] = [
    ("numa_hit", "numa.hit_per_s"),
    ("numa_miss", "numa.miss_per_s"),
    ("numa_foreign", "numa.foreign_per_s"),
    ("local_node", "numa.local_per_s"),
    ("other_node", "numa.other_per_s"),
];

type Counts = [Option<u64>; COUNTERS.len()];

#[derive(Debug)]
struct Node {
    name: String,
    numastat: Kept,
    meminfo: Kept,
    last: Last<Counts>,
}

/// Nodes as they were found at the first tick.
#[derive(Debug, Default)]
pub(super) struct Numa {
    nodes: Option<Vec<Node>>,
}

impl Numa {
    /// One reading for each node; a reading with the reason where there are none.
    pub(super) fn read(&mut self, host: &dyn HostAccess, buffer: &mut Buffer, at: Instant) -> Vec<Reading> {
        let nodes = match &mut self.nodes {
            Some(nodes) => nodes,
            None => match find(host) {
                Ok(nodes) => self.nodes.insert(nodes),
                Err(error) => return vec![super::step::lost(at, &error)],
            },
        };
        nodes.iter_mut().map(|node| node.read(host, buffer, at)).collect()
    }
}

fn find(host: &dyn HostAccess) -> Result<Vec<Node>, HostError> {
    let names = host.list(ROOT)?;
    let is_node = |name: &String| {
        name.strip_prefix("node")
            .is_some_and(|number| number.parse::<u32>().is_ok())
    };
    Ok(names
        .into_iter()
        .filter(is_node)
        .map(|name| Node {
            numastat: Kept::new(format!("{ROOT}/{name}/numastat")),
            meminfo: Kept::new(format!("{ROOT}/{name}/meminfo")),
            name,
            last: Last::default(),
        })
        .collect())
}

impl Node {
    fn read(&mut self, host: &dyn HostAccess, buffer: &mut Buffer, at: Instant) -> Reading {
        let name = self.name.as_str();
        let mut reading = match self.numastat.read(host, buffer).map(parse) {
            Ok(counts) => self.last.step(at, counts, |before, now, reading| {
                fill(name, before, now, reading)
            }),
            Err(error) => self.last.lost(at, &error),
        };
        match self.meminfo.read(host, buffer).map(free_bytes) {
            #[expect(clippy::cast_precision_loss, reason = "a gauge")]
            Ok(Some(bytes)) => reading.push(Key::of("numa.free_bytes", name), bytes as f64),
            Ok(None) => reading.gap(self.meminfo.path(), "it has no line MemFree"),
            Err(error) => super::step::gap_of(&mut reading, &error),
        }
        reading
    }
}

fn parse(text: &str) -> Counts {
    let mut counts = Counts::default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(' ') else {
            continue;
        };
        if let Some(place) = COUNTERS.iter().position(|(line, _)| *line == name) {
            counts[place] = value.trim().parse().ok();
        }
    }
    counts
}

/// "Node 0 MemFree:  123 kB".
fn free_bytes(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.split_once(" MemFree:"))?.1;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

fn fill(name: &str, before: Option<Before<'_, Counts>>, now: &Counts, reading: &mut Reading) {
    let Some(Before { state, seconds }) = before else {
        return;
    };
    for ((_, metric), pair) in COUNTERS.into_iter().zip(state.iter().zip(now)) {
        let source = || format!("{metric} {name}");
        match pair {
            (Some(before), Some(now)) => match growth(*before, *now) {
                Some(grown) => reading.push(Key::of(metric, name), grown / seconds),
                None => reading.gap(&source(), WENT_BACK),
            },
            _ => reading.gap(&source(), "this kernel does not count it"),
        }
    }
}
