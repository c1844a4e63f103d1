//! The engine: per thread one event loop over non-blocking sockets, closed loop.

use crate::books::{Books, Second};
use crate::client::{Client, Lost, Outcome};
use crate::connection::{self, ConnectError};
use crate::data::{self, DataError};
use crate::gate::Gate;
use crate::message::Requests;
use crate::random::{Purpose, Stream};
use crate::workload::Workload;
use postgres::Config;
use rustix::event::{Timespec, epoll};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Most clients of one load; each needs a file descriptor.
const CLIENTS_MAX: u32 = 10_000;
/// Transactions under way at the end get this long to finish.
const DRAIN: Duration = Duration::from_secs(10);
/// A stop request is seen within this time.
const STOP_CHECK: Duration = Duration::from_millis(100);
const EVENTS_PER_WAIT: usize = 256;
/// A reply of a workload here is far below this; longer ones are read in pieces.
const READ_BUFFER_BYTES: usize = 16 * 1024;

/// What to drive and for how long.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadPlan {
    /// The transactions.
    pub workload: Workload,
    /// Simulated sessions, each with a connection of its own.
    pub clients: u32,
    /// Threads of the load; at most as many as clients.
    pub threads: u32,
    /// Full load before anything is measured.
    pub warmup: Duration,
    /// The measured time.
    pub measure: Duration,
    /// Seed of all random streams.
    pub seed: u64,
}

/// Why no load could be driven.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The numbers of the plan cannot be.
    #[error("{0}")]
    Plan(String),
    /// A client could not be connected.
    #[error("client {client} of {clients} could not connect: {source}")]
    Connect {
        /// 1-based.
        client: u32,
        /// All of them.
        clients: u32,
        /// Why.
        source: ConnectError,
    },
    /// The data of the workload is not there.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The system refused an event queue or a thread.
    #[error("the system refused {what}: {source}")]
    System {
        /// "an event queue" or "a thread".
        what: &'static str,
        /// Its words.
        source: std::io::Error,
    },
}

/// What a load did.
#[derive(Debug, Clone)]
pub struct LoadResult {
    /// The measured time only.
    pub measured: Books,
    /// From the first transaction to the last, warm-up and end included: what the server must have counted too.
    pub whole: Books,
    /// Length of the measured time.
    pub measured_s: f64,
    /// Transactions whose end was not seen: the server may or may not have committed them.
    pub in_flight_at_end: u64,
    /// Sessions that were opened on the server.
    pub sessions: u32,
    /// CPU time of the load's threads in the measured time.
    pub client_cpu_us: f64,
    /// Second by second, warm-up included.
    pub seconds: Vec<Second>,
    /// The first reason why a connection was lost, and how many were.
    pub lost: Option<(String, u32)>,
    /// Whether it was stopped before its time.
    pub stopped_early: bool,
    /// How waiting was done.
    pub engine: &'static str,
}

impl LoadResult {
    /// Committed transactions per second of the measured time.
    #[expect(clippy::cast_precision_loss, reason = "a count of transactions")]
    pub fn tps(&self) -> f64 {
        if self.measured_s > 0.0 {
            self.measured.committed as f64 / self.measured_s
        } else {
            0.0
        }
    }

    /// Client CPU per committed transaction; `None` without one.
    #[expect(clippy::cast_precision_loss, reason = "a count of transactions")]
    pub fn client_cpu_us_per_tx(&self) -> Option<f64> {
        (self.measured.committed > 0).then(|| self.client_cpu_us / self.measured.committed as f64)
    }
}

impl LoadPlan {
    fn check(&self) -> Result<(), LoadError> {
        let wrong = |text: String| Err(LoadError::Plan(text));
        if self.clients == 0 || self.clients > CLIENTS_MAX {
            return wrong(format!(
                "clients must be 1 to {CLIENTS_MAX}, not {}",
                self.clients
            ));
        }
        if self.threads == 0 || self.threads > self.clients {
            return wrong(format!(
                "threads must be 1 to the number of clients ({}), not {}",
                self.clients, self.threads
            ));
        }
        if self.measure < Duration::from_secs(1) {
            return wrong("the measured time must be at least one second".into());
        }
        Ok(())
    }
}

