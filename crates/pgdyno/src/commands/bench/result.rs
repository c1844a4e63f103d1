//! What a load did, as text and as JSON.

use crate::placement::Placement;
use crate::show;
use pgdyno_engine::hdrhistogram::Histogram;
use pgdyno_engine::{Arrivals, Books, SecondFigures, Spacing, StatementName, Times, Warmup, percentile_ms};
use pgdyno_lab::Measurement;
use pgdyno_record::{DistributionPoint, GeneratorHost};
use pgdyno_stats::three_digits;
use pgdyno_workload::{LoadPlan, Work};
use serde_json::{Value, json};
use std::time::Duration;

/// The server that was driven.
pub(super) struct ServerWords<'a> {
    /// Host and port, or the socket's directory and port.
    pub(super) place: String,
    pub(super) version: String,
    pub(super) placement: Placement<'a>,
}

/// A second of a load on one line.
pub(super) fn line(second: &SecondFigures, plan: &LoadPlan) -> String {
    let ms = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.2}"));
    let left = match (plan.drive.transactions, plan.drive.warmup) {
        (None, Warmup::For(warmup)) => format!(
            "  {} s left",
            (warmup + plan.drive.measure)
                .as_secs()
                .saturating_sub(u64::from(second.number))
        ),
        _ => String::new(),
    };
    format!(
        "{:>4} s {:>9.0} TPS  p50 {:>8} ms  p95 {:>8} ms  p99 {:>8} ms  failed {}  clients {}{left}{}",
        second.number,
        second.tps(),
        ms(second.p50_ms),
        ms(second.p95_ms),
        ms(second.p99_ms),
        second.failed,
        second.clients,
        if second.measured { "" } else { "  (warm-up)" }
    )
}

const PERCENTILES: [f64; 5] = [50.0, 95.0, 99.0, 99.9, 100.0];

