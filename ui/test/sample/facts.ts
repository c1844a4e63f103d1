import type { Fact, Restored } from "../../src/model.ts";

const fact = (group: Fact["group"], name: string, value: string, source: string): Fact => ({ group, name, value, missing: null, source });
const missing = (group: Fact["group"], name: string, why: string, source: string): Fact => ({ group, name, value: null, missing: why, source });

export const FACTS: Fact[] = [
  fact("host", "Processor", "AMD EPYC 9354P, 16 of 32 cores online", "/proc/cpuinfo"),
  fact("host", "Memory", "62.7 GiB", "/proc/meminfo MemTotal"),
  fact("host", "Kernel", "6.1.0-31-amd64", "uname"),
  fact("host", "Device of the data directory", "nvme0n1, 1.7 TiB, not rotational", "/sys/block/nvme0n1/queue"),
  fact("host", "File system", "ext4, noatime", "/proc/self/mountinfo"),
  missing("host", "Frequency governor", "no cpufreq directory: the hypervisor hides it", "/sys/devices/system/cpu/cpu0/cpufreq"),
  fact("host", "Pressure stall information", "available", "/proc/pressure"),
  fact("server", "Version", "PostgreSQL 17.2 (Debian 17.2-1.pgdg120+1)", "select version()"),
  fact("server", "Data checksums", "on", "show data_checksums"),
  fact("server", "Size of the database", "14.7 GiB", "pg_database_size"),
  missing("server", "pg_stat_statements", "not in shared_preload_libraries", "pg_available_extensions"),
  fact("load", "Connection", "Unix socket, prepared statements", "the experiment file"),
  fact("load", "Client on the same host", "yes, 4 threads", "addresses of both ends"),
  missing("sandbox", "Limit of input and output", "no io controller delegated to this cgroup", "cgroup.controllers"),
  fact("sandbox", "Processors of the server", "0-11", "cpuset.cpus.effective"),
];

export const RESTORED: Restored[] = [
  { knob: "shared_buffers", where: "postgresql.auto.conf", was: "128MB", set_to: "16GB", outcome: "restored", detail: null },
  { knob: "max_wal_size", where: "postgresql.auto.conf", was: "1GB", set_to: "32GB", outcome: "restored", detail: null },
  { knob: "wal_compression", where: "postgresql.auto.conf", was: "off", set_to: "zstd", outcome: "already", detail: null },
  { knob: "vm.nr_hugepages", where: "/proc/sys/vm/nr_hugepages", was: "0", set_to: "8412", outcome: "left", detail: "someone set it to 4096 meanwhile; pgdyno does not overwrite what is not its own" },
  { knob: "read_ahead_kb", where: "/sys/block/nvme0n1/queue/read_ahead_kb", was: "128", set_to: "8", outcome: "restored", detail: null },
];

export const EXPERIMENT_FILE = `[experiment]
name = "Stock to tuned, step by step"
question = "What is each tuning step worth on this host?"
design = "cumulative"
blocks = 3
seed = 20251118

[load]
workload = "tpcb-like"
scale = 1000
clients = 32
threads = 4
warmup = "30s"
measure = "120s"

[[treatment]]
name = "memory"
set.shared_buffers = "16GB"
set.effective_cache_size = "48GB"
set.work_mem = "32MB"
`;
