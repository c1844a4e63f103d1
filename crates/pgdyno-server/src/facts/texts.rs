//! The statements that are asked before the table's, which need no version, and the longest of the
//! table itself.

/// What holds for a whole question and ends with its transaction: nothing stays behind in a
/// pooler's session. Names mean pg_catalog's, whatever else the database holds; compiling would
/// cost more than it saves.
pub(super) const LIMITS: &str = "SELECT set_config('transaction_read_only', 'on', true), \
    set_config('statement_timeout', '2000', true), set_config('lock_timeout', '200', true), \
    set_config('jit', 'off', true), set_config('max_parallel_workers_per_gather', '0', true), \
    set_config('search_path', 'pg_catalog', true), set_config('TimeZone', 'UTC', true)";

/// Limit on the walk of a directory.
pub(super) const SIZES_LIMIT: &str = "SELECT set_config('statement_timeout', '250', true), \
    set_config('lock_timeout', '200', true), set_config('jit', 'off', true)";

/// All of pg_settings that the role may see.
pub(super) const SETTINGS: &str = "SELECT json_agg(json_build_object('name', name, 'shown', \
    coalesce(current_setting(name, true), ''), 'setting', coalesce(setting, ''), 'unit', unit, 'context', context, 'vartype', vartype, 'source', source, \
    'boot_value', boot_val, 'pending_restart', pending_restart, 'file', sourcefile, 'line', sourceline, \
    'choices', enumvals) ORDER BY name) FROM pg_catalog.pg_settings";

/// Sizes of databases that the role may ask for. One with very many relations is not walked: it
/// would take the server a system call for each file.
pub(super) const SIZES: &str = "SELECT coalesce(json_object_agg(datname, CASE \
    WHEN datname = current_database() AND (SELECT count(*) FROM pg_class) > 20000 THEN NULL \
    ELSE pg_database_size(oid) END), '{}') \
    FROM (SELECT oid, datname FROM pg_database WHERE datallowconn \
          AND (has_database_privilege(oid, 'CONNECT') OR pg_has_role('pg_read_all_stats', 'USAGE')) \
          ORDER BY datname <> current_database(), oid LIMIT 100) d";

/// What the role may, and what identifies a managed service. The lists of names come from the rules
/// of `service`.
pub(super) const SIGNS: &str = "SELECT json_build_object( \
    'role', quote_ident(current_user), \
    'superuser', current_setting('is_superuser') = 'on', \
    'major', current_setting('server_version_num')::int / 10000, \
    'stats', pg_has_role('pg_read_all_stats', 'USAGE'), \
    'settings', pg_has_role('pg_read_all_settings', 'USAGE'), \
    'wal_directory', has_function_privilege('pg_catalog.pg_ls_waldir()', 'EXECUTE'), \
    'config', has_function_privilege('pg_catalog.pg_config()', 'EXECUTE'), \
    'files', has_table_privilege('pg_catalog.pg_file_settings', 'SELECT') \
        AND has_function_privilege('pg_catalog.pg_show_all_file_settings()', 'EXECUTE') \
        AND has_function_privilege('pg_catalog.pg_stat_file(text, boolean)', 'EXECUTE') \
        AND pg_has_role('pg_read_all_settings', 'USAGE'), \
    'shared_memory', has_table_privilege('pg_catalog.pg_shmem_allocations', 'SELECT') \
        AND has_function_privilege('pg_catalog.pg_get_shmem_allocations()', 'EXECUTE'), \
    'statements', (SELECT json_build_object('schema', quote_ident(n.nspname), 'version', e.extversion) \
        FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace \
        WHERE e.extname = 'pg_stat_statements'), \
    'version', version(), \
    'roles', (SELECT coalesce(json_agg(r), '[]') FROM unnest(ARRAY[{roles}]) r WHERE to_regrole(r) IS NOT NULL), \
    'functions', (SELECT coalesce(json_agg(DISTINCT proname), '[]') FROM pg_catalog.pg_proc \
        WHERE proname IN ({functions})), \
    'databases', (SELECT coalesce(json_agg(datname), '[]') FROM pg_catalog.pg_database \
        WHERE datname IN ({databases})), \
    'tablespaces', (SELECT coalesce(json_agg(json_build_object('name', spcname, \
        'directory', pg_tablespace_location(oid))), '[]') FROM pg_catalog.pg_tablespace \
        WHERE spcname NOT IN ('pg_default', 'pg_global')), \
    'default_tablespace', (SELECT t.spcname FROM pg_catalog.pg_database d \
        JOIN pg_catalog.pg_tablespace t ON t.oid = d.dattablespace WHERE d.datname = current_database()))";

