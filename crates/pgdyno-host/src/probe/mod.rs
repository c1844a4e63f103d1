//! Small measurements of this machine: what a read of the clock, a flush and a read of a disk take.
//! Nothing is written but files of its own, which are gone afterwards.

mod clock;
mod own_file;
mod read;
mod spread;
mod sync;
mod timer;

pub use clock::{ClockState, ClockWatch, Drift, clock_source, clock_state};
pub use own_file::{LeftOver, is_memory, left_overs};
pub use read::{ReadFile, ReadTimes};
pub use spread::Spread;
pub use sync::{SyncFile, SyncMethod, SyncTimes};
pub use timer::{TimerCost, timer_cost};

use own_file::FREE_LEAST_BYTES;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// Why something could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A file of our own that could not be made, written or read.
    #[error("{path} could not be {action}: {source}")]
    Io {
        /// The file or its directory.
        path: PathBuf,
        /// "made", "written" and so on.
        action: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
    /// Too little room is left.
    #[error(
        "{path} has {available_bytes} bytes free; the file needs {needed_bytes}, and {FREE_LEAST_BYTES} must be left"
    )]
    Room {
        /// Directory that the file was to be made in.
        path: PathBuf,
        /// Bytes that this user may still take.
        available_bytes: u64,
        /// The least that the file needs.
        needed_bytes: u64,
    },
    /// A stop was requested.
    #[error("stopped before anything was measured")]
    Stopped,
}

impl ProbeError {
    fn io(path: &std::path::Path, action: &'static str) -> impl FnOnce(io::Error) -> ProbeError {
        let path = path.to_owned();
        move |source| ProbeError::Io { path, action, source }
    }
}

fn must_stop(stop: &AtomicBool) -> bool {
    stop.load(Ordering::Relaxed)
}
