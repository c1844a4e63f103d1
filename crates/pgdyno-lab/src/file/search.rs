//! What a search tries: how many trials, in which order of likelihood, and what it may not try.

use pgdyno_record::BrokenBound;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A search among the levels of the factors.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchPart {
    /// Trials in all.
    pub trials: u32,
    /// How what is tried next is chosen.
    #[serde(default)]
    pub method: MethodWord,
    /// A program that chooses instead, as "python3 my.py": it is asked by lines of JSON.
    #[serde(default)]
    pub optimizer: Option<String>,
    /// What the best must hold to, as "p99_ms <= 20": a figure of a trial, `<=` or `>=`, a number.
    #[serde(default)]
    pub subject_to: Vec<String>,
    /// Where it begins, after the reference.
    #[serde(default)]
    pub start: Vec<StartPart>,
    /// Sums that no trial goes beyond.
    #[serde(default)]
    pub limit: Vec<LimitPart>,
}

/// How what is tried next is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MethodWord {
    /// By a Gaussian process whose knobs' effects add up.
    #[default]
    Process,
    /// By a forest of trees.
    Forest,
    /// By the densities of good and bad trials.
    Densities,
    /// By chance, as likely as the weights say.
    Random,
    /// One factor after the other, from the best so far.
    OneAtATime,
}

/// A point at which a search begins.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartPart {
    /// Name of its treatment.
    pub name: String,
    /// Level of each factor; the reference's where none is named.
    pub levels: BTreeMap<String, String>,
}

/// A sum that no trial goes beyond.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitPart {
    /// How often each factor's level counts, where levels are numbers or sizes.
    pub sum: BTreeMap<String, f64>,
    /// The most that the sum may be, as a number or a size.
    pub at_most: String,
}

/// What the best must hold to.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// Figure of a trial.
    pub figure: String,
    /// Whether the limit is the most that it may be; else the least.
    pub is_most: bool,
    /// The limit.
    pub limit: f64,
    /// The bound as it was read.
    pub text: String,
}

/// A figure so far beyond a bound is as bad as any beyond it.
const EXCESS_MAX: f64 = 10.0;

impl Bound {
    /// Reads "p99_ms <= 20".
    ///
    /// # Errors
    ///
    /// What was expected.
    pub fn parse(text: &str) -> Result<Bound, String> {
        let wrong = || {
            format!("\"{text}\": expected a figure, <= or >=, and a number above 0, e.g. \"p99_ms <= 20\"")
        };
        let (is_most, (figure, limit)) = match (text.split_once("<="), text.split_once(">=")) {
            (Some(parts), None) => (true, parts),
            (None, Some(parts)) => (false, parts),
            _ => return Err(wrong()),
        };
        let limit: f64 = limit.trim().parse().map_err(|_| wrong())?;
        let figure = figure.trim().to_owned();
        match limit.is_finite() && limit > 0.0 && !figure.is_empty() {
            true => Ok(Bound {
                figure,
                is_most,
                limit,
                text: text.trim().to_owned(),
            }),
            false => Err(wrong()),
        }
    }

    /// The bound, where a figure breaks it; one that was not measured does.
    pub fn broken_by(&self, figure: Option<f64>) -> Option<BrokenBound> {
        let is_broken = figure.is_none_or(|figure| self.excess(figure) > 0.0);
        is_broken.then(|| BrokenBound {
            bound: self.text.clone(),
            figure,
        })
    }

    /// By how much a figure is beyond it, as a logarithm; 0 where it holds, and no more than
    /// [`EXCESS_MAX`], for a figure may be 0.
    pub fn excess(&self, figure: f64) -> f64 {
        let ratio = match self.is_most {
            true => figure / self.limit,
            false => self.limit / figure,
        };
        ratio.ln().clamp(0.0, EXCESS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_is_read_or_refused_with_what_was_expected() {
        let bound = Bound::parse(" p99_ms<= 20 ").unwrap();
        assert_eq!(
            (bound.figure.as_str(), bound.is_most, bound.limit),
            ("p99_ms", true, 20.0)
        );
        assert!(bound.excess(19.0) == 0.0 && bound.excess(40.0) > 0.6);
        assert_eq!(bound.broken_by(Some(19.0)), None);
        assert_eq!(bound.broken_by(Some(40.0)).unwrap().bound, "p99_ms<= 20");
        assert_eq!(bound.broken_by(None).unwrap().figure, None);
        let least = Bound::parse("tps >= 100").unwrap();
        assert!(least.excess(50.0) > 0.6 && least.excess(200.0) == 0.0);
        assert_eq!((bound.excess(0.0), least.excess(0.0)), (0.0, EXCESS_MAX));
        for text in [
            "p99_ms",
            "p99_ms < 20",
            "<= 20",
            "p99_ms <= much",
            "tps >= -1",
            "a <= 1 >= 2",
            "",
        ] {
            assert!(Bound::parse(text).unwrap_err().contains("expected"), "{text}");
        }
    }
}
