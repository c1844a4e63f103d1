//! What is asked at each tick, by version of the server: the one table of the statements behind the
//! metrics.
//!
//! Sources: PostgreSQL documentation, "The Cumulative Statistics System", and the system_views.sql
//! of 13 to 18.

use super::group::{Emit, GROUP, Group, IO_TIMING, Kind, Pace, WAL_TIMING, column, gauge, rate, timed};
use crate::version::Version;

/// The end of WAL: what is written here, or what is replayed of what was written elsewhere.
macro_rules! wal_end {
    () => {
        "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END"
    };
}

const RESET: &str = "date_part('epoch', stats_reset)";

/// All groups of all versions, but pg_stat_statements, whose place and columns depend on the
/// extension.
pub(super) const GROUPS: &[Group] = &[
    Group {
        source: "pg_stat_database",
        key: "datid",
        label: "coalesce(datname, '')",
        reset: RESET,
        from: "FROM pg_stat_database",
        emit: Emit::OwnAndAll,
        needs_counts: true,
        is_new_from_zero: true,
        columns: &[
            gauge("db.connections", "numbackends"),
            rate("db.commits_per_s", "xact_commit"),
            rate("db.rollbacks_per_s", "xact_rollback"),
            rate("db.blocks_read_per_s", "blks_read"),
            rate("db.blocks_hit_per_s", "blks_hit"),
            rate("db.rows_returned_per_s", "tup_returned"),
            rate("db.rows_fetched_per_s", "tup_fetched"),
            rate("db.rows_inserted_per_s", "tup_inserted"),
            rate("db.rows_updated_per_s", "tup_updated"),
            rate("db.rows_deleted_per_s", "tup_deleted"),
            rate("db.conflicts_per_s", "conflicts"),
            rate("db.temp_files_per_s", "temp_files"),
            rate("db.temp_bytes_per_s", "temp_bytes"),
            rate("db.deadlocks_per_s", "deadlocks"),
            rate("db.checksum_failures_per_s", "coalesce(checksum_failures, 0)"),
            timed("db.read_ms_per_s", "blk_read_time"),
            timed("db.write_ms_per_s", "blk_write_time"),
            rate("db.session_ms_per_s", "session_time").since(14),
            rate("db.active_ms_per_s", "active_time").since(14),
            rate("db.idle_in_transaction_ms_per_s", "idle_in_transaction_time").since(14),
            rate("db.sessions_per_s", "sessions").since(14),
            rate("db.sessions_abandoned_per_s", "sessions_abandoned").since(14),
            rate("db.sessions_fatal_per_s", "sessions_fatal").since(14),
            rate("db.sessions_killed_per_s", "sessions_killed").since(14),
            rate("db.parallel_workers_wanted_per_s", "parallel_workers_to_launch").since(18),
            rate("db.parallel_workers_launched_per_s", "parallel_workers_launched").since(18),
        ],
        ..GROUP
    },
    Group {
        source: "pg_stat_bgwriter",
        reset: RESET,
        from: "FROM pg_stat_bgwriter",
        columns: &[
            rate("checkpoints.timed_per_s", "checkpoints_timed").until(16),
            rate("checkpoints.requested_per_s", "checkpoints_req").until(16),
            rate("checkpoints.write_ms_per_s", "checkpoint_write_time").until(16),
            rate("checkpoints.sync_ms_per_s", "checkpoint_sync_time").until(16),
            rate("checkpoints.blocks_written_per_s", "buffers_checkpoint").until(16),
            rate("bgwriter.blocks_written_per_s", "buffers_clean"),
            rate("bgwriter.stops_per_s", "maxwritten_clean"),
            rate("bgwriter.blocks_allocated_per_s", "buffers_alloc"),
            rate("bgwriter.backend_blocks_written_per_s", "buffers_backend").until(16),
            rate("bgwriter.backend_syncs_per_s", "buffers_backend_fsync").until(16),
        ],
        ..GROUP
    },
    Group {
        source: "pg_stat_checkpointer",
        since: 17,
        reset: RESET,
        from: "FROM pg_stat_checkpointer",
        columns: &[
            rate("checkpoints.timed_per_s", "num_timed"),
            rate("checkpoints.requested_per_s", "num_requested"),
            rate("checkpoints.done_per_s", "num_done").since(18),
            rate("checkpoints.restartpoints_done_per_s", "restartpoints_done"),
            rate("checkpoints.write_ms_per_s", "write_time"),
            rate("checkpoints.sync_ms_per_s", "sync_time"),
            rate("checkpoints.blocks_written_per_s", "buffers_written"),
            rate("checkpoints.slru_written_per_s", "slru_written").since(18),
        ],
        ..GROUP
    },
    Group {
        source: "pg_stat_wal",
        since: 14,
        reset: RESET,
        from: "FROM pg_stat_wal",
        timing: WAL_TIMING,
        columns: &[
            rate("wal.records_per_s", "wal_records"),
            rate("wal.full_page_images_per_s", "wal_fpi"),
            rate("wal.full_page_image_bytes_per_s", "wal_fpi_bytes").since(19),
            rate("wal.bytes_per_s", "wal_bytes"),
            rate("wal.buffers_full_per_s", "wal_buffers_full"),
            rate("wal.writes_per_s", "wal_write").until(17),
            rate("wal.syncs_per_s", "wal_sync").until(17),
            timed("wal.write_ms_per_s", "wal_write_time").until(17),
            timed("wal.sync_ms_per_s", "wal_sync_time").until(17),
        ],
        ..GROUP
    },
    Group {
        source: "pg_stat_archiver",
        pace: Pace::Seldom(1),
        reset: RESET,
        from: "FROM pg_stat_archiver",
        columns: &[
            rate("wal.archived_per_s", "archived_count"),
            rate("wal.archive_failures_per_s", "failed_count"),
        ],
        ..GROUP
    },
    Group {
        source: "WAL position",
        null_reason: "this is not a standby, or it has replayed nothing",
        is_snapshot: false,
        // What is replayed is not compared with what is written.
        key: "pg_is_in_recovery()",
        columns: &[
            rate(
                "wal.position_bytes_per_s",
                concat!("(", wal_end!(), ") - '0/0'::pg_lsn"),
            ),
            rate(
                "db.transaction_ids_per_s",
                "pg_snapshot_xmax(pg_current_snapshot())::text",
            ),
            gauge(
                "replication.replay_behind_bytes",
                "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() - pg_last_wal_replay_lsn() END",
            ),
            gauge(
                "replication.replay_age_s",
                "CASE WHEN pg_is_in_recovery() \
                 THEN date_part('epoch', clock_timestamp() - pg_last_xact_replay_timestamp()) END",
            ),
        ],
        ..GROUP
    },
    Group {
        source: "pg_stat_io",
        since: 16,
        key: IO_LABEL,
        label: IO_LABEL,
        reset: RESET,
        from: IO_FROM,
        is_new_from_zero: true,
        columns: &[
            rate("io.reads_per_s", "reads"),
            rate("io.read_bytes_per_s", "reads * op_bytes").until(17),
            rate("io.read_bytes_per_s", "read_bytes").since(18),
            timed("io.read_ms_per_s", "read_time"),
            rate("io.writes_per_s", "writes"),
            rate("io.write_bytes_per_s", "writes * op_bytes").until(17),
            rate("io.write_bytes_per_s", "write_bytes").since(18),
            timed("io.write_ms_per_s", "write_time"),
            rate("io.writebacks_per_s", "writebacks"),
            rate("io.extends_per_s", "extends"),
            rate("io.extend_bytes_per_s", "extends * op_bytes").until(17),
            rate("io.extend_bytes_per_s", "extend_bytes").since(18),
            rate("io.hits_per_s", "hits"),
            rate("io.evictions_per_s", "evictions"),
            rate("io.reuses_per_s", "reuses"),
            rate("io.syncs_per_s", "fsyncs"),
            timed("io.sync_ms_per_s", "fsync_time"),
        ],
        ..GROUP
    },
    Group {
        source: "pg_stat_io of WAL",
        since: 18,
        reset: "date_part('epoch', max(stats_reset))",
        from: "FROM pg_stat_io WHERE object = 'wal' AND context = 'normal'",
        timing: WAL_TIMING,
        columns: &[
            rate("wal.writes_per_s", "sum(writes)"),
            rate("wal.syncs_per_s", "sum(fsyncs)"),
            timed("wal.write_ms_per_s", "sum(write_time)"),
            timed("wal.sync_ms_per_s", "sum(fsync_time)"),
        ],
        ..GROUP
    },
    Group {
        source: "pg_stat_slru",
        pace: Pace::Seldom(1),
        key: "name",
        label: "name",
        reset: RESET,
        from: "FROM pg_stat_slru",
        columns: &[
            rate("slru.zeroed_per_s", "blks_zeroed"),
            rate("slru.hits_per_s", "blks_hit"),
            rate("slru.reads_per_s", "blks_read"),
            rate("slru.writes_per_s", "blks_written"),
        ],
        ..GROUP
    },
    Group {
        source: "pg_stat_lock",
        since: 19,
        key: "locktype",
        label: "locktype",
        reset: RESET,
        from: "FROM pg_stat_lock WHERE waits + fastpath_exceeded > 0",
        is_new_from_zero: true,
        empty_reason: "no lock was waited for longer than deadlock_timeout",
        columns: &[
            rate("locks.waits_per_s", "waits"),
            rate("locks.wait_ms_per_s", "wait_time"),
            rate("locks.fast_path_exceeded_per_s", "fastpath_exceeded"),
        ],
        ..GROUP
    },
    Group {
        source: "pg_stat_get_activity",
        is_snapshot: false,
        // The view would look up a name for every row. Lock waits are from the sessions themselves:
        // pg_locks would stop the whole lock table for a moment.
        from: "FROM pg_stat_get_activity(NULL) WHERE pid <> pg_backend_pid()",
        columns: &[
            column(
                "sessions",
                "count(*) FILTER (WHERE backend_type IS NULL)",
                Kind::Hidden,
            ),
            gauge(
                "sessions.clients",
                "count(*) FILTER (WHERE backend_type = 'client backend')",
            ),
            gauge(
                "sessions.active",
                "count(*) FILTER (WHERE backend_type = 'client backend' AND state = 'active')",
            ),
            gauge("sessions.idle", "count(*) FILTER (WHERE state = 'idle')"),
            gauge(
                "sessions.idle_in_transaction",
                "count(*) FILTER (WHERE state IN ('idle in transaction', 'idle in transaction (aborted)'))",
            ),
            gauge(
                "sessions.waiting_for_lock",
                "count(*) FILTER (WHERE wait_event_type = 'Lock')",
            ),
            gauge(
                "sessions.parallel_workers",
                "count(*) FILTER (WHERE backend_type = 'parallel worker')",
            ),
            gauge(
                "sessions.oldest_transaction_s",
                "coalesce(date_part('epoch', clock_timestamp() - min(xact_start) \
                 FILTER (WHERE backend_type = 'client backend')), 0)",
            ),
            gauge(
                "sessions.oldest_statement_s",
                "coalesce(date_part('epoch', clock_timestamp() - min(query_start) \
                 FILTER (WHERE backend_type = 'client backend' AND state = 'active')), 0)",
            ),
            gauge("sessions.oldest_xmin_age", "coalesce(max(age(backend_xmin)), 0)"),
            gauge(
                "vacuum.autovacuum_workers",
                "count(*) FILTER (WHERE backend_type = 'autovacuum worker')",
            ),
        ],
        ..GROUP
    },
    Group {
        source: "pg_stat_progress_vacuum",
        is_snapshot: false,
        pace: Pace::Seldom(1),
        from: "FROM pg_stat_get_progress_info('VACUUM')",
        columns: &[
            column("vacuums", "count(*) FILTER (WHERE relid IS NULL)", Kind::Hidden),
            gauge("vacuum.running", "count(*)"),
            gauge("vacuum.blocks_left", "coalesce(sum(param2 - param3), 0)"),
        ],
        ..GROUP
    },
    Group {
        source: "pg_database",
        is_snapshot: false,
        pace: Pace::Seldom(1),
        from: "FROM pg_database",
        columns: &[
            gauge("vacuum.transaction_id_age", "max(age(datfrozenxid))"),
            gauge("vacuum.multixact_age", "max(mxid_age(datminmxid))"),
        ],
        ..GROUP
    },
    Group {
        source: "pg_stat_replication",
        empty_reason: "no standby is connected",
        null_reason: "no standby has reported it lately",
        is_snapshot: false,
        key: "w.pid",
        label: "coalesce((SELECT application_name FROM pg_stat_get_activity(w.pid)), '') || ' ' || w.pid",
        from: concat!(
            "FROM pg_stat_get_wal_senders() w, (SELECT ",
            wal_end!(),
            " AS lsn) here"
        ),
        columns: &[
            column("standbys", "(w.state IS NULL)::int", Kind::Hidden),
            gauge("replication.sent_behind_bytes", "here.lsn - w.sent_lsn"),
            gauge("replication.write_behind_bytes", "here.lsn - w.write_lsn"),
            gauge("replication.flush_behind_bytes", "here.lsn - w.flush_lsn"),
            gauge("replication.replay_behind_bytes", "here.lsn - w.replay_lsn"),
            gauge(
                "replication.write_lag_ms",
                "date_part('epoch', w.write_lag) * 1000",
            ),
            gauge(
                "replication.flush_lag_ms",
                "date_part('epoch', w.flush_lag) * 1000",
            ),
            gauge(
                "replication.replay_lag_ms",
                "date_part('epoch', w.replay_lag) * 1000",
            ),
        ],
        ..GROUP
    },
    Group {
        source: "pg_replication_slots",
        empty_reason: "there are no replication slots",
        null_reason: "no slot holds WAL back",
        is_snapshot: false,
        pace: Pace::Seldom(1),
        key: "slot_name",
        label: "slot_name",
        from: concat!(
            "FROM pg_get_replication_slots(), (SELECT ",
            wal_end!(),
            " AS lsn) here"
        ),
        columns: &[gauge("replication.slot_retained_bytes", "here.lsn - restart_lsn")],
        ..GROUP
    },
    Group {
        source: "pg_ls_waldir()",
        is_snapshot: false,
        pace: Pace::Seldom(3),
        from: "FROM pg_ls_waldir()",
        grant: "pg_monitor",
        columns: &[
            gauge("wal.files", "count(*)"),
            gauge("wal.size_bytes", "coalesce(sum(size), 0)"),
        ],
        ..GROUP
    },
];

