//! From observations to verdicts: better, worse, the same, or undecided.

use crate::blocks::Observation;
use crate::matrix::count;
use crate::pairs::{Comparison, Difference, Pairs};
use crate::spread::student;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What may be said of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval is on the good side of 1.
    Better,
    /// The whole interval is on the bad side of 1.
    Worse,
    /// The whole interval is within the smallest effect that matters.
    Same,
    /// None of these, and a gain of the smallest effect that matters is improbable: a bound of its
    /// own (90 %, one-sided) excludes it. Only where an experiment looks for gains.
    NoGain,
    /// The interval is too wide to say any of these.
    Undecided,
}

/// The rules, fixed before the first trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// Confidence of all intervals together, for example 0.95.
    pub confidence: f64,
    /// Differences below it do not matter: 0.02 = 2 %.
    pub smallest_effect: f64,
    /// Whether a larger value is the better one (throughput) or the worse one (response time).
    pub larger_is_better: bool,
}

/// A ratio with its interval and what follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Effect {
    /// treatment / reference: 1.10 is ten percent more.
    pub ratio: f64,
    /// Lower bound of the simultaneous interval.
    pub ratio_low: f64,
    /// Upper bound of the simultaneous interval.
    pub ratio_high: f64,
    /// Where the interval is, compared with 1 and the smallest effect that matters.
    pub verdict: Verdict,
    /// Blocks in which both sides finished.
    pub blocks: usize,
}

impl Effect {
    /// Whether the interval excludes a gain of the smallest effect.
    pub(crate) fn gains_less_than(self, rules: Rules) -> bool {
        let band = 1.0 + rules.smallest_effect;
        match rules.larger_is_better {
            true => self.ratio_high < band,
            false => self.ratio_low > 1.0 / band,
        }
    }

    /// Whether the whole interval is beyond the smallest effect, on either side.
    pub fn is_beyond(self, rules: Rules) -> bool {
        let band = 1.0 + rules.smallest_effect;
        self.ratio_low > band || self.ratio_high < 1.0 / band
    }

    /// Whether the interval excludes a loss of the smallest effect.
    pub fn loses_less_than(self, rules: Rules) -> bool {
        self.inverse().gains_less_than(rules)
    }

    /// The same ratio and interval without a verdict.
    #[must_use]
    pub fn without_verdict(self) -> Effect {
        Effect {
            verdict: Verdict::Undecided,
            ..self
        }
    }

    /// The effect where so many trials of either side failed: what fails more often is neither
    /// better nor the same.
    #[must_use]
    pub fn where_failed(self, treatment: usize, reference: usize) -> Effect {
        let holds = match self.verdict {
            Verdict::Better => treatment <= reference,
            Verdict::Worse | Verdict::NoGain => reference <= treatment,
            Verdict::Same => treatment == reference,
            Verdict::Undecided => true,
        };
        if holds { self } else { self.without_verdict() }
    }

    /// The effect with its sides exchanged.
    #[must_use]
    pub fn inverse(self) -> Effect {
        Effect {
            ratio: 1.0 / self.ratio,
            ratio_low: 1.0 / self.ratio_high,
            ratio_high: 1.0 / self.ratio_low,
            verdict: match self.verdict {
                Verdict::Better => Verdict::Worse,
                Verdict::Worse => Verdict::Better,
                // Of losses nothing is known.
                Verdict::NoGain => Verdict::Undecided,
                other => other,
            },
            ..self
        }
    }
}

/// The effects of `comparisons`, in their order; `None` where fewer than two blocks have both
/// sides.
///
/// Each comparison has the spread of its own differences within blocks, steadied by those of the
/// others (`moderated.rs`): one treatment that is noisier than the others makes neither their
/// intervals wide nor its own narrow. The intervals hold together: each is made at (1 - confidence)
/// / number of distinct comparisons (Bonferroni), so the family-wise error is at most 1 -
/// confidence.
pub fn decide(observations: &[Observation], comparisons: &[Comparison], rules: Rules) -> Vec<Option<Effect>> {
    let distinct = distinct(comparisons);
    let level = (1.0 - rules.confidence) / count(distinct.len().max(1));
    let mut blocks: BTreeMap<usize, Vec<&Observation>> = BTreeMap::new();
    for observation in observations {
        blocks.entry(observation.block).or_default().push(observation);
    }
    let mut pairs = Pairs::new(distinct);
    for block in blocks.values() {
        pairs.add(block.iter().copied());
    }
    let differences = pairs.differences();
    comparisons
        .iter()
        .map(|comparison| effect(differences[pairs.place(comparison)?]?, level, rules))
        .collect()
}

