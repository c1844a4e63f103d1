#!/usr/bin/env bash
# The reference against itself, so many times: how often does an experiment claim a difference that
# is none? And the spread of this host, and what covariates would explain of it. The treatments
# differ by one connection of max_connections, which has no effect and needs a restart; with
# DESIGN=switchback by a millisecond of deadlock_timeout, which needs none.
# Usage: benches/aa.sh [PGDYNO] [EXPERIMENTS] [TREATMENTS]     KEEP=file keeps the store of all trials.
set -eu
pgdyno=${1:-target/release/pgdyno}
name=aa
. "$(dirname "$0")/home.sh"
many=${2:-30}
treatments=${3:-6}
design=${DESIGN:-one-at-a-time}
case $design in
  switchback) knob=deadlock_timeout values=$(seq -s ", " 1001 $((1000 + treatments))) warmup_s=2 measure_s=3 ;;
  *) knob=max_connections values=$(seq -s ", " 101 $((100 + treatments))) warmup_s=0.3 measure_s=1 ;;
esac
cat >"$PGDYNO_HOME/aa.toml" <<TOML
name = "aa"
question = "How much do equal treatments differ here?"
design = "$design"
blocks = 6
stop = "when-decided"
[target]
sandbox = "aa"
create = {}
restart = "when-needed"
[data]
scale = 2
[load]
workload = "tpcb"
clients = 4
warmup_s = $warmup_s
measure_s = $measure_s
[[factor]]
name = "equal"
of = "$knob"
values = [$values]
TOML
for i in $(seq "$many"); do
  "$pgdyno" run "$PGDYNO_HOME/aa.toml" >/dev/null 2>>"$PGDYNO_HOME/log" || { cat "$PGDYNO_HOME/log"; exit 1; }
  "$pgdyno" report "$i" --format json | python3 -c '
import json, sys
report = json.load(sys.stdin)
effects = [treatment["step"] for treatment in report["treatments"][1:]]
verdicts = [effect["verdict"] for effect in effects]
widest = max(abs(effect["ratio"] - 1) for effect in effects)
print("%2d  %3d trials  %-40s  at most %4.1f %% apart  noise floor %.1f %%" % (
    int(sys.argv[1]), len(report["trials"]), ", ".join("%d %s" % (verdicts.count(v), v) for v in dict.fromkeys(verdicts)),
    widest * 100, report["decision"]["noise_floor"] * 100))
' "$i" | tee -a "$PGDYNO_HOME/tally"
done
false_alarms=$(grep -c -e better -e worse "$PGDYNO_HOME/tally" || true)
echo "$many experiments of $treatments equal treatments: $false_alarms with a better or worse"
[ -z "${KEEP:-}" ] || cp "$PGDYNO_HOME/data/results.sqlite" "$KEEP"
"$(dirname "$0")/covariates.py" "$pgdyno" "$many"
