//! Functions and filters of expressions.

use crate::known::{Known, number_of};
use minijinja::value::{Rest, Value as Engine, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Output, State};
use serde_json::Value;
use std::sync::LazyLock;

/// All functions, for "did you mean".
pub(super) const NAMES: [&str; 16] = [
    "kB", "MB", "GB", "TB", "min", "max", "sum", "count", "pick", "round", "floor", "ceil", "clamp", "known",
    "fact", "even",
];
const UNITS: [(&str, f64); 4] = [
    ("kB", 1024.0),
    ("MB", 1_048_576.0),
    ("GB", 1_073_741_824.0),
    ("TB", 1_099_511_627_776.0),
];

pub(super) fn is_function(name: &str) -> bool {
    NAMES.contains(&name)
}

type Outcome = Result<Engine, Error>;

fn wrong(reason: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, reason.into())
}

/// A finite number.
pub(super) fn number(value: &Engine) -> Result<f64, String> {
    if value.kind() != ValueKind::Number {
        return Err(format!("expected a number, found {value}"));
    }
    f64::try_from(value.clone())
        .ok()
        .filter(|number| number.is_finite())
        .ok_or_else(|| "the number is beyond all bounds".to_owned())
}

fn finite(number: f64) -> Outcome {
    if !number.is_finite() {
        return Err(wrong("the number is beyond all bounds"));
    }
    Ok(super::of_json(&number_of(number)))
}

pub(super) fn add_to(engine: &mut Environment<'static>) {
    for (name, factor) in UNITS {
        engine.add_function(name, move |n: Engine| finite(number(&n).map_err(wrong)? * factor));
    }
    engine.add_function("min", |all: Rest<Engine>| extreme(&all, f64::total_cmp));
    engine.add_function("max", |all: Rest<Engine>| extreme(&all, |a, b| b.total_cmp(a)));
    engine.add_function("sum", |list: Engine| {
        finite(known_numbers(&members(&list)?)?.iter().sum())
    });
    engine.add_function("count", |list: Engine| {
        members(&list).map(|list| Engine::from(list.len()))
    });
    engine.add_function("pick", |list: Engine, field: String| {
        let picked: Result<Vec<Engine>, Error> = members(&list)?
            .iter()
            .map(|member| {
                let value = member.get_attr(&field).unwrap_or_default();
                let absent = value.is_undefined();
                (!absent)
                    .then_some(value)
                    .ok_or_else(|| wrong(format!("a member has no field \"{field}\"")))
            })
            .collect();
        picked.map(Engine::from_iter)
    });
    engine.add_function("round", |n: Engine, digits: Option<u32>| {
        let scale = 10_f64.powi(i32::try_from(digits.unwrap_or(0).min(12)).unwrap_or(0));
        finite((number(&n).map_err(wrong)? * scale).round() / scale)
    });
    engine.add_function("floor", |n: Engine| finite(number(&n).map_err(wrong)?.floor()));
    engine.add_function("ceil", |n: Engine| finite(number(&n).map_err(wrong)?.ceil()));
    engine.add_function("even", |n: Engine| {
        finite(crate::even::even(number(&n).map_err(wrong)?.max(0.0)))
    });
    engine.add_function("clamp", |n: Engine, low: Engine, high: Engine| {
        let bounds = (number(&low).map_err(wrong)?, number(&high).map_err(wrong)?);
        if bounds.0 > bounds.1 {
            return Err(wrong(format!("clamp: {} is above {}", low, high)));
        }
        finite(number(&n).map_err(wrong)?.clamp(bounds.0, bounds.1))
    });
    engine.add_filter(super::guard::FACTOR, |value: Engine| match value.kind() {
        ValueKind::Number | ValueKind::Bool => Ok(value),
        _ => Err(wrong("only numbers can be multiplied")),
    });
    engine.add_filter("size", |n: Engine| number(&n).map(size).map_err(wrong));
    engine.add_filter("duration", |n: Engine| number(&n).map(duration).map_err(wrong));
    engine.add_filter("number", |n: Engine| number(&n).map(grouped).map_err(wrong));
    engine.add_filter("list", |list: Engine| -> Result<String, Error> {
        let texts: Vec<String> = members(&list)?.iter().map(ToString::to_string).collect();
        Ok(texts.join(", "))
    });
}

/// Functions that look names up; `None` for the others, which the engine has.
pub(super) fn of_known(name: &str, known: &Known) -> Option<Engine> {
    let known = known.clone();
    match name {
        "known" => Some(Engine::from_function(move |name: String| {
            known.get(&name).is_ok()
        })),
        "fact" => Some(Engine::from_function(move |name: String| -> Outcome {
            known.get(&name).map(super::of_json).map_err(|lacking| {
                Error::new(ErrorKind::UndefinedError, lacking.to_string()).with_source(lacking)
            })
        })),
        _ => None,
    }
}

