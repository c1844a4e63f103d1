//! An experiment that looks after every block, and when it may stop: verdicts that hold under such
//! looking.
//!
//! After each block from `blocks_min` to `blocks_max` every comparison gets its repeated confidence
//! interval (Jennison & Turnbull, *Group Sequential Methods*, chapter 9): the intervals of all
//! looks hold together with the confidence promised, and over the comparisons by Bonferroni. So
//! whichever look a verdict is read off, better, worse or the same, it is wrong no more often than
//! that; when to look is no longer a choice that can be misused. The levels of the looks come from
//! `boundary.rs`.
//!
//! Where only gains are looked for, a comparison ends, too, at the first look whose bound excludes
//! a gain of the smallest effect (futility: the same book, chapter 5). That bound has an error of
//! its own, [`FUTILITY_ERROR`], spent over the looks in the same way: with the gain subtracted, t
//! is again what it is without a difference. Better and worse do not count on it, so their error is
//! at most what it is without.
//!
//! A comparison keeps the verdict, ratio and interval of the first look that decided it, whatever
//! later blocks show. Everything is worked out again from all observations by their blocks, so a
//! resumed experiment and one in a single piece say the same.

use crate::blocks::Observation;
use crate::boundary::{EARLY, EVENLY, levels};
use crate::matrix::count;
use crate::pairs::{Comparison, Pairs};
use crate::verdict::{Effect, Rules, Verdict, distinct, effect};

/// When to look, fixed before the first trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoppingRule {
    /// What is judged, and how sure.
    pub rules: Rules,
    /// The first look is after so many blocks.
    pub blocks_min: usize,
    /// The last one after so many.
    pub blocks_max: usize,
    /// Whether a comparison ends, too, once a gain of the smallest effect is improbable
    /// ([`Verdict::NoGain`]).
    pub may_be_futile: bool,
}

/// The probability that a treatment which gains just the smallest effect that matters is called
/// [`Verdict::NoGain`] at any look: the other side of a power of 90 %.
pub const FUTILITY_ERROR: f64 = 0.1;

/// More looks than this are refused.
pub const MOST_BLOCKS: usize = 500;

/// The trials of the blocks that have ended so far.
#[derive(Debug, Clone, Copy)]
pub struct Trials<'a> {
    /// One for each trial, in any order.
    pub observations: &'a [Observation],
    /// Numbers of the blocks that have ended, failed trials included, in the order of time.
    /// Observations of other blocks are not evaluated yet.
    pub ended: &'a [usize],
}

/// What the looks so far have found.
#[derive(Debug, Clone, PartialEq)]
pub struct Looked {
    /// In the order of the comparisons: the effect as of the look that decided it, else of the
    /// latest one; `None` before the first look, and where a side has no trial.
    pub effects: Vec<Option<Effect>>,
    /// After how many blocks each was decided.
    pub decided_after: Vec<Option<usize>>,
    /// The effects by all blocks, whenever they were decided. Their intervals hold just as well;
    /// the ratio of the look that stopped leans away from 1, this one less.
    pub latest: Vec<Option<Effect>>,
    /// No further block is needed: everything that can be judged is decided, or this was the last
    /// look.
    pub done: bool,
}

/// A stopping rule with its levels worked out; to be made once for an experiment.
#[derive(Debug, Clone)]
pub struct Sequential {
    rule: StoppingRule,
    comparisons: Vec<Comparison>,
    levels: Vec<f64>,
    /// Two-sided levels of the bound that a gain has; none where nothing is futile.
    futile: Vec<f64>,
}

impl Sequential {
    /// For these comparisons. `None` where nothing can be decided: no comparison, a confidence not
    /// between 0 and 1, or not 2 <= blocks_min <= blocks_max <= 500.
    pub fn new(rule: StoppingRule, comparisons: &[Comparison]) -> Option<Sequential> {
        let range = 2..=rule.blocks_max.min(MOST_BLOCKS);
        let confidence = rule.rules.confidence;
        let together = distinct(comparisons).len();
        if together == 0
            || !(confidence > 0.0 && confidence < 1.0)
            || !range.contains(&rule.blocks_min)
            || rule.blocks_max > MOST_BLOCKS
        {
            return None;
        }
        let error = (1.0 - confidence) / count(together);
        let spent = |error, gamma| levels(rule.blocks_min, rule.blocks_max, error, gamma);
        let (gamma, futile) = match rule.may_be_futile {
            // One side of an interval is wrong half as often as both.
            true => (EVENLY, spent(2.0 * FUTILITY_ERROR, EARLY)),
            false => (EARLY, Vec::new()),
        };
        Some(Sequential {
            rule,
            comparisons: comparisons.to_vec(),
            levels: spent(error, gamma),
            futile,
        })
    }

