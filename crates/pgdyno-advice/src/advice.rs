//! Advice: what to change on a target and why, by rules that are data, over facts, measurements,
//! and what trials have shown here. Decides without I/O.

mod procedure;
mod rule;
mod service;
mod step;
mod weigh;

pub use rule::{Confidence, Effect, Rule, RuleKind, Severity};

use crate::expression::{ExpressionError, size_text};
use crate::known::{Known, Lacking};
use crate::sizing::{Line, Sizing, Sources};
use pgdyno_host::Fact;
use pgdyno_knobs::{Catalogue, Cost, Kind, Knob, Layer, Risk, Setting, gucvalue, split};
use pgdyno_server::Guc;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use service::Service;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::LazyLock;

/// Of a list, a rule speaks of so many members.
const MEMBERS_MAX: usize = 5;
/// The name under which a rule finds the member that it evaluates.
const ITEM: &str = "item";

/// What an experiment on this very target has shown of a setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Number of the experiment in its store.
    pub experiment: i64,
    /// Setting that was tried, and nothing else.
    pub setting: Setting,
    /// Verdict on the throughput.
    pub verdict: Shown,
    /// Effect on throughput, percent.
    pub percent: f64,
    /// Lower end of the effect's interval, percent.
    pub low: f64,
    /// Upper end of the effect's interval, percent.
    pub high: f64,
    /// Description of the load that it was shown on: "tpcb, 32 clients".
    pub load: String,
}

/// What an experiment has shown of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// Higher throughput.
    Better,
    /// Lower throughput.
    Worse,
    /// No difference that matters.
    Same,
    /// No gain that matters; whether it is worse is open.
    NoGain,
    /// The interval is too wide to say any of these.
    Undecided,
}

impl Evidence {
    /// "+7.1 % (+5.0 ... +9.2), experiment 12"
    pub fn summary(&self) -> String {
        format!(
            "{:+.1} % ({:+.1} ... {:+.1}), experiment {}, {}",
            self.percent, self.low, self.high, self.experiment, self.load
        )
    }
}

/// Facts, settings and evidence that advice is made from.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Facts and measurements; missing ones with their reasons.
    pub facts: &'a [Fact],
    /// All settings of the server; none where a host alone is evaluated.
    pub settings: &'a [Guc],
    /// What trials on this target have shown.
    pub evidence: &'a [Evidence],
    /// Words that allow what is advised only if asked for.
    pub allowed: &'a [String],
    /// Ids of the rules that are to speak; all where it is empty.
    pub only: &'a [String],
}

/// A statement that a piece of advice names, as it can be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Statement {
    /// Text of the statement, with its semicolon.
    pub sql: String,
    /// Description of where or when it is meant to be run; `None` for the connected database, now.
    pub at: Option<String>,
}

/// One piece of advice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// Id of the rule that it is from.
    pub rule: String,
    /// How grave it is not to follow it.
    pub severity: Severity,
    /// Whether it is about a danger or about speed.
    pub kind: RuleKind,
    /// Knob and value; `None` for what is not a setting.
    pub setting: Option<Setting>,
    /// Present value; `None` where it is not known.
    pub now: Option<String>,
    /// What holds instead, where the present value only means "as something else": 20 % of memory,
    /// for a limit of 0 bytes.
    pub now_means: Option<String>,
    /// Value to set, or what to do.
    pub recommended: String,
    /// The value as people write it, where it is a plain number of bytes.
    pub recommended_means: Option<String>,
    /// The facts that led to it, in a sentence.
    pub why: String,
    /// Tags of the studies and documentation that it is based on.
    pub source: String,
    /// Change that the literature expects.
    pub effect: Effect,
    /// Evidence of trials on this target; `None` without any.
    pub measured: Option<Evidence>,
    /// Description of the cost or danger of following it.
    pub risk: String,
    /// What has to happen before the value counts; `None` for what is not a setting.
    pub cost: Option<Cost>,
    /// How well studies, documentation or trials here support it.
    pub confidence: Confidence,
    /// Whether what is expected of it is at most 2 %, and no danger.
    pub is_small: bool,
    /// The steps in their order: of what is for safety all that end the danger and show what it has
    /// done. A step that ends with a semicolon is a statement.
    pub procedure: Vec<String>,
    /// The statements among the steps, whole, in their order.
    pub statements: Vec<Statement>,
    /// Of what cannot be set by pgdyno: the lines to write.
    pub lines: Vec<String>,
    /// Whether pgdyno can set it.
    pub can_be_applied: bool,
    /// Whether an experiment can try it. What is for safety is not tried, and the load does not
    /// touch a table of the user's own.
    pub can_be_tried: bool,
    /// Whether trying it needs consent, for it trades durability.
    pub wants_consent: bool,
    /// How the setting is made at a managed service; `None` elsewhere.
    pub how: Option<String>,
}

