//! What a search may set on a target: knobs with values that may be the best there, worked out of
//! the catalogue's priors.

use super::resolve::Now;
use super::{ProfileValue, Unit, value};
use crate::expression::Expression;
use crate::known::Known;
use pgdyno_knobs::gucvalue::quantity;
use pgdyno_knobs::{Catalogue, Kind, Knob, Risk, Setting};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Below `search/` of the catalogue.
const FILES: [(&str, &str); 2] = [
    (
        "search/server.toml",
        include_str!("../../catalog/search/server.toml"),
    ),
    ("search/host.toml", include_str!("../../catalog/search/host.toml")),
];
/// Weight of the present value, beside those of the others.
const PRESENT: f64 = 2.0;
/// How much likelier a value is than its weight says where a starting point has it.
const STARTED_WITH: f64 = 2.0;

/// What is wrong with a file of priors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {message}")]
pub struct PriorError {
    /// Name of the file in the catalogue.
    pub file: &'static str,
    /// What is wrong in it.
    pub message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[expect(dead_code, reason = "for who reads the file")]
    title: String,
    knob: Vec<FileKnob>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileKnob {
    id: String,
    unit: Option<Unit>,
    values: Vec<toml::Value>,
    weights: Vec<f64>,
    #[serde(default)]
    scale: Scale,
    memory: Option<MemoryOf>,
    at_least: Option<String>,
    at_most: Option<String>,
    acts_within: Option<String>,
    when: Option<String>,
    matters: Matters,
    reason: String,
    source: String,
}

/// How values that are numbers are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// By their logarithms: from 1 to 2 is as far as from 2 to 4.
    #[default]
    Log,
    /// By themselves.
    Linear,
    /// Not at all: nothing follows from one for another.
    None,
}

impl Scale {
    /// Name in files: "log".
    pub fn name(self) -> &'static str {
        match self {
            Scale::Log => "log",
            Scale::Linear => "linear",
            Scale::None => "none",
        }
    }
}

/// How often the server takes the memory that a knob's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryOf {
    /// Once.
    Server,
    /// For each client, where all need it at once.
    Client,
}

/// How much a knob matters for kinds of load, as weights.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Matters {
    /// Short reads by key.
    pub reads: f64,
    /// Short transactions that write.
    pub writes: f64,
    /// Long queries over many rows.
    pub analytics: f64,
}

impl Matters {
    /// How much it matters for a load that is of several kinds: as for the kind for which it
    /// matters most, by their shares.
    fn of(self, load: Matters) -> f64 {
        let parts = [
            self.reads * load.reads,
            self.writes * load.writes,
            self.analytics * load.analytics,
        ];
        parts.into_iter().fold(0.0, f64::max)
    }
}

/// A knob of the catalogue's priors.
struct Prior {
    knob: String,
    unit: Option<Unit>,
    values: Vec<(ProfileValue, f64)>,
    scale: Scale,
    memory: Option<MemoryOf>,
    at_least: Option<Expression>,
    at_most: Option<Expression>,
    acts_within: Option<Expression>,
    when: Option<Expression>,
    matters: Matters,
    reason: String,
    source: String,
}

/// All priors of the catalogue.
pub struct Priors(Vec<Prior>);

/// A knob that a search varies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpaceKnob {
    /// Id of the knob, with its instance.
    pub knob: String,
    /// Values with their weights, the present one first.
    pub values: Vec<(String, f64)>,
    /// How they are arranged.
    pub scale: Scale,
    /// How much it is expected to matter, as a weight.
    pub relevance: f64,
    /// Why these values, in a sentence.
    pub reason: String,
    /// Study or manual, by its tag.
    pub source: String,
}

/// What a search may set on a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchSpace {
    /// Knobs that it varies.
    pub knobs: Vec<SpaceKnob>,
    /// Knobs that it does not vary, each with the reason.
    pub skipped: Vec<(String, String)>,
}

/// The target whose space is worked out.
pub struct SpaceFor<'a> {
    /// What is known of it.
    pub known: &'a Known,
    /// All knobs.
    pub catalogue: &'a Catalogue,
    /// Major version of its server.
    pub major: Option<u32>,
    /// The present state of a knob.
    pub current: &'a dyn Fn(&str) -> Now,
    /// Shares of the kinds of load.
    pub load: Matters,
    /// Seconds of a trial with its warm-up; `None` where that is not known.
    pub trial_s: Option<f64>,
    /// Settings of the starting points: each is a value that is tried, where its knob is one of the
    /// space.
    pub starts: &'a [Vec<Setting>],
}