/// Members of a list, of which there are not too many.
fn members(list: &Engine) -> Result<Vec<Engine>, Error> {
    let is_list = matches!(list.kind(), ValueKind::Seq | ValueKind::Iterable);
    if !is_list {
        return Err(wrong(format!("expected a list, found {list}")));
    }
    if list.len().is_none_or(|members| members > super::MEMBERS_MAX) {
        return Err(wrong("the list is too long"));
    }
    Ok(list.try_iter()?.collect())
}

/// The numbers of a list. A member that is not known is passed over, as SQL's aggregates do: what
/// is known says the least there is. Where no member is known, nothing is.
fn known_numbers(all: &[Engine]) -> Result<Vec<f64>, Error> {
    let known: Vec<&Engine> = all.iter().filter(|member| !member.is_none()).collect();
    if known.is_empty() && !all.is_empty() {
        return Err(wrong("no member of the list is known"));
    }
    let numbers: Result<Vec<f64>, String> = known.into_iter().map(number).collect();
    numbers.map_err(wrong)
}

/// The first in an order, of numbers or of a single list of numbers.
fn extreme(all: &[Engine], order: impl Fn(&f64, &f64) -> std::cmp::Ordering) -> Outcome {
    let listed;
    let all = match all {
        [list] if list.kind() != ValueKind::Number => {
            listed = members(list)?;
            listed.as_slice()
        }
        all => all,
    };
    known_numbers(all)?
        .into_iter()
        .min_by(order)
        .ok_or_else(|| wrong("expected a number at least"))
        .and_then(finite)
}

/// How a value is in a sentence: as a person would write it.
pub(super) fn format(out: &mut Output<'_>, _: &mut State<'_, '_>, value: &Engine) -> Result<(), Error> {
    static TRUE: LazyLock<Engine> = LazyLock::new(|| Engine::from("true"));
    let plain = super::plain(value).map_err(|lack| match lack {
        super::Lack::Reason(reason) => wrong(reason),
        super::Lack::Room(room) => wrong(format!("\"{room}\" is not a fact but the beginning of names")),
    })?;
    let text = match plain {
        Value::String(text) => text,
        Value::Bool(true) => TRUE.to_string(),
        Value::Number(number) => match number.as_f64() {
            Some(number) if number.fract() != 0.0 => trimmed(number, 3),
            _ => number.to_string(),
        },
        Value::Array(_) => return Err(wrong("a list needs the filter list or the function count")),
        other => other.to_string(),
    };
    out.write_str(&text).map_err(Error::from)
}

/// At most so many digits behind the point, without zeros at the end.
fn trimmed(number: f64, digits: usize) -> String {
    let text = format!("{number:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// 16 GB, 1.5 GB: powers of 1024, as everywhere in PostgreSQL and the kernel.
pub(crate) fn size(bytes: f64) -> String {
    const NAMES: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
    let mut value = bytes;
    let mut unit = 0;
    // What would be rounded to 1024 belongs to the next unit.
    while value.abs() >= 1023.95 && unit + 1 < NAMES.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", trimmed(value, 1), NAMES[unit])
}

/// 250 us, 1.5 s, 20 min.
pub(super) fn duration(seconds: f64) -> String {
    const NAMES: [(&str, f64); 6] = [
        ("d", 86_400.0),
        ("h", 3600.0),
        ("min", 60.0),
        ("s", 1.0),
        ("ms", 1e-3),
        ("us", 1e-6),
    ];
    // A tenth of a millionth below a unit is that unit, badly added up.
    let (name, factor) = NAMES
        .into_iter()
        .find(|(_, factor)| seconds.abs() >= factor * (1.0 - 1e-7))
        .unwrap_or(("s", 1.0));
    format!("{} {name}", trimmed(seconds / factor, 1))
}

/// 1,234,567 and 0.25.
pub(super) fn grouped(number: f64) -> String {
    let text = trimmed(number, 2);
    let (sign, text) = text
        .strip_prefix('-')
        .map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, rest) = text.find('.').map_or((text, ""), |at| text.split_at(at));
    let mut groups: Vec<&str> = Vec::new();
    let mut left = whole;
    while left.len() > 3 {
        let (head, tail) = left.split_at(left.len() - 3);
        groups.push(tail);
        left = head;
    }
    groups.push(left);
    groups.reverse();
    format!("{sign}{}{rest}", groups.join(","))
}