/// Connects all clients, drives the load and returns its books. `stop` ends it early with what there is;
/// `on_second` is called about once a second with what all threads did in it.
pub fn run(
    config: &Config,
    plan: &LoadPlan,
    stop: &AtomicBool,
    on_second: &mut dyn FnMut(&Second),
) -> Result<LoadResult, LoadError> {
    plan.check()?;
    let scale = data::scale_of(config)?;
    let (sender, receiver) = channel();
    let gate = Gate::default();
    thread::scope(|scope| {
        let mut handles = Vec::new();
        for number in 0..plan.threads {
            let worker = Worker {
                config,
                plan,
                scale,
                number,
                stop,
                gate: &gate,
            };
            let sender = sender.clone();
            let handle = thread::Builder::new()
                .name(format!("load-{number}"))
                .spawn_scoped(scope, move || worker.run(&sender));
            match handle {
                Ok(handle) => handles.push(handle),
                Err(source) => {
                    gate.decide(false);
                    return Err(LoadError::System {
                        what: "a thread",
                        source,
                    });
                }
            }
        }
        drop(sender);
        gate.open_when_ready(plan.threads);
        let seconds = collect(&receiver, plan, on_second);
        let mut result = LoadResult {
            measured: Books::new(),
            whole: Books::new(),
            measured_s: 0.0,
            in_flight_at_end: 0,
            sessions: 0,
            client_cpu_us: 0.0,
            seconds,
            lost: None,
            stopped_early: false,
            engine: "epoll",
        };
        let mut first_error = None;
        for handle in handles {
            match handle.join() {
                Ok(Ok(part)) => result.add(part),
                Ok(Err(Some(error))) => {
                    first_error.get_or_insert(error);
                }
                Ok(Err(None)) => {}
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        first_error.map_or(Ok(result), Err)
    })
}

impl LoadResult {
    fn add(&mut self, part: Part) {
        self.measured.add(&part.measured);
        self.whole.add(&part.whole);
        self.measured_s = self.measured_s.max(part.measured_s);
        self.in_flight_at_end += part.in_flight_at_end;
        self.sessions += part.sessions;
        self.client_cpu_us += part.cpu_us;
        self.stopped_early |= part.stopped_early;
        if let Some((reason, count)) = part.lost {
            let lost = self.lost.get_or_insert((reason, 0));
            lost.1 += count;
        }
    }
}

/// What a thread tells while it runs: a second, or that no more will come.
type Told = (u32, Option<Second>);

/// Puts the threads' seconds together; a second is told once every thread has delivered it or has ended before it.
fn collect(receiver: &Receiver<Told>, plan: &LoadPlan, on_second: &mut dyn FnMut(&Second)) -> Vec<Second> {
    let mut told = Vec::new();
    let mut open: BTreeMap<u32, Second> = BTreeMap::new();
    let mut delivered = vec![0_u32; plan.threads as usize];
    let mut ended = vec![false; plan.threads as usize];
    for (thread, second) in receiver {
        let thread = thread as usize;
        match second {
            None => ended[thread] = true,
            Some(second) => {
                delivered[thread] = second.number;
                match open.get_mut(&second.number) {
                    Some(sum) => {
                        sum.books.add(&second.books);
                        sum.clients += second.clients;
                        sum.length_s = sum.length_s.max(second.length_s);
                    }
                    None => {
                        open.insert(second.number, second);
                    }
                }
            }
        }
        while let Some(entry) = open.first_entry() {
            let number = *entry.key();
            if !delivered
                .iter()
                .zip(&ended)
                .all(|(&last, &ended)| ended || last >= number)
            {
                break;
            }
            let second = entry.remove();
            on_second(&second);
            told.push(second);
        }
    }
    told
}

/// One thread's share of the result.
struct Part {
    measured: Books,
    whole: Books,
    measured_s: f64,
    in_flight_at_end: u64,
    sessions: u32,
    cpu_us: f64,
    lost: Option<(String, u32)>,
    stopped_early: bool,
}

struct Worker<'a> {
    config: &'a Config,
    plan: &'a LoadPlan,
    scale: u32,
    number: u32,
    stop: &'a AtomicBool,
    gate: &'a Gate,
}

impl Worker<'_> {
    /// `Err(None)`: another thread failed and tells why.
    fn run(&self, sender: &Sender<Told>) -> Result<Part, Option<LoadError>> {
        let connected = self.connect();
        let begin = self.gate.arrive(connected.is_ok());
        let (queue, clients) = connected.map_err(Some)?;
        if !begin {
            return Err(None);
        }
        Ok(Loop::new(self, queue, clients, sender).run())
    }

    fn connect(&self) -> Result<(OwnedFd, Vec<Option<Client>>), LoadError> {
        let system = |source: rustix::io::Errno| LoadError::System {
            what: "an event queue",
            source: source.into(),
        };
        let queue = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(system)?;
        let statements = self.plan.workload.statements();
        let requests = Requests::new(&statements);
        let mut clients = Vec::new();
        for number in (self.number..self.plan.clients).step_by(self.plan.threads as usize) {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let socket =
                connection::connect(self.config, &statements).map_err(|source| LoadError::Connect {
                    client: number + 1,
                    clients: self.plan.clients,
                    source,
                })?;
            let stream = Stream::new(self.plan.seed, u64::from(number), Purpose::Transactions);
            let client = Client::new(socket, requests.clone(), stream, self.scale);
            let key = epoll::EventData::new_u64(clients.len() as u64);
            epoll::add(&queue, &client.socket, key, epoll::EventFlags::IN).map_err(system)?;
            clients.push(Some(client));
        }
        Ok((queue, clients))
    }
}

