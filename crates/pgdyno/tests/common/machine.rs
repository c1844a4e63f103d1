//! This machine for one test alone, its kernel as it comes: a test that was stopped half-way, or an administrator, may have left
//! the very values that the next one sets.

use super::{disk_of, kernel};
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the tests turn, as a kernel has it after boot. A byte value goes with its ratio, and is not among these.
const AT_BOOT: [(&str, &str); 11] = [
    ("/proc/sys/vm/swappiness", "60"),
    ("/proc/sys/vm/page-cluster", "3"),
    ("/proc/sys/vm/vfs_cache_pressure", "100"),
    ("/proc/sys/vm/dirty_ratio", "20"),
    ("/proc/sys/vm/dirty_background_ratio", "10"),
    ("/proc/sys/vm/dirty_expire_centisecs", "3000"),
    ("/proc/sys/vm/nr_hugepages", "0"),
    ("/proc/sys/net/core/somaxconn", "4096"),
    ("/sys/kernel/mm/transparent_hugepage/enabled", "madvise"),
    ("/sys/kernel/mm/transparent_hugepage/defrag", "madvise"),
    // The kernel moves it with the lines above.
    ("/proc/sys/vm/min_free_kbytes", ""),
];

/// Tests that turn knobs of this machine must not meet.
static ALONE: Mutex<()> = Mutex::new(());

/// Puts back what was found when the test began, be it that the test failed.
pub(crate) struct Machine {
    found: Vec<(String, String)>,
    _alone: MutexGuard<'static, ()>,
}

pub(crate) fn whole_machine() -> Machine {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let queue = format!("/sys/block/{}/queue", disk_of(Path::new("/tmp")));
    let mut start: Vec<(String, &str)> = AT_BOOT.map(|(path, value)| (path.to_owned(), value)).to_vec();
    start.push((format!("{queue}/scheduler"), "mq-deadline"));
    start.push((format!("{queue}/read_ahead_kb"), "128"));
    start.retain(|(path, _)| Path::new(path).exists());
    let mut found = Vec::new();
    for (path, value) in start {
        let counterpart = path.replace("_ratio", "_bytes");
        let bytes = (counterpart != path)
            .then(|| kernel(&counterpart))
            .filter(|bytes| bytes != "0");
        let now = chosen(&kernel(&path));
        if !value.is_empty() && now != value {
            // What this kernel refuses, the tests find as it is.
            let _ = fs::write(&path, value);
        }
        found.push(bytes.map_or((path, now), |bytes| (counterpart, bytes)));
    }
    Machine { found, _alone: alone }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for (path, value) in &self.found {
            if chosen(&kernel(path)) != *value {
                let _ = fs::write(path, value);
            }
        }
    }
}

/// The word in brackets of a file that lists its choices, or the whole of another.
fn chosen(text: &str) -> String {
    let inner = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inner.map_or(text, |(word, _)| word).to_owned()
}
