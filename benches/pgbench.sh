#!/usr/bin/env bash
# The load engine beside pgbench: the same server, data, clients and transactions, run in turn in one go.
# Prints the median of each and of the ratio pair by pair. Usage: benches/pgbench.sh [PGDYNO] [RUNS] [SECONDS]
set -euo pipefail
pgdyno=$(realpath "${1:-target/release/pgdyno}")
runs=${2:-5}
seconds=${3:-5}
pgbench=$(ls /usr/lib/postgresql/*/bin/pgbench | sort -V | tail -n 1)
name=bench-$$
PGDYNO_HOME=$(mktemp -d /tmp/pgdyno-bench-XXXXXX)
export PGDYNO_HOME
chmod 755 "$PGDYNO_HOME"
trap '"$pgdyno" sandbox destroy "$name" >/dev/null 2>&1 || true; rm -rf "$PGDYNO_HOME"' EXIT

"$pgdyno" sandbox create "$name" --set max_connections=300 >/dev/null
"$pgdyno" data create "sandbox:$name" --scale 10 2>/dev/null
socket=$PGDYNO_HOME/state/sandboxes/$name/socket
port=$("$pgdyno" sandbox list --json | sed -n 's/.*"port": \([0-9]*\).*/\1/p')

# Prints: transactions per second, and CPU microseconds of the whole client process per transaction.
TIMEFORMAT='%U %S'
run_pgbench() { # clients
  local out cpu tps n
  out=$( { time "$pgbench" -S -M prepared -n -h "$socket" -p "$port" -U postgres -c "$1" -j "$2" -T "$seconds" postgres; } 2>&1 )
  cpu=$(tail -n 1 <<<"$out")
  n=$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' <<<"$out")
  tps=$(sed -n 's/^tps = \([0-9.]*\).*/\1/p' <<<"$out")
  awk -v t="$tps" -v n="$n" -v c="$cpu" 'BEGIN { split(c, p, " "); printf "%.0f %.2f\n", t, (p[1] + p[2]) * 1e6 / n }'
}
run_pgdyno() {
  local out cpu tps n
  out=$( { time "$pgdyno" bench "sandbox:$name" -w point-select -c "$1" -j "$2" -d "${seconds}s" --warmup 0s -q --json; } 2>&1 )
  cpu=$(tail -n 1 <<<"$out")
  n=$(sed -n 's/^ *"client": \([0-9]*\).*/\1/p' <<<"$out")
  tps=$(sed -n 's/^  "tps": \([0-9.]*\).*/\1/p' <<<"$out")
  grep -q '"agrees": true' <<<"$out" || { echo "the cross-check failed: $out" >&2; exit 1; }
  awk -v t="$tps" -v n="$n" -v c="$cpu" 'BEGIN { split(c, p, " "); printf "%.0f %.2f\n", t, (p[1] + p[2]) * 1e6 / n }'
}
median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

echo "prepared point select over a Unix socket, PostgreSQL 18, $runs runs of $seconds s each in turn, medians"
echo "CPU: user and system time of the whole client process per transaction"
printf '%7s %7s | %9s %9s %7s | %9s %9s %7s\n' clients threads "pgbench" "pgdyno" "ratio" "pgbench" "pgdyno" "ratio"
printf '%7s %7s | %9s %9s %7s | %9s %9s %7s\n' "" "" "TPS" "TPS" "" "us/tx" "us/tx" ""
for setup in "1 1" "8 1" "64 2" "256 2"; do
  read -r clients threads <<<"$setup"
  a=$(mktemp) && b=$(mktemp)
  for _ in $(seq "$runs"); do
    run_pgbench "$clients" "$threads" >>"$a"
    run_pgdyno "$clients" "$threads" >>"$b"
  done
  ratio() { paste "$b" "$a" | awk -v i="$1" '{ printf "%.3f\n", $i / $(i + 2) }' | median; }
  printf '%7s %7s | %9s %9s %7s | %9s %9s %7s\n' "$clients" "$threads" \
    "$(cut -d' ' -f1 "$a" | median)" "$(cut -d' ' -f1 "$b" | median)" "$(ratio 1)" \
    "$(cut -d' ' -f2 "$a" | median)" "$(cut -d' ' -f2 "$b" | median)" "$(ratio 2)"
  rm -f "$a" "$b"
done
