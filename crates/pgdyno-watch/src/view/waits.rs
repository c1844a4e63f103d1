//! Waits over time: a row for each event, a column for each second, darker for more sessions. Below
//! them the functions that keep CPUs busy: what sessions do that wait for nothing.

use crate::format::{cut, number, pad};
use crate::grid;
use crate::keys::State;
use crate::model::Model;
use crate::ring::mean;
use ratatui::text::Line;

/// Columns of an event's name.
const NAME: usize = 30;
/// Columns of a mean number of sessions.
const MEAN: usize = 6;
/// Columns of a file's name.
const FILE: usize = 20;

/// "LWLock:BufferMapping"; an active session that waits for nothing is on a CPU, or would be.
pub(super) fn name(kind: &str, event: &str) -> String {
    if kind == "CPU" || event.is_empty() {
        return kind.to_owned();
    }
    format!("{kind}:{event}")
}

pub(crate) fn lines(model: &Model, state: &State, columns: usize, rows: usize) -> Vec<Line<'static>> {
    let seconds = columns.saturating_sub(NAME + MEAN + 2);
    let mut events: Vec<(String, f64, Vec<Option<f64>>)> = model
        .waits
        .table(seconds)
        .into_iter()
        .map(|((kind, event), cells)| (name(&kind, &event), mean(&cells), cells))
        .filter(|(name, ..)| state.shows(std::slice::from_ref(name)))
        .collect();
    if state.order() == 0 {
        events.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    }
    let most = events
        .iter()
        .flat_map(|(_, _, cells)| cells.iter().copied().flatten())
        .fold(0.0, f64::max);
    // Before the first sample there is nothing to miss.
    let begun = |cells: &[Option<f64>]| cells.iter().position(Option::is_some);
    let begun = events
        .iter()
        .filter_map(|(.., cells)| begun(cells))
        .min()
        .unwrap_or(0);
    let title = format!(
        "{} {} last {seconds} s, newest at the right",
        pad("busy sessions by event", NAME, false),
        pad("mean", MEAN, true)
    );
    let mut functions = functions(model, state, columns);
    functions.truncate((rows / 2).max(state.offset));
    let rows = rows.saturating_sub(functions.len());
    let mut lines = vec![grid::heading(cut(&title, columns), state)];
    for (name, mean, cells) in &events {
        let map: String = cells
            .iter()
            .enumerate()
            .map(|(second, cell)| match cell {
                Some(value) => grid::shade(*value, most),
                None if second < begun => ' ',
                None => '?',
            })
            .collect();
        lines.push(grid::plain(format!(
            "{} {} {map}",
            pad(name, NAME, false),
            pad(&number(*mean), MEAN, true)
        )));
    }
    if events.is_empty() {
        lines.push(grid::plain("no session was busy"));
    }
    lines.truncate(rows.saturating_sub(1).max(state.offset + rows.saturating_sub(1)));
    lines.push(grid::plain(legend(most)));
    lines.append(&mut functions);
    lines
}

/// Functions of the server's processes with the CPUs that they keep busy; nothing before they are
/// looked for.
fn functions(model: &Model, state: &State, columns: usize) -> Vec<Line<'static>> {
    let rows = match &model.functions {
        None => return Vec::new(),
        Some(Err(why)) => return super::nothing(why, columns),
        Some(Ok(rows)) => rows,
    };
    let shown = rows
        .iter()
        .filter(|row| state.shows(&[row.function.clone(), row.file.clone()]));
    // Names are long, and files are not.
    let name = (columns.saturating_sub(MEAN + FILE + 2)).max(NAME);
    let title = format!(
        "{} {} of",
        pad("functions on CPUs, last look", name, false),
        pad("CPUs", MEAN, true)
    );
    let lines = shown.map(|row| {
        let text = format!(
            "{} {} {}",
            pad(&row.function, name, false),
            pad(&number(row.cpus), MEAN, true),
            row.file
        );
        grid::plain(cut(&text, columns))
    });
    std::iter::once(grid::heading(cut(&title, columns), state))
        .chain(lines)
        .collect()
}

fn legend(most: f64) -> String {
    let steps = (grid::SHADES.len() - 1) as f64;
    let mut text = String::from("up to");
    for (number_of, shade) in grid::SHADES.iter().enumerate().skip(1).step_by(2) {
        text.push_str(&format!("  {shade} {}", number(most * number_of as f64 / steps)));
    }
    text.push_str("   ? no sample");
    text
}
