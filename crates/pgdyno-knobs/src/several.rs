//! Values that depend on how many servers run on the host at once: a pool of huge pages for all of
//! them, and the part of the CPUs and memory nodes that each one gets.

use crate::address::is_of_group;
use crate::catalogue::{AUTO, Form, Gives, Kind, Knob, Per};
use crate::undo::affinity;
use pgdyno_host::{HostAccess, HostError};

/// Value of a control group's list of CPUs or memory nodes: the server's part of all, where they
/// are dealt out among several.
const PART: &str = "part";
/// Where the kernel shows them.
const CPUS: &str = "/sys/devices/system/cpu/online";
const NODES: &str = "/sys/devices/system/node/online";

/// One of the servers that run on a host at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneOf {
    /// Its number, from 1.
    pub number: u32,
    /// How many there are.
    pub of: u32,
}

impl Knob {
    /// Whether it may be another one's for each of several servers on one host: a parameter, its
    /// control group's, or that of the disk where its data is, which may be its own.
    pub fn is_of_each_server(&self) -> bool {
        !self.kind.is_of_host() || is_of_group(self) || self.per == Some(Per::Disk)
    }

    /// What a value of an experiment means for one of several servers: "auto" of a pool is for all
    /// of them, "part" is its own.
    pub fn value_for(&self, value: &str, server: OneOf) -> String {
        let OneOf { number, of } = server;
        match value {
            AUTO if self.kind == Kind::HugepagePool && of > 1 => format!("{AUTO}:{of}"),
            PART if self.part_of(PART).is_some() => format!("{PART}:{number}/{of}"),
            _ => value.to_owned(),
        }
    }

    /// Whether the value of a pool of huge pages is worked out, and for how many servers: `auto`
    /// for one, `auto:4` for four like it.
    pub(crate) fn servers_of_pool(&self, value: &str) -> Option<u64> {
        let rest = value
            .strip_prefix(AUTO)
            .filter(|_| self.kind == Kind::HugepagePool)?;
        match rest.strip_prefix(':') {
            None => rest.is_empty().then_some(1),
            Some(servers) => count(servers).map(u64::from),
        }
    }

    /// The part of the host's CPUs or memory nodes that a control group is to have: all of `part`,
    /// the second quarter of `part:2/4`.
    pub(crate) fn part_of(&self, value: &str) -> Option<OneOf> {
        let lists = is_of_group(self) && self.form == Form::CpuList;
        let rest = value.strip_prefix(PART).filter(|_| lists)?;
        if rest.is_empty() {
            return Some(OneOf { number: 1, of: 1 });
        }
        let (number, of) = rest.strip_prefix(':')?.split_once('/')?;
        let (number, of) = (count(number)?, count(of)?);
        (number <= of).then_some(OneOf { number, of })
    }
}

/// A count from 1 to 9999.
fn count(text: &str) -> Option<u32> {
    let is_number = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|count| is_number && *count > 0)
}

/// The CPUs or memory nodes of a part, as the kernel takes them; those of one node are next to one
/// another.
pub(crate) fn listed_part(host: &dyn HostAccess, knob: &Knob, part: OneOf) -> Result<String, HostError> {
    let nodes = numbers_in(host, NODES);
    let all = match knob.gives {
        Some(Gives::Cpus) => {
            let online = numbers_in(host, CPUS)?;
            let of_nodes = nodes.unwrap_or_default().into_iter();
            let of_nodes = of_nodes.map(|node| format!("/sys/devices/system/node/node{node}/cpulist"));
            let by_node: Vec<usize> = of_nodes
                .flat_map(|path| numbers_in(host, &path).unwrap_or_default())
                .filter(|cpu| online.contains(cpu))
                .collect();
            // A kernel without memory nodes has no files of them.
            if by_node.len() == online.len() {
                by_node
            } else {
                online
            }
        }
        _ => nodes?,
    };
    let own: Vec<String> = dealt(&all, part).iter().map(usize::to_string).collect();
    Ok(own.join(","))
}

fn numbers_in(host: &dyn HostAccess, path: &str) -> Result<Vec<usize>, HostError> {
    Ok(affinity::numbers(&host.read_trimmed(path)?))
}

/// The part of one of several in all: as many as the others have, one more or less; where there are
/// fewer than servers, one that it shares with others.
fn dealt(all: &[usize], part: OneOf) -> &[usize] {
    let (number, of, n) = (part.number as usize - 1, part.of as usize, all.len());
    if of <= n {
        return &all[number * n / of..(number + 1) * n / of];
    }
    let at = number % n.max(1);
    all.get(at..=at).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;

    #[test]
    fn parts_are_dealt_out_whole_and_those_of_too_many_share() {
        let check = |all: &[usize], of: u32, expected: &[&[usize]]| {
            let parts = (1..=of).map(|number| dealt(all, OneOf { number, of }));
            assert_eq!(parts.collect::<Vec<_>>(), expected, "{of} of {all:?}");
        };
        check(&[0, 1, 2, 3], 1, &[&[0, 1, 2, 3]]);
        check(&[0, 2, 1, 3], 2, &[&[0, 2], &[1, 3]]);
        check(&[0, 1, 2, 3], 3, &[&[0], &[1], &[2, 3]]);
        check(&[0, 1], 4, &[&[0], &[1], &[0], &[1]]);
        check(&[], 2, &[&[], &[]]);
    }

    #[test]
    fn values_of_several_servers_are_known_by_kind() {
        let catalogue = Catalogue::shipped().unwrap();
        let knob = |id: &str| catalogue.get(id).unwrap();
        let second = OneOf { number: 2, of: 4 };
        let check = |id: &str, value: &str, expected: &str| {
            assert_eq!(knob(id).value_for(value, second), expected, "{id}");
        };
        check("vm.nr_hugepages", "auto", "auto:4");
        check("vm.nr_hugepages", "300", "300");
        check("cgroup.cpus", "part", "part:2/4");
        check("cgroup.memory_nodes", "part", "part:2/4");
        check("server.cpu_affinity", "part", "part");
        check("huge_pages", "auto", "auto");
        let parts = ["part", "part:2/4", "part:5/4", "part:0/4", "part:", "0-3"];
        let found = parts.map(|value| knob("cgroup.cpus").part_of(value).map(|part| part.number));
        assert_eq!(found, [Some(1), Some(2), None, None, None, None]);
        let pools = ["auto", "auto:4", "auto:0", "auto:x", "4"];
        let found = pools.map(|value| knob("vm.nr_hugepages").servers_of_pool(value));
        assert_eq!(found, [Some(1), Some(4), None, None, None]);
        let own = ["work_mem", "cgroup.cpus", "block.read_ahead_kb", "vm.swappiness"];
        assert_eq!(
            own.map(|id| knob(id).is_of_each_server()),
            [true, true, true, false]
        );
    }
}
