//! CPUs of this process.

use std::sync::LazyLock;
use std::thread::available_parallelism;

/// CPUs that this process may use, by its affinity and its control groups when it first asked,
/// which reads files of the kernel's; 1 where that is unknown.
pub fn own_cpus() -> u32 {
    static CPUS: LazyLock<u32> = LazyLock::new(|| {
        available_parallelism().map_or(1, |cpus| u32::try_from(cpus.get()).unwrap_or(u32::MAX))
    });
    *CPUS
}
