//! Pressure stalls (PSI): the share of time in which some or all tasks waited for CPU, memory or I/O.

use super::files::{Buffer, Kept};
use super::step::{Before, Last, WENT_BACK};
use super::{Key, Reading, growth};
use crate::access::HostAccess;
use std::time::Instant;

/// `total=` counts microseconds (Documentation/accounting/psi.rst).
const US_PER_S: f64 = 1e6;

#[derive(Debug, Default, PartialEq)]
struct Totals {
    some_us: Option<u64>,
    full_us: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Pressure {
    file: Kept,
    some: &'static str,
    /// For the CPUs of a whole machine "full" means nothing; the kernel writes a zero there.
    full: Option<&'static str>,
    last: Last<Totals>,
}

impl Pressure {
    /// The three of a whole machine.
    pub(super) fn all() -> [Pressure; 3] {
        [
            ("cpu", "psi.cpu.some_ratio", None),
            ("memory", "psi.memory.some_ratio", Some("psi.memory.full_ratio")),
            ("io", "psi.io.some_ratio", Some("psi.io.full_ratio")),
        ]
        .map(|(name, some, full)| Pressure {
            file: Kept::new(format!("/proc/pressure/{name}")),
            some,
            full,
            last: Last::default(),
        })
    }

    pub(super) fn read(&mut self, host: &dyn HostAccess, buffer: &mut Buffer, at: Instant) -> Reading {
        match self.file.read(host, buffer).map(Totals::parse) {
            Ok(totals) => {
                let metrics = [Some(self.some), self.full];
                self.last.step(at, totals, |before, now, reading| {
                    fill(metrics, before, now, reading)
                })
            }
            Err(error) => self.last.lost(at, &error),
        }
    }
}

impl Totals {
    fn parse(text: &str) -> Totals {
        let mut totals = Totals::default();
        for line in text.lines() {
            let mut fields = line.split_ascii_whitespace();
            let place = match fields.next() {
                Some("some") => &mut totals.some_us,
                Some("full") => &mut totals.full_us,
                _ => continue,
            };
            *place = fields.find_map(|field| field.strip_prefix("total=")?.parse().ok());
        }
        totals
    }
}

fn fill(
    metrics: [Option<&'static str>; 2],
    before: Option<Before<'_, Totals>>,
    now: &Totals,
    reading: &mut Reading,
) {
    let Some(Before { state, seconds }) = before else {
        return;
    };
    let pairs = [(state.some_us, now.some_us), (state.full_us, now.full_us)];
    for (metric, pair) in metrics.into_iter().zip(pairs) {
        let Some(metric) = metric else { continue };
        match pair {
            (Some(before), Some(now)) => match growth(before, now) {
                // The kernel adds up a stall when it ends or is asked; a moment's excess over the interval is no share.
                Some(us) => reading.push(Key::one(metric), (us / US_PER_S / seconds).min(1.0)),
                None => reading.gap(metric, WENT_BACK),
            },
            _ => reading.gap(metric, "this kernel has no such line, or no total= in it"),
        }
    }
}
