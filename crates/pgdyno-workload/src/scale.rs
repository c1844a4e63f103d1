//! Rows of pgbench's tables per unit of scale.

/// Rows of pgbench_accounts per unit of scale.
pub(crate) const ACCOUNTS_PER_SCALE: u32 = 100_000;

/// Rows of pgbench_tellers per unit of scale.
pub(crate) const TELLERS_PER_SCALE: u32 = 10;

/// From this scale on the keys of accounts are bigint, as `pgbench -i` makes them (source:
/// SCALE_32BIT_THRESHOLD in pgbench.c).
pub(crate) const BIGINT_FROM: u32 = 20_000;

/// The accounts take three quarters of the 32 TB that a table can have.
pub(crate) const PGBENCH_SCALE_MAX: u32 = 2_000_000;

/// Above this the keys of sysbench's tables no longer fit four bytes.
pub(crate) const OLTP_SCALE_MAX: u32 = 21_474;
