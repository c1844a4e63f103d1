#!/bin/sh
# Broken machines out of a whole one: fixtures/hosts/broken-* for readers that must give reasons, not numbers or panics.
#
#   break-host.sh [FOLDER]     a fixture; the one with the smallest tree of control groups without it
set -eu
cd "$(dirname "$0")/../fixtures/hosts"
export LC_ALL=C
whole=${1:-x86_64-6.12-cgroup2}

# The files that are parsed; of files that repeat for every CPU or device, those of the first.
chosen() {
  (cd "$whole" && find . -type f \( -path './proc/*' -o -path './sys/fs/*' -o -path './sys/kernel/*' \
    -o -path '*/node/*' -o -path '*/cpu/cpu0/*' -o -path '*/cpu/[a-z]*' -o -path '*/block/vd*' -o -path './etc/*' \
    -o -path '*/net/*' -o -path '*/clocksource/*' \) ! -path '*/cpu/cpu[1-9]*' ! -path './proc/1/*' \
    ! -path './proc/sys/[fn]*' ! -path '*/stats/*' ! -path '*memory.stat' ! -path '*numa_stat' ! -path '*smaps' \
    ! -path '*.pressure')
}

# break NAME COMMAND: each chosen file through the command, which reads it on standard input and finds its size in $size.
broken() {
  name=broken-$1
  rm -rf "$name"
  chosen | while read -r file; do
    mkdir -p "$name/${file%/*}"
    size=$(wc -c <"$whole/$file")
    export size
    sh -c "$2" <"$whole/$file" >"$name/$file"
  done
  # The links stay: they tell which disk is meant.
  (cd "$whole" && find sys/block sys/class sys/dev -type l) | while read -r link; do
    mkdir -p "$name/${link%/*}"
    cp -P "$whole/$link" "$name/$link"
  done
  echo "$name: $(find "$name" -type f | wc -l) files, $(find "$name" -type f -exec cat {} + | wc -c) bytes"
}

broken truncated 'head -c $((size / 2))'
broken empty 'cat >/dev/null'
broken garbage 'head -c $((size < 256 ? size : 256)) | tr "\000-\177" "\200-\377"; printf "\000\377\376\n\n\r\t::=,[]/-"'
broken huge 'sed "s/[0-9][0-9]*/99999999999999999999999999/g"'
broken negative 'sed "s/[0-9][0-9]*/-&/g"'
broken unended 'head -c $((size > 0 ? size - 1 : 0))'
