//! What sessions wait for: one sample of an active session history.

use super::ServerSeries;
use super::ledger::hidden_reason;
use pgdyno_host::series::Gap;
use std::time::Instant;
use tokio_postgres::Row;

/// What sessions were doing at one instant.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitSample {
    /// When.
    pub at: Instant,
    /// Sessions by what they wait for.
    pub counts: Vec<(WaitKey, u32)>,
    /// Why the sample is missing, or what is missing from it.
    pub gap: Option<Gap>,
}

/// What sessions can have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaitKey {
    /// Class of process as the server names it: "client backend", "checkpointer", "parallel worker".
    pub class: String,
    /// Kind of wait as the server names it ("Lock", "IO", "LWLock", "Client"); [`CPU`] for a session that is active and
    /// waits for nothing the server knows of.
    pub kind: String,
    /// What it waits for ("transactionid", "DataFileRead"); [`CPU`] again.
    pub event: String,
    /// The normalised statement, where the server computes such numbers (14 and later).
    pub query_id: Option<i64>,
}

/// Kind and event of a session that is active and waits for nothing.
pub const CPU: &str = "CPU";

/// Where the sample comes from.
const SOURCE: &str = "pg_stat_get_activity";

/// Sessions that do nothing are left out: client backends that are not active, and processes of the server in their
/// main loop (kind Activity). Grouped on the server: a row that is sent costs more than one that is counted.
fn sql(major: u32) -> &'static str {
    match major {
        ..=13 => {
            "SELECT backend_type, wait_event_type, wait_event, NULL::int8, count(*) \
             FROM pg_stat_get_activity(NULL) WHERE (state IS NULL OR state IN ('active', 'fastpath function call')) \
             AND pid <> pg_backend_pid() AND wait_event_type IS DISTINCT FROM 'Activity' GROUP BY 1, 2, 3, 4"
        }
        _ => {
            "SELECT backend_type, wait_event_type, wait_event, query_id, count(*) \
             FROM pg_stat_get_activity(NULL) WHERE (state IS NULL OR state IN ('active', 'fastpath function call')) \
             AND pid <> pg_backend_pid() AND wait_event_type IS DISTINCT FROM 'Activity' GROUP BY 1, 2, 3, 4"
        }
    }
}

impl ServerSeries {
    /// One sample of what each session waits for; to be taken at 10 Hz at most. Never fails: what is missing is its gap.
    pub fn sample_waits(&mut self) -> WaitSample {
        let mut sample = WaitSample {
            at: Instant::now(),
            counts: Vec::new(),
            gap: None,
        };
        let gap = |reason: String| {
            Some(Gap {
                source: SOURCE.to_owned(),
                reason,
            })
        };
        let sql = sql(self.link.version().major);
        match self.link.ask(sql, &[]) {
            Ok(rows) => {
                let mut hidden = 0;
                for row in &rows {
                    match counted(row) {
                        Some((Some(key), count)) => sample.counts.push((key, count)),
                        Some((None, count)) => hidden += count,
                        None => {}
                    }
                }
                if hidden > 0 {
                    let user = self.link.conninfo().user().to_owned();
                    sample.gap = gap(hidden_reason("sessions", "pg_read_all_stats", &user));
                } else if !self.circumstances.activities {
                    sample.gap = gap("track_activities is off".to_owned());
                }
            }
            Err(error) => sample.gap = gap(error.to_string()),
        }
        sample.at = Instant::now();
        sample
    }
}

/// A row as (key, sessions); without a key where this role may not see them.
fn counted(row: &Row) -> Option<(Option<WaitKey>, u32)> {
    let text = |at: usize| row.try_get::<_, Option<String>>(at).ok().flatten();
    let count = u32::try_from(row.try_get::<_, i64>(4).ok()?).unwrap_or(u32::MAX);
    let Some(class) = text(0) else {
        return Some((None, count));
    };
    let key = WaitKey {
        class,
        kind: text(1).unwrap_or_else(|| CPU.to_owned()),
        event: text(2).unwrap_or_else(|| CPU.to_owned()),
        query_id: row.try_get(3).ok()?,
    };
    Some((Some(key), count))
}
