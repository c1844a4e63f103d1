//! What is recorded beside a load, and what of it goes with the trial.

use crate::probe::{Depth, Probe};
use crate::recorder::{Recorder, RecorderOptions, Series, Source, WaitSecond};
use pgdyno_host::PerfCounters;
use pgdyno_host::series::{HostSeries, HostSeriesOptions, Reading};
use pgdyno_record::{ColumnRecord, GapRecord, SecondRecord, SeriesRecord};
use pgdyno_server::Conninfo;
use pgdyno_server::series::{OwnCommits, ServerSeries};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Sessions by class, kind and event of their wait.
pub(crate) const WAITS: &str = "waits.sessions";
/// Sessions by the statement that they are at.
const STATEMENTS: &str = "waits.statement_sessions";
/// A value of a second is one that was read within so long of its end.
const NEAR_MS: i64 = 700;

/// A recording beside a load.
pub(crate) struct Beside {
    recorder: Option<Recorder>,
    /// When the recorder was started, from which on it counts its times.
    began: Instant,
    /// The process of the server that answers the recorder, where it is known.
    session: Option<u32>,
    /// Why there is less than was wanted.
    gaps: Vec<GapRecord>,
}

impl Beside {
    /// Begins; what cannot be recorded is a gap, for no load is given up for that.
    pub(crate) fn begin(probe: &Probe, conninfo: &Conninfo) -> Beside {
        let mut gaps = Vec::new();
        let mut gap = |source: &str, reason: String| {
            gaps.push(GapRecord {
                at_ms: 0,
                source: source.to_owned(),
                reason,
            });
        };
        let server = match probe.depth {
            Depth::Host => None,
            Depth::Whole => ServerSeries::connect(conninfo)
                .map_err(|error| gap("the server's series", error.to_string()))
                .ok(),
        };
        let session = server
            .as_ref()
            .filter(|_| !conninfo.is_proxied())
            .and_then(|server| u32::try_from(server.backend_pid()).ok());
        let options = RecorderOptions {
            sources: sources(probe),
            server,
            ..RecorderOptions::default()
        };
        let began = Instant::now();
        let recorder = match options.sources.is_empty() && options.server.is_none() {
            true => None,
            false => Recorder::start(options)
                .map_err(|error| gap("the recorder", error.to_string()))
                .ok(),
        };
        Beside {
            recorder,
            began,
            session,
            gaps,
        }
    }

    /// The process of the server that answers the recorder, where it is known.
    pub(crate) fn session(&self) -> Option<u32> {
        self.session
    }

    /// Ends it: the series with its times from the load's beginning on, and the recorder's own
    /// transactions.
    pub(crate) fn end(self, load_began: Instant) -> (SeriesRecord, OwnCommits) {
        let Some(recorder) = self.recorder else {
            let series = SeriesRecord {
                columns: Vec::new(),
                gaps: self.gaps,
            };
            return (series, OwnCommits::default());
        };
        let series = recorder.stop();
        let own = series.own_commits;
        let before_ms = load_began.saturating_duration_since(self.began).as_millis();
        let mut record = record(series, u64::try_from(before_ms).unwrap_or(u64::MAX));
        record.gaps.splice(0..0, self.gaps);
        (record, own)
    }
}

fn sources(probe: &Probe) -> Vec<Box<dyn Source + Send>> {
    let mut sources: Vec<Box<dyn Source + Send>> = Vec::new();
    let Some(host) = &probe.host else {
        return sources;
    };
    let options = match probe.depth {
        Depth::Host => HostSeriesOptions {
            disks: Some(probe.disk.iter().cloned().collect()),
            ..HostSeriesOptions::default()
        },
        Depth::Whole => HostSeriesOptions {
            disks: None,
            postmaster: probe.postmaster,
            cgroup_of: probe.postmaster,
        },
    };
    let (mut series, host) = (HostSeries::new(options), Arc::clone(host));
    sources.push(Box::new(move || series.tick(&*host)));
    if let (Depth::Whole, Some(postmaster)) = (probe.depth, probe.postmaster) {
        let mut counters = PerfCounters::open(postmaster);
        sources.push(Box::new(move || vec![per_second(counters.tick())]));
    }
    sources
}

