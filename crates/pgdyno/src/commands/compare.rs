//! `pgdyno compare`: two treatments, experiments or trials compared with each other, and gates for
//! CI.

use crate::cli::CompareArgs;
use crate::commands::stored::{number, store};
use crate::context::Context;
use crate::exit;
use crate::failure::{Result, Usage};
use crate::output::{self, Style, Styled};
use crate::show;
use pgdyno_lab::compare::{
    Basis, Comparison, Judged, Named, Outcome, Pair, Row, SideFigure, compare, document,
};
use pgdyno_record::StoredExperiment;
use pgdyno_report::{effect, markdown_text as cell, verdict_word};
use std::collections::BTreeMap;
use std::fmt::Write;

pub(crate) fn run(context: &Context, args: &CompareArgs) -> Result<u8> {
    let store_a = store(context, args.store.place())?;
    let a = store_a.experiment(number(&store_a, Some(&args.a))?)?;
    // The same file under another name is the same store.
    let place_a = context.store_place(args.store.place())?;
    let store_b = match args.store_b.as_deref() {
        Some(named) if !context.store_place(Some(named))?.is_same(&place_a) => {
            Some(store(context, Some(named))?)
        }
        _ => None,
    };
    let of_b = store_b.as_ref().unwrap_or(&store_a);
    let b = of_b.experiment(number(of_b, Some(&args.b))?)?;
    let names = store_b.as_ref().map(|store_b| {
        let name = |store: &pgdyno_store::Store| store.place().to_string();
        (name(&store_a), name(store_b))
    });
    let comparison = compared(args, &a, &b, names.as_ref())?;
    let mut judged = Vec::new();
    for gate in &args.fail_if {
        judged.extend(
            gate.judge(&comparison)
                .map_err(|error| Usage(error.to_string()))?,
        );
    }
    if args.json {
        put_page!(
            "{}",
            serde_json::to_string_pretty(&document(&comparison, &judged))?
        );
    } else if args.md {
        put_page!("{}", markdown(&comparison, &judged).trim_end());
    } else {
        put_page!("{}", text(&comparison, &judged).trim_end());
    }
    let is_undecided = judged.iter().any(|judged| judged.outcome == Outcome::NotDecided);
    if is_undecided && !args.strict && !args.allow_undecided {
        output::err_styled(&Styled::beginning(
            Style::Hint,
            "hint:",
            format_args!(
                "more blocks decide a gate whose limit is within the interval; --allow-undecided accepts it (exit code 0)"
            ),
        ));
    }
    Ok(code(judged.iter().map(|judged| judged.outcome), args))
}

/// A gate that fails decides over one that is undecided.
fn code(outcomes: impl Iterator<Item = Outcome> + Clone, args: &CompareArgs) -> u8 {
    let any = |wanted: Outcome| outcomes.clone().any(|outcome| outcome == wanted);
    match (any(Outcome::Fails), any(Outcome::NotDecided)) {
        (true, _) => exit::NOT_HELD,
        (false, true) if args.strict => exit::NOT_HELD,
        (false, true) if !args.allow_undecided => exit::UNDECIDED,
        _ => exit::FINE,
    }
}

fn compared(
    args: &CompareArgs,
    a: &StoredExperiment,
    b: &StoredExperiment,
    names: Option<&(String, String)>,
) -> Result<Comparison> {
    let side = |stored, which, store| Named { stored, which, store };
    let a = side(a, &args.a.which, names.map(|(a, _)| a.as_str()));
    let b = side(b, &args.b.which, names.map(|(_, b)| b.as_str()));
    let wrong = |error: pgdyno_lab::compare::CompareError| Usage(error.to_string());
    let comparison = compare(a, b, &args.metric).map_err(wrong)?;
    // A gate's figure is compared, too.
    let mut metrics: Vec<String> = comparison
        .pairs
        .iter()
        .take(1)
        .flat_map(|pair| pair.rows.iter().map(|row| row.metric.clone()))
        .collect();
    let of_gates = args.fail_if.iter().map(|gate| gate.metric.clone());
    let missing: Vec<String> = of_gates.filter(|metric| !metrics.contains(metric)).collect();
    if missing.is_empty() {
        return Ok(comparison);
    }
    metrics.extend(missing);
    Ok(compare(a, b, &metrics).map_err(wrong)?)
}

/// Sentence on what the intervals hold for.
fn basis(comparison: &Comparison) -> String {
    let confidence = comparison.confidence * 100.0;
    let rest = format!(
        "B is compared with A. Intervals are at {confidence:.0} % together: those of the metric that decides over the \
         experiment's comparisons, or over all pairs that can be asked for, those of the other metrics among themselves as well."
    );
    let what = match comparison.basis {
        Basis::Blocks => {
            "Treatments of one experiment, compared within its blocks: drift of the machine cancels."
        }
        Basis::Trials => {
            "The two did not run in blocks: what drifted between them is not cancelled, and is part of the ratio."
        }
        Basis::TwoTrials => "These two trials only: the interval is made of their seconds.",
    };
    format!("{what} {rest}")
}

