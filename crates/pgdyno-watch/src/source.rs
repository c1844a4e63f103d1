//! What reads the target for the view, in threads of its own; the only part here that touches it.
//!
//! Two sessions on the server: the recorder's, for counters and waits by the clock, and one for
//! what people read, which may take its time.

use super::keys::Panel;
use super::model::{About, Link, Update};
use super::names;
use pgdyno_host::series::{Key, Reading};
use pgdyno_host::{FunctionProfile, HostSeries, HostSeriesOptions, LocalHost, block};
use pgdyno_lab::{Recorder, RecorderEvent as Event, RecorderOptions};
use pgdyno_record::ErrorClass;
use pgdyno_server::series::ServerSeries;
use pgdyno_server::{Conninfo, Server, ServerError, Sought};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What is shown to people is not asked for more often than they can read it.
const LOOK_EVERY_MIN: Duration = Duration::from_secs(1);
/// Looks between two of what is not in sight and needed for a warning.
const SELDOM: u64 = 10;
/// Looks between two at the statements: reading all of pg_stat_statements is the most expensive
/// question here.
const STATEMENTS: u64 = 2;
/// Updates that wait to be shown: minutes of them. What comes while nobody takes any is dropped.
pub(crate) const UPDATES_MAX: usize = 10_000;
/// Readings without an answer after which the server is away. A single one can be a tick that was
/// missed.
const SILENT_MAX: u32 = 2;

/// Server and host to read, and how often.
pub struct Plan {
    /// Connection parameters of the server.
    pub conninfo: Conninfo,
    /// Name of the target at the head of the view.
    pub target: String,
    /// The host that this process runs on.
    pub host: LocalHost,
    /// Time between two readings.
    pub interval: Duration,
}

/// Why the reading did not begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The server cannot be reached.
    #[error("{0}")]
    Server(#[from] ServerError),
    /// The system refuses a thread.
    #[error("no thread can be started")]
    Thread(#[source] io::Error),
}

impl StartError {
    /// That of what it holds.
    pub fn class(&self) -> ErrorClass {
        match self {
            StartError::Server(error) => error.class(),
            StartError::Thread(_) => ErrorClass::Failed,
        }
    }

    /// What mends it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            StartError::Server(error) => error.hint(),
            StartError::Thread(_) => None,
        }
    }
}

/// The threads that read have ended by themselves.
#[derive(Debug, thiserror::Error)]
#[error("nothing is read any more: a thread has ended by a fault of the program")]
pub struct SourceEnded;

/// The reading threads, from outside. They end with it.
pub struct Source {
    updates: Receiver<Update>,
    orders: Sender<(Duration, Panel)>,
}

impl Source {
    /// Starts reading.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached at the very beginning, or no thread can be started.
    pub fn start(plan: Plan) -> Result<Source, StartError> {
        let counters = ServerSeries::connect(&plan.conninfo)?;
        let people = ServerSeries::connect(&plan.conninfo)?;
        let (source, sender, asked) = Source::of_channels();
        let reader = Reader {
            news: Arc::new(News::default()),
            sender,
            panel: Panel::Overview,
            known: None,
            here: plan.conninfo.is_here(),
            functions: None,
            wal: Arc::new(Mutex::new(None)),
            plan,
        };
        thread::Builder::new()
            .name("watch".into())
            .spawn(move || reader.run(counters, people, &asked))
            .map_err(StartError::Thread)?;
        Ok(source)
    }

    /// A source whose updates come from elsewhere, with where they are put, and what is asked of
    /// who puts them there.
    pub(crate) fn of_channels() -> (Source, SyncSender<Update>, Receiver<(Duration, Panel)>) {
        let (sender, updates) = sync_channel(UPDATES_MAX);
        let (orders, asked) = channel();
        (Source { updates, orders }, sender, asked)
    }

    /// The next update that has arrived; `None` without one.
    pub(crate) fn next(&self) -> Option<Update> {
        self.updates.try_recv().ok()
    }

    /// The next update, which may take `patience` to arrive.
    pub(crate) fn wait(&self, patience: Duration) -> Option<Update> {
        self.updates.recv_timeout(patience).ok()
    }

