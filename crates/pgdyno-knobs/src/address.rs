//! From a knob and an instance to the files of this host: placeholders, places that differ by
//! kernel, several alike.

use crate::catalogue::{CatalogueError, Kind, Knob, Per, split, sysctl_path};
use crate::undo::FilePart;
use pgdyno_host::{HostAccess, block};
use std::path::Path;

/// What of a target the addresses of its knobs depend on.
pub(crate) struct HostContext<'a> {
    pub(crate) host: &'a dyn HostAccess,
    /// The data directory, where there is one here.
    pub(crate) data: Option<&'a Path>,
    /// The server's first process, where it is known.
    pub(crate) postmaster: Option<u32>,
}

/// A file of a knob on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolvedAddress {
    /// The knob, with its instance where there are several.
    pub(crate) name: String,
    pub(crate) path: String,
    /// Files that the kernel sets again when this one is written.
    pub(crate) resets: Vec<String>,
    /// Files whose writing sets the same ones again.
    pub(crate) alike: Vec<String>,
}

/// In an address: "major:minor" of the disk that holds the data.
pub(crate) const DISK_NUMBER: &str = "{disk_number}";
/// Where debugfs is when it is mounted.
const DEBUGFS: &str = "/sys/kernel/debug";

impl HostContext<'_> {
    /// The files of a knob that is a file of the kernel. Where none of its places exists, the first
    /// is named in the error.
    pub(crate) fn resolved(
        &self,
        knob: &Knob,
        setting: &str,
    ) -> Result<Vec<ResolvedAddress>, CatalogueError> {
        let mut resolved = Vec::new();
        let places = self.instances(knob, split(setting).1)?;
        let several = places.len() > 1;
        for bound in places {
            let addresses: Vec<String> = match knob.addresses.as_slice() {
                [] => vec![sysctl_path(&knob.id)],
                addresses => self.placed_all(knob, addresses, &bound)?,
            };
            let found = addresses
                .iter()
                .map(|address| self.all_of(address))
                .find(|paths| !paths.is_empty());
            let Some(paths) = found else {
                return Err(self.nowhere(knob, &addresses));
            };
            let all_there = |addresses: &[String]| -> Result<Vec<String>, CatalogueError> {
                let placed = self.placed_all(knob, addresses, &bound)?;
                Ok(placed.iter().flat_map(|path| self.all_of(path)).collect())
            };
            let (resets, alike_files) = (all_there(&knob.resets)?, all_there(&knob.alike)?);
            let alike = paths.len() > 1;
            for path in paths {
                let name = if several {
                    let instance = bound.iter().find(|(key, _)| key == "disk");
                    instance.map_or_else(|| setting.to_owned(), |(_, disk)| format!("{}@{disk}", knob.id))
                } else if alike {
                    format!("{setting} ({path})")
                } else {
                    setting.to_owned()
                };
                resolved.push(ResolvedAddress {
                    name,
                    path,
                    resets: resets.clone(),
                    alike: alike_files.clone(),
                });
            }
        }
        Ok(resolved)
    }

    /// Values of the placeholders, once for each thing that is meant.
    fn instances(
        &self,
        knob: &Knob,
        instance: Option<&str>,
    ) -> Result<Vec<Vec<(String, String)>>, CatalogueError> {
        let bind = |key: &str, value: &str| vec![(key.to_owned(), value.to_owned())];
        Ok(match (knob.per, instance) {
            (Some(Per::Disk), name) => {
                let disks = self.disks(knob, name.unwrap_or("data"))?;
                disks.iter().map(|disk| bind("disk", disk)).collect()
            }
            (Some(Per::Interface), Some(name)) => vec![bind("interface", name)],
            (Some(Per::PageSize), Some(size)) => vec![bind("size", size)],
            (Some(Per::Interrupt), Some(number)) => vec![bind("interrupt", number)],
            (Some(Per::PageSizeOfNode), Some(both)) => {
                let (size, node) = both.split_once('/').unwrap_or((both, "0"));
                let mut bound = bind("size", size);
                bound.extend(bind("node", node));
                vec![bound]
            }
            _ => vec![Vec::new()],
        })
    }

    /// The devices that an instance of a knob of disks names.
    pub(crate) fn disks(&self, knob: &Knob, name: &str) -> Result<Vec<String>, CatalogueError> {
        let (which, members) = match name.strip_suffix("-members") {
            Some(which @ ("data" | "wal")) => (which, true),
            _ => (name, false),
        };
        if !matches!(which, "data" | "wal") {
            return Ok(vec![name.to_owned()]);
        }
        let no_disk = |reason: String| CatalogueError::NoDisk {
            id: knob.id.clone(),
            which: which.to_owned(),
            reason,
        };
        let data = self
            .data
            .ok_or_else(|| no_disk("its directory is not within reach here".to_owned()))?;
        let path = if which == "wal" {
            data.join("pg_wal")
        } else {
            data.to_owned()
        };
        let path = path.to_string_lossy();
        let top = block::disk_of(self.host, &path).map_err(|e| no_disk(e.to_string()))?;
        if !members {
            return Ok(vec![top]);
        }
        let names = block::members_of(self.host, &path).map_err(|e| no_disk(e.to_string()))?;
        if names.is_empty() {
            return Err(no_disk(format!("{top} is a disk itself and has no members")));
        }
        Ok(names)
    }

    fn placed_all(
        &self,
        knob: &Knob,
        addresses: &[String],
        bound: &[(String, String)],
    ) -> Result<Vec<String>, CatalogueError> {
        let mut placed = Vec::new();
        let mut why = None;
        for address in addresses {
            match self.placed(knob, address, bound) {
                Ok(path) => placed.push(path),
                Err(error) => why = Some(error),
            }
        }
        match why {
            Some(error) if placed.is_empty() => Err(error),
            _ => Ok(placed),
        }
    }

    fn placed(
        &self,
        knob: &Knob,
        address: &str,
        bound: &[(String, String)],
    ) -> Result<String, CatalogueError> {
        let mut path = address.to_owned();
        for (key, value) in bound {
            path = path.replace(&format!("{{{key}}}"), value);
        }
        let not_placed = |reason: String| CatalogueError::NotHere {
            id: knob.id.clone(),
            reason,
        };
        if path.contains("{default_size}") {
            let size = default_huge_page_kb(self.host)
                .ok_or_else(|| not_placed("this kernel has no huge pages".to_owned()))?;
            path = path.replace("{default_size}", &size.to_string());
        }
        if path.contains(DISK_NUMBER) {
            for disk in self.disks(knob, "data")? {
                let number = block::number_of(self.host, &disk).map_err(|e| not_placed(e.to_string()))?;
                path = path.replace(DISK_NUMBER, &number);
            }
        }
        if let Some((before, rest)) = path.split_once("{cgroup:") {
            let (controller, after) = rest.split_once('}').unwrap_or((rest, ""));
            let pid = self.postmaster.ok_or_else(|| {
                not_placed("the server's processes are not known to be on this host".to_owned())
            })?;
            let directory = pgdyno_host::group_directory(self.host, pid, controller).map_err(not_placed)?;
            path = format!("{before}{directory}{after}");
        }
        Ok(path)
    }

    /// The paths of an address that exist, a `*` in a part of it standing for anything.
    fn all_of(&self, address: &str) -> Vec<String> {
        let Some(star) = address.find('*') else {
            return if self.is_there(address) {
                vec![address.to_owned()]
            } else {
                Vec::new()
            };
        };
        let from = address[..star].rfind('/').unwrap_or(0);
        let to = address[star..].find('/').map_or(address.len(), |at| star + at);
        let (directory, pattern, rest) = (&address[..from], &address[from + 1..to], &address[to..]);
        let (start, end) = pattern.split_once('*').unwrap_or((pattern, ""));
        let names = self.host.list(directory).unwrap_or_default();
        names
            .iter()
            .filter(|name| {
                name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
            })
            // node1 is one of node*, and so is nothing that goes on with letters.
            .filter(|name| {
                !name[start.len()..name.len() - end.len()].contains(|c: char| c.is_ascii_alphabetic())
            })
            .flat_map(|name| self.all_of(&format!("{directory}/{name}{rest}")))
            .collect()
    }

    /// A file that may not be read is there.
    fn is_there(&self, path: &str) -> bool {
        let (file, _) = FilePart::of_path(path);
        !matches!(self.host.read(file), Err(pgdyno_host::HostError::Missing { .. }))
    }

    fn nowhere(&self, knob: &Knob, addresses: &[String]) -> CatalogueError {
        let kernel = self
            .host
            .read_trimmed("/proc/sys/kernel/osrelease")
            .unwrap_or_else(|_| "unknown".to_owned());
        let mut reason = format!(
            "{} does not exist on this host (kernel {kernel})",
            addresses.join(" or ")
        );
        match (&knob.since_kernel, &knob.until_kernel) {
            (Some(since), Some(until)) => reason += &format!("; kernels from {since} to {until} have it"),
            (Some(since), None) => reason += &format!("; kernels since {since} have it"),
            (None, Some(until)) => reason += &format!("; kernels up to {until} have it"),
            (None, None) => {}
        }
        if let Some(new) = &knob.renamed {
            reason += &format!("; its place was taken by {new}");
        }
        if addresses.iter().any(|address| address.starts_with(DEBUGFS)) && self.debugfs_is_missing() {
            reason += &format!("; debugfs is not mounted (mount -t debugfs none {DEBUGFS})");
        }
        CatalogueError::NotHere {
            id: knob.id.clone(),
            reason,
        }
    }

    fn debugfs_is_missing(&self) -> bool {
        let mounts = self.host.read("/proc/self/mounts").unwrap_or_default();
        !mounts
            .lines()
            .any(|line| line.split(' ').nth(2) == Some("debugfs"))
    }
}