/// The totals of pg_stat_statements, without its texts: those are read from a file. `{function}` is
/// where it is.
pub(super) const STATEMENTS: Group = Group {
    source: "pg_stat_statements",
    is_snapshot: false,
    pace: Pace::Seldom(1),
    from: "FROM {function}(false)",
    reset_reason: "the statistics were reset, or statements fell out of them",
    columns: &[
        gauge("statements.known", "count(*)"),
        rate("statements.calls_per_s", "coalesce(sum(calls), 0)"),
        rate("statements.total_ms_per_s", "coalesce(sum(total_exec_time), 0)"),
        rate("statements.rows_per_s", "coalesce(sum(rows), 0)"),
        rate("statements.blocks_hit_per_s", "coalesce(sum(shared_blks_hit), 0)"),
        rate(
            "statements.blocks_read_per_s",
            "coalesce(sum(shared_blks_read), 0)",
        ),
        rate(
            "statements.blocks_dirtied_per_s",
            "coalesce(sum(shared_blks_dirtied), 0)",
        ),
        rate(
            "statements.blocks_written_per_s",
            "coalesce(sum(shared_blks_written), 0)",
        ),
        rate(
            "statements.temp_blocks_per_s",
            "coalesce(sum(temp_blks_read + temp_blks_written), 0)",
        ),
        rate("statements.wal_records_per_s", "coalesce(sum(wal_records), 0)"),
        rate("statements.wal_bytes_per_s", "coalesce(sum(wal_bytes), 0)"),
    ],
    ..GROUP
};

