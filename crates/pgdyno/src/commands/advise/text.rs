//! Advice as a page for the terminal: a table with a line each, and on demand all about one of
//! them.

use super::cells::{now_cell, what};
use super::{Page, amount, colour, detail};
use crate::output::Styled;
use crate::repeated::shell_word;
use crate::show::wrapped_at;
use pgdyno_advice::{Advice, Shown, SizingLine};
use std::fmt::Write;

/// The column of severities, which explain themselves.
const SEVERITY: usize = 6;
/// Number of blanks between columns.
const GAP: usize = 2;
/// Widest columns of names and of values; what is longer is cut, and whole in the details.
const NAME_MAX: usize = 38;
const VALUE_MAX: usize = 22;
/// Fewer columns than this show nothing of what is expected.
const EXPECTED_MIN: usize = 8;
/// Text is cut where so many columns are left for it, and omitted where there are fewer.
const ROOM_FOR_TEXT: usize = 14;
/// Terminals narrower than this have smaller columns of values.
const NARROW: usize = 100;
const VALUE_MAX_NARROW: usize = 14;

pub(super) fn page(page: &Page<'_>, width: usize) -> Styled {
    let mut out = Styled::default();
    let heading = match page.what.is_empty() {
        true => page.name.clone(),
        false => format!("{}: {}", page.name, page.what),
    };
    out += &wrapped_at("", &heading, 2, width);
    out += &wrapped_at("", &page.counts(), 2, width);
    if page.details.is_empty() {
        summary(&mut out, page, width);
    } else {
        detail::all(&mut out, page, width);
    }
    if page.verbose {
        sizing(&mut out, &page.advised.sizing, width);
        let aside = page.advised.skipped.iter();
        let aside = aside.map(|aside| (&*aside.recommended, &*aside.because));
        list(&mut out, "NOT ADVISED, THOUGH A RULE WOULD", aside, width);
        let not_judged = page.advised.not_judged.iter();
        let not_judged = not_judged.map(|rule| (&*rule.rule, &*rule.because));
        list(&mut out, "NOT JUDGED", not_judged, width);
    }
    out.trimmed()
}

fn summary(out: &mut Styled, page: &Page<'_>, width: usize) {
    let shown = page.shown();
    out.push_str("\n");
    match shown.first() {
        None => out.push_str("Nothing is advised.\n"),
        Some(first) => {
            table(out, &shown, width);
            out.push_str("\n");
            let first = shell_word(&what(first));
            let _ = writeln!(out, "Why and how: {} --detail {first} (or all)", page.command());
        }
    }
    *out += &wrapped_at("", &page.rest(), 2, width);
}

fn table(out: &mut Styled, shown: &[&Advice], width: usize) {
    let longest = |heading: &str, most: usize, cells: &dyn Fn(&Advice) -> Option<String>| {
        let cells = shown.iter().filter_map(|advice| cells(advice));
        let longest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        longest.min(most).max(heading.len())
    };
    let of_setting =
        |cell: fn(&Advice) -> String| move |advice: &Advice| advice.setting.is_some().then(|| cell(advice));
    let value_max = if width < NARROW {
        VALUE_MAX_NARROW
    } else {
        VALUE_MAX
    };
    let name = longest("what", NAME_MAX, &|advice| Some(what(advice)));
    let now = longest("now", value_max, &of_setting(now_cell));
    let advised = longest("advised", value_max, &of_setting(advised_cell));
    let left = SEVERITY + GAP + name + GAP;
    let right = left + now + GAP + advised + GAP;
    let has_expected = width >= right + EXPECTED_MIN;
    let line = |cells: [&str; 3], expected: &dyn Fn(usize) -> String| {
        let [name_cell, now_cell, advised_cell] = cells;
        let mut line = format!(
            "{}  {}  {}",
            padded(name_cell, name),
            padded(now_cell, now),
            padded(advised_cell, advised)
        );
        if has_expected {
            let _ = write!(line, "  {}", expected(width - right));
        }
        line.trim_end().to_owned()
    };
    let _ = writeln!(
        out,
        "{:SEVERITY$}  {}",
        "",
        line(["what", "now", "advised"], &|_| "expected".to_owned())
    );
    for advice in shown {
        let word = format!("{:SEVERITY$}", advice.severity.name());
        let rest = match &advice.setting {
            Some(_) => line(
                [&what(advice), &now_cell(advice), &advised_cell(advice)],
                &|columns| brief(advice, columns),
            ),
            // What is not a setting has no values: what is found takes their place.
            None => {
                let found = cut(&advice.why, width.saturating_sub(left));
                format!("{}  {found}", padded(&what(advice), name))
            }
        };
        out.push_styled(colour(advice.severity), &word);
        let _ = writeln!(out, "  {rest}");
    }
}

