#!/usr/bin/env bash
# What an open loop costs the client: arrivals over 64 clients, beside `pgbench -R`, run in turn;
# begun as they are due, and in batches.
# Usage: benches/open-loop.sh [PGDYNO] [RUNS] [SECONDS]
# RATES="5000 20000" and BATCHES="0ms 1ms 2ms" choose.
pgdyno=${1:-target/release/pgdyno}
. "$(dirname "$0")/common.sh"
runs=${2:-10}
seconds=${3:-5}

set_up
"$pgdyno" data create "sandbox:$name" --scale 10 2>/dev/null
printf '\\set aid random(1, 1000000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n' >"$PGDYNO_HOME/select.sql"
run_pgbench() {
  figures_of_pgbench "$( { time "$pgbench" -n -M prepared -f "$PGDYNO_HOME/select.sql" -R "$rate" -h "$socket" -p "$port" \
    -U postgres -c 64 -j 2 -T "$seconds" postgres; } 2>&1 )"
}
run_pgdyno() {
  figures_of_pgdyno "$( { time "$pgdyno" bench "sandbox:$name" -w select-only -R "$rate" --batch "$batch" -c 64 -j 2 -d "${seconds}s" \
    --warmup 0s -q --json; } 2>&1 )"
}
echo "select by key over a Unix socket, 64 clients, 2 threads, Poisson arrivals, $runs pairs of runs of $seconds s each in turn"
row='%8s %6s | %8s %8s | %8s %8s %16s\n'
# shellcheck disable=SC2059
{
  printf "$row" "" "" TPS TPS us/tx us/tx ""
  printf "$row" rate batch pgdyno pgbench pgdyno pgbench ratio
  for rate in ${RATES:-5000 20000}; do
    for batch in ${BATCHES:-0ms 1ms 2ms}; do
      in_turn "$runs" pgdyno pgbench
      printf "$row" "$rate" "$batch" "$(of pgdyno 1)" "$(of pgbench 1)" "$(of pgdyno 2)" "$(of pgbench 2)" \
        "$(ratio pgdyno pgbench 2)"
    done
  done
}