    /// The same; an error where none will come any more.
    pub(crate) fn wait_for(&self, patience: Duration) -> Result<Option<Update>, SourceEnded> {
        match self.updates.recv_timeout(patience) {
            Ok(update) => Ok(Some(update)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(SourceEnded),
        }
    }

    /// Another interval, or another panel in sight.
    pub(crate) fn ask(&self, interval: Duration, panel: Panel) {
        // A thread that has ended has said why.
        let _ = self.orders.send((interval, panel));
    }
}

/// What the recorder's threads and the reader share.
#[derive(Default)]
struct News {
    /// The server's main process; 0 where it is not on this host.
    postmaster: AtomicU32,
    silent: AtomicU32,
    away: AtomicBool,
}

struct Reader {
    plan: Plan,
    sender: SyncSender<Update>,
    news: Arc<News>,
    panel: Panel,
    /// The session and the configuration with which the server was introduced; `None` where it
    /// could not be asked.
    known: Option<(i32, String)>,
    /// Whether the server runs on this host.
    here: bool,
    /// Samples of functions, or why there are none, while these are in sight.
    functions: Option<Result<FunctionProfile, String>>,
    /// Directory of the write-ahead log, where it is on this host.
    wal: Arc<Mutex<Option<String>>>,
}

impl Reader {
    fn send(&self, update: Update) {
        let _ = self.sender.try_send(update);
    }

