//! Statements that find what an administrator sees at a glance: who holds rows back, and what is
//! wrong with tables, indexes, keys and files. Each reads the catalogs once, and opens few
//! relations.

/// What keeps removed rows from being cleaned up, the oldest first. A vacuum's own snapshot holds
/// nothing back, and a parallel worker has its leader's. A logical slot holds back rows of the
/// catalogs alone. Where a session's database is another one, it holds back rows there. What a
/// standby's statements need comes with its feedback: in the process that sends to it, or in its
/// slot while that is read. It is the standby's to end: without its slot it may have to be made
/// again. A slot's time is known from 17 on, a standby's never.
pub(super) const HOLDERS: &str = "WITH h AS ( \
    SELECT CASE WHEN backend_type <> 'walsender' THEN backend_type WHEN datid IS NULL THEN 'standby' ELSE 'logical walsender' END AS kind, \
        CASE WHEN backend_type = 'walsender' THEN application_name ELSE 'pid ' || pid END AS who, pid, datname, \
        usename, application_name, state, greatest(age(backend_xmin), age(backend_xid)) AS held, \
        extract(epoch FROM clock_timestamp() - xact_start) AS s, true AS rows, NULL::text AS ends_at, \
        ARRAY[format('SELECT pg_terminate_backend(%s);', pid)] AS ends \
        FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name !~ '^pgdyno( |$)' \
        AND backend_type NOT IN ('autovacuum worker', 'parallel worker') \
        AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum) \
    UNION ALL SELECT 'prepared transaction', gid, NULL, database, owner, NULL, NULL, age(transaction), \
        extract(epoch FROM clock_timestamp() - prepared), true, \
        format('In the database %s, or COMMIT PREPARED if its transaction manager says so:', database), \
        ARRAY[format('ROLLBACK PREPARED %L;', gid)] FROM pg_prepared_xacts \
    UNION ALL SELECT CASE WHEN feedback THEN 'standby' ELSE 'replication slot' END, \
        CASE WHEN feedback THEN coalesce(a.application_name, slot_name) ELSE slot_name END, active_pid, database, a.usename, \
        a.application_name, NULL, greatest(age(xmin), age(catalog_xmin)), \
        extract(epoch FROM clock_timestamp() - (to_jsonb(s) ->> 'inactive_since')::timestamptz), xmin IS NOT NULL, \
        CASE WHEN active AND NOT feedback THEN format('Its reader (pid %s) is connected and has not confirmed what it read: let it catch \
up, or remove it where it is.', active_pid) END, \
        CASE WHEN NOT active THEN ARRAY[format('SELECT pg_drop_replication_slot(%L);', slot_name)] END \
        FROM (SELECT *, slot_type = 'physical' AND active AS feedback FROM pg_replication_slots) s \
        LEFT JOIN pg_stat_activity a ON a.pid = active_pid) \
    SELECT json_build_object('xid.held_back_by', coalesce(json_agg(json_build_object('kind', kind, 'name', who, 'pid', pid, \
        'database', datname, 'user', usename, 'application', application_name, 'state', state, 'xid_age', held, \
        'held_s', CASE WHEN s IS NOT NULL THEN round(greatest(s, 0)::numeric, 3) END, \
        'holds', CASE WHEN rows THEN 'rows' ELSE 'rows of catalogs' END, \
        'here', rows AND (datname IS NULL OR datname = current_database()), \
        'ends_at', CASE WHEN kind = 'standby' THEN format('On the standby %s, or end its oldest statement there:', who) ELSE ends_at END, \
        'ends', CASE WHEN kind = 'standby' THEN ARRAY['ALTER SYSTEM SET hot_standby_feedback = off;', 'SELECT pg_reload_conf();'] \
            ELSE coalesce(ends, '{}') END) ORDER BY held DESC), '[]')) \
    FROM (SELECT * FROM h WHERE held IS NOT NULL ORDER BY held DESC LIMIT 10) h";

