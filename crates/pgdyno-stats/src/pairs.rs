//! Differences within blocks, comparison by comparison, with a spread of their own.

use crate::blocks::{Contrast, Observation};
use crate::matrix::count;
use crate::moderated::{BORROWED, Variance, moderated};

/// Two treatments to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comparison {
    /// Number of the treatment in the observations.
    pub treatment: usize,
    /// Number of the treatment that it is compared with.
    pub reference: usize,
}

/// A difference of two treatments, and what its error is known from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Difference {
    /// The estimate with its standard error.
    pub(crate) contrast: Contrast,
    /// Degrees of freedom of the standard error.
    pub(crate) freedom: f64,
    /// The share of a level at which it is judged, for what its spread has borrowed from other
    /// comparisons.
    pub(crate) level_share: f64,
}

impl Difference {
    /// The same of a contrast that is so many times as long.
    pub(crate) fn times(self, length: f64) -> Difference {
        let Contrast {
            log_ratio,
            standard_error,
            blocks,
        } = self.contrast;
        Difference {
            contrast: Contrast {
                log_ratio: log_ratio * length,
                standard_error: standard_error.map(|error| error * length),
                blocks,
            },
            ..self
        }
    }
}

/// Sums of differences of the logs, by comparison; grows by a block at a time.
#[derive(Debug, Clone)]
pub(crate) struct Pairs {
    comparisons: Vec<Comparison>,
    spreads: Spreads,
}

/// Contrasts within blocks, each with its own spread between blocks.
#[derive(Debug, Clone)]
pub(crate) struct Spreads(Vec<Sums>);

/// Number, mean, and sum of squares from the mean (Welford 1962, *Technometrics* 4, 419-420).
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    blocks: usize,
    mean: f64,
    squares: f64,
}

impl Sums {
    fn difference(&self, variance: Variance, level_share: f64) -> Difference {
        Difference {
            contrast: Contrast {
                log_ratio: self.mean,
                standard_error: Some((variance.value / count(self.blocks)).sqrt()),
                blocks: self.blocks,
            },
            freedom: variance.freedom,
            level_share,
        }
    }
}

impl Pairs {
    /// For these comparisons, without doubles.
    pub(crate) fn new(comparisons: Vec<Comparison>) -> Pairs {
        let spreads = Spreads::new(comparisons.len());
        Pairs { comparisons, spreads }
    }

    /// Adds the trials of one block. A treatment with several trials in it counts by their mean.
    pub(crate) fn add<'a>(&mut self, block: impl Iterator<Item = &'a Observation> + Clone) {
        for (place, comparison) in self.comparisons.iter().enumerate() {
            let of = |treatment| mean_log(block.clone(), treatment);
            if let Some((test, reference)) = of(comparison.treatment).zip(of(comparison.reference)) {
                self.spreads.add(place, test - reference);
            }
        }
    }

    /// In how many blocks a comparison has both sides.
    pub(crate) fn blocks(&self, comparison: &Comparison) -> usize {
        self.place(comparison)
            .map_or(0, |place| self.spreads.0[place].blocks)
    }

    /// Where a comparison is among them.
    pub(crate) fn place(&self, comparison: &Comparison) -> Option<usize> {
        self.comparisons.iter().position(|one| one == comparison)
    }

    /// The differences so far, in the order of the comparisons; `None` with fewer than two blocks
    /// that have both sides.
    pub(crate) fn differences(&self) -> Vec<Option<Difference>> {
        self.spreads.differences()
    }

    /// The same with each comparison's own spread, whatever the others have.
    pub(crate) fn own_differences(&self) -> Vec<Option<Difference>> {
        self.spreads.own_differences()
    }
}

/// The mean of the logs of a treatment's trials in a block.
pub(crate) fn mean_log<'a>(block: impl Iterator<Item = &'a Observation>, treatment: usize) -> Option<f64> {
    let (mut n, mut sum) = (0, 0.0);
    for one in block.filter(|o| o.treatment == treatment && o.usable()) {
        n += 1;
        sum += one.value.ln();
    }
    (n > 0).then(|| sum / count(n))
}

impl Spreads {
    /// For so many contrasts.
    pub(crate) fn new(contrasts: usize) -> Spreads {
        Spreads(vec![Sums::default(); contrasts])
    }

    /// Adds what a contrast is in one block.
    pub(crate) fn add(&mut self, place: usize, log_ratio: f64) {
        let sums = &mut self.0[place];
        sums.blocks += 1;
        let from_mean = log_ratio - sums.mean;
        sums.mean += from_mean / count(sums.blocks);
        sums.squares += from_mean * (log_ratio - sums.mean);
    }

    /// The contrasts so far, their spreads steadied by one another; `None` for one with fewer than
    /// two blocks.
    pub(crate) fn differences(&self) -> Vec<Option<Difference>> {
        let own = self.own_variances();
        let borrowed = moderated(&own.iter().copied().flatten().collect::<Vec<_>>());
        let Some(borrowed) = borrowed else {
            return self.own_differences();
        };
        let mut borrowed = borrowed.into_iter();
        let difference = |(sums, own): (&Sums, &Option<Variance>)| {
            let variance = own.and_then(|_| borrowed.next())?;
            Some(sums.difference(variance, BORROWED))
        };
        self.0.iter().zip(&own).map(difference).collect()
    }

    /// The same with each one's own spread, whatever the others have.
    fn own_differences(&self) -> Vec<Option<Difference>> {
        let own = self.own_variances();
        let pairs = self.0.iter().zip(own);
        pairs
            .map(|(sums, own)| Some(sums.difference(own?, 1.0)))
            .collect()
    }

    fn own_variances(&self) -> Vec<Option<Variance>> {
        let own = |sums: &Sums| {
            (sums.blocks > 1).then(|| Variance {
                value: sums.squares / count(sums.blocks - 1),
                freedom: count(sums.blocks - 1),
            })
        };
        self.0.iter().map(own).collect()
    }
}
