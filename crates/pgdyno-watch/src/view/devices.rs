//! Block devices, as iostat shows them.

use crate::format::{bytes, known, ms, number, percent};
use crate::grid::{self, Column, left, right};
use crate::keys::State;
use crate::model::Model;
use crate::names;
use ratatui::text::Line;

/// A column: heading, columns, metric, how a value is written.
type Measure = (Column, &'static str, fn(f64) -> String);

const MEASURES: [Measure; 9] = [
    (right("r/s", 6), names::DISK_READS, number),
    (right("w/s", 6), names::DISK_WRITES, number),
    (right("read/s", 7), names::DISK_READ_BYTES, bytes),
    (right("write/s", 7), names::DISK_WRITE_BYTES, bytes),
    (right("r ms", 6), "disk.read_await_ms", ms),
    (right("w ms", 6), "disk.write_await_ms", ms),
    (right("f ms", 6), "disk.flush_await_ms", ms),
    (right("queue", 6), "disk.queue", number),
    (right("util", 5), names::DISK_UTIL, percent),
];

/// Columns of the name of a device.
const NAME: usize = 8;

pub(crate) fn lines(model: &Model, state: &State, columns: usize) -> Vec<Line<'static>> {
    if let Some(why) = model.no_host() {
        return super::nothing(why, columns);
    }
    let mut disks = model.labels("disk.");
    if state.order() == 1 {
        let util = |disk: &str| model.value(names::DISK_UTIL, disk).unwrap_or(-1.0);
        disks.sort_by(|a, b| util(b).total_cmp(&util(a)));
    }
    let mut headings = vec![left("device", NAME)];
    headings.extend(
        MEASURES
            .iter()
            .map(|(column, ..)| right(column.title, column.width)),
    );
    headings.push(left("holds", 8));
    let cells: Vec<Vec<String>> = disks
        .into_iter()
        .map(|disk| cells(model, disk))
        .filter(|cells| state.shows(cells))
        .collect();
    let mut lines = grid::table(&headings, &cells, columns, state);
    if cells.is_empty() {
        lines.push(grid::plain("none read yet"));
    }
    lines
}

fn cells(model: &Model, disk: &str) -> Vec<String> {
    let mut cells = vec![disk.to_owned()];
    for (_, metric, as_text) in &MEASURES {
        cells.push(known(model.value(metric, disk), as_text));
    }
    let holds: Vec<&str> = model
        .about
        .disks
        .iter()
        .filter(|(name, _)| name == disk)
        .map(|(_, what)| what.as_str())
        .collect();
    cells.push(holds.join(", "));
    cells
}
