//! Tables of results: those that a study names, or one of all combinations of factors.

use super::analysis::{Analysis, STEP, interval_of};
use super::levels::{groups, level_of};
use crate::model::{StudyChart, StudyTable, TableBlock, TableCell, TableColumn, TableRow};
use pgdyno_record::MetricWords;
use pgdyno_record::{ChartRecord, FactorRecord, TableRecord};

/// All tables of an experiment.
pub(super) fn tables(analysis: &Analysis<'_>) -> Vec<StudyTable> {
    let record = analysis.record();
    let tables = match &record.study {
        Some(study) => study.tables.clone(),
        None => own_table(analysis).into_iter().collect(),
    };
    tables.iter().map(|table| filled(analysis, table)).collect()
}

/// All charts of a study.
pub(super) fn charts(analysis: &Analysis<'_>) -> Vec<StudyChart> {
    let Some(study) = &analysis.record().study else {
        return Vec::new();
    };
    let chart = |chart: &ChartRecord| StudyChart {
        form: chart.form.clone(),
        published: chart.published.clone(),
        table: filled(analysis, &chart.table),
        claims: (0..study.claims.len())
            .filter(|&place| study.claims[place].chart.as_ref() == Some(&chart.table.title))
            .collect(),
    };
    study.charts.iter().map(chart).collect()
}

/// The figure that decides by the first two factors. Fractions have too few of the combinations for that.
fn own_table(analysis: &Analysis<'_>) -> Option<TableRecord> {
    let record = analysis.record();
    if !matches!(record.design.as_str(), "full-factorial" | "ladder") {
        return None;
    }
    let rows = record.factors.first()?;
    let columns = record.factors.get(1);
    let by = columns.map_or_else(
        || rows.title.clone(),
        |columns| format!("{} and {}", rows.title, columns.title),
    );
    Some(TableRecord {
        title: capitalised(&format!("{} by {by}", MetricWords::of(&record.metric).title)),
        rows: Some(rows.name.clone()),
        columns: columns.map(|factor| factor.name.clone()),
        values: vec![record.metric.clone()],
    })
}

pub(super) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// Where a row or column comes from.
struct Line {
    title: String,
    level: String,
}

fn filled(analysis: &Analysis<'_>, table: &TableRecord) -> StudyTable {
    let record = analysis.record();
    let columns = table.columns.as_deref();
    let rows = row_factor(analysis, table);
    let (rows_title, lines) = lines_of(analysis, rows);
    let values = match table.values.is_empty() {
        true => vec![record.metric.clone()],
        false => table.values.clone(),
    };
    let (columns_title, heads) = heads(analysis, columns, &values);
    let others: Vec<&FactorRecord> = record
        .factors
        .iter()
        .filter(|factor| factor.name != rows && Some(factor.name.as_str()) != columns)
        .collect();
    let blocks = groups(record, &others).into_iter().map(|(title, members)| {
        let cell = |line: &Line, head: &(Option<String>, TableColumn)| {
            let matching = members.iter().copied().filter(|&i| {
                let treatment = &record.treatments[i];
                level_of(treatment, rows) == Some(&line.level)
                    && columns.is_none_or(|columns| level_of(treatment, columns) == head.0.as_deref())
            });
            let values: Vec<f64> = matching
                .flat_map(|i| analysis.values(i, &head.1.figure))
                .collect();
            cell_of(&values, record.confidence)
        };
        let rows = lines.iter().map(|line| TableRow {
            title: line.title.clone(),
            cells: heads.iter().map(|head| cell(line, head)).collect(),
        });
        TableBlock {
            title,
            rows: rows.collect(),
        }
    });
    StudyTable {
        title: table.title.clone(),
        rows: rows_title,
        columns_title,
        blocks: blocks.filter(has_cells).collect(),
        columns: heads.into_iter().map(|(_, head)| head).collect(),
    }
}

fn has_cells(block: &TableBlock) -> bool {
    block.rows.iter().any(|row| row.cells.iter().any(Option::is_some))
}

/// The factor of the rows: the one named, or steps, or the first that is not that of the columns.
fn row_factor<'a>(analysis: &Analysis<'a>, table: &'a TableRecord) -> &'a str {
    let factors = analysis.record().factors.iter();
    let mut others = factors.filter(|factor| Some(&factor.name) != table.columns.as_ref());
    match &table.rows {
        Some(rows) => rows,
        None => others.next().map_or(STEP, |factor| &factor.name),
    }
}

/// Heading and lines of a factor.
fn lines_of(analysis: &Analysis<'_>, factor: &str) -> (String, Vec<Line>) {
    let record = analysis.record();
    if let Some(factor) = record.factors.iter().find(|known| known.name == factor) {
        let lines = factor.levels.iter().map(|level| Line {
            title: level.clone(),
            level: level.clone(),
        });
        return (factor.title.clone(), lines.collect());
    }
    let steps = record.treatments.iter().filter_map(|treatment| {
        Some(Line {
            title: treatment.title.clone(),
            level: level_of(treatment, factor)?.to_owned(),
        })
    });
    (factor.to_owned(), steps.collect())
}

/// What the columns differ in, and each with its level.
fn heads(
    analysis: &Analysis<'_>,
    columns: Option<&str>,
    values: &[String],
) -> (String, Vec<(Option<String>, TableColumn)>) {
    let column = |title: String, figure: &String| TableColumn {
        title,
        figure: figure.clone(),
        figure_title: MetricWords::of(figure).column,
    };
    let Some(columns) = columns else {
        let heads = values
            .iter()
            .map(|figure| (None, column(MetricWords::of(figure).column, figure)));
        return (String::new(), heads.collect());
    };
    let (title, levels) = lines_of(analysis, columns);
    let heads = levels.iter().flat_map(|line| {
        values.iter().map(|figure| {
            let title = match values {
                [_] => line.title.clone(),
                _ => format!("{}: {}", line.title, MetricWords::of(figure).column),
            };
            (Some(line.level.clone()), column(title, figure))
        })
    });
    (title, heads.collect())
}

fn cell_of(values: &[f64], confidence: f64) -> Option<TableCell> {
    let interval = interval_of(values, confidence)?;
    let bound = |bound: f64| (values.len() > 1).then_some(bound);
    Some(TableCell {
        mean: interval.mean,
        low: bound(interval.low),
        high: bound(interval.high),
        n: values.len(),
    })
}
