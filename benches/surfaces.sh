#!/usr/bin/env bash
# Trials of settings chosen by chance on real machines (sandboxes with limits), each with a load:
# what `search_methods` of pgdyno-stats fits responses to, which ways to search are compared on. The
# space is that of `pgdyno tune`.
# Usage: benches/surfaces.sh [PGDYNO] [DIRECTORY] [NAME ...]     TRIALS=90: half an hour each
#
#   tpcb       512 MB of memory, 1,000 IOPS, data of twice the memory
#   tpcc       1 GB, 3,000 IOPS, 125 MB/s, data of three times the memory
#   reads      by key, on one CPU, data that fits its memory
#   analytics  512 MB, sums over a table of twice the memory
set -eu
pgdyno=${1:-target/release/pgdyno}
directory=${2:-target/surfaces}
shift $(($# < 2 ? $# : 2))
name=surfaces
. "$(dirname "$0")/home.sh"
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$directory"
directory=$(realpath "$directory")
[ $# -gt 0 ] || set -- tpcb tpcc reads analytics
for each; do
  case $each in
  tpcb) machine=(--memory 512MB --iops 1000) load=(--workload tpcb --scale 70 --clients 8) ;;
  tpcc) machine=(--memory 1GB --iops 3000 --bandwidth 125M) load=(--workload tpcc --scale 30 --clients 16) ;;
  reads) machine=(--memory 2GB --cpus 1) load=(--workload select-only --scale 20 --clients 8) ;;
  analytics)
    echo 'SELECT bid, count(*), sum(abalance) FROM pgbench_accounts GROUP BY bid ORDER BY 3 DESC LIMIT 5;' >"$PGDYNO_HOME/sums.sql"
    machine=(--memory 512MB) load=(--script "$PGDYNO_HOME/sums.sql" --kind analytics --scale 70 --clients 2)
    ;;
  *) echo "surfaces: no machine \"$each\"; expected tpcb, tpcc, reads or analytics" >&2 && exit 2 ;;
  esac
  "$pgdyno" sandbox create "$name" "${machine[@]}" >/dev/null
  "$pgdyno" tune "sandbox:$name" "${load[@]}" --trials "${TRIALS:-90}" --duration 10s --warmup 3s --seed 1 \
    --optimizer "exec:$here/random_optimizer.py $directory/$each.json" --dry-run 2>/dev/null >"$PGDYNO_HOME/$each.toml"
  "$pgdyno" run "$PGDYNO_HOME/$each.toml" --target "sandbox:$name" >/dev/null 2>"$directory/$each.log" ||
    { tail -n 3 "$directory/$each.log" >&2; exit 1; }
  "$pgdyno" sandbox destroy "$name" >/dev/null
  echo "$each: $(python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["trials"]))' "$directory/$each.json") trials"
done