fn side(figure: Option<SideFigure>) -> String {
    let Some(figure) = figure else {
        return "\u{2013}".to_owned();
    };
    match figure.high {
        Some(high) => format!(
            "{} \u{b1} {}",
            show::figure(figure.mean),
            show::figure(high - figure.mean)
        ),
        None => show::figure(figure.mean),
    }
}

/// The cells of a row: metric, A, B, ratio, trials, verdict.
fn cells(row: &Row, smallest_effect: f64) -> Vec<String> {
    let n = |figure: Option<SideFigure>| figure.map_or(0, |figure| figure.n);
    let ratio = match (&row.effect, row.ratio) {
        (Some(found), _) => effect(found),
        (None, Some(ratio)) => format!("{:+.1} %", (ratio - 1.0) * 100.0),
        (None, None) => "\u{2013}".to_owned(),
    };
    let verdict = row.effect.map_or_else(
        || "no interval".to_owned(),
        |found| verdict_word(found.verdict, smallest_effect),
    );
    vec![
        row.metric.clone(),
        side(row.a),
        side(row.b),
        ratio,
        format!("{}, {}", n(row.a), n(row.b)),
        verdict,
    ]
}

const HEADINGS: [&str; 6] = ["metric", "A", "B", "B against A", "trials", "verdict"];

/// Notes below the table of a pair.
fn notes(pair: &Pair) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for row in &pair.rows {
        if let Some(why) = row.why_no_interval {
            notes.push(format!("{}: {why}", row.metric));
        }
    }
    notes.extend(pair.why_no_verdict.map(|why| format!("no verdict: {why}")));
    let mut uneven: BTreeMap<(usize, usize), Vec<&str>> = BTreeMap::new();
    let is_uneven = |row: &&Row| row.fails_more() != (false, false);
    for row in pair.rows.iter().filter(is_uneven) {
        uneven.entry(row.failed).or_default().push(&row.metric);
    }
    notes.extend(uneven.iter().map(|((of_a, of_b), metrics)| {
        format!(
            "{}: {of_a} trials count as failed for A and {of_b} for B (no result, no value of the metric, or 0): the side with a larger part of them is called neither better nor the same",
            metrics.join(", ")
        )
    }));
    notes
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Holds => "passed",
        Outcome::Fails => "FAILED",
        Outcome::NotDecided => "undecided",
    }
}

fn text(comparison: &Comparison, judged: &[Judged]) -> String {
    let mut page = String::new();
    for pair in &comparison.pairs {
        let _ = writeln!(page, "A: {}\nB: {}\n", pair.a, pair.b);
        let rows = pair
            .rows
            .iter()
            .map(|row| cells(row, comparison.smallest_effect))
            .collect();
        let _ = writeln!(page, "{}\n", show::table(&HEADINGS, &[1, 2, 3, 4], rows));
        for note in notes(pair) {
            let _ = writeln!(page, "{note}");
        }
        if pair.differs.is_empty() {
            let _ = writeln!(page, "nothing that is on record differs\n");
        } else {
            let rows = pair
                .differs
                .iter()
                .map(|d| vec![d.what.clone(), d.a.clone(), d.b.clone()])
                .collect();
            let _ = writeln!(page, "{}\n", show::table(&["what differs", "A", "B"], &[], rows));
        }
    }
    page += &show::wrapped("", &basis(comparison), 110);
    for gate in judged {
        let _ = writeln!(
            page,
            "gate \"{}\": {}: {} ({})",
            gate.gate,
            outcome(gate.outcome),
            gate.why,
            gate.b
        );
    }
    page
}

fn markdown(comparison: &Comparison, judged: &[Judged]) -> String {
    let mut page = String::new();
    let line = |cells: Vec<String>| {
        let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    for gate in judged {
        let texts = [&gate.gate, &gate.why, &gate.b].map(|text| cell(text));
        let _ = writeln!(
            page,
            "- **{}**: {}: {} ({})",
            outcome(gate.outcome),
            texts[0],
            texts[1],
            texts[2]
        );
    }
    for pair in &comparison.pairs {
        let _ = writeln!(page, "\n**{}** against **{}**\n", cell(&pair.b), cell(&pair.a));
        page += &line(HEADINGS.map(str::to_owned).to_vec());
        page += "|---|--:|--:|--:|--:|---|\n";
        for row in &pair.rows {
            page += &line(cells(row, comparison.smallest_effect));
        }
        page.push('\n');
        for note in notes(pair) {
            let _ = writeln!(page, "- {}", cell(&note));
        }
        if !pair.differs.is_empty() {
            page += "\n| what differs | A | B |\n|---|---|---|\n";
            for differs in &pair.differs {
                page += &line(vec![differs.what.clone(), differs.a.clone(), differs.b.clone()]);
            }
        }
    }
    let _ = writeln!(page, "\n{}", basis(comparison));
    page
}
