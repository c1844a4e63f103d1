//! `pgdyno bench`: one load with live figures.

use crate::cli::BenchArgs;
use crate::context::{Context, stop_flag};
use crate::{exit, target};
use pgdyno_host::{HostAccess, block};
use pgdyno_lab::{Measurement, Probe, measure};
use pgdyno_load::{LoadPlan, Second};
use pgdyno_server::Server;
use pgdyno_server::postgres::config::Host;
use pgdyno_server::sandbox::State;
use serde_json::{Value, json};

pub(crate) fn run(context: &Context, args: &BenchArgs) -> anyhow::Result<u8> {
    let (conninfo, sandbox) = target::conninfo(context, &args.target)?;
    let half = std::thread::available_parallelism().map_or(1, |n| (n.get() / 2).max(1));
    let threads = args
        .threads
        .unwrap_or(u32::try_from(half).unwrap_or(1).min(args.clients.max(1)));
    let plan = LoadPlan {
        workload: args.workload,
        clients: args.clients,
        threads,
        warmup: args.warmup,
        measure: args.duration,
        seed: args.seed,
    };
    let local = matches!(conninfo.config().get_hosts().first(), Some(Host::Unix(_)));
    let data = sandbox.as_ref().map(|sandbox| sandbox.record().data.clone());
    let probe = Probe {
        host: local.then_some(&context.host as &dyn HostAccess),
        disk: data.and_then(|data| block::disk_of(&context.host, &data.to_string_lossy()).ok()),
        postmaster: sandbox.as_ref().and_then(|sandbox| match sandbox.state() {
            State::Running(pid) => Some(pid),
            _ => None,
        }),
    };
    let stop = stop_flag()?;
    let mut on_second = |second: &Second| {
        if !args.quiet {
            tell!("{}", line(second));
        }
    };
    let measurement = measure(&conninfo, &plan, &probe, &stop, &mut on_second)?;
    let version = Server::connect(&conninfo)
        .map(|server| server.version().to_string())
        .ok();
    if args.json {
        put!(
            "{}",
            serde_json::to_string_pretty(&as_json(&plan, &measurement, version.as_deref()))?
        );
    } else {
        print(&plan, &measurement, version.as_deref());
    }
    if let Some(reason) = &measurement.broken {
        anyhow::bail!("the load broke off: {reason}");
    }
    let agrees = measurement.cross_check.is_none_or(|check| check.agrees);
    Ok(if agrees { exit::FINE } else { exit::NOT_HELD })
}

fn line(second: &Second) -> String {
    let ms = |p| {
        second
            .books
            .percentile_ms(p)
            .map_or_else(|| "-".to_owned(), |ms| format!("{ms:.2}"))
    };
    format!(
        "{:>4} s {:>9.0} TPS  p50 {:>8} ms  p95 {:>8} ms  p99 {:>8} ms  failed {}  clients {}{}",
        second.number,
        second.tps(),
        ms(50.0),
        ms(95.0),
        ms(99.0),
        second.books.failed,
        second.clients,
        if second.measured { "" } else { "  (warm-up)" }
    )
}

const PERCENTILES: [f64; 5] = [50.0, 95.0, 99.0, 99.9, 100.0];

fn as_json(plan: &LoadPlan, measurement: &Measurement, version: Option<&str>) -> Value {
    let load = &measurement.load;
    let books = &load.measured;
    json!({
        "format": "pgdyno-bench/1",
        "workload": plan.workload,
        "clients": plan.clients,
        "threads": plan.threads,
        "seed": plan.seed,
        "engine": load.engine,
        "server_version": version,
        "warmup_s": plan.warmup.as_secs_f64(),
        "measured_s": load.measured_s,
        "stopped_early": load.stopped_early,
        "tps": load.tps(),
        "all": books.all,
        "committed": books.committed,
        "failed": books.failed,
        "skipped": books.skipped,
        "errors": books.errors(),
        "response_ms": PERCENTILES.iter().map(|&p| (format!("p{p}"), json!(books.percentile_ms(p))))
            .collect::<serde_json::Map<_, _>>(),
        "client_cpu_us_per_tx": load.client_cpu_us_per_tx(),
        "server_cpu_us_per_tx": measurement.server_cpu_us_per_tx,
        "wal_bytes_per_tx": measurement.wal_bytes_per_tx,
        "stability_cv": measurement.stability_cv,
        "steadiness": measurement.steadiness,
        "cross_check": measurement.cross_check,
        "disturbances": measurement.disturbances,
        "broken": measurement.broken,
        "seconds": load.seconds.iter().map(|s| json!({
            "second": s.number, "measured": s.measured, "tps": s.tps(), "failed": s.books.failed,
            "p50_ms": s.books.percentile_ms(50.0), "p95_ms": s.books.percentile_ms(95.0),
            "p99_ms": s.books.percentile_ms(99.0),
        })).collect::<Vec<_>>(),
    })
}

fn print(plan: &LoadPlan, measurement: &Measurement, version: Option<&str>) {
    let load = &measurement.load;
    let books = &load.measured;
    put!(
        "{}: {} clients, {} thread{}, closed loop, prepared, {} engine, PostgreSQL {}",
        plan.workload,
        plan.clients,
        plan.threads,
        if plan.threads == 1 { "" } else { "s" },
        load.engine,
        version.unwrap_or("unknown")
    );
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
    for error in books.errors() {
        put!("  SQLSTATE {}: {}", error.sqlstate, error.count);
    }
    let times: Vec<String> = PERCENTILES
        .iter()
        .filter_map(|&p| {
            let name = if p < 100.0 {
                format!("p{p}")
            } else {
                "max".to_owned()
            };
            Some(format!("{name} {:.3}", books.percentile_ms(p)?))
        })
        .collect();
    put!("response ms    {}", times.join("  "));
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
        None => put!("cross-check    the server could not be asked"),
    }
}
