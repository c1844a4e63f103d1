//! Values that follow from others of the file: `scale = "= ceil(4 * target.memory_bytes /
//! data.bytes_per_scale)"`. They are worked out in the text itself, each in its place, so that
//! errors found later still name the right line.

use super::levels::is_key;
use super::lines::line_at;
use super::parts::{DataPart, ExperimentFile, GivenPart, LoadPart, StepPart, TargetPart};
use super::{FileError, settings_of};
use pgdyno_advice::{Expression, Known, knob_text, number};
use pgdyno_host::{Fact, size_bytes};
use pgdyno_knobs::Catalogue;
use pgdyno_knobs::gucvalue::base_unit;
use pgdyno_workload::DataPlan;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// What a text begins with that is an expression.
const MARK: &str = "= ";
/// Parts whose values may be expressions.
const PARTS: [&str; 7] = ["base", "data", "load", "server", "step", "factor", "event"];
/// Keys whose texts are the user's own, whatever they begin with.
const TEXTS: [&str; 8] = [
    "name", "title", "reason", "holds", "script", "command", "prepare", "cleanup",
];
/// Scale at which bytes per unit are taken: what does not grow with the scale no longer counts.
const LARGE_SCALE: u32 = 1000;

/// An expression in the text.
struct Found {
    /// Keys and places in arrays that lead to it.
    path: Vec<String>,
    /// Bytes of the text that it takes, quotes included.
    span: Range<usize>,
    expression: String,
}

/// The parts of a file that expressions take values from. Their own values may be expressions,
/// which is not a type of theirs.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Sources {
    target: TargetPart,
    given: Option<GivenPart>,
    data: Table,
    load: Table,
    factor: Vec<Table>,
}

/// The target of a file whose expressions ask for the target's memory or CPUs, and to which nothing
/// is given of them yet.
pub fn asks_for_target(text: &str) -> Option<TargetPart> {
    let table = DeTable::parse(text).ok()?;
    let sources: Sources = toml::from_str(text).ok()?;
    let expressions = all(&table).into_iter().map(|found| found.expression);
    let asks = expressions
        .chain(conditions(&table))
        .any(|text| text.contains("target."));
    (asks && sources.given.is_none()).then_some(sources.target)
}

/// The text with `[given]` at its end: what expressions take for the target's.
pub fn given(text: &str, memory_bytes: Option<u64>, cpus: Option<f64>) -> String {
    let memory = memory_bytes.map(|bytes| format!("memory = \"{}kB\"\n", bytes >> 10));
    let cpus = cpus.map(|cpus| format!("cpus = {cpus:?}\n"));
    let lines: String = [memory, cpus].into_iter().flatten().collect();
    match lines.is_empty() {
        true => text.to_owned(),
        false => format!("{}\n\n[given]\n{lines}", text.trim_end()),
    }
}

/// The text with every expression replaced by its value.
pub(super) fn worked_out<'t>(
    text: &'t str,
    path: &Path,
    catalogue: &Catalogue,
) -> Result<Cow<'t, str>, FileError> {
    // A text that is not TOML, or whose target is none, is reported by who reads it as an
    // experiment.
    let (Ok(table), Ok(sources)) = (DeTable::parse(text), toml::from_str::<Sources>(text)) else {
        return Ok(Cow::Borrowed(text));
    };
    let mut found = all(&table);
    if found.is_empty() {
        return Ok(Cow::Borrowed(text));
    }
    // The load may follow from the target, the data from both, and all else from the data too.
    found.sort_by_key(Found::turn);
    let Sources {
        target,
        given,
        mut data,
        mut load,
        factor,
    } = sources;
    let given = given.unwrap_or_default();
    let mut values: Vec<(Range<usize>, String)> = Vec::new();
    for found in found {
        let known = known_of(&target, &given, &load, &data);
        let value = known
            .and_then(|known| found.value(&known, &factor, catalogue))
            .and_then(|value| {
                match &found.path.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                    ["load", key] => put::<LoadPart>(&mut load, key, &value)?,
                    ["data", key] => put::<DataPart>(&mut data, key, &value)?,
                    _ => {}
                }
                Ok(value)
            })
            .map_err(|message| FileError::Wrong {
                path: path.to_owned(),
                line: line_at(text, found.span.start),
                message,
            })?;
        values.push((found.span, value.to_string()));
    }
    values.sort_by_key(|(span, _)| span.start);
    let mut replaced = text.to_owned();
    for (span, value) in values.into_iter().rev() {
        replaced.replace_range(span, &value);
    }
    Ok(Cow::Owned(replaced))
}

