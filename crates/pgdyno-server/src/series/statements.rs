//! pg_stat_statements: where it is, and how its statements grow between two looks.

use super::ServerSeries;
use super::link::Link;
use super::people::{HIDDEN, one_line};
use crate::error::ServerError;
use crate::own::is_own;
use crate::wire::{LinkError, Row};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Instant;

/// So many statements are handed on, the most expensive first.
const STATEMENTS_MAX: usize = 200;
/// So much of a statement's text.
const TEXT_CHARS: usize = 2000;
/// Texts that are kept between two looks.
const TEXTS_MAX: usize = 5000;

/// A normalised statement, as it grew since the look before. Times are of execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(
    missing_docs,
    reason = "named after the columns of pg_stat_statements, with the unit last"
)]
pub struct StatementRow {
    /// Number of the statement, as in pg_stat_activity; 0 for those of other roles, which are one
    /// row here.
    pub query_id: i64,
    /// Text with parameters in place of constants, cut.
    pub text: String,
    pub calls_per_s: f64,
    pub total_ms_per_s: f64,
    /// Mean time of the calls since the look before.
    pub mean_ms: f64,
    pub rows_per_s: f64,
    pub blocks_read_per_s: f64,
    pub blocks_hit_per_s: f64,
    pub blocks_dirtied_per_s: f64,
    pub blocks_written_per_s: f64,
    /// 0 while track_io_timing is off.
    pub read_ms_per_s: f64,
    /// 0 while track_io_timing is off.
    pub write_ms_per_s: f64,
    pub wal_records_per_s: f64,
    pub wal_bytes_per_s: f64,
    pub temp_blocks_per_s: f64,
    /// 0 while pg_stat_statements.track_planning is off.
    pub plans_per_s: f64,
    /// 0 while pg_stat_statements.track_planning is off.
    pub plan_ms_per_s: f64,
    /// Time of just-in-time compilation, with pg_stat_statements 1.10 (PostgreSQL 15) and later.
    pub jit_ms_per_s: Option<f64>,
    /// Calls of prepared statements with a plan for any values, with pg_stat_statements 1.13
    /// (PostgreSQL 19) and later.
    pub generic_plan_calls_per_s: Option<f64>,
    /// Calls of prepared statements with a plan for their values, with pg_stat_statements 1.13
    /// (PostgreSQL 19) and later.
    pub custom_plan_calls_per_s: Option<f64>,
}

impl StatementRow {
    /// Share of the calls with a plan for any values; `None` where plans are not counted, or there
    /// were none.
    pub fn generic_plan_ratio(&self) -> Option<f64> {
        let (generic, custom) = (self.generic_plan_calls_per_s?, self.custom_plan_calls_per_s?);
        (generic + custom > 0.0).then(|| generic / (generic + custom))
    }
}

/// Why statements cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StatementsMissing {
    /// The library is not there in the running server.
    #[error(
        "pg_stat_statements is not loaded: add it to shared_preload_libraries, restart, then CREATE EXTENSION \
         pg_stat_statements"
    )]
    NotLoaded,
    /// The extension is not in this database.
    #[error(
        "pg_stat_statements is not in this database: CREATE EXTENSION pg_stat_statements (its library must be in \
         shared_preload_libraries)"
    )]
    NotCreated,
    /// The role may not see them; holds the statement that would change that.
    #[error("pg_stat_statements may not be read by this role; {0}")]
    Refused(String),
    /// The statement failed for another reason.
    #[error(transparent)]
    Failed(#[from] ServerError),
}

/// Schema and version of the extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Name of the schema, quoted.
    schema: String,
    /// Minor version of the extension: 10 of 1.10.
    minor: u32,
}

impl Place {
    /// The function, quoted where it must be.
    pub(super) fn function(&self) -> String {
        format!("{}.pg_stat_statements", self.schema)
    }

    /// When all were reset, plus one for each time that some were thrown out; as the extension
    /// reports it from 1.9 on.
    pub(super) fn reset(&self) -> String {
        match self.minor {
            ..=8 => "NULL".to_owned(),
            _ => format!(
                "(SELECT date_part('epoch', stats_reset) + dealloc FROM {}.pg_stat_statements_info)",
                self.schema
            ),
        }
    }

