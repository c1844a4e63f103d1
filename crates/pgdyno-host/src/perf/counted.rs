//! Counters of the CPU and of the kernel's scheduler on a server's processes, by
//! perf_event_open(2).
//!
//! A counter on the server's main process is inherited by every process that it starts from then
//! on, and its value holds theirs; each process that was there before has counters of its own. More
//! counters than the CPU has are given to it by turns: a count is scaled by the time that the
//! counter was wanted over the time that it ran.

use crate::access::{HostAccess, LocalHost};
use crate::process::children;
use crate::series::{Gap, Key, Reading};
use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Hardware, Raw, Software};
use perf_event::{Builder, Counter};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::time::{Duration, Instant};

/// Files that the rest of the program may need open besides the counters.
const OTHER_FILES: u64 = 512;

/// An event that the kernel counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Hardware(Hardware),
    /// (which cache, operation, hit or miss)
    Cache(CacheId, CacheOp, CacheResult),
    Raw(u64),
    Software(Software),
}

/// One kind of counter with its metric.
#[derive(Debug, Clone, Copy)]
struct Kind {
    metric: &'static str,
    event: Event,
    /// What one count is in the metric's unit.
    scale: f64,
}

const fn kind(metric: &'static str, event: Event) -> Kind {
    Kind {
        metric,
        event,
        scale: 1.0,
    }
}

const fn dtlb(metric: &'static str, operation: CacheOp, result: CacheResult) -> Kind {
    kind(metric, Event::Cache(CacheId::DTLB, operation, result))
}

const KINDS: [Kind; 14] = [
    Kind {
        metric: "perf.task_clock_ms",
        event: Event::Software(Software::TASK_CLOCK),
        scale: 1e-6,
    },
    kind(
        "perf.context_switches",
        Event::Software(Software::CONTEXT_SWITCHES),
    ),
    kind("perf.migrations", Event::Software(Software::CPU_MIGRATIONS)),
    kind("perf.page_faults", Event::Software(Software::PAGE_FAULTS)),
    kind("perf.cycles", Event::Hardware(Hardware::CPU_CYCLES)),
    kind("perf.instructions", Event::Hardware(Hardware::INSTRUCTIONS)),
    dtlb("perf.dtlb_loads", CacheOp::READ, CacheResult::ACCESS),
    dtlb("perf.dtlb_load_misses", CacheOp::READ, CacheResult::MISS),
    dtlb("perf.dtlb_stores", CacheOp::WRITE, CacheResult::ACCESS),
    dtlb("perf.dtlb_store_misses", CacheOp::WRITE, CacheResult::MISS),
    kind(
        "perf.itlb_loads",
        Event::Cache(CacheId::ITLB, CacheOp::READ, CacheResult::ACCESS),
    ),
    kind(
        "perf.itlb_load_misses",
        Event::Cache(CacheId::ITLB, CacheOp::READ, CacheResult::MISS),
    ),
    kind(
        "perf.llc_loads",
        Event::Cache(CacheId::LL, CacheOp::READ, CacheResult::ACCESS),
    ),
    kind(
        "perf.llc_load_misses",
        Event::Cache(CacheId::LL, CacheOp::READ, CacheResult::MISS),
    ),
];

const WALK_LOADS: &str = "perf.dtlb_load_walk_cycles";
const WALK_STORES: &str = "perf.dtlb_store_walk_cycles";

/// One counter on one process.
#[derive(Debug)]
struct Open {
    /// Place in the list of kinds.
    kind: usize,
    counter: Counter,
    last: Value,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Value {
    count: u64,
    enabled: Duration,
    running: Duration,
}

/// Counters on every process of a server, those that it starts later too.
#[derive(Debug)]
pub struct PerfCounters {
    kinds: Vec<Kind>,
    open: Vec<Open>,
    refused: Vec<Gap>,
    /// When the counters were last read; that they are refused is reported in the first reading.
    since: Option<Instant>,
    is_reported: bool,
}

impl PerfCounters {
    /// Counts on the process and its living children from now on. Never fails: what the machine
    /// refuses is in [`PerfCounters::refused`].
    pub fn open(postmaster: u32) -> PerfCounters {
        PerfCounters::open_on(&LocalHost::new(), postmaster)
    }

    fn open_on(host: &dyn HostAccess, postmaster: u32) -> PerfCounters {
        let mut counters = PerfCounters {
            kinds: KINDS.to_vec(),
            open: Vec::new(),
            refused: Vec::new(),
            since: None,
            is_reported: false,
        };
        match page_walks(&host.read("/proc/cpuinfo").unwrap_or_default()) {
            Some(walks) => counters.kinds.extend(walks),
            None => counters.refuse(
                "perf.dtlb_*_walk_cycles",
                "the event is not known for this CPU".to_owned(),
            ),
        }
        counters.open_parent(host, postmaster);
        counters.since = Some(Instant::now());
        counters
    }

