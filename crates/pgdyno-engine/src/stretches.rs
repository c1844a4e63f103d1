//! The books of a load's measured time, stretch by stretch: a part of it can be taken for itself.

use crate::books::{Books, Second};

/// More are joined two by two: some 30 kB each. Even, for two are made one.
const STRETCHES_MAX: usize = 300;

/// Books of the measured time, one for each second, and for 2, 4, 8 seconds and so on where there would be more than 300.
#[derive(Debug, Clone)]
pub struct Stretches {
    /// Seconds of a stretch.
    stretch: usize,
    /// Seconds so far.
    seconds: usize,
    /// Length in seconds, and books, of each.
    parts: Vec<(f64, Books)>,
}

impl Default for Stretches {
    fn default() -> Stretches {
        Stretches {
            stretch: 1,
            seconds: 0,
            parts: Vec::new(),
        }
    }
}

impl Stretches {
    /// Adds the next second of a load, in order; those of the warm-up are left out.
    pub fn add(&mut self, second: &Second) {
        if !second.measured {
            return;
        }
        if self.parts.len() == STRETCHES_MAX && self.seconds == STRETCHES_MAX * self.stretch {
            self.join();
        }
        match self
            .parts
            .last_mut()
            .filter(|_| !self.seconds.is_multiple_of(self.stretch))
        {
            Some((length_s, books)) => {
                *length_s += second.length_s;
                books.add(&second.books);
            }
            None => self.parts.push((second.length_s, second.books.clone())),
        }
        self.seconds += 1;
    }

    fn join(&mut self) {
        let mut joined: Vec<(f64, Books)> = Vec::with_capacity(STRETCHES_MAX);
        for (place, (length_s, books)) in std::mem::take(&mut self.parts).into_iter().enumerate() {
            match joined.last_mut().filter(|_| place % 2 == 1) {
                Some((all_s, all)) => {
                    *all_s += length_s;
                    all.add(&books);
                }
                None => joined.push((length_s, books)),
            }
        }
        self.parts = joined;
        self.stretch *= 2;
    }

    /// The books without the first so many seconds of the measured time, rounded up to whole stretches: how many seconds that are, how
    /// long what is left took, and its books with what `measured` has skipped. `None` where nothing is left.
    pub fn after(&self, seconds: usize, measured: &Books) -> Option<(usize, f64, Books)> {
        let cut = seconds.div_ceil(self.stretch);
        let (_, first) = self.parts.get(cut)?;
        let mut books = first.clone();
        let mut length_s = 0.0;
        for (place, (part_s, part)) in self.parts.iter().enumerate().skip(cut) {
            length_s += part_s;
            if place > cut {
                books.add(part);
            }
        }
        books.take_skipped(measured);
        Some((cut * self.stretch, length_s, books))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::books::Instants;

    fn filled(seconds: u64) -> Stretches {
        let mut stretches = Stretches::default();
        for number in 0..=seconds {
            let mut books = Books::for_a_second();
            let at = Instants {
                due_ns: 0,
                begun_ns: 0,
                done_ns: number * 1_000_000,
            };
            books.commit(at, u64::MAX, false, false);
            stretches.add(&Second {
                number: 1,
                length_s: 1.0,
                // The first one is the warm-up.
                measured: number > 0,
                books,
                clients: 1,
            });
        }
        stretches
    }

    #[test]
    fn what_is_left_after_a_cut_is_all_that_came_later() {
        let check = |seconds: u64, from: usize, cut: usize| {
            let mut measured = Books::new(true);
            measured.skip(5_000_000_000);
            let (found, length_s, books) = filled(seconds).after(from, &measured).unwrap();
            let left = seconds - cut as u64;
            assert_eq!(
                (found, books.committed, books.skipped),
                (cut, left, 1),
                "{seconds} {from}"
            );
            assert!((length_s - left as f64).abs() < 1e-9 && books.add_up());
            let shortest_ms = books.response_ns.min() as f64 / 1e6;
            assert!(
                (shortest_ms / (cut as f64 + 1.0) - 1.0).abs() < 0.02,
                "{shortest_ms}"
            );
        };
        check(30, 10, 10);
        check(300, 299, 299);
        check(301, 20, 20);
        check(301, 21, 22);
        check(1201, 21, 24);
        assert!(filled(30).after(30, &Books::new(false)).is_none());
    }
}
