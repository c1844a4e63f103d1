//! Control groups that pgdyno makes for processes of its own (a sandbox): version 2 or 1,
//! controller by controller.
//!
//! This changes nothing that was there before: it makes a group, sets limits in it, and removes it
//! again.

use crate::access::{HostAccess, HostError, LocalHost};
use crate::mount;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Limits that make a machine look smaller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// CPU time in CPUs, for example 1.5.
    pub cpus: Option<f64>,
    /// Memory with its page cache.
    pub memory_bytes: Option<u64>,
    /// Read requests per second, and as many writes.
    pub iops: Option<u64>,
    /// Bytes read per second, and as many written.
    pub bandwidth_bytes_per_s: Option<u64>,
}

impl Limits {
    /// Whether no resource is limited.
    pub fn is_none(&self) -> bool {
        *self == Limits::default()
    }
}

/// A limit, or a part of one, that this kernel does not enforce.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unlimited {
    /// Name of the limit.
    pub limit: String,
    /// Why it is not enforced, in a sentence.
    pub why: String,
}

/// A group with its limits set.
#[derive(Debug)]
pub struct Cgroup {
    directories: Vec<PathBuf>,
    /// What is not limited though it was asked for.
    pub unlimited: Vec<Unlimited>,
}

/// How long a group may still be busy after its server was stopped.
const LEAVES_WITHIN: Duration = Duration::from_secs(5);
/// The period over which CPU time is metered; the kernel's own default.
const CPU_PERIOD_US: f64 = 100_000.0;

/// One file to write: its name and its content.
type Entry = (&'static str, String);

struct Controller {
    name: &'static str,
    v2: Vec<Entry>,
    v1: Vec<Entry>,
    /// What version 1 does not limit here.
    v1_gap: Option<(&'static str, &'static str)>,
}

impl Cgroup {
    /// Makes the group `pgdyno/NAME` and sets `limits`; `disk` is "major:minor", needed for the I/O
    /// limits.
    pub fn create(
        host: &LocalHost,
        name: &str,
        limits: &Limits,
        disk: Option<&str>,
    ) -> Result<Cgroup, HostError> {
        let mounts = Mounts::read(host)?;
        let mut group = Cgroup {
            directories: Vec::new(),
            unlimited: Vec::new(),
        };
        for controller in controllers(limits, disk, &mut group.unlimited) {
            let (directory, entries) = if mounts.v2_controllers.iter().any(|c| c == controller.name) {
                (mounts.make_v2(host, controller.name, name)?, &controller.v2)
            } else if let Some(mount) = mounts.v1(controller.name) {
                if let Some((limit, why)) = controller.v1_gap {
                    group.unlimited.push(Unlimited {
                        limit: limit.into(),
                        why: why.into(),
                    });
                }
                (make_directory(&format!("{mount}/pgdyno/{name}"))?, &controller.v1)
            } else {
                group.unlimited.push(Unlimited {
                    limit: controller.name.into(),
                    why: format!("this kernel offers no cgroup controller \"{}\"", controller.name),
                });
                continue;
            };
            for (file, value) in entries {
                host.write_raw(&directory.join(file).to_string_lossy(), value)?;
            }
            if !group.directories.contains(&directory) {
                group.directories.push(directory);
            }
        }
        // No limit depends on this: where it fails, the knobs for CPUs and memory nodes are not
        // available.
        if let Ok(Some(directory)) = mounts.make_cpuset(host, name)
            && !group.directories.contains(&directory)
        {
            group.directories.push(directory);
        }
        Ok(group)
    }

    /// The files to which a process writes "0" to enter the group, opened for writing.
    pub fn open_entrances(&self) -> Result<Vec<File>, HostError> {
        self.directories
            .iter()
            .map(|directory| {
                let path = directory.join("cgroup.procs");
                fs::OpenOptions::new()
                    .write(true)
                    .open(&path)
                    .map_err(|e| io_error(&path.to_string_lossy(), "written", e))
            })
            .collect()
    }

    /// Removes the group wherever it is. A group that still has processes stays and is an error.
    pub fn remove(host: &LocalHost, name: &str) -> Result<(), HostError> {
        let mounts = Mounts::read(host)?;
        let all = mounts
            .v1_mounts
            .iter()
            .map(|(_, path)| path)
            .chain(mounts.v2_mount.iter());
        for mount in all {
            let path = format!("{mount}/pgdyno/{name}");
            // The last process of a group leaves it a moment after it has ended.
            let deadline = Instant::now() + LEAVES_WITHIN;
            loop {
                match fs::remove_dir(&path) {
                    Ok(()) => break,
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => break,
                    Err(e) if e.kind() == std::io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                        std::thread::yield_now();
                    }
                    Err(e) => return Err(io_error(&path, "removed", e)),
                }
            }
            // The parent goes with the last group; another sandbox may still be in it.
            let _ = fs::remove_dir(format!("{mount}/pgdyno"));
        }
        Ok(())
    }
}

