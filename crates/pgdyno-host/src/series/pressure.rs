//! Pressure stalls (PSI): the share of time in which some or all tasks waited for CPU, memory or
//! I/O.

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
                // The kernel adds up a stall when it ends or is asked; a moment's excess over the
                // interval is not a share.
                Some(us) => reading.push(Key::one(metric), (us / US_PER_S / seconds).min(1.0)),
                None => reading.gap(metric, WENT_BACK),
            },
            _ => reading.gap(metric, "this kernel has no such line, or no total= in it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::fixture::{Tree, gaps, lines};
    use proptest::prelude::*;

    fn line(kind: &str, total: u64) -> String {
        format!("{kind} avg10=0.02 avg60=1.21 avg300=8.77 total={total}\n")
    }

    #[test]
    fn stalls_are_shares_of_the_time_between_two_reads() {
        let file = "/proc/pressure/io";
        let mut tree = Tree::new(&[(file, &(line("some", 1_000_000) + &line("full", 500_000)))]);
        let mut io = Pressure::all().into_iter().nth(2).unwrap();
        let mut read = |text: String, second| {
            tree.put(&[(file, &text)]);
            let at = tree.at(second);
            io.read(&tree.host, &mut tree.buffer, at)
        };
        let first = read(line("some", 1_000_000) + &line("full", 500_000), 0);
        assert!(first.values.is_empty() && first.gaps.is_empty());
        let second = read(line("some", 2_000_000) + &line("full", 600_000), 2);
        assert_eq!(
            lines(&second),
            ["psi.io.some_ratio 0.5", "psi.io.full_ratio 0.05"]
        );
        // Restarted, and a line less.
        let third = read(line("some", 7), 4);
        assert_eq!(gaps(&third), ["psi.io.some_ratio", "psi.io.full_ratio"]);
        assert!(third.values.is_empty());
    }

    #[test]
    fn for_cpus_of_a_whole_machine_there_is_no_full() {
        let file = "/proc/pressure/cpu";
        let mut tree = Tree::new(&[(file, &line("some", 0))]);
        let mut cpu = Pressure::all().into_iter().next().unwrap();
        for second in [0, 1] {
            let at = tree.at(second);
            // Kernels before 5.13 have no such line; the later ones write a zero.
            tree.put(&[(file, &(line("some", second * 250_000) + &line("full", 0)))]);
            let reading = cpu.read(&tree.host, &mut tree.buffer, at);
            let expected: &[&str] = if second == 0 {
                &[]
            } else {
                &["psi.cpu.some_ratio 0.25"]
            };
            assert_eq!(lines(&reading), expected);
            assert!(reading.gaps.is_empty());
        }
    }

    #[test]
    fn a_kernel_without_it_is_a_gap() {
        let mut tree = Tree::new(&[]);
        for mut pressure in Pressure::all() {
            let at = tree.at(0);
            let reading = pressure.read(&tree.host, &mut tree.buffer, at);
            assert_eq!(gaps(&reading), [pressure.file.path()]);
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(some|full)?.{0,20}(total=)?[0-9]{0,25}\n?.{0,40}") {
            let _ = Totals::parse(&text);
        }
    }
}
