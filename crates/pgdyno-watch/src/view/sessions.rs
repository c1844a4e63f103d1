//! Sessions: how long, what they wait for, and who blocks them.

use crate::format::{NOTHING, brief, known};
use crate::grid::{self, Column, left, right};
use crate::keys::State;
use crate::model::Model;
use pgdyno_server::series::SessionRow;
use ratatui::text::Line;

/// From this width on, database, application and client have columns.
const WIDE: usize = 120;

const NARROW_COLUMNS: [Column; 7] = [
    right("pid", 7),
    left("user", 8),
    left("state", 8),
    right("query", 7),
    right("xact", 7),
    left("wait, or blocked by", 21),
    left("statement", 14),
];

const WIDE_COLUMNS: [Column; 11] = [
    right("pid", 7),
    left("user", 10),
    left("database", 10),
    left("application", 14),
    left("client", 15),
    left("state", 19),
    right("query", 9),
    right("xact", 9),
    right("in state", 9),
    left("wait, or blocked by", 28),
    left("statement", 20),
];

pub(crate) fn lines(model: &Model, state: &State, columns: usize) -> Vec<Line<'static>> {
    let rows = match &model.sessions {
        Ok(rows) => rows,
        Err(why) => return super::nothing(why, columns),
    };
    let mut sorted: Vec<&SessionRow> = rows.iter().collect();
    sort(&mut sorted, state.order());
    let wide = columns >= WIDE;
    let cells: Vec<Vec<String>> = sorted
        .into_iter()
        .map(|row| if wide { wide_cells(row) } else { narrow_cells(row) })
        .filter(|cells| state.shows(cells))
        .collect();
    let headings: &[Column] = if wide { &WIDE_COLUMNS } else { &NARROW_COLUMNS };
    let mut lines = grid::table(headings, &cells, columns, state);
    if cells.is_empty() {
        lines.push(grid::plain("none"));
    }
    lines
}

/// Longest first; an idle session's last query is over, so it counts as none.
fn sort(rows: &mut [&SessionRow], order: usize) {
    let age = |row: &SessionRow| {
        let age = match order {
            1 => row.xact_age_s,
            2 => row.state_age_s,
            3 => (!row.blocked_by.is_empty()).then_some(row.query_age_s.unwrap_or(0.0) + 1.0),
            4 => None,
            _ => query_age(row),
        };
        age.unwrap_or(-1.0)
    };
    rows.sort_by(|a, b| age(b).total_cmp(&age(a)).then(a.pid.cmp(&b.pid)));
}

fn query_age(row: &SessionRow) -> Option<f64> {
    row.query_age_s.filter(|_| row.state.as_deref() == Some("active"))
}

fn text(value: Option<&str>) -> String {
    value
        .filter(|text| !text.is_empty())
        .unwrap_or(NOTHING)
        .to_owned()
}

fn wait(row: &SessionRow) -> String {
    if !row.blocked_by.is_empty() {
        let pids: Vec<String> = row.blocked_by.iter().map(ToString::to_string).collect();
        return format!("blocked by {}", pids.join(","));
    }
    match &row.wait {
        Some((kind, event)) => super::waits::name(kind, event),
        None => NOTHING.to_owned(),
    }
}

/// What it runs; a process of the server's own says what it is.
fn statement(row: &SessionRow) -> String {
    match row.statement.as_deref() {
        Some(statement) if !statement.is_empty() => statement.to_owned(),
        _ => match row.backend_type.as_deref() {
            Some(class) if class != "client backend" => class.to_owned(),
            _ => NOTHING.to_owned(),
        },
    }
}

fn narrow_cells(row: &SessionRow) -> Vec<String> {
    let state = text(row.state.as_deref()).replace("idle in transaction", "in xact");
    vec![
        row.pid.to_string(),
        text(row.user.as_deref()),
        state,
        known(query_age(row), brief),
        known(row.xact_age_s, brief),
        wait(row),
        statement(row),
    ]
}

fn wide_cells(row: &SessionRow) -> Vec<String> {
    vec![
        row.pid.to_string(),
        text(row.user.as_deref()),
        text(row.database.as_deref()),
        text(row.application.as_deref()),
        text(row.client.as_deref()),
        text(row.state.as_deref()),
        known(query_age(row), brief),
        known(row.xact_age_s, brief),
        known(row.state_age_s, brief),
        wait(row),
        statement(row),
    ]
}
