//! What a drive is made with, and how it is before its first step.

use super::{Drive, Limits, first_second_ns};
use crate::actor::Outline;
use crate::books::{Books, Times};
use crate::client::Client;
use crate::collect::ThreadSecond;
use crate::part::{Counts, Part};
use crate::reconnect::Reconnector;
use crate::schedule::Schedule;
use crate::turns::Turns;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// What a drive is made with.
pub(crate) struct Setup<'a> {
    pub(crate) outline: &'a Outline,
    pub(crate) limits: Limits,
    pub(crate) schedule: Option<Schedule>,
    /// Its server's turns, where servers take turns.
    pub(crate) turns: Option<Turns>,
    pub(crate) clients: Vec<Client<'a>>,
    pub(crate) reconnector: Reconnector,
    /// Whether each transaction has a connection of its own.
    pub(crate) connects: bool,
    pub(crate) stop: &'a AtomicBool,
    /// Set by a thread whose load cannot go on, for all of them.
    pub(crate) halt: &'a AtomicBool,
    /// The second with whose end the load has settled; 0: not yet.
    pub(crate) settled_s: &'a AtomicU32,
    /// When the load's clock began, the same for all threads.
    pub(crate) start: Instant,
    pub(crate) sender: &'a Sender<ThreadSecond>,
    pub(crate) thread: u32,
}

impl<'a> Drive<'a> {
    pub(crate) fn new(setup: Setup<'a>) -> Drive<'a> {
        let count = setup.clients.len();
        let number = u32::try_from(count).unwrap_or(u32::MAX);
        Drive {
            outline: setup.outline,
            limits: setup.limits,
            clients: setup.clients,
            // Each client is at most once in each of these, so that they never grow.
            free: Vec::with_capacity(count),
            waiting: BinaryHeap::with_capacity(count),
            to_connect: Vec::with_capacity(count),
            to_send: Vec::with_capacity(count),
            busy: 0,
            alive: number,
            ended: 0,
            reconnector: setup.reconnector,
            stop: setup.stop,
            halt: setup.halt,
            settled_s: setup.settled_s,
            sender: setup.sender,
            thread: setup.thread,
            start: setup.start,
            begun: false,
            woken_ns: 0,
            gone_ns: 0,
            first_ns: first_second_ns(setup.limits.warmup_ns),
            second: 1,
            second_books: Books::for_a_second(),
            cpu_at_warmup_us: None,
            cpu_us: None,
            part: Part {
                measured: Books::new(setup.schedule.is_some()),
                in_no_second: Books::for_a_second(),
                whole: Counts::default(),
                measured_s: 0.0,
                warmup_s: 0.0,
                first_errors: Vec::new(),
                in_flight_at_end: 0,
                began_late: Duration::ZERO,
                sessions: number,
                cpu_us: 0.0,
                busy_ns: 0,
                lost: None,
                stopped_early: false,
                engine: String::new(),
                kinds: match setup.outline.kinds.as_slice() {
                    [_] => Vec::new(),
                    kinds => vec![Books::new(setup.schedule.is_some()); kinds.len()],
                },
                statements: match setup.outline.times_statements() {
                    true => vec![Times::new(); setup.outline.statements.len()],
                    false => Vec::new(),
                },
                connections: setup.connects.then(Times::new),
                halted: None,
                notes: Vec::new(),
            },
            schedule: setup.schedule,
            turns: setup.turns,
        }
    }
}
