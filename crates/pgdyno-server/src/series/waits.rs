//! What sessions wait for: one sample of an active session history.

use super::ServerSeries;
use super::ledger::hidden_reason;
use crate::wire::Row;
use pgdyno_host::series::Gap;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// What sessions were doing at one instant.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitSample {
    /// Instant at which the sample was taken.
    pub at: Instant,
    /// Sessions by what they wait for.
    pub counts: Vec<(WaitKey, u32)>,
    /// Why the sample is missing, or what is missing from it.
    pub gap: Option<Gap>,
}

/// What sessions can have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitKey {
    /// Class of process as the server names it: "client backend", "checkpointer", "parallel
    /// worker".
    pub class: String,
    /// Kind of wait as the server names it ("Lock", "IO", "LWLock", "Client"); [`CPU`] for a
    /// session that is active and waits for nothing that the server reports.
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

/// Sessions that do nothing are omitted: client backends that are not active, and processes of the
/// server in their main loop (kind Activity). Not grouped there: that takes the server as long as
/// to send a hundred rows, and longer than to send a few.
fn sql(major: u32) -> &'static str {
    match major {
        ..=13 => {
            "SELECT backend_type, wait_event_type, wait_event, NULL::int8 \
             FROM pg_stat_get_activity(NULL) WHERE (state IS NULL OR state IN ('active', 'fastpath function call')) \
             AND pid <> pg_backend_pid() AND wait_event_type IS DISTINCT FROM 'Activity'"
        }
        _ => {
            "SELECT backend_type, wait_event_type, wait_event, query_id \
             FROM pg_stat_get_activity(NULL) WHERE (state IS NULL OR state IN ('active', 'fastpath function call')) \
             AND pid <> pg_backend_pid() AND wait_event_type IS DISTINCT FROM 'Activity'"
        }
    }
}

impl ServerSeries {
    /// One sample of what each session waits for; to be taken at 10 Hz at most. Never fails: what
    /// is missing is its gap.
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
                for (row, count) in alike(&rows) {
                    match key_of(row) {
                        Some(key) => sample.counts.push((key, count)),
                        // This role may not see it.
                        None => hidden += count,
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

/// Rows that say the same, with their number. Their bytes are compared: few of a hundred differ.
fn alike(rows: &[Row]) -> Vec<(&Row, u32)> {
    let mut known: Vec<(&Row, u32)> = Vec::new();
    for row in rows {
        match known.iter_mut().find(|(other, _)| other.bytes() == row.bytes()) {
            Some((_, count)) => *count += 1,
            None => known.push((row, 1)),
        }
    }
    known
}

fn key_of(row: &Row) -> Option<WaitKey> {
    let text = |at: usize| row.try_get::<Option<String>>(at).ok().flatten();
    Some(WaitKey {
        class: text(0)?,
        kind: text(1).unwrap_or_else(|| CPU.to_owned()),
        event: text(2).unwrap_or_else(|| CPU.to_owned()),
        query_id: row.try_get(3).ok()?,
    })
}
