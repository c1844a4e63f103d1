//! What a commit takes over one connection. A transaction that writes to a temporary table alone
//! writes no WAL and waits for nothing, so each also puts a message into the WAL: its commit is
//! flushed like anybody's, and nothing of the user's is touched.

use super::{Bench, Grade, Measured, spread_ms};
use pgdyno_host::probe::Spread;
use pgdyno_server::{Server, ServerError, pause};
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

const NAME: &str = "commit";
/// About as long as a row with a few columns.
const MESSAGE: &str = "pgdyno measures what a commit takes; this message has the size of an inserted row \
                       and no meaning";
const TABLE: &str = "CREATE TEMPORARY TABLE pgdyno_check (lsn pg_lsn)";
const DROP: &str = "DROP TABLE pg_temp.pgdyno_check";
/// A commit that takes longer than this waits for something that does not come.
const PATIENCE: Duration = Duration::from_secs(10);
const GIVEN_UP: &str = "look what commits wait for: a synchronous standby that is gone, most likely";
/// How often the waiting looks up.
const LOOK: Duration = Duration::from_millis(100);
/// Sessions report their counts when they end; the server may take this long to show them.
const COUNTS_LIMIT: Duration = Duration::from_secs(3);
/// Of the commits, at least this share must be among the flushes for the figure to be believed.
const FLUSHED_LEAST: f64 = 0.98;

/// What decides how long a commit waits.
#[derive(Debug, Clone, Serialize)]
struct Waits {
    synchronous_commit: String,
    fsync: String,
    wal_sync_method: String,
    synchronous_standby_names: String,
    #[serde(skip)]
    pid: String,
    #[serde(skip)]
    in_recovery: bool,
}

impl Waits {
    fn ask(server: &mut Server) -> Result<Waits, ServerError> {
        let sql = "SELECT current_setting('synchronous_commit'), current_setting('fsync'), \
                   current_setting('wal_sync_method'), current_setting('synchronous_standby_names'), \
                   pg_catalog.pg_backend_pid(), pg_catalog.pg_is_in_recovery()";
        let rows = server.rows("asking what a commit waits for", sql)?;
        let mut fields = rows.into_iter().next().unwrap_or_default().into_iter();
        let mut next = || fields.next().flatten().unwrap_or_default();
        Ok(Waits {
            synchronous_commit: next(),
            fsync: next(),
            wal_sync_method: next(),
            synchronous_standby_names: next(),
            pid: next(),
            in_recovery: next() == "t",
        })
    }

    /// Whether a standby's answer is a part of it.
    fn for_standby(&self) -> bool {
        !self.synchronous_standby_names.is_empty()
            && !matches!(self.synchronous_commit.as_str(), "off" | "local")
    }

    /// Flushes by write() itself are not counted by the server.
    fn is_counted(&self) -> bool {
        !self.wal_sync_method.starts_with("open_")
    }
}

/// Times of commits, and how they were made.
struct Commits {
    times_ns: Vec<u64>,
    has_table: bool,
}

/// Counters of the server's WAL before or after the commits.
#[derive(Debug, Clone, Copy)]
struct Flushed {
    wal_bytes: u64,
    /// `None` where this version does not count.
    flushes: Option<u64>,
}

impl Flushed {
    fn ask(server: &mut Server) -> Result<Flushed, ServerError> {
        let flushes = match server.version().major {
            ..=13 => "NULL",
            14..=17 => "(SELECT wal_sync FROM pg_catalog.pg_stat_wal)",
            _ => "(SELECT sum(fsyncs) FROM pg_catalog.pg_stat_io WHERE object = 'wal')",
        };
        let sql = format!("SELECT pg_catalog.pg_current_wal_lsn() - '0/0'::pg_catalog.pg_lsn, {flushes}");
        let rows = server.rows("asking for the server's flushes", &sql)?;
        let number = |column: usize| -> Option<u64> { rows.first()?.get(column)?.as_deref()?.parse().ok() };
        Ok(Flushed {
            wal_bytes: number(0).unwrap_or_default(),
            flushes: number(1),
        })
    }
}

