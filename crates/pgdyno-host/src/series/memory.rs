//! Memory in bytes from /proc/meminfo.

use super::files::{Buffer, Kept};
use super::step::lost;
use super::{Key, Reading};
use crate::access::HostAccess;
use std::time::Instant;

/// Lines in kB, and what they are here.
const LINES: [(&str, &str); 18] = [
    ("MemTotal", "memory.total_bytes"),
    ("MemFree", "memory.free_bytes"),
    ("MemAvailable", "memory.available_bytes"),
    ("Buffers", "memory.buffers_bytes"),
    ("Cached", "memory.cached_bytes"),
    ("SwapTotal", "memory.swap_total_bytes"),
    ("SwapFree", "memory.swap_free_bytes"),
    ("Dirty", "memory.dirty_bytes"),
    ("Writeback", "memory.writeback_bytes"),
    ("AnonPages", "memory.anon_bytes"),
    ("Mapped", "memory.mapped_bytes"),
    ("Shmem", "memory.shmem_bytes"),
    ("Slab", "memory.slab_bytes"),
    ("PageTables", "memory.page_tables_bytes"),
    ("Committed_AS", "memory.committed_bytes"),
    ("AnonHugePages", "memory.anon_huge_pages_bytes"),
    ("ShmemHugePages", "memory.shmem_huge_pages_bytes"),
    ("FileHugePages", "memory.file_huge_pages_bytes"),
];

/// Lines in huge pages of the default size.
const HUGE_PAGES: [(&str, &str); 4] = [
    ("HugePages_Total", "memory.huge_pages_total_bytes"),
    ("HugePages_Free", "memory.huge_pages_free_bytes"),
    ("HugePages_Rsvd", "memory.huge_pages_reserved_bytes"),
    ("HugePages_Surp", "memory.huge_pages_surplus_bytes"),
];

const ABSENT: &str = "this kernel's /proc/meminfo has no such line";

#[derive(Debug)]
pub(super) struct Memory {
    file: Kept,
}

/// Values by place in the tables above.
#[derive(Debug, Default, PartialEq)]
struct Meminfo {
    bytes: [Option<u64>; LINES.len()],
    huge_pages: [Option<u64>; HUGE_PAGES.len()],
    huge_page_bytes: Option<u64>,
}

impl Memory {
    pub(super) fn new() -> Memory {
        Memory {
            file: Kept::new("/proc/meminfo"),
        }
    }

    pub(super) fn read(&mut self, host: &dyn HostAccess, buffer: &mut Buffer, at: Instant) -> Reading {
        match self.file.read(host, buffer).map(Meminfo::parse) {
            Ok(memory) => memory.reading(at),
            Err(error) => lost(at, &error),
        }
    }
}

impl Meminfo {
    fn parse(text: &str) -> Meminfo {
        let mut memory = Meminfo::default();
        for line in text.lines() {
            let Some((name, rest)) = line.split_once(':') else {
                continue;
            };
            let value = || rest.split_ascii_whitespace().next()?.parse::<u64>().ok();
            let bytes = || value()?.checked_mul(1024);
            if let Some(place) = LINES.iter().position(|(line, _)| *line == name) {
                memory.bytes[place] = bytes();
            } else if let Some(place) = HUGE_PAGES.iter().position(|(line, _)| *line == name) {
                memory.huge_pages[place] = value();
            } else if name == "Hugepagesize" {
                memory.huge_page_bytes = bytes();
            }
        }
        memory
    }

    #[expect(clippy::cast_precision_loss, reason = "gauges")]
    fn reading(&self, at: Instant) -> Reading {
        let mut reading = Reading::new(at, None);
        let mut push = |metric, value: Option<u64>| match value {
            Some(value) => reading.push(Key::one(metric), value as f64),
            None => reading.gap(metric, ABSENT),
        };
        let mut swap = [None; 2];
        for ((name, metric), value) in LINES.into_iter().zip(self.bytes) {
            match name {
                "SwapTotal" => swap[0] = value,
                "SwapFree" => swap[1] = value,
                _ => {}
            }
            push(metric, value);
        }
        let [total, free] = swap;
        push(
            "memory.swap_used_bytes",
            total.zip(free).and_then(|(t, f)| t.checked_sub(f)),
        );
        for ((_, metric), pages) in HUGE_PAGES.into_iter().zip(self.huge_pages) {
            let bytes = pages
                .zip(self.huge_page_bytes)
                .and_then(|(pages, bytes)| pages.checked_mul(bytes));
            push(metric, bytes);
        }
        reading
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::fixture::{Tree, gaps, has, has_no};
    use proptest::prelude::*;

    fn read(text: &str) -> Reading {
        let mut tree = Tree::new(&[("/proc/meminfo", text)]);
        let at = tree.at(0);
        Memory::new().read(&tree.host, &mut tree.buffer, at)
    }

    #[test]
    fn kilobytes_and_huge_pages_become_bytes() {
        let reading = read(
            "MemTotal:       24684092 kB\nMemFree:        24087964 kB\nMemAvailable:   24205128 kB\n\
             Buffers:            1496 kB\nCached:           259028 kB\nSwapCached:            0 kB\n\
             SwapTotal:       1000 kB\nSwapFree:          400 kB\nDirty:               200 kB\n\
             Writeback:             0 kB\nAnonPages:         21500 kB\nMapped:            10796 kB\n\
             Shmem:              8856 kB\nSlab:             229264 kB\nPageTables:         2228 kB\n\
             SecPageTables:         7 kB\nWritebackTmp:          9 kB\nCommitted_AS:      69580 kB\n\
             AnonHugePages:         0 kB\nShmemHugePages:        0 kB\nFileHugePages:         0 kB\n\
             HugePages_Total:      10\nHugePages_Free:        4\nHugePages_Rsvd:        1\nHugePages_Surp:        0\n\
             Hugepagesize:       2048 kB\nHugetlb:           20480 kB\n",
        );
        has(
            &reading,
            &[
                "memory.total_bytes 25276510208",
                "memory.cached_bytes 265244672",
                "memory.swap_used_bytes 614400",
                "memory.page_tables_bytes 2281472",
                "memory.writeback_bytes 0",
                "memory.huge_pages_total_bytes 20971520",
                "memory.huge_pages_free_bytes 8388608",
                "memory.huge_pages_reserved_bytes 2097152",
            ],
        );
        assert!(reading.gaps.is_empty());
        assert_eq!(reading.since, None);
    }

    #[test]
    fn lines_that_a_kernel_has_not_are_gaps() {
        // Before 3.14 no MemAvailable; without huge pages (s390x in some guests) none of their
        // lines.
        let reading = read("MemTotal: 1000 kB\nMemFree: nonsense\nSwapTotal: 5 kB\nSwapFree: 6 kB\n");
        has(&reading, &["memory.total_bytes 1024000"]);
        for metric in [
            "memory.free_bytes",
            "memory.available_bytes",
            "memory.swap_used_bytes",
            "memory.huge_pages_total_bytes",
        ] {
            has_no(&reading, metric);
            assert!(gaps(&reading).contains(&metric), "{metric}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "((MemTotal|SwapFree|HugePages_Total|Hugepagesize): *[0-9]{0,25} ?(kB)?\n){0,4}.{0,40}") {
            let _ = Meminfo::parse(&text).reading(Instant::now());
        }
    }
}