/// A rule that would speak, and why it does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedAdvice {
    /// Id of the rule that is not followed.
    pub rule: String,
    /// Value or action that it would have recommended.
    pub recommended: String,
    /// Reason in a sentence.
    pub because: String,
}

/// A rule that cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotJudged {
    /// Id of the rule that cannot be judged.
    pub rule: String,
    /// Name of the missing fact, and why it is missing.
    pub because: String,
}

/// The outcome of all rules on one target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advised {
    /// Advice, the gravest first, then by expected gain.
    pub advice: Vec<Advice>,
    /// Rules that would advise something, with the reason why they do not.
    pub skipped: Vec<SkippedAdvice>,
    /// Rules that need a fact which is not known here.
    pub not_judged: Vec<NotJudged>,
    /// Number of rules that were judged and advise nothing.
    pub silent: usize,
    /// Sizes of memory with the terms that they follow from.
    pub sizing: Vec<Line>,
}

impl Advised {
    /// Whether something grave is among it.
    pub fn is_severe(&self) -> bool {
        self.advice
            .iter()
            .any(|advice| advice.severity == Severity::Severe)
    }
}

/// What is wrong with the shipped rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("catalogue file {file}: {reason}")]
pub struct AdviceError {
    /// Name of the file in the catalogue.
    pub file: String,
    /// Error of the parser, or the rule that the file breaks.
    pub reason: String,
}

/// The files of the rules.
const FILES: [(&str, &str); 6] = [
    (
        "advice/memory.toml",
        include_str!("../catalog/advice/memory.toml"),
    ),
    ("advice/wal.toml", include_str!("../catalog/advice/wal.toml")),
    (
        "advice/storage.toml",
        include_str!("../catalog/advice/storage.toml"),
    ),
    (
        "advice/vacuum.toml",
        include_str!("../catalog/advice/vacuum.toml"),
    ),
    (
        "advice/server.toml",
        include_str!("../catalog/advice/server.toml"),
    ),
    ("advice/host.toml", include_str!("../catalog/advice/host.toml")),
];
const SERVICES: (&str, &str) = (
    "advice/services.toml",
    include_str!("../catalog/advice/services.toml"),
);

/// The rules and what they go by.
#[derive(Debug, Clone)]
pub struct Advisor {
    rules: Vec<Rule>,
    services: Vec<Service>,
    sources: Sources,
    catalogue: Catalogue,
}

/// What a shipped rule recommends, as it is written: the text for others that meet the same
/// condition.
pub fn recommended_by(rule: &str) -> Option<&'static str> {
    static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
        let files = FILES.iter().filter_map(|(_, text)| rule::parse(text).ok());
        files.flatten().collect()
    });
    RULES
        .iter()
        .find(|shipped| shipped.id == rule)
        .map(Rule::recommends)
}

impl Advisor {
    /// With the rules that pgdyno is shipped with.
    pub fn shipped(catalogue: &Catalogue) -> Result<Advisor, AdviceError> {
        let mut rules: Vec<Rule> = Vec::new();
        for (file, text) in FILES {
            let wrong = |reason: String| AdviceError {
                file: file.to_owned(),
                reason,
            };
            rules.extend(rule::parse(text).map_err(wrong)?);
        }
        let wrong = |file: &str, reason: String| AdviceError {
            file: file.to_owned(),
            reason,
        };
        Ok(Advisor {
            services: service::parse(SERVICES.1).map_err(|reason| wrong(SERVICES.0, reason))?,
            sources: Sources::shipped().map_err(|reason| wrong("advice/sizing.toml", reason))?,
            rules,
            catalogue: catalogue.clone(),
        })
    }

