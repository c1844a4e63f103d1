//! Values of settings as texts: whether two ways of writing one are the same value, and what a
//! number with a unit counts.

mod legal;

pub(crate) use legal::{expected, nearest};

use pgdyno_server::{Guc, one_spelling};

/// Whether `asked` is what the server now shows. Units as PostgreSQL documents them ("Parameter
/// Names and Values").
pub fn same(asked: &str, guc: &Guc) -> bool {
    let asked = asked.trim();
    if asked.eq_ignore_ascii_case(&guc.shown) || asked.eq_ignore_ascii_case(&guc.setting) {
        return true;
    }
    match guc.vartype.as_str() {
        "bool" => truth(asked).is_some() && truth(asked) == truth(&guc.setting),
        "integer" | "real" => match (in_unit(asked, guc.unit.as_deref()), guc.setting.parse::<f64>()) {
            // An integer parameter rounds what is finer than its unit.
            (Some(a), Ok(b)) => {
                (a - b).abs()
                    <= if guc.vartype == "integer" {
                        0.5
                    } else {
                        1e-9 * b.abs()
                    }
            }
            _ => false,
        },
        // timing_clock_source = auto shows as "auto (tsc)".
        "enum" => {
            let shown = guc.setting.split(" (").next().unwrap_or_default();
            asked.eq_ignore_ascii_case(shown) || same_truth(asked, shown)
        }
        _ => one_spelling(&guc.name, asked) == one_spelling(&guc.name, &guc.shown),
    }
}

/// The word that the server takes for a value of an enumeration with these words: where they are
/// methods of compression (wal_compression), a yes means one of them.
pub(crate) fn meant<'a>(asked: &'a str, words: &[String], major: u32) -> &'a str {
    let has = |word: &str| words.iter().any(|own| own == word);
    let methods: &[&'static str] = match major {
        ..19 => &["pglz"],
        _ => &["zstd", "lz4", "pglz"],
    };
    if truth(asked.trim()) != Some(true) || !has("pglz") {
        return asked;
    }
    methods
        .iter()
        .copied()
        .find(|method| has(method))
        .unwrap_or(asked)
}

/// Whether two texts are one value, whatever knob they are of: "16GB" and "16384MB", "on" and
/// "true", "50" and "50.0".
pub fn same_texts(one: &str, other: &str) -> bool {
    let (one, other) = (one.trim(), other.trim());
    if one.eq_ignore_ascii_case(other) || truth(one).is_some() && truth(one) == truth(other) {
        return true;
    }
    ["B", "s"].iter().any(
        |base| match (in_unit(one, Some(base)), in_unit(other, Some(base))) {
            (Some(one), Some(other)) => (one - other).abs() <= 1e-9 * one.abs(),
            _ => false,
        },
    )
}

fn truth(text: &str) -> Option<bool> {
    let text = text.to_ascii_lowercase();
    match text.as_str() {
        "on" | "true" | "yes" | "1" | "t" | "y" => Some(true),
        "off" | "false" | "no" | "0" | "f" | "n" => Some(false),
        _ => None,
    }
}

/// A number with an optional unit, expressed in `base` ("8kB", "ms"). A bare number is in the base
/// unit already.
fn in_unit(text: &str, base: Option<&str>) -> Option<f64> {
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = (text[..at].trim().parse::<f64>().ok()?, text[at..].trim());
    if unit.is_empty() {
        return Some(number);
    }
    let ((kind, factor), (base_kind, base_factor)) = (factor(unit)?, base_factor(base?)?);
    (kind == base_kind).then(|| number * factor / base_factor)
}

/// Bytes or seconds in a base unit ("8kB", "ms").
fn base_factor(base: &str) -> Option<(Quantity, f64)> {
    let (multiple, unit) = unit_of(base)?;
    let (kind, factor) = factor(unit)?;
    Some((kind, factor * multiple))
}

/// A base unit ("8kB") as so many of one that a value can have ("kB").
pub(crate) fn unit_of(base: &str) -> Option<(f64, &str)> {
    let at = base.find(|c: char| c.is_ascii_alphabetic())?;
    let multiple = if at == 0 {
        1.0
    } else {
        base[..at].parse::<f64>().ok()?
    };
    factor(&base[at..]).map(|_| (multiple, &base[at..]))
}

/// How many bytes or seconds a base unit is.
pub fn base_unit(base: &str) -> Option<f64> {
    base_factor(base).map(|(_, factor)| factor)
}

