#!/bin/sh
# The root of a guest as an archive that its kernel unpacks: busybox, the modules in order, init, a
# job, files for /bin with the libraries that a program among them is linked to.
#
#   initramfs.sh NAME ARCHIVE JOB [FILE...]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
name=${1:?usage: initramfs.sh NAME ARCHIVE JOB [FILE...]}
archive=$2
job=$3
shift 3
. "$root/scripts/guest/machine.sh"
place=$root/target/guest/$name
[ -e "$place/complete" ] || { echo "$0: $place is not there: run scripts/guest/fetch.sh $name" >&2; exit 1; }
tree=$(mktemp -d "$root/target/guest/tree.XXXXXX")
trap 'rm -rf "$tree"' EXIT
trap 'exit 130' INT TERM
if [ -d "$place/extras" ]; then cp -a "$place/extras/." "$tree"; rm -rf "$tree/usr/share"; fi
for folder in bin dev etc lib mnt modules proc root run sys tmp; do mkdir -p "$tree/$folder"; done
cp "$place/busybox" "$tree/bin/busybox"
cp "$root/scripts/guest/init" "$tree/init"
cp "$job" "$tree/job"
cp "$root/scripts/capture-host.sh" "$tree/bin/capture-host.sh"
for file in "$@"; do
  cp "$file" "$tree/bin/"
  libraries=$(ldd "$file" 2>/dev/null | grep -o '/[^ ]*') || continue
  # Where the loader looks for them; a name may be a link, of which the guest needs the file.
  for library in $libraries; do
    mkdir -p "$tree${library%/*}"
    cp -L --remove-destination "$library" "$tree$library"
  done
  strip "$tree/bin/${file##*/}"
done
chmod 755 "$tree/init" "$tree/bin"/*

# A module comes after all that it depends on, which its own text names; what is built into the
# kernel is skipped.
libs=$(find "$place/root" -type d -path '*lib/modules/*' -prune | head -n 1)
file_of() { find "$libs" -name "$(echo "$1" | sed 's/[-_]/[-_]/g').ko*" | head -n 1; }
plain() {
  case $1 in
  *.xz) xz -dc "$1" ;;
  *) cat "$1" ;;
  esac
}
in_order() {
  [ -n "$(file_of "$1")" ] || return 0
  for needed in $(plain "$(file_of "$1")" | tr '\0' '\n' | sed -n 's/^depends=//p' | tr ',' ' '); do in_order "$needed"; done
  echo "$1"
}
for module in $modules; do
  [ -n "$(file_of "$module")" ] || grep -q "/$(echo "$module" | sed 's/[-_]/[-_]/g')\.ko" "$libs/modules.builtin" ||
    { echo "$0: $libs has no module $module" >&2; exit 1; }
done
number=100
for module in $(for module in $modules; do in_order "$module"; done | tr - _ | awk '!seen[$0]++'); do
  plain "$(file_of "$module")" >"$tree/modules/$number-$module.ko"
  number=$((number + 1))
done
(cd "$tree" && find . | cpio --quiet -o -H newc -R 0:0) | gzip -1 >"$archive"
