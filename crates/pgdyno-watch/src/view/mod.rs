//! From the model to what a terminal shows: pure functions, one file for each panel.

mod devices;
mod help;
mod memory;
mod notes;
mod overview;
mod sessions;
mod statements;
mod vacuum;
mod waits;

use super::format::{cut, span, width};
use super::grid;
use super::keys::{Panel, State};
use super::model::Model;
use super::rules::{Warning, warnings};
use ratatui::Frame;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

/// Below this there is no room for a headline and a table.
const COLUMNS_MIN: u16 = 40;
const ROWS_MIN: u16 = 10;
/// Warnings above a panel on a small and on a large terminal; all of them are among the notes, with
/// what to do.
const WARNINGS_MAX: (usize, usize) = (2, 4);
/// From this many lines on, a terminal is large.
const LARGE_ROWS: usize = 36;

/// Draws everything; returns how many lines are scrolled away, which is less than asked where there
/// are no more.
pub(crate) fn draw(frame: &mut Frame<'_>, model: &Model, state: &State) -> usize {
    let area = frame.area();
    let (lines, offset) = if area.width < COLUMNS_MIN || area.height < ROWS_MIN {
        let text = format!("at least {COLUMNS_MIN}x{ROWS_MIN}; q quits");
        (vec![grid::plain(cut(&text, usize::from(area.width)))], 0)
    } else {
        screen(model, state, usize::from(area.width), usize::from(area.height))
    };
    for (line, y) in lines.iter().zip(area.y..area.bottom()) {
        frame.buffer_mut().set_line(area.x, y, line, area.width);
    }
    offset
}

/// All lines of a screen, exactly `rows` of them, and how many are scrolled away.
fn screen(model: &Model, state: &State, columns: usize, rows: usize) -> (Vec<Line<'static>>, usize) {
    let mut lines = vec![headline(model, state, columns), tabs(state)];
    let found = warnings(model);
    lines.extend(above(model, state, &found, (columns, rows)));
    let room = rows.saturating_sub(lines.len() + 1);
    let mut body = match state.help {
        true => help::lines(state, columns),
        false => panel(model, state, &found, columns, room),
    };
    // The last lines stay in sight, and so does the heading of a panel that is one table.
    let offset = state.offset.min(body.len().saturating_sub(room));
    let is_table = matches!(
        state.panel,
        Panel::Waits | Panel::Statements | Panel::Sessions | Panel::Devices
    );
    let head = usize::from(is_table && !state.help).min(body.len());
    body.drain(head..(head + offset).min(body.len()));
    body.truncate(room);
    body.resize(room, Line::default());
    lines.append(&mut body);
    lines.push(footer(model, state, columns));
    (lines, offset)
}

fn panel(model: &Model, state: &State, found: &[Warning], columns: usize, rows: usize) -> Vec<Line<'static>> {
    match state.panel {
        Panel::Overview => overview::lines(model, state, columns, rows),
        Panel::Waits => waits::lines(model, state, columns, rows),
        Panel::Statements => statements::lines(model, state, columns),
        Panel::Sessions => sessions::lines(model, state, columns),
        Panel::Vacuum => vacuum::lines(model, state, columns),
        Panel::Devices => devices::lines(model, state, columns),
        Panel::Memory => memory::lines(model, state, columns),
        Panel::Notes => notes::lines(model, state, found, columns),
    }
}

/// The overview as plain text, where there is no terminal.
pub(crate) fn text(model: &Model, state: &State, columns: usize, rows: usize) -> String {
    let found = warnings(model);
    let mut lines = vec![grid::plain(subject(model))];
    lines.extend(model.away().map(grid::plain));
    for warning in &found {
        lines.extend(warning_lines(warning, state, columns));
    }
    lines.extend(overview::lines(model, state, columns, rows));
    let texts: Vec<String> = lines
        .iter()
        .map(|line| line.to_string().trim_end().to_owned())
        .collect();
    texts.join("\n").trim_end().to_owned()
}

