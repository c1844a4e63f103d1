//! What the view shows: values of the last minutes, waits, and the newest rows of each kind. Knows
//! no target and no terminal; time comes in with the updates.

use super::format;
use super::names;
use super::ring::{Point, Ring, WaitHistory};
use pgdyno_host::FunctionRow;
use pgdyno_host::series::{Key, Reading};
use pgdyno_server::series::{AgeRow, SessionRow, StatementRow, VacuumRow, WaitSample};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Metrics with labels are as many as there are CPUs, disks and databases; beyond this, new ones
/// are skipped.
const KEYS_MAX: usize = 8192;
/// The last reasons for missing values that are kept.
const GAPS_MAX: usize = 100;
/// A value that is older by this than two readings is no present value.
const OUTDATED: Duration = Duration::from_secs(90);
/// The same of shared memory by process, whose passes are up to three minutes apart.
const OUTDATED_RARE: Duration = Duration::from_secs(300);
const MINUTE: Duration = Duration::from_secs(60);

/// What the target is, found out once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About {
    /// For people; no secret in it.
    pub(crate) target: String,
    pub(crate) version: String,
    /// Why there is nothing about the host; `None` where there is.
    pub(crate) no_host: Option<String>,
    pub(crate) cpus: Option<u32>,
    pub(crate) max_connections: Option<f64>,
    pub(crate) shared_buffers_bytes: Option<f64>,
    pub(crate) max_wal_size_bytes: Option<f64>,
    /// Whether the server times its reads and writes; without it their time is not known.
    pub(crate) io_timing: bool,
    /// What is on a disk: ("vda", "data").
    pub(crate) disks: Vec<(String, String)>,
}

/// The way to the server.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum Link {
    #[default]
    Connecting,
    Up,
    /// Lost since that instant, with the error.
    Down(Instant, String),
}

/// Rows, or why there are none.
pub(crate) type Rows<T> = Result<Vec<T>, String>;

/// An update that a source has read.
#[derive(Debug)]
pub(crate) enum Update {
    Reading(Reading),
    Waits(WaitSample),
    Sessions(Rows<SessionRow>),
    Statements(Rows<StatementRow>),
    Vacuums(Rows<VacuumRow>),
    Ages(Rows<AgeRow>),
    Functions(Rows<FunctionRow>),
    About(About),
    /// How often is read from now on.
    Interval(Duration),
    Link(Link),
}

/// A reason for a missing value.
#[derive(Debug, Clone)]
pub(crate) struct Missing {
    pub(crate) at: Instant,
    pub(crate) source: String,
    pub(crate) reason: String,
}

/// All values that the view shows.
#[derive(Debug, Clone)]
pub struct Model {
    /// Present instant, as of the last update or redraw.
    pub(crate) now: Instant,
    interval: Duration,
    pub(crate) about: About,
    pub(crate) link: Link,
    pub(crate) waits: WaitHistory,
    pub(crate) sessions: Rows<SessionRow>,
    pub(crate) statements: Rows<StatementRow>,
    pub(crate) vacuums: Rows<VacuumRow>,
    pub(crate) ages: Rows<AgeRow>,
    /// Functions on CPUs, since they are looked for.
    pub(crate) functions: Option<Rows<FunctionRow>>,
    pub(crate) missing: VecDeque<Missing>,
    series: BTreeMap<Key, Ring>,
}

impl Model {
    /// A model without any value yet.
    pub fn new(now: Instant) -> Model {
        let not_yet = || "not read yet".to_owned();
        Model {
            now,
            interval: Duration::from_secs(1),
            about: About::default(),
            link: Link::Connecting,
            waits: WaitHistory::default(),
            sessions: Err(not_yet()),
            statements: Err(not_yet()),
            vacuums: Err(not_yet()),
            ages: Err(not_yet()),
            functions: None,
            missing: VecDeque::new(),
            series: BTreeMap::new(),
        }
    }

