# What jobs of the guest are written with: steps that a test can find on the console, and pictures
# of all settings.

# step LABEL COMMAND...: what it prints, how it ends, what it says.
step() {
  label=$1
  shift
  "$@" >/tmp/printed 2>/tmp/said </dev/null
  code=$?
  echo "== $label"
  cat /tmp/printed
  echo "== ended with $code"
  cat /tmp/said
  echo "== end of $label"
}

# picture FILE: every setting of the kernel that a knob can touch, a line each. What the kernel
# counts by itself, or does not let anybody read, is none.
picture() {
  grep -rs '' /proc/sys/kernel /proc/sys/vm /proc/sys/net/core /proc/sys/net/ipv4 /sys/kernel/mm /sys/devices/system/node \
    /sys/kernel/debug/sched /sys/block/*/queue /proc/irq 2>/dev/null |
    grep -v -e /proc/sys/kernel/random/ -e ns_last_pid -e pty/nr -e hung_task_detect -e /meminfo: -e /numastat: -e /vmstat: \
      -e /cpumap: -e free_hugepages -e /debug/sched/debug: -e /domains/ -e _info: -e full_scans -e pages_collapsed -e /spurious: \
      -e '/ksm/pages_[suv]' -e /mm/ksm/general -e /stats/ -e max_newidle -e effective_affinity -e /proc/sys/vm/stat_refresh \
      -e perf_event_max_sample_rate -e perf_cpu_time -e /kernel/tainted: |
    sort >"$1"
}

# same LABEL ONE OTHER: what differs between two pictures.
same() {
  step "$1" diff "$2" "$3"
}
