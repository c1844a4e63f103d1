//! Counters of the CPU and of the kernel's scheduler on a server's processes, and the functions
//! that they run, where the library for perf_event_open(2) has this architecture's.

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
mod absent;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
mod counted;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
mod profile;
mod row;
pub(crate) mod symbols;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
pub use absent::{FunctionProfile, PerfCounters};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
pub use counted::PerfCounters;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
pub use profile::FunctionProfile;
pub use row::FunctionRow;
