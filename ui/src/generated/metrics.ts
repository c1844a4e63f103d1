// Generated from crates/pgdyno-record by `make types`: do not edit.

/** A metric of a trial. */
export interface Metric {
  /** Its name in records, files and commands. */
  id: string;
  /** Within a sentence. */
  title: string;
  /** At the head of a column. */
  column: string;
  /** As a heading, without "per transaction". */
  heading: string;
  /** Empty for a number without one. */
  unit: string;
  larger_is_better: boolean;
  /** Whose gap says why it is missing; empty where no gap does. */
  source: string;
  /** A cost of each transaction. */
  is_cost: boolean;
  /** Compared where no metric is named. */
  is_compared: boolean;
}

export const METRICS: readonly Metric[] = [
  { id: "tps", title: "throughput", column: "TPS", heading: "Throughput", unit: "TPS", larger_is_better: true, source: "", is_cost: false, is_compared: true },
  { id: "goodput_tps", title: "throughput within the latency limit", column: "goodput, TPS", heading: "Goodput", unit: "TPS", larger_is_better: true, source: "", is_cost: false, is_compared: false },
  { id: "nopm", title: "new orders per minute", column: "NOPM", heading: "New orders per minute", unit: "NOPM", larger_is_better: true, source: "", is_cost: false, is_compared: false },
  { id: "server_tps_min", title: "throughput of the slowest server", column: "slowest server, TPS", heading: "Slowest server", unit: "TPS", larger_is_better: true, source: "", is_cost: false, is_compared: false },
  { id: "server_tps_max", title: "throughput of the fastest server", column: "fastest server, TPS", heading: "Fastest server", unit: "TPS", larger_is_better: true, source: "", is_cost: false, is_compared: false },
  { id: "server_tps_spread", title: "spread of the servers' throughput", column: "spread of servers", heading: "Spread of servers", unit: "", larger_is_better: false, source: "", is_cost: false, is_compared: false },
  { id: "mean_ms", title: "the mean response time", column: "mean ms", heading: "Response time, mean", unit: "ms", larger_is_better: false, source: "", is_cost: false, is_compared: false },
  { id: "p50_ms", title: "the median response time", column: "p50 ms", heading: "Response time, p50", unit: "ms", larger_is_better: false, source: "", is_cost: false, is_compared: true },
  { id: "p95_ms", title: "the 95th percentile of response times", column: "p95 ms", heading: "Response time, p95", unit: "ms", larger_is_better: false, source: "", is_cost: false, is_compared: true },
  { id: "p99_ms", title: "the 99th percentile of response times", column: "p99 ms", heading: "Response time, p99", unit: "ms", larger_is_better: false, source: "", is_cost: false, is_compared: true },
  { id: "max_ms", title: "the longest response time", column: "max ms", heading: "Response time, longest", unit: "ms", larger_is_better: false, source: "", is_cost: false, is_compared: false },
  { id: "stability_cv", title: "the variation of throughput per second", column: "variation per second", heading: "Variation per second", unit: "", larger_is_better: false, source: "", is_cost: false, is_compared: true },
  { id: "server_cpu_us_per_tx", title: "server CPU per transaction", column: "server CPU per tx, µs", heading: "Server CPU", unit: "µs", larger_is_better: false, source: "", is_cost: true, is_compared: true },
  { id: "cpus", title: "CPUs that the server keeps busy", column: "busy CPUs", heading: "Busy CPUs", unit: "", larger_is_better: false, source: "", is_cost: false, is_compared: false },
  { id: "client_cpu_us_per_tx", title: "client CPU per transaction", column: "client CPU per tx, µs", heading: "Client CPU", unit: "µs", larger_is_better: false, source: "", is_cost: true, is_compared: false },
  { id: "wal_bytes_per_tx", title: "WAL per transaction", column: "WAL per tx, bytes", heading: "WAL", unit: "bytes", larger_is_better: false, source: "pg_stat_wal", is_cost: true, is_compared: true },
  { id: "disk_read_bytes_per_tx", title: "bytes read from the disk per transaction", column: "read from disk per tx, bytes", heading: "Read from disk", unit: "bytes", larger_is_better: false, source: "/proc/diskstats", is_cost: true, is_compared: false },
  { id: "disk_write_bytes_per_tx", title: "bytes written to the disk per transaction", column: "written to disk per tx, bytes", heading: "Written to disk", unit: "bytes", larger_is_better: false, source: "/proc/diskstats", is_cost: true, is_compared: false },
  { id: "energy_j_per_tx", title: "energy per transaction", column: "energy per tx, J", heading: "Energy", unit: "J", larger_is_better: false, source: "/sys/class/powercap", is_cost: true, is_compared: false },
  { id: "page_faults", title: "page faults per transaction", column: "page faults per tx", heading: "Page faults", unit: "", larger_is_better: false, source: "perf", is_cost: true, is_compared: false },
  { id: "dtlb_load_misses", title: "TLB misses of loads per transaction", column: "TLB misses per tx, loads", heading: "TLB misses, loads", unit: "", larger_is_better: false, source: "perf", is_cost: true, is_compared: false },
  { id: "dtlb_store_misses", title: "TLB misses of stores per transaction", column: "TLB misses per tx, stores", heading: "TLB misses, stores", unit: "", larger_is_better: false, source: "perf", is_cost: true, is_compared: false },
  { id: "itlb_load_misses", title: "TLB misses of instructions per transaction", column: "TLB misses per tx, instructions", heading: "TLB misses, instructions", unit: "", larger_is_better: false, source: "perf", is_cost: true, is_compared: false },
  { id: "dtlb_load_walk_cycles", title: "cycles of TLB walks for loads per transaction", column: "cycles of TLB walks per tx, loads", heading: "Cycles of TLB walks, loads", unit: "", larger_is_better: false, source: "perf", is_cost: true, is_compared: false },
  { id: "dtlb_store_walk_cycles", title: "cycles of TLB walks for stores per transaction", column: "cycles of TLB walks per tx, stores", heading: "Cycles of TLB walks, stores", unit: "", larger_is_better: false, source: "perf", is_cost: true, is_compared: false },
  { id: "llc_load_misses", title: "cache misses per transaction", column: "cache misses per tx", heading: "Cache misses", unit: "", larger_is_better: false, source: "perf", is_cost: true, is_compared: false },
  { id: "context_switches", title: "context switches per transaction", column: "context switches per tx", heading: "Context switches", unit: "", larger_is_better: false, source: "perf", is_cost: true, is_compared: false },
  { id: "migrations", title: "moves between CPUs per transaction", column: "moves between CPUs per tx", heading: "Moves between CPUs", unit: "", larger_is_better: false, source: "perf", is_cost: true, is_compared: false },
  { id: "cycles", title: "cycles per transaction", column: "cycles per tx", heading: "Cycles", unit: "", larger_is_better: false, source: "perf", is_cost: true, is_compared: false },
  { id: "instructions", title: "instructions per transaction", column: "instructions per tx", heading: "Instructions", unit: "", larger_is_better: false, source: "perf", is_cost: true, is_compared: false },
  { id: "dtlb_loads", title: "TLB look-ups of loads per transaction", column: "TLB look-ups per tx, loads", heading: "TLB look-ups, loads", unit: "", larger_is_better: false, source: "perf", is_cost: true, is_compared: false },
  { id: "dtlb_stores", title: "TLB look-ups of stores per transaction", column: "TLB look-ups per tx, stores", heading: "TLB look-ups, stores", unit: "", larger_is_better: false, source: "perf", is_cost: true, is_compared: false },
  { id: "itlb_loads", title: "TLB look-ups of instructions per transaction", column: "TLB look-ups per tx, instructions", heading: "TLB look-ups, instructions", unit: "", larger_is_better: false, source: "perf", is_cost: true, is_compared: false },
  { id: "llc_loads", title: "cache look-ups per transaction", column: "cache look-ups per tx", heading: "Cache look-ups", unit: "", larger_is_better: false, source: "perf", is_cost: true, is_compared: false },
  { id: "task_clock_ms", title: "task clock per transaction", column: "task clock per tx, ms", heading: "Task clock", unit: "ms", larger_is_better: false, source: "perf", is_cost: true, is_compared: false },
  { id: "job_s", title: "the time of the job", column: "job, s", heading: "Time of the job", unit: "s", larger_is_better: false, source: "", is_cost: false, is_compared: false },
  { id: "recovery_s", title: "the time of recovery", column: "recovery, s", heading: "Time of recovery", unit: "s", larger_is_better: false, source: "", is_cost: false, is_compared: false },
];

/** How names of other metrics end, and in which unit they are then; the first that fits counts. */
export const UNITS: readonly (readonly [ending: string, unit: string])[] = [
  ["_bytes_per_s", "bytes/s"],
  ["_bytes_per_tx", "bytes per transaction"],
  ["_us_per_tx", "µs per transaction"],
  ["_j_per_tx", "J per transaction"],
  ["_per_tx", "per transaction"],
  ["_per_s", "per second"],
  ["_bytes", "bytes"],
  ["_ms", "ms"],
  ["_us", "µs"],
  ["_s", "s"],
];