/// Counts of an interval as rates: what is stored does not keep the interval.
fn per_second(mut reading: Reading) -> Reading {
    let seconds = reading.interval().map(|interval| interval.as_secs_f64());
    match seconds.filter(|seconds| *seconds > 0.0) {
        Some(seconds) => {
            for (key, value) in &mut reading.values {
                if !key.metric.ends_with("_ratio") {
                    *value /= seconds;
                }
            }
        }
        // Counted since they were opened, which is not an interval.
        None => reading.values.clear(),
    }
    for (key, _) in &mut reading.values {
        if !key.metric.ends_with("_ratio") {
            key.metric = format!("{}_per_s", key.metric).into();
        }
    }
    reading
}

/// The recorder's series as it is stored; what was read before the load began is omitted.
fn record(series: Series, before_ms: u64) -> SeriesRecord {
    let time = |at_ms: u64| u32::try_from(at_ms.checked_sub(before_ms)?).ok();
    let columns = series.columns.into_iter().map(|(key, column)| {
        let points = column.at_ms.iter().zip(&column.values);
        let (at_ms, values) = points
            .filter_map(|(at_ms, value)| Some((time(*at_ms)?, *value)))
            .unzip();
        ColumnRecord {
            metric: key.metric.into_owned(),
            label: key.label,
            at_ms,
            values,
        }
    });
    let mut columns: Vec<ColumnRecord> = columns.filter(|column| !column.values.is_empty()).collect();
    columns.extend(wait_columns(&series.waits, &time));
    let gaps = series.gaps.into_iter().map(|(at_ms, gap)| GapRecord {
        at_ms: time(at_ms).unwrap_or(0),
        source: gap.source,
        reason: gap.reason,
    });
    SeriesRecord {
        columns,
        gaps: gaps.collect(),
    }
}

