#!/usr/bin/env bash
# Each shipped profile of a server, and pgtune's, against the stock settings: four machines
# (sandboxes with limits) by four loads.
# Usage: benches/profiles.sh [PGDYNO] [REPORTS] [MACHINE:LOAD ...]     All sixteen take about three hours; BLOCKS=5, KEEP_STORE=file
# WITHOUT=PROFILE: that profile as a whole against itself without each of its settings, one by one.
#
#   machines cpu (data fits), starved (data is four times the memory), disk (1,000 IOPS, data is
#   twice the memory), roomy (no limits) loads tpcb, tpcc, reads (by key), analytics (sums over a
#   table)
set -eu
pgdyno=${1:-target/release/pgdyno}
reports=${2:-target/profiles}
shift $(($# < 2 ? $# : 2))
name=profiles
. "$(dirname "$0")/home.sh"
blocks=${BLOCKS:-5}
mkdir -p "$reports"
[ $# -gt 0 ] || set -- {cpu,starved,disk,roomy}:{tpcb,tpcc,reads,analytics}

# Scales are of the data set's own size: 15 MB of pgbench's, 105 MB of TPC-C's.
machine() { # its sandbox, and its megabytes of data
  case $1 in
  cpu) echo 'create = { cpus = 1, memory = "2GB" }' 300 ;;
  starved) echo 'create = { memory = "512MB" }' 2048 ;;
  disk) echo 'create = { memory = "1GB", iops = 1000, bandwidth = "125M" }' 2048 ;;
  roomy) echo 'create = {}' 600 ;;
  *) echo "profiles: no machine \"$1\"; expected cpu, starved, disk or roomy" >&2 && return 2 ;;
  esac
}
options() { # the same as options of `sandbox create`
  case $1 in
  cpu) echo --cpus 1 --memory 2GB ;;
  starved) echo --memory 512MB ;;
  disk) echo --memory 1GB --iops 1000 --bandwidth 125M ;;
  *) ;;
  esac
}
load() { # its keys, the megabytes of a unit of its data, and the profiles that are for it
  case $1 in
  tpcb) echo 'workload = "tpcb"' 15 oltp oltp-latency mixed server small write-heavy-large pgtune-oltp ;;
  tpcc) echo 'workload = "tpcc"' 105 oltp oltp-latency mixed server small write-heavy-large pgtune-oltp ;;
  reads) echo 'workload = "select-only"' 15 oltp oltp-latency mixed server small pgtune-web ;;
  analytics) echo 'script = "SELECT bid, count(*), sum(abalance) FROM pgbench_accounts GROUP BY bid ORDER BY 3 DESC LIMIT 5;"' \
    15 analytics mixed server pgtune-dw ;;
  *) echo "profiles: no load \"$1\"; expected tpcb, tpcc, reads or analytics" >&2 && return 2 ;;
  esac
}

# Steps that set one knob each as it is without the profile.
steps_without() {
  "$pgdyno" profile diff "$WITHOUT" sandbox:profiles --json | python3 -c '
import json, sys
for setting in json.load(sys.stdin)["settings"]:
    if not setting["is_now"] and setting["now"] is not None:
        knob = json.dumps(setting["knob"])
        print("[[step]]\nname = %s\nsettings = { %s = %s }" % (json.dumps("without-" + setting["knob"]), knob, json.dumps(setting["now"])))
'
}

if [ -z "${WITHOUT:-}" ]; then
  echo "| machine | load | profile | throughput against stock | |"
else
  echo "| machine | load | without | throughput against \`$WITHOUT\` | |"
fi
echo "|---|---|---|--:|---|"
for pair; do
  machine=${pair%%:*} load=${pair##*:}
  of_machine=$(machine "$machine")
  of_load=$(load "$load")
  read -r megabytes <<<"${of_machine##* }"
  # The keys end with a quote; what follows are words.
  read -r unit profiles <<<"${of_load##*\" }"
  clients=8
  [ "$load" != analytics ] || clients=2
  target=${of_machine% *}
  if [ -n "${WITHOUT:-}" ]; then
    # shellcheck disable=SC2046
    "$pgdyno" sandbox create profiles $(options "$machine") >/dev/null
    target=
  fi
  {
    [ -z "${WITHOUT:-}" ] || echo "profile = \"$WITHOUT\""
    cat <<TOML
name = "profiles-$machine-$load"
question = "What are the shipped profiles worth, $load on the machine \"$machine\"?"
design = "one-at-a-time"
blocks = $blocks
[target]
sandbox = "profiles"
$target
[data]
scale = $(((megabytes + unit - 1) / unit))
[load]
${of_load%\" *}"
clients = $clients
warmup_s = 5
measure_s = 15
TOML
    if [ -n "${WITHOUT:-}" ]; then
      steps_without
    else
      for profile in $profiles; do
        printf '[[step]]\nname = "%s"\nprofile = "%s"\n' "$profile" "$profile"
      done
    fi
  } >"$PGDYNO_HOME/$machine-$load.toml"
  if "$pgdyno" run "$PGDYNO_HOME/$machine-$load.toml" >/dev/null 2>"$reports/$machine-$load.log"; then
    "$pgdyno" report last --format html -o "$reports/$machine-$load.html" 2>/dev/null
    "$pgdyno" report last --format json | python3 -c '
import json, sys
machine, load = sys.argv[1:]
for treatment in json.load(sys.stdin)["treatments"][1:]:
    step = treatment["step"]
    shown = "not measured" if step is None else "%.2f (%.2f to %.2f)" % (step["ratio"], step["ratio_low"], step["ratio_high"])
    said = (treatment.get("why_not") or "") if step is None else step["verdict"]
    print("| %s | %s | `%s` | %s | %s |" % (machine, load, treatment["name"], shown, said))
' "$machine" "$load"
  else
    echo "| $machine | $load | failed: $(tail -n 1 "$reports/$machine-$load.log") | | |"
  fi
  "$pgdyno" sandbox destroy profiles >/dev/null 2>&1 || true
done
[ -z "${KEEP_STORE:-}" ] || cp "$PGDYNO_HOME/data/results.sqlite" "$KEEP_STORE"
