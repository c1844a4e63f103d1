//! How quickly a volume is read: single blocks of 8 kB here and there, and long stretches one after
//! the other, one request at a time and past the page cache.

use super::own_file::{Aligned, Noise, OwnFile, free_bytes, room_bytes};
use super::spread::{TIMES_MAX, ns};
use super::{ProbeError, Spread, must_stop};
use rustix::fs::{Advice, fadvise};
use serde::Serialize;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

const BLOCK_BYTES: usize = 8192;
const STRETCH_BYTES: usize = 1 << 20;
/// Larger than what disks keep in memories of their own.
const FILE_MOST_BYTES: u64 = 256 << 20;
/// Below this a figure would be that of a cache.
const FILE_LEAST_BYTES: u64 = 8 << 20;
/// Of what is free, this part may be taken: one in so many.
const PART_OF_FREE: u64 = 10;
/// A slow disk gets a smaller file, so that it is not busy for longer.
const FILL_WITHIN: Duration = Duration::from_secs(10);
const SEED: u64 = 256;

/// A file that is read, and how.
#[derive(Debug)]
pub struct ReadFile {
    own: OwnFile,
    file: File,
    bytes: u64,
    is_direct: bool,
}

/// Times of reads of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ReadTimes {
    /// Bytes that one read takes.
    pub read_bytes: u64,
    /// Reads per second.
    pub per_s: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Times of single reads.
    pub times: Spread,
}

impl ReadFile {
    /// Writes the file, as large as room and time allow, and waits until it is on the disk.
    pub fn create(directory: &Path, stop: &AtomicBool) -> Result<ReadFile, ProbeError> {
        let room = room_bytes(directory, PART_OF_FREE)?.min(FILE_MOST_BYTES);
        let most = room - room % STRETCH_BYTES as u64;
        if most < FILE_LEAST_BYTES {
            return Err(ProbeError::Room {
                path: directory.to_owned(),
                available_bytes: free_bytes(directory)?,
                needed_bytes: FILE_LEAST_BYTES,
            });
        }
        let own = OwnFile::create(directory)?;
        let (file, is_direct) = open(&own).map_err(ProbeError::io(own.path(), "opened"))?;
        let mut made = ReadFile {
            own,
            file,
            bytes: 0,
            is_direct,
        };
        made.fill(most, stop)?;
        Ok(made)
    }

    fn fill(&mut self, most: u64, stop: &AtomicBool) -> Result<(), ProbeError> {
        let (mut stretch, mut noise) = (Aligned::new(STRETCH_BYTES), Noise(SEED));
        let begun = Instant::now();
        while self.bytes < most && (self.bytes < FILE_LEAST_BYTES || begun.elapsed() < FILL_WITHIN) {
            if must_stop(stop) {
                return Err(ProbeError::Stopped);
            }
            noise.fill(stretch.bytes());
            let written = self.file.write_all_at(stretch.bytes(), self.bytes);
            written.map_err(ProbeError::io(self.own.path(), "written"))?;
            self.bytes += STRETCH_BYTES as u64;
        }
        let flushed = self.file.sync_all();
        flushed.map_err(ProbeError::io(self.own.path(), "flushed"))?;
        self.forget(0, None)
            .map_err(ProbeError::io(self.own.path(), "forgotten"))
    }

    /// Size of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether it is read with O_DIRECT. Where that is refused, the page cache is asked to forget
    /// what was read.
    pub fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// Blocks of 8 kB anywhere, for so long.
    pub fn random(&self, length: Duration, stop: &AtomicBool) -> Result<ReadTimes, ProbeError> {
        self.random_from(SEED + 1, length, stop)
    }

    /// The same by so many readers at a time: how many reads all of them make in a second.
    pub fn random_by(&self, readers: u32, length: Duration, stop: &AtomicBool) -> Result<f64, ProbeError> {
        thread::scope(|scope| {
            let begin = |reader: u32| {
                let seed = SEED + 2 + u64::from(reader);
                scope.spawn(move || self.random_from(seed, length, stop))
            };
            let readers: Vec<_> = (0..readers).map(begin).collect();
            let ended = readers.into_iter().map(|reader| {
                let read = reader.join().unwrap_or(Err(ProbeError::Stopped));
                read.map(|times| times.per_s)
            });
            ended.sum()
        })
    }

