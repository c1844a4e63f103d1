//! Tables and wrapped text for the terminal.

use crate::output;
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use pgdyno_report::{Report, Treatment, effect, figure_heading, figure_value, verdict_word};
pub(crate) use pgdyno_stats::three_digits as figure;

/// A line below the headings, and no other.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('\u{2500}').junction('\u{2500}'));

/// A table with headings; columns named in `right` hold numbers.
pub(crate) fn table(headings: &[&str], right: &[usize], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table
        .load_style(STYLE)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headings.to_vec());
    for row in rows {
        // Cleaned here, so that each column is as wide as what is shown.
        table.add_row(row.iter().map(|text| output::cell(text)));
    }
    for &column in right {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    // Lines that end in blanks are a nuisance to copy.
    table.trim_fmt()
}

/// The verdicts of an experiment by the figure that decides; of one that compares nothing, its
/// figures.
pub(crate) fn verdicts(report: &Report) -> String {
    let dash = || "\u{2013}".to_owned();
    let decision = &report.decision;
    let compares = report.treatments.iter().any(|t| t.against.is_some());
    let with_steps = report.experiment.factors.is_empty();
    let of = |t: &Treatment| {
        let tested = t.why_not.is_none();
        let verdict = t
            .step
            .map_or_else(dash, |s| verdict_word(s.verdict, decision.smallest_effect));
        let mut row = vec![
            t.title.clone(),
            t.mean(&decision.metric).map_or_else(dash, figure_value),
        ];
        if compares {
            row.push(t.step.as_ref().map_or_else(dash, effect));
            row.push(if tested { verdict } else { "not tested".to_owned() });
            if with_steps {
                row.push(t.total.as_ref().map_or_else(dash, effect));
            }
        }
        let p95_ms = t.percentiles.and_then(|p| p.p95_ms);
        row.push(p95_ms.map_or_else(dash, figure_value));
        row
    };
    let heading = figure_heading(&decision.metric);
    let (headings, right): (Vec<&str>, &[usize]) = match (compares, with_steps) {
        (true, true) => (
            vec![
                "step",
                &heading,
                "effect of the step",
                "verdict",
                "in all",
                "p95 ms",
            ],
            &[1, 2, 4, 5],
        ),
        (true, false) => (
            vec!["treatment", &heading, "effect", "verdict", "p95 ms"],
            &[1, 2, 4],
        ),
        (false, _) => (vec!["treatment", &heading, "p95 ms"], &[1, 2]),
    };
    table(&headings, right, report.treatments.iter().map(of).collect())
}

/// What was restored, each knob once.
pub(crate) fn restored(lines: &[pgdyno_knobs::Restored]) -> String {
    let rows = lines
        .iter()
        .map(|line| {
            let outcome = match line.outcome {
                pgdyno_knobs::Outcome::Restored => "restored",
                pgdyno_knobs::Outcome::Already => "as before already",
                pgdyno_knobs::Outcome::Left => "left alone",
                pgdyno_knobs::Outcome::Failed => "FAILED",
            };
            let detail = line.detail.as_ref().map(|d| format!(": {d}")).unwrap_or_default();
            vec![
                line.knob.clone(),
                line.set_to.clone(),
                line.was.clone(),
                format!("{outcome}{detail}"),
            ]
        })
        .collect();
    table(&["knob", "was set to", "before", "now"], &[], rows)
}

/// An instant in the reader's zone.
pub(crate) fn instant(unix_ms: u64) -> String {
    let ms = i64::try_from(unix_ms).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(ms).map_or_else(
        |_| unix_ms.to_string(),
        |instant| {
            let zoned = instant.to_zoned_datetime(jiff::tz::TimeZone::system());
            zoned.strftime("%Y-%m-%d %H:%M:%S").to_string()
        },
    )
}

/// A text in lines of `columns` at most, the first one behind `head`, the others below its end;
/// ends with a new line. Only a longer word goes beyond.
pub(crate) fn wrapped(head: &str, text: &str, columns: usize) -> String {
    wrapped_at(head, text, head.chars().count(), columns)
}

/// The same with lines after the first one indented by so many columns.
pub(crate) fn wrapped_at(head: &str, text: &str, indent: usize, columns: usize) -> String {
    let mut page = String::new();
    let mut line = head.to_owned();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        let taken = line.chars().count() + usize::from(!is_empty) + word.chars().count();
        if !is_empty && taken > columns {
            page += line.trim_end();
            page.push('\n');
            line = " ".repeat(indent);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line += word;
        is_empty = false;
    }
    page += line.trim_end();
    page.push('\n');
    page
}

/// A length of time: "40 s", "12 min", "3 h 20 min".
pub(crate) fn time(seconds: f64) -> String {
    let minutes = (seconds / 60.0).round();
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{minutes:.0} min"),
        _ => format!("{:.0} h {:.0} min", (minutes / 60.0).floor(), minutes % 60.0),
    }
}

/// 1.5 GB and the like.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{n} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_within_their_columns() {
        assert_eq!(wrapped("a  ", "bb cc dd", 8), "a  bb cc\n   dd\n");
        assert_eq!(wrapped_at("head  ", "bb cc", 2, 8), "head  bb\n  cc\n");
        assert_eq!(wrapped("", "averylongword b", 5), "averylongword\nb\n");
        assert_eq!(wrapped("a  ", "", 5), "a\n");
    }
}