/// The event loop of one thread.
struct Loop<'a> {
    sender: &'a Sender<Told>,
    stop: &'a AtomicBool,
    thread: u32,
    queue: OwnedFd,
    clients: Vec<Option<Client>>,
    alive: u32,
    start: Instant,
    warmup_ns: u64,
    end_ns: u64,
    /// The second at hand, 1-based, and its books.
    second: u32,
    second_books: Books,
    part: Part,
    cpu_at_warmup_us: Option<f64>,
    buffer: Vec<u8>,
}

const SECOND_NS: u64 = 1_000_000_000;

impl<'a> Loop<'a> {
    fn new(
        worker: &Worker<'a>,
        queue: OwnedFd,
        clients: Vec<Option<Client>>,
        sender: &'a Sender<Told>,
    ) -> Loop<'a> {
        let warmup_ns = nanoseconds(worker.plan.warmup);
        let sessions = u32::try_from(clients.len()).unwrap_or(u32::MAX);
        Loop {
            sender,
            stop: worker.stop,
            thread: worker.number,
            queue,
            alive: sessions,
            clients,
            start: Instant::now(),
            warmup_ns,
            end_ns: warmup_ns + nanoseconds(worker.plan.measure),
            second: 1,
            second_books: Books::for_a_second(),
            part: Part {
                measured: Books::new(),
                whole: Books::new(),
                measured_s: 0.0,
                in_flight_at_end: 0,
                sessions,
                cpu_us: 0.0,
                lost: None,
                stopped_early: false,
            },
            cpu_at_warmup_us: None,
            buffer: vec![0; READ_BUFFER_BYTES],
        }
    }

    fn now_ns(&self) -> u64 {
        nanoseconds(self.start.elapsed())
    }

    fn run(mut self) -> Part {
        for index in 0..self.clients.len() {
            let now = self.now_ns();
            self.with(index, |client| client.begin(now).map(|()| None));
        }
        let mut end_ns = self.end_ns;
        loop {
            let now = self.now_ns();
            self.turn_seconds(now.min(self.end_ns));
            if self.cpu_at_warmup_us.is_none() && now >= self.warmup_ns {
                self.cpu_at_warmup_us = Some(thread_cpu_us());
            }
            if self.stop.load(Ordering::Relaxed) && now < end_ns {
                self.part.stopped_early = true;
                end_ns = now;
                self.end_ns = now;
            }
            if now >= end_ns || self.alive == 0 {
                break;
            }
            let boundary = (u64::from(self.second) * SECOND_NS).min(end_ns);
            self.wait(boundary.saturating_sub(now));
        }
        self.finish()
    }

    /// Waits for replies at most this long and deals with them.
    fn wait(&mut self, limit_ns: u64) {
        let limit_ns = limit_ns.min(nanoseconds(STOP_CHECK));
        let timeout = Timespec {
            tv_sec: i64::try_from(limit_ns / SECOND_NS).unwrap_or(0),
            tv_nsec: i64::try_from(limit_ns % SECOND_NS).unwrap_or(0),
        };
        let empty = epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        };
        let mut events = [empty; EVENTS_PER_WAIT];
        let Ok(count) = epoll::wait(&self.queue, &mut events[..], Some(&timeout)) else {
            return;
        };
        for event in &events[..count] {
            // The kernel's structure is packed: its fields are copied out, not borrowed.
            let (flags, data) = (event.flags, event.data);
            let index = usize::try_from(data.u64()).unwrap_or(usize::MAX);
            let mut buffer = std::mem::take(&mut self.buffer);
            if flags.contains(epoll::EventFlags::OUT) {
                self.with(index, |client| client.send().map(|()| None));
            }
            self.with(index, |client| client.receive(&mut buffer));
            self.buffer = buffer;
        }
    }

    /// Lets one client do something and books what came of it.
    fn with(&mut self, index: usize, act: impl FnOnce(&mut Client) -> Result<Option<Outcome>, Lost>) {
        let Some(client) = self.clients.get_mut(index).and_then(Option::as_mut) else {
            return;
        };
        let was_blocked = client.is_blocked();
        let mut done = act(client);
        if let Ok(Some(outcome)) = done {
            let now = nanoseconds(self.start.elapsed());
            let begun = client.begun_ns;
            if now < self.end_ns {
                done = client.begin(now).map(|()| None);
            }
            self.book(now, begun, outcome);
        }
        let Some(client) = self.clients.get_mut(index).and_then(Option::as_mut) else {
            return;
        };
        match done {
            Ok(_) if client.is_blocked() != was_blocked => {
                let mut flags = epoll::EventFlags::IN;
                flags.set(epoll::EventFlags::OUT, client.is_blocked());
                let key = epoll::EventData::new_u64(index as u64);
                let _ = epoll::modify(&self.queue, &client.socket, key, flags);
            }
            Ok(_) => {}
            Err(lost) => self.lose(index, lost),
        }
    }

    fn book(&mut self, done_ns: u64, begun_ns: u64, outcome: Outcome) {
        self.turn_seconds(done_ns.min(self.end_ns));
        let measured = done_ns >= self.warmup_ns && done_ns < self.end_ns;
        let all = [
            Some(&mut self.part.whole),
            Some(&mut self.second_books).filter(|_| done_ns < self.end_ns),
        ]
        .into_iter()
        .chain([Some(&mut self.part.measured).filter(|_| measured)]);
        for books in all.flatten() {
            match outcome {
                Outcome::Committed => books.commit(done_ns - begun_ns),
                Outcome::Failed(code) => books.fail(code),
            }
        }
    }

    fn lose(&mut self, index: usize, lost: Lost) {
        let Some(client) = self.clients[index].take() else {
            return;
        };
        self.alive -= 1;
        let entry = self.part.lost.get_or_insert((lost.reason, 0));
        entry.1 += 1;
        if !client.is_idle() {
            // The server may have committed it all the same.
            self.part.in_flight_at_end += 1;
            let now = self.now_ns();
            self.book(now, client.begun_ns.min(now), Outcome::Failed(lost.code));
        }
    }

    /// Delivers every second that has ended.
    fn turn_seconds(&mut self, now_ns: u64) {
        while u64::from(self.second) * SECOND_NS <= now_ns {
            self.deliver(1.0);
        }
    }

    fn deliver(&mut self, length_s: f64) {
        let begins_ns = u64::from(self.second - 1) * SECOND_NS;
        let second = Second {
            number: self.second,
            length_s,
            measured: begins_ns >= self.warmup_ns,
            books: self.second_books.clone(),
            clients: self.alive,
        };
        let _ = self.sender.send((self.thread, Some(second)));
        self.second_books.clear();
        self.second += 1;
    }

    fn finish(mut self) -> Part {
        let end = self.now_ns().min(self.end_ns);
        self.turn_seconds(end);
        let rest_ns = end.saturating_sub(u64::from(self.second - 1) * SECOND_NS);
        // A sliver of a second has a rate of chance only.
        if rest_ns > SECOND_NS / 10 {
            #[expect(clippy::cast_precision_loss, reason = "less than a second")]
            self.deliver(rest_ns as f64 / 1e9);
        }
        let _ = self.sender.send((self.thread, None));
        if let Some(before) = self.cpu_at_warmup_us {
            self.part.cpu_us = thread_cpu_us() - before;
        }
        #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a load")]
        let measured_ns = end.saturating_sub(self.warmup_ns) as f64;
        self.part.measured_s = measured_ns / 1e9;
        // From here on nothing new is begun, for now is past the end.
        self.end_ns = end;
        let deadline = Instant::now() + DRAIN;
        while self.busy() > 0 && Instant::now() < deadline {
            self.wait(nanoseconds(STOP_CHECK));
        }
        self.part.in_flight_at_end += self.busy();
        for client in self.clients.drain(..).flatten() {
            client.close();
        }
        debug_assert!(self.part.whole.add_up() && self.part.measured.add_up());
        self.part
    }

    fn busy(&self) -> u64 {
        self.clients
            .iter()
            .flatten()
            .filter(|client| !client.is_idle())
            .count() as u64
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "CPU time of a thread")]
fn thread_cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}
