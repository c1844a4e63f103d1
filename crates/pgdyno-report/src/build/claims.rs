//! What a published study found, compared with what was found here.

use super::analysis::{Analysis, STEP};
use super::effects::of_fraction;
use super::levels::{has_levels, level_of};
use super::timelines;
use crate::model::{ClaimOutcome, FactorEffect, Study, StudyClaim};
use crate::text::percent;
use pgdyno_judge::{FINDING_BLOCKS_MIN, FINDINGS_TOGETHER, shared};
use pgdyno_record::{ClaimRecord, StudyRecord};
use pgdyno_stats::{Comparison, Effect, Observation, Rules, Verdict, decide, factorial_effects};
use std::collections::{BTreeMap, BTreeSet};

/// Numbers of a treatment and of the one that it is compared with.
type Pair = (usize, usize);

/// How a finding can be tested.
enum Test {
    /// The comparison that the experiment makes anyway, or what an event has changed; `None` where
    /// nothing can be said of chance yet.
    Own(Option<Effect>),
    /// Treatments that are compared with others for its sake.
    Pairs,
    /// One side fails always.
    Failing(Failing),
    /// Not testable here, with the reason.
    Not(String),
}

/// A treatment or what it is compared with, no trial of which has the figure, while all trials of
/// the other have it.
struct Failing {
    /// Whether it is the treatment.
    is_treatment: bool,
    /// Whether chance is excluded.
    is_decided: bool,
    /// Why its newest trial failed.
    why: String,
}

/// What is known here of a finding.
enum Here {
    /// The effect; `None` where there is none yet.
    Effect(Option<Effect>),
    Failing(Failing),
    /// Not tested, with the reason.
    Not(String),
}

/// All findings with their outcomes.
pub(super) fn claims(analysis: &Analysis<'_>) -> Vec<StudyClaim> {
    let Some(study) = &analysis.record().study else {
        return Vec::new();
    };
    let effects = of_fraction(analysis, confidence(analysis));
    let tests: Vec<(Vec<Pair>, Test)> = study
        .claims
        .iter()
        .map(|claim| test(analysis, &effects, claim))
        .collect();
    let tested = study.claims.iter().zip(tests).map(|(claim, (pairs, test))| {
        let here = match test {
            Test::Own(effect) => Here::Effect(effect),
            Test::Pairs => Here::Effect(compare(analysis, claim, &pairs)),
            Test::Failing(failing) => Here::Failing(failing),
            Test::Not(why) => Here::Not(why),
        };
        study_claim(analysis, study, claim, &pairs, &here)
    });
    tested.collect()
}

/// The study and the outcomes of its findings.
pub(super) fn study(analysis: &Analysis<'_>, claims: &[StudyClaim]) -> Option<Study> {
    let study = analysis.record().study.as_ref()?;
    Some(Study {
        source: study.source.clone(),
        title: study.title.clone(),
        summary: summary(&study.source, claims),
    })
}

fn summary(source: &str, claims: &[StudyClaim]) -> Option<String> {
    let count = |outcome: ClaimOutcome| claims.iter().filter(|claim| claim.outcome == outcome).count();
    let are = |n: usize| if n == 1 { "is" } else { "are" };
    let of = match claims.len() {
        0 => return None,
        1 => "Of 1 finding".to_owned(),
        n => format!("Of {n} findings"),
    };
    let mut parts = Vec::new();
    let (agrees, disagrees) = (count(ClaimOutcome::Agrees), count(ClaimOutcome::Disagrees));
    if agrees > 0 || disagrees > 0 {
        parts.push(format!(
            "this host agrees with {agrees}, disagrees with {disagrees}"
        ));
    }
    for (outcome, word) in [
        (ClaimOutcome::Undecided, "not decided"),
        (ClaimOutcome::NotTested, "not tested"),
    ] {
        let n = count(outcome);
        if n > 0 {
            parts.push(format!("{n} {} {word}", are(n)));
        }
    }
    Some(format!("{of} of [{source}], {}", parts.join(", ")))
}

