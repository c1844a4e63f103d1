//! The functions in which a server's processes spend their CPU time, from samples of all CPUs by a
//! clock of the kernel: no counter of the CPU is needed.

use super::row::FunctionRow;
use super::symbols::{Functions, Mapping};
use crate::access::{HostAccess, LocalHost};
use crate::beneath::read_whole;
use crate::process::{children, online_cpus};
use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, SampleFlag, Sampler};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Instant;

/// Samples of each CPU per second: not a divisor of what happens every so many milliseconds.
const SAMPLES_PER_S: u64 = 99;
/// Functions that are shown.
const ROWS_MAX: usize = 50;
/// Pages of each CPU's samples: those of about a minute.
const PAGES: usize = 64;
/// Of a record's header: what the CPU was doing, and that it was in the kernel.
const CPU_MODE: u16 = 7;
const IN_KERNEL: u16 = 1;
/// Files whose functions are kept.
const FILES_MAX: usize = 1000;
/// A program with its symbols. Larger ones are not read.
const PROGRAM_BYTES_MAX: u64 = 128 << 20;

/// Where an address was seen, and how often.
type Counts = BTreeMap<(u32, bool, u64), u64>;

/// Samples of what all CPUs do, those of a server's processes among them.
pub struct FunctionProfile {
    samplers: Vec<Sampler>,
    since: Instant,
    /// Processes of the server at the last call: some have ended since.
    known: BTreeSet<u32>,
    files: BTreeMap<(String, u64), Functions>,
    /// Made when a sample is in the kernel.
    kernel: Option<Functions>,
}

impl FunctionProfile {
    /// Samples from now on.
    ///
    /// # Errors
    ///
    /// Why the kernel does not allow it.
    pub fn open(host: &LocalHost) -> Result<FunctionProfile, String> {
        let cpus = online_cpus(host).ok_or("the kernel does not list its CPUs")?;
        let why = |error: io::Error| {
            let paranoid = host
                .read_trimmed("/proc/sys/kernel/perf_event_paranoid")
                .unwrap_or_else(|_| "unknown".to_owned());
            format!(
                "no functions: samples of all CPUs need CAP_PERFMON or kernel.perf_event_paranoid = 0 or less, and it is \
                 {paranoid} ({error})"
            )
        };
        let samplers: io::Result<Vec<Sampler>> = cpus.into_iter().map(sampler).collect();
        Ok(FunctionProfile {
            samplers: samplers.map_err(why)?,
            since: Instant::now(),
            known: BTreeSet::new(),
            files: BTreeMap::new(),
            kernel: None,
        })
    }

    /// The functions of a server's processes since the last call, the most expensive first.
    pub fn take(&mut self, host: &LocalHost, postmaster: u32) -> Vec<FunctionRow> {
        let now = Instant::now();
        let seconds = now.duration_since(self.since).as_secs_f64();
        self.since = now;
        let living: BTreeSet<u32> = children(host, postmaster)
            .into_iter()
            .chain([postmaster])
            .collect();
        let counts = self.counts(&living);
        self.known = living;
        let mut mapped: BTreeMap<u32, Vec<Mapping>> = BTreeMap::new();
        let mut found: BTreeMap<(String, String), u64> = BTreeMap::new();
        for ((pid, in_kernel, address), count) in counts {
            let name = match in_kernel {
                true => self.of_kernel(host, address),
                false => {
                    let of = mapped
                        .entry(pid)
                        .or_insert_with(|| mappings(host, pid, postmaster));
                    self.of_program(host, pid, of, address)
                }
            };
            *found.entry(name).or_default() += count;
        }
        rows(found, seconds)
    }

    fn counts(&mut self, living: &BTreeSet<u32>) -> Counts {
        let mut counts = Counts::new();
        for sampler in &mut self.samplers {
            while let Some(record) = sampler.next_record() {
                let in_kernel = record.misc() & CPU_MODE == IN_KERNEL;
                let Ok(Record::Sample(sample)) = record.parse_record() else {
                    continue;
                };
                let Some((pid, address)) = sample.pid().zip(sample.ip()) else {
                    continue;
                };
                if living.contains(&pid) || self.known.contains(&pid) {
                    *counts.entry((pid, in_kernel, address)).or_default() += 1;
                }
            }
        }
        counts
    }

    fn of_kernel(&mut self, host: &LocalHost, address: u64) -> (String, String) {
        let kernel = self.kernel.get_or_insert_with(|| {
            let list = host.read("/proc/kallsyms").unwrap_or_default();
            Functions::of_kernel(&list)
        });
        (or_unknown(kernel.at(address)), "kernel".to_owned())
    }

