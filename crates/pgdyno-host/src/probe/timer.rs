//! What a read of the clock takes, as pg_test_timing measures it: read after read, and the
//! differences counted.

use super::must_stop;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Reads between two checks for a stop: less than a millisecond, in which the kernel seldom takes
/// the CPU away.
const LOOKS_AT_ONCE: u32 = 1 << 13;
const STRETCHES_USUAL: usize = 1 << 14;
/// Differences of up to 2^63 ns.
const CLASSES: usize = 64;

/// Cost of reading the clock.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimerCost {
    /// Number of times that the clock was read.
    pub reads: u64,
    /// Mean time of a read, the time in which other processes had the CPU included, as of
    /// pg_test_timing.
    pub mean_ns: f64,
    /// What one took in the middle one of many short stretches, most of which nobody interrupts.
    pub typical_ns: f64,
    /// Differences between two reads: below so many nanoseconds (a power of two, from half of it),
    /// and how many.
    pub histogram: Vec<(u64, u64)>,
    /// How often the clock went backwards; never, on a sound one.
    pub backwards: u64,
}

impl TimerCost {
    /// The share of reads that took less than so many nanoseconds, 0 to 1; as exact as the classes
    /// are.
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    pub fn share_below(&self, limit_ns: u64) -> f64 {
        let below = self
            .histogram
            .iter()
            .filter(|(below_ns, _)| *below_ns <= limit_ns);
        below.map(|(_, count)| *count as f64).sum::<f64>() / (self.reads as f64).max(1.0)
    }
}

/// Reads the monotonic clock for so long.
pub fn timer_cost(length: Duration, stop: &AtomicBool) -> TimerCost {
    let mut classes = [0_u64; CLASSES];
    let (mut reads, mut backwards) = (0_u64, 0_u64);
    let mut stretches_ns = Vec::with_capacity(STRETCHES_USUAL);
    let length_ns = i64::try_from(length.as_nanos()).unwrap_or(i64::MAX);
    let begun = now_ns();
    let mut last = begun;
    while last - begun < length_ns && !must_stop(stop) {
        let before = last;
        for _ in 0..LOOKS_AT_ONCE {
            let now = now_ns();
            match u64::try_from(now - last) {
                Ok(difference) => classes[class_of(difference)] += 1,
                Err(_) => backwards += 1,
            }
            last = now;
        }
        reads += u64::from(LOOKS_AT_ONCE);
        stretches_ns.push(last - before);
    }
    #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a few seconds")]
    let each_ns = |all_ns: i64, looks: u64| all_ns as f64 / (looks as f64).max(1.0);
    stretches_ns.sort_unstable();
    let middle_ns = stretches_ns.get(stretches_ns.len() / 2).copied();
    let histogram = (0_u32..)
        .zip(classes)
        .filter(|(_, count)| *count > 0)
        .map(|(bits, count)| (1_u64 << bits, count))
        .collect();
    TimerCost {
        reads,
        mean_ns: each_ns(last - begun, reads),
        typical_ns: each_ns(middle_ns.unwrap_or(0), u64::from(LOOKS_AT_ONCE)),
        histogram,
        backwards,
    }
}

/// How many bits the number has: class n holds what is below 2^n.
fn class_of(difference_ns: u64) -> usize {
    let bits = u64::BITS - difference_ns.leading_zeros();
    (bits as usize).min(CLASSES - 1)
}

fn now_ns() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_powers_of_two() {
        assert_eq!([0, 1, 2, 3, 4, 255, 256].map(class_of), [0, 1, 2, 2, 3, 8, 9]);
        assert_eq!(class_of(u64::MAX), CLASSES - 1);
    }

    #[test]
    fn every_look_is_counted_once() {
        let found = timer_cost(Duration::from_millis(2), &AtomicBool::new(false));
        let counted: u64 = found.histogram.iter().map(|(_, count)| count).sum();
        assert_eq!(counted + found.backwards, found.reads);
        assert!(found.mean_ns > 0.0 && found.typical_ns > 0.0);
        assert!((found.share_below(u64::MAX) - 1.0).abs() < 1e-9);
        let stopped = timer_cost(Duration::from_secs(60), &AtomicBool::new(true));
        assert_eq!(
            (stopped.reads, stopped.mean_ns, stopped.typical_ns),
            (0, 0.0, 0.0)
        );
    }
}
