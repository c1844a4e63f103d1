//! The best of several levels, and what it gives without the luck of having been chosen.
//!
//! The largest of some means is larger than what it is the mean of (the winner's curse). A block
//! that has no say in the choice does not have that part: each block is measured at the level that
//! the others choose.

use std::collections::{BTreeMap, BTreeSet};

/// A value of a trial at a level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelPoint {
    /// Block of trials that it is of.
    pub block: u32,
    /// Number of the level.
    pub level: u32,
    /// What is best where it is largest; negative where the smallest is. What is not finite is
    /// skipped.
    pub value: f64,
}

/// The level with the largest mean, and what its choice gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Best {
    /// The choice of all blocks; the lowest of equal ones.
    pub level: u32,
    /// Per block (its number first) the mean value at the level that the other blocks choose.
    /// Blocks without a trial of their level are skipped. A single block must choose for itself,
    /// and so must blocks that are all skipped. Never empty.
    pub by_block: Vec<(u32, f64)>,
    /// Whether the trials that `by_block` is of had no say in the choice.
    pub by_others: bool,
}

/// The best level. `None` without a value.
pub fn best_level(points: &[LevelPoint]) -> Option<Best> {
    best_where(points, |_| true)
}

/// The best level among those that `keeps` says yes to, given all points of the level that have a
/// say.
pub(crate) fn best_where<P: At>(points: &[P], keeps: impl Fn(&[P]) -> bool) -> Option<Best> {
    let choice = |points: &[P]| {
        let mut levels = by_level(points);
        levels.retain(|_, of_level| keeps(of_level));
        let means = levels
            .iter()
            .filter_map(|(level, of_level)| Some((*level, mean(of_level)?)));
        Some(
            means
                .reduce(|best, next| if next.1 > best.1 { next } else { best })?
                .0,
        )
    };
    let level = choice(points)?;
    let blocks: BTreeSet<u32> = points.iter().map(|point| point.at().block).collect();
    let gave = |block: u32, by_others: bool| {
        let (own, others): (Vec<P>, Vec<P>) = points.iter().partition(|point| point.at().block == block);
        let chosen = if by_others { choice(&others)? } else { level };
        Some((block, mean(by_level(&own).get(&chosen)?)?))
    };
    let by_block = |by_others| -> Vec<(u32, f64)> {
        let blocks = blocks.iter();
        blocks.filter_map(|block| gave(*block, by_others)).collect()
    };
    // Of a single block there are no others.
    let of_others = by_block(true);
    let by_others = !of_others.is_empty();
    Some(Best {
        level,
        by_block: if by_others { of_others } else { by_block(false) },
        by_others,
    })
}

/// What has a value at a level.
pub(crate) trait At: Copy {
    /// The value with its block and level.
    fn at(&self) -> LevelPoint;
}

impl At for LevelPoint {
    fn at(&self) -> LevelPoint {
        *self
    }
}

fn by_level<P: At>(points: &[P]) -> BTreeMap<u32, Vec<P>> {
    let mut levels: BTreeMap<u32, Vec<P>> = BTreeMap::new();
    for point in points.iter().filter(|point| point.at().value.is_finite()) {
        levels.entry(point.at().level).or_default().push(*point);
    }
    levels
}

fn mean<P: At>(points: &[P]) -> Option<f64> {
    let sum: f64 = points.iter().map(|point| point.at().value).sum();
    (!points.is_empty()).then(|| sum / crate::spread::count(points.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(block: u32, level: u32, value: f64) -> LevelPoint {
        LevelPoint { block, level, value }
    }

    #[test]
    fn a_block_has_no_say_in_its_own_choice() {
        let points = [
            point(1, 1, 10.0),
            point(1, 2, 11.0),
            point(2, 1, 10.0),
            point(2, 2, 8.0),
            point(3, 1, 10.0),
            point(3, 2, f64::NAN),
        ];
        let best = best_level(&points).unwrap();
        // Block 1 is chosen for by blocks 2 and 3, block 2 by 1 and 3, block 3 by 1 and 2.
        assert_eq!((best.level, best.by_others), (1, true));
        assert_eq!(best.by_block, [(1, 10.0), (2, 8.0), (3, 10.0)]);
    }

    #[test]
    fn the_smallest_is_the_best_of_what_is_negative() {
        let points = [point(1, 1, -5.0), point(1, 2, -3.0)];
        let best = best_level(&points).unwrap();
        assert_eq!((best.level, best.by_others), (2, false));
        assert_eq!(best_level(&[]), None);
        // Blocks of which none has what the other chooses.
        let best = best_level(&[point(1, 1, 5.0), point(2, 2, 3.0)]).unwrap();
        assert_eq!((best.by_others, best.by_block), (false, vec![(1, 5.0)]));
    }
}
