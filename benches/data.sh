#!/usr/bin/env bash
# How quickly data is made: pgbench's beside `pgbench -i`, TPC-C's beside a bare COPY of the same
# rows over as many connections without keys, and beside go-tpc and sysbench-tpcc where they are to
# be had; on one server, in turn. Prints means, and ratios pair by pair with their 95 % intervals.
# Usage: benches/data.sh [PGDYNO] [RUNS]
# SCALE=50 (pgbench), WAREHOUSES=5 and THREADS=2 choose; SYSBENCH_TPCC: a checkout of
# Percona-Lab/sysbench-tpcc.
pgdyno=${1:-target/release/pgdyno}
. "$(dirname "$0")/common.sh"
runs=${2:-8}
scale=${SCALE:-50}
warehouses=${WAREHOUSES:-5}
threads=${THREADS:-2}

set_up
# Autovacuum would work on the one's tables while the other one is timed.
sql -c "ALTER SYSTEM SET autovacuum = off" -c "SELECT pg_reload_conf()" >/dev/null

# Each prints the seconds it took; what was there is dropped before, and what was written is on
# disk.
TIMEFORMAT=%R
took() { { time "$@" >/dev/null 2>"$PGDYNO_HOME/err"; } 2>&1; }
calm() { sql -c "CHECKPOINT"; }
run_pgbench() { sql -c "DROP TABLE IF EXISTS pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers"; calm
  took "$pgbench" -i -q -s "$scale" -h "$socket" -p "$port" -U postgres postgres; }
run_pgdyno() { "$pgdyno" data drop "sandbox:$name"; calm
  took "$pgdyno" data create "sandbox:$name" --scale "$scale" --threads "$threads"; }
# Prints two: all of it, and the rows alone.
run_tpcc() { "$pgdyno" data drop "sandbox:$name" tpcc; calm
  local all
  all=$(took "$pgdyno" data create "sandbox:$name" tpcc --scale "$warehouses" --threads "$threads")
  echo "$all $(sed -n 's/.* rows in \([0-9.]*\) s.*/\1/p' "$PGDYNO_HOME/err")"; }
# The tables shared out so that the connections end at about the same time.
shares=("stock history item new_order warehouse district" "order_line customer orders")
copy_share() { local table; for table in $1; do sql -d bare -c "\\copy $table from '$PGDYNO_HOME/$table' (format binary)"; done; }
bare() { local share; for share in "${shares[@]}"; do copy_share "$share" & done; wait; }
run_bare() { sql -d bare -c "TRUNCATE $(tr ' ' ',' <<<"${shares[*]}")"; calm; took bare; }
run_gotpc() { sql -c "DROP DATABASE IF EXISTS gotpc" -c "CREATE DATABASE gotpc"; calm
  took go-tpc tpcc prepare --driver postgres -H 127.0.0.1 -P "$port" -U postgres \
    -p "$(cat "$PGDYNO_HOME/state/sandboxes/$name/password")" -D gotpc --conn-params sslmode=disable \
    --warehouses "$warehouses" -T "$threads" --no-check; }
lua=(--db-driver=pgsql --pgsql-host="$socket" --pgsql-port="$port" --pgsql-user=postgres --pgsql-db=sbtpcc
  --scale="$warehouses" --tables=1 --use_fk=0 --trx_level=RC --threads="$threads")
run_sysbench() { sql -c "DROP DATABASE IF EXISTS sbtpcc" -c "CREATE DATABASE sbtpcc"; calm
  (cd "$SYSBENCH_TPCC" && took ./tpcc.lua "${lua[@]}" prepare); }
# How many times quicker the second one is.
quicker() { ratio "$1" "$2" 1 "${3:-1}"; }

# The same rows for the bare COPY: into files once, and tables without keys in a database of their
# own.
"$pgdyno" data create "sandbox:$name" tpcc --scale "$warehouses" --threads "$threads" 2>/dev/null
sql -c "CREATE DATABASE bare"
for table in ${shares[*]}; do
  sql -c "\\copy $table to '$PGDYNO_HOME/$table' (format binary)"
  # Column by column as pgdyno makes them, without keys.
  sql -d bare -c "CREATE TABLE $table ($(sql -c "SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod)
    || CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END, ', ' ORDER BY attnum) FROM pg_attribute
    WHERE attrelid = '$table'::regclass AND attnum > 0"))"
done
go=$(command -v go-tpc || true)
in_turn "$runs" pgbench pgdyno bare tpcc ${go:+gotpc} ${SYSBENCH_TPCC:+sysbench}
echo "data made on PostgreSQL 18, $threads connections, $runs rounds in turn, seconds"
row='%-44s %7s %16s\n'
# shellcheck disable=SC2059
{
  printf "$row" "" s ratio
  printf "$row" "pgbench scale $scale: pgbench -i" "$(of pgbench 1)" ""
  printf "$row" "pgbench scale $scale: pgdyno" "$(of pgdyno 1)" "$(quicker pgbench pgdyno)"
  printf "$row" "tpcc $warehouses warehouses: bare COPY, no keys" "$(of bare 1)" ""
  printf "$row" "tpcc $warehouses warehouses: pgdyno, rows" "$(of tpcc 2)" "$(quicker bare tpcc 2)"
  printf "$row" "tpcc $warehouses warehouses: pgdyno, all" "$(of tpcc 1)" "$(quicker bare tpcc)"
  if [ -n "$go" ]; then
    printf "$row" "tpcc $warehouses warehouses: go-tpc" "$(of gotpc 1)" ""
    printf "$row" "  to pgdyno, all" "" "$(quicker gotpc tpcc)"
  fi
  if [ -n "${SYSBENCH_TPCC:-}" ]; then
    printf "$row" "tpcc $warehouses warehouses: sysbench-tpcc" "$(of sysbench 1)" ""
    printf "$row" "  to pgdyno, all" "" "$(quicker sysbench tpcc)"
  fi
}
