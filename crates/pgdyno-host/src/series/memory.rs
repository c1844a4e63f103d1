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
        let mut tell = |metric, value: Option<u64>| match value {
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
            tell(metric, value);
        }
        let [total, free] = swap;
        tell(
            "memory.swap_used_bytes",
            total.zip(free).and_then(|(t, f)| t.checked_sub(f)),
        );
        for ((_, metric), pages) in HUGE_PAGES.into_iter().zip(self.huge_pages) {
            let bytes = pages
                .zip(self.huge_page_bytes)
                .and_then(|(pages, bytes)| pages.checked_mul(bytes));
            tell(metric, bytes);
        }
        reading
    }
}
