//! Facts of a host: what was found, where it was read, and why something is missing.
//! docs/reference/facts.md lists them all.
//!
//! Nothing here writes, and nothing here needs a server.

mod cpu;
mod group;
mod kernel;
mod memory;
mod network;
mod numa;
mod pages;
mod power;
mod process;
mod sheet;
mod storage;
mod sysctl;
mod topology;
mod virtualization;

pub use group::group_directory;
pub use memory::memory_available_bytes;
pub use process::{parent, process_facts, started_unix_s};
pub use storage::{same_device_fact, storage_facts};

use crate::access::{HostAccess, HostError};
use crate::fact::Fact;
use sheet::Sheet;

/// The boot id: another one means the kernel has forgotten every setting since.
pub fn boot_id(host: &dyn HostAccess) -> Result<String, HostError> {
    host.read_trimmed("/proc/sys/kernel/random/boot_id")
}

/// Facts of the machine as a whole, in the order in which a reader needs them.
pub fn host_facts(host: &dyn HostAccess) -> Vec<Fact> {
    let mut sheet = Sheet::new(host);
    for note in [
        kernel::note,
        virtualization::note,
        cpu::note,
        topology::note,
        power::note,
        numa::note,
        memory::note,
        pages::note,
        kernel::note_scheduler,
        sysctl::note,
        network::note,
    ] {
        note(&mut sheet);
    }
    sheet.facts
}

#[cfg(test)]
mod tests;