    /// All rules, in the order of their files.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// What is to be said of a target.
    pub fn advise(&self, question: &Question<'_>) -> Advised {
        let mut facts = question.facts.to_vec();
        if !facts.iter().any(|fact| fact.name.starts_with("check.")) {
            facts.push(unmeasured());
        }
        let sizing = Sizing::of(&self.sources, &Known::new(&facts, question.settings));
        facts.extend(sizing.facts);
        let known = Known::new(&facts, question.settings);
        self.advise_by(question, &known, sizing.lines)
    }

    fn advise_by(&self, question: &Question<'_>, known: &Known, sizing: Vec<Line>) -> Advised {
        let mut advised = Advised {
            advice: Vec::new(),
            skipped: Vec::new(),
            not_judged: Vec::new(),
            silent: 0,
            sizing,
        };
        let asked = |rule: &&Rule| question.only.is_empty() || question.only.contains(&rule.id);
        let mut found = Vec::new();
        let items = Items::default();
        for rule in self.rules.iter().filter(asked) {
            match self.judge(rule, known, &items, question.settings) {
                Ok(advice) if advice.is_empty() => advised.silent += 1,
                Ok(advice) => found.extend(advice.into_iter().map(|advice| (rule, advice))),
                Err(because) => advised.not_judged.push(NotJudged {
                    rule: rule.id.clone(),
                    because,
                }),
            }
        }
        let service = known
            .get("service.kind")
            .ok()
            .and_then(Value::as_str)
            .unwrap_or("none");
        let limits = service::limits(&self.services, service);
        weigh::weigh(&mut advised, found, question, &limits, &self.catalogue);
        advised
    }

    /// What a rule says: nothing, or a piece of advice for each thing that it fits.
    fn judge(
        &self,
        rule: &Rule,
        known: &Known,
        items: &Items,
        settings: &[Guc],
    ) -> Result<Vec<Advice>, String> {
        let Some(list) = &rule.each else {
            return match rule.when.holds(known).map_err(|error| error.reason())? {
                true => Ok(self.say(rule, known, settings)?.into_iter().collect()),
                false => Ok(Vec::new()),
            };
        };
        let members = items.of(list, known).map_err(|lacking| lacking.to_string())?;
        let mut said = Vec::new();
        let mut first_reason = None;
        for member in members.iter() {
            match rule.when.holds(member) {
                Ok(true) => said.extend(self.say(rule, member, settings)?),
                Ok(false) => {}
                Err(error) => {
                    first_reason.get_or_insert(error.reason());
                }
            }
            if said.len() == MEMBERS_MAX {
                break;
            }
        }
        match first_reason {
            Some(why) if said.is_empty() => Err(why),
            _ => Ok(said),
        }
    }