/// Checks what a file says must hold, of its base and of each of its parts; else the keys of what
/// does not, and why.
pub(super) fn check_conditions(
    file: &ExperimentFile,
    catalogue: &Catalogue,
) -> Result<(), (Vec<String>, String)> {
    let base = StepPart {
        holds: file.holds.clone(),
        ..StepPart::default()
    };
    let mut parts = vec![(Vec::new(), &base)];
    for (i, step) in file.step.iter().enumerate() {
        parts.push((vec!["step".to_owned(), i.to_string()], step));
    }
    for (i, factor) in file.factor.iter().enumerate() {
        for (j, level) in factor.level.iter().enumerate() {
            let keys = ["factor", &i.to_string(), "level", &j.to_string()].map(str::to_owned);
            parts.push((keys.to_vec(), level));
        }
    }
    for (keys, part) in parts {
        check_part(file, part, catalogue)
            .map_err(|message| ([keys, vec!["holds".to_owned()]].concat(), message))?;
    }
    Ok(())
}

fn check_part(file: &ExperimentFile, part: &StepPart, catalogue: &Catalogue) -> Result<(), String> {
    if part.holds.is_empty() {
        return Ok(());
    }
    let settings = catalogue
        .iter()
        .map(|knob| lacking(format!("setting.{}", knob.id), "nothing in the file sets it"));
    let known = known_of_target(&file.target, &file.given, settings)?;
    let mut known = with_load(&known, &part.load.over(&file.load), &part.data.over(&file.data));
    for table in [&file.base, &part.settings] {
        for setting in settings_of(table) {
            let name = format!("setting.{}", setting.knob);
            // A bare number counts in the knob's own unit.
            let unit = catalogue
                .find(&setting.knob)
                .and_then(|knob| knob.unit.as_deref());
            let bare = setting.value.parse::<f64>().ok();
            known = match bare.zip(unit.and_then(base_unit)) {
                Some((value, unit)) => known.given(&name, number(value * unit)),
                None => known.given_text(&name, &setting.value),
            };
        }
    }
    for condition in &part.holds {
        let condition = Expression::parse(condition).map_err(|error| error.to_string())?;
        if !condition.holds(&known).map_err(|error| error.to_string())? {
            let values = condition.facts(&known);
            let values: Vec<String> = values
                .iter()
                .map(|(name, value)| format!("{name} = {value}"))
                .collect();
            return Err(format!(
                "`{condition}` does not hold here ({}): the experiment would answer a different question; remove `holds` to run it anyway",
                values.join(", ")
            ));
        }
    }
    Ok(())
}

impl Found {
    fn turn(&self) -> u8 {
        match self.path.first().map(String::as_str) {
            Some("load") => 0,
            Some("data") => 1,
            _ => 2,
        }
    }

    fn value(&self, known: &Known, factors: &[Table], catalogue: &Catalogue) -> Result<Value, String> {
        let found = Expression::parse(&self.expression)
            .and_then(|expression| expression.evaluate(known))
            .map_err(|error| error.to_string())?;
        let Some(knob) = self.knob(factors) else {
            return Value::try_from(&found).map_err(|error| error.to_string());
        };
        let knob = catalogue.get(&knob).map_err(|error| error.to_string())?;
        knob_text(&found, knob).map(Value::String)
    }

    /// The knob whose value it is; `None` for a key of the file.
    fn knob(&self, factors: &[Table]) -> Option<String> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        match &path[..] {
            ["base", knob @ ..]
            | ["step" | "event", _, "settings", knob @ ..]
            | ["factor", _, "level", _, "settings", knob @ ..] => Some(knob.join(".")),
            ["factor", number, "values", ..] => {
                let factor = factors.get(number.parse::<usize>().ok()?)?;
                let of = factor.get("of")?.as_str()?;
                (!is_key(of)).then(|| of.to_owned())
            }
            _ => None,
        }
    }
}

/// Names that expressions have, with the reason why each may have no value.
const NAMES: [(&str, &str); 7] = [
    (
        "target.memory_bytes",
        "the file creates no sandbox with a memory limit, and the target's memory is not known; give it, e.g. --set given.memory=64GB",
    ),
    (
        "target.cpus",
        "the file creates no sandbox with a limit of CPUs, and the target's CPUs are not known; give them, e.g. --set given.cpus=16",
    ),
    (
        "load.clients",
        "the file has no `clients` in [load], or they depend on this expression",
    ),
    (
        "load.measure_s",
        "the file has no `measure_s` in [load], or it depends on this expression",
    ),
    (
        "data.scale",
        "the file has no `scale` in [data], or it depends on this expression",
    ),
    (
        "data.bytes",
        "the file has no `scale` in [data], or it depends on this expression, or the load brings its own data",
    ),
    (
        "data.bytes_per_scale",
        "the load reads no data, or brings its own",
    ),
];

/// A name that has no value, unless one is given.
fn lacking(name: String, why: &str) -> Fact {
    Fact {
        name,
        value: None,
        missing: Some(why.to_owned()),
        source: String::new(),
    }
}

