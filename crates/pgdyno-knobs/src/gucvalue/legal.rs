//! Whether a server takes a value for a parameter, by what pg_settings says of it ("Parameter Names
//! and Values" in PostgreSQL's manual).

use super::{base_factor, factor};
use pgdyno_server::{Guc, GucBounds};

/// Words of a boolean; each may be shortened as long as it is not a beginning of another.
const TRUTHS: [&str; 6] = ["true", "false", "yes", "no", "on", "off"];
/// Older words of enumerations that pg_settings does not list.
const HIDDEN: [(&str, &str); 3] = [
    ("archive", "replica"),
    ("hot_standby", "replica"),
    ("debug", "debug2"),
];

/// What the server expects, where it would refuse the value; `None` where it takes it, or only the
/// server decides.
pub(crate) fn expected(value: &str, guc: &Guc, bounds: &GucBounds) -> Option<String> {
    match guc.vartype.as_str() {
        "bool" => (!is_truth(value)).then(|| "on or off".to_owned()),
        "enum" => (!is_word(value, &bounds.words)).then(|| format!("one of {}", bounds.words.join(", "))),
        "integer" | "real" => {
            let whole = guc.vartype == "integer";
            let number = number(value, guc.unit.as_deref(), whole).map(|n| if whole { n.round() } else { n });
            let above = |n: f64| bounds.min.is_none_or(|min| n >= min);
            let below = |n: f64| bounds.max.is_none_or(|max| n <= max);
            let fits = number.is_some_and(|n| above(n) && below(n));
            (!fits).then(|| range(guc, bounds))
        }
        _ => None,
    }
}

/// The legal number next to one that is out of range, in the parameter's unit.
pub(crate) fn nearest(value: &str, guc: &Guc, bounds: &GucBounds) -> Option<String> {
    let whole = match guc.vartype.as_str() {
        "integer" => true,
        "real" => false,
        _ => return None,
    };
    let number = number(value, guc.unit.as_deref(), whole)?;
    let above = bounds.min.map_or(number, |min| number.max(min));
    Some(bounds.max.map_or(above, |max| above.min(max)).to_string())
}

fn range(guc: &Guc, bounds: &GucBounds) -> String {
    let bound = |bound: Option<f64>| bound.map_or_else(|| "any".to_owned(), |bound| bound.to_string());
    let unit = match guc.unit.as_deref() {
        Some(unit) => {
            let units = match factor_kind_is_bytes(unit) {
                true => "B, kB, MB, GB or TB",
                false => "us, ms, s, min, h or d",
            };
            format!(" in units of {unit}, or a number with {units}")
        }
        None => " without a unit".to_owned(),
    };
    format!(
        "a number from {} to {}{unit}",
        bound(bounds.min),
        bound(bounds.max)
    )
}

fn factor_kind_is_bytes(unit: &str) -> bool {
    matches!(base_factor(unit), Some((super::Quantity::Bytes, _)))
}

fn is_truth(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    if value == "1" || value == "0" {
        return true;
    }
    // "o" begins both on and off.
    let begun = TRUTHS.iter().filter(|word| word.starts_with(&value)).count();
    !value.is_empty() && begun == 1
}

fn is_word(value: &str, words: &[String]) -> bool {
    let has = |wanted: &str| words.iter().any(|word| word.eq_ignore_ascii_case(wanted));
    let hidden = HIDDEN
        .iter()
        .any(|(old, new)| old.eq_ignore_ascii_case(value) && has(new));
    let truth = ["true", "false", "yes", "no", "1", "0"]
        .iter()
        .any(|word| word.eq_ignore_ascii_case(value));
    has(value) || hidden || (truth && has("on"))
}

/// A number as the server reads it, in the parameter's unit. Integers may be hexadecimal or octal.
fn number(text: &str, unit: Option<&str>, whole: bool) -> Option<f64> {
    let text = text.trim();
    let (number, rest) = leading_number(text, whole)?;
    let given = rest.trim();
    if given.is_empty() {
        return Some(number);
    }
    let ((kind, by), (base, per)) = (factor(given)?, base_factor(unit?)?);
    (kind == base).then(|| number * by / per)
}

