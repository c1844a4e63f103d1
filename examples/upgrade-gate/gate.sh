#!/bin/sh
# Runs the experiment, writes what people and CI read, and ends with the gate's exit code: 0 passed, 3 failed, 5 undecided.
set -eu
cd "$(dirname "$0")"
pgdyno=${PGDYNO:-pgdyno}
"$pgdyno" run experiment.toml --report report.html
"$pgdyno" export last --format junit -o junit.xml
"$pgdyno" compare last:"version=17" last:"version=18" --fail-if 'tps worse than 3%' --fail-if 'p95_ms worse than 5%'
