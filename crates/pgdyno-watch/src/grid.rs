//! Tables and other shapes of text, as lines.

use super::format::{cut, pad, width};
use super::keys::State;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// A column of a table.
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) width: usize,
    pub(crate) right: bool,
}

/// A column of texts, aligned to the left.
pub(crate) const fn left(title: &'static str, width: usize) -> Column {
    Column {
        title,
        width,
        right: false,
    }
}

/// A column of numbers, aligned to the right.
pub(crate) const fn right(title: &'static str, width: usize) -> Column {
    Column {
        title,
        width,
        right: true,
    }
}

/// Styles by meaning. Without colour there are bold and reversed letters.
pub(crate) fn title(state: &State) -> Style {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    if state.colour { bold.fg(Color::Cyan) } else { bold }
}

/// Style of values that warn.
pub(crate) fn alarm(state: &State) -> Style {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    if state.colour { bold.fg(Color::Red) } else { bold }
}

/// Style of remarks beside the values.
pub(crate) fn aside(state: &State) -> Style {
    if state.colour {
        Style::new().fg(Color::DarkGray)
    } else {
        Style::new()
    }
}

/// A line of plain text.
pub(crate) fn plain(text: impl Into<String>) -> Line<'static> {
    Line::from(text.into())
}

/// A line that is a heading.
pub(crate) fn heading(text: impl Into<String>, state: &State) -> Line<'static> {
    Line::styled(text.into(), title(state))
}

/// Headings and rows. The last column takes what is left of `columns`, or is cut with it.
pub(crate) fn table(
    columns: &[Column],
    rows: &[Vec<String>],
    columns_wide: usize,
    state: &State,
) -> Vec<Line<'static>> {
    let fixed: usize = columns.iter().rev().skip(1).map(|column| column.width + 1).sum();
    let last = columns.len().saturating_sub(1);
    let width_of = |number: usize, column: &Column| {
        if number == last && !column.right {
            columns_wide.saturating_sub(fixed).max(column.width)
        } else {
            column.width
        }
    };
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = columns
            .iter()
            .enumerate()
            .zip(cells)
            .map(|((number, column), cell)| pad(cell, width_of(number, column), column.right))
            .collect();
        cut(padded.join(" ").trim_end(), columns_wide)
    };
    let headings = line(&mut columns.iter().map(|column| column.title));
    let mut lines = vec![heading(headings, state)];
    lines.extend(
        rows.iter()
            .map(|row| plain(line(&mut row.iter().map(String::as_str)))),
    );
    lines
}

/// "name value" pairs on one line, as many as fit.
pub(crate) fn pairs(name: &str, pairs: &[(&str, String)], columns: usize, state: &State) -> Line<'static> {
    let mut spans = vec![Span::styled(pad(name, 13, false), title(state))];
    let mut taken = 13;
    for (word, value) in pairs {
        let text = match word.is_empty() {
            true => value.clone(),
            false => format!("{word} {value}"),
        };
        let room = columns.saturating_sub(taken);
        if room < width(&text).min(8) {
            break;
        }
        let text = cut(&text, room);
        taken += width(&text) + 3;
        spans.push(Span::raw(text));
        spans.push(Span::raw("   "));
    }
    spans.pop();
    Line::from(spans)
}

/// Characters of a heat map, from nothing to the most.
pub(crate) const SHADES: [char; 10] = [' ', '.', ':', '-', '=', '+', '*', '#', '%', '@'];

/// The character of a value where `most` is the largest. What is more than nothing is never shown
/// as nothing.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "within the shades"
)]
pub(crate) fn shade(value: f64, most: f64) -> char {
    if value <= 0.0 || most <= 0.0 {
        return SHADES[0];
    }
    let steps = (SHADES.len() - 1) as f64;
    let number = (value / most * steps).ceil().clamp(1.0, steps);
    SHADES[number as usize]
}

/// A curve of bars, `rows` lines high, one value a column; a gap stays blank.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "eighths of a few lines"
)]
pub(crate) fn curve(values: &[Option<f64>], rows: usize, bars: bool) -> Vec<String> {
    const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const HALVES: [char; 9] = [' ', '_', '_', '.', '.', 'o', 'o', '#', '#'];
    let glyphs = if bars { EIGHTHS } else { HALVES };
    let most = values.iter().copied().flatten().fold(0.0, f64::max);
    let height = |value: f64| {
        if value <= 0.0 || most <= 0.0 {
            return 0;
        }
        ((value / most * (rows * 8) as f64).round() as usize).max(1)
    };
    (0..rows)
        .rev()
        .map(|row| {
            values
                .iter()
                .map(|value| {
                    let eighths = value.map_or(0, height).saturating_sub(row * 8);
                    glyphs[eighths.min(8)]
                })
                .collect()
        })
        .collect()
}

/// A bar of `#` of `columns` for a share.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "within the columns"
)]
pub(crate) fn bar(ratio: f64, columns: usize) -> String {
    let full = (ratio.clamp(0.0, 1.0) * columns as f64).round() as usize;
    format!("{}{}", "#".repeat(full), ".".repeat(columns - full))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn shades_show_little_as_little_and_nothing_as_nothing() {
        for (value, shown) in [(0.0, ' '), (0.01, '.'), (5.0, '+'), (9.0, '@'), (99.0, '@')] {
            assert_eq!(shade(value, 9.0), shown, "{value}");
        }
        assert_eq!(shade(1.0, 0.0), ' ');
    }

    #[test]
    fn a_curve_has_bars_and_gaps() {
        let values = [Some(0.0), Some(1.0), None, Some(2.0)];
        assert_eq!(curve(&values, 1, true), [" ▄ █"]);
        assert_eq!(curve(&values, 2, true), ["   █", " █ █"]);
        assert_eq!(curve(&values, 1, false), [" . #"]);
        assert_eq!(bar(0.5, 4), "##..");
    }

    #[test]
    fn the_last_column_takes_the_rest() {
        let state = State::new(Duration::from_secs(1), false, true);
        let columns = [right("n", 3), left("text", 4)];
        let rows = vec![vec!["7".to_owned(), "a long text".to_owned()]];
        let lines = table(&columns, &rows, 12, &state);
        let texts: Vec<String> = lines.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["  n text", "  7 a long ~"]);
    }
}