fn percentiles(value: impl Fn(f64) -> Option<f64>) -> Value {
    PERCENTILES
        .iter()
        .map(|&p| (format!("p{p}"), json!(value(p))))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The interval of each percentile that has one: [lower bound, upper bound], null for a bound that
/// the transactions do not give.
fn intervals_json(measurement: &Measurement) -> Value {
    let points = PERCENTILES.iter().filter_map(|&p| {
        Some((
            format!("p{p}"),
            DistributionPoint::find(&measurement.distribution, p)?,
        ))
    });
    points
        .map(|(name, point)| (name, json!([point.low_ms, point.high_ms])))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn of_histogram(histogram: &Histogram<u64>) -> Value {
    percentiles(|p| percentile_ms(histogram, p))
}

fn arrivals_json(arrivals: &Arrivals) -> Value {
    match arrivals {
        Arrivals::Closed { think } => json!({ "loop": "closed", "think_ms": think.as_secs_f64() * 1e3 }),
        Arrivals::Open { rate, spacing, batch } => json!({
            "loop": "open", "rate": rate.to_string(), "spacing": spacing, "batch_ms": batch.as_secs_f64() * 1e3,
        }),
    }
}

/// A second of a load as an object.
pub(super) fn second_json(second: &SecondFigures) -> Value {
    json!({
        "second": second.number, "measured": second.measured, "tps": second.tps(),
        "failed": second.failed, "clients": second.clients,
        "p50_ms": second.p50_ms, "p95_ms": second.p95_ms, "p99_ms": second.p99_ms,
    })
}

/// The whole result as an object; `experiment` is its number in the store.
pub(super) fn as_json(
    plan: &LoadPlan,
    measurement: &Measurement,
    server: &ServerWords<'_>,
    experiment: Option<i64>,
) -> Value {
    let load = &measurement.load;
    let books = &load.measured;
    let mut document = json!({
        "format": "pgdyno-bench/1",
        "experiment": experiment,
        "workload": plan.work.to_string(),
        "protocol": plan.protocol,
        "transaction": control_name(plan),
        "arrivals": arrivals_json(&plan.drive.arrivals),
        "latency_limit_ms": plan.drive.latency_limit.map(|limit| limit.as_secs_f64() * 1e3),
        "clients": plan.drive.clients,
        "threads": threads(plan, measurement),
        "connect": plan.drive.connect,
        "seed": plan.drive.seed,
        "engine": load.engine,
        "server": server.place,
        "server_version": server.version,
        "warmup_s": load.warmup_s,
        "warmup": match plan.drive.warmup { Warmup::For(_) => "time", Warmup::Settled(_) => "auto" },
        "placement": server.placement.as_json(),
        "measured_s": load.measured_s,
        "stopped_early": load.stopped_early,
        "unsettled_s": measurement.unsettled_s(),
        "warm_up": measurement.warm_up_end().word(),
        "tps": measurement.tps(),
        "nopm": measurement.nopm(),
        "rolled_back": books.rolled_back,
        "all": books.all,
        "committed": books.committed,
        "failed": books.failed,
        "skipped": books.skipped,
        "max_tries": plan.drive.max_tries,
        "retries": books.retries,
        "late": plan.drive.latency_limit.map(|_| books.late),
        "goodput_tps": measurement.goodput_tps(),
        "errors": books.errors().iter().map(|error| {
            let first = load.first_error(&error.sqlstate);
            json!({
                "sqlstate": error.sqlstate, "count": error.count,
                "message": first.map(|first| &first.message), "place": first.map(|first| &first.place),
            })
        }).collect::<Vec<_>>(),
    });
    let times = json!({
        "response_ms": percentiles(|p| measurement.counted().0.percentile_ms(p)),
        "response_interval_ms": intervals_json(measurement),
        "response_at_least": PERCENTILES.iter().filter(|&&p| measurement.counted().0.is_lower_bound(p))
            .map(|p| format!("p{p}")).collect::<Vec<_>>(),
        "kinds": load.kinds.iter().map(kind_json).collect::<Vec<_>>(),
        "statements": load.statements.iter().map(statement_json).collect::<Vec<_>>(),
        "notes": load.notes,
        "connection_ms": load.connections.as_ref().map(|times| of_histogram(&times.service_ns)),
        "service_ms": books.parts.as_ref().map(|parts| of_histogram(&parts.service_ns)),
        "schedule_lag_ms": books.parts.as_ref().map(|parts| of_histogram(&parts.lag_ns)),
        "client_cpu_us_per_tx": load.client_cpu_us_per_tx(),
        "server_cpu_us_per_tx": measurement.server_cpu_us_per_tx,
        "wal_bytes_per_tx": measurement.wal_bytes_per_tx,
        "stability_cv": measurement.stability_cv,
        "steadiness": measurement.steadiness,
        "cross_check": measurement.cross_check,
        "unchecked": measurement.unchecked,
        "load_hosts": measurement.load_hosts.iter().map(load_host_json).collect::<Vec<_>>(),
        "warnings": measurement.warnings,
        "disturbances": measurement.disturbances,
        "broken": measurement.broken,
        "seconds": load.seconds.iter().map(second_json).collect::<Vec<_>>(),
    });
    if let (Some(document), Value::Object(times)) = (document.as_object_mut(), times) {
        document.extend(times);
    }
    document
}

/// With what is not known of the common instant there.
fn began_late_ms(host: &GeneratorHost) -> f64 {
    Duration::from_nanos(host.began_late_ns).as_secs_f64() * 1e3
}

fn load_host_json((name, host): &(String, GeneratorHost)) -> Value {
    json!({
        "host": name, "idle": host.idle, "steal": host.steal, "network": host.network,
        "began_late_ms": began_late_ms(host), "threads": host.threads, "threads_cpu": host.threads_cpu,
        "lag_p99_ms": host.lag_p99_ns.map(|ns| Duration::from_nanos(ns).as_secs_f64() * 1e3),
    })
}

/// Threads of the load: those of its hosts, which may have chosen them.
fn threads(plan: &LoadPlan, measurement: &Measurement) -> u32 {
    let mut hosts = measurement.load_hosts.iter();
    let of_hosts = hosts.try_fold(0_u32, |all, (_, host)| Some(all.saturating_add(host.threads?)));
    of_hosts.filter(|all| *all > 0).unwrap_or(plan.drive.threads)
}

/// What holds a transaction's statements together; a script does that itself.
fn control_name(plan: &LoadPlan) -> Option<&'static str> {
    match plan.work {
        Work::Workload(_) => Some(plan.control.name()),
        Work::Scripts(_) => None,
    }
}

fn kind_json((name, books): &(String, Books)) -> Value {
    json!({
        "name": name, "committed": books.committed, "failed": books.failed, "rolled_back": books.rolled_back,
        "retries": books.retries, "errors": books.errors(),
        "response_ms": percentiles(|p| books.percentile_ms(p)),
    })
}

fn statement_json((name, times): &(StatementName, Times)) -> Value {
    json!({
        "transaction": name.transaction, "sql": name.sql, "count": times.service_ns.len(),
        "service_ms": of_histogram(&times.service_ns),
    })
}

/// Percentiles of so many values in a row; `>` where only a lower bound is known.
fn times(values: u64, value: impl Fn(f64) -> Option<f64>, is_lower_bound: impl Fn(f64) -> bool) -> String {
    if values == 0 {
        return "unknown: no transaction was committed".to_owned();
    }
    let points = PERCENTILES.iter().filter_map(|&p| {
        let bound = if is_lower_bound(p) { ">" } else { "" };
        Some(format!("{} {bound}{:.3}", name_of(p), value(p)?))
    });
    let known = points.collect::<Vec<_>>().join("  ");
    match PERCENTILES.iter().find(|&&p| value(p).is_none()) {
        Some(&p) => format!(
            "{known}  ({} needs {:.0} transactions)",
            name_of(p),
            10.0 / (1.0 - p / 100.0)
        ),
        None => known,
    }
}

fn name_of(percentile: f64) -> String {
    match percentile < 100.0 {
        true => format!("p{percentile}"),
        false => "max".to_owned(),
    }
}

/// The intervals of the percentiles that have one, in a row; empty where none has.
fn intervals(measurement: &Measurement) -> String {
    let points = PERCENTILES.iter().filter_map(|&p| {
        let point = DistributionPoint::find(&measurement.distribution, p)?;
        let (low, high) = (point.low_ms?, point.high_ms);
        let high = high.map_or_else(|| "?".to_owned(), |high| format!("{high:.3}"));
        Some(format!("{} {low:.3} \u{2026} {high}", name_of(p)))
    });
    points.collect::<Vec<_>>().join("  ")
}

/// What was driven, and how; `clients` where there is one number of them.
pub(super) fn heading(
    plan: &LoadPlan,
    measurement: &Measurement,
    server: &ServerWords<'_>,
    clients: Option<u32>,
) -> String {
    let loop_words = match &plan.drive.arrivals {
        Arrivals::Closed { .. } if plan.paced => "closed loop with keying and think times".to_owned(),
        Arrivals::Closed { think } if think.is_zero() => "closed loop".to_owned(),
        Arrivals::Closed { think } => {
            format!("closed loop with {} ms of think time", think.as_secs_f64() * 1e3)
        }
        Arrivals::Open { rate, spacing, batch } => {
            let spread = match spacing {
                Spacing::Constant => "evenly spaced",
                Spacing::Poisson => "Poisson",
            };
            let batches = match batch.is_zero() {
                true => String::new(),
                false => format!(" in batches of {} ms", batch.as_secs_f64() * 1e3),
            };
            format!("open loop at {rate}/s, {spread}{batches}")
        }
    };
    let many = |number: u32, name: &str| format!("{number} {name}{}, ", if number == 1 { "" } else { "s" });
    let who = clients.map_or_else(String::new, |clients| {
        many(clients, "client") + &many(threads(plan, measurement), "thread")
    });
    format!(
        "{}: {who}{loop_words}, {} protocol, {}{} engine, PostgreSQL {} at {}",
        plan.work,
        plan.protocol.name(),
        control_name(plan).map_or_else(String::new, |name| format!("transaction control {name}, ")),
        measurement.load.engine,
        server.version,
        server.place,
    )
}

/// What the share of failed transactions is called where it is above the largest that is accepted
/// (shares of 1).
pub(super) fn fails_too_often(measurement: &Measurement, share_max: f64) -> Option<String> {
    let books = &measurement.load.measured;
    let share = books.failed as f64 / (books.committed + books.failed).max(1) as f64;
    (share > share_max).then(|| {
        format!(
            "{:.2} % failed, more than --max-failed {}%",
            share * 100.0,
            three_digits(share_max * 100.0)
        )
    })
}

/// The result of a load.
pub(super) fn print(
    plan: &LoadPlan,
    measurement: &Measurement,
    server: &ServerWords<'_>,
    statements: bool,
    too_often: Option<&str>,
) {
    let load = &measurement.load;
    let books = &load.measured;
    put_page!("{}", heading(plan, measurement, server, Some(plan.drive.clients)));
    if !plan.drive.cpus.is_empty() {
        put!("placement {}", server.placement.text());
    }
    put!(
        "measured {:.1} s after {:.1} s of warm-up{}",
        load.measured_s,
        load.warmup_s,
        if load.stopped_early { ", stopped early" } else { "" }
    );
    if let Some(settled) = &measurement.settled {
        put!(
            "  settled      the last {:.1} s: what came before still belonged to the warm-up; it is in the counts and in what is by kind, not in TPS and response ms",
            settled.measured_s
        );
    }
    put!("TPS            {}", three_digits(measurement.tps()));
    if let Some(nopm) = measurement.nopm() {
        put!("NOPM           {}", three_digits(nopm));
    }
    put!(
        "transactions   {} = {} committed + {} failed + {} {}{}",
        books.all,
        books.committed,
        books.failed,
        books.skipped,
        // What a closed loop has begun can only be without an end.
        if books.parts.is_some() {
            "skipped"
        } else {
            "not ended"
        },
        too_often.map_or_else(String::new, |share| format!(" ({share})"))
    );
    if books.rolled_back > 0 {
        put!(
            "  rolled back  {} of the committed, as they were meant to be",
            books.rolled_back
        );
    }
    if books.retries > 0 {
        put!(
            "  retries      {} (at most {} tries)",
            books.retries,
            plan.drive.max_tries
        );
    }
    for error in books.errors() {
        put!("  SQLSTATE {}: {}", error.sqlstate, error.count);
        if let Some(first) = load.first_error(&error.sqlstate) {
            put!("    first, in {}: {}", first.place, first.message);
        }
    }
    if let Some((limit, goodput)) = plan.drive.latency_limit.zip(measurement.goodput_tps()) {
        put!(
            "goodput        {} TPS within {} ms ({} late)",
            three_digits(goodput),
            limit.as_secs_f64() * 1e3,
            books.late
        );
    }
    let (counted, _) = measurement.counted();
    put!(
        "response ms    {}",
        times(
            counted.committed + counted.skipped,
            |p| counted.percentile_ms(p),
            |p| counted.is_lower_bound(p)
        )
    );
    let intervals = intervals(measurement);
    if !intervals.is_empty() {
        put!(
            "  interval     {intervals}  ({:.0} %)",
            DistributionPoint::CONFIDENCE * 100.0
        );
    }
    let of = |histogram: &Histogram<u64>| times(histogram.len(), |p| percentile_ms(histogram, p), |_| false);
    match &books.parts {
        Some(parts) => {
            put!("  service ms   {}", of(&parts.service_ns));
            put!("  lag ms       {}", of(&parts.lag_ns));
        }
        None => put!(
            "  closed loop  a stall counts once for each client that waits (coordinated omission); --rate counts it for all that were due"
        ),
    }
    if let Some(connections) = &load.connections {
        put!("connection ms  {}", of(&connections.service_ns));
    }
    let us = |value: Option<f64>| value.map_or_else(|| "unknown".to_owned(), |us| format!("{us:.1} us"));
    put!(
        "CPU per tx     client {}, server {}",
        us(load.client_cpu_us_per_tx()),
        us(measurement.server_cpu_us_per_tx)
    );
    if let Some(wal) = measurement.wal_bytes_per_tx {
        put!("WAL per tx     {wal:.0} bytes");
    }
    if let Some(steadiness) = measurement.steadiness.filter(|s| !s.settled) {
        put!(
            "not steady     throughput drifted by {:+.0} %",
            steadiness.drift_ratio * 100.0
        );
    }
    for (name, host) in &measurement.load_hosts {
        let share = |share: Option<f64>| {
            share.map_or_else(|| "unknown".to_owned(), |share| format!("{:.0} %", share * 100.0))
        };
        put!(
            "load host      {name}: CPUs idle {}, steal {}, network {}, threads on a CPU {}, began {:.1} ms after the common instant at most",
            share(host.idle),
            share(host.steal),
            share(host.network),
            share(host.threads_cpu),
            began_late_ms(host)
        );
    }
    for warning in &measurement.warnings {
        put!("warning        {warning}");
    }
    for disturbance in &measurement.disturbances {
        put!("disturbed      {disturbance}");
    }
    for note in &load.notes {
        put!("note           {note}");
    }
    if load.notes_skipped > 0 {
        put!("note           ... and {} more", load.notes_skipped);
    }
    if !load.kinds.is_empty() {
        put_page!("{}", kinds_table(measurement));
    }
    if statements {
        put_page!("{}", statements_table(measurement));
    }
    match measurement.cross_check {
        Some(check) => put!(
            "cross-check    clients saw {} commits in all, pg_stat_database counts {}{}: {} (allowed difference {})",
            check.client,
            check.server,
            match check.by_workers {
                0 => String::new(),
                by_workers => format!(" and {by_workers} of parallel workers"),
            },
            if check.agrees {
                "agrees"
            } else {
                "DOES NOT AGREE, the result is invalid"
            },
            check.allowed_difference
        ),
        None => put!(
            "cross-check    none: {}",
            measurement
                .unchecked
                .as_deref()
                .unwrap_or("the server's counters do not cover the whole load")
        ),
    }
}

fn kinds_table(measurement: &Measurement) -> String {
    let load = &measurement.load;
    let rows = load.kinds.iter().map(|(name, books)| {
        #[expect(clippy::cast_precision_loss, reason = "counts of transactions")]
        let (tps, share) = (
            (books.committed - books.after_end) as f64 / load.measured_s.max(f64::MIN_POSITIVE),
            books.committed as f64 / (load.measured.committed.max(1)) as f64,
        );
        // An arrival that was never begun has no kind: with those, the true percentiles would be
        // larger.
        let bound = if load.measured.skipped > 0 { ">" } else { "" };
        let ms = |p| match books.percentile_ms(p) {
            Some(ms) => format!("{bound}{ms:.3}"),
            None => number(None, 3),
        };
        vec![
            name.clone(),
            format!("{tps:.1}"),
            format!("{:.1}", share * 100.0),
            ms(50.0),
            ms(95.0),
            ms(99.0),
            books.failed.to_string(),
        ]
    });
    let names = [
        "transaction",
        "TPS",
        "share %",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "failed",
    ];
    show::table(&names, &[1, 2, 3, 4, 5, 6], rows.collect())
}

/// Statements longer than this are cut in tables.
const STATEMENT_CHARACTERS: usize = 60;

fn statements_table(measurement: &Measurement) -> String {
    let load = &measurement.load;
    let used = load
        .statements
        .iter()
        .filter(|(_, times)| !times.service_ns.is_empty());
    let rows = used.map(|(name, times)| {
        let ms = |p| number(percentile_ms(&times.service_ns, p), 3);
        let mut sql = name.sql.split_whitespace().collect::<Vec<_>>().join(" ");
        if sql.chars().count() > STATEMENT_CHARACTERS {
            sql = sql
                .chars()
                .take(STATEMENT_CHARACTERS - 1)
                .chain(['\u{2026}'])
                .collect();
        }
        vec![
            name.transaction.clone(),
            sql,
            times.service_ns.len().to_string(),
            ms(50.0),
            ms(95.0),
            ms(99.0),
        ]
    });
    let names = [
        "transaction",
        "statement",
        "round trips",
        "p50 ms",
        "p95 ms",
        "p99 ms",
    ];
    show::table(&names, &[2, 3, 4, 5], rows.collect())
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "\u{2013}".to_owned(), |value| format!("{value:.digits$}"))
}

/// Columns of a ladder, and those that are numbers.
pub(super) const LADDER: ([&str; 9], [usize; 8]) = (
    [
        "clients",
        "TPS",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "failed",
        "client us/tx",
        "server us/tx",
        "cross-check",
    ],
    [0, 1, 2, 3, 4, 5, 6, 7],
);

/// A rung of a ladder.
pub(super) fn rung(plan: &LoadPlan, measurement: &Measurement) -> Vec<String> {
    let load = &measurement.load;
    let ms = |p| number(measurement.counted().0.percentile_ms(p), 3);
    vec![
        plan.drive.clients.to_string(),
        three_digits(measurement.tps()),
        ms(50.0),
        ms(95.0),
        ms(99.0),
        load.measured.failed.to_string(),
        number(load.client_cpu_us_per_tx(), 1),
        number(measurement.server_cpu_us_per_tx, 1),
        match measurement.cross_check {
            Some(check) if check.agrees => "agrees",
            Some(_) => "DOES NOT AGREE",
            None => "none",
        }
        .to_owned(),
    ]
}
