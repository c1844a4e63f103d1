//! The seconds of all threads, put together while the load runs.

use crate::books::{Second, SecondFigures};
use pgdyno_stats::has_settled;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Instant;

/// What a thread reports while it runs: a second, or that no more will come.
pub(crate) type ThreadSecond = (u32, Option<Second>);

/// Watches for the end of a warm-up.
pub(crate) struct Settling<'a> {
    /// Where the second is stored with whose end the load has settled.
    pub(crate) settled_s: &'a AtomicU32,
    /// The load is taken as settled after so many seconds at most.
    pub(crate) most_s: u32,
    /// When the load began, or a moment before.
    pub(crate) begun: Instant,
}

impl Settling<'_> {
    fn check(&self, reported: &[SecondFigures]) {
        let number = reported.last().map_or(0, |second| second.number);
        if self.settled_s.load(Ordering::Relaxed) == 0 {
            let tps: Vec<f64> = reported.iter().map(SecondFigures::tps).collect();
            if number >= self.most_s || has_settled(&tps) {
                // Where a thread was held up, its seconds are reported long after they were.
                let now_s = u32::try_from(self.begun.elapsed().as_secs()).unwrap_or(u32::MAX);
                self.settled_s.store(number.max(now_s), Ordering::Relaxed);
            }
        }
    }
}

/// Puts the threads' seconds together; a second is reported once every thread has delivered it or
/// has ended before it, and its figures are kept.
pub(crate) fn collect(
    receiver: &Receiver<ThreadSecond>,
    threads: u32,
    settling: Option<Settling<'_>>,
    on_second: &mut dyn FnMut(&Second),
) -> Vec<SecondFigures> {
    let mut reported = Vec::new();
    let mut open: BTreeMap<u32, Second> = BTreeMap::new();
    let mut delivered = vec![0_u32; threads as usize];
    let mut ended = vec![false; threads as usize];
    for (thread, second) in receiver {
        let thread = thread as usize;
        match second {
            None => ended[thread] = true,
            Some(second) => {
                delivered[thread] = second.number;
                match open.get_mut(&second.number) {
                    Some(sum) => {
                        sum.books.add(&second.books);
                        sum.clients += second.clients;
                        sum.length_s = sum.length_s.max(second.length_s);
                    }
                    None => {
                        open.insert(second.number, second);
                    }
                }
            }
        }
        while let Some(entry) = open.first_entry() {
            let number = *entry.key();
            if !delivered
                .iter()
                .zip(&ended)
                .all(|(&last, &ended)| ended || last >= number)
            {
                break;
            }
            let second = entry.remove();
            on_second(&second);
            reported.push(second.figures());
            if let Some(settling) = &settling {
                settling.check(&reported);
            }
        }
    }
    reported
}
