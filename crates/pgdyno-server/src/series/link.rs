//! The sampler's connection: every question has a limit on both sides, and one that breaks is made anew with back-off.

use crate::conninfo::Conninfo;
use crate::server::{ServerError, VERSION_MIN, Version, refusal};
use std::collections::HashMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio_postgres::config::Host;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, NoTls, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The name under which its session is seen.
pub const NAME: &str = "pgdyno watch";
/// The server ends a statement of ours after this time.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(1);
/// A server that does not even do that is given up: its own limit, and half a second for the way.
const ANSWER_LIMIT: Duration = Duration::from_millis(1500);
/// A lost connection is tried again for so long at a time, for a series goes on meanwhile.
const REVIVAL_LIMIT: Duration = Duration::from_millis(1500);
/// The first connection may take as long as connect_timeout says, and this where it says nothing.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// The pause after a failed attempt doubles up to this.
const BACK_OFF_MAX: Duration = Duration::from_secs(16);
const BACK_OFF_MIN: Duration = Duration::from_millis(500);

/// An answer, or why there is none.
pub(super) type Answer = Result<Vec<Row>, LinkError>;

/// A statement with its parameters; all of them are prepared under their text.
pub(super) type Question<'a> = (&'a str, &'a [&'a (dyn ToSql + Sync)]);

type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;
type Attempt<'a> = Pin<Box<dyn Future<Output = Result<Vec<Row>, tokio_postgres::Error>> + 'a>>;

/// Why a question has no answer.
#[derive(Debug, Clone)]
pub(super) enum LinkError {
    /// The server's own words; the connection lives.
    Said {
        /// What it says.
        reason: String,
        /// Error code.
        sqlstate: String,
    },
    /// No connection, or none any more.
    Down(String),
}

impl LinkError {
    /// Whether asking again would bring the same: the role may not, or there is no such thing here.
    pub(super) fn is_lasting(&self) -> bool {
        matches!(self, LinkError::Said { sqlstate, .. }
            if sqlstate.starts_with("42") || sqlstate.starts_with("0A") || sqlstate == "55000")
    }

    /// Whether the role lacks a right.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, LinkError::Said { sqlstate, .. } if sqlstate == "42501")
    }

    /// As an error of the server, for people.
    pub(super) fn into_server_error(self, what: &str) -> ServerError {
        let what = what.to_owned();
        match self {
            LinkError::Said { reason, sqlstate } => ServerError::Statement {
                what,
                reason,
                sqlstate,
            },
            LinkError::Down(reason) => ServerError::Broken { what, reason },
        }
    }

    fn new(error: &tokio_postgres::Error) -> LinkError {
        match error.as_db_error() {
            // 57P: the server ends the session, or all of them.
            Some(db) if !db.code().code().starts_with("57P") => LinkError::Said {
                reason: db.message().to_owned(),
                sqlstate: db.code().code().to_owned(),
            },
            Some(db) => LinkError::Down(db.message().to_owned()),
            None => LinkError::Down(innermost(error)),
        }
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::Said { reason, sqlstate } => write!(f, "{reason} (SQLSTATE {sqlstate})"),
            LinkError::Down(reason) => write!(f, "{reason}"),
        }
    }
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// What is known of a session that is up.
struct Session {
    client: Client,
    driver: Driver,
    prepared: HashMap<String, Statement>,
}

/// Transactions of the sampler's own that the server counts as committed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnCommits {
    /// So many at least: they were answered.
    pub sure: u64,
    /// So many more, perhaps: sessions' starts, and what failed or was given up.
    pub unsure: u64,
}

impl OwnCommits {
    fn count<T, E>(&mut self, outcome: &Result<T, E>) {
        match outcome {
            Ok(_) => self.sure += 1,
            Err(_) => self.unsure += 1,
        }
    }
}

/// A connection that is made again when it is lost.
pub(super) struct Link {
    conninfo: Conninfo,
    runtime: Runtime,
    session: Option<Session>,
    /// It did not answer in time.
    is_given_up: bool,
    version: Version,
    backend_pid: i32,
    /// Goes up by one with each connection: counters of different ones are not compared.
    generation: u64,
    commits: OwnCommits,
    lost: String,
    back_off: Duration,
    next_attempt: Instant,
}

