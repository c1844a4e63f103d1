//! Whether the time of day is kept: what the kernel knows of it (adjtimex(2)), and whether it was
//! set meanwhile.

use crate::access::{HostAccess, HostError};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::io;
use std::mem::MaybeUninit;

/// The state of the kernel's clock discipline, by adjtimex(2).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClockState {
    /// Whether a daemon keeps the clock to a reference.
    pub is_synchronised: bool,
    /// Largest error of the clock, as that daemon has set it.
    pub error_max_us: f64,
    /// Estimated error of the clock.
    pub error_estimated_us: f64,
    /// Correction of the hardware's frequency.
    pub frequency_ppm: f64,
}

/// Reads the state of the clock, and sets nothing.
pub fn clock_state() -> io::Result<ClockState> {
    let mut timex = MaybeUninit::<libc::timex>::zeroed();
    // SAFETY: timex is plain numbers, for which zero is a value; with modes = 0 the kernel only
    // fills it.
    let (state, timex) = unsafe {
        let state = libc::adjtimex(timex.as_mut_ptr());
        (state, timex.assume_init())
    };
    if state < 0 {
        return Err(io::Error::last_os_error());
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "microseconds, and parts per million in steps of 2^-16"
    )]
    Ok(ClockState {
        is_synchronised: timex.status & libc::STA_UNSYNC == 0,
        error_max_us: timex.maxerror as f64,
        error_estimated_us: timex.esterror as f64,
        frequency_ppm: timex.freq as f64 / 65_536.0,
    })
}

/// The hardware that the kernel reads the time from.
pub fn clock_source(host: &dyn HostAccess) -> Result<String, HostError> {
    host.read_trimmed("/sys/devices/system/clocksource/clocksource0/current_clocksource")
}

/// Reads of the three clocks, of which the quickest counts: between the first and the last of them
/// the kernel may give the CPU to others for milliseconds, which would appear as if the time of day
/// had been set.
const LOOKS: usize = 16;

/// Three clocks at one instant.
#[derive(Debug, Clone, Copy)]
pub struct ClockWatch {
    real_ns: i64,
    monotonic_ns: i64,
    raw_ns: i64,
}

/// Difference between two clocks over a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Drift {
    /// Time since the watch began.
    pub elapsed_s: f64,
    /// How far the time of day was set forward (or back) meanwhile; slewing moves both clocks and
    /// does not count.
    pub set_by_us: f64,
    /// How much quicker the kernel lets time pass than the hardware does.
    pub slewed_ppm: f64,
}

impl ClockWatch {
    /// Begins to compare the clocks.
    pub fn start() -> ClockWatch {
        ClockWatch::look(&mut ns)
    }

    fn look(read: &mut dyn FnMut(ClockId) -> i64) -> ClockWatch {
        let mut look = || {
            let monotonic_ns = read(ClockId::Monotonic);
            let (real_ns, raw_ns) = (read(ClockId::Realtime), read(ClockId::MonotonicRaw));
            let took_ns = read(ClockId::Monotonic) - monotonic_ns;
            let found = ClockWatch {
                real_ns,
                monotonic_ns,
                raw_ns,
            };
            (took_ns, found)
        };
        let (mut least_ns, mut quickest) = look();
        for _ in 1..LOOKS {
            let (took_ns, found) = look();
            if took_ns < least_ns {
                (least_ns, quickest) = (took_ns, found);
            }
        }
        quickest
    }

    /// Difference of the clocks since the start.
    pub fn drift(&self) -> Drift {
        self.until(ClockWatch::start())
    }

    #[expect(clippy::cast_precision_loss, reason = "differences of minutes")]
    fn until(&self, now: ClockWatch) -> Drift {
        let real = now.real_ns - self.real_ns;
        let monotonic = now.monotonic_ns - self.monotonic_ns;
        let raw = now.raw_ns - self.raw_ns;
        let slewed_ppm = match raw {
            ..=0 => 0.0,
            raw => (monotonic - raw) as f64 / raw as f64 * 1e6,
        };
        Drift {
            elapsed_s: monotonic as f64 / 1e9,
            set_by_us: (real - monotonic) as f64 / 1e3,
            slewed_ppm,
        }
    }
}

fn ns(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(real_ns: i64, monotonic_ns: i64, raw_ns: i64) -> ClockWatch {
        ClockWatch {
            real_ns,
            monotonic_ns,
            raw_ns,
        }
    }

    #[test]
    fn a_clock_that_is_set_is_distinguished_from_one_that_is_slewed() {
        let begun = at(1_000, 0, 0);
        let set = begun.until(at(1_000 + 1_005_000_000, 1_000_000_000, 1_000_000_000));
        assert_eq!(
            (set.set_by_us, set.slewed_ppm, set.elapsed_s),
            (5_000.0, 0.0, 1.0)
        );
        let slewed = begun.until(at(1_000 + 1_000_100_000, 1_000_100_000, 1_000_000_000));
        assert_eq!((slewed.set_by_us, slewed.slewed_ppm), (0.0, 100.0));
        assert_eq!(begun.until(begun).slewed_ppm, 0.0);
    }

    #[test]
    fn an_interrupted_look_does_not_count() {
        // Each read takes 1 us; the second one of all is held up by 5 ms.
        let (mut now_ns, mut reads) = (0, 0);
        let found = ClockWatch::look(&mut |_| {
            reads += 1;
            now_ns += if reads == 2 { 5_000_000 } else { 1_000 };
            now_ns
        });
        let drift = at(0, 0, 0).until(found);
        assert!(drift.set_by_us.abs() < 10.0, "{drift:?}");
    }

    #[test]
    fn the_kernel_reports_the_state_or_says_why_not() {
        match clock_state() {
            Ok(state) => assert!(state.frequency_ppm.abs() <= 500.0, "{state:?}"),
            Err(error) => assert!(error.raw_os_error().is_some(), "{error}"),
        }
    }
}
