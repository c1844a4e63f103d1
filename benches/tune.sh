#!/usr/bin/env bash
# `pgdyno tune` so many times, each with a seed of its own: the confirmed throughput against stock
# settings, and against pgtune's, with their intervals; which part of all trials failed; how many
# winners lost 10 % or more of what the search expected of them.
# Usage: benches/tune.sh [PGDYNO] [DIRECTORY] [SEED ...]     TRIALS=30, CLIENTS=24: ten seeds take about a day; KEEP_STORE=file
#
#   a sandbox of 1 GB of memory, 3,000 IOPS and 125 MB/s; TPC-C, data of three to four times its
#   memory
set -eu
pgdyno=${1:-target/release/pgdyno}
directory=${2:-target/tune}
shift $(($# < 2 ? $# : 2))
name=tune
. "$(dirname "$0")/home.sh"
mkdir -p "$directory"
directory=$(realpath "$directory")
[ $# -gt 0 ] || set -- 1 2 3 4 5 6 7 8 9 10
echo "| seed | outcome | against stock | against pgtune | settings | time |"
echo "|--:|---|---|---|--:|--:|"
for seed; do
  begun=$SECONDS
  "$pgdyno" sandbox create "$name" --memory 1GB --iops 3000 --bandwidth 125M >/dev/null
  # Exit code 5: nothing better, or not confirmed.
  code=0
  "$pgdyno" tune "sandbox:$name" --workload tpcc --scale 35 --clients "${CLIENTS:-24}" --trials "${TRIALS:-30}" \
    --seed "$seed" --output "$PGDYNO_HOME/tuned-$seed.toml" --json >"$directory/$seed.json" 2>"$directory/$seed.log" || code=$?
  [ "$code" = 0 ] || [ "$code" = 5 ] || { tail -n 3 "$directory/$seed.log" >&2; exit 1; }
  "$pgdyno" sandbox destroy "$name" >/dev/null
  python3 -c '
import json, sys
found = json.load(open(sys.argv[1]))
shown = lambda effect: "not measured" if effect is None else "%.2f (%.2f to %.2f)" % (effect["ratio"], effect["ratio_low"], effect["ratio_high"])
stock = (found.get("proven") or found.get("best") or {}).get("effect")
pgtune = found.get("others", {}).get("pgtune", {}).get("best")
print("| %s | %s | %s | %s | %d | %s s |" % (sys.argv[2], found["outcome"], shown(stock), shown(pgtune), len(found.get("kept", [])), sys.argv[3]))
' "$directory/$seed.json" "$seed" $((SECONDS - begun))
done
"$pgdyno" list --tag tune --json >"$PGDYNO_HOME/list.json"
# Of all experiments of the tunes, not of the searches alone.
for id in $(python3 -c '
import json, sys
listed = json.load(open(sys.argv[1]))
print(*(one["id"] for one in (listed["experiments"] if isinstance(listed, dict) else listed)))
' "$PGDYNO_HOME/list.json"); do
  "$pgdyno" report "$id" --format json >"$PGDYNO_HOME/report-$id.json"
done
python3 -c '
import json, sys
from pathlib import Path
trials = [trial for path in Path(sys.argv[1]).glob("report-*.json") for trial in json.loads(path.read_text())["trials"]]
failed = sum(trial["status"] != "finished" for trial in trials)
print("%d of %d trials failed (%.1f %%)" % (failed, len(trials), 100 * failed / max(len(trials), 1)))
found = [json.loads(Path(path).read_text()) for path in sys.argv[2:]]
ratio = lambda one: ((one.get("best") or {}).get("effect") or {}).get("ratio")
lost = [one for one in found if one.get("expected") and ratio(one) and ratio(one) < 0.9 * one["expected"]]
proven = sorted((one["proven"]["effect"]["ratio"] for one in found if one["outcome"] == "tuned" and one["proven"]["effect"]), reverse=True)
print("%d of %d winners lost 10 %% or more of what was expected, or were not confirmed" %
    (len(lost) + sum(one["outcome"] == "not-confirmed" for one in found), len(found)))
if proven:
    near = sum(ratio >= 0.95 * proven[0] for ratio in proven)
    print("%d of %d are within 5 %% of the best, %.2f" % (near, len(found), proven[0]))
' "$PGDYNO_HOME" "$directory"/*.json
[ -z "${KEEP_STORE:-}" ] || cp "$PGDYNO_HOME/data/results.sqlite" "$KEEP_STORE"
