//! What a program says, read line by line into seconds and figures. Does no I/O.

use super::format::ForeignFormat;
use super::lines::{LastLines, LineCutter};
use super::pattern::{Field, Stat};
use std::mem;

/// Most seconds that are kept: a day and more.
const SECONDS_MAX: usize = 100_000;
/// A program's clock starts after ours, and its seconds are rounded: a time further ahead is a
/// date, not a time since the start.
const AHEAD_MAX_S: f64 = 1.0;

/// A stream of a program's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignStream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// Response times as a program reports them; `None`: it does not.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ForeignLatency {
    /// Mean of the response times.
    pub mean_ms: Option<f64>,
    /// Median of the response times.
    pub p50_ms: Option<f64>,
    /// 95th percentile of the response times.
    pub p95_ms: Option<f64>,
    /// 99th percentile of the response times.
    pub p99_ms: Option<f64>,
    /// Longest response time.
    pub max_ms: Option<f64>,
}

/// What a program reported about a stretch of its run, mostly a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ForeignSecond {
    /// Its end, in seconds since the program's start: by the program's clock if it prints one, else
    /// when the line came.
    pub t_s: f64,
    /// Its length: since the last one's end.
    pub length_s: f64,
    /// Transactions per second, as the program prints it.
    pub tps: f64,
    /// Whether it is after the warm-up, by its middle: programs round their times.
    pub measured: bool,
    /// Failed transactions per second; `None` where the program does not print it.
    pub failed_per_s: Option<f64>,
    /// Response times in it; without values where nothing was done.
    pub latency: ForeignLatency,
}

/// Everything that was read of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignFigures {
    /// Transactions of the whole run, as reported at its end.
    pub transactions: Option<u64>,
    /// Failed ones of the whole run.
    pub failed: Option<u64>,
    /// Transactions per second of the measured time: of the seconds after the warm-up, where the
    /// program reports seconds.
    pub tps: Option<f64>,
    /// Whether the warm-up is in that, for want of seconds.
    pub tps_includes_warmup: bool,
    /// New orders per minute, of a TPC-C-like load.
    pub nopm: Option<f64>,
    /// Response times as reported at the end.
    pub latency: ForeignLatency,
    /// Whether the warm-up is in them.
    pub latency_includes_warmup: bool,
    /// Second by second, warm-up included.
    pub seconds: Vec<ForeignSecond>,
    /// Seconds beyond what is kept, which are in no figure.
    pub seconds_skipped: u64,
    /// The time of which `tps` is.
    pub measured_s: f64,
    /// The line that says why the run is not a measurement.
    pub broken: Option<String>,
    /// The last lines, without the password.
    pub last_lines: Vec<String>,
}

/// Figures of the program's final lines.
#[derive(Debug, Clone, Copy, Default)]
struct Finals {
    transactions: Option<f64>,
    failed: Option<f64>,
    tps: Option<f64>,
    nopm: Option<f64>,
    length_s: Option<f64>,
    latency: ForeignLatency,
}

/// Reads the output of a program as a format says.
#[derive(Debug)]
pub struct ForeignOutput<'a> {
    format: &'a ForeignFormat,
    warmup_s: f64,
    warms_up_itself: bool,
    cutters: [LineCutter; 2],
    last_lines: LastLines,
    seconds: Vec<ForeignSecond>,
    seconds_skipped: u64,
    /// The end of the last second.
    second_end_s: f64,
    finals: Finals,
    broken: Option<String>,
}

