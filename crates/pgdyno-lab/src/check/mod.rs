//! The check of a target: small measurements, each with a verdict and a number to compare it with.
//! Nothing is written but a temporary table, a message in the WAL, and files of its own, which are
//! gone afterwards.

mod commit;
mod host;
mod limits;
mod noise;
mod place;
mod round_trip;

pub use limits::{Better, Limits};

use limits::judge;
use pgdyno_host::probe::{ClockWatch, left_overs};
use pgdyno_host::{HostAccess, HostSeries, HostSeriesOptions};
use pgdyno_server::{Conninfo, Server, ServerError};
use pgdyno_stats::three_digits;
use place::Place;
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The measurements of a check, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Cost of reading the clock.
    Timer,
    /// Time of `SELECT 1` from the client to the server and back.
    RoundTrip,
    /// A commit that waits for its flush, over one connection.
    Commit,
    /// Flushes of the WAL's volume, by each way.
    WalSync,
    /// Reads of the data's volume, here and there and in a row.
    Read,
    /// The same short load again and again.
    Noise,
    /// Whether the time of day is kept.
    Clock,
    /// CPU time that the hypervisor gave to others during all this.
    Steal,
}

impl Step {
    /// Every step, in the order in which they run.
    pub const ALL: [Step; 8] = [
        Step::Timer,
        Step::RoundTrip,
        Step::Commit,
        Step::WalSync,
        Step::Read,
        Step::Noise,
        Step::Clock,
        Step::Steal,
    ];

    /// Name on the command line: "round_trip".
    pub fn name(self) -> &'static str {
        match self {
            Step::Timer => "timer",
            Step::RoundTrip => "round_trip",
            Step::Commit => "commit",
            Step::WalSync => "wal_sync",
            Step::Read => "read",
            Step::Noise => "noise",
            Step::Clock => "clock",
            Step::Steal => "steal",
        }
    }

    /// The step with that name on the command line.
    pub fn named(name: &str) -> Option<Step> {
        Step::ALL.into_iter().find(|step| step.name() == name)
    }

    /// Whether it is the server that is asked, not its host.
    pub fn asks_the_server(self) -> bool {
        matches!(self, Step::RoundTrip | Step::Commit | Step::Noise)
    }

    /// Names of the measurements that the step gives, as in [`Measured::name`].
    fn measurements(self) -> &'static [&'static str] {
        match self {
            Step::Read => &["random_read", "sequential_read"],
            Step::Timer => &["timer"],
            Step::RoundTrip => &["round_trip"],
            Step::Commit => &["commit"],
            Step::WalSync => &["wal_sync"],
            Step::Noise => &["noise"],
            Step::Clock => &["clock"],
            Step::Steal => &["steal"],
        }
    }
}

/// How good a figure is, by its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// Within the good limit: nothing to do.
    Good,
    /// Between the limits: it costs some throughput.
    Fair,
    /// Beyond the poor limit: it costs more than settings can win back.
    Poor,
    /// Not measured, or not what it seems.
    Unknown,
}

impl Grade {
    /// The grade as tables show it: "good".
    pub fn word(self) -> &'static str {
        match self {
            Grade::Good => "good",
            Grade::Fair => "fair",
            Grade::Poor => "poor",
            Grade::Unknown => "unknown",
        }
    }
}

/// One measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// Name of the measurement: "wal_sync".
    pub name: &'static str,
    /// The figure that is judged; `None` where nothing was measured.
    pub figure: Option<f64>,
    /// Unit of the figure; empty where nothing was measured.
    pub unit: &'static str,
    /// Description of its spread.
    pub spread: String,
    /// Bounds of good and poor figures; `None` where nothing was measured.
    pub limits: Option<Limits>,
    /// Grade of the figure by its limits, or `Unknown` with `why`.
    pub verdict: Grade,
    /// Why it is unknown, or not what the figure alone would say.
    pub why: Option<String>,
    /// Remarks on how it was measured, a sentence each.
    pub notes: Vec<String>,
    /// What to do about a poor figure; `None` for all others.
    pub advice: Option<String>,
    /// All figures; docs/reference/check.md describes them.
    pub detail: Value,
}

