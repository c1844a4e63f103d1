//! The CPU time of other programs: neither of the processes named as ours, nor of what they have
//! started, nor the kernel's threads.

use crate::access::{HostAccess, HostError};
use crate::process::{KTHREADD, ProcessStat, TICKS_PER_S};
use std::collections::{BTreeMap, BTreeSet};

/// Hosts with more processes are not read: that would be a load of its own.
const PROCESSES_MAX: usize = 20_000;
/// The first process takes in the times of processes that have lost their parent, whosever they
/// were.
const INIT: u32 = 1;

/// CPU time that all other processes have used so far.
#[derive(Debug, Clone, Default)]
pub struct CpuUse {
    /// By number and start, for numbers are given again.
    others: BTreeMap<(u32, u64), Used>,
}

#[derive(Debug, Clone)]
struct Used {
    name: String,
    parent: u32,
    ticks: u64,
}

/// CPU time that others have used between two readings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OthersCpu {
    /// Microseconds of all of them together, in whole ticks of 10 ms.
    pub all_us: u64,
    /// The process that used most: its name, number and microseconds; `None` where none used any.
    pub most: Option<(String, u32, u64)>,
}

impl CpuUse {
    /// Reads all processes but `ours`, which are these and all below them.
    ///
    /// # Errors
    ///
    /// Where processes cannot be listed, or are more than can be read beside a load. One that ends
    /// meanwhile is not an error.
    pub fn now(host: &dyn HostAccess, ours: &[u32]) -> Result<CpuUse, HostError> {
        let listed = host.list("/proc")?;
        let numbers: Vec<u32> = listed.iter().filter_map(|name| name.parse().ok()).collect();
        if numbers.len() > PROCESSES_MAX {
            return Err(HostError::Malformed {
                path: "/proc".to_owned(),
                line: 1,
                expected: "20000 processes or fewer",
                found: numbers.len().to_string(),
            });
        }
        let read = |pid: u32| Some((pid, ProcessStat::named(host, pid)?));
        let all: BTreeMap<u32, (String, ProcessStat)> = numbers.into_iter().filter_map(read).collect();
        let is_kernel = all.get(&KTHREADD.0).is_some_and(|(name, _)| name == KTHREADD.1);
        let not_others: BTreeSet<u32> = ours
            .iter()
            .copied()
            .chain(is_kernel.then_some(KTHREADD.0))
            .collect();
        let is_other = |mut pid: u32| {
            // As many steps as there are processes: parents that change while they are read could
            // make a ring.
            for _ in 0..all.len() {
                if not_others.contains(&pid) {
                    return false;
                }
                match all.get(&pid) {
                    Some((_, stat)) if stat.parent != 0 => pid = stat.parent,
                    _ => return true,
                }
            }
            true
        };
        let others = all
            .iter()
            .filter(|(pid, _)| is_other(**pid))
            .map(|(&pid, (name, stat))| {
                let reaped = if pid == INIT { 0 } else { stat.reaped.ticks };
                let used = Used {
                    name: name.clone(),
                    parent: stat.parent,
                    ticks: stat.own.ticks.saturating_add(reaped),
                };
                ((pid, stat.started_ticks), used)
            });
        Ok(CpuUse {
            others: others.collect(),
        })
    }

    /// What the others have used since an earlier reading. A process that began and ended in
    /// between counts with the parent that has waited for it, and is missing where nobody has.
    pub fn since(&self, before: &CpuUse) -> OthersCpu {
        // What a process had used before it ended is now its parent's, and was used before.
        let mut of_ended: BTreeMap<u32, u64> = BTreeMap::new();
        for (key, used) in &before.others {
            if !self.others.contains_key(key) {
                let sum = of_ended.entry(used.parent).or_default();
                *sum = sum.saturating_add(used.ticks);
            }
        }
        let grown = self.others.iter().map(|(key, used)| {
            let earlier = before.others.get(key).map_or(0, |used| used.ticks);
            let ended = of_ended.get(&key.0).copied().unwrap_or(0);
            let ticks = used.ticks.saturating_sub(earlier).saturating_sub(ended);
            (key.0, &used.name, ticks.saturating_mul(1_000_000 / TICKS_PER_S))
        });
        let grown: Vec<(u32, &String, u64)> = grown.filter(|(.., us)| *us > 0).collect();
        let most = grown.iter().max_by_key(|(.., us)| *us);
        OthersCpu {
            all_us: grown.iter().fold(0, |sum: u64, (.., us)| sum.saturating_add(*us)),
            most: most.map(|&(pid, name, us)| (name.clone(), pid, us)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LocalHost;
    use std::fs;
    use std::path::Path;

    /// (number, name, parent, own ticks, ticks of ended children).
    type Row<'a> = (u32, &'a str, u32, u64, u64);

    fn read(root: &Path, rows: &[Row<'_>], ours: &[u32]) -> CpuUse {
        let proc = root.join("proc");
        let _ = fs::remove_dir_all(&proc);
        for (pid, name, parent, own, reaped) in rows {
            let place = proc.join(pid.to_string());
            fs::create_dir_all(&place).unwrap();
            let stat = format!(
                "{pid} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 {own} 0 {reaped} 0 20 0 1 0 {pid} 0 0 0\n"
            );
            fs::write(place.join("stat"), stat).unwrap();
        }
        fs::create_dir_all(proc.join("sys")).unwrap();
        CpuUse::now(&LocalHost::at(root), ours).unwrap()
    }

    #[test]
    fn time_of_the_server_of_ours_and_of_the_kernel_is_nobody_elses() {
        let root = tempfile::tempdir().unwrap();
        let rows = |t: u64| {
            [
                (1, "init", 0, t, 100 * t),
                (2, "kthreadd", 0, t, 0),
                (3, "kswapd0", 2, 50 * t, 0),
                (10, "postgres", 1, t, 0),
                (11, "postgres", 10, 20 * t, 0),
                (20, "pgdyno", 30, t, 0),
                (21, "sh", 20, t, 0),
                (22, "neighbour", 21, 40 * t, 0),
                (30, "bash", 1, 2 * t, 0),
                (31, "a) loop", 30, 10 * t, 0),
            ]
        };
        let before = read(root.path(), &rows(1), &[10, 20]);
        let found = read(root.path(), &rows(4), &[10, 20]).since(&before);
        // init 3, bash 6, loop 30.
        assert_eq!(found.all_us, 390_000);
        assert_eq!(found.most, Some(("a) loop".to_owned(), 31, 300_000)));
    }

    #[test]
    fn a_process_that_ended_counts_once_with_its_parent() {
        let root = tempfile::tempdir().unwrap();
        let before = read(root.path(), &[(5, "make", 1, 10, 0), (6, "cc", 5, 70, 0)], &[]);
        // It used 20 more before it ended; another began and ended with 5.
        let after = read(root.path(), &[(5, "make", 1, 11, 95)], &[]);
        assert_eq!(after.since(&before).all_us, 260_000);
        assert_eq!(
            before.since(&before),
            OthersCpu {
                all_us: 0,
                most: None
            }
        );
    }

    #[test]
    fn a_process_with_the_number_of_another_counts_from_its_start() {
        let root = tempfile::tempdir().unwrap();
        let before = read(root.path(), &[(2, "first", 1, 500, 0)], &[]);
        let mut after = read(root.path(), &[(2, "second", 1, 7, 0)], &[]);
        after.others = after.others.into_values().map(|used| ((2, 900), used)).collect();
        assert_eq!(after.since(&before).all_us, 70_000);
    }
}