/// Memory and CPUs of the target: as they were given, else of the sandbox that the file makes.
/// `others` have what else may be named.
fn known_of_target(
    target: &TargetPart,
    given: &GivenPart,
    others: impl Iterator<Item = Fact>,
) -> Result<Known, String> {
    let create = target.create.clone().unwrap_or_default();
    let names = NAMES.iter().map(|(name, why)| lacking((*name).to_owned(), why));
    let without: Vec<Fact> = names.chain(others).collect();
    let mut known = Known::new(&without, &[]);
    if let Some(memory) = given.memory.as_deref().or(create.memory.as_deref()) {
        known = known.given("target.memory_bytes", size_bytes(memory)?.into());
    }
    if let Some(cpus) = given.cpus.or(create.cpus) {
        known = known.given("target.cpus", number(cpus));
    }
    Ok(known)
}

/// All that expressions may name, as far as it is known when one is worked out.
fn known_of(target: &TargetPart, given: &GivenPart, load: &Table, data: &Table) -> Result<Known, String> {
    // Keys whose values are not worked out yet are none.
    let settled = |table: &Table| -> Table {
        let is_settled = |value: &Value| !value.as_str().is_some_and(|text| text.starts_with(MARK));
        table
            .iter()
            .filter(|(_, value)| is_settled(value))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    let load: LoadPart = settled(load).try_into().unwrap_or_default();
    let data: DataPart = settled(data).try_into().unwrap_or_default();
    Ok(with_load(
        &known_of_target(target, given, std::iter::empty())?,
        &load,
        &data,
    ))
}

/// With the clients and length of the load, and the size of the data.
fn with_load(known: &Known, load: &LoadPart, data: &DataPart) -> Known {
    let mut known = known.clone();
    if let Some(clients) = load.clients {
        known = known.given("load.clients", clients.into());
    }
    if let Some(measure_s) = load.measure_s {
        known = known.given("load.measure_s", number(measure_s));
    }
    let Some(dataset) = data.of_load(load) else {
        return known;
    };
    let bytes = |scale: u32| {
        DataPlan {
            fillfactor: data.fillfactor,
            partitions: data.partitions,
            ..DataPlan::new(dataset, scale)
        }
        .bytes()
    };
    known = known.given(
        "data.bytes_per_scale",
        (bytes(LARGE_SCALE) / u64::from(LARGE_SCALE)).into(),
    );
    match data.scale {
        Some(scale) => known
            .given("data.scale", scale.into())
            .given("data.bytes", bytes(scale).into()),
        None => known,
    }
}

/// Notes the value of a key for the expressions that follow; what is not a value of it would only
/// be missed by those.
fn put<Part: DeserializeOwned>(table: &mut Table, key: &str, value: &Value) -> Result<(), String> {
    let part: Result<Part, _> = Table::from_iter([(key.to_owned(), value.clone())]).try_into();
    part.map_err(|error| format!("{key} = {value}: {}", error.message()))?;
    table.insert(key.to_owned(), value.clone());
    Ok(())
}

/// All expressions of a text, in its order.
fn all(table: &Spanned<DeTable<'_>>) -> Vec<Found> {
    fn walk(value: &Spanned<DeValue<'_>>, path: &mut Vec<String>, all: &mut Vec<Found>) {
        match value.get_ref() {
            DeValue::String(text) if text.starts_with(MARK) => all.push(Found {
                path: path.clone(),
                span: value.span(),
                expression: text[MARK.len()..].to_owned(),
            }),
            DeValue::Array(items) => {
                for (i, item) in items.iter().enumerate() {
                    path.push(i.to_string());
                    walk(item, path, all);
                    path.pop();
                }
            }
            DeValue::Table(table) => {
                for (key, value) in table.iter() {
                    if TEXTS.contains(&key.get_ref().as_ref()) {
                        continue;
                    }
                    path.push(key.get_ref().to_string());
                    walk(value, path, all);
                    path.pop();
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    for (key, value) in table.get_ref().iter() {
        let key = key.get_ref().as_ref();
        if PARTS.contains(&key) {
            walk(value, &mut vec![key.to_owned()], &mut found);
        }
    }
    found
}

/// Lets a number of the schema be an expression too.
pub(super) fn allow(key: &mut serde_json::Value) {
    let types = key["type"].to_string();
    if !types.contains("integer") && !types.contains("number") {
        return;
    }
    let mut number = key.take();
    let description = number
        .as_object_mut()
        .and_then(|number| number.remove("description"));
    *key = serde_json::json!({ "anyOf": [number, { "type": "string", "pattern": format!("^{MARK}") }] });
    if let Some(description) = description {
        key["description"] = description;
    }
}

/// All conditions of a text.
fn conditions(table: &Spanned<DeTable<'_>>) -> Vec<String> {
    fn walk(value: &DeValue<'_>, in_holds: bool, all: &mut Vec<String>) {
        match value {
            DeValue::String(text) if in_holds => all.push(text.to_string()),
            DeValue::Array(items) => items.iter().for_each(|item| walk(item.get_ref(), in_holds, all)),
            DeValue::Table(table) => {
                for (key, value) in table.iter() {
                    walk(value.get_ref(), key.get_ref() == "holds", all);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    for (key, value) in table.get_ref().iter() {
        walk(value.get_ref(), key.get_ref() == "holds", &mut found);
    }
    found
}

#[cfg(test)]
mod tests;
