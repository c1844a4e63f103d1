#!/usr/bin/env bash
# What an experiment of many short trials costs by itself: the share of its time that storing and
# deciding take, and its memory as trials add up. $1: pgdyno; $2: how many blocks of two trials
# (100).
set -eu
pgdyno=$1
name=aa
. "$(dirname "$0")/home.sh"
blocks=${2:-100}
# It looks after each block whether all is decided, and never is: the smallest effect is out of
# reach.
"$pgdyno" run aa --set blocks="$blocks" --set load.measure_s=1 --set load.warmup_s=0.3 --set target.restart=when-needed \
  --set stop=when-decided --set smallest_effect=0.0001 >/dev/null 2>"$PGDYNO_HOME/log" &
pid=$!
memory() { sed -n "s/^$1:[[:space:]]*\([0-9]*\) kB/\1/p" "/proc/$pid/status" 2>/dev/null; }
printed=0
while kill -0 "$pid" 2>/dev/null; do
  trials=$("$pgdyno" list --json 2>/dev/null | sed -n 's/.*"trials_finished": \([0-9]*\).*/\1/p' | head -n 1)
  if [ "${trials:-0}" -ge $((printed + 20)) ]; then
    printed=$trials
    echo "$trials trials: resident $(($(memory VmRSS) / 1024)) MB, at most $(($(memory VmHWM) / 1024)) MB"
  fi
  sleep 1
done
wait "$pid" || { cat "$PGDYNO_HOME/log"; exit 1; }
grep "storing and deciding" "$PGDYNO_HOME/log"
