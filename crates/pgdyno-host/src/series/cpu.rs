//! CPUs by mode from /proc/stat (proc(5)), and the load averages.

use super::files::{Buffer, Kept};
use super::step::{Before, Last, Named, WENT_BACK, lost, report_gone, same};
use super::{Key, Reading, growth};
use crate::access::{HostAccess, HostError};
use std::time::Instant;

/// Columns of a cpu line: user nice system idle iowait irq softirq steal guest guest_nice.
const COLUMNS: usize = 10;
const USER: usize = 0;
const NICE: usize = 1;
const IDLE: usize = 3;
const IOWAIT: usize = 4;
const GUEST: usize = 8;
const GUEST_NICE: usize = 9;

/// The metric of each column; guest_nice goes into guest.
const METRICS: [&str; GUEST_NICE] = [
    "cpu.user_ratio",
    "cpu.nice_ratio",
    "cpu.system_ratio",
    "cpu.idle_ratio",
    "cpu.iowait_ratio",
    "cpu.irq_ratio",
    "cpu.softirq_ratio",
    "cpu.steal_ratio",
    "cpu.guest_ratio",
];

/// The kernel's own documentation says that idle and iowait may decrease a little (another CPU may
/// finish the wait); in ticks of 10 ms. More than that is a counter that was restarted.
const IDLE_MAY_LOSE_TICKS: u64 = 100;

#[derive(Debug, Clone, PartialEq)]
struct Cpu {
    /// Name in /proc/stat, with "all" for the sum: "cpu0".
    name: String,
    ticks: [u64; COLUMNS],
    /// How many of them this kernel reports.
    columns: usize,
}

impl Named for Cpu {
    fn name(&self) -> &str {
        &self.name
    }
}

/// What of /proc/stat is used.
#[derive(Debug, Default, PartialEq)]
struct Stat {
    cpus: Vec<Cpu>,
    interrupts: Option<u64>,
    context_switches: Option<u64>,
    forks: Option<u64>,
    running: Option<u64>,
    blocked: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Cpus {
    stat: Kept,
    load: Kept,
    last: Last<Stat>,
}

impl Cpus {
    pub(super) fn new() -> Cpus {
        Cpus {
            stat: Kept::new("/proc/stat"),
            load: Kept::new("/proc/loadavg"),
            last: Last::default(),
        }
    }

    pub(super) fn read(&mut self, host: &dyn HostAccess, buffer: &mut Buffer, at: Instant) -> Reading {
        match self.stat.read(host, buffer).map(Stat::parse) {
            Ok(stat) => self.last.step(at, stat, fill),
            Err(error) => self.last.lost(at, &error),
        }
    }

    pub(super) fn read_load(&mut self, host: &dyn HostAccess, buffer: &mut Buffer, at: Instant) -> Reading {
        match self.load.read(host, buffer).and_then(parse_load) {
            Ok(load) => {
                let mut reading = Reading::new(at, None);
                for (metric, value) in ["load.1m", "load.5m", "load.15m"].into_iter().zip(load) {
                    reading.push(Key::one(metric), value);
                }
                reading
            }
            Err(error) => lost(at, &error),
        }
    }
}

impl Stat {
    fn parse(text: &str) -> Stat {
        let mut stat = Stat::default();
        for line in text.lines() {
            let mut fields = line.split_ascii_whitespace();
            let Some(name) = fields.next() else { continue };
            if let Some(number) = name.strip_prefix("cpu") {
                if number.bytes().all(|b| b.is_ascii_digit()) {
                    stat.cpus.push(Cpu::parse(name, fields));
                }
                continue;
            }
            let place = match name {
                "intr" => &mut stat.interrupts,
                "ctxt" => &mut stat.context_switches,
                "processes" => &mut stat.forks,
                "procs_running" => &mut stat.running,
                "procs_blocked" => &mut stat.blocked,
                _ => continue,
            };
            *place = fields.next().and_then(|field| field.parse().ok());
        }
        stat
    }
}

impl Cpu {
    fn parse<'a>(name: &str, fields: impl Iterator<Item = &'a str>) -> Cpu {
        let mut cpu = Cpu {
            name: if name == "cpu" { "all" } else { name }.to_owned(),
            ticks: [0; COLUMNS],
            columns: 0,
        };
        for (place, value) in cpu
            .ticks
            .iter_mut()
            .zip(fields.map_while(|field| field.parse().ok()))
        {
            *place = value;
            cpu.columns += 1;
        }
        cpu
    }

