#!/usr/bin/env bash
# What the series of a server cost while 100 connections are busy: CPU of the sampler and of its
# server process, and the load's throughput with and without, in turn. Beside it sar and a psql that
# reads pg_stat_activity once a second. Then an experiment on whether a sampler costs the load
# anything, unless EXPERIMENT=no. LOADS="simple tpcb" chooses, "" leaves only that. Prints means,
# and ratios pair by pair with their 95 % intervals; the number of pairs is fixed beforehand.
# sampler.sh PGDYNO RECORD [PAIRS]; RECORD: cargo build --release -p pgdyno-lab --example record
pgdyno=${1:?usage: sampler.sh PGDYNO RECORD [PAIRS]}
record=$(realpath "${2:?usage: sampler.sh PGDYNO RECORD [PAIRS]}")
pairs=${3:-5}
seconds=20
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
command -v sar >/dev/null || { echo "sar is missing: apt-get install sysstat" >&2; exit 1; }
set_up max_connections=150 shared_preload_libraries=pg_stat_statements
sql -c 'CREATE EXTENSION pg_stat_statements'
"$pgdyno" data create "sandbox:$name" --scale 10 >/dev/null 2>&1
conninfo="host=$socket port=$port user=postgres dbname=postgres"

# One load; its line: transactions per second. The server counts the watcher's transactions too, so
# the cross-check may fail, and the command with it.
load() { { "$pgdyno" bench "sandbox:$name" -w "$workload" -c 100 -j 1 -d $((seconds + 4)) --warmup 1 --json 2>/dev/null || true; } |
  sed -n 's/^  "tps": \([0-9.]*\).*/\1/p'; }
# Milliseconds of CPU that a process and its threads have used.
cpu_ms() { awk '{ s += $1 } END { printf "%.3f", s / 1e6 }' /proc/"$1"/task/*/schedstat; }
run_none() { load; }
run_pgdyno() {
  "$record" "$conninfo" $seconds >"$PGDYNO_HOME/record.txt" &
  local watcher=$!
  load
  wait $watcher
  sed -n 's/^cpu_ms_per_s sampler \([0-9.]*\) server \([0-9.]*\) together \([0-9.]*\)$/\1 \2 \3/p' \
    "$PGDYNO_HOME/record.txt" >>"$PGDYNO_HOME/pgdyno.cpu"
}
run_sar() {
  sar -A 1 -o "$PGDYNO_HOME/sar.data" >/dev/null 2>&1 &
  local sar=$!
  { echo 'SELECT * FROM pg_stat_activity \watch 1'; } >"$PGDYNO_HOME/watch.sql"
  PGAPPNAME=watcher "$psql" -X -q -h "$socket" -p "$port" -U postgres -f "$PGDYNO_HOME/watch.sql" >/dev/null 2>&1 &
  local watcher=$! backend="" begun_ms ended_ms sadc
  { sleep 1; backend=$(sql -c "SELECT pid FROM pg_stat_activity WHERE application_name = 'watcher'")
    sadc=$(pgrep -P $sar || true)
    begun_ms="$(cpu_ms $watcher) $(cpu_ms "$backend") $(for p in $sar $sadc; do cpu_ms "$p"; echo; done | awk '{ s += $1 } END { print s }')"
    sleep $seconds
    ended_ms="$(cpu_ms $watcher) $(cpu_ms "$backend") $(for p in $sar $sadc; do cpu_ms "$p"; echo; done | awk '{ s += $1 } END { print s }')"
    awk -v a="$begun_ms" -v b="$ended_ms" -v s=$seconds 'BEGIN { split(a, p, " "); split(b, q, " ");
      printf "%.3f %.3f %.3f\n", (q[1] - p[1] + q[3] - p[3]) / s, (q[2] - p[2]) / s, (q[1] - p[1] + q[2] - p[2] + q[3] - p[3]) / s }' \
      >>"$PGDYNO_HOME/sar.cpu"; } &
  local meter=$!
  load
  wait $meter
  kill $watcher $sar
  wait $watcher $sar 2>/dev/null || true
}

row='%-8s %-22s %10s %16s %10s %12s %10s %16s\n'
# shellcheck disable=SC2059
printf "$row" load watched-by tps of-none own-ms/s server-ms/s all-ms/s all-of-sar
for workload in ${LOADS-simple tpcb}; do
  in_turn "$pairs" none pgdyno sar
  for tool in none pgdyno sar; do
    cpu="- - -" of_sar=""
    [ $tool = none ] || cpu="$(for at in 1 2 3; do cut -d' ' -f$at "$PGDYNO_HOME/$tool.cpu" | mean; done | paste -sd' ')"
    [ $tool = pgdyno ] && of_sar=$(paste -d' ' <(cut -d' ' -f3 "$PGDYNO_HOME/pgdyno.cpu") <(cut -d' ' -f3 "$PGDYNO_HOME/sar.cpu") |
      awk '{ print $1 / $2 }' | interval)
    # shellcheck disable=SC2059,SC2086
    printf "$row" "$workload" "$(case $tool in none) echo nothing ;; pgdyno) echo "pgdyno 1 Hz, 10 Hz" ;; sar) echo "sar -A 1, psql 1 Hz" ;; esac)" \
      "$(of $tool 1)" "$(ratio $tool none 1)" $cpu "$of_sar"
  done
  rm -f "$PGDYNO_HOME"/*.cpu
done

[ "${EXPERIMENT:-yes}" = yes ] || exit 0
# Whether it costs the load anything, as an experiment decides that: its trials are recorded
# themselves, so that the neighbour is a second sampler. It counts in a database of its own, for the
# cross-check.
cat >"$PGDYNO_HOME/sampler.toml" <<TOML
name = "sampler"
question = "What does another sampler cost a load of 100 clients?"
design = "one-at-a-time"
blocks = $((4 * pairs))
stop = "when-decided"
[target]
sandbox = "$name"
restart = "when-needed"
[data]
scale = 10
[load]
workload = "tpcb"
clients = 100
threads = 1
warmup_s = 2
measure_s = 10
[[factor]]
name = "sampler"
[[factor.level]]
name = "none"
server = { neighbour = "none" }
[[factor.level]]
name = "another"
server = { neighbour = "exec $record 'host=$socket port=$port user=postgres dbname=template1' 3600 >>$PGDYNO_HOME/neighbour.txt" }
TOML
"$pgdyno" run "$PGDYNO_HOME/sampler.toml" --report "$PGDYNO_HOME/report.html" 2>"$PGDYNO_HOME/run.txt" ||
  { cat "$PGDYNO_HOME/run.txt" >&2; exit 1; }
[ "$(grep -c backend "$PGDYNO_HOME/neighbour.txt")" -ge "$pairs" ] || { echo "the neighbour did not run" >&2; exit 1; }
