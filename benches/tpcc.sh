#!/usr/bin/env bash
# What TPC-C costs the client per business transaction: 5 warehouses, 8 clients, beside go-tpc and
# sysbench-tpcc where they are to be had, each on data of its own in one server, run in turn.
# Usage: benches/tpcc.sh [PGDYNO] [RUNS] [SECONDS]
# GO_TPC: the program go-tpc (go install github.com/pingcap/go-tpc/cmd/go-tpc@latest);
# SYSBENCH_TPCC: a checkout of Percona-Lab/sysbench-tpcc; WAREHOUSES=5 and CLIENTS=8 choose.
pgdyno=${1:-target/release/pgdyno}
. "$(dirname "$0")/common.sh"
runs=${2:-10}
seconds=${3:-10}
warehouses=${WAREHOUSES:-5}
clients=${CLIENTS:-8}
go_tpc=${GO_TPC:-$(command -v go-tpc || true)}
sysbench_tpcc=${SYSBENCH_TPCC:-}

set_up max_connections=100 synchronous_commit=off shared_buffers=1GB max_wal_size=8GB
"$pgdyno" data create "sandbox:$name" tpcc --scale "$warehouses" 2>/dev/null
bench() { # workload, control
  figures_of_pgdyno "$( { time "$pgdyno" bench "sandbox:$name" -w "$1" --transaction "$2" -c "$clients" -j 2 \
    -d "${seconds}s" --warmup 0s --max-tries 10 -q --json; } 2>&1 )"
}
run_statements() { bench tpcc explicit; }
run_pipelined() { bench tpcc pipelined; }
run_functions() { bench tpcc-functions none; }
tools="statements pipelined functions"
go=(tpcc --driver postgres -H 127.0.0.1 -P "$port" -U postgres -D gotpc --conn-params sslmode=disable
  --warehouses "$warehouses" -T "$clients")
run_gotpc() {
  local out n
  out=$( { time "$go_tpc" "${go[@]}" run --time "${seconds}s"; } 2>&1 )
  n=$(awk '/^\[Summary\] [A-Z_]+ - / && !/_ERR/ { for (i = 1; i <= NF; i++) if ($i == "Count:") s += $(i + 1) } END { print s }' <<<"$out")
  figures "$(awk -v n="$n" -v s="$seconds" 'BEGIN { print n / s }')" "$n" "$(tail -n 1 <<<"$out")"
}
lua=(--db-driver=pgsql --pgsql-host="$socket" --pgsql-port="$port" --pgsql-user=postgres --pgsql-db=sbtpcc
  --scale="$warehouses" --tables=1 --use_fk=0 --trx_level=RC)
run_sysbench() {
  local out n
  out=$(cd "$sysbench_tpcc" && { time ./tpcc.lua "${lua[@]}" --threads="$clients" --time="$seconds" run; } 2>&1)
  n=$(sed -n 's/^ *transactions: *\([0-9]*\).*/\1/p' <<<"$out")
  figures "$(awk -v n="$n" -v s="$seconds" 'BEGIN { print n / s }')" "$n" "$(tail -n 1 <<<"$out")"
}
if [ -n "$go_tpc" ]; then
  sql -c "CREATE DATABASE gotpc"
  "$go_tpc" "${go[@]}" prepare --no-check >/dev/null 2>&1
  tools="$tools gotpc"
fi
if [ -n "$sysbench_tpcc" ]; then
  sql -c "CREATE DATABASE sbtpcc"
  (cd "$sysbench_tpcc" && ./tpcc.lua "${lua[@]}" --threads=2 prepare >/dev/null 2>&1)
  tools="$tools sysbench"
fi
sql -c "VACUUM ANALYZE" -c "CHECKPOINT"
# shellcheck disable=SC2086
in_turn "$runs" $tools
echo "TPC-C, $warehouses warehouses, $clients clients, PostgreSQL 18, $runs rounds of runs of $seconds s each in turn"
echo "CPU: user and system time of the whole client process per business transaction; ratio to the others'"
row='%-34s %8s %10s %16s %16s\n'
# shellcheck disable=SC2059
{
  printf "$row" "" TPS "us/tx" "/go-tpc" "/sysb."
  for tool in $tools; do
    case $tool in
    statements) title="pgdyno tpcc" ;;
    pipelined) title="pgdyno tpcc, pipelined" ;;
    functions) title="pgdyno tpcc-functions" ;;
    gotpc) title="go-tpc" ;;
    *) title="sysbench-tpcc" ;;
    esac
    printf "$row" "$title" "$(of "$tool" 1)" "$(of "$tool" 2)" "${go_tpc:+$(ratio "$tool" gotpc 2)}" \
      "${sysbench_tpcc:+$(ratio "$tool" sysbench 2)}"
  done
}
"$pgdyno" data check "sandbox:$name" tpcc >/dev/null && echo "the data is consistent"
