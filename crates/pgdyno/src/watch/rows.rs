//! Rows of what people look at, as the series of the server hand them on.
#![allow(dead_code, reason = "until the series of the server are read")]

use pgdyno_host::series::Gap;
use std::time::Instant;

/// What sessions waited for at one instant.
#[derive(Debug, Clone)]
pub(crate) struct WaitSample {
    pub(crate) at: Instant,
    pub(crate) counts: Vec<(WaitKey, u32)>,
    pub(crate) gap: Option<Gap>,
}

/// One thing waited for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WaitKey {
    /// Class of process: "client backend" and the like.
    pub(crate) class: String,
    /// wait_event_type; "CPU" for a session that is active and waits for nothing.
    pub(crate) kind: String,
    pub(crate) event: String,
    pub(crate) query_id: Option<i64>,
}

/// A session.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionRow {
    pub(crate) pid: i32,
    pub(crate) user: Option<String>,
    pub(crate) database: Option<String>,
    pub(crate) application: Option<String>,
    pub(crate) client: Option<String>,
    pub(crate) state: Option<String>,
    pub(crate) wait: Option<(String, String)>,
    pub(crate) query_id: Option<i64>,
    pub(crate) statement: Option<String>,
    pub(crate) query_age_s: Option<f64>,
    pub(crate) xact_age_s: Option<f64>,
    pub(crate) state_age_s: Option<f64>,
    pub(crate) blocked_by: Vec<i32>,
    pub(crate) backend_type: String,
}

/// A normalised statement and what it did in the last interval.
#[derive(Debug, Clone, Default)]
pub(crate) struct StatementRow {
    pub(crate) query_id: i64,
    pub(crate) text: String,
    pub(crate) calls_per_s: f64,
    pub(crate) total_ms_per_s: f64,
    pub(crate) mean_ms: f64,
    pub(crate) rows_per_s: f64,
    pub(crate) blocks_read_per_s: f64,
    pub(crate) blocks_hit_per_s: f64,
    pub(crate) blocks_dirtied_per_s: f64,
    pub(crate) blocks_written_per_s: f64,
    pub(crate) read_ms_per_s: f64,
    pub(crate) write_ms_per_s: f64,
    pub(crate) wal_records_per_s: f64,
    pub(crate) wal_bytes_per_s: f64,
    pub(crate) temp_blocks_per_s: f64,
}

/// A vacuum that goes on.
#[derive(Debug, Clone, Default)]
pub(crate) struct VacuumRow {
    pub(crate) pid: i32,
    pub(crate) database: String,
    pub(crate) table: String,
    pub(crate) phase: String,
    pub(crate) heap_total: u64,
    pub(crate) heap_scanned: u64,
    pub(crate) heap_vacuumed: u64,
    pub(crate) index_passes: u64,
    pub(crate) dead: u64,
    pub(crate) age_s: Option<f64>,
    pub(crate) is_auto: bool,
}

/// Transaction-id age of a database.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgeRow {
    pub(crate) database: String,
    pub(crate) xid_age: u64,
    pub(crate) multixact_age: u64,
    pub(crate) freeze_max_age: u64,
}
