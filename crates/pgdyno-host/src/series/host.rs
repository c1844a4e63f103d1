//! All series of a host at one tick.

use super::Reading;
use super::cgroup::Group;
use super::cpu::Cpus;
use super::disks::Disks;
use super::files::Buffer;
use super::memory::Memory;
use super::network::Network;
use super::numa::Numa;
use super::pressure::Pressure;
use super::processes::ProcessClasses;
use super::step::Told;
use super::vmstat::Vmstat;
use crate::access::HostAccess;
use std::time::Instant;

/// What of a host is watched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostSeriesOptions {
    /// Block devices by their names in /sys/block; `None`: all whole devices that have ever been used.
    pub disks: Option<Vec<String>>,
    /// The server whose processes are watched, and whose network it is.
    pub postmaster: Option<u32>,
    /// A process of the control group that is watched; the server's main process, mostly.
    pub cgroup_of: Option<u32>,
}

/// Samples a host: CPUs, memory, pressure, devices, network, NUMA nodes, the server's control group and its processes
/// by class. docs/metrics.md lists what it tells.
#[derive(Debug)]
pub struct HostSeries {
    buffer: Buffer,
    cpus: Cpus,
    memory: Memory,
    vmstat: Vmstat,
    pressure: [Pressure; 3],
    disks: Disks,
    network: Network,
    numa: Numa,
    group: Option<Group>,
    processes: Option<ProcessClasses>,
    /// By source, in the order of the readings of a tick.
    told: Vec<Told>,
}

impl HostSeries {
    /// Reads nothing yet.
    pub fn new(options: HostSeriesOptions) -> HostSeries {
        HostSeries {
            buffer: Buffer::default(),
            cpus: Cpus::new(),
            memory: Memory::new(),
            vmstat: Vmstat::new(),
            pressure: Pressure::all(),
            disks: Disks::new(options.disks),
            network: Network::new(options.postmaster),
            numa: Numa::default(),
            group: options.cgroup_of.map(Group::new),
            processes: options.postmaster.map(ProcessClasses::new),
            told: Vec::new(),
        }
    }

    /// Reads everything once. The first call has gauges only. Call it at 1 Hz, at 10 Hz at most.
    ///
    /// One reading for each file or group of files, each with its own instant. A reason why something is missing is
    /// told once, until it changes. Some readings are there only every few seconds (what the processes read and write,
    /// their share of memory).
    pub fn tick(&mut self, host: &dyn HostAccess) -> Vec<Reading> {
        let (buffer, now) = (&mut self.buffer, Instant::now);
        let mut readings = vec![
            self.cpus.read(host, buffer, now()),
            self.cpus.read_load(host, buffer, now()),
            self.memory.read(host, buffer, now()),
            self.vmstat.read(host, buffer, now()),
        ];
        for pressure in &mut self.pressure {
            readings.push(pressure.read(host, buffer, now()));
        }
        readings.push(self.disks.read(host, buffer, now()));
        readings.push(self.network.read(host, buffer, now()));
        readings.push(self.network.read_snmp(host, buffer, now()));
        readings.push(self.network.read_netstat(host, buffer, now()));
        if let Some(group) = &mut self.group {
            readings.push(group.read(host, buffer, now()));
        }
        readings.extend(self.numa.read(host, buffer, now()));
        self.told
            .resize_with(self.told.len().max(readings.len()), Told::default);
        for (told, reading) in self.told.iter_mut().zip(&mut readings) {
            told.filter(reading);
        }
        // These keep their own account of what was told: they are not all there at every tick.
        if let Some(processes) = &mut self.processes {
            processes.read(host, buffer, now(), &mut readings);
        }
        readings.retain(|reading| !reading.values.is_empty() || !reading.gaps.is_empty());
        readings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LocalHost;
    use crate::series::fixture::Tree;
    use std::collections::BTreeSet;
    use std::process::{Command, Stdio};

    fn find(readings: &[Reading], metric: &str, label: &str) -> Option<f64> {
        readings
            .iter()
            .flat_map(|reading| &reading.values)
            .find_map(|(key, value)| (key.metric == metric && key.label == label).then_some(*value))
    }

    /// Uses 0.3 s of CPU time in this thread, and has a child that reads.
    fn work() {
        let used = || {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            time.tv_sec * 1000 + time.tv_nsec / 1_000_000
        };
        let until = used() + 300;
        let mut sum = 0_u64;
        while used() < until {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
    }

    #[test]
    fn work_on_this_machine_is_seen() {
        let host = LocalHost::new();
        let me = std::process::id();
        let mut series = HostSeries::new(HostSeriesOptions {
            disks: None,
            postmaster: Some(me),
            cgroup_of: Some(me),
        });
        let first = series.tick(&host);
        assert!(first.iter().all(|reading| reading.since.is_none()));
        assert!(find(&first, "memory.total_bytes", "").is_some_and(|bytes| bytes > 0.0));
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        work();
        let second = series.tick(&host);
        assert!(find(&second, "cpu.user_ratio", "all").is_some_and(|ratio| ratio > 0.0));
        assert!(find(&second, "cpu.context_switches_per_s", "").is_some_and(|rate| rate > 0.0));
        assert!(find(&second, "vm.pgfault_per_s", "").is_some_and(|rate| rate > 0.0));
        assert!(find(&second, "process.cpu_ratio", "postmaster").is_some_and(|ratio| ratio > 0.0));
        // No server's title: it counts among those that have not got one.
        assert!(find(&second, "process.count", "starting").is_some_and(|count| count >= 1.0));
        drop(child.stdin.take());
        child.wait().unwrap();
        let third = series.tick(&host);
        for (key, value) in [&first, &second, &third]
            .into_iter()
            .flatten()
            .flat_map(|r| &r.values)
        {
            assert!(value.is_finite() && *value >= 0.0, "{key:?} {value}");
        }
        // Nothing is told twice while it stays as it is.
        let told = |readings: &[Reading]| -> BTreeSet<(String, String)> {
            let gaps = readings.iter().flat_map(|reading| &reading.gaps);
            gaps.map(|gap| (gap.source.clone(), gap.reason.clone())).collect()
        };
        assert_eq!(told(&second).intersection(&told(&third)).count(), 0);
    }

    #[test]
    fn an_empty_machine_is_gaps_told_once() {
        let tree = Tree::new(&[]);
        let mut series = HostSeries::new(HostSeriesOptions {
            disks: Some(vec!["vda".to_owned()]),
            postmaster: Some(7),
            cgroup_of: Some(7),
        });
        let first = series.tick(&tree.host);
        assert!(first.iter().all(|reading| reading.values.is_empty()));
        assert_eq!(first.iter().map(|reading| reading.gaps.len()).sum::<usize>(), 14);
        assert!(series.tick(&tree.host).is_empty());
    }
}
