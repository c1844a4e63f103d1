//! Names of the metrics that the view shows; docs/reference/metrics.md and
//! docs/reference/metrics-server.md describe each one.

pub(crate) const COMMITS: &str = "db.commits_per_s";
pub(crate) const ROLLBACKS: &str = "db.rollbacks_per_s";
pub(crate) const BLOCKS_HIT: &str = "db.blocks_hit_per_s";
pub(crate) const BLOCKS_READ: &str = "db.blocks_read_per_s";
/// Transaction ids that were given out.
pub(crate) const XIDS: &str = "db.transaction_ids_per_s";
pub(crate) const WAL_BYTES: &str = "wal.position_bytes_per_s";
pub(crate) const CHECKPOINTS_TIMED: &str = "checkpoints.timed_per_s";
pub(crate) const CHECKPOINTS_REQUESTED: &str = "checkpoints.requested_per_s";
pub(crate) const ACTIVE: &str = "sessions.active";
pub(crate) const IDLE: &str = "sessions.idle";
pub(crate) const IDLE_IN_TRANSACTION: &str = "sessions.idle_in_transaction";
pub(crate) const OLDEST_XACT: &str = "sessions.oldest_transaction_s";
pub(crate) const SLOT_RETAINED: &str = "replication.slot_retained_bytes";

/// Label of a value that sums up all of several.
pub(crate) const ALL: &str = "all";

pub(crate) const CPU_MODES: [(&str, &str); 5] = [
    ("user", "cpu.user_ratio"),
    ("system", "cpu.system_ratio"),
    ("iowait", "cpu.iowait_ratio"),
    ("steal", "cpu.steal_ratio"),
    ("idle", "cpu.idle_ratio"),
];
pub(crate) const RUN_QUEUE: &str = "cpu.run_queue";

pub(crate) const MEMORY_TOTAL: &str = "memory.total_bytes";
pub(crate) const MEMORY_AVAILABLE: &str = "memory.available_bytes";
pub(crate) const PAGE_TABLES: &str = "memory.page_tables_bytes";
pub(crate) const DIRTY: &str = "memory.dirty_bytes";
pub(crate) const WRITEBACK: &str = "memory.writeback_bytes";
pub(crate) const SWAP_USED: &str = "memory.swap_used_bytes";

pub(crate) const PROCESS_PSS: &str = "process.pss_bytes";

pub(crate) const DISK_UTIL: &str = "disk.util_ratio";
pub(crate) const DISK_READS: &str = "disk.reads_per_s";
pub(crate) const DISK_WRITES: &str = "disk.writes_per_s";
pub(crate) const DISK_READ_BYTES: &str = "disk.read_bytes_per_s";
pub(crate) const DISK_WRITE_BYTES: &str = "disk.write_bytes_per_s";

/// The file system that holds the write-ahead log, read by the view's own source.
pub(crate) const WAL_VOLUME: &str = "wal.volume_bytes";
pub(crate) const WAL_VOLUME_FREE: &str = "wal.volume_free_bytes";
