//! From steps or factors to treatments, and what each is compared with.

use super::{AS_IT_IS, PlanError, ProfileSettings, REFERENCE, TREATMENTS_MAX, Treatment};
use crate::file::{Design, ExperimentFile, StepPart};
use crate::plan::STEP;
use pgdyno_knobs::Setting;
use pgdyno_stats::{DesignError, fractional_factorial, full_factorial, one_at_a_time, plackett_burman};

/// All treatments of a file, the reference first. Cumulative ones get their settings later, when it
/// is known what is excluded.
pub(super) fn treatments(
    file: &ExperimentFile,
    base: &[Setting],
    profiles: &ProfileSettings,
) -> Result<Vec<Treatment>, PlanError> {
    if file.factor.is_empty() {
        return Ok(of_steps(file, base, profiles));
    }
    let levels: Vec<Vec<StepPart>> = file
        .factor
        .iter()
        .map(|factor| factor.levels().map_err(PlanError::from))
        .collect::<Result<_, _>>()?;
    let rows = rows(file.design, &levels)?;
    let conditions: Vec<bool> = file
        .factor
        .iter()
        .map(|factor| factor.condition || file.design == Design::Ladder)
        .collect();
    let kept: Vec<Vec<usize>> = rows
        .into_iter()
        .filter(|row| !is_excluded(file, &levels, row))
        .collect();
    if kept.is_empty() {
        return Err(PlanError::NothingLeft);
    }
    let mut treatments: Vec<Treatment> = kept
        .iter()
        .map(|row| of_row(file, base, profiles, &levels, row))
        .collect();
    if file.design == Design::Search {
        for (treatment, row) in treatments.iter_mut().zip(&kept) {
            (treatment.name, treatment.title) = named_by_difference(file, &levels, row);
        }
    }
    if matches!(
        file.design,
        Design::OneAtATime | Design::FullFactorial | Design::Switchback
    ) {
        for (i, row) in kept.iter().enumerate() {
            let reference: Vec<usize> = row
                .iter()
                .zip(&conditions)
                .map(|(level, condition)| if *condition { *level } else { 0 })
                .collect();
            treatments[i].against = kept
                .iter()
                .position(|other| *other == reference)
                .filter(|&j| j != i);
        }
    }
    Ok(treatments)
}

/// Name and title of a row by what differs from the reference.
fn named_by_difference(file: &ExperimentFile, levels: &[Vec<StepPart>], row: &[usize]) -> (String, String) {
    let each = file.factor.iter().zip(levels).zip(row);
    let differ: Vec<(&str, &str)> = each
        .filter(|(_, level)| **level != 0)
        .map(|((factor, levels), &level)| (factor.name.as_str(), levels[level].name.as_str()))
        .collect();
    let joined = |sign: &str| {
        let each = differ
            .iter()
            .map(|(factor, level)| format!("{factor}{sign}{level}"));
        each.collect::<Vec<_>>().join(", ")
    };
    match differ.is_empty() {
        true => (REFERENCE.to_owned(), AS_IT_IS.to_owned()),
        false => (joined("="), joined(" ")),
    }
}

fn of_steps(file: &ExperimentFile, base: &[Setting], profiles: &ProfileSettings) -> Vec<Treatment> {
    let reference = Treatment::reference(file, base);
    let mut treatments = vec![reference.clone()];
    if file.design == Design::AA {
        treatments.push(Treatment {
            name: "again".into(),
            title: "The same again".into(),
            levels: vec![(STEP.into(), "again".into())],
            against: Some(0),
            ..reference.clone()
        });
    }
    for step in &file.step {
        let treatment = reference.clone().with(step, profiles);
        treatments.push(Treatment {
            name: step.name.clone(),
            title: step.title.clone().unwrap_or_else(|| step.name.clone()),
            reason: step.reason.clone(),
            levels: vec![(STEP.into(), step.name.clone())],
            against: Some(0),
            ..treatment
        });
    }
    treatments
}

/// Numbers of levels, a row for each treatment.
fn rows(design: Design, levels: &[Vec<StepPart>]) -> Result<Vec<Vec<usize>>, PlanError> {
    let counts: Vec<usize> = levels.iter().map(Vec::len).collect();
    let rows = match design {
        // What a search may try is examined level by level.
        Design::OneAtATime | Design::Switchback | Design::Search => one_at_a_time(&counts),
        // Mirrored, so that main effects are free of interactions of two.
        Design::Screening => plackett_burman(counts.len(), true),
        Design::Fractional => return Ok(smallest_fraction(counts.len())?),
        _ => full_factorial(&counts, TREATMENTS_MAX),
    };
    Ok(rows?.treatments)
}

/// The smallest fraction of resolution IV.
fn smallest_fraction(factors: usize) -> Result<Vec<Vec<usize>>, DesignError> {
    let mut treatments = 4;
    loop {
        match fractional_factorial(factors, treatments) {
            Ok(fraction) => return Ok(fraction.design.treatments),
            Err(DesignError::NoSuchFraction { needed, .. }) if needed > treatments => treatments = needed,
            Err(error) => return Err(error),
        }
    }
}

pub(super) fn is_excluded(file: &ExperimentFile, levels: &[Vec<StepPart>], row: &[usize]) -> bool {
    file.exclude.iter().any(|excluded| {
        let mut each = file.factor.iter().zip(levels).zip(row);
        each.all(|((factor, levels), &level)| {
            let name = excluded.get(&factor.name);
            name.is_none_or(|name| levels[level].name == *name)
        })
    })
}

pub(super) fn of_row(
    file: &ExperimentFile,
    base: &[Setting],
    profiles: &ProfileSettings,
    levels: &[Vec<StepPart>],
    row: &[usize],
) -> Treatment {
    let mut treatment = Treatment::reference(file, base);
    treatment.levels.clear();
    let (mut names, mut titles, mut reasons) = (Vec::new(), Vec::new(), Vec::new());
    for ((factor, levels), &level) in file.factor.iter().zip(levels).zip(row) {
        let part = &levels[level];
        treatment = treatment.with(part, profiles);
        treatment.levels.push((factor.name.clone(), part.name.clone()));
        names.push(format!("{}={}", factor.name, part.name));
        titles.push(part.title.clone().unwrap_or_else(|| {
            let of = factor.title.as_deref().unwrap_or(&factor.name);
            format!("{of} {}", part.name)
        }));
        reasons.extend(part.reason.clone());
    }
    treatment.name = names.join(", ");
    treatment.title = titles.join(", ");
    treatment.reason = (!reasons.is_empty()).then(|| reasons.join(" "));
    treatment
}
