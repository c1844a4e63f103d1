#!/bin/sh
# pg_settings of each version, as a fresh sandbox has it: fixtures/settings/VERSION.tsv.
#
#   capture-settings.sh PGDYNO [VERSION[=BIN]...] PGDYNO: the program, BIN: the directory of that
#   version's programs
#
# Columns as the first line names them, tab-separated in COPY's text format: \N is NULL, \t a tab.
# Paths of the machine become /var/lib/postgresql/VERSION, the port 5432; limits that depend on the
# machine stay as they were found.
set -eu
cd "$(dirname "$0")/.."
pgdyno=$(readlink -f "${1:?usage: capture-settings.sh PGDYNO [VERSION...]}")
shift
[ $# -gt 0 ] || set -- 14 15 16 17 18 "19=$(scripts/debian-postgres 19 target/tools/postgres-19)"
mkdir -p fixtures/settings
home=$(mktemp -d /tmp/pgdyno-settings.XXXXXX)
chmod 755 "$home"
mkdir "$home/state"
# What was fetched before serves again.
for part in cache state/postgresql; do
  if [ -n "${PGDYNO_HOME:-}" ] && [ -e "$PGDYNO_HOME/$part" ]; then ln -s "$(readlink -f "$PGDYNO_HOME/$part")" "$home/$part"; fi
done
export PGDYNO_HOME="$home"
finish() {
  for record in "$home"/state/sandboxes/*/sandbox.json; do
    [ -e "$record" ] && "$pgdyno" sandbox destroy "$(basename "$(dirname "$record")")" >/dev/null
  done
  rm -rf "$home"
}
trap finish EXIT
columns="name, setting, unit, category, context, vartype, source, min_val, max_val, enumvals, boot_val, reset_val, sourcefile, sourceline, pending_restart"
for wanted in "$@"; do
  version=${wanted%%=*}
  name=settings$version
  case $wanted in
  *=*) "$pgdyno" sandbox create "$name" --pg-bin "${wanted#*=}" >/dev/null ;;
  *) "$pgdyno" sandbox create "$name" --version "$version" >/dev/null ;;
  esac
  record=$home/state/sandboxes/$name/sandbox.json
  port=$(sed -n 's/.*"port": *\([0-9]*\).*/\1/p' "$record")
  {
    echo "$columns" | sed 's/, /\t/g'
    psql -X -q -h "$home/state/sandboxes/$name/socket" -p "$port" -U postgres -d postgres \
      -c "COPY (SELECT $columns FROM pg_settings ORDER BY name) TO STDOUT"
  } | sed "s#$home/state/sandboxes/$name#/var/lib/postgresql/$version#g; s#\b$port\b#5432#g" >"fixtures/settings/$version.tsv"
  "$pgdyno" sandbox destroy "$name" >/dev/null
  echo "$version: $(($(wc -l <"fixtures/settings/$version.tsv") - 1)) settings"
  if grep -n "$home" "fixtures/settings/$version.tsv"; then
    echo "$0: a path of this machine is left in fixtures/settings/$version.tsv" >&2
    exit 1
  fi
done
