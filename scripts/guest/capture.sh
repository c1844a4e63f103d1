#!/bin/sh
# Captures machines into fixtures/hosts: boots each, and packs the tree that its job sends over the
# console.
#
#   capture.sh [NAME...]     all machines without a name
set -eu
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || set -- $(sed -n 's/^\([a-z0-9_.-]*\))$/\1/p' scripts/guest/machine.sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in "$@"; do
  scripts/guest/fetch.sh "$name"
  . scripts/guest/machine.sh
  # What the distribution says of itself; packages of the kernel alone do not have it.
  case $kernel in
  pinned) set -- Ubuntu 18.04 ;;
  *bullseye*) set -- Debian "GNU/Linux 11 (bullseye)" ;;
  *trixie*) set -- Debian "GNU/Linux 13 (trixie)" ;;
  *) set -- Debian "GNU/Linux 12 (bookworm)" ;;
  esac
  printf 'PRETTY_NAME="%s %s"\nNAME="%s"\n' "$1" "$2" "$1" >"$work/os-release"
  scripts/guest/initramfs.sh "$name" "$work/archive" scripts/guest/jobs/capture "$work/os-release"
  scripts/guest/boot.sh "$name" "$work/archive" "pgdyno.machine=$name" | tr -d '\r' >"$work/console"
  sed '/^== tree$/,/^== end$/d' "$work/console"
  sed -n '/^== tree$/,/^== end$/p' "$work/console" | sed '1d;$d' | base64 -d >"$work/tree.tar.gz"
  rm -rf "$work/tree"
  mkdir "$work/tree"
  tar -xzf "$work/tree.tar.gz" -C "$work/tree" --no-same-owner --no-same-permissions
  chmod -R u+rwX "$work/tree"
  scripts/pack-host.sh "$work/tree" >"$work/machine"
  mv "$work/machine" "fixtures/hosts/$name.machine"
  echo "$name: $(grep -c '^file ' "fixtures/hosts/$name.machine") files, $(wc -c <"fixtures/hosts/$name.machine") bytes"
done
