//! CPU time of the kernel's threads that look after memory: kswapd and kcompactd of each node,
//! khugepaged, ksmd.

use super::files::{Buffer, Kept};
use super::step::{Before, Last, lost};
use super::{Key, Reading, growth};
use crate::access::{HostAccess, HostError};
use crate::process::{KTHREADD, ProcessStat, TICKS_PER_S};
use std::time::Instant;

/// Names up to the number of a memory node.
const NAMES: [&str; 4] = ["kswapd", "kcompactd", "khugepaged", "ksmd"];

#[derive(Debug)]
struct Thread {
    name: String,
    stat: Kept,
}

/// Threads as they were found when processes could first be listed: they live as long as the
/// kernel.
#[derive(Debug, Default)]
pub(super) struct KernelThreads {
    threads: Option<Vec<Thread>>,
    last: Last<Vec<Option<u64>>>,
}

impl KernelThreads {
    /// CPUs that each has used between two reads, in steps of 10 ms of CPU time. A host that shows
    /// no such thread, as within a container, has no values and no gap.
    pub(super) fn read(&mut self, host: &dyn HostAccess, buffer: &mut Buffer, at: Instant) -> Reading {
        let threads = match &mut self.threads {
            Some(threads) => threads,
            None => match find(host) {
                Ok(threads) => self.threads.insert(threads),
                Err(HostError::Missing { .. }) => self.threads.insert(Vec::new()),
                Err(error) => return lost(at, &error),
            },
        };
        let ticks = |thread: &mut Thread| {
            let stat = thread.stat.read(host, buffer).ok()?;
            Some(ProcessStat::parse(stat)?.own.ticks)
        };
        let now: Vec<Option<u64>> = threads.iter_mut().map(ticks).collect();
        self.last.step(at, now, |before, now, reading| {
            fill(threads, before, now, reading)
        })
    }
}

fn find(host: &dyn HostAccess) -> Result<Vec<Thread>, HostError> {
    let mut numbers: Vec<u32> = host
        .list("/proc")?
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect();
    numbers.sort_unstable();
    if ProcessStat::named(host, KTHREADD.0).is_none_or(|(name, _)| name != KTHREADD.1) {
        return Ok(Vec::new());
    }
    let found = numbers.into_iter().filter_map(|pid| {
        let (name, stat) = ProcessStat::named(host, pid)?;
        let is_one = NAMES.contains(&name.trim_end_matches(|letter: char| letter.is_ascii_digit()));
        (is_one && stat.parent == KTHREADD.0).then(|| Thread {
            name,
            stat: Kept::of_process(pid, "stat", true),
        })
    });
    Ok(found.collect())
}

#[expect(clippy::cast_precision_loss, reason = "ticks in a second")]
fn fill(
    threads: &[Thread],
    before: Option<Before<'_, Vec<Option<u64>>>>,
    now: &[Option<u64>],
    reading: &mut Reading,
) {
    let Some(Before { state, seconds }) = before else {
        return;
    };
    for (thread, (before, now)) in threads.iter().zip(state.iter().zip(now)) {
        let grown = before.zip(*now).and_then(|(before, now)| growth(before, now));
        if let Some(ticks) = grown {
            let cpus = ticks / TICKS_PER_S as f64 / seconds;
            reading.push(Key::of("kernel_thread.cpu_ratio", thread.name.clone()), cpus);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::fixture::{Tree, lines};

    fn stat(pid: u32, name: &str, parent: u32, ticks: u32) -> (String, String) {
        let line =
            format!("{pid} ({name}) S {parent} 0 0 0 -1 0 0 0 0 0 0 {ticks} 0 0 20 0 1 0 {pid} 0 0 0\n");
        (format!("/proc/{pid}/stat"), line)
    }

    fn put(tree: &Tree, files: &[(String, String)]) {
        for (path, text) in files {
            tree.put(&[(path, text)]);
        }
    }

    #[test]
    fn threads_of_memory_have_their_cpu_time_and_others_none() {
        let mut tree = Tree::new(&[]);
        let mut threads = KernelThreads::default();
        let mut read = |ticks: u32, second| {
            put(
                &tree,
                &[
                    stat(2, "kthreadd", 0, 0),
                    stat(60, "kswapd0", 2, ticks),
                    stat(61, "khugepaged", 2, 5),
                    stat(62, "kworker/0:1", 2, ticks),
                    // A program that is called so.
                    stat(900, "ksmd", 1, ticks),
                ],
            );
            let at = tree.at(second);
            threads.read(&tree.host, &mut tree.buffer, at)
        };
        assert!(read(100, 0).values.is_empty());
        let second = read(150, 2);
        assert_eq!(
            lines(&second),
            [
                "kernel_thread.cpu_ratio[kswapd0] 0.25",
                "kernel_thread.cpu_ratio[khugepaged] 0"
            ]
        );
        assert!(second.gaps.is_empty());
    }

    #[test]
    fn a_container_has_none() {
        let mut tree = Tree::new(&[]);
        put(&tree, &[stat(2, "sh", 1, 0), stat(60, "kswapd0", 2, 9)]);
        let mut threads = KernelThreads::default();
        for second in [0, 1] {
            let at = tree.at(second);
            let reading = threads.read(&tree.host, &mut tree.buffer, at);
            assert!(reading.values.is_empty() && reading.gaps.is_empty());
        }
    }
}
