//! A profile for a target: every setting with its value and reason, or why it is skipped.

use super::{Only, Profile, ProfileError, ProfileSetting, ProfileValue, value};
use crate::expression::ExpressionError;
use crate::known::{Known, Lacking, UNKNOWN};
use pgdyno_knobs::{Catalogue, Cost, Kind, Knob, Per, Risk, Setting, split};
use pgdyno_server::one_spelling;
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// The settings of a profile with their values for one target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Resolved {
    /// Name of the profile on the command line.
    pub profile: String,
    /// Short title of the profile.
    pub title: String,
    /// Settings to apply, in the order of the profile, inherited ones first.
    pub settings: Vec<ResolvedSetting>,
    /// Settings that are not applied, with the reason.
    pub skipped: Vec<SkippedSetting>,
}

impl Resolved {
    /// The settings as they are handed to be applied.
    pub fn to_apply(&self) -> Vec<Setting> {
        let setting = |setting: &ResolvedSetting| Setting {
            knob: setting.knob.clone(),
            value: setting.value.clone(),
        };
        self.settings.iter().map(setting).collect()
    }
}

/// The present state of a knob on a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Now {
    /// It has this value.
    Is(String),
    /// The value could not be read.
    Unknown,
    /// The target has no such knob, for this reason.
    Nowhere(String),
}

/// A setting with its value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResolvedSetting {
    /// Id of the knob, with an instance where the profile names one.
    pub knob: String,
    /// Value with the unit that the knob takes.
    pub value: String,
    /// Value that it has now; `None` where that is not known.
    pub now: Option<String>,
    /// Whether the value that it has means the same.
    pub is_now: bool,
    /// Why the value is a good one, in a sentence.
    pub reason: String,
    /// Study or manual that recommends it, by its tag.
    pub source: String,
    /// Name of the profile that has the setting.
    pub profile: String,
    /// What has to happen before the value counts.
    pub cost: Cost,
    /// What this value can cost the user.
    pub risk: Risk,
}

/// A setting that is skipped.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkippedSetting {
    /// Id of the knob, with an instance where the profile names one.
    pub knob: String,
    /// Value as the profile has it, an expression with its `=`.
    pub value: String,
    /// Reason for skipping it.
    pub why: Why,
    /// The reason in a sentence.
    pub because: String,
    /// A fact of its condition that could not be found out, with a value that it may have:
    /// "storage.data_medium=ssd".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given: Option<String>,
    /// Name of the profile that has the setting.
    pub profile: String,
}

impl SkippedSetting {
    /// The reason, with the option that sets a fact which could not be found out.
    pub fn shown(&self) -> String {
        match &self.given {
            Some(given) => format!("{}; --given {given} sets it", self.because),
            None => self.because.clone(),
        }
    }
}

/// Why a setting is skipped.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Why {
    /// The condition of the setting does not hold.
    Condition {
        /// Text of the condition.
        when: String,
        /// The facts that it names, with their values.
        facts: Vec<(String, String)>,
    },
    /// A fact that the value or the condition needs is not known.
    Missing {
        /// Name of the fact.
        fact: String,
        /// Why the fact is not known.
        reason: String,
    },
    /// This version of the server has no such parameter.
    Version {
        /// Major version of the server.
        server: u32,
        /// First version that has the parameter.
        since: Option<u32>,
        /// Last version that has the parameter.
        until: Option<u32>,
    },
    /// This host has no such knob.
    NotHere {
        /// Description of what is missing on this host.
        reason: String,
    },
    /// The present value is as good already.
    Enough {
        /// Present value of the knob.
        now: String,
        /// The value that would have been set.
        value: String,
        /// Direction that it may be changed in: "raise" or "lower".
        only: &'static str,
    },
    /// What is there is a word to the server (-1), or counts something else.
    NotComparable {
        /// Present value of the knob.
        now: String,
        /// The value that would have been set.
        value: String,
        /// Direction that it may be changed in: "raise" or "lower".
        only: &'static str,
    },
    /// The present value is not known, so it is not clear whether it is enough.
    NowUnknown {
        /// Direction that it may be changed in: "raise" or "lower".
        only: &'static str,
    },
    /// Another setting, later in the profile, excludes it.
    Excluded {
        /// Id of the knob that excludes it.
        by: String,
    },
    /// A profile that inherits the setting drops it.
    Dropped {
        /// Name of the profile that drops it.
        by: String,
    },
    /// A knob that pgdyno only advises: a person writes the lines.
    Advised {
        /// Value that is advised.
        value: String,
        /// Lines to write into the system's files.
        lines: Vec<String>,
    },
    /// Its value is none that the knob takes here.
    Illegal {
        /// Description of what the knob takes instead.
        reason: String,
    },
}

impl Why {
    /// A fact of a condition that could not be found out, with a value that it may have.
    fn given(&self) -> Option<String> {
        let Why::Condition { facts, .. } = self else {
            return None;
        };
        let (name, _) = facts.iter().find(|(_, value)| value == UNKNOWN)?;
        let example = match name.ends_with(MEDIUM) {
            true => "ssd",
            false => "VALUE",
        };
        Some(format!("{name}={example}"))
    }