impl Priors {
    /// Those of the catalogue.
    ///
    /// # Errors
    ///
    /// A file that does not say what is expected: a knob that does not exist, another number of
    /// weights than of values.
    pub fn shipped(catalogue: &Catalogue) -> Result<Priors, PriorError> {
        let mut all = Vec::new();
        for (file, text) in FILES {
            let wrong = |message: String| PriorError { file, message };
            let read: File = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
            for knob in &read.knob {
                let id = &knob.id;
                let prior = Prior::new(knob, catalogue);
                all.push(prior.map_err(|message| wrong(format!("{id}: {message}")))?);
            }
        }
        Ok(Priors(all))
    }

    /// Ids of all knobs, in order.
    pub fn knobs(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let ids = self.0.iter().map(|prior| prior.knob.as_str());
        ids.filter(|id| seen.insert(*id)).collect()
    }

    /// Knobs whose values are memory that the server takes, in order.
    pub fn memory(&self) -> Vec<(&str, MemoryOf)> {
        let all = self.0.iter();
        all.filter_map(|prior| Some((prior.knob.as_str(), prior.memory?)))
            .collect()
    }

    /// The space for a target.
    pub fn space(&self, of: &SpaceFor<'_>) -> SearchSpace {
        let mut space = SearchSpace {
            knobs: Vec::new(),
            skipped: Vec::new(),
        };
        for prior in &self.0 {
            match prior.resolve(of) {
                Ok(knob) => space.knobs.push(knob),
                Err(why) => space.skipped.push((prior.knob.clone(), why)),
            }
        }
        // A knob that is there under several conditions is skipped where none holds.
        let is_there = |knob: &String| space.knobs.iter().any(|own| own.knob == *knob);
        let mut seen = BTreeSet::new();
        space
            .skipped
            .retain(|(knob, _)| !is_there(knob) && seen.insert(knob.clone()));
        space
    }

    /// A knob with these values and the present one, which is the first; it need have no prior.
    /// Where it has one, no value is beyond what that allows.
    ///
    /// # Errors
    ///
    /// Why it cannot be varied so on the target.
    pub fn knob_with_values(&self, of: &SpaceFor<'_>, id: &str, own: &[&str]) -> Result<SpaceKnob, String> {
        knob(of, id)?;
        let present = present(of, id)?;
        let prior = self.0.iter().find(|prior| prior.knob == id);
        let room = prior.map(|prior| prior.room(of)).transpose()?.unwrap_or_default();
        let mut values = vec![(present, PRESENT)];
        for text in own {
            if !is_legal(of.catalogue, id, text) {
                return Err(format!("{text} is not a value of it"));
            }
            if !is_settable(of.catalogue, id, text) {
                return Err(format!(
                    "{text} may lose committed data, and no search chooses that"
                ));
            }
            let number = of.catalogue.number_of(id, text);
            if !room.has(number) {
                let way = if room.most.is_some_and(|most| number > Some(most)) {
                    "more"
                } else {
                    "less"
                };
                return Err(format!("{text} is {way} than the target has room for"));
            }
            add(&mut values, (*text).to_owned(), 1.0);
        }
        if values.len() < 2 {
            return Err("none of its values is other than the present one".to_owned());
        }
        let is_number = |(text, _): &(String, f64)| quantity(text).is_some_and(|(_, number)| number > 0.0);
        Ok(SpaceKnob {
            knob: id.to_owned(),
            scale: if values.iter().all(is_number) {
                Scale::Log
            } else {
                Scale::None
            },
            values,
            // Who names it expects it to matter, whatever the catalogue has of such a load.
            relevance: prior
                .map(|prior| prior.matters.of(of.load))
                .filter(|relevance| *relevance > 0.0)
                .unwrap_or(1.0),
            reason: "Its values are the user's.".to_owned(),
            source: "user".to_owned(),
        })
    }
}

/// A knob that the target has.
fn knob<'a>(of: &SpaceFor<'a>, id: &str) -> Result<&'a Knob, String> {
    let knob = of.catalogue.get(id).map_err(|error| error.to_string())?;
    match knob.kind == Kind::Guc && of.major.is_some_and(|major| !knob.is_in(major)) {
        true => Err("this version of the server does not have it".to_owned()),
        false => Ok(knob),
    }
}

