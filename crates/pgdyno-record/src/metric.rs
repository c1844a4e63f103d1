//! The metrics of trials: the one table that the lab, comparisons, gates, reports, OpenMetrics and
//! the page read.
//!
//! A name ends with its unit, and with `_per_tx` where it is counted per committed transaction. The
//! processor's counters are per transaction too, though their names, which perf gave them, do not
//! say so.

/// The direction in which a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Larger values are better.
    Higher,
    /// Smaller values are better.
    Lower,
}

/// The trials that have a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given {
    /// Every trial that pgdyno drives.
    Always,
    /// Trials on machines that measure it.
    WhereMeasured,
    /// Trials that measure a job, such as a VACUUM.
    OfJobs,
    /// Trials that end with a crash.
    OfCrashes,
    /// Trials with the workload TPC-C.
    OfTpcc,
    /// Trials whose load has a latency limit.
    OfLatencyLimits,
    /// Trials on several servers at once.
    OfSeveralServers,
}

/// Who measures a metric, and so whose gap says why it is missing: the beginning of a source in
/// `GapRecord`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The clients of pgdyno that send transactions.
    Clients,
    /// The accounting of processes in /proc.
    Processes,
    /// The server's view pg_stat_wal.
    Wal,
    /// The kernel's counters of block devices, /proc/diskstats.
    Disks,
    /// The energy counters below /sys/class/powercap.
    Power,
    /// perf_event_open(2) on the server's processes.
    Perf,
    /// pgdyno's clock, around the job or the recovery.
    Clock,
}

impl Given {
    /// The condition as it is printed: "trials of TPC-C".
    pub fn name(self) -> &'static str {
        match self {
            Given::Always => "every trial",
            Given::WhereMeasured => "where the machine measures it",
            Given::OfJobs => "trials of a job",
            Given::OfCrashes => "trials that end with a crash",
            Given::OfTpcc => "trials of TPC-C",
            Given::OfLatencyLimits => "trials whose load has a latency limit",
            Given::OfSeveralServers => "trials on several servers at once",
        }
    }
}

impl Source {
    /// Its name for people, with which gaps of it begin.
    pub fn name(self) -> &'static str {
        match self {
            Source::Clients => "pgdyno's clients",
            Source::Processes => "/proc",
            Source::Clock => "pgdyno's clock",
            Source::Wal => "pg_stat_wal",
            Source::Disks => "/proc/diskstats",
            Source::Power => "/sys/class/powercap",
            Source::Perf => "perf",
        }
    }

    /// The name by which gaps say why a metric is missing; empty where no gap can.
    pub fn in_gaps(self) -> &'static str {
        match self {
            Source::Clients | Source::Processes | Source::Clock => "",
            Source::Wal | Source::Disks | Source::Power | Source::Perf => self.name(),
        }
    }
}

/// A metric of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Name in records, files and commands.
    pub id: &'static str,
    /// Within a sentence: "the median response time".
    pub title: &'static str,
    /// At the head of a column: "p50 ms".
    pub column: &'static str,
    /// As a heading, without "per transaction": "Response time, p50".
    pub heading: &'static str,
    /// Its unit; empty for a number without one.
    pub unit: &'static str,
    /// Direction in which it is better.
    pub better: Better,
    /// Condition on which a trial has it.
    pub given: Given,
    /// Counter or clock that it comes from.
    pub source: Source,
    /// Whether it is a cost of each transaction.
    pub is_cost: bool,
    /// Whether it is compared where no metric is named.
    pub is_compared: bool,
    /// Its name in OpenMetrics, without `pgdyno_`, in base units; empty where it is not exposed.
    pub exposed: &'static str,
}

const NONE: Metric = Metric {
    id: "",
    title: "",
    column: "",
    heading: "",
    unit: "",
    better: Better::Lower,
    given: Given::Always,
    source: Source::Clients,
    is_cost: false,
    is_compared: false,
    exposed: "",
};

/// A metric of a trial's response times.
const fn response(
    id: &'static str,
    title: &'static str,
    column: &'static str,
    heading: &'static str,
    exposed: &'static str,
) -> Metric {
    Metric {
        id,
        title,
        column,
        heading,
        unit: "ms",
        is_compared: !matches!(id.as_bytes(), b"max_ms" | b"mean_ms"),
        exposed,
        ..NONE
    }
}