/// One read of every relation; the exact sizes of some dozens. pg_class has pages since the last
/// vacuum or analysis, so tables without any are ordered by their counted rows. The name of a toast
/// table holds the number of its table. What is locked against everybody is not waited for.
pub(super) const SIZES_OF_RELATIONS: &str = "WITH \
    l AS MATERIALIZED (SELECT relation FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND locktype = 'relation'), \
    big AS MATERIALIZED (SELECT oid, relkind, relname, relpages FROM pg_class WHERE relkind IN ('r', 'm', 't', 'i') \
        ORDER BY CASE WHEN relpages = 0 AND relkind IN ('r', 'm') THEN pg_stat_get_live_tuples(oid) / 100 \
            ELSE relpages END DESC LIMIT 80), \
    of_tables AS MATERIALIZED (SELECT oid FROM big WHERE relkind IN ('r', 'm') UNION SELECT indrelid FROM pg_index \
            WHERE indexrelid = ANY (ARRAY(SELECT oid FROM big WHERE relkind = 'i')) \
        UNION SELECT substr(relname, 10)::oid FROM big WHERE relkind = 't' AND relname ~ '^pg_toast_[0-9]{1,9}$'), \
    t AS MATERIALIZED (SELECT oid, reltoastrelid, relpages, reltuples, oid IN (SELECT relation FROM l) AS locked \
        FROM pg_class WHERE oid = ANY (ARRAY(SELECT oid FROM of_tables)) AND relkind IN ('r', 'm')), \
    ts AS MATERIALIZED (SELECT t.*, CASE WHEN NOT locked THEN pg_relation_size(oid) END AS heap, \
        CASE WHEN reltoastrelid = 0 THEN 0 WHEN NOT locked THEN pg_total_relation_size(reltoastrelid) END AS toast, \
        CASE WHEN NOT locked THEN pg_indexes_size(oid) END AS idx, \
        CASE WHEN NOT locked THEN pg_total_relation_size(oid) END AS bytes FROM t), \
    ids AS MATERIALIZED (SELECT oid FROM big WHERE relkind = 'i' UNION \
        SELECT indexrelid FROM pg_index WHERE indrelid = ANY (ARRAY(SELECT oid FROM big WHERE relpages = 0))), \
    i AS MATERIALIZED (SELECT indexrelid, indrelid, (SELECT relpages FROM pg_class WHERE oid = indexrelid) AS relpages, \
            CASE WHEN indexrelid NOT IN (SELECT relation FROM l) THEN pg_relation_size(indexrelid) END AS bytes \
        FROM pg_index WHERE indexrelid = ANY (ARRAY(SELECT oid FROM ids))), \
    n AS (SELECT count(*) FILTER (WHERE relkind IN ('r', 'm')) AS tables, count(*) FILTER (WHERE relkind = 'i') AS indexes, \
            sum(relpages) FILTER (WHERE relkind IN ('r', 'm', 't')) AS table_pages, \
            sum(relpages) FILTER (WHERE relkind = 'i') AS index_pages, \
            current_setting('block_size')::int8 AS page FROM pg_class) \
    SELECT json_build_object('tables.count', tables, 'tables.bytes_estimated', table_pages * page, \
    'indexes.count', indexes, 'indexes.bytes_estimated', index_pages * page, \
    'tables.largest', (SELECT json_agg(json_build_object('table', oid::regclass::text, 'bytes', bytes, \
        'heap_bytes', heap, 'index_bytes', idx, 'toast_bytes', toast, \
        'bytes_estimated', CASE WHEN bytes IS NULL THEN relpages * page END, \
        'rows_estimated', CASE WHEN reltuples >= 0 THEN reltuples::int8 END) \
        ORDER BY coalesce(bytes, relpages * page) DESC) \
        FROM (SELECT * FROM ts ORDER BY coalesce(bytes, relpages * page) DESC LIMIT 10) t), \
    'indexes.largest', (SELECT json_agg(json_build_object('index', indexrelid::regclass::text, \
        'table', indrelid::regclass::text, 'bytes', bytes, \
        'bytes_estimated', CASE WHEN bytes IS NULL THEN relpages * page END, \
        'scans', pg_stat_get_numscans(indexrelid)) ORDER BY coalesce(bytes, relpages * page) DESC) \
        FROM (SELECT * FROM i ORDER BY coalesce(bytes, relpages * page) DESC LIMIT 10) i)) FROM n";