fn advised_cell(advice: &Advice) -> String {
    let means = advice.recommended_means.as_ref();
    means.unwrap_or(&advice.recommended).clone()
}

/// What is expected, in so many columns: a few words, or the number alone.
fn brief(advice: &Advice, columns: usize) -> String {
    let (short, rest) = match (&advice.measured, advice.effect.low, advice.effect.high) {
        (Some(measured), ..) if measured.verdict == Shown::Better => {
            (format!("{:+.1} %", measured.percent), " measured here".to_owned())
        }
        (_, Some(0.0), Some(0.0)) => ("0 %".to_owned(), format!(" {}", advice.effect.of)),
        (_, Some(low), Some(high)) => {
            let signed = |n: f64| {
                if n == 0.0 {
                    "0".to_owned()
                } else {
                    format!("{n:+}")
                }
            };
            let short = format!("{} to {} %", signed(low), signed(high));
            (short, format!(" {}", advice.effect.of))
        }
        _ => {
            let note = advice.effect.note.as_ref().map(|note| format!(": {note}"));
            (advice.effect.of.clone(), note.unwrap_or_default())
        }
    };
    let has_room = columns >= short.chars().count() + rest.chars().count().min(ROOM_FOR_TEXT);
    cut(&if has_room { short + &rest } else { short }, columns)
}

fn padded(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    let blanks = columns.saturating_sub(text.chars().count());
    format!("{text}{}", " ".repeat(blanks))
}

/// At most so many characters; of a longer text whole words where there are some, and an ellipsis.
fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept: String = text.chars().take(columns.saturating_sub(1)).collect();
    let is_whole = text.chars().nth(kept.chars().count()) == Some(' ');
    let kept = match kept.rsplit_once(' ') {
        _ if is_whole => kept.as_str(),
        Some((words, _)) if words.chars().count() * 2 > columns => words,
        _ => kept.as_str(),
    };
    format!("{}\u{2026}", kept.trim_end_matches([' ', ',', ':', ';']))
}

fn sizing(out: &mut Styled, lines: &[SizingLine], width: usize) {
    if lines.is_empty() {
        return;
    }
    out.push_str("\nSIZING\n");
    for line in lines {
        let note = line.note.as_ref().map(|note| format!(" ({note})"));
        out.push_str("\n");
        let total = amount(line.total, line.is_bytes);
        let text = format!("{}: {total}{}", line.title, note.unwrap_or_default());
        *out += &wrapped_at("  ", &text, 4, width);
        let amounts: Vec<String> = line
            .terms
            .iter()
            .map(|term| amount(term.value, line.is_bytes))
            .collect();
        let column = amounts.iter().map(String::len).max().unwrap_or(0);
        for (term, amount) in line.terms.iter().zip(&amounts) {
            let head = format!("    {amount:>column$}  ");
            *out += &wrapped_at(&head, &term.text, head.len(), width);
        }
    }
}

fn list<'a>(out: &mut Styled, title: &str, lines: impl Iterator<Item = (&'a str, &'a str)>, width: usize) {
    let lines: Vec<(&str, &str)> = lines.collect();
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}");
    for (what, why) in lines {
        *out += &wrapped_at("  ", &format!("{what}: {why}"), 4, width);
    }
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_text_that_is_too_long_is_cut_between_words() {
        assert_eq!(cut("shared_buffers", 14), "shared_buffers");
        assert_eq!(cut("There is no swap at all", 20), "There is no swap at\u{2026}");
        assert_eq!(cut("pg_stat_statements", 10), "pg_stat_s\u{2026}");
        for columns in 1..30 {
            assert!(cut("There is no swap, at all: none", columns).chars().count() <= columns);
        }
    }
}