impl Measured {
    /// A measurement without a figure, and why.
    fn unknown(name: &'static str, why: impl ToString) -> Measured {
        Measured {
            name,
            figure: None,
            unit: "",
            spread: String::new(),
            limits: None,
            verdict: Grade::Unknown,
            why: Some(why.to_string()),
            notes: Vec::new(),
            advice: None,
            detail: Value::Null,
        }
    }

    /// A measurement with its figure, graded by the limits of its name.
    fn judged(name: &'static str, figure: f64, spread: String, detail: Value) -> Measured {
        let (limits, advice) = limits::of(name);
        let verdict = judge(figure, limits);
        Measured {
            name,
            figure: Some(figure),
            unit: limits.unit,
            spread,
            limits: Some(limits),
            verdict,
            why: None,
            notes: Vec::new(),
            advice: (verdict == Grade::Poor).then(|| advice.to_owned()),
            detail,
        }
    }

    /// The same measurement without a grade: its figure is no measure of what was meant.
    fn but_unknown(mut self, why: impl ToString) -> Measured {
        self.verdict = Grade::Unknown;
        self.advice = None;
        self.why = Some(why.to_string());
        self
    }

    fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }
}

/// Steps of a check, and where they measure.
pub struct Asked<'a> {
    /// The server; `None` where only a directory of this host is measured.
    pub conninfo: Option<&'a Conninfo>,
    /// The machine that pgdyno runs on.
    pub host: &'a Arc<dyn HostAccess>,
    /// Steps to run, in this order.
    pub steps: Vec<Step>,
    /// Length of the measurement of commits; all others keep their proportion to it.
    pub length: Duration,
    /// Whether nothing but this host is measured.
    pub host_only: bool,
    /// Where files are made, instead of beside data and WAL.
    pub directory: Option<PathBuf>,
}

/// The usual length of the measurement of commits, as [senzing] has it: 6000 inserts in 3 s.
const USUAL_LENGTH: Duration = Duration::from_secs(3);

impl Asked<'_> {
    /// A length that is usually so long, in proportion.
    fn length_of(&self, usual_ms: u32) -> Duration {
        let scale = self.length.as_secs_f64() / USUAL_LENGTH.as_secs_f64();
        Duration::from_secs_f64(f64::from(usual_ms) / 1e3 * scale)
    }
}

