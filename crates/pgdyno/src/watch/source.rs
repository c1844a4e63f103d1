//! What reads the target for the view, in threads of its own; the only part here that touches it.

use super::keys::Panel;
use super::model::{About, Link, Update};
use super::names;
use pgdyno_host::series::{Key, Reading};
use pgdyno_host::{HostSampler, LocalHost, block};
use pgdyno_server::{Conninfo, Counters, Server, ServerError, counters};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Updates that wait for the view; more than that, and the source waits too.
const QUEUE: usize = 1024;
/// Pauses between tries to reach a server that is away.
const RETRY: Duration = Duration::from_secs(1);

/// What is read.
pub(crate) struct Plan {
    pub(crate) conninfo: Conninfo,
    /// For people.
    pub(crate) target: String,
    pub(crate) host: LocalHost,
    pub(crate) interval: Duration,
}

/// The reading threads, from outside. They end with it.
pub(crate) struct Source {
    updates: Receiver<Update>,
    orders: Sender<(Duration, Panel)>,
}

impl Source {
    /// Starts reading. That the server cannot be reached at the very beginning is an error.
    pub(crate) fn start(plan: Plan) -> anyhow::Result<Source> {
        let server = Server::connect(&plan.conninfo)?;
        let (sender, updates) = sync_channel(QUEUE);
        let (orders, asked) = channel();
        thread::Builder::new()
            .name("watch".into())
            .spawn(move || Reader::new(plan, sender).run(server, &asked))?;
        Ok(Source { updates, orders })
    }

    /// What is there already.
    pub(crate) fn next(&self) -> Option<Update> {
        self.updates.try_recv().ok()
    }

    /// What comes within `patience`.
    pub(crate) fn wait(&self, patience: Duration) -> Option<Update> {
        self.updates.recv_timeout(patience).ok()
    }

    /// Another interval, or another panel in sight.
    pub(crate) fn ask(&self, interval: Duration, panel: Panel) {
        // A thread that has ended has said why.
        let _ = self.orders.send((interval, panel));
    }
}

struct Reader {
    plan: Plan,
    updates: SyncSender<Update>,
    host: Option<HostSampler>,
    before: Option<(Instant, Counters)>,
    wal: Option<String>,
}

impl Reader {
    fn new(plan: Plan, updates: SyncSender<Update>) -> Reader {
        Reader {
            plan,
            updates,
            host: None,
            before: None,
            wal: None,
        }
    }

    fn tell(&self, update: Update) {
        let _ = self.updates.send(update);
    }

    fn run(mut self, server: Server, asked: &Receiver<(Duration, Panel)>) {
        let mut server = Some(server);
        if let Some(server) = &mut server {
            self.introduce(server);
        }
        let mut due = Instant::now();
        loop {
            let away = match server.as_mut().map(|server| self.tick(server)) {
                Some(Err(error)) => Some(error),
                Some(Ok(())) => None,
                None => match Server::connect(&self.plan.conninfo) {
                    Ok(mut back) => {
                        self.introduce(&mut back);
                        server = Some(back);
                        None
                    }
                    Err(error) => Some(error),
                },
            };
            if let Some(error) = away {
                if server.take().is_some() {
                    self.before = None;
                    self.tell(Update::Link(Link::Down(Instant::now(), error.to_string())));
                }
                due = Instant::now() + RETRY;
            } else {
                due = (due + self.plan.interval).max(Instant::now());
            }
            loop {
                let patience = due.saturating_duration_since(Instant::now());
                match asked.recv_timeout(patience) {
                    Ok((interval, _)) => self.plan.interval = interval,
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        }
    }

    /// What the target is.
    fn introduce(&mut self, server: &mut Server) {
        let setting = |server: &mut Server, name: &str| -> Option<f64> {
            let sql = format!(
                "SELECT setting::float8 * CASE unit WHEN '8kB' THEN 8192 WHEN 'MB' THEN 1048576 WHEN 'kB' THEN 1024 \
                 ELSE 1 END FROM pg_settings WHERE name = '{name}'"
            );
            server.value("asking for a setting", &sql).ok()??.parse().ok()
        };
        let data = server.value("asking for the data directory", "SHOW data_directory");
        let data = data.ok().flatten();
        let local = self.plan.conninfo.is_local();
        self.wal = data.filter(|_| local).map(|data| format!("{data}/pg_wal"));
        let disk = self
            .wal
            .as_ref()
            .and_then(|wal| block::disk_of(&self.plan.host, wal).ok());
        self.host = local.then(|| HostSampler::new(&self.plan.host, disk.clone()));
        let cpus = || {
            thread::available_parallelism()
                .ok()
                .and_then(|n| u32::try_from(n.get()).ok())
        };
        let about = About {
            target: self.plan.target.clone(),
            version: server.version().to_string(),
            no_host: (!local).then(|| "the host of the server is not this one".to_owned()),
            cpus: local.then(cpus).flatten(),
            max_connections: setting(server, "max_connections"),
            shared_buffers_bytes: setting(server, "shared_buffers"),
            max_wal_size_bytes: setting(server, "max_wal_size"),
            disks: disk.into_iter().map(|disk| (disk, "WAL".to_owned())).collect(),
        };
        self.tell(Update::About(about));
        self.tell(Update::Link(Link::Up));
    }

    fn tick(&mut self, server: &mut Server) -> Result<(), ServerError> {
        let now = counters(server)?;
        let at = Instant::now();
        let before = self.before.replace((at, now.clone()));
        let mut reading = Reading::new(at, before.as_ref().map(|(at, _)| *at));
        if let Some((since, before)) = before {
            let seconds = at.duration_since(since).as_secs_f64();
            for (metric, label, a, b) in [
                (names::COMMITS, names::ALL, before.committed, now.committed),
                (names::ROLLBACKS, names::ALL, before.rolled_back, now.rolled_back),
                (names::WAL_BYTES, "", before.wal_bytes, now.wal_bytes),
            ] {
                match pgdyno_host::series::growth(a, b) {
                    Some(grown) => reading.push(Key::of(metric, label), grown / seconds),
                    None => reading.gap(metric, "the counter went backwards"),
                }
            }
        }
        self.volume(&mut reading);
        self.tell(Update::Reading(reading));
        Ok(())
    }

    fn volume(&self, reading: &mut Reading) {
        let Some(wal) = &self.wal else { return };
        match rustix::fs::statvfs(wal.as_str()) {
            #[expect(clippy::cast_precision_loss, reason = "bytes for people")]
            Ok(volume) => {
                let block = volume.f_frsize as f64;
                reading.push(Key::one(names::WAL_VOLUME), volume.f_blocks as f64 * block);
                reading.push(Key::one(names::WAL_VOLUME_FREE), volume.f_bavail as f64 * block);
            }
            Err(error) => reading.gap(wal, error),
        }
    }
}
