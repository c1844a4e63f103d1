#!/usr/bin/env bash
# What a report of 100 trials of an hour takes: to be written, on disk, and in a browser; what an
# experiment of 200 such trials takes from pgdyno serve; and the page itself, compressed. Prints a
# row for each with the goal beside it. Wants ui/ built, and Chromium (CHROMIUM=/path chooses).
# Usage: benches/page.sh [PGDYNO [HUNDRED [RUNS]]]; they are target/release/pgdyno and
# target/release/examples/hundred.
set -euo pipefail
cd "$(dirname "$0")/.."
pgdyno=$(realpath "${1:-target/release/pgdyno}")
hundred=$(realpath "${2:-target/release/examples/hundred}")
runs=${3:-5}
directory=$(mktemp -d "${TMPDIR:-/tmp}/pgdyno-bench-XXXXXX")
trap 'rm -rf "$directory"' EXIT
# The median of all lines, with the least and the most.
spread() {
  sort -g | awk -v unit="$1" '{ v[NR] = $1 }
    END { printf "%g %s (%g to %g)", NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2, unit, v[1], v[NR] }'
}
row() { printf '| %s | %s | %s |\n' "$1" "$2" "$3"; }

# The first run makes the store, and is not counted.
for run in $(seq 0 "$runs"); do
  output=$("$hundred" "$directory/hundred.sqlite" "$directory/report.html")
  [ "$run" = 0 ] || sed -n 's/.* MB in \([0-9.]*\) s.*/\1/p' <<<"$output" >>"$directory/writing"
done
"$hundred" "$directory/served.sqlite" - 200
(cd ui && PGDYNO_HOME="$directory/home" npm run --silent measure -- "$directory/report.html" "$pgdyno" "$directory/served.sqlite") >"$directory/measured"
# Its lines: what: so many ms (median of so many, each of them), or what: so many frames per second,
# ...
ms() { sed -n "s/^$1: .*(median of [0-9]*, \(.*\))$/\1/p" "$directory/measured" | tr ' ' '\n' | spread ms; }
frames() { sed -n "s/^$1: \([0-9]*\) .*/\1/p" "$directory/measured" | spread "frames per second"; }

echo "load average $(cut -d' ' -f1-3 /proc/loadavg) on $(nproc) CPUs, $runs runs"
row what wanted found
row --- --- ---
row "report file of 100 trials" "at most 5 MB" "$(stat -c %s "$directory/report.html" | awk '{ printf "%.2f MB", $1 / 1e6 }')"
row "writing it" "under 2 s" "$(spread s <"$directory/writing")"
row "answer painted, from disk" "" "$(ms 'report file, answer painted')"
row "first chart painted, from disk" "under 1000 ms" "$(ms 'report file, first chart painted')"
row "index of 64 experiments, from a local server" "" "$(ms 'index of 64 experiments')"
row "a trial of an hour, 24 series at full 1 Hz, all eight charts" "" "$(ms 'trial of an hour, 24 series at 1 Hz, all charts painted')"
row "experiment of 200 trials of an hour, from \`pgdyno serve\` that nobody asked before, first chart over time painted" "within 1000 ms" \
  "$(ms 'served, never asked before')"
row "the same again" "within 1000 ms" "$(ms 'served again')"
row "the same, from one that listens in this instant" "" "$(ms 'served, asked as soon as it listens')"
row "zooming these charts" "50 frames per second or more" "$(frames 'zooming 8 charts of an hour')"
row "page without data, compressed" "at most 300 kB" \
  "$(for file in ui/dist/app.js ui/dist/app.css; do gzip -9c "$file" | wc -c; done | awk '{ sum += $1 } END { printf "%.0f kB", sum / 1000 }')"
