# A home of its own for a benchmark, gone at its end with the server in it. Sourced by bash, with
# `pgdyno` and the server's `name` set.
pgdyno=$(realpath "$pgdyno")
PGDYNO_HOME=$(mktemp -d /tmp/pgdyno-bench-XXXXXX)
export PGDYNO_HOME
chmod 755 "$PGDYNO_HOME"
trap '"$pgdyno" sandbox destroy "$name" >/dev/null 2>&1 || true; rm -rf "$PGDYNO_HOME"' EXIT