/// The comparisons without doubles: so many intervals are to hold together.
pub(crate) fn distinct(comparisons: &[Comparison]) -> Vec<Comparison> {
    let mut distinct: Vec<Comparison> = Vec::new();
    for comparison in comparisons {
        if !distinct.contains(comparison) {
            distinct.push(*comparison);
        }
    }
    distinct
}

/// The effect that a difference is, with the interval of the two-sided `level`.
pub(crate) fn effect(difference: Difference, level: f64, rules: Rules) -> Option<Effect> {
    let contrast = difference.contrast;
    let margin = match contrast.standard_error? {
        0.0 => 0.0,
        error => error * student(1.0 - level * difference.level_share, difference.freedom)?,
    };
    let (low, high) = (
        (contrast.log_ratio - margin).exp(),
        (contrast.log_ratio + margin).exp(),
    );
    Some(Effect {
        ratio: contrast.log_ratio.exp(),
        ratio_low: low,
        ratio_high: high,
        verdict: verdict(low, high, rules),
        blocks: contrast.blocks,
    })
}

/// The two-sided quantile of Student's t for `comparisons` intervals that hold together.
pub(crate) fn critical_value(confidence: f64, comparisons: usize, degrees_of_freedom: usize) -> Option<f64> {
    if degrees_of_freedom == 0 || comparisons == 0 {
        return None;
    }
    student(
        1.0 - (1.0 - confidence) / count(comparisons),
        count(degrees_of_freedom),
    )
}

