#!/bin/sh
# Runs every shipped experiment, keeps its report, and prints a line of what each has found; at the
# end, how many findings of those that could be tested here are decided. $1: pgdyno; $2: a directory
# for reports and store; the rest: names, where not all are meant. SIZE=hour or SIZE=night takes
# that size of each.
set -eu
pgdyno=$(realpath "$1")
mkdir -p "$2"
reports=$(realpath "$2")
shift 2
home=$(mktemp -d /tmp/pgdyno-studies-XXXXXX)
chmod 755 "$home"
export PGDYNO_HOME="$home"
store=$reports/results.sqlite
outcomes=$reports/outcomes
: >"$outcomes"
cleared() {
  "$pgdyno" sandbox list --json 2>/dev/null | sed -n 's/.*"name": "\(.*\)",.*/\1/p' | while read -r name; do
    "$pgdyno" sandbox destroy "$name" >/dev/null 2>&1 || true
  done
}
trap 'cleared; rm -rf "$home"' EXIT INT TERM
[ $# -gt 0 ] || set -- $("$pgdyno" experiments --json | sed -n 's/.*"name": "\(.*\)",.*/\1/p' | grep -v -x -e demo -e aa)
for name; do
  # Some do what can lose data, on sandboxes.
  if "$pgdyno" run "$name" ${SIZE:+--size "$SIZE"} --store "$store" --accept-durability-risk fsync --accept-durability-risk synchronous_commit \
    --accept-durability-risk full_page_writes \
    >/dev/null 2>"$reports/$name.log"; then
    "$pgdyno" report --store "$store" --format html -o "$reports/$name.html" 2>/dev/null
    "$pgdyno" report --store "$store" --format md -o "$reports/$name.md" 2>/dev/null
    "$pgdyno" report --store "$store" --format json | python3 -c '
import json, sys
from collections import Counter
report = json.load(sys.stdin)
trials = report["trials"]
finished = sum(trial["status"] == "finished" for trial in trials)
claims = Counter(claim["outcome"] for claim in report["claims"])
with open(sys.argv[2], "a") as outcomes:
    outcomes.writelines(claim["outcome"] + "\n" for claim in report["claims"])
words = {"undecided": "not decided", "not-tested": "not tested"}
said = ", ".join("%d %s" % (n, words.get(outcome, outcome)) for outcome, n in sorted(claims.items())) or "tables only"
floor = report["decision"]["noise_floor"]
print("| `%s` | %d of %d | %s | %s |" % (sys.argv[1], finished, len(trials),
    "%.0f %%" % (floor * 100) if floor is not None else "", said))
' "$name" "$outcomes"
  else
    echo "| \`$name\` | failed: $(tail -n 1 "$reports/$name.log") | | |"
  fi
  cleared
done
decided=$(grep -c -x -e agrees -e disagrees "$outcomes" || true)
tested=$(grep -c -v -x not-tested "$outcomes" || true)
echo "$decided of $tested findings that could be tested are decided"
