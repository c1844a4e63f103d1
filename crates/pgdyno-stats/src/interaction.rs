//! What several factors do, each by itself and two together.
//!
//! All effects are log-ratios within blocks; their intervals hold together by Bonferroni (source:
//! Box, Hunter & Hunter, *Statistics for Experimenters*, the chapters on factorial designs and
//! fractions of them). In a full factorial of two levels each the effects share one spread, whose
//! degrees of freedom are fewer where treatments are not equally noisy; with more levels each has
//! the spread of its own contrasts between blocks, steadied by those of the others, as comparisons
//! of two treatments have. Where fewer than two blocks are whole, and in fractions, whose few runs
//! are for many factors, the spread is pooled over all treatments: there one that is noisier than
//! the others makes the intervals too narrow.

use crate::blocks::{BlockFit, Contrast, Observation};
use crate::matrix::{count, invert};
use crate::pairs::{Difference, Spreads, mean_log};
use crate::verdict::{Effect, Rules, effect};
use std::collections::{BTreeMap, BTreeSet};

/// With fewer the corrected estimate of how alike the treatments' noise is takes it for alike too
/// often.
const BLOCKS_FOR_CORRECTION: usize = 4;

/// A level of a factor, both by number; level 0 is what the others are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// Number of the factor, from 0.
    pub factor: usize,
    /// Number of the level, from 1.
    pub level: usize,
}

/// A main effect, or an interaction of two factors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FactorialEffect {
    /// The level whose effect it is, never level 0.
    pub first: Level,
    /// The level of the other factor, for an interaction.
    pub second: Option<Level>,
    /// For a main effect the ratio of this level to level 0, the geometric mean over all levels of
    /// the other factors. For an interaction the ratio of the effect of the two together to the
    /// product of their effects alone; 1 is "independent". `None` where a treatment has no trial,
    /// or nothing to judge the error by (a single block).
    pub effect: Option<Effect>,
}

/// All main effects, then all interactions of two factors, of a full factorial:
/// `levels[treatment][factor]` is the number of a level, and the treatment's number in the
/// observations is its place here. Every combination of levels is to be there once; `None` where it
/// is not.
pub fn factorial_effects(
    levels: &[Vec<usize>],
    observations: &[Observation],
    rules: Rules,
) -> Option<Vec<FactorialEffect>> {
    let sizes = full_factorial(levels)?;
    let names = names(&sizes);
    let weights: Vec<Vec<(usize, f64)>> = names
        .iter()
        .map(|&(first, second)| weights(levels, &sizes, first, second))
        .collect();
    let blocks = whole_blocks(levels.len(), observations);
    let differences = match blocks.len() {
        0 | 1 => pooled(&weights, observations),
        _ if sizes.iter().all(|size| *size == 2) => shared_spread(&weights, &blocks),
        _ => own_spreads(&weights, &blocks),
    };
    let level = (1.0 - rules.confidence) / count(names.len());
    let found = differences
        .into_iter()
        .map(|difference| effect(difference?, level, rules));
    let effects = names.iter().zip(found);
    Some(
        effects
            .map(|(&(first, second), effect)| FactorialEffect {
                first,
                second,
                effect,
            })
            .collect(),
    )
}

/// The mean logs of all treatments in each block that has them all.
fn whole_blocks(treatments: usize, observations: &[Observation]) -> Vec<Vec<f64>> {
    let mut blocks: BTreeMap<usize, Vec<&Observation>> = BTreeMap::new();
    for observation in observations {
        blocks.entry(observation.block).or_default().push(observation);
    }
    let logs = |block: &Vec<&Observation>| {
        let each = (0..treatments).map(|treatment| mean_log(block.iter().copied(), treatment));
        each.collect::<Option<Vec<f64>>>()
    };
    blocks.values().filter_map(logs).collect()
}

/// The contrasts of these weights with one spread; `None` where a treatment is missing, or nothing
/// is left to judge the error by.
fn pooled(weights: &[Vec<(usize, f64)>], observations: &[Observation]) -> Vec<Option<Difference>> {
    let fit = BlockFit::new(observations);
    let of = |weights: &Vec<(usize, f64)>| {
        let fit = fit.as_ref()?;
        Some(Difference {
            contrast: fit.combination(weights)?,
            freedom: count(fit.degrees_of_freedom()),
            level_share: 1.0,
        })
    };
    weights.iter().map(of).collect()
}

/// The contrasts of these weights with their own spreads. They borrow from one another as if of one
/// length.
fn own_spreads(weights: &[Vec<(usize, f64)>], blocks: &[Vec<f64>]) -> Vec<Option<Difference>> {
    let lengths: Vec<f64> = weights.iter().map(|weights| squares(weights).sqrt()).collect();
    let mut spreads = Spreads::new(weights.len());
    for block in blocks {
        for (place, (weights, length)) in weights.iter().zip(&lengths).enumerate() {
            spreads.add(place, weighted(weights, block) / length);
        }
    }
    let found = spreads.differences().into_iter().zip(lengths);
    found
        .map(|(difference, length)| Some(difference?.times(length)))
        .collect()
}

