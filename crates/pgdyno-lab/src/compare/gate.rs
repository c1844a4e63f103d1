//! Gates: a bound on a figure that a comparison must not be proven to pass, as "tps worse than 2%".

use super::{Comparison, Row};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// Longer texts are no gate.
const LENGTH_MAX: usize = 200;
/// Longer words are no figure's name.
const NAME_MAX: usize = 64;
/// Nothing is measured so finely; 0 may be asked for.
const PERCENT_MIN: f64 = 1e-6;
/// A hundredfold; whoever asks for more has mistyped it.
const PERCENT_MAX: f64 = 10_000.0;

/// The direction that a figure must not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// To the bad side: less throughput, a longer response.
    Worse,
    /// To the good side: more throughput, a shorter response.
    Better,
    /// To either side by more than the bound.
    Differs,
}

/// A bound on a figure, from a text as "METRIC worse than N%".
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gate {
    /// Name of the figure, which ends with its unit.
    pub metric: String,
    /// Direction that the figure must not take.
    pub way: Way,
    /// Bound in that direction, percent; 0 or more.
    pub percent: f64,
}

/// Whether a gate holds, by the interval of the ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The whole interval keeps the bound.
    Holds,
    /// The whole interval is beyond the bound.
    Fails,
    /// The bound is within the interval, or there is no interval.
    NotDecided,
}

/// The verdict on a gate for one pair.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// The gate as it was written: "tps worse than 2%".
    pub gate: String,
    /// Label of the reference.
    pub a: String,
    /// Label of what is compared with the reference.
    pub b: String,
    /// Whether the gate holds, fails or is not decided.
    pub outcome: Outcome,
    /// Reason in a sentence, with the interval.
    pub why: String,
}

/// A text that is not a gate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(
    "the gate \"{text}\": {what}; expected as \"tps worse than 2%\", or with \"better than\", \"differs by\""
)]
pub struct WrongGate {
    text: String,
    what: String,
}

/// A gate that cannot be judged on a comparison.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GateError {
    /// The figure of a side is not known.
    #[error("the gate \"{gate}\" cannot be judged: {metric} of {a} or of {b} was not measured")]
    NotMeasured {
        /// The gate as it was written.
        gate: String,
        /// Name of its figure.
        metric: String,
        /// Label of the reference.
        a: String,
        /// Label of what is compared with the reference.
        b: String,
    },
    /// A bound of 100 % or more on a fall, which no figure can pass.
    #[error(
        "the gate \"{gate}\" could never fail: {metric} cannot fall by 100 % or more; name a smaller bound"
    )]
    Never {
        /// The gate as it was written.
        gate: String,
        /// Name of its figure.
        metric: String,
    },
}

impl FromStr for Gate {
    type Err = WrongGate;

