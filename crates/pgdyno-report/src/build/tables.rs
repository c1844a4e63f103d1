//! Tables of results: those that a study names, or one of all combinations of factors.

use super::analysis::{Analysis, STEP, interval_of};
use super::levels::{groups, has_levels, level_of};
use crate::model::{StudyChart, StudyTable, TableBlock, TableCell, TableColumn, TableRow, WholeChart};
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

/// Charts of a study that have figures of their own.
pub(super) fn charts(analysis: &Analysis<'_>) -> Vec<StudyChart> {
    let charts = charts_of(analysis).filter(|(chart, _)| !chart.is_whole());
    let charts = charts.map(|(chart, claims)| StudyChart {
        form: chart.form.clone(),
        published: chart.published.clone(),
        table: filled(analysis, &chart.table),
        claims,
    });
    charts.collect()
}

/// What a study says of charts that the experiment has anyway.
pub(super) fn whole_charts(analysis: &Analysis<'_>) -> Vec<WholeChart> {
    let charts = charts_of(analysis).filter(|(chart, _)| chart.is_whole());
    let charts = charts.map(|(chart, claims)| WholeChart {
        form: chart.form.clone(),
        title: chart.table.title.clone(),
        published: chart.published.clone(),
        claims,
    });
    charts.collect()
}

/// All charts of a study, each with the places of the findings that it shows.
fn charts_of<'a>(analysis: &Analysis<'a>) -> impl Iterator<Item = (&'a ChartRecord, Vec<usize>)> {
    let study = analysis.record().study.iter();
    study.flat_map(|study| {
        study.charts.iter().map(|chart| {
            let places = 0..study.claims.len();
            let shown =
                places.filter(|&place| study.claims[place].chart.as_ref() == Some(&chart.table.title));
            (chart, shown.collect())
        })
    })
}

/// The figure that decides by the first two factors. Fractions have too few of the combinations for
/// that.
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
        columns: columns.map(|factor| factor.name.clone()).into_iter().collect(),
        values: vec![record.metric.clone()],
    })
}

pub(super) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// Where a row or column comes from.
struct Line<'a> {
    title: &'a str,
    level: &'a str,
}

fn filled(analysis: &Analysis<'_>, table: &TableRecord) -> StudyTable {
    let record = analysis.record();
    let rows = row_factor(analysis, table);
    let (rows_title, lines) = lines_of(analysis, rows);
    let values = match table.values.is_empty() {
        true => vec![record.metric.clone()],
        false => table.values.clone(),
    };
    let (columns_title, heads) = heads(analysis, &table.columns, &values);
    let others: Vec<&FactorRecord> = record
        .factors
        .iter()
        .filter(|factor| factor.name != rows && !table.columns.contains(&factor.name))
        .collect();
    let blocks = groups(record, &others).into_iter().map(|(title, members)| {
        let cell = |line: &Line, head: &(Vec<&str>, TableColumn)| {
            let matching = members.iter().copied().filter(|&i| {
                let treatment = &record.treatments[i];
                level_of(treatment, rows) == Some(line.level)
                    && has_levels(treatment, table.columns.iter().zip(&head.0))
            });
            let values: Vec<f64> = matching
                .flat_map(|i| analysis.values(i, &head.1.figure))
                .collect();
            cell_of(&values, record.confidence)
        };
        let rows = lines.iter().map(|line| TableRow {
            title: line.title.to_owned(),
            cells: heads.iter().map(|head| cell(line, head)).collect(),
        });
        TableBlock {
            title,
            rows: rows.collect(),
        }
    });
    StudyTable {
        title: table.title.clone(),
        rows: rows_title.to_owned(),
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
    let mut others = factors.filter(|factor| !table.columns.contains(&factor.name));
    match &table.rows {
        Some(rows) => rows,
        None => others.next().map_or(STEP, |factor| &factor.name),
    }
}

/// Heading and lines of a factor.
fn lines_of<'a>(analysis: &Analysis<'a>, factor: &'a str) -> (&'a str, Vec<Line<'a>>) {
    let record = analysis.record();
    if let Some(factor) = record.factors.iter().find(|known| known.name == factor) {
        let lines = factor.levels.iter().map(|level| Line { title: level, level });
        return (&factor.title, lines.collect());
    }
    let steps = record.treatments.iter().filter_map(|treatment| {
        Some(Line {
            title: &treatment.title,
            level: level_of(treatment, factor)?,
        })
    });
    (factor, steps.collect())
}

/// What the columns differ in, and each with its levels; combinations that no treatment has are
/// left away.
fn heads<'a>(
    analysis: &Analysis<'a>,
    columns: &'a [String],
    values: &[String],
) -> (String, Vec<(Vec<&'a str>, TableColumn)>) {
    let mut titles = Vec::new();
    let mut combinations: Vec<(Vec<&str>, Vec<&str>)> = vec![(Vec::new(), Vec::new())];
    for factor in columns {
        let (title, lines) = lines_of(analysis, factor);
        titles.push(title);
        let longer = combinations.iter().flat_map(|(levels, words)| {
            lines.iter().map(move |line| {
                (
                    [&levels[..], &[line.level]].concat(),
                    [&words[..], &[line.title]].concat(),
                )
            })
        });
        combinations = longer.collect();
    }
    let treatments = &analysis.record().treatments;
    let is_there = |(levels, _): &(Vec<&str>, Vec<&str>)| {
        treatments
            .iter()
            .any(|t| has_levels(t, columns.iter().zip(levels)))
    };
    let heads = combinations
        .into_iter()
        .filter(is_there)
        .flat_map(|(levels, words)| {
            let own = words.join(", ");
            values.iter().map(move |figure| {
                let figure_title = MetricWords::of(figure).column;
                let title = match (own.as_str(), values) {
                    ("", _) => figure_title.clone(),
                    (_, [_]) => own.clone(),
                    _ => format!("{own}: {figure_title}"),
                };
                let column = TableColumn {
                    title,
                    figure: figure.clone(),
                    figure_title,
                };
                (levels.clone(), column)
            })
        });
    (titles.join(", "), heads.collect())
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