    fn refuse(&mut self, source: &str, reason: String) {
        self.refused.push(Gap {
            source: source.to_owned(),
            reason,
        });
    }

    fn open_parent(&mut self, host: &dyn HostAccess, postmaster: u32) {
        // One that starts between this list and the last counter of the parent inherits those that
        // were opened before it: some microseconds of one process are counted in part.
        let before = children(host, postmaster);
        let paranoid = host
            .read_trimmed("/proc/sys/kernel/perf_event_paranoid")
            .unwrap_or_else(|_| "unknown".to_owned());
        let mut user_only = false;
        let mut usable = Vec::new();
        for place in 0..self.kinds.len() {
            let kind = self.kinds[place];
            let mut outcome = kind.event.open(postmaster, user_only);
            if !user_only && outcome.as_ref().is_err_and(is_denied) {
                let in_user_mode = kind.event.open(postmaster, true);
                if in_user_mode.is_ok() {
                    user_only = true;
                    let why = format!(
                        "only what is done in user mode is counted: kernel.perf_event_paranoid is {paranoid}, and \
                         CAP_PERFMON is missing"
                    );
                    self.refuse("perf", why);
                    outcome = in_user_mode;
                }
            }
            match outcome {
                Ok(counter) => {
                    usable.push(place);
                    self.keep(place, counter);
                }
                Err(error) => self.refuse(kind.metric, why_refused(&error, &paranoid)),
            }
        }
        self.open_children(&before, &usable, user_only);
    }

    fn open_children(&mut self, pids: &[u32], usable: &[usize], user_only: bool) {
        let wanted = (pids.len() * usable.len()) as u64;
        let room = file_room(wanted);
        let per_process = usable.len().max(1) as u64;
        let fits = usize::try_from(room / per_process).unwrap_or(usize::MAX);
        if fits < pids.len() {
            let why = format!(
                "{} of {} processes that were there before are not counted: the limit of open files (ulimit -n) is \
                 too low",
                pids.len() - fits,
                pids.len()
            );
            self.refuse("perf, processes", why);
        }
        for pid in pids.iter().take(fits) {
            for place in usable {
                match self.kinds[*place].event.open(*pid, user_only) {
                    Ok(counter) => self.keep(*place, counter),
                    // It has ended meanwhile.
                    Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => break,
                    Err(error) => {
                        self.refuse(&format!("perf, process {pid}"), error.to_string());
                        break;
                    }
                }
            }
        }
    }

    fn keep(&mut self, kind: usize, mut counter: Counter) {
        // What it counted between being opened and read here is of no interval.
        let last = read(&mut counter).unwrap_or_default();
        self.open.push(Open { kind, counter, last });
    }

    /// What could not be counted, and what it would need: once for each metric.
    pub fn refused(&self) -> &[Gap] {
        &self.refused
    }

    /// Growth of each counter since the last call (or since it was opened), scaled where a counter
    /// ran only a part of the time. `perf.counted_ratio` is that part where it is less than all.
    /// The first reading has what is refused too.
    pub fn tick(&mut self) -> Reading {
        let at = Instant::now();
        let mut reading = Reading::new(at, self.since.replace(at));
        if !std::mem::replace(&mut self.is_reported, true) {
            reading.gaps.extend_from_slice(&self.refused);
        }
        let mut sums: Vec<Option<Sum>> = vec![None; self.kinds.len()];
        for open in &mut self.open {
            let metric = self.kinds[open.kind].metric;
            match read(&mut open.counter) {
                Ok(now) => {
                    let sum = sums[open.kind].get_or_insert_default();
                    sum.add(open.last, now);
                    open.last = now;
                }
                Err(error) => reading.gap(metric, error),
            }
        }
        for (kind, sum) in self.kinds.iter().zip(sums) {
            let Some(sum) = sum else { continue };
            let Some(count) = sum.whole() else {
                reading.gap(
                    kind.metric,
                    "the counters did not run at all: others had the CPU's counters",
                );
                continue;
            };
            reading.push(Key::one(kind.metric), count * kind.scale);
            if sum.running < sum.enabled {
                let ratio = sum.running.as_secs_f64() / sum.enabled.as_secs_f64();
                reading.push(Key::of("perf.counted_ratio", kind.metric), ratio);
            }
        }
        reading
    }
}

/// What the counters of one kind have grown by on all processes.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    /// Of processes on which the counter ran, scaled.
    count: f64,
    enabled: Duration,
    running: Duration,
    /// Of those processes that worked so little that the counter's turn never came.
    never_ran: Duration,
}

