//! Warnings in full, and what is not known, with the reasons.

use crate::format::{span, wrap};
use crate::grid;
use crate::keys::State;
use crate::model::Model;
use crate::rules::Warning;
use ratatui::text::Line;

pub(crate) fn lines(model: &Model, state: &State, found: &[Warning], columns: usize) -> Vec<Line<'static>> {
    let mut lines = vec![grid::heading("warnings", state)];
    for warning in found {
        let first = wrap(&format!("! {}", warning.text), columns);
        lines.extend(
            first
                .into_iter()
                .map(|text| Line::styled(text, grid::alarm(state))),
        );
        let advice = format!("{} [{}]", warning.advice, warning.source);
        lines.extend(indented(&advice, columns));
    }
    if found.is_empty() {
        lines.push(grid::plain("none"));
    }
    lines.push(Line::default());
    lines.push(grid::heading("not known", state));
    for missing in &model.missing {
        let ago = model.now.saturating_duration_since(missing.at).as_secs_f64();
        let text = format!("{}: {} ({} ago)", missing.source, missing.reason, span(ago));
        if state.shows(std::slice::from_ref(&text)) {
            lines.extend(indented(&text, columns));
        }
    }
    if model.missing.is_empty() {
        lines.push(grid::plain("everything was read"));
    }
    lines
}

fn indented(text: &str, columns: usize) -> impl Iterator<Item = Line<'static>> {
    wrap(text, columns.saturating_sub(2))
        .into_iter()
        .map(|line| grid::plain(format!("  {line}")))
}
