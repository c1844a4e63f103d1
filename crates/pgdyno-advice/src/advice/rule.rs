//! Rules as they are in catalog/advice/*.toml.

use super::step::Step;
use crate::expression::{Expression, ExpressionError, Template};
use crate::known::Known;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// How grave a piece of advice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Data, or the server, is in danger, or most of the throughput is lost.
    Severe,
    /// It gains throughput, or spares trouble.
    Advice,
    /// It is small, or depends on what is not known: to be tried.
    Hint,
}

impl Severity {
    /// Every severity, the gravest first.
    pub const ALL: [Severity; 3] = [Severity::Severe, Severity::Advice, Severity::Hint];

    /// Name in files and reports: "severe".
    pub fn name(self) -> &'static str {
        match self {
            Severity::Severe => "severe",
            Severity::Advice => "advice",
            Severity::Hint => "hint",
        }
    }
}

/// How sure a piece of advice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Studies disagree, or it depends on much that is not known.
    Low,
    /// Usual, and true of most.
    Medium,
    /// Studies and documentation agree.
    High,
    /// An experiment on this target has shown it. No rule says so of itself.
    #[serde(skip_deserializing)]
    Measured,
}

impl Confidence {
    /// Name in files and reports: "measured here".
    pub fn name(self) -> &'static str {
        match self {
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
            Confidence::Measured => "measured here",
        }
    }
}

/// What the literature expects, in percent; no numbers where it is not about speed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// Lower end of the expected change, percent.
    pub low: Option<f64>,
    /// Upper end of the expected change, percent.
    pub high: Option<f64>,
    /// Quantity that changes: throughput, p99, commit latency, memory, safety ...
    pub of: String,
    /// Description of a condition or limit of the effect.
    pub note: Option<String>,
}

impl Effect {
    /// "0 ... +12 % throughput: ..."
    pub fn summary(&self) -> String {
        let signed = |n: f64| {
            if n == 0.0 {
                "0".to_owned()
            } else {
                format!("{n:+}")
            }
        };
        let numbers = match (self.low, self.high) {
            (Some(0.0), Some(0.0)) => "no change of ".to_owned(),
            (Some(low), Some(high)) => format!("{} ... {} % ", signed(low), signed(high)),
            _ => String::new(),
        };
        let note = self
            .note
            .as_ref()
            .map(|note| format!(": {note}"))
            .unwrap_or_default();
        format!("{numbers}{}{note}", self.of)
    }
}

/// The purpose of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleKind {
    /// It ends a danger to data or to the server. Never tried for a while, never a step of an
    /// experiment, and no measured slow-down speaks against it: the whole procedure is named.
    Safety,
    /// It makes something faster or easier to see.
    Tuning,
}

impl RuleKind {
    /// The kind of a rule that names none: what is expected of it decides, so that a rule for
    /// safety cannot be taken for another.
    fn of(effect: &Effect) -> RuleKind {
        match effect.of.as_str() {
            "safety" => RuleKind::Safety,
            _ => RuleKind::Tuning,
        }
    }
}

/// Another rule, which is silenced where this one applies.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beats {
    /// Id of the rule that is silenced.
    pub rule: String,
    /// Reason in a sentence.
    pub because: String,
}

/// A value that a rule recommends.
#[derive(Debug, Clone)]
pub(crate) enum Recommended {
    Text(String),
    Worked(Expression),
    /// Bytes, written as the server takes them.
    Bytes(Expression),
}

impl Recommended {
    pub(super) fn evaluate(&self, known: &Known) -> Result<String, ExpressionError> {
        match self {
            Recommended::Text(text) => Ok(text.clone()),
            Recommended::Worked(expression) => Ok(super::shown(&expression.evaluate(known)?)),
            Recommended::Bytes(expression) => {
                let value = expression.evaluate(known)?;
                Ok(value.as_f64().map_or_else(|| super::shown(&value), exact_size))
            }
        }
    }

    /// For the table of rules.
    pub(crate) fn text(&self) -> &str {
        match self {
            Recommended::Text(text) => text,
            Recommended::Worked(expression) | Recommended::Bytes(expression) => expression.text(),
        }
    }
}

/// 16GB, 7936MB, 200kB: whole, in the largest unit that loses nothing beyond kilobytes.
fn exact_size(bytes: f64) -> String {
    const UNITS: [(&str, f64); 3] = [("GB", 1_073_741_824.0), ("MB", 1_048_576.0), ("kB", 1024.0)];
    let whole = (bytes / 1024.0).floor() * 1024.0;
    UNITS
        .iter()
        .find(|(_, factor)| whole >= *factor && whole % factor == 0.0)
        .map_or_else(
            || "0".to_owned(),
            |(unit, factor)| format!("{:.0}{unit}", whole / factor),
        )
}

