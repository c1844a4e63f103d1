//! A load from its start to its end: connects all clients, runs the threads, puts their books
//! together.

use crate::actor::Transactions;
use crate::blocking;
use crate::books::{Books, Second, Times};
use crate::client::Client;
use crate::collect::{Settling, ThreadSecond, collect};
use crate::connection::{self, ConnectError, Socket, Sockets};
use crate::drive::{Drive, Limits, Setup, nanoseconds};
use crate::endpoint::Endpoint;
use crate::epoll::Epoll;
use crate::gate::Gate;
use crate::part::{Counts, Part};
use crate::plan::{Arrivals, Engine, Plan, Warmup};
use crate::random::{Purpose, Stream};
use crate::reconnect::Reconnector;
use crate::result::{LoadResult, ServerShare, TurnShare};
use crate::schedule::Schedule;
use crate::turns::Turns;
use crate::uring::Uring;
use rustix::net::{SendFlags, send};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Why the engine could not drive a load.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The numbers of the plan cannot be.
    #[error("{0}")]
    Plan(String),
    /// A transaction could not go on: where, and why.
    #[error("{reason}")]
    Halted {
        /// Number of its server among the endpoints, from 0.
        server: u32,
        /// Place in the script, and what went wrong.
        reason: String,
    },
    /// A client could not be connected.
    #[error("client {client} of {clients} could not connect: {source}")]
    Connect {
        /// Number of its server among the endpoints, from 0.
        server: u32,
        /// Number of the client, from 1.
        client: u32,
        /// Number of clients of the load.
        clients: u32,
        /// The error of its connection.
        source: ConnectError,
    },
    /// The system refused an event queue or a thread.
    #[error("the system refused {what}: {source}")]
    System {
        /// "an event queue", "io_uring" or "a thread".
        what: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
    /// The limit of open files is too low, and cannot be raised.
    #[error(
        "{clients} clients need {needed} open files, and this process may have {limit}; raise its hard limit (ulimit -Hn)"
    )]
    Files {
        /// Number of clients of the load.
        clients: u32,
        /// Open files that they need, those of this process included.
        needed: u64,
        /// Hard limit of open files of this process.
        limit: u64,
    },
}

impl EngineError {
    /// Number of the server among the endpoints, from 0, where it is of one of them.
    pub fn server(&self) -> Option<usize> {
        match self {
            EngineError::Halted { server, .. } | EngineError::Connect { server, .. } => {
                usize::try_from(*server).ok()
            }
            _ => None,
        }
    }

    /// What mends it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            EngineError::Connect { source, .. } => source.hint(),
            _ => None,
        }
    }
}

/// Connects all clients, drives the load of these transactions and returns its books. Each endpoint
/// gets the whole plan, with threads, clients and arrivals of its own, all at the same time. `stop`
/// ends it early with what there is; `on_second` is called about once a second with what all
/// threads did in it.
///
/// # Errors
///
/// The plan cannot be, a client cannot be connected, a transaction cannot go on, or the system
/// refuses.
pub fn run(
    endpoints: &[Endpoint],
    plan: &Plan,
    transactions: &dyn Transactions,
    stop: &AtomicBool,
    on_second: &mut dyn FnMut(&Second),
) -> Result<LoadResult, EngineError> {
    let whole = Segment {
        first: 0,
        threads: plan.threads,
        step: 1,
    };
    let begin = &mut || Some(Instant::now());
    run_segment(endpoints, (plan, whole), transactions, stop, begin, on_second)
}

/// Some of the threads of a load, with the clients and arrivals that are theirs: the rest is driven
/// elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// The first of them, of those of one server, from 0.
    pub first: u32,
    /// How many they are.
    pub threads: u32,
    /// From the number of each to that of the next.
    pub step: u32,
}

impl Segment {
    /// Divides the threads of a plan among so many, as evenly as it goes; who would have none gets
    /// none.
    pub fn divide(plan: &Plan, among: u32) -> Vec<Segment> {
        let (each, more) = (plan.threads / among, plan.threads % among);
        let mut first = 0;
        let segments = (0..among).map(|number| {
            let threads = each + u32::from(number < more);
            let segment = Segment {
                first,
                threads,
                step: 1,
            };
            first += threads;
            segment
        });
        segments.filter(|segment| segment.threads > 0).collect()
    }

