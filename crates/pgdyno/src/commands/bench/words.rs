//! What a load did, in words and as JSON.

use pgdyno_lab::Measurement;
use pgdyno_load::hdrhistogram::Histogram;
use pgdyno_load::{Arrivals, LoadPlan, SecondFigures, Spacing, percentile_ms};
use serde_json::{Value, json};

/// The server that was driven.
pub(super) struct ServerWords {
    /// Host and port, or the socket's directory and port.
    pub(super) place: String,
    pub(super) version: String,
}

/// A second of a load on one line.
pub(super) fn line(second: &SecondFigures, plan: &LoadPlan) -> String {
    let ms = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.2}"));
    let whole = plan.warmup + plan.measure;
    let left = match plan.transactions {
        None => format!(
            "  {} s left",
            whole.as_secs().saturating_sub(u64::from(second.number))
        ),
        Some(_) => String::new(),
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

fn of_histogram(histogram: &Histogram<u64>) -> Value {
    percentiles(|p| percentile_ms(histogram, p))
}

fn arrivals_json(arrivals: &Arrivals) -> Value {
    match arrivals {
        Arrivals::Closed { think } => json!({ "loop": "closed", "think_ms": think.as_secs_f64() * 1e3 }),
        Arrivals::Open { rate, spacing } => {
            json!({ "loop": "open", "rate": rate.to_string(), "spacing": spacing })
        }
    }
}

/// Transactions per second that were committed within the latency limit.
#[expect(clippy::cast_precision_loss, reason = "a count of transactions")]
fn goodput(measurement: &Measurement) -> f64 {
    let load = &measurement.load;
    if load.measured_s > 0.0 {
        load.measured.good() as f64 / load.measured_s
    } else {
        0.0
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

/// The whole result as an object.
pub(super) fn as_json(plan: &LoadPlan, measurement: &Measurement, server: &ServerWords) -> Value {
    let load = &measurement.load;
    let books = &load.measured;
    json!({
        "format": "pgdyno-bench/1",
        "workload": plan.workload,
        "protocol": plan.protocol,
        "transaction": plan.control,
        "arrivals": arrivals_json(&plan.arrivals),
        "latency_limit_ms": plan.latency_limit.map(|limit| limit.as_secs_f64() * 1e3),
        "clients": plan.clients,
        "threads": plan.threads,
        "seed": plan.seed,
        "engine": load.engine,
        "server": server.place,
        "server_version": server.version,
        "warmup_s": plan.warmup.as_secs_f64(),
        "measured_s": load.measured_s,
        "stopped_early": load.stopped_early,
        "tps": load.tps(),
        "all": books.all,
        "committed": books.committed,
        "failed": books.failed,
        "skipped": books.skipped,
        "max_tries": plan.max_tries,
        "retries": books.retries,
        "late": plan.latency_limit.map(|_| books.late),
        "goodput_tps": plan.latency_limit.map(|_| goodput(measurement)),
        "errors": books.errors(),
        "response_ms": percentiles(|p| books.percentile_ms(p)),
        "response_at_least": PERCENTILES.iter().filter(|&&p| books.is_lower_bound(p))
            .map(|p| format!("p{p}")).collect::<Vec<_>>(),
        "service_ms": books.parts.as_ref().map(|parts| of_histogram(&parts.service_ns)),
        "schedule_lag_ms": books.parts.as_ref().map(|parts| of_histogram(&parts.lag_ns)),
        "client_cpu_us_per_tx": load.client_cpu_us_per_tx(),
        "server_cpu_us_per_tx": measurement.server_cpu_us_per_tx,
        "wal_bytes_per_tx": measurement.wal_bytes_per_tx,
        "stability_cv": measurement.stability_cv,
        "steadiness": measurement.steadiness,
        "cross_check": measurement.cross_check,
        "unchecked": measurement.unchecked,
        "disturbances": measurement.disturbances,
        "broken": measurement.broken,
        "seconds": load.seconds.iter().map(second_json).collect::<Vec<_>>(),
    })
}

/// Percentiles in a row; `>` where only a lower bound is known.
fn times(value: impl Fn(f64) -> Option<f64>, is_lower_bound: impl Fn(f64) -> bool) -> String {
    let words: Vec<String> = PERCENTILES
        .iter()
        .filter_map(|&p| {
            let name = if p < 100.0 {
                format!("p{p}")
            } else {
                "max".to_owned()
            };
            let bound = if is_lower_bound(p) { ">" } else { "" };
            Some(format!("{name} {bound}{:.3}", value(p)?))
        })
        .collect();
    words.join("  ")
}

/// What was driven, and how; `clients` where there is one number of them.
pub(super) fn heading(
    plan: &LoadPlan,
    measurement: &Measurement,
    server: &ServerWords,
    clients: Option<u32>,
) -> String {
    let loop_words = match &plan.arrivals {
        Arrivals::Closed { think } if think.is_zero() => "closed loop".to_owned(),
        Arrivals::Closed { think } => {
            format!("closed loop with {} ms of think time", think.as_secs_f64() * 1e3)
        }
        Arrivals::Open { rate, spacing } => {
            let spread = match spacing {
                Spacing::Constant => "evenly spaced",
                Spacing::Poisson => "Poisson",
            };
            format!("open loop at {rate}/s, {spread}")
        }
    };
    let many = |number: u32, name: &str| format!("{number} {name}{}, ", if number == 1 { "" } else { "s" });
    let who = clients.map_or_else(String::new, |clients| {
        many(clients, "client") + &many(plan.threads, "thread")
    });
    format!(
        "{}: {who}{loop_words}, {} protocol, transaction control {}, {} engine, PostgreSQL {} at {}",
        plan.workload,
        plan.protocol.name(),
        plan.control.name(),
        measurement.load.engine,
        server.version,
        server.place,
    )
}

/// Everything that came of a load.
pub(super) fn print(plan: &LoadPlan, measurement: &Measurement, server: &ServerWords) {
    let load = &measurement.load;
    let books = &load.measured;
    put!("{}", heading(plan, measurement, server, Some(plan.clients)));
    put!(
        "measured {:.1} s after {:.1} s of warm-up{}",
        load.measured_s,
        plan.warmup.as_secs_f64(),
        if load.stopped_early { ", stopped early" } else { "" }
    );
    put!("TPS            {:.1}", load.tps());
    put!(
        "transactions   {} = {} committed + {} failed + {} skipped",
        books.all,
        books.committed,
        books.failed,
        books.skipped
    );
    if books.retries > 0 {
        put!(
            "  retries      {} (at most {} tries)",
            books.retries,
            plan.max_tries
        );
    }
    for error in books.errors() {
        put!("  SQLSTATE {}: {}", error.sqlstate, error.count);
    }
    if let Some(limit) = plan.latency_limit {
        put!(
            "goodput        {:.1} TPS within {} ms ({} late)",
            goodput(measurement),
            limit.as_secs_f64() * 1e3,
            books.late
        );
    }
    put!(
        "response ms    {}",
        times(|p| books.percentile_ms(p), |p| books.is_lower_bound(p))
    );
    if let Some(parts) = &books.parts {
        put!(
            "  service ms   {}",
            times(|p| percentile_ms(&parts.service_ns, p), |_| false)
        );
        put!(
            "  lag ms       {}",
            times(|p| percentile_ms(&parts.lag_ns, p), |_| false)
        );
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
    for disturbance in &measurement.disturbances {
        put!("disturbed      {disturbance}");
    }
    match measurement.cross_check {
        Some(check) => put!(
            "cross-check    clients saw {} commits in all, pg_stat_database counts {}: {} (allowed difference {})",
            check.client,
            check.server,
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
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "\u{2013}".to_owned(), |value| format!("{value:.digits$}"))
    };
    let ms = |p| number(load.measured.percentile_ms(p), 3);
    vec![
        plan.clients.to_string(),
        number(Some(load.tps()), 0),
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
