//! A session on the server of a store: made, set up, and made again once where it is lost.

use super::failed;
use crate::store::place::Place;
use crate::store::{StoreError, Unreached};
use pgdyno_server::{Session as Client, SessionError};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How to reach the server; an error is the reason as text, with no password in it.
type Connect = Box<dyn Fn() -> Result<Client, Unreached> + Send>;

/// So long a server that was lost is waited for: a restart, or another machine that takes over, is
/// done by then.
const RETURN_PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);
/// No statement of a store's takes near as long.
const STATEMENT_LIMIT: Duration = Duration::from_mins(10);
/// How much longer than its own limit on a statement a server may stay silent.
const GRACE: Duration = Duration::from_secs(5);

/// The status of an experiment that runs, as it is stored.
const RUNNING: &str = "\"running\"";

/// Another process may hold what is wanted so long, as with a file.
const SETUP: &str = "
SET client_min_messages = warning;
SET lock_timeout = '30s';
SET default_transaction_isolation = 'read committed';
SET idle_in_transaction_session_timeout = 0;
SET tcp_keepalives_idle = 60;
SET tcp_keepalives_interval = 10;
SET tcp_keepalives_count = 6;
SELECT set_config(name, '0', false) FROM pg_catalog.pg_settings 
WHERE name IN ('idle_session_timeout', 'transaction_timeout');
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';
";

/// The way to a store in PostgreSQL.
pub struct Link {
    pub(super) place: Place,
    pub(super) schema: String,
    connect: Connect,
    patience: Duration,
    /// For a lock, where it is another than usual, and for a statement whole.
    lock_limit: Option<Duration>,
    statement_limit: Duration,
}

impl Link {
    /// `name` is what errors call the store, and holds no password; `schema` is the schema of the
    /// database that the store is in.
    pub fn new(
        name: String,
        schema: String,
        connect: impl Fn() -> Result<Client, Unreached> + Send + 'static,
    ) -> Link {
        Link {
            place: Place::Server(name),
            schema,
            connect: Box::new(connect),
            patience: RETURN_PATIENCE,
            lock_limit: None,
            statement_limit: STATEMENT_LIMIT,
        }
    }

    /// The same, with a server that is lost waited for only so long.
    pub fn with_patience(self, patience: Duration) -> Link {
        Link { patience, ..self }
    }

    /// The same, with other processes' locks waited for only as long as `lock`, and no statement
    /// longer than `statement`; else half a minute, and ten.
    pub fn with_limits(self, lock: Duration, statement: Duration) -> Link {
        Link {
            lock_limit: Some(lock),
            statement_limit: statement,
            ..self
        }
    }
}

/// A session, or what is left of one.
pub(super) struct Session {
    link: Link,
    /// `None` once it is lost.
    client: Option<Client>,
    /// What the server knows the session by: number of its process, and when that began.
    known_by: (i32, String),
    /// Number of the schema, the first half of the locks' keys.
    pub(super) number: u32,
    pub(super) in_transaction: bool,
    /// Experiments that this process runs, and whether their rows are known to say so.
    pub(super) held: BTreeMap<i64, bool>,
    /// The error with which the connection broke.
    lost: String,
    /// Whether the server was waited for in vain: it is asked once more then, and not waited for
    /// again.
    is_away: bool,
}

impl Session {
    pub(super) fn new(link: Link) -> Result<Session, StoreError> {
        let (client, known_by) = enter(&link)?;
        Ok(Session {
            link,
            client: Some(client),
            known_by,
            number: 0,
            in_transaction: false,
            held: BTreeMap::new(),
            lost: String::new(),
            is_away: false,
        })
    }

    pub(super) fn place(&self) -> &Place {
        &self.link.place
    }

    pub(super) fn schema(&self) -> &str {
        &self.link.schema
    }

    pub(super) fn is_lost(&self) -> bool {
        self.client.is_none()
    }

    /// Whether another connection may be had.
    pub(super) fn may_return(&self) -> bool {
        self.is_lost() && !self.is_away
    }

    /// A server that does not end its answers is not asked again at once, and not waited for.
    pub(super) fn give_up(&mut self, why: &str) {
        self.lose(why);
        self.is_away = true;
    }

    pub(super) fn lose(&mut self, how: &str) {
        self.client = None;
        how.clone_into(&mut self.lost);
    }

    /// The connection. One that was lost before this statement is made again, but in the middle of
    /// a transaction.
    pub(super) fn client(&mut self, place: &Place, action: &'static str) -> Result<&mut Client, StoreError> {
        if self.client.is_none() && !self.in_transaction {
            self.renew(place, action)?;
        }
        let lost = || gone(place, action, &self.lost);
        self.client.as_mut().ok_or_else(lost)
    }

    /// Connects again, and takes again what this process holds.
    pub(super) fn renew(&mut self, place: &Place, action: &'static str) -> Result<(), StoreError> {
        let begun = Instant::now();
        let (mut client, known_by) = loop {
            let entered = enter(&self.link).and_then(|(mut client, known_by)| {
                fits(&mut client, place)?;
                Ok((client, known_by))
            });
            match entered {
                Ok(entered) => break entered,
                Err(error) if self.is_away || begun.elapsed() >= self.link.patience => {
                    self.is_away = true;
                    let then = match &error {
                        StoreError::Unreachable { source, .. } => source.to_string(),
                        other => other.to_string(),
                    };
                    return Err(gone(place, action, &format!("{}; then: {then}", self.lost)));
                }
                Err(_) => wait(),
            }
        };
        let failed = |e: SessionError| failed(place, action, &e);
        self.is_away = !self.end_old(&mut client).map_err(failed)?;
        if self.is_away {
            let reason = format!("{}; then: the server did not end the old session", self.lost);
            return Err(gone(place, action, &reason));
        }
        if let Some(id) = self.take_again(&mut client).map_err(failed)? {
            // At once: the server would notice a little later that this session ends.
            let _ = client.batch_execute("SELECT pg_advisory_unlock_all()");
            let place = place.clone();
            return Err(StoreError::Running { place, id });
        }
        self.client = Some(client);
        self.known_by = known_by;
        self.in_transaction = false;
        Ok(())
    }