/// A rule of the catalogue: when it applies, and what it advises then.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Name in commands, files and reports.
    pub id: String,
    /// The knob, with its instance; `None` for findings that are no knobs.
    pub(crate) knob: Option<Template>,
    pub(crate) now: Option<Expression>,
    /// What holds instead, where the present value is one that only means "as something else".
    pub(crate) now_means: Option<Template>,
    /// Whether it is about a danger or about speed.
    pub kind: RuleKind,
    /// The steps, in their order: a text, or a whole statement that ends with a semicolon.
    pub(super) procedure: Vec<Step>,
    /// A fact that is a list: the rule is evaluated for each member, as `item`.
    pub(crate) each: Option<String>,
    pub(crate) when: Expression,
    pub(crate) recommended: Recommended,
    pub(crate) why: Template,
    /// Tags of the studies and documentation that it is based on.
    pub source: String,
    /// Change that the literature expects.
    pub effect: Effect,
    /// Description of the cost or danger of following it.
    pub risk: String,
    /// How well studies and documentation support it.
    pub confidence: Confidence,
    /// How grave it is not to follow it.
    pub severity: Severity,
    pub(crate) only_if_asked: Option<String>,
    /// Rules that it silences where it applies.
    pub beats: Vec<Beats>,
    #[cfg_attr(not(test), expect(dead_code, reason = "cases are for tests"))]
    pub(crate) fires: Vec<BTreeMap<String, Value>>,
    #[cfg_attr(not(test), expect(dead_code, reason = "cases are for tests"))]
    pub(crate) silent: Vec<BTreeMap<String, Value>>,
}

impl Rule {
    /// The knob as it is written, with the template of its instance.
    pub fn knob(&self) -> Option<&str> {
        self.knob.as_ref().map(Template::text)
    }

    /// The word that allows it, of what is advised only if asked for.
    pub fn allowed_by(&self) -> Option<&str> {
        self.only_if_asked.as_deref()
    }

    /// The condition as it is written.
    pub fn condition(&self) -> &str {
        self.when.text()
    }

    /// What is recommended, as it is written.
    pub fn recommends(&self) -> &str {
        self.recommended.text()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    id: String,
    knob: Option<String>,
    now: Option<String>,
    now_means: Option<String>,
    kind: Option<RuleKind>,
    #[serde(default)]
    procedure: Vec<String>,
    each: Option<String>,
    when: String,
    recommended: Option<String>,
    recommended_bytes: Option<String>,
    why: String,
    source: String,
    effect: Effect,
    risk: String,
    confidence: Confidence,
    severity: Severity,
    only_if_asked: Option<String>,
    #[serde(default)]
    beats: Vec<Beats>,
    fires: Vec<BTreeMap<String, Value>>,
    silent: Vec<BTreeMap<String, Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    rule: Vec<Raw>,
}

/// The rules of a file.
pub(super) fn parse(text: &str) -> Result<Vec<Rule>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    file.rule
        .into_iter()
        .map(|raw| {
            let id = raw.id.clone();
            read(raw).map_err(|reason| format!("rule \"{id}\": {reason}"))
        })
        .collect()
}

fn read(raw: Raw) -> Result<Rule, String> {
    let expression = |text: &str| Expression::parse(text).map_err(|error| error.to_string());
    let template = |text: &str| Template::parse(text).map_err(|error| error.to_string());
    let recommended = match (&raw.recommended, &raw.recommended_bytes) {
        (Some(text), None) => match text.trim().strip_prefix('=') {
            Some(text) => Recommended::Worked(expression(text)?),
            None => Recommended::Text(text.clone()),
        },
        (None, Some(text)) => Recommended::Bytes(expression(text)?),
        _ => return Err("expected either recommended or recommended_bytes".into()),
    };
    Ok(Rule {
        knob: raw.knob.as_deref().map(template).transpose()?,
        now: raw.now.as_deref().map(expression).transpose()?,
        now_means: raw.now_means.as_deref().map(template).transpose()?,
        kind: raw.kind.unwrap_or_else(|| RuleKind::of(&raw.effect)),
        procedure: raw
            .procedure
            .iter()
            .map(|step| Step::parse(step))
            .collect::<Result<_, _>>()?,
        when: expression(&raw.when)?,
        why: template(&raw.why)?,
        recommended,
        id: raw.id,
        each: raw.each,
        source: raw.source,
        effect: raw.effect,
        risk: raw.risk,
        confidence: raw.confidence,
        severity: raw.severity,
        only_if_asked: raw.only_if_asked,
        beats: raw.beats,
        fires: raw.fires,
        silent: raw.silent,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_as_the_server_takes_them() {
        for (bytes, expected) in [
            (17_179_869_184.0, "16GB"),
            (8_321_499_136.0, "7936MB"),
            (204_800.0, "200kB"),
            (204_801.5, "200kB"),
            (12.0, "0"),
        ] {
            assert_eq!(exact_size(bytes), expected);
        }
    }

    #[test]
    fn effects_are_texts() {
        let effect = |low, high, note: Option<&str>| Effect {
            low,
            high,
            of: "throughput".into(),
            note: note.map(str::to_owned),
        };
        assert_eq!(
            effect(Some(0.0), Some(12.5), None).summary(),
            "0 ... +12.5 % throughput"
        );
        assert_eq!(
            effect(Some(-2.0), Some(9.0), Some("so")).summary(),
            "-2 ... +9 % throughput: so"
        );
        assert_eq!(effect(None, None, None).summary(), "throughput");
        assert_eq!(
            effect(Some(0.0), Some(0.0), None).summary(),
            "no change of throughput"
        );
    }
}
