#!/usr/bin/env bash
# What a store of many trials takes on disk per point, and how long a list and one trial's series
# take. Prints bytes per point, by kind of column too, and seconds; `pgdyno list` is timed as a
# whole process, the median of five.
# Usage: benches/store.sh [PGDYNO] [FILL] [TRIALS]; FILL is target/release/examples/fill.
# COLUMNS=200, POINTS=3600 and RATES=5 (% of columns that are rates by exact intervals) choose.
# 10,000 trials are 7.2 thousand million points: five minutes, and five gigabytes below TMPDIR.
set -euo pipefail
pgdyno=$(realpath "${1:-target/release/pgdyno}")
fill=$(realpath "${2:-target/release/examples/fill}")
trials=${3:-200}
directory=$(mktemp -d "${TMPDIR:-/tmp}/pgdyno-bench-XXXXXX")
trap 'rm -rf "$directory"' EXIT

"$fill" "$directory/results.sqlite" "$trials" "${COLUMNS:-200}" "${POINTS:-3600}" "${RATES:-5}"
TIMEFORMAT=%R
for _ in 1 2 3 4 5; do
  { time "$pgdyno" list --store "$directory/results.sqlite" >/dev/null; } 2>>"$directory/times"
done
echo "pgdyno list: $(sort -g "$directory/times" | sed -n 3p) s"
