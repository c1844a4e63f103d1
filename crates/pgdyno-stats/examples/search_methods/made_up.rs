//! Made-up responses: six knobs that matter by 10 to 30 % each, others by up to 0.6 %, four
//! interactions, a corner that does not start.

use crate::response::{Chance, Response, number};
use pgdyno_stats::{Dimension, Point, SearchLevel, Space};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

const NOISE: f64 = 0.03;
const BLOCK_NOISE: f64 = 0.02;

/// `knobs` of them, six of which matter; `right`: how often the prior of one that matters has its
/// best level as the likeliest.
pub(crate) fn response(knobs: usize, right: f64, seed: u64) -> Response {
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
    /// Two knobs, a level of each from which on they work together, and by how much.
    type Pair = ([usize; 2], [usize; 2], f64);
    let pairs: Vec<Pair> = (0..4)
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
    let truth = move |point: &[usize]| {
        if fails.iter().all(|&(knob, level)| point[knob] == level) {
            return None;
        }
        let own: f64 = effects.iter().zip(point).map(|(of, &level)| of[level]).sum();
        let together = pairs
            .iter()
            .filter(|(knobs, from, _)| knobs.iter().zip(from).all(|(&knob, &from)| point[knob] >= from));
        Some(own + together.map(|(.., by)| by).sum::<f64>())
    };
    Response::new(
        (space, vec![stock, advice]),
        (NOISE, BLOCK_NOISE),
        (Box::new(truth), Box::new(|_: &[usize]| true)),
        &mut chance,
    )
}