pub(crate) fn verdict(low: f64, high: f64, rules: Rules) -> Verdict {
    let band = 1.0 + rules.smallest_effect;
    if low >= 1.0 / band && high <= band {
        Verdict::Same
    } else if low > 1.0 {
        if rules.larger_is_better {
            Verdict::Better
        } else {
            Verdict::Worse
        }
    } else if high < 1.0 {
        if rules.larger_is_better {
            Verdict::Worse
        } else {
            Verdict::Better
        }
    } else {
        Verdict::Undecided
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::{SeedableRng, Xoshiro256PlusPlus, normal};

    const RULES: Rules = Rules {
        confidence: 0.95,
        smallest_effect: 0.02,
        larger_is_better: true,
    };

    #[test]
    fn a_loss_is_excluded_by_the_bound_on_its_side() {
        let effect = |low, high| Effect {
            ratio: 1.0,
            ratio_low: low,
            ratio_high: high,
            verdict: Verdict::Undecided,
            blocks: 4,
        };
        let smaller = Rules {
            larger_is_better: false,
            ..RULES
        };
        assert!(effect(0.99, 1.2).loses_less_than(RULES) && !effect(0.97, 1.2).loses_less_than(RULES));
        assert!(effect(0.8, 1.01).loses_less_than(smaller) && !effect(0.8, 1.03).loses_less_than(smaller));
        assert!(effect(0.9, 0.97).is_beyond(RULES) && effect(1.03, 1.2).is_beyond(RULES));
        assert!(!effect(0.9, 0.99).is_beyond(RULES) && !effect(1.01, 1.2).is_beyond(RULES));
    }

    #[test]
    fn verdicts_follow_the_interval() {
        let check = |low, high, larger_is_better, expected| {
            let rules = Rules {
                larger_is_better,
                ..RULES
            };
            assert_eq!(verdict(low, high, rules), expected, "{low}..{high}");
        };
        check(1.03, 1.09, true, Verdict::Better);
        check(1.03, 1.09, false, Verdict::Worse);
        check(0.90, 0.97, true, Verdict::Worse);
        check(0.90, 0.97, false, Verdict::Better);
        check(0.99, 1.01, true, Verdict::Same);
        check(1.001, 1.019, true, Verdict::Same);
        check(0.97, 1.08, true, Verdict::Undecided);
    }

    /// Student's t, two-sided 95 %, from the usual printed table.
    #[test]
    fn critical_values_are_the_tables() {
        for (df, expected) in [(1, 12.706), (2, 4.303), (12, 2.179), (30, 2.042)] {
            let found = critical_value(0.95, 1, df).unwrap();
            assert!((found - expected).abs() < 5e-4, "{df}: {found}");
        }
        assert_eq!(critical_value(0.95, 1, 0), None);
    }

    #[test]
    fn what_fails_more_often_is_neither_better_nor_the_same() {
        let check = |verdict, failed: (usize, usize), expected| {
            let effect = Effect {
                ratio: 1.1,
                ratio_low: 1.0,
                ratio_high: 1.2,
                verdict,
                blocks: 5,
            };
            assert_eq!(
                effect.where_failed(failed.0, failed.1).verdict,
                expected,
                "{verdict:?} {failed:?}"
            );
        };
        check(Verdict::Better, (1, 0), Verdict::Undecided);
        check(Verdict::Better, (1, 1), Verdict::Better);
        check(Verdict::Better, (0, 1), Verdict::Better);
        check(Verdict::Worse, (0, 1), Verdict::Undecided);
        check(Verdict::Worse, (2, 1), Verdict::Worse);
        check(Verdict::Same, (0, 1), Verdict::Undecided);
        check(Verdict::Same, (1, 1), Verdict::Same);
    }

    /// 3 blocks, 7 treatments that are all the same, 2 % noise and a drift between blocks: the
    /// share of experiments with any better or worse among the 11 comparisons of a cumulative
    /// design stays within the promised 5 %.
    #[test]
    fn false_alarms_stay_within_the_family_wise_error() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut comparisons: Vec<Comparison> = (1..7)
            .map(|t| Comparison {
                treatment: t,
                reference: t - 1,
            })
            .collect();
        comparisons.extend((1..7).map(|t| Comparison {
            treatment: t,
            reference: 0,
        }));
        let experiments = 4_000;
        let mut alarms = 0;
        for _ in 0..experiments {
            let mut all = Vec::new();
            for block in 0..3 {
                let drift = 0.1 * normal(&mut random);
                for treatment in 0..7 {
                    let value = 1000.0 * (drift + 0.02 * normal(&mut random)).exp();
                    all.push(Observation {
                        block,
                        treatment,
                        value,
                    });
                }
            }
            let alarm = decide(&all, &comparisons, RULES)
                .iter()
                .flatten()
                .any(|e| matches!(e.verdict, Verdict::Better | Verdict::Worse));
            alarms += usize::from(alarm);
        }
        assert!(alarms * 100 <= experiments * 5, "{alarms} of {experiments}");
        assert!(alarms > 0, "a rule that never alarms decides nothing");
    }

    #[test]
    fn a_clear_effect_is_found() {
        let mut all = Vec::new();
        for (block, base) in [1000.0, 1100.0, 950.0].into_iter().enumerate() {
            for (treatment, factor) in [1.0, 1.002, 1.25].into_iter().enumerate() {
                let wobble = 1.0 + 0.002 * ((block + 2 * treatment) % 3) as f64;
                all.push(Observation {
                    block,
                    treatment,
                    value: base * factor * wobble,
                });
            }
        }
        let effects = decide(
            &all,
            &[
                Comparison {
                    treatment: 1,
                    reference: 0,
                },
                Comparison {
                    treatment: 2,
                    reference: 0,
                },
                Comparison {
                    treatment: 9,
                    reference: 0,
                },
            ],
            RULES,
        );
        assert_eq!(effects[0].unwrap().verdict, Verdict::Same);
        assert_eq!(effects[1].unwrap().verdict, Verdict::Better);
        assert_eq!(effects[1].unwrap().blocks, 3);
        assert!(effects[2].is_none());
    }
}