/// The transactions that are open for longest.
pub(super) const TRANSACTIONS: &str = "SELECT json_build_object('connections.oldest_transactions', \
    coalesce(json_agg(json_build_object('pid', pid, 'database', datname, 'user', usename, 'application', application_name, \
        'state', state, 'transaction_s', transaction_s, 'idle_s', idle_s, 'xid_age', xid_age, \
        'ends', ARRAY[format('SELECT pg_terminate_backend(%s);', pid)]) ORDER BY transaction_s DESC), '[]')) \
    FROM (SELECT pid, datname, usename, application_name, state, \
            round(greatest(extract(epoch FROM clock_timestamp() - xact_start), 0)::numeric, 3) AS transaction_s, \
            CASE WHEN state LIKE 'idle in transaction%' \
                THEN round(greatest(extract(epoch FROM clock_timestamp() - state_change), 0)::numeric, 3) END AS idle_s, \
            coalesce(greatest(age(backend_xmin), age(backend_xid)), 0) AS xid_age \
        FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() \
        AND application_name !~ '^pgdyno( |$)' AND xact_start IS NOT NULL ORDER BY xact_start LIMIT 10) t";

/// An index that another one makes needless: the same columns in the same way, or those with which
/// the other one begins. What a constraint or a partitioned index needs stays, and of two that are
/// the same the older one. Sizes are those of the last vacuum or analysis.
pub(super) const DUPLICATE_INDEXES: &str = "WITH \
    x AS MATERIALIZED (SELECT i.indexrelid, i.indrelid, c.relam, c.relpages, i.indkey[0] AS first, i.indnatts, i.indnkeyatts, i.indisunique, \
            i.indkey::text || ' ' AS keys, i.indclass::text || ' ' AS classes, i.indcollation::text || ' ' AS collations, \
            i.indoption::text || ' ' AS options, i.indexprs, i.indpred, \
            i.indisreplident OR c.relispartition OR i.indexrelid IN (SELECT conindid FROM pg_constraint) AS needed \
        FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
        WHERE i.indexrelid >= 16384 AND i.indisvalid AND c.relkind = 'i'), \
    d AS (SELECT DISTINCT ON (a.indexrelid) a.indexrelid, a.indrelid, a.relpages, b.indexrelid AS other, \
            a.indnkeyatts = b.indnkeyatts AS same \
        FROM x a JOIN x b ON a.indrelid = b.indrelid AND a.first = b.first AND a.relam = b.relam \
        WHERE a.indexrelid <> b.indexrelid AND NOT a.needed AND (a.keys = b.keys AND a.classes = b.classes AND a.collations = b.collations \
            AND a.options = b.options AND a.indnkeyatts = b.indnkeyatts AND (b.indisunique OR NOT a.indisunique) \
            AND (b.needed OR b.indisunique AND NOT a.indisunique OR a.indexrelid > b.indexrelid) \
            AND pg_get_expr(a.indexprs, a.indrelid) IS NOT DISTINCT FROM pg_get_expr(b.indexprs, b.indrelid) \
            AND pg_get_expr(a.indpred, a.indrelid) IS NOT DISTINCT FROM pg_get_expr(b.indpred, b.indrelid) \
          OR NOT a.indisunique AND a.relam = 403 AND a.indnatts = a.indnkeyatts AND a.indnkeyatts < b.indnkeyatts \
            AND a.indexprs IS NULL AND a.indpred IS NULL AND b.indexprs IS NULL AND b.indpred IS NULL \
            AND starts_with(b.keys, a.keys) AND starts_with(b.classes, a.classes) \
            AND starts_with(b.collations, a.collations) AND starts_with(b.options, a.options)) \
        ORDER BY a.indexrelid, same DESC, b.indexrelid) \
    SELECT json_build_object('indexes.duplicate', coalesce(json_agg(json_build_object('index', indexrelid::regclass::text, \
        'table', indrelid::regclass::text, 'covered_by', other::regclass::text, 'same', same, \
        'bytes_estimated', relpages * current_setting('block_size')::int8) ORDER BY relpages DESC, indexrelid), '[]')) \
    FROM (SELECT * FROM d ORDER BY relpages DESC, indexrelid LIMIT 50) d";