impl Bench<'_> {
    pub(super) fn commit(&mut self) -> Measured {
        self.commits()
            .unwrap_or_else(|error| Measured::unknown(NAME, error))
    }

    fn commits(&mut self) -> Result<Measured, ServerError> {
        let (Some(conninfo), Some(asker)) = (self.asked.conninfo, self.server.as_mut()) else {
            return Ok(Measured::unknown(NAME, "no server was named"));
        };
        let mut server = Server::connect(conninfo)?;
        let waits = Waits::ask(&mut server)?;
        if waits.in_recovery {
            let why = "the server is a standby (in recovery), on which nothing commits";
            return Ok(Measured::unknown(NAME, why));
        }
        let before = Flushed::ask(asker)?;
        let (length, given_up) = (self.asked.length, Arc::new(AtomicBool::new(false)));
        let receiver = begin(server, length, Arc::clone(self.stop), Arc::clone(&given_up));
        let (done, was_cancelled) = wait(&receiver, asker, &waits.pid, length, self.stop, &given_up)?;
        let after = counted(asker, before, done.times_ns.len() as u64, &waits)?;
        let Some(times) = Spread::of(done.times_ns) else {
            return Ok(Measured::unknown(NAME, "stopped before a commit was done"));
        };
        let mut measured = judged(&times, &waits, before, after);
        if !done.has_table {
            measured.note(
                "without a temporary table, which this user or this pooler does not allow: the message alone",
            );
        }
        if was_cancelled {
            measured.verdict = Grade::Poor;
            measured.why = Some(format!(
                "a commit took more than {} s and was given up",
                PATIENCE.as_secs()
            ));
            measured.advice = Some(GIVEN_UP.to_owned());
        }
        Ok(measured)
    }
}

/// Commits in a thread of its own, for a server that hangs is not to be waited for.
fn begin(
    mut server: Server,
    length: Duration,
    stop: Arc<AtomicBool>,
    given_up: Arc<AtomicBool>,
) -> Receiver<Result<Commits, ServerError>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let done = run(&mut server, length, &|| {
            stop.load(Ordering::Relaxed) || given_up.load(Ordering::Relaxed)
        });
        // The session's end makes its counts known.
        drop(server);
        let _ = sender.send(done);
    });
    receiver
}

