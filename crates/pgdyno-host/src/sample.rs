//! Samples of a host, and the rates between two of them.

use crate::access::{HostAccess, HostError};
use serde::{Deserialize, Serialize};

/// What the host did in one interval. A value that could not be read is absent, never zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct HostSample {
    /// Share of all CPUs that was busy, 0 to 1.
    pub cpu_busy: Option<f64>,
    /// Share of all CPUs that waited for I/O.
    pub cpu_iowait: Option<f64>,
    /// Share of all CPUs that the hypervisor gave to someone else.
    pub cpu_steal: Option<f64>,
    /// Bytes per second read from the disk of the data.
    pub disk_read_bytes_per_s: Option<f64>,
    /// Bytes per second written to it.
    pub disk_write_bytes_per_s: Option<f64>,
    /// Requests per second, reads and writes.
    pub disk_requests_per_s: Option<f64>,
    /// Dirty page cache at the end of the interval.
    pub dirty_bytes: Option<f64>,
}

/// /proc/diskstats counts in sectors of this size, whatever the device's own is.
const SECTOR_BYTES: u64 = 512;

#[derive(Debug, Clone, Copy, Default)]
struct Counters {
    cpu: Option<Cpu>,
    disk: Option<Disk>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Cpu {
    busy: u64,
    idle: u64,
    iowait: u64,
    steal: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Disk {
    requests: u64,
    read_bytes: u64,
    written_bytes: u64,
}

/// Keeps the last counters and turns them into rates.
pub struct HostSampler {
    disk: Option<String>,
    last: Counters,
}

impl HostSampler {
    /// Starts with the present counters; `disk` is a name in /sys/block.
    pub fn new(host: &dyn HostAccess, disk: Option<String>) -> HostSampler {
        let last = read_counters(host, disk.as_deref());
        HostSampler { disk, last }
    }

    /// What happened since the last call, `interval_s` seconds ago. A counter that went backwards gives no value.
    pub fn sample(&mut self, host: &dyn HostAccess, interval_s: f64) -> HostSample {
        let now = read_counters(host, self.disk.as_deref());
        let before = std::mem::replace(&mut self.last, now);
        let mut sample = HostSample {
            dirty_bytes: host
                .read("/proc/meminfo")
                .ok()
                .and_then(|text| meminfo_bytes(&text, "Dirty")),
            ..HostSample::default()
        };
        if let (Some(a), Some(b)) = (before.cpu, now.cpu) {
            let parts = [
                (a.busy, b.busy),
                (a.idle, b.idle),
                (a.iowait, b.iowait),
                (a.steal, b.steal),
            ]
            .map(difference);
            if let [Some(busy), Some(idle), Some(iowait), Some(steal)] = parts {
                let total: f64 = busy + idle + iowait + steal;
                if total > 0.0 {
                    sample.cpu_busy = Some(busy / total);
                    sample.cpu_iowait = Some(iowait / total);
                    sample.cpu_steal = Some(steal / total);
                }
            }
        }
        if let (Some(a), Some(b)) = (before.disk, now.disk) {
            let per_s = |pair| difference(pair).map(|d| d / interval_s);
            sample.disk_requests_per_s = per_s((a.requests, b.requests));
            sample.disk_read_bytes_per_s = per_s((a.read_bytes, b.read_bytes));
            sample.disk_write_bytes_per_s = per_s((a.written_bytes, b.written_bytes));
        }
        sample
    }
}

#[expect(clippy::cast_precision_loss, reason = "rates of kernel counters")]
fn difference((before, now): (u64, u64)) -> Option<f64> {
    now.checked_sub(before).map(|d| d as f64)
}

fn read_counters(host: &dyn HostAccess, disk: Option<&str>) -> Counters {
    let read = |path: &str| -> Result<String, HostError> { host.read(path) };
    Counters {
        cpu: read("/proc/stat").ok().and_then(|text| parse_cpu(&text)),
        disk: disk.and_then(|disk| {
            read("/proc/diskstats")
                .ok()
                .and_then(|text| parse_disk(&text, disk))
        }),
    }
}

/// First line of /proc/stat: user nice system idle iowait irq softirq steal (proc(5)); guest is part of user.
fn parse_cpu(text: &str) -> Option<Cpu> {
    let mut fields = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let mut next = || fields.next()?.parse::<u64>().ok();
    let (user, nice, system, idle) = (next()?, next()?, next()?, next()?);
    let (iowait, irq, softirq) = (next()?, next()?, next()?);
    let steal = next().unwrap_or(0);
    let busy = [user, nice, system, irq, softirq]
        .into_iter()
        .try_fold(0_u64, u64::checked_add)?;
    Some(Cpu {
        busy,
        idle,
        iowait,
        steal,
    })
}

/// Fields of /proc/diskstats as Documentation/admin-guide/iostats.rst numbers them.
fn parse_disk(text: &str, disk: &str) -> Option<Disk> {
    let line = text
        .lines()
        .find(|line| line.split_whitespace().nth(2) == Some(disk))?;
    let fields: Vec<u64> = line
        .split_whitespace()
        .skip(3)
        .map_while(|field| field.parse().ok())
        .collect();
    Some(Disk {
        requests: fields.first()?.checked_add(*fields.get(4)?)?,
        read_bytes: fields.get(2)?.checked_mul(SECTOR_BYTES)?,
        written_bytes: fields.get(6)?.checked_mul(SECTOR_BYTES)?,
    })
}

/// A line of /proc/meminfo in bytes.
#[expect(clippy::cast_precision_loss, reason = "a gauge")]
pub(crate) fn meminfo_bytes(text: &str, name: &str) -> Option<f64> {
    let rest = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let mut fields = rest.split_whitespace();
    let value: u64 = fields.next()?.parse().ok()?;
    let scale = if fields.next() == Some("kB") { 1024 } else { 1 };
    Some(value.checked_mul(scale)? as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::LocalHost;
    use proptest::prelude::*;
    use std::fs;

    #[test]
    fn two_samples_make_rates() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc")).unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join("proc").join(name), text).unwrap();
        write("stat", "cpu  100 0 50 800 50 0 0 0 0 0\n");
        write("diskstats", " 254 0 vda 10 0 80 1 20 0 160 2 0 0 0\n");
        write("meminfo", "MemTotal:  1000 kB\nDirty:  12 kB\n");
        let host = LocalHost::at(dir.path());
        let mut sampler = HostSampler::new(&host, Some("vda".into()));
        write("stat", "cpu  150 0 70 820 60 0 0 0 0 0\n");
        write("diskstats", " 254 0 vda 20 0 180 1 30 0 360 2 0 0 0\n");
        let sample = sampler.sample(&host, 2.0);
        assert_eq!(sample.cpu_busy, Some(0.7));
        assert_eq!(sample.cpu_iowait, Some(0.1));
        assert_eq!(sample.disk_requests_per_s, Some(10.0));
        assert_eq!(sample.disk_read_bytes_per_s, Some(100.0 * 512.0 / 2.0));
        assert_eq!(sample.dirty_bytes, Some(12.0 * 1024.0));
    }

    #[test]
    fn a_counter_that_restarts_or_a_missing_file_is_a_gap() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc")).unwrap();
        fs::write(dir.path().join("proc/stat"), "cpu  100 0 50 800 50 0 0 0\n").unwrap();
        let host = LocalHost::at(dir.path());
        let mut sampler = HostSampler::new(&host, Some("vda".into()));
        fs::write(dir.path().join("proc/stat"), "cpu  1 0 0 8 0 0 0 0\n").unwrap();
        assert_eq!(sampler.sample(&host, 1.0), HostSample::default());
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in ".{0,200}") {
            let _ = parse_cpu(&format!("cpu {text}"));
            let _ = parse_disk(&text, "vda");
            let _ = meminfo_bytes(&text, "Dirty");
        }
    }
}
