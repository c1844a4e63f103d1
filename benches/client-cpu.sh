#!/usr/bin/env bash
# What the client burns per transaction: the load engine beside pgbench and sysbench, on the same server and data, with
# the same clients and prepared statements, run in turn. Prints medians, and medians of the ratio pair by pair.
# Usage: benches/client-cpu.sh [PGDYNO] [RUNS] [SECONDS]
# PLACES="unix tcp", LOADS="select update", SETUPS="1:1 8:2 64:2 256:2" (clients:threads) and ENGINE=auto choose.
set -euo pipefail
pgdyno=$(realpath "${1:-target/release/pgdyno}")
runs=${2:-5}
seconds=${3:-2}
pgbench=$(ls /usr/lib/postgresql/*/bin/pgbench | sort -V | tail -n 1)
scale=10
name=bench-$$
PGDYNO_HOME=$(mktemp -d /tmp/pgdyno-bench-XXXXXX)
export PGDYNO_HOME
chmod 755 "$PGDYNO_HOME"
trap '"$pgdyno" sandbox destroy "$name" >/dev/null 2>&1 || true; rm -rf "$PGDYNO_HOME"' EXIT

# Commits that wait for a disk would measure the disk.
"$pgdyno" sandbox create "$name" --set max_connections=300 --set synchronous_commit=off >/dev/null
"$pgdyno" data create "sandbox:$name" --scale $scale 2>/dev/null
socket=$PGDYNO_HOME/state/sandboxes/$name/socket
port=$("$pgdyno" sandbox list --json | sed -n 's/.*"port": \([0-9]*\).*/\1/p')
# A password's hash would be a large part of what a connection costs, and connecting is not what is compared.
sed -i 's/scram-sha-256$/trust/' "$PGDYNO_HOME/state/sandboxes/$name/data/pg_hba.conf"
"$pgdyno" sandbox restart "$name"

select_sql="SELECT abalance FROM pgbench_accounts WHERE aid ="
update_sql="UPDATE pgbench_accounts SET abalance = abalance +"
cat >"$PGDYNO_HOME/select.sql" <<SQL
\set aid random(1, 100000 * $scale)
$select_sql :aid;
SQL
cat >"$PGDYNO_HOME/update.sql" <<SQL
\set aid random(1, 100000 * $scale)
\set delta random(-5000, 5000)
$update_sql :delta WHERE aid = :aid;
SQL
lua() { # statement, parameters
  cat <<LUA
function thread_init()
  connection = sysbench.sql.driver():connect()
  statement = connection:prepare("$1")
  values = {}
  for i = 1, $2 do values[i] = statement:bind_create(sysbench.sql.type.INT) end
  statement:bind_param(unpack(values))
end
function event()
  values[$2]:set(sysbench.rand.uniform(1, 100000 * $scale))
  if $2 == 2 then values[1]:set(sysbench.rand.uniform(0, 10000) - 5000) end
  statement:execute()
end
LUA
}
lua "$select_sql ?" 1 >"$PGDYNO_HOME/select.lua"
lua "$update_sql ? WHERE aid = ?" 2 >"$PGDYNO_HOME/update.lua"
chmod 644 "$PGDYNO_HOME"/*.sql "$PGDYNO_HOME"/*.lua

# Each prints: transactions per second, and CPU microseconds of the whole client process per transaction.
TIMEFORMAT='%U %S'
figures() { awk -v t="$1" -v n="$2" -v c="$3" 'BEGIN { split(c, p, " "); printf "%.0f %.3f\n", t, (p[1] + p[2]) * 1e6 / n }'; }
host_of() { if [ "$1" = unix ]; then echo "$socket"; else echo 127.0.0.1; fi; }
run_pgbench() { # place load clients threads
  local out
  out=$( { time "$pgbench" -n -M prepared -f "$PGDYNO_HOME/$2.sql" -h "$(host_of "$1")" -p "$port" -U postgres \
    -c "$3" -j "$4" -T "$seconds" postgres; } 2>&1 )
  figures "$(sed -n 's/^tps = \([0-9.]*\).*/\1/p' <<<"$out")" \
    "$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' <<<"$out")" "$(tail -n 1 <<<"$out")"
}
run_sysbench() {
  local out n
  out=$( { time sysbench --db-driver=pgsql --pgsql-host="$(host_of "$1")" --pgsql-port="$port" --pgsql-user=postgres \
    --pgsql-db=postgres --threads="$3" --time="$seconds" --events=0 --percentile=99 \
    "$PGDYNO_HOME/$2.lua" run; } 2>&1 )
  n=$(sed -n 's/^ *total number of events: *\([0-9]*\).*/\1/p' <<<"$out")
  figures "$(awk -v n="$n" -v s="$seconds" 'BEGIN { print n / s }')" "$n" "$(tail -n 1 <<<"$out")"
}
run_pgdyno() {
  local out target workload=select-only
  [ "$2" = update ] && workload=write
  target="host=$(host_of "$1") port=$port user=postgres dbname=postgres"
  out=$( { time "$pgdyno" bench "$target" -w $workload -c "$3" -j "$4" -d "${seconds}s" --warmup 0s -q --json \
    --engine "${ENGINE:-auto}"; } 2>&1 )
  grep -q '"agrees": true' <<<"$out" || { echo "the cross-check failed: $out" >&2; exit 1; }
  figures "$(sed -n 's/^  "tps": \([0-9.]*\).*/\1/p' <<<"$out")" \
    "$(sed -n 's/^ *"client": \([0-9]*\).*/\1/p' <<<"$out")" "$(tail -n 1 <<<"$out")"
}
median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
ratio() { paste -d' ' "$PGDYNO_HOME/pgdyno.out" "$PGDYNO_HOME/$1.out" | awk -v i="$2" '{ printf "%.3f\n", $i / $(i + 2) }' | median; }
of() { cut -d' ' -f"$2" "$PGDYNO_HOME/$1.out" | median; }

echo "prepared statements on pgbench's schema, PostgreSQL 18, $runs runs of $seconds s each in turn, medians"
echo "CPU: user and system time of the whole client process per transaction; ratios are pgdyno's to the other's"
row='%5s %7s %7s %7s | %8s %8s %8s %6s | %8s %8s %8s %6s %6s\n'
# shellcheck disable=SC2059
printf "$row" "" "" "" "" "TPS" "TPS" "TPS" "ratio" "us/tx" "us/tx" "us/tx" "ratio" "ratio"
# shellcheck disable=SC2059
printf "$row" place load clients threads pgdyno pgbench sysbench pgbench pgdyno pgbench sysbench pgbench sysb.
for place in ${PLACES:-unix tcp}; do
  for load in ${LOADS:-select update}; do
    for setup in ${SETUPS:-1:1 8:2 64:2 256:2}; do
      clients=${setup%:*} threads=${setup#*:}
      rm -f "$PGDYNO_HOME"/*.out
      for _ in $(seq "$runs"); do
        for tool in pgdyno pgbench sysbench; do
          "run_$tool" "$place" "$load" "$clients" "$threads" >>"$PGDYNO_HOME/$tool.out"
        done
      done
      # shellcheck disable=SC2059
      printf "$row" "$place" "$load" "$clients" "$threads" \
        "$(of pgdyno 1)" "$(of pgbench 1)" "$(of sysbench 1)" "$(ratio pgbench 1)" \
        "$(of pgdyno 2)" "$(of pgbench 2)" "$(of sysbench 2)" "$(ratio pgbench 2)" "$(ratio sysbench 2)"
    done
  done
done