    /// Looks for the extension in the connected database.
    pub(super) fn find(link: &mut Link) -> Result<Place, StatementsMissing> {
        let sql = "SELECT quote_ident(n.nspname), extversion FROM pg_extension e \
                   JOIN pg_namespace n ON n.oid = e.extnamespace WHERE extname = 'pg_stat_statements'";
        let rows = link
            .ask(sql, &[])
            .map_err(|error| error.into_server_error("looking for pg_stat_statements"))?;
        let row = rows.first().ok_or(StatementsMissing::NotCreated)?;
        let version: String = row.try_get(1).unwrap_or_default();
        let minor = version.split('.').nth(1).and_then(|minor| minor.parse().ok());
        Ok(Place {
            schema: row.try_get(0).unwrap_or_default(),
            minor: minor.unwrap_or_default(),
        })
    }
}

/// The reason behind an error of the extension.
pub(super) fn missing(error: LinkError, user: &str) -> StatementsMissing {
    match &error {
        LinkError::Said { sqlstate, .. } if sqlstate == "55000" => StatementsMissing::NotLoaded,
        LinkError::Said { sqlstate, .. } if sqlstate == "42883" || sqlstate == "42P01" => {
            StatementsMissing::NotCreated
        }
        _ if error.is_refusal() => StatementsMissing::Refused(grant(user)),
        _ => StatementsMissing::Failed(error.into_server_error("reading pg_stat_statements")),
    }
}

fn grant(user: &str) -> String {
    super::ledger::grant_hint("pg_read_all_stats", user)
}

/// What is counted of each statement, in the order of [`row_of`].
const COUNTERS: usize = 17;

/// What was there at the look before.
#[derive(Default)]
pub(super) struct Statements {
    place: Option<Place>,
    generation: u64,
    before: Option<(Instant, HashMap<i64, [f64; COUNTERS]>)>,
    texts: BTreeMap<i64, String>,
}

impl fmt::Debug for Statements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} statements",
            self.before.as_ref().map_or(0, |(_, known)| known.len())
        )
    }
}

impl ServerSeries {
    /// The growth of each statement but our own since the call before, the most expensive first;
    /// none at the first call. Reads the texts of those alone that it hands on and has not seen.
    pub fn statements(&mut self) -> Result<Vec<StatementRow>, StatementsMissing> {
        let user = self.link.conninfo().user().to_owned();
        let place = match (
            &self.statements.place,
            self.statements.generation == self.link.generation(),
        ) {
            (Some(place), true) => place.clone(),
            _ => {
                let place = Place::find(&mut self.link)?;
                self.statements = Statements {
                    place: Some(place.clone()),
                    generation: self.link.generation(),
                    ..Statements::default()
                };
                place
            }
        };
        let rows = self.link.ask(&counters_sql(&place), &[]).map_err(|error| {
            self.statements.place = None;
            missing(error, &user)
        })?;
        let at = Instant::now();
        let now: HashMap<i64, [f64; COUNTERS]> = rows.iter().map(|row| (id_of(row), row_of(row))).collect();
        if now.len() == 1 && now.contains_key(&0) && rows.iter().all(|row| id_of(row) == 0) {
            return Err(StatementsMissing::Refused(grant(&user)));
        }
        let before = self.statements.before.replace((at, now));
        let Some((since, before)) = before else {
            return Ok(Vec::new());
        };
        let interval_s = at.duration_since(since).as_secs_f64();
        let Some((_, now)) = &self.statements.before else {
            return Ok(Vec::new());
        };
        let mut grown: Vec<StatementRow> = now
            .iter()
            .filter_map(|(id, now)| {
                // One that is new since then counts from zero.
                let zero = [0.0; COUNTERS];
                growth(*id, before.get(id).unwrap_or(&zero), now, interval_s, place.minor)
            })
            .collect();
        grown.sort_by(|a, b| b.total_ms_per_s.total_cmp(&a.total_ms_per_s));
        grown.truncate(STATEMENTS_MAX);
        self.add_texts(&place, &mut grown)
            .map_err(|error| missing(error, &user))?;
        Ok(grown)
    }