/// The present value of a knob, which a trial sets like any other.
fn present(of: &SpaceFor<'_>, id: &str) -> Result<String, String> {
    let present = match (of.current)(id) {
        Now::Is(now) => now,
        Now::Unknown => return Err("its present value is unknown".to_owned()),
        Now::Nowhere(why) => return Err(why),
    };
    // What only the kernel itself writes is not set.
    match is_legal(of.catalogue, id, &present) {
        true => Ok(present),
        false => Err(format!("its present value, {present}, is none that can be set")),
    }
}

/// The least and the most that a target has room for.
#[derive(Debug, Clone, Copy, Default)]
struct Room {
    least: Option<f64>,
    most: Option<f64>,
}

impl Room {
    /// Whether a number is within it; what is not one is.
    fn has(self, number: Option<f64>) -> bool {
        let is_within = |number: f64| {
            self.least.is_none_or(|least| number >= least) && self.most.is_none_or(|most| number <= most)
        };
        number.is_none_or(is_within)
    }
}

fn number(of: Option<&Expression>, known: &Known) -> Result<Option<f64>, String> {
    let found = of.map(|of| of.evaluate(known)).transpose();
    Ok(found
        .map_err(|error| error.reason())?
        .and_then(|found| found.as_f64()))
}

impl Prior {
    fn new(file: &FileKnob, catalogue: &Catalogue) -> Result<Prior, String> {
        catalogue.get(&file.id).map_err(|error| error.to_string())?;
        if file.values.len() != file.weights.len() || file.values.len() < 2 {
            let (values, weights) = (file.values.len(), file.weights.len());
            return Err(format!(
                "{values} values and {weights} weights: expected two or more, and as many of both"
            ));
        }
        let parse = |text: &Option<String>| {
            let parsed = text.as_deref().map(Expression::parse).transpose();
            parsed.map_err(|error| error.to_string())
        };
        let values = file.values.iter().map(ProfileValue::of_toml);
        let values: Vec<ProfileValue> = values.collect::<Result<_, _>>()?;
        Ok(Prior {
            knob: file.id.clone(),
            unit: file.unit,
            values: values.into_iter().zip(file.weights.iter().copied()).collect(),
            scale: file.scale,
            memory: file.memory,
            at_least: parse(&file.at_least)?,
            at_most: parse(&file.at_most)?,
            acts_within: parse(&file.acts_within)?,
            when: parse(&file.when)?,
            matters: file.matters,
            reason: file.reason.clone(),
            source: file.source.clone(),
        })
    }

    /// The knob with its values on a target, or why it is not varied there.
    fn resolve(&self, of: &SpaceFor<'_>) -> Result<SpaceKnob, String> {
        let knob = knob(of, &self.knob)?;
        if let Some(when) = &self.when
            && !when.holds(of.known).map_err(|error| error.reason())?
        {
            return Err(format!("this does not hold here: {when}"));
        }
        let present = present(of, &self.knob)?;
        if let Some(trial_s) = of.trial_s
            && let Some(acts_s) = number(self.acts_within.as_ref(), of.known)?
            && trial_s < acts_s
        {
            return Err(format!(
                "a trial of {trial_s} s ends before it makes a difference, which takes {acts_s} s"
            ));
        }
        let room = self.room(of)?;
        let is_possible = |text: &str| {
            room.has(of.catalogue.number_of(&self.knob, text)) && is_settable(of.catalogue, &self.knob, text)
        };
        let mut values = vec![(present, PRESENT)];
        for (value, weight) in &self.values {
            let text = self.text_of(value, knob, of.known)?;
            if is_possible(&text) {
                add(&mut values, text, *weight);
            }
        }
        let started = of
            .starts
            .iter()
            .flatten()
            .filter(|setting| setting.knob == self.knob);
        for setting in started {
            if is_possible(&setting.value) {
                add(&mut values, setting.value.clone(), 1.0);
                let own = values
                    .iter_mut()
                    .find(|(own, _)| value::same(own, &setting.value));
                own.into_iter().for_each(|(_, weight)| *weight *= STARTED_WITH);
            }
        }
        if values.len() < 2 {
            return Err("no other value than the present one is possible here".to_owned());
        }
        let relevance = self.matters.of(of.load);
        match relevance > 0.0 {
            true => Ok(SpaceKnob {
                knob: self.knob.clone(),
                values,
                scale: self.scale,
                relevance,
                reason: self.reason.clone(),
                source: self.source.clone(),
            }),
            false => Err("it does not matter for this load".to_owned()),
        }
    }