impl Link {
    /// The first connection; its failure is an error.
    pub(super) fn connect(conninfo: &Conninfo) -> Result<Link, ServerError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| ServerError::Unreachable {
                target: conninfo.to_string(),
                reason: format!("the system refused an event queue: {error}"),
            })?;
        let mut link = Link {
            conninfo: conninfo.clone(),
            runtime,
            session: None,
            is_given_up: false,
            version: Version::from_number(0),
            backend_pid: 0,
            generation: 0,
            commits: OwnCommits::default(),
            lost: String::new(),
            back_off: BACK_OFF_MIN,
            next_attempt: Instant::now(),
        };
        let limit = conninfo.config().get_connect_timeout().copied();
        link.establish(limit.unwrap_or(CONNECT_LIMIT))?;
        Ok(link)
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    pub(super) fn backend_pid(&self) -> i32 {
        self.backend_pid
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn commits(&self) -> OwnCommits {
        self.commits
    }

    pub(super) fn conninfo(&self) -> &Conninfo {
        &self.conninfo
    }

    /// Sees to it that there is a connection, within [`REVIVAL_LIMIT`].
    pub(super) fn revive(&mut self) -> Result<(), LinkError> {
        if self.is_given_up {
            // The socket closes with it, and so the server's side ends as soon as that looks.
            self.session = None;
            self.is_given_up = false;
        }
        if self.session.as_ref().is_some_and(|s| !s.client.is_closed()) {
            return Ok(());
        }
        if self.session.take().is_some() {
            self.lose("the server closed it".into());
        }
        let wait = self.next_attempt.saturating_duration_since(Instant::now());
        if !wait.is_zero() {
            return Err(LinkError::Down(self.lost.clone()));
        }
        let attempt = self.establish(REVIVAL_LIMIT);
        attempt.map_err(|error| {
            self.lose(error.to_string());
            self.next_attempt = Instant::now() + self.back_off;
            self.back_off = (self.back_off * 2).min(BACK_OFF_MAX);
            LinkError::Down(self.lost.clone())
        })
    }

    /// All rows of one statement.
    pub(super) fn ask(&mut self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Answer {
        let mut answers = self.ask_all(&[(sql, parameters)])?;
        answers
            .pop()
            .unwrap_or_else(|| Err(LinkError::Down("no answer".into())))
    }

    /// Several statements in one round trip, each with its own fate.
    pub(super) fn ask_all(&mut self, questions: &[Question<'_>]) -> Result<Vec<Answer>, LinkError> {
        self.revive()?;
        let unprepared = match self.conninfo.is_proxied() {
            // A pooler may give each question to another session of the server.
            true => HashMap::new(),
            false => self.prepare(questions)?,
        };
        let is_proxied = self.conninfo.is_proxied();
        let asked = questions.len() - unprepared.len();
        let answers = self.with_limit(ANSWER_LIMIT, |client, prepared| {
            let attempts: Vec<Attempt<'_>> = questions
                .iter()
                .filter(|(sql, _)| !unprepared.contains_key(*sql))
                .map(|(sql, parameters)| attempt(client, prepared, is_proxied, sql, parameters))
                .collect();
            all(attempts)
        });
        let answers = answers.inspect_err(|_| self.commits.unsure += asked as u64)?;
        for answer in &answers {
            self.commits.count(answer);
        }
        let mut answers = answers.into_iter();
        let answers: Vec<Answer> = questions
            .iter()
            .map(|(sql, _)| match unprepared.get(*sql) {
                Some(error) => Err(error.clone()),
                None => match answers.next() {
                    Some(answer) => answer.map_err(|error| LinkError::new(&error)),
                    None => Err(LinkError::Down("no answer".into())),
                },
            })
            .collect();
        self.after(questions, &answers)?;
        Ok(answers)
    }

    /// Prepares what is not yet; gives what cannot be.
    fn prepare(&mut self, questions: &[Question<'_>]) -> Result<HashMap<String, LinkError>, LinkError> {
        let mut failed = HashMap::new();
        for (sql, _) in questions {
            let known = self
                .session
                .as_ref()
                .is_some_and(|s| s.prepared.contains_key(*sql));
            if known {
                continue;
            }
            let prepared = self.with_limit(ANSWER_LIMIT, |client, _| client.prepare(sql))?;
            self.commits.count(&prepared);
            match prepared {
                Ok(statement) => {
                    if let Some(session) = &mut self.session {
                        session.prepared.insert((*sql).to_owned(), statement);
                    }
                }
                Err(error) => {
                    let error = LinkError::new(&error);
                    if let LinkError::Down(reason) = &error {
                        self.lose(reason.clone());
                        return Err(error);
                    }
                    failed.insert((*sql).to_owned(), error);
                }
            }
        }
        Ok(failed)
    }

    /// A connection that broke is given up, with all answers, for they would be of different states; a statement that
    /// failed is prepared anew the next time, for what it asks may have changed.
    fn after(&mut self, questions: &[Question<'_>], answers: &[Answer]) -> Result<(), LinkError> {
        let broken = answers.iter().find_map(|answer| match answer {
            Err(LinkError::Down(reason)) => Some(reason.clone()),
            _ => None,
        });
        if let Some(reason) = broken {
            self.lose(reason.clone());
            return Err(LinkError::Down(reason));
        }
        for ((sql, _), answer) in questions.iter().zip(answers) {
            if let (Err(_), Some(session)) = (answer, &mut self.session) {
                session.prepared.remove(*sql);
            }
        }
        Ok(())
    }

    fn lose(&mut self, reason: String) {
        self.session = None;
        self.lost = reason;
    }

    /// Drives the connection until the work is done, or gives both up.
    fn with_limit<'s, F, W>(&'s mut self, limit: Duration, work: W) -> Result<F::Output, LinkError>
    where
        F: Future,
        W: FnOnce(&'s Client, &'s HashMap<String, Statement>) -> F,
    {
        let Some(session) = self.session.as_mut().filter(|_| !self.is_given_up) else {
            return Err(LinkError::Down(self.lost.clone()));
        };
        let Session {
            client,
            driver,
            prepared,
        } = session;
        let done = drive(&self.runtime, driver, limit, work(client, prepared));
        let Some(done) = done else {
            let reason = format!("no answer within {} ms", limit.as_millis());
            self.is_given_up = true;
            self.lost = reason.clone();
            return Err(LinkError::Down(reason));
        };
        Ok(done)
    }

    /// Connects, limits, and asks for what must be known.
    fn establish(&mut self, limit: Duration) -> Result<(), ServerError> {
        let target = self.conninfo.to_string();
        let config = driver_config(&self.conninfo);
        let tls = self.conninfo.tls().cloned();
        let connect = async {
            let connected: Result<(Client, Driver), tokio_postgres::Error> = match tls {
                Some(tls) => {
                    let tls = MakeRustlsConnect::new(rustls::ClientConfig::clone(&tls));
                    let (client, connection) = config.connect(tls).await?;
                    let driver: Driver = Box::pin(async move { drop(connection.await) });
                    Ok((client, driver))
                }
                None => {
                    let (client, connection) = config.connect(NoTls).await?;
                    let driver: Driver = Box::pin(async move { drop(connection.await) });
                    Ok((client, driver))
                }
            };
            connected
        };
        let connected = self
            .runtime
            .block_on(async { tokio::time::timeout(limit, connect).await });
        let (client, driver) = match connected {
            Ok(Ok(connected)) => connected,
            Ok(Err(error)) => return Err(refusal(target, &error)),
            Err(_) => {
                return Err(ServerError::Unreachable {
                    target,
                    reason: format!("nothing within {} ms", limit.as_millis()),
                });
            }
        };
        self.session = Some(Session {
            client,
            driver,
            prepared: HashMap::new(),
        });
        // Its start, and what it is asked first: one who counts does not know when they are told.
        self.commits.unsure += 4;
        let outcome = self.settle(limit);
        match &outcome {
            Ok(()) => {
                self.generation += 1;
                self.back_off = BACK_OFF_MIN;
            }
            Err(error) => self.lose(error.to_string()),
        }
        outcome
    }

    /// Limits the session (not behind a pooler, where it goes on to others) and finds out whose it is.
    fn settle(&mut self, limit: Duration) -> Result<(), ServerError> {
        let what = "preparing the sampler's session";
        let settings = match self.conninfo.is_proxied() {
            true => "SELECT 1".to_owned(),
            // Sorting a hundred sessions by their texts costs more than all else about them; hashing does not.
            false => format!(
                "SET statement_timeout = {}; SET jit = off; SET enable_sort = off; SET default_transaction_read_only = on; \
                 SET idle_in_transaction_session_timeout = '10s'",
                STATEMENT_TIMEOUT.as_millis()
            ),
        };
        let failed = |error: &tokio_postgres::Error| LinkError::new(error).into_server_error(what);
        let broken = |error: LinkError| error.into_server_error(what);
        self.with_limit(limit, |client, _| client.batch_execute(&settings))
            .map_err(broken)?
            .map_err(|error| failed(&error))?;
        let sql = "SELECT current_setting('server_version_num')::int4, pg_backend_pid()";
        let rows = self
            .with_limit(limit, |client, _| client.query_typed(sql, &[]))
            .map_err(broken)?
            .map_err(|error| failed(&error))?;
        let number: i32 = rows
            .first()
            .and_then(|row| row.try_get(0).ok())
            .unwrap_or_default();
        self.backend_pid = rows
            .first()
            .and_then(|row| row.try_get(1).ok())
            .unwrap_or_default();
        self.version = Version::from_number(u32::try_from(number).unwrap_or_default());
        if self.version.major < VERSION_MIN {
            return Err(ServerError::TooOld {
                place: self.conninfo.place(),
                version: self.version.major,
            });
        }
        if self.version.major >= 15 && !self.conninfo.is_proxied() {
            // "snapshot" would copy all statistics for each of our statements.
            self.with_limit(limit, |client, _| {
                client.batch_execute("SET stats_fetch_consistency = cache")
            })
            .map_err(broken)?
            .map_err(|error| failed(&error))?;
        }
        Ok(())
    }
}

fn attempt<'a>(
    client: &'a Client,
    prepared: &'a HashMap<String, Statement>,
    is_proxied: bool,
    sql: &'a str,
    parameters: &'a [&'a (dyn ToSql + Sync)],
) -> Attempt<'a> {
    match prepared.get(sql) {
        Some(statement) if !is_proxied => Box::pin(client.query(statement, parameters)),
        _ => Box::pin(async move {
            // The only parameters that there are, are lists of numbers of statements.
            let typed: Vec<(&(dyn ToSql + Sync), Type)> =
                parameters.iter().map(|p| (*p, Type::INT8_ARRAY)).collect();
            client.query_typed(sql, &typed).await
        }),
    }
}

