//! What a search may try: knobs with a few levels each, how likely each level is to be good, and
//! trials so far.

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// A value that a knob may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchLevel {
    /// Its place on the knob's scale, from 0 to 1; `None` for a category, or a special value such
    /// as "off", from which nothing follows for others.
    pub coordinate: Option<f64>,
    /// How likely it is to be the best of its knob, as a weight among the levels; greater than 0.
    pub prior: f64,
}

/// A knob.
#[derive(Debug, Clone, PartialEq)]
pub struct Dimension {
    /// Its values; at least one.
    pub levels: Vec<SearchLevel>,
    /// How much it is expected to matter, as a weight among the knobs; greater than 0.
    pub relevance: f64,
}

impl Dimension {
    /// How alike two levels are: 1 for the same, 0 where nothing follows from one for the other.
    pub(super) fn likeness(&self, a: usize, b: usize) -> f64 {
        /// Half of the scale, over which the correlation falls to a half: responses to settings are
        /// smooth, with knees.
        const REACH: f64 = 0.5;
        if a == b {
            return 1.0;
        }
        match (self.levels[a].coordinate, self.levels[b].coordinate) {
            (Some(a), Some(b)) => {
                // Matern 3/2.
                let r = 3_f64.sqrt() * (a - b).abs() / REACH;
                (1.0 + r) * (-r).exp()
            }
            _ => 0.0,
        }
    }

    /// The logarithm of a level's prior, 0 for the likeliest.
    pub(super) fn log_prior(&self, level: usize) -> f64 {
        let most = self.levels.iter().map(|level| level.prior).fold(0.0, f64::max);
        (self.levels[level].prior / most).ln()
    }

    /// A level by chance, by the prior.
    pub(super) fn draw(&self, random: &mut Xoshiro256PlusPlus) -> usize {
        let weights: Vec<f64> = self.levels.iter().map(|level| level.prior).collect();
        weighted(&weights, random)
    }
}

/// All that a search may try, apart from what it is not allowed.
#[derive(Debug, Clone, PartialEq)]
pub struct Space {
    dimensions: Vec<Dimension>,
}

/// Why there is no such space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SpaceError {
    /// There is nothing to vary.
    #[error("no knob of the space has two values")]
    Nothing,
    /// A weight or coordinate that is none.
    #[error("knob {knob} (from 0) has a level whose weight or coordinate is out of range")]
    Level {
        /// Place among the knobs, from 0.
        knob: usize,
    },
}

impl Space {
    /// A space of these knobs.
    ///
    /// # Errors
    ///
    /// No knob has two levels, or a weight is not a number greater than 0, or a coordinate not one
    /// from 0 to 1.
    pub fn new(dimensions: Vec<Dimension>) -> Result<Space, SpaceError> {
        let is_weight = |weight: f64| weight.is_finite() && weight > 0.0;
        let is_fine = |level: &SearchLevel| {
            is_weight(level.prior) && level.coordinate.is_none_or(|at| (0.0..=1.0).contains(&at))
        };
        for (knob, dimension) in dimensions.iter().enumerate() {
            let fine = is_weight(dimension.relevance)
                && !dimension.levels.is_empty()
                && dimension.levels.iter().all(is_fine);
            if !fine {
                return Err(SpaceError::Level { knob });
            }
        }
        match dimensions.iter().any(|dimension| dimension.levels.len() > 1) {
            true => Ok(Space { dimensions }),
            false => Err(SpaceError::Nothing),
        }
    }

    /// The knobs, in order.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// Whether a point has a level of each knob.
    pub fn holds(&self, point: &[usize]) -> bool {
        point.len() == self.dimensions.len()
            && point
                .iter()
                .zip(&self.dimensions)
                .all(|(&level, dimension)| level < dimension.levels.len())
    }

