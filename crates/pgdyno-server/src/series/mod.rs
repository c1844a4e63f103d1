//! Series of a server: counters as rates, gauges, and what sessions wait for. Asks within limits, on a connection of its
//! own, and never fails: what could not be had is a gap with its reason.
//!
//! Counters come with the server's clock, read in the same statement: an answer can wait for a CPU on either side, and
//! the time between two answers would then be another than between two readings. Where that clock was set meanwhile,
//! the instants of the answers are taken instead.

mod ledger;
mod link;
mod people;
mod statements;
mod table;
mod waits;

pub use people::{AgeRow, SessionRow, VacuumRow};
pub use statements::{StatementRow, StatementsMissing};
pub use waits::{CPU, WaitKey, WaitSample};

use crate::conninfo::Conninfo;
use crate::server::{ServerError, Version};
use ledger::{Circumstances, Line, Part, Taken, Told, grant_words};
use link::{Answer, Link, LinkError, Question};
pub use link::{NAME, OwnCommits};
use pgdyno_host::series::Reading;
use statements::{Place, Statements};
use std::time::Instant;
use table::{Column, GROUPS, Group, Kind, Pace, STATEMENTS};
use tokio_postgres::Row;

/// A group that a role may not read is tried again after so many turns, for rights can be given.
const AGAIN_AFTER: u64 = 60;

/// All metrics that can be in a reading of a server, of whatever version, each with the source that its gaps name.
pub fn metrics() -> impl Iterator<Item = (&'static str, &'static str)> {
    let groups = GROUPS.iter().chain([&STATEMENTS]);
    groups.flat_map(|group| {
        let told = group.columns.iter().filter(|column| column.kind != Kind::Hidden);
        told.map(|column| (column.metric, group.source))
    })
}

/// A group with what is known of it on this connection.
struct Asked {
    group: &'static Group,
    columns: Vec<Column>,
    sql: String,
    before: Option<Taken>,
    /// The turn from which on it is asked again.
    from: u64,
}

/// What is asked at the same pace; all rates of its readings are of one interval.
#[derive(Default)]
struct Round {
    groups: Vec<Asked>,
    turn: u64,
    /// When the last complete reading was.
    at: Option<Instant>,
}

/// Watches a server over a connection of its own.
pub struct ServerSeries {
    link: Link,
    /// The connection that all counters below are of.
    generation: u64,
    circumstances: Circumstances,
    tick: Round,
    seldom: Round,
    totals: Option<Place>,
    told: Told,
    is_version_told: bool,
    statements: Statements,
}

impl ServerSeries {
    /// Connects (as application_name "pgdyno watch", without rights to write, each statement at most a second).
    pub fn connect(conninfo: &Conninfo) -> Result<ServerSeries, ServerError> {
        let link = Link::connect(conninfo)?;
        let mut series = ServerSeries {
            generation: link.generation(),
            link,
            circumstances: Circumstances {
                activities: true,
                ..Circumstances::default()
            },
            tick: Round::default(),
            seldom: Round::default(),
            totals: None,
            told: Told::default(),
            is_version_told: false,
            statements: Statements::default(),
        };
        series.begin();
        Ok(series)
    }

    /// The server's version, as of the last connection.
    pub fn version(&self) -> Version {
        self.link.version()
    }

    /// The process of its session; another one after a connection was lost.
    pub fn backend_pid(&self) -> i32 {
        self.link.backend_pid()
    }

    /// Transactions of its own so far, for whoever counts the server's.
    pub fn own_commits(&self) -> OwnCommits {
        self.link.commits()
    }

    /// Counters as rates, and gauges. To be called once a second, ten times at most. Returns within about two seconds
    /// whatever the server does.
    pub fn tick(&mut self) -> Reading {
        self.read(|series| &mut series.tick)
    }

    /// The same for what changes slowly or is dear to ask (sizes, ages, totals of pg_stat_statements): to be called
    /// every ten seconds. Its rates are of its own interval.
    pub fn seldom(&mut self) -> Reading {
        let missing = match self.totals {
            None => self.find_totals(),
            Some(_) => None,
        };
        let mut out = self.read(|series| &mut series.seldom);
        match missing {
            Some(reason) => self.told.once(&mut out, STATEMENTS.source, &reason),
            None => self.told.over(STATEMENTS.source),
        }
        out
    }

    /// Everything anew, for a new connection: the server may be another one by now.
    fn begin(&mut self) {
        let version = self.link.version();
        let of = |is_tick: bool| Round {
            groups: GROUPS
                .iter()
                .filter(|group| group.is_in(version) && (group.pace == Pace::Tick) == is_tick)
                .map(|group| Asked {
                    group,
                    columns: group.columns_in(version),
                    sql: group.sql(version),
                    before: None,
                    from: 0,
                })
                .collect(),
            ..Round::default()
        };
        (self.tick, self.seldom) = (of(true), of(false));
        self.totals = None;
        self.generation = self.link.generation();
        self.told.clear();
        self.is_version_told = false;
    }

    /// Where pg_stat_statements is; or why it is not, in words.
    fn find_totals(&mut self) -> Option<String> {
        let place = match Place::find(&mut self.link) {
            Ok(place) => place,
            // Told with the reading.
            Err(StatementsMissing::Failed(_)) => return None,
            Err(missing) => return Some(missing.to_string()),
        };
        let version = self.link.version();
        let sql = STATEMENTS
            .sql(version)
            .replace("{function}", &place.function())
            .replace(
                "(NULL)::float8, ARRAY",
                &format!("{}::float8, ARRAY", place.reset()),
            );
        self.seldom.groups.push(Asked {
            group: &STATEMENTS,
            columns: STATEMENTS.columns_in(version),
            sql,
            before: None,
            from: 0,
        });
        self.totals = Some(place);
        None
    }

