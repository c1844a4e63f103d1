//! Memory of the host, with page tables and huge pages, and of the server's processes by class.

use crate::format::{bytes, known, number, pad};
use crate::grid::{self, Column, left, right};
use crate::keys::State;
use crate::model::Model;
use crate::names;
use ratatui::text::Line;

/// Kinds of memory that are a share of all of it.
const KINDS: [(&str, &str); 14] = [
    ("available", names::MEMORY_AVAILABLE),
    ("free", "memory.free_bytes"),
    ("cached", "memory.cached_bytes"),
    ("shared", "memory.shmem_bytes"),
    ("anonymous", "memory.anon_bytes"),
    ("slab", "memory.slab_bytes"),
    ("page tables", names::PAGE_TABLES),
    ("dirty", names::DIRTY),
    ("writeback", names::WRITEBACK),
    ("swap in use", names::SWAP_USED),
    ("huge pages", "memory.huge_pages_total_bytes"),
    ("  free", "memory.huge_pages_free_bytes"),
    ("  reserved", "memory.huge_pages_reserved_bytes"),
    ("THP", "memory.anon_huge_pages_bytes"),
];

/// A column of a class of processes: heading and width, metric, how a value is written.
type Measure = (Column, &'static str, fn(f64) -> String);

const MEASURES: [Measure; 8] = [
    (right("count", 5), "process.count", number),
    (right("CPUs", 6), "process.cpu_ratio", number),
    (right("RSS", 7), "process.rss_bytes", bytes),
    (right("PSS", 7), names::PROCESS_PSS, bytes),
    (right("minor/s", 7), "process.minor_faults_per_s", number),
    (right("major/s", 7), "process.major_faults_per_s", number),
    (right("read/s", 7), "process.read_bytes_per_s", bytes),
    (right("written/s", 9), "process.write_bytes_per_s", bytes),
];

/// Width of a class's name.
const CLASS: usize = 17;

pub(crate) fn lines(model: &Model, state: &State, columns: usize) -> Vec<Line<'static>> {
    if let Some(why) = model.no_host() {
        return super::nothing(why, columns);
    }
    let total = model.value(names::MEMORY_TOTAL, "");
    let mut lines = vec![grid::pairs(
        "memory",
        &[
            ("", known(total, bytes)),
            ("of the host; # is its share", String::new()),
        ],
        columns,
        state,
    )];
    lines.extend(kinds(model, total, columns));
    lines.push(Line::default());
    lines.extend(classes(model, state, columns));
    lines
}

/// Two kinds on a line.
fn kinds(model: &Model, total: Option<f64>, columns: usize) -> Vec<Line<'static>> {
    let half = columns / 2 - 1;
    let room = half.saturating_sub(24).min(30);
    let cell = |(name, metric): &(&str, &'static str)| {
        let value = model.value(metric, "");
        let share = value.zip(total).map(|(value, total)| value / total.max(1.0));
        let bar = share.map_or_else(String::new, |share| grid::bar(share, room));
        format!(
            "{} {} {bar}",
            pad(name, 12, false),
            pad(&known(value, bytes), 8, true)
        )
    };
    KINDS
        .chunks(2)
        .map(|pair| {
            let cells: Vec<String> = pair.iter().map(|kind| pad(&cell(kind), half, false)).collect();
            grid::plain(cells.join("  ").trim_end().to_owned())
        })
        .collect()
}

fn classes(model: &Model, state: &State, columns: usize) -> Vec<Line<'static>> {
    let rows: Vec<Vec<String>> = model
        .labels("process.")
        .into_iter()
        .map(|class| {
            let mut cells = vec![class.to_owned()];
            for (_, metric, as_text) in &MEASURES {
                cells.push(known(model.value(metric, class), as_text));
            }
            cells
        })
        .filter(|cells| state.shows(cells))
        .collect();
    let mut headings = vec![left("processes", CLASS)];
    headings.extend(
        MEASURES
            .iter()
            .map(|(column, ..)| right(column.title, column.width)),
    );
    let mut lines = grid::table(&headings, &rows, columns, state);
    if rows.is_empty() {
        lines.push(grid::plain("none read yet"));
    }
    lines
}
