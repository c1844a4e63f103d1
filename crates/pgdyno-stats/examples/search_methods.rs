//! Ways to search compared on made-up responses: share of seeds that reach 95 % of the best, and after how many trials.
//!
//! `cargo run --release -p pgdyno-stats --example search_methods [SEEDS] [TRIALS] [METHOD]`
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

use pgdyno_stats::{Dimension, Point, Search, SearchLevel, SearchMethod, SearchTrial, Space};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Trials that share a block.
const BLOCK: usize = 6;
const NOISE: f64 = 0.03;
const BLOCK_NOISE: f64 = 0.02;

struct Surface {
    space: Space,
    /// Effect of each level of each knob, as a logarithm.
    effects: Vec<Vec<f64>>,
    /// Two knobs, a level of each from which on they work together, and by how much.
    pairs: Vec<([usize; 2], [usize; 2], f64)>,
    /// Levels of two knobs that do not start together.
    fails: [(usize, usize); 2],
    starts: Vec<Point>,
    best: f64,
}

struct Chance(Xoshiro256PlusPlus);

impl Chance {
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    fn part(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn between(&mut self, from: f64, to: f64) -> f64 {
        from + self.part() * (to - from)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.0.next_u64() % n as u64).expect("small")
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.part()).sum::<f64>() - 6.0
    }
}

fn number(n: usize) -> f64 {
    f64::from(u32::try_from(n).expect("small"))
}

impl Surface {
    /// `knobs` of them, six of which matter; `right`: how often the prior of one that matters has its best level as the likeliest.
    fn new(knobs: usize, right: f64, seed: u64) -> Surface {
        let mut chance = Chance(Xoshiro256PlusPlus::seed_from_u64(seed));
        let mut dimensions = Vec::new();
        let mut effects = Vec::new();
        for knob in 0..knobs {
            let matters = knob < 6;
            let levels = if chance.part() < 0.3 {
                2
            } else {
                4 + chance.below(4)
            };
            let is_scale = levels > 2;
            let size = if matters {
                chance.between(0.1, 0.3)
            } else {
                chance.between(0.0, 0.006)
            };
            let peak = if chance.part() < 0.5 {
                1.0
            } else {
                chance.between(0.3, 0.9)
            };
            let of: Vec<f64> = (0..levels)
                .map(|level| match is_scale {
                    true => {
                        let at = number(level) / number(levels - 1);
                        size * (1.0 - ((at - peak).abs() / peak.max(1.0 - peak)).powf(1.5))
                    }
                    false => size * number(level) * if chance.part() < 0.5 { 1.0 } else { -1.0 },
                })
                .collect();
            let best = (0..levels)
                .max_by(|&a, &b| of[a].total_cmp(&of[b]))
                .expect("levels");
            let guess = if matters && chance.part() < right {
                best
            } else {
                chance.below(levels)
            };
            let priors = (0..levels).map(|level| SearchLevel {
                coordinate: is_scale.then(|| number(level) / number(levels - 1)),
                prior: match level.abs_diff(guess) {
                    0 => 4.0,
                    1 => 2.0,
                    _ => 1.0,
                },
            });
            dimensions.push(Dimension {
                levels: priors.collect(),
                relevance: if matters == (chance.part() < 0.8) {
                    1.0
                } else {
                    0.3
                },
            });
            effects.push(of);
        }
        let space = Space::new(dimensions).expect("a space");
        let last = |knob: usize| space.dimensions()[knob].levels.len() - 1;
        let pairs = (0..4)
            .map(|_| {
                let one = chance.below(6);
                let other = (one + 1 + chance.below(5)) % 6;
                let from = |knob: usize| last(knob).div_ceil(2);
                (
                    [one, other],
                    [from(one), from(other)],
                    chance.between(-0.12, 0.12),
                )
            })
            .collect();
        let fails = [(0, last(0)), (1, last(1))];
        let stock: Point = vec![0; knobs];
        let mode = |dimension: &Dimension| {
            let levels = 0..dimension.levels.len();
            levels
                .max_by(|&a, &b| dimension.levels[a].prior.total_cmp(&dimension.levels[b].prior))
                .expect("levels")
        };
        let advice: Point = space.dimensions().iter().map(mode).collect();
        let mut surface = Surface {
            space,
            effects,
            pairs,
            fails,
            starts: vec![stock, advice],
            best: 0.0,
        };
        surface.best = surface.highest(&mut chance);
        surface
    }