/// Foreign keys whose columns no index begins with, in whatever order: to remove or change a row
/// that is referred to reads the whole table.
pub(super) const FOREIGN_KEYS: &str = "WITH \
    f AS MATERIALIZED (SELECT conname, conrelid, confrelid, conkey, greatest(c.reltuples::int8, \
            pg_stat_get_live_tuples(c.oid), 0) AS rows FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid \
        WHERE contype = 'f' AND conparentid = 0), \
    u AS (SELECT * FROM f WHERE NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = f.conrelid AND i.indisvalid \
            AND i.indpred IS NULL AND i.indnkeyatts >= cardinality(conkey) \
            AND (i.indkey::int2[])[0:cardinality(conkey) - 1] @> conkey) \
        ORDER BY rows DESC, conname LIMIT 50) \
    SELECT json_build_object('tables.foreign_keys_without_index', coalesce(json_agg(json_build_object( \
        'table', conrelid::regclass::text, 'constraint', conname, 'references', confrelid::regclass::text, \
        'columns', (SELECT string_agg(quote_ident(attname), ', ' ORDER BY at) FROM unnest(conkey) WITH ORDINALITY k (n, at) \
            JOIN pg_attribute ON attrelid = conrelid AND attnum = n), 'rows_estimated', rows) \
        ORDER BY rows DESC, conname), '[]')) FROM u";

/// Tables of ten thousand rows and more that are read from end to end again and again.
pub(super) const SCANNED_TABLES: &str = "SELECT json_build_object('tables.scanned', coalesce(json_agg(json_build_object( \
        'table', oid::regclass::text, 'rows', live, 'scans', scans, 'rows_per_scan', read / scans, \
        'index_scans', (SELECT coalesce(sum(pg_stat_get_numscans(indexrelid)), 0)::int8 FROM pg_index WHERE indrelid = oid)) \
        ORDER BY read DESC), '[]')) \
    FROM (SELECT * FROM (SELECT oid, pg_stat_get_numscans(oid) AS scans, pg_stat_get_tuples_returned(oid) AS read, \
                pg_stat_get_live_tuples(oid) AS live \
            FROM pg_class WHERE relkind IN ('r', 'm') AND oid >= 16384 OFFSET 0) c \
        WHERE scans >= 50 AND live >= 10000 AND read >= scans * live / 2 ORDER BY read DESC LIMIT 20) t";

/// Which statements read them: those that name one, return a hundredth of its rows at most, and
/// touch at least half as many blocks as it has. Of five hundred statements, those that take the
/// most time.
pub(super) const SCANNING_STATEMENTS: &str = "WITH \
    t AS MATERIALIZED (SELECT * FROM (SELECT oid, relname, relpages, pg_stat_get_numscans(oid) AS scans, \
                pg_stat_get_tuples_returned(oid) AS read, pg_stat_get_live_tuples(oid) AS live \
            FROM pg_class WHERE relkind IN ('r', 'm') AND oid >= 16384 OFFSET 0) c \
        WHERE scans >= 50 AND live >= 10000 AND read >= scans * live / 2 ORDER BY read DESC LIMIT 20), \
    s AS MATERIALIZED (SELECT queryid, calls, rows, total_exec_time, shared_blks_hit + shared_blks_read AS blocks, \
            left(query, 4000) AS query, lower(left(query, 4000)) AS words FROM {statements}.pg_stat_statements \
        WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND calls >= 10 \
            AND query NOT LIKE '%/* pgdyno%' ORDER BY total_exec_time DESC LIMIT 500), \
    b AS (SELECT *, row_number() OVER (PARTITION BY oid ORDER BY total_exec_time DESC) AS at FROM t JOIN s \
            ON strpos(words, lower(relname)) > 0 AND strpos(words, 'where') > 0 \
            AND s.rows <= s.calls * t.live / 100 AND s.blocks >= s.calls * t.relpages / 2 \
        WHERE words ~ ('\\m' || regexp_replace(lower(relname), '([^a-z0-9_])', '\\\\\\1', 'g') || '\\M')) \
    SELECT json_build_object('tables.scanned_by', coalesce(json_agg(json_build_object('table', oid::regclass::text, \
        'query_id', queryid::text, 'calls', calls, 'mean_ms', round((total_exec_time / calls)::numeric, 3), \
        'rows_per_call', round(b.rows::numeric / calls, 1), 'text', query) ORDER BY oid, at), '[]')) \
    FROM b WHERE at <= 3";

