//! The headline: what the server and its host do now, at a glance.

use crate::format::{bytes, known, ms, number, pad, percent, span};
use crate::keys::State;
use crate::model::Model;
use crate::ring::Point;
use crate::{grid, names};
use ratatui::text::Line;
use std::time::Duration;

/// Seconds that the waits of the overview are the mean of.
const WAIT_SECONDS: usize = 10;
/// A checkpointer that was at work this short a time ago is still at it.
const AT_WORK: Duration = Duration::from_secs(3);
/// Lines of the curve on a small and on a large terminal.
const CURVE_ROWS: (usize, usize) = (2, 8);
/// From this many lines on there is room for blank ones.
const LARGE_ROWS: usize = 28;

pub(crate) fn lines(model: &Model, state: &State, columns: usize, rows: usize) -> Vec<Line<'static>> {
    let large = rows >= LARGE_ROWS;
    let gap = |lines: &mut Vec<Line<'static>>| {
        if large {
            lines.push(Line::default());
        }
    };
    let mut lines = vec![throughput(model, state, columns)];
    lines.extend(host(model, state, columns));
    lines.push(connections(model, state, columns));
    lines.push(wal(model, state, columns));
    lines.push(horizon(model, state, columns));
    gap(&mut lines);
    let high = if large { CURVE_ROWS.1 } else { CURVE_ROWS.0 };
    lines.extend(curve(model, state, columns, high));
    gap(&mut lines);
    // Waits and statements share what is left; what one does not need, the other has.
    let left = rows.saturating_sub(lines.len());
    let statements = statements(model, state, columns);
    let of_waits = left.saturating_sub(statements.len().min(left / 2));
    let mut waits = waits(model, state, columns);
    waits.truncate(of_waits.saturating_sub(usize::from(large)));
    lines.extend(waits);
    gap(&mut lines);
    lines.extend(statements);
    lines
}

fn throughput(model: &Model, state: &State, columns: usize) -> Line<'static> {
    let rate = |metric| known(model.value(metric, names::ALL), number);
    let hit = model.value(names::BLOCKS_HIT, names::ALL);
    let read = model.value(names::BLOCKS_READ, names::ALL);
    let ratio = hit
        .zip(read)
        .filter(|(hit, read)| hit + read > 0.0)
        .map(|(hit, read)| hit / (hit + read));
    let mut pairs = vec![
        ("TPS", rate(names::COMMITS)),
        ("rollbacks/s", rate(names::ROLLBACKS)),
    ];
    if let Ok(statements) = &model.statements {
        let calls: f64 = statements.iter().map(|row| row.calls_per_s).sum();
        let total: f64 = statements.iter().map(|row| row.total_ms_per_s).sum();
        let mean = (calls > 0.0).then(|| total / calls);
        pairs.push(("statement", format!("{} ms", known(mean, ms))));
        pairs.push(("calls/s", number(calls)));
    }
    pairs.push(("hit", known(ratio, percent)));
    grid::pairs("throughput", &pairs, columns, state)
}

fn host(model: &Model, state: &State, columns: usize) -> Vec<Line<'static>> {
    if let Some(why) = model.no_host() {
        return vec![grid::pairs("host", &[("", why.to_owned())], columns, state)];
    }
    let mut cpu: Vec<(&str, String)> = names::CPU_MODES
        .iter()
        .map(|(mode, metric)| (*mode, known(model.value(metric, names::ALL), percent)))
        .collect();
    cpu.push(("run queue", known(model.value(names::RUN_QUEUE, ""), number)));
    let value = |metric| known(model.value(metric, ""), bytes);
    let memory = [
        ("available", value(names::MEMORY_AVAILABLE)),
        ("page tables", value(names::PAGE_TABLES)),
        ("dirty", value(names::DIRTY)),
        ("swap", value(names::SWAP_USED)),
    ];
    vec![
        grid::pairs("CPU", &cpu, columns, state),
        grid::pairs("memory", &memory, columns, state),
        disk(model, state, columns),
    ]
}

/// A line with the busiest disk.
fn disk(model: &Model, state: &State, columns: usize) -> Line<'static> {
    let busiest = model
        .values(names::DISK_UTIL)
        .into_iter()
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((name, util)) = busiest else {
        return grid::pairs("disk", &[("", "not read yet".to_owned())], columns, state);
    };
    let value = |metric, as_text: fn(f64) -> String| known(model.value(metric, name), as_text);
    let pairs = [
        ("", name.to_owned()),
        ("util", percent(util)),
        ("reads/s", value(names::DISK_READS, number)),
        ("writes/s", value(names::DISK_WRITES, number)),
        ("read/s", value(names::DISK_READ_BYTES, bytes)),
        ("written/s", value(names::DISK_WRITE_BYTES, bytes)),
    ];
    grid::pairs("disk", &pairs, columns, state)
}

