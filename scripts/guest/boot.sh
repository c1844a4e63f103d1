#!/bin/sh
# Boots a machine by emulation alone, without KVM, until it powers itself off: its console is
# standard output.
#
#   boot.sh [-d FILE] [-m MIB] NAME ARCHIVE [WORD...]     words for the boot line
#
# Its disks are made again for each boot; FILE is one more, of a machine with PCI, which stays: its
# serial is "kept". MIB is another size of memory, of a machine without nodes.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
kept=""
memory=""
while getopts d:m: option; do
  case $option in
  d) kept=$OPTARG ;;
  m) memory=$OPTARG ;;
  *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
name=${1:?usage: boot.sh [-d FILE] [-m MIB] NAME ARCHIVE [WORD...]}
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
if [ -n "$kept" ]; then
  qemu="$qemu -drive if=none,id=kept,format=raw,file=$kept -device virtio-blk-pci,drive=kept,serial=kept"
fi
[ -z "$memory" ] || qemu="$qemu -m $memory"
# A boot takes a minute on a quiet host, and took more than ten beside work that kept both of its
# processors busy; a guest that hangs is ended. An emulated timer may be late on a busy machine, for
# which a kernel that checks it would give up. shellcheck disable=SC2086
timeout 1800 $qemu -display none -monitor none -serial stdio -no-reboot -kernel "$place/vmlinuz" -initrd "$archive" \
  -append "console=$console quiet panic=-1 no_timer_check $boot $*" </dev/null
