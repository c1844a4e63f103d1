//! What the keys do and what the panels show.

use crate::format::{pad, wrap};
use crate::grid;
use crate::keys::{Panel, State};
use ratatui::text::Line;

const KEYS: [(&str, &str); 8] = [
    ("1-8 Tab", "another panel (also the arrows to the left and right)"),
    ("up down", "scroll (also j k, page up and down, Home)"),
    ("space", "pause: what is on the screen stays, reading goes on"),
    ("+ -", "a longer or shorter interval"),
    ("s S", "sort by the next or the previous column"),
    ("/", "show only rows that hold a word; Esc shows all again"),
    ("?", "this page, and back"),
    ("q", "quit (also Ctrl-C)"),
];

fn about(panel: Panel) -> &'static str {
    match panel {
        Panel::Overview => "throughput, host, connections, WAL, TPS over time, top waits and statements",
        Panel::Waits => "what busy sessions wait for, second by second; functions on CPUs",
        Panel::Statements => "pg_stat_statements since the last look: time, calls, I/O, blocks, WAL",
        Panel::Sessions => "each session: ages of query and transaction, wait, who blocks it",
        Panel::Vacuum => "transaction-id ages, time left at the present rate, running vacuums",
        Panel::Devices => "requests, bytes, waits, queue and use of each disk",
        Panel::Memory => "memory with page tables and huge pages; the server's processes",
        Panel::Notes => "warnings in full; what could not be read, and why",
    }
}

pub(crate) fn lines(state: &State, columns: usize) -> Vec<Line<'static>> {
    let mut lines = vec![grid::heading("keys", state)];
    let row = |name: &str, text: &str| {
        wrap(text, columns.saturating_sub(14))
            .into_iter()
            .enumerate()
            .map(|(number, line)| {
                let name = if number == 0 { name } else { "" };
                grid::plain(format!("{} {line}", pad(name, 13, false)))
            })
            .collect::<Vec<_>>()
    };
    for (key, text) in KEYS {
        lines.extend(row(key, text));
    }
    lines.push(Line::default());
    lines.push(grid::heading("panels", state));
    for panel in Panel::ALL {
        let name = format!("{} {}", panel.number() + 1, panel.title());
        lines.extend(row(&name, about(panel)));
    }
    lines.push(grid::plain(
        "A dash is a value that is not known; \"8 notes\" says why.",
    ));
    lines
}