fn leading_number(text: &str, whole: bool) -> Option<(f64, &str)> {
    let sign = usize::from(text.starts_with(['-', '+']));
    let digits = &text[sign..];
    let negative = text.starts_with('-');
    let signed = |n: f64| if negative { -n } else { n };
    if let Some(hex) = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
        .filter(|_| whole)
    {
        let end = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
        #[expect(clippy::cast_precision_loss, reason = "beyond 53 bits every parameter ends")]
        let n = u64::from_str_radix(&hex[..end], 16).ok()? as f64;
        return Some((signed(n), &hex[end..]));
    }
    let end_of_digits = |from: usize| {
        let bytes = digits.as_bytes();
        from + bytes[from..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let mut end = end_of_digits(0);
    let is_octal = whole && end > 1 && digits.starts_with('0') && !digits[end..].starts_with(['.', 'e', 'E']);
    if is_octal {
        #[expect(clippy::cast_precision_loss, reason = "beyond 53 bits every parameter ends")]
        let n = u64::from_str_radix(&digits[..end], 8).ok()? as f64;
        return Some((signed(n), &digits[end..]));
    }
    if digits[end..].starts_with('.') {
        end = end_of_digits(end + 1);
    }
    if digits[end..].starts_with(['e', 'E']) {
        let sign = usize::from(digits[end + 1..].starts_with(['-', '+']));
        let power = end_of_digits(end + 1 + sign);
        if power > end + 1 + sign {
            end = power;
        }
    }
    let n = digits[..end].parse::<f64>().ok().filter(|n| n.is_finite())?;
    Some((signed(n), &digits[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn guc(vartype: &str, unit: Option<&str>) -> Guc {
        Guc {
            name: "x".into(),
            shown: String::new(),
            setting: String::new(),
            unit: unit.map(str::to_owned),
            context: "sighup".into(),
            vartype: vartype.into(),
            source: "default".into(),
            boot_value: None,
            pending_restart: false,
        }
    }

    #[test]
    fn values_are_taken_or_refused_as_the_server_does() {
        let check =
            |vartype: &str, unit: Option<&str>, bounds: &GucBounds, taken: &[&str], refused: &[&str]| {
                let guc = guc(vartype, unit);
                for value in taken {
                    assert_eq!(expected(value, &guc, bounds), None, "{value}");
                }
                for value in refused {
                    assert!(expected(value, &guc, bounds).is_some(), "{value}");
                }
            };
        let range = |min: f64, max: f64| GucBounds {
            min: Some(min),
            max: Some(max),
            words: Vec::new(),
        };
        let words = |words: &[&str]| GucBounds {
            words: words.iter().map(|&word| word.to_owned()).collect(),
            ..GucBounds::default()
        };
        check(
            "integer",
            Some("8kB"),
            &range(16.0, 1_073_741_823.0),
            &["128MB", "16", " 0x100 ", "1.5GB", "1e3", "0.5 TB", "8191GB"],
            &[
                "15",
                "100TB",
                "8 bananas",
                "128mb",
                "5s",
                "",
                "-1",
                "1..2MB",
                "MB",
                "9999TB",
            ],
        );
        check(
            "integer",
            None,
            &range(1.0, 100.0),
            &["7", "010", "99.4"],
            &["101", "7kB", "x"],
        );
        check(
            "integer",
            Some("ms"),
            &range(-1.0, 3.6e6),
            &["-1", "1h", "10 min"],
            &["2h", "-2", "1MB"],
        );
        check(
            "real",
            None,
            &range(0.0, 1.0),
            &["0.9", "1e-1", ".5"],
            &["1.1", "0x1", "half"],
        );
        check(
            "bool",
            None,
            &GucBounds::default(),
            &["on", "F", "tr", "OFF", "1"],
            &["o", "maybe", "2", ""],
        );
        check(
            "enum",
            None,
            &words(&["off", "on", "remote_write"]),
            &["Remote_Write", "true", "0"],
            &["sync", "remote"],
        );
        check(
            "enum",
            None,
            &words(&["minimal", "replica"]),
            &["hot_standby"],
            &["on", "debug"],
        );
        let timeout = guc("integer", Some("s"));
        assert_eq!(
            nearest("2d", &timeout, &range(30.0, 86_400.0)).as_deref(),
            Some("86400")
        );
        assert_eq!(
            nearest("1", &timeout, &range(30.0, 86_400.0)).as_deref(),
            Some("30")
        );
        assert_eq!(nearest("x", &timeout, &range(30.0, 86_400.0)), None);
        check("string", None, &GucBounds::default(), &["anything at all"], &[]);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,30}", unit in "\\PC{0,6}", whole: bool) {
            let _ = number(&text, Some(&unit), whole);
        }
    }
}
