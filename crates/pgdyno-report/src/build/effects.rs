//! The effect of each level of a factor over all levels of the others.

use super::analysis::Analysis;
use super::levels::{level_of, numbers};
use crate::model::{FactorEffect, LevelOf};
use pgdyno_judge::Unmeasured;
use pgdyno_record::{FactorRecord, TreatmentRecord};
use pgdyno_stats::{
    Effect, FactorialEffect, Level, Observation, Rules, factorial_effects, screening_effects,
};
use std::collections::BTreeMap;

/// Main effects, then interactions of two factors; of fractions main effects alone. Empty for other
/// designs.
pub(super) fn effects(analysis: &Analysis<'_>) -> Vec<FactorEffect> {
    let record = analysis.record();
    let factors: Vec<&FactorRecord> = record.factors.iter().filter(|factor| !factor.condition).collect();
    let own = analysis.rules(&record.metric).confidence;
    let mut effects = match record.design.as_str() {
        _ if factors.is_empty() => Vec::new(),
        // Of a single factor the comparisons say all there is.
        "full-factorial" if factors.len() > 1 => {
            factorial(analysis, &factors).unwrap_or_else(|| main_effects(analysis, &factors, own))
        }
        _ => return of_fraction(analysis, own),
    };
    once(analysis, &mut effects);
    effects
}

/// Main effects of a fraction, with intervals that hold together at a confidence; empty for other
/// designs.
pub(super) fn of_fraction(analysis: &Analysis<'_>, confidence: f64) -> Vec<FactorEffect> {
    let record = analysis.record();
    if !matches!(record.design.as_str(), "fractional" | "screening") {
        return Vec::new();
    }
    let factors: Vec<&FactorRecord> = record.factors.iter().filter(|factor| !factor.condition).collect();
    let mut effects = main_effects(analysis, &factors, confidence);
    once(analysis, &mut effects);
    effects
}

fn once(analysis: &Analysis<'_>, effects: &mut [FactorEffect]) {
    for one in effects {
        // No combination of factors is spared.
        one.effect = analysis.once(one.effect, failed(analysis, one), &[]);
    }
}

/// Trials that count as failed for the side of an effect that counts for it and for the other: with
/// the level and with the first one, for an interaction with both or neither and with one of two.
fn failed(analysis: &Analysis<'_>, one: &FactorEffect) -> (usize, usize) {
    let record = analysis.record();
    let sign = |treatment: &TreatmentRecord, factor: &str, level: &str| {
        let first = record.factors.iter().find(|known| known.name == factor)?;
        match level_of(treatment, factor)? {
            own if own == level => Some(true),
            own if Some(own) == first.levels.first().map(String::as_str) => Some(false),
            _ => None,
        }
    };
    let is_for = |treatment: &TreatmentRecord| {
        let main = sign(treatment, &one.factor, &one.level)?;
        match &one.other {
            Some(other) => Some(main == sign(treatment, &other.factor, &other.level)?),
            None => Some(main),
        }
    };
    let larger_is_better = record.larger_is_better(&record.metric);
    let (mut with, mut without) = (Unmeasured::default(), Unmeasured::default());
    for (_, trial) in &analysis.stored.trials {
        let treatment = record.treatments.iter().find(|t| t.name == trial.treatment);
        let side = match treatment.and_then(is_for) {
            Some(true) => &mut with,
            Some(false) => &mut without,
            None => continue,
        };
        side.add(trial, &record.metric, larger_is_better);
    }
    with.failed(without)
}