/// A cost of each transaction.
const fn cost(
    id: &'static str,
    (title, column, heading): (&'static str, &'static str, &'static str),
    unit: &'static str,
    (given, source): (Given, Source),
    exposed: &'static str,
) -> Metric {
    Metric {
        id,
        title,
        column,
        heading,
        unit,
        given,
        source,
        is_cost: true,
        exposed,
        ..NONE
    }
}

/// A counter of the processor on the server's processes.
const fn counter(
    id: &'static str,
    title: &'static str,
    column: &'static str,
    heading: &'static str,
) -> Metric {
    cost(
        id,
        (title, column, heading),
        "",
        (Given::WhereMeasured, Source::Perf),
        "",
    )
}

/// All metrics, in the order of columns; costs of which more is said come first.
pub const METRICS: &[Metric] = &[
    Metric {
        id: "tps",
        title: "throughput",
        column: "TPS",
        heading: "Throughput",
        unit: "TPS",
        better: Better::Higher,
        is_compared: true,
        exposed: "tps",
        ..NONE
    },
    Metric {
        id: "goodput_tps",
        title: "throughput within the latency limit",
        column: "goodput, TPS",
        heading: "Goodput",
        unit: "TPS",
        better: Better::Higher,
        given: Given::OfLatencyLimits,
        exposed: "goodput_tps",
        ..NONE
    },
    Metric {
        id: "nopm",
        title: "new orders per minute",
        column: "NOPM",
        heading: "New orders per minute",
        unit: "NOPM",
        better: Better::Higher,
        given: Given::OfTpcc,
        exposed: "new_orders_per_minute",
        ..NONE
    },
    Metric {
        id: "server_tps_min",
        title: "throughput of the slowest server",
        column: "slowest server, TPS",
        heading: "Slowest server",
        unit: "TPS",
        better: Better::Higher,
        given: Given::OfSeveralServers,
        exposed: "slowest_server_tps",
        ..NONE
    },
    Metric {
        id: "server_tps_max",
        title: "throughput of the fastest server",
        column: "fastest server, TPS",
        heading: "Fastest server",
        unit: "TPS",
        better: Better::Higher,
        given: Given::OfSeveralServers,
        exposed: "fastest_server_tps",
        ..NONE
    },
    Metric {
        id: "server_tps_spread",
        title: "spread of the servers' throughput",
        column: "spread of servers",
        heading: "Spread of servers",
        given: Given::OfSeveralServers,
        exposed: "servers_spread_ratio",
        ..NONE
    },
    response(
        "mean_ms",
        "the mean response time",
        "mean ms",
        "Response time, mean",
        "response_mean_seconds",
    ),
    response(
        "p50_ms",
        "the median response time",
        "p50 ms",
        "Response time, p50",
        "response_p50_seconds",
    ),
    response(
        "p95_ms",
        "the 95th percentile of response times",
        "p95 ms",
        "Response time, p95",
        "response_p95_seconds",
    ),
    response(
        "p99_ms",
        "the 99th percentile of response times",
        "p99 ms",
        "Response time, p99",
        "response_p99_seconds",
    ),
    response(
        "max_ms",
        "the longest response time",
        "max ms",
        "Response time, longest",
        "response_max_seconds",
    ),
    Metric {
        id: "stability_cv",
        title: "the variation of throughput per second",
        column: "variation per second",
        heading: "Variation per second",
        is_compared: true,
        exposed: "variation_ratio",
        ..NONE
    },
    Metric {
        is_compared: true,
        ..cost(
            "server_cpu_us_per_tx",
            (
                "server CPU per transaction",
                "server CPU per tx, µs",
                "Server CPU",
            ),
            "µs",
            (Given::Always, Source::Processes),
            "server_cpu_per_transaction_seconds",
        )
    },
    Metric {
        id: "cpus",
        title: "CPUs that the server keeps busy",
        column: "busy CPUs",
        heading: "Busy CPUs",
        source: Source::Processes,
        exposed: "server_cpus",
        ..NONE
    },
    cost(
        "client_cpu_us_per_tx",
        (
            "client CPU per transaction",
            "client CPU per tx, µs",
            "Client CPU",
        ),
        "µs",
        (Given::Always, Source::Processes),
        "client_cpu_per_transaction_seconds",
    ),
    Metric {
        is_compared: true,
        ..cost(
            "wal_bytes_per_tx",
            ("WAL per transaction", "WAL per tx, bytes", "WAL"),
            "bytes",
            (Given::Always, Source::Wal),
            "wal_per_transaction_bytes",
        )
    },
    cost(
        "disk_read_bytes_per_tx",
        (
            "bytes read from the disk per transaction",
            "read from disk per tx, bytes",
            "Read from disk",
        ),
        "bytes",
        (Given::WhereMeasured, Source::Disks),
        "disk_read_per_transaction_bytes",
    ),
    cost(
        "disk_write_bytes_per_tx",
        (
            "bytes written to the disk per transaction",
            "written to disk per tx, bytes",
            "Written to disk",
        ),
        "bytes",
        (Given::WhereMeasured, Source::Disks),
        "disk_written_per_transaction_bytes",
    ),
    cost(
        "energy_j_per_tx",
        ("energy per transaction", "energy per tx, J", "Energy"),
        "J",
        (Given::WhereMeasured, Source::Power),
        "energy_per_transaction_joules",
    ),
    counter(
        "page_faults",
        "page faults per transaction",
        "page faults per tx",
        "Page faults",
    ),
    counter(
        "dtlb_load_misses",
        "TLB misses of loads per transaction",
        "TLB misses per tx, loads",
        "TLB misses, loads",
    ),
    counter(
        "dtlb_store_misses",
        "TLB misses of stores per transaction",
        "TLB misses per tx, stores",
        "TLB misses, stores",
    ),
    counter(
        "itlb_load_misses",
        "TLB misses of instructions per transaction",
        "TLB misses per tx, instructions",
        "TLB misses, instructions",
    ),
    counter(
        "dtlb_load_walk_cycles",
        "cycles of TLB walks for loads per transaction",
        "cycles of TLB walks per tx, loads",
        "Cycles of TLB walks, loads",
    ),
    counter(
        "dtlb_store_walk_cycles",
        "cycles of TLB walks for stores per transaction",
        "cycles of TLB walks per tx, stores",
        "Cycles of TLB walks, stores",
    ),
    counter(
        "llc_load_misses",
        "cache misses per transaction",
        "cache misses per tx",
        "Cache misses",
    ),
    counter(
        "context_switches",
        "context switches per transaction",
        "context switches per tx",
        "Context switches",
    ),
    counter(
        "migrations",
        "moves between CPUs per transaction",
        "moves between CPUs per tx",
        "Moves between CPUs",
    ),
    counter("cycles", "cycles per transaction", "cycles per tx", "Cycles"),
    counter(
        "instructions",
        "instructions per transaction",
        "instructions per tx",
        "Instructions",
    ),
    counter(
        "dtlb_loads",
        "TLB look-ups of loads per transaction",
        "TLB look-ups per tx, loads",
        "TLB look-ups, loads",
    ),
    counter(
        "dtlb_stores",
        "TLB look-ups of stores per transaction",
        "TLB look-ups per tx, stores",
        "TLB look-ups, stores",
    ),
    counter(
        "itlb_loads",
        "TLB look-ups of instructions per transaction",
        "TLB look-ups per tx, instructions",
        "TLB look-ups, instructions",
    ),
    counter(
        "llc_loads",
        "cache look-ups per transaction",
        "cache look-ups per tx",
        "Cache look-ups",
    ),
    Metric {
        unit: "ms",
        ..counter(
            "task_clock_ms",
            "task clock per transaction",
            "task clock per tx, ms",
            "Task clock",
        )
    },
    Metric {
        id: "job_s",
        title: "the time of the job",
        column: "job, s",
        heading: "Time of the job",
        unit: "s",
        given: Given::OfJobs,
        source: Source::Clock,
        ..NONE
    },
    Metric {
        id: "recovery_s",
        title: "the time of recovery",
        column: "recovery, s",
        heading: "Time of recovery",
        unit: "s",
        given: Given::OfCrashes,
        source: Source::Clock,
        ..NONE
    },
];

/// Units as they end the names of metrics that a file or a series defines. The longest that fits
/// counts.
pub const UNITS: &[(&str, &str)] = &[
    ("_bytes_per_s", "bytes/s"),
    ("_bytes_per_tx", "bytes per transaction"),
    ("_us_per_tx", "µs per transaction"),
    ("_j_per_tx", "J per transaction"),
    ("_per_tx", "per transaction"),
    ("_per_s", "per second"),
    ("_bytes", "bytes"),
    ("_ms", "ms"),
    ("_us", "µs"),
    ("_s", "s"),
];

impl Metric {
    /// The one with this name, if the table has it.
    pub fn named(id: &str) -> Option<&'static Metric> {
        METRICS.iter().find(|metric| metric.id == id)
    }

    /// A value in the unit that OpenMetrics needs, which has seconds and bytes alone.
    pub fn in_base_unit(&self, value: f64) -> f64 {
        match self.unit {
            "ms" => value / 1e3,
            "µs" => value / 1e6,
            _ => value,
        }
    }

    /// The unit's name in OpenMetrics: what its name ends with, if that is one.
    pub fn exposed_unit(&self) -> &'static str {
        let units = ["seconds", "bytes", "joules", "ratio"];
        let is_last = |unit: &&str| self.exposed.ends_with(*unit);
        units.into_iter().find(is_last).unwrap_or_default()
    }
}

