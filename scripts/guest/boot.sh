#!/bin/sh
# Boots a machine by emulation alone, without KVM, until it powers itself off: its console is standard output.
#
#   boot.sh NAME ARCHIVE [WORD...]     words for the boot line
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
name=${1:?usage: boot.sh NAME ARCHIVE [WORD...]}
archive=$2
shift 2
. "$root/scripts/guest/machine.sh"
place=$root/target/guest/$name
program=${qemu%% *}
command -v "$program" >/dev/null || { echo "$0: $program is missing" >&2; exit 1; }
work=$(mktemp -d "$root/target/guest/boot.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
number=0
for size in $disks; do
  truncate -s "${size}M" "$work/disk$number"
  qemu=$(echo "$qemu" | sed "s|@$number|$work/disk$number|")
  number=$((number + 1))
done
# The longest boot that was seen took half a minute; a guest that hangs is ended.
# shellcheck disable=SC2086
timeout 300 $qemu -display none -monitor none -serial stdio -no-reboot -kernel "$place/vmlinuz" -initrd "$archive" \
  -append "console=$console quiet panic=-1 $boot $*" </dev/null
