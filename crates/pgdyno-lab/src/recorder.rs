//! Keeps series of a host and of a server while something else goes on: on threads of its own, to
//! an absolute schedule. A tick that is missed is a gap; it shifts no other.

use pgdyno_host::series::{Gap, Key, Reading};
use pgdyno_server::series::{OwnCommits, ServerSeries, WaitKey, WaitSample};
use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Nothing is read more often than this.
const EVERY_MIN: Duration = Duration::from_millis(100);
/// What changes slowly is asked at this pace.
const SELDOM_EVERY: Duration = Duration::from_secs(10);
/// Values and gaps that a series takes; a day of 300 metrics at 1 Hz. What comes later is a gap.
const VALUES_MAX: usize = 26_000_000;
const GAPS_MAX: usize = 100_000;

/// Something that can be read again and again: files of a host, counters of its CPUs.
pub trait Source {
    /// Reads it once. Never fails: what cannot be read is a gap in a reading.
    fn tick(&mut self) -> Vec<Reading>;
}

impl<F: FnMut() -> Vec<Reading>> Source for F {
    fn tick(&mut self) -> Vec<Reading> {
        self()
    }
}

/// What is recorded, and how often.
pub struct RecorderOptions {
    /// Read one after the other, on a thread of their own: a server that hangs does not hold them
    /// up.
    pub sources: Vec<Box<dyn Source + Send>>,
    /// The server, if one is watched.
    pub server: Option<ServerSeries>,
    /// Between two readings; a second by custom, 100 ms at least.
    pub tick: Duration,
    /// Between two samples of what sessions wait for; 100 ms at least. `None` for none.
    pub waits_every: Option<Duration>,
}

impl Default for RecorderOptions {
    /// Nothing yet; readings at 1 Hz, waits at 10 Hz.
    fn default() -> RecorderOptions {
        RecorderOptions {
            sources: Vec::new(),
            server: None,
            tick: Duration::from_secs(1),
            waits_every: Some(EVERY_MIN),
        }
    }
}

/// What a recorder has read.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Of a host or of the server.
    Reading(Reading),
    /// Sessions with what they wait for.
    Waits(WaitSample),
}

/// Values of one metric and label over time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Column {
    /// When each value was read, in ms since the start.
    pub at_ms: Vec<u64>,
    /// A value for each time, in the metric's unit.
    pub values: Vec<f64>,
}

/// What sessions waited for in one second.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WaitSecond {
    /// The second's beginning, in ms since the start.
    pub at_ms: u64,
    /// How often was looked; a second without a look is not there.
    pub samples: u32,
    /// Mean number of sessions over these samples. One that never occurred is 0.
    pub sessions: BTreeMap<WaitKey, f64>,
}

/// All columns, waits and gaps of a recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// Columns by metric and label.
    pub columns: BTreeMap<Key, Column>,
    /// Sessions by what they waited for, second by second.
    pub waits: Vec<WaitSecond>,
    /// What is missing, and from when on, in ms since the start.
    pub gaps: Vec<(u64, Gap)>,
    /// Transactions of the recorder's own, which the server counts too.
    pub own_commits: OwnCommits,
    values: usize,
}

/// A recording that goes on.
pub struct Recorder {
    threads: Vec<(Sender<()>, JoinHandle<OwnCommits>)>,
    series: Arc<Mutex<Series>>,
}

type Handler = Arc<Mutex<dyn FnMut(Event) + Send>>;

impl Recorder {
    /// Starts, and keeps everything until [`Recorder::stop`]. Errors are the system's, which
    /// refuses a thread.
    pub fn start(options: RecorderOptions) -> io::Result<Recorder> {
        let series = Arc::new(Mutex::new(Series::default()));
        let kept = Arc::clone(&series);
        let began = Instant::now();
        let keep = move |event| {
            kept.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .add(began, event)
        };
        Recorder::launch(options, began, Arc::new(Mutex::new(keep)), series)
    }

    /// Starts, and hands everything on as it comes, one event at a time, from threads of the
    /// recorder; nothing is kept.
    pub fn start_with(
        options: RecorderOptions,
        handler: impl FnMut(Event) + Send + 'static,
    ) -> io::Result<Recorder> {
        let series = Arc::new(Mutex::new(Series::default()));
        Recorder::launch(options, Instant::now(), Arc::new(Mutex::new(handler)), series)
    }

    fn launch(
        options: RecorderOptions,
        began: Instant,
        handler: Handler,
        series: Arc<Mutex<Series>>,
    ) -> io::Result<Recorder> {
        let tick = options.tick.max(EVERY_MIN);
        let mut recorder = Recorder {
            threads: Vec::new(),
            series,
        };
        if !options.sources.is_empty() {
            let (mut sources, handler) = (options.sources, Arc::clone(&handler));
            recorder.spawn("record host", move |stop| {
                let mut agenda = Agenda::new(began, vec![tick]);
                while let Some(due) = agenda.next(stop, &handler, &["host"]) {
                    debug_assert_eq!(due, 0);
                    for source in &mut sources {
                        for reading in source.tick() {
                            hand_on(&handler, Event::Reading(reading));
                        }
                    }
                }
                OwnCommits::default()
            })?;
        }
        if let Some(server) = options.server {
            let waits_every = options.waits_every.map(|every| every.max(EVERY_MIN));
            recorder.spawn("record server", move |stop| {
                watch_server(server, began, tick, waits_every, stop, &handler)
            })?;
        }
        Ok(recorder)
    }

