//! The record of a trial: what is stored of a measurement.

use crate::beside::WAITS;
use crate::error::LabError;
use crate::file::{FigurePart, Take};
use crate::measurement::Measurement;
use crate::plan::Treatment;
use pgdyno_engine::Books;
use pgdyno_engine::hdrhistogram::Histogram;
use pgdyno_knobs::Applied;
use pgdyno_record::{
    ColumnRecord, ErrorCount, OpenLoopHistograms, Percentiles, SecondRecord, SeriesRecord, TransactionCounts,
    TrialRecord, TrialStatus, encoded_histogram,
};
use std::collections::BTreeMap;

/// Every trial draws keys of its own. The same keys for all treatments of a block would look fair
/// and is not: the pages that one trial has read are then just those that the next one needs, and
/// whichever runs first pays for all.
pub(crate) fn seed_of_trial(seed: u64, block: u32, position: u32) -> u64 {
    seed.wrapping_add((u64::from(block) << 32 | u64::from(position)).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

pub(crate) fn empty_record(
    block: u32,
    position: u32,
    treatment: &Treatment,
    started_unix_ms: u64,
) -> TrialRecord {
    TrialRecord {
        started_unix_ms,
        warmup_s: treatment.load.warmup_s.unwrap_or(0.0),
        ..TrialRecord::begun(block, position, &treatment.name)
    }
}

pub(crate) fn failed(record: TrialRecord, reason: String) -> TrialRecord {
    TrialRecord {
        status: TrialStatus::Failed,
        reason: Some(reason),
        ..record
    }
}

/// A checked, complete trial.
pub(crate) fn filled(record: TrialRecord, measurement: &Measurement) -> TrialRecord {
    let load = &measurement.load;
    let (books, _) = measurement.counted();
    let disagrees = measurement.cross_check.is_some_and(|check| !check.agrees);
    let (status, reason) = match &measurement.broken {
        Some(reason) => (TrialStatus::Failed, Some(reason.clone())),
        None if disagrees => (
            TrialStatus::Invalid,
            Some("the server's own count of commits does not agree with the clients'".to_owned()),
        ),
        None => match measurement.why_nothing() {
            Some(reason) => (TrialStatus::Failed, Some(reason)),
            None => (TrialStatus::Finished, None),
        },
    };
    let percentile = |p| books.percentile_ms(p);
    let reported = measurement.reported.as_ref();
    TrialRecord {
        status,
        reason,
        tps: (status != TrialStatus::Failed && books.committed > 0).then(|| measurement.tps()),
        transactions: transactions(measurement),
        latency_limit_ms: measurement.latency_limit.map(|limit| limit.as_secs_f64() * 1e3),
        errors: load
            .measured
            .errors()
            .into_iter()
            .map(|e| {
                let first = load.first_error(&e.sqlstate);
                ErrorCount {
                    message: first.map(|first| first.message.clone()),
                    place: first.map(|first| first.place.clone()),
                    sqlstate: e.sqlstate,
                    count: e.count,
                }
            })
            .collect(),
        events: measurement.events.clone(),
        percentiles: Percentiles {
            mean_ms: books.mean_ms(),
            p50_ms: percentile(50.0),
            p95_ms: percentile(95.0),
            p99_ms: percentile(99.0),
            max_ms: percentile(100.0),
        }
        .if_any()
        .or(reported.and_then(|reported| reported.percentiles)),
        reported_by: reported.map(|reported| reported.program.clone()),
        histogram: encoded(&books.response_ns),
        open_loop: open_loop(&load.measured),
        distribution: measurement.distribution.clone(),
        steadiness: measurement.steadiness,
        stability_cv: measurement.stability_cv,
        unsettled_s: measurement.unsettled_s().map(f64::from),
        warm_up: measurement.warm_up_end(),
        warmup_s: load.warmup_s,
        measured_s: load.measured_s,
        client_cpu_us_per_tx: load.client_cpu_us_per_tx(),
        server_cpu_us_per_tx: measurement.server_cpu_us_per_tx,
        wal_bytes_per_tx: measurement.wal_bytes_per_tx,
        counters_per_tx: counters_per_tx(&measurement.series, Span::of(measurement), measurement.tps()),
        cross_check: measurement.cross_check,
        disturbances: [&*measurement.warnings, &*measurement.disturbances].concat(),
        disturbed: measurement.is_disturbed,
        seconds: measurement.seconds.clone(),
        figures: figures_of(measurement),
        heat: measurement.heat.clone(),
        statements: measurement.statements.clone(),
        load_hosts: measurement.load_hosts.clone(),
        ..record
    }
}

/// An external program counts what it reports, and no more.
fn transactions(measurement: &Measurement) -> TransactionCounts {
    let books = &measurement.load.measured;
    if let Some(reported) = &measurement.reported {
        return TransactionCounts {
            committed: books.committed,
            failed: reported.failed,
            ..TransactionCounts::default()
        };
    }
    TransactionCounts {
        committed: books.committed,
        failed: Some(books.failed),
        skipped: Some(books.skipped),
        late: measurement.latency_limit.map(|_| books.late),
        retries: Some(books.retries),
        rolled_back: Some(books.rolled_back),
    }
}

fn open_loop(books: &Books) -> OpenLoopHistograms {
    let parts = books.parts.as_deref();
    OpenLoopHistograms {
        service_histogram: parts.and_then(|parts| encoded(&parts.service_ns)),
        lag_histogram: parts.and_then(|parts| encoded(&parts.lag_ns)),
        skipped_histogram: books.skipped_wait_ns.as_deref().and_then(encoded),
    }
}

/// The measured time without what still belonged to the warm-up, in seconds from the start of the
/// load.
#[derive(Clone, Copy)]
struct Span {
    from_s: f64,
    to_s: f64,
}

impl Span {
    fn of(measurement: &Measurement) -> Span {
        let load = &measurement.load;
        let cut_s = f64::from(measurement.unsettled_s().unwrap_or(0));
        Span {
            from_s: load.warmup_s + cut_s,
            to_s: load.warmup_s + load.measured_s,
        }
    }

    /// Whether the second before a point of a series, of which a rate is, is wholly in it: the
    /// recorder begins before the load and ends after it.
    fn holds_second_before(self, at_ms: u32) -> bool {
        let at_s = f64::from(at_ms) / 1e3;
        at_s > self.from_s + 1.0 && at_s <= self.to_s
    }

    /// Whether a point belongs to it: that of a share or a rate is of the second before.
    fn holds(self, metric: &str, at_ms: u32) -> bool {
        let at_s = f64::from(at_ms) / 1e3;
        match metric.ends_with("_per_s") || metric.ends_with("_ratio") {
            true => self.holds_second_before(at_ms),
            false => at_s >= self.from_s && at_s <= self.to_s,
        }
    }

    /// The mean of the points whose second is in it.
    fn mean_of(self, column: &ColumnRecord) -> Option<f64> {
        let points = column.at_ms.iter().zip(&column.values);
        let measured = points.filter(|(at_ms, _)| self.holds_second_before(**at_ms));
        weighted_mean(measured.map(|(_, value)| (1.0, *value)))
    }
}

/// Rates of the CPU's counters in the measured time, over the transactions of that time.
fn counters_per_tx(series: &SeriesRecord, span: Span, tps: f64) -> BTreeMap<String, f64> {
    let counters = series.columns.iter().filter_map(|column| {
        let name = column.metric.strip_prefix("perf.")?.strip_suffix("_per_s")?;
        let per_tx = span.mean_of(column)? / tps;
        per_tx.is_finite().then(|| (name.to_owned(), per_tx))
    });
    counters.collect()
}

/// The measurement's own figures, and what its transactions cost.
fn figures_of(measurement: &Measurement) -> BTreeMap<String, f64> {
    let mut figures = measurement.figures.clone();
    let of_load = [
        ("goodput_tps", measurement.goodput_tps()),
        ("nopm", measurement.nopm()),
    ];
    let own = of_load.into_iter().chain(of_servers(measurement));
    figures.extend(own.filter_map(|(name, value)| Some((name.to_owned(), value?))));
    let (seconds, series) = (&measurement.seconds, &measurement.series);
    figures.extend(costs_per_tx(
        seconds,
        series,
        Span::of(measurement),
        measurement.tps(),
    ));
    figures
}

/// Of several servers, the throughput of the slowest and the fastest one, and how far these are
/// apart, as a part of the mean.
fn of_servers(measurement: &Measurement) -> [(&'static str, Option<f64>); 3] {
    let load = &measurement.load;
    #[expect(clippy::cast_precision_loss, reason = "counts of transactions and of servers")]
    let each: Vec<f64> = load
        .servers
        .iter()
        .map(|server| measurement.settled(server.committed as f64 / load.measured_s))
        .collect();
    let is_known = each.len() > 1 && load.measured_s > 0.0;
    let least = each.iter().copied().reduce(f64::min).filter(|_| is_known);
    let most = each.iter().copied().reduce(f64::max).filter(|_| is_known);
    #[expect(clippy::cast_precision_loss, reason = "a count of servers")]
    let mean = each.iter().sum::<f64>() / each.len() as f64;
    let spread = least.zip(most).map(|(least, most)| (most - least) / mean);
    [
        ("server_tps_min", least),
        ("server_tps_max", most),
        ("server_tps_spread", spread.filter(|spread| spread.is_finite())),
    ]
}

/// What a transaction of the measured time cost the data's disk and the power line, those that the
/// machine measures.
fn costs_per_tx(
    seconds: &[SecondRecord],
    series: &SeriesRecord,
    span: Span,
    tps: f64,
) -> BTreeMap<String, f64> {
    let mean = |value| mean_of_seconds(seconds, span.from_s, value);
    let per_s = [
        (
            "disk_read_bytes_per_tx",
            mean(|second| second.disk_read_bytes_per_s),
        ),
        (
            "disk_write_bytes_per_tx",
            mean(|second| second.disk_write_bytes_per_s),
        ),
        ("energy_j_per_tx", power_w(series, span)),
    ];
    let per_tx = per_s.into_iter().filter_map(|(name, per_s)| {
        let per_tx = per_s? / tps;
        per_tx.is_finite().then(|| (name.to_owned(), per_tx))
    });
    per_tx.collect()
}

/// The mean of a rate over the seconds of which more than half is after the warm-up. The first of
/// them and the last one need not be whole: each counts by its length.
fn mean_of_seconds(
    seconds: &[SecondRecord],
    warmup_s: f64,
    value: fn(&SecondRecord) -> Option<f64>,
) -> Option<f64> {
    let begins = std::iter::once(0.0).chain(seconds.iter().map(|second| second.t_s));
    let lengths = begins
        .zip(seconds)
        .map(|(begin_s, second)| (second.t_s - begin_s, second));
    let measured = lengths.filter(|(length_s, second)| second.t_s - length_s / 2.0 > warmup_s);
    weighted_mean(measured.filter_map(|(length_s, second)| Some((length_s, value(second)?))))
}

/// Of (weight, value); `None` of nothing.
fn weighted_mean(values: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (weight, sum) = values.fold((0.0, 0.0), |(all, sum), (weight, value)| {
        (all + weight, sum + weight * value)
    });
    (weight > 0.0).then(|| sum / weight)
}

/// Power of all packages and their memory in the measured time. Cores are a part of their package,
/// the platform (`psys`) contains all of it: neither is counted again. `None` where no package is
/// measured: memory alone would pass for all.
fn power_w(series: &SeriesRecord, span: Span) -> Option<f64> {
    let zones = || {
        let columns = series.columns.iter();
        columns.filter(|column| column.metric == "energy.power_w")
    };
    let is_package =
        |column: &&ColumnRecord| column.label.starts_with("package-") && !column.label.contains('/');
    let sum = |zones: Vec<f64>| (!zones.is_empty()).then(|| zones.iter().sum::<f64>());
    let packages_w = sum(zones()
        .filter(is_package)
        .filter_map(|zone| span.mean_of(zone))
        .collect())?;
    let memories = zones().filter(|column| column.label.ends_with("/dram"));
    let memory_w = sum(memories.filter_map(|zone| span.mean_of(zone)).collect());
    Some(packages_w + memory_w.unwrap_or(0.0))
}

/// Figures that the file needs taken from series, of the measured time; those whose series is not
/// there are omitted.
pub(crate) fn figures(wanted: &[FigurePart], measurement: &Measurement) -> BTreeMap<String, f64> {
    figures_in(wanted, &measurement.series, Span::of(measurement))
}

fn figures_in(wanted: &[FigurePart], series: &SeriesRecord, span: Span) -> BTreeMap<String, f64> {
    let taken = wanted
        .iter()
        .filter(|figure| figure.metric.is_some())
        .filter_map(|figure| {
            // Labels are added up instant by instant: what is read in one tick carries one time.
            let mut sums: BTreeMap<u32, f64> = BTreeMap::new();
            let of_metric = series
                .columns
                .iter()
                .filter(|column| figure.metric.as_ref() == Some(&column.metric));
            for column in of_metric {
                let is_taken = figure.takes(&column.label);
                // A wait that no session was seen in has no column: none waited, whenever the
                // others were sampled.
                if !is_taken && column.metric != WAITS {
                    continue;
                }
                for (at_ms, value) in column.at_ms.iter().zip(&column.values) {
                    if span.holds(&column.metric, *at_ms) {
                        *sums.entry(*at_ms).or_default() += if is_taken { *value } else { 0.0 };
                    }
                }
            }
            let values: Vec<f64> = sums.into_values().collect();
            #[expect(clippy::cast_precision_loss, reason = "seconds of a load")]
            let n = values.len() as f64;
            let value = match figure.take {
                Take::Mean => values.iter().sum::<f64>() / n,
                Take::Max => values.iter().copied().fold(f64::NAN, f64::max),
                Take::Min => values.iter().copied().fold(f64::NAN, f64::min),
            };
            value.is_finite().then(|| (figure.name.clone(), value))
        });
    taken.collect()
}

/// `None` of a histogram without values.
fn encoded(histogram: &Histogram<u64>) -> Option<String> {
    (!histogram.is_empty()).then(|| encoded_histogram(histogram))
}

/// Notes what took effect; an error where a setting did not.
pub(crate) fn take_in(applied: Vec<Applied>, record: &mut TrialRecord) -> Result<(), LabError> {
    record.effective = applied
        .iter()
        .map(|a| (a.setting.knob.clone(), a.effective.clone()))
        .collect();
    not_taken(applied)
}

/// An error where a setting did not take effect.
pub(crate) fn not_taken(applied: Vec<Applied>) -> Result<(), LabError> {
    let not_taken: Vec<Applied> = applied.into_iter().filter(|a| !a.took).collect();
    match not_taken.is_empty() {
        true => Ok(()),
        false => Err(LabError::NotTaken(not_taken)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_engine::Rest;
    use pgdyno_record::WarmUpEnd;
    use std::collections::BTreeSet;

    #[test]
    fn each_trial_of_an_experiment_has_a_seed_of_its_own() {
        let places = (1..=500).flat_map(|block| (1..=64).map(move |position| (block, position)));
        let seeds = |seed| {
            let seeds = places
                .clone()
                .map(|(block, position)| seed_of_trial(seed, block, position));
            seeds.collect::<BTreeSet<u64>>()
        };
        assert_eq!(seeds(7).len(), 500 * 64);
        assert!(seeds(7).is_disjoint(&seeds(8)));
        // Stored seeds replay: a trial keeps its seed in later versions.
        assert_eq!(
            seed_of_trial(0, 1, 2),
            (1 << 32 | 2_u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        );
    }

    #[test]
    fn throughput_is_of_the_transactions_that_ended_in_the_measured_time() {
        let mut measured = crate::sim::measurement(100.0, 1.0, 10.0);
        measured.load.measured.after_end = 200;
        let record = TrialRecord::begun(1, 1, "x");
        assert_eq!(filled(record.clone(), &measured).tps, Some(80.0));
        measured.load.measured.committed = 0;
        measured.load.measured.after_end = 0;
        let nothing = filled(record.clone(), &measured);
        assert_eq!((nothing.status, nothing.tps), (TrialStatus::Failed, None));
        // A job's time is its result.
        measured.figures.insert("job_s".to_owned(), 3.0);
        assert_eq!(filled(record, &measured).status, TrialStatus::Finished);
    }

    const SPAN: Span = Span {
        from_s: 1.0,
        to_s: 3.6,
    };

    fn span(from_s: f64, to_s: f64) -> Span {
        Span { from_s, to_s }
    }

    #[test]
    fn what_still_belonged_to_the_warm_up_is_not_in_the_measured_time() {
        let mut measured = crate::sim::measurement(100.0, 1.0, 10.0);
        measured.settled = Some(Rest {
            books: measured.load.measured.clone(),
            measured_s: 6.0,
            cut_s: 4,
        });
        let span = Span::of(&measured);
        assert_eq!((span.from_s, span.to_s), (5.0, 11.0));
        let record = filled(TrialRecord::begun(1, 1, "x"), &measured);
        assert_eq!(
            (record.unsettled_s, record.warm_up),
            (Some(4.0), WarmUpEnd::Ended)
        );
    }

    /// The last value is of the time after the load.
    fn zone(label: &str, values: [f64; 4]) -> ColumnRecord {
        ColumnRecord {
            metric: "energy.power_w".to_owned(),
            label: label.to_owned(),
            at_ms: vec![1500, 2500, 3500, 4500],
            values: values.to_vec(),
        }
    }

    #[test]
    fn power_is_of_packages_and_their_memory_in_the_measured_time() {
        let mut series = SeriesRecord {
            columns: vec![
                zone("package-0", [900.0, 40.0, 60.0, 1.0]),
                zone("package-0/core", [900.0, 30.0, 30.0, 1.0]),
                zone("package-0/dram", [900.0, 5.0, 5.0, 1.0]),
                zone("package-1", [900.0, 20.0, 20.0, 1.0]),
                zone("psys", [900.0, 90.0, 90.0, 1.0]),
            ],
            gaps: Vec::new(),
        };
        assert_eq!(power_w(&series, SPAN), Some(75.0));
        assert_eq!(power_w(&series, span(9.0, 12.0)), None);
        for alone in ["psys", "package-0/dram"] {
            let mut series = series.clone();
            series.columns.retain(|column| column.label == alone);
            assert_eq!(power_w(&series, SPAN), None, "{alone}");
        }
        series.columns.retain(|column| column.label == "package-1");
        assert_eq!(power_w(&series, SPAN), Some(20.0));
    }

    #[test]
    fn costs_are_of_the_measured_time_and_of_each_transaction() {
        let second = |t_s: f64, read: Option<f64>, written: f64| SecondRecord {
            t_s,
            disk_read_bytes_per_s: read,
            disk_write_bytes_per_s: Some(written),
            ..SecondRecord::default()
        };
        // The warm-up ends with a short second, and so does the load.
        let seconds = [
            second(1.0, Some(9e9), 9e9),
            second(1.4, Some(9e9), 9e9),
            second(2.4, Some(100.0), 300.0),
            second(2.9, None, 600.0),
        ];
        let series = SeriesRecord {
            columns: vec![zone("package-0", [900.0, 40.0, 900.0, 900.0])],
            gaps: Vec::new(),
        };
        let check = |span: Span, tps: f64, expected: &[(&str, f64)]| {
            let found = costs_per_tx(&seconds, &series, span, tps);
            let found: Vec<(&str, f64)> = found.iter().map(|(name, value)| (&**name, *value)).collect();
            assert_eq!(found, expected, "{tps}");
        };
        check(
            span(1.4, 2.9),
            50.0,
            &[
                ("disk_read_bytes_per_tx", 2.0),
                ("disk_write_bytes_per_tx", 8.0),
                ("energy_j_per_tx", 0.8),
            ],
        );
        check(span(1.4, 2.9), 0.0, &[]);
        check(span(9.0, 12.0), 50.0, &[]);
        assert!(costs_per_tx(&[], &SeriesRecord::default(), SPAN, 50.0).is_empty());
    }

    /// A value is of its instant, a rate or a share of the second before it; and the recorder goes
    /// on when the load has ended.
    #[test]
    fn figures_of_series_are_of_the_measured_time() {
        let column = |metric: &str, label: &str, values: [f64; 5]| ColumnRecord {
            metric: metric.to_owned(),
            label: label.to_owned(),
            at_ms: vec![500, 1500, 2500, 3500, 4500],
            values: values.to_vec(),
        };
        let series = SeriesRecord {
            columns: vec![
                column("memory.free_bytes", "", [9e9, 10.0, 40.0, 70.0, 9e9]),
                column("disk.read_bytes_per_s", "a", [9e9, 9e9, 3.0, 5.0, 9e9]),
                column("disk.read_bytes_per_s", "b", [9e9, 9e9, 1.0, 1.0, 9e9]),
                column("kernel_thread.cpu_ratio", "kswapd0", [9.0, 9.0, 0.1, 0.5, 9.0]),
                column("kernel_thread.cpu_ratio", "kswapd1", [9.0, 9.0, 0.1, 0.5, 9.0]),
                column("kernel_thread.cpu_ratio", "ksmd", [9.0; 5]),
                column(WAITS, "client backend/CPU/CPU", [9.0, 1.0, 2.0, 3.0, 9.0]),
            ],
            gaps: Vec::new(),
        };
        let figure = |name: &str, metric: &str, label: Option<&str>, take: Take| FigurePart {
            name: name.to_owned(),
            metric: Some(metric.to_owned()),
            sql: None,
            label: label.map(str::to_owned),
            take,
            larger_is_better: false,
        };
        let wanted = [
            figure("free", "memory.free_bytes", None, Take::Mean),
            figure("least", "memory.free_bytes", None, Take::Min),
            figure("most", "memory.free_bytes", None, Take::Max),
            figure("read", "disk.read_bytes_per_s", None, Take::Max),
            figure("read of a", "disk.read_bytes_per_s", Some("a"), Take::Mean),
            figure("gone", "disk.read_bytes_per_s", Some("c"), Take::Mean),
            figure("swapping", "kernel_thread.cpu_ratio", Some("kswapd*"), Take::Max),
            figure("waited", WAITS, Some("client backend/*"), Take::Mean),
            figure("unseen", WAITS, Some("client backend/Lock/tuple"), Take::Mean),
        ];
        let found = figures_in(&wanted, &series, SPAN);
        let found: Vec<(&str, f64)> = found.iter().map(|(name, value)| (&**name, *value)).collect();
        assert_eq!(
            found,
            [
                ("free", 40.0),
                ("least", 10.0),
                ("most", 70.0),
                ("read", 6.0),
                ("read of a", 4.0),
                ("swapping", 1.0),
                ("unseen", 0.0),
                ("waited", 2.0),
            ]
        );
        // Where waits were not recorded, they are unknown.
        let mut series = series;
        series.columns.retain(|column| column.metric != WAITS);
        assert!(!figures_in(&wanted, &series, SPAN).contains_key("unseen"));
    }

    #[test]
    fn counters_count_in_the_measured_time() {
        let column = |metric: &str, values: [f64; 5]| ColumnRecord {
            metric: metric.to_owned(),
            label: String::new(),
            at_ms: vec![500, 1500, 2500, 3500, 4500],
            values: values.to_vec(),
        };
        let series = SeriesRecord {
            columns: vec![
                column("perf.page_faults_per_s", [9e9, 9e9, 100.0, 300.0, 1.0]),
                column("perf.counted_ratio", [1.0; 5]),
                column("cpu.idle_ratio", [1.0; 5]),
            ],
            gaps: Vec::new(),
        };
        let found = counters_per_tx(&series, SPAN, 50.0);
        assert_eq!(found, BTreeMap::from([("page_faults".to_owned(), 4.0)]));
        assert!(counters_per_tx(&series, SPAN, 0.0).is_empty());
        assert!(counters_per_tx(&series, span(9.0, 12.0), 50.0).is_empty());
    }
}
