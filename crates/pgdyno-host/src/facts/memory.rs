//! Memory, swap and what the kernel has promised of both.

use super::sheet::{Sheet, bytes_of_line, expected, object, or_null, scalar};
use crate::access::HostAccess;
use serde_json::Value;

const MEMINFO: &str = "/proc/meminfo";
const AVAILABLE: &str = "MemAvailable";
const SWAPS: &str = "/proc/swaps";

/// (fact, line of /proc/meminfo)
const LINES: [(&str, &str); 8] = [
    ("memory.total_bytes", "MemTotal"),
    ("memory.available_bytes", AVAILABLE),
    ("memory.page_tables_bytes", "PageTables"),
    ("memory.shared_bytes", "Shmem"),
    ("memory.commit_limit_bytes", "CommitLimit"),
    ("memory.committed_bytes", "Committed_AS"),
    ("swap.total_bytes", "SwapTotal"),
    ("swap.free_bytes", "SwapFree"),
];

/// Memory that programs can have without swapping; `None` where the kernel does not report it
/// (before 3.14).
pub fn memory_available_bytes(host: &dyn HostAccess) -> Option<u64> {
    bytes_of_line(&host.read(MEMINFO).ok()?, AVAILABLE)
}

pub(super) fn note(sheet: &mut Sheet<'_>) {
    let meminfo = sheet.text_of_long(MEMINFO);
    for (name, line) in LINES {
        let bytes = meminfo.clone().and_then(|text| {
            bytes_of_line(&text, line).ok_or_else(|| format!("{MEMINFO} has no usable line {line}"))
        });
        sheet.note(name, &format!("{MEMINFO}, {line}"), bytes);
    }
    note_page_size(sheet);
    let devices = sheet.text_of_long(SWAPS).and_then(|text| {
        let mut lines = text.lines();
        match lines.next() {
            Some(head) if head.starts_with("Filename") => Ok(lines.filter_map(swap).collect::<Vec<Value>>()),
            head => Err(expected(SWAPS, "a line of headings", head.unwrap_or_default())),
        }
    });
    sheet.note("swap.devices", SWAPS, devices);
    let zswap = "/sys/module/zswap/parameters/enabled";
    let enabled = sheet.text_of(zswap).map(|text| text == "Y" || text == "1");
    sheet.note("swap.compressed_before_disk", zswap, enabled);
    sheet.text("memory.generational_reclaim", "/sys/kernel/mm/lru_gen/enabled");
}

/// The size of an ordinary page, as the kernel writes it for each mapping.
fn note_page_size(sheet: &mut Sheet<'_>) {
    const PATH: &str = "/proc/self/smaps";
    let bytes = sheet.text_of_long(PATH).and_then(|text| {
        bytes_of_line(&text, "KernelPageSize").ok_or_else(|| format!("{PATH} has no line KernelPageSize"))
    });
    sheet.note("memory.page_bytes", &format!("{PATH}, KernelPageSize"), bytes);
}

/// Filename, Type, Size, Used in kB, Priority (proc_swaps(5)).
fn swap(line: &str) -> Option<Value> {
    let mut words = line.split_whitespace();
    let (device, kind) = (words.next()?, words.next()?);
    let mut kilobytes = || -> Value {
        words
            .next()
            .and_then(|w| w.parse::<u64>().ok()?.checked_mul(1024))
            .into()
    };
    let (bytes, used) = (kilobytes(), kilobytes());
    Some(object([
        ("device", device.into()),
        ("kind", if device.contains("zram") { "zram" } else { kind }.into()),
        ("bytes", bytes),
        ("used_bytes", used),
        ("priority", or_null(words.next().map(scalar).ok_or(()))),
    ]))
}
