//! Series of a server: counters as rates, gauges, and what sessions wait for. Asks within limits,
//! on a connection of its own, and never fails: what could not be had is a gap with its reason.
//!
//! Counters come with the server's clock, read in the same statement: an answer can wait for a CPU
//! on either side, and the time between two answers would then be another than between two
//! readings. Where that clock was set meanwhile, the instants of the answers are taken instead.

mod group;
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
use crate::error::ServerError;
use crate::version::Version;
use crate::wire::{LinkError, Row};
use group::{Column, Group, Kind, Pace};
use ledger::{Circumstances, Line, Part, ReportedGaps, Taken, grant_hint};
use link::{Answer, Link, Question};
pub use link::{NAME, OwnCommits};
use pgdyno_host::series::Reading;
use statements::{Place, Statements};
use std::time::Instant;
use table::{GROUPS, STATEMENTS};

/// A group that a role may not read is tried again after so many turns, for rights can be given.
const AGAIN_AFTER: u64 = 60;

/// All metrics that can be in a reading of a server, of whatever version, each with the source that
/// its gaps name.
pub fn metrics() -> impl Iterator<Item = (&'static str, &'static str)> {
    let groups = GROUPS.iter().chain([&STATEMENTS]);
    groups.flat_map(|group| {
        let shown = group.columns.iter().filter(|column| column.kind != Kind::Hidden);
        shown.map(|column| (column.metric, group.source))
    })
}

/// An error that concerns one group alone is met by asking each by itself; after so many turns they
/// are asked as one again.
const APART_FOR: u64 = 60;

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
    head: String,
    groups: Vec<Asked>,
    turn: u64,
    /// Up to this turn each group is asked by itself.
    apart_until: u64,
    /// The groups that were last asked as one, and that statement.
    together: (Vec<usize>, String),
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
    reported: ReportedGaps,
    is_version_reported: bool,
    statements: Statements,
}

impl ServerSeries {
    /// Connects (as application_name "pgdyno watch", without rights to write, each statement at
    /// most a second).
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
            reported: ReportedGaps::default(),
            is_version_reported: false,
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

    /// Counters as rates, and gauges. To be called once a second, ten times at most. Returns within
    /// about two seconds whatever the server does.
    pub fn tick(&mut self) -> Reading {
        self.read(|series| &mut series.tick)
    }

    /// The same for what changes slowly or is expensive to ask (sizes, ages, totals of
    /// pg_stat_statements): to be called every ten seconds. Its rates are of its own interval.
    pub fn seldom(&mut self) -> Reading {
        let missing = match self.totals {
            None => self.find_totals(),
            Some(_) => None,
        };
        let mut out = self.read(|series| &mut series.seldom);
        match missing {
            Some(reason) => self.reported.once(&mut out, STATEMENTS.source, &reason),
            None => self.reported.over(STATEMENTS.source),
        }
        out
    }

    /// Everything again, for a new connection: the server may be another one by now.
    fn begin(&mut self) {
        let version = self.link.version();
        let of = |is_tick: bool| {
            let mut round = Round {
                head: table::head(version),
                ..Round::default()
            };
            let groups = GROUPS
                .iter()
                .filter(|group| group.is_in(version) && (group.pace == Pace::Tick) == is_tick);
            groups.for_each(|group| round.add(group, version, |sql| sql));
            round
        };
        (self.tick, self.seldom) = (of(true), of(false));
        self.totals = None;
        self.generation = self.link.generation();
        self.reported.clear();
        self.is_version_reported = false;
    }

