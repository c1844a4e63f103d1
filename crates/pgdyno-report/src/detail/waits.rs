//! What sessions waited for and which statements they were at, out of the samples' columns.

use super::model::{Statement, WaitType, Waits};
use pgdyno_store::{ColumnRecord, SeriesRecord};
use std::collections::BTreeMap;

/// Label: class/kind/event.
const WAITS: &str = "waits.sessions";
/// Label: query id.
const STATEMENTS: &str = "waits.statement_sessions";
/// More statements than this are no table that anybody reads.
const STATEMENTS_MAX: usize = 200;

fn of<'a>(series: &'a SeriesRecord, metric: &'static str) -> impl Iterator<Item = &'a ColumnRecord> {
    series
        .columns
        .iter()
        .filter(move |column| column.metric == metric)
}

/// Sessions by type of wait; all columns of waits have the same times.
pub(super) fn waits(series: &SeriesRecord) -> Option<Waits> {
    let first = of(series, WAITS).next()?;
    let mut types: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for column in of(series, WAITS).filter(|column| column.at_ms == first.at_ms) {
        let kind = column.label.split('/').nth(1).unwrap_or(&column.label);
        let sum = types.entry(kind).or_insert_with(|| vec![0.0; first.at_ms.len()]);
        for (sum, value) in sum.iter_mut().zip(&column.values) {
            *sum += value;
        }
    }
    let mut types: Vec<WaitType> = types
        .into_iter()
        .map(|(name, values)| WaitType {
            name: name.to_owned(),
            values,
        })
        .collect();
    types.sort_by(|a, b| b.values.iter().sum::<f64>().total_cmp(&a.values.iter().sum()));
    Some(Waits {
        t_ms: first.at_ms.clone(),
        types,
    })
}

/// Statements, the busiest first.
pub(super) fn statements(series: &SeriesRecord) -> Vec<Statement> {
    let total: f64 = of(series, STATEMENTS).flat_map(|column| &column.values).sum();
    let mut statements: Vec<Statement> = of(series, STATEMENTS)
        .map(|column| {
            let sum: f64 = column.values.iter().sum();
            #[expect(clippy::cast_precision_loss, reason = "seconds of a trial")]
            let seconds = column.values.len().max(1) as f64;
            Statement {
                query_id: column.label.clone(),
                query: None,
                mean_sessions: sum / seconds,
                max_sessions: column.values.iter().copied().fold(0.0, f64::max),
                share_ratio: if total > 0.0 { sum / total } else { 0.0 },
            }
        })
        .collect();
    statements.sort_by(|a, b| b.mean_sessions.total_cmp(&a.mean_sessions));
    statements.truncate(STATEMENTS_MAX);
    statements
}