    /// The clients and arrivals of a segment of one thread, driven by so many, or one for each
    /// client: the plan, which has more threads then, and those of them. Other segments of one
    /// thread may be driven by any other number.
    pub fn spread(self, plan: &Plan, threads: u32) -> (Plan, Segment) {
        let clients = plan.clients.checked_div(plan.threads).unwrap_or(1);
        let threads = threads.clamp(1, clients.max(1));
        let segment = Segment {
            first: self.first,
            threads,
            step: plan.threads,
        };
        let plan = Plan {
            threads: plan.threads.saturating_mul(threads),
            ..plan.clone()
        };
        (plan, segment)
    }

    fn numbers(self) -> impl Iterator<Item = u32> {
        (0..self.threads).map(move |number| self.first + number * self.step)
    }

    /// Whether the plan has such threads.
    fn is_of(self, plan: &Plan) -> bool {
        let others = self.threads.saturating_sub(1).saturating_mul(self.step);
        let last = self.first.saturating_add(others);
        self.threads > 0 && self.step > 0 && last < plan.threads
    }

    /// Clients of the plan that are its own: one in so many as the plan has threads, for each of
    /// its threads.
    pub fn clients(self, plan: &Plan) -> u32 {
        let of = |thread: u32| (thread..plan.clients).step_by(plan.threads as usize).count();
        let all: usize = self.numbers().map(of).sum();
        u32::try_from(all).unwrap_or(u32::MAX)
    }
}

