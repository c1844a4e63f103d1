#!/usr/bin/env bash
# What the client burns per transaction: the load engine beside pgbench and sysbench, on the same
# server and data, with the same clients and prepared statements, run in turn. Prints means, and
# ratios pair by pair with their 95 % intervals; the number of pairs is fixed beforehand.
# Usage: benches/client-cpu.sh [PGDYNO] [RUNS] [SECONDS]
# PLACES="unix tcp", LOADS="select update tpcb", SETUPS="1:1 8:2 64:2 256:2" (clients:threads) and
# ENGINE=auto choose.
pgdyno=${1:-target/release/pgdyno}
. "$(dirname "$0")/common.sh"
runs=${2:-10}
seconds=${3:-2}
scale=10

# Commits that wait for a disk would measure the disk.
set_up max_connections=300 synchronous_commit=off
"$pgdyno" data create "sandbox:$name" --scale $scale 2>/dev/null

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

run_pgbench() {
  local what=(-f "$PGDYNO_HOME/$load.sql")
  [ "$load" = tpcb ] && what=(-b tpcb-like)
  figures_of_pgbench "$( { time "$pgbench" -n -M prepared "${what[@]}" -h "$(host_of "$place")" -p "$port" -U postgres \
    -c "$clients" -j "$threads" -T "$seconds" postgres; } 2>&1 )"
}
run_sysbench() {
  local out n
  out=$( { time sysbench --db-driver=pgsql --pgsql-host="$(host_of "$place")" --pgsql-port="$port" --pgsql-user=postgres \
    --pgsql-db=postgres --threads="$clients" --time="$seconds" --events=0 --percentile=99 \
    "$PGDYNO_HOME/$load.lua" run; } 2>&1 )
  n=$(sed -n 's/^ *total number of events: *\([0-9]*\).*/\1/p' <<<"$out")
  figures "$(awk -v n="$n" -v s="$seconds" 'BEGIN { print n / s }')" "$n" "$(tail -n 1 <<<"$out")"
}
run_pgdyno() { bench_by "${ENGINE:-auto}"; }

echo "prepared statements on pgbench's schema, PostgreSQL 18, $runs pairs of runs of $seconds s each in turn"
echo "CPU: user and system time of the whole client process per transaction; ratios are pgdyno's to the other's"
row='%5s %7s %7s %7s | %8s %8s %8s %16s | %8s %8s %8s %16s %16s\n'
# shellcheck disable=SC2059
printf "$row" "" "" "" "" "TPS" "TPS" "TPS" "ratio" "us/tx" "us/tx" "us/tx" "ratio" "ratio"
# shellcheck disable=SC2059
printf "$row" place load clients threads pgdyno pgbench sysbench pgbench pgdyno pgbench sysbench pgbench sysb.
for place in ${PLACES:-unix tcp}; do
  for load in ${LOADS:-select update tpcb}; do
    for setup in ${SETUPS:-1:1 8:2 64:2 256:2}; do
      clients=${setup%:*} threads=${setup#*:}
      # sysbench has no such transaction.
      if [ "$load" = tpcb ]; then sysbench=""; else sysbench=sysbench; fi
      in_turn "$runs" pgdyno pgbench $sysbench
      # shellcheck disable=SC2059
      printf "$row" "$place" "$load" "$clients" "$threads" \
        "$(of pgdyno 1)" "$(of pgbench 1)" "${sysbench:+$(of sysbench 1)}" "$(ratio pgdyno pgbench 1)" \
        "$(of pgdyno 2)" "$(of pgbench 2)" "${sysbench:+$(of sysbench 2)}" "$(ratio pgdyno pgbench 2)" \
        "${sysbench:+$(ratio pgdyno sysbench 2)}"
    done
  done
done
