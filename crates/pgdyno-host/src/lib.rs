//! A Linux machine: facts, samples, raw reads and writes below a root. Knows no PostgreSQL.
//!
//! Every reader takes its root from [`HostAccess`], so that a fixture is read exactly as the
//! machine itself. The one raw write here is for pgdyno-knobs alone, which journals before it calls
//! it.

mod access;
mod beneath;
pub mod block;
mod cgroup;
mod choices;
mod cpu_use;
mod device;
pub mod dial;
mod fact;
mod facts;
#[doc(hidden)]
pub mod fuzzed;
mod given_file;
mod list;
mod locked;
mod mount;
mod namespace;
mod perf;
pub mod probe;
mod process;
pub mod series;
mod size;

pub use access::{HostAccess, HostError, LocalHost, Space};
pub use beneath::{
    COMING, Directory, EntryKind, Identity, Owner, USUAL_MODE, give, make_directory, tree_bytes,
};
pub use cgroup::{Cgroup, Limits, Unlimited};
pub use choices::{choices, chosen};
pub use cpu_use::{CpuUse, OthersCpu};
pub use fact::Fact;
pub use facts::{
    boot_id, group_directory, host_facts, memory_available_bytes, parent, process_facts, same_device_fact,
    started_unix_s, storage_facts,
};
pub use given_file::{given_bytes, given_output, given_text, replace_given};
pub use list::numbers_of_list;
pub use locked::LockedFile;
pub use mount::may_hang;
pub use namespace::{has_own_root, inner_number, path_here};
pub use perf::{FunctionProfile, FunctionRow, PerfCounters};
pub use process::{
    NotThere, children, cpu_us_of_tree, cpus_of, is_alive, online_cpus, started_ticks, works_in,
};
pub use series::{HostSeries, HostSeriesOptions, network_use};
pub use size::size_bytes;