/// What a contrast is in a block.
fn weighted(weights: &[(usize, f64)], values: &[f64]) -> f64 {
    weights
        .iter()
        .map(|&(place, weight)| weight * values[place])
        .sum()
}

/// The sum of the squares of the weights.
fn squares(weights: &[(usize, f64)]) -> f64 {
    weights.iter().map(|(_, weight)| weight * weight).sum()
}

/// The contrasts with one spread, where each is of all treatments with one weight, as with two
/// levels of each factor: then their errors are alike however different the treatments' are, and
/// only the degrees of freedom of the pooled spread are fewer (Box 1954; estimated as by Huynh &
/// Feldt 1976, and as by Greenhouse & Geisser 1959, who err to the safe side, with fewer than four
/// blocks).
fn shared_spread(weights: &[Vec<(usize, f64)>], blocks: &[Vec<f64>]) -> Vec<Option<Difference>> {
    let (n, treatments) = (blocks.len(), blocks.first().map_or(0, Vec::len));
    let (blocks_count, dimensions) = (count(n), count(treatments.saturating_sub(1)));
    // What is left of each log without its block and its treatment.
    let level = |values: &[f64]| values.iter().sum::<f64>() / count(values.len());
    let centred: Vec<Vec<f64>> = blocks
        .iter()
        .map(|block| block.iter().map(|log| log - level(block)).collect())
        .collect();
    let means: Vec<f64> = (0..treatments)
        .map(|t| centred.iter().map(|block| block[t]).sum::<f64>() / blocks_count)
        .collect();
    let rest: Vec<Vec<f64>> = centred
        .iter()
        .map(|block| block.iter().zip(&means).map(|(log, mean)| log - mean).collect())
        .collect();
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    // Trace of the covariance, and of its square by the blocks' products, which are fewer.
    let trace = rest.iter().map(|block| product(block, block)).sum::<f64>() / (blocks_count - 1.0);
    let of_square = rest
        .iter()
        .flat_map(|a| rest.iter().map(|b| product(a, b).powi(2)))
        .sum::<f64>()
        / (blocks_count - 1.0).powi(2);
    let alike = match of_square > 0.0 {
        true => trace * trace / (dimensions * of_square),
        false => 1.0,
    };
    let corrected =
        (blocks_count * dimensions * alike - 2.0) / (dimensions * (blocks_count - 1.0 - dimensions * alike));
    let alike = match n < BLOCKS_FOR_CORRECTION {
        true => alike,
        // As alike as so few blocks can show.
        false if corrected <= 0.0 || corrected >= 1.0 => 1.0,
        false => corrected.max(alike),
    };
    let freedom = (alike * dimensions * (blocks_count - 1.0)).max(blocks_count - 1.0);
    let differences = weights.iter().map(|weights| {
        let mean = blocks.iter().map(|block| weighted(weights, block)).sum::<f64>() / blocks_count;
        Some(Difference {
            contrast: Contrast {
                log_ratio: mean,
                standard_error: Some((trace / dimensions * squares(weights) / blocks_count).sqrt()),
                blocks: n,
            },
            freedom,
            level_share: 1.0,
        })
    });
    differences.collect()
}

/// Levels of each factor, if the treatments are all combinations of them.
fn full_factorial(levels: &[Vec<usize>]) -> Option<Vec<usize>> {
    let factors = levels.first()?.len();
    if factors == 0 || levels.iter().any(|of| of.len() != factors) {
        return None;
    }
    let sizes: Vec<usize> = (0..factors)
        .map(|factor| {
            levels
                .iter()
                .map(|of| of[factor])
                .max()
                .map_or(0, |most| most.saturating_add(1))
        })
        .collect();
    let combinations = sizes
        .iter()
        .try_fold(1_usize, |all, &size| all.checked_mul(size))?;
    let distinct: BTreeSet<&Vec<usize>> = levels.iter().collect();
    (combinations == levels.len() && distinct.len() == levels.len()).then_some(sizes)
}

/// What there is to estimate.
fn names(sizes: &[usize]) -> Vec<(Level, Option<Level>)> {
    let of = |factor: usize| (1..sizes[factor]).map(move |level| Level { factor, level });
    let mut names: Vec<_> = (0..sizes.len()).flat_map(of).map(|level| (level, None)).collect();
    for a in 0..sizes.len() {
        for b in a + 1..sizes.len() {
            names.extend(of(a).flat_map(|first| of(b).map(move |second| (first, Some(second)))));
        }
    }
    names
}

