//! Figures in words: what each is, its unit, and its values with as many digits as say something.

use crate::words::number;

/// A figure for people.
pub(crate) struct Metric {
    /// What it is, as it stands in a sentence.
    pub title: String,
    /// Short, for the head of a column.
    pub short: String,
    /// Its unit; empty for a number without one.
    pub unit: &'static str,
}

/// Figures that every trial may have: name, in a sentence, in a column, unit.
const KNOWN: &[(&str, &str, &str, &str)] = &[
    ("tps", "throughput", "TPS", "TPS"),
    ("p50_ms", "the median response time", "p50 ms", "ms"),
    ("p95_ms", "the 95th percentile of response times", "p95 ms", "ms"),
    ("p99_ms", "the 99th percentile of response times", "p99 ms", "ms"),
    ("max_ms", "the longest response time", "max ms", "ms"),
    (
        "stability_cv",
        "the variation of throughput per second",
        "variation per second",
        "",
    ),
    (
        "server_cpu_us_per_tx",
        "server CPU per transaction",
        "server CPU per tx, µs",
        "µs",
    ),
    (
        "client_cpu_us_per_tx",
        "client CPU per transaction",
        "client CPU per tx, µs",
        "µs",
    ),
    (
        "wal_bytes_per_tx",
        "WAL per transaction",
        "WAL per tx, bytes",
        "bytes",
    ),
    ("job_s", "the time of the job", "job, s", "s"),
    ("recovery_s", "the time of recovery", "recovery, s", "s"),
];

/// Counters of the CPU on the server's processes, whose figures are per transaction though their names do not say so
/// (`TrialRecord::counters_per_tx`).
const COUNTERS: &[&str] = &[
    "context_switches",
    "cycles",
    "dtlb_load_misses",
    "dtlb_load_walk_cycles",
    "dtlb_loads",
    "dtlb_store_misses",
    "dtlb_store_walk_cycles",
    "dtlb_stores",
    "instructions",
    "llc_load_misses",
    "llc_loads",
    "migrations",
    "page_faults",
    "task_clock_ms",
];

/// Units as they end the names of figures. The longest that fits counts.
const UNITS: &[(&str, &str)] = &[
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

/// Names of the figures that every trial may have, in the order of columns.
pub(crate) fn known_names() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|(name, ..)| *name)
}

impl Metric {
    /// By the name of the figure, whose unit stands last.
    pub(crate) fn of(name: &str) -> Metric {
        if let Some((_, title, short, unit)) = KNOWN.iter().find(|(known, ..)| *known == name) {
            return Metric {
                title: (*title).to_owned(),
                short: (*short).to_owned(),
                unit,
            };
        }
        let unit = UNITS.iter().find(|(ending, _)| name.ends_with(ending));
        let (bare, unit) = match unit {
            Some((ending, unit)) => (&name[..name.len() - ending.len()], *unit),
            None => (name, ""),
        };
        let title = bare.replace('_', " ");
        if COUNTERS.contains(&name) {
            return Metric {
                short: match unit {
                    "" => format!("{title} per tx"),
                    unit => format!("{title} per tx, {unit}"),
                },
                title: format!("{title} per transaction"),
                unit,
            };
        }
        Metric {
            short: match unit {
                "" => title.clone(),
                unit => format!("{title}, {unit}"),
            },
            title,
            unit,
        }
    }

    /// A value with its unit: "12,346 TPS", "12.3 s".
    pub(crate) fn value(&self, value: f64) -> String {
        match self.unit {
            "" => figure(value),
            unit => format!("{} {unit}", figure(value)),
        }
    }

    /// Whether it is a length of time, that something *takes*.
    pub(crate) fn is_duration(&self) -> bool {
        self.unit == "s"
    }
}

/// A value in three significant digits and all of those before the point.
pub(crate) fn figure(value: f64) -> String {
    number(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_come_from_the_ends_of_names() {
        for (name, short) in [
            ("tps", "TPS"),
            ("job_s", "job, s"),
            ("page_faults_per_tx", "page faults, per transaction"),
            ("wal_written_bytes_per_s", "wal written, bytes/s"),
            ("buffers_hit_ratio", "buffers hit ratio"),
        ] {
            assert_eq!(Metric::of(name).short, short);
        }
    }

    #[test]
    fn counters_are_told_per_transaction() {
        for (name, title, short, unit) in [
            (
                "dtlb_load_misses",
                "dtlb load misses per transaction",
                "dtlb load misses per tx",
                "",
            ),
            (
                "page_faults",
                "page faults per transaction",
                "page faults per tx",
                "",
            ),
            (
                "task_clock_ms",
                "task clock per transaction",
                "task clock per tx, ms",
                "ms",
            ),
        ] {
            let found = Metric::of(name);
            assert_eq!((&*found.title, &*found.short, found.unit), (title, short, unit));
        }
    }

    #[test]
    fn values_have_three_digits_or_so() {
        assert_eq!(figure(12_345.6), "12,346");
        assert_eq!(figure(12.34), "12.3");
        assert_eq!(figure(2.346), "2.35");
        assert_eq!(figure(0.012_34), "0.0123");
        assert_eq!(figure(0.0), "0");
        assert_eq!(figure(-1.5), "\u{2212}1.50");
    }
}