fn controllers(limits: &Limits, disk: Option<&str>, unlimited: &mut Vec<Unlimited>) -> Vec<Controller> {
    let mut all = Vec::new();
    if let Some(cpus) = limits.cpus {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a checked positive number"
        )]
        let quota_us = (cpus * CPU_PERIOD_US) as u64;
        all.push(Controller {
            name: "cpu",
            v2: vec![("cpu.max", format!("{quota_us} {CPU_PERIOD_US}"))],
            v1: vec![
                ("cpu.cfs_period_us", format!("{CPU_PERIOD_US}")),
                ("cpu.cfs_quota_us", quota_us.to_string()),
            ],
            v1_gap: None,
        });
    }
    if let Some(bytes) = limits.memory_bytes {
        all.push(Controller {
            name: "memory",
            v2: vec![("memory.max", bytes.to_string())],
            v1: vec![("memory.limit_in_bytes", bytes.to_string())],
            v1_gap: None,
        });
    }
    if limits.iops.is_none() && limits.bandwidth_bytes_per_s.is_none() {
        return all;
    }
    let Some(disk) = disk else {
        unlimited.push(Unlimited {
            limit: "iops, bandwidth".into(),
            why: "the data directory is not on a block device".into(),
        });
        return all;
    };
    let mut v2 = disk.to_owned();
    let mut v1 = Vec::new();
    if let Some(iops) = limits.iops {
        v2 += &format!(" riops={iops} wiops={iops}");
        v1.push(("blkio.throttle.read_iops_device", format!("{disk} {iops}")));
        v1.push(("blkio.throttle.write_iops_device", format!("{disk} {iops}")));
    }
    if let Some(rate) = limits.bandwidth_bytes_per_s {
        v2 += &format!(" rbps={rate} wbps={rate}");
        v1.push(("blkio.throttle.read_bps_device", format!("{disk} {rate}")));
        v1.push(("blkio.throttle.write_bps_device", format!("{disk} {rate}")));
    }
    // The controller is called blkio in version 1.
    all.push(Controller { name: "io", v2: vec![("io.max", v2)], v1, v1_gap: Some((
        "iops, bandwidth (background write-back)",
        "cgroup v1 throttles reads, and writes that a process itself waits for (WAL, fsync); dirty pages that the \
         kernel writes back later are not throttled",
    )) });
    all
}

/// What version 1 calls a controller.
pub(crate) fn name_in_v1(controller: &str) -> &str {
    if controller == "io" { "blkio" } else { controller }
}

#[derive(Debug, Default)]
struct Mounts {
    v2_mount: Option<String>,
    v2_controllers: Vec<String>,
    /// (comma-separated super-block options with the controllers' names, mount point)
    v1_mounts: Vec<(String, String)>,
}

impl Mounts {
    fn read(host: &dyn HostAccess) -> Result<Mounts, HostError> {
        let mut mounts = Mounts::parse(&host.read("/proc/self/mountinfo")?);
        if let Some(mount) = &mounts.v2_mount {
            let list = host
                .read(&format!("{mount}/cgroup.controllers"))
                .unwrap_or_default();
            mounts.v2_controllers = list.split_whitespace().map(str::to_owned).collect();
        }
        Ok(mounts)
    }

    fn parse(mountinfo: &str) -> Mounts {
        let mut mounts = Mounts::default();
        for mount in mount::parse(mountinfo) {
            match mount.kind.as_str() {
                "cgroup2" => mounts.v2_mount = Some(mount.point),
                "cgroup" => mounts.v1_mounts.push((mount.super_options, mount.point)),
                _ => {}
            }
        }
        mounts
    }