    fn spawn(
        &mut self,
        name: &str,
        work: impl FnOnce(&Receiver<()>) -> OwnCommits + Send + 'static,
    ) -> io::Result<()> {
        let (stop, stopped) = channel();
        let thread = Builder::new()
            .name(name.to_owned())
            .spawn(move || work(&stopped))?;
        self.threads.push((stop, thread));
        Ok(())
    }

    /// Ends it: at once, or when the reading that is being taken is there. The series is empty
    /// where events were handed on instead.
    pub fn stop(mut self) -> Series {
        let own = self.end();
        let mut series = std::mem::take(&mut *self.series.lock().unwrap_or_else(PoisonError::into_inner));
        series.own_commits = own;
        series
    }

    fn end(&mut self) -> OwnCommits {
        let threads = std::mem::take(&mut self.threads);
        let (stops, threads): (Vec<_>, Vec<_>) = threads.into_iter().unzip();
        drop(stops);
        let mut own = OwnCommits::default();
        for thread in threads {
            let of_thread = thread.join().unwrap_or_default();
            own.sure += of_thread.sure;
            own.unsure += of_thread.unsure;
        }
        own
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end();
    }
}

/// The server's thread: the tick before the waits where both are due, for it has the longer
/// interval.
fn watch_server(
    mut server: ServerSeries,
    began: Instant,
    tick: Duration,
    waits_every: Option<Duration>,
    stop: &Receiver<()>,
    handler: &Handler,
) -> OwnCommits {
    let mut paces = vec![tick, SELDOM_EVERY];
    paces.extend(waits_every);
    let mut agenda = Agenda::new(began, paces);
    while let Some(due) = agenda.next(stop, handler, &["server", "server, seldom", "waits"]) {
        let event = match due {
            0 => Event::Reading(server.tick()),
            1 => Event::Reading(server.seldom()),
            _ => Event::Waits(server.sample_waits()),
        };
        hand_on(handler, event);
    }
    server.own_commits()
}

fn hand_on(handler: &Handler, event: Event) {
    let mut handler = handler.lock().unwrap_or_else(PoisonError::into_inner);
    handler(event);
}

/// When what is due, at several paces from one start.
struct Agenda {
    began: Instant,
    paces: Vec<Duration>,
    /// The next turn of each.
    turns: Vec<u32>,
}

impl Agenda {
    fn new(began: Instant, paces: Vec<Duration>) -> Agenda {
        Agenda {
            began,
            turns: vec![0; paces.len()],
            paces,
        }
    }

    fn due_at(&self, at: usize) -> Instant {
        self.began + self.paces[at] * self.turns[at]
    }

    /// Waits until something is due and says which; `None` when it is to stop.
    fn next(&mut self, stop: &Receiver<()>, handler: &Handler, names: &[&str]) -> Option<usize> {
        let soonest = (0..self.paces.len()).min_by_key(|at| self.due_at(*at))?;
        let due = self.due_at(soonest);
        let wait = due.saturating_duration_since(Instant::now());
        match stop.recv_timeout(wait) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return None,
        }
        if let Some((missed, late)) = self.take(soonest, Instant::now()) {
            let mut gap = Reading::new(due, None);
            let times = if missed == 1 { "tick" } else { "ticks" };
            let late_ms = late.as_millis();
            gap.gap(
                names[soonest],
                format!("{missed} {times} missed: what was before took {late_ms} ms longer"),
            );
            hand_on(handler, Event::Reading(gap));
        }
        Some(soonest)
    }

    /// Takes a turn at this instant; returns how many were missed and by how much, where it is too
    /// late for the first.
    fn take(&mut self, at: usize, now: Instant) -> Option<(u32, Duration)> {
        let pace = self.paces[at];
        let late = now.saturating_duration_since(self.due_at(at));
        let missed = u32::try_from(late.as_nanos() / pace.as_nanos()).unwrap_or(u32::MAX / 2);
        self.turns[at] = self.turns[at].saturating_add(missed).saturating_add(1);
        (missed > 0).then_some((missed, late))
    }
}

impl Series {
    fn add(&mut self, began: Instant, event: Event) {
        let ms =
            |at: Instant| u64::try_from(at.saturating_duration_since(began).as_millis()).unwrap_or(u64::MAX);
        match event {
            Event::Reading(reading) => {
                let at_ms = ms(reading.at);
                for (key, value) in reading.values {
                    if self.values >= VALUES_MAX {
                        self.add_gap(at_ms, full());
                        break;
                    }
                    self.values += 1;
                    let column = self.columns.entry(key).or_default();
                    column.at_ms.push(at_ms);
                    column.values.push(value);
                }
                for gap in reading.gaps {
                    self.add_gap(at_ms, gap);
                }
            }
            Event::Waits(sample) => self.add_waits(ms(sample.at), sample),
        }
    }