    fn room(&self, of: &SpaceFor<'_>) -> Result<Room, String> {
        Ok(Room {
            least: number(self.at_least.as_ref(), of.known)?,
            most: number(self.at_most.as_ref(), of.known)?,
        })
    }

    fn text_of(&self, of: &ProfileValue, knob: &Knob, known: &Known) -> Result<String, String> {
        match of {
            ProfileValue::Text(text) => Ok(text.clone()),
            ProfileValue::Number(number) => value::text_of(*number, self.unit, knob),
            ProfileValue::Expression(expression) => {
                let found = expression.evaluate(known).map_err(|error| error.reason())?;
                value::of_json(&found, self.unit, knob)
            }
            ProfileValue::Drop => Err("expected a value".to_owned()),
        }
    }
}

/// Whether a search may choose a value: it is legal, and costs no committed data.
fn is_settable(catalogue: &Catalogue, knob: &str, value: &str) -> bool {
    let is_safe = catalogue
        .find(knob)
        .is_some_and(|knob| knob.risk_of(value) != Risk::Durability);
    is_safe && is_legal(catalogue, knob, value)
}

fn is_legal(catalogue: &Catalogue, knob: &str, value: &str) -> bool {
    let setting = Setting {
        knob: knob.to_owned(),
        value: value.to_owned(),
    };
    catalogue.check_settable(&setting).is_ok()
}