    fn text(&self) -> String {
        match self {
            Why::Condition { when, facts } if facts.is_empty() => format!("this does not hold here: {when}"),
            Why::Condition { when, facts } => {
                let facts: Vec<String> = facts
                    .iter()
                    .map(|(name, value)| format!("{name} is {value}"))
                    .collect();
                format!("this does not hold here: {when} ({})", facts.join(", "))
            }
            Why::Missing { fact, reason } => format!("fact {fact} is missing because {reason}"),
            Why::Version { server, since, until } => {
                let range = match (since, until) {
                    (Some(since), _) if server < since => format!("PostgreSQL {since} and later have it"),
                    (_, Some(until)) => format!("PostgreSQL had it up to {until}"),
                    _ => "PostgreSQL has it in other versions".to_owned(),
                };
                format!("the server is {server}: {range}")
            }
            Why::Enough { now, value, .. } if value::same(now, value) => format!("it is {now} already"),
            Why::Enough { now, value, only } => {
                format!("it is {now} already, and the profile would only {only} it to {value}")
            }
            Why::NotComparable { now, value, only } => {
                format!("it is {now}: cannot decide whether {value} would {only} it")
            }
            Why::NowUnknown { only } => {
                format!("its present value is unknown, and the profile may only {only} it")
            }
            Why::Excluded { by } => format!("it makes no sense beside {by}, which the profile sets later"),
            Why::Dropped { by } => format!("profile {by} drops it"),
            Why::Advised { value, lines } if lines.is_empty() => {
                format!("{value} is advised: it is not set by pgdyno")
            }
            Why::Advised { lines, .. } => format!("it is not set by pgdyno; by hand: {}", lines.join("; ")),
            Why::NotHere { reason } | Why::Illegal { reason } => reason.clone(),
        }
    }
}

/// The fact that is missing in place of all facts of a host that is elsewhere.
const HOST_FACTS: &str = "host.facts";

/// Ends the names of facts that say what files are kept on.
const MEDIUM: &str = "_medium";

/// What is the same knob whatever it is called.
fn identity(setting: &str, knob: &Knob) -> String {
    match (split(setting).1, knob.per) {
        (None, Some(Per::Disk)) => format!("{}@data", knob.id),
        _ => setting.to_owned(),
    }
}

struct Resolver<'a> {
    known: &'a Known,
    catalogue: &'a Catalogue,
    server_major: Option<u32>,
    current: &'a dyn Fn(&str) -> Now,
}

pub(super) fn resolve(
    profile: &Profile,
    flattened: &[(&Profile, &ProfileSetting)],
    known: &Known,
    catalogue: &Catalogue,
    server_major: Option<u32>,
    current: &dyn Fn(&str) -> Now,
) -> Result<Resolved, ProfileError> {
    let resolver = Resolver {
        known,
        catalogue,
        server_major,
        current,
    };
    let mut settings: Vec<ResolvedSetting> = Vec::new();
    let mut skipped: Vec<SkippedSetting> = Vec::new();
    // What is decided by a later setting of the same knob, or by one that excludes it.
    let mut decided: BTreeSet<String> = BTreeSet::new();
    for &(of, setting) in flattened.iter().rev() {
        let knob = catalogue
            .get(&setting.knob)
            .map_err(|error| super::wrong_knob(of, setting, &error))?;
        let identity = identity(&setting.knob, knob);
        if decided.contains(&identity) {
            continue;
        }
        match resolver.decide(of, setting, knob, &settings)? {
            Ok(resolved) => {
                decided.insert(identity);
                settings.push(resolved);
            }
            Err(why) => {
                // Other settings of the same knob, further up, may still count; these decide it.
                if matches!(
                    why,
                    Why::Enough { .. } | Why::Dropped { .. } | Why::NowUnknown { .. }
                ) {
                    decided.insert(identity);
                }
                skipped.push(SkippedSetting {
                    knob: setting.knob.clone(),
                    value: setting.value.shown(),
                    because: why.text(),
                    given: why.given(),
                    why,
                    profile: of.name.clone(),
                });
            }
        }
    }
    settings.reverse();
    skipped.reverse();
    let is_set = |knob: &str| settings.iter().any(|setting| setting.knob == knob);
    // Of several settings for one knob the one that counts is shown; conditions of the others are
    // of no interest.
    skipped.retain(|left| !(is_set(&left.knob) && matches!(left.why, Why::Condition { .. })));
    let mut seen = BTreeSet::new();
    skipped.retain(|left| seen.insert((left.knob.clone(), left.because.clone())));
    Ok(Resolved {
        profile: profile.name.clone(),
        title: profile.title.clone(),
        settings,
        skipped,
    })
}

