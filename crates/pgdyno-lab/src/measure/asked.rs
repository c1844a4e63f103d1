//! A server that is asked before a load and after it: what it has counted, and whether that is what
//! the clients saw.

use super::{LOAD_NAME, RECORDER_NAME};
use crate::cross_check::cross_check;
use crate::horizon;
use crate::pooled::{self, Sessions};
use pgdyno_engine::{LoadResult, ServerShare};
use pgdyno_record::CrossCheck;
use pgdyno_server::series::OwnCommits;
use pgdyno_server::{
    Conninfo, Counters, Server, ServerError, counters, sessions_named, wait_for_leaving, wait_until_gone,
};
use std::time::{Duration, Instant};

/// Sessions flush their counts when they end, or ten seconds after they became idle (since 15); the
/// server may take this long to show them.
const COUNTS_LIMIT: Duration = Duration::from_secs(12);
/// Sessions of an earlier load that are still ending are waited for.
const LEAVING_LIMIT: Duration = Duration::from_secs(2);
/// Starts of processes are reported together with what they committed, or a moment later.
const STARTS_LIMIT: Duration = Duration::from_secs(1);
/// Before this version, counts travel through a collector and are shown as they were up to half a
/// second ago.
const COUNTS_AT_ONCE_SINCE: u32 = 15;
/// Statements of this session that may be counted a pause later than they were sent.
const OWN_IN_A_PAUSE: u64 = 4;
/// Transactions of the look at prepared statements behind a pooler.
const PREPARED_CHECK: u64 = 6;

/// A server's counts when they are complete, or as complete as they become.
pub(super) struct Settled {
    pub(super) after: Counters,
    pub(super) check: CrossCheck,
    /// Sessions of a pooler that outlive the load.
    resting: u32,
    /// Sessions of a `pgdyno watch`, whose commits cannot be distinguished from the load's.
    watchers: u64,
    /// Of dead rows.
    pub(super) warnings: Vec<String>,
}

impl Settled {
    /// Why the server's count is not known in full; `None` where it is.
    pub(super) fn unchecked(&self, load: &LoadResult) -> Option<String> {
        let CrossCheck {
            agrees,
            server,
            client,
            ..
        } = self.check;
        if self.watchers > 0 && !agrees && server > client {
            return Some(format!(
                "a pgdyno watch asks in the same database: {server} commits are counted where the clients saw {client}"
            ));
        }
        if let (Some(word), false, true) = (&load.commits_within, agrees, server > client) {
            return Some(format!(
                "{word} in the load commits more often than its client sees: {server} commits are counted where the clients saw {client}"
            ));
        }
        (self.resting > 0 && server < client).then(|| {
            format!(
                "{} sessions of a pooler are still open and have not reported all their counts: {server} of {client} commits are \
                 confirmed",
                self.resting
            )
        })
    }
}

/// What was there before the load.
pub(super) struct Before {
    pub(super) counters: Counters,
    /// Sessions of a `pgdyno watch`.
    watchers: u64,
    /// Sessions of a pooler.
    pooled: Sessions,
    dead_rows: horizon::Before,
}

/// A server that is asked before a load and after it.
pub(super) struct Asked {
    pub(super) server: Server,
    /// Its first process, where it runs on this machine.
    pub(super) postmaster: Option<u32>,
    /// The process that answers.
    pub(super) asking: Option<u32>,
    pub(super) before: Before,
}

impl Asked {
    /// Asks it for what is there before a load of so many clients.
    pub(super) fn before(
        conninfo: &Conninfo,
        postmaster: Option<u32>,
        clients: u32,
    ) -> Result<Asked, ServerError> {
        let mut server = Server::connect(conninfo)?;
        let (mut watchers, mut pooled) = (0, Sessions::default());
        if conninfo.is_proxied() {
            pooled = pooled::send_counts(&mut server, clients)?;
        } else {
            wait_for_leaving(&mut server, LEAVING_LIMIT)?;
            watchers = sessions_named(&mut server, RECORDER_NAME)?;
        }
        if server.version().major < COUNTS_AT_ONCE_SINCE {
            server.execute(
                "waiting for the counts of earlier sessions",
                "SELECT pg_sleep(0.6)",
            )?;
        }
        let asking = process_of(&mut server)?;
        let dead_rows = horizon::Before::look(&mut server)?;
        let before = Before {
            counters: counters(&mut server)?,
            watchers,
            pooled,
            dead_rows,
        };
        Ok(Asked {
            server,
            postmaster,
            asking,
            before,
        })
    }

    /// Waits for the server's counts to be complete and compares them with the clients'.
    pub(super) fn settle(
        &mut self,
        (load, share): (&LoadResult, ServerShare),
        elapsed_s: f64,
        (clients, changes, kills): (u32, u32, bool),
        recorder: OwnCommits,
    ) -> Result<Settled, ServerError> {
        let (server, before) = (&mut self.server, &self.before);
        if load.lost.is_some() || kills {
            // The server may be coming up again; its old connection is of no use.
            *server = Server::connect(&server.conninfo().clone())?;
        }
        // Behind a pooler the load's sessions do not end, and may not even keep their name.
        let is_proxied = server.conninfo().is_proxied();
        let mut watchers = before.watchers;
        let pooled = match is_proxied {
            true => pooled::send_counts(server, clients)?,
            false => {
                wait_until_gone(server, LOAD_NAME, 0, COUNTS_LIMIT)?;
                wait_until_gone(server, RECORDER_NAME, watchers, COUNTS_LIMIT)?;
                watchers = watchers.max(sessions_named(server, RECORDER_NAME)?);
                Sessions::default()
            }
        };
        let by_pooler = match is_proxied {
            true => u64::from(before.pooled.asked + pooled.asked) * pooled::PER_SESSION + PREPARED_CHECK,
            false => 0,
        };
        let begun = Instant::now();
        let deadline = begun + COUNTS_LIMIT;
        let at_once = server.version().major >= COUNTS_AT_ONCE_SINCE;
        let mut counted_before = None;
        loop {
            let after = counters(server)?;
            let asked = (by_pooler, changes);
            let check = cross_check(
                &before.counters,
                &after,
                (load, share),
                elapsed_s,
                asked,
                recorder,
            );
            let by_others = after.committed.saturating_sub(after.own_statements);
            let rests = counted_before.is_some_and(|earlier| by_others <= earlier + OWN_IN_A_PAUSE);
            // Commits that are too many do not become fewer, unless the starts of the workers that
            // made them are reported a moment later.
            let too_many = check.server > check.client && begun.elapsed() >= STARTS_LIMIT;
            // A count of more than the load's agrees in passing while it is still being made.
            let agrees = check.agrees && (at_once || rests || check.server == check.client);
            if agrees || too_many || Instant::now() >= deadline {
                return Ok(Settled {
                    after,
                    check,
                    resting: pooled.all,
                    watchers,
                    warnings: before.dead_rows.warnings(server),
                });
            }
            let pause = match check.agrees {
                true => "SELECT pg_sleep(1)",
                false => "SELECT pg_sleep(0.1)",
            };
            counted_before = check.agrees.then_some(by_others);
            server.execute("waiting for the server's counts", pause)?;
        }
    }
}

/// The process that serves this connection; behind a pooler it is another one each time.
fn process_of(server: &mut Server) -> Result<Option<u32>, ServerError> {
    if server.conninfo().is_proxied() {
        return Ok(None);
    }
    let pid = server.value("asking for the session's process", "SELECT pg_backend_pid()")?;
    Ok(pid.and_then(|pid| pid.parse().ok()))
}
