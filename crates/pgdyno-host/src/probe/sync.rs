//! How long it takes until a small write is safe on a volume, by each way that there is. The
//! measurement is that of pg_test_fsync: blocks of 8 kB over the beginning of a file that is laid
//! out beforehand.

use super::own_file::{Aligned, Noise, OwnFile, free_bytes, room_bytes};
use super::spread::{TIMES_MAX, ns};
use super::{ProbeError, Spread, must_stop};
use serde::Serialize;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// The file is as long as a log segment usually is, so that no flush has to note a new length.
const FILE_BYTES: u64 = 16 << 20;
const BLOCK_BYTES: usize = 8192;
const FILL_BYTES: usize = 1 << 20;
const SEED: u64 = 16;

/// A way to make a write safe, by the name that pg_test_fsync has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncMethod {
    /// write() to a file that was opened with O_DSYNC.
    OpenDatasync,
    /// A write(), then fdatasync().
    Fdatasync,
    /// A write(), then fsync().
    Fsync,
    /// write() to a file that was opened with O_SYNC.
    OpenSync,
}

impl SyncMethod {
    /// Every method that Linux has.
    pub const ALL: [SyncMethod; 4] = [
        SyncMethod::OpenDatasync,
        SyncMethod::Fdatasync,
        SyncMethod::Fsync,
        SyncMethod::OpenSync,
    ];

    /// Name as of wal_sync_method and pg_test_fsync: "fdatasync".
    pub fn name(self) -> &'static str {
        match self {
            SyncMethod::OpenDatasync => "open_datasync",
            SyncMethod::Fdatasync => "fdatasync",
            SyncMethod::Fsync => "fsync",
            SyncMethod::OpenSync => "open_sync",
        }
    }

    /// The method with that name.
    pub fn named(name: &str) -> Option<SyncMethod> {
        SyncMethod::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Whether the write itself waits, so that it can go past the page cache.
    pub fn is_by_opening(self) -> bool {
        matches!(self, SyncMethod::OpenDatasync | SyncMethod::OpenSync)
    }

    /// rustix's DSYNC is O_SYNC.
    fn flags(self) -> i32 {
        match self {
            SyncMethod::OpenDatasync => libc::O_DSYNC,
            SyncMethod::OpenSync => libc::O_SYNC,
            SyncMethod::Fdatasync | SyncMethod::Fsync => 0,
        }
    }

    fn flush(self, file: &File) -> std::io::Result<()> {
        match self {
            SyncMethod::Fdatasync => file.sync_data(),
            SyncMethod::Fsync => file.sync_all(),
            SyncMethod::OpenDatasync | SyncMethod::OpenSync => Ok(()),
        }
    }
}

/// Times of flushes by one method.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SyncTimes {
    /// Method that the flushes were made by.
    pub method: SyncMethod,
    /// Blocks of 8 kB that are made safe together.
    pub writes: u32,
    /// Whether past the page cache (O_DIRECT).
    pub direct: bool,
    /// Flushes per second, one after the other.
    pub per_s: f64,
    /// Times of all writes of one flush together, and it.
    pub times: Spread,
}

/// The file that is written to.
#[derive(Debug)]
pub struct SyncFile {
    own: OwnFile,
}

impl SyncFile {
    /// Lays out the file in a directory and waits until it is on the disk.
    pub fn create(directory: &Path, stop: &AtomicBool) -> Result<SyncFile, ProbeError> {
        if room_bytes(directory, 1)? < FILE_BYTES {
            return Err(ProbeError::Room {
                path: directory.to_owned(),
                available_bytes: free_bytes(directory)?,
                needed_bytes: FILE_BYTES,
            });
        }
        let own = OwnFile::create(directory)?;
        let (mut chunk, mut noise) = (vec![0; FILL_BYTES], Noise(SEED));
        for at in (0..FILE_BYTES).step_by(FILL_BYTES) {
            if must_stop(stop) {
                return Err(ProbeError::Stopped);
            }
            noise.fill(&mut chunk);
            let written = own.file().write_all_at(&chunk, at);
            written.map_err(ProbeError::io(own.path(), "written"))?;
        }
        let flushed = own.file().sync_all();
        flushed.map_err(ProbeError::io(own.path(), "flushed"))?;
        Ok(SyncFile { own })
    }

    /// Writes and flushes over and over, for so long: each time in nanoseconds.
    pub fn measure(
        &self,
        method: SyncMethod,
        writes: u32,
        direct: bool,
        length: Duration,
        stop: &AtomicBool,
    ) -> Result<Vec<u64>, ProbeError> {
        let direct_flag = if direct { libc::O_DIRECT } else { 0 };
        let file = self.own.reopen(method.flags() | direct_flag);
        let file = file.map_err(ProbeError::io(self.own.path(), "opened"))?;
        let mut block = Aligned::new(BLOCK_BYTES);
        Noise(SEED).fill(block.bytes());
        let mut times_ns = Vec::new();
        let begun = Instant::now();
        // Once at least: this process may be held off before the first.
        while (times_ns.is_empty() || begun.elapsed() < length)
            && times_ns.len() < TIMES_MAX
            && !must_stop(stop)
        {
            let before = Instant::now();
            for number in 0..u64::from(writes) {
                let written = file.write_all_at(block.bytes(), number * BLOCK_BYTES as u64);
                written.map_err(ProbeError::io(self.own.path(), "written"))?;
            }
            let flushed = method.flush(&file);
            flushed.map_err(ProbeError::io(self.own.path(), "flushed"))?;
            times_ns.push(ns(before.elapsed()));
        }
        match times_ns.is_empty() {
            true => Err(ProbeError::Stopped),
            false => Ok(times_ns),
        }
    }
}

impl SyncTimes {
    /// From times in nanoseconds; `None` without any.
    pub fn of(method: SyncMethod, writes: u32, direct: bool, times_ns: Vec<u64>) -> Option<SyncTimes> {
        let times = Spread::of(times_ns)?;
        Some(SyncTimes {
            method,
            writes,
            direct,
            per_s: times.rate_per_s(),
            times,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn every_way_is_measured_and_nothing_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let go_on = AtomicBool::new(false);
        let file = SyncFile::create(dir.path(), &go_on).unwrap();
        for method in SyncMethod::ALL {
            assert_eq!(SyncMethod::named(method.name()), Some(method));
            for writes in [1, 2] {
                let found = file
                    .measure(method, writes, false, Duration::from_millis(5), &go_on)
                    .unwrap();
                let found = SyncTimes::of(method, writes, false, found).unwrap();
                assert!(found.times.count > 0 && found.per_s > 0.0, "{found:?}");
            }
        }
        assert_eq!(file.own.file().metadata().unwrap().len(), FILE_BYTES);
        drop(file);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_request_to_stop_is_heard() {
        let dir = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(true);
        assert!(matches!(
            SyncFile::create(dir.path(), &stop),
            Err(ProbeError::Stopped)
        ));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_two_flags_are_two() {
        assert_ne!(SyncMethod::OpenDatasync.flags(), SyncMethod::OpenSync.flags());
    }
}