    fn run(mut self, counters: ServerSeries, mut people: ServerSeries, asked: &Receiver<(Duration, Panel)>) {
        self.send(Update::Interval(self.plan.interval));
        self.introduce(&mut people, true);
        self.send(Update::Link(Link::Up));
        let mut recorder = self.record(counters);
        let mut turn = 0;
        let mut due = Instant::now();
        loop {
            if recorder.is_none() {
                recorder = self.reconnect();
            }
            self.look(&mut people, turn);
            turn += 1;
            due = (due + self.plan.interval.max(LOOK_EVERY_MIN)).max(Instant::now());
            loop {
                let patience = due.saturating_duration_since(Instant::now());
                match asked.recv_timeout(patience) {
                    Ok((interval, panel)) => {
                        if interval != self.plan.interval {
                            self.plan.interval = interval;
                            self.send(Update::Interval(interval));
                            recorder = None;
                            due = Instant::now();
                        }
                        if panel != self.panel {
                            (self.panel, turn) = (panel, 0);
                            due = Instant::now();
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        }
    }

    /// The recorder at another pace, or after the system refused it. Where the server does not
    /// answer, it is tried again at the next turn.
    fn reconnect(&self) -> Option<Recorder> {
        match ServerSeries::connect(&self.plan.conninfo) {
            Ok(counters) => self.record(counters),
            Err(error) => {
                if !self.news.away.swap(true, Ordering::Relaxed) {
                    self.send(Update::Link(Link::Down(Instant::now(), error.to_string())));
                }
                None
            }
        }
    }

    fn record(&self, counters: ServerSeries) -> Option<Recorder> {
        let mut options = RecorderOptions {
            server: Some(counters),
            tick: self.plan.interval,
            ..RecorderOptions::default()
        };
        if self.here {
            options.sources.push(Box::new(self.host()));
        }
        let (sender, news) = (self.sender.clone(), Arc::clone(&self.news));
        let handler = move |event| {
            let update = match event {
                Event::Waits(sample) => Update::Waits(sample),
                Event::Reading(reading) => {
                    if let Some(link) = news.link(&reading) {
                        let _ = sender.try_send(Update::Link(link));
                    }
                    Update::Reading(reading)
                }
            };
            // Nobody looks any more at the end, or while the terminal takes nothing.
            let _ = sender.try_send(update);
        };
        match Recorder::start_with(options, handler) {
            Ok(recorder) => Some(recorder),
            Err(error) => {
                let mut reading = Reading::new(Instant::now(), None);
                reading.gap("threads", error);
                self.send(Update::Reading(reading));
                None
            }
        }
    }

    /// The host's series, of the server's processes as they are now, and the volume of its log.
    fn host(&self) -> impl FnMut() -> Vec<Reading> + Send + use<> {
        let (host, news, wal) = (
            self.plan.host.clone(),
            Arc::clone(&self.news),
            Arc::clone(&self.wal),
        );
        let mut of = None;
        let mut series = HostSeries::new(HostSeriesOptions::default());
        move || {
            let postmaster = Some(news.postmaster.load(Ordering::Relaxed)).filter(|pid| *pid != 0);
            if of != Some(postmaster) {
                of = Some(postmaster);
                series = HostSeries::new(HostSeriesOptions {
                    disks: None,
                    postmaster,
                    cgroup_of: postmaster,
                });
            }
            let mut readings = series.tick(&host);
            let wal = wal.lock().unwrap_or_else(PoisonError::into_inner).clone();
            readings.extend(wal.map(|wal| volume(&wal)));
            readings
        }
    }

    /// Sends what the target is; again when another session is used, the server has read its
    /// configuration again, or it could not be asked: until it answers, what is known of it stays.
    fn introduce(&mut self, people: &mut ServerSeries, first: bool) {
        let known = people.configured_at().ok().map(|at| (people.backend_pid(), at));
        // A server that does not answer is asked again when it does.
        if !first && (known.is_none() || known == self.known) {
            self.known = known;
            return;
        }
        let host = &self.plan.host;
        let asked = Server::connect(&self.plan.conninfo).and_then(|mut server| {
            let sought = Sought::ask(&mut server);
            let postmaster = sought.postmaster_here(host).ok();
            let data = postmaster.and_then(|pid| sought.data_here(host, pid).ok());
            Ok((postmaster, data, Settings::read(&mut server)?))
        });
        self.known = known.filter(|_| asked.is_ok());
        if asked.is_err() && !first {
            return;
        }
        let (postmaster, data, settings) = asked.unwrap_or_default();
        self.here |= postmaster.is_some();
        self.news
            .postmaster
            .store(postmaster.unwrap_or(0), Ordering::Relaxed);
        let data = data.map(|data| data.to_string_lossy().into_owned());
        let wal = data.as_ref().map(|data| format!("{data}/pg_wal"));
        let mut disks = Vec::new();
        for (path, what) in [(&data, "data"), (&wal, "WAL")] {
            let disk = path.as_ref().and_then(|path| block::disk_of(host, path).ok());
            disks.extend(disk.map(|disk| (disk, what.to_owned())));
        }
        *self.wal.lock().unwrap_or_else(PoisonError::into_inner) = wal;
        let cpus = || u32::try_from(thread::available_parallelism().ok()?.get()).ok();
        self.send(Update::About(About {
            target: self.plan.target.clone(),
            version: people.version().to_string(),
            no_host: (!self.here).then(|| "the host of the server is not this one".to_owned()),
            cpus: self.here.then(cpus).flatten(),
            max_connections: settings.max_connections,
            shared_buffers_bytes: settings.shared_buffers_bytes,
            max_wal_size_bytes: settings.max_wal_size_bytes,
            io_timing: settings.io_timing,
            disks,
        }));
    }

    /// Asks for what people read: what is in sight at each turn, the rest seldom.
    fn look(&mut self, people: &mut ServerSeries, turn: u64) {
        let seldom = turn.is_multiple_of(SELDOM);
        let reason = |error: ServerError| error.to_string();
        if self.panel == Panel::Sessions || seldom {
            self.send(Update::Sessions(people.sessions().map_err(reason)));
        }
        let statements = matches!(self.panel, Panel::Overview | Panel::Statements);
        // The first look has nothing to compare with.
        if statements && (turn == 1 || turn.is_multiple_of(STATEMENTS)) {
            let rows = people.statements().map_err(|missing| missing.to_string());
            self.send(Update::Statements(rows));
        }
        if self.panel == Panel::Vacuum {
            self.send(Update::Vacuums(people.vacuums().map_err(reason)));
        }
        if self.panel == Panel::Vacuum || seldom {
            self.send(Update::Ages(people.ages().map_err(reason)));
        }
        match self.panel {
            Panel::Waits => self.profile(),
            _ => self.functions = None,
        }
        let is_other = |(session, _): &(i32, String)| *session != people.backend_pid();
        if seldom || self.known.as_ref().is_some_and(is_other) {
            self.introduce(people, false);
        }
    }
}

impl Reader {
    /// The functions of the server's processes, where it is on this host.
    fn profile(&mut self) {
        let postmaster = self.news.postmaster.load(Ordering::Relaxed);
        if postmaster == 0 {
            return;
        }
        let host = &self.plan.host;
        let rows = match &mut self.functions {
            Some(Ok(profile)) => Ok(profile.take(host, postmaster)),
            Some(Err(why)) => Err(why.clone()),
            // The next look is the first one with something to count.
            none => {
                *none = Some(FunctionProfile::open(host));
                return;
            }
        };
        self.send(Update::Functions(rows));
    }
}

impl News {
    /// What a reading means for the way to the server, if that is news.
    fn link(&self, reading: &Reading) -> Option<Link> {
        let of_server =
            |(key, _): &(Key, f64)| key.metric.starts_with("db.") || key.metric.starts_with("sessions.");
        if reading.values.iter().any(of_server) {
            self.silent.store(0, Ordering::Relaxed);
            return self.away.swap(false, Ordering::Relaxed).then_some(Link::Up);
        }
        let why = reading.gaps.iter().find(|gap| gap.source == "server")?;
        if !reading.values.is_empty() {
            return None;
        }
        let silent = self.silent.fetch_add(1, Ordering::Relaxed) + 1;
        (silent >= SILENT_MAX && !self.away.swap(true, Ordering::Relaxed))
            .then(|| Link::Down(reading.at, why.reason.clone()))
    }
}

/// Settings that a rule or the headline needs.
#[derive(Default)]
struct Settings {
    max_connections: Option<f64>,
    shared_buffers_bytes: Option<f64>,
    max_wal_size_bytes: Option<f64>,
    io_timing: bool,
}

impl Settings {
    fn read(server: &mut Server) -> Result<Settings, ServerError> {
        let sql = "SELECT name, CASE unit WHEN '8kB' THEN setting::float8 * 8192 WHEN 'MB' THEN setting::float8 * 1048576 \
                   ELSE setting::float8 END FROM pg_settings WHERE name IN ('max_connections', 'shared_buffers', \
                   'max_wal_size')";
        let rows = server.rows("asking for settings", sql)?;
        let number = |name: &str| {
            let row = rows
                .iter()
                .find(|row| row.first().is_some_and(|cell| cell.as_deref() == Some(name)))?;
            row.get(1)?.as_deref()?.parse().ok()
        };
        let timing = server.value("asking for a setting", "SHOW track_io_timing");
        Ok(Settings {
            max_connections: number("max_connections"),
            shared_buffers_bytes: number("shared_buffers"),
            max_wal_size_bytes: number("max_wal_size"),
            io_timing: timing.ok().flatten().as_deref() == Some("on"),
        })
    }
}

/// Room on the file system that holds a directory.
#[expect(clippy::cast_precision_loss, reason = "bytes for people")]
fn volume(directory: &str) -> Reading {
    let mut reading = Reading::new(Instant::now(), None);
    match rustix::fs::statvfs(directory) {
        Ok(volume) => {
            let block = volume.f_frsize as f64;
            reading.push(Key::one(names::WAL_VOLUME), volume.f_blocks as f64 * block);
            reading.push(Key::one(names::WAL_VOLUME_FREE), volume.f_bavail as f64 * block);
        }
        Err(error) => reading.gap(directory, error),
    }
    reading
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_silent_reading_is_no_outage_and_the_first_answer_ends_one() {
        let news = News::default();
        let now = Instant::now();
        let mut silent = Reading::new(now, None);
        silent.gap("server", "Connection refused");
        let mut answer = Reading::new(now, None);
        answer.push(Key::one("sessions.active"), 1.0);
        let mut host = Reading::new(now, None);
        host.push(Key::one(names::PAGE_TABLES), 1.0);
        let down = Link::Down(now, "Connection refused".into());
        for (reading, link) in [
            (&silent, None),
            (&answer, None),
            (&silent, None),
            (&host, None),
            (&silent, Some(down)),
            (&silent, None),
            (&answer, Some(Link::Up)),
            (&answer, None),
        ] {
            assert_eq!(news.link(reading), link);
        }
    }

    #[test]
    fn a_directory_has_a_volume() {
        assert_eq!(volume("/").values.len(), 2);
        assert_eq!(volume("/nowhere").gaps.len(), 1);
    }
}
