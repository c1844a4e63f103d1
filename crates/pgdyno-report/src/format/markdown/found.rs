//! Tables of results, findings of a study, effects of factors and curves as Markdown.

use super::{cell, or_dash, title_of};
use crate::build::zone_sentence;
use crate::metric::figure;
use crate::model::{
    Bounded, ClaimOutcome, Curve, Interval, Report, StudyTable, TableBlock, TableCell, UslCurve,
};
use crate::text::{effect, number, percent, verdict_word};
use pgdyno_stats::{Edge, Effect};
use std::fmt::Write;

/// A line to a string cannot fail.
macro_rules! line {
    ($text:expr $(, $($part:tt)+)?) => { let _ = writeln!($text $(, $($part)+)?); };
}

/// More pairs than this are counted, not named.
const PAIRS_NAMED: usize = 2;

/// How the findings of a study are here.
pub(super) fn claims(text: &mut String, report: &Report) {
    let Some(study) = &report.study else { return };
    line!(text, "## Findings of [{}]\n", cell(&study.source));
    line!(text, "{}.", cell(&study.title));
    if let Some(summary) = &study.summary {
        line!(text, "\n**{}.**", cell(summary));
    }
    if !report.claims.is_empty() {
        line!(text, "\n| finding | study | here | outcome | tested on |");
        line!(text, "|---|--:|--:|---|---|");
    }
    for claim in &report.claims {
        let titles: Vec<String> = claim
            .treatments
            .iter()
            .zip(&claim.against)
            .map(|(name, against)| {
                format!(
                    "{} against {}",
                    cell(title_of(report, name)),
                    cell(title_of(report, against))
                )
            })
            .collect();
        let found = match claim.study_ratio {
            Some(ratio) => format!("{} %", percent(ratio)),
            None => cell(&claim.found),
        };
        let outcome = match claim.outcome {
            ClaimOutcome::Agrees => "\u{2713} agrees",
            ClaimOutcome::Disagrees => "\u{2717} disagrees",
            ClaimOutcome::Undecided => "? not decided",
            ClaimOutcome::NotTested => "\u{2013} not tested",
        };
        line!(
            text,
            "| {} | {found} | {} | {outcome} | {} |",
            cell(&claim.text),
            or_dash(claim.effect.as_ref().map(effect)),
            or_dash(match titles.len() {
                0 => None,
                n if n > PAIRS_NAMED => Some(format!("{n} pairs of treatments")),
                _ => Some(titles.join("; ")),
            })
        );
    }
    line!(text);
}

/// Writes what events of loads have changed.
pub(super) fn events(text: &mut String, report: &Report) {
    if report.timelines.is_empty() {
        return;
    }
    line!(text, "## What events changed\n");
    line!(
        text,
        "| treatment | event | after s | took s | TPS before | TPS after | change | verdict |"
    );
    line!(text, "|---|---|--:|--:|--:|--:|--:|---|");
    for timeline in &report.timelines {
        for shift in &timeline.shifts {
            let word = |effect: Effect| verdict_word(effect.verdict, report.decision.smallest_effect);
            let verdict = shift.effect.filter(|_| shift.trend.is_none()).map(word);
            let trend = shift
                .trend
                .map(|trend| format!("a trend before it: {:+.1} %", 100.0 * trend));
            line!(
                text,
                "| {} | {} | {} | {:.1} | {} | {} | {} | {} |",
                cell(title_of(report, &timeline.treatment)),
                cell(&shift.title),
                number(shift.t_s),
                shift.took_s,
                or_dash(shift.before_tps.map(number)),
                or_dash(shift.after_tps.map(number)),
                or_dash(shift.effect.as_ref().map(effect)),
                or_dash(verdict.or(trend))
            );
        }
    }
    line!(text);
}

/// Writes how a search went.
pub(super) fn search(text: &mut String, report: &Report) {
    let Some(search) = &report.search else { return };
    line!(text, "## The search\n");
    line!(text, "| trial | treatment | figure | best so far | its figure |");
    line!(text, "|--:|---|--:|---|--:|");
    for (number, step) in (1..).zip(&search.path) {
        let broken: Vec<String> = step.broken.iter().map(|own| cell(&own.bound)).collect();
        let own = match (step.figure, broken.is_empty()) {
            (None, _) => "failed".to_owned(),
            (Some(value), true) => figure(value),
            (Some(value), false) => format!("{}, breaks {}", figure(value), broken.join(", ")),
        };
        let best = step.best.as_ref();
        line!(
            text,
            "| {number} | {} | {own} | {} | {} |",
            cell(title_of(report, &step.treatment)),
            or_dash(best.map(|best| cell(title_of(report, &best.treatment)))),
            or_dash(best.map(|best| figure(best.figure)))
        );
    }
    if !search.importance.is_empty() {
        line!(text, "\n| factor | part of what the settings changed |");
        line!(text, "|---|--:|");
    }
    for own in &search.importance {
        line!(text, "| {} | {:.1} % |", cell(&own.factor), own.part * 100.0);
    }
    line!(text);
}

/// Writes the tables of results, those of charts first.
pub(super) fn tables(text: &mut String, report: &Report) {
    let drawn = report.charts.iter().map(|chart| &chart.table);
    for table in drawn.chain(&report.tables) {
        line!(text, "## {}\n", cell(&table.title));
        if table.blocks.is_empty() {
            line!(text, "No trial of it counts.\n");
        }
        for block in &table.blocks {
            if let Some(title) = &block.title {
                line!(text, "**{}**\n", cell(title));
            }
            rows(text, table, block);
        }
    }
}

