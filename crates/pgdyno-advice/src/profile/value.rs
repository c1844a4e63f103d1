//! Values of a profile as texts that a knob takes, and two such texts compared.

use super::Unit;
use pgdyno_knobs::{Form, Kind, Knob, gucvalue::quantity};

const KB: f64 = 1024.0;
const MB: f64 = KB * 1024.0;
const GB: f64 = MB * 1024.0;
/// From here on a size is rounded down to whole MB, below to whole kB: less than matters in any
/// such setting.
const WHOLE_MB_FROM: f64 = 16.0 * MB;

/// A number without zeros at its end.
pub(super) fn plain(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A whole number, where it is exact as a floating-point number.
pub(super) fn exact(number: i64) -> Option<f64> {
    const EXACT: i64 = 1 << 53;
    #[expect(clippy::cast_precision_loss, reason = "within what is exact")]
    (-EXACT..=EXACT).contains(&number).then_some(number as f64)
}

/// A number as a knob takes it; `Err` says what does not fit.
pub(super) fn text_of(number: f64, unit: Option<Unit>, knob: &Knob) -> Result<String, String> {
    if !number.is_finite() {
        return Err("the value is beyond all bounds".into());
    }
    // What is below zero means itself to a server; no kernel takes less than nothing.
    match (unit, knob.kind) {
        (Some(Unit::Bytes), Kind::Guc) if number > 0.0 => Ok(bytes(number)),
        (Some(Unit::Seconds), Kind::Guc) if number > 0.0 => Ok(seconds(number)),
        (_, Kind::Guc) => Ok(plain(number)),
        (Some(unit), _) => {
            let number = in_unit_of(number, unit, knob)?;
            Ok(plain(number.floor()))
        }
        (None, _) if knob.form == Form::Decimal => Ok(plain(number)),
        (None, _) => Ok(plain(number.floor())),
    }
}

/// A value that an expression gave, as a knob takes it: a number is bytes for a knob that is a
/// size, else in the knob's own unit.
pub fn knob_text(value: &serde_json::Value, knob: &Knob) -> Result<String, String> {
    let is_size = matches!(knob.unit.as_deref(), Some("bytes" | "kB" | "8kB" | "MB"));
    of_json(value, is_size.then_some(Unit::Bytes), knob)
}

/// A value that an expression gave, where `unit` says what its numbers are.
pub(super) fn of_json(found: &serde_json::Value, unit: Option<Unit>, knob: &Knob) -> Result<String, String> {
    match found {
        serde_json::Value::String(text) => Ok(text.clone()),
        serde_json::Value::Bool(truth) => Ok(if *truth { "on" } else { "off" }.to_owned()),
        serde_json::Value::Number(number) => text_of(number.as_f64().unwrap_or(f64::NAN), unit, knob),
        other => Err(format!("expected a number, a text, true or false, found {other}")),
    }
}

/// 4GB, 1500MB, 512kB: the largest unit that it is a whole number of, after rounding down.
fn bytes(number: f64) -> String {
    let step = if number >= WHOLE_MB_FROM { MB } else { KB };
    let rounded = (number / step).floor() * step;
    if rounded == 0.0 {
        return format!("{}B", number.floor());
    }
    let (unit, factor) = [("GB", GB), ("MB", MB), ("kB", KB)]
        .into_iter()
        .find(|(_, factor)| rounded % factor == 0.0)
        .unwrap_or(("B", 1.0));
    format!("{}{unit}", rounded / factor)
}

fn seconds(number: f64) -> String {
    let ms = (number * 1000.0).round();
    if ms < 1.0 {
        return format!("{}us", (number * 1e6).round());
    }
    let (unit, factor) = [("h", 3_600_000.0), ("min", 60_000.0), ("s", 1000.0)]
        .into_iter()
        .find(|(_, factor)| ms % factor == 0.0)
        .unwrap_or(("ms", 1.0));
    format!("{}{unit}", ms / factor)
}

/// A kernel's number from bytes or seconds.
fn in_unit_of(number: f64, unit: Unit, knob: &Knob) -> Result<f64, String> {
    let factor = match (unit, knob.unit.as_deref()) {
        (Unit::Bytes, None | Some("bytes")) | (Unit::Seconds, Some("s" | "seconds")) => 1.0,
        (Unit::Bytes, Some("kB")) => 1.0 / KB,
        (Unit::Bytes, Some("MB")) => 1.0 / MB,
        (Unit::Seconds, Some("ms")) => 1e3,
        (Unit::Seconds, Some("us")) => 1e6,
        (Unit::Seconds, Some("ns")) => 1e9,
        (_, other) => {
            return Err(format!(
                "{} is counted in {}; expected a number of those",
                knob.id,
                other.unwrap_or("units of its own")
            ));
        }
    };
    Ok(number * factor)
}

/// Order of two values; `None` where they cannot be compared.
pub(super) fn compare(a: &str, b: &str) -> Option<std::cmp::Ordering> {
    let ((kind_a, a), (kind_b, b)) = (quantity(a)?, quantity(b)?);
    let is_alike = kind_a == kind_b || a == 0.0 || b == 0.0;
    // Below zero a value is a word: "as another setting", "never".
    (is_alike && a >= 0.0 && b >= 0.0).then(|| a.total_cmp(&b))
}

/// Whether two texts mean the same value.
pub(super) fn same(a: &str, b: &str) -> bool {
    let normal = |text: &str| {
        text.split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .to_ascii_lowercase()
    };
    if normal(a) == normal(b) {
        return true;
    }
    match (quantity(a), quantity(b)) {
        (Some((kind_a, a)), Some((kind_b, b))) => {
            (kind_a == kind_b || a == 0.0 && b == 0.0) && (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
        }
        _ => pgdyno_knobs::gucvalue::same_truth(a, b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering;

    #[test]
    fn sizes_and_times_are_rounded_down_to_what_a_server_takes() {
        for (number, expected) in [
            (4_294_967_296.0, "4GB"),
            (1_572_864_000.5, "1500MB"),
            (1_600_000_000.0, "1525MB"),
            (4_194_304.0, "4MB"),
            (4_500_000.0, "4394kB"),
            (500.0, "500B"),
        ] {
            assert_eq!(bytes(number), expected, "{number}");
        }
        for (number, expected) in [
            (900.0, "15min"),
            (7200.0, "2h"),
            (0.2, "200ms"),
            (45.0, "45s"),
            (1.5, "1500ms"),
            (0.00001, "10us"),
        ] {
            assert_eq!(seconds(number), expected, "{number}");
        }
        assert_eq!(plain(0.9), "0.9");
        assert_eq!(plain(200.0), "200");
        assert_eq!(plain(1e6), "1000000");
    }

    #[test]
    fn values_are_compared_by_what_they_mean() {
        assert_eq!(compare("128MB", "0.125GB"), Some(Ordering::Equal));
        assert_eq!(compare("4kB", "1MB"), Some(Ordering::Less));
        assert_eq!(compare("10", "9"), Some(Ordering::Greater));
        assert_eq!(compare("0", "1min"), Some(Ordering::Less));
        assert_eq!(compare("-1", "1min"), None);
        assert_eq!(compare("1GB", "10min"), None);
        assert!(same("on", "true") && same("4096 16384", "4096\t16384") && same("0.9", "0.90"));
        assert!(!same("on", "off") && !same("1GB", "1min") && !same("lz4", "pglz"));
    }
}