    /// All points, of a space with so many at most.
    pub(super) fn all(&self, most: usize) -> Option<impl Iterator<Item = Point>> {
        let sizes = self.dimensions.iter().map(|dimension| dimension.levels.len());
        let size = sizes.clone().try_fold(1, usize::checked_mul)?;
        let sizes: Vec<usize> = sizes.collect();
        let point = move |number: usize| {
            let mut left = number;
            let level = |size: &usize| {
                let level = left % size;
                left /= size;
                level
            };
            sizes.iter().map(level).collect()
        };
        (size <= most).then(|| (0..size).map(point))
    }

    /// The logarithm of a point's prior, 0 for the likeliest.
    pub(super) fn log_prior(&self, point: &[usize]) -> f64 {
        let each = self.dimensions.iter().zip(point);
        each.map(|(dimension, &level)| dimension.log_prior(level)).sum()
    }

    pub(super) fn draw(&self, random: &mut Xoshiro256PlusPlus) -> Point {
        let each = self.dimensions.iter();
        each.map(|dimension| dimension.draw(random)).collect()
    }
}

/// Number of a level for each knob of a space.
pub type Point = Vec<usize>;

/// A trial of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchTrial {
    /// What was tried.
    pub point: Point,
    /// Logarithm of what was measured, larger is better; `None` for a trial that failed.
    pub value: Option<f64>,
    /// Whether all bounds hold; where one is broken the value is less by that.
    pub keeps_bounds: bool,
    /// Whether that says something of the point: not where the trial's figures do not hold.
    pub holds: bool,
    /// Whether a guard ended it: its point is not tried again.
    pub ended_by_guard: bool,
    /// The block that it was in: trials close in time share what the machine did meanwhile.
    pub block: u32,
}

/// A number from 0 to just below 1.
#[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
pub(super) fn uniform(random: &mut Xoshiro256PlusPlus) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// A number below `n`, which is small.
pub(super) fn below(n: usize, random: &mut Xoshiro256PlusPlus) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "a remainder of n")]
    let number = (random.next_u64() % n.max(1) as u64) as usize;
    number
}

/// A place in a list of weights, by chance.
pub(super) fn weighted(weights: &[f64], random: &mut Xoshiro256PlusPlus) -> usize {
    let mut left = uniform(random) * weights.iter().sum::<f64>();
    for (i, weight) in weights.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return i;
        }
    }
    weights.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_that_cannot_be_searched_is_refused() {
        let level = |coordinate, prior| SearchLevel { coordinate, prior };
        let check = |levels: Vec<SearchLevel>, relevance, expected| {
            let found = Space::new(vec![Dimension { levels, relevance }]);
            assert_eq!(found.err(), expected);
        };
        let two = vec![level(Some(0.0), 1.0), level(None, 2.0)];
        check(two.clone(), 1.0, None);
        check(two[..1].to_vec(), 1.0, Some(SpaceError::Nothing));
        check(Vec::new(), 1.0, Some(SpaceError::Level { knob: 0 }));
        check(two, 0.0, Some(SpaceError::Level { knob: 0 }));
        for bad in [level(Some(1.5), 1.0), level(None, 0.0), level(None, f64::NAN)] {
            check(vec![bad, bad], 1.0, Some(SpaceError::Level { knob: 0 }));
        }
    }

    #[test]
    fn likeness_falls_with_the_distance_and_not_to_special_values() {
        let level = |coordinate| SearchLevel {
            coordinate,
            prior: 1.0,
        };
        let knob = Dimension {
            levels: vec![level(None), level(Some(0.0)), level(Some(0.5)), level(Some(1.0))],
            relevance: 1.0,
        };
        let alike: Vec<f64> = (0..4).map(|other| knob.likeness(1, other)).collect();
        assert!(
            alike[0] == 0.0 && alike[1] == 1.0 && alike[2] > alike[3],
            "{alike:?}"
        );
        assert!((0.4..0.6).contains(&alike[2]) && alike[3] > 0.1);
    }
}