/// Drives a segment of a load as [`run`] drives all of it: its clients have the numbers, keys and
/// arrivals that they have in the whole. `begin` is called when its clients are connected, and
/// gives the instant at which the load begins, or none where it does not.
///
/// # Errors
///
/// As [`run`].
pub fn run_segment(
    endpoints: &[Endpoint],
    (plan, segment): (&Plan, Segment),
    transactions: &dyn Transactions,
    stop: &AtomicBool,
    begin: &mut dyn FnMut() -> Option<Instant>,
    on_second: &mut dyn FnMut(&Second),
) -> Result<LoadResult, EngineError> {
    plan.check().map_err(EngineError::Plan)?;
    if !segment.is_of(plan) {
        return Err(EngineError::Plan(
            "a segment of a load that has no such threads".into(),
        ));
    }
    let outline = transactions.outline();
    let servers = u32::try_from(endpoints.len()).unwrap_or(u32::MAX);
    let threads = segment.threads * servers;
    raise_file_limit(segment.clients(plan) * servers, threads)?;
    let halt = AtomicBool::new(false);
    let settled_s = AtomicU32::new(0);
    let (sender, receiver) = channel();
    let gate = Gate::default();
    thread::scope(|scope| {
        let mut handles = Vec::new();
        for number in 0..threads {
            let server = number % servers;
            let worker = Worker {
                endpoint: &endpoints[server as usize],
                plan,
                transactions,
                server,
                servers,
                number: segment.first + number / servers * segment.step,
                of_all: number,
                stop,
                halt: &halt,
                settled_s: &settled_s,
                gate: &gate,
            };
            let sender = sender.clone();
            let handle = thread::Builder::new()
                .name(format!("load-{number}"))
                .spawn_scoped(scope, move || worker.run(&sender));
            match handle {
                Ok(handle) => handles.push((server as usize, handle)),
                Err(source) => {
                    gate.decide(None);
                    return Err(EngineError::System {
                        what: "a thread",
                        source,
                    });
                }
            }
        }
        drop(sender);
        gate.open_when_ready(threads, begin);
        let settling = match plan.warmup {
            Warmup::For(_) => None,
            Warmup::Settled(most) => Some(Settling {
                settled_s: &settled_s,
                most_s: u32::try_from(most.as_secs()).unwrap_or(u32::MAX),
                begun: Instant::now(),
            }),
        };
        let seconds = collect(&receiver, threads, settling, on_second);
        let open = matches!(plan.arrivals, Arrivals::Open { .. });
        let mut result = LoadResult {
            measured: Books::new(open),
            in_no_second: Books::for_a_second(),
            whole: Counts::default(),
            kinds: match outline.kinds.as_slice() {
                [_] => Vec::new(),
                kinds => kinds
                    .iter()
                    .map(|kind| (kind.clone(), Books::new(open)))
                    .collect(),
            },
            statements: match outline.times_statements() {
                true => outline
                    .statements
                    .iter()
                    .map(|name| (name.clone(), Times::new()))
                    .collect(),
                false => Vec::new(),
            },
            connections: plan.connect.then(Times::new),
            notes: Vec::new(),
            notes_skipped: 0,
            commits_per_session: 1 + u64::from(outline.prepare.is_some()),
            commits_per_transaction_max: outline.commits_max,
            commits_within: outline.commits_within().map(str::to_owned),
            measured_s: 0.0,
            warmup_s: 0.0,
            in_flight_at_end: 0,
            began_late_ns: 0,
            sessions: 0,
            servers: vec![ServerShare::default(); endpoints.len()],
            turns: match plan.turns {
                Some(_) => vec![
                    TurnShare {
                        measured: Books::new(open),
                        busy_s: 0.0,
                        first_errors: Vec::new(),
                        lost: None,
                    };
                    endpoints.len()
                ],
                None => Vec::new(),
            },
            client_cpu_us: 0.0,
            seconds,
            lost: None,
            first_errors: Vec::new(),
            stopped_early: false,
            engine: String::new(),
        };
        let mut first_error = None;
        for (server, handle) in handles {
            match handle.join() {
                Ok(Ok(mut part)) => {
                    if let Some(reason) = part.halted.take() {
                        let server = u32::try_from(server).unwrap_or(u32::MAX);
                        first_error.get_or_insert(EngineError::Halted { server, reason });
                    }
                    result.add(server, part);
                }
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

/// Beside the clients: standard streams, the store, queues, the connections that ask the server.
const OTHER_FILES: u64 = 100;
/// A queue and a timer.
const FILES_PER_THREAD: u64 = 2;

fn raise_file_limit(clients: u32, threads: u32) -> Result<(), EngineError> {
    let needed = u64::from(clients) + u64::from(threads) * FILES_PER_THREAD + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let wanted = Rlimit {
        current: Some(needed),
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, wanted).map_err(|_| EngineError::Files {
        clients,
        needed,
        limit: limit.maximum.unwrap_or(u64::MAX),
    })
}

/// Below this, epoll is the lighter one over Unix sockets: a turn has too few replies for io_uring
/// to save calls.
const MANY_CLIENTS: u32 = 4;

/// What costs the least CPU per transaction, as measured: see docs/explanation/benchmarks.md.
fn lightest(drive: &Drive<'_>, sockets: &[Socket]) -> Engine {
    let local = matches!(sockets.first(), Some(Socket::Unix(_)));
    match drive.clients() {
        1 if !local && drive.may_block() => Engine::Blocking,
        clients if local && clients < MANY_CLIENTS && drive.waits_for_replies_alone() => Engine::Epoll,
        _ => Engine::IoUring,
    }
}

struct Worker<'a> {
    endpoint: &'a Endpoint,
    plan: &'a Plan,
    transactions: &'a dyn Transactions,
    /// Number of its server, and how many there are.
    server: u32,
    servers: u32,
    /// Its number among the threads of its server.
    number: u32,
    /// Its number among the threads of all servers.
    of_all: u32,
    stop: &'a AtomicBool,
    halt: &'a AtomicBool,
    settled_s: &'a AtomicU32,
    gate: &'a Gate,
}

impl<'a> Worker<'a> {
    fn prepare(&self) -> Option<&'a [u8]> {
        self.transactions.outline().prepare.as_deref()
    }

    /// `Err(None)`: another thread failed and reports why.
    fn run(&self, sender: &Sender<ThreadSecond>) -> Result<Part, Option<EngineError>> {
        self.bind_to_cpu();
        let connected = self.connect();
        let begin = self.gate.arrive(connected.is_ok());
        let (sockets, clients) = connected.map_err(Some)?;
        let Some(start) = begin else {
            return Err(None);
        };
        while let Some(early) = start
            .checked_duration_since(Instant::now())
            .filter(|early| !early.is_zero())
        {
            thread::park_timeout(early);
        }
        let began_late = start.elapsed();
        let mut drive = Drive::new(Setup {
            outline: self.transactions.outline(),
            limits: self.limits(),
            schedule: self.schedule(),
            turns: self.turns(),
            clients,
            reconnector: Reconnector::new(self.endpoint.clone(), self.prepare()),
            connects: self.plan.connect,
            stop: self.stop,
            halt: self.halt,
            settled_s: self.settled_s,
            start,
            sender,
            thread: self.of_all,
        });
        let (sockets, engine) = self.drive(&mut drive, sockets).map_err(|source| {
            // The others need not go on, and nobody is to wait for more of this one.
            self.halt.store(true, Ordering::Relaxed);
            let _ = sender.send((self.of_all, None));
            Some(EngineError::System {
                what: match self.plan.engine {
                    Engine::IoUring => "io_uring",
                    _ => "an event queue",
                },
                source,
            })
        })?;
        for (client, socket) in sockets {
            let message = drive.good_bye(client);
            let _ = send(&socket, message, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        }
        Ok(Part {
            began_late,
            ..drive.finish(engine)
        })
    }

    /// A CPU that cannot be had is no reason to do without the load: the kernel then chooses.
    fn bind_to_cpu(&self) {
        if let Some(&cpu) = self
            .plan
            .cpus
            .get(self.of_all as usize % self.plan.cpus.len().max(1))
        {
            let mut set = CpuSet::new();
            set.set(cpu);
            let _ = sched_setaffinity(None, &set);
        }
    }

    fn drive(&self, drive: &mut Drive<'_>, mut sockets: Vec<Socket>) -> io::Result<(Sockets, String)> {
        let wanted = match self.plan.engine {
            Engine::Auto => lightest(drive, &sockets),
            wanted => wanted,
        };
        let named = |engine: Engine| engine.name().to_owned();
        match wanted {
            _ if self.plan.connect => {
                let left = blocking::run_connecting(drive, self.endpoint, self.prepare())?;
                Ok((
                    left.map(|socket| (0, socket)).into_iter().collect(),
                    named(Engine::Blocking),
                ))
            }
            Engine::Blocking => match sockets.pop() {
                Some(socket) => {
                    let left = blocking::run(drive, socket)?;
                    Ok((
                        left.map(|socket| (0, socket)).into_iter().collect(),
                        named(wanted),
                    ))
                }
                // Stopped before there was a connection.
                None => {
                    drive.step();
                    Ok((Vec::new(), named(wanted)))
                }
            },
            Engine::Epoll => Ok((Epoll::new(sockets)?.run(drive), named(wanted))),
            Engine::IoUring | Engine::Auto => match Uring::new(drive.clients()) {
                Ok(ring) => Ok((ring.run(sockets, drive)?, named(wanted))),
                Err(error) if self.plan.engine == Engine::Auto => Ok((
                    Epoll::new(sockets)?.run(drive),
                    format!("epoll (io-uring: {error})"),
                )),
                Err(error) => Err(error),
            },
        }
    }

    fn limits(&self) -> Limits {
        let measure_ns = nanoseconds(self.plan.measure);
        let warmup_ns = match self.plan.warmup {
            Warmup::For(time) => nanoseconds(time),
            Warmup::Settled(_) => u64::MAX,
        };
        let (think, batch) = match self.plan.arrivals {
            Arrivals::Closed { think } => (think, Duration::ZERO),
            Arrivals::Open { batch, .. } => (Duration::ZERO, batch),
        };
        Limits {
            warmup_ns,
            measure_ns,
            end_ns: warmup_ns.saturating_add(measure_ns),
            think_ns: nanoseconds(think),
            batch_ns: nanoseconds(batch),
            latency_limit_ns: self.plan.latency_limit.map_or(u64::MAX, nanoseconds),
            by_count: self.plan.transactions.is_some(),
            max_tries: self.plan.max_tries,
        }
    }

    fn turns(&self) -> Option<Turns> {
        let slice_ns = nanoseconds(self.plan.turns?);
        Some(Turns::new(slice_ns, (self.server, self.servers), self.plan.seed))
    }

    fn schedule(&self) -> Option<Schedule> {
        match &self.plan.arrivals {
            Arrivals::Closed { .. } => None,
            Arrivals::Open { rate, spacing, .. } => Some(Schedule::new(
                rate,
                *spacing,
                self.plan.seed.wrapping_add(self.server.into()),
                self.number,
                self.plan.threads,
            )),
        }
    }

    fn connect(&self) -> Result<(Vec<Socket>, Vec<Client<'a>>), EngineError> {
        let (mut sockets, mut clients) = (Vec::new(), Vec::new());
        for number in (self.number..self.plan.clients).step_by(self.plan.threads as usize) {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let connection = match connection::connect(self.endpoint, self.prepare()) {
                Ok(connection) => connection,
                // What is waited for ends then, too.
                Err(_) if self.stop.load(Ordering::Relaxed) => break,
                Err(source) => {
                    return Err(EngineError::Connect {
                        server: self.server,
                        client: number + 1,
                        clients: self.plan.clients,
                        source,
                    });
                }
            };
            let of_all = u64::from(self.server) * u64::from(self.plan.clients) + u64::from(number);
            let stream = Stream::new(self.plan.seed, of_all, Purpose::Transactions);
            let count = self.plan.transactions;
            let mut client = Client::new(self.transactions, stream, number, count, connection.tls);
            if self.plan.connect {
                // That there is a way to the server is known now.
                let _ = send(&connection.socket, client.end(), SendFlags::NOSIGNAL);
                client.connect_each();
            } else {
                sockets.push(connection.socket);
            }
            clients.push(client);
        }
        Ok((sockets, clients))
    }
}