    fn read(&mut self, round: fn(&mut ServerSeries) -> &mut Round) -> Reading {
        let sent = Instant::now();
        if let Err(error) = self.link.revive() {
            return failed(&error);
        }
        let is_new = self.generation != self.link.generation();
        if is_new {
            let started_s = self.circumstances.started_s;
            self.begin();
            self.circumstances.started_s = started_s;
        }
        let head = table::head(self.link.version());
        let taken = round(self);
        taken.turn += 1;
        let turn = taken.turn;
        let due: Vec<usize> = (0..taken.groups.len())
            .filter(|at| taken.groups[*at].is_due(turn))
            .collect();
        let sqls: Vec<String> = due.iter().map(|at| taken.groups[*at].sql.clone()).collect();
        let mut questions: Vec<Question<'_>> = vec![(head, &[])];
        questions.extend(sqls.iter().map(|sql| (sql.as_str(), &[] as &[_])));
        let mut answers = match self.link.ask_all(&questions) {
            Ok(answers) => answers.into_iter(),
            Err(error) => return failed(&error),
        };
        let received = Instant::now();
        let since = round(self).at.filter(|_| !is_new);
        let mut out = Reading::new(received, since);
        match answers.next() {
            Some(Ok(rows)) => self.take_head(&rows, is_new, &mut out),
            Some(Err(error)) => out.gap("server", &error),
            None => {}
        }
        self.tell_versions(&mut out);
        for (at, answer) in due.into_iter().zip(answers) {
            self.take(round, at, answer, (sent, received), &mut out);
        }
        round(self).at = Some(received);
        out
    }

    /// Settings, and whether this is still the server that it was.
    fn take_head(&mut self, rows: &[Row], is_new: bool, out: &mut Reading) {
        let Some(row) = rows.first() else { return };
        let before = self.circumstances.started_s;
        let flag = |at: usize| row.try_get(at).unwrap_or(false);
        self.circumstances = Circumstances {
            started_s: row.try_get(0).unwrap_or_default(),
            io_timing: flag(1),
            wal_timing: flag(2),
            counts: flag(3),
            activities: flag(4),
            database: row.try_get(5).unwrap_or_default(),
            user: row.try_get(6).unwrap_or_default(),
        };
        if is_new {
            let is_restart = before.to_bits() != self.circumstances.started_s.to_bits();
            out.gap(
                "server",
                match is_restart {
                    true => "the server was restarted: counting begins anew",
                    false => "the connection was lost: counting begins anew",
                },
            );
        }
    }

    /// What this version does not tell, once.
    fn tell_versions(&mut self, out: &mut Reading) {
        if std::mem::replace(&mut self.is_version_told, true) {
            return;
        }
        let version = self.link.version();
        let told: Vec<&str> = GROUPS
            .iter()
            .filter(|group| group.is_in(version))
            .flat_map(|group| group.columns)
            .filter(|column| column.is_in(version))
            .map(|column| column.metric)
            .collect();
        for (metric, _) in
            metrics().filter(|(metric, _)| !told.contains(metric) && !metric.starts_with("statements."))
        {
            let reason = format!("PostgreSQL {} does not tell it", version.major);
            self.told.once(out, metric, &reason);
        }
    }

    /// One group's answer.
    fn take(
        &mut self,
        round: fn(&mut ServerSeries) -> &mut Round,
        at: usize,
        answer: Answer,
        (sent, received): (Instant, Instant),
        out: &mut Reading,
    ) {
        let user = self.circumstances.user.clone();
        let circumstances = self.circumstances.clone();
        let mut told = std::mem::take(&mut self.told);
        let round = round(self);
        let (turn, since) = (round.turn, round.at);
        let asked = &mut round.groups[at];
        match answer {
            Ok(rows) => {
                let now = Taken::from_rows(&rows, sent, received);
                // A rate is of the interval that its reading says, or there is none.
                let before = asked
                    .before
                    .take()
                    .filter(|before| Some(before.received) == since);
                let part = Part {
                    group: asked.group,
                    columns: &asked.columns,
                    before: before.as_ref(),
                    now: &now,
                    circumstances: &circumstances,
                };
                part.add_to(out, &mut told);
                asked.before = Some(now);
            }
            Err(error) => {
                asked.before = None;
                let source = asked.group.source;
                match error.is_lasting() {
                    true => {
                        asked.from = turn + AGAIN_AFTER;
                        let reason = match error.is_refusal() {
                            true => format!("{error}; {}", grant_words(asked.group.grant, &user)),
                            false => error.to_string(),
                        };
                        told.once(out, source, &reason);
                    }
                    false => out.gap(source, &error),
                }
            }
        }
        self.told = told;
    }
}

impl Asked {
    fn is_due(&self, turn: u64) -> bool {
        let in_turn = match self.group.pace {
            Pace::Tick => true,
            Pace::Seldom(every) => (turn - 1).is_multiple_of(every),
        };
        in_turn && turn >= self.from
    }
}

impl Taken {
    fn from_rows(rows: &[Row], sent: Instant, received: Instant) -> Taken {
        Taken {
            clock_s: rows
                .first()
                .and_then(|row| row.try_get(0).ok())
                .unwrap_or_default(),
            sent,
            received,
            lines: rows
                .iter()
                .map(|row| Line {
                    key: row.try_get(1).unwrap_or_default(),
                    label: row.try_get(2).unwrap_or_default(),
                    reset: row.try_get(3).unwrap_or_default(),
                    numbers: row.try_get(4).unwrap_or_default(),
                })
                .collect(),
        }
    }
}

/// A reading of nothing.
fn failed(error: &LinkError) -> Reading {
    let mut out = Reading::new(Instant::now(), None);
    out.gap("server", error);
    out
}
