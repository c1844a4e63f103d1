#!/bin/sh
# Copies what pgdyno's readers read of a Linux machine into a folder that LocalHost::at takes.
# pack-host.sh makes a fixture of it.
#
#   capture-host.sh FOLDER [PID...]
#
# Needs nothing but a POSIX shell, cat, cp, ln, mkdir, mv, readlink, rm, sed and find: it also runs
# in a guest that has only busybox. Links below /sys stay relative links. A file that the machine
# refuses to read is skipped. What names the machine or its maker is replaced: builder, boot id,
# unknown words of the boot line. REDACT may hold a sed script for more, which is applied to texts,
# links and names of control groups.
set -u
export LC_ALL=C
out=${1:?usage: capture-host.sh FOLDER [PID...]}
shift
pids=$*
redact="${REDACT:-}
s/ ([^() ]*@[^() ]*) / (builder@build) /"
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd -P)
known_dir=""
known_real=""

# Sets $real to the physical folder of a path; consecutive files of one folder ask once. /proc is
# taken by its own names, for "self" is not the number of the shell that copies.
folder_of() {
  dir=${1%/*}
  case $dir in
  /proc*) real=$dir ;;
  "$known_dir") real=$known_real ;;
  *)
    real=$(cd -P "${dir:-/}" 2>/dev/null && pwd -P) || return 1
    known_dir=$dir
    known_real=$real
    ;;
  esac
}

# Files as they are read, those of one folder by one process: an emulated machine starts few of them
# in a second.
files() {
  batch=""
  batch_dir=""
  for path in "$@"; do
    [ -f "$path" ] || continue
    if [ "${path%/*}" != "$batch_dir" ]; then
      copy_batch
      batch_dir=${path%/*}
    fi
    batch="$batch $path"
  done
  copy_batch
}

copy_batch() {
  [ -n "$batch" ] || return 0
  folder_of "$batch_dir/" || return 0
  [ -d "$out$real" ] || mkdir -p "$out$real"
  # shellcheck disable=SC2086
  cp $batch "$out$real/" 2>/dev/null
  # Empty, or refused? What is refused leaves nothing behind.
  for entry in $batch; do
    copy=$out$real/${entry##*/}
    [ -s "$copy" ] || cat "$entry" >"$copy" 2>/dev/null || rm -f "$copy"
  done
  batch=""
}

