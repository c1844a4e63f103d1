//! How a load is driven, and for how long.

use crate::names;
use crate::schedule::{Rate, Spacing};
use crate::turns::Turns;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Most clients of one load; each needs a file descriptor.
pub const CLIENTS_MAX: u32 = 10_000;

/// Longest time between two batches of arrivals: what is begun less often is not a rate any more.
pub const BATCH_MAX: Duration = Duration::from_millis(100);

/// The instants at which transactions begin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Arrivals {
    /// Closed loop: each client's next transaction follows its last one, after a pause.
    Closed {
        /// Pause between two transactions of a client; zero for none.
        think: Duration,
    },
    /// Open loop: they are due at a rate, whatever the server does.
    Open {
        /// Arrivals per second over time.
        rate: Rate,
        /// How arrivals are spread over time.
        spacing: Spacing,
        /// Those that are due are begun together, at most once in this time; zero: each when it is
        /// due, or with others that are due within half a millisecond. It saves wakings of the
        /// client, and adds half of it to the mean schedule lag.
        batch: Duration,
    },
}

/// The calls by which requests are sent and replies received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// The lightest that this kernel offers.
    Auto,
    /// io_uring; an error where it is not to be had.
    IoUring,
    /// The event queue epoll.
    Epoll,
    /// Blocking calls: one client per thread, and nothing to wait for but replies.
    Blocking,
}

impl Engine {
    const ALL: [Engine; 4] = [Engine::Auto, Engine::IoUring, Engine::Epoll, Engine::Blocking];

    /// Name on the command line and in files: "io-uring".
    pub fn name(self) -> &'static str {
        match self {
            Engine::Auto => "auto",
            Engine::IoUring => "io-uring",
            Engine::Epoll => "epoll",
            Engine::Blocking => "blocking",
        }
    }
}

names!(Engine, "engine");

/// Full load before anything is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Warmup {
    /// For that time.
    For(Duration),
    /// Until the throughput has settled ([`pgdyno_stats::has_settled`]), at most so long.
    Settled(Duration),
}

/// How a load is driven, and for how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// When transactions begin: closed or open loop.
    pub arrivals: Arrivals,
    /// Simulated sessions, each with a connection of its own.
    pub clients: u32,
    /// Threads of the load; at most as many as clients.
    pub threads: u32,
    /// The CPUs that threads are bound to, in turn; empty: wherever the kernel puts them.
    pub cpus: Vec<usize>,
    /// Full load before anything is measured.
    pub warmup: Warmup,
    /// Time after the warm-up that figures are of.
    pub measure: Duration,
    /// Each client ends after so many, even if there is time left.
    pub transactions: Option<u64>,
    /// Whether every transaction has a connection of its own, whose making is part of its time;
    /// each client then has a thread of its own.
    pub connect: bool,
    /// How often a transaction is tried that fails with 40001 (serialization) or 40P01 (deadlock),
    /// the first time included.
    pub max_tries: u32,
    /// Response time above which a transaction is late; `None` without a limit.
    pub latency_limit: Option<Duration>,
    /// Servers take turns of this length, in which their clients begin transactions; `None`: all at
    /// the same time.
    pub turns: Option<Duration>,
    /// The calls by which requests are sent and replies received.
    pub engine: Engine,
    /// Seed of all random streams.
    pub seed: u64,
}

impl Plan {
    /// A closed loop for ten seconds, with nothing before it and no limit.
    pub fn closed(clients: u32, threads: u32) -> Plan {
        Plan {
            arrivals: Arrivals::Closed {
                think: Duration::ZERO,
            },
            clients,
            threads,
            cpus: Vec::new(),
            warmup: Warmup::For(Duration::ZERO),
            measure: Duration::from_secs(10),
            transactions: None,
            connect: false,
            max_tries: 1,
            latency_limit: None,
            turns: None,
            engine: Engine::Auto,
            seed: 1,
        }
    }

    /// Whether its numbers can be.
    ///
    /// # Errors
    ///
    /// What cannot be, as text.
    pub fn check(&self) -> Result<(), String> {
        if self.clients == 0 || self.clients > CLIENTS_MAX {
            return Err(format!(
                "clients must be 1 to {CLIENTS_MAX}, not {}",
                self.clients
            ));
        }
        if self.threads == 0 || self.threads > self.clients {
            return Err(format!(
                "threads must be 1 to the number of clients ({}), not {}",
                self.clients, self.threads
            ));
        }
        if self.measure < Duration::from_secs(1) {
            return Err("the measured time must be at least one second".into());
        }
        if self.transactions == Some(0) || self.max_tries == 0 {
            return Err("a number of transactions or of tries must be at least 1".into());
        }
        if self.connect && self.threads != self.clients {
            return Err(format!(
                "with a connection per transaction each client has a thread of its own: threads must be {}, not {}",
                self.clients, self.threads
            ));
        }
        if self.connect && !matches!(self.engine, Engine::Auto | Engine::Blocking) {
            return Err("connections are made by blocking calls; leave --engine at auto".into());
        }
        if let Arrivals::Open { batch, .. } = self.arrivals
            && batch > BATCH_MAX
        {
            return Err(format!(
                "the time between two batches of arrivals must be at most {} ms, not {}",
                BATCH_MAX.as_millis(),
                batch.as_millis()
            ));
        }
        if let Some(slice) = self.turns {
            Turns::check(slice)?;
            let is_closed = matches!(self.arrivals, Arrivals::Closed { think } if think.is_zero());
            if !is_closed || self.connect || self.transactions.is_some() {
                return Err("servers take turns in a closed loop without think time, over a time".into());
            }
        }
        let only_replies = self.connect
            || self.turns.is_none() && matches!(self.arrivals, Arrivals::Closed { think } if think.is_zero());
        if self.engine == Engine::Blocking && (self.clients > self.threads || !only_replies) {
            return Err(
                "the blocking engine drives one client per thread, in a closed loop without think time"
                    .into(),
            );
        }
        Ok(())
    }
}