/// The weight of each treatment that has one. A factor counts +1 at its level and -1 at level 0,
/// both factors of an interaction multiplied; shared by the combinations of all other factors.
fn weights(levels: &[Vec<usize>], sizes: &[usize], first: Level, second: Option<Level>) -> Vec<(usize, f64)> {
    let sign = |of: &[usize], named: Level| match of[named.factor] {
        0 => -1.0,
        level if level == named.level => 1.0,
        _ => 0.0,
    };
    let cells: usize = sizes[first.factor] * second.map_or(1, |second| sizes[second.factor]);
    let share = count(cells) / count(levels.len());
    levels
        .iter()
        .map(|of| sign(of, first) * second.map_or(1.0, |second| sign(of, second)) * share)
        .enumerate()
        .filter(|&(_, weight)| weight != 0.0)
        .collect()
}

/// The main effects of a design of factors with two levels each, as ratios of the high level to the
/// low one: `columns[factor][treatment]` is +1 or -1, and the treatment's number in the
/// observations is its place there. For full and fractional factorials and Plackett & Burman's
/// designs, one block or more.
///
/// The model is log(value) = block + sum of main effects + error. In a fraction, main effects are
/// *aliased* with interactions: what two factors do together is reported as an effect of a third,
/// or widens the intervals as error. Screening shows which factors to test again, not how large the
/// effect of each is.
///
/// An effect is `None` with no degrees of freedom left; all are where columns are not distinguished
/// by the trials that there are, differ in length, or hold anything but 1 and -1.
pub fn screening_effects(
    columns: &[Vec<i8>],
    observations: &[Observation],
    rules: Rules,
) -> Vec<Option<Effect>> {
    screened(columns, observations, rules).unwrap_or_else(|| vec![None; columns.len()])
}

fn screened(columns: &[Vec<i8>], observations: &[Observation], rules: Rules) -> Option<Vec<Option<Effect>>> {
    let runs = columns.first()?.len();
    let sound = |column: &Vec<i8>| column.len() == runs && column.iter().all(|sign| sign.abs() == 1);
    if !columns.iter().all(sound) {
        return None;
    }
    let mut blocks: BTreeMap<usize, Vec<&Observation>> = BTreeMap::new();
    for o in observations.iter().filter(|o| o.usable() && o.treatment < runs) {
        blocks.entry(o.block).or_default().push(o);
    }
    let rows: Vec<Row> = blocks
        .values()
        .flat_map(|block| centred(block, columns))
        .collect();
    let factors = columns.len();
    let dot = |f: &dyn Fn(&Row) -> f64| rows.iter().map(f).sum::<f64>();
    let normal: Vec<Vec<f64>> = (0..factors)
        .map(|a| {
            (0..factors)
                .map(|b| dot(&|row| row.signs[a] * row.signs[b]))
                .collect()
        })
        .collect();
    let moments: Vec<f64> = (0..factors).map(|a| dot(&|row| row.signs[a] * row.log)).collect();
    let inverse = invert(&normal)?;
    let product = |row: &[f64], by: &[f64]| row.iter().zip(by).map(|(a, b)| a * b).sum::<f64>();
    let terms: Vec<f64> = inverse.iter().map(|row| product(row, &moments)).collect();
    let residual_sum = dot(&|row| (row.log - product(&row.signs, &terms)).powi(2));
    let freedom = rows.len().saturating_sub(blocks.len() + factors);
    let level = (1.0 - rules.confidence) / count(factors);
    let both = |column: &[i8]| {
        let has = |block: &[&Observation], sign| block.iter().any(|o| column[o.treatment] == sign);
        blocks
            .values()
            .filter(|block| has(block, 1) && has(block, -1))
            .count()
    };
    let judged = columns.iter().enumerate().map(|(factor, column)| {
        // From -1 to +1 are two units of the column.
        let contrast = Contrast {
            log_ratio: 2.0 * terms[factor],
            standard_error: Some(2.0 * (residual_sum / count(freedom) * inverse[factor][factor]).sqrt()),
            blocks: both(column),
        };
        let difference = Difference {
            contrast,
            freedom: count(freedom),
            level_share: 1.0,
        };
        effect(difference, level, rules)
    });
    Some(judged.collect())
}

/// A trial's sign in each column and its log, each less its mean in the block.
struct Row {
    signs: Vec<f64>,
    log: f64,
}

fn centred(block: &[&Observation], columns: &[Vec<i8>]) -> Vec<Row> {
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / count(block.len());
    let level = mean(&mut block.iter().map(|o| o.value.ln()));
    let middles: Vec<f64> = columns
        .iter()
        .map(|column| mean(&mut block.iter().map(|o| f64::from(column[o.treatment]))))
        .collect();
    block
        .iter()
        .map(|o| {
            let signs = columns.iter().zip(&middles);
            Row {
                signs: signs
                    .map(|(column, middle)| f64::from(column[o.treatment]) - middle)
                    .collect(),
                log: o.value.ln() - level,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