    /// Takes in what a source sent at `now`. Rows that cannot be read while the server is away stay
    /// what they were.
    pub(crate) fn apply(&mut self, update: Update, now: Instant) {
        self.now = self.now.max(now);
        let away = matches!(self.link, Link::Down(..));
        fn take<T>(to: &mut Rows<T>, rows: Rows<T>, away: bool) {
            if rows.is_ok() || to.is_err() || !away {
                *to = rows;
            }
        }
        match update {
            Update::Reading(reading) => self.read(reading),
            Update::Waits(sample) => {
                if let Some(gap) = &sample.gap {
                    self.miss(sample.at, &gap.source, &gap.reason);
                }
                self.waits.push(&sample);
            }
            Update::Sessions(rows) => take(&mut self.sessions, rows, away),
            Update::Statements(rows) => take(&mut self.statements, rows, away),
            Update::Vacuums(rows) => take(&mut self.vacuums, rows, away),
            Update::Ages(rows) => take(&mut self.ages, rows, away),
            Update::Functions(rows) => self.functions = Some(rows),
            Update::About(about) => self.about = about,
            Update::Interval(interval) => self.interval = interval,
            Update::Link(link) => self.link = link,
        }
    }

    fn read(&mut self, reading: Reading) {
        for (key, value) in reading.values {
            // One CPU of many is not shown.
            if key.metric.starts_with("cpu.") && key.label.starts_with("cpu") {
                continue;
            }
            if self.series.len() >= KEYS_MAX && !self.series.contains_key(&key) {
                continue;
            }
            self.series.entry(key).or_default().push(Point {
                at: reading.at,
                since: reading.since,
                value,
            });
        }
        for gap in reading.gaps {
            self.miss(reading.at, &gap.source, &gap.reason);
        }
    }

    fn miss(&mut self, at: Instant, source: &str, reason: &str) {
        self.missing
            .retain(|missing| missing.source != source || missing.reason != reason);
        self.missing.push_front(Missing {
            at,
            source: source.to_owned(),
            reason: reason.to_owned(),
        });
        self.missing.truncate(GAPS_MAX);
    }

    /// The last minutes of a metric.
    pub(crate) fn ring(&self, metric: &'static str, label: &str) -> Option<&Ring> {
        self.series.get(&Key::of(metric, label))
    }

    /// The present value of a metric: the last one, while the server is away also an old one.
    pub(crate) fn value(&self, metric: &'static str, label: &str) -> Option<f64> {
        self.present(metric, self.ring(metric, label)?)
    }

    /// What "within a minute" is here: with readings further apart, as long as there are two.
    pub(crate) fn minute(&self) -> Duration {
        MINUTE.max(self.interval * 2)
    }

    fn present(&self, metric: &str, ring: &Ring) -> Option<f64> {
        let last = ring.last()?;
        let outdated = if metric == names::PROCESS_PSS {
            OUTDATED_RARE
        } else {
            OUTDATED
        };
        let old = self.now.saturating_duration_since(last.at) > outdated + self.interval * 2;
        let away = matches!(self.link, Link::Down(..));
        (!old || away).then_some(last.value)
    }

    /// Present values of a metric by label.
    pub(crate) fn values(&self, metric: &str) -> Vec<(&str, f64)> {
        self.series
            .iter()
            .filter(|(key, _)| key.metric == metric)
            .filter_map(|(key, ring)| Some((key.label.as_str(), self.present(&key.metric, ring)?)))
            .collect()
    }

