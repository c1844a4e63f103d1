#!/bin/sh
# Broken machines out of a whole one: fixtures/hosts/broken-* for readers that must give reasons, not numbers or panics.
#
#   break-host.sh [FOLDER]     a fixture; the one with the smallest tree of control groups without it
set -eu
cd "$(dirname "$0")/../fixtures/hosts"
export LC_ALL=C
whole=${1:-x86_64-6.12-cgroup2}

# Files that are parsed, one of each kind: of what repeats for every CPU, disk or group, one will do.
chosen() {
  (cd "$whole" && find proc -maxdepth 1 -type f && find etc proc/net proc/pressure proc/self proc/4242 -type f &&
    find proc/sys/vm -name '[dno]*' && echo proc/sys/kernel/random/boot_id && find proc/sys/kernel -name '*osrelease*' &&
    find sys/devices/system/node sys/devices/system/clocksource sys/devices/system/cpu/cpu0 sys/devices/system/cpu/smt \
      sys/kernel/mm/hugepages sys/kernel/mm/transparent_hugepage -type f ! -path '*kB/*kB/*' ! -path '*hugepages-[1-9][0-9]*[0-7]kB*' &&
    find sys/devices/system/cpu -maxdepth 1 -type f && find sys/devices -type f -path '*/block/vda/*' &&
    find sys/devices -type f -path '*/net/eth0/*' &&
    find sys/fs/cgroup/system.slice -type f \( -name '*.max' -o -name 'cpu.*' -o -name 'cpuset.*' -o -name io.stat \)) | sort -u
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
  (cd "$whole" && find sys/block sys/class/net sys/class/block sys/dev -name vda -o -name vda1 -o -name eth0 -o -name '254:*') | while read -r link; do
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
