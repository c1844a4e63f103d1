//! Private servers, called sandboxes: their binaries, limits, file systems, networks and poolers;
//! and starting and stopping of servers, a sandbox's and, with consent, by what runs it, another's.
//!
//! What is made here goes with its sandbox. No setting of a host or of a server of others is
//! changed.

mod control;
mod current_log;
#[doc(hidden)]
pub mod fuzzed;
mod log;
mod manager;
mod pooler;
mod printed;
mod programs;
mod rehearsal;
mod sandbox;
mod started_with;

pub use control::{Control, ControlError, Down, Managed};
pub use manager::{COMMANDS_EXPECTED, Manager};
pub use pooler::{PoolMode, Pooler, PoolerError, PoolerKind, PoolerPlan};
pub use programs::{answer, find as find_program};
pub use rehearsal::{Rehearsal, is_of_start, is_rehearsed, start_doubts, start_settings};
pub use sandbox::{
    Binaries, BinarySources, Copied, CopyProgress, DEFAULT_MAJOR, FileSystem, FileSystemKind, FileSystemPlan,
    Guard, Holds, Listen, MAJORS, NETWORK_PROGRAM, Network, NetworkPlan, OnProgress, Plan, Record,
    STANDBYS_MAX, Sandbox, SandboxError, Standbys, State, create, is_whole_copy, list_names, lock,
    remove_copy, remove_remains,
};