impl Sum {
    /// The formula of perf_event_open(2): count x enabled / running, on what has grown.
    #[expect(clippy::cast_precision_loss, reason = "differences of counters")]
    fn add(&mut self, before: Value, now: Value) {
        let enabled = now.enabled.saturating_sub(before.enabled);
        let running = now.running.saturating_sub(before.running);
        let count = now.count.saturating_sub(before.count) as f64;
        self.enabled += enabled;
        self.running += running;
        if running.is_zero() {
            // A process that slept throughout has neither.
            self.never_ran += enabled;
        } else {
            self.count += count * (enabled.as_secs_f64() / running.as_secs_f64()).max(1.0);
        }
    }

    /// All of it, with the processes on which the counter never ran at the rate of the others;
    /// `None` where it ran on none.
    fn whole(&self) -> Option<f64> {
        if self.never_ran.is_zero() {
            return Some(self.count);
        }
        let counted = self.enabled.saturating_sub(self.never_ran);
        (!counted.is_zero()).then(|| self.count * (self.enabled.as_secs_f64() / counted.as_secs_f64()))
    }
}

impl Event {
    fn open(self, pid: u32, user_only: bool) -> io::Result<Counter> {
        let mut builder = match self {
            Event::Hardware(event) => Builder::new(event),
            Event::Cache(which, operation, result) => Builder::new(Cache {
                which,
                operation,
                result,
            }),
            Event::Raw(config) => Builder::new(Raw::new(config)),
            Event::Software(event) => Builder::new(event),
        };
        let pid = i32::try_from(pid).map_err(|_| io::Error::from(Errno::SRCH))?;
        builder
            .observe_pid(pid)
            .any_cpu()
            .inherit(true)
            .enabled(true)
            .exclude_kernel(user_only)
            .exclude_hv(user_only)
            .build()
    }
}

fn read(counter: &mut Counter) -> io::Result<Value> {
    let data = counter.read_full()?;
    Ok(Value {
        count: data.count(),
        enabled: data.time_enabled().unwrap_or_default(),
        running: data.time_running().unwrap_or_default(),
    })
}

fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

fn why_refused(error: &io::Error, paranoid: &str) -> String {
    let is = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
    if is_denied(error) {
        format!(
            "refused: kernel.perf_event_paranoid is {paranoid}; it needs CAP_PERFMON, or 2 or less and the server's \
             own user ({error})"
        )
    } else if [Errno::NOENT, Errno::OPNOTSUPP, Errno::NODEV, Errno::INVAL]
        .into_iter()
        .any(is)
    {
        format!(
            "this machine has no such counter: a virtual machine without a PMU, or a CPU without the event ({error})"
        )
    } else if is(Errno::NOSYS) {
        "this kernel is built without performance events".to_owned()
    } else if is(Errno::SRCH) {
        "the process is gone".to_owned()
    } else {
        error.to_string()
    }
}

/// How many further files may be opened: the soft limit is raised for them as far as the hard one
/// allows.
fn file_room(wanted: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let needed = wanted + OTHER_FILES;
    let current = limit.current.unwrap_or(u64::MAX);
    if current >= needed {
        return wanted;
    }
    let raised = limit.maximum.unwrap_or(u64::MAX).min(needed);
    let outcome = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(raised),
            maximum: limit.maximum,
        },
    );
    let current = if outcome.is_ok() { raised } else { current };
    current.saturating_sub(OTHER_FILES)
}