    fn truth(&self, point: &[usize]) -> Option<f64> {
        if self.fails.iter().all(|&(knob, level)| point[knob] == level) {
            return None;
        }
        let own: f64 = self.effects.iter().zip(point).map(|(of, &level)| of[level]).sum();
        let together = self
            .pairs
            .iter()
            .filter(|(knobs, from, _)| knobs.iter().zip(from).all(|(&knob, &from)| point[knob] >= from));
        Some(own + together.map(|(.., by)| by).sum::<f64>())
    }

    /// By climbing from many places.
    fn highest(&self, chance: &mut Chance) -> f64 {
        let mut highest = f64::NEG_INFINITY;
        for _ in 0..60 {
            let levels: Vec<usize> = self.space.dimensions().iter().map(|d| d.levels.len()).collect();
            let mut point: Point = levels.iter().map(|&n| chance.below(n)).collect();
            let mut reached = self.truth(&point).unwrap_or(f64::NEG_INFINITY);
            loop {
                let begun = reached;
                for (knob, &levels) in levels.iter().enumerate() {
                    for level in 0..levels {
                        let mut other = point.clone();
                        other[knob] = level;
                        if let Some(of) = self.truth(&other).filter(|of| *of > reached) {
                            (reached, point) = (of, other);
                        }
                    }
                }
                if reached <= begun {
                    break;
                }
            }
            highest = highest.max(reached);
        }
        highest
    }

    /// The true value of the best so far after each trial, as a part of the highest.
    fn search(&self, method: SearchMethod, trials: usize, seed: u64) -> Vec<f64> {
        let mut chance = Chance(Xoshiro256PlusPlus::seed_from_u64(seed ^ 0xABCD));
        let search = Search {
            space: &self.space,
            starts: &self.starts,
            allowed: &|_| true,
            method,
            seed,
        };
        let mut done: Vec<SearchTrial> = Vec::new();
        let mut path = Vec::new();
        let mut of_block = 0.0;
        for i in 0..trials {
            if i % BLOCK == 0 {
                of_block = BLOCK_NOISE * chance.normal();
            }
            let Some(next) = search.next(&done, u32::try_from(i / BLOCK).expect("small")) else {
                break;
            };
            let value = self
                .truth(&next.point)
                .map(|value| value + of_block + NOISE * chance.normal());
            done.push(SearchTrial {
                point: next.point,
                value,
                block: u32::try_from(i / BLOCK).expect("small"),
                holds: true,
                ended_by_guard: false,
            });
            let best = search.best(&done).and_then(|best| self.truth(&best.point));
            path.push(best.map_or(0.0, |best| (best - self.best).exp()));
        }
        path
    }
}

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter_map(|text| text.parse::<usize>().ok());
    let seeds = arguments.next().unwrap_or(50);
    let trials = arguments.next().unwrap_or(30);
    println!(
        "{:<28} {:<12} reached 95 %  median trials  mean of best  at 12",
        "response", "method"
    );
    for (name, knobs, right) in [
        ("16 knobs, good priors", 16, 0.7),
        ("16 knobs, misleading priors", 16, 0.0),
        ("40 knobs, good priors", 40, 0.7),
    ] {
        for method in [
            SearchMethod::Process,
            SearchMethod::Forest,
            SearchMethod::Densities,
            SearchMethod::Random,
            SearchMethod::OneAtATime,
        ] {
            if std::env::args()
                .nth(3)
                .is_some_and(|only| format!("{method:?}") != only)
            {
                continue;
            }
            let paths: Vec<Vec<f64>> = (0..seeds as u64)
                .map(|seed| Surface::new(knobs, right, seed).search(method, trials, seed))
                .collect();
            let ends: Vec<f64> = paths.iter().filter_map(|path| path.last().copied()).collect();
            let share = number(ends.iter().filter(|end| **end >= 0.95).count()) / number(seeds);
            let mut first: Vec<usize> = paths
                .iter()
                .map(|path| {
                    // From there on, not for a moment.
                    let below = path.iter().rposition(|of| *of < 0.95);
                    below.map_or(1, |last| last + 2)
                })
                .collect();
            first.sort_unstable();
            let mean = |at: usize| {
                paths.iter().map(|path| path[at.min(path.len() - 1)]).sum::<f64>() / number(seeds)
            };
            println!(
                "{name:<28} {:<12} {:>10.0} %  {:>13}  {:>12.3}  {:>5.3}",
                format!("{method:?}"),
                share * 100.0,
                first[first.len() / 2],
                mean(trials - 1),
                mean(11),
            );
        }
    }
}