# Symbolic links, as links.
links() {
  for path in "$@"; do
    [ -L "$path" ] || continue
    folder_of "$path" || continue
    place=$real/${path##*/}
    [ -L "$out$place" ] && continue
    [ -d "$out$real" ] || mkdir -p "$out$real"
    target=$(readlink "$path") && ln -s "$target" "$out$place"
  done
}

machine() {
  for name in cpuinfo meminfo stat vmstat diskstats loadavg mounts cmdline version swaps uptime sysinfo buddyinfo; do
    files "/proc/$name"
  done
  files /proc/pressure/* /proc/net/dev /proc/net/snmp /proc/net/netstat /proc/net/sockstat
  files /etc/os-release /proc/user_beancounters /run/systemd/container /run/.containerenv /.dockerenv
  files /proc/sys/vm/[!s]* /proc/sys/vm/swappiness /proc/sys/vm/stat_interval /proc/sys/fs/aio* /proc/sys/fs/file-* /proc/sys/fs/nr_open /proc/sys/kernel/random/boot_id
  for name in osrelease ostype version arch tainted sched_* sched_domain numa_* perf_event_* io_uring_* shm* sem msg* pid_max \
    threads-max nmi_watchdog watchdog* soft_watchdog timer_migration randomize_va_space yama/ptrace_scope kptr_restrict \
    panic panic_on_oom hung_task_* task_delayacct unprivileged_bpf_disabled lockdown; do
    # shellcheck disable=SC2086
    files /proc/sys/kernel/$name
  done
  files /proc/sys/net/core/somaxconn /proc/sys/net/core/[rw]mem_* /proc/sys/net/core/netdev_* \
    /proc/sys/net/core/default_qdisc /proc/sys/net/core/busy_* /proc/sys/net/core/rps_sock_flow_entries
  files /proc/sys/net/ipv4/tcp_[rw]mem /proc/sys/net/ipv4/tcp_mem /proc/sys/net/ipv4/tcp_keepalive_* \
    /proc/sys/net/ipv4/tcp_congestion_control /proc/sys/net/ipv4/tcp_max_syn_backlog \
    /proc/sys/net/ipv4/tcp_slow_start_after_idle /proc/sys/net/ipv4/tcp_tw_reuse /proc/sys/net/ipv4/tcp_fin_timeout \
    /proc/sys/net/ipv4/tcp_timestamps /proc/sys/net/ipv4/tcp_window_scaling /proc/sys/net/ipv4/tcp_retries2 \
    /proc/sys/net/ipv4/ip_local_port_range
  files /sys/kernel/debug/sched/* /sys/kernel/debug/sched/numa_balancing/* /sys/kernel/debug/sched_features /sys/kernel/security/lockdown
}

processors() {
  cpu=/sys/devices/system/cpu
  files $cpu/online $cpu/offline $cpu/present $cpu/possible $cpu/isolated $cpu/nohz_full $cpu/kernel_max \
    $cpu/smt/* $cpu/vulnerabilities/* $cpu/cpuidle/* $cpu/intel_pstate/* $cpu/amd_pstate/* $cpu/cpufreq/boost
  for one in $cpu/cpu[0-9]*; do
    files "$one"/online "$one"/topology/physical_package_id "$one"/topology/core_id "$one"/topology/*_list "$one"/cpu_capacity "$one"/polarization \
      "$one"/cpufreq/scaling_* "$one"/cpufreq/cpuinfo_*_freq "$one"/cpufreq/*_cpus "$one"/cpufreq/energy_* "$one"/cpufreq/base_frequency
    links "$one"/cpufreq
    for cache in "$one"/cache/index[0-9]*; do
      files "$cache"/level "$cache"/type "$cache"/size "$cache"/shared_cpu_list "$cache"/coherency_line_size \
        "$cache"/ways_of_associativity "$cache"/id
    done
    for state in "$one"/cpuidle/state[0-9]*; do files "$state"/name "$state"/latency "$state"/disable; done
  done
  files $cpu/cpufreq/policy[0-9]*/scaling_* $cpu/cpufreq/policy[0-9]*/cpuinfo_*_freq $cpu/cpufreq/policy[0-9]*/energy_* \
    $cpu/cpufreq/policy[0-9]*/*_cpus
  files /sys/devices/system/clocksource/clocksource0/*_clocksource
}

memory() {
  node=/sys/devices/system/node
  files $node/online $node/possible $node/has_*
  for one in $node/node[0-9]*; do
    files "$one"/cpulist "$one"/distance "$one"/meminfo "$one"/numastat "$one"/vmstat
    files "$one"/hugepages/hugepages-*/*
  done
  files /sys/kernel/mm/hugepages/hugepages-*/*
  mm=/sys/kernel/mm
  files $mm/transparent_hugepage/* $mm/transparent_hugepage/khugepaged/* $mm/transparent_hugepage/hugepages-*/* \
    $mm/ksm/run $mm/ksm/merge_across_nodes $mm/numa/* $mm/swap/* \
    $mm/lru_gen/enabled /sys/module/zswap/parameters/enabled
}

block() {
  links /sys/block/* /sys/dev/block/* /sys/class/block/*
  set --
  for disk in /sys/block/*; do
    [ -e "$disk/dev" ] || continue
    # Loop and RAM disks that hold nothing are skipped.
    case ${disk##*/} in
    loop* | ram* | zram*) [ "$(cat "$disk/size")" = 0 ] && { rm -f "$out$disk" "$out/sys/class/block/${disk##*/}"; idle="${idle:-} $(cat "$disk/dev")"; continue; } ;;
    esac
    files "$disk"/dev "$disk"/size "$disk"/ro "$disk"/removable "$disk"/stat "$disk"/inflight "$disk"/wwid \
      "$disk"/uuid "$disk"/nguid "$disk"/eui "$disk"/serial "$disk"/cache_type "$disk"/hidden "$disk"/nsid \
      "$disk"/disksize "$disk"/comp_algorithm
    for name in rotational scheduler read_ahead_kb nr_requests write_cache fua logical_block_size physical_block_size \
      hw_sector_size minimum_io_size optimal_io_size max_sectors_kb max_hw_sectors_kb nomerges rq_affinity wbt_lat_usec \
      io_poll discard_max_bytes add_random iostats zoned dax; do
      set -- "$@" "$disk/queue/$name"
    done
    files "$@"
    set --
    files "$disk"/dm/name "$disk"/dm/uuid "$disk"/dm/suspended "$disk"/loop/*
    files "$disk"/md/level "$disk"/md/raid_disks "$disk"/md/degraded "$disk"/md/array_state "$disk"/md/chunk_size \
      "$disk"/md/component_size "$disk"/md/metadata_version "$disk"/md/sync_action "$disk"/md/stripe_cache_size
    for member in "$disk"/md/dev-*; do files "$member"/state "$member"/slot; links "$member"/block; done
    links "$disk"/slaves/* "$disk"/holders/* "$disk"/device "$disk"/subsystem
    files "$disk"/mq/*/nr_tags
    device_of "$disk"/device
    for part in "$disk"/*/partition; do
      part=${part%/partition}
      files "$part"/partition "$part"/dev "$part"/size "$part"/start "$part"/ro "$part"/stat "$part"/alignment_offset
      links "$part"/slaves/* "$part"/holders/*
    done
  done
  # Their numbers go with the idle disks.
  for number in ${idle:-}; do rm -f "$out/sys/dev/block/$number"; done
}

# The device behind a disk or an interface.
device_of() {
  files "$1"/model "$1"/vendor "$1"/device "$1"/wwid "$1"/serial "$1"/rev "$1"/firmware_rev "$1"/queue_depth \
    "$1"/queue_count "$1"/sqsize "$1"/transport "$1"/state "$1"/numa_node "$1"/modalias "$1"/cutype "$1"/devtype \
    "$1"/power/control
  links "$1"/driver "$1"/subsystem "$1"/device
  files "$1"/device/numa_node "$1"/device/vendor "$1"/device/device "$1"/device/current_link_speed
}

rest() {
  links /sys/class/net/* /sys/class/nvme/* /sys/class/powercap/*
  for interface in /sys/class/net/*; do
    files "$interface"/mtu "$interface"/speed "$interface"/duplex "$interface"/operstate "$interface"/carrier \
      "$interface"/type "$interface"/tx_queue_len "$interface"/flags "$interface"/ifindex "$interface"/iflink
    links "$interface"/device
    [ -e "$interface/device" ] && device_of "$interface"/device
    for queue in "$interface"/queues/*; do files "$queue"/rps_cpus "$queue"/xps_cpus; done
  done
  for zone in /sys/class/powercap/*; do
    files "$zone"/name "$zone"/energy_uj "$zone"/max_energy_range_uj "$zone"/enabled "$zone"/constraint_*
  done
  for name in sys_vendor product_name product_version bios_vendor board_vendor chassis_vendor chassis_asset_tag; do
    files /sys/class/dmi/id/$name
  done
  links /sys/class/dmi/id
  files /sys/hypervisor/type /sys/hypervisor/version/* /sys/hypervisor/uuid
  files /sys/firmware/devicetree/base/compatible /sys/firmware/devicetree/base/model \
    /sys/firmware/devicetree/base/hypervisor/compatible
  links /sys/fs/btrfs/*/devices/*
}

# "self" or the number of a process.
process() {
  proc=/proc/$1
  files "$proc"/stat "$proc"/status "$proc"/statm "$proc"/limits "$proc"/cgroup "$proc"/oom_score \
    "$proc"/oom_score_adj "$proc"/smaps_rollup "$proc"/schedstat "$proc"/comm "$proc"/mountinfo \
    "$proc"/io "$proc"/numa_maps "$proc"/smaps \
    "$proc/task/${proc#/proc/}/children"
  # The command line of "self" would be that of a copy.
  [ "$1" = self ] || files "$proc"/cmdline
  links "$proc"/ns/pid "$proc"/ns/mnt "$proc"/ns/cgroup
  # Each group that the process is in, and all above it: a limit holds for everything below.
  [ -r "$proc"/cgroup ] || return 0
  while read -r _ _ _ _ mount _ rest; do
    case $rest in *"- cgroup"*) ;; *) continue ;; esac
    while IFS= read -r group; do
      group=${group#*:*:}
      group=${group%/}
      while [ -d "$mount$group" ]; do
        control_group "$mount$group"
        [ -n "$group" ] || break
        group=${group%/*}
      done
    done <"$proc"/cgroup
  done </proc/self/mountinfo
}

control_group() {
  files "$1"/cgroup.controllers "$1"/cgroup.subtree_control "$1"/cgroup.type "$1"/cgroup.events "$1"/cgroup.procs \
    "$1"/cpu.* "$1"/cpuacct.usage "$1"/cpuacct.stat "$1"/cpuset.* "$1"/memory.[!e]* "$1"/hugetlb.*B.max "$1"/hugetlb.*.current "$1"/hugetlb.*.limit_in_bytes "$1"/io.* \
    "$1"/blkio.throttle.* "$1"/blkio.weight "$1"/blkio.bfq.weight "$1"/pids.max "$1"/pids.current
}

# What names the machine.
clean() {
  echo 00000000-0000-4000-8000-000000000000 >"$out/proc/sys/kernel/random/boot_id"
  # Azure's machines all wear this tag; any other is the machine's own.
  tag=$out/sys/devices/virtual/dmi/id/chassis_asset_tag
  [ "$(cat "$tag" 2>/dev/null)" = 7783-7084-3265-9085-8269-3286-77 ] || rm -f "$tag"
  # Only words whose meaning is public stay of the boot line.
  kept=""
  for word in $(cat "$out/proc/cmdline"); do
    case ${word%%=*} in
    cgroup* | default_hugepagesz | elevator | hugepages | hugepagesz | hugetlb_cma | idle | intel_idle.max_cstate | \
      intel_pstate | iommu | isolcpus | mitigations | nohz | nohz_full | nosmt | nomodule | numa | numa_balancing | \
      processor.max_cstate | psi | quiet | rcu_nocbs | ro | rw | skew_tick | spectre_v2 | swapaccount | swiotlb | \
      systemd.unified_cgroup_hierarchy | transparent_hugepage | tsc | clocksource | console | panic)
      kept="$kept $word"
      ;;
    esac
  done
  echo "${kept# }" >"$out/proc/cmdline"
  for path in "$out"/proc/version "$out"/proc/mounts "$out"/proc/*/mountinfo "$out"/proc/*/cgroup "$out"/proc/*/cmdline \
    "$out"/proc/*/stat "$out"/proc/*/status "$out"/proc/*/comm \
    "$out"/proc/*/smaps "$out"/proc/*/numa_maps "$out"/proc/sys/kernel/osrelease "$out"/proc/sys/kernel/version; do
    [ -f "$path" ] || continue
    sed "$redact" <"$path" >"$path.new" && cat "$path.new" >"$path"
    rm -f "$path.new"
  done
  chmod -R u+w "$out"
  [ -n "${REDACT:-}" ] || return 0
  # What was renamed in the text is renamed in the tree, the deepest first.
  find "$out/sys/fs/cgroup" -depth -type d | while IFS= read -r group; do
    renamed=$(echo "${group##*/}" | sed "$REDACT")
    [ "$renamed" = "${group##*/}" ] || mv "$group" "${group%/*}/$renamed"
  done
}

machine
processors
memory
block
rest
for one in self 1 $pids; do process "$one"; done
clean
