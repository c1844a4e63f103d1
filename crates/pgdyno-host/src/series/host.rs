//! All series of a host at one tick.

use super::Reading;
use super::cgroup::Group;
use super::cpu::Cpus;
use super::disks::Disks;
use super::energy::Energy;
use super::files::Buffer;
use super::kernel_threads::KernelThreads;
use super::memory::Memory;
use super::network::Network;
use super::numa::Numa;
use super::pressure::Pressure;
use super::processes::ProcessClasses;
use super::step::ReportedGaps;
use super::vmstat::Vmstat;
use crate::access::HostAccess;
use std::time::Instant;

/// What of a host is watched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostSeriesOptions {
    /// Block devices by their names in /sys/block; `None`: all whole devices that have ever been
    /// used.
    pub disks: Option<Vec<String>>,
    /// The server whose processes are watched, and whose network it is.
    pub postmaster: Option<u32>,
    /// A process of the control group that is watched; the server's main process, mostly.
    pub cgroup_of: Option<u32>,
}

/// Samples a host: CPUs, memory, pressure, devices, network, power, NUMA nodes, the kernel's
/// threads, the server's control group and its processes by class. docs/reference/metrics.md lists
/// its metrics.
#[derive(Debug)]
pub struct HostSeries {
    buffer: Buffer,
    cpus: Cpus,
    memory: Memory,
    vmstat: Vmstat,
    pressure: [Pressure; 3],
    disks: Disks,
    network: Network,
    energy: Energy,
    numa: Numa,
    kernel_threads: KernelThreads,
    group: Option<Group>,
    processes: Option<ProcessClasses>,
    /// By source, in the order of the readings of a tick.
    reported: Vec<ReportedGaps>,
}

impl HostSeries {
    /// A series that has read nothing yet.
    pub fn new(options: HostSeriesOptions) -> HostSeries {
        HostSeries {
            buffer: Buffer::default(),
            cpus: Cpus::new(),
            memory: Memory::new(),
            vmstat: Vmstat::new(),
            pressure: Pressure::all(),
            disks: Disks::new(options.disks),
            network: Network::new(options.postmaster),
            energy: Energy::default(),
            numa: Numa::default(),
            kernel_threads: KernelThreads::default(),
            group: options.cgroup_of.map(Group::new),
            processes: options.postmaster.map(ProcessClasses::new),
            reported: Vec::new(),
        }
    }

    /// Reads everything once. The first call has gauges only. Call it at 1 Hz, at 10 Hz at most.
    ///
    /// One reading for each file or group of files, each with its own instant. A reason why
    /// something is missing is reported once, until it changes. Some readings are there only every
    /// few seconds (what the processes read and write, their share of memory).
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
        readings.push(self.energy.read(host, buffer, now()));
        readings.push(self.kernel_threads.read(host, buffer, now()));
        readings.extend(self.numa.read(host, buffer, now()));
        self.reported
            .resize_with(self.reported.len().max(readings.len()), ReportedGaps::default);
        for (reported, reading) in self.reported.iter_mut().zip(&mut readings) {
            reported.filter(reading);
        }
        // These keep their own account of what was reported: they are not all there at every tick.
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
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    fn find(readings: &[Reading], metric: &str, label: &str) -> Option<f64> {
        readings
            .iter()
            .flat_map(|reading| &reading.values)
            .find_map(|(key, value)| (key.metric == metric && key.label == label).then_some(*value))
    }

    /// For each line that it is given, lets a child of its own count to 100,000.
    const SERVER: &str =
        "while read line; do (i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done); echo; done";

    #[test]
    fn work_on_this_machine_is_seen() {
        let host = LocalHost::new();
        let mut server = Command::new("sh")
            .args(["-c", SERVER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut input, mut output) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
        let mut work = || {
            input.write_all(b"\n").unwrap();
            output.read_exact(&mut [0]).unwrap();
        };
        work();
        let mut series = HostSeries::new(HostSeriesOptions {
            disks: None,
            postmaster: Some(server.id()),
            cgroup_of: Some(server.id()),
        });
        let first = series.tick(&host);
        assert!(first.iter().all(|reading| reading.since.is_none()));
        assert!(find(&first, "memory.total_bytes", "").is_some_and(|bytes| bytes > 0.0));
        assert!(find(&first, "process.rss_bytes", "postmaster").is_some_and(|bytes| bytes > 0.0));
        work();
        let second = series.tick(&host);
        for (metric, label) in [
            ("cpu.context_switches_per_s", ""),
            ("cpu.forks_per_s", ""),
            ("vm.pgfault_per_s", ""),
            // It has started and ended between the two.
            ("process.cpu_ratio", "ended"),
            ("process.minor_faults_per_s", "ended"),
        ] {
            let value = find(&second, metric, label);
            assert!(
                value.is_some_and(|value| value > 0.0),
                "{metric} {label} {value:?}"
            );
        }
        let user = ["cpu.user_ratio", "cpu.nice_ratio"].map(|metric| find(&second, metric, "all"));
        assert!(user.iter().flatten().sum::<f64>() > 0.0, "{user:?}");
        drop(input);
        server.wait().unwrap();
        let third = series.tick(&host);
        for (key, value) in [&first, &second, &third]
            .into_iter()
            .flatten()
            .flat_map(|r| &r.values)
        {
            assert!(value.is_finite() && *value >= 0.0, "{key:?} {value}");
        }
        // Nothing is reported twice while it stays as it is.
        let reported = |readings: &[Reading]| -> BTreeSet<(String, String)> {
            let gaps = readings.iter().flat_map(|reading| &reading.gaps);
            gaps.map(|gap| (gap.source.clone(), gap.reason.clone())).collect()
        };
        assert_eq!(reported(&second).intersection(&reported(&third)).count(), 0);
    }

    #[test]
    fn an_empty_machine_is_gaps_reported_once() {
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
