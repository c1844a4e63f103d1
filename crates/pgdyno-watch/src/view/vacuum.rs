//! Transaction-id ages with the time that is left, and vacuums that go on.

use crate::format::{NOTHING, brief, known, number, percent, span};
use crate::grid::{self, Column, left, right};
use crate::keys::State;
use crate::model::Model;
use crate::rules::XID_AGE_PAUSE;
use pgdyno_server::series::{AgeRow, VacuumRow};
use ratatui::text::Line;

/// No more transaction ids are given out three million before they wrap around at 2^31 (PostgreSQL,
/// Routine Vacuuming).
const XID_AGE_LIMIT: u64 = (1 << 31) - 3_000_000;

const AGE_COLUMNS: [Column; 7] = [
    left("database", 16),
    right("xid age", 9),
    right("to freeze", 12),
    right("to 1.2 billion", 14),
    right("to the limit", 12),
    right("mxid age", 9),
    left("", 1),
];

const VACUUM_COLUMNS: [Column; 8] = [
    right("pid", 7),
    left("by", 5),
    left("phase", 18),
    right("scanned", 8),
    right("vacuumed", 8),
    right("passes", 6),
    right("since", 7),
    left("table", 12),
];

pub(crate) fn lines(model: &Model, state: &State, columns: usize) -> Vec<Line<'static>> {
    let rate = model.xids_per_s();
    let shown = known(rate, number);
    let mut lines = vec![grid::pairs(
        "ids per s",
        &[("", format!("{shown}   the time left is at this rate"))],
        columns,
        state,
    )];
    lines.push(Line::default());
    lines.extend(ages(model, state, columns, rate));
    lines.push(Line::default());
    lines.extend(vacuums(model, state, columns));
    lines
}

fn ages(model: &Model, state: &State, columns: usize, rate: Option<f64>) -> Vec<Line<'static>> {
    let rows = match &model.ages {
        Ok(rows) => rows,
        Err(why) => return super::nothing(why, columns),
    };
    let mut sorted: Vec<&AgeRow> = rows.iter().collect();
    match state.order() {
        0 => sorted.sort_by_key(|row| (std::cmp::Reverse(row.xid_age), row.database.clone())),
        _ => sorted.sort_by_key(|row| row.database.clone()),
    }
    let cells: Vec<Vec<String>> = sorted
        .into_iter()
        .map(|row| age_cells(row, rate))
        .filter(|cells| state.shows(cells))
        .collect();
    grid::table(&AGE_COLUMNS, &cells, columns, state)
}

#[expect(clippy::cast_precision_loss, reason = "ages are below 2^31")]
fn age_cells(row: &AgeRow, rate: Option<f64>) -> Vec<String> {
    let left = |limit: u64| match (limit.checked_sub(row.xid_age), rate) {
        (None | Some(0), _) => "passed".to_owned(),
        (Some(_), None) => NOTHING.to_owned(),
        (Some(_), Some(rate)) if rate <= 0.0 => "no end".to_owned(),
        (Some(ids), Some(rate)) => span(ids as f64 / rate),
    };
    vec![
        row.database.clone(),
        number(row.xid_age as f64),
        left(row.freeze_max_age),
        left(XID_AGE_PAUSE),
        left(XID_AGE_LIMIT),
        number(row.multixact_age as f64),
        String::new(),
    ]
}

fn vacuums(model: &Model, state: &State, columns: usize) -> Vec<Line<'static>> {
    let rows = match &model.vacuums {
        Ok(rows) => rows,
        Err(why) => return super::nothing(why, columns),
    };
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(vacuum_cells)
        .filter(|cells| state.shows(cells))
        .collect();
    if cells.is_empty() {
        return vec![grid::heading("vacuums", state), grid::plain("none goes on")];
    }
    grid::table(&VACUUM_COLUMNS, &cells, columns, state)
}

#[expect(clippy::cast_precision_loss, reason = "blocks of a table")]
fn vacuum_cells(row: &VacuumRow) -> Vec<String> {
    let share = |part: Option<i64>| {
        let total = row.heap_total.filter(|total| *total > 0);
        known(
            part.zip(total).map(|(part, total)| part as f64 / total as f64),
            percent,
        )
    };
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| NOTHING.to_owned());
    let count = |value: Option<i64>| known(value.map(|value| value as f64), number);
    vec![
        row.pid.to_string(),
        if row.is_auto { "auto" } else { "user" }.to_owned(),
        text(&row.phase),
        share(row.heap_scanned),
        share(row.heap_vacuumed),
        count(row.index_passes),
        known(row.age_s, brief),
        format!(
            "{}: {}, {} dead",
            text(&row.database),
            text(&row.table),
            count(row.dead)
        ),
    ]
}
