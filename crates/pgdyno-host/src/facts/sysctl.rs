//! Kernel parameters that matter to a database server: a table of names, read from /proc/sys.

use super::sheet::Sheet;

/// Each is read from its file below /proc/sys; the fact has "sysctl." before the name. Units are
/// the kernel's own (Documentation/admin-guide/sysctl in its source), mostly said by the name.
const NAMES: [&str; 71] = [
    // Page cache and write-back.
    "vm.dirty_background_bytes",
    "vm.dirty_background_ratio",
    "vm.dirty_bytes",
    "vm.dirty_ratio",
    "vm.dirty_expire_centisecs",
    "vm.dirty_writeback_centisecs",
    "vm.vfs_cache_pressure",
    "vm.page-cluster",
    // Memory and what is promised of it.
    "vm.swappiness",
    "vm.overcommit_memory",
    "vm.overcommit_ratio",
    "vm.overcommit_kbytes",
    "vm.min_free_kbytes",
    "vm.watermark_scale_factor",
    "vm.watermark_boost_factor",
    "vm.zone_reclaim_mode",
    "vm.compaction_proactiveness",
    "vm.extfrag_threshold",
    "vm.max_map_count",
    "vm.panic_on_oom",
    "vm.oom_kill_allocating_task",
    "vm.stat_interval",
    // Huge pages.
    "vm.nr_hugepages",
    "vm.nr_overcommit_hugepages",
    "vm.hugetlb_shm_group",
    // Scheduler and memory nodes.
    "kernel.numa_balancing",
    "kernel.sched_autogroup_enabled",
    "kernel.sched_cfs_bandwidth_slice_us",
    "kernel.sched_rt_runtime_us",
    "kernel.sched_schedstats",
    "kernel.timer_migration",
    // Shared memory and semaphores.
    "kernel.sem",
    "kernel.shmmax",
    "kernel.shmall",
    "kernel.shmmni",
    // Numbers of processes.
    "kernel.pid_max",
    "kernel.threads-max",
    // What may be measured, and by whom.
    "kernel.perf_event_paranoid",
    "kernel.perf_event_mlock_kb",
    "kernel.kptr_restrict",
    "kernel.yama.ptrace_scope",
    "kernel.task_delayacct",
    "kernel.nmi_watchdog",
    "kernel.randomize_va_space",
    // Input and output.
    "kernel.io_uring_disabled",
    "kernel.io_uring_group",
    "fs.aio-max-nr",
    "fs.aio-nr",
    "fs.file-max",
    "fs.file-nr",
    "fs.nr_open",
    // Network.
    "net.core.somaxconn",
    "net.core.netdev_max_backlog",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.core.default_qdisc",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_wmem",
];

pub(super) fn note(sheet: &mut Sheet<'_>) {
    for name in NAMES {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        let fact = format!("sysctl.{name}");
        // Elsewhere -1 can mean "no limit", and some files hold several numbers.
        match name.starts_with("vm.") {
            true => sheet.number(&fact, &path),
            false => sheet.value(&fact, &path),
        }
    }
}