    fn add_texts(&mut self, place: &Place, rows: &mut Vec<StatementRow>) -> Result<(), LinkError> {
        let texts = &mut self.statements.texts;
        if texts.len() > TEXTS_MAX {
            texts.clear();
        }
        let others = format!(
            "statements of other roles; {} shows them",
            grant(self.link.conninfo().user())
        );
        texts.insert(0, others);
        let unknown: Vec<i64> = rows
            .iter()
            .map(|row| row.query_id)
            .filter(|id| !texts.contains_key(id))
            .collect();
        if !unknown.is_empty() {
            let sql = format!(
                "SELECT DISTINCT ON (queryid) queryid, left(query, {}) FROM {}(true) WHERE queryid = ANY($1)",
                2 * TEXT_CHARS,
                place.function()
            );
            for row in self.link.ask(&sql, &[&unknown])? {
                if let (Ok(id), Ok(Some(text))) = (row.try_get::<i64>(0), row.try_get::<Option<String>>(1)) {
                    texts.insert(id, one_line(&text, TEXT_CHARS));
                }
            }
        }
        for row in rows.iter_mut() {
            row.text = texts.get(&row.query_id).cloned().unwrap_or_default();
            if row.text == HIDDEN {
                row.text.clear();
            }
        }
        rows.retain(|row| !is_own(&row.text));
        Ok(())
    }
}

fn counters_sql(place: &Place) -> String {
    let (read, write) = match place.minor {
        ..=10 => ("blk_read_time", "blk_write_time"),
        _ => ("shared_blk_read_time", "shared_blk_write_time"),
    };
    let jit = match place.minor {
        ..=9 => "0",
        _ => "jit_generation_time + jit_inlining_time + jit_optimization_time + jit_emission_time",
    };
    let (generic, custom) = match place.minor {
        ..=12 => ("0", "0"),
        _ => ("generic_plan_calls", "custom_plan_calls"),
    };
    let numbers = [
        "calls",
        "total_exec_time",
        "rows",
        "shared_blks_read",
        "shared_blks_hit",
        "shared_blks_dirtied",
        "shared_blks_written",
        read,
        write,
        "wal_records",
        "wal_bytes",
        "temp_blks_read + temp_blks_written",
        "plans",
        "total_plan_time",
        jit,
        generic,
        custom,
    ]
    .map(|number| format!("coalesce(sum({number})::float8, 0)"))
    .join(", ");
    format!(
        "SELECT coalesce(queryid, 0), ARRAY[{numbers}] FROM {}(false) GROUP BY 1",
        place.function()
    )
}

fn id_of(row: &Row) -> i64 {
    row.try_get(0).unwrap_or_default()
}

fn row_of(row: &Row) -> [f64; COUNTERS] {
    let numbers: Vec<f64> = row.try_get(1).unwrap_or_default();
    let mut counters = [0.0; COUNTERS];
    for (counter, number) in counters.iter_mut().zip(numbers) {
        *counter = number;
    }
    counters
}

/// `None` where nothing was called, or the entry was thrown out or reset meanwhile.
fn growth(
    query_id: i64,
    before: &[f64; COUNTERS],
    now: &[f64; COUNTERS],
    interval_s: f64,
    minor: u32,
) -> Option<StatementRow> {
    let mut grown = [0.0; COUNTERS];
    for ((grown, before), now) in grown.iter_mut().zip(before).zip(now) {
        *grown = now - before;
        if *grown < 0.0 {
            return None;
        }
    }
    let [
        calls,
        total,
        rows,
        read,
        hit,
        dirtied,
        written,
        read_ms,
        write_ms,
        records,
        bytes,
        temp,
        plans,
        plan,
        jit,
        generic,
        custom,
    ] = grown;
    if (calls <= 0.0 && plans <= 0.0) || interval_s <= 0.0 {
        return None;
    }
    Some(StatementRow {
        query_id,
        text: String::new(),
        calls_per_s: calls / interval_s,
        total_ms_per_s: total / interval_s,
        mean_ms: if calls > 0.0 { total / calls } else { 0.0 },
        rows_per_s: rows / interval_s,
        blocks_read_per_s: read / interval_s,
        blocks_hit_per_s: hit / interval_s,
        blocks_dirtied_per_s: dirtied / interval_s,
        blocks_written_per_s: written / interval_s,
        read_ms_per_s: read_ms / interval_s,
        write_ms_per_s: write_ms / interval_s,
        wal_records_per_s: records / interval_s,
        wal_bytes_per_s: bytes / interval_s,
        temp_blocks_per_s: temp / interval_s,
        plans_per_s: plans / interval_s,
        plan_ms_per_s: plan / interval_s,
        jit_ms_per_s: (minor >= 10).then_some(jit / interval_s),
        generic_plan_calls_per_s: (minor >= 13).then_some(generic / interval_s),
        custom_plan_calls_per_s: (minor >= 13).then_some(custom / interval_s),
    })
}