const IO_LABEL: &str = "backend_type || '/' || object || '/' || context";
/// Most of its rows stay at zero for ever.
const IO_FROM: &str = "FROM pg_stat_io WHERE coalesce(reads, 0) + coalesce(writes, 0) + coalesce(extends, 0) \
                       + coalesce(hits, 0) + coalesce(fsyncs, 0) + coalesce(writebacks, 0) > 0";

/// The number of the head among the groups.
pub(super) const HEAD: i32 = -1;

/// What is asked before all groups, in their columns: since when the server runs for the clock, the
/// database for the key, the role for the label, and for numbers whether times are counted, and
/// rows, and sessions report what they do.
pub(super) fn head(version: Version) -> String {
    let is_on = |setting| format!("(current_setting('{setting}') = 'on')::int::float8");
    let wal_timing = match version.major {
        ..=13 => "0".to_owned(),
        _ => is_on(WAL_TIMING),
    };
    format!(
        "SELECT {HEAD}, date_part('epoch', pg_postmaster_start_time()), current_database()::text, current_user::text, \
         NULL::float8, ARRAY[{}, {wal_timing}, {}, {}]",
        is_on(IO_TIMING),
        is_on("track_counts"),
        is_on("track_activities"),
    )
}

/// Several statements of groups as one: a transaction, an answer and a wake-up of either side
/// instead of many.
pub(super) fn together(statements: &[&str]) -> String {
    statements.join(" UNION ALL ")
}