    /// Shares of the time between two reads by mode; they make 1 in all, guest apart from user.
    /// `None`: a counter was restarted. All zero: no tick has passed.
    fn ratios(&self, before: &Cpu) -> Option<[f64; GUEST_NICE]> {
        let mut grown = [0.0; COLUMNS];
        for (column, place) in grown.iter_mut().enumerate() {
            let (before, now) = (before.ticks[column], self.ticks[column]);
            let small_loss =
                (column == IDLE || column == IOWAIT) && before.saturating_sub(now) <= IDLE_MAY_LOSE_TICKS;
            *place = match growth(before, now) {
                None if small_loss => 0.0,
                grown => grown?,
            };
        }
        // The kernel counts a guest's time in user (nice) too.
        grown[USER] = (grown[USER] - grown[GUEST]).max(0.0);
        grown[NICE] = (grown[NICE] - grown[GUEST_NICE]).max(0.0);
        grown[GUEST] += grown[GUEST_NICE];
        let total: f64 = grown[..GUEST_NICE].iter().sum();
        let mut ratios = [0.0; GUEST_NICE];
        if total > 0.0 {
            for (ratio, grown) in ratios.iter_mut().zip(grown) {
                *ratio = grown / total;
            }
        }
        Some(ratios)
    }
}

fn fill(before: Option<Before<'_, Stat>>, now: &Stat, reading: &mut Reading) {
    #[expect(clippy::cast_precision_loss, reason = "numbers of tasks")]
    for (metric, value) in [("cpu.run_queue", now.running), ("cpu.blocked", now.blocked)] {
        match value {
            Some(value) => reading.push(Key::one(metric), value as f64),
            None => reading.gap(metric, "/proc/stat does not report it here"),
        }
    }
    if now.cpus.is_empty() {
        reading.gap("/proc/stat", "it has no line of a CPU");
    }
    let Some(Before { state, seconds }) = before else {
        return;
    };
    for (metric, before, now) in [
        ("cpu.interrupts_per_s", state.interrupts, now.interrupts),
        (
            "cpu.context_switches_per_s",
            state.context_switches,
            now.context_switches,
        ),
        ("cpu.forks_per_s", state.forks, now.forks),
    ] {
        match (before, now) {
            (Some(before), Some(now)) => match growth(before, now) {
                Some(grown) => reading.push(Key::one(metric), grown / seconds),
                None => reading.gap(metric, WENT_BACK),
            },
            _ => reading.gap(metric, "/proc/stat does not report it here"),
        }
    }
    fill_cpus(&state.cpus, &now.cpus, reading);
}

fn fill_cpus(before: &[Cpu], now: &[Cpu], reading: &mut Reading) {
    for (place, cpu) in now.iter().enumerate() {
        // A CPU that was switched on since has no state to compare with.
        let Some(before) = same(before, place, &cpu.name) else {
            continue;
        };
        let source = || format!("/proc/stat {}", cpu.name);
        let Some(ratios) = cpu.ratios(before) else {
            reading.gap(&source(), WENT_BACK);
            continue;
        };
        if ratios.iter().sum::<f64>() == 0.0 {
            reading.gap(&source(), "no tick has passed since the last read");
            continue;
        }
        for (metric, ratio) in METRICS.into_iter().zip(ratios).take(cpu.columns) {
            reading.push(Key::of(metric, cpu.name.as_str()), ratio);
        }
    }
    let columns = now.iter().map(|cpu| cpu.columns).min().unwrap_or(GUEST_NICE);
    for metric in METRICS.iter().skip(columns) {
        reading.gap(metric, "this kernel's /proc/stat has no such column");
    }
    report_gone(before, now, "/proc/stat", reading);
}