impl<'a> ForeignOutput<'a> {
    /// Seconds before `warmup_s` are not measured; `warms_up_itself`: the program excludes its
    /// warm-up from its final figures. `secret` is kept nowhere.
    pub fn new(
        format: &'a ForeignFormat,
        warmup_s: f64,
        warms_up_itself: bool,
        secret: Option<String>,
    ) -> ForeignOutput<'a> {
        ForeignOutput {
            format,
            warmup_s,
            warms_up_itself,
            cutters: Default::default(),
            last_lines: LastLines::without(secret),
            seconds: Vec::new(),
            seconds_skipped: 0,
            second_end_s: 0.0,
            finals: Finals::default(),
            broken: None,
        }
    }

    /// Takes bytes that came `since_start_s` after the program's start.
    pub fn read(
        &mut self,
        stream: ForeignStream,
        bytes: &[u8],
        since_start_s: f64,
        on_second: &mut dyn FnMut(&ForeignSecond),
    ) {
        let which = usize::from(stream == ForeignStream::Err);
        let mut cutter = mem::take(&mut self.cutters[which]);
        cutter.push(bytes, &mut |line| self.line(line, since_start_s, on_second));
        self.cutters[which] = cutter;
    }

    fn line(&mut self, line: &str, since_start_s: f64, on_second: &mut dyn FnMut(&ForeignSecond)) {
        self.last_lines.keep(line);
        if self.broken.is_none() && self.format.broken.iter().any(|pattern| pattern.is_match(line)) {
            self.broken = Some(self.last_lines.shown(line));
        }
        let mut second = self.format.second.iter();
        if let Some(figures) = second.find_map(|pattern| pattern.read(line)) {
            self.second(&figures, since_start_s, on_second);
            return;
        }
        for pattern in &self.format.last {
            if let Some(figures) = pattern.read(line) {
                self.finals.take(&figures);
            }
        }
    }

    fn second(
        &mut self,
        figures: &[(Field, f64)],
        since_start_s: f64,
        on_second: &mut dyn FnMut(&ForeignSecond),
    ) {
        let figure = |wanted: Field| figure(figures, wanted);
        let printed = figure(Field::Time).filter(|&t_s| t_s <= since_start_s + AHEAD_MAX_S);
        let t_s = printed.unwrap_or(since_start_s);
        let length_s = t_s - self.second_end_s;
        let per_minute = figure(Field::Tpm).map(|tpm| tpm / 60.0);
        let (Some(tps), true) = (
            figure(Field::Tps).or(per_minute),
            length_s > 0.0 && length_s.is_finite(),
        ) else {
            return;
        };
        let second = ForeignSecond {
            t_s,
            length_s,
            tps,
            measured: self.second_end_s + length_s / 2.0 >= self.warmup_s,
            failed_per_s: figure(Field::FailedPerS).or(figure(Field::Failed).map(|failed| failed / length_s)),
            latency: match tps > 0.0 {
                true => ForeignLatency::default().with(figures),
                false => ForeignLatency::default(),
            },
        };
        self.second_end_s = t_s;
        on_second(&second);
        match self.seconds.len() < SECONDS_MAX {
            true => self.seconds.push(second),
            false => self.seconds_skipped += 1,
        }
    }

    /// The figures, when the program has ended after `wall_s`.
    pub fn finish(mut self, wall_s: f64, on_second: &mut dyn FnMut(&ForeignSecond)) -> ForeignFigures {
        for mut cutter in mem::take(&mut self.cutters) {
            cutter.end(&mut |line| self.line(line, wall_s, on_second));
        }
        let finals = self.finals;
        let measured = self.seconds.iter().filter(|second| second.measured);
        let (done, length_s) = measured.fold((0.0, 0.0), |(done, length_s), second| {
            (done + second.tps * second.length_s, length_s + second.length_s)
        });
        let total_s = finals.length_s.unwrap_or(wall_s);
        let counted = finals.transactions.filter(|_| total_s > 0.0);
        let includes_warmup = self.warmup_s > 0.0 && !self.warms_up_itself;
        let (tps, measured_s) = match length_s > 0.0 {
            true => (Some(done / length_s), length_s),
            false => (
                finals.tps.or(counted.map(|transactions| transactions / total_s)),
                total_s,
            ),
        };
        ForeignFigures {
            transactions: finals.transactions.map(count),
            failed: finals.failed.map(count),
            tps,
            tps_includes_warmup: includes_warmup && length_s <= 0.0,
            nopm: finals.nopm,
            latency: finals.latency,
            latency_includes_warmup: includes_warmup,
            seconds: self.seconds,
            seconds_skipped: self.seconds_skipped,
            measured_s,
            broken: self.broken,
            last_lines: self.last_lines.into_vec(),
        }
    }
}

impl Finals {
    fn take(&mut self, figures: &[(Field, f64)]) {
        for &(field, value) in figures {
            match field {
                Field::Transactions => self.transactions = Some(value),
                Field::Failed => self.failed = Some(value),
                Field::Tps => self.tps = Some(value),
                Field::Tpm => self.tps = Some(value / 60.0),
                Field::Nopm => self.nopm = Some(value),
                Field::Length => self.length_s = Some(value),
                Field::Time | Field::FailedPerS | Field::Percent | Field::Latency(..) => {}
            }
        }
        self.latency = self.latency.with(figures);
    }
}

impl ForeignLatency {
    /// Adds what a line reports to what earlier ones have reported.
    fn with(mut self, figures: &[(Field, f64)]) -> ForeignLatency {
        let percent = figure(figures, Field::Percent);
        for &(field, value) in figures {
            let Field::Latency(stat, to_ms) = field else {
                continue;
            };
            let place = match (stat, percent) {
                (Stat::Mean, _) => &mut self.mean_ms,
                (Stat::Max, _) => &mut self.max_ms,
                (Stat::P50, _) => &mut self.p50_ms,
                (Stat::P95, _) => &mut self.p95_ms,
                (Stat::P99, _) => &mut self.p99_ms,
                (Stat::Percentile, Some(50.0)) => &mut self.p50_ms,
                (Stat::Percentile, Some(95.0)) => &mut self.p95_ms,
                (Stat::Percentile, Some(99.0)) => &mut self.p99_ms,
                (Stat::Percentile, _) => continue,
            };
            *place = Some(value * to_ms);
        }
        self
    }
}

fn figure(figures: &[(Field, f64)], wanted: Field) -> Option<f64> {
    let found = figures.iter().find(|(field, _)| *field == wanted);
    found.map(|&(_, value)| value)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "patterns take numbers from 0 to 1e15"
)]
fn count(value: f64) -> u64 {
    value as u64
}
