//! Response times over time: how many transactions of each stretch took how long, in few classes. Made of the seconds that a
//! load has told, so nothing of it is done for a transaction.

use crate::books::{Books, Second};

/// Classes per factor of two, of the same width in nanoseconds. A histogram's own lie within one each, down to 2 µs.
const CLASSES_PER_OCTAVE: u64 = 4;
/// A picture of 1,000 pixels shows no more. Even, for two are made one where there are more.
const STRETCHES_MAX: usize = 300;

/// The class of a response time.
fn class_of(ns: u64) -> usize {
    let octave = u64::from(ns.max(CLASSES_PER_OCTAVE).ilog2());
    let part = (ns >> (octave - 2)) % CLASSES_PER_OCTAVE;
    usize::try_from(octave * CLASSES_PER_OCTAVE + part).unwrap_or(usize::MAX)
}

/// Where a class begins, and the one below it ends.
fn edge_ns(class: usize) -> u64 {
    let class = class as u64;
    let (octave, part) = (class / CLASSES_PER_OCTAVE, class % CLASSES_PER_OCTAVE);
    (CLASSES_PER_OCTAVE + part) << octave.saturating_sub(2)
}

/// Response times of the committed transactions of a load's measured time, stretch by stretch: one a second, and longer ones,
/// of 2, 4, 8 seconds and so on, where there would be more than 300.
#[derive(Debug, Clone)]
pub struct Heat {
    begins_s: f64,
    ends_s: f64,
    /// Length of a stretch in seconds.
    stretch_s: u32,
    /// Seconds that the last one has so far.
    filled_s: u32,
    /// A count for each class from the first one on; of those above the longest none.
    stretches: Vec<Vec<u64>>,
}

impl Default for Heat {
    fn default() -> Heat {
        Heat {
            begins_s: 0.0,
            ends_s: 0.0,
            stretch_s: 1,
            filled_s: 0,
            stretches: Vec::new(),
        }
    }
}

impl Heat {
    /// Adds the next second of a load, in order and warm-up included, which tells where the measured time begins.
    pub fn add(&mut self, second: &Second) {
        if self.stretches.is_empty() {
            self.begins_s = self.ends_s;
        }
        self.ends_s += second.length_s;
        if !second.measured {
            return;
        }
        if self.stretches.is_empty() || self.filled_s == self.stretch_s {
            if self.stretches.len() == STRETCHES_MAX {
                self.join();
            }
            self.stretches.push(Vec::new());
            self.filled_s = 0;
        }
        self.filled_s += 1;
        self.count(&second.books);
    }

    /// Adds what was measured and is in no second ([`crate::LoadResult::untold`]) to the last stretch, when the load has ended.
    pub fn end(&mut self, untold: &Books) {
        if self.stretches.is_empty() {
            self.begins_s = self.ends_s;
            self.stretches.push(Vec::new());
        }
        self.count(untold);
    }

    /// Counts into the last stretch.
    fn count(&mut self, books: &Books) {
        let Some(last) = self.stretches.last_mut() else {
            return;
        };
        for step in books.response_ns.iter_recorded() {
            let class = class_of(step.value_iterated_to());
            if last.len() <= class {
                last.resize(class + 1, 0);
            }
            last[class] += step.count_at_value();
        }
    }

    /// Joins the stretches two by two.
    fn join(&mut self) {
        let pairs = self.stretches.chunks(2).map(|pair| {
            let longest = pair.iter().map(Vec::len).max().unwrap_or(0);
            let of_class = |class: usize| pair.iter().filter_map(|one| one.get(class)).sum();
            (0..longest).map(of_class).collect()
        });
        self.stretches = pairs.collect();
        self.stretch_s *= 2;
    }

    /// The same without the stretches of the first so many seconds.
    pub fn after(&self, seconds: usize) -> Heat {
        let cut = seconds.div_ceil(self.stretch_s as usize);
        Heat {
            stretches: self.stretches.iter().skip(cut).cloned().collect(),
            ..self.clone()
        }
    }

    /// For each stretch how many of its response times lie beyond this one, and how many there are: beyond the class that holds it, or from
    /// that class on where it is the longest.
    pub fn beyond(&self, ns: u64) -> Vec<(u64, u64)> {
        let longest = self.stretches.iter().map(Vec::len).max().unwrap_or(0);
        let first = (class_of(ns) + 1).min(longest.saturating_sub(1));
        let count = |stretch: &Vec<u64>| (stretch.iter().skip(first).sum(), stretch.iter().sum());
        self.stretches.iter().map(count).collect()
    }

    /// The classes from the shortest response time to the longest.
    fn classes(&self) -> std::ops::Range<usize> {
        let first = |stretch: &Vec<u64>| stretch.iter().position(|count| *count > 0);
        let first = self.stretches.iter().filter_map(first).min();
        let end = self.stretches.iter().map(Vec::len).max();
        first.unwrap_or(0)..end.filter(|_| first.is_some()).unwrap_or(0)
    }