/// Tables with at least a thousand updates, or dead rows; vacuums of the twenty that change most.
pub(super) const TABLE_ACTIVITY: &str = "WITH t AS MATERIALIZED (SELECT * FROM (SELECT oid, reloptions, \
        pg_stat_get_live_tuples(oid) AS live, pg_stat_get_dead_tuples(oid) AS dead, \
        pg_stat_get_tuples_updated(oid) AS upd, pg_stat_get_tuples_hot_updated(oid) AS hot, \
        pg_stat_get_tuples_inserted(oid) + pg_stat_get_tuples_updated(oid) + pg_stat_get_tuples_deleted(oid) AS changes \
        FROM pg_class WHERE relkind IN ('r', 'm') OFFSET 0) c WHERE changes > 0 OR dead > 0) \
    SELECT json_build_object( \
    'tables.updated_without_hot', (SELECT coalesce(json_agg(json_build_object('table', oid::regclass::text, \
        'updates', upd, 'hot_updates', hot, 'hot_ratio', round(hot::numeric / upd, 4), \
        'fillfactor', coalesce((SELECT option_value::int FROM pg_options_to_table(reloptions) \
            WHERE option_name = 'fillfactor'), 100)) ORDER BY upd - hot DESC), '[]') \
        FROM (SELECT * FROM t WHERE upd >= 1000 AND hot * 2 < upd ORDER BY upd - hot DESC LIMIT 20) t), \
    'tables.dead_rows', (SELECT coalesce(json_agg(json_build_object('table', oid::regclass::text, \
        'dead', dead, 'live', live, 'dead_ratio', round(dead::numeric / (live + dead), 4)) ORDER BY dead DESC), '[]') \
        FROM (SELECT * FROM t WHERE dead >= 1000 ORDER BY dead DESC LIMIT 20) t), \
    'vacuum.last', (SELECT coalesce(json_agg(json_build_object('table', oid::regclass::text, \
        'vacuum', pg_stat_get_last_vacuum_time(oid), 'autovacuum', pg_stat_get_last_autovacuum_time(oid), \
        'analyze', pg_stat_get_last_analyze_time(oid), 'autoanalyze', pg_stat_get_last_autoanalyze_time(oid), \
        'changes', changes, 'changed_since_analyze', pg_stat_get_mod_since_analyze(oid)) ORDER BY changes DESC), '[]') \
        FROM (SELECT * FROM t ORDER BY changes DESC LIMIT 20) t))";

/// Exact sizes of a hundred at most; numbers below 16384 are the server's own
/// (FirstNormalObjectId). An index that is younger than its table's rows has its pages in pg_class.
pub(super) const UNUSED_INDEXES: &str = "WITH \
    l AS MATERIALIZED (SELECT relation FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND locktype = 'relation'), \
    pages AS (SELECT 1048576 / current_setting('block_size')::int8 AS limit), \
    c AS MATERIALIZED (SELECT oid, relkind, relpages FROM pg_class WHERE relkind = 'i' \
            AND relpages > (SELECT pages.limit FROM pages) \
        UNION ALL SELECT oid, relkind, relpages FROM pg_class WHERE relkind IN ('r', 'm') \
            AND pg_stat_get_live_tuples(oid) > 20000), \
    x AS MATERIALIZED (SELECT indexrelid, indrelid FROM pg_index \
        WHERE (indexrelid = ANY (ARRAY(SELECT oid FROM c WHERE relkind = 'i')) \
            OR indrelid = ANY (ARRAY(SELECT oid FROM c WHERE relkind <> 'i'))) \
            AND indexrelid >= 16384 AND NOT indisunique AND NOT indisexclusion AND NOT indisreplident AND indisvalid), \
    u AS (SELECT x.*, pg_relation_size(indexrelid) AS bytes FROM (SELECT * FROM x \
        WHERE pg_stat_get_numscans(indexrelid) = 0 AND indexrelid NOT IN (SELECT relation FROM l) \
            AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid) \
        ORDER BY (SELECT relpages FROM pg_class WHERE oid = indexrelid) DESC LIMIT 100) x) \
    SELECT json_build_object( \
    'indexes.never_used', (SELECT coalesce(json_agg(json_build_object('index', indexrelid::regclass::text, \
        'table', indrelid::regclass::text, 'bytes', bytes, 'since', (SELECT stats_reset FROM pg_stat_database \
            WHERE datname = current_database())) ORDER BY bytes DESC), '[]') \
        FROM (SELECT * FROM u WHERE bytes > 1048576 ORDER BY bytes DESC LIMIT 50) u), \
    'indexes.invalid', (SELECT coalesce(json_agg(indexrelid::regclass::text), '[]') \
        FROM (SELECT indexrelid FROM pg_index JOIN pg_class c ON c.oid = indexrelid AND c.relkind = 'i' \
            WHERE NOT indisvalid LIMIT 50) i))";
