//! A program from outside that chooses what a search tries next: JSON objects, one to a line, to it and back.
//!
//! It receives an [`Opening`] at the start, then a [`Told`] for each trial, also for those before it was started, and [`Asked`] before
//! each that it chooses. It answers that alone, with a [`Chosen`]. The format is described in docs/reference/optimizer.md.

use crate::file::{ExperimentFile, ScaleWord};
use pgdyno_record::ExperimentRecord;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Value of `format` in an opening.
pub(crate) const FORMAT: &str = "pgdyno-optimizer/1";

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

#[derive(Debug, Serialize)]
struct FactorOpening<'f> {
    name: &'f str,
    /// The reference's first.
    levels: Vec<String>,
    /// How likely each is to be good, in proportion; empty where nothing is known.
    weights: &'f [f64],
    relevance: f64,
    /// How levels that are numbers are arranged: "log", "linear" or "none".
    scale: &'static str,
}

impl<'f> Opening<'f> {
    /// That of a file; `levels` are those of each factor that can be tested.
    pub(crate) fn of(
        file: &'f ExperimentFile,
        record: &'f ExperimentRecord,
        trials: u32,
        levels: Vec<Vec<String>>,
    ) -> Opening<'f> {
        let factors = file
            .factor
            .iter()
            .zip(levels)
            .map(|(factor, levels)| FactorOpening {
                name: &factor.name,
                weights: match factor.weights.len() == levels.len() {
                    true => &factor.weights,
                    false => &[],
                },
                levels,
                relevance: factor.relevance.unwrap_or(1.0),
                scale: match factor.scale.unwrap_or(ScaleWord::Log) {
                    ScaleWord::Log => "log",
                    ScaleWord::Linear => "linear",
                    ScaleWord::None => "none",
                },
            });
        Opening {
            format: FORMAT,
            seed: record.seed,
            trials,
            metric: &file.metric,
            larger_is_better: record.larger_is_better(&file.metric),
            subject_to: file.search.as_ref().map_or(&[], |search| &search.subject_to),
            factors: factors.collect(),
        }
    }
}

/// What a trial has shown.
#[derive(Debug, Serialize)]
pub(crate) struct Told {
    pub(crate) tell: Trial,
}

#[derive(Debug, Serialize)]
pub(crate) struct Trial {
    pub(crate) levels: Levels,
    /// The metric, in its unit; `null` where the trial failed.
    pub(crate) figure: Option<f64>,
    /// What is to be as large as can be: the logarithm of the figure, or of its inverse, less where a bound is broken.
    pub(crate) value: Option<f64>,
    /// Whether the figures of the trial hold; where not, it says nothing of its levels.
    pub(crate) holds: bool,
    pub(crate) block: u32,
}

/// What is to be tried next?
#[derive(Debug, Serialize)]
pub(crate) struct Asked {
    pub(crate) ask: Place,
}

#[derive(Debug, Serialize)]
pub(crate) struct Place {
    /// Number of the trial, from 1.
    pub(crate) trial: u32,
    pub(crate) block: u32,
}

/// A choice that cannot be tried, before it is asked again.
#[derive(Debug, Serialize)]
pub(crate) struct Refused<'w> {
    pub(crate) refuse: Choice<'w>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Choice<'w> {
    pub(crate) levels: Levels,
    pub(crate) why: &'w str,
}

/// Its choice.
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