/// The three averages of /proc/loadavg.
fn parse_load(text: &str) -> Result<[f64; 3], HostError> {
    let mut fields = text.split_ascii_whitespace().map(str::parse::<f64>);
    match (fields.next(), fields.next(), fields.next()) {
        (Some(Ok(a)), Some(Ok(b)), Some(Ok(c))) if [a, b, c].iter().all(|v| v.is_finite() && *v >= 0.0) => {
            Ok([a, b, c])
        }
        _ => Err(HostError::Malformed {
            path: "/proc/loadavg".into(),
            line: 1,
            expected: "three load averages",
            found: text.chars().take(80).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::fixture::{Tree, gaps, has, has_no};
    use proptest::prelude::*;

    const REST: &str = "intr 500 0 0 7\nctxt 1000\nbtime 1795306737\nprocesses 50\nprocs_running 3\nprocs_blocked 1\n\
                        softirq 971763 0 65950\n";

    /// Two reads, two seconds apart.
    fn two(first: &str, second: &str) -> (Reading, Reading) {
        let mut tree = Tree::new(&[("/proc/stat", first)]);
        let mut cpus = Cpus::new();
        let (start, later) = (tree.at(0), tree.at(2));
        let one = cpus.read(&tree.host, &mut tree.buffer, start);
        tree.put(&[("/proc/stat", second)]);
        (one, cpus.read(&tree.host, &mut tree.buffer, later))
    }

    #[test]
    fn modes_are_shares_of_the_time_between_two_reads() {
        let (first, second) = two(
            &format!("cpu  100 10 50 800 50 1 2 3 20 5\ncpu0 100 10 50 800 50 1 2 3 20 5\n{REST}"),
            &format!(
                "cpu  150 20 60 910 60 1 2 13 40 10\ncpu0 150 20 60 910 60 1 2 13 40 10\n{}",
                REST.replace("1000", "1400")
                    .replace("processes 50", "processes 60")
            ),
        );
        // A first read has gauges only.
        has(&first, &["cpu.run_queue 3", "cpu.blocked 1"]);
        assert_eq!((first.values.len(), first.since), (2, None));
        // Ticks: user 50 of which guest 20, nice 10 of which guest 5, system 10, idle 110, iowait
        // 10, steal 10: 200.
        has(
            &second,
            &[
                "cpu.user_ratio[all] 0.15",
                "cpu.nice_ratio[cpu0] 0.025",
                "cpu.system_ratio[cpu0] 0.05",
                "cpu.idle_ratio[all] 0.55",
                "cpu.iowait_ratio[all] 0.05",
                "cpu.steal_ratio[all] 0.05",
                "cpu.guest_ratio[all] 0.125",
                "cpu.context_switches_per_s 200",
                "cpu.forks_per_s 5",
                "cpu.interrupts_per_s 0",
            ],
        );
        assert_eq!(second.interval().unwrap().as_secs(), 2);
        assert!(second.gaps.is_empty());
    }

    #[test]
    fn an_older_kernel_lacks_columns_and_says_so() {
        // 2.6.10: no steal, no guest.
        let (_, second) = two(
            &format!("cpu  100 0 50 800 50 0 0\n{REST}"),
            &format!("cpu  150 0 50 850 50 0 0\n{REST}"),
        );
        has(&second, &["cpu.user_ratio[all] 0.5", "cpu.idle_ratio[all] 0.5"]);
        has_no(&second, "cpu.steal_ratio");
        assert_eq!(gaps(&second), ["cpu.steal_ratio", "cpu.guest_ratio"]);
    }

    #[test]
    fn a_restart_is_a_gap_and_idle_may_lose_a_little() {
        let (_, second) = two(
            "cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 100 0 50 800 50 0 0 0 0 0\ncpu1 9 0 0 0 0 0 0 0 0 0\n",
            "cpu  200 0 50 790 50 0 0 0 0 0\ncpu0 1 0 0 8 0 0 0 0 0 0\n",
        );
        has(&second, &["cpu.user_ratio[all] 1", "cpu.idle_ratio[all] 0"]);
        let found = gaps(&second);
        for source in [
            "/proc/stat cpu0",
            "/proc/stat cpu1",
            "cpu.run_queue",
            "cpu.forks_per_s",
        ] {
            assert!(found.contains(&source), "{source} is not in {found:?}");
        }
        assert!(second.values.iter().all(|(key, _)| key.label == "all"));
    }

    #[test]
    fn a_missing_file_is_a_gap_and_what_follows_begins_again() {
        let mut tree = Tree::new(&[("/proc/stat", "cpu 1 0 0 1 0 0 0 0 0 0\n")]);
        let mut cpus = Cpus::new();
        for (second, is_there) in [(0, true), (1, false), (2, true)] {
            if is_there {
                tree.put(&[("/proc/stat", "cpu 9 0 0 1 0 0 0 0 0 0\n")]);
            } else {
                tree.remove("/proc/stat");
            }
            let at = tree.at(second);
            let reading = cpus.read(&tree.host, &mut tree.buffer, at);
            assert_eq!(reading.since, None);
            assert_eq!(gaps(&reading).contains(&"/proc/stat"), !is_there);
        }
    }

    #[test]
    fn load_averages_are_three_numbers_or_a_gap() {
        let mut tree = Tree::new(&[("/proc/loadavg", "0.32 1.50 2.00 1/93 23106\n")]);
        let mut cpus = Cpus::new();
        let at = tree.at(0);
        let reading = cpus.read_load(&tree.host, &mut tree.buffer, at);
        has(&reading, &["load.1m 0.32", "load.5m 1.5", "load.15m 2"]);
        tree.put(&[("/proc/loadavg", "inf nan 2")]);
        let reading = cpus.read_load(&tree.host, &mut tree.buffer, at);
        assert_eq!(gaps(&reading), ["/proc/loadavg"]);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(a in "(cpu[0-9]{0,2} [0-9 ]{0,90}\n|.{0,40}\n){0,4}", b in "(cpu[0-9]{0,2} [0-9 ]{0,90}\n|.{0,40}\n){0,4}") {
            let (before, now) = (Stat::parse(&a), Stat::parse(&b));
            let mut reading = Reading::new(Instant::now(), None);
            fill(Some(Before { state: &before, seconds: 1.0 }), &now, &mut reading);
            prop_assert!(reading.values.iter().all(|(_, value)| value.is_finite() && *value >= 0.0));
            let _ = parse_load(&a);
        }
    }
}