/// Tables whose rows a crash removes.
pub(super) const UNLOGGED_TABLES: &str = "WITH \
    l AS MATERIALIZED (SELECT relation FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND locktype = 'relation'), \
    u AS MATERIALIZED (SELECT oid, relpages FROM pg_class WHERE relpersistence = 'u' AND relkind IN ('r', 'm') \
        ORDER BY greatest(relpages, pg_stat_get_live_tuples(oid) / 100) DESC LIMIT 20), \
    b AS (SELECT oid, CASE WHEN oid IN (SELECT relation FROM l) THEN relpages * current_setting('block_size')::int8 \
        ELSE pg_table_size(oid) END AS bytes FROM u) \
    SELECT json_build_object('tables.unlogged', coalesce(json_agg(json_build_object('table', oid::regclass::text, \
        'bytes', bytes) ORDER BY bytes DESC), '[]')) FROM b";

/// Keys of which half is used up. Sequences: of the hundred whose tables have the most rows, for
/// each that is asked is opened; a column has one that it owns, or that its default takes numbers
/// from. An int4 column ends before a bigint sequence does. Of primary keys without a sequence,
/// whose numbers the application makes, the last analysis knows about the highest.
pub(super) const SEQUENCES: &str = "WITH \
    l AS MATERIALIZED (SELECT relation FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND locktype = 'relation'), \
    k AS MATERIALIZED (SELECT objid AS sequence, refobjid AS relation, refobjsubid AS number FROM pg_depend \
            WHERE classid = 'pg_class'::regclass AND objsubid = 0 AND refclassid = 'pg_class'::regclass AND refobjsubid > 0 \
                AND deptype IN ('a', 'i') \
        UNION SELECT d.refobjid, f.adrelid, f.adnum FROM pg_depend d JOIN pg_attrdef f ON f.oid = d.objid \
            WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjsubid = 0), \
    s AS MATERIALIZED (SELECT s.seqrelid, a.attrelid, a.attname, format_type(a.atttypid, NULL) AS type, \
            least(s.seqmax, CASE a.atttypid WHEN 'int2'::regtype THEN 32767 WHEN 'int4'::regtype THEN 2147483647 \
                ELSE s.seqmax END) AS most \
        FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid \
        LEFT JOIN k ON k.sequence = s.seqrelid \
        LEFT JOIN pg_attribute a ON a.attrelid = k.relation AND a.attnum = k.number \
        LEFT JOIN pg_class o ON o.oid = k.relation \
        WHERE s.seqincrement > 0 AND NOT s.seqcycle AND c.relpersistence <> 't' \
            AND (c.relpersistence = 'p' OR NOT pg_is_in_recovery()) \
            AND (s.seqmax < 9007199254740992 OR a.atttypid IN ('int2'::regtype, 'int4'::regtype)) \
        ORDER BY greatest(o.reltuples::int8, pg_stat_get_live_tuples(o.oid), 0) DESC, s.seqrelid LIMIT 100), \
    p AS MATERIALIZED (SELECT a.attrelid, a.attname, a.atttypid, c.relname, n.nspname FROM pg_index i \
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] \
        JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
        WHERE i.indisprimary AND i.indnkeyatts = 1 AND i.indrelid >= 16384 AND a.atttypid IN ('int2'::regtype, 'int4'::regtype) \
            AND NOT EXISTS (SELECT FROM k JOIN pg_sequence q ON q.seqrelid = k.sequence \
                WHERE k.relation = a.attrelid AND k.number = a.attnum) \
        ORDER BY c.reltuples DESC, c.oid LIMIT 100), \
    v AS MATERIALIZED (SELECT *, CASE WHEN has_sequence_privilege(seqrelid, 'SELECT,USAGE') \
            AND seqrelid NOT IN (SELECT relation FROM l) THEN pg_sequence_last_value(seqrelid) END AS last FROM s \
        UNION ALL SELECT NULL, p.attrelid, p.attname, format_type(p.atttypid, NULL), \
            CASE p.atttypid WHEN 'int2'::regtype THEN 32767 ELSE 2147483647 END, h.bounds[cardinality(h.bounds)] \
        FROM p CROSS JOIN LATERAL (SELECT histogram_bounds::text::int8[] AS bounds FROM pg_stats t \
            WHERE t.schemaname = p.nspname AND t.tablename = p.relname AND t.attname = p.attname AND NOT t.inherited) h) \
    SELECT json_build_object('sequences.near_end', coalesce(json_agg(json_build_object( \
        'sequence', seqrelid::regclass::text, 'table', CASE WHEN attrelid IS NOT NULL THEN attrelid::regclass::text END, \
        'column', quote_ident(attname), 'type', type, 'last', last, 'max', most, \
        'used_ratio', round(last::numeric / most, 4)) ORDER BY last::numeric / most DESC), '[]')) \
    FROM (SELECT * FROM v WHERE last >= most / 2 ORDER BY last::numeric / most DESC LIMIT 20) v";

