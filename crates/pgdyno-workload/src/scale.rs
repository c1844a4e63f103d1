//! Rows of pgbench's tables per unit of scale.

/// Rows of pgbench_accounts per unit of scale.
pub(crate) const ACCOUNTS_PER_SCALE: i32 = 100_000;

/// Rows of pgbench_tellers per unit of scale.
pub(crate) const TELLERS_PER_SCALE: i32 = 10;

/// Above this the keys of pgbench_accounts no longer fit four bytes.
pub(crate) const SCALE_MAX: u32 = (i32::MAX / ACCOUNTS_PER_SCALE) as u32;
