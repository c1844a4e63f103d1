#!/usr/bin/env bash
# The reference against itself, so many times: how often does an experiment claim a difference that is none? And the spread of this host.
# $1: pgdyno; $2: how many (30).
set -eu
pgdyno=$1
name=aa
. "$(dirname "$0")/home.sh"
many=${2:-30}
i=0
while [ "$i" -lt "$many" ]; do
  "$pgdyno" run aa --set blocks=6 --set load.measure_s=1 --set load.warmup_s=0.3 --set target.restart=when-needed \
    >/dev/null 2>>"$PGDYNO_HOME/log" || { cat "$PGDYNO_HOME/log"; exit 1; }
  i=$((i + 1))
  "$pgdyno" report "$i" --format json | python3 -c '
import json, sys
report = json.load(sys.stdin)
again = report["treatments"][1]
effect = again["step"]
print("%2d  %2d trials  %-9s  %+5.1f %% (%+5.1f to %+5.1f)  noise floor %.1f %%" % (
    int(sys.argv[1]), len(report["trials"]), effect["verdict"], (effect["ratio"] - 1) * 100,
    (effect["ratio_low"] - 1) * 100, (effect["ratio_high"] - 1) * 100, report["decision"]["noise_floor"] * 100))
' "$i" | tee -a "$PGDYNO_HOME/tally"
done
false_alarms=$(grep -c -e better -e worse "$PGDYNO_HOME/tally" || true)
echo "$many experiments of one configuration against itself: $false_alarms better or worse"
