//! Every statement that facts are asked with, by version: one table. Each gives one row with one
//! JSON object, whose keys are the names of facts; a version that reports a thing otherwise has a
//! row of its own.

use super::schema;
use super::settings::START_IN_FILES;
use super::statement::{CATALOG, LIGHT, Need, Statement};
use super::texts::{SIZES_OF_RELATIONS, TABLE_ACTIVITY, UNUSED_INDEXES};

/// What pg_stat_wal reports, by itself or with pg_stat_io.
const WAL: &[&str] = &[
    "wal.records",
    "wal.full_page_images",
    "wal.bytes",
    "wal.bytes_per_s",
    "wal.buffers_full",
    "wal.writes",
    "wal.syncs",
    "wal.since",
];

/// Statements by which facts of a server are read, with the names that each gives.
pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        name: "server",
        source: "pg_postmaster_start_time(), pg_database",
        facts: &[
            "server.started",
            "server.uptime_s",
            "server.in_recovery",
            "server.database",
            "server.encoding",
            "server.collation",
        ],
        sql: "SELECT json_build_object( \
            'server.started', pg_postmaster_start_time(), \
            'server.uptime_s', extract(epoch FROM now() - pg_postmaster_start_time())::int8, \
            'server.in_recovery', pg_is_in_recovery(), \
            'server.database', datname, \
            'server.encoding', pg_encoding_to_char(encoding), \
            'server.collation', datcollate) \
            FROM pg_database WHERE datname = current_database()",
        ..LIGHT
    },
    Statement {
        name: "system",
        source: "pg_control_system()",
        facts: &["server.system_identifier"],
        // As text: it is beyond what every reader of JSON takes for a whole number.
        sql: "SELECT json_build_object('server.system_identifier', system_identifier::text) FROM pg_control_system()",
        ..LIGHT
    },
    Statement {
        name: "jit",
        source: "pg_jit_available() with jit = on",
        facts: &["jit.available"],
        // The function says false as long as jit is off, which it is in a question; what follows is
        // not to be compiled.
        sql: "WITH j AS MATERIALIZED (SELECT set_config('jit', 'on', true)), \
            a AS MATERIALIZED (SELECT pg_jit_available() AS available FROM j), \
            o AS MATERIALIZED (SELECT available, set_config('jit', 'off', true) FROM a) \
            SELECT json_build_object('jit.available', available) FROM o",
        ..LIGHT
    },
    Statement {
        name: "numa",
        since: 18,
        source: "pg_numa_available()",
        facts: &["server.numa"],
        sql: "SELECT json_build_object('server.numa', pg_numa_available())",
        ..LIGHT
    },
    Statement {
        name: "config",
        needs: Need::Config,
        source: "pg_config()",
        facts: &["server.configure"],
        when_null: "the server was built without saying",
        sql: "SELECT json_build_object('server.configure', \
            (SELECT setting FROM pg_config() WHERE name = 'CONFIGURE'))",
        ..LIGHT
    },
    Statement {
        name: "extensions",
        source: "pg_available_extensions, pg_extension",
        facts: &["extensions.installed", "extensions.available"],
        sql: "SELECT json_build_object( \
            'extensions.installed', (SELECT coalesce(json_agg(json_build_object('name', extname, 'version', extversion, \
                'schema', nspname) ORDER BY extname), '[]') \
                FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace), \
            'extensions.available', (SELECT coalesce(json_agg(json_build_object('name', name, \
                'version', default_version) ORDER BY name), '[]') \
                FROM pg_available_extensions() WHERE name NOT IN (SELECT extname FROM pg_extension)))",
        ..LIGHT
    },
    Statement {
        name: "hidden settings",
        source: "pg_db_role_setting",
        facts: &["settings.hidden_by_role_or_database"],
        sql: "SELECT json_build_object('settings.hidden_by_role_or_database', coalesce(json_agg(json_build_object( \
            'name', split_part(entry, '=', 1), 'value', substr(entry, strpos(entry, '=') + 1), \
            'role', CASE WHEN setrole <> 0 THEN pg_get_userbyid(setrole) END, 'database', d.datname)), '[]')) \
            FROM (SELECT setrole, setdatabase, unnest(setconfig) AS entry FROM pg_db_role_setting LIMIT 500) s \
            LEFT JOIN pg_database d ON d.oid = setdatabase",
        ..LIGHT
    },
    Statement {
        name: "databases",
        source: "pg_database",
        facts: &[
            "databases",
            "xid.oldest_database",
            "xid.oldest_age",
            "xid.freeze_max_age",
            "xid.until_forced_vacuum",
            "xid.until_stop",
            "multixact.oldest_database",
            "multixact.oldest_age",
            "multixact.freeze_max_age",
            "multixact.until_forced_vacuum",
            "multixact.until_stop",
        ],
        // 2^31 - 1 numbers are ahead of the oldest; the server stops 3 million before them
        // (varsup.c, multixact.c).
        sql: "WITH d AS (SELECT datname, pg_encoding_to_char(encoding) AS encoding, age(datfrozenxid) AS xid, \
                mxid_age(datminmxid) AS multi, datallowconn FROM pg_database), \
            x AS (SELECT max(xid) AS xid, (array_agg(datname ORDER BY xid DESC, datallowconn DESC))[1] AS datname FROM d), \
            m AS (SELECT max(multi) AS multi, (array_agg(datname ORDER BY multi DESC, datallowconn DESC))[1] AS datname FROM d), \
            l AS (SELECT current_setting('autovacuum_freeze_max_age')::int8 AS xid, \
                current_setting('autovacuum_multixact_freeze_max_age')::int8 AS multi) \
            SELECT json_build_object( \
            'databases', (SELECT json_agg(json_build_object('name', datname, 'encoding', encoding, 'xid_age', xid, \
                'multixact_age', multi, 'connectable', datallowconn) ORDER BY datname) \
                FROM (SELECT * FROM d ORDER BY xid DESC LIMIT 200) d), \
            'xid.oldest_database', x.datname, 'xid.oldest_age', x.xid, 'xid.freeze_max_age', l.xid, \
            'xid.until_forced_vacuum', l.xid - x.xid, 'xid.until_stop', 2147483647 - 3000000 - x.xid, \
            'multixact.oldest_database', m.datname, 'multixact.oldest_age', m.multi, \
            'multixact.freeze_max_age', l.multi, 'multixact.until_forced_vacuum', l.multi - m.multi, \
            'multixact.until_stop', 2147483647 - 3000000 - m.multi) FROM x, m, l",
        ..LIGHT
    },
    Statement {
        name: "xid held back",
        needs: Need::Stats,
        source: "pg_stat_activity, pg_prepared_xacts, pg_replication_slots",
        facts: &["xid.held_back_by"],
        sql: schema::HOLDERS,
        ..LIGHT
    },
    Statement {
        name: "oldest transactions",
        needs: Need::Stats,
        source: "pg_stat_activity",
        facts: &["connections.oldest_transactions"],
        sql: schema::TRANSACTIONS,
        ..LIGHT
    },
    Statement {
        name: "files",
        needs: Need::Files,
        source: "pg_file_settings, pg_stat_file(), pg_conf_load_time()",
        facts: &["settings.file_errors", "settings.files_not_read"],
        sql: schema::FILES,
        ..LIGHT
    },
    Statement {
        name: "start in files",
        needs: Need::Files,
        source: "pg_file_settings",
        facts: &[START_IN_FILES],
        when_null: "a configuration file was written after the server last read it",
        sql: schema::START_IN_FILES,
        ..LIGHT
    },
    Statement {
        name: "slots",
        until: 17,
        source: "pg_replication_slots",
        facts: &["replication.slots"],
        sql: "SELECT json_build_object('replication.slots', coalesce(json_agg(json_build_object('name', slot_name, \
            'type', slot_type, 'database', database, 'active', active, 'temporary', temporary, \
            'wal_status', wal_status, 'retained_wal_bytes', pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() \
                THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, restart_lsn)::int8, \
            'safe_wal_bytes', safe_wal_size, 'xid_age', greatest(age(xmin), age(catalog_xmin))) \
            ORDER BY slot_name), '[]')) FROM pg_replication_slots",
        ..LIGHT
    },
    Statement {
        name: "slots",
        since: 17,
        source: "pg_replication_slots",
        facts: &["replication.slots"],
        sql: "SELECT json_build_object('replication.slots', coalesce(json_agg(json_build_object('name', slot_name, \
            'type', slot_type, 'database', database, 'active', active, 'temporary', temporary, \
            'wal_status', wal_status, 'retained_wal_bytes', pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() \
                THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, restart_lsn)::int8, \
            'safe_wal_bytes', safe_wal_size, 'xid_age', greatest(age(xmin), age(catalog_xmin)), \
            'inactive_since', inactive_since, 'invalid', invalidation_reason) \
            ORDER BY slot_name), '[]')) FROM pg_replication_slots",
        ..LIGHT
    },
    Statement {
        name: "standbys",
        needs: Need::Stats,
        source: "pg_stat_replication",
        facts: &["replication.standbys"],
        sql: "SELECT json_build_object('replication.standbys', coalesce(json_agg(json_build_object( \
            'name', application_name, 'address', client_addr, 'state', state, 'sync_state', sync_state, \
            'sent_lag_bytes', pg_wal_lsn_diff(at, sent_lsn)::int8, 'flush_lag_bytes', pg_wal_lsn_diff(at, flush_lsn)::int8, \
            'replay_lag_bytes', pg_wal_lsn_diff(at, replay_lsn)::int8, \
            'flush_lag_s', extract(epoch FROM flush_lag), 'replay_lag_s', extract(epoch FROM replay_lag)) \
            ORDER BY application_name), '[]')) FROM pg_stat_replication, \
            (SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END AS at) p",
        ..LIGHT
    },
    Statement {
        name: "standby",
        source: "pg_last_wal_replay_lsn(), pg_last_xact_replay_timestamp()",
        facts: &["replication.replay_behind_bytes", "replication.replay_behind_s"],
        when_null: "the server is not a standby that receives WAL",
        sql: "SELECT json_build_object( \
            'replication.replay_behind_bytes', CASE WHEN pg_is_in_recovery() \
                THEN pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())::int8 END, \
            'replication.replay_behind_s', CASE WHEN pg_is_in_recovery() THEN CASE \
                WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0 \
                ELSE extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) END END)",
        ..LIGHT
    },
    Statement {
        name: "connections",
        needs: Need::Stats,
        source: "pg_stat_activity, without pgdyno's own sessions",
        facts: &[
            "connections.used",
            "connections.by_state",
            "connections.longest_transaction_s",
            "connections.longest_idle_in_transaction_s",
        ],
        when_null: "there is no such session",
        sql: "WITH a AS (SELECT coalesce(state, 'unknown') AS state, xact_start, state_change \
                FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() \
                AND application_name !~ '^pgdyno( |$)') \
            SELECT json_build_object('connections.used', (SELECT count(*) FROM a), \
            'connections.by_state', (SELECT json_object_agg(state, n) FROM (SELECT state, sum(n) AS n \
                FROM (SELECT state, 1 AS n FROM a UNION ALL VALUES ('active', 0), ('idle', 0)) a GROUP BY state) s), \
            'connections.longest_transaction_s', \
                (SELECT round(extract(epoch FROM clock_timestamp() - min(xact_start))::numeric, 3) FROM a), \
            'connections.longest_idle_in_transaction_s', \
                (SELECT round(extract(epoch FROM clock_timestamp() - min(state_change))::numeric, 3) FROM a \
                 WHERE state LIKE 'idle in transaction%'))",
        ..LIGHT
    },
    Statement {
        name: "connections of all kinds",
        source: "pg_stat_database.numbackends, which counts parallel and autovacuum workers too",
        facts: &["connections.used"],
        sql: "SELECT json_build_object('connections.used', sum(pg_stat_get_db_numbackends(oid))) FROM pg_database",
        ..LIGHT
    },
    Statement {
        name: "checkpoints",
        until: 17,
        source: "pg_stat_bgwriter",
        facts: &[
            "checkpoints.timed",
            "checkpoints.requested",
            "checkpoints.timed_per_hour",
            "checkpoints.requested_per_hour",
            "checkpoints.write_s",
            "checkpoints.sync_s",
            "checkpoints.buffers_written",
            "checkpoints.since",
            "bgwriter.buffers_written",
            "bgwriter.stopped_by_limit",
            "bgwriter.buffers_allocated",
            "bgwriter.backend_buffers_written",
        ],
        when_null: "the counters were reset just now",
        sql: "SELECT json_build_object( \
            'checkpoints.timed', checkpoints_timed, 'checkpoints.requested', checkpoints_req, \
            'checkpoints.timed_per_hour', round(checkpoints_timed * 3600 / age, 3), \
            'checkpoints.requested_per_hour', round(checkpoints_req * 3600 / age, 3), \
            'checkpoints.write_s', checkpoint_write_time / 1000, 'checkpoints.sync_s', checkpoint_sync_time / 1000, \
            'checkpoints.buffers_written', buffers_checkpoint, 'checkpoints.since', stats_reset, \
            'bgwriter.buffers_written', buffers_clean, 'bgwriter.stopped_by_limit', maxwritten_clean, \
            'bgwriter.buffers_allocated', buffers_alloc, 'bgwriter.backend_buffers_written', buffers_backend) \
            FROM (SELECT *, nullif(extract(epoch FROM clock_timestamp() - stats_reset)::numeric, 0) AS age \
                  FROM pg_stat_bgwriter) b",
        ..LIGHT
    },
    Statement {
        name: "checkpoints",
        since: 17,
        source: "pg_stat_checkpointer, pg_stat_bgwriter",
        facts: &[
            "checkpoints.timed",
            "checkpoints.requested",
            "checkpoints.timed_per_hour",
            "checkpoints.requested_per_hour",
            "checkpoints.write_s",
            "checkpoints.sync_s",
            "checkpoints.buffers_written",
            "checkpoints.since",
            "bgwriter.buffers_written",
            "bgwriter.stopped_by_limit",
            "bgwriter.buffers_allocated",
        ],
        when_null: "the counters were reset just now",
        sql: "SELECT json_build_object( \
            'checkpoints.timed', num_timed, 'checkpoints.requested', num_requested, \
            'checkpoints.timed_per_hour', round(num_timed * 3600 / age, 3), \
            'checkpoints.requested_per_hour', round(num_requested * 3600 / age, 3), \
            'checkpoints.write_s', write_time / 1000, 'checkpoints.sync_s', sync_time / 1000, \
            'checkpoints.buffers_written', c.buffers_written, 'checkpoints.since', c.stats_reset, \
            'bgwriter.buffers_written', b.buffers_clean, 'bgwriter.stopped_by_limit', b.maxwritten_clean, \
            'bgwriter.buffers_allocated', b.buffers_alloc) \
            FROM (SELECT *, nullif(extract(epoch FROM clock_timestamp() - stats_reset)::numeric, 0) AS age \
                  FROM pg_stat_checkpointer) c, pg_stat_bgwriter b",
        ..LIGHT
    },
    Statement {
        name: "checkpoints that wrote",
        since: 18,
        source: "pg_stat_checkpointer.num_done",
        facts: &["checkpoints.done"],
        sql: "SELECT json_build_object('checkpoints.done', num_done) FROM pg_stat_checkpointer",
        ..LIGHT
    },
    Statement {
        name: "last checkpoint",
        source: "pg_control_checkpoint()",
        facts: &["checkpoints.last"],
        sql: "SELECT json_build_object('checkpoints.last', checkpoint_time) FROM pg_control_checkpoint()",
        ..LIGHT
    },
    Statement {
        name: "cache",
        source: "pg_stat_database",
        facts: &[
            "cache.hit_ratio",
            "cache.hit_ratio_of_database",
            "transactions.committed",
            "transactions.rolled_back",
            "transactions.deadlocks",
            "transactions.conflicts",
            "temp_files.count",
            "temp_files.bytes",
        ],
        when_null: "nothing was read yet",
        sql: "SELECT json_build_object( \
            'cache.hit_ratio', round(sum(blks_hit) / nullif(sum(blks_hit + blks_read), 0), 5), \
            'cache.hit_ratio_of_database', round(sum(blks_hit) FILTER (WHERE here) \
                / nullif(sum(blks_hit + blks_read) FILTER (WHERE here), 0), 5), \
            'transactions.committed', sum(xact_commit), 'transactions.rolled_back', sum(xact_rollback), \
            'transactions.deadlocks', sum(deadlocks), 'transactions.conflicts', sum(conflicts), \
            'temp_files.count', sum(temp_files), 'temp_files.bytes', sum(temp_bytes)) \
            FROM (SELECT *, datname IS NOT DISTINCT FROM current_database() AS here FROM pg_stat_database) d",
        ..LIGHT
    },
    Statement {
        name: "since when counters of the database count",
        source: "pg_stat_database.stats_reset",
        facts: &["statistics.since"],
        when_null: "they were never reset: they count since the database was made",
        sql: "SELECT json_build_object('statistics.since', stats_reset) FROM pg_stat_database \
            WHERE datname = current_database()",
        ..LIGHT
    },
    Statement {
        name: "wal",
        since: 14,
        until: 18,
        source: "pg_stat_wal",
        facts: WAL,
        when_null: "the counters were reset just now",
        sql: "SELECT json_build_object('wal.records', wal_records, 'wal.full_page_images', wal_fpi, \
            'wal.bytes', wal_bytes, 'wal.bytes_per_s', round(wal_bytes \
                / nullif(extract(epoch FROM clock_timestamp() - stats_reset)::numeric, 0), 1), \
            'wal.buffers_full', wal_buffers_full, 'wal.writes', wal_write, 'wal.syncs', wal_sync, \
            'wal.since', stats_reset) FROM pg_stat_wal",
        ..LIGHT
    },
    Statement {
        name: "wal",
        since: 18,
        source: "pg_stat_wal, pg_stat_io",
        facts: WAL,
        when_null: "the counters were reset just now",
        sql: "SELECT json_build_object('wal.records', wal_records, 'wal.full_page_images', wal_fpi, \
            'wal.bytes', wal_bytes, 'wal.bytes_per_s', round(wal_bytes \
                / nullif(extract(epoch FROM clock_timestamp() - stats_reset)::numeric, 0), 1), \
            'wal.buffers_full', wal_buffers_full, 'wal.writes', i.writes, 'wal.syncs', i.fsyncs, \
            'wal.since', stats_reset) FROM pg_stat_wal, \
            (SELECT sum(writes) AS writes, sum(fsyncs) AS fsyncs FROM pg_stat_io \
             WHERE object = 'wal' AND context = 'normal') i",
        ..LIGHT
    },
    Statement {
        name: "bytes of full-page images",
        since: 19,
        source: "pg_stat_wal.wal_fpi_bytes",
        facts: &["wal.full_page_image_bytes"],
        sql: "SELECT json_build_object('wal.full_page_image_bytes', wal_fpi_bytes) FROM pg_stat_wal",
        ..LIGHT
    },
    Statement {
        name: "locks",
        since: 19,
        source: "pg_stat_lock; waits that took longer than deadlock_timeout and have ended",
        facts: &["locks.waited_for"],
        sql: "SELECT json_build_object('locks.waited_for', coalesce(json_agg(json_build_object('type', locktype, \
            'waits', waits, 'wait_s', round((wait_time / 1000)::numeric, 3), \
            'fast_path_exceeded', fastpath_exceeded, 'since', stats_reset) ORDER BY wait_time DESC), '[]')) \
            FROM pg_stat_lock WHERE waits + fastpath_exceeded > 0",
        ..LIGHT
    },
    Statement {
        name: "recovery",
        since: 19,
        needs: Need::Stats,
        source: "pg_stat_recovery",
        facts: &["replication.recovery"],
        when_null: "the server is not a standby",
        sql: "SELECT json_build_object('replication.recovery', (SELECT json_build_object( \
            'paused', pause_state <> 'not paused', 'is_promoted', promote_triggered, \
            'replayed_to', last_replayed_end_lsn, 'timeline', last_replayed_tli, \
            'last_transaction', recovery_last_xact_time, 'chunk_since', current_chunk_start_time) \
            FROM pg_stat_recovery))",
        ..LIGHT
    },
    Statement {
        name: "wal directory",
        needs: Need::WalDirectory,
        source: "pg_ls_waldir()",
        facts: &["wal.directory_bytes", "wal.directory_files"],
        sql: "SELECT json_build_object('wal.directory_bytes', sum(size), 'wal.directory_files', count(*)) \
            FROM pg_ls_waldir()",
        ..LIGHT
    },
    Statement {
        name: "archiver",
        source: "pg_stat_archiver",
        facts: &[
            "wal.archived",
            "wal.archive_failures",
            "wal.archived_last",
            "wal.archive_failed_last",
        ],
        when_null: "there was none yet",
        sql: "SELECT json_build_object('wal.archived', archived_count, 'wal.archive_failures', failed_count, \
            'wal.archived_last', last_archived_time, 'wal.archive_failed_last', last_failed_time) \
            FROM pg_stat_archiver",
        ..LIGHT
    },
    Statement {
        name: "shared memory",
        needs: Need::SharedMemory,
        source: "pg_shmem_allocations",
        facts: &["shared_memory.largest"],
        sql: "SELECT json_build_object('shared_memory.largest', json_agg(json_build_object('name', name, \
            'bytes', allocated_size) ORDER BY allocated_size DESC)) FROM (SELECT coalesce(name, 'anonymous') AS name, \
            allocated_size FROM pg_shmem_allocations ORDER BY allocated_size DESC LIMIT 8) s",
        ..LIGHT
    },
    Statement {
        name: "old tables",
        source: "pg_class",
        facts: &["xid.oldest_tables", "multixact.oldest_tables"],
        sql: "WITH t AS MATERIALIZED (SELECT oid, age(relfrozenxid) AS xid, mxid_age(relminmxid) AS multi FROM pg_class \
                WHERE relkind IN ('r', 'm', 't')) \
            SELECT json_build_object( \
            'xid.oldest_tables', (SELECT json_agg(json_build_object('table', oid::regclass::text, 'xid_age', xid) \
                ORDER BY xid DESC) FROM (SELECT * FROM t ORDER BY xid DESC LIMIT 5) t), \
            'multixact.oldest_tables', (SELECT json_agg(json_build_object('table', oid::regclass::text, \
                'multixact_age', multi) ORDER BY multi DESC) FROM (SELECT * FROM t ORDER BY multi DESC LIMIT 5) t))",
        ..CATALOG
    },
    Statement {
        name: "sizes",
        source: "pg_class; exact sizes of those that are largest by relpages or counted rows",
        facts: &[
            "tables.count",
            "tables.bytes_estimated",
            "tables.largest",
            "indexes.count",
            "indexes.bytes_estimated",
            "indexes.largest",
        ],
        when_null: "there are none",
        sql: SIZES_OF_RELATIONS,
        ..CATALOG
    },
    Statement {
        name: "table activity",
        source: "pg_stat_all_tables",
        facts: &["tables.updated_without_hot", "tables.dead_rows", "vacuum.last"],
        when_null: "there are no tables",
        sql: TABLE_ACTIVITY,
        ..CATALOG
    },
    Statement {
        name: "autovacuum's order",
        since: 19,
        source: "pg_stat_autovacuum_scores; tables that autovacuum would take, ten at most",
        facts: &["vacuum.next"],
        sql: "SELECT json_build_object('vacuum.next', coalesce((SELECT json_agg(t) FROM (SELECT \
            schemaname || '.' || relname AS table, round(score::numeric, 3) AS score, do_vacuum AS vacuum, \
            do_analyze AS analyze, for_wraparound AS against_wraparound FROM pg_stat_autovacuum_scores \
            WHERE do_vacuum OR do_analyze ORDER BY score DESC, 1 LIMIT 10) t), '[]'))",
        ..CATALOG
    },
    Statement {
        name: "unused indexes",
        source: "pg_stat_all_indexes, pg_index; indexes over 1 MB that no key or constraint needs",
        facts: &["indexes.never_used", "indexes.invalid"],
        when_null: "there are no indexes",
        sql: UNUSED_INDEXES,
        ..CATALOG
    },
    Statement {
        name: "duplicate indexes",
        source: "pg_index",
        facts: &["indexes.duplicate"],
        sql: schema::DUPLICATE_INDEXES,
        ..CATALOG
    },
    Statement {
        name: "foreign keys",
        source: "pg_constraint, pg_index",
        facts: &["tables.foreign_keys_without_index"],
        sql: schema::FOREIGN_KEYS,
        ..CATALOG
    },
    Statement {
        name: "scanned tables",
        source: "pg_stat_all_tables",
        facts: &["tables.scanned"],
        sql: schema::SCANNED_TABLES,
        ..CATALOG
    },
    Statement {
        name: "unlogged tables",
        source: "pg_class",
        facts: &["tables.unlogged"],
        sql: schema::UNLOGGED_TABLES,
        ..CATALOG
    },
    Statement {
        name: "sequences",
        source: "pg_sequence, pg_sequence_last_value(), pg_stats; of the hundred with the largest tables",
        facts: &["sequences.near_end"],
        sql: schema::SEQUENCES,
        ..CATALOG
    },
    Statement {
        name: "scanning statements",
        needs: Need::Statements(108),
        source: "pg_stat_statements, pg_stat_all_tables",
        facts: &["tables.scanned_by"],
        sql: schema::SCANNING_STATEMENTS,
        ..CATALOG
    },
    Statement {
        name: "statements",
        needs: Need::Statements(108),
        source: "pg_stat_statements",
        facts: &["statements.count", "statements.total_ms", "statements.top"],
        when_null: "nothing was counted yet",
        sql: "WITH s AS MATERIALIZED (SELECT * FROM {statements}.pg_stat_statements \
                WHERE query NOT LIKE '%/* pgdyno%') \
            SELECT json_build_object('statements.count', (SELECT count(*) FROM s), \
            'statements.total_ms', (SELECT sum(total_exec_time) FROM s), \
            'statements.top', (SELECT json_agg(json_build_object('query_id', queryid::text, \
                'database', (SELECT datname FROM pg_database WHERE oid = dbid), 'role', pg_get_userbyid(userid), \
                'calls', calls, 'total_ms', round(total_exec_time::numeric, 3), \
                'mean_ms', round(mean_exec_time::numeric, 3), 'rows', rows, \
                'blocks_hit', shared_blks_hit, 'blocks_read', shared_blks_read, \
                'temp_blocks_written', temp_blks_written, 'wal_bytes', wal_bytes, 'text', left(query, 1000)) \
                ORDER BY total_exec_time DESC) \
                FROM (SELECT * FROM s ORDER BY total_exec_time DESC LIMIT 10) t))",
        ..CATALOG
    },
    Statement {
        name: "since when statements count",
        since: 14,
        needs: Need::Statements(109),
        source: "pg_stat_statements_info",
        facts: &["statements.since", "statements.dropped"],
        sql: "SELECT json_build_object('statements.since', stats_reset, 'statements.dropped', dealloc) \
            FROM {statements}.pg_stat_statements_info",
        ..CATALOG
    },
    Statement {
        name: "jit use",
        since: 15,
        needs: Need::Statements(110),
        source: "pg_stat_statements",
        facts: &["jit.functions", "jit.ms", "jit.ratio_of_statements_time"],
        when_null: "nothing was counted yet",
        sql: "SELECT json_build_object('jit.functions', sum(jit_functions), 'jit.ms', sum(jit), \
            'jit.ratio_of_statements_time', round((sum(jit) / nullif(sum(total_exec_time), 0))::numeric, 5)) \
            FROM (SELECT jit_functions, total_exec_time, jit_generation_time + jit_inlining_time \
                + jit_optimization_time + jit_emission_time AS jit FROM {statements}.pg_stat_statements \
                WHERE query NOT LIKE '%/* pgdyno%') s",
        ..CATALOG
    },
];
