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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::fixture::{Tree, gaps, has};
    use proptest::prelude::*;

    fn numastat(hits: u32, misses: u32) -> String {
        format!(
            "numa_hit {hits}\nnuma_miss {misses}\nnuma_foreign 0\ninterleave_hit 5\nlocal_node 9\nother_node 0\n"
        )
    }

    #[test]
    fn every_node_has_a_reading() {
        let file = |node: u32, name: &str| format!("{ROOT}/node{node}/{name}");
        let free = "Node 1 MemTotal:       1000 kB\nNode 1 MemFree:         12 kB\n";
        let mut tree = Tree::new(&[
            (&file(0, "numastat"), &numastat(100, 0)),
            (&file(0, "meminfo"), "Node 0 MemTotal: 5 kB\n"),
            (&file(1, "numastat"), &numastat(100, 7)),
            (&file(1, "meminfo"), free),
            (&format!("{ROOT}/possible"), "0-1"),
        ]);
        let mut numa = Numa::default();
        let (start, later, last) = (tree.at(0), tree.at(2), tree.at(4));
        assert_eq!(numa.read(&tree.host, &mut tree.buffer, start).len(), 2);
        tree.put(&[(&file(1, "numastat"), &numastat(300, 9))]);
        let readings = numa.read(&tree.host, &mut tree.buffer, later);
        has(&readings[0], &["numa.hit_per_s[node0] 0"]);
        assert_eq!(gaps(&readings[0]), [file(0, "meminfo")]);
        has(
            &readings[1],
            &[
                "numa.hit_per_s[node1] 100",
                "numa.miss_per_s[node1] 1",
                "numa.free_bytes[node1] 12288",
            ],
        );
        tree.put(&[(&file(1, "numastat"), "numa_hit 1\n")]);
        let readings = numa.read(&tree.host, &mut tree.buffer, last);
        assert_eq!(readings[1].values.len(), 1);
        assert_eq!(readings[1].gaps.len(), COUNTERS.len());
    }

    #[test]
    fn a_machine_without_nodes_is_a_gap() {
        let mut tree = Tree::new(&[]);
        let at = tree.at(0);
        let readings = Numa::default().read(&tree.host, &mut tree.buffer, at);
        assert_eq!(gaps(&readings[0]), [ROOT]);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(numa_hit [0-9]{0,25}\n|Node 0 MemFree:.{0,30}\n){0,3}.{0,20}") {
            let _ = (parse(&text), free_bytes(&text));
        }
    }
}