/// Size of a huge page where nobody names one, in kB.
pub(crate) fn default_huge_page_kb(host: &dyn HostAccess) -> Option<u64> {
    meminfo_value(&host.read("/proc/meminfo").ok()?, "Hugepagesize")
}

/// Size of the pages in the pool that a file is of, in kB.
pub(crate) fn page_kb_of_pool(host: &dyn HostAccess, path: &str) -> Option<u64> {
    let of_path = path
        .rsplit_once("hugepages-")
        .and_then(|(_, rest)| rest.split_once("kB")?.0.parse().ok());
    of_path
        .or_else(|| default_huge_page_kb(host))
        .filter(|&size_kb| size_kb > 0)
}

/// The number of a line of /proc/meminfo, as it is there: kB for sizes.
pub(crate) fn meminfo_value(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Whether a knob is a file of the server's own control group.
pub(crate) fn is_of_group(knob: &Knob) -> bool {
    knob.addresses.iter().any(|address| address.contains("{cgroup:"))
}

/// Whether a knob is one or more files of the kernel with values to save and write back.
pub(crate) fn is_kernel_files(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Sysctl | Kind::Sysfs | Kind::Bracket | Kind::HugepagePool | Kind::CpuQuota
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;
    use pgdyno_fixture::Machine;
    use pgdyno_host::LocalHost;

    fn resolved(machine: &str, setting: &str) -> Result<Vec<ResolvedAddress>, String> {
        let machine = Machine::named(machine);
        let host = LocalHost::at(machine.root());
        let context = HostContext {
            host: &host,
            data: None,
            postmaster: None,
        };
        let catalogue = Catalogue::shipped().unwrap();
        let knob = catalogue.get(setting).unwrap();
        context.resolved(knob, setting).map_err(|e| e.to_string())
    }

    fn path(machine: &str, setting: &str) -> String {
        resolved(machine, setting).unwrap().remove(0).path
    }

    /// Trap 5: the same knob, where each kernel has it.
    #[test]
    fn a_scheduler_knob_is_found_in_both_of_its_places() {
        let knob = "kernel.sched_migration_cost_ns";
        assert_eq!(
            path("x86_64-5.10", knob),
            "/proc/sys/kernel/sched_migration_cost_ns"
        );
        assert_eq!(
            path("x86_64-6.1-numa4", knob),
            "/sys/kernel/debug/sched/migration_cost_ns"
        );
    }

    /// Trap 7: what this kernel has not is said, with what took its place.
    #[test]
    fn a_knob_that_has_gone_is_said_to_be_gone() {
        let gone = resolved("x86_64-6.12-cgroup2", "kernel.sched_latency_ns").unwrap_err();
        assert!(
            gone.contains("does not exist on this host (kernel 6.12"),
            "{gone}"
        );
        assert!(gone.contains("kernels"), "{gone}");
    }

    /// Traps 14, 15 and 35: pools per node, by the size that this kernel takes for the usual one.
    #[test]
    fn a_pool_brings_back_each_nodes_own() {
        let address = resolved("x86_64-6.1-numa4", "vm.nr_hugepages").unwrap().remove(0);
        assert_eq!(address.path, "/proc/sys/vm/nr_hugepages");
        let of_node = |n| format!("/sys/devices/system/node/node{n}/hugepages/hugepages-2048kB/nr_hugepages");
        assert_eq!(address.resets, [0, 1, 2, 3].map(of_node));
        let node = path("x86_64-6.1-numa4", "hugepages.node_pool@2048/3");
        assert_eq!(node, of_node(3));
        assert!(
            resolved("s390x-6.1", "hugepages.pool@2048").is_err(),
            "no huge pages at all"
        );
    }

    /// Trap 21, and a star for all that are there.
    #[test]
    fn a_star_is_all_that_are_there_or_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let cpufreq = dir.path().join("sys/devices/system/cpu/cpufreq");
        for policy in ["policy0", "policy4", "policyfoo"] {
            std::fs::create_dir_all(cpufreq.join(policy)).unwrap();
            std::fs::write(cpufreq.join(policy).join("scaling_governor"), "powersave\n").unwrap();
        }
        let host = LocalHost::at(dir.path());
        let context = HostContext {
            host: &host,
            data: None,
            postmaster: None,
        };
        let catalogue = Catalogue::shipped().unwrap();
        let knob = catalogue
            .iter()
            .find(|knob| knob.addresses.iter().any(|a| a.ends_with("scaling_governor")));
        let knob = knob.unwrap();
        let paths: Vec<String> = context
            .resolved(knob, &knob.id)
            .unwrap()
            .into_iter()
            .map(|address| address.path)
            .collect();
        assert_eq!(paths.len(), 2, "{paths:?}");
        assert!(paths[1].contains("policy4"), "{paths:?}");
        let missing = resolved("x86_64-6.1-numa4", &knob.id).unwrap_err();
        assert!(missing.contains("does not exist"), "{missing}");
    }

    /// Without a server's process there is no group to be found.
    #[test]
    fn a_group_wants_a_server() {
        let error = resolved("x86_64-6.12-cgroup2", "cgroup.memory_max").unwrap_err();
        assert!(error.contains("processes"), "{error}");
    }
}
