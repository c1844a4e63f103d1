//! A program from outside that chooses what a search tries next: JSON objects, one to a line, to it
//! and back.
//!
//! It receives an [`Opening`] at the start, then [`Message`]s; it answers [`Message::Ask`] alone,
//! with a [`Chosen`]. The format is described in docs/reference/optimizer.md.

use pgdyno_advice::Scale;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Value of `format` in an opening.
const FORMAT: &str = "pgdyno-optimizer/1";

/// Level by factor.
pub(crate) type Levels = BTreeMap<String, String>;

/// What is searched.
#[derive(Debug, Serialize)]
pub(crate) struct Opening<'f> {
    format: &'static str,
    /// Seed of all chance: with the same trials it is to choose the same.
    seed: u64,
    /// Trials in all.
    trials: u32,
    metric: &'f str,
    larger_is_better: bool,
    subject_to: &'f [String],
    factors: Vec<FactorOpening<'f>>,
}

/// A factor with those of its levels that can be tested, the reference's first.
#[derive(Debug, Serialize)]
pub(crate) struct FactorOpening<'f> {
    pub(crate) name: &'f str,
    pub(crate) levels: Vec<&'f str>,
    /// How likely each is to be good, in proportion.
    pub(crate) weights: Vec<f64>,
    pub(crate) relevance: f64,
    pub(crate) scale: Scale,
}

impl<'f> Opening<'f> {
    /// Of a search with this seed, number of trials, metric and bounds.
    pub(crate) fn of(
        (seed, trials): (u64, u32),
        (metric, larger_is_better): (&'f str, bool),
        subject_to: &'f [String],
        factors: Vec<FactorOpening<'f>>,
    ) -> Opening<'f> {
        Opening {
            format: FORMAT,
            seed,
            trials,
            metric,
            larger_is_better,
            subject_to,
            factors,
        }
    }
}

/// What the program receives after the opening.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Message<'m> {
    /// What a trial has shown.
    Tell {
        levels: Levels,
        /// The metric, in its unit; `null` where the trial failed.
        figure: Option<f64>,
        /// What is to be as large as can be: the logarithm of the figure, or of its inverse, less
        /// where a bound is broken.
        value: Option<f64>,
        /// Whether the figures of the trial hold; where not, it says nothing of its levels.
        holds: bool,
        /// Whether a guard has ended it: its levels cannot be chosen again.
        ended_by_guard: bool,
        block: u32,
    },
    /// The question what is to be tried next.
    Ask {
        /// Number of the trial, from 1.
        trial: u32,
        block: u32,
    },
    /// A choice that cannot be tried, before the question is asked again.
    Refuse { levels: &'m Levels, why: &'m str },
}

/// The program's choice.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Chosen {
    /// Level of each factor; the reference's where none is named.
    pub(crate) levels: Levels,
    /// Why, in a part of a sentence.
    #[serde(default)]
    pub(crate) why: Option<String>,
}

/// Longest reason that is kept.
const WHY_CHARS_MAX: usize = 200;

impl Chosen {
    /// Reads an answer.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(crate) fn parse(line: &str) -> Result<Chosen, String> {
        let mut chosen: Chosen = serde_json::from_str(line).map_err(|error| error.to_string())?;
        chosen.why = chosen.why.map(|why| {
            let printable = why.chars().map(|c| if c.is_control() { ' ' } else { c });
            printable.take(WHY_CHARS_MAX).collect()
        });
        Ok(chosen)
    }
}