    /// Ends the old session, and waits until it holds and writes nothing any more: the network may
    /// be what was lost, and the session live on with a statement that is not done. `false` where
    /// it does not end.
    fn end_old(&self, client: &mut Client) -> Result<bool, SessionError> {
        let (pid, begun) = &self.known_by;
        let is_old = "pid = $1 AND backend_start::text = $2";
        let end = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {is_old}");
        let asked = Instant::now();
        while client.execute(&end, &[pid, begun])? > 0 {
            if asked.elapsed() >= RETURN_PATIENCE {
                return Ok(false);
            }
            wait();
        }
        Ok(true)
    }

    /// Takes what this process holds for a new session. An experiment that another process runs, or
    /// has run and ended meanwhile, if there is one.
    fn take_again(&self, client: &mut Client) -> Result<Option<i64>, SessionError> {
        for (&experiment, &runs) in &self.held {
            let (class, object) = self.key(experiment);
            let take = format!("SELECT pg_try_advisory_lock({class}, {object})");
            if !client.query_one(&take, &[])?.try_get::<_, bool>(0)? {
                return Ok(Some(experiment));
            }
            let ended = "SELECT 1 FROM experiment WHERE id = $1 AND status <> $2";
            if runs && !client.query(ended, &[&experiment, &RUNNING])?.is_empty() {
                return Ok(Some(experiment));
            }
        }
        Ok(None)
    }

    /// The advisory lock of an experiment: the number of the schema and that of the experiment, as
    /// the server's signed halves.
    pub(super) fn key(&self, experiment: i64) -> (i64, i64) {
        let half = |number: u32| i64::from(number.cast_signed());
        // Experiments are counted from 1, and never as many.
        let experiment = u32::try_from(experiment & 0xffff_ffff).unwrap_or(0);
        (half(self.number), half(experiment))
    }
}

impl Drop for Session {
    /// Others may look for what this process runs as soon as it is closed here; the server would
    /// notice a little later.
    fn drop(&mut self) {
        if let Some(client) = self.client.as_mut().filter(|_| !self.held.is_empty()) {
            let _ = client.batch_execute("SELECT pg_advisory_unlock_all()");
        }
    }
}

/// A server does not report that it starts or ends a session.
#[expect(
    clippy::disallowed_methods,
    reason = "there is no condition to wait for but the server's word"
)]
fn wait() {
    std::thread::sleep(PAUSE);
}

fn gone(place: &Place, action: &'static str, reason: &str) -> StoreError {
    StoreError::Gone {
        place: place.clone(),
        action,
        reason: reason.to_owned(),
    }
}

/// A connection that is set up, with what the server knows it by.
fn enter(link: &Link) -> Result<(Client, (i32, String)), StoreError> {
    let mut client = (link.connect)().map_err(|source| StoreError::Unreachable {
        place: link.place.clone(),
        source,
    })?;
    let failed = |e: SessionError| failed(&link.place, "opened", &e);
    client.set_limit(Some(link.statement_limit + GRACE));
    client.batch_execute(SETUP).map_err(failed)?;
    let path = format!("SET search_path = {}", quoted(&link.schema));
    client.batch_execute(&path).map_err(failed)?;
    // To the server 0 is no limit.
    let ms = |limit: Duration| limit.as_millis().clamp(1, i32::MAX.unsigned_abs().into());
    let limit = format!("SET statement_timeout = {}", ms(link.statement_limit));
    client.batch_execute(&limit).map_err(failed)?;
    if let Some(lock) = link.lock_limit {
        let limit = format!("SET lock_timeout = {}", ms(lock));
        client.batch_execute(&limit).map_err(failed)?;
    }
    let row = client
        .query_one(
            "SELECT pid, backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()",
            &[],
        )
        .map_err(failed)?;
    let known_by = (taken(&row, 0, &link.place)?, taken(&row, 1, &link.place)?);
    Ok((client, known_by))
}

/// A value of a row: a server that is none may send another kind.
pub(super) fn taken<'a, T: postgres::types::FromSql<'a>>(
    row: &'a postgres::Row,
    at: usize,
    place: &Place,
) -> Result<T, StoreError> {
    row.try_get(at)
        .map_err(|error| failed(place, "opened", &SessionError::from(error)))
}

/// A name as SQL needs it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Refuses a server that takes no writes, and a database that cannot hold every text.
pub(super) fn fits(client: &mut Client, place: &Place) -> Result<(), StoreError> {
    let row = client
        .query_one(
            "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on', \
             current_setting('server_encoding')",
            &[],
        )
        .map_err(|e| failed(place, "opened", &e))?;
    if taken(&row, 0, place)? {
        return Err(StoreError::ReadOnly { place: place.clone() });
    }
    match taken::<&str>(&row, 1, place)? {
        "UTF8" => Ok(()),
        encoding => Err(StoreError::Encoding {
            place: place.clone(),
            encoding: encoding.to_owned(),
        }),
    }
}
