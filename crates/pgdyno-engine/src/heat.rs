//! A load over time: the books of each stretch of its measured time, and how many transactions took
//! how long, in few classes. Made of the seconds that a load has reported, so nothing of it is done
//! for a transaction.

use crate::books::{Books, Second};

/// Classes per factor of two, of the same width in nanoseconds. A histogram's own are within one
/// each, down to 2 µs.
const CLASSES_PER_OCTAVE: u64 = 4;
/// A picture of 1,000 pixels shows no more, and each takes some 30 kB. Even, for two are made one
/// where there are more.
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

/// The books of a load's measured time, stretch by stretch: one a second, and longer ones, of 2, 4,
/// 8 seconds and so on, where there would be more than 300. Response times are those of the
/// committed transactions.
#[derive(Debug, Clone)]
pub struct Heat {
    begins_s: f64,
    ends_s: f64,
    /// Length of a stretch in seconds.
    stretch_s: u32,
    /// Seconds that the last one has so far.
    filled_s: u32,
    stretches: Vec<Stretch>,
}

#[derive(Debug, Clone)]
struct Stretch {
    /// Length in seconds: of the last one it may be less than a second's.
    length_s: f64,
    books: Books,
}

/// What is left of a load's measured time where its beginning is taken away.
#[derive(Debug, Clone)]
pub struct Rest {
    /// Seconds that were taken away: those that were to be, rounded up to whole stretches.
    pub cut_s: u32,
    /// Length of the rest in seconds.
    pub measured_s: f64,
    /// Its books, with response times to 1 %.
    pub books: Books,
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
    /// Adds the next second of a load, in order and warm-up included, which shows where the
    /// measured time begins.
    pub fn add(&mut self, second: &Second) {
        if self.stretches.is_empty() {
            self.begins_s = self.ends_s;
        }
        self.ends_s += second.length_s;
        if !second.measured {
            return;
        }
        if self.filled_s == self.stretch_s && self.stretches.len() == STRETCHES_MAX {
            self.join();
        }
        match self
            .stretches
            .last_mut()
            .filter(|_| self.filled_s < self.stretch_s)
        {
            Some(last) => {
                last.length_s += second.length_s;
                last.books.add(&second.books);
                self.filled_s += 1;
            }
            None => {
                self.stretches.push(Stretch {
                    length_s: second.length_s,
                    books: second.books.clone(),
                });
                self.filled_s = 1;
            }
        }
    }

    /// Adds what was measured and is in no second ([`crate::LoadResult::in_no_second`]) to the last
    /// stretch, when the load has ended.
    pub fn end(&mut self, in_no_second: &Books) {
        if self.stretches.is_empty() {
            self.begins_s = self.ends_s;
            self.stretches.push(Stretch {
                length_s: 0.0,
                books: Books::for_a_second(),
            });
        }
        if let Some(last) = self.stretches.last_mut() {
            last.books.add(in_no_second);
        }
    }

    /// Joins the stretches two by two; all of them are full.
    fn join(&mut self) {
        let mut all = std::mem::take(&mut self.stretches).into_iter();
        while let Some(mut one) = all.next() {
            if let Some(other) = all.next() {
                one.length_s += other.length_s;
                one.books.add(&other.books);
            }
            self.stretches.push(one);
        }
        self.stretch_s *= 2;
        self.filled_s = self.stretch_s;
    }

    /// Stretches of the first so many seconds, the last one whole.
    fn stretches_in(&self, seconds: u32) -> usize {
        seconds.div_ceil(self.stretch_s) as usize
    }

    /// The load without the first so many seconds of its measured time, of which `measured` are the
    /// books and that took so long. `None` where nothing is left.
    pub fn without(&self, seconds: u32, measured: &Books, measured_s: f64) -> Option<Rest> {
        let (cut, rest) = self.stretches.split_at_checked(self.stretches_in(seconds))?;
        let mut books = rest.first()?.books.clone();
        for stretch in &rest[1..] {
            books.add(&stretch.books);
        }
        // What was never begun, or not ended, is in no stretch.
        books.take_skipped(measured);
        Some(Rest {
            cut_s: self.stretch_s * u32::try_from(cut.len()).unwrap_or(u32::MAX),
            measured_s: measured_s - cut.iter().map(|stretch| stretch.length_s).sum::<f64>(),
            books,
        })
    }

    /// For each stretch behind the first so many seconds how many of its response times are beyond
    /// this one, and how many there are.
    pub fn beyond(&self, ns: u64, seconds: u32) -> Vec<(u64, u64)> {
        let count = |stretch: &Stretch| {
            let times = &stretch.books.response_ns;
            (
                times.count_between(times.next_non_equivalent(ns), times.high()),
                times.len(),
            )
        };
        self.stretches
            .iter()
            .skip(self.stretches_in(seconds))
            .map(count)
            .collect()
    }