    fn v1(&self, controller: &str) -> Option<&str> {
        let name = name_in_v1(controller);
        self.v1_mounts
            .iter()
            .find(|(options, _)| options.split(',').any(|option| option == name))
            .map(|(_, mount)| mount.as_str())
    }

    fn make_v2(&self, host: &LocalHost, controller: &str, name: &str) -> Result<PathBuf, HostError> {
        let mount = self.v2_mount.as_deref().unwrap_or("/sys/fs/cgroup");
        let parent = make_directory(&format!("{mount}/pgdyno"))?;
        for level in [Path::new(mount), &parent] {
            let file = level.join("cgroup.subtree_control");
            host.write_raw(&file.to_string_lossy(), &format!("+{controller}"))?;
        }
        make_directory(&format!("{mount}/pgdyno/{name}"))
    }

    /// A group in which knobs can bind processes to CPUs and memory nodes; until then it has those
    /// of the group above it. `None` where the kernel has no such controller.
    fn make_cpuset(&self, host: &LocalHost, name: &str) -> Result<Option<PathBuf>, HostError> {
        if self.v2_controllers.iter().any(|c| c == "cpuset") {
            return self.make_v2(host, "cpuset", name).map(Some);
        }
        let Some(mount) = self.v1("cpuset") else {
            return Ok(None);
        };
        let mut above = PathBuf::from(mount);
        for level in ["pgdyno", name] {
            let group = make_directory(&above.join(level).to_string_lossy())?;
            // Version 1 makes a group without CPUs and nodes, which no process can enter.
            for file in ["cpuset.cpus", "cpuset.mems"] {
                let own = group.join(file);
                if host.read_trimmed(&own.to_string_lossy())?.is_empty() {
                    let inherited = host.read_trimmed(&above.join(file).to_string_lossy())?;
                    host.write_raw(&own.to_string_lossy(), &inherited)?;
                }
            }
            above = group;
        }
        Ok(Some(above))
    }
}

fn make_directory(path: &str) -> Result<PathBuf, HostError> {
    fs::create_dir_all(path).map_err(|e| io_error(path, "made", e))?;
    Ok(PathBuf::from(path))
}

fn io_error(path: &str, action: &'static str, source: std::io::Error) -> HostError {
    let path = path.to_owned();
    match source.kind() {
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            HostError::Refused { path, action, source }
        }
        _ => HostError::Io { path, action, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
30 29 0:25 / /sys/fs/cgroup/memory rw,relatime shared:1 - cgroup cgroup rw,memory
31 29 0:26 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
32 29 0:27 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio
33 29 0:28 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
nonsense";

    #[test]
    fn a_hybrid_system_is_distinguished_by_controller() {
        let mounts = Mounts::parse(HYBRID);
        assert_eq!(mounts.v2_mount.as_deref(), Some("/sys/fs/cgroup/unified"));
        assert_eq!(mounts.v1("memory"), Some("/sys/fs/cgroup/memory"));
        assert_eq!(mounts.v1("io"), Some("/sys/fs/cgroup/blkio"));
        assert_eq!(mounts.v1("cpu"), Some("/sys/fs/cgroup/cpu"));
        assert_eq!(mounts.v1("cpuset"), None);
    }

    #[test]
    fn limits_become_the_documented_lines_of_both_versions() {
        let limits = Limits {
            cpus: Some(1.5),
            memory_bytes: Some(1 << 30),
            iops: Some(3000),
            bandwidth_bytes_per_s: Some(125_000_000),
        };
        let mut unlimited = Vec::new();
        let all = controllers(&limits, Some("254:0"), &mut unlimited);
        assert!(unlimited.is_empty());
        assert_eq!(all[0].v2[0].1, "150000 100000");
        assert_eq!(all[1].v1[0], ("memory.limit_in_bytes", "1073741824".to_owned()));
        assert_eq!(
            all[2].v2[0].1,
            "254:0 riops=3000 wiops=3000 rbps=125000000 wbps=125000000"
        );
        assert_eq!(all[2].v1.len(), 4);
    }

    #[test]
    fn an_io_limit_without_a_disk_is_said() {
        let mut unlimited = Vec::new();
        let limits = Limits {
            iops: Some(100),
            ..Limits::default()
        };
        assert!(controllers(&limits, None, &mut unlimited).is_empty());
        assert_eq!(unlimited.len(), 1);
    }
}