/// Adds a value, or its weight to one that means the same.
fn add(values: &mut Vec<(String, f64)>, text: String, weight: f64) {
    match values.iter_mut().find(|(own, _)| value::same(own, &text)) {
        Some((_, own)) => *own = own.max(weight),
        None => values.push((text, weight)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_host::Fact;
    use serde_json::{Value, json};

    fn known(facts: &[(&str, Value)]) -> Known {
        let fact = |(name, value): &(&str, Value)| Fact {
            name: (*name).to_owned(),
            value: Some(value.clone()),
            missing: None,
            source: "a test".to_owned(),
        };
        Known::new(&facts.iter().map(fact).collect::<Vec<_>>(), &[])
    }

    fn space(load: Matters, starts: &[Vec<Setting>]) -> SearchSpace {
        of_priors((load, starts), |priors, of| priors.space(of))
    }

    fn of_priors<T>(
        (load, starts): (Matters, &[Vec<Setting>]),
        ask: impl Fn(&Priors, &SpaceFor<'_>) -> T,
    ) -> T {
        let catalogue = Catalogue::shipped().unwrap();
        let known = known(&[
            ("memory.total_bytes", json!(1_u64 << 30)),
            ("server.version_num", json!(180_001)),
            ("server.build.lz4", json!(true)),
        ]);
        let present = |knob: &str| match knob {
            "shared_buffers" => Now::Is("128MB".into()),
            "checkpoint_timeout" => Now::Is("5min".into()),
            "checkpoint_completion_target" => Now::Is("0.5".into()),
            "wal_compression" | "jit" => Now::Is("off".into()),
            "block.read_ahead_kb@data" => Now::Nowhere("it is on no disk".into()),
            _ => Now::Unknown,
        };
        let priors = Priors::shipped(&catalogue).unwrap();
        ask(
            &priors,
            &SpaceFor {
                known: &known,
                catalogue: &catalogue,
                major: Some(18),
                current: &present,
                load,
                starts,
                trial_s: None,
            },
        )
    }

    #[test]
    fn values_of_the_user_take_the_place_of_the_catalogues() {
        let own = |knob: &str, values: &[&str]| {
            of_priors((WRITES, &[]), |priors, of| {
                priors.knob_with_values(of, knob, values)
            })
        };
        let values = |knob: &SpaceKnob| -> Vec<String> {
            knob.values.iter().map(|(value, _)| value.clone()).collect()
        };
        let buffers = own("shared_buffers", &["256MB", "0.25GB", "131072kB", "200MB"]).unwrap();
        assert_eq!(values(&buffers), ["128MB", "256MB", "200MB"]);
        assert_eq!(buffers.scale, Scale::Log);
        let prior = space(WRITES, &[]);
        let prior = prior.knobs.iter().find(|knob| knob.knob == "shared_buffers");
        assert_eq!(Some(buffers.relevance), prior.map(|knob| knob.relevance));
        let words = own("wal_compression", &["lz4"]).unwrap();
        assert_eq!(
            (values(&words), words.scale),
            (vec!["off".into(), "lz4".into()], Scale::None)
        );
        for (knob, value, why) in [
            (
                "shared_buffers",
                "128MB",
                "none of its values is other than the present one",
            ),
            ("no_such_knob", "1", "no_such_knob"),
            ("block.read_ahead_kb@data", "16", "it is on no disk"),
            ("work_mem", "16MB", "its present value is unknown"),
        ] {
            let found = own(knob, &[value]).unwrap_err();
            assert!(found.contains(why), "{found}");
        }
    }

    const WRITES: Matters = Matters {
        reads: 0.0,
        writes: 1.0,
        analytics: 0.0,
    };

    #[test]
    fn space_has_the_present_value_first_and_what_follows_from_facts() {
        let space = space(WRITES, &[]);
        let values = |knob: &str| -> Vec<&str> {
            let own = space.knobs.iter().find(|own| own.knob == knob);
            own.map(|own| own.values.iter().map(|(value, _)| value.as_str()).collect())
                .unwrap_or_default()
        };
        // An eighth of the memory is the present value.
        assert_eq!(
            values("shared_buffers"),
            ["128MB", "64MB", "256MB", "384MB", "512MB"]
        );
        assert_eq!(values("checkpoint_timeout"), ["5min", "15min", "30min"]);
        assert_eq!(values("wal_compression"), ["off", "pglz", "lz4"]);
        let why = |knob: &str| {
            let skipped = space.skipped.iter().find(|(own, _)| own == knob);
            skipped.map(|(_, why)| why.as_str()).unwrap_or_default()
        };
        assert_eq!(why("max_wal_size"), "its present value is unknown");
        assert_eq!(why("block.read_ahead_kb@data"), "it is on no disk");
    }

    #[test]
    fn knob_is_varied_where_trials_are_long_enough_for_it_to_act() {
        let knob = "checkpoint_completion_target";
        let check = |trial_s: f64, expected: Option<&str>| {
            let space = of_priors((WRITES, &[]), |priors, of| {
                priors.space(&SpaceFor {
                    trial_s: Some(trial_s),
                    ..*of
                })
            });
            let skipped = space.skipped.iter().find(|(own, _)| own == knob);
            assert_eq!(skipped.map(|(_, why)| why.as_str()), expected);
            let is_varied = space.knobs.iter().any(|own| own.knob == knob);
            assert_eq!(is_varied, expected.is_none());
        };
        check(60.0, None);
        check(
            15.0,
            Some("a trial of 15 s ends before it makes a difference, which takes 60 s"),
        );
    }

    #[test]
    fn value_of_a_starting_point_is_tried_and_likelier() {
        let setting = |knob: &str, value: &str| Setting {
            knob: knob.to_owned(),
            value: value.to_owned(),
        };
        let starts = [vec![
            setting("shared_buffers", "192MB"),
            setting("checkpoint_timeout", "15min"),
            setting("fsync", "off"),
        ]];
        let (with, without) = (space(WRITES, &starts), space(WRITES, &[]));
        let weight = |space: &SearchSpace, knob: &str, value: &str| {
            let own = space.knobs.iter().find(|own| own.knob == knob).unwrap();
            own.values
                .iter()
                .find(|(own, _)| own == value)
                .map(|(_, weight)| *weight)
        };
        assert!(weight(&with, "shared_buffers", "192MB").is_some());
        assert!(
            weight(&with, "checkpoint_timeout", "15min") > weight(&without, "checkpoint_timeout", "15min")
        );
        assert!(with.knobs.iter().all(|own| own.knob != "fsync"));
    }

    #[test]
    fn no_value_of_a_space_puts_data_at_risk() {
        let catalogue = Catalogue::shipped().unwrap();
        for prior in Priors::shipped(&catalogue).unwrap().0 {
            let knob = catalogue.get(&prior.knob).unwrap();
            for (value, _) in &prior.values {
                let ProfileValue::Text(text) = value else { continue };
                assert_ne!(knob.risk_of(text), Risk::Durability, "{} = {text}", prior.knob);
            }
            assert_ne!(knob.risk_of("off"), Risk::Durability, "{}", prior.knob);
        }
    }
}
