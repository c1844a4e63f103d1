#!/usr/bin/env bash
# How much does it help to alternate faster? One load of equal transactions is cut into turns of two
# sides that are in truth one: the standard error of their difference after so many seconds, by the
# length of a turn. Unlike sides would differ by it from noise alone.
# Usage: benches/turns.sh [PGDYNO] [SECONDS]      Needs pgbench.
set -eu
pgdyno=${1:-target/release/pgdyno}
seconds=${2:-40}
name=turns
. "$(dirname "$0")/home.sh"
"$pgdyno" sandbox create "$name" >/dev/null
at() { sed -n "$1p" "$PGDYNO_HOME/state/sandboxes/$name/data/postmaster.pid"; }
PGPASSWORD=$(cat "$PGDYNO_HOME/state/sandboxes/$name/password")
export PGPASSWORD
echo 'SELECT sum(i) FROM generate_series(1, 2000) i;' >"$PGDYNO_HOME/load.sql"
pgbench=$(command -v pgbench || ls /usr/lib/postgresql/*/bin/pgbench | tail -n 1)
"$pgbench" -h 127.0.0.1 -p "$(at 4)" -U postgres -n -f "$PGDYNO_HOME/load.sql" -c 1 -T "$seconds" -l --log-prefix="$PGDYNO_HOME/log" postgres \
  >/dev/null 2>&1
python3 - "$PGDYNO_HOME"/log* <<'PY'
import math, statistics, sys
times = []
for path in sys.argv[1:]:
    for line in open(path):
        words = line.split()
        times.append(int(words[4]) + int(words[5]) / 1e6)
first = min(times)
length = max(times) - first
print(f"{len(times)} transactions in {length:.0f} s\nturn        between neighbours   standard error of the difference")
for turn in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 4):
    counts = [0] * int(length / turn)
    for time in times:
        at = int((time - first) / turn)
        if at < len(counts):
            counts[at] += 1
    logs = [math.log(count + 0.5) for count in counts]
    pairs = [logs[i + 1] - logs[i] for i in range(0, len(logs) - 1, 2)]
    spread = statistics.pstdev(pairs)
    print(f"{turn:5.2f} s {spread * 100:16.1f} % {spread / math.sqrt(len(pairs)) * 100:22.2f} %")
PY
