//! Series beside a made-up trial.

use super::Random;
use pgdyno_record::{ColumnRecord, SeriesRecord};

const NAMED: [&str; 24] = [
    "checkpoints.requested_per_s",
    "checkpoints.timed_per_s",
    "checkpoints.write_ms_per_s",
    "checkpoints.blocks_written_per_s",
    "cpu.iowait_ratio",
    "cpu.run_queue",
    "cpu.steal_ratio",
    "cpu.system_ratio",
    "cpu.user_ratio",
    "db.blocks_hit_per_s",
    "db.blocks_read_per_s",
    "disk.read_bytes_per_s",
    "disk.write_bytes_per_s",
    "disk.write_await_ms",
    "memory.available_bytes",
    "memory.cached_bytes",
    "memory.dirty_bytes",
    "psi.cpu.some_ratio",
    "psi.io.some_ratio",
    "sessions.active",
    "vacuum.autovacuum_workers",
    "wal.bytes_per_s",
    "wal.full_page_images_per_s",
    "waits.sessions",
];

/// So many columns at 1 Hz, those that a report file shows first among them.
pub(crate) fn series(seconds: u32, columns: usize, random: &mut Random) -> SeriesRecord {
    let at_ms: Vec<u32> = (1..=seconds).map(|second| second * 1000 + 7).collect();
    let column = |place: usize, random: &mut Random| {
        let (metric, label) = match (NAMED.get(place).copied(), place) {
            (Some(name @ ("checkpoints.requested_per_s" | "checkpoints.timed_per_s")), _) => {
                (name.to_owned(), String::new())
            }
            (Some(name), _) => (name.to_owned(), "all".to_owned()),
            (None, place) => (format!("vm.other{place}_per_s"), String::new()),
        };
        let value = |second: u32, random: &mut Random| match metric.as_str() {
            name if name.starts_with("checkpoints.") => f64::from(u8::from(second % 300 == 10)),
            "vacuum.autovacuum_workers" => f64::from(u8::from(second % 600 < 30)),
            "sessions.active" | "cpu.run_queue" => (random.next() * 32.0).round(),
            name if name.ends_with("_ratio") => (random.next() * 100.0).round() / 100.0,
            name if name.starts_with("memory.") => (2e9 + random.next() * 1e9).round(),
            _ => 50_000.0 * (0.9 + 0.2 * random.next()),
        };
        let values = (1..=seconds).map(|second| value(second, random)).collect();
        ColumnRecord {
            metric: metric.clone(),
            label,
            at_ms: at_ms.clone(),
            values,
        }
    };
    SeriesRecord {
        columns: (0..columns).map(|place| column(place, random)).collect(),
        gaps: Vec::new(),
    }
}
