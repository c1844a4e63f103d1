//! The sampler's connection: every question has a limit on both sides, and one that breaks is made
//! again with back-off.

use crate::conninfo::Conninfo;
use crate::error::ServerError;
use crate::server::not_connected;
use crate::version::{VERSION_MIN, Version};
use crate::wire::{LinkError, Row, Statement, Way, Wire};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio_postgres::types::ToSql;

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

/// The session's process allocates and frees this once. glibc's malloc takes blocks of 128 kB and
/// more from the kernel and gives them back at once, until it has seen a larger one freed: from
/// then on it keeps up to twice that size (malloc's M_MMAP_THRESHOLD, mallopt(3)). A poll of the
/// sessions needs some 300 kB, and to have these pages made again each time costs the server more
/// than all else about it.
const LARGEST_BYTES: u32 = 4 << 20;

/// An answer, or why there is none.
pub(super) type Answer = Result<Vec<Row>, LinkError>;

/// A statement with its parameters; all of them are prepared under their text.
pub(super) type Question<'a> = (&'a str, &'a [&'a (dyn ToSql + Sync)]);

/// What is known of a session that is up.
struct Session {
    wire: Wire,
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
    session: Option<Session>,
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
        let mut link = Link {
            conninfo: conninfo.clone(),
            session: None,
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
        if self.session.is_some() {
            return Ok(());
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
        let asked = self.exchange(questions);
        if let Err(error) = &asked {
            self.lose(error.to_string());
        }
        asked
    }

    /// Prepares what is not yet, asks, and reads all answers. An error breaks the connection: the
    /// answers that are there already would be of another state than those to come.
    fn exchange(&mut self, questions: &[Question<'_>]) -> Result<Vec<Answer>, LinkError> {
        let unprepared = match self.conninfo.is_proxied() {
            // A pooler may give each question to another session of the server.
            true => HashMap::new(),
            false => self.prepare(questions)?,
        };
        let Session { wire, prepared } = self.session.as_mut().ok_or(LinkError::Silent)?;
        wire.begin(ANSWER_LIMIT);
        let ways: Vec<Option<Way<'_>>> = questions
            .iter()
            .map(|(sql, _)| match prepared.get(*sql) {
                Some(statement) => Some(Way::Prepared(statement)),
                None if unprepared.contains_key(*sql) => None,
                None => Some(Way::Text(sql)),
            })
            .collect();
        for (way, (_, parameters)) in ways.iter().zip(questions) {
            if let Some(way) = way {
                wire.ask(way, parameters)?;
            }
        }
        let mut answers = Vec::with_capacity(questions.len());
        let outcome = wire.send().and_then(|()| {
            for (way, (sql, _)) in ways.iter().zip(questions) {
                answers.push(match way {
                    Some(way) => wire.rows(way)?,
                    None => Err(unprepared.get(*sql).cloned().unwrap_or(LinkError::Silent)),
                });
            }
            Ok(())
        });
        drop(ways);
        if let Err(error) = outcome {
            self.commits.unsure += (questions.len() - unprepared.len()) as u64;
            return Err(error);
        }
        for ((sql, _), answer) in questions.iter().zip(&answers) {
            if unprepared.contains_key(*sql) {
                continue;
            }
            self.commits.count(answer);
            // A statement that failed is prepared again the next time, for what it asks may have
            // changed.
            if answer.is_err()
                && let Some(statement) = prepared.remove(*sql)
            {
                wire.forget(statement);
            }
        }
        Ok(answers)
    }

    /// Prepares what is not yet; gives what cannot be.
    fn prepare(&mut self, questions: &[Question<'_>]) -> Result<HashMap<String, LinkError>, LinkError> {
        let mut failed = HashMap::new();
        for (sql, _) in questions {
            let Session { wire, prepared } = self.session.as_mut().ok_or(LinkError::Silent)?;
            if prepared.contains_key(*sql) {
                continue;
            }
            wire.begin(ANSWER_LIMIT);
            let statement = wire.prepare(sql)?;
            self.commits.count(&statement);
            match statement {
                Ok(statement) => {
                    prepared.insert((*sql).to_owned(), statement);
                }
                Err(error) => {
                    failed.insert((*sql).to_owned(), error);
                }
            }
        }
        Ok(failed)
    }

    fn lose(&mut self, reason: String) {
        self.session = None;
        self.lost = reason;
    }

    /// Connects, limits, and asks for what must be known.
    fn establish(&mut self, limit: Duration) -> Result<(), ServerError> {
        let wire = Wire::connect(&self.conninfo, NAME, limit)
            .map_err(|refused| not_connected(&self.conninfo, refused, limit))?;
        self.session = Some(Session {
            wire,
            prepared: HashMap::new(),
        });
        // Its start, and what it is asked first: when the server reports these is unknown.
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

    /// Limits the session (not behind a pooler, where it goes on to others) and finds out whose it
    /// is.
    fn settle(&mut self, limit: Duration) -> Result<(), ServerError> {
        let what = &format!("preparing the sampler's session ({})", self.conninfo.place());
        let settings = match self.conninfo.is_proxied() {
            true => "SELECT 1".to_owned(),
            // Sorting a hundred sessions by their texts costs more than all else about them;
            // hashing does not.
            false => format!(
                "SET jit = off; SET enable_sort = off; SET default_transaction_read_only = on; \
                 SET idle_in_transaction_session_timeout = '10s'; SELECT length(repeat(' ', {LARGEST_BYTES}))"
            ),
        };
        let error = |error: LinkError| error.into_server_error(what);
        let Some(Session { wire, .. }) = &mut self.session else {
            return Err(error(LinkError::Silent));
        };
        wire.begin(limit);
        wire.run(&settings).map_err(error)?.map_err(error)?;
        let asked = Way::Text("SELECT current_setting('server_version_num')::int4, pg_backend_pid()");
        wire.ask(&asked, &[]).map_err(error)?;
        wire.send().map_err(error)?;
        let rows = wire.rows(&asked).map_err(error)?.map_err(error)?;
        let field = |at| {
            rows.first()
                .and_then(|row| row.try_get::<i32>(at).ok())
                .unwrap_or_default()
        };
        let number = field(0);
        self.backend_pid = field(1);
        self.version = Version::from_number(u32::try_from(number).unwrap_or_default());
        if self.version.major < VERSION_MIN {
            return Err(ServerError::TooOld {
                place: self.conninfo.place(),
                version: self.version.major,
            });
        }
        if !self.conninfo.is_proxied() {
            // "snapshot" would copy all statistics for each of our statements.
            let cache = match self.version.major {
                15.. => "SET stats_fetch_consistency = cache; ",
                _ => "",
            };
            // Last: until here `limit` holds, which leaves a busy server more time.
            let timeout = STATEMENT_TIMEOUT.as_millis();
            wire.run(&format!("{cache}SET statement_timeout = {timeout}"))
                .map_err(error)?
                .map_err(error)?;
        }
        Ok(())
    }
}
