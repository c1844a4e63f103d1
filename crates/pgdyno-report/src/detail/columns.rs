//! Columns of the load, the host and the server with their titles and units.

use super::model::TrialColumn;
use pgdyno_record::{ColumnRecord, SecondRecord, SeriesRecord, TrialRecord};

/// Units as they end the names of metrics; the first that fits counts.
const UNITS: &[(&str, &str)] = &[
    ("_bytes_per_s", "bytes/s"),
    ("_ms_per_s", "ms/s"),
    ("_per_s", "per second"),
    ("_ratio", "ratio"),
    ("_bytes", "bytes"),
    ("_ms", "ms"),
    ("_s", "s"),
    ("_w", "W"),
];

/// First parts of the names of metrics, with a text for people and the layer.
const SUBJECTS: &[(&str, &str, &str)] = &[
    ("bgwriter", "background writer", SERVER),
    ("cgroup", "control group", HOST),
    ("checkpoints", "checkpoints", SERVER),
    ("cpu", "CPU", HOST),
    ("db", "database", SERVER),
    ("disk", "disk", HOST),
    ("energy", "energy", HOST),
    ("io", "server's I/O", SERVER),
    ("load", "load average", HOST),
    ("locks", "locks", SERVER),
    ("memory", "memory", HOST),
    ("net", "network", HOST),
    ("numa", "NUMA", HOST),
    ("perf", "CPU counters", HOST),
    ("process", "processes", HOST),
    ("psi", "pressure", HOST),
    ("replication", "replication", SERVER),
    ("sessions", "sessions", SERVER),
    ("slru", "SLRU caches", SERVER),
    ("statements", "statements", SERVER),
    ("tcp", "TCP", HOST),
    ("vacuum", "vacuum", SERVER),
    ("vm", "memory management", HOST),
    ("waits", "waits", SERVER),
    ("wal", "WAL", SERVER),
];

const HOST: &str = "host";
const SERVER: &str = "server";

/// A value of a second of the load.
type OfSecond = fn(&SecondRecord) -> Option<f64>;

/// What the seconds of the load contain about the load itself.
const LOAD: &[(&str, &str, OfSecond)] = &[
    ("tps", "throughput", |second| Some(second.tps)),
    ("p95_ms", "response time, p95", |second| second.p95_ms),
];

/// What they contain about the host, for trials that have no column of it.
const BESIDE: &[(&str, &str, OfSecond)] = &[
    ("cpu.busy_ratio", "CPU: busy", |second| second.cpu_busy),
    ("cpu.iowait_ratio", "CPU: iowait", |second| second.cpu_iowait),
    ("cpu.steal_ratio", "CPU: steal", |second| second.cpu_steal),
    ("disk.read_bytes_per_s", "disk: read", |second| {
        second.disk_read_bytes_per_s
    }),
    ("disk.write_bytes_per_s", "disk: write", |second| {
        second.disk_write_bytes_per_s
    }),
    ("memory.dirty_bytes", "memory: dirty", |second| second.dirty_bytes),
];

/// All columns of a trial: load, host, server, each by name.
pub(super) fn columns(trial: &TrialRecord, series: &SeriesRecord) -> Vec<TrialColumn> {
    let of_load = LOAD.iter().map(|what| of_seconds(trial, what, "load"));
    let beside = BESIDE
        .iter()
        .filter(|(metric, ..)| !series.columns.iter().any(|column| column.metric == *metric))
        .map(|what| of_seconds(trial, what, HOST));
    let mut columns: Vec<TrialColumn> = of_load.chain(beside).flatten().collect();
    columns.extend(series.columns.iter().map(of_record));
    // Stable: within a layer they stay by name and label.
    columns.sort_by_key(|column| {
        ["load", HOST]
            .iter()
            .position(|layer| *layer == column.layer)
            .unwrap_or(2)
    });
    columns
}

/// `None` where no second has a value.
fn of_seconds(
    trial: &TrialRecord,
    (metric, title, value): &(&str, &str, OfSecond),
    layer: &'static str,
) -> Option<TrialColumn> {
    let values: Vec<Option<f64>> = trial.seconds.iter().map(value).map(finite).collect();
    values.iter().any(Option::is_some).then(|| TrialColumn {
        metric: (*metric).to_owned(),
        label: None,
        unit: match *metric {
            "tps" => "TPS",
            metric => unit(metric).1,
        },
        layer,
        title: (*title).to_owned(),
        t_ms: trial.seconds.iter().map(|second| ms(second.t_s)).collect(),
        values,
    })
}

fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and a trial of more than 49 days has no columns either"
)]
fn ms(seconds: f64) -> u32 {
    (seconds * 1000.0).round() as u32
}

fn of_record(column: &ColumnRecord) -> TrialColumn {
    let (subject, layer) = subject(&column.metric);
    let (bare, unit) = unit(&column.metric);
    let rest = bare.split_once('.').map_or(bare, |(_, rest)| rest);
    TrialColumn {
        title: format!("{subject}: {}", rest.replace(['_', '.'], " ")),
        metric: column.metric.clone(),
        label: Some(column.label.clone()).filter(|label| !label.is_empty()),
        unit,
        layer,
        t_ms: column.at_ms.clone(),
        values: column.values.iter().map(|value| finite(Some(*value))).collect(),
    }
}

/// The name without its unit, and the unit. Bytes may be all that a name says.
fn unit(metric: &str) -> (&str, &'static str) {
    if let Some(bare) = metric
        .strip_suffix("_per_s")
        .filter(|bare| bare.ends_with(".bytes"))
    {
        return (bare, "bytes/s");
    }
    let fitting = UNITS
        .iter()
        .find_map(|(ending, unit)| Some((metric.strip_suffix(ending)?, *unit)));
    fitting.unwrap_or((metric, ""))
}

/// Text for what a metric is of, and its layer.
fn subject(metric: &str) -> (&str, &'static str) {
    let first = metric.split('.').next().unwrap_or(metric);
    let known = SUBJECTS.iter().find(|(name, ..)| *name == first);
    known.map_or((first, HOST), |(_, title, layer)| (title, *layer))
}