    /// The two-sided level at which one comparison is judged at each look, the first after
    /// `blocks_min` blocks.
    pub fn levels(&self) -> &[f64] {
        &self.levels
    }

    /// Looks after each block that has ended, one after the other. The same trials give the same
    /// answer, however many looks there were before. Blocks past `blocks_max` are not evaluated.
    pub fn look(&self, trials: Trials<'_>) -> Looked {
        let n = self.comparisons.len();
        let mut looked = Looked {
            effects: vec![None; n],
            decided_after: vec![None; n],
            latest: vec![None; n],
            done: false,
        };
        let blocks = self.by_block(&trials);
        let mut pairs = Pairs::new(distinct(&self.comparisons));
        for ended in 1..=blocks.len() {
            pairs.add(blocks[ended - 1].iter().map(|&i| &trials.observations[i]));
            // Once all is decided, only the latest look adds something.
            let open = looked.decided_after.contains(&None);
            if ended < self.rule.blocks_min || !(open || ended == blocks.len()) {
                continue;
            }
            self.look_once(&pairs, ended, &mut looked);
        }
        looked
    }

    /// Indices of the observations of each block that has ended.
    fn by_block(&self, trials: &Trials<'_>) -> Vec<Vec<usize>> {
        let ended = &trials.ended[..trials.ended.len().min(self.rule.blocks_max)];
        let mut places: Vec<(usize, usize)> = ended.iter().copied().zip(0..).collect();
        places.sort_unstable();
        let mut blocks = vec![Vec::new(); ended.len()];
        for (i, observation) in trials.observations.iter().enumerate() {
            if let Ok(found) = places.binary_search_by_key(&observation.block, |&(block, _)| block) {
                blocks[places[found].1].push(i);
            }
        }
        // Sums do not depend on the order of what was given.
        for block in &mut blocks {
            block.sort_by_key(|&i| trials.observations[i].treatment);
        }
        blocks
    }

    fn look_once(&self, pairs: &Pairs, blocks: usize, looked: &mut Looked) {
        let look = blocks - self.rule.blocks_min;
        let rules = self.rule.rules;
        let differences = pairs.differences();
        // What is borrowed is paid for with a share of a level, which the bound, with one of its
        // own, has no room for.
        let own = pairs.own_differences();
        let judge = |comparison: &Comparison| {
            let place = pairs.place(comparison)?;
            let found = effect(differences[place]?, self.levels[look], rules)?;
            let level = self.futile.get(look);
            let bound = level.and_then(|level| effect(own[place]?, *level, rules));
            let is_futile = bound.is_some_and(|bound| bound.gains_less_than(rules));
            Some(match found.verdict {
                Verdict::Undecided if is_futile => Effect {
                    verdict: Verdict::NoGain,
                    ..found
                },
                _ => found,
            })
        };
        looked.latest = self.comparisons.iter().map(judge).collect();
        for (i, latest) in looked.latest.iter().enumerate() {
            if looked.decided_after[i].is_none() {
                looked.effects[i] = *latest;
                let decided = latest.is_some_and(|effect| effect.verdict != Verdict::Undecided);
                looked.decided_after[i] = decided.then_some(blocks);
            }
        }
        // With one block there is no effect yet. One whose treatment fails from then on keeps the
        // experiment going, as one that is undecided does.
        let open = |i: usize| looked.decided_after[i].is_none() && pairs.blocks(&self.comparisons[i]) > 0;
        let any_open = (0..self.comparisons.len()).any(open);
        let any_decided = looked.decided_after.iter().any(Option::is_some);
        looked.done |= blocks == self.rule.blocks_max || (!any_open && any_decided);
    }
}

#[cfg(test)]
mod tests;