    fn of_program(
        &mut self,
        host: &LocalHost,
        pid: u32,
        mapped: &[Mapping],
        address: u64,
    ) -> (String, String) {
        let place = mapped
            .iter()
            .find_map(|mapping| Some((mapping, mapping.offset_of(address)?)));
        let Some((mapping, offset)) = place else {
            // Code that was compiled while it ran, or the kernel's page in each process.
            return (or_unknown(None), "no file".to_owned());
        };
        if self.files.len() >= FILES_MAX {
            self.files.clear();
        }
        let functions = self.files.entry(mapping.file.clone()).or_insert_with(|| {
            let program = program(host, pid, mapping);
            program.map_or_else(|_| Functions::default(), |bytes| Functions::of_program(&bytes))
        });
        (or_unknown(functions.at_offset(offset)), mapping.name())
    }
}

/// What a process has mapped; one that has ended had what its parent has.
fn mappings(host: &LocalHost, pid: u32, postmaster: u32) -> Vec<Mapping> {
    let of = |pid: u32| Mapping::all(&host.read(&format!("/proc/{pid}/maps")).unwrap_or_default());
    let own = of(pid);
    if own.is_empty() { of(postmaster) } else { own }
}

/// A program or library that a process has mapped: the very file, for which root's rights are
/// needed; without these what is at its path.
fn program(host: &LocalHost, pid: u32, mapping: &Mapping) -> io::Result<Vec<u8>> {
    let mapped = host.regular(&format!("/proc/{pid}/map_files/{}", mapping.range));
    let file = match mapped {
        Err(_) if !rustix::process::geteuid().is_root() => {
            host.regular(&format!("/proc/{pid}/root{}", mapping.path))
        }
        other => other,
    };
    read_whole(&file?, PROGRAM_BYTES_MAX)
}

/// The functions with the most samples of so many seconds, from counts by function and file.
#[expect(clippy::cast_precision_loss, reason = "counts of samples")]
fn rows(counts: BTreeMap<(String, String), u64>, seconds: f64) -> Vec<FunctionRow> {
    let all = seconds * SAMPLES_PER_S as f64;
    if all <= 0.0 {
        return Vec::new();
    }
    let mut rows: Vec<FunctionRow> = counts
        .into_iter()
        .map(|((function, file), count)| FunctionRow {
            function,
            file,
            cpus: count as f64 / all,
        })
        .collect();
    rows.sort_by(|a, b| {
        b.cpus
            .total_cmp(&a.cpus)
            .then_with(|| a.function.cmp(&b.function))
    });
    rows.truncate(ROWS_MAX);
    rows
}

fn or_unknown(name: Option<String>) -> String {
    name.unwrap_or_else(|| "unknown".to_owned())
}

fn sampler(cpu: u32) -> io::Result<Sampler> {
    let cpu = usize::try_from(cpu).map_err(io::Error::other)?;
    Builder::new(Software::CPU_CLOCK)
        .any_pid()
        .one_cpu(cpu)
        .exclude_kernel(false)
        .sample(SampleFlag::IP)
        .sample(SampleFlag::TID)
        .sample_frequency(SAMPLES_PER_S)
        .enabled(true)
        .build()?
        .sampled(PAGES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[inline(never)]
    fn kept_busy() -> u64 {
        let end = Instant::now() + Duration::from_millis(50);
        let mut sum = 0_u64;
        while Instant::now() < end {
            for i in 0..10_000_u64 {
                sum = std::hint::black_box(sum.wrapping_add(i));
            }
        }
        sum
    }

    #[test]
    fn functions_come_by_the_cpus_that_they_keep_busy() {
        let of = |function: &str| (function.to_owned(), "postgres".to_owned());
        let counts = BTreeMap::from([(of("a"), 99), (of("b"), 297), (of("c"), 99)]);
        let found = rows(counts.clone(), 2.0);
        let found: Vec<(&str, f64)> = found.iter().map(|row| (&*row.function, row.cpus)).collect();
        assert_eq!(found, [("b", 1.5), ("a", 0.5), ("c", 0.5)]);
        assert!(rows(counts, 0.0).is_empty());
    }

    /// Where samples are not allowed there is a reason.
    #[test]
    fn the_function_that_keeps_this_process_busy_is_found() {
        let host = LocalHost::new();
        let mut profile = match FunctionProfile::open(&host) {
            Ok(profile) => profile,
            Err(why) => return assert!(why.contains("perf_event_paranoid"), "{why}"),
        };
        let mut seen = Vec::new();
        let is_found = (0..100).any(|_| {
            kept_busy();
            seen = profile.take(&host, std::process::id());
            let mut rows = seen.iter();
            rows.any(|row| row.function.contains("kept_busy") && row.file.starts_with("pgdyno_host"))
        });
        assert!(is_found, "{seen:?}");
    }
}