    /// The advice of a rule that holds; `None` where the setting is in force already.
    fn say(&self, rule: &Rule, known: &Known, settings: &[Guc]) -> Result<Option<Advice>, String> {
        let fill = |error: ExpressionError| error.reason();
        let recommended = rule.recommended.evaluate(known).map_err(fill)?;
        let knob_id = rule
            .knob
            .as_ref()
            .map(|knob| knob.render(known))
            .transpose()
            .map_err(fill)?;
        let knob = knob_id.as_deref().and_then(|id| self.catalogue.find(id));
        let now = self.now(rule, knob_id.as_deref(), known, settings);
        let guc = knob_id
            .as_deref()
            .and_then(|id| settings.iter().find(|guc| guc.name == split(id).0))
            .filter(|_| knob.is_none_or(|knob| knob.kind == Kind::Guc));
        let is_in_force = match guc {
            Some(guc) => gucvalue::same(&recommended, guc),
            None => now.as_deref() == Some(recommended.as_str()),
        };
        if is_in_force && knob_id.is_some() {
            return Ok(None);
        }
        let setting = knob_id.map(|knob| Setting {
            knob,
            value: recommended.clone(),
        });
        let lines = knob.map_or_else(Vec::new, |knob| {
            knob.lines
                .iter()
                .map(|line| filled(line, &recommended, known))
                .collect()
        });
        let can_be_applied = knob.is_some_and(|knob| !knob.kind.is_advised_only());
        let is_for_safety = rule.kind == RuleKind::Safety;
        let procedure = procedure::of(rule, known, knob, setting.as_ref());
        let now_means = match &rule.now_means {
            Some(template) => template.render(known).ok().filter(|text| !text.is_empty()),
            None => knob.and_then(|knob| {
                let now = now.as_deref()?;
                counterpart(knob, Some(now), known).or_else(|| readable_size(knob, now))
            }),
        };
        Ok(Some(Advice {
            rule: rule.id.clone(),
            severity: rule.severity,
            kind: rule.kind,
            now,
            now_means,
            recommended_means: knob.and_then(|knob| readable_size(knob, &recommended)),
            why: rule.why.render(known).map_err(fill)?,
            source: rule.source.clone(),
            effect: rule.effect.clone(),
            measured: None,
            risk: rule.risk.clone(),
            cost: knob.map(|knob| knob.cost_in(known.major())),
            confidence: rule.confidence,
            can_be_applied,
            can_be_tried: can_be_applied
                && !is_for_safety
                && knob.is_some_and(|knob| knob.layer != Layer::Table),
            is_small: false,
            statements: procedure::statements(&procedure),
            procedure,
            wants_consent: knob.is_some_and(|knob| knob.risk_of(&recommended) == Risk::Durability),
            lines,
            how: None,
            recommended,
            setting,
        }))
    }

    /// The present value: as the rule says, else the server's, else the kernel's parameter of that
    /// name.
    fn now(&self, rule: &Rule, knob: Option<&str>, known: &Known, settings: &[Guc]) -> Option<String> {
        if let Some(now) = &rule.now {
            return now.evaluate(known).ok().map(|value| shown(&value));
        }
        let (id, _) = split(knob?);
        match settings.iter().find(|guc| guc.name == id) {
            Some(guc) => Some(guc.shown.clone()),
            None => known.get(&format!("sysctl.{id}")).ok().map(shown),
        }
    }
}

/// What holds where a limit of 0 bytes leaves it to another knob: 20 % by ratio.
fn counterpart(knob: &Knob, now: Option<&str>, known: &Known) -> Option<String> {
    let other = knob.counterpart.as_deref().filter(|_| now == Some("0"))?;
    let value = known.get(&format!("sysctl.{other}")).ok().map(shown)?;
    match other.ends_with("_ratio") {
        true => Some(format!("{value} % by ratio")),
        false => Some(format!("{value} by {other}")),
    }
}

/// A kernel's plain number of bytes as people write it.
fn readable_size(knob: &Knob, value: &str) -> Option<String> {
    let is_bytes = knob.kind != Kind::Guc && knob.unit.as_deref() == Some("bytes");
    let bytes: f64 = value.parse().ok().filter(|bytes| is_bytes && *bytes > 0.0)?;
    Some(size_text(bytes))
}

/// The fact in place of all measurements where there are none.
fn unmeasured() -> Fact {
    Fact::unknown("check", "pgdyno check", "nothing was measured; --check does")
}

/// Members of lists as rules see them, made once for all rules.
#[derive(Default)]
struct Items(RefCell<BTreeMap<String, Rc<Vec<Known>>>>);

impl Items {
    fn of(&self, list: &str, known: &Known) -> Result<Rc<Vec<Known>>, Lacking> {
        if let Some(made) = self.0.borrow().get(list) {
            return Ok(Rc::clone(made));
        }
        let members = known.get(list)?.as_array().cloned().unwrap_or_default();
        let made: Rc<Vec<Known>> = Rc::new(
            members
                .into_iter()
                .map(|member| known.given(ITEM, member))
                .collect(),
        );
        self.0.borrow_mut().insert(list.to_owned(), Rc::clone(&made));
        Ok(made)
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A line to write, with what is known filled in.
fn filled(line: &str, value: &str, known: &Known) -> String {
    let line = line.replace("{value}", value);
    match known.get("storage.data.mount_point").ok().and_then(Value::as_str) {
        Some(point) => line.replace("{mount}", point),
        None => line,
    }
}

#[cfg(test)]
mod tests;
