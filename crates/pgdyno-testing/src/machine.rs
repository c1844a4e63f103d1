//! This machine for one test alone, its kernel as it comes: a test that was stopped half-way, or an
//! administrator, may have left the very values that the next one sets.

use super::{Home, Lane, disk_of, shared, tool};
use rustix::process::{getpriority_process, setpriority_process};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the tests turn, as a kernel has it after boot. A byte value goes with its ratio, and is not
/// among these.
const AT_BOOT: [(&str, &str); 14] = [
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
    ("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "never"),
    (
        "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled",
        "inherit",
    ),
    (
        "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/shmem_enabled",
        "inherit",
    ),
    // The kernel moves it with the lines above.
    ("/proc/sys/vm/min_free_kbytes", ""),
];

/// How much less nice a test is that has this machine, with what it starts: those that wait for it
/// are the longest row of all.
const AHEAD: i32 = 5;

/// Restores what was found when the test began, be it that the test failed.
pub struct Machine {
    found: Vec<(String, String)>,
    /// Nice value of this thread before.
    nice: Option<i32>,
    _lane: Lane,
    _alone: File,
}

/// Waits until no other test has this machine, in this process or in another, and sets its kernel's
/// values as they are after boot. Other tests run servers beside it. Called before the test's home
/// is made: whoever waits for this machine must have no lane.
pub fn whole_machine() -> Machine {
    Machine::wait(Lane::beside)
}

/// The same when no other test has a lane or wants one: for tests that reserve huge pages, which
/// any server that starts beside them would take, and for those that swap.
pub fn quiet_machine() -> Machine {
    Machine::wait(Lane::all)
}

impl Machine {
    fn wait(lane: fn() -> Lane) -> Machine {
        let lane = lane();
        // A lock of a file holds between threads and between processes, and ends with whoever has
        // it.
        let alone = fs::create_dir_all(shared())
            .and_then(|()| File::create(shared().join("machine.lock")))
            .expect("a file");
        alone.lock().expect("locked");
        // Of this thread alone, as the kernel has it, and of what it starts. A user without rights
        // stays as nice as before.
        let nice = getpriority_process(None).ok();
        let _ = nice.map(|nice| setpriority_process(None, nice - AHEAD));
        let queue = format!("/sys/block/{}/queue", disk_of(Path::new("/tmp")));
        let mut start: Vec<(String, &str)> = AT_BOOT.map(|(path, value)| (path.to_owned(), value)).to_vec();
        start.push((format!("{queue}/scheduler"), "mq-deadline"));
        start.push((format!("{queue}/read_ahead_kb"), "128"));
        Machine {
            found: HERE.begin(&start),
            nice,
            _lane: lane,
            _alone: alone,
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        HERE.restore(&self.found);
        let _ = self.nice.map(|nice| setpriority_process(None, nice));
    }
}

/// This machine's.
const HERE: Kernel<'static> = Kernel {
    read: &|path| fs::read_to_string(path).ok(),
    // What this kernel refuses, the tests find as it is.
    write: &|path, value| drop(fs::write(path, value)),
};

/// Files of a kernel; one that is not there, or gone, has no text.
struct Kernel<'a> {
    read: &'a dyn Fn(&str) -> Option<String>,
    write: &'a dyn Fn(&str, &str),
}

impl Kernel<'_> {
    fn chosen(&self, path: &str) -> Option<String> {
        (self.read)(path).map(|text| chosen(text.trim()))
    }

    /// Sets what has a value there. What was found is read before the first is written, for one
    /// value moves another.
    fn begin(&self, start: &[(String, &str)]) -> Vec<(String, String)> {
        let found = |(path, _): &(String, &str)| {
            let now = (path.clone(), self.chosen(path)?);
            let counterpart = path.replace("_ratio", "_bytes");
            let bytes = (counterpart != *path)
                .then(|| self.chosen(&counterpart))
                .flatten()
                .filter(|bytes| bytes != "0");
            Some(bytes.map_or(now, |bytes| (counterpart, bytes)))
        };
        let found = start.iter().filter_map(found).collect();
        for (path, value) in start {
            if !value.is_empty() && self.chosen(path).is_some_and(|now| now != *value) {
                (self.write)(path, value);
            }
        }
        found
    }

    fn restore(&self, found: &[(String, String)]) {
        for (path, value) in found {
            if self.chosen(path).is_some_and(|now| now != *value) {
                (self.write)(path, value);
            }
        }
    }
}

/// The word in brackets of a file that lists its choices, or the whole of another.
fn chosen(text: &str) -> String {
    let inner = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inner.map_or(text, |(word, _)| word).to_owned()
}

/// A file system of its own on a loop device, mounted as long as this lives.
pub struct Volume {
    device: String,
    /// Where it is mounted.
    pub place: PathBuf,
}

