#!/bin/sh
# Copies the files that pgdyno's facts of a host are read from into a directory: capture-host.sh DIR. It is a tree that
# `pgdyno facts --root DIR` reads, and a fixture for its tests. Needs nothing but a POSIX shell with cat, ls, readlink, sed
# (busybox has them). No serial numbers, no addresses, no host name; a fixed boot id; of the boot line and of the mounts
# only what says something of the host.
set -eu
to=${1:?usage: capture-host.sh DIR}
mkdir -p "$to"

# A file with its place; what cannot be read is not there.
take() {
  for from in "$@"; do
    [ -f "$from" ] && [ -r "$from" ] || continue
    mkdir -p "$to${from%/*}"
    cat "$from" >"$to$from" 2>/dev/null || rm -f "$to$from"
  done
}

# A symbolic link as it is.
link() {
  for from in "$@"; do
    [ -L "$from" ] || continue
    mkdir -p "$to${from%/*}"
    rm -f "$to$from"
    ln -s "$(readlink "$from")" "$to$from"
  done
}

take /proc/cpuinfo /proc/meminfo /proc/swaps /proc/sysinfo /proc/self/cgroup
take /proc/sys/kernel/osrelease /proc/sys/kernel/version /proc/sys/kernel/arch /proc/sys/kernel/tainted
take /etc/os-release /run/systemd/container /run/.containerenv /.dockerenv
# shellcheck disable=SC2013
for name in $(sed -n 's/^    "\([a-z]*\.[a-zA-Z0-9_.-]*\)",$/\1/p' "$(dirname "$0")/../crates/pgdyno-host/src/facts/sysctl.rs"); do
  take "/proc/sys/$(echo "$name" | sed 's|\.|/|g')"
done
take /proc/sys/kernel/sched_*_ns /proc/sys/kernel/sched_nr_migrate /proc/sys/kernel/sched_tunable_scaling
take /sys/kernel/debug/sched/*_ns /sys/kernel/debug/sched/nr_migrate /sys/kernel/debug/sched/tunable_scaling
take /sys/kernel/debug/sched/preempt /sys/kernel/debug/sched/features /sys/kernel/debug/sched_features
mkdir -p "$to/proc/sys/kernel/random" "$to/proc/self"
echo 00000000-0000-4000-8000-000000000000 >"$to/proc/sys/kernel/random/boot_id"
# One mapping is enough for the size of a page.
grep -m 1 '^KernelPageSize:' /proc/self/smaps >"$to/proc/self/smaps" 2>/dev/null || rm -f "$to/proc/self/smaps"
grep -E ' - (ext[234]|xfs|btrfs|zfs|overlay|proc|sysfs|debugfs|cgroup2?|hugetlbfs) | /sys/fs/cgroup | / / ' \
  /proc/self/mountinfo >"$to/proc/self/mountinfo" || true
tr ' ' '\n' </proc/cmdline | sed '/^--$/,$d' |
  grep -E '^(ro|rw|quiet|(console|mitigations|transparent_hugepage|default_hugepagesz|hugepagesz|hugepages|isolcpus|nohz_full|rcu_nocbs|numa_balancing|intel_idle|processor|cgroup|swapaccount|systemd.unified|clocksource|tsc|psi|maxcpus|nosmt)[a-z_.]*=.*)$' |
  tr '\n' ' ' | sed 's/ $//' >"$to/proc/cmdline"

cpu=/sys/devices/system/cpu
take $cpu/online $cpu/present $cpu/possible $cpu/isolated $cpu/smt/active $cpu/smt/control
take $cpu/vulnerabilities/* $cpu/cpuidle/* $cpu/intel_pstate/no_turbo $cpu/cpufreq/boost
for one in $cpu/cpu[0-9]*; do
  take "$one"/topology/physical_package_id "$one"/topology/thread_siblings_list "$one"/topology/core_cpus_list
  for cache in "$one"/cache/index*; do
    for file in level type size shared_cpu_list coherency_line_size ways_of_associativity; do take "$cache/$file"; done
  done
done
for state in $cpu/cpu0/cpuidle/state*; do take "$state/name" "$state/latency" "$state/disable"; done
for policy in $cpu/cpufreq/policy*; do
  for file in affected_cpus scaling_driver scaling_governor energy_performance_preference scaling_min_freq \
    scaling_max_freq cpuinfo_max_freq; do take "$policy/$file"; done
done
for zone in /sys/class/powercap/*; do
  for file in name constraint_0_power_limit_uw constraint_0_max_power_uw energy_uj; do take "$zone/$file"; done
done
for node in /sys/devices/system/node/node[0-9]*; do
  take "$node/cpulist" "$node/meminfo" "$node/distance" "$node"/hugepages/*/*_hugepages
done
take /sys/devices/system/node/online /sys/devices/system/clocksource/clocksource0/*_clocksource
mm=/sys/kernel/mm
take $mm/hugepages/*/*_hugepages $mm/transparent_hugepage/* $mm/transparent_hugepage/*/* $mm/numa/demotion_enabled
take $mm/lru_gen/enabled /sys/module/zswap/parameters/enabled /sys/kernel/security/lockdown /sys/hypervisor/type
for file in sys_vendor product_name bios_vendor chassis_asset_tag; do take /sys/class/dmi/id/$file; done
take /sys/firmware/devicetree/base/compatible /sys/firmware/devicetree/base/hypervisor/compatible

link /proc/self/ns/pid /proc/self/ns/cgroup /sys/class/net/* /sys/block/* /sys/class/block/* /sys/dev/block/*
for interface in /sys/class/net/*; do
  [ -L "$interface" ] || continue
  place=$(readlink -f "$interface")
  take "$place/mtu" "$place/speed" "$place/operstate"
  for queue in "$place"/queues/rx-*; do
    if [ -d "$queue" ]; then mkdir -p "$to$queue" && : >"$to$queue/.kept"; fi
  done
  link "$place/device"
  if [ -e "$place/device" ]; then link "$(readlink -f "$place/device")/driver"; fi
done
for device in /sys/dev/block/*; do
  place=$(readlink -f "$device")
  take "$place/dev" "$place/size" "$place/partition" "$place/ro" "$place"/dm/* "$place"/md/* "$place"/loop/*
  for file in rotational scheduler read_ahead_kb nr_requests write_cache logical_block_size physical_block_size \
    max_sectors_kb wbt_lat_usec discard_max_bytes fua; do take "$place/queue/$file"; done
  take "$place/device/model" "$place/device/transport" "$place/device/queue_depth"
  link "$place"/slaves/*
  for queue in "$place"/mq/*; do
    if [ -d "$queue" ]; then mkdir -p "$to$queue" && : >"$to$queue/.kept"; fi
  done
done