fn rows(text: &mut String, table: &StudyTable, block: &TableBlock) {
    let corner = match table.columns_title.as_str() {
        "" => cell(&table.rows),
        columns => format!("{} \\\\ {}", cell(&table.rows), cell(columns)),
    };
    let heads: Vec<String> = table.columns.iter().map(|column| cell(&column.title)).collect();
    line!(text, "| {corner} | {} |", heads.join(" | "));
    line!(text, "|---|{}", "--:|".repeat(heads.len()));
    for row in &block.rows {
        let cells: Vec<String> = row
            .cells
            .iter()
            .map(|cell| or_dash(cell.as_ref().map(mean)))
            .collect();
        line!(text, "| {} | {} |", cell(&row.title), cells.join(" | "));
    }
    line!(text);
}

/// A mean with its bounds: "1,234 (1,200 … 1,268)".
fn mean(cell: &TableCell) -> String {
    match (cell.low, cell.high) {
        (Some(low), Some(high)) => {
            format!(
                "{} ({} \u{2026} {})",
                figure(cell.mean),
                figure(low),
                figure(high)
            )
        }
        _ => figure(cell.mean),
    }
}

/// Writes the main effects, then the interactions.
pub(super) fn effects(text: &mut String, report: &Report) {
    if report.effects.is_empty() {
        return;
    }
    line!(text, "## Effect of each factor\n");
    line!(
        text,
        "By {}, over all levels of the other factors. Two levels together: how much more than the product of each alone.\n",
        cell(&report.decision.metric_title)
    );
    line!(text, "| level | against | effect | verdict |");
    line!(text, "|---|---|--:|---|");
    for one in &report.effects {
        let against = match &one.other {
            Some(_) => "each alone".to_owned(),
            None => cell(&one.against),
        };
        let verdict = one
            .effect
            .map(|effect| verdict_word(effect.verdict, report.decision.smallest_effect));
        line!(
            text,
            "| {} | {against} | {} | {} |",
            cell(&one.title),
            or_dash(one.effect.as_ref().map(effect)),
            or_dash(verdict)
        );
    }
    line!(text);
}

/// Throughput over clients or CPUs.
pub(super) fn curves(text: &mut String, report: &Report) {
    for curve in &report.curves {
        let with = curve.title.as_ref().map(|title| format!(", {}", cell(title)));
        line!(
            text,
            "## Throughput over {}{}\n",
            cell(&curve.x),
            with.unwrap_or_default()
        );
        line!(text, "| {} | TPS | p99 ms | trials |", cell(&curve.x));
        line!(text, "|--:|--:|--:|--:|");
        for point in &curve.points {
            let with_bounds = |figure: &Interval| match point.n > 1 {
                true => format!(
                    "{} ({} \u{2026} {})",
                    number(figure.mean),
                    number(figure.low),
                    number(figure.high)
                ),
                false => number(figure.mean),
            };
            let tps = with_bounds(&point.tps);
            let p99 = or_dash(point.p99_ms.as_ref().map(with_bounds));
            line!(text, "| {} | {tps} | {p99} | {} |", point.x, point.n);
        }
        line!(text);
        line!(text, "- {}", zone(curve));
        line!(text, "- {}\n", law(curve));
    }
}

fn zone(curve: &Curve) -> String {
    match (&curve.zone, &curve.why_no_zone) {
        (Some(zone), _) => {
            let end = match zone.upper_edge {
                _ if zone.past_knee => "",
                Edge::Knee => "; it ends at the knee of response time",
                Edge::Unmeasured => "; more clients were not measured, so it may go on",
                Edge::Throughput => "; beyond it throughput falls below 95 % of the peak",
            };
            format!("Happy zone: {}{end}.", zone_sentence(zone))
        }
        (None, Some(why)) => format!("No happy zone: {}.", cell(why)),
        (None, None) => "No happy zone.".to_owned(),
    }
}

fn law(curve: &Curve) -> String {
    match (&curve.usl, &curve.why_no_usl) {
        (Some(usl), _) => law_text(usl, &curve.x),
        (None, Some(why)) => format!("No scalability law: {}.", cell(why)),
        (None, None) => "No scalability law.".to_owned(),
    }
}

fn law_text(usl: &UslCurve, x: &str) -> String {
    let peak = match usl.peak_x.value {
        Some(_) => format!(
            "its peak is at {} {}, {} TPS",
            bounded(&usl.peak_x),
            cell(x),
            bounded(&usl.peak_tps)
        ),
        None => "it has no peak: throughput still grows".to_owned(),
    };
    format!(
        "Universal Scalability Law: lambda {} TPS, sigma {}, kappa {}; {peak}. Trials lie {:.1} % around it.",
        bounded(&usl.lambda),
        bounded(&usl.sigma),
        bounded(&usl.kappa),
        usl.spread * 100.0
    )
}

/// "31.2 (28.0 … 36.1)"; a bound that the data do not set is open.
fn bounded(estimate: &Bounded) -> String {
    let or_open = |bound: Option<f64>| bound.map_or_else(|| "\u{221e}".to_owned(), figure);
    format!(
        "{} ({} \u{2026} {})",
        or_open(estimate.value),
        or_open(estimate.low),
        or_open(estimate.high)
    )
}
