#!/usr/bin/env bash
# What `pgdyno facts` costs on a database of many tables: the time of the whole command, and the
# slowest of its statements by pg_stat_statements (planning and execution), with the whole questions
# by the server's log beside it.
# Usage: benches/facts.sh [PGDYNO] [RUNS]     TABLES=10000 and VERSION=18 choose.
pgdyno=${1:-target/release/pgdyno}
. "$(dirname "$0")/common.sh"
runs=${2:-11}
tables=${TABLES:-10000}

set_up shared_preload_libraries=pg_stat_statements max_locks_per_transaction=256 shared_buffers=256MB \
  pg_stat_statements.track_planning=on pg_stat_statements.track_utility=off
sql -c "CREATE EXTENSION pg_stat_statements"
# Each with a primary key, a second index and a toast table: 5 relations.
sql -c "SET synchronous_commit = off" -c "DO \$\$ BEGIN FOR i IN 1..$tables LOOP
  EXECUTE format('CREATE TABLE t%s (id int PRIMARY KEY, x text, y int)', i);
  EXECUTE format('CREATE INDEX ON t%s (y)', i);
  EXECUTE format('INSERT INTO t%s SELECT g, g::text, g FROM generate_series(1, 10) g', i);
  IF i % 100 = 0 THEN COMMIT; END IF; END LOOP; END \$\$"
# The catalogs are as autovacuum leaves them, and nothing else runs meanwhile.
sql -c "ALTER SYSTEM SET autovacuum = off" -c "SELECT pg_reload_conf()" >/dev/null
for catalog in pg_class pg_index pg_attribute pg_depend pg_type pg_constraint pg_statistic; do
  sql -c "VACUUM ANALYZE pg_catalog.$catalog"
done
sql -c "CHECKPOINT"

facts() { "$pgdyno" facts "sandbox:$name" --json >"$PGDYNO_HOME/facts.json"; }
facts
sql -c "SELECT pg_stat_statements_reset()" >/dev/null
sql -c "ALTER SYSTEM SET log_min_duration_statement = 0" -c "SELECT pg_reload_conf()" >/dev/null
log=$PGDYNO_HOME/state/sandboxes/$name/log
begin=$(wc -c <"$log")
for _ in $(seq "$runs"); do
  a=$(date +%s%N)
  facts
  b=$(date +%s%N)
  echo $(((b - a) / 1000)) >>"$PGDYNO_HOME/took.out"
done

echo "database of $tables tables, PostgreSQL $(sql -c 'SHOW server_version'), $(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg), $runs runs"
sort -g "$PGDYNO_HOME/took.out" | awk '{ v[NR] = $1 } END {
  printf "pgdyno facts --json: median %.3f s, least %.3f s, most %.3f s (goal: under 0.5 s)\n",
    v[int((NR + 1) / 2)] / 1e6, v[1] / 1e6, v[NR] / 1e6 }'
echo "slowest statements by pg_stat_statements (goal: under 100 ms), ms: mean, most, calls, statement"
sql -F ' ' -c "SELECT round((mean_exec_time + mean_plan_time)::numeric, 1), round((max_exec_time + max_plan_time)::numeric, 1),
  calls, substr(regexp_replace(query, '\s+', ' ', 'g'), 1, 70)
  FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements_reset%' AND query NOT LIKE '%pg_reload_conf%'
  ORDER BY max_exec_time + max_plan_time DESC LIMIT 6"
echo "questions (several statements each) by the server's log, ms: the slowest"
tail -c "+$((begin + 1))" "$log" | sed -n 's/.*duration: \([0-9.]*\) ms.*/\1/p' | sort -rg | sed 5q | tr '\n' ' ' || true
echo
