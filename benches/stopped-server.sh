#!/usr/bin/env bash
# What is reported of a server that is stopped for a second: an open loop of 20 s at half of the
# capacity, in whose middle all processes of the server are stopped. The exact percentiles follow
# from the schedule of arrivals: those that come meanwhile wait for the end of the stop and for the
# ones before them. The capacity, which they depend on, is measured before and after, and is the
# mean of both.
# Usage: benches/stopped-server.sh [PGDYNO] [RUNS]
# TOOLS="pgdyno pgbench sysbench" chooses.
pgdyno=${1:-target/release/pgdyno}
. "$(dirname "$0")/common.sh"
runs=${2:-3}
seconds=20

set_up
"$pgdyno" data create "sandbox:$name" --scale 10 2>/dev/null
printf '\\set aid random(1, 1000000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n' >"$PGDYNO_HOME/select.sql"
cat >"$PGDYNO_HOME/select.lua" <<'LUA'
function thread_init()
  connection = sysbench.sql.driver():connect()
  statement = connection:prepare("SELECT abalance FROM pgbench_accounts WHERE aid = ?")
  id = statement:bind_create(sysbench.sql.type.INT)
  statement:bind_param(id)
end
function event()
  id:set(sysbench.rand.uniform(1, 1000000))
  statement:execute()
end
LUA
chmod 644 "$PGDYNO_HOME"/select.*
postmaster=$(head -n 1 "$PGDYNO_HOME/state/sandboxes/$name/data/postmaster.pid")
# What creating the data left to do is done before.
sql -c "VACUUM ANALYZE" -c "CHECKPOINT"
everyone() { echo "$postmaster"; cat "/proc/$postmaster/task/$postmaster/children"; }
# Stops the server for a second in the middle of what runs meanwhile; prints how long it was.
stop_in_the_middle() {
  local pids begun
  sleep $((seconds / 2))
  # shellcheck disable=SC2046
  pids=$(echo $(everyone))
  begun=$(date +%s.%N)
  # shellcheck disable=SC2086
  kill -STOP $pids
  sleep 1
  # shellcheck disable=SC2086
  kill -CONT $pids
  awk -v a="$begun" -v b="$(date +%s.%N)" 'BEGIN { print b - a }'
}
# p99 and p99.9 in ms of arrivals at an even rate, served in their order by a server of a capacity
# that is stopped for so long in the middle.
exact() { # rate, capacity, stop
  awk -v r="$1" -v c="$2" -v s="$3" -v t="$seconds" 'BEGIN {
    begin = t / 2; free = 0
    for (i = 0; i < r * t; i++) {
      due = i / r
      done = (due > free ? due : free) + 1 / c
      if (done > begin && done - 1 / c < begin + s && done < begin + s) done = begin + s + 1 / c
      free = done
      print (done - due) * 1e3
    }
  }' | sort -g | awk '{ v[NR] = $1 } END { print v[int(NR * 0.99) + 1], v[int(NR * 0.999) + 1] }'
}
field() { sed -n "s/^ *\"$1\": \([0-9.]*\).*/\1/p" <<<"$2" | head -n 1; }
echo "select by key over a Unix socket, 64 clients, half of the capacity for $seconds s, the server stopped for 1 s; ms"
row='%-10s %9s %10s %10s %8s %10s %8s\n'
# shellcheck disable=SC2059
printf "$row" "" rate "p99 exact" "p99 shown" ratio "p99.9 shown" ratio
measure_capacity() {
  field tps "$("$pgdyno" bench "sandbox:$name" -w select-only -c 64 -j 1 -d 5s --warmup 1s -q --json)"
}
quotient() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f", a / b }'; }
for _ in $(seq "$runs"); do
  after=$(measure_capacity)
  for tool in ${TOOLS:-pgdyno pgbench sysbench}; do
    before=$after
    rate=$(awk -v c="$before" 'BEGIN { printf "%d", c / 2 }')
    case $tool in
    pgdyno)
      "$pgdyno" bench "sandbox:$name" -w select-only -R "$rate" --spacing constant -c 64 -j 1 -d ${seconds}s --warmup 0s \
        -q --json >"$PGDYNO_HOME/out" & ;;
    pgbench)
      rm -f "$PGDYNO_HOME"/log.*
      "$pgbench" -n -M prepared -f "$PGDYNO_HOME/select.sql" -R "$rate" -h "$socket" -p "$port" -U postgres -c 64 -j 1 \
        -T $seconds -l --log-prefix="$PGDYNO_HOME/log" postgres >/dev/null 2>&1 & ;;
    sysbench)
      sysbench --db-driver=pgsql --pgsql-host="$socket" --pgsql-port="$port" --pgsql-user=postgres --pgsql-db=postgres \
        --threads=64 --time=$seconds --events=0 --rate="$rate" --percentile=99 "$PGDYNO_HOME/select.lua" run \
        >"$PGDYNO_HOME/out" 2>&1 & ;;
    esac
    stop=$(stop_in_the_middle)
    wait $! || true
    after=$(measure_capacity)
    capacity=$(awk -v a="$before" -v b="$after" 'BEGIN { print (a + b) / 2 }')
    read -r p99 p999 <<<"$(exact "$rate" "$capacity" "$stop")"
    case $tool in
    pgdyno) read -r reported most < <(python3 -c '
import json, sys
times = json.load(sys.stdin)["response_ms"]
print(times["p99"], times["p99.9"])' <"$PGDYNO_HOME/out") ;;
    pgbench) read -r reported most <<<"$(cat "$PGDYNO_HOME"/log.* | awk '{ print $3 / 1e3 }' | sort -g |
      awk '{ v[NR] = $1 } END { print v[int(NR * 0.99) + 1], v[int(NR * 0.999) + 1] }')" ;;
    sysbench) reported=$(sed -n 's/^ *99th percentile: *\([0-9.]*\).*/\1/p' "$PGDYNO_HOME/out"); most="" ;;
    esac
    [ -n "$reported" ] || { echo "$tool has shown no percentile" >&2; exit 1; }
    ratio=$(quotient "$reported" "$p99")
    most_ratio=$([ -z "$most" ] || quotient "$most" "$p999")
    echo "$ratio $most_ratio" >>"$PGDYNO_HOME/$tool.ratios"
    # shellcheck disable=SC2059
    printf "$row" $tool "$rate" "$p99" "$reported" "$ratio" "${most:--}" "$most_ratio"
  done
done
for tool in ${TOOLS:-pgdyno pgbench sysbench}; do
  echo "$tool: shown to exact: p99 $(cut -d' ' -f1 "$PGDYNO_HOME/$tool.ratios" | interval)," \
    "p99.9 $(cut -d' ' -f2 "$PGDYNO_HOME/$tool.ratios" | interval)"
done