fn test(analysis: &Analysis<'_>, effects: &[FactorEffect], claim: &ClaimRecord) -> (Vec<Pair>, Test) {
    let record = analysis.record();
    if let Some(event) = &claim.event {
        let of = |i: usize| has_levels(&record.treatments[i], &claim.of);
        let shift = timelines::shift(analysis, event, of, confidence(analysis));
        let test = shift.map_or_else(
            || Test::Not("no trial with this event finished".to_owned()),
            Test::Own,
        );
        return (Vec::new(), test);
    }
    let named: Vec<usize> = (0..record.treatments.len())
        .filter(|&i| has_levels(&record.treatments[i], &claim.of))
        .collect();
    if named.is_empty() {
        return (Vec::new(), Test::Not("no treatment has these levels".to_owned()));
    }
    if let Some(effect) = main_effect(analysis, effects, claim) {
        return (Vec::new(), Test::Own(effect));
    }
    let pairs: Vec<Pair> = named
        .iter()
        .filter_map(|&i| Some((i, partner(analysis, claim, i)?)))
        .filter(|(treatment, reference)| treatment != reference)
        .collect();
    if pairs.is_empty() {
        let why = "there is no treatment here to compare it with";
        return (pairs, Test::Not(why.to_owned()));
    }
    let is_tried = |i: usize| !analysis.values(i, &claim.metric).is_empty();
    let (tried, not): (Vec<Pair>, Vec<Pair>) = pairs.iter().partition(|(a, b)| is_tried(*a) && is_tried(*b));
    if tried.is_empty() {
        let failing = failing(analysis, claim, &not);
        let test = failing.map_or_else(|| Test::Not(why_not(analysis, &not)), Test::Failing);
        return (not, test);
    }
    let test = match tried[..] {
        [pair] => own(analysis, claim, pair).map_or(Test::Pairs, |effect| Test::Own(Some(effect))),
        _ => Test::Pairs,
    };
    (tried, test)
}

fn why_not(analysis: &Analysis<'_>, pairs: &[Pair]) -> String {
    let treatments = &analysis.record().treatments;
    let mut sides = pairs.iter().flat_map(|(a, b)| [*a, *b]);
    let reason = sides.find_map(|i| treatments[i].why_not.clone());
    reason.unwrap_or_else(|| "no trial that has the figure finished".to_owned())
}

/// The side of a pair that fails always, where the other never does.
fn failing(analysis: &Analysis<'_>, claim: &ClaimRecord, pairs: &[Pair]) -> Option<Failing> {
    let [(treatment, reference)] = *pairs else {
        return None;
    };
    let (is_treatment, trials) = match analysis.failed(&claim.metric, treatment, reference) {
        (trials @ 1.., 0) => (true, trials),
        (0, trials @ 1..) => (false, trials),
        _ => return None,
    };
    let side = if is_treatment { treatment } else { reference };
    let name = &analysis.record().treatments[side].name;
    let mut newest_first = analysis.stored.trials.iter().rev();
    let why = newest_first.find_map(|(_, trial)| (trial.treatment == *name).then(|| trial.reason.clone())?);
    Some(Failing {
        is_treatment,
        is_decided: by_chance(trials) <= 1.0 - confidence(analysis),
        why: why.unwrap_or_else(|| "they lack the figure".to_owned()),
    })
}

/// Probability that of so many trials of two sides alike all of one and none of the other fail,
/// where half of all do (Fisher's exact test).
fn by_chance(trials: usize) -> f64 {
    (1..=trials).map(|i| count(i) / count(trials + i)).product()
}

/// Fractions hold no two treatments against one another: a finding about a factor's second level is
/// tested by its effect.
fn main_effect(
    analysis: &Analysis<'_>,
    effects: &[FactorEffect],
    claim: &ClaimRecord,
) -> Option<Option<Effect>> {
    if claim.metric != analysis.record().metric || claim.of.len() != 1 {
        return None;
    }
    let (factor, level) = claim.of.first_key_value()?;
    let found = effects
        .iter()
        .find(|one| one.factor == *factor && one.level == *level && one.other.is_none())?;
    let same_reference = claim.against.is_empty()
        || claim.against == BTreeMap::from([(factor.clone(), found.against.clone())]);
    same_reference.then_some(found.effect)
}

/// What a treatment is compared with for a finding: the one that differs in the levels named. Where
/// none are, these factors have their first level; a cumulative step has the one before it.
fn partner(analysis: &Analysis<'_>, claim: &ClaimRecord, treatment: usize) -> Option<usize> {
    let record = analysis.record();
    let this = &record.treatments[treatment];
    if record.factors.is_empty() {
        return match claim.against.get(STEP) {
            Some(step) => record
                .treatments
                .iter()
                .position(|t| level_of(t, STEP) == Some(step)),
            // What is not tested is compared with nothing, but the reference is shown.
            None => analysis.against[treatment].or((treatment > 0).then_some(0)),
        };
    }
    let mut levels: BTreeMap<&str, &str> = BTreeMap::new();
    for (factor, level) in &this.levels {
        levels.insert(factor, level);
    }
    // Conditions are held only against what is named: a finding under one condition is about
    // another factor.
    let about: Vec<_> = record
        .factors
        .iter()
        .filter(|factor| claim.of.contains_key(&factor.name))
        .collect();
    let only_conditions = about.iter().all(|factor| factor.condition);
    if claim.against.is_empty() {
        for factor in about.iter().filter(|factor| only_conditions || !factor.condition) {
            levels.insert(&factor.name, factor.levels.first()?);
        }
    }
    for (factor, level) in &claim.against {
        levels.insert(factor, level);
    }
    record.treatments.iter().position(|other| {
        levels
            .iter()
            .all(|(factor, level)| level_of(other, factor) == Some(level))
    })
}