/// The trials by combination of these factors' levels, each block parted by the conditions.
fn by_combination(
    analysis: &Analysis<'_>,
    factors: &[&FactorRecord],
) -> Option<(Vec<Vec<usize>>, Vec<Observation>)> {
    let record = analysis.record();
    let of_conditions: Vec<&FactorRecord> = record.factors.iter().filter(|factor| factor.condition).collect();
    let mut combinations: Vec<Vec<usize>> = Vec::new();
    let mut conditions: BTreeMap<(usize, Vec<usize>), usize> = BTreeMap::new();
    let mut places = Vec::with_capacity(record.treatments.len());
    for treatment in &record.treatments {
        let levels = numbers(treatment, factors)?;
        let known = combinations.iter().position(|other| *other == levels);
        let place = known.unwrap_or_else(|| {
            combinations.push(levels);
            combinations.len() - 1
        });
        places.push((place, numbers(treatment, &of_conditions)?));
    }
    let mut observations = analysis.observations(&record.metric);
    for observation in &mut observations {
        let (place, condition) = &places[observation.treatment];
        let next = conditions.len();
        let block = (observation.block, condition.clone());
        observation.block = *conditions.entry(block).or_insert(next);
        observation.treatment = *place;
    }
    Some((combinations, observations))
}

/// Conditions are factors of the model, so that what a factor does under one condition and not
/// under another is no noise; only effects of the others are reported. Where a treatment is missing
/// for that, conditions part blocks.
fn factorial(analysis: &Analysis<'_>, factors: &[&FactorRecord]) -> Option<Vec<FactorEffect>> {
    let record = analysis.record();
    let rules = analysis.rules(&record.metric);
    let all: Vec<&FactorRecord> = record.factors.iter().collect();
    let levels: Option<Vec<Vec<usize>>> = record.treatments.iter().map(|t| numbers(t, &all)).collect();
    let observations = analysis.observations(&record.metric);
    let whole = factorial_effects(&levels?, &observations, rules)
        .map(|found| reported(&all, found))
        .filter(|effects| effects.iter().any(|one| one.effect.is_some()));
    if whole.is_some() {
        return whole;
    }
    let (combinations, observations) = by_combination(analysis, factors)?;
    let found = factorial_effects(&combinations, &observations, rules)?;
    Some(reported(factors, found))
}

fn reported(factors: &[&FactorRecord], found: Vec<FactorialEffect>) -> Vec<FactorEffect> {
    let is_reported = |level: Level| !factors[level.factor].condition;
    found
        .into_iter()
        .filter(|one| is_reported(one.first) && one.second.is_none_or(is_reported))
        .map(|one| named(factors, one.first, one.second, one.effect))
        .collect()
}

/// Main effects of factors with two levels.
fn main_effects(analysis: &Analysis<'_>, factors: &[&FactorRecord], confidence: f64) -> Vec<FactorEffect> {
    let Some((combinations, observations)) = by_combination(analysis, factors) else {
        return Vec::new();
    };
    if factors.iter().any(|factor| factor.levels.len() != 2) {
        return Vec::new();
    }
    let columns: Vec<Vec<i8>> = (0..factors.len())
        .map(|factor| {
            let signs = combinations
                .iter()
                .map(|levels| if levels[factor] == 0 { -1 } else { 1 });
            signs.collect()
        })
        .collect();
    let rules = Rules {
        confidence,
        ..analysis.rules(&analysis.record().metric)
    };
    let found = screening_effects(&columns, &observations, rules);
    let effects = found.into_iter().enumerate().map(|(factor, effect)| {
        let level = Level { factor, level: 1 };
        named(factors, level, None, effect)
    });
    effects.collect()
}

fn named(
    factors: &[&FactorRecord],
    first: Level,
    second: Option<Level>,
    effect: Option<Effect>,
) -> FactorEffect {
    let text = |level: Level| {
        let factor = factors[level.factor];
        format!("{} {}", factor.title, factor.levels[level.level])
    };
    let factor = factors[first.factor];
    let title = match second {
        Some(second) => format!("{} with {}", text(first), text(second)),
        None => text(first),
    };
    FactorEffect {
        title,
        factor: factor.name.clone(),
        level: factor.levels[first.level].clone(),
        against: factor.levels.first().cloned().unwrap_or_default(),
        other: second.map(|second| LevelOf {
            factor: factors[second.factor].name.clone(),
            level: factors[second.factor].levels[second.level].clone(),
        }),
        effect,
    }
}
