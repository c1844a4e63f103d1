//! `pgdyno capacity`: CPUs and connections for a wanted throughput, by a stored ladder. Reports get
//! the same answers from here.

use crate::cli::CapacityArgs;
use crate::commands::stored::{number, store, whole};
use crate::context::Context;
use crate::exit;
use crate::failure::{Result, Usage};
use crate::show;
use pgdyno_lab::capacity::{
    Answer, Bounds, Found, Ladder, Question, Row, USUAL_TPS, answer, document, varies_nothing,
};
use pgdyno_record::StoredExperiment;
use pgdyno_stats::Price;
use pgdyno_store::{Filter, Store, StoreError};
use serde_json::{Value, json};

/// Parts of the most that was measured, for which a report has the answers too.
const PARTS: [f64; 4] = [0.5, 1.0, 2.0, 5.0];

pub(crate) fn run(context: &Context, args: &CapacityArgs) -> Result<u8> {
    whole(args.experiment.as_ref())?;
    let store = store(context, args.store.place())?;
    let id = match &args.experiment {
        Some(named) => number(&store, Some(named))?,
        None => newest(context, &store)?,
    };
    let stored = store.experiment(id)?;
    if Ladder::of(&stored.record, &context.catalogue)?.is_empty() {
        return Err(none(&varies_nothing(id)).into());
    }
    let price = args.price_per_cpu_hour.map(Price::PerCpuHour);
    let question = Question {
        tps: args.tps.unwrap_or(USUAL_TPS),
        cpus: args.cpus,
        p99_ms: args.p99.map(|p99| p99.as_secs_f64() * 1e3),
        price: price.or(args.price_per_host_hour.map(Price::PerHostHour)),
    };
    let answer = answer(&stored, &context.catalogue, &question)?;
    if args.json {
        put_page!("{:#}", serde_json::to_value(document(&answer, &question))?);
    } else {
        print(&answer, &question, args.tps.is_some());
    }
    Ok(exit::FINE)
}

/// What a report of an experiment shows of it, without a limit or a price: the usual throughput
/// first, then parts of the most that was measured. Empty where neither CPUs nor clients were
/// varied, or nothing is finished.
pub(crate) fn documents(context: &Context, stored: &StoredExperiment) -> Vec<Value> {
    let ladder = Ladder::of(&stored.record, &context.catalogue);
    if !ladder.is_ok_and(|ladder| !ladder.is_empty()) {
        return Vec::new();
    }
    let ask = |tps: f64| {
        let question = Question {
            tps,
            p99_ms: None,
            price: None,
            cpus: None,
        };
        let answer = answer(stored, &context.catalogue, &question).ok()?;
        Some((json!(document(&answer, &question)), answer))
    };
    let Some((usual, first)) = ask(USUAL_TPS).filter(|(_, answer)| !answer.rows.is_empty()) else {
        return Vec::new();
    };
    let most = first.rows.iter().map(most_tps).fold(0.0, f64::max);
    let mut wanted: Vec<f64> = PARTS.iter().map(|part| rounded(most * part)).collect();
    wanted.retain(|tps| *tps > 0.0 && *tps != USUAL_TPS);
    wanted.dedup();
    let others = wanted.into_iter().filter_map(|tps| Some(ask(tps)?.0));
    std::iter::once(usual).chain(others).collect()
}

/// The most that was measured for a combination of the other factors.
fn most_tps(row: &Row) -> f64 {
    match &row.found {
        Found::Zone { peak_tps, .. } => *peak_tps,
        _ => row
            .measured
            .iter()
            .map(|measured| measured.tps)
            .fold(0.0, f64::max),
    }
}

/// Two digits are enough to ask for.
fn rounded(tps: f64) -> f64 {
    if !tps.is_finite() || tps <= 0.0 {
        return 0.0;
    }
    let unit = 10_f64.powf(tps.log10().floor() - 1.0);
    (tps / unit).round() * unit
}

fn none(what: &str) -> Usage {
    Usage(format!(
        "{what}, so no curve can be fitted; `pgdyno run edb-cores` measures one, or an experiment of your own with a \
         factor of CPUs and one of load.clients (docs/how-to/capacity.md)"
    ))
}

/// The newest experiment that has varied CPUs, else the newest that has varied clients.
fn newest(context: &Context, store: &Store) -> Result<i64> {
    let mut of_clients = None;
    // The newest first; records are read until one will do.
    for listed in store.find(&Filter::default())? {
        if listed.trials_finished == 0 {
            continue;
        }
        let stored = match store.experiment_alone(listed.id) {
            // One broken record is that experiment's trouble.
            Err(StoreError::Record { .. }) => continue,
            stored => stored?,
        };
        match Ladder::of(&stored.record, &context.catalogue) {
            Ok(ladder) if !ladder.cpus.is_empty() => return Ok(listed.id),
            Ok(ladder) if !ladder.is_empty() => of_clients = of_clients.or(Some(listed.id)),
            _ => (),
        }
    }
    let why = || {
        none(&format!(
            "no experiment in {} varies CPUs or clients",
            store.place()
        ))
    };
    Ok(of_clients.ok_or_else(why)?)
}