    /// The same gap of several samples in a row is one.
    fn add_gap(&mut self, at_ms: u64, gap: Gap) {
        let is_known = self.gaps.iter().rev().take(16).any(|(_, known)| *known == gap);
        if !is_known && self.gaps.len() < GAPS_MAX {
            self.gaps.push((at_ms, gap));
        }
    }

    fn add_waits(&mut self, at_ms: u64, sample: WaitSample) {
        let has_counts = sample.gap.is_none() || !sample.counts.is_empty();
        if let Some(gap) = sample.gap {
            self.add_gap(at_ms, gap);
        }
        if !has_counts {
            return;
        }
        if self.values >= VALUES_MAX {
            return self.add_gap(at_ms, full());
        }
        let second = at_ms - at_ms % 1000;
        if self.waits.last().is_none_or(|last| last.at_ms != second) {
            self.waits.push(WaitSecond {
                at_ms: second,
                ..WaitSecond::default()
            });
        }
        let Some(last) = self.waits.last_mut() else { return };
        // The mean of n samples from that of n - 1.
        let n = f64::from(last.samples);
        for sessions in last.sessions.values_mut() {
            *sessions *= n / (n + 1.0);
        }
        for (key, count) in sample.counts {
            let known = last.sessions.len();
            *last.sessions.entry(key).or_default() += f64::from(count) / (n + 1.0);
            self.values += last.sessions.len() - known;
        }
        last.samples += 1;
    }
}

fn full() -> Gap {
    Gap {
        source: "recorder".to_owned(),
        reason: format!("the series is full: it takes {VALUES_MAX} values"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(began: Instant, ms: u64) -> Instant {
        began + Duration::from_millis(ms)
    }

    #[test]
    fn a_missed_tick_shifts_no_other() {
        let began = Instant::now();
        let mut agenda = Agenda::new(began, vec![Duration::from_secs(1)]);
        let mut check = |now_ms, missed: Option<(u32, u64)>, next_ms| {
            let expected = missed.map(|(n, late_ms)| (n, Duration::from_millis(late_ms)));
            assert_eq!(agenda.take(0, at(began, now_ms)), expected, "at {now_ms}");
            assert_eq!(agenda.due_at(0), at(began, next_ms), "at {now_ms}");
        };
        check(0, None, 1000);
        check(1003, None, 2000);
        check(2999, None, 3000);
        check(4200, Some((1, 1200)), 5000);
        check(9000, Some((4, 4000)), 10_000);
        check(10_000, None, 11_000);
    }

    #[test]
    fn waits_are_means_over_the_samples_of_a_second() {
        let began = Instant::now();
        let key = |event: &str| WaitKey {
            class: "client backend".into(),
            kind: "IO".into(),
            event: event.into(),
            query_id: None,
        };
        let mut series = Series::default();
        for (ms, counts) in [
            (0, vec![(key("a"), 4)]),
            (100, vec![]),
            (200, vec![(key("a"), 2), (key("b"), 3)]),
            (1100, vec![(key("b"), 1)]),
        ] {
            let sample = WaitSample {
                at: at(began, ms),
                counts,
                gap: None,
            };
            series.add(began, Event::Waits(sample));
        }
        let lost = WaitSample {
            at: at(began, 1200),
            counts: vec![],
            gap: Some(Gap {
                source: "w".into(),
                reason: "lost".into(),
            }),
        };
        series.add(began, Event::Waits(lost.clone()));
        series.add(began, Event::Waits(lost));
        assert_eq!(series.waits.len(), 2);
        let first = &series.waits[0];
        assert_eq!(first.samples, 3);
        assert!((first.sessions[&key("a")] - 2.0).abs() < 1e-9);
        assert!((first.sessions[&key("b")] - 1.0).abs() < 1e-9);
        assert_eq!((series.waits[1].at_ms, series.waits[1].samples), (1000, 1));
        assert_eq!(series.gaps.len(), 1, "{:?}", series.gaps);
    }

    #[test]
    fn sources_are_read_until_it_is_stopped() {
        let (sender, receiver) = channel();
        let source = move || {
            let mut reading = Reading::new(Instant::now(), None);
            reading.push(Key::one("x.y_ratio"), 0.5);
            reading.gap("z", "refused");
            let _ = sender.send(());
            vec![reading]
        };
        let recorder = Recorder::start(RecorderOptions {
            sources: vec![Box::new(source)],
            tick: EVERY_MIN,
            ..RecorderOptions::default()
        })
        .expect("a thread");
        for _ in 0..3 {
            receiver.recv().expect("it goes on");
        }
        let series = recorder.stop();
        let column = &series.columns[&Key::one("x.y_ratio")];
        assert!(column.values.len() >= 2 && column.values.len() == column.at_ms.len());
        assert!(series.gaps.iter().any(|(_, gap)| gap.source == "z"));
    }
}