    /// For each stretch a count for each class from the first one on; of those above the longest
    /// none.
    fn counted(&self) -> Vec<Vec<u64>> {
        let counted = self.stretches.iter().map(|stretch| {
            let mut counts = Vec::new();
            for step in stretch.books.response_ns.iter_recorded() {
                let class = class_of(step.value_iterated_to());
                if counts.len() <= class {
                    counts.resize(class + 1, 0);
                }
                counts[class] += step.count_at_value();
            }
            counts
        });
        counted.collect()
    }

    /// Whether no response time is known: none was committed, or another program reports none.
    pub fn is_empty(&self) -> bool {
        self.stretches
            .iter()
            .all(|stretch| stretch.books.response_ns.is_empty())
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

    /// Lower edges of the classes in nanoseconds, and the upper one of the last; and for each
    /// stretch a count for each class.
    pub fn classes(&self) -> (Vec<u64>, Vec<Vec<u64>>) {
        let counted = self.counted();
        let first = |stretch: &Vec<u64>| stretch.iter().position(|count| *count > 0);
        let first = counted.iter().filter_map(first).min().unwrap_or(0);
        let end = counted.iter().map(Vec::len).max().unwrap_or(0);
        let of_stretch = |stretch: &Vec<u64>| {
            let count = |class| stretch.get(class).copied().unwrap_or(0);
            (first..end).map(count).collect()
        };
        let edges = (first..=end).map(edge_ns).collect();
        (edges, counted.iter().map(of_stretch).collect())
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
    fn classes_follow_one_another_and_hold_what_is_between_their_edges() {
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
    fn the_warm_up_is_excluded_and_a_second_without_a_transaction_is_a_stretch() {
        let mut heat = Heat::default();
        assert!(heat.is_empty() && heat.classes() == (vec![edge_ns(0)], vec![]));
        heat.add(&second(1, false, &[50_000]));
        heat.add(&second(2, true, &[1000, 1000, 1200]));
        heat.add(&second(3, true, &[]));
        heat.add(&second(4, true, &[2200]));
        assert_eq!((heat.begins_s(), heat.ends_s(), heat.stretch_s()), (1.0, 4.0, 1));
        let (edges_ns, counts) = heat.classes();
        assert_eq!(
            edges_ns,
            [
                917_504, 1_048_576, 1_310_720, 1_572_864, 1_835_008, 2_097_152, 2_621_440
            ]
        );
        assert_eq!(
            counts,
            [[2, 1, 0, 0, 0, 0], [0; 6], [0, 0, 0, 0, 0, 1]].map(Vec::from)
        );
        assert_eq!(heat.beyond(1_000_000, 0), [(1, 3), (0, 0), (1, 1)]);
        assert_eq!(heat.beyond(1_000_000, 1), [(0, 0), (1, 1)]);
        assert_eq!(heat.beyond(2_200_000, 0), [(0, 3), (0, 0), (0, 1)]);
        assert_eq!(Heat::default().beyond(5, 0), []);
    }

    #[test]
    fn what_is_in_no_second_is_in_the_last_stretch() {
        let mut heat = Heat::default();
        heat.add(&second(1, true, &[1000]));
        heat.end(&second(2, true, &[1000, 2000]).books);
        let counts: Vec<u64> = heat.classes().1.iter().map(|row| row.iter().sum()).collect();
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
            let (_, counts) = heat.classes();
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

    /// What is left is all that came later, what the load's end cut off and what it never began
    /// included.
    #[test]
    fn a_beginning_can_be_taken_away() {
        let check = |seconds: u32, from: u32, cut: u32| {
            let mut heat = Heat::default();
            heat.add(&second(1, false, &[77_000_000]));
            (1..=seconds).for_each(|number| heat.add(&second(number, true, &[u64::from(number) * 1000])));
            heat.end(&second(1, true, &[90_000_000]).books);
            let mut measured = Books::new(true);
            measured.skip(5_000_000_000);
            let rest = heat.without(from, &measured, f64::from(seconds)).unwrap();
            let left = u64::from(seconds - cut);
            assert_eq!(
                (rest.cut_s, rest.books.committed, rest.books.skipped),
                (cut, left + 1, 1)
            );
            assert!((rest.measured_s - left as f64).abs() < 1e-9 && rest.books.add_up());
            let shortest_ms = rest.books.response_ns.min() as f64 / 1e6;
            assert!(
                (shortest_ms / f64::from(cut + 1) - 1.0).abs() < 0.02,
                "{shortest_ms}"
            );
        };
        check(30, 10, 10);
        check(300, 299, 299);
        check(301, 20, 20);
        check(301, 21, 22);
        check(1201, 21, 24);
        let none = Heat::default().without(0, &Books::new(false), 0.0);
        assert!(none.is_none());
    }
}
