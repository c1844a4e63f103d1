//! Rates of the memory management's events, from /proc/vmstat.

use super::files::{Buffer, Kept};
use super::step::{Before, Last, WENT_BACK};
use super::{Key, Reading, growth};
use crate::access::HostAccess;
use std::time::Instant;

/// How the names of this kernel's counters are matched.
#[derive(Debug, Clone, Copy)]
enum Lines {
    /// The counter of this name.
    One(&'static str),
    /// This name, or the name that it had on older kernels.
    Renamed(&'static str, &'static str),
    /// This name, or one for each zone of memory, which are added up.
    Zones(&'static str),
}

/// Zones as kernels name them after an underscore.
const ZONES: [&str; 7] = ["dma", "dma32", "normal", "high", "highmem", "movable", "device"];

struct Counter {
    lines: Lines,
    metric: &'static str,
    /// What one of them is in the metric's unit.
    scale: f64,
}

const fn counter(metric: &'static str, lines: Lines) -> Counter {
    Counter {
        lines,
        metric,
        scale: 1.0,
    }
}

use Lines::{One, Renamed, Zones};

/// pgpgin and pgpgout count KiB; all others count pages or events.
const COUNTERS: [Counter; 32] = [
    Counter {
        lines: One("pgpgin"),
        metric: "vm.pgpgin_bytes_per_s",
        scale: 1024.0,
    },
    Counter {
        lines: One("pgpgout"),
        metric: "vm.pgpgout_bytes_per_s",
        scale: 1024.0,
    },
    counter("vm.pswpin_per_s", One("pswpin")),
    counter("vm.pswpout_per_s", One("pswpout")),
    counter("vm.pgfault_per_s", One("pgfault")),
    counter("vm.pgmajfault_per_s", One("pgmajfault")),
    counter("vm.pgscan_kswapd_per_s", Zones("pgscan_kswapd")),
    counter("vm.pgscan_direct_per_s", Zones("pgscan_direct")),
    counter("vm.pgsteal_kswapd_per_s", Zones("pgsteal_kswapd")),
    counter("vm.pgsteal_direct_per_s", Zones("pgsteal_direct")),
    counter("vm.allocstall_per_s", Zones("allocstall")),
    counter(
        "vm.workingset_refault_file_per_s",
        Renamed("workingset_refault_file", "workingset_refault"),
    ),
    counter("vm.workingset_refault_anon_per_s", One("workingset_refault_anon")),
    counter("vm.dirtied_per_s", One("nr_dirtied")),
    counter("vm.written_per_s", One("nr_written")),
    counter("vm.oom_kills_per_s", One("oom_kill")),
    counter("vm.thp_fault_alloc_per_s", One("thp_fault_alloc")),
    counter("vm.thp_fault_fallback_per_s", One("thp_fault_fallback")),
    counter("vm.thp_collapse_alloc_per_s", One("thp_collapse_alloc")),
    counter("vm.thp_split_page_per_s", Renamed("thp_split_page", "thp_split")),
    counter("vm.thp_split_pmd_per_s", One("thp_split_pmd")),
    counter("vm.compact_stall_per_s", One("compact_stall")),
    counter("vm.compact_fail_per_s", One("compact_fail")),
    counter("vm.numa_hit_per_s", One("numa_hit")),
    counter("vm.numa_miss_per_s", One("numa_miss")),
    counter("vm.numa_foreign_per_s", One("numa_foreign")),
    counter("vm.numa_local_per_s", One("numa_local")),
    counter("vm.numa_other_per_s", One("numa_other")),
    counter("vm.numa_hint_faults_per_s", One("numa_hint_faults")),
    counter("vm.numa_pages_migrated_per_s", One("numa_pages_migrated")),
    counter("vm.numa_pte_updates_per_s", One("numa_pte_updates")),
    counter("vm.pgmigrate_success_per_s", One("pgmigrate_success")),
];

type Counts = [Option<u64>; COUNTERS.len()];

#[derive(Debug)]
pub(super) struct Vmstat {
    file: Kept,
    last: Last<Counts>,
    /// What each line of the file is for: the file has the same lines at every read, and comparing
    /// names again and again would be the most expensive part of it.
    lines: Vec<Line>,
}

#[derive(Debug, PartialEq)]
struct Line {
    name: String,
    counter: Option<usize>,
}

impl Vmstat {
    pub(super) fn new() -> Vmstat {
        Vmstat {
            file: Kept::new("/proc/vmstat"),
            last: Last::default(),
            lines: Vec::new(),
        }
    }

    pub(super) fn read(&mut self, host: &dyn HostAccess, buffer: &mut Buffer, at: Instant) -> Reading {
        let lines = &mut self.lines;
        match self.file.read(host, buffer).map(|text| parse(text, lines)) {
            Ok(counts) => self.last.step(at, counts, fill),
            Err(error) => self.last.lost(at, &error),
        }
    }
}

fn parse(text: &str, lines: &mut Vec<Line>) -> Counts {
    let mut counts = Counts::default();
    for (place, line) in text.lines().enumerate() {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        if lines.get(place).is_none_or(|known| known.name != name) {
            lines.truncate(place);
            lines.push(Line {
                name: name.to_owned(),
                counter: COUNTERS.iter().position(|counter| counter.lines.has(name)),
            });
        }
        let Some(counter) = lines[place].counter else {
            continue;
        };
        // Lines of one counter are added up; one that is not a number spoils the sum.
        let value = value.trim_end().parse::<u64>().ok();
        let sum = &mut counts[counter];
        *sum = value.and_then(|value| sum.unwrap_or(0).checked_add(value));
    }
    counts
}

impl Lines {
    fn has(self, name: &str) -> bool {
        match self {
            One(line) => line == name,
            Renamed(line, older) => line == name || older == name,
            Zones(line) => name.strip_prefix(line).is_some_and(|rest| {
                rest.is_empty() || rest.strip_prefix('_').is_some_and(|zone| ZONES.contains(&zone))
            }),
        }
    }
}

fn fill(before: Option<Before<'_, Counts>>, now: &Counts, reading: &mut Reading) {
    let Some(Before { state, seconds }) = before else {
        return;
    };
    for (place, counter) in COUNTERS.iter().enumerate() {
        match (state[place], now[place]) {
            (Some(before), Some(now)) => match growth(before, now) {
                Some(grown) => reading.push(Key::one(counter.metric), grown * counter.scale / seconds),
                None => reading.gap(counter.metric, WENT_BACK),
            },
            _ => reading.gap(counter.metric, "this kernel's /proc/vmstat does not count it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::fixture::{Tree, gaps, has, has_no};
    use proptest::prelude::*;

    fn two(first: &str, second: &str) -> Reading {
        let mut tree = Tree::new(&[("/proc/vmstat", first)]);
        let mut vmstat = Vmstat::new();
        let (start, later) = (tree.at(0), tree.at(2));
        let one = vmstat.read(&tree.host, &mut tree.buffer, start);
        assert!(one.values.is_empty() && one.gaps.is_empty());
        tree.put(&[("/proc/vmstat", second)]);
        vmstat.read(&tree.host, &mut tree.buffer, later)
    }

    #[test]
    fn events_become_rates() {
        let reading = two(
            "nr_free_pages 7\npgpgin 10\npgfault 100\nallocstall_dma 1\nallocstall_normal 2\nallocstall_movable 3\n\
             pgscan_direct 5\npgscan_direct_throttle 5\nthp_split_page 1\n",
            "nr_free_pages 1\npgpgin 30\npgfault 400\nallocstall_dma 1\nallocstall_normal 4\nallocstall_movable 7\n\
             pgscan_direct 7\npgscan_direct_throttle 500\nthp_split_page 1\n",
        );
        has(
            &reading,
            &[
                "vm.pgpgin_bytes_per_s 10240",
                "vm.pgfault_per_s 150",
                "vm.allocstall_per_s 3",
                "vm.pgscan_direct_per_s 1",
                "vm.thp_split_page_per_s 0",
            ],
        );
        has_no(&reading, "vm.pswpin_per_s");
        assert!(gaps(&reading).contains(&"vm.pswpin_per_s"));
    }

    #[test]
    fn older_names_are_known_and_lines_may_move() {
        // 4.4 has a counter for each zone, and other names.
        let reading = two(
            "pgsteal_kswapd_dma 1\npgsteal_kswapd_normal 1\nallocstall 4\nthp_split 2\nworkingset_refault 3\n",
            "thp_split 8\npgsteal_kswapd_dma 2\npgsteal_kswapd_normal 6\nallocstall 6\nworkingset_refault 3\n",
        );
        has(
            &reading,
            &[
                "vm.pgsteal_kswapd_per_s 3",
                "vm.allocstall_per_s 1",
                "vm.thp_split_page_per_s 3",
                "vm.workingset_refault_file_per_s 0",
            ],
        );
    }

    #[test]
    fn a_counter_that_went_backwards_is_a_gap() {
        let reading = two("pgfault 100\npswpin 3\n", "pgfault 90\npswpin nonsense\n");
        assert!(reading.values.is_empty());
        for metric in ["vm.pgfault_per_s", "vm.pswpin_per_s"] {
            assert!(gaps(&reading).contains(&metric), "{metric}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(a in "((pgfault|allocstall_dma|pgpgin) ?[0-9]{0,25}\n|.{0,20}\n){0,6}", b in "((pgfault|pgpgin) ?[0-9]{0,25}\n|.{0,20}\n){0,6}") {
            let mut lines = Vec::new();
            let (before, now) = (parse(&a, &mut lines), parse(&b, &mut lines));
            prop_assert_eq!(now, parse(&b, &mut Vec::new()));
            let mut reading = Reading::new(Instant::now(), None);
            fill(Some(Before { state: &before, seconds: 1.0 }), &now, &mut reading);
            prop_assert!(reading.values.iter().all(|(_, value)| *value >= 0.0));
        }
    }
}
