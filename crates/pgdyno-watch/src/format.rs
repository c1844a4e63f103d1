//! Numbers and texts for a terminal: few characters, the unit beside them, a dash where there is
//! nothing.

use pgdyno_stats::three_digits;
use ratatui::text::Span;

/// Shown where a value is not known.
pub(crate) const NOTHING: &str = "-";

/// A number per second and the like with three digits or more: 0, 0.0123, 0.250, 7.42, 812, 12345,
/// 1.20M; a whole number without decimals.
pub(crate) fn number(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        v if v.fract() == 0.0 && v < 99_999.5 => format!("{v:.0}"),
        v if v < 0.0995 => format!("{v:.4}"),
        v if v < 0.9995 => format!("{v:.3}"),
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v if v < 99_999.5 => format!("{v:.0}"),
        v if v < 9_999_500.0 => format!("{:.0}k", v / 1e3),
        v if v < 99_950_000.0 => format!("{:.2}M", v / 1e6),
        v if v < 9_999_500_000.0 => format!("{:.0}M", v / 1e6),
        v => format!("{:.2}G", v / 1e9),
    }
}

/// Bytes in powers of 1024, as everywhere in PostgreSQL and the kernel.
pub(crate) fn bytes(value: f64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if value < 1024.0 {
        return format!("{value:.0} B");
    }
    let (mut value, mut unit) = (value / 1024.0, 0);
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value < 9.95 {
        format!("{value:.1} {}", UNITS[unit])
    } else {
        format!("{value:.0} {}", UNITS[unit])
    }
}

/// A share, 0 to 1.
pub(crate) fn percent(ratio: f64) -> String {
    format!("{:.0} %", ratio * 100.0)
}

/// Milliseconds with three digits, down to one of a microsecond: a column has seven characters.
pub(crate) fn ms(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        v if v < 0.00995 => format!("{v:.5}"),
        v if v < 0.0995 => format!("{v:.4}"),
        v if v < 0.9995 => format!("{v:.3}"),
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// A span of time with its two largest units.
pub(crate) fn span(seconds: f64) -> String {
    const MINUTE: f64 = 60.0;
    const HOUR: f64 = 3600.0;
    const DAY: f64 = 86_400.0;
    const YEAR: f64 = 365.25 * DAY;
    let two = |large: f64, l: &str, small: f64, s: &str| {
        let (whole, rest) = ((seconds / large).floor(), seconds % large);
        format!("{whole:.0} {l} {:.0} {s}", (rest / small).floor())
    };
    match seconds {
        s if s < 9.95 && s.fract() != 0.0 => format!("{s:.1} s"),
        s if s < MINUTE => format!("{s:.0} s"),
        s if s < HOUR => two(MINUTE, "min", 1.0, "s"),
        s if s < DAY => two(HOUR, "h", MINUTE, "min"),
        s if s < YEAR => two(DAY, "d", HOUR, "h"),
        s if s < 1000.0 * YEAR => two(YEAR, "y", DAY, "d"),
        _ => "> 1000 y".into(),
    }
}

/// A span of time for a column: seven characters at most.
pub(crate) fn brief(seconds: f64) -> String {
    match seconds {
        s if s <= 0.0 => "0 ms".into(),
        s if s < 0.000_999_5 => format!("{} us", three_digits(s * 1e6)),
        s if s < 0.9995 => format!("{} ms", three_digits(s * 1e3)),
        s if s < 99.95 => format!("{s:.1} s"),
        s if s < 5_997.0 => format!("{:.1} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.0} d", s / 86_400.0),
    }
}

/// A value as text, or the dash.
pub(crate) fn known(value: Option<f64>, as_text: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| NOTHING.to_owned(), as_text)
}

/// Columns of a terminal that a text takes.
pub(crate) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// At most `columns` wide, a longer text cut with a mark. What could move the cursor is replaced by
/// blanks: names and statements are foreign texts.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    let clean: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if width(&clean) <= columns {
        return clean;
    }
    let mut short = String::new();
    let mut taken = 0;
    for c in clean.chars() {
        let wide = width(c.encode_utf8(&mut [0; 4]));
        if taken + wide + 1 > columns {
            break;
        }
        short.push(c);
        taken += wide;
    }
    if columns > 0 {
        short.push('~');
    }
    short
}

/// The text in exactly `columns` columns, cut or padded.
pub(crate) fn pad(text: &str, columns: usize, right: bool) -> String {
    let short = cut(text, columns);
    let blanks = " ".repeat(columns.saturating_sub(width(&short)));
    if right {
        format!("{blanks}{short}")
    } else {
        format!("{short}{blanks}")
    }
}

/// Lines of at most `columns`, broken between words.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("never empty");
        if line.is_empty() {
            line.push_str(&cut(word, columns));
        } else if width(line) + 1 + width(word) <= columns {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(cut(word, columns));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_keep_to_few_characters() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (0.0123, "0.0123"),
            (0.254, "0.254"),
            (7.444, "7.44"),
            (34.0, "34"),
            (99.96, "100"),
            (12_345.0, "12345"),
            (123_456.0, "123k"),
            (12_345_678.0, "12.35M"),
            (123_456_789.0, "123M"),
            (2e10, "20.00G"),
        ] {
            assert_eq!(number(value), text);
        }
        for (value, text) in [
            (12.0, "12 B"),
            (1024.0, "1.0 kB"),
            (999.0 * 1024.0, "999 kB"),
            (1_048_576.0 * 12.3, "12 MB"),
            (1_073_741_824.0 * 2.5, "2.5 GB"),
        ] {
            assert_eq!(bytes(value), text);
        }
        for (value, text) in [
            (0.42, "0.4 s"),
            (2.0, "2 s"),
            (59.0, "59 s"),
            (125.0, "2 min 5 s"),
            (7_300.0, "2 h 1 min"),
            (90_000.0, "1 d 1 h"),
            (4e7, "1 y 97 d"),
            (1e12, "> 1000 y"),
        ] {
            assert_eq!(span(value), text);
        }
        for (value, text) in [
            (0.0, "0 ms"),
            (0.000_004, "4.00 us"),
            (0.0042, "4.20 ms"),
            (0.42, "420 ms"),
            (12.5, "12.5 s"),
            (431.0, "7.2 min"),
            (7_300.0, "2.0 h"),
            (1e6, "12 d"),
        ] {
            assert_eq!(brief(value), text);
        }
        for (value, text) in [
            (0.0, "0"),
            (0.004, "0.00400"),
            (0.0312, "0.0312"),
            (0.34, "0.340"),
            (9.999, "10.0"),
            (3500.4, "3500"),
        ] {
            assert_eq!(ms(value), text);
        }
        assert_eq!(known(None, number), "-");
    }

    #[test]
    fn texts_are_cut_and_harmless() {
        assert_eq!(cut("abcdef", 4), "abc~");
        assert_eq!(cut("a\x1b[2Jb\nc", 20), "a [2Jb c");
        assert_eq!(pad("7", 3, true), "  7");
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
    }

    proptest! {
        #[test]
        fn nothing_is_wider_than_asked(text in "\\PC{0,40}", columns in 0_usize..30) {
            prop_assert!(width(&cut(&text, columns)) <= columns);
            for line in wrap(&text, columns.max(1)) {
                prop_assert!(width(&line) <= columns.max(1));
            }
        }
    }
}