    /// All present values.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Key, f64)> {
        self.series
            .iter()
            .filter_map(|(key, ring)| Some((key, self.present(&key.metric, ring)?)))
    }

    /// Labels that any metric with this beginning has, each once.
    pub(crate) fn labels(&self, beginning: &str) -> Vec<&str> {
        let mut labels: Vec<&str> = self
            .series
            .iter()
            .filter(|(key, ring)| {
                key.metric.starts_with(beginning) && self.present(&key.metric, ring).is_some()
            })
            .map(|(key, _)| key.label.as_str())
            .filter(|label| !label.is_empty())
            .collect();
        labels.sort_unstable();
        labels.dedup();
        labels
    }

    /// Transaction ids used per second, the mean of the last minutes. `None` before there are two
    /// looks.
    pub(crate) fn xids_per_s(&self) -> Option<f64> {
        let ring = self.ring(names::XIDS, "")?;
        let seconds = ring.seconds();
        (seconds > 0.0).then(|| ring.amount() / seconds)
    }

    /// Why nothing of the host is shown.
    pub(crate) fn no_host(&self) -> Option<&str> {
        self.about.no_host.as_deref()
    }

    /// What to say above all: the server is away.
    pub(crate) fn away(&self) -> Option<String> {
        match &self.link {
            Link::Up => None,
            Link::Connecting => Some("connecting".into()),
            Link::Down(since, reason) => {
                let ago = self.now.saturating_duration_since(*since).as_secs_f64();
                Some(format!("STALE for {}, trying again: {reason}", format::span(ago)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at: Instant, value: f64) -> Update {
        let mut reading = Reading::new(at, None);
        reading.push(Key::one(names::WAL_BYTES), value);
        reading.gap("pg_stat_wal", "refused");
        Update::Reading(reading)
    }

    #[test]
    fn an_old_value_is_no_present_value_but_while_the_server_is_away() {
        let start = Instant::now();
        let mut model = Model::new(start);
        model.apply(Update::Link(Link::Up), start);
        model.apply(reading(start, 7.0), start);
        let value = |model: &Model| model.value(names::WAL_BYTES, "");
        assert_eq!(value(&model), Some(7.0));
        assert_eq!(model.missing.len(), 1);
        model.now = start + Duration::from_secs(100);
        assert_eq!(value(&model), None);
        model.apply(Update::Link(Link::Down(model.now, "gone".into())), model.now);
        assert_eq!(value(&model), Some(7.0));
        assert!(model.away().unwrap().starts_with("STALE"));
    }

    #[test]
    fn what_is_read_seldom_gets_old_later() {
        let start = Instant::now();
        let mut model = Model::new(start);
        model.apply(reading(start, 7.0), start);
        let mut shared = Reading::new(start, None);
        shared.push(Key::of(names::PROCESS_PSS, "client"), 5.0);
        model.apply(Update::Reading(shared), start);
        let shown = |model: &mut Model, after: u64| {
            model.now = start + Duration::from_secs(after);
            let common = model.value(names::WAL_BYTES, "").is_some();
            (common, model.value(names::PROCESS_PSS, "client").is_some())
        };
        assert_eq!(shown(&mut model, 100), (false, true));
        assert_eq!(shown(&mut model, 310), (false, false));
        model.apply(Update::Interval(Duration::from_secs(60)), start);
        assert_eq!(shown(&mut model, 200), (true, true));
        assert_eq!(shown(&mut model, 410), (false, true));
    }

    #[test]
    fn the_same_gap_is_kept_once() {
        let start = Instant::now();
        let mut model = Model::new(start);
        for _ in 0..3 {
            model.apply(reading(start, 1.0), start);
        }
        assert_eq!(model.missing.len(), 1);
    }

    #[test]
    fn ids_are_used_at_the_mean_rate_of_what_is_kept() {
        let start = Instant::now();
        let at = |s| start + Duration::from_secs(s);
        let mut model = Model::new(start);
        assert_eq!(model.xids_per_s(), None);
        for (since, now, rate) in [(0, 10, 100.0), (10, 40, 300.0)] {
            let mut reading = Reading::new(at(now), Some(at(since)));
            reading.push(Key::one(names::XIDS), rate);
            model.apply(Update::Reading(reading), at(now));
        }
        assert_eq!(model.xids_per_s(), Some(250.0));
    }
}