/// The experiment's own verdict on a pair, if it has one.
fn own(analysis: &Analysis<'_>, claim: &ClaimRecord, (treatment, reference): Pair) -> Option<Effect> {
    let judged = analysis.by(&claim.metric, confidence(analysis));
    if analysis.against[treatment] == Some(reference) {
        return judged.steps[treatment];
    }
    let has_total = analysis.record().design == "cumulative" && reference == 0;
    has_total.then(|| judged.totals[treatment]).flatten()
}

/// Whoever reads one finding may read those of all studies: their intervals hold together.
fn confidence(analysis: &Analysis<'_>) -> f64 {
    let study = analysis.record().study.as_ref();
    let own = study.map_or(0, |study| study.claims.len());
    shared(analysis.record().confidence, own.max(FINDINGS_TOGETHER))
}

/// The ratio of one side to the other, of several pairs the geometric mean over them.
fn compare(analysis: &Analysis<'_>, claim: &ClaimRecord, pairs: &[Pair]) -> Option<Effect> {
    let observations = analysis.observations(&claim.metric);
    let of_pairs = pairs
        .iter()
        .map(|(of, against)| analysis.failed(&claim.metric, *of, *against));
    let failed = of_pairs.fold((0, 0), |all, pair| (all.0 + pair.0, all.1 + pair.1));
    let rules = Rules {
        confidence: confidence(analysis),
        ..analysis.rules(&claim.metric)
    };
    if let [(treatment, reference)] = *pairs {
        let comparison = Comparison { treatment, reference };
        let effect = decide(&observations, &[comparison], rules).into_iter().next()?;
        return analysis.once(effect, failed, &[treatment, reference]);
    }
    let sides: BTreeSet<usize> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
    let effect = match sides.len() == 2 * pairs.len() {
        true => mean_of_pairs(&observations, pairs, rules),
        false => of_groups(&observations, pairs, rules),
    };
    let sides: Vec<usize> = sides.into_iter().collect();
    analysis.once(effect, failed, &sides)
}

/// Pairs that have no treatment in common are a factorial of side and pair: the effect of the side
/// is wanted.
fn mean_of_pairs(observations: &[Observation], pairs: &[Pair], rules: Rules) -> Option<Effect> {
    let sides = pairs.iter().flat_map(|(of, against)| [*against, *of]);
    let places: Vec<usize> = sides.collect();
    let levels: Vec<Vec<usize>> = (0..places.len())
        .map(|place| vec![place % 2, place / 2])
        .collect();
    let involved = observations.iter().filter_map(|o| {
        let treatment = places.iter().position(|place| *place == o.treatment)?;
        Some(Observation { treatment, ..*o })
    });
    let involved: Vec<Observation> = involved.collect();
    // Its interval would be widened for all effects of that factorial, of which only one is
    // reported.
    let others = count(2 * pairs.len() - 1);
    let rules = Rules {
        confidence: 1.0 - (1.0 - rules.confidence) * others,
        ..rules
    };
    let effects = factorial_effects(&levels, &involved, rules)?;
    let side = effects
        .iter()
        .find(|one| one.first.factor == 0 && one.second.is_none())?;
    side.effect
}

/// Else each side is one group; that its treatments differ among themselves makes the interval
/// wider.
fn of_groups(observations: &[Observation], pairs: &[Pair], rules: Rules) -> Option<Effect> {
    let grouped = observations.iter().filter_map(|o| {
        let of = pairs.iter().any(|(of, _)| *of == o.treatment);
        let against = pairs.iter().any(|(_, against)| *against == o.treatment);
        (of != against).then(|| Observation {
            treatment: usize::from(of),
            ..*o
        })
    });
    let grouped: Vec<Observation> = grouped.collect();
    let blocks: BTreeSet<usize> = grouped.iter().map(|o| o.block).collect();
    let comparison = Comparison {
        treatment: 1,
        reference: 0,
    };
    let effect = decide(&grouped, &[comparison], rules).into_iter().next()?;
    effect.filter(|_| blocks.len() > 1)
}

#[expect(clippy::cast_precision_loss, reason = "a number of findings or pairs")]
fn count(n: usize) -> f64 {
    n as f64
}

