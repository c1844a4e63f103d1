# What the benchmarks share: a server of their own, the figures of a run, medians. Sourced, with `pgdyno` set.
set -euo pipefail
name=bench-$$
. "$(dirname "${BASH_SOURCE[0]}")/home.sh"
pgbench=$(ls /usr/lib/postgresql/*/bin/pgbench | sort -V | tail -n 1)
psql=$(dirname "$pgbench")/psql

# Makes the server, with settings in its own form (max_connections=300 ...).
set_up() {
  local setting settings=()
  for setting in "$@"; do settings+=(--set "$setting"); done
  "$pgdyno" sandbox create "$name" "${settings[@]}" >/dev/null
  socket=$PGDYNO_HOME/state/sandboxes/$name/socket
  port=$("$pgdyno" sandbox list --json | sed -n 's/.*"port": \([0-9]*\).*/\1/p')
  # A password's hash would be a large part of what a connection costs, and connecting is not what is compared.
  sed -i 's/scram-sha-256$/trust/' "$PGDYNO_HOME/state/sandboxes/$name/data/pg_hba.conf"
  "$pgdyno" sandbox restart "$name"
}
sql() { "$psql" -X -q -At -h "$socket" -p "$port" -U postgres -v ON_ERROR_STOP=1 "$@"; }
host_of() { if [ "$1" = unix ]; then echo "$socket"; else echo 127.0.0.1; fi; }

# A run's line: transactions per second, and CPU microseconds of the whole client process per transaction.
TIMEFORMAT='%U %S'
figures() { awk -v t="$1" -v n="$2" -v c="$3" 'BEGIN { split(c, p, " "); printf "%.0f %.3f\n", t, (p[1] + p[2]) * 1e6 / n }'; }
# The same from the output of pgbench, and of `pgdyno bench --json`, with the two times behind it.
figures_of_pgbench() {
  figures "$(sed -n 's/^tps = \([0-9.]*\).*/\1/p' <<<"$1")" \
    "$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' <<<"$1")" "$(tail -n 1 <<<"$1")"
}
figures_of_pgdyno() {
  grep -q '"agrees": true' <<<"$1" || { echo "the cross-check failed: $1" >&2; exit 1; }
  figures "$(sed -n 's/^  "tps": \([0-9.]*\).*/\1/p' <<<"$1")" \
    "$(sed -n 's/^  "committed": \([0-9]*\).*/\1/p' <<<"$1")" "$(tail -n 1 <<<"$1")"
}

# Lines of the runs are in files by the tool's name: the median of a column, and the median of the ratio pair by pair of
# two tools' columns.
median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
of() { cut -d' ' -f"$2" "$PGDYNO_HOME/$1.out" | median; }
ratio() {
  paste -d' ' <(cut -d' ' -f"$3" "$PGDYNO_HOME/$1.out") <(cut -d' ' -f"$3" "$PGDYNO_HOME/$2.out") |
    awk '{ printf "%.3f\n", $1 / $2 }' | median
}
# Runs the tools in turn, so often.
in_turn() {
  local runs=$1 tool
  shift
  rm -f "$PGDYNO_HOME"/*.out
  for _ in $(seq "$runs"); do
    for tool in "$@"; do "run_$tool" >>"$PGDYNO_HOME/$tool.out"; done
  done
}