/// The quantity of a number with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// A number without a unit.
    Plain,
    /// A size, in bytes.
    Bytes,
    /// A time, in seconds.
    Seconds,
}

/// A number with or without a unit, in bytes, seconds, or as it is.
pub fn quantity(text: &str) -> Option<(Quantity, f64)> {
    let text = text.trim();
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let number = text[..at]
        .trim()
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite())?;
    match text[at..].trim() {
        "" => Some((Quantity::Plain, number)),
        unit => factor(unit).map(|(kind, factor)| (kind, number * factor)),
    }
}

/// Whether both are the same yes or no.
pub fn same_truth(a: &str, b: &str) -> bool {
    truth(a.trim()).is_some() && truth(a.trim()) == truth(b.trim())
}

/// Case matters in PostgreSQL's units.
fn factor(unit: &str) -> Option<(Quantity, f64)> {
    Some(match unit {
        "B" => (Quantity::Bytes, 1.0),
        "kB" => (Quantity::Bytes, 1024.0),
        "MB" => (Quantity::Bytes, 1024.0 * 1024.0),
        "GB" => (Quantity::Bytes, 1024.0 * 1024.0 * 1024.0),
        "TB" => (Quantity::Bytes, 1024.0_f64.powi(4)),
        "us" => (Quantity::Seconds, 1e-6),
        "ms" => (Quantity::Seconds, 1e-3),
        "s" => (Quantity::Seconds, 1.0),
        "min" => (Quantity::Seconds, 60.0),
        "h" => (Quantity::Seconds, 3600.0),
        "d" => (Quantity::Seconds, 86_400.0),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn guc(vartype: &str, setting: &str, unit: Option<&str>, shown: &str) -> Guc {
        Guc {
            name: "x".into(),
            shown: shown.into(),
            setting: setting.into(),
            unit: unit.map(str::to_owned),
            context: "sighup".into(),
            vartype: vartype.into(),
            source: "default".into(),
            boot_value: None,
            pending_restart: false,
        }
    }

    #[test]
    fn a_choice_may_be_shown_with_what_it_came_to() {
        let shown = guc("enum", "auto (tsc)", None, "auto (tsc)");
        assert!(same("auto", &shown) && same("AUTO", &shown));
        assert!(!same("system", &shown));
    }

    #[test]
    fn units_are_compared_by_value() {
        let buffers = guc("integer", "32768", Some("8kB"), "256MB");
        for asked in ["256MB", "262144kB", "32768", "0.25GB"] {
            assert!(same(asked, &buffers), "{asked}");
        }
        for asked in ["128MB", "256", "256mb x", "256s"] {
            assert!(!same(asked, &buffers), "{asked}");
        }
        assert!(same("900s", &guc("integer", "900", Some("s"), "15min")));
        assert!(same("15min", &guc("integer", "900", Some("s"), "15min")));
        assert!(same("true", &guc("bool", "on", None, "on")));
        assert!(same("0.90", &guc("real", "0.9", None, "0.9")));
        assert!(!same("lz4", &guc("enum", "pglz", None, "pglz")));
    }

    #[test]
    fn a_yes_is_no_other_word_of_an_enumeration() {
        let enumeration = |word: &str| guc("enum", word, None, word);
        assert!(same("true", &enumeration("on")) && same("no", &enumeration("off")));
        for other in ["off", "try", "local", "partition", "pglz", "lz4", "zstd"] {
            assert!(!same("on", &enumeration(other)), "{other}");
            assert!(!same("yes", &enumeration(other)), "{other}");
        }
    }

    #[test]
    fn a_yes_for_methods_of_compression_means_the_version_s_own() {
        let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        let all = words("pglz lz4 zstd on off");
        assert_eq!(meant("on", &all, 18), "pglz");
        assert_eq!(meant("on", &all, 19), "zstd");
        assert_eq!(meant("true", &words("pglz lz4 on off"), 19), "lz4");
        assert_eq!(meant("on", &words("pglz on off"), 19), "pglz");
        assert_eq!(meant("off", &all, 19), "off");
        assert_eq!(meant("lz4", &all, 19), "lz4");
        assert_eq!(meant("on", &words("off on try"), 19), "on");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,30}", unit in ".{0,6}") {
            let _ = in_unit(&text, Some(&unit));
        }
    }
}