    /// Finds where pg_stat_statements is; or returns why it is not.
    fn find_totals(&mut self) -> Option<String> {
        let place = match Place::find(&mut self.link) {
            Ok(place) => place,
            // Reported with the reading.
            Err(StatementsMissing::Failed(_)) => return None,
            Err(missing) => return Some(missing.to_string()),
        };
        let version = self.link.version();
        self.seldom.add(&STATEMENTS, version, |sql| {
            sql.replace("{function}", &place.function()).replace(
                "(NULL)::float8, ARRAY",
                &format!("{}::float8, ARRAY", place.reset()),
            )
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
        let due = round(self).begin_turn();
        let (head, answers) = match self.ask(round, &due) {
            Ok(answers) => answers,
            Err(error) => return failed(&error),
        };
        let received = Instant::now();
        let since = round(self).at.filter(|_| !is_new);
        let mut out = Reading::new(received, since);
        match head {
            Ok(rows) => self.take_head(&rows, is_new, &mut out),
            Err(error) => out.gap("server", &error),
        }
        self.report_versions(&mut out);
        for (at, answer) in due.into_iter().zip(answers) {
            self.take(round, at, answer, (sent, received), &mut out);
        }
        round(self).at = Some(received);
        out
    }

    /// The answers of the head and of these groups: by one statement, or by one each where that one
    /// failed.
    fn ask(
        &mut self,
        round: fn(&mut ServerSeries) -> &mut Round,
        due: &[usize],
    ) -> Result<(Answer, Vec<Answer>), LinkError> {
        let turn = round(self).turn;
        if turn > round(self).apart_until {
            let sql = round(self).statement_of_all(due);
            let answer = self.link.ask(&sql, &[]);
            round(self).together = (due.to_vec(), sql);
            match answer {
                Ok(rows) => return Ok(by_group(rows, due)),
                Err(error) if error.is_end() => return Err(error),
                Err(error) => {
                    round(self).apart_until = turn + APART_FOR;
                    // What has taken all the time that there is cannot be asked once more.
                    if error.is_cancel() {
                        return Ok((Err(error.clone()), vec![Err(error); due.len()]));
                    }
                }
            }
        }
        let (head, sqls) = round(self).statements_of(due);
        let mut questions: Vec<Question<'_>> = vec![(&head, &[])];
        questions.extend(sqls.iter().map(|sql| (sql.as_str(), &[] as &[_])));
        let mut answers = self.link.ask_all(&questions)?.into_iter();
        let head = answers
            .next()
            .unwrap_or_else(|| Err(LinkError::Down("no answer".into())));
        Ok((head, answers.collect()))
    }

    /// Settings, and whether this is still the server that it was.
    fn take_head(&mut self, rows: &[Row], is_new: bool, out: &mut Reading) {
        let Some(row) = rows.first() else { return };
        let before = self.circumstances.started_s;
        let flags: Vec<f64> = row.try_get(5).unwrap_or_default();
        let flag = |at: usize| flags.get(at).is_some_and(|flag| *flag > 0.0);
        self.circumstances = Circumstances {
            started_s: row.try_get(1).unwrap_or_default(),
            io_timing: flag(0),
            wal_timing: flag(1),
            counts: flag(2),
            activities: flag(3),
            database: row.try_get(2).unwrap_or_default(),
            user: row.try_get(3).unwrap_or_default(),
        };
        if is_new {
            let is_restart = before.to_bits() != self.circumstances.started_s.to_bits();
            out.gap(
                "server",
                match is_restart {
                    true => "the server was restarted: counting begins again",
                    false => "the connection was lost: counting begins again",
                },
            );
        }
    }

    /// Reports what this version does not have, once.
    fn report_versions(&mut self, out: &mut Reading) {
        if std::mem::replace(&mut self.is_version_reported, true) {
            return;
        }
        let version = self.link.version();
        let reported: Vec<&str> = GROUPS
            .iter()
            .filter(|group| group.is_in(version))
            .flat_map(|group| group.columns)
            .filter(|column| column.is_in(version))
            .map(|column| column.metric)
            .collect();
        for (metric, _) in
            metrics().filter(|(metric, _)| !reported.contains(metric) && !metric.starts_with("statements."))
        {
            let reason = format!("PostgreSQL {} does not report it", version.major);
            self.reported.once(out, metric, &reason);
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
        let mut reported = std::mem::take(&mut self.reported);
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
                part.add_to(out, &mut reported);
                asked.before = Some(now);
            }
            Err(error) => {
                asked.before = None;
                let source = asked.group.source;
                match error.is_lasting() {
                    true => {
                        asked.from = turn + AGAIN_AFTER;
                        let reason = match error.is_refusal() {
                            true => format!("{error}; {}", grant_hint(asked.group.grant, &user)),
                            false => error.to_string(),
                        };
                        reported.once(out, source, &reason);
                    }
                    false => out.gap(source, &error),
                }
            }
        }
        self.reported = reported;
    }
}

impl Round {
    /// Takes in a group; `mend` completes its statement.
    fn add(&mut self, group: &'static Group, version: Version, mend: impl Fn(String) -> String) {
        self.groups.push(Asked {
            group,
            columns: group.columns_in(version),
            sql: mend(group.sql(self.groups.len(), version)),
            before: None,
            from: 0,
        });
    }

    /// The groups that are asked in the next turn.
    fn begin_turn(&mut self) -> Vec<usize> {
        self.turn += 1;
        let turn = self.turn;
        (0..self.groups.len())
            .filter(|at| self.groups[*at].is_due(turn))
            .collect()
    }

    /// The one statement; the same as last time where it is about the same groups.
    fn statement_of_all(&mut self, due: &[usize]) -> String {
        if self.together.0 == due && !self.together.1.is_empty() {
            return std::mem::take(&mut self.together.1);
        }
        let sqls: Vec<&str> = due.iter().map(|at| self.groups[*at].sql.as_str()).collect();
        table::together(&[&[self.head.as_str()], sqls.as_slice()].concat())
    }

    /// The head's statement and each group's.
    fn statements_of(&self, due: &[usize]) -> (String, Vec<String>) {
        let sqls = due.iter().map(|at| self.groups[*at].sql.clone());
        (self.head.clone(), sqls.collect())
    }
}

/// The answer of one statement as if each group had been asked by itself.
fn by_group(rows: Vec<Row>, due: &[usize]) -> (Answer, Vec<Answer>) {
    let mut head = Vec::new();
    let mut groups: Vec<Vec<Row>> = due.iter().map(|_| Vec::new()).collect();
    for row in rows {
        let number: i32 = row.try_get(0).unwrap_or(table::HEAD);
        match usize::try_from(number)
            .ok()
            .and_then(|at| due.binary_search(&at).ok())
        {
            Some(at) => groups[at].push(row),
            None => head.push(row),
        }
    }
    (Ok(head), groups.into_iter().map(Ok).collect())
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
                .and_then(|row| row.try_get(1).ok())
                .unwrap_or_default(),
            sent,
            received,
            lines: rows
                .iter()
                .map(|row| Line {
                    key: row.try_get(2).unwrap_or_default(),
                    label: row.try_get(3).unwrap_or_default(),
                    reset: row.try_get(4).unwrap_or_default(),
                    numbers: row.try_get(5).unwrap_or_default(),
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