/// What the files hold of the settings that the driver sends at the start of a session: of several
/// lines the last, for lines whose names are written in different cases are all applied. NULL where
/// a file is newer than what the server has read (by the second, as pg_stat_file has it), for then
/// nobody knows which value it took.
pub(super) const START_IN_FILES: &str = "SELECT json_build_object('settings.start_in_files', \
    CASE WHEN EXISTS (SELECT FROM (SELECT current_setting('data_directory') || '/postgresql.auto.conf' AS file \
            UNION SELECT current_setting('config_file') UNION SELECT sourcefile FROM pg_file_settings) f \
        WHERE (pg_stat_file(file, true)).modification > pg_conf_load_time()) THEN NULL \
    ELSE (SELECT coalesce(json_agg(json_build_object('name', lower(name), 'file', sourcefile, 'line', sourceline, \
        'value', CASE lower(name) WHEN 'client_encoding' \
            THEN coalesce(nullif(pg_encoding_to_char(pg_char_to_encoding(setting)), ''), setting) ELSE setting END)), '[]') \
        FROM (SELECT DISTINCT ON (lower(name)) * FROM pg_file_settings WHERE applied AND error IS NULL \
            AND lower(name) IN ('application_name', 'client_encoding') ORDER BY lower(name), seqno DESC) f) END)";

/// Lines of the files that could not be used, but for parameters that wait for a restart (a new
/// value of theirs cannot be used either, and the server's message is the same), and files that
/// were written after the server last read them.
pub(super) const FILES: &str = "SELECT json_build_object( \
    'settings.file_errors', (SELECT coalesce(json_agg(json_build_object('name', name, \
            'file', sourcefile || ':' || sourceline, 'error', error) ORDER BY seqno), '[]') \
        FROM (SELECT * FROM pg_file_settings f WHERE error IS NOT NULL AND NOT EXISTS (SELECT FROM pg_settings s \
            WHERE lower(s.name) = lower(f.name) AND s.context = 'postmaster') ORDER BY seqno LIMIT 20) f), \
    'settings.files_not_read', (SELECT coalesce(json_agg(file ORDER BY file), '[]') \
        FROM (SELECT current_setting('config_file') AS file UNION \
            SELECT current_setting('data_directory') || '/postgresql.auto.conf') f \
        WHERE (pg_stat_file(file, true)).modification > pg_conf_load_time()))";
