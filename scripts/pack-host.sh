#!/bin/sh
# Packs a machine's folder, as capture-host.sh makes it, into the text that fixtures/hosts holds:
# docs/reference/fixtures.md.
#
#   pack-host.sh FOLDER >NAME.machine
set -eu
export LC_ALL=C
cd "${1:?usage: pack-host.sh FOLDER >NAME.machine}"

# Printable ASCII but the percent sign stays.
escaped() {
  case $1 in
  *[!!-~]* | *%*)
    rest=$(printf %s "$1" | od -An -v -tx1 | tr -d ' \n' | sed 's/../%&/g')
    # What needs no escape is turned back, for people.
    printf '%s\n' "$rest" | sed 's/%/\n%/g' | while read -r byte; do
      case $byte in
      "") ;;
      %25 | %[018-9a-f]? | %20 | %7f) printf %s "$byte" ;;
      *) printf "\\$(printf %o "0x${byte#%}")" ;;
      esac
    done
    ;;
  *) printf %s "$1" ;;
  esac
}

echo "pgdyno machine 1"
count=0
find . \( -type f -o -type l \) -print | while IFS= read -r path; do
  printf '%s\t%s\n' "$(escaped "${path#./}")" "$path"
done | sort | {
  while IFS='	' read -r name path; do
    count=$((count + 1))
    if [ -L "$path" ]; then
      echo "link $name $(escaped "$(readlink "$path")")"
    elif [ "$(tr -d '\11\12\40-\176' <"$path" | wc -c)" -ne 0 ]; then
      echo "file $name base64"
      base64 <"$path" | sed 's/^/|/'
    elif [ -n "$(tail -c 1 "$path")" ]; then
      echo "file $name unended"
      sed 's/^/|/' "$path"
      echo
    else
      echo "file $name"
      sed 's/^/|/' "$path"
    fi
  done
  echo "end $count"
}