fn run(server: &mut Server, length: Duration, ends: &dyn Fn() -> bool) -> Result<Commits, ServerError> {
    let is_proxied = server.conninfo().is_proxied();
    // Behind a pooler the session, and the table with it, may be somebody else's the next moment.
    let has_table = !is_proxied && without_waiting(server, "making a temporary table", TABLE).is_ok();
    let emit = format!("pg_catalog.pg_logical_emit_message(true, 'pgdyno', '{MESSAGE}'::text)");
    let sql = match has_table {
        true => format!("INSERT INTO pg_temp.pgdyno_check SELECT {emit}"),
        false => format!("SELECT {emit}"),
    };
    let what = "committing";
    let sql = match is_proxied {
        true => sql,
        // Planned once: what is timed is the commit.
        false => {
            server.execute(what, &format!("PREPARE pgdyno_commit AS {sql}"))?;
            "EXECUTE pgdyno_commit".to_owned()
        }
    };
    let (mut times_ns, begun) = (Vec::new(), Instant::now());
    while begun.elapsed() < length && !ends() {
        let took = server.round_trip(what, &sql)?;
        times_ns.push(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }
    if has_table {
        // It would go with the session, only a moment later.
        let _ = without_waiting(server, "dropping the temporary table", DROP);
    }
    Ok(Commits { times_ns, has_table })
}

/// A temporary table is nothing to wait for, least of all for a standby that does not answer.
fn without_waiting(server: &mut Server, what: &str, sql: &str) -> Result<(), ServerError> {
    server.execute(what, "SET synchronous_commit = off")?;
    let done = server.execute(what, sql);
    server.execute(what, "RESET synchronous_commit")?;
    done
}

/// Waits for the commits, and gives them up if they hang: a commit that waits for a standby ends
/// with no timeout.
fn wait(
    receiver: &Receiver<Result<Commits, ServerError>>,
    asker: &mut Server,
    pid: &str,
    length: Duration,
    stop: &AtomicBool,
    given_up: &AtomicBool,
) -> Result<(Commits, bool), ServerError> {
    let silent = |reason: &str| ServerError::Broken {
        what: "committing".into(),
        reason: reason.into(),
    };
    let mut deadline = Instant::now() + length + PATIENCE;
    let mut was_cancelled = false;
    loop {
        match receiver.recv_timeout(LOOK) {
            Ok(done) => return Ok((done?, was_cancelled)),
            Err(RecvTimeoutError::Disconnected) => return Err(silent("its thread ended")),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if stop.load(Ordering::Relaxed) && !was_cancelled {
            deadline = deadline.min(Instant::now() + LOOK);
        }
        if Instant::now() < deadline {
            continue;
        }
        if was_cancelled {
            return Err(silent("the server does not answer"));
        }
        given_up.store(true, Ordering::Relaxed);
        asker.execute(
            "giving up a commit",
            &format!("SELECT pg_catalog.pg_cancel_backend({pid})"),
        )?;
        was_cancelled = true;
        deadline = Instant::now() + PATIENCE;
    }
}

/// The server's counts when they hold all flushes of the commits, or as they are in the end.
fn counted(asker: &mut Server, before: Flushed, commits: u64, waits: &Waits) -> Result<Flushed, ServerError> {
    let deadline = Instant::now() + COUNTS_LIMIT;
    loop {
        let after = Flushed::ask(asker)?;
        let is_whole = match flushes_between(before, after) {
            Some(flushes) => flushes >= commits,
            None => true,
        };
        if is_whole || !waits.is_counted() || Instant::now() >= deadline {
            return Ok(after);
        }
        pause(LOOK);
    }
}

/// `None` where they are not counted, or were counted again.
fn flushes_between(before: Flushed, after: Flushed) -> Option<u64> {
    after.flushes?.checked_sub(before.flushes?)
}

/// One connection commits one after the other, so each commit has a flush that no other one has.
#[expect(clippy::cast_precision_loss, reason = "counts of seconds")]
fn judged(times: &Spread, waits: &Waits, before: Flushed, after: Flushed) -> Measured {
    let wal_bytes = after.wal_bytes.saturating_sub(before.wal_bytes);
    let flushes = flushes_between(before, after).filter(|_| waits.is_counted());
    let detail = json!({
        "times": times,
        "per_s": times.rate_per_s(),
        "wal_bytes": wal_bytes,
        "flushes": flushes,
        "settings": waits,
        "waits_for_standby": waits.for_standby(),
    });
    let spread = format!("{}, {:.0}/s", spread_ms(times), times.rate_per_s());
    let mut measured = Measured::judged(NAME, times.mean_us / 1e3, spread, detail);
    measured.note(format!(
        "synchronous_commit = {}, fsync = {}, {}; {} of WAL and {} for {} commits",
        waits.synchronous_commit,
        waits.fsync,
        match waits.for_standby() {
            true => "each waits for a synchronous standby too",
            false => "no synchronous standby is waited for",
        },
        match wal_bytes {
            ..1_000_000 => format!("{wal_bytes} bytes"),
            _ => format!("{:.1} MB", wal_bytes as f64 / 1e6),
        },
        flushes.map_or_else(
            || format!(
                "an unknown number of flushes (not counted with {})",
                waits.wal_sync_method
            ),
            |flushes| format!("{flushes} flushes")
        ),
        times.count
    ));
    let why = if waits.fsync == "off" {
        Some("fsync is off: nothing is flushed, and a crash of the machine can destroy the data".to_owned())
    } else if waits.synchronous_commit == "off" {
        Some(
            "synchronous_commit is off: commits do not wait for their flush, and a crash loses the last ones"
                .to_owned(),
        )
    } else if wal_bytes < times.count * MESSAGE.len() as u64 {
        Some(format!(
            "the WAL grew by {wal_bytes} bytes only: the commits were not written"
        ))
    } else {
        let missing = flushes.filter(|flushes| (*flushes as f64) < times.count as f64 * FLUSHED_LEAST);
        missing.map(|flushes| {
            format!("the server counted {flushes} flushes only: not every commit waited for one")
        })
    };
    match why {
        Some(why) => measured.but_unknown(why),
        None => measured,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(settings: &str) -> Waits {
        let mut settings = settings.split(' ').map(str::to_owned);
        let mut next = || settings.next().unwrap_or_default();
        Waits {
            synchronous_commit: next(),
            fsync: next(),
            wal_sync_method: next(),
            synchronous_standby_names: next(),
            pid: "1".into(),
            in_recovery: false,
        }
    }

    #[test]
    fn a_commit_that_was_not_flushed_is_never_good() {
        let times = Spread::of(vec![100_000; 1000]).unwrap();
        let flushed = |wal_bytes, flushes| Flushed { wal_bytes, flushes };
        let before = flushed(5000, Some(7));
        let check = |settings, after, grade, why: &str| {
            let found = judged(&times, &waits(settings), before, after);
            assert_eq!(found.verdict, grade, "{found:?}");
            assert!(found.why.unwrap_or_default().contains(why), "{why}");
        };
        let enough = flushed(500_000, Some(1007));
        check("on on fdatasync", enough, Grade::Good, "");
        check("local on fdatasync standby", enough, Grade::Good, "");
        check("off on fdatasync", enough, Grade::Unknown, "do not wait");
        check("on off fdatasync", enough, Grade::Unknown, "nothing is flushed");
        check(
            "on on fdatasync",
            flushed(5000, Some(1007)),
            Grade::Unknown,
            "WAL grew",
        );
        check(
            "on on fdatasync",
            flushed(500_000, Some(90)),
            Grade::Unknown,
            "83 flushes",
        );
        // Not counted, or counted again since.
        check("on on open_datasync", flushed(500_000, Some(7)), Grade::Good, "");
        check("on on fdatasync", flushed(500_000, Some(3)), Grade::Good, "");
        check("on on fdatasync", flushed(500_000, None), Grade::Good, "");
    }

    #[test]
    fn a_standby_is_waited_for_by_most_levels() {
        for (settings, expected) in [
            ("on on fdatasync s1", true),
            ("remote_apply on fdatasync s1", true),
            ("local on fdatasync s1", false),
            ("off on fdatasync s1", false),
            ("on on fdatasync", false),
        ] {
            assert_eq!(waits(settings).for_standby(), expected, "{settings}");
        }
    }
}
