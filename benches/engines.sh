#!/usr/bin/env bash
# How bytes are moved: CPU of the whole client process per transaction with epoll, io_uring, and for
# a single client blocking calls, on one server, run in turn. Prints means, and ratios pair by pair
# with their 95 % intervals; the number of pairs is fixed beforehand.
# Usage: benches/engines.sh [PGDYNO] [RUNS] [SECONDS]
# PLACES="unix tcp", LOADS="select tpcb" and SETUPS="1:1 8:2 64:2 256:2" (clients:threads) choose.
pgdyno=${1:-target/release/pgdyno}
. "$(dirname "$0")/common.sh"
runs=${2:-10}
seconds=${3:-2}
set_up max_connections=300 synchronous_commit=off
"$pgdyno" data create "sandbox:$name" --scale 10 2>/dev/null
run_epoll() { bench_by epoll; }
run_uring() { bench_by io-uring; }
run_blocking() { bench_by blocking; }

echo "prepared statements on pgbench's schema, PostgreSQL 18, $runs pairs of runs of $seconds s each in turn"
row='%5s %7s %7s %7s | %8s %16s %16s\n'
# shellcheck disable=SC2059
printf "$row" place load clients threads "us/tx" "io_uring to it" "blocking to it"
for place in ${PLACES:-unix tcp}; do
  for load in ${LOADS:-select tpcb}; do
    for setup in ${SETUPS:-1:1 8:2 64:2 256:2}; do
      clients=${setup%:*} threads=${setup#*:} blocking=""
      # A thread of blocking calls has one client.
      if [ "$clients" = "$threads" ]; then blocking=blocking; fi
      in_turn "$runs" epoll uring $blocking
      # shellcheck disable=SC2059
      printf "$row" "$place" "$load" "$clients" "$threads" "$(of epoll 2)" "$(ratio uring epoll 2)" \
        "${blocking:+$(ratio blocking epoll 2)}"
    done
  done
done