/// Texts for a metric: one of the table, or one that a file defines, whose name ends with its unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricWords {
    /// Name within a sentence: "the median response time".
    pub title: String,
    /// Name at the head of a column: "p50 ms".
    pub column: String,
    /// Its unit; empty for a number without one.
    pub unit: &'static str,
}

impl MetricWords {
    /// Texts for the metric `name`: those of the table, else the name without its unit.
    pub fn of(name: &str) -> MetricWords {
        if let Some(metric) = Metric::named(name) {
            return MetricWords {
                title: metric.title.to_owned(),
                column: metric.column.to_owned(),
                unit: metric.unit,
            };
        }
        let unit = UNITS.iter().find(|(ending, _)| name.ends_with(ending));
        let (bare, unit) = match unit {
            Some((ending, unit)) => (&name[..name.len() - ending.len()], *unit),
            None => (name, ""),
        };
        let title = bare.replace('_', " ");
        MetricWords {
            column: match unit {
                "" => title.clone(),
                unit => format!("{title}, {unit}"),
            },
            title,
            unit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_metric_is_named_once_in_all_ways() {
        type Of = fn(&Metric) -> &'static str;
        let names: [Of; 4] = [|m| m.id, |m| m.title, |m| m.column, |m| m.heading];
        for name in names {
            let distinct: BTreeSet<&str> = METRICS.iter().map(name).collect();
            assert_eq!(distinct.len(), METRICS.len());
            assert!(!distinct.contains(""));
        }
        let exposed: Vec<&str> = METRICS
            .iter()
            .map(|m| m.exposed)
            .filter(|name| !name.is_empty())
            .collect();
        assert_eq!(exposed.iter().collect::<BTreeSet<_>>().len(), exposed.len());
    }

    #[test]
    fn unit_of_a_metric_is_the_end_of_its_name() {
        for metric in METRICS.iter().filter(|m| !["", "TPS", "NOPM"].contains(&m.unit)) {
            let ending = UNITS.iter().find(|(ending, _)| metric.id.ends_with(ending));
            let unit = ending.map_or("", |(_, unit)| *unit);
            assert!(unit.starts_with(metric.unit), "{}: {unit}", metric.id);
        }
    }

    #[test]
    fn unit_of_a_figure_that_a_file_defines_is_the_end_of_its_name() {
        for (name, column) in [
            ("tps", "TPS"),
            ("job_s", "job, s"),
            ("page_faults", "page faults per tx"),
            ("page_faults_per_tx", "page faults, per transaction"),
            ("wal_written_bytes_per_s", "wal written, bytes/s"),
            ("buffers_hit_ratio", "buffers hit ratio"),
        ] {
            assert_eq!(MetricWords::of(name).column, column);
        }
    }

    #[test]
    fn busy_cpus_follow_from_throughput_and_its_cost() {
        let mut trial = crate::TrialRecord::begun(1, 1, "x");
        trial.tps = Some(2000.0);
        assert_eq!(trial.figure("cpus"), None);
        trial.server_cpu_us_per_tx = Some(600.0);
        assert_eq!(trial.figure("cpus"), Some(1.2));
    }

    #[test]
    fn exposed_values_are_in_base_units() {
        let check = |id: &str, value: f64, base: f64, unit: &str| {
            let metric = Metric::named(id).unwrap();
            assert!((metric.in_base_unit(value) - base).abs() < 1e-12, "{id}");
            assert_eq!(metric.exposed_unit(), unit, "{id}");
        };
        check("tps", 10.0, 10.0, "");
        check("p99_ms", 10.0, 0.01, "seconds");
        check("server_cpu_us_per_tx", 10.0, 0.000_01, "seconds");
        check("wal_bytes_per_tx", 10.0, 10.0, "bytes");
        check("cpus", 1.5, 1.5, "");
    }
}
