//! Which of the advice that rules give is given, in which order, and why the rest is not.

use super::rule::{Confidence, Rule, RuleKind, Severity};
use super::service::Limits;
use super::{Advice, Advised, Evidence, Question, Shown, SkippedAdvice};
use pgdyno_knobs::{Catalogue, Layer, Setting, gucvalue, split};
use pgdyno_server::one_spelling;

/// Gain that is assumed of advice without a number, in percent: safety goes before single percents.
const GAIN_UNKNOWN: f64 = 8.0;
/// Up to here an expected gain, in percent, is small.
const GAIN_SMALL: f64 = 2.0;

pub(super) fn weigh(
    advised: &mut Advised,
    found: Vec<(&Rule, Advice)>,
    question: &Question<'_>,
    limits: &Limits<'_>,
    catalogue: &Catalogue,
) {
    let mut kept: Vec<(&Rule, Advice)> = Vec::new();
    for (rule, mut advice) in found {
        let reason = not_asked(rule, question)
            .or_else(|| forbidden(&advice, limits, catalogue))
            .or_else(|| measured(&mut advice, question.evidence));
        match reason {
            Some(because) => advised.skipped.push(skipped(&advice, because)),
            None => {
                advice.how = advice
                    .setting
                    .as_ref()
                    .and_then(|_| limits.how().map(str::to_owned));
                kept.push((rule, advice));
            }
        }
    }
    let mut kept = beaten(kept, &mut advised.skipped);
    kept.sort_by(|a, b| {
        a.severity
            .cmp(&b.severity)
            .then_with(|| gain(b).total_cmp(&gain(a)))
    });
    for mut advice in kept {
        advice.is_small = is_small(&advice);
        match contradicted(&advice, &advised.advice, catalogue) {
            Some(because) => advised.skipped.push(skipped(&advice, because)),
            None => advised.advice.push(advice),
        }
    }
}

fn skipped(advice: &Advice, because: String) -> SkippedAdvice {
    let recommended = match &advice.setting {
        Some(setting) => format!("{} = {}", setting.knob, setting.value),
        None => advice.recommended.clone(),
    };
    SkippedAdvice {
        rule: advice.rule.clone(),
        recommended,
        because,
    }
}

fn not_asked(rule: &Rule, question: &Question<'_>) -> Option<String> {
    let word = rule.only_if_asked.as_ref()?;
    (!question.allowed.contains(word)).then(|| format!("advised only with --allow {word}: {}", rule.risk))
}

fn forbidden(advice: &Advice, limits: &Limits<'_>, catalogue: &Catalogue) -> Option<String> {
    let (id, _) = split(&advice.setting.as_ref()?.knob);
    let layer: Option<Layer> = catalogue.find(id).map(|knob| knob.layer);
    limits.forbids(id, layer)
}

/// What trials here have shown of this very setting: it takes the place of what others found, or
/// speaks against it.
fn measured(advice: &mut Advice, evidence: &[Evidence]) -> Option<String> {
    let setting = advice.setting.as_ref()?;
    let same = |other: &&Evidence| {
        let spelled = |setting: &Setting| one_spelling(&setting.knob, &setting.value);
        other.setting.knob == setting.knob
            && gucvalue::same_texts(&spelled(&other.setting), &spelled(setting))
    };
    // Of several experiments the newest counts.
    let shown = evidence
        .iter()
        .filter(same)
        .max_by_key(|shown| shown.experiment)?;
    // What endangers data is not outweighed by speed.
    if advice.severity == Severity::Severe || advice.kind == RuleKind::Safety {
        advice.measured = Some(shown.clone());
        return None;
    }
    match shown.verdict {
        Shown::Better => {
            advice.measured = Some(shown.clone());
            advice.confidence = Confidence::Measured;
            None
        }
        Shown::Undecided => {
            advice.measured = Some(shown.clone());
            None
        }
        Shown::Worse => Some(format!("measured here as worse: {}", shown.summary())),
        Shown::NoGain => Some(format!("measured here as bringing no gain: {}", shown.summary())),
        Shown::Same => Some(format!(
            "measured here as making no difference: {}",
            shown.summary()
        )),
    }
}

/// Skips advice where another rule that applies has better advice.
fn beaten(kept: Vec<(&Rule, Advice)>, aside: &mut Vec<SkippedAdvice>) -> Vec<Advice> {
    let mut left = Vec::new();
    for (rule, advice) in &kept {
        let better = kept.iter().find_map(|(other, _)| {
            let beats = other.beats.iter().find(|beats| beats.rule == rule.id)?;
            Some(format!("{} has it: {}", other.id, beats.because))
        });
        match better {
            Some(because) => aside.push(skipped(advice, because)),
            None => left.push(advice.clone()),
        }
    }
    left
}

/// The middle of what is expected, less of it where it is not sure.
fn gain(advice: &Advice) -> f64 {
    if let Some(shown) = advice
        .measured
        .as_ref()
        .filter(|shown| shown.verdict == Shown::Better)
    {
        return shown.percent.max(GAIN_UNKNOWN);
    }
    let weight = weight(advice.confidence);
    let middle = match (advice.effect.low, advice.effect.high) {
        (Some(low), Some(high)) => f64::midpoint(low, high),
        _ => GAIN_UNKNOWN,
    };
    // What is said of the speed of some statements is less than of all throughput.
    let share = if advice.effect.of.starts_with("speed of") {
        0.3
    } else {
        1.0
    };
    middle * weight * share
}

/// How much of what a source expects is expected here.
fn weight(confidence: Confidence) -> f64 {
    match confidence {
        Confidence::Low => 0.3,
        Confidence::Medium => 0.6,
        Confidence::High | Confidence::Measured => 1.0,
    }
}

/// Whether at most a small gain is expected, by the upper end of the range. Safety is never small,
/// nor what was measured here.
fn is_small(advice: &Advice) -> bool {
    let is_measured = advice.confidence == Confidence::Measured;
    let high = advice.effect.high.map(|high| high * weight(advice.confidence));
    advice.kind == RuleKind::Tuning
        && advice.severity != Severity::Severe
        && !is_measured
        && high.is_some_and(|high| high <= GAIN_SMALL)
}

/// Why advice cannot be beside what goes before it: the same knob, its counterpart, or one that it
/// excludes.
fn contradicted(advice: &Advice, before: &[Advice], catalogue: &Catalogue) -> Option<String> {
    let setting = advice.setting.as_ref()?;
    let (id, instance) = split(&setting.knob);
    let ours = catalogue.find(id);
    before.iter().find_map(|other| {
        let theirs = other.setting.as_ref()?;
        if theirs.knob == setting.knob {
            return Some(format!(
                "{} comes first, with {} = {}",
                other.rule, theirs.knob, theirs.value
            ));
        }
        let (other_id, other_instance) = split(&theirs.knob);
        let excludes = |knob: &pgdyno_knobs::Knob, id: &str| {
            knob.excludes.iter().any(|other| other == id) || knob.counterpart.as_deref() == Some(id)
        };
        let clash = ours.is_some_and(|ours| excludes(ours, other_id))
            || catalogue.find(other_id).is_some_and(|other| excludes(other, id));
        (clash && instance == other_instance).then(|| {
            format!(
                "{} comes first: {} and {} make no sense beside one another",
                other.rule, theirs.knob, setting.knob
            )
        })
    })
}
