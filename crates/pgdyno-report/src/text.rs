//! Numbers and verdicts as text, for Markdown, the terminal and the answer.

use pgdyno_record::MetricWords;
use pgdyno_stats::{Effect, Verdict, three_digits};

/// The head of a column of a figure, by its name: "TPS", "p95 ms", "job, s".
pub fn figure_heading(name: &str) -> String {
    MetricWords::of(name).column
}

/// A figure's value without its unit, in three significant digits and all of those before the
/// point.
pub fn figure_value(value: f64) -> String {
    number(value)
}

/// "+17.2 % (+14.1 … +20.4)".
pub fn effect(effect: &Effect) -> String {
    format!(
        "{} % ({} … {})",
        percent(effect.ratio),
        percent(effect.ratio_low),
        percent(effect.ratio_high)
    )
}

/// A bound beyond this says that nothing is known, as of two trials: its digits say no more.
const RATIO_SHOWN_MAX: f64 = 1000.0;

/// Change in percent with its sign and one digit: 1.172 is "+17.2".
pub(crate) fn percent(ratio: f64) -> String {
    if ratio > RATIO_SHOWN_MAX {
        return format!("over {}", percent(RATIO_SHOWN_MAX));
    }
    let change = (ratio - 1.0) * 100.0;
    let rounded = format!("{change:+.1}");
    match rounded.as_str() {
        "-0.0" | "+0.0" => "0.0".to_owned(),
        _ => rounded.replace('-', "\u{2212}"),
    }
}

/// A share as it was given, "7 %": without what its binary form has beyond that.
pub(crate) fn share(share: f64) -> String {
    format!("{} %", (share * 1e8).round() / 1e6)
}

/// The word of a verdict, with what it is "the same" within.
pub fn verdict_word(verdict: Verdict, smallest_effect: f64) -> String {
    match verdict {
        Verdict::Better => "better".to_owned(),
        Verdict::Worse => "worse".to_owned(),
        Verdict::Same => format!("the same within {}", share(smallest_effect)),
        Verdict::NoGain => format!("no gain of {}", share(smallest_effect)),
        Verdict::Undecided => "undecided".to_owned(),
    }
}

/// Three significant digits and all of those before the point, in groups: "12,346", "12.3",
/// "0.310".
pub(crate) fn number(value: f64) -> String {
    let digits = three_digits(value);
    let bare = digits.strip_prefix('-');
    let text = bare.unwrap_or(&digits);
    let whole = text.find('.').unwrap_or(text.len());
    let mut grouped = String::new();
    for (i, digit) in text.chars().enumerate() {
        if i > 0 && i < whole && (whole - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match bare {
        Some(_) => format!("\u{2212}{grouped}"),
        None => grouped,
    }
}

/// Items as a list in a sentence: "a, b and c".
pub(crate) fn listed(items: &[&str]) -> String {
    match items {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_and_signed() {
        assert_eq!(percent(1.1724), "+17.2");
        assert_eq!(percent(0.98), "\u{2212}2.0");
        assert_eq!(percent(0.99999), "0.0");
        assert_eq!(
            (&*percent(1000.0), &*percent(1e40)),
            ("+99900.0", "over +99900.0")
        );
        assert_eq!([0.07, 0.28, 0.02].map(share), ["7 %", "28 %", "2 %"]);
        assert_eq!(number(1234.6), "1,235");
        assert_eq!(number(1_234_567.0), "1,234,567");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(0.3104), "0.310");
        assert_eq!(number(-4.5678), "\u{2212}4.57");
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
    }
}
