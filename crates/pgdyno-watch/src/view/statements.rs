//! Statements, grouped as pg_stat_statements normalises them, by what they did in the last
//! interval.

use crate::format::{bytes, known, ms, number, percent};
use crate::grid::{self, Column, left, right};
use crate::keys::State;
use crate::model::Model;
use pgdyno_server::series::StatementRow;
use ratatui::text::Line;

/// From this width on there are columns for blocks.
const WIDE: usize = 120;
/// The wide column of records of WAL, and what is there where the server counts plans: how many
/// calls have a plan for any values.
const WAL_RECORDS: usize = 10;
const GENERIC: Column = right("generic", 9);

const NARROW_COLUMNS: [Column; 7] = [
    right("ms/s", 7),
    right("calls/s", 7),
    right("mean ms", 7),
    right("I/O ms/s", 8),
    right("dirtied/s", 9),
    right("WAL/s", 7),
    left("statement", 20),
];

const WIDE_COLUMNS: [Column; 13] = [
    right("ms/s", 7),
    right("calls/s", 7),
    right("mean ms", 7),
    right("rows/s", 7),
    right("I/O ms/s", 8),
    right("hit/s", 7),
    right("read/s", 7),
    right("dirtied/s", 9),
    right("written/s", 9),
    right("temp/s", 7),
    right("WAL rec/s", 9),
    right("WAL/s", 7),
    left("statement", 20),
];

pub(crate) fn lines(model: &Model, state: &State, columns: usize) -> Vec<Line<'static>> {
    by(model, state, columns, state.order())
}

/// The table in a given order.
pub(super) fn by(model: &Model, state: &State, columns: usize, order: usize) -> Vec<Line<'static>> {
    let rows = match &model.statements {
        Ok(rows) => rows,
        Err(why) => return super::nothing(why, columns),
    };
    let mut sorted: Vec<&StatementRow> = rows.iter().filter(|row| row.calls_per_s > 0.0).collect();
    let amount = |row: &StatementRow| match order {
        1 => row.calls_per_s,
        2 => io_ms(row),
        3 => row.blocks_dirtied_per_s,
        4 => row.wal_bytes_per_s,
        _ => row.total_ms_per_s,
    };
    sorted.sort_by(|a, b| amount(b).total_cmp(&amount(a)).then(a.query_id.cmp(&b.query_id)));
    let wide = columns >= WIDE;
    let counts_plans = rows.iter().any(|row| row.generic_plan_calls_per_s.is_some());
    let cells: Vec<Vec<String>> = sorted
        .into_iter()
        .map(|row| {
            let io = model.about.io_timing.then(|| io_ms(row));
            match wide {
                true => wide_cells(row, io, counts_plans),
                false => narrow_cells(row, io),
            }
        })
        .filter(|cells| state.shows(cells))
        .collect();
    let mut wide_headings = WIDE_COLUMNS;
    if counts_plans {
        wide_headings[WAL_RECORDS] = GENERIC;
    }
    let headings: &[Column] = if wide { &wide_headings } else { &NARROW_COLUMNS };
    let mut lines = grid::table(headings, &cells, columns, state);
    if cells.is_empty() {
        lines.push(grid::plain("none in the last interval"));
    }
    lines
}

fn io_ms(row: &StatementRow) -> f64 {
    row.read_ms_per_s + row.write_ms_per_s
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn narrow_cells(row: &StatementRow, io: Option<f64>) -> Vec<String> {
    vec![
        ms(row.total_ms_per_s),
        number(row.calls_per_s),
        ms(row.mean_ms),
        known(io, ms),
        number(row.blocks_dirtied_per_s),
        bytes(row.wal_bytes_per_s),
        one_line(&row.text),
    ]
}

fn wide_cells(row: &StatementRow, io: Option<f64>, counts_plans: bool) -> Vec<String> {
    let tenth = match counts_plans {
        true => known(row.generic_plan_ratio(), percent),
        false => number(row.wal_records_per_s),
    };
    vec![
        ms(row.total_ms_per_s),
        number(row.calls_per_s),
        ms(row.mean_ms),
        number(row.rows_per_s),
        known(io, ms),
        number(row.blocks_hit_per_s),
        number(row.blocks_read_per_s),
        number(row.blocks_dirtied_per_s),
        number(row.blocks_written_per_s),
        number(row.temp_blocks_per_s),
        tenth,
        bytes(row.wal_bytes_per_s),
        one_line(&row.text),
    ]
}