fn study_claim(
    analysis: &Analysis<'_>,
    study: &StudyRecord,
    claim: &ClaimRecord,
    pairs: &[Pair],
    here: &Here,
) -> StudyClaim {
    let record = analysis.record();
    let outcome = match here {
        Here::Not(_) => ClaimOutcome::NotTested,
        // Two blocks say too little of the spread to contradict anybody.
        Here::Effect(effect) => {
            let known = effect.filter(|effect| effect.blocks >= FINDING_BLOCKS_MIN);
            known.map_or(ClaimOutcome::Undecided, |effect| {
                outcome(analysis, claim, pairs, effect)
            })
        }
        Here::Failing(failing) => match (claim.found.as_str(), failing.is_treatment) {
            _ if !failing.is_decided => ClaimOutcome::Undecided,
            ("worse", true) | ("better" | "not-worse", false) => ClaimOutcome::Agrees,
            _ => ClaimOutcome::Disagrees,
        },
    };
    let word = match outcome {
        ClaimOutcome::Agrees => "agrees",
        ClaimOutcome::Disagrees => "disagrees",
        ClaimOutcome::Undecided => "not decided",
        ClaimOutcome::NotTested => "not tested",
    };
    let found = match (claim.ratio, claim.found.as_str()) {
        (Some(ratio), _) => format!("{} %", percent(ratio)),
        (None, "same") => "no difference that matters".to_owned(),
        (None, "not-worse") => "no loss that matters".to_owned(),
        (None, word) => format!("it {word}"),
    };
    let known = match here {
        Here::Not(why) => format!("not tested here: {why}"),
        Here::Effect(None) => "no difference here is distinguishable from chance yet: not decided".to_owned(),
        Here::Failing(failing) => format!(
            "here no trial of {} has the figure ({}): {word}",
            match failing.is_treatment {
                true => "it",
                false => "what it is compared with",
            },
            failing.why
        ),
        Here::Effect(Some(effect)) => format!(
            "here {} %{} (between {} and {}): {word}",
            percent(effect.ratio),
            match pairs.len() {
                n if n > 1 => format!(" over {n} pairs of treatments"),
                _ => String::new(),
            },
            percent(effect.ratio_low),
            percent(effect.ratio_high),
        ),
    };
    let names = |side: fn(&Pair) -> usize| {
        let names = pairs
            .iter()
            .map(|pair| record.treatments[side(pair)].name.clone());
        names.collect()
    };
    StudyClaim {
        text: claim.text.clone(),
        treatments: names(|pair| pair.0),
        against: names(|pair| pair.1),
        event: claim.event.clone(),
        metric: claim.metric.clone(),
        found: claim.found.clone(),
        study_ratio: claim.ratio,
        effect: match here {
            Here::Effect(effect) => *effect,
            Here::Failing(_) | Here::Not(_) => None,
        },
        outcome,
        sentence: format!("[{}] found {found}; {known}", study.source),
    }
}

/// A finding that is contradicted by what is decided here is disagreed with; what is not decided
/// neither way. That a difference does not matter is contradicted by one that does, not by one that
/// is merely known to be there.
fn outcome(analysis: &Analysis<'_>, claim: &ClaimRecord, pairs: &[Pair], effect: Effect) -> ClaimOutcome {
    use ClaimOutcome::{Agrees, Disagrees, Undecided};
    let rules = analysis.rules(&claim.metric);
    let matters = |outcome| {
        if effect.is_beyond(rules) {
            outcome
        } else {
            Undecided
        }
    };
    match (claim.found.as_str(), effect.verdict) {
        ("better", Verdict::Better)
        | ("worse", Verdict::Worse)
        | ("same", Verdict::Same)
        | ("not-worse", Verdict::Better | Verdict::Same) => Agrees,
        ("same", Verdict::Better | Verdict::Worse) | ("not-worse", Verdict::Worse) => matters(Disagrees),
        (_, Verdict::Better | Verdict::Worse | Verdict::Same) => Disagrees,
        ("not-worse", _) if loses_nothing(analysis, claim, pairs, effect) => Agrees,
        // The bound of a futile comparison does not hold together with those of other findings.
        (_, Verdict::NoGain | Verdict::Undecided) => Undecided,
    }
}

/// Whether a loss that matters is excluded without knowing whether something is gained: where the
/// interval is that of these pairs, holds, and none of them fails more often than what it is
/// compared with.
fn loses_nothing(analysis: &Analysis<'_>, claim: &ClaimRecord, pairs: &[Pair], effect: Effect) -> bool {
    let fails_more = |&(treatment, reference): &Pair| {
        let (of, against) = analysis.failed(&claim.metric, treatment, reference);
        of > against
    };
    let sides: Vec<usize> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
    !pairs.is_empty()
        && !pairs.iter().any(fails_more)
        && analysis.is_whole(&sides)
        && effect.loses_less_than(analysis.rules(&claim.metric))
}
