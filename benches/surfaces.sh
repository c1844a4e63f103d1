#!/usr/bin/env bash
# Trials of settings chosen by chance on real machines (sandboxes with limits), each with a load:
# what `search_methods` of pgdyno-stats fits responses to, which ways to search are compared on. The
# space is that of `pgdyno tune`.
# Usage: benches/surfaces.sh [PGDYNO] [DIRECTORY] [NAME ...]     TRIALS=90: half an hour each
#
#   tpcb         512 MB of memory, 1,000 IOPS, data of twice the memory
#   tpcc         1 GB, 3,000 IOPS, 125 MB/s, data of three times the memory
#   reads        by key, on one CPU, data that fits its memory
#   reads-large  the same with 1 GB and 3,000 IOPS, data of four times the memory
#   analytics    512 MB, sums over a table of twice the memory
#   mixed        1 GB, 3,000 IOPS, sums over parts of a table and changes by key, data of twice the memory
set -eu
pgdyno=${1:-target/release/pgdyno}
directory=${2:-target/surfaces}
shift $(($# < 2 ? $# : 2))
name=surfaces
. "$(dirname "$0")/home.sh"
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$directory"
directory=$(realpath "$directory")
[ $# -gt 0 ] || set -- tpcb tpcc reads reads-large analytics mixed
for each; do
  case $each in
  tpcb) machine=(--memory 512MB --iops 1000) load=(--workload tpcb --scale 70 --clients 8) ;;
  tpcc) machine=(--memory 1GB --iops 3000 --bandwidth 125M) load=(--workload tpcc --scale 30 --clients 16) ;;
  reads) machine=(--memory 2GB --cpus 1) load=(--workload select-only --scale 20 --clients 8) ;;
  reads-large) machine=(--memory 1GB --iops 3000) load=(--workload select-only --scale 270 --clients 16) ;;
  analytics)
    echo 'SELECT bid, count(*), sum(abalance) FROM pgbench_accounts GROUP BY bid ORDER BY 3 DESC LIMIT 5;' >"$PGDYNO_HOME/sums.sql"
    machine=(--memory 512MB) load=(--script "$PGDYNO_HOME/sums.sql" --kind analytics --scale 70 --clients 2)
    ;;
  mixed)
    cat >"$PGDYNO_HOME/mixed.sql" <<'SQL'
\set aid random(1, 100000 * :scale)
\set bid random(1, :scale)
SELECT abalance % 7, count(*), sum(abalance) FROM pgbench_accounts WHERE aid BETWEEN :aid AND :aid + 100000 GROUP BY 1;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;
UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = :bid;
SQL
    machine=(--memory 1GB --iops 3000) load=(--script "$PGDYNO_HOME/mixed.sql" --kind mixed --scale 135 --clients 4)
    ;;
  *) echo "surfaces: no machine \"$each\"; expected tpcb, tpcc, reads, reads-large, analytics or mixed" >&2 && exit 2 ;;
  esac
  "$pgdyno" sandbox create "$name" "${machine[@]}" >/dev/null
  "$pgdyno" tune "sandbox:$name" "${load[@]}" --trials "${TRIALS:-90}" --duration 10s --warmup 3s --seed 1 \
    --optimizer "exec:$here/random_optimizer.py $directory/$each.json" --dry-run 2>/dev/null >"$PGDYNO_HOME/$each.toml"
  "$pgdyno" run "$PGDYNO_HOME/$each.toml" --target "sandbox:$name" >/dev/null 2>"$directory/$each.log" ||
    { tail -n 3 "$directory/$each.log" >&2; exit 1; }
  "$pgdyno" sandbox destroy "$name" >/dev/null
  # What the search may not try is no point of the response either.
  PYTHONPATH=$here/../contrib python3 -c '
import json, sys, tomllib
from pathlib import Path
from pgdyno_optimizer import amount
recorded, file = Path(sys.argv[1]), tomllib.loads(Path(sys.argv[2]).read_text())
limits = [{"sum": limit["sum"], "at_most": amount(limit["at_most"])} for limit in file["search"].get("limit", [])]
recorded.write_text(json.dumps(json.loads(recorded.read_text()) | {"limits": limits}) + "\n")
' "$directory/$each.json" "$PGDYNO_HOME/$each.toml"
  echo "$each: $(python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["trials"]))' "$directory/$each.json") trials"
done