/// Waits for the work while the connection moves its bytes; `None` where the limit is over first.
fn drive<F: Future>(runtime: &Runtime, driver: &mut Driver, limit: Duration, work: F) -> Option<F::Output> {
    let mut work = std::pin::pin!(work);
    let mut ended = false;
    let both = poll_fn(|context| {
        if let Poll::Ready(done) = work.as_mut().poll(context) {
            return Poll::Ready(done);
        }
        if !ended {
            ended = driver.as_mut().poll(context).is_ready();
        }
        work.as_mut().poll(context)
    });
    runtime.block_on(async { tokio::time::timeout(limit, both).await.ok() })
}

/// The results of all, in their order.
async fn all(mut attempts: Vec<Attempt<'_>>) -> Vec<Result<Vec<Row>, tokio_postgres::Error>> {
    let mut results: Vec<Option<Result<Vec<Row>, tokio_postgres::Error>>> =
        attempts.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut pending = false;
        for (attempt, result) in attempts.iter_mut().zip(&mut results) {
            if result.is_none() {
                match attempt.as_mut().poll(context) {
                    Poll::Ready(done) => *result = Some(done),
                    Poll::Pending => pending = true,
                }
            }
        }
        match pending {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }
    })
    .await;
    results.into_iter().flatten().collect()
}

/// The same words for the driver below the one that the rest of this crate uses.
fn driver_config(conninfo: &Conninfo) -> Config {
    let known = conninfo.config();
    let mut config = Config::new();
    config
        .application_name(NAME)
        .ssl_mode(known.get_ssl_mode())
        .ssl_negotiation(known.get_ssl_negotiation())
        .channel_binding(known.get_channel_binding())
        .keepalives(known.get_keepalives())
        .keepalives_idle(known.get_keepalives_idle());
    if let Some(user) = known.get_user() {
        config.user(user);
    }
    if let Some(password) = known.get_password() {
        config.password(password);
    }
    if let Some(database) = known.get_dbname() {
        config.dbname(database);
    }
    if let Some(options) = known.get_options() {
        config.options(options);
    }
    for host in known.get_hosts() {
        match host {
            Host::Tcp(name) => config.host(name),
            Host::Unix(directory) => config.host_path(directory),
        };
    }
    for address in known.get_hostaddrs() {
        config.hostaddr(*address);
    }
    for port in known.get_ports() {
        config.port(*port);
    }
    config
}
