//! A response of settings that searches are tried on.

use pgdyno_stats::{Point, Search, SearchMethod, SearchTrial, Space};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Trials that share a block.
const BLOCK: usize = 6;

pub(crate) struct Chance(pub(crate) Xoshiro256PlusPlus);

impl Chance {
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub(crate) fn part(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn between(&mut self, from: f64, to: f64) -> f64 {
        from + self.part() * (to - from)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.0.next_u64() % n as u64).expect("small")
    }

    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.part()).sum::<f64>() - 6.0
    }
}

pub(crate) fn number(n: usize) -> f64 {
    f64::from(u32::try_from(n).expect("small"))
}

/// What chooses the next point, and ends the search where it has none; of all trials so far and the
/// number of their next one's block.
pub(crate) type Chooser<'c> = dyn FnMut(&Search<'_>, &[SearchTrial], u32) -> Option<Point> + 'c;

/// The logarithm of what a point gives; `None` where the server does not start.
type Truth = dyn Fn(&[usize]) -> Option<f64>;

/// Whether a point may be tried.
type Allowed = dyn Fn(&[usize]) -> bool;

pub(crate) struct Response {
    pub(crate) space: Space,
    /// Points that are tried first, the present state before the others.
    pub(crate) starts: Vec<Point>,
    /// Standard deviations of a trial's logarithm, and of a block's.
    noise: (f64, f64),
    truth: Box<Truth>,
    allowed: Box<Allowed>,
    best: f64,
}

impl Response {
    pub(crate) fn new(
        (space, starts): (Space, Vec<Point>),
        noise: (f64, f64),
        (truth, allowed): (Box<Truth>, Box<Allowed>),
        chance: &mut Chance,
    ) -> Response {
        let mut response = Response {
            space,
            starts,
            noise,
            truth,
            allowed,
            best: 0.0,
        };
        response.best = response.highest(chance);
        response
    }

    /// Of what may be tried, by climbing from many places, the starting points among them.
    fn highest(&self, chance: &mut Chance) -> f64 {
        let levels: Vec<usize> = self.space.dimensions().iter().map(|d| d.levels.len()).collect();
        let mut places = self.starts.clone();
        places.extend((0..60).map(|_| levels.iter().map(|&n| chance.below(n)).collect::<Point>()));
        let climb = |mut point: Point| {
            let mut reached = (self.truth)(&point).unwrap_or(f64::NEG_INFINITY);
            loop {
                let begun = reached;
                for (knob, &levels) in levels.iter().enumerate() {
                    for level in 0..levels {
                        let mut other = point.clone();
                        other[knob] = level;
                        let better = (self.truth)(&other).filter(|of| *of > reached);
                        if let Some(of) = better.filter(|_| (self.allowed)(&other)) {
                            (reached, point) = (of, other);
                        }
                    }
                }
                if reached <= begun {
                    break reached;
                }
            }
        };
        let allowed = places.into_iter().filter(|place| (self.allowed)(place));
        allowed.map(climb).fold(f64::NEG_INFINITY, f64::max)
    }

    /// What a point gives, as a part of the best.
    pub(crate) fn part_of_best(&self, point: &[usize]) -> f64 {
        (self.truth)(point).map_or(0.0, |value| (value - self.best).exp())
    }

    /// The same of the best so far after each of so many trials.
    pub(crate) fn search(
        &self,
        method: SearchMethod,
        (trials, seed): (usize, u64),
        choose: &mut Chooser<'_>,
    ) -> Vec<f64> {
        let mut chance = Chance(Xoshiro256PlusPlus::seed_from_u64(seed ^ 0xABCD));
        let search = Search {
            space: &self.space,
            starts: &self.starts,
            allowed: &*self.allowed,
            method,
            seed,
        };
        let (noise, block_noise) = self.noise;
        let mut done: Vec<SearchTrial> = Vec::new();
        let mut path = Vec::new();
        let mut of_block = 0.0;
        for i in 0..trials {
            if i % BLOCK == 0 {
                of_block = block_noise * chance.normal();
            }
            let block = u32::try_from(i / BLOCK).expect("small");
            let Some(point) = choose(&search, &done, block) else {
                break;
            };
            let value = (self.truth)(&point).map(|value| value + of_block + noise * chance.normal());
            done.push(SearchTrial {
                point,
                value,
                block,
                keeps_bounds: true,
                holds: true,
                ended_by_guard: false,
            });
            path.push(
                search
                    .best(&done)
                    .map_or(0.0, |best| self.part_of_best(&best.point)),
            );
        }
        path
    }
}
