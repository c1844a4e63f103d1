#!/usr/bin/env bash
# How often does `pgdyno gate` find a regression? Schema scripts whose function does the same work,
# 3 % more of it, and 10 % more of it: so many gates of each, and what they said.
# Usage: benches/gate.sh [PGDYNO] [GATES]     LOG=file keeps a line for each gate, and what is in it already is not run again.
set -eu
pgdyno=${1:-target/release/pgdyno}
many=${2:-30}
name=gate
. "$(dirname "$0")/home.sh"
trap 'for one in "$PGDYNO_HOME"/state/sandboxes/*/; do "$pgdyno" sandbox destroy "$(basename "$one")" >/dev/null 2>&1 || true; done; rm -rf "$PGDYNO_HOME"' EXIT
log=${LOG:-$PGDYNO_HOME/gates}
touch "$log"
cd "$PGDYNO_HOME"
for more in 0 3 10; do
  cat >"$more.sql" <<SQL
CREATE FUNCTION work(n int) RETURNS bigint LANGUAGE plpgsql AS \$\$
DECLARE s bigint := 0;
BEGIN
  FOR i IN 1 .. n * $((100 + more)) / 100 LOOP s := s + i; END LOOP;
  RETURN s;
END \$\$;
SQL
done
echo 'SELECT work(10000);' >load.sql
for i in $(seq "$many"); do
  for more in 0 3 10; do
    ! grep -q "^$more $i " "$log" || continue
    begun=$(date +%s)
    code=0
    "$pgdyno" gate 0.sql "$more.sql" -f load.sql --scale 1 -c 2 -d 4s --warmup 1s --limit 3% --json \
      >result 2>errors || code=$?
    case $code in 0 | 3 | 5) ;; *) cat errors; exit 1 ;; esac
    python3 -c '
import json, sys
found = json.load(open("result"))
effects = [of["head"]["effect"] for of in found["experiments"]]
width = [(effect["ratio_high"] / effect["ratio_low"] - 1) * 50 for effect in effects if effect]
apart = "differs from itself" in found["why"]
print(*sys.argv[1:], found["outcome"] + ("-apart" if apart else ""), len(effects), *("%.1f" % one for one in width))
' "$more" "$i" "$(($(date +%s) - begun))" >>"$log"
  done
done
python3 - "$log" <<'PY'
import sys
from collections import Counter, defaultdict
said, seconds, widths = defaultdict(Counter), defaultdict(list), []
for line in open(sys.argv[1]):
    more, _, took, outcome, _, *width = line.split()
    said[int(more)][outcome] += 1
    seconds[int(more)].append(int(took))
    widths += [float(one) for one in width[:1]]
print("planted   passed   FAILED   undecided   BASE apart   mean time")
for more in sorted(said):
    of = said[more]
    counts = [of[word] for word in ("passed", "FAILED", "undecided", "undecided-apart")]
    print(f"{more:5} %%  {counts[0]:8} {counts[1]:8} {counts[2]:11} {counts[3]:12}   {sum(seconds[more]) / len(seconds[more]):5.0f} s".replace("%%", "%"))
widths.sort()
print(f"half the width of the interval: {widths[len(widths) // 2]:.1f} % (median)")
PY
