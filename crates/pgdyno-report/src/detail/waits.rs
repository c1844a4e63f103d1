//! What sessions waited for and which statements they were at, out of the samples' columns; and
//! what the server counted of these.

use super::model::{Statement, WaitSessions, Waits};
use pgdyno_record::{ColumnRecord, SeriesRecord, StatementRecord};
use std::collections::BTreeMap;

/// Metric whose label is class/kind/event.
const WAITS: &str = "waits.sessions";
/// Metric whose label is a query id.
const STATEMENTS: &str = "waits.statement_sessions";
/// More events than these are not distinguished on any chart.
const EVENTS_MAX: usize = 30;
/// Name of the events beyond the shown ones, together.
const OTHERS: &str = "other";
/// More statements than this are no table that anybody reads.
const STATEMENTS_MAX: usize = 200;

fn of<'a>(series: &'a SeriesRecord, metric: &'static str) -> impl Iterator<Item = &'a ColumnRecord> {
    series
        .columns
        .iter()
        .filter(move |column| column.metric == metric)
}

/// Sessions by type and by event of wait; all columns of waits have the same times.
pub(super) fn waits(series: &SeriesRecord) -> Option<Waits> {
    let first = of(series, WAITS).next()?;
    let columns: Vec<&ColumnRecord> = of(series, WAITS)
        .filter(|column| column.at_ms == first.at_ms)
        .collect();
    let mut events = summed(&columns, first.at_ms.len(), event_of);
    fold(&mut events, EVENTS_MAX);
    Some(Waits {
        t_ms: first.at_ms.clone(),
        types: summed(&columns, first.at_ms.len(), |label| kind_of(label).to_owned()),
        events,
    })
}

/// The kind in a label class/kind/event.
fn kind_of(label: &str) -> &str {
    label.split('/').nth(1).unwrap_or(label)
}

/// Kind and event, but for those that do not wait: of them kind and event are one word.
fn event_of(label: &str) -> String {
    let mut parts = label.splitn(3, '/').skip(1);
    match (parts.next(), parts.next()) {
        (Some(kind), Some(event)) if kind != event => format!("{kind}: {event}"),
        (Some(kind), _) => kind.to_owned(),
        (None, _) => label.to_owned(),
    }
}

/// Columns added up by what they are called, the busiest first.
fn summed(columns: &[&ColumnRecord], seconds: usize, name: impl Fn(&str) -> String) -> Vec<WaitSessions> {
    let mut sums: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for column in columns {
        let sum = sums
            .entry(name(&column.label))
            .or_insert_with(|| vec![0.0; seconds]);
        for (sum, value) in sum.iter_mut().zip(&column.values) {
            *sum += value;
        }
    }
    let mut sums: Vec<WaitSessions> = sums
        .into_iter()
        .map(|(name, values)| WaitSessions { name, values })
        .collect();
    sums.sort_by(|a, b| b.values.iter().sum::<f64>().total_cmp(&a.values.iter().sum()));
    sums
}

/// The last ones become one where there are more than so many: nothing is dropped.
fn fold(all: &mut Vec<WaitSessions>, most: usize) {
    if all.len() <= most {
        return;
    }
    let rest = all.split_off(most - 1);
    let mut values = vec![0.0; rest.first().map_or(0, |one| one.values.len())];
    for one in &rest {
        for (sum, value) in values.iter_mut().zip(&one.values) {
            *sum += value;
        }
    }
    all.push(WaitSessions {
        name: OTHERS.to_owned(),
        values,
    });
}

/// Statements by their number: as sessions were seen at them, and as the server counted them. Those
/// that took the most time first, then the busiest.
pub(super) fn statements(series: &SeriesRecord, counted: &[StatementRecord]) -> Vec<Statement> {
    let total: f64 = of(series, STATEMENTS).flat_map(|column| &column.values).sum();
    let mut known: BTreeMap<String, Statement> = of(series, STATEMENTS)
        .map(|column| (column.label.clone(), sampled(column, total)))
        .collect();
    for record in counted {
        let query_id = record.query_id.to_string();
        let known = known.entry(query_id.clone()).or_insert_with(|| Statement {
            query_id,
            ..Statement::default()
        });
        add_counts(known, record);
    }
    let mut statements: Vec<Statement> = known.into_values().collect();
    let rank = |statement: &Statement| {
        (
            statement.total_ms.unwrap_or(-1.0),
            statement.mean_sessions.unwrap_or(-1.0),
        )
    };
    statements.sort_by(|a, b| {
        let (a, b) = (rank(a), rank(b));
        b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1))
    });
    statements.truncate(STATEMENTS_MAX);
    statements
}

fn sampled(column: &ColumnRecord, total: f64) -> Statement {
    let sum: f64 = column.values.iter().sum();
    #[expect(clippy::cast_precision_loss, reason = "seconds of a trial")]
    let seconds = column.values.len().max(1) as f64;
    Statement {
        query_id: column.label.clone(),
        mean_sessions: Some(sum / seconds),
        max_sessions: Some(column.values.iter().copied().fold(0.0, f64::max)),
        share_ratio: Some(if total > 0.0 { sum / total } else { 0.0 }),
        ..Statement::default()
    }
}

fn add_counts(statement: &mut Statement, record: &StatementRecord) {
    #[expect(clippy::cast_precision_loss, reason = "calls of a trial")]
    let calls = record.calls.max(1) as f64;
    statement.query.clone_from(&record.text);
    statement.calls = Some(record.calls);
    statement.total_ms = Some(record.total_ms);
    statement.mean_ms = Some(record.total_ms / calls);
    statement.rows = Some(record.rows);
    statement.shared_hit = Some(record.blocks_hit);
    statement.shared_read = Some(record.blocks_read);
    statement.wal_bytes = Some(record.wal_bytes);
}
