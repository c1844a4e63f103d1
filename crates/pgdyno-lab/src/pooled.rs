//! Counts behind a pooler. Its sessions outlive their clients, and an idle session keeps its last
//! counts until its next transaction, since PostgreSQL 15 until one that reads a table. Here
//! sessions are made to send them.

use pgdyno_server::{Server, ServerError, pause};
use std::sync::mpsc::{channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// A session that was idle for so long sends its counts with its next transaction
/// (PGSTAT_STAT_INTERVAL of version 14; later versions have a function that sends them).
const REST: &str = "600 ms";
/// Whoever does not rest by then is somebody else's.
const REST_LIMIT: Duration = Duration::from_secs(10);
/// How long a pooler may take to give all its sessions at once.
const GATHER_LIMIT: Duration = Duration::from_secs(3);
/// Of that many sessions the counts are asked for, at most.
const SESSIONS_MAX: u32 = 512;
/// Sessions that pgdyno keeps through a pooler beside the load's: one asks, and one records.
pub(crate) const OWN_THROUGH_POOLER: u32 = 2;
/// Sessions beside the load's that there is room for: as many again may just have ended.
pub(crate) const BESIDE: u32 = 2 * OWN_THROUGH_POOLER;
/// Since this version a function makes a session send its counts, with those of a table that it has
/// read.
const FORCED_FLUSH_SINCE: u32 = 15;
const FORCED_FLUSH: &str = "SELECT pg_stat_force_next_flush() FROM pg_catalog.pg_class \
                    WHERE oid = 'pg_catalog.pg_class'::pg_catalog.regclass";
/// What a session that is asked commits for it, at most: the question for the version, the
/// transaction that holds it, what the pooler clears it with, what it sets for a client of another
/// name, and a session's own start.
pub(crate) const PER_SESSION: u64 = 5;

/// Sessions of this user in this database, apart from the one that asks: all of them, and those
/// that do something or did just now.
fn sessions(server: &mut Server) -> Result<(u32, u32), ServerError> {
    let sql = format!(
        "SELECT count(*), count(*) FILTER (WHERE state IS DISTINCT FROM 'idle' \
         OR state_change > clock_timestamp() - interval '{REST}') \
         FROM pg_stat_activity WHERE datname = current_database() AND usename = current_user \
         AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
    );
    let rows = server.rows("looking for the pooler's sessions", &sql)?;
    let count = |column: usize| {
        let value = rows.first().and_then(|row| row.get(column)?.as_deref());
        value.and_then(|text| text.parse().ok()).unwrap_or(0)
    };
    Ok((count(0), count(1)))
}

/// The pooler's sessions that were asked for their counts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sessions {
    /// All that there are, apart from the one that asks.
    pub(crate) all: u32,
    /// Number of sessions that were asked.
    pub(crate) asked: u32,
}

/// Waits until the pooler's sessions rest, and has each of them send its counts: as many as a load
/// with so many clients and pgdyno's own questions beside it can have used. One that kept its
/// counts would send them during the load.
pub(crate) fn send_counts(server: &mut Server, clients: u32) -> Result<Sessions, ServerError> {
    let deadline = Instant::now() + REST_LIMIT;
    let all = loop {
        let (all, restless) = sessions(server)?;
        if restless == 0 || Instant::now() >= deadline {
            break all;
        }
        pause(Duration::from_millis(100));
    };
    let asked = all.min(clients.saturating_add(BESIDE)).min(SESSIONS_MAX);
    let sql = match server.version().major >= FORCED_FLUSH_SINCE {
        true => FORCED_FLUSH,
        false => "SELECT 1",
    };
    ask_at_once(asked, server, sql)?;
    Ok(Sessions { all, asked })
}

/// Holds as many sessions as there are at the same time, so that the pooler must give each of them,
/// and ends a transaction in each; the one that `server` gets is the last. Those that do not come
/// within the limit are not waited for longer.
fn ask_at_once(asked: u32, server: &mut Server, sql: &'static str) -> Result<(), ServerError> {
    let what = "asking a session for its counts";
    let (here, arrivals) = channel();
    let gates: Vec<_> = (0..asked)
        .filter_map(|_| {
            let (gate, opened) = sync_channel::<()>(1);
            let (here, conninfo) = (here.clone(), server.conninfo().clone());
            let hold = move || -> Result<(), ServerError> {
                let mut server = Server::connect(&conninfo)?;
                server.execute(what, "BEGIN")?;
                server.execute(what, sql)?;
                let _ = here.send(());
                // It ends when the gate is gone.
                let _ = opened.recv();
                server.execute(what, "COMMIT")
            };
            // A session that cannot be had is not an error here: the cross-check shows what is
            // missing.
            let attempt = move || drop(hold());
            let thread = thread::Builder::new().name("counts".into()).spawn(attempt);
            thread.is_ok().then_some(gate)
        })
        .collect();
    drop(here);
    let deadline = Instant::now() + GATHER_LIMIT;
    let in_time = |_: &_| {
        let left = deadline.saturating_duration_since(Instant::now());
        arrivals.recv_timeout(left).is_ok()
    };
    // With a session missing, one that is free for this connection may be as well.
    let said = match gates.iter().all(in_time) {
        true => server.execute(what, sql),
        false => Ok(()),
    };
    drop(gates);
    // The last to end hangs up; one that still waits for its session is left to itself.
    let deadline = Instant::now() + GATHER_LIMIT;
    while arrivals
        .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        .is_ok()
    {}
    said
}