impl Resolver<'_> {
    /// The setting as it is to be applied, or why not. `later` are those that come after it in the
    /// profile.
    fn decide(
        &self,
        of: &Profile,
        setting: &ProfileSetting,
        knob: &Knob,
        later: &[ResolvedSetting],
    ) -> Result<Result<ResolvedSetting, Why>, ProfileError> {
        if setting.value == ProfileValue::Drop {
            return Ok(Err(Why::Dropped { by: of.name.clone() }));
        }
        if let Some(why) = self.wrong_version(knob).or_else(|| self.host_elsewhere(knob)) {
            return Ok(Err(why));
        }
        let wrong = |error: &ExpressionError| ProfileError::Wrong {
            path: of.file.clone(),
            line: setting.line,
            message: format!("{}: {error}", setting.knob),
        };
        let missing = |error: ExpressionError| match error.missing() {
            Some((fact, reason)) => Ok(Err(Why::Missing {
                fact: fact.to_owned(),
                reason: reason.to_owned(),
            })),
            None => Err(wrong(&error)),
        };
        match setting.when.as_ref().map(|when| (when, when.holds(self.known))) {
            None | Some((_, Ok(true))) => {}
            Some((when, Ok(false))) => {
                return Ok(Err(Why::Condition {
                    when: when.text().to_owned(),
                    facts: when.facts(self.known),
                }));
            }
            Some((_, Err(error))) => return missing(error),
        }
        let text = match &setting.value {
            ProfileValue::Text(text) => Ok(text.clone()),
            ProfileValue::Number(number) => value::text_of(*number, setting.unit, knob),
            ProfileValue::Expression(expression) => match expression.evaluate(self.known) {
                Ok(found) => value::of_json(&found, setting.unit, knob),
                Err(error) => return missing(error),
            },
            ProfileValue::Drop => Ok(String::new()),
        };
        Ok(text
            .map_err(|reason| Why::Illegal { reason })
            .and_then(|text| self.held_against(of, setting, knob, text, later)))
    }

    /// With its value: legal, allowed beside the others, and wanted beside what is there.
    fn held_against(
        &self,
        of: &Profile,
        setting: &ProfileSetting,
        knob: &Knob,
        text: String,
        later: &[ResolvedSetting],
    ) -> Result<ResolvedSetting, Why> {
        if knob.kind.is_advised_only() {
            let lines = knob
                .lines
                .iter()
                .map(|line| line.replace("{value}", &text))
                .collect();
            return Err(Why::Advised { value: text, lines });
        }
        let asked = Setting {
            knob: setting.knob.clone(),
            value: text.clone(),
        };
        if let Err(error) = self.catalogue.check(&asked) {
            return Err(Why::Illegal {
                reason: error.to_string(),
            });
        }
        if let Some(by) = later.iter().find(|other| self.is_excluded(knob, &other.knob)) {
            return Err(Why::Excluded { by: by.knob.clone() });
        }
        let now = match (self.current)(&setting.knob) {
            Now::Is(now) => Some(now),
            Now::Unknown => None,
            Now::Nowhere(reason) => return Err(Why::NotHere { reason }),
        };
        if let Some(only) = setting.only {
            let Some(now) = &now else {
                return Err(Why::NowUnknown { only: only.word() });
            };
            let wanted = match only {
                Only::Raise => Ordering::Greater,
                Only::Lower => Ordering::Less,
            };
            let (now, only) = (now.clone(), only.word());
            match value::compare(&text, &now) {
                Some(order) if order == wanted => {}
                Some(_) => {
                    return Err(Why::Enough {
                        now,
                        value: text,
                        only,
                    });
                }
                None => {
                    return Err(Why::NotComparable {
                        now,
                        value: text,
                        only,
                    });
                }
            }
        }
        Ok(ResolvedSetting {
            knob: setting.knob.clone(),
            is_now: now.as_ref().is_some_and(|now| {
                let spelled = |value: &str| one_spelling(&setting.knob, value);
                value::same(&spelled(now), &spelled(&text))
            }),
            risk: knob.risk_of(&text),
            value: text,
            now,
            reason: setting.reason.clone(),
            source: setting.source.clone(),
            profile: of.name.clone(),
            cost: knob.cost_in(self.server_major),
        })
    }

    fn wrong_version(&self, knob: &Knob) -> Option<Why> {
        let server = self.server_major.filter(|_| knob.kind == Kind::Guc)?;
        (!knob.is_in(server)).then_some(Why::Version {
            server,
            since: knob.since,
            until: knob.until,
        })
    }

    /// A host that cannot be seen is not this one.
    fn host_elsewhere(&self, knob: &Knob) -> Option<Why> {
        let of_server = matches!(knob.kind, Kind::Guc | Kind::TableOption | Kind::ColumnCompression);
        match self.known.get(HOST_FACTS) {
            Err(Lacking::Missing { name, why }) if !of_server => Some(Why::Missing {
                fact: name,
                reason: why,
            }),
            _ => None,
        }
    }

    /// Whether one of two knobs names the other as excluded together with it, or as what it zeroes.
    fn is_excluded(&self, knob: &Knob, other: &str) -> bool {
        let Some(other) = self.catalogue.find(other) else {
            return false;
        };
        let names = |a: &Knob, b: &Knob| a.excludes.contains(&b.id) || a.counterpart.as_ref() == Some(&b.id);
        names(knob, other) || names(other, knob)
    }
}