/// Cycles in which a page walk for a load or a store was under way, by CPU model:
/// DTLB_LOAD_MISSES.WALK_ACTIVE and DTLB_STORE_MISSES.WALK_ACTIVE of Intel's event files (event,
/// unit mask 0x10, counter mask 1), from Skylake to Rocket Lake and from Golden Cove on.
fn page_walks(cpuinfo: &str) -> Option<[Kind; 2]> {
    let field = |name: &str| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim())
        })
    };
    if field("vendor_id")? != "GenuineIntel" || field("cpu family")? != "6" {
        return None;
    }
    let [loads, stores] = match field("model")?.parse::<u32>().ok()? {
        78 | 85 | 94 | 102 | 106 | 108 | 125 | 126 | 140 | 141 | 142 | 158 | 165 | 166 | 167 => [0x08, 0x49],
        143 | 151 | 154 | 173 | 174 | 183 | 186 | 191 | 207 => [0x12, 0x13],
        _ => return None,
    };
    let walk = |event: u64| Event::Raw(event | 0x10 << 8 | 1 << 24);
    Some([kind(WALK_LOADS, walk(loads)), kind(WALK_STORES, walk(stores))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    /// A process that does a bit of work for each line that it is given, in processes of its own
    /// too.
    const WORKER: &str =
        "while read line; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; /bin/true; echo; done";

    #[test]
    fn what_a_process_and_its_later_children_do_is_counted() {
        let mut worker = Command::new("sh")
            .args(["-c", WORKER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut input, mut output) = (worker.stdin.take().unwrap(), worker.stdout.take().unwrap());
        let mut work = || {
            input.write_all(b"\n").unwrap();
            output.read_exact(&mut [0]).unwrap();
        };
        // It is past its own start.
        work();
        let mut counters = PerfCounters::open(worker.id());
        work();
        let first = counters.tick();
        assert_eq!(first.gaps, counters.refused());
        let value = |reading: &Reading, metric: &str| reading.value(metric).unwrap_or_default();
        for metric in ["perf.task_clock_ms", "perf.page_faults", "perf.context_switches"] {
            assert!(value(&first, metric) > 0.0, "{metric}: {first:?}");
        }
        let idle = counters.tick();
        assert!(idle.gaps.is_empty() && idle.since == Some(first.at));
        assert!(value(&idle, "perf.task_clock_ms") < value(&first, "perf.task_clock_ms"));
        // A hardware counter is there or refused by name, never neither.
        for kind in &counters.kinds {
            let refused = counters.refused().iter().any(|gap| gap.source == kind.metric);
            assert!(refused != idle.value(kind.metric).is_some(), "{}", kind.metric);
        }
        drop(input);
        worker.wait().unwrap();
    }

    #[test]
    fn a_process_that_is_not_there_is_refused_by_name() {
        let mut counters = PerfCounters::open(u32::MAX);
        assert!(
            counters
                .refused()
                .iter()
                .any(|gap| gap.source == "perf.task_clock_ms")
        );
        assert!(counters.tick().values.is_empty());
    }

    #[test]
    fn a_count_is_scaled_by_the_part_of_the_time_in_which_it_ran() {
        let value = |count, enabled_ms, running_ms| Value {
            count,
            enabled: Duration::from_millis(enabled_ms),
            running: Duration::from_millis(running_ms),
        };
        let check = |processes: &[(Value, Value)], count: Option<f64>| {
            let mut sum = Sum::default();
            processes.iter().for_each(|(before, now)| sum.add(*before, *now));
            assert_eq!(sum.whole(), count, "{processes:?}");
        };
        let none = value(0, 0, 0);
        check(&[(none, value(100, 10, 10))], Some(100.0));
        check(&[(none, value(100, 40, 10))], Some(400.0));
        // Only what has grown counts, with the times that have.
        let before = value(100, 40, 10);
        check(&[(before, value(150, 50, 20))], Some(50.0));
        check(&[(before, before)], Some(0.0));
        check(&[(before, value(100, 50, 10))], None);
        // One process that hardly worked does not spoil the count of the others.
        check(
            &[(none, value(100, 40, 10)), (before, value(100, 80, 10))],
            Some(800.0),
        );
    }

    #[test]
    fn page_walks_are_known_for_some_cpus_only() {
        let check = |vendor: &str, family: u32, model: u32, raw: Option<u64>| {
            let cpuinfo = format!(
                "processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n"
            );
            let event = page_walks(&cpuinfo).map(|walks| walks[0].event);
            assert_eq!(event, raw.map(Event::Raw), "{vendor} {family} {model}");
        };
        check("GenuineIntel", 6, 85, Some(0x0100_1008));
        check("GenuineIntel", 6, 143, Some(0x0100_1012));
        check("GenuineIntel", 6, 1, None);
        check("AuthenticAMD", 25, 85, None);
        assert!(page_walks("vendor_id : GenuineIntel").is_none());
    }

    #[test]
    fn a_refusal_says_what_it_would_need() {
        let check = |errno: Errno, reason: &str| {
            let why = why_refused(&errno.into(), "3");
            assert!(why.contains(reason), "{why}");
        };
        check(Errno::ACCESS, "perf_event_paranoid is 3");
        check(Errno::PERM, "CAP_PERFMON");
        check(Errno::NOENT, "PMU");
        check(Errno::OPNOTSUPP, "PMU");
        check(Errno::NOSYS, "built without");
        check(Errno::MFILE, "open files");
    }
}