fn connections(model: &Model, state: &State, columns: usize) -> Line<'static> {
    let count = |metric| known(model.value(metric, ""), number);
    let pairs = [
        ("active", count(names::ACTIVE)),
        ("idle", count(names::IDLE)),
        ("idle in transaction", count(names::IDLE_IN_TRANSACTION)),
        ("max", known(model.about.max_connections, |n| format!("{n:.0}"))),
    ];
    grid::pairs("connections", &pairs, columns, state)
}

fn wal(model: &Model, state: &State, columns: usize) -> Line<'static> {
    let rate = known(model.value(names::WAL_BYTES, ""), bytes);
    let pairs = [
        ("", format!("{rate}/s")),
        ("checkpoint", checkpoint(model)),
        ("free", known(model.value(names::WAL_VOLUME_FREE, ""), bytes)),
    ];
    grid::pairs("WAL", &pairs, columns, state)
}

/// What the checkpointer does, or when it last did something.
fn checkpoint(model: &Model) -> String {
    let ago = |at| model.now.saturating_duration_since(at);
    if model.waits.checkpointer_at().is_some_and(|at| ago(at) <= AT_WORK) {
        return "in progress".into();
    }
    let rings = [names::CHECKPOINTS_TIMED, names::CHECKPOINTS_REQUESTED];
    let done = |metric| {
        let ring = model.ring(metric, "")?;
        let last = ring
            .within(crate::ring::KEPT)
            .rfind(|point: &Point| point.value > 0.0)?;
        Some(last.at)
    };
    match rings.into_iter().filter_map(done).max() {
        Some(at) => format!("done {} ago", span(ago(at).as_secs_f64())),
        None => "none seen".into(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "an age below 2^31")]
fn horizon(model: &Model, state: &State, columns: usize) -> Line<'static> {
    let oldest = model.ages.as_ref().ok();
    let oldest = oldest.and_then(|rows| rows.iter().map(|row| row.xid_age).max());
    let pairs = [
        (
            "oldest transaction",
            known(model.value(names::OLDEST_XACT, ""), span),
        ),
        ("transaction-id age", known(oldest.map(|age| age as f64), number)),
    ];
    grid::pairs("horizon", &pairs, columns, state)
}

/// A curve of the throughput over time.
fn curve(model: &Model, state: &State, columns: usize, high: usize) -> Vec<Line<'static>> {
    let mut points: Vec<Point> = model
        .ring(names::COMMITS, names::ALL)
        .map(|ring| ring.within(crate::ring::KEPT).rev().take(columns).collect())
        .unwrap_or_default();
    points.reverse();
    let (Some(oldest), Some(newest)) = (points.first(), points.last()) else {
        return vec![grid::heading("TPS over time", state), grid::plain("no rates yet")];
    };
    // The interval may have been another one in between.
    let begun = oldest.since.unwrap_or(oldest.at);
    let seconds = newest.at.saturating_duration_since(begun).as_secs_f64();
    let values: Vec<Option<f64>> = points.iter().map(|point| Some(point.value)).collect();
    let most = values.iter().copied().flatten().fold(0.0, f64::max);
    let title = format!("TPS of the last {}, up to {}", span(seconds), number(most));
    let mut lines = vec![grid::heading(title, state)];
    lines.extend(
        grid::curve(&values, high, state.bars)
            .into_iter()
            .map(grid::plain),
    );
    lines
}

fn waits(model: &Model, state: &State, columns: usize) -> Vec<Line<'static>> {
    let title = format!("busy sessions by what they wait for, mean of {WAIT_SECONDS} s");
    let mut lines = vec![grid::heading(title, state)];
    let means = model.waits.means(WAIT_SECONDS);
    let all: f64 = means.iter().map(|(_, mean)| mean).sum();
    let bar_columns = columns.saturating_sub(46).min(60);
    for ((kind, event), mean) in means.iter().filter(|(_, mean)| *mean > 0.0) {
        let name = super::waits::name(kind, event);
        lines.push(grid::plain(format!(
            "{} {} {}",
            pad(&name, 36, false),
            pad(&number(*mean), 7, true),
            grid::bar(mean / all, bar_columns).replace('.', " ")
        )));
    }
    if lines.len() == 1 {
        lines.push(grid::plain("none"));
    }
    lines
}

fn statements(model: &Model, state: &State, columns: usize) -> Vec<Line<'static>> {
    match &model.statements {
        Ok(_) => super::statements::by(model, state, columns, 0),
        Err(why) => {
            let mut lines = vec![grid::heading("statements", state)];
            lines.extend(super::nothing(why, columns));
            lines
        }
    }
}