impl Volume {
    /// A new ext4 of 400 MB in a home.
    pub fn new(home: &Home, name: &str) -> Volume {
        let (image, place) = (home.file(&format!("{name}.image")), home.file(name));
        File::create(&image)
            .expect("a file")
            .set_len(400 << 20)
            .expect("its size");
        tool("mkfs.ext4", &["-q", "-F", &image.to_string_lossy()]);
        let device = tool("losetup", &["--find", "--show", &image.to_string_lossy()]);
        fs::create_dir(&place).expect("a directory");
        tool("mount", &[&device, &place.to_string_lossy()]);
        Volume { device, place }
    }

    /// Its name in /sys/block.
    pub fn disk(&self) -> &str {
        self.device.trim_start_matches("/dev/")
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // A file system without its files, of which one is swapped to, can hardly be found again.
        for file in fs::read_dir(&self.place).into_iter().flatten().flatten() {
            let _ = Command::new("swapoff").arg(file.path()).output();
        }
        let _ = Command::new("umount").arg("-l").arg(&self.place).status();
        let _ = Command::new("losetup").args(["-d", &self.device]).status();
    }
}

/// Whether all guests are asked for, not one kernel and what has its turn.
#[expect(
    clippy::disallowed_methods,
    reason = "a longer run is asked for by a variable"
)]
pub fn all_guests() -> bool {
    std::env::var("PGDYNO_GUESTS").is_ok_and(|asked| asked == "all")
}

/// The newest version of PostgreSQL that tests use: that of the archives, or one that PGDYNO_NEWEST
/// names, whose programs are in PATH.
#[expect(
    clippy::disallowed_methods,
    reason = "another version is asked for by a variable"
)]
pub fn newest() -> String {
    std::env::var("PGDYNO_NEWEST").unwrap_or_else(|_| "18".to_owned())
}

/// All versions that tests use, the oldest first.
pub fn versions() -> Vec<String> {
    let newest: u32 = newest().parse().expect("PGDYNO_NEWEST is a number");
    (14..=newest).map(|major| major.to_string()).collect()
}

/// Whether each profile and each test of versions is asked for on all versions, not on what has its
/// turn.
#[expect(
    clippy::disallowed_methods,
    reason = "a longer run is asked for by a variable"
)]
pub fn whole_matrix() -> bool {
    std::env::var("PGDYNO_MATRIX").is_ok_and(|asked| asked == "all")
}

/// The newest version, and of the older ones that whose turn it is; all of them where the whole
/// matrix is asked for. The oldest first.
pub fn versions_in_turn() -> Vec<String> {
    let mut versions = versions();
    if !whole_matrix() && versions.len() > 2 {
        let last = versions.len() - 1;
        versions = vec![versions.swap_remove(turn() % last), newest()];
    }
    versions
}

/// How many processes a test kills: so many, or as many as a longer run asks for.
#[expect(
    clippy::disallowed_methods,
    reason = "a longer run is asked for by a variable"
)]
pub fn kills(usual: u32) -> u32 {
    let asked = std::env::var("PGDYNO_KILLS").ok();
    asked.map_or(usual, |text| text.parse().expect("PGDYNO_KILLS is a number"))
}

/// A number that another commit changes: whose turn it is, where a test takes one of several. 0
/// outside of a repository.
pub fn turn() -> usize {
    let head = Command::new("git")
        .args(["-C", env!("CARGO_MANIFEST_DIR"), "rev-parse", "HEAD"])
        .output();
    let hash = head.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    hash.ok()
        .and_then(|hash| usize::from_str_radix(hash.get(..8)?, 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    /// A kernel whose reserve is moved by huge pages, and whose bytes are zeroed by their ratio.
    #[test]
    fn what_was_found_is_what_comes_back() {
        let files = [
            ("thp", "[always] madvise"),
            ("dirty_ratio", "0"),
            ("dirty_bytes", "4096"),
            ("reserve", "100"),
        ];
        let files = RefCell::new(BTreeMap::from(files.map(|(path, text)| (path, text.to_owned()))));
        let kernel = Kernel {
            read: &|path| files.borrow().get(path).cloned(),
            write: &|path, value| {
                let mut files = files.borrow_mut();
                let moved = match path {
                    "thp" => Some(("reserve", "555")),
                    "dirty_ratio" => Some(("dirty_bytes", "0")),
                    "dirty_bytes" => Some(("dirty_ratio", "0")),
                    _ => None,
                };
                files.extend(moved.map(|(path, value)| (path, value.to_owned())));
                *files.get_mut(path).expect("a file") = value.to_owned();
            },
        };
        let start = [
            ("thp", "madvise"),
            ("dirty_ratio", "20"),
            ("gone", "1"),
            ("reserve", ""),
        ];
        let found = kernel.begin(&start.map(|(path, value)| (path.to_owned(), value)));
        let texts = || {
            files
                .borrow()
                .values()
                .cloned()
                .collect::<Vec<String>>()
                .join(" ")
        };
        assert_eq!(texts(), "0 20 555 madvise");
        kernel.restore(&found);
        assert_eq!(texts(), "4096 0 100 always");
    }
}
