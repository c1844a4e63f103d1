//! Treatments by the levels of their factors.

use super::analysis::STEP;
use crate::model::LevelOf;
use pgdyno_record::{ExperimentRecord, FactorRecord, TreatmentRecord};

/// Factor and level of a treatment; one from before there were factors is a step by its own name.
pub(super) fn levels_of(treatment: &TreatmentRecord) -> Vec<LevelOf> {
    if treatment.levels.is_empty() {
        return vec![LevelOf {
            factor: STEP.to_owned(),
            level: treatment.name.clone(),
        }];
    }
    let levels = treatment.levels.iter();
    levels
        .map(|(factor, level)| LevelOf {
            factor: factor.clone(),
            level: level.clone(),
        })
        .collect()
}

/// The level of a factor that a treatment has.
pub(super) fn level_of<'a>(treatment: &'a TreatmentRecord, factor: &str) -> Option<&'a str> {
    if treatment.levels.is_empty() && factor == STEP {
        return Some(&treatment.name);
    }
    let found = treatment.levels.iter().find(|(name, _)| name == factor);
    found.map(|(_, level)| level.as_str())
}

/// Whether a treatment has all of these levels, each with its factor.
pub(super) fn has_levels<F: AsRef<str>, L: AsRef<str>>(
    treatment: &TreatmentRecord,
    levels: impl IntoIterator<Item = (F, L)>,
) -> bool {
    let mut levels = levels.into_iter();
    levels.all(|(factor, level)| level_of(treatment, factor.as_ref()) == Some(level.as_ref()))
}

/// Numbers of the levels of these factors that a treatment has.
pub(super) fn numbers(treatment: &TreatmentRecord, factors: &[&FactorRecord]) -> Option<Vec<usize>> {
    let number = |factor: &&FactorRecord| {
        let level = level_of(treatment, &factor.name)?;
        factor.levels.iter().position(|name| name == level)
    };
    factors.iter().map(number).collect()
}

/// Treatments that have the same levels of these factors, in the order of the plan, with those
/// levels as text.
pub(super) fn groups(
    record: &ExperimentRecord,
    factors: &[&FactorRecord],
) -> Vec<(Option<String>, Vec<usize>)> {
    let mut groups: Vec<(Vec<Option<&str>>, Vec<usize>)> = Vec::new();
    for (i, treatment) in record.treatments.iter().enumerate() {
        let key: Vec<Option<&str>> = factors
            .iter()
            .map(|factor| level_of(treatment, &factor.name))
            .collect();
        match groups.iter_mut().find(|(other, _)| *other == key) {
            Some((_, members)) => members.push(i),
            None => groups.push((key, vec![i])),
        }
    }
    let text = |key: Vec<Option<&str>>| {
        let named = factors.iter().zip(key);
        let parts: Vec<String> = named
            .filter_map(|(factor, level)| Some(format!("{} {}", factor.title, level?)))
            .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    };
    groups
        .into_iter()
        .map(|(key, members)| (text(key), members))
        .collect()
}
