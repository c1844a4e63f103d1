# What the benchmarks share: a server of their own, the figures of a run, ratios with their
# intervals. Sourced, with `pgdyno` set.
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
  # A password's hash would be a large part of what a connection costs, and connecting is not what
  # is compared.
  sed -i 's/scram-sha-256$/trust/' "$PGDYNO_HOME/state/sandboxes/$name/data/pg_hba.conf"
  "$pgdyno" sandbox restart "$name"
}
sql() { "$psql" -X -q -At -h "$socket" -p "$port" -U postgres -v ON_ERROR_STOP=1 "$@"; }
host_of() { if [ "$1" = unix ]; then echo "$socket"; else echo 127.0.0.1; fi; }

# A run's line: transactions per second, and CPU microseconds of the whole client process per
# transaction.
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
# One run of pgdyno with an engine: $load, $clients, $threads, $seconds, and the $place where the
# server listens.
bench_by() {
  local workload=tpcb
  [ "$load" = select ] && workload=select-only
  [ "$load" = update ] && workload=write
  figures_of_pgdyno "$( { time "$pgdyno" bench "host=$(host_of "$place") port=$port user=postgres dbname=postgres" \
    -w $workload -c "$clients" -j "$threads" -d "${seconds}s" --warmup 0s -q --json --engine "$1"; } 2>&1 )"
}

# Student's t, two-sided 95 %, by degrees of freedom; from 30 on the normal distribution's,
# corrected.
T95='function t95(df) {
  split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262 2.228 2.201 2.179 2.160 2.145 2.131 2.120 2.110 2.101 2.093 " \
    "2.086 2.080 2.074 2.069 2.064 2.060 2.056 2.052 2.048 2.045", t, " ")
  return df < 30 ? t[df] : 1.96 + 2.4 / df
}'
# Geometric mean of the numbers on standard input; with its 95 % interval, "0.71 (0.69-0.73)".
mean() { awk '{ s += log($1) } END { printf "%.*f\n", exp(s / NR) < 100, exp(s / NR) }'; }
interval() {
  awk "$T95"' { l = log($1); s += l; q += l * l }
    END { m = s / NR
      if (NR < 2) { printf "%.2f\n", exp(m); exit }
      d = (q - NR * m * m) / (NR - 1); h = t95(NR - 1) * sqrt((d > 0 ? d : 0) / NR)
      printf "%.2f (%.2f-%.2f)\n", exp(m), exp(m - h), exp(m + h) }'
}
# Lines of the runs are in files by the tool's name: the mean of a column, and the ratio of two
# tools' columns, pair by pair.
of() { cut -d' ' -f"$2" "$PGDYNO_HOME/$1.out" | mean; }
ratio() { # tool, other tool, column, column of the other where it is another
  paste -d' ' <(cut -d' ' -f"$3" "$PGDYNO_HOME/$1.out") <(cut -d' ' -f"${4:-$3}" "$PGDYNO_HOME/$2.out") |
    awk '{ printf "%.5f\n", $1 / $2 }' | interval
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