/// Mean numbers of waiting sessions by metric and label.
type Waiting = BTreeMap<(&'static str, String), f64>;

fn waiting(second: &WaitSecond) -> Waiting {
    let mut sessions = Waiting::new();
    for (key, mean) in &second.sessions {
        let label = format!("{}/{}/{}", key.class, key.kind, key.event);
        *sessions.entry((WAITS, label)).or_default() += mean;
        if let Some(query_id) = key.query_id {
            *sessions.entry((STATEMENTS, query_id.to_string())).or_default() += mean;
        }
    }
    sessions
}

/// A column for each wait, with a point for each second that was sampled.
fn wait_columns(waits: &[WaitSecond], time: &dyn Fn(u64) -> Option<u32>) -> Vec<ColumnRecord> {
    // A second's waits are known at its end.
    let seconds: Vec<(u32, Waiting)> = waits
        .iter()
        .filter_map(|second| Some((time(second.at_ms + 1000)?, waiting(second))))
        .collect();
    let keys: BTreeSet<_> = seconds.iter().flat_map(|(_, sessions)| sessions.keys()).collect();
    let column = |key: &(&'static str, String)| ColumnRecord {
        metric: key.0.to_owned(),
        label: key.1.clone(),
        at_ms: seconds.iter().map(|(at_ms, _)| *at_ms).collect(),
        values: seconds
            .iter()
            .map(|(_, sessions)| sessions.get(key).copied().unwrap_or(0.0))
            .collect(),
    };
    keys.into_iter().map(column).collect()
}

/// What the host did in the second of the load that ended so long after its beginning; the load's
/// own figures are left at their defaults.
pub(crate) fn host_second(series: &SeriesRecord, disk: Option<&str>, end: Duration) -> SecondRecord {
    let end_ms = i64::try_from(end.as_millis()).unwrap_or(i64::MAX);
    let value = |metric: &str, label: &str| {
        let column = column(series, metric, label)?;
        let (at_ms, value) = column
            .at_ms
            .iter()
            .zip(&column.values)
            .min_by_key(|(at_ms, _)| (i64::from(**at_ms) - end_ms).abs())?;
        ((i64::from(*at_ms) - end_ms).abs() <= NEAR_MS).then_some(*value)
    };
    let cpu = |mode: &str| value(mode, "all");
    SecondRecord {
        t_s: end.as_secs_f64(),
        cpu_busy: cpu("cpu.idle_ratio")
            .zip(cpu("cpu.iowait_ratio"))
            .zip(cpu("cpu.steal_ratio"))
            .map(|((idle, iowait), steal)| (1.0 - idle - iowait - steal).max(0.0)),
        cpu_iowait: cpu("cpu.iowait_ratio"),
        cpu_steal: cpu("cpu.steal_ratio"),
        disk_read_bytes_per_s: disk.and_then(|disk| value("disk.read_bytes_per_s", disk)),
        disk_write_bytes_per_s: disk.and_then(|disk| value("disk.write_bytes_per_s", disk)),
        dirty_bytes: value("memory.dirty_bytes", ""),
        ..SecondRecord::default()
    }
}

/// A column by metric and label.
fn column<'a>(series: &'a SeriesRecord, metric: &str, label: &str) -> Option<&'a ColumnRecord> {
    series
        .columns
        .iter()
        .find(|column| column.metric == metric && column.label == label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Column;
    use pgdyno_host::series::{Gap, Key};
    use pgdyno_server::series::WaitKey;

    fn wait(event: &str, query_id: i64) -> WaitKey {
        WaitKey {
            class: "client backend".into(),
            kind: "LWLock".into(),
            event: event.into(),
            query_id: Some(query_id),
        }
    }

    #[test]
    fn times_count_from_the_loads_beginning_and_waits_become_columns() {
        let mut series = Series::default();
        let idle = Column {
            at_ms: vec![0, 1000, 2000],
            values: vec![0.9, 0.5, 0.25],
        };
        series.columns.insert(Key::of("cpu.idle_ratio", "all"), idle);
        series.waits = [
            (0, vec![(wait("WALWrite", 7), 2.0), (wait("WALWrite", 8), 1.0)]),
            (1000, vec![]),
        ]
        .map(|(at_ms, sessions)| WaitSecond {
            at_ms,
            samples: 10,
            sessions: sessions.into_iter().collect(),
        })
        .into();
        let gap = Gap {
            source: "/proc/x".into(),
            reason: "refused".into(),
        };
        series.gaps.push((100, gap));
        let record = record(series, 400);
        let idle = column(&record, "cpu.idle_ratio", "all").unwrap();
        assert_eq!(
            (idle.at_ms.as_slice(), idle.values.as_slice()),
            (&[600, 1600][..], &[0.5, 0.25][..])
        );
        let waits = column(&record, WAITS, "client backend/LWLock/WALWrite").unwrap();
        assert_eq!(
            (waits.at_ms.as_slice(), waits.values.as_slice()),
            (&[600, 1600][..], &[3.0, 0.0][..])
        );
        assert_eq!(column(&record, STATEMENTS, "8").unwrap().values, [1.0, 0.0]);
        assert_eq!(record.gaps[0].at_ms, 0);
    }

    #[test]
    fn a_second_takes_the_value_read_near_its_end_or_none() {
        let series = SeriesRecord {
            columns: vec![ColumnRecord {
                metric: "memory.dirty_bytes".into(),
                label: String::new(),
                at_ms: vec![900, 1900, 5000],
                values: vec![1.0, 2.0, 3.0],
            }],
            gaps: Vec::new(),
        };
        let dirty = |s| host_second(&series, None, Duration::from_secs(s)).dirty_bytes;
        assert_eq!(
            (dirty(1), dirty(2), dirty(3), dirty(5)),
            (Some(1.0), Some(2.0), None, Some(3.0))
        );
        assert_eq!(host_second(&series, None, Duration::from_secs(1)).cpu_busy, None);
    }

    #[test]
    fn counts_become_rates_and_a_first_reading_has_none() {
        let at = Instant::now();
        let reading = |since| {
            let mut reading = Reading::new(at + Duration::from_secs(2), since);
            reading.push(Key::one("perf.page_faults"), 10.0);
            reading.push(Key::of("perf.counted_ratio", "perf.cycles"), 0.5);
            per_second(reading)
        };
        assert!(reading(None).values.is_empty());
        let rates = reading(Some(at));
        assert_eq!(rates.value("perf.page_faults_per_s"), Some(5.0));
        assert_eq!(rates.value("perf.counted_ratio"), Some(0.5));
    }
}
