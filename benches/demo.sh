#!/usr/bin/env bash
# The demo, so many times: how many of its steps are decided, what all of them together bring, and
# how long it takes.
# Usage: benches/demo.sh [PGDYNO] [TIMES]     KEEP=file keeps the store of all.
set -eu
pgdyno=${1:-target/release/pgdyno}
name=demo
. "$(dirname "$0")/home.sh"
many=${2:-10}
echo "| | steps decided | all together | time |"
echo "|--:|--:|---|--:|"
for i in $(seq "$many"); do
  begun=$SECONDS
  "$pgdyno" demo --report "$PGDYNO_HOME/demo.html" >/dev/null 2>>"$PGDYNO_HOME/log" || { cat "$PGDYNO_HOME/log"; exit 1; }
  "$pgdyno" report "$i" --format json | python3 -c '
import json, sys
number, seconds = sys.argv[1:]
treatments = json.load(sys.stdin)["treatments"]
steps = [treatment["step"] for treatment in treatments[1:] if treatment["step"] is not None]
decided = [step for step in steps[:-1] if step["verdict"] != "undecided"]
total = treatments[-1]["total"] or treatments[-1]["step"]
shown = ["%+.1f %%" % (100 * (total[name] - 1)) for name in ("ratio", "ratio_low", "ratio_high")]
print("| %s | %d of %d | %s (%s to %s), %s | %s s |" % (number, len(decided), len(steps) - 1, *shown, total["verdict"], seconds))
' "$i" $((SECONDS - begun))
done
[ -z "${KEEP:-}" ] || cp "$PGDYNO_HOME/data/results.sqlite" "$KEEP"