    /// Whether no response time is known: none was committed, or another program does not tell.
    pub fn is_empty(&self) -> bool {
        self.classes().is_empty()
    }

    /// Seconds from the load's begin to that of the first stretch.
    pub fn begins_s(&self) -> f64 {
        self.begins_s
    }

    /// Seconds from the load's begin to the end of the last stretch, which may be a shorter one.
    pub fn ends_s(&self) -> f64 {
        self.ends_s
    }

    /// Length of a stretch in seconds: 1, 2, 4 and so on.
    pub fn stretch_s(&self) -> u32 {
        self.stretch_s
    }

    /// Lower edges of the classes in nanoseconds, and the upper one of the last.
    pub fn edges_ns(&self) -> Vec<u64> {
        let classes = self.classes();
        (classes.start..=classes.end).map(edge_ns).collect()
    }

    /// For each stretch a count for each class.
    pub fn counts(&self) -> Vec<Vec<u64>> {
        let classes = self.classes();
        let counts = self.stretches.iter().map(|stretch| {
            let count = |class| stretch.get(class).copied().unwrap_or(0);
            classes.clone().map(count).collect()
        });
        counts.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::books::Instants;

    fn second(number: u32, measured: bool, took_us: &[u64]) -> Second {
        let mut books = Books::for_a_second();
        for us in took_us {
            let at = Instants {
                due_ns: 0,
                begun_ns: 0,
                done_ns: us * 1000,
            };
            books.commit(at, u64::MAX, false, false);
        }
        Second {
            number,
            length_s: 1.0,
            measured,
            books,
            clients: 1,
        }
    }

    #[test]
    fn classes_follow_one_another_and_hold_what_lies_between_their_edges() {
        let mut last = class_of(4);
        for ns in 4..5000 {
            let class = class_of(ns);
            assert!((last..=last + 1).contains(&class), "{ns}");
            last = class;
        }
        for ns in (4..5000).chain((5..52).map(|power| (1 << power) - 1)) {
            let class = class_of(ns);
            assert!((edge_ns(class)..edge_ns(class + 1)).contains(&ns), "{ns}");
        }
        assert_eq!(class_of(0), class_of(4));
    }

    #[test]
    fn the_warm_up_is_left_out_and_a_second_without_a_transaction_is_a_stretch() {
        let mut heat = Heat::default();
        assert!(heat.is_empty() && heat.edges_ns() == [edge_ns(0)]);
        heat.add(&second(1, false, &[50_000]));
        heat.add(&second(2, true, &[1000, 1000, 1200]));
        heat.add(&second(3, true, &[]));
        heat.add(&second(4, true, &[2200]));
        assert_eq!((heat.begins_s(), heat.ends_s(), heat.stretch_s()), (1.0, 4.0, 1));
        assert_eq!(
            heat.edges_ns(),
            [
                917_504, 1_048_576, 1_310_720, 1_572_864, 1_835_008, 2_097_152, 2_621_440
            ]
        );
        assert_eq!(
            heat.counts(),
            [[2, 1, 0, 0, 0, 0], [0; 6], [0, 0, 0, 0, 0, 1]].map(Vec::from)
        );
        assert_eq!(heat.beyond(1_000_000), [(1, 3), (0, 0), (1, 1)]);
        assert_eq!(heat.beyond(2_200_000), [(0, 3), (0, 0), (1, 1)]);
        assert_eq!(Heat::default().beyond(5), []);
    }

    #[test]
    fn what_is_in_no_second_is_in_the_last_stretch() {
        let mut heat = Heat::default();
        heat.add(&second(1, true, &[1000]));
        heat.end(&second(2, true, &[1000, 2000]).books);
        let counts: Vec<u64> = heat.counts().iter().map(|row| row.iter().sum()).collect();
        assert_eq!((counts, heat.ends_s()), (vec![3], 1.0));
        let mut heat = Heat::default();
        heat.end(&Books::for_a_second());
        assert!(heat.is_empty());
    }

    #[test]
    fn a_long_load_has_longer_stretches_and_loses_no_transaction() {
        let check = |seconds: u32, stretches: usize, stretch_s: u32| {
            let mut heat = Heat::default();
            for number in 1..=seconds {
                heat.add(&second(number, true, &[u64::from(number)]));
            }
            let counts = heat.counts();
            assert_eq!(
                (counts.len(), heat.stretch_s()),
                (stretches, stretch_s),
                "{seconds} s"
            );
            let all: u64 = counts.iter().flatten().sum();
            assert_eq!(all, u64::from(seconds));
            let full = counts.iter().take(counts.len() - 1);
            assert!(
                full.map(|row| row.iter().sum())
                    .all(|sum: u64| sum == u64::from(stretch_s))
            );
        };
        check(1, 1, 1);
        check(300, 300, 1);
        check(301, 151, 2);
        check(700, 175, 4);
    }
}
