#!/bin/sh
# Kernel, modules and static busybox of a machine below target/guest/NAME, unpacked, nothing
# installed. What is there already is not fetched again.
#
#   fetch.sh NAME
#
# Debian's packages come from where this machine's own apt gets them, or from DEBIAN_MIRROR (its
# "debian" folder); pinned ones from UBUNTU_MIRROR (its "ubuntu" folder).
set -eu
cd "$(dirname "$0")/../.."
name=${1:?usage: fetch.sh NAME}
. scripts/guest/machine.sh
here=$PWD/target/guest
place=$here/$name
[ -e "$place/complete" ] && exit 0
for tool in apt-get dpkg-deb curl; do
  command -v $tool >/dev/null || { echo "$0: $tool is missing: kernels come as Debian's packages" >&2; exit 1; }
done
rm -rf "$place"
mkdir -p "$place/packages" "$place/root"

# apt with a state of its own for each suite and architecture: neither the machine's lists nor its
# architectures change.
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e $keys ] || { echo "$0: $keys is missing: install debian-archive-keyring" >&2; exit 1; }
private() {
  tool=$1
  shift
  "$tool" -qq -o Dir::State="$apt/state" -o Dir::Cache="$apt/cache" -o Dir::Etc="$apt/etc" -o Dir::Log="$apt" \
    -o Dir::State::status="$apt/status" -o APT::Architecture="$arch" -o APT::Architectures="$arch" \
    -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=3 -o Acquire::Languages=none \
    -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false "$@"
}
# The mirrors of this machine's apt, by what they serve: debian, debian-security.
mirror_of() {
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep "/$1/*\$" | head -n 1
}
mirrors() {
  if [ -n "${DEBIAN_MIRROR:-}" ]; then
    echo "$DEBIAN_MIRROR $1"
    return
  fi
  main=$(mirror_of debian || true)
  [ -n "$main" ] || { echo "$0: this machine's apt has no mirror of Debian; name one: DEBIAN_MIRROR=URL $0 $name" >&2; exit 1; }
  echo "$main $1"
  security=$(mirror_of debian-security || true)
  [ -z "$security" ] || echo "$security $1-security"
}
lists_of() {
  apt=$here/apt/$arch-$1
  [ -e "$apt/complete" ] && return
  mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$apt/etc/apt.conf.d" "$apt/etc/preferences.d" \
    "$apt/etc/sources.list.d" "$apt/etc/trusted.gpg.d"
  : >"$apt/status"
  mirrors "$1" >"$apt/mirrors"
  while read -r line; do
    echo "deb [signed-by=$keys arch=$arch] $line main"
  done <"$apt/mirrors" >"$apt/etc/sources.list.d/debian.list"
  private apt-get update
  : >"$apt/complete"
}
# Packages of a Debian release into packages/.
debian() {
  lists_of "$1"
  suite=$1
  shift
  for package in "$@"; do
    echo "fetching $package of $suite ($arch)"
    (cd "$place/packages" && private apt-get download "$package")
  done
}
# The package with the image that a meta package depends on.
image_of() {
  lists_of "$1"
  private apt-cache show --no-all-versions "$2" | sed -n 's/^Depends: \(linux-image-[^ ,]*\).*/\1/p'
}

debian bookworm busybox-static
if [ -n "$extras" ]; then
  mv "$place/packages" "$place/kernel-packages"
  mkdir "$place/packages"
  # shellcheck disable=SC2086
  debian bookworm $extras
  for package in "$place"/packages/*.deb; do dpkg-deb -x "$package" "$place/extras"; done
  rm -rf "$place/packages"
  mv "$place/kernel-packages" "$place/packages"
fi
case $kernel in
pinned)
  [ -n "${UBUNTU_MIRROR:-}" ] || { echo "$0: name a mirror of Ubuntu: UBUNTU_MIRROR=URL $0 $name" >&2; exit 1; }
  # shellcheck disable=SC2086
  set -- $pins
  while [ $# -gt 0 ]; do
    file=$place/packages/${2##*/}
    echo "fetching ${2##*/}"
    curl -sSfL --retry 3 -o "$file" "$UBUNTU_MIRROR/pool/main/l/$2"
    echo "$1  $file" | sha256sum -c --quiet
    shift 2
  done
  ;;
*)
  # shellcheck disable=SC2086
  set -- $kernel
  debian "$2" "$(image_of "$2" "$3")"
  ;;
esac
for package in "$place"/packages/*.deb; do dpkg-deb -x "$package" "$place/root"; done
ln -s "root/$(cd "$place/root" && ls boot/vmlinuz-* | head -n 1)" "$place/vmlinuz"
busybox=$(find "$place/root" -name busybox -path '*bin/*' | head -n 1)
cp "$busybox" "$place/busybox"
: >"$place/complete"