/// Progress of a check, for display.
pub enum Event<'a> {
    /// A sentence to show beside the results.
    Remark(&'a str),
    /// Name of what is being measured.
    Now(&'a str),
    /// A measurement is done.
    Done(&'a Measured),
}

/// The server that a check measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerSeen {
    /// Host and port, or socket, of the server.
    pub place: String,
    /// Version of the server: "18.1".
    pub version: String,
    /// Which way its connections go.
    pub way: String,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckReport {
    /// The server, if one was asked.
    pub server: Option<ServerSeen>,
    /// Why the host of the server was not measured.
    pub host_not_measured: Option<String>,
    /// Time that the whole check took.
    pub elapsed_s: f64,
    /// Measurements in the order in which they ran.
    pub measurements: Vec<Measured>,
    /// Whether it was stopped before the end.
    pub is_stopped: bool,
}

impl CheckReport {
    /// The measurements with a poor verdict.
    pub fn poor(&self) -> impl Iterator<Item = &Measured> {
        self.measurements.iter().filter(|m| m.verdict == Grade::Poor)
    }

    /// Whether there is a figure at all.
    pub fn has_figures(&self) -> bool {
        self.measurements.iter().any(|m| m.figure.is_some())
    }
}

/// Everything that steps use.
struct Bench<'a> {
    asked: &'a Asked<'a>,
    server: Option<Server>,
    place: Place,
    stop: &'a Arc<AtomicBool>,
    clock: ClockWatch,
    /// Read at the beginning: what it reads next is of the whole check.
    host_series: HostSeries,
    begun: Instant,
}

/// Measures one thing after the other. Errors are those of the first connection; later ones are
/// reported by the measurement that met them.
pub fn check(
    asked: &Asked<'_>,
    stop: &Arc<AtomicBool>,
    on: &mut dyn FnMut(Event<'_>),
) -> Result<CheckReport, ServerError> {
    let begun = Instant::now();
    let mut server = asked.conninfo.map(Server::connect).transpose()?;
    let place = Place::find(asked, server.as_mut());
    for directory in &place.searched {
        for left in left_overs(directory) {
            let path = left.path.display();
            on(Event::Remark(&match left.removed {
                Ok(()) => format!("removed {path}, which a check that was killed has left"),
                Err(error) => {
                    format!("{path} is left of a check that was killed and could not be removed: {error}")
                }
            }));
        }
    }
    let mut report = CheckReport {
        server: server
            .as_mut()
            .zip(asked.conninfo)
            .map(|(server, conninfo)| ServerSeen {
                place: conninfo.place(),
                version: server.version().to_string(),
                way: round_trip::way(conninfo, server),
            }),
        host_not_measured: place.here.clone().err(),
        elapsed_s: 0.0,
        measurements: Vec::new(),
        is_stopped: false,
    };
    let mut host_series = HostSeries::new(HostSeriesOptions {
        disks: Some(Vec::new()),
        ..HostSeriesOptions::default()
    });
    host_series.tick(&**asked.host);
    let mut bench = Bench {
        asked,
        server,
        place,
        stop,
        clock: ClockWatch::start(),
        host_series,
        begun,
    };
    for &step in &asked.steps {
        on(Event::Now(step.name()));
        let found = bench.measure(step, on);
        if stop.load(Ordering::Relaxed) {
            report.is_stopped = true;
            break;
        }
        for measured in found {
            on(Event::Done(&measured));
            report.measurements.push(measured);
        }
    }
    report.elapsed_s = begun.elapsed().as_secs_f64();
    Ok(report)
}

impl Bench<'_> {
    fn measure(&mut self, step: Step, on: &mut dyn FnMut(Event<'_>)) -> Vec<Measured> {
        let all_unknown = |why: &str| {
            let names = step.measurements().iter();
            names.map(|name| Measured::unknown(name, why)).collect()
        };
        if let Err(why) = &self.place.here
            && !step.asks_the_server()
            && step != Step::Clock
        {
            return all_unknown(&format!("not measured: {why}"));
        }
        if step.asks_the_server() && (self.asked.host_only || self.server.is_none()) {
            return all_unknown("not measured: the host alone was asked for");
        }
        match step {
            Step::Timer => vec![self.timer()],
            Step::RoundTrip => vec![self.round_trip()],
            Step::Commit => vec![self.commit()],
            Step::WalSync => vec![self.wal_sync(on)],
            Step::Read => self.read(on),
            Step::Noise => vec![self.noise(on)],
            Step::Clock => vec![self.clock()],
            Step::Steal => vec![self.steal()],
        }
    }
}

/// A figure with about three digits, and a prefix where it is large.
pub fn shown(value: f64) -> String {
    match value.abs() {
        1e6.. => format!("{} M", three_digits(value / 1e6)),
        10_000.0.. => format!("{} k", three_digits(value / 1000.0)),
        _ => three_digits(value),
    }
}

/// Median, 99th percentile and count, in milliseconds.
fn spread_ms(times: &pgdyno_host::probe::Spread) -> String {
    let ms = |us: f64| shown(us / 1e3);
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let count = match times.count {
        count @ ..10_000 => count.to_string(),
        count => shown(count as f64),
    };
    format!("p50 {}, p99 {} ms of {count}", ms(times.p50_us), ms(times.p99_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_a_name_and_limits() {
        for step in Step::ALL {
            assert_eq!(Step::named(step.name()), Some(step));
            for name in step.measurements() {
                assert!(!limits::of(name).1.is_empty(), "{name}");
            }
        }
        assert_eq!(Step::named("x"), None);
    }

    #[test]
    fn a_figure_shows_three_digits() {
        let check = |value, text| assert_eq!(shown(value), text);
        check(0.0312, "0.0312");
        check(1.234, "1.23");
        check(12.34, "12.3");
        check(1234.5, "1234");
        check(24_600.0, "24.6 k");
        check(24_600_000.0, "24.6 M");
    }
}