    fn random_from(&self, seed: u64, length: Duration, stop: &AtomicBool) -> Result<ReadTimes, ProbeError> {
        let (blocks, mut noise) = (self.bytes / BLOCK_BYTES as u64, Noise(seed));
        let mut next = || noise.next() % blocks * BLOCK_BYTES as u64;
        self.read(BLOCK_BYTES, &mut next, length, stop)
    }

    /// 1 MB after 1 MB, from the beginning again where it ends, for so long.
    pub fn sequential(&self, length: Duration, stop: &AtomicBool) -> Result<ReadTimes, ProbeError> {
        let mut at = 0;
        let mut next = || {
            let now = at;
            at = (at + STRETCH_BYTES as u64) % self.bytes;
            now
        };
        self.read(STRETCH_BYTES, &mut next, length, stop)
    }

    fn read(
        &self,
        size: usize,
        next: &mut dyn FnMut() -> u64,
        length: Duration,
        stop: &AtomicBool,
    ) -> Result<ReadTimes, ProbeError> {
        let mut memory = Aligned::new(size);
        let mut times_ns = Vec::new();
        let begun = Instant::now();
        // Once at least: this process may be held off before the first.
        while (times_ns.is_empty() || begun.elapsed() < length)
            && times_ns.len() < TIMES_MAX
            && !must_stop(stop)
        {
            let at = next();
            let before = Instant::now();
            let read = self.file.read_exact_at(memory.bytes(), at);
            times_ns.push(ns(before.elapsed()));
            read.and_then(|()| self.forget(at, NonZeroU64::new(size as u64)))
                .map_err(ProbeError::io(self.own.path(), "read"))?;
        }
        let times = Spread::of(times_ns).ok_or(ProbeError::Stopped)?;
        #[expect(clippy::cast_precision_loss, reason = "the size of a read")]
        let size_bytes = size as f64;
        Ok(ReadTimes {
            read_bytes: size as u64,
            per_s: times.rate_per_s(),
            bytes_per_s: times.rate_per_s() * size_bytes,
            times,
        })
    }

    /// Nothing is to be forgotten where nothing was remembered.
    fn forget(&self, at: u64, length: Option<NonZeroU64>) -> io::Result<()> {
        match self.is_direct {
            true => Ok(()),
            false => Ok(fadvise(&self.file, at, length, Advice::DontNeed)?),
        }
    }
}

/// The file past the page cache, or through it where that is refused: when it is opened (EINVAL),
/// or only when it is used.
fn open(own: &OwnFile) -> io::Result<(File, bool)> {
    let mut block = Aligned::new(BLOCK_BYTES);
    let direct = own.reopen(libc::O_DIRECT).and_then(|file| {
        file.write_all_at(block.bytes(), 0)?;
        file.read_exact_at(block.bytes(), 0)?;
        Ok(file)
    });
    match direct {
        Ok(file) => Ok((file, true)),
        Err(error)
            if error.raw_os_error() == Some(libc::EINVAL)
                || error.raw_os_error() == Some(libc::EOPNOTSUPP) =>
        {
            let file = own.reopen(0)?;
            // No reading ahead: what is not asked for is not to be read.
            fadvise(&file, 0, None, Advice::Random)?;
            Ok((file, false))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn both_kinds_of_reads_are_measured_on_disk_and_in_memory() {
        for place in ["/var/tmp", "/dev/shm"] {
            let dir = tempfile::tempdir_in(place).unwrap();
            let go_on = AtomicBool::new(false);
            let own = OwnFile::create(dir.path()).unwrap();
            let (file, is_direct) = open(&own).unwrap();
            let mut small = ReadFile {
                own,
                file,
                bytes: 0,
                is_direct,
            };
            small.fill(FILE_LEAST_BYTES, &go_on).unwrap();
            assert_eq!(small.bytes(), FILE_LEAST_BYTES);
            let length = Duration::from_millis(5);
            let random = small.random(length, &go_on).unwrap();
            let sequential = small.sequential(length, &go_on).unwrap();
            assert_eq!((random.read_bytes, sequential.read_bytes), (8192, 1 << 20));
            assert!(random.per_s > 0.0 && sequential.bytes_per_s > 0.0);
            assert!(small.random_by(3, length, &go_on).unwrap() > 0.0);
            drop(small);
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_request_to_stop_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let stopped = ReadFile::create(dir.path(), &AtomicBool::new(true));
        assert!(matches!(stopped, Err(ProbeError::Stopped)));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