    fn from_str(text: &str) -> Result<Gate, WrongGate> {
        let wrong = |what: String| WrongGate {
            text: text.chars().take(80).collect(),
            what,
        };
        if text.len() > LENGTH_MAX {
            return Err(wrong("it is too long".into()));
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let [metric, way, rest @ ..] = words.as_slice() else {
            return Err(wrong("it has no figure and no \"worse\"".into()));
        };
        let is_name = metric.len() <= NAME_MAX
            && metric
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
        if !is_name {
            return Err(wrong(format!("\"{metric}\" is not a name of a figure")));
        }
        let way = match *way {
            "worse" => Way::Worse,
            "better" => Way::Better,
            "differs" => Way::Differs,
            other => {
                return Err(wrong(format!(
                    "expected worse, better or differs, found \"{other}\""
                )));
            }
        };
        let number = match rest {
            ["than" | "by", number @ ..] if number.first() != Some(&"more") => number,
            ["by", "more", "than", number @ ..] => number,
            _ => return Err(wrong("\"than\" or \"by\" is missing".into())),
        };
        let number = number.concat();
        let percent = number
            .strip_suffix('%')
            .and_then(|number| number.parse::<f64>().ok());
        let percent =
            percent.filter(|percent| *percent == 0.0 || (PERCENT_MIN..=PERCENT_MAX).contains(percent));
        let percent = percent.ok_or_else(|| {
            wrong(format!(
                "\"{number}\" is not a percentage from 0% to {PERCENT_MAX}%"
            ))
        })?;
        Ok(Gate {
            metric: (*metric).to_owned(),
            way,
            // Not -0.
            percent: percent.abs(),
        })
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = match self.way {
            Way::Worse => "worse than",
            Way::Better => "better than",
            Way::Differs => "differs by",
        };
        write!(f, "{} {way} {}%", self.metric, self.percent)
    }
}

impl Gate {
    /// Compares it with every pair of a comparison that has been made with its figure.
    pub fn judge(&self, comparison: &Comparison) -> Result<Vec<Judged>, GateError> {
        let judged = comparison.pairs.iter().map(|pair| {
            let row = pair.rows.iter().find(|row| row.metric == self.metric);
            let measured = row.filter(|row| row.a.is_some() && row.b.is_some());
            let row = measured.ok_or_else(|| GateError::NotMeasured {
                gate: self.to_string(),
                metric: self.metric.clone(),
                a: pair.a.clone(),
                b: pair.b.clone(),
            })?;
            let (outcome, why) = self.outcome(row, pair.why_no_verdict)?;
            Ok(Judged {
                gate: self.to_string(),
                a: pair.a.clone(),
                b: pair.b.clone(),
                outcome,
                why,
            })
        });
        judged.collect()
    }

    fn outcome(&self, row: &Row, why_no_verdict: Option<&str>) -> Result<(Outcome, String), GateError> {
        let part = self.percent / 100.0;
        let (floor, ceiling) = (1.0 - part, 1.0 + part);
        // Beyond which ratios it fails.
        let downwards = match self.way {
            Way::Worse => Some(row.larger_is_better),
            Way::Better => Some(!row.larger_is_better),
            Way::Differs => None,
        };
        if downwards == Some(true) && floor <= 0.0 {
            return Err(GateError::Never {
                gate: self.to_string(),
                metric: self.metric.clone(),
            });
        }
        if let Some(why) = why_no_verdict {
            return Ok((Outcome::NotDecided, why.to_owned()));
        }
        let Some(effect) = row.effect else {
            let why = row.why_no_interval.unwrap_or("there is no interval");
            return Ok((Outcome::NotDecided, why.to_owned()));
        };
        let (low, high) = (effect.ratio_low, effect.ratio_high);
        let (fails, holds) = match downwards {
            Some(true) => (high < floor, low >= floor),
            Some(false) => (low > ceiling, high <= ceiling),
            None => (high < floor || low > ceiling, low >= floor && high <= ceiling),
        };
        // What fails more often is no better for it, nor what fails less often worse.
        let is_lower = high < floor;
        let is_worse = is_lower == row.larger_is_better;
        let (more_of_a, more_of_b) = row.fails_more();
        let is_doubtful = match (fails, self.way) {
            (true, _) if is_worse => more_of_a,
            (true, _) => more_of_b,
            (_, Way::Worse) => more_of_b,
            (_, Way::Better) => more_of_a,
            (_, Way::Differs) => more_of_a || more_of_b,
        };
        let (outcome, mut why) = match (fails, holds) {
            (true, _) => (
                Outcome::Fails,
                "the whole interval is beyond the limit".to_owned(),
            ),
            (_, true) => (
                Outcome::Holds,
                "the whole interval is within the limit".to_owned(),
            ),
            _ => {
                let why = "the interval contains the limit".to_owned();
                return Ok((Outcome::NotDecided, why));
            }
        };
        if !is_doubtful {
            return Ok((outcome, why));
        }
        let (more, less) = if more_of_a { ("A", "B") } else { ("B", "A") };
        why.push_str(&format!(
            ", but a larger part of {more}'s trials failed than of {less}'s"
        ));
        Ok((Outcome::NotDecided, why))
    }
}
