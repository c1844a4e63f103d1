//! A forest of regression trees over the levels of knobs, as SMAC has one (Hutter, Hoos,
//! Leyton-Brown 2011).

use super::model::{Belief, Scaled, Surrogate};
use super::space::{SearchTrial, Space, below, uniform};
use crate::matrix::count;
use rand_xoshiro::Xoshiro256PlusPlus;

const TREES: usize = 40;
/// Part of the knobs that a split may choose from.
const CHOICE: f64 = 5.0 / 6.0;
const LEAF_MIN: usize = 2;
/// A leaf of like values is not certain.
const VARIANCE_MIN: f64 = 0.01;

pub(super) struct Forest {
    trees: Vec<Node>,
}

enum Node {
    Leaf {
        mean: f64,
        variance: f64,
    },
    Split {
        knob: usize,
        /// Whether a level goes left.
        left: Vec<bool>,
        children: Box<(Node, Node)>,
    },
}

impl Forest {
    pub(super) fn fit(
        space: &Space,
        trials: &[SearchTrial],
        scaled: &Scaled,
        random: &mut Xoshiro256PlusPlus,
    ) -> Forest {
        let trees = (0..TREES).map(|_| {
            let sample: Vec<usize> = trials.iter().map(|_| below(trials.len(), random)).collect();
            grow(space, trials, &scaled.values, &sample, random)
        });
        Forest {
            trees: trees.collect(),
        }
    }
}

fn moments(values: &[f64], rows: &[usize]) -> (f64, f64) {
    let n = count(rows.len().max(1));
    let mean = rows.iter().map(|&row| values[row]).sum::<f64>() / n;
    let variance = rows.iter().map(|&row| (values[row] - mean).powi(2)).sum::<f64>() / n;
    (mean, variance)
}

fn grow(
    space: &Space,
    trials: &[SearchTrial],
    values: &[f64],
    rows: &[usize],
    random: &mut Xoshiro256PlusPlus,
) -> Node {
    let (mean, variance) = moments(values, rows);
    let leaf = Node::Leaf {
        mean,
        variance: variance.max(VARIANCE_MIN),
    };
    if rows.len() < 2 * LEAF_MIN || variance < 1e-12 {
        return leaf;
    }
    let mut best: Option<(f64, usize, Vec<bool>)> = None;
    for (knob, dimension) in space.dimensions().iter().enumerate() {
        if uniform(random) > CHOICE {
            continue;
        }
        let level_of = |row: &usize| trials[*row].point[knob];
        let cut = level_of(&rows[below(rows.len(), random)]);
        let at = dimension.levels[cut].coordinate;
        let goes_left: Vec<bool> = dimension
            .levels
            .iter()
            .enumerate()
            .map(|(level, of)| match (of.coordinate, at) {
                (Some(of), Some(at)) => of <= at,
                _ => level == cut,
            })
            .collect();
        let (left, right): (Vec<usize>, Vec<usize>) = rows.iter().partition(|row| goes_left[level_of(row)]);
        if left.len().min(right.len()) < LEAF_MIN {
            continue;
        }
        let part = |rows: &[usize]| moments(values, rows).1 * count(rows.len());
        let within = part(&left) + part(&right);
        if best.as_ref().is_none_or(|(least, ..)| within < *least) {
            best = Some((within, knob, goes_left));
        }
    }
    let Some((_, knob, goes_left)) = best else {
        return leaf;
    };
    let (left, right): (Vec<usize>, Vec<usize>) =
        rows.iter().partition(|row| goes_left[trials[**row].point[knob]]);
    Node::Split {
        knob,
        left: goes_left,
        children: Box::new((
            grow(space, trials, values, &left, random),
            grow(space, trials, values, &right, random),
        )),
    }
}

impl Node {
    fn leaf(&self, point: &[usize]) -> (f64, f64) {
        match self {
            Node::Leaf { mean, variance } => (*mean, *variance),
            Node::Split { knob, left, children } => match left[point[*knob]] {
                true => children.0.leaf(point),
                false => children.1.leaf(point),
            },
        }
    }
}

impl Surrogate for Forest {
    fn believe(&self, point: &[usize]) -> Belief {
        let leaves: Vec<(f64, f64)> = self.trees.iter().map(|tree| tree.leaf(point)).collect();
        let n = count(leaves.len());
        let mean = leaves.iter().map(|(mean, _)| mean).sum::<f64>() / n;
        let square = leaves
            .iter()
            .map(|(mean, variance)| variance + mean * mean)
            .sum::<f64>()
            / n;
        Belief {
            mean,
            sd: (square - mean * mean).max(0.0).sqrt(),
        }
    }
}