fn subject(model: &Model) -> String {
    let about = &model.about;
    format!("pgdyno watch   {}   PostgreSQL {}", about.target, about.version)
}

fn headline(model: &Model, state: &State, columns: usize) -> Line<'static> {
    let mut right = format!("every {}", span(state.interval.as_secs_f64()));
    if state.paused {
        right = format!("PAUSED   {right}");
    }
    let left = cut(&subject(model), columns.saturating_sub(width(&right) + 3));
    let blanks = " ".repeat(columns.saturating_sub(width(&left) + width(&right) + 2));
    Line::styled(
        format!(" {left}{blanks}{right} "),
        Style::new().add_modifier(Modifier::REVERSED),
    )
}

/// The panels by their numbers, the one in sight in brackets.
fn tabs(state: &State) -> Line<'static> {
    let mut text = String::new();
    let mut open = false;
    for panel in Panel::ALL {
        let now = panel == state.panel && !state.help;
        text.push(match (open, now) {
            (true, _) => ']',
            (false, true) => '[',
            (false, false) => ' ',
        });
        text.push_str(&format!("{} {}", panel.number() + 1, panel.title()));
        open = now;
    }
    if open {
        text.push(']');
    }
    Line::styled(text, grid::title(state))
}

/// What is to be seen in every panel: that the server is away, and warnings; on a large terminal
/// with what to do.
fn above(
    model: &Model,
    state: &State,
    found: &[Warning],
    (columns, rows): (usize, usize),
) -> Vec<Line<'static>> {
    let alarm = grid::alarm(state);
    let mut lines: Vec<Line<'static>> = model
        .away()
        .map(|text| Line::styled(cut(&text, columns), alarm))
        .into_iter()
        .collect();
    if state.help || state.panel == Panel::Notes {
        return lines;
    }
    let large = rows >= LARGE_ROWS;
    let most = if large { WARNINGS_MAX.1 } else { WARNINGS_MAX.0 };
    for warning in found.iter().take(most) {
        let mut shown = warning_lines(warning, state, columns);
        shown.truncate(if large { 2 } else { 1 });
        lines.extend(shown);
    }
    if found.len() > most {
        let text = format!("! {} more; what to do is among the notes (8)", found.len() - most);
        lines.push(Line::styled(text, alarm));
    }
    lines
}

fn warning_lines(warning: &Warning, state: &State, columns: usize) -> Vec<Line<'static>> {
    let first = Line::styled(cut(&format!("! {}", warning.text), columns), grid::alarm(state));
    let source = format!(" [{}]", warning.source);
    let advice = cut(warning.advice, columns.saturating_sub(4 + width(&source)));
    vec![first, grid::plain(format!("  {advice}{source}"))]
}

fn footer(model: &Model, state: &State, columns: usize) -> Line<'static> {
    if state.typing {
        let text = format!("/{}_   Enter keeps the filter, Esc clears it", state.filter);
        return grid::plain(cut(&text, columns));
    }
    let mut parts = Vec::new();
    if let Some(order) = state.panel.orders().get(state.order()) {
        parts.push(format!("s by {order}"));
    }
    if !state.filter.is_empty() {
        parts.push(format!("filter \"{}\" (Esc)", state.filter));
    }
    parts.push("? help  q quit  space pause  +/- interval".into());
    if state.filter.is_empty() && !state.panel.orders().is_empty() {
        parts.push("/ filter".into());
    }
    if !model.missing.is_empty() {
        parts.push("8 gaps".into());
    }
    Line::styled(cut(&parts.join("  "), columns), grid::aside(state))
}

/// The reason for a panel without rows.
fn nothing(why: &str, columns: usize) -> Vec<Line<'static>> {
    super::format::wrap(why, columns)
        .into_iter()
        .map(grid::plain)
        .collect()
}

#[cfg(test)]
mod tests;