/// `has_tps`: a throughput was asked for, not the CPUs alone.
fn print(answer: &Answer, question: &Question, has_tps: bool) {
    let tps = format!("what {} transactions per second need", show::figure(question.tps));
    let cpus = question
        .cpus
        .map(|cpus| format!("what {} CPUs give", show::figure(cpus)));
    let asked: Vec<String> = Some(tps).filter(|_| has_tps).into_iter().chain(cpus).collect();
    put!(
        "experiment {}, {}: {}\n",
        answer.experiment,
        answer.name,
        asked.join(", and ")
    );
    if answer.rows.is_empty() {
        put!("no trial of it is finished");
        return;
    }
    if answer.cpu_factors.is_empty() {
        let rows = answer.rows.iter().map(zone).collect();
        put_page!(
            "{}\n",
            show::table(
                &["for", "peak TPS", "clients there", "happy zone", "answer"],
                &[1, 2],
                rows
            )
        );
        put!(
            "CPUs were not varied, so the result says nothing about other numbers of CPUs; {}",
            advice()
        );
    } else {
        if has_tps {
            put_page!("{}\n", needs(answer, question.price.is_some()));
        }
        if question.cpus.is_some() {
            put_page!("{}\n", gives(answer, question.price.is_some()));
        }
        put_page!("{}\n", measured(answer));
        put!(
            "intervals are at {:.0} %, each by itself",
            answer.confidence * 100.0
        );
    }
    for row in &answer.rows {
        for note in &row.notes {
            put!("{}: {note}", name(row));
        }
    }
}

/// The answers, a line for each combination of the other factors.
fn needs(answer: &Answer, has_price: bool) -> String {
    /// Index of the column of the cost.
    const COST: usize = 3;
    let mut headings = vec![
        "for",
        "CPUs",
        "connections",
        "cost per million",
        "curve",
        "answer",
    ];
    let mut rows: Vec<Vec<String>> = answer.rows.iter().map(need).collect();
    if !has_price {
        headings.remove(COST);
        for row in &mut rows {
            row.remove(COST);
        }
    }
    show::table(&headings, &[1, 2], rows)
}

/// What the CPUs give, a line for each combination of the other factors.
fn gives(answer: &Answer, has_price: bool) -> String {
    let mut headings = vec!["for", "TPS", "connections", "answer"];
    if has_price {
        headings.insert(3, "cost per million");
    }
    let rows = answer.rows.iter().map(|row| {
        let dash = || "\u{2013}".to_owned();
        let Some(gives) = &row.gives else {
            return std::iter::once(name(row))
                .chain(headings[1..].iter().map(|_| dash()))
                .collect();
        };
        let remark = match gives.extrapolates > 1.0 {
            true => format!(
                "extrapolated to {:.1} times the largest measured",
                gives.extrapolates
            ),
            false => "within what was measured".to_owned(),
        };
        let cost = gives.cost_per_million.as_ref().map_or_else(dash, bounds);
        let mut cells = vec![name(row), bounds(&gives.tps), bounds(&gives.connections), remark];
        if has_price {
            cells.insert(3, cost);
        }
        cells
    });
    show::table(&headings, &[1, 2], rows.collect())
}

/// Table of the measured points that the curves go by.
fn measured(answer: &Answer) -> String {
    let lines = answer.rows.iter().flat_map(|row| {
        row.measured.iter().map(|measured| {
            vec![
                name(row),
                measured.cpus.to_string(),
                measured.clients.to_string(),
                show::figure(measured.tps),
                measured
                    .p99_ms
                    .map_or_else(|| "\u{2013}".to_owned(), show::figure),
                measured.blocks.to_string(),
            ]
        })
    });
    let headings = ["measured for", "CPUs", "best clients", "TPS", "p99 ms", "blocks"];
    show::table(&headings, &[1, 2, 3, 4, 5], lines.collect())
}

fn advice() -> &'static str {
    "`pgdyno run edb-cores` varies them"
}

fn name(row: &Row) -> String {
    let levels: Vec<&str> = row.of.iter().map(|(_, level)| level.as_str()).collect();
    if levels.is_empty() {
        "all".to_owned()
    } else {
        levels.join(", ")
    }
}

fn bounds(bounds: &Bounds) -> String {
    let high = bounds.high.map_or_else(|| "no bound".to_owned(), show::figure);
    format!(
        "{} ({} \u{2026} {high})",
        show::figure(bounds.value),
        show::figure(bounds.low)
    )
}

fn need(row: &Row) -> Vec<String> {
    let dash = || "\u{2013}".to_owned();
    let (cpus, connections, cost) = match &row.found {
        Found::Needs {
            cpus,
            connections,
            cost_per_million,
            ..
        } => (
            bounds(cpus),
            bounds(connections),
            cost_per_million.as_ref().map_or_else(dash, bounds),
        ),
        Found::Beyond {
            cpus_low: Some(low),
            cpus_high,
            ..
        } => {
            let high = cpus_high.map_or_else(|| "no bound".to_owned(), show::figure);
            (format!("{} \u{2026} {high}", show::figure(*low)), dash(), dash())
        }
        _ => (dash(), dash(), dash()),
    };
    let model = match row.model {
        Some("usl") => "scalability law",
        Some("power-law") => "power law",
        Some("two-levels") => "two points",
        _ => "none",
    };
    vec![
        name(row),
        cpus,
        connections,
        cost,
        model.to_owned(),
        row.remark.clone(),
    ]
}

fn zone(row: &Row) -> Vec<String> {
    let dash = || "\u{2013}".to_owned();
    let (tps, clients, zone) = match &row.found {
        Found::Zone {
            peak_tps,
            peak_tps_low,
            peak_tps_high,
            peak_clients,
            lowest_clients,
            highest_clients,
            open,
            ..
        } => {
            let more = if *open { " or more" } else { "" };
            (
                match peak_tps_low.zip(*peak_tps_high) {
                    Some((low, high)) => format!(
                        "{} ({} to {})",
                        show::figure(*peak_tps),
                        show::figure(low),
                        show::figure(high)
                    ),
                    None => show::figure(*peak_tps),
                },
                peak_clients.to_string(),
                format!("{lowest_clients} to {highest_clients}{more}"),
            )
        }
        _ => (dash(), dash(), dash()),
    };
    vec![name(row), tps, clients, zone, row.remark.clone()]
}
